"""Kinds of documents that are no prose, as source code is: what a package may plug in, and which do.

A plug-in is a package with four modules, each with an object `PLUGIN`: `reading` (`ReadingPlugin`,
here), `extracting` (`index/extract/plugin.py`), `indexing` (`index/plugin.py`) and `searching`
(`query/plugin.py`). No other package imports it: they ask for it here, by its name. The name is also
that of the table in which the plug-in keeps what it knows of a document, and `by` of what it finds in a
text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from typing import Any, ClassVar, Protocol

PLUGGED = {"code": "graphrag_mcp.code"}  # package by the name of its plug-in


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a document as an outline lists it. Offsets are characters of the document's text;
    `depth` 0: it lies in no other part."""

    start: int
    end: int
    depth: int
    title: str
    about: str = ""  # what the document says of it in short


class Outline(Protocol):
    """A document as a plug-in read it."""

    by: ClassVar[str]  # the name of the plug-in

    def breaks(self, text: str) -> Mapping[int, int]:
        """Where its parts begin: offset -> depth, 1 for the outermost. They are cut there."""
        ...

    def names(self, start: int, end: int) -> Sequence[str]:
        """The names that are defined between two offsets. A passage is also found by these."""
        ...

    def parts(self) -> Sequence[Part]:
        """Its parts in reading order; [] where it has none, and headings are looked for."""
        ...


class ReadingPlugin(Protocol):
    """What reads a document of this kind."""

    def knows(self, uri: str) -> bool:
        """Is the document of this kind, by the name of its file? Its text is shown as it is, line by
        line, and is called by its path."""
        ...

    def outline(self, uri: str, text: str) -> Outline | None:
        """The document; None where it is of another kind, or cannot be read."""
        ...

    def parameters(self) -> Mapping[str, Any]:
        """What its rows depend on besides the documents, by name, as JSON has it."""
        ...


@cache
def plugged(part: str) -> Mapping[str, Any]:
    """The objects of one part (`reading`, `extracting`, ...), by the names of the plug-ins."""
    return {name: import_module(f"{package}.{part}").PLUGIN for name, package in PLUGGED.items()}


def readers() -> Mapping[str, ReadingPlugin]:
    """By name what reads each kind of document that is plugged in."""
    return plugged("reading")


@lru_cache(10_000)
def verbatim(uri: str) -> bool:
    """Is the text of this document shown as it is, line by line, since a plug-in knows its kind?"""
    return any(reader.knows(uri) for reader in readers().values())


def outline(uri: str, text: str) -> Outline | None:
    """The document as the first plug-in that can read it does; None for prose."""
    found = (reader.outline(uri, text) for reader in readers().values())
    return next((candidate for candidate in found if candidate is not None), None)


def parameters() -> dict[str, Any]:
    """What the rows of all plug-ins depend on besides the documents."""
    return {name: value for reader in readers().values() for name, value in reader.parameters().items()}
