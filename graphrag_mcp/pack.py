"""Rows into a token budget: whole items in order of worth, citations, cursors, short aliases.

Takes plain data (items, dicts, result models) and gives text and results that never pass their budget.
A result's tokens are the larger of its text and its JSON, so what an item costs is its text as it stands in
JSON plus its citation. Knows no table and no search: whoever calls has ranked the items already.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from graphrag_mcp.text import count_tokens, sentences
from graphrag_mcp.types import Citation, Result, content_id

LOWEST, HIGHEST = 200, 20_000  # tokens a caller may ask for
CHARACTERS = 48_000  # some hosts cut at 25,000 tokens: this many characters stay below in any script
LEAST_TEXT = 25  # tokens of text below which a citation is not worth its place
PER_GROUP = 5  # references of one kind in one bracket, then "+more"

ResultType = TypeVar("ResultType", bound=Result)

_REFERENCES = re.compile(r"\[Data: ([^\[\]\n]{1,4000})\]")
_GROUP = re.compile(r"(Reports|Entities|Relationships|Sources) \(([^()\n]{0,4000})\)")
_HEX = re.compile(r"\b[0-9a-f]{32}\b")
_LETTER = {"Reports": "c", "Entities": "e", "Relationships": "r", "Sources": "t"}


@dataclass(frozen=True, slots=True)
class Item:
    """One row of context. `text` is what the reader sees; `tokens` is its count where it is known already.

    `also` are further places that the text speaks of; `data` goes into a list field of the result.
    """

    id: str
    text: str
    citation: Citation | None = None
    section: str = "Sources"
    score: float = 0.0
    tokens: int = 0
    also: tuple[Citation, ...] = ()
    data: Mapping[str, Any] | None = None

    def citations(self) -> tuple[Citation, ...]:
        return self.also if self.citation is None else (self.citation, *self.also)


@dataclass(frozen=True, slots=True)
class Section:
    """Items in order of worth from `offset` on, and the share of the budget they are sure of.

    `places` are the items' places in the whole ranking where rows are missing from it; `more` says that the ranking
    goes on behind the last item. `header` is the line of column names under the heading.
    """

    name: str
    items: Sequence[Item]
    share: float
    offset: int = 0
    header: str = ""
    places: Sequence[int] = ()
    more: bool = False
    greedy: bool = True  # takes part when what others did not use is given away

    def offset_after(self, taken: int) -> int:
        if not taken:
            return self.offset
        return self.places[taken - 1] + 1 if self.places else self.offset + taken


@dataclass(frozen=True, slots=True)
class Page:
    """What fits: per section the items of this page; `cut` when a single item had to be shortened."""

    taken: Mapping[str, list[Item]]
    offsets: tuple[int, ...]
    more: bool
    cut: bool = False


def clamp_budget(max_tokens: int, default: int) -> tuple[int, str]:
    """A usable budget and, when the one asked for is not, a sentence that says so."""
    if max_tokens <= 0:
        return default, f"max_tokens {max_tokens} cannot be used, so {default} was."
    used = min(max(max_tokens, LOWEST), HIGHEST)
    return used, "" if used == max_tokens else f"max_tokens {max_tokens} was changed to {used} ({LOWEST} to {HIGHEST})."


def cost(item: Item) -> int:
    """Tokens the item adds to a result: its text as a JSON string, its citation, a little for what is between."""
    text = item.text
    tokens = item.tokens or count_tokens(text)
    escaped = len(json.dumps(text, ensure_ascii=False)) - len(text) - 2  # what JSON adds, a token each at most
    fields: list[Any] = [citation.model_dump() for citation in item.citations()]
    if item.data is not None:
        fields.append(dict(item.data))
    return tokens + escaped + 4 + (count_tokens(json.dumps(fields, ensure_ascii=False)) if fields else 0)


def fill(sections: Sequence[Section], budget: int, first: str = "Sources") -> Page:
    """Whole items in order; each section up to its share, then what is left over, the section `first` before others.

    Nothing is skipped for being long, so the next page starts where this one ended and every item is on exactly
    one page. Only when nothing at all fits is one item cut at a sentence end.
    """
    taken: dict[str, list[Item]] = {section.name: [] for section in sections}
    order = sorted(sections, key=lambda section: section.name != first)  # stable
    left, characters = budget, CHARACTERS - 6_000
    for shares in (True, False):
        for section in order:
            room = min(left, int(section.share * budget)) if shares else left * section.greedy
            for item in section.items[len(taken[section.name]) :]:
                price, size = cost(item), int(len(item.text) * 1.05) + 400
                if price > room or size > characters:
                    break
                taken[section.name].append(item)
                room, left, characters = room - price, left - price, characters - size
    cut = False
    if not any(taken.values()):
        for section in order:
            if section.items:
                taken[section.name].append(shorten_item(section.items[0], left, characters))
                cut = True
                break
    more = any(section.more or len(taken[section.name]) < len(section.items) for section in sections)
    return Page(taken, tuple(section.offset_after(len(taken[section.name])) for section in sections), more, cut)


def compose(
    result: ResultType, sections: Sequence[Section], budget: int, cursor: Callable[[tuple[int, ...]], str], *,
    intro: str = "", first: str = "Sources", into: Mapping[str, str] | None = None,
) -> ResultType:  # fmt: skip
    """Fill a result with what fits of the sections (in reading order), and say where the next page starts.

    `intro` stands before the sections. Citations are those of the items shown, in order, each once. `into` maps a
    section's name to the list field of the result that takes the `data` of its items.
    """
    result.text = intro
    room = budget - size(result)[0] - 30 - 10 * len(sections)
    for _ in range(4):
        page = fill(sections, room, first)
        shown = [item for section in sections for item in page.taken[section.name]]
        result.text = "\n\n".join(part for part in (intro, markdown(sections, page)) if part)
        if "citations" in type(result).model_fields:
            result.citations = list({cited.id: cited for item in shown for cited in item.citations()}.values())
        for name, target in (into or {}).items():
            setattr(result, target, [dict(item.data) for item in page.taken.get(name, []) if item.data is not None])
        result.next_cursor = cursor(page.offsets) if page.more else ""
        result.truncated = page.more or page.cut
        if page.cut and shown[0].id.startswith("t"):
            result.next_call = f'get_source(ids=["{shown[0].id}"])'  # the next page begins after what was cut
        result.tokens = budget
        tokens, characters = size(result)
        if tokens <= budget and characters <= CHARACTERS:
            result.tokens = tokens
            return result
        room -= max(tokens - budget, 0) + 12
    return finish(result, budget)


def shorten_item(item: Item, budget: int, characters: int = CHARACTERS) -> Item:
    """The item cut at a sentence end to fit; a citation keeps the span of what is left of the text.

    Where the citation alone would fill the budget it goes: the first line of the item names the source as well.
    """
    head, _, body = item.text.partition("\n")
    if not body:
        head, body = "", item.text
    item = replace(item, tokens=0)
    fixed = cost(replace(item, text=head or " ")) + 6
    if budget - fixed < LEAST_TEXT:
        item = replace(item, citation=None, also=(), data=None)
        head = one_line(head, 60)
        fixed = cost(replace(item, text=head or " ")) + 6
    kept = shorten(body, max(budget - fixed, 4), max(characters - 1_000, 400))
    citation = item.citation
    if citation is not None:
        lost_lines = body[len(kept) :].count("\n")
        citation = citation.model_copy(
            update={
                "char_end": citation.char_start + len(kept),
                "line_end": max(citation.line_start, citation.line_end - lost_lines),
            }
        )
    return replace(item, text=f"{head}\n{kept} …" if head else f"{kept} …", citation=citation)


def shorten(text: str, budget: int, characters: int = CHARACTERS) -> str:
    """The longest run of whole sentences from the start within the budget; at least a few words of the first.

    Tokens are counted on the JSON form, because that is where the text will have to fit.
    """
    text = text[: min(characters, budget * 12 + 200)]
    ends = [end for _, end in sentences(text)] or [len(text)]
    if _json_tokens(text) <= budget and len(text) < characters:
        return text.rstrip()
    low, high = 0, len(ends)  # the largest count of sentences that fits, by bisection
    while low < high:
        middle = (low + high + 1) // 2
        if _json_tokens(text[: ends[middle - 1]]) <= budget:
            low = middle
        else:
            high = middle - 1
    if low:
        return text[: ends[low - 1]].rstrip()
    end = min(ends[0], budget * 4)
    while end > 8 and _json_tokens(text[:end]) > budget:
        end = end * 3 // 4
    space = text.rfind(" ", end // 2, end)
    return text[: space if space > 0 else end].rstrip()


def _json_tokens(text: str) -> int:
    return count_tokens(json.dumps(text, ensure_ascii=False))


def markdown(sections: Sequence[Section], page: Page) -> str:
    """The page as blocks under headings; empty blocks are left out."""
    blocks = []
    for section in sections:
        items = page.taken.get(section.name, [])
        if not items:
            continue
        gap = "\n\n" if any("\n" in item.text for item in items) else "\n"
        lines = f"## {section.name}\n" + (f"{section.header}\n" if section.header else "")
        blocks.append(lines + gap.join(item.text for item in items))
    return "\n\n".join(blocks)


def columns(*values: object) -> str:
    """One row of a block with columns: `|` between values, escaped inside them, no line breaks."""
    flat = (re.sub(r"\s+", " ", str(value)).strip() for value in values)
    return "|".join(value.replace("\\", "\\\\").replace("|", "\\|") for value in flat)


# ---- the wall ----------------------------------------------------------------------------------


def size(result: Result) -> tuple[int, int]:
    """(tokens, characters) of a result. Its JSON holds its text, so the larger of the two is the JSON."""
    data = json.dumps(result.model_dump(), ensure_ascii=False)
    return count_tokens(data), len(data)


def finish(result: ResultType, max_tokens: int) -> ResultType:
    """Set `tokens`; a result over its budget is shortened until it fits: long side fields, then lists, then the text.

    What the text no longer shows is cited no longer. The caller has packed with `fill` before, so this is the wall
    behind it and normally changes nothing.
    """
    result.tokens = max_tokens
    tokens, characters = size(result)
    for attempt in range(28):
        if tokens <= max_tokens and characters <= CHARACTERS:
            break
        over = max(tokens / max_tokens, characters / CHARACTERS)
        _shrink(result, max(0.0, 0.97 / over - 0.02 * attempt), attempt)
        tokens, characters = size(result)
    result.tokens = tokens
    return result


def _shrink(result: Result, keep: float, attempt: int) -> None:
    """Keep about this share: at first of side fields, from the second attempt of lists, from the third of the text."""
    result.truncated = True
    longest = max(240 - 60 * attempt, 0)
    for name, value in result:
        if name == "next_call":  # half a call helps nobody: whole until the last, then gone
            result.next_call = value if attempt < 12 else ""
        elif isinstance(value, str) and name in ("hint", "description", "title") and len(value) > longest:
            setattr(result, name, value[:longest].rstrip() + " …" if longest else "")
        elif isinstance(value, list) and name != "citations" and attempt >= 1:
            setattr(result, name, value[: math.floor(len(value) * keep)])
    if attempt >= 2:
        text = result.text[: math.floor(len(result.text) * keep)]
        if len(text) < len(result.text):
            ends = [end for _, end in sentences(text)][:-1]
            result.text = (text[: ends[-1]] if ends else text).rstrip() + " …" if text else ""
    cited = getattr(result, "citations", [])
    if cited and attempt >= 1:
        shown = [citation for citation in cited if f"[{citation.id}]" in result.text]
        if len(shown) == len(cited) and attempt > 8:
            shown = cited[: math.floor(len(cited) * keep)]
        result.citations = shown  # type: ignore[attr-defined]


# ---- cursors ------------------------------------------------------------------------------------


def write_cursor(generation: int, query: str, offsets: Iterable[int]) -> str:
    """Where the next page starts, tied to one generation and one question."""
    return f"{generation}.{content_id(query)[:8]}." + "-".join(str(offset) for offset in offsets)


def read_cursor(cursor: str, generation: int, query: str, count: int) -> tuple[int, ...] | None:
    """The offsets of a cursor; zeros for none; None when it belongs to another generation or question."""
    if not cursor.strip():
        return (0,) * count
    match = re.fullmatch(r"(\d{1,12})\.([0-9a-f]{8})\.(\d{1,6}(?:-\d{1,6})*)", cursor.strip())
    if match is None or int(match[1]) != generation or match[2] != content_id(query)[:8]:
        return None
    offsets = tuple(int(part) for part in match[3].split("-"))
    return offsets if len(offsets) == count else None


# ---- aliases and citations -----------------------------------------------------------------------


def passage_alias(row: Mapping[str, Any]) -> str:
    """`t33`, or `t33.2` where the text unit has several passages."""
    return f"t{row['n']}" if row["parts"] <= 1 else f"t{row['n']}.{row['part']}"


def citation(row: Mapping[str, Any], score: float = 0.0) -> Citation:
    """The citation of a row of the table `passages`."""
    return Citation(
        id=passage_alias(row),
        title=row["title"],
        uri=row["uri"],
        document_id=row["document_id"],
        char_start=row["char_start"],
        char_end=row["char_end"],
        line_start=row["line_start"],
        line_end=row["line_end"],
        score=round(score, 4),
    )


def source_item(row: Mapping[str, Any], score: float = 0.0) -> Item:
    """A passage as the reader sees it: `[t33.2] Title (uri:12-40)` and its exact text."""
    cited = citation(row, score)
    head = f"[{cited.id}] {one_line(cited.title, 120)} ({cited.uri}:{cited.line_start}-{cited.line_end})"
    tokens = row["n_tokens"] + count_tokens(head) + 2
    return Item(cited.id, f"{head}\n{row['text'].strip()}", cited, "Sources", score, tokens)


def one_line(text: str, characters: int) -> str:
    """The text without line breaks, at most so many characters."""
    flat = re.sub(r"\s+", " ", text).strip()
    return flat if len(flat) <= characters else flat[: characters - 1].rstrip() + "…"


def referenced_ids(text: str) -> dict[str, list[str]]:
    """Content ids inside `[Data: Entities (hex, hex); Sources (hex)]`, by group name, each once, in order."""
    found: dict[str, dict[str, None]] = {}
    for bracket in _REFERENCES.finditer(text):
        for group in _GROUP.finditer(bracket[1]):
            found.setdefault(group[1], {}).update(dict.fromkeys(_HEX.findall(group[2])))
    return {name: list(ids) for name, ids in found.items()}


def render_references(text: str, aliases: Mapping[str, Mapping[str, str]]) -> str:
    """References with aliases instead of content ids: at most 5 per group, then `+more`; unknown ids are removed.

    `aliases` maps group name -> content id -> alias. A bracket that loses all its ids goes altogether.
    """

    def bracket(match: re.Match[str]) -> str:
        groups = []
        for group in _GROUP.finditer(match[1]):
            known = aliases.get(group[1], {})
            names = list(dict.fromkeys(known[one] for one in _HEX.findall(group[2]) if one in known))
            if names:
                more = ["+more"] if len(names) > PER_GROUP or "+more" in group[2] else []
                groups.append(f"{group[1]} ({', '.join(names[:PER_GROUP] + more)})")
        return f"[Data: {'; '.join(groups)}]" if groups else ""

    return re.sub(r" +([.,;。]|$)", r"\1", _REFERENCES.sub(bracket, text), flags=re.MULTILINE)
