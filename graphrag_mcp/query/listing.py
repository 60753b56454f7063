"""Lists of documents: by date, title or size; by period; by the people, organizations, places or
events that they name; the outline of one."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from graphrag_mcp.code.parse import parse
from graphrag_mcp.code.symbols import SourceFile
from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.packing.budget import (
    clamp_budget,
    finish,
    one_line,
    passage_alias,
    read_cursor,
    write_cursor,
)
from graphrag_mcp.query import context, hits, local, named, text_search, timeline
from graphrag_mcp.query.filters import Filters, documents
from graphrag_mcp.sources.decode import headings
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.dates import days
from graphrag_mcp.text.prose import readable, says_something
from graphrag_mcp.text.terms import Lines, counted, normalise_name, sentences
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.types import ListResult

DEFAULT_TOKENS = 2_000
OVERHEAD = 60  # tokens of the fence and of the line that leads on
SORTS = ("date", "title", "size")
PERIODS = {"year": 4, "month": 7, "day": 10}  # characters of a date
BEGINNING = 3_000  # characters of a document among which its most telling sentence is looked for
TELLING = 140  # characters of that sentence
WORDS = 5  # of a query that may be a name
NAMES = 5  # that characterise a period
PASSAGES = 500  # of which a timeline of statements is made
FOUND = 200  # passages of a question that a timeline is made of

_COMMUNITY = re.compile(r"c\d{1,9}")

Fact = Mapping[str, Any]
Line = Callable[[], str]
Said = Callable[[], str]  # the sentence of a document, made when it is shown


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
    """Documents that pass the filters, one line each; with `by` one line a year, month or day; or one
    line a person, organization, location or event, those that most of the documents name first; or the
    statements of their text by the days they speak of (of a question or a community: `query`); with
    `document` the headings of that one. With `query` only documents that speak of it, each with its
    sentence on it, by time."""
    budget, note = clamp_budget(max_tokens, DEFAULT_TOKENS)
    if sort not in SORTS:
        raise BadInput(f"documents cannot be sorted by {sort[:40]!r}", f"Use {', '.join(SORTS)}")
    if by and by not in (*PERIODS, *named.KINDS, "statement"):
        every = ", ".join((*PERIODS, *named.KINDS, "statement"))
        raise BadInput(f"there is no list by {by[:40]!r}", f"Use {every}")
    asked = f"list|{[*filters]}|{query}|{sort}|{by}|{document}"
    generation = snapshot.manifest.generation
    offsets = read_cursor(cursor, generation, asked, 1)
    result = ListResult(corpus=snapshot.manifest.corpus, hint=note)
    if offsets is None:
        result.state, result.text = "stale", "This cursor belongs to another list. Ask without it."
        return finish(result, budget)
    if document.strip():
        head, lines = _outline(snapshot, document.strip())
    elif by == "statement":
        head, lines = _statements(snapshot, result, filters, query.strip())
    else:
        head, lines = _documents(snapshot, result, filters, query.strip(), sort, by)
    return _filled(
        result, head, lines, budget, offsets[0], partial(write_cursor, generation, asked)
    )


def _filled(
    result: ListResult,
    head: str,
    lines: Sequence[Line],
    budget: int,
    offset: int,
    cursor: Callable[[tuple[int]], str],
) -> ListResult:
    """As many of the lines as have room, from `offset` on."""
    room = budget - OVERHEAD - count_tokens(f"{head}{result.hint}")
    shown: list[str] = []
    for line in lines[offset:]:
        text = line()
        price = count_tokens(text) + 1
        if price > room and shown:
            break
        shown.append(text)
        room -= price
    taken = offset + len(shown)
    result.text = "\n".join([head, *shown])
    result.total, result.more = len(lines), len(lines) - taken
    result.truncated = result.more > 0
    result.next_cursor = cursor((taken,)) if result.more else ""
    return finish(result, budget)


# ---- documents -----------------------------------------------------------------------------------


def _documents(
    snapshot: Snapshot, result: ListResult, filters: Sequence[str], query: str, sort: str, by: str
) -> tuple[str, list[Line]]:
    kept, _ = local.narrowed(snapshot, filters)
    facts = documents(snapshot)
    ids = [id for id in facts if kept is None or kept.passage(id, ())]
    ids = ids if kept is None else kept.of_time(snapshot, kept.of_names(snapshot, ids))
    result.hint = local.told(result.hint, kept)
    said: Mapping[str, Said] = {}
    about = ""
    if query:
        said, about = _speaking(snapshot, query, filters)
        ids = [id for id in ids if id in said]
    dates = {id: facts[id]["date"] for id in ids}
    dated = [date for date in dates.values() if date]
    span = f", {min(dated)} to {max(dated)}" if dated else ""
    undated = ""
    if dated and len(dated) < len(ids):
        undated = f", {len(ids) - len(dated)} without a date of their own"
    head = f"{counted(len(ids), 'documents')}{about}{span}{undated}."
    if by in named.KINDS:
        counts = named.most_named(snapshot, by, None if kept is None and not query else set(ids))
        head += f" {named.KINDS[by]} by the number of documents that name them:"
        return head, [partial(named.line, snapshot, id, number, set(ids)) for id, number in counts]
    if by:
        head += "" if dated or not ids else " None states a date, so there are no periods."
        return head, _periods(snapshot, ids, dates, PERIODS[by])
    sizes = _sizes(snapshot) if ids else {}
    order = {
        "date": lambda id: (_first_day(dates[id]), facts[id]["uri"]),
        "title": lambda id: (facts[id]["document"][2].casefold(), facts[id]["uri"]),
        "size": lambda id: (-sizes.get(id, (0, 0))[0], facts[id]["uri"]),
    }[sort]
    return head, [
        partial(_line, snapshot, id, facts[id], dates[id], sizes.get(id, (0, 0)), said.get(id))
        for id in sorted(ids, key=order)
    ]


def _first_day(date: str) -> str:
    return days(date)[0] if date else "9999"


def _sizes(snapshot: Snapshot) -> dict[str, tuple[int, int]]:
    """(characters, text units) by document."""
    rows = snapshot.rows("text_units", "", ["document_id", "char_end"])
    characters: dict[str, int] = defaultdict(int)
    units: Counter[str] = Counter()
    for id, end in zip(rows["document_id"].to_pylist(), rows["char_end"].to_pylist(), strict=True):
        characters[id] = max(characters[id], end)
        units[id] += 1
    return {id: (characters[id], units[id]) for id in units}


def _line(
    snapshot: Snapshot, id: str, fact: Fact, date: str, size: tuple[int, int], speaks: Said | None
) -> str:
    alias, _, title, uri, file = fact["document"]
    where = one_line(uri, 120)
    name = where if title.casefold() in uri.casefold() else f"{one_line(title, 80)} ({where})"
    parts = f", {size[1]} parts" if size[1] > 1 else ""
    said = speaks() if speaks else ""
    if title in ("", file):  # the first words say more than a file's name
        first = _first(snapshot, id)
        begins = hits.clipped(first, {}, hits.BEGINS)
        if first and said and begins[:-1] not in said:
            name += f" ({begins})"
        said = said or first
    said = said or telling(snapshot, id, title)
    when = f"{fact['by']} {date} ".lstrip() if date else ""
    length = "" if speaks else f", {size[0]:,} characters"
    return f"- [{alias}] {when}{name}{length}{parts}: {said}"


def telling(snapshot: Snapshot, id: str, title: str) -> str:
    """The sentence near the beginning that says most: names and figures, no greeting or heading."""
    rows = snapshot.by_key("documents", [id], "id", ["text"]).to_pylist()
    text = readable(rows[0]["text"][:BEGINNING]) if rows else ""
    best, chosen = -1.0, ""
    for place, (start, end) in enumerate(sentences(text)[:20]):
        said = text[start:end].strip()
        if not says_something(said) or said.casefold() == title.casefold():
            continue
        words = said.split() or [said]
        facts = sum(any(map(str.isdigit, word)) or word[:1].isupper() for word in words[1:])
        value = min(facts, 6) / 6 + 1.0 / (2 + place)
        if value > best + 1e-9:
            best, chosen = value, said
    return one_line(chosen or text, TELLING)


def _first(snapshot: Snapshot, id: str) -> str:
    """How a document begins: its first sentence, where it says something."""
    rows = snapshot.by_key("documents", [id], "id", ["text"]).to_pylist()
    text = readable(rows[0]["text"][:BEGINNING]) if rows else ""
    spans = sentences(text)[:1]
    said = text[slice(*spans[0])] if spans else ""
    return one_line(said, TELLING) if says_something(said) else ""


def _speaking(
    snapshot: Snapshot, query: str, filters: Sequence[str]
) -> tuple[Mapping[str, Said], str]:
    """Documents that speak of a question, by content id, with their best sentence on it; and words
    that say which these are: all that name it, where it is a name, else those that say most."""
    kept, narrowed = local.narrowed(snapshot, filters)
    bare = query.strip().strip("\"'“”«»").strip()
    row = context.resolve(snapshot, bare)[0] if len(bare.split()) <= WORDS else None
    if row is not None and context.is_symbol(row) and _is_called(row, bare):
        query = (
            f'"{row["title"].rpartition(".")[2]}"'  # tests and documents use it without a statement
        )
    elif row is not None and _is_called(row, bare):
        named = _naming(snapshot, row["id"])
        return named, f' that name "{one_line(row["title"], 80)}"'
    if text_search.quoted(query):
        return _holding(snapshot, query, filters), f" that hold {one_line(query, 80)}"
    about = f' that say most on "{one_line(query, 80)}"'
    found = local.find(narrowed, query, filters=kept)
    if local.unheard_of(found):
        return {}, about
    scored = [(one.id, one.score) for one in found.passages[:FOUND]]
    listed = [hit for _, hit in hits.read(snapshot, scored)]
    said: dict[str, Said] = {}
    for line in hits.lines(listed, found.terms, found.names):
        said.setdefault(line.hit.part_of, partial(str, f"[{line.hit.id}] {line.text}"))
    return said, about


def _holding(snapshot: Snapshot, query: str, filters: Sequence[str]) -> dict[str, Said]:
    """Every document that holds what stands in quotes, with its best sentence or line of it."""
    ranked, literals = text_search.matches(snapshot, query, filters)
    rows = snapshot.by_key("passages", [id for id, _ in ranked], "id", ["id", "document_id"])
    found = dict(zip(rows["id"].to_pylist(), rows["document_id"].to_pylist(), strict=True))
    best: dict[str, tuple[str, float]] = {}
    for id, score in ranked:
        best.setdefault(found[id], (id, score))
    return {document: partial(_held, snapshot, one, literals) for document, one in best.items()}


def _held(snapshot: Snapshot, passage: tuple[str, float], literals: Sequence[str]) -> str:
    found = hits.read(snapshot, [passage])
    return hits.in_brief(found[0][1], literals) if found else ""


def _is_called(row: Fact, asked: str) -> bool:
    """Is this a name of the entity, or its id? "broadband" is not one of "Broadband Britain"."""
    key = normalise_name(asked)
    words = row["key"].split()
    last = row["type"] == "person" and key == words[-1]
    return last or key == row["key"] or key in row["names"] or asked == f"e{row['n']}"


def _naming(snapshot: Snapshot, id: str) -> dict[str, Said]:
    """Every document that names an entity, with the first sentence that does."""
    columns = ["title", "aliases", "text_unit_ids"]
    entity = snapshot.by_key("entities", [id], "id", columns).to_pylist()[0]
    forms = [entity["title"], *entity["aliases"]]
    rows = snapshot.by_key("text_units", entity["text_unit_ids"], "id", ["id", "n", "document_id"])
    first: dict[str, tuple[int, str]] = {}
    for row in rows.to_pylist():
        held = first.get(row["document_id"])
        if held is None or row["n"] < held[0]:
            first[row["document_id"]] = (row["n"], row["id"])
    return {
        document: partial(_sentence, snapshot, unit, number, forms)
        for document, (number, unit) in first.items()
    }


def _sentence(snapshot: Snapshot, unit: str, number: int, forms: Sequence[str]) -> str:
    rows = snapshot.by_key("text_units", [unit], "id", ["text"]).to_pylist()
    text = readable(rows[0]["text"]) if rows else ""
    said = [text[start:end] for start, end in sentences(text)]
    named = [one for one in said if any(form in one for form in forms)]
    best = next(filter(says_something, named), named[0] if named else "")
    return f"[t{number}] {one_line(best, TELLING)}" if best else ""


# ---- statements ----------------------------------------------------------------------------------


def _statements(
    snapshot: Snapshot, result: ListResult, filters: Sequence[str], query: str
) -> tuple[str, list[Line]]:
    """The timeline of what passes the filters: of a question, of a community (c12), or of all."""
    kept, narrowed = local.narrowed(snapshot, filters)
    result.hint = local.told(result.hint, kept)
    columns = [*context.PASSAGE, "entity_ids"]
    key, values = "document_id", list(documents(snapshot))
    if _COMMUNITY.fullmatch(query):
        found = snapshot.by_key("reports", [int(query[1:])], "n", ["text_unit_ids"]).to_pylist()
        if not found:
            raise NotFound(f"there is no community {query}", "local_search() gives the topics")
        units = snapshot.by_key("text_units", found[0]["text_unit_ids"], "id", ["n"])
        key, values = "n", units["n"].to_pylist()
    elif query:
        key, values = "id", _found(narrowed, query, kept)
    elif kept is not None:
        values = [id for id in values if kept.passage(id, ())]
    rows = snapshot.by_key("passages", values, key, columns).to_pylist()
    if kept is not None:
        rows = [row for row in rows if kept.passage(row["document_id"], row["entity_ids"])]
        if wanted := {row["id"] for row in kept.first}:
            rows = [row for row in rows if not wanted.isdisjoint(row["entity_ids"])]
        timely = kept.timely(snapshot, [row["id"] for row in rows])
        rows = [row for row in rows if row["id"] in timely]
    rows.sort(key=lambda row: row["n"])
    listed, undated = timeline.of_passages(
        snapshot, rows[:PASSAGES], lambda one: kept is None or kept.speaks_of(one.days)
    )
    about = f' on "{one_line(query, 80)}"' if query else ""
    parts = [f"{counted(len(listed), 'statements')}{about} by time."]
    parts.append(
        f"{counted(undated, 'statements')} without a date are left out." if undated else ""
    )
    if len(rows) > PASSAGES:
        parts.append(f"Read are the first {PASSAGES} of {counted(len(rows), 'passages')}.")
    return " ".join(filter(None, parts)), [partial(str, one.item().text) for one in listed]


def _found(narrowed: Snapshot, query: str, kept: Filters | None) -> list[str]:
    found = local.find(narrowed, query, filters=kept)
    return [] if local.unheard_of(found) else [one.id for one in found.passages[:FOUND]]


# ---- periods -------------------------------------------------------------------------------------


def _periods(
    snapshot: Snapshot, ids: Sequence[str], dates: Mapping[str, str], length: int
) -> list[Line]:
    """One line a period: how many documents, and names that this period has more than others."""
    names = characteristic(snapshot, ids, dates, length)
    documents_of = Counter(dates[id][:length] for id in ids if dates[id])
    lines = []
    for period in sorted(documents_of):
        said = f": {', '.join(names[period])}" if names.get(period) else ""
        lines.append(f"- {period} ({counted(documents_of[period], 'documents')}){said}")
    return [partial(str, line) for line in lines]


def characteristic(
    snapshot: Snapshot, ids: Sequence[str], dates: Mapping[str, str], length: int
) -> dict[str, list[str]]:
    """By period (the first `length` characters of a date): up to NAMES names that it has more than others."""
    period = {id: dates[id][:length] for id in ids if dates[id]}
    rows = snapshot.rows("passages", "", ["document_id", "entity_ids"])
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for id, named_here in zip(
        rows["document_id"].to_pylist(), rows["entity_ids"].to_pylist(), strict=True
    ):
        if id in period:
            counts[period[id]].update(named_here)
    within: Counter[str] = Counter()
    for counter in counts.values():
        within.update(counter.keys())
    best = {
        name: sorted(
            counter, key=lambda one: (-counter[one] * math.log(1 + len(counts) / within[one]), one)
        )[: NAMES * 3]
        for name, counter in counts.items()
    }
    wanted = list(dict.fromkeys(id for some in best.values() for id in some))
    found = snapshot.by_key("entities", wanted, "id", ["id", "title"])
    title = dict(zip(found["id"].to_pylist(), found["title"].to_pylist(), strict=True))
    return {
        name: [one_line(title[id], 40) for id in some if id in title][:NAMES]
        for name, some in best.items()
    }


# ---- outline -------------------------------------------------------------------------------------


def _outline(snapshot: Snapshot, asked: str) -> tuple[str, list[Line]]:
    """The headings of a document, each with an id that `get_source` takes; without headings, how
    each of its text units begins."""
    facts = documents(snapshot)
    id = next(
        (id for id, fact in facts.items() if asked in (fact["document"][0], id, fact["uri"])), ""
    )
    if not id:
        folded = asked.casefold()
        same = [
            id for id, fact in facts.items() if folded in map(str.casefold, fact["document"][2:])
        ]
        id = same[0] if len(same) == 1 else ""
    if not id:
        raise NotFound(
            f"there is no document {asked[:80]!r}", "list_documents gives the ids of all"
        )
    alias, _, title, uri, _ = facts[id]["document"]
    text = snapshot.by_key("documents", [id], "id", ["text"])["text"].to_pylist()[0]
    columns = ["id", "n", "part", "parts", "position", "char_start", "text"]
    rows = sorted(
        snapshot.by_key("passages", [id], "document_id", columns).to_pylist(),
        key=lambda row: row["position"],
    )
    head = f"[{alias}] {one_line(title, 120)} ({uri}): {len(text):,} characters, {counted(len(rows), 'passages')}."
    if (source := parse(uri, text)) and len(source.symbols) > 1:
        return head, _definitions(alias, text, source)
    listed = list(headings(text))
    if listed:
        return head, [
            partial(str, f"{'  ' * (level - 1)}- [{alias}#{number}] {readable(words)}")
            for number, (_, level, words) in enumerate(listed, 1)
        ]
    return head, [
        partial(str, f"- [{passage_alias(row)}] {one_line(readable(row['text'][:400]), TELLING)}")
        for row in rows
    ]


def _definitions(alias: str, text: str, source: SourceFile) -> list[Line]:
    """The definitions of a source file with their lines, signatures and first lines of docstrings."""
    lines, depth = Lines(text), source.module.count(".") + 1
    said = []
    for number, one in enumerate(source.symbols[1:], 1):
        step = "  " * (one.name.count(".") - depth)
        place = f"lines {lines.at(one.start)}-{lines.at(max(one.end - 1, one.start))}"
        signature = one_line(one.signature or f"{one.kind} {one.short}", 160)
        doc = f": {one_line(one.doc, TELLING)}" if one.doc else ""
        said.append(partial(str, f"{step}- [{alias}#{number}] {signature}, {place}{doc}"))
    return said
