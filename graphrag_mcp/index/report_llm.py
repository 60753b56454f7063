"""Community reports of a run: written by a model where it pays, extractive elsewhere.

A model reads the rows of a community as numbered CSV-like tables within a budget of tokens, best
first, and the reports of its children where the rows do not fit. Their order comes from what the rows
say alone, so the same community gives the same prompt in every build. References of a stored report
are content ids that lead to text. Knows the asker, no store.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from string import Template
from typing import Any

from graphrag_mcp.index.communities import Community
from graphrag_mcp.index.report_content import EdgeRow, EntityRow
from graphrag_mcp.index.report_extractive import Report, Written, outline, stored
from graphrag_mcp.index.report_reply import Draft, parse_report
from graphrag_mcp.llm import prompts
from graphrag_mcp.llm.asker import Ask, Asker, aside
from graphrag_mcp.llm.protocols import Message
from graphrag_mcp.packing.budget import referenced_ids, shorten
from graphrag_mcp.packing.citations import Cited, replace_references
from graphrag_mcp.settings import Settings
from graphrag_mcp.text.terms import terms
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.types import content_id

COLUMNS = {
    "Reports": "id,title,content",
    "Entities": "id,entity,type,description",
    "Relationships": "id,source,target,description,weight",
    "Claims": "id,subject,object,type,status,description",
}
# No text has fewer bytes a token (English 4, Chinese 3): most communities are so small that nothing
# need be counted.
BYTES = 2
HEADINGS = 100  # tokens of the names of all tables and of their columns, and of the blank lines
ROUNDED = 4  # tokens by which a row's price may be over what it adds to a table
FOR_REPORTS = 0.75  # of the budget, where reports and rows have to share it
_TAG = re.compile(r"<(?=/\s*context)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Claim:
    """What a text claims of a member, as the table `claims` has it."""

    id: str
    subject: str
    object: str
    type: str
    status: str
    description: str
    subject_id: str
    text_unit_id: str


@dataclass(frozen=True, slots=True)
class Ref:
    """What a numbered row stands for, as content ids."""

    entities: tuple[str, ...] = ()
    relationships: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()

    def and_(self, other: Ref) -> Ref:
        return Ref(
            self.entities + other.entities,
            self.relationships + other.relationships,
            self.sources + other.sources,
        )


@dataclass(slots=True)
class Line:
    """One row. `fields` as they are shown after the number; `about` are ids of entities that it
    speaks of.
    """

    table: str
    fields: tuple[str, ...]
    ref: Ref
    about: tuple[str, ...] = ()
    long: int = -1  # which field is the long text
    cost: int = 0

    def body(self) -> str:
        return ",".join(map(quoted, self.fields))

    def price(self) -> int:
        """Tokens of the row in a table, its number included; never less than what it adds."""
        self.cost = self.cost or _tokens(self.body())
        return self.cost


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    lines: Sequence[Line]

    @property
    def refs(self) -> list[Ref]:
        return [line.ref for line in self.lines]

    def text(self) -> str:
        rows = (f"{number},{line.body()}" for number, line in enumerate(self.lines, 1))
        return "\n".join((self.name, COLUMNS[self.name], *rows))


@dataclass(slots=True)
class Rows:
    """All rows of a community by table, each table best first."""

    lines: dict[str, list[Line]] = field(default_factory=dict)

    @classmethod
    def of_community(
        cls,
        entities: Sequence[EntityRow],
        edges: Sequence[EdgeRow],
        types: Mapping[str, str],
        descriptions: Mapping[str, str],
        claims: Iterable[Claim],
    ) -> Rows:
        """Entities by the weight of their relationships inside, relationships by their own; then by
        name.
        """
        weight = dict.fromkeys((row.id for row in entities), 0.0)
        for edge in sorted(
            edges, key=lambda edge: edge.id
        ):  # one order, so that sums of fractions are the same
            weight[edge.source_id] += edge.weight
            weight[edge.target_id] += edge.weight
        title = {row.id: row.title for row in entities}

        def said(row: EntityRow | EdgeRow) -> str:
            return descriptions.get(row.id) or min((text for _, text in row.evidence), default="")

        by_weight = sorted(entities, key=lambda row: (-weight[row.id], row.title, row.id))
        by_strength = sorted(
            edges,
            key=lambda e: (
                -e.weight,
                -weight[e.source_id] - weight[e.target_id],
                title[e.source_id],
                title[e.target_id],
                e.id,
            ),
        )
        own = sorted(
            (claim for claim in claims if claim.subject_id in weight),
            key=lambda claim: (
                -weight[claim.subject_id],
                claim.subject,
                claim.type,
                claim.description,
                claim.id,
            ),
        )
        return cls(
            {
                "Entities": [
                    Line(
                        "Entities",
                        (row.title, types.get(row.id, ""), said(row)),
                        Ref(entities=(row.id,)),
                        (row.id,),
                    )
                    for row in by_weight
                ],
                "Relationships": [
                    Line(
                        "Relationships",
                        (title[e.source_id], title[e.target_id], said(e), f"{e.weight:g}"),
                        Ref(relationships=(e.id,)),
                        (e.source_id, e.target_id),
                        2,
                    )
                    for e in by_strength
                ],
                "Claims": [
                    Line(
                        "Claims",
                        (c.subject, c.object, c.type, c.status, c.description),
                        Ref((c.subject_id,), (), (c.text_unit_id,)),
                        (c.subject_id,),
                    )
                    for c in own
                ],
            }
        )

    def __len__(self) -> int:
        return sum(map(len, self.lines.values()))

    def tables(self, budget: int = 0) -> list[Table]:
        """All rows in reading order; with a budget the best that fit."""
        lines = self._best(budget) if budget else self.lines
        return [Table(name, lines[name]) for name in COLUMNS if lines.get(name)]

    def fits(self, budget: int) -> bool:
        """Do all rows together stay within so many tokens?"""
        every = [line.fields for lines in self.lines.values() for line in lines]
        size = sum(len("".join(fields).encode()) + 2 * len(fields) for fields in every)
        if size <= BYTES * budget:
            return True
        # A sum of parts is a little more than the whole, by 3.5 tokens a row at most (slack,
        # rounding, the number it is priced with): only what comes as near has to be counted as a
        # whole.
        most = least = 0
        for lines in self.lines.values():
            for line in lines:
                most += line.price()
                least += line.price() - ROUNDED
                if most > budget * 1.25 or least > budget + 1:
                    return False
        if most + HEADINGS <= budget:
            return True
        return count_tokens("\n\n".join(table.text() for table in self.tables())) <= budget

    # ---- children ---------------------------------------------------------------------------------

    def price(self, members: Set[str], most: int) -> int:
        """Tokens of the rows that lie within these members; counting ends where it passes `most`."""
        total = 0
        for lines in self.lines.values():
            for line in lines:
                if line.about and members.issuperset(line.about):
                    total += line.price()
                    if total > most:
                        return total
        return total

    def without(self, children: Iterable[Set[str]]) -> Rows:
        """The rows that lie within none of these groups of members."""
        home = {id: number for number, members in enumerate(children) for id in members}

        def stays(line: Line) -> bool:
            first = home.get(line.about[0], -1) if line.about else None
            return first == -1 or any(home.get(id, -1) != first for id in line.about[1:])

        return Rows({name: list(filter(stays, lines)) for name, lines in self.lines.items()})

    def with_reports(
        self, children: Sequence[Report], stated: Callable[[Report], Sequence[Line]]
    ) -> Rows:
        """Reports as rows of their own, as `stated` gives them (`statements`): first all summaries,
        best child first, then first findings, second findings ..."""
        best = sorted(children, key=lambda child: (-child.rank, child.title, child.id))
        lines = [
            line for row in zip_longest(*map(stated, best)) for line in row if line is not None
        ]
        return Rows({"Reports": lines, **self.lines})

    def shortened(self, most: int) -> Rows:
        """Every long text cut at the end of a sentence to at most so many tokens."""
        return Rows(
            {name: [_shortened(line, most) for line in lines] for name, lines in self.lines.items()}
        )

    # ---- what fits --------------------------------------------------------------------------------

    def _best(self, budget: int) -> dict[str, list[Line]]:
        left = (
            budget - 20 - sum(count_tokens(f"{name}\n{COLUMNS[name]}\n\n") for name in self.lines)
        )
        taken: set[int] = set()
        reports = self.lines.get("Reports", [])
        others = list(self._others())
        for lines, room in (
            (reports, int(left * FOR_REPORTS) if others else left),
            (others, left),
            (reports, left),
        ):
            spent = 0
            for line in lines:
                if id(line) in taken:
                    continue
                if line.price() <= min(room - spent, left):
                    taken.add(id(line))
                    spent += line.price()
                    left -= line.price()
                if left < 12:
                    break
        return {
            name: [line for line in lines if id(line) in taken]
            for name, lines in self.lines.items()
        }

    def _others(self) -> Iterable[Line]:
        """Strongest relationships, each after the two it joins; then what is left, claims last."""
        rows = {line.about[0]: line for line in self.lines.get("Entities", ())}
        for edge in self.lines.get("Relationships", ()):
            for end in edge.about:
                if end in rows:
                    yield rows.pop(end)
            yield edge
        yield from rows.values()
        yield from self.lines.get("Claims", ())


def statements(child: Report, plain: Callable[[str], str]) -> list[Line]:
    """A report as rows, one per statement, so that a reference to one leads to what it rests on."""
    said = [(child.summary, child.summary)]
    for one in json.loads(child.findings or "[]"):
        heading, text = str(one.get("summary", "")), str(one.get("explanation", ""))
        said.append((f"{heading}: {text}", text))
    return [
        Line("Reports", (child.title, plain(shown)), _rests_on(text, child)) for shown, text in said
    ]


def _rests_on(text: str, child: Report) -> Ref:
    ids = referenced_ids(text)
    ref = Ref(*(tuple(ids.get(group, ())) for group in ("Entities", "Relationships", "Sources")))
    return (
        ref
        if ref != Ref()
        else Ref(tuple(child.entity_ids[:5]), (), tuple(child.text_unit_ids[:5]))
    )


def _shortened(line: Line, most: int) -> Line:
    text = line.fields[line.long]
    if len(text) < most or count_tokens(text) <= most:  # a token is a character or more
        return line
    fields = list(line.fields)
    fields[line.long] = shorten(text, most)
    return replace(line, fields=tuple(fields), cost=0)


@lru_cache(maxsize=1 << 15)
def _tokens(body: str) -> int:
    """Counted once: a row is priced again in the community above, and in the one above that."""
    return count_tokens(f"1000,{body}\n")


@lru_cache(maxsize=1 << 15)
def quoted(value: str) -> str:
    """One value of a row: on one line, in quotes where it holds a comma or a quote; it can end no
    tag.
    """
    flat = _TAG.sub("<\\\\", " ".join(value.split())).replace("[Data:", "(Data:")
    return '"' + flat.replace('"', '""') + '"' if "," in flat or '"' in flat else flat


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
    shortened: float = (
        0.05  # of the tokens: the most that one description takes when not everything fits
    )


@dataclass(frozen=True, slots=True)
class ReportInput:
    """One community. `entities` and `edges` may hold more than its own; `types` and `descriptions`
    are by row id.

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

    `substituted` names the children whose reports stand for their rows; `left_out` counts rows that
    did not fit.
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
    """The prompt where it needs no child's report, else None: `context` will, once these have been
    written.
    """
    rows = _rows(given)
    if rows.fits(params.tokens):
        return _prompted(rows, rows.tables())
    return None if given.community.children else _best(given, rows, params)


