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
    assert replies.read("{'a': True, 'b': None, 'c': NaN, 'd': 7/10}") == {"a": True, "b": None, "c": None, "d": "7/10"}
    assert replies.read('[{"a": 1}, {"a": 2') == [{"a": 1}]
    assert replies.read('{"a": [{"b": 1}, {"b": 2]}') == {"a": [{"b": 1}, {"b": 2}]}


def test_half_a_text_is_dropped_unless_it_is_asked_for():
    assert replies.read('{"n": 1, "answer": "It began in') == {"n": 1}
    assert replies.read('{"n": 1, "answer": "It began in', keep_cut=True) == {"n": 1, "answer": "It began in"}


def test_half_characters_never_leave():
    value = replies.read('{"a": "\\ud83d\\ude00 \\ud83d x", "\\udc00": 1}')
    assert value["a"] == "😀 \ufffd x"
    assert json.dumps(value, ensure_ascii=False).encode()


@pytest.mark.parametrize("reply", ["", "no", "{this} and [that]", '<think>{"a": 1}', "[" * 100_000, '{"a":' * 50_000])
def test_no_json_is_a_value_error(reply):
    with pytest.raises(ValueError):
        replies.read(reply)


def test_values_around_and_between_prose_are_read_and_what_had_to_be_mended_is_counted():
    reply = 'First {"a": 1}, then:\n[{"b": 2,}, {\'c\': "x "y" z"}]\nand {"d": {"e": 3}}'
    values = [{"a": 1}, [{"b": 2}, {"c": 'x "y" z'}], {"d": {"e": 3}}]
    assert replies.json_values(reply) == (values, True, 2)


def test_an_object_that_the_reply_ends_in_is_dropped_unless_it_holds_others():
    assert replies.json_values('{"all": [{"a": 1}, {"a": 2, "b": "x') == ([{"all": [{"a": 1}]}], False, 0)
