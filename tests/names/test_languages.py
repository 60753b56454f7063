"""Questions in seventeen languages: the passage that answers is among the first, and most names are found.

One index of all passages in tests/languages, our own writing about invented people and places; a name counts as found
when the entity that carries it is among the five that the question's names lead to.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphrag_mcp.names.extract import extract
from graphrag_mcp.query import entities, rank, text_search
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.terms import normalise_name, terms
from graphrag_mcp.types import InlineText
from tests.support.command import ROOT
from tests.support.files import snapshot_of
from tests.support.workload import linear

SETS = {
    path.stem: json.loads(path.read_text("utf-8")) for path in sorted((ROOT / "tests" / "languages").glob("*.json"))
}
CASELESS = {"ar", "fa", "he", "hi", "th"}  # names are given by a model or an agent
FOUND = 0.75  # share of the names; measured 0.79


def build(folder: Path) -> Snapshot:
    texts = tuple(
        InlineText(text, id=f"{name}-{at}", title=f"{name}-{at}")
        for name, one in SETS.items()
        for at, text in enumerate(one["passages"])
    )
    return snapshot_of(folder / "c", texts)


def named(snapshot: Snapshot, question: str, expected: str) -> bool:
    """Does this question's name lead to the entity that carries the expected one?"""
    found = rank.retrieve(snapshot, question)
    key = normalise_name(expected)
    best = [one.row for one in entities.ranked(snapshot, found) if one.parts["name"]][:5]
    return any(key in {row["key"], *row["names"]} for row in best)


def answered(snapshot: Snapshot, question: str, passage: str) -> bool:
    """Is the passage among the first three, by the ranking?"""
    return passage in titles(snapshot, [one.id for one in rank.retrieve(snapshot, question).passages[:3]])


def titles(snapshot: Snapshot, ids: list[str]) -> list[str]:
    rows = snapshot.by_key("passages", ids, "id", ["id", "title"]).to_pylist()
    return [row["title"] for row in rows]


def score(snapshot: Snapshot, name: str) -> tuple[list[str], list[str]]:
    """The questions of a language whose name was missed, and those whose passage was."""
    questions = SETS[name]["questions"]
    nameless = [f"{asked} -> {entity}" for asked, entity, _ in questions if not named(snapshot, asked, entity)]
    missed = [asked for asked, _, at in questions if not answered(snapshot, asked, f"{name}-{at}")]
    return nameless, missed


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Snapshot]:
    yield build(tmp_path_factory.mktemp("languages"))


def test_the_passage_is_found_in_every_language(snapshot: Snapshot) -> None:
    """Also where the language has no names without a model: there they are words."""
    assert {name: missed for name in SETS if (missed := score(snapshot, name)[1])} == {}


def test_most_names_are_found_where_a_script_has_capitals_or_rules_of_its_own(snapshot: Snapshot) -> None:
    named = [name for name in SETS if name not in CASELESS]
    missed = [miss for name in named for miss in score(snapshot, name)[0]]
    assert len(missed) <= (1 - FOUND) * 10 * len(named), missed


def test_text_search_finds_a_word_in_another_case(snapshot: Snapshot) -> None:
    for query, passage in (("Светлогорска мостом", "ru-0"), ("Вербополем", "uk-0"), ("Işıklıköy'e", "tr-0")):
        found = text_search.matches(snapshot, query)[0]
        assert passage in titles(snapshot, [one.id for one in found.passages[:3]])


@pytest.mark.parametrize(
    "forms",
    [
        "Москва Москвы Москве Москву Москвой", "Иванов Иванова Иванову Ивановым", "Пётр Петра Петру Петром", "Вьетнам Вьетнама",
        "Киев Киева Киеве", "Київ Києва Києві Києвом", "Львів Львова Львові", "Прага Праги Празі", "Зеленський Зеленського",
        "Αθήνα Αθήνας Αθηνών", "Παπαδόπουλος Παπαδόπουλου Παπαδόπουλο", "القاهرة والقاهرة بالقاهرة للقاهرة القاهره",
        "İstanbul İstanbul'da İstanbul'dan İstanbul'un ISTANBUL", "علی علي",
    ],
)  # fmt: skip
def test_the_cases_of_a_name_share_a_key_that_is_its_own_key(forms: str) -> None:
    keys = {normalise_name(form) for form in forms.split()}
    assert len(keys) == 1 and {normalise_name(key) for key in keys} == keys


@pytest.mark.slow
def test_no_language_makes_a_text_slow() -> None:
    for name, one in SETS.items():
        text = " ".join(one["passages"]) * 60

        def read(size: int, text: str = text) -> None:
            extract(text[:size])
            terms(text[:size])

        assert linear(read, 5_000, largest=60_000), name
