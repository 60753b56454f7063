"""A job that another process left open is held to the roots, addresses and key of the server that takes it over."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from graphrag_mcp.app import App
from graphrag_mcp.jobs import queue
from graphrag_mcp.server import build_server
from graphrag_mcp.settings import Settings
from graphrag_mcp.types import IndexRequest, InlineText
from tests.support.client import connected
from tests.support.workload import until

TEXT = InlineText("Ada Quill met Henry Winstanley at Bell Rock.", "n1")


def left_open(home: Path, request: IndexRequest, pid: int = 0, **settings: Any) -> queue.Job:
    """As a copied home brings it: the process is none of this machine, whatever its number is."""
    record = queue.settings_record(Settings(home=home)) | settings
    body = json.loads(json.dumps(asdict(request)))
    job = queue.Job("job-0123456789ab", "kb", request=body, settings=record, status="running", pid=pid or os.getpid() + 1, process="1")
    queue.open_up(home, job)
    return job


FOREIGN: dict[str, tuple[dict[str, Any], str]] = {
    "roots": ({"roots": ["/"]}, "outside of the roots"),
    "address": ({"chat_model": "m", "base_url": "http://127.0.0.1:9/v1"}, "its base_url"),
    "vectors": ({"embedding_model": "m", "embedding_base_url": "http://127.0.0.1:9/v1"}, "its embedding_base_url"),
    "key": ({"chat_model": "m", "api_key_variable": "HOME"}, "its api_key_variable"),
    "options": ({"chat_model": "m", "chat_options": {"extra_headers": {"x": "y"}}}, "its chat_options"),
    "variable": ({"templates": {"output_language": "${HOME}"}}, "other variables of the environment"),
    "cluster": ({"engine": "ray", "engine_address": "ray://127.0.0.1:9"}, "its engine_address"),
    "model": ({"chat_model": "m"}, "it has a chat_model, and this server has none"),
    "pictures": ({"vision_model": "m"}, "it has a vision_model"),
    "folder": ({"embedding_model": "local:/etc"}, "is a folder that this server does not use"),
    "type": ({"chunk_size": [[]]}, "cannot be read"),
}  # fmt: skip


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_foreign_job_waits_and_says_why(tmp_path: Path, kind: str) -> None:
    settings, why = FOREIGN[kind]
    root, outside, home = tmp_path / "root", tmp_path / "outside", tmp_path / "home"
    for folder in (root, outside):
        folder.mkdir()
        (folder / "a.md").write_text("The password of Bell Rock is swordfish.", "utf-8")
    request = IndexRequest(texts=(TEXT,), paths=(str(outside),) if kind == "roots" else ())
    job = left_open(home, request, **settings)
    with connected(build_server(App(Settings(home=home, roots=(root,))))) as call:
        until(lambda: (stored := queue.read(home, job.job_id)) and stored.phase.startswith(queue.WAITS))
        assert why in call.good("graph_status", job_id=job.job_id)["text"]
        done = call.good("index_documents", paths=["."], corpus="kb", wait_seconds=50)
        assert done["counts"]["documents_total"] == 1, "others go on"
        call.good("cancel_job", job_id=job.job_id)
        until(lambda: queue.load(home, job.job_id).status == "cancelled")
    assert queue.waiting(home, "kb") == []


def test_a_job_within_the_roots_is_done_and_its_files_stay_within(tmp_path: Path) -> None:
    root, outside, home = tmp_path / "root", tmp_path / "outside", tmp_path / "home"
    for folder in (root, outside):
        folder.mkdir()
        (folder / "a.md").write_text(f"Ada Quill wrote of Bell Rock {folder.name}.", "utf-8")
    (root / "link").symlink_to(outside)
    job = left_open(home, IndexRequest(paths=(str(root),)))
    with connected(build_server(App(Settings(home=home, roots=(root,))))) as call:
        until(lambda: queue.load(home, job.job_id).status == "done")
        stored = queue.read(home, job.job_id)
        assert stored.request["within"] == [str(root.resolve())]
        assert "outside" not in call.good("search_text", query="Bell Rock", corpus="kb")["text"]


def test_a_job_with_a_word_that_only_an_earlier_release_knows_is_done(tmp_path: Path) -> None:
    job = left_open(tmp_path / "home", IndexRequest(texts=(TEXT,)), gleanings="2")
    with connected(build_server(App(Settings(home=tmp_path / "home", roots=(tmp_path,))))):
        until(lambda: queue.load(tmp_path / "home", job.job_id).status == "done")


def test_a_job_of_another_machine_is_foreign_though_its_process_had_the_same_number(tmp_path: Path) -> None:
    """In a container most servers are process 1."""
    root, outside, home = tmp_path / "root", tmp_path / "outside", tmp_path / "home"
    for folder in (root, outside):
        folder.mkdir()
        (folder / "a.md").write_text("The password of Bell Rock is swordfish.", "utf-8")
    job = left_open(home, IndexRequest(paths=(str(outside),)), pid=os.getpid())
    with connected(build_server(App(Settings(home=home, roots=(root,))))) as call:
        until(lambda: (stored := queue.read(home, job.job_id)) and stored.phase.startswith(queue.WAITS))
        assert "outside of the roots" in call.good("graph_status", job_id=job.job_id)["text"]


def test_a_record_that_names_another_place_is_none(tmp_path: Path) -> None:
    good = left_open(tmp_path, IndexRequest(texts=(TEXT,)))
    whole = json.loads(queue.record_path(tmp_path, good.job_id).read_bytes())
    assert queue.read(tmp_path, good.job_id) is not None
    for name, value in {
        "corpus": "../../elsewhere", "job_id": "job-ffffffffffff", "updated": "2026-01-01", "pid": 10**30, "done": "many",
        "request": {"paths": 7}, "result": {"errors": 5}, "settings": [],
    }.items():  # fmt: skip
        queue.record_path(tmp_path, good.job_id).write_text(json.dumps({**whole, name: value}), "utf-8")
        assert queue.read(tmp_path, good.job_id) is None, name
        assert queue.listing(tmp_path) == []
