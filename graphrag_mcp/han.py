"""Names in scripts without capitals: those in Chinese, and the way to the others (`east`, `uncased`).

Takes a text, gives candidates `(start, end, type, strong)`, each finder sorted by start and free of overlaps of its
own. Chinese words and their classes come from `rjieba`, loaded at the first Han character; its known faults are
repaired here. It knows nothing of other texts, keys or caps.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterator
from types import ModuleType

from graphrag_mcp import east, uncased
from graphrag_mcp.east import HAN, Candidate
from graphrag_mcp.lexicon_han import (
    ZH_DULL,
    ZH_FUNCTION,
    ZH_HEAD_TYPE,
    ZH_SOUNDS,
    ZH_SURNAMES,
    ZH_SURNAMES_TWO,
    ZH_TRAIL,
)  # fmt: skip
from graphrag_mcp.lexicon_variants import SIMPLIFY
from graphrag_mcp.text import stop_word

_HAN_CHAR = re.compile(f"[{HAN}]")
_KANA = re.compile("[\u3041-\u3096]")
_RUN = re.compile(f"[{HAN}][{HAN}A-Za-z0-9·•‧・.-]*+")
_SOUND = "".join(sorted(ZH_SOUNDS))
_DOTTED = re.compile(f"[{_SOUND}]{{1,8}}(?:[·•‧・](?:[{_SOUND}]{{1,10}}|[{HAN}]{{1,3}}|[A-Z][A-Za-z.]{{0,20}}))+")
_SOUNDS_ONLY = re.compile(f"[{_SOUND}]+")
_LEAD = frozenset("与與和或及成出指在为為以于於由从從至到将將被把是有对對向经經称稱让讓令")
_LATIN_RUN = re.compile(
    r"(?<![A-Za-z0-9_.&-])[A-Za-zα-ωΑ-Ω](?:[A-Za-z0-9_.&'-]{0,40}[A-Za-z0-9+#])?(?: [A-Z][A-Za-z0-9_.&'-]{0,40}){0,4}"
)
_FENCE = re.compile("```")
_KATAKANA = re.compile("[ァ-ヺー]{2,30}(?:[・=＝][ァ-ヺー]{1,30})*")
_FAR = re.compile("[\u0590-\u1dff\u2e80-\uffef\U00020000-\U0003ffff]")  # any script of this module and its kin
_HANGUL = re.compile("[가-힣]")
# Before these heads any word may be the name: 固始/a 站.
_PLACE_HEADS = frozenset(
    "站 县 市 省 镇 乡 村 寺 庙 大学 学院 公司 集团 铁路 公路 路 街 桥 大桥 山 江 河 湖 岛 郡 区 州 府 城 战争 "
    "战役 之战 事件 县城 中学 小学 医院 银行 机场 港".split()
)
_NAME_TAGS = ("nr", "ns", "nt", "nz")
_NOUN = re.compile("n|zg").match
_NO_THING = frozenset("何誰此其今特更既共主次常単急最為様谁这那哪人事时年月日")  # ask, point, or stand in any text
_BEFORE_HEAD = frozenset("a n j zg ng b vn nz ns nr nrt nt nrfg x g t m i l s".split())


def is_han(ch: str) -> bool:
    return _HAN_CHAR.match(ch) is not None


def _jieba() -> ModuleType:
    import rjieba  # noqa: TID251 - Chinese words are cut here, loaded at the first Han character

    return rjieba


def candidates(text: str, short: bool) -> list[Candidate]:
    """All candidates of the scripts of this module; `short`: take words seen once as well."""
    if text.isascii() or not _FAR.search(text):
        return []
    found: list[Candidate] = []
    if _HAN_CHAR.search(text):
        n_han, n_kana = len(_HAN_CHAR.findall(text)), len(_KANA.findall(text))
        if n_kana * 12 > n_han:
            found += east.japanese(text)
        else:
            found += _chinese(text, short)
            found += ((m.start(), m.end(), "other", True) for m in _KATAKANA.finditer(text) if len(m[0]) > 2)
        if (n_han + n_kana) * 6 > len(text):
            found += _latin(text, short)
    elif _KANA.search(text) or _KATAKANA.search(text):
        found += east.japanese(text)
    if _HANGUL.search(text):
        found += east.korean(text, short)
    return found + uncased.candidates(text, short)


def alone(question: str) -> list[str]:
    """Chinese and Japanese words of one character in a question: in pairs with what stands beside them (狗吃, 弟は)
    they are not found where something else does (狗喜, 弟の)."""
    if question.isascii() or not _HAN_CHAR.search(question):
        return []
    found = east.single_kanji(question) if _KANA.search(question) else _single_nouns(question)
    words = dict.fromkeys(word.translate(SIMPLIFY) for word in found if word not in _NO_THING)
    return [word for word in words if not stop_word(word)]


def _latin(text: str, short: bool) -> Iterator[Candidate]:
    """Latin runs inside Chinese and Japanese: brands and terms; plain lower-case words only when what is written around
    blocks of code repeats them, for words of a programming language are in every block."""
    spans = [match.span() for match in _LATIN_RUN.finditer(text) if len(match[0]) > 1]
    fences = [match.start() for match in _FENCE.finditer(text)]
    counts = Counter(text[start:end] for start, end in spans if bisect(fences, start) % 2 == 0)
    for start, end in spans:
        form = text[start:end]
        plain = form.isascii() and form.isalpha() and form.islower()
        if not plain and not form.startswith("zh-"):
            yield start, end, "other", True
        elif plain and len(form) > 3 and (short or counts[form] > 1):
            yield start, end, "other", False


# ---- Chinese ------------------------------------------------------------------------------------

_Token = tuple[str, str, int, int, bool]  # simplified form, tag, start, end, whether the word list has it


def _tokens(text: str) -> Iterator[list[_Token]]:
    """The words of each unbroken run that begins with Han, traditional characters read as simplified."""
    jieba = _jieba()
    has_word = jieba.has_word
    for run in _RUN.finditer(text):
        at, words = run.start(), []
        for word, tag in jieba.tag(run[0].translate(SIMPLIFY)):
            known = len(word) < 2 or tag[0] not in "njlz" or has_word(word)  # asked only where it decides
            words.append((word, tag, at, at + len(word), known))
            at += len(word)
        yield words


def _chinese(text: str, short: bool) -> list[Candidate]:
    runs = [_repaired(words) for words in _tokens(text)]
    counts = Counter(word for words in runs for word, _, _, _, _ in words)
    found = _transliterated(text, runs)
    taken = bytearray(len(text))
    for start, end, _, _ in found:
        taken[start:end] = b"\x01" * (end - start)
    for words in runs:
        index = 0
        while index < len(words):
            word, tag, start, end, known = words[index]
            index += 1
            if taken[start] or taken[end - 1]:
                continue
            if tag in _BEFORE_HEAD and (joined := _joined(words, index - 1)):
                last, kind = joined
                index = last + 1
                found.append((start, words[last][3], kind, True))
                continue
            if judged := _judged(word, tag, known, counts[word], short):
                found.append((start, end, *judged))
    return found


def _single_nouns(text: str) -> Iterator[str]:
    """Nouns of one character: neither pieces of a longer word that the word list lacks, nor the end of a name."""
    for run in _tokens(text):
        for at, (word, tag, start, end, _) in enumerate(run):
            if len(word) > 1 or word in ZH_FUNCTION or not _NOUN(tag):
                continue
            beside = [*run[max(at - 1, 0) : at], *run[at + 1 : at + 2]]
            piece = any(len(one[0]) == 1 and _NOUN(one[1]) for one in beside)
            if not piece and not (at and run[at - 1][1].startswith(_NAME_TAGS)):
                yield text[start:end]


def _repaired(words: list[_Token]) -> list[_Token]:
    """Puts together what the segmenter splits of a person's name, and cuts what it adds: 武田信|玄, 赵鹏于."""
    has_word = _jieba().has_word
    out: list[_Token] = []
    for word, tag, start, end, known in words:
        if out and len(word) == 2 and out[-1][0] in ZH_SURNAMES_TWO and word[1] in ZH_TRAIL:
            out[-1] = (out[-1][0] + word[0], "nr", out[-1][2], end - 1, False)  # 司马 | 晏是
            continue
        if out and len(word) < 3:
            before, before_tag, at, _, _ = out[-1]
            surname = before in ZH_SURNAMES_TWO or (before in ZH_SURNAMES and len(before) == 1)
            half = before[:2] in ZH_SURNAMES_TWO and len(before) == 3 and before_tag.startswith("nr") and len(word) == 1
            loose = tag in ("zg", "x", "ng", "g") and word not in ZH_FUNCTION
            if (loose or tag.startswith("nr")) and is_han(word) and ((surname and before_tag[0] in "njx") or half):
                out[-1] = (before + word, "nr", at, end, False)
                continue
        if out and len(out[-1][0]) == 1 and out[-1][0] + word[0] in ZH_SURNAMES_TWO and tag.startswith("nr"):
            out[-1] = (out[-1][0] + word, "nr", out[-1][2], end, False)
            continue
        if not known and tag[0] in "nj":
            while tag.startswith("nr") and len(word) > 2 and word[-1] in ZH_TRAIL:
                word, end = word[:-1], end - 1
            lead = len(word) > 2 and word[0] in _LEAD
            if lead and (word[0] not in ZH_SURNAMES or has_word(word[1:])):
                word, start, known = word[1:], start + 1, has_word(word[1:])
        if out and _one_sound(out[-1], (word, tag, start, end, known)):
            before = out[-1]
            out[-1] = (before[0] + word, "nrt", before[2], end, False)
            continue
        out.append((word, tag, start, end, known))
    return out


