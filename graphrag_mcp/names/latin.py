"""Proper names in scripts with capitals: phrases of capitalised words, cut where a name ends.

A word that opens a sentence counts only when it is seldom anything but a name or stands capitalised
elsewhere too. The second half holds what languages other than English ask for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from graphrag_mcp.names.lexicon import (
    ACRONYM_NOISE,
    AMBIGUOUS_HEADS,
    BODIES,
    COMMON,
    DE_COMMON,
    DE_PART,
    DEMONYMS,
    DULL,
    EVENT_HEADS,
    FOREIGN_GIVEN,
    GIVEN,
    GROUPS,
    HEAD_TYPE,
    HEADS,
    INTO,
    LABELS,
    MONTH,
    MONTHS,
    OFFICES,
    OPENING,
    PLACES,
    ROLE_WORDS,
    ROLES,
    SAYS,
    STARTERS,
    TAILS,
    TITLES,
    VI_BEFORE,
    VI_HEADS,
    VI_SURNAMES,
    bare,
)
from graphrag_mcp.names.types import kind_of
from graphrag_mcp.text.folding import CASED, LANGUAGES, LOWER, UPPER, WORD
from graphrag_mcp.text.terms import normalise_name, stop_word

Candidate = tuple[int, int, str, bool]
Token = tuple[str, int, int]
_TAIL = re.compile(rf" ([{LOWER}]{{3,}})(?: ([{LOWER}]{{3,}}))?(?: ([{LOWER}]{{3,}}))?")
_SMALL = "de|di|da|do|dos|das|del|della|dei|des|du|la|le|el|los|las|της|του|των|τη|το"
_LED = re.compile(rf"(?<![{WORD}’'])([{WORD}’']+)[ \n](?:(?:{_SMALL}) )*$")
_ADJECTIVE = re.compile(
    r"(?:[иыоеі]й|[ое]го|[ое]му|[иыоеі]м|[иы]х|[аояеу]я|[ую]ю|ої|ій|[ое]е|ський|ську|ська|ське)$"
)
# of a name without the endings of its cases
_SURNAME = re.compile(
    r"(?:[ое]в|[иы]н|ск|цк|ськ|цьк|енк|[ую]к|ич|[ая]н|швили|дзе|οπουλ|ιδ|ακ|ιαδ|ογλου|οπουλου)$"
)
_DE_NOUN = re.compile(
    r"(?:ung|heit|keit|tion|schaft|tät|ismus|nis|tum|ment|ieren)(?:en|s)?$|^(?:Ge|Ver|Be|Über|Er|Ent|Unter)[a-zäöü]+t$"
)
_DE_ARTICLES = frozenset("der die das dem den des am im zum zur vom beim ins".split())
_S_NAMES = ("us", "is", "as", "os", "es", "ss", "ys")
_VI_CAP = rf"[{UPPER}][{WORD}]*(?: [{UPPER}][{WORD}]*){{0,4}}"
_VI_KIND = {
    words.lower(): (kind, True) for kind, listed in VI_HEADS.items() for words in listed.split("|")
} | {words: (kind, False) for kind, listed in VI_BEFORE.items() for words in listed.split("|")}
_VI_WORDS = {
    form
    for words in _VI_KIND
    for form in ((words, words.capitalize()) if " " in words else (words,))
}
_VI_WORDS |= {words for listed in VI_HEADS.values() for words in listed.split("|")} | {"Ông", "Bà"}
_VI = re.compile(
    rf"(?<![{WORD}])(?P<head>{'|'.join(sorted(_VI_WORDS, key=lambda words: (-len(words), words)))}) (?P<name>{_VI_CAP})"
)
_VI_LETTERS = re.compile("[ơưạảấầẩẫậắằẳẵặẹẻẽếềểễệỉịọỏốồổỗộớờởỡợụủứừửữựỳỵỷỹ]")
_POLITE = frozenset("вы вас вам вами ваш ваша ваше ваши ви".split())
_ROMANCE = frozenset("fr es it pt".split())


def script_language(text: str, lower: set[str]) -> str:
    """The language that letters show where no word does; "en" for Latin letters."""
    if any(word > "\u0400" for word in lower):
        return "uk" if re.search("[іїєґ]", text) else "ru"
    if any(word > "\u0370" for word in lower):
        return "el"
    if _VI_LETTERS.search(text):
        return "vi"
    return "tr" if re.search("[ğşİ]|ı(?=[a-z])", text) else "en"


def is_role(word: str) -> bool:
    """Does this capitalised word say who someone is: Ingenieur, Писательница?"""
    key = bare(word.rstrip("."))
    return key in ROLES or (key[-1:] == "s" and key[:-1] in ROLES)


def is_given(word: str) -> bool:
    return bare(word) in FOREIGN_GIVEN


def cut(text: str, tokens: list[Token], language: str) -> tuple[list[Token], set[int], set[int]]:
    """The tokens of a phrase without what is no part of a name; which of them are roles; after
    which a name ends."""
    out: list[Token] = []
    roles: set[int] = set()
    stops: set[int] = set()
    for index, (word, at, to) in enumerate(tokens):
        following = tokens[index + 1] if index + 1 < len(tokens) else None
        mark = next((place for place in (word.find("'"), word.find("’")) if place > 0), 0)
        if language == "tr" and mark > 1 and word[mark + 1 : mark + 2].islower():
            word, to = word[:mark], at + mark  # Ankara'da
            stops.add(len(out))
        elif mark and mark < 5 and language in ("fr", "it") and word[mark + 1 : mark + 2].isupper():
            at += mark + 1  # L'Université
            word = word[mark + 1 :]
        elif (
            language == "de"
            and following
            and text[to : following[1]] == " "
            and _genitive(word, following[0])
        ):
            word, to = word[:-1], to - 1
            stops.add(len(out))
        if word.isdigit() and index + 1 == len(tokens) and MONTH.match(text, to):
            continue  # в Бильбао 3 мая
        if out and language in ("ru", "uk") and word.lower() in _POLITE:
            stops.add(len(out) - 1)  # Пишет Вам Николай Громов
            continue
        if out and following and _begins(out[-1][0], word):
            stops.add(len(out) - 1)  # в 1961 году в Вологде Василий Громов
        if following and is_role(word):
            (roles if text[to : following[1]] == " " else stops).add(len(out))
        out.append((word, at, to))
    return out, roles, stops


def _begins(before: str, word: str) -> bool:
    """Does a person's name begin with this given name, so that the word before it is no part of it?"""
    if word[0] < "\u0370" or bare(word) not in FOREIGN_GIVEN:
        return False
    key = bare(before)
    return key not in FOREIGN_GIVEN and not _SURNAME.search(key)


