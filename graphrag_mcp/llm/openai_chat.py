"""Chat and embedding models behind the OpenAI protocol, hosted or local. What a server cannot do is
learned from its refusals; `<think>` blocks are taken out, also while text streams in."""

from __future__ import annotations

import array
import asyncio
import base64
import binascii
import json
import logging
import os
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from graphrag_mcp.errors import ModelError
from graphrag_mcp.llm.protocols import Embedded, Message, Reply, Usage
from graphrag_mcp.llm.transport import Again, Limits, Line, Refusal, Turn, Wire
from graphrag_mcp.settings import Settings
from graphrag_mcp.text.tokens import count_tokens

# the first line of a stream, whatever its type says
EVENT = re.compile(rb"\s*(?:data|event|id|retry)?:")
_ALOUD = re.compile(r"reason|think|redacted")  # types of parts that are no answer


def sendable(text: str) -> str:
    """A text as it can be sent: without halves of characters, which a question typed in another
    encoding may hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def parsed(body: bytes) -> dict[str, Any]:
    """The JSON object that a body is; raises Again for anything else."""
    if not body.strip():
        raise Again("an empty reply")
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        page = body.lstrip().startswith(b"<")
        raise Again(
            "a web page instead of a reply" if page else "a reply that is no JSON"
        ) from None
    if not isinstance(data, dict):
        raise Again("a reply that is no JSON object")
    return data


def error_in(data: Mapping[str, Any]) -> tuple[int, Any] | None:
    """Some servers answer 200 and put the error inside: its status and what it says."""
    error = data.get("error")
    if not error:
        return None
    code = error.get("code", error.get("status")) if isinstance(error, dict) else None
    if isinstance(code, str) and code.isdigit():
        code = int(code)
    if isinstance(code, int) and 400 <= code < 600:
        return code, error
    return (404 if "unexpected endpoint" in json.dumps(error).lower() else 500), error


def content(said: Any) -> str:
    """Text as a string or as a list of parts, of which the thinking ones are left out."""
    if isinstance(said, str):
        return said
    if not isinstance(said, list):
        return ""
    spoken = (
        part
        for part in said
        if not (isinstance(part, dict) and _ALOUD.match(str(part.get("type"))))
    )
    parts = (
        part if isinstance(part, str) else part.get("text")
        for part in spoken
        if isinstance(part, str | dict)
    )
    return "".join(part for part in parts if isinstance(part, str))


async def in_one(body: bytes) -> AsyncIterator[bytes]:
    yield body


async def events(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The data of server-sent events. Lines end at line feeds alone: JSON may hold what else ends
    lines in Unicode."""
    rest, first = b"", True
    async for chunk in pieces:
        if first:
            chunk, first = chunk.removeprefix(b"\xef\xbb\xbf"), False
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if (
                line.startswith(b"data:") and line[5:].strip()
            ):  # one without data only keeps the line open
                yield line[5:].strip()
    if rest.startswith(b"data:") and rest[5:].strip():
        yield rest[5:].strip()


_TAG = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_BEGUN = re.compile(r"<(?:/?(?:t(?:h(?:i(?:n(?:k(?:i(?:ng?)?)?)?)?)?)?)?)?$", re.IGNORECASE)
_LONGEST = len("</thinking>")


def without_thinking(text: str) -> tuple[str, bool]:
    """The answer, and whether it was cut off inside its thinking. One pass: linear in the length of
    the text."""
    kept: list[str] = []
    at, opened, first = 0, -1, True
    for tag in _TAG.finditer(text):
        if opened < 0 and not tag[1]:
            kept.append(text[at : tag.start()])
            opened = tag.start()
        elif opened >= 0 and tag[1]:
            at, opened = tag.end(), -1
        elif first and tag[1] and _alone(text, tag):
            # Some chat templates write the opening tag into the prompt: the reply begins inside the
            # thinking.
            at = tag.end()
        first = False
    if opened >= 0 and not "".join(kept).strip():
        return "", True
    # An opening tag that is never closed is one that an answer mentions, unless the answer begins
    # with it.
    answer = "".join([*kept, text[max(at, opened) :]])
    return (answer.lstrip() if at and not (kept and kept[0].strip()) else answer), False