def _one_sound(left: _Token, right: _Token) -> bool:
    """Are these two halves of one foreign name that the word list does not have: 罗迪 + 尼亚, 纳 + 罗斯(海峡)?"""
    alone = len(left[0]) == 1 and left[3] == right[2] and left[1].startswith("nr") and right[1].startswith("nr")
    if alone and left[0] not in ZH_SURNAMES:
        return 1 < len(right[0]) < 7 and _SOUNDS_ONLY.fullmatch(left[0] + right[0]) is not None
    if left[3] != right[2] or left[1][0] not in "njxz" or len(left[0]) < 2 or len(left[0] + right[0]) > 7:
        return False
    if (left[4] and right[4] and len(right[0]) > 1) or not right[1].startswith(("n", "j", "x", "zg")):
        return False
    foreign = "nrt" in (left[1], right[1]) or left[1] in ("nr", "ns") and not left[4]
    return foreign and _SOUNDS_ONLY.fullmatch(left[0] + right[0]) is not None


def _transliterated(text: str, runs: list[list[_Token]]) -> list[Candidate]:
    """Foreign names joined by a middle dot, trimmed to the segmenter's words at both ends."""
    spans = [match.span() for match in _DOTTED.finditer(text)] if re.search("[·•‧・]", text) else []
    if not spans:
        return []
    has_word = _jieba().has_word
    inside = {at: token for words in runs for token in words for at in range(token[2] + 1, token[3])}
    found = []
    for start, end in spans:
        if (token := inside.get(end)) and token[2] > start and has_word(token[0]):
            end = token[2]
        if (token := inside.get(start)) and token[3] < end and has_word(token[0]):
            start = token[3]
        form = text[start:end].strip("·•‧・")
        if len(form) > 2 and form == text[start:end] and re.search("[·•‧・]", form):
            found.append((start, end, "person", True))
    return found


