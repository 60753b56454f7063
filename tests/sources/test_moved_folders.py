"""A folder that was moved or renamed and is indexed again: the same documents, not twice as many."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from graphrag_mcp.doctor.generations import digest
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.jobs import run, start
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.manifest import read
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest, IndexResult
from tests.support.files import written
from tests.support.promises import doctor


def index(corpus: Path, *paths: Path, **options: bool) -> IndexResult:
    return index_documents(corpus, IndexRequest(paths=tuple(map(str, paths)), **options), Settings())


def uris(corpus: Path) -> list[str]:
    return sorted(open_snapshot(corpus).rows("documents", columns=["uri"])["uri"].to_pylist())


def as_fresh(corpus: Path, *paths: Path) -> bool:
    fresh = corpus.with_name("fresh")
    shutil.rmtree(fresh, ignore_errors=True)
    index(fresh, *paths)
    return (
        uris(fresh) == uris(corpus)
        and digest(open_snapshot(fresh))["content"] == digest(open_snapshot(corpus))["content"]
    )


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    index(tmp_path / "c", written(tmp_path / "docs"))
    return tmp_path / "c"


def test_an_empty_folder_in_the_old_place_is_no_folder_of_documents(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "docs").rename(tmp_path / "papers")
    (tmp_path / "docs").mkdir()
    result = index(corpus, tmp_path / "papers")
    assert "5 of its 5 files were found again" in result.hint and as_fresh(corpus, tmp_path / "papers")
    assert index(corpus, tmp_path / "docs").counts["removed"] == 0, "what it held lives in the other"


def test_a_folder_that_was_emptied_has_no_documents_any_more(corpus: Path, tmp_path: Path) -> None:
    other = written(tmp_path / "other", seed=2)
    index(corpus, other)
    for path in list((tmp_path / "docs").iterdir()):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert index(corpus, tmp_path / "docs", other, remove_missing=True).counts["removed"] == 5
    assert as_fresh(corpus, other)


@pytest.mark.core
@pytest.mark.parametrize("place", ["elsewhere/docs", "papers"])
def test_a_folder_that_moved_is_the_same_documents_under_the_names_of_a_fresh_index(
    corpus: Path, tmp_path: Path, place: str
) -> None:
    new = tmp_path / place
    new.parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "docs").rename(new)
    (new / "0.md").unlink()
    (new / "1.md").write_text("# Ada\n\nAda Lovelace has been at work here since.", "utf-8")
    result = index(corpus, new)
    assert "3 of its 5 files were found again" in result.hint and result.counts["documents_total"] == 4
    assert as_fresh(corpus, new) and doctor(corpus) == []
    assert [source["path"] for source in read(corpus).sources.values()] == [str(new)]
    assert index(corpus, new).hint == "", "and it is told once"


def test_a_folder_that_keeps_its_name_keeps_its_documents_as_they_are(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "on").mkdir()
    (tmp_path / "docs").rename(tmp_path / "on" / "docs")
    result = index(corpus, tmp_path / "on" / "docs")
    assert result.counts["unchanged"] == 5 and result.counts["added"] == result.counts["removed"] == 0


def test_the_folder_above_may_be_what_is_named_and_a_source_inside_moves_along(tmp_path: Path) -> None:
    docs, corpus, other = written(tmp_path / "docs"), tmp_path / "c", written(tmp_path / "other", 3, seed=2)
    index(corpus, docs / "sub")
    index(corpus, docs)
    index(corpus, other)
    (tmp_path / "above").mkdir()
    docs.rename(tmp_path / "above" / "docs")
    index(corpus, tmp_path / "above")
    assert as_fresh(corpus, other, tmp_path / "above")


def test_a_large_folder_that_was_renamed_is_not_taken_for_one_that_was_lost(tmp_path: Path) -> None:
    docs, corpus = tmp_path / "docs", tmp_path / "c"
    (docs / "a").mkdir(parents=True)
    for number in range(24):
        (docs / "a" / f"{number}.md").write_text(f"Ada Lovelace wrote note {number}.", "utf-8")
    index(corpus, docs)
    (docs / "a").rename(docs / "b")  # a folder inside
    assert index(corpus, docs).counts["documents_total"] == 24
    docs.rename(tmp_path / "papers")  # and the root
    assert index(corpus, tmp_path / "papers").counts["documents_total"] == 24
    assert as_fresh(corpus, tmp_path / "papers")


@pytest.mark.core
def test_where_it_is_not_certain_nothing_goes_and_the_result_says_what_to_do(corpus: Path, tmp_path: Path) -> None:
    new = tmp_path / "papers"
    (tmp_path / "docs").rename(new)
    for name in ("0.md", "1.md", "3.md", "sub/2.md"):
        (new / name).write_text(f"# Another\n\nMary Somerville wrote {name} anew in Edinburgh.", "utf-8")
    result = index(corpus, new)
    assert "1 of its 5 files" in result.hint and "remove_missing" in result.hint
    assert result.counts["documents_total"] == 10 and len(uris(corpus)) == 10
    assert index(corpus, new, remove_missing=True).counts["documents_total"] == 5
    assert as_fresh(corpus, new)


def test_a_corpus_that_an_earlier_call_doubled_is_told_and_can_be_put_right(corpus: Path, tmp_path: Path) -> None:
    new = tmp_path / "on" / "docs"
    shutil.copytree(tmp_path / "docs", new)
    index(corpus, new)  # both are there: two folders
    assert len(uris(corpus)) == 10
    shutil.rmtree(tmp_path / "docs")
    assert "remove_missing" in index(corpus, new).hint and len(uris(corpus)) == 10
    index(corpus, new, remove_missing=True)
    assert as_fresh(corpus, new)


def test_a_copy_beside_the_folder_and_a_folder_of_others_move_nothing(corpus: Path, tmp_path: Path) -> None:
    shutil.copytree(tmp_path / "docs", tmp_path / "copy")
    assert index(corpus, tmp_path / "copy").hint == "" and len(uris(corpus)) == 10
    shutil.rmtree(tmp_path / "docs")
    other = index(corpus, written(tmp_path / "other", 3, seed=9))
    assert other.hint == "" and len(uris(corpus)) == 13


def test_a_link_left_in_the_old_place_leads_to_where_the_folder_is_now(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "docs").rename(tmp_path / "papers")
    (tmp_path / "docs").symlink_to(tmp_path / "papers")
    index(corpus, tmp_path / "docs")
    assert as_fresh(corpus, tmp_path / "papers")


def test_a_job_tells_the_documents_of_the_folder_by_their_new_names(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home", roots=(tmp_path,))
    docs = written(tmp_path / "docs")
    start.run_job(settings, start.start(settings, "kb", IndexRequest(paths=(str(docs),))).job_id)
    (tmp_path / "on").mkdir()
    docs.rename(tmp_path / "on" / "docs")
    job = start.run_job(settings, start.start(settings, "kb", IndexRequest(paths=(str(tmp_path / "on" / "docs"),))).job_id)
    assert job.status == "done" and "taken as moved" in job.result["hint"]
    states = run.states(settings.home, job)
    assert len(states) == 5 and all(one["uri"].startswith("docs/") for one in states)
