"""HTTP to a server that speaks the OpenAI protocol: one client per event loop, retries, waits,
errors, limits. Never shows the key.

`Limits` says how many calls may be under way and how fast they may begin; one object serves all
models, event loops and threads of a process."""

from __future__ import annotations

import asyncio
import base64
import email.utils
import heapq
import json
import logging
import math
import random
import re
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit
from weakref import WeakKeyDictionary

from graphrag_mcp.errors import ModelError
from graphrag_mcp.settings import Settings, secrets_of, shown_as

# Set by the one that asks (each task has its own): a person's question goes before the calls of a long
# run.
PRIORITY: ContextVar[float] = ContextVar("priority", default=0)

MINUTE = 60.0
# So much of a minute may be used at once; after that calls begin at an even pace. A run that used
# up its minute in the first seconds would leave a person's question waiting for the rest of it.
AT_ONCE = 10.0


class Turn:
    """One call under way. Set `used` to the tokens that it really took; until then its estimate
    counts."""

    __slots__ = ("used",)

    def __init__(self) -> None:
        self.used = 0


class _Rate:
    """At most `limit` of something in any 60 seconds, evenly. Not thread-safe."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        # [when, amount] of what still counts, oldest first
        self._begun: deque[list[float]] = deque()
        self._sum = 0.0
        self._paid = 0.0  # up to when the limit is used up, at an even pace

    def wait(self, amount: float, now: float) -> float:
        """Seconds until `amount` may begin. More than the whole limit may when nothing else counts
        any more."""
        while self._begun and self._counts_until(self._begun[0]) <= now:
            self._sum -= self._begun.popleft()[1]
        over = self._sum + amount - self._limit
        until = max(now, self._paid - AT_ONCE)
        for entry in self._begun:
            if over <= 1e-9:
                break
            over -= entry[1]
            until = max(until, self._counts_until(entry))
        return until - now

    def begin(self, amount: float, now: float) -> list[float]:
        entry = [now, amount]
        self._begun.append(entry)
        self._sum += amount
        self._paid = max(self._paid, now) + MINUTE * amount / self._limit
        return entry

    def correct(self, entry: list[float], amount: float) -> None:
        if any(one is entry for one in self._begun):
            self._sum += amount - entry[1]
            self._paid += MINUTE * (amount - entry[1]) / self._limit
            entry[1] = amount

    def _counts_until(self, entry: list[float]) -> float:
        return entry[0] + MINUTE * max(1.0, entry[1] / self._limit)


class _Waiter:
    """A place in the queue; the smallest (priority, number) is served first."""

    __slots__ = ("loop", "order", "woken")

    def __init__(self, order: tuple[float, int]) -> None:
        self.order, self.loop = order, asyncio.get_running_loop()
        self.woken: asyncio.Future[None] | None = None

    def __lt__(self, other: _Waiter) -> bool:
        return self.order < other.order


class Limits:
    """At most `concurrency` calls at once, and at most so many requests and tokens in any 60
    seconds (0: no limit)."""

    def __init__(
        self,
        concurrency: int,
        requests_per_minute: int = 0,
        tokens_per_minute: int = 0,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.counts_tokens = tokens_per_minute > 0  # else no one need count a prompt
        self.sleep = sleep
        self._clock = clock
        self._free = max(1, concurrency)
        self._requests = _Rate(requests_per_minute) if requests_per_minute > 0 else None
        self._tokens = _Rate(tokens_per_minute) if tokens_per_minute > 0 else None
        self._rest_until = 0.0
        self._lock = threading.Lock()
        self._queue: list[_Waiter] = []
        self._number = 0

    @asynccontextmanager
    async def slot(self, tokens: int = 0, priority: float | None = None) -> AsyncIterator[Turn]:
        """Inside, the call counts as under way. The lower priority first, then who came first."""
        begun = await self._enter(max(0, tokens), PRIORITY.get() if priority is None else priority)
        turn = Turn()
        try:
            yield turn
        finally:
            with self._lock:
                if turn.used and self._tokens and begun:
                    self._tokens.correct(begun, turn.used)
                self._free += 1
                self._wake_first()

    def rest(self, seconds: float) -> None:
        """No one begins for so long: the provider said that there is too much, and more calls would
        only fail too."""
        with self._lock:
            self._rest_until = max(self._rest_until, self._clock() + seconds)

    async def _enter(self, tokens: int, priority: float) -> list[float]:
        with self._lock:
            self._number += 1
            me = _Waiter((priority, self._number))
            heapq.heappush(self._queue, me)
        try:
            while True:
                with self._lock:
                    wait = 0.0
                    if first := self._free > 0 and self._queue[0] is me:
                        now = self._clock()
                        wait = self._wait(tokens, now)
                        if wait <= 0:
                            self._free -= 1
                            if self._requests:
                                self._requests.begin(1, now)
                            return self._tokens.begin(tokens, now) if self._tokens else []
                    else:
                        me.woken = me.loop.create_future()
                if first:
                    await self.sleep(wait)
                else:
                    await me.woken
        finally:  # begun or cancelled: either way the next one looks whether it may begin
            with self._lock:
                if self._queue[0] is me:
                    heapq.heappop(self._queue)
                else:
                    self._queue.remove(me)
                    heapq.heapify(self._queue)
                self._wake_first()

    def _wait(self, tokens: int, now: float) -> float:
        requests = self._requests.wait(1, now) if self._requests else 0.0
        return max(
            self._rest_until - now,
            requests,
            self._tokens.wait(tokens, now) if self._tokens else 0.0,
        )

    def _wake_first(self) -> None:
        """The first in the queue looks again. It takes its slot itself, so one that is cancelled
        takes none along."""
        while self._queue and self._queue[0].loop.is_closed():
            heapq.heappop(self._queue)  # its loop ended without it
        if self._queue and self._free > 0:
            waiter = self._queue[0]
            if (woken := waiter.woken) is not None:
                waiter.woken = None
                with suppress(RuntimeError):  # the loop closes just now
                    waiter.loop.call_soon_threadsafe(lambda: woken.done() or woken.set_result(None))


T = TypeVar("T")
OPENAI = "https://api.openai.com/v1"
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
NEVER_REACHED = 3  # tries to connect to a server that has never answered
PATIENCE = 300.0  # a provider that asks for a longer pause means the quota of an hour or a day
SHOWN, READ = 300, 2000  # characters of a provider's message that are shown, and that are looked at

log = logging.getLogger(__name__)
_SECRET = re.compile(r"(?i:bearer) \S+|\bsk-[\w-]{6,}")
_NO_CREDIT = re.compile(
    r"insufficient[_ ](quota|balance|credit)|billing_(hard_limit|not_active)|account_deactivated"
)
_WRONG_KEY = re.compile(
    r"\bapi key (is )?(not valid|invalid|expired)|\binvalid api key|API_KEY_INVALID", re.IGNORECASE
)
_MODERATED = re.compile(
    r"moderation|flagged|content.{0,3}(policy|filter|management)", re.IGNORECASE
)
_TOO_LONG = re.compile(
    r"context.{0,3}(length|window|size)|maximum context|reduce the length|too (long|many tokens)|too large to process"
    r"|less than \d+ tokens",
    re.IGNORECASE,
)
_TOO_LARGE = re.compile(
    r"too large to process|unsupported value: NaN|exceed_context_size", re.IGNORECASE
)
_NAMES_FORMAT = re.compile(
    r"response.?format|json.?(schema|object|mode)|structured.?output|grammar|guided.?(json|decoding)",
    re.IGNORECASE,
)


class Again(Exception):
    """One attempt failed in a way that may pass. `after`: seconds the server asked for."""

    def __init__(
        self, reason: str, *, after: float | None = None, crowded: bool = False, away: bool = False
    ) -> None:
        super().__init__(reason)
        self.reason, self.after, self.crowded, self.away = reason, after, crowded, away


class Refusal(Exception):
    """The server objects to this request. `said` and `parameter` are its words, without the key and
    the prompt."""

    def __init__(self, status: int, said: str, parameter: str = "") -> None:
        super().__init__(f"{status} {said}"[:SHOWN])
        self.status, self.said, self.parameter = status, said, parameter

    @property
    def names_format(self) -> bool:
        return bool(_NAMES_FORMAT.search(self.said) or self.parameter.startswith("response_format"))

    @property
    def of_the_text(self) -> bool:
        """The text is too long or was taken for forbidden: another shape of the request would not
        help."""
        return bool(_TOO_LONG.search(self.said) or _MODERATED.search(self.said))


class Line(NamedTuple):
    """One server's client in one event loop: openai's own, what it sends by, and the headers of its
    requests."""

    openai: Any
    http: Any
    headers: dict[str, str]


class _HttpClients:
    """One HTTP client per event loop, shared by all models of the process and closed with the last
    of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: WeakKeyDictionary[asyncio.AbstractEventLoop, list[Any]] = WeakKeyDictionary()

    def take(self, make: Callable[[], Any], users: int = 1) -> Any:
        with self._lock:
            held = self._held.setdefault(asyncio.get_running_loop(), [None, 0])
            held[0] = held[0] or make()
            held[1] += users
            return held[0]

    async def leave(self) -> None:
        with self._lock:
            held = self._held.get(asyncio.get_running_loop(), [None, 0])
            held[1] -= 1
            last = self._held.pop(asyncio.get_running_loop())[0] if held[1] == 0 else None
        if last is not None:
            await last.aclose()


