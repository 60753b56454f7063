"""Hits: passages of a ranking with all that is shown of them, read from the index once.

A search gives one `Source` for each corpus; `merged` puts their passages into one order, and `read`
makes hits of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphrag_mcp import plugins
from graphrag_mcp.packing.budget import TITLE, citation, located, one_line, repeats
from graphrag_mcp.query import context, note_sources, summaries, times
from graphrag_mcp.query.candidates import Passage
from graphrag_mcp.query.rank import Ranking
from graphrag_mcp.store.tables import Snapshot, once, rows_of
from graphrag_mcp.text import dates, places, quote
from graphrag_mcp.text.prose import readable
from graphrag_mcp.text.spans import Mention
from graphrag_mcp.text.terms import entity_id, lists_of, query_terms
from graphrag_mcp.types import Citation

if TYPE_CHECKING:
    from graphrag_mcp.query.filters import Filters

Worth = Mapping[str, float]  # of the terms of a question
MergedPassages = list[tuple[float, int, Passage]]  # score, number of the corpus, passage
STRONG = 0.6  # share of the best score from which a hit is shown in full (render.py)
BEGINS = 40  # characters of the opening of a document without a title
SHORT = 15  # passages of a document that has one summary, so one subject (summaries.CALL)
OPENING = 2_000  # characters of a text among which its opening is looked for


@dataclass(slots=True)
class Source:
    """The findings of a search in one corpus. `corpus` is put before ids, and `factor` weighs the
    scores among several corpora. `notes` (content ids) stand apart from the passages of documents (note_hits.py)."""

    snapshot: Snapshot
    found: Ranking
    corpus: str = ""
    filters: Filters | None = None
    factor: float = 1.0
    notes: frozenset[str] = frozenset()

    @property
    def useful(self) -> bool:
        """Was anything found?"""
        return bool(self.found.passages)

    @property
    def passages(self) -> Sequence[Passage]:
        """The passages of documents, best first."""
        found = self.found.passages
        return [one for one in found if one.document_id not in self.notes] if self.notes else found


@dataclass(slots=True)
class Hit:
    """One passage: `body` is the readable text of `raw`; `passage` and `document` are content ids."""

    score: float
    raw: str
    body: str
    citation: Citation
    times: times.Times
    name: str = ""  # what its document is called
    begins: str = ""  # the first words of a short document whose name is that of its file
    date: str = ""  # with the clock of its document where another hit has that day
    moment: str = ""  # sorts by time
    passage: str = ""
    document: str = ""
    corpus: str = ""
    whole: bool = False  # the whole document
    validity: str = ""  # what the document says of its own validity; that it is a note
    note: bool = False  # written by an agent or a person from other documents
    places: str = ""  # as the table of places has them
    about: str = ""  # the summary that was written of its text
    share: float = 0.0  # of the question, that this holds
    also: Sequence[str] = ()  # ids of passages of other documents that say the same

    @property
    def id(self) -> str:
        return self.citation.id

    @property
    def summary(self) -> str:
        """The summary, where it holds words of the question."""
        return self.about if self.share else ""

    @property
    def uri(self) -> str:
        return f"{self.corpus}/{self.citation.uri}" if self.corpus else self.citation.uri

    @property
    def day(self) -> str:
        """The date; "" for a day that the name states."""
        return "" if self.date and dates.in_name(self.name) == self.date else self.date

    def place(self, text: str = "") -> str:
        """`p. 3`: page, slide, cells or time of a part of the text, else of the whole; "" where these are
        not known."""
        if not self.places:
            return ""
        at = max(self.raw.find(text), 0) if text else 0
        end = at + len(text) if text and text in self.raw else -1
        return places.of_row({"text": self.raw, "places": self.places}, at, end)

    def where(self, text: str = "") -> str:
        """`(audit-report.pdf p. 3)`, as `located` gives it."""
        return located(self.uri, self.place(text), self.name)

    def called(self, text: str = "") -> str:
        """The name of the document and where the text stands in it; the file's name once."""
        where = self.where(text)
        name = "" if where and repeats(self.uri, self.name) else self.name
        return " ".join(filter(None, (name, where)))

    def opening(self, text: str) -> str:
        """`(Chelsea ridiculed over …)`: how the document begins, unless `text` contains it."""
        return "" if self.begins.rstrip("…") in text else f"({self.begins})"

    def cited(self, text: str = "") -> list[Citation]:
        """The citation with the days that the passage speaks of, and the text that is shown of it."""
        return [self.citation.model_copy(update={"when": self.times.cited(), "text": text})]


