"""A dry run beside the run itself, against a real server whose model says about as much as models do."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import tiktoken

from graphrag_mcp.index import dry_run
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.settings import Settings
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.types import IndexRequest
from tests.support.openai_server import Server, demonstrated, openai_server
from tests.support.reply_forms import claim, description, entity, records, relation
from tests.support.reply_forms import claims as told_claims

MARKED = re.compile(r"<(text|context|descriptions)>\n(.*)\n</\1>", re.DOTALL)
WORLD = random.Random(5)


def _names(parts: list[str], others: list[str], joint: str, count: int) -> list[str]:
    return WORLD.sample([f"{one}{joint}{other}" for one in parts for other in others], count)


ENGLISH = {
    "names": [
        *_names("Ada Bruno Carla Dov Elsa Femi Greta Hugo Ines Jonas Karin Lev Mira Nils Olga".split(),
                "Abel Brandt Costa Duarte Eklund Ferrer Grimm Hoang Ibsen Jansen Kowal Lindt".split(), " ", 110),
        *_names("Aster Birch Cedar Dorn Elm Fennel".split(), "Bank Institute Society Works College".split(), " ", 22),
        *_names("North South Old New Upper".split(), "Harrow Marsten Calder Wexley Thorne".split(), " ", 18),
    ],
    "says": ["{} wrote to {} about the plans that {} had made for the harbour.", "In the spring {} met {} in {}.",
             "{} lent the money, which {} and {} spent on a railway that nobody needed.",
             "After the war {} was led by {}.", "{} never forgave {} for what was said in {} that winter."],
    "joint": " ",
}  # fmt: skip
def write(folder: Path, world: dict[str, Any], documents: int, sentences: int, seed: int = 1) -> Path:
    """Documents that each have a cast of their own, and now and then somebody from another."""
    folder.mkdir(parents=True)
    rng = random.Random(seed)
    for number in range(documents):
        cast = rng.sample(world["names"], 24)
        text = []
        for _ in range(sentences):
            says = rng.choice(world["says"])
            text.append(says.format(*rng.sample(cast[: 6 + rng.randint(0, 18)], says.count("{}"))))
        (folder / f"{number:03d}.md").write_text(f"# {cast[0]}\n\n" + world["joint"].join(text), "utf-8")
    return folder


def model(world: dict[str, Any], most: int = 18, words: float = 1.0) -> Callable[..., str]:
    """The answers of a model that lists so many names of a text, and says this share of a sentence of each."""

    def answer(messages: list[dict[str, Any]], body: dict[str, Any]) -> str:
        prompt = messages[0]["content"]
        kind, text = next((m[1], m[2]) for m in [MARKED.search(prompt)] if m)
        said = [one.strip() for one in re.split(r"(?<=[.!?。])\s*|\n+", re.sub(r'[<>|"]', " ", text))]
        said = [one[: int(len(one) * words)] for one in said if len(one) > 10 and not one.startswith("#")]
        if kind == "context":
            found = [{"summary": one[:90], "explanation": f"{one} [Data: Entities (1, 2)]"} for one in said[3:20]]
            return json.dumps({"title": "A report", "summary": " ".join(said[:3]), "rating": 5, "findings": found,
                               "rating_explanation": "They are connected."}, ensure_ascii=False)  # fmt: skip
        if kind == "descriptions":
            return description(" ".join(said)[:1_000])
        return found_in(world, said, most, len(messages) > 1, '"quotes"' in prompt)

    return answer


def found_in(world: dict[str, Any], said: list[str], most: int, again: bool, claims: bool) -> str:
    """Of a first reply, or what a second look finds beside it."""
    first: dict[str, str] = {}
    pairs: dict[tuple[str, str], str] = {}
    held: Counter[str] = Counter()
    for one in said:
        names = sorted((name for name in world["names"] if name in one), key=one.index)
        held.update(names)
        for name in names:
            first.setdefault(name, one)
        for other in names[1:]:
            pairs.setdefault((names[0], other), one)
    listed = [name for name, _ in held.most_common(most + most // 3)]
    chosen, early = (listed[most:], set(listed[:most])) if again else (listed[:most], set())
    related = [(pair, one) for pair, one in pairs.items() if set(pair) <= set(listed) and not set(pair) <= early]
    related = [one for one in related if again or set(one[0]) <= set(chosen)][: most // 3 if again else most]
    if claims:
        return told_claims(*(claim(a, one, one, object=b) for (a, b), one in related[: 0 if again else 6]))
    entities = [entity(name, f"{name} is in the text: {first[name]}") for name in chosen]
    return records(*entities, *(relation(a, b, f"{a} and {b}: {one}", "tie", 5) for (a, b), one in related))


def tokens(text: str, sent: bool) -> int:
    """As a provider counts, about, in English and in Chinese."""
    return len(text.encode()) // 4


@pytest.fixture
def server() -> Iterator[Server]:
    with openai_server(model(ENGLISH), count=tokens) as running:
        yield running


def settings(server: Server, **more: Any) -> Settings:
    prices = {"price_prompt": 0.4, "price_output": 1.6, "price_embedding": 0.02}
    return Settings(**{"chat_model": "m", "embedding_model": "v", "base_url": server.url, **prices, **more})


def both(folder: Path, files: Path, chosen: Settings) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a dry run foresees, and what the run then uses."""
    request = IndexRequest(paths=(str(files),), method="llm")
    guess = index_documents(folder, replace(request, dry_run=True), chosen)
    assert guess.status == "estimate"
    return guess.estimate, index_documents(folder, request, chosen).usage


