"""Lists of documents: all that pass the filters, or those on a query; their groups (groups.py); their
statements by day (timeline.py); the outline of one (outline.py)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from graphrag_mcp.errors import BadInput
from graphrag_mcp.packing.budget import clamp_budget, finish, located, one_line
from graphrag_mcp.packing.page import OVERHEAD, Page
from graphrag_mcp.query import (
    context,
    digests,
    entities,
    groups,
    hits,
    local,
    note_hits,
    note_sources,
    render,
    summaries,
    text_search,
    timeline,
    times,
    topics,
)
from graphrag_mcp.query.filters import Filters, Part, documents
from graphrag_mcp.query.notes import joined, missing
from graphrag_mcp.query.outline import outline
from graphrag_mcp.query.plugin import plugin_of
from graphrag_mcp.query.survey import Line, survey
from graphrag_mcp.store.tables import Snapshot, notes_alone, rows_of, values_of
from graphrag_mcp.text import quote
from graphrag_mcp.text.prose import readable
from graphrag_mcp.text.terms import counted, lists_of, normalise_name
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.types import ListResult

DEFAULT_TOKENS = 2_000
SORTS = ("date", "title", "size")
BEGINNING = 6_000  # characters of a document among which its best sentence is looked for
TELLING = digests.SENTENCE  # characters of that sentence
PAGE = 30  # documents that are listed with a sentence, on several pages if need be
# Characters of the sentences of one document where few are listed: of its own, on a question.
DIGEST, EXTRACT = 420, 1_200
TITLE = 40  # characters of a title, or of how a document without one begins, in a list of titles
TITLES = 0.85  # of the tokens of such a list; the others are for the names of topics
FINEST = 3  # levels of topics by which documents are listed
HEAD = 80  # characters of a line beside its sentences, ten of them its id
TOKEN = 3  # characters of a token
WORDS = 5  # of a query that may be a name
PASSAGES = 500  # of which a timeline of statements is made
NAMED = 6  # documents that are named as listed above
FOUND = 200  # passages of a question that a timeline is made of

# Between the subjects of a list: commas and their like, not those of a number.
_BETWEEN = re.compile(r"[,;，；、](?!\d)|\n")

Shown = Callable[[], str]  # a line, made when it is shown


@dataclass(frozen=True, slots=True)
class Listed:
    """What stands above a list, and its lines."""

    head: str
    lines: Sequence[Shown]


@dataclass(frozen=True, slots=True)
class Found:
    """The documents on a query: for each content id a function from a number of characters to its line,
    and what the heading says of them. `weaker` ones say less on it; `ranked`: the best stands first."""

    lines: Mapping[str, Callable[[int], str]] = field(default_factory=dict)
    what: str = ""
    ranked: bool = False
    weaker: Mapping[str, Shown] = field(default_factory=dict)
    same: Sequence[str] = ()  # documents that say the same as one with a line, which names them
    above: str = ""  # names of those that stand below an earlier subject
    note: str = ""


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
    that speak of a question or an entity. `by` gives one line for each year, month or day; or for
    each person, organization, location or event, names of most documents first; or, for
    "statement", sentences by the days of which they speak. `document` gives the headings of one
    document. `cursor` continues a list. BadInput for an unknown `sort` or `by`, NotFound for an
    unknown document."""
    budget, note = clamp_budget(max_tokens, DEFAULT_TOKENS)
    if sort not in SORTS:
        raise BadInput(f"documents cannot be sorted by {sort[:40]!r}", f"Use {', '.join(SORTS)}")
    every = (*groups.PERIODS, *groups.KINDS, "statement")
    if by and by not in every:
        raise BadInput(f"there is no list by {by[:40]!r}", f"Use {', '.join(every)}")
    query, document = query.strip(), document.strip()
    subjects = [query] if by == "statement" or document else _subjects(snapshot, query)
    if len(subjects) > local.MOST_QUERIES:
        subjects = subjects[: local.MOST_QUERIES]
        note = joined(note, f"Only the first {len(subjects)} subjects were looked for.")
    asked = f"list|{[*filters]}|{query}|{sort}|{by}|{document}"
    offsets, write = local.paging([("", snapshot)], asked, cursor, len(subjects))
    result = ListResult(corpus=snapshot.manifest.corpus, hint=note)
    if offsets is None:
        result.state, result.text = "stale", "This cursor belongs to another list. Ask without it."
        return finish(result, budget)
    (part,) = local.narrowed([("", snapshot)], filters)
    if document:
        head, lines, hint = outline(snapshot, document)
        lists = [Listed(head, [partial(str, line) for line in lines])]
    else:
        hint = part[2].note if part[2] else ""
        if by == "statement":
            lists = [_statements(part, query)]
        else:
            known: set[str] = set()
            room = TOKEN * budget // len(subjects)
            lists = [_documents(part, subject, sort, by, room, known) for subject in subjects]
    result.hint = joined(note, hint)
    page = Page(budget - OVERHEAD - count_tokens(result.hint))
    taken = _fill(page, lists, offsets)
    result.text = "\n".join(page.blocks)
    result.total = sum(len(listed.lines) for listed in lists)
    result.more = result.total - sum(taken)
    result.truncated = result.more > 0
    result.next_cursor = write(taken) if result.more else ""
    return finish(result, budget)


