"""An embedding model and a reranker in this process, run by ONNX Runtime: no server, no key, no torch.

The setting is `local:FOLDER` or `local:OWNER/NAME`. A folder holds an ONNX file (of several the
smallest is taken, which is the one with 8-bit weights) and `tokenizer.json`. A name is looked up in
the cache of huggingface_hub and fetched once where it is not there. Nothing heavy is imported before
the first text, or `warm`."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from graphrag_mcp.errors import ModelError, extra
from graphrag_mcp.executors import cores
from graphrag_mcp.llm.protocols import LOCAL, Embedded, Usage

if TYPE_CHECKING:
    import numpy as np
    from tokenizers import Encoding

T = TypeVar("T")
EXTRA = f"Install {extra('vectors')}, or choose a model behind an API"
# A fusion of ONNX Runtime that takes more time than what it replaces: 36 passages with it, 43 without.
SLOW_FUSIONS = ["SkipLayerNormFusion"]
# Share of the tokens of a text that the tokenizer does not know, above which the model cannot read it.
# An English model does not know 50 to 92 % of nearly all questions in Chinese, a multilingual one 8 %
# at most. A quarter has room on both sides.
UNREAD = 0.25
# Share of a model's tokens that its tokenizer knows at least. Models round their table up by less than 1 %
# (250,002 of 250,037 tokens in multilingual-e5-small).
SMALLEST = 0.9
LONGEST_INPUT = 512  # tokens, where the model's files state no limit
LONGEST_PAIR = 4_000  # characters of a text that a reranker reads
QUESTION, TEXT = ("query",), ("document", "passage", "corpus")  # what models call their two prompts
CONFIGURATION = (
    "config.json",
    "tokenizer.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "1_Pooling/config.json",
)

# Families whose published way of use puts words in front, where the model's own files do not say
# so: a pattern of the name, what goes before a question, what goes before a text.
_FAMILIES = (
    (r"(?:^|-)e5-.*instruct", "Instruct: Find passages that answer the question\nQuery: ", ""),
    (r"(?:^|-)e5(?:-|$)", "query: ", "passage: "),
    (r"nomic-embed", "search_query: ", "search_document: "),
    (r"bge-.*-en(?:-|$)", "Represent this sentence for searching relevant passages: ", ""),
    (r"bge-.*-zh(?:-|$)", "为这个句子生成表示以用于检索相关文章：", ""),
)
_log = logging.getLogger(__name__)
_loading = threading.Lock()


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The files of one model, and what they say of its use.

    `pooling` is "mean" or "cls"; `longest` is a number of tokens."""

    graph: Path
    tokenizer: Path
    pooling: str
    longest: int
    vocabulary: int


class _OnnxModel:
    """An ONNX graph with its tokenizer. Calls run one at a time, the texts of each on every core.

    `name` is the setting, `local:` included."""

    def __init__(self, setting: str, fetches: bool = True) -> None:
        self.name, self._fetches = setting, fetches
        self._session: Any = None
        self._tokenizer: Any = None
        self._files: ModelFiles | None = None
        self._worker = ThreadPoolExecutor(1, "local-model")
        self._cores = ThreadPoolExecutor(cores(), "local-model-core")

    async def close(self) -> None:
        self._worker.shutdown(wait=False, cancel_futures=True)
        self._cores.shutdown(wait=False, cancel_futures=True)
        self._session = self._tokenizer = None

    def warm(self) -> None:
        """Begin to load the model, which takes seconds, while the caller does something else."""
        self._worker.submit(self._open)

    def _open(self) -> ModelFiles:
        if self._files is None or self._session is None:
            with _loading:
                self._files = files_of(place(self.name, self._fetches), self._fetches)
                self._session, self._tokenizer = loaded(self._files)
        return self._files

    async def _in_turn(self, work: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._worker, work, *arguments)

    def _outputs(self, texts: Sequence[Any]) -> Iterator[tuple[int, np.ndarray, np.ndarray, Encoding]]:
        """For each text its number, the graph's output for it, its attention mask and its tokens.

        Every text is a run of its own: a graph of 8 bits rounds its activations by the largest of a batch, so
        that a vector would depend on the texts beside it."""
        encodings: list[Encoding] = self._tokenizer.encode_batch(list(texts))
        session = self._session
        names = [entry.name for entry in session.get_inputs()]

        def run(encoding: Encoding) -> np.ndarray:
            feed = inputs(encoding)
            return session.run(None, {name: feed[name] for name in names})[0][0]

        outputs = self._cores.map(run, encodings)
        for number, (output, encoding) in enumerate(zip(outputs, encodings, strict=True)):
            yield number, output, inputs(encoding)["attention_mask"][0], encoding


