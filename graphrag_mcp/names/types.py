"""The type of a name without a model: from its own words, the words around it, and definitions.

Takes a text and the span of a name in it, gives one of the default types or "other". Deterministic,
linear. Knows nothing of how names are found, except those that a line defines ("X is a ...")."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from graphrag_mcp.names.lexicon import (
    AMBIGUOUS_HEADS,
    AT_BODY,
    BY_BODY,
    BY_PERSON,
    EITHER,
    ENDINGS,
    FAMILY,
    FIRST,
    FIRST_TYPE,
    GIVEN,
    GIVEN_NAMES,
    HEAD_TYPE,
    IN_PLACE,
    IS_PLACE,
    KNOWN,
    LAST,
    MONTHS,
    NEVER,
    OF_PERSON,
    OF_PLACE,
    ON_BODY,
    PLACES,
    SAYS_PERSON,
    STARTERS,
    THE_NO_BODY,
    TITLES,
    TO_PLACE,
    WAS_CONTENT,
)
from graphrag_mcp.text.folding import UPPER
from graphrag_mcp.text.terms import stop_word

Candidate = tuple[int, int, str, bool]

_AFTER = re.compile(
    r"(?: \([^()\n]{0,90}\))?(?:,? (?:is|was|are|were)|,) (?:an?|the|one of the) ([^.;:,\n]{3,90})"
)
_BORN = re.compile(r" (?:\((?:[^()\n]{0,60}; )?(?:born|b\.) |was born |, born )")
_SUBJECT = re.compile(
    rf"^[ \t#*=]{{0,20}}(?:The |A |An )?(?=[\d{UPPER}])([^\n;()]{{1,90}}?)"
    r"(?: \([^()\n]{0,200}\))?,? (is|was|are|were) (?:an?|the|one of) ",
    re.MULTILINE,
)
_SMALL = frozenset(
    "of the and in for to a an on at with from by or de der von van la le du ki ap und et y".split()
)
_TELLING = frozenset((" (", " i", " w", " a", " ,", ", "))  # how _BORN and _AFTER begin
_INNER = re.compile(r" \([^()\n]{0,40}?\b([a-z]+)\)")
_NEXT = re.compile(r"[A-Z][a-zé]+(?: [A-Z][a-z]+){0,2}|[a-z]+(?=[.,;)]|$)")
_LEADING = frozenset("in of by near to the on at starring featuring".split())
_ENDS = frozenset(",.;)\n")
_BEFORE = re.compile(r"((?:\b(?:the|an?|his|her|their|its|film) )?)\b([a-z]+)( of)? $")


def kind_of(text: str, start: int, end: int, words: list[str]) -> str:
    """The type that the name itself or the words around it speak for, else "other"."""
    kind, sure = _by_name(text[start:end], tuple(words))
    if sure:
        return kind
    following = text[end : end + 2]
    if following in _TELLING:
        if _BORN.match(text, end):
            return "person"
        if (after := _AFTER.match(text, end)) and (said := _said(after[1])):
            return said
    before = text[max(0, start - 28) : start].rsplit(" ", 3)
    if _may_tell(before) and (found := _BEFORE.search(text, max(0, start - 28), start)):
        article, noun, of = found.groups()
        led = HEAD_TYPE.get(noun, "")
        told = led == "location" if of else led not in ("location", "event")
        if (
            led and told and (article or noun not in AMBIGUOUS_HEADS)
        ):  # "the song X", not "they play X"
            return led
    if kind:
        return kind
    own = HEAD_TYPE.get(words[-1].lower().rstrip("."), "") if len(words) > 1 else ""
    return _beside(text, end, words, before, following) or own or "other"


@lru_cache(maxsize=1 << 15)
def _by_name(form: str, words: tuple[str, ...]) -> tuple[str, bool]:
    """The type that a name's own words speak for, and whether nothing beside it can say better."""
    first, last = words[0].lower(), words[-1].lower().rstrip(".")
    if len(words) > 1:
        own = HEAD_TYPE.get(last, "") or ("" if last in FAMILY else LAST.get(last, ""))
        given = first in GIVEN or (len(first) == 2 and first[1] == ".")
        if given and len(words) < 5 and (not own or last in AMBIGUOUS_HEADS) and " of " not in form:
            return "person", True
        if own and last not in AMBIGUOUS_HEADS:
            return own, True
        if first in FIRST_TYPE:
            return FIRST_TYPE[first], True
        if words[0].isdigit():
            return "event", True
    if "_".join(words).lower().rstrip(".") in PLACES:
        return "location", True
    return _own_words(form, words, first, last), False


def _own_words(form: str, words: tuple[str, ...], first: str, last: str) -> str:
    """The type that words of the name speak for, by longer lists than those that decide what is a
    name."""
    if len(words) == 1:
        if kind := KNOWN.get(last, ""):
            return kind
        if last in GIVEN_NAMES and last not in EITHER and words[0].istitle():
            return "person"
        if len(last) > 6:
            return next((kind for ending, kind in ENDINGS if last.endswith(ending)), "")
        return ""
    if kind := KNOWN.get("_".join(words).lower().rstrip("."), ""):
        return kind
    if " of " in form and (
        kind := LAST.get(form.partition(" of ")[0].rpartition(" ")[2].lower(), "")
    ):
        return kind  # the National Academy of Arts and Letters
    if first in GIVEN_NAMES and len(words) < 5 and (last not in LAST or last in FAMILY):
        return "person"
    if last in LAST and last not in AMBIGUOUS_HEADS:
        return LAST[last]
    if first in FIRST and last not in NEVER:
        team = len(words) > 2 and first in ("san", "los", "las", "santa") and last[-1] == "s"
        if team and words[-2].lower() not in ("de", "del", "la"):
            return "organization"
        return FIRST[first]
    return "person" if last in ("jr", "sr") else ""


