"""Names in Chinese, Japanese and Korean text.

Chinese words and their classes come from `rjieba`, loaded at the first Han character; its known
faults are repaired here. A Japanese name changes script inside (中村レイナ, さざなみ市) or is glued to its
title; a Korean one carries particles."""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter
from collections.abc import Iterator
from types import ModuleType

from graphrag_mcp.names import caseless
from graphrag_mcp.names.lexicon import (
    JA_ABSTRACT,
    JA_DULL,
    JA_HEADS,
    JA_PLACES,
    JA_ROLES,
    JA_SURNAMES,
    JA_TITLES,
    JA_TITLES_KANA,
    JOSA,
    KO_COMMON,
    KO_DULL,
    KO_ENDINGS,
    KO_FOREIGN,
    KO_GIVEN,
    KO_HEADS,
    KO_PLACES,
    KO_ROLES,
    KO_SURNAMES,
    KO_TITLES,
    ZH_DULL,
    ZH_FUNCTION,
    ZH_HEAD_TYPE,
    ZH_SOUNDS,
    ZH_SURNAMES,
    ZH_SURNAMES_TWO,
    ZH_TRAIL,
)
from graphrag_mcp.text.folding import SIMPLIFY
from graphrag_mcp.text.terms import stop_word

Candidate = tuple[int, int, str, bool]
HAN = "々〇\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_JA_RUN = re.compile(
    f"(?P<kana>[ァ-ヺー]{{2,30}}(?:[・=＝][ァ-ヺー]{{1,30}})*)?(?P<kanji>[{HAN}]{{1,24}})?"
)
_JA_START = re.compile(f"[ァ-ヺー{HAN}]")
_HIRAGANA = re.compile("[ぁ-ゖ]{2,8}(?=$)")
_PARTICLE = re.compile("[はがをにでともへや]|から|まで|の")
_GIVEN_KANA = re.compile(
    f"([ぁ-ゖ]{{2,4}}?)(?=(?:さん|氏|先生|監督|ちゃん|くん|[はがをにのもと](?![ぁ-ゖ]{{3}})|[、。（「『 ]|[{HAN}]|$))"
)
# A kanji alone between kana, before a particle, a copula or the end. Endings of verbs are none of
# these.
_ALONE = re.compile(
    f"(?<![{HAN}ァ-ヺー])([{HAN}])(?=[はがをにでへともやの]|から|まで|より|だ|です|(?![ぁ-ゖァ-ヺー{HAN}]))"
)
_PARTICLES = "은는이가을를에의도로와과만"
# those point, ask or deny
_SYLLABLE = re.compile(f"(?![그이저나너내네제누뭐것수때더또안못몇왜])[가-힣][{_PARTICLES}]")
_HEAD_SIZES = (5, 4, 3, 2, 1)
_ADMIN = re.compile(f"[{HAN}]{{2,3}}?[都道府県](?=[{HAN}]{{2}})")
_AFTER_NAME = tuple("はがをのともにへ、。（(「『 ")


def japanese(text: str) -> Iterator[Candidate]:
    """Names of a text that has kana."""
    at = 0
    while match := _JA_START.search(text, at):
        run = _JA_RUN.match(text, match.start())
        if run is None or run.end() == run.start():
            at = match.end()
            continue
        at = run.end()
        for found in _ja_run(text, run):
            at = max(at, found[1])
            yield found


def _ja_run(text: str, run: re.Match[str]) -> Iterator[Candidate]:
    """Names of katakana, kanji, or one after the other."""
    kana, kanji = run["kana"] or "", run["kanji"] or ""
    start, end = run.span()
    if not kanji:
        if len(kana) > 2 or kana in JA_PLACES:
            yield start, end, _kana_kind(text, kana, end), True
        return
    if kana:
        title = next((word for word in JA_TITLES if kanji.startswith(word)), "")
        kind = _head(kanji, 0) if not title or "株式会社" in kanji else ""
        if kind and len(kanji) <= 8 and kanji not in JA_DULL - JA_HEADS.keys():
            yield start, end, kind, True
            return
        yield (
            start,
            run.end("kana"),
            "person" if title else _kana_kind(text, kana, run.end("kana")),
            True,
        )
        start = run.end("kana")
    elif (begun := _before(text, start)) < start and (kind := JA_HEADS.get(kanji, "")):
        yield begun, end, kind, True
        return
    yield from _ja_kanji(text, start, end)


