"""The asker of a corpus, with the models that the settings name."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from graphrag_mcp.errors import BadInput
from graphrag_mcp.llm import protocols
from graphrag_mcp.llm.asker import Asker
from graphrag_mcp.llm.budget import Budget
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.manifest import read as read_manifest


def priced(settings: Settings) -> None:
    """Raises BadInput where a limit of money counts nothing, since no prices are set."""
    s = settings
    paid = s.chat_model or (s.embedding_model and not s.embedding_model.startswith(protocols.LOCAL))
    if paid and s.max_cost > 0 and not (s.price_prompt or s.price_output or s.price_embedding):
        move = "Set price_prompt and price_output, per million tokens, in the settings file, or limit max_tokens"
        raise BadInput(f"max_cost {s.max_cost:g} would limit nothing, for no prices are set", move)


def with_vectors(settings: Settings, folder: Path) -> Settings:
    """The settings with the model in this process that made the vectors of a corpus (`index
    --vectors`), where they name no embedding model."""
    manifest = None if settings.embedding_model else read_manifest(folder)
    made_with = str(manifest.parameters.get("embedding", "")) if manifest else ""
    if not made_with.startswith(protocols.LOCAL):
        return settings
    model, _, dimensions = made_with.rpartition(" ")
    if not model or not dimensions.isdigit():
        model, dimensions = made_with, "0"
    return replace(settings, embedding_model=model, embedding_dimensions=int(dimensions))


def vector_space(settings: Settings) -> str:
    """The model of the vectors and their length where it is set, as a manifest names them; "" for none."""
    model, length = settings.embedding_model, settings.embedding_dimensions
    return f"{model} {length}" if model and length else model


def open_asker(
    folder: Path,
    settings: Settings,
    *,
    limited: bool = True,
    refresh: bool = False,
    retry_refused: bool = False,
    mend: bool = False,
) -> Asker:
    """The asker of a corpus as the settings name its models; `limited`: the budgets of the settings
    hold for it.

    `mend`: a damaged reply cache is set aside, what can be read of it kept, and `note` says so.
    Without limits, for searches, a book that cannot be used is done without."""
    from graphrag_mcp.store.shared_replies import open_book

    s = with_vectors(settings, folder)
    chat = embedder = reranker = None
    if s.rerank_model:
        from graphrag_mcp.llm.local import LocalReranker

        reranker = LocalReranker(s.rerank_model)
    if s.embedding_model.startswith(protocols.LOCAL):
        from graphrag_mcp.llm.local import LocalEmbedder

        # A model that only the index names is not fetched: that index may come from elsewhere.
        fetches = bool(settings.embedding_model)
        embedder = LocalEmbedder(s.embedding_model, s.embedding_dimensions, fetches=fetches)
        if not limited:  # a search: the model is loaded while the index is opened
            embedder.warm()
    if s.chat_model or (s.embedding_model and embedder is None):
        from graphrag_mcp.llm.openai_chat import OpenAIChat, OpenAIEmbedder
        from graphrag_mcp.llm.transport import Pace

        pace = Pace(s.requests_per_minute, s.tokens_per_minute)
        chat = OpenAIChat(s, os.environ, pace) if s.chat_model else None
        if s.embedding_model and embedder is None:
            embedder = OpenAIEmbedder(s, os.environ, pace)
    book, note = open_book(folder, mend=mend, needed=limited)
    prices = (s.price_prompt, s.price_output, s.price_embedding)
    limits = (s.max_calls, s.max_tokens, s.max_cost) if limited else (0, 0, 0.0)
    sized = embedder and s.embedding_dimensions
    asker = Asker(
        book,
        chat,
        embedder,
        budget=Budget(*limits, *prices, gives_up=limited),
        concurrency=s.concurrency,
        batch=s.embedding_batch,
        refresh=refresh,
        retry_refused=retry_refused,
        space=vector_space(s) if sized else "",
    )
    asker.note, asker.reranker = note, reranker
    if s.vision_model and limited:
        from graphrag_mcp.llm.openai_chat import OpenAIChat
        from graphrag_mcp.llm.transport import Pace

        seeing = replace(s, chat_model=s.vision_model)
        pace = Pace(s.requests_per_minute, s.tokens_per_minute)
        asker.vision = Asker(
            book,
            OpenAIChat(seeing, os.environ, pace),
            None,
            budget=asker.budget,
            concurrency=s.concurrency,
            refresh=refresh,
            retry_refused=retry_refused,
            spent=asker.spent(),
        )
    return asker
