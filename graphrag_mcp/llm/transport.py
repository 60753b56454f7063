"""HTTP to a server that speaks the OpenAI protocol: tries, pauses, the pace of calls, and what errors
mean. Never shows the key.

The requests are made by the client of the package `openai`, without its retries. What a retry may
mend is decided here, because servers answer 200 with an error inside, and 500 to what no retry can
mend."""

from __future__ import annotations

import asyncio
import base64
import email.utils
import json
import logging
import math
import random
import re
import socket
import ssl
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote, urljoin, urlsplit

from graphrag_mcp.errors import ModelError
from graphrag_mcp.settings import Settings, secrets_of, shown_as

if TYPE_CHECKING:
    from openai import AsyncOpenAI

T = TypeVar("T")
OPENAI = "https://api.openai.com/v1"
CONNECTING = 15.0  # seconds
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
NEVER_REACHED = 3  # tries to connect to a server that has never answered
PATIENCE = 300.0  # a provider that asks for a longer pause means the quota of an hour or a day
SHOWN, READ = 300, 2000  # characters of a provider's message that are shown, and that are looked at
LATER = "Run it again later; what is done is kept"

log = logging.getLogger(__name__)
_SECRET = re.compile(r"(?i:bearer) \S+|\bsk-[\w-]{6,}")
_ADDRESS = re.compile(r"[!-~]{1,200}")
_NO_CREDIT = re.compile(
    r"insufficient[_ ](quota|balance|credit)|billing_(hard_limit|not_active)|account_deactivated"
)
_TOO_LONG = re.compile(
    r"context.{0,3}(length|window|size)|maximum context|reduce the length|too (long|many tokens)"
    r"|too large to process|less than \d+ tokens",
    re.IGNORECASE,
)
_FORMAT = re.compile(
    r"response.?format|json.?(schema|object|mode)|structured.?output|grammar|guided.?(json|decoding)",
    re.IGNORECASE,
)


@dataclass(eq=False)
class Again(Exception):
    """One try failed in a way that may pass. `advice`: what helps when every try fails so; `after`:
    seconds that the server asks to wait; `unreachable`: there was no connection."""

    reason: str
    advice: str = LATER
    after: float | None = None
    unreachable: bool = False


