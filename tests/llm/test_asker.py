"""The door to models: the book first, one call for one question, a retry, budgets, and an end that loses nothing."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graphrag_mcp.errors import Damaged, GraphRAGError, ModelError
from graphrag_mcp.llm.asker import Answer, Ask, Asker, BadReply, batches, key_of
from graphrag_mcp.llm.budget import Budget
from graphrag_mcp.llm.opening import open_asker
from graphrag_mcp.llm.protocols import Message, Reply
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.reply_cache import NAME, AnswerBook
from tests.support.scripted import ScriptedChat, ScriptedEmbedder
from tests.support.workload import PATIENCE, until


def question(words: str = "q", kind: str = "extract") -> Ask[str]:
    def parse(reply: str) -> str:
        if not reply.startswith("good"):
            raise BadReply("it is not good")
        return reply.upper()

    return Ask(kind, (Message("user", words),), parse, lambda: "NOBODY")


def asked(asker: Asker, *questions: Ask[str]) -> list[Answer[str]]:
    async def all_of_them() -> list[Answer[str]]:
        return list(await asyncio.gather(*(asker.ask(one) for one in questions)))

    return asker.wait(all_of_them())


def test_nobody_to_ask_gives_what_is_had_without(tmp_path: Path) -> None:
    asker = Asker(None, None, None)
    assert asked(asker, question()) == [Answer("NOBODY", reason="no model")]
    assert not asker.on and not asker.may_answer("extract")
    asker.close()


def test_an_answer_is_bought_once_and_then_stands_in_the_book_for_models_and_for_none(tmp_path: Path) -> None:
    chat = ScriptedChat([("", "good")])
    asker = Asker(AnswerBook(tmp_path), chat, None)
    (first,), (second,) = asked(asker, question()), asked(asker, question())
    assert (first.value, first.by, first.fresh, first.raw) == ("GOOD", "llm:scripted", True, "good")
    assert (second.value, second.by, second.fresh) == ("GOOD", "llm:scripted", False)
    asker.close()
    later = Asker(AnswerBook(tmp_path), None, None)
    assert asked(later, question())[0].value == "GOOD" and later.may_answer("extract")
    assert not later.may_answer("report") and len(chat.calls) == 1
    later.close()


def test_the_same_question_asked_many_times_at_once_is_one_call(tmp_path: Path) -> None:
    chat = ScriptedChat([("", "good")], latency=0.05)
    asker = Asker(AnswerBook(tmp_path), chat, None)
    answers = asked(asker, *(question() for _ in range(20)))
    assert {one.value for one in answers} == {"GOOD"} and sum(one.fresh for one in answers) == 1
    assert len(chat.calls) == 1
    asker.close()


def test_a_reply_that_cannot_be_used_is_asked_for_once_more_with_the_reason(tmp_path: Path) -> None:
    chat = ScriptedChat([("", "good")], fail=lambda number, _: "bad" if number in (1, 3, 4) else None)
    book = AnswerBook(tmp_path)
    asker = Asker(book, chat, None)
    assert asked(asker, question("a"))[0].value == "GOOD"
    assert "it is not good" in chat.calls[1][-1].content
    answer = asked(asker, question("b"))[0]
    assert (answer.value, answer.by, answer.reason) == ("NOBODY", "", "refused twice by scripted: it is not good")
    assert book.kinds() == {"extract": 1, "refused": 1} and not book.get(key_of(question("b").messages, None))
    assert asked(asker, question("b"))[0] == answer and len(chat.calls) == 4, "it is not asked again"
    again = Asker(book, chat, None, retry_refused=True)
    assert asked(again, question("b"))[0].value == "GOOD" and book.kinds() == {"extract": 2}
    again.close()
    asker.close()


@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_of_a_reply_that_must_be_whole_nothing_is_taken_when_it_was_cut_off(tmp_path: Path, finish: str) -> None:
    class Cut(ScriptedChat):
        async def complete(self, messages: Sequence[Message], **wishes: Any) -> Reply:
            said = await super().complete(messages, **wishes)
            return Reply(said.text, said.usage, finish)

    chat = Cut([("", "good beginning of")])
    asker = Asker(AnswerBook(tmp_path), chat, None)
    part, whole = asked(asker, question("part"), replace(question("whole"), if_cut="refused"))
    assert part.value == "GOOD BEGINNING OF", "what reads a part and asks for the rest gets the part"
    assert (whole.value, whole.by, whole.reason) == ("NOBODY", "", "refused twice by scripted: the reply was cut off")
    (shown,) = asked(asker, replace(question("shown"), if_cut="shown"))
    assert shown.value == "GOOD BEGINNING OF" and shown.cut and part.cut
    assert not asker.answered(key_of(question("shown").messages, None))
    assert len(chat.calls) == 4 and asker.answered(key_of(question("part").messages, None))
    assert not asker.answered(key_of(question("whole").messages, None))
    asker.close()


def test_a_model_that_refuses_for_good_is_not_asked_again(tmp_path: Path) -> None:
    refusal = ModelError("the key is wrong", "Set another", final=True)
    chat = ScriptedChat([("", refusal)], latency=0.01)
    asker = Asker(AnswerBook(tmp_path), chat, None, concurrency=2)
    answers = asked(asker, *(question(f"q{number}") for number in range(50)))
    assert {one.reason for one in answers} == {"the key is wrong. Set another."}
    assert len(chat.calls) <= 2 and not asker.on
    asker.close()


@pytest.mark.parametrize("text", ["good \ud83d", "good \ud83d\ude00", "good \0 nul", "good " + "x" * 300_000])
def test_replies_with_odd_characters_are_stored_and_nobody_waits_for_ever(tmp_path: Path, text: str) -> None:
    asker = Asker(AnswerBook(tmp_path), ScriptedChat([("", text)]), None)
    answer = asker.start(asker.ask(question())).result(10)
    assert answer.by and answer.fresh
    assert asked(asker, question())[0].raw == answer.raw
    answer.raw.encode("utf-8")
    asker.close()


def test_a_book_that_cannot_be_written_is_an_error_and_no_endless_wait(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", "utf-8")
    asker = Asker(AnswerBook(tmp_path / "file" / "corpus"), ScriptedChat([("", "good")]), None)
    with pytest.raises(Damaged, match="cannot be used"):
        asker.start(asker.ask(question())).result(10)
    asker.close()


@pytest.mark.parametrize(
    "limits", [{"max_calls": 7}, {"max_tokens": 1_500}, {"max_cost": 1.0, "price_prompt": 2_000.0, "price_output": 1_000.0}]
)
def test_a_budget_of_calls_tokens_or_money_is_not_passed_by_the_calls_under_way(limits: dict) -> None:
    chat = ScriptedChat([("", "good " * 100)], latency=0.005)
    budget = Budget(**limits)
    asker = Asker(None, chat, None, budget=budget, concurrency=25)
    answers = asked(asker, *(question(f"q{number}") for number in range(60)))
    spent = asker.spent()
    used = {"max_calls": spent.calls, "max_tokens": spent.total("prompt_tokens", "output_tokens"), "max_cost": spent.cost}
    alone = {name: value / len(chat.calls) for name, value in used.items()}
    limit = next(iter(limits))
    assert limits[limit] - 1.1 * alone[limit] <= used[limit] <= limits[limit], "no more, and all that fits"
    assert {answer.reason for answer in answers if not answer.by} == {"budget"}
    asker.close()


def test_stopping_gives_up_what_is_in_flight_and_keeps_what_was_answered(tmp_path: Path) -> None:
    chat = ScriptedChat([("slow", "good slow"), ("", "good")], fail=lambda *_: None)
    asker = Asker(AnswerBook(tmp_path), chat, None)
    asked(asker, *(question(f"q{number}") for number in range(10)))
    slow = ScriptedChat([("", "good")], latency=3600)
    waiting = Asker(AnswerBook(tmp_path), slow, None)
    future = waiting.start(waiting.ask(question("slow")))
    while not slow.calls:
        time.sleep(0.005)
    waiting.stop()
    with pytest.raises(BaseException) as said:
        future.result(PATIENCE)
    assert not isinstance(said.value, TimeoutError), "a stop does not wait for a reply"
    assert asked(waiting, question("q3"))[0].value == "GOOD", "the book is still read"
    assert asked(waiting, question("new"))[0].reason == "stopped"
    waiting.close()
    assert AnswerBook(tmp_path).kinds() == {"extract": 10}
    asker.close()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts what /proc shows")
def test_askers_leave_no_thread_and_no_open_file_behind(tmp_path: Path) -> None:
    def one(number: int) -> None:
        asker = Asker(AnswerBook(tmp_path), ScriptedChat([("", "good")]), None)
        asked(asker, question(f"q{number}"))
        asker.close()

    one(0)
    gc.collect()
    gc.disable()
    try:
        before = len(os.listdir("/proc/self/fd")), threading.active_count()
        for number in range(1, 15):
            one(number)
        until(lambda: len(os.listdir("/proc/self/fd")) <= before[0] and threading.active_count() <= before[1])
    finally:
        gc.enable()


def test_refreshing_asks_again_but_each_question_only_once(tmp_path: Path) -> None:
    asker = Asker(AnswerBook(tmp_path), ScriptedChat([("", "good old")]), None)
    asked(asker, question())
    asker.close()
    chat = ScriptedChat([("", "good new")])
    asker = Asker(AnswerBook(tmp_path), chat, None, refresh=True)
    assert [asked(asker, question())[0].value for _ in range(3)] == ["GOOD NEW"] * 3
    assert len(chat.calls) == 1
    asker.close()


@pytest.mark.parametrize("trouble", [ModelError("no credit", "Add some", final=True), "bad"])
def test_an_answer_that_cannot_be_had_anew_is_that_of_before_and_the_note_says_so(
    trouble: ModelError | str, tmp_path: Path
) -> None:
    asker = Asker(AnswerBook(tmp_path), ScriptedChat([("", "good old")]), None)
    asked(asker, question())
    asker.close()
    asker = Asker(AnswerBook(tmp_path), ScriptedChat([("", "good")], fail=lambda *_: trouble), None, refresh=True)
    known, never = asked(asker, question(), question("never asked"))
    assert (known.value, known.by, known.fresh) == ("GOOD OLD", "llm:scripted", False)
    assert (never.value, never.by) == ("NOBODY", "") and never.reason
    assert "could be had again" in asker.note
    asker.close()


def test_vectors_come_from_the_book_and_only_missing_ones_are_made(tmp_path: Path) -> None:
    model = ScriptedEmbedder(8, fail=lambda number, _: ModelError("busy", "wait") if number == 2 else None)
    asker = Asker(AnswerBook(tmp_path), None, model, batch=2, concurrency=1)
    first = asker.wait(asker.embed(["a", "b", "c", "d", "a"]))
    assert [vector is None for vector in first] == [False, False, True, True, False] and first[0] == first[4]
    second = asker.wait(asker.embed(["a", "b", "c", "d", "a"]))
    assert None not in second and model.calls == [("a", "b"), ("c", "d"), ("c", "d")]
    asker.close()


def test_one_text_that_no_model_takes_does_not_cost_the_others_of_its_batch_their_vectors(tmp_path: Path) -> None:
    def fail(_: int, texts: Sequence[str]) -> ModelError | None:
        refused = any("endless" in text for text in texts) or len(texts) > 16
        return ModelError("too long", "Use another", divisible=True) if refused else None

    texts = [f"text {number}" for number in range(40)] + ["endless"] + [f"more {number}" for number in range(23)]
    model = ScriptedEmbedder(8, fail=fail)
    asker = Asker(AnswerBook(tmp_path), None, model)
    found = dict(zip(texts, asker.wait(asker.embed(texts)), strict=True))
    assert [text for text, vector in found.items() if vector is None] == ["endless"]
    assert asker.broken == ["too long"] and asker.spent().calls == len(model.calls) < 20
    model.calls.clear()
    asker.wait(asker.embed(texts))
    assert model.calls == [("endless",)]
    asker.close()


def test_batches_keep_to_both_limits_and_lose_nothing() -> None:
    texts = {str(number): "x" * (number % 7 * 10) for number in range(50)}
    found = batches(texts, 8, 100)
    assert {key: text for batch in found for key, text in batch.items()} == texts
    assert all(len(batch) <= 8 and (len(batch) == 1 or sum(map(len, batch.values())) <= 100) for batch in found)
    assert batches({"a": "x" * 500}, 8, 100) == [{"a": "x" * 500}] and batches({}, 8, 100) == []


def test_searches_do_without_a_damaged_book_and_indexing_mends_it_and_says_so(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"no database" * 500)
    asker = open_asker(tmp_path, Settings(), limited=False)
    assert asked(asker, question())[0].reason == "no model" and "cannot be used" in asker.note
    asker.close()
    asker = open_asker(tmp_path, Settings())
    with pytest.raises(GraphRAGError, match="doctor --repair"):
        asked(asker, question())
    asker.close()
    asker = open_asker(tmp_path, Settings(), mend=True)
    assert asked(asker, question())[0].reason == "no model" and "was damaged" in asker.note
    asker.close()