def _fill(page: Page, lists: Sequence[Listed], offsets: Sequence[int]) -> list[int]:
    """Add to the page what has room of the lists, in equal shares, and at least one line of each: up to
    which line each is shown now. A list of which an earlier page had all is left out."""
    first = not any(offsets)
    due = [
        number
        for number, (listed, offset) in enumerate(zip(lists, offsets, strict=True))
        if first or offset < len(listed.lines)
    ]
    taken = list(offsets)
    for place, number in enumerate(due):
        share = page.room // (len(due) - place)
        part = Page(share, page.characters)
        head, lines = lists[number].head, lists[number].lines
        part.room -= count_tokens(head)
        part.blocks.append(head if page.blocks == [] else f"\n{head}")
        for line in lines[taken[number] :]:
            text = line()
            if not part.add(text) and len(part.blocks) > 1:
                break
            if len(part.blocks) == 1:
                part.blocks.append(text)
            taken[number] += 1
        page.blocks += part.blocks
        page.room -= share - max(part.room, 0)
    return taken


def _subjects(snapshot: Snapshot, query: str) -> list[str]:
    """The parts of a query that lists several subjects. A question, a name, what stands in quotes and
    what a colon says more of are one."""
    found = [part.strip() for part in _BETWEEN.split(query)]
    found = [part for part in dict.fromkeys(found) if part]
    one = query.endswith(("?", "？")) or ":" in query or text_search.quoted(query)
    if len(found) < 2 or one:
        return [query]
    row, _ = entities.resolve(snapshot, query)
    return [query] if row is not None and _is_called(row, query) else found


# ---- documents -----------------------------------------------------------------------------------


def _documents(part: Part, query: str, sort: str, by: str, room: int, known: set[str]) -> Listed:
    """The documents that pass the filters, or those of them on a query, or their groups, in about `room`
    characters. `known`: passages that the list of an earlier subject has; it grows."""
    _, snapshot, kept = part
    found = _found(part, query, known) if query else Found()
    facts, notes = documents(snapshot), note_sources.ids(snapshot)
    passing = list(facts) if kept is None else kept.passing_documents(snapshot)
    aside = set() if notes.issuperset(passing) else notes.intersection(passing)
    ids = [id for id in passing if id not in aside]
    if query:
        listed = set(ids)
        if found.lines and aside.issuperset(found.lines):  # no document says something on it
            listed, aside = aside, set()
        ids = [id for id in found.lines if id in listed]
    every = dict.fromkeys([*ids, *(id for id in found.same if id not in aside)])
    dates = {id: facts[id]["date"] for id in every}
    head = _head(query, found, dates, kept)
    if aside and not query:
        head += f' {counted(len(aside), "notes")} apart: filters=["kind=note"].'
    if by:
        among = None if kept is None and not query else set(every)
        return _grouped(snapshot, head, dates, by, among)
    if found.ranked and sort == "date" and 2 * sum(bool(dates[id]) for id in ids) < len(ids):
        head, sort = f"{head[:-1]}, best first.", "rank"
    sizes = _sizes(snapshot)
    order = {
        "rank": lambda id: 0,
        "date": lambda id: (facts[id]["moment"] or "9999", facts[id]["uri"]),
        "title": lambda id: (facts[id]["document"][2].casefold(), facts[id]["uri"]),
        "size": lambda id: (-sizes.get(id, (0, 0))[0], facts[id]["uri"]),
    }[sort]
    ids.sort(key=order)
    lines: list[Shown] = []
    if query:
        each = int(max(TELLING, min(EXTRACT, room / max(len(ids), 1) - HEAD)))
        lines += [partial(str, line) for line in _of_notes(part, query)] if aside else []
        lines += [partial(found.lines[id], each) for id in ids]
        others = {*passing} - aside
        weaker = [line for id, line in found.weaker.items() if id in others]
        lines += [partial(_under_weaker, line) for line in weaker[:1]] + weaker[1:]
        above = f"Listed above: {found.above}." if found.above else ""
        return Listed(joined(joined(head, above), found.note), lines)
    each = int(max(TELLING, min(DIGEST, room / max(len(ids), 1) - HEAD)))
    first = context.first_ids(snapshot, ids)
    alias = {id: first.get(id) or facts[id]["document"][0] for id in ids}
    if len(ids) > max(room / (HEAD + TELLING), PAGE):
        tokens = room / TOKEN * TITLES / len(ids)
        titles = {id: partial(_title, snapshot, id, alias[id], tokens) for id in ids}
        by_topic = sort == "date"
        return Listed(head, _by_topic(snapshot, titles, kept) if by_topic else [*titles.values()])
    written = summaries.of_documents(snapshot, ids)
    shown = times.shown(facts[id] for id in ids)
    for id in ids:
        about = shown[id], sizes.get(id, (0, 0)), written.get(id, "")
        lines.append(partial(_line, snapshot, id, alias[id], *about, each))
    return Listed(head, lines)


