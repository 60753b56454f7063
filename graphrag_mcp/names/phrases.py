"""Phrases of capitalised words: which words belong together, and how each phrase stands in its text.

A phrase is cut where a title, a possessive, a date or a sentence ends."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from graphrag_mcp.names import lexicon as lex
from graphrag_mcp.names.kinds import acts, noun_type, words_before
from graphrag_mcp.names.lexicon import ordinary
from graphrag_mcp.text.prose import is_wrapped
from graphrag_mcp.text.terms import LOWER, STOP_WORDS, UPPER, WORD

_NUMBER = r"\d{1,4}"
_CAPITALISED = rf"[{UPPER}][{WORD}]*+(?:[’'‐&·-][{WORD}]++)*+(?!\$)"  # not US$370m
_DOTTED = rf"(?:[{UPPER}]\.)++(?:[{UPPER}](?![{WORD}]))?|(?:{'|'.join(lex.ABBREVIATED)})\."
_TOKEN = rf"{_DOTTED}|{_CAPITALISED}|[a-z]{{1,2}}[{UPPER}][{WORD}]*+"
_PARTICLE = rf"(?:{lex.either(lex.PARTICLES)})(?: (?:{lex.either(lex.ARTICLES)}))?"
_SEPARATOR = rf"(?:[ \n]|(?<=\.)| & |(?<=s)[’'] |[ \n]{_PARTICLE}[ \n]| ?al-)"
_PHRASE = re.compile(
    rf"(?<![{WORD}_.@/\\-])(?:{_NUMBER} )?(?:{_TOKEN})"
    rf"(?:{_SEPARATOR}(?:{_TOKEN}|{_NUMBER}(?![{WORD}%]|[.,:/–-]\d)))*+"
)
_PIECE = re.compile(rf"{_TOKEN}|{_NUMBER}")
_INITIAL = re.compile(rf"(?<![{WORD}])[{UPPER}{LOWER}]")
LOWER_BEHIND = re.compile(rf"[ \n][{LOWER}]{{3,}}")
# A capitalised word, and one that an everyday word may be glued to.
_COMPOUND = re.compile(
    rf"(?<![{WORD}-])([{UPPER}][{WORD}]*+) ([{UPPER}][{WORD}]*+-[{LOWER}]++)(?![{WORD}-])"
)
_WORD_BEHIND = re.compile(rf"[ \n]([{WORD}]++)")
ORIGIN = re.compile("[A-Z][a-z]{2,}(?:[aei]an|ish|ese|can)")  # Russian, Irish, Chinese, American
_SUFFIX = re.compile(
    rf"[’'][{LOWER}]{{0,4}}\Z|(?<=[A-Z]{{2}})s\Z"
)  # Mara's, James', Ankara'da, PRs
_DAY_BEHIND = re.compile(r"[.,]?[ \n]\d")
_OPENERS = frozenset(" \t\"“”‘'`(（[*#>_-–—•«„¿¡=|+\0")
_STOPS = frozenset(".!?…:;\n。！？|")
_ITEM = re.compile(r"(?:^|[\s(])[\da-z]{1,3}\)\Z", re.MULTILINE)  # (1) The, b) The
_LONGEST = 6  # words of a name


@dataclass(frozen=True, slots=True)
class Language:
    """The language of a text: its code, its words of grammar and, of German, the nouns of the text, whose
    capitals say nothing."""

    code: str
    grammar: AbstractSet[str]
    nouns: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Phrase:
    """A capitalised phrase, or a part of one. `opening`: a sentence, a heading or a quotation begins
    with it. `titled`: a title stands before it. `prose`: it stands in a sentence. `article`: "the"
    or "a", whatever the language, if an article stands before it; also "a" if it describes the noun
    behind it (the Asian economy)."""

    start: int
    end: int
    words: list[str]
    opening: bool
    titled: bool
    prose: bool
    article: str = ""

    @property
    def form(self) -> str:
        return " ".join(self.words)


class Phrases:
    """Reads the phrases of a text, whose sentences are `spans`. `compounds`: words such as Ki-moon, which a
    name ends with."""

    def __init__(self, text: str, spans: Sequence[tuple[int, int]], language: Language) -> None:
        self.text, self.spans, self.language = text, spans, language
        self.starts = [start for start, _ in spans]
        self._prose: dict[int, bool] = {}
        self.compounds = frozenset(self._compounds()) if "-" in text else frozenset[str]()

    def read(self) -> Iterator[Phrase]:
        for match in _PHRASE.finditer(self.text):
            if match[0].isalpha():  # a single word, as most phrases
                runs = [] if self._is_opening_grammar(match) else [[match]]
            else:
                runs = self._runs(list(_PIECE.finditer(self.text, *match.span())))
            yield from filter(None, map(self._phrase, runs))

    def _is_opening_grammar(self, match: re.Match[str]) -> bool:
        return (
            match[0].istitle()
            and match[0].lower() in self.language.grammar
            and _opens(self.text, match.start())
        )

    def _runs(self, pieces: list[re.Match[str]]) -> list[list[re.Match[str]]]:
        """The words of a phrase, divided where another name begins or one ends."""
        runs = [pieces[:1]]
        company = pieces[-1][0].lower().rstrip(".") in lex.COMPANY_FORMS
        nouns = frozenset[str]() if company else self.language.nouns  # der Hydrowerk Sensorik GmbH
        for piece in pieces[1:]:
            if self._ends(runs[-1][-1][0], piece[0], piece is pieces[-1]) or self._begins(
                runs[-1], piece, nouns
            ):
                runs.append([])
            runs[-1].append(piece)
        return runs

    def _ends(self, word: str, following: str, last: bool) -> bool:
        """Does a name end with this word: Israel's Dana Levi, London-based; not Schindler's List, where
        the phrase ends with an ordinary word?"""
        if _SUFFIX.search(word):
            owned = following.lower()
            return not (last and ordinary(owned) and owned not in lex.MONTHS)
        return self._adjective(word) > 0

    def _adjective(self, word: str) -> int:
        """The characters behind a name that an everyday word makes an adjective or a noun: London-based,
        T-shirts, all of Jack-in-office; not those of Moon Jae-in and Ban Ki-moon."""
        tail = word.rpartition("-")[2]
        is_glued = len(tail) < len(word) and tail.islower() and ordinary(tail)
        if not is_glued or tail in STOP_WORDS or word in self.compounds:
            return 0
        is_noun = word.rsplit("-", 2)[-2].islower()
        return len(word) if is_noun else len(tail) + 1

    def _compounds(self) -> Iterator[str]:
        """Words such as Ki-moon: they stand behind another capitalised word, and no noun follows them as one
        does an adjective (New York-style bars)."""
        for match in _COMPOUND.finditer(self.text):
            behind = _WORD_BEHIND.match(self.text, match.end())
            is_alone = not behind or behind[1] in STOP_WORDS or acts(self.text, match.end())
            if is_alone and match[1].lower() not in self.language.grammar:
                yield match[2]

    def _begins(
        self, run: list[re.Match[str]], piece: re.Match[str], nouns: frozenset[str]
    ) -> bool:
        """Does another name begin with this piece? `nouns`: words that are in no name."""
        last = run[-1]
        before = last[0].lower().rstrip(".")
        if self._sentence(last.start()) != self._sentence(piece.start()):
            return True
        if self._adjective(piece[0]) == len(piece[0]):
            return True  # Scotland Yard Jack-in-office
        line = self.text.find("\n", last.end(), piece.start())
        if line >= 0 and not is_wrapped(self.text, line):
            return True
        if self._is_date(last) or self._is_date(piece):
            return True  # on Monday San Francisco said
        link = self.text[last.end() : piece.start()].strip().split(" ")[0]
        if link and self.language.code == "de":
            # Otto von Bismarck, Universität der Künste; not Anzahl von Nachrichten
            person = link == "von" and nouns.isdisjoint((last[0], piece[0]))
            return len(run) > 1 or not (person or before in lex.NOUN_TYPES)
        if nouns and not link and lex.NOUN_TYPES.keys().isdisjoint((before, piece[0].lower())):
            return not nouns.isdisjoint((last[0], piece[0]))  # die Physikerin Hannelore Brück
        if link in ("of", "for"):
            # the University of Oxford; not Ann Quill of the Tidal Board, nor the President of Peru
            known = ordinary(before) if len(run) == 1 else before in lex.NOUN_TYPES
            return before in lex.TITLES or not known
        if last[0].isdigit() and len(run) > 1:
            return True  # Newcastle 2 Liverpool 1
        return piece[0].isdigit() and len(piece[0]) == 4  # Paris 1998

    def _is_date(self, piece: re.Match[str]) -> bool:
        """Is the word a month or a day of the week beside a number, or behind a word such as "on"?"""
        if piece[0].lower() not in lex.MONTHS:
            return False
        before = self.text[max(0, piece.start() - 12) : piece.start()].lower().split()[-1:] or [""]
        is_dated = before[0] in lex.BEFORE_DATES or before[0][:1].isdigit()
        return is_dated or _DAY_BEHIND.match(self.text, piece.end()) is not None

    def _phrase(self, run: list[re.Match[str]]) -> Phrase | None:
        """The phrase of a run of words: without numbers that count, the titles around it, and what is
        glued to its last word."""
        if run[0][0].isdigit():
            event = len(run) > 2 and lex.NOUN_TYPES.get(run[-1][0].lower()) == "event"
            run = run if event else run[1:]
        while len(run) > 2 and run[-1][0].isupper() and run[-1][0].lower() in lex.TITLES:
            run = run[:-1]  # Boris Johnson MP
        if not run:
            return None
        first = run[0].start()
        titles, titled = self._titles(run)
        run = run[titles:]
        if not run or len(run) > _LONGEST:
            return None
        words, start, end = [piece[0] for piece in run], run[0].start(), run[-1].end()
        suffix = _SUFFIX.search(words[-1])
        glued = len(suffix[0]) if suffix else self._adjective(words[-1])
        words[-1], end = words[-1][: len(words[-1]) - glued], end - glued
        if self.language.code in ("fr", "it") and words[0][1:2] in ("'", "’"):
            start, words[0] = start + 2, words[0][2:]  # L'Université
        if not words[0] or not words[-1]:
            return None
        opening = not titles and _opens(self.text, first)
        article = self._article(first, end, words[-1])
        return Phrase(start, end, words, opening, titled, self._is_prose(first), article)

    def _titles(self, run: list[re.Match[str]]) -> tuple[int, bool]:
        """How many words stand before the name as titles (Tory Shadow Chancellor Oliver Letwin), and
        are there any before a name?"""
        lows = [piece[0].lower().rstrip(".") for piece in run]
        for at in range(len(lows) - 2, -1, -1):
            title = lows[at] in lex.TITLES or (
                at == 0 < len(lows) - 2 and noun_type(lows[0]) == "person"  # Geologist Kate Lloyd
            )
            follows = self.text[run[at].end() : run[at + 1].start()].strip() in ("", ".")
            if follows and (lows[at] in lex.COURTESIES or (title and not ordinary(lows[at + 1]))):
                return at + 1, lows[-1] not in lex.NOUN_TYPES
        return (len(lows), False) if all(low in lex.TITLES for low in lows) else (0, False)

    def _article(self, start: int, end: int, last: str) -> str:
        before = (words_before(self.text, start) or [""])[-1].lower()
        article = "the" if before in lex.ARTICLES else ""
        article = "a" if before in lex.INDEFINITE_ARTICLES else article
        origin = self.language.code == "en" and ORIGIN.fullmatch(last)
        if (article or origin) and (noun := LOWER_BEHIND.match(self.text, end)):
            return article if noun[0][1:] in STOP_WORDS else "a"
        return article

    def _sentence(self, at: int) -> int:
        return max(bisect_right(self.starts, at) - 1, 0)

    def _is_prose(self, at: int) -> bool:
        """Is this place in a sentence, and not in a heading, a menu or a list of names?"""
        number = self._sentence(at)
        if number not in self._prose:
            start, end = self.spans[number] if self.spans else (0, len(self.text))
            letters = _INITIAL.findall(self.text, start, end)
            small = sum(map(str.islower, letters))
            closed = (
                self.text[start:end].rstrip(" \n\"'”’»)]*_").endswith((".", "!", "?", ";", "…"))
            )
            enough = small > 0 if closed else 2 * small >= max(len(letters), 2)
            self._prose[number] = enough and self.text[start] not in "#|"  # a heading, a row
        return self._prose[number]


def _opens(text: str, at: int) -> bool:
    """Does a sentence, heading, list item, quotation or bracket begin at this offset?"""
    index = at - 1
    while index >= 0 and text[index] in _OPENERS:
        if text[index] not in " \t-–—_\0":
            return True
        index -= 1
    if index >= 0 and text[index] == ")":
        return _ITEM.search(text, max(0, index - 5), index + 1) is not None
    return index < 0 or text[index] in _STOPS
