"""Community reports written by a model, where that pays.

A model reads the rows of a community as numbered CSV-like tables within a budget of tokens, best
first, and what written reports of its children say where the rows do not fit. Their order comes from what the rows
say alone, so the same community gives the same prompt in every build. References of a stored report
are content ids that lead to text. Knows the asker, no store."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from string import Template
from typing import Annotated

from pydantic import BaseModel, BeforeValidator

from graphrag_mcp.index.communities import Community
from graphrag_mcp.index.report_content import EdgeRow, EntityRow
from graphrag_mcp.index.report_extractive import Report
from graphrag_mcp.llm import replies
from graphrag_mcp.llm.asker import Ask
from graphrag_mcp.llm.protocols import Message
from graphrag_mcp.llm.replies import BadReply, cut, words
from graphrag_mcp.packing.budget import one_line, reference, referenced_ids
from graphrag_mcp.packing.citations import Cited, replace_references
from graphrag_mcp.text.terms import terms
from graphrag_mcp.text.tokens import count_tokens

KINDS = ("Entities", "Relationships", "Sources")  # of references
COLUMNS = {
    "Reports": "id,title,content",
    "Sources": "id,document,date,summary",
    "Entities": "id,entity,type,description",
    "Relationships": "id,source,target,description,weight",
}
# No text has fewer or more bytes a token (English 4, Chinese 3): most communities are so small, or so
# large, that nothing need be counted.
BYTES = 2, 16
FOR_REPORTS = 0.5  # of the budget, where reports and rows have to share it
_TAG = re.compile(r"<(?=/\s*context)", re.IGNORECASE)


# ---- the rows of a prompt -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ref:
    """What a numbered row stands for, as content ids."""

    entities: tuple[str, ...] = ()
    relationships: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


@dataclass(slots=True)
class Line:
    """One row. `fields`: shown after the number; `about`: ids of entities that it speaks of."""

    fields: tuple[str, ...]
    ref: Ref
    about: tuple[str, ...] = ()

    def body(self) -> str:
        return ",".join(map(quoted, self.fields))

    def price(self) -> int:
        """Tokens of the row in a table, its number included; never less than what it adds."""
        return _tokens(self.body())


@lru_cache(maxsize=1 << 15)
def _tokens(body: str) -> int:
    """Counted once: a row is priced again in the community above, and in the one above that."""
    return count_tokens(f"1000,{body}\n")


@lru_cache(maxsize=1 << 15)
def quoted(value: str) -> str:
    """A value on one line, in quotes where it holds a comma or quote; it ends no tag."""
    flat = _TAG.sub("<\\\\", " ".join(value.split())).replace("[Data:", "(Data:")
    return '"' + flat.replace('"', '""') + '"' if "," in flat or '"' in flat else flat


@dataclass(frozen=True, slots=True)
class ReportInput:
    """One community with its entities and the relationships among them."""

    community: Community
    entities: Sequence[EntityRow]
    edges: Sequence[EdgeRow]


@dataclass(slots=True)
class Rows:
    """Rows of a community by table, each table best first."""

    tables: dict[str, list[Line]]

    @classmethod
    def of(cls, report_input: ReportInput) -> Rows:
        """Entities by the weight of their relationships inside, relationships by their own."""
        weight = {row.id: 0.0 for row in report_input.entities}
        title = {row.id: row.title for row in report_input.entities}
        for edge in sorted(
            report_input.edges, key=lambda edge: edge.id
        ):  # sums of fractions in one order
            weight[edge.source_id] += edge.weight
            weight[edge.target_id] += edge.weight

        def text(row: EntityRow | EdgeRow) -> str:
            return row.description or min((text for _, text in row.evidence), default="")

        def edge_order(e: EdgeRow) -> tuple[float | str, ...]:
            ends = (e.source_id, e.target_id)
            heavy = sum(weight[end] for end in ends)
            return -e.weight, -heavy, *(title[end] for end in ends), e.id

        entities = [
            Line((row.title, row.type, text(row)), Ref(entities=(row.id,)), (row.id,))
            for row in sorted(
                report_input.entities, key=lambda row: (-weight[row.id], row.title, row.id)
            )
        ]
        edges = []
        for e in sorted(report_input.edges, key=edge_order):
            ends = (e.source_id, e.target_id)
            fields = (*map(title.__getitem__, ends), text(e), f"{e.weight:g}")
            edges.append(Line(fields, Ref(relationships=(e.id,)), ends))
        return cls({"Entities": entities, "Relationships": edges})

    def __len__(self) -> int:
        return sum(map(len, self.tables.values()))

    def text(self) -> str:
        shown = []
        for name, columns in COLUMNS.items():
            rows = [f"{n},{line.body()}" for n, line in enumerate(self.tables.get(name, ()), 1)]
            shown += ["\n".join((name, columns, *rows))] if rows else []
        return "\n\n".join(shown)

    def fits(self, budget: int) -> bool:
        """Do all rows together stay within so many tokens?"""
        lines = list(chain.from_iterable(self.tables.values()))
        size = sum(len("".join(line.fields).encode()) + 2 * len(line.fields) for line in lines)
        fits = size <= BYTES[0] * budget
        return fits or (size <= BYTES[1] * budget and count_tokens(self.text()) <= budget)

    def best_first(self) -> Iterator[Line]:
        """Strongest relationships, each after the two it joins; then what is left."""
        rows = {line.about[0]: line for line in self.tables["Entities"]}
        for edge in self.tables["Relationships"]:
            yield from (rows.pop(end) for end in edge.about if end in rows)
            yield edge
        yield from rows.values()


def _statement(child: Report) -> Line:
    """The summary of a report as a row, so that a reference to it leads to what it rests on."""
    ref = _referenced(child.summary)
    if ref == Ref():
        ref = Ref(tuple(child.entity_ids[:5]), (), tuple(child.text_unit_ids[:5]))
    return Line((child.title, _unreferenced(child.summary)), ref)


def _referenced(text: str) -> Ref:
    ids = referenced_ids(text)
    return Ref(*(tuple(ids.get(group, ())) for group in KINDS))


def _unreferenced(text: str) -> str:
    """A text without its references: in the prompt its row has a number of its own."""
    return replace_references(text, lambda _: "").strip()


# ---- what the model is shown --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Prompted:
    """What goes between the context tags, and per table what its rows 1, 2, ... stand for."""

    text: str
    numbering: Mapping[str, Sequence[Ref]]


def context(
    rows: Rows, order: Iterable[Line], children: Sequence[Report] | None, tokens: int
) -> Prompted | None:
    """The rows within so many tokens: all of them where they fit, else what the written reports of the
    children say, in at most half of the room, and the rows that come first in `order`. None where
    `children` are needed and are None: they are yet to be written."""
    if rows.fits(tokens):
        return _prompted(rows)
    if children is None:
        return None
    names = sum(count_tokens(f"{name}\n{COLUMNS[name]}\n\n") for name in ("Reports", *rows.tables))
    left = tokens - 20 - names  # the last line says how many rows are not shown
    # what a report without a model quotes are the rows again
    written = [child for child in children if child.method != "extractive"]
    best = sorted(written, key=lambda child: (-child.rank, child.title, child.id))
    reports = _fitting(map(_statement, best), int(FOR_REPORTS * left))
    left -= sum(line.price() for line in reports)
    kept = set(map(id, _fitting(order, left)))
    tables = {
        name: [line for line in lines if id(line) in kept] for name, lines in rows.tables.items()
    }
    shown = Rows({"Reports": reports, **tables})
    return _prompted(shown, len(rows) + len(written) - len(shown))


def _fitting(lines: Iterable[Line], tokens: int) -> list[Line]:
    kept: list[Line] = []
    for line in lines:
        if line.price() <= tokens:
            tokens -= line.price()
            kept.append(line)
        elif tokens < 12:
            break
    return kept


def _prompted(rows: Rows, left_out: int = 0) -> Prompted:
    text = rows.text()
    if left_out:
        text += f"\n\n({left_out} further rows, of less weight, are not shown.)"
    refs = {name: [line.ref for line in lines] for name, lines in rows.tables.items() if lines}
    return Prompted(text, refs)


CRITERIA = "how important the community is for understanding the whole: its reach, and the consequences of what it does"
OWN_LANGUAGE = "the language that most of the rows are in"


def report_ask(
    prompted: Prompted,
    template: Template,
    language: str = "",
    kept: Callable[[str], str] = lambda reply: reply,
) -> Ask[Draft | None]:
    """The question; its value is None when no one answers."""
    fields = {"role": "", "language": language or OWN_LANGUAGE, "rating_criteria": CRITERIA}
    message = (Message("user", template.substitute(fields, context=prompted.text).strip()),)
    return Ask("report", message, parse_report, lambda: None, SCHEMA, if_cut="refused", kept=kept)


# ---- what becomes of the draft ------------------------------------------------------------------

PER_GROUP = 5  # references of one kind after a statement
LOOKED_AT = 80  # evidence sentences compared with a statement to find its best sources
_MARK = "\x00"  # stands in no draft


def finished(report_input: ReportInput, prompted: Prompted, draft: Draft, base: Report) -> Report:
    """The stored report. What the draft does not say (rows, text units, a rating) is as in `base`."""
    check = _Check(report_input, prompted)
    checked = ((_plain(heading), check(text, heading)) for heading, text in draft.findings)
    findings = [{"summary": heading, "explanation": text} for heading, text in checked if text]
    summary = check(draft.summary, draft.title)
    if not summary:  # it names no one: it rests on what the findings rest on
        texts = " ".join(finding["explanation"] for finding in findings)
        reference = check.written(_referenced(texts), draft.summary, False)
        summary = f"{_unreferenced(draft.summary)} {reference}" if reference else base.summary
    findings = findings or json.loads(base.findings)
    title = _plain(draft.title) or base.title
    sections = (f"## {finding['summary']}\n\n{finding['explanation']}" for finding in findings)
    report = replace(
        base,
        title=title,
        summary=summary,
        full_content="\n\n".join([f"# {title}", summary, *sections]),
        findings=json.dumps(findings, ensure_ascii=False),
        method="llm",
    )
    if draft.rating is None:
        return report
    why = _plain(draft.rating_explanation) or base.rating_explanation
    return replace(report, rank=draft.rating, rating_explanation=why)


def _plain(text: str) -> str:
    return " ".join(_unreferenced(text).split())


class _Check:
    """Numbers of a prompt as content ids, with the text units that the rows rest on."""

    def __init__(self, report_input: ReportInput, prompted: Prompted) -> None:
        self.numbering = prompted.numbering
        self.entities = {row.id: row for row in report_input.entities}
        self.edges = {edge.id: edge for edge in report_input.edges}
        names = sorted(self.entities.values(), key=lambda row: (-len(row.title), row.title, row.id))
        self.names = [(row.title.casefold(), row.id) for row in names if len(row.title) > 1]

    def __call__(self, text: str, heading: str) -> str:
        """The text with stored references; "" when it has none that holds and names no member."""
        parts = iter(replace_references(text, lambda _: _MARK).split(_MARK))
        references: list[str] = []

        def write(cited: Cited) -> str:
            references.append(self.written(self._ref(cited), next(parts), bool(cited.more)))
            return references[-1]

        checked = replace_references(text, write).strip()
        if any(references):
            return checked
        named = self._named(f"{checked} {heading}")
        reference = self.written(Ref(entities=named), checked, False) if named else ""
        return f"{checked} {reference}" if checked and reference else ""

    def _ref(self, cited: Cited) -> Ref:
        """What the numbers of one reference stand for."""
        refs = [
            self.numbering[group][number - 1]
            for group, numbers in cited.numbers.items()
            for number in numbers
            if 1 <= number <= len(self.numbering.get(group, ()))
        ]
        parts = zip(*((ref.entities, ref.relationships, ref.sources) for ref in refs), strict=True)
        return Ref(*(tuple(chain.from_iterable(part)) for part in parts))

    def _named(self, text: str) -> tuple[str, ...]:
        """Members whose titles stand in the text, longest first, not inside another's name."""
        folded = text.casefold()
        found: list[str] = []
        for name, id in self.names:
            if name in folded and re.search(rf"(?<![a-z0-9]){re.escape(name)}(?![a-z0-9])", folded):
                found.append(id)
                folded = folded.replace(name, " ")
            if len(found) == PER_GROUP:
                break
        return tuple(found)

    def written(self, ref: Ref, statement: str, more: bool) -> str:
        """`[Data: ...]` in content ids; "" when nothing is left or nothing of it leads to a text."""
        edges = [id for id in dict.fromkeys(ref.relationships) if id in self.edges]
        entities = [id for id in dict.fromkeys(ref.entities) if id in self.entities]
        if not entities:  # a relationship speaks of both its ends
            rows = map(self.edges.__getitem__, edges)
            entities = list(dict.fromkeys(end for e in rows for end in (e.source_id, e.target_id)))
        sources = self._sources(entities, edges, ref.sources, statement)
        if not sources:
            return ""
        groups = zip(KINDS, (entities, edges, sources), strict=True)
        return reference(groups, PER_GROUP, KINDS[:2] if more else ())

    def _sources(
        self, entities: Sequence[str], edges: Sequence[str], known: Iterable[str], statement: str
    ) -> list[str]:
        """Text units of the cited rows, best first: those that several of the rows rest on, then
        those whose sentences share most words with the statement."""
        rows: list[EntityRow | EdgeRow] = [self.edges[id] for id in edges]
        rows += (self.entities[id] for id in entities)
        support: Counter[str] = Counter(dict.fromkeys(known, 2))
        for row in rows:
            for unit in {*row.text_unit_ids, *(unit for unit, _ in row.evidence)}:
                support[unit] += 2 if isinstance(row, EdgeRow) else 1
        if len(support) <= 1:
            return list(support)
        spoken = _words(statement)
        shared: dict[str, int] = {}
        for row in rows:
            best = sorted(row.evidence, key=lambda evidence: (-support[evidence[0]], evidence))[
                :LOOKED_AT
            ]
            for unit, text in best:
                shared[unit] = max(shared.get(unit, 0), len(spoken & _words(text)))
        order = sorted(support, key=lambda unit: (-support[unit], -shared.get(unit, 0), unit))
        return order[: PER_GROUP + 1]


