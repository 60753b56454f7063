"""Proper names in scripts with capitals: phrases of capitalised words, judged by the evidence of their text.

A capital says that a word may be a name; it may also open a sentence, stand in a heading, or be a
noun of German. Three observations decide: how often the word stands capitalised within sentences,
how often the text has it in lower case, and whether it is an ordinary word. Evidence of the other
text units is counted where mentions are merged (`index/graph.py`)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from graphrag_mcp.names import lexicon as lex
from graphrag_mcp.names.german import DECLINED
from graphrag_mcp.names.german import nouns as nouns_of
from graphrag_mcp.names.kinds import by_form, kind_of
from graphrag_mcp.names.lexicon import ordinary
from graphrag_mcp.names.phrases import Language, Phrase, Phrases
from graphrag_mcp.text.terms import LANGUAGES, LEGAL_FORMS, LOWER, STOP_WORDS, WORD

_LOWER_WORD = re.compile(rf"(?<![{WORD}_.@/\\’'-])[{LOWER}]{{2,}}+(?![{WORD}_(’'])")
_COUNT = re.compile(r"\d{1,3}(?:[.,]\d+)*")  # no year
_GOES_ON = re.compile(rf"[ \n][{LOWER}]{{3,}}")


def names(text: str, spans: Sequence[tuple[int, int]], code: str) -> Iterator[tuple[Phrase, str, bool]]:
    """The names of a text, each with its type ("" if it is unknown), and with True if the text shows that
    it is a name. `spans` are the sentences, `code` is that of the language (`text.terms.LANGUAGES`)."""
    lower = Counter(_LOWER_WORD.findall(text))
    nouns = nouns_of(text) if code == "de" else frozenset[str]()
    language = Language(code, STOP_WORDS | LANGUAGES[code], nouns)
    found = list(Phrases(text, spans, language).read())
    evidence = Evidence(text, found, lower, language)
    for phrase in filter(None, map(evidence.without_opener, found)):
        kind = kind_of(text, phrase.start, phrase.end, phrase.words, phrase.titled)
        shown = evidence.shown_phrase if len(phrase.words) > 1 else evidence.shown_word
        strong = shown(phrase, kind)
        if strong is not None:
            yield phrase, kind, strong


class Evidence:
    """What a text shows of its phrases.

    `lower`: how often each word occurs in lower case. `inside`: how often each phrase occurs
    capitalised inside sentences; `led`: the same behind "the"; `one_of`: behind "a". `subject`: how
    often a sentence begins with the phrase and goes on in lower case. `counted`: how often it stands
    behind a number, as units and currencies do."""

    def __init__(self, text: str, phrases: Iterable[Phrase], lower: Counter[str], language: Language) -> None:
        self.text, self.lower, self.language = text, lower, language
        self.inside, self.led, self.one_of = Counter[str](), Counter[str](), Counter[str]()
        self.subject, self.counted, self.all = Counter[str](), Counter[str](), Counter[str]()
        for phrase in phrases:
            self._count(phrase)

    def _count(self, phrase: Phrase) -> None:
        form = phrase.form
        self.all[form] += 1
        self.counted[form] += _COUNT.fullmatch(phrase.before) is not None
        if not phrase.prose:
            return
        if phrase.opening:
            self.subject[form] += _GOES_ON.match(self.text, phrase.end) is not None
            if phrase.words[0].lower() in self.language.grammar:
                rest = " ".join(phrase.words[1:])
                self.inside[rest] += 1  # In York
                self.all[rest] += 1
        elif phrase.before in lex.INDEFINITE_ARTICLES:
            self.one_of[form] += 1
        else:
            (self.led if phrase.before in lex.ARTICLES else self.inside)[form] += 1

    def without_opener(self, phrase: Phrase) -> Phrase | None:
        """The name without a word that only opens its sentence: one of grammar (In York, Did James), or an
        everyday one before a name that stands within a sentence elsewhere or has no such word
        (Yesterday Ida Holm)."""
        first, rest = phrase.words[0].lower(), phrase.words[1:]
        polite = self.language.code == "de" and first in self.language.grammar  # Sie
        if not (phrase.opening or polite):
            return phrase
        grammar = first in self.language.grammar
        if not rest:
            return None if grammar and not phrase.words[0].isupper() else phrase
        rare = self.inside[" ".join(rest)] or not any(ordinary(word.lower()) for word in rest)
        if not grammar and not (len(rest) > 1 and ordinary(first) and rare):
            return phrase
        start = self.text.find(rest[0], phrase.start + len(phrase.words[0]), phrase.end)
        # without what opens it: Wenn Sie
        return self.without_opener(Phrase(start, phrase.end, rest, False, phrase.titled, phrase.prose))

    def shown_word(self, phrase: Phrase, kind: str) -> bool | None:
        """Is the word a name by the evidence of its text? None for what is no name at all."""
        word = phrase.words[0]
        low = word.lower().rstrip(".")
        if len(low) < 2 or low[0].isdigit():
            return None
        if phrase.titled:
            return True
        if low in lex.MONTHS or low in lex.TITLES or low in LEGAL_FORMS:
            return None
        if 2 * self.counted[word] > self.all[word]:
            return False  # 400 kW, 20 Euro
        inside, led, one_of = self.inside[word], self.led[word], self.one_of[word]
        if word.isupper():  # the US, not US for us
            shown = led > 0 if ordinary(low) else phrase.prose
            return shown and inside + led > one_of
        german = self.language.code == "de"  # where nouns have capitals
        if any(map(str.isupper, word[1:])) and not (german and "-" in word):
            return True  # McDonald, MySQL
        usual = ordinary(low)
        if german:
            parts = word.split("-")  # Baden-Württemberg; not Internet-Anschluss, nor WLAN-Nutzung
            if parts[1:] and any(ordinary(part.lower()) or not part.istitle() for part in parts):
                return False
            shown = inside + (self.subject[word] > 1) > 1  # Außerdem opens sentences alone
            return shown and phrase.prose and self.language.nouns.isdisjoint((word, parts[-1]))
        if not inside + led + one_of:  # it opens sentences or stands in headings only
            return None if usual or self.lower[low] else self.subject[word] > 1
        if usual and inside < 2 and not kind:
            return False
        common = self.lower[low] + one_of
        return inside > common + led if usual or common else True

    def shown_phrase(self, phrase: Phrase, kind: str) -> bool | None:
        """The same for a name of several words."""
        lows = [word.lower().rstrip(".") for word in phrase.words]
        if all(low in STOP_WORDS or low in lex.MONTHS or low.isdigit() for low in lows):
            return None
        if phrase.titled:
            return True
        usual = [ordinary(low) or low.isdigit() for low in lows]
        if self.language.code == "de" and not by_form(phrase.words):
            # not Soziale Medien, nor Absatz 2
            declined = lows[0].endswith(DECLINED) and not phrase.words[0].isupper()
            begins = phrase.opening and not self.subject[phrase.form]
            if not self.inside[phrase.form] and (declined or begins):
                return False
            return self.language.nouns.isdisjoint(phrase.words) and not lows[-1].isdigit()
        if not phrase.prose:
            return not any(usual)
        if len(lows) == 2 and all(usual) and lows[1].isdigit():
            return False  # Figure 2
        shown = self.inside[phrase.form] or self.subject[phrase.form] > 1
        if phrase.opening and usual[0] and not shown:
            return kind == "person"  # Peter Dahlgren, not Exploring Japan
        return True
