"""Does a question ask what a collection is about, or after something in it?

One rule: a question whose words are all words of grammar, words for a collection or words that ask, selects no document
before another, so it asks for an overview of all. Otherwise the words that ask count little (query/asking.toml).
Lists hold for questions of their language; a number, a letter and a capital within a sentence name something."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from graphrag_mcp.text.terms import LANGUAGES, SIMPLIFY, STOP_WORDS, is_cjk, table, terms

LONGEST = 1_000  # characters of a question that are read
LONGEST_KOREAN = 20  # characters of a Korean word with its endings
# Letters with the signs of their script: vowels of Hindi and Thai are no letters.
_LETTER = r"[^\W\d_\u0e00-\u0e7f]|[\u0900-\u0903\u093a-\u094f\u064b-\u065f]"
_WORD = re.compile(rf"(?:{_LETTER})+|[\u0e00-\u0e7f]+")

_ENGLISH = LANGUAGES["en"] | STOP_WORDS
_HIRAGANA = re.compile("[ぁ-ゖ]")
_KOREAN = re.compile("[가-힣]+")
_BLANKED = re.compile("[가-힣]+|[\u0e00-\u0e7f]+")  # Korean words; Thai between blanks
_SENTENCE_ENDS = re.compile(r"[.!?:;…¿¡\n。！？：；]")
_CLAUSE_ENDS = re.compile(
    r"[.?!;:,。？！；：，]\s*(?:(?:and|und|et|y|e|и|та)\s+)?|\s+(?:and|und|et|y|e|и|та)\s+|以及",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<!\S)\S*?\d\S*")
_COUNT = re.compile(r"\d{1,2}")
_COUNTED = re.compile(r"(?<![第\d.,/:-])\d{1,2}(?=[个つ大点]|가지|개)")  # 5个主题
_SIGNED_LETTER = re.compile(r"(?<!\w)[^\W\d_][+#]")  # C++


@dataclass(frozen=True, slots=True)
class Words:
    """Words of asking.toml: whole words, beginnings of words, words that are written with capitals,
    and words of scripts without blanks."""

    whole: frozenset[str]
    beginnings: tuple[str, ...]
    capitals: frozenset[str]
    dense: re.Pattern[str]
    korean: re.Pattern[str]

    def hold(self, word: str) -> bool:
        return word in self.whole or word.startswith(self.beginnings)

    def cover(self, run: str) -> bool:
        """Is a run of a script without blanks made of these words alone? A Korean word begins with a word of two
        characters or more, and those of one character are its endings: 가을 is not 가 and 을."""
        if _KOREAN.fullmatch(run):
            return len(run) <= LONGEST_KOREAN and self.korean.fullmatch(run) is not None
        return not self.dense.sub("", run)


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a question in lower case. `name`: it has a capital within a sentence."""

    form: str
    name: bool
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Question:
    """The words of a question: those of scripts with blanks, and the runs of others."""

    text: str
    plain: tuple[Word, ...]
    dense: tuple[str, ...]

    def joined(self) -> str:
        """The runs of characters of scripts without blanks (Korean apart), joined into one string."""
        return "".join(run for run in self.dense if not _KOREAN.fullmatch(run))

    def korean(self) -> list[str]:
        return [run for run in self.dense if _KOREAN.fullmatch(run)]


def _dense(word: str) -> bool:
    """Is the word of a script without blanks, or with endings at its words (Korean)?"""
    return any(is_cjk(ch) or "\u0e00" <= ch <= "\u0e7f" for ch in word)


def _any_of(words: list[str]) -> str:
    """A pattern of any of these words, long ones first."""
    return "|".join(map(re.escape, sorted(words, key=lambda word: (-len(word), word)))) or "(?!)"


