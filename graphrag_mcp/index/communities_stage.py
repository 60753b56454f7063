"""The second commit of a run: descriptions, communities, reports and vectors of the current graph.

Until then results say that communities are stale. A report is made again only when its community is
new or its fingerprint (what it speaks of) changed. What a model could not write stays in the table
`pending`, and is asked again by the next run."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence, Set
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field, fields, replace
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_mcp.executors import Executor, InProcess
from graphrag_mcp.index import descriptions, imported
from graphrag_mcp.index.communities import (
    ClusterParams,
    Community,
    Hierarchy,
    characteristic,
    cluster,
    texts_of,
)
from graphrag_mcp.index.documents import Run
from graphrag_mcp.index.graph import entity_id, graph_to_table
from graphrag_mcp.index.imported import GRAPHS
from graphrag_mcp.index.models import Models
from graphrag_mcp.index.report_content import (
    Candidate,
    Columns,
    EdgeRow,
    EntityRow,
    Inside,
    listed,
    lists,
    some,
    strings,
)
from graphrag_mcp.index.report_extractive import (
    Report,
    Written,
    code_fingerprint,
    compose,
    compose_code,
    fingerprint,
    heads,
    outline,
    quoted,
)
from graphrag_mcp.index.report_llm import Claim, Writing
from graphrag_mcp.index.units import pending
from graphrag_mcp.store.manifest import Manifest
from graphrag_mcp.store.schema import LIST, TABLES, VECTORS
from graphrag_mcp.store.tables import ROW_ID, Change, Snapshot
from graphrag_mcp.text.readable import language_of
from graphrag_mcp.text.terms import terms
from graphrag_mcp.types import content_id

Row = dict[str, Any]
_REFERENCES = re.compile(r"\[Data:[^\[\]]*\]")
REPORTED_ENTITIES = 10_000  # of communities that are reported at once: 100 MB
_REPORT = tuple(field.name for field in fields(Report))
_UNREAD: Row = {
    "full_content": "",
    "rating_explanation": "",
    "entity_ids": [],
    "relationship_ids": [],
}
_CITED: Row = {"text_unit_ids": []}  # what only a model is shown of the reports of children


def links_of(snapshot: Snapshot) -> pa.Table:
    """What is clustered, and what the reports are drawn from."""
    return snapshot.rows(
        "relationships", columns=["id", "source_id", "target_id", "weight", ROW_ID]
    )


def tree_of(snapshot: Snapshot, params: ClusterParams, links: pa.Table) -> Hierarchy:
    """The hierarchy of the text units and entities that there are; imports may have a part."""
    found = _imported(snapshot)
    given = found is not None and bool(found.near)
    rows = snapshot.rows("text_units", columns=["id", "document_id"])
    documents = dict(zip(*(column.to_pylist() for column in rows.columns), strict=True))
    sources = {} if given else _sources(snapshot)
    files = {unit: sources[of] for unit, of in documents.items() if of in sources}
    documents = {unit: of for unit, of in documents.items() if unit not in files}
    texts = texts_of(_passages(snapshot, documents, bool(files)), documents)
    entities = _units_of(snapshot, files)
    ends = [strings(links[name]) for name in ("source_id", "target_id")]
    edges = list(zip(*ends, links["weight"].to_pylist(), strict=True))
    if found is not None and given:
        tree = imported.hierarchy(found, texts, entities, edges, params)
    else:
        tree = cluster(texts, entities, edges, params, files)
    return replace(tree, terms=characteristic(texts, tree))


def _sources(snapshot: Snapshot) -> dict[str, str]:
    """The uris of the documents that are source code, by id."""
    if "code" not in snapshot.manifest.tables:
        return {}
    rows = snapshot.rows("code", columns=["id", "uri"])
    pairs = zip(rows["id"].to_pylist(), rows["uri"].to_pylist(), strict=True)
    return {id: uri for id, uri in pairs if language_of(uri)}


def _passages(snapshot: Snapshot, documents: Mapping[str, str], apart: bool) -> Iterator[pa.Table]:
    """The terms of the text units of prose, in parts; beside source code only these are read."""
    columns = ["text_unit_id", "terms"]
    if apart and len(documents) * 4 < snapshot.count("text_units"):
        ids = sorted(set(documents.values()))
        passages = snapshot.by_key("passages", ids, "document_id", columns)
    else:
        passages = snapshot.rows("passages", columns=columns)
    return (passages.slice(at, 4096) for at in range(0, passages.num_rows, 4096))


def _units_of(snapshot: Snapshot, files: Mapping[str, str]) -> dict[str, Sequence[str]]:
    """The text units of each entity; a symbol is where it is defined, however often documents name
    it."""
    found = dict(listed(snapshot.rows("entities", columns=["id", "text_unit_ids"])))
    if not files:
        return found
    return {id: [unit for unit in units if unit in files] or units for id, units in found.items()}


def stored_tree(snapshot: Snapshot) -> Hierarchy:
    path = _paths(snapshot)
    units: dict[str, list[str]] = defaultdict(list)
    rows = snapshot.rows("communities").to_pylist()
    entities = {id for row in rows for id in row["entity_ids"]}
    for id in sorted(path.keys() - entities):
        for community in path[id]:
            units[community].append(id)
    found = {
        row["id"]: Community(
            *(row[name] for name in ("id", "level", "parent")),
            *(tuple(row[name]) for name in ("children", "entity_ids")),
            tuple(units[row["id"]]),
        )
        for row in rows
    }
    return Hierarchy(found, path)


def _paths(snapshot: Snapshot) -> dict[str, tuple[str, ...]]:
    """The path of each entity; those in one leaf share one object."""
    import numpy as np

    rows = snapshot.rows("memberships")
    if not rows.num_rows:
        return {}
    paths = pa.concat_arrays(rows["path"].chunks)
    encoded = paths.flatten().dictionary_encode()
    names, codes = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
    ends = np.cumsum(paths.value_lengths().to_numpy(zero_copy_only=False))
    _, first, leaf = np.unique(codes[ends - 1], return_index=True, return_inverse=True)
    starts = np.concatenate([[0], ends[:-1]])
    spans = zip(starts[first].tolist(), ends[first].tolist(), strict=True)
    ways = [tuple(map(names.__getitem__, codes[start:end].tolist())) for start, end in spans]
    return dict(
        zip(rows["entity_id"].to_pylist(), map(ways.__getitem__, leaf.tolist()), strict=True)
    )


def _imported(snapshot: Snapshot) -> imported.Given | None:
    """What imports brought; None where nothing was ever imported."""
    there = any(segment["kind"] == GRAPHS for segment in snapshot.manifest.segments)
    return imported.given(snapshot) if there else None


@dataclass
class Moved:
    """What the tree changes in the tables of communities and memberships; the number of every
    community, those that are new or divided differently, and those that are gone."""

    changes: dict[str, Change]
    numbers: dict[str, int]
    fresh: set[str]
    gone: list[str]


@dataclass
class ReportJob:
    """Which reports are compared and, where they changed, written. `edges`: of what the tree is
    made; `moved`: how it changed; `rewrite`: those that are written again though nothing that they
    are made of has changed; `texts`: descriptions newer than the snapshot's, by row id; `embed`:
    called with reports as they are written; `write`: called with the changes of the table of
    reports, part by part; `spread`: who makes so many reports."""

    snapshot: Snapshot
    tree: Hierarchy
    edges: pa.Table
    moved: Moved
    wanted: set[str]
    models: Models | None = None
    texts: Mapping[str, str] = field(default_factory=dict)
    rewrite: Set[str] = frozenset()
    take: Callable[[Future[Any]], Any] = Future.result
    embed: Callable[[Sequence[Report]], object] = lambda _: None
    write: Callable[[Change], object] = lambda _: None
    spread: Callable[[int], Executor] = lambda _: InProcess()


def report(job: ReportJob) -> tuple[dict[str, str], set[str]]:
    """Why which report is not by a model although one was asked; communities whose reports are new."""
    degraded: dict[str, str] = {}
    written: set[str] = set()
    gone = job.moved.gone
    # With a model there is one part: the reports of all communities are asked for at once.
    asked = job.models is not None and job.models.reports is not None
    for part in [job.wanted] if asked else _in_parts(job.tree, job.wanted):
        rows, replaced, failed = _reports(replace(job, wanted=part))
        job.write(Change([*gone, *replaced], graph_to_table("reports", rows)))
        gone = []
        degraded |= failed
        written.update(row["id"] for row in rows)
    return degraded, written


def _wanted(
    snapshot: Snapshot, tree: Hierarchy, moved: Moved, touched: set[str] | None, retry: Set[str]
) -> set[str]:
    """Communities whose report may have to change: new ones, those of other terms or of touched
    entities, and all above them; and those of `retry`. All where `touched` is None."""
    if touched is None:
        return set(tree.communities)
    found = moved.fresh | _of_other_terms(snapshot, tree) | retry
    return and_above(tree, found.union(*(tree.path.get(id, ()) for id in touched)))


def _in_parts(tree: Hierarchy, wanted: set[str]) -> Iterator[set[str]]:
    """The communities in parts that are reported one after another, or memory would grow with the
    graph. What lies in one coarsest community is in one part. At least one part, perhaps empty."""
    below: dict[str, list[str]] = defaultdict(list)  # by coarsest community
    for id in wanted:
        top = id
        while tree.communities[top].parent:
            top = tree.communities[top].parent
        below[top].append(id)
    part: set[str] = set()
    size = 0
    for top, ids in sorted(below.items()):
        if size >= REPORTED_ENTITIES:
            yield part
            part, size = set(), 0
        part.update(ids)
        size += len(tree.communities[top].members)
    yield part


def compare(snapshot: Snapshot, tree: Hierarchy, number: dict[str, int]) -> Moved:
    """The tree beside the stored one. An id says level and members, so what may have moved of a
    community is where it hangs."""
    known = (
        snapshot.rows("communities", columns=["id", "n", "parent", "children"])
        .combine_chunks()
        .to_batches()
    )
    # n, parent, children
    old = {id: row for batch in known for id, *row in zip(*lists(batch), strict=True)}
    moved = Moved(
        {},
        {id: row[0] for id, row in old.items()},
        set(),
        [id for id in old if id not in tree.communities],
    )
    gone = list(moved.gone)
    rows: list[Row] = []
    for id, community in tree.communities.items():
        before, children = old.get(id), list(community.children)
        if before is None:
            moved.numbers[id], number["c"] = number["c"], number["c"] + 1
        elif before[1] == community.parent and before[2] == children:
            continue
        else:
            gone.append(id)
        if before is None or before[2] != children:
            moved.fresh.add(id)
        rows.append(
            {
                "id": id,
                "n": moved.numbers[id],
                "level": community.level,
                "parent": community.parent,
                "children": children,
                "entity_ids": list(community.members),
                "size": len(community.members),
            }
        )
    paths = _paths(snapshot)
    changed = [id for id, path in tree.path.items() if paths.get(id) != path]
    left = [*(paths.keys() - tree.path.keys()), *(id for id in changed if id in paths)]
    ways = {(tree.path.get(id, ()), paths.get(id, ())) for id in (*changed, *left)}
    for now_, was in ways:  # what came or went, text units among them
        moved.fresh.update(({*now_} ^ {*was}) & tree.communities.keys())
    members = [pa.array(changed, pa.string()), pa.array(map(tree.path.get, changed), LIST)]
    moved.changes["communities"] = Change(gone, graph_to_table("communities", rows))
    moved.changes["memberships"] = Change(
        sorted(left), pa.table(members, schema=TABLES["memberships"])
    )
    return moved


def _listed(tree: Hierarchy, id: str) -> str:
    """The characteristic terms of a community in order, behind their number."""
    terms_ = tree.terms.get(id, {})
    return " ".join([f"#{len(terms_)}", *terms_])


def _of_other_terms(snapshot: Snapshot, tree: Hierarchy) -> set[str]:
    """Communities with a report that was made of other characteristic terms."""
    rows = snapshot.rows("reports", "", ["id", "terms"])
    pairs = zip(rows["id"].to_pylist(), rows["terms"].to_pylist(), strict=True)
    return {
        id for id, said in pairs if id in tree.terms and not said.endswith(f" {_listed(tree, id)}")
    }


def and_above(tree: Hierarchy, ids: Set[str]) -> set[str]:
    """Those of the communities that there are, and all above them."""
    found = {id for id in ids if id in tree.communities}
    for id in list(found):
        parent = tree.communities[id].parent
        while parent and parent not in found:
            found.add(parent)
            parent = tree.communities[parent].parent
    return found


def _reports(job: ReportJob) -> tuple[list[Row], list[str], dict[str, str]]:
    """Rows of the reports that changed, which of them replace an older one, and what a model could
    not write."""
    tree, wanted = job.tree, job.wanted
    shown = job.models is not None and job.models.reports is not None
    before = _stored(job.snapshot, tree, wanted, _UNREAD if shown else _UNREAD | _CITED)
    done = {id: _written(row) for id, row in before.items() if id not in wanted}
    told = job.texts if job.models is not None and job.models.describe is not None else None
    columns = Columns(job.snapshot, tree, wanted, job.edges, told)

    def shown_of(id: str, children: Sequence[Written]) -> tuple[Community, Inside, list[Candidate]]:
        quotes = heads(children) if id in tree.titles else quoted(children)
        entities = [one for quote in quotes for one in quote.entities]
        edges = [one for quote in quotes for one in quote.edges]
        community = tree.communities[id]
        return community, columns.inside(community, entities, edges), quotes

    def extractive(id: str, children: Sequence[Written]) -> Written:
        return composed(shown_of(id, children))

    writing = _writing(job, done, extractive)
    prints, plain = _fingerprints(job, columns, writing, before)
    found = _imported(job.snapshot)
    todo: list[str] = []
    for id in prints:
        if id in before and before[id]["fingerprint"] == prints[id] and id not in job.rewrite:
            done[id] = _written(before[id])
            continue
        todo.append(id)
        if found and (told := found.report(tree.communities[id])) is not None:
            base = outline(tree.communities[id], columns.inside(tree.communities[id]))
            done[id] = Written(imported.report(told, base))
    unwritten = [id for id in todo if id not in done]
    asked = {id for id in unwritten if writing and writing.wanted(tree.communities[id])}
    # Children come before parents, and none that is asked for before one that is not. What lies on
    # one level is made at the same time.
    others = [id for id in unwritten if id not in asked]
    for _, level in groupby(others, lambda id: tree.communities[id].level):
        ids = list(level)
        items = (
            shown_of(id, [done[child] for child in tree.communities[id].children]) for id in ids
        )
        for id, written in zip(ids, job.spread(len(ids)).map(composed, items), strict=True):
            done[id] = written
    if writing and asked:
        done.update(job.take(writing.asker.start(writing.all(sorted(asked)))))
    degraded, unsure = (writing.degraded, writing.unsure) if writing else ({}, set())
    rows: list[Row] = []
    for id in todo:
        report_ = done[id].report
        row = {name: getattr(report_, name) for name in _REPORT}
        # What a model could not write keeps the other fingerprint, so that it is asked for again,
        # and what it made of such reports is made again with it.
        row |= {
            "n": job.moved.numbers[id],
            "fingerprint": plain[id] if id in unsure else prints[id],
        }
        said = _spoken(report_, columns.titles(tree.communities[id].members[:50]))
        rows.append(row | {"terms": f"{said} {_listed(tree, id)}"})
    return rows, [id for id in todo if id in before], degraded


def _fingerprints(
    job: ReportJob, columns: Columns, writing: Writing | None, before: Mapping[str, Row]
) -> tuple[dict[str, str], dict[str, str]]:
    """Of the wanted communities, children before parents: their fingerprints, and these as they are
    without a model and without imports."""
    tree, plain, found = job.tree, dict[str, str](), _imported(job.snapshot)
    prints = {id: row["fingerprint"] for id, row in before.items() if id not in job.wanted}
    for id in sorted(job.wanted, key=lambda id: (-tree.communities[id].level, id)):
        community = tree.communities[id]
        # Of others the fingerprints of the children say it.
        members = () if community.children else [columns.leaves[one] for one in community.members]
        said = content_id("terms", columns.rest(id), *map(str, tree.terms.get(id, {}).items()))
        if title := tree.titles.get(id):
            said = code_fingerprint(said, title, members)
        below = [prints[child] for child in community.children]
        plain[id] = fingerprint(community, members, columns.own.get(id, ()), below, said)
        prints[id] = writing.fingerprint(id, plain[id]) if writing else plain[id]
        if found and (told := found.report(community)) is not None:
            prints[id] = imported.fingerprint(told, plain[id])
    return {id: prints[id] for id in plain}, plain


def composed(item: tuple[Community, Inside, list[Candidate]]) -> Written:
    return (compose_code if item[1].title else compose)(*item)


def _writing(
    job: ReportJob,
    done: dict[str, Written],
    extractive: Callable[[str, Sequence[Written]], Written],
) -> Writing | None:
    """What a model needs to write the reports; None where none is to. One that is only switched off
    is to: what it cannot write meanwhile stays listed."""
    models = job.models
    if models is None or models.reports is None:
        return None
    entities, edges = _content(job.snapshot, job.tree, job.wanted)
    types: dict[str, str] = {}
    told: dict[str, str] = {}
    meant: dict[str, str] = {}  # entity by the ids that its names would have
    columns = ["id", "type", "description", "names"]
    for row in job.snapshot.by_key("entities", sorted(entities), "id", columns).to_pylist():
        types[row["id"]], told[row["id"]] = row["type"], row["description"]
        meant.update((entity_id(name), row["id"]) for name in row["names"])
    links = sorted({edge.id for inside in edges.values() for edge in inside})
    for row in job.snapshot.by_key("relationships", links, "id", ["id", "description"]).to_pylist():
        told[row["id"]] = row["description"]
    claims = _claims(job, meant)
    return Writing(
        models.asker,
        models.reports,
        job.tree.communities,
        entities,
        edges,
        types,
        {**told, **job.texts},
        claims,
        done,
        extractive,
        job.embed,
    )


CLAIM = ("id", "subject", "object", "type", "status", "description", "text_unit_id")


def _claims(job: ReportJob, meant: Mapping[str, str]) -> dict[str, list[Claim]]:
    """The claims about members of these communities, by any of their names."""
    found: dict[str, list[Claim]] = defaultdict(list)
    for row in job.snapshot.by_key("claims", sorted(meant), "subject_id").to_pylist():
        subject = meant[row["subject_id"]]
        for community in job.tree.path.get(subject, ()):
            if community in job.wanted:
                said = {name: row[name] for name in CLAIM}
                found[community].append(Claim(**said, subject_id=subject))
    return {
        id: sorted(claims, key=lambda one: (one.subject, one.description))
        for id, claims in found.items()
    }


def _spoken(made: Report, names: Sequence[str]) -> str:
    """The terms of a report: its title, its summary without references (ids are no words), some of
    its names."""
    said = [*made.title.split(" · "), *_REFERENCES.split(made.summary), *names]
    return " ".join(term for text in said for term in terms(text))


# ---- reading ------------------------------------------------------------------------------------


def _content(
    snapshot: Snapshot, tree: Hierarchy, wanted: set[str]
) -> tuple[dict[str, EntityRow], dict[str, list[EdgeRow]]]:
    """The entities of these communities, and of each the relationships with both ends inside, by
    id."""
    members = sorted({id for community in wanted for id in tree.communities[community].members})
    found = some(
        snapshot, "entities", members, "id", ["id", "title", "text_unit_ids", "evidence"]
    ).to_batches()
    entities = {row.id: row for batch in found for row in map(EntityRow, *lists(batch))}
    columns = ["id", "source_id", "target_id", "weight", "text_unit_ids", "evidence"]
    found = some(snapshot, "relationships", members, "source_id", columns).to_batches()
    inside: dict[str, list[EdgeRow]] = defaultdict(list)
    rows = [row for batch in found for row in map(EdgeRow, *lists(batch))]
    for edge in sorted(rows, key=lambda edge: edge.id):
        for a, b in zip(
            tree.path.get(edge.source_id, ()), tree.path.get(edge.target_id, ()), strict=False
        ):
            if a != b:
                break
            if a in wanted:
                inside[a].append(edge)
    return entities, inside


def _stored(snapshot: Snapshot, tree: Hierarchy, wanted: set[str], unread: Row) -> dict[str, Row]:
    """Reports of these communities and of their children, with what no one reads of them here as in
    `unread`."""
    ids = wanted.union(*(tree.communities[id].children for id in wanted))
    names = ["fingerprint", *(name for name in _REPORT if name not in unread)]
    # less than asking an index for a thousand of them
    there = snapshot.rows("reports", columns=["id", ROW_ID])
    places = there.filter(pc.is_in(there["id"], pa.array(sorted(ids), pa.string())))[
        ROW_ID
    ].to_pylist()
    return {
        row["id"]: unread | row for row in snapshot.at("reports", sorted(places), names).to_pylist()
    }


def _written(row: Row) -> Written:
    return Written(Report(**{name: row[name] for name in _REPORT}))


def communities(run: Run, recluster: bool) -> None:
    """Everything that depends on the graph as a whole, where it changed or was left open."""
    manifest, models = run.manifest, run.models
    if manifest is None:
        return
    waiting = _waiting(run)
    again = (
        models is not None
        and manifest.parameters.get("reports", "") != models.parameters()["reports"]
    )
    over = not (models and models.reports) and run.snapshot().count("pending") > 0
    if not (manifest.stale or recluster or again or waiting or over or _vectors_missing(run)):
        return
    numbers = dict(manifest.next)
    # Without a complete list of what earlier calls touched (one was killed), every report is
    # compared.
    complete = manifest.communities_generation == run.first_generation and not again
    writes = models is not None and models.describe is not None
    started = descriptions.begin(run.snapshot(), waiting, models, run.asked) if writes else None
    with run.stage("communities"):
        links = links_of(run.snapshot())
        params = ClusterParams(run.settings.max_cluster_size, run.settings.seed)
        tree = tree_of(run.snapshot(), params, links)
        moved = compare(run.snapshot(), tree, numbers)
    run.check()
    run.progress("reports", 0, len(tree.communities))
    with run.stage("reports"):
        described = descriptions.Described()
        if started:
            described = descriptions.finish(started, waiting, run.take)
        if run.vectors is not None:
            _want(run, described.changes)
        texts = described.texts
        touched = run.touched | _ends(run, texts) | _claimed(run) if complete else None
        # With those above: their reports may be made of what stands there without a model.
        retry = {row["subject"] for row in waiting if row["kind"] == "report"}
        vectors = _Beside(run, run.manifest)  # written while the reports are being asked for
        job = ReportJob(
            run.snapshot(),
            tree,
            links,
            moved,
            _wanted(run.snapshot(), tree, moved, touched, retry),
            models,
            texts,
            {one.subject for one in run.corrections if one.kind == "report"},
            vectors.take,
            _early(run),
            vectors.write_reports,
            run.spread,
        )
        degraded, written = report(job)
    with run.stage("write"):
        changes = {**described.changes, **moved.changes}
        changes |= _still_pending(run, tree, waiting, described, degraded, written)
        _want_rest(run)
        vectors.write(changes)  # while the last vectors are on their way
        _commit(run, vectors.written().tables, numbers, len(tree.communities))
    compact(run)
    run.progress("reports", len(tree.communities), len(tree.communities))


def _still_pending(
    run: Run,
    tree: Hierarchy,
    waiting: Sequence[Row],
    described: descriptions.Described,
    degraded: Mapping[str, str],
    written: Container[str],
) -> dict[str, Change]:
    """The change of the table `pending`, where there is one: without what was answered, is not
    worth a call any more or is gone, and with what no model could write."""
    failed = [*described.failed]
    failed += [pending("report", id, "", why) for id, why in degraded.items()]
    done = {*described.done, *_over(run, tree.communities, written)}
    done.update(row["id"] for row in waiting if row["kind"] == "report")
    done.update(row["id"] for row in failed)
    if not done or not (failed or "pending" in run.manifest.tables):
        return {}
    return {"pending": Change(sorted(done), graph_to_table("pending", failed))}


def compact(run: Run, idle: bool = False) -> None:
    """What has become many small files, as a generation of its own; `idle`: see tables.compact."""
    with run.stage("compact"):
        versions = run.compacted(idle)
        if versions is None:
            return
        run.commit(run.manifest.following(tables=versions))


def _commit(run: Run, versions: Mapping[str, int], numbers: Mapping[str, int], many: int) -> None:
    """`many`: communities, each of which has a report."""
    parameters = {**run.parameters, **(run.models.parameters() if run.models else {})}
    before = run.manifest.parameters.get("embedding", "")
    parameters["embedding"] = parameters.get("embedding") or before
    run.commit(
        run.manifest.following(
            tables=dict(versions),
            next=dict(numbers),
            counters={**run.manifest.counters, "communities": many, "reports": many},
            communities_generation=run.manifest.generation + 1,
            stale=[],
            parameters=parameters,
        )
    )


def _waiting(run: Run) -> list[Row]:
    """Descriptions and reports that a model may write now."""
    models = run.models
    if models is None:
        return []
    asked = {"entity": "describe", "relationship": "describe", "report": "report"}
    kinds = {kind for kind, of in asked.items() if models.asker.may_answer(of)}
    rows = run.snapshot().rows("pending").to_pylist()
    again = [pending(one.kind, one.subject, "", "answered again") for one in run.corrections]
    waiting = {row["id"]: row for row in [*again, *rows] if row["kind"] in kinds}
    return [waiting[id] for id in sorted(waiting)]


def _over(run: Run, communities: Container[str], written: Container[str]) -> list[str]:
    """Pending rows of communities that have been reported now, and of what is no longer there; all,
    when no one is to be asked any more."""
    snapshot = run.snapshot()
    rows = snapshot.rows("pending").to_pylist()
    if run.models is None or run.models.reports is None:
        return [row["id"] for row in rows]
    over = [
        row
        for row in rows
        if row["kind"] == "report"
        and (row["subject"] in written or row["subject"] not in communities)
    ]
    for kind, table in descriptions.OF_TABLE.items():
        mine = [row for row in rows if row["kind"] == kind]
        ids = sorted(row["subject"] for row in mine)
        there = set(snapshot.by_key(table, ids, "id", ["id"])["id"].to_pylist())
        over += [row for row in mine if row["subject"] not in there]
    return [row["id"] for row in over]


def _ends(run: Run, texts: Mapping[str, str]) -> set[str]:
    """Entities whose communities may have to be reported again because a description changed."""
    if not texts:
        return set()
    rows = run.snapshot().by_key("relationships", sorted(texts), "id", ["source_id", "target_id"])
    return {*texts, *rows["source_id"].to_pylist(), *rows["target_id"].to_pylist()}


def _claimed(run: Run) -> set[str]:
    """The same because of claims: entities by the names that these are about."""
    if not run.claimed:
        return set()
    ids = {entity_id(name) for name in run.claimed}
    direct = run.snapshot().by_key("entities", sorted(ids), "id", ["id"])["id"].to_pylist()
    if len(direct) == len(ids):
        return ids
    # other names of some
    rows = run.snapshot().rows("entities", columns=["id", "names"]).combine_chunks()
    at = pc.list_parent_indices(rows["names"])
    said = pc.is_in(pc.list_flatten(rows["names"]), pa.array(sorted(run.claimed)))
    return {*direct, *rows["id"].take(pc.unique(at.filter(said))).to_pylist()}


def _vectors_missing(run: Run) -> bool:
    if run.vectors is None or not run.vectors.asker.embeds:
        return False
    snapshot = run.snapshot()
    return any(
        snapshot.count(table) != snapshot.count(vectors) for table, vectors in VECTORS.items()
    )


def _want(run: Run, changes: Mapping[str, Change]) -> None:
    for table, change in changes.items():
        run.vectors.want(table, change.rows, change.gone, run.snapshot())


def _early(run: Run) -> Callable[[Sequence[Any]], object]:
    if run.vectors is not None and run.vectors.asker.embeds:
        return run.vectors.early
    return lambda _: None


def _want_rest(run: Run) -> None:
    """Vectors of what has none yet."""
    if run.vectors is not None and run.vectors.asker.embeds:
        before = run.manifest.parameters.get("embedding", "")
        run.vectors.want_missing(
            run.snapshot(), bool(before) and before != run.vectors.asker.embedding_model
        )


@dataclass
class _Beside:
    """The generation to come, with the vectors that were asked for so far. NOT a commit."""

    run: Run
    base: Manifest

    def take(self, future: Future[Any]) -> Any:
        """The result of work on the asker's loop; vectors that come meanwhile are written."""
        while not future.done() and self._coming(future):
            pass
        return self.run.take(future)

    def written(self) -> Manifest:
        while self._coming():
            pass
        return self.base

    def _coming(self, *others: Future[Any]) -> bool:
        """Write vectors as they come, a table at a time, since all of them at once are a tenth of
        the memory of a run; False when there are none to come."""
        vectors = self.run.vectors
        if coming := vectors.coming() if vectors is not None else []:
            self.run.check()
            wait([*others, *coming], 0.25, FIRST_COMPLETED)
        for name, change in vectors.changes() if vectors is not None else ():
            self.write({name: change})
            del change
        return bool(coming)

    def write_reports(self, change: Change) -> None:
        """Write some of the reports, and have them embedded."""
        self.run.check()
        if self.run.vectors is not None:
            _want(self.run, {"reports": change})
        self.write({"reports": change})

    def write(self, changes: Mapping[str, Change]) -> None:
        self.base = replace(self.base, tables=self.run.apply(self.base, changes))
