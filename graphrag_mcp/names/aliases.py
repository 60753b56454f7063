"""Names of one text that mean the same: acronyms that it spells out, short forms that it introduces, and the
shorter names of people."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping

from graphrag_mcp.names import chinese
from graphrag_mcp.names import lexicon as lex

Span = tuple[int, int]

_ACRONYM = re.compile(r"[A-Z][A-Za-z0-9]?[A-Z0-9&./-]{0,8}[A-Z0-9]?s?")
_BEFORE_BRACKET = re.compile(r"(?<![\w.-])([A-Z][A-Za-z0-9&.-]{1,9}) ?$")
_BRACKET = re.compile(r"[(（]([^()（）\n]{2,90})[)）]")
_WORDS = re.compile(r"[^\W_]+")
_APART = re.compile(r"[^\w \n&/’'.-]")  # between two words of a name that is spelled out


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
            whole = word.start(), words[-1].end()
            return None if _APART.search(text, word.start(), end) else whole
    return None


def short_names(first_at: Mapping[str, int], people: Collection[str]) -> dict[str, str]:
    """Family names and given names alone, each with the one person of the text whose full name they
    shorten; a name without the name in the middle, behind the full one (John Adams, the father of John Quincy
    Adams, stands before him).

    Takes and gives keys. `first_at`: where each stands first. `people`: those that are of people."""
    full: dict[str, set[str]] = defaultdict(set)
    for key in sorted(people, key=lambda key: (-key.count(" "), key)):
        words = key.split(" ")
        shortened = len(full[key]) == 1 and first_at[min(full[key])] < first_at[key]
        if 2 <= len(words) <= 3 and not shortened:  # Brian Ripley, behind Brian D. Ripley
            for form in {words[0], words[-1], f"{words[0]} {words[-1]}"} - {key}:
                full[form].add(key)
    found: dict[str, str] = {}
    for key in first_at:
        if len(full[key]) == 1 and len(key) > 2:
            person = min(full[key])
            if " " not in key or first_at[key] > first_at[person]:
                found[key] = person
    return found