def _head(query: str, found: Found, dates: Mapping[str, str], kept: Filters | None) -> str:
    """`12 documents naming "Ana Ruiz", 2023-05-08 to 2023-10-22, 3 without a date.`"""
    if found.ranked and not dates and not found.above:
        narrowed = " that passes the filters" if kept else ""
        return f'No document{narrowed} says anything on "{one_line(query, 80)}".'
    dated = sorted(filter(None, dates.values()))
    span = f", {' to '.join(dict.fromkeys((dated[0], dated[-1])))}" if dated else ""
    if dated and len(dated) < len(dates):
        span += f", {len(dates) - len(dated)} without a date"
    what = "more documents" if found.above else "documents"
    return f"{counted(len(dates), what)}{found.what}{span}."


def _grouped(
    snapshot: Snapshot, head: str, dates: Mapping[str, str], by: str, among: set[str] | None
) -> Listed:
    """The groups of documents with these `dates` by content id; of names those that `among` hold."""
    if by in groups.KINDS:
        lines = groups.by_name(snapshot, by, among)
        head = joined(head, notes_alone(snapshot))
        none = f"The index knows no {by} that they name."
    else:
        lines = groups.by_period(snapshot, dates, groups.PERIODS[by])
        none = "None states a date, so there are no periods." if dates else ""
    return Listed(head if lines else joined(head, none), [partial(str, line) for line in lines])


def _under_weaker(line: Shown) -> str:
    return f"{render.WEAKER}\n{line()}"


def _of_notes(part: Part, query: str) -> list[str]:
    """A line for each of the best notes on a question."""
    source = local.asked(part, query)
    if source is None:
        return []
    found = note_hits.on([source])[: note_hits.NAMED]
    return [line for line, _ in note_hits.lines(found, [source])]


def _sizes(snapshot: Snapshot) -> dict[str, tuple[int, int]]:
    """(characters, text units) by document."""
    rows = snapshot.rows("text_units", "", ["document_id", "char_end"])
    return {id: (max(ends), len(ends)) for id, ends in lists_of(rows_of(rows)).items()}


def _line(
    snapshot: Snapshot,
    id: str,
    alias: str,
    date: str,
    size: tuple[int, int],
    summary: str,
    room: int,
) -> str:
    """`- [t12] 2024-05-03, Title, 4,100 characters, 2 parts: its summary`, or how it begins where none was
    written."""
    fact, name = documents(snapshot)[id], hits.names_of(snapshot)[id]
    if not summary:
        summary = digests.digest(snapshot, _beginning(snapshot, id), fact["document"][2], room)
    parts = f"{size[1]} parts" if size[1] > 1 else ""
    note = note_sources.told(snapshot, id)
    named = " ".join(filter(None, (name, located(fact["uri"], "", name), note)))
    dated = joined(fact["by"], date)
    line = ", ".join(filter(None, [dated, named, f"{size[0]:,} characters", parts]))
    return f"- [{alias}] {line}{': ' if summary else ''}{summary}"


