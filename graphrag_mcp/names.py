"""Proper names in scripts that have capitals: phrases of capitalised words, cut where a name ends, with their type.

Takes a text and the set of its lower-case words, gives candidates `(start, end, type, strong)`. A word that opens a
sentence counts only when it is seldom anything but a name or stands capitalised elsewhere too. It knows nothing of
scripts without capitals, quotes, code, keys or other texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from graphrag_mcp.lexicon import (
    ACRONYM_NOISE,
    AMBIGUOUS_HEADS,
    BODIES,
    COMMON,
    DEMONYMS,
    DULL,
    EVENT_HEADS,
    FIRST_TYPE,
    GIVEN,
    HEAD_TYPE,
    LANGUAGES,
    MONTHS,
    OFFICES,
    PLACES,
    STARTERS,
    TAILS,
    TITLES,
)  # fmt: skip
from graphrag_mcp.text import stop_word

Candidate = tuple[int, int, str, bool]

# ---- characters: scripts with case, by range, since `re` knows no \p{Lu} --------------------------------------

_CASED = "A-Za-zÀ-ÖØ-öø-ʯͰ-ϿЀ-ԯԱ-ևḀ-ỿἀ-῾"
_W = _CASED + "0-9\u0300-\u036f"


def _ranges(test: str) -> str:
    """Character class of all letters of the cased scripts for which `str.<test>()` holds."""
    found = [c for c in (*range(0x41, 0x250), *range(0x370, 0x588), *range(0x1E00, 0x2000)) if getattr(chr(c), test)()]
    parts: list[list[int]] = []
    for code in found:
        if parts and parts[-1][1] == code - 1:
            parts[-1][1] = code
        else:
            parts.append([code, code])
    return "".join(f"{chr(a)}-{chr(b)}" if a != b else chr(a) for a, b in parts)


_U, _L = _ranges("isupper"), _ranges("islower")
_CAP = rf"[{_U}][{_W}]*+(?:(?:[’'‐&-]| @-@ )[{_W}]++)*+"
_ABBREVIATED = r"(?:St|Mt|Ft|Dr|Mr|Mrs|Ms|Prof|Jr|Sr|Lt|Col|Gen|Sgt|Capt|Rev|Hon|Sen|Rep|Gov|Inc|Corp|Ltd|Co|Bros)\."
_TOKEN = rf"(?:[{_U}]\.)++(?:[{_U}](?![{_W}]))?|{_ABBREVIATED}|{_CAP}|[a-z]{{1,2}}[{_U}][{_W}]*+"
_PARTICLE = r"(?:of|the|de|du|des|del|della|di|da|dos|das|do|la|le|van|von|der|den|ten|ter|zu|zur|el|al|bin|ibn|ben)"
_SEP = (
    rf"(?:[ \n]|(?<=\.)| & | (?:and|for)(?: the)? | {_PARTICLE}(?: (?:the|la|las|los|der|den))? | (?:und|et|y|e|ap|i) "
    rf"|(?<=[sn])[’'] | (?:d|l)[’']|, (?=Inc\b|Ltd\b|LLC\b)| ?al-)"
)
_NUMBER = r"\d{1,4}(?:st|nd|rd|th)?"
_PHRASE = re.compile(
    rf"(?<![{_W}_.@/\\-])(?:{_NUMBER}(?:[–-]\d\d)? )?(?:{_TOKEN})"
    rf"(?:{_SEP}(?:{_TOKEN}|{_NUMBER}(?![{_W}%]|[.,]\d)))*+"
)
_PIECE = re.compile(rf"{_TOKEN}|{_NUMBER}")
_PLAIN = re.compile(rf"[{_U}][{_CASED}]*+(?: [{_U}][{_CASED}]*+)++")
_LOW = rf"[{_L}]{{2,}}+(?:-[{_L}]++)*+"
LOWER_RUN = re.compile(rf"(?<![{_W}_.@/\\’'-]){_LOW}(?: {_LOW})*+(?![{_W}_(’'])")
_OPENERS = frozenset(" \t\"“”‘'`(（[*#>_-–—•«„¿¡=|")
_STOPS = frozenset(".!?…:;\n。！？|")


@lru_cache(maxsize=65_536)
def common(word: str) -> bool:
    """Is this lower-case English word, or what it is inflected from, one that is seldom a name?"""
    if word in COMMON or word in DULL or stop_word(word):
        return True
    for end in ("s", "es", "ed", "d", "ing", "ly", "er", "ers", "r"):
        if word.endswith(end) and (word[: -len(end)] in COMMON or word[: -len(end)] + "e" in COMMON):
            return True
    return word.endswith(("ies", "ied")) and word[:-3] + "y" in COMMON


def _opens(text: str, at: int) -> bool:
    """Does a sentence, heading, list item, quotation or bracket begin at this offset?"""
    index = at - 1
    while index >= 0 and index > at - 8 and text[index] in _OPENERS:
        if text[index] not in " \t-–—_":
            return True
        index -= 1
    return index < 0 or text[index] in _STOPS


def language(lower: set[str]) -> str:
    """The language whose words of grammar show most among these lower-case words; English when none does."""
    best = max(LANGUAGES, key=lambda name: len(LANGUAGES[name] & lower))
    return best if len(LANGUAGES[best] & lower) > len(LANGUAGES["en"] & lower) else "en"


class Names:
    """Proper names of one text: phrases of capitalised words, cut where a name ends."""

    def __init__(self, text: str, lower: set[str]) -> None:
        self.text, self.lower = text, lower
        self.language = language(lower)
        self.starters = (STARTERS if self.language == "en" else LANGUAGES[self.language]) | _OTHER_SCRIPTS
        self.seen: set[str] = set()  # words that stand capitalised where no sentence begins
        self.pieces: list[tuple[int, int, list[str], bool, bool, bool]] = []

    def find(self) -> Iterator[Candidate]:
        for match in _PHRASE.finditer(self.text):
            if match[0].isalpha():
                self._one_word(match[0], match.start(), match.end())
            elif not (_PLAIN.fullmatch(match[0]) and self._plain(match[0], match.start(), match.end())):
                self._cut(match.start(), match.end())
        for start, end, words, opening, titled, shouted in self.pieces:
            strong = self._strength(words, opening, shouted)
            if strong is not None:
                yield start, end, "person" if titled else _type(self.text, start, end, words), strong

    def _one_word(self, word: str, start: int, end: int) -> None:
        """What `_cut` does with a phrase of one word without signs, which most are."""
        low = word.lower()
        if low in _NEVER_LONE or low in MONTHS or self.text[end : end + 1] == "$":
            return
        if low in self.starters and not (len(word) > 1 and word.isupper()):
            return
        opening = _opens(self.text, start)
        if not opening:
            self.seen.add(word)
        self.pieces.append((start, end, [word], opening, False, False))

    def _plain(self, form: str, start: int, end: int) -> bool:
        """What `_cut` does with capitalised words and single blanks, none of which it knows; False: cut this one."""
        words = form.split(" ")
        lows = form.lower().split(" ")
        if len(words) > 9 or not (self.starters.isdisjoint(lows) and _CUTTING.isdisjoint(lows)):
            return False
        if self.text[end : end + 1] != "$":
            self.seen.update(words)
            self.pieces.append((start, end, words, _opens(self.text, start), False, len(form) > 9 and form.isupper()))
        return True

    def _cut(self, start: int, end: int) -> None:
        """Splits one phrase into names; each goes to `pieces` with its words and where it stood."""
        text = self.text
        tokens = [(m[0], m.start(), m.end()) for m in _PIECE.finditer(text, start, end)]
        opening = _opens(text, start)
        shouted = len(tokens) > 1 and (end - start) > 9 and text[start:end].isupper()
        heading = len(tokens) > 4 and opening and (end == len(text) or text[end] == "\n")
        run: list[tuple[str, int, int]] = []
        titled = False
        dated = any(word.lower() in EVENT_HEADS for word, _, _ in tokens)  # 1988 Summer Olympics
        skip = False
        for index, (word, at, to) in enumerate(tokens):
            low = word.lower() if len(word) == 2 else word.lower().rstrip(".")  # an initial keeps its point: "A."
            gap = text[run[-1][2] : at] if run else ""
            if skip:
                skip = False
                continue
            if run and self._breaks(run, gap, word, low, heading or shouted, at):
                run, titled, opening = self._keep(run, opening, titled, shouted), False, False
                opening = opening or "\n" in gap or self.text[at - 2 : at - 1] == "."
                if low in STARTERS and (heading or shouted):
                    continue
            following = tokens[index + 1] if index + 1 < len(tokens) else None
            if word[0].isdigit() and not run:
                if following and (dated or not word.isdigit()):
                    run.append((word, at, to))
                opening = False
                continue
            if low in MONTHS and (not run or (following and following[0].isdigit())) and self._is_date(following):
                run = self._keep(run, opening, titled, shouted)
                skip = bool(following and following[0].isdigit())
                opening = False
                continue
            if following and low in TITLES and (not run or word[-1] == "."):
                run = self._keep(run, opening, titled, shouted)
                titled, opening = True, False
                continue
            if not run and self._never_first(word, low, opening, following):
                opening = False
                continue
            if word[-2:] in ("'s", "’s") and word != "'s":
                run.append((word[:-2], at, to - 2))
                if not (following and self._owns(low[:-2], following[0].lower(), index + 2 == len(tokens))):
                    run, titled, opening = self._keep(run, opening, titled, shouted), False, False
                continue
            run.append((word, at, to))
        self._keep(run, opening, titled, shouted)

    def _breaks(self, run: list[tuple[str, int, int]], gap: str, word: str, low: str, loud: bool, at: int) -> bool:
        """Does the name in `run` end before this word?"""
        last = run[-1][0].lower().rstrip(".")
        if "\n" in gap:
            line = self.text.rfind("\n", 0, at - 1)
            return at - line < 50 or low in self.starters or word[0].isdigit()
        if gap in (" and ", " and the ", " for ", " for the "):
            bodied = any(w.lower() in BODIES for w, _, _ in run)
            return not bodied or word.isupper() or (gap[1] == "a" and len(run) < 2)
        if self.language == "de" and gap in (" von der ", " von den ", " der ", " den ", " von dem "):
            return len(run) > 1 or last not in GIVEN  # "Bach von der Familie", but "Ursula von der Leyen"
        if gap in (" und ", " et ", " y ", " e ", " i "):
            return self.language != "en"
        if gap.startswith(" of") and last in OFFICES:
            run.clear()
            return False
        if word.isdigit():
            year = len(word) == 4 and "1500" <= word < "2100"
            return last in DULL or (year and last not in EVENT_HEADS and last not in ("windows", "expo", "euro"))
        if run[-1][0].endswith(".") and low in self.starters and not gap.startswith(" of"):
            return True
        if loud and low in STARTERS and low not in ("of",):
            return True
        return last.isdigit() and len(run) > 1 and low in self.starters

    def _is_date(self, following: tuple[str, int, int] | None) -> bool:
        return following is None or following[0].isdigit() or following[0].lower() not in EVENT_HEADS

    def _never_first(self, word: str, low: str, opening: bool, following: tuple[str, int, int] | None) -> bool:
        if low in ("the", "a", "an", "i") or (low[:2] in ("i'", "i’")):
            # "The Who" keeps its article, since nothing else of it would be left
            return not (following and low == "the" and not opening and following[0].lower() in STARTERS)
        if self.language in ("fr", "it") and word[1:2] in ("'", "’") and word[2:3].islower():
            return True  # L'auteur
        if low.replace("’", "'") not in self.starters or (word.isupper() and len(word) > 1 and not following):
            return False
        return opening or following is None

    def _owns(self, owner: str, owned: str, last: bool) -> bool:
        """Do "X's Y" make one name: King's College, Valentine's Day, Schindler's List?"""
        if owner in ("king", "queen", "children", "women", "men", "people", "valentine", "mother"):
            return True
        if owned in ("college", "hospital", "school", "university", "church"):
            return True
        return last and owned in ("day", "list", "law", "theorem", "palace", "cathedral", "angels", "cup", "game")

    def _keep(self, run: list[tuple[str, int, int]], opening: bool, titled: bool, shouted: bool) -> list:
        while run and run[-1][0].lower() in ("and", "of", "the") and not shouted:
            run.pop()
        if run and len(run) <= 9:
            words = [word for word, _, _ in run]
            start, end = run[0][1], run[-1][2]
            head, dash, tail = words[-1].rpartition("-")
            if dash and tail in TAILS:
                end -= len(tail) + 1
                words[-1] = head
            if end > start and self.text[end : end + 1] != "$":
                if len(run) > 1 or not opening:
                    self.seen.update(words)
                self.pieces.append((start, end, words, opening, titled, shouted))
        return []

    def _strength(self, words: list[str], opening: bool, shouted: bool) -> bool | None:
        """True for a strong name, False for a weak one, None for no name."""
        if len(words) > 1:
            lows = [word.lower() for word in words]
            if shouted:
                return False if len(words) < 6 and not all(map(common, lows)) else None
            if _STARTERS_AND_MONTHS.issuperset(lows) and words[0] != "The":
                return None
            return not (len(words) > 6 or (opening and all(map(common, lows)) and len(words) < 3))
        word, low = words[0], words[0].lower().rstrip(".")
        if len(low) < 2 or word[0].isdigit() or low in MONTHS or word in ACRONYM_NOISE or low in _NEVER_ALONE:
            return None
        if word.isupper():
            return True if len(word) <= 6 or "." in word or any(c.isdigit() for c in word) else False
        if low in self.starters or low in STARTERS:
            return None
        if any(ch.isupper() or ch.isdigit() for ch in word[1:]):
            return True
        if opening and word not in self.seen:
            if low in self.lower or (self.language == "en" and (common(low) or low.endswith(_ABSTRACT))):
                return None
            return self.language == "en"
        if self.language == "en":
            inflected = low.endswith("ing") and low not in COMMON
            dull = low in DEMONYMS or low in HEAD_TYPE or low in self.lower or (common(low) and not inflected)
            return low in PLACES or not dull
        return self.language != "de" and low not in self.lower