def _kana_kind(text: str, kana: str, end: int) -> str:
    if kana in JA_PLACES:
        return "location"
    called = text.startswith(("さん", "氏", "博士", "教授", "ちゃん", "くん", "監督", "選手"), end)
    return "person" if called or "・" in kana else "other"


def _before(text: str, start: int) -> int:
    """Where the hiragana of a name begin that a single head follows: さざなみ|市; `start` when there are
    none."""
    found = _HIRAGANA.search(text, max(0, start - 8), start)
    if not found:
        return start
    begun = found.start()
    opening = begun == 0 or not (
        "ぁ" <= text[begun - 1] <= "ヺ" or re.match(f"[{HAN}]", text[begun - 1])
    )
    if opening:
        return begun
    cut = max((match.end() for match in _PARTICLE.finditer(text, begun, start)), default=start)
    return begun if cut == start else cut if start - cut > 1 else start


def _ja_kanji(text: str, start: int, end: int) -> Iterator[Candidate]:
    """Names in one run of kanji: cut at what leads, at prefectures, at titles; with the kana of a
    given name."""
    form = text[start:end]
    role = next(
        (word for word in JA_ROLES if form.startswith(word) and len(form) > len(word) + 1), ""
    )
    if role and _surname(form[len(role) :]):
        start += len(role)
        form = form[len(role) :]
    if place := _ADMIN.match(form):
        if form not in JA_DULL and form[: place.end()] not in JA_DULL:
            yield start, start + place.end(), "location", True
            start, form = start + place.end(), form[place.end() :]
    title = next(
        (word for word in JA_TITLES if form.endswith(word) and len(form) > len(word) + 1), ""
    )
    bare = form[: len(form) - len(title)] if title else form
    surname = _surname(bare)
    glued = text[end : end + 1]
    if len(surname) == 1 and not title and (len(bare) == 2 or bare[-1] in JA_ABSTRACT):
        surname = ""  # 原因, 平均, 関係者
    if surname and len(bare) - len(surname) <= 3 and (not (kind := _head(bare, 2)) or title):
        if bare == surname and not title and (given := _given(text, end)):
            yield start, given, "person", True
            return
        alone = len(bare) == len(surname)
        if (
            title
            or (not alone and (not glued or glued in _AFTER_NAME or text.startswith("さん", end)))
        ) and len(bare) > 1:
            yield start, start + len(bare), "person", True
            return
        called = text.startswith(("さん", "先生", "くん", "ちゃん"), end)
        yield start, start + len(bare), "person" if called else "other", called
        return
    if title and len(bare) > 1:
        yield (
            start,
            start + len(bare),
            "person" if title in ("氏", "博士", "容疑者") else "other",
            title in ("氏", "博士"),
        )
        return
    if len(form) < 2 or form in JA_DULL and form not in JA_PLACES:
        return
    kind = "location" if form in JA_PLACES else _head(form, 2)
    yield start, start + len(form), kind or "other", bool(kind)


def _surname(form: str) -> str:
    return next(
        (form[:size] for size in (3, 2, 1) if form[:size] in JA_SURNAMES and len(form) >= size), ""
    )


def _given(text: str, end: int) -> int:
    """Where the given name in katakana or hiragana ends that follows a surname; 0 for none."""
    if kana := re.compile("[ァ-ヺー]{2,6}").match(text, end):
        return kana.end()
    if text.startswith(JA_TITLES_KANA, end):
        return 0  # 田中さんは
    found = _GIVEN_KANA.match(text, end)
    if not found or _PARTICLE.match(found[1]) or found[1].endswith(("から", "まで", "という")):
        return 0
    return found.end()


def _head(form: str, before: int) -> str:
    """The type that the last characters speak for; `before`: how many must stand before a head of
    one character."""
    for size in _HEAD_SIZES:
        kind = JA_HEADS.get(form[-size:], "") if len(form) >= size else ""
        if kind and len(form) - size >= (before if size == 1 else min(before, 1)):
            return "" if form in JA_DULL and before else kind
    return ""


# ---- Korean -------------------------------------------------------------------------------------
_HANGUL = re.compile("[가-힣]{1,20}")


