"""The page: blocks become the text of a result within a budget, with their citations and a cursor.

Every result is filled here: a search adds its hits one by one (query/render.py), a look-up the rows of
its sections (`compose`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from graphrag_mcp.packing.budget import (
    CHARACTERS,
    Filled,
    Item,
    Section,
    fill,
    finish,
    outgoing,
    sent,
    size,
)
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.trust.fencing import quoted
from graphrag_mcp.types import Citation, ReportResult, Result, SearchResult

OVERHEAD = 50  # tokens of the fence around what documents say and of the line that leads on
TRIES = 12  # fillings of a result, each with less room than the one before
LEAST = 60  # tokens of a page, whatever stands beside it

ResultType = TypeVar("ResultType", bound=Result)


@dataclass(slots=True)
class Page:
    """One result that is being filled; several questions may share it, so nothing is shown twice."""

    room: int
    characters: int = CHARACTERS - 3_000
    full: set[str] = field(default_factory=set)  # ids of what was shown in full
    told: set[str] = field(default_factory=set)  # documents of these; summaries that were shown
    blocks: list[str] = field(default_factory=list)
    citations: dict[str, Citation] = field(default_factory=dict)

    def add(self, text: str, cited: Iterable[Citation] = ()) -> bool:
        """Add a block if there is room for it."""
        price = count_tokens(text) + 2
        if price > self.room or len(text) > self.characters:
            return False
        self.room -= price
        self.characters -= len(text) + 2
        self.blocks.append(text)
        self.citations |= {citation.id: citation for citation in cited}
        return True

    def copy(self) -> Page:
        """A page to try what has room."""
        return Page(**{part.name: copy(getattr(self, part.name)) for part in fields(self)})

    def text(self) -> str:
        return "\n".join(self.blocks)


def page_of(result: SearchResult | ReportResult, budget: int) -> Page:
    """A page with room for a budget of tokens, after what the result's text and hint take."""
    room = budget - OVERHEAD - count_tokens(f"{result.hint} {result.text}")
    cited = {citation.id: citation for citation in result.citations}
    return Page(max(room, LEAST), blocks=[result.text] if result.text else [], citations=cited)


def finished(
    result: SearchResult, page: Page, rest: int, taken: int, cursor: Callable[[tuple[int]], str]
) -> SearchResult:
    """The result with what the page holds. `rest`: how many relevant hits or lines were not shown,
    with which the next page begins."""
    result.text = page.text().rstrip()
    result.citations = list(page.citations.values())
    result.truncated = rest > 0
    if rest > 0:
        result.next_cursor = cursor((taken,))
        result.more = rest
    result.tokens = count_tokens(result.text)
    return result


# ---- rows in sections ------------------------------------------------------------------------------


def compose(
    result: ResultType, sections: Sequence[Section], budget: int, *, intro: str = ""
) -> ResultType:
    """Fill a result with what fits of the sections, in reading order, behind `intro`. Citations are
    those of the items shown, each once; the data of items goes into the list of the result that
    their section names."""
    result.text, result.tokens, call = intro, budget, result.next_call
    room = budget - outgoing(result) - 4  # for one heading; the loop sees to the rest
    for attempt in range(TRIES):
        filled = fill(sections, room)
        shown = [item for section in sections for item in filled.taken[section.name]]
        result.text = "\n\n".join(filter(None, (intro, markdown(sections, filled))))
        _set_fields(result, sections, filled)
        result.truncated, result.next_call, result.tokens = filled.more or filled.cut, call, budget
        if filled.cut and shown[0].id.rpartition("/")[2].startswith("t"):
            result.next_call = f'get_source(ids=["{shown[0].id}"])'
        tokens, characters = sent(result)
        over = max(tokens - budget, int(characters > CHARACTERS))
        if over <= 0:
            result.tokens = size(result)[0]
            return result
        # what cannot be seen costs more than its price
        room = max(room - over - 3 - (room // 6 if attempt > 2 else 0), 1)
    return finish(result, budget - (outgoing(result, below=False) - size(result)[0]))


def _set_fields(result: Result, sections: Sequence[Section], filled: Filled) -> None:
    """The citations of a result and its lists, of the items that are shown."""
    lists: dict[str, list[Any]] = {section.into: [] for section in sections if section.into}
    cited: dict[str, Citation] = {}
    for section in sections:
        for item in filled.taken[section.name]:
            cited |= {place.id: place for place in item.citations()}
            if section.into and item.data is not None:
                lists[section.into].append(dict(item.data))
    if "citations" in type(result).model_fields:
        lists["citations"] = list(cited.values())
    for name, rows in lists.items():
        setattr(result, name, rows)


def markdown(sections: Sequence[Section], filled: Filled) -> str:
    """The items as blocks, each section below its name; empty sections are left out."""
    blocks = []
    for section in sections:
        if items := filled.taken[section.name]:
            head = f"## {section.name}\n" if section.name else ""
            head += f"{section.header}\n" if section.header else ""
            gap = "\n\n" if any("\n" in item.text for item in items) else "\n"
            blocks.append(head + gap.join(map(_with_one_head, items)))
    return "\n\n".join(blocks)


def _with_one_head(item: Item) -> str:
    """The item with a backslash before each line that looks like a head and is not its own."""
    head, newline, body = item.text.partition("\n")
    own = (f"[{item.id}]", f"- [{item.id}]", f"  - [{item.id}]", f"{item.id}|")
    return (head if head.startswith(own) else quoted(head)) + newline + quoted(body)
