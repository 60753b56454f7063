"""Reports without a model, made from all rows of a community and from reports as they are stored."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from graphrag_mcp.index import report_content
from graphrag_mcp.index.communities import Community
from graphrag_mcp.index.report_content import EdgeRow, EntityRow, of_rows
from graphrag_mcp.index.report_extractive import Report, Written, compose, quoted


def written(
    community: Community,
    entities: Sequence[EntityRow],
    edges: Sequence[EdgeRow],
    children: Sequence[Written] = (),
    divided: Sequence[Collection[str]] = (),
    weights: Mapping[str, float] | None = None,
) -> Written:
    """From rows that may be more than the community's own. `divided`: the members of each child, where there are
    more than its report lists; what lies within one is said by the child's report."""
    members = set(community.members)
    entities = [row for row in entities if row.id in members]
    edges = [edge for edge in edges if edge.source_id in members and edge.target_id in members]
    divided = divided or [child.report.entity_ids for child in children]
    home = {id: number for number, ids in enumerate(divided) for id in ids}
    inside = of_rows(community, entities, edges)
    if divided:
        own = [
            edge
            for edge in edges
            if edge.source_id not in home or home[edge.source_id] != home.get(edge.target_id)
        ]
        heaviest = sorted(own, key=lambda edge: (-edge.weight, edge.id))[: report_content.OWN]
        inside = replace(
            inside,
            own_rows=[row for row in inside.own_rows if row.id not in home],
            own_links=sorted(heaviest, key=lambda edge: edge.id),
        )
    return compose(community, replace(inside, terms=weights or {}), quoted(children))


def extractive_report(
    community: Community,
    entities: Sequence[EntityRow],
    edges: Sequence[EdgeRow],
    children: Sequence[Report] = (),
) -> Report:
    return written(community, entities, edges, list(map(Written, children))).report