def _alone(text: str, tag: re.Match[str]) -> bool:
    """At the beginning or the end of a line: an answer that merely mentions the tag has it among
    its words."""
    before, after = text[max(0, tag.start() - 1) : tag.start()], text[tag.end() : tag.end() + 1]
    return before in ("\n", "") or after in ("\n", "")


class Screen:
    """Gives the pieces of a streamed reply on, without its thinking. `text` and `cut_off` are right
    after `finish`."""

    def __init__(self, give: Callable[[str], None]) -> None:
        self._give = give
        self.clear()

    def clear(self) -> None:
        """As if nothing had come: for another attempt, when nothing has been shown yet."""
        self.shown = 0  # characters given
        self.length = 0  # characters that came
        self.text, self.cut_off = "", False
        self._pieces: list[str] = []
        self._given: list[str] = []
        self._tail = ""  # not yet decided
        self._blank = ""  # white space before the first word: not shown if thinking follows
        self._inside = self._was_inside = False

    @property
    def raw(self) -> str:
        return "".join(self._pieces)

    def feed(self, piece: str) -> None:
        self._pieces.append(piece)
        self.length += len(piece)
        rest = self._tail + piece
        self._tail = ""
        while match := _TAG.search(rest):
            if not match[1] and not self._inside:
                self._show(rest[: match.start()])
                self._inside = self._was_inside = True
            elif match[1] and self._inside:
                self._inside = False
            elif not self._inside:
                self._show(rest[: match.end()])
            rest = rest[match.end() :]
        if self._inside:
            self._tail = rest[-_LONGEST + 1 :]
            return
        begun = _BEGUN.search(rest, max(0, len(rest) - _LONGEST))
        end = begun.start() if begun else len(rest)
        self._tail = rest[end:]
        self._show(rest[:end])

    def finish(self) -> None:
        """Works out the whole text and gives what of it has not been given."""
        self.text, self.cut_off = without_thinking(self.raw)
        given, self._blank = "".join(self._given), ""
        if self.text.startswith(given):
            self._show(self.text[len(given) :])

    def _show(self, text: str) -> None:
        if not self.shown:
            text = self._blank + text
            self._blank = "" if text.strip() else text
            text = "" if self._blank else text.lstrip() if self._was_inside else text
        if text:
            self._given.append(text)
            self.shown += len(text)
            self._give(text)


log = logging.getLogger(__name__)
# what is tried when a way of asking for JSON is refused
AFTER = {"schema": "object", "object": "none"}
STREAMING = ("stream_options", "stream")
# one thing under two names; few servers know both
LENGTHS = ("max_tokens", "max_completion_tokens")
FINISH = {"max_tokens": "length", "eos": "stop", "end_turn": "stop", "stop_sequence": "stop"}
MOST_USED = 10**9  # tokens of one call; more is no figure, and no table could hold the sum
ENDLESS = 400_000  # characters after which a streamed reply is a model going round in circles
_TOO_MUCH = re.compile(
    r"too (large|big|high)|at most|exceed|maximum context|less than or equal", re.IGNORECASE
)


def limits_from(settings: Settings) -> Limits:
    """The settings' limits, to be shared by all models of a process."""
    return Limits(settings.concurrency, settings.requests_per_minute, settings.tokens_per_minute)


def chat_from(
    settings: Settings, environ: Mapping[str, str] = os.environ, *, limits: Limits | None = None
) -> OpenAIChat | None:
    """The configured chat model; None when none is set."""
    if settings.chat_model:
        return OpenAIChat(settings, environ, limits or limits_from(settings))
    return None


