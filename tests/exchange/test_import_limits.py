"""What a table of another program may hold: a small file can stand for more than memory has."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphrag_mcp.exchange import files, graphrag, lightrag

TEXT = "x" * 1_000_000
LARGE: dict[str, dict[str, Any]] = {
    "rows": {"id": pa.array(["x"]).take(pa.array([0] * 6_000_000, pa.int32()))},
    "items": {"id": ["a"], "text_unit_ids": pa.array([["x"] * 6_000_000])},
    "texts": {"id": pa.DictionaryArray.from_arrays(pa.array([0] * 600, pa.int32()), pa.array([TEXT]))},
    "lists of texts": {"id": ["a"], "text_unit_ids": [[TEXT] * 550]},
    "one text": {"id": ["a"], "text": ["x" * 40_000_000]},
    "one text among short ones": {"id": ["a"] * 50, "text": ["x"] * 49 + ["x" * 40_000_000]},
    "objects": {"id": ["a"], "findings": [[{"summary": TEXT}] * 550]},
}


@pytest.mark.parametrize("kind", LARGE)
def test_a_table_that_decodes_to_too_much_is_refused(tmp_path: Path, kind: str) -> None:
    pq.write_table(pa.table(LARGE[kind]), tmp_path / "entities.parquet", compression="zstd")
    assert (tmp_path / "entities.parquet").stat().st_size < 100_000
    with pytest.raises(files.Unreadable, match="at most"):
        files.rows_of(tmp_path, "entities")


def test_tables_that_hold_too_much_together_are_refused_in_their_order(tmp_path: Path) -> None:
    """1.6 million rows of one column are a limit, though each table is below its own."""
    rows = pa.table({"title": pa.array(["x"]).take(pa.array([0] * 900_000, pa.int32()))})
    for name in ("entities", "relationships"):
        pq.write_table(rows, tmp_path / f"{name}.parquet", compression="zstd")
    found = files.Foreign("graphrag")
    tables = graphrag.tables_of(tmp_path, found)
    assert len(tables["entities"]) == 900_000 and not tables["relationships"]
    (fault,) = [what for name, what in found.faults if name == "relationships.parquet"]
    assert "900,000 rows, and of all tables together at most 8,000,000 values" in fault


DEEP = ("[" * 100_000, '{"a":' * 5_000 + "1" + "}" * 5_000)


@pytest.mark.parametrize("value", [*DEEP, "7", '"x"', "[7]", "{}", "NaN"])
def test_json_of_any_form_in_a_column_is_no_error(tmp_path: Path, value: str) -> None:
    row = {"id": "a", "title": "A", "text": "t", "metadata": value, "findings": value, "text_unit_ids": value, "community": 1}
    for table in files.TABLES:
        pq.write_table(pa.Table.from_pylist([row]), tmp_path / f"{table}.parquet")
    assert graphrag.read(tmp_path).entities


@pytest.mark.parametrize("value", [*DEEP, "7", "[]", '{"k": 7}', '{"k": {"content": 7, "chunk_ids": {}}}', '{"data": 7}'])
def test_a_file_of_lightrag_of_any_form_is_a_fault_and_no_error(tmp_path: Path, value: str) -> None:
    for name in (files.CHUNKS, files.DOCS, files.STATUS, "kv_store_entity_chunks.json", "vdb_chunks.json"):
        (tmp_path / name).write_text(value, "utf-8")
    lightrag.read(tmp_path)


DENSE = '{"d1": [' + "[]," * 4_000_000 + "0]}"
GRAPHML = '<?xml version="1.0"{}?><graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="undirected">{}</graph></graphml>'


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        (files.DOCS, DENSE.encode(), "values, and at most 5,000,000"),
        (files.GRAPH, GRAPHML.format("", '<node id="a"/>' * 2_100_000).encode(), "2,100,002 elements, and at most 2,000,000"),
        (files.GRAPH, GRAPHML.format(' encoding="UTF-16"', "<a></a>" * 2_100_000).encode("utf-16"), "elements, and at most 2,000,000"),
        (files.GRAPH, GRAPHML.format("", "<a></a>" * 2_100_000).encode("utf-16-be"), "elements, and at most 2,000,000"),
        (files.DOCS, ('{"quote": "\\"", ' + DENSE[1:]).encode("utf-16-le"), "values, and at most 5,000,000"),
    ],
    ids=["values", "elements", "other encoding", "without its mark", "values in another encoding"],
)
def test_a_file_of_lightrag_that_holds_too_much_is_refused(tmp_path: Path, name: str, content: bytes, what: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(files.Unreadable, match=what):
        (files.graph_of(tmp_path) if name == files.GRAPH else files.json_of(tmp_path, name))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs, links and strange names")
def test_a_file_of_lightrag_that_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / files.CHUNKS).write_text("{}", "utf-8")
    os.mkfifo(tmp_path / files.DOCS)
    with pytest.raises(files.Unreadable, match="no regular file"):
        files.json_of(tmp_path, files.DOCS)
