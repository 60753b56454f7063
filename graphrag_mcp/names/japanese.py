"""Names in Japanese text: a name changes script inside (中村レイナ, さざなみ市) or is glued to its title."""

from __future__ import annotations

import re
from collections.abc import Iterator

from graphrag_mcp.names import lexicon as lex
from graphrag_mcp.text.spans import Candidate

_RUN = re.compile(
    f"(?P<kana>[ァ-ヺー]{{2,30}}(?:[・=＝][ァ-ヺー]{{1,30}})*)(?P<tail>[{lex.HAN}]{{1,24}})?|(?P<kanji>[{lex.HAN}]{{1,24}})"
)
_HIRAGANA = re.compile("[ぁ-ゖ]{2,8}(?=$)")
_PARTICLE = re.compile("[はがをにでともへや]|から|まで|の")
_GIVEN_KATAKANA = re.compile("[ァ-ヺー]{2,6}")
_GIVEN_HIRAGANA = re.compile(
    f"([ぁ-ゖ]{{2,4}}?)(?=(?:さん|氏|先生|監督|ちゃん|くん|[はがをにのもと](?![ぁ-ゖ]{{3}})|[、。（「『 ]|[{lex.HAN}]|$))"
)
_CALLED = ("さん", "氏", "博士", "教授", "先生", "ちゃん", "くん", "監督", "選手")


def candidates(text: str) -> Iterator[Candidate]:
    """Names of a text that has kana."""
    at = 0
    while run := _RUN.search(text, at):
        at = run.end()
        for found in _katakana(text, run) if run["kana"] else _kanji(text, *run.span()):
            at = max(at, found[1])
            yield found


def _katakana(text: str, run: re.Match[str]) -> Iterator[Candidate]:
    """A name in katakana, alone or with kanji behind it."""
    kana, tail, end = run["kana"], run["tail"] or "", run.end("kana")
    is_person = "・" in kana or text.startswith(_CALLED, end)  # レオ・ベルク, ベルク博士
    kind = "person" if is_person else "other"
    if not tail:
        if len(kana) > 2:
            yield run.start(), end, kind, True
        return
    if any(tail.startswith(title) for title in lex.JA_TITLES):
        yield run.start(), end, "person", True  # ベルク教授
    elif head := lex.head_type(lex.JA_HEADS, tail, 0):
        yield run.start(), run.end(), head, True  # ヤマト電機
        return
    else:
        yield run.start(), end, kind, True
    yield from _kanji(text, end, run.end())


def _kanji(text: str, start: int, end: int) -> Iterator[Candidate]:
    """The name in one run of kanji, with the kana of a name that begins or ends in them."""
    form = text[start:end]
    if (begun := _hiragana(text, start)) < start and form in lex.JA_HEADS:
        yield begun, end, lex.JA_HEADS[form], True  # さざなみ市
        return
    title = next((suffix for suffix in lex.JA_TITLES if form.endswith(suffix) and len(form) > len(suffix)), "")
    bare = form.removesuffix(title)
    surname = next((bare[:size] for size in (3, 2) if bare[:size] in lex.JA_SURNAMES), "")
    if surname and len(bare) - len(surname) <= 3 and (title or not lex.head_type(lex.JA_HEADS, bare, 2)):
        given_end = _given(text, end) if bare == surname and not title else 0
        if given_end:
            yield start, given_end, "person", True  # 中村レイナ
        elif title or bare != surname:
            yield start, start + len(bare), "person", True  # 小野寺健一, 田中氏
        else:
            called = text.startswith(_CALLED, end)
            yield start, end, "person" if called else "other", called  # 田中さん
    elif len(form) > 1 and form not in lex.JA_DULL:
        kind = lex.head_type(lex.JA_HEADS, form, 2)
        yield start, end, kind or "other", bool(kind)  # 白鷺大学


def _hiragana(text: str, start: int) -> int:
    """Where the hiragana of a name begin that a head follows: behind the last particle."""
    found = _HIRAGANA.search(text, max(0, start - 8), start)
    if not found:
        return start
    ends = (match.end() for match in _PARTICLE.finditer(text, found.start(), start))
    begun = max(ends, default=found.start())
    return begun if start - begun > 1 else start


def _given(text: str, end: int) -> int:
    """Where the given name in kana ends that follows a surname; 0 for none."""
    if katakana := _GIVEN_KATAKANA.match(text, end):
        return katakana.end()
    if text.startswith(lex.JA_TITLES_KANA, end):
        return 0  # 田中さんは
    found = _GIVEN_HIRAGANA.match(text, end)
    return found.end() if found and not _PARTICLE.match(found[1]) else 0
