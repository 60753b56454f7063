"""The tools `search` and `fetch`, which connectors of chat applications ask for by these names,
with exactly the fields that they read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

from mcp.types import CallToolResult, TextContent
from pydantic import BaseModel, Field

from graphrag_mcp.app import App
from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.tools.contract import Query, Text, argument
from graphrag_mcp.tools.resources import CHARACTERS, document_row
from graphrag_mcp.tools.results import Ctx, encodable, serve
from graphrag_mcp.types import Result

if TYPE_CHECKING:
    from graphrag_mcp.store.tables import Snapshot

RESULTS_TOKENS = 4_000
LINKS = (
    "url",
    "source_url",
    "link",
    "source",
)  # metadata in which documents keep their address on the web

FetchId = argument(Text, "An id from search", "id result_id document_id ids")


class Found(BaseModel):
    id: str
    title: str
    url: str


class Searched(BaseModel):
    results: list[Found] = Field(default_factory=list)


class Fetched(BaseModel):
    id: str = ""
    title: str = ""
    text: str = ""
    url: str = ""
    metadata: dict[str, str] = Field(default_factory=dict)


class _Carrier(Result):
    """What travels through `serve`, which knows results of ours only."""

    body: dict[str, Any] = Field(default_factory=dict)


async def search(query: Query, ctx: Ctx) -> Annotated[CallToolResult, Searched]:
    """Search the indexed documents. Gives results with an id each; fetch gives the text behind an
    id.
    """

    def work(app: App) -> Result:
        from graphrag_mcp.query.local import local_search

        corpus = app.corpus_for_reading("")
        snapshot = app.snapshot(corpus)
        if not query.strip():
            raise BadInput(
                "the query is empty", 'Ask something, e.g. search(query="who built it?")'
            )
        found = []
        for one in local_search(snapshot, query, max_tokens=RESULTS_TOKENS).citations:
            url = _address(snapshot, corpus, one.id, one.document_id)
            found.append(Found(id=f"{corpus}/{one.id}", title=one.title or one.uri, url=url))
        return _Carrier(body=Searched(results=found).model_dump())

    return _plain(await serve(ctx, "search", work, _Carrier(body=Searched().model_dump())))


async def fetch(id: FetchId, ctx: Ctx) -> Annotated[CallToolResult, Fetched]:
    """The text behind an id of search, with its title, address and where it stands."""

    def work(app: App) -> Result:
        from graphrag_mcp.query.lookup import get_source

        corpus, _, alias = id.strip().rpartition("/")
        name = app.corpus_for_reading(corpus)
        snapshot = app.snapshot(name)
        sources = get_source(snapshot, [alias], max_tokens=10_000).sources
        if not sources:
            raise NotFound(f"there is no text {id[:80]!r}", "Take ids from search")
        first = sources[0]
        texts = [str(_text(snapshot, one)) for one in sources]
        place = {
            key: str(first[key])
            for key in ("uri", "line_start", "char_start", "char_end")
            if key in first
        }
        body = Fetched(
            id=f"{name}/{alias}",
            title=str(first["title"]),
            text="\n\n".join(texts)[:CHARACTERS],
            url=_address(snapshot, name, alias, str(first["document_id"])),
            metadata=place,
        )
        return _Carrier(body=body.model_dump())

    return _plain(await serve(ctx, "fetch", work, _Carrier(body=Fetched(id=id[:80]).model_dump())))


def _text(snapshot: Snapshot, source: dict[str, Any]) -> str:
    """The exact characters of a source, from its document."""
    row = document_row(snapshot, source["document_id"])
    return row["text"][source["char_start"] : source["char_end"]] if row else ""


def _address(snapshot: Snapshot, corpus: str, alias: str, document_id: str) -> str:
    """The document's own address on the web where its metadata has one, else that of the resource."""
    row = document_row(snapshot, document_id)
    held = json.loads(row["metadata"] or "{}") if row else {}
    for name in LINKS:
        value = held.get(name) if isinstance(held, dict) else None
        if isinstance(value, str) and value.startswith(("http://", "https://")):
            return value
    return f"graphrag://{corpus}/text_unit/{alias}"


def _plain(result: CallToolResult) -> CallToolResult:
    """Only the fields these hosts know, in both channels."""
    body = encodable((result.structured_content or {}).get("body", {}))
    text = json.dumps(body, ensure_ascii=False)
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=body)
