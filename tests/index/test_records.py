"""What a model meant, however it wrote it: the forgiving parser of entity and relationship records."""

from __future__ import annotations

import contextlib
import json
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_mcp.index.records import (
    EXAMPLE_NAMES,
    MOST_ENTITIES,
    MOST_RELATIONS,
    EntityRecord,
    RelationRecord,
    parse,
    strength_of,
    type_of,
)  # fmt: skip
from graphrag_mcp.llm import prompts
from graphrag_mcp.llm.asker import BadReply
from graphrag_mcp.llm.replies import clean, clean_name
from tests.support.workload import ends, linear

TYPES = ("person", "organization", "location", "natural object")
ADA = EntityRecord("Ada Lovelace", "person", "Ada Lovelace wrote the first program.")
BOND = RelationRecord("Ada Lovelace", "Charles Babbage", "They worked on the engine.", ("work", "engine"), 8.0)

E, R = (
    '("entity"<|>Ada Lovelace<|>person<|>Ada Lovelace wrote the first program.)',
    '("relationship"<|>Ada Lovelace<|>Charles Babbage<|>They worked on the engine.<|>work, engine<|>8)',
)
ITEMS = {
    "entities": [{"name": ADA.name, "type": "person", "description": ADA.description}],
    "relationships": [{
        "source": "Ada Lovelace", "target": "Charles Babbage", "description": BOND.description,
        "keywords": ["work", "engine"], "strength": 8,
    }],
}  # fmt: skip
SPELLINGS = [
    ("entities", "entity_name", "entity_type", "entity_description", "relationships", "source_entity", "target_entity",
     "relationship_description", "relationship_keywords", "relationship_strength"),
    ("nodes", "id", "label", "desc", "edges", "src", "tgt", "summary", "tags", "weight"),
    ("Entities", "Name", "Category", "Description", "Relations", "from", "to", "details", "Keyword", "score"),
    ("entities", "title", "kind", "explanation", "links", "head", "tail", "text", "keywords", "importance"),
]  # fmt: skip


def respelt(keys: tuple[str, ...]) -> str:
    one, name, kind, said, other, source, target, how, words, strength = keys
    return json.dumps({
        one: [{name: ADA.name, kind: "Person", said: ADA.description}],
        other: [{source: BOND.source, target: BOND.target, how: BOND.description, words: "work, engine", strength: 8}],
    })  # fmt: skip


