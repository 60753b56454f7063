"""Does a question ask what a collection is about, or after something in it?

A question whose words are all words of grammar or of asking.toml selects no document before another, so it
asks for an overview of all. tests/query/asking.toml holds questions that decide which words are worth a place
there. A question that is missed costs an agent one more call, so precision comes first."""

from __future__ import annotations

import re
from functools import cache

from graphrag_mcp.text.terms import (
    LANGUAGES,
    SIMPLIFY,
    STOP_WORDS,
    folded,
    is_cjk,
    latin_language,
    table,
)

LONGEST = 1_000  # characters of a question that are read
# Letters with the signs of their script: vowels of Hindi and Thai are no letters.
_LETTER = r"[^\W_\u0e00-\u0e7f]|[\u0900-\u0903\u093a-\u094f\u064b-\u065f]"
# A compound is one word: "back-run" is not "run".
_WORD = re.compile(rf"(?:{_LETTER})+[+#]*(?:-(?:{_LETTER})+)*|[\u0e00-\u0e7f]+")
# "The 5 main themes" only counts; the 's of "what's" is no word.
_NO_WORD = re.compile(r"(?<!\S)\d{1,2}\s+(?=[^\W\d_])|['’]s\b")
_KOREAN = re.compile("[가-힣]+")
_BLANKED = re.compile("[가-힣]+|[\u0e00-\u0e7f]+")  # Korean words; Thai between blanks
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


@cache
def _listed(*groups: str) -> tuple[frozenset[str], re.Pattern[str]]:
    """The words of groups of asking.toml, and a pattern of those of scripts without blanks."""
    listed = " ".join(words for group in groups for words in table(__file__)[group].values())
    words = listed.translate(SIMPLIFY).split()
    return frozenset(map(folded, words)), re.compile(_any_of(list(filter(_dense, words))))


@cache
def _english() -> frozenset[str]:
    groups = table(__file__)
    return frozenset(f"{groups['asking']['en']} {groups['collection']['en']}".split())


@cache
def _korean_or_thai() -> re.Pattern[str]:
    """A Korean or Thai word that is made of listed ones. Korean words of one character are endings:
    가을 is not 가 and 을."""
    dense = list(filter(_dense, " ".join(_listed("asking", "collection")[0]).split()))
    long, endings = ([word for word in dense if (len(word) > 1) is size] for size in (True, False))
    return re.compile(f"(?:{_any_of(long)})+(?:{_any_of(endings)})?")


@cache
def _particles() -> re.Pattern[str]:
    return re.compile(_any_of(list(filter(_dense, STOP_WORDS))))


def without_asking(query: str) -> str:
    """A question, simplified, without the words that ask. In scripts without blanks, words of one
    character or with Hiragana stay, since they may be parts of other words (きのこ); of Korean and Thai,
    whole words are removed."""
    words, dense = _listed("asking", "collection")
    text = _NO_WORD.sub("", query.translate(SIMPLIFY))
    # A capital within a sentence names something, except where all nouns have one: "What did Next report?"
    names = latin_language(text) != "de" and not text.istitle()

    def without(word: re.Match[str]) -> str:
        before = text[: word.start()].rstrip()
        named = names and word[0].istitle() and before and before[-1] not in ".!?:;¿¡…"
        if named and word[0].lower() in _english():
            return word[0]
        listed = all(folded(part) in words for part in word[0].split("-"))
        if listed or _korean_or_thai().fullmatch(word[0]):
            return " "
        if not _dense(word[0]) or _BLANKED.fullmatch(word[0]):
            return word[0]
        return dense.sub(
            lambda part: part[0] if len(part[0]) < 2 or _HIRAGANA.search(part[0]) else " ", word[0]
        )

    return _WORD.sub(without, text)


def asks_for_all(query: str) -> bool:
    """Does a question ask for an overview of all? An empty one does not."""
    query = query[:LONGEST].translate(SIMPLIFY)
    left = _WORD.findall(without_asking(query))
    language = latin_language(query)
    grammar = STOP_WORDS | (LANGUAGES[language] if language else frozenset())
    shouted = query.isupper()  # else US and IT are names
    runs = [word for word in left if _dense(word) and not _BLANKED.fullmatch(word)]
    others = [part for word in left if word not in runs for part in word.split("-")]
    return (
        without_asking(query) != query
        and not _particles().sub("", _listed("asking", "collection")[1].sub("", "".join(runs)))
        and all(
            not grammar.isdisjoint((folded(word), word.lower()))
            and (shouted or len(word) < 2 or not word.isupper())
            for word in others
        )
    )


def rest_of_overview(query: str) -> str:
    """What a question asks behind a first clause that asks for an overview of all by a word for the collection
    and one that asks ("What are these documents about, and which disputes run through them?"); "" where it
    has no such clause. "In these documents" only says where."""

    def holds(clause: str, group: str) -> bool:
        words, dense = _listed(group)
        found = (folded(word) for word in _WORD.findall(clause))
        return not words.isdisjoint(found) or bool(dense.search(clause))

    for end in _CLAUSE_ENDS.finditer(query[:LONGEST]):
        clause, rest = query[: end.start()], query[end.end() : LONGEST].strip()
        whole = holds(clause, "asking") and holds(clause, "collection")
        if rest and whole and asks_for_all(clause):
            return "" if asks_for_all(query) else rest
    return ""
