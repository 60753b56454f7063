"""Names in Chinese, Japanese and Korean text.

Chinese words and their classes come from `rjieba`, loaded at the first Han character; its known
faults are repaired here. A Japanese name changes script inside (中村レイナ, さざなみ市) or is glued to its
title; a Korean one carries particles."""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import NamedTuple

from graphrag_mcp.names import lexicon as lex
from graphrag_mcp.text.prose import fences
from graphrag_mcp.text.spans import Candidate
from graphrag_mcp.text.terms import SIMPLIFY, stop_word

HAN = "々〇\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_HAN_CHAR, _HANGUL_CHAR = re.compile(f"[{HAN}]"), re.compile("[가-힣]")
_KANA = re.compile("[\u3041-\u3096]")
_KATAKANA = re.compile("[ァ-ヺー]{2,30}(?:[・=＝][ァ-ヺー]{1,30})*")
# ask, point, or stand in any text
_NO_THING = frozenset("何誰此其今特更既共主次常単急最為様谁这那哪人事时年月日")


def is_han(ch: str) -> bool:
    return _HAN_CHAR.match(ch) is not None


def candidates(text: str, short: bool) -> list[Candidate]:
    """All candidates for names in Chinese, Japanese and Korean. With `short`, as for a question,
    words that occur once are candidates too."""
    found: list[Candidate] = []
    n_han, n_kana = len(_HAN_CHAR.findall(text)), len(_KANA.findall(text))
    if n_kana * 12 > n_han or (not n_han and _KATAKANA.search(text)):
        japanese = _japanese(text)
        # A word of a document that nothing types is not certain: katakana spell many words.
        found += (
            (start, end, kind, sure and (short or kind != "other"))
            for start, end, kind, sure in japanese
        )
    elif n_han:
        found += _chinese(text, short)
        katakana = (match.span() for match in _KATAKANA.finditer(text) if len(match[0]) > 2)
        found += ((*span, "other", short) for span in katakana)
    if n_han and (n_han + n_kana) * 6 > len(text):
        found += _latin(text, short)
    if _HANGUL_CHAR.search(text):
        found += _korean(text, short)
    return found


_LATIN_RUN = re.compile(
    r"(?<![A-Za-z0-9_.&-])(?<![A-Za-z0-9]@)(?![A-Za-z0-9_.+-]{1,60}@)[A-Za-zα-ωΑ-Ω](?:(?:[A-Za-z0-9_.&'-]|(?<=[A-Z])·(?=[A-Z])){0,40}[A-Za-z0-9+#])?(?: [A-Z][A-Za-z0-9_.&'-]{0,40}){0,4}"
)


def _latin(text: str, short: bool) -> Iterator[Candidate]:
    """Latin runs inside Chinese and Japanese: brands and terms; plain lower-case words only when
    what is written around blocks of code repeats them, for words of a programming language are in
    every block."""
    spans = [match.span() for match in _LATIN_RUN.finditer(text) if len(match[0]) > 1]
    blocks = fences(text)
    counts = Counter(text[start:end] for start, end in spans if bisect(blocks, start) % 2 == 0)
    for start, end in spans:
        form = text[start:end]
        plain = form.isascii() and form.isalpha() and form.islower()
        if not plain and not form.startswith("zh-"):
            yield start, end, "other", True
        elif plain and len(form) > 3 and (short or counts[form] > 1):
            yield start, end, "other", False


# ---- words of one character in questions --------------------------------------------------------

# A kanji alone between kana, before a particle, a copula or the end. Endings of verbs are none of
# these.
_ALONE = re.compile(
    f"(?<![{HAN}ァ-ヺー])([{HAN}])(?=[はがをにでへともやの]|から|まで|より|だ|です|(?![ぁ-ゖァ-ヺー{HAN}]))"
)
_PARTICLES = "은는이가을를에의도로와과만"
# those point, ask or deny
_SYLLABLE = re.compile(f"(?![그이저나너내네제누뭐것수때더또안못몇왜])[가-힣][{_PARTICLES}]")


def alone(question: str) -> list[str]:
    """Words of one character in a Chinese or Japanese question. A search by pairs of characters
    (狗吃, 弟は) does not find them beside other characters (狗喜, 弟の)."""
    if not _HAN_CHAR.search(question):
        return []
    japanese = _KANA.search(question)
    found = _ALONE.findall(question) if japanese else _single_nouns(question)
    words = dict.fromkeys(word.translate(SIMPLIFY) for word in found if word not in _NO_THING)
    return [word for word in words if not stop_word(word)]


