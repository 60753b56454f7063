"""Lists of documents: by date, title or size; by period; by the people, organizations, places or
events that they name; timelines of their statements; the outline of one."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple

from graphrag_mcp import plugins
from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.packing.budget import clamp_budget, finish, located, one_line, passage_alias
from graphrag_mcp.query import (
    context,
    digests,
    entities,
    hits,
    links,
    local,
    note_hits,
    note_sources,
    render,
    series,
    summaries,
    text_search,
    threads,
    timeline,
    times,
    topics,
)
from graphrag_mcp.query.filters import Filters, Part, documents
from graphrag_mcp.query.notes import joined, missing
from graphrag_mcp.query.plugin import plugin_of
from graphrag_mcp.query.render import Page
from graphrag_mcp.query.survey import Line, Survey, survey
from graphrag_mcp.sources.decode import headings
from graphrag_mcp.store.tables import Snapshot, notes_alone, rows_of, values_of
from graphrag_mcp.text import places, quote
from graphrag_mcp.text.prose import readable
from graphrag_mcp.text.terms import Lines, counted, lists_of, normalise_name, terms
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.types import ListResult

DEFAULT_TOKENS = 2_000
OVERHEAD = 60  # tokens of the fence and of the line that leads on
SORTS = ("date", "title", "size")
PERIODS = {"year": 4, "month": 7, "day": 10}  # characters of a date
BEGINNING = 6_000  # characters of a document among which its best sentence is looked for
TELLING = digests.SENTENCE  # characters of that sentence
PAGE = 30  # documents that are listed one by one, on several pages if need be
# Characters of the sentences of one document where few are listed: of its own, on a question.
DIGEST, EXTRACT = 420, 1_200
# characters of a title in a topic; share of the room, since titles have more tokens
TITLE, TITLES = (48, 0.55)
SAID = 200  # characters of a line with a sentence of a series
HEAD = 80  # characters of a line beside them, ten of them its id
SAMPLE = 9  # documents by which the length of a token is told
WORDS = 5  # of a query that may be a name
ELSEWHERE = 6  # names of documents that stand below another subject
NAMES = 5  # that characterise a period
FINEST = 3  # levels of topics of which the documents are listed by
PASSAGES = 500  # of which a timeline of statements is made
FOUND = 200  # passages of a question that a timeline is made of

_COMMUNITY = re.compile(r"c\d{1,9}")

# Between the subjects of a list: commas and their like, not those of a number.
_BETWEEN = re.compile(r"[,;，、；](?!\d)|\n")

Shown = Callable[[], str]  # a line, made when it is shown


class Listed(NamedTuple):
    """The line above a list, its lines, and from which one on they say less (None: from none)."""

    head: str
    lines: Sequence[Shown]
    weaker: int | None = None


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
    that speak of a question, an entity or a community. `by` gives one line for each year, month
    or day; or for each person, organization, location or event, names of most documents first;
    or, for "statement", the sentences of a question or community by the days of which they
    speak. `document` gives the headings of one document. `cursor` continues a list. BadInput for
    an unknown `sort` or `by`, NotFound for an unknown document or community."""
    budget, note = clamp_budget(max_tokens, DEFAULT_TOKENS)
    if sort not in SORTS:
        raise BadInput(f"documents cannot be sorted by {sort[:40]!r}", f"Use {', '.join(SORTS)}")
    every = (*PERIODS, *topics.KINDS, "statement")
    if by and by not in every:
        raise BadInput(f"there is no list by {by[:40]!r}", f"Use {', '.join(every)}")
    query, document = query.strip(), document.strip()
    subjects = [query] if by == "statement" or document else _subjects(snapshot, query)
    if len(subjects) > local.MOST_QUERIES:
        subjects = subjects[: local.MOST_QUERIES]
        note = joined(note, f"Only the first {len(subjects)} subjects were looked for.")
    asked = f"list|{[*filters]}|{query}|{sort}|{by}|{document}"
    offsets, page = local.paging([("", snapshot)], asked, cursor, len(subjects))
    result = ListResult(corpus=snapshot.manifest.corpus, hint=note)
    if offsets is None:
        result.state, result.text = "stale", "This cursor belongs to another list. Ask without it."
        return finish(result, budget)
    (part,) = local.narrowed([("", snapshot)], filters)
    if document:
        listed, hint = _outline(snapshot, document)
        lists, result.hint = [listed], joined(note, hint)
    else:
        result.hint = joined(note, part[2].note if part[2] else "")
        if by == "statement":
            lists = [_statements(snapshot, part, query)]
        else:
            room = budget // len(subjects)
            found = [_speaking(snapshot, part, subject) for subject in subjects]
            lists = [
                _documents(snapshot, part, subject, speaking, sort=sort, by=by, budget=room)
                for subject, speaking in zip(subjects, _each_once(found), strict=True)
            ]
    room = budget - OVERHEAD - count_tokens(result.hint)
    texts: list[str] = []
    taken: list[int] = []
    due = [
        not any(offsets) or offset < len(listed.lines)
        for listed, offset in zip(lists, offsets, strict=True)
    ]
    for number, (listed, offset) in enumerate(zip(lists, offsets, strict=True)):
        text, more = "", 0  # of a list of which an earlier page had all
        if due[number]:
            share = (room - sum(map(count_tokens, texts))) // sum(due[number:])
            text, more = _filled(listed, offset, share)
        texts.append(text)
        taken.append(offset + more)
    result.text = "\n\n".join(filter(None, texts))
    result.total = sum(len(listed.lines) for listed in lists)
    result.more = result.total - sum(taken)
    result.truncated = result.more > 0
    result.next_cursor = page(taken) if result.more else ""
    return finish(result, budget)


