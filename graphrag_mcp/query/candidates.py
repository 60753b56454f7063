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
from graphrag_mcp.text.citing import file_and_key
from graphrag_mcp.text.terms import lists_of

PROPOSED = 200  # passages that full text proposes, and as many by vector
TITLES = 80  # titles that are looked up
LEADS = 2  # first passages of a document with such a title or summary
MOST = 800  # passages that are proposed where most of PROPOSED have the same texts
ROWS = 20_000  # passages among which others are looked for where most of PROPOSED are rows of one sheet
END = 60  # characters of the terms by which copies are looked for; titles stand at the beginning
CROWDED = 5  # a title of more documents than this leads to none
K1, B = 1.2, 0.75  # BM25, the usual values
# A word of the summary counts as one that the passage repeats without end. Questions that share no word
# with their text: recall@5 of 40 on 45 news articles 2.5 without summaries, 67.5 with them.
IN_SUMMARY = K1 + 1

COLUMNS = ("id", "document_id", "title_id", "position", "entity_ids", "terms", "n_terms", "uri")
PLACE = ("id", "uri")
Keep = Callable[[pa.Table], pa.Table]  # of rows of passages those that pass the filters
Place = tuple[str, int]  # document, position of a passage in it


@dataclass(frozen=True, slots=True)
class Candidate:
    """A passage with what it shares with the question: BM25 (0 or more) of its words and of the summary
    of its text, the cosine of its vector (None without vectors), and the share of the question, 0 to 1,
    that the summary holds."""

    id: str
    document_id: str
    title_id: str
    position: int
    entity_ids: tuple[str, ...]
    terms: str  # joined with blanks
    bm25: float
    cosine: float | None = None
    summary: float = 0.0
    uri: str = ""

    def holds(self, term: str) -> bool:
        return term in self.terms and f" {term} " in f" {self.terms} "


@dataclass(frozen=True, slots=True)
class Candidates:
    """All candidates by id. `linked`: how many of them only a title or a neighbour added;
    `summarised`: the share of the question that the summary of a passage's text holds."""

    passages: Mapping[str, Candidate]
    linked: int = 0
    summarised: Mapping[str, float] = field(default_factory=dict)


def find(snapshot: Snapshot, question: Question, keep: Keep | None = None) -> Candidates:
    """The passages that hold a term of the question, best first by full text, those that are nearest
    to its vector, and those of the texts whose summaries hold a term: at most PROPOSED of each."""
    rows = _proposed(snapshot, list(question.terms))
    summarised, first = _summarised(snapshot, question)
    if more := sorted(set(first).difference(values_of(rows["id"]))):
        rows = pa.concat_tables(
            [rows.select(COLUMNS), snapshot.by_key("passages", more, "id", COLUMNS)]
        )
    cosines: dict[str, float] = {}
    if question.vector:
        known = values_of(rows["id"])
        cosines = _near(snapshot, question.vector, known)
        more = sorted(cosines.keys() - set(known))
        rows = pa.concat_tables(
            [rows.select(COLUMNS), snapshot.by_key("passages", more, "id", COLUMNS)]
        )
    found = {
        candidate.id: candidate
        for candidate in _read(snapshot, question, rows, cosines, keep, summarised)
    }
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
    snapshot: Snapshot,
    question: Question,
    found: Candidates,
    high: Sequence[Candidate],
    keep: Keep | None = None,
) -> Candidates:
    """The candidates with the first passages of the documents whose title the question or a high
    passage names, and with the passages next to the high ones. Of these titles, the first TITLES are
    looked up."""
    titles = [*question.named, *(id for candidate in high for id in candidate.entity_ids)]
    titled = _titled(snapshot, list(dict.fromkeys(titles))[:TITLES])
    places = {
        (candidate.document_id, candidate.position + step) for candidate in high for step in (-1, 1)
    }
    rows = pa.concat_tables(
        [titled, _at(snapshot, places - {place_of(candidate) for candidate in high})]
    )
    new = pc.invert(pc.is_in(rows["id"], pa.array(list(found.passages), pa.string())))
    rows = rows.filter(new)
    cosines: Mapping[str, float] = {}
    if question.vector and rows.num_rows:
        ids = values_of(rows["id"])
        cosines = tables.similarities(snapshot, "passages", question.vector, 1, ids)
    added = {
        candidate.id: candidate
        for candidate in _read(snapshot, question, rows, cosines, keep, found.summarised)
    }
    return Candidates({**found.passages, **added}, len(added), found.summarised)


