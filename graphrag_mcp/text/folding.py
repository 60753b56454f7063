"""Words in a common form: without accents, spelling variants and endings; and the language of a
text.

Stems are those of Snowball (PyStemmer). Names are looked for in composed text (NFC) and cited in
the given one: names of files from a Mac hold `é` as two characters. Chinese is matched in
simplified characters and shown as written; of characters with several simplified forms (著, 乾, 覆)
one is chosen. `simplified.txt` holds the characters U+4E00 to U+9FFF with another character below
U+10000 as `kSimplifiedVariant` in the Unihan database of Unicode (draft of July 2026; not 蒙, 戠, 臤),
chains followed to their end. Copyright 1991-2026 Unicode, Inc., SPDX-License-Identifier:
Unicode-3.0, see LICENSE. Its second part, by hand, are variants that the mainland gave up (佔 for 占,
週 for 周, 羣 for 群)."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from os.path import commonprefix
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from Stemmer import Stemmer

_flat = "".join(Path(__file__).with_name("simplified.txt").read_text("utf-8").split())
SIMPLIFY: dict[int, str] = {ord(a): b for a, b in zip(_flat[::2], _flat[1::2], strict=True)}


CASED = "A-Za-zÀ-ÖØ-öø-ʯͰ-ϿЀ-ԯԱ-ևḀ-ỿἀ-῾"
WORD = CASED + "0-9\u0300-\u036f"


_CASED = [chr(code) for code in (*range(0x41, 0x250), *range(0x370, 0x588), *range(0x1E00, 0x2000))]
UPPER, LOWER = ("".join(filter(test, _CASED)) for test in (str.isupper, str.islower))


def with_origins(text: str) -> tuple[str, list[int]]:
    """The composed text, and for each of its characters, and for its end, the offset in `text` at
    which the pieces of that character begin."""
    parts: list[str] = []
    origins: list[int] = []
    start = 0
    for end in range(1, len(text) + 1):
        if end < len(text) and _joins(text[end]):
            continue
        piece = text[start:end]
        whole = unicodedata.normalize("NFC", piece)
        parts.append(whole)
        # Where some of the pieces stay apart, those from the first difference on count from there.
        same = len(commonprefix((piece, whole)))
        origins.extend(start + min(at, same, len(piece) - 1) for at in range(len(whole)))
        start = end
    return "".join(parts), [*origins, len(text)]


@lru_cache(maxsize=4_096)
def _joins(ch: str) -> bool:
    """May composing join this character to the one before it?"""
    return unicodedata.category(ch)[0] == "M" or "\u1160" < ch < "\u1200"  # vowels of Hangul


def _latin_table() -> dict[int, str | None]:
    """Latin and Greek letters without their marks; loose marks and invisible characters go (Indic,
    kana marks stay)."""
    marks = (*range(0x300, 0x370), *range(0x591, 0x5BE), *range(0x64B, 0x660), 0x640, 0x670)
    invisible = (0xAD, 0x2060, 0xFEFF, *range(0x200B, 0x2010))
    table: dict[int, str | None] = dict.fromkeys((*marks, *invisible))
    for code in (*range(0xC0, 0x250), *range(0x370, 0x400), *range(0x1E00, 0x2000)):
        parts = unicodedata.normalize("NFKD", chr(code))
        base = "".join(ch for ch in parts if not unicodedata.combining(ch))
        if chr(code).isalpha() and base.isalpha() and base != chr(code):
            table[code] = base
    table.update({ord(a): b for a, b in zip("łøđıħŧð", "lodihtd", strict=True)})
    table.update({ord("æ"): "ae", ord("œ"): "oe", ord("þ"): "th", ord("ß"): "ss"})
    table.update({ord("’"): "'", ord("‘"): "'", ord("ʼ"): "'"})
    return table


def _script_table() -> dict[int, str | None]:
    """Letters that one word is written with or without in one script: ё, hamza, Persian kaf, nukta;
    and its digits."""
    table: dict[int, str | None] = {
        0x93C: None,
        0x5F3: "'",
        0x5F4: None,
        0x655: None,
        0x901: "\u0902",
        ord("ı"): "i",
    }
    groups = ("еёє", "гґ", "اأإآٱ", "يىیېئ", "كک", "هەةۀہ", "وؤ")
    table.update({ord(letter): group[0] for group in groups for letter in group[1:]})
    for zero in (0x660, 0x6F0, 0x966, 0x9E6):
        table.update({zero + digit: str(digit) for digit in range(10)})
    return table


_LATIN = _latin_table()
_FOLD = _LATIN | _script_table() | SIMPLIFY


def folded(text: str) -> str:
    """Case, marks and spellings of one word made one."""
    return text.casefold() if text.isascii() else text.casefold().translate(_FOLD)


def unmarked(token: str) -> str:
    """Without marks, in its own case."""
    return token if token.isascii() else token.translate(_FOLD)


def bare_latin(word: str) -> str:
    """The same for Latin and Greek letters only."""
    return word.casefold() if word.isascii() else word.casefold().translate(_LATIN)


# Each ending goes as often as one is there, so that every case of a name comes to the same rest and
# a rest stays as it is. -ов and -ин stay: Иванов is not Иван. What is left is a key, not a word:
# Вьетнам, Вьетнама -> вьетн.
_CYRILLIC = re.compile(
    r"(?:(?<=[а-яіїґ]{3})(?:ами|ями|ого|его|ому|ему|ыми|ими|а[хм]|я[хм]|[оеыи][мй]|[ое]ю|[иы]х)|(?<=[а-яіїґ]{2})[аоеыиуюяйьії])$"
)
# Павел, Павла; Донец, Донца.
_WEAK_VOWEL = re.compile(r"(?<=[а-яіїґ][бвгджзклмнпрстфхцчшщ])[ое](?=[цлкн]$)")
_CLOSED = re.compile(r"[ії](?=[бвгджзклмнпрстфхцчшщ]$)")  # Львів, Львова; Київ, Києва
_SOFTENED = {"ці": "к", "зі": "г"}  # Америці, Празі
_GREEK = re.compile(r"(?<=[α-ω]{3})(?:[αεηιουωσ]|ων){1,12}$")
_ARABIC = re.compile(r"^(?:[وبفك]?ال(?=\w{3})|لل(?=\w{3}))+")
_TURKISH = re.compile(  # what stands after the apostrophe of a Turkish name, folded
    r"(?<=[a-z]{3})'(?:[yn][aeiu]|[dt][ae]n?|n?[iu]n|l[iu]k?|[dt][ae]ki(?:ler)?|y?l[ae]|[dt][iu]r?|nd[ae]n?|[ysz]i|lar|ler)$"
)
_CASED_WORD = re.compile(
    "[а-яіїґ]{3,}|[α-ω]{4,}|[\u0620-\u06d3]{4,}|(?<![a-z])[a-z]{3,}'[a-z]{2,7}(?![a-z])"
)


def _open(match: re.Match[str]) -> str:
    return "о" if match[0] == "і" else "е"


@lru_cache(maxsize=1 << 15)
def _cyrillic(word: str) -> str:
    before = ""
    while word != before:
        before = word
        if len(word) > 4 and word[-2:] in _SOFTENED:
            word = word[:-2] + _SOFTENED[word[-2:]]
        word = _CYRILLIC.sub("", word)
        if word == before and len(word) > 3:
            word = _WEAK_VOWEL.sub("", _CLOSED.sub(_open, word))
    return word


def _without_case(match: re.Match[str]) -> str:
    word = match[0]
    if "а" <= word[0] <= "ґ":
        return _cyrillic(word)
    if word[0] < "\u0250":
        return without_suffix(word)
    return (_GREEK if word[0] < "\u0400" else _ARABIC).sub("", word)


def without_suffix(word: str, single: bool = False) -> str:
    """A folded word without what follows the apostrophe in Turkish: ankara'da; of one vowel too if
    `single`."""
    bare = _TURKISH.sub("", word)
    return (
        word[:-2]
        if single and bare == word and len(word) > 4 and word[-2] == "'" and word[-1] in "aeiu"
        else bare
    )


def without_cases(key: str) -> str:
    """A folded name without the endings (in Arabic, the articles) that it takes in a sentence."""
    return _CASED_WORD.sub(_without_case, key) if "'" in key or not key.isascii() else key


def table(module: str) -> dict[str, Any]:
    """The lists of words and patterns in the .toml file beside a module."""
    return tomllib.loads(Path(module).with_suffix(".toml").read_text("utf-8"))


def compiled(forms: Mapping[str, str]) -> SimpleNamespace:
    return SimpleNamespace(**{name: re.compile(form) for name, form in forms.items()})


# Words of grammar: what tells a language, and what opens its sentences.
LANGUAGES: dict[str, frozenset[str]] = {
    name: frozenset(words.split())
    for name, words in tomllib.loads(
        Path(__file__).with_name("grammar.toml").read_text("utf-8")
    ).items()
}
# Of scripts of which no other language here has a word: left out of every question.
_UNCASED_GRAMMAR = LANGUAGES.pop("uncased")
_SNOWBALL = {
    "de": "german",
    "fr": "french",
    "es": "spanish",
    "it": "italian",
    "pt": "portuguese",
    "nl": "dutch",
    "tr": "turkish",
    "en": "english",
    "ru": "russian",
    "el": "greek",
    "hi": "hindi",
}
_LATIN_STEMS = ("en", "de", "fr", "es", "it", "pt", "nl", "tr")
_ARABIC_STEM = re.compile(
    r"^(?:و?(?:ال|بال|كال|فال|لل)|و|ب|ل|ف)?(\w{3,}?)(?:هاي|ها|ان|ات|ون|ين|يه|هم|[هي])?$"
)
_HEBREW = frozenset("הובלמשכ")


STOP_WORDS = frozenset(
    map(folded, [*_UNCASED_GRAMMAR, *LANGUAGES["ru"], *LANGUAGES["uk"], *LANGUAGES["el"]])
)


@lru_cache(maxsize=16)
def stemmer(language: str) -> Stemmer:
    """The stemmer in C of a language: 1 us a word, 160 in pure Python."""
    return Stemmer(_SNOWBALL[language], 0)


# Word of grammar -> the languages that have it.
_IN_LATIN = {
    word: [name for name in _LATIN_STEMS if word in LANGUAGES[name]]
    for one in _LATIN_STEMS
    for word in LANGUAGES[one]
}


def latin_language(text: str) -> str:
    """The language, written in Latin letters, that this text shows to be in; "" for English and
    where none shows."""
    if text.count(" the ") * (2_000 if text.isascii() else 400) > len(text):
        return ""
    known = _IN_LATIN.keys() & text.lower().split()
    if not known:
        return ""
    counts = dict.fromkeys(_LATIN_STEMS, 0)
    for word in known:
        for name in _IN_LATIN[word]:
            counts[name] += 1
    best = max(counts, key=counts.__getitem__)
    return best if counts[best] > counts["en"] else ""


@lru_cache(maxsize=1 << 15)
def stem_in(language: str, word: str) -> str:
    """The stem of a word of a language that is written in Latin letters; its marks tell endings
    apart."""
    return bare_latin(stemmer(language).stemWord(word.casefold()))


def stems(form: str) -> tuple[str, ...]:
    """The stems of one folded word that its script, not its language, tells how to make."""
    first = form[0]
    if len(form) < 3 or first < "\u0370":
        return ()
    if first < "\u0400":
        return (stemmer("el").stemWord(form), _GREEK.sub("", form))
    if first < "\u0530":
        return (stemmer("ru").stemWord(form), _cyrillic(form))
    if "\u0590" <= first < "\u0600":  # the, and, in, to, from: one letter each, before the word
        return (form[1:],) if len(form) > 3 and first in _HEBREW else ()
    if "\u0600" <= first < "\u0700":
        found = _ARABIC_STEM.match(form)
        return (found[1],) if found else ()
    return (stemmer("hi").stemWord(form),) if "\u0900" <= first < "\u0980" else ()
