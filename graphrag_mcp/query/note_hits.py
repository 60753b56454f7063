"""Notes in the results of searches.

A note takes no place among the passages of documents (`Source.notes`). One that answers the question, by
the same scores, stands above them, whole, so that one call is enough; of others that are on the question two are
named in a line each, and the rest are counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from graphrag_mcp.packing.page import Page
from graphrag_mcp.query import hits, note_sources, render, times
from graphrag_mcp.query.candidates import Passage
from graphrag_mcp.query.hits import Hit, Source, Worth
from graphrag_mcp.store.tables import values_of
from graphrag_mcp.text import quote
from graphrag_mcp.text.terms import counted
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.trust.fencing import quoted
from graphrag_mcp.types import Citation

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
class Note:
    """A note on a question: its best passage, and the share of the best score that this has."""

    source: Source
    passage: Passage
    share: float

    @property
    def key(self) -> tuple[str, str]:
        return self.source.corpus, self.passage.document_id

    @property
    def is_sure(self) -> bool:
        """Does the note name sources, and are all of them as they were?"""
        found = note_sources.sources(self.source.snapshot, self.passage.document_id)
        return bool(found) and not note_sources.since(found)

    def hits(self) -> list[Hit]:
        """The passage as it is shown; [] where its row is damaged."""
        return hits.of_ranked([self.source], [(self.share, 0, self.passage)])


def on(sources: Sequence[Source]) -> list[Note]:
    """The notes that are on the question of a search, best first."""
    scores = [one.score * source.factor for source in sources for one in source.found.passages]
    best = max(scores, default=0.0) or 1.0
    found = [
        Note(source, passage, passage.score * source.factor / best)
        for source in sources
        for passage in source.found.passages
        if passage.document_id in source.notes
    ]
    found.sort(key=lambda note: (-round(note.share, 9), note.key))
    best_of: dict[tuple[str, str], Note] = {}
    for note in found:
        if note.share >= ON_IT:
            best_of.setdefault(note.key, note)
    return list(best_of.values())


def add(
    page: Page, sources: Sequence[Source], beside: int, named: int = NAMED, shown: set[tuple[str, str]] | None = None
) -> int:
    """Add the notes on a question to a page: the one that answers, lines of `named` others, and how many more there
    are. Gives the tokens by which the page grew for them, at most `beside`; of a page that may not grow they take a
    SHARE. Beside a note that may be wrong by now, or that names no sources, passages have their whole room. `shown`:
    the notes that stand whole on this page already, which are not added again."""
    shown, worth, grown = set() if shown is None else shown, hits.worth_of(sources), 0
    notes = [note for note in on(sources) if note.key not in shown]
    room = int(SHARE * page.room)
    if notes and notes[0].share >= ANSWERS and (read := notes[0].hits()):
        rest = page.room // REST if notes[0].is_sure else page.room  # for passages
        most = page.room + beside - rest if beside else room
        text, cited = whole(notes[0], read[0], worth, most)
        price = count_tokens(text) + 2
        grown = min(max(price + rest - page.room, 0), beside)
        page.room += grown
        if page.add(text, [cited]):
            shown.add(notes.pop(0).key)
            room -= price
            if beside:
                page.room = min(page.room, rest)
    for note in notes[:named] if beside or room > 0 else ():
        for hit in note.hits():
            page.add(render.line_of(hit, worth), hit.cited(render.sentence_of(hit, worth)))
    if named and (unnamed := len(notes[named:])):
        page.add(f'{counted(unnamed, "more notes")}: filters=["kind=note"].')
    return grown


def whole(note: Note, hit: Hit, worth: Worth, room: int) -> tuple[str, Citation]:
    """A note with its date, its writer and what became of its sources, whole where it has no more tokens than
    `room`, and its citation; of a note of which filters keep some passages alone, its best one."""
    snapshot, kept = note.source.snapshot, note.source.filters
    fact = times.documents(snapshot)[hit.document]
    alias = f"{hit.corpus}/{fact.alias}" if hit.corpus else fact.alias
    body, cited = hit.body, hit.citation
    if hit.whole or kept is None or not kept.of_passages:
        (text,) = values_of(snapshot.by_key("documents", [hit.document], "id", ["text"])["text"])
        row = {"document_id": hit.document, "text": text, "char_start": 0}
        body = hits.body_of(note_sources.with_ids(snapshot, row), cited.title, hit.uri)
        place = {"id": alias, "char_start": 0, "char_end": len(text), "place": ""}
        place |= {"line_start": 1, "line_end": 1 + text.rstrip("\n").count("\n")}
        cited = cited.model_copy(update=place)
    remark = note_sources.remark(snapshot, hit.document, sure=True, day=fact.date)
    head = f"[{cited.id}] {hit.name} {remark}"
    room -= count_tokens(head) + 40
    shown = body[:CHARACTERS]
    if count_tokens(shown) > room:
        shown = quote.excerpt(shown, worth, max(room, render.PART))
    is_all = shown == body and cited.id == alias
    rest = "" if is_all else f"\nA part of {alias}: get_source gives all of it."
    return f"{head}\n{quoted(shown)}{rest}\n", cited.model_copy(update={"text": shown})
