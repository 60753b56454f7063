"""What many documents say on a question: a line for each, best first.

Documents are ordered by their passages in the ranking and by pseudo-relevance feedback: terms that the
best documents share say what else is on the subject (Rocchio 1971; Lavrenko and Croft 2001). A document
has more than one line only where few documents are on the question."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from graphrag_mcp import plugins
from graphrag_mcp.query import hits
from graphrag_mcp.query.candidates import Passage
from graphrag_mcp.query.filters import Filters
from graphrag_mcp.query.hits import Hit, Source
from graphrag_mcp.query.question import term_worth
from graphrag_mcp.text import quote
from graphrag_mcp.text.prose import readable, sentences
from graphrag_mcp.text.terms import lists_of, tells_topic, terms

MOST = 200  # documents that are read, and lines
ROOM = 40  # lines that few documents share
# The best documents, the terms that most of them share, and what these count beside the ranking.
FEEDBACK, FEEDBACK_TERMS, FEEDBACK_SHARE = 20, 50, 0.5
FADING = 0.5  # worth of each next passage of a document
# Share of the best one's worth from which a document is on the question, and a line. 20 questions on 668
# news articles: of 605 such lines 310 were of articles on the subject. Weaker ones fill the room.
ON_IT = 0.15
WORTH_READING = 0.2  # the same from which a document is read: none below had one of 791 such lines
FEW = 10  # weaker documents that are read, and weaker lines behind those on the question
READ = 3  # passages of a document that are read for its best sentence
GAP = " … "  # between sentences of a line
AGAIN = 0.5  # share of the best sentence of a document from which another one of it is shown


@dataclass(frozen=True, slots=True)
class Line:
    """The best sentence of a hit, or several, and its value relative to the best line. `summary` is
    what was written of the text, "" for none; if no sentence is on the question, the summary is
    the text of the line. `same` are other documents (content ids) that say the same."""

    hit: Hit
    text: str
    value: float
    summary: str = ""
    same: Sequence[str] = ()
    beginning: str = ""  # how the document begins, where the text says it

    @property
    def told(self) -> str:
        """The summary, else the sentence."""
        return self.summary or self.text


@dataclass(frozen=True, slots=True)
class Survey:
    """Lines, best first; how many of them, the first ones, are on the question, before FEW weaker ones;
    and how many documents hold words of the question beside those of the lines."""

    lines: list[Line]
    on_it: int = 0
    others: int = 0

    def documents(self) -> dict[str, list[Line]]:
        """The lines by document (content id), the best document first."""
        return dict(lists_of((line.hit.document, line) for line in self.lines))


def survey(sources: Sequence[Source], worth: hits.Worth | None = None, beginnings: bool = False) -> Survey:
    """The best sentences on the question of each document of the sources. `worth`: of the terms that a
    sentence is chosen by, where they are not those of the ranking. Notes stand apart (note_hits.py). With
    `beginnings` the line of a short document says how it begins."""
    names = [name for source in sources for name in source.found.names]
    terms_worth = hits.without_people(worth or hits.worth_of(sources), names)
    by_document = {
        (number, id): passages
        for number, source in enumerate(sources)
        for id, passages in lists_of((passage.document_id, passage) for passage in source.passages).items()
    }
    values = {
        (number, id): value * source.factor
        for number, source in enumerate(sources)
        for id, value in document_values(source).items()
    }
    order = sorted(values, key=lambda key: (-round(values[key], 9), key))[:MOST]
    best_value = values[order[0]] if order else 0.0
    on_it = sum(values[key] >= ON_IT * best_value for key in order)
    several = max(ROOM // max(on_it, 1), 1)
    each = {key: several if place < on_it else 1 for place, key in enumerate(order)}
    order = order[: sum(values[key] >= WORTH_READING * best_value for key in order) + FEW]
    ranked = [
        (passage.score * sources[number].factor, number, passage)
        for number, id in order
        for passage in by_document[number, id][: max(READ, each[number, id])]
    ]
    filters = {source.corpus: source.filters for source in sources}
    read = hits.of_ranked(sources, ranked, openings=True)
    found = [of_then(hit, filters[hit.corpus]) for hit in read]
    named = hits.naming(found, sources)
    of_hit = {(sources[number].corpus, id): (values[number, id], count) for (number, id), count in each.items()}
    lines = _lines(named, terms_worth, of_hit)
    lines.sort(key=lambda line: (-round(line.value, 9), line.hit.id))
    best = lines[0].value if lines else 1.0
    lines = [replace(line, value=line.value / best) for line in lines][:MOST]
    if beginnings:
        # Before lines in the same words are joined: others of these texts may begin with another matter.
        lines = _versions(_with_beginnings(lines, sources))
    lines = _once(lines)
    number = sum(line.value >= ON_IT for line in lines)
    chosen = lines[: number + FEW]
    shown = {(line.hit.corpus, line.hit.document) for line in chosen}
    repeated = sum(len(line.same) for line in chosen)
    return Survey(chosen, number, max(len(values) - len(shown) - repeated, 0))


def _with_beginnings(lines: Sequence[Line], sources: Sequence[Source]) -> list[Line]:
    """The lines, in which that of a short document says how it begins, with its best sentence where that is worth more
    than twice as much for the question. Summaries, conversations and documents with several lines stay as they are."""
    worth = hits.worth_of(sources)
    of_document = Counter((line.hit.corpus, line.hit.document) for line in lines)
    alone = [line for line in lines if not line.summary and of_document[line.hit.corpus, line.hit.document] == 1]
    first_hits: dict[tuple[str, str], Hit] = {}
    for source in sources:
        if source.filters is not None and source.filters.of_passages:
            continue  # the beginning may not pass
        scores = {line.hit.document: line.hit.score for line in alone if line.hit.corpus == source.corpus}
        first_hits |= {(source.corpus, hit.document): hit for hit in hits.first_of(source, scores)}
    found: list[Line] = []
    for line in lines:
        first = first_hits.get((line.hit.corpus, line.hit.document))
        found.append(_beginning(line, first, worth) if first else line)
    return found


def _versions(lines: Sequence[Line]) -> list[Line]:
    """The lines, in which the versions of an article have one: they begin in the same words, and most words of the
    passages that begin so are the same."""
    kept: list[Line] = []
    for line in lines:
        alike = (at for at, other in enumerate(kept) if line.beginning and _is_version(line, other))
        if (at := next(alike, -1)) >= 0:
            kept[at] = _with_others(kept[at], line)
        else:
            kept.append(line)
    return kept


def _is_version(line: Line, other: Line) -> bool:
    return line.beginning == other.beginning and quote.repeats(set(terms(line.hit.body)), [set(terms(other.hit.body))])


def _beginning(line: Line, first: Hit, worth: hits.Worth) -> Line:
    beginning = quote.lead(first.body, quote.LONGEST, first.citation.title)
    if not beginning or quote.is_conversation(first.body):
        return line
    first = replace(first, also=line.hit.also, begins="")
    rest = GAP.join(sentence for sentence in line.text.split(GAP) if sentence not in beginning)
    shares = [math.fsum(worth[term] for term in worth.keys() & terms(text)) for text in (beginning, rest)]
    if shares[0] >= AGAIN * shares[1]:
        return replace(line, hit=first, text=beginning, beginning=beginning)
    sentence = quote.clipped(rest, worth, quote.LONGEST // 3)
    behind = f"[{line.hit.id}] {sentence}" if line.hit.id != first.id else sentence.removeprefix("…")
    return replace(line, hit=first, text=f"{beginning.rstrip('…')}{GAP}{behind}", beginning=beginning)


def document_values(source: Source) -> dict[str, float]:
    """The value for the question of each document (content id) of a ranking, relative to the best
    document, which has 1."""
    found = source.found
    passages = lists_of((passage.document_id, passage) for passage in source.passages)
    whole = math.fsum(found.terms.values()) or 1.0
    document_terms = {id: _terms_of(group) for id, group in passages.items()}
    scores = {
        id: _fading(passage.score for passage in group)
        + math.fsum(found.terms[term] for term in document_terms[id] & found.terms.keys()) / whole
        for id, group in passages.items()
    }
    scores = _as_shares(scores)
    best = sorted(scores, key=lambda id: (-round(scores[id], 9), id))[:FEEDBACK]
    shared = Counter(term for id in best for term in document_terms[id])
    # A form before its stem, as `term_worth` reads them, and in one order whatever that of a set is.
    several = sorted((t for t, count in shared.items() if count > 1 and tells_topic(t)), reverse=True)
    rarity, _ = term_worth(source.snapshot, several)
    weight = {term: shared[term] * rarity[term] for term in several if term in rarity}
    first = sorted(weight, key=lambda term: (-round(weight[term], 9), term))[:FEEDBACK_TERMS]
    like = _as_shares(
        {
            id: math.fsum(weight[term] for term in first if term in document_terms[id])
            / (1 + math.log(1 + len(document_terms[id])))
            for id in scores
        }
    )
    return _as_shares({id: (1 - FEEDBACK_SHARE) * scores[id] + FEEDBACK_SHARE * like[id] for id in scores})


def _terms_of(passages: Iterable[Passage]) -> set[str]:
    return set().union(*(passage.terms.split() for passage in passages))


def _fading(scores: Iterable[float]) -> float:
    return math.fsum(score * FADING**place for place, score in enumerate(sorted(scores, reverse=True)))


def _as_shares(values: Mapping[str, float]) -> dict[str, float]:
    top = max(values.values(), default=0.0) or 1.0
    return {id: value / top for id, value in values.items()}


def _lines(
    found: Sequence[Hit], worth: hits.Worth, documents: Mapping[tuple[str, str], tuple[float, int]]
) -> list[Line]:
    """The best sentences of each document, from different passages, with what was written of their texts, each summary
    once. A document of which only the summary is on the question has that as its line, worth the share of the question
    that it holds. `documents`: of each (corpus, id) its value and how many lines it has at most."""
    lines: list[Line] = []
    for key, group in lists_of(((hit.corpus, hit.document), hit) for hit in found).items():
        value, most = documents[key]
        best = [line for hit in group if (line := best_line(hit, worth, most)) is not None]
        best.sort(key=lambda line: -line.value)
        if not best:
            best = [Line(hit, "", hit.share) for hit in group if hit.summary]
        told = set[str]()
        for line in best[:most]:
            summary = line.hit.about
            if (summary and summary in told) or not (line.text or summary):
                continue
            told.add(summary)
            text = line.text or summary
            lines.append(replace(line, text=text, value=line.value * value, summary=summary))
    return lines


def best_line(hit: Hit, worth: hits.Worth, most: int = 1) -> Line | None:
    """The sentences of a passage that say most on these terms, at most `most`, in their order on
    one line. None if no sentence contains any of the terms, and for lines of a plug-in's kind."""
    found = [] if plugins.verbatim(hit.uri) else quote.quotes(hit.body, worth, most)
    found = [quotation for quotation in found if quotation.share and quotation.score >= AGAIN * found[0].score]
    if not found:
        return None
    quotations = [
        quote.with_speaker(hit.body, quotation) for quotation in sorted(found, key=lambda quotation: quotation.start)
    ]
    room = quote.LONGEST - len(hit.begins)  # the line is not longer than that of a title
    text = GAP.join(quote.clipped(quotation.text, worth, room) for quotation in quotations)
    return Line(hit, text, found[0].score)


