"""Word lists of the extractor without a model, from `lexicon.toml`, folded as their text is folded
before the look-up.

Every list is a hint, never a gate alone: a word that is missing costs one doubtful name."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from graphrag_mcp.text.terms import STOP_WORDS, folded, table, without_cases

_LISTS: dict[str, Any] = table(__file__)


@lru_cache(maxsize=1 << 14)
def bare(word: str) -> str:
    """A word without accents and endings of its cases, as lists of several languages have it."""
    return without_cases(folded(word))


def _words(name: str) -> frozenset[str]:
    return frozenset(_LISTS[name].split())


def _signs(name: str) -> frozenset[str]:
    return frozenset("".join(_LISTS[name].split()))


def _longest_first(name: str) -> tuple[str, ...]:
    return tuple(sorted(_LISTS[name].split(), key=lambda word: (-len(word), word)))


def _kinds(name: str) -> dict[str, str]:
    """Word -> type; of a word with several types the first counts."""
    rows = reversed(_LISTS[name].items())
    return {word: kind for kind, words in rows for word in words.split()}


def _bare_words(text: str) -> frozenset[str]:
    return frozenset(map(bare, text.split()))


def _folded_kinds(name: str) -> dict[str, str]:
    return {folded(word): kind for word, kind in _kinds(name).items()}


def _folded_words(text: str) -> frozenset[str]:
    return frozenset(map(folded, text.split()))


# ---- English ------------------------------------------------------------------------------------

STARTERS, OPENERS, MONTHS, DEMONYMS = map(_words, "STARTERS OPENERS MONTHS DEMONYMS".split())
ON_PAGES = frozenset(" ".join(one.split("_")) for one in _words("ON_PAGES"))
TITLES, OFFICES, GROUPS = map(_words, ("TITLES", "OFFICES", "GROUPS"))
ROLE_WORDS, BODIES, EVENT_HEADS = map(_words, ("ROLE_WORDS", "BODIES", "EVENT_HEADS"))
PHRASE_HEADS, AMBIGUOUS_HEADS, TAILS = map(_words, ("PHRASE_HEADS", "AMBIGUOUS_HEADS", "TAILS"))
FILE_ENDINGS, ACRONYM_NOISE, ON_HEADS = map(_words, ("FILE_ENDINGS", "ACRONYM_NOISE", "ON_HEADS"))
NO_ACRONYMS, NAMES = map(_words, ("NO_ACRONYMS", "NAMES"))
NUMBERED, DETERMINERS, SMALL_WORDS = map(_words, ("NUMBERED", "DETERMINERS", "SMALL_WORDS"))
OWNED_BODIES, ZH_PLACE_HEADS = map(_words, ("OWNED_BODIES", "ZH_PLACE_HEADS"))
ZH_OF_A_COUNTRY, ZH_NO_NAMES = map(_words, ("ZH_OF_A_COUNTRY", "ZH_NO_NAMES"))
DULL, COMMON, GIVEN, PLACES = map(_words, ("DULL", "COMMON", "GIVEN", "PLACES"))
HEAD_TYPE = _kinds("HEADS")
WORKS = _words("WORKS") | {word for word, kind in HEAD_TYPE.items() if kind == "content"}

# Of types only: these lists decide nothing about what is a name.
LAST = HEAD_TYPE | _kinds("LAST")
FIRST = _kinds("FIRST")
_PEOPLE = {word for word, kind in (HEAD_TYPE | FIRST).items() if kind == "person"}
_PARTIES = _words("PARTIES")
OFFICERS = (ROLE_WORDS | OFFICES | TITLES | _PEOPLE | _words("OFFICERS")) - GIVEN - _PARTIES
OFFICE_PARTS = OFFICERS | DEMONYMS | _PARTIES
FAMILY = _words("FAMILY")
GIVEN_NAMES = GIVEN | _words("GIVEN_NAMES")
EITHER = _words("EITHER")
KNOWN = dict.fromkeys(PLACES, "location") | _kinds("KNOWN")
for _word in ("french", "german", "spanish", "greek", "english", "arabic", "hebrew", "latin"):
    KNOWN.pop(_word)  # as often the people as the language
NEVER = DEMONYMS | MONTHS
ENDINGS = tuple(_kinds("ENDINGS").items())
OF_PLACE, IN_PLACE, TO_PLACE = map(_words, ("OF_PLACE", "IN_PLACE", "TO_PLACE"))
OF_PERSON, BY_PERSON, SAYS_PERSON = map(_words, ("OF_PERSON", "BY_PERSON", "SAYS_PERSON"))
BY_BODY, AT_BODY = map(_words, ("BY_BODY", "AT_BODY"))
ON_BODY, IS_PLACE = map(_words, ("ON_BODY", "IS_PLACE"))

# ---- other languages with capitals --------------------------------------------------------------

FOREIGN_GIVEN, VI_SURNAMES = (
    _bare_words(_LISTS[name]) for name in ("FOREIGN_GIVEN", "VI_SURNAMES")
)
_FEMININE = _LISTS["FEMININE"].split()
ROLES = _bare_words(" ".join((*_FEMININE, *(f"{word}in" for word in _FEMININE), _LISTS["ROLES"])))
HEADS = {bare(word): kind for word, kind in reversed(_kinds("KINDS").items())}
DE_PART, DE_COMMON = _kinds("DE_PARTS"), _words("DE_COMMON")
INTO, OPENING = (
    {name: frozenset(words.split()) for name, words in _LISTS[one].items()}
    for one in ("INTO", "OPENING")
)
SAYS = _words("SAYS")
VI_HEADS, VI_BEFORE = _LISTS["VI_HEADS"], _LISTS["VI_BEFORE"]

# ---- Japanese, Korean, Chinese ------------------------------------------------------------------

JA_HEADS = _kinds("JA_HEADS")
JA_TITLES = _longest_first("JA_TITLES")
JA_TITLES_KANA, KO_ENDINGS = (
    tuple(_LISTS[name].split()) for name in ("JA_TITLES_KANA", "KO_ENDINGS")
)
JA_DULL, JA_PLACES, JA_SURNAMES = map(_words, ("JA_DULL", "JA_PLACES", "JA_SURNAMES"))

JOSA = _longest_first("JOSA")
KO_HEADS = _kinds("KO_HEADS")
KO_DULL, KO_TITLES, KO_PLACES = map(_words, ("KO_DULL", "KO_TITLES", "KO_PLACES"))
KO_COMMON = _words("KO_COMMON")
KO_GIVEN, KO_SURNAMES = map(_signs, ("KO_GIVEN", "KO_SURNAMES"))
KO_ROLES = KO_TITLES - frozenset("씨 님 왕".split()) | _words("KO_ROLES")

ZH_HEAD_TYPE = _kinds("ZH_HEADS")
ZH_FUNCTION, ZH_SURNAMES, ZH_SOUNDS = map(_signs, ("ZH_FUNCTION", "ZH_SURNAMES", "ZH_SOUNDS"))
ZH_DULL, ZH_SURNAMES_TWO = _words("ZH_DULL"), _words("ZH_SURNAMES_TWO")
ZH_KNOWN = _kinds("ZH_KNOWN")
ZH_TITLES = tuple(sorted(_LISTS["ZH_TITLES"].split(), key=lambda title: -len(title)))
ZH_WIDE, ZH_TRAIL = map(_signs, ("ZH_WIDE", "ZH_TRAIL"))

# ---- scripts without capitals -------------------------------------------------------------------

CASELESS_TITLES, CASELESS_HEADS = map(_folded_kinds, ("CASELESS_TITLES", "CASELESS_HEADS"))
CASELESS_GIVEN, CASELESS_PLACES, JOINING, TWO_WORDS, HINDI_OUT = (
    _folded_words(_LISTS[name])
    for name in ("CASELESS_GIVEN", "CASELESS_PLACES", "JOINING", "TWO_WORDS", "HINDI_OUT")
)
# Too common to be a name: words of time and measure, adjectives, verbs that stand beside names.
# Unfolded "على" is "on"; folded it is Ali.
ON = frozenset("على وعلى فعلى".split())
CASELESS_COMMON = STOP_WORDS | ON | _folded_words(_LISTS["CASELESS_COMMON"])
HINDI_HEADS = _folded_kinds("HINDI_HEADS")
THAI_HEADS = _LISTS["THAI_HEADS"]
THAI_TITLES, THAI_STOPS, THAI_PLACES = (
    _LISTS[name].split() for name in ("THAI_TITLES", "THAI_STOPS", "THAI_PLACES")
)