def other_particles(term: str) -> list[str]:
    """배가, 배를, ... for 배는. Of the syllable alone other words are full."""
    if not _SYLLABLE.fullmatch(term):
        return []
    return [term[0] + particle for particle in _PARTICLES if particle != term[1]]


# ---- Japanese -----------------------------------------------------------------------------------

_JA_RUN = re.compile(
    f"(?P<kana>[ァ-ヺー]{{2,30}}(?:[・=＝][ァ-ヺー]{{1,30}})*)(?P<tail>[{HAN}]{{1,24}})?|(?P<kanji>[{HAN}]{{1,24}})"
)
_HIRAGANA = re.compile("[ぁ-ゖ]{2,8}(?=$)")
_PARTICLE = re.compile("[はがをにでともへや]|から|まで|の")
_GIVEN_KATAKANA = re.compile("[ァ-ヺー]{2,6}")
_GIVEN_HIRAGANA = re.compile(
    f"([ぁ-ゖ]{{2,4}}?)(?=(?:さん|氏|先生|監督|ちゃん|くん|[はがをにのもと](?![ぁ-ゖ]{{3}})|[、。（「『 ]|[{HAN}]|$))"
)
_CALLED = ("さん", "氏", "博士", "教授", "先生", "ちゃん", "くん", "監督", "選手")


def _japanese(text: str) -> Iterator[Candidate]:
    """Names of a text that has kana."""
    at = 0
    while run := _JA_RUN.search(text, at):
        at = run.end()
        for found in _ja_katakana(text, run) if run["kana"] else _ja_kanji(text, *run.span()):
            at = max(at, found[1])
            yield found


def _ja_katakana(text: str, run: re.Match[str]) -> Iterator[Candidate]:
    """A name in katakana, alone or with kanji behind it."""
    kana, tail, end = run["kana"], run["tail"] or "", run.end("kana")
    kind = "location" if kana in lex.JA_PLACES else "other"
    if "・" in kana or text.startswith(_CALLED, end):
        kind = "person"  # レオ・ベルク, ベルク博士
    if not tail:
        if len(kana) > 2:
            yield run.start(), end, kind, True
        return
    if any(tail.startswith(title) for title in lex.JA_TITLES):
        yield run.start(), end, "person", True  # ベルク教授
    elif head := _head(lex.JA_HEADS, tail, 0):
        yield run.start(), run.end(), head, True  # ヤマト電機
        return
    else:
        yield run.start(), end, kind, True
    yield from _ja_kanji(text, end, run.end())


def _ja_kanji(text: str, start: int, end: int) -> Iterator[Candidate]:
    """The name in one run of kanji, with the kana of a name that begins or ends in them."""
    form = text[start:end]
    if (begun := _ja_hiragana(text, start)) < start and form in lex.JA_HEADS:
        yield begun, end, lex.JA_HEADS[form], True  # さざなみ市
        return
    title = next(
        (suffix for suffix in lex.JA_TITLES if form.endswith(suffix) and len(form) > len(suffix)),
        "",
    )
    bare = form.removesuffix(title)
    surname = next((bare[:size] for size in (3, 2) if bare[:size] in lex.JA_SURNAMES), "")
    if surname and len(bare) - len(surname) <= 3 and (title or not _head(lex.JA_HEADS, bare, 2)):
        given_end = _ja_given(text, end) if bare == surname and not title else 0
        if given_end:
            yield start, given_end, "person", True  # 中村レイナ
        elif title or bare != surname:
            yield start, start + len(bare), "person", True  # 小野寺健一, 田中氏
        else:
            called = text.startswith(_CALLED, end)
            yield start, end, "person" if called else "other", called  # 田中さん
    elif len(form) > 1 and form not in lex.JA_DULL:
        kind = _head(lex.JA_HEADS, form, 2)
        yield start, end, kind or "other", bool(kind)  # 白鷺大学


def _ja_hiragana(text: str, start: int) -> int:
    """Where the hiragana of a name begin that a head follows: behind the last particle."""
    found = _HIRAGANA.search(text, max(0, start - 8), start)
    if not found:
        return start
    ends = (match.end() for match in _PARTICLE.finditer(text, found.start(), start))
    begun = max(ends, default=found.start())
    return begun if start - begun > 1 else start


def _ja_given(text: str, end: int) -> int:
    """Where the given name in kana ends that follows a surname; 0 for none."""
    if katakana := _GIVEN_KATAKANA.match(text, end):
        return katakana.end()
    if text.startswith(lex.JA_TITLES_KANA, end):
        return 0  # 田中さんは
    found = _GIVEN_HIRAGANA.match(text, end)
    return found.end() if found and not _PARTICLE.match(found[1]) else 0


