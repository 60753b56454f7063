"""Models that answer by fixed rules, for tests and campaigns: no key, no network, no
randomness.

    chat = ScriptedChat([(r"capital of France", "Paris"), (r"", "I do not know")])
    reply = await chat.complete([Message("user", "What is the capital of France?")])   # Paris"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphrag_mcp.errors import ModelError
from graphrag_mcp.llm.protocols import Embedded, Message, Reply, Usage
from graphrag_mcp.text.tokens import count_tokens

Said = str | Exception | None
Answering = Callable[[Sequence[Message], Mapping[str, Any] | None], Said]
# A regular expression that is looked for in the whole conversation, with what to say; or a function
# of the messages and the wanted schema. A function that returns None passes the question on; an
# exception is raised.
Rule = Answering | tuple[str, str | Exception | Answering]
Failing = Callable[[int, Sequence[Any]], Said]

PIECE = 40  # characters of a streamed piece
_WORD = re.compile(r"[^\W_]+")


class ScriptedChat:
    """A chat model that follows rules; the first that answers is heard. `calls` holds every
    conversation it was asked.

    `latency`: seconds before each reply. `fail(number, messages)`: asked first with the number of
    the call (from 1); what it returns takes the place of the answer: an exception is raised, a text
    is said, None changes nothing."""

    def __init__(
        self, rules: Sequence[Rule], name: str = "scripted", *, latency: float = 0.0, fail: Failing | None = None
    ) -> None:
        self.name = name
        self.calls: list[tuple[Message, ...]] = []
        self._rules, self._latency, self._fail = tuple(rules), latency, fail

    async def close(self) -> None:
        """Nothing is held."""

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, Any] | None = None,
        max_output: int = 0,
        on_text: Callable[[str], None] | None = None,
    ) -> Reply:
        """What the rules say, cut to `max_output` words; usage is counted, as estimated."""
        self.calls.append(tuple(messages))
        number = len(self.calls)
        if self._latency:
            await asyncio.sleep(self._latency)
        said = self._fail(number, messages) if self._fail else None
        said = self._said(messages, schema) if said is None else said
        if isinstance(said, Exception):
            raise said
        if said is None:
            what = f"no rule of the scripted model {self.name!r} answers this"
            raise ModelError(what, "Add a rule for it, such as a last one with an empty pattern")
        words = list(re.finditer(r"\S+", said)) if max_output else []
        cut = len(words) > max_output
        text = said[: words[max_output - 1].end()] if cut else said
        if on_text is not None:
            for start in range(0, len(text), PIECE):
                on_text(text[start : start + PIECE])
        prompt = sum(count_tokens(message.content) for message in messages)
        usage = Usage(prompt, max_output if cut else count_tokens(text), estimated=True)
        return Reply(text, usage, "length" if cut else "stop")

    def _said(self, messages: Sequence[Message], schema: Mapping[str, Any] | None) -> Said:
        conversation = "\n".join(message.content for message in messages)
        for rule in self._rules:
            pattern, said = rule if isinstance(rule, tuple) else ("", rule)
            if re.search(pattern, conversation):
                if not isinstance(said, str | Exception):
                    said = said(messages, schema)
                if said is not None:
                    return said
        return None


class ScriptedEmbedder:
    """An embedding model: texts that share words lie near each other. `calls` holds the texts of
    every call.

    Each word adds to two places of the vector, by its hash; the vector has length 1. `latency` and
    `fail` as in ScriptedChat (a text that `fail` returns is of no use here and raises ModelError).
    """

    def __init__(
        self,
        dimension: int = 64,
        name: str = "scripted-embedding",
        *,
        latency: float = 0.0,
        fail: Failing | None = None,
    ) -> None:
        self.name, self.dimension = name, dimension
        self.calls: list[tuple[str, ...]] = []
        self._latency, self._fail = latency, fail

    async def close(self) -> None:
        """Nothing is held."""

    async def embed(self, texts: Sequence[str]) -> Embedded:
        self.calls.append(tuple(texts))
        if self._latency:
            await asyncio.sleep(self._latency)
        failed = self._fail(len(self.calls), texts) if self._fail else None
        if failed is not None:
            what = f"the embedding model {self.name!r} gave something that is no vector"
            raise failed if isinstance(failed, Exception) else ModelError(what, "Ask it again")
        usage = Usage(sum(map(count_tokens, texts)), estimated=True)
        return Embedded(tuple(map(self._vector, texts)), self.dimension, usage)

    def _vector(self, text: str) -> bytes:
        import numpy

        vector = numpy.zeros(self.dimension, "<f4")
        for word in _pieces(text.casefold()):
            digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
            number = int.from_bytes(digest, "little")
            vector[number % self.dimension] += 1.0
            vector[(number >> 24) % self.dimension] += 1.0 if number >> 63 else -1.0
        length = float(numpy.linalg.norm(vector))
        if not length:  # no words, or words that cancel each other out
            vector[0] = length = 1.0
        return (vector / numpy.float32(length)).astype("<f4").tobytes()


def _pieces(text: str) -> list[str]:
    """Words; of scripts that are written without blanks, pairs of letters."""
    pieces: list[str] = []
    for word in _WORD.findall(text):
        if ord(word[0]) < 0x2E80 or len(word) < 3:
            pieces.append(word)
        else:
            pieces += [word[at : at + 2] for at in range(len(word) - 1)]
    return pieces
