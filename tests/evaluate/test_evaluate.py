"""Evaluation: question files, metrics by hand, the sample corpus in every mode, two indexes, the command line."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from graphrag_mcp.app import App
from graphrag_mcp.cli.evaluate import engine
from graphrag_mcp.errors import BadInput, ModelError
from graphrag_mcp.evaluate.evaluate import (
    EvalResult,
    Question,
    evaluate,
    read_questions,
    table,
)  # fmt: skip
from graphrag_mcp.settings import Settings
from graphrag_mcp.types import Citation, SearchResult
from tests.support.command import ROOT, run_here

QUESTIONS = ROOT / "docs" / "sample-questions.jsonl"


def cited(*uris: str) -> list[Citation]:
    return [Citation(id=f"t{n}", title="", uri=uri, document_id=f"d-{uri}", char_start=0, char_end=9) for n, uri in enumerate(uris)]


# ---- question files --------------------------------------------------------------------------------

ADA = Question("a", "Who was Ada?", ("ada.md", "b.md"), (), ("a mathematician", "Lovelace"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("q.jsonl", '{"id": "a", "question": "Who was Ada?", "gold": ["ada.md", "b.md"], "answer": ["a mathematician", "Lovelace"]}\n\n'),
        ("q.json", '\ufeff[{"id": "a", "question": "Who was Ada?", "gold": ["ada.md", "b.md"], "answer": ["a mathematician", "Lovelace"]}]'),
    ],
)  # fmt: skip
def test_question_files_of_every_kind_are_read_alike(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    assert read_questions(tmp_path / name) == (ADA,)


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "no questions"), ('{"question": "x?", "gold": ["a"]}\n{torn', "line 2 is not JSON"), ("[1, 2]", "question 1 has no question"), ("[" * 100_000, "nested over 100 levels"),
     ('{"gold": ["a"]}', "has no question"), ('{"question": "x?"}', "says what should be found")],
)  # fmt: skip
def test_a_question_file_that_cannot_be_used_is_refused_with_the_place(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "q.jsonl").write_text(text, "utf-8")
    with pytest.raises(BadInput, match=said):
        read_questions(tmp_path / "q.jsonl")
    with pytest.raises(BadInput, match="cannot be read"):
        read_questions(tmp_path / "none.jsonl")


# ---- metrics ---------------------------------------------------------------------------------------


def scripted(mode: str, question: str, max_tokens: int) -> SearchResult:
    """A search whose results are known: the passage of `b.md` twice, then others."""
    if question == "broken?":
        raise ModelError("it broke", "Try again")
    text = "She was “A MATHEMATICIAN”, and more." if max_tokens < 10_000 else "long"
    return SearchResult(text=text, tokens=9, citations=[*cited("f/b.md", "f/b.md", "f/c.md", "f/d.md"), *cited(*(f"f/{n}.md" for n in range(20))), *cited("f/ada.md")])


def test_metrics_are_what_they_say() -> None:
    other = Question("e", "Evidence?", (), ("She was a mathematician", "nowhere"), ())
    result = evaluate("x", [ADA, other], ["local"], scripted)
    scores = result.modes[0]
    assert scores.means == {"recall@5": 50.0, "recall@20": 50.0, "evidence": 50.0, "answer": 100.0}
    assert scores.counted == {"recall@5": 1, "recall@20": 1, "evidence": 1, "answer": 1}
    assert scores.asked[0].missing == ("ada.md",)  # it is the 24th document
    assert scores.failed == 0 and scores.wall_ms[0] >= 0


def test_a_question_that_fails_counts_as_nothing_found_and_is_named() -> None:
    result = evaluate("x", [ADA, Question("b", "broken?", ("b.md",))], ["local"], scripted)
    assert result.modes[0].means["recall@5"] == 25.0 and result.modes[0].failed == 1
    assert "it broke" in table(result)


# ---- the sample corpus -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def app(sample_home: Path) -> App:
    return App(Settings(home=sample_home))


@pytest.fixture(scope="module")
def measured(app: App) -> EvalResult:
    modes = ["local", "global", "text"]
    rows = app.snapshot("sample").rows("documents", "", ["id", "uri", "title"]).to_pylist()
    held = [Citation(id="", title=row["title"], uri=row["uri"], document_id=row["id"], char_start=0, char_end=0) for row in rows]
    return evaluate("sample", read_questions(QUESTIONS), modes, engine(app, "sample"), documents=held)


def test_the_sample_questions_are_answered_by_the_sample_corpus(measured: EvalResult) -> None:
    assert measured.unknown_gold == () and measured.questions == 12
    means = {scores.mode: scores.means for scores in measured.modes}
    for mode in ("local", "text"):
        assert means[mode]["recall@20"] >= 95 and means[mode]["evidence"] >= 85 and means[mode]["answer"] >= 90, (mode, means)
    assert all(scores.failed == 0 and 0 < scores.wall_ms[0] <= scores.wall_ms[1] for scores in measured.modes)
    assert all(one.tokens <= 2_000 for scores in measured.modes for one in scores.asked)
    assert json.loads(json.dumps(asdict(measured)))["modes"][0]["mode"] == "local"


# ---- the command -----------------------------------------------------------------------------------


def run(*arguments: str | Path) -> dict[str, Any]:
    done = run_here("eval", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_command_measures_and_prints(sample_home: Path) -> None:
    shown = run_here("eval", QUESTIONS, "--home", sample_home, "--corpus", "sample", "--modes", "local,text", "--limit", "3")
    assert shown.returncode == 0 and "| local |" in shown.stdout and "3 questions" in shown.stdout, shown.stderr
    found = run(QUESTIONS, "--home", sample_home, "--corpus", "sample", "--modes", "text", "--limit", "2")
    assert found["questions"] == 2 and found["modes"][0]["mode"] == "text"