@lru_cache(maxsize=1 << 12)
def _words(text: str) -> frozenset[str]:
    """Read once: a sentence is evidence of a community, and of the ones above it."""
    return frozenset(terms(text))


# ---- a reply as the draft of a report ------------------------------------------------------------


LONGEST_REPLY = 400_000  # characters; a report has some 15,000
LONGEST_TITLE, LONGEST_HEADING, LONGEST_WHY, LONGEST_TEXT = 160, 300, 600, 4_000
MOST_FINDINGS = 15
MOST_WORDS = 2_400  # 2,000 are asked for


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
    """`rating`: 0-10, or None; `findings`: pairs of a heading and what it says."""

    title: str
    summary: str
    rating: float | None = None
    rating_explanation: str = ""
    findings: tuple[tuple[str, str], ...] = ()


def parse_report(reply: str) -> Draft:
    """The draft that a reply holds. Raises BadReply for one that is not of the form asked for."""
    if len(reply) > LONGEST_REPLY:
        raise BadReply("the reply was far too long")
    report = replies.validated(ReportSaid, reply)
    title, summary = _line(report.title, LONGEST_TITLE), _text(report.summary)
    if not (any(map(str.isalnum, title)) and any(map(str.isalnum, summary))):
        raise BadReply("the report has no title or no summary")
    why = _line(report.rating_explanation, LONGEST_WHY)
    room = MOST_WORDS - words(f"{title} {summary} {why}")
    return Draft(title, summary, report.rating, why, tuple(_findings(report.findings, room)))


def _findings(findings: Sequence[FindingSaid], left: int) -> Iterator[tuple[str, str]]:
    """At most MOST_FINDINGS and so many words; what is over is cut at the end of a sentence."""
    for finding in findings[:MOST_FINDINGS]:
        heading, text = _line(finding.summary, LONGEST_HEADING), _text(finding.explanation)
        if left < 40:
            return
        if not text:
            continue
        if (size := words(heading) + words(text)) > left:
            text = cut(text, max(1, len(text) * left // size))
        left -= size
        yield heading or one_line(text, LONGEST_HEADING), text


def _line(value: str, limit: int) -> str:
    return one_line(replies.clean(value, LONGEST_TEXT).strip("#*_ "), limit)


def _text(value: str) -> str:
    """Paragraphs without headings of their own."""
    lines = (replies.clean(line, len(line)).lstrip("# ") for line in value.splitlines())
    return cut(re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip(), LONGEST_TEXT)
