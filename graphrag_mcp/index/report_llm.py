"""Community reports by a model: what it is shown of a community, and what becomes of its draft.

Takes a community's rows, its children's reports and, in the end, a `Draft`; gives the prompt with the numbers that
stand in it, and the stored `Report`, whose references are content ids that lead to text. Rows are numbered within the
prompt in an order fixed by what they say, so the same community gives the same prompt in every build. Knows no store
and calls no model.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from string import Template
from typing import Any

from graphrag_mcp.ask import Ask
from graphrag_mcp.index.communities import Community
from graphrag_mcp.index.evidence import EdgeRow, EntityRow
from graphrag_mcp.index.report_reply import Cited, Draft, parse_report, replace_references
from graphrag_mcp.index.report_rows import Claim, Ref, Rows, Table, statements
from graphrag_mcp.index.reports import Report
from graphrag_mcp.pack_ids import referenced_ids
from graphrag_mcp.seams import Message
from graphrag_mcp.text import terms

__all__ = [
    "CRITERIA", "Claim", "Finished", "PromptParams", "Prompted", "Ref", "ReportInput", "SCHEMA", "context",
    "context_alone", "finish", "finish_report", "report_ask",
]  # fmt: skip

CRITERIA = "how important the community is for understanding the whole: its reach, and the consequences of what it does"
OWN_LANGUAGE = "the language that most of the rows are in"
PER_GROUP = 5  # references of one kind after a statement
_MARK = "\x00"  # stands in no draft
LOOKED_AT = 80  # evidence sentences compared with a statement to find its best sources
SCHEMA: dict[str, Any] = {
    "title": "community_report",
    "type": "object",
    "additionalProperties": False,
    "required": ["title", "summary", "rating", "rating_explanation", "findings"],
    "properties": {
        "title": {"type": "string"},
        "summary": {"type": "string"},
        "rating": {"type": "number"},
        "rating_explanation": {"type": "string"},
        "findings": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["summary", "explanation"],
                "properties": {"summary": {"type": "string"}, "explanation": {"type": "string"}},
            },
        },
    },
}


@dataclass(frozen=True, slots=True)
class PromptParams:
    tokens: int = 8000  # of the rows shown; the instructions come on top
    shortened: float = 0.05  # of the tokens: the most that one description takes when not everything fits


@dataclass(frozen=True, slots=True)
class ReportInput:
    """One community. `entities` and `edges` may hold more than its own; `types` and `descriptions` are by row id.

    `children` are the reports of the communities it is divided into, with the ids of their members.
    """

    community: Community
    entities: Sequence[EntityRow]
    edges: Sequence[EdgeRow]
    types: Mapping[str, str] = field(default_factory=dict)
    descriptions: Mapping[str, str] = field(default_factory=dict)
    claims: Sequence[Claim] = ()
    children: Sequence[Report] = ()


@dataclass(frozen=True, slots=True)
class Prompted:
    """What goes between the context tags, and per table what its rows 1, 2, ... stand for.

    `substituted` names the children whose reports stand for their rows; `left_out` counts rows that did not fit.
    """

    text: str
    numbering: Mapping[str, Sequence[Ref]]
    substituted: tuple[str, ...] = ()
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Finished:
    """A report, how many references in it named no row, and how many findings went for want of any."""

    report: Report
    unknown: int = 0
    dropped: int = 0


# ---- what the model is shown --------------------------------------------------------------------


def context_alone(given: ReportInput, params: PromptParams) -> Prompted | None:
    """The prompt where it needs no child's report, else None: `context` will, once these have been written."""
    rows = _rows(given)
    if rows.fits(params.tokens):
        return _prompted(rows, rows.tables())
    return None if given.community.children else _best(given, rows, params)


def context(given: ReportInput, params: PromptParams) -> Prompted:
    """The rows of a community within the budget: all of them where they fit, else the children's reports for those of
    the largest children until it fits, else the best of all that."""
    rows = _rows(given)
    return _prompted(rows, rows.tables()) if rows.fits(params.tokens) else _best(given, rows, params)


