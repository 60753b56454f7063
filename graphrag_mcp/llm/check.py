"""A check of the configured models: what works, what it costs, and which settings to write.

Five calls: a plain reply, a reply as JSON by a schema, a reply in pieces, a prompt as long as that
of a report, and one embedding. Where no JSON came, a sixth asks for it without response_format. Each
is a call as indexing makes it, through the same client."""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pydantic import BaseModel

from graphrag_mcp.errors import BadInput, ModelError
from graphrag_mcp.llm import replies
from graphrag_mcp.llm.openai_chat import LENGTHS
from graphrag_mcp.llm.protocols import ChatModel, EmbeddingModel, Message, Reply, Usage
from graphrag_mcp.settings import Settings
from graphrag_mcp.text.terms import counted
from graphrag_mcp.text.tokens import count_tokens

# Tokens that a reply of the check may have: a model that reasons needs hundreds before its first word,
# and one that repeats itself is stopped.
OUTPUT = 2_000
FIRST = "plain reply"
Complete = Callable[..., Awaitable[Reply]]  # ChatModel.complete, of replies that may be so long


class Named(BaseModel):
    """The form of a reply."""

    names: list[str]


SCHEMA = replies.schema_of(Named)
FACT = "The lighthouse keeper is called Marit Fenn."
FILLER = "The ferry left the harbour at noon and came back in the evening with the post. "
# Tokens of prompts and replies for 1 MB of text: 442 news articles, see docs/models.md.
LIGHT, FULL = (340_000, 130_000), (1_280_000, 690_000)
SLOW = 0.5  # share of `timeout_seconds` from which on a call is near to being given up
# What a name may have behind that of its model. A date has four digits or more: 2024-08-06, 20241022,
# 2503, 08-2024.
_RELEASE = re.compile(r"[-@](?:latest|\d\d(?:-?\d\d){1,3})\Z")
PATIENT = 38.0  # seconds for which a search waits for an answer, see tools/search.py
MISCOUNT = 2.0  # between our counter and any vocabulary lie 20 % on English text


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the check. `works` says whether indexing can rely on it; `sentence` what came.
    `finish` and `model` are those of the reply; `objection`: the server refused just this request."""

    name: str
    works: bool
    sentence: str
    seconds: float = 0.0
    usage: Usage = Usage()
    finish: str = ""
    model: str = ""
    objection: bool = False

    @property
    def replied(self) -> bool:
        return bool(self.finish)


@dataclass(slots=True)
class ModelCheck:
    """The calls of a check, and the settings that would make it better, with their reasons."""

    chat_model: str
    embedding_model: str
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


async def check_models(
    settings: Settings, chat: ChatModel | None, embedder: EmbeddingModel | None
) -> ModelCheck:
    """Ask the models and judge what they reply. BadInput where none is configured."""
    if chat is None and embedder is None:
        move = "Set GRAPHRAG_MCP_CHAT_MODEL, and OPENAI_BASE_URL for a server of your own"
        raise BadInput("no model is configured", move)
    check = ModelCheck(settings.chat_model, settings.embedding_model)
    if chat is not None:
        most = 0 if any(name in settings.chat_options for name in LENGTHS) else OUTPUT
        await _check_chat(check, settings, partial(chat.complete, max_output=most))
    if embedder is not None:
        check.calls.append(await _embedding(embedder))
    _note_cost(check, settings)
    return check


async def _check_chat(check: ModelCheck, settings: Settings, chat: Complete) -> None:
    plain = await _plain(chat)
    check.calls.append(plain)
    if not plain.works:  # the other calls would fail in the same way
        _advise_time(check, settings)
        return
    structured = await _structured(chat, "reply as JSON", SCHEMA)
    check.calls.append(structured)
    if not structured.works:
        await _check_form(check, settings, chat, structured)
    pieces = await _in_pieces(chat, settings.timeout_seconds)
    check.calls.append(pieces)
    if not pieces.works and pieces.seconds < settings.timeout_seconds:
        check.notes.append(
            "Answers will come in one piece: a stream that breaks off is asked for once more without one, which"
            " costs a second call. A proxy before the server may hold back or cut streams."
        )
    long = await _long(chat, settings.report_tokens)
    limit = _limit(settings)
    small = _context_small(long, check.calls, limit)
    _note_ends(check, settings, limit, check.calls if small else [*check.calls, long])
    check.calls.append(long)
    if small:
        check.advice["preset"] = '"small"'
        check.notes.append(
            "Give the server a context of 16,000 tokens or more, or write the settings below."
        )
    _advise_time(check, settings)
    _note_model(check)
    _note_count(check, plain, long, settings.report_tokens, limit)


async def _check_form(
    check: ModelCheck, settings: Settings, chat: Complete, structured: Call
) -> None:
    """What to set where no JSON came. That no format is better than one is tried before it is said."""
    if settings.json_mode in ("schema", "object"):
        check.advice["json_mode"] = '"auto"'  # the other forms were not tried
    elif settings.json_mode == "auto":
        bare = await _structured(chat, "JSON without response_format", None)
        check.calls.append(bare)
        if bare.works:
            check.advice["json_mode"] = '"none"'
            return
    if structured.replied and structured.finish != "length":
        check.notes.append(
            "The reply kept to no format: the server, or a proxy before it, drops response_format, or the model"
            " is too weak. Ask the server without that proxy, or use a model that writes the JSON of a prompt."
        )


def _advise_time(check: ModelCheck, settings: Settings) -> None:
    """What the times of calls tell: of those with a reply, and of those given up at the limit. Another
    call that failed took as long as its failure."""
    limit = settings.timeout_seconds
    replied = [call.seconds for call in check.calls if call.replied]
    given_up = [call.seconds for call in check.calls if not call.replied and call.seconds >= limit]
    slowest = max(replied + given_up, default=0.0)
    if slowest > SLOW * limit:
        check.advice["timeout_seconds"] = str(math.ceil(4 * slowest))
    if min(replied, default=0.0) > PATIENT:
        check.notes.append(
            f"Each call takes longer than the {PATIENT:g} seconds for which a search waits for an answer: it gives"
            " the context, and the answer when it is called again."
        )


def _limit(settings: Settings) -> float:
    """Tokens that a reply of the check may have; infinity where chat_options lift the limit."""
    limits = [settings.chat_options[name] for name in LENGTHS if name in settings.chat_options]
    if not limits:
        return OUTPUT
    return limits[0] if isinstance(limits[0], int) and limits[0] > 0 else math.inf


def _cut_early(call: Call, limit: float) -> bool:
    """Did the reply end at a length that the server chose, before the limit of the request?"""
    most = limit / MISCOUNT if call.usage.estimated else limit
    return call.finish == "length" and call.usage.output_tokens < most


def _context_small(long: Call, others: Sequence[Call], limit: float) -> bool:
    """Does the long prompt fail for want of context? Where its reply was cut early, a limit of the
    server on each reply would have cut another as early."""
    if long.works or long.finish != "length":
        return not long.works and (long.objection or long.replied)
    as_early = MISCOUNT * long.usage.output_tokens
    limited = any(c.finish == "length" and c.usage.output_tokens <= as_early for c in others)
    return _cut_early(long, limit) and not limited


def _note_ends(check: ModelCheck, settings: Settings, limit: float, calls: Sequence[Call]) -> None:
    """Replies that came to the limit of their length."""
    cut = [call for call in calls if call.finish == "length"]
    if not cut:
        return
    longest = max(cut, key=lambda call: call.usage.output_tokens)
    if _cut_early(longest, limit):
        about = "about " if longest.usage.estimated else ""
        note = (
            f"The server cut a reply after {about}{counted(longest.usage.output_tokens, 'tokens')}, before the limit"
            " of the request: it limits replies, its context is full, or it does not count reasoning. Reports need"
            f" {OUTPUT:,}."
        )
    elif any(name in settings.chat_options for name in LENGTHS):
        note = f"A reply was cut at the {limit:,} tokens that chat_options allows. Reports need {OUTPUT:,}."
    else:
        note = (
            f"A reply did not end within {OUTPUT:,} tokens: the model repeats itself, or reasons for long. Set"
            " max_tokens in chat_options, so that no such reply costs more."
        )
    check.notes.append(note)


def _note_model(check: ModelCheck) -> None:
    for name in dict.fromkeys(call.model for call in check.calls if call.model):
        if not _same_model(check.chat_model, name):
            check.notes.append(
                f"The server names its model {name[:80]!r}. If that is not the model meant, correct chat_model:"
                " another model has other prices and another context."
            )


def _same_model(configured: str, other: str) -> bool:
    """Names of one model differ by a path before them, by `.gguf`, by `-latest` or a date at their end,
    and by a tag behind `:`, which only one of them has."""
    files = (name.casefold().replace("\\", "/").rpartition("/")[2] for name in (configured, other))
    names = (_RELEASE.sub("", file.removesuffix(".gguf")) for file in files)
    short, long = sorted(names, key=len)
    return long == short or long.startswith(f"{short}:")


def _note_count(check: ModelCheck, plain: Call, long: Call, sent: int, limit: float) -> None:
    """What the server counts, beside what was sent and what was allowed."""
    if plain.usage.estimated:
        check.notes.append(
            "The server does not count tokens, so limits and costs are estimates by our own counter."
        )
        return
    notes: list[str] = []
    prompt = long.usage.prompt_tokens
    if long.replied and not sent / MISCOUNT < prompt < sent * MISCOUNT:
        notes.append(
            f"The server counts {counted(prompt, 'tokens')} for the prompt of about {sent:,}: it counts in another way,"
            " adds to the prompt or cuts it."
        )
    most = max(call.usage.output_tokens for call in check.calls)
    if most > MISCOUNT * limit:
        notes.append(f"The server counts {most:,} tokens for a reply that may have {limit:,}.")
    if notes:
        notes.append(
            "Costs, max_tokens and max_cost of a run follow its figures; max_calls does not."
        )
    check.notes += notes


async def _plain(chat: Complete) -> Call:
    def judged(reply: Reply) -> tuple[bool, str]:
        if reply.text.strip():
            return True, "it replies"
        spent = ": its tokens were perhaps spent on reasoning" if reply.finish == "length" else ""
        return False, f"the reply was empty ({reply.finish}){spent}"

    return await _asked(chat, FIRST, "Reply with the one word: ready", judged)


async def _structured(chat: Complete, name: str, schema: Mapping[str, Any] | None) -> Call:
    prompt = (
        "Which people does this text name? Reply with a JSON object of the form"
        ' {"names": ["..."]} and nothing else.\n\n<text>\nAnna Berg met Tom Hill in Oslo.\n</text>'
    )

    def judged(reply: Reply) -> tuple[bool, str]:
        try:
            names = replies.validated(Named, reply.text).names
        except replies.BadReply:
            return False, f"the reply is no JSON of that form: {reply.text[:80]!r}"
        right = [name for name in names if name in ("Anna Berg", "Tom Hill")]
        return True, f"JSON can be read; {len(right)} of 2 names are right"

    return await _asked(chat, name, prompt, judged, schema=schema)


async def _in_pieces(chat: Complete, limit: float) -> Call:
    """A reply in pieces has no time-out as a whole, since a long answer is no silence; this one of ten
    words has `limit` seconds."""
    pieces: list[str] = []

    def judged(reply: Reply) -> tuple[bool, str]:
        if len(pieces) > 1:
            return True, f"it came in {len(pieces)} pieces"
        return True, "it comes in one piece, so answers appear all at once"

    prompt = "Count from one to ten in words, on one line."
    name, began = "reply in pieces", time.monotonic()
    try:
        async with asyncio.timeout(limit):
            return await _asked(chat, name, prompt, judged, on_text=pieces.append)
    except TimeoutError:
        sentence = f"of ten words {len(pieces)} pieces came in {limit:g} seconds"
        return Call(name, False, sentence, time.monotonic() - began)


async def _long(chat: Complete, tokens: int) -> Call:
    """Does the model read the beginning of a prompt as long as that of a report?"""
    filler = FILLER * (tokens // count_tokens(FILLER))
    prompt = f"<text>\n{FACT} {filler}\n</text>\n\nWhat is the lighthouse keeper called? Reply with the name."

    def judged(reply: Reply) -> tuple[bool, str]:
        if "Fenn" in reply.text:
            return True, f"a prompt of {tokens:,} tokens is read from its beginning"
        if reply.finish == "length":
            return False, f"to a prompt of {tokens:,} tokens no answer came: {reply.text[:60]!r}"
        return False, (
            f"of a prompt of {tokens:,} tokens the beginning was not read, or the server cut it: "
            f"{reply.text[:60]!r}"
        )

    return await _asked(chat, "long prompt", prompt, judged)


async def _embedding(embedder: EmbeddingModel) -> Call:
    began = time.monotonic()
    try:
        response = await embedder.embed(["Anna Berg met Tom Hill in Oslo."])
    except ModelError as error:
        return Call("embedding", False, str(error), time.monotonic() - began)
    sentence = f"vectors of {response.dimension} numbers"
    return Call("embedding", True, sentence, time.monotonic() - began, response.usage)


async def _asked(
    chat: Complete,
    name: str,
    prompt: str,
    judged: Callable[[Reply], tuple[bool, str]],
    *,
    schema: Mapping[str, Any] | None = None,
    on_text: Callable[[str], None] | None = None,
) -> Call:
    began = time.monotonic()
    messages = [Message("user", prompt)]
    try:
        reply = await chat(messages, schema=schema, on_text=on_text)
    except ModelError as error:
        # A plain reply came from there: advice on address and key is about that first call alone.
        sentence = str(error) if name == FIRST else error.what
        seconds = time.monotonic() - began
        return Call(name, False, sentence, seconds, objection=error.divisible)
    works, sentence = judged(reply)
    seconds = time.monotonic() - began
    return Call(name, works, sentence, seconds, reply.usage, reply.finish, reply.model)


def _note_cost(check: ModelCheck, settings: Settings) -> None:
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


async def check_settings(settings: Settings, environ: Mapping[str, str]) -> ModelCheck:
    """The check of the models that the settings name. Failed calls are not tried again, so that a
    wrong address is told at once."""
    from graphrag_mcp.llm import protocols
    from graphrag_mcp.llm.openai_chat import OpenAIChat, OpenAIEmbedder
    from graphrag_mcp.llm.transport import Pace

    once = replace(settings, max_retries=0)
    pace = Pace()
    chat = OpenAIChat(once, environ, pace) if once.chat_model else None
    embedder: EmbeddingModel | None = None
    if once.embedding_model.startswith(protocols.LOCAL):
        from graphrag_mcp.llm.local import LocalEmbedder

        embedder = LocalEmbedder(once.embedding_model, once.embedding_dimensions)
    elif once.embedding_model:
        embedder = OpenAIEmbedder(once, environ, pace)
    try:
        return await check_models(once, chat, embedder)
    finally:
        for model in (chat, embedder):
            if model is not None:
                await model.close()
