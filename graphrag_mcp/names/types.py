"""The type of a name without a model: by its own words, by what the text says it is, by the words
beside it.

Takes a text and the span of a name in it, gives one of the default types or "other". Knows nothing
of how names are found, except those that a line defines ("X is a ...")."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from graphrag_mcp.names.lexicon import (
    AMBIGUOUS_HEADS,
    AT_BODY,
    BY_BODY,
    BY_PERSON,
    COMMON,
    DULL,
    EITHER,
    ENDINGS,
    FAMILY,
    FIRST,
    GIVEN,
    GIVEN_NAMES,
    HEAD_TYPE,
    IN_PLACE,
    IS_PLACE,
    KNOWN,
    LAST,
    NAMES,
    NEVER,
    OF_PERSON,
    OF_PLACE,
    ON_BODY,
    PLACES,
    SAYS_PERSON,
    STARTERS,
    TO_PLACE,
)
from graphrag_mcp.text.folding import UPPER
from graphrag_mcp.text.terms import stop_word

Candidate = tuple[int, int, str, bool]

_DEFINED = re.compile(
    r"(?: \([^()\n]{0,90}\))?(?:,? (?:is|was|are|were)|,) (?:an?|the|one of the) ([^.;:,\n]{3,90})"
)
_BORN = re.compile(r" (?:\((?:[^()\n]{0,60}; )?(?:born|b\.) |was born |, born )")
_DEFINING = frozenset((" (", " i", " w", " a", " ,", ", "))  # how these two begin
_SUBJECT = re.compile(
    rf"^[ \t#*=]{{0,20}}(?:The |A |An )?(?=[\d{UPPER}])([^\n;()]{{1,90}}?)"
    r"(?: \([^()\n]{0,200}\))?,? (?:is|was|are|were) (?:an?|the|one of) ",
    re.MULTILINE,
)
_SMALL = frozenset(
    "of the and in for to a an on at with from by or de der von van la le du ki ap und et y".split()
)
_ARTICLES = frozenset("the a an his her their its film".split())
_BRACKET = re.compile(r" \([^()\n]{0,40}?\b([a-z]+)\)")
_COMMA = re.compile(r", ([A-Z][a-zé]+(?: [A-Z][a-z]+){0,2})")
_ENDS = frozenset(",.;)\n")
_BEHIND = frozenset("in of by for who that which from".split())

# The word before a name, the words of which one stands before that, the type; an example.
BEFORE: tuple[tuple[str, frozenset[str], str, str], ...] = (
    ("in", IN_PLACE, "location", "born in Ashby"),
    ("of", OF_PLACE, "location", "the streets of Selhurst"),
    ("of", OF_PERSON, "person", "the death of Trent"),
    ("to", TO_PLACE, "location", "moved to Durango"),
    ("by", BY_PERSON, "person", "directed by Mara Quill"),
    ("by", BY_BODY, "organization", "released by Northgate"),
    ("on", ON_BODY, "organization", "aired on Sky One"),
    ("at", AT_BODY, "organization", "a professor at Stanford"),
)


def kind_of(text: str, start: int, end: int, words: list[str]) -> str:
    """The type that the name itself or the words around it speak for, else "other"."""
    kind, sure = _by_name(text[start:end], tuple(words))
    if sure:
        return kind
    before = text[max(0, start - 28) : start].rsplit(" ", 4)
    return (
        _by_definition(text, end)
        or _by_noun(before)
        or kind
        or _by_neighbours(text, end, words, before)
        or (HEAD_TYPE.get(words[-1].lower().rstrip("."), "") if len(words) > 1 else "")
        or "other"
    )


@lru_cache(maxsize=1 << 15)
def _by_name(form: str, words: tuple[str, ...]) -> tuple[str, bool]:
    """The type that a name's own words speak for, and whether nothing beside it can say better."""
    first, last = words[0].lower(), words[-1].lower().rstrip(".")
    if len(words) > 1:
        head = HEAD_TYPE.get(last, "") or ("" if last in FAMILY else LAST.get(last, ""))
        initial = len(first) == 2 and first[1] == "." and not common(last)  # U. S. Government
        given = first in GIVEN or initial
        if given and len(words) < 5 and (not head or last in AMBIGUOUS_HEADS):
            if " of " not in form:
                return "person", True  # Marie Curie, J. Smith
        if head and last not in AMBIGUOUS_HEADS:
            return head, True  # Stanford University
        if words[0].isdigit():
            return "event", True  # 1988 Summer Olympics
    whole = "_".join(words).lower().rstrip(".")
    if whole in PLACES:
        return "location", True  # New York
    if whole in KNOWN:
        return KNOWN[whole], False  # Oxford, BBC, Christmas
    return (_by_one_word(form) if len(words) == 1 else _by_words(form, words, first, last)), False


def _by_one_word(form: str) -> str:
    word = form.lower()
    if form.istitle() and word in GIVEN_NAMES and word not in EITHER:
        return "person"  # Daniel
    endings = ENDINGS if len(word) > 6 else ()
    return next((kind for ending, kind in endings if word.endswith(ending)), "")  # Greenville


