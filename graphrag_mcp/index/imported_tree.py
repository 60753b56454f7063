"""Communities and reports of imports, in the place of computed ones as long as they speak of the same entities.

Takes the communities that imports brought and the graph as it is; gives the hierarchy, and for a community the report
that was imported for exactly its members. A top community whose entities have the very relationships that were imported
keeps its whole subtree; where other documents have joined in, clustering goes on from there. Depends on the log of
imports and the graph, not on history. Knows no other program.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from graphrag_mcp.index.communities import ClusterParams, Community, Hierarchy, cluster, modularity
from graphrag_mcp.index.imported import GRAPHS, load
from graphrag_mcp.index.reports import Report
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.types import content_id

Edges = Sequence[tuple[str, str, float]]
Row = dict[str, Any]


@dataclass
class Given:
    """What all imports of a corpus brought: communities by id, of each top one what it is linked by, and reports."""

    communities: dict[str, Community] = field(default_factory=dict)
    near: dict[str, str] = field(default_factory=dict)
    reports: dict[str, Row] = field(default_factory=dict)  # by the hash of their members

    def report(self, community: Community) -> Row | None:
        """The report that was imported for these members."""
        found = self.reports.get(content_id(*community.members))
        return found.get(community.id) or next(iter(found.values())) if found else None


def given(snapshot: Snapshot) -> Given:
    """From the log of imports; the last word of each import counts."""
    table = load(snapshot.folder, snapshot.manifest, GRAPHS)
    latest = dict(zip(table["uri"].to_pylist(), table["data"].to_pylist(), strict=True))
    found = Given()
    for _, data in sorted(latest.items()):
        body = json.loads(data)
        children: dict[str, list[str]] = defaultdict(list)
        for one in body["communities"]:
            children[one["parent"]].append(one["id"])
        for one in body["communities"]:
            below = tuple(sorted(children.get(one["id"], ())))
            members = tuple(one["members"])
            found.communities.setdefault(one["id"], Community(one["id"], one["level"], one["parent"], below, members))
        found.near |= body["near"]
        for one in body["reports"]:
            found.reports.setdefault(content_id(*one["members"]), {})[one["community"]] = one
    return found


def near(members: Iterable[str], pairs: Iterable[tuple[str, str]]) -> str:
    """A hash of all relationships that touch these entities; `pairs` may hold others."""
    inside = set(members)
    return content_id("near", *sorted({f"{min(p)} {max(p)}" for p in pairs if p[0] in inside or p[1] in inside}))


def hierarchy(
    found: Given, edges: Edges, previous: Mapping[str, Sequence[str]] | None, params: ClusterParams
) -> Hierarchy:
    """Imported subtrees that still fit, and the rest clustered as ever."""
    kept = _fitting(found, edges)
    path = {id: way for root in kept for id, way in _paths(found, root).items()}
    links = [edge for edge in edges if edge[0] not in path and edge[1] not in path]
    if not previous:
        roots = [one for one in found.communities.values() if not one.parent]
        previous = {id: way for root in roots for id, way in _paths(found, root.id).items()}
    rest = cluster(links, {id: way for id, way in previous.items() if id not in path}, params)
    every = {**rest.communities, **{id: found.communities[id] for root in kept for id in _subtree(found, root)}}
    order = sorted(every.values(), key=lambda one: (one.level, one.id))
    path |= rest.path
    return Hierarchy({one.id: one for one in order}, path, modularity(edges, {id: way[0] for id, way in path.items()}))


def _fitting(found: Given, edges: Edges) -> set[str]:
    """Top communities that are linked as they were when they were imported."""
    neighbours: dict[str, set[str]] = defaultdict(set)
    for a, b, weight in edges:
        if a != b and weight > 0:
            neighbours[a].add(b)
            neighbours[b].add(a)
    kept: set[str] = set()
    root_of: dict[str, str] = {}
    for id in sorted(found.near):
        members = found.communities[id].members
        pairs = ((one, other) for one in members for other in neighbours.get(one, ()))
        fits = all(one in neighbours and one not in root_of for one in members)
        if fits and near(members, pairs) == found.near[id]:
            kept.add(id)
            root_of |= dict.fromkeys(members, id)
    while True:  # who is linked with nobody but them must be clustered with them
        alone = [one for one in neighbours if root_of.get(one) not in kept
                 and all(root_of.get(other) in kept for other in neighbours[one])]  # fmt: skip
        if not alone:
            return kept
        kept -= {root_of[other] for one in alone for other in neighbours[one]}


def _subtree(found: Given, root: str) -> list[str]:
    ids = [root]
    for id in ids:
        ids += found.communities[id].children
    return ids


def _paths(found: Given, root: str) -> dict[str, tuple[str, ...]]:
    path: dict[str, tuple[str, ...]] = {}
    for id in _subtree(found, root):  # parents come before children
        for member in found.communities[id].members:
            path[member] = (*path.get(member, ()), id)
    return path


def report(row: Row, base: Report) -> Report:
    """The imported words on the rows of the community as it is."""
    return replace(
        base, title=row["title"] or base.title, summary=row["summary"] or base.summary,
        full_content=row["full_content"] or base.full_content,
        rank=base.rank if row["rank"] is None else row["rank"],
        rating_explanation=row["rating_explanation"] or ("" if row["rank"] is not None else base.rating_explanation),
        findings=json.dumps(row["findings"], ensure_ascii=False), method=row["method"],
    )  # fmt: skip


def fingerprint(row: Row, plain: str) -> str:
    """Changes when the imported report does, or the rows that it speaks of."""
    return content_id("imported", json.dumps(row, sort_keys=True), plain)
