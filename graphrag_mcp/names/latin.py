"""Proper names in scripts with capitals: phrases of capitalised words, cut where a name ends.

A phrase is read word by word. A word ends the name before it (`_breaks`), is no part of a name
(`_drops`), or ends the name that it belongs to (`_ends`). Each name is then judged: strong, weak or
none (`_strength`). A word that opens a sentence counts only when it is seldom anything but a name or
stands capitalised elsewhere too.

The middle part holds what languages other than English ask for. The last gives the type of a name:
by its own words, by what the text says it is, by the words beside it, else "other"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from graphrag_mcp.names import lexicon as lex
from graphrag_mcp.names.lexicon import bare
from graphrag_mcp.text.terms import LANGUAGES, LOWER, UPPER, WORD, normalise_name, stop_word

Candidate = tuple[int, int, str, bool]

_CAP = rf"[{UPPER}][{WORD}]*+(?:(?:[’'‐&·-]| @-@ )[{WORD}]++)*+(?!\$)"  # not US$370m
_ABBREVIATED = r"(?:St|Mt|Ft|Dr|Mr|Mrs|Ms|Prof|Jr|Sr|Lt|Col|Gen|Sgt|Capt|Rev|Hon|Sen|Rep|Gov|Inc|Corp|Ltd|Co|Bros)\."
_TOKEN = rf"(?:[{UPPER}]\.)++(?:[{UPPER}](?![{WORD}]))?|{_ABBREVIATED}|{_CAP}|[a-z]{{1,2}}[{UPPER}][{WORD}]*+"
_PARTICLE = r"(?:of|the|de|du|des|del|della|di|da|dos|das|do|la|le|van|von|der|den|ten|ter|zu|zur|el|al|ap|bin|ibn|ben)"
_SEP = (
    rf"(?:[ \n]|(?<=\.)| & |[ \n](?:and|for|on)(?: the)?[ \n]|[ \n]{_PARTICLE}(?: (?:the|la|las|los|der|den))?[ \n]| (?:und|et|y|e|i) "
    rf"|(?<=[sn])[’'] | (?:d|l)[’']|, (?=Inc\b|Ltd\b|LLC\b)| ?al-)"
)
_NUMBER = r"\d{1,4}(?:st|nd|rd|th)?"
_PHRASE = re.compile(
    # emphasis of several words: _Ida Sheen is ..._
    rf"(?:(?<![{WORD}_.@/\\-])|(?<=_)(?<![^\s(\[]_)(?=[{UPPER}][{LOWER}]+ [{UPPER}]))(?:{_NUMBER}(?:[–-]\d\d)? )?(?:{_TOKEN})"
    rf"(?:{_SEP}(?:{_TOKEN}|{_NUMBER}(?![{WORD}%]|[.,:]\d| per ?cent)))*+"
)
_JOINED = re.compile(r" (?:of|and|for|&)\b")
_PIECE = re.compile(rf"{_TOKEN}|{_NUMBER}")
_LOW = rf"[{LOWER}]{{2,}}+(?:-[{LOWER}]++)*+"
LOWER_RUN = re.compile(rf"(?<![{WORD}_.@/\\’'-]){_LOW}(?: {_LOW})*+(?![{WORD}_(’'])")
_OPENERS = frozenset(" \t\"“”‘'`(（[*#>_-–—•«„¿¡=|")
_STOPS = frozenset(".!?…:;\n。！？|")
# A score: the number before another team and its number, or before a second number; and what stands
# before the second team.
_SCORE = re.compile(r"\d{1,2}(?:-\d{1,2}\b|(?: \([^()\n]{0,20}\))? [A-Z][a-z]+ \d{1,2}\b)")
_SCORED = re.compile(r"[A-Z][a-z]+ \d{1,2}(?: \([^()\n]{0,20}\))? \Z")
_LONGEST = 9  # words of a name
# Words of grammar in other scripts: no English word is one, and a short question has too few to
# show its language.
_OTHER_SCRIPTS = frozenset(
    word for words in LANGUAGES.values() for word in words if word[0] > "\u036f"
)
_STARTERS_IN = {"en": lex.STARTERS | lex.OPENERS | _OTHER_SCRIPTS} | {
    name: words | _OTHER_SCRIPTS | lex.OPENING.get(name, frozenset())
    for name, words in LANGUAGES.items()
    if name != "en"
}
_NAMED = lex.KNOWN.keys() | lex.NAMES | lex.MONTHS
_STARTERS_AND_MONTHS = lex.STARTERS | lex.MONTHS
_NEVER_ALONE = lex.TITLES | frozenset("jr sr inc ltd co corp llc bros st mt".split())
_INITIAL = re.compile(r"[A-Z]\.")
_INITIALS = re.compile(r"(?<![\w.])[A-Z]\.[ -]?[A-Z]\.(?! ?[A-Z])")
DOTTED = frozenset("U.S.|U.K.|U.N.|E.U.|D.C.|L.A.|N.Y.|A.I.|B.C.|U. S.|U. K.|U. N.".split("|"))
_OWNERS = frozenset("king queen children women men people valentine mother".split())
_OWNED = frozenset("day list law theorem palace cathedral angels cup game".split())


class Token(NamedTuple):
    """A word; `low` is without a point, which only an initial keeps: "A." is no article."""

    word: str
    start: int
    end: int
    low: str


def _token(word: str, start: int) -> Token:
    low = word.lower()
    return Token(word, start, start + len(word), low if len(word) == 2 else low.rstrip("."))


@dataclass(slots=True)
class Name:
    """A name that is being read. `opening`: a sentence begins with it; `titled`: a title stands
    before it; `loud`: it is in capitals."""

    tokens: list[Token] = field(default_factory=list)
    opening: bool = False
    titled: bool = False
    loud: bool = False

    @property
    def words(self) -> list[str]:
        return [token.word for token in self.tokens]

    @property
    def span(self) -> tuple[int, int]:
        return self.tokens[0].start, self.tokens[-1].end


def language(lower: set[str]) -> str:
    """The language with most words of grammar among these lower-case words; else English."""
    english = len(LANGUAGES["en"] & lower)
    best = max(LANGUAGES, key=lambda name: len(LANGUAGES[name] & lower))
    return best if len(LANGUAGES[best] & lower) > english else "en"


def _opens(text: str, at: int) -> bool:
    """Does a sentence, heading, list item, quotation or bracket begin at this offset?"""
    index = at - 1
    while index >= 0 and text[index] in _OPENERS:
        if text[index] not in " \t-–—_":
            return True
        index -= 1
    return index < 0 or text[index] in _STOPS


class Names:
    """Proper names of one text: phrases of capitalised words, cut where a name ends."""

    def __init__(self, text: str, lower: set[str]) -> None:
        self.text, self.lower = text, lower
        self.language = language(lower)
        if self.language == "en" and not text.isascii() and not lower & LANGUAGES["en"]:
            self.language = _script_language(text, lower)
        self.english = self.language == "en"
        self.starters = _STARTERS_IN[self.language]
        # Who did what of a paper: three people or more by their initials.
        self.initialled = len(set(_INITIALS.findall(text)) - DOTTED) > 2
        self.seen: set[str] = set()  # words that stand capitalised where no sentence begins
        self.names: list[Name] = []

    def find(self) -> Iterator[Candidate]:
        # Only the first syllable of a Vietnamese head has a capital: Đại học Lam Sơn, ông Lê Minh Đức
        for match in _VI.finditer(self.text) if self.language == "vi" else ():
            kind, whole = _VI_KIND[match["head"].lower()]
            yield match.start() if whole else match.start("name"), match.end(), kind, True
        for match in _PHRASE.finditer(self.text):
            self._read(match.start(), match.end())
        known = frozenset()
        if not self.english:
            known = {normalise_name(self.text[slice(*name.span)]) for name in self.names}
        for name in self.names:
            name = self._without_opener(name, known) if known else name
            strong = self._strength(name)
            if not self.english:
                strong = self._strength_abroad(name, strong)
            if strong is None:
                continue
            (start, end), words, kind = name.span, name.words, ""
            if not self.english:
                end, kind = _longer(self.text, end, words, self.language)
                kind = kind or _kind_abroad(self.text, start, end, words, self.language)
            kind = "person" if name.titled else kind or kind_of(self.text, start, end, words)
            yield start, end, kind, strong

    def _without_opener(self, name: Name, known: set[str]) -> Name:
        """Without the word that only opens the sentence, where the rest is a name elsewhere."""
        rest = Name(name.tokens[1:], titled=name.titled, loud=name.loud)
        if name.opening and rest.tokens and normalise_name(self.text[slice(*rest.span)]) in known:
            return rest
        return name

    # ---- where a name begins and ends -----------------------------------------------------------

    def _read(self, start: int, end: int) -> None:
        """Splits one phrase into names."""
        text = self.text
        tokens = [_token(match[0], match.start()) for match in _PIECE.finditer(text, start, end)]
        roles: set[int] = set()
        stops: set[int] = set()
        if not self.english:
            tokens, roles, stops = _cut_abroad(text, tokens, self.language)
        opening = _opens(text, start)
        loud = len(tokens) > 1 and end - start > 9 and text[start:end].isupper()
        heading = len(tokens) > 4 and opening and (end == len(text) or text[end] == "\n")
        dated = any(token.low in lex.EVENT_HEADS for token in tokens)  # 1988 Summer Olympics
        name = Name(opening=opening, loud=loud)
        for at, token in enumerate(tokens):
            following = tokens[at + 1] if at + 1 < len(tokens) else None
            if name.tokens:
                gap = text[name.tokens[-1].end : token.start]
                if self._breaks(name, gap, token, loud or heading):
                    new_line = gap == "\n" or text[token.start - 2 : token.start - 1] == "."
                    name = self._keep(name, opening=new_line)
                    if token.low in lex.STARTERS and (heading or loud):
                        continue
            if at in roles or (
                following and token.low in lex.TITLES and (not name.tokens or token.word[-1] == ".")
            ):
                # Dr. Jane Smith, not President of Peru
                name = self._keep(name, titled=_JOINED.match(text, token.end) is None)
            elif self._drops(name, token, following, dated):
                name = self._keep(name)
            else:
                part, ends = self._ends(token, following, at + 2 == len(tokens))
                name.tokens.append(part)
                if ends or at in stops:
                    name = self._keep(name)
        self._keep(name)

    def _breaks(self, name: Name, gap: str, token: Token, loud: bool) -> bool:
        """Does the name end before this word? The first condition that holds decides."""
        word, low, last = token.word, token.low, name.tokens[-1].low
        gap = gap.replace("\n", " ") if gap.strip() else gap  # College of, then Physicians
        if "\n" in gap:  # a short line, or a sentence that begins
            line = self.text.rfind("\n", 0, token.start - 1)
            return token.start - line < 50 or low in self.starters or word[0].isdigit()
        if gap.split()[:1] == ["on"]:  # the Committee on Ethics, not the Commission on Brexit
            sure = word[1:].islower() and _NAMED.isdisjoint((low, low.removesuffix("s")))
            sure = sure and (common(low) or last not in ("commission", "council"))
            return last not in lex.ON_HEADS or not sure
        if gap.split()[:1] in (["and"], ["for"]):  # the Ministry for Health, not A and B
            another = low in lex.MONTHS or ("the" in gap and (low in lex.BODIES or not common(low)))
            bodied = not another and any(one.low in lex.BODIES for one in name.tokens)
            return not bodied or word.isupper() or (gap[1] == "a" and len(name.tokens) < 2)
        if self.language == "de" and (german := _breaks_german(gap.strip(), last)) is not None:
            return german
        if gap in (" und ", " et ", " y ", " e ", " i "):
            return not self.english  # Anna und Otto; but Tod und Verklärung in English text
        if gap.startswith(" of") and (
            last in lex.OFFICES or (last in lex.GROUPS and len(name.tokens) == 1)
        ):
            name.tokens.clear()  # the President of Finland, members of Parliament
            return False
        if gap.startswith(" of") and len(name.tokens) > 1 and last not in lex.HEAD_TYPE:
            if name.tokens[0].low in lex.GIVEN:
                return True  # Hannah Quill of the Tidal Power Board
        if gap in ("' ", "’ ") and name.tokens[0].low in lex.GIVEN:
            return True  # Mike Nichols' Closer
        if word.isdigit():
            before = name.tokens[0].start
            score = _SCORED.search(self.text, max(0, before - 30), before)
            if len(word) < 3 and (score or _SCORE.match(self.text, token.start)):
                return True  # Newcastle 2 Liverpool 1
            year = len(word) == 4 and "1500" <= word < "2100"
            dated = last in lex.EVENT_HEADS or last in ("windows", "expo", "euro")
            return last in lex.DULL or (year and not dated)  # Euro 2004, not Paris 1998
        after_number = last.isdigit() and len(name.tokens) > 1
        if low in self.starters and (name.tokens[-1].word.endswith(".") or after_number):
            return True  # Acme Inc. The
        return (loud and low in lex.STARTERS) or low[:2] in ("i'", "i’")  # From the CPC I'm

    def _drops(self, name: Name, token: Token, following: Token | None, dated: bool) -> bool:
        """Is this word no part of any name? The name before it ends."""
        word, low = token.word, token.low
        if low in lex.MONTHS and (not name.tokens or (following and following.word[0].isdigit())):
            return not following or following.low not in lex.EVENT_HEADS  # May 5, not March Fair
        if name.tokens:
            return False
        if word[0].isdigit():
            return not (following and (dated or not word.isdigit()))  # 3 dogs, not 3rd Avenue
        if low == "o" and following and self.english:  # O Lord, hear; O Jack is here
            said = following.low in lex.GIVEN_NAMES or self.text.startswith(
                (",", "!"), following.end
            )
            return said and self.text.count(f"O {following.word}") == 1
        if low in ("the", "a", "an", "i", "o") or low[:2] in ("i'", "i’"):  # The, I'm
            # "The Who" keeps its article, since nothing else of it would be left
            whole = following and low == "the" and not name.opening
            return not (whole and following and following.low in lex.STARTERS)
        if self.language in ("fr", "it") and word[1:2] in ("'", "’") and word[2:3].islower():
            return True  # L'auteur
        if low.replace("’", "'") not in self.starters or (word.isupper() and not following):
            return False
        return name.opening or following is None  # However, Who; but not New York

    def _ends(self, token: Token, following: Token | None, last: bool) -> tuple[Token, bool]:
        """The part of the word that belongs to the name, and whether the name ends with it."""
        word, start = token.word, token.start
        if word[-2:] in ("'s", "’s"):
            owned = following.low if following else ""
            one_name = token.low[:-2] in _OWNERS or owned in lex.OWNED_BODIES  # King's College
            one_name = one_name or (last and owned in _OWNED)  # Schindler's List
            return _token(word[:-2], start), not (owned and one_name)
        head, dash, tail = word.rpartition("-")
        if dash and _is_tail(tail):  # San Francisco-based Balco, UVR-rich
            return _token(head, start), True
        return token, False

    def _keep(self, name: Name, opening: bool = False, titled: bool = False) -> Name:
        """Puts down a name that has ended; gives the next one."""
        while name.tokens and name.tokens[-1].low in ("and", "of", "the"):
            name.tokens.pop()
        following = Name(opening=opening, titled=titled, loud=name.loud)
        if 0 < len(name.tokens) <= _LONGEST:
            lead = self._office(name)
            if lead:
                name.tokens, name.titled = name.tokens[lead:], True
            if len(name.tokens) > 1 or not name.opening:
                self.seen.update(name.words)
            self.names.append(name)
        return following

    def _office(self, name: Name) -> int:
        """How many words before a given name and a family name say what the person is: Tory Shadow
        Chancellor Oliver Letwin."""
        lead = len(name.tokens) - 2
        if not self.english or lead < 1 or name.tokens[-1].low in lex.HEAD_TYPE:
            return 0  # Royal Albert Hall
        if name.tokens[-2].low in lex.HEAD_TYPE and " of " in self.text[slice(*name.span)]:
            return 0  # Democratic Republic of the Congo
        if lead > 1 and name.tokens[lead - 1].low in lex.GIVEN_NAMES:
            lead -= 1  # Administrator Daniel Turner Roth
        office, *rest = (token.low for token in name.tokens[lead - 1 :])
        held = office in lex.OFFICES or office in lex.TITLES
        if rest[0] in lex.GIVEN or (rest[0] in lex.GIVEN_NAMES and not common(rest[0])):
            held = held or office in lex.ROLE_WORDS or office in lex.DEMONYMS
            return lead if held or office.endswith("ist") else 0  # Geologist Kate Lloyd
        held = held or office in lex.DEMONYMS or office in ("mp", "dj")  # Russian Nikolay Davydenko
        held = held or office.endswith(("ologist", "omist", "icist", "entist"))
        return lead if held and not any(map(common, rest)) else 0  # not Chief Executive Officer

    # ---- what a name is worth -------------------------------------------------------------------

    def _strength(self, name: Name) -> bool | None:
        """True for a strong name, False for a weak one, None for no name."""
        if len(name.tokens) > 1:
            return self._strength_of_several(name)
        word = name.tokens[0].word
        low = word.lower().rstrip(".")
        if len(low) < 2 or word[0].isdigit() or low in lex.MONTHS:
            return None
        if word in lex.ACRONYM_NOISE or low in _NEVER_ALONE:
            return None
        if self.initialled and _INITIALS.fullmatch(word) and word not in DOTTED:
            return None  # S.R. processed the data
        if word.isupper():
            return len(word) <= 6 or "." in word or any(map(str.isdigit, word))
        if low in self.starters or low in lex.STARTERS:
            return None
        if any(ch.isupper() or ch.isdigit() for ch in word[1:]):
            return True  # McDonald, MySQL
        if not self.english:
            if name.opening and word not in self.seen:
                return None if low in self.lower else False
            return self.language != "de" and low not in self.lower
        head, dash, tail = low.rpartition("-")
        if low in lex.DEMONYMS or (dash and common(head) and word.endswith(tail)):
            return None  # European, high-profile
        if name.opening and word not in self.seen:
            if low in self.lower or common(low) or low.endswith(ABSTRACT):
                return None
            # A word that only opens sentences must be met in a second text unit.
            return low in lex.PLACES or low in lex.GIVEN
        inflected = low.endswith("ing") and low not in lex.COMMON
        dull = low in lex.HEAD_TYPE or low in self.lower or (common(low) and not inflected)
        return low in lex.PLACES or low in lex.NAMES or not dull

    def _strength_of_several(self, name: Name) -> bool | None:
        lows = [word.lower() for word in name.words]
        if self.english and len(lows) == 2 and common(lows[0]) and lows[1] in lex.DEMONYMS:
            return None  # Famous Japanese
        if self.initialled and all(map(_INITIAL.fullmatch, name.words)):
            return None if self.text[slice(*name.span)] not in DOTTED else True  # A. B.
        if name.loud:
            return False if len(lows) < 6 and not all(map(common, lows)) else None
        if _STARTERS_AND_MONTHS.issuperset(lows) and name.words[0] != "The":
            return None
        return not (len(lows) > 6 or (name.opening and len(lows) < 3 and all(map(common, lows))))

    def _strength_abroad(self, name: Name, strong: bool | None) -> bool | None:
        """The same where a language says more than capitals do."""
        if len(name.tokens) > 1:
            return strong
        (start, end), word = name.span, name.words[0]
        if self.language == "vi" and name.opening:
            return None  # Thành phố, Giáo sư: half a word
        if strong is None or len(word) < 3:
            return strong
        if self.language == "tr" and self.text[end : end + 1] in ("'", "’"):
            return True  # Ankara'da
        after = self.text[end : end + 14].split(" ", 2)[1:2]
        if after and after[0].strip(",.") in lex.SAYS and not _DE_NOUN.search(word):
            return True  # Valdeluz es un pueblo
        if self.language != "de":
            return strong
        before = self.text[max(0, start - 8) : start].split()
        led = before[-1].lower() if before else ""
        if led in lex.INTO["de"]:
            return True  # nach Regensburg
        low = word.lower()
        compound = led in _DE_ARTICLES and low not in lex.DE_COMMON and _de_part(low)
        return bool(compound) or strong  # am Türkissee


@lru_cache(maxsize=1 << 15)
def _is_tail(word: str) -> bool:
    """Is it a word behind a name and a hyphen that is no part of the name? London-listed."""
    return word in lex.TAILS or (len(word) > 4 and word.islower() and word.endswith(("ed", "ing")))


# ---- other languages than English ---------------------------------------------------------------

_TAIL = re.compile(rf" ([{LOWER}]{{3,}})(?: ([{LOWER}]{{3,}}))?(?: ([{LOWER}]{{3,}}))?")
_SMALL = "de|di|da|do|dos|das|del|della|dei|des|du|la|le|el|los|las|της|του|των|τη|το"
_LED = re.compile(rf"(?<![{WORD}’'])([{WORD}’']+)[ \n](?:(?:{_SMALL}) )*$")
_ADJECTIVE = re.compile(
    r"(?:[иыоеі]й|[ое]го|[ое]му|[иыоеі]м|[иы]х|[аояеу]я|[ую]ю|ої|ій|[ое]е|ський|ську|ська|ське)$"
)
_DE_NOUN = re.compile(
    r"(?:ung|heit|keit|tion|schaft|tät|ismus|nis|tum|ment|ieren)(?:en|s)?$|^(?:Ge|Ver|Be|Über|Er|Ent|Unter)[a-zäöü]+t$"
)
_DE_ARTICLES = frozenset("der die das dem den des am im zum zur vom beim ins".split())
_DE_NO_GENITIVE = ("us", "is", "as", "os", "es", "ss", "ys")
_DE_OF = frozenset("von|zu|zur|von der".split("|"))
_DE_BREAKS = _DE_OF | frozenset("des|der|den|von den|von dem|vom".split("|"))
_VI_CAP = rf"[{UPPER}][{WORD}]*(?: [{UPPER}][{WORD}]*){{0,4}}"
_VI_KIND = {
    words.lower(): (kind, True)
    for kind, listed in lex.VI_HEADS.items()
    for words in listed.split("|")
} | {words: (kind, False) for kind, listed in lex.VI_BEFORE.items() for words in listed.split("|")}
_VI_WORDS = {
    form
    for words in _VI_KIND
    for form in ((words, words.capitalize()) if " " in words else (words,))
}
_VI_WORDS |= {words for listed in lex.VI_HEADS.values() for words in listed.split("|")}
_VI_WORDS |= {"Ông", "Bà"}
_VI = re.compile(
    rf"(?<![{WORD}])(?P<head>{'|'.join(sorted(_VI_WORDS, key=lambda words: (-len(words), words)))}) (?P<name>{_VI_CAP})"
)
_VI_LETTERS = re.compile("[ơưạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹ]")
_ROMANCE = frozenset("fr es it pt".split())


def _script_language(text: str, lower: set[str]) -> str:
    """The language that letters show where no word does; "en" for Latin letters."""
    if any(word > "\u0400" for word in lower):
        return "uk" if re.search("[іїєґ]", text) else "ru"
    if any(word > "\u0370" for word in lower):
        return "el"
    if _VI_LETTERS.search(text):
        return "vi"
    return "tr" if re.search("[ğşİ]|ı(?=[a-z])", text) else "en"


def _cut_abroad(
    text: str, tokens: list[Token], language: str
) -> tuple[list[Token], set[int], set[int]]:
    """The tokens of a phrase that may be of a name; which are roles; after which a name ends."""
    out: list[Token] = []
    roles: set[int] = set()
    stops: set[int] = set()
    for at, token in enumerate(tokens):
        word, start, end = token.word, token.start, token.end
        following = tokens[at + 1] if at + 1 < len(tokens) else None
        near = following is not None and text[end : following.start] == " "
        mark = next((place for place in (word.find("'"), word.find("’")) if place > 0), 0)
        if language == "tr" and mark > 1 and word[mark + 1 : mark + 2].islower():
            token = _token(word[:mark], start)  # Ankara'da
            stops.add(len(out))
        elif language in ("fr", "it") and 0 < mark < 5 and word[mark + 1 : mark + 2].isupper():
            token = _token(word[mark + 1 :], start + mark + 1)  # L'Université
        elif language == "de" and near and len(word) > 5 and word[-1] == "s":
            if bare(word) not in lex.FOREIGN_GIVEN and word[-2:] not in _DE_NO_GENITIVE:
                token = _token(word[:-1], start)  # Regensburgs Bürgermeister
                stops.add(len(out))
        if following and bare(token.low) in lex.ROLES:
            (roles if near else stops).add(len(out))  # Ingenieur Anna Berg
        out.append(token)
    return out, roles, stops


def _breaks_german(gap: str, last: str) -> bool | None:
    """Does a German name end before "von", "des", "der"? Tod von Justus, but Ursula von der Leyen
    and Universität von Lindental; None where no such word stands there."""
    if gap not in _DE_BREAKS:
        return None
    return gap not in _DE_OF or (
        bare(last) not in lex.FOREIGN_GIVEN and bare(last) not in lex.HEADS
    )


def _de_part(low: str) -> str:
    """The kind that the end of a German compound speaks for."""
    sizes = (size for size in range(12, 2, -1) if len(low) > size + 2)
    return next((lex.DE_PART[low[-size:]] for size in sizes if low[-size:] in lex.DE_PART), "")


def _longer(text: str, end: int, words: list[str], language: str) -> tuple[int, str]:
    """Where a Cyrillic name ends whose noun is in lower case; its kind: Заречном университете."""
    if language not in ("ru", "uk") or not _ADJECTIVE.search(words[-1].lower()):
        return end, ""
    tail = _TAIL.match(text, end)
    for place in (1, 2, 3) if tail and tail[1] else ():
        if kind := lex.HEADS.get(bare(tail[place] or ""), ""):
            return tail.end(place), kind
        if not _ADJECTIVE.search(tail[place] or ""):
            break
    return end, ""


def _kind_abroad(text: str, start: int, end: int, words: list[str], language: str) -> str:
    """The type that the name's own words, or the word before it, speak for; "" for none."""
    first, last = bare(words[0]), bare(words[-1])
    if len(words) > 1:
        if language == "tr" and last in lex.HEADS:
            return lex.HEADS[last]  # Yasemin Üniversitesi
        if first in lex.FOREIGN_GIVEN or (language == "vi" and first in lex.VI_SURNAMES):
            return "person"  # Hannelore Brück
        for word in (first, last):
            if word in lex.HEADS:
                return lex.HEADS[word]  # Universität Lindental
    led = _LED.search(text, max(0, start - 40), start)
    key = bare(re.sub(r"^[a-z]+['’]", "", led[1].lower())) if led else ""
    if key in lex.HEADS:
        return lex.HEADS[key]  # la ciudad de Valdeluz
    if len(words) > 1:
        return ""
    if language == "de" and (kind := _de_part(words[0].lower())):
        return kind  # Türkissee
    into = lex.INTO.get(language) or (lex.INTO["romance"] if language in _ROMANCE else ())
    if led and led[1].lower() in into and text[end : end + 1] != "s":
        return "location"  # à Lyon, not nach Salmanns Tod
    if language == "tr" and re.match(r"['’](?:[dt][ae]n?(?:ki)?)\b", text[end : end + 8]):
        return "location"  # Ankara'da
    return ""


