"""Communities and reports of a generation: what has to be written so that they fit the graph as it is.

Takes a snapshot, the hierarchy computed from its relationships and the entities that were touched since the last
one; gives the rows to delete and to add. A report is made anew only when its community is new or something that it
speaks of changed; its fingerprint decides.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from concurrent.futures import Future
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any

import pyarrow as pa

from graphrag_mcp.index import imported_tree
from graphrag_mcp.index.communities import ClusterParams, Hierarchy, cluster
from graphrag_mcp.index.graph import to_table
from graphrag_mcp.index.imported import GRAPHS
from graphrag_mcp.index.models import Models
from graphrag_mcp.index.report_llm import Claim
from graphrag_mcp.index.report_stage import Writing
from graphrag_mcp.index.reports import EdgeRow, EntityRow, Report, Written, fingerprint, outline, stored, write
from graphrag_mcp.store.tables import Change, Snapshot
from graphrag_mcp.text import terms

Row = dict[str, Any]
_REFERENCES = re.compile(r"\[Data:[^\[\]]*\]")
MOVED = 0.1  # share of the entities that were touched, after which communities are compared with fresh ones
_REPORT = tuple(field.name for field in fields(Report))


def recluster(snapshot: Snapshot, params: ClusterParams, fresh: bool) -> Hierarchy:
    """The hierarchy of all relationships, as near to the previous one as the graph allows; `fresh` forgets it."""
    edges = snapshot.rows("relationships", columns=["source_id", "target_id", "weight"])
    columns = [edges.column(name).to_pylist() for name in ("source_id", "target_id", "weight")]
    previous = None
    if not fresh and snapshot.count("memberships"):
        paths = snapshot.rows("memberships")
        previous = dict(zip(paths.column("entity_id").to_pylist(), paths.column("path").to_pylist(), strict=True))
    links = list(zip(*columns, strict=True))
    found = _imported(snapshot)
    if found is not None and found.near:
        return imported_tree.hierarchy(found, links, previous, params)
    return cluster(links, previous, params)


def drift(
    snapshot: Snapshot, tree: Hierarchy, params: ClusterParams, before: Mapping[str, float], touched: int, fresh: bool
) -> dict[str, float]:
    """The modularity of the communities, and what a fresh clustering would have, to say when that would pay.

    `before`: the same after the last run, {} at first. Clustering afresh costs with the whole graph, so it is only done
    when the entities touched since the last time are a tenth of all.
    """
    moved = before.get("moved", 0) + touched
    if fresh or not before:
        return {"modularity": round(tree.modularity, 5), "afresh": round(tree.modularity, 5), "moved": 0}
    afresh = before["afresh"]
    if moved > MOVED * len(tree.path):
        moved, afresh = 0, round(recluster(snapshot, params, fresh=True).modularity, 5)
    return {"modularity": round(tree.modularity, 5), "afresh": afresh, "moved": moved}


def _imported(snapshot: Snapshot) -> imported_tree.Given | None:
    """What imports brought; None where nothing was ever imported."""
    there = any(segment["kind"] == GRAPHS for segment in snapshot.manifest.segments)
    return imported_tree.given(snapshot) if there else None


@dataclass
class Made:
    """What to write, the new counters, and why which report is not by a model although one was asked."""

    changes: dict[str, Change]
    counters: dict[str, int]
    degraded: dict[str, str]
    written: set[str]  # communities whose reports are new


def report(
    snapshot: Snapshot, tree: Hierarchy, touched: set[str] | None, number: dict[str, int], *,
    models: Models | None = None, texts: Mapping[str, str] | None = None, retry: Set[str] = frozenset(),
    take: Callable[[Future[Any]], Any] = Future.result,
) -> Made:  # fmt: skip
    """Communities, memberships and reports. `touched` None: compare every report; `retry`: these are asked again;
    `texts`: descriptions newer than the snapshot's, by row id."""
    # An id says level and members, so what may have moved of a community is where it hangs.
    known = snapshot.rows("communities", columns=["id", "n", "parent", "children", "size"])
    old = {row["id"]: row for row in known.to_pylist()}
    changes = {"communities": _communities(tree, old, number), "memberships": _memberships(snapshot, tree)}
    numbers = {row["id"]: row["n"] for row in changes["communities"].rows.to_pylist()}
    numbers = {id: row["n"] for id, row in old.items()} | numbers
    wanted = _suspects(tree, old, touched) | (retry & tree.communities.keys())
    gone = [id for id in old if id not in tree.communities]
    kept = set(tree.communities) - wanted
    job = _Job(snapshot, tree, wanted, models, texts or {}, take)
    rows, replaced, degraded = _reports(job, kept, numbers)
    changes["reports"] = Change(gone=[*gone, *replaced], rows=to_table("reports", rows))
    counters = {"communities": len(tree.communities), "reports": len(tree.communities)}
    return Made(changes, counters, degraded, {row["id"] for row in rows})


