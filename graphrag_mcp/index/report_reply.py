"""The question for a report, and its reply as the report that is stored.

A reply cites the numbers of the lines that it was shown; the stored report cites content ids, of which
each reference leads to text. A statement that cites no line of the prompt is left out."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, NamedTuple

from pydantic import BaseModel, BeforeValidator

from graphrag_mcp.index.report_content import EdgeRow, EntityRow, Topic
from graphrag_mcp.index.report_extractive import Report, outline
from graphrag_mcp.index.report_prompt import Prompted, Ref, ReportPrompt
from graphrag_mcp.index.unsupported import numbers
from graphrag_mcp.llm import replies
from graphrag_mcp.llm.asker import Ask
from graphrag_mcp.llm.protocols import Message
from graphrag_mcp.llm.replies import BadReply, cut
from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.packing.citations import Cited, cited, replace_references
from graphrag_mcp.packing.references import reference
from graphrag_mcp.text.terms import terms

CRITERIA = "how important the topic is for understanding the whole: its reach, and the consequences of what it tells of"
OWN_LANGUAGE = "the language that most of the rows are in"
PER_GROUP = 5  # references of one kind after a statement
LONGEST_REPLY = 400_000  # characters; a report has some 5,000
LONGEST_LINE, LONGEST_TEXT = 300, 4_000
MOST_FINDINGS = 15


def report_ask(
    shown: Prompted, prompt: ReportPrompt, kept: Callable[[str], str] = lambda reply: reply
) -> Ask[Draft | None]:
    """The question; its value is None when no one answers."""
    fields = {"role": "", "language": prompt.language or OWN_LANGUAGE, "rating_criteria": CRITERIA}
    text = prompt.template.substitute(fields, context=shown.text).strip()
    messages = (Message("user", text),)

    def parse(reply: str) -> Draft:
        return checked(parse_report(reply), shown)

    return Ask("report", messages, parse, lambda: None, SCHEMA, if_cut="refused", kept=kept)


# ---- the reply ------------------------------------------------------------------------------------


def _rating(value: object) -> float | None:
    """A number from 0 to 10, or None: a report is worth more than its rating."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 10:
        return round(float(value), 1)
    return None


class FindingSaid(BaseModel):
    summary: str
    explanation: str


class ReportSaid(BaseModel):
    """The form of a reply."""

    title: str
    summary: str
    rating: Annotated[float | None, BeforeValidator(_rating), replies.NUMBER] = None
    rating_explanation: str = ""
    findings: list[FindingSaid]


SCHEMA = replies.schema_of(ReportSaid)


@dataclass(frozen=True, slots=True)
class Draft:
    """`rating`: 0-10, or None; `findings`: pairs of a heading and what it says. `left_out`: statements that
    cite no row of the question; `unsupported`: numbers that none of its rows has."""

    title: str
    summary: str
    rating: float | None = None
    rating_explanation: str = ""
    findings: tuple[tuple[str, str], ...] = ()
    left_out: int = 0
    unsupported: tuple[str, ...] = ()


def parse_report(reply: str) -> Draft:
    """The draft that a reply holds. Raises BadReply for one that is not of the form asked for, or that
    cites nothing: none of it would be shown but its title."""
    if len(reply) > LONGEST_REPLY:
        raise BadReply("the reply was far too long")
    report = replies.validated(ReportSaid, reply)
    title, summary = _line(report.title), _paragraphs(report.summary)
    if not (any(map(str.isalnum, title)) and any(map(str.isalnum, summary))):
        raise BadReply("the report has no title or no summary")
    said = [(f.summary, _paragraphs(f.explanation)) for f in report.findings[:MOST_FINDINGS]]
    findings = tuple((_line(heading) or _line(text), text) for heading, text in said if text)
    if not cited("\n".join([summary, *(text for _, text in findings)])):
        raise BadReply("no statement of the report cites its rows as the question asks: [Data: ...]")
    return Draft(title, summary, report.rating, _line(report.rating_explanation), findings)


def _line(value: str) -> str:
    return one_line(replies.clean(value, LONGEST_TEXT).strip("#*_ "), LONGEST_LINE)


def _paragraphs(value: str) -> str:
    """Without headings of their own."""
    lines = (replies.clean(line, len(line)).lstrip("# ") for line in value.splitlines())
    return cut(re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip(), LONGEST_TEXT)


# ---- its statements -------------------------------------------------------------------------------


class Statement(NamedTuple):
    """What a text says up to a reference, and for this and each that follows at once the rows that it
    names."""

    text: str
    cited: list[list[Ref]]


