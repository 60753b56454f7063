"""The symbols of a file of source code as names of its text units, and what the corpus has to know of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from graphrag_mcp.code.parse import parse_prose
from graphrag_mcp.code.symbols import HEAD, NAME, SourceFile, Symbol, UnitSpan, called, dumped
from graphrag_mcp.index.extract import Mentions, Named, UnitNames
from graphrag_mcp.index.extract.plugin import ExtractingPlugin
from graphrag_mcp.plugins import Outline
from graphrag_mcp.text.spans import Unit


def title_of(symbol_name: str, kind: str, parent_kind: str) -> str:
    """`requests.sessions` of a module, `Session.send` of a method, the bare name of others."""
    if kind == "module":
        return called(symbol_name)
    parts = symbol_name.split(".")
    return ".".join(parts[-2:]) if parent_kind not in ("module", "") else parts[-1]


class SymbolExtractor:
    """The symbols of a file of source code, as names of the text units in which they begin."""

    def __init__(self, file: SourceFile) -> None:
        self.file = file

    def extract(self, unit: Unit, id: str, text: str) -> tuple[UnitNames, Mentions]:
        """The symbols that begin in the text unit, and that in which it begins."""
        file, start, core, end = self.file, unit.span.start, unit.passages[0].start, unit.span.end
        symbols = file.begin_in(core, end)
        symbols = [*(symbol for symbol in file.around(core)[:1] if symbol.start < core), *symbols]
        named: dict[str, Named] = {}
        places = []
        for symbol in symbols:
            key = file.key(symbol.name)
            if key not in named or symbol is file.by_name.get(symbol.name):
                parent = file.by_name.get(symbol.parent)
                title = title_of(symbol.name, symbol.kind, parent.kind if parent else "")
                named[key] = replace(_definition(symbol, title, id, text, start), key=key)
                places.append((max(symbol.start, core) - start, key))
        return UnitNames(id, text, [*named.values()], []), places


def _definition(symbol: Symbol, title: str, id: str, text: str, start: int) -> Named:
    last = min(symbol.end - start, len(text))
    first = min(max(symbol.start - start, 0), max(len(text) - 1, 0))
    quoted = min(max(last, first + 1), first + HEAD)
    line = text.rfind("\n", first + 1, quoted)
    quoted = line if quoted == first + HEAD and line > first else quoted
    description = " ".join(filter(None, [symbol.signature, symbol.doc])) or f"Module {title}."
    description = description if symbol.start >= start else ""
    at = ([first, quoted], first, max(last, first + 1))
    return Named(symbol.name, id, title, symbol.kind, True, 1, *at, "", description, NAME)


class SourceCode(ExtractingPlugin):
    """What source code extracts from one document (`index/extract/plugin.py`)."""

    def extractor(self, outline: Outline) -> SymbolExtractor:
        assert isinstance(outline, SourceFile)
        return SymbolExtractor(outline)

    def facts(self, uri: str, text: str, outline: Outline | None, units: Mapping[str, Unit]) -> str | None:
        """What is needed to resolve names; None of a document that names no symbol."""
        assert outline is None or isinstance(outline, SourceFile)
        file = outline or parse_prose(uri, text)
        spans = [UnitSpan(id, unit.passages[0].start, unit.span.start, unit.span.end) for id, unit in units.items()]
        return dumped(file, spans) if file else None


PLUGIN = SourceCode()
