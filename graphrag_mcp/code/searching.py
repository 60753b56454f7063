"""What source code adds to searches (`query/plugin.py`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphrag_mcp.code import definitions, features, uses
from graphrag_mcp.packing.budget import Section
from graphrag_mcp.query.plugin import PluggedFeature, Row, SearchingPlugin, Walk
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.types import ExploreResult


class SourceCode(SearchingPlugin):
    """What searches ask the plug-in for source code."""

    @property
    def features(self) -> Sequence[PluggedFeature]:
        return features.FEATURES

    @property
    def kinds(self) -> Sequence[str]:
        return [*uses.KINDS]

    def defines(self, text: str, names: Sequence[str]) -> bool:
        return features.defines_one(text, names)

    def named(self, snapshot: Snapshot, asked: str) -> list[Row]:
        return definitions.named(snapshot, asked)

    def narrowed(self, found: list[Row], asked: str) -> list[Row]:
        return definitions.narrowed(found, asked)

    def is_definition(self, row: Mapping[str, Any]) -> bool:
        return definitions.is_symbol(row)

    def text(self, snapshot: Snapshot, row: Row) -> list[Row]:
        return definitions.text(snapshot, row)

    def sections(self, snapshot: Snapshot, row: Row, groups: Sequence[Row], most: int) -> list[Section]:
        return uses.sections(snapshot, row, groups, most)

    def walk(self, snapshot: Snapshot, result: ExploreResult, asked: Walk, budget: int) -> ExploreResult | None:
        return uses.explore(snapshot, result, asked, budget)


PLUGIN = SourceCode()
