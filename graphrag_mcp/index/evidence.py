"""Evidence of a community as sentences worth quoting.

Takes rows of entities and relationships, or what the children's reports say; gives candidate sentences, each once,
with what it speaks of and where it stands. Knows how good a sentence is to read, not which ones a report takes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from graphrag_mcp.text import count_tokens, is_cjk, sentences
from graphrag_mcp.types import content_id

Evidence = Mapping[str, Any]  # text_unit_id, start, end, text


@dataclass(frozen=True)
class EntityRow:
    """A row of `entities`. Degree and type are carried for model-written reports; nothing here reads them."""

    id: str
    title: str
    type: str = ""
    description: str = ""
    degree: int = 0
    frequency: int = 0
    text_unit_ids: Sequence[str] = ()
    evidence: Sequence[Evidence] = ()

    @cached_property
    def digest(self) -> str:
        return content_id("e", self.id, self.title, self.type, self.description, *_evidence_digest(self))


@dataclass(frozen=True)
class EdgeRow:
    """A row of `relationships`."""

    id: str
    source_id: str
    target_id: str
    weight: float = 1.0
    description: str = ""
    text_unit_ids: Sequence[str] = ()
    evidence: Sequence[Evidence] = ()

    @cached_property
    def digest(self) -> str:
        return content_id("r", self.id, repr(float(self.weight)), self.description, *_evidence_digest(self))


@dataclass
class Candidate:
    """One sentence and what of the community it speaks of: ordered sets of ids."""

    text: str
    worth: float = 1.0
    entities: dict[str, None] = field(default_factory=dict)
    edges: dict[str, None] = field(default_factory=dict)
    units: dict[str, None] = field(default_factory=dict)


def from_rows(
    rows: Mapping[str, EntityRow], links: Sequence[EdgeRow], order: Sequence[str], budget: int, limit: int
) -> list[Candidate] | None:
    """The distinct evidence sentences of relationships and entities; None when they pass `budget` tokens.

    `order` is the entities by weight, `limit` the most characters of a sentence; `budget` 0 takes everything.
    """
    found: dict[str, Candidate] = {}
    tokens = 0

    def add(evidence: Evidence, names: tuple[str, ...]) -> Candidate:
        nonlocal tokens
        text, worth, cost = readable(evidence["text"], limit)
        candidate = found.get(text)
        if candidate is None:
            candidate = found[text] = Candidate(text, 0.0)
            tokens += cost
        candidate.worth = max(candidate.worth, worth * _introduction(text, names))
        candidate.units[evidence["text_unit_id"]] = None
        return candidate

    for edge in links:
        names = (rows[edge.source_id].title, rows[edge.target_id].title)
        for evidence in edge.evidence:
            candidate = add(evidence, names)
            candidate.edges[edge.id] = None
            candidate.entities[edge.source_id] = candidate.entities[edge.target_id] = None
        if budget and tokens > budget:
            return None
    for one in order:
        for evidence in rows[one].evidence:
            add(evidence, (rows[one].title,)).entities[one] = None
        if budget and tokens > budget:
            return None
    found.pop("", None)
    return list(found.values())


def from_reports(
    said: Sequence[tuple[str, str]], entities: Iterable[str], edges: Iterable[str], most: int, limit: int
) -> list[Candidate]:
    """The cited sentences of reports, given as (summary, findings), in turn: the first of each, then the second.

    Only references to `entities` and `edges` are kept; at most `most` sentences of `limit` characters.
    """
    known = {"Entities": set(entities), "Relationships": set(edges)}
    columns = [_cited_sentences(summary, findings) for summary, findings in said]
    found: dict[str, Candidate] = {}
    for place in range(max(map(len, columns), default=0)):
        for column in columns:
            if place >= len(column) or len(found) >= most:
                continue
            text, groups = column[place]
            clean, worth, _ = readable(text, limit)
            candidate = found.setdefault(clean, Candidate(clean, worth))
            candidate.entities.update((i, None) for i in groups.get("Entities", ()) if i in known["Entities"])
            candidate.edges.update((i, None) for i in groups.get("Relationships", ()) if i in known["Relationships"])
            candidate.units.update((i, None) for i in groups.get("Sources", ()))
    found.pop("", None)
    return list(found.values())


_REFERENCE = re.compile(r" ?\[Data: ([^\[\]\n]{1,4000})\]")
_GROUP = re.compile(r"(Entities|Relationships|Sources) \(([^()\n]{0,4000})\)")
_HEX = re.compile(r"\b[0-9a-f]{32}\b")


def _cited_sentences(summary: str, findings: str) -> list[tuple[str, dict[str, list[str]]]]:
    """Sentence and references, of a report written by us or by a model; what is not cited is left out."""
    found: dict[str, dict[str, list[str]]] = {}
    for text in (summary, *(str(one.get("explanation", "")) for one in json.loads(findings or "[]"))):
        parts = _REFERENCE.split(text)
        for sentence, reference in zip(parts[::2], parts[1::2], strict=False):
            groups = {match[1]: _HEX.findall(match[2]) for match in _GROUP.finditer(reference)}
            found.setdefault(sentence.strip(), groups)
    return list(found.items())


# ---- how a sentence reads -----------------------------------------------------------------------

_ENDED = re.compile(r"[.!?。！？…][\"'”’»)）」』\]]*$")
_DANGLING = re.compile(
    r"(?:he|she|it|they|we|this|these|those|that|his|her|its|their|however|also|but|and|then|there)\b"
    r"|[他她它这那其该此]|但|因此|然而|同时|并且",
    re.IGNORECASE,
)
_DEFINES = re.compile(r"[^.。]{0,40}?(?:\b(?:is|was|are|were)\b|是|为|,? \(|（)")


@lru_cache(maxsize=65536)
def readable(text: str, limit: int) -> tuple[str, float, int]:
    """The sentence on one line and at most `limit` characters, its worth as something to quote, and its tokens.

    Worth most: complete, 40-300 characters (half of that in CJK), not leaning on a sentence before it.
    """
    flat = " ".join(text.split()).lstrip("#>*-|• ").replace("[Data:", "(Data:")  # only we write references
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
    return flat, worth, count_tokens(flat)


def _introduction(text: str, names: tuple[str, ...]) -> float:
    """Does the sentence begin with one of the names, and does it say what that is?"""
    for name in names:
        at = text.find(name, 0, len(name) + 5)
        if name and at >= 0:
            return 1.6 if _DEFINES.match(text, at + len(name)) else 1.2
    return 1.0


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
    if head.isascii():
        return False
    letters = [ch for ch in head if ch.isalpha()]
    return sum(map(is_cjk, letters)) * 2 > len(letters)


def _evidence_digest(row: EntityRow | EdgeRow) -> list[str]:
    said = sorted(f"{one['text_unit_id']}\x1e{one['text']}" for one in row.evidence)
    return ["units", *sorted(row.text_unit_ids), "evidence", *said]