# Words of grammar in other scripts: no English word is one, and a short question has too few to show its language.
_OTHER_SCRIPTS = frozenset(word for words in LANGUAGES.values() for word in words if word[0] > "\u036f")
_STARTERS_AND_MONTHS = STARTERS | MONTHS
_CUTTING = _STARTERS_AND_MONTHS | TITLES | {"the", "a", "an", "i", "and", "of"}
_NEVER_LONE = frozenset(("the", "a", "an", "i", "and", "of"))
_NEVER_ALONE = TITLES | frozenset("jr sr inc ltd co corp llc bros st mt".split())
_ABSTRACT = ("ing", "ed", "ly", "ity", "ness", "tion", "ment", "ance", "ence", "ism", "ists", "ings")
_AFTER = re.compile(r"(?: \([^()\n]{0,90}\))?(?:,? (?:is|was|are|were)|,) (?:an?|the|one of the) ([^.;:,\n]{3,90})")
_BORN = re.compile(r" (?:\((?:[^()\n]{0,60}; )?(?:born|b\.) |was born |, born )")
_SUBJECT = re.compile(
    rf"^[ \t#*=]{{0,20}}(?:The |A |An )?(?=[\d{_U}])([^\n;()]{{1,90}}?)"
    r"(?: \([^()\n]{0,200}\))?,? (is|was|are|were) (?:an?|the|one of) ",
    re.MULTILINE,
)
_SMALL = frozenset("of the and in for to a an on at with from by or de der von van la le du ki ap und et y".split())
_TELLING = frozenset((" (", " i", " w", " a", " ,", ", "))  # how _BORN and _AFTER begin
_BEFORE = re.compile(r"((?:\b(?:the|an?|his|her|their|its|film) )?)\b([a-z]+)( of)? $")


