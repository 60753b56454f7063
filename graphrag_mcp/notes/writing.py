"""The text of a note: ids that it cites as marks, which are links to the lines of their documents, and its
front matter."""

from __future__ import annotations

import os
import re
import unicodedata
from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.query import context
from graphrag_mcp.query.ids import passages_of, section_of
from graphrag_mcp.sources.decode import clean, front_matter
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text import citing, places
from graphrag_mcp.text.citing import Fingerprint
from graphrag_mcp.text.terms import lists_of
from graphrag_mcp.text.uris import file_and_key

MOST = 300  # citations of a note
_ID = r"(?:[\w.~-]+/)?[tderck]\d{1,9}(?:\.\d{1,6}|#\d{1,6})?"
_EACH = re.compile(rf"(?<![\w.~/-]){_ID}")
_GROUPS = r"(?:Data:|Sources|Entities|Relationships|Reports|Claims|\+more)"
# Ids alone in a bracket, as [t1.2, d4] or [Data: Sources (t33, t4); Entities (e12)]. `a1/d1` can be
# read in several ways, a list of such in 2^n: what was read is not read otherwise (++).
_IDS = rf"(?=[^\[\]\n]*\d)(?:{_ID}|{_GROUPS}|\band\b|[\s,;()])++"
# No link: `(` behind it begins the target of one, and `[` too where it does not begin the next ids.
_CITED = re.compile(rf"(?<!\[)\[(?P<ids>{_IDS})\](?!\]|\(|\[(?!{_IDS}\]))")
# Ids in round brackets, or beside other words in square ones: an agent may mean them as citations.
_LOOSE = re.compile(r"[(\[][^()\[\]\n]{0,80}?\b([td]\d{1,7}(?:\.\d{1,3})?)\b[^()\[\]\n]{0,80}[)\]]")
_CODE = re.compile(
    r"(?ms)^(`{3,}(?=[^`\n]*$)|~{3,}).*?(?:^\1|\Z)"
    r"|(?<!`)`[^`\n]+`(?!`)|(?<!`)(`{2,3})(?!`)[^\n]{1,500}?(?<!`)\2(?!`)"
)
_PAGE = re.compile(r"p\. (\d+)")
_NUMBER = re.compile(r"\[\^?(\d{1,6})\]")
_SAFE = "/:@!$&*+,;=~.-_"  # in addresses
_LARGE = 9_999  # numbers above are none that marks count on from


@dataclass
class Linked:
    """A text whose ids have become marks, and the definitions of these; `cited`: the texts that they name;
    `ids`: those of `cited`; `topics`: ids of communities, which stand in no document; `left`: ids of sources that
    look like citations and are none."""

    text: str
    definitions: list[str] = field(default_factory=list)
    cited: dict[Fingerprint, str] = field(default_factory=dict)
    ids: list[str] = field(default_factory=list)
    topics: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Target:
    """What an id names: the address from the note, and its text."""

    address: str
    fingerprint: Fingerprint
    whole: bool = False