def _filled(listed: Listed, offset: int, room: int) -> tuple[str, int]:
    """The list from line `offset` on in so many tokens, at least one line of it, and how many lines that
    are. Behind lines on the question stand FEW weaker ones."""
    head, lines, weaker = listed
    if weaker is not None and offset < weaker:
        lines = lines[: weaker + render.FEW]
    shown: list[str] = []
    room -= count_tokens(head)
    for number, line in enumerate(lines[offset:], offset):
        above = weaker is not None and (number == weaker or number == offset > weaker)
        text = f"{render.WEAKER}\n{line()}" if above else line()
        room -= count_tokens(text) + 1
        if room < 0 and shown:
            break
        shown.append(text)
    return "\n".join([head, *shown]), len(shown)


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


def _each_once(found: Sequence[Speaking]) -> list[Speaking]:
    """What several subjects would show, a passage or the summary of a text, stands below the subject on which
    its document ranks best; the other subjects give the name of the document. A list of every document that
    names a person keeps all its lines."""
    places: dict[str, tuple[bool, int, int]] = {}
    for number, speaking in enumerate(found):
        for rank, (id, lines) in enumerate(speaking.best.items()):
            for line in lines:
                place = id in speaking.weaker, rank, number
                places[_shows(line)] = min(places.get(_shows(line), place), place)
    kept: list[Speaking] = []
    for number, speaking in enumerate(found):
        left = {
            id: [line for line in lines if places[_shows(line)][2] == number]
            for id, lines in speaking.best.items()
        }
        others = [id for id, lines in left.items() if not lines and id not in speaking.weaker]
        names = [one_line(speaking.best[id][0].hit.name, TITLE) for id in others]
        more = f" and {len(names) - ELSEWHERE} more" if len(names) > ELSEWHERE else ""
        named = ", ".join(names[:ELSEWHERE]) + more
        what = f" (listed with the other subjects: {named})" if named else ""
        lines = {id: partial(_extract, left[id], speaking.worth) for id in left if left[id]}
        kept.append(
            replace(speaking, lines=lines if left else speaking.lines, rest=speaking.rest + what)
        )
    return kept


def _shows(line: Line) -> str:
    """What a line shows, for comparison: a summary, or a sentence of a passage."""
    return line.summary or line.hit.passage


# ---- documents -----------------------------------------------------------------------------------


