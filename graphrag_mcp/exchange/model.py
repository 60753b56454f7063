"""The content of another program's index in our terms. Ids and numbers are the other program's;
`notes` says what was missing or damaged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from graphrag_mcp.index.claims import Claim


@dataclass(slots=True)
class SourceDocument:
    """`uri` only where the other index is one of ours."""

    id: str
    title: str
    text: str
    uri: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    created: str = ""


@dataclass(slots=True)
class SourceUnit:
    """`start`, `end`: characters of the document where the other index says so; -1 where it does
    not."""

    id: str
    number: int
    text: str
    documents: list[str]
    start: int = -1
    end: int = -1


@dataclass(slots=True)
class SourceEntity:
    id: str
    number: int
    title: str
    type: str
    description: str
    units: list[str]
    key: str = ""  # only where the other index is one of ours
    aliases: list[str] = field(default_factory=list)


@dataclass(slots=True)
class SourceRelation:
    """`source` and `target` are titles."""

    id: str
    number: int
    source: str
    target: str
    description: str
    keywords: str
    weight: float
    units: list[str]


@dataclass(slots=True)
class SourceCommunity:
    """`parent` None: unknown, to be found by its members; -1: none."""

    number: int
    level: int
    parent: int | None
    entities: list[str]  # ids


@dataclass(slots=True)
class SourceReport:
    community: int
    title: str
    summary: str
    full_content: str
    rank: float | None
    rating_explanation: str
    findings: list[tuple[str, str]]
    method: str


@dataclass
class Foreign:
    """`program`: graphrag, lightrag or graphrag-mcp. `damaged`: files that cannot be read, or that
    must be there and are not, so that what is not here may not be gone."""

    program: str
    documents: list[SourceDocument] = field(default_factory=list)
    units: list[SourceUnit] = field(default_factory=list)
    entities: list[SourceEntity] = field(default_factory=list)
    relations: list[SourceRelation] = field(default_factory=list)
    # by text unit, as the other index says them
    claims: list[tuple[str, Claim]] = field(default_factory=list)
    communities: list[SourceCommunity] = field(default_factory=list)
    reports: list[SourceReport] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)

    def note(self, count: int, what: str) -> None:
        """`what` with its number, where there is any."""
        if count:
            self.notes.append(f"{count:,} {what}")
