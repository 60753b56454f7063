"""The server over streamable HTTP. Host, Origin and token of every request are checked first.

Takes settings, an address and the tokens of the environment; serves until SIGTERM or Ctrl-C.
Without tokens only programs of this machine may come in, so another address is refused; with tokens
each names the subject whose handles it may open. Tokens are kept as hashes in memory only. Knows no
tool.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import logging
import os
import re
import signal
import socket
import sys
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
    Sequence,
)
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from graphrag_mcp.connections import Limits, Server, listening
from graphrag_mcp.errors import BadInput
from graphrag_mcp.explorer import site
from graphrag_mcp.logs import Repeats
from graphrag_mcp.server import build_server, last_moments
from graphrag_mcp.settings import Settings, of_tenant
from graphrag_mcp.workers import BUSY, SERVING, STREAMING, Inbox, Tally, Workers, checked
from graphrag_mcp.workers import SESSIONS as OPEN_SESSIONS

if TYPE_CHECKING:
    from mcp.server import MCPServer

    from graphrag_mcp.app import App

HOST, PORT, PATH = "127.0.0.1", 8765, "/mcp"
TOKENS, TENANTS = "GRAPHRAG_MCP_TOKENS", "GRAPHRAG_MCP_TENANTS"
SHORTEST = 16  # characters of a token: what people make up by themselves is guessed
SESSIONS = 1_000  # in all, shared by the tokens: one takes some 60 kB
COUNTED_EVERY = 60.0  # seconds between two counts of errors of the same kind
SWEPT_EVERY = 1.0  # seconds between two looks at the sessions that were opened in other workers
STOPPING = 2.0  # seconds for a worker to end after its calls and its small jobs
GRACE = 8.0  # seconds for calls to finish after SIGTERM; containers are killed after 10
LOOPBACK = ("localhost", "127.0.0.1", "::1")
OPEN = site.OPEN | {"/health"}  # paths without a token: they give nothing of an index

_STOPPING = "the server is stopping. Try again later."
_OTHER_HOST = (
    "this server does not answer to that Host. Start it with --allow-host NAME to change that."
)
_OTHER_ORIGIN = (
    "pages of that Origin may not use this server. Start it with --allow-host NAME otherwise."
)
_TOO_LARGE = "the request is over 4 MiB. Give long texts as files (paths), or in several calls."

Scope = MutableMapping[str, Any]
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Token:
    """Whose token it is, and its SHA-256."""

    name: str
    digest: bytes


def serve(
    settings: Settings,
    host: str = HOST,
    port: int = PORT,
    *,
    corpus: str = "",
    allow_hosts: Sequence[str] = (),
    workers: int = 1,
    **offer: Any,
) -> None:
    """Serve until told to stop, with `build_server(app, **offer)` in as many processes as `workers`.
    Ends the process: threads left behind must not keep it.
    """
    tokens = tokens_of(os.environ.pop(TOKENS, ""))  # taken out, so that no child process has them
    tenants = tenants_of(os.environ.get(TENANTS, ""), tokens)
    names = allowed_names(host, allow_hosts, tokens)
    count = checked(workers)
    listener = listening(host, port)
    logging.basicConfig(
        level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s"
    )
    log.setLevel(logging.INFO)
    token_names = sorted({token.name for token in tokens})
    who = "without tokens, for this machine only"
    if tokens:
        who = f"with the tokens of {', '.join(token_names)}"
    who += f", {count} workers" if count > 1 else ""
    tally = Tally(token_names, count)

    def opened() -> None:
        log.info("listening on %s (%s)", address_of(listener), who)

    def work(inbox: Inbox | None = None) -> None:
        for handler in logging.getLogger().handlers:
            Repeats(handler).tell_every(COUNTED_EVERY)
        _serve_here(door, opened, None if inbox else listener, inbox)

    def door() -> Door:
        from graphrag_mcp.app import App

        held = sorted(set(tenants.values()))
        offers = {}
        for tenant in held or [""]:
            own = of_tenant(settings, tenant, len(held)) if tenant else settings
            app = App(own, corpus)
            app.page = f"{site.BASE}/"
            offers[tenant] = build_server(app, **offer, warm=True), site.routes(app, corpus)
        return door_of(offers, tenants, names, tokens, tally)

    if count == 1:
        work()
    logging.getLogger("graphrag_mcp.workers").setLevel(logging.INFO)
    status = Workers(listener, count, tally, work).run(opened, 2 * GRACE + STOPPING)
    logging.shutdown()
    os._exit(status)


def _serve_here(
    make: Callable[[], Door],
    opened: Callable[[], None],
    listener: socket.socket | None,
    inbox: Inbox | None,
) -> None:
    """Serve in this process, and end it. `opened` is called before one without an inbox serves."""
    status = 0
    try:
        door = make()
        if inbox is None:
            opened()
        asyncio.run(run(door, listener, inbox=inbox))
    except KeyboardInterrupt:
        status = 130
    except Exception as error:
        log.error("the server ended: %s", error, exc_info=error)
        status = 1
    last_moments(GRACE)
    logging.shutdown()
    os._exit(status)


async def run(
    door: Door,
    listener: socket.socket | None,
    limits: Limits | None = None,
    inbox: Inbox | None = None,
) -> None:
    """Serve on a socket, or what comes to an inbox, until SIGTERM, Ctrl-C or the end of the parent;
    then calls get GRACE seconds to finish, streams end at once.
    """
    import uvicorn

    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop.set))
    quiet = {"log_config": None, "access_log": False, "server_header": False}
    config = uvicorn.Config(door, lifespan="on", ws="none", timeout_graceful_shutdown=1, **quiet)
    if inbox is not None:
        loop.add_reader(inbox.parent, stop.set)
    server = Server(config, listener, limits or Limits.of_process(), inbox)
    serving, stopping = asyncio.create_task(server.serve()), asyncio.create_task(stop.wait())
    sweeping = asyncio.create_task(door.sweep())
    await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    sweeping.cancel()
    await door.drain(GRACE)
    server.should_exit = True
    await serving


def explore(app: App, corpus: str, opened: Callable[[str], None]) -> None:
    """Serve the explorer page alone on a free port of this machine until Ctrl-C; `opened` is given
    the address, which holds a token that can be used once.
    """
    import uvicorn  # noqa: F401  (before the browser asks, not while it waits)
    from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS  # noqa: F401  (the same)
    from starlette.applications import Starlette
    from starlette.routing import Route

    once = site.OneTime()
    listener = listening(HOST, 0)
    handlers = [
        Route(path, call, methods=[how]) for path, how, call in site.routes(app, corpus, once)
    ]
    tokens = [Token("explore", hashlib.sha256(once.session.encode()).digest())]
    shares = Shares(1, Limits.of_process().connections)
    _user("explore")  # imports for 1 s what the first request with a token needs
    door = Door(Starlette(routes=handlers), LOOPBACK, tokens, shares)
    address = address_of(listener).removesuffix(PATH)
    opened(f"{address}{site.BASE}/#token={once.token}")
    asyncio.run(run(door, listener))


def door_of(
    offers: Mapping[str, tuple[MCPServer[Any], Iterable[tuple[str, str, Any]]]],
    tenants: Mapping[str, str] = MappingProxyType({}),
    names: Iterable[str] = LOOPBACK,
    tokens: Sequence[Token] = (),
    tally: Tally | None = None,
) -> Door:
    """The ASGI application of a server for each tenant: `/mcp`, `/health`, which says nothing of
    what is indexed, and its routes (path, method, handler). `tenants`: that of each token's name;
    without tenants the one offer has the name "". `tally`: what all workers count together."""
    from mcp.server.transport_security import TransportSecuritySettings
    from starlette.responses import JSONResponse

    async def health(_: Any) -> Any:
        return JSONResponse({"status": "ok"})

    names = frozenset(names)
    hosts = [f"[{name}]" if ":" in name else name for name in sorted(names)]
    origins = [f"{scheme}://{host}" for scheme in ("http", "https") for host in hosts]
    # The SDK checks again what the door has checked for every path, and more strictly (it compares
    # beginnings).
    checked = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[*hosts, *(f"{host}:*" for host in hosts)],
        allowed_origins=[*origins, *(f"{origin}:*" for origin in origins)],
    )
    limits = Limits.of_process()
    shares = Shares(len({token.name for token in tokens}), limits.connections, tally)
    # The door keeps each token to its share; sessions that are just being opened come on top.
    most = shares.sessions * max(1, len(tokens)) + limits.connections
    apps, ends = {}, []
    for tenant, (server, routes) in offers.items():
        for path, method, handler in [("/health", "GET", health), *routes]:
            server.custom_route(path, methods=[method])(handler)
        apps[tenant] = server.streamable_http_app(
            streamable_http_path=PATH, transport_security=checked, max_sessions=most
        )
        if listeners := server._lowlevel_server.get_request_handler("subscriptions/listen"):
            ends.append(listeners.handler.close)

    def goodbye() -> None:
        for end in ends:
            end()

    app = _Tenants(apps, tenants) if tenants else next(iter(apps.values()))
    return Door(app, names, tokens, shares, goodbye if ends else None)


class _Tenants:
    """The applications of several tenants as one: each request goes to that of its token, so that
    no other corpus, session or job is within its reach."""

    def __init__(self, apps: Mapping[str, Any], tenants: Mapping[str, str]) -> None:
        from starlette.applications import Starlette

        self.apps, self.tenants = apps, tenants
        self.together = Starlette(lifespan=self._lifespan)

    @asynccontextmanager
    async def _lifespan(self, _: Any) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for app in self.apps.values():
                await stack.enter_async_context(app.router.lifespan_context(app))
            yield

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            app = self.together
        elif "user" in scope:
            app = self.apps[self.tenants[scope["user"].display_name]]
        else:  # a path of OPEN, which gives nothing of an index
            app = next(iter(self.apps.values()))
        await app(scope, receive, send)


# ---- shares ---------------------------------------------------------------------------------------


class Shares:
    """What each token has open, in all workers. Without tokens all clients share the one of the name
    "".

    `sessions` is the most of one token; `requests` that of one token that are answered at the same
    time, and `streams` that of all tokens, since each of them holds a connection.
    """

    def __init__(self, names: int, connections: int, tally: Tally | None = None) -> None:
        self.sessions = max(10, SESSIONS // max(1, names))
        self.streams = connections // 2
        self.requests = connections // 2 if names > 1 else connections
        # token -> session, the one used last at the end -> its requests
        self.open: dict[str, dict[str, int]] = {}
        self.serving: Counter[str] = Counter()
        self.streaming = 0
        self.tally = tally or Tally()

    # ---- requests --------------------------------------------------------------------------------

    def refusal(self, name: str, stream: bool, opens: bool) -> str:
        """Why this token may not have another request answered now; "" when it may."""
        others = self.tally.others
        serving = self.serving[name] + others(SERVING, name)
        if serving >= self.requests:
            said = f"{serving} requests of this token are being answered"
            return f"{said}. Try again when one of them has ended."
        streaming = self.streaming + others(STREAMING)
        if stream and streaming >= self.streams:
            return f"{streaming} event streams are open. Try again later; calls need none."
        busy = self._busy(name) + others(BUSY, name) if opens else 0
        if opens and busy >= self.sessions:
            return f"{busy} sessions of this token are in use. End one of them, or try again later."
        return ""

    @contextmanager
    def request(self, name: str, session: str, stream: bool) -> Iterator[None]:
        """While a request of this token is answered; a session with one is not idle."""
        self.serving[name] += 1
        self.streaming += stream
        self._use(name, session, 1)
        try:
            yield
        finally:
            self.serving[name] -= 1
            self.streaming -= stream
            self._use(name, session, -1)
            if not self.serving[name]:
                del self.serving[name]

    def _use(self, name: str, session: str, more: int) -> None:
        sessions = self.open.get(name, {})
        if session in sessions:
            sessions[session] = sessions.pop(session) + more
            self.tally.put(BUSY, self._busy(name), name)
        self.tally.put(SERVING, self.serving[name], name)
        self.tally.put(STREAMING, self.streaming)

    def _busy(self, name: str) -> int:
        return sum(1 for requests in self.open.get(name, {}).values() if requests)

    # ---- sessions --------------------------------------------------------------------------------

    def opened(self, name: str, session: str) -> None:
        self.open.setdefault(name, {})[session] = 0
        self._count(name)

    def ended(self, name: str, session: str) -> None:
        self.open.get(name, {}).pop(session, None)
        self._count(name)

    def _count(self, name: str) -> None:
        self.tally.put(OPEN_SESSIONS, len(self.open.get(name, {})), name)
        self.tally.put(BUSY, self._busy(name), name)

    def excess(self, name: str) -> list[str]:
        """Sessions of this token to end here, those that have been idle for longest first; they are
        counted no more. Each worker keeps its part of the share.
        """
        sessions = self.open.get(name, {})
        too_many = len(sessions) + self.tally.others(OPEN_SESSIONS, name) - self.sessions
        too_many = min(too_many, len(sessions) - self.sessions // self.tally.workers)
        idle = [session for session, requests in sessions.items() if not requests]
        found = idle[: max(0, too_many)]
        for session in found:
            del sessions[session]
        if found:
            self._count(name)
        return found


# ---- the door ---------------------------------------------------------------------------------------


class Door:
    """An ASGI application in front of another: refuses, or names the caller and passes on."""

    def __init__(
        self,
        app: Any,
        names: Iterable[str],
        tokens: Sequence[Token],
        shares: Shares,
        goodbye: Callable[[], None] | None = None,
    ) -> None:
        self.app, self.names, self.tokens = app, frozenset(names), tuple(tokens)
        self.shares, self.goodbye = shares, goodbye
        # Of several workers each marks its sessions with its number (workers.py).
        self.mark = f"-{shares.tally.number}" if shares.tally.workers > 1 else ""
        self.streams: set[Any] = set()
        self.calls, self.stopping = 0, False

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        if self.mark and headers.get("mcp-session-id", [""])[0].endswith(self.mark):
            session = headers["mcp-session-id"][0].removesuffix(self.mark)
            headers["mcp-session-id"] = [session]
            own = (b"mcp-session-id", session.encode("latin-1"))
            scope = _with_headers(scope, own, without=own[0])
        refused = self.refusal(scope, headers)
        if refused is not None:
            await _refuse(scope, send, *refused)
        elif self.stopping:
            await _refuse(scope, send, 503, _STOPPING)
        else:
            await self._within_its_share(scope, receive, send, headers)

    async def _within_its_share(
        self, scope: Scope, receive: Any, send: Any, headers: Mapping[str, list[str]]
    ) -> None:
        """Answer a request, unless its token has too many; then end what sessions the token has too
        many of.
        """
        from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

        name = getattr(scope.get("user"), "display_name", "")
        session = headers.get("mcp-session-id", [""])[0]
        listens = headers.get("mcp-method") == ["subscriptions/listen"]
        stream = scope["path"] == PATH and (scope["method"] == "GET" or listens)
        versions = set(headers.get("mcp-protocol-version", []))  # later ones have no sessions
        with_sessions = versions <= set(HANDSHAKE_PROTOCOL_VERSIONS)
        opens = scope["method"] == "POST" and not session and with_sessions
        if refused := self.shares.refusal(name, stream, opens):
            await _refuse(scope, send, 503, refused)
            return

        async def noting(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                self._note(name, session, scope["method"], message)
                message = self._marked(message)
            await send(message)

        with self.shares.request(name, session, stream):
            if stream and not listens:
                # No event of ours has an id, so there is nothing to resume; the SDK has no answer to
                # a client that asks for it.
                scope = _with_headers(scope, without=b"last-event-id")
            if stream:
                await self._stream(scope, receive, noting)
            else:
                await self._call(scope, receive, noting, headers)
        for idle in self.shares.excess(name):
            await self._end_session(scope, idle)

    def _note(self, name: str, session: str, method: str, start: Mapping[str, Any]) -> None:
        """What the beginning of a response says of sessions that were opened or are over."""
        given = {key.lower(): value.decode("latin-1") for key, value in start["headers"]}
        if session and (start["status"] == 404 or (method == "DELETE" and start["status"] < 400)):
            self.shares.ended(name, session)
        elif not session and start["status"] < 400 and b"mcp-session-id" in given:
            self.shares.opened(name, given[b"mcp-session-id"])

    def _marked(self, start: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        """The beginning of a response, with the number of this worker in the id of its session."""
        if not self.mark:
            return start
        headers = [
            (key, value + self.mark.encode() if key.lower() == b"mcp-session-id" else value)
            for key, value in start["headers"]
        ]
        return {**start, "headers": headers}

    async def sweep(self) -> None:
        """End what sessions tokens have too many of because they opened others in other workers."""
        while self.shares.tally.workers > 1:
            await asyncio.sleep(SWEPT_EVERY)
            for name in list(self.shares.open):
                scope: Scope = {"type": "http", "http_version": "1.1", "scheme": "http"}
                scope |= {"root_path": "", "query_string": b"", "client": None, "server": None}
                scope |= {"headers": [(b"host", LOOPBACK[0].encode())]}
                scope |= {"user": _user(name)} if name else {}
                for idle in self.shares.excess(name):
                    await self._end_session(scope, idle)

    async def _end_session(self, scope: Scope, session: str) -> None:
        """End a session as its client would: with a request to the application."""
        kept = [one for one in scope["headers"] if one[0].lower() in (b"host", b"origin")]
        headers = [*kept, (b"mcp-session-id", session.encode("latin-1"))]
        asked = {"method": "DELETE", "path": PATH, "raw_path": PATH.encode(), "headers": headers}

        async def nothing() -> MutableMapping[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def ignored(_: MutableMapping[str, Any]) -> None:
            pass

        await self.app({**scope, **asked}, nothing, ignored)

    def refusal(
        self, scope: Scope, headers: Mapping[str, list[str]]
    ) -> tuple[int, str, str] | None:
        """(status, what is wrong, WWW-Authenticate) for a request that may not come in; names the
        caller of others.
        """
        hosts, origins = headers.get("host", []), headers.get("origin", [])
        if len(hosts) != 1 or name_in(hosts[0]) not in self.names:
            return 421, _OTHER_HOST, ""
        if len(origins) > 1 or any(origin_name(origin) not in self.names for origin in origins):
            return 403, _OTHER_ORIGIN, ""
        if not self.tokens or scope["path"] in OPEN:
            return None
        given = headers.get("authorization", [])
        name = self.owner(given[0]) if len(given) == 1 else ""
        if not name:
            challenge = 'Bearer realm="graphrag-mcp"' + (', error="invalid_token"' if given else "")
            return 401, "a valid bearer token is needed. Ask the server's owner for one.", challenge
        scope["user"] = _user(name)
        return None

    def owner(self, authorization: str) -> str:
        """Whose token it is, "" for no one's; every token is compared, so time tells nothing."""
        scheme, _, token = authorization.partition(" ")
        digest = hashlib.sha256(token.strip().encode("latin-1", "replace")).digest()
        found = ""
        for known in self.tokens:
            if hmac.compare_digest(known.digest, digest):
                found = known.name
        return found if scheme.lower() == "bearer" else ""

    async def _call(
        self, scope: Scope, receive: Any, send: Any, headers: Mapping[str, list[str]]
    ) -> None:
        """A call that a stop waits for: once all of it is here, since the one that never sends the rest
        keeps no one up.
        """
        whole = headers.get("content-length", ["0"]) == ["0"] and "transfer-encoding" not in headers
        self.calls += whole

        async def counted() -> MutableMapping[str, Any]:
            nonlocal whole
            message = await receive()
            if not whole and _ends(message, "http.request"):
                whole = True
                self.calls += 1
            return message

        too_large = False

        async def taught(message: MutableMapping[str, Any]) -> None:
            nonlocal too_large
            if message["type"] == "http.response.start" and message["status"] == 413:
                too_large = True
                await _refuse(scope, send, 413, _TOO_LARGE)
            elif not too_large:
                await send(message)

        try:
            await self.app(scope, counted, taught)
        finally:
            self.calls -= whole

    async def _stream(self, scope: Scope, receive: Any, send: Any) -> None:
        """A response that goes on until one side leaves; `drain` ends it in good order."""
        import anyio

        started = ended = False

        async def noting(message: MutableMapping[str, Any]) -> None:
            nonlocal started, ended
            started = started or message["type"] == "http.response.start"
            ended = ended or _ends(message, "http.response.body")
            await send(message)

        with anyio.CancelScope() as cancel:
            self.streams.add(cancel)
            try:
                await self.app(scope, receive, noting)
            finally:
                self.streams.discard(cancel)
        if cancel.cancelled_caught and not ended:
            if not started:
                await _refuse(scope, send, 503, _STOPPING)
            else:
                await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def drain(self, seconds: float) -> None:
        """Let no one in, end the streams, which never end by themselves, and wait for the calls."""
        self.stopping = True
        if self.goodbye is not None and self.streams:
            self.goodbye()  # who listens for updates is told that this is the end
            await asyncio.sleep(0.2)
        for cancel in list(self.streams):
            cancel.cancel()
        end = asyncio.get_running_loop().time() + seconds
        while self.calls and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(0.05)


