"""The commit of summaries: of documents that have none, whose question is another one, or whose
question was left open. The rows of a document go with it (documents.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphrag_mcp.index import documents
from graphrag_mcp.index.documents import Run
from graphrag_mcp.index.graph import graph_to_table
from graphrag_mcp.index.summaries import Written, parts_of, summarise
from graphrag_mcp.index.units import pending
from graphrag_mcp.store.tables import Change, values_of

Row = dict[str, Any]
KIND = "summary"
DOCUMENTS = 500  # read at once, so that the memory is bounded by them
COLUMNS = ["id", "uri", "title", "text", "metadata"]


def summaries(run: Run, refresh: bool) -> None:
    """Bring the table to what the documents and the replies about them are. `refresh`: every question
    is asked again."""
    if run.manifest is None:
        return
    models, snapshot = run.models, run.snapshot()
    fingerprint = models.summaries.fingerprint if models.summaries else ""
    before = run.manifest.parameters.get("summaries", "")
    if not fingerprint and not before:
        return
    rows = snapshot.rows("pending", f"kind = '{KIND}'").to_pylist()
    open_ = {row["subject"] for row in rows}
    open_ |= {one.subject for one in run.corrections if one.kind == KIND}
    there = snapshot.rows("documents", columns=["id", "uri"]).to_pylist()
    have = set(values_of(snapshot.rows("summaries", columns=["document_id"])["document_id"]))
    again = refresh or fingerprint != before
    wanted = [
        row["id"]
        for row in sorted(there, key=lambda row: row["uri"])
        if again or row["id"] not in have or row["id"] in open_
    ]
    written: list[Written] = []
    if fingerprint:
        with run.stage("summaries"):
            for start in range(0, len(wanted), DOCUMENTS):
                run.progress("summaries", start, len(wanted))
                written += _written(run, wanted[start : start + DOCUMENTS])
    made = [one.row() for one in written if one.summary is not None]
    missing = {one.part.document_id: one for one in written if one.summary is None}
    left = [pending(KIND, id, one.part.uri, one.reason) for id, one in missing.items()]
    same = {row["id"]: row["reason"] for row in rows} == {row["id"]: row["reason"] for row in left}
    if not made and same and not again:
        return
    replaced = {row["document_id"] for row in made} if fingerprint and not again else have
    gone = {row["id"] for row in (*rows, *left)}
    run.write(
        {
            "summaries": Change(sorted(replaced & have), graph_to_table("summaries", made)),
            "pending": Change(sorted(gone), graph_to_table("pending", left)),
        }
    )
    run.parameters = {**run.manifest.parameters, **run.parameters, "summaries": fingerprint}
    whole = {row["document_id"] for row in made if row["place"] == 0}
    moved = len(whole) - len(documents.summarised(snapshot, sorted(replaced & have)))
    documents.commit_draft(run, run.manifest.sources, [], run.manifest.next, {"summarised": moved})


def _written(run: Run, ids: Sequence[str]) -> list[Written]:
    rows = run.snapshot().served("documents", list(ids), COLUMNS)
    parts = [parts_of(row) for row in rows]
    run.check()
    asker = run.models.asker
    return run.take(asker.start(summarise(asker, parts, run.models.summaries)))