def embedder_from(
    settings: Settings, environ: Mapping[str, str] = os.environ, *, limits: Limits | None = None
) -> OpenAIEmbedder | None:
    """The configured embedding model; None when none is set."""
    if settings.embedding_model:
        return OpenAIEmbedder(settings, environ, limits or limits_from(settings))
    return None


class OpenAIChat:
    """A chat model. What a server refused once is not sent to it again."""

    def __init__(self, settings: Settings, environ: Mapping[str, str], limits: Limits) -> None:
        self.name = settings.chat_model
        self._options = {
            k: v
            for k, v in settings.chat_options.items()
            if k not in ("model", "messages", "stream")
        }
        self._forced = settings.json_mode != "auto"
        self._json = settings.json_mode if self._forced else "schema"
        self._proven = False  # a reply came in the way of asking for JSON that is used now
        self._streams = False  # a reply came where one in pieces was wanted
        # the provider's own models want the new name
        self._length = LENGTHS[0] if settings.base_url else LENGTHS[1]
        self._refused: set[str] = set()
        self._limits = limits
        what = f"the chat model {self.name!r}"
        self._wire = Wire(what, "chat_model", settings.base_url, environ, settings, limits)

    def __repr__(self) -> str:
        return f"OpenAIChat({self.name!r})"

    async def close(self) -> None:
        await self._wire.close()

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, Any] | None = None,
        max_output: int = 0,
        on_text: Callable[[str], None] | None = None,
    ) -> Reply:
        texts = [message.content for message in messages]
        tokens = _about(texts) + max_output if self._limits.counts_tokens else 0
        screen = Screen(on_text) if on_text else None
        # of this call only, where the refusal may be due to its text
        mode, left_out = (self._json, set[str]())
        while True:
            body = self._body(messages, schema, max_output, mode, left_out)
            try:
                attempt = partial(self._attempt, body, screen, texts, self._refused | left_out)
                reply = await self._wire.call(attempt, tokens, texts)
            except Refusal as error:
                refusal = error
            else:
                if schema is not None and not self._forced and not self._proven:
                    self._json, self._proven = mode, True
                if screen is not None:
                    self._refused |= left_out & set(STREAMING)
                    self._streams = True
                return reply
            mode = self._other_way(
                refusal, body, mode, left_out, screen is not None and not self._streams
            )
            if not mode:
                raise self._wire.refused(refusal)

    def _body(
        self,
        messages: Sequence[Message],
        schema: Mapping[str, Any] | None,
        max_output: int,
        mode: str,
        left_out: set[str],
    ) -> dict[str, Any]:
        body = dict(self._options)
        body["model"] = self.name
        body["messages"] = [
            {"role": message.role, "content": sendable(message.content)} for message in messages
        ]
        if schema is not None and mode == "schema":
            title = (
                re.sub(r"\W", "_", str(schema.get("title", "reply")), flags=re.ASCII)[:64]
                or "reply"
            )
            form = {"name": title, "schema": dict(schema), "strict": False}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        elif schema is not None and mode == "object":
            body["response_format"] = {"type": "json_object"}
        if max_output and not any(name in body for name in LENGTHS):
            body[self._length] = max_output
        return {
            name: value
            for name, value in body.items()
            if name not in self._refused and name not in left_out
        }

    def _other_way(
        self,
        refusal: Refusal,
        body: Mapping[str, Any],
        mode: str,
        left_out: set[str],
        first_stream: bool,
    ) -> str:
        """The way of asking for JSON in which to ask again, other things put right too; "" when
        there is no other."""
        form = body.get("response_format")
        ours = form is not None and form is not self._options.get("response_format")
        if ours and not self._forced and mode in AFTER:
            if refusal.names_format:
                if self._json == mode:
                    self._json, self._proven = AFTER[mode], False
                    log.warning(
                        "%s does not take JSON by %s; asking by %s", self.name, mode, self._json
                    )
                return AFTER[mode]
        names = [*body, *(() if "stream" in self._refused else STREAMING)]
        for name in (
            name for name in names if name not in ("model", "messages") and _is_named(name, refusal)
        ):
            if name == "response_format" and ours:
                continue
            if name in LENGTHS and _TOO_MUCH.search(refusal.said):
                left_out.add(name)
            elif name in LENGTHS and name == self._length and name not in self._options:
                self._refused.add(name)
                self._length = next(
                    (other for other in LENGTHS if other not in self._refused), name
                )
            elif name not in self._refused:
                self._refused.add(name)
                log.warning("%s does not take %r; it is no longer sent", self.name, name)
            return mode
        # Refused without a reason: the way of asking for JSON is the likeliest, as long as it has
        # never worked.
        unsaid = refusal.status in (400, 415, 422, 501) and not refusal.of_the_text
        if ours and unsaid and not self._proven and not self._forced and mode in AFTER:
            return AFTER[mode]
        # Then that it comes in pieces.
        left = next((name for name in STREAMING if name not in self._refused | left_out), "")
        if first_stream and unsaid and left:
            left_out.add(left)
            return mode
        return ""

    async def _attempt(
        self,
        body: dict[str, Any],
        screen: Screen | None,
        texts: Sequence[str],
        refused: set[str],
        line: Line,
        alarm: asyncio.Timeout,
        turn: Turn,
    ) -> Reply:
        # What has been shown cannot be taken back: after a stream that broke off, the reply comes
        # in one piece.
        if screen is not None and not screen.shown:
            screen.clear()
        if screen is not None and not screen.shown and "stream" not in refused:
            reply = await self._streamed(
                body, screen, texts, "stream_options" not in refused, line, alarm
            )
        else:
            data = parsed(await self._wire.post(line, "/chat/completions", body, texts))
            reply = self._reply(data, texts)
            if screen is not None and not screen.shown:
                screen.feed(reply.text)
                screen.finish()
        turn.used = reply.usage.prompt_tokens + reply.usage.output_tokens
        return reply

    def _reply(self, data: Mapping[str, Any], texts: Sequence[str]) -> Reply:
        if error := error_in(data):
            raise self._wire.judged(*error, {}, texts)
        if "choices" not in data:
            raise Again("a reply without choices")
        choice = self._choice(data["choices"], texts)
        message = choice.get("message")
        message = message if isinstance(message, dict) else {}
        raw = self._wire.hidden(content(message.get("content") or choice.get("text")))
        text, cut_off = without_thinking(raw)
        thought = content(message.get("reasoning_content") or message.get("reasoning"))
        finish = "refusal" if message.get("refusal") and not text else _finish(choice, cut_off)
        return Reply(text, _usage(data.get("usage"), texts, raw + thought), finish)

    def _choice(self, choices: Any, texts: Sequence[str]) -> dict[str, Any]:
        """The first choice. A gateway whose provider fails halfway says so in it, beside the half
        that came."""
        choice = _first(choices)
        if error := error_in(choice):
            raise self._wire.judged(*error, {}, texts)
        if choice.get("finish_reason") in ("error", "abort"):
            raise Again("the reply broke off")
        return choice

    async def _streamed(
        self,
        body: dict[str, Any],
        screen: Screen,
        texts: Sequence[str],
        counted: bool,
        line: Line,
        alarm: asyncio.Timeout,
    ) -> Reply:
        rest = {name: value for name, value in body.items() if name not in ("model", "messages")}
        if counted:
            rest["stream_options"] = {"include_usage": True}
        create = line.openai.chat.completions.with_streaming_response.create
        loop, usage, choice, ended, thought = asyncio.get_running_loop(), None, {}, False, ""
        seconds = (alarm.when() or loop.time()) - loop.time()
        async with create(
            model=self.name, messages=body["messages"], stream=True, extra_body=rest
        ) as response:
            pieces = response.iter_bytes()
            if "event-stream" not in response.headers.get("content-type", "").lower():
                whole = await response.read()
                if not EVENT.match(whole):  # it ignores "stream"
                    reply = self._reply(parsed(whole), texts)
                    screen.feed(reply.text)
                    screen.finish()
                    return reply
                pieces = in_one(whole)
            async for event in events(pieces):
                if event == b"[DONE]":
                    ended = True
                    break
                data = parsed(event)
                if error := error_in(data):
                    raise self._wire.judged(*error, {}, texts)
                # the time-out is for silence, not for a long answer
                alarm.reschedule(loop.time() + seconds)
                usage = data.get("usage") or usage
                now = self._choice(data.get("choices"), texts)
                choice = now if now.get("finish_reason") else choice
                delta = now.get("delta") if isinstance(now.get("delta"), dict) else {}
                thought += content(delta.get("reasoning_content") or delta.get("reasoning"))
                if piece := content(delta.get("content")):
                    screen.feed(piece)
                if screen.length > ENDLESS:
                    choice, ended = {"finish_reason": "length"}, True
                    break
        if not ended and not choice:
            raise Again("the reply broke off")
        screen.finish()
        choice = choice or ({"finish_reason": "stop"} if screen.length or thought else {})
        text = self._wire.hidden(screen.text)
        return Reply(
            text, _usage(usage, texts, screen.raw + thought), _finish(choice, screen.cut_off)
        )


