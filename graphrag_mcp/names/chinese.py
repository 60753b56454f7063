"""Names in Chinese text.

Words and their classes come from `rjieba`, loaded at the first Han character; its known faults are
repaired here."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from types import ModuleType
from typing import NamedTuple

from graphrag_mcp.names import lexicon as lex
from graphrag_mcp.text.spans import Candidate
from graphrag_mcp.text.terms import SIMPLIFY

_RUN = re.compile(f"[{lex.HAN}][{lex.HAN}A-Za-z0-9·•‧・.-]*+")
_DOTS = "·•‧・"  # within foreign names
_SOUND = "".join(sorted(lex.ZH_SOUNDS))
_DOTTED = re.compile(f"[{_SOUND}]{{1,8}}(?:[{_DOTS}](?:[{_SOUND}]{{1,10}}|[{lex.HAN}]{{1,3}}|[A-Z][A-Za-z.]{{0,20}}))+")
_LEAD = frozenset("与與和或及成出指在為为以于於由从從至到将將被把是有对對向经經称稱让讓令")
# Before these heads any word may be the name: 固始/a 站.
_NAME_TAGS = ("nr", "ns", "nt", "nz")
_NOUN = ("n", "zg")  # how the classes of nouns begin
_BEFORE_HEAD = frozenset("a n j zg ng b vn nz ns nr nrt nt nrfg x g t m i l s".split())


class _Token(NamedTuple):
    """A word of the segmenter in simplified characters; `known`: the word list has it."""

    word: str
    tag: str
    start: int
    end: int
    known: bool


def _jieba() -> ModuleType:
    import rjieba  # noqa: TID251 - Chinese words are cut here, loaded at the first Han character

    return rjieba


def _tokens(text: str) -> Iterator[list[_Token]]:
    """The words of each unbroken run from a Han character on, traditional read as simplified."""
    jieba = _jieba()
    for run in _RUN.finditer(text):
        at, words = run.start(), []
        for word, tag in jieba.tag(run[0].translate(SIMPLIFY)):
            tag = "n" if word in lex.ZH_NO_NAMES else tag
            # asked only where it decides
            known = len(word) < 2 or tag[0] not in "njlz" or jieba.has_word(word)
            words.append(_Token(word, tag, at, at + len(word), known))
            at += len(word)
        yield words


def candidates(text: str, short: bool) -> list[Candidate]:
    runs = [_repaired(words) for words in _tokens(text)]
    counts = Counter(token.word for words in runs for token in words)
    found = _dotted(text, runs) if any(dot in text for dot in _DOTS) else []
    for words in runs:
        skip = 0
        for at, token in enumerate(words):
            if at < skip:
                continue
            if token.tag in _BEFORE_HEAD and (joined := _joined(words, at)):
                last, kind = joined
                skip = last + 1
                sure = short or _sure_head(words, at, last)
                found.append((token.start, words[last].end, kind, sure))
            elif judged := _judged(token, counts[token.word], short):
                kind, strong = judged
                strong = strong and (short or _sure(words, at, kind))
                found.append((token.start, token.end, kind, strong))
    return found


def nouns(text: str) -> Iterator[str]:
    """Nouns of two characters or more that the word list of the segmenter has."""
    for run in _tokens(text):
        for token in run:
            if len(token.word) > 1 and token.known and token.tag.startswith(("n", "vn")):
                yield text[token.start : token.end]


def without_longer_words(text: str, form: str) -> str:
    """The text with blanks in place of the words of the word list that hold a form and more: 俄罗斯 for 罗斯."""
    simplified = form.translate(SIMPLIFY)
    for run in _tokens(text):
        for word, _, start, end, known in run:
            if known and simplified in word and simplified != word:
                text = text[:start] + " " * (end - start) + text[end:]
    return text


def content_words(text: str) -> Iterator[str]:
    """Words of a question that may say what it asks about: nouns, names, and other words of two characters or more
    that are nouns, verbs, adjectives or set phrases."""
    for run in _tokens(text):
        for token in run:
            if token.tag.startswith("n") or (len(token.word) > 1 and token.tag[0] in "vaijlzx"):
                yield text[token.start : token.end]


def single_nouns(text: str) -> Iterator[str]:
    """Nouns of one character: no pieces of a longer unknown word, no end of a name."""
    for run in _tokens(text):
        for at, token in enumerate(run):
            if len(token.word) > 1 or token.word in lex.ZH_FUNCTION or not token.tag.startswith(_NOUN):
                continue
            beside = [*run[max(at - 1, 0) : at], *run[at + 1 : at + 2]]
            piece = any(len(neighbour.word) == 1 and neighbour.tag.startswith(_NOUN) for neighbour in beside)
            if not piece and not (at and run[at - 1].tag.startswith(_NAME_TAGS)):
                yield text[token.start : token.end]


def _repaired(words: list[_Token]) -> list[_Token]:
    """Puts together what the segmenter splits of a name, and cuts what it adds."""
    has_word = _jieba().has_word
    out: list[_Token] = []
    for token in words:
        last = out[-1] if out else _Token("", "x", 0, 0, True)
        word, tag, start, end, known = token
        tagged = tag.startswith("nr")
        loose = tagged or tag in ("zg", "x", "ng", "g")
        if len(word) == 2 and last.word in lex.ZH_SURNAMES_TWO and word[1] in lex.ZH_TRAIL:
            out[-1] = _Token(last.word + word[0], "nr", last.start, end - 1, False)  # 司马|晏是
            continue
        surname = last.word in lex.ZH_SURNAMES_TWO or last.word in lex.ZH_SURNAMES
        half = last.word[:2] in lex.ZH_SURNAMES_TWO and len(word) == 1
        begun = half or (surname and last.tag[0] in "njxa")
        sounds = last.tag + tag == "ans" and lex.ZH_SOUNDS.issuperset(word)
        if begun and len(word) < 3 and (loose or sounds) and lex.is_han(word):
            out[-1] = _Token(last.word + word, "nr", last.start, end, False)  # 武田信|玄, 高|德纳
            continue
        if last.word + word[0] in lex.ZH_SURNAMES_TWO:
            out[-1] = _Token(last.word + word, "nr", last.start, end, False)  # 欧|阳修
            continue
        if not known:
            while tagged and len(word) > 2 and word[-1] in lex.ZH_TRAIL:
                word, end = word[:-1], end - 1  # 赵鹏于
            if len(word) > 2 and word[0] in _LEAD and word[0] not in lex.ZH_SURNAMES:
                word, start, known = word[1:], start + 1, has_word(word[1:])  # 与海牛
        token = _Token(word, tag, start, end, known)
        if out and _one_sound(last, token):
            out[-1] = _Token(last.word + word, "nrt", last.start, end, False)  # 罗迪|尼亚
        else:
            out.append(token)
    return out


def _one_sound(left: _Token, right: _Token) -> bool:
    """Are these halves of a foreign name that is no known word: 罗迪 + 尼亚, 纳 + 罗斯(海峡)?"""
    if left.end != right.start or not lex.ZH_SOUNDS.issuperset(left.word + right.word):
        return False
    if len(left.word) == 1 and left.tag.startswith("nr"):
        return len(right.word) > 1
    if (left.known and right.known and len(right.word) > 1) or right.tag[0] not in "njxz":
        return False
    return "nrt" in (left.tag, right.tag) or not left.known


def _dotted(text: str, runs: list[list[_Token]]) -> list[Candidate]:
    """Foreign names joined by a middle dot, trimmed to the segmenter's words at both ends."""
    has_word = _jieba().has_word
    inside = {at: token for words in runs for token in words for at in range(token.start + 1, token.end)}
    found = []
    for start, end in [match.span() for match in _DOTTED.finditer(text)]:
        if (token := inside.get(end)) and has_word(token.word):
            end = token.start
        if (token := inside.get(start)) and has_word(token.word):
            start = token.end
        if start < end and any(dot in text[start + 1 : end - 1] for dot in _DOTS):
            found.append((start, end, "person", True))
    return found


