"""Phrases of capitalised words: which words belong together, and how each phrase stands in its text.

A phrase is cut where a title, a possessive, a date or a sentence ends."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from graphrag_mcp.names import lexicon as lex
from graphrag_mcp.names.kinds import word_before
from graphrag_mcp.names.lexicon import ordinary
from graphrag_mcp.text.terms import LOWER, STOP_WORDS, UPPER, WORD

_NUMBER = r"\d{1,4}"
_DOTTED = rf"(?:[{UPPER}]\.)++(?:[{UPPER}](?![{WORD}]))?|(?:{lex.either(lex.ABBREVIATED)})\."
_CAPITALISED = rf"[{UPPER}][{WORD}]*+(?:[’'‐&·-][{WORD}]++)*+(?!\$)"  # not US$370m
_TOKEN = rf"{_DOTTED}|{_CAPITALISED}|[a-z]{{1,2}}[{UPPER}][{WORD}]*+"
_PARTICLE = rf"(?:{lex.either(lex.PARTICLES)})(?: (?:{lex.either(lex.ARTICLES)}))?"
_SEPARATOR = rf"(?:[ \n]|(?<=\.)| & |(?<=s)[’'] |[ \n]{_PARTICLE}[ \n]| ?al-)"
_PHRASE = re.compile(
    rf"(?<![{WORD}_.@/\\-])(?:{_TOKEN})"
    rf"(?:{_SEPARATOR}(?:{_TOKEN}|{_NUMBER}(?![{WORD}%]|[.,:/–-]\d)))*+"
)
_PIECE = re.compile(rf"{_TOKEN}|{_NUMBER}")
_INITIAL = re.compile(rf"(?<![{WORD}])[{UPPER}{LOWER}]")
_SUFFIX = re.compile(rf"[’'][{LOWER}]{{0,4}}\Z|(?<=[A-Z]{{2}})s\Z")  # Mara's, Ankara'da, PRs
_OPENERS = frozenset(" \t\"“”‘'`(（[*#>_-–—•«„¿¡=|+\0")
_STOPS = frozenset(".!?…:;\n。！？|")
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
    with it. `titled`: a title stands before it. `prose`: it stands in a sentence. `before`: the word before it in
    lower case, "" for none."""

    start: int
    end: int
    words: list[str]
    opening: bool
    titled: bool
    prose: bool
    before: str = ""

    @property
    def form(self) -> str:
        return " ".join(self.words)


