"""The server over streamable HTTP. Host, Origin and token of every request are checked first.

Serves until SIGTERM or Ctrl-C. Without tokens only programs of this machine may come in, so another
address is refused; each token names the subject whose handles it may open. Tokens are kept as
hashes in memory only. Knows no tool."""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import ipaddress
import logging
import math
import os
import re
import socket
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, MutableMapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext, suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from graphrag_mcp.connections import GRACE, Server, Supervisor, checked, listening, most_connections
from graphrag_mcp.errors import BadInput
from graphrag_mcp.explorer import page
from graphrag_mcp.explorer.files import holder_of
from graphrag_mcp.logs import Repeats, to_stderr
from graphrag_mcp.server import build, to_the_end
from graphrag_mcp.settings import Settings, of_tenant
from graphrag_mcp.tools.limits import too_many_values

if TYPE_CHECKING:
    from mcp.server import MCPServer
    from mcp.server.streamable_http import StreamableHTTPServerTransport
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from starlette.applications import Starlette
    from starlette.datastructures import Headers

    from graphrag_mcp.app import App

HOST, PORT, PATH, API = "127.0.0.1", 8765, "/mcp", "/api"
TOKENS, TENANTS = "GRAPHRAG_MCP_TOKENS", "GRAPHRAG_MCP_TENANTS"
SHORTEST = 16  # characters of a token: what people make up by themselves is guessed
SESSIONS = 1_000  # in all, shared by the names of the tokens: one takes some 60 kB
LONGEST = 4 * 1024 * 1024  # bytes of a request, as in the SDK
LOOPBACK = ("localhost", "127.0.0.1", "::1")
OPEN = page.OPEN | {"/health"}  # paths without a token: they give nothing of an index

_OTHER_HOST = "this server does not answer to that Host. Start it with --allow-host NAME to change that."
_OTHER_ORIGIN = "pages of that Origin may not use this server. Start it with --allow-host NAME otherwise."
_TOO_LARGE = "the request is over 4 MiB. Give long texts as files (paths), or in several calls."
_NO_STREAM = "a server with several workers opens no event stream. Calls need none."

Scope = MutableMapping[str, Any]
Refusal = tuple[int, str]
log = logging.getLogger(__name__)


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
    """Serve until told to stop, with `build_server(app, **offer)` in as many processes as
    `workers`. Ends the process: threads left behind must not keep it."""
    from graphrag_mcp.app import App
    from graphrag_mcp.explorer.manage import Manager
    from graphrag_mcp.tools import api

    tokens = tokens_of(os.environ.pop(TOKENS, ""))  # taken out, so that no child process has them
    tenants = tenants_of(os.environ.get(TENANTS, ""), set(tokens.values()))
    names = allowed_names(host, allow_hosts, bool(tokens))
    count = checked(workers)
    listener = listening(host, port)
    to_stderr()
    for handler in logging.getLogger().handlers:
        handler.addFilter(Repeats())
    for name in (__name__, Server.__module__):
        logging.getLogger(name).setLevel(logging.INFO)
    folders = sorted(set(tenants.values()))
    servers: dict[str, MCPServer[Any]] = {}
    for tenant in folders or [""]:
        app = App(of_tenant(settings, tenant, len(folders)) if tenant else settings, corpus)
        app.page = f"{page.BASE}/"
        servers[tenant], desk = build(app, **offer, warm=True)
        manager = Manager(app, corpus, [tool.name for tool in desk.tools], False, count == 1)
        routes = [*page.routes(app, corpus), *manager.routes()]
        _add_routes(servers[tenant], [*routes, *api.routes(desk)])
    callers: dict[str, Any] = {"tenants": tenants, "names": names, "tokens": tokens}
    door = Door.of_servers(servers, sessions=count == 1, **callers)
    who = "without tokens, for this machine only"
    if tokens:
        who = f"with the tokens of {', '.join(sorted(set(tokens.values())))}"
    who += f", {count} workers" if count > 1 else ""
    log.info("listening on %s (%s)", address_of(listener), who)

    def here(*listeners: socket.socket, channel: socket.socket | None = None) -> None:
        to_the_end(lambda: asyncio.run(run(door, *listeners, channel=channel)), GRACE)

    if count == 1:
        here(listener)
    supervisor = Supervisor(lambda channel: here(channel=channel), count, 2 * GRACE + 2)
    to_the_end(lambda: supervisor.run(listener), 0)