SAME = {
    "as asked for": f"{E}\n##\n{R}\n<|COMPLETE|>",
    "on one line": f"{E}##{R}<|COMPLETE|>",
    "mark right behind the last strength": f"{E}\n{R}<|COMPLETE|>",
    "no brackets": f"{E[1:-1]}\n##\n{R[1:-1]}\n<|COMPLETE|>",
    "no quotation marks": f"{E}\n##\n{R}\n<|COMPLETE|>".replace('"', ""),
    "neither": f"{E[1:-1]}\n{R[1:-1]}<|COMPLETE|>".replace('"', ""),
    "new lines only": f"{E}\n{R}\n<|COMPLETE|>",
    "mark between the records": f"{E}\n<|COMPLETE|>\n{R}",
    "other end marks": f"{E}##{R}\n<COMPLETE>",
    "relationship first": f"{R}\n##\n{E}\n<|COMPLETE|>",
    "double bars": f"{E}\n{R}\n<|COMPLETE|>".replace("<|>", "<||>"),
    "half delimiters": f"{E}\n{R}".replace("<|>", "<|") + "\n<|COMPLETE|>",
    "other halves": f"{E}\n{R}".replace("<|>", "|>") + "\n<|COMPLETE|>",
    "hash delimiters": f"{E}\n{R}".replace("<|>", "<|#|>") + "\n<|COMPLETE|>",
    "bars": f"{E}\n{R}".replace("<|>", "|") + "\n<|COMPLETE|>",
    "tabs": f"{E}\n{R}".replace("<|>", "\t") + "\n<|COMPLETE|>",
    "blanks around delimiters": f"{E}\n{R}\n<|COMPLETE|>".replace("<|>", " <|> "),
    "mixed delimiters": f"{E}\n##\n{R}<|COMPLETE|>".replace("<|>", "<||>", 1),
    "a table": f"| entity | {ADA.name} | Person | {ADA.description} |\n"
    "| relationship | Ada Lovelace | Charles Babbage | They worked on the engine. | work, engine | 8 |\n<|COMPLETE|>",
    "a numbered list": f"1. {E}\n2. {R}\n<|COMPLETE|>",
    "bold": f"**{E}**\n**{R}**\n<|COMPLETE|>",
    "fences": f"```\n{E}\n##\n{R}\n<|COMPLETE|>\n```",
    "prose around": f"Sure! Here are the records:\n\n{E}\n##\n{R}\n<|COMPLETE|>\n\nI hope that this helps (a bit).",
    "thoughts before": f"<think>\nIs ({E} right?\n</think>\n\n{E}\n##\n{R}\n<|COMPLETE|>",
    "thoughts whose opening was lost": f'I draft ("entity"<|>Nobody<|>person<|>d)\n</think>\n{E}\n{R}\n<|COMPLETE|>',
    "HTML entities": f"{E}\n##\n{R}\n<|COMPLETE|>".replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;"),
    "full-width signs": f"{E}\n##\n{R}\n<|COMPLETE|>".translate(str.maketrans('<|>()"', "＜｜＞（）“")),
    "special tokens": f"<|im_start|>{E}\n{R}\n<|COMPLETE|><|im_end|>",
    "twice": f"{E}\n{R}\n{E}\n{R}\n<|COMPLETE|>",
    "a line break in a description": f"{E}\n##\n{R}\n<|COMPLETE|>".replace("wrote the", "wrote\nthe"),
    "one record a line": f"entity<|#|>{ADA.name}<|#|>person<|#|>{ADA.description}\n"
    f"relation<|#|>{BOND.source}<|#|>{BOND.target}<|#|>work, engine<|#|>{BOND.description}<|#|>8\n<|COMPLETE|>",
    "JSON": json.dumps(ITEMS),
    "JSON in fences": f"Here it is:\n```json\n{json.dumps(ITEMS, indent=2)}\n```\nDone.",
    "JSON and a mark": json.dumps(ITEMS) + "<|COMPLETE|>",
    "JSON, a list of items": json.dumps(ITEMS["entities"] + ITEMS["relationships"]),
    "JSON, a line each": "\n".join(json.dumps(one) for one in ITEMS["entities"] + ITEMS["relationships"]),
    "JSON inside a list": json.dumps([{"result": ITEMS}]),
    "JSON with commas at ends": json.dumps(ITEMS).replace("}]", "},]"),
    "JSON with single quotes": str(ITEMS),
    "JSON arrays of arrays": json.dumps([
        ["entity", ADA.name, "person", ADA.description],
        ["relationship", BOND.source, BOND.target, BOND.description, "work, engine", 8],
    ]),
    "JSON arrays under keys": json.dumps({
        "entities": [[ADA.name, "person", ADA.description]],
        "relationships": [[BOND.source, BOND.target, BOND.description, "work, engine", 8]],
    }),
    **{f"JSON keys {keys[1]}": respelt(keys) for keys in SPELLINGS},
}  # fmt: skip


@pytest.mark.parametrize("reply", SAME.values(), ids=SAME.keys())
def test_the_same_records_are_read_from(reply: str) -> None:
    found = parse(reply, TYPES)
    assert (found.entities, found.relations, found.complete) == ((ADA,), (BOND,), True)


BAD = {
    "empty": "", "blank": " \n\t ", "only a fence": "```json\n```", "refusal": "I'm sorry, but I cannot help with that.",
    "HTML": "<!DOCTYPE html><html><body><h1>502 Bad Gateway</h1></body></html>",
    "an error as JSON": '{"error": {"message": "rate limit", "code": 429}}',
    "JSON without records": '["a", "b"]', "half a JSON": '{"entities": [{"name": "Ada', "a number": "42",
    "another language's prose": "Es gibt in diesem Text keine Angaben.", "thinking cut off": "<think>\nThe text says " + E,
    "a mark after prose": "The text has no entities that I would want to list for you, sorry about that.\n<|COMPLETE|>",
    "a record cut off": E[:40], "no descriptions": '("entity"<|>Ada Lovelace<|>person)<|COMPLETE|>',
    "the format line": '("entity"<|>NAME<|>TYPE<|>DESCRIPTION)\n("relationship"<|>SOURCE<|>TARGET<|>DESCRIPTION<|>8)',
    "placeholders": '("entity"<|><entity_name><|><entity_type><|><entity_description>)<|COMPLETE|>',
    "the prompt": prompts.load("extract").template + prompts.load("extract_examples").template,
    "its example": prompts.load("extract_examples").template, "claims of nobody": "(A<|>NONE<|>X<|>TRUE<|>NONE<|>NONE<|>d<|>q)",
    "names that are none": '("entity"<|>---<|>person<|>d)##("entity"<|> <|>person<|>d)<|COMPLETE|>',
    "a list of names": "Ada Lovelace\nCharles Babbage\n<|COMPLETE|>" + "x" * 60,
}  # fmt: skip


