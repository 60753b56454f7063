"""No key leaves the process, nothing unpickles or evaluates, a tampered book is asked again, standard output stays pure."""

from __future__ import annotations

import ast
import json
import os
import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.reply_cache import NAME
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest
from tests.index.test_index_with_model import demo
from tests.support.client import connected, over_stdio
from tests.support.command import ROOT, clean_environment
from tests.support.openai_server import error, openai_server

KEY = "sk-canary-9f3Zz71xyzzyQ04"
PARTS = (KEY, KEY[:14], KEY[-10:])
LOUD = """
import json, logging, sys
logging.basicConfig(level=logging.DEBUG)
from graphrag_mcp.cli.main import main
for command in json.loads(sys.argv[1]):
    try:
        main(command)
    except SystemExit:  # wrong use
        pass
"""
TEXT = "Ada Lovelace met Charles Babbage in London. Mary Somerville taught Ada Lovelace mathematics.\n"


def hits(folder: Path) -> list[str]:
    """Files that hold the key or a long part of it."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [str(path) for path in files if any(part.encode() in path.read_bytes() for part in PARTS)]


def test_a_key_is_in_nothing_that_any_command_or_tool_says_or_writes(tmp_path: Path) -> None:
    """Models that fail in five ways and repeat the key, commands at DEBUG, a server with jobs and answers, a crash."""
    (docs := tmp_path / "docs").mkdir()
    for number in range(6):
        (docs / f"n{number}.md").write_text(TEXT + f"Note {number} of Ada Lovelace.\n", "utf-8")
    echoes: list[Any] = [(500, {}, error(f"key {KEY}")), (400, {}, error(f"Bearer {KEY} may not")), None, (403, {}, f"<html>{KEY}</html>")]
    echoes += [(429, {"Retry-After": "0", "X-Key": KEY}, error(KEY)), (401, {}, error(f"Incorrect API key provided: {KEY}"))]
    home, said = tmp_path / "home", ""
    with openai_server(demo) as server:
        environment = clean_environment(
            OPENAI_API_KEY=KEY, OPENAI_BASE_URL=server.url.replace("//", f"//user:{KEY}@"), GRAPHRAG_MCP_CHAT_MODEL="m", OPENAI_LOG="debug",
            GRAPHRAG_MCP_EMBEDDING_MODEL="v", GRAPHRAG_MCP_HOME=str(home), GRAPHRAG_MCP_ROOTS=str(docs),
        )  # fmt: skip
        plain = [["index", str(docs), "--corpus", "c", "--method", "llm"], ["status"], ["doctor", "--json"], ["answers", "list"], ["search", "--mode", "nonsense", "x"]]
        plain += [["init", str(tmp_path / "i")], ["export", str(tmp_path / "out")]]
        for script, commands in [(echoes[:4] * 30, plain[:1]), ([], plain), (echoes * 9, [["search", "Ada", "--answer"]])]:
            server.script = list(script)
            done = subprocess.run(
                [sys.executable, "-c", LOUD, json.dumps(commands)], env=environment, cwd=tmp_path, capture_output=True, encoding="utf-8", timeout=120,
            )  # fmt: skip
            assert "DEBUG" in done.stderr and done.returncode == 0
            said += done.stdout + done.stderr
        server.script = list(echoes * 9)
        command = over_stdio(home, docs)
        command.env = {name: value for name, value in environment.items() if name.startswith(("GRAPHRAG", "OPENAI", "PYTHON"))}
        command.env["OPENAI_BASE_URL"] = server.url
        with connected(command) as call:
            for tool, arguments in [
                ("graph_status", {}), ("local_search", {"query": "Who met Ada?", "answer": True}), ("index_documents", {"paths": ["."], "wait_seconds": 30}),
                ("graph_status", {}), ("drift_search", {"query": "Who met Ada?", "mode": "auto"}), ("local_search", {"query": "x", "filters": ["api_key=1"]}),
            ]:  # fmt: skip
                result = call(tool, **arguments)
                said += result.content[0].text + json.dumps(result.structured_content or {})
            for uri in ("graphrag://corpora", "graphrag://c/stats"):
                said += call.portal.call(call.client.read_resource, uri).model_dump_json()
    assert any(KEY in seen.headers["authorization"] or seen.headers["authorization"].startswith("Basic") for seen in server.requests)
    assert [part for part in PARTS if part in said] == []
    assert len(list(home.rglob("*"))) > 20 and hits(home) == [] and hits(tmp_path / "out") == [] and hits(tmp_path / "i") == []


# ---- R23: nothing on disk is run, and nothing that was tampered with is believed ----------------------------

BANNED_CALLS = {"eval", "exec", "compile", "__import__"}
BANNED_MODULES = {"pickle", "cPickle", "dill", "shelve", "marshal", "yaml", "joblib", "diskcache", "cloudpickle"}


def test_nothing_in_the_package_evaluates_or_unpickles() -> None:
    wrong = []
    for path in sorted((ROOT / "graphrag_mcp").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            name = ""
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in BANNED_CALLS:
                name = node.func.id
            elif isinstance(node, ast.Import | ast.ImportFrom):
                named = [alias.name for alias in node.names] + [getattr(node, "module", "") or ""]
                name = next((one for one in named if one.partition(".")[0] in BANNED_MODULES), "")
            elif isinstance(node, ast.keyword) and node.arg in ("allow_pickle", "shell") and getattr(node.value, "value", None) is True:
                name = f"{node.arg}=True"
            elif isinstance(node, ast.Attribute) and node.attr in ("unsafe_load", "system", "popen") and getattr(node.value, "id", "") in ("os", "yaml"):
                name = node.attr
            if name == "pickle" and path.name == "executors.py":
                continue  # between processes that this program started itself, over their pipes
            if name:
                wrong.append(f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)} {name}")
    assert wrong == []


def test_dependencies_that_unpickle_what_they_cached_are_not_among_ours() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8").lower()
    assert not re.search(r'"(?:diskcache|joblib|cloudpickle|dill|pyyaml)\b', text)


def test_an_index_made_beside_tampered_answers_is_the_one_that_was_bought(tmp_path: Path) -> None:
    (docs := tmp_path / "docs").mkdir()
    for number in range(8):
        (docs / f"n{number}.md").write_text(f"# Note {number}\n\n{TEXT} The engine of note {number} was tried by Ada Lovelace.\n", "utf-8")
    with openai_server(demo) as server:
        chosen = Settings(home=tmp_path, chat_model="m", base_url=server.url)
        index_documents(tmp_path / "a", IndexRequest(paths=(str(docs),), method="llm"), chosen)
        bought = len(server.requests)
        (tmp_path / "b").mkdir()
        (tmp_path / "b" / NAME).write_bytes(book := (tmp_path / "a" / NAME).read_bytes())
        assert book
        for suffix in ("-wal", "-shm"):
            if (beside := (tmp_path / "a" / f"{NAME}{suffix}")).exists():
                (tmp_path / "b" / f"{NAME}{suffix}").write_bytes(beside.read_bytes())
        with sqlite3.connect(tmp_path / "b" / NAME) as file:
            changed = file.execute("UPDATE answers SET text = replace(text, 'Ada', 'Eve'), answerer = answerer").rowcount
        file.close()
        assert changed > 0 and bought >= changed // 2
        result = index_documents(tmp_path / "b", IndexRequest(paths=(str(docs),), method="llm"), chosen)
        assert len(server.requests) > bought and result.errors == []
    titles = {row["title"] for row in open_snapshot(tmp_path / "b").rows("entities", "", ["title"]).to_pylist()}
    assert any("Ada" in title for title in titles) and not any("Eve" in title for title in titles)


# ---- R14 and R26 in small -----------------------------------------------------------------------------------


def loaded(name: str) -> Any:
    import importlib.util

    spec = importlib.util.spec_from_file_location(name, ROOT / "campaigns" / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(os.name == "nt", reason="ctypes.CDLL(None)")
def test_two_hundred_calls_beside_noise_of_every_kind_stay_pure(tmp_path: Path) -> None:
    purity = loaded("stdout_purity")
    found = purity.run(200, tmp_path)
    assert purity.faults(found) == [], found


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts in /proc")
def test_six_seconds_of_everything_leave_nothing_behind(tmp_path: Path) -> None:
    import anyio

    found = anyio.run(loaded("soak").soak, 6.0, tmp_path / "home")
    assert found["calls"] > 5 and found["cancelled"] and found["grown"] == [], found
