"""Source code as a kind of document: which files are of it, and what they define."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from graphrag_mcp.code.languages import grammars_installed, language_of
from graphrag_mcp.plugins import ReadingPlugin

if TYPE_CHECKING:
    from graphrag_mcp.code.symbols import SourceFile


class SourceCode(ReadingPlugin):
    """What reading asks the plug-in for source code."""

    def knows(self, uri: str) -> bool:
        return bool(language_of(uri))

    def outline(self, uri: str, text: str) -> SourceFile | None:
        from graphrag_mcp.code.parse import parse

        return parse(uri, text)

    def parameters(self) -> Mapping[str, Any]:
        return {"grammars": grammars_installed()}


PLUGIN = SourceCode()
