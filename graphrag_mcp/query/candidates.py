"""The passages that may answer a question: what full text and vectors propose, what the titles that
the question or a high passage names add, and the neighbours of high passages. Filters act here."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_mcp.query import summaries
from graphrag_mcp.query.copies import first_of_equal
from graphrag_mcp.query.question import Question
from graphrag_mcp.store import tables
from graphrag_mcp.store.tables import Snapshot, rows_of, values_of
from graphrag_mcp.text.terms import lists_of
from graphrag_mcp.text.uris import file_and_key

PROPOSED = 200  # passages that full text proposes, and as many by vector
TITLES = 80  # titles that are looked up
LEADS = 2  # first passages of a document with such a title or summary
OF_ONE = 100  # of PROPOSED that one file or one text proposes at most: 1,500 rows of a sheet hide no document
ROWS = 20_000  # passages among which others are looked for
END = 60  # characters of the terms by which copies are looked for
CROWDED = 5  # a title of more documents than this leads to none
K1, B = 1.2, 0.75  # BM25, the usual values
# A word of the summary counts as one that the passage repeats without end. Questions that share no word
# with their text: recall@5 of 40 on 45 news articles 2.5 without summaries, 67.5 with them.
IN_SUMMARY = K1 + 1

COLUMNS = ("id", "document_id", "title_id", "position", "entity_ids", "terms", "n_terms", "uri")
PLACE = ("id", "uri", "terms")
Keep = Callable[[pa.Table], pa.Table]  # of rows of passages those that pass the filters
Place = tuple[str, int]  # document, position of a passage in it


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage with what it shares with the question: BM25 (0 or more) of its words and of the summary
    of its text, the cosine of its vector (None without vectors), and the share of the question, 0 to 1,
    that the summary holds. When it is ranked: `total` as the features add up, and `score` relative to the best."""

    id: str
    document_id: str = ""
    title_id: str = ""
    position: int = 0
    entity_ids: Sequence[str] = ()
    terms: str = ""  # joined with blanks
    bm25: float = 0.0
    cosine: float | None = None
    summary: float = 0.0
    uri: str = ""
    total: float = 0.0
    score: float = 0.0

    def holds(self, term: str) -> bool:
        return term in self.terms and f" {term} " in f" {self.terms} "


@dataclass(frozen=True, slots=True)
class Candidates:
    """All candidates by id. `linked`: how many of them only a title or a neighbour added;
    `summarised`: the share of the question that the summary of a passage's text holds."""

    passages: Mapping[str, Passage]
    linked: int = 0
    summarised: Mapping[str, float] = field(default_factory=dict)


def find(snapshot: Snapshot, question: Question, keep: Keep | None = None) -> Candidates:
    """The passages that hold a term of the question, best first by full text, those that are nearest
    to its vector, and those of the texts whose summaries hold a term: at most PROPOSED of each."""
    rows = _proposed(snapshot, list(question.terms))
    summarised, first = _summarised(snapshot, question)
    proposed = values_of(rows["id"])
    cosines = _near(snapshot, question.vector, list(dict.fromkeys([*proposed, *first]))) if question.vector else {}
    more = sorted({*first, *cosines}.difference(proposed))
    rows = pa.concat_tables([rows.select(COLUMNS), snapshot.by_key("passages", more, "id", COLUMNS)])
    found = {candidate.id: candidate for candidate in _read(snapshot, question, rows, cosines, keep, summarised)}
    return Candidates(found, summarised=summarised)


def _summarised(snapshot: Snapshot, question: Question) -> tuple[dict[str, float], list[str]]:
    """By passage the share of the question that the summary of its text holds, and the ids of the
    first passages of each such text."""
    matched = summaries.best(snapshot, question.summary_terms, PROPOSED)
    documents = sorted({document for (document, _, _), _ in matched})
    names = ["document_id", "char_start", "id"]
    rows = snapshot.by_key("passages", documents, "document_id", names)
    inside = lists_of((row[0], row[1:]) for row in sorted(rows_of(rows)))
    share: dict[str, float] = {}
    first: list[str] = []
    for (document, start, end), value in matched:
        ids = [id for at, id in inside.get(document, ()) if start <= at < end]
        share |= dict.fromkeys(ids, value)
        first += ids[:LEADS]
    return share, first


def extend(
    snapshot: Snapshot, question: Question, found: Candidates, high: Sequence[Passage], keep: Keep | None = None
) -> Candidates:
    """The candidates with the first passages of the documents whose title the question or a high
    passage names, and with the passages next to the high ones. Of these titles, the first TITLES are
    looked up."""
    titles = [*question.named, *(id for candidate in high for id in candidate.entity_ids)]
    titled = _titled(snapshot, list(dict.fromkeys(titles))[:TITLES])
    places = {(candidate.document_id, candidate.position + step) for candidate in high for step in (-1, 1)}
    rows = pa.concat_tables([titled, _at(snapshot, places - {place_of(candidate) for candidate in high})])
    new = pc.invert(pc.is_in(rows["id"], pa.array(list(found.passages), pa.string())))
    rows = rows.filter(new)
    cosines: Mapping[str, float] = {}
    if question.vector and rows.num_rows:
        ids = values_of(rows["id"])
        cosines = tables.similarities(snapshot, "passages", question.vector, 1, ids)
    added = {candidate.id: candidate for candidate in _read(snapshot, question, rows, cosines, keep, found.summarised)}
    return Candidates({**found.passages, **added}, len(added), found.summarised)