def korean(text: str, short: bool) -> list[Candidate]:
    """Names of a text with Hangul; `short`: take words seen once as well."""
    words: list[
        tuple[int, int, str, bool]
    ] = []  # start, end without particle, form, whether there was a particle
    for match in _HANGUL.finditer(text):
        form = match[0]
        bare = _bare(form)
        words.append((match.start(), match.start() + len(bare), bare, len(bare) < len(form)))
    counts = Counter(form for _, _, form, _ in words)
    found: list[Candidate] = []
    strong: dict[str, str] = {}
    index = 0
    while index < len(words):
        last, kind = _ko_name(text, words, index)
        start, end, form, marked = words[index]
        if kind:
            found.append((start, words[last][1], kind, True))
            strong[text[start : words[last][1]]] = kind
            index = last + 1
            continue
        index += 1
        if len(form) < 2 or form in KO_COMMON or form in KO_ROLES:
            continue
        if marked or ((short or counts[form] > 1) and not form.endswith(KO_ENDINGS)):
            found.append((start, end, "other", False))
    return [
        (a, b, strong.get(text[a:b], kind), sure or text[a:b] in strong)
        for a, b, kind, sure in found
    ]


def _bare(form: str) -> str:
    """An eojeol without its particles."""
    if form in KO_PLACES or form in KO_COMMON or form.endswith(("하는", "되는", "있는", "없는")):
        return form
    particle = next((p for p in JOSA if form.endswith(p) and len(form) - len(p) >= 2), "")
    rest = form[: len(form) - len(particle)]
    single = len(particle) == 1 and particle in "도로만의이가"
    if single and KO_HEADS.get(form[-2:]) and len(form) > 3:
        return form
    return rest


def _ko_name(text: str, words: list[tuple[int, int, str, bool]], index: int) -> tuple[int, str]:
    """Index of the last word of the name that begins here, and its type; "" for none."""
    start, end, form, marked = words[index]
    after = words[index + 1] if index + 1 < len(words) else None
    before = words[index - 1] if index else None
    follows = after is not None and not marked and text[end : after[0]] == " "
    if form in KO_PLACES:
        return index, "location"
    if form in KO_COMMON or form in KO_ROLES or len(form) < 2:
        return index, ""
    if (
        follows
        and after
        and after[2]
        in ("주식회사", "대학교", "박물관", "재단", "그룹", "은행", "공원", "전쟁", "사건")
    ):
        return index + 1, KO_HEADS[after[2]]
    if follows and after and after[2] in KO_TITLES and form[0] in KO_SURNAMES and len(form) < 5:
        return index, "person"
    led = (
        before is not None
        and before[2] in KO_ROLES
        and not before[3]
        and text[before[1] : start] == " "
    )
    if led and form[0] in KO_SURNAMES and 1 < len(form) < 5 and not _ko_head(form):
        return index, "person"
    if led and KO_FOREIGN & set(form + (after[2] if after else "")):
        return (
            index + 1
            if follows and after and len(after[2]) > 1 and KO_FOREIGN & set(after[2])
            else index
        ), "person"
    if kind := _ko_head(form):
        return index, kind
    named = (
        len(form) == 3 and form[0] in KO_SURNAMES and form[1] in KO_GIVEN and form[2] in KO_GIVEN
    )
    return index, "person" if named and (marked or len(words) < 3) else ""


def _ko_head(form: str) -> str:
    """The type that the last syllables speak for."""
    if form[-2:] in KO_DULL and (len(form) < 4 or form[-2:] not in KO_HEADS):
        return ""
    for size in (5, 4, 3, 2, 1):
        kind = KO_HEADS.get(form[-size:], "")
        if (
            kind
            and len(form) - size >= (2 if size == 1 else 1)
            and (size > 1 or form[-1] not in "로리면동도구천호")
        ):
            return kind
    return ""


# ---- words of one character in questions --------------------------------------------------------


def single_kanji(text: str) -> list[str]:
    """弟 of 弟は誰ですか, whose pairs 弟は and は誰 need not stand in the text that speaks of a 弟."""
    return [match[1] for match in _ALONE.finditer(text)]


def other_particles(term: str) -> list[str]:
    """배가, 배를, ... for 배는. Of the syllable alone other words are full."""
    if not _SYLLABLE.fullmatch(term):
        return []
    return [term[0] + particle for particle in _PARTICLES if particle != term[1]]


