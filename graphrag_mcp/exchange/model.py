"""The content of another program's index in our terms. Ids and numbers are the other program's;
`notes` says what was missing or damaged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from graphrag_mcp.exchange.files import Unreadable
from graphrag_mcp.index.claims import Claim

T = TypeVar("T")


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
    """`program`: graphrag, lightrag or graphrag-mcp. `faults`: (file, what is wrong) of files that
    are missing or cannot be read. `damaged`: those of them that must be there, so that what is not
    here may not be gone."""

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
    faults: list[tuple[str, str]] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)

    def opened(
        self, name: str, read: Callable[[], T | None], expected: bool = True, needed: bool = True
    ) -> T | None:
        """What `read` gives; None where the file cannot be read or is missing. Both are noted, the
        latter where the file is `expected`."""
        try:
            found, what = read(), "is missing"
        except Unreadable as error:
            found, expected, needed, what = None, True, True, f"cannot be read ({error})"
        if found is None and expected:
            self.notes.append(f"{name} {what}")
            self.faults.append((name, what))
            if needed:
                self.damaged.append(name)
        return found

    def note(self, count: int, what: str) -> None:
        """`what` with its number, where there is any."""
        if count:
            self.notes.append(f"{count:,} {what}")