def _beside(text: str, end: int, words: list[str], before: list[str], following: str) -> str:
    """The type that the two words before a name, or the two after it, speak for."""
    name = words[-1]
    shouted = name.isupper() and len(words) == 1
    if not shouted and name.lower() in NEVER:
        return ""
    if len(before) > 2 and not before[-1] and before[-2] in _LEADING:
        kind = _led(before[-2], before[-3], text[end : end + 24], words, shouted)
        if kind and (kind == "organization" or (name.isalpha() and not name[1:].isupper())):
            return kind
    if following == ", ":
        return _listed(text, end + 2, words)
    if following == " (" and (inner := _INNER.match(text, end)):
        return HEAD_TYPE.get(inner[1], "")
    if following[:1] == " ":
        return _says(text[end + 1 : end + 40].split(" ", 2), words)
    return ""


def _led(one: str, two: str, after: str, words: list[str], shouted: bool) -> str:
    """By the word before the name, and the one before that."""
    if one == "in":
        plain = (
            after[:1] in _ENDS
            and len(words) < 3
            and not shouted
            and words[0].lower() not in HEAD_TYPE
        )
        return "location" if (two in IN_PLACE and not shouted) or plain else ""
    if one == "of":
        return (
            "location" if two in OF_PLACE and not shouted else "person" if two in OF_PERSON else ""
        )
    if one == "by":
        return (
            "person"
            if two in BY_PERSON and not shouted
            else "organization"
            if two in BY_BODY
            else ""
        )
    if one == "near" or (one == "to" and two in TO_PLACE):
        return "" if shouted else "location"
    if one == "the":
        body = shouted and len(words[0]) > 1 and words[0].lower() not in THE_NO_BODY
        goes_on = after[:1] != " " or stop_word(after[1:].split(" ", 1)[0].rstrip(".,"))
        return "organization" if body and goes_on and words[0].isalpha() else ""
    if one == "on" and two in ON_BODY or (one == "at" and two in AT_BODY):
        return "organization"
    return "person" if one in ("starring", "featuring") and len(words) > 1 else ""


def _listed(text: str, at: int, words: list[str]) -> str:
    """By what follows a comma: Ankara, Turkey; Graeme Pell, director."""
    found = _NEXT.match(text, at)
    if not found:
        return ""
    if found[0][0].isupper():
        place = found[0].lower().replace(" ", "_")
        known = PLACES if len(words) > 1 else KNOWN
        return (
            "location" if place in known and KNOWN[place] == "location" and len(words) < 4 else ""
        )
    return "person" if len(words) > 1 and HEAD_TYPE.get(found[0]) == "person" else ""


def _says(after: list[str], words: list[str]) -> str:
    """By the verb after the name."""
    if after[0] in SAYS_PERSON:
        if words[-1][1:].islower() or "-" in words[-1] or words[-1][:2] in ("Mc", "Ma"):
            return "person"
        return ""
    if after[0] == "lies":
        return "location"
    if len(after) > 1 and after[0] in ("is", "was"):
        if after[1] in IS_PLACE:
            return "location"
        return "content" if after[0] == "was" and after[1].rstrip(".,") in WAS_CONTENT else ""
    return "person" if after[0] == "who" and len(words) > 1 else ""


_BEHIND = frozenset("in of by for who that which from".split())


def _said(predicate: str) -> str:
    """The type of the first known noun, or noun phrase, of "is a ..."."""
    found = ""
    for word in predicate.split()[:9]:
        kind = HEAD_TYPE.get(word, "")
        if (found and not kind) or word in _BEHIND:
            break
        found = kind or found
    return found


def _may_tell(words: list[str]) -> bool:
    """Can `_BEFORE` find a noun with a type among the words before a name? A third of the time of
    trying."""
    if len(words) < 2 or words[-1]:
        return False
    word = words[-3] if words[-2] == "of" and len(words) > 2 else words[-2]
    return word in HEAD_TYPE or not word.isalpha()


def subjects(text: str) -> Iterator[Candidate]:
    """What a line defines when it begins with "X is a ...": X whole, small words and a lower-case
    tail included."""
    for match in _SUBJECT.finditer(text):
        start, end = match.span(1)
        words = match[1].split(" ")
        plural = match[2] in ("are", "were") and (" and " in match[1] or "," in match[1])
        if len(words) > 10 or plural or not _one_name(words):
            continue
        kind = kind_of(text, start, end, words)
        opener = words[0].lower().replace("’", "'").rstrip(",")
        if opener not in STARTERS and opener not in MONTHS or kind == "content":
            yield start, end, kind, True


def _one_name(words: list[str]) -> bool:
    """Capitalised words and small ones between them; then at most three lower-case words: Gila
    monster."""
    tail = 0
    for index, word in enumerate(words):
        if not word:
            return False
        bare = word.rstrip(",:")
        if (
            word[-1] in ".!?"
            and len(word) > 3
            and index + 1 < len(words)
            and word.lower().rstrip(".") not in TITLES
        ):
            return False
        if word[-1] == "," and words[index + 1 : index + 2] and words[index + 1][:1].islower():
            return False
        if bare[:1].islower():
            if bare in _SMALL and not tail and index + 1 < len(words):
                continue
            tail += 1
            if bare in STARTERS or stop_word(bare) or tail > 3 or bare.endswith("ly"):
                return False
        elif tail:
            return False
    return True
