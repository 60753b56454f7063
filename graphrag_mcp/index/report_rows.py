"""Rows of a community as a model reads them: numbered tables within a budget of tokens.

Takes entities, relationships, claims and the texts of children's reports; gives CSV-like tables, best rows first, and
what each numbered row stands for. The order comes from what the rows say alone. Knows no prompt and no reply.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import zip_longest

from graphrag_mcp.index.evidence import EdgeRow, EntityRow
from graphrag_mcp.index.reports import Report
from graphrag_mcp.pack_ids import referenced_ids, shorten
from graphrag_mcp.text import count_tokens

COLUMNS = {
    "Reports": "id,title,content",
    "Entities": "id,entity,type,description",
    "Relationships": "id,source,target,description,weight",
    "Claims": "id,subject,object,type,status,description",
}
# No text has fewer bytes a token (English 4, Chinese 3): most communities are so small that nothing need be counted.
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
            self.entities + other.entities, self.relationships + other.relationships, self.sources + other.sources
        )


@dataclass(slots=True)
class Line:
    """One row. `fields` as they are shown after the number; `about` are ids of entities that it speaks of."""

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
        cls, entities: Sequence[EntityRow], edges: Sequence[EdgeRow], types: Mapping[str, str],
        descriptions: Mapping[str, str], claims: Iterable[Claim],
    ) -> Rows:  # fmt: skip
        """Entities by the weight of their relationships inside, relationships by their own; then by name."""
        weight = dict.fromkeys((row.id for row in entities), 0.0)
        for edge in sorted(edges, key=lambda edge: edge.id):  # one order, so that sums of fractions are the same
            weight[edge.source_id] += edge.weight
            weight[edge.target_id] += edge.weight
        title = {row.id: row.title for row in entities}

        def said(row: EntityRow | EdgeRow) -> str:
            return descriptions.get(row.id) or min((text for _, text in row.evidence), default="")

        by_weight = sorted(entities, key=lambda row: (-weight[row.id], row.title, row.id))
        by_strength = sorted(edges, key=lambda e: (
            -e.weight, -weight[e.source_id] - weight[e.target_id], title[e.source_id], title[e.target_id], e.id,
        ))  # fmt: skip
        own = sorted((claim for claim in claims if claim.subject_id in weight), key=lambda claim: (
            -weight[claim.subject_id], claim.subject, claim.type, claim.description, claim.id,
        ))  # fmt: skip
        return cls({
            "Entities": [
                Line("Entities", (row.title, types.get(row.id, ""), said(row)), Ref(entities=(row.id,)), (row.id,))
                for row in by_weight
            ],
            "Relationships": [
                Line("Relationships", (title[e.source_id], title[e.target_id], said(e), f"{e.weight:g}"),
                     Ref(relationships=(e.id,)), (e.source_id, e.target_id), 2)
                for e in by_strength
            ],
            "Claims": [
                Line("Claims", (c.subject, c.object, c.type, c.status, c.description),
                     Ref((c.subject_id,), (), (c.text_unit_id,)), (c.subject_id,))
                for c in own
            ],
        })  # fmt: skip

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
        # A sum of parts is a little more than the whole, by 3.5 tokens a row at most (slack, rounding, the number it is
        # priced with): only what comes as near has to be counted as a whole.
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

    def with_reports(self, children: Sequence[Report], stated: Callable[[Report], Sequence[Line]]) -> Rows:
        """Reports as rows of their own, as `stated` gives them (`statements`): first all summaries, best child first,
        then first findings, second findings ..."""
        best = sorted(children, key=lambda child: (-child.rank, child.title, child.id))
        lines = [line for row in zip_longest(*map(stated, best)) for line in row if line is not None]
        return Rows({"Reports": lines, **self.lines})

    def shortened(self, most: int) -> Rows:
        """Every long text cut at the end of a sentence to at most so many tokens."""
        return Rows({name: [_shortened(line, most) for line in lines] for name, lines in self.lines.items()})

    # ---- what fits --------------------------------------------------------------------------------

    def _best(self, budget: int) -> dict[str, list[Line]]:
        left = budget - 20 - sum(count_tokens(f"{name}\n{COLUMNS[name]}\n\n") for name in self.lines)
        taken: set[int] = set()
        reports = self.lines.get("Reports", [])
        others = list(self._others())
        for lines, room in ((reports, int(left * FOR_REPORTS) if others else left), (others, left), (reports, left)):
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
        return {name: [line for line in lines if id(line) in taken] for name, lines in self.lines.items()}

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
    return [Line("Reports", (child.title, plain(shown)), _rests_on(text, child)) for shown, text in said]


def _rests_on(text: str, child: Report) -> Ref:
    ids = referenced_ids(text)
    ref = Ref(*(tuple(ids.get(group, ())) for group in ("Entities", "Relationships", "Sources")))
    return ref if ref != Ref() else Ref(tuple(child.entity_ids[:5]), (), tuple(child.text_unit_ids[:5]))


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
    """One value of a row: on one line, in quotes where it holds a comma or a quote; it can end no tag."""
    flat = _TAG.sub("<\\\\", " ".join(value.split())).replace("[Data:", "(Data:")
    return '"' + flat.replace('"', '""') + '"' if "," in flat or '"' in flat else flat
