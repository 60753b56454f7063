"""The asker of a corpus, with the models that the settings name.

Takes a corpus folder and settings; gives an `Asker`. Nothing of a model is imported before it is
named. Knows no question."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_mcp.errors import BadInput
from graphrag_mcp.llm.asker import Asker, Budget

if TYPE_CHECKING:
    from graphrag_mcp.settings import Settings


LOCAL = "local:"  # begins the name of an embedding model that runs in this process


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
        from graphrag_mcp.llm.openai_chat import OpenAIChat, OpenAIEmbedder
        from graphrag_mcp.llm.transport import Pace

        pace = Pace(settings.requests_per_minute, settings.tokens_per_minute)
        if settings.chat_model:
            chat = OpenAIChat(settings, os.environ, pace)
        if settings.embedding_model and embedder is None:
            embedder = OpenAIEmbedder(settings, os.environ, pace)
    s = settings
    book, note = open_book(folder, mend=mend, needed=limited)
    prices = (s.price_prompt, s.price_output, s.price_embedding)
    limits = (s.max_calls, s.max_tokens, s.max_cost) if limited else (0, 0, 0.0)
    space = ""
    if embedder and s.embedding_dimensions:
        space = f"{s.embedding_model} {s.embedding_dimensions}"
    asker = Asker(
        book,
        chat,
        embedder,
        budget=Budget(*limits, *prices, gives_up=limited),
        concurrency=s.concurrency,
        batch=s.embedding_batch,
        refresh=refresh,
        space=space,
    )
    asker.note, asker.reranker = note, reranker
    return asker
