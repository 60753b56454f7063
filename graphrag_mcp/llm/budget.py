"""What a run may ask of models, and what it has asked."""

from __future__ import annotations

import math
import os
import tempfile
import threading
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from graphrag_mcp.llm import protocols
from graphrag_mcp.text.tokens import count_tokens

# The file of o200k_base in the cache of tiktoken.
VOCABULARY = "fb374d419588a4632f3f557e76b4b70aebbca790"
EMBEDDING = "embedding"  # the kind of a call for vectors


@dataclass(frozen=True, slots=True)
class Reserved:
    """What a call under way may need of a budget; its reply is cut after `reply` tokens, 0 for nowhere."""

    kind: str
    tokens: int
    cost: float
    reply: int


@dataclass
class Spent:
    """What was asked of models in the life of one asker. `by_stage`: the same by kind of question."""

    cost: float = 0.0
    by_stage: dict[str, Counter[str]] = field(default_factory=dict)
    over: bool = False  # a call was not made, since it might have passed a limit
    # of the calls of a kind the most tokens that a prompt had beside those counted here, and those of the
    # longest reply; and what calls under way may cost
    largest: dict[str, protocols.Usage] = field(default_factory=dict)
    reserved: list[Reserved] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def calls(self) -> int:
        return self.total("calls")

    def total(self, *names: str) -> int:
        return sum(counts[name] for counts in self.by_stage.values() for name in names)

    def called(self, kind: str) -> None:
        self.by_stage.setdefault(kind, Counter())["calls"] += 1

    def used(self, kind: str, usage: protocols.Usage, cost: float, counted: int) -> None:
        """Tokens of a reply to a question of this kind, and what it cost; `counted`: those of its prompt
        as they were counted before the call."""
        prompt, output = usage.prompt_tokens, usage.output_tokens
        self.by_stage[kind].update(prompt_tokens=prompt, output_tokens=output)
        self.cost += cost
        most = self.largest.get(kind, protocols.Usage())
        self.largest[kind] = protocols.Usage(max(prompt - counted, most.prompt_tokens), max(output, most.output_tokens))

    def record(self) -> dict[str, Any]:
        names = ("calls", "prompt_tokens", "output_tokens")
        total: dict[str, Any] = {name: self.total(name) for name in names}
        if self.cost:
            total["cost"] = round(self.cost, 6)
        by_stage = {kind: dict(counts) for kind, counts in sorted(self.by_stage.items())}
        return total | {"by_stage": by_stage}


@dataclass(frozen=True, slots=True)
class Budget:
    """Where a run stops, 0 for nowhere; prices are per million tokens. `gives_up`: also after a
    `Streak` of calls without a reply."""

    max_calls: int = 0
    max_tokens: int = 0
    max_cost: float = 0.0
    price_prompt: float = 0.0
    price_output: float = 0.0
    price_embedding: float = 0.0
    gives_up: bool = False

    @property
    def limited(self) -> bool:
        """May a run end for its limits before all is asked?"""
        return bool(self.max_calls or self.max_tokens or self.max_cost)

    @property
    def counts_tokens(self) -> bool:
        return bool(self.max_tokens or self.max_cost)

    def cost(self, kind: str, usage: protocols.Usage) -> float:
        price = self.price_embedding if kind == EMBEDDING else self.price_prompt
        return (usage.prompt_tokens * price + usage.output_tokens * self.price_output) / 1_000_000

    def allowed(self, spent: Spent, kind: str, prompt: int, cut: bool = False) -> Reserved | None:
        """What a call reserves, None where it might pass a limit. The reply may be as long as its prompt or
        the longest reply of its kind; the first of a kind, and one that was `cut` there, as long as the
        limits leave. Before the first reply of a kind only one call of the kind is under way: the model may
        think aloud, and pictures, schemas and forms of messages have tokens of their own."""
        most = spent.largest.get(kind, protocols.Usage())
        prompt += most.prompt_tokens
        first = self.counts_tokens and kind not in spent.largest
        if first and any(other.kind == kind for other in spent.reserved):
            return None
        tokens = prompt + sum(call.tokens for call in spent.reserved)
        tokens += spent.total("prompt_tokens", "output_tokens")
        cost = self.cost(kind, protocols.Usage(prompt)) + spent.cost
        cost += sum(call.cost for call in spent.reserved)
        free = self.max_tokens - tokens if self.max_tokens else math.inf
        if self.max_cost and (cost > self.max_cost or self.price_output):
            free = min(free, (self.max_cost - cost) * 1_000_000 / (self.price_output or 1))
        reply = 0 if kind == EMBEDDING or free == math.inf else max(prompt, most.output_tokens)
        if free < reply + cut or self.max_calls and spent.calls >= self.max_calls:
            return None
        reply = int(free) if reply and (cut or first) else reply
        cost = self.cost(kind, protocols.Usage(prompt, reply))
        return Reserved(kind, prompt + reply, cost, reply)


def provider_tokens(text: str) -> int:
    """Tokens that a provider counts: by tiktoken where its vocabulary is on this machine, else by
    the counter of chunks, which is never below."""
    encoding = _encoding()
    return len(encoding.encode_ordinary(text)) if encoding else count_tokens(text)


@cache
def _encoding() -> Any:
    """The tokenizer of OpenAI's models, or None: tiktoken would download a missing vocabulary."""
    usual = Path(tempfile.gettempdir(), "data-gym-cache")
    if not Path(os.environ.get("TIKTOKEN_CACHE_DIR", usual), VOCABULARY).is_file():
        return None
    import tiktoken

    return tiktoken.get_encoding("o200k_base")
