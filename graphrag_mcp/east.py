"""Names in Japanese and Korean, whose words no blank and no capital tells: by the words and letters beside them.

Takes a text, gives candidates sorted by start, free of overlaps. A Japanese name changes script inside
(中村レイナ, さざなみ市) or is glued to its title; a Korean one carries particles. It knows no other texts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from graphrag_mcp.lexicon_east import (
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
)  # fmt: skip

Candidate = tuple[int, int, str, bool]
HAN = "々〇\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_JA_RUN = re.compile(f"(?P<kana>[ァ-ヺー]{{2,30}}(?:[・=＝][ァ-ヺー]{{1,30}})*)?(?P<kanji>[{HAN}]{{1,24}})?")
_JA_START = re.compile(f"[ァ-ヺー{HAN}]")
_HIRAGANA = re.compile("[ぁ-ゖ]{2,8}(?=$)")
_PARTICLE = re.compile("[はがをにでともへや]|から|まで|の")
_GIVEN_KANA = re.compile(
    f"([ぁ-ゖ]{{2,4}}?)(?=(?:さん|氏|先生|監督|ちゃん|くん|[はがをにのもと](?![ぁ-ゖ]{{3}})|[、。（「『 ]|[{HAN}]|$))"
)
# A kanji alone between kana, before a particle, a copula or the end. Endings of verbs are none of these.
_ALONE = re.compile(
    f"(?<![{HAN}ァ-ヺー])([{HAN}])(?=[はがをにでへともやの]|から|まで|より|だ|です|(?![ぁ-ゖァ-ヺー{HAN}]))"
)
_PARTICLES = "은는이가을를에의도로와과만"
_SYLLABLE = re.compile(f"(?![그이저나너내네제누뭐것수때더또안못몇왜])[가-힣][{_PARTICLES}]")  # those point, ask or deny
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
        yield start, run.end("kana"), "person" if title else _kana_kind(text, kana, run.end("kana")), True
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
    """Where the hiragana of a name begin that a single head follows: さざなみ|市; `start` when there are none."""
    found = _HIRAGANA.search(text, max(0, start - 8), start)
    if not found:
        return start
    begun = found.start()
    opening = begun == 0 or not ("ぁ" <= text[begun - 1] <= "ヺ" or re.match(f"[{HAN}]", text[begun - 1]))
    if opening:
        return begun
    cut = max((match.end() for match in _PARTICLE.finditer(text, begun, start)), default=start)
    return begun if cut == start else cut if start - cut > 1 else start


def _ja_kanji(text: str, start: int, end: int) -> Iterator[Candidate]:
    """Names in one run of kanji: cut at what leads, at prefectures, at titles; with the kana of a given name."""
    form = text[start:end]
    role = next((word for word in JA_ROLES if form.startswith(word) and len(form) > len(word) + 1), "")
    if role and _surname(form[len(role) :]):
        start += len(role)
        form = form[len(role) :]
    if place := _ADMIN.match(form):
        if form not in JA_DULL and form[: place.end()] not in JA_DULL:
            yield start, start + place.end(), "location", True
            start, form = start + place.end(), form[place.end() :]
    title = next((word for word in JA_TITLES if form.endswith(word) and len(form) > len(word) + 1), "")
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
        if (title or (not alone and (not glued or glued in _AFTER_NAME or text.startswith("さん", end)))) and len(
            bare
        ) > 1:
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
    return next((form[:size] for size in (3, 2, 1) if form[:size] in JA_SURNAMES and len(form) >= size), "")


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
    """The type that the last characters speak for; `before`: how many must stand before a head of one character."""
    for size in _HEAD_SIZES:
        kind = JA_HEADS.get(form[-size:], "") if len(form) >= size else ""
        if kind and len(form) - size >= (before if size == 1 else min(before, 1)):
            return "" if form in JA_DULL and before else kind
    return ""


# ---- Korean -------------------------------------------------------------------------------------
_HANGUL = re.compile("[가-힣]{1,20}")


def korean(text: str, short: bool) -> list[Candidate]:
    """Names of a text with Hangul; `short`: take words seen once as well."""
    words: list[tuple[int, int, str, bool]] = []  # start, end without particle, form, whether there was a particle
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
    return [(a, b, strong.get(text[a:b], kind), sure or text[a:b] in strong) for a, b, kind, sure in found]


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
        and after[2] in ("주식회사", "대학교", "박물관", "재단", "그룹", "은행", "공원", "전쟁", "사건")
    ):
        return index + 1, KO_HEADS[after[2]]
    if follows and after and after[2] in KO_TITLES and form[0] in KO_SURNAMES and len(form) < 5:
        return index, "person"
    led = before is not None and before[2] in KO_ROLES and not before[3] and text[before[1] : start] == " "
    if led and form[0] in KO_SURNAMES and 1 < len(form) < 5 and not _ko_head(form):
        return index, "person"
    if led and KO_FOREIGN & set(form + (after[2] if after else "")):
        return (
            index + 1 if follows and after and len(after[2]) > 1 and KO_FOREIGN & set(after[2]) else index
        ), "person"
    if kind := _ko_head(form):
        return index, kind
    named = len(form) == 3 and form[0] in KO_SURNAMES and form[1] in KO_GIVEN and form[2] in KO_GIVEN
    return index, "person" if named and (marked or len(words) < 3) else ""


def _ko_head(form: str) -> str:
    """The type that the last syllables speak for."""
    if form[-2:] in KO_DULL and (len(form) < 4 or form[-2:] not in KO_HEADS):
        return ""
    for size in (5, 4, 3, 2, 1):
        kind = KO_HEADS.get(form[-size:], "")
        if kind and len(form) - size >= (2 if size == 1 else 1) and (size > 1 or form[-1] not in "로리면동도구천호"):
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
