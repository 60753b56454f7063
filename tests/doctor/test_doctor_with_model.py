"""Doctor, digest and export of what only a model writes: descriptions, claims, vectors, what is still to be asked."""

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
    """An index with what only a model writes: descriptions, claims, reports, vectors."""
    return bits.build(tmp_path_factory.mktemp("told"), 5)


@pytest.fixture
def read_by_model(told: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(told, tmp_path / "kb"))


MODEL_LIES: list[tuple[str, dict[str, Any], str]] = [
    ("claims", {"spans": lambda row: [row["spans"][0] + 1, *row["spans"][1:]]}, "span"),
    ("claims", {"quotes": ["never said"]}, "span"),
    ("claims", {"quotes": [], "spans": []}, "span"),
    ("claims", {"text_unit_id": "0" * 32}, "dangling"),
    ("claims", {"subject_id": "0" * 32}, "dangling"),
    ("claims", {"n": 2**40}, "number"),
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
    [("claims", {"status": "FALSE"}), ("claims", {"spans": [0, 1]}), ("claims", {"quotes": ["x"]}),
     ("mentions", {"description": "Another"}), ("evidence", {"description": "Another"}),
     ("relationships", {"keywords": "another"})],
)  # fmt: skip
def test_the_digest_covers_what_a_model_said_and_not_who_said_it(
    read_by_model: Path, table: str, change: dict[str, Any]
) -> None:
    before = digest(open_snapshot(read_by_model))
    spoil(read_by_model, "mentions", {"by": "agent:somebody"})
    spoil(read_by_model, "claims", {"n": 900})
    assert digest(open_snapshot(read_by_model)) == before
    spoil(read_by_model, table, change)
    after = digest(open_snapshot(read_by_model))
    assert [name for name in before if before[name] != after[name]] == ["content"]


def test_claims_are_exported_as_covariates_that_join_by_title(read_by_model: Path, tmp_path: Path) -> None:
    counts = export(open_snapshot(read_by_model), tmp_path / "out")
    tables = {name: pq.read_table(tmp_path / "out" / f"{name}.parquet").to_pylist() for name in SCHEMAS}
    claims, units = tables["covariates"], {row["id"]: row for row in tables["text_units"]}
    assert counts["covariates"] == len(claims) == open_snapshot(read_by_model).count("claims") > 0
    assert pq.read_schema(tmp_path / "out" / "covariates.parquet").names == [
        "id", "human_readable_id", "covariate_type", "type", "description", "subject_id", "object_id", "status",
        "start_date", "end_date", "source_text", "text_unit_id",
    ]  # fmt: skip
    titles = {row["title"] for row in tables["entities"]}
    for row in claims:
        unit = units[row["text_unit_id"]]
        assert row["id"] in unit["covariate_ids"] and row["source_text"].split("\n")[0] in unit["text"]
        assert (row["covariate_type"], row["status"] in ("TRUE", "FALSE", "SUSPECTED")) == ("claim", True)
    assert {row["subject_id"] for row in claims} <= titles
    assert sum(len(unit["covariate_ids"]) for unit in units.values()) == len(claims)
    stored = {row["id"]: row["keywords"] for row in open_snapshot(read_by_model).rows("relationships").to_pylist()}
    assert {row["id"]: row["keywords"] for row in tables["relationships"]} == stored and all(stored.values())
    assert "llm" in {row["method"] for row in tables["community_reports"]}
    assert {row["stale"] for row in tables["community_reports"]} == {False}
    manifest = manifests.read(read_by_model)
    assert manifest is not None
    manifests.commit(read_by_model, replace(manifest, generation=manifest.generation + 1, stale=["communities"]))
    export(open_snapshot(read_by_model), tmp_path / "out")
    assert set(pq.read_table(tmp_path / "out" / "community_reports.parquet")["stale"].to_pylist()) == {True}