# ---- the type of a name --------------------------------------------------------------------------

_DEFINED = re.compile(
    r"(?: \([^()\n]{0,90}\))?(?:,?( (?:is|was|are|were))|,) (?:an?|the|one of the) ([^.;:,\n]{3,90})"
)
_BORN = re.compile(r" (?:\((?:[^()\n]{0,60}; )?(?:born|b\.) |was born |, born )")
_DEFINING = frozenset((" (", " i", " w", " a", " ,", ", "))  # how these two begin
_SUBJECT = re.compile(
    rf"^[ \t#*=]{{0,20}}(?:The |A |An )?(?=[\d{UPPER}])([^\n;()]{{1,90}}?)"
    r"(?: \([^()\n]{0,200}\))?,? (?:is|was|are|were) (?:an?|the|one of) ",
    re.MULTILINE,
)
_ARTICLES = frozenset("the a an his her their its film".split())
_BRACKET = re.compile(r" \([^()\n]{0,40}?\b([a-z]+)\)")
_INSIDE = [[word] for word in "of from at in for with by".split()]
_COMMA = re.compile(r", ([A-Z][a-zé]+(?: [A-Z][a-z]+){0,2})")
_ENDS = frozenset(",.;)\n")
_BEHIND = frozenset("in of by for who that which from to as on at with but than".split())
_CLAUSE = frozenset("is was are were has had will would can could may".split())
_PREPOSITION = re.compile(r" (?:of|for|at|in|on|from|with|to) ")
# the last word of a work, a role or a team, which says nothing of the type: Jazz Singer, Golden Lion
_NO_HEADS = frozenset(("", "person", "creature", "method"))
_NO_PERSON = re.compile(r"['’]s? [A-Z\d]|&| (?:on|in|with|for|and|or|to|from|at|by|of the) ")

