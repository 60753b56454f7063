"""The titles of all documents by topic, a line each, and the call that lists them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import PurePosixPath

from graphrag_mcp.packing.budget import HIGHEST, one_line
from graphrag_mcp.query import context, hits, note_sources, render, times, topics
from graphrag_mcp.query.copies import equal_documents
from graphrag_mcp.query.filters import Filters
from graphrag_mcp.store.tables import Snapshot, values_of
from graphrag_mcp.text import quote
from graphrag_mcp.text.prose import readable
from graphrag_mcp.text.terms import counted, lists_of
from graphrag_mcp.text.tokens import count_tokens

BEGINNING = 6_000  # characters of a document that are read for its line
TITLE = 80  # characters of a title in the list of all
# Of how a document without a title begins. With 80 the list of 668 news articles had 45,000 characters, a map did not
# name the call, and of three agents with 120,000 characters to read none made it.
BEGINS = 40
VERSIONS = 1 + render.ALSO  # documents of one title that share a line
SAMPLE = 40  # lines that are measured to tell how long the list is
# Tokens of a page of it: some clients cut a result of more than 30,000 characters.
ONE_PAGE = 10_000

Shown = Callable[[], str]  # a line, made when it is shown


def advice(snapshot: Snapshot) -> str:
    """How to list the titles of all documents, and how long that list is; "" for one that is longer than any result.
    Every k-th line is measured, and to the tokens a tenth is added."""
    facts, notes = times.documents(snapshot), note_sources.ids(snapshot)
    every = lines(snapshot, [id for id in facts if id not in notes], None, by_topic=True)
    sample = [line() for line in every[:: math.ceil(len(every) / SAMPLE)]]
    share = len(every) / len(sample)
    characters = share * math.fsum(len(line) + 1 for line in sample)
    tokens = 1.1 * share * math.fsum(count_tokens(line) + 2 for line in sample)
    if tokens > HIGHEST:
        return ""
    pages = math.ceil(tokens / ONE_PAGE)
    on_pages = f", on {pages} pages" if pages > 1 else ""
    return (
        f" The titles of all, about {round(characters / 1000)},000 characters{on_pages}: "
        f"list_documents(max_tokens={math.ceil(tokens / pages / 100) * 100})."
    )


def beginning(snapshot: Snapshot, id: str) -> str:
    rows = values_of(snapshot.by_key("documents", [id], "id", ["text"])["text"])
    text = rows[0][:BEGINNING] if rows else ""
    if note_sources.is_note(snapshot, id):
        row = {"document_id": id, "text": text, "char_start": 0}
        text = note_sources.with_ids(snapshot, row)
    return readable(text)


def lines(snapshot: Snapshot, ids: Sequence[str], kept: Filters | None, by_topic: bool) -> list[Shown]:
    """A line for each title, in the order of `ids` or below their topics, the largest topic first. Documents
    without a title share a line where their texts are equal. Of a title that more than VERSIONS documents have, each
    has a line, with its path."""
    facts, equal = times.documents(snapshot), equal_documents(snapshot)
    untitled = {id for id in ids if hits.untitled(facts[id])}
    same = lists_of((equal.get(id, id) if id in untitled else facts[id].title.casefold(), id) for id in ids)
    first = context.first_ids(snapshot, ids)
    names = hits.names_of(snapshot)
    suffixes = {PurePosixPath(names[id]).suffix for id in untitled}
    # Names without the suffix are ids too.
    suffix = suffixes.pop() if len(suffixes) == 1 else ""
    shown: dict[str, Shown] = {}
    for group in same.values():
        for part in [group] if len(group) <= VERSIONS else [[id] for id in group]:
            aliases = [f"[{first.get(id) or facts[id].alias}]" for id in part]
            title = names[part[0]] if len(part) == 1 else facts[part[0]].title
            line = f"- {' '.join(aliases)} {one_line(title, TITLE)}"
            if part[0] in untitled:
                files = ", ".join(names[id].removesuffix(suffix) for id in part)
                shown[part[0]] = partial(_untitled, snapshot, part[0], files, line)
            else:
                shown[part[0]] = partial(str, line)
    if not by_topic:
        return [shown[id] for id in ids if id in shown]
    found: list[Shown] = []
    for topic in topics.of_main(snapshot, kept):
        of_topic = [id for id in ids if id in topic.main]
        rows = [shown.pop(id) for id in of_topic if id in shown]
        if rows:
            rows[0] = partial(_below, snapshot, topic, kept, len(of_topic), rows[0])
        found += rows
    return [*found, *(shown[id] for id in ids if id in shown)]


def _below(snapshot: Snapshot, topic: topics.Topic, kept: Filters | None, number: int, title: Shown) -> str:
    topics.describe(snapshot, topic, kept)
    return f"[c{topic.n}] {topic.title}, {counted(number, 'documents')}:\n{title()}"


def _untitled(snapshot: Snapshot, id: str, files: str, otherwise: str) -> str:
    """`- note, copy: how it begins`: the names of files are ids too. A text without words has the line of a title."""
    begins = quote.lead(beginning(snapshot, id), BEGINS)
    return f"- {files}: {begins}" if begins else otherwise