def context(given: ReportInput, params: PromptParams) -> Prompted:
    """The rows of a community within the budget: all of them where they fit, else the children's
    reports for those of the largest children until it fits, else the best of all that."""
    rows = _rows(given)
    return (
        _prompted(rows, rows.tables()) if rows.fits(params.tokens) else _best(given, rows, params)
    )


def _best(given: ReportInput, rows: Rows, params: PromptParams) -> Prompted:
    inside = {child.id: frozenset(child.entity_ids) for child in given.children}
    price = {id: rows.price(members, params.tokens) for id, members in inside.items()}
    order = sorted(
        given.children, key=lambda one: (-price[one.id], -len(inside[one.id]), one.title, one.id)
    )

    stated = {child.id: statements(child, _unreferenced) for child in order}

    def substituted(count: int) -> Rows:
        taken = order[:count]
        return rows.without(inside[one.id] for one in taken).with_reports(
            taken, lambda child: stated[child.id]
        )

    if order and rows.without(inside.values()).fits(
        params.tokens
    ):  # else no substitution is enough
        for count in range(
            max(1, sum(one > params.tokens for one in price.values())), len(order) + 1
        ):
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
        given.types,
        given.descriptions,
        given.claims,
    )


def _prompted(rows: Rows, tables: Sequence[Table], taken: Iterable[Report] = ()) -> Prompted:
    shown = [table for table in tables if table.lines]
    left_out = len(rows) - sum(len(table.lines) for table in shown)
    blocks = [table.text() for table in shown]
    if left_out:
        blocks.append(f"({left_out} further rows, of less weight, are not shown.)")
    numbering = {table.name: table.refs for table in shown}
    return Prompted(
        "\n\n".join(blocks), numbering, tuple(sorted(child.id for child in taken)), left_out
    )


