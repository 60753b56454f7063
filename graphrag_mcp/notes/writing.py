"""The text of a note: ids that it cites as links to the lines of their documents, and its front
matter."""

from __future__ import annotations

import os
import re
from bisect import bisect
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.query import context, lookup
from graphrag_mcp.sources.decode import clean, front_matter
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text import citing, places
from graphrag_mcp.text.citing import Fingerprint

MOST = 300  # citations of a note
_ID = r"(?:[\w.~-]+/)?[tderck]\d{1,9}(?:\.\d{1,6}|#\d{1,6})?"
_EACH_ID = re.compile(rf"(?<![\w.~/-]){_ID}")
_GROUPS = r"(?:Data:|Sources|Entities|Relationships|Reports|Claims|\+more)"
# Ids alone in a bracket, as [t1.2, d4] or [Data: Sources (t33, t4); Entities (e12)]; no link. `a1/d1` can be
# read in several ways, a list of such in 2^n: what was read is not read otherwise (++).
_CITED = re.compile(rf"\[(?=[^\[\]\n]*\d)((?:{_ID}|{_GROUPS}|\band\b|[\s,;()])++)\](?![(\[])")
_CODE = re.compile(
    r"(?ms)^(`{3,}(?=[^`\n]*$)|~{3,}).*?(?:^\1|\Z)"
    r"|(?<!`)`[^`\n]+`(?!`)|(?<!`)(`{2,3})(?!`)[^\n]{1,500}?(?<!`)\2(?!`)"
)
_PAGE = re.compile(r"p\. (\d+)")


@dataclass
class Linked:
    """A text whose ids have become links; `cited`: the texts that they name; `topics`: ids of
    communities, which stand in no document."""

    text: str
    cited: dict[Fingerprint, str] = field(default_factory=dict)
    topics: list[str] = field(default_factory=list)


def linked(snapshot: Snapshot | None, path: Path, text: str) -> Linked:
    """The text with its ids as links from the note at `path`. NotFound names ids of nothing:
    a note is not written with them."""
    made = Linked("")
    code = [match.span() for match in _CODE.finditer(text)]  # in order, none inside another

    def in_code(at: int) -> bool:
        before = bisect(code, (at, len(text))) - 1
        return before >= 0 and at < code[before][1]

    found = [match for match in _CITED.finditer(text) if not in_code(match.start())]
    wanted = list(dict.fromkeys(id for match in found for id in _EACH_ID.findall(match[1])))
    if len(wanted) > MOST:
        raise BadInput(
            f"the note cites {len(wanted)} ids, and may cite {MOST}", "Write several notes"
        )
    links: dict[str, str] = {}
    unknown: list[str] = []
    for id in wanted:
        written = _written(snapshot, path, id, made) if snapshot is not None else ""
        if written:
            links[id] = written
        else:
            unknown.append(id)
    if unknown:
        names = ", ".join(unknown[:10])
        what = (
            f"nothing has the id {names}" if len(unknown) == 1 else f"nothing has the ids {names}"
        )
        advice = "What they named has changed or is gone, or is in another corpus: search again, or leave them out"
        raise NotFound(what, advice)
    parts, at = [], 0
    for match in found:
        ids = dict.fromkeys(links[id] for id in _EACH_ID.findall(match[1]))
        parts += [text[at : match.start()], ", ".join(ids)]
        at = match.end()
    made.text = "".join([*parts, text[at:]])
    return made


@dataclass(frozen=True, slots=True)
class Span:
    """Characters of a document; `whole`: all of it. `place`: page, slide, cells or time."""

    document: str
    start: int
    end: int
    whole: bool = False
    place: str = ""


def _written(snapshot: Snapshot, path: Path, id: str, made: Linked) -> str:
    """What stands in the note for an id; "" where it names nothing."""
    name, _, alias = id.rpartition("/")
    if name and name != snapshot.manifest.corpus:
        return ""
    if alias[0] == "c":
        rows = context.numbered(snapshot, "reports", [int(alias[1:])])
        made.topics += [alias] if rows else []
        return f"(topic: {rows[0]['title']})" if rows else ""
    span = _span(snapshot, alias)
    if span is None:
        return ""
    (row,) = snapshot.by_key("documents", [span.document], "id", ["uri", "text"]).to_pylist()
    if str(path) in _files(snapshot, row["uri"]):
        raise BadInput(f"{id} is a part of this note", "A note cites its sources, not itself")
    text = row["text"][span.start : span.end]
    of = citing.fingerprint(text)
    made.cited[of] = text
    start = span.start + len(text) - len(text.lstrip())
    first = row["text"].count("\n", 0, start) + 1
    last = first + text.strip().count("\n")
    file = row["uri"].rpartition("/")[2].removeprefix("text:")
    fragment, label = f"L{first}" + (f"-L{last}" if last > first else ""), f"{file}:{first}"
    if span.place:
        page = _PAGE.match(span.place)
        fragment, label = f"page={page[1]}" if page else span.place, f"{file} {span.place}"
    if span.whole:
        fragment, label = "", file
    return citing.link(label, address(snapshot, path, row["uri"], fragment), of)


