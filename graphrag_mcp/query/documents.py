"""Lists of documents: all that pass the filters, or those on subjects (subjects.py); their groups (groups.py);
their statements by day (timeline.py); the outline of one (outline.py)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate

from graphrag_mcp.errors import BadInput
from graphrag_mcp.packing.budget import clamp_budget, cut_line, one_line
from graphrag_mcp.packing.page import OVERHEAD, Page, finish
from graphrag_mcp.query import (
    batch,
    context,
    digests,
    groups,
    hits,
    local,
    note_hits,
    note_sources,
    render,
    summaries,
    timeline,
    times,
    title_list,
)
from graphrag_mcp.query.filters import Filters, Part, documents
from graphrag_mcp.query.notes import joined
from graphrag_mcp.query.outline import outline
from graphrag_mcp.query.subjects import SUBJECT, Found, Row, on, subjects
from graphrag_mcp.store.tables import Snapshot, once, rows_of
from graphrag_mcp.text.terms import counted, lists_of
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.types import ListResult

DEFAULT_TOKENS = 2_000
SORTS = ("date", "title", "size")
LISTS = (*groups.PERIODS, "statement")
PAGE = 30  # documents that are listed with a sentence, on several pages if need be
# Characters of the sentences of one document where few are listed: of its own, on a question.
DIGEST, EXTRACT = 420, 1_200
LINE = 80  # characters of a line beside its sentences
TOKEN = 3  # characters of a token
PLACE = 12  # tokens of `Lines 1 to 6 of 36.`

Shown = Callable[[], str]  # a line, made when it is shown


@dataclass(frozen=True, slots=True)
class Listed:
    """What stands above a list, its lines, and the documents (content ids) that it has."""

    head: str
    lines: Sequence[Shown]
    documents: frozenset[str] = frozenset()


def list_documents(
    snapshot: Snapshot,
    *,
    filters: Sequence[str] = (),
    query: str = "",
    sort: str = "date",
    by: str = "",
    document: str = "",
    cursor: str = "",
    max_tokens: int = DEFAULT_TOKENS,
) -> ListResult:
    """A list of the documents that pass the filters.

    Without other arguments it has one line for each document. With `query` it has the documents
    that speak of a question or an entity. `by` gives one line for each year, month or day; or, for
    "statement", sentences by the days of which they speak. `document` gives the headings of one
    document. `cursor` continues a list. BadInput for an unknown `sort` or `by`, and for a filter that
    says nothing of documents; NotFound for an unknown document."""
    budget, note = clamp_budget(max_tokens, DEFAULT_TOKENS)
    if sort not in SORTS:
        raise BadInput(f"documents cannot be sorted by {sort[:40]!r}", f"Use {', '.join(SORTS)}")
    if by and by not in LISTS:
        raise BadInput(f"there is no list by {by[:40]!r}", f"Use {', '.join(LISTS)}")
    query, document = query.strip(), document.strip()
    asked = [query] if by == "statement" or document else subjects(snapshot, query)
    if len(asked) > batch.MOST_QUERIES:
        asked = asked[: batch.MOST_QUERIES]
        note = joined(note, f"Only the first {len(asked)} subjects were looked for.")
    arguments = f"list|{[*filters]}|{query}|{sort}|{by}|{document}"
    offsets, write = local.paging([("", snapshot)], arguments, cursor, len(asked))
    result = ListResult(corpus=snapshot.manifest.corpus, hint=note)
    if offsets is None:
        result.state, result.text = "stale", "This cursor belongs to another list. Ask without it."
        return finish(result, budget)
    (part,) = local.narrowed([("", snapshot)], filters)
    kept = part[2]
    if kept is not None and (of_others := kept.of("type", "rating")):
        what = f"the filter {of_others[0].field} says nothing of documents"
        raise BadInput(what, "Use kind=, uri=*.md or another field")
    result.hint = joined(note, kept.note if kept is not None and not document else "")
    if document:
        head, lines, links = outline(snapshot, document)
        lists = [Listed(head, [partial(str, line) for line in lines])]
        result.hint = joined(note, links)
    elif by == "statement":
        head, lines = timeline.listed(part, query)
        lists = [Listed(head, [partial(str, line) for line in lines])]
    elif query:
        lists = []
        for subject in asked:
            above = frozenset[str]().union(*(listed.documents for listed in lists))
            lists.append(_on_subject(part, subject, sort, by, TOKEN * budget // len(asked), above))
    else:
        lists = [_all(part, sort, by, TOKEN * budget)]
    page = Page(budget - OVERHEAD - count_tokens(result.hint))
    taken = _fill(page, lists, offsets, first=not cursor.strip())
    result.text = "\n".join(page.blocks)
    result.total = sum(len(listed.lines) for listed in lists)
    result.more = result.total - sum(taken)
    result.truncated = result.more > 0
    if result.more:
        result.next_cursor = write(taken)
    return finish(result, budget)


def _fill(page: Page, lists: Sequence[Listed], offsets: Sequence[int], first: bool) -> list[int]:
    """Add to the page what has room of the lists, in equal shares: up to which line each is shown now. On the first page
    every list has its head, so that a small one counts the documents of many subjects; later ones have a line at least.
    A list of which an earlier page had all is left out."""
    taken = list(offsets)
    pairs = enumerate(zip(lists, offsets, strict=True))
    due = [number for number, (listed, at) in pairs if first or at < len(listed.lines)]
    if not first:  # no more heads than leave room for a line
        heads = accumulate(count_tokens(lists[number].head) + PLACE for number in due)
        due = due[: max(sum(price + 4 * PLACE <= page.room for price in heads), 1)]
    page.room -= sum(count_tokens(lists[number].head) + PLACE for number in due)
    for place, number in enumerate(due):
        listed, begin = lists[number], offsets[number]
        part = page.lent(len(due) - place)
        for text in (line() for line in listed.lines[begin:]):
            if not part.add(text):
                if taken == [*offsets] and number == due[-1] and (part.room >= PLACE or len(due) == 1):
                    part.blocks.append(cut_line(text, max(part.room, 2 * PLACE)))  # every page has a line
                    taken[number] += 1
                break
            taken[number] += 1
        head = listed.head if not page.blocks else f"\n{listed.head}"
        if 0 < len(part.blocks) < len(listed.lines):
            head += f" Lines {begin + 1} to {taken[number]} of {len(listed.lines)}."
        part.blocks.insert(0, head)
        page.take(part)
    return taken


# ---- on a subject --------------------------------------------------------------------------------


def _on_subject(part: Part, subject: str, sort: str, by: str, room: int, above: frozenset[str]) -> Listed:
    """The documents on a subject that no list `above` has, or the groups of all of them."""
    _, snapshot, kept = part
    facts, notes = documents(snapshot), note_sources.ids(snapshot)
    passing = frozenset(facts if kept is None else kept.passing_documents)
    found = on(part, subject).without(frozenset(facts) - passing)
    # Notes stand apart, unless there is nothing else.
    apart = not notes.issuperset({row.document for row in found.rows} or passing)
    found = found.without(notes) if apart else found
    ids = [id for row in found.rows for id in (row.document, *row.same)]
    if by:
        return _by_period(snapshot, _heading(subject, found, facts, kept), ids, by)
    there = above.intersection(row.document for row in found.rows)
    found = found.without(above)
    head = _heading(subject, found, facts, kept, more=bool(there))
    rows = list(found.rows)
    dated = sum(bool(facts[row.document].date) for row in rows)
    if not found.ranked or sort != "date" or 2 * dated >= len(rows):
        rows.sort(key=lambda row: _order(snapshot, sort, row.document))
    else:
        head = f"{head[:-1]}, best first."
    if there:
        head += f" Listed above: {counted(len(there), 'documents')}."
    each = int(max(digests.SENTENCE, min(EXTRACT, room / max(len(rows), 1) - LINE)))
    lines: list[Shown] = [partial(str, line) for line in _of_notes(part, subject)] if apart else []
    lines += [partial(row.line, each) for row in rows]
    lines += [partial(_weaker, row, at == 0) for at, row in enumerate(found.weaker)]
    return Listed(joined(head, found.note), lines, frozenset(row.document for row in rows))


def _heading(
    subject: str, found: Found, facts: Mapping[str, times.Document], kept: Filters | None, more: bool = False
) -> str:
    """`12 documents naming "Ana Ruiz", 2023-05-08 to 2023-10-22, 3 without a date.`"""
    if found.ranked and not found.rows and not more:
        narrowed = " that passes the filters" if kept else ""
        return f'No document{narrowed} says anything on "{one_line(subject, SUBJECT)}".'
    same = sum(len(row.same) for row in found.rows)
    ids = [id for row in found.rows for id in (row.document, *row.same)]
    number = counted(len(ids), "more documents" if more else "documents")
    alike = f", {same} of them in the words of another" if same else ""
    return f"{number} {found.what}{alike}{_span(facts, ids)}."


def _span(facts: Mapping[str, times.Document], ids: Collection[str]) -> str:
    """`, 2023-05-08 to 2023-10-22, 3 without a date`"""
    dated = sorted(facts[id].date for id in ids if facts[id].date)
    if not dated:
        return ""
    undated = len(ids) - len(dated)
    span = f", {' to '.join(dict.fromkeys((dated[0], dated[-1])))}"
    return f"{span}, {undated} without a date" if undated else span


def _weaker(row: Row, first: bool) -> str:
    return f"{render.WEAKER}\n{row.line(render.LINE)}" if first else row.line(render.LINE)


def _of_notes(part: Part, subject: str) -> list[str]:
    """A line for each of the best notes on a question."""
    source = local.asked(part, subject) if note_sources.ids(part[1]) else None
    if source is None:
        return []
    found = note_hits.on([source])[: note_hits.NAMED]
    return [render.line_of(hit, source.found.terms) for note in found for hit in note.hits()]


def _by_period(snapshot: Snapshot, head: str, ids: Sequence[str], by: str) -> Listed:
    """The number of these documents (content ids) in each year, month or day."""
    dates = {id: documents(snapshot)[id].date for id in ids}
    lines = groups.by_period(snapshot, dates, groups.PERIODS[by])
    if ids and not lines:
        head = joined(head, "None states a date, so there are no periods.")
    return Listed(head, [partial(str, line) for line in lines])


# ---- all -----------------------------------------------------------------------------------------


def _all(part: Part, sort: str, by: str, room: int) -> Listed:
    """The documents that pass the filters, or their groups, in about `room` characters."""
    _, snapshot, kept = part
    facts, notes = documents(snapshot), note_sources.ids(snapshot)
    passing = list(facts) if kept is None else kept.passing_documents
    aside = set() if notes.issuperset(passing) else notes.intersection(passing)
    ids = [id for id in passing if id not in aside]
    head = f"{counted(len(ids), 'documents')}{_span(facts, ids)}."
    if aside:
        head += f' {counted(len(aside), "notes")} apart: filters=["kind=note"].'
    if by:
        return _by_period(snapshot, head, ids, by)
    ids.sort(key=lambda id: _order(snapshot, sort, id))
    first = context.first_ids(snapshot, ids)
    alias = {id: first.get(id) or facts[id].alias for id in ids}
    if len(ids) > max(room / (LINE + digests.SENTENCE), PAGE):
        return Listed(head, title_list.lines(snapshot, ids, kept, by_topic=sort == "date"))
    each = int(max(digests.SENTENCE, min(DIGEST, room / max(len(ids), 1) - LINE)))
    written = summaries.of_documents(snapshot, ids)
    shown = times.shown(facts[id] for id in ids)
    lines = [partial(_line, snapshot, id, alias[id], shown[id], written.get(id, ""), each) for id in ids]
    return Listed(head, lines)


def _order(snapshot: Snapshot, sort: str, id: str) -> tuple[str | int, str]:
    fact = documents(snapshot)[id]
    if sort == "date":
        return fact.order
    first = fact.title.casefold() if sort == "title" else -_sizes(snapshot)[id][0]
    return first, fact.uri


@once
def _sizes(snapshot: Snapshot) -> dict[str, tuple[int, int]]:
    """(characters, text units) by document."""
    rows = snapshot.rows("text_units", "", ["document_id", "char_end"])
    sizes = {id: (max(ends), len(ends)) for id, ends in lists_of(rows_of(rows)).items()}
    return dict.fromkeys(documents(snapshot), (0, 0)) | sizes


def _line(snapshot: Snapshot, id: str, alias: str, date: str, summary: str, room: int) -> str:
    """`- [t12] 2024-05-03, Title, 4,100 characters, 2 parts: its summary`, or how it begins where none was
    written."""
    fact = documents(snapshot)[id]
    characters, number = _sizes(snapshot)[id]
    if not summary:
        summary = digests.digest(snapshot, title_list.beginning(snapshot, id), fact.title, room)
    parts = f"{number} parts" if number > 1 else ""
    named = f"{hits.named(snapshot, id)} {note_sources.remark(snapshot, id)}".rstrip()
    line = ", ".join(filter(None, [date, named, f"{characters:,} characters", parts]))
    return f"- [{alias}] {line}{': ' if summary else ''}{summary}"
