"""Names in Korean text, whose words carry particles."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from graphrag_mcp.names import lexicon as lex
from graphrag_mcp.text.spans import Candidate

_HANGUL = re.compile("[가-힣]{1,20}")
# After the name, with a blank between: 한빛 박물관.
_SECOND = frozenset("주식회사 대학교 박물관 재단 그룹 은행 공원 전쟁 사건".split())


class _Eojeol(NamedTuple):
    """A Korean word: `form` is without its particle, `marked` says whether there was one."""

    start: int
    end: int
    form: str
    marked: bool


def candidates(text: str, short: bool) -> list[Candidate]:
    """Names of a text with Hangul; `short`: take words seen once as well."""
    words = []
    for match in _HANGUL.finditer(text):
        form = match[0]
        particle = next((suffix for suffix in lex.JOSA if form.endswith(suffix) and len(form) > len(suffix) + 1), "")
        bare = form.removesuffix(particle)
        words.append(_Eojeol(match.start(), match.start() + len(bare), bare, bool(particle)))
    counts = Counter(word.form for word in words)
    found: list[Candidate] = []
    for at, word in enumerate(words):
        end, kind = _name(text, words, at)
        if kind:
            found.append((word.start, end, kind, True))
        elif word.form not in lex.KO_COMMON and word.form not in lex.KO_ROLES:
            often = short or counts[word.form] > 1
            if word.marked or (often and not word.form.endswith(lex.KO_ENDINGS)):
                found.append((word.start, word.end, "other", False))
    return found


def _name(text: str, words: list[_Eojeol], at: int) -> tuple[int, str]:
    """Where the name ends that begins with this word, and its type; "" for none."""
    word = words[at]
    form = word.form
    if form in lex.KO_PLACES:
        return word.end, "location"
    if form in lex.KO_COMMON:
        return word.end, ""
    following = words[at + 1] if at + 1 < len(words) and not word.marked else None
    if following and following.form in _SECOND and text[word.end : following.start] == " ":
        return following.end, lex.KO_HEADS[following.form]  # 한빛 박물관
    before = words[at - 1] if at else None
    if before and before.form in lex.KO_ROLES and text[before.end : word.start] == " ":
        return word.end, "person"  # 작가 이서연
    dull = form[-2:] in lex.KO_DULL and (len(form) < 4 or form[-2:] not in lex.KO_HEADS)
    if not dull and (kind := lex.head_type(lex.KO_HEADS, form, 2)):
        return word.end, kind
    named = len(form) == 3 and form[0] in lex.KO_SURNAMES and form[1] in lex.KO_GIVEN
    return word.end, "person" if named and (word.marked or len(words) < 3) else ""  # 김민수는