@cache
def words_of(language: str, *groups: str) -> Words:
    """The words of groups of asking.toml in English, a language, and all scripts that tell their language."""
    groups_of = table(__file__)
    text = " ".join(
        words
        for group in groups
        for name, words in groups_of[group].items()
        if name in ("en", language) or name not in LANGUAGES
    )
    listed = text.translate(SIMPLIFY).split()
    dense = list(filter(_dense, listed))
    korean = list(filter(_KOREAN.fullmatch, dense))
    stem, ending = (
        _any_of([word for word in korean if (len(word) > 1) is long]) for long in (True, False)
    )
    return Words(
        frozenset(word.casefold() for word in listed if not word.endswith("*")),
        tuple(word[:-1] for word in listed if word.endswith("*")),
        frozenset(word for word in listed if word != word.lower()),
        re.compile(_any_of(dense)),
        re.compile(f"(?:{stem})+(?:{ending})*|(?:{ending})"),
    )


@cache
def _grammar(language: str) -> tuple[frozenset[str], re.Pattern[str]]:
    """The words of grammar of English and of a language, and a pattern of those of scripts without blanks."""
    words = _ENGLISH | LANGUAGES[language]
    return words, re.compile(_any_of(list(filter(_dense, words))))


@cache
def _capitals() -> frozenset[str]:
    return words_of("en", "overview", "collection", "orders", "asking").capitals


def _read(query: str) -> Question:
    """The words of a question of two characters or more."""
    text = query[:LONGEST].translate(SIMPLIFY)
    found = list(_WORD.finditer(text))
    # In a title, or in capitals throughout, they tell nothing.
    titled = len(found) > 1 and all(word[0][0].isupper() for word in found if len(word[0]) > 1)
    plain: list[Word] = []
    end = 0
    for word in found:
        within = end > 0 and not _SENTENCE_ENDS.search(text, end, word.start())
        end = word.end()
        if _dense(word[0]):
            continue
        capital = within and word[0][0].isupper() and word[0] != "I" and word[0] not in _capitals()
        plain.append(Word(word[0].casefold(), capital and not titled, word.start(), end))
    return Question(text, tuple(plain), tuple(word[0] for word in found if _dense(word[0])))


def _languages(question: Question) -> tuple[str, ...]:
    """The languages of the most words of grammar in a question; () where it has none."""
    forms = {word.form for word in question.plain}
    counts = {
        name: len(forms & (_ENGLISH if name == "en" else words))
        for name, words in LANGUAGES.items()
    }
    most = max(counts.values())
    return tuple(name for name, count in counts.items() if count == most) if most else ()


def _numbers_something(question: Question, language: str) -> bool:
    """Is there a year, a code or the number of something? "The 5 main themes" only counts."""
    grammar, _ = _grammar(language)
    orders = words_of(language, "orders")
    asking = words_of(language, "overview", "collection", "orders", "asking", "framing")
    around = list(pairwise(question.plain))
    for number in _NUMBER.finditer(_COUNTED.sub(lambda count: " " * len(count[0]), question.text)):
        sides = next(
            (
                pair
                for pair in around
                if pair[0].end <= number.start() and number.end() <= pair[1].start
            ),
            None,
        )
        if not sides or not _COUNT.fullmatch(number[0]):
            return True
        before, after = (side.form for side in sides)
        blank = not question.text[sides[0].end : number.start()].strip()
        ordered = blank and (before in grammar or orders.hold(before))
        if not ordered or after in grammar or not asking.hold(after):
            return True
    return False


def _asks_in(language: str, question: Question) -> bool:
    """Does it ask for an overview of all, read in a language?"""
    asking = words_of(language, "overview", "collection", "orders", "asking")
    framing = words_of(language, "framing")
    grammar, particles = _grammar(language)
    names = language != "de"  # where all nouns have capitals, they tell nothing

    def asks(word: Word) -> bool:
        return not (names and word.name) and (word.form in grammar or asking.hold(word.form))

    plain = [word for word in question.plain if len(word.form) > 1]
    asked = [
        word for word in plain if asks(word) or (names and word.name) or not framing.hold(word.form)
    ]
    if not (asked or question.dense) or not all(map(asks, asked)):
        return False
    if not all(map(asking.cover, question.korean())) or _numbers_something(question, language):
        return False
    return not particles.sub("", asking.dense.sub("", question.joined()))


