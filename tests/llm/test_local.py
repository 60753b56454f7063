"""Models in this process: settings, prompts, errors that teach; vectors of a real small model (all-MiniLM-L6-v2 with
8-bit weights, from two packages of the extra [dev]) and scores of a cross-encoder made here on top of it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from graphrag_mcp.errors import ModelError
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.llm.local import LocalEmbedder, LocalReranker, place, prompts
from graphrag_mcp.llm.opening import open_asker
from graphrag_mcp.llm.protocols import Usage
from graphrag_mcp.query import rank
from graphrag_mcp.query.local import local_search
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest
from tests.support.command import clean_environment
from tests.support.small_model import write_model

WIDTH = 384  # numbers in a vector of the model


def run(work: Any) -> Any:
    return asyncio.run(work)


def floats(vector: bytes) -> list[float]:
    import numpy

    return numpy.frombuffer(vector, "<f4").tolist()


def likeness(left: bytes, right: bytes) -> float:
    return sum(a * b for a, b in zip(floats(left), floats(right), strict=True))


# ---- without the library ------------------------------------------------------------------------


def test_a_setting_names_the_model_that_is_here() -> None:
    assert place("local:owner/name") == "owner/name"


def test_prompts_come_from_the_model_itself(tmp_path: Path) -> None:
    stated = {"prompts": {"query": "ask: ", "document": "text: "}}
    (tmp_path / "config_sentence_transformers.json").write_text(json.dumps(stated), "utf-8")
    assert prompts(str(tmp_path)) == ("ask: ", "text: ")


def test_without_the_library_the_error_says_what_to_install(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)  # as if it were not installed
    with pytest.raises(ModelError, match=r"the extra \[vectors\]") as caught:
        run(LocalEmbedder(f"local:{model}").embed(["salt"]))
    assert caught.value.final
    with pytest.raises(ModelError, match=r"the extra \[vectors\]"):
        run(LocalReranker(f"local:{model}").rerank("salt", ["boat"]))


# ---- with it ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a real embedding model."""
    return write_model(tmp_path_factory.mktemp("minilm"))


