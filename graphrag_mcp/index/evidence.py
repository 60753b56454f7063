"""Evidence of a community as sentences worth quoting.

Takes rows of entities and relationships, and what the children's reports say; gives candidate sentences, each once,
with what it speaks of and where it stands. Knows how good a sentence is to read, not which ones a report takes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain

from graphrag_mcp.text import is_cjk, sentences

Evidence = tuple[str, str]  # id of the text unit, sentence


@dataclass(slots=True)
class EntityRow:
    """What a report reads of a row of `entities`."""

    id: str
    title: str
    text_unit_ids: Sequence[str] = ()
    evidence: Sequence[Evidence] = ()


@dataclass(slots=True)
class EdgeRow:
    """What a report reads of a row of `relationships`."""

    id: str
    source_id: str
    target_id: str
    weight: float = 1.0
    text_unit_ids: Sequence[str] = ()
    evidence: Sequence[Evidence] = ()


@dataclass(slots=True, eq=False)
class Candidate:
    """One sentence and what of the community it speaks of: ordered sets of ids."""

    text: str
    worth: float = 1.0
    entities: dict[str, None] = field(default_factory=dict)
    edges: dict[str, None] = field(default_factory=dict)
    units: dict[str, None] = field(default_factory=dict)
    gain: float = 0.0  # its worth times the share of what it speaks of
    cited: str = ""  # the text with its references, once it has been written


def add_rows(found: dict[str, Candidate], entities: Iterable[EntityRow], links: Iterable[EdgeRow], limit: int) -> None:
    """Add the evidence sentences of relationships and entities; `limit` is the most characters of a sentence."""
    for edge in links:
        for unit, said in edge.evidence:
            text, worth = readable(said, limit)
            candidate = found.get(text)
            if candidate is None:
                candidate = found[text] = Candidate(text, worth)
            candidate.edges[edge.id] = candidate.units[unit] = None
            candidate.entities[edge.source_id] = candidate.entities[edge.target_id] = None
    for row in entities:
        for unit, said in row.evidence:
            text, worth = readable(said, limit)
            candidate = found.get(text)
            if candidate is None:
                candidate = found[text] = Candidate(text, worth)
            candidate.entities[row.id] = candidate.units[unit] = None


def add_quotes(found: dict[str, Candidate], quotes: Iterable[Candidate], limit: int) -> None:
    """Add what reports quote, each sentence of `limit` characters."""
    for quote in quotes:
        text, worth = readable(quote.text, limit)
        candidate = found.get(text)
        if candidate is None:
            candidate = found[text] = Candidate(text, worth)
        candidate.entities.update(quote.entities)
        candidate.edges.update(quote.edges)
        candidate.units.update(quote.units)


def in_turn(columns: Iterable[Iterable[Candidate]], most: int) -> list[Candidate]:
    """The first of each, then the second of each; `most` at most, and nothing is read beyond."""
    left = [iter(column) for column in columns]
    found: list[Candidate] = []
    while left:
        still = []
        for column in left:
            quote = next(column, None)
            if quote is not None:
                found.append(quote)
                still.append(column)
            if len(found) == most:
                return found
        left = still
    return found


_REFERENCE = re.compile(r" ?\[Data: ([^\[\]\n]{1,4000})\]")
_GROUP = re.compile(r"(Entities|Relationships|Sources) \(([^()\n]{0,4000})\)")
_HEX = re.compile(r"\b[0-9a-f]{32}\b")


def read_quotes(summary: str, findings: str) -> Iterator[Candidate]:
    """The cited sentences of a report written by us or by a model; what is not cited is left out."""
    seen: set[str] = set()
    for text in chain((summary,), _explanations(findings)):
        parts = _REFERENCE.split(text)
        for sentence, reference in zip(parts[::2], parts[1::2], strict=False):
            text = sentence.strip()
            if text not in seen:
                seen.add(text)
                groups = {match[1]: _HEX.findall(match[2]) for match in _GROUP.finditer(reference)}
                kinds = (dict.fromkeys(groups.get(name, ())) for name in ("Entities", "Relationships", "Sources"))
                yield Candidate(text, 1.0, *kinds)


def _explanations(findings: str) -> Iterator[str]:
    for one in json.loads(findings or "[]"):
        yield str(one.get("explanation", ""))


# ---- how a sentence reads -----------------------------------------------------------------------

_ENDED = re.compile(r"[.!?。！？…][\"'”’»)）」』\]]*$")
_DANGLING = re.compile(
    r"(?:he|she|it|they|we|this|these|those|that|his|her|its|their|however|also|but|and|then|there)\b"
    r"|[他她它这那其该此]|但|因此|然而|同时|并且",
    re.IGNORECASE,
)
_DEFINES = re.compile(r"[^.。]{0,40}?(?:\b(?:is|was|are|were)\b|是|为|,? \(|（)")


_MARK = re.compile(r"(?:(?:#{1,6}|>|[-*•|]) )+")  # of a heading, quote or list; not the ** of bold words


@lru_cache(maxsize=65536)
def readable(text: str, limit: int) -> tuple[str, float]:
    """The sentence on one line and at most `limit` characters, and its worth as something to quote.

    Worth most: complete, 40-300 characters (half of that in CJK), not leaning on a sentence before it.
    """
    flat = " ".join(text.split())
    flat = flat[mark.end() if (mark := _MARK.match(flat)) else 0 :]
    flat = flat.replace("[Data:", "(Data:")  # only we write references
    if len(flat) > limit:
        flat = _shortened(flat, limit)
    length = len(flat) * (2 if mostly_cjk(flat) else 1)
    worth = 1.0 if 40 <= length <= 300 else 0.5 if length < 40 else 0.7
    if not _ENDED.search(flat, max(0, len(flat) - 8)) or flat[:1].islower():
        worth *= 0.6
    if _DANGLING.match(flat):
        worth *= 0.6
    if flat.count("(") != flat.count(")") or flat.count("（") != flat.count("）") or flat.count('"') % 2:
        worth *= 0.6  # cut out of something
    return flat, worth


def introduction(text: str, names: Iterable[str]) -> float:
    """Does the sentence begin with one of the names, and does it say what that is?"""
    best = 1.0
    for name in names:
        at = text.find(name, 0, len(name) + 5)
        if name and at >= 0:
            if _DEFINES.match(text, at + len(name)):
                return 1.6
            best = 1.2
    return best


def _shortened(text: str, limit: int) -> str:
    """The first sentence of several that is long enough to say something; of a single long one its beginning."""
    pieces = [text[start:end].strip() for start, end in sentences(text)]
    piece = next((one for one in pieces if len(one) >= 40), text)
    if len(piece) <= limit:
        return piece
    cut = piece[: limit - 1]
    space = cut.rfind(" ")
    return (cut[:space] if space > limit // 2 else cut).rstrip(" ,;，；、") + "…"


def alike(one: str, other: str) -> bool:
    """Do the two sentences say nearly the same: four fifths of the shorter one's words in the other?"""
    a, b = _words(one), _words(other)
    return len(a & b) >= 0.8 * max(1, min(len(a), len(b)))


@lru_cache(maxsize=8192)
def _words(text: str) -> frozenset[str]:
    flat = text.casefold()
    return frozenset(flat[i : i + 2] for i in range(len(flat))) if mostly_cjk(flat) else frozenset(flat.split())


def mostly_cjk(text: str) -> bool:
    """Is at least half of the text's first letters CJK?"""
    head = text[:80]
    if not head or max(head) < "\u1100":  # no CJK below
        return False
    letters = [ch for ch in head if ch.isalpha()]
    return sum(map(is_cjk, letters)) * 2 > len(letters)