def _once(lines: Sequence[Line]) -> list[Line]:
    """Without lines in the words of one before, in their order; those of other documents are named with it. Two
    agents with a reading budget paid for both versions of five articles."""
    same = lists_of((tuple(terms(line.text)) or (line.text,), line) for line in lines)
    return [_with_others(*group) for group in same.values()]


def _with_others(first: Line, *rest: Line) -> Line:
    """A line with the documents of others that say the same, beside those that it has."""
    others = [line for line in rest if line.hit.document != first.hit.document]
    also = dict.fromkeys([*first.hit.also, *(id for line in others for id in (line.hit.id, *line.hit.also))])
    same = dict.fromkeys([*first.same, *(id for line in others for id in (line.hit.document, *line.same))])
    return replace(first, hit=replace(first.hit, also=tuple(also)), same=tuple(same))


def of_then(hit: Hit, kept: Filters | None) -> Hit:
    """The passage with only those sentences that speak of the days of a filter on `when`."""
    if kept is None or not kept.of("when"):
        return hit
    texts = []
    for start, end in sentences(hit.raw):
        at, until = hit.times.start + start, hit.times.start + end
        days = [(when.start, when.end) for when in hit.times.when if at <= when.char_start < until]
        day = hit.times.said_at(at)
        if kept.pass_time(days or [(day, day)] * bool(day), day):
            who = quote.speaker(hit.raw, start)
            sentence = hit.raw[start:end]
            texts.append(sentence if sentence.startswith(who.strip()) else who + sentence)
    return replace(hit, body=readable("\n".join(texts)))