def _proposed(snapshot: Snapshot, terms: Sequence[str]) -> pa.Table:
    """The PROPOSED best passages by full text; the MOST best where most of these have the same texts; where most
    are rows of one sheet, as many again that are not, so that 1,500 rows hide no document."""
    rows = snapshot.full_text("passages", terms, PROPOSED, COLUMNS)
    different = len({text[-END:] for text in values_of(rows["terms"])})
    if 2 * different < rows.num_rows == PROPOSED:
        rows = snapshot.full_text("passages", terms, MOST, COLUMNS)
    if sheet := _sheet(values_of(rows["uri"])):
        every = rows_of(snapshot.full_text("passages", terms, ROWS, PLACE).select(PLACE))
        ids = [id for id, uri in every if not uri.startswith(sheet)][:PROPOSED]
        more = sorted(set(ids).difference(values_of(rows["id"])))
        added = snapshot.by_key("passages", more, "id", COLUMNS)
        rows = pa.concat_tables([rows.select(COLUMNS), added])
    return rows


def _near(snapshot: Snapshot, vector: bytes, known: Sequence[str]) -> dict[str, float]:
    """Similarities of the PROPOSED nearest passages and of those that are `known`; where most of the
    nearest are rows of one sheet, also of as many that are not."""
    near = tables.similarities(snapshot, "passages", vector, PROPOSED, known)
    best = sorted(near, key=lambda id: (-near[id], id))[:PROPOSED]
    uris = values_of(snapshot.by_key("passages", best, "id", PLACE)["uri"])
    if sheet := _sheet(uris):
        every = rows_of(snapshot.rows("passages", columns=PLACE))
        others = [id for id, uri in every if not uri.startswith(sheet)]
        found = tables.similarities(snapshot, "passages", vector, 1, others)
        found = {id: found[id] for id in others if id in found}
        near |= dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))[:PROPOSED])
    return near


def _sheet(uris: Sequence[str]) -> str:
    """The beginning of the uris of a sheet's rows, where most of PROPOSED passages are such rows."""
    files = Counter(file for file, row in map(file_and_key, uris) if row)
    best = max(files, key=lambda file: (files[file], file), default="")
    crowded = len(uris) >= PROPOSED and 2 * files[best] > len(uris)
    return f"{best}#" if crowded else ""


def copies(snapshot: Snapshot, passages: Collection[Candidate]) -> dict[str, str]:
    """Passages with the same text as another candidate: the id of each, with the first id of those that
    have this text."""
    by_end = lists_of(
        (candidate.terms[-END:], candidate.id) for candidate in passages if candidate.terms
    )
    alike = [id for ids in by_end.values() if len(ids) > 1 for id in ids]
    if not alike:
        return {}
    rows = rows_of(snapshot.by_key("passages", alike, "id", ["id", "text"]))
    return first_of_equal(rows)


def place_of(passage: Candidate) -> Place:
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
) -> Iterable[Candidate]:
    rows = rows.select(COLUMNS)
    score = bm25(snapshot, question.terms)
    field = IN_SUMMARY * math.fsum(question.summary_terms.values())
    for id, document, title, position, entities, terms, length, uri in rows_of(
        keep(rows) if keep else rows
    ):
        share = summarised.get(id, 0.0)
        words = score(terms, length) + field * share
        place = id, document, title, position
        yield Candidate(*place, tuple(entities), terms, words, cosines.get(id), share, uri)


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