async def run(door: Door, *listeners: socket.socket, most: int = 0, channel: socket.socket | None = None) -> None:
    """Serve on a socket, or the clients that come through a channel, until SIGTERM, Ctrl-C or the end
    of the parent process; then calls get GRACE seconds to finish, and streams end at once."""
    await Server(door, door.end_streams, most=most, channel=channel).serve(list(listeners))


def explore(app: App, corpus: str, opened: Callable[[str], None]) -> None:
    """Serve the explorer page alone on a free port of this machine until Ctrl-C; `opened` is given
    the address, which holds a token that can be used once."""
    importlib.import_module("mcp_types.version")  # before the first request
    from starlette.applications import Starlette
    from starlette.routing import Route

    from graphrag_mcp.explorer.manage import Manager
    from graphrag_mcp.jobs import start
    from graphrag_mcp.tools import api

    once = page.OneTime()
    listener = listening(HOST, 0)
    _, desk = build(app, read_only=app.read_only)
    manager = Manager(app, corpus, [tool.name for tool in desk.tools], local=True)
    routes = [*page.routes(app, corpus, once), *manager.routes()]
    routes += api.routes(desk, as_owner=True)
    handlers = [Route(path, call, methods=[how]) for path, how, call in routes]
    digest = hashlib.sha256(once.session.encode()).digest()
    _user("explore")  # imports for 1 s what the first request with a token needs
    door = Door({"": Starlette(routes=handlers)}, tokens={digest: "explore"})
    opened(f"{address_of(listener).removesuffix(PATH)}{page.BASE}/#token={once.token}")
    with nullcontext() if app.read_only else start.keeping(app.settings):
        asyncio.run(run(door, listener))
    start.hand_over(app.settings)


def _add_routes(server: MCPServer[Any], routes: Iterable[tuple[str, str, Any]]) -> None:
    for path, method, handler in routes:
        server.custom_route(path, methods=[method])(handler)


async def _health(_: Any) -> Any:
    from starlette.responses import JSONResponse

    return JSONResponse({"status": "ok"})