def _ends(message: Mapping[str, Any], kind: str) -> bool:
    """Whether a message is the last part of a body."""
    return message["type"] == kind and not message.get("more_body", False)


def _with_headers(scope: Scope, *more: tuple[bytes, bytes], without: bytes) -> Scope:
    kept = [one for one in scope["headers"] if one[0].lower() != without]
    return {**scope, "headers": [*kept, *more]}


async def _refuse(scope: Scope, send: Any, status: int, text: str, challenge: str = "") -> None:
    from starlette.responses import JSONResponse, PlainTextResponse

    headers = {"www-authenticate": challenge} if challenge else None
    reply = PlainTextResponse(text, status, headers)
    if scope["method"] == "POST":  # clients show only errors of their own protocol
        error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": text}}
        reply = JSONResponse(error, status, headers)
    await reply(scope, None, send)  # type: ignore[arg-type]


def _user(name: str) -> Any:
    """The SDK's authenticated user: its session manager lets no one else into a session that this
    one opened.
    """
    from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
    from mcp.server.auth.provider import AccessToken

    return AuthenticatedUser(AccessToken(token="", client_id=name, scopes=[], subject=name))


def name_in(host: str) -> str:
    """The name of a Host header without its port, lower case; "" when it is none."""
    match = re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(?::\d{1,5})?", host)
    return match[1].strip("[]").lower().removesuffix(".") if match else ""


