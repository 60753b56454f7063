"""The explorer page over HTTP: the page itself, which holds no data, and the data of its views.

Takes an `App` and a corpus; gives handlers for paths under /explore. The door of http.py stands in
front: it checks Host, Origin and the token of every request but those of OPEN, and these give
nothing of an index. Everything here only reads."""

from __future__ import annotations

import hmac
import json
import secrets
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from graphrag_mcp.errors import BadInput, GraphRAGError
from graphrag_mcp.trust.fencing import SHOW_SECRETS
from graphrag_mcp.trust.key import HOME
from graphrag_mcp.trust.principal import SUBJECT

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from graphrag_mcp.app import App

BASE = "/explore"
OPEN = frozenset({BASE, f"{BASE}/", f"{BASE}/session"})
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
Handler = Callable[["Request"], Awaitable["Response"]]


class OneTime:
    """A token that is good for one exchange: it opens the page once and gives the session's token."""

    def __init__(self) -> None:
        self.token, self.session = secrets.token_urlsafe(24), secrets.token_urlsafe(32)
        self._used, self._lock = False, threading.Lock()

    def exchange(self, token: str) -> str:
        """The token of the session at the first call with the right token; "" for all others."""
        with self._lock:
            right = hmac.compare_digest(token.encode(), self.token.encode()) and not self._used
            self._used = self._used or right
        return self.session if right else ""


def routes(
    app: App, corpus: str = "", once: OneTime | None = None
) -> list[tuple[str, str, Handler]]:
    """(path, method, handler) of the page. With `once` the page exchanges the token in its address,
    and sessions are those of this home, not of the token's name."""
    found: list[tuple[str, str, Handler]] = [
        (BASE, "GET", _redirect),
        (f"{BASE}/", "GET", partial(_page, once is not None)),
        (f"{BASE}/data/{{view}}", "GET", partial(_data, app, corpus, once is not None)),
    ]
    return [*found, (f"{BASE}/session", "POST", partial(_session, once))] if once else found


async def _redirect(request: Request) -> Response:
    from starlette.responses import RedirectResponse

    query = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(f"{BASE}/{query}", 307, HEADERS)


async def _page(exchange: bool, request: Request) -> Response:
    from starlette.responses import Response

    from graphrag_mcp.explorer.page import page, policy_of

    document = page({"exchange": True} if exchange else None)
    policy = f"{policy_of(document)}; frame-ancestors 'none'"
    headers = {**HEADERS, "Content-Security-Policy": policy}
    return Response(document, 200, headers, "text/html; charset=utf-8")


async def _session(once: OneTime, request: Request) -> Response:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    session = once.exchange(token.strip()) if scheme.lower() == "bearer" else ""
    return _json(
        {"token": session} if session else {"error": "this address was used before"},
        200 if session else 401,
    )


async def _data(app: App, corpus: str, own: bool, request: Request) -> Response:
    """The data of a view; errors as {"error"} in words for a person, without advice for agents."""
    from starlette.concurrency import run_in_threadpool

    from graphrag_mcp.explorer.data import load

    given = dict(request.query_params)
    user = request.scope.get("user")
    SUBJECT.set("" if own else str(getattr(user, "display_name", "") or ""))
    SHOW_SECRETS.set(app.settings.show_secrets)
    HOME.set(app.home)
    try:
        name = given.pop("corpus", "") or corpus
        return _json(await run_in_threadpool(load, app, request.path_params["view"], given, name))
    except GraphRAGError as error:
        status = 400 if isinstance(error, BadInput) else 404
        return _json({"error": f"{error.what[:1].upper()}{error.what[1:]}."}, status)


def _json(value: Any, status: int = 200) -> Response:
    from starlette.responses import Response

    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    headers = {**HEADERS, "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'"}
    return Response(text.encode("utf-8", "replace"), status, headers, "application/json")