def address(snapshot: Snapshot, path: Path, uri: str, fragment: str = "") -> str:
    """The address of a document as the note at `path` has it: relative to the note for files."""
    files = [] if uri.startswith("text:") else _files(snapshot, uri)
    if not files:
        target = uri if uri.startswith("text:") else f"graphrag:{uri}"
        return quote(target, safe="/:@!$&*+,;=~.-_")
    try:
        relative = os.path.relpath(files[0], path.parent).replace(os.sep, "/")
    except ValueError:  # on another drive
        relative = Path(files[0]).as_posix()
    behind = uri.partition("#")[2] or fragment
    safe = "/!$&*+,;=~.-_"
    return quote(relative, safe=f"{safe}:") + (f"#{quote(behind, safe=safe)}" if behind else "")


def _files(snapshot: Snapshot, uri: str) -> list[str]:
    """The path of the file of a document; [] for a text without one."""
    label, _, rest = uri.partition("/")
    folder = snapshot.manifest.sources.get(label, {}).get("path", "")
    return [os.path.join(folder, *rest.partition("#")[0].split("/"))] if folder else []


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
        place = lookup.section_of(text, int(section), rows[0]["uri"])
        return Span(rows[0]["id"], *place) if place else None
    if kind in "er":
        table = "entities" if kind == "e" else "relationships"
        for row in context.numbered(snapshot, table, [int(alias[1:])]):
            for said in row["evidence"]:
                ids = [said["text_unit_id"]]
                names = ["document_id", "char_start"]
                for unit in snapshot.by_key("text_units", ids, "id", names).to_pylist():
                    at = unit["char_start"]
                    return Span(unit["document_id"], at + said["start"], at + said["end"])
    rows = snapshot.with_places(lookup.passages_of(snapshot, alias))
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


def composed(title: str, body: str, date: str, writer: str) -> str:
    """A new note."""
    body = _body(title, body)
    facts = {"kind": "note", "title": f'"{_plain(title)}"', "date": date, "writer": _plain(writer)}
    matter = "\n".join(f"{name}: {value}" for name, value in facts.items())
    return f"---\n{matter}\n---\n\n# {_plain(title)}\n\n{body}\n"


def appended(old: str, title: str, body: str, date: str, writer: str) -> str:
    """A note with more text at its end."""
    matter, rest = _divided(old, title, date, writer)
    return f"{matter}\n{rest.strip()}\n\n{_body(title, body)}\n"


def replaced(old: str, title: str, body: str, date: str, writer: str) -> str:
    """A note with another text below its front matter, in which a person may have put tags."""
    matter, _ = _divided(old, title, date, writer)
    return f"{matter}\n# {_plain(title)}\n\n{_body(title, body)}\n"


def _divided(old: str, title: str, date: str, writer: str) -> tuple[str, str]:
    """The front matter with the day and the writer of now, and what is below it. Where there is none
    that can be read, a new one stands above all that was there."""
    facts, end = front_matter(old)
    if not end or not old.startswith("---\n"):
        new = composed(title, "", date, writer)
        return new[: front_matter(new)[1]], old
    block = old[:end].rstrip()
    for name, value in {"date": date, "writer": _plain(writer), "kind": "note"}.items():
        line = re.compile(rf"(?mi)^{name}[ \t]*:.*$")
        if name in facts and line.search(block):
            block = line.sub(lambda _, said=f"{name}: {value}": said, block, count=1)
        else:
            block = block[: block.rfind("\n")] + f"\n{name}: {value}" + block[block.rfind("\n") :]
    return f"{block}\n", old[end:]


def _body(title: str, text: str) -> str:
    """The text without a front matter, and without a heading that is the title."""
    text = clean(text).strip()  # a file with a NUL is no text to an index
    text = text[front_matter(text)[1] :].strip()
    first, _, rest = text.partition("\n")
    same = first.startswith("# ") and first[2:].strip().casefold() == title.strip().casefold()
    return rest.strip() if same else text


def _plain(text: str) -> str:
    """A value of front matter on one line, without what ends or escapes it."""
    return " ".join(clean(text).replace('"', "'").replace("\\", "/").split())[:300]
