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
from graphrag_mcp.index.report_content import EdgeRow, EntityRow, of_rows
from graphrag_mcp.index.report_extractive import Report, Written, outline
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


def table_text(name: str, lines: Sequence[Line]) -> str:
    rows = (f"{number},{line.body()}" for number, line in enumerate(lines, 1))
    return "\n".join((name, COLUMNS[name], *rows))


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
        lines: dict[str, list[Line]] = {"Entities": [], "Relationships": [], "Claims": []}
        for row in by_weight:
            fields = (row.title, types.get(row.id, ""), said(row))
            lines["Entities"].append(Line(fields, Ref(entities=(row.id,)), (row.id,)))
        for e in by_strength:
            ends = (e.source_id, e.target_id)
            fields = (*map(title.__getitem__, ends), said(e), f"{e.weight:g}")
            lines["Relationships"].append(Line(fields, Ref(relationships=(e.id,)), ends, 2))
        for c in own:
            fields = (c.subject, c.object, c.type, c.status, c.description)
            ref = Ref((c.subject_id,), (), (c.text_unit_id,))
            lines["Claims"].append(Line(fields, ref, (c.subject_id,)))
        return cls(lines)

    def __len__(self) -> int:
        return sum(map(len, self.lines.values()))

    def tables(self) -> dict[str, list[Line]]:
        """All rows in reading order."""
        return {name: self.lines[name] for name in COLUMNS if self.lines.get(name)}

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
        tables = self.tables().items()
        return count_tokens("\n\n".join(table_text(*table) for table in tables)) <= budget

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
        self, children: Sequence[Report], stated: Mapping[str, Sequence[Line]]
    ) -> Rows:
        """Reports as rows of their own, by id in `stated`: first all summaries, best child first,
        then first findings, second findings ..."""
        best = sorted(children, key=lambda child: (-child.rank, child.title, child.id))
        ranks = zip_longest(*(stated[child.id] for child in best))
        lines = [line for rank in ranks for line in rank if line is not None]
        return Rows({"Reports": lines, **self.lines})

    def shortened(self, most: int) -> Rows:
        """Every long text cut at the end of a sentence to at most so many tokens."""
        return Rows(
            {name: [_shortened(line, most) for line in lines] for name, lines in self.lines.items()}
        )

    # ---- what fits --------------------------------------------------------------------------------

    def best(self, budget: int) -> Rows:
        """The best rows that fit into so many tokens."""
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
        return Rows(
            {
                name: [line for line in lines if id(line) in taken]
                for name, lines in self.lines.items()
            }
        )

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


def statements(child: Report) -> list[Line]:
    """A report as rows, one per statement, so that a reference to one leads to what it rests on."""
    said = [(child.summary, child.summary)]
    for one in json.loads(child.findings or "[]"):
        heading, text = str(one.get("summary", "")), str(one.get("explanation", ""))
        said.append((f"{heading}: {text}", text))
    return [
        Line((child.title, _unreferenced(shown)), _rests_on(text, child)) for shown, text in said
    ]


def _rests_on(text: str, child: Report) -> Ref:
    ref = _referenced(text)
    if ref != Ref():
        return ref
    return Ref(tuple(child.entity_ids[:5]), (), tuple(child.text_unit_ids[:5]))


def _referenced(text: str) -> Ref:
    ids = referenced_ids(text)
    return Ref(*(tuple(ids.get(group, ())) for group in ("Entities", "Relationships", "Sources")))


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


SHORTENED = 0.05  # of the budget: the most that one description takes when not everything fits


@dataclass(frozen=True, slots=True)
class ReportInput:
    """One community with its entities and the relationships among them; `types` and `descriptions`
    are by row id. `children` are the reports of the communities it is divided into, with the ids of
    their members."""

    community: Community
    entities: Sequence[EntityRow]
    edges: Sequence[EdgeRow]
    types: Mapping[str, str] = field(default_factory=dict)
    descriptions: Mapping[str, str] = field(default_factory=dict)
    claims: Sequence[Claim] = ()
    children: Sequence[Report] = ()


@dataclass(frozen=True, slots=True)
class Prompted:
    """What goes between the context tags, and per table what its rows 1, 2, ... stand for."""

    text: str
    numbering: Mapping[str, Sequence[Ref]]


# ---- what the model is shown --------------------------------------------------------------------


