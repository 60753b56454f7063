"""Keys in every place of the settings where one may stand: none reaches a file of the home, an output or an error."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from graphrag_mcp.app import App
from graphrag_mcp.errors import BadInput
from graphrag_mcp.jobs.queue import settings_record
from graphrag_mcp.settings import Settings, from_record, load
from graphrag_mcp.trust.private import keep_private
from tests.index.test_index_with_model import demo
from tests.support.client import connected, over_stdio
from tests.support.command import clean_environment, run_cli
from tests.support.openai_server import error, openai_server
from tests.trust.test_secrets import LOUD

POSIX = pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
SECRETS = {
    "HEADER_KEY": "hdr-7Q2mZx81kPwe", "LOGIN": "lgn-55TyUbN0qaWs", "PATH_KEY": "pth-90LmKjH3gFdx", "QUERY_KEY": "qry-31RtGvB6nYhu",
    "API_KEY": "api-84WsXeDc7rFv", "BODY_KEY": "bdy-12PoIuYt5mNb", "WRONG_KEY": "wrg-66ZaQwSx9cDe",
}  # fmt: skip
LITERAL = {"header": "lit-43MnBvCx2zLk", "query": "lit-78QaZwSx1eDc", "token": "lit-09UjMiKo3lPn"}
ALL = [*SECRETS.values(), *LITERAL.values()]
FILES = 101  # so that the job has a process of its own


def settings_file(folder: Path, url: str, more: str = "") -> Path:
    host = url.removeprefix("http://").removesuffix("/v1")
    path = folder / "settings.toml"
    path.write_text(
        f"""
