"""What source code does in an indexing run (`index/plugin.py`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from graphrag_mcp.code import links, report
from graphrag_mcp.code.folders import by_folder
from graphrag_mcp.index.communities import ClusterParams, Leaf
from graphrag_mcp.index.extract import UnitNames
from graphrag_mcp.index.plugin import IndexingPlugin, Linked, Row
from graphrag_mcp.index.report_content import Topic
from graphrag_mcp.index.report_extractive import Report
from graphrag_mcp.store.tables import Snapshot


class SourceCode(IndexingPlugin):
    """What indexing asks the plug-in for source code."""

    def link(
        self, rows: Sequence[Row], before: Sequence[Row] | None, snapshot: Snapshot | None, fresh: dict[str, UnitNames]
    ) -> Linked:
        found = links.link(rows, before)
        return Linked(found.rows, links.apply(snapshot, fresh, found))

    def groups(self, units: Mapping[str, str], params: ClusterParams) -> Iterator[Leaf]:
        return by_folder(units, params)

    def report(self, topic: Topic, children: Sequence[Report]) -> Report:
        return report.compose(topic, children)


PLUGIN = SourceCode()