@dataclass(eq=False)
class Refusal(Exception):
    """The server objects to this request. `message`, `parameter`: its words, without the key."""

    status: int
    message: str
    parameter: str = ""

    def names(self, field: str) -> bool:
        """Is the complaint about this field of the request? A short name must stand in quotes."""
        if self.status not in (400, 404, 405, 415, 422, 501):
            return False
        if field == "response_format" and _FORMAT.search(self.message):
            return True
        if self.parameter:
            return self.parameter.split(".")[0] == field
        before = r"(?<![A-Za-z_])" if len(field) >= 6 else r"['\"`.]"
        return re.search(rf"{before}{re.escape(field)}(?![A-Za-z_])", self.message) is not None


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
        self,
        what: str,
        setting: str,
        base_url: str,
        environ: Mapping[str, str],
        settings: Settings,
        pace: Pace,
    ) -> None:
        self._what, self._setting = what, setting
        also = " or embedding_base_url" if setting == "embedding_model" else ""
        self._address_setting = f"OPENAI_BASE_URL{also}"
        # `http://name:password@host/`: an address that may be shown, and a login.
        scheme, separator, rest = (base_url.strip() or OPENAI).rstrip("/").partition("://")
        host, slash, path = rest.partition("/")
        login, _, host = host.rpartition("@")
        self._url, login = f"{scheme}{separator}{host}{slash}{path}", unquote(login)
        self._given_url = bool(base_url.strip())
        self._variable = settings.api_key_variable
        self._key = environ.get(self._variable, "").strip()
        # A login in the address goes as a header like a key: the HTTP library logs whole addresses.
        self._basic = f"Basic {base64.b64encode(login.encode()).decode()}" if login else ""
        self._address = shown_address(base_url) or OPENAI
        self._secrets = [self._key, login.partition(":")[2], self._basic, *secrets_of(settings)]
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
                failed = self._broken(error)
            # Where no server ever answered, seconds of waiting would only keep the caller waiting.
            never_reached = failed.unreachable and not self._answered
            if tried >= (min(self._tries, NEVER_REACHED) if never_reached else self._tries):
                break
            # Full jitter: many callers that failed together do not come back together.
            wait = random.uniform(0, min(LONGEST_WAIT, FIRST_WAIT * 2 ** (tried - 1)))
            if failed.after is not None:
                wait = failed.after + min(wait, FIRST_WAIT)
            log.debug("%s: %s; next try in %.1f s", self._what, failed.reason, wait)
            await self._pace.sleep(wait)
        # Raised here and not in `except`, where it would carry the request along.
        tries = f"given up after {tried} tries" if tried > 1 else "given up at once"
        if failed.unreachable and not self._answered:
            what = f"{self._what} cannot be reached at {self._address}, {tries}: {failed.reason}"
            raise ModelError(what, failed.advice, final=True)
        what = f"{self._what} at {self._address} gave no reply, {tries}: {failed.reason}"
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
            raise self._judged_reply(reply, body)
        return self._object(reply.content, body)

    def _object(self, content: bytes, body: Mapping[str, Any]) -> dict[str, Any]:
        if not content.strip():
            raise Again("an empty reply")
        if content.lstrip().startswith(b"<"):
            raise Again("a web page instead of a reply", self.advice())
        try:
            data = json.loads(content)
        except (ValueError, RecursionError):
            raise Again("a reply that is no JSON", self.advice()) from None
        if not isinstance(data, dict):
            raise Again("a reply that is no JSON object", self.advice())
        self.check(data, body)
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
                    raise Again("a web page instead of a reply", self.advice())
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
            raise self._judged_reply(refused, body)
        self.check({"error": inside}, body)

    async def close(self) -> None:
        if self._client is not None:
            client, self._client = self._client, None
            await client.close()

    # ---- errors ---------------------------------------------------------------------------------

    def check(self, data: Mapping[str, Any], body: Mapping[str, Any]) -> None:
        """Raises for an error inside of what came with a status of success."""
        error = data.get("error")
        if not error:
            return
        code = error.get("code", error.get("status")) if isinstance(error, dict) else None
        code = int(code) if isinstance(code, str) and code.isdigit() else code
        if isinstance(code, int) and 400 <= code < 600:
            raise self._judged(code, error, {}, body)
        code = 404 if "unexpected endpoint" in json.dumps(error).lower() else 500
        judged = self._judged(code, error, {}, body)
        if isinstance(judged, Again):  # it came with a status of success
            judged.reason = judged.reason.replace("status 500", "an error in place of a reply", 1)
        raise judged

    def refused(self, refusal: Refusal) -> ModelError:
        """The error for a request that cannot be put in another way."""
        words = f": {refusal.message[:SHOWN]}" if refusal.message else ""
        words = f" ({refusal.status}){words}"
        if refusal.status in (404, 405, 501):
            what = f"{self._what} is not there{words}"
            return ModelError(what, self.advice(), final=True)
        if _TOO_LONG.search(refusal.message):
            what = f"the prompt is too long for {self._what}{words}"
            return ModelError(what, "Use a model with a larger context", divisible=True)
        move = "Nothing need be done for a single text; if all are refused, correct the settings by those words"
        return ModelError(f"{self._what} refused the request{words}", move, divisible=True)

    def hidden(self, text: str) -> str:
        """What a provider says without our key and login: replies are kept, and shown."""
        for secret in self._secrets:
            text = text.replace(secret, "***") if len(secret) >= 6 else text
        return text

    def _judged_reply(self, reply: Any, body: Mapping[str, Any]) -> Exception:
        if 300 <= reply.status_code < 400:
            return self._sent_on(reply.status_code, reply.headers.get("location", ""), body)
        content: Any = reply.content.decode("utf-8", "replace")
        with suppress(ValueError, RecursionError):
            content = json.loads(content)
        return self._judged(reply.status_code, content, reply.headers, body)

    def _judged(
        self, status: int, content: Any, headers: Mapping[str, str], body: Mapping[str, Any]
    ) -> Exception:
        """What an error status means: try again, change the request, or give up for good."""
        message, parameter = _complaint(content)
        message = self._shown(message, body)
        shown = f": {message[:SHOWN]}" if message else ""
        where = f"({status} at {self._address}){shown}"
        if status == 402 or _NO_CREDIT.search(message.lower()):
            what = f"the account for {self._what} has no credit {where}"
            move = "Add credit, then run it again; what is done is kept"
            return ModelError(what, move, final=True)
        if status in (401, 403):
            wrong = f"refuses the key in {self._variable}"
            wrong = wrong if self._key else f"wants a key and {self._variable} is not set"
            move = f"Set {self._variable} to a key that may use this model, in the environment of this server"
            return ModelError(f"{self._what} {wrong} {where}", move, final=True)
        # Some say 500 to what no second try can mend.
        lasting = status == 501 or _TOO_LONG.search(message)
        if status in (408, 409, 425, 429) or (status >= 500 and not lasting):
            after = _asked_pause(headers)
            pause = f", with a pause of {after:.0f} seconds asked for" if after else ""
            reason = f"status {status}{pause}{shown}"
            if after is not None and after > PATIENCE:
                what = f"{self._what} asks for a pause of {after / 60:.0f} minutes ({reason})"
                return ModelError(what, "Run it again then; what is done is kept", final=True)
            crowded = (
                "Run it again later, and set concurrency, requests_per_minute or tokens_per_minute to"
                " what the provider allows"
            )
            return Again(reason, crowded if status == 429 else LATER, after=after)
        return Refusal(status, message, parameter)

    def _sent_on(self, status: int, location: str, body: Mapping[str, Any]) -> ModelError:
        """The error for a redirect. None is followed: prompts go to no server that was not named. The
        address is the server's word: it is shown where it is one and holds nothing to be hidden."""
        to = ""
        with suppress(ValueError):
            to = shown_address(urljoin(f"{self._url}/", location)) if location else ""
        where = f" to {to}" if _ADDRESS.fullmatch(to) and self._shown(to, body) == to else ""
        what = f"{self._what} at {self._address} sends calls on{where} ({status}), which is not followed"
        return ModelError(what, self.advice(), final=True)

    def _broken(self, error: Exception) -> Again:
        """What an exception of the HTTP library means."""
        # The time-out of asyncio has the cancelling as its cause.
        kind = type(error if isinstance(error, TimeoutError) else error.__cause__ or error).__name__
        start = f"Start that server or correct {self._address_setting}"
        if kind == "ConnectTimeout":
            return Again(f"no connection within {CONNECTING:g} seconds", start, unreachable=True)
        if kind.endswith(("Timeout", "TimeoutError")):
            move = "Set timeout_seconds higher or concurrency lower if the server is merely slow"
            return Again(f"no answer within {self._timeout:g} seconds", move)
        if kind != "ConnectError":
            return Again(f"the connection failed ({kind})")
        for cause in _causes(error):
            if isinstance(cause, ssl.SSLCertVerificationError):
                reason = f"its certificate is not trusted ({cause.verify_message or cause.reason})"
                move = f"Correct {self._address_setting}, or set SSL_CERT_FILE to the certificate of its authority"
                return Again(reason, move, unreachable=True)
            if isinstance(cause, ssl.SSLError):
                reason = f"the TLS connection failed ({cause.reason or type(cause).__name__})"
                move = f"Correct {self._address_setting}: a server without TLS has an address with http://"
                return Again(reason, move, unreachable=True)
            if isinstance(cause, socket.gaierror):
                reason = f"the name {urlsplit(self._url).hostname} is not known"
                return Again(reason, f"Correct {self._address_setting}", unreachable=True)
            if isinstance(cause, ConnectionRefusedError):
                return Again("nothing listens there", start, unreachable=True)
        return Again(f"the connection failed ({kind})", start, unreachable=True)

    def advice(self) -> str:
        """What to do where something else answers than a server of the protocol."""
        right = re.sub(r"/(chat/completions|embeddings)/?$", "", self._address)
        if right != self._address:
            return f"Set {self._address_setting} to {right}: the rest is added by itself"
        if not re.search(r"/v\d", urlsplit(self._url).path):
            return f"Set {self._address_setting} to {self._address.rstrip('/')}/v1, and {self._setting} to a model of that server"
        return f"Correct {self._address_setting}, or set {self._setting} to a model that {self._address} has"

    def _shown(self, message: str, body: Mapping[str, Any]) -> str:
        """A provider's words as they may be shown: one line without key and prompt."""
        message = self.hidden(message[: READ * 2])
        # providers show a key half masked
        words = ("***" if "***" in word else word for word in message.split())
        message = _SECRET.sub("***", " ".join(words))[:READ]
        message = "".join(ch for ch in message if ch.isprintable())
        prompts = [message["content"] for message in body.get("messages", ())] + body.get(
            "input", []
        )
        pieces = (message[at : at + 40] for at in range(len(message) - 39))
        if any(piece in prompt for piece in pieces for prompt in prompts):
            return "its message repeats the prompt and is not shown"
        return message

    # ---- the client -----------------------------------------------------------------------------

    def client(self) -> AsyncOpenAI:
        """ModelError for what can be known to be wrong before anything is sent."""
        if self._client is not None:
            return self._client
        if not self._key and not self._given_url:
            move = f"Set {self._variable} in this server's environment, or OPENAI_BASE_URL for a server without keys"
            what = f"{self._what} needs a key and {self._variable} is not set"
            raise ModelError(what, move, final=True)
        if not re.fullmatch(r"[!-~]*", self._key):
            what = f"the key in {self._variable} has characters that no key has (blanks, quotes, other letters)"
            move = f"Set {self._variable} again, to the key and nothing else"
            raise ModelError(what, move, final=True)
        usable = False
        with suppress(ValueError):  # a port that is no number
            parts = urlsplit(self._url)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
            usable = usable and not parts.query and not parts.fragment
        if not usable:
            what = f"the address of {self._what}, {self._address!r}, is no web address"
            move = "Set OPENAI_BASE_URL to one such as http://localhost:11434/v1"
            raise ModelError(what, move, final=True)
        import openai

        for name in ("openai", "httpx2", "httpcore2"):  # they log requests and headers
            logger = logging.getLogger(name)
            logger.setLevel(max(logging.WARNING, logger.level))
        self._client = openai.AsyncOpenAI(
            api_key=self._key or "none",
            base_url=self._url,
            timeout=openai.Timeout(self._timeout, connect=min(CONNECTING, self._timeout)),
            max_retries=0,
            default_headers={"Authorization": self._basic} if self._basic else {},
            http_client=openai.DefaultAsyncHttpxClient(
                event_hooks={"response": [_as_utf8]}, follow_redirects=False
            ),
        )
        return self._client