def exact(guess: dict[str, Any], used: dict[str, Any], *kinds: str) -> bool:
    """The questions about texts are foreseen call by call and token by token, as this test counts tokens."""
    return all(
        guess["by_stage"].get(kind, {}).get("calls", 0) == used["by_stage"].get(kind, {}).get("calls", 0) for kind in kinds
    )


def test_the_questions_about_texts_are_counted_exactly_and_nothing_is_asked_the_second_time(server: Server, tmp_path: Path) -> None:
    notes, chosen = write(tmp_path / "notes", ENGLISH, 40, 12), settings(server, claims_enabled=True, chunk_size=200)
    guess, used = both(tmp_path / "c", notes, chosen)
    assert exact(guess, used, "extract", "claims") and guess["by_stage"]["extract"]["calls"] >= 40
    assert guess["by_stage"].keys() >= {"extract", "claims", "describe", "report", "embedding"}
    again, nothing = both(tmp_path / "c", notes, chosen)
    assert again["calls"] == nothing["calls"] == 0


def test_no_model_is_asked_about_a_note(server: Server, tmp_path: Path) -> None:
    notes, chosen = write(tmp_path / "notes", ENGLISH, 3, 6), settings(server, claims_enabled=True, embedding_model="")
    file = next(notes.iterdir())
    file.write_text(f"---\nkind: note\n---\n\n{file.read_text('utf-8')}", "utf-8")
    guess, used = both(tmp_path / "c", notes, chosen)
    assert exact(guess, used, "extract", "claims") and guess["by_stage"]["extract"]["calls"] == 2


def test_of_a_corpus_that_was_read_only_new_texts_are_counted(server: Server, tmp_path: Path) -> None:
    notes, chosen = write(tmp_path / "notes", ENGLISH, 40, 12), settings(server)
    index_documents(tmp_path / "c", IndexRequest(paths=(str(notes),), method="llm"), chosen)
    write(tmp_path / "more", ENGLISH, 12, 12, seed=2)
    for file in sorted((tmp_path / "more").iterdir()):
        file.rename(notes / f"later-{file.name}")
    (notes / "003.md").unlink()
    guess, used = both(tmp_path / "c", notes, chosen)
    assert exact(guess, used, "extract") and used["by_stage"]["extract"]["calls"] == 12
    prompts = (one["by_stage"]["extract"]["prompt_tokens"] for one in (guess, used))
    assert 0.8 < next(prompts) / next(prompts) < 1.25
    guess, used = both(tmp_path / "c", notes, replace(chosen, embedding_model="w"))
    assert guess["by_stage"].keys() == used["by_stage"].keys() == {"embedding"} and 0.5 < guess["calls"] / used["calls"] < 2


@pytest.mark.parametrize("gleanings, each", [("0", 0), ("1", 1), ("2", 2)])
def test_second_looks_are_foreseen_as_they_are_set(server: Server, tmp_path: Path, gleanings: str, each: int) -> None:
    notes, chosen = write(tmp_path / "notes", ENGLISH, 20, 12), settings(server, gleanings=gleanings, embedding_model="")
    request = IndexRequest(paths=(str(notes),), method="llm", dry_run=True)
    stages = index_documents(tmp_path / "c", request, chosen).estimate["by_stage"]
    assert stages.get("glean", {}).get("calls", 0) == each * stages["extract"]["calls"]


def test_reports_are_foreseen_as_short_as_they_are_set(server: Server, tmp_path: Path) -> None:
    notes, chosen = write(tmp_path / "notes", ENGLISH, 20, 12), settings(server, report_tokens=1000)
    request = IndexRequest(paths=(str(notes),), method="llm", dry_run=True)
    report = index_documents(tmp_path / "c", request, chosen).estimate["by_stage"]["report"]
    assert report["prompt_tokens"] <= 1500 * report["calls"]