_CLIENTS = _HttpClients()


def openai_client() -> Any:
    """The package `openai`, imported with the first model."""
    import openai

    return openai


async def prepare() -> None:
    """Make the HTTP client of the running loop and import all that its first call imports."""
    import anyio

    _CLIENTS.take(openai_client().DefaultAsyncHttpxClient, users=0)
    await anyio.sleep(0)


class Wire:
    """Calls to one server for one model. Safe to use from several loops; `chance` is there for the
    tests."""

    def __init__(
        self,
        what: str,
        setting: str,
        base_url: str,
        environ: Mapping[str, str],
        settings: Settings,
        limits: Limits,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._what, self._setting = what, setting
        self._url, login = _without_login(base_url.strip() or OPENAI)
        self._given_url = bool(base_url.strip())
        self._variable = settings.api_key_variable
        self._key = environ.get(self._variable, "").strip()
        # A login in the address goes as a header like a key: the HTTP library logs whole addresses.
        self._headers = (
            {"Authorization": f"Basic {base64.b64encode(login.encode()).decode()}"} if login else {}
        )
        self._address = shown_address(shown_as(base_url).strip() or OPENAI)
        options = secrets_of(settings)
        self._secrets = [self._key, login.partition(":")[2], *self._headers.values(), *options]
        self._timeout, self._tries = settings.timeout_seconds, settings.max_retries + 1
        self._limits, self._chance = limits, chance
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, Line] = WeakKeyDictionary()
        self._answered = False  # it has been there: when it goes away, it may come back

    async def call(
        self,
        attempt: Callable[[Line, asyncio.Timeout, Turn], Awaitable[T]],
        tokens: int,
        texts: Sequence[str] = (),
    ) -> T:
        """What `attempt(line, alarm, turn)` returns, tried until it works. `texts`: never shown in
        an error."""
        line = self._line()
        priority = PRIORITY.get()
        for tried in range(self._tries):
            async with self._limits.slot(tokens, priority) as turn:
                outcome, value = await self._once(attempt, line, turn, texts)
            if outcome is None:
                self._answered = True
                return value
            if not isinstance(outcome, Again):
                raise outcome
            if outcome.after is not None and outcome.after > PATIENCE:
                what = f"{self._what} asks for a pause of {outcome.after / 60:.0f} minutes ({outcome.reason})"
                raise ModelError(what, "Run it again then; what is done is kept", final=True)
            if outcome.away and not self._answered and tried + 1 >= NEVER_REACHED:
                break  # no one is there; waiting for seconds more would only keep everybody waiting
            if tried + 1 < self._tries:
                wait = self._pause(tried, outcome.after)
                log.debug("%s: %s; next try in %.1f s", self._what, outcome.reason, wait)
                # Only when told for how long: single refusals without a word must not stop all the
                # others each time.
                if outcome.crowded and outcome.after is not None:
                    self._limits.rest(wait)
                await self._limits.sleep(wait)
                priority = PRIORITY.get() - 0.5  # its wait is over: before those that never asked
        raise self._given_up(outcome, tried + 1)

    async def post(
        self, line: Line, path: str, body: Mapping[str, Any], texts: Sequence[str]
    ) -> bytes:
        """The body of a reply in one piece. Not by `post` of openai's client, which makes its
        options and headers again for each request: 1.8 ms of CPU a call, 1.2 without."""
        sent = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
        url = self._url.rstrip("/") + path
        reply = await line.http.post(
            url, content=sent, headers=line.headers, timeout=line.openai.timeout
        )
        if not reply.is_success:
            said: Any = reply.content.decode("utf-8", "replace")  # whatever charset it names
            with suppress(ValueError, RecursionError):
                said = json.loads(said)
            raise self.judged(reply.status_code, said, reply.headers, texts)
        return reply.content

    def refused(self, refusal: Refusal) -> ModelError:
        """The error for a request that cannot be put in another way."""
        said = (
            f" ({refusal.status}): {refusal.said[:SHOWN]}"
            if refusal.said
            else f" ({refusal.status})"
        )
        if refusal.status in (404, 405, 501) or 300 <= refusal.status < 400:
            return ModelError(
                f"{self._what} is not there{said}", self._advice_on_address(), final=True
            )
        if _TOO_LONG.search(refusal.said):
            move = "Use a model with a larger context"
            return ModelError(
                f"the prompt is too long for {self._what}{said}", move, divisible=True
            )
        move = "Nothing need be done for a single text; if all are refused, correct the settings by those words"
        return ModelError(f"{self._what} refused the request{said}", move, divisible=True)

    async def close(self) -> None:
        """Ends the connections of the running loop."""
        if self._clients.pop(asyncio.get_running_loop(), None) is not None:
            await _CLIENTS.leave()

    def judged(
        self, status: int, body: Any, headers: Mapping[str, str], texts: Sequence[str]
    ) -> Exception:
        """What an error status means: try again, change the request, or give up for good."""
        said, parameter = _complaint(body)
        said = self._shown(said, texts)
        where = f"({status} at {self._address}){': ' if said else ''}{said[:SHOWN]}"
        if status == 402 or _NO_CREDIT.search(said.lower()):
            what = f"the account for {self._what} has no credit {where}"
            return ModelError(
                what, "Add credit, then run it again; what is done is kept", final=True
            )
        # A firewall's page about one text says nothing about the key that has served all others.
        walled = status == 403 and said == "a web page" and self._answered
        if (
            status in (401, 403) and not walled and not _MODERATED.search(said)
        ) or _WRONG_KEY.search(said):
            held = f"Set {self._variable} to a key that may use this model, in the environment of this server"
            if not self._key:
                text = f"{self._what} wants a key and {self._variable} is not set {where}"
                return ModelError(text, held, final=True)
            return ModelError(
                f"{self._what} refuses the key in {self._variable} {where}", held, final=True
            )
        # Some say 500 to what no second try can mend.
        meant = status == 501 or _NAMES_FORMAT.search(said) or _TOO_LARGE.search(said)
        if status in (408, 409, 425, 429) or (status >= 500 and not meant):
            after = _asked_pause(headers)
            reason = f"status {status}{': ' if said else ''}{said[:SHOWN]}"
            return Again(
                reason, after=after, crowded=status == 429 or (status == 503 and after is not None)
            )
        return Refusal(status, said, parameter)

    async def _once(
        self, attempt: Callable[..., Awaitable[T]], line: Line, turn: Turn, texts: Sequence[str]
    ) -> tuple[Exception | None, Any]:
        """One attempt. Failures are returned: raised from inside `except`, they would carry the
        request along."""
        openai = openai_client()
        try:
            async with asyncio.timeout(self._timeout) as alarm:
                return None, await attempt(line, alarm, turn)
        except (Again, Refusal, ModelError) as error:
            return error, None
        except openai.APIStatusError as error:
            return self.judged(error.status_code, error.body, error.response.headers, texts), None
        except (TimeoutError, openai.APIConnectionError) as error:
            return self._broken(error), None
        except openai.OpenAIError as error:
            return Again(f"the reply cannot be used ({type(error).__name__})"), None
        except Exception as error:
            if type(error).__module__.startswith(
                ("httpx", "httpcore")
            ):  # not by openai's client, or mid-stream
                return self._broken(error), None
            raise

    def _broken(self, error: Exception) -> Again:
        """What an error of the HTTP library means, bare or in one of openai's."""
        within = error.__cause__ if isinstance(error, openai_client().OpenAIError) else None
        kind = "Timeout" if isinstance(error, TimeoutError) else type(within or error).__name__
        if kind == "ConnectTimeout":
            return Again("no connection within 15 seconds", away=True)
        if kind.endswith("Timeout"):
            return Again(f"no answer within {self._timeout:g} seconds")
        return Again(f"the connection failed ({kind})", away=kind == "ConnectError")

    def _line(self) -> Line:
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            self._check()
            openai = openai_client()
            _quiet()
            timeout = openai.Timeout(self._timeout, connect=min(15.0, self._timeout))
            http = _CLIENTS.take(openai.DefaultAsyncHttpxClient)
            client = openai.AsyncOpenAI(
                base_url=self._url,
                api_key=self._key or "none",
                max_retries=0,
                timeout=timeout,
                http_client=http,
                default_headers=self._headers,
            )
            said = {**client.auth_headers, **client.default_headers}
            # In one case, so that what the settings say goes instead of ours and not beside it.
            headers = {name.lower(): one for name, one in said.items() if isinstance(one, str)}
            self._clients[loop] = Line(client, http, headers)
        return self._clients[loop]

    def _check(self) -> None:
        """What can be known to be wrong before anything is sent."""
        if not self._key and not self._given_url:
            move = f"Set {self._variable} in this server's environment, or OPENAI_BASE_URL for a server without keys"
            raise ModelError(
                f"{self._what} needs a key and {self._variable} is not set", move, final=True
            )
        if not re.fullmatch(r"[!-~]*", self._key):
            what = f"the key in {self._variable} has characters that no key has (blanks, quotes, other letters)"
            raise ModelError(
                what, f"Set {self._variable} again, to the key and nothing else", final=True
            )
        usable = False
        with suppress(ValueError):  # a port that is no number
            parts = urlsplit(self._url)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
            usable = usable and not parts.query and not parts.fragment
        if not usable:
            what = f"the address of {self._what}, {self._address!r}, is no web address"
            raise ModelError(
                what, "Set OPENAI_BASE_URL to one such as http://localhost:11434/v1", final=True
            )

    def _given_up(self, last: Again, tried: int) -> ModelError:
        tries = f"after {tried} tries" if tried > 1 else "at once"
        at = self._address
        if last.away and not self._answered:
            what = f"{self._what} cannot be reached at {at}, given up {tries}: {last.reason}"
            return ModelError(
                what, f"Start that server or correct {self._address_setting()}", final=True
            )
        move = "Run it again later; what is done is kept"
        if "web page" in last.reason:
            move = self._advice_on_address()
        elif last.reason.startswith("no answer within"):
            move = "Set timeout_seconds higher or concurrency lower if the server is merely slow"
        elif last.crowded:
            move = "Set concurrency, requests_per_minute or tokens_per_minute to what the provider allows"
        return ModelError(
            f"{self._what} at {at} gave no reply, given up {tries}: {last.reason}", move
        )

    def _advice_on_address(self) -> str:
        at, path = self._address, urlsplit(self._url).path.rstrip("/")
        if path.endswith(("/chat/completions", "/embeddings")):
            right = at.rstrip("/").removesuffix("/chat/completions").removesuffix("/embeddings")
            return f"Set {self._address_setting()} to {right}: the rest is added by itself"
        if not re.search(r"/v\d", path):
            at = at.rstrip("/")
            return f"Set {self._address_setting()} to {at}/v1, and {self._setting} to a model of that server"
        return f"Set {self._setting} to a model that {at} has, or {self._address_setting()} to another server"

    def _address_setting(self) -> str:
        if self._setting == "chat_model":
            return "OPENAI_BASE_URL"
        return "OPENAI_BASE_URL or embedding_base_url"

    def _pause(self, tried: int, after: float | None) -> float:
        """Full jitter: many callers that failed together do not come back together."""
        most = min(LONGEST_WAIT, FIRST_WAIT * 2**tried)
        jitter = self._chance() * most
        return jitter if after is None else after + min(jitter, FIRST_WAIT)

    def hidden(self, said: str) -> str:
        """What a provider says without our key and login: a reply is kept in the reply cache, and
        shown."""
        for secret in self._secrets:
            said = said.replace(secret, "***") if len(secret) >= 6 else said
        return said

    def _shown(self, said: str, texts: Sequence[str]) -> str:
        """A provider's words as they may be shown: one line without the key and without pieces of
        the prompt."""
        said = self.hidden(said[: READ * 2])
        # providers show a key half masked
        words = ("***" if "***" in word else word for word in said.split())
        said = _SECRET.sub("***", " ".join(words))[:READ]
        said = "".join(ch for ch in said if ch.isprintable())
        if any(said[at : at + 40] in text for at in range(len(said) - 39) for text in texts):
            return "its message repeats the prompt and is not shown"
        return said


