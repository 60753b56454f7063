"""Replies as text: thoughts taken out, JSON read whatever stands around it or is wrong in it."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Annotated

import pytest
from pydantic import BaseModel

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

READ = {
    '{"a": 1}': [{"a": 1}],
    'See {"a": 1}. Now: {"b": [1, null], "c": {}}': [{"a": 1}, {"b": [1, None], "c": {}}],
    "Sure, {name}!\n```json\n[{}]\n```\nBye": [[{}]],
    '<think>{"no": 1}</think>{"a": "x\ny"}': [{"a": "x\ny"}],
    "{'a': True, 'b': None,}": [{"a": True, "b": None}],
    '{"a": "he said "yes" to it", "b": 2}': [{"a": 'he said "yes" to it', "b": 2}],
    '{"a": 1 // so\n}': [{"a": 1}],
    '{a: 1, "b": "x"}': [{"a": 1, "b": "x"}],
}


@pytest.mark.parametrize("reply", READ)
def test_json_is_found_and_repaired(reply: str) -> None:
    found = replies.read(reply)
    assert list(found.values) == READ[reply] and found.whole


def test_of_a_reply_that_was_cut_off_the_complete_elements_stay() -> None:
    whole = json.dumps({"all": [{"a": 1, "of": ["x", "}"]}, {"a": 2}, {"a": 3}], "end": {}})
    for length in range(whole.index("2}") + 2, len(whole) - 1):
        found = replies.read(whole[:length])
        (value,) = found.values
        assert not found.whole and value["all"][:2] == [{"a": 1, "of": ["x", "}"]}, {"a": 2}], whole[:length]


def test_a_broken_object_is_repaired_alone_or_stands_as_none() -> None:
    found = replies.read('{"all": [{"a": "x}, {"a": "he said "y""}, {"a": "z"}], "b": [{"c": "}"},]}')
    (value,) = found.values
    assert found.repaired == 2 and value["all"][1:] == [{"a": 'he said "y"'}, {"a": "z"}] and value["b"] == [{"c": "}"}]
    huge = '{"all": [{"a": "' + 'he said "y" ' * 400 + '"}, {"a": "z"}]}'
    assert replies.read(huge).values == ({"all": [None, {"a": "z"}]},)


def test_half_characters_are_cleaned_away() -> None:
    (value,) = replies.read('{"a": "\\ud83d\\ude00 \\ud83d x"}').values
    assert replies.clean(value["a"], 90) == "😀 x"


@pytest.mark.parametrize("reply", ["", "no", "{this} and [that]", '<think>{"a": 1}', "[" * 100_000, '{"a":' * 50_000])
def test_no_json_is_a_bad_reply(reply: str) -> None:
    with pytest.raises(replies.BadReply):
        replies.read(reply)


@pytest.mark.parametrize("piece", ["[", '{"a":', '{"a": "', "[see {note}] ", '{"a": "x" y "z" ', '{"a": 1},', "'", "/*", "\\", '["", '])
def test_reading_takes_linear_time(piece: str) -> None:
    def read(length: int) -> None:
        with suppress(replies.BadReply):
            replies.read('{"a": [' + piece * (length // len(piece)))

    assert linear(read, 5_000, largest=80_000)


class Small(BaseModel):
    name: str
    parts: list[Part]
    score: Annotated[float | None, replies.NUMBER] = None


class Part(BaseModel):
    text: str


def test_a_schema_is_the_one_that_strict_servers_take() -> None:
    part = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"], "additionalProperties": False}
    assert replies.schema_of(Small) == {
        "title": "Small", "type": "object", "required": ["name", "parts", "score"], "additionalProperties": False,
        "properties": {"name": {"type": "string"}, "parts": {"type": "array", "items": part}, "score": {"type": "number"}},
    }  # fmt: skip


def test_what_a_form_lacks_is_said_without_the_words_of_the_reply() -> None:
    assert replies.validated(Small, 'So: [{"name": "x", "parts": []}]').name == "x"
    with pytest.raises(replies.BadReply, match=r"^parts\.0\.text: Field required$"):
        replies.validated(Small, '{"name": "secret", "parts": [{}]}')
