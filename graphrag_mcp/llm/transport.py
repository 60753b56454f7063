"""HTTP to a server that speaks the OpenAI protocol: tries, pauses, and the pace of calls.

The requests are made by the client of the package `openai`, without its retries: which failures may pass
`provider.py` says."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from graphrag_mcp.errors import ModelError
from graphrag_mcp.llm.provider import CONNECTING, Again, Provider
from graphrag_mcp.settings import Settings

if TYPE_CHECKING:
    from openai import AsyncOpenAI

T = TypeVar("T")
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
NEVER_REACHED = 3  # tries to connect to a server that has never answered

log = logging.getLogger(__name__)


@dataclass(eq=False)
class Whole(Exception):
    """The server ignored `stream`: `data` is its whole reply."""

    data: dict[str, Any]


class Pace:
    """Calls begin evenly: so many requests and tokens a minute (0: no limit), over all models."""

    def __init__(
        self,
        requests_per_minute: int = 0,
        tokens_per_minute: int = 0,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.counts_tokens = tokens_per_minute > 0  # else no one need count a prompt
        self.sleep, self._clock = sleep, clock
        limits = (requests_per_minute, tokens_per_minute)
        self._seconds = [60 / limit if limit else 0.0 for limit in limits]
        self._next = [0.0, 0.0]  # when the next request, and the next token, may be sent

    async def turn(self, tokens: int) -> None:
        """Returns when a call with so many tokens may begin: after those that asked before."""
        now = self._clock()
        begin = max(now, *self._next)
        self._next = [begin + self._seconds[0], begin + tokens * self._seconds[1]]
        if begin > now:
            await self.sleep(begin - now)

    def correct(self, estimated: int, used: int) -> None:
        """The call took `used` tokens instead of those it was begun with."""
        self._next[1] += (used - estimated) * self._seconds[1]


class Server:
    """Calls to one server for one model, from one event loop at a time."""

    def __init__(
        self, what: str, setting: str, base_url: str, environ: Mapping[str, str], settings: Settings, pace: Pace
    ) -> None:
        self.provider = Provider(what, setting, base_url, environ, settings)
        self._timeout, self._tries = settings.timeout_seconds, settings.max_retries + 1
        self._pace = pace
        self._client: AsyncOpenAI | None = None
        self._answered = False  # it has been there: when it goes away, it may come back

    async def call(self, attempt: Callable[[asyncio.Timeout], Awaitable[T]], tokens: int = 0) -> T:
        """What `attempt` returns, tried until it works. It may move its time-out. Raises Refusal
        when the request should be put in another way, ModelError when no further try is worth
        making."""
        import openai

        tried = 0
        while True:
            tried += 1
            await self._pace.turn(tokens)
            try:
                async with asyncio.timeout(self._timeout) as alarm:
                    value = await attempt(alarm)
                self._answered = True
                return value
            except Again as error:
                failed = error
            except (TimeoutError, openai.APIConnectionError) as error:
                failed = self.provider.broken(error)
            # Where no server ever answered, seconds of waiting would only keep the caller waiting.
            never_reached = failed.unreachable and not self._answered
            if tried >= (min(self._tries, NEVER_REACHED) if never_reached else self._tries):
                break
            # Full jitter: many callers that failed together do not come back together.
            wait = random.uniform(0, min(LONGEST_WAIT, FIRST_WAIT * 2 ** (tried - 1)))
            if failed.after is not None:
                wait = failed.after + min(wait, FIRST_WAIT)
            log.debug("%s: %s; next try in %.1f s", self.provider.what, failed.reason, wait)
            await self._pace.sleep(wait)
        # Raised here and not in `except`, where it would carry the request along.
        tries = f"given up after {tried} tries" if tried > 1 else "given up at once"
        if failed.unreachable and not self._answered:
            what = f"{self.provider.what} cannot be reached at {self.provider.address}, {tries}: {failed.reason}"
            raise ModelError(what, failed.advice, final=True)
        what = f"{self.provider.what} at {self.provider.address} gave no reply, {tries}: {failed.reason}"
        raise ModelError(what, failed.advice)

    async def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The JSON object that is the reply."""
        import httpx2
        import openai

        refused = False
        try:
            reply = await self.client().post(path, body=body, cast_to=httpx2.Response)
        except openai.APIStatusError as error:
            reply, refused = error.response, True
        if refused:  # raised here, where it does not carry the request along
            raise self.provider.judged_reply(reply, body)
        return self._object(reply.content, body)

    def _object(self, content: bytes, body: Mapping[str, Any]) -> dict[str, Any]:
        if not content.strip():
            raise Again("an empty reply")
        if content.lstrip().startswith(b"<"):
            raise Again("a web page instead of a reply", self.provider.advice())
        try:
            data = json.loads(content)
        except (ValueError, RecursionError):
            raise Again("a reply that is no JSON", self.provider.advice()) from None
        if not isinstance(data, dict):
            raise Again("a reply that is no JSON object", self.provider.advice())
        self.provider.check(data, body)
        return data

    async def stream(self, body: Mapping[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
        """The JSON objects of a chat reply in pieces. Raises Whole where a server ignores `stream`."""
        import httpx2
        import openai

        refused, inside = None, None
        ask = self.client().chat.completions.create
        arguments = {"model": body["model"], "messages": [], "stream": True, "extra_body": body}
        try:
            async with await ask(**arguments) as pieces:
                headers = pieces.response.headers
                kind = headers.get("content-type", "")
                if "html" in kind:
                    raise Again("a web page instead of a reply", self.provider.advice())
                # A whole reply; a stream has no length, even where its type is told wrongly.
                if "json" in kind and "content-length" in headers:
                    try:
                        content = await pieces.response.aread()
                    except httpx2.RequestError as error:
                        raise openai.APIConnectionError(request=error.request) from error
                    raise Whole(self._object(content, body))
                async for piece in pieces:
                    yield piece.to_dict(warnings=False)  # a content of parts is read as well
        except openai.APIStatusError as error:
            refused = error.response
        except openai.APIConnectionError:
            raise
        except openai.APIError as error:
            inside = error.body
        except ValueError:
            raise Again("a reply that is no JSON") from None
        if refused is not None:  # raised here, where it does not carry the request along
            raise self.provider.judged_reply(refused, body)
        self.provider.check({"error": inside}, body)

    async def close(self) -> None:
        if self._client is not None:
            client, self._client = self._client, None
            await client.close()

    def client(self) -> AsyncOpenAI:
        """The client, made when it is first needed. Raises ModelError for settings that cannot be right."""
        if self._client is not None:
            return self._client
        self.provider.check_settings()
        import openai

        for name in ("openai", "httpx2", "httpcore2"):  # they log requests and headers
            logger = logging.getLogger(name)
            logger.setLevel(max(logging.WARNING, logger.level))
        self._client = openai.AsyncOpenAI(
            api_key=self.provider.key or "none",
            base_url=self.provider.url,
            timeout=openai.Timeout(self._timeout, connect=min(CONNECTING, self._timeout)),
            max_retries=0,
            default_headers={"Authorization": self.provider.basic} if self.provider.basic else {},
            http_client=openai.DefaultAsyncHttpxClient(event_hooks={"response": [_as_utf8]}, follow_redirects=False),
        )
        return self._client


async def _as_utf8(reply: Any) -> None:
    """JSON is UTF-8; a charset that Python cannot decode would end the call."""
    reply.encoding = "utf-8"
