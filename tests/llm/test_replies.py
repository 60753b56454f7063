"""Replies as text: thoughts taken out, JSON read whatever stands around it or is wrong in it."""

from __future__ import annotations

import json

import pytest

from graphrag_mcp.llm import replies
from graphrag_mcp.llm.replies import without_thoughts
from tests.support.workload import linear

THOUGHTS = {
    "no thoughts": "no thoughts",
    "<think>a\nb</think>\n\nAnswer": "Answer",
    "Well.\n<think>x</think>after": "Well.\nafter",
    "<THINKING>a</THINKING>{}": "{}",
    "  <think>it never ends": "",
    "<think>a</think> <think>b": "",
    "Done.\n<reasoning>b": "Done.\n",
    "The tag <think> opens it": "The tag <think> opens it",
    "The tags <think>x</think> enclose it": "The tags <think>x</think> enclose it",
    "It began in the prompt.\n</think>\nAnswer": "Answer",
    "One writes </think> to end it": "One writes </think> to end it",
    "<think></think>": "",
}


@pytest.mark.parametrize("reply", THOUGHTS)
def test_thinking_is_no_part_of_the_answer(reply: str) -> None:
    assert without_thoughts(reply) == THOUGHTS[reply]


@pytest.mark.parametrize("piece", ["<think>", "</think>", "<think>a</think>", "\n<think>", "<thin", "<"])
def test_taking_thinking_out_takes_linear_time(piece: str) -> None:
    assert linear(lambda length: without_thoughts(piece * (length // len(piece))), 10_000, largest=400_000)


# ---- JSON -------------------------------------------------------------------------------------------


def test_json_keeps_its_values_and_the_largest_one_wins():
    assert replies.read('See {"a": 1}. Now: {"b": [1, -2.5, true, null, "x"], "c": {}} [2]') == {
        "b": [1, -2.5, True, None, "x"], "c": {},
    }  # fmt: skip
    assert replies.read("```json\n[]\n```") == []
    assert replies.read('[{"a": 1}, {"a": 2') == {"a": 1}


def test_half_characters_never_leave():
    value = replies.read('{"a": "\\ud83d\\ude00 \\ud83d x", "\\udc00": 1}')
    assert value["a"] == "😀 \ufffd x"
    assert json.dumps(value, ensure_ascii=False).encode()


@pytest.mark.parametrize("reply", ["", "no", "{this} and [that]", '<think>{"a": 1}', "[" * 100_000, '{"a":' * 50_000])
def test_no_json_is_a_value_error(reply):
    with pytest.raises(ValueError):
        replies.read(reply)


def test_values_around_and_between_prose_are_read_and_of_a_broken_one_what_it_holds():
    reply = 'First {"a": 1}, then:\n[{"b": 2,}]\nand {"d": {"e": 3}}'
    assert replies.json_values(reply) == ([{"a": 1}, [{"b": 2}], {"d": {"e": 3}}], True)
    broken = '{"all": [{"a": 1}, {"b": "x "y" z"}, {"c": 3}]}'
    assert replies.json_values(broken) == ([{"a": 1}, {"c": 3}], False)


def test_an_object_that_the_reply_ends_in_is_dropped_and_what_it_holds_is_kept():
    assert replies.json_values('{"all": [{"a": 1}, {"a": 2, "b": "x') == ([{"a": 1}], False)


@pytest.mark.parametrize("piece", ['{"a":', '[1, ', '{"a": 1}', '{"a" ', '[{"', '{"a": 1,} ', "[[["])
def test_reading_json_takes_linear_time(piece: str) -> None:
    assert linear(lambda length: replies.json_values(piece * (length // len(piece))), 10_000, largest=400_000)