def _quiet() -> None:
    """The libraries log requests, addresses and headers of replies at DEBUG and INFO, and hide a
    key only in the headers that they know."""
    for name in ("openai", "httpx", "httpx2", "httpcore", "httpcore2"):
        logger = logging.getLogger(name)
        logger.setLevel(max(logging.WARNING, logger.level))


def _without_login(url: str) -> tuple[str, str]:
    """`http://name:password@host/` as an address that may be shown and the login, "name:password"."""
    scheme, separator, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    login, at, host = host.rpartition("@")
    return (f"{scheme}://{host}{slash}{path}", unquote(login)) if at else (url, "")


def shown_address(url: str) -> str:
    """An address without user names, passwords and queries."""
    with suppress(ValueError):
        parts = urlsplit(url)
        if parts.hostname:
            return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    return re.sub(r"[?#].*", "", url.rpartition("@")[2])[:100]


def _complaint(body: Any) -> tuple[str, str]:
    """What an error's body says, and the parameter that it is about ("" when it names none)."""
    if isinstance(body, str):
        text = body.strip()
        return ("" if not text else "a web page" if text.startswith("<") else text), ""
    if isinstance(body, list) and body and isinstance(body[0], dict) and "error" in body[0]:
        body = body[0]  # some gateways put it into a list
    error = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(error, str):
        return error, ""
    if not isinstance(error, dict):
        return " ".join(_validation(error)), ""
    said = [str(error[key]) for key in ("code", "type") if isinstance(error.get(key), str)]
    for key in ("message", "detail", "msg"):
        value = error.get(key)
        said[:0] = [value] if isinstance(value, str) else _validation(value)
    parameter = error.get("param")
    return " ".join(said), parameter if isinstance(parameter, str) else ""


def _validation(detail: Any) -> Iterator[str]:
    """Servers that check with pydantic list {"loc": ["body", "field"], "msg": ...}; "input" would
    be the prompt."""
    for one in detail if isinstance(detail, list) else ():
        if isinstance(one, dict) and isinstance(one.get("loc"), list):
            yield f"{'.'.join(str(part) for part in one['loc'])}: {one.get('msg', '')}"


def _asked_pause(headers: Mapping[str, str]) -> float | None:
    """Seconds by `retry-after-ms` or `Retry-After` (a number or a date); None when neither says
    anything usable."""
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        value = headers.get(name)
        if value is None:
            continue
        with suppress(ValueError):
            seconds = float(value) / unit
            if math.isfinite(seconds):
                return max(0.0, seconds)
            continue
        with suppress(ValueError, TypeError):
            return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    return None