def origin_name(origin: str) -> str:
    """The host of an Origin header; "" for `null` and everything that is no web page's."""
    scheme, _, host = origin.partition("://")
    return name_in(host) if scheme.lower() in ("http", "https") else ""


# ---- what it is started with --------------------------------------------------------------------------


def tokens_of(text: str) -> list[Token]:
    """The tokens in `name=token,name=token`. BadInput never repeats what stands there."""
    found: list[Token] = []
    for number, entry in enumerate((part.strip() for part in text.split(",")), 1):
        if not entry:
            continue
        name, equals, token = entry.partition("=")
        name, token = name.strip(), token.strip()
        if not equals or not re.fullmatch(r"[A-Za-z0-9_.@-]{1,64}", name):
            what = f"entry {number} of {TOKENS} has no name that can be used before its ="
            advice = "Write name=token,name=token with names of letters, digits and _ . @ -"
            raise BadInput(what, advice)
        if len(token) < SHORTEST or not re.fullmatch(r"[!-~]+", token):
            what = f"the token of {name} in {TOKENS} is shorter than {SHORTEST} characters, or not plain ASCII"
            advice = 'Make one: python -c "import secrets; print(secrets.token_urlsafe(32))"'
            raise BadInput(what, advice)
        digest = hashlib.sha256(token.encode("latin-1")).digest()
        if any(hmac.compare_digest(known.digest, digest) and known.name != name for known in found):
            what = f"{name} has the same token as another name in {TOKENS}"
            raise BadInput(what, "Give each name its own")
        found.append(Token(name, digest))
    return found