def _joined(words: list[_Token], first: int) -> tuple[int, str] | None:
    """Index of the last word and type of a name that ends in a telling head: 三茂 + 铁路 + 股份 + 有限公司."""
    word, tag, start, _, known = words[first]
    named = tag.startswith(_NAME_TAGS) or (tag in ("n", "j") and not known)
    if word in ZH_FUNCTION or word in ZH_DULL or word in ZH_HEAD_TYPE or not is_han(word[0]):
        return None
    best: tuple[int, str] | None = None
    for index in range(first + 1, min(first + 5, len(words))):
        head, head_tag, _, end, _ = words[index]
        if end - start > 16 or not (head_tag[0] in "njb" or head_tag in ("vn", "zg", "v", "q", "k", "l")):
            break
        kind = ZH_HEAD_TYPE.get(head, "")
        if not kind and len(head) > 2 and head_tag[0] == "n":
            kind = ZH_HEAD_TYPE.get(head[-2:], "")
        near = index == first + 1 and len(word) > 1 and tag != "m" and (head in _PLACE_HEADS or head[-1:] == "站")
        if kind and (named or near) and not (head_tag in ("v", "q", "k") and not near):
            best = (index, kind)
        elif near:
            best = (index, "location")
        elif head_tag in ("v", "q", "k", "zg") or head_tag.startswith(("nr", "ns")) or head in ZH_DULL:
            break
    return best


def _judged(word: str, tag: str, known: bool, count: int, short: bool) -> tuple[str, bool] | None:
    """(type, strong) of a single word, None when it is no candidate."""
    if len(word) < 2 or word in ZH_DULL or not is_han(word[0]):
        return None
    if tag.startswith("nr"):
        surname = word[:2] in ZH_SURNAMES_TWO or word[0] in ZH_SURNAMES
        longest = 3 + (word[:2] in ZH_SURNAMES_TWO)
        if surname and len(word) <= longest and tag == "nr" and (not known or len(word) > 2):
            return "person", True
        if _SOUNDS_ONLY.fullmatch(word):
            return "other", True
        return "other", (not known and count > 1)
    if tag == "ns":
        return "location", known or count > 1
    if tag == "nt":
        return "organization", True
    if tag == "nz":
        return "other", True
    if tag in ("n", "j", "ng", "l") or (short and tag in ("vn", "an", "i", "s")):
        if not known:
            return ("other", count > 1) if word[-1] not in ZH_TRAIL and word[0] not in ZH_FUNCTION else None
        if short or count > 1:
            return ZH_HEAD_TYPE.get(word[-2:], "other") if len(word) > 3 else "other", False
    return None
