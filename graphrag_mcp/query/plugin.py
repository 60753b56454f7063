"""What a plug-in (`plugins.py`) adds to searches: features of the ranking, definitions that names mean,
their text, sections of an entity's result, and walks over statements of its kinds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from graphrag_mcp.packing.budget import Section
from graphrag_mcp.plugins import plugged
from graphrag_mcp.query.features import Feature
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.types import ExploreResult

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PluggedFeature:
    """A feature of the second round with its weight."""

    feature: Feature
    weight: float


@dataclass(frozen=True, slots=True)
class Walk:
    """A question about statements of certain kinds. `start`: a name, an id, or several with commas;
    `kinds`: those of the plug-in; `direction`: "in" what uses `start`, "out" what it uses, "" as usual
    for the kinds; at most `hops` steps and `nodes` ends of a start."""

    start: str
    kinds: Sequence[str]
    direction: str
    hops: int
    nodes: int


class SearchingPlugin(Protocol):
    """What a plug-in knows of an index."""

    @property
    def features(self) -> Sequence[PluggedFeature]: ...

    @property
    def kinds(self) -> Sequence[str]:
        """What a walk may follow, in small letters."""
        ...

    def defines(self, text: str, names: Sequence[str]) -> bool:
        """Does a text define one of these names? Exact searches show such passages first."""
        ...

    def named(self, snapshot: Snapshot, asked: str) -> list[Row]:
        """The entities that a name means and that documents of its kind define, best first."""
        ...

    def narrowed(self, found: list[Row], asked: str) -> list[Row]:
        """Of these the one that has exactly this name, if one has."""
        ...

    def is_definition(self, row: Mapping[str, Any]) -> bool:
        """Is the entity one that a document of its kind defines?"""
        ...

    def text(self, snapshot: Snapshot, row: Row) -> list[Row]:
        """The text of such an entity, as rows of `passages`, which may have an `alias` of their own and
        the `last` position that they reach; [] where no document defines it."""
        ...

    def sections(self, snapshot: Snapshot, row: Row, groups: Sequence[Row], most: int) -> list[Section]:
        """What the result of such an entity holds in the place of its relationships. `groups`: the
        reports of its communities, the coarsest first; `most`: lines of a section."""
        ...

    def walk(self, snapshot: Snapshot, result: ExploreResult, asked: Walk, budget: int) -> ExploreResult | None:
        """The result with what a walk reaches, in `budget` tokens; None where it starts from no entity
        of its kind."""
        ...


def plugins() -> Mapping[str, SearchingPlugin]:
    """By name."""
    return plugged("searching")


def plugin_of(row: Mapping[str, Any]) -> SearchingPlugin | None:
    """The plug-in whose documents define this entity."""
    return next((plugin for plugin in plugins().values() if plugin.is_definition(row)), None)


def defines(text: str, names: Sequence[str]) -> bool:
    return any(plugin.defines(text, names) for plugin in plugins().values())


def named(snapshot: Snapshot, asked: str) -> list[Row]:
    """The entities that documents define under this name."""
    return [row for plugin in plugins().values() for row in plugin.named(snapshot, asked)]


def meant(snapshot: Snapshot, asked: str) -> list[Row]:
    """The entities of this name; if one of them has exactly this name, that entity alone."""
    return [row for plugin in plugins().values() for row in plugin.narrowed(plugin.named(snapshot, asked), asked)]