def _best(given: ReportInput, rows: Rows, params: PromptParams) -> Prompted:
    inside = {child.id: frozenset(child.entity_ids) for child in given.children}
    price = {id: rows.price(members, params.tokens) for id, members in inside.items()}
    order = sorted(given.children, key=lambda one: (-price[one.id], -len(inside[one.id]), one.title, one.id))

    stated = {child.id: statements(child, _unreferenced) for child in order}

    def substituted(count: int) -> Rows:
        taken = order[:count]
        return rows.without(inside[one.id] for one in taken).with_reports(taken, lambda child: stated[child.id])

    if order and rows.without(inside.values()).fits(params.tokens):  # else no substitution is enough
        for count in range(max(1, sum(one > params.tokens for one in price.values())), len(order) + 1):
            fewer = substituted(count)
            if fewer.fits(params.tokens):
                return _prompted(fewer, fewer.tables(), order[:count])
    rows = substituted(len(order)) if order else rows
    rows = rows.shortened(max(40, int(params.tokens * params.shortened)))
    return _prompted(rows, rows.tables(params.tokens), order)


def _rows(given: ReportInput) -> Rows:
    members = set(given.community.members)
    return Rows.of_community(
        [row for row in given.entities if row.id in members],
        [edge for edge in given.edges if edge.source_id in members and edge.target_id in members],
        given.types, given.descriptions, given.claims,
    )  # fmt: skip


def _prompted(rows: Rows, tables: Sequence[Table], taken: Iterable[Report] = ()) -> Prompted:
    shown = [table for table in tables if table.lines]
    left_out = len(rows) - sum(len(table.lines) for table in shown)
    blocks = [table.text() for table in shown]
    if left_out:
        blocks.append(f"({left_out} further rows, of less weight, are not shown.)")
    numbering = {table.name: table.refs for table in shown}
    return Prompted("\n\n".join(blocks), numbering, tuple(sorted(child.id for child in taken)), left_out)


@lru_cache(maxsize=1 << 12)
def _unreferenced(text: str) -> str:
    """A child's text without its references: its row in the prompt has a number of its own, which stands for them."""
    return replace_references(text, lambda _: "").strip()


def report_ask(
    prompted: Prompted, template: Template, *, language: str = "", role: str = "", rating_criteria: str = ""
) -> Ask[Draft | None]:
    """The question; its value is None when nobody answers."""
    text = template.substitute(
        role=role.strip(), language=language or OWN_LANGUAGE, rating_criteria=rating_criteria or CRITERIA,
        context=prompted.text,
    ).strip()  # fmt: skip
    return Ask("report", (Message("user", text),), parse_report, lambda: None, SCHEMA, if_cut="refused")


# ---- what becomes of the draft ------------------------------------------------------------------


def finish_report(given: ReportInput, prompted: Prompted, draft: Draft, base: Report) -> Report:
    """The stored report. What the draft does not say (rows, text units, a rating) is as in `base`."""
    return finish(given, prompted, draft, base).report


def finish(given: ReportInput, prompted: Prompted, draft: Draft, base: Report) -> Finished:
    """As `finish_report`, and what the check of the references found."""
    check = _Check(given, prompted)
    pairs, dropped = [], 0
    for heading, said in draft.findings:
        text = check(said, heading)
        if text:
            pairs.append((_plain(heading), text))
        else:
            dropped += 1
    findings = [{"summary": heading, "explanation": text} for heading, text in pairs] or json.loads(base.findings)
    summary = check(draft.summary, draft.title)
    if not summary:  # it names nobody: it rests on what the findings rest on
        summary = check.with_all(draft.summary, (text for _, text in pairs)) or base.summary
    title = _plain(draft.title) or base.title
    content = [f"# {title}", summary, *(f"## {one['summary']}\n\n{one['explanation']}" for one in findings)]
    given_rank = draft.rating is not None
    report = replace(
        base, title=title, summary=summary, full_content="\n\n".join(content),
        rank=draft.rating if given_rank else base.rank,
        rating_explanation=(_plain(draft.rating_explanation) if given_rank else "") or base.rating_explanation,
        findings=json.dumps(findings, ensure_ascii=False), method="llm",
    )  # fmt: skip
    return Finished(report, check.unknown, dropped)


def _plain(text: str) -> str:
    return " ".join(replace_references(text, lambda _: "").split())


