"""Import of the tables of Microsoft GraphRAG (2.x and 3.x) and of our own export. What is missing or
does not open is said in the notes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from graphrag_mcp.exchange import files
from graphrag_mcp.exchange.files import number
from graphrag_mcp.sources.decode import clean, iso_date
from graphrag_mcp.store import stored

# Of every run; reports may have been left out.
NEEDED = ("documents", "text_units", "entities", "relationships")
OPTIONAL = ("covariates", "summaries")
Row = dict[str, Any]


def read(folder: Path) -> files.Foreign:
    """Everything that can be read of the folder's tables."""
    found = files.Foreign("graphrag")
    convert(tables_of(folder, found), found)
    return found


def tables_of(folder: Path, found: files.Foreign) -> dict[str, list[Row]]:
    """The rows of every table, none for one that cannot be read; `found` is told which these are."""
    room = files.Room()
    return {
        name: found.opened(
            f"{name}.parquet",
            partial(files.rows_of, folder, name, room),
            expected=name not in OPTIONAL,
            needed=name in NEEDED,
        )
        or []
        for name in (*files.TABLES, "summaries")
    }


def convert(tables: Mapping[str, list[Row]], found: files.Foreign) -> None:
    """Fill `found` with what the tables hold."""
    documents, units, ends = tables["documents"], tables["text_units"], tables["relationships"]
    ours = bool(documents) and {"uri", "metadata", "raw_data"} <= documents[0].keys()
    found.program = "graphrag-mcp" if ours else "graphrag"
    found.documents = [_document(row, ours) for row in documents]
    found.units = [_unit(row, number) for number, row in enumerate(units)]
    found.entities = [_entity(row, number) for number, row in enumerate(tables["entities"])]
    found.relations = [_relation(row, number) for number, row in enumerate(ends)]
    found.note(len(tables["covariates"]), "claims", "left out (GraphRAG's covariates)")
    found.communities = _communities(tables["communities"])
    found.reports = [_report(row, ours) for row in tables["community_reports"]]
    found.summaries = tables.get("summaries", []) if ours else []


def text(row: Mapping[str, Any], *names: str) -> str:
    """The first of these fields that holds text, without signs that no table takes."""
    return clean(files.text(row, *names))


def _document(row: Row, ours: bool) -> files.SourceDocument:
    metadata = row["metadata"] if not files.empty(row.get("metadata")) else row.get("raw_data")
    metadata = _parsed(metadata)
    kept = metadata if isinstance(metadata, dict) else {}
    if not ours:  # the row of a table that a document was made of repeats its text
        repeated = ("text", "raw_content", "id", "title")
        others = {key: field for key, field in kept.items() if key not in repeated}
        kept = {key: field for key, field in others.items() if field not in (None, row.get("text"))}
    kept, created = json.loads(json.dumps(kept, default=str)), text(row, "creation_date")
    title, body = text(row, "title", "id"), text(row, "text")
    if not ours:
        return files.SourceDocument(text(row, "id"), title, body, "", kept, iso_date(created))
    fields = row.get("title") or title, row.get("text") or body, text(row, "uri")
    return files.SourceDocument(text(row, "id"), *fields, kept, created)


def _unit(row: Row, place: int) -> files.SourceUnit:
    documents = files.ids(row, "document_ids") or [text(row, "document_id")]
    span = (files.whole(row, name) for name in ("char_start", "char_end"))
    body = row.get("text")
    return files.SourceUnit(
        text(row, "id"),
        _numbered(row, place),
        body if isinstance(body, str) else "",
        [id for id in documents if id],
        *(-1 if at is None else at for at in span),
    )


def _numbered(row: Row, place: int) -> int:
    known = files.whole(row, "human_readable_id", "short_id")
    return place if known is None else known


def _parsed(value: Any) -> Any:
    """A value that may be written as JSON; None where that cannot be read."""
    try:
        return stored.value(value, nan=True) if isinstance(value, str) else value
    except ValueError:
        return None


def _entity(row: Row, place: int) -> files.SourceEntity:
    return files.SourceEntity(
        text(row, "id"),
        _numbered(row, place),
        " ".join(text(row, "title").split())[:300],
        " ".join(text(row, "type").split())[:80],
        text(row, "description").strip(),
        files.ids(row, "text_unit_ids"),
        text(row, "key"),
        files.ids(row, "aliases"),
    )


def _relation(row: Row, place: int) -> files.SourceRelation:
    weight = number(row, "weight")
    words = ", ".join(word for part in text(row, "keywords").split(",") if (word := part.strip()))
    return files.SourceRelation(
        text(row, "id"),
        _numbered(row, place),
        " ".join(text(row, "source").split())[:300],
        " ".join(text(row, "target").split())[:300],
        text(row, "description").strip(),
        words,
        1.0 if weight is None else weight,
        files.ids(row, "text_unit_ids"),
    )


def _communities(rows: list[Row]) -> list[files.SourceCommunity]:
    found = []
    for row in rows:
        community = files.whole(row, "community", "human_readable_id")
        if community is None:
            continue
        level, parent = files.whole(row, "level") or 0, files.whole(row, "parent")
        found.append(files.SourceCommunity(community, level, parent, files.ids(row, "entity_ids")))
    return found


def _report(row: Row, ours: bool) -> files.SourceReport:
    listed = _parsed(row.get("findings"))
    findings = (
        finding if isinstance(finding, dict) else {"summary": str(finding)}
        for finding in (listed if isinstance(listed, list) else ())
    )
    pairs = [(text(finding, "summary"), text(finding, "explanation")) for finding in findings]
    community = files.whole(row, "community", "human_readable_id")
    method = text(row, "method") or "imported:graphrag-mcp"
    return files.SourceReport(
        -1 if community is None else community,
        " ".join(text(row, "title").split()),
        text(row, "summary"),
        text(row, "full_content"),
        number(row, "rank"),
        text(row, "rating_explanation"),
        pairs,
        method if ours else "imported:graphrag",
    )
