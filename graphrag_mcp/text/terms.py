"""Words in a common form: folded (without accents, spelling variants and endings), as search terms,
as keys of entities; the language of a text, and its lines.

Takes strings in any language. Deterministic, linear in the length of the text. Stems are those of
Snowball (PyStemmer). Names are looked for in composed text (NFC) and cited in the given one: names
of files from a Mac hold `é` as two characters. Chinese is matched in simplified characters and
shown as written; of characters with several simplified forms (著, 乾, 覆) one is chosen.
`simplified.txt` holds the characters U+4E00 to U+9FFF with another character below U+10000 as
`kSimplifiedVariant` in the Unihan database of Unicode (draft of July 2026; not 蒙, 戠, 臤), chains
followed to their end. Copyright 1991-2026 Unicode, Inc., SPDX-License-Identifier: Unicode-3.0, see
LICENSE. Its second part, by hand, are variants that the mainland gave up (佔 for 占, 週 for 周, 羣 for
群)."""

from __future__ import annotations

import hashlib
import re
import tomllib
import unicodedata
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, pairwise
from os.path import commonprefix
from pathlib import Path
from typing import Any, TypeVar

from Stemmer import Stemmer

K = TypeVar("K")
V = TypeVar("V")

# ---- scripts ------------------------------------------------------------------------------------
_HANGUL = "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7fb"
_HAN_AND_KANA = (
    "々〆〇\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
    # kana, bopomofo
    "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31f0-\u31ff\uff66-\uff9f"
)
_CJK = _HAN_AND_KANA + _HANGUL
# Thai, Lao, Burmese, Khmer: no spaces between words
_UNSPACED = "\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff"


class Patterns:
    """The patterns of a table by name. Each is compiled when it is first used: a run in which nothing
    changed uses few, and those of Chinese take 5 to 10 ms each."""

    def __init__(self, forms: Mapping[str, str]) -> None:
        self.forms = dict(forms)

    def __getattr__(self, name: str) -> re.Pattern[str]:
        form = vars(self).get("forms", {}).get(name)
        if form is None:
            raise AttributeError(name)
        pattern = re.compile(form)
        setattr(self, name, pattern)
        return pattern


LETTERS = re.compile(r"[^\W\d_]+")  # words without signs and figures

_SCRIPTS = Patterns(
    {
        "cjk": f"[{_CJK}]",
        "unspaced": f"[{_UNSPACED}]",
        "hangul": f"[{_HANGUL}]+",
        # with their punctuation
        "dense": f"[{_HAN_AND_KANA}{_UNSPACED}\u3001-\u303f\uff01-\uff0f\uff1a-\uff1f\uff5b-\uff65]+",
    }
)


