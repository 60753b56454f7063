"""The map of a corpus: its topics, the largest first, each with its share of the documents, its names and a
sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from graphrag_mcp.packing.page import Page, finished
from graphrag_mcp.query import context, groups, summaries, title_list, topics
from graphrag_mcp.query.filters import Part
from graphrag_mcp.query.notes import joined
from graphrag_mcp.text.terms import counted
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.types import SearchResult

SHARES = 15  # topics that share the room of a map
LISTED = 20  # tokens of a topic in the list of those without an entry
ROOM = 140  # tokens of a topic for which the topics inside it are shown
UNASKED = "The question was empty; this is an overview. Ask with query=..."
MANY = 100  # documents from which on a map says how to list the titles of all


def overview(
    result: SearchResult,
    corpora: Sequence[Part],
    page: Page,
    *,
    level: int = -1,
    offset: int = 0,
    cursor: Callable[[tuple[int, ...]], str] = lambda _: "",
) -> SearchResult:
    """The result with the map of each corpus, which gets an equal share of the page. The map of a
    single corpus has pages."""
    if not offset:  # beside the text, which is a quotation
        missing = " ".join(summaries.missing(snapshot) for _, snapshot, _ in corpora).strip()
        result.hint = joined(result.hint, missing)
        page.room -= count_tokens(missing)
    left = documents = 0
    for number, part in enumerate(corpora):
        of_corpus = page.lent(len(corpora) - number)
        shown, rest = _add_map(of_corpus, part, level, offset)
        page.take(of_corpus)
        left += rest if len(corpora) == 1 else 0
        result.communities += shown
        documents += len(set(topics.count(part[1]).documents.values()))
    result.coverage |= {"documents": documents, "topics": left + offset + len(result.communities)}
    if not result.communities:  # another page like this one would have no topic either
        left = 0
    return finished(result, page, left, offset + len(result.communities), cursor)


def _add_map(page: Page, part: Part, level: int, first: int) -> tuple[list[str], int]:
    """Add the topics of a level to the page, those of most documents first, from the place `first` on:
    ids of those that are shown, and how many have had no room. Each document counts in one topic, and
    the last line says how many topics and documents are not shown, so that the shares add up."""
    corpus, snapshot, kept = part
    known, prefix = topics.count(snapshot), f"{corpus}/" if corpus else ""
    found = topics.of_level(snapshot, level, kept)
    documents: set[str] = set().union(*(topic.documents for topic in found))
    total = topics.number_of(known, documents)
    if not first:
        of = f" in corpus {corpus}" if corpus else ""
        rows = "" if total == len(documents) else " In shares the rows of a sheet count as one."
        titles = "" if kept is not None or len(documents) < MANY else title_list.advice(snapshot)
        page.add(f"{counted(len(documents), 'documents')} on {counted(len(found), 'topics')}{of}.{rows}{titles}\n")
    shown: list[str] = []
    reserve = min(len(found) * LISTED, page.room // 4)  # for the rest, by title
    page.room -= reserve
    for number, topic in enumerate(found[first:], first):
        topics.describe(snapshot, topic, kept, corpus)
        share = page.room // max(min(len(found) - number, SHARES), 1)
        head = f"[{prefix}c{topic.n}] {topic.title}: {topics.share_line(snapshot, topic, total)}"
        lines = [head]
        if topic.names:
            lines.append(f"  Names: {', '.join(topic.names)}")
        if topic.share > topics.WIDE or share > ROOM:
            if below := topics.inside(snapshot, topic, kept, prefix):
                lines.append(f"  Inside: {below}")
        lines += [f"  - {text} [{place.id}]{context.where(place)}" for text, place in topic.said]
        cited = [place for _, place in topic.said]
        if not page.add("\n".join(lines), cited) and not page.add(head):
            break
        shown.append(f"{prefix}c{topic.n}")
    rest = found[first + len(shown) :]
    page.room += reserve
    more = sum(len(topic.main) for topic in rest)
    others = f"{counted(len(rest), 'more topics')} with {counted(more, 'more documents')}"
    if rest and not page.add(f"{others}: {topics.listed(snapshot, rest, kept, prefix)}."):
        page.add(f"{others}.")
    if not first:
        passing: set[str] | None = None
        if kept is not None and kept.narrows:
            # Notes are in no topic.
            passing = {known.documents[unit] for unit in kept.units if unit in known.documents}
        page.add(groups.overview(snapshot, passing, prefix))
    return shown, len(rest)
