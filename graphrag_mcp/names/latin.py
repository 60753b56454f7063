"""Proper names in scripts with capitals: phrases of capitalised words, judged by the evidence of their text.

A capital says that a word may be a name; it may also open a sentence, stand in a heading, or be a
noun of German. Three observations decide: how often the word stands capitalised within sentences,
how often the text has it in lower case, and whether it is an ordinary word. Names of several words
are cut where a title, a possessive or a sentence ends. Evidence of the other text units is counted
where mentions are merged (`index/graph.py`)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cache
from operator import or_

from graphrag_mcp.names import lexicon as lex
from graphrag_mcp.names.kinds import attributive, by_form, kind_of, noun_type, words_before
from graphrag_mcp.names.lexicon import ordinary
from graphrag_mcp.text.temporal import DAY_WORDS
from graphrag_mcp.text.terms import (
    LANGUAGES,
    LEGAL_FORMS,
    LOWER,
    STOP_WORDS,
    UPPER,
    WORD,
    stop_word,
)

_CAP = rf"[{UPPER}][{WORD}]*+(?:[’'‐&·-][{WORD}]++)*+(?!\$)"  # not US$370m
_DOTTED = rf"(?:[{UPPER}]\.)++(?:[{UPPER}](?![{WORD}]))?|(?:{'|'.join(lex.ABBREVIATED)})\."
_TOKEN = rf"{_DOTTED}|{_CAP}|[a-z]{{1,2}}[{UPPER}][{WORD}]*+"
_PARTICLE = "|".join(sorted(lex.PARTICLES, key=lambda word: (-len(word), word)))
_SEPARATOR = rf"(?:[ \n]|(?<=\.)| & |(?<=s)[’'] |[ \n](?:{_PARTICLE})(?: (?:{'|'.join(sorted(lex.ARTICLES))}))?[ \n]| ?al-)"
_NUMBER = r"\d{1,4}"
_PHRASE = re.compile(
    rf"(?<![{WORD}_.@/\\-])(?:{_NUMBER} )?(?:{_TOKEN})(?:{_SEPARATOR}(?:{_TOKEN}|{_NUMBER}(?![{WORD}%]|[.,:/–-]\d)))*+"
)
_PIECE = re.compile(rf"{_TOKEN}|{_NUMBER}")
_LOWER_WORD = re.compile(rf"(?<![{WORD}_.@/\\’'-])[{LOWER}]{{2,}}+(?![{WORD}_(’'])")
_INITIAL_LETTER = re.compile(rf"(?<![{WORD}])[{UPPER}{LOWER}]")
_SMALL_INITIAL = re.compile(rf"[{LOWER}](?<![{WORD}].)")
_ORIGIN = re.compile("[A-Z][a-z]{2,}(?:[aei]an|ish|ese|can)")  # Russian, Irish, Chinese, American
_NOUN_BEHIND = re.compile(rf"[ \n]([{LOWER}]{{3,}})")
_CLOSED = re.compile(r"[.!?;…][\"'”’»)\]*_]{0,3}\s*\Z")
_ADDRESSED = tuple(",.!?…")  # behind the name of who is addressed
_ROMAN = re.compile("[IVX]{1,5}")
_MONTHS = sorted(map(str.title, lex.MONTHS), key=lambda word: (-len(word), word))
# Without a look at what stands before it, so that `re` skips to the next first letter: a sixth of the time.
_MONTH = re.compile(rf"(?:{'|'.join(_MONTHS)})(?![{WORD}-])")
_JOINED = re.compile(rf"[{WORD}-]")
_COMPOUND = re.compile(
    rf"(?<![{WORD}-])([{UPPER}][{WORD}]*+(?:-[{WORD}]++)*)-([{LOWER}]{{1,20}})(?![{WORD}-])"
)
_ALONE = re.compile(rf"(?<![{WORD}-])[{UPPER}][{WORD}]*+(?![{WORD}-])")
_LOWER_COMPOUND = re.compile(rf"(?<![{WORD}-])[{LOWER}]++(?:-[{LOWER}]++)++(?![{WORD}-])")
_NEXT_NAME = re.compile(rf"[ \n]([{UPPER}][{WORD}’'-]*+)")
_LAST_NAME = re.compile(rf"(?<![{WORD}’'-])([{UPPER}][{WORD}’'-]*+)[ \n]\Z")
_DAY_BEFORE = re.compile(r"(?<!\d)\d{1,2}(?:st|nd|rd|th|\.)?(?: of)?[ \n]\Z")
_DAY_BEHIND = re.compile(r"[.,]?[ \n]\d")
_COUNTED = re.compile(r"(?<![\w.,/:–-])\d{1,3}(?:[.,]\d{3})*(?:[.,]\d{1,2})?[ \u00a0]\Z")  # 400 EUR
_AMOUNT = re.compile(r"[ \u00a0]\d{1,3}(?:[.,]\d{3})+(?!\d)")  # EUR 400,000
_OPENERS = frozenset(" \t\"“”‘'`(（[*#>_-–—•«„¿¡=|+\0")
_STOPS = frozenset(".!?…:;\n。！？|")
_LONGEST = 6  # words of a name


def language(lower: AbstractSet[str]) -> str:
    """The language to which most of these lower-case words belong, by its words of grammar; English
    if no other has more."""
    english = len(LANGUAGES["en"] & lower)
    best = max(LANGUAGES, key=lambda name: len(LANGUAGES[name] & lower))
    return best if len(LANGUAGES[best] & lower) > english else "en"


@dataclass(slots=True)
class Name:
    """A capitalised phrase, or a part of such a phrase. `opening`: a sentence, a heading or a
    quotation begins with it. `titled`: a title stands before it. `prose`: it stands in a
    sentence. `measure`: it stands beside a number as units and currencies do. `kind`: its type.
    `article`: "the" or "a", whatever the language, if an article stands before it; also "a" if a
    noun follows (the Asian economy)."""

    start: int
    end: int
    words: list[str]
    opening: bool = False
    titled: bool = False
    prose: bool = True
    article: str = ""
    measure: bool = False
    kind: str = ""
    lows: list[str] = field(default_factory=list)
    form: str = ""

    def __post_init__(self) -> None:
        self.lows = [word.lower().rstrip(".") for word in self.words]
        self.form = " ".join(self.words)


@dataclass(slots=True)
class Evidence:
    """What a text shows about its words.

    `lower`: how often each word occurs in lower case. `inside`: how often each phrase occurs
    capitalised inside sentences; `led`: the same behind "the"; `one_of`: behind "a". `subject`:
    how often a sentence begins with the phrase and continues in lower case. `holders`: for the
    first and last words of phrases the other words of these phrases. `speakers`: first words of
    the names of speakers. `dates`: offsets at which words such as May and Sunday are dates.
    `compounds`: words such as Ki-moon that are names as a whole, unlike London-based. `units`: words of
    a German text that stand beside a number at least every second time (0,2 Prozent, fünf Prozent).
    `items`: offsets of letters that number the items of a list."""

    language: str
    lower: Counter[str]
    inside: Counter[str] = field(default_factory=Counter)
    led: Counter[str] = field(default_factory=Counter)
    one_of: Counter[str] = field(default_factory=Counter)
    subject: Counter[str] = field(default_factory=Counter)
    holders: dict[str, set[str]] = field(default_factory=dict)
    speakers: frozenset[str] = frozenset()
    dates: frozenset[int] = frozenset()
    compounds: frozenset[str] = frozenset()
    units: frozenset[str] = frozenset()
    items: frozenset[int] = frozenset()


def names(
    text: str, spans: Sequence[tuple[int, int]], speakers: Iterable[str] = ()
) -> tuple[list[tuple[Name, bool]], Evidence]:
    """The names of a text, each with True if the text shows that it is a name; and the evidence.
    `spans` are the sentences, `speakers` the names of speakers in the text."""
    lower = Counter(_LOWER_WORD.findall(text))
    evidence = Evidence(language(_GRAMMAR.intersection(lower)), lower)
    evidence.speakers = frozenset(name.split(" ")[0] for name in speakers)
    evidence.dates, evidence.compounds = _dates(text), _compounds(text)
    evidence.items = _items(text)
    found = list(_Reader(text, spans, evidence).read())
    if evidence.language == "de":
        _without_genitives(found)
        every = Counter(name.form for name in found)
        counted = Counter(name.form for name in found if name.measure)
        evidence.units = frozenset(
            form for form, count in counted.items() if 2 * count >= every[form]
        )
    grammar = _grammar_of(evidence.language)
    for name in found:
        if name.opening and name.prose and len(name.words) > 1 and name.lows[0] in grammar:
            evidence.inside[" ".join(name.words[1:])] += 1  # In York
        if not name.opening and name.prose:
            counted = {"the": evidence.led, "a": evidence.one_of}.get(name.article, evidence.inside)
            counted[name.form] += 1
        elif name.prose and _NOUN_BEHIND.match(text, name.end):
            evidence.subject[name.form] += 1
        if name.prose and len(name.words) > 1 and not (name.opening and ordinary(name.lows[0])):
            for word in (name.words[0], name.words[-1]):
                evidence.holders.setdefault(word, set()).update(name.words)
    judged = []
    for name in found:
        name = _without_opener(text, name, evidence)
        if name is None:
            continue
        name.kind = kind_of(text, name.start, name.end, name.words, name.titled)
        if (strong := _strength(name, evidence)) is not None:
            judged.append((name, strong))
    return judged, evidence


_GRAMMAR = frozenset().union(*LANGUAGES.values())
_ARTICLES = lex.ARTICLES | lex.INDEFINITE_ARTICLES


@cache
def _grammar_of(language: str) -> frozenset[str]:
    """Words that are no names in a text of this language: its grammar, and words of no meaning of all."""
    return STOP_WORDS | LANGUAGES[language]


def _dates(text: str) -> frozenset[int]:
    """Where a word that is a month or a day of the week is one: beside a number, or behind a word that
    stands before dates, unless the text has it beside the same name elsewhere without such a word (in
    May Ling's house, where May Ling lives). Behind a name it is one where the text has it as a date too,
    and this pair but once: Apple Wednesday said, not Sheffield Wednesday."""
    sure, dated = set[int](), set[str]()
    likely, behind = dict[int, tuple[str, str]](), dict[int, tuple[str, str]]()
    names = Counter[tuple[str, str]]()
    for match in _MONTH.finditer(text):
        if match.start() and _JOINED.match(text, match.start() - 1):
            continue
        word, (at, end) = match[0], match.span()
        following, before = _NEXT_NAME.match(text, end), text[max(0, at - 40) : at]
        pair = (word, following[1]) if following else ("", "")
        if _DAY_BEHIND.match(text, end) or _DAY_BEFORE.search(before):
            sure.add(at)
            dated.add(word)
        elif not lex.BEFORE_DATES.isdisjoint(before.lower().split()[-1:]):
            likely[at] = pair
            dated.add(word)
        else:
            names[pair] += bool(following)
            if name := _LAST_NAME.search(before):
                behind[at] = (name[1], word)
    often = Counter(behind.values())
    sure.update(at for at, pair in likely.items() if not names[pair])
    sure.update(at for at, pair in behind.items() if often[pair] < 2 and pair[1] in dated)
    return frozenset(sure)


_ITEM = re.compile(r"^[ \t]*([A-Z])\.[ \t]", re.MULTILINE)


def _items(text: str) -> frozenset[int]:
    """Where letters number the items of a list: three lines or more, each with the next letter (A. Budget,
    B. Elections, C. Any other business)."""
    found = list(_ITEM.finditer(text))
    runs: list[list[re.Match[str]]] = []
    for match in found:
        if runs and ord(match[1]) == ord(runs[-1][-1][1]) + 1:
            runs[-1].append(match)
        else:
            runs.append([match])
    return frozenset(match.start(1) for run in runs if len(run) > 2 for match in run)


def _compounds(text: str) -> frozenset[str]:
    """Words with a hyphen and an everyday word in lower case behind it that are names (Ki-moon): their first
    part does not stand alone in the text nor the whole in lower case, they are no participles, and a noun
    does not follow everywhere (the Madrid-style terraces)."""
    found = [
        match
        for match in (_COMPOUND.finditer(text) if "-" in text else ())
        if ordinary(match[2]) and not match[2].endswith(("ed", "ing"))
    ]
    if not found:
        return frozenset()
    alone, lower = set(_ALONE.findall(text)), set(_LOWER_COMPOUND.findall(text))
    return frozenset(
        match[0]
        for match in found
        if match[1] not in alone
        and match[0].lower() not in lower
        and not attributive(text, match.end())
    )


class _Reader:
    """Cuts the capitalised phrases of a text into names."""

    def __init__(self, text: str, spans: Sequence[tuple[int, int]], evidence: Evidence) -> None:
        self.text, self.spans, self.evidence = text, spans, evidence
        self.starts = [start for start, _ in spans]
        self._prose: dict[int, bool] = {}

    def read(self) -> Iterator[Name]:
        text = self.text
        grammar = _grammar_of(self.evidence.language)
        for match in _PHRASE.finditer(text):
            if match[0].lower() in grammar and match[0].istitle() and _opens(text, match.start()):
                continue  # a word of grammar that opens a sentence, which is a fifth of all phrases
            # A phrase of letters alone is a single word, as most are.
            pieces = [match] if match[0].isalpha() else list(_PIECE.finditer(text, *match.span()))
            if len(pieces) == 1:  # as most phrases
                if name := self._name(pieces):
                    yield name
                continue
            yield from filter(None, map(self._name, self._runs(pieces)))

    def _runs(self, pieces: list[re.Match[str]]) -> Iterator[list[re.Match[str]]]:
        """The words of a phrase, divided where another name begins or one ends."""
        run: list[re.Match[str]] = []
        for at, piece in enumerate(pieces):
            if run and self._parts(run, piece):
                yield run
                run = []
            run.append(piece)
            if self._ends(piece, pieces[at + 1 : at + 3]):
                yield run
                run = []
        if run:
            yield run

    def _sentence(self, at: int) -> int:
        return max(bisect_right(self.starts, at) - 1, 0)

    def _parts(self, run: list[re.Match[str]], piece: re.Match[str]) -> bool:
        """Does another name begin with this piece?"""
        gap = self.text[run[-1].end() : piece.start()]
        before = run[-1][0].lower().rstrip(".")
        if self._sentence(run[-1].start()) != self._sentence(piece.start()):
            return True
        if run[-1].start() in self.evidence.dates or piece.start() in self.evidence.dates:
            return True  # on Monday San Francisco said
        if before in DAY_WORDS and _opens(self.text, run[-1].start()):
            return True  # Yesterday Ida Holm met
        if piece[0] in self.evidence.speakers and len(run) == 1 and ordinary(before):
            return True  # Hello Ravi, Chat of Lena
        link = gap.strip().split(" ")[0]
        if self.evidence.language == "de" and link in ("von", "der", "des", "den"):
            return len(run) > 1  # Universität von Lindental; not Otto Moe von der Werft
        if link in ("of", "for"):
            # the University of Oxford; not Ann Quill of the Tidal Board, nor the President of Peru
            known = ordinary(before) if len(run) == 1 else before in lex.NOUN_TYPES
            return before in lex.TITLES or not known
        if run[-1][0].isdigit() and len(run) > 1:
            return True  # Newcastle 2 Liverpool 1
        year = piece[0].isdigit() and len(piece[0]) == 4
        return year and lex.NOUN_TYPES.get(before) != "event"  # Euro 2004, not Paris 1998

    def _ends(self, piece: re.Match[str], behind: Sequence[re.Match[str]]) -> bool:
        """Does a name end with this piece, whatever stands behind it? `behind`: the next two."""
        word = piece[0]
        if word.isalnum():
            return False
        owner, mark, tail = word.replace("’", "'").rpartition("'")
        if mark and tail.islower() and len(tail) < 5:
            # Mara's house, Israel's Dana Levi, Ankara'da; but King's College, Schindler's List
            owned = behind[0][0].lower() if tail == "s" and behind else ""
            kept = ordinary(owner.lower()) and owned in lex.NOUN_TYPES
            alone = len(behind) == 1 and ordinary(owned) and owned not in lex.MONTHS
            return not (kept or alone)
        head, dash, tail = word.rpartition("-")
        return (
            bool(dash) and word not in self.evidence.compounds and tail.islower() and ordinary(tail)
        )

    def _name(self, run: list[re.Match[str]]) -> Name | None:
        """The name of a run of words: without the title before it, numbers that count, and
        what is glued to its last word."""
        pieces = run
        if pieces[0][0].isdigit():
            last = pieces[-1][0].lower()
            if len(pieces) < 3 or lex.NOUN_TYPES.get(last) != "event":
                pieces = pieces[1:]
        while len(pieces) > 2 and pieces[-1][0].isupper() and pieces[-1][0].lower() in lex.TITLES:
            pieces = pieces[:-1]  # Boris Johnson MP
        if pieces and pieces[0].start() in self.evidence.items:
            pieces = pieces[1:]
        if not pieces:
            return None
        first = pieces[0].start()
        lead, titled = self._title(pieces)
        pieces = pieces[lead:]
        if not pieces or len(pieces) > _LONGEST:
            return None
        words = [piece[0] for piece in pieces]
        start, end = pieces[0].start(), pieces[-1].end()
        last = words[-1].replace("’", "'")
        owner, mark, tail = last.rpartition("'")
        if mark and (tail.islower() or not tail) and len(tail) < 5:
            end -= len(last) - len(owner)
            words[-1] = words[-1][: len(owner)]
        head, dash, tail = words[-1].rpartition("-")
        if dash and words[-1] not in self.evidence.compounds and tail.islower() and ordinary(tail):
            end -= len(tail) + 1  # London-based
            words[-1] = head
        if self.evidence.language in ("fr", "it") and words[0][1:2] in ("'", "’"):
            start, words[0] = start + 2, words[0][2:]  # L'Université
        if not words[0] or not words[-1]:
            return None
        before = words_before(self.text, first)
        low = before[-1].lower() if before else ""
        article = "the" if low in lex.ARTICLES else "a" if low in lex.INDEFINITE_ARTICLES else ""
        origin = self.evidence.language == "en" and _ORIGIN.fullmatch(words[-1]) is not None
        if (article or origin) and (noun := _NOUN_BEHIND.match(self.text, end)):
            article = article if stop_word(noun[1]) else "a"  # the Asian economy, Russian ships
        opening = not lead and _opens(self.text, first)
        measure = len(words) == 1 and self._measures(words[0], start, end)
        return Name(start, end, words, opening, titled, self._is_prose(first), article, measure)

    def _measures(self, word: str, start: int, end: int) -> bool:
        """Does the word stand behind a number, or before an amount, and look as units and currencies do:
        not like a name in English (787 Dreamliner), like any noun in German (20 Euro)?"""
        if word.istitle() and len(word) > 2 and self.evidence.language != "de":
            return False  # 50 Hz is a measure in all languages
        before = _COUNTED.search(self.text, max(0, start - 16), start)
        if before and not _opens(self.text, before.start()):
            return True
        return _AMOUNT.match(self.text, end) is not None

    def _title(self, pieces: list[re.Match[str]]) -> tuple[int, bool]:
        """How many words stand before the name as titles or offices (Tory Shadow Chancellor Oliver
        Letwin), and is one of them such a title?"""
        lows = [piece[0].lower().rstrip(".") for piece in pieces]
        if len(lows) == 1:
            return (1, False) if lows[0] in lex.TITLES else (0, False)
        first = lows[0] in _ARTICLES  # it opens the sentence
        if len(lows) > first + 2 and not any(map(ordinary, lows[first + 1 :])):
            before = words_before(self.text, pieces[0].start())
            led = first or (before and before[-1].lower() in _ARTICLES)
            company = lows[-1] in lex.COMPANY_FORMS  # die Hydrowerk Sensorik GmbH
            german = led and self.evidence.language == "de" and not company
            if noun_type(lows[first]) == "person" or german:
                return first + 1, True  # Geologist Kate Lloyd, der Kaufmann Justus Salmann
        for at in range(len(lows) - 2, -1, -1):
            if lows[at] in lex.COURTESIES or (
                lows[at] in lex.TITLES and not ordinary(lows[at + 1])
            ):
                if self.text[pieces[at].end() : pieces[at + 1].start()].strip() in ("", "."):
                    return at + 1, lows[-1] not in lex.NOUN_TYPES
        return (len(lows), False) if all(low in lex.TITLES for low in lows) else (0, False)

    def _is_prose(self, at: int) -> bool:
        """Is this place in a sentence, and not in a heading, a menu or a list of names?"""
        number = self._sentence(at)
        if number not in self._prose:
            start, end = self.spans[number] if self.spans else (0, len(self.text))
            if self.text.startswith(("#", "|"), start):  # a heading
                self._prose[number] = False
            elif _CLOSED.search(self.text, max(start, end - 6), end):
                self._prose[number] = _SMALL_INITIAL.search(self.text, start, end) is not None
            else:
                letters = _INITIAL_LETTER.findall(self.text, start, end)
                small = sum(map(str.islower, letters))
                self._prose[number] = small >= max(len(letters) - small, 1)
        return self._prose[number]


def _without_genitives(found: Sequence[Name]) -> None:
    """Cut the s of German names that the text also has without it: Regensburgs Bürgermeister."""
    words = {word for name in found for word in name.words}
    for name in found:
        last = name.words[-1]
        if last.endswith("s") and last[:-1] in words:
            name.words[-1], name.end = last[:-1], name.end - 1
            name.__post_init__()


def _opens(text: str, at: int) -> bool:
    """Does a sentence, heading, list item, quotation or bracket begin at this offset?"""
    index = at - 1
    while index >= 0 and text[index] in _OPENERS:
        if text[index] not in " \t-–—_\0":
            return True
        index -= 1
    return index < 0 or text[index] in _STOPS


def _without_opener(text: str, name: Name, evidence: Evidence) -> Name | None:
    """The name without a word that only opens its sentence, or that says what its bearer is: where
    the rest stands by itself elsewhere; words of grammar always, unless the whole stands within a
    sentence elsewhere (Do Muoi)."""
    first = name.lows[0]
    grammar = first in _grammar_of(evidence.language)
    if len(name.words) < 2:
        return None if grammar and name.opening and not name.words[0].isupper() else name
    if evidence.inside[name.form] and name.opening:
        return name
    rest = name.words[1:]
    alone = " ".join(rest)
    if len(rest) > 1:
        known = evidence.inside[alone] + evidence.led[alone] > 0
    else:  # Later Merrick, where the text has Gordon Merrick; not John Adams beside John Quincy Adams
        others = evidence.holders.get(alone, ())
        later = ordinary(first) and bool(others) and name.words[0] not in others
        # "Wow Dave, that is" where Dave speaks; in minutes Anna Berg thanks, and FENN is TOBIAS FENN
        addressed = alone in evidence.speakers and text[name.end : name.end + 1] in _ADDRESSED
        addressed = addressed and not name.words[0].isupper()
        known = name.opening and (later or addressed)
    if known or (name.opening and grammar):
        start = text.find(rest[0], name.start + len(name.words[0]), name.end)
        return Name(start, name.end, rest, False, name.titled, name.prose)
    return name


def _strength(name: Name, evidence: Evidence) -> bool | None:
    """Is the phrase a name by the evidence of its text? None for what is no name at all."""
    if len(name.words) > 1:
        return _strength_of_several(name, evidence)
    word, low = name.words[0], name.lows[0]
    if len(low) < 2 or word[0].isdigit() or _ROMAN.fullmatch(word):
        return None
    if name.titled:
        return True
    if low in lex.MONTHS or low in lex.TITLES or low in LEGAL_FORMS:
        return None
    if name.measure or word in evidence.units:
        return False
    inside, led = evidence.inside[word], evidence.led[word]
    if word.isupper():  # the US, not US for us
        shown = led if ordinary(low) else len(word) < 9 and name.prose
        return bool(shown) and inside + led > evidence.one_of[word]
    if any(map(str.isupper, word[1:])):
        return True  # McDonald, MySQL
    usual = ordinary(low) or all(map(ordinary, low.split("-")))
    if evidence.language == "de":  # nouns have capitals, most of them an article
        shown = inside > 1 or name.kind or evidence.subject[word] > 1
        return bool(shown) and not led + evidence.one_of[word] and name.prose
    if not inside + led + evidence.one_of[word]:  # it opens sentences or stands in headings only
        acts = evidence.language == "en" and evidence.subject[word] > 1
        return None if usual or evidence.lower[low] else acts
    common = evidence.lower[low] + evidence.one_of[word]
    if usual and inside < 2 and not name.kind:
        return False
    return inside > common + led if usual or common else True


def _strength_of_several(name: Name, evidence: Evidence) -> bool | None:
    if all(low in STOP_WORDS or low in lex.MONTHS or low.isdigit() for low in name.lows):
        return None
    usual = [ordinary(low) or low.isdigit() for low in name.lows]
    if name.titled:
        return True
    if name.article and name.lows[-1] in lex.TITLES:
        return None  # the Roman Catholic Bishop
    people = [_ORIGIN.fullmatch(word) is not None for word in name.words]
    if name.article == "a" and people[-1] and all(map(or_, usual, people)):
        return False  # the South Korean navy
    if not name.prose:
        return not any(usual)
    if len(usual) == 2 and all(usual) and name.lows[1].isdigit():
        return False  # Figure 2
    shown = evidence.inside[name.form] or evidence.subject[name.form] > 1
    is_given_name = name.words[-1].rpartition("-")[2].islower()  # Moon Jae-in
    if name.opening and usual[0] and not (shown or is_given_name) and name.kind != "person":
        return False  # Exploring Japan
    if evidence.language == "de" and not by_form(name.words) and evidence.inside[name.form] < 2:
        return all(low not in evidence.lower for low in name.lows) and not name.opening
    return True
