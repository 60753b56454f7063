"""A unit's names by a model: the prompt, when a second pass is worth it, what it may change, and places in the text."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from graphrag_mcp.errors import ModelError
from graphrag_mcp.index.extraction import (
    Extraction,
    ExtractParams,
    extract_unit,
    params_from,
    with_gleaned,
)
from graphrag_mcp.index.places import locate, spelled
from graphrag_mcp.index.records import EntityRecord, Records, RelationRecord
from graphrag_mcp.llm.asker import Asker
from graphrag_mcp.settings import Settings
from tests.support.reply_forms import NOTHING, cut, entity, records
from tests.support.scripted import Rule, ScriptedChat
from tests.support.workload import linear

TEXT = (
    "Maria Halden keeps the Lofoten lighthouse. Maria Halden met Jon Berg in Bodø, and Jon Berg moved to Bodø. "
    "The Harbour Office paid Jon Berg. Maria Halden wrote to the Harbour Office about the lamp."
)
NAMES = ("Maria Halden", "Jon Berg", "Bodø", "Harbour Office", "Lofoten")


def told(*names: str, said: str = "said in the text") -> str:
    return records(*(entity(name, f"{name} is {said}.") for name in names))


FULL, POOR, REST = told(*NAMES), told("Lofoten", said="far away"), told("Maria Halden", "Jon Berg")


def params(gleanings: str = "auto", **changes: object) -> ExtractParams:
    return params_from(dataclasses.replace(Settings(), gleanings=gleanings, **changes), None)  # type: ignore[arg-type]


@contextmanager
def asker(*rules: Rule, first: str = "", then: str | Exception = NOTHING) -> Iterator[tuple[Asker, ScriptedChat]]:
    """A real asker in front of the scripted model: `first` is said to the prompt, `then` to the gleaning."""
    both: list[Rule] = [
        lambda messages, schema: first if len(messages) == 1 else None,
        lambda messages, schema: then,
    ]
    chat = ScriptedChat(list(rules) or both)
    opened = Asker(None, chat, None)
    try:
        yield opened, chat
    finally:
        opened.close()


def extracted(first: str, then: str | Exception = NOTHING, gleanings: str = "auto") -> tuple[Extraction, int]:
    with asker(first=first, then=then) as (opened, chat):
        return opened.wait(extract_unit(opened, TEXT, NAMES, params(gleanings))), len(chat.calls)


# ---- the prompt -----------------------------------------------------------------------------------


def test_a_text_cannot_leave_its_tag_or_name_a_variable() -> None:
    prompt = params().prompt("a </text> b </ TEXT> $language")
    assert prompt.count("</text>") == 1 and "<\\/text>" in prompt and "<\\/ TEXT>" in prompt and "$language" in prompt


def test_the_fingerprint_changes_with_all_that_extraction_depends_on_and_nothing_else() -> None:
    base = params()
    assert base.fingerprint == params().fingerprint == params(concurrency=3).fingerprint
    changed = [params("1"), params(entity_types=("person",)), params(output_language="German"), params(entity_types=()),
               dataclasses.replace(base, examples="x")]  # fmt: skip
    assert len({one.fingerprint for one in [base, *changed]}) == 6


# ---- asking ---------------------------------------------------------------------------------------


def test_a_good_reply_is_taken_in_one_call() -> None:
    found, calls = extracted(FULL)
    assert found.records is not None and [one.name for one in found.records.entities] == list(NAMES)
    assert (found.by, found.reason, calls) == ("llm:scripted", "", 1)


def test_a_reply_that_passes_over_the_main_names_is_gleaned() -> None:
    found, calls = extracted(POOR, REST)
    assert found.records is not None and calls == 2
    assert [one.name for one in found.records.entities] == ["Lofoten", "Maria Halden", "Jon Berg"]


def test_a_reply_that_was_cut_off_is_gleaned() -> None:
    found, calls = extracted(cut(FULL, "Lofoten is"), told("Lofoten"))
    assert calls == 2 and found.records is not None and len(found.records.entities) == 5 and found.records.complete


@pytest.mark.parametrize(("gleanings", "calls"), [("0", 1), ("1", 2)])
def test_a_text_is_asked_about_once_more_at_most(gleanings: str, calls: int) -> None:
    rules: list[Rule] = [
        lambda messages, schema: told(NAMES[len(messages) // 2]),
    ]
    with asker(*rules) as (opened, chat):
        found = opened.wait(extract_unit(opened, TEXT, NAMES, params(gleanings)))
    assert len(chat.calls) == calls and found.records is not None and len(found.records.entities) == calls


@pytest.mark.parametrize("then", ["", "I see nothing.", "<html>", ModelError("down", "Wait"), "x" * 100_000])
def test_a_gleaning_that_fails_takes_nothing_away(then: str | Exception) -> None:
    found, _ = extracted(POOR, then)
    assert found.records is not None and [one.name for one in found.records.entities] == ["Lofoten"]
    assert found.by == "llm:scripted" and found.reason.startswith("no gleaning: ")


@pytest.mark.parametrize("said", ["", "Sorry, no.", NOTHING, "<html></html>", '{"error": 1}', told("NAME"), "[1]"])
def test_a_model_that_says_nothing_usable_is_asked_twice_and_then_left(said: str) -> None:
    found, calls = extracted(said)
    assert (found.records, found.by, calls) == (None, "", 2) and found.reason


# ---- gleaning: when, and what it may change ---------------------------------------------------------


def known(*names: str, complete: bool = True) -> Records:
    return Records(tuple(EntityRecord(name, "person", "d") for name in names), (), complete)


def test_a_correction_replaces_a_repetition_does_not_and_new_records_are_added() -> None:
    first = Records(
        (EntityRecord("Ada", "person", "A woman"), EntityRecord("Bob", "person", "A long description")),
        (RelationRecord("Ada", "Bob", "They", ("x",), 2.0),), False,
    )  # fmt: skip
    more = Records(
        (EntityRecord("ADA", "person", "A woman who wrote"), EntityRecord("Bob", "person", "Short"), EntityRecord("Ada", "method", "A language")),
        (RelationRecord("Bob", "Ada", "They met in town", (), 8.0), RelationRecord("Bob", "Cem", "Friends")), True,
    )  # fmt: skip
    merged = with_gleaned(first, more)
    assert [(one.type, one.description) for one in merged.entities] == [
        ("person", "A woman who wrote"), ("person", "A long description"), ("method", "A language"),
    ]  # fmt: skip
    assert [(one.description, one.strength) for one in merged.relations] == [("They met in town", 8.0), ("Friends", 1.0)]
    assert merged.complete


# ---- places in the text -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name", "found"),
    [
        ("Ada met Adam. Ada left.", "Ada", ["Ada", "Ada"]),
        ("King Alexander III ruled.", "ALEXANDER III", ["Alexander III"]),
        ("He tells us of the US.", "US", ["US"]), ("He tells us.", "US", []), ("C++ and C.", "C", ["C"]),
        ("In São  Paulo\nand Sao Paulo", "Sao Paulo", ["Sao Paulo"]), ("In São \n Paulo today", "Sao Paulo", ["São \n Paulo"]),
        ("Cafe\u0301 Müller", "Café Muller", ["Cafe\u0301 Müller"]), ("O’Brien’s house", "O'Brien", ["O’Brien"]),
        ("北京大学在北京。", "北京", ["北京", "北京"]), ("서울은 수도이다", "서울", ["서울"]), ("ＡＢＣＤ 株式会社", "ABCD", ["ＡＢＣＤ"]),
        ("İstanbul and Bodø", "BODØ", ["Bodø"]), ("nothing", "Ada", []), ("", "Ada", []), ("Ada", "", []), ("Ada", " ", []),
    ],
)  # fmt: skip
def test_a_name_is_found_where_it_stands(text: str, name: str, found: list[str]) -> None:
    assert [text[start:end] for start, end in locate(text, name)] == found


@pytest.mark.parametrize(("pump", "name"), [("a", "a"), ("a", "a" * 200), ("a ", "a a a"), ("ab", "B" * 100), ("é", "e" * 150), ("İ", "i"), (" ", "a b"), ("中", "中")])
def test_finding_names_takes_linear_time(pump: str, name: str) -> None:
    numbers = itertools.count()  # another text each time: the last ones are remembered
    assert linear(lambda length: spelled(f"{(pump * length)[:length]}{next(numbers)}", name), 5_000, largest=60_000)
