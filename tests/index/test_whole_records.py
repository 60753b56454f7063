"""Every record of a well-formed reply is kept, in whatever form and whatever its names and keywords hold."""

from __future__ import annotations

import re

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from graphrag_mcp.index.records import EntityRecord, Records, RelationRecord, parse
from tests.support.record_replies import (
    NAMES,
    SHAPES,
    TYPES,
    Around,
    Entity,
    Form,
    Relation,
    as_json,
    as_tuples,
    forms,
    records,
    surroundings,
)  # fmt: skip

TEXT = " . ".join(NAMES)
All = tuple[list[Entity], list[Relation]]
everything = settings(max_examples=1500, deadline=None, derandomize=True)


def squeezed(text: str) -> str:
    """Without blanks, delimiters and what wraps a text: a delimiter in a description is read as a blank."""
    return re.sub(r"[\s<>|＜＞｜#\"'“”*`\\]", "", text)


def words_of(keywords: str) -> list[str]:
    return list(dict.fromkeys(re.split(r", |，", keywords)))


def check(found: Records, entities: list[Entity], relations: list[Relation]) -> None:
    assert dict(found.dropped) == {}
    assert [one.name for one in found.entities] == [one.name for one in entities]
    assert [(one.source, one.target) for one in found.relations] == [(one.source, one.target) for one in relations]
    assert [one.type for one in found.entities] == [one.type for one in entities]
    assert [one.strength for one in found.relations] == [one.strength for one in relations]
    assert [list(one.keywords) for one in found.relations] == [words_of(one.keywords) for one in relations]
    for one, said in [*zip(found.entities, entities, strict=True), *zip(found.relations, relations, strict=True)]:
        assert squeezed(one.description) == squeezed(said.description)


@everything
@given(st.data(), forms(), surroundings())
def test_every_record_written_as_a_tuple_is_kept(data: st.DataObject, form: Form, around: Around) -> None:
    entities, relations = data.draw(records(lines=bool(form.brackets[0])))
    found = parse(around.put(as_tuples(entities, relations, form)), TYPES, TEXT)
    check(found, entities, relations)
    assert found.complete == bool(around.mark)


@settings(max_examples=600, deadline=None, derandomize=True)
@given(records(), st.sampled_from(SHAPES), surroundings())
def test_every_record_written_as_json_is_kept(written: All, shape: str, around: Around) -> None:
    lists = ("entit", "relation", "node")  # an object under such a key holds records and is none
    assume(shape != "keyed" or not any(one.name.lower().startswith(lists) for one in written[0]))
    check(parse(around.put(as_json(*written, shape)), TYPES, TEXT), *written)


# ---- what was lost before ---------------------------------------------------------------------------


def names_and_ends(reply: str) -> tuple[list[str], list[tuple[str, str, tuple[str, ...], float]]]:
    found = parse(reply, TYPES, TEXT)
    assert dict(found.dropped) == {}
    return (
        [one.name for one in found.entities],
        [(one.source, one.target, one.keywords, one.strength) for one in found.relations],
    )


def test_a_name_that_ends_in_a_tag_word_loses_neither_its_record_nor_its_relationships() -> None:
    reply = (
        '("entity"<|>Public Relations<|>organization<|>An office of the town)\n##\n'
        '("entity"<|>Investor Relations<|>organization<|>Another office)\n##\n'
        '("relationship"<|>Public Relations<|>Investor Relations<|>They share a room<|>public relations<|>8)\n<|COMPLETE|>'
    )
    ends = [("Public Relations", "Investor Relations", ("public relations",), 8.0)]
    assert names_and_ends(reply) == (["Public Relations", "Investor Relations"], ends)


def test_relationships_within_the_object_of_their_entity_have_it_as_their_source() -> None:
    reply = (
        '{"nodes": [{"name": "Ada", "type": "person", "description": "A woman.", "relationships": '
        '[{"target": "Bob", "description": "They met.", "strength": 4}]}, {"name": "Bob", "description": "A man."}]}'
    )
    assert names_and_ends(reply) == (["Ada", "Bob"], [("Ada", "Bob", (), 4.0)])


def test_an_event_with_a_begin_and_an_end_is_no_relationship_of_two_years() -> None:
    reply = '{"entities": [{"name": "The War", "type": "event", "description": "A war.", "start": "1914", "end": "1918"}]}'
    assert names_and_ends(reply) == (["The War"], [])


def test_a_description_that_quotes_a_record_makes_no_record() -> None:
    reply = '{"entities": [{"name": "Ada", "type": "person", "description": "She wrote (\\"entity\\"<|>X<|>y<|>z)."}]}'
    assert names_and_ends(reply) == (["Ada"], [])
    reply = '[["entity", "Ada", "person", "She wrote (entity<|>X<|>y<|>z)."]]'
    assert names_and_ends(reply) == (["Ada"], [])


def test_what_the_reply_did_not_say_is_counted_as_repaired() -> None:
    reply = (
        '("entity"<|>Ada<|>She wrote programs for engines.)##("entity"<|>Bob<|>person<|>A man<|>of the town)##'
        '("relationship"<|>Ada<|>Bob<|>They met<|>meeting<|>very)##("relationship"<|>Ada<|>Cem<|>They met<|>7)<|COMPLETE|>'
    )
    found = parse(reply, TYPES)
    assert (len(found.entities), len(found.relations), dict(found.dropped)) == (2, 2, {})
    assert dict(found.repaired) == {"no type": 1, "too many fields": 1, "strength is no number": 1}
    whole = parse('("entity"<|>Ada<|>person<|>She wrote.)<|COMPLETE|>', TYPES)
    assert whole.entities == (EntityRecord("Ada", "person", "She wrote."),) and dict(whole.repaired) == {}
    assert parse('{"relationships": [{"source": "A", "target": "B", "description": "d"}]}').relations == (
        RelationRecord("A", "B", "d"),
    )
