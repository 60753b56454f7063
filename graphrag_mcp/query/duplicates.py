"""Pairs of names that may mean one entity. They are proposed on request and never merged alone; what is
accepted is an edit, and what is refused stands in the edit log.

Each `Likeness` is one way in which two names may be alike. Names that share a key of it are compared; names in
two scripts are alike where a text gives one in brackets behind the other."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from graphrag_mcp.names import lexicon
from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.query.entities import resolve
from graphrag_mcp.store.edit_log import in_force
from graphrag_mcp.store.tables import Snapshot, once, values_of
from graphrag_mcp.text.terms import counted, holds_cjk, is_cjk, normalise_name
from graphrag_mcp.types import EditResult

COLUMNS = ["id", "n", "key", "title", "type", "frequency", "names"]
MOST = 30  # proposals in one answer
ASKED = 100  # entities of one call, as many as get_source takes
COMPARED = 40  # names with one key: more say nothing about each other
TYPO_LETTERS = 8  # of a name from which one letter more or less makes no other name
NAME_CHARACTERS = 60  # of a name in front of a bracket
UNTYPED = ("other", "unknown", "")
_BRACKETS = re.compile(r"[(（]([^()（）\n]{1,80})[)）]")
_QUOTES = " \t\"“”'‘’「」『』《》"

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Proposal:
    """Two names that may mean the same entity; if it is accepted, `other` becomes a name of `kept`."""

    kept: Row
    other: Row
    kind: str
    score: float  # how sure it is
    why: str

    @property
    def pair(self) -> tuple[str, ...]:
        return tuple(sorted((self.kept["key"], self.other["key"])))

    def record(self) -> dict[str, Any]:
        """The proposal as `EditResult.proposals` holds it."""
        both = (self.kept, self.other)
        ids = [f"e{row['n']}" for row in both]
        names = [one_line(row["title"], 80) for row in both]
        return {"ids": ids, "names": names, "kind": self.kind, "why": self.why, "score": self.score}


def proposals(snapshot: Snapshot, names: Sequence[str] = ()) -> EditResult:
    """Names that may mean one entity, as results of edit_graph: pairs of these entities, or of all."""
    found = _all(snapshot)
    if names:
        rows = (resolve(snapshot, name.strip().strip("[]` "))[0] for name in names[:ASKED])
        asked = {row["id"] for row in rows if row is not None}
        found = [pair for pair in found if asked & {pair.kept["id"], pair.other["id"]}]
    records = [proposal.record() for proposal in found[:MOST]]
    result = EditResult(op="proposals", proposals=records)
    lines = ["No two names look like one entity."]
    if records:
        lines = [f"Names that may mean one entity: {counted(len(found), 'pairs')}."]
        ids = '", "'.join(records[0]["ids"])
        result.hint = 'To accept a pair, merge its ids with dry_run=false; to refuse it for good, op="reject".'
        result.next_call = f'edit_graph(op="merge", ids=["{ids}"])'
    if len(names) > ASKED:
        lines[0] += f" {len(names)} ids were given; the first {ASKED} were looked up."
    for record in records:
        pairs = zip(record["names"], record["ids"], strict=True)
        lines.append(f"- {' and '.join(f'{name} ({id})' for name, id in pairs)}: {record['why']}")
    result.text = "\n".join(lines)
    return result


@once
def _all(snapshot: Snapshot) -> list[Proposal]:
    """The pairs of a generation that were not refused, each by its best reason; the surest and most named first."""
    rows = snapshot.rows("entities", columns=COLUMNS).to_pylist()
    found = [*_glosses(snapshot, rows), *(pair for way in LIKENESSES for pair in way.pairs(rows))]
    best: dict[tuple[str, ...], Proposal] = {}
    for proposal in sorted(found, key=lambda proposal: -proposal.score):
        best.setdefault(proposal.pair, proposal)
    for pair in in_force(snapshot).rejected:
        best.pop(pair, None)
    return sorted(best.values(), key=lambda each: (-each.score, -each.other["frequency"], each.pair))


def _of_other_types(one: Row, other: Row) -> bool:
    kinds = {one["type"], other["type"]}
    return len(kinds) > 1 and kinds.isdisjoint(UNTYPED)


def _by_length(row: Row) -> tuple[int, str]:
    return len(row["key"]), row["key"]


def _by_frequency(row: Row) -> tuple[int, int]:
    return row["frequency"], -row["n"]


# ---- how names may be alike ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Likeness:
    """One way in which two names may be those of one entity. Names are compared if they share one of
    `keys` and no more than `most` names do; `holds` is given the shorter one first."""

    kind: str
    score: float
    why: str
    keys: Callable[[str], Iterable[str]]
    holds: Callable[[Row, Row], bool]
    longer_stays: bool = False  # else the name that more texts have
    most: int = COMPARED

    def pairs(self, rows: Sequence[Row]) -> Iterator[Proposal]:
        """The pairs of these entities whose names are alike in this way."""
        rows_of_key: dict[str, dict[str, Row]] = defaultdict(dict)
        for row in rows:
            for key in self.keys(row["key"]):
                rows_of_key[key][row["id"]] = row
        stays = _by_length if self.longer_stays else _by_frequency
        for named in rows_of_key.values():
            for pair in combinations(named.values(), 2) if len(named) <= self.most else ():
                if self.holds(*sorted(pair, key=_by_length)):
                    other, kept = sorted(pair, key=stays)
                    yield Proposal(kept, other, self.kind, self.score, self.why)


def _words(key: str) -> list[str]:
    return re.findall(r"\w+", key)


def _spellings(key: str) -> set[str]:
    """The letters of a name (Tide-Mill, Tidemill), and its words in order (Smith John, John Smith)."""
    words = _words(key)
    found = {" ".join(sorted(words))} if len(words) > 1 else set[str]()
    return found | {letters for letters in ["".join(words)] if len(letters) > 3}


def _initials(key: str) -> set[str]:
    """The initials of a name of several words without those of grammar, or the name that may be initials: of three
    letters at least, since too many names have two."""
    words = [word for word in _words(key) if not lexicon.is_grammar(word)]
    letters = "".join(word[0] for word in words) if len(words) > 1 else key
    return {letters} if re.fullmatch(r"[a-z]{3,6}", letters) else set()


def _are_initials(short: Row, long: Row) -> bool:
    return " " in long["key"] and short["title"].replace(".", "").isupper()


def _family_name(key: str) -> set[str]:
    words = _words(key)
    return {words[-1]} if len(words) > 1 and len(words[-1]) > 2 else set()


def _one_person(one: Row, other: Row) -> bool:
    """J. Smith, Dr. John Smith and John A. Smith are John Smith."""
    short, long = sorted(
        ([word for word in _words(row["key"]) if word not in lexicon.TITLES] for row in (one, other)), key=len
    )
    if _of_other_types(one, other) or len(short) < 2 or short[-1] != long[-1]:
        return False
    given_names = zip(short[:-1], long[:-1], strict=False)
    same = all(a == b or (a[0] == b[0] and 1 in (len(a), len(b))) for a, b in given_names)
    return same and all(len(word) == 1 for word in long[len(short) - 1 : -1])


def _without_a_letter(key: str) -> set[str]:
    """A name, and all that is left of it without one of its letters: names that differ by one share one."""
    if len(key) < TYPO_LETTERS or any(map(str.isdigit, key)) or holds_cjk(key):
        return set()
    return {key, *(key[:at] + key[at + 1 :] for at in range(len(key)))}


def _one_letter_differs(one: Row, other: Row) -> bool:
    """One letter more, less or other, inside of a word of more than four, not the first."""
    from rapidfuzz.distance import OSA

    pairs = zip(one["key"].split(), other["key"].split(), strict=False)
    word, changed = next((pair for pair in pairs if pair[0] != pair[1]), ("", ""))
    inside = min(len(word), len(changed)) > 4 and word[0] == changed[0]
    differs = inside and OSA.distance(one["key"], other["key"]) == 1
    return differs and not _of_other_types(one, other)


SAME_PERSON = "the same but for initials or a title"
LIKENESSES = (
    Likeness("acronym", 0.9, "its initials", _initials, _are_initials, longer_stays=True, most=2),
    Likeness("spelling", 0.85, "the same letters", _spellings, lambda one, other: True),
    Likeness("initials", 0.7, SAME_PERSON, _family_name, _one_person, longer_stays=True),
    Likeness("typo", 0.5, "one letter differs", _without_a_letter, _one_letter_differs),
)
GLOSS = 0.95  # how sure a name in brackets is: the text itself says it


def _glosses(snapshot: Snapshot, rows: Sequence[Row]) -> Iterator[Proposal]:
    """“丝带”（the Ribbon）: a name in brackets behind a name in another script."""
    of_name = {name: row for row in rows for name in row["names"]}
    for batch in snapshot.batches("text_units", ["text"]):
        for text in values_of(batch["text"]):
            for match in _BRACKETS.finditer(text):
                inner = of_name.get(normalise_name(match[1].strip(_QUOTES)))
                before = text[max(0, match.start() - NAME_CHARACTERS) : match.start()]
                outer = _name_at_end(before, of_name) if inner is not None else None
                if inner is None or outer is None or _of_other_types(inner, outer):
                    continue
                if holds_cjk(inner["title"]) != holds_cjk(outer["title"]):
                    other, kept = sorted((inner, outer), key=_by_frequency)
                    quote = one_line(f"{before[-40:]}{match[0]}", 90)
                    yield Proposal(kept, other, "gloss", GLOSS, f"the text says {quote!r}")


def _name_at_end(text: str, of_name: Mapping[str, Row]) -> Row | None:
    """The longest name of an entity that the text ends with."""
    text = text.rstrip(_QUOTES)
    for at in range(len(text)):
        if is_cjk(text[at]) or not (at and text[at - 1].isalnum()):
            if (row := of_name.get(normalise_name(text[at:].strip(_QUOTES)))) is not None:
                return row
    return None
