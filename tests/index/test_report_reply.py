"""Whatever a model says becomes the draft of a report, or a clear no."""

from __future__ import annotations

import json

import pytest

from graphrag_mcp.index.report_reply import Draft, parse_report
from graphrag_mcp.llm.asker import BadReply
from graphrag_mcp.packing.citations import cited, replace_references
from tests.support.workload import ends

GOOD = {
    "title": "Lantern Guild and the Harbour Fire",
    "summary": "The guild watched the port. [Data: Entities (1, 2)]",
    "rating": 7.5,
    "rating_explanation": "It shaped the port.",
    "findings": [
        {"summary": "The guild", "explanation": "It was a union of watchmen. [Data: Entities (1)]"},
        {"summary": "The fire", "explanation": "Forty ships were lost. [Data: Relationships (3)]"},
    ],
}
TEXT = json.dumps(GOOD)
DRAFT = Draft(
    GOOD["title"], GOOD["summary"], 7.5, "It shaped the port.",
    tuple((one["summary"], one["explanation"]) for one in GOOD["findings"]),
)  # fmt: skip


@pytest.mark.parametrize(
    "reply",
    [
        TEXT,
        f"```json\n{TEXT}\n```",
        f"Here is the report [1]:\n\n```\n{TEXT}\n```\nLet me know {{if}} you need more.",
        f'<think>Should it be {{"title": "X", "summary": "Y"}}?</think>\n{TEXT}',
        f"thinking without a beginning</think>{TEXT}",
        TEXT.replace("}]", "},]").replace('."}', '.",}'),
        json.dumps([GOOD]),
        TEXT.replace(', "', '\n,\n "'),
        "\ufeff" + TEXT,
    ],
)
def test_a_report_is_read_whatever_stands_around_it_or_is_wrong_in_it(reply):
    assert parse_report(reply) == DRAFT


@pytest.mark.parametrize(
    "reply",
    [
        "", " \n", "null", "[]", "42", "I cannot help with that.", "I'm sorry, but no.", "抱歉，我无法回答。",
        "<!DOCTYPE html><html><body><h1>502</h1></body></html>", "<think>The user wants", "x" * 2_000_000,
        '{"title": ..., "summary": ..., "rating": ..., "findings": [{"summary": ..., "explanation": ...}, ...]}',
        '{"type": "object", "properties": {"title": {"type": "string"}, "summary": {"type": "string"}}}',
        "# Report\n<context>\nEntities\nid,entity,type,description\n1,A,person,x\n</context>", '{"title": "Only this"}',
        json.dumps({**GOOD, "findings": None}), '{"error": {"message": "overloaded"}}',
        "Just a sentence about the guild, without any form.", TEXT.replace("[Data: ", "(see "), '{"title": "T", "summary": "cut in the mid',
    ],
)  # fmt: skip
def test_what_is_no_report_is_refused_with_a_reason_that_quotes_nothing(reply):
    with pytest.raises(BadReply) as refusal:
        parse_report(reply)
    assert 5 < len(str(refusal.value)) < 80
    assert "guild" not in str(refusal.value)


# ---- references ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, numbers",
    [
        ("X [Data: Entities (1, 4); Relationships (3); Reports (2)].", {"Entities": [1, 4], "Relationships": [3], "Reports": [2]}),
        ("甲【数据：实体（1，4）；关系（3）】", {"Entities": [1, 4], "Relationships": [3]}),
        ("甲［数据: 实体 （１、４）］", {"Entities": [1, 4]}),
        ("[data: entity (#3), RELATIONS (#1, #2)]", {"Entities": [3], "Relationships": [1, 2]}),
        ("[Data: Entities (1-4, +more)]", {"Entities": [1, 2, 3, 4]}),
        ("[Data: Entities (1–90)]", {"Entities": [1, 2, 3, 4, 5]}),
        ("[Data: Entities [1, 2]]", {"Entities": [1, 2]}),
        ("[[Data: Entities (1)]]", {"Entities": [1]}),
        ("[Data: Entities (1, 4]", {"Entities": [1, 4]}),
        ("[Data: Entities: 1, 4; Claims: 2]", {"Entities": [1, 4], "Claims": [2]}),
        ("[Entities (1, 4); Relationships (2)]", {"Entities": [1, 4], "Relationships": [2]}),
        ("[Data: Entities (1,\n 4);\n Relationships (2)]", {"Entities": [1, 4], "Relationships": [2]}),
        ("[Data: Entities (7) and Entities (7, 8)]", {"Entities": [7, 8]}),
        ("[Data: Widgets (3); Entities (2)]", {"Entities": [2]}),
    ],
)
def test_a_reference_is_understood_in_any_spelling(text, numbers):
    found = cited(text)
    assert [one.numbers for one in found] == [numbers]
    assert "(" not in replace_references(text, lambda _: "") and "）" not in replace_references(text, lambda _: "")


def test_what_is_no_reference_stays():
    text = "See [1], [Smith 2003], (source 1990), data (4) and array[3]."
    assert cited(text) == [] and replace_references(text, lambda _: "!") == text


@pytest.mark.parametrize(
    "noise",
    ['{"', "[1, ", '{"a": "b" ', "{'", '" "', "[Data: ", "[Entities (1, ", "# a\n", "**a", "a: b\n", "\\", "/*", "<think>", "{a:",
     "[ see ] and {this} ", '"x", ', "{ ", "（", "- a\n\n"],
)  # fmt: skip
def test_hostile_replies_are_read_in_time(noise):
    reply = '{"title": "T", "summary": "' + noise * (130_000 // len(noise))
    for text in (reply, noise * (130_000 // len(noise))):
        with ends():
            try:
                parse_report(text)
            except BadReply:
                pass
            cited(text[:100_000])
