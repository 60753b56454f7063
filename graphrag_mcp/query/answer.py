"""Answers by a model from the context of a search: the prompt, its references checked, the result.

Without a model, or when it fails, the result is the context alone and a hint that says so: a model
that does not answer never looks like a corpus that does not know."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from graphrag_mcp.errors import GraphRAGError
from graphrag_mcp.llm import prompts
from graphrag_mcp.llm.asker import NO_MODEL as NO_MODEL_REASON
from graphrag_mcp.llm.asker import Answer as Reply
from graphrag_mcp.llm.asker import Ask, Asker
from graphrag_mcp.llm.protocols import Message
from graphrag_mcp.packing import budget as packing
from graphrag_mcp.packing import citations, references, sending
from graphrag_mcp.packing.citations import data
from graphrag_mcp.packing.page import compose, finish
from graphrag_mcp.query import context, reports
from graphrag_mcp.query.context import note
from graphrag_mcp.query.model_replies import read_answer
from graphrag_mcp.query.request import AnswerOptions
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.types import Citation, DriftResult, SearchResult

R = TypeVar("R")
Answerable = TypeVar("Answerable", SearchResult, DriftResult)

READ_TOKENS = 4_000  # of context for the model at least: a short reply needs no less to go by
REPORTS_TOKENS = 12_000  # of reports for a question about the whole corpus
REPORTS, REPORT_CHARACTERS = 20, 4_000
MOST_WORDS, LEAST_WORDS = 2_000, 60
TITLE = 120  # characters of a title
PLACES = 2  # of a cited entity, relationship or report: where its first statements stand
ENDS = ("source_id", "target_id")
SPARE = 150  # tokens beside an answer from which on the passages that it cites are shown
NO_MODEL = (
    "No model is configured, so this is context without an answer: answer from it yourself, or set "
    "GRAPHRAG_MCP_CHAT_MODEL and ask again."
)
NOT_FINISHED = "The model has not finished; the same call again will have its answer."
CUT = "The model's answer was cut off where its length limit is; the same call again asks again."


@dataclass(frozen=True, slots=True)
class Answered:
    """A model's answer, whose references are stored ids. If no model answered, `by` is "" and
    `reason` says why."""

    checked: citations.Checked
    by: str = ""
    reason: str = ""
    cut: bool = False


class Meter:
    """What a call spends: the difference of the asker's account between two moments."""

    def __init__(self, asker: Asker) -> None:
        self.asker, self.before = asker, asker.spent().record()

    def usage(self) -> dict[str, Any]:
        """{calls, prompt_tokens, output_tokens, by_stage} since the beginning; zeros when the reply
        cache knew it all."""
        return _grown(self.asker.spent().record(), self.before)


def _grown(now: Mapping[str, Any], then: Mapping[str, Any]) -> dict[str, Any]:
    """By how much each number of an account grew; what is nested only where it did."""
    grown: dict[str, Any] = {}
    for name, value in now.items():
        if not isinstance(value, Mapping):
            grown[name] = round(value - then.get(name, 0), 6)
        elif any((part := _grown(value, then.get(name, {}))).values()):
            grown[name] = part
    return grown


# ---- questions to a model ------------------------------------------------------------------------


async def answer(
    asker: Asker,
    query: str,
    rows: str,
    names: Mapping[str, str],
    options: AnswerOptions,
    *,
    words: int,
    folder: Path | None = None,
) -> Answered:
    """Ask for free text over numbered rows. `names`: the rows' local ids -> the ids to show."""
    text = prompts.load("answer", folder).substitute(
        context=data(rows), question=data(query), form=options.form(), example=citations.example(names), words=words
    )
    ask = Ask("answer", (Message("user", text),), read_answer, lambda: "", if_cut="shown")
    on_text = options.on_text and citations.streamed(names, options.on_text)
    reply = await asked(asker, ask, on_text)
    if not reply.by:
        return Answered(citations.Checked("", (), ()), reason=reply.reason)
    return Answered(citations.restored(reply.value, names), reply.by, cut=reply.cut)


async def asked(asker: Asker, ask: Ask[R], on_text: Callable[[str], None] | None = None) -> Reply[R]:
    """As `asker.ask`; a reply cache that cannot be used is no reason to lose a search."""
    try:
        return await asker.ask(ask, on_text=on_text)
    except GraphRAGError as error:
        return Reply(ask.without(), reason=error.what)


