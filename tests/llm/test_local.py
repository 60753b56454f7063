"""Models in this process: settings, prompts, errors that teach; real vectors and scores of tiny models made here."""

from __future__ import annotations

import asyncio
import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest

from graphrag_mcp.errors import ModelError
from graphrag_mcp.llm.local import LocalEmbedder, LocalReranker, place, prompts
from graphrag_mcp.llm.protocols import Usage

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] query passage the of salt boat bakery prize painter river town won is a in : ."


def run(work: Any) -> Any:
    return asyncio.run(work)


def floats(vector: bytes) -> list[float]:
    import numpy

    return numpy.frombuffer(vector, "<f4").tolist()


# ---- without the library ------------------------------------------------------------------------


def test_a_setting_names_the_model_that_is_here() -> None:
    assert place("local:owner/name") == "owner/name"


def test_a_folder_that_is_not_there_is_no_name_to_look_up(tmp_path: Path) -> None:
    for setting in (f"local:{tmp_path / 'nothing'}", "local:", "local:./models/x", "local:a/b/c"):
        with pytest.raises(ModelError, match="names no folder") as caught:
            run(LocalEmbedder(setting).embed(["salt"]))
        assert caught.value.final and "local:/path" in str(caught.value)


def test_prompts_come_from_the_model_itself(tmp_path: Path) -> None:
    said = {"prompts": {"query": "ask: ", "document": "text: "}}
    (tmp_path / "config_sentence_transformers.json").write_text(json.dumps(said), "utf-8")
    assert prompts(str(tmp_path)) == ("ask: ", "text: ")


@pytest.mark.parametrize(
    ("name", "question", "text"),
    [
        ("intfloat/multilingual-e5-small", "query: ", "passage: "),
        ("nomic-ai/nomic-embed-text-v1.5", "search_query: ", "search_document: "),
        ("BAAI/bge-m3", "", ""),
        ("BAAI/bge-small-en-v1.5", "Represent this sentence for searching relevant passages: ", ""),
        ("sentence-transformers/all-MiniLM-L6-v2", "", ""),
        ("owner/something25", "", ""),
    ],
)
def test_families_that_want_words_in_front_get_them(name: str, question: str, text: str) -> None:
    assert prompts(name) == (question, text)


def test_instructed_models_and_broken_files_are_no_trouble(tmp_path: Path) -> None:
    assert prompts("intfloat/multilingual-e5-large-instruct")[0].startswith("Instruct: ")
    (tmp_path / "config_sentence_transformers.json").write_text("[not json", "utf-8")
    assert prompts(str(tmp_path)) == ("", "")


def test_without_the_library_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)  # as if it were not installed
    with pytest.raises(ModelError, match=r"graphrag-mcp\[local\]") as caught:
        run(LocalEmbedder(f"local:{tmp_path}").embed(["salt"]))
    assert caught.value.final
    with pytest.raises(ModelError, match=r"graphrag-mcp\[local\]"):
        run(LocalReranker(f"local:{tmp_path}").rerank("salt", ["boat"]))


def test_making_one_imports_nothing_heavy(tmp_path: Path) -> None:
    before = set(sys.modules)
    LocalEmbedder(f"local:{tmp_path}")
    LocalReranker(f"local:{tmp_path}")
    assert not {"torch", "transformers", "sentence_transformers"} & (set(sys.modules) - before)


# ---- with it ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A tiny embedding model and a tiny cross-encoder, with random but fixed weights."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    library = pytest.importorskip("sentence_transformers")
    base = tmp_path_factory.mktemp("models")
    (base / "vocab.txt").write_text("\n".join(WORDS.split()) + "\n", "utf-8")
    tokenizer = transformers.BertTokenizer(vocab={word: at for at, word in enumerate(WORDS.split())})
    size = {"vocab_size": len(WORDS.split()), "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
            "intermediate_size": 16, "max_position_embeddings": 64}  # fmt: skip
    torch.manual_seed(7)
    plain, pairs = base / "plain", base / "pairs"
    transformers.BertModel(transformers.BertConfig(**size)).save_pretrained(plain)
    tokenizer.save_pretrained(plain)
    transformers.BertForSequenceClassification(transformers.BertConfig(**size, num_labels=1, initializer_range=1.0)).save_pretrained(pairs)
    tokenizer.save_pretrained(pairs)
    library.SentenceTransformer(str(plain), device="cpu").save(str(base / "whole"))
    return base / "whole", pairs


def test_a_folder_is_embedded_without_a_network(folders: tuple[Path, Path]) -> None:
    embedder = LocalEmbedder(f"local:{folders[0]}")
    made = run(embedder.embed(["the boat of salt", "a painter won the prize", "the boat of salt"]))
    assert made.dimension == 16 and len(made.vectors) == 3 and made.usage == Usage()
    assert made.vectors[0] == made.vectors[2] != made.vectors[1]
    for vector in made.vectors:
        assert math.isclose(sum(x * x for x in floats(vector)), 1.0, rel_tol=1e-4)


def test_a_model_that_was_warmed_gives_the_same(folders: tuple[Path, Path]) -> None:
    warm, cold = LocalEmbedder(f"local:{folders[0]}"), LocalEmbedder(f"local:{folders[0]}")
    warm.warm()
    assert run(warm.embed(["salt boat"])).vectors == run(cold.embed(["salt boat"])).vectors


def test_the_prompt_in_front_changes_the_vector(folders: tuple[Path, Path]) -> None:
    embedder = LocalEmbedder(f"local:{folders[0]}")
    made = run(embedder.embed(["salt boat", "query : salt boat"]))
    assert made.vectors[0] != made.vectors[1]


def test_fewer_dimensions_are_the_first_ones_at_unit_length(folders: tuple[Path, Path]) -> None:
    whole = floats(run(LocalEmbedder(f"local:{folders[0]}").embed(["salt boat"])).vectors[0])
    short = floats(run(LocalEmbedder(f"local:{folders[0]}", 8).embed(["salt boat"])).vectors[0])
    length = math.sqrt(sum(x * x for x in whole[:8]))
    assert short == pytest.approx([x / length for x in whole[:8]], abs=1e-5)


def test_a_folder_that_is_no_model_says_so(folders: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be read as a model"):
        run(LocalEmbedder(f"local:{tmp_path}").embed(["salt"]))


def test_a_name_that_cannot_be_fetched_says_how_to_bring_it(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ModelError, match="hf download owner/no-such-model") as caught:
        run(LocalEmbedder("local:owner/no-such-model").embed(["salt"]))
    assert caught.value.final


def test_a_cross_encoder_scores_every_text_and_reads_the_question(folders: tuple[Path, Path]) -> None:
    reranker = LocalReranker(f"local:{folders[1]}")
    texts = ["the boat of salt", "a painter won the prize", "a bakery in the town"]
    scores = run(reranker.rerank("salt in the boat", texts))
    assert len(scores) == 3 and len(set(scores)) == 3
    assert run(reranker.rerank("salt in the boat", texts[::-1])) == pytest.approx(scores[::-1], abs=1e-4)
    assert run(reranker.rerank("a painter", texts)) != scores
    assert run(reranker.rerank("a painter", [])) == ()