def _proposed(snapshot: Snapshot, terms: Sequence[str]) -> pa.Table:
    """The PROPOSED best passages by full text, at most OF_ONE of a file and of a text."""
    rows = snapshot.full_text("passages", terms, PROPOSED, COLUMNS)
    if not _is_crowded(rows):
        return rows
    every = snapshot.full_text("passages", terms, ROWS, PLACE)
    return snapshot.by_key("passages", _of_each(every), "id", COLUMNS)


def _near(snapshot: Snapshot, vector: bytes, known: Sequence[str]) -> dict[str, float]:
    """Similarities of the PROPOSED nearest passages, at most OF_ONE of a file and of a text, and of those that
    are `known`."""
    near = tables.similarities(snapshot, "passages", vector, PROPOSED, known)
    if _is_crowded(snapshot.by_key("passages", list(near.keys() - set(known)), "id", PLACE)):
        near = tables.similarities(snapshot, "passages", vector, ROWS, known)
        rows = snapshot.by_key("passages", sorted(near, key=lambda id: (-near[id], id)), "id", PLACE)
        near = {id: near[id] for id in {*_of_each(rows), *known} if id in near}
    return near


def _is_crowded(rows: pa.Table) -> bool:
    return any(
        max(Counter(of).values(), default=0) > OF_ONE
        for of in zip(*map(_file_and_text, rows_of(rows.select(PLACE))), strict=True)
    )


def _of_each(rows: pa.Table) -> list[str]:
    """The first PROPOSED ids of these rows, at most OF_ONE of a file and of a text."""
    taken = Counter[str]()
    ids: list[str] = []
    for row in rows_of(rows.select(PLACE)):
        of = _file_and_text(row)
        taken.update(of)
        if all(taken[key] <= OF_ONE for key in of):
            ids.append(row[0])
    return ids[:PROPOSED]


def _file_and_text(row: Sequence[str]) -> tuple[str, str]:
    """The file of a row of PLACE, and what stands for its text: the end of its terms, since titles stand first."""
    _, uri, terms = row
    return file_and_key(uri)[0], terms[-END:]


def copies(snapshot: Snapshot, passages: Collection[Passage]) -> dict[str, str]:
    """Passages with the same text as another candidate: the id of each, with the first id of those that
    have this text."""
    by_end = lists_of((candidate.terms[-END:], candidate.id) for candidate in passages if candidate.terms)
    alike = [id for ids in by_end.values() if len(ids) > 1 for id in ids]
    if not alike:
        return {}
    rows = rows_of(snapshot.by_key("passages", alike, "id", ["id", "text"]))
    return first_of_equal(rows)


def place_of(passage: Passage) -> Place:
    return passage.document_id, passage.position


def _titled(snapshot: Snapshot, titles: Sequence[str]) -> pa.Table:
    """The first passages of the documents with these titles, without titles of many documents."""
    rows = snapshot.by_key("passages", titles, "title_id", COLUMNS)
    rows = rows.filter(pc.less(rows["position"], pa.scalar(LEADS)))
    documents = lists_of({*rows_of(rows.select(["title_id", "document_id"]))})
    rare = [title for title, ids in documents.items() if len(ids) <= CROWDED]
    return rows.filter(pc.is_in(rows["title_id"], pa.array(sorted(rare), pa.string())))


def _at(snapshot: Snapshot, places: Collection[Place]) -> pa.Table:
    documents = sorted({document for document, _ in places})
    rows = snapshot.by_key("passages", documents, "document_id", ["id", "document_id", "position"])
    ids = [id for id, *place in rows_of(rows) if tuple(place) in places]
    return snapshot.by_key("passages", ids, "id", COLUMNS)


def _read(
    snapshot: Snapshot,
    question: Question,
    rows: pa.Table,
    cosines: Mapping[str, float],
    keep: Keep | None,
    summarised: Mapping[str, float],
) -> Iterable[Passage]:
    rows = rows.select(COLUMNS)
    score = bm25(snapshot, question.terms)
    field = IN_SUMMARY * math.fsum(question.summary_terms.values())
    for id, document, title, position, entities, terms, length, uri in rows_of(keep(rows) if keep else rows):
        share = summarised.get(id, 0.0)
        words = score(terms, length) + field * share
        yield Passage(id, document, title, position, entities, terms, words, cosines.get(id), share, uri)


def bm25(snapshot: Snapshot, worth: Mapping[str, float]) -> Callable[[str, int], float]:
    """Okapi BM25 (Robertson and Zaragoza 2009) for terms with their weighted idf, as a function of the
    terms of a row, joined with blanks, and of how many they are.

    Counting in the joined string is ten times as fast as splitting it. A word that follows itself
    at once ("Duran Duran") counts as one there, which changes next to nothing."""
    counters = snapshot.manifest.counters
    average = counters.get("passage_terms", 0) / max(counters.get("passages", 0), 1) or 1.0
    needles = [(term, f" {term} ", idf * (K1 + 1)) for term, idf in worth.items()]

    def score(terms: str, length: int) -> float:
        spaced = f" {terms} "
        norm = K1 * (1 - B + B * length / average)
        total = 0.0
        for term, needle, idf in needles:
            if term in terms:  # most rows do not hold it, and this is faster than with blanks
                count = spaced.count(needle)
                total += idf * count / (count + norm)
        return total

    return score