def _documents(
    snapshot: Snapshot, part: Part, query: str, found: Speaking, sort: str, by: str, budget: int
) -> Listed:
    """The documents that were `found` to speak of a query, or all. `budget`: tokens of the list. Few
    documents have several sentences each."""
    kept, facts = part[2], documents(snapshot)
    ids = list(facts) if kept is None else kept.passing_documents(snapshot)
    room = budget * _characters_of_a_token(snapshot, ids)
    ids, notes = _notes_apart(snapshot, ids)
    if query:
        passing = set(ids)
        ids = [id for id in found.lines if id in passing]
        if not ids and (speaking := [id for id in found.lines if id in notes]):
            ids, notes = speaking, []  # no document says something on it
    on_it = [id for id in ids if id not in found.weaker]
    weaker = len(ids) - len(on_it)
    ids = list(on_it) if by else ids  # a count is of what is on the question
    several = EXTRACT if query else DIGEST
    each = int(max(TELLING, min(several, room / max(len(on_it), 1) - HEAD)))
    if not query and sort != "date" and len(ids) > max(room / (HEAD + TELLING), PAGE):
        each = 0  # names alone: who sorts by title looks for one
    dates = {id: facts[id]["date"] for id in ids}
    dated = [dates[id] for id in on_it if dates[id]]
    span = f", {' to '.join(dict.fromkeys([min(dated), max(dated)]))}" if dated else ""
    if dated and len(dated) < len(on_it):
        of_these = f", {len(dated)} dated{span[1:]}" if len(dated) * 2 < len(on_it) else span
        span = f"{of_these}, {len(on_it) - len(dated)} without a date"
    number = counted(len(on_it), "documents")
    head = f"{'At least ' if found.at_least else ''}{number}{found.about(len(on_it))}{span}."
    if found.ranked and not ids and not found.best:
        narrowed = " that passes the filters" if kept else ""
        head = f'No document{narrowed} says anything on "{one_line(query, 80)}".'
    aside = f' {counted(len(notes), "notes")} apart: filters=["kind=note"].' if notes else ""
    if by and weaker:
        aside += f" {counted(weaker, 'more documents')} that say less on it {'is' if weaker == 1 else 'are'} not counted."
    alone = notes_alone(snapshot) if by in topics.KINDS else ""
    aside += f" {alone}" if alone else ""
    if by in topics.KINDS:
        counts = topics.most_named(snapshot, by, None if kept is None and not query else set(ids))
        if not counts:
            return Listed(f"{head}{aside} The index knows no {by} that they name.", [])
        head += f"{aside} {topics.KINDS[by]} by the number of documents that name them:"
        alone = len(counts) > max(room / (HEAD + TELLING), PAGE)  # names alone, as of documents
        within = None if alone else set(ids)
        return Listed(
            head, [partial(topics.line_named, snapshot, id, n, within) for id, n in counts]
        )
    if by:
        head += aside
        head += "" if dated or not ids else " None states a date, so there are no periods."
        return Listed(head, _periods(snapshot, dates, PERIODS[by]))
    if not query and sort == "date" and len(ids) > max(room / (HEAD + TELLING), PAGE):
        if overview := _overview(snapshot, ids, kept, room):
            return Listed(head[:-1] + overview.head + aside, overview.lines)
    sizes = _sizes(snapshot) if ids else {}
    if found.ranked and sort == "date" and len(dated) * 2 < len(on_it):
        head, sort = f"{head[:-1]}, best first.", "rank"
    head = joined(head, found.absent) if query else head + aside
    order = {
        "rank": lambda id: 0,
        "date": lambda id: (facts[id]["moment"] or "9999", facts[id]["uri"]),
        "title": lambda id: (facts[id]["document"][2].casefold(), facts[id]["uri"]),
        "size": lambda id: (-sizes.get(id, (0, 0))[0], facts[id]["uri"]),
    }[sort]
    on_it.sort(key=order)
    ids = on_it + [id for id in ids if id in found.weaker]
    first = context.first_ids(snapshot, ids)
    written = summaries.of_documents(snapshot, ids)
    shown = times.shown(facts[id] for id in ids)
    lines: list[Shown] = [partial(str, line) for line in _of_notes(part, query)] if notes else []
    weak = TELLING if room >= len(ids) * (HEAD + TELLING) else 0  # without room first words
    for id in ids:
        if id in found.lines:
            lines.append(partial(found.lines[id], weak if id in found.weaker else each))
        else:
            alias = first.get(id) or facts[id]["document"][0]
            about = shown[id], sizes.get(id, (0, 0)), written.get(id, "")
            lines.append(partial(_line, snapshot, id, alias, *about, each))
    return Listed(head, lines, len(lines) - weaker if found.ranked else None)


