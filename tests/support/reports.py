"""Reports without a model, made from reports as they are stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from graphrag_mcp.index.communities import Community
from graphrag_mcp.index.report_content import EdgeRow, EntityRow
from graphrag_mcp.index.report_extractive import Report, stored, write


def extractive_report(
    community: Community,
    entities: Sequence[EntityRow],
    edges: Sequence[EdgeRow],
    children: Sequence[Report] = (),
    document_of: Mapping[str, str] | None = None,
) -> Report:
    return write(community, entities, edges, list(map(stored, children)), None, document_of).report
