"""What an index without a model says of entities and of two that share a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_mcp.doctor.generations import digest
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query.explore import explore_graph
from graphrag_mcp.query.local import local_search
from graphrag_mcp.query.lookup import get_entity
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest, InlineText
from tests.support.promises import doctor

ROW = '| <a id="opt-q" href="#opt-q">`q`</a> | Mara Quillon gave the boat of the harbour to Bert Zorvath of Oslo in May | none |'
SAID = "Then in June of that year Mara Quillon met [Bert Zorvath](https://a.example/b) once more by the harbour."


def test_a_row_of_a_table_is_no_statement_and_a_sentence_is_one_without_its_markup(tmp_path: Path) -> None:
    shown = "Then in June of that year Mara Quillon met Bert Zorvath once more by the harbour."
    for name, texts, told in (("row", [ROW], ""), ("both", [ROW, SAID], shown)):
        given = tuple(InlineText(text, text[:3]) for text in texts)
        index_documents(tmp_path / name, IndexRequest(texts=given), Settings())
        snapshot = open_snapshot(tmp_path / name)
        people = snapshot.rows("entities", "title = 'Mara Quillon'", ["description"])["description"].to_pylist()
        pairs = snapshot.rows("relationships", "", ["source_id", "description"]).to_pylist()
        assert people == [told] and {pair["description"] for pair in pairs} == ({told} if told else set())
        answer = get_entity(snapshot, "Mara Quillon").text
        assert "<a id" not in answer and answer.count(shown) == 2 * bool(told), "in its evidence and its relationship"


UNQUOTED = """Ada Brandt subscribes to the newsletter of Jonas Ekholm.
Ada Brandt and Jonas Ekholm signed the privacy policy of the harbour in Vienna.
Ada Brandt succeeded Jonas Ekholm as chair; see www.harbour.org for more.
Ada Brandt visited https://x.example/a with Jonas Ekholm.
Ada Brandt <ada@x.example> wrote to Jonas Ekholm on Monday.
Jonas Ekholm lent Ada Brandt $500 = 450 euro.
Ada Brandt met Jonas Ekholm (R) in Vienna.
Ada Brandt told Jonas Ekholm | the harbour was closed.
### Ada Brandt married Jonas Ekholm""".split("\n")
UNSTATED = ["| Ada Brandt | met Jonas Ekholm. |", "## Ada Brandt and Jonas Ekholm", "Home > Ada Brandt > Jonas Ekholm > Log in"]


@pytest.mark.parametrize("text", [*UNQUOTED, *UNSTATED])
def test_a_sentence_that_is_not_worth_quoting_makes_a_relationship_without_a_description(tmp_path: Path, text: str) -> None:
    people = "Ada Brandt lives in Vienna.\n\nJonas Ekholm lives in Vienna.\n\n"
    index_documents(tmp_path / "kb", IndexRequest(texts=(InlineText(people + text + "\n", "a.md"),)), Settings())
    snapshot = open_snapshot(tmp_path / "kb")
    ids = snapshot.rows("entities", "type = 'person'", ["id"])["id"].to_pylist()
    pairs = snapshot.rows("relationships", "", ["source_id", "target_id", "description"]).to_pylist()
    said = [pair["description"] for pair in pairs if {pair["source_id"], pair["target_id"]} <= set(ids)]
    assert len(ids) == 2 and said == [""] * (text in UNQUOTED)
    assert doctor(tmp_path / "kb") == []


