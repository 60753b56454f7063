"""The life of a corpus: formats that say what must not be lost, rows that other settings made, its end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graphrag_mcp.cli.main import main
from graphrag_mcp.doctor.generations import digest, rollback
from graphrag_mcp.errors import BadInput, Busy, NotFound
from graphrag_mcp.exchange import importing
from graphrag_mcp.exchange.export import export
from graphrag_mcp.index import (
    batches,
    documents,
    models,
    removal,
    report_extractive,
    reporting,
    run,
)
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.jobs import delete
from graphrag_mcp.jobs import queue as records
from graphrag_mcp.settings import Settings
from graphrag_mcp.sources import diff, read
from graphrag_mcp.sources.document import Document
from graphrag_mcp.store import manifest as manifests
from graphrag_mcp.store.segments import live_documents
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest
from tests.index.test_index import index
from tests.support.files import written
from tests.support.promises import doctor

# ---- formats ------------------------------------------------------------------------------------

EARLIER = 2  # the format up to which the release before edits and imports reads


def format_on_disk(corpus: Path) -> int:
    return json.loads((corpus / "manifest.json").read_bytes())["format"]


def test_an_earlier_release_refuses_an_index_only_when_it_would_lose_edits_or_imports(tmp_path: Path) -> None:
    docs, corpus = written(tmp_path / "docs"), tmp_path / "c"
    index(corpus, docs)
    assert format_on_disk(corpus) <= EARLIER
    first = manifests.read(corpus)
    removal.write_down(corpus, removal.choose(corpus, ["d1"]), "cli:ada")
    assert format_on_disk(corpus) > EARLIER
    assert manifests.read(corpus).format == first.format, "to this release both are one format"
    index(corpus, docs)  # and nothing is derived again for it
    assert format_on_disk(corpus) > EARLIER and doctor(corpus) == []
    rollback(corpus, first.generation)
    assert format_on_disk(corpus) <= EARLIER and doctor(corpus) == [], "without edits there is nothing to lose"

    export(open_snapshot(corpus), tmp_path / "out")
    importing.import_folder(tmp_path / "other", tmp_path / "out", Settings())
    assert format_on_disk(tmp_path / "other") > EARLIER


def test_rows_that_another_release_derived_are_told_until_they_are_derived_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    docs, home = written(tmp_path / "docs"), tmp_path / "home"

    def status() -> str:
        assert main(["status", "--home", str(home), "--json"]) == 0
        return json.loads(capsys.readouterr().out.splitlines()[-1])["hint"]

    with monkeypatch.context() as earlier:
        earlier.setattr(run, "DERIVATION", manifests.DERIVATION - 1)
        assert main(["index", str(docs), "--home", str(home)]) == 0
    capsys.readouterr()
    assert "Another release" in status()
    assert main(["index", str(docs), "--home", str(home)]) == 0
    capsys.readouterr()
    assert "Another release" not in status()


GUILD, CITY = "國際漁業協會", "臺北市"


# ---- rows that other settings made ----------------------------------------------------------------


def half_way(corpus: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Indexing with new settings, stopped when the first documents have been derived again."""
    monkeypatch.setattr(batches, "BATCH_PASSAGES", 4)
    before = manifests.read(corpus).generation
    stopped = lambda: manifests.read(corpus).generation > before  # noqa: E731
    index_documents(corpus, IndexRequest(), settings, cancelled=stopped)
    assert manifests.read(corpus).generation > before

def test_files_that_readers_of_an_earlier_release_read_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs, corpus, fresh = tmp_path / "docs", tmp_path / "c", tmp_path / "fresh"
    docs.mkdir()
    for n in range(3):
        (docs / f"{n}.md").write_text(f"# Letter {n}\n\nAda Fenn wrote letter {n} in Skerrow.\n\nJonas Petrie answered.\n", "utf-8")

    load = read.load

    def earlier(file: Any, *rest: Any) -> Iterator[Document]:
        for document in load(file, *rest):
            yield replace(document, text=document.text.partition("\n\nJonas")[0])

    def texts() -> list[bool]:
        rows = live_documents(corpus, manifests.read(corpus), ["uri", "text"]).to_pylist()
        return ["Jonas Petrie answered." in row["text"] for row in sorted(rows, key=lambda row: row["uri"])]

    with monkeypatch.context() as release:
        release.setattr(diff, "READERS", diff.READERS - 1)
        release.setattr(read, "load", earlier)
        index(corpus, docs)
    assert texts() == [False] * 3
    with monkeypatch.context() as small:
        small.setattr(batches, "BATCH_PASSAGES", 1)
        small.setattr(documents, "commit_batch", ends_after(documents.commit_batch, 1))
        with pytest.raises(KilledHere):
            index(corpus, docs)
    assert texts().count(True) == 1, "a run that ends after its first batch has read one file with the readers of this release"
    index(corpus, docs / "2.md")
    assert texts()[2] and index(corpus, docs / "2.md").counts["unchanged"] == 1
    index(corpus, docs)
    assert texts() == [True] * 3
    index(fresh, docs)
    assert digest(open_snapshot(corpus)) == digest(open_snapshot(fresh))
    assert index(corpus, docs).counts["unchanged"] == 3
    before = manifests.read(corpus).generation
    index(corpus, docs)
    assert manifests.read(corpus).generation == before


