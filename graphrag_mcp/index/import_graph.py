"""The graph of an import: which unit names what, and communities and reports in our ids.

Takes a `Foreign` and the holders of its documents, whose units have their places; fills their records with names,
statements and claims, and gives what the log of imports holds of communities and reports. What hangs on nothing that
can be cited is counted in the notes. Knows no file.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphrag_mcp.index.claims import quoted
from graphrag_mcp.index.foreign import Foreign, SourceEntity
from graphrag_mcp.index.import_tree import tree_of
from graphrag_mcp.index.imported import Name, Statement, UnitRecord
from graphrag_mcp.index.imported_tree import near
from graphrag_mcp.index.mentions import entity_id
from graphrag_mcp.index.pairs import relationship_id
from graphrag_mcp.index.rows import unit_ids
from graphrag_mcp.references import Cited, replace_references
from graphrag_mcp.text import normalise_name

if TYPE_CHECKING:
    from graphrag_mcp.index.chunk import ChunkParams
    from graphrag_mcp.index.importing import Holder

LIGHTEST = 0.001  # of a statement: without any weight a pair belongs to no community
PER_GROUP = 5  # references of one kind after a sentence
_OURS = re.compile(r"\[Data: (?:[A-Z][a-z]{4,14} \([\d, +more]{1,200}\)(?:; )?){1,5}\]")
_GROUP = re.compile(r"([A-Z][a-z]{4,14}) \(([^()]{0,200})\)")
Places = Mapping[str, tuple["Holder", UnitRecord]]


def names_and_statements(foreign: Foreign, holders: Sequence[Holder]) -> None:
    """Fill the records of the holders."""
    places = {id: (holder, record) for holder in holders for id, record in holder.units.items()}
    _Writer(foreign, places).all()


def key_of(entity: SourceEntity) -> str:
    return entity.key or normalise_name(entity.title)


class _Writer:
    """Puts each name, statement and claim into the records of its units; counts what has none."""

    def __init__(self, foreign: Foreign, places: Places) -> None:
        self.foreign, self.places = foreign, places
        self.by_title = {one.title: key_of(one) for one in reversed(foreign.entities)}
        self.by_name: dict[str, str] = {}
        for one in foreign.entities:
            self.by_name.setdefault(normalise_name(one.title), key_of(one))
        self.keys = {key for key in self.by_title.values() if key}
        self.units_of: dict[str, set[str]] = defaultdict(set)  # key -> units that name it
        self.order = {id: number for number, id in enumerate(places)}

    def all(self) -> None:
        statements = self._statements()
        self._entities(statements)
        self._ends(statements)
        for source, target, one, units in statements:
            weight = max(one.weight, LIGHTEST) / len(units)
            said = Statement(source, target, one.description, one.keywords, weight)
            for id in units:
                holder, record = self.places[id]
                record.statements.append(_at(holder.record.statements, said))
        self._claims()

    def _known(self, units: Iterable[str]) -> list[str]:
        return sorted({id for id in units if id in self.places}, key=self.order.__getitem__)

    def _statements(self) -> list[tuple[str, str, Any, list[str]]]:
        """Each relation with the keys of its ends and its units: where it names none, those of both its ends."""
        own = {key_of(one): one.units for one in reversed(self.foreign.entities)}
        found: list[tuple[str, str, Any, list[str]]] = []
        nowhere = moved = loops = light = 0
        pairs: dict[tuple[str, str], int] = defaultdict(int)
        for one in self.foreign.relations:
            source, target = self.end(one.source), self.end(one.target)
            units = self._known(one.units)
            if not units and source and target:
                first, second = self._known(own.get(source, ())), self._known(own.get(target, ()))
                units = [id for id in first if id in set(second)] or first[:1] or second[:1]
                moved += bool(units)
            if not units or not source or not target:
                nowhere += 1
                continue
            loops += source == target
            light += one.weight < LIGHTEST
            pairs[min(source, target), max(source, target)] += 1
            found.append((source, target, one, units))
        note = self.foreign.note
        note(nowhere, "relationships are left out: no text unit that is there holds them, or an end has no name")
        note(moved, "relationships name no text unit that is there: they stand in those of their ends")
        note(loops, "relationships join an entity with itself and count for no pair")
        note(light, f"relationships have no weight above 0: they count {LIGHTEST:g}")
        note(sum(count - 1 for count in pairs.values()), "relationships join the same two entities as another one")
        return found

    def end(self, title: str) -> str:
        name = normalise_name(title)
        return self.by_title.get(title) or self.by_name.get(name) or name

    def _entities(self, statements: Sequence[tuple[str, str, Any, list[str]]]) -> None:
        of_pairs: dict[str, list[str]] = defaultdict(list)
        for source, target, _, units in statements:
            of_pairs[source] += units
            of_pairs[target] += units
        lost = moved = joined = 0
        seen: set[str] = set()
        for one in self.foreign.entities:
            key = key_of(one)
            units = self._known(one.units)
            if not units and key:
                units = self._known(of_pairs.get(key, ()))
                moved += bool(units)
            if not units or not key:
                lost += 1
                continue
            joined += key in seen
            seen.add(key)
            self._name(one, key, units)
        note = self.foreign.note
        note(lost, "entities are left out: no text unit that is there names them")
        note(moved, "entities name no text unit that is there: they stand in those of their relationships")
        note(joined, "entities have the name of another one but for case or punctuation: they are one entity here")

    def _name(self, one: SourceEntity, key: str, units: list[str]) -> None:
        """Its other names go with its first unit, unless one is an entity of its own."""
        name = Name(key, one.title, one.type or "unknown", one.description)
        aliases = tuple(form for form in one.aliases if normalise_name(form) in ("", key)
                        or normalise_name(form) not in self.keys)  # fmt: skip
        called = Name(key, one.title, one.type or "unknown", one.description, aliases)
        for id in units:
            holder, record = self.places[id]
            record.names.append(_at(holder.record.names, called if id == units[0] else name))
            self.units_of[key].add(id)

    def _ends(self, statements: Sequence[tuple[str, str, Any, list[str]]]) -> None:
        """Ends that are no entity of their own, or are not named in a unit that speaks of them, are named there."""
        strange: set[str] = set()
        named = {key_of(one): one for one in reversed(self.foreign.entities)}
        for source, target, one, units in statements:
            for key, title in ((source, one.source), (target, one.target)):
                known = named.get(key)
                if known is not None and self.units_of.get(key):
                    continue  # its own text units are what the other index says
                if known is None:
                    strange.add(key)
                for id in units:
                    if id not in self.units_of[key]:
                        holder, record = self.places[id]
                        record.names.append(_at(holder.record.names, Name(key, title, "unknown", "")))
                        self.units_of[key].add(id)
        self.foreign.note(len(strange), "ends of relationships are no entities of their own: they have no description")

    def _claims(self) -> None:
        nowhere = unquoted = 0
        for unit, one in self.foreign.claims:
            if unit not in self.places or not one.subject:
                nowhere += 1
                continue
            holder, record = self.places[unit]
            text = holder.text[record.start : record.end]
            unquoted += not quoted(text, list(one.quotes))
            record.claims.append(_at(holder.record.claims, one))
        self.foreign.note(nowhere, "claims are left out: their text unit is not there, or they have no subject")
        self.foreign.note(unquoted, "claims quote no words of their text unit: the nearest sentence is cited")


def _at(rows: list[Any], row: Any) -> int:
    """The place of a row in a list that holds each once. The newest are looked at first: a name comes in runs."""
    for place in range(len(rows) - 1, max(-1, len(rows) - 4), -1):
        if rows[place] == row:
            return place
    rows.append(row)
    return len(rows) - 1


# ---- communities and reports ---------------------------------------------------------------------


def graph_of(foreign: Foreign, holders: Sequence[Holder], params: ChunkParams) -> dict[str, Any]:
    """Communities and reports for the log."""
    if not foreign.communities:
        foreign.note(len(foreign.reports), "reports are left out: their communities are not there")
        return {"communities": [], "near": {}, "reports": []}
    pairs = _pairs(holders)
    linked = {id for pair in pairs for id in pair}
    keys = {one.id: key_of(one) for one in foreign.entities}
    ids = {id: entity_id(key) for id, key in keys.items() if key}
    tree, number_of, said = tree_of(foreign.communities, ids, linked)
    for count, what in said:
        foreign.note(count, what)
    known = _numbers(foreign, holders, ids, number_of, params)
    reports, lost = [], 0
    members_of = {row["id"]: row["members"] for row in tree}
    for one in foreign.reports:
        community = number_of.get(one.community)
        if community is None:
            lost += 1
            continue
        shown = [_told(text, known, foreign) for text in (one.summary, one.full_content, one.rating_explanation)]
        reports.append({
            "community": community, "members": members_of[community],
            "title": one.title, "summary": shown[0], "full_content": shown[1], "rank": one.rank,
            "rating_explanation": shown[2], "method": one.method,
            "findings": [{"summary": _told(a, known, foreign), "explanation": _told(b, known, foreign)}
                         for a, b in one.findings],
        })  # fmt: skip
    foreign.note(lost, "reports are left out: their community is not there as it was when they were written")
    roots = {row["id"]: near(row["members"], pairs) for row in tree if not row["parent"]}
    return {"communities": tree, "near": roots, "reports": reports}


def _pairs(holders: Sequence[Holder]) -> set[tuple[str, str]]:
    named = ((one.source, one.target) for holder in holders for one in holder.record.statements)
    return {(entity_id(min(a, b)), entity_id(max(a, b))) for a, b in named if a != b}


def _numbers(
    foreign: Foreign, holders: Sequence[Holder], ids: Mapping[str, str], number_of: Mapping[int, str],
    params: ChunkParams,
) -> dict[str, dict[int, list[str]]]:  # fmt: skip
    """What the numbers in reports stand for: by group the id, then the text units that it rests on."""
    unit_of: dict[str, str] = {}
    for holder in holders:
        name_of = unit_ids(holder.uri)
        own = {id(record): other for other, record in holder.units.items()}
        for unit, record in holder.record.cut(holder.text, params):
            made = name_of(unit, holder.text[unit.span.start : unit.span.end])
            if record is not None:
                unit_of[own[id(record)]] = made
    writer = _Writer(Foreign(foreign.program, entities=foreign.entities), {})
    entities = {
        one.number: [ids[one.id], *(unit_of[id] for id in one.units if id in unit_of)]
        for one in foreign.entities if one.id in ids
    }  # fmt: skip
    relations = {}
    for one in foreign.relations:
        ends = sorted(entity_id(writer.end(title)) for title in (one.source, one.target))
        relations[one.number] = [relationship_id(ends[0], ends[1]), *(unit_of[id] for id in one.units if id in unit_of)]
    sources = {unit.number: [unit_of[unit.id]] for unit in foreign.units if unit.id in unit_of}
    return {
        "Entities": entities, "Relationships": relations, "Sources": sources,
        "Reports": {number: [id] for number, id in number_of.items()},
    }  # fmt: skip


def _told(text: str, known: Mapping[str, Mapping[int, list[str]]], foreign: Foreign) -> str:
    """The text with references by content id. Where another program names only entities and relationships, the text
    units that these rest on are added, so that every statement leads to its source."""

    def write(cited: Cited) -> str:
        groups, units = [], []
        for group in ("Entities", "Relationships", "Sources", "Reports"):
            rows = [known[group][number] for number in cited.numbers.get(group, ()) if number in known[group]]
            ids = list(dict.fromkeys(row[0] for row in rows))
            units = [unit for row in rows for unit in row[1:]] + units
            if ids:
                more = ", +more" if len(ids) > PER_GROUP or group in cited.more else ""
                groups.append(f"{group} ({', '.join(ids[:PER_GROUP])}{more})")
        units = list(dict.fromkeys(units))
        if units and not cited.numbers.get("Sources") and foreign.program != "graphrag-mcp":
            groups.append(f"Sources ({', '.join(units[:PER_GROUP])}{', +more' if len(units) > PER_GROUP else ''})")
        return f"[Data: {'; '.join(groups)}]" if groups else ""

    if foreign.program == "graphrag-mcp":  # what we wrote ourselves is put back to the letter
        return _OURS.sub(lambda match: write(_read(match[0])), text)
    return replace_references(text, write)


def _read(reference: str) -> Cited:
    found = Cited()
    for group in _GROUP.finditer(reference):
        found.numbers[group[1]] = [int(one) for one in re.findall(r"\d{1,18}", group[2])]
        found.more |= {group[1]} if "+more" in group[2] else set()
    return found


def as_json(graph: Mapping[str, Any]) -> str:
    return json.dumps(graph, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