def page_text(
    sections: Sequence[packing.Section], taken: Mapping[str, list[packing.Item]]
) -> tuple[str, dict[str, str]]:
    """The page as the model reads it: the same blocks, ids numbered within it; and the stored ids by these
    numbers."""
    names: dict[str, str] = {}
    blocks = []
    for section in sections:
        if rows := [citations.numbered(item, names) for item in taken.get(section.name, [])]:
            gap = "\n\n" if "\n" in rows[0] else "\n"
            blocks.append(f"## {section.name}\n{gap.join(rows)}")
    return "\n\n".join(blocks), {local: id for id, local in names.items()}


def reports_section(snapshot: Snapshot, query: str, level: int = -1) -> packing.Section:
    """The community reports to read for a question, best first: those near to it, and topics of the
    highest level where it names nothing; with a `level` those of the level."""
    if level >= 0:
        chosen = reports.whole_level(snapshot, query, level)[: reports.READ]
    else:
        chosen = reports.opening(snapshot, query, REPORTS)
    ids = [report.id for report in chosen]
    return packing.Section("Reports", reports.items(snapshot, ids, REPORT_CHARACTERS, whole=True), 1.0)


def fitting(blocks: Iterable[str], tokens: int, account: int = 1) -> list[str]:
    """The first blocks that fit into `tokens`, each counted with `account` tokens more; at least
    one block."""
    found: list[str] = []
    for block in blocks:
        tokens -= count_tokens(block) + account
        if tokens < 0 and found:
            break
        found.append(block)
    return found