def linked(snapshot: Snapshot | None, path: Path, text: str, before: str = "", old: str = "") -> Linked:
    """The text with its ids as links from the note at `path`, whose other text is `before`: a mark means one source
    in all of it. What get_source showed of a citation of `old` whose text has changed or gone is that citation again.
    NotFound names ids of nothing: a note is not written with them."""
    marks = _Marks(before, text)
    text = _read_back(text, old, marks)
    code = [match.span() for match in _CODE.finditer(text)]  # in order, none inside another

    def is_code(at: int) -> bool:
        before = bisect(code, (at, len(text))) - 1
        return before >= 0 and at < code[before][1]

    groups = [match for match in _CITED.finditer(text) if not is_code(match.start())]
    ids = {match: list(dict.fromkeys(_EACH.findall(match["ids"]))) for match in groups}
    cited = list(dict.fromkeys(id for of in ids.values() for id in of))
    if len(cited) > MOST:
        what = f"the note cites {len(cited)} ids, and may cite {MOST}"
        raise BadInput(what, "Write several notes")
    result = Linked("", ids=cited)
    targets = {id: None if snapshot is None else _target(snapshot, path, id, result) for id in cited}
    if unknown := [id for id in cited if targets[id] is None]:
        names = ", ".join(unknown[:10])
        what = f"nothing has the id{'s' * (len(unknown) > 1)} {names}"
        advice = "What they named has changed or is gone, or is in another corpus: search again, or leave them out"
        raise NotFound(what, advice)
    links = {
        id: target if isinstance(target, str) else f"[{marks.of(target)}]"
        for id, target in targets.items()
        if target is not None
    }
    shown, at = [], 0
    for match in groups:
        before = text[max(match.start() - 1, 0) : match.start()]
        # A mark behind `!` makes a picture, one behind another mark a link, and `:` behind it a definition.
        joins = before == "!" or (before == "]" and match.start() > at)
        behind = text[match.end() : match.end() + 1]
        joined = behind == "[" or (before in ("", "\n") and behind == ":")
        cites = ", ".join(dict.fromkeys(links[id] for id in ids[match]))
        shown += [text[at : match.start()], " " * joins, cites, " " * joined]
        at = match.end()
    result.text, result.definitions = "".join([*shown, text[at:]]), marks.written
    if snapshot is not None:
        linked_in = [match.span() for match in groups]
        loose = [
            match[1]
            for match in _LOOSE.finditer(text)
            if not is_code(match.start()) and not any(start <= match.start() < end for start, end in linked_in)
        ]
        known = (id for id in dict.fromkeys(loose) if _target(snapshot, path, id, Linked("")))
        result.left = list(known)
    return result


def _read_back(text: str, old: str, marks: _Marks) -> str:
    """The text with marks for what `note_sources.with_ids` showed of citations of the old text: without them a note
    that is written again would lose the sources that have changed."""
    by_label = lists_of((citation.label, citation) for citation in citing.citations(old))
    if not by_label:
        return text
    labels = "|".join(map(re.escape, sorted(by_label, key=len, reverse=True)))

    def read(shown: re.Match[str]) -> str:
        if shown["label"] is None:  # code
            return shown[0]
        return ", ".join(f"[{marks.again(citation)}]" for citation in by_label[shown["label"]])

    shown = rf"\[(?P<label>{labels}), (?:changed|gone) since\]"
    return re.sub(f"{_CODE.pattern}|{shown}", read, text)


class _Marks:
    """The marks of a note: numbers that stand in brackets nowhere else in it."""

    def __init__(self, before: str, text: str) -> None:
        self.known = {citation.key: citation.mark for citation in citing.citations(before) if citation.mark}
        numbers = [int(number) for number in _NUMBER.findall(f"{before}\n{text}")]
        self.taken = set(numbers)
        self.last = max((number for number in numbers if number <= _LARGE), default=0)
        self.written: list[str] = []

    def of(self, target: Target) -> str:
        """The mark of a source; the same for what the note cites already."""
        return self._number((*citing.place_of(target.address), target.fingerprint), target)

    def again(self, cited: citing.Citation) -> str:
        """The mark of a source that the note cited before."""
        address = quote(cited.path, safe=_SAFE) + ("#" if cited.fragment else "")
        address += quote(cited.fragment, safe=_SAFE)
        return self._number(cited.key, Target(address, cited.fingerprint, cited.whole))

    def _number(self, key: tuple[str, str, Fingerprint], target: Target) -> str:
        if key not in self.known:
            self.last += 1
            while self.last in self.taken:
                self.last += 1
            self.known[key] = str(self.last)
            self.written.append(citing.definition(self.last, target.address, target.fingerprint, target.whole))
        return self.known[key]


@dataclass(frozen=True, slots=True)
class Span:
    """Characters of a document; `whole`: all of it. `place`: page, slide, cells or time."""

    document: str
    start: int
    end: int
    whole: bool = False
    place: str = ""