@lru_cache(maxsize=1 << 12)
def _unreferenced(text: str) -> str:
    """A child's text without its references: its row in the prompt has a number of its own, which
    stands for them.
    """
    return replace_references(text, lambda _: "").strip()


def report_ask(
    prompted: Prompted,
    template: Template,
    *,
    language: str = "",
    role: str = "",
    rating_criteria: str = "",
) -> Ask[Draft | None]:
    """The question; its value is None when no one answers."""
    text = template.substitute(
        role=role.strip(),
        language=language or OWN_LANGUAGE,
        rating_criteria=rating_criteria or CRITERIA,
        context=prompted.text,
    ).strip()
    return Ask(
        "report", (Message("user", text),), parse_report, lambda: None, SCHEMA, if_cut="refused"
    )


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
    findings = [{"summary": heading, "explanation": text} for heading, text in pairs] or json.loads(
        base.findings
    )
    summary = check(draft.summary, draft.title)
    if not summary:  # it names no one: it rests on what the findings rest on
        summary = check.with_all(draft.summary, (text for _, text in pairs)) or base.summary
    title = _plain(draft.title) or base.title
    content = [
        f"# {title}",
        summary,
        *(f"## {one['summary']}\n\n{one['explanation']}" for one in findings),
    ]
    given_rank = draft.rating is not None
    report = replace(
        base,
        title=title,
        summary=summary,
        full_content="\n\n".join(content),
        rank=draft.rating if given_rank else base.rank,
        rating_explanation=(_plain(draft.rating_explanation) if given_rank else "")
        or base.rating_explanation,
        findings=json.dumps(findings, ensure_ascii=False),
        method="llm",
    )
    return Finished(report, check.unknown, dropped)


