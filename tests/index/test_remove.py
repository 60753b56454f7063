"""Removing documents by hand: what goes, that it stays away, and how it comes back."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.index import removal
from graphrag_mcp.index.edits import replay
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.settings import Settings
from graphrag_mcp.store import edit_log as logs
from graphrag_mcp.store.manifest import read
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest, InlineText
from tests.index.test_edits import content, made, undo
from tests.index.test_index import index
from tests.support.promises import doctor


@pytest.fixture
def kb(tmp_path: Path) -> Path:
    return made(tmp_path)


def uris(kb: Path) -> list[str]:
    return sorted(row["uri"] for row in open_snapshot(kb).rows("documents").to_pylist())


def remove(kb: Path, *ids: str) -> str:
    id = removal.write_down(kb, removal.choose(kb, ids), "agent:ada")
    index_documents(kb, IndexRequest(), Settings())
    return id


def fresh(kb: Path) -> Path:
    """A new index of the same folder with the same edit log."""
    other = kb.parent / "fresh"
    index(other, kb.parent / "docs")
    replay(other, logs.load(kb, read(kb)))
    index(other, kb.parent / "docs")
    return other


def test_a_document_is_found_by_number_id_uri_and_file_name_and_unknown_ones_are_named(kb: Path) -> None:
    rows = {row["uri"]: row for row in open_snapshot(kb).rows("documents").to_pylist()}
    for asked in (f"d{rows['docs/b.md']['n']}", rows["docs/b.md"]["id"], "docs/b.md", "b.md", "[b.md]"):
        assert list(removal.choose(kb, [asked]).documents) == ["docs/b.md"]
    chosen = removal.choose(kb, ["a.md", "bb.md", "d99"])
    assert list(chosen.documents) == ["docs/a.md"] and chosen.unknown["d99"] == []
    assert "docs/b.md" in chosen.unknown["bb.md"]
    with pytest.raises(BadInput, match="no documents are named"):
        removal.choose(kb, [" "])
    with pytest.raises(NotFound):
        removal.choose(kb.parent / "nowhere", ["a.md"])


def test_what_would_go_is_what_goes(kb: Path) -> None:
    before = {table: open_snapshot(kb).count(table) for table in ("text_units", "entities", "relationships")}
    held = content(kb)
    counts, names = removal.loss(kb, removal.choose(kb, ["c.md"]))
    assert content(kb) == held and any("Tidal Power Board" in name for name in names)
    remove(kb, "c.md")
    after = {table: open_snapshot(kb).count(table) for table in before}
    assert {table: before[table] - after[table] for table in before} == {table: counts[table] for table in before}
    assert uris(kb) == ["docs/a.md", "docs/b.md"] and doctor(kb) == []


def test_it_stays_out_when_its_folder_is_indexed_again_and_comes_back_when_it_is_named(kb: Path) -> None:
    docs = kb.parent / "docs"
    remove(kb, "c.md")
    (docs / "c.md").write_text("Another text, and it stays out.", "utf-8")
    result = index(kb, docs)
    assert "docs/c.md" not in uris(kb) and result.skipped == {"removed by remove_documents": 1}
    assert content(kb) == content(fresh(kb))
    index(kb, docs / "c.md")
    assert "docs/c.md" in uris(kb)
    assert index(kb, docs).counts["unchanged"] == 3 and doctor(kb) == []
    assert content(kb) == content(kb.parent / "fresh") or index(kb.parent / "fresh", docs / "c.md")
    assert content(kb) == content(kb.parent / "fresh")


def test_an_undo_brings_it_back_with_the_next_indexing_of_its_folder(kb: Path) -> None:
    before = content(kb)
    id = remove(kb, "b.md", "c.md")
    assert uris(kb) == ["docs/a.md"]
    undo(kb, id)
    index(kb, kb.parent / "docs")
    assert content(kb) == before and doctor(kb) == []


def test_one_row_of_a_table_is_removed_and_comes_back(kb: Path) -> None:
    docs = kb.parent / "docs"
    (docs / "t.csv").write_text(
        "id,title,text\n1,One,Ada Keene rowed.\n2,Two,Clara Voss sang.\n3,Three,York slept.\n", "utf-8"
    )
    index(kb, docs)
    before, every = content(kb), uris(kb)
    id = remove(kb, "docs/t.csv#2")
    assert uris(kb) == [uri for uri in every if uri != "docs/t.csv#2"]
    index(kb, docs)
    assert "docs/t.csv#2" not in uris(kb) and content(kb) == content(fresh(kb))
    undo(kb, id)
    index(kb, docs)
    assert content(kb) == before
    remove(kb, "t.csv")
    assert [uri for uri in uris(kb) if "csv" in uri] == []
    (docs / "t.csv").write_text("id,title,text\n1,One,Ada Keene rowed.\n4,Four,York woke.\n", "utf-8")
    index(kb, docs)
    assert [uri for uri in uris(kb) if "csv" in uri] == [] and doctor(kb) == []


def test_a_text_stays_away_until_it_is_given_again(kb: Path) -> None:
    text = IndexRequest(texts=(InlineText("Wren Abbott was here.", "note"),))
    index_documents(kb, text, Settings())
    id = remove(kb, "note")
    assert "text:note" not in uris(kb)
    index_documents(kb, text, Settings())
    assert "text:note" in uris(kb) and doctor(kb) == []
    rows = logs.load(kb, read(kb))
    assert [(row.op, row.keys) for row in rows] == [("remove", ("text:note",)), ("restore", ("text:note",))]
    assert (id, rows[1].by) == ("u1", "index_documents")


def test_a_removal_that_was_written_down_is_done_by_whoever_indexes_next(kb: Path) -> None:
    removal.write_down(kb, removal.choose(kb, ["a.md"]), "agent:ada")  # and the process ends here
    assert "docs/a.md" in uris(kb)
    other = kb.parent / "other"
    other.mkdir()
    index(kb, other)
    assert "docs/a.md" not in uris(kb) and doctor(kb) == []


def test_most_of_a_large_corpus_may_be_removed_by_hand(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for number in range(24):
        (tmp_path / "docs" / f"{number}.txt").write_text(f"Note {number} on the Difference Engine.", "utf-8")
    index(tmp_path / "kb", tmp_path / "docs")
    remove(tmp_path / "kb", *(f"{number}.txt" for number in range(20)))
    assert len(uris(tmp_path / "kb")) == 4
    index(tmp_path / "kb", tmp_path / "docs")
    assert len(uris(tmp_path / "kb")) == 4