@pytest.mark.parametrize("reply", BAD.values(), ids=BAD.keys())
def test_a_reply_without_anything_usable_is_refused_in_a_few_words(reply: str) -> None:
    with pytest.raises(BadReply) as caught:
        parse(reply, TYPES)
    assert 0 < len(str(caught.value)) < 120 and "Ada" not in str(caught.value)


@pytest.mark.parametrize("reply", ["<|COMPLETE|>", "\n<|COMPLETE|>\n", '{"entities": [], "relationships": []}', "[]"])
def test_a_reply_that_says_properly_that_there_is_nothing_is_believed(reply: str) -> None:
    found = parse(reply, TYPES)
    assert (found.entities, found.relations, found.complete) == ((), (), True)


@pytest.mark.parametrize(
    "whole", [SAME["as asked for"], SAME["JSON"], SAME["one record a line"], SAME["JSON in fences"]]
)
def test_a_reply_cut_off_anywhere_gives_whole_records_and_is_incomplete(whole: str) -> None:
    for end in range(len(whole)):
        try:
            found = parse(whole[:end], TYPES)
        except BadReply:
            continue
        assert all(entity == ADA for entity in found.entities) or "<|#|>" in whole
        assert found.entities and (not found.complete or found.relations == (BOND,))


def test_a_record_that_was_cut_off_is_dropped_and_counted() -> None:
    found = parse(f"{E}\n##\n{R[:60]}", TYPES)
    assert (found.entities, found.relations, found.complete, found.dropped) == ((ADA,), (), False, {"cut off": 1})


def test_one_field_too_few_is_repaired_where_that_is_unambiguous() -> None:
    reply = (
        '("entity"<|>Ada<|>She wrote programs for engines.)##("entity"<|>Bob<|>person)##("relationship"<|>Ada<|>Bob<|>'
        'They met.)##("relationship"<|>Bob<|>Cem)<|COMPLETE|>'
    )
    found = parse(reply, TYPES)
    assert found.entities == (EntityRecord("Ada", "other", "She wrote programs for engines."),)
    assert found.relations == (RelationRecord("Ada", "Bob", "They met."),)
    assert found.dropped == {"no description": 2}


def test_a_strength_alone_is_no_description() -> None:
    found = parse('("relationship"<|>Ada<|>Babbage<|>8)##("entity"<|>Ada<|>person<|>A mathematician.)<|COMPLETE|>')
    assert not found.relations and found.dropped == {"no description": 1}


def test_keywords_of_lightrag_stand_first_however_short_the_description_is() -> None:
    for words, said in (("letters, friendship, mathematics", "She wrote to him."), ("a, b, c, d, e", "wrote to")):
        for end in ("<|COMPLETE|>", "\nentity<|#|>Ada<|#|>person<|#|>A mathematician."):
            (found,) = parse(f"relation<|#|>Ada<|#|>Babbage<|#|>{words}<|#|>{said}\n{end}").relations
            assert (found.description, ", ".join(found.keywords)) == (said, words)


def test_line_ends_that_a_model_escaped_and_tokens_of_its_template_end_records() -> None:
    records = (
        '("entity"<|>Ada<|>person<|>A mathematician.)',
        '("relationship"<|>Ada<|>Babbage<|>She wrote.<|>letters<|>8)',
    )
    wanted = parse("\n##\n".join(records))
    for reply in (r"\n##\n".join(records), r"\r\n##\r\n".join(records) + r"\n<|COMPLETE|>",
                  "<|channel|>final<|message|>" + "\n##\n".join(records) + "<|return|>"):  # fmt: skip
        found = parse(reply)
        assert (found.entities, found.relations, found.dropped) == (wanted.entities, wanted.relations, {})
    (path,) = parse(r'("entity"<|>C:\\new<|>data<|>A folder named C:\\new.)').entities
    assert path.name == r"C:\\new"


def test_one_field_too_many_is_joined_to_the_description() -> None:
    reply = '("entity"<|>Ada<|>person<|>She wrote<|>a program.)##("entity"<|>Bob<|>person<|>A man.<|>7)##'
    found = parse(reply + '("relationship"<|>Ada<|>Bob<|>They met<|>in town.<|>meeting<|>9)<|COMPLETE|>', TYPES)
    assert [entity.description for entity in found.entities] == ["She wrote a program.", "A man."]
    assert found.relations == (RelationRecord("Ada", "Bob", "They met in town.", ("meeting",), 9.0),)