def shown_address(url: str) -> str:
    """An address as it was written, without user names, passwords and queries."""
    url = shown_as(url).strip()
    with suppress(ValueError):
        parts = urlsplit(url)
        if parts.hostname:
            return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    return re.sub(r"[?#].*", "", url.rpartition("@")[2])[:100]


async def _as_utf8(reply: Any) -> None:
    """JSON is UTF-8; a charset that Python cannot decode would end the call."""
    reply.encoding = "utf-8"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An exception and what it came from, the latest first. A name with several addresses gives a group."""
    while error is not None:
        yield error
        if isinstance(error, BaseExceptionGroup):
            for member in error.exceptions:
                yield from _causes(member)
        error = error.__cause__ or error.__context__


def _complaint(body: Any) -> tuple[str, str]:
    """What an error's body says, and the parameter that it is about ("" when it names none)."""
    if isinstance(body, str):
        text = body.strip()
        return ("a web page" if text.startswith("<") else text), ""
    if isinstance(body, list) and body and isinstance(body[0], dict) and "error" in body[0]:
        body = body[0]  # some gateways put it into a list
    error = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(error, str):
        return error, ""
    if not isinstance(error, dict):
        return " ".join(_validation(error)), ""
    words = [str(error[key]) for key in ("code", "type") if isinstance(error.get(key), str)]
    for key in ("message", "detail", "msg"):
        value = error.get(key)
        words[:0] = [value] if isinstance(value, str) else _validation(value)
    parameter = error.get("param")
    return " ".join(words), parameter if isinstance(parameter, str) else ""


def _validation(detail: Any) -> Iterator[str]:
    """Servers that check with pydantic list {"loc": ["body", "field"], "msg": ...}; "input" would
    be the prompt."""
    for error in detail if isinstance(detail, list) else ():
        if isinstance(error, dict) and isinstance(error.get("loc"), list):
            yield f"{'.'.join(str(part) for part in error['loc'])}: {error.get('msg', '')}"


def _asked_pause(headers: Mapping[str, str]) -> float | None:
    """Seconds by `retry-after-ms` or `Retry-After` (a number or a date); None for neither."""
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        value = headers.get(name, "")
        with suppress(ValueError):
            seconds = float(value) / unit
            if math.isfinite(seconds):
                return max(0.0, seconds)
        with suppress(ValueError, TypeError):
            return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    return None