def _genitive(word: str, following: str) -> bool:
    """Regensburgs Bürgermeister, but not Thomas Mann."""
    if len(word) < 5 or word[-1] != "s" or word.endswith(_S_NAMES) or word[:-1].isupper():
        return False
    return (
        bare(word) not in FOREIGN_GIVEN
        and (len(word) > 5 or bare(word[:-1]) in FOREIGN_GIVEN)
        and following[0].isupper()
    )


_BREAKS = frozenset("von|des|der|den|von der|von den|von dem|zu|zur|vom".split("|"))


def breaks_german(run: list[Token], gap: str, last: str) -> bool:
    """Does a German name end before "von", "des", "der": Tod von Justus, but Universität von
    Lindental?"""
    if gap.strip() not in _BREAKS:
        return False
    if gap.strip() in ("von", "zu", "zur", "von der"):
        return not (bare(last) in FOREIGN_GIVEN or (bare(last) in HEADS and len(run) == 1))
    return True


def strength(
    text: str,
    span: tuple[int, int],
    words: list[str],
    opening: bool,
    language: str,
    strong: bool | None,
) -> bool | None:
    """True, False (weak) or None (no name) for a name that the rules of capitals alone judge to be
    `strong`."""
    start, end = span
    if len(words) > 1 or (strong and text[end : end + 1] != ":"):
        return strong
    word = words[0]
    if (
        text[start - 1 : start] in ("", "\n")
        and text[end : end + 1] == ":"
        and bare(word) in LABELS
    ):
        return None
    if opening and language == "vi":
        return None  # Thành phố, Giáo sư: half a word
    if strong is None or len(word) < 3:
        return strong
    if language == "tr" and text[end : end + 1] in ("'", "’"):
        return True
    after = text[end : end + 14].split(" ", 2)
    says = len(after) > 1 and after[0] in ("", ",") and after[1].strip(",.") in SAYS
    if opening and says and not _DE_NOUN.search(word):
        return True  # Valdeluz es un pueblo
    if language != "de" or _DE_NOUN.search(word):
        return strong
    before = text[max(0, start - 8) : start].split()
    said = before[-1].lower() if before and text[start - 1] == " " else ""
    if said in INTO["de"] and len(word) > 4:
        return True
    low = word.lower()
    return bool(said in _DE_ARTICLES and low not in DE_COMMON and _de_part(low)) or strong


