"""benchmarks/agents: a look is counted and stops at the budget, judges do not learn who wrote what, points add up."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

AGENTS = Path(__file__).resolve().parents[2] / "benchmarks" / "agents"


def run(*words: str | Path) -> str:
    return subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, check=True).stdout


def test_a_trial_runs_from_what_an_agent_is_told_to_the_points(tmp_path: Path) -> None:
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "a.txt").write_text("The mill of Orl burned down.\n" * 20)
    (tmp_path / "questions.json").write_text(json.dumps([{"id": "N0", "question": "What burned down?"}]))
    (tmp_path / "answers.json").write_text(json.dumps([{"id": "N0", "answer": "the mill"}]))
    trial = AGENTS / "trial.py"
    told = run(trial, "agent", "one", tmp_path, "--grep", "--budget", "60")
    assert "N0 What burned down?" in told and "60 characters" in told and "the mill" not in told
    door = tmp_path / "trial" / "doors" / "one.py"
    assert "31 characters of the reading budget are left" in run(door, "shell", "head -1 a.txt")
    assert "(0 characters" in run(door, "shell", "cat a.txt") and "used up" in run(door, "shell", "cat a.txt")
    for name, answer in (("one", "the mill"), ("two", "not found")):
        (tmp_path / "trial" / "answers" / f"{name}.json").write_text(json.dumps({"N0": answer}))
    told = run(trial, "judge", "first", tmp_path, "one", "two")
    assert "one.json" not in told and "Expected answers" in told
    drawn = json.loads((tmp_path / "trial" / "key-first.json").read_text())
    points = {letter: 8 if name == "one" else 2 for letter, name in drawn.items()}
    (tmp_path / "trial" / "judge-first" / "points.json").write_text(json.dumps({"N0": points}))
    lines = run(trial, "points", tmp_path).splitlines()
    assert lines[:2] == ["first: one 8.00", "first: two 2.00"] and "one: 2 looks, 60 characters" in lines
