"""What a plug-in (`plugins.py`) extracts from one document. A process of the executor does this, so it
imports no tables and no models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from graphrag_mcp.index.extract import Extractor
from graphrag_mcp.plugins import Outline, plugged
from graphrag_mcp.text.spans import Unit

UNLINKED = "{}"  # `links` of a row of facts that was not linked yet


class ExtractingPlugin(Protocol):
    def extractor(self, outline: Outline) -> Extractor:
        """What reads the text units of a document of its kind."""
        ...

    def facts(self, uri: str, text: str, outline: Outline | None, units: Mapping[str, Unit]) -> str | None:
        """What the corpus has to know of a document of any kind, as JSON; None for nothing. `outline`:
        the document, where this plug-in reads it; `units`: its text units by id."""
        ...


def plugins() -> Mapping[str, ExtractingPlugin]:
    """By name."""
    return plugged("extracting")