def _type(text: str, start: int, end: int, words: list[str]) -> str:
    """The type that the name itself or the words around it speak for, else "other"."""
    first, last = words[0].lower(), words[-1].lower().rstrip(".")
    own = HEAD_TYPE.get(last, "") if len(words) > 1 else ""
    if len(words) > 1:
        given = first in GIVEN or (len(first) == 2 and first[1] == ".")
        if given and len(words) < 5 and (not own or last in AMBIGUOUS_HEADS) and " of " not in text[start:end]:
            return "person"
        if own and last not in AMBIGUOUS_HEADS:
            return own
        if first in FIRST_TYPE:
            return FIRST_TYPE[first]
        if words[0].isdigit():
            return "event"
    if "_".join(words).lower().rstrip(".") in PLACES:
        return "location"
    if text[end : end + 2] in _TELLING:
        if _BORN.match(text, end):
            return "person"
        if (after := _AFTER.match(text, end)) and (kind := _said(after[1])):
            return kind
    if _may_tell(text, start) and (before := _BEFORE.search(text, max(0, start - 28), start)):
        article, noun, of = before.groups()
        kind = HEAD_TYPE.get(noun, "")
        told = kind == "location" if of else kind not in ("location", "event")
        if kind and told and (article or noun not in AMBIGUOUS_HEADS):  # "the song X", not "they play X"
            return kind
    return own or "other"