def _notes_apart(snapshot: Snapshot, ids: Sequence[str]) -> tuple[list[str], list[str]]:
    """These documents without notes, and the notes; notes alone are documents."""
    notes = note_sources.ids(snapshot)
    others = [id for id in ids if id not in notes]
    return (others, [id for id in ids if id in notes]) if others else (list(ids), [])


def _of_notes(part: Part, query: str) -> list[str]:
    """A line for each of the best notes on a question."""
    source = local.asked(part, query) if query else None
    if source is None:
        return []
    found = note_hits.on([source])[: note_hits.NAMED]
    return [line for line, _ in note_hits.lines(found, [source])]


@dataclass(frozen=True, slots=True)
class Speaking:
    """Documents that speak of a question: for each content id a function from a number of
    characters to its line, and the words of the list's heading. If `ranked`, these are the
    documents that say most, best first, the last ones `weaker`, with the `best` lines of each, chosen by the
    `worth` of terms; else all documents that name or contain it (`at_least`: perhaps not all). `absent`: what of the
    question no document holds."""

    lines: Mapping[str, Callable[[int], str]] = field(default_factory=dict)
    verb: str = ""
    rest: str = ""
    ranked: bool = False
    at_least: bool = False
    weaker: frozenset[str] = frozenset()
    best: Mapping[str, Sequence[Line]] = field(default_factory=dict)
    worth: Mapping[str, float] = field(default_factory=dict)
    absent: str = ""

    def about(self, number: int) -> str:
        """` that name "Ana Ruiz"`; with the number 1 ` that names "Ana Ruiz"`."""
        if not self.verb:
            return ""
        verb, _, what = self.verb.partition(" ")
        return f" that {verb}{'s' if number == 1 else ''} {what}{self.rest}"


def _overview(
    snapshot: Snapshot, ids: Sequence[str], kept: Filters | None, room: float
) -> Listed | None:
    """Series with what they say, else topics with titles; None where there is but one of these."""
    uri = {id: fact["uri"] for id, fact in documents(snapshot).items()}
    groups = series.grouped(snapshot, ids)
    if len(groups) > 1:
        lines = [
            partial(_series, snapshot, group, members, room / len(groups))
            for group, members in groups.items()
        ]
        return Listed(f", in {len(groups)} series. A filter uri=... lists those of one.", lines)
    found: list[topics.Topic] = []
    level = 0
    for level in range(FINEST):  # documents of one topic are listed by the topics inside it
        found = [topic for topic in topics.of_level(snapshot, level, kept) if topic.main]
        if len(found) > 1:
            break
    if None not in groups or len(found) < 2:
        return None
    todo = [(topic, level) for topic in found]
    found, divided = [], set[str]()
    while todo:
        topic, depth = todo.pop()
        found.append(topic)
        if topics.is_wide(topic, len(ids)):
            for part in topics.parts_of(snapshot, topic, depth, kept):
                part.main &= topic.main
                topic.main -= part.main
                divided.add(topic.id)
                todo.append((part, depth + 1))
    found = sorted(
        filter(attrgetter("main"), found), key=lambda topic: (-len(topic.main), topic.id)
    )
    within = set(ids)
    lines = [
        partial(
            _topic,
            snapshot,
            topic,
            sorted(topic.main & within, key=uri.__getitem__),
            TITLES * room / len(ids),
            "others in " if topic.id in divided else "",
        )
        for topic in found
    ]
    first = f"c{found[0].n}"
    head = f', in {len(found)} topics. A filter topic={first} lists one, sort="title" all.'
    return Listed(head, lines)


def _series(
    snapshot: Snapshot, group: series.Series | None, ids: Sequence[str], room: float
) -> str:
    """A series with the sentences of its documents that say most, in so many characters."""
    head = f"- {series.described(snapshot, group, ids)}"
    most = min(max(int((room - len(head)) / SAID), 1), 2 * len(ids))
    page = Page(int(room) + SAID)
    render.show_lines(page, digests.of_documents(snapshot, ids, most), indent="  ")
    return "\n".join([head, *page.blocks])