_HAN_CHAR = re.compile(f"[{HAN}]")
_KANA = re.compile("[\u3041-\u3096]")
_RUN = re.compile(f"[{HAN}][{HAN}A-Za-z0-9·•‧・.-]*+")
_SOUND = "".join(sorted(ZH_SOUNDS))
_DOTTED = re.compile(
    f"[{_SOUND}]{{1,8}}(?:[·•‧・](?:[{_SOUND}]{{1,10}}|[{HAN}]{{1,3}}|[A-Z][A-Za-z.]{{0,20}}))+"
)
_SOUNDS_ONLY = re.compile(f"[{_SOUND}]+")
_LEAD = frozenset("与與和或及成出指在为為以于於由从從至到将將被把是有对對向经經称稱让讓令")
_LATIN_RUN = re.compile(
    r"(?<![A-Za-z0-9_.&-])[A-Za-zα-ωΑ-Ω](?:[A-Za-z0-9_.&'-]{0,40}[A-Za-z0-9+#])?(?: [A-Z][A-Za-z0-9_.&'-]{0,40}){0,4}"
)
_FENCE = re.compile("```")
_KATAKANA = re.compile("[ァ-ヺー]{2,30}(?:[・=＝][ァ-ヺー]{1,30})*")
# any script of this module and its kin
_FAR = re.compile("[\u0590-\u1dff\u2e80-\uffef\U00020000-\U0003ffff]")
_HANGUL_RUN = re.compile("[가-힣]")
# Before these heads any word may be the name: 固始/a 站.
_PLACE_HEADS = frozenset(
    "站 县 市 省 镇 乡 村 寺 庙 大学 学院 公司 集团 铁路 公路 路 街 桥 大桥 山 江 河 湖 岛 郡 区 州 府 城 战争 "
    "战役 之战 事件 县城 中学 小学 医院 银行 机场 港".split()
)
_NAME_TAGS = ("nr", "ns", "nt", "nz")
_NOUN = re.compile("n|zg").match
# ask, point, or stand in any text
_NO_THING = frozenset("何誰此其今特更既共主次常単急最為様谁这那哪人事时年月日")
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
            found += japanese(text)
        else:
            found += _chinese(text, short)
            found += (
                (m.start(), m.end(), "other", True)
                for m in _KATAKANA.finditer(text)
                if len(m[0]) > 2
            )
        if (n_han + n_kana) * 6 > len(text):
            found += _latin(text, short)
    elif _KANA.search(text) or _KATAKANA.search(text):
        found += japanese(text)
    if _HANGUL_RUN.search(text):
        found += korean(text, short)
    return found + caseless.candidates(text, short)


def alone(question: str) -> list[str]:
    """Chinese and Japanese words of one character in a question: in pairs with what stands beside
    them (狗吃, 弟は) they are not found where something else does (狗喜, 弟の)."""
    if question.isascii() or not _HAN_CHAR.search(question):
        return []
    found = single_kanji(question) if _KANA.search(question) else _single_nouns(question)
    words = dict.fromkeys(word.translate(SIMPLIFY) for word in found if word not in _NO_THING)
    return [word for word in words if not stop_word(word)]


def _latin(text: str, short: bool) -> Iterator[Candidate]:
    """Latin runs inside Chinese and Japanese: brands and terms; plain lower-case words only when
    what is written around blocks of code repeats them, for words of a programming language are in
    every block."""
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

# simplified form, tag, start, end, whether the word list has it
_Token = tuple[str, str, int, int, bool]


def _tokens(text: str) -> Iterator[list[_Token]]:
    """The words of each unbroken run that begins with Han, traditional characters read as
    simplified."""
    jieba = _jieba()
    has_word = jieba.has_word
    for run in _RUN.finditer(text):
        at, words = run.start(), []
        for word, tag in jieba.tag(run[0].translate(SIMPLIFY)):
            # asked only where it decides
            known = len(word) < 2 or tag[0] not in "njlz" or has_word(word)
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
    """Nouns of one character: neither pieces of a longer word that the word list lacks, nor the end
    of a name."""
    for run in _tokens(text):
        for at, (word, tag, start, end, _) in enumerate(run):
            if len(word) > 1 or word in ZH_FUNCTION or not _NOUN(tag):
                continue
            beside = [*run[max(at - 1, 0) : at], *run[at + 1 : at + 2]]
            piece = any(len(one[0]) == 1 and _NOUN(one[1]) for one in beside)
            if not piece and not (at and run[at - 1][1].startswith(_NAME_TAGS)):
                yield text[start:end]