def _de_part(low: str) -> str:
    """The kind that the end of a German compound speaks for."""
    sizes = (size for size in range(12, 2, -1) if len(low) > size + 2)
    return next((DE_PART[low[-size:]] for size in sizes if low[-size:] in DE_PART), "")


def longer(text: str, start: int, end: int, words: list[str], language: str) -> tuple[int, str]:
    """Where a name of Cyrillic letters ends whose noun is not capitalised, and its kind: Заречном
    университете."""
    if language not in ("ru", "uk") or not _ADJECTIVE.search(words[-1].lower()):
        return end, ""
    tail = _TAIL.match(text, end)
    for place in (1, 2, 3) if tail else ():
        word = tail[place] or ""
        if (kind := HEADS.get(bare(word), "")) and kind != "content":
            return tail.end(place), kind
        if not _ADJECTIVE.search(word):
            break
    return end, ""


def foreign_type(text: str, start: int, end: int, words: list[str], language: str) -> str:
    """The type that the name's own words, or the word before it, speak for; "" for none."""
    first, last = bare(words[0]), bare(words[-1])
    if len(words) > 1:
        if language == "tr" and last in HEADS:
            return HEADS[last]  # Yasemin Üniversitesi
        if first in FOREIGN_GIVEN or (language == "vi" and first in VI_SURNAMES and len(words) < 5):
            return "person"
        for word in (first, last):
            if word in HEADS:
                return HEADS[word]
    led = _LED.search(text, max(0, start - 40), start)
    key = bare(re.sub(r"^[a-z]+['’]", "", led[1].lower())) if led else ""
    if key in ROLES:
        # not: director de X
        return "person" if led and led[0].split()[-1:] == led[1].split() else ""
    if key in HEADS and not (len(words) > 1 and HEADS[key] == "content"):
        return HEADS[key]
    if len(words) > 1:
        return "person" if len(words) < 4 and _SURNAME.search(last) and last[0] > "\u0370" else ""
    if language == "de" and (kind := _de_part(words[0].lower())):
        return kind
    into = INTO.get(language) or (INTO["romance"] if language in _ROMANCE else ())
    if led and led[1].lower() in into and first not in FOREIGN_GIVEN and text[end : end + 1] != "s":
        return "location"
    if language == "tr" and re.match(r"['’](?:[dt][ae]n?(?:ki)?)\b", text[end : end + 8]):
        return "location"
    return ""


def phrases(text: str, language: str) -> Iterator[Candidate]:
    """Vietnamese names after the words that say what they are, of which only the first syllable has
    a capital."""
    if language != "vi":
        return
    for match in _VI.finditer(text):
        kind, kept = _VI_KIND[match["head"].lower()]
        yield match.start() if kept else match.start("name"), match.end(), kind, True