# The word before a name, the words of which one stands before that, the type; an example.
BEFORE: tuple[tuple[str, frozenset[str], str, str], ...] = (
    ("in", lex.IN_PLACE, "location", "born in Ashby"),
    ("of", lex.OF_PLACE, "location", "the streets of Selhurst"),
    ("of", lex.OF_PERSON, "person", "the death of Trent"),
    ("to", lex.TO_PLACE, "location", "moved to Durango"),
    ("by", lex.BY_PERSON, "person", "directed by Mara Quill"),
    ("by", lex.BY_BODY, "organization", "released by Northgate"),
    ("on", lex.ON_BODY, "organization", "aired on Sky One"),
    ("at", lex.AT_BODY, "organization", "a professor at Stanford"),
)


def kind_of(text: str, start: int, end: int, words: list[str]) -> str:
    """The type that the name itself or the words around it speak for, else "other"."""
    kind, sure = _by_name(text[start:end], tuple(words))
    if sure:
        return kind
    before = text[max(0, start - 28) : start].rsplit(" ", 4)
    return (
        by_definition(text, end)
        or _by_noun(before)
        or kind
        or _by_neighbours(text, end, words, before)
        or (_by_head(text[start:end], words[-1]) if len(words) > 1 else "")
        or "other"
    )


