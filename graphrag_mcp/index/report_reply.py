"""The question for a report, and its reply as the report that is stored.

A reply cites the numbers of the lines that it was shown; the stored report cites content ids, of which
each reference leads to text. A statement that cites no line of the prompt is left out."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated

from pydantic import BaseModel, BeforeValidator

from graphrag_mcp.index.report_content import EdgeRow, EntityRow
from graphrag_mcp.index.report_extractive import Report
from graphrag_mcp.index.report_prompt import Prompted, ReportPrompt, Topic
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
LONGEST_TITLE, LONGEST_HEADING, LONGEST_WHY, LONGEST_TEXT = 160, 300, 600, 4_000
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
    title, summary = _line(report.title, LONGEST_TITLE), _paragraphs(report.summary)
    if not (any(map(str.isalnum, title)) and any(map(str.isalnum, summary))):
        raise BadReply("the report has no title or no summary")
    said = [(f.summary, _paragraphs(f.explanation)) for f in report.findings[:MOST_FINDINGS]]
    findings = tuple(
        (_line(heading, LONGEST_HEADING) or one_line(text, LONGEST_HEADING), text)
        for heading, text in said
        if text
    )
    if not cited("\n".join([summary, *(text for _, text in findings)])):
        raise BadReply(
            "no statement of the report cites its rows as the question asks: [Data: ...]"
        )
    why = _line(report.rating_explanation, LONGEST_WHY)
    return Draft(title, summary, report.rating, why, findings)


def checked(draft: Draft, shown: Prompted) -> Draft:
    """The draft without findings that cite no row of the question. Raises BadReply where no statement cites
    any: none of it would be shown but its title."""

    def cites_row(references: Sequence[Cited]) -> bool:
        return any(
            1 <= number <= len(shown.numbering.get(table, ()))
            for found in references
            for table, numbers in found.numbers.items()
            for number in numbers
        )

    def kept(text: str) -> list[str]:
        return [said for said, references in statements(text) if cites_row(references)]

    findings = tuple(finding for finding in draft.findings if kept(finding[1]))
    texts = [draft.summary, *(text for _, text in draft.findings)]
    cited_rows = [said for text in texts for said in kept(text)]
    if not cited_rows:
        raise BadReply("the report cites only rows that the question does not show")
    left_out = sum(len(statements(text)) for text in texts) - len(cited_rows)
    shown_texts = [draft.title, *(heading for heading, _ in findings), *cited_rows]
    missing = dict.fromkeys(number for text in shown_texts for number in _invented(text, shown))
    return replace(draft, findings=findings, left_out=left_out, unsupported=tuple(missing))


def statements(text: str) -> list[tuple[str, list[Cited]]]:
    """What a text says up to each of its references, with this and those that follow at once; what stands behind
    the last one has none."""
    found: list[Cited] = []

    def mark(cited_rows: Cited) -> str:
        found.append(cited_rows)
        return "\0"

    *parts, rest = replace_references(text.replace("\0", ""), mark).split("\0")
    told: list[tuple[str, list[Cited]]] = []
    for part, cited_rows in zip(parts, found, strict=True):
        if any(map(str.isalnum, part)) or not told:
            told.append((part.rstrip(), []))
        told[-1][1].append(cited_rows)
    return [*told, (rest, [])] if any(map(str.isalnum, rest)) else told


def _invented(text: str, shown: Prompted) -> list[str]:
    """The numbers of a statement that no row has; none where the words of the rows are not known any more."""
    if shown.words is None:
        return []
    return numbers(replace_references(text, lambda _: ""), shown.words)


def no_source_of(numbers: Sequence[str]) -> str:
    """`not in what it was written from: 1909, 12`"""
    return f"not in what it was written from: {', '.join(dict.fromkeys(numbers))}"


def _line(value: str, limit: int) -> str:
    return one_line(replies.clean(value, LONGEST_TEXT).strip("#*_ "), limit)


def _paragraphs(value: str) -> str:
    """Without headings of their own."""
    lines = (replies.clean(line, len(line)).lstrip("# ") for line in value.splitlines())
    return cut(re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip(), LONGEST_TEXT)


# ---- the report -----------------------------------------------------------------------------------


def finished(topic: Topic, shown: Prompted, draft: Draft, base: Report) -> Report:
    """The stored report. What the draft does not say (rows, text units, a rating) is as in `base`."""
    writer = _Writer(topic, shown)
    told = ((writer.heading(heading), writer.written(text)) for heading, text in draft.findings)
    findings = [{"summary": heading, "explanation": text} for heading, text in told if text]
    title = writer.heading(draft.title) or base.title
    summary = writer.written(draft.summary) or base.summary
    sections = (f"## {finding['summary']}\n\n{finding['explanation']}" for finding in findings)
    rated = draft.rating is not None
    return replace(
        base,
        title=title,
        summary=summary,
        full_content="\n\n".join([f"# {title}", summary, *sections]),
        findings=json.dumps(findings, ensure_ascii=False),
        method="llm",
        rank=draft.rating if draft.rating is not None else base.rank,
        rating_explanation=rated and _plain(draft.rating_explanation) or base.rating_explanation,
    )


def _joined(*parts: str) -> str:
    return " ".join(filter(None, parts))


def _plain(text: str) -> str:
    return " ".join(replace_references(text, lambda _: "").split())


class _Writer:
    """Numbers of a prompt as content ids, with the text units that the lines rest on, and a mark where a
    statement has numbers that the lines do not have."""

    def __init__(self, topic: Topic, shown: Prompted) -> None:
        self.shown = shown
        self.entities = {row.id: row for row in topic.entities}
        self.edges = {edge.id: edge for edge in topic.edges}

    def written(self, text: str) -> str:
        """The statements of a text with stored references; one without any that leads to a text is left out."""
        parts = []
        for statement, cited_rows in statements(text):
            references = [self._reference(found, statement) for found in cited_rows]
            if any(references):
                parts.append(_joined(statement, self.doubt(statement), *references))
        return "".join(parts).strip()

    def heading(self, text: str) -> str:
        """A heading or title without references."""
        return _joined(_plain(text), self.doubt(text))

    def doubt(self, statement: str) -> str:
        """A mark for a statement with numbers that no line has; "" for any other."""
        invented = _invented(statement, self.shown)
        return f"({no_source_of(invented)})" if invented else ""

    def _reference(self, found: Cited, statement: str) -> str:
        """`[Data: ...]` in content ids; "" when nothing of it leads to a text."""
        numbering = self.shown.numbering
        refs = [
            numbering[table][number - 1]
            for table, numbers in found.numbers.items()
            for number in numbers
            if 1 <= number <= len(numbering.get(table, ()))
        ]
        edges = [id for ref in refs for id in ref.relationships if id in self.edges]
        entities = [id for ref in refs for id in ref.entities if id in self.entities]
        rows: list[EntityRow | EdgeRow] = [self.edges[id] for id in edges]
        rows += [self.entities[id] for id in entities]
        sources = _best_sources(rows, [id for ref in refs for id in ref.sources], statement)
        if not sources:
            return ""
        groups = ("Entities", entities), ("Relationships", edges), ("Sources", sources)
        return reference(groups, PER_GROUP)


def _best_sources(
    rows: Sequence[EntityRow | EdgeRow], cited_units: Sequence[str], statement: str
) -> list[str]:
    """Text units: those that most of the cited rows rest on first, then those whose sentences share most
    words with the statement."""
    support = Counter(dict.fromkeys(cited_units, len(rows) + 1))
    for row in rows:
        support.update({*row.text_unit_ids, *(unit for unit, _ in row.evidence)})
    words = _words(statement)
    shared: Counter[str] = Counter()
    for unit, sentence in {evidence for row in rows for evidence in row.evidence}:
        shared[unit] = max(shared[unit], len(words & _words(sentence)))
    return sorted(support, key=lambda unit: (-support[unit], -shared[unit], unit))


@lru_cache(maxsize=1 << 12)
def _words(text: str) -> frozenset[str]:
    """Read once: a sentence is evidence of a community, and of the ones above it."""
    return frozenset(terms(text))
