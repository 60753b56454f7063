"""What the page does beside reading: uploads, originals, the watch of folders, and the state of the
server. Indexing, removing and undoing are calls of the tools (tools/api.py).

Nothing that writes is there for a server that only reads. A request that writes has the content type
of JSON or of bytes, which a browser sends to another origin only after a question that is not
answered here."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from graphrag_mcp.errors import BadInput, GraphRAGError, NotFound, OutsideRoots
from graphrag_mcp.explorer import files
from graphrag_mcp.explorer.page import BASE, HEADERS, UPLOAD, Handler, body_of, caller, json_response
from graphrag_mcp.jobs.watch import Watches
from graphrag_mcp.trust.fencing import SHOW_SECRETS, spans
from graphrag_mcp.types import is_object

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from graphrag_mcp.app import App

LONGEST = 10_000  # bytes of a request that is no upload
BYTES = "application/octet-stream"


class Manager:
    """The routes of one app. `tools`: names of the tools that the server offers; `corpus`: that of a
    request which names none; with `local` the caller is the user of this machine. `watches`: may
    folders be watched, which one of several workers cannot say for the others?"""

    def __init__(self, app: App, corpus: str, tools: Collection[str], local: bool, watches: bool = True) -> None:
        self.app, self.corpus, self.tools, self.local = app, corpus, frozenset(tools), local
        self.writes = "index_documents" in self.tools and not app.read_only
        self.uploaded = files.Uploaded()
        self.watches = Watches(app.settings) if watches and self.writes else None

    def routes(self) -> list[tuple[str, str, Handler]]:
        """(path, method, handler) of the page."""
        found: list[tuple[str, str, Handler]] = [
            (f"{BASE}/state", "GET", partial(self._answered, self._state)),
            (f"{BASE}/original", "GET", partial(self._answered, self._original)),
            (f"{files.FILE}{{ticket:path}}", "GET", self._file),
        ]
        if self.writes:
            found.append((UPLOAD, "POST", self._upload))
            found.append((f"{BASE}/removed", "GET", partial(self._answered, self._removed)))
            found.append((f"{BASE}/price", "GET", partial(self._answered, self._price)))
        if self.watches:
            found.append((f"{BASE}/watch", "POST", partial(self._answered, self._watch)))
        if self.local:
            found.append((f"{BASE}/folder", "POST", partial(self._answered, self._folder)))
        return found

    async def _answered(self, work: Any, request: Request) -> Response:
        """The JSON that `work` makes of the parameters of a request, in a thread."""
        from starlette.concurrency import run_in_threadpool

        caller(self.app, request, self.local)
        arguments: Mapping[str, Any] = dict(request.query_params)
        if request.method == "POST":
            if not _has_type(request, "application/json"):
                return json_response({"error": "The content type must be application/json."}, 415)
        try:
            if request.method == "POST":
                arguments = await _object_of(request)
            return json_response(await run_in_threadpool(work, arguments))
        except GraphRAGError as error:
            return _failed(error)

    def _state(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        app = self.app
        try:
            name, empty = app.corpus_for_reading(self._named(arguments)), False
        except NotFound:
            if app.corpora():
                raise
            name, empty = app.corpus_for_writing(self._named(arguments)), True
        try:
            uploads = files.path_for_caller(app, files.folder_of_uploads(app)) if self.writes else ""
        except BadInput:
            uploads = ""
        return {
            "corpus": name,
            "corpora": app.corpora(),
            "empty": empty,
            "model": app.settings.chat_model,
            "tools": sorted(self.tools),
            "writes": self.writes,
            "uploads": uploads,
            "most": app.settings.max_file_bytes,
            "roots": [str(root) for root in app.settings.roots] if self.local else [],
            "local": self.local,
            "watches": self.watches is not None,
            "watched": self.watches is not None and self.watches.watched(name),
        }

    def _named(self, arguments: Mapping[str, Any]) -> str:
        return str(arguments.get("corpus") or self.corpus)

    # ---- originals ------------------------------------------------------------------------------

    def _original(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Where a browser opens a document, and the folder of its file."""
        name, found = self._found(arguments)
        folder = str(found.path.parent) if found.path is not None and self.local else ""
        address = files.address_of(name, _number(arguments), found.name)
        return {"address": address, "name": found.name, "folder": folder}

    def _found(self, arguments: Mapping[str, Any]) -> tuple[str, files.Original]:
        name = self.app.corpus_for_reading(self._named(arguments))
        return name, files.original(self.app, name, _number(arguments), self.local)

    async def _file(self, request: Request) -> Response:
        """An original as a browser may show it, by its ticket."""
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import FileResponse, PlainTextResponse, Response

        caller(self.app, request, self.local)
        path = request.scope["path"]
        if files.holder_of(path) is None:
            return PlainTextResponse("This address is no longer valid. Open it again.", 404)
        corpus, n = files.asked_for(path)
        try:
            found = await run_in_threadpool(files.original, self.app, corpus, n, self.local)
        except GraphRAGError as error:
            return PlainTextResponse(f"{error.what}.", 404, HEADERS)
        if found.path is None:
            kind = "text/plain; charset=utf-8"
            headers = {**HEADERS, **files.headers_of(found.name, kind, True)}
            return Response(found.text.encode("utf-8", "replace"), 200, headers)
        try:
            kind, shown = await run_in_threadpool(files.kind_of, found.path)
        except OSError:
            return PlainTextResponse("This file cannot be read.", 404, HEADERS)
        headers = {**HEADERS, **files.headers_of(found.name, kind, shown)}
        if not self.local and not self.app.settings.show_secrets:
            try:
                text = await run_in_threadpool(files.for_others, found.path, kind)
            except GraphRAGError as error:
                message = f"{error.what[:1].upper()}{error.what[1:]}."
                return PlainTextResponse(message, 403, HEADERS)
            if text is not None:
                return Response(text, 200, headers)
        return FileResponse(found.path, 200, headers, media_type=kind)

    def _folder(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Open the folder of a document, or that of the uploads, on this machine."""
        if arguments.get("id"):
            _, found = self._found(arguments)
            if found.path is None:
                raise BadInput("this document was given as text and has no file", "Read it here")
            path = found.path
        else:
            path = files.folder_of_uploads(self.app)
            path.mkdir(parents=True, exist_ok=True)
        files.show_folder(path)
        return {"folder": str(path if path.is_dir() else path.parent)}

    # ---- writing --------------------------------------------------------------------------------

    async def _upload(self, request: Request) -> Response:
        """Write a file to the folder of uploads; the page has it indexed afterwards."""
        from starlette.requests import ClientDisconnect

        caller(self.app, request, self.local)
        if not _has_type(request, BYTES):
            return json_response({"error": f"The content type must be {BYTES}."}, 415)
        arguments = request.query_params
        name, replace = arguments.get("name", ""), arguments.get("replace") == "1"
        try:
            path, size = await files.added(self.app, name, replace, request.stream(), self.uploaded)
        except files.Exists as error:
            return json_response({"error": f"{error}", "exists": True}, 409)
        except GraphRAGError as error:
            return _failed(error)
        except ClientDisconnect:  # no client is left; the partial file is deleted
            return json_response({"error": "The upload was broken off."}, 400)
        except OSError as error:
            return json_response({"error": f"It could not be written: {error.strerror}."}, 500)
        return json_response({"path": files.path_for_caller(self.app, path), "bytes": size})

    def _removed(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """A text that was taken out, for its undo. What the page sends back is indexed, so it is given
        whole or not at all."""
        from graphrag_mcp.explorer.library import kept_text

        name = self.app.corpus_for_reading(self._named(arguments))
        uri = str(arguments.get("uri", ""))
        found = self.app.newest(name, partial(kept_text, uri=uri))
        if not self.local and not SHOW_SECRETS.get() and spans(found["text"]):
            what = "this text holds a credential and is not given to others: paste it again"
            raise BadInput(what, "Paste it again")
        return found

    def _watch(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Index the folders of a corpus after every change of a file, or no longer."""
        from graphrag_mcp.explorer.library import folders_of
        from graphrag_mcp.store import manifest as manifests

        assert self.watches is not None
        name, on = self.app.corpus_for_reading(self._named(arguments)), arguments.get("on") is True
        manifest = manifests.read(self.app.folder(name))
        paths = folders_of(manifest) if manifest else []
        if not self.local:
            what = "a folder of this index is outside the folders this server may read"
            advice = "Watch it on the machine of the server"
            paths = [str(files.allowed(self.app, path, what, advice)) for path in paths]
        self.watches.set(name, paths, on)
        return {"watched": self.watches.watched(name)}

    def _price(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """What the next run would ask of the model, and its price by the settings."""
        from graphrag_mcp.index.pipeline import index_documents
        from graphrag_mcp.types import IndexRequest

        name = self.app.corpus_for_reading(self._named(arguments))
        request = IndexRequest(dry_run=True)
        found = index_documents(self.app.folder(name), request, self.app.settings).estimate
        return {"model": self.app.settings.chat_model, **found}


def _number(arguments: Mapping[str, Any]) -> int:
    text = str(arguments.get("id", "")).strip().removeprefix("d")
    if not text.isascii() or not text.isdigit() or len(text) > 12:
        raise BadInput(f"{text[:40]!r} is no document", "Choose one from a list")
    return int(text)


def _has_type(request: Request, media_type: str) -> bool:
    content_type = request.headers.get("content-type", "").partition(";")[0]
    return content_type.strip().lower() == media_type


async def _object_of(request: Request) -> Mapping[str, Any]:
    """The body of a request. BadInput for what is no object: what it asks for must not be guessed."""
    found, body = None, await body_of(request, LONGEST)
    if body is not None:
        with suppress(ValueError, RecursionError):
            found = json.loads(body)
    if not is_object(found):
        raise BadInput(f"the request is no JSON object of at most {LONGEST} bytes", "Send one")
    return found


def _failed(error: GraphRAGError) -> Response:
    """An error in words for a person, without advice for agents."""
    status = 404 if isinstance(error, NotFound) else 403 if isinstance(error, OutsideRoots) else 400
    return json_response({"error": f"{error.what[:1].upper()}{error.what[1:]}."}, status)