@lru_cache(maxsize=1 << 15)
def _by_name(form: str, words: tuple[str, ...]) -> tuple[str, bool]:
    """The type that a name's own words speak for, and whether nothing beside it can say better."""
    first, last = words[0].lower(), _head(form, words[-1])
    if len(words) > 1:
        head = "" if last in lex.FAMILY else lex.LAST.get(last, "")
        clear = head not in _NO_HEADS and last not in lex.AMBIGUOUS_HEADS
        initial = len(first) == 2 and first[1] == "." and not common(last)  # U. S. Government
        given = (first in lex.GIVEN or initial) and _NO_PERSON.search(form) is None
        given = given and " of " not in form
        if given and len(words) < 5 and (not head or (not clear and len(words) < 3)):
            return "person", True  # Marie Curie, J. Smith
        if clear:
            return head, True  # Stanford University
        if words[0].isdigit():
            return "event", True  # 1988 Summer Olympics
    whole = "_".join(words).lower().rstrip(".")
    if whole in lex.PLACES:
        return "location", True  # New York
    if whole in lex.KNOWN:
        return lex.KNOWN[whole], False  # Oxford, BBC, Christmas
    return (_by_one_word(form) if len(words) == 1 else _by_words(form, words, first, last)), False


def _head(form: str, last: str) -> str:
    """The noun of a name: Award, in Award for Best Actress; Act, in Freedom of Information Act."""
    last = last.lower().rstrip(".")
    inner = _PREPOSITION.search(form)
    if inner is None or (
        lex.LAST.get(last) == "concept" and not form.startswith("the ", inner.end())
    ):
        return last
    return form[: inner.start()].rpartition(" ")[2].lower()