def _head(heads: Mapping[str, str], form: str, before: int) -> str:
    """The type that the last characters speak for, of which one must follow `before` others."""
    for size in (5, 4, 3, 2, 1):
        kind = heads.get(form[-size:], "")
        if kind and len(form) - size >= (before if size == 1 else min(before, 1)):
            return kind
    return ""


# ---- Korean -------------------------------------------------------------------------------------

_HANGUL = re.compile("[가-힣]{1,20}")
# After the name, with a blank between: 한빛 박물관.
_KO_SECOND = frozenset("주식회사 대학교 박물관 재단 그룹 은행 공원 전쟁 사건".split())


class _Eojeol(NamedTuple):
    """A Korean word: `form` is without its particle, `marked` says whether there was one."""

    start: int
    end: int
    form: str
    marked: bool


def _korean(text: str, short: bool) -> list[Candidate]:
    """Names of a text with Hangul; `short`: take words seen once as well."""
    words = []
    for match in _HANGUL.finditer(text):
        form = match[0]
        particle = next(
            (
                suffix
                for suffix in lex.JOSA
                if form.endswith(suffix) and len(form) > len(suffix) + 1
            ),
            "",
        )
        bare = form.removesuffix(particle)
        words.append(_Eojeol(match.start(), match.start() + len(bare), bare, bool(particle)))
    counts = Counter(word.form for word in words)
    found: list[Candidate] = []
    for at, word in enumerate(words):
        end, kind = _ko_name(text, words, at)
        if kind:
            found.append((word.start, end, kind, True))
        elif word.form not in lex.KO_COMMON and word.form not in lex.KO_ROLES:
            often = short or counts[word.form] > 1
            if word.marked or (often and not word.form.endswith(lex.KO_ENDINGS)):
                found.append((word.start, word.end, "other", False))
    return found


def _ko_name(text: str, words: list[_Eojeol], at: int) -> tuple[int, str]:
    """Where the name ends that begins with this word, and its type; "" for none."""
    word = words[at]
    form = word.form
    if form in lex.KO_PLACES:
        return word.end, "location"
    if form in lex.KO_COMMON:
        return word.end, ""
    following = words[at + 1] if at + 1 < len(words) and not word.marked else None
    if following and following.form in _KO_SECOND and text[word.end : following.start] == " ":
        return following.end, lex.KO_HEADS[following.form]  # 한빛 박물관
    before = words[at - 1] if at else None
    if before and before.form in lex.KO_ROLES and text[before.end : word.start] == " ":
        return word.end, "person"  # 작가 이서연
    dull = form[-2:] in lex.KO_DULL and (len(form) < 4 or form[-2:] not in lex.KO_HEADS)
    if not dull and (kind := _head(lex.KO_HEADS, form, 2)):
        return word.end, kind
    named = len(form) == 3 and form[0] in lex.KO_SURNAMES and form[1] in lex.KO_GIVEN
    return word.end, "person" if named and (word.marked or len(words) < 3) else ""  # 김민수는


# ---- Chinese ------------------------------------------------------------------------------------

_RUN = re.compile(f"[{HAN}][{HAN}A-Za-z0-9·•‧・.-]*+")
_DOT = re.compile("[·•‧・]")
_SOUND = "".join(sorted(lex.ZH_SOUNDS))
_SOUNDS_ONLY = re.compile(f"[{_SOUND}]+")
_DOTTED = re.compile(
    f"[{_SOUND}]{{1,8}}(?:[·•‧・](?:[{_SOUND}]{{1,10}}|[{HAN}]{{1,3}}|[A-Z][A-Za-z.]{{0,20}}))+"
)
_LEAD = frozenset("与與和或及成出指在為为以于於由从從至到将將被把是有对對向经經称稱让讓令")
# Before these heads any word may be the name: 固始/a 站.
_NAME_TAGS = ("nr", "ns", "nt", "nz")
_NOUN = re.compile("n|zg").match
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


def _chinese(text: str, short: bool) -> list[Candidate]:
    runs = [_repaired(words) for words in _tokens(text)]
    counts = Counter(token.word for words in runs for token in words)
    found = _dotted(text, runs) if _DOT.search(text) else []
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