class Phrases:
    """Reads the phrases of a text, whose sentences are `spans`."""

    def __init__(self, text: str, spans: Sequence[tuple[int, int]], language: Language) -> None:
        self.text, self.spans, self.language = text, spans, language
        self.starts = [start for start, _ in spans]
        self._prose: dict[int, bool] = {}

    def read(self) -> Iterator[Phrase]:
        for match in _PHRASE.finditer(self.text):
            runs: list[list[re.Match[str]]] = []
            for piece in _PIECE.finditer(self.text, *match.span()):
                if not runs or self._begins(runs[-1], piece, match):
                    runs.append([])
                runs[-1].append(piece)
            yield from filter(None, map(self._phrase, runs))

    def _begins(self, run: list[re.Match[str]], piece: re.Match[str], phrase: re.Match[str]) -> bool:
        """Does another name begin with this piece of a phrase?"""
        before, following = run[-1][0].lower().rstrip("."), piece[0].lower()
        if self._sentence(run[-1].start()) != self._sentence(piece.start()):
            return True
        if _SUFFIX.search(run[-1][0]):  # Israel's Dana Levi; not Schindler's List
            last = piece.end() == phrase.end()
            return not (last and ordinary(following)) or following in lex.MONTHS
        if _adjective(run[-1][0], len(run)) or self._is_date(run[-1]) or self._is_date(piece):
            return True  # London-based Acme, on Monday San Francisco said
        link = self.text[run[-1].end() : piece.start()].strip().split(" ")[0]
        nouns = self.language.nouns
        if link and self.language.code == "de":
            # Otto von Bismarck, Universität der Künste; not Anzahl von Nachrichten
            person = link == "von" and nouns.isdisjoint((run[-1][0], piece[0]))
            return len(run) > 1 or not (person or before in lex.NOUN_TYPES)
        if nouns and not link and lex.NOUN_TYPES.keys().isdisjoint((before, following)):
            return not nouns.isdisjoint((run[-1][0], piece[0]))  # die Physikerin Hannelore Brück
        if link in ("of", "for"):
            # the University of Oxford; not Ann Quill of the Tidal Board, nor the President of Peru
            known = ordinary(before) if len(run) == 1 else before in lex.NOUN_TYPES
            return before in lex.TITLES or not known
        return piece[0].isdigit() and len(piece[0]) == 4  # Paris 1998

    def _is_date(self, piece: re.Match[str]) -> bool:
        """Is the word a month or a day of the week behind a number, or a word such as "on"?"""
        if piece[0].lower() not in lex.MONTHS:
            return False
        before = word_before(self.text, piece.start()).lower()
        return before in lex.BEFORE_DATES or before[:1].isdigit()

    def _phrase(self, run: list[re.Match[str]]) -> Phrase | None:
        """The phrase of a run of words: without the titles before it, and without what is glued to its last
        word."""
        run = run[run[0][0].isdigit() :]  # By 1957 Calloway
        titles = self._titles(run)
        opening = not titles and bool(run) and _opens(self.text, run[0].start())
        run = run[titles:]
        if not 0 < len(run) <= _LONGEST:
            return None
        words, start, end = [piece[0] for piece in run], run[0].start(), run[-1].end()
        suffix = _SUFFIX.search(words[-1])
        glued = len(suffix[0]) if suffix else _adjective(words[-1], len(words))
        words[-1], end = words[-1][: len(words[-1]) - glued], end - glued
        if self.language.code in ("fr", "it") and words[0][1:2] in ("'", "’"):
            start, words[0] = start + 2, words[0][2:]  # L'Université
        if not words[0] or not words[-1]:
            return None
        before = word_before(self.text, start).lower()
        return Phrase(start, end, words, opening, bool(titles), self._is_prose(start), before)

    def _titles(self, run: list[re.Match[str]]) -> int:
        """How many words stand before the name as titles (Tory Shadow Chancellor Oliver Letwin)."""
        lows = [piece[0].lower().rstrip(".") for piece in run]
        for at in range(len(lows) - 2, -1, -1):
            title = lows[at] in lex.TITLES and not ordinary(lows[at + 1])
            follows = self.text[run[at].end() : run[at + 1].start()].strip() in ("", ".")
            if follows and (title or lows[at] in lex.COURTESIES):
                return at + 1
        return len(lows) if lex.TITLES.issuperset(lows) else 0

    def _sentence(self, at: int) -> int:
        return max(bisect_right(self.starts, at) - 1, 0)

    def _is_prose(self, at: int) -> bool:
        """Is this place in a sentence, and not in a heading, a menu or a list of names? Half of the words
        of a sentence begin in lower case, or it ends as one and any does."""
        number = self._sentence(at)
        if number not in self._prose:
            start, end = self.spans[number] if self.spans else (0, len(self.text))
            sentence = self.text[start:end]
            letters = _INITIAL.findall(sentence)
            small = sum(map(str.islower, letters))
            closed = sentence.rstrip(" \n\"'”’»)]*_").endswith((".", "!", "?", ";", "…"))
            enough = small > 0 if closed else 2 * small >= max(len(letters), 2)
            self._prose[number] = enough and sentence[0] not in "#|"  # a heading, a row
        return self._prose[number]


def _adjective(word: str, words: int) -> int:
    """The characters behind a name that an everyday word makes an adjective: London-based, T-shirts; of a name of
    several words a participle alone (New York-based, not Ban Ki-moon)."""
    head, hyphen, tail = word.rpartition("-")
    glued = hyphen and tail.islower() and ordinary(tail) and tail not in STOP_WORDS
    return len(word) - len(head) if glued and (words == 1 or tail.endswith("ed")) else 0


def _opens(text: str, at: int) -> bool:
    """Does a sentence, heading, list item, quotation or bracket begin at this offset?"""
    index = at - 1
    while index >= 0 and text[index] in _OPENERS:
        if text[index] not in " \t-–—_\0":
            return True
        index -= 1
    return index < 0 or text[index] in _STOPS
