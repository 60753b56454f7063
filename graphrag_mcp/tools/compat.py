"""The tools `search` and `fetch`, which connectors of chat applications ask for by these names,
with exactly the fields that they read."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from mcp.types import CallToolResult
from pydantic import BaseModel, Field

from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.packing import sending
from graphrag_mcp.tools.contract import Ctx, apart, desk_of, sendable, sent
from graphrag_mcp.tools.resources import CHARACTERS, document_row

if TYPE_CHECKING:
    from graphrag_mcp.store.tables import Snapshot

RESULTS_TOKENS = 4_000
LINKS = ("url", "source_url", "link", "source")  # metadata that may hold a document's web address


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


async def search(query: str, ctx: Ctx) -> Annotated[CallToolResult, Searched]:
    """Search the indexed documents. Gives results with an id each; fetch gives the text behind an
    id."""
    from graphrag_mcp.query.local import local_search

    def work() -> BaseModel:
        app = desk_of(ctx).app
        corpus = app.corpus_for_reading("")
        snapshot = app.snapshot(corpus)
        if not query.strip():
            example = 'Ask something, e.g. search(query="who built it?")'
            raise BadInput("the query is empty", example)
        found = Searched()
        for citation in local_search(snapshot, query, max_tokens=RESULTS_TOKENS).citations:
            url = _address(snapshot, corpus, citation.id, citation.document_id)
            title = citation.title or citation.uri
            found.results.append(Found(id=f"{corpus}/{citation.id}", title=title, url=url))
        return found

    return await _plain(ctx, "search", work)


async def fetch(id: str, ctx: Ctx) -> Annotated[CallToolResult, Fetched]:
    """The text behind an id of search, with its title, address and where it stands."""
    from graphrag_mcp.query.source import get_source

    def work() -> BaseModel:
        app = desk_of(ctx).app
        corpus, _, alias = id.strip().rpartition("/")
        name = app.corpus_for_reading(corpus)
        snapshot = app.snapshot(name)
        sources = get_source(snapshot, [alias], max_tokens=10_000).sources
        if not sources:
            raise NotFound(f"there is no text {id[:80]!r}", "Take ids from search")
        first = sources[0]
        texts = [_text(snapshot, source) for source in sources]
        place = ("uri", "line_start", "char_start", "char_end")
        return Fetched(
            id=f"{name}/{alias}",
            title=str(first["title"]),
            text="\n\n".join(texts)[:CHARACTERS],
            url=_address(snapshot, name, alias, str(first["document_id"])),
            metadata={key: str(first[key]) for key in place if key in first},
        )

    return await _plain(ctx, "fetch", work)


def _text(snapshot: Snapshot, source: dict[str, Any]) -> str:
    row = document_row(snapshot, source["document_id"])
    return row["text"][source["char_start"] : source["char_end"]] if row else ""


def _address(snapshot: Snapshot, corpus: str, alias: str, document_id: str) -> str:
    """The document's own address on the web where its metadata has one, else that of the resource."""
    row = document_row(snapshot, document_id)
    metadata: dict[str, Any] = json.loads(row["metadata"] or "{}") if row else {}
    links = [str(metadata.get(name, "")) for name in LINKS]
    web = next((link for link in links if link.startswith(("http://", "https://"))), "")
    return web or f"graphrag://{corpus}/text_unit/{alias}"


async def _plain(ctx: Ctx, tool: str, work: Callable[[], BaseModel]) -> CallToolResult:
    """Only the fields that these hosts know, in both channels."""
    body = sendable(sending.shown((await apart(ctx, tool, work)).model_dump()))
    return sent(json.dumps(body, ensure_ascii=False), body)