class Door:
    """An ASGI application in front of others: refuses a request, or names its caller and passes it
    to the application of its tenant, so that no other corpus, session or job is within its reach.

    `apps`: by tenant; `tenants`: that of each name of a token; without tenants the one application
    has the name "". `names`: what the Host may be. `tokens`: the name of each, by its SHA-256."""

    def __init__(
        self,
        apps: Mapping[str, Any],
        tenants: Mapping[str, str] = MappingProxyType({}),
        names: Iterable[str] = LOOPBACK,
        tokens: Mapping[bytes, str] = MappingProxyType({}),
    ) -> None:
        from starlette.applications import Starlette

        self.apps, self.tenants, self.names, self.tokens = apps, tenants, frozenset(names), tokens
        self.lifespan = Starlette(lifespan=self._lifespan)
        self.servers: Mapping[str, MCPServer[Any]] = {}
        self.with_sessions = True
        owners = max(1, len(set(tokens.values())))
        self.most_sessions = max(10, SESSIONS // owners)
        self.most_requests = most_connections() // 2 if owners > 1 else sys.maxsize
        self.requests: Counter[str] = Counter()  # that are being answered, by name of the token

    @classmethod
    def of_servers(cls, servers: Mapping[str, MCPServer[Any]], sessions: bool = True, **callers: Any) -> Door:
        """A door to `/mcp` and `/health` of servers by tenant. Without `sessions` any worker
        answers."""
        from mcp.server.transport_security import TransportSecuritySettings

        apps: dict[str, Starlette] = {}
        # The door has checked Host and Origin, for every path and to the letter.
        unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        for tenant, server in servers.items():
            _add_routes(server, [("/health", "GET", _health)])
            apps[tenant] = server.streamable_http_app(
                streamable_http_path=PATH, transport_security=unchecked, stateless_http=not sessions, max_sessions=None
            )
        door = cls(apps, **callers)
        door.servers, door.with_sessions = servers, sessions
        return door

    @asynccontextmanager
    async def _lifespan(self, _: Any) -> AsyncGenerator[None]:
        async with AsyncExitStack() as stack:
            for app in self.apps.values():
                await stack.enter_async_context(app.router.lifespan_context(app))
            yield

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.lifespan(scope, receive, send)
            return
        from starlette.datastructures import Headers

        headers = Headers(scope=scope)
        name = self.owner(headers)
        if name is None and scope["method"] == "GET":  # a browser's tab sends no token
            name = holder_of(scope["path"])
        if refusal := self.refusal(scope, headers, name) or self._full(scope, headers, name or ""):
            await _refuse(scope, receive, send, *refusal)
            return
        if name:
            scope["user"] = _user(name)
        if scope["method"] == "GET":
            # No event of ours has an id; the SDK has no answer to a client that asks to resume.
            kept = [header for header in scope["headers"] if header[0] != b"last-event-id"]
            scope = {**scope, "headers": kept}
        self.requests[name or ""] += 1
        try:
            if scope["method"] == "POST" and scope["path"] == PATH:
                body, receive = await _received(receive)
                if what := too_many_values(body):
                    await _refuse(scope, receive, send, 413, what)
                    return
            await self.apps[self._tenant(name)](scope, receive, send)
        finally:
            self.requests[name or ""] -= 1

    def _tenant(self, name: str | None) -> str:
        return self.tenants[name] if name and self.tenants else next(iter(self.apps))

    # ---- who may come in -------------------------------------------------------------------------

    def refusal(self, scope: Scope, headers: Headers, name: str | None) -> Refusal | None:
        """(status, what is wrong) for a request that may not come in."""
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or name_in(hosts[0]) not in self.names:
            return 421, _OTHER_HOST
        if len(origins) > 1 or any(origin_name(origin) not in self.names for origin in origins):
            return 403, _OTHER_ORIGIN
        # A picture or link of another page has no Origin, and would have the server work.
        foreign = not origins and headers.get("sec-fetch-site") == "cross-site"
        if foreign and scope["path"] not in OPEN:
            return 403, _OTHER_ORIGIN
        if self.tokens and name is None and scope["path"] not in OPEN:
            return 401, "a valid bearer token is needed. Ask the server's owner for one."
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length) > LONGEST and scope["path"] != page.UPLOAD:
            return 413, _TOO_LARGE
        return None

    def owner(self, headers: Headers) -> str | None:
        """Whose token the request has; None for no one's."""
        credentials = headers.getlist("authorization")
        scheme, _, token = credentials[0].partition(" ") if len(credentials) == 1 else ("", "", "")
        digest = hashlib.sha256(token.strip().encode("latin-1", "replace")).digest()
        return self.tokens.get(digest) if scheme.lower() == "bearer" else None

    # ---- shares ----------------------------------------------------------------------------------

    def _full(self, scope: Scope, headers: Headers, name: str) -> Refusal | None:
        """(status, reason) of too many requests or sessions. A new session ends the idlest one."""
        from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

        if (count := self.requests[name]) >= self.most_requests:
            reason = f"{count} requests of this token are being answered"
            return 503, f"{reason}. Try again when one of them has ended."
        if scope["path"] != PATH or not self.servers:
            return None
        if not self.with_sessions:
            return (405, _NO_STREAM) if scope["method"] == "GET" else None
        versions = set(headers.getlist("mcp-protocol-version"))  # later ones have no sessions
        opens = scope["method"] == "POST" and "mcp-session-id" not in headers
        if not opens or not versions <= set(HANDSHAKE_PROTOCOL_VERSIONS):
            return None
        manager = self.servers[self._tenant(name)].session_manager
        owners = manager._session_owners  # pyright: ignore[reportPrivateUsage]
        sessions = [
            transport.idle_scope
            for id, transport in _transports(manager).items()
            if (owners.get(id) or {}).get("subject", "") == name
            and transport.idle_scope is not None
            and not transport.idle_scope.cancel_called
        ]
        if len(sessions) < self.most_sessions:
            return None
        # The SDK puts the end of a session off while a request of it is served.
        oldest = min(sessions, key=lambda session: session.deadline)
        if oldest.deadline == math.inf:
            reason = f"{len(sessions)} sessions of this token are in use"
            return 503, f"{reason}. End one of them, or try again later."
        oldest.cancel()
        return None

    def end_streams(self) -> None:
        """End the event streams, which never end by themselves; who listens is told."""
        for server in self.servers.values():
            low = server._lowlevel_server  # pyright: ignore[reportPrivateUsage]
            if listeners := low.get_request_handler("subscriptions/listen"):
                listen: Any = listeners.handler  # an object of the SDK that is called like a function
                listen.close()
            for transport in _transports(server.session_manager).values():
                transport.close_standalone_sse_stream()