chat_model = "m"
base_url = "http://user:${{LOGIN}}@{host}/${{PATH_KEY}}/v1"
embedding_base_url = "http://{host}/v1?key=${{QUERY_KEY}}"
embedding_model = "v"
api_key_variable = "${{API_KEY}}"
report_min_size = 100
max_retries = 1
[chat_options]
extra_headers = {{ "x-gateway-key" = "${{HEADER_KEY}}", "x-other" = "{LITERAL["header"]}" }}
extra_query = {{ code = "{LITERAL["query"]}" }}
user = "${{BODY_KEY}}"
nested = {{ access_token = "{LITERAL["token"]}" }}
{more}
""",
        "utf-8",
    )
    return path


def holding(folder: Path) -> list[str]:
    """Files below the folder that hold a secret, with its name."""
    found = []
    for path in folder.rglob("*"):
        if path.is_file():
            held = path.read_bytes()
            found += [f"{path.relative_to(folder)}: {one}" for one in ALL if one.encode() in held]
    return found


def modes(home: Path) -> list[str]:
    """What others than the owner may open."""
    paths = [path for path in home.rglob("*") if not path.is_symlink()]
    return [f"{path.relative_to(home)} {path.stat().st_mode & 0o777:o}" for path in paths if path.stat().st_mode & 0o077]


def commands_of(process: int) -> str:
    return Path(f"/proc/{process}/cmdline").read_text("utf-8", "replace") if Path(f"/proc/{process}").exists() else ""


def test_no_key_of_the_settings_reaches_the_home_or_an_output(tmp_path: Path) -> None:
    """A job in a process of its own, at the loudest log level, with a server that repeats the keys in replies and errors."""
    (docs := tmp_path / "docs").mkdir()
    for number in range(FILES):
        (docs / f"n{number}.md").write_text(f"Ada Lovelace met Charles Babbage in London. Note {number} is on that.\n", "utf-8")
    home, said = tmp_path / "home", ""
    echo = " ".join(one for one in ALL if one != SECRETS["WRONG_KEY"])
    with openai_server(demo) as server:
        environment = clean_environment(
            GRAPHRAG_MCP_SETTINGS=str(settings_file(tmp_path, server.url)), GRAPHRAG_MCP_HOME=str(home), GRAPHRAG_MCP_ROOTS=str(docs),
            OPENAI_LOG="debug", **SECRETS,
        )  # fmt: skip
        server.script = [None, (500, {}, error(f"bad gateway {echo}")), None, (400, {"X-Key": echo}, error(f"refused {echo}"))] * 20
        command = over_stdio(home, docs)
        command.env = environment
        with connected(command) as call:
            started = call.good("index_documents", paths=["."], corpus="c", method="llm", wait_seconds=0)
            said, job = json.dumps(started), started["job_id"]
            for _ in range(400):
                said += json.dumps(state := call.good("graph_status", job_id=job))
                record = json.loads((home / "jobs" / f"{job}.json").read_text("utf-8"))
                said += commands_of(record["pid"])
                assert holding(home) == []
                if state["jobs"][0]["status"] in ("done", "failed", "cancelled"):
                    break
                time.sleep(0.3)
            assert record["own"] and record["status"] == "done", (state, record)
            assert record["settings"]["templates"]["base_url"].count("${") == 2
            assert record["settings"]["withheld"] == ["chat_options"]
            assert record["settings"]["api_key_variable"] == "API_KEY"
            for tool, arguments in [
                ("graph_status", {}), ("local_search", {"query": "Whom did Ada Lovelace meet?", "answer": True}), ("drift_search", {"query": "Who met Ada?"}),
                ("index_documents", {"texts": [{"id": "a", "text": "Mary Somerville taught Ada Lovelace."}], "corpus": "c", "wait_seconds": 30}),
                ("index_documents", {"paths": ["."], "dry_run": True, "corpus": "c"}),
            ]:  # fmt: skip
                said += call(tool, **arguments).model_dump_json()
        server.script = [(401, {}, error(f"wrong key {echo}"))] * 40
        for words in (["status"], ["doctor", "--json"], ["doctor"], ["search", "Ada", "--answer"], ["index", str(docs / "n1.md"), "--method", "llm", "--corpus", "d"],
                      ["init", str(tmp_path / "i")], ["export", str(tmp_path / "out"), "--corpus", "c"], ["answers", "list", "--corpus", "c"],
                      ["install", "--client", "cursor", "--project", "--print"]):  # fmt: skip
            done = run_cli(*words, cwd=tmp_path, env=environment)
            said += done.stdout + done.stderr
        server.script = []
        loud = [sys.executable, "-c", LOUD, json.dumps([["search", "Whom did Ada meet?", "--answer"], ["index", str(docs / "n2.md"), "--method", "llm", "--corpus", "e"]])]
        done = subprocess.run(loud, cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8", timeout=120)
        assert "DEBUG" in done.stderr and done.returncode == 0
        said += done.stdout + done.stderr
        requests = [f"{seen.path} {seen.headers} {seen.body}" for seen in server.requests]
    assert any(SECRETS["PATH_KEY"] in one and SECRETS["HEADER_KEY"] in one for one in requests), "the keys were used"
    assert [one for one in ALL if one in said] == []
    assert len(list(home.rglob("*"))) > 20 and holding(home) == [] and holding(tmp_path / "i") == [] and holding(tmp_path / "out") == []
    if os.name != "nt":
        assert modes(home) == [] and home.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "line",
    ['concurrency = "{}"', 'json_mode = "{}"', 'gleanings = "{}"', "timeout_seconds = '{}'", 'show_secrets = "{}"',
     'roots = "{}"', 'entity_types = ["a", ["{}"]]', 'entity_types = "{}"', 'chat_options = "{}"', 'chat_model = ["{}"]', "max_calls = {{ a = '{}' }}",
     'api_key_variable = "{}"', 'concurrency = "${{WRONG_KEY}}"', 'json_mode = "${{WRONG_KEY}}"', 'entity_types = "${{WRONG_KEY}}"', 'x = "{}', "y = {}"],
)  # fmt: skip
def test_an_error_does_not_repeat_a_wrong_value(tmp_path: Path, line: str) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(line.format("wrg-66ZaQwSx9cDe"), "utf-8")
    with pytest.raises(BadInput) as refused:
        load({"GRAPHRAG_MCP_SETTINGS": str(path), **SECRETS})
    assert "66ZaQwSx9cDe" not in f"{refused.value} {refused.value!r}"
    with pytest.raises(BadInput) as refused:
        load({"GRAPHRAG_MCP_CONCURRENCY": SECRETS["WRONG_KEY"]})
    assert "66ZaQwSx9cDe" not in str(refused.value)


@pytest.mark.parametrize(
    "value", ["hf_AbCdEfGhIjKlMn0pQrStUvWxYz12345678", "a1b2c3d4e5f6a7b8c9d0a1b2c3d4e5f6", "sk-abcdef", "AKIAIOSFODNN7EXAMPLE", "a key", "${API_KEY}x"]
)
def test_a_key_where_the_name_of_its_variable_belongs_is_refused(tmp_path: Path, value: str) -> None:
    (path := tmp_path / "settings.toml").write_text(f'api_key_variable = "{value}"', "utf-8")
    with pytest.raises(BadInput, match="api_key_variable is not the name of an environment variable") as refused:
        load({"GRAPHRAG_MCP_SETTINGS": str(path), **SECRETS})
    assert value not in str(refused.value) and SECRETS["API_KEY"] not in str(refused.value)


def test_a_record_is_read_back_with_the_variables_of_the_process_that_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path := tmp_path / "settings.toml").write_text(
        'chat_model = "${MODEL}"\nbase_url = "http://h/${PATH_KEY}/v1"\noutput_language = "German"\n[chat_options]\nuser = "${BODY_KEY}"\nseed = 3\n',
        "utf-8",
    )
    given = {"GRAPHRAG_MCP_SETTINGS": str(path), "MODEL": "m-1", **SECRETS}
    settings = load(given)
    record = json.loads(json.dumps(settings_record(settings)))
    assert record["templates"] == {"chat_model": "${MODEL}", "base_url": "http://h/${PATH_KEY}/v1", "chat_options": {"user": "${BODY_KEY}", "seed": 3}}
    for name, value in {**given, "BODY_KEY": "another"}.items():
        monkeypatch.setenv(name, value)
    again = from_record(Settings(home=tmp_path), record)
    assert (again.chat_model, again.base_url, again.output_language) == (settings.chat_model, settings.base_url, "German")
    assert again.chat_options == {"user": "another", "seed": 3} and settings_record(again) == record
    monkeypatch.delenv("MODEL")
    assert from_record(Settings(home=tmp_path, chat_model="mine"), record).chat_model == "mine"


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("base_url", "http://localhost:11434/v1", True), ("base_url", "https://u:p@h/v1", False), ("base_url", "https://h/v1?api-key=x", False),
        ("base_url", "https://h/v1#x", False), ("embedding_base_url", "https://token@h/v1", False),
        ("base_url", "https://h/sk-proj-abcdefghij1234567890/v1", False), ("chat_options", {"temperature": 0, "max_tokens": 9}, True),
        ("chat_options", {"extra_headers": {"x": "abc"}}, False), ("chat_options", {"a": [{"apiKey": "abc"}]}, False),
        ("chat_options", {"user": "hf_AbCdEfGhIjKlMn0pQrStUvWxYz12345678"}, False), ("chat_options", {"user": "ada"}, True),
    ],
)  # fmt: skip
def test_a_value_that_may_hold_a_key_is_withheld_from_records(name: str, value: Any, kept: bool) -> None:
    record = settings_record(Settings(**{name: value}))
    assert (record.get(name) == value) is kept and record.get("withheld", []) == ([] if kept else [name])


@POSIX
def test_what_an_earlier_release_left_open_is_closed(tmp_path: Path) -> None:
    home, before = tmp_path / "home", os.umask(0o022)
    try:
        for name in ("jobs/a.json", "jobs/open/c/a", "corpora/c/manifest.json", "documents/x.md"):
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).write_text("{}", "utf-8")
        (outside := tmp_path / "outside").write_text("x", "utf-8")
        (home / "corpora" / "link").symlink_to(outside)
        App(Settings(home=home))
        assert [one for one in modes(home) if not one.startswith("documents")] == [] and len(modes(home)) == 2
        assert outside.stat().st_mode & 0o777 == 0o644, "links are not followed"
        keep_private(home)
        (home / "jobs" / "new").write_text("x", "utf-8")
        assert (home / "jobs" / "new").stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(before)
