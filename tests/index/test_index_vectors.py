"""Vectors, and what a run leaves open: what a change of models or an end between two commits must not leave behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from campaigns.model_campaign import demo, write_documents
from tests.index.test_index_with_model import index, on, rows
from tests.support.openai_server import openai_server

SETTLED = ("passages_vectors", "entities_vectors")


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return write_documents(tmp_path / "docs", 8)


def test_another_embedding_model_makes_all_vectors_anew(docs: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "c"
    with openai_server(demo) as server:
        index(corpus, docs, on(server))
        before = len(server.requests)
        server.dimension = 12
        index(corpus, docs, on(server, embedding_model="another"))
        assert len(server.requests) > before
        assert {len(row["vector"]) for row in rows(corpus, "entities_vectors")} == {12}
        assert {row["id"] for row in rows(corpus, "entities_vectors")} == {row["id"] for row in rows(corpus, "entities")}


def test_a_run_that_ends_between_its_commits_leaves_no_vector_of_other_words(docs: Path, tmp_path: Path) -> None:
    def shas(corpus: Path) -> dict[str, str]:
        return {row["id"]: row["sha"] for table in SETTLED for row in rows(corpus, table)}

    corpus, fresh = tmp_path / "c", tmp_path / "fresh"
    with openai_server(demo) as server:
        index(corpus, docs, on(server))
        (docs / "note003.md").write_text("Ada Lovelace met Charles Babbage in Paris.")
        manifest = corpus / "manifest.json"
        index(corpus, docs, on(server), cancelled=lambda: '"stale": [\n  "communities"' in manifest.read_text())
        index(corpus, docs, on(server))
        index(fresh, docs, on(server))
        assert shas(corpus) == shas(fresh)


def test_a_dry_run_counts_what_an_earlier_run_left_open_and_fast_leaves_nothing_open(docs: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "c"
    with openai_server(demo) as server:
        assert index(corpus, docs, on(server, max_calls=12)).pending
        assert index(corpus, docs, on(server), dry_run=True).estimate["calls"] > 0
        assert index(corpus, docs, on(server), method="fast").pending == {}


def test_answers_are_asked_for_anew_on_request(docs: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "c"
    with openai_server(demo) as server:
        first = index(corpus, docs, on(server)).usage["calls"]
        assert index(corpus, docs, on(server)).usage["calls"] == 0
        assert index(corpus, docs, on(server), refresh_answers=True).usage["calls"] > first / 3


def test_a_key_that_stands_in_a_text_is_sent_to_no_model(docs: Path, tmp_path: Path) -> None:
    key = "Ab3dE6gH9k" * 3
    (docs / "key.md").write_text(f'Ada Lovelace set api_key = "{key}" in Lincoln.', "utf-8")
    with openai_server(demo) as server:
        index(tmp_path / "c", docs, on(server))
        sent = [json.dumps(seen.body) for seen in server.requests]
    assert any("Ada Lovelace set api_key" in one for one in sent) and not any(key in one for one in sent)


def test_no_text_is_embedded_twice_while_its_vector_is_on_its_way(docs: Path, tmp_path: Path) -> None:
    with openai_server(demo, latency=0.2) as server:
        index(tmp_path / "c", docs, on(server))
        asked = [text for seen in server.requests for text in seen.body.get("input", ())]
    assert asked and len(asked) == len(set(asked))
