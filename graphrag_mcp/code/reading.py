"""Source code as a kind of document: which files are of it, and what they define."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphrag_mcp.code import grammars
from graphrag_mcp.code.languages import language_of
from graphrag_mcp.code.parse import parse
from graphrag_mcp.code.symbols import SourceFile
from graphrag_mcp.plugins import ReadingPlugin


class SourceCode(ReadingPlugin):
    def knows(self, uri: str) -> bool:
        return bool(language_of(uri))

    def outline(self, uri: str, text: str) -> SourceFile | None:
        return parse(uri, text)

    def parameters(self) -> Mapping[str, Any]:
        return {"grammars": grammars.installed()}


PLUGIN = SourceCode()
