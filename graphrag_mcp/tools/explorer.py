"""The explorer as an MCP App: its resource, and the tool `explore_data` of the page alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mcp.types import CallToolResult

from graphrag_mcp.tools.contract import SHOWN, Ctx, apart, desk_of, sendable, sent

if TYPE_CHECKING:
    from mcp.server.extension import Extension
    from mcp.server.mcpserver.tools import Tool

TOOL = "explore_data"
URI = "ui://graphrag/explore.html"


async def explore_data(
    ctx: Ctx, view: str, id: str = "", to: str = "", under: str = "", query: str = "", since: str = "", corpus: str = ""
) -> CallToolResult:
    """Data of one view of the explorer page. For the page itself."""
    app = desk_of(ctx).app
    arguments = {"id": id, "to": to, "under": under, "query": query, "since": since}

    def work() -> dict[str, Any]:
        from graphrag_mcp.explorer.data import load

        return load(app, view, arguments, corpus)

    found = await apart(ctx, "explore_data", work)
    return sent(f"Data of the view {view} for the explorer page.", sendable(found))


def extension(tools: Iterable[Tool]) -> list[Extension]:
    """The extension with the page, where one of the tools is shown by it; these tools get their `_meta`."""
    from mcp.server.apps import Apps

    shown = [tool for tool in tools if tool.name in SHOWN]
    if not shown:
        return []
    from graphrag_mcp.explorer.page import page

    for tool in shown:
        # some hosts know the flat key
        tool.meta = {"ui": {"resourceUri": URI}, "ui/resourceUri": URI}
    apps = Apps()
    about = "The knowledge graph as a page: topics, names, sources"
    document = page({"app": True})
    apps.add_html_resource(URI, document, name="explorer", title="Explorer", description=about)
    return [apps]
