"""Protocols: what a chat model, an embedding model and a reranker are to this package. Models are
called through `llm/asker.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

LOCAL = "local:"  # begins the name of a model that runs in this process
# Stands in the reason of a question that is not asked again: both replies could not be used.
TWICE = "refused twice"


@dataclass(frozen=True, slots=True)
class Message:
    """One turn: role is "system", "user" or "assistant". `images`: data URLs of pictures that go with it."""

    role: str
    content: str
    images: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens by the provider's figures; where it gives none, `estimated` by `text.count_tokens`."""

    prompt_tokens: int = 0
    output_tokens: int = 0
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class Reply:
    """What a chat model said. `finish`: "stop", "length" (cut off), or the provider's own word.
    `model`: the name that the server gives to what replied, "" where it gives none."""

    text: str
    usage: Usage
    finish: str = "stop"
    model: str = ""


@dataclass(frozen=True, slots=True)
class Embedded:
    """One vector per text, all of one dimension, as float32 bytes in machine order ("<f4")."""

    vectors: tuple[bytes, ...]
    dimension: int
    usage: Usage


class ChatModel(Protocol):
    """Answers a conversation. Retries within its limits; raises ModelError when it gives up."""

    name: str

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, Any] | None = None,
        max_output: int = 0,
        on_text: Callable[[str], None] | None = None,
    ) -> Reply:
        """`schema`: the JSON wanted (a hint to some); `on_text` gets pieces as they come."""
        ...

    async def close(self) -> None: ...


class EmbeddingModel(Protocol):
    """Turns texts into vectors of one dimension. Raises ModelError when it gives up."""

    name: str

    async def embed(self, texts: Sequence[str]) -> Embedded: ...

    async def close(self) -> None: ...


class Reranker(Protocol):
    """One score per text for a question, higher is better. Raises ModelError."""

    name: str

    async def rerank(self, query: str, texts: Sequence[str]) -> tuple[float, ...]: ...

    async def close(self) -> None: ...