def _repaired(words: list[_Token]) -> list[_Token]:
    """Puts together what the segmenter splits of a person's name, and cuts what it adds: 武田信|玄,
    赵鹏于."""
    has_word = _jieba().has_word
    out: list[_Token] = []
    for word, tag, start, end, known in words:
        if out and len(word) == 2 and out[-1][0] in ZH_SURNAMES_TWO and word[1] in ZH_TRAIL:
            out[-1] = (out[-1][0] + word[0], "nr", out[-1][2], end - 1, False)  # 司马 | 晏是
            continue
        if out and len(word) < 3:
            before, before_tag, at, _, _ = out[-1]
            surname = before in ZH_SURNAMES_TWO or (before in ZH_SURNAMES and len(before) == 1)
            half = (
                before[:2] in ZH_SURNAMES_TWO
                and len(before) == 3
                and before_tag.startswith("nr")
                and len(word) == 1
            )
            loose = tag in ("zg", "x", "ng", "g") and word not in ZH_FUNCTION
            if (
                (loose or tag.startswith("nr"))
                and is_han(word)
                and ((surname and before_tag[0] in "njx") or half)
            ):
                out[-1] = (before + word, "nr", at, end, False)
                continue
        if (
            out
            and len(out[-1][0]) == 1
            and out[-1][0] + word[0] in ZH_SURNAMES_TWO
            and tag.startswith("nr")
        ):
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
    """Are these two halves of one foreign name that the word list does not have: 罗迪 + 尼亚, 纳 +
    罗斯(海峡)?"""
    alone = (
        len(left[0]) == 1
        and left[3] == right[2]
        and left[1].startswith("nr")
        and right[1].startswith("nr")
    )
    if alone and left[0] not in ZH_SURNAMES:
        return 1 < len(right[0]) < 7 and _SOUNDS_ONLY.fullmatch(left[0] + right[0]) is not None
    if (
        left[3] != right[2]
        or left[1][0] not in "njxz"
        or len(left[0]) < 2
        or len(left[0] + right[0]) > 7
    ):
        return False
    if (left[4] and right[4] and len(right[0]) > 1) or not right[1].startswith(
        ("n", "j", "x", "zg")
    ):
        return False
    foreign = "nrt" in (left[1], right[1]) or left[1] in ("nr", "ns") and not left[4]
    return foreign and _SOUNDS_ONLY.fullmatch(left[0] + right[0]) is not None


def _transliterated(text: str, runs: list[list[_Token]]) -> list[Candidate]:
    """Foreign names joined by a middle dot, trimmed to the segmenter's words at both ends."""
    spans = [match.span() for match in _DOTTED.finditer(text)] if re.search("[·•‧・]", text) else []
    if not spans:
        return []
    has_word = _jieba().has_word
    inside = {
        at: token for words in runs for token in words for at in range(token[2] + 1, token[3])
    }
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
        if end - start > 16 or not (
            head_tag[0] in "njb" or head_tag in ("vn", "zg", "v", "q", "k", "l")
        ):
            break
        kind = ZH_HEAD_TYPE.get(head, "")
        if not kind and len(head) > 2 and head_tag[0] == "n":
            kind = ZH_HEAD_TYPE.get(head[-2:], "")
        near = (
            index == first + 1
            and len(word) > 1
            and tag != "m"
            and (head in _PLACE_HEADS or head[-1:] == "站")
        )
        if kind and (named or near) and not (head_tag in ("v", "q", "k") and not near):
            best = (index, kind)
        elif near:
            best = (index, "location")
        elif (
            head_tag in ("v", "q", "k", "zg")
            or head_tag.startswith(("nr", "ns"))
            or head in ZH_DULL
        ):
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
            if word[-1] not in ZH_TRAIL and word[0] not in ZH_FUNCTION:
                return ("other", count > 1)
            return None
        if short or count > 1:
            return ZH_HEAD_TYPE.get(word[-2:], "other") if len(word) > 3 else "other", False
    return None
