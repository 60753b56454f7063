"""The page: blocks become the text of a result within a budget, with their citations and a cursor.

Every result is filled here: a search adds its hits one by one (query/render.py), a look-up the rows of
its sections (`compose`)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from graphrag_mcp.packing import sending
from graphrag_mcp.packing.budget import CHARACTERS, Filled, Item, Section, Size, fill, longest
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.trust.fencing import quoted
from graphrag_mcp.types import Citation, ReportResult, Result, SearchResult

OVERHEAD = 50  # tokens of the fence around what documents say and of the line that leads on
LEAST = 60  # tokens of a page, whatever stands beside it

TEXTS = ("hint", "text", "answer")  # fields that give way, the last first; then lists of fields
HINT = 240  # characters of a hint beside a text that does not fit
FRAME = "…"  # stands for the text while its frame is measured

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
        for citation in cited:
            self.citations.setdefault(citation.id, citation)  # with what was shown of it first
        return True

    def lent(self, left: int) -> Page:
        """A page with the room of one of so many that are left to show, which share this one. `take` has what it
        leaves."""
        part = Page(self.room // left, self.characters // left, self.full, self.told)
        self.room -= part.room
        self.characters -= part.characters
        return part

    def take(self, part: Page) -> None:
        """Put a part that was `lent` behind what is there."""
        self.room += part.room
        self.characters += part.characters
        self.blocks += part.blocks
        self.citations |= part.citations | self.citations  # with what was shown of it first

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


def compose(result: ResultType, sections: Sequence[Section], budget: int, *, intro: str = "") -> ResultType:
    """Fill a result with what fits of the sections, in reading order, behind `intro`. What it is never sent
    without has its room first. Citations are those of the items shown, each once; the data of items goes into the
    list of the result that their section names."""
    result.text = intro
    intro = finish(result, budget - LEAST).text
    headings = [_heading(section) for section in sections if section.items]
    over = 0  # tokens of the whole above those of its parts
    while True:
        room = room_beside(result, intro, budget, headings) - Size(over, 0)
        filled = fill(sections, room, lambda item: sending.price(result, _with_one_head(item)))
        first = next((items[0].id for items in filled.taken.values() if items), "")
        call = f'get_source(ids=["{first}"])'  # of which the item leaves the room
        if filled.cut and first.rpartition("/")[2].startswith("t") and result.next_call != call:
            result.next_call = call
            continue
        shown = result.model_copy()
        shown.text = "\n\n".join(filter(None, (intro, markdown(sections, filled))))
        _set_fields(shown, sections, filled)
        if filled.cut or not first or sending.fits(shown, budget):
            shown.truncated = filled.more or filled.cut
            return finish(shown, budget)
        over += max(sending.sent(shown, sending.onward(shown)).tokens - budget, 1)


def room_beside(result: Result, intro: str, budget: int, headings: Iterable[str]) -> Size:
    """What a budget has left for items below an intro and headings, when what the result holds is sent with it.
    Where this is less than LEAST, the hint goes."""
    # An empty text has no fence, in which the items will stand.
    framed = result.model_copy(update={"text": intro or FRAME, "tokens": budget})
    whole = Size(budget, CHARACTERS)
    room = whole - sending.sent(framed, sending.footer(framed))
    if room.tokens < LEAST:
        room = whole - sending.sent(framed, sending.onward(framed))
    for heading in headings:
        room -= sending.price(result, heading)
    return room


def finish(result: ResultType, max_tokens: int) -> ResultType:
    """Set `tokens`; what passes the budget gives way. What leads on (ids, next page, next call) stays; behind it
    come, in order of worth, the first of the hint, the text, a model's answer, and lists of fields, each as far as
    there is room. What the text no longer shows is cited no longer."""
    result.tokens = max_tokens
    if not sending.fits(result, max_tokens):
        result.truncated = True
        whole = [(name, value) for name, value in result if name in TEXTS or _is_list(name, value)]
        whole.sort(key=lambda pair: (*TEXTS, pair[0]).index(pair[0]))
        for name, value in whole:
            setattr(result, name, type(value)())
        if not sending.fits(result, max_tokens):  # the call alone passes the budget
            result.next_call = ""
        for name, value in whole:
            _put(result, name, value, max_tokens)
        if cited := getattr(result, "citations", []):
            shown = [citation for citation in cited if f"[{citation.id}]" in result.text]
            result.citations = shown  # type: ignore[attr-defined]
    result.tokens = sending.size(result).tokens
    return result


def _is_list(name: str, value: object) -> bool:
    return isinstance(value, list) and name != "citations"  # these are not sent


def _put(result: Result, name: str, value: str | list[Any], max_tokens: int) -> None:
    """Give a field the first of its value, as much as fits."""

    def fits(part: str | list[Any]) -> bool:
        cut = isinstance(part, str) and part and len(part) < len(value)
        setattr(result, name, f"{part} …" if cut else part)
        return sending.fits(result, max_tokens)

    if isinstance(value, str):
        fits(longest(value[:HINT] if name == "hint" else value, fits))
    else:
        count = bisect_left(range(1, len(value) + 1), True, key=lambda n: not fits(value[:n]))
        fits(value[:count])


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
            gap = "\n\n" if any("\n" in item.text for item in items) else "\n"
            blocks.append(_heading(section) + gap.join(map(_with_one_head, items)))
    return "\n\n".join(blocks)


def _heading(section: Section) -> str:
    return f"## {section.name}\n" if section.name else ""


def _with_one_head(item: Item) -> str:
    """The item with a backslash before each line that looks like a head and is not its own."""
    head, newline, body = item.text.partition("\n")
    own = (f"[{item.id}]", f"- [{item.id}]", f"  - [{item.id}]")
    return (head if head.startswith(own) else quoted(head)) + newline + quoted(body)