def _by_head(form: str, last: str) -> str:
    """By a noun that is a family name too, or a common word: Memorial Church."""
    noun = _head(form, last)
    kind = lex.LAST[noun] if noun in lex.HEAD_TYPE else ""
    return "" if kind in _NO_HEADS else kind


def _by_one_word(form: str) -> str:
    word = form.lower()
    if form.istitle() and word in lex.GIVEN_NAMES and word not in lex.EITHER:
        return "person"  # Daniel
    endings = lex.ENDINGS if len(word) > 6 else ()
    return next((kind for ending, kind in endings if word.endswith(ending)), "")  # Greenville


def _by_words(form: str, words: Sequence[str], first: str, last: str) -> str:
    """By longer lists than those that decide what is a name."""
    kind = lex.LAST.get(last, "")
    if " of " in form and kind and kind != "creature":
        return kind  # the National Academy of Arts and Letters
    person = _NO_PERSON.search(form) is None and (not kind or last in lex.FAMILY)
    if first in lex.GIVEN_NAMES and len(words) < 5 and person:
        return "person"
    if kind not in _NO_HEADS and last not in lex.AMBIGUOUS_HEADS:
        return kind  # Fenwick Heights
    if first in lex.FIRST and last not in lex.NEVER and words[1] != "of":
        if lex.FIRST[first] == "person" and not person:
            return ""  # Emperor Entertainment Group
        team = len(words) > 2 and first in ("san", "los", "las") and last[-1] == "s"
        return "organization" if team else lex.FIRST[first]  # Los Angeles Kings, Captain Nemo
    king = last in ("king", "bishop") and not common(first) and first not in lex.LAST
    return "person" if king or last in ("jr", "sr") else ""