def _said(predicate: str) -> str:
    """The type of the first known noun, or noun phrase, of "is a ..."."""
    found = ""
    for word in predicate.split()[:9]:
        kind = HEAD_TYPE.get(word, "")
        if (found and not kind) or word in ("in", "of", "by", "for", "who", "that", "which", "from"):
            break
        found = kind or found
    return found


def _may_tell(text: str, start: int) -> bool:
    """Can `_BEFORE` find a noun with a type before this offset? A third of the time of trying."""
    words = text[max(0, start - 28) : start].rsplit(" ", 3)
    if len(words) < 2 or words[-1]:
        return False
    word = words[-3] if words[-2] == "of" and len(words) > 2 else words[-2]
    return word in HEAD_TYPE or not word.isalpha()


def subjects(text: str) -> Iterator[Candidate]:
    """What a line defines when it begins with "X is a ...": X whole, small words and a lower-case tail included."""
    for match in _SUBJECT.finditer(text):
        start, end = match.span(1)
        words = match[1].split(" ")
        plural = match[2] in ("are", "were") and (" and " in match[1] or "," in match[1])
        if len(words) > 10 or plural or not _one_name(words):
            continue
        kind = _type(text, start, end, words)
        opener = words[0].lower().replace("’", "'").rstrip(",")
        if opener not in STARTERS and opener not in MONTHS or kind == "content":
            yield start, end, kind, True


def _one_name(words: list[str]) -> bool:
    """Capitalised words and small ones between them; then at most three lower-case words: Gila monster."""
    tail = 0
    for index, word in enumerate(words):
        if not word:
            return False
        bare = word.rstrip(",:")
        if word[-1] in ".!?" and len(word) > 3 and index + 1 < len(words) and word.lower().rstrip(".") not in TITLES:
            return False
        if word[-1] == "," and words[index + 1 : index + 2] and words[index + 1][0].islower():
            return False
        if bare[:1].islower():
            if bare in _SMALL and not tail and index + 1 < len(words):
                continue
            tail += 1
            if bare in STARTERS or stop_word(bare) or tail > 3 or bare.endswith("ly"):
                return False
        elif tail:
            return False
    return True
