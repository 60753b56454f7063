"""Several questions in one result: each with its share of the room, no passage and no note twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.packing.page import OVERHEAD, Page, finished, page_of
from graphrag_mcp.query import hits, local, note_hits, render
from graphrag_mcp.query.hits import Source
from graphrag_mcp.query.local import Corpus
from graphrag_mcp.query.notes import absences, joined
from graphrag_mcp.query.render import Form, Limits
from graphrag_mcp.query.request import Request
from graphrag_mcp.query.survey import GAP, Line, Survey, survey
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.types import SearchResult

if TYPE_CHECKING:
    from graphrag_mcp.llm.asker import Asker

QUERIES_TOKENS, MOST_QUERIES = 2_000, 12  # of several questions at once
# Of several questions: one hit in full and so many as lines, and the share of the best score from which a hit
# is shown. Two of three lines below it were of no use to an agent with 20 two-hop questions. A passage
# takes half of a question's room, and what the lines leave: five questions at once in 2,500 tokens have the answer to
# 51 of 100 questions of MuSiQue and 82 of HotpotQA, with 3 lines and longer passages to 41 and 79.
LINES, RELEVANT = 6, 0.45
LEAST = 50  # tokens of the result for one of them
ECHO = 60  # characters of such a question, which the caller knows


def several(
    corpora: Sequence[Corpus], queries: Sequence[str], request: Request, askers: Mapping[str, Asker] | None = None
) -> SearchResult:
    """Several questions in one result, in one corpus (its name is "") or in several; each is asked as
    `request` says."""
    distinct = list(dict.fromkeys(query.strip() for query in queries if query.strip()))
    asked = distinct[:MOST_QUERIES]
    begun = local.begin(corpora, replace(request, cursor=""), "local", QUERIES_TOKENS)
    result, budget, parts = begun.result, begun.budget, begun.parts
    if begun.over:
        return result
    if len(distinct) > len(asked):
        result.hint = joined(result.hint, f"Only the first {MOST_QUERIES} queries were asked.")
    page = page_of(result, budget)
    last = min(len(asked), max(page.room // LEAST, 1))
    if page.room < 2 * LEAST * len(asked):  # for the line on what has no room
        page.room -= OVERHEAD // 2
    shown = _Shown(page, replace(request.form, window=render.WINDOW), request.for_notes())
    for number, query in enumerate(asked[:last]):
        sources = local.found_in(parts, replace(request, query=query), askers or {})[0]
        if not shown.add(query, sources, last - number):
            last = number
            break
    if last < len(asked):
        rest = f"No room from query {last + 1} of {len(asked)} on"
        page.blocks.append(f"{rest}: ask the others apart, or with more max_tokens.")
    result.beside = shown.grown
    return finished(result, page, 0, 0, lambda _: "")


class _Shown:
    """What a page has of the questions so far. `beside`: tokens by which it may grow for notes, and `grown`
    those by which it grew."""

    def __init__(self, page: Page, form: Form, beside: int) -> None:
        self.page, self.form, self.beside, self.grown = page, form, beside, 0
        self.notes: set[tuple[str, str]] = set()
        self.told: set[tuple[str, str]] = set()  # ids with the sentences that are shown of them

    def add(self, query: str, sources: Sequence[Source], left: int) -> bool:
        """Add what was found for the next of `left` questions, in its share of the room; False where it has none."""
        part = self.page.lent(left)
        part.add(f"## {one_line(query, ECHO)}")
        ranked = hits.merged(sources)
        line, without = absences(sources, [passage for *_, passage in ranked[: 1 + LINES]])
        if line:
            part.add(line)
        head = len(part.blocks)
        grown = note_hits.add(part, sources, self.beside - self.grown, named=0, shown=self.notes)
        if self.form.breadth == "sentences":
            self._sentences(part, survey(sources))
        else:
            self._passages(part, sources, without)
        if not ranked and len(part.blocks) == head:
            part.add("Nothing was found.")
        if len(part.blocks) == head:
            return False
        self.page.take(part)
        self.grown += grown
        return True

    def _sentences(self, part: Page, surveyed: Survey) -> None:
        """Sentences on the question; of those that another question has, the id alone."""

        def untold(line: Line) -> Line:
            sentences = line.text.split(GAP)
            new = [each for each in sentences if (line.hit.id, each) not in self.told]
            return replace(line, text=GAP.join(new))

        lines = [untold(line) for line in surveyed.lines]
        on_it = lines[: surveyed.on_it]
        known = [line.hit.id for line in on_it if not line.text]
        new = Survey([line for line in lines if line.text], len(on_it) - len(known))
        render.show_survey(part, new, by_time=self.form.sort == "time")
        for id, place in part.citations.items():
            self.told |= {(id, sentence) for sentence in place.text.split(GAP)}
        _see_also(part, known)

    def _passages(self, part: Page, sources: Sequence[Source], without: bool) -> None:
        """The best passage, in full in half of the room and what lines of the others leave of it; in order of time all
        in full. `without`: none of them holds a name of the question."""
        ranked, form = hits.merged(sources), self.form
        found = hits.of_ranked(sources, ranked[:20], openings=True)
        floor, most = RELEVANT * ranked[0][0] if ranked else 0.0, 1
        if in_time := form.sort == "time":
            most += LINES
            found = sorted((hit for hit in found[:most] if hit.score >= floor), key=hits.by_time)
        known = sorted(hit.id for hit in found[:most] if hit.id in part.full)
        rest = [hit for hit in found if hit.id not in part.full]
        worth = hits.worth_of(sources)
        if in_time:
            room = part.room // most
        else:
            lines = [hit for hit in rest[1 : 1 + LINES] if hit.score >= floor]
            below = sum(count_tokens(render.line_of(hit, worth)) + 2 for hit in lines)
            room = max(part.room // 2, part.room - render.HEAD - below)
        form = replace(form, window=min(max(room, render.PART), form.window))
        full = 0 if without else max(most - len(known), 1)
        render.show(part, rest, worth, form, Limits(full, LINES, floor, in_time))
        _see_also(part, known)


def _see_also(part: Page, known: Sequence[str]) -> None:
    """Name what stands above, below another question."""
    if known:
        part.add(f"See also {', '.join(f'[{id}]' for id in known)} above.")
