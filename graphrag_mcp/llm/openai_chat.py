"""Chat and embedding models behind the OpenAI protocol, hosted or local. What a server does not take
is learned from its refusals."""

from __future__ import annotations

import array
import asyncio
import base64
import logging
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from functools import partial
from typing import Any, TypeVar

from graphrag_mcp.errors import ModelError
from graphrag_mcp.llm.protocols import Embedded, Message, Reply, Usage
from graphrag_mcp.llm.provider import Again, Refusal
from graphrag_mcp.llm.replies import THOUGHTS, bounded, without_thoughts
from graphrag_mcp.llm.transport import Pace, Server, Whole
from graphrag_mcp.settings import Settings
from graphrag_mcp.text.tokens import count_tokens

T = TypeVar("T")
# One thing under two names. Few servers know both; the provider's own models want the new one.
LENGTHS = ("max_tokens", "max_completion_tokens")
FORMATS = ("json_schema", "json_object")  # ways of asking for JSON, the stricter first
FINISH = {"max_tokens": "length", "eos": "stop", "end_turn": "stop", "stop_sequence": "stop"}
MOST_USED = 10**9  # tokens of one call; more is no figure, and no table could hold the sum
ENDLESS = 400_000  # characters after which a streamed reply is a model going round in circles
_TOO_MUCH = re.compile(r"\d{4}|too (large|big|high)|exceed|maximum context", re.IGNORECASE)
_ALOUD = re.compile(r"reason|think|redacted")  # types of parts that are no answer

log = logging.getLogger(__name__)


class Dialect:
    """What a server takes of a request. A field that it names in a refusal is left out. What is left
    out of the request that works is not sent again. `fixed`: what the settings leave no choice
    about."""

    def __init__(self, server: Server, name: str, fixed: Sequence[str] = ()) -> None:
        self._server, self._name, self._fixed = server, name, frozenset(fixed)
        self._refused: set[str] = set()

    async def call(
        self,
        build: Callable[[set[str]], dict[str, Any]],
        attempt: Callable[[dict[str, Any], asyncio.Timeout], Awaitable[T]],
        tokens: int,
    ) -> T:
        """What `attempt` makes of the body that `build` gives, without what it is told."""
        left_out: set[str] = set()
        this_once: set[str] = set()
        while True:
            body = build(self._refused | left_out | this_once)
            try:
                result = await self._server.call(partial(attempt, body), tokens)
            except Refusal as error:
                refusal = error
            else:
                for name in sorted(left_out - self._refused):
                    log.warning("%s does not take %r; it is no longer sent", self._name, name)
                self._refused |= left_out
                return result
            parts = (pair for pair in _parts(body).items() if pair[0] not in self._fixed)
            part = next((part for part, name in parts if refusal.names(name)), "")
            lengths = set(LENGTHS).intersection(body)
            # that a prompt and its reply pass the context is often said without the field
            about_length = part in lengths or lengths and not part
            if about_length and _TOO_MUCH.search(refusal.message):
                this_once |= set(LENGTHS)
            elif not part:
                raise self._server.provider.refused(refusal)
            else:
                left_out.add(part)


def _parts(body: Mapping[str, Any]) -> dict[str, str]:
    """What may be left out of a request, and the field that it stands in."""
    fields = [name for name in body if name not in ("model", "messages", "input")]
    forms = body.get("response_format", {})
    return {forms.get("type", name) if name == "response_format" else name: name for name in fields}