def by_definition(text: str, end: int) -> str:
    """Marie Curie, a Polish physicist; Ada (born 1815)."""
    if text[end : end + 2] not in _DEFINING:
        return ""
    if _BORN.match(text, end):
        return "person"
    found = _DEFINED.match(text, end)
    return _by_predicate(found[2], not found[1]) if found else ""


def _by_predicate(predicate: str, beside: bool) -> str:
    """The type of the first known noun, or noun phrase, of "is a ..."; `beside`: of ", a ...", which
    another clause may begin with: ", the film is ..."."""
    found, words = "", predicate.split()[:9]
    end = next((at for at, word in enumerate(words) if word in _BEHIND), len(words))
    if beside and not _CLAUSE.isdisjoint(words[:end]):
        return ""
    for at, word in enumerate(words[:end]):
        kind = lex.HEAD_TYPE.get(word, "")
        if found and not kind:
            if word.endswith(("grapher", "ist")):
                return "person"  # an Indian film cinematographer
            following = lex.HEAD_TYPE.get(words[at + 1]) if at + 1 < end else None
            if following is None or word.endswith(("ed", "ing")):  # not a film production company
                return "" if word.endswith(("er", "or")) and len(word) > 5 else found
        found = kind or found
    return found


def _by_noun(before: Sequence[str]) -> str:
    """The film Titanic, the city of Kolkata; not "they play X"."""
    if len(before) < 2 or before[-1]:
        return ""
    of = before[-2] == "of"
    noun = re.split("[^a-z]", before[-3] if of and len(before) > 2 else before[-2])[-1]
    kind = lex.HEAD_TYPE.get(noun, "")
    if not kind or (kind != "location" if of else kind in ("location", "event")):
        return ""
    article = before[:-3] if of else before[:-2]
    led = bool(article) and article[-1] in _ARTICLES
    return kind if led or noun not in lex.AMBIGUOUS_HEADS else ""