class _Check:
    """Turns the numbers of one prompt into content ids, and adds the text units that the rows rest on."""

    def __init__(self, given: ReportInput, prompted: Prompted) -> None:
        self.numbering = prompted.numbering
        members = set(given.community.members)
        self.entities = {row.id: row for row in given.entities if row.id in members}
        self.edges = {edge.id: edge for edge in given.edges if edge.source_id in members and edge.target_id in members}
        names = sorted(self.entities.values(), key=lambda row: (-len(row.title), row.title, row.id))
        self.names = [(row.title.casefold(), row.id) for row in names if len(row.title) > 1]
        self.unknown = 0

    def __call__(self, text: str, heading: str) -> str:
        """The text with stored references; "" when it has none that holds and names no member either."""
        statements = iter(replace_references(text, lambda _: _MARK).split(_MARK))
        made: list[str] = []

        def write(cited: Cited) -> str:
            made.append(self.written(self.ref(cited), next(statements), bool(cited.more)))
            return made[-1]

        checked = replace_references(text, write).strip()
        if any(made):
            return checked
        named = self.named(f"{checked} {heading}")
        reference = self.written(Ref(entities=named), checked, False) if named else ""
        return f"{checked} {reference}" if checked and reference else ""

    def ref(self, cited: Cited) -> Ref:
        """What the numbers of one reference stand for."""
        found = Ref()
        self.unknown += cited.strange
        for group, numbers in cited.numbers.items():
            known = self.numbering.get(group, ())
            for number in numbers:
                if 1 <= number <= len(known):
                    found = found.and_(known[number - 1])
                else:
                    self.unknown += 1
        return found

    def named(self, text: str) -> tuple[str, ...]:
        """The members whose titles stand in the text, longest first; one inside another's name does not count."""
        folded = text.casefold()
        found: list[str] = []
        for name, id in self.names:
            if _stands_alone(name, folded):
                found.append(id)
                folded = folded.replace(name, " ")
            if len(found) == PER_GROUP:
                break
        return tuple(found)

    def with_all(self, text: str, others: Iterable[str]) -> str:
        ids = referenced_ids(" ".join(others))
        ref = Ref(*(tuple(ids.get(group, ())) for group in ("Entities", "Relationships", "Sources")))
        made = self.written(ref, text, False)
        return f"{replace_references(text, lambda _: '').strip()} {made}" if made else ""

    def written(self, ref: Ref, statement: str, more: bool) -> str:
        """`[Data: ...]` in content ids; "" when nothing is left or nothing of it leads to a text."""
        edges = [id for id in dict.fromkeys(ref.relationships) if id in self.edges]
        entities = [id for id in dict.fromkeys(ref.entities) if id in self.entities]
        if not entities:  # a relationship speaks of both its ends
            entities = list(
                dict.fromkeys(end for id in edges for end in (self.edges[id].source_id, self.edges[id].target_id))
            )
        sources = self.sources(entities, edges, ref.sources, statement)
        if not sources:
            return ""
        groups = []
        for name, ids in (("Entities", entities), ("Relationships", edges), ("Sources", sources)):
            if ids:
                over = ", +more" if len(ids) > PER_GROUP or (more and name != "Sources") else ""
                groups.append(f"{name} ({', '.join(ids[:PER_GROUP])}{over})")
        return f"[Data: {'; '.join(groups)}]"

    def sources(self, entities: Sequence[str], edges: Sequence[str], known: Iterable[str], statement: str) -> list[str]:
        """Text units of the cited rows, best first: those that several of the rows rest on, then those whose sentences
        share most words with the statement."""
        rows: list[EntityRow | EdgeRow] = [
            *map(self.edges.__getitem__, edges),
            *map(self.entities.__getitem__, entities),
        ]
        held: Counter[str] = Counter(dict.fromkeys(known, 2))
        for row in rows:
            worth = 2 if isinstance(row, EdgeRow) else 1
            for unit in dict.fromkeys([*row.text_unit_ids, *(unit for unit, _ in row.evidence)]):
                held[unit] += worth
        if len(held) <= 1:
            return list(held)
        said = _words(statement)
        shared: dict[str, int] = {}
        for row in rows:
            for unit, text in sorted(row.evidence, key=lambda one: (-held[one[0]], one))[:LOOKED_AT]:
                shared[unit] = max(shared.get(unit, 0), len(said & _words(text)))
        return sorted(held, key=lambda unit: (-held[unit], -shared.get(unit, 0), unit))[: PER_GROUP + 1]


def _stands_alone(name: str, text: str) -> bool:
    """Does the name stand in the text, and not inside a longer word?"""
    at = text.find(name)
    while at >= 0:
        around = text[at - 1 : at] + text[at + len(name) : at + len(name) + 1]
        if not any(ch.isascii() and ch.isalnum() for ch in around):
            return True
        at = text.find(name, at + 1)
    return False


@lru_cache(maxsize=1 << 12)
def _words(text: str) -> frozenset[str]:
    """Read once: a sentence is evidence of a community, and of the ones above it."""
    return frozenset(terms(text))