def read(
    snapshot: Snapshot, scored: Iterable[tuple[str, float]], corpus: str = "", openings: bool = False
) -> list[Hit]:
    """Passages (content id, score) as hits, in this order; damaged rows are left out. `corpus` is
    put before the ids. With `openings` of short documents without a title how they begin."""
    score = dict(scored)
    rows = snapshot.served("passages", list(score), context.PASSAGE)
    ids = list(dict.fromkeys(row["document_id"] for row in rows))
    parts = snapshot.by_key("passages", ids, "document_id", ["document_id"])
    count = Counter(parts["document_id"].to_pylist())
    facts, valid, names = times.documents(snapshot), times.validity(snapshot), names_of(snapshot)
    shown = times.shown(facts[id] for id in ids if id in facts)
    spoken = times.read(snapshot, rows)
    begins = openings_of(snapshot, [id for id in ids if count[id] <= SHORT]) if openings else {}
    hits = []
    for row in rows:
        id, fact, time = row["document_id"], facts.get(row["document_id"]), spoken[row["id"]]
        day = next(iter(time.said), "")
        date = day or (fact.date if fact else "")
        note = note_sources.remark(snapshot, id)
        raw = note_sources.with_ids(snapshot, row) if note else row["text"]
        cited = citation(row, score[row["id"]], fact.alias if fact else id)
        cited = context.placed(corpus, cited) if corpus else cited
        hits.append(
            Hit(
                score[row["id"]],
                raw,
                body_of(raw, row["title"], row["uri"]),
                cited.model_copy(update={"said": day}),
                time,
                f"{corpus}/{names[id]}" if corpus and "/" in names[id] else names[id],
                begins.get(id, ""),
                shown[id] if fact and date == fact.date else date,
                time.moment(date),
                row["id"],
                id,
                corpus,
                whole=count[id] == 1 and "cut" not in row,
                validity=" ".join(filter(None, (note, valid.get(id, "")))),
                note=bool(note),
                places=row.get("places", ""),
            )
        )
    return hits


def openings_of(snapshot: Snapshot, ids: Sequence[str]) -> dict[str, str]:
    """The first words of those of these documents that have no title, by content id; of those with a
    summary none, which says more."""
    facts = times.documents(snapshot)
    bare = [id for id in ids if id in facts and untitled(facts[id])]
    written = summaries.of_documents(snapshot, bare)
    bare = [id for id in bare if id not in written]
    rows = snapshot.by_key("documents", bare, "id", ["id", "text"])
    return {id: quote.lead(readable(text[:OPENING]), BEGINS) for id, text in rows_of(rows)}


def first_of(source: Source, scores: Mapping[str, float]) -> list[Hit]:
    """The first passage of each of these documents (content id: score) that has at most SHORT passages."""
    rows = source.snapshot.by_key("passages", list(scores), "document_id", ["id", "document_id", "position"])
    passages = lists_of((document, (position, id)) for id, document, position in rows_of(rows))
    first = [(min(group)[1], scores[document]) for document, group in passages.items() if len(group) <= SHORT]
    return read(source.snapshot, first, source.corpus)


def untitled(document: times.Document) -> bool:
    """Is a document's title only the name of its file? Its first words say more."""
    named = document.title in ("", document.file, document.file.removeprefix("text:"))
    return named and not plugins.verbatim(document.uri)


def body_of(raw: str, title: str, uri: str) -> str:
    """The readable text, without a first line that only repeats the title; of a plug-in as it is."""
    if plugins.verbatim(uri):
        return raw.strip("\n")
    text = readable(raw)
    first, newline, rest = text.partition("\n")
    if newline and first.lstrip("# ").strip().casefold() == title.strip().casefold():
        return rest.strip()
    return text


@once
def names_of(snapshot: Snapshot) -> dict[str, str]:
    """The name of each document in results, by content id. It is the title, with the path if
    another document has the same title; the file name if there is no other title; and the path for
    kinds of documents of a plug-in."""
    facts = times.documents(snapshot)
    apart = note_sources.ids(snapshot)  # a note changes the name of no document
    others = [fact for id, fact in facts.items() if id not in apart]
    of_others = _counts(others)
    of_all = _counts(facts.values()) if apart else of_others
    found = {}
    for id, fact in facts.items():
        titles, files = of_all if id in apart else of_others
        title, uri = one_line(fact.title, TITLE), one_line(fact.uri, 300)
        if plugins.verbatim(uri):
            found[id] = uri
        elif not title or (id not in apart and repeats(uri, title)):
            file = _file(uri)
            found[id] = file if files[file.casefold()] == 1 else uri
        else:
            found[id] = title if titles[title.casefold()] == 1 else f"{title} ({uri})"
    return found