def _communities(tree: Hierarchy, old: Mapping[str, Row], number: dict[str, int]) -> Change:
    gone = [id for id in old if id not in tree.communities]
    rows: list[Row] = []
    for id, community in tree.communities.items():
        row = {
            "id": id, "level": community.level, "parent": community.parent, "children": list(community.children),
            "entity_ids": list(community.members), "size": len(community.members),
        }  # fmt: skip
        before = old.get(id)
        if before is None:
            row["n"], number["c"] = number["c"], number["c"] + 1
        elif all(before[name] == row[name] for name in ("parent", "children", "size")):
            continue
        else:
            row["n"] = before["n"]
            gone.append(id)
        rows.append(row)
    return Change(gone=gone, rows=to_table("communities", rows))


def _memberships(snapshot: Snapshot, tree: Hierarchy) -> Change:
    table = snapshot.rows("memberships")
    old = dict(zip(table.column("entity_id").to_pylist(), map(tuple, table.column("path").to_pylist()), strict=True))
    changed = [id for id, path in tree.path.items() if old.get(id) != path]
    gone = [*(old.keys() - tree.path.keys()), *(id for id in changed if id in old)]
    rows = [{"entity_id": id, "path": list(tree.path[id])} for id in changed]
    return Change(gone=sorted(gone), rows=to_table("memberships", rows))


def _suspects(tree: Hierarchy, old: Mapping[str, Row], touched: set[str] | None) -> set[str]:
    """Communities whose report may have to change: new ones, those of touched entities, and all above them."""
    if touched is None:
        return set(tree.communities)
    found = {id for id, c in tree.communities.items() if id not in old or list(c.children) != old[id]["children"]}
    for id in touched:
        found.update(tree.path.get(id, ()))
    for id in list(found):
        parent = tree.communities[id].parent
        while parent and parent not in found:
            found.add(parent)
            parent = tree.communities[parent].parent
    return found


@dataclass
class _Job:
    """The reports of one run: which, of what, by whom."""

    snapshot: Snapshot
    tree: Hierarchy
    wanted: set[str]
    models: Models | None
    texts: Mapping[str, str]
    take: Callable[[Future[Any]], Any]


def _reports(job: _Job, kept: set[str], numbers: Mapping[str, int]) -> tuple[list[Row], list[str], dict[str, str]]:
    """Rows of the reports that changed, which of them replace an older one, and what a model could not write."""
    tree, wanted = job.tree, job.wanted
    children = {child for id in wanted for child in tree.communities[id].children if child in kept}
    before = {row["id"]: row for row in job.snapshot.by_key("reports", sorted(wanted | children)).to_pylist()}
    done = {id: _written(before[id]) for id in children if id in before}
    prints = {id: row["fingerprint"] for id, row in before.items()}
    entities, edges, own = _content(job.snapshot, tree, wanted)
    writing = _writing(job, entities, edges, done)
    todo: list[str] = []
    given: dict[str, Written] = {}  # reports that were imported
    plain: dict[str, str] = {}  # fingerprints as they are without a model
    found = _imported(job.snapshot)
    for community in sorted((tree.communities[id] for id in wanted), key=lambda c: (-c.level, c.id)):
        below = community.children
        members = () if below else [entities[id] for id in community.members]  # what a child holds is in its print
        plain[community.id] = fingerprint(community, members, own[community.id], [prints[child] for child in below])
        print_ = writing.fingerprint(community.id, plain[community.id]) if writing else plain[community.id]
        told = found.report(community) if found else None
        if told is not None:
            print_ = imported_tree.fingerprint(told, plain[community.id])
        if prints.get(community.id) == print_:
            done[community.id] = _written(before[community.id])
        else:
            prints[community.id] = print_
            todo.append(community.id)
            if told is not None:
                base = outline(community, [entities[id] for id in community.members], edges[community.id])
                done[community.id] = given[community.id] = stored(imported_tree.report(told, base))
    unwritten = [id for id in todo if id not in given]
    if writing:
        made = {**given, **job.take(writing.asker.start(writing.all(unwritten)))}
    else:
        for id in unwritten:  # children come before parents
            community = tree.communities[id]
            members = [entities[one] for one in community.members]
            done[id] = write(community, members, edges[id], [done[child] for child in community.children])
        made = {id: done[id] for id in todo}
    degraded = writing.degraded if writing else {}
    spoken = _Spoken()
    rows: list[Row] = []
    for id in todo:
        report_ = made[id].report
        row = {name: getattr(report_, name) for name in _REPORT}
        members = [entities[one] for one in tree.communities[id].members]
        # What a model could not write keeps the other fingerprint, so that it is asked for again.
        row |= {"n": numbers[id], "fingerprint": plain[id] if id in degraded else prints[id]}
        rows.append(row | {"terms": spoken.by(report_, members)})
    return rows, [id for id in todo if id in before], degraded


