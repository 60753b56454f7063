"""What an index without a model says of entities and of two that share a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_mcp.doctor.generations import digest
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest, InlineText
from tests.support.promises import doctor

RELATED = """Ada Brandt subscribes to the newsletter of Jonas Ekholm.
Ada Brandt and Jonas Ekholm signed the privacy policy of the harbour in Vienna.
Ada Brandt succeeded Jonas Ekholm as chair; see www.harbour.org for more.
Ada Brandt visited https://x.example/a with Jonas Ekholm.
Ada Brandt met Jonas Ekholm (R) in Vienna.
Ada Brandt married Jonas Ekholm.
On 3 May 1911 the clerk Ada Brandt paid 20 crowns to her brother Jonas Ekholm for his boat.""".split("\n")
SILENT = """| Ada Brandt | met Jonas Ekholm. |
Guests: Ada Brandt, Jonas Ekholm, Mara Quillon, Bert Zorvath.
The clerk of the harbour often wrote in those years of Ada Brandt, Jonas Ekholm, Mara Quillon and Bert Zorvath.
let pair = new Pair(Ada Brandt, Jonas Ekholm); pair.run(); x = pair[0];
$ time send Ada Brandt 1000 Jonas Ekholm [2] real 0m0.056s
204.946007: Ada Brandt: (fork+0x0/0x3e4) Jonas Ekholm 1=0x1200011 arg2=0x0
title = "Letters of Ada Brandt" authors = ["Jonas Ekholm"] path = "letters/2025/11"
(c) 2018 Ada Brandt | [Legal notice](http://a.example/l) | [Contact](http://a.example/c) | by Jonas Ekholm
subject: letters by: Ada Brandt for: Jonas Ekholm layout: default""".split("\n")


@pytest.mark.parametrize("text", [*RELATED, *SILENT])
def test_a_sentence_relates_its_names_where_it_is_prose_and_not_code_output_or_a_list(tmp_path: Path, text: str) -> None:
    people = "Ada Brandt lives in the harbour.\n\nJonas Ekholm lives in the harbour.\n\n"
    index_documents(tmp_path / "kb", IndexRequest(texts=(InlineText(people + text + "\n", "a.md"),)), Settings())
    snapshot = open_snapshot(tmp_path / "kb")
    ids = snapshot.rows("entities", "title IN ('Ada Brandt', 'Jonas Ekholm')", ["id"])["id"].to_pylist()
    pairs = snapshot.rows("relationships", "", ["source_id", "target_id", "description"]).to_pylist()
    told = [pair["description"] for pair in pairs if {pair["source_id"], pair["target_id"]} <= set(ids)]
    assert len(ids) == 2 and told == [text] * (text in RELATED)
    assert doctor(tmp_path / "kb") == []


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


def test_a_sentence_of_many_names_relates_none_of_them(tmp_path: Path) -> None:
    guests = "Ada Brandt, Jonas Ekholm, Mara Quillon, Kai Oduya, Bert Zorvath, Ines Calloway, Otto Lind and Vera Holm"
    met = "In June Ada Brandt met Jonas Ekholm at the harbour of the town."
    for name, text, pairs in (
        ("many", f"The harbour was seen by {guests} in the summer of that year when the wind blew.", 0),
        ("both", f"The harbour was seen by {guests} in the summer of that year when the wind blew. {met}", 1),
    ):
        index_documents(tmp_path / name, IndexRequest(texts=(InlineText(text, "a"),)), Settings())
        assert open_snapshot(tmp_path / name).count("relationships") == pairs, name
