"""index/describe.py: many descriptions of one name become one, with a model or without."""

from __future__ import annotations

from pathlib import Path
from string import Template

import pytest

from graphrag_mcp.errors import ModelError
from graphrag_mcp.index.describe import (
    MOST_WORDS,
    DescribeParams,
    joined,
    needs_summary,
    parse_description,
    summarise,
)
from graphrag_mcp.llm import prompts
from graphrag_mcp.llm.asker import Asker, BadReply
from graphrag_mcp.llm.replies import words
from graphrag_mcp.settings import Settings
from graphrag_mcp.text.tokens import count_tokens
from tests.support.reply_forms import description
from tests.support.scripted import ScriptedChat

PARAMS = DescribeParams(prompts.load("describe"))
FACTS = [f"In {year} the guild lost {year - 1690} ships at the northern quay of Port Ember." for year in range(1700, 1760)]


def shown(chat: ScriptedChat) -> list[str]:
    return [call[-1].content.rpartition("<descriptions>")[2].partition("</descriptions>")[0] for call in chat.calls]


def test_many_fragments_or_long_ones_need_a_summary_and_repeated_ones_do_not():
    settings = Settings(summary_fragments=3, summary_tokens=100)
    assert not needs_summary(["A ship."], settings) and not needs_summary(["A ship."] * 9 + ["a ship"], settings)
    assert needs_summary(["One.", "Two.", "Three."], settings) and needs_summary(FACTS[:8], Settings())
    assert not needs_summary(FACTS[:7], Settings())
    assert needs_summary([" ".join(FACTS[:4]), " ".join(FACTS[4:8])], settings)
    assert not needs_summary([" ".join(FACTS)], settings)  # one text needs no merging


def test_without_a_model_each_fragment_stands_once_in_order_and_within_the_limit():
    assert joined(["B is a port.", "A  is\na ship.", "b is a port", ""]) == "B is a port.\nA is a ship."
    for limit in (20, 50, 120, 400, 1200):
        text = joined(FACTS, limit)
        assert count_tokens(text) <= limit
        assert all(line in FACTS for line in text.splitlines())
    assert joined(FACTS, 120).splitlines() == FACTS[: len(joined(FACTS, 120).splitlines())]
    long = joined(["句子很长。" * 2000])
    assert 900 < count_tokens(long) <= 1210 and long.endswith("。")
    assert joined([]) == ""


def test_a_model_is_shown_every_fragment_between_tags_and_its_reply_is_the_description():
    chat = ScriptedChat([(r"Merge", "<think>hm</think>" + description("The guild lost ships from 1700 on."))])
    asker = Asker(None, chat, None)
    made = asker.wait(summarise(asker, ["Lantern Guild"], ["It is old.", "It ends </descriptions> here."], PARAMS))
    asker.close()
    assert made == ("The guild lost ships from 1700 on.", "llm:scripted", "")
    assert shown(chat) == ["\nName: Lantern Guild\n1. It is old.\n2. It ends <\\/descriptions> here.\n"]


def test_both_ends_of_a_relationship_are_named():
    chat = ScriptedChat([(r"", description("They fought each other."))])
    asker = Asker(None, chat, None)
    asker.wait(summarise(asker, ["A", "B"], ["x y", "z"], PARAMS))
    asker.close()
    assert "\nName: A – B\n1. x y\n" in shown(chat)[0]


def test_of_more_than_fits_the_first_are_shown():
    chat = ScriptedChat([(r"", description("Ships were lost."))])
    asker = Asker(None, chat, None)
    params = DescribeParams(PARAMS.template, input_tokens=400)
    assert asker.wait(summarise(asker, ["Guild"], FACTS, params)) == ("Ships were lost.", "llm:scripted", "")
    asker.close()
    (body,) = shown(chat)
    assert FACTS[0] in body and FACTS[-1] not in body and 300 < count_tokens(body) <= 500


@pytest.mark.parametrize("trouble", ["", "I cannot do that.", ModelError("the server is gone", "Start it")])
def test_when_no_model_answers_the_fragments_are_joined_and_the_reason_is_given(trouble):
    asker = Asker(None, ScriptedChat([(r"", trouble)]), None)
    text, by, reason = asker.wait(summarise(asker, ["Guild"], FACTS[:9], PARAMS))
    asker.close()
    assert (text, by) == (joined(FACTS[:9]), "") and reason
    nobody = Asker(None, None, None)
    assert nobody.wait(summarise(nobody, ["Guild"], FACTS[:9], PARAMS)) == (joined(FACTS[:9]), "", "no model")
    nobody.close()


def test_a_reply_is_brought_to_plain_text():
    for said, text in {"Plain.": "Plain.", "## Summary\n\nFirst.\n\n\nSecond **bold**.": "Summary\nFirst.\nSecond bold."}.items():
        assert parse_description(f"Sure!\n```json\n{description(said)}\n```") == text


@pytest.mark.parametrize(
    "reply",
    ["", "  \n", "...", "<think>never ended", "I'm sorry, I can't help.", "<html><body>502</body></html>", '{"n": 1}', "Plain.",
     "x" * 2_000_000, "Merge these.\n<descriptions>\n1. A\n</descriptions>", description(" . "), prompts.load("describe").template],
)  # fmt: skip
def test_what_is_no_description_is_refused(reply):
    with pytest.raises(BadReply):
        parse_description(reply)


def test_a_summary_that_is_too_long_ends_with_a_whole_sentence():
    text = parse_description(description(" ".join(FACTS * 3)))
    assert MOST_WORDS * 0.9 < words(text) <= MOST_WORDS and text.endswith("Port Ember.")


def test_the_prompt_is_short_and_a_corpus_may_have_its_own(tmp_path: Path):
    assert count_tokens(prompts.load("describe").template) < 300
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "describe.md").write_text("Names: $names. Texts: $descriptions. In $language.", "utf-8")
    params = DescribeParams(prompts.load("describe", tmp_path), "German")
    assert isinstance(params.template, Template) and params.language == "German"
    chat = ScriptedChat([(r"", description("Ein Text."))])
    asker = Asker(None, chat, None)
    asker.wait(summarise(asker, ["A"], ["x", "y"], params))
    asker.close()
    assert chat.calls[0][0].content == "Names: A. Texts: 1. x\n2. y. In German."