def _target(snapshot: Snapshot, path: Path, id: str, result: Linked) -> Target | str | None:
    """What an id names: for a topic the words that stand for it; None where it names nothing."""
    name, _, alias = id.rpartition("/")
    if name and name != snapshot.manifest.corpus:
        return None
    if alias[0] == "c":
        rows = context.numbered(snapshot, "reports", [int(alias[1:])])
        result.topics += [alias] if rows else []
        return f"(topic: {rows[0]['title']})" if rows else None
    span = _span(snapshot, alias)
    if span is None:
        return None
    (row,) = snapshot.by_key("documents", [span.document], "id", ["uri", "text"]).to_pylist()
    if str(path) in _files(snapshot, row["uri"]):
        raise BadInput(f"{id} is a part of this note", "A note cites its sources, not itself")
    text = row["text"][span.start : span.end]
    of = citing.Searchable(row["text"]).part(text)
    result.cited[of] = text
    start = span.start + len(text) - len(text.lstrip())
    first = row["text"].count("\n", 0, start) + 1
    last = first + text.strip().count("\n")
    fragment = f"L{first}" + (f"-L{last}" if last > first else "")
    if span.place:
        page = _PAGE.match(span.place)
        fragment = f"page={page[1]}" if page else span.place
    # The only passage of a row of a table is the row: its address has no place for a part of it.
    whole = span.whole or (bool(file_and_key(row["uri"])[1]) and text.strip() == row["text"].strip())
    target = address(snapshot, path, row["uri"], "" if span.whole else fragment)
    if len(target) > citing.LONGEST:
        what = f"the address of {id} has {len(target):,} characters, and may have {citing.LONGEST:,}"
        raise BadInput(what, "Cite another source, or give its file a shorter path")
    return Target(target, of, whole)


def address(snapshot: Snapshot, path: Path, uri: str, fragment: str = "") -> str:
    """The address of a document as the note at `path` has it: relative to the note for files."""
    files = [] if uri.startswith("text:") else _files(snapshot, uri)
    if not files:
        target = uri if uri.startswith("text:") else f"graphrag:{uri}"
        return quote(target, safe=_SAFE)
    try:
        relative = os.path.relpath(files[0], path.parent).replace(os.sep, "/")
    except ValueError:  # on another drive
        relative = Path(files[0]).as_posix()
    behind = file_and_key(uri)[1] or fragment
    safe = "/!$&*+,;=~.-_"
    return quote(relative, safe=f"{safe}:") + (f"#{quote(behind, safe=safe)}" if behind else "")


def _files(snapshot: Snapshot, uri: str) -> list[str]:
    """The path of the file of a document; [] for a text without one."""
    label, _, rest = file_and_key(uri)[0].partition("/")
    folder = snapshot.manifest.sources.get(label, {}).get("path", "")
    return [os.path.join(folder, *rest.split("/"))] if folder else []


def _span(snapshot: Snapshot, alias: str) -> Span | None:
    """The text that an id names: a passage, a text unit, a document, a section, the sentence in which
    an entity or a relationship is named first."""
    kind = alias[0]
    if "#" in alias or kind == "d":
        number, _, section = alias[1:].partition("#")
        rows = context.numbered(snapshot, "documents", [int(number)])
        if not rows:
            return None
        text = rows[0]["text"]
        if not section:
            return Span(rows[0]["id"], 0, len(text), whole=True)
        place = section_of(text, int(section), rows[0]["uri"])
        return Span(rows[0]["id"], *place) if place else None
    if kind in "er":
        table = "entities" if kind == "e" else "relationships"
        for row in context.numbered(snapshot, table, [int(alias[1:])]):
            for sentence in row["evidence"]:
                ids = [sentence["text_unit_id"]]
                names = ["document_id", "char_start"]
                for unit in snapshot.by_key("text_units", ids, "id", names).to_pylist():
                    at = unit["char_start"]
                    return Span(unit["document_id"], at + sentence["start"], at + sentence["end"])
    rows = snapshot.with_places(passages_of(snapshot, alias))
    rows = [row for row in rows if row["document_id"] == rows[0]["document_id"]]
    if not rows:
        return None
    return Span(
        rows[0]["document_id"],
        min(row["char_start"] for row in rows),
        max(row["char_end"] for row in rows),
        place=places.of_row(rows[0]),
    )


# ---- front matter ----------------------------------------------------------------------------------


def composed(title: str, linked: Linked, date: str, writer: str) -> str:
    """A new note."""
    facts = {"kind": "note", "title": f'"{_plain(title)}"', "date": date, "writer": _scalar(_plain(writer))}
    matter = "\n".join(f"{name}: {value}" for name, value in facts.items())
    return f"---\n{matter}\n---\n\n# {_plain(title)}\n\n{_body(title, linked.text, linked.definitions)}\n"