def tenants_of(text: str, tokens: Sequence[Token]) -> dict[str, str]:
    """The tenant of each name of a token in `name=tenant,name=tenant`; {} where there are none.
    BadInput where a name has none or two: it would see what is not its own."""
    entries = [part.strip() for part in text.split(",") if part.strip()]
    pairs = [tuple(one.strip() for one in entry.partition("=")[::2]) for entry in entries]
    names, found = {token.name for token in tokens}, dict(pairs)
    if not all(re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,62}", tenant) for _, tenant in pairs):
        raise BadInput(
            f"{TENANTS} has an entry whose tenant cannot be a prefix",
            "Write name=tenant,name=tenant with tenants of a-z, digits and . _ -",
        )
    if pairs and (names != set(found) or len(found) < len(pairs)):
        odd = ", ".join(sorted(names ^ set(found))) or "a name that stands there twice"
        raise BadInput(
            f"{TENANTS} and {TOKENS} do not have the same names ({odd})",
            f"Give each name of {TOKENS} one tenant",
        )
    return found


def allowed_names(host: str, allow_hosts: Iterable[str], tokens: Sequence[Token]) -> set[str]:
    """The names that a Host header may hold. BadInput for an address that others reach, without
    tokens.
    """
    if not is_loopback(host) and not tokens:
        raise BadInput(
            f"on {host} anybody in the network could use this server, and no token is set",
            f"Set {TOKENS}=name=token,... or leave --host at {HOST}",
        )
    names = {*LOOPBACK, *(allow.strip().strip("[]").lower() for allow in allow_hosts)} - {""}
    if not is_loopback(host) and host not in ("0.0.0.0", "::", ""):
        return names | {host.strip("[]").lower()}
    return names if is_loopback(host) else names | _own_names()


def is_loopback(host: str) -> bool:
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _own_names() -> set[str]:
    """What this machine is called and its addresses."""
    name = socket.gethostname()
    try:
        found = {str(entry[4][0]).partition("%")[0] for entry in socket.getaddrinfo(name, None)}
    except OSError:
        found = set()
    return {name.lower(), *found}


def address_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{PATH}"
