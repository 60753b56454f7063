"""Proposals of entities that may be the same, found on request and never merged alone; and the
edits made by hand.

What is accepted is an edit, what is refused stands in the edit log. An edit is in force, undone, or
dormant: the documents do not name at present what it speaks of."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.query.entities import resolve
from graphrag_mcp.store.edit_log import LogRow, Overlay, in_force
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.terms import counted, is_cjk, normalise_name, terms
from graphrag_mcp.types import EditResult, content_id

SHOWN = 50
Row = dict[str, Any]


def log(snapshot: Snapshot) -> EditResult:
    """The edits so far, the last one first."""
    overlay = in_force(snapshot)
    there = _entities(snapshot, overlay)
    result = EditResult(op="log")
    for row in reversed(overlay.log):
        result.edits.append(
            {
                "undo_id": row.id,
                "op": row.op,
                "what": what(row),
                "by": row.by,
                "time": row.time,
                "state": state(row, overlay, there, snapshot),
            }
        )
    shown = result.edits[:SHOWN]
    lines = [
        f"- {one['undo_id']} ({one['state']}): {one['what']}, by {one['by']}, {one['time'][:19]}"
        for one in shown
    ]
    head = "Nothing was edited by hand."
    if lines:
        head = f"{counted(len(result.edits), 'edits')}, the last one first."
    result.text, result.edits = "\n".join([head, *lines]), shown
    return result


def what(row: LogRow) -> str:
    names = [one_line(name, 60) for name in (row.forms or row.keys)]
    if row.op == "merge":
        said = f"{', '.join(names[1:])} into {names[0]}"
    else:
        said = (" – " if row.kind == "relationship" else ", ").join(names[:3]) + (
            ", ..." if len(names) > 3 else ""
        )
    fields = ", ".join(f"{name} = {one_line(str(value), 60)}" for name, value in row.fields.items())
    return f"{row.op} {said}" + (f": {fields}" if fields else "")


def state(row: LogRow, overlay: Overlay, there: set[str], snapshot: Snapshot) -> str:
    if row.id in overlay.undone:
        return f"undone by {overlay.undone[row.id]}"
    if row.op == "remove" and not any(overlay.removed.get(uri) == row.id for uri in row.keys):
        return "over"
    if row.op in ("undo", "delete", "reject", "remove", "restore"):
        return "in force"
    if row.kind == "relationship":
        ends = sorted(content_id("entity", overlay.alias.get(key, key)) for key in row.keys)
        found = snapshot.by_key(
            "relationships", [content_id("relationship", *ends)], "id", ["id"]
        ).num_rows
        return "in force" if found else "dormant"
    own = overlay.alias.get(row.keys[0], row.keys[0])
    if own != row.keys[0] and row.op != "merge":
        return f"dormant, a name of {one_line(overlay.forms.get(own, own), 60)} now"
    return "in force" if own in there else "dormant"


def _entities(snapshot: Snapshot, overlay: Overlay) -> set[str]:
    """Names in the log that are entities now."""
    keys = {
        overlay.alias.get(key, key)
        for row in overlay.log
        if row.kind == "entity"
        for key in row.keys
    }
    ids = {content_id("entity", key): key for key in keys}
    return {
        ids[id] for id in snapshot.by_key("entities", sorted(ids), "id", ["id"])["id"].to_pylist()
    }


def about(snapshot: Snapshot, row: Row) -> str:
    """What an entity owes to edits, in a line; "" for most."""
    overlay = in_force(snapshot)
    edit = overlay.entities.get(row["key"])
    said = []
    if edit is not None and not edit.deleted:
        made = "Made" if edit.created and not row["frequency"] else "Edited"
        fields = f" ({', '.join(sorted(edit.fields))})" if edit.fields else ""
        said.append(f"{made} by {edit.by}{fields}, {edit.time[:10]}, {edit.rows[-1]}")
        if edit.created and not row["frequency"]:
            said[-1] += "; no document names it"
    merged = [name for name in overlay.names.get(row["key"], ()) if overlay.aliased.get(name)]
    said += [
        f"{one_line(overlay.forms.get(name, name), 60)} was made a name of it, {overlay.aliased[name]}"
        for name in merged[:5]
    ]
    return f"{'; '.join(said)}." if said else ""


def hidden(snapshot: Snapshot, key: str) -> str:
    """Which edit hides this name; "" where none does."""
    overlay = in_force(snapshot)
    return overlay.entities[key].rows[-1] if overlay.hidden(key) else ""


COLUMNS = ["id", "n", "key", "title", "type", "degree", "frequency", "names"]
MOST = 30  # proposals in one answer
NEAR = 60  # rows that a search for the words of one name looks at
BLOCK = 40  # names that share a block: more say nothing about each other
TYPO_LETTERS = 8  # from which one letter more or less is no other name
# How sure each kind is. The text itself says so; the same letters; initials that fit; one letter.
WORTH = {
    "gloss": 0.95,
    "acronym": 0.9,
    "spelling": 0.85,
    "initials": 0.7,
    "title": 0.7,
    "typo": 0.5,
}
_SMALL = set("of the and for in on to de du des der die das la le van von".split())
_HONORIFIC = set("dr prof professor mr mrs ms sir dame captain capt lady lord saint st".split())
_GLOSS = re.compile(r"[(（]\s*[\"“”'‘’「『《]?\s*([^()（）\n]{1,80}?)\s*[\"“”'‘’」』》]?\s*[)）]")
_ALSO = re.compile(
    r"^(?:also|formerly|now|alias|aka|a\.k\.a\.|known as|called|born|née|short|原名|又名|又称|也称|简称|即)[\s:：]*"
    r"(?:known as|called|as)?\s*",
    re.IGNORECASE,
)
_QUOTES = " \t\"“”'‘’「」『』《》"


@dataclass(frozen=True)
class Proposal:
    """`one` is named more often than `other`; accepting it makes `other` a name of `one`."""

    one: Row
    other: Row
    kind: str
    why: str


def proposals(snapshot: Snapshot, names: Sequence[str] = ()) -> EditResult:
    """Names that may mean one entity, as results of edit_graph; of these entities, or of all."""
    overlay = in_force(snapshot)
    found: list[Proposal] = []
    for name in names:
        row, _ = resolve(snapshot, name.strip().strip("[]` "))
        found += of_entity(snapshot, row, overlay) if row is not None else []
    if not names:
        found = _all(snapshot, overlay)
    shown = found[:MOST]
    result = EditResult(op="proposals")
    result.proposals = [
        {
            "ids": [f"e{one.one['n']}", f"e{one.other['n']}"],
            "names": [_short(one.one), _short(one.other)],
            "kind": one.kind,
            "why": one.why,
            "score": WORTH[one.kind],
        }
        for one in shown
    ]
    many = f"Names that may mean one entity: {counted(len(found), 'pairs')}."
    lines = [many if found else "No two names look like one entity."]
    lines += [line(one) for one in shown]
    if shown:
        both = '", "'.join(result.proposals[0]["ids"])
        result.hint = 'To accept a pair, merge its ids with dry_run=false; to refuse it for good, op="reject".'
        result.next_call = f'edit_graph(op="merge", ids=["{both}"])'
    result.text = "\n".join(lines)
    return result


def line(one: Proposal) -> str:
    return f"- {_short(one.one)} (e{one.one['n']}) and {_short(one.other)} (e{one.other['n']}): {one.why}"


def _short(row: Row) -> str:
    return one_line(row["title"], 80)


def of_entity(snapshot: Snapshot, row: Row, overlay: Overlay | None = None) -> list[Proposal]:
    """What one entity may also be called: from names that share a word with it, and from its own
    sentences."""
    overlay = overlay or in_force(snapshot)
    words = sorted({*terms(row["title"]), *(word for word in [_acronym(row["key"])] if word)})[:16]
    near = snapshot.full_text("entities", words, NEAR, COLUMNS).to_pylist()
    rows = {one["id"]: one for one in near} | {row["id"]: row}
    # A short form's long forms share no word with it: their first letters are looked for by name
    # likeness elsewhere.
    found = list(_alike(rows.values(), only=row["id"]))
    sentences = [one["text"] for one in row.get("evidence", ())]
    found += _glossed(sentences, lambda key: _by_name(snapshot, overlay, key), only=row["id"])
    return _ranked(found, overlay)


def _all(snapshot: Snapshot, overlay: Overlay) -> list[Proposal]:
    rows = {row["id"]: row for row in snapshot.rows("entities", columns=COLUMNS).to_pylist()}
    of_name = {name: row for row in rows.values() for name in row["names"]}
    found = list(_alike(rows.values()))
    for batch in snapshot.batches("text_units", ["text"]):
        found += _glossed(batch["text"].to_pylist(), of_name.get)
    return _ranked(found, overlay)


def _by_name(snapshot: Snapshot, overlay: Overlay, key: str) -> Row | None:
    ids = [content_id("entity", name) for name in (key, overlay.alias.get(key, key))]
    found = snapshot.served("entities", ids)
    return found[0] if found else None


def _ranked(found: Iterable[Proposal], overlay: Overlay) -> list[Proposal]:
    """Each pair once, with its best reason, without the refused ones; the surest and most named
    first."""
    best: dict[tuple[str, str], Proposal] = {}
    for one in found:
        pair = tuple(sorted((one.one["key"], one.other["key"])))
        if one.one["id"] == one.other["id"] or pair in overlay.rejected:
            continue
        if pair not in best or WORTH[one.kind] > WORTH[best[pair].kind]:
            best[pair] = one
    return sorted(
        best.values(),
        key=lambda one: (
            -WORTH[one.kind],
            -one.other["frequency"],
            one.one["key"],
            one.other["key"],
        ),
    )


def _proposal(a: Row, b: Row, kind: str, why: str) -> Proposal:
    """The longer or more frequent name stays: of an acronym or initials always the full name."""
    if kind in ("acronym", "initials"):
        one, other = (a, b) if len(a["key"]) >= len(b["key"]) else (b, a)
    else:
        one, other = (a, b) if (-a["frequency"], a["n"]) <= (-b["frequency"], b["n"]) else (b, a)
    return Proposal(one, other, kind, why)


# ---- names that look alike ---------------------------------------------------------------------------


def _alike(rows: Iterable[Row], only: str = "") -> Iterator[Proposal]:
    """Pairs within blocks of names that can be alike at all. `only`: pairs with this entity."""
    every = list(rows)
    for kind, key_of in _BLOCKS:
        blocks: dict[str, dict[str, Row]] = defaultdict(dict)
        for row in every:
            for key in key_of(row["key"]):
                blocks[key][row["id"]] = row
        for block in blocks.values():
            if not 1 < len(block) <= BLOCK or (only and only not in block):
                continue
            members = list(block.values())
            for i, a in enumerate(members):
                for b in members[i + 1 :]:
                    if (not only or only in (a["id"], b["id"])) and (why := _WHY[kind](a, b)):
                        yield _proposal(a, b, kind, why)


def _words(key: str) -> list[str]:
    return key.split()


def _compact(key: str) -> list[str]:
    squeezed = re.sub(r"[\s\-_.·・'’]", "", key)
    return [squeezed] if len(squeezed) > 3 else []


def _spelling(a: Row, b: Row) -> str:
    return "the same letters" if a["key"] != b["key"] else ""


def _sorted_words(key: str) -> list[str]:
    words = re.findall(r"[^\s,;]+", key)
    return [" ".join(sorted(words))] if len(words) > 1 else []


def _last(key: str) -> list[str]:
    words = _words(key)
    return (
        [words[-1]] if len(words) > 1 and len(words[-1]) > 2 and not any(map(is_cjk, key)) else []
    )


def _initials(a: Row, b: Row) -> str:
    """J. Smith and John Smith, John A. Smith and John Smith."""
    one, other = _plain(a["key"]), _plain(b["key"])
    if one == other or one[-1:] != other[-1:] or _other_kinds(a, b):
        return ""
    short, long = sorted(
        (one[:-1], other[:-1]), key=lambda words: (len(words), sum(map(len, words)))
    )
    if not short or not long or not _starts(short[0], long[0]):
        return ""
    if len(short) == len(long):
        fits = all(_starts(*words) for words in zip(short, long, strict=True))
        return "the same but for initials" if fits else ""
    if len(short) == 1 and len(short[0]) == len(long) and len(long) > 1:  # JRR Tolkien
        return "initials of the same name" if short[0] == "".join(word[0] for word in long) else ""
    middle = long[1:] if len(short) == 1 else []
    if middle and all(len(word) == 1 for word in middle):
        return "the same but for a middle initial"
    return ""


def _starts(a: str, b: str) -> bool:
    return a == b or (1 in (len(a), len(b)) and a[0] == b[0])


def _plain(key: str) -> list[str]:
    words = [word for word in _words(key) if word not in _HONORIFIC] or _words(key)
    if (
        len(words) > 1
        and 1 < len(words[0]) <= 3
        and words[0].isalpha()
        and not re.search(r"[aeiouy]", words[0])
    ):
        return words  # initials written as one word stay one
    return words


def _titled(a: Row, b: Row) -> str:
    """Dr. John Smith and John Smith."""
    one, other = _words(a["key"]), _words(b["key"])
    same = _plain(a["key"]) == _plain(b["key"])
    return "the same but for a title" if same and one != other and not _other_kinds(a, b) else ""


def _other_kinds(a: Row, b: Row) -> bool:
    vague = ("other", "unknown", "")
    return a["type"] != b["type"] and a["type"] not in vague and b["type"] not in vague


def _acronym(key: str) -> str:
    words = [word for word in re.split(r"[\s\-]+", key) if word]
    letters = "".join(word[0] for word in words if word not in _SMALL)
    if len(letters) > 1 and len(words) > 1 and letters.isascii() and letters.isalpha():
        return letters
    return ""


def _acronyms(key: str) -> list[str]:
    if re.fullmatch(r"[a-z]{2,6}", key):
        return [key]
    return [_acronym(key)] if _acronym(key) else []


def _short_form(a: Row, b: Row) -> str:
    short, long = sorted((a, b), key=lambda row: len(row["key"]))
    written = short["title"].replace(".", "")
    fits = _acronym(long["key"]) == short["key"] and written.isupper() and " " not in short["key"]
    return "its initials" if fits else ""


def _deletions(key: str) -> list[str]:
    if len(key) < TYPO_LETTERS or re.search(r"\d", key) or any(map(is_cjk, key)):
        return []
    return [key, *(key[:i] + key[i + 1 :] for i in range(len(key)))]


def _typo(a: Row, b: Row) -> str:
    """One letter more, less or other, inside words that are otherwise the same."""
    one, other = _words(a["key"]), _words(b["key"])
    differ = [(x, y) for x, y in zip(one, other, strict=False) if x != y]
    if len(one) != len(other) or len(differ) != 1 or _other_kinds(a, b):
        return ""
    x, y = differ[0]
    if min(len(x), len(y)) > 4 and x[0] == y[0] and abs(len(x) - len(y)) <= 1:
        return "one letter differs"
    return ""


_BLOCKS: tuple[tuple[str, Callable[[str], list[str]]], ...] = (
    ("spelling", _compact),
    ("spelling", _sorted_words),
    ("initials", _last),
    ("title", _last),
    ("acronym", _acronyms),
    ("typo", _deletions),
)
_WHY: dict[str, Callable[[Row, Row], str]] = {
    "spelling": _spelling,
    "initials": _initials,
    "title": _titled,
    "acronym": _short_form,
    "typo": _typo,
}
# ---- names that the text explains ----------------------------------------------------------------------


def _glossed(
    texts: Iterable[str], entity: Callable[[str], Row | None], only: str = ""
) -> Iterator[Proposal]:
    """“丝带”（the Ribbon）: a name, and right behind it in brackets another that has an entity of its
    own."""
    for text in texts:
        for match in _GLOSS.finditer(text):
            also = _ALSO.match(match[1])
            inner = entity(normalise_name(match[1][also.end() :] if also else match[1]))
            if inner is None:
                continue
            outer = _before(text[max(0, match.start() - 60) : match.start()], entity)
            if (
                outer is None
                or outer["id"] == inner["id"]
                or (only and only not in (outer["id"], inner["id"]))
            ):
                continue
            if also or _explains(outer, inner):
                said = one_line(text[max(0, match.start() - 40) : match.end()], 90)
                yield _proposal(outer, inner, "gloss", f"the text says {said!r}")


def _explains(outer: Row, inner: Row) -> bool:
    """Another script, or a short form: in one script a bracket holds as often who someone works
    for."""
    if _other_kinds(outer, inner):
        return False
    if any(map(is_cjk, outer["title"])) != any(map(is_cjk, inner["title"])):
        return True
    short, long = sorted((outer, inner), key=lambda row: len(row["key"]))
    return (
        bool(re.fullmatch(r"[A-Z][A-Z.&]{1,6}", short["title"]))
        and short["key"][0] == long["key"][0]
    )


def _before(text: str, entity: Callable[[str], Row | None]) -> Row | None:
    """The longest name with an entity that the text ends with."""
    text = text.rstrip(_QUOTES)
    starts = [0, *(match.end() for match in re.finditer(r"[\s,;:.!?、，。；：“\"「『《]+", text))]
    if text and is_cjk(text[-1]):
        starts = sorted({*starts, *range(max(0, len(text) - 12), len(text) - 1)})
    for start in starts:
        key = normalise_name(text[start:].strip(_QUOTES))
        if key and (row := entity(key)) is not None:
            return row
    return None
