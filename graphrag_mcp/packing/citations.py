"""Ids inside prompts, and the references of an answer checked against them.

A stored id such as t33 depends on the history of an index; a prompt may not, or its reply would not
be found in the cache. So the rows of a prompt are numbered 1..n (t1, t2, e1, ...), and the
references of the reply (`[Data: Entities (1, 4)]`, in ASCII or full width) are mapped back: what the
prompt did not hold is removed and reported."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from graphrag_mcp.packing.budget import Item
from graphrag_mcp.packing.references import reference
from graphrag_mcp.text.terms import lists_of

LONGEST = 1500  # characters of one reference
RANGE = 5  # numbers that a range may stand for; of a longer one the first

_WORDS = {
    "Entities": "entity entities 实体 實體",
    "Relationships": "relationship relationships relation relations 关系 關係",
    "Sources": "source sources 来源 來源",
    "Reports": "report reports community communities 报告 報告",
    "Claims": "claim claims 声明 聲明",
}
_GROUP_OF = {word: group for group, words in _WORDS.items() for word in words.split()}
# Words that may stand between numbers.
_ASIDE = frozenset("more id ids and data 数据 數據 资料 資料".split())
# In ASCII or full width, with brackets inside: [Data: Entities (1, 2)], 【Entities (1)】.
_REFERENCE = re.compile(
    rf"[\[【［]{{1,2}}\s*(?:(?:Data|数据|數據|资料|資料)\s*[:：]|(?:{'|'.join(_GROUP_OF)})\s*[:：]?\s*[(（\[]?\s*[#terc]?\d)"
    rf"(?:[^\[\]【】［］]|[\[［【][^\[\]【】［］]{{0,200}}[\]］】]){{0,{LONGEST}}}[\]］】]{{1,2}}",
    re.IGNORECASE,
)
_TOKEN = re.compile(
    r"[0-9a-f]{16,}|(?:\b([terc]))?(\d{1,9})(?:\s*[-–—~～]\s*#?(\d{1,9}))?|([^\W\d_]+)|(\+)", re.IGNORECASE
)


@dataclass(slots=True)
class Cited:
    """Numbers by group, each once, in order; `more` holds the groups that said there were more."""

    numbers: dict[str, list[int]] = field(default_factory=dict)
    more: set[str] = field(default_factory=set)


def cited(text: str) -> list[Cited]:
    found: list[Cited] = []

    def keep(reference: Cited) -> str:
        found.append(reference)
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
    for match in _REFERENCE.finditer(text):
        begin, end = match.span()
        written = write(_read(match[0]))
        before = text[at:begin].rstrip(" \t\u3000")
        stop = _STOP.match(text, end)
        if stop and not _STOPPED.search(before[-3:]):
            before, end = before + stop[1], stop.end()
        elif stop:
            end = stop.end()
        last = before or "".join(parts[-3:])
        blank = " " if last and not last[-1].isspace() else ""
        parts += (before, blank + written if written else "")
        at = end
        if written and text[at : at + 1] not in _NEXT:
            parts.append(" ")
    parts.append(text[at:])
    return "".join(parts)


_STOP = re.compile(r"[ \t]*([.!?]+(?![\w.])|[。．！？]+)")
_NEXT = ("", *" \n\t,;:.!?)，；：、。）")  # what may follow a reference at once
_STOPPED = re.compile(r"[.。．!！?？][\"'”’»)）」』]*$")


def _read(reference: str) -> Cited:
    found = Cited()
    group = ""
    for letter, first, last, word, plus in _TOKEN.findall(reference):
        if letter:
            group = GROUPS[letter.lower()]
        if first and group:
            numbers = [int(first)]
            if last and int(first) < int(last):
                numbers = list(range(int(first), min(int(last), int(first) + RANGE - 1) + 1))
                if int(last) > numbers[-1]:
                    found.more.add(group)
            elif last:
                numbers.append(int(last))
            known = found.numbers.setdefault(group, [])
            known += [number for number in numbers if number not in known[-200:]]
        elif plus:
            found.more.add(group)
        elif word:
            named = _GROUP_OF.get(word.casefold(), "")
            group = named or (group if word.casefold() in _ASIDE else "")
    found.more.discard("")
    return found


GROUPS = {"t": "Sources", "e": "Entities", "r": "Relationships", "c": "Reports"}
_LETTER = {group: letter for letter, group in GROUPS.items()}
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
    """A text with references in one form; `cited`: ids in it, `unknown`: those removed."""

    text: str
    cited: tuple[str, ...]
    unknown: tuple[str, ...]


def local_id(alias: str, names: dict[str, str]) -> str:
    """The number of a row inside this prompt: the next one of its kind when it was not met before."""
    if alias not in names:
        names[alias] = f"{alias[0]}{1 + sum(other[0] == alias[0] for other in names)}"
    return names[alias]


def numbered(item: Item, names: dict[str, str]) -> str:
    """The text of an item with a local id at its head; `names` (stored id -> local id) grows."""
    head, _, rest = item.text.partition(item.id)
    return head + local_id(item.id, names) + rest


def numbered_brackets(text: str, names: dict[str, str]) -> str:
    """Ids in any bracket of an answer, as agents write them, with local ids."""
    return _INNER.sub(lambda part: _ALIAS.sub(lambda match: local_id(match[0], names), part[0]), text)


def example(ids: Iterable[str]) -> str:
    """A reference to rows that a prompt holds: two of its first kind, one of its second."""
    kinds = lists_of((id[0], id) for id in ids)
    first = [id for group, most in zip(kinds.values(), (2, 1), strict=False) for id in group[:most]]
    return _reference(first)


def data(text: str) -> str:
    """Text of documents for a place between tags: it cannot close them."""
    return _CLOSING.sub(r"<\\/", text)


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
        return _reference(known, more)

    def plain(match: re.Match[str]) -> str:
        ids = [f"{letter.lower()}{number}" for letter, number in _ID.findall(match[1])]
        if any(id[0] not in GROUPS for id in ids):
            return match[0]
        ours = match[1] == match[1].lower() or all(id in names for id in ids)
        return write(list(dict.fromkeys(ids))) if ours else match[0]  # "[C4]" is hardly ours

    parts: list[str] = []
    at = 0
    for match in _REFERENCE.finditer(text):
        begin, end = match.span()
        reference = _read(match[0])
        known = (pair for pair in reference.numbers.items() if pair[0] in _LETTER)
        ids = [f"{_LETTER[group]}{number}" for group, numbers in known for number in numbers]
        before, written = _IDS.sub(plain, text[at:begin]), write(ids, bool(reference.more))
        parts += (before, written) if written else (before.rstrip(" \t"),)
        at = end
    text = "".join([*parts, _IDS.sub(plain, text[at:])])
    text = re.sub(r"(\[Data: [^\[\]\n]+\])(?:\s*\1)+", r"\1", text)
    text = re.sub(r"(?<![ \t])[ \t]++([.,;。，；])", r"\1", text)
    text = re.sub(r"(?<![ \t])[ \t]++$", "", text, flags=re.MULTILINE)
    return Checked(text, tuple(cited), tuple(unknown))


def _reference(ids: Iterable[str], more: bool = False) -> str:
    groups = lists_of((GROUPS[id[0]], id) for id in ids)
    return reference(groups.items(), more=groups if more else ())


def streamed(names: Mapping[str, str], on_text: Callable[[str], None]) -> Callable[[str], None]:
    """A receiver of pieces that passes them on with stored ids, a bracket once it is closed."""
    pending = ""

    def take(piece: str) -> None:
        nonlocal pending
        pending += piece
        begun = max(pending.rfind(sign) for sign in "[［【")
        closed = max(pending.rfind(sign) for sign in "]］】")
        cut = begun if begun > closed and len(pending) - begun < 2_000 else len(pending)
        if cut:
            text = pending[:cut]
            body = text.rstrip()
            on_text(restored(body, names).text + text[len(body) :])
            pending = pending[cut:]

    return take
