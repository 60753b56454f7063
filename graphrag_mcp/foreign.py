"""What names in other languages than English ask for, where capitals say less: cuts, strength, types.

Takes a text, its language and a name's words and span; gives where to cut, whether the name is strong, what it is.
Linear, one look at the words beside a name. Knows nothing of how phrases are found, and nothing of English.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from graphrag_mcp.letters import LOWER, UPPER, WORD
from graphrag_mcp.lexicon_foreign import (
    DE_COMMON,
    DE_PART,
    GIVEN,
    HEADS,
    INTO,
    LABELS,
    MONTH,
    ROLES,
    SAYS,
    VI_BEFORE,
    VI_HEADS,
    VI_SURNAMES,
    bare,
)

Candidate = tuple[int, int, str, bool]
Token = tuple[str, int, int]
_TAIL = re.compile(rf" ([{LOWER}]{{3,}})(?: ([{LOWER}]{{3,}}))?(?: ([{LOWER}]{{3,}}))?")
_SMALL = "de|di|da|do|dos|das|del|della|dei|des|du|la|le|el|los|las|της|του|των|τη|το"
_LED = re.compile(rf"(?<![{WORD}’'])([{WORD}’']+)[ \n](?:(?:{_SMALL}) )*$")
_ADJECTIVE = re.compile(r"(?:[иыоеі]й|[ое]го|[ое]му|[иыоеі]м|[иы]х|[аояеу]я|[ую]ю|ої|ій|[ое]е|ський|ську|ська|ське)$")
_SURNAME = re.compile(
    r"(?:[ое]в|[иы]н|ск|цк|ськ|цьк|енк|[ую]к|ич|[ая]н|швили|дзе|οπουλ|ιδ|ακ|ιαδ|ογλου|οπουλου)$"
)  # of a name without the endings of its cases
_DE_NOUN = re.compile(
    r"(?:ung|heit|keit|tion|schaft|tät|ismus|nis|tum|ment|ieren)(?:en|s)?$|^(?:Ge|Ver|Be|Über|Er|Ent|Unter)[a-zäöü]+t$"
)
_DE_ARTICLES = frozenset("der die das dem den des am im zum zur vom beim ins".split())
_S_NAMES = ("us", "is", "as", "os", "es", "ss", "ys")
_VI_CAP = rf"[{UPPER}][{WORD}]*(?: [{UPPER}][{WORD}]*){{0,4}}"
_VI_KIND = {words.lower(): (kind, True) for kind, listed in VI_HEADS.items() for words in listed.split("|")} | {
    words: (kind, False) for kind, listed in VI_BEFORE.items() for words in listed.split("|")
}
_VI_WORDS = {form for words in _VI_KIND for form in ((words, words.capitalize()) if " " in words else (words,))}
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
    """Does this capitalised word say who somebody is: Ingenieur, Писательница?"""
    key = bare(word.rstrip("."))
    return key in ROLES or (key[-1:] == "s" and key[:-1] in ROLES)


def is_given(word: str) -> bool:
    """Is this a given name?"""
    return bare(word) in GIVEN


def cut(text: str, tokens: list[Token], language: str) -> tuple[list[Token], set[int], set[int]]:
    """The tokens of a phrase without what is no part of a name; which of them are roles; after which a name ends."""
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
        elif language == "de" and following and text[to : following[1]] == " " and _genitive(word, following[0]):
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
    if word[0] < "\u0370" or bare(word) not in GIVEN:
        return False
    key = bare(before)
    return key not in GIVEN and not _SURNAME.search(key)


def _genitive(word: str, following: str) -> bool:
    """Regensburgs Bürgermeister, but not Thomas Mann."""
    if len(word) < 5 or word[-1] != "s" or word.endswith(_S_NAMES) or word[:-1].isupper():
        return False
    return bare(word) not in GIVEN and (len(word) > 5 or bare(word[:-1]) in GIVEN) and following[0].isupper()


def breaks_german(run: list[Token], gap: str, last: str) -> bool:
    """Does a German name end before "von", "des", "der": Tod von Justus, but Universität von Lindental?"""
    if gap.strip() not in ("von", "des", "der", "den", "von der", "von den", "von dem", "zu", "zur", "vom"):
        return False
    if gap.strip() in ("von", "zu", "zur", "von der"):
        return not (bare(last) in GIVEN or (bare(last) in HEADS and len(run) == 1))
    return True


def strength(
    text: str, span: tuple[int, int], words: list[str], opening: bool, language: str, strong: bool | None
) -> bool | None:
    """True, False (weak) or None (no name) for a name that the rules of capitals alone judge to be `strong`."""
    start, end = span
    if len(words) > 1 or (strong and text[end : end + 1] != ":"):
        return strong
    word = words[0]
    if text[start - 1 : start] in ("", "\n") and text[end : end + 1] == ":" and bare(word) in LABELS:
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
    """Where a name of Cyrillic letters ends whose noun is not capitalised, and its kind: Заречном университете."""
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


def kind_of(text: str, start: int, end: int, words: list[str], language: str) -> str:
    """The type that the name's own words, or the word before it, speak for; "" for none."""
    first, last = bare(words[0]), bare(words[-1])
    if len(words) > 1:
        if language == "tr" and last in HEADS:
            return HEADS[last]  # Yasemin Üniversitesi
        if first in GIVEN or (language == "vi" and first in VI_SURNAMES and len(words) < 5):
            return "person"
        for word in (first, last):
            if word in HEADS:
                return HEADS[word]
    led = _LED.search(text, max(0, start - 40), start)
    key = bare(re.sub(r"^[a-z]+['’]", "", led[1].lower())) if led else ""
    if key in ROLES:
        return "person" if led and led[0].split()[-1:] == led[1].split() else ""  # not: director de X
    if key in HEADS and not (len(words) > 1 and HEADS[key] == "content"):
        return HEADS[key]
    if len(words) > 1:
        return "person" if len(words) < 4 and _SURNAME.search(last) and last[0] > "\u0370" else ""
    if language == "de" and (kind := _de_part(words[0].lower())):
        return kind
    into = INTO.get(language) or (INTO["romance"] if language in _ROMANCE else ())
    if led and led[1].lower() in into and first not in GIVEN and text[end : end + 1] != "s":
        return "location"
    return "location" if language == "tr" and re.match(r"['’](?:[dt][ae]n?(?:ki)?)\b", text[end : end + 8]) else ""


def phrases(text: str, language: str) -> Iterator[Candidate]:
    """Vietnamese names after the words that say what they are, of which only the first syllable has a capital."""
    if language != "vi":
        return
    for match in _VI.finditer(text):
        kind, kept = _VI_KIND[match["head"].lower()]
        yield match.start() if kept else match.start("name"), match.end(), kind, True