async def _received(receive: Any) -> tuple[bytes, Any]:
    """The body of a request up to LONGEST, and a `receive` that gives the same messages once more and then
    goes on; what is longer the SDK refuses."""
    messages: list[Any] = [await receive()]
    size = len(messages[0].get("body", b""))
    while messages[-1].get("more_body") and size <= LONGEST:
        messages.append(await receive())
        size += len(messages[-1].get("body", b""))
    body = b"".join(message.get("body", b"") for message in messages)

    async def again() -> Any:
        return messages.pop(0) if messages else await receive()

    return body, again


def _transports(manager: StreamableHTTPSessionManager) -> dict[str, StreamableHTTPServerTransport]:
    """The open sessions of a server by id, which the SDK has no public name for."""
    return manager._server_instances  # pyright: ignore[reportPrivateUsage]


async def _refuse(scope: Scope, receive: Any, send: Any, status: int, text: str) -> None:
    from starlette.responses import JSONResponse, PlainTextResponse

    headers = {"www-authenticate": 'Bearer realm="graphrag-mcp"'} if status == 401 else None
    reply = PlainTextResponse(text, status, headers)
    if scope["path"].startswith(f"{API}/"):
        reply = JSONResponse({"error": text}, status, headers)
    elif scope["method"] == "POST":  # clients show only errors of their own protocol
        error = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": text}}
        reply = JSONResponse(error, status, headers)
    await reply(scope, receive, send)


def _user(name: str) -> Any:
    """The SDK's authenticated user: no one else is let into a session that this one opened."""
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


def tokens_of(text: str) -> dict[bytes, str]:
    """Names in `name=token,name=token` by SHA-256 of the token. BadInput repeats no token."""
    found: dict[bytes, str] = {}
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
        if found.setdefault(hashlib.sha256(token.encode()).digest(), name) != name:
            what = f"{name} has the same token as another name in {TOKENS}"
            raise BadInput(what, "Give each name its own")
    return found


def tenants_of(text: str, names: set[str]) -> dict[str, str]:
    """The tenant of each name of a token in `name=tenant,name=tenant`; {} where there are none.
    BadInput where a name has none or two: it would see what is not its own."""
    entries = [part.strip() for part in text.split(",") if part.strip()]
    halves = [entry.partition("=") for entry in entries]
    pairs = [(name.strip(), tenant.strip()) for name, _, tenant in halves]
    found = dict(pairs)
    if not all(re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,62}", tenant) for _, tenant in pairs):
        what = f"{TENANTS} has an entry whose tenant cannot be a prefix"
        raise BadInput(what, "Write name=tenant,name=tenant with tenants of a-z, digits and . _ -")
    if pairs and (names != set(found) or len(found) < len(pairs)):
        odd = ", ".join(sorted(names ^ set(found))) or "a name that stands there twice"
        what = f"{TENANTS} and {TOKENS} do not have the same names ({odd})"
        raise BadInput(what, f"Give each name of {TOKENS} one tenant")
    return found


def allowed_names(host: str, allow_hosts: Iterable[str], tokens: bool) -> set[str]:
    """What a Host header may hold. BadInput for an address that others reach, without tokens."""
    if not is_loopback(host) and not tokens:
        what = f"on {host} anybody in the network could use this server, and no token is set"
        raise BadInput(what, f"Set {TOKENS}=name=token,... or leave --host at {HOST}")
    names = {*LOOPBACK, *(allow.strip().strip("[]").lower() for allow in allow_hosts)} - {""}
    if is_loopback(host):
        return names
    if host not in ("0.0.0.0", "::", ""):
        return names | {host.strip("[]").lower()}
    hostname = socket.gethostname()
    with suppress(OSError):
        found = socket.getaddrinfo(hostname, None)
        names |= {str(entry[4][0]).partition("%")[0] for entry in found}
    return names | {hostname.lower()}


def is_loopback(host: str) -> bool:
    """Is it this machine that the host name or address means?"""
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def address_of(listener: socket.socket) -> str:
    """The URL of the endpoint behind a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{PATH}"