def test_a_relationship_is_stated_by_the_sentence_in_which_both_take_part_or_by_none(tmp_path: Path) -> None:
    lists = "The guests of the harbour were Mara Quillon, Kai Oduya, and Bert Zorvath, who came late in the evening."
    again = "On the next day the guests were Mara Quillon, Kai Oduya, and Bert Zorvath, who left in the morning."
    said = "In the summer of that year Mara Quillon sold the old boat of the harbour to Bert Zorvath."
    for name, texts, told in (("list", [lists], ""), ("twice", [lists, again], ""), ("both", [lists, said], said)):
        given = tuple(InlineText(text, text[:9]) for text in texts)
        index_documents(tmp_path / name, IndexRequest(texts=given), Settings())
        snapshot = open_snapshot(tmp_path / name)
        ids = snapshot.rows("entities", "title != 'Kai Oduya'", ["id"])["id"].to_pylist()
        pairs = snapshot.rows("relationships", "", ["source_id", "target_id", "description", "evidence"]).to_pylist()
        pairs = [pair for pair in pairs if {pair["source_id"], pair["target_id"]} <= set(ids)]
        assert [pair["description"] for pair in pairs] == [told]
        assert pairs[0]["evidence"][0]["text"] in ((told,) if told else (lists, again))
        shown = explore_graph(snapshot, "Mara Quillon", "Bert Zorvath").text
        assert "both named: In the" not in shown
        assert name == "both" or "both named: " in shown
        assert ": \n" not in local_search(snapshot, "Mara Quillon and Bert Zorvath").text
        assert doctor(tmp_path / name) == []


def test_a_statement_follows_from_its_own_text_unit(tmp_path: Path) -> None:
    """What another document calls a name changes no statement that is not made again."""
    told = {"a.md": "Ada Lovelace: I saw Charles Babbage near the tide!", "b.md": "Ada Lovelace met Bo Holm. Lovelace wrote to Bo Holm of it."}
    folder = tmp_path / "docs"
    folder.mkdir()
    for name, text in told.items():
        (folder / name).write_text(text)
        index_documents(tmp_path / "grown", IndexRequest((str(folder),)), Settings(home=tmp_path))
    index_documents(tmp_path / "fresh", IndexRequest((str(folder),)), Settings(home=tmp_path))
    assert digest(open_snapshot(tmp_path / "grown")) == digest(open_snapshot(tmp_path / "fresh"))


def test_a_sentence_of_many_names_relates_none_of_them_and_a_long_one_those_whom_it_states(tmp_path: Path) -> None:
    guests = "Ada Brandt, Jonas Ekholm, Mara Quillon, Kai Oduya, Bert Zorvath, Ines Calloway, Otto Lind and Vera Holm"
    met = "In June Ada Brandt met Jonas Ekholm at the harbour of the town."
    wide = "Ada Brandt subscribes to the newsletter of the harbour, " + "and the wind blew from the sea, " * 9 + "and Jonas Ekholm slept."
    for name, text, pairs in (
        ("many", f"The harbour was seen by {guests} in the summer of that year.", 0),
        ("both", f"The harbour was seen by {guests} in the summer of that year. {met}", 1),
        ("wide", f"{wide} Ada Brandt slept. Jonas Ekholm slept.", 0),
        ("less", f"{wide} Ada Brandt slept. Jonas Ekholm slept.".replace("and the wind blew from the sea, " * 8, ""), 1),
    ):
        index_documents(tmp_path / name, IndexRequest(texts=(InlineText(text, "a"),)), Settings())
        assert open_snapshot(tmp_path / name).count("relationships") == pairs, name


def test_a_name_that_one_sentence_holds_is_an_entity_where_it_is_full_or_of_a_known_type(tmp_path: Path) -> None:
    once = "The readers of Kombu wait for a broker. In June Yuriy Syrovetskiy moved the office to Oslo."
    index_documents(tmp_path, IndexRequest(texts=(InlineText(once, "a"),)), Settings())
    assert titles(tmp_path) == {"Yuriy Syrovetskiy", "Oslo"}
    assert "t1" in local_search(open_snapshot(tmp_path), "Kombu").text, "its passage is found"
    assert "It is named in [t1]." in get_entity(open_snapshot(tmp_path), "Kombu").text
    index_documents(tmp_path, IndexRequest(texts=(InlineText("They asked Kombu again.", "b"),)), Settings())
    assert titles(tmp_path) == {"Yuriy Syrovetskiy", "Oslo", "Kombu"}


def titles(home: Path) -> set[str]:
    return set(open_snapshot(home).rows("entities", "", ["title"])["title"].to_pylist())
