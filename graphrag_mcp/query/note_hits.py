"""Notes in the results of searches.

A note takes no place among the passages of documents (hits.py, `apart`). One that answers the question, by
the same scores, stands above them, whole, so that one call is enough; of others that are on the question two are
named in a line each, and the rest are counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from graphrag_mcp.packing.page import OVERHEAD, Page
from graphrag_mcp.query import hits, note_sources, render, times
from graphrag_mcp.query.hits import Source
from graphrag_mcp.query.rank import Ranked
from graphrag_mcp.text import quote
from graphrag_mcp.text.prose import readable
from graphrag_mcp.text.terms import counted
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.trust.fencing import quoted
from graphrag_mcp.types import Citation, SearchResult

# Share of the best score from which a note answers. Ten notes of an agent on 668 articles: each is the best hit for
# the question that it was written for, and for none of 12 other questions on them is one above 0.86.
ANSWERS = 0.9
NAMED = 2  # other notes that are named in a line
ON_IT = 0.5  # share of the best score from which they are
CHARACTERS = 8_000  # of a note that is shown
TOKENS = 2_500  # that a note may take beside the default room of a result
SHARE = 3 / 4  # of a room that was asked for, which notes may take
REST = 8  # part of the default room that is left for passages beside a note whose sources are as they were


@dataclass(frozen=True, slots=True)
class Found:
    """A note with its best passage, and the share of the best score that this has."""

    source: Source
    passage: Ranked
    share: float

    @property
    def key(self) -> tuple[str, str]:
        return self.source.corpus, self.passage.document_id

    @property
    def answers(self) -> bool:
        return self.share >= ANSWERS

    @property
    def is_sure(self) -> bool:
        """Does the note name sources, and are all of them as they were?"""
        found = note_sources.sources(self.source.snapshot, self.passage.document_id)
        return bool(found) and not note_sources.since(found)

    def hits(self) -> list[hits.Hit]:
        """The passage as it is shown; [] where its row is damaged."""
        return hits.of_ranked([self.source], [(self.share, 0, self.passage)])


def on(sources: Sequence[Source]) -> list[Found]:
    """The notes that are on the question of a search, best first."""
    scores = [one.score * source.factor for source in sources for one in source.found.passages]
    best = max(scores, default=0.0) or 1.0
    passages = [
        Found(source, passage, passage.score * source.factor / best)
        for source in sources
        for notes in [hits.notes_apart(source)]
        for passage in source.found.passages
        if passage.document_id in notes
    ]
    passages.sort(key=lambda found: (-round(found.share, 9), found.key))
    notes: dict[tuple[str, str], Found] = {}
    for found in passages:
        if found.share >= ON_IT:
            notes.setdefault(found.key, found)
    return list(notes.values())


def put(result: SearchResult, sources: Sequence[Source], budget: int, beside: int) -> int:
    """Put the notes on a question into the text of a result, and what they cite into its citations: the
    budget of the whole text then. `beside`: tokens that a note may take beside the budget; 0 where the caller gave
    the budget. Beside a note that may be wrong by now, or that names no sources, passages have their whole room."""
    notes = on(sources)
    if not notes:
        return budget
    blocks = [result.text] if result.text else []
    room = int(SHARE * (budget - OVERHEAD - count_tokens(f"{result.hint} {result.text}")))
    if notes[0].answers:
        rest = budget // REST if notes[0].is_sure else budget  # for passages
        text, cited = whole(notes.pop(0), sources, budget + beside - rest if beside else room)
        blocks.append(text)
        result.citations.append(cited)
        price = count_tokens(text)
        room -= price
        if beside:
            result.beside = max(price + rest - budget, 0)
            budget = price + rest
    named = notes[:NAMED] if beside or room > 0 else []
    for text, cited in lines(named, sources):
        blocks.append(text)
        result.citations += cited
    if unnamed := len(notes) - len(named):
        blocks.append(f'{counted(unnamed, "more notes")}: filters=["kind=note"].')
    result.text = "\n".join(blocks)
    return budget


def put_once(
    page: Page, sources: Sequence[Source], shown: set[tuple[str, str]], beside: int
) -> int:
    """Add the note that answers one of several questions to a page, and give the number of tokens
    by which the page grew. The note is added whole if it has at most `beside` tokens and the
    page has room for its characters, else as a line. A note in `shown` is not added again."""
    note = next(iter(on(sources)), None)
    if note is None or not note.answers or note.key in shown:
        return 0
    text, cited = whole(note, sources, max(beside, 0) or CHARACTERS)
    price = count_tokens(text) + 2
    if price <= beside:
        page.room += price
        if page.add(text, [cited]):
            shown.add(note.key)
            return price
        page.room -= price  # it has more characters than the page
    for line, citations in lines([note], sources):
        page.add(line, citations)
    return 0


def whole(note: Found, sources: Sequence[Source], room: int) -> tuple[str, Citation]:
    """A note with its date, its writer and what became of its sources, whole where it has no more tokens than
    `room`, and its citation."""
    snapshot, (hit,) = note.source.snapshot, note.hits()
    fact = times.documents(snapshot)[hit.document]
    (row,) = snapshot.by_key("documents", [hit.document], "id", ["text"]).to_pylist()
    passage = {"document_id": hit.document, "text": row["text"], "char_start": 0}
    body = readable(note_sources.with_ids(snapshot, passage))
    first, _, below = body.partition("\n")
    if first.lstrip("# ").strip().casefold() == hit.citation.title.strip().casefold():
        body = below  # the title stands above it
    body = body.strip()
    id = f"{hit.corpus}/{fact['document'][0]}" if hit.corpus else fact["document"][0]
    remark = note_sources.told(snapshot, hit.document, sure=True, day=fact["date"])
    head = f"[{id}] {hit.name} {remark}"
    room -= count_tokens(head) + 40
    shown = body[:CHARACTERS]
    if count_tokens(shown) > room:
        shown = quote.excerpt(shown, hits.worth_of(sources), max(room, render.PART))
    rest = "" if shown == body else f"\nA part of {id}: get_source gives all of it."
    place = {"id": id, "char_start": 0, "char_end": len(row["text"]), "place": "", "text": shown}
    place |= {"line_start": 1, "line_end": 1 + row["text"].rstrip("\n").count("\n")}
    return f"{head}\n{quoted(shown)}{rest}\n", hit.citation.model_copy(update=place)


def lines(notes: Sequence[Found], sources: Sequence[Source]) -> list[tuple[str, list[Citation]]]:
    """A line for each note, with its best sentence on the question, and what it cites."""
    worth, found = hits.worth_of(sources), list[tuple[str, list[Citation]]]()
    for hit in (hit for note in notes for hit in note.hits()):
        sentence = render.sentence_of(hit, worth)
        found.append((render.line_of(hit, worth), hit.cited(sentence)))
    return found
