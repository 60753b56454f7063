"""Proposals of entities that may be the same, found on request and never merged alone; and the
edits made by hand.

What is accepted is an edit, what is refused stands in the edit log. An edit is in force, undone, or
dormant: the documents do not name at present what it speaks of."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from graphrag_mcp.names import lexicon
from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.query.entities import resolve
from graphrag_mcp.store.edit_log import LogRow, Overlay, in_force
from graphrag_mcp.store.tables import Snapshot, values_of
from graphrag_mcp.text.terms import (
    counted,
    entity_id,
    is_cjk,
    normalise_name,
    relationship_id,
    terms,
)
from graphrag_mcp.types import EditResult

SHOWN = 50
Row = dict[str, Any]


def log(snapshot: Snapshot) -> EditResult:
    """The edits so far, the latest first."""
    overlay, result = in_force(snapshot), EditResult(op="log")
    lines = ["Nothing was edited by hand."]
    if overlay.log:
        lines = [f"{counted(len(overlay.log), 'edits')}, the last one first."]
    for row in overlay.log[: -SHOWN - 1 : -1]:
        change, now = what(row), _state(snapshot, row, overlay)
        facts = {"undo_id": row.id, "op": row.op, "what": change, "by": row.by}
        result.edits.append(facts | {"time": row.time, "state": now})
        lines.append(f"- {row.id} ({now}): {change}, by {row.by}, {row.time[:19]}")
    result.text = "\n".join(lines)
    return result


def what(row: LogRow) -> str:
    names = [one_line(name, 60) for name in (row.forms or row.keys)]
    change = (" – " if row.kind == "relationship" else ", ").join(names[:3])
    if row.op == "merge":
        change = f"{', '.join(names[1:])} into {names[0]}"
    elif len(names) > 3:
        change += ", ..."
    fields = ", ".join(f"{name} = {one_line(str(value), 60)}" for name, value in row.fields.items())
    return f"{row.op} {change}" + (f": {fields}" if fields else "")


def _state(snapshot: Snapshot, row: LogRow, overlay: Overlay) -> str:
    if row.id in overlay.undone:
        return f"undone by {overlay.undone[row.id]}"
    if row.op == "remove" and not any(overlay.removed.get(uri) == row.id for uri in row.keys):
        return "over"
    if row.op in ("undo", "delete", "reject", "remove", "restore"):
        return "in force"
    names = [overlay.alias.get(key, key) for key in row.keys]
    ids = [entity_id(name) for name in names]
    if row.kind == "relationship":
        table, id = "relationships", relationship_id(*sorted(ids))
    elif names[0] != row.keys[0] and row.op != "merge":
        return f"dormant, a name of {one_line(overlay.forms.get(names[0], names[0]), 60)} now"
    else:
        table, id = "entities", ids[0]
    return "in force" if snapshot.by_key(table, [id], "id", ["id"]).num_rows else "dormant"


def about(snapshot: Snapshot, row: Row) -> str:
    """What an entity owes to edits, in a line; "" for most."""
    overlay = in_force(snapshot)
    edit = overlay.entities.get(row["key"])
    edits = []
    if edit is not None and not edit.deleted:
        action = "Made" if edit.created and not row["frequency"] else "Edited"
        fields = f" ({', '.join(sorted(edit.fields))})" if edit.fields else ""
        edits.append(f"{action} by {edit.by}{fields}, {edit.time[:10]}, {edit.rows[-1]}")
        if edit.created and not row["frequency"]:
            edits[-1] += "; no document names it"
    merged = [name for name in overlay.names.get(row["key"], ()) if overlay.aliased.get(name)]
    for name in merged[:5]:
        form = one_line(overlay.forms.get(name, name), 60)
        edits.append(f"{form} was made a name of it, {overlay.aliased[name]}")
    return f"{'; '.join(edits)}." if edits else ""


def hidden(snapshot: Snapshot, key: str) -> str:
    """Which edit hides this name; "" where none does."""
    overlay = in_force(snapshot)
    return overlay.entities[key].rows[-1] if overlay.hidden(key) else ""


COLUMNS = ["id", "n", "key", "title", "type", "degree", "frequency", "names"]
MOST = 30  # proposals in one answer
ASKED = 100  # entities of one call, as many as get_source takes; each takes 6 ms
NEAR = 60  # rows that a search for the words of one name looks at
BLOCK = 40  # names with the same key: more say nothing about each other
TYPO_LETTERS = 8  # from which one letter more or less is no other name
SHORT = re.compile(r"[a-z]{3,6}")  # an acronym as a key; of two letters too many names have them
# How sure each kind is. The text itself says so; initials that no other name has; the same letters.
SCORE = {"gloss": 0.95, "acronym": 0.9, "spelling": 0.85, "initials": 0.7, "typo": 0.5}
WHY = {
    "acronym": "its initials",
    "spelling": "the same letters",
    "initials": "the same but for initials or a title",
    "typo": "one letter differs",
}
_SMALL = frozenset("of the and for in on to de du des der die das la le van von".split())
_GLOSS = re.compile(r"[(（]\s*[\"“”'‘’「『《]?\s*([^()（）\n]{1,80}?)\s*[\"“”'‘’」』》]?\s*[)）]")
_ALSO = re.compile(
    r"^(?:also|formerly|now|alias|aka|a\.k\.a\.|known as|called|born|née|short|原名|又名|又称|也称|简称|即)[\s:：]*"
    r"(?:known as|called|as)?\s*",
    re.IGNORECASE,
)
_QUOTES = " \t\"“”'‘’「」『』《》"
_BEHIND = re.compile(r"[\s,;:.!?、，。；：“\"「『《]+")  # where a name may begin


@dataclass(frozen=True)
class Proposal:
    """Two names that may mean the same entity. `one` is mentioned more often than `other`;
    accepting the proposal makes `other` a name of `one`."""

    one: Row
    other: Row
    kind: str
    why: str


def proposals(snapshot: Snapshot, names: Sequence[str] = ()) -> EditResult:
    """Names that may mean one entity, as results of edit_graph; of these entities, or of all."""
    found: list[Proposal] = []
    for name in names[:ASKED]:
        row, _ = resolve(snapshot, name.strip().strip("[]` "))
        found += of_entity(snapshot, row) if row is not None else []
    if not names:
        rows = snapshot.rows("entities", columns=COLUMNS).to_pylist()
        of_name = {name: row for row in rows for name in row["names"]}
        every = list(_alike(rows))
        for batch in snapshot.batches("text_units", ["text"]):
            every += _glossed(values_of(batch["text"]), of_name.get)
        found = _ranked(every, in_force(snapshot))
    shown = found[:MOST]
    result = EditResult(op="proposals")
    for proposal in shown:
        both = (proposal.one, proposal.other)
        facts = {"ids": [f"e{row['n']}" for row in both], "names": [_short(row) for row in both]}
        why = {"kind": proposal.kind, "why": proposal.why, "score": SCORE[proposal.kind]}
        result.proposals.append(facts | why)
    head = "No two names look like one entity."
    if shown:
        head = f"Names that may mean one entity: {counted(len(found), 'pairs')}."
        ids = '", "'.join(result.proposals[0]["ids"])
        result.hint = 'To accept a pair, merge its ids with dry_run=false; to refuse it for good, op="reject".'
        result.next_call = f'edit_graph(op="merge", ids=["{ids}"])'
    if len(names) > ASKED:
        head += f" {len(names)} ids were given; the first {ASKED} were looked up."
    result.text = "\n".join([head, *map(line, shown)])
    return result


def line(proposal: Proposal) -> str:
    return f"- {_short(proposal.one)} (e{proposal.one['n']}) and {_short(proposal.other)} (e{proposal.other['n']}): {proposal.why}"


def _short(row: Row) -> str:
    return one_line(row["title"], 80)


def of_entity(snapshot: Snapshot, row: Row) -> list[Proposal]:
    """Other names that an entity may have: names that share a word or the initials with it, and
    names that its sentences give beside it."""
    overlay = in_force(snapshot)
    words = sorted({*terms(row["title"]), _initials_of(_words(row["key"]))} - {""})[:16]
    near = snapshot.full_text("entities", words, NEAR, COLUMNS).to_pylist()
    found = list(_alike({candidate["id"]: candidate for candidate in [*near, row]}.values()))

    def entity(key: str) -> Row | None:
        ids = [entity_id(name) for name in (key, overlay.alias.get(key, key))]
        return next(iter(snapshot.served("entities", ids)), None)

    found += _glossed([sentence["text"] for sentence in row.get("evidence", ())], entity)
    return _ranked(
        [proposal for proposal in found if row["id"] in (proposal.one["id"], proposal.other["id"])],
        overlay,
    )


def _ranked(found: Iterable[Proposal], overlay: Overlay) -> list[Proposal]:
    """Each pair once, by its best reason, if not refused; the surest and most named first."""
    best: dict[tuple[str, ...], Proposal] = {}
    for proposal in found:
        pair = tuple(sorted((proposal.one["key"], proposal.other["key"])))
        known = best.get(pair)
        if pair not in overlay.rejected and (
            known is None or SCORE[proposal.kind] > SCORE[known.kind]
        ):
            best[pair] = proposal

    def place(proposal: Proposal) -> tuple[float, int, str, str]:
        return (
            -SCORE[proposal.kind],
            -proposal.other["frequency"],
            proposal.one["key"],
            proposal.other["key"],
        )

    return sorted(best.values(), key=place)


def _proposal(a: Row, b: Row, kind: str, why: str) -> Proposal:
    """The more frequent name stays: of an acronym or initials always the full name."""
    kept, other = sorted((a, b), key=lambda row: (-row["frequency"], row["n"]))
    if kind in ("acronym", "initials"):
        kept, other = sorted((a, b), key=lambda row: -len(row["key"]))
    return Proposal(kept, other, kind, why)


def _alike(rows: Iterable[Row]) -> Iterator[Proposal]:
    """Pairs of names that share a key of some kind and fit each other."""
    blocks: dict[tuple[str, str], dict[str, Row]] = defaultdict(dict)
    for row in rows:
        for key in _keys(row["key"]):
            blocks[key][row["id"]] = row
    for (kind, _), block in blocks.items():
        # initials of several names are those of none
        if 1 < len(block) <= (2 if kind == "acronym" else BLOCK):
            for a, b in combinations(block.values(), 2):
                if _fits(kind, a, b):
                    yield _proposal(a, b, kind, WHY[kind])


def _words(key: str) -> list[str]:
    return re.findall(r"\w+", key)


def _initials_of(words: Sequence[str]) -> str:
    letters = "".join(word[0] for word in words if word not in _SMALL)
    return letters if len(words) > 1 and SHORT.fullmatch(letters) else ""


def _keys(key: str) -> Iterator[tuple[str, str]]:
    """(kind, what names of this kind have in common)."""
    words = _words(key)
    letters = "".join(words)
    if len(letters) > 3:
        yield "spelling", letters
    if short := key if SHORT.fullmatch(key) else _initials_of(words):
        yield "acronym", short
    if len(words) > 1:
        yield "spelling", " ".join(sorted(words))
        if len(words[-1]) > 2:
            yield "initials", words[-1]
    if len(key) >= TYPO_LETTERS and not re.search(r"\d", key) and not any(map(is_cjk, key)):
        yield from (("typo", key[:at] + key[at + 1 :]) for at in range(len(key)))
        yield "typo", key


def _fits(kind: str, a: Row, b: Row) -> bool:
    if kind == "spelling":
        return True
    if kind == "acronym":
        short, long = sorted((a, b), key=lambda row: len(row["key"]))
        return " " in long["key"] and short["title"].replace(".", "").isupper()
    if _other_kinds(a, b):
        return False
    return _same_person(a["key"], b["key"]) if kind == "initials" else _typo(a["key"], b["key"])


def _same_person(name: str, other: str) -> bool:
    """J. Smith, Dr. John Smith and John A. Smith are John Smith."""
    named = [[word for word in _words(key) if word not in lexicon.TITLES] for key in (name, other)]
    short, long = sorted(named, key=len)
    middle = long[len(short) - 1 : -1]
    given_names = zip(short[:-1], long[:-1], strict=False)
    return (
        len(short) > 1
        and short[-1] == long[-1]
        and all(a == b or (a[0] == b[0] and 1 in (len(a), len(b))) for a, b in given_names)
        and all(len(word) == 1 for word in middle)
    )


def _typo(name: str, other: str) -> bool:
    """One letter more, less or other, inside of a word of more than four, not the first."""
    from rapidfuzz.distance import OSA

    pairs = zip(name.split(), other.split(), strict=False)
    x, y = next(((x, y) for x, y in pairs if x != y), ("", ""))
    return OSA.distance(name, other) == 1 and min(len(x), len(y)) > 4 and x[0] == y[0]


def _other_kinds(a: Row, b: Row) -> bool:
    vague = ("other", "unknown", "")
    return a["type"] != b["type"] and a["type"] not in vague and b["type"] not in vague


def _glossed(texts: Iterable[str], entity: Callable[[str], Row | None]) -> Iterator[Proposal]:
    """“丝带”（the Ribbon）: behind a name in brackets another that has an entity of its own."""
    for text in texts:
        for match in _GLOSS.finditer(text):
            also = _ALSO.match(match[1])
            inner = entity(normalise_name(match[1][also.end() :] if also else match[1]))
            outer = _before(text[max(0, match.start() - 60) : match.start()], entity)
            if inner is None or outer is None or outer["id"] == inner["id"]:
                continue
            if also or _explains(outer, inner):
                quote = one_line(text[max(0, match.start() - 40) : match.end()], 90)
                yield _proposal(outer, inner, "gloss", f"the text says {quote!r}")


def _explains(outer: Row, inner: Row) -> bool:
    """Another script, or a short form: else a bracket holds as often who someone works for."""
    if _other_kinds(outer, inner):
        return False
    if any(map(is_cjk, outer["title"])) != any(map(is_cjk, inner["title"])):
        return True
    short, long = sorted((outer, inner), key=lambda row: len(row["key"]))
    capitals = re.fullmatch(r"[A-Z][A-Z.&]{1,6}", short["title"])
    return capitals is not None and short["key"][0] == long["key"][0]


def _before(text: str, entity: Callable[[str], Row | None]) -> Row | None:
    """The longest name with an entity that the text ends with."""
    text = text.rstrip(_QUOTES)
    starts = {0, *(match.end() for match in _BEHIND.finditer(text))}
    if text and is_cjk(text[-1]):
        starts |= {*range(max(0, len(text) - 12), len(text) - 1)}
    keys = (normalise_name(text[start:].strip(_QUOTES)) for start in sorted(starts))
    return next((row for key in keys if key and (row := entity(key)) is not None), None)