def _by_neighbours(text: str, end: int, words: list[str], before: Sequence[str]) -> str:
    """By the two words before a name, or what stands behind it."""
    name = words[-1]
    acronym = name.rstrip("s").isupper() and len(words) == 1  # UN, POWs
    if not acronym and name.lower() in lex.NEVER:
        return ""
    if len(before) > 2 and not before[-1]:
        kind = _by_preposition(before[-2], before[-3], text[end : end + 24], words, acronym)
        if kind and (
            kind == "organization" or (name.isalpha() and not name[1:].rstrip("s").isupper())
        ):
            return kind
    if place := _COMMA.match(text, end):
        key, known = place[1].lower().replace(" ", "_"), lex.PLACES if len(words) > 1 else lex.KNOWN
        where = key in known and lex.KNOWN[key] == "location" and len(words) < 4
        return "location" if where else ""  # Ankara, Turkey
    if inner := _BRACKET.match(text, end):
        return lex.HEAD_TYPE.get(inner[1], "")  # Titanic (1997 film)
    if text[end : end + 1] != " " or before[-2:-1] in _INSIDE:
        return ""  # Ann Herren from Zephyr told
    after = text[end + 1 : end + 40].split(" ", 2)  # Trent died; Kell lies between; Mara Quill who
    if after[0] in lex.SAYS_PERSON:
        return "" if words[-1][1:].rstrip("s").isupper() else "person"
    if after[0] == "lies" or (after[0] in ("is", "was") and after[1:] and after[1] in lex.IS_PLACE):
        return "location"
    return "person" if after[0] == "who" and len(words) > 1 else ""