def test_a_release_that_makes_other_reports_makes_those_of_an_unchanged_index_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs, corpus, fresh = tmp_path / "docs", tmp_path / "c", tmp_path / "fresh"
    docs.mkdir()
    for n in range(3):
        (docs / f"{n}.md").write_text(f"# Letter {n}\n\nAda Fenn wrote letter {n} in Skerrow. Jonas Petrie answered.\n", "utf-8")
    compose = report_extractive.compose
    with monkeypatch.context() as release:
        for module in (models, reporting):
            release.setattr(module, "REPORT_FORM", "0")
        release.setattr(report_extractive, "compose", lambda *given: replace(compose(*given), summary="Of an earlier release."))
        index(corpus, docs)
    assert index(corpus, docs).counts["unchanged"] == 3
    index(fresh, docs)
    assert digest(open_snapshot(corpus)) == digest(open_snapshot(fresh))
    before = manifests.read(corpus).generation
    index(corpus, docs)
    assert manifests.read(corpus).generation == before


class KilledHere(Exception):
    pass


def ends_after(commit: Callable[..., None], batches_written: int) -> Callable[..., None]:
    left = iter(range(batches_written))

    def written_or_killed(*args: Any, **options: Any) -> None:
        if next(left, None) is None:
            raise KilledHere
        commit(*args, **options)

    return written_or_killed


def test_texts_cut_by_other_settings_than_the_manifest_names_are_found_and_derived_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs, corpus = written(tmp_path / "docs", 12), tmp_path / "c"
    index(corpus, docs)
    assert doctor(corpus) == []
    half_way(corpus, replace(Settings(), chunk_size=60, chunk_overlap=5, passage_size=30), monkeypatch)
    found = [one for one in doctor(corpus) if one.kind == "parameters"]
    assert {"text_units"} <= {one.where for one in found} and "doctor --repair" in found[0].repair
    left = doctor(corpus, True, lambda folder: index_documents(folder, IndexRequest(), Settings()))
    assert left and all(one.repaired for one in left)
    index(tmp_path / "fresh", docs)
    assert digest(open_snapshot(corpus))["content"] == digest(open_snapshot(tmp_path / "fresh"))["content"]


# ---- the end ------------------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name in ("kb", "kb-2"):
        index(tmp_path / "home" / "corpora" / name, written(tmp_path / name))
    return tmp_path / "home"


def everything(place: Path) -> set[Path]:
    return {path for path in place.rglob("*") if "jobs" not in path.parts}


def test_a_corpus_is_deleted_and_nothing_else(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "kept.md").write_text("kept")
    kb = home / "corpora" / "kb"
    (kb / "prompts").symlink_to(precious)
    (kb / "lost").symlink_to("/nowhere")
    before = everything(tmp_path)
    where = ["--home", str(home)]
    assert main(["delete", "kb", *where]) == 0
    said = capsys.readouterr().out
    assert "5 documents" in said and "--yes" in said and kb.exists()
    assert main(["delete", "kb", "--yes", "--json", *where]) == 0
    assert json.loads(capsys.readouterr().out)["deleted"] is True
    assert before - everything(tmp_path) == {path for path in before if path == kb or kb in path.parents}
    assert everything(tmp_path) <= before and (precious / "kept.md").read_text() == "kept"
    assert main(["delete", "kb", "--yes", *where]) == 2 and "kb-2" in capsys.readouterr().err
    index(kb, tmp_path / "kb")  # and it can be made again
    assert doctor(kb) == []


def test_a_link_in_the_place_of_a_corpus_and_names_that_lead_elsewhere_are_refused(home: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kb"
    (home / "corpora" / "link").symlink_to(kept)
    for name in ("link", "../corpora/kb", "..", ".", "", "/etc", "kb/tables"):
        with pytest.raises((BadInput, NotFound)):
            delete.delete(home, name)
        assert main(["delete", name, "--yes", "--home", str(home)]) == 2
    assert len(list(kept.rglob("*.md"))) == 5 and (home / "corpora" / "kb" / "manifest.json").exists()


@pytest.mark.parametrize("work", ["a job", "a lead", "a writer", "a mark"])
def test_a_corpus_at_work_is_not_deleted(home: Path, work: str) -> None:
    def refused() -> None:
        with pytest.raises(Busy):
            delete.delete(home, "kb")
        assert (home / "corpora" / "kb" / "manifest.json").exists()

    if work == "a job":
        job = records.Job("job-1", "kb", request={}, started=records.now())
        records.open_up(home, job)
        refused()
        records.close(home, job, "done")
    elif work == "a mark":
        records.marker(home, "kb", records.MERGE).parent.mkdir(parents=True, exist_ok=True)
        records.marker(home, "kb", records.MERGE).touch()
        refused()
        records.marker(home, "kb", records.MERGE).unlink()
    else:
        place = home / "jobs" / "lead" / "kb" if work == "a lead" else home / "corpora" / "kb"
        with manifests.writer_lock(place, 1.0):
            refused()
    assert delete.delete(home, "kb").documents == 5 and not (home / "corpora" / "kb").exists()


def test_what_a_killed_deletion_has_left_goes_with_the_next_one_of_that_corpus(home: Path) -> None:
    corpora = home / "corpora"
    (corpora / "kb").rename(corpora / ".deleted-0123abcd-kb")
    delete.delete(home, "kb-2")
    assert [path.name for path in corpora.iterdir()] == [".deleted-0123abcd-kb"], "that was no part of kb-2"
    index(corpora / "kb", written(home.parent / "new"))
    delete.delete(home, "kb")
    assert list(corpora.iterdir()) == []
