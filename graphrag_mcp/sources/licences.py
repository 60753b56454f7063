"""Licence texts: a file that is the standard text of a licence says nothing on what its folder is about,
and its thousands of words would answer questions on vendors, terms and costs."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from functools import cache

from graphrag_mcp.sources.piece import NotRead, Piece
from graphrag_mcp.text.citing import LICENCE

# Share of the words that a text and a template have in common. 283 of the 350 licence files of a
# Python installation have it (the others hold several licences, or point to one), no text of MuSiQue.
SAME = 0.9
TERMS = "terms of a known licence (name the file to index all of it)"
HEAD = 2  # paragraphs that are kept: the name of the licence, and whose rights it is about
_WORD = re.compile(r"[^\W_]+")
# Each template holds one of these; most other texts hold none, and their words are not counted.
_SIGNS = ("licen", "copyright", "warrant")
_PARAGRAPHS = re.compile(r"\n[ \t]*\n\s*")


def licence_of(text: str) -> str:
    """The SPDX identifier of the licence that the whole text is, "" for another text.

    Compared are counts of words with the templates of the package `identify` (MIT), which have
    the texts of choosealicense.com: of the words of both, the share that both have (Dice 1945)."""
    folded = text.casefold()
    if not any(sign in folded for sign in _SIGNS):
        return ""
    found = _WORD.findall(folded)
    total = len(found)
    near = [
        template
        for template in _templates()
        if abs(template[2] - total) <= (1 - SAME) * (template[2] + total)
    ]
    if not near:
        return ""
    words = Counter(found)
    best = max(
        (2 * _common(words, template) / (total + size), name) for name, template, size in near
    )
    return best[1] if best[0] >= SAME else ""


def _common(words: Counter[str], others: Counter[str]) -> int:
    """How many words two texts share; `words & others` would look at all that only one has."""
    return sum(min(words[word], others[word]) for word in words.keys() & others.keys())


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


@cache
def _templates() -> list[tuple[str, Counter[str], int]]:
    try:
        from identify.vendor.licenses import LICENSES
    except ImportError:  # installed without its dependencies: licences are read whole
        return []
    counted = [(name, Counter(_WORD.findall(text.casefold()))) for name, text in LICENSES]
    return [(name, words, words.total()) for name, words in counted]
