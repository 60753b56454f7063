"""What a call of indexing did, as it is returned: counts, errors, what is open and why."""

from __future__ import annotations

from collections import Counter
from typing import Any

from graphrag_mcp.index import vectors
from graphrag_mcp.index.losses import RECORDS, refused_kinds, totals
from graphrag_mcp.index.run import Row, Run
from graphrag_mcp.sources.diff import Plan
from graphrag_mcp.store.tables import notes_alone, open_questions
from graphrag_mcp.text.terms import lists_of
from graphrag_mcp.types import IndexResult

DEGRADED = 1_000  # rows of the list of what a model could not answer
# The tables that rows of `pending` speak of, by kind, and the letters of their aliases.
TABLES_OF = {"report": ("reports", "c")}


def result(run: Run, plan: Plan, status: str) -> IndexResult:
    rows = open_questions(run.snapshot()) if run.manifest else []
    rows.sort(key=lambda row: row["id"])
    pending, degraded = (dict(sorted(Counter(row["kind"] for row in rows).items())), _degraded(run, rows))
    refused = refused_kinds(rows)
    if run.models.embedding and (without := vectors.missing(run.snapshot_before())):
        pending["embedding"] = without
        why = run.models.asker.why_no_vectors
        degraded.append({"kind": "embedding", "id": "", "document": "", "reason": why})
    capped = ""
    if run.capped:
        texts = "1 text unit has" if len(run.capped) == 1 else f"{len(run.capped):,} text units have"
        more = "more names, or pairs of names, than the graph keeps"
        capped = f"{texts} {more}; search_text finds the others."
    lost = sorted(run.losses, key=lambda row: (-row["dropped"] - row["repaired"], row["id"]))
    degraded += _degraded(run, lost, RECORDS)
    counters = run.manifest.counters if run.manifest else {}
    counts = {name: run.counts[name] for name in ("added", "changed", "removed")}
    done = counts["added"] + counts["changed"] + plan.unchanged
    counts |= {"unchanged": plan.unchanged, "documents_total": counters.get("documents", 0)}
    alone = notes_alone(run.snapshot()) if run.manifest else ""
    kinds = ("text_units", "passages", "entities", "relationships", "communities")
    return IndexResult(
        **of_plan(run, plan, status, capped, alone, run.models.note, run.models.asker.note),
        done=done,
        total=done + len(plan.errors),
        counts=counts | {kind: counters.get(kind, 0) for kind in kinds},
        usage=run.models.asker.spent().record(),
        pending=pending,
        refused=refused,
        degraded=degraded,
        losses=totals(run.losses),
        seconds={name: round(value, 3) for name, value in run.seconds.items()},
    )


def of_plan(run: Run, plan: Plan, status: str, *notes: str) -> dict[str, Any]:
    """The fields of a result that tell what was found to read."""
    return {
        "status": status,
        "corpus": run.folder.name,
        "errors": plan.errors,
        "skipped": dict(sorted(plan.found.skipped.items())),
        "skipped_files": plan.found.named,
        "hint": " ".join(filter(None, [*plan.notes, *notes])),
    }


def _degraded(run: Run, rows: list[Row], kind: str = "") -> list[dict[str, str]]:
    """The first rows of `pending` or `losses`, with their aliases; of `kind`, where given."""
    shown, texts = rows[:DEGRADED], ("text_units", "t")
    ids = lists_of((TABLES_OF.get(row["kind"], texts), row["subject"]) for row in shown)
    alias: dict[str, str] = {}
    for (table, letter), subjects in ids.items():
        found = run.snapshot().by_key(table, sorted(subjects), "id", ["id", "n"]).to_pylist()
        alias |= {row["id"]: f"{letter}{row['n']}" for row in found}
    found = []
    for row in shown:
        subject = alias.get(row["subject"], row["subject"])
        entry = {"kind": kind or row["kind"], "id": subject}
        found.append(entry | {"document": row["uri"], "reason": row["reason"]})
    return found
