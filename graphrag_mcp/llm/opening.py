"""The asker of a corpus, with the models that the settings name.

Takes a corpus folder and settings; gives an `Asker`. Nothing of a model is imported before it is
named. Knows no question."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_mcp.errors import BadInput
from graphrag_mcp.llm.asker import Asker, Budget

if TYPE_CHECKING:
    from graphrag_mcp.llm.protocols import ChatModel, EmbeddingModel
    from graphrag_mcp.settings import Settings
    from graphrag_mcp.store.reply_cache import AnswerBook, Stored


LOCAL = "local:"  # begins the name of an embedding model that runs in this process


def prepare_client(asker: Asker) -> None:
    """Make what speaks to servers, a quarter of a second, while no one waits for it yet: beside a
    thread that computes it takes four times as long, and the first question with it."""
    remote = asker.embeds and not asker.embedding_model.startswith(LOCAL)
    if asker.on or remote:  # neither once it is closed
        from graphrag_mcp.llm.transport import prepare

        asker.wait(prepare())


def priced(settings: Settings) -> None:
    """Raises BadInput where a limit of money would never be reached, for there is nothing to count
    it by."""
    s = settings
    paid = s.chat_model or (s.embedding_model and not s.embedding_model.startswith(LOCAL))
    if paid and s.max_cost > 0 and not (s.price_prompt or s.price_output or s.price_embedding):
        move = "Set price_prompt and price_output, per million tokens, in the settings file, or limit max_tokens"
        raise BadInput(f"max_cost {s.max_cost:g} would limit nothing, for no prices are set", move)


def open_asker(
    folder: Path,
    settings: Settings,
    *,
    limited: bool = True,
    refresh: bool = False,
    mend: bool = False,
) -> Asker:
    """The asker of a corpus as the settings name its models; `limited`: the budgets of the settings
    hold for it.

    `mend`: a damaged reply cache is set aside, what can be read of it kept, and `note` says so.
    Without limits, for searches, a book that cannot be used is done without."""
    from graphrag_mcp.store.shared_replies import open_book

    chat = embedder = reranker = None
    if settings.rerank_model:
        from graphrag_mcp.llm.local import LocalReranker

        reranker = LocalReranker(settings.rerank_model)
    if settings.embedding_model.startswith(LOCAL):
        from graphrag_mcp.llm.local import LocalEmbedder

        embedder = LocalEmbedder(settings.embedding_model, settings.embedding_dimensions)
        if not limited:  # a search: the model is loaded while the index is opened
            embedder.warm()
    if settings.chat_model or (settings.embedding_model and embedder is None):
        from graphrag_mcp.llm.openai_chat import chat_from, embedder_from
        from graphrag_mcp.llm.transport import Limits

        limits = Limits(
            settings.concurrency, settings.requests_per_minute, settings.tokens_per_minute
        )
        chat, embedder = (
            chat_from(settings, limits=limits),
            embedder or embedder_from(settings, limits=limits),
        )
    s = settings
    book, note = open_book(folder, mend=mend, needed=limited)
    prices = (s.price_prompt, s.price_output, s.price_embedding)
    budget = Budget(*((s.max_calls, s.max_tokens, s.max_cost) if limited else (0, 0, 0.0)), *prices)
    space = ""
    if embedder and s.embedding_dimensions:
        space = f"{s.embedding_model} {s.embedding_dimensions}"
    options = {
        "concurrency": s.concurrency,
        "batch": s.embedding_batch,
        "refresh": refresh,
        "space": space,
    }
    made = Asker(
        book, chat, embedder, budget=budget, reranker=reranker, gives_up=limited, **options
    )
    made.note = note
    return made


def rehearsing(asker: Asker, chat: ChatModel | None, embedder: EmbeddingModel | None) -> Asker:
    """An asker that answers as this one would, from its book first, but by other models, and
    without limits; it writes nothing into the book."""
    book = _Margin(asker._book) if asker._book is not None else None
    budget = replace(asker.budget, max_calls=0, max_tokens=0, max_cost=0.0)
    return Asker(
        book,
        chat,
        embedder,
        budget=budget,
        batch=asker._batch,
        refresh=asker._refresh,
        space=asker._space,
    )


def book_of(asker: Asker) -> AnswerBook | None:
    return asker._book


def text_prompt(asker: Asker) -> str:
    return getattr(asker._embedder, "text_prompt", "")


class _Margin:
    """A book whose new entries are kept in memory, as long as the run that needs them."""

    def __init__(self, book: AnswerBook) -> None:
        self._book = book
        self._answers: dict[str, list[Stored]] = defaultdict(list)
        self._vectors: dict[str, bytes] = {}

    def get(self, key: str, preferred: str = "") -> list[Stored]:
        return self._answers.get(key) or self._book.get(key, preferred)

    def put(self, answers: Iterable[Stored]) -> None:
        for one in answers:
            self._answers[one.key].append(one)

    def has(self, kind: str) -> bool:
        return self._book.has(kind)

    def vectors(self, keys: Sequence[str], model: str) -> dict[str, bytes]:
        here = {key: self._vectors[key] for key in keys if key in self._vectors}
        return here | self._book.vectors([key for key in keys if key not in here], model)

    def put_vectors(self, model: str, vectors: Mapping[str, bytes], tokens: int) -> None:
        self._vectors.update(vectors)

    def length(self, model: str) -> int:
        return self._book.length(model) or len(next(iter(self._vectors.values()), b""))

    def close(self) -> None:
        """The book below is another's."""
