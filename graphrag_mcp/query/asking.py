"""Does a question ask what a collection is about, or after something in it?

A question whose words are all words of grammar or of asking.toml in its language, and no names, selects no
document before another, so it asks for an overview of all. tests/query/asking.toml holds questions that decide
which words are worth a place there. A question that is missed costs an agent one more call, so precision comes
first."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from itertools import chain

from graphrag_mcp.text.terms import LANGUAGES, SIMPLIFY, STOP_WORDS, folded, is_cjk, table

LONGEST = 1_000  # characters of a question that are read
# Letters with the signs of their script: vowels of Hindi and Thai are no letters.
_LETTER = r"[^\W_\u0e00-\u0e7f]|[\u0900-\u0903\u093a-\u094f\u064b-\u065f]"
# A compound is one word: "back-run" is not "run".
_WORD = re.compile(rf"(?:{_LETTER})+[+#]*(?:-(?:{_LETTER})+)*|[\u0e00-\u0e7f]+")
# "The 5 main themes" only counts; the 's of "what's" is no word.
_NO_WORD = re.compile(r"(?<!\S)\d{1,2}\s+(?=[^\W\d_])|['’]s\b")
_BLANKED = re.compile("[가-힣]+|[\u0e00-\u0e7f]+")  # Korean words; Thai between blanks
_SENTENCE_ENDS = ".!?:;¿¡…。？！：；\n"
_OPENING = " \t\"'(“„«»‘*-"
_HIRAGANA = re.compile("[ぁ-ゖ]")
_CLAUSE_ENDS = re.compile(
    r"[.?!;:,。？！；：，]\s*(?:(?:and|und|et|y|e|и|та)\s+)?|\s+(?:and|und|et|y|e|и|та)\s+|以及",
    re.IGNORECASE,
)


def _dense(word: str) -> bool:
    """Is the word of a script without blanks, or with endings at its words (Korean)?"""
    return any(is_cjk(ch) or "\u0e00" <= ch <= "\u0e7f" for ch in word)


def _any_of(words: list[str]) -> str:
    """A pattern of any of these words, long ones first."""
    return "|".join(map(re.escape, sorted(words, key=lambda word: (-len(word), word)))) or "(?!)"


@dataclass(frozen=True, slots=True)
class Words:
    """Words of groups of asking.toml: of scripts with blanks, those written with capitals, and a pattern
    of those of scripts without blanks."""

    forms: frozenset[str]
    capitals: frozenset[str]
    dense: re.Pattern[str]


@cache
def _words(languages: tuple[str, ...], *groups: str) -> Words:
    """The words in English, in these languages, and in all scripts that tell their language. Latin letters
    keep their marks (tóm is not Tom)."""
    listed = " ".join(
        words
        for group in groups
        for name, words in table(__file__)[group].items()
        if name in ("en", *languages) or name not in LANGUAGES
    )
    words = listed.translate(SIMPLIFY).split()
    return Words(
        frozenset(
            chain(map(str.lower, words), (folded(word) for word in words if word[0] > "\u0250"))
        ),
        frozenset(word for word in words if word.isupper() and word.isascii()),
        re.compile(_any_of(list(filter(_dense, words)))),
    )


@cache
def _grammar(language: str) -> frozenset[str]:
    return STOP_WORDS | LANGUAGES["en"] | LANGUAGES[language]


def _languages(query: str) -> tuple[str, ...]:
    """The languages with the most words of grammar of a question; () where it has none."""
    forms = {word.lower() for word in _WORD.findall(query)}
    counts = {
        name: len(forms & (_grammar("en") if name == "en" else words))
        for name, words in LANGUAGES.items()
    }
    most = max(counts.values())
    return tuple(name for name, count in counts.items() if count == most) if most else ()


@cache
def _korean_or_thai() -> re.Pattern[str]:
    """A Korean or Thai word that is made of listed ones. Korean words of one character are endings:
    가을 is not 가 and 을."""
    dense = list(filter(_dense, _words((), "asking", "collection").forms))
    long, endings = ([word for word in dense if (len(word) > 1) is size] for size in (True, False))
    return re.compile(f"(?:{_any_of(long)})+(?:{_any_of(endings)})?")


@cache
def _particles() -> re.Pattern[str]:
    return re.compile(_any_of(list(filter(_dense, STOP_WORDS))))


def _without(query: str, languages: tuple[str, ...], *groups: str) -> str:
    """A question, simplified, without words of groups of asking.toml and without numbers that only count."""
    words = _words(languages, *groups)
    text = _NO_WORD.sub("", query.translate(SIMPLIFY))
    names = _names(text, languages)

    def without(match: re.Match[str]) -> str:
        word = match[0]
        if word in names and word not in words.capitals:
            return word
        listed = all(
            part.lower() in words.forms or folded(part) in words.forms for part in word.split("-")
        )
        if listed or _korean_or_thai().fullmatch(word):
            return " "
        if not _dense(word) or _BLANKED.fullmatch(word):
            return word
        return words.dense.sub(
            lambda part: part[0] if len(part[0]) < 2 or _HIRAGANA.search(part[0]) else " ", word
        )

    return _WORD.sub(without, text)


def _names(text: str, languages: tuple[str, ...]) -> frozenset[str]:
    """Words that a capital within a sentence, or capitals alone, make names ("What did Will report?"). In German a
    first capital tells nothing, and neither does one in a title."""
    words = list(_WORD.finditer(text))
    capitals = [word for word in words if word[0][0].isupper() and word[0] != "I"]
    if len(words) > 1 and all(word[0][0].isupper() for word in words if len(word[0]) > 1):
        return frozenset()
    starts = (
        not text[: word.start()].rstrip(_OPENING)[-1:].strip(_SENTENCE_ENDS) for word in capitals
    )
    return frozenset(
        word[0]
        for word, first in zip(capitals, starts, strict=True)
        if (word[0].isupper() and len(word[0]) > 1) or not (first or "de" in languages)
    )


def without_asking(query: str) -> str:
    """A question, simplified, without the words that ask or frame; where nothing else is left of a question
    that does not ask for all, only those that ask. In scripts without blanks, words of one character or with
    Hiragana stay, since they may be parts of other words (きのこ); of Korean and Thai, whole words are
    removed."""
    languages = _languages(query) or ("en",)
    if only_asks(query) and not asks_for_all(query):
        return _without(query, languages, "asking")
    return _without(query, languages, "asking", "collection", "framing")


def only_asks(query: str) -> bool:
    """Does a question hold words of grammar and such that ask or frame, and no others?"""
    languages = _languages(query) or ("en",)
    left = _without(query, languages, "asking", "collection", "framing")
    return any(_only_grammar(left, query, language) for language in languages)


def _only_grammar(left: str, query: str, language: str) -> bool:
    """Are all words that are left of a question words of grammar and no names?"""
    names = _names(query, (language,))
    runs = [word for word in _WORD.findall(left) if _dense(word) and not _BLANKED.fullmatch(word)]
    dense = _words((), "asking", "collection").dense
    others = [word for word in _WORD.findall(left) if word not in runs]
    grammar = _grammar(language)
    return not _particles().sub("", dense.sub("", "".join(runs))) and all(
        word not in names and not grammar.isdisjoint((folded(part), part.lower()))
        for word in others
        for part in word.split("-")
    )


def asks_for_all(query: str) -> bool:
    """Does a question ask for an overview of all? An empty one does not."""
    query = query[:LONGEST].translate(SIMPLIFY)
    for language in _languages(query) or LANGUAGES:
        left = _without(query, (language,), "asking", "collection")
        if left != query and _only_grammar(left, query, language):
            return True
    return False


def rest_of_overview(query: str) -> str:
    """What a question asks behind a first clause that asks for an overview of all by a word for the collection
    and one that asks ("What are these documents about, and which disputes run through them?"); "" where it
    has no such clause. "In these documents" only says where."""

    def holds(clause: str, group: str) -> bool:
        words = _words(_languages(clause) or tuple(LANGUAGES), group)
        found = (word.lower() for word in _WORD.findall(clause))
        return not words.forms.isdisjoint(found) or bool(words.dense.search(clause))

    for end in _CLAUSE_ENDS.finditer(query[:LONGEST]):
        clause, rest = query[: end.start()], query[end.end() : LONGEST].strip()
        whole = holds(clause, "asking") and holds(clause, "collection")
        if rest and whole and asks_for_all(clause):
            return "" if asks_for_all(query) else rest
    return ""
