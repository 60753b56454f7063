"""Global search with a model: ratings down the tree, points, one answer, and honest failures."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphrag_mcp.errors import ModelError
from graphrag_mcp.llm.asker import Asker, BadReply
from graphrag_mcp.packing import budget as packing_budget
from graphrag_mcp.query import global_, reports
from graphrag_mcp.query.global_ import global_search
from graphrag_mcp.query.model_replies import Point, read_points, read_rating
from graphrag_mcp.query.reports import Rated
from graphrag_mcp.query.request import AnswerOptions
from graphrag_mcp.store.reply_cache import AnswerBook
from graphrag_mcp.store.tables import Snapshot
from tests.support.scripted import ScriptedChat

QUESTION = "How does the back-run affect the eelgrass?"
RATE, MAP, REDUCE = '"rating"', '"points"', "one text in your own order"
POINTS = json.dumps({"points": [
    {"description": "Eelgrass grows after it [Data: Reports (1, 99)]", "score": 80},
    {"description": "I do not know", "score": 0}, {"description": "水很清 【Data：Reports（2）】", "score": "85/100"},
]})  # fmt: skip
ANSWER = "The meadow grows [Data: Reports (c1, c99)]."


@pytest.fixture(scope="module")
def snapshot(deep_sample: Snapshot) -> Snapshot:
    return deep_sample


def rating(word: str, high: int = 4) -> Callable[..., str]:
    """A model that finds reports relevant in which the word occurs."""
    report = re.compile(r"<report>(.*?)</report>", re.DOTALL)

    def rate(messages: Any, _: Any) -> str:
        said = report.search(messages[-1].content)[1].lower()
        return json.dumps({"reason": "-", "rating": high if word in said else 0})

    return rate


def asker(*rules: Any, book: Path | None = None, **options: Any) -> tuple[Asker, ScriptedChat]:
    chat = ScriptedChat([*rules, (RATE, rating("eelgrass")), (MAP, POINTS), (REDUCE, ANSWER)], **options)
    return Asker(AnswerBook(book) if book else None, chat, None), chat


def prompts_with(chat: ScriptedChat, mark: str) -> list[str]:
    return [call[-1].content for call in chat.calls if mark in call[-1].content]


def reports_of(snapshot: Snapshot) -> dict[str, dict[str, Any]]:
    return {f"c{row['n']}": row for row in snapshot.rows("reports").to_pylist()}


# ---- selection -------------------------------------------------------------------------------------


def test_the_model_rates_each_report_once_and_goes_down_only_where_it_is_relevant(snapshot: Snapshot) -> None:
    door, chat = asker()
    result = global_search(snapshot, QUESTION, asker=door, answer=True)
    rated = prompts_with(chat, RATE)
    assert result.coverage["rated"] == len(rated) == len(set(rated)) <= reports.READ
    assert result.coverage["rated"] == result.coverage["kept"] + result.coverage["pruned"]
    assert 0 < result.coverage["kept"] < result.coverage["rated"] < result.coverage["reports"]
    read = prompts_with(chat, MAP)[0].partition("<reports>")[2]
    assert len(re.findall(r"^\d+\|", read, re.MULTILINE)) == result.coverage["read"] == result.coverage["kept"]


def test_a_parent_is_not_read_beside_a_relevant_child(snapshot: Snapshot) -> None:
    door, _ = asker((RATE, '{"reason": "-", "rating": 5}'))
    selected = door.wait(global_.select_with_model(door, snapshot, QUESTION, -1))
    kept, coverage = selected.reports, selected.coverage
    ids = {one.id for one in kept}
    assert kept and not any(one.parent in ids for one in kept)
    roots = [row for row in snapshot.rows("reports", "level = 0", ["id"]).to_pylist()]
    assert coverage["rated"] > len(roots)


def test_when_no_root_is_relevant_the_next_level_is_rated_whole(snapshot: Snapshot) -> None:
    every = reports.all_rated(snapshot, QUESTION)
    below = {one.id for one in every.values() if one.level == 1}
    title = {row["id"]: row["title"] for row in snapshot.rows("reports", "", ["id", "title"]).to_pylist()}
    above = {title[id] for id in title.keys() - below}

    def only_below(messages: Any, _: Any) -> str:
        found = re.search(r"<report>\s*(?:# )?(.*)", messages[-1].content)
        assert found and {found[1].strip()} <= {*title.values()}, messages[-1].content[:300]
        return json.dumps({"rating": 0 if found[1].strip() in above else 3})

    door, chat = asker((RATE, only_below))
    selected = door.wait(global_.select_with_model(door, snapshot, QUESTION, -1))
    kept, coverage = selected.reports, selected.coverage
    assert kept and {one.level for one in kept} == {1} and coverage["rated"] == len(every)


def test_ratings_stop_at_forty_and_leave_half_for_the_levels_below(monkeypatch: pytest.MonkeyPatch) -> None:
    roots = [Rated(f"r{n:03}", 0, "", False, 0.0, n / 100, 1.0, 1.0) for n in range(100)]
    leaves = [Rated(f"{one.id}.{n}", 1, one.id, True, 0.0, 1.0, 1.0, 1.0) for one in roots for n in range(3)]
    children = {"": roots} | {one.id: [leaf for leaf in leaves if leaf.parent == one.id] for one in roots}
    asked: list[str] = []

    async def ratings(asker: Any, snapshot: Any, query: str, some: list[Rated]) -> tuple[list[float], list[str]]:
        asked.extend(one.id for one in some)
        return [5.0] * len(some), []

    monkeypatch.setattr(global_, "_ratings", ratings)
    door = Asker(None, None, None)
    kept, rated, _ = door.wait(global_._descend_with_model(door, None, "?", children))  # type: ignore[arg-type]
    assert rated == len(asked) == 40 and sum("." in id for id in asked) == 20
    assert asked[:3] == ["r099", "r098", "r097"]  # lexically nearest first
    assert not {one.parent for one in kept} & {one.id for one in kept}


def test_a_question_about_nothing_in_particular_costs_no_rating(snapshot: Snapshot) -> None:
    door, chat = asker()
    result = global_search(snapshot, "这些文档的主要主题是什么？", asker=door, answer=True)
    assert result.state == "answered" and prompts_with(chat, RATE) == [] and result.coverage["rated"] == 0


def test_a_level_is_read_whole_without_ratings_and_one_too_deep_is_said(snapshot: Snapshot) -> None:
    rows = reports_of(snapshot)
    deepest = max(row["level"] for row in rows.values())
    door, chat = asker()
    result = global_search(snapshot, QUESTION, level=deepest + 5, asker=door, answer=True)
    assert f"no level {deepest + 5}" in result.hint and str(deepest) in result.hint
    assert prompts_with(chat, RATE) == [] and result.coverage["read"] == result.coverage["kept"] > 5
    assert f"no level {deepest + 5}" in global_search(snapshot, QUESTION, level=deepest + 5).hint
    assert "no level" not in global_search(snapshot, QUESTION, level=deepest).hint


# ---- map and reduce --------------------------------------------------------------------------------


def test_an_answer_is_reduced_from_points_and_its_reports_resolve(snapshot: Snapshot) -> None:
    door, chat = asker()
    result = global_search(snapshot, QUESTION, asker=door, answer=True)
    assert (result.state, result.method, result.coverage["points"]) == ("answered", "llm:scripted", 2)
    cited = re.findall(r"\bc\d+\b", result.answer)
    rows = reports_of(snapshot)
    assert len(set(cited)) == 1 and cited[0] in rows and "c99" in result.hint
    assert f"* [{cited[0]}] {rows[cited[0]]['title']}" in result.answer and result.text == result.answer
    assert re.search(r", lines \d+-\d+", result.answer)
    reduced = prompts_with(chat, REDUCE)[0]
    assert reduced.index("水很清") < reduced.index("Eelgrass grows")  # best first
    assert "I do not know" not in reduced and "99" not in reduced.partition("<context>")[2]
    assert result.usage["by_stage"]["reduce"]["calls"] == 1 and packing_budget.size(result)[0] <= 6000


def test_points_of_different_batches_meet_under_one_numbering(
    snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(global_, "BATCH_TOKENS", 900)
    first = lambda messages, _: json.dumps({"points": [{  # noqa: E731
        "description": re.search(r"^1\|([^|]+)\|", messages[-1].content, re.MULTILINE)[1] + " [Data: Reports (1)]",
        "score": 50,
    }]})  # fmt: skip
    door, chat = asker((MAP, first))
    result = global_search(snapshot, QUESTION, level=0, asker=door, answer=True, max_tokens=12_000)
    assert result.coverage["batches"] == len(prompts_with(chat, MAP)) > 2
    lines = re.findall(r"^- \(score 50\) (.+) \[Data: Reports \((c\d+)\)\]$", prompts_with(chat, REDUCE)[0], re.MULTILINE)
    assert len(lines) > 1 and len({id for _, id in lines}) == len(lines)
    chosen, _ = reports.whole_level(snapshot, QUESTION, 0)
    order = sorted(chosen, key=lambda one: (-round(one.weight, 6), one.id))
    titles = {row["id"]: row["title"] for row in reports_of(snapshot).values()}
    assert all(titles[order[int(id[1:]) - 1].id].replace("|", "/")[:200] == title for title, id in lines)


def test_no_prompt_holds_a_stored_number(snapshot: Snapshot) -> None:
    door, chat = asker()
    global_search(snapshot, QUESTION, asker=door, answer=True)
    for prompt in prompts_with(chat, MAP) + prompts_with(chat, RATE):
        assert not re.search(r"\b[cter]\d+\b|[0-9a-f]{32}", prompt.partition("<report")[2])
    numbers = re.findall(r"^(\d+)\|", prompts_with(chat, MAP)[0], re.MULTILINE)
    assert numbers == [str(n + 1) for n in range(len(numbers))]


def test_the_same_question_makes_the_same_prompts_and_the_book_answers_it(snapshot: Snapshot, tmp_path: Path) -> None:
    door, chat = asker(book=tmp_path)
    first = global_search(snapshot, QUESTION, asker=door, answer=True)
    asked = len(chat.calls)
    second = global_search(snapshot, QUESTION, asker=door, answer=True)
    assert len(chat.calls) == asked and second.answer == first.answer and second.usage["calls"] == 0


# ---- nothing, and failures -------------------------------------------------------------------------


def test_nothing_relevant_is_said_without_a_reduce_call(snapshot: Snapshot) -> None:
    for rules in (((RATE, '{"rating": 0}'),), ((MAP, '{"points": [{"description": "I do not know", "score": 0}]}'),)):
        door, chat = asker(*rules)
        result = global_search(snapshot, QUESTION, asker=door, answer=True)
        assert (result.state, result.answer, result.method) == ("context", "", "")
        assert re.search(r"found nothing on it in [1-9]\d* reports?", result.hint)
        assert prompts_with(chat, REDUCE) == [] and result.coverage["rated"] > 0 and result.text and result.hint


def test_some_failed_batches_make_the_answer_partial(snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(global_, "BATCH_TOKENS", 900)
    seen: list[int] = []

    def flaky(messages: Any, _: Any) -> Any:
        seen.append(1)
        return ModelError("the server said 500", "Try later") if len(seen) == 1 else POINTS

    door, _ = asker((MAP, flaky))
    result = global_search(snapshot, QUESTION, level=0, asker=door, answer=True)
    assert result.state == "partial" and result.answer
    assert result.coverage["batches_failed"] == 1
    assert result.coverage["batches_answered"] == result.coverage["batches"] - 1 > 0
    assert "1 of" in result.hint and "500" in result.hint


@pytest.mark.parametrize("mark", ["", MAP, REDUCE])
def test_a_model_that_fails_leaves_points_as_context(snapshot: Snapshot, mark: str) -> None:
    door, _ = asker((mark, ModelError("the server said 503", "Try later")))
    result = global_search(snapshot, QUESTION, asker=door, answer=True)
    assert (result.state, result.answer) == ("failed", "") and ("## Points" if mark == REDUCE else "- [t") in result.text and "503" in result.hint


def test_ratings_that_fail_leave_the_choice_to_the_words_and_say_so(snapshot: Snapshot) -> None:
    door, chat = asker((RATE, ModelError("the server said 429", "Try later")))
    result = global_search(snapshot, QUESTION, asker=door, answer=True)
    assert result.state == "partial" and result.answer and len(prompts_with(chat, MAP)) > 0
    assert result.coverage["unrated"] == result.coverage["rated"] > 0
    assert f"{result.coverage['unrated']} reports got no rating from the model" in result.hint and "429" in result.hint


def test_without_a_model_it_is_the_search_as_ever_and_says_how_to_turn_one_on(snapshot: Snapshot) -> None:
    plain, result = (global_search(snapshot, QUESTION, answer=answer) for answer in (False, True))
    assert result.state == "context" and "GRAPHRAG_MCP_CHAT_MODEL" in result.hint
    points = result.text.splitlines()  # the hint may take the room of the last one
    assert len(points) > 8 and set(points) <= set(plain.text.splitlines())


def test_a_slow_model_gives_points_now_and_the_answer_next_time(snapshot: Snapshot, tmp_path: Path) -> None:
    door, chat = asker(book=tmp_path, latency=0.2)
    first = global_search(snapshot, QUESTION, asker=door, answer=True, options=AnswerOptions(seconds=0.1))
    assert first.state == "partial" and "- [t" in first.text and "same call again" in first.hint
    assert global_search(snapshot, QUESTION, asker=door, answer=True, options=AnswerOptions(seconds=10)).state == "answered"


@pytest.mark.parametrize("budget", [200, 500, 1500, 6000])
def test_no_answered_result_passes_its_budget(snapshot: Snapshot, budget: int) -> None:
    door, _ = asker((REDUCE, "The meadow grows. " * 40 + "[Data: Reports (c1)]"))
    result = global_search(snapshot, QUESTION, asker=door, answer=True, max_tokens=budget)
    assert packing_budget.size(result)[0] <= budget and result.state == "answered"


# ---- replies ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "points"),
    [
        ('{"points": []}', ()),
        ('Here: ```json\n[{"description": "A", "score": "85%"}]\n```', (Point("A", 85.0),)),
        ('{"points": [{"description": "A"}, {"description": "B", "score": 0.9}]}', (Point("A", 1.0), Point("B", 90.0))),
        ('{"points": [{"description": "A", "score": 140}]}', (Point("A", 100.0),)),
    ],
)
def test_points_are_read_as_models_write_them(said: str, points: tuple[Point, ...]) -> None:
    assert read_points(said)[: len(points) or None] == points


@pytest.mark.parametrize("said", ["", "No JSON here.", '{"answer": "x"}'])
def test_a_reply_without_points_is_no_reply(said: str) -> None:
    with pytest.raises(BadReply):
        read_points(said)


@pytest.mark.parametrize(
    ("said", "value"), [('{"reason": "r", "rating": 3}', 3), ('{"rating": "4/5"}', 4), ("2", 2), ('{"rating": 9}', 5),
                        ("3", 3), ('{"rating": 2.0}', 2), ("<think>4</think>1", 1)],
)  # fmt: skip
def test_ratings_are_read_as_models_write_them(said: str, value: int) -> None:
    assert read_rating(said) == value


@pytest.mark.parametrize("said", ["", "very relevant", '{"rating": "high"}', '{"rating": null}', '{"rating": true}'])
def test_what_is_no_rating_is_refused(said: str) -> None:
    with pytest.raises(BadReply):
        read_rating(said)


def test_earlier_turns_stand_first_in_every_batch(snapshot: Snapshot) -> None:
    door, chat = asker((MAP, ModelError("the server said 503", "Try later")))
    global_search(snapshot, QUESTION, level=0, asker=door, answer=True, history=["user: Who was Tobias Fenn?"])
    batches = prompts_with(chat, MAP)
    assert batches
    for prompt in batches:
        assert prompt.index("-----Conversation History-----") < prompt.index("\n1|")
        assert "user|Who was Tobias Fenn?" in prompt
