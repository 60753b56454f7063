"""The explorer page as one HTML document: modules, style and data inlined, nothing loaded from
elsewhere. With the data of a corpus it is a file that needs no server: the map and all topics, the
most connected entities in full with the texts that they cite, and of the others names alone; what
it leaves out it says. The routes of a server give the page, which holds no data then, and the data
of its views."""

from __future__ import annotations

import base64
import hashlib
import hmac
import html
import json
import os
import re
import secrets
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from graphrag_mcp.errors import BadInput, GraphRAGError
from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.trust.fencing import HOME, SHOW_SECRETS, SUBJECT, TELL_PATHS

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from graphrag_mcp.app import App

FOLDER = Path(__file__).resolve().parents[1] / "page"
MODULES = (
    *("dom", "bridge", "transport", "server", "map", "tree", "graph", "timeline", "views"),
    *("ask", "library", "source", "app"),
)
STYLES = ("style.css", "work.css")
_IMPORT = re.compile(r"^import (?:\* as (\w+)|\{[^}]*\}) from \"\./(\w+)\.js\";\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (async )?(function|const|class|let) (\w+)", re.MULTILINE)
_NAMESPACES = ("graph", "timeline", "views", "ask", "library", "source")  # imported as a whole: their names stay apart


def page(data: Mapping[str, Any] | None = None) -> str:
    """The page; with `data` ({"views": {...}}) a file that needs no server.

    Its policy allows the scripts and styles that are in it, by their hashes, and requests to its own
    address only."""
    script = _script()
    style = "".join((FOLDER / name).read_text("utf-8") for name in STYLES)
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "style-src-attr 'unsafe-inline'; img-src data:; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'"
    )
    text = json.dumps(data or {}, ensure_ascii=False, separators=(",", ":"))
    parts = {
        "@csp@": policy,
        "@style@": style,
        "@data@": text.replace("<", "\\u003c").replace("\u2028", "\\u2028"),
        "@script@": script,
    }
    shell = (FOLDER / "page.html").read_text("utf-8")
    return re.sub("|".join(parts), lambda match: parts[match[0]], shell)


def policy_of(document: str) -> str:
    """The Content-Security-Policy that stands in a page, for the header beside it."""
    found = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', document)
    return found[1] if found else "default-src 'none'"


@cache
def _script() -> str:
    """The modules one after another, without their imports and exports."""
    parts: list[str] = []
    for name in MODULES:
        source = (FOLDER / f"{name}.js").read_text("utf-8")
        body = _EXPORT.sub(r"\1\2 \3", _IMPORT.sub("", source))
        if name in _NAMESPACES:
            exported = ", ".join(match[3] for match in _EXPORT.finditer(source))
            body = f"const {name} = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();\n"
        parts.append(f"// ---- {name}.js\n{body}")
    script = "\n".join(parts)
    if "</script" in script.lower() or "<!--" in script:
        raise ValueError("a module of the page holds a tag that would end its script")
    return script


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode()


# ---- with the data of a corpus -------------------------------------------------------------------

TOPICS, ENTITIES, NAMES, TEXTS = 1_500, 2_000, 50_000, 5_000
MOST = 24_000_000  # characters of data: what a browser opens in two seconds

Data = dict[str, Any]


def document(app: App, corpus: str = "") -> tuple[str, dict[str, int]]:
    """The file's text, and how many topics, entities and texts it holds in full."""
    from graphrag_mcp.explorer.data import load  # a server that only shows the page reads no tables
    from graphrag_mcp.explorer.topics import TITLE, marks, shared, topics

    name = app.corpus_for_reading(corpus)
    snapshot, views, left = app.snapshot(name), dict[str, Data](), MOST

    def add(view: str, **arguments: str) -> Data | None:
        """The data of a view, under the key by which the page asks; None where it has no room."""
        nonlocal left
        key = f"{view}?{'&'.join(f'{name}={value}' for name, value in arguments.items())}"
        if key not in views:
            data = load(app, view, arguments, name)
            size = len(json.dumps(data, ensure_ascii=False, separators=(",", ":")))
            if size > left:
                return None
            left -= size
            views[key] = data
        return views[key]

    found = topics(snapshot)
    ranked = sorted(found.by_id.values(), key=lambda topic: (topic.level, -topic.size, topic.n))[:TOPICS]
    overview, whole = add("overview") or {}, add("map") or {}
    leaves = [str(topic.n) for topic in ranked if not topic.children]
    dots = [dot for n in leaves for dot in load(app, "map", {"under": n}, name)["entities"]]
    ids = [topic.id for topic in ranked]
    shown_on_map = {"communities": marks(found, ids), "shared": shared(found, ids)}
    views["map?"] = {**whole, **shown_on_map, "entities": dots[:ENTITIES]}
    add("timeline")
    add("graph")
    listed = snapshot.rows("entities", "", ["n", "title", "type", "degree"]).to_pylist()
    listed.sort(key=lambda row: (-row["degree"], row["n"]))
    names = [[row["n"], one_line(row["title"], TITLE), row["type"]] for row in listed[:NAMES]]
    shown = [add("community", id=str(topic.n)) for topic in ranked]
    shown += [add("entity", id=str(row[0])) for row in names[:ENTITIES]]
    texts = list(dict.fromkeys(id for data in shown for id in _cited(data)))[:TEXTS]
    passages = [add("passage", id=id) for id in texts]
    papers = dict.fromkeys(str(passage["document"]["n"]) for passage in passages if passage)
    for n in papers:
        add("document", id=n)
    kinds = Counter(key.partition("?")[0] for key in views)
    full = {"topics": kinds["community"], "entities": kinds["entity"], "texts": kinds["passage"]}
    counts, generation = overview.get("counts", {}), snapshot.manifest.generation
    note = (
        f"This file holds {full['topics']:,} of {len(found.by_id):,} topics, {full['entities']:,} of "
        f"{counts.get('entities', 0):,} entities and {full['texts']:,} texts in full, as of generation {generation}."
    )
    views["overview?"] = {**overview, "note": note}
    return page({"views": views, "names": names, "generation": generation}), full