def test_a_dry_run_tells_what_is_derived_again_and_that_it_was_stopped(server: Server, tmp_path: Path) -> None:
    notes = write(tmp_path / "notes", ENGLISH, 3, 3)
    request = IndexRequest(paths=(str(notes),), method="llm", dry_run=True)
    index_documents(tmp_path / "c", replace(request, method="auto", dry_run=False), Settings())
    hint = index_documents(tmp_path / "c", replace(request, method="auto"), Settings(chunk_size=300)).hint
    assert hint.startswith("All 3 documents are derived again")
    assert index_documents(tmp_path / "d", request, settings(server), cancelled=lambda: True).status == "cancelled"


def test_a_dry_run_counts_with_the_vocabulary_of_tiktoken_where_it_is_on_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No test downloads a vocabulary, so this one is made of single bytes and one word."""
    words = {bytes([byte]): byte for byte in range(256)} | {b"ti": 256, b"de": 257, b"tide": 258}
    encoding = tiktoken.Encoding("bytes", pat_str=r"\S+|\s+", mergeable_ranks=words, special_tokens={})
    monkeypatch.setattr(tiktoken, "get_encoding", lambda name: encoding)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    for there, tokens in ((False, count_tokens("tide all")), (True, 1 + 1 + 3)):
        if there:
            (tmp_path / dry_run.VOCABULARY).touch()
        dry_run._encoding.cache_clear()
        assert dry_run.tokens_of("tide all") == (tokens)
    dry_run._encoding.cache_clear()


def test_vectors_of_names_that_rules_find_are_foreseen(tmp_path: Path, server: Server) -> None:
    """They cost about as much as those of passages, and were not counted where no model reads the texts."""
    notes, chosen = write(tmp_path / "notes", ENGLISH, 30, 12), settings(server)
    request = IndexRequest(paths=(str(notes),), method="light")
    guess = index_documents(tmp_path / "c", replace(request, dry_run=True), chosen).estimate["by_stage"]["embedding"]
    used = index_documents(tmp_path / "c", request, chosen).usage["by_stage"]["embedding"]
    assert 0.5 < guess["calls"] / used["calls"] < 2
    again = index_documents(tmp_path / "c", replace(request, dry_run=True), chosen).estimate
    assert "embedding" not in again["by_stage"]


def test_reports_from_summaries_are_estimated_with_prompts_of_their_own(tmp_path: Path, server: Server) -> None:
    """They hold a sentence or two of each document, and no rows of entities and relationships."""
    request = IndexRequest(paths=(str(write(tmp_path / "files", ENGLISH, 30, 12)),), dry_run=True)
    of = {}
    for method in ("light", "llm"):
        guess = index_documents(tmp_path / method, replace(request, method=method), settings(server)).estimate
        of[method] = guess["by_stage"]["report"]
    assert of["light"]["calls"] < of["llm"]["calls"]
    mean = {method: stage["prompt_tokens"] / stage["calls"] for method, stage in of.items()}
    assert mean["light"] < mean["llm"] / 3


def foreseen(folder: Path, files: Path, chosen: Settings, method: str, **more: Any) -> dict[str, Any]:
    request = IndexRequest(paths=(str(files),), method=method, dry_run=True, **more)
    return index_documents(folder, request, chosen).estimate


def test_both_ways_are_priced_over_an_index_without_a_model_as_over_none(tmp_path: Path, server: Server) -> None:
    files, chosen = write(tmp_path / "files", ENGLISH, 20, 12), settings(server, embedding_model="")
    fresh = foreseen(tmp_path / "fresh", files, chosen, "auto")
    index_documents(tmp_path / "c", IndexRequest(paths=(str(files),)), Settings())
    over = foreseen(tmp_path / "c", files, chosen, "auto")
    assert over["full"]["calls"] == fresh["full"]["calls"] > 20 and over["by_stage"] == fresh["by_stage"]
    assert over["by_stage"]["report"]["calls"]


def test_what_is_asked_again_and_what_follows_a_new_text_are_foreseen(tmp_path: Path, server: Server) -> None:
    files, server.answer = write(tmp_path / "files", ENGLISH, 12, 12), demonstrated()
    chosen = settings(server, embedding_model="", report_min_size=1, report_min_units=1)
    for method, kind in (("light", "summary"), ("llm", "extract")):
        folder = tmp_path / method
        index_documents(folder, IndexRequest(paths=(str(files),), method=method), chosen)
        assert foreseen(folder, files, chosen, "auto")["calls"] == 0
        again = foreseen(folder, files, chosen, "auto", refresh_answers=True)["by_stage"]
        assert again[kind]["calls"] and again["report"]["calls"]
    write(tmp_path / "more", ENGLISH, 1, 12, seed=2)
    (tmp_path / "more" / "000.md").rename(files / "later.md")
    assert foreseen(tmp_path / "llm", files, chosen, "auto")["by_stage"]["report"]["calls"]
