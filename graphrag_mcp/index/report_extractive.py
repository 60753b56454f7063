"""Community reports without a model: a title of names and terms that set the community apart, what
the index counts of it, and the sentences of its texts that say most of its terms (`text.quote`).

Nothing is generated but the line of counts, and nothing depends on what lies outside the community.
A reference names text units by their content ids, ` [Data: Sources (<32 hex>, ...)]`, at most 3, then
`+more`."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from graphrag_mcp.index import report_sentences
from graphrag_mcp.index.communities import Community
from graphrag_mcp.index.report_content import Inside
from graphrag_mcp.index.report_sentences import Chosen
from graphrag_mcp.names.cjk import is_han
from graphrag_mcp.packing.budget import one_line, reference, referenced_ids
from graphrag_mcp.text.terms import holds_cjk, is_cjk
from graphrag_mcp.text.titles import PARTS, joined, parts, phrases, stems

SUMMARY = 2  # sentences of a report that stand in its summary
SUBJECTS = 6  # names in the line of counts
NAMED = 60  # names that most text units hold, of which a title is made
CITED = 3  # text units after a sentence


@dataclass(frozen=True)
class Report:
    """What a report says; `findings` is a JSON list of {"summary", "explanation"}, `rank` is 0-10.

    The lists of ids hold at most `report_content.LISTED` each; all members are in the table `communities`.
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


_REFERENCE = re.compile(r" ?(\[Data: [^\[\]\n]{1,4000}\])")
# The suffix of a file's name says no topic: "payments.csv #3".
_SUFFIX = re.compile(r"\.[^\W_]{1,5}( #\S+)?\Z")


def quotes_of(report: Report) -> Iterator[Chosen]:
    """The cited sentences of a report, with the text units that each cites; what is not cited is left out."""
    findings = [
        str(finding.get("explanation", "")) for finding in json.loads(report.findings or "[]")
    ]
    seen: set[str] = set()
    for text in (report.summary, *findings):
        pieces = _REFERENCE.split(text)
        for sentence, bracket in zip(pieces[::2], pieces[1::2], strict=False):
            if (stripped := sentence.strip()) not in seen:
                yield stripped, referenced_ids(bracket).get("Sources", [])
            seen.add(stripped)


def compose(
    community: Community, inside: Inside, sentences: Sequence[Chosen] | None = None
) -> Report:
    """The report of one community, the same whatever the order of its input. `sentences`: those of its
    texts, where another process chose them (report_sentences.py)."""
    chosen = _chosen(inside) if sentences is None else sentences
    texts = [text for text, _ in chosen]
    subjects = _subjects(inside, texts)
    base = _base(community, inside, joined(subjects[:PARTS]))
    quoted = [cited(*sentence) for sentence in chosen]
    counts = _counts(inside, subjects, _is_chinese(texts or [base.title]))
    summary = running([*counts, *quoted[:SUMMARY]]) or _names(inside)
    findings = [
        {"summary": text, "explanation": explanation}
        for text, explanation in zip(texts, quoted, strict=True)
    ]
    content = [f"# {base.title}", summary, *(f"- {quotation}" for quotation in quoted[SUMMARY:])]
    content = "\n\n".join(content)
    listed = json.dumps(findings, ensure_ascii=False)
    return replace(base, summary=summary, full_content=content, findings=listed)


def _is_chinese(texts: Sequence[str]) -> bool:
    """Are most of these texts in Chinese, without kana and Hangul?"""
    dense = [text for text in texts if mostly_cjk(text)]
    return 2 * sum(all(map(is_han, filter(is_cjk, text))) for text in dense) > len(texts)


def mostly_cjk(text: str) -> bool:
    """Is at least half of the text's first letters CJK?"""
    if not holds_cjk(text[:80]):
        return False
    letters = [ch for ch in text[:80] if ch.isalpha()]
    return sum(map(is_cjk, letters)) * 2 > len(letters)


# ---- choosing -----------------------------------------------------------------------------------


def _chosen(inside: Inside) -> list[Chosen]:
    """The sentences that say most of the community's terms, one of each of its central texts; none that
    repeats another."""
    names = {id: math.sqrt(1 + weight) for id, weight in inside.weight.items()}
    worth = inside.terms or {
        stem: names[id] for id in inside.order for stem in stems(inside.entities[id].title)
    }
    return report_sentences.chosen((inside.texts, worth))


