"""Summaries that a model or an agent wrote, as results show them."""

from __future__ import annotations

from collections.abc import Sequence

from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.store.tables import Snapshot

LONGEST = 800  # characters of a summary that is shown
COLUMNS = ["document_id", "place", "text", "unsupported"]


def of_documents(snapshot: Snapshot, ids: Sequence[str]) -> dict[str, str]:
    """The summary of each of these documents that has one, by content id. What a summary says and its
    text does not have stands behind it."""
    if "summaries" not in snapshot.manifest.tables:
        return {}
    rows = snapshot.by_key("summaries", list(ids), "document_id", COLUMNS).to_pylist()
    return {
        row["document_id"]: shown(row["text"], row["unsupported"])
        for row in rows
        if row["place"] == 0
    }


def shown(text: str, unsupported: Sequence[str]) -> str:
    """A summary in one line, marked where it says what its text does not."""
    missing = f"(not in the text: {', '.join(unsupported)})" if unsupported else ""
    return " ".join(filter(None, [one_line(text, LONGEST), one_line(missing, LONGEST)]))