def _cited(data: Any) -> Iterable[str]:
    """Ids of the text units that a view cites, wherever they stand in it."""
    if isinstance(data, dict):
        for key, value in cast(Data, data).items():
            if key == "cites":
                yield from (cite["id"] for cite in value)
            else:
                yield from _cited(value)
    elif isinstance(data, list):
        for value in cast(list[Any], data):
            yield from _cited(value)


# ---- over HTTP -----------------------------------------------------------------------------------


BASE = "/explore"
LAUNCHERS = "explore"  # the folder of a home for files that lead a browser to the page
DAY = 86_400  # seconds
UPLOAD = f"{BASE}/upload"
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


@contextmanager
def redirecting(home: Path, address: str) -> Generator[Path]:
    """A file that leads a browser to `address`, which only this user may read, while this lasts. An
    address that holds a token must not be an argument of a browser: others see the list of processes."""
    folder = home / LAUNCHERS
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    old = time.time() - DAY
    for path in folder.glob("*.html"):  # of processes that were killed
        with suppress(OSError):
            if path.stat().st_mtime < old:
                path.unlink()
    path = folder / f"{secrets.token_hex(8)}.html"
    text = (
        '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
        f'<meta http-equiv="refresh" content="0;url={html.escape(address)}">'
        f'<title>graphrag-mcp</title><a href="{html.escape(address)}">The explorer page</a>\n'
    )
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def routes(app: App, corpus: str = "", once: OneTime | None = None) -> list[tuple[str, str, Handler]]:
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

    document = page({"exchange": True} if exchange else None)
    policy = f"{policy_of(document)}; frame-ancestors 'none'"
    headers = {**HEADERS, "Content-Security-Policy": policy}
    return Response(document, 200, headers, "text/html; charset=utf-8")


async def _session(once: OneTime, request: Request) -> Response:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    session = once.exchange(token.strip()) if scheme.lower() == "bearer" else ""
    if session:
        return json_response({"token": session})
    return json_response({"error": "this address was used before"}, 401)


def caller(app: App, request: Request, as_owner: bool) -> None:
    """Say in this context who calls: the name of the token, which the door has checked, or with
    `as_owner` the user of this machine."""
    user = request.scope.get("user")
    SUBJECT.set("" if as_owner else str(getattr(user, "display_name", "") or ""))
    SHOW_SECRETS.set(app.settings.show_secrets)
    TELL_PATHS.set(as_owner)
    HOME.set(app.home)


async def _data(app: App, corpus: str, as_owner: bool, request: Request) -> Response:
    """The data of a view; errors as {"error"} in words for a person, without advice for agents."""
    from starlette.concurrency import run_in_threadpool

    from graphrag_mcp.explorer.data import load

    arguments = dict(request.query_params)
    caller(app, request, as_owner)
    try:
        name = arguments.pop("corpus", "") or corpus
        return json_response(await run_in_threadpool(load, app, request.path_params["view"], arguments, name))
    except GraphRAGError as error:
        status = 400 if isinstance(error, BadInput) else 404
        return json_response({"error": f"{error.what[:1].upper()}{error.what[1:]}."}, status)


async def body_of(request: Request, most: int) -> bytes | None:
    """The body of a request; None for one of over `most` bytes, of which no more is read, and where the
    client has gone away, who hears no answer."""
    from starlette.requests import ClientDisconnect

    parts, size = list[bytes](), 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > most:
                return None
            parts.append(part)
    except ClientDisconnect:
        return None
    return b"".join(parts)


def json_response(value: Any, status: int = 200) -> Response:
    """The value as JSON that no cache keeps and no page renders."""
    from starlette.responses import Response

    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    headers = {**HEADERS, "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'"}
    return Response(text.encode("utf-8", "replace"), status, headers, "application/json")
