"""Entities and relationships of a reply: what is kept, what is left out, and that nothing is lost in silence."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_mcp.index.records import (
    SCHEMA,
    EntityRecord,
    Records,
    RelationRecord,
    parse,
)
from graphrag_mcp.llm.replies import BadReply
from tests.support.reply_forms import NOTHING, entity, records, relation

TEXT = (
    "Ada Lovelace wrote the first program. She worked with Charles Babbage on the Analytical Engine in London. "
    "陈国华在北京大学任教。"
)
TYPES = ("person", "organization", "natural object")
ADA = entity("Ada Lovelace", "Ada Lovelace wrote the first program.")
BOND = relation("Ada Lovelace", "Charles Babbage", "They worked on the engine.", "work, engine")
WHOLE = records(ADA, BOND)
READ = Records(
    (EntityRecord("Ada Lovelace", "person", "Ada Lovelace wrote the first program."),),
    (RelationRecord("Ada Lovelace", "Charles Babbage", "They worked on the engine.", ("work", "engine"), 8.0),),
    True,
)


def read(*parts: dict[str, object]) -> Records:
    return parse(records(*parts), TYPES, TEXT)


def test_a_reply_as_asked_for_is_read_and_written_as_the_same_records() -> None:
    assert parse(WHOLE, TYPES, TEXT) == READ == parse(READ.as_json(), TYPES, TEXT)
    assert set(SCHEMA["properties"]) == {"entities", "relationships"}


def test_a_reply_without_anything_usable_is_refused() -> None:
    for reply in ("", "There is nothing.", '{"error": 1}', "[1, 2]", "<html></html>"):
        with pytest.raises(BadReply):
            parse(reply, TYPES, TEXT)
    assert parse(NOTHING, TYPES, TEXT) == Records(complete=True)


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        (entity("Zeus", "A god."), "name not in the text"), (entity("Ada Lovelac", "Half a word."), "name not in the text"),
        (entity(" ", "Nothing."), "no name"), (entity("Ada " * 60, "Long."), "name too long"), (entity("London", " - "), "no description"),
        ({"name": "London"}, "type: Field required"), ({"name": 5, "type": "x", "description": "y"}, "name: Input should be a valid string"),
        (ADA, "duplicate"), (relation("Ada Lovelace", "ADA LOVELACE", "Herself."), "self-loop"),
        (relation("Ada Lovelace", "Zeus", "They met."), "name not in the text"), (relation("London", "Ada Lovelace", ""), "no description"),
    ],
)  # fmt: skip
def test_a_record_that_cannot_be_used_is_left_out_and_counted(part: dict[str, object], reason: str) -> None:
    found = read(ADA, BOND, part)
    assert (found.entities, found.relations) == (READ.entities, READ.relations) and found.dropped == {reason: 1}


def test_a_name_is_found_in_any_case_and_spelling_of_the_text() -> None:
    names = [one.name for one in read(*(entity(name, "d") for name in ("ADA LOVELACE", "analytical engine", "陳國華", "北京大学"))).entities]
    assert names == ["ADA LOVELACE", "analytical engine", "陳國華", "北京大学"]


def test_a_reply_cut_off_anywhere_gives_whole_records_and_says_so() -> None:
    for length in range(WHOLE.index("relationships"), len(WHOLE) - 1):
        found = parse(WHOLE[:length], TYPES, TEXT)
        assert found.entities == READ.entities and not found.complete and (found.relations or found.dropped == {"cut off": 1})
    with pytest.raises(BadReply):
        parse(WHOLE[:20], TYPES, TEXT)


def test_every_record_of_a_reply_in_several_objects_is_read() -> None:
    assert parse(f"{records(ADA)}\n{records(BOND)}", TYPES, TEXT) == READ
    found = parse(json.dumps({"entities": [ADA, 5, "London"], "relationships": BOND}), TYPES, TEXT)
    assert found.relations == READ.relations and sum(found.dropped.values()) == 2


PIECES = st.sampled_from([*"{}[]\":, \n\ud800\x00A中", json.dumps(ADA), json.dumps(BOND), '{"entities": [', '], "relationships": [', '"name": "Ada'])


@settings(max_examples=200, deadline=None)
@given(st.lists(PIECES, max_size=30).map("".join))
def test_any_reply_gives_sound_records_or_a_refusal(reply: str) -> None:
    try:
        found = parse(reply, TYPES, TEXT)
    except BadReply:
        return
    for one in found.entities:
        assert one.name and one.type in (*TYPES, "other") and one.description
        (one.name + one.description).encode()
    assert all(0 <= one.strength <= 10 for one in found.relations)