@pytest.mark.parametrize(
    ("said", "meant"),
    [("8", 8), ("8/10", 8), ("4/5", 8), ("80%", 8), ("strength: 8", 8), ("Strength = 8", 8), ("0.8", 0.8), ("7,5", 7.5), ("high", 8),
     ("Very High", 9), ("medium", 5), ("weak", 2), ("高", 8), ("８", 8), ("100", 10), ("1e9", None), ("-3", 1), ("nan", None), ("", None),
     ("They met in 8 towns", None), ("(9)", 9), ('"6"', 6), ("9.", 9), ("10 points", 10), (7, 7), (0.5, 0.5), (True, None), (None, None)],
)  # fmt: skip
def test_strengths_are_read_in_many_forms_and_kept_between_0_and_10(said: object, meant: float | None) -> None:
    assert strength_of(said) == meant


def test_a_missing_strength_is_1_and_brackets_in_a_description_end_no_record() -> None:
    found = parse('("relationship"<|>Ada<|>Bob<|>They met (twice)\n(in Paris)<|>work (paid)<|>7)<|COMPLETE|>')
    assert found.relations == (RelationRecord("Ada", "Bob", "They met (twice) (in Paris)", ("work (paid)",), 7.0),)
    assert parse("relation<|#|>Ada<|#|>Bob<|#|>work<|#|>They met in town.").relations[0].strength == 1.0


def test_types_are_folded_into_the_list_and_anything_else_is_other() -> None:
    said = [
        "PERSON",
        "persons",
        "Organisation",
        "natural_object",
        "Natural-Objects",
        "**location**",
        "animal",
        "",
        "person/location",
    ]
    meant = [
        "person",
        "person",
        "organization",
        "natural object",
        "natural object",
        "location",
        "other",
        "other",
        "person",
    ]
    assert [type_of(one, TYPES) for one in said] == meant
    assert [type_of(one, ()) for one in ("Rock Band", "", "***", "x" * 90)] == ["rock band", "other", "other", "x" * 40]


def test_one_name_with_two_types_keeps_both() -> None:
    found = parse('("entity"<|>Paris<|>person<|>A prince.)##("entity"<|>PARIS<|>location<|>A city.)<|COMPLETE|>', TYPES)
    assert [(entity.name, entity.type) for entity in found.entities] == [("Paris", "person"), ("PARIS", "location")]


def test_a_loop_to_oneself_is_dropped_whatever_the_spelling_and_so_is_a_long_name() -> None:
    reply = f'{E}##("relationship"<|>The Moon<|>MOON<|>d<|>3)##("entity"<|>{"Long " * 60}<|>person<|>d)<|COMPLETE|>'
    assert dict(parse(reply, TYPES).dropped) == {"self-loop": 1, "name too long": 1}


def test_names_lose_wrappings_and_what_cannot_be_seen_and_keep_what_belongs_to_them() -> None:
    said = ['"Ada"', "**Ada**", "“Ada”", "A\u202eda\x00", "Ada  \n Lovelace", "C++", "C#", "# Heading", "O'Brien", 'Tom "T" Lee', "😀", "…", "?!", "《红楼梦》", "Ada\ud800", "&quot;A&amp;B&quot;", "__init__"]  # fmt: skip
    meant = ["Ada", "Ada", "Ada", "Ada", "Ada Lovelace", "C++", "C#", "Heading", "O'Brien", 'Tom "T" Lee', "😀", "", "", "《红楼梦》", "Ada", "A&B", "__init__"]  # fmt: skip
    assert [clean_name(one) for one in said] == meant
    assert clean("a\x07b\u2066c " * 3000, 50).encode() and len(clean("ab " * 3000, 50)) <= 50


def test_what_only_the_prompt_says_is_dropped_unless_the_text_says_it_too() -> None:
    reply = (
        f'{E}##("entity"<|>Port Velling<|>location<|>A port.)##("entity"<|>Source<|>concept<|>A spring.)<|COMPLETE|>'
    )
    assert dict(parse(reply, TYPES, "Ada Lovelace lived.").dropped) == {"prompt echo": 2}
    assert len(parse(reply, TYPES, "Ada saw the source of the river at PORT\n VELLING.").entities) == 3


def test_the_parser_knows_the_names_of_the_shipped_example() -> None:
    found = parse(prompts.load("extract_examples").template, echoes=())
    ends = {end for one in found.relations for end in (one.source, one.target)}
    assert {name.casefold() for name in {entity.name for entity in found.entities} | ends} <= EXAMPLE_NAMES
    assert found.complete and not found.dropped