def _subjects(inside: Inside, chosen: Sequence[str]) -> list[str]:
    """The names and words of the community's documents, those first that set it apart and that
    most of its documents hold."""
    documents = inside.documents
    total = len(inside.papers) or 1
    in_units = {row.title: row.text_unit_ids for row in inside.entities.values()}

    def share(form: str) -> float:
        holders = {documents[unit] for unit in in_units.get(form, ()) if unit in documents}
        if form not in in_units:
            holders = {
                of for of, document_terms in inside.told.items() if stems(form) <= document_terms
            }
        return len(holders) / total

    names = [inside.entities[id].title for id in inside.order[:NAMED]]
    headings = [
        _SUFFIX.sub("", paper.title) if paper.of_file else paper.title
        for paper in inside.papers.values()
    ]
    spoken = phrases([*headings, *(text for _, text in inside.texts)], inside.terms)
    found = parts(
        inside.terms,
        [*names, *spoken],
        [*headings, *chosen],
        SUBJECTS,
        share=share if inside.told else None,
    )
    return found or (names[:PARTS] if inside.terms else [])


def _counts(inside: Inside, subjects: Sequence[str], cjk: bool) -> list[str]:
    """How many documents of which years the community holds, and on what; nothing without text."""
    papers = inside.papers
    if not papers or not subjects:
        return []
    years = sorted(paper.year for paper in papers.values() if paper.year)
    span = (
        "" if 2 * len(years) < len(papers) else years[0] + f"–{years[-1]}" * (years[0] < years[-1])
    )
    if cjk:
        sentence = (
            f"{len(papers)}篇文档"
            + f"（{span}）" * bool(span)
            + f"，主要涉及{'、'.join(subjects)}。"
        )
    else:
        sentence = _count(len(papers), "document") + f" of {span}" * bool(span)
        sentence += f", on {', '.join(subjects)}."
    units = [unit for unit, _ in inside.texts] or inside.text_unit_ids[:CITED]
    return [cited(sentence, units)]


# ---- wording ------------------------------------------------------------------------------------


def outline(community: Community, inside: Inside) -> Report:
    """The report without sentences: its rows, its text units, a rating, its heaviest names. The
    words of a model or of an import are put over it."""
    summary = _names(inside)
    base = _base(community, inside)
    return replace(base, summary=summary, full_content=f"# {base.title}\n\n{summary}")


def _base(community: Community, inside: Inside, title: str = "") -> Report:
    """The report without its text; the title decides about the language of the rating."""
    title = title or _title(inside.entities[id].title for id in inside.order)
    title = title or f"{_count(inside.n_units, 'text')} without names"
    rank, explanation = _rating(inside, mostly_cjk(title))
    return Report(
        id=community.id,
        level=community.level,
        title=title,
        summary="",
        full_content="",
        rank=rank,
        rating_explanation=explanation,
        findings="[]",
        entity_ids=inside.entity_ids,
        relationship_ids=inside.relationship_ids,
        text_unit_ids=inside.text_unit_ids,
        n_text_units=inside.n_units,
    )


def running(sentences: Iterable[str]) -> str:
    """Sentences one after the other; no blank before Chinese."""
    text = ""
    for sentence in sentences:
        text += sentence if not text or is_cjk(sentence[:1]) else f" {sentence}"
    return text


def cited(sentence: str, units: Iterable[str]) -> str:
    """The sentence with a reference to its text units."""
    return f"{sentence} {reference([('Sources', sorted(units))], CITED)}".rstrip()


def _names(inside: Inside) -> str:
    """Without any evidence sentence: the names themselves, cited."""
    top = inside.order[:10]
    names = " · ".join(one_line(inside.entities[id].title, 60) for id in top)
    return cited(names, {unit for id in top for unit in inside.entities[id].text_unit_ids})


def _title(titles: Iterable[str]) -> str:
    """The heaviest names, without one that is part of another."""
    chosen: list[str] = []
    for title in titles:
        name = one_line(title, 60)
        folded = name.casefold()
        if not any(folded in other.casefold() or other.casefold() in folded for other in chosen):
            chosen.append(name)
        if len(chosen) == PARTS:
            break
    return " · ".join(chosen)


def _rating(inside: Inside, cjk: bool) -> tuple[float, str]:
    """0-10 from how much there is, each part on a logarithmic scale that is full at the figure
    given.

    A pair from one sentence gets about 1.5, a leaf of ten names from eight text units about 4, a
    whole field 9-10."""
    size, links = len(inside.entities), len(inside.edges)
    units, weight = inside.n_units, inside.total
    parts = ((0.25, size, 200), (0.15, weight, 1000), (0.35, units, 200), (0.25, units, 100))
    shares = (part * min(1.0, math.log1p(value) / math.log1p(full)) for part, value, full in parts)
    rank = round(10 * sum(shares), 1)
    if cjk:
        facts = f"{size} 个实体、{links} 条关系（总权重 {weight:g}）、{units} 个文本单元"
        return rank, f"评分 {rank}（满分 10）依据：{facts}。"
    facts = f"{_count(size, 'entity', 'entities')}, {_count(links, 'relationship')}"
    spread = _count(units, "text unit")
    return rank, f"Rated {rank} of 10 for {facts} of total weight {weight:g}, and {spread}."


def _count(number: int, noun: str, many: str = "") -> str:
    return f"{number} {noun if number == 1 else many or noun + 's'}"
