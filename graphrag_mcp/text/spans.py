"""Spans of a text: text units, passages, names. Offsets count characters, end exclusive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start:end` of a document; lines are 1-based and inclusive."""

    start: int
    end: int
    line_start: int = 0
    line_end: int = 0


@dataclass(frozen=True, slots=True)
class Unit:
    """A text unit of a document and the passages that tile it; tokens of `text.count_tokens`."""

    index: int
    span: Span
    n_tokens: int
    passages: tuple[Span, ...]


# What may be a name, as a finder of `names/` gives it: start, end, type, and whether it is certain.
Candidate = tuple[int, int, str, bool]


class Mention(NamedTuple):
    """One name found in a text. `key` is `text.normalise_name(form)`; offsets are into that text."""

    key: str
    form: str
    type: str  # person, organization, location, event, concept, ... or "other"
    strong: bool  # True: a name worth an entity at its first mention; False: needs two text units
    start: int
    end: int
    # key of the expansion when the text itself defines an acronym: "WHO" in "World ... (WHO)"
    alias_of: str = ""