class LocalEmbedder(_OnnxModel):
    """Vectors of unit length. `query_prompt` and `text_prompt` are what the model wants before a
    question and before a text. `dimensions` keeps the first so many numbers of each vector; 0 keeps
    all. `fetches`: a model that is not on this machine may be fetched."""

    def __init__(self, setting: str, dimensions: int = 0, *, fetches: bool = True) -> None:
        super().__init__(setting, fetches)
        self._dimensions = dimensions
        self.query_prompt, self.text_prompt = prompts(setting.removeprefix(LOCAL).strip())

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """Vectors of texts, in their order; zeros for a text that the model cannot read, so that it
        is near to nothing and words alone rank. No tokens are counted: nothing is paid for, and no
        budget of calls to a provider is used. Raises ModelError."""
        return await self._in_turn(self._embed, list(texts))

    def _embed(self, texts: list[str]) -> Embedded:
        files = self._open()
        unknown = unknown_token(self._tokenizer)
        vectors: dict[int, np.ndarray] = attempted(
            self.name,
            lambda: {
                number: unit_vector(pooled(output, mask, files.pooling) * is_read(tokens, unknown), self._dimensions)
                for number, output, mask, tokens in self._outputs(texts)
            },
        )
        rows = tuple(vectors[number].tobytes() for number in range(len(texts)))
        return Embedded(rows, len(rows[0]) // 4 if rows else 0, Usage())


class LocalReranker(_OnnxModel):
    """A cross-encoder: reads a question together with each text."""

    async def rerank(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        """A score for each text, in their order; higher is better. Raises ModelError."""
        if not texts:
            return ()
        return await self._in_turn(self._rerank, query, list(texts))

    def _rerank(self, query: str, texts: list[str]) -> tuple[float, ...]:
        self._open()
        pairs = [(query, text[:LONGEST_PAIR]) for text in texts]
        scores = attempted(
            self.name, lambda: {number: float(output[-1]) for number, output, *_ in self._outputs(pairs)}
        )  # of two labels the second says that the text answers
        return tuple(round(scores[number], 5) for number in range(len(texts)))


# ---- numbers -------------------------------------------------------------------------------------


def inputs(encoding: Encoding) -> dict[str, np.ndarray]:
    """The inputs of a graph for one text, int64 of shape (1, tokens)."""
    import numpy as np

    values = {"input_ids": encoding.ids, "attention_mask": encoding.attention_mask, "token_type_ids": encoding.type_ids}
    return {name: np.array([numbers], np.int64) for name, numbers in values.items()}


def pooled(output: np.ndarray, mask: np.ndarray, pooling: str) -> np.ndarray:
    """One vector of a text: the graph's own where it pools, else the first token's or the mean."""
    if output.ndim == 1:
        return output
    return output[0] if pooling == "cls" else output[mask.astype(bool)].mean(axis=0)


def unknown_token(tokenizer: Any) -> int | None:
    """The number that stands for what the tokenizer does not know; None where it knows all bytes.
    A Unigram model has a number for it, which the library does not tell, and names it <unk>."""
    return tokenizer.token_to_id(getattr(tokenizer.model, "unk_token", None) or "<unk>")


def is_read(tokens: Encoding, unknown: int | None) -> bool:
    """Does the model know enough of the tokens of a text (UNREAD)?"""
    marks = zip(tokens.ids, tokens.special_tokens_mask, strict=True)
    words = [id for id, special in marks if not special]
    return sum(id == unknown for id in words) <= UNREAD * len(words)


def unit_vector(vector: np.ndarray, dimensions: int) -> np.ndarray:
    """The first `dimensions` numbers (0: all) scaled to length 1, as float32."""
    import numpy as np

    kept = vector[: dimensions or None].astype("<f4")
    length = float(np.linalg.norm(kept))
    return kept / np.float32(length) if length else kept


# ---- files ---------------------------------------------------------------------------------------


def place(setting: str, fetches: bool = True) -> str:
    """The folder or name behind `local:`. ModelError for none, and for a missing folder. `fetches` is
    false where only the index names the model."""
    where = setting.removeprefix(LOCAL).strip()
    folder = Path(where).expanduser()
    if where and folder.is_dir():
        return str(folder)
    if not where or where.startswith(("/", "~", ".")) or "\\" in where or where.count("/") != 1:
        what = f"{setting!r} names no folder that is there"
        move = "Give local:/path/of/a/model, or local:owner/name as on the model hub"
        if not fetches:
            what = f"the folder of the model that made the vectors of this index is gone ({where})"
            move = "Bring it back, or make them again with: graphrag-mcp index FOLDER --vectors"
        raise ModelError(what, move, final=True)
    return where


def files_of(where: str, fetches: bool = True) -> ModelFiles:
    """The files of a model in a folder, or under a name. ModelError says what is missing."""
    folder = Path(where) if Path(where).is_dir() else folder_of(where, fetches)
    graphs = sorted(folder.rglob("*.onnx"), key=lambda path: (path.stat().st_size, str(path)))
    tokenizer = folder / "tokenizer.json"
    if not graphs or not tokenizer.is_file():
        lacks = "an ONNX file" if not graphs else "tokenizer.json"
        move = "Export it with: optimum-cli export onnx --model NAME FOLDER"
        raise ModelError(f"the folder {folder} has no model: {lacks} is missing", move, final=True)
    config, limits = (read_json(folder / name) for name in (CONFIGURATION[0], CONFIGURATION[2]))
    pooling = read_json(folder / CONFIGURATION[4])
    positions = config.get("max_position_embeddings", LONGEST_INPUT)
    longest = limits.get("max_seq_length", min(positions, LONGEST_INPUT))
    return ModelFiles(
        graphs[0],
        tokenizer,
        "cls" if pooling.get("pooling_mode_cls_token") is True else "mean",
        longest if isinstance(longest, int) and longest > 0 else LONGEST_INPUT,
        config.get("vocab_size", 0) if isinstance(config.get("vocab_size"), int) else 0,
    )


def folder_of(name: str, fetches: bool = True) -> Path:
    """The folder of a model of the hub in the cache of this machine, into which it is fetched once: of several ONNX
    files the smallest. ModelError where it is not there and may not be fetched, or cannot."""
    try:
        from huggingface_hub import HfApi, snapshot_download, try_to_load_from_cache
    except ImportError as error:
        raise missing_extra(error) from error
    found = try_to_load_from_cache(name, "tokenizer.json")
    if isinstance(found, str) and any(Path(found).parent.rglob("*.onnx")):
        return Path(found).parent
    if not fetches:
        what = f"the model {name!r} of this index is not on this machine"
        raise ModelError(what, f"Set embedding_model = {LOCAL + name!r} to fetch it", final=True)
    try:
        listed = HfApi().model_info(name, files_metadata=True)
        graphs = [entry for entry in listed.siblings or () if entry.rfilename.endswith(".onnx")]
        if not graphs:
            raise ValueError("it has no ONNX file")
        graph = min(graphs, key=lambda entry: (entry.size or 0, entry.rfilename))
        _log.warning("fetching the model %s once (%d MB)", name, (graph.size or 0) // 1_000_000)
        folder = Path(snapshot_download(name, allow_patterns=[graph.rfilename, *CONFIGURATION]))
        with (folder / graph.rfilename).open("rb") as file:
            if graph.lfs and hashlib.file_digest(file, "sha256").hexdigest() != graph.lfs.sha256:
                raise ValueError("the file that arrived is not the one that the hub lists")
    except Exception as error:
        what = f"the model {name!r} is not on this machine and cannot be fetched ({_brief(error)})"
        move = f"Run: hf download {name} --local-dir FOLDER where there is a network, then use local:FOLDER"
        raise ModelError(what, move, final=True) from error
    return folder


def loaded(files: ModelFiles) -> tuple[Any, Any]:
    """The session of a graph and its tokenizer. ModelError where either cannot be read."""
    try:
        import onnxruntime
        from tokenizers import Tokenizer
    except ImportError as error:
        raise missing_extra(error) from error
    try:
        tokenizer = Tokenizer.from_file(str(files.tokenizer))
        tokenizer.no_padding()
        tokenizer.enable_truncation(files.longest)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # an error is raised as well: standard error is our log
        # Two threads that share a text wait for each other: 31 passages a CPU second instead of 37.
        options.intra_op_num_threads = 1
        session = onnxruntime.InferenceSession(
            str(files.graph), options, providers=["CPUExecutionProvider"], disabled_optimizers=SLOW_FUSIONS
        )
        words, least = (tokenizer.get_vocab_size(with_added_tokens=False), SMALLEST * files.vocabulary)
        if files.vocabulary and not least <= words <= files.vocabulary:
            raise ValueError(
                f"the tokenizer knows {words} tokens, the model {files.vocabulary}: they belong to two models"
            )
        return session, tokenizer
    except Exception as error:
        what = f"the model {files.graph} cannot be read ({_brief(error)})"
        move = "Bring the folder again: an ONNX file and the tokenizer.json that belongs to it"
        raise ModelError(what, move, final=True) from error


def prompts(where: str) -> tuple[str, str]:
    """What goes before a question and before a text: by the model's files, else by its family."""
    folder = Path(where).expanduser()
    named = read_json(folder / CONFIGURATION[3]).get("prompts") if folder.is_dir() else {}
    stated = {key: text for key, text in (named or {}).items() if isinstance(text, str)}
    kinds = ([stated[key] for key in kind if stated.get(key)] for kind in (QUESTION, TEXT))
    question, text = (next(iter(found), "") for found in kinds)
    if question or text:
        return question, text
    name = folder.name.casefold()
    return next(((ask, said) for pattern, ask, said in _FAMILIES if re.search(pattern, name)), ("", ""))


def read_json(path: Path) -> dict[str, Any]:
    """The object in a file of a model; {} where there is none, or none that can be read."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def missing_extra(error: ImportError) -> ModelError:
    return ModelError(f"a local model needs onnxruntime and tokenizers ({error})", EXTRA, final=True)


def attempted(name: str, work: Callable[[], T]) -> T:
    """The result of `work`, with whatever the runtime raises as a ModelError."""
    try:
        return work()
    except Exception as error:
        what = f"the model {name!r} failed ({_brief(error)})"
        raise ModelError(what, "Try another model", final=True) from error


def _brief(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__