def asks_for_all(query: str) -> bool:
    """Is it an overview of all that is asked for? An empty question is none of these."""
    question = _read(query)
    if _SIGNED_LETTER.search(question.text) or any(
        word.name and len(word.form) == 1 for word in question.plain
    ):
        return False
    if languages := _languages(question):
        return any(_asks_in(language, question) for language in languages)
    # Where no language shows, a word or two of another language than English may be a name.
    sentence = len(question.plain) > 2
    return any(
        _asks_in(name, question) and (name == "en" or sentence or _overview(question, name) != "")
        for name in LANGUAGES
    )


def _overview(question: Question, language: str) -> str:
    """The word of a question, read in a language, that asks for an overview; "" for none."""
    overview = words_of(language, "overview")
    for word in question.plain:
        if len(word.form) > 1 and overview.hold(word.form) and (language == "de" or not word.name):
            return word.form
    asking = words_of(language, "overview", "collection", "orders", "asking")
    runs = [question.joined(), *filter(asking.cover, question.korean())]
    return next((found[0] for run in runs if (found := overview.dense.search(run))), "")


def rest_of_overview(query: str) -> str:
    """What a question asks behind a first clause that asks for an overview of all ("What are these documents
    about, and which disputes run through them?"); "" where it has no such clause, or where the rest has a
    name or a number, which says what is asked about."""
    for end in _CLAUSE_ENDS.finditer(query[:LONGEST]):
        clause, rest = query[: end.start()], query[end.end() : LONGEST].strip()
        if not rest or not _opens(clause):
            continue
        sentence = _SENTENCE_ENDS.search(end[0]) is not None
        question = _read(rest if sentence else f"x {rest}")  # its first word is within a sentence
        named = any(word.name for word in question.plain) and "de" not in _languages(_read(query))
        if named or _NUMBER.search(rest):
            return ""
        return "" if asks_for_all(query) else rest
    return ""


def _opens(clause: str) -> bool:
    """Does a clause ask for an overview of all by a word for it, or by a question that begins so and has a
    word for the collection? "In these documents" and "In which documents" only say where."""
    if not asks_for_all(clause):
        return False
    question = _read(clause)
    forms = [word.form for word in question.plain]
    for language in _languages(question) or ("en",):
        asking, before = words_of(language, "interrogatives"), words_of(language, "before")
        start = forms[1:] if forms[:1] and before.hold(forms[0]) else forms
        whole = words_of(language, "collection", "whole")
        begins = any(map(asking.hold, start[:1])) and any(map(whole.hold, forms))
        if _overview(question, language) or begins:
            return True
        joined = question.joined()
        if asking.dense.search(joined) and whole.dense.search(joined):
            return True
    return False


def names_an_overview(query: str) -> str:
    """The word of a question that asks for themes, a summary or the like; "" for none."""
    question = _read(query)
    found = (_overview(question, language) for language in _languages(question) or LANGUAGES)
    return next(filter(None, found), "")


@cache
def _terms_in(language: str) -> frozenset[str]:
    return frozenset(
        terms(" ".join(words_of(language, "overview", "orders", "asking", "framing").whole))
    )


def asking_terms(query: str) -> frozenset[str]:
    """The terms of words of the question's language that ask or frame, which say little of what is asked about."""
    question = _read(query)
    languages = _languages(question) or ("en",)
    named = [] if "de" in languages else [word.form for word in question.plain if word.name]
    return frozenset().union(*map(_terms_in, languages)).difference(terms(" ".join(named)))


def without_asking(query: str) -> str:
    """A question, simplified, without the words that ask. This concerns scripts without blanks; of
    Korean and Thai, whole words are removed. Words of one character, or with Hiragana, stay,
    since they may be parts of other words (きのこ)."""
    asking = words_of("en", "overview", "orders", "asking")

    def kept(word: re.Match[str]) -> str:
        whole = len(word[0]) < 2 or _HIRAGANA.search(word[0]) or _BLANKED.match(word[0])
        return word[0] if whole else " "

    text = asking.dense.sub(kept, query.translate(SIMPLIFY))
    return _BLANKED.sub(lambda run: " " if asking.cover(run[0]) else run[0], text)
