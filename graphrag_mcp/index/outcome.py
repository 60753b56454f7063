"""What a call of indexing says of itself: counts, errors, and what a model still has to answer.

Takes the run and its plan when everything is committed; gives an `IndexResult`. Reads, and changes nothing.
"""

from __future__ import annotations

from collections import Counter

from graphrag_mcp.index.commits import Run
from graphrag_mcp.index.plan import Plan
from graphrag_mcp.types import IndexResult

DEGRADED = 1_000  # rows of the list of what a model could not answer


def _pending(run: Run) -> tuple[dict[str, int], list[dict[str, str]]]:
    """What a model has still to answer: how many by kind, and the first of them with the reason."""
    if run.manifest is None or "pending" not in run.manifest.tables:
        return {}, []
    snapshot = run.snapshot()
    rows = sorted(snapshot.rows("pending").to_pylist(), key=lambda row: row["id"])
    shown = rows[:DEGRADED]
    tables_of = {"entity": "entities", "relationship": "relationships", "report": "reports"}
    alias = {"entity": "e", "relationship": "r", "report": "c"}
    numbers: dict[str, str] = {}
    for kind in ("extract", "entity", "relationship", "report"):
        ids = [row["subject"] for row in shown if row["kind"] == kind or (kind, row["kind"]) == ("extract", "claims")]
        found = snapshot.by_key(tables_of.get(kind, "text_units"), ids, "id", ["id", "n"])
        letter = alias.get(kind, "t")
        numbers |= {row["id"]: f"{letter}{row['n']}" for row in found.to_pylist()}
    listed = [
        {"kind": row["kind"], "id": numbers.get(row["subject"], row["subject"]), "document": row["uri"],
         "reason": row["reason"]}
        for row in shown
    ]  # fmt: skip
    return dict(sorted(Counter(row["kind"] for row in rows).items())), listed


def result(run: Run, plan: Plan, status: str) -> IndexResult:
    pending, degraded = _pending(run)
    if run.vectors is not None and run.vectors.failed:
        pending["embedding"] = run.vectors.failed
        why = run.models.asker.why_no_vectors
        degraded.append({"kind": "embedding", "id": "", "document": "", "reason": why})
    counters = run.manifest.counters if run.manifest else {}
    done = sum(run.counts[name] for name in ("added", "changed")) + plan.unchanged
    counts = {name: run.counts[name] for name in ("added", "changed", "removed")} | {"unchanged": plan.unchanged}
    kinds = ("documents", "text_units", "passages", "entities", "relationships", "communities")
    return IndexResult(
        status=status, corpus=run.folder.name, done=done, total=done + len(plan.errors), errors=plan.errors,
        counts=counts | {f"{kind}_total" if kind == "documents" else kind: counters.get(kind, 0) for kind in kinds},
        skipped=dict(sorted(plan.found.skipped.items())),
        usage=run.models.asker.spent().record(), pending=pending, degraded=degraded,
        hint=" ".join(filter(None, [*plan.notes, run.models.asker.note])),
        seconds={name: round(value, 3) for name, value in run.seconds.items()},
    )  # fmt: skip