def _plain(text: str) -> str:
    return " ".join(replace_references(text, lambda _: "").split())


class _Check:
    """Turns the numbers of one prompt into content ids, and adds the text units that the rows rest
    on.
    """

    def __init__(self, given: ReportInput, prompted: Prompted) -> None:
        self.numbering = prompted.numbering
        members = set(given.community.members)
        self.entities = {row.id: row for row in given.entities if row.id in members}
        self.edges = {
            edge.id: edge
            for edge in given.edges
            if edge.source_id in members and edge.target_id in members
        }
        names = sorted(self.entities.values(), key=lambda row: (-len(row.title), row.title, row.id))
        self.names = [(row.title.casefold(), row.id) for row in names if len(row.title) > 1]
        self.unknown = 0

    def __call__(self, text: str, heading: str) -> str:
        """The text with stored references; "" when it has none that holds and names no member
        either.
        """
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
        """The members whose titles stand in the text, longest first; one inside another's name does
        not count.
        """
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
        ref = Ref(
            *(tuple(ids.get(group, ())) for group in ("Entities", "Relationships", "Sources"))
        )
        made = self.written(ref, text, False)
        return f"{replace_references(text, lambda _: '').strip()} {made}" if made else ""

    def written(self, ref: Ref, statement: str, more: bool) -> str:
        """`[Data: ...]` in content ids; "" when nothing is left or nothing of it leads to a text."""
        edges = [id for id in dict.fromkeys(ref.relationships) if id in self.edges]
        entities = [id for id in dict.fromkeys(ref.entities) if id in self.entities]
        if not entities:  # a relationship speaks of both its ends
            entities = list(
                dict.fromkeys(
                    end
                    for id in edges
                    for end in (self.edges[id].source_id, self.edges[id].target_id)
                )
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

    def sources(
        self, entities: Sequence[str], edges: Sequence[str], known: Iterable[str], statement: str
    ) -> list[str]:
        """Text units of the cited rows, best first: those that several of the rows rest on, then
        those whose sentences share most words with the statement."""
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
            for unit, text in sorted(row.evidence, key=lambda one: (-held[one[0]], one))[
                :LOOKED_AT
            ]:
                shared[unit] = max(shared.get(unit, 0), len(said & _words(text)))
        return sorted(held, key=lambda unit: (-held[unit], -shared.get(unit, 0), unit))[
            : PER_GROUP + 1
        ]


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


TOGETHER = 64  # reports that are embedded in one go while others are being written
# reports that are begun at once: a thousand kept the loop busy for 0.2 s, and every call under way
# waiting
BEGUN = 10


# Times `min_size` entities that are worth a call however few text units speak of them: of 14 short
# documents 21 of 25 communities rested on fewer than four text units.
MANY = 2


@dataclass(frozen=True, slots=True)
class ReportPrompt:
    """How a model is asked for reports. Communities of fewer than `min_size` entities, or that rest
    on fewer than `min_units` text units and have fewer than MANY times `min_size` entities, are not
    worth a call. `levels`: only those of so many
    levels from the top are asked for; 0 for all."""

    template: Template
    params: PromptParams
    language: str
    min_size: int
    min_units: int
    levels: int = 0

    @property
    def fingerprint(self) -> str:
        numbers = [self.params.tokens, self.min_size, self.min_units, MANY]
        numbers += [self.levels] if self.levels else []
        return content_id("report", self.template.template, self.language, *map(str, numbers))

    def wanted(self, members: Sequence[EntityRow], edges: Sequence[EdgeRow]) -> bool:
        """Is a report by a model worth its call?"""
        if len(members) < self.min_size:
            return False
        if len(members) >= MANY * self.min_size:
            return True
        units: set[str] = set()
        for row in (*members, *edges):
            units.update(row.text_unit_ids)
            if len(units) >= self.min_units:
                return True
        return False


def prompt_from(settings: Settings, corpus_folder: Path) -> ReportPrompt:
    template = prompts.load("report", corpus_folder)
    return ReportPrompt(
        template,
        PromptParams(tokens=settings.report_tokens),
        settings.output_language,
        settings.report_min_size,
        settings.report_min_units,
    )


@dataclass
class Writing:
    """The reports of one run. `done` are those that need not be written; `types` and `descriptions`
    by row id. `extractive`: the report of a community, from those of its children, without a model.

    `embed`: told of reports that are ready, so that their vectors are asked for between the
    questions and not after the last of them.
    """

    asker: Asker
    prompt: ReportPrompt
    communities: Mapping[str, Community]
    entities: Mapping[str, EntityRow]
    edges: Mapping[str, Sequence[EdgeRow]]
    types: Mapping[str, str]
    descriptions: Mapping[str, str]
    claims: Mapping[str, Sequence[Claim]]
    done: dict[str, Written]
    extractive: Callable[[str, Sequence[Written]], Written]
    embed: Callable[[Sequence[Report]], object] = lambda _: None
    degraded: dict[str, str] = field(default_factory=dict)
    unsure: set[str] = field(
        default_factory=set
    )  # these, and reports that a model made of such reports
    _tasks: dict[str, asyncio.Task[Written]] = field(default_factory=dict)
    _ready: list[Report] = field(default_factory=list)

    def fingerprint(self, id: str, extractive: str) -> str:
        """Changes when the model would be shown something else; `extractive` when its sentences
        changed.
        """
        community = self.communities[id]
        if not self.wanted(community):
            return extractive
        rows = [*community.members, *(edge.id for edge in self.edges[id])]
        told = [
            f"{row} {self.types.get(row, '')} {self.descriptions.get(row, '')}"
            for row in sorted(rows)
        ]
        claims = self.claims.get(id, ())
        # With their text units: a claim may stand in one that no row of the community is named in.
        said = sorted(
            " ".join((c.subject, c.object, c.type, c.status, c.description, c.text_unit_id))
            for c in claims
        )
        return content_id("report by a model", self.prompt.fingerprint, extractive, *told, *said)

    def wanted(self, community: Community) -> bool:
        """Is the model to be asked? Where it is, it is for all communities above as well."""
        if self.prompt.levels and community.level >= self.prompt.levels:
            return False
        return self.prompt.wanted(
            [self.entities[one] for one in community.members], self.edges[community.id]
        )

    async def all(self, ids: Sequence[str]) -> dict[str, Written]:
        """The reports of these communities, by id."""
        for place, id in enumerate(ids):
            self._of(id)
            if place % BEGUN == 0:
                await asyncio.sleep(0)
        made = await asyncio.gather(*map(self._of, ids))
        self.embed(self._ready)
        return dict(zip(ids, made, strict=True))

    def _of(self, id: str) -> asyncio.Task[Written]:
        if id not in self._tasks:
            self._tasks[id] = asyncio.get_running_loop().create_task(self._written(id))
        return self._tasks[id]

    async def _written(self, id: str) -> Written:
        if id in self.done:
            return self.done[id]
        made = await self._new(id)
        self._ready.append(made.report)
        if len(self._ready) >= TOGETHER:
            ready, self._ready = self._ready, []
            self.embed(ready)
        return made

    async def _new(self, id: str) -> Written:
        community = self.communities[id]
        members = [self.entities[one] for one in community.members]
        if self.wanted(community):
            made = await self._by_model(community, members)
            if made is not None:
                return made
        return self.extractive(id, [await self._of(child) for child in community.children])

    def _divided(self, community: Community) -> list[Sequence[str]]:
        return [self.communities[child].members for child in community.children]

    async def _by_model(self, community: Community, members: Sequence[EntityRow]) -> Written | None:
        given = ReportInput(
            community,
            members,
            self.edges[community.id],
            self.types,
            self.descriptions,
            self.claims.get(community.id, ()),
        )
        shown = await aside(context_alone, given, self.prompt.params)
        if shown is None:
            below = [(await self._of(child)).report for child in community.children]
            if not self.unsure.isdisjoint(community.children):
                self.unsure.add(community.id)
            divided = map(list, self._divided(community))  # a report lists only the heaviest
            given = replace(
                given,
                children=[
                    replace(one, entity_ids=ids) for one, ids in zip(below, divided, strict=True)
                ],
            )
            shown = await aside(context, given, self.prompt.params)
        answer = await self.asker.ask(
            report_ask(shown, self.prompt.template, language=self.prompt.language)
        )
        if answer.value is None:
            self.degraded[community.id] = answer.reason
            self.unsure.add(community.id)
            return None
        draft = answer.value
        return await aside(
            lambda: stored(
                finish_report(given, shown, draft, outline(community, members, given.edges))
            )
        )
