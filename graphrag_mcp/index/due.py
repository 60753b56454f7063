"""What a run has to bring up to date besides the documents. It is asked before the stage that does it is
imported."""

from __future__ import annotations

from graphrag_mcp.index import vectors
from graphrag_mcp.index.run import Run


def summaries(run: Run) -> bool:
    """Are there summaries, or are there to be some?"""
    if run.manifest is None:
        return False
    return bool(run.models.summaries or run.manifest.parameters.get("summaries", ""))


def communities(run: Run, recluster: bool) -> bool:
    """Did the graph as a whole change, or was something of it left open?"""
    manifest, models = run.manifest, run.models
    if manifest is None:
        return False
    again = manifest.parameters.get("reports", "") != models.parameters()["reports"]
    return bool(manifest.stale or recluster or again or _is_open(run))


def embedding(run: Run) -> bool:
    """Are there rows without a vector that a model would give one?"""
    if run.manifest is None:
        return False
    asked = run.models.embedding and run.models.asker.embeds
    return bool(asked and vectors.missing(run.snapshot()))


def _is_open(run: Run) -> bool:
    """Is there something that a model may answer now, or that no one is to answer any more?"""
    if run.manifest is None or "pending" not in run.manifest.tables:
        return bool(run.corrections)
    kinds = set(run.snapshot().rows("pending", columns=["kind"])["kind"].to_pylist())
    if run.models.reports is None:
        return bool(kinds - {"summary"})
    asks = {"entity": "describe", "relationship": "describe", "report": "report"}
    asked = {asks[kind] for kind in kinds if kind in asks}
    return bool(run.corrections) or any(map(run.models.asker.may_answer, asked))
