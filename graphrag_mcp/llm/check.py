"""A check of the configured models: what works, what it costs, and which settings to write.

Five calls: a plain reply, a reply as JSON by a schema, a reply in pieces, a prompt as long as that
of a report, and one embedding. Where no JSON came, a sixth asks for it without response_format. Each
is a call as indexing makes it, through the same client."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel

from graphrag_mcp.errors import BadInput, ModelError
from graphrag_mcp.llm import protocols, replies
from graphrag_mcp.llm.openai_chat import LENGTHS, OpenAIChat, OpenAIEmbedder
from graphrag_mcp.llm.protocols import ChatModel, EmbeddingModel, Message, Reply, Usage
from graphrag_mcp.llm.transport import Pace
from graphrag_mcp.settings import Settings
from graphrag_mcp.text.tokens import count_tokens

# Tokens that a reply of the check may have: a model that reasons needs hundreds before its first word,
# and one that repeats itself is stopped.
OUTPUT = 2_000
FACT = "The lighthouse keeper is called Marit Fenn."
FILLER = "The ferry left the harbour at noon and came back in the evening with the post. "
# Tokens of prompts and replies for 1 MB of text: 442 news articles, see docs/models.md.
LIGHT, FULL = (340_000, 130_000), (1_280_000, 690_000)
SLOW = 0.5  # share of `timeout_seconds` from which on a call is near to being given up


class Named(BaseModel):
    """The form of a reply."""

    names: list[str]


SCHEMA = replies.schema_of(Named)


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the check. `works` says whether indexing can rely on it; `sentence` what came;
    `finish` is that of the reply, "" where none came."""

    name: str
    works: bool
    sentence: str
    seconds: float = 0.0
    usage: Usage = Usage()
    finish: str = ""


@dataclass(slots=True)
class ModelCheck:
    """The calls of a check, and the settings that would make it better, with their reasons."""

    calls: list[Call] = field(default_factory=list)
    advice: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def works(self) -> bool:
        return all(call.works for call in self.calls)

    @property
    def usage(self) -> Usage:
        """Tokens of all calls together."""
        return Usage(
            sum(call.usage.prompt_tokens for call in self.calls),
            sum(call.usage.output_tokens for call in self.calls),
            any(call.usage.estimated for call in self.calls),
        )


async def check_settings(settings: Settings, environ: Mapping[str, str]) -> ModelCheck:
    """The check of the models that the settings name; BadInput where they name none. Failed calls
    are not tried again, so that a wrong address is told at once."""
    once, pace = replace(settings, max_retries=0), Pace()
    chat = OpenAIChat(once, environ, pace) if once.chat_model else None
    embedder: EmbeddingModel | None = None
    if once.embedding_model.startswith(protocols.LOCAL):
        from graphrag_mcp.llm.local import LocalEmbedder

        embedder = LocalEmbedder(once.embedding_model, once.embedding_dimensions)
    elif once.embedding_model:
        embedder = OpenAIEmbedder(once, environ, pace)
    if chat is None and embedder is None:
        move = "Set GRAPHRAG_MCP_CHAT_MODEL, and OPENAI_BASE_URL for a server of your own"
        raise BadInput("no model is configured", move)
    check = ModelCheck()
    try:
        if chat is not None:
            await _check_chat(check, once, chat)
        if embedder is not None:
            check.calls.append(await _embedding(embedder))
    finally:
        for model in (chat, embedder):
            if model is not None:
                await model.close()
    _advise(check, once)
    return check