def _by_words(form: str, words: Sequence[str], first: str, last: str) -> str:
    """By longer lists than those that decide what is a name."""
    if kind := LAST.get(form.partition(" of ")[0].rpartition(" ")[2].lower(), ""):
        if " of " in form:
            return kind  # the National Academy of Arts and Letters
    if first in GIVEN_NAMES and len(words) < 5 and (last not in LAST or last in FAMILY):
        return "person"
    if last in LAST and last not in AMBIGUOUS_HEADS:
        return LAST[last]  # Fenwick Heights
    if first in FIRST and last not in NEVER and words[1] != "of":
        team = len(words) > 2 and first in ("san", "los", "las") and last[-1] == "s"
        return "organization" if team else FIRST[first]  # Los Angeles Kings, Captain Nemo
    return "person" if last in ("jr", "sr") else ""


def _by_definition(text: str, end: int) -> str:
    """Marie Curie, a Polish physicist; Ada (born 1815)."""
    if text[end : end + 2] not in _DEFINING:
        return ""
    if _BORN.match(text, end):
        return "person"
    found = _DEFINED.match(text, end)
    return _by_predicate(found[1]) if found else ""


def _by_predicate(predicate: str) -> str:
    """The type of the first known noun, or noun phrase, of "is a ..."."""
    found = ""
    for word in predicate.split()[:9]:
        kind = HEAD_TYPE.get(word, "")
        if (found and not kind) or word in _BEHIND:
            break
        found = kind or found
    return found


def _by_noun(before: Sequence[str]) -> str:
    """The film Titanic, the city of Kolkata; not "they play X"."""
    if len(before) < 2 or before[-1]:
        return ""
    of = before[-2] == "of"
    noun = re.split("[^a-z]", before[-3] if of and len(before) > 2 else before[-2])[-1]
    kind = HEAD_TYPE.get(noun, "")
    if not kind or (kind != "location" if of else kind in ("location", "event")):
        return ""
    article = before[:-3] if of else before[:-2]
    led = bool(article) and article[-1] in _ARTICLES
    return kind if led or noun not in AMBIGUOUS_HEADS else ""


def _by_neighbours(text: str, end: int, words: list[str], before: Sequence[str]) -> str:
    """By the two words before a name, or what stands behind it."""
    name = words[-1]
    acronym = name.rstrip("s").isupper() and len(words) == 1  # UN, POWs
    if not acronym and name.lower() in NEVER:
        return ""
    if len(before) > 2 and not before[-1]:
        kind = _by_preposition(before[-2], before[-3], text[end : end + 24], words, acronym)
        if kind and (
            kind == "organization" or (name.isalpha() and not name[1:].rstrip("s").isupper())
        ):
            return kind
    if place := _COMMA.match(text, end):
        key, known = place[1].lower().replace(" ", "_"), PLACES if len(words) > 1 else KNOWN
        where = key in known and KNOWN[key] == "location" and len(words) < 4
        return "location" if where else ""  # Ankara, Turkey
    if inner := _BRACKET.match(text, end):
        return HEAD_TYPE.get(inner[1], "")  # Titanic (1997 film)
    return (
        _by_verb(text[end + 1 : end + 40].split(" ", 2), words)
        if text[end : end + 1] == " "
        else ""
    )


def _by_preposition(one: str, two: str, after: str, words: list[str], acronym: bool) -> str:
    """By the word before the name, and the one before that."""
    for preposition, others, kind, _ in BEFORE:
        if one == preposition and two in others:
            return kind
    if one == "near":
        return "location"
    if one == "in" and after[:1] in _ENDS and len(words) < 3 and words[0].istitle():
        return "" if words[0].lower() in HEAD_TYPE or words[0].lower() in NAMES else "location"
    return "person" if one in ("starring", "featuring") and len(words) > 1 else ""


def _by_verb(after: list[str], words: list[str]) -> str:
    """Trent died; Kell lies between; Ashby is located; Mara Quill who."""
    if after[0] in SAYS_PERSON:
        return "" if words[-1][1:].rstrip("s").isupper() else "person"
    if after[0] == "lies" or (after[0] in ("is", "was") and after[1:] and after[1] in IS_PLACE):
        return "location"
    return "person" if after[0] == "who" and len(words) > 1 else ""


def subjects(text: str) -> Iterator[Candidate]:
    """What a line defines when it begins with "X is a ...": X whole, small words and a lower-case
    tail included (Jump for Glory; Gila monster)."""
    for match in _SUBJECT.finditer(text):
        start, end = match.span(1)
        words = match[1].split(" ")
        if not _one_name(words):
            continue
        kind = kind_of(text, start, end, words)
        opener = words[0].lower().replace("’", "'").rstrip(",")
        if opener not in STARTERS or kind == "content":
            yield start, end, kind, True


def _one_name(words: list[str]) -> bool:
    """Capitalised words and small ones between them, then up to three words in lower case."""
    tail, comma = 0, False
    for word in words:
        low = word[:1].islower()
        if not word or (tail and (not low or word in _SMALL)) or tail > 3 or (comma and low):
            return False
        if low and word not in _SMALL:
            if word in STARTERS:
                return False
            tail += 1
        comma = word[-1] == ","
    return True


# ---- words that are seldom names ------------------------------------------------------------

ABSTRACT = tuple("ing ed ly ity ness tion ment ance ence ism ists ings".split())


@lru_cache(maxsize=1 << 15)
def common(word: str) -> bool:
    """Is this lower-case English word, or what it is inflected from, one that is seldom a name?"""
    if word in COMMON or word in DULL or stop_word(word):
        return True
    for end in ("s", "es", "ed", "d", "ing", "ly", "er", "ers", "r"):
        if word.endswith(end) and (
            word[: -len(end)] in COMMON or word[: -len(end)] + "e" in COMMON
        ):
            return True
    return word.endswith(("ies", "ied")) and word[:-3] + "y" in COMMON