def _single_nouns(text: str) -> Iterator[str]:
    """Nouns of one character: no pieces of a longer unknown word, no end of a name."""
    for run in _tokens(text):
        for at, token in enumerate(run):
            if len(token.word) > 1 or token.word in lex.ZH_FUNCTION or not _NOUN(token.tag):
                continue
            beside = [*run[max(at - 1, 0) : at], *run[at + 1 : at + 2]]
            piece = any(len(neighbour.word) == 1 and _NOUN(neighbour.tag) for neighbour in beside)
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
        if out and last.end == start and last.word + word in lex.ZH_KNOWN:
            out[-1] = _Token(last.word + word, "nz", last.start, end, True)  # 树莓|派
            continue
        surname = last.word in lex.ZH_SURNAMES_TWO or last.word in lex.ZH_SURNAMES
        half = last.word[:2] in lex.ZH_SURNAMES_TWO and len(word) == 1
        begun = half or (surname and last.tag[0] in "njx")
        if begun and len(word) < 3 and loose and is_han(word):
            out[-1] = _Token(last.word + word, "nr", last.start, end, False)  # 武田信|玄
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
    if left.end != right.start or not _SOUNDS_ONLY.fullmatch(left.word + right.word):
        return False
    if len(left.word) == 1 and left.tag.startswith("nr"):
        return len(right.word) > 1
    if (left.known and right.known and len(right.word) > 1) or right.tag[0] not in "njxz":
        return False
    return "nrt" in (left.tag, right.tag) or not left.known


def _dotted(text: str, runs: list[list[_Token]]) -> list[Candidate]:
    """Foreign names joined by a middle dot, trimmed to the segmenter's words at both ends."""
    has_word = _jieba().has_word
    inside = {
        at: token for words in runs for token in words for at in range(token.start + 1, token.end)
    }
    found = []
    for start, end in [match.span() for match in _DOTTED.finditer(text)]:
        if (token := inside.get(end)) and has_word(token.word):
            end = token.start
        if (token := inside.get(start)) and has_word(token.word):
            start = token.end
        if start < end and _DOT.search(text, start + 1, end - 1):
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
    word, tag, _, _, known = words[first]
    named = tag in ("ns", "nt", "nr", "nrt") or (not known and last == first + 1)
    before = words[first - 1] if first else None
    return named and (before is None or before.tag[0] not in "njz")


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
        begins = begins and not (before and before.tag == "v" and word[0] in _LEAD)  # 存在于布隆
        acts = words[at + 1 : at + 2] and words[at + 1].tag[0] in "vd"
        noun = len(word) == 3 and _jieba().has_word(word[:2]) and not _SOUNDS_ONLY.fullmatch(word)
        long = (len(word) > 2 and not noun) or bool(acts)  # not 梅雨季
        return begins and long and word[-1] not in lex.ZH_HEAD_TYPE
    if tag == "nt":
        headed = any(word[-size:] in lex.ZH_HEAD_TYPE for size in (1, 2, 3))
        return len(word) > 2 and headed and not (at and words[at - 1].tag[0] in "njmq")
    spelled = len(word) > 2 and _SOUNDS_ONLY.fullmatch(word)
    of_place = at > 1 and words[at - 2].tag == "ns"  # 西班牙的巴塞罗那
    if at and words[at - 1].tag[0] in "umq" and not (spelled or of_place):
        return False  # 导电的炭黑, 四个广角
    wide = len(word) == 2 and word[0] in lex.ZH_WIDE and word[1] in lex.ZH_HEAD_TYPE  # 海港, 新村
    return known and not wide and word[-1] != "人"


def _judged(token: _Token, count: int, short: bool) -> tuple[str, bool] | None:
    """(type, strong) of a single word, None when it is no candidate."""
    word, tag, _, _, known = token
    if len(word) < 2 or word in lex.ZH_DULL or not is_han(word[0]):
        return None
    if word in lex.ZH_KNOWN:
        return lex.ZH_KNOWN[word], True
    if tag.startswith("nr"):
        double = word[:2] in lex.ZH_SURNAMES_TWO
        surname = double or word[0] in lex.ZH_SURNAMES
        if surname and len(word) <= 3 + double and tag == "nr" and (not known or len(word) > 2):
            return "person", True
        return "other", _SOUNDS_ONLY.fullmatch(word) is not None or (not known and count > 1)
    if tag == "ns":
        return "location", known or count > 1
    if tag in ("nt", "nz"):
        return "organization" if tag == "nt" else "other", True
    if tag in ("n", "j", "ng", "l") or (short and tag in ("vn", "an", "i", "s")):
        if not known:
            whole = word[-1] not in lex.ZH_TRAIL and word[0] not in lex.ZH_FUNCTION
            return ("other", count > 1) if whole else None
        if short or count > 1:
            return lex.ZH_HEAD_TYPE.get(word[-2:], "other") if len(word) > 3 else "other", False
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
