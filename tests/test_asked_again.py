"""Texts about which a model is asked again by each run, and what is asked before names are looked for."""

from __future__ import annotations

from pathlib import Path
from threading import Thread
from typing import Any

from graphrag_mcp.index import documents as building
from graphrag_mcp.index.chunk import ChunkParams
from graphrag_mcp.store.manifest import read
from graphrag_mcp.types import Document
from tests.support.openai_server import openai_server
from tests.test_index_model import demo, index, on, same, write_documents

NOTE = "Ada Lovelace met George Boole in Lincoln."


def test_a_text_that_a_model_never_reads_costs_its_calls_again_and_no_commit(tmp_path: Path) -> None:
    docs, corpus, refused = write_documents(tmp_path / "docs", 4), tmp_path / "c", [True]
    (docs / "new.md").write_text(NOTE, "utf-8")

    def answer(messages: list[dict[str, Any]], body: dict[str, Any]) -> str:
        said = messages[0]["content"]
        return "I cannot say." if refused[0] and "<text" in said and NOTE in said else demo(messages)

    with openai_server(answer) as server:
        chosen = on(server, claims_enabled=False)
        before, manifest = index(corpus, docs, chosen), read(corpus)
        assert before.pending == {"extract": 1}
        result = index(corpus, docs, chosen)
        assert result.usage["calls"] == 2 and (result.pending, result.degraded) == (before.pending, before.degraded)
        assert read(corpus) == manifest
        (docs / "other.md").write_text("Charles Babbage wrote to Ada Lovelace.", "utf-8")
        assert index(corpus, docs, chosen).pending == {"extract": 1}  # beside what has to be written anyway
        refused[0] = False
        assert not index(corpus, docs, chosen).pending
        index(corpus, docs, chosen, recluster=True)
        index(tmp_path / "fresh", docs, chosen)
        assert same(corpus) == same(tmp_path / "fresh")


def test_a_document_is_cut_before_its_names_are_looked_for_and_these_are_looked_for_once() -> None:
    document = Document("a.md", "Letters", "\n\n".join(f"# Day {day}\n\n{NOTE} It rained." for day in range(40)))
    params, numbers = ChunkParams(size=120, overlap=20, passage_size=60), {"d": 1, "t": 1}
    rows = building.cut_rows(document, building.Before(), params, numbers)
    assert len(rows.units) == len(rows.to_read) > 3 and not rows.passages and not rows.fresh
    first, found = next(iter(rows.to_read.values())), []
    threads = [Thread(target=lambda: found.append(first.found())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    building.fill(rows)
    assert all(one is found[0] for one in found) and rows.fresh[first.id] is found[0][0]
    assert {"ada lovelace", "george boole"} <= {named.key for named in found[0][0].named}
    whole = building.build(document, building.Before(), params, {"d": 1, "t": 1})
    assert (whole.document, whole.units, whole.passages, whole.fresh) == (
        rows.document, rows.units, rows.passages, rows.fresh,
    )  # fmt: skip


def letters(folder: Path, count: int) -> Path:
    folder.mkdir()
    for number in range(count):
        (folder / f"{number}.md").write_text(f"Ada Lovelace wrote letter {number} to Charles Babbage in London.", "utf-8")
    return folder


def test_a_server_that_goes_away_is_not_tried_with_every_text_that_is_left(tmp_path: Path) -> None:
    docs = letters(tmp_path / "docs", 150)
    with openai_server(demo) as server:
        chosen = on(server, embedding_model="", max_retries=0, concurrency=4)
        server.script = [None] * 20 + [503] * 1_000
        result = index(tmp_path / "c", docs, chosen)
        assert result.status == "done" and len(server.requests) < 20 + 60
        assert result.pending["extract"] >= 100 and all(one["reason"] for one in result.degraded)
        server.script = []
        assert not index(tmp_path / "c", docs, chosen).pending


def test_texts_that_a_provider_refuses_do_not_keep_the_others_from_being_read(tmp_path: Path) -> None:
    docs = letters(tmp_path / "docs", 90)
    with openai_server(demo) as server:
        server.script = [(400, {}, '{"error": {"message": "flagged by the content filter"}}')] * 60
        result = index(tmp_path / "c", docs, on(server, embedding_model="", max_retries=0, concurrency=4))
    assert sum(result.pending.values()) == 60, "questions for names and for claims together"