def word_limit(budget: int) -> int:
    """Words of an answer that leave room for context: it stands in a result twice."""
    return min(MOST_WORDS, max(LEAST_WORDS, budget // 5 // 10 * 10))


# ---- a search with an answer ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Question:
    """A question on one corpus, the model to ask, and the result to make, of at most `budget`
    tokens. `cursor` leads to the context without an answer; `reads`: tokens of context for the
    model at least."""

    snapshot: Snapshot
    query: str
    asker: Asker | None
    options: AnswerOptions
    budget: int
    cursor: str
    reads: int = READ_TOKENS


def with_answer(
    result: SearchResult,
    sections: Sequence[packing.Section],
    question: Question,
    plain: Callable[[SearchResult], SearchResult],
) -> SearchResult:
    """The result with a model's answer from the sections. If no model answers, the result that
    `plain` makes."""
    asker, snapshot, budget = question.asker, question.snapshot, question.budget
    if asker is None or not asker.may_answer("answer"):
        note(result, NO_MODEL)
        return plain(result)
    page = packing.fill(sections, max(budget, question.reads))
    items = [item for section in sections for item in page.taken[section.name]]
    rows, names = page_text(sections, page.taken)
    meter = Meter(asker)
    words, folder = word_limit(budget), snapshot.folder
    options = question.options
    work = answer(asker, question.query, rows, names, options, words=words, folder=folder)
    reply = waited(asker, work, options.seconds)
    result.usage = meter.usage()
    if reply is not None and reply.by:
        cursor = question.cursor
        return answered(result, reply, budget, snapshot=snapshot, shown=items, cursor=cursor)
    if reply is None:  # it is still at it: the context now, the answer at the next call
        result.state = "partial"
        note(result, NOT_FINISHED)
    else:
        result.state = "failed"
        note(result, failed(reply.reason))
    return plain(result)


def answered(
    result: Answerable,
    reply: Answered,
    budget: int,
    *,
    snapshot: Snapshot,
    shown: Sequence[packing.Item] = (),
    cursor: str = "",
) -> Answerable:
    """The result with a given answer: it, its references, then the cited passages of `shown` that
    fit. `cursor` leads to the context without an answer."""
    cited = reply.checked.cited
    known = source_places(snapshot, cited)
    places = [known[id] for id in cited if id in known]
    listed = _references(snapshot, cited, places)
    result.state, result.method = "partial" if reply.cut else "answered", reply.by
    if reply.cut:
        note(result, CUT)
    lines = ["### References", *(f"* [{id}] {what}" for id, what in listed.items())]
    result.answer = "\n\n".join([reply.checked.text, *(["\n".join(lines)] if listed else [])])
    if reply.checked.unknown:
        unknown = ", ".join(reply.checked.unknown[:8])
        note(result, f"References of the model to what it was not given were removed: {unknown}.")
    elif not cited:
        note(result, "The answer cites nothing; check it against the context.")
    result.text, result.next_cursor, result.truncated = result.answer, cursor, bool(cursor)
    passages = [item for item in shown if item.id in {place.id for place in places}]
    if passages and sending.size(result).tokens <= budget - SPARE:
        sections = [packing.Section("Sources", passages, 1.0, more=bool(cursor))]
        result = compose(result, sections, budget, intro=result.answer)
    result.citations = places
    return finish(result, budget)


# ---- what a model's failure looks like -----------------------------------------------------------


def waited(asker: Asker, work: Coroutine[Any, Any, R], seconds: float) -> R | None:
    """The result of the work; None when it takes longer. Its answer goes into the reply cache."""
    future = asker.start(work)
    try:
        return future.result(seconds or None)
    except CancelledError:  # the asker was closed meanwhile
        return None
    except NotYet:
        if future.done():
            raise
        return None


def failed(reason: str) -> str:
    """What to say when a model gave no answer."""
    if reason == NO_MODEL_REASON:
        return NO_MODEL
    why = packing.one_line(reason or "no reply", 160).rstrip(".")
    return f"The model gave no answer ({why}), so this is context without one: answer from it, or try again."


def deadline(seconds: float) -> Callable[[], float]:
    """How many of these seconds are left, never less than a moment; 0 for "no limit"."""
    end = time.monotonic() + seconds
    return lambda: max(end - time.monotonic(), 0.05) if seconds else 0.0


# ---- what an answer cites ------------------------------------------------------------------------


def source_places(snapshot: Snapshot, aliases: Iterable[str]) -> dict[str, Citation]:
    """The citations of the sources (t33, t33.2) among these ids, by id."""
    numbers = {int(alias[1:].partition(".")[0]) for alias in aliases if alias[0] == "t"}
    rows = context.numbered(snapshot, "passages", sorted(numbers))
    documents = context.document_aliases(snapshot, [row["document_id"] for row in rows])
    units = context.unit_citations(snapshot, [row["text_unit_id"] for row in rows])
    known = {place.id: place for place in units.values()}
    for row in rows:
        place = packing.citation(row, document=documents.get(row["document_id"], ""))
        known |= {place.id: place, f"t{row['n']}.{row['part']}": place}
    return known


def _references(snapshot: Snapshot, cited: Sequence[str], places: Sequence[Citation]) -> dict[str, str]:
    """What each cited id stands for, in the order of the answer: document and lines of a source;
    of another row its title with the first documents and lines that it comes from."""
    listed = {place.id: _place(place) for place in places}
    for letter, table in (("c", "reports"), ("e", "entities"), ("r", "relationships")):
        rows = context.numbered(snapshot, table, [int(id[1:]) for id in cited if id[0] == letter])
        title = context.titles(snapshot, rows) if letter == "r" else {}
        for row in rows:
            names = [title.get(row[end], "") for end in ENDS] if letter == "r" else [row["title"]]
            name = " - ".join(packing.one_line(name, TITLE) for name in names)
            listed[f"{letter}{row['n']}"] = f"{name}{_from(snapshot, row)}"
    return {id: listed[id] for id in dict.fromkeys(cited) if id in listed}


def _place(citation: Citation) -> str:
    lines = f", lines {citation.line_start}-{citation.line_end}" if citation.line_start else ""
    return f"{packing.one_line(citation.title, TITLE)}{lines}"


def _from(snapshot: Snapshot, row: Mapping[str, Any]) -> str:
    """The places of a row's evidence, of a report's references, else of its text units."""
    units = [sentence["text_unit_id"] for sentence in row.get("evidence") or ()]
    units += references.referenced_ids(row.get("full_content") or "").get("Sources", [])
    units = list(dict.fromkeys(units)) or row["text_unit_ids"]
    places = map(_place, context.unit_citations(snapshot, units[:PLACES]).values())
    more = f"; {len(units) - PLACES} more" if len(units) > PLACES else ""
    return f" ({'; '.join(places)}{more})" if units else ""
