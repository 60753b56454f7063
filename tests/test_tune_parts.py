"""The parts of tuning: a sample that does not depend on history, excerpts, and replies made fit for prompts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphrag_mcp.evaluate.tune import (
    clean,
    clean_types,
    excerpts,
    passages,
    read_example,
    read_profile,
    sample,
)
from graphrag_mcp.llm.asker import BadReply
from graphrag_mcp.text.tokens import count_tokens
from tests.test_tune import PERSONA, PROFILE, indexed

# ---- the sample -------------------------------------------------------------------------------------


def test_the_same_content_gives_the_same_random_sample_whatever_its_history(tmp_path: Path) -> None:
    texts = {f"d{n}": f"Vessel {n} lay at berth {n} of Corrie harbour in 19{n:02}." for n in range(30)}
    once = indexed(tmp_path / "a", texts)
    indexed(tmp_path / "b", dict(reversed(texts.items())))
    twice = indexed(tmp_path / "b", {"d3": texts["d3"] + " It left."})
    twice = indexed(tmp_path / "b", {"d3": texts["d3"]})
    chosen = sample(once, "random", 8, 42)
    assert chosen == sample(twice, "random", 8, 42) and len(chosen) == 8
    assert chosen != sample(once, "random", 8, 43)
    assert sample(once, "top", 3, 42) == [texts["d0"], texts["d1"], texts["d10"]]


def test_a_text_that_stands_in_several_documents_is_sampled_once(tmp_path: Path) -> None:
    snapshot = indexed(tmp_path, {"a": "The same text.", "b": "The same text.", "c": "Another text."})
    for selection in ("random", "top", "centroid"):
        texts = sample(snapshot, selection, 15, 42)
        assert sorted(texts) == ["Another text.", "The same text."]


def test_the_centroid_leaves_out_what_is_off_the_subject(tmp_path: Path) -> None:
    texts = {f"d{n}": f"The ferry of Corrie harbour left berth {n} for the island." for n in range(9)}
    snapshot = indexed(tmp_path, {**texts, "odd": "Boil lentils gently, then add cumin."})
    assert sorted(sample(snapshot, "centroid", 9, 42)) == sorted(texts.values())


def test_a_key_that_stands_in_a_text_is_in_no_sample(tmp_path: Path) -> None:
    snapshot = indexed(tmp_path, {"a": f"The ferry of Corrie harbour. api_key = \"{'Ab3dE6gH9k' * 3}\" is set."})
    for selection in ("random", "top", "centroid"):
        (text,) = sample(snapshot, selection, 3, 42)
        assert "Corrie" in text and "Ab3dE6gH9k" not in text and "****" in text


def test_excerpts_share_their_tokens_and_end_with_sentences() -> None:
    long = " ".join(f"Sentence number {n} speaks of the harbour." for n in range(100))
    pieces = excerpts(["A short one.", long, long.replace("harbour", "mole")], 200)
    assert sum(map(count_tokens, pieces)) <= 200 < sum(map(count_tokens, pieces)) + 20
    assert pieces[0] == "A short one." and all(piece.endswith(".") for piece in pieces)
    assert excerpts(["x" * 5000], 20) and count_tokens(excerpts(["x" * 5000], 20)[0]) <= 20


def test_passages_take_turns_and_short_ones_come_last() -> None:
    long = " ".join(f"Sentence number {n} speaks of the harbour." for n in range(40))
    found = passages([long, "Tiny.", long.upper()], 100)
    assert [found[0], found[1]] == [long[: len(found[0])], long.upper()[: len(found[1])]] and found[-1] == "Tiny."
    assert all(count_tokens(piece) <= 100 for piece in found)


# ---- reading replies --------------------------------------------------------------------------------


@pytest.mark.parametrize("reply", [
    json.dumps(PROFILE), "<think>hm</think>Here:\n```json\n" + json.dumps(PROFILE, indent=1) + "\n```",
    json.dumps({**PROFILE, "entity_types": "person, vessel; public body\naccord"}),
    json.dumps({**PROFILE, "entity_types": ["person", 7, "vessel", "public_body", "accord"]}),
])  # fmt: skip
def test_a_profile_is_read_in_any_of_its_usual_forms(reply: str) -> None:
    found = read_profile(reply)
    assert found.persona == PERSONA and found.entity_types == ("person", "vessel", "public body", "accord")
    assert found.rating_criteria == PROFILE["rating_criteria"]


@pytest.mark.parametrize("reply", ["", "no", "[]", "[1, 2]", "{}", '{"domain": "ships"}', '{"persona": null}'])
def test_a_reply_without_persona_and_types_is_no_profile(reply: str) -> None:
    with pytest.raises(BadReply):
        read_profile(reply)


def test_types_are_short_lower_case_each_once_and_at_most_twenty() -> None:
    said = ["Person", "person ", "other", "a type of five whole words", "", None, 7, "$ship", "<b>pier</b>", "船舶", *map(chr, range(97, 123))]
    assert clean_types(said)[:4] == ("person", "ship", "pier", "船舶") and len(clean_types(said)) == 20
    assert clean_types(None) == clean_types(5) == ()


def test_a_long_text_is_cut_where_a_sentence_ends() -> None:
    assert clean("One thing. Another thing. A third.", 28) == "One thing. Another thing."
    assert clean("word " * 40, 22) == "word word word word"


TEXT = "Ada Calloway sold the Meridian Tern to Corrie Trust for $900."
GOOD = [
    '("entity"<|>Ada Calloway<|>Person<|>Ada sold a ship.)', '("entity"<|>Meridian Tern<|>vessel<|>A ship, $900.)',
    '("relationship"<|>Ada Calloway<|>Meridian Tern<|>Ada sold it.<|>sale<|>8)',
]  # fmt: skip


def test_an_example_keeps_only_well_formed_records_strong_relationships_first() -> None:
    bad = [
        '("entity"<|>Corrie Trust<|>trust fund)', '("relationship"<|>Ada Calloway<|>Nobody<|>They met.<|>meeting<|>5)',
        '("relationship"<|>Ada Calloway<|>Meridian Tern<|>Again.<|>sale<|>2)', '("claim"<|>a<|>b<|>c<|>d<|>5)', "chatter",
        '("relationship"<|>Meridian Tern<|>Meridian Tern<|>Itself.<|>self<|>5)', '("entity"<|>Corrie Trust<|>body<|>Bought it.)',
        '("relationship"<|>Corrie Trust<|>Meridian Tern<|>Bought it.<|>sale<|>9.0)', '("relationship"<|>Corrie Trust<|>Ada Calloway<|>x<|>y<|>very)',
    ]  # fmt: skip
    found = read_example("\n##\n".join([*GOOD, *bad]) + "\n<|COMPLETE|>", TEXT, ("person", "vessel"))
    assert [fields[:2] for fields in found.entities] == [
        ("Ada Calloway", "person"), ("Meridian Tern", "vessel"), ("Corrie Trust", "other"),
    ]  # fmt: skip
    assert [(source, target, strength) for source, target, _, _, strength in found.relations] == [
        ("Corrie Trust", "Meridian Tern", "9"), ("Ada Calloway", "Meridian Tern", "8"),
    ]  # fmt: skip
    assert found.records()[1] == '("entity"<|>Meridian Tern<|>vessel<|>A ship, $900.)'


@pytest.mark.parametrize("reply", ["", "<|COMPLETE|>", GOOD[0], "##".join(GOOD[:2]), "##".join(GOOD).replace("8", "80")])
def test_too_little_is_no_example(reply: str) -> None:
    with pytest.raises(BadReply, match="usable entities"):
        read_example(reply, TEXT, ())


def test_an_example_is_read_line_by_line_and_its_names_stand_in_the_text() -> None:
    assert read_example("<think>(\"entity\"<|>X<|>y<|>z)</think>\n" + "\n".join(GOOD), TEXT, ()).relations
    with pytest.raises(BadReply, match="most names"):
        read_example("##".join(GOOD), "A text about something else.", ())
    assert read_example("##".join(GOOD), "In another language.", (), literal=False).entities
