"""Which names found in a document are certain enough for an entity.

A name of a document stays strong when none of RULES speaks against it. The others are weak: their
passages are found by them, they become no entity. A question has no such rules, since there a name
that is none costs nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache, partial

from graphrag_mcp.names import lexicon as lex
from graphrag_mcp.names.latin import ABSTRACT, DOTTED, common
from graphrag_mcp.text.terms import LOWER, UPPER, stop_word
from graphrag_mcp.text.tokens import ONE_TOKEN

Candidate = tuple[int, int, str, bool]
_MARK = re.compile(r"[ \t>]*(?:[-*+•‣▪–—]|\d{1,3}[.)]|#{1,6}|\|)[ \t]")  # of a list item, a heading
# words of a line with a full stop, up to which one word in small letters makes a sentence
SHORT = 9
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_RULE = re.compile(r"([=~^*+#-])\1{2,}[ \t]*(?:\n|\Z)")  # the line below a heading
_LABEL = re.compile(r"[ \t]*(?:[-*+][ \t]+)?[*_]{0,2}[^\n:]{0,2}\Z")
_CELLS = re.compile(r"\||\t|\S {3,}\S")
# signs of no name, and letters that PDF texts have for others within words: ti, tt, signs
SIGNS = re.compile(r"[:;\"“”<>|=()!?@#*_\[\]{}/\\\nƟƩǡ-ǣȀȋȌȍͰ-ͳͶ-ͽ]|(?<=\w)[ǤǦ]|\bǤ\b")
_HAN = re.compile("[\u3400-\u9fff]")
_HAN_STOP = re.compile("[，。：；！？]")
_TORN = re.compile(r"[a-zäöü]-[a-zäöü]{2}")
# Node.js, Kongsg?rd
_GOES_ON = re.compile(r"[./_@\\][^\W_]|-[A-Z\d]|[?�][a-z]")
_INVERTED = re.compile(
    r",? (?:[A-Z]\.[ -]?){1,4}(?=[,;&(\d]|and |et )|, ([A-Z][a-z]+)(?: [A-Z][a-z.]*)?(?: [(<\[]|\n)"
)
_INITIALS = re.compile(r"(?:\b(?:[A-ZÖÜ]\.-?){1,4}(?:, and|,| and) ){2}[A-ZÖÜ]\.")  # of three
_CITED = re.compile(r",? et al\b|(?: ?[(\[]{1,2}|,? )(?:1[89]|20)\d\d[a-z]?[.,;:)\]]")
_NEXT = re.compile(r" ([a-z]+)")
_SIGNED = re.compile(r" (?:\()?(?:@[A-Za-z]|<mailto:|<?[\w.+-]{1,40}@[\w-]{1,40}\.\w)")
_PERSON = re.compile(rf"[{UPPER}][{LOWER}'’.-]+(?: [{UPPER}][\w'’.-]*){{1,3}}")
_NO_ENDS = lex.STARTERS | frozenset("pr prs id ids cl cls logo logos screenshot".split())
SHARE = 0.25  # of a name's mentions that must be certain: "Sounds" is a name once
# ... in so many text units this share is enough: Docker, which is a command too. Of 19 such names of
# six collections 16 were names, and two of the three others are common words.
UNITS, FEW_OF = 3, 0.05
_NO_CAPITALS = "\u0590"  # from here on scripts have no capitals
_SYMBOL = re.compile(r"[A-Z]-(?:flat|sharp|like|esque)|[a-zµμ][A-Z](?: .*)?|[A-Za-z][a-z]?\d{1,2}")
_CLOSED = re.compile(r"[.!?;।]['\"”’»)\]]{0,2}[ \t]*$", re.MULTILINE)
_BEFORE = re.compile(r"([^\s]+)[ \n]?[\"“‘'(*_`\[]{0,3}\Z")
_SHORT_LINE, _LONGEST_LINE = 50, 600  # characters
_FEW = 3  # words in lower case that prose has at least
_ORDINARY = (ONE_TOKEN, lex.HEAD_TYPE, lex.DEMONYMS, lex.STARTERS)
# A word with a capital within a sentence: the word before it; no number or second capital behind it.
_WITHIN = re.compile(
    r"(?<=[ \n,;])([a-z]+,?) ([A-Z][a-z]{2,})\b(?![ -](?:(?:and|of|to) )?[A-Z\d]|[._/@\\-]\w)"
)
USED = 2  # such places of a word in one text, from which on it is a name there: said Silver


@lru_cache(maxsize=1 << 15)
def ordinary(word: str) -> bool:
    """Is this lower-case English word, or what it is inflected from, used for more than names?"""
    if word in lex.GIVEN or word in lex.PLACES or word in lex.NAMES:
        return False
    listed = f"{word}s" in lex.COMMON or f"{word}d" in lex.COMMON
    if listed or common(word) or any(word in some for some in _ORDINARY):
        return True
    for end in ("s", "es", "ed", "d", "ing", "ly", "er", "ers"):
        stem = word.removesuffix(end)
        if stem != word and len(stem) > 2 and (stem in ONE_TOKEN or stem + "e" in ONE_TOKEN):
            return True
    return False


@dataclass(slots=True)
class Place:
    """A name where it stands. `kind`: "" where nothing tells it; `prose`: it stands in a sentence;
    `opening`: that begins with it, or nothing shows that it does not; `label`: a colon follows it
    at the beginning of a line; `before`: the word before it, `after`: what follows, a few letters."""

    form: str
    words: list[str]
    lows: list[str]
    kind: str
    prose: bool
    opening: bool
    label: bool
    before: str
    after: str
    language: str
    lower: set[str]

    @property
    def known(self) -> bool:
        whole = "_".join(self.lows).rstrip(".")
        return whole in lex.PLACES or whole in lex.KNOWN or whole in lex.NAMES

    @property
    def plain(self) -> bool:
        """Is it one word with a capital at its beginning alone?"""
        word = self.words[0]
        return len(self.words) == 1 and word.isalpha() and not any(map(str.isupper, word[1:]))


def _listed(name: Place) -> bool:
    """Is it the full name of a person, or the whole item of a list and of no ordinary word?"""
    alone = name.before in ("", "-", "+", "•") and name.after[:1] in ("", "\n")
    alone = alone and all(map(str.istitle, name.words)) and not any(map(ordinary, name.lows))
    return len(name.words) > 1 and (name.kind == "person" or alone)


def _numbered(name: Place) -> bool:
    if name.form in ("B.C.", "A.D.", "B.P."):  # 400 B.C., not the ferry of B.C.
        return name.before[-1:].isdigit() or name.before == "century" or name.after[1:2].isdigit()
    if len(name.words) < 3 and name.lows[0] in lex.NUMBERED:
        return True
    return name.before in lex.NUMBERED or (
        name.kind == "person" and any(map(str.isdigit, name.form))
    )


def _ordinary_words(name: Place) -> bool:
    if len(name.words) < 2 or name.known or (name.kind not in ("", "person") and not name.opening):
        return False
    roles = lex.ROLE_WORDS if name.kind == "person" else ()
    if name.lows[-1] in lex.OFFICERS and name.kind in ("", "person"):
        roles = lex.OFFICE_PARTS  # Deputy Prime Minister
    return all(ordinary(low) or low.isdigit() or low in roles for low in name.lows)


def _opener(name: Place) -> bool:
    first = name.lows[0]
    if len(name.words) < 2 or name.kind or first in lex.OFFICES:
        return False
    if name.language == "de":
        return True  # nouns have capitals: Dinge Gedanken
    return name.opening and name.language == "en" and ordinary(first)  # not Marta Olsen


def _single(name: Place) -> bool:
    low, titled = name.lows[0], name.before.rstrip(".")
    if not name.plain:
        return False
    if low in lex.OFFICERS and titled not in ("mr", "mrs", "miss", "ms", "dr"):
        return True  # the Chairman, Sir Knight
    if low in lex.GIVEN or name.known or titled in lex.TITLES:
        return False  # Miss Smith
    if name.kind == "" and name.language == "de":
        return True
    if name.kind and not ordinary(low) and low not in name.lower:
        return False
    following = _NEXT.match(name.after)  # a Montessori school
    if following and not stop_word(following[1]) and not following[1].endswith(("ed", "s")):
        return True
    dull = low in name.lower or ordinary(low) or (name.kind == "" and low.endswith(ABSTRACT))
    return dull or len(low) < 3 or name.opening


def _acronym(name: Place) -> bool:
    word, low = name.words[0], name.lows[0]
    if len(name.words) > 1 or not word.isupper() or name.known:
        return False
    low = low.replace("’", "'").partition("'")[0]  # THAT'S
    return len(word) < 3 or low in lex.NO_ACRONYMS or low in lex.MONTHS or common(low)


def _reference(name: Place) -> object:
    """Does it stand in a list of references or a citation: two authors, or an author and initials?"""
    if "&" in name.form or (" and " in name.form and name.kind in ("", "person")):
        return _CITED.match(name.after) is not None
    if name.known or name.form in DOTTED or name.kind not in ("", "person"):
        return False  # Washington, D.C., and
    if name.form[1:2] == "." and len(name.words) == 1:  # A.B., C.D. and E.F. wrote the paper
        return _INITIALS.search(f"{name.before.upper()} {name.form}{name.after}")
    if len(name.words) == 1 and (inverted := _INVERTED.match(name.after)):  # Friedman, D. J.
        given = inverted[1]
        return given.lower() in lex.GIVEN_NAMES if given else inverted[0].strip(", ") not in DOTTED
    initials = name.words[-1].rstrip(".")
    listed = len(name.words) == 2 and len(initials) < 3 and initials.isupper() and not name.kind
    return listed and name.before[-1:] in ",.0123456789"


def _ends_badly(name: Place) -> bool:
    low, size = name.lows[-1], len(name.words)
    acts = name.kind == "person" and size > 2 and low[-1] == "s" and common(low)  # Kell Brig Hires
    return size > 1 and (acts or low in _NO_ENDS or name.words[-1] == "I")


# What speaks against a name; an example. The first that holds decides.
RULES: tuple[tuple[Callable[[Place], object], str], ...] = (
    (lambda name: SIGNS.search(name.form) is not None, "GitHub Pull\nRequests"),
    (lambda name: _TORN.search(name.form) is not None, "Ger-many"),
    (lambda name: _GOES_ON.match(name.after) is not None, "Node|.js"),
    (lambda name: not (name.prose or _listed(name)), "# Open Issues"),
    (lambda name: name.label and name.kind != "person", "Discussions-To: the list"),
    (lambda name: sum(map(str.isupper, name.words)) > 1 and name.form.isupper(), "THE END"),
    (_reference, "Moe & Rao, 2003; Quill P., Herz R. 2012"),
    (_numbered, "Figure S1"),
    (_ordinary_words, "the Strategic Initiatives"),
    (_opener, "Exploring Japan"),
    (_ends_badly, "Delta Airlines I"),
    (lambda name: _SYMBOL.fullmatch(name.form) and not name.known, "Let L1 denote 5 mM EGTA"),
    (_single, "an Apartment of two rooms"),
    (_acronym, "You MUST"),
)


def enough(name: str, sure: int, every: int, units: int) -> bool:
    """Are `sure` certain mentions of `every` one, in so many text units, enough for an entity?"""
    share = FEW_OF if units >= UNITS and not common(name) else SHARE
    return sure > 0 and sure >= share * every


def full(form: str) -> bool:
    """Is this the full name of a person or thing: Yuriy Syrovetskiy, not Legal Innovation?"""
    words = form.split()
    return len(words) > 1 and all(one.istitle() and not ordinary(one.lower()) for one in words)


def certain(
    text: str, found: Iterable[Candidate], lower: set[str], language: str
) -> Iterator[Candidate]:
    """The same candidates; of scripts with capitals only those are strong that no rule speaks against,
    and people who sign."""
    prose = cache(partial(is_prose, text))
    used = _used(text, prose) if language == "en" else frozenset()

    def place(start: int, end: int, kind: str) -> Place:
        begin = text.rfind("\n", 0, start) + 1
        words = text[start:end].split()
        before = _BEFORE.search(text, max(0, start - 40), start)
        word = before[1].lstrip("\"“‘'(*_`[") if before else ""
        follows = word[-1:].islower() or word[-1:] in (",", ";") or word.isdigit()
        led = word[:1].islower() or word[-1:] in ",;" or word.lower() in lex.STARTERS
        opening = not ((follows and led) or _HAN.match(word[-1:]))
        if "\n" in text[max(0, start - 2) : start] and _MARK.match(text, begin):
            opening = True
        return Place(
            text[start:end],
            words,
            [one.lower() for one in words],
            "" if kind == "other" else kind,
            prose(begin),
            opening,
            text[end : end + 1] == ":" and _LABEL.match(text[begin:start]) is not None,
            word.lower(),
            text[end : end + 20],
            language,
            lower,
        )

    for start, end, kind, strong in found:
        if _SIGNED.match(text, end) and _PERSON.fullmatch(text, start, end):
            kind, strong = "person", True
        elif (strong or text[start:end] in used) and text[start] < _NO_CAPITALS:
            name = place(start, end, kind)
            rules = (rule for rule, _ in RULES if rule is not _single or name.form not in used)
            strong = not any(rule(name) for rule in rules)
        yield start, end, kind, strong


def _used(text: str, prose: Callable[[int], bool]) -> Collection[str]:
    """Words that this text uses as only names are used: within sentences and without a determiner."""
    counts: Counter[str] = Counter()
    for match in _WITHIN.finditer(text):
        if prose(text.rfind("\n", 0, match.start(2)) + 1):
            counts[match[2]] += 1 if match[1] not in lex.DETERMINERS else -len(text)
    return {one for one, n in counts.items() if n >= USED and one.lower() not in lex.OFFICERS}


def is_prose(text: str, begin: int) -> bool:
    """Does the line that begins here hold a sentence: no heading, row of a table, list of links?"""
    end = text.find("\n", begin)
    end = len(text) if end < 0 else end
    line = text[begin:end]
    closed = _CLOSED.search(text, begin, end) is not None
    if (line.lstrip(" \t>").startswith("#") and not closed) or _RULE.match(text, end + 1):
        return False
    if not _MARK.match(line):  # the lines before, which run on into this one
        at = begin
        while at > 1 and begin - at < _LONGEST_LINE:
            above = text.rfind("\n", 0, at - 1) + 1
            if at - above < _SHORT_LINE:
                break
            at = above
        line = text[at:end]
    if len(_HAN.findall(text, begin, end)) > _FEW and _HAN_STOP.search(text, begin, end):
        return True
    words = _WORD.findall(line[-_LONGEST_LINE:] if len(line) > 4 * _LONGEST_LINE else line)
    low = sum(map(str.islower, words))
    if closed and low and len(words) < SHORT and not any(map(str.isdigit, line)):
        return True  # Ingrid Moe met Devi Rao.
    if low < _FEW - closed:
        return False
    if not closed and _CELLS.search(text, begin, end) and low < 2 * (len(words) - low):
        return False
    return low * (1 + 3 * closed) >= len(words) - low