async def _check_chat(check: ModelCheck, settings: Settings, chat: ChatModel) -> None:
    limited = not any(name in settings.chat_options for name in LENGTHS)
    most, limit = OUTPUT if limited else 0, settings.timeout_seconds

    async def asked(
        name: str,
        prompt: str,
        judged: Callable[[Reply], tuple[bool, str]],
        schema: Mapping[str, Any] | None = None,
        on_text: Callable[[str], None] | None = None,
    ) -> Call:
        began, messages = time.monotonic(), [Message("user", prompt)]
        try:
            # A reply in pieces has no time-out of its own, since a long answer is no silence.
            async with asyncio.timeout(limit if on_text else None):
                reply = await chat.complete(messages, schema=schema, max_output=most, on_text=on_text)
        except ModelError as error:
            # A plain reply came from there: advice on address and key is about that first call alone.
            sentence = error.what if check.calls else str(error)
            call = Call(name, False, sentence, time.monotonic() - began)
        except TimeoutError:
            sentence = f"it had not ended after {limit:g} seconds"
            call = Call(name, False, sentence, time.monotonic() - began)
        else:
            seconds = time.monotonic() - began
            call = Call(name, *judged(reply), seconds, reply.usage, reply.finish)
        check.calls.append(call)
        return call

    plain = await asked("plain reply", "Reply with the one word: ready", _has_text)
    if not plain.works:  # the other calls would fail in the same way
        return
    prompt = (
        "Which people does this text name? Reply with a JSON object of the form"
        ' {"names": ["..."]} and nothing else.\n\n<text>\nAnna Berg met Tom Hill in Oslo.\n</text>'
    )
    structured = await asked("reply as JSON", prompt, _has_names, SCHEMA)
    if not structured.works and settings.json_mode == "auto":
        bare = await asked("JSON without response_format", prompt, _has_names)
        if bare.works:
            check.advice["json_mode"] = '"none"'
        elif structured.finish:
            check.notes.append(
                "The server, or a proxy before it, drops response_format, or the model is too weak: use another one."
            )
    elif not structured.works and settings.json_mode != "none":
        check.advice["json_mode"] = '"auto"'  # the other forms were not tried
    pieces: list[str] = []

    def in_pieces(_: Reply) -> tuple[bool, str]:
        if len(pieces) > 1:
            return True, f"it came in {len(pieces)} pieces"
        return True, "it comes in one piece, so answers appear all at once"

    prompt = "Count from one to ten in words, on one line."
    await asked("reply in pieces", prompt, in_pieces, on_text=pieces.append)
    tokens = settings.report_tokens
    filler = FILLER * (tokens // count_tokens(FILLER))
    prompt = f"<text>\n{FACT} {filler}\n</text>\n\nWhat is the lighthouse keeper called? Reply with the name."

    def remembers(reply: Reply) -> tuple[bool, str]:
        if "Fenn" in reply.text:
            return True, f"a prompt of {tokens:,} tokens is read from its beginning"
        what = f"of a prompt of {tokens:,} tokens the beginning was not read, or the server cut it"
        return False, f"{what}: {reply.text[:60]!r}"

    if not (await asked("long prompt", prompt, remembers)).works:
        check.advice["preset"] = '"small"'
        check.notes.append("Give the server a context of 16,000 tokens or more, or write the settings below.")


def _has_text(reply: Reply) -> tuple[bool, str]:
    if reply.text.strip():
        return True, "it replies"
    spent = ": its tokens were perhaps spent on reasoning" if reply.finish == "length" else ""
    return False, f"the reply was empty ({reply.finish}){spent}"


def _has_names(reply: Reply) -> tuple[bool, str]:
    try:
        names = replies.validated(Named, reply.text).names
    except replies.BadReply:
        return False, f"the reply is no JSON of that form: {reply.text[:80]!r}"
    right = [name for name in names if name in ("Anna Berg", "Tom Hill")]
    return True, f"JSON can be read; {len(right)} of 2 names are right"


async def _embedding(embedder: EmbeddingModel) -> Call:
    began = time.monotonic()
    try:
        response = await embedder.embed(["Anna Berg met Tom Hill in Oslo."])
    except ModelError as error:
        return Call("embedding", False, str(error), time.monotonic() - began)
    sentence = f"vectors of {response.dimension} numbers"
    return Call("embedding", True, sentence, time.monotonic() - began, response.usage)


def _advise(check: ModelCheck, settings: Settings) -> None:
    """What the calls together tell: time, lengths of replies, cost."""
    slowest = max(call.seconds for call in check.calls)
    if slowest > SLOW * settings.timeout_seconds:
        check.advice["timeout_seconds"] = str(math.ceil(4 * slowest))
    if any(call.finish == "length" for call in check.calls):
        check.notes.append(
            f"A reply was cut off. Reports need {OUTPUT:,} tokens: look for a limit of the server or in chat_options, "
            "a small context, or a model that repeats itself."
        )
    if check.calls[0].usage.estimated:
        check.notes.append("The server does not count tokens, so limits and costs are estimates by our own counter.")
    if settings.price_prompt or settings.price_output:
        light, full = (
            (prompt * settings.price_prompt + output * settings.price_output) / 1_000_000
            for prompt, output in (LIGHT, FULL)
        )
        check.notes.append(
            f"By the prices set, 1 MB of text costs about {light:.2f} with --method light and {full:.2f} in full."
        )
    elif settings.chat_model and not settings.base_url:
        check.notes.append("Set price_prompt and price_output to see what a run costs.")
