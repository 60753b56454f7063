"""benchmarks/agents: every look through the door is counted, and the collections hold no answers for the agents."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import ROOT, SAMPLE, clean_environment

AGENTS = ROOT / "benchmarks" / "agents"
DATA = ROOT.parent / "shared" / "data"


def door(*words: object, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, str(AGENTS / "door.py"), *map(str, words)], env=clean_environment(**environment),
        capture_output=True, encoding="utf-8", timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_looks_at_a_server_and_with_a_shell_are_counted_by_characters(sample_home: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-u", "-m", "graphrag_mcp", "serve", "--http", "--port", "0", "--home", str(sample_home)]
    log = tmp_path / "looks.log"
    with subprocess.Popen(command, env=clean_environment(), stderr=subprocess.PIPE, encoding="utf-8") as server:
        try:
            assert server.stderr is not None
            said = next(line for line in server.stderr if "listening on" in line)
            url = re.search(r"http://\S+", said)
            assert url
            listed = door(log, "tools", URL=url[0])
            found = door(log, "call", "local_search", '{"query": "Who opened the canister?"}', URL=url[0])
        finally:
            server.terminate()
    shown = door(log, "shell", "grep -rl canister . | sort", FOLDER=str(SAMPLE))
    assert "## local_search" in listed and "canister" in found and "wreck-dive-report.md" in shown
    rows = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    assert [row["characters"] for row in rows] == [len(text) - 1 for text in (listed, found, shown)]
    assert json.loads(door(log, "sum")) == {"looks": 3, "characters": sum(row["characters"] for row in rows)}


@pytest.mark.skipif(not (DATA / "bbc_news").is_dir(), reason="the evaluation data is not beside the checkout")
def test_the_collections_and_questions_are_written_and_answers_apart(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(AGENTS / "make.py"), str(tmp_path), "--data", str(DATA)], check=True, timeout=120)
    for name, questions in (("twohop", 20), ("news", 10), ("long", 12)):
        asked = json.loads((tmp_path / name / "questions.json").read_text("utf-8"))
        assert len(asked) == questions and all(set(one) == {"id", "question"} for one in asked)
        assert len(list((tmp_path / name / "documents").iterdir())) >= 5
    assert all(one["answer"] for one in json.loads((tmp_path / "twohop" / "answers.json").read_text("utf-8")))
