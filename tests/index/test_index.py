"""The whole way in: folders to generations, and that any history ends where a fresh index would."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest

from graphrag_mcp.doctor.generations import digest
from graphrag_mcp.errors import BadInput
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.manifest import read
from graphrag_mcp.store.tables import Snapshot, notes_of, open_snapshot
from graphrag_mcp.types import IndexRequest, InlineText
from tests.support.promises import doctor

PEOPLE = ["Ada Lovelace", "Charles Babbage", "Mary Somerville", "Luigi Menabrea", "Augustus De Morgan", "钱学森", "竺可桢"]
PLACES = ["London", "Turin", "Edinburgh", "Bournemouth", "杭州", "加州理工学院"]
THINGS = ["Analytical Engine", "Difference Engine", "Royal Society (RS)", "RS", "punched cards", "lunar tables", "《工程控制论》"]


def sentence(rng: random.Random) -> str:
    a, b = rng.sample(PEOPLE, 2)
    return rng.choice([
        f"{a} wrote to {b} about the {rng.choice(THINGS)}.",
        f"In {rng.choice(PLACES)}, {a} met {b} and spoke of the {rng.choice(THINGS)}.",
        f"The {rng.choice(THINGS)} was described by {a} in {rng.choice(PLACES)}.",
        f"{a}在{rng.choice(PLACES)}会见了{b}，讨论{rng.choice(THINGS)}。",
    ])  # fmt: skip


def document(rng: random.Random) -> str:
    return f"# {rng.choice(PEOPLE + PLACES)}\n\n" + "\n\n".join(
        " ".join(sentence(rng) for _ in range(rng.randint(1, 5))) for _ in range(rng.randint(1, 4))
    )


def index(corpus: Path, *paths: Path, settings: Settings = Settings(), **options):
    return index_documents(corpus, IndexRequest(paths=tuple(map(str, paths)), **options), settings)


def rows(snapshot: Snapshot, table: str) -> list[dict]:
    return snapshot.rows(table).to_pylist()


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    rng = random.Random(7)
    for number in range(12):
        (folder / f"note{number}.md").write_text(document(rng), "utf-8")
    return folder


@pytest.mark.core
def test_a_folder_becomes_tables_that_fit_together(docs: Path, tmp_path: Path) -> None:
    result = index(tmp_path / "kb", docs)
    assert (result.status, result.counts["added"], result.errors) == ("done", 12, [])
    assert doctor(tmp_path / "kb") == []
    snapshot = open_snapshot(tmp_path / "kb")
    texts = {row["id"]: row["text"] for row in rows(snapshot, "documents")}
    for unit in rows(snapshot, "text_units") + rows(snapshot, "passages"):
        assert texts[unit["document_id"]][unit["char_start"] : unit["char_end"]] == unit["text"]
    titles = {row["title"] for row in rows(snapshot, "entities")}
    assert {"Ada Lovelace", "Charles Babbage", "钱学森"} <= titles
    in_tree = {row["entity_id"] for row in rows(snapshot, "memberships")}
    assert in_tree == {row["id"] for table in ("entities", "text_units") for row in rows(snapshot, table)}


def test_an_acronym_joins_the_entity_that_the_text_defines_it_for(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "1.md").write_text("The Tidal Power Board (TPB) met Ada Lovelace in Geneva.", "utf-8")
    (tmp_path / "a" / "2.md").write_text("In London, TPB and Charles Babbage signed the accord. Then TPB left.", "utf-8")
    index(tmp_path / "kb", tmp_path / "a")
    entities = {row["title"]: row for row in rows(open_snapshot(tmp_path / "kb"), "entities")}
    assert "TPB" not in entities
    assert (entities["Tidal Power Board"]["frequency"], entities["Tidal Power Board"]["aliases"]) == (2, ["TPB"])
    (tmp_path / "a" / "1.md").unlink()  # with the definition gone, the acronym stands for itself
    index(tmp_path / "kb", tmp_path / "a")
    titles = {row["title"] for row in rows(open_snapshot(tmp_path / "kb"), "entities")}
    assert "TPB" in titles and "Tidal Power Board" not in titles


@pytest.mark.core
def test_an_unchanged_folder_writes_nothing(docs: Path, tmp_path: Path) -> None:
    index(tmp_path / "kb", docs)
    before = read(tmp_path / "kb")
    result = index(tmp_path / "kb", docs)
    assert (result.counts["unchanged"], read(tmp_path / "kb")) == (12, before)


def test_a_second_folder_removes_nothing_of_the_first(docs: Path, tmp_path: Path) -> None:
    index(tmp_path / "kb", docs)
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "x.md").write_text("Mary Somerville lived in Jedburgh.", "utf-8")
    assert index(tmp_path / "kb", tmp_path / "more").counts["removed"] == 0
    assert open_snapshot(tmp_path / "kb").count("documents") == 13


def test_a_folder_that_lost_most_of_its_files_asks_before_it_forgets_them(tmp_path: Path) -> None:
    (tmp_path / "many").mkdir()
    for number in range(30):
        (tmp_path / "many" / f"{number}.txt").write_text(f"Note {number} on the Difference Engine.", "utf-8")
    index(tmp_path / "kb", tmp_path / "many")
    for number in range(20):
        (tmp_path / "many" / f"{number}.txt").unlink()
    with pytest.raises(BadInput, match="20 of the 30 documents.*remove_missing"):
        index(tmp_path / "kb", tmp_path / "many")
    assert index(tmp_path / "kb", tmp_path / "many", remove_missing=True).counts["removed"] == 20


@pytest.mark.core
def test_an_edit_above_keeps_the_ids_of_what_it_moved(tmp_path: Path) -> None:
    rng = random.Random(3)
    text = "\n\n".join(" ".join(sentence(rng) for _ in range(12)) for _ in range(60))
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "b.txt").write_text(text, "utf-8")
    index(tmp_path / "kb", tmp_path / "book")
    before = {row["id"]: row["n"] for row in rows(open_snapshot(tmp_path / "kb"), "text_units")}
    (tmp_path / "book" / "b.txt").write_text("A new preface by John Herschel.\n\n" + text, "utf-8")
    index(tmp_path / "kb", tmp_path / "book")
    after = {row["id"]: row["n"] for row in rows(open_snapshot(tmp_path / "kb"), "text_units")}
    assert len(before) > 6 and len(after.keys() - before.keys()) <= 3
    assert all(before[id] == after[id] for id in before.keys() & after.keys())


def test_a_file_that_cannot_be_read_makes_no_corpus(tmp_path: Path) -> None:
    (tmp_path / "b.dat").write_bytes(bytes(range(256)) * 40)
    result = index(tmp_path / "kb", tmp_path / "b.dat")
    assert (result.done, [error["reason"] for error in result.errors], read(tmp_path / "kb")) == (0, ["binary"], None)


def test_a_long_document_can_be_cancelled_in_the_middle(tmp_path: Path) -> None:
    rng = random.Random(5)
    (tmp_path / "long.txt").write_text("\n\n".join(sentence(rng) for _ in range(8000)), "utf-8")
    asked: list[int] = []
    request = IndexRequest(paths=(str(tmp_path / "long.txt"),))
    result = index_documents(tmp_path / "kb", request, Settings(), cancelled=lambda: asked.append(1) or len(asked) > 5)
    assert (result.status, len(asked), read(tmp_path / "kb")) == ("cancelled", 6, None)


def test_inline_texts_are_replaced_by_their_id(tmp_path: Path) -> None:
    for text in ("Ada Lovelace met Charles Babbage.", "Ada Lovelace met Mary Somerville."):
        request = IndexRequest(texts=(InlineText(text, id="memo", title="Memo"),))
        index_documents(tmp_path / "kb", request, Settings())
    documents = rows(open_snapshot(tmp_path / "kb"), "documents")
    assert [(row["uri"], row["title"], row["text"]) for row in documents] == [
        ("text:memo", "Memo", "Ada Lovelace met Mary Somerville.")
    ]


def test_other_chunk_settings_derive_everything_again_from_the_truth(docs: Path, tmp_path: Path) -> None:
    small = Settings(chunk_size=60, chunk_overlap=10, passage_size=50)
    index(tmp_path / "kb", docs)
    index(tmp_path / "kb", docs, settings=small)
    index(tmp_path / "fresh", docs, settings=small)
    assert digest(open_snapshot(tmp_path / "kb"))["content"] == digest(open_snapshot(tmp_path / "fresh"))["content"]
    assert doctor(tmp_path / "kb") == []


@pytest.mark.parametrize("seed", [pytest.param(0, marks=pytest.mark.core), *range(1, 3)])
def test_any_history_ends_where_a_fresh_index_would(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    folder = tmp_path / "docs"
    folder.mkdir()
    for number in range(6):
        (folder / f"{number}.md").write_text(document(rng), "utf-8")
    index(tmp_path / "kb", folder)
    for _ in range(5):
        for _ in range(rng.randint(1, 3)):
            files = sorted(folder.iterdir())
            what = rng.choice(["add", "edit", "remove", "rename"]) if len(files) > 2 else "add"
            if what == "add":
                (folder / f"n{rng.random()}.md").write_text(document(rng), "utf-8")
            elif what == "edit":
                rng.choice(files).write_text(document(rng), "utf-8")
            elif what == "rename":
                shutil.move(rng.choice(files), folder / f"r{rng.random()}.md")
            else:
                rng.choice(files).unlink()
        index(tmp_path / "kb", folder)
    assert doctor(tmp_path / "kb") == []
    index(tmp_path / "fresh", folder)
    fresh = digest(open_snapshot(tmp_path / "fresh"))
    assert digest(open_snapshot(tmp_path / "kb")) == fresh
    index(tmp_path / "kb", folder, recluster=True)
    assert digest(open_snapshot(tmp_path / "kb")) == fresh


def test_rows_of_a_table_are_documents_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "rows").mkdir()
    lines = [{"id": f"q{n}", "title": f"Letter {n}", "text": f"Ada Lovelace, letter {n}.", "year": 1840 + n} for n in range(3)]
    path = tmp_path / "rows" / "letters.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    index(tmp_path / "kb", tmp_path / "rows")
    path.write_text("\n".join(map(json.dumps, lines[1:])), "utf-8")
    result = index(tmp_path / "kb", tmp_path / "rows")
    assert {name: result.counts[name] for name in ("added", "changed", "removed", "unchanged")} == {
        "added": 0, "changed": 0, "removed": 1, "unchanged": 2,
    }  # fmt: skip
    documents = rows(open_snapshot(tmp_path / "kb"), "documents")
    assert sorted((row["uri"], row["title"]) for row in documents) == [
        ("rows/letters.jsonl#q1", "Letter 1"), ("rows/letters.jsonl#q2", "Letter 2"),
    ]  # fmt: skip


def test_a_row_with_a_column_kind_is_no_note(tmp_path: Path) -> None:
    docs = tmp_path / "rows.v1"
    docs.mkdir()
    rest = "Ada Lovelace met Charles Babbage in London."
    (docs / "visits.csv").write_text(f"id,kind,text\na,note,{rest}\nb,visit,{rest}\n", "utf-8")
    (docs / "C# and F.md").write_text(f"---\nkind: note\n---\n\n{rest}\n", "utf-8")
    index(tmp_path / "kb", docs)
    snapshot = open_snapshot(tmp_path / "kb")
    named = {row["uri"] for row in rows(snapshot, "passages") if row["entity_ids"]}
    assert named == {"rows.v1/visits.csv#a", "rows.v1/visits.csv#b"}
    uris = {row["id"]: row["uri"] for row in rows(snapshot, "documents")}
    assert [uris[id] for id in notes_of(snapshot)] == ["rows.v1/C# and F.md"]


def test_what_is_given_in_the_call_in_which_settings_changed_follows_them_too(tmp_path: Path) -> None:
    long = " ".join(f"Ada Ashdown met Corvin Brandt number {at} in Port Drury." for at in range(40))
    smaller = Settings(chunk_size=60, chunk_overlap=10)
    folder = tmp_path / "rows"
    folder.mkdir()

    def write(second: str) -> None:
        (folder / "x.csv").write_text(f"id,title,text\n1,One,{long}\n2,Two,{second}\n", "utf-8")

    def same(one: Path, other: Path) -> bool:
        return digest(open_snapshot(one))["content"] == digest(open_snapshot(other))["content"] and doctor(one) == []

    write(long.replace("Ada", "Della"))
    index(tmp_path / "c", folder)
    write(long.replace("Ada", "Brynn"))  # only the second row
    index(tmp_path / "c", folder, settings=smaller)
    index(tmp_path / "fresh", folder, settings=smaller)
    assert same(tmp_path / "c", tmp_path / "fresh")

    for corpus, text, settings in (("t", long, Settings()), ("t", f"{long} Zed Zulu.", smaller), ("u", f"{long} Zed Zulu.", smaller)):
        index_documents(tmp_path / corpus, IndexRequest(texts=(InlineText(text, "one"),)), settings)
    assert same(tmp_path / "t", tmp_path / "u") and open_snapshot(tmp_path / "t").count("documents") == 1