def appended(old: str, title: str, linked: Linked, date: str, writer: str) -> str:
    """A note with more text at its end, above the definitions of its citations."""
    matter, rest = _divided(old, title, date, writer)
    rest, definitions = citing.definitions(rest)
    body = _body(title, linked.text, [*definitions, *linked.definitions], old)
    return f"{matter}\n{rest.strip()}\n\n{body}\n"


def replaced(old: str, title: str, linked: Linked, date: str, writer: str) -> str:
    """A note with another text below its front matter, in which a person may have put tags."""
    matter, _ = _divided(old, title, date, writer)
    body = _body(title, linked.text, linked.definitions, old)
    return f"{matter}\n# {_plain(title)}\n\n{body}\n"


def _divided(old: str, title: str, date: str, writer: str) -> tuple[str, str]:
    """The front matter with the day of now and all who wrote, and what is below it. Where there is none
    that can be changed, a new one stands above all that was there."""
    facts, end = front_matter(old)
    writer = _writers(facts.get("writer") or facts.get("author") or "", _plain(writer))
    if not end or not old.startswith("---\n"):
        new = composed(title, Linked(""), date, writer)
        return new[: front_matter(new)[1]], old
    block = old[:end].rstrip()
    for name, value in {"date": date, "writer": _scalar(writer)}.items():
        line = re.compile(rf"(?mi)^{name}[ \t]*:.*$(?:\n[ \t]*- .*$)*")  # and the lines of a list
        if name in facts and line.search(block):
            block = line.sub(lambda _, line=f"{name}: {value}": line, block)
        else:
            block = block[: block.rfind("\n")] + f"\n{name}: {value}" + block[block.rfind("\n") :]
    return f"{block}\n", old[end:]


def _writers(known: object, writer: str) -> str:
    """Who has written a note: those that it names, and the one who writes now."""
    before = ", ".join(map(str, known)) if isinstance(known, list) else str(known)
    if not before or writer in (before, *(name.strip() for name in before.split(","))):
        return _plain(before or writer)
    return _plain(f"{before}, {writer}")


def is_of(title: str, old: str, path: Path) -> bool:
    """Is this the title of the note in a file, in any case? Or the name of the file, whatever title a person gave it."""
    of = str(front_matter(old)[0].get("title", title))
    names = {unicodedata.normalize("NFC", name).lower() for name in (of, _plain(of), path.stem)}
    return not names.isdisjoint(unicodedata.normalize("NFC", name).lower() for name in (title, _plain(title)))


def _body(title: str, text: str, definitions: Sequence[str] = (), old: str = "") -> str:
    """The text without a front matter that the note has anyway, and without a heading that is the title; the definitions at its end, outside
    of a block of code that is open."""
    text = clean(text).strip()  # a file with a NUL is no text to an index
    (facts, end), known = front_matter(text), front_matter(old)[0]
    written_by_us = ("kind", "title", "date", "writer")
    if facts and all(name in written_by_us or known.get(name) == value for name, value in facts.items()):
        text = text[end:].strip()
    first, _, rest = text.partition("\n")
    same = first.startswith("# ") and first[2:].strip().casefold() == title.strip().casefold()
    body = rest.strip() if same else text
    if not definitions:
        return body
    body, defined = citing.definitions(body)
    code = [match for match in _CODE.finditer(body) if match[1]]
    if code and code[-1].end() == len(body) and not re.search(rf"\n{code[-1][1]}\Z", body):
        body += f"\n{code[-1][1]}"
    return "\n".join([body, "", *defined, *definitions])


def _scalar(plain: str) -> str:
    """A plain value as YAML: in quotes where it would be no text without them (`@scope/agent`)."""
    return f'"{plain}"' if re.search(r"\A(?!\w)|: | #|:\Z", plain) else plain


def _plain(text: str) -> str:
    """A value of front matter on one line, without what ends or escapes it."""
    return " ".join(clean(text).replace('"', "'").replace("\\", "/").split())[:300]