def _joined(words: list[_Token], first: int) -> tuple[int, str] | None:
    """Index of the last word and type of a name that ends in a telling head: 三茂 + 铁路 + 股份 + 有限公司."""
    word, tag, start, _, known = words[first]
    named = tag.startswith(_NAME_TAGS) or not known
    if word in lex.ZH_DULL or word in lex.ZH_HEAD_TYPE:
        return None
    best: tuple[int, str] | None = None
    for index in range(first + 1, min(first + 5, len(words))):
        head, head_tag, _, end, _ = words[index]
        verb = head_tag in ("v", "q", "k")
        if not (head_tag[0] in "njb" or head_tag in ("vn", "zg", "v", "q", "k", "l")):
            break
        kind = lex.ZH_HEAD_TYPE.get(head, "") or lex.ZH_HEAD_TYPE.get(head[-2:], "")
        near = index == first + 1 and len(word) > 1 and tag != "m"
        near = near and head[-1:] == "站" and head != "网站"
        if kind and (near or (named and not verb)):
            best = (index, kind)
        elif near:
            best = (index, "location")
        elif verb or head_tag == "zg" or head_tag.startswith(("nr", "ns")) or head in lex.ZH_DULL:
            break
    return best


_ROLE_ENDS = frozenset("员长家师理席者手人子生士王帝官将授父母妻夫女兄弟")


