"""An embedding model and a reranker in this process, by sentence-transformers: no server, no key,
no network.

`local:<folder or name>`: a folder is read as it is; a name is looked up in the library's cache, and
fetched when it is not there. Nothing heavy is imported before the first text, or `warm`."""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from graphrag_mcp.errors import ModelError
from graphrag_mcp.llm.protocols import LOCAL, Embedded, Usage

T = TypeVar("T")
EXTRA = "Install the extra with pip install 'graphrag-mcp[local]', or choose a model behind an API"
BATCH = 32  # texts that go through the model together; more is no faster on a CPU
QUESTION, TEXT = ("query",), ("document", "passage", "corpus")  # what models call their two prompts

# Families whose published way of use puts words in front, where the model's own files do not say
# so: a pattern of the name, what goes before a question, what goes before a text.
_FAMILIES = (
    (r"(?:^|-)e5-.*instruct", "Instruct: Find passages that answer the question\nQuery: ", ""),
    (r"(?:^|-)e5(?:-|$)", "query: ", "passage: "),
    (r"nomic-embed", "search_query: ", "search_document: "),
    (r"bge-.*-en(?:-|$)", "Represent this sentence for searching relevant passages: ", ""),
    (r"bge-.*-zh(?:-|$)", "为这个句子生成表示以用于检索相关文章：", ""),
)


class _Local:
    """A model of this process, one call at a time, each on every core. `name` is the setting."""

    def __init__(self, setting: str, load: Callable[[Any, str, dict[str, Any]], Any]) -> None:
        self.name, self._load = setting, load
        self._model: Any = None
        self._worker = ThreadPoolExecutor(1, "local-model")

    async def close(self) -> None:
        self._worker.shutdown(wait=False, cancel_futures=True)
        self._model = None

    def warm(self) -> None:
        """Begin to load the model, which takes seconds, while the caller does something else."""
        self._worker.submit(self._open)

    def _open(self) -> None:
        if self._model is None:
            self._model = loaded(place(self.name), self._load)

    async def _in_turn(self, work: Callable[..., T], *arguments: Any) -> T:
        """The result of `work`, in which the model is open."""

        def opened() -> T:
            self._open()
            return work(*arguments)

        return await asyncio.get_running_loop().run_in_executor(self._worker, opened)


class LocalEmbedder(_Local):
    """`query_prompt` and `text_prompt` are what the model wants before the two kinds of text."""

    def __init__(self, setting: str, dimensions: int = 0) -> None:
        super().__init__(
            setting,
            lambda library, where, options: library.SentenceTransformer(
                where, device="cpu", truncate_dim=dimensions or None, **options
            ),
        )
        self.query_prompt, self.text_prompt = prompts(setting.removeprefix(LOCAL).strip())

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """No tokens are counted: no one is paid, and no budget of calls to a provider is used."""
        return await self._in_turn(self._embed, list(texts))

    def _embed(self, texts: list[str]) -> Embedded:
        options = {"batch_size": BATCH, "prompt": "", "normalize_embeddings": True}
        options |= {"convert_to_numpy": True, "show_progress_bar": False}
        rows = attempted(self.name, lambda: self._model.encode(texts, **options)).astype("<f4")
        dimension = int(rows.shape[1]) if len(rows) else 0
        return Embedded(tuple(row.tobytes() for row in rows), dimension, Usage())


def place(setting: str) -> str:
    """The folder or name behind `local:`. ModelError for none, and for a missing folder."""
    where = setting.removeprefix(LOCAL).strip()
    folder = Path(where).expanduser()
    if where and folder.is_dir():
        return str(folder)
    if not where or where.startswith(("/", "~", ".")) or "\\" in where or where.count("/") > 1:
        what = f"{setting!r} names no folder that is there"
        move = "Give local:/path/of/a/model, or local:owner/name as on the model hub"
        raise ModelError(what, move, final=True)
    return where


def prompts(where: str) -> tuple[str, str]:
    """What goes before a question and before a text: by the model's files, else by its family."""
    named = _own_prompts(where)
    kinds = ([named[key] for key in kind if named.get(key)] for kind in (QUESTION, TEXT))
    question, text = (next(iter(found), "") for found in kinds)
    if question or text:
        return question, text
    name = Path(where).name.casefold()
    families = (words for pattern, *words in _FAMILIES if re.search(pattern, name))
    question, text = next(families, ("", ""))
    return question, text


def _own_prompts(where: str) -> dict[str, str]:
    file: Any = Path(where).expanduser() / "config_sentence_transformers.json"
    try:
        if not file.parent.is_dir() and where.count("/") == 1:
            from huggingface_hub import try_to_load_from_cache

            file = try_to_load_from_cache(where, file.name)
        found = json.loads(Path(file).read_text("utf-8"))["prompts"]
        return {name: one for name, one in found.items() if isinstance(one, str)}
    except (ImportError, OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}


_loading = threading.Lock()


def loaded(where: str, load: Callable[[Any, str, dict[str, Any]], T]) -> T:
    """What `load` makes of the library; a folder or what is in the cache needs no network."""
    with _loading:
        # No bars of progress: standard error belongs to our own log.
        os.environ |= {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "TOKENIZERS_PARALLELISM": "false"}
        with suppress(ImportError):
            from transformers.utils import logging

            logging.disable_progress_bar()
            logging.set_verbosity_error()
        try:
            import sentence_transformers as library
        except ImportError as error:
            what = f"a local model needs sentence-transformers ({error})"
            raise ModelError(what, EXTRA, final=True) from error
        try:
            return load(library, where, {"local_files_only": True})
        except Exception as error:
            if Path(where).is_dir():
                what = f"the folder {where} cannot be read as a model ({_brief(error)})"
                move = "Give a folder in the form of sentence-transformers"
                raise ModelError(what, move, final=True) from error
        try:
            return load(library, where, {})
        except Exception as error:
            what = f"the model {where!r} is not on this machine and cannot be fetched ({_brief(error)})"
            move = f"Run: hf download {where} --local-dir FOLDER where there is a network, then use local:FOLDER"
            raise ModelError(what, move, final=True) from error


def attempted(name: str, work: Callable[[], T]) -> T:
    try:
        return work()
    except Exception as error:  # whatever the library raises: out of memory, a broken file
        what = f"the model {name!r} failed ({_brief(error)})"
        raise ModelError(what, "Try another model", final=True) from error


def _brief(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__


RERANK_BATCH = 16  # pairs that go through the model together
LONGEST = 4_000  # characters of a text that are read; models cut at 512 tokens or a little more


class LocalReranker(_Local):
    """Reads a question together with each text."""

    def __init__(self, setting: str) -> None:
        super().__init__(
            setting,
            lambda library, where, options: library.CrossEncoder(where, device="cpu", **options),
        )

    async def rerank(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        if not texts:
            return ()
        return await self._in_turn(self._rerank, query, list(texts))

    def _rerank(self, query: str, texts: list[str]) -> tuple[float, ...]:
        from torch.nn import Identity

        pairs = [(query, text[:LONGEST]) for text in texts]
        options = {"batch_size": RERANK_BATCH, "show_progress_bar": False}
        # The bare scores: squeezed between 0 and 1, the best ones would all be 0.9999.
        options["activation_fn"] = Identity()
        scores = attempted(self.name, lambda: self._model.predict(pairs, **options))
        scores = scores[:, -1] if scores.ndim > 1 else scores  # of two labels the second
        return tuple(round(float(score), 5) for score in scores)
