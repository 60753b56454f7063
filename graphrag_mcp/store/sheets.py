"""Rows of sheets (csv, JSON, Parquet): documents that hold the columns of one row and no text.

A sheet of 1,500 rows is one file of a folder, so its rows have a topic of their own and count as one
document in an overview."""

from __future__ import annotations

import json
from collections.abc import Collection

from graphrag_mcp.store.tables import Snapshot, rows_of
from graphrag_mcp.text.terms import lists_of
from graphrag_mcp.text.uris import file_and_key


def sheets_of(snapshot: Snapshot, documents: Collection[str]) -> dict[str, str]:
    """The rows of sheets among these documents, by id, with the URI of their file.

    Most lines of such a row are columns, which its metadata hold as well. Rows with a text, such as
    articles, and mails of a box are none. Empty where one sheet is all that there is."""
    rows = rows_of(snapshot.rows("documents", "uri LIKE '%#%'", ["id", "uri"]))
    files = lists_of((file_and_key(uri)[0], id) for id, uri in sorted(rows) if id in documents)
    first_of = {ids[0]: file for file, ids in files.items() if len(ids) > 1}
    sheets = dict[str, str]()
    for id, text, metadata in rows_of(snapshot.by_key("documents", list(first_of), "id", ["id", "text", "metadata"])):
        columns = {name.casefold() for name in json.loads(metadata or "{}")}
        names = [line.partition(":")[0].casefold() for line in text.splitlines()]
        if 2 * sum(name in columns for name in names) > len(names):
            sheets.update(dict.fromkeys(files[first_of[id]], first_of[id]))
    alone = len(sheets) == len(documents) and len(set(sheets.values())) == 1
    return {} if alone else sheets
