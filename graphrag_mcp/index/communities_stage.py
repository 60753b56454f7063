"""The second commit of a run: communities, reports and vectors of the current graph.

Until then results say that communities are stale. What a model could not write stays in the table
`pending`, and is asked again by the next run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from functools import partial

from graphrag_mcp.index.communities import ClusterParams, Hierarchy
from graphrag_mcp.index.graph import graph_to_table
from graphrag_mcp.index.losses import pending
from graphrag_mcp.index.reporting import COLUMNS, Reporting, changed, fingerprints, library_of
from graphrag_mcp.index.run import Run
from graphrag_mcp.index.tree import compare, links_of, topics_ahead, tree_of
from graphrag_mcp.index.vectors import Vectors, missing
from graphrag_mcp.store.schema import VECTOR_FORM, VECTORS
from graphrag_mcp.store.tables import Change

REPORTED_ENTITIES = 10_000  # of communities that are reported at once: 100 MB


def begin_topics(run: Run) -> None:
    """Divide the texts that were written, beside the merge of what they name."""
    given = run.draft_snapshot(), _params(run), run.check_ended
    run.topics = run.beside.submit(topics_ahead, *given)


def ask_vectors(run: Run, table: str) -> None:
    """Ask for the vectors of a table's rows as soon as their texts are settled. What a limit leaves of calls
    is for reports first."""
    asker = run.models.asker
    if run.models.embedding and asker.embeds and not asker.budget.limited:
        run.vectors[table] = Vectors(asker, run.draft_snapshot(), table)


def communities(run: Run, recluster: bool) -> None:
    """Everything that depends on the graph as a whole; where it changed or was left open."""
    numbers = dict(run.committed.next)
    ask_vectors(run, "entities")
    with run.stage("communities"):
        ahead = run.take(run.topics) if run.topics else None
        tree = tree_of(run.snapshot(), _params(run), links_of(run.snapshot()), recluster, ahead)
        run.topics = None
        del ahead
        moved, number_of = compare(run.snapshot(), tree, numbers)
    run.check()
    run.progress("reports", 0, len(tree.communities))
    with run.stage("reports"):
        run.write(moved)
        del moved  # before the reports are made
        run.write(_pending(run, _report(run, tree, number_of)))
    _embed(run)
    _commit(run, numbers, tree)
    run.progress("reports", len(tree.communities), len(tree.communities))


def embed(run: Run) -> None:
    """The vectors that are missing, where nothing else is due."""
    _embed(run)
    named = {"embedding": run.models.embedding, "vectors": VECTOR_FORM}
    parameters = {**run.committed.parameters, **named}
    run.commit(run.committed.following(tables=dict(run.draft.tables), parameters=parameters))


def _params(run: Run) -> ClusterParams:
    return ClusterParams(run.settings.max_cluster_size, run.settings.seed)


def _embed(run: Run) -> None:
    """Write the vectors of the rows that have none, once in a run."""
    asker = run.models.asker
    if run.embedded or not (run.models.embedding and asker.embeds):
        return
    run.embedded = True
    with run.stage("vectors"):
        done, left = 0, missing(run.draft_snapshot())
        for table in VECTORS:
            asked = run.vectors.pop(table, None) or Vectors(asker, run.draft_snapshot(), table)
            for change in asked.changes(run.take):
                run.progress("vectors", done, left)
                run.write(change)
                done += sum(table.rows.num_rows for table in change.values() if table.rows)


def _report(run: Run, tree: Hierarchy, numbers: Mapping[str, int]) -> dict[str, str]:
    """Write the reports that changed; why which is not by a model although one was asked."""
    snapshot = run.draft_snapshot()
    library = library_of(snapshot)
    prints = fingerprints(snapshot, tree, links_of(snapshot), run.models, library)
    stored = set(snapshot.rows("reports", columns=["id"])["id"].to_pylist())
    corrected = {correction.subject for correction in run.corrections if correction.kind == "report"}
    degraded: dict[str, str] = {}
    meanwhile = partial(_embed, run) if run.vectors else lambda: None
    for part in _in_parts(tree, changed(snapshot, tree, prints, corrected)):
        run.check()
        reporting = Reporting(run.draft_snapshot(), tree, run.models, part, run.take, library, run.executor)
        rows = []
        for id, report in sorted(reporting.write(meanwhile).items()):
            row = {name: getattr(report, name) for name in COLUMNS}
            # Without a fingerprint what a model could not write is made again by the next run.
            row["fingerprint"] = "" if id in reporting.unsure else prints[id]
            row |= {"n": numbers[id], "terms": reporting.terms(report)}
            rows.append(row)
        run.write({"reports": Change(sorted(part & stored), graph_to_table("reports", rows))})
        degraded |= reporting.degraded
        del reporting, rows  # before the next part is read
    return degraded


def _in_parts(tree: Hierarchy, communities: Collection[str]) -> Iterator[set[str]]:
    """The communities in parts that are reported one after another, or memory would grow with the
    graph. What lies in one coarsest community is in one part."""
    below: dict[str, list[str]] = defaultdict(list)  # by coarsest community
    for id in communities:
        top = id
        while tree.communities[top].parent:
            top = tree.communities[top].parent
        below[top].append(id)
    part: set[str] = set()
    size = 0
    for top, ids in sorted(below.items()):
        part.update(ids)
        size += len(tree.communities[top].members)
        if size >= REPORTED_ENTITIES:
            yield part
            part, size = set(), 0
    if part:
        yield part


def _pending(run: Run, degraded: Mapping[str, str]) -> dict[str, Change]:
    """The change of the table `pending`: what no model could write this time, in the place of what
    none could write before; nothing, where no one is to be asked any more."""
    rows = [pending("report", id, "", why) for id, why in degraded.items()]
    texts = ["extract"] if run.models.reports is not None else []
    texts += ["summary"] if run.models.summaries is not None else []
    before = run.snapshot().rows("pending", columns=["id", "kind"]).to_pylist()
    removed = {row["id"] for row in before if row["kind"] not in texts}
    removed |= {row["id"] for row in rows}
    return {"pending": Change(sorted(removed), graph_to_table("pending", rows))} if removed else {}


def _commit(run: Run, numbers: Mapping[str, int], tree: Hierarchy) -> None:
    manifest = run.committed
    parameters = {**run.parameters, **run.models.parameters(), "topics": tree.made_of}
    many = len(tree.communities)  # each has a report
    for name in ("embedding", "vectors"):  # a run without that model leaves the vectors
        parameters[name] = parameters[name] or run.parameters.get(name, "")
    run.commit(
        manifest.following(
            tables=dict(run.draft.tables),
            next=dict(numbers),
            counters={**manifest.counters, "communities": many, "reports": many},
            communities_generation=manifest.generation + 1,
            stale=[],
            parameters=parameters,
        )
    )
