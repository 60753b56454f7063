"""Licence texts: a file that is the text of known licences says nothing on what its folder is about,
and its thousands of words would answer questions on vendors, terms and costs."""

from __future__ import annotations

import re
from dataclasses import replace

from graphrag_mcp.sources.piece import NotRead, Piece
from graphrag_mcp.text.citing import LICENCE

# Percent of a text that has to be the text of licences: all of choosealicense.com have it (at 90 those of Creative
# Commons do not), 383 of the 427 licence files of a Python installation, and no text of the sets.
LEAST = 85.0
TERMS = "terms of a known licence (name the file to index all of it)"
HEAD = 2  # paragraphs that are kept: the name of the licence, and whose rights it is about
# Each licence holds one of these; most other texts hold none, and are not compared.
_SIGNS = ("licen", "copyright", "warrant")
_PARAGRAPHS = re.compile(r"\n[ \t]*\n\s*")


def licence_of(text: str) -> str:
    """The SPDX identifier of the licence that most of the text is, "" where it is no licence."""
    folded = text.casefold()
    if not any(sign in folded for sign in _SIGNS):
        return ""
    try:
        from licenseclassifier import identify_license
    except ImportError:  # installed without its dependencies: licences are read whole
        return ""
    found = identify_license(text, coverage_threshold=LEAST)
    return max(found, key=lambda match: match.end - match.start).id if found else ""


def without_terms(piece: Piece) -> tuple[Piece, NotRead | None]:
    """A licence as its first paragraphs, with the part that is left out; another text as it is."""
    name = licence_of(piece.text)
    if not name:
        return piece, None
    ends = [match.start() for match in _PARAGRAPHS.finditer(piece.text.lstrip())]
    lead = len(piece.text) - len(piece.text.lstrip())
    head = piece.text[: lead + ends[HEAD - 1]] if len(ends) >= HEAD else piece.text
    places = tuple(place for place in piece.places if place[0] < len(head))
    title = piece.title or f"Licence {name}"
    metadata = {**piece.metadata, LICENCE: name}
    return replace(piece, text=head, title=title, places=places, metadata=metadata), NotRead(
        "", TERMS
    )
