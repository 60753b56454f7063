"""Indexing with a model as a whole: any history ends where a fresh index would, and nothing is bought twice."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from campaigns.model_campaign import EAGER, demo, document, same, write_documents
from graphrag_mcp.errors import BadInput
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.reply_cache import NAME, AnswerBook
from graphrag_mcp.store.schema import VECTORS
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest, IndexResult
from tests.support.command import SAMPLE, clean_environment, run_cli
from tests.support.openai_server import Seen, Server, openai_server
from tests.support.promises import doctor
from tests.support.workload import PATIENCE, until

OFF = Settings(**{**EAGER, "embedding_model": ""})


def on(server: Server, **more: Any) -> Settings:
    return Settings(**{"chat_model": "m", "base_url": server.url, "max_retries": 0, **EAGER, **more})


def index(corpus: Path, docs: Path, given: Settings, **more: Any) -> IndexResult:
    seen = {name: more.pop(name) for name in ("progress", "cancelled") if name in more}
    how = {"method": "llm" if given.chat_model else "auto", **more}
    return index_documents(corpus, IndexRequest(paths=(str(docs),), **how), given, **seen)


def told(seen: Seen) -> str:
    return "\n".join(message["content"] for message in seen.body.get("messages", ()))


def rows(corpus: Path, table: str) -> list[dict[str, Any]]:
    return open_snapshot(corpus).rows(table).to_pylist()


def forget_all_but_the_book(corpus: Path) -> None:
    for path in corpus.iterdir():
        if not path.name.startswith(NAME):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return write_documents(tmp_path / "docs", 8)


# ---- bought once ----------------------------------------------------------------------------------


def test_a_model_makes_graph_reports_and_vectors_once_and_all_of_it_comes_back_from_the_book(
    docs: Path, tmp_path: Path
) -> None:
    corpus = tmp_path / "c"
    with openai_server(demo) as server:
        result = index(corpus, docs, on(server))
        assert result.status == "done" and not result.pending and not result.degraded
        assert result.usage["calls"] == len(server.requests)
        assert {"extract", "report", "embedding"} <= result.usage["by_stage"].keys()
        related = rows(corpus, "relationships")
        assert all(row["keywords"] for row in related) and {row["weight"] for row in related} != {1.0}
        assert "llm" in {row["method"] for row in rows(corpus, "reports")}
        for table, vectors in VECTORS.items():
            assert {row["id"] for row in rows(corpus, vectors)} == {row["id"] for row in rows(corpus, table)}
        assert not doctor(corpus)
        first, calls = same(corpus), len(server.requests)
        assert index(corpus, docs, on(server)).usage["calls"] == 0
        forget_all_but_the_book(corpus)
        assert index(corpus, docs, on(server)).usage["calls"] == 0 and same(corpus) == first
        forget_all_but_the_book(corpus)
        index(corpus, docs, OFF)
        assert same(corpus) == first, "also without any model"
        assert len(server.requests) == calls


def test_order_of_files_and_hash_seed_do_not_matter(tmp_path: Path) -> None:
    found = []
    with openai_server(demo) as server:
        for seed in ("1", "2"):
            names = [f"{letter}.md" for letter in "abcdefgh"]
            made = write_documents(tmp_path / f"raw{seed}", 8)
            docs = tmp_path / seed / "docs"
            docs.mkdir(parents=True)
            for name, path in sorted(zip(names, sorted(made.iterdir()), strict=True), reverse=seed == "2"):
                shutil.copy(path, docs / name)
            settings_file = tmp_path / "s.toml"
            settings_file.write_text("report_min_size = 3\nreport_min_units = 1\n", "utf-8")
            environment = clean_environment(
                PYTHONHASHSEED=seed, OPENAI_BASE_URL=server.url, GRAPHRAG_MCP_CHAT_MODEL="m",
                GRAPHRAG_MCP_SETTINGS=str(settings_file),
            )  # fmt: skip
            done = run_cli("index", docs, "--method", "llm", "--home", tmp_path / seed, "--corpus", "c", env=environment)
            assert done.returncode == 0, done.stderr
            found.append(same(tmp_path / seed / "corpora" / "c"))
    assert found[0] == found[1]


EDITS = st.lists(st.tuples(st.sampled_from(["add", "edit", "insert", "rename", "delete"]), st.integers(0, 30)),
                 min_size=1, max_size=4)  # fmt: skip


@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(EDITS, st.sampled_from(["on", "off", "trouble"])), min_size=1, max_size=3))
def test_any_history_equals_a_fresh_index_with_the_same_book(
    steps: list[tuple[list[tuple[str, int]], str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    import random

    home = tmp_path_factory.mktemp("history")
    docs, corpus, fresh = write_documents(home / "docs", 5), home / "c", home / "d"
    with openai_server(demo) as server:
        chosen = on(server, embedding_model="")
        index(corpus, docs, chosen)
        for edits, model in steps:
            for what, number in edits:
                files = sorted(docs.iterdir())
                path, rng = files[number % len(files)], random.Random(number)
                if what in ("add", "edit"):
                    (docs / f"new{number}.md" if what == "add" else path).write_text(document(rng), "utf-8")
                elif what == "insert":
                    path.write_text(document(rng) + "\n\n" + path.read_text("utf-8"), "utf-8")
                elif what == "rename":
                    path.rename(docs / f"renamed{number}.md")
                elif len(files) > 2:
                    path.unlink()
            server.script = [500, None] * 50 if model == "trouble" else []
            index(corpus, docs, OFF if model == "off" else chosen)
        server.script = []
        assert not index(corpus, docs, chosen, recluster=True).pending
        assert not doctor(corpus)
        fresh.mkdir()
        book = AnswerBook(corpus)
        book.kinds()
        book.close()
        shutil.copy(corpus / NAME, fresh / NAME)
        assert index(fresh, docs, chosen).usage["calls"] == 0
    assert same(corpus) == same(fresh)


# ---- cancelled, out of money --------------------------------------------------------------


def test_a_cancelled_run_returns_at_once_and_what_was_answered_is_kept(docs: Path, tmp_path: Path) -> None:
    with openai_server(demo, latency=0.4) as server:
        flag, found = threading.Event(), []
        chosen = on(server, concurrency=3)
        work = threading.Thread(target=lambda: found.append(index(tmp_path / "c", docs, chosen, cancelled=flag.is_set)))
        work.start()
        while len(server.requests) < 5:
            time.sleep(0.01)
        server.latency = 3600  # whoever waited for a reply would wait for ever
        seen = len(server.requests)
        until(lambda: len(server.requests) > seen)
        flag.set()
        work.join(PATIENCE)
        assert found and found[0].status == "cancelled"
        book = AnswerBook(tmp_path / "c")
        had = book.kinds()
        assert had.get("extract", 0) >= 2
        server.latency, before = 0, len(server.requests)
        index(tmp_path / "c", docs, chosen)
        again = Counter(json.dumps(seen.body, sort_keys=True) for seen in server.requests)
        assert sum(again.values()) - len(again) <= 3, "only what was in flight is bought again"
        assert len(server.requests) > before and not doctor(tmp_path / "c")


def test_a_budget_is_a_wall_and_the_run_goes_on_when_it_is_raised(docs: Path, tmp_path: Path) -> None:
    with openai_server(demo) as server:
        index(tmp_path / "calm", docs, on(server))
        first = len(server.requests)
        for limit in (3, 4):
            before = len(server.requests)
            result = index(tmp_path / "c", docs, on(server, max_calls=limit))
            assert len(server.requests) - before == limit == result.usage["calls"] and result.status == "done"
            assert result.pending and {one["reason"] for one in result.degraded} == {"budget"}
            listed = Counter(one["kind"] for one in result.degraded if one["kind"] != "embedding")
            assert listed == {kind: count for kind, count in result.pending.items() if kind != "embedding"}
        assert not index(tmp_path / "c", docs, on(server)).pending
        index(tmp_path / "c", docs, on(server), recluster=True)
        assert same(tmp_path / "c") == same(tmp_path / "calm")
        chat = [seen.body for seen in server.requests[first:] if seen.path.endswith("completions")]
        assert len({json.dumps(body, sort_keys=True) for body in chat}) == len(chat), "nothing is bought twice"
        prices = {"price_prompt": 1.0, "price_output": 10.0, "max_cost": 0.05}
        result = index(tmp_path / "d", docs, on(server, concurrency=2, **prices))
        assert result.pending and 0.0 < result.usage["cost"] <= 0.05


def test_a_limit_of_money_without_prices_is_refused_before_anything_is_spent(docs: Path, tmp_path: Path) -> None:
    with openai_server(demo) as server:
        chosen = Settings(base_url=server.url, chat_model="m", max_cost=1.0)
        with pytest.raises(BadInput, match="max_cost 1 would limit nothing, for no prices are set"):
            index(tmp_path / "c", docs, chosen)
        assert not server.requests
        assert index(tmp_path / "c", docs, chosen, dry_run=True).estimate["calls"] > 0
        assert index(tmp_path / "c", docs, chosen, method="fast").status == "done" and not server.requests


# ---- switches, prompts, estimates -----------------------------------------------------------


def test_a_model_switched_off_and_on_again_reads_exactly_what_came_meanwhile(docs: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "c"
    with openai_server(demo) as server:
        chosen = on(server, embedding_model="")
        index(corpus, docs, chosen)
        first, calls = same(corpus), len(server.requests)
        assert not index(corpus, docs, OFF).pending and same(corpus) == first
        (docs / "new.md").write_text("Ada Lovelace met George Boole in Lincoln.", "utf-8")
        result = index(corpus, docs, OFF)
        assert result.pending["extract"] == 1 and result.degraded[0]["document"] == "docs/new.md"
        assert len(server.requests) == calls
        result = index(corpus, docs, chosen)
        assert not result.pending and result.usage["by_stage"]["extract"]["calls"] == 1
        index(corpus, docs, chosen, recluster=True)
        model, calls = same(corpus), len(server.requests)
        index(corpus, docs, chosen, method="fast", recluster=True)
        index(tmp_path / "keyless", docs, Settings())
        assert same(corpus) == same(tmp_path / "keyless")
        index(corpus, docs, chosen, recluster=True)
        assert same(corpus) == model and len(server.requests) == calls


def test_other_words_are_asked_anew_and_the_old_ones_cost_nothing_again(docs: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "c"
    with openai_server(demo) as server:
        plain = on(server, embedding_model="")
        index(corpus, docs, plain)
        first = same(corpus)
        for other in (replace(plain, output_language="French"), replace(plain, entity_types=("ship", "port"))):
            assert index(corpus, docs, other).usage["by_stage"]["extract"]["calls"] == 8
            assert index(corpus, docs, other).usage["calls"] == 0
        (corpus / "prompts").mkdir()
        words = (Path(__file__).parents[2] / "prompts" / "extract.md").read_text("utf-8")
        (corpus / "prompts" / "extract.md").write_text(words.replace("-->", "-->\nBe brief.", 1), "utf-8")
        assert index(corpus, docs, plain).usage["by_stage"]["extract"]["calls"] == 8
        shutil.rmtree(corpus / "prompts")
        assert index(corpus, docs, plain, recluster=True).usage["calls"] == 0 and same(corpus) == first


def test_a_dry_run_makes_no_call_and_no_file_and_counts_what_the_run_then_asks(tmp_path: Path) -> None:
    with openai_server(demo) as server:
        chosen = Settings(chat_model="m", base_url=server.url, gleanings="0")
        guess = index(tmp_path / "c", SAMPLE, chosen, dry_run=True)
        assert guess.status == "estimate" and not server.requests and not (tmp_path / "c").exists()
        done = index(tmp_path / "c", SAMPLE, chosen)
        stages = done.usage["by_stage"]
        assert guess.estimate["by_stage"]["extract"]["calls"] == stages["extract"]["calls"]
        assert index(tmp_path / "c", SAMPLE, chosen, dry_run=True).estimate["calls"] == 0


def test_embedding_models_alone_serve_a_keyless_graph_and_failures_are_made_good(docs: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "c"
    with openai_server(demo) as server:
        chosen = Settings(base_url=server.url, embedding_model="v", embedding_batch=4, max_retries=0)
        server.script = [500, None] * 100
        told = index(corpus, docs, chosen).pending
        missing = {table: len(rows(corpus, table)) - len(rows(corpus, VECTORS[table])) for table in VECTORS}
        assert sum(missing.values()) > 0 and told == {"embedding": sum(missing.values())}
        server.script, before = [], len(server.requests)
        assert not index(corpus, docs, chosen).pending
        texts = sum(len(seen.body["input"]) for seen in server.requests[before:])
        assert texts <= sum(missing.values())
        index(tmp_path / "keyless", docs, Settings())
        assert same(corpus) == same(tmp_path / "keyless") and not doctor(corpus)
        for table, vectors in VECTORS.items():
            assert {row["id"] for row in rows(corpus, vectors)} == {row["id"] for row in rows(corpus, table)}


def test_a_server_whose_vectors_have_got_another_length_takes_nothing_away_and_is_named(
    docs: Path, tmp_path: Path
) -> None:
    corpus = tmp_path / "c"
    with openai_server(demo) as server:
        index(corpus, docs, on(server))
        (docs / "more.md").write_text("# Turin\n\nLuigi Menabrea wrote to Ada Lovelace in Turin.", "utf-8")
        server.dimension = 12
        for _ in range(2):
            result = index(corpus, docs, on(server))
            assert result.status == "done" and result.pending.keys() == {"embedding"}
            assert "vectors of 12 numbers, and those of this index have 8" in result.degraded[0]["reason"]
            assert not doctor(corpus)
        server.dimension = 8
        assert not index(corpus, docs, on(server)).pending and not doctor(corpus)
        server.dimension = 12
        assert not index(corpus, docs, on(server, embedding_dimensions=12)).pending and not doctor(corpus)
