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
from graphrag_mcp.types import IndexRequest
from tests.support.openai_server import Server, openai_server

NEAR = 0.15  # what is promised
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
CHINESE = {
    "names": [
        *_names(list("王李张刘陈杨赵黄周吴"), "建国 丽华 志强 秀英 海燕 文博 晓梅 立新 佳音 明远".split(), "", 60),
        *_names("华远 东方 长城 金山 新海".split(), "大学 银行 研究院 公司".split(), "", 16),
        *"北京 上海 广州 杭州 成都 西安 南京 武汉 重庆 天津".split(),
    ],
    "says": ["{}在{}写信给{}，谈到了港口的建设计划。", "那年春天，{}与{}在{}见面。", "{}担任{}的负责人，后来去了{}。",
             "战争结束以后，{}由{}领导。", "{}一直没有原谅{}在{}说过的话。"],
    "joint": "",
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
            return " ".join(said)[:1_000]
        return records(world, said, most, len(messages) > 1, "QUOTE" in prompt)

    return answer


def records(world: dict[str, Any], said: list[str], most: int, again: bool, claims: bool) -> str:
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
    if claims and again:
        lines = []
    elif claims:
        lines = [f"({a}<|>{b}<|>STATEMENT<|>TRUE<|>NONE<|>NONE<|>{one}<|>{one})" for (a, b), one in related[:6]]
    else:
        lines = [f'("entity"<|>{name}<|>person<|>{name} is in the text: {first[name]})' for name in chosen]
        lines += [f'("relationship"<|>{a}<|>{b}<|>{a} and {b}: {one}<|>tie<|>5)' for (a, b), one in related]
    return "\n##\n".join([*lines, "<|COMPLETE|>"])


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
    request = IndexRequest(paths=(str(files),))
    guess = index_documents(folder, replace(request, dry_run=True), chosen)
    assert guess.status == "estimate"
    return guess.estimate, index_documents(folder, request, chosen).usage


def apart(guess: dict[str, Any], used: dict[str, Any]) -> dict[str, float]:
    """What is further apart than is promised, as a ratio."""
    ratios = {name: guess[name] / used[name] for name in ("calls", "prompt_tokens", "output_tokens", "cost")}
    return {name: ratio for name, ratio in ratios.items() if not 1 - NEAR <= ratio <= 1 + NEAR}


def test_short_notes_cost_what_was_foreseen_and_nothing_the_second_time(server: Server, tmp_path: Path) -> None:
    notes, chosen = write(tmp_path / "notes", ENGLISH, 40, 12), settings(server)
    guess, used = both(tmp_path / "c", notes, chosen)
    assert apart(guess, used) == {}
    assert set(guess["by_stage"]) == {"extract", "describe", "report", "embedding"} == set(used["by_stage"])
    assert guess["by_stage"]["extract"]["calls"] == used["by_stage"]["extract"]["calls"] == 40
    assert "no answer is known yet" in guess["because"]
    again, nothing = both(tmp_path / "c", notes, chosen)
    assert again["calls"] == nothing["calls"] == 0 and "because" not in again


def test_an_edit_costs_what_was_foreseen_and_other_vectors_do_so_exactly(server: Server, tmp_path: Path) -> None:
    notes, chosen = write(tmp_path / "notes", ENGLISH, 40, 12), settings(server)
    index_documents(tmp_path / "c", IndexRequest(paths=(str(notes),)), chosen)
    write(tmp_path / "more", ENGLISH, 12, 12, seed=2)
    for file in sorted((tmp_path / "more").iterdir()):
        file.rename(notes / f"later-{file.name}")
    (notes / "003.md").unlink()
    guess, used = both(tmp_path / "c", notes, chosen)
    assert apart(guess, used) == {} and used["by_stage"]["extract"]["calls"] == 12
    guess, used = both(tmp_path / "c", notes, replace(chosen, embedding_model="w"))
    assert guess["by_stage"].keys() == used["by_stage"].keys() == {"embedding"} and guess["calls"] == used["calls"]


def test_one_file_of_sixty_and_texts_without_names_are_rehearsed_too(server: Server, tmp_path: Path) -> None:
    notes, chosen = write(tmp_path / "notes", ENGLISH, 60, 3), settings(server)
    index_documents(tmp_path / "c", IndexRequest(paths=(str(notes),)), chosen)
    write(tmp_path / "more", ENGLISH, 1, 3, seed=2)
    next((tmp_path / "more").iterdir()).replace(notes / "003.md")
    guess, used = both(tmp_path / "c", notes, chosen)
    assert guess["by_stage"]["extract"]["calls"] == used["by_stage"]["extract"]["calls"] == 1
    for name, text in (("none", "nothing to see here, only rain."), ("one", "Then Ada Abel came home.")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.md").write_text(text, "utf-8")
        guess, used = both(tmp_path / name / "c", tmp_path / name, chosen)
        assert guess["by_stage"]["extract"]["calls"] == used["by_stage"]["extract"]["calls"]


def test_a_dry_run_tells_what_is_derived_again_and_that_it_was_stopped(server: Server, tmp_path: Path) -> None:
    notes = write(tmp_path / "notes", ENGLISH, 3, 3)
    request = IndexRequest(paths=(str(notes),), dry_run=True)
    index_documents(tmp_path / "c", replace(request, dry_run=False), Settings())
    hint = index_documents(tmp_path / "c", request, Settings(chunk_size=300)).hint
    assert hint.startswith("All 3 documents are derived again")
    assert index_documents(tmp_path / "d", request, settings(server), cancelled=lambda: True).status == "cancelled"


def test_claims_second_looks_and_small_chunks_cost_what_was_foreseen(server: Server, tmp_path: Path) -> None:
    chosen = settings(server, claims_enabled=True, gleanings="1", chunk_size=600, embedding_model="")
    guess, used = both(tmp_path / "c", write(tmp_path / "files", ENGLISH, 10, 40), chosen)
    assert apart(guess, used) == {} and used["by_stage"]["glean"]["calls"] == 40 == 2 * used["by_stage"]["claims"]["calls"]


def test_chinese_costs_what_was_foreseen(server: Server, tmp_path: Path) -> None:
    server.answer = model(CHINESE)
    guess, used = both(tmp_path / "c", write(tmp_path / "files", CHINESE, 30, 15), settings(server))
    assert apart(guess, used) == {}


@pytest.mark.parametrize(
    ("world", "documents", "sentences", "gleanings"),
    [(ENGLISH, 20, 100, "auto"), (CHINESE, 30, 15, "1"), (CHINESE, 20, 60, "auto")],
)
def test_each_kind_of_question_costs_what_was_foreseen(
    server: Server, tmp_path: Path, world: dict[str, Any], documents: int, sentences: int, gleanings: str
) -> None:
    server.answer = model(world)
    chosen = settings(server, claims_enabled=True, gleanings=gleanings)
    guess, used = both(tmp_path / "c", write(tmp_path / "files", world, documents, sentences), chosen)
    kinds = {"extract", "claims", "describe", "report", "embedding"} | ({"glean"} if gleanings == "1" else set())
    assert set(guess["by_stage"]) == set(used["by_stage"]) == kinds
    for kind in kinds:
        one, other = guess["by_stage"][kind], used["by_stage"][kind]
        # The rules find fewer Chinese names than a model, so fewer need a description.
        near = 0.25 if kind == "describe" and world is CHINESE else NEAR
        assert abs(one["calls"] - other["calls"]) <= max(1, near * other["calls"]), (kind, one, other)
        ratio = (one["prompt_tokens"] + one["output_tokens"]) / (other["prompt_tokens"] + other["output_tokens"])
        assert 1 - near <= ratio <= 1 + near, (kind, one, other)


def test_a_part_of_a_run_tells_what_the_rest_costs_with_a_model_of_few_words(server: Server, tmp_path: Path) -> None:
    server.answer = model(ENGLISH, most=9, words=0.5)
    files, chosen = write(tmp_path / "files", ENGLISH, 20, 40), settings(server, embedding_model="")
    request = IndexRequest(paths=(str(files),))
    blind = index_documents(tmp_path / "c", replace(request, dry_run=True), chosen).estimate
    index_documents(tmp_path / "c", request, replace(chosen, max_calls=12, concurrency=1))
    guess, used = both(tmp_path / "c", files, chosen)
    near, far = (abs(one["output_tokens"] / used["output_tokens"] - 1) for one in (guess, blind))
    assert near < far / 2 and apart({**guess, "output_tokens": 1, "cost": 1}, {**used, "output_tokens": 1, "cost": 1}) == {}
    # Calls at a time: the last of them may be over the limit or unfinished.
    assert re.fullmatch("up to 9 names a text, as in 1[0-2] answers of this model", guess["because"])


def test_a_dry_run_counts_with_the_vocabulary_of_tiktoken_where_it_is_on_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No test downloads a vocabulary, so this one is made of single bytes and one word."""
    words = {bytes([byte]): byte for byte in range(256)} | {b"ti": 256, b"de": 257, b"tide": 258}
    encoding = tiktoken.Encoding("bytes", pat_str=r"\S+|\s+", mergeable_ranks=words, special_tokens={})
    monkeypatch.setattr(tiktoken, "get_encoding", lambda name: encoding)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    for there, tokens in ((False, 8 / 4), (True, 1 + 1 + 3)):
        if there:
            (tmp_path / dry_run.VOCABULARY).touch()
        dry_run._encoding.cache_clear()
        assert dry_run.tokens_of("tide all") == (tokens)
    dry_run._encoding.cache_clear()
