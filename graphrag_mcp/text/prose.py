"""Is a sentence worth quoting? Headings, menus, tables, bibliographies, greetings and notices are
sentences to a splitter and say nothing to a reader.
"""

from __future__ import annotations

import re
from functools import lru_cache

from graphrag_mcp.text import folding
from graphrag_mcp.text.terms import STOP_WORDS, is_cjk

# What stands before the words of a speaker: "[Tue 3 May 10:12] Ana:", "**Ana:**".
SPEAKER = re.compile(
    r"(?:\[[^\[\]\n]{1,40}\]\s{0,3})?\*{0,2}[^\s:：*][^:：\n]{0,39}[:：]\*{0,2}\s{1,3}(?=\S)"
)
_GREETING = re.compile(
    r"(?:hi|hey|hello|good (?:morning|afternoon|evening|night)|merry|happy|thanks|thank you|bye|goodbye|see you"
    r"|take care|congratulations|sorry|welcome|cheers|dear|haha|lol|omg|hmm"
    r"|hallo|guten|danke|bonjour|merci|salut|hola|gracias|ciao|grazie)\b"
    r"|你好|您好|早上好|晚上好|晚安|大家好|谢谢|再见|こんにちは|ありがとう|안녕",
    re.IGNORECASE,
)
_NOISE = re.compile(
    r"\||https?:|www\.|copyright|\blicen[cs]e[ds]?:|all rights reserved|\w\(|[<>={}]|_{2}|\\n",
    re.IGNORECASE,
)
# An entry of a bibliography: initials before a comma, pages, volumes, numbers of books.
_REFERENCE = re.compile(
    r"\bet al\b|\bpp?\. ?\d|\bvol\. ?\d|\bno\. ?\d+ ?\(|\bisbn\b|\bdoi\b|\beds?\.\)|\bretrieved\b|\barchived\b"
    r"|\(\d{4}[a-z]?\)[.,:]|, \d{4}\.$",
    re.IGNORECASE,
)
_INITIALS = re.compile(
    r"\A\W{0,3}(?:[A-Z]\. ?){1,3}[A-Z][\w-]{1,30},"
    r"|(?<![\w-])[A-Z][\w-]{1,30}, (?:[A-Z]\. ?){1,3}(?:,|&|\()"
)
# Words that only stand in clauses, in English; of other languages the share of grammar decides.
_CLAUSE = frozenset(
    "is are was were be been being am has have had having do does did will would can could may might must shall "
    "should not that which who whom whose what when where why how because although though while if than it he she "
    "they we i you this these those there".split()
)
_ENGLISH = frozenset("the of and to in for with on by from at as".split())
_LEANING = re.compile(
    r"(?:he|she|it|they|this|that|these|those|but|and|or|so|however|his|her|its|their|we|i|you|then|also)\b",
    re.IGNORECASE,
)
_GRAMMAR = STOP_WORDS.union(*folding.LANGUAGES.values())
_LEAST_GRAMMAR = (
    0.15  # share of words of grammar; prose in Latin letters has 0.3 to 0.5, a menu hardly any
)
_DIGITS, _DENSE_DIGITS = (
    0.15,
    0.4,
)  # share of digits in a table's row; in Chinese a word is two characters


def spoken(sentence: str) -> str:
    """The sentence without the name of its speaker and the marks of a list or a heading."""
    return SPEAKER.sub("", sentence.strip().lstrip("#>*-•| \t"), count=1)


def says_something(sentence: str) -> bool:
    """Does a sentence say something: no greeting, heading, bare name or time stamp?"""
    if sentence.lstrip().startswith("#"):
        return False
    bare = spoken(sentence)
    greets = _GREETING.match(bare) is not None
    if any(map(is_cjk, bare[:20])):
        return sum(map(str.isalpha, bare)) >= (20 if greets else 8)
    words = [word for word in bare.split() if any(map(str.isalpha, word))]
    if len(words) < (10 if greets else 5):
        return False
    return any(word[:1].islower() for word in words[1:])


@lru_cache(maxsize=16_384)
def substance(sentence: str) -> float:
    """How much a sentence is worth as a quotation, above 0 to 1: little for a greeting, a table's
    row, code, a notice, a menu or a bibliography's entry; less for a question or an exclamation."""
    bare = spoken(sentence)
    said = bare or sentence
    worth = 0.1 if _NOISE.search(sentence) or _GREETING.match(said) else 1.0
    dense = any(map(is_cjk, said[:40]))
    if bare != sentence.strip() and len(said) < 25 and not dense:
        worth *= 0.3
    if sum(map(str.isdigit, said)) > (_DENSE_DIGITS if dense else _DIGITS) * len(said):
        worth *= 0.3
    if said.endswith(("!", "！", "?", "？", "…", "...")):
        worth *= 0.5
    return worth * _entry(said) * (1.0 if dense else _clause(said))


def stands_alone(sentence: str) -> float:
    """`substance`, and less for a fragment and for a sentence that leans on the one before it."""
    said = sentence.strip()
    whole = said[-1:] in '.!?。！？…"”»)’' and (said[:1].isalnum() or said[:1] in '"“«(¿¡')
    whole = whole and not said.count('"') % 2 and said.count("“") == said.count("”")
    return substance(said) * (1.0 if whole else 0.3) * (0.6 if _LEANING.match(said) else 1.0)


def _entry(said: str) -> float:
    return 0.2 if _REFERENCE.search(said) or _INITIALS.search(said) else 1.0


def _clause(said: str) -> float:
    """Little for words in a row without grammar, as in a menu; less for a heading without a verb."""
    words = [word.strip("\"'“”‘(),.;:!?").casefold() for word in said.replace("’", "'").split()]
    words = [word for word in words if word]
    if len(words) < 4 or not said[:80].isascii() and not _latin(said):
        return 1.0
    grammar = sum(word in _GRAMMAR for word in words)
    if grammar < _LEAST_GRAMMAR * len(words):
        return 0.3
    if _ENGLISH.isdisjoint(words) or not _CLAUSE.isdisjoint(words):
        return 1.0
    acts = any("'" in word for word in words) or any(
        word.endswith(("ed", "ing", "s")) for word in words[1:]
    )
    return 1.0 if acts else 0.5


def _latin(said: str) -> bool:
    letters = [ch for ch in said[:80] if ch.isalpha()]
    return sum(ch < "\u0250" for ch in letters) * 2 > len(letters)