_CAP = rf"[{UPPER}][{WORD}]*+(?:(?:[’'‐&-]| @-@ )[{WORD}]++)*+"
_ABBREVIATED = r"(?:St|Mt|Ft|Dr|Mr|Mrs|Ms|Prof|Jr|Sr|Lt|Col|Gen|Sgt|Capt|Rev|Hon|Sen|Rep|Gov|Inc|Corp|Ltd|Co|Bros)\."
_TOKEN = rf"(?:[{UPPER}]\.)++(?:[{UPPER}](?![{WORD}]))?|{_ABBREVIATED}|{_CAP}|[a-z]{{1,2}}[{UPPER}][{WORD}]*+"
_PARTICLE = r"(?:of|the|de|du|des|del|della|di|da|dos|das|do|la|le|van|von|der|den|ten|ter|zu|zur|el|al|bin|ibn|ben)"
_SEP = (
    rf"(?:[ \n]|(?<=\.)| & | (?:and|for)(?: the)? | {_PARTICLE}(?: (?:the|la|las|los|der|den))? | (?:und|et|y|e|ap|i) "
    rf"|(?<=[sn])[’'] | (?:d|l)[’']|, (?=Inc\b|Ltd\b|LLC\b)| ?al-)"
)
_NUMBER = r"\d{1,4}(?:st|nd|rd|th)?"
_PHRASE = re.compile(
    rf"(?<![{WORD}_.@/\\-])(?:{_NUMBER}(?:[–-]\d\d)? )?(?:{_TOKEN})"
    rf"(?:{_SEP}(?:{_TOKEN}|{_NUMBER}(?![{WORD}%]|[.,]\d| per ?cent)))*+"
)
_PIECE = re.compile(rf"{_TOKEN}|{_NUMBER}")
_PLAIN = re.compile(rf"[{UPPER}][{CASED}]*+(?: [{UPPER}][{CASED}]*+)++")
_LOW = rf"[{LOWER}]{{2,}}+(?:-[{LOWER}]++)*+"
LOWER_RUN = re.compile(rf"(?<![{WORD}_.@/\\’'-]){_LOW}(?: {_LOW})*+(?![{WORD}_(’'])")
_OPENERS = frozenset(" \t\"“”‘'`(（[*#>_-–—•«„¿¡=|")
_STOPS = frozenset(".!?…:;\n。！？|")


@lru_cache(maxsize=1 << 15)
def tails(word: str) -> bool:
    """Is it a word behind a name and a hyphen that is no part of the name? London-listed."""
    return word in TAILS or (len(word) > 4 and word.islower() and word.endswith(("ed", "ing")))


def common(word: str) -> bool:
    """Is this lower-case English word, or what it is inflected from, one that is seldom a name?"""
    if word in COMMON or word in DULL or stop_word(word):
        return True
    for end in ("s", "es", "ed", "d", "ing", "ly", "er", "ers", "r"):
        if word.endswith(end) and (
            word[: -len(end)] in COMMON or word[: -len(end)] + "e" in COMMON
        ):
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
    """The language whose words of grammar show most among these lower-case words; English when none
    does."""
    english = len(LANGUAGES["en"] & lower)
    if english > 7 and "the" in lower:
        return "en"  # nothing else has so many of its words
    best = max(LANGUAGES, key=lambda name: len(LANGUAGES[name] & lower))
    return best if len(LANGUAGES[best] & lower) > english else "en"


# A score: the number before another team and its number, or before a second number; and what stands
# before the second team.
_SCORE = re.compile(r"\d{1,2}(?:-\d{1,2}\b|(?: \([^()\n]{0,20}\))? [A-Z][a-z]+ \d{1,2}\b)")
_SCORED = re.compile(r"[A-Z][a-z]+ \d{1,2}(?: \([^()\n]{0,20}\))? \Z")