def statements(text: str, shown: Prompted) -> list[Statement]:
    """The statements of a text; references to rows that the question does not show are left out."""
    found: list[list[Ref]] = []

    def mark(reference: Cited) -> str:
        rows = [
            shown.numbering[table][number - 1]
            for table, numbers in reference.numbers.items()
            for number in numbers
            if 1 <= number <= len(shown.numbering.get(table, ()))
        ]
        found.append(rows)
        return "\0"

    told: list[Statement] = []
    for at, part in enumerate(replace_references(text.replace("\0", ""), mark).split("\0")):
        if any(map(str.isalnum, part)) or not told:
            told.append(Statement(part.rstrip(), []))
        told[-1].cited.extend(filter(None, found[at : at + 1]))
    return [statement for statement in told if any(map(str.isalnum, statement.text)) or statement.cited]


def checked(draft: Draft, shown: Prompted) -> Draft:
    """The draft without findings that cite no row of the question. Raises BadReply where no statement cites
    any: none of it would be shown but its title."""
    told = [statements(text, shown) for text in (draft.summary, *(text for _, text in draft.findings))]
    kept = [[said.text for said in every if said.cited] for every in told]
    texts = [text for every in kept for text in every]
    if not texts:
        raise BadReply("the report cites only rows that the question does not show")
    findings = tuple(finding for finding, said in zip(draft.findings, kept[1:], strict=True) if said)
    texts += [draft.title, *(heading for heading, _ in findings)]
    missing = dict.fromkeys(number for text in texts for number in _invented(text, shown))
    left_out = sum(map(len, told)) - sum(map(len, kept))
    return replace(draft, findings=findings, left_out=left_out, unsupported=tuple(missing))


def _invented(text: str, shown: Prompted) -> list[str]:
    """The numbers of a statement that no row has; none where the words of the rows are not known any more."""
    return [] if shown.words is None else numbers(_plain(text), shown.words)


def _plain(text: str) -> str:
    return " ".join(replace_references(text, lambda _: "").split())


def no_source_of(numbers: Sequence[str]) -> str:
    """`not in what it was written from: 1909, 12`"""
    return f"not in what it was written from: {', '.join(dict.fromkeys(numbers))}"


# ---- the report -----------------------------------------------------------------------------------


def finished(topic: Topic, shown: Prompted, draft: Draft, by: str = "llm") -> Report:
    """The stored report. What the draft does not say (rows, text units, a rating) is as without a model.
    `by`: who wrote it; any model is "llm"."""
    base = outline(topic)
    entities = {row.id: row for row in topic.entities}
    edges = {edge.id: edge for edge in topic.edges}

    def marked(text: str) -> str:
        """With a mark where it has numbers that no row has."""
        invented = _invented(text, shown)
        return f"{text} ({no_source_of(invented)})" if invented else text

    def written(text: str) -> str:
        """The statements with content ids for numbers; those that lead to no text are left out."""
        parts = []
        for said in statements(text, shown):
            stored = [_reference(rows, entities, edges, said.text) for rows in said.cited]
            if any(stored):
                parts.append(" ".join([marked(said.text), *filter(None, stored)]))
        return "".join(parts).strip()

    told = ((marked(_plain(heading)), written(text)) for heading, text in draft.findings)
    findings = [{"summary": heading, "explanation": text} for heading, text in told if text]
    title = marked(_plain(draft.title)) or base.title
    summary = written(draft.summary) or base.summary
    sections = (f"## {finding['summary']}\n\n{finding['explanation']}" for finding in findings)
    report = replace(
        base,
        title=title,
        summary=summary,
        full_content="\n\n".join([f"# {title}", summary, *sections]),
        findings=json.dumps(findings, ensure_ascii=False),
        method=by if by.startswith("agent:") else "llm",
    )
    if draft.rating is None:
        return report
    why = _plain(draft.rating_explanation) or base.rating_explanation
    return replace(report, rank=draft.rating, rating_explanation=why)


def _reference(
    cited_rows: Sequence[Ref], entities: Mapping[str, EntityRow], edges: Mapping[str, EdgeRow], statement: str
) -> str:
    """`[Data: ...]` in content ids; "" when nothing of it leads to a text. First come the text units that
    most of the cited rows rest on, then those whose sentences share most words with the statement."""
    edge_ids = [id for ref in cited_rows for id in ref.relationships if id in edges]
    ids = [id for ref in cited_rows for id in ref.entities if id in entities]
    rows = [*map(edges.__getitem__, edge_ids), *map(entities.__getitem__, ids)]
    support = Counter({unit: len(rows) + 1 for ref in cited_rows for unit in ref.sources})
    shared, words = Counter[str](), _words(statement)
    for row in rows:
        support.update({*row.text_unit_ids, *(unit for unit, _ in row.evidence)})
        for unit, sentence in row.evidence:
            shared[unit] = max(shared[unit], len(words & _words(sentence)))
    if not support:
        return ""
    best = sorted(support, key=lambda unit: (-support[unit], -shared[unit], unit))
    groups = ("Entities", ids), ("Relationships", edge_ids), ("Sources", best)
    return reference(groups, PER_GROUP)


@lru_cache(maxsize=1 << 12)
def _words(text: str) -> frozenset[str]:
    """Read once: a sentence is evidence of a community, and of the ones above it."""
    return frozenset(terms(text))