def _sure_head(words: list[_Token], first: int, last: int) -> bool:
    """Is a name that ends in a telling head one of something in particular: 推特公司, not 基因公司?"""
    _, tag, _, _, known = words[first]
    return tag in ("ns", "nt", "nr", "nrt") or (not known and last == first + 1)


def _sure(words: list[_Token], at: int, kind: str) -> bool:
    """Is a single word of a document a name for certain? Its class and the words beside it say so."""
    word, tag, _, _, known = words[at]
    if word in lex.ZH_KNOWN:
        return True
    if kind == "other":
        return False
    if kind == "person":
        before = words[at - 1] if at else None
        begins = before is None or before.tag[0] in "cpv" or before.word[-1] in _ROLE_ENDS
        acts = words[at + 1 : at + 2] and words[at + 1].tag[0] in "vd"
        return begins and (len(word) > 2 or bool(acts)) and word[-1] not in lex.ZH_HEAD_TYPE
    if tag == "nt":
        return len(word) > 2 and any(word[-size:] in lex.ZH_HEAD_TYPE for size in (1, 2, 3))
    wide = len(word) == 2 and word[0] in lex.ZH_WIDE and word[1] in lex.ZH_HEAD_TYPE  # 海港, 新村
    return known and not wide and word[-1] != "人"


def _judged(token: _Token, count: int, short: bool) -> tuple[str, bool] | None:
    """(type, strong) of a single word, None when it is no candidate."""
    word, tag, _, _, known = token
    if len(word) < 2 or word in lex.ZH_DULL or not lex.is_han(word[0]):
        return None
    if word in lex.ZH_KNOWN:
        return lex.ZH_KNOWN[word], True
    if tag.startswith("nr"):
        double = word[:2] in lex.ZH_SURNAMES_TWO
        surname = double or word[0] in lex.ZH_SURNAMES
        # A word with one more character names no person, whatever the word list says: 申请|人, 高中|生, 梅雨|季.
        derived = len(word) == 3 and not double and _jieba().has_word(word[:2])
        if surname and len(word) <= 3 + double and tag == "nr" and not derived and (not known or len(word) > 2):
            return "person", True
        return "other", lex.ZH_SOUNDS.issuperset(word) or (not known and count > 1)
    if tag == "ns":
        return "location", known or count > 1
    if tag in ("nt", "nz"):
        return "organization" if tag == "nt" else "other", True
    if tag in ("n", "j", "ng", "l") or (short and tag in ("vn", "an", "i", "s")):
        if not known:
            whole = word[-1] not in lex.ZH_TRAIL and word[0] not in lex.ZH_FUNCTION
            return ("other", count > 1) if whole else None
        if short or count > 1:
            return "other", False
    return None


# ---- short forms --------------------------------------------------------------------------------

_LONG_FORM = re.compile(r"[\u4e00-\u9fff·]{3,24}(?:（[^（）\n]{0,40}）)?$")
_SHORTENED = re.compile(
    '(?:，|,|（|\\()(?:以下|又|亦|或|常)?(?:简称|簡稱)(?:为|為)?[“"「『《]?([\u4e00-\u9fffA-Za-z0-9]{2,10})'
    '(?=[”"」』》，。、；;,）)])'
)


def shortened(text: str) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Pairs of spans (start, end): a short form that the text introduces (世界卫生组织（简称世卫组织）), and its
    long form, which contains the characters of the short form in their order."""
    for match in _SHORTENED.finditer(text):
        before = _LONG_FORM.search(text, max(0, match.start() - 64), match.start())
        if not before:
            continue
        form = before[0].split("（")[0].translate(SIMPLIFY)
        short = match[1].translate(SIMPLIFY)
        # the last place from which on the long form has all characters of the short one
        places = range(len(form) - len(short) - 1, -1, -1)
        at = next((at for at in places if _has_in_order(form[at:], short)), None)
        if at is not None:
            long = before.start() + at, before.start() + len(form)
            yield match.span(1), long
            for place in re.finditer(re.escape(match[1]), text):  # a name coined here
                yield place.span(), long


def _has_in_order(form: str, short: str) -> bool:
    rest = iter(form)
    return form[0] == short[0] and all(ch in rest for ch in short)