class OpenAIChat:
    """A chat model. `complete` is described in `ChatModel`."""

    def __init__(self, settings: Settings, environ: Mapping[str, str], pace: Pace) -> None:
        self.name = settings.chat_model
        ours = ("model", "messages", "stream")
        options = settings.chat_options.items()
        self._options = {name: value for name, value in options if name not in ours}
        self._formats, fixed = FORMATS, FORMATS
        if settings.json_mode == "auto":
            fixed = ()
        elif settings.json_mode != "schema":
            self._formats = FORMATS[1:] if settings.json_mode == "object" else ()
        self._bounds_replies = settings.bounded_replies
        self._lengths = LENGTHS if settings.base_url else LENGTHS[::-1]
        self._pace = pace
        what = f"the chat model {self.name!r}"
        self._server = Server(what, "chat_model", settings.base_url, environ, settings, pace)
        self._dialect = Dialect(self._server, self.name, fixed)

    def warm(self) -> None:
        """Make the client; what is wrong with its settings the first call says."""
        with suppress(ModelError):
            self._server.client()

    async def close(self) -> None:
        await self._server.close()

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, Any] | None = None,
        max_output: int = 0,
        on_text: Callable[[str], None] | None = None,
    ) -> Reply:
        prompt = [{"role": message.role, "content": _content(message)} for message in messages]
        body = {"model": self.name, "messages": prompt}
        preview = Preview(on_text) if on_text else None

        def build(without: set[str]) -> dict[str, Any]:
            optional = dict(self._options)
            form = next((format for format in self._formats if format not in without), "") if schema else ""
            if form:
                shape = bounded(schema) if self._bounds_replies else schema
                optional["response_format"] = _format(form, shape or {})
            length = next((name for name in self._lengths if name not in without), "")
            length = next((name for name in LENGTHS if name in optional), length)
            limit = optional.get(length)
            if max_output and length and not (type(limit) is int and 0 < limit < max_output):
                optional[length] = max_output
            if preview is not None and "stream" not in without:
                optional |= {"stream": True, "stream_options": {"include_usage": True}}
            named = _parts(optional).items()
            return body | {name: optional[name] for part, name in named if part not in without}

        tokens = 0
        if self._pace.counts_tokens:
            tokens = _about([message.content for message in messages])
        reply = await self._dialect.call(build, partial(self._attempt, preview), tokens)
        self._pace.correct(tokens, reply.usage.prompt_tokens + reply.usage.output_tokens)
        return reply

    async def _attempt(self, preview: Preview | None, body: dict[str, Any], alarm: asyncio.Timeout) -> Reply:
        # What has been shown cannot be taken back, and some servers ignore `stream`: after a stream
        # that broke off, the reply comes in one piece.
        if preview is not None and preview.failed:
            body = {name: value for name, value in body.items() if not name.startswith("stream")}
        if "stream" in body and preview is not None:
            try:
                return await self._streamed(body, preview, alarm)
            except Whole as reply:
                data = reply.data
        else:
            data = await self._server.post("/chat/completions", body)
        if "choices" not in data:
            raise Again("a reply without choices", self._server.provider.advice())
        choice = self._choice(data, body)
        message = choice.get("message")
        message = message if isinstance(message, dict) else {}
        answer = _text_of(message.get("content") or choice.get("text"))
        if message.get("refusal") and not answer:
            choice = {"finish_reason": "refusal"}
        reply = self._made(answer, _thinking_of(message), choice, data, body)
        if preview is not None and not preview.shown:
            preview.feed(reply.text)
        return reply

    async def _streamed(self, body: dict[str, Any], preview: Preview, alarm: asyncio.Timeout) -> Reply:
        loop = asyncio.get_running_loop()
        silence = (alarm.when() or loop.time()) - loop.time()
        ends, last, answer, thought, length = dict[str, Any](), dict[str, Any](), list[str](), "", 0
        preview.restart()
        async with aclosing(self._server.stream(body)) as events:
            async for data in events:
                choice = self._choice(data, body)
                alarm.reschedule(loop.time() + silence)  # a long answer is no silence
                ends |= {name: data[name] for name in ("usage", "model") if data.get(name)}
                last = choice if choice.get("finish_reason") else last
                delta = choice.get("delta")
                delta = delta if isinstance(delta, dict) else {}
                thought += _thinking_of(delta)
                if piece := _text_of(delta.get("content")):
                    answer.append(piece)
                    preview.feed(piece)
                    length += len(piece)
                if length > ENDLESS:
                    last = {"finish_reason": "length"}
                    break
        if not last:
            preview.failed = True
            raise Again("the reply broke off")
        return self._made("".join(answer), thought, last, ends, body)

    def _made(self, answer: str, thought: str, choice: Mapping[str, Any], data: Mapping, body: Mapping) -> Reply:
        """The reply, with the figures and the name that stand beside it in `data`."""
        answer = self._server.provider.hidden(answer)
        text = without_thoughts(answer)
        finish = str(choice.get("finish_reason") or "stop") if choice else "empty"
        if answer.strip() and not text.strip():
            finish = "length"  # cut off while it was thinking
        prompts = [_text_of(message["content"]) for message in body["messages"]]
        usage = _usage(data.get("usage"), prompts, answer + thought)
        model = data.get("model")
        model = self._server.provider.hidden(model) if isinstance(model, str) else ""
        return Reply(text, usage, FINISH.get(finish, finish), model)

    def _choice(self, data: Mapping[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
        """The first choice, {} without one. A gateway whose provider fails halfway says so in it,
        beside the half that came."""
        choices = data.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else {}
        choice = choice if isinstance(choice, dict) else {}
        self._server.provider.check(choice, body)
        if choice.get("finish_reason") in ("error", "abort"):
            raise Again("the reply broke off")
        return choice


class Preview:
    """Gives the pieces of a streamed reply on as they come, without the thinking before it."""

    def __init__(self, give: Callable[[str], None]) -> None:
        self._give = give
        self.shown = self.failed = False  # something was shown; a stream broke off
        self.restart()

    def restart(self) -> None:
        self._unread, self._answers = "", False  # not yet known to be answer or thinking

    def feed(self, piece: str) -> None:
        if not self._answers:
            self._unread += piece
            piece = without_thoughts(self._unread).lstrip()
            if any(tag.startswith(piece.lower()) for tag in THOUGHTS):  # of nothing as well
                return
            self._answers = True
        if piece:
            self.shown = True
            self._give(piece)


class OpenAIEmbedder:
    """An embedding model. Its first vectors settle the dimension."""

    def __init__(self, settings: Settings, environ: Mapping[str, str], pace: Pace) -> None:
        self.name = settings.embedding_model
        self._wanted = self._dimension = settings.embedding_dimensions
        self._pace = pace
        url = settings.embedding_base_url or settings.base_url
        what = f"the embedding model {self.name!r}"
        self._server = Server(what, "embedding_model", url, environ, settings, pace)
        self._dialect = Dialect(self._server, self.name, ("dimensions",))

    async def close(self) -> None:
        await self._server.close()

    async def embed(self, texts: Sequence[str]) -> Embedded:
        if not texts:
            return Embedded((), self._dimension, Usage())
        inputs = [_sendable(text) or " " for text in texts]  # "" is refused by many
        body: dict[str, Any] = {"model": self.name, "input": inputs}
        body |= {"dimensions": self._wanted} if self._wanted else {}

        def build(without: set[str]) -> dict[str, Any]:
            return body if "encoding_format" in without else {**body, "encoding_format": "base64"}

        tokens = _about(texts) if self._pace.counts_tokens else 0
        reply = await self._dialect.call(build, self._attempt, tokens)
        self._pace.correct(tokens, reply.usage.prompt_tokens)
        return reply

    async def _attempt(self, body: dict[str, Any], alarm: asyncio.Timeout) -> Embedded:
        data = await self._server.post("/embeddings", body)
        if not isinstance(data.get("data"), list):
            raise Again("a reply without vectors")
        vectors = self._vectors(data["data"], len(body["input"]))
        self._dimension = len(vectors[0]) // 4
        return Embedded(vectors, self._dimension, _usage(data.get("usage"), body["input"], ""))

    def _vectors(self, items: list[Any], count: int) -> tuple[bytes, ...]:
        """In the order of the texts, whatever that of the reply; of one dimension, all finite."""
        import numpy

        if len(items) != count or not all(isinstance(item, dict) for item in items):
            raise self._useless(f"{len(items)} vectors for {count} texts")
        places = [item.get("index", at) for at, item in enumerate(items)]
        if not all(type(at) is int for at in places) or sorted(places) != list(range(count)):
            raise self._useless("vectors that are numbered wrongly")
        by_place = dict(zip(places, items, strict=True))
        vectors = tuple(self._vector(by_place[at].get("embedding")) for at in range(count))
        if not numpy.isfinite(numpy.frombuffer(b"".join(vectors), "f4")).all():
            raise self._useless("numbers that are not finite")
        dimensions = {len(vector) // 4 for vector in vectors} | ({self._dimension} - {0})
        if len(dimensions) > 1 or 0 in dimensions:
            sizes = " and ".join(map(str, sorted(dimensions)))
            what = f"vectors of {sizes} numbers where one size is needed"
            if self._wanted:
                right = min(map(len, vectors)) // 4
                raise self._useless(what, f"Set embedding_dimensions to {right} or 0", final=True)
            raise self._useless(what, divisible=False)
        return vectors

    def _vector(self, numbers: Any) -> bytes:
        try:
            written = isinstance(numbers, str)
            vector = base64.b64decode(numbers, validate=True) if written else array.array("f", numbers)
            return array.array("f", vector).tobytes()  # ValueError: half a number
        except (TypeError, ValueError, OverflowError):
            raise self._useless("something that is no vector") from None

    def _useless(self, what: str, move: str = "", *, final: bool = False, divisible: bool = True) -> ModelError:
        usual = "Use another embedding model or server; what needs no vectors works without them"
        move = move or usual
        what = f"the embedding model {self.name!r} gave {what}"
        return ModelError(what, move, final=final, divisible=divisible and not final)


def _sendable(text: str) -> str:
    """A text as it can be sent: without halves of characters, which a question may hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _content(message: Message) -> str | list[dict[str, Any]]:
    """The text of a message; with pictures a list of parts."""
    text = _sendable(message.content)
    if not message.images:
        return text
    pictures = [{"type": "image_url", "image_url": {"url": url}} for url in message.images]
    return [{"type": "text", "text": text}, *pictures]


def _format(form: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    if form != "json_schema":
        return {"type": form}
    title = re.sub(r"\W", "_", str(schema.get("title", "reply")), flags=re.ASCII)[:64] or "reply"
    return {"type": form, form: {"name": title, "schema": dict(schema), "strict": False}}


def _text_of(content: Any) -> str:
    """Text as a string or as a list of parts, of which the thinking ones are left out."""
    if isinstance(content, str):
        return content
    parts = []
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and not _ALOUD.match(str(part.get("type"))):
            part = part.get("text")
        if isinstance(part, str):
            parts.append(part)
    return "".join(parts)


def _thinking_of(message: Mapping[str, Any]) -> str:
    return _text_of(message.get("reasoning_content") or message.get("reasoning"))


def _about(texts: Sequence[str]) -> int:
    """Rather too many tokens, found cheaply: they stand in until the provider gives figures."""
    return sum(len(text.encode("utf-8", "replace")) for text in texts) // 3


def _usage(usage: Any, prompts: Sequence[str], output: str) -> Usage:
    """The provider's figures; ours, marked as estimated, where it gives none that can be right."""
    figures = usage if isinstance(usage, dict) else {}
    prompt = figures.get("prompt_tokens")
    spoken = figures.get("completion_tokens", 0 if not output else None)
    if type(prompt) is int and type(spoken) is int and (spoken or not output):
        if 0 < prompt < MOST_USED and 0 <= spoken < MOST_USED:
            return Usage(prompt, spoken)
    counted = sum(map(count_tokens, prompts))
    return Usage(counted, count_tokens(output) if output else 0, estimated=True)
