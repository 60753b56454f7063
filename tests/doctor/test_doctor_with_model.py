"""Doctor, digest and export of what only a model writes: descriptions, vectors, what is still to be asked."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from campaigns import bits
from graphrag_mcp.doctor.generations import digest
from graphrag_mcp.exchange.export import SCHEMAS, export
from graphrag_mcp.store import manifest as manifests
from graphrag_mcp.store.schema import TABLES
from graphrag_mcp.store.tables import Change, apply, open_snapshot
from tests.doctor.test_doctor import spoil
from tests.support.promises import doctor


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index with what only a model writes: descriptions, reports, vectors."""
    return bits.build(tmp_path_factory.mktemp("told"), 5)


@pytest.fixture
def read_by_model(told: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(told, tmp_path / "kb"))


MODEL_LIES: list[tuple[str, dict[str, Any], str]] = [
    ("evidence", {"relationship_id": ""}, "evidence"),
    ("entities_vectors", {"id": "0" * 32}, "dangling"),
]


@pytest.mark.parametrize(("table", "change", "kind"), MODEL_LIES, ids=[f"{one[0]}-{[*one[1]][0]}" for one in MODEL_LIES])
def test_broken_promises_of_what_a_model_said_are_found(
    read_by_model: Path, table: str, change: dict[str, Any], kind: str
) -> None:
    if table.endswith("_vectors"):
        spoil_vectors(read_by_model, table, change)
    else:
        spoil(read_by_model, table, change)
    assert kind in {finding.kind for finding in doctor(read_by_model)}


def spoil_vectors(folder: Path, table: str, change: dict[str, Any]) -> None:
    """A vector table written again, its first row another."""
    manifest = manifests.read(folder)
    assert manifest is not None
    rows = open_snapshot(folder).rows(table).to_pylist()
    rows = [row if at else row | change for at, row in enumerate(rows)]
    named = {name: version for name, version in manifest.tables.items() if name != table}
    shutil.rmtree(folder / "tables" / f"{table}.lance")
    change_ = Change(rows=pa.Table.from_pylist(rows, TABLES[table]))
    tables = apply(folder, replace(manifest, tables=named), {table: change_})
    manifests.commit(folder, replace(manifest, generation=manifest.generation + 1, tables=tables))


def test_what_is_still_to_be_asked_must_be_there(read_by_model: Path) -> None:
    manifest = manifests.read(read_by_model)
    assert manifest is not None
    snapshot = open_snapshot(read_by_model)
    unit = snapshot.rows("text_units", columns=["id"])["id"].to_pylist()[0]
    uri = snapshot.rows("documents", columns=["uri"])["uri"].to_pylist()[0]
    rows = [
        {"id": f"{kind}:{subject}", "kind": kind, "subject": subject, "uri": where, "reason": "budget"}
        for kind, subject, where in (("extract", unit, uri), ("entity", "0" * 32, ""), ("poem", unit, uri))
    ]  # fmt: skip
    change = Change(rows=pa.Table.from_pylist(rows, TABLES["pending"]))
    tables = apply(read_by_model, manifest, {"pending": change})
    counters, generation = {**manifest.counters, "pending": 0}, manifest.generation + 1
    manifests.commit(read_by_model, replace(manifest, generation=generation, tables=tables, counters=counters))
    found = {(finding.kind, finding.what.split(":")[0]) for finding in doctor(read_by_model)}
    assert found == {("dangling", "entity"), ("dangling", "poem"), ("count", "3 rows, the manifest counts 0")}


@pytest.mark.parametrize(
    ("table", "change"),
    [("mentions", {"description": "Another"}), ("evidence", {"description": "Another"}),
     ("relationships", {"keywords": "another"})],
)  # fmt: skip
def test_the_digest_covers_what_a_model_said_and_not_who_said_it(
    read_by_model: Path, table: str, change: dict[str, Any]
) -> None:
    before = digest(open_snapshot(read_by_model))
    spoil(read_by_model, "mentions", {"by": "agent:somebody"})
    assert digest(open_snapshot(read_by_model)) == before
    spoil(read_by_model, table, change)
    after = digest(open_snapshot(read_by_model))
    assert [name for name in before if before[name] != after[name]] == ["content"]


def test_what_a_model_wrote_is_exported(read_by_model: Path, tmp_path: Path) -> None:
    export(open_snapshot(read_by_model), tmp_path / "out")
    tables = {name: pq.read_table(tmp_path / "out" / f"{name}.parquet").to_pylist() for name in SCHEMAS}
    stored = {row["id"]: row["keywords"] for row in open_snapshot(read_by_model).rows("relationships").to_pylist()}
    assert {row["id"]: row["keywords"] for row in tables["relationships"]} == stored and all(stored.values())
    assert "llm" in {row["method"] for row in tables["community_reports"]}
    assert {row["stale"] for row in tables["community_reports"]} == {False}
    manifest = manifests.read(read_by_model)
    assert manifest is not None
    manifests.commit(read_by_model, replace(manifest, generation=manifest.generation + 1, stale=["communities"]))
    export(open_snapshot(read_by_model), tmp_path / "out")
    assert set(pq.read_table(tmp_path / "out" / "community_reports.parquet")["stale"].to_pylist()) == {True}
