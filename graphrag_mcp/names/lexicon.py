"""Word lists of the extractor without a model, from `lexicon.toml`.

For scripts with capitals these are closed classes (titles, company forms, particles, articles,
months) and the nouns that tell a type. Japanese, Korean and Chinese have no capitals and need more."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from graphrag_mcp.text.terms import LANGUAGES, LEGAL_FORMS, STOP_WORDS, table
from graphrag_mcp.text.tokens import ONE_TOKEN

_LISTS: dict[str, Any] = table(__file__)


def _words(name: str) -> frozenset[str]:
    return frozenset(_LISTS[name].split())


def _signs(name: str) -> frozenset[str]:
    return frozenset("".join(_LISTS[name].split()))


def _longest_first(name: str) -> tuple[str, ...]:
    return tuple(sorted(_LISTS[name].split(), key=lambda word: (-len(word), word)))


def either(words: Iterable[str]) -> str:
    """An alternation of a pattern: the longest word first."""
    return "|".join(sorted(words, key=lambda word: (-len(word), word)))


def _kinds(name: str) -> dict[str, str]:
    """Word -> type; of a word with several types the first counts."""
    rows = reversed(_LISTS[name].items())
    return {word: kind for kind, words in rows for word in words.split()}


# ---- scripts with capitals ----------------------------------------------------------------------

COURTESIES, TITLES, MONTHS = map(_words, ("COURTESIES", "TITLES", "MONTHS"))
PARTICLES, ARTICLES = map(_words, ("PARTICLES", "ARTICLES"))
SMALL_WORDS = PARTICLES | frozenset("the and in on to a an und et y e".split())  # within a name
COMPANY_FORMS = _words("COMPANY_FORMS") | LEGAL_FORMS
INDEFINITE_ARTICLES = _words("INDEFINITE_ARTICLES")
PLACE_PREPOSITIONS, BEFORE_DATES = map(_words, ("PLACE_PREPOSITIONS", "BEFORE_DATES"))
FILE_ENDINGS = _words("FILE_ENDINGS")
ABBREVIATED = _words("ABBREVIATED")
NOUN_TYPES = _kinds("NOUN_TYPES")


@lru_cache(maxsize=1 << 15)
def ordinary(word: str) -> bool:
    """Is this lower-case word, or the word of which it is a form, an everyday word of English or a
    word of grammar?"""
    if word in ONE_TOKEN or word in STOP_WORDS or word in TITLES or word in NOUN_TYPES:
        return True
    for ending in ("s", "es", "ed", "d", "ing", "ly", "er", "ers", "al"):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) > 2 and (stem in ONE_TOKEN or f"{stem}e" in ONE_TOKEN):
            return True
    return word.endswith(("ies", "ied")) and f"{word[:-3]}y" in ONE_TOKEN


def is_grammar(word: str) -> bool:
    """Is this lower-case word a word of grammar of a language with capitals, or a month?"""
    return word in MONTHS or any(word in words for words in LANGUAGES.values())


# ---- Japanese, Korean, Chinese ------------------------------------------------------------------

HAN = "々〇\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # characters of a class of `re`
HAN_CHARACTER = re.compile(f"[{HAN}]")


def is_han(ch: str) -> bool:
    return HAN_CHARACTER.match(ch) is not None


def head_type(heads: Mapping[str, str], form: str, before: int) -> str:
    """The type that the last characters speak for, of which one must follow `before` others."""
    for size in (5, 4, 3, 2, 1):
        kind = heads.get(form[-size:], "")
        if kind and len(form) - size >= (before if size == 1 else min(before, 1)):
            return kind
    return ""


JA_HEADS = _kinds("JA_HEADS")
JA_TITLES = _longest_first("JA_TITLES")
JA_TITLES_KANA, KO_ENDINGS = (tuple(_LISTS[name].split()) for name in ("JA_TITLES_KANA", "KO_ENDINGS"))
JA_DULL, JA_SURNAMES = _words("JA_DULL"), _words("JA_SURNAMES")

JOSA = _longest_first("JOSA")
KO_HEADS = _kinds("KO_HEADS")
KO_DULL, KO_TITLES, KO_PLACES = map(_words, ("KO_DULL", "KO_TITLES", "KO_PLACES"))
KO_COMMON = _words("KO_COMMON")
KO_GIVEN, KO_SURNAMES = map(_signs, ("KO_GIVEN", "KO_SURNAMES"))
KO_ROLES = KO_TITLES - frozenset("씨 님 왕".split()) | _words("KO_ROLES")

ZH_HEAD_TYPE = _kinds("ZH_HEADS")
ZH_FUNCTION, ZH_SURNAMES, ZH_SOUNDS = map(_signs, ("ZH_FUNCTION", "ZH_SURNAMES", "ZH_SOUNDS"))
ZH_DULL, ZH_SURNAMES_TWO = _words("ZH_DULL"), _words("ZH_SURNAMES_TWO")
ZH_NO_NAMES = _words("ZH_NO_NAMES")
ZH_KNOWN = _kinds("ZH_KNOWN")
ZH_TITLES = tuple(sorted(_LISTS["ZH_TITLES"].split(), key=lambda title: -len(title)))
ZH_WIDE, ZH_TRAIL = map(_signs, ("ZH_WIDE", "ZH_TRAIL"))