def _writing(
    job: _Job, entities: Mapping[str, EntityRow], edges: Mapping[str, Sequence[EdgeRow]], done: dict[str, Written]
) -> Writing | None:
    """What a model needs to write the reports; None where none is to."""
    models = job.models
    if models is None or models.reports is None or not (models.agent or models.asker.may_answer("report")):
        return None
    types: dict[str, str] = {}
    told: dict[str, str] = {}
    columns = ["id", "type", "description"]
    for row in job.snapshot.by_key("entities", sorted(entities), "id", columns).to_pylist():
        types[row["id"]], told[row["id"]] = row["type"], row["description"]
    links = sorted({edge.id for inside in edges.values() for edge in inside})
    for row in job.snapshot.by_key("relationships", links, "id", ["id", "description"]).to_pylist():
        told[row["id"]] = row["description"]
    claims = claims_of(job.snapshot, job.tree, job.wanted)
    return Writing(
        models.asker, models.reports, job.tree.communities, entities, edges, types, {**told, **job.texts}, claims, done
    )


def claims_of(snapshot: Snapshot, tree: Hierarchy, wanted: set[str]) -> dict[str, list[Claim]]:
    """The claims about members of these communities."""
    if "claims" not in snapshot.manifest.tables:
        return {}
    members = sorted({id for community in wanted for id in tree.communities[community].members})
    found: dict[str, list[Claim]] = defaultdict(list)
    for row in snapshot.by_key("claims", members, "subject_id").to_pylist():
        for community in tree.path.get(row["subject_id"], ()):
            if community in wanted:
                found[community].append(Claim(
                    id=row["id"],
                    subject=row["subject"], object=row["object"], type=row["type"], status=row["status"],
                    description=row["description"], subject_id=row["subject_id"], text_unit_id=row["text_unit_id"],
                ))  # fmt: skip
    return {id: sorted(claims, key=lambda one: (one.subject, one.description)) for id, claims in found.items()}


class _Spoken(dict[str, str]):
    """Search terms of a name or sentence, worked out once: it is said by the reports of several levels."""

    def __missing__(self, text: str) -> str:
        found = self[text] = " ".join(terms(text))
        return found

    def by(self, made: Report, members: Sequence[EntityRow]) -> str:
        """The terms of a report: its title, its summary without references (ids are no words), some of its names."""
        said = [*made.title.split(" · "), *_REFERENCES.split(made.summary), *(row.title for row in members[:50])]
        return " ".join(filter(None, map(self.__getitem__, said)))


# ---- reading ------------------------------------------------------------------------------------


def _content(
    snapshot: Snapshot, tree: Hierarchy, wanted: set[str]
) -> tuple[dict[str, EntityRow], dict[str, list[EdgeRow]], dict[str, list[EdgeRow]]]:
    """The entities of these communities; of each community the relationships with both ends inside, by id; and of
    those the ones that are inside none of its children."""
    members = {id for community in wanted for id in tree.communities[community].members}
    known: dict[str, str] = {}
    found = _read(snapshot, "entities", members, "id", ["id", "title", "text_unit_ids", "evidence"])
    entities = {row.id: row for batch in found for row in map(EntityRow, *_columns(batch, known))}
    columns = ["id", "source_id", "target_id", "weight", "text_unit_ids", "evidence"]
    found = _read(snapshot, "relationships", members, "source_id", columns)
    inside: dict[str, list[EdgeRow]] = defaultdict(list)
    own: dict[str, list[EdgeRow]] = defaultdict(list)
    rows = [row for batch in found for row in map(EdgeRow, *_columns(batch, known))]
    for edge in sorted(rows, key=lambda edge: edge.id):
        last = ""
        for a, b in zip(tree.path.get(edge.source_id, ()), tree.path.get(edge.target_id, ()), strict=False):
            if a != b:
                break
            last = a
            if a in wanted:
                inside[a].append(edge)
        if last in wanted:
            own[last].append(edge)
    return entities, inside, own


def _read(
    snapshot: Snapshot, table: str, members: set[str], key: str, columns: Sequence[str]
) -> Iterable[pa.RecordBatch]:
    """At least the rows of these entities; when most are wanted, all: choosing and ordering cost more than reading."""
    if len(members) * 2 > snapshot.count("entities"):
        return snapshot.rows(table, columns=columns).to_batches()
    return snapshot.by_key(table, sorted(members), key, columns).to_batches()


def _columns(batch: pa.RecordBatch, known: dict[str, str]) -> list[list[Any]]:
    """The columns as Python lists; a struct of evidence becomes (text unit, sentence).

    A sentence stands in the rows of many pairs: equal strings become one object, which is kept in `known`.
    """
    found: list[list[Any]] = []
    for column in batch.columns:
        if not pa.types.is_list(column.type):
            found.append(column.to_pylist())
            continue
        values = column.flatten()
        if pa.types.is_struct(values.type):
            flat = zip(*(_strings(values.field(name), known) for name in ("text_unit_id", "text")), strict=True)
        else:
            flat = iter(_strings(values, known))
        found.append([list(islice(flat, length)) for length in column.value_lengths().to_pylist()])
    return found


def _strings(array: pa.Array, known: dict[str, str]) -> list[str]:
    encoded = array.dictionary_encode()
    distinct = [known.setdefault(text, text) for text in encoded.dictionary.to_pylist()]
    return list(map(distinct.__getitem__, encoded.indices.to_pylist()))


def _written(row: Row) -> Written:
    return stored(Report(**{name: row[name] for name in _REPORT}))
