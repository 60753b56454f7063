"""Reports without a model, made from all rows of a community and from reports as they are stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from graphrag_mcp.index.communities import Community
from graphrag_mcp.index.report_content import EdgeRow, EntityRow, Paper, Topic
from graphrag_mcp.index.report_extractive import Report, compose


def extractive_report(
    community: Community,
    entities: Sequence[EntityRow],
    edges: Sequence[EdgeRow],
    weights: Mapping[str, float] | None = None,
    texts: Sequence[tuple[str, str]] = (),
    papers: Sequence[Paper] = (),
) -> Report:
    """From rows that may be more than the community's own. `texts`: those that it quotes, else the evidence of its
    rows; `papers`: its documents."""
    members = set(community.members)
    entities = [row for row in entities if row.id in members]
    inner = [edge for edge in edges if edge.source_id in members and edge.target_id in members]
    texts = texts or sorted({evidence for row in [*entities, *inner] for evidence in row.evidence})
    return compose(Topic(community, entities, inner, weights or {}, texts, papers))