def context(given: ReportInput, tokens: int, alone: bool = False) -> Prompted | None:
    """The rows of a community within the budget: all of them where they fit, else the children's
    reports for those of the largest children until it fits, else the best of all that. `alone`:
    None where the reports of children are needed, which are yet to be written."""
    rows = Rows.of_community(
        given.entities, given.edges, given.types, given.descriptions, given.claims
    )
    if rows.fits(tokens):
        return _prompted(rows)
    if alone and given.community.children:
        return None
    inside = {child.id: frozenset(child.entity_ids) for child in given.children}
    price = {id: rows.price(members, tokens) for id, members in inside.items()}
    order = sorted(
        given.children, key=lambda one: (-price[one.id], -len(inside[one.id]), one.title, one.id)
    )

    stated = {child.id: statements(child) for child in order}

    def substituted(count: int) -> Rows:
        taken = order[:count]
        return rows.without(inside[one.id] for one in taken).with_reports(taken, stated)

    if order and rows.without(inside.values()).fits(tokens):  # else no substitution is enough
        for count in range(max(1, sum(one > tokens for one in price.values())), len(order) + 1):
            fewer = substituted(count)
            if fewer.fits(tokens):
                return _prompted(fewer)
    every = substituted(len(order)) if order else rows
    every = every.shortened(max(40, int(tokens * SHORTENED)))
    best = every.best(tokens)
    return _prompted(best, len(every) - len(best))


def _prompted(rows: Rows, left_out: int = 0) -> Prompted:
    tables = rows.tables()
    blocks = [table_text(*table) for table in tables.items()]
    if left_out:
        blocks.append(f"({left_out} further rows, of less weight, are not shown.)")
    numbering = {name: [line.ref for line in lines] for name, lines in tables.items()}
    return Prompted("\n\n".join(blocks), numbering)


@lru_cache(maxsize=1 << 12)
def _unreferenced(text: str) -> str:
    """A child's text without its references: its row in the prompt has a number of its own, which
    stands for them.
    """
    return replace_references(text, lambda _: "").strip()


def report_ask(prompted: Prompted, template: Template, language: str = "") -> Ask[Draft | None]:
    """The question; its value is None when no one answers."""
    text = template.substitute(
        role="", language=language or OWN_LANGUAGE, rating_criteria=CRITERIA, context=prompted.text
    ).strip()
    return Ask(
        "report", (Message("user", text),), parse_report, lambda: None, SCHEMA, if_cut="refused"
    )


# ---- what becomes of the draft ------------------------------------------------------------------


def finished(given: ReportInput, prompted: Prompted, draft: Draft, base: Report) -> Report:
    """The stored report. What the draft does not say (rows, text units, a rating) is as in `base`."""
    check = _Check(given, prompted)
    pairs = []
    for heading, said in draft.findings:
        if text := check(said, heading):
            pairs.append((_plain(heading), text))
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
    return replace(
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


def _plain(text: str) -> str:
    return " ".join(replace_references(text, lambda _: "").split())


class _Check:
    """Turns the numbers of one prompt into content ids, and adds the text units that the rows rest
    on.
    """

    def __init__(self, given: ReportInput, prompted: Prompted) -> None:
        self.numbering = prompted.numbering
        self.entities = {row.id: row for row in given.entities}
        self.edges = {edge.id: edge for edge in given.edges}
        names = sorted(self.entities.values(), key=lambda row: (-len(row.title), row.title, row.id))
        self.names = [(row.title.casefold(), row.id) for row in names if len(row.title) > 1]

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
        for group, numbers in cited.numbers.items():
            known = self.numbering.get(group, ())
            for number in numbers:
                if 1 <= number <= len(known):
                    found = found.and_(known[number - 1])
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
        made = self.written(_referenced(" ".join(others)), text, False)
        return f"{_unreferenced(text)} {made}" if made else ""

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
    tokens: int  # of the rows shown; the instructions come on top
    language: str
    min_size: int
    min_units: int
    levels: int = 0

    @property
    def fingerprint(self) -> str:
        numbers = [self.tokens, self.min_size, self.min_units, MANY]
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
        settings.report_tokens,
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

    async def _by_model(self, community: Community, members: Sequence[EntityRow]) -> Written | None:
        given = ReportInput(
            community,
            members,
            self.edges[community.id],
            self.types,
            self.descriptions,
            self.claims.get(community.id, ()),
        )
        shown = await aside(context, given, self.prompt.tokens, True)
        if shown is None:
            below = [(await self._of(child)).report for child in community.children]
            if not self.unsure.isdisjoint(community.children):
                self.unsure.add(community.id)
            children = [  # a report lists only the heaviest
                replace(one, entity_ids=list(self.communities[one.id].members)) for one in below
            ]
            given = replace(given, children=children)
            shown = await aside(context, given, self.prompt.tokens)
        answer = await self.asker.ask(report_ask(shown, self.prompt.template, self.prompt.language))
        if answer.value is None:
            self.degraded[community.id] = answer.reason
            self.unsure.add(community.id)
            return None
        draft = answer.value

        def written() -> Written:
            base = outline(community, of_rows(community, members, given.edges))
            return Written(finished(given, shown, draft, base))

        return await aside(written)