@pytest.fixture(scope="module")
def cross_encoder(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same model with one score on top of its first token: the form of a cross-encoder, with fixed weights."""
    import numpy
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    graph = onnx.load(str(model / "model.onnx"))
    hidden = graph.graph.output[0].name
    weights = numpy.linspace(-1, 1, WIDTH, dtype=numpy.float32).reshape(WIDTH, 1)
    graph.graph.initializer.append(numpy_helper.from_array(weights, "score_weights"))
    graph.graph.initializer.append(numpy_helper.from_array(numpy.array(0, dtype=numpy.int64), "first"))
    graph.graph.node.append(helper.make_node("Gather", [hidden, "first"], ["first_token"], axis=1))
    graph.graph.node.append(helper.make_node("MatMul", ["first_token", "score_weights"], ["logits"]))
    del graph.graph.output[:]
    graph.graph.output.append(helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", 1]))
    folder = tmp_path_factory.mktemp("cross-encoder")
    onnx.save(graph, str(folder / "model.onnx"))
    shutil.copy(model / "tokenizer.json", folder)
    return folder


def test_texts_of_like_meaning_are_near_without_a_shared_word(model: Path) -> None:
    embedder = LocalEmbedder(f"local:{model}")
    made = run(embedder.embed(["The vessel sank in a storm.", "A boat went down in bad weather.", "Bread needs flour and yeast."]))
    assert made.dimension == WIDTH and made.usage == Usage()
    ship, boat, bread = made.vectors
    assert likeness(ship, boat) > 2 * likeness(ship, bread)
    for vector in made.vectors:
        assert math.isclose(likeness(vector, vector), 1.0, rel_tol=1e-4)


def test_a_vector_does_not_depend_on_the_texts_beside_it(model: Path) -> None:
    embedder = LocalEmbedder(f"local:{model}")
    texts = ["salt", "a boat of salt " * 40, "a painter won the prize"] * 5
    together = run(embedder.embed(texts)).vectors
    for text, vector in zip(texts[:3], together, strict=False):
        assert run(embedder.embed([text])).vectors[0] == vector
    assert run(embedder.embed([])).vectors == ()


def test_fewer_dimensions_are_the_first_ones_at_unit_length(model: Path) -> None:
    whole = floats(run(LocalEmbedder(f"local:{model}").embed(["salt boat"])).vectors[0])
    short = floats(run(LocalEmbedder(f"local:{model}", 8).embed(["salt boat"])).vectors[0])
    length = math.sqrt(sum(x * x for x in whole[:8]))
    assert short == pytest.approx([x / length for x in whole[:8]], abs=1e-5)


def test_a_cross_encoder_scores_every_text_and_reads_the_question(cross_encoder: Path) -> None:
    reranker = LocalReranker(f"local:{cross_encoder}")
    texts = ["the boat of salt", "a painter won the prize", "a bakery in the town"]
    scores = run(reranker.rerank("salt in the boat", texts))
    assert len(scores) == 3 and len(set(scores)) == 3
    assert run(reranker.rerank("a painter", texts)) != scores
    assert run(reranker.rerank("a painter", [])) == ()


def test_a_question_without_a_shared_word_finds_its_text_by_vectors(model: Path, tmp_path: Path) -> None:
    notes = {"vessel": "The vessel sank in a storm off the cape.", "bread": "Flour and yeast rise overnight."}
    notes |= {"tax": "The council raised the levy on houses.", "bird": "A heron nests beside the lock."}
    (tmp_path / "notes").mkdir()
    for name, text in notes.items():
        (tmp_path / "notes" / f"{name}.txt").write_text(text, "utf-8")
    settings = Settings(home=tmp_path / "home", embedding_model=f"local:{model}")
    folder = tmp_path / "home" / "corpora" / "notes"
    index_documents(folder, IndexRequest(paths=[str(tmp_path / "notes")]), settings)
    asker = open_asker(folder, settings, limited=False)
    found = local_search(open_snapshot(folder), "Which boat went down in bad weather?", asker=asker)
    assert found.citations[0].uri.endswith("vessel.txt")
    # Without a setting, the model that the index was made with goes on: for searches and for the next run.
    plain = Settings(home=tmp_path / "home")
    assert open_asker(folder, plain, limited=False).embedding_model == f"local:{model}"
    (tmp_path / "notes" / "ink.txt").write_text("The scribe dips his quill.", "utf-8")
    index_documents(folder, IndexRequest(paths=[str(tmp_path / "notes")]), plain)
    assert open_snapshot(folder).count("passages_vectors") == 5


HUB = {"onnx/model.onnx": b"a" * 5000, "onnx/model_int8.onnx": b"b" * 1000, "tokenizer.json": b"{}", "config.json": b"{}"}


class Hub(BaseHTTPRequestHandler):
    """The model hub with one model, `owner/m`."""

    commit = "1" * 40

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        content = HUB.get(path.partition(f"/resolve/{self.commit}/")[2])
        if path.startswith("/api/models/owner/m"):
            shas = ((name, len(data), hashlib.sha256(data).hexdigest()) for name, data in HUB.items())
            files = [{"rfilename": name, "size": size, "lfs": {"sha256": sha, "size": size, "pointerSize": 1}} for name, size, sha in shas]
            tree = [{"type": "file", "path": name, "size": len(data), "oid": "x"} for name, data in HUB.items()]
            content = json.dumps(tree if "/tree/" in path else {"id": "owner/m", "sha": self.commit, "siblings": files}).encode()
        self.send_response(200 if content else 404)
        self.send_header("ETag", hashlib.sha256(content or b"").hexdigest())
        self.send_header("X-Repo-Commit", self.commit)
        self.send_header("Content-Length", str(len(content or b"")))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content or b"")

    do_HEAD = do_GET

    def log_message(self, *_: object) -> None:
        pass


def test_a_model_of_the_hub_is_fetched_once_and_found_without_a_network(tmp_path: Path) -> None:
    code = 'from graphrag_mcp.llm.local import folder_of; folder = folder_of("owner/m", fetches={})\n'
    code += 'print(*sorted(str(file.relative_to(folder)) for file in folder.rglob("*.*")))'
    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as hub:
        threading.Thread(target=hub.serve_forever, daemon=True).start()
        where = {"HF_ENDPOINT": f"http://127.0.0.1:{hub.server_port}", "HF_HOME": str(tmp_path), "HF_HUB_DISABLE_XET": "1", "NO_PROXY": "127.0.0.1"}
        env = clean_environment(**where)
        fetched = subprocess.check_output([sys.executable, "-c", code.format(True)], env=env, encoding="utf-8")
        hub.shutdown()
    assert fetched.split() == ["config.json", "onnx/model_int8.onnx", "tokenizer.json"]
    assert subprocess.check_output([sys.executable, "-c", code.format(False)], env=env, encoding="utf-8") == fetched



def test_an_index_from_elsewhere_does_not_fetch_its_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="is not on this machine"):
        run(LocalEmbedder("local:owner/no-such-model", fetches=False).embed(["salt"]))


def test_a_reranker_of_the_settings_reads_what_a_search_found_and_a_broken_one_changes_nothing(
    model: Path, cross_encoder: Path, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    for number, thing in enumerate(("rope", "sail", "anchor", "lamp")):
        (notes / f"{number}.txt").write_text(f"The boat has a {thing}. It lies in the harbour.", "utf-8")
    folder = tmp_path / "home" / "corpora" / "notes"
    index_documents(folder, IndexRequest(paths=[str(notes)]), Settings(home=tmp_path / "home"))

    def scores(rerank_model: str) -> list[tuple[str, float]]:
        asker = open_asker(folder, Settings(home=tmp_path / "home", rerank_model=rerank_model), limited=False)
        found = rank.retrieve(open_snapshot(folder), "boat in the harbour", rerank=asker.rerank if asker.reranks else None)
        asker.close()
        return [(one.id, one.total) for one in found.passages]

    plain = scores("")
    assert scores(f"local:{cross_encoder}") != plain
    cut = shutil.copytree(cross_encoder, tmp_path / "cut")
    (cut / "model.onnx").write_bytes((cross_encoder / "model.onnx").read_bytes()[:1_000_000])
    assert scores(f"local:{cut}") == plain