def composed(text: str) -> str:
    """The text with letters in one piece each (NFC); nearly always the very text given."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def is_cjk(ch: str) -> bool:
    """Is this one character Han, kana, bopomofo or Hangul?"""
    return _SCRIPTS.cjk.match(ch) is not None


def holds_cjk(text: str) -> bool:
    """Does a text hold a character of which `is_cjk` is true?"""
    return not text.isascii() and _SCRIPTS.cjk.search(text) is not None


def without_cjk(text: str) -> tuple[str, int]:
    """The text with a blank in the place of each character of which `is_cjk` is true, and how many these are."""
    return (text, 0) if text.isascii() else _SCRIPTS.cjk.subn(" ", text)


def dense_runs(text: str) -> Iterator[tuple[int, int]]:
    """The characters (start, end) of each run in scripts that put no blanks between words."""
    return (run.span() for run in _SCRIPTS.dense.finditer(text))


class Lines:
    """1-based line numbers of character offsets; `at` is a binary search. Ends of lines: \\n,
    \\r\\n, \\r."""

    def __init__(self, text: str) -> None:
        self._ends = [match.end() for match in re.finditer(r"\r\n|\n|\r", text)]

    def at(self, offset: int) -> int:
        return bisect_right(self._ends, offset) + 1


# ---- folding ------------------------------------------------------------------------------------

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
    gone = [chr(code) for code in (0x670, 0xFEFF, *range(0xA0, 0x2100))]
    table: dict[int, str | None] = {
        ord(ch): None
        for ch in gone
        if unicodedata.category(ch) == "Cf" or ("\u0300" <= ch < "\u0700" and unicodedata.combining(ch))
    }
    for ch in _CASED:
        parts = unicodedata.normalize("NFKD", ch)
        base = "".join(part for part in parts if not unicodedata.combining(part))
        if base.isalpha() and base != ch and base < "\u0400":
            table[ord(ch)] = base
    table.update({ord(a): b for a, b in zip("łøđıħŧð", "lodihtd", strict=True)})
    table.update({ord("æ"): "ae", ord("œ"): "oe", ord("þ"): "th", ord("ß"): "ss", ord("ـ"): None})
    table.update(dict.fromkeys(map(ord, "’‘ʼ"), "'"))
    return table


def _script_table() -> dict[int, str | None]:
    """Letters with several forms within a script (ё, hamza, Persian kaf, nukta), and digits."""
    table: dict[int, str | None] = dict.fromkeys(map(ord, "\u05f4\u093c"))
    table.update({ord(a): b for a, b in zip("\u05f3\u0901ı", "'\u0902i", strict=True)})
    groups = ("еёє", "гґ", "اأإآٱ", "يىیېئ", "كک", "هەةۀہ", "وؤ")
    table.update({ord(letter): group[0] for group in groups for letter in group[1:]})
    digits = (chr(code) for code in range(0x660, 0x1000))
    table.update({ord(ch): str(unicodedata.decimal(ch)) for ch in digits if ch.isdecimal()})
    return table


_LATIN = _latin_table()
_FOLD = _LATIN | _script_table() | SIMPLIFY


def folded(text: str) -> str:
    """Case, marks and spellings of one word made one."""
    return text.casefold() if text.isascii() else text.casefold().translate(_FOLD)


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
_ARABIC = re.compile(r"^(?:[وبفك]?ال(?=\w{3})|لل(?=\w{3}))+")
# What stands behind the apostrophe of a Turkish name, folded (Ankara'da): any other letters are of a name of its own
# (Sant'Agata and Sant'Antonio, Qur'an).
_TURKISH = re.compile(
    r"(?<=[a-z]{3})'(?:[yn]?[aeiu]|[dt][ae]n?|n?[iu]n|l[iu]k?|[dt][ae]ki(?:ler)?|y?l[ae]|[dt][iu]r?|nd[ae]n?|[ysz]i|lar|ler)$"
)
_CASED_WORD = re.compile("[а-яіїґ]{3,}|[α-ω]{4,}|[\u0620-\u06d3]{4,}|(?<![a-z])[a-z]{3,}'[a-z]{1,7}(?![a-z])")


@lru_cache(maxsize=1 << 15)
def _cyrillic(word: str) -> str:
    before = ""
    while word != before:
        before = word
        if len(word) > 4 and word[-2:] in _SOFTENED:
            word = word[:-2] + _SOFTENED[word[-2:]]
        word = _CYRILLIC.sub("", word)
        if word == before and len(word) > 3:
            word = _WEAK_VOWEL.sub("", _CLOSED.sub(lambda match: "о" if match[0] == "і" else "е", word))
    return word


def _without_case(match: re.Match[str]) -> str:
    word = match[0]
    if word[0] < "\u0370":
        return _TURKISH.sub("", word)
    if word[0] < "\u0400":
        return stemmer("el").stemWord(word)
    return _cyrillic(word) if word[0] < "\u0530" else _ARABIC.sub("", word)


def without_cases(key: str) -> str:
    """A folded name without the endings (in Arabic, the articles) that it takes in a sentence."""
    return _CASED_WORD.sub(_without_case, key) if "'" in key or not key.isascii() else key


def table(module: str) -> dict[str, Any]:
    """The lists of words and patterns in the .toml file beside a module."""
    return tomllib.loads(Path(module).with_suffix(".toml").read_text("utf-8"))


# Words of grammar: what tells a language, and what opens its sentences.
LANGUAGES: dict[str, frozenset[str]] = {
    name: frozenset(words.split())
    for name, words in tomllib.loads(Path(__file__).with_name("grammar.toml").read_text("utf-8")).items()
}
# Of scripts of which no other language here has a word: left out of every question.
_UNCASED_GRAMMAR = LANGUAGES.pop("uncased")
LANGUAGE_SHOWS = 400  # first characters of a text that show its script
_LATIN_STEMS = ("en", "de", "fr", "es", "it", "pt", "nl", "tr")
_HEBREW = frozenset("הובלמשכ")


@lru_cache(maxsize=16)
def stemmer(language: str) -> Stemmer:
    """The stemmer in C of a language: 1 us a word, 160 in pure Python."""
    return Stemmer(language, 0)


# Word of grammar -> the languages that have it.
_IN_LATIN = {
    word: [name for name in _LATIN_STEMS if word in LANGUAGES[name]]
    for language in _LATIN_STEMS
    for word in LANGUAGES[language]
}


def latin_language(text: str) -> str:
    """The language in Latin letters that this text is in; "" for English and where none shows."""
    if text.count(" the ") * (2_000 if text.isascii() else 400) > len(text):
        return ""
    known = _IN_LATIN.keys() & text.lower().split()
    if not known:
        return ""
    counts: dict[str, int] = dict.fromkeys(_LATIN_STEMS, 0)
    for word in known:
        for name in _IN_LATIN[word]:
            counts[name] += 1
    best = max(counts, key=counts.__getitem__)
    return best if counts[best] > counts["en"] else ""


def written_language(text: str) -> str:
    """What tells the language of a text from others: its most frequent script ("cjk", "cyrillic"),
    "hiragana" for Japanese, and in Latin letters the language as `latin_language` says it."""
    scripts = Counter[str]()
    for letter, count in Counter(filter(str.isalpha, text[:LANGUAGE_SHOWS])).items():
        scripts[unicodedata.name(letter, "").partition(" ")[0].lower()] += count
    script = max(scripts, key=lambda name: (scripts[name], name), default="")
    if script == "latin":
        return latin_language(text)
    kana = scripts["hiragana"] + scripts["katakana"]
    return "hiragana" if kana and script in ("cjk", "katakana") else script


@lru_cache(maxsize=1 << 15)
def stem_in(language: str, word: str) -> str:
    """The stem of a word of a language in Latin letters; its marks tell endings apart."""
    return bare_latin(stemmer(language).stemWord(word.casefold()))


def stems(form: str) -> tuple[str, ...]:
    """The stems of one folded word that its script, not its language, tells how to make."""
    first = form[0]
    if len(form) < 3 or first < "\u0370":
        return ()
    if first < "\u0400":
        return (stemmer("el").stemWord(form),)
    if first < "\u0530":
        return (stemmer("ru").stemWord(form), _cyrillic(form))
    if "\u0590" <= first < "\u0600":  # the, and, in, to, from: one letter each, before the word
        return (form[1:],) if len(form) > 3 and first in _HEBREW else ()
    if "\u0600" <= first < "\u0700":
        return (stemmer("ar").stemWord(form),)
    return (stemmer("hi").stemWord(form),) if "\u0900" <= first < "\u0980" else ()


_WORDS = {name: frozenset(words.split()) for name, words in table(__file__).items()}
LEGAL_FORMS = _WORDS["legal_forms"]
STOP_WORDS = _WORDS["stop_words"].union(
    map(folded, [*_UNCASED_GRAMMAR, *LANGUAGES["ru"], *LANGUAGES["uk"], *LANGUAGES["el"]])
)


# ---- search terms -------------------------------------------------------------------------------
_MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0963\u0971-\u0dff"
_LETTER = rf"(?:(?![{_CJK}{_UNSPACED}])[\w{_MARKS}])"
# currencies, arrows, mathematics, emoji
_SIGNS = "¢£¤¥§©®°±\u20a0-\u20cf\u2100-\u2bff\U0001f000-\U0001faff"


def _token(letter: str, plain: str, signs: str = "") -> str:
    """A number with commas, or a word with its parts and signs, or one of `signs`. `letter`: one letter
    of a word; `plain`: one without marks, of which nearly all words are, and which is read in a third of
    the time. What begins with a set of characters is looked for in two thirds of the time."""

    def letters(least: int, most: int) -> str:
        return rf"(?:{plain}{{{least},{most}}}+(?![{_MARKS}])|{letter}{{{least},{most}}})"

    number = r"(?<=[0-9])[0-9]{0,2}(?:,[0-9]{3})+(?![\w,])"
    begun = rf"(?<=[\w{_MARKS}]){letters(0, 127)}"
    dotted = rf"(?<=\.)(?<![\w.]\.)(?=[A-Za-z]){letter}{{1,128}}"  # .net
    parts = rf"(?:[._'\-]{letters(1, 64)}){{0,8}}(?:\+\+|#(?!\w))?"
    sign = f"|(?<=[{signs}])" if signs else ""
    return rf"[.\w{_MARKS}{signs}](?:{number}|(?:{begun}|{dotted}){parts}{sign})"


_WORDED = Patterns(
    {
        "ascii_token": f"(?a:{_token('[A-Za-z0-9_]', '[A-Za-z0-9_]')})",
        "token": (rf"[{_CJK}]+|[{_UNSPACED}]+|" + _token(_LETTER, rf"[^\W{_CJK}{_UNSPACED}]", _SIGNS)),
        "wrap": rf"(?<=[{_CJK}])(?<![{_HANGUL}])[ \t]*(?:\r\n|\n|\r)[ \t]*(?=[{_CJK}])(?![{_HANGUL}])",
        "latin": r"(?:(?![\u0370-\uffff])[^\W\d_]){3,}",
    }
)
_SPLIT = re.compile(r"[._\-+#]+|'(?=\w{3})")  # l'amour, O'Brien; not don't
_CAMEL = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^A-Za-z0-9]+")
_ENGLISH = stemmer("en")


_UNCASED = "\u0e01"  # of the scripts without spaces the first


def _expand(token: str, language: str) -> tuple[str, ...]:
    """All terms of one token, of a word its whole form first; with the stems of a language that is
    written in Latin letters."""
    if token >= _UNCASED and (_SCRIPTS.cjk.match(token) or _SCRIPTS.unspaced.match(token)):
        found = _grams(token)
    else:
        found = _word_terms(token)
    if not language:
        return found
    more = [stem_in(language, word) for word in _WORDED.latin.findall(token)]
    return found + tuple(stem for stem in more if stem not in found)


@lru_cache(maxsize=1 << 15)
def _word_terms(token: str) -> tuple[str, ...]:
    if token.isascii() and token.isalpha() and (token.islower() or token.istitle()):
        whole = token.lower()  # as most words: what follows gives the same
        stem = _ENGLISH.stemWord(whole) if len(whole) > 2 else whole
        return (whole,) if stem == whole else (whole, stem)
    plain = token if token.isascii() else token.translate(_FOLD)  # in its own case
    plain = plain.removesuffix("'s").removesuffix("'S")
    plain = plain.replace(",", "").strip("_'-")
    whole = folded(plain)
    if not whole:
        return ()
    forms = [whole, whole[:-1]] if re.fullmatch("[A-Z]{2,}s", plain) else [whole]  # PDFs
    parts = [
        folded(part) for piece in _SPLIT.split(plain) for part in ([piece] if "'" in piece else _CAMEL.findall(piece))
    ]
    if len(parts) > 1 and all(len(part) == 1 for part in parts):
        forms.append("".join(parts))  # U.S. is found by US
    elif 2 < len(parts) <= 8 and "." not in whole and "-" not in whole:
        forms += [a + b for a, b in pairwise(parts)]  # getUserName is found by username
    if "'" in whole and (bare := _TURKISH.sub("", whole)) != whole:
        forms.append(bare)  # Ankara'da
    out: dict[str, None] = {}
    if token.startswith("__") and token.endswith("__"):
        parts = [*parts, folded(token)]  # __init__ is also another word than init
    for form in dict.fromkeys(forms + parts if len("".join(parts)) > 1 else forms):
        out[form] = None
        if len(form) > 2 and form.isascii() and form.isalpha():
            out[_ENGLISH.stemWord(form)] = None
        elif form[0] > "\u036f" and form[-1] > "\u036f":
            out.update(dict.fromkeys(stems(form)))
    return tuple(out)


def _grams(run: str) -> tuple[str, ...]:
    """Single characters and bigrams of a run without spaces; of Thai and its kin bigrams; of Korean
    also the word. Traditional Chinese is read as simplified."""
    run = run.translate(SIMPLIFY)
    pairs = list(map("".join, pairwise(run)))
    if _SCRIPTS.unspaced.match(run):
        return tuple(pairs) or (run,)
    out = [term for ch, pair in zip(run, pairs, strict=False) for term in (ch, pair)] + [run[-1]]
    return tuple(out + [run]) if len(run) > 2 and _SCRIPTS.hangul.fullmatch(run) else tuple(out)


def unwrapped(text: str) -> str:
    """Chinese and Japanese text without line breaks within words (PDF, mail, manuals)."""
    return text if text.isascii() else _WORDED.wrap.sub("", text)


def _tokens(text: str) -> list[str]:
    if text.isascii():  # the rest changes nothing there
        return _WORDED.ascii_token.findall(text)
    plain = unicodedata.normalize("NFKC", text).replace("’", "'")
    return _WORDED.token.findall(unwrapped(plain.replace("\u00ad", "")))  # where a word may be divided


def terms(text: str, language: str | None = None) -> list[str]:
    """Search terms in order, with repeats, stop words kept, no blanks in them: words with case and
    accents folded, the stem beside the form, identifiers whole and in parts, `c++`, `c#`, `.net`;
    CJK characters and bigrams, Chinese ones simplified. `language`: what `latin_language` gives of
    the text that this one is a part of; None: of itself."""
    text = composed(text)
    if language is None:
        language = latin_language(text)
    tokens = _tokens(text)
    if language:
        return [term for token in tokens for term in _expand(token, language)]
    if text.isascii():  # as `_expand` does it, in a third of the time
        return list(chain.from_iterable(map(_word_terms, tokens)))
    return [term for token in tokens for term in (_word_terms(token) if token < _UNCASED else _expand(token, ""))]


def stop_word(term: str) -> bool:
    """Is this term (as `terms` gives it) a word of grammar?"""
    return term in STOP_WORDS


_UNTELLING = _WORDS["web"].union(STOP_WORDS, *map(_word_terms, _WORDS["stop_words"] | _WORDS["talk"]))


def tells_topic(term: str) -> bool:
    """May this term say what a text is about?"""
    return len(term) > 1 and term not in _UNTELLING and "'" not in term  # we're


def without_grammar(found: Sequence[str]) -> list[str]:
    """Characteristic terms without the words of grammar of a language that several of them are of:
    "und", "der", "das" of German texts; "war" and "die" of English ones stay."""
    dropped: set[str] = set()
    for words in LANGUAGES.values():
        grammar = words.intersection(found)
        dropped |= grammar if len(grammar) >= GRAMMAR else set()
    return [term for term in found if term not in dropped]


GRAMMAR = 4  # words of it among the characteristic terms show a language


def query_terms(text: str, most: int = 64) -> list[str]:
    """At most `most` distinct terms worth searching, in order: without stop words when anything else
    remains, without single CJK characters when they stand in bigrams. WHO and IT in capitals within a
    normal sentence are names."""
    found, every = dict[str, None](), dict[str, None]()
    text = composed(text)
    shouted = text.isupper()
    language = latin_language(text)
    grammar = LANGUAGES[language] if language else frozenset()
    for token in _tokens(text):
        expanded = _expand(token, language)
        every.update(dict.fromkeys(expanded))
        if is_cjk(token[0]):
            pairs = [term for term in expanded if len(term) > 1] or expanded
            expanded = tuple(term for term in pairs if not stop_word(term))
        elif expanded and (shouted or len(token) < 2 or not token.isupper()):
            if stop_word(expanded[0]) or token.lower() in grammar:
                continue
        found.update(dict.fromkeys(expanded))
        if len(found) >= most:
            break
    return list(found or every)[:most]


# ---- names --------------------------------------------------------------------------------------
_OUTER = " .,;:!?…'\"`´“”‘’«»‹›*_|~^=<>/\\-–—·•，。、；：？！@"
_BRACKETS = dict(zip("([{《〈「『（【〔［｛", ")]}》〉」』）】〕］｝", strict=True))
_INITIALS = re.compile(r"\b[^\W\d_]\.(?: ?[^\W\d_]\.)+|\b[^\W\d_](?:\.[^\W\d_])+(?![\w.])")
_WORD_ENDS = re.compile(r"(?:'s?|\.)(?= |$)")
_ARTICLES = ("the ", "a ", "an ")
_NO_PLURAL, _LONG_PLURAL = (("as", "is", "os", "us", "ss", "ics"), ("xes", "ches", "shes", "sses", "zzes"))


@lru_cache(maxsize=1 << 15)
def normalise_name(name: str) -> str:
    """The key of an entity: two spellings with the same key are one name; a key is its own key.

    Case, width, traditional characters, Latin accents, possessives, outer quotes, brackets and
    articles, dots of abbreviations (`U.S.` is `us`, `J. R. R. Tolkien` is `jrr tolkien`) and the
    plural of the last English word are folded, and the legal form of a company is left out. `c++`, `c#`, `.net` stay apart from `c` and `net`.
    Never empty for a name with a letter or digit."""
    key = " ".join(folded(unicodedata.normalize("NFKC", name)).split())
    before = ""
    for _ in range(8):  # wrappings come in layers; no one writes nine
        if key in ("", before):
            break
        before = key
        is_plain = key.isascii() and key.replace(" ", "").isalnum()
        if not is_plain or key.startswith(_ARTICLES):
            key = _INITIALS.sub(lambda match: match[0].replace(".", "").replace(" ", ""), key)
            key = _WORD_ENDS.sub("", _unwrapped(key.replace("’", "'"))).strip()
            while key.startswith(_ARTICLES):
                key = key.partition(" ")[2]
            key = without_cases(key)
        key = _singular(_without_legal_form(key))
    return key or before or name.casefold().strip()


def content_id(*parts: str) -> str:
    """128-bit content hash of the parts as 32 hex digits; the one way ids are made."""
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


@lru_cache(maxsize=1 << 16)
def entity_id(key: str) -> str:
    return content_id("entity", key)


def relationship_id(source_id: str, target_id: str) -> str:
    return content_id("relationship", source_id, target_id)


def _unwrapped(key: str) -> str:
    """Without outer quotes, punctuation and brackets."""
    dot = "." if key[:1] == "." and key[1:2].isalpha() else ""
    key = key.lstrip(_OUTER + "#+").rstrip(_OUTER)
    for opening, closing in _BRACKETS.items():
        if key.startswith(opening) and (key.endswith(closing) or closing not in key):
            return key[1:].removesuffix(closing).strip()
        if key.endswith(closing) and opening not in key:
            return key[:-1]
    return dot + key


def _without_legal_form(key: str) -> str:
    """Acme Inc. is Acme. Of names in five sets of news and Wikipedia that end in such a form and stand
    without it too, 6 of 7 were the same company."""
    head, _, last = key.rpartition(" ")
    return head if head and last in LEGAL_FORMS else key


def _singular(key: str) -> str:
    """The plural s of the last English word folded; a single word of up to 8 letters may be a surname (Adams)."""
    head, _, last = key.rpartition(" ")
    word = len(last) > (3 if head else 8) and last.isascii() and last.isalpha() and last not in _WORDS["keep_s"]
    if not word or last[-1] != "s" or last.endswith(_NO_PLURAL):
        return key
    if last.endswith("ies"):
        return key[:-3] + "y"
    return key[: -2 if last.endswith(_LONG_PLURAL) else -1]


def bracketed(*parts: str) -> str:
    """The parts that are not empty, "(e3, person)"; "" where none is left."""
    text = ", ".join(part for part in parts if part)
    return f"({text})" if text else ""


def lists_of(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """The second values of pairs by their first, in order; an empty list for any other key."""
    found: dict[K, list[V]] = defaultdict(list)
    for key, value in pairs:
        found[key].append(value)
    return found


def by_reason(files: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """For each reason, in order of its first file, the paths: `a.png, b.png, c.png and 2 more`. `files`:
    {"path", "reason"}."""
    paths = lists_of((file.get("reason", ""), file.get("path", "")) for file in files)
    return {
        reason: ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")
        for reason, names in paths.items()
    }


def counted(count: int, things: str) -> str:
    """`1 text unit`, `26 entities`: `things` are named in the plural, with underscores or without."""
    name = things.replace("_", " ")
    if count == 1:
        name = f"{name[:-3]}y" if name.endswith("ies") else name.removesuffix("s")
    return f"{count:,} {name}"
