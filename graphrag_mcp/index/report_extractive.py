"""Community reports without a model: a title of names and terms that set the community apart, a line of
counts, and the sentences of its texts that say most of its terms (`text.quote`).

Nothing is generated but the line of counts, and nothing depends on what lies outside the community.
A reference names text units by their content ids, ` [Data: Sources (<32 hex>, ...)]`, at most 3, then
`+more`."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import nsmallest

from graphrag_mcp.index.report_content import LISTED, EdgeRow, Topic
from graphrag_mcp.index.report_sentences import Chosen, chosen
from graphrag_mcp.names import cjk
from graphrag_mcp.names.lexicon import is_grammar
from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.packing.references import reference, referenced_ids
from graphrag_mcp.text.terms import counted
from graphrag_mcp.text.titles import PARTS, joined, parts, phrases

SUMMARY = 2  # sentences of a report that stand in its summary
SUBJECTS = 6  # names in the line of counts
NAMED = 60  # names that most text units hold, of which a title is made
READ = 120  # titles and sentences that are looked through for words of the title
CITED = 3  # text units after a sentence
FULL = 200  # text units of a report that is rated 10


@dataclass(frozen=True)
class Report:
    """What a report says; `findings` is a JSON list of {"summary", "explanation"}, `rank` is 0-10.

    The lists of ids hold at most LISTED each; all members are in the table `communities`.
    """

    id: str
    level: int
    title: str
    summary: str
    full_content: str
    rank: float
    rating_explanation: str
    findings: str
    entity_ids: list[str]
    relationship_ids: list[str]
    text_unit_ids: list[str]
    n_text_units: int
    method: str = "extractive"


def compose(topic: Topic, sentences: Sequence[Chosen] | None = None) -> Report:
    """The report of one community, the same whatever the order of its input. `sentences`: those of its
    texts, where another process chose them (report_sentences.py)."""
    found = chosen((topic.texts, topic.worth)) if sentences is None else sentences
    texts = [text for text, _ in found]
    rows = topic.heaviest[:NAMED]
    of_several = [row for row in rows if len(row.text_unit_ids) > 1]
    names = [row.title for row in (of_several if len(of_several) >= PARTS else rows)]
    headings = [paper.title for paper in topic.papers]
    every = [text for _, text in topic.texts]
    worth = {term: weight for term, weight in topic.worth.items() if not is_grammar(term)}  # not "per"
    spoken = phrases([*headings, *every], worth)
    read = [*headings, *texts][:READ]
    nouns = {noun for sentence in read for noun in cjk.nouns(sentence)}
    subjects = parts(worth, [*names, *spoken], read, SUBJECTS, texts=every, nouns=nouns)
    base = outline(topic)
    title = joined(subjects[:PARTS]) or base.title
    quoted = [cited(*sentence) for sentence in found]
    counts = _counts(topic, subjects)
    summary = " ".join(filter(None, [counts, *quoted[:SUMMARY]])) or base.summary
    findings = [{"summary": text, "explanation": explanation} for text, explanation in zip(texts, quoted, strict=True)]
    content = [f"# {title}", summary, *(f"- {quotation}" for quotation in quoted[SUMMARY:])]
    return replace(
        base,
        title=title,
        summary=summary,
        full_content="\n\n".join(content),
        findings=json.dumps(findings, ensure_ascii=False),
    )


def outline(topic: Topic) -> Report:
    """The report without sentences: its rows, its text units, a rating, its heaviest names. The
    words of a model, of a plug-in or of an import are put over it."""
    top, many = topic.heaviest[:10], len(topic.units)
    names = [one_line(row.title, 60) for row in top]
    title = " · ".join(names[:PARTS]) or f"{counted(many, 'texts')} without names"
    summary = cited(" · ".join(names), {unit for row in top for unit in row.text_unit_ids})
    entities = [row.id for row in topic.heaviest]
    edges = [edge.id for edge in nsmallest(LISTED, topic.edges, _strength)]
    return Report(
        id=topic.community.id,
        level=topic.community.level,
        title=title,
        summary=summary,
        full_content=f"# {title}\n\n{summary}",
        rank=round(10 * min(1.0, math.log1p(many) / math.log1p(FULL)), 1),
        rating_explanation="",
        findings="[]",
        entity_ids=entities if len(topic.entities) > LISTED else sorted(entities),
        relationship_ids=edges if len(topic.edges) > LISTED else sorted(edges),
        text_unit_ids=nsmallest(LISTED, topic.units),
        n_text_units=many,
    )


def _strength(edge: EdgeRow) -> tuple[float, str]:
    return -edge.weight, edge.id


def _counts(topic: Topic, subjects: Sequence[str]) -> str:
    """How many documents of which years the community holds, and on what; nothing without text."""
    if not topic.papers or not subjects:
        return ""
    years = sorted(paper.date[:4] for paper in topic.papers if paper.date)
    sentence = counted(len(topic.papers), "documents")
    if 2 * len(years) >= len(topic.papers):
        sentence += f" of {years[0]}" + f"–{years[-1]}" * (years[0] < years[-1])
    units = [unit for unit, _ in topic.texts] or nsmallest(CITED, topic.units)
    return cited(f"{sentence}, on {', '.join(subjects)}.", units)


def cited(sentence: str, units: Iterable[str]) -> str:
    """The sentence with a reference to its text units."""
    return f"{sentence} {reference([('Sources', sorted(units))], CITED)}".rstrip()


_REFERENCE = re.compile(r" ?(\[Data: [^\[\]\n]{1,4000}\])")


def quotes_of(report: Report) -> Iterator[Chosen]:
    """The cited sentences of a report, with the text units that each cites; what is not cited is left out."""
    findings = json.loads(report.findings or "[]")
    seen: set[str] = set()
    for text in (report.summary, *(str(finding.get("explanation", "")) for finding in findings)):
        pieces = _REFERENCE.split(text)
        for sentence, bracket in zip(pieces[::2], pieces[1::2], strict=False):
            if (stripped := sentence.strip()) not in seen:
                yield stripped, referenced_ids(bracket).get("Sources", [])
            seen.add(stripped)