class Names:
    """Proper names of one text: phrases of capitalised words, cut where a name ends."""

    def __init__(self, text: str, lower: set[str]) -> None:
        self.text, self.lower = text, lower
        self.language = language(lower)
        if self.language == "en" and not text.isascii() and not lower & LANGUAGES["en"]:
            self.language = script_language(text, lower)
        self.english = self.language == "en"
        self.starters = _STARTERS_IN[self.language]
        self.seen: set[str] = set()  # words that stand capitalised where no sentence begins
        self.pieces: list[tuple[int, int, list[str], bool, bool, bool]] = []

    def find(self) -> Iterator[Candidate]:
        if not self.english:
            yield from phrases(self.text, self.language)
        for match in _PHRASE.finditer(self.text):
            if match[0].isalpha():
                self._one_word(match[0], match.start(), match.end())
            elif not self.english or not (
                _PLAIN.fullmatch(match[0]) and self._plain(match[0], match.start(), match.end())
            ):
                self._cut(match.start(), match.end())
        yield from self._judged() if self.english else self._judged_abroad()

    def _judged(self) -> Iterator[Candidate]:
        for start, end, words, opening, titled, shouted in self.pieces:
            strong = self._strength(words, opening, shouted)
            if strong is not None:
                yield (
                    start,
                    end,
                    "person" if titled else kind_of(self.text, start, end, words),
                    strong,
                )

    def _judged_abroad(self) -> Iterator[Candidate]:
        """The same in other languages: a word that only opens the sentence goes, a noun in small
        letters comes."""
        known = {normalise_name(self.text[piece[0] : piece[1]]) for piece in self.pieces}
        for start, end, words, opening, titled, shouted in self.pieces:
            if opening and len(words) > 1 and not is_given(words[0]):
                tail = self.text.find(words[1], start + len(words[0]), end)
                if tail > 0 and normalise_name(self.text[tail:end]) in known:
                    start, words, opening = tail, words[1:], False
            strong = self._strength(words, opening, shouted)
            strong = strength(self.text, (start, end), words, opening, self.language, strong)
            if strong is None:
                continue
            end, kind = longer(self.text, start, end, words, self.language)
            kind = kind or foreign_type(self.text, start, end, words, self.language)
            yield (
                start,
                end,
                "person" if titled else kind or kind_of(self.text, start, end, words),
                strong,
            )

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
        """What `_cut` does with capitalised words and single blanks, none of which it knows; False:
        cut this one."""
        words = form.split(" ")
        lows = form.lower().split(" ")
        if len(words) > 9 or not (self.starters.isdisjoint(lows) and _CUTTING.isdisjoint(lows)):
            return False
        if self.text[end : end + 1] != "$":
            self.seen.update(words)
            lead = self._office(words)
            start += sum(map(len, words[:lead])) + lead
            shouted = len(form) > 9 and form.isupper()
            opening = not lead and _opens(self.text, start)
            self.pieces.append((start, end, words[lead:], opening, lead > 0, shouted))
        return True

    def _office(self, words: list[str]) -> int:
        """How many words before a given name and a family name say what the person is: Tory Shadow
        Chancellor Oliver Letwin."""
        lead = len(words) - 2
        if not self.english or lead < 1:
            return 0
        lows = [word.lower() for word in words]
        if lows[-1] in HEAD_TYPE and lows[-1] not in AMBIGUOUS_HEADS or lows[-1][0].isdigit():
            return 0  # Royal Albert Hall
        held = lows[lead - 1] in OFFICES or lows[lead - 1] in TITLES
        says = held or lows[lead - 1] in ROLE_WORDS
        named = lows[lead] in GIVEN or (held and not any(map(common, lows[lead:])))
        return lead if says and named and lows[0] not in GIVEN else 0

    def _cut(self, start: int, end: int) -> None:
        """Splits one phrase into names; each goes to `pieces` with its words and where it stood."""
        text = self.text
        tokens = [(m[0], m.start(), m.end()) for m in _PIECE.finditer(text, start, end)]
        roles: set[int] = set()
        stops: set[int] = set()
        if not self.english:
            tokens, roles, stops = cut(text, tokens, self.language)
        opening = _opens(text, start)
        shouted = len(tokens) > 1 and (end - start) > 9 and text[start:end].isupper()
        heading = len(tokens) > 4 and opening and (end == len(text) or text[end] == "\n")
        run: list[tuple[str, int, int]] = []
        titled = False
        dated = any(word.lower() in EVENT_HEADS for word, _, _ in tokens)  # 1988 Summer Olympics
        skip = False
        for index, (word, at, to) in enumerate(tokens):
            # an initial keeps its point: "A."
            low = word.lower() if len(word) == 2 else word.lower().rstrip(".")
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
            if (
                low in MONTHS
                and (not run or (following and following[0].isdigit()))
                and self._is_date(following)
            ):
                run = self._keep(run, opening, titled, shouted)
                skip = bool(following and following[0].isdigit())
                opening = False
                continue
            if index in roles or (following and low in TITLES and (not run or word[-1] == ".")):
                run = self._keep(run, opening, titled, shouted)
                titled, opening = True, False
                continue
            if not run and self._never_first(word, low, opening, following):
                opening = False
                continue
            if word[-2:] in ("'s", "’s") and word != "'s":
                run.append((word[:-2], at, to - 2))
                if not (
                    following
                    and self._owns(low[:-2], following[0].lower(), index + 2 == len(tokens))
                ):
                    run, titled, opening = self._keep(run, opening, titled, shouted), False, False
                continue
            head, dash, tail = word.rpartition("-")
            if following and dash and tails(tail):  # San Francisco-based Balco
                run.append((head, at, at + len(head)))
                run, titled, opening = self._keep(run, opening, titled, shouted), False, False
                continue
            run.append((word, at, to))
            if index in stops:
                run, titled, opening = self._keep(run, opening, titled, shouted), False, False
        self._keep(run, opening, titled, shouted)

    def _breaks(
        self, run: list[tuple[str, int, int]], gap: str, word: str, low: str, loud: bool, at: int
    ) -> bool:
        """Does the name in `run` end before this word?"""
        last = run[-1][0].lower().rstrip(".")
        if "\n" in gap:
            line = self.text.rfind("\n", 0, at - 1)
            return at - line < 50 or low in self.starters or word[0].isdigit()
        if gap in (" and ", " and the ", " for ", " for the "):
            bodied = any(w.lower() in BODIES for w, _, _ in run)
            return not bodied or word.isupper() or (gap[1] == "a" and len(run) < 2)
        if self.language == "de" and breaks_german(run, gap, last):
            return True  # "Bach von der Familie", but "Ursula von der Leyen"
        if gap in (" und ", " et ", " y ", " e ", " i "):
            return self.language != "en"
        if gap.startswith(" of") and (last in OFFICES or (last in GROUPS and len(run) == 1)):
            run.clear()
            return False
        if word.isdigit():
            if len(word) < 3 and (
                _SCORE.match(self.text, at)
                or _SCORED.search(self.text, max(0, run[0][1] - 30), run[0][1])
            ):
                return True  # Newcastle 2 Liverpool 1
            year = len(word) == 4 and "1500" <= word < "2100"
            return last in DULL or (
                year and last not in EVENT_HEADS and last not in ("windows", "expo", "euro")
            )
        if run[-1][0].endswith(".") and low in self.starters and not gap.startswith(" of"):
            return True
        if loud and low in STARTERS and low not in ("of",):
            return True
        return last.isdigit() and len(run) > 1 and low in self.starters

    def _is_date(self, following: tuple[str, int, int] | None) -> bool:
        return (
            following is None or following[0].isdigit() or following[0].lower() not in EVENT_HEADS
        )

    def _never_first(
        self, word: str, low: str, opening: bool, following: tuple[str, int, int] | None
    ) -> bool:
        if low in ("the", "a", "an", "i") or (low[:2] in ("i'", "i’")):
            # "The Who" keeps its article, since nothing else of it would be left
            return not (
                following and low == "the" and not opening and following[0].lower() in STARTERS
            )
        if self.language in ("fr", "it") and word[1:2] in ("'", "’") and word[2:3].islower():
            return True  # L'auteur
        if low.replace("’", "'") not in self.starters or (
            word.isupper() and len(word) > 1 and not following
        ):
            return False
        return opening or following is None

    def _owns(self, owner: str, owned: str, last: bool) -> bool:
        """Do "X's Y" make one name: King's College, Valentine's Day, Schindler's List?"""
        if owner in ("king", "queen", "children", "women", "men", "people", "valentine", "mother"):
            return True
        if owned in ("college", "hospital", "school", "university", "church"):
            return True
        return last and owned in _OWNED

    def _keep(
        self, run: list[tuple[str, int, int]], opening: bool, titled: bool, shouted: bool
    ) -> list:
        while run and run[-1][0].lower() in ("and", "of", "the") and not shouted:
            run.pop()
        if run and len(run) <= 9:
            words = [word for word, _, _ in run]
            start, end = run[0][1], run[-1][2]
            head, dash, tail = words[-1].rpartition("-")
            if dash and tails(tail):
                end -= len(tail) + 1
                words[-1] = head
            lead = self._office(words)
            start, words, titled = run[lead][1], words[lead:], titled or lead > 0
            if end > start and self.text[end : end + 1] != "$":
                if len(run) > 1 or not opening:
                    self.seen.update(words)
                self.pieces.append((start, end, words, opening, titled, shouted))
        return []

    def _strength(self, words: list[str], opening: bool, shouted: bool) -> bool | None:
        """True for a strong name, False for a weak one, None for no name."""
        if len(words) > 1:
            lows = [word.lower() for word in words]
            if self.english and len(words) == 2 and common(lows[0]) and lows[1] in DEMONYMS:
                return None  # Famous Japanese
            if shouted:
                return False if len(words) < 6 and not all(map(common, lows)) else None
            if _STARTERS_AND_MONTHS.issuperset(lows) and words[0] != "The":
                return None
            return not (len(words) > 6 or (opening and all(map(common, lows)) and len(words) < 3))
        word, low = words[0], words[0].lower().rstrip(".")
        if (
            len(low) < 2
            or word[0].isdigit()
            or low in MONTHS
            or word in ACRONYM_NOISE
            or low in _NEVER_ALONE
        ):
            return None
        if word.isupper():
            return (
                True if len(word) <= 6 or "." in word or any(c.isdigit() for c in word) else False
            )
        if low in self.starters or low in STARTERS:
            return None
        if any(ch.isupper() or ch.isdigit() for ch in word[1:]):
            return True
        head, dash, tail = low.rpartition("-")
        if self.english and (low in DEMONYMS or (dash and common(head) and word.endswith(tail))):
            return None  # European, high-profile
        if opening and word not in self.seen:
            if low in self.lower or (
                self.language == "en" and (common(low) or low.endswith(_ABSTRACT))
            ):
                return None
            # A word that only opens sentences must be met in a second text unit.
            return low in PLACES or low in GIVEN if self.language == "en" else False
        if self.language == "en":
            inflected = low.endswith("ing") and low not in COMMON
            dull = (
                low in DEMONYMS
                or low in HEAD_TYPE
                or low in self.lower
                or (common(low) and not inflected)
            )
            return low in PLACES or not dull
        return self.language != "de" and low not in self.lower


# Words of grammar in other scripts: no English word is one, and a short question has too few to
# show its language.
_OTHER_SCRIPTS = frozenset(
    word for words in LANGUAGES.values() for word in words if word[0] > "\u036f"
)
_STARTERS_IN = {"en": STARTERS | _OTHER_SCRIPTS} | {
    name: words | _OTHER_SCRIPTS | OPENING.get(name, frozenset())
    for name, words in LANGUAGES.items()
    if name != "en"
}
_STARTERS_AND_MONTHS = STARTERS | MONTHS
_CUTTING = _STARTERS_AND_MONTHS | TITLES | {"the", "a", "an", "i", "and", "of"}
_NEVER_LONE = frozenset(("the", "a", "an", "i", "and", "of"))
_NEVER_ALONE = TITLES | frozenset("jr sr inc ltd co corp llc bros st mt".split())
_OWNED = frozenset("day list law theorem palace cathedral angels cup game".split())
_ABSTRACT = tuple("ing ed ly ity ness tion ment ance ence ism ists ings".split())
