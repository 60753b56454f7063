"""A server that speaks the OpenAI protocol, as the settings name it, and what its errors mean. Never shows the
key.

What a retry may mend is decided here, because servers answer 200 with an error inside, and 500 to what no
retry can mend."""

from __future__ import annotations

import base64
import email.utils
import json
import math
import re
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from graphrag_mcp.errors import ModelError
from graphrag_mcp.settings import Settings, secrets_of, shown_as

OPENAI = "https://api.openai.com/v1"
CONNECTING = 15.0  # seconds
PATIENCE = 300.0  # a provider that asks for a longer pause means the quota of an hour or a day
SHOWN, READ = 300, 2000  # characters of a provider's message that are shown, and that are looked at
LATER = "Run it again later; what is done is kept"

_SECRET = re.compile(r"(?i:bearer) \S+|\bsk-[\w-]{6,}")
_ADDRESS = re.compile(r"[!-~]{1,200}")
_NO_CREDIT = re.compile(r"insufficient[_ ](quota|balance|credit)|billing_(hard_limit|not_active)|account_deactivated")
_TOO_LONG = re.compile(
    r"context.{0,3}(length|window|size)|maximum context|reduce the length|too (long|many tokens)"
    r"|too large to process|less than \d+ tokens",
    re.IGNORECASE,
)
_FORMAT = re.compile(
    r"response.?format|json.?(schema|object|mode)|structured.?output|grammar|guided.?(json|decoding)", re.IGNORECASE
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


class Provider:
    """Address and key of a server for one model, and its errors as those of this package."""

    def __init__(self, what: str, setting: str, base_url: str, environ: Mapping[str, str], settings: Settings) -> None:
        self.what, self._setting = what, setting
        also = " or embedding_base_url" if setting == "embedding_model" else ""
        self._address_setting = f"OPENAI_BASE_URL{also}"
        # `http://name:password@host/`: an address that may be shown, and a login.
        scheme, separator, rest = (base_url.strip() or OPENAI).rstrip("/").partition("://")
        host, slash, path = rest.partition("/")
        login, _, host = host.rpartition("@")
        self.url, login = f"{scheme}{separator}{host}{slash}{path}", unquote(login)
        self._given_url = bool(base_url.strip())
        self._variable = settings.api_key_variable
        self.key = environ.get(self._variable, "").strip()
        # A login in the address goes as a header like a key: the HTTP library logs whole addresses.
        self.basic = f"Basic {base64.b64encode(login.encode()).decode()}" if login else ""
        self.address = shown_address(base_url) or OPENAI
        self._secrets = [self.key, login.partition(":")[2], self.basic, *secrets_of(settings)]
        self._timeout = settings.timeout_seconds

    def check_settings(self) -> None:
        """ModelError for what can be known to be wrong before anything is sent."""
        if not self.key and not self._given_url:
            move = f"Set {self._variable} in this server's environment, or OPENAI_BASE_URL for a server without keys"
            what = f"{self.what} needs a key and {self._variable} is not set"
            raise ModelError(what, move, final=True)
        if not re.fullmatch(r"[!-~]*", self.key):
            what = f"the key in {self._variable} has characters that no key has (blanks, quotes, other letters)"
            move = f"Set {self._variable} again, to the key and nothing else"
            raise ModelError(what, move, final=True)
        usable = False
        with suppress(ValueError):  # a port that is no number
            parts = urlsplit(self.url)
            usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
            usable = usable and not parts.query and not parts.fragment
        if not usable:
            what = f"the address of {self.what}, {self.address!r}, is no web address"
            move = "Set OPENAI_BASE_URL to one such as http://localhost:11434/v1"
            raise ModelError(what, move, final=True)

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
            what = f"{self.what} is not there{words}"
            return ModelError(what, self.advice(), final=True)
        if _TOO_LONG.search(refusal.message):
            what = f"the prompt is too long for {self.what}{words}"
            return ModelError(what, "Use a model with a larger context", divisible=True)
        move = "Nothing need be done for a single text; if all are refused, correct the settings by those words"
        return ModelError(f"{self.what} refused the request{words}", move, divisible=True)

    def hidden(self, text: str) -> str:
        """What a provider says without our key and login: replies are kept, and shown."""
        for secret in self._secrets:
            text = text.replace(secret, "***") if len(secret) >= 6 else text
        return text

    def judged_reply(self, reply: Any, body: Mapping[str, Any]) -> Exception:
        if 300 <= reply.status_code < 400:
            return self._sent_on(reply.status_code, reply.headers.get("location", ""), body)
        content: Any = reply.content.decode("utf-8", "replace")
        with suppress(ValueError, RecursionError):
            content = json.loads(content)
        return self._judged(reply.status_code, content, reply.headers, body)

    def _judged(self, status: int, content: Any, headers: Mapping[str, str], body: Mapping[str, Any]) -> Exception:
        """What an error status means: try again, change the request, or give up for good."""
        message, parameter = _complaint(content)
        message = self._shown(message, body)
        shown = f": {message[:SHOWN]}" if message else ""
        where = f"({status} at {self.address}){shown}"
        if status == 402 or _NO_CREDIT.search(message.lower()):
            what = f"the account for {self.what} has no credit {where}"
            move = "Add credit, then run it again; what is done is kept"
            return ModelError(what, move, final=True)
        if status in (401, 403):
            wrong = f"refuses the key in {self._variable}"
            wrong = wrong if self.key else f"wants a key and {self._variable} is not set"
            move = f"Set {self._variable} to a key that may use this model, in the environment of this server"
            return ModelError(f"{self.what} {wrong} {where}", move, final=True)
        # Some say 500 to what no second try can mend.
        lasting = status == 501 or _TOO_LONG.search(message)
        if status in (408, 409, 425, 429) or (status >= 500 and not lasting):
            after = _asked_pause(headers)
            pause = f", with a pause of {after:.0f} seconds asked for" if after else ""
            reason = f"status {status}{pause}{shown}"
            if after is not None and after > PATIENCE:
                what = f"{self.what} asks for a pause of {after / 60:.0f} minutes ({reason})"
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
            to = shown_address(urljoin(f"{self.url}/", location)) if location else ""
        where = f" to {to}" if _ADDRESS.fullmatch(to) and self._shown(to, body) == to else ""
        what = f"{self.what} at {self.address} sends calls on{where} ({status}), which is not followed"
        return ModelError(what, self.advice(), final=True)

    def broken(self, error: Exception) -> Again:
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
                reason = f"the name {urlsplit(self.url).hostname} is not known"
                return Again(reason, f"Correct {self._address_setting}", unreachable=True)
            if isinstance(cause, ConnectionRefusedError):
                return Again("nothing listens there", start, unreachable=True)
        return Again(f"the connection failed ({kind})", start, unreachable=True)

    def advice(self) -> str:
        """What to do where something else answers than a server of the protocol."""
        right = re.sub(r"/(chat/completions|embeddings)/?$", "", self.address)
        if right != self.address:
            return f"Set {self._address_setting} to {right}: the rest is added by itself"
        if not re.search(r"/v\d", urlsplit(self.url).path):
            return f"Set {self._address_setting} to {self.address.rstrip('/')}/v1, and {self._setting} to a model of that server"
        return f"Correct {self._address_setting}, or set {self._setting} to a model that {self.address} has"

    def _shown(self, message: str, body: Mapping[str, Any]) -> str:
        """A provider's words as they may be shown: one line without key and prompt."""
        message = self.hidden(message[: READ * 2])
        # providers show a key half masked
        words = ("***" if "***" in word else word for word in message.split())
        message = _SECRET.sub("***", " ".join(words))[:READ]
        message = "".join(ch for ch in message if ch.isprintable())
        prompts = [message["content"] for message in body.get("messages", ())] + body.get("input", [])
        pieces = (message[at : at + 40] for at in range(len(message) - 39))
        if any(piece in prompt for piece in pieces for prompt in prompts):
            return "its message repeats the prompt and is not shown"
        return message


def shown_address(url: str) -> str:
    """An address as it was written, without user names, passwords and queries."""
    url = shown_as(url).strip()
    with suppress(ValueError):
        parts = urlsplit(url)
        if parts.hostname:
            return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
    return re.sub(r"[?#].*", "", url.rpartition("@")[2])[:100]


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An exception and what it came from, the latest first. A name with several addresses gives a group."""
    while error is not None:
        yield error
        if isinstance(error, BaseExceptionGroup):
            for member in error.exceptions:
                yield from _causes(member)
        error = error.__cause__ or error.__context__


def _complaint(body: Any, levels: int = 5) -> tuple[str, str]:
    """What an error's body says, and the parameter that it is about ("" when it names none)."""
    if isinstance(body, str):
        text = body.strip()
        return ("a web page" if text.startswith("<") else text), ""
    if isinstance(body, list) and levels:
        found = [_complaint(part, levels - 1) for part in body]
    elif not isinstance(body, dict) or not levels:
        return "", ""
    elif isinstance(body.get("loc"), list):  # of a check with pydantic, whose "input" would be the prompt
        return f"{'.'.join(map(str, body['loc']))}: {body.get('msg', '')}", ""
    else:
        found = [_complaint(body.get(key), levels - 1) for key in ("error", "message", "detail", "msg", "code", "type")]
        found.append(("", body["param"] if isinstance(body.get("param"), str) else ""))
    words, parameters = zip(*found, strict=True) if found else ((), ())
    return " ".join(filter(None, words)), next(filter(None, parameters), "")


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