def _by_topic(snapshot: Snapshot, titles: Mapping[str, Shown], kept: Filters | None) -> list[Shown]:
    """The titles by topic, the largest topic first, of the coarsest level that divides them."""
    found: list[topics.Topic] = []
    for level in range(FINEST):
        found = [topic for topic in topics.of_level(snapshot, level, kept) if topic.main]
        if len(found) > 1:
            break
    lines: list[Shown] = []
    left = dict(titles)
    for topic in found:
        of_topic = [left.pop(id) for id in titles if id in topic.main and id in left]
        if of_topic:
            below = partial(_below, snapshot, topic, len(of_topic), of_topic[0])
            lines += [below, *of_topic[1:]]
    return lines + [*left.values()]


def _below(snapshot: Snapshot, topic: topics.Topic, number: int, title: Shown) -> str:
    topics.describe(snapshot, topic)
    return f"[c{topic.n}] {topic.title}, {counted(number, 'documents')}:\n{title()}"


def _title(snapshot: Snapshot, id: str, alias: str, tokens: float) -> str:
    """`- [t12] Title`; `- note.txt: how it begins`, since the name of a file is an id as well."""
    head, title = f"- [{alias}]", hits.names_of(snapshot)[id]
    if hits.untitled(documents(snapshot)[id]) and (
        begins := quote.lead(_beginning(snapshot, id), TITLE)
    ):
        head, title = f"- {title}:", begins
    title = one_line(title, TITLE)
    share = (tokens - count_tokens(head)) / max(count_tokens(title), 1)
    return f"{head} {one_line(title, max(int(TITLE * share), TITLE // 4))}"


def _beginning(snapshot: Snapshot, id: str) -> str:
    rows = values_of(snapshot.by_key("documents", [id], "id", ["text"])["text"])
    text = rows[0][:BEGINNING] if rows else ""
    if note_sources.is_note(snapshot, id):
        row = {"document_id": id, "text": text, "char_start": 0}
        text = note_sources.with_ids(snapshot, row)
    return readable(text)


# ---- documents on a query ------------------------------------------------------------------------


def _found(part: Part, query: str, known: set[str]) -> Found:
    """The documents that name an entity where the query is its name, that hold the query where it is in
    quotes, else those that say most on it and are not `known`, which grows."""
    bare = query.strip("\"'“”«» ")
    row = entities.resolve(part[1], bare)[0] if 0 < len(bare.split()) <= WORDS else None
    if row is not None and _is_called(row, entities.called(bare)):
        if plugin_of(row) is None:
            return _naming(part, row)
        query = (
            f'"{row["title"].rpartition(".")[2]}"'  # documents use a definition without a statement
        )
    return _holding(part, query) if text_search.quoted(query) else _on(part, query, known)


def _is_called(row: Mapping[str, Any], asked: str) -> bool:
    """Is this a whole name of the entity, or its id? A word of its title is none: "broadband" of
    "Broadband Britain", "Zumstein" of "Beat Zumstein"."""
    key = normalise_name(asked)
    if key == row["key"] or asked == f"e{row['n']}":
        return True
    return key in row["names"] and not entities.holds(row, key)


def _naming(part: Part, entity: Mapping[str, Any]) -> Found:
    """Every document in which the index knows the entity, or that holds one of its names."""
    snapshot, key = part[1], "document_id"
    forms = [entity["title"]]
    forms += [
        form for form in entity["aliases"] if not entities.holds(entity, normalise_name(form))
    ]
    units = snapshot.by_key("text_units", entity["text_unit_ids"], "id", [key])
    columns = ["id", key, "position", "entity_ids"]
    rows = snapshot.by_key("passages", sorted(set(values_of(units[key]))), key, columns).to_pylist()
    rows.sort(key=lambda row: -row["position"])
    passage = {row[key]: row["id"] for row in rows if entity["id"] in row["entity_ids"]}
    for row in reversed(text_search.naming(snapshot, forms, part[2])):
        # A name of one word may be an everyday word in another case.
        if any(text_search.is_word(row["text"], form, " " not in form) for form in forms):
            passage[row[key]] = row["id"]

    def line(id: str, room: int) -> str:
        for hit in hits.read(snapshot, [(passage[id], 1.0)]):
            text = digests.digest(snapshot, hit.body, hit.citation.title, room, forms)
            return render.line(hit, text)
        return ""

    order = sorted(passage, key=lambda id: documents(snapshot)[id]["uri"])
    what = f' naming "{one_line(forms[0], 80)}"'
    return Found({id: partial(line, id) for id in order}, what)


