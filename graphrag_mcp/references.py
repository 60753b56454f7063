"""References as models write them: `[Data: Entities (1, 4); Relationships (3)]` and what they make of it.

Takes a text; gives every reference in it as numbers by group, whatever brackets, punctuation, spelling or language of
the group names were used, and puts another text in its place. Linear in the length of the text. Knows no table: what
a number stands for is the caller's.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

__all__ = ["Cited", "cited", "replace_references"]

LONGEST = 1500  # characters of one reference
RANGE = 5  # numbers that a range may stand for; of a longer one the first

_DATA = "data|daten|données|donnees|datos|dati|dados|данные|数据来源|数据|數據|资料|資料|データ|参照|데이터"
_GROUPS = {
    "Entities": "entity entities entität entitäten entitaet entitaeten entité entités entite entites entidad entidades "
    "entità entidade nodes 实体 實體 実体 エンティティ エンティティー 개체 엔티티 엔터티",
    "Relationships": "relationship relationships relation relations rel rels edges beziehung beziehungen relación "
    "relaciones relazione relazioni relação relações 关系 關係 関係 関係性 リレーションシップ リレーション 관계",
    "Sources": "source sources quelle quellen fuente fuentes fonte fonti fontes text texts 来源 來源 源文本 文本单元 "
    "文本單元 原文 出典 情報源 ソース 출처",
    "Reports": "report reports bericht berichte berichten rapport rapports informe informes reporte reportes 报告 報告 "
    "報告書 社区报告 レポート 보고서",
    "Claims": "claim claims covariate covariates behauptung behauptungen affirmation affirmations allégation "
    "allégations revendication revendications afirmación afirmaciones declaración declaraciones reclamación "
    "reclamaciones 声明 聲明 主张 主張 断言 论断 クレーム 주장",
}


def _fold(word: str) -> str:
    plain = unicodedata.normalize("NFKD", word.casefold())
    return "".join(ch for ch in plain if not unicodedata.combining(ch))


_GROUP_OF = {_fold(word): group for group, words in _GROUPS.items() for word in words.split()}
_DENSE = sorted((word for word in _GROUP_OF if word[0] > "\u2e80"), key=len, reverse=True)  # no spaces around them
_NAMES = "|".join(sorted((word for words in _GROUPS.values() for word in words.split()), key=len, reverse=True))
_BEGIN = re.compile(
    rf"[\[【［〔{{（(]{{1,2}}\s*(?:{_DATA})\s*[:：]|"
    rf"[\[【［〔]{{1,2}}\s*(?:{_NAMES})"
    r"(?:\s*(?:ids?|nos?\.?|nr\.?))?\s*[:：]?\s*[(（\[#]?\s*#?\d",
    re.IGNORECASE,
)
_LOOSE = re.compile(r"[\[【［〔{（(]+[^.。!！?？\n\[\]]{0,200}")
_OPEN, _CLOSE = "[【［〔{（(", "]】］〕}）)"
_ROUND = "（(）)"
_BRACKETS = re.compile(r"[\[【［〔{（(\]】］〕}）)\n]")
_TOKEN = re.compile(r"[0-9a-f]{16,}|(\d{1,9})(?:\s*[-–—−~～〜至到]\s*#?(\d{1,9}))?|([^\W\d_]+)|(\+)")


@dataclass(slots=True)
class Cited:
    """Numbers by group, each once, in order; `more` holds the groups that said there were more."""

    numbers: dict[str, list[int]] = field(default_factory=dict)
    more: set[str] = field(default_factory=set)
    strange: int = 0  # numbers of a group that nobody knows


def cited(text: str) -> list[Cited]:
    """All references of a text, in order."""
    found: list[Cited] = []

    def keep(one: Cited) -> str:
        found.append(one)
        return ""

    replace_references(text, keep)
    return found


def replace_references(text: str, write: Callable[[Cited], str]) -> str:
    """The text with each reference replaced by what `write` makes of it; what reads as one but holds no number goes.

    The new one stands after the full stop of its sentence, one blank before it, where the model put it before.
    """
    parts: list[str] = []
    at = 0
    while begin := _BEGIN.search(text, at):
        end = _end(text, begin.start())
        made = write(_read(text[begin.start() : end]))
        before = text[at : begin.start()].rstrip(" \t\u3000")
        stop = _STOP.match(text, end)
        if stop and not _STOPPED.search(before[-3:]):
            before, end = before + stop[1], stop.end()
        elif stop:
            end = stop.end()
        last = before or "".join(parts[-3:])
        blank = " " if last and not last[-1].isspace() else ""
        parts += (before, blank + made if made else "")
        at = end
        if made and text[at : at + 1] not in _NEXT:
            parts.append(" ")
    parts.append(text[at:])
    return "".join(parts)


_STOP = re.compile(r"[ \t]*([.!?]+(?![\w.])|[。．！？]+)")
_NEXT = ("", *" \n\t,;:.!?)，；：、。）")  # what may follow a reference at once
_STOPPED = re.compile(r"[.。．!！?？][\"'”’»)）」』]*$")


def _end(text: str, begin: int) -> int:
    """Where the reference that begins here ends: at its own bracket, which also closes round ones left open."""
    depth: list[str] = []
    last = begin + 1
    for match in _BRACKETS.finditer(text, begin, begin + LONGEST):
        sign = match[0]
        if len(depth) > 4 or text.startswith("\n\n", match.start()):
            break
        if sign == "\n":
            continue
        if sign in _OPEN:
            depth.append(sign)
            continue
        if sign not in _ROUND:
            while depth and depth[-1] in _ROUND and any(one not in _ROUND for one in depth):
                depth.pop()
        elif depth and depth[-1] not in _ROUND:
            continue  # a round one too many
        last = match.end()
        if depth:
            depth.pop()
        if not depth:
            return last
    return last if last > begin + 1 else _first_line(text, begin)


def _first_line(text: str, begin: int) -> int:
    """The end of a reference without any closing bracket: as far as numbers, names of groups and commas go."""
    match = _LOOSE.match(text, begin)
    return match.end() if match else begin + 1


def _read(reference: str) -> Cited:
    found = Cited()
    group = ""
    for first, last, word, plus in _TOKEN.findall(reference):
        if first:
            numbers = [int(first)]
            if last and int(first) < int(last):
                numbers = list(range(int(first), min(int(last), int(first) + RANGE - 1) + 1))
                if int(last) > numbers[-1]:
                    found.more.add(group)
            elif last:
                numbers.append(int(last))
            if not group:
                found.strange += len(numbers)
                continue
            known = found.numbers.setdefault(group, [])
            known += [number for number in numbers if number not in known[-200:]]
        elif plus:
            found.more.add(group)
        elif word:
            group = _group(word, group)
        else:  # an id of the store, which no model was shown
            found.strange += 1
    found.more.discard("")
    return found


_ASIDE = frozenset("more mehr plus mas weitere autres id ids no nos nr and und et y e u ja och et data daten".split())


def _group(word: str, current: str) -> str:
    """The group that a word names; a word between numbers that names none leaves the group as it is."""
    named, aside = _named(word)
    return named or (current if aside else "")


@lru_cache(maxsize=1 << 10)
def _named(word: str) -> tuple[str, bool]:
    """The group that a word names, "" for none; and whether it may stand between numbers."""
    folded = _fold(word)
    if folded in _GROUP_OF:
        return _GROUP_OF[folded], False
    dense = next((one for one in _DENSE if folded.startswith(one) or folded.endswith(one)), "")
    return (_GROUP_OF[dense] if dense else ""), folded in _ASIDE or word[0] > "\u2e80"
