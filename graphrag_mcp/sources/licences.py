"""Licence texts: a file that is the text of known licences says nothing on what its folder is about,
and its thousands of words would answer questions on vendors, terms and costs."""

from __future__ import annotations

import re
from dataclasses import replace

from graphrag_mcp.sources.piece import NotRead, Piece
from graphrag_mcp.text.uris import LICENCE

# Percent of a text that has to be the text of licences: all of choosealicense.com have it (at 90 those of Creative
# Commons do not), 383 of the 427 licence files of a Python installation, and no text of the sets.
LEAST = 85.0
TERMS = "terms of a known licence (name the file to index all of it)"
HEAD = 2  # paragraphs that are kept: the name of the licence, and whose rights it is about
# Each licence holds one of these; most other texts hold none, and are not compared.
_SIGNS = ("licen", "copyright", "warrant")
_PARAGRAPHS = re.compile(r"\n[ \t]*\n\s*")


def _spans(text: str) -> list[tuple[int, int, str]]:
    """Where licences stand in a text that is licences for the most part (start, end, SPDX identifier); none
    for another text."""
    folded = text.casefold()
    if not any(sign in folded for sign in _SIGNS):
        return []
    try:
        from licenseclassifier import identify_license
    except ImportError:  # installed without its dependencies: licences are read whole
        return []
    found = identify_license(text, coverage_threshold=LEAST)
    return sorted((match.start, match.end, match.id) for match in found)


def without_terms(piece: Piece) -> tuple[Piece, NotRead | None]:
    """A licence as its first paragraphs and what is no text of a licence, with the part that is left out;
    another text as it is."""
    spans = _spans(piece.text)
    if not spans:
        return piece, None
    licence = max(spans, key=lambda span: span[1] - span[0])[2]
    ends = [match.start() for match in _PARAGRAPHS.finditer(piece.text.lstrip())]
    lead = len(piece.text) - len(piece.text.lstrip())
    at = lead + ends[HEAD - 1] if len(ends) >= HEAD else len(piece.text)
    kept = [(0, at)]
    for start, end, _ in [*spans, (len(piece.text), 0, "")]:
        if piece.text[at:start].strip():
            kept.append((at, start))
        at = max(at, end)
    text, places = "", list[tuple[int, str]]()
    for start, end in kept:
        text += "\n\n" if text else ""
        moved = len(text) - start
        places += [(offset + moved, name) for offset, name in piece.places if start <= offset < end]
        text += piece.text[start:end].rstrip()
    title = piece.title or f"Licence {licence}"
    metadata = {**piece.metadata, LICENCE: licence}
    cut = replace(piece, text=text, title=title, places=tuple(places), metadata=metadata)
    return cut, NotRead("", TERMS)