def _holding(part: Part, query: str) -> Found:
    """Every document that holds what stands in quotes, with its best sentence or line of it."""
    _, snapshot, kept = part
    found, literals, note = text_search.matches(snapshot, query, kept)
    best = {
        passage.document_id: (passage.id, passage.score) for passage in reversed(found.passages)
    }

    def line(passage: tuple[str, float], _: int) -> str:
        read = hits.read(snapshot, [passage])
        return render.line_of(read[0], {}, literals) if read else ""

    lines = {document: partial(line, passage) for document, passage in best.items()}
    return Found(lines, f" holding {'most of ' if note else ''}{one_line(query, 80)}")


def _on(part: Part, query: str, known: set[str]) -> Found:
    """The documents that say most on a question, the best first."""
    source = local.asked(part, query)
    if source is None:
        return Found(ranked=True)
    surveyed, worth = survey([source]), source.found.terms
    lines: dict[str, Callable[[int], str]] = {}
    on_it = lists_of((line.hit.document, line) for line in surveyed.lines[: surveyed.on_it])
    for id, of_document in on_it.items():
        if new := [line for line in of_document if line.hit.passage not in known]:
            lines[id] = partial(_extract, new, worth)
            known |= {line.hit.passage for line in new}
    named = [of_document[0].hit.name for id, of_document in on_it.items() if id not in lines]
    weaker = {
        line.hit.document: partial(
            render.line, line.hit, quote.clipped(line.told, worth, render.LINE)
        )
        for line in surveyed.lines[surveyed.on_it :]
        if line.hit.document not in on_it
    }
    others = f" ({surveyed.others:,} more hold some of its words)" if surveyed.others else ""
    what = f' ranked for "{one_line(query, 80)}"{others}'
    same = [
        other for id in lines for line in on_it[id] for other in line.same if other not in on_it
    ]
    return Found(lines, what, True, weaker, same, _names(named), missing(part[1], source.found))


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(one_line(name, TITLE) for name in names[:NAMED]) + more


def _extract(lines: Sequence[Line], worth: Mapping[str, float], room: int) -> str:
    """The best sentences of one document on a question, or what was written of their texts, in about
    `room` characters; at least one."""
    chosen, left = [lines[0]], room - len(lines[0].told)
    for line in lines[1:]:
        if len(line.told) <= left:
            chosen.append(line)
            left -= len(line.told)
    chosen.sort(key=lambda line: line.hit.citation.char_start)
    first = chosen[0].summary or quote.clipped(chosen[0].text, worth, max(room, render.LINE))
    texts = [first, *(f"[{line.hit.id}] {line.told}" for line in chosen[1:])]
    also = dict.fromkeys(id for line in lines for id in line.hit.also)
    return render.line(replace(chosen[0].hit, also=tuple(also)), " ".join(texts))


# ---- statements ----------------------------------------------------------------------------------


def _statements(part: Part, query: str) -> Listed:
    """The timeline of what passes the filters: of a question, or of all."""
    _, snapshot, kept = part
    notes = note_sources.ids(snapshot)
    key, values, unread = "document_id", sorted(documents(snapshot).keys() - notes), 0
    if query:
        source = local.asked(part, query)
        known = hits.apart([source])[0].found.passages if source else []
        key, values = "id", [passage.id for passage in known[:FOUND]]
        unread = len(known[FOUND:])
    rows = snapshot.by_key("passages", values, key, timeline.COLUMNS).to_pylist()
    rows = [row for row in rows if row["document_id"] not in notes]
    if kept is not None:
        rows = [row for row in rows if kept.passage(row["document_id"], row["entity_ids"])]
        rows = [row for row in rows if kept.includes(row["entity_ids"])]
        timely = kept.timely(snapshot, [row["id"] for row in rows])
        rows = [row for row in rows if row["id"] in timely]
    rows.sort(key=lambda row: row["n"])
    listed, undated, short = timeline.of_passages(
        snapshot,
        rows[:PASSAGES],
        lambda statement: kept is None or kept.speaks_of(statement.days, statement.said),
    )
    unread += len(rows[PASSAGES:])
    left_out = timeline.left_out(
        (undated, "statements", "without a date"),
        (short, "sentences", "of little content"),
        (unread, "passages", "not read"),
    )
    about = f' on "{one_line(query, 80)}"' if query else ""
    head = joined(f"{counted(len(listed), 'statements')}{about} by time.", left_out)
    passed = kept.passing_documents(snapshot) if kept is not None and not listed else []
    if passed and notes.issuperset(passed):
        head += " Only notes pass the filters, and notes stand in no timeline."
    return Listed(head, [partial(str, statement.item().text) for statement in listed])