def named(snapshot: Snapshot, id: str) -> str:
    """`Audit (audit-report.pdf)`: the name of a document (content id), with its file where that says more."""
    name = names_of(snapshot)[id]
    return f"{name} {located(times.documents(snapshot)[id].uri, '', name)}".rstrip()


def _counts(facts: Collection[times.Document]) -> tuple[Counter[str], Counter[str]]:
    """How many documents have each title, and each name of a file, with its suffix and without."""
    files = [_file(fact.uri).casefold() for fact in facts]
    names = (name for file in files for name in {file, file.rpartition(".")[0] or file})
    return Counter(fact.title.casefold() for fact in facts), Counter(names)


def _file(uri: str) -> str:
    return uri.rpartition("/")[2].removeprefix("text:")


# ---- several corpora, and the question ---------------------------------------------------------------


def merged(sources: Sequence[Source]) -> MergedPassages:
    """The passages of all corpora by score. Passages of one corpus keep the order in which they
    were ranked."""
    ranked = [
        (passage.score * source.factor, number, passage)
        for number, source in enumerate(sources)
        for passage in source.passages
    ]
    if len(sources) > 1:
        ranked.sort(key=lambda row: -round(row[0], 9))
    return ranked


def notes_apart(snapshot: Snapshot, passages: Sequence[Passage], filters: Filters | None = None) -> frozenset[str]:
    """The notes (content ids) that stand apart from the passages of documents. None do where the filters leave notes
    alone, or where several notes and no document were found: they are the hits then."""
    notes = note_sources.ids(snapshot)
    kept = filters.documents if filters is not None else None
    found = {passage.document_id for passage in passages}
    alone = len(found) > 1 and found <= notes
    return frozenset() if alone or (kept is not None and kept <= notes) else notes


def of_ranked(sources: Sequence[Source], ranked: MergedPassages, openings: bool = False) -> list[Hit]:
    """These passages as hits, in their order; `openings` as `read` takes it."""
    found: dict[tuple[int, str], Hit] = {}
    for number, source in enumerate(sources):
        scored = [(passage.id, score) for score, other, passage in ranked if other == number]
        share = {passage.id: passage.summary for _, other, passage in ranked if other == number}
        hits = read(source.snapshot, scored, source.corpus, openings)
        written = summaries.read(source.snapshot, sorted({hit.document for hit in hits}))
        for hit in hits:
            of_document = written.get(hit.document, ())
            summary = summaries.covering(of_document, hit.citation.char_start)
            hit.about, hit.share = summary.text if summary else "", share[hit.passage]
            found[number, hit.passage] = hit
    return [found[at, passage.id] for _, at, passage in ranked if (at, passage.id) in found]


def worth_of(sources: Sequence[Source]) -> dict[str, float]:
    """The worth of the question's terms, of all corpora."""
    return {term: worth for source in sources for term, worth in source.found.terms.items()}


def without_people(worth: Worth, names: Sequence[Mention]) -> dict[str, float]:
    """The worth of the terms that do not name a person; of all where none is left."""
    of_people = {term for name in names if name.type == "person" for term in query_terms(name.form)}
    # counted with it
    of_people |= {part for term in worth if "-" in term for part in term.split("-")}
    return {term: value for term, value in worth.items() if term not in of_people} or dict(worth)


def naming(found: Sequence[Hit], sources: Sequence[Source]) -> list[Hit]:
    """The passages that name a person of the question, by an entity of the index or by all words of the
    name; every passage where none does. The index knows who is a person, else the question.

    Evidence for each 1,000 characters of sentences (100 questions, 1,200 tokens) with this and without: CMRC 132 and
    99, Chroma 19.9 and 18.6, HotpotQA 31.4 and 25.4; chats are the same. A question of two hops loses passages that
    name others: evidence of HotpotQA 61 % and 69 %, answers of MuSiQue 42 % and 57 %."""
    names = {entity_id(name.key): name for source in sources for name in source.found.names}
    people = {id for id, name in names.items() if name.type == "person"}
    for source in sources:
        rows = source.snapshot.by_key("entities", sorted(names), "id", ["id", "type"])
        people |= {id for id, kind in rows_of(rows) if kind == "person"}
    entities = {passage.id: passage.entity_ids for source in sources for passage in source.found.passages}

    def is_named(hit: Hit) -> bool:
        text = f"{hit.citation.title}\n{hit.body}".casefold()
        return not people.isdisjoint(entities.get(hit.passage, ())) or any(
            all(word in text for word in names[id].form.casefold().split()) for id in people
        )

    return [hit for hit in found if is_named(hit)] or list(found)


def by_time(hit: Hit) -> tuple[str, str, int]:
    """The key that sorts hits by time: dated hits first, the oldest first; hits of one document in
    the order of the text."""
    return hit.moment or "9999", hit.uri, hit.citation.char_start
