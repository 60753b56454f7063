"""The handle of the open things: corpus names, which corpus is read, which paths may be read; and job records."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from graphrag_mcp.app import App, checked_name, corpus_name
from graphrag_mcp.errors import BadInput, NotFound, OutsideRoots
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.jobs import queue, start
from graphrag_mcp.server import build_server
from graphrag_mcp.settings import Settings
from graphrag_mcp.store import manifest
from graphrag_mcp.store.manifest import Manifest
from graphrag_mcp.tools import contract
from graphrag_mcp.types import IndexRequest, InlineText
from tests.support.client import connected
from tests.support.command import run_cli
from tests.support.openai_server import openai_server


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "docs").mkdir(parents=True)
    (root / "docs" / "a.md").write_text("# A\n\nAda Lovelace wrote to Charles Babbage.\n", "utf-8")
    return root


@pytest.fixture
def app(tmp_path: Path, project: Path) -> App:
    return App(Settings(home=tmp_path / "home", roots=(project,)))


def indexed(app: App, corpus: str, **sources: str) -> None:
    """A corpus that exists: a committed manifest is what makes it one."""
    folders = {label: {"path": path, "kind": "folder"} for label, path in sources.items()}
    manifest.commit(app.folder(corpus), Manifest(corpus, generation=1, sources=folders))


# ---- which corpus ---------------------------------------------------------------------------------


def test_a_corpus_is_named_after_the_folder_and_six_digits_of_its_path(tmp_path: Path) -> None:
    one, other = tmp_path / "x" / "My Docs", tmp_path / "y" / "My Docs"
    for folder in (one, other):
        folder.mkdir(parents=True)
    assert corpus_name(one).startswith("my-docs-") and len(corpus_name(one)) == len("my-docs-") + 6
    assert corpus_name(one) != corpus_name(other)
    assert corpus_name(one) == corpus_name(one / ".." / "My Docs")


@pytest.mark.parametrize("folder", ["研究 资料", "...", "données", "a" * 300, "हिन्दी"])
def test_the_name_made_from_any_folder_is_itself_a_valid_name(folder: str) -> None:
    name = corpus_name(Path("/somewhere") / folder)
    assert checked_name(name) == name


@pytest.mark.parametrize("name", ["", ".hidden", "a/b", "a\\b", "..", "a b", "a\0b", "x" * 201, "ends.", "a:b", "*"])
def test_a_name_that_could_leave_the_home_folder_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match="cannot be used"):
        checked_name(name)


def test_writing_goes_to_the_named_corpus_else_to_the_first_folders(app: App, project: Path) -> None:
    docs = project / "docs"
    assert app.corpus_for_writing("papers", str(docs)) == "papers"
    assert app.corpus_for_writing("", str(docs)) == corpus_name(docs)
    assert app.corpus_for_writing("", str(docs / "a.md")) == corpus_name(docs)
    assert app.corpus_for_writing() == corpus_name(project)
    assert App(Settings(home=app.home)).corpus_for_writing() == "notes"


def test_a_call_without_a_corpus_updates_the_one_that_searches_read_where_it_holds_all_that_is_named(
    app: App, project: Path, tmp_path: Path
) -> None:
    docs, notes = project / "docs", project / "notes"
    notes.mkdir()
    (notes / "n.md").write_text("A note.\n", "utf-8")
    indexed(app, "papers", docs=str(docs), notes=str(notes))

    def updated(*paths: Path) -> str:
        return app.corpus_to_update("", [str(path) for path in paths])

    assert updated(docs) == updated(docs / "a.md") == updated(docs, notes) == "papers"
    assert updated() == "papers", "texts without a folder"
    (docs / "new").mkdir()
    assert updated(docs / "new") == "papers", "a part of a folder of it"
    assert app.corpus_to_update("mine", [str(docs)]) == "mine"
    assert App(app.settings, "mine").corpus_to_update("", [str(docs)]) == "mine"
    without_roots = App(Settings(home=app.home))
    assert without_roots.corpus_to_update("", [str(docs)]) == corpus_name(docs)
    other = project / "drawings"
    other.mkdir()
    (other / "b.md").write_text("A drawing.\n", "utf-8")
    assert updated(other) == corpus_name(other)
    assert updated(project) == updated(project, docs) == corpus_name(project), "it may hold more than the corpus"
    assert updated(docs, other) == corpus_name(docs)
    indexed(app, corpus_name(docs), docs=str(docs))
    assert updated(docs / "a.md") == corpus_name(docs), "the one of this folder, which there is"


def test_a_corpus_of_a_folder_above_the_roots_is_not_updated(app: App, project: Path, tmp_path: Path) -> None:
    indexed(app, "all-of-it", all=str(tmp_path))
    assert app.corpus_for_reading() == "all-of-it"
    assert app.corpus_to_update("", [str(project)]) == corpus_name(project)
    assert app.corpus_to_update("", []) == corpus_name(project)


def test_reading_takes_the_first_roots_corpus_else_the_only_one_else_asks(app: App, project: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"no index yet.*index_documents"):
        app.corpus_for_reading()
    indexed(app, "elsewhere", theirs=str(tmp_path / "other"))
    assert app.corpus_for_reading() == "elsewhere"
    indexed(app, "another", theirs=str(tmp_path / "third"))
    with pytest.raises(NotFound, match=r"2 corpora.*another, elsewhere"):
        app.corpus_for_reading()
    indexed(app, "part", docs=str(project / "docs"))
    assert app.corpus_for_reading() == "part"  # the only one with a folder of this project
    indexed(app, corpus_name(project), project=str(project))
    assert app.corpus_for_reading() == corpus_name(project)
    assert app.corpus_for_reading("another") == "another"


# ---- which paths ----------------------------------------------------------------------------------


def test_paths_inside_a_root_resolve_and_relative_ones_start_at_the_first_root(app: App, project: Path) -> None:
    expected = (project / "docs" / "a.md").resolve()
    given = ["docs/a.md", "./docs/../docs/a.md", str(expected), f"  {expected} ", expected.as_uri(), "docs//a.md"]
    assert [app.allowed(path) for path in given] == [expected] * len(given)
    assert app.allowed(".") == project.resolve()


def test_no_path_leads_out_of_the_roots(app: App, project: Path, tmp_path: Path) -> None:
    secret = tmp_path / "project-secret"  # a sibling whose name begins like the root's
    secret.mkdir()
    (secret / "key.txt").write_text("secret", "utf-8")
    (project / "link").symlink_to(secret)
    (project / "docs" / "file-link.txt").symlink_to(secret / "key.txt")
    (project / "up").symlink_to("..")
    outside = [
        "..", "../project-secret", "../project-secret/key.txt", "docs/../../project-secret", str(secret), "/", "/etc/passwd",
        "/proc/self/environ", "link", "link/key.txt", "docs/file-link.txt", "up/project-secret/key.txt", "~", "~/.ssh/id_rsa",
        secret.as_uri(), "file:///etc/passwd", "file:///%65tc/passwd", "docs/../../../../../../etc/shadow", str(project) + "-secret",
        str(project.parent / "does-not-exist"), "/no/such/thing", "link/../project-secret",
    ]  # fmt: skip
    for path in outside:
        with pytest.raises(OutsideRoots, match="GRAPHRAG_MCP_ROOTS") as caught:
            app.allowed(path)
        assert str(project) in str(caught.value)


@pytest.mark.parametrize("path", ["", "   ", "docs/a.md\0.txt", "file:///a%00b", "https://example.org/x", "ftp://x/y", "file://host/x"])
def test_what_is_no_path_is_refused_with_advice(app: App, path: str) -> None:
    with pytest.raises(BadInput) as caught:
        app.allowed(path)
    assert not isinstance(caught.value, OutsideRoots)


def test_a_loop_of_links_is_an_error_and_not_a_hang(app: App, project: Path) -> None:
    (project / "loop").symlink_to("loop")
    with pytest.raises(BadInput):
        app.allowed("loop")


def test_without_roots_nothing_may_be_read(tmp_path: Path) -> None:
    with pytest.raises(OutsideRoots, match="GRAPHRAG_MCP_ROOTS"):
        App(Settings(home=tmp_path)).allowed("docs")


def test_a_drift_session_id_cannot_name_another_file(app: App) -> None:
    assert app.drift_path("s-1_a") == app.home / "drift" / "s-1_a.jsonl"
    for session in ("", "../x", "a/b", "a.b", "x" * 200):
        with pytest.raises(BadInput, match="drift_search"):
            app.drift_path(session)


# ---- job records ------------------------------------------------------------------------------------


def write(app: App, **fields: object) -> queue.Job:
    """A record as another process would have left it."""
    job = queue.Job(**{"job_id": "job-aaaaaaaaaaaa", "corpus": "c", "started": "2025-01-01", **fields})  # type: ignore[arg-type]
    folder = app.home / "jobs"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{job.job_id}.json").write_text(json.dumps(asdict(job)), "utf-8")
    return job


def test_a_job_whose_process_has_died_is_shown_as_failed_and_says_how_to_go_on(app: App) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    mark = queue.process_mark(child.pid)
    write(app, status="running", pid=child.pid, process=mark)
    assert queue.load(app.home, "job-aaaaaaaaaaaa").status == "running"
    child.communicate(b"\n")
    job = queue.load(app.home, "job-aaaaaaaaaaaa")
    assert job.status == "failed" and job.error.startswith("interrupted") and "index_documents" in job.error


def test_a_pid_that_was_given_to_another_process_does_not_revive_a_job(app: App) -> None:
    write(app, status="running", pid=os.getpid(), process="1")
    assert queue.load(app.home, "job-aaaaaaaaaaaa").status == "failed"
    assert queue.process_mark(os.getpid()) not in ("", "1")
    assert queue.process_mark(0) == "" and queue.process_mark(2**22 + 1) == ""


def test_a_job_just_started_is_queued_even_when_who_started_it_has_gone(app: App) -> None:
    now = queue.datetime.now(queue.UTC)
    write(app, status="queued", pid=os.getpid(), process="1", updated=now.isoformat())
    assert queue.load(app.home, "job-aaaaaaaaaaaa").status == "queued"
    write(app, status="queued", pid=os.getpid(), process="1", updated=(now - 2 * queue.STARTING).isoformat())
    assert queue.load(app.home, "job-aaaaaaaaaaaa").status == "failed"


def test_an_interrupted_job_can_be_cancelled_and_a_finished_one_stays_finished(app: App) -> None:
    write(app, status="running", pid=os.getpid(), process="1")
    assert start.cancel(app.home, "job-aaaaaaaaaaaa").status == "cancelled"
    write(app, status="done")
    assert start.cancel(app.home, "job-aaaaaaaaaaaa").status == "done"


def test_an_unknown_job_is_answered_with_recent_ones_and_a_strange_id_refused(app: App) -> None:
    write(app, status="done")
    with pytest.raises(NotFound, match="Recent jobs: job-aaaaaaaaaaaa"):
        queue.load(app.home, "job-bbbbbbbbbbbb")
    with pytest.raises(BadInput):
        queue.load(app.home, "../../etc/passwd")


def test_a_torn_record_is_no_job_and_harms_no_listing(app: App) -> None:
    write(app, status="done")
    (app.home / "jobs" / "job-cccccccccccc.json").write_text('{"job_id": "job-cccc', "utf-8")
    assert [job.job_id for job in queue.listing(app.home)] == ["job-aaaaaaaaaaaa"]


def test_tables_of_the_index_are_data_frames(app: App, project: Path) -> None:
    texts = (InlineText("Ada Lovelace wrote to Charles Babbage. Ada Lovelace knew Mary Somerville."),)
    index_documents(app.folder("notes"), IndexRequest(texts=texts), app.settings)
    entities, units = app.table("entities", "notes"), app.table("text_units", "notes")
    assert "Ada Lovelace" in set(entities["title"]) and entities["id"].is_monotonic_increasing
    assert list(units["text"]) == [texts[0].text]
    with pytest.raises(NotFound, match="no table 'entity'") as error:
        app.table("entity", "notes")
    assert ", entities, " in error.value.next_move


def test_calls_that_wait_for_a_model_do_not_hold_up_the_others(tmp_path: Path) -> None:
    """As many as there are engine calls at a time without a model wait here until the other call has answered."""
    gone = threading.Event()

    def slow(*_: Any) -> str:
        assert gone.wait(60)
        return "An answer."

    with openai_server(slow) as server:
        index_documents(tmp_path / "corpora" / "a", IndexRequest(texts=(InlineText("Ada wrote to Babbage.", "a"),)), Settings(home=tmp_path))
        told = Settings(home=tmp_path, chat_model="m", base_url=server.url)
        with connected(build_server(App(told, "a"))) as call:
            waiting = [
                call.portal.start_task_soon(lambda: call.client.call_tool("local_search", {"query": "Who wrote?", "answer": True}))
                for _ in range(contract.THREADS)
            ]
            try:
                assert "1 document" in call.good("graph_status")["text"]
                assert not any(one.done() for one in waiting)
            finally:
                gone.set()
            assert not any(one.result().is_error for one in waiting)


def test_one_damaged_corpus_does_not_keep_the_others_from_being_used(app: App, project: Path) -> None:
    indexed(app, "c", project=str(project))
    (app.home / "corpora" / "bad").mkdir()
    (app.home / "corpora" / "bad" / "manifest.json").write_text("{", "utf-8")
    with connected(build_server(app)) as call:
        assert call.good("graph_status")["corpus"] == "c"  # the one of this project
        said = call.good("graph_status", corpus="c")["text"]
        assert "damaged (graphrag-mcp doctor --corpus bad)" in said
        assert call.good("local_search", query="Who is Anna?")["text"]
    done = run_cli("status", "--home", app.home, "--corpus", "c")
    assert done.returncode == 0 and "damaged" in done.stdout, done.stderr