def _topic(
    snapshot: Snapshot, topic: topics.Topic, ids: Sequence[str], each: float, which: str
) -> str:
    """A topic with as many titles of its documents as have room, `each` characters a document.
    `which` of its documents they are."""
    topics.describe(snapshot, topic)
    head = f"- {which}[c{topic.n}] {topic.title}: {counted(len(ids), 'documents')}: "
    room, shown, names = each * len(ids) - len(head), [], hits.names_of(snapshot)
    facts = documents(snapshot)
    first = context.first_ids(snapshot, ids)
    bare = [id for id in ids if hits.untitled(facts[id])]
    written = summaries.of_documents(snapshot, bare)
    for id in ids:
        begins = ""
        if hits.untitled(facts[id]):
            begins = hits.opening(_beginning(snapshot, id)) or written.get(id, "")
        # The name of a file is an id as well.
        name = f"{names[id]}: " if begins else f"[{first[id]}] "
        width = int(min(max(each - len(name) - len("; "), TITLE // 2), TITLE))
        shown.append(name + one_line(begins or names[id], width))
        room -= len(shown[-1]) + len("; ")
        if room < TITLE // 2:
            break
    more = [f"{len(ids) - len(shown)} more"] if len(shown) < len(ids) else []
    return head + "; ".join([*shown, *more])


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
    """`- [t12] 2024-05-03, Title, 4,100 characters, 2 parts: its summary`, or its best sentences where
    none was written; without `room` the name alone."""
    fact, title = documents(snapshot)[id], ""
    name = hits.names_of(snapshot)[id]
    untitled = hits.untitled(fact)
    text = _beginning(snapshot, id) if room or untitled else ""
    summary = summary if room else ""
    if room and not summary:
        summary = digests.digest(snapshot, text, fact["document"][2], room)
    if not room and untitled:
        title = hits.opening(text)
        title = f" ({one_line(title, TITLE)})" if title else ""
    length = f"{size[0]:,} characters" if room else ""
    parts = f"{size[1]} parts" if size[1] > 1 and room else ""
    note = note_sources.told(snapshot, id)
    named = " ".join(filter(None, (name + title, located(fact["uri"], "", name), note)))
    facts = ", ".join(filter(None, [joined(fact["by"], date), named, length, parts]))
    return f"- [{alias}] {facts}{': ' if summary else ''}{summary}"


def _characters_of_a_token(snapshot: Snapshot, ids: Sequence[str]) -> float:
    """Of how some of these documents begin: 3 to 4 in English, 1 in Chinese."""
    texts = [_beginning(snapshot, id)[:HEAD] for id in ids[:: len(ids) // SAMPLE + 1]]
    return sum(map(len, texts)) / max(count_tokens(" ".join(texts)), 1) or 1.0


def _beginning(snapshot: Snapshot, id: str) -> str:
    rows = values_of(snapshot.by_key("documents", [id], "id", ["text"])["text"])
    text = rows[0][:BEGINNING] if rows else ""
    if note_sources.is_note(snapshot, id):
        row = {"document_id": id, "text": text, "char_start": 0}
        text = note_sources.with_ids(snapshot, row)
    return readable(text)


def _speaking(snapshot: Snapshot, part: Part, query: str) -> Speaking:
    """The documents that name the query where it is a name, that hold it where it is in quotes, else
    those that say most on it; none for no query."""
    if not query:
        return Speaking()
    bare = query.strip("\"'“”«» ")
    if 0 < len(bare.split()) <= WORDS:
        row, _ = entities.resolve(snapshot, bare)
        name = entities.called(bare)
        if row is not None and not _is_called(row, name):
            row = None
        if row is not None and plugin_of(row) is not None:
            # documents use a definition without a statement
            query = f'"{row["title"].rpartition(".")[2]}"'
        elif found := _naming(part, name, row):
            return found
    if text_search.quoted(query):
        lines, every = _holding(part, query)
        return Speaking(lines, f"hold {'' if every else 'most of '}{one_line(query, 80)}")
    source = local.asked(part, query)
    surveyed = survey([source]) if source else Survey([])
    of = surveyed.documents()
    on_it = {line.hit.document for line in surveyed.lines[: surveyed.on_it]}
    worth = source.found.terms if source else {}
    lines = {id: partial(_extract, best_lines, worth) for id, best_lines in of.items()}
    rest = f" ({surveyed.others:,} more hold some of its words)" if surveyed.others else ""
    return Speaking(
        lines,
        f'rank for "{one_line(query, 80)}"',
        rest,
        ranked=True,
        weaker=frozenset(lines.keys() - on_it),
        best=of,
        worth=worth,
        absent=missing(snapshot, source.found) if source else "",
    )


def _extract(lines: Sequence[Line], worth: Mapping[str, float], room: int) -> str:
    """The best sentences of one document on a question, or what was written of their texts, in about
    `room` characters; at least one, without `room` the first words of one. A summary alone has the best sentence behind it, where that holds
    more of the question's terms."""
    if not room:
        return render.brief(lines[0].hit, lines[0].told)
    chosen = list(lines[:1])
    if len(lines) == 1 and lines[0].summary and lines[0].summary != lines[0].text:
        line = lines[0]
        both = f"{line.summary} [{line.hit.id}] {line.text}"
        more = worth.keys() & set(terms(line.text)) - set(terms(line.summary))
        return render.line(line.hit, both if more and len(both) <= room else line.told)
    for line in lines[1:]:
        if sum(len(each.told) for each in chosen) + len(line.told) <= room:
            chosen.append(line)
    chosen.sort(key=lambda line: line.hit.citation.char_start)
    told = chosen[0].summary or quote.clipped(chosen[0].text, worth, max(room, render.LINE))
    texts = [told, *(f"[{line.hit.id}] {line.told}" for line in chosen[1:])]
    return render.line(chosen[0].hit, " ".join(texts))


def _holding(part: Part, query: str) -> tuple[dict[str, Callable[[int], str]], bool]:
    """Every document that holds what stands in quotes, with its best sentence or line of it; and is
    that all of it, or only most?"""
    _, narrowed, kept = part
    found, literals, note = text_search.matches(narrowed, query, kept)
    best = {
        passage.document_id: (passage.id, passage.score) for passage in reversed(found.passages)
    }

    def line(passage: tuple[str, float], _: int) -> str:
        read = hits.read(narrowed, [passage])
        return render.line_of(read[0], {}, literals) if read else ""

    lines = {document: partial(line, passage) for document, passage in best.items()}
    return lines, text_search.MOST not in note


def _is_called(row: Mapping[str, Any], asked: str) -> bool:
    """Is this a whole name of the entity, or its id? A word of its title is none: "broadband" of
    "Broadband Britain", "Zumstein" of "Beat Zumstein"."""
    key = normalise_name(asked)
    if key == row["key"] or asked == f"e{row['n']}":
        return True
    return key in row["names"] and not entities.holds(row, key)


def _naming(part: Part, name: str, entity: Mapping[str, Any] | None) -> Speaking | None:
    """Every document that holds a name, in its text or title, or one of the other names of its entity;
    and every one in which the index knows the entity by a part of its name. Without an entity, None
    for a word that some text has in lower case, since it may be a topic."""
    snapshot, forms = part[1], [name]
    if entity is not None:
        others = [
            form for form in entity["aliases"] if not entities.holds(entity, normalise_name(form))
        ]
        # Núñez may be asked for where the title is Nunez.
        asked = [name] if normalise_name(name) == entity["key"] else []
        forms = list(dict.fromkeys([entity["title"], *others, *asked]))
    rows = text_search.naming(snapshot, forms, part[2])
    # A name of one word may be an everyday word in another case.
    found = [
        row
        for row in rows
        if any(text_search.is_word(row["text"], form, " " not in form) for form in forms)
    ]
    if entity is None and (
        not all(word[:1].isupper() for word in (name, name.split()[-1]))
        or not found
        or any(text_search.is_word(row["text"], name.lower()) for row in rows)
    ):
        return None
    titled = [
        id
        for id, fact in documents(snapshot).items()
        if any(text_search.is_word(fact["document"][2], form, False) for form in forms)
    ]
    passage = _first_passages(snapshot, titled)
    if entity is not None:
        units = snapshot.by_key("text_units", entity["text_unit_ids"], "id", ["document_id"])
        naming = sorted(set(values_of(units["document_id"])))
        passage |= _first_passages(snapshot, naming, entity)
    passage |= {row["document_id"]: row["id"] for row in reversed(found)}
    last = forms[0].split()[-1]
    # Documents that hold a name with s ("Zumsteins Brief"), or its last word alone, may mean it.
    others = [f"{last}s", *([last] if last != forms[0] else [])]
    alone = False
    if entity is None or entity["type"] in ("person", "other", ""):
        alone = any(
            row["document_id"] not in passage
            and any(text_search.is_word(row["text"], form) for form in others)
            for row in text_search.naming(snapshot, others, part[2])
        )
    verb = f'name "{one_line(forms[0], 80)}"'
    return Speaking(_telling(snapshot, passage, forms), verb, at_least=alone)


def _first_passages(
    snapshot: Snapshot, ids: Sequence[str], entity: Mapping[str, Any] | None = None
) -> dict[str, str]:
    """The first passage of each of these documents, or the first that names the entity, by content id."""
    names = ["id", "document_id", "position", "entity_ids"]
    rows = snapshot.by_key("passages", ids, "document_id", names).to_pylist()
    rows.sort(key=lambda row: -row["position"])
    return {
        row["document_id"]: row["id"]
        for row in rows
        if entity is None or entity["id"] in row["entity_ids"]
    }


def _telling(
    snapshot: Snapshot, passage: Mapping[str, str], forms: Sequence[str]
) -> dict[str, Callable[[int], str]]:
    """Lines of documents with the best sentences on a name. `passage`: of each the one to read."""

    def line(id: str, room: int) -> str:
        for hit in hits.read(snapshot, [(passage[id], 1.0)]):
            text = digests.digest(snapshot, hit.body, hit.citation.title, room, forms)
            return render.line(hit, text)
        return ""

    order = sorted(passage, key=lambda id: documents(snapshot)[id]["uri"])
    return {id: partial(line, id) for id in order}


# ---- statements ----------------------------------------------------------------------------------


def _statements(snapshot: Snapshot, part: Part, query: str) -> Listed:
    """The timeline of what passes the filters: of a question, of a community (c12), or of all."""
    kept = part[2]
    of_documents, notes = _notes_apart(snapshot, list(documents(snapshot)))
    key, values, unread = "document_id", of_documents, 0
    if _COMMUNITY.fullmatch(query):
        found = snapshot.by_key("reports", [int(query[1:])], "n", ["text_unit_ids"]).to_pylist()
        if not found:
            raise NotFound(f"there is no community {query}", "local_search() gives the topics")
        units = snapshot.by_key("text_units", found[0]["text_unit_ids"], "id", ["n"])
        key, values = "n", values_of(units["n"])
    elif query:
        source = local.asked(part, query)
        known = hits.apart([source])[0].found.passages if source else []
        key, values = "id", [passage.id for passage in known[:FOUND]]
        unread = len(known[FOUND:])
    rows = snapshot.by_key("passages", values, key, timeline.COLUMNS).to_pylist()
    apart = frozenset(notes)
    rows = [row for row in rows if row["document_id"] not in apart]
    if kept is not None:
        rows = _passing(snapshot, kept, rows)
    rows.sort(key=lambda row: row["n"])
    listed, undated, short = timeline.of_passages(
        snapshot,
        rows[:PASSAGES],
        lambda statement: kept is None or kept.speaks_of(statement.days, statement.said),
    )
    about = f' on "{one_line(query, 80)}"' if query else ""
    head = f"{counted(len(listed), 'statements')}{about} by time."
    unread += len(rows[PASSAGES:])
    little = (short, "sentences", "of little content")
    others = (undated, "statements", "without a date"), little, (unread, "passages", "not read")
    head = joined(head, timeline.left_out(*others))
    passed = frozenset(kept.passing_documents(snapshot) if kept is not None and not listed else ())
    if passed and passed <= apart:
        head += " Only notes pass the filters, and notes stand in no timeline."
    return Listed(head, [partial(str, statement.item().text) for statement in listed])


def _passing(snapshot: Snapshot, kept: Filters, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    rows = [row for row in rows if kept.passage(row["document_id"], row["entity_ids"])]
    rows = [row for row in rows if kept.includes(row["entity_ids"])]
    timely = kept.timely(snapshot, [row["id"] for row in rows])
    return [row for row in rows if row["id"] in timely]


# ---- periods -------------------------------------------------------------------------------------


def _periods(snapshot: Snapshot, dates: Mapping[str, str], length: int) -> list[Shown]:
    """One line a period: how many documents, and names that this period has more than others."""
    names = characteristic(snapshot, dates, length)
    documents_of = Counter(date[:length] for date in dates.values() if date)
    lines = []
    for period in sorted(documents_of):
        listed = f": {', '.join(names[period])}" if names.get(period) else ""
        lines.append(f"- {period} ({counted(documents_of[period], 'documents')}){listed}")
    return [partial(str, line) for line in lines]


def characteristic(
    snapshot: Snapshot, dates: Mapping[str, str], length: int
) -> dict[str, list[str]]:
    """By period (the first `length` characters of a date): up to NAMES names that it has more than
    others. `dates` of documents by id."""
    rows = snapshot.rows("passages", "", ["document_id", "entity_ids"])
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for id, ids in rows_of(rows):
        if dates.get(id):
            counts[dates[id][:length]].update(ids)
    within = Counter(id for counter in counts.values() for id in counter)
    best: dict[str, list[str]] = {}
    for period, counter in counts.items():
        value = {id: counter[id] * math.log(1 + len(counts) / within[id]) for id in counter}
        best[period] = sorted(value, key=lambda id: (-value[id], id))[: NAMES * 3]
    entity_ids = list(dict.fromkeys(id for ids in best.values() for id in ids))
    found = snapshot.served("entities", entity_ids, ["id", "title"])
    title = {row["id"]: one_line(row["title"], 40) for row in found}
    return {
        period: [title[id] for id in ids if id in title][:NAMES] for period, ids in best.items()
    }


# ---- outline -------------------------------------------------------------------------------------


def _outline(snapshot: Snapshot, asked: str) -> tuple[Listed, str]:
    """The headings of a document, each with an id that `get_source` takes; without headings, how
    each of its text units begins."""
    facts, folded = documents(snapshot), asked.casefold()
    same = [id for id, fact in facts.items() if asked in (fact["document"][0], id, fact["uri"])]
    same = same or [
        id for id, fact in facts.items() if folded in map(str.casefold, fact["document"][2:])
    ]
    if len(same) != 1:
        what = f"there is no document {asked[:80]!r}"
        raise NotFound(what, "list_documents gives the ids of all")
    alias, _, title, uri, _ = facts[same[0]]["document"]
    (text,) = values_of(snapshot.by_key("documents", same, "id", ["text"])["text"])
    columns = ["id", "n", "part", "parts", "position", "text"]
    rows = snapshot.by_key("passages", same, "document_id", columns).to_pylist()
    snapshot.with_places(rows)
    rows.sort(key=lambda row: row["position"])
    size = f"{len(text):,} characters, {counted(len(rows), 'passages')}"
    head = f"[{alias}] {one_line(title, 120)} ({uri}): {size}."
    if (outline := plugins.outline(uri, text)) and (parts := outline.parts()):
        lines = _parts(alias, text, parts)
    else:
        written = summaries.read(snapshot, same).get(same[0], [])
        head += "".join(f" {summary.text}" for summary in written if summary.place == 0)
        sections = [summary for summary in written if summary.place]
        lines = []
        for number, (at, level, words) in enumerate(headings(text), 1):
            # told with its first heading
            begun = [summary for summary in sections if summary.start <= at]
            sections = sections[len(begun) :]
            about = "".join(f": {summary.text}" for summary in begun)
            lines.append(f"{'  ' * (level - 1)}- [{alias}#{number}] {readable(words)}{about}")
        lines = lines or summaries.outline(snapshot, sections)
    for row in rows if not lines else ():
        place = places.of_row(row)
        begins = one_line(readable(row["text"][:400]), TELLING)
        lines.append(f"- [{passage_alias(row)}] " + (f"({place}) {begins}" if place else begins))
    linked, call = links.of_outline(snapshot, same[0])
    hint = f"Its links: {call}." if call else ""
    for note in filter(None, (threads.told(snapshot, same[0]), linked)):
        head += f" {note}"
    return Listed(head, [partial(str, line) for line in lines]), hint


def _parts(alias: str, text: str, parts: Sequence[plugins.Part]) -> list[str]:
    lines, outline = Lines(text), []
    for number, part in enumerate(parts, 1):
        place = f"lines {lines.at(part.start)}-{lines.at(max(part.end - 1, part.start))}"
        about = f": {one_line(part.about, TELLING)}" if part.about else ""
        head = f"{'  ' * part.depth}- [{alias}#{number}] {one_line(part.title, 160)}"
        outline.append(f"{head}, {place}{about}")
    return outline