class OpenAIEmbedder:
    """An embedding model. Its first vectors settle the dimension."""

    def __init__(self, settings: Settings, environ: Mapping[str, str], limits: Limits) -> None:
        self.name = settings.embedding_model
        self._wanted = self._dimension = settings.embedding_dimensions
        self._plain = False  # the server does not take `encoding_format`
        self._proven = False  # vectors came in the way of asking that is used now
        self._limits = limits
        self._wire = Wire(
            f"the embedding model {self.name!r}",
            "embedding_model",
            settings.embedding_base_url or settings.base_url,
            environ,
            settings,
            limits,
        )

    def __repr__(self) -> str:
        return f"OpenAIEmbedder({self.name!r})"

    async def close(self) -> None:
        await self._wire.close()

    async def embed(self, texts: Sequence[str]) -> Embedded:
        if not texts:
            return Embedded((), self._dimension, Usage())
        tokens = _about(texts) if self._limits.counts_tokens else 0
        # "" is refused by many
        body: dict[str, Any] = {
            "model": self.name,
            "input": [sendable(text) or " " for text in texts],
        }
        if self._wanted:
            body["dimensions"] = self._wanted
        plain = self._plain
        while True:
            sent = body if plain else {**body, "encoding_format": "base64"}
            try:
                made = await self._wire.call(partial(self._attempt, sent, texts), tokens, texts)
            except Refusal as error:
                refusal = error
            else:
                self._plain, self._proven = plain, True
                return made
            # Refused without naming it: it is the likeliest to be disliked, as long as it has never
            # worked.
            unsaid = (
                refusal.status in (400, 415, 422, 501)
                and not refusal.of_the_text
                and not self._proven
            )
            if plain or not (unsaid or _is_named("encoding_format", refusal)):
                raise self._wire.refused(refusal)
            plain = True

    async def _attempt(
        self,
        body: dict[str, Any],
        texts: Sequence[str],
        line: Line,
        alarm: asyncio.Timeout,
        turn: Turn,
    ) -> Embedded:
        data = parsed(await self._wire.post(line, "/embeddings", body, texts))
        if error := error_in(data):
            raise self._wire.judged(*error, {}, texts)
        if not isinstance(data.get("data"), list):
            raise Again("a reply without vectors")
        vectors = self._vectors(data["data"], len(texts))
        self._dimension = len(vectors[0]) // 4
        usage = _usage(data.get("usage"), texts, "")
        turn.used = usage.prompt_tokens
        return Embedded(vectors, self._dimension, usage)

    def _vectors(self, items: list[Any], count: int) -> tuple[bytes, ...]:
        """In the order of the texts, whatever the order of the reply; each of the one dimension,
        all numbers finite."""
        if len(items) != count or not all(isinstance(item, dict) for item in items):
            raise self._useless(f"{len(items)} vectors for {count} texts")
        numbers = [item.get("index") for item in items]
        if numbers.count(None) < count:
            if any(type(number) is not int for number in numbers) or sorted(numbers) != list(
                range(count)
            ):
                raise self._useless("vectors that are numbered wrongly")
            items = sorted(items, key=lambda item: item["index"])
        vectors = tuple(self._vector(item.get("embedding")) for item in items)
        if not _finite(vectors):
            raise self._useless("numbers that are not finite")
        dimensions = {len(vector) // 4 for vector in vectors} | ({self._dimension} - {0})
        if len(dimensions) > 1 or 0 in dimensions:
            sizes = " and ".join(map(str, sorted(dimensions)))
            move = ""
            if self._wanted:
                move = f"Set embedding_dimensions to {min(map(len, vectors)) // 4} or 0"
            what = f"vectors of {sizes} numbers where one size is needed"
            raise self._useless(what, move, final=bool(self._wanted), divisible=False)
        return vectors

    def _vector(self, said: Any) -> bytes:
        try:
            vector = (
                base64.b64decode(said, validate=True)
                if isinstance(said, str)
                else array.array("f", said).tobytes()
            )
        except (TypeError, ValueError, OverflowError, binascii.Error):
            raise self._useless("something that is no vector") from None
        if len(vector) % 4:
            raise self._useless("something that is no vector")
        return vector

    def _useless(
        self, what: str, move: str = "", *, final: bool = False, divisible: bool = True
    ) -> ModelError:
        move = (
            move
            or "Use another embedding model or server; what needs no vectors works without them"
        )
        return ModelError(
            f"the embedding model {self.name!r} gave {what}", move, final=final, divisible=divisible
        )


def _finite(vectors: Sequence[bytes]) -> bool:
    """All numbers of all vectors; one by one in Python this took as long as decoding them."""
    import numpy

    return bool(numpy.isfinite(numpy.frombuffer(b"".join(vectors), "f4")).all())


def _about(texts: Sequence[str]) -> int:
    """Rather too many tokens, found cheaply: it only stands in until the provider says how many
    there were."""
    return sum(len(text.encode("utf-8", "replace")) for text in texts) // 3


def _is_named(name: str, refusal: Refusal) -> bool:
    """Is the complaint about this parameter? Short names must stand in quotes, since they are words
    as well."""
    if refusal.status not in (400, 404, 405, 415, 422, 501):
        return False
    if refusal.parameter:
        return refusal.parameter.split(".")[0] == name
    quoted = rf"['\"`.]{re.escape(name)}(?![A-Za-z_])"
    plain = rf"(?<![A-Za-z_]){re.escape(name)}(?![A-Za-z_])"
    return re.search(plain if len(name) >= 6 else quoted, refusal.said) is not None


def _first(choices: Any) -> dict[str, Any]:
    return (
        choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    )


def _finish(choice: Mapping[str, Any], cut_off: bool) -> str:
    """Why the reply ends there: "empty" when there was none at all."""
    if cut_off:
        return "length"
    said = str(choice.get("finish_reason") or "stop") if choice else "empty"
    return FINISH.get(said, said)


def _usage(said: Any, prompts: Sequence[str], output: str) -> Usage:
    """The provider's figures; ours, marked as estimated, where it gives none that can be right."""
    figures = said if isinstance(said, dict) else {}
    prompt, spoken = (
        figures.get("prompt_tokens"),
        figures.get("completion_tokens", 0 if not output else None),
    )
    given = type(prompt) is int and type(spoken) is int
    if given and 0 < prompt < MOST_USED and 0 <= spoken < MOST_USED and (spoken or not output):
        return Usage(prompt, spoken)
    return Usage(
        sum(map(count_tokens, prompts)), count_tokens(output) if output else 0, estimated=True
    )
