"""The type of a name without a model: by its own words, by what the text says it is, by the words
beside it. "" where nothing tells it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from graphrag_mcp.names import lexicon as lex

_DEFINED = re.compile(
    r"(?: \([^()\n]{0,90}\))?(?:,? (?:is|was|are|were)|,) (?:an?|the|one of the) (?P<what>[^.;:,\n]{3,90}?)"
    r"(?:[.;:,\n]|\Z| (?:in|of|by|for|who|that|which|from|to|as|on|at|with|but|than|and)\b)"
)
# A person speaks, or does something in the past.
_SPEAKS, _ACTED = re.compile(r",? who\b| (?:said|says|told|wrote|thinks|believes)\b"), re.compile(r" [a-z]+ed\b")
_STOP = re.compile(r"[,.;:)!?\n]|\Z| (?:and|on|in|for|the|an?)\b")


def by_form(words: Sequence[str]) -> str:
    """The type of a name by the noun with which it ends, or that stands before its "of": Stanford
    University, Battle of Hastings, Acme Inc., J. Smith. "" if it is unknown."""
    last, first = words[-1].lower().rstrip("."), words[0].lower()
    if len(words) < 2:
        return ""
    if last in lex.COMPANY_FORMS:
        return "organization"
    kind = lex.NOUN_TYPES.get(last) or lex.NOUN_TYPES.get(first, "")
    if kind and kind != "person":
        return kind
    initial = any(len(word.rstrip(".")) == 1 and word[0].isupper() for word in words[:-1])
    return "person" if initial and words[-1].istitle() else ""


def kind_of(text: str, start: int, end: int, words: Sequence[str], titled: bool) -> str:
    """The type of a mention of a name, "" if it is unknown. `titled`: the title of a person stands
    before it."""
    kind = by_form(words) or ("person" if titled else "")
    return kind or _by_definition(text, end) or _by_neighbours(text, start, end, words)


def _by_definition(text: str, end: int) -> str:
    """Marie Curie, a Polish physicist."""
    found = _DEFINED.match(text, end)
    predicate = found["what"].split() if found else []
    return noun_type(predicate[-1].lower()) if 0 < len(predicate) <= 6 else ""


def noun_type(noun: str) -> str:
    """The type of things that this noun means, "" if it is unknown; of people also by its ending
    (violinist)."""
    kind = lex.NOUN_TYPES.get(noun, "")
    return kind or ("person" if len(noun) > 5 and noun.endswith(("ist", "ician")) else "")


def word_before(text: str, at: int) -> str:
    """The word in the 28 characters before an offset, if a blank (and opening marks) separate it from that; else ""."""
    before = text[max(0, at - 28) : at].rstrip("\"“‘'(*_`[")
    return before.split()[-1] if before[-1:].isspace() and before.strip() else ""


def _by_neighbours(text: str, start: int, end: int, words: Sequence[str]) -> str:
    last = word_before(text, start)
    if kind := noun_type(last):
        return kind if kind != "location" else ""  # the film Titanic
    if 1 < len(words) < 4:
        if last == "said" or _SPEAKS.match(text, end):
            return "person"
        # of "by" and a verb only rare words are a person's name: directed by Raoul Walsh, Clara Whitlock opened
        if (last == "by" or _ACTED.match(text, end)) and not any(lex.ordinary(word.lower()) for word in words):
            return "person"
    place = len(words) < 3 and last.lower() in lex.PLACE_PREPOSITIONS
    return "location" if place and _STOP.match(text, end) else ""
