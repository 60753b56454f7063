"""The command line with a model: a real process against a real server that speaks the OpenAI protocol."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import SAMPLE, clean_environment, run_cli
from tests.support.openai_server import Server, demonstrated, openai_server

QUESTION = "Who was right about the back-run?"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with openai_server(answer=demonstrated()) as running:
        yield running


@pytest.fixture(scope="module")
def environment(server: Server) -> dict[str, str]:
    return clean_environment(
        OPENAI_BASE_URL=server.url, OPENAI_API_KEY="k", GRAPHRAG_MCP_CHAT_MODEL="demo",
        GRAPHRAG_MCP_EMBEDDING_MODEL="demo-vectors",
    )  # fmt: skip


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str]) -> Path:
    """A home with the sample corpus as a model read it. Do not write to it."""
    home = tmp_path_factory.mktemp("modelled")
    done = run_cli("index", SAMPLE, "--home", home, "--corpus", "s", "--method", "llm", "--json", env=environment)
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert record["calls"] > 20 and record["pending"] == {} and record["tokens"] > 1000
    return home


def ran(environment: dict[str, str], *arguments: Any) -> dict[str, Any]:
    done = run_cli(*arguments, "--json", env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_budget_stops_the_run_and_says_what_is_left(environment: dict[str, str], tmp_path: Path) -> None:
    done = run_cli("index", SAMPLE, "--home", tmp_path, "--corpus", "s", "--method", "llm", "--max-calls", "5", env=environment)
    assert "asked models 5 times" in done.stdout and "still to answer" in done.stderr and "budget" in done.stderr
    record = ran(environment, "index", SAMPLE, "--home", tmp_path, "--corpus", "s")
    assert record["pending"] == {} and record["calls"] > 20


def test_search_answers_only_when_it_is_asked_to(server: Server, environment: dict[str, str], home: Path) -> None:
    plain = ran(environment, "search", QUESTION, "--home", home, "--corpus", "s")
    assert plain["state"] == "context" and plain["answer"] == ""
    answered = ran(environment, "search", QUESTION, "--home", home, "--corpus", "s", "--answer")
    assert answered["state"] == "answered" and answered["answer"] and answered["method"] == "llm:demo"
    assert answered["citations"] and answered["usage"]["calls"] >= 1


def test_drift_walks_by_itself_with_a_model_and_teaches_without(environment: dict[str, str], home: Path) -> None:
    walked = ran(environment, "search", QUESTION, "--home", home, "--corpus", "s", "--mode", "drift")
    assert walked["answer"] and walked["usage"]["calls"] <= 25
    done = run_cli("search", QUESTION, "--home", home, "--corpus", "s", "--mode", "drift")
    assert done.returncode == 2 and "GRAPHRAG_MCP_CHAT_MODEL" in done.stderr


def test_the_answer_book_is_listed_and_cleared_by_kind(environment: dict[str, str], tmp_path: Path) -> None:
    ran(environment, "index", SAMPLE, "--home", tmp_path, "--corpus", "s", "--method", "llm", "--max-calls", "8")
    listed = ran(environment, "answers", "list", "--home", tmp_path, "--corpus", "s")
    assert listed["kinds"]["extract"] == sum(one["kind"] == "extract" for one in listed["answers"]) > 0
    gone = ran(environment, "answers", "clear", "--kind", "extract", "--home", tmp_path, "--corpus", "s")
    assert gone == {"cleared": listed["kinds"]["extract"]}
    assert "extract" not in ran(environment, "answers", "list", "--home", tmp_path, "--corpus", "s")["kinds"]


def test_init_writes_settings_that_load_and_does_not_overwrite(environment: dict[str, str], tmp_path: Path) -> None:
    files = ran(environment, "init", tmp_path / "mine")["files"]
    assert Path(files[0]).name.endswith(".toml") and len(files) > 10
    again = run_cli("init", tmp_path / "mine", env=environment)
    assert again.returncode == 2 and "--force" in again.stderr


def test_tuned_entity_types_reach_extraction(environment: dict[str, str], home: Path, tmp_path: Path) -> None:
    from graphrag_mcp.index.models import with_tuned
    from graphrag_mcp.settings import Settings

    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "tuned.json").write_text('{"entity_types": ["ship", "harbour"], "output_language": "French"}')
    tuned = with_tuned(Settings(), tmp_path)
    assert (tuned.entity_types, tuned.output_language) == (("ship", "harbour"), "French")
    own = with_tuned(Settings(entity_types=("bird",), output_language="Finnish"), tmp_path)
    assert (own.entity_types, own.output_language) == (("bird",), "Finnish")
    assert with_tuned(Settings(), tmp_path / "none") == Settings()
    for damaged in ("[" * 100_000, '{"entity_types": [', "7"):
        (tmp_path / "prompts" / "tuned.json").write_text(damaged)
        assert with_tuned(Settings(), tmp_path) == Settings()
