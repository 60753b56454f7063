"""Names of one text that mean the same: acronyms that it spells out, short forms that it introduces, and the
shorter names of people."""

from __future__ import annotations

import re
from collections.abc import Iterable

from graphrag_mcp.names import chinese
from graphrag_mcp.names import lexicon as lex
from graphrag_mcp.text.terms import lists_of

Span = tuple[int, int]

_ACRONYM = re.compile(r"[A-Z][A-Za-z0-9]?[A-Z0-9&./-]{0,8}[A-Z0-9]?s?")
_BEFORE_BRACKET = re.compile(r"(?<![\w.-])([A-Z][A-Za-z0-9&.-]{1,9}) ?$")
_BRACKET = re.compile(r"[(（]([^()（）\n]{2,90})[)）]")
_WORDS = re.compile(r"[^\W_]+")


def introduced(text: str) -> dict[Span, Span]:
    """The short names that a text introduces beside their long form, with that form: World Health
    Organization (WHO), WHO (World Health Organization), 世界卫生组织（简称世卫组织）."""
    found: dict[Span, Span] = {}
    for match in _BRACKET.finditer(text):
        begin, (start, end) = match.start(), match.span(1)
        inner = match[1].rstrip(" ;,")
        if _ACRONYM.fullmatch(inner):
            if long := _spelled(text, inner, max(0, begin - 120), begin):
                found[start, start + len(inner)] = long
        elif before := _BEFORE_BRACKET.search(text, max(0, begin - 12), begin):
            long = _spelled(text, before[1], start, end)
            if long and long[0] == start:
                found[before.span(1)] = long
    if "称" in text or "稱" in text:
        found.update(chinese.shortened(text))
    return found


def _spelled(text: str, acronym: str, start: int, end: int) -> Span | None:
    """The words before `end` whose initials are the acronym's letters, small words skipped."""
    letters = [ch.lower() for ch in acronym.removesuffix("s") if ch.isalnum()]
    words = list(_WORDS.finditer(text, start, end))
    if sum(map(str.isupper, acronym)) < 2 or not words:
        return None
    for word in reversed(words):
        if word[0][0].lower() == letters[-1] and (len(letters) > 1 or word[0] not in lex.SMALL_WORDS):
            letters.pop()
        elif word[0].lower() not in lex.SMALL_WORDS:
            return None
        if not letters:
            return word.start(), words[-1].end()
    return None


def short_names(keys: Iterable[str], people: Iterable[str]) -> dict[str, str]:
    """Of these keys the family and given names, each with the one person of the text whose full name it shortens.
    `people`: the keys of people."""
    full = lists_of(
        (form, key) for key in people if 2 <= len(words := key.split(" ")) <= 3 for form in {words[0], words[-1]}
    )
    return {key: full[key][0] for key in keys if len(key) > 2 and len(full[key]) == 1}
