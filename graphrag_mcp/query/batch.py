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
from graphrag_mcp.query.notes import absences
from graphrag_mcp.query.render import Form, Limits
from graphrag_mcp.query.request import Request
from graphrag_mcp.query.survey import GAP, Line, Survey, survey
from graphrag_mcp.types import SearchResult

if TYPE_CHECKING:
    from graphrag_mcp.llm.asker import Asker

QUERIES_TOKENS, MOST_QUERIES = 2_000, 12  # of several questions at once
# Of several questions: hits in full and as lines, and the share of the best score from which a hit
# is shown. Two of three lines below it were of no use to an agent with 20 two-hop questions. A passage
# takes half of a question's room at most: five questions at once in 2,500 tokens have the answer to 51 of
# 100 questions of MuSiQue and 82 of HotpotQA, with 3 lines and longer passages to 41 and 79.
PER_QUESTION, LINES_PER_QUESTION, RELEVANT = 1, 6, 0.45
LEAST = 50  # tokens of the result for one of them
ECHO = 60  # characters of such a question, which the caller knows


def several(
    corpora: Sequence[Corpus],
    queries: Sequence[str],
    request: Request,
    askers: Mapping[str, Asker] | None = None,
) -> SearchResult:
    """Several questions in one result, in one corpus (its name is "") or in several; each is asked as
    `request` says."""
    budget, note = request.budget(QUERIES_TOKENS)
    distinct = list(dict.fromkeys(query.strip() for query in queries if query.strip()))
    dropped = len(distinct) - MOST_QUERIES
    note += f" Only the first {MOST_QUERIES} queries were asked." if dropped > 0 else ""
    result = local.begun(corpora, "local")
    result.hint = note.strip()
    parts = local.narrowed(local.with_text(corpora), request.filters, request.min_rating)
    asked = []
    for query in distinct[:MOST_QUERIES]:
        question = replace(request, query=query)
        asked.append((query, local.found_in(parts, question, askers or {})[0]))
    return _show(result, asked, budget, request)


def _show(
    result: SearchResult,
    asked: Sequence[tuple[str, Sequence[Source]]],
    budget: int,
    request: Request,
) -> SearchResult:
    """The result for several questions: each with its share of the budget, no passage and no note twice."""
    form, beside = render.narrowed(request.form), request.for_notes()
    page = page_of(result, budget)
    notes: set[tuple[str, str]] = set()
    told: set[tuple[str, str]] = set()  # ids with the sentences that are shown of them
    last = min(len(asked), max(page.room // LEAST, 1))
    page.room -= OVERHEAD // 2 if page.room < 2 * LEAST * len(asked) else 0
    for number, (question, sources) in enumerate(asked[:last]):
        left = last - number
        share = page.room // left
        part = Page(share, page.characters // left, page.full, page.told)
        part.add(f"## {one_line(question, ECHO)}")
        useful = [source for source in sources if source.useful]
        nearest = hits.merged(hits.apart(useful))[: PER_QUESTION + LINES_PER_QUESTION]
        line, without = absences(sources, [passage for *_, passage in nearest])
        if line:
            part.add(line)
        head = len(part.blocks)
        sources = useful
        more = note_hits.put_once(part, sources, notes, beside - result.beside)
        result.beside += more
        page.room += more
        share += more
        sources = hits.apart(sources)
        if form.breadth == "sentences":
            _show_sentences(part, survey(sources), form, told)
        else:
            _show_question(part, sources, form, without)
        if not any(source.found.passages for source in sources) and len(part.blocks) == head:
            part.add("Nothing was found.")
        if len(part.blocks) == head:
            last = number
            break
        page.blocks += part.blocks
        page.citations |= part.citations
        page.room -= share - part.room
    if last < len(asked):
        rest = f"No room from query {last + 1} of {len(asked)} on"
        page.blocks.append(f"{rest}: ask the others apart, or with more max_tokens.")
    return finished(result, page, 0, 0, lambda _: "")


def _show_sentences(page: Page, surveyed: Survey, form: Form, told: set[tuple[str, str]]) -> None:
    """Add the sentences on one of several questions; of those that the result has `told` (id and sentence) the id."""

    def untold(line: Line) -> Line:
        sentences = line.text.split(GAP)
        return replace(line, text=GAP.join(s for s in sentences if (line.hit.id, s) not in told))

    lines = [untold(line) for line in surveyed.lines]
    on_it = lines[: surveyed.on_it]
    known = [line.hit.id for line in on_it if not line.text]
    new = Survey([line for line in lines if line.text], len(on_it) - len(known))
    render.show_survey(page, new, by_time=form.sort == "time")
    told |= {(id, s) for id, place in page.citations.items() for s in place.text.split(GAP)}
    if known:
        page.add(f"See also {', '.join(f'[{id}]' for id in known)} above.")


def _show_question(page: Page, sources: Sequence[Source], form: Form, without: bool) -> None:
    """Add the best hit of one of several questions, in half of the room, and a few others as lines. What
    these leave of the room goes to passages that are cut. `without`: none of them holds a name of the
    question."""
    ranked = hits.merged(sources)
    found = hits.of_ranked(sources, ranked[:20], openings=True)
    most, floor = PER_QUESTION, RELEVANT * ranked[0][0] if ranked else 0.0
    if in_time := form.sort == "time":
        most += LINES_PER_QUESTION
        found = sorted((hit for hit in found[:most] if hit.score >= floor), key=hits.by_time)
    known = sorted(hit.id for hit in found[:most] if hit.id in page.full)
    rest = [hit for hit in found if hit.id not in page.full]
    full = 0 if without else max(most - len(known), 1)
    limits = Limits(full, LINES_PER_QUESTION, floor, in_time)
    worth, room = hits.worth_of(sources), page.room // (most if in_time else 2)
    longest, form = form.window, replace(form, window=max(room, render.PART))
    while form.window < longest:
        trial = page.copy()
        render.show(trial, rest, worth, form, limits)
        shown = {id: trial.citations[id].text for id in trial.full - page.full}
        cut = sum(hit.body != shown.get(hit.id, hit.body) for hit in rest)
        spare = trial.room - (render.PART if known else 0)
        if not cut or spare // cut < render.PART:
            break
        form = replace(form, window=form.window + spare // cut)
    form = replace(form, window=min(form.window, longest))
    render.show(page, rest, worth, form, limits)
    if known:
        page.add(f"See also {', '.join(f'[{id}]' for id in known)} above.")