def _by_preposition(one: str, two: str, after: str, words: list[str], acronym: bool) -> str:
    """By the word before the name, and the one before that."""
    for preposition, others, kind, _ in BEFORE:
        if one == preposition and two in others:
            return kind
    if one == "near":
        return "location"
    if one == "in" and after[:1] in _ENDS and len(words) < 3 and words[0].istitle():
        first = words[0].lower()
        return "" if first in lex.HEAD_TYPE or first in lex.NAMES else "location"
    return "person" if one in ("starring", "featuring") and len(words) > 1 else ""


def subjects(text: str) -> Iterator[Candidate]:
    """What a line defines when it begins with "X is a ...": X whole, small words and a lower-case
    tail included (Jump for Glory; Gila monster)."""
    for match in _SUBJECT.finditer(text):
        start, end = match.span(1)
        words = match[1].split(" ")
        if not _one_name(words):
            continue
        kind = kind_of(text, start, end, words)
        opener = words[0].lower().replace("’", "'").rstrip(",")
        if opener not in lex.STARTERS or kind == "content":
            yield start, end, kind, True


def _one_name(words: list[str]) -> bool:
    """Capitalised words and small ones between them, then up to three words in lower case."""
    tail, comma = 0, False
    for word in words:
        low = word[:1].islower()
        behind = tail > 3 or (tail and (not low or word in lex.SMALL_WORDS))
        if not word or behind or (comma and low):
            return False
        if low and word not in lex.SMALL_WORDS:
            if word in lex.STARTERS:
                return False
            tail += 1
        comma = word[-1] == ","
    return True


# ---- words that are seldom names ------------------------------------------------------------

ABSTRACT = tuple("ing ed ly ity ness tion ment ance ence ism ists ings".split())


@lru_cache(maxsize=1 << 15)
def common(word: str) -> bool:
    """Is this lower-case English word, or what it is inflected from, one that is seldom a name?"""
    if word in lex.COMMON or word in lex.DULL or stop_word(word):
        return True
    for end in ("s", "es", "ed", "d", "ing", "ly", "er", "ers", "r"):
        stem = word.removesuffix(end)
        if stem != word and (stem in lex.COMMON or f"{stem}e" in lex.COMMON):
            return True
    return word.endswith(("ies", "ied")) and word[:-3] + "y" in lex.COMMON
