"""Ids inside prompts, and the references of an answer checked against them.

A stored id such as t33 depends on the history of an index; a prompt may not, or its reply would not
be found in the cache. So the rows of a prompt are numbered 1..n (t1, t2, e1, ...), and the
references of the reply (`[Data: Entities (1, 4)]`, in whatever brackets, spelling or language) are
mapped back: what the prompt did not hold is removed and reported."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from graphrag_mcp.packing.budget import PER_GROUP, Item

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
    "Reports": "report reports community communities bericht berichte berichten rapport rapports informe informes reporte reportes 报告 報告 "
    "報告書 社区报告 レポート 보고서",
    "Claims": "claim claims covariate covariates behauptung behauptungen affirmation affirmations allégation "
    "allégations revendication revendications afirmación afirmaciones declaración declaraciones reclamación "
    "reclamaciones 声明 聲明 主张 主張 断言 论断 クレーム 주장",
}


def _fold(word: str) -> str:
    plain = unicodedata.normalize("NFKD", word.casefold())
    return "".join(ch for ch in plain if not unicodedata.combining(ch))


_GROUP_OF = {_fold(word): group for group, words in _GROUPS.items() for word in words.split()}
# no spaces around them
_DENSE = sorted((word for word in _GROUP_OF if word[0] > "\u2e80"), key=len, reverse=True)
_NAMES = "|".join(
    sorted((word for words in _GROUPS.values() for word in words.split()), key=len, reverse=True)
)
_BEGIN = re.compile(
    rf"[\[【［〔{{（(]{{1,2}}\s*(?:{_DATA})\s*[:：]|"
    rf"[\[【［〔]{{1,2}}\s*(?:{_NAMES})"
    r"(?:\s*(?:ids?|nos?\.?|nr\.?))?\s*[:：]?\s*[(（\[#]?\s*#?[terc]?\d",
    re.IGNORECASE,
)
_LOOSE = re.compile(r"[\[【［〔{（(]+[^.。!！?？\n\[\]]{0,200}")
_OPEN = "[【［〔{（("
_ROUND = "（(）)"
_BRACKETS = re.compile(r"[\[【［〔{（(\]】］〕}）)\n]")
_TOKEN = re.compile(
    r"[0-9a-f]{16,}|(?:\b([terc]))?(\d{1,9})(?:\s*[-–—−~～〜至到]\s*#?(\d{1,9}))?|([^\W\d_]+)|(\+)",
    re.IGNORECASE,
)


@dataclass(slots=True)
class Cited:
    """Numbers by group, each once, in order; `more` holds the groups that said there were more."""

    numbers: dict[str, list[int]] = field(default_factory=dict)
    more: set[str] = field(default_factory=set)


def cited(text: str) -> list[Cited]:
    """All references of a text, in order."""
    found: list[Cited] = []

    def keep(one: Cited) -> str:
        found.append(one)
        return ""

    replace_references(text, keep)
    return found


def replace_references(text: str, write: Callable[[Cited], str]) -> str:
    """The text with each reference replaced by what `write` makes of it; what reads as one but
    holds no number goes.

    The new one stands after the full stop of its sentence, one blank before it, where the model put
    it before."""
    parts: list[str] = []
    at = 0
    for begin, end in _places(text):
        made = write(_read(text[begin:end]))
        before = text[at:begin].rstrip(" \t\u3000")
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


def _places(text: str) -> Iterator[tuple[int, int]]:
    """Where references begin and end."""
    end = 0
    while begin := _BEGIN.search(text, end):
        end = _end(text, begin.start())
        yield begin.start(), end


_STOP = re.compile(r"[ \t]*([.!?]+(?![\w.])|[。．！？]+)")
_NEXT = ("", *" \n\t,;:.!?)，；：、。）")  # what may follow a reference at once
_STOPPED = re.compile(r"[.。．!！?？][\"'”’»)）」』]*$")


def _end(text: str, begin: int) -> int:
    """Where the reference that begins here ends: at its own bracket, which also closes round ones
    left open."""
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
    """The end of a reference without any closing bracket: as far as numbers, names of groups and
    commas go."""
    match = _LOOSE.match(text, begin)
    return match.end() if match else begin + 1


def _read(reference: str) -> Cited:
    found = Cited()
    group = ""
    for letter, first, last, word, plus in _TOKEN.findall(reference):
        if letter:
            group = GROUPS[letter.lower()]
        if first:
            numbers = [int(first)]
            if last and int(first) < int(last):
                numbers = list(range(int(first), min(int(last), int(first) + RANGE - 1) + 1))
                if int(last) > numbers[-1]:
                    found.more.add(group)
            elif last:
                numbers.append(int(last))
            if not group:
                continue
            known = found.numbers.setdefault(group, [])
            known += [number for number in numbers if number not in known[-200:]]
        elif plus:
            found.more.add(group)
        elif word:
            group = _group(word, group)
    found.more.discard("")
    return found


_ASIDE = frozenset(
    "more mehr plus mas weitere autres id ids no nos nr and und et y e u ja och et data daten".split()
)


def _group(word: str, current: str) -> str:
    """The group that a word names; a word between numbers that names none leaves the group as it
    is."""
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


GROUPS = {"t": "Sources", "e": "Entities", "r": "Relationships", "c": "Reports"}
_LETTER = {group: letter for letter, group in GROUPS.items()}
_NUMBERED_HEAD = re.compile(r"(?:- )?\[?([terc]\d{1,9}(?:\.\d{1,4})?)(?=[\]|])")
_NUMBERED_DATA = re.compile(r"\[Data: [^\[\]\n]{1,4000}\]")
_ALIAS = re.compile(r"(?<![A-Za-z0-9.])[terc]\d{1,9}(?:\.\d{1,4})?(?![A-Za-z0-9])")
_INNER = re.compile(r"[\[(（【][^\[\]()（）【】\n]{1,400}[\])）】]")
_CLOSING = re.compile(r"</(?=\s*(?:context|reports?|text|answers?|question)\b)", re.IGNORECASE)
# Ids alone in a bracket, in ASCII and full width: [t1], 【t1，t2】, [t1 and e2].
_IDS = re.compile(
    r"[\[［【]\s*([A-Za-z]\d{1,9}(?:(?:[\s,，;；、]|and|und|et|y|和|与|\+more)+[A-Za-z]\d{1,9})*)\s*[\]］】]"
)
_ID = re.compile(r"([A-Za-z])(\d{1,9})")


@dataclass(frozen=True, slots=True)
class Checked:
    """A text whose references are in one form; `cited` are the ids in it, `unknown` those that were
    removed."""

    text: str
    cited: tuple[str, ...]
    unknown: tuple[str, ...]


# ---- into a prompt -------------------------------------------------------------------------------


def local_id(alias: str, names: dict[str, str]) -> str:
    """The number of a row inside this prompt: the next one of its kind when it was not met before."""
    if alias not in names:
        names[alias] = f"{alias[0]}{1 + sum(other[0] == alias[0] for other in names)}"
    return names[alias]


def numbered_items(
    items: Iterable[Item], names: dict[str, str], rows: Collection[str]
) -> list[str]:
    """The items' texts with local ids; `names` (stored id -> local id) grows. What a source says
    stays as it is. References to ids other than `rows` are left out."""
    texts = []
    for item in items:
        head = _NUMBERED_HEAD.match(item.text)
        at = 0
        start = ""
        if head is not None and head[1] == item.id:
            start, at = item.text[: head.start(1)] + local_id(item.id, names), head.end(1)
        body = item.text[at:]
        texts.append(
            start + (body if item.section == "Sources" else numbered_references(body, names, rows))
        )
    return texts


def numbered_references(text: str, names: dict[str, str], rows: Collection[str]) -> str:
    """`[Data: ...]` references with local ids; `rows` as in `numbered_items`."""

    def bracket(match: re.Match[str]) -> str:
        known = [one for one in _ALIAS.findall(match[0]) if one in rows]
        return _reference([local_id(one, names) for one in known], False)

    return _NUMBERED_DATA.sub(bracket, text)


def numbered_brackets(text: str, names: dict[str, str]) -> str:
    """Ids in any bracket of an answer, as agents write them, with local ids."""
    return _INNER.sub(lambda part: _ALIAS.sub(lambda one: local_id(one[0], names), part[0]), text)


def example(ids: Iterable[str]) -> str:
    """A reference to rows that a prompt holds: two of its first kind, one of its second."""
    kinds: dict[str, list[str]] = {}
    for id in ids:
        kinds.setdefault(id[0], []).append(id)
    first = [one for held, most in zip(kinds.values(), (2, 1), strict=False) for one in held[:most]]
    return _reference(first, False)


def data(text: str) -> str:
    """Text of documents for a place between tags: it cannot close them."""
    return _CLOSING.sub(r"<\\/", text)


# ---- out of a reply ------------------------------------------------------------------------------


def restored(text: str, names: Mapping[str, str]) -> Checked:
    """References brought into the form `[Data: Sources (t33, t4); Entities (e12)]` with the ids
    that `names` gives (local id -> id to show), in whatever spelling. At most 5 ids of one kind
    stay, then `+more`. A bracket that is no reference stays."""
    cited: dict[str, None] = {}
    unknown: dict[str, None] = {}

    def write(ids: Sequence[str], more: bool = False) -> str:
        unknown.update(dict.fromkeys(id for id in ids if id not in names))
        known = dict.fromkeys(names[id] for id in ids if id in names)
        cited.update(known)
        return _reference(list(known), more)

    def plain(match: re.Match[str]) -> str:
        ids = [f"{letter.lower()}{number}" for letter, number in _ID.findall(match[1])]
        if any(id[0] not in GROUPS for id in ids):
            return match[0]
        ours = match[1] == match[1].lower() or all(id in names for id in ids)
        return write(list(dict.fromkeys(ids))) if ours else match[0]  # "[C4]" is hardly ours

    parts: list[str] = []
    at = 0
    for begin, end in _places(text):
        one = _read(text[begin:end])
        groups = [
            (_LETTER[group], numbers) for group, numbers in one.numbers.items() if group in _LETTER
        ]
        ids = [f"{letter}{number}" for letter, numbers in groups for number in numbers]
        parts += (_IDS.sub(plain, text[at:begin]), write(ids, bool(one.more)))
        at = end
    text = "".join([*parts, _IDS.sub(plain, text[at:])])
    text = re.sub(r"(\[Data: [^\[\]\n]+\])(?:\s*\1)+", r"\1", text)
    text = re.sub(r"(?<![ \t])[ \t]++([.,;。，；])", r"\1", text)
    text = re.sub(r"(?<![ \t])[ \t]++$", "", text, flags=re.MULTILINE)
    return Checked(text, tuple(cited), tuple(unknown))


def _reference(ids: Sequence[str], more: bool) -> str:
    groups: dict[str, list[str]] = {}
    for id in ids:
        groups.setdefault(GROUPS[id[0]], []).append(id)
    parts = []
    for name, listed in groups.items():
        shown = listed[:PER_GROUP] + (["+more"] if more or len(listed) > PER_GROUP else [])
        parts.append(f"{name} ({', '.join(shown)})")
    return f"[Data: {'; '.join(parts)}]" if parts else ""


def streamed(names: Mapping[str, str], on_text: Callable[[str], None]) -> Callable[[str], None]:
    """A receiver of a reply's pieces that passes them on with stored ids, holding back a bracket
    until it closes."""
    held = ""

    def take(piece: str) -> None:
        nonlocal held
        held += piece
        begun = max(held.rfind(sign) for sign in "[［【")
        closed = max(held.rfind(sign) for sign in "]］】")
        cut = begun if begun > closed and len(held) - begun < 2_000 else len(held)
        if cut:
            said = held[:cut]
            body = said.rstrip()
            on_text(restored(body, names).text + said[len(body) :])
            held = held[cut:]

    return take
