"""The second commit: long descriptions, communities, reports and vectors of the graph as it is now.

Takes the run of a call after its documents were committed; gives a new manifest in `run.manifest`. Until then results
say that communities are stale. What a model could not write stays in the table `pending`, and is asked again by the
next run. Knows no files, no formats and no names.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_mcp.index import descriptions, hierarchy
from graphrag_mcp.index.commits import Run, now
from graphrag_mcp.index.communities import ClusterParams, Hierarchy
from graphrag_mcp.index.graph import to_table
from graphrag_mcp.index.mentions import entity_id
from graphrag_mcp.index.model_units import pending
from graphrag_mcp.store.manifest import Manifest
from graphrag_mcp.store.schema import VECTORS
from graphrag_mcp.store.tables import Change

Row = dict[str, Any]


def communities(run: Run, recluster: bool) -> None:
    """Everything that depends on the graph as a whole, where it changed or was left open."""
    manifest, models = run.manifest, run.models
    if manifest is None:
        return
    waiting = _waiting(run)
    anew = models is not None and manifest.parameters.get("reports", "") != models.parameters()["reports"]
    over = not (models and models.describe) and run.snapshot().count("pending") > 0
    if not (manifest.stale or recluster or anew or waiting or over or _vectors_missing(run)):
        return
    numbers = dict(manifest.next)
    # Without a complete list of what earlier calls touched (one was killed), every report is compared.
    complete = manifest.communities_generation == run.first_generation and not anew
    writes = models is not None and models.describe is not None
    started = descriptions.begin(run.snapshot(), waiting, models, run.asked) if writes else None
    with run.stage("communities"):
        links, tree, clustering, by = _clustered(run, recluster, complete)
        moved = hierarchy.compare(run.snapshot(), tree, numbers)
    run.progress("reports", 0, len(tree.communities))
    with run.stage("reports"):
        described = descriptions.finish(started, waiting, run.take) if started else None
        if described and run.vectors is not None:
            _want(run, described.changes)
        texts = described.texts if described else {}
        touched = run.touched | _ends(run, texts) | _claimed(run) if complete else None
        # With those above: their reports may be made of what stands there without a model.
        retry = hierarchy.and_above(tree, {row["subject"] for row in waiting if row["kind"] == "report"})
        vectors = _Beside(run, run.manifest)  # written while the reports are being asked for
        made = hierarchy.report(
            run.snapshot(), tree, touched, numbers, models=models, texts=texts, retry=retry, take=vectors.take,
            moved=moved, edges=links, embed=_early(run),
        )  # fmt: skip
    with run.stage("write"):
        changes = {**(described.changes if described else {}), **made.changes}
        answered = described.done if described else []
        failed = [*described.failed] if described else []
        failed += [pending("report", id, "", why) for id, why in made.degraded.items()]
        answered += [row["id"] for row in waiting if row["kind"] == "report"]  # or not worth a call any more
        done = {*answered, *_over(run, tree.communities, made.written, writes), *(row["id"] for row in failed)}
        if done:
            changes["pending"] = Change(sorted(done), to_table("pending", failed))
        _want_rest(run, changes)
        vectors.write(changes)  # while the last vectors are on their way
        versions = vectors.written().tables
        parameters = {**run.parameters, **(models.parameters() if models else {})}
        parameters["clustering"], parameters["clustered"] = clustering, by
        parameters["embedding"] = parameters.get("embedding") or manifest.parameters.get("embedding", "")
        _commit(run, versions, numbers, made.counters, parameters)
    with run.stage("compact"):
        versions = run.compacted()
        if versions is not None:
            generation = run.manifest.generation + 1
            run.commit(replace(
                run.manifest, generation=generation, created=now(), tables=versions, communities_generation=generation
            ))  # fmt: skip
    run.progress("reports", len(tree.communities), len(tree.communities))


def _clustered(run: Run, recluster: bool, complete: bool) -> tuple[pa.Table, Hierarchy, dict[str, float], str]:
    """The relationships, their hierarchy, how many entities were touched since it was compared with what Leiden gives,
    and what it was made by. `complete`: all that was touched since the last one is known."""
    snapshot, params = run.snapshot(), ClusterParams(run.settings.max_cluster_size, run.settings.seed)
    links, by = hierarchy.links_of(snapshot), hierarchy.made_by(snapshot, params)
    known = complete and by and run.manifest.parameters.get("clustered") == by
    before, entities = run.manifest.parameters.get("clustering", {}), snapshot.count("memberships")
    unchecked, moved = (before.get(name, 0) + len(run.touched) for name in ("unchecked", "moved"))
    check = not known or unchecked > hierarchy.UNCHECKED * entities
    afresh = entities <= hierarchy.SMALL or moved > hierarchy.MOVED * entities
    tree = hierarchy.recluster(snapshot, params, recluster, links, run.touched if known else None, check, afresh)
    waiting = {"unchecked": 0 if check else unchecked, "moved": 0 if afresh or recluster else moved}
    return links, tree, {"modularity": round(tree.modularity, 5), **waiting}, by


def _commit(
    run: Run, versions: Mapping[str, int], numbers: Mapping[str, int], counters: Mapping[str, int],
    parameters: Mapping[str, Any],
) -> None:  # fmt: skip
    generation = run.manifest.generation + 1
    run.commit(replace(
        run.manifest, generation=generation, created=now(), tables=dict(versions), next=dict(numbers),
        counters={**run.manifest.counters, **counters}, communities_generation=generation, stale=[],
        parameters=dict(parameters),
    ))  # fmt: skip


def _waiting(run: Run) -> list[Row]:
    """Descriptions and reports that a model may write now."""
    models = run.models
    if models is None or "pending" not in run.manifest.tables:
        return []
    kinds = {
        kind for kind, asked in (("entity", "describe"), ("relationship", "describe"), ("report", "report"))
        if models.asker.may_answer(asked)
    }  # fmt: skip
    rows = run.snapshot().rows("pending").to_pylist()
    return sorted((row for row in rows if row["kind"] in kinds), key=lambda row: row["id"])


def _over(run: Run, communities: Container[str], written: Container[str], writes: bool) -> list[str]:
    """Pending rows of communities that have been reported now, and of what is no longer there; all, when nobody is to
    be asked any more."""
    if "pending" not in run.manifest.tables:
        return []
    snapshot = run.snapshot()
    rows = snapshot.rows("pending").to_pylist()
    if not writes:
        return [row["id"] for row in rows]
    over = [row for row in rows if row["kind"] == "report"
            and (row["subject"] in written or row["subject"] not in communities)]  # fmt: skip
    for kind, table in descriptions.OF_TABLE.items():
        mine = [row for row in rows if row["kind"] == kind]
        there = set(snapshot.by_key(table, sorted(row["subject"] for row in mine), "id", ["id"])["id"].to_pylist())
        over += [row for row in mine if row["subject"] not in there]
    return [row["id"] for row in over]


def _ends(run: Run, texts: Mapping[str, str]) -> set[str]:
    """Entities whose communities may have to be reported anew because a description changed."""
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
    rows = run.snapshot().rows("entities", columns=["id", "names"]).combine_chunks()  # other names of some
    at = pc.list_parent_indices(rows["names"])
    said = pc.is_in(pc.list_flatten(rows["names"]), pa.array(sorted(run.claimed)))
    return {*direct, *rows["id"].take(pc.unique(at.filter(said))).to_pylist()}


def _vectors_missing(run: Run) -> bool:
    if run.vectors is None or not run.vectors.asker.embeds:
        return False
    snapshot = run.snapshot()
    return any(snapshot.count(table) != snapshot.count(vectors) for table, vectors in VECTORS.items())


def _want(run: Run, changes: Mapping[str, Change]) -> None:
    for table, change in changes.items():
        run.vectors.want(table, change.rows, change.gone, run.snapshot())


def _early(run: Run) -> Callable[[Sequence[Any]], object]:
    return run.vectors.early if run.vectors is not None and run.vectors.asker.embeds else lambda _: None


def _want_rest(run: Run, changes: Mapping[str, Change]) -> None:
    """Vectors of the reports that this commit writes, and of what has none yet."""
    if run.vectors is None:
        return
    _want(run, {table: change for table, change in changes.items() if table == "reports"})
    if run.vectors.asker.embeds:
        before = run.manifest.parameters.get("embedding", "")
        run.vectors.want_missing(run.snapshot(), bool(before) and before != run.vectors.asker.embedding_model)


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
        """With all vectors."""
        while self._coming():
            pass
        return self.base

    def _coming(self, *others: Future[Any]) -> bool:
        """Write vectors as they come, a table at a time, since all of them at once are a tenth of the memory of a run;
        False when there are none to come."""
        vectors = self.run.vectors
        if coming := vectors.coming() if vectors is not None else []:
            self.run.check()
            wait([*others, *coming], 0.25, FIRST_COMPLETED)
        for name, change in vectors.changes() if vectors is not None else ():
            self.write({name: change})
            del change
        return bool(coming)

    def write(self, changes: Mapping[str, Change]) -> None:
        self.base = replace(self.base, tables=self.run.apply(self.base, changes))