def test_chinese_records_are_read_as_english_ones() -> None:
    reply = "（“entity”<|>王小明<|>人物<|>王小明是北京大学的教师。）##（“relationship”<|>王小明<|>北京大学<|>王小明任教于北京大学。<|>任教，教育<|>９）"
    found = parse(reply, ("人物", "地点"))
    assert found.entities == (EntityRecord("王小明", "人物", "王小明是北京大学的教师。"),)
    assert found.relations == (RelationRecord("王小明", "北京大学", "王小明任教于北京大学。", ("任教", "教育"), 9.0),)


def test_two_megabytes_give_a_bounded_list() -> None:
    entities = "".join(f'("entity"<|>Name {i}<|>person<|>Name {i} is one of many.)\n##\n' for i in range(30_000))
    relations = "".join(f'("relationship"<|>A{i}<|>B{i}<|>d<|>1)\n##\n' for i in range(1500))
    with ends():
        found = parse(relations + entities, TYPES)
    assert (len(found.entities), len(found.relations)) == (MOST_ENTITIES, MOST_RELATIONS) and found.dropped[
        "too many"
    ] > 9000


PUMPS = [
    '("entity"<|>', E + "\n##\n", '("entity"<|>A<|>b<|>', "<", "<|", "<|>", "\t", "\n", " ", "(", "[", "{", '"', '\\"', '{"name":"a","type":"b"},',
    '[["a"', "&lt;", "<think>", "</think>\n", "<think>\n", "##", "entity", "entity|", '"entity"<|>a)\n', "`", "```\n", "＜｜", "|", "中",
    '"entity", "', '("entity", "A", "p", "d"),', "COMPLETE", "<|COMPLETE|>", ")\n", "*", '{"name":"', '{"a":"b"', "'a': ", "1. ", '{"a":[',
]  # fmt: skip


@pytest.mark.parametrize("pump", PUMPS)
def test_no_repeated_pattern_takes_more_than_linear_time(pump: str) -> None:
    def read(length: int) -> None:
        with contextlib.suppress(BadReply):
            parse(pump * (length // len(pump)), TYPES)

    assert linear(read, 5_000, largest=200_000)


ALPHABET = st.sampled_from(
    [
        *"(){}[]\"'<>|#:,\n\t AaB1.é中\ud800\x00",
        "<|>",
        "##",
        '"entity"',
        '("relationship"<|>',
        "<|COMPLETE|>",
        '{"name":',
        "</think>",
        "&lt;",
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(ALPHABET, max_size=60).map("".join))
def test_any_reply_gives_sound_records_or_a_refusal(reply: str) -> None:
    try:
        found = parse(reply, TYPES)
    except BadReply:
        return
    for entity in found.entities:
        assert entity.name.strip() == entity.name != "" and entity.type in (*TYPES, "other") and entity.description
        (entity.name + entity.description).encode()
    for one in found.relations:
        assert one.source and one.target and one.description and 0 <= one.strength <= 10


def test_the_order_of_the_records_is_kept() -> None:
    records = [f'("entity"<|>{name}<|>person<|>{name} is here.)' for name in ("Cem", "Ada", "Bob")]
    for order in permutations(records):
        assert [entity.name for entity in parse("##".join(order) + "<|COMPLETE|>", TYPES).entities] == [
            one[12:15] for one in order
        ]


@pytest.mark.parametrize(
    "said, name",
    [
        ("World Health Organization (WHO)", "World Health Organization"),
        ("WHO (World Health Organization)", "World Health Organization"),
        ("回流（back-run）", "回流"),
        ("托拜厄斯·芬恩 (Tobias Fenn)", "托拜厄斯·芬恩"),
        ("Москва (Moscow)", "Москва"),
        ("研究院（Tidal Institute，简称TI）", "研究院"),
        ("研究院（IBM总部）", "研究院（IBM总部）"),
        ("Back-run (回流)", "Back-run"),
        ("Mercury (planet)", "Mercury (planet)"),
        ("Lovelace (1843)", "Lovelace (1843)"),
        ("Tide Board (XQ)", "Tide Board (XQ)"),
        ("北京（首都）", "北京（首都）"),
        ("计划（II）", "计划（II）"),
        ("f(x)", "f(x)"),
    ],
)
def test_a_bracket_that_repeats_a_name_in_short_or_in_another_script_is_no_part_of_it(said: str, name: str) -> None:
    reply = f'("entity"<|>{said}<|>concept<|>Something is said of it.)\n##\n' + (
        f'("relationship"<|>{said}<|>Ada<|>They belong together.<|>kinship<|>4)\n<|COMPLETE|>'
    )
    records = parse(reply)
    assert [one.name for one in records.entities] == [name]
    assert [one.source for one in records.relations] == [name]
