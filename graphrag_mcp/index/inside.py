"""What lies inside a community, as a report needs it: numbers over all of it, rows of what it may name.

Takes rows (`of_rows`) or whole columns of one generation (`Columns`); gives an `Inside`, the same by either way. A top
community has thousands of members, and a report names the heaviest: so these are chosen in Arrow and numpy, and rows
are made of them alone. Knows no sentences and no words.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from itertools import chain, islice
from operator import attrgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_mcp.index.communities import Community, Hierarchy
from graphrag_mcp.index.evidence import EdgeRow, EntityRow
from graphrag_mcp.store.kept import ROW_ID
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.types import content_id

LISTED = 100  # ids of a kind in the row of a report: with all of them an edit wrote 100 KB for each thousand members
OWN = 50  # relationships between children whose sentences are considered, the heaviest first
_PARTS = 1_000_000  # weights are added up as whole millionths, so that no order of rows changes a sum
_MOST = 1e9


@dataclass(slots=True)
class Inside:
    """One community. `rows` and `links` hold at least what may be named, `weight` is that of relationships inside."""

    size: int
    n_links: int
    n_units: int
    total: float
    rows: Mapping[str, EntityRow]
    links: Mapping[str, EdgeRow]
    weight: Mapping[str, float]
    order: list[str]  # the heaviest entities, at most LISTED
    own_rows: list[EntityRow]  # of a community without children, heaviest first
    own_links: list[EdgeRow]  # inside no child, where there are children the OWN heaviest, by id
    entity_ids: list[str]  # at most LISTED of a kind
    relationship_ids: list[str]
    text_unit_ids: list[str]
    n_documents: int = 0  # where that is known

    def place(self, id: str) -> tuple[float, int, str, str]:
        return _place(self.rows[id], self.weight)

    def link_rank(self, id: str) -> tuple[float, float, str]:
        edge = self.links[id]
        return -edge.weight, -self.weight[edge.source_id] - self.weight[edge.target_id], id


def _place(row: EntityRow, weight: Mapping[str, float]) -> tuple[float, int, str, str]:
    return -weight[row.id], -len(row.text_unit_ids), row.title, row.id


def _parts(weight: float) -> int:
    return round(max(-_MOST, min(_MOST, weight)) * _PARTS)


def of_rows(
    community: Community, entities: Iterable[EntityRow], edges: Iterable[EdgeRow],
    children: Sequence[Collection[str]] = (), document_of: Mapping[str, str] | None = None,
) -> Inside:  # fmt: skip
    """From all rows, which may be more than the community's own; `children` are the members of each child."""
    members = set(community.members)
    rows = {row.id: row for row in entities if row.id in members}
    links = {edge.id: edge for edge in edges if edge.source_id in rows and edge.target_id in rows}
    parts = dict.fromkeys(rows, 0)
    for edge in links.values():
        parts[edge.source_id] += _parts(edge.weight)
        parts[edge.target_id] += _parts(edge.weight)
    weight = {id: value / _PARTS for id, value in parts.items()}
    home = {id: number for number, ids in enumerate(children) for id in ids}
    own = [edge for edge in links.values()
           if edge.source_id not in home or home[edge.source_id] != home.get(edge.target_id)]  # fmt: skip
    ranked = sorted(rows.values(), key=lambda row: _place(row, weight))
    order = [row.id for row in ranked[:LISTED]]
    units = set().union(*(row.text_unit_ids for row in rows.values()))
    strong = nsmallest(LISTED, links.values(), key=_strength)
    return Inside(
        size=len(rows), n_links=len(links), n_units=len(units),
        total=sum(_parts(edge.weight) for edge in links.values()) / _PARTS,
        rows=rows, links=links, weight=weight, order=order, own_rows=[row for row in ranked if row.id not in home],
        own_links=sorted(nsmallest(OWN if children else len(own), own, key=_strength), key=lambda edge: edge.id),
        entity_ids=sorted(order) if len(rows) <= LISTED else order,
        relationship_ids=[edge.id for edge in strong] if len(links) > LISTED else sorted(links),
        text_unit_ids=nsmallest(LISTED, units),
        n_documents=len({document_of.get(unit, unit) for unit in units}) if document_of else 0,
    )  # fmt: skip


def _strength(edge: EdgeRow) -> tuple[float, str]:
    return -edge.weight, edge.id


class Columns:
    """The communities `wanted`, from a few columns of the whole graph and the rows of what their reports may quote."""

    def __init__(self, snapshot: Snapshot, tree: Hierarchy, wanted: Collection[str], links: pa.Table) -> None:
        import numpy as np

        self._np, self._tree = np, tree
        every = tree.communities
        roots = [id for id in sorted(wanted) if every[id].parent not in wanted]
        self._ids = list(dict.fromkeys(chain.from_iterable(every[id].members for id in roots)))
        self._number = dict(zip(self._ids, range(len(self._ids)), strict=True))
        self._places: dict[str, Any] = {}  # of the members of each community, as they were asked for
        ids = pa.array(self._ids, pa.string())
        self._read_entities(snapshot, ids)
        self._take_edges(links, ids, wanted)
        self.leaves = self._leaves(snapshot, wanted)
        self.own = self._own(snapshot, wanted)

    def _read_entities(self, snapshot: Snapshot, ids: pa.Array) -> None:
        names = ["id", "title", "text_unit_ids", ROW_ID]
        table = some(snapshot, "entities", self._ids, "id", names)  # it may hold many others
        number = pc.index_in(table["id"], ids)
        at = self._np.full(len(ids), -1)
        at[number.drop_null().to_numpy()] = self._np.flatnonzero(number.is_valid().to_numpy())
        table = table.select(names[1:]).take(pa.array(at, mask=at < 0)).combine_chunks()
        self._row_ids = table[ROW_ID].fill_null(0).to_numpy()
        self._titles = table["title"]
        units = table["text_unit_ids"].combine_chunks()
        self._unit_lists = units = units.chunk(0) if isinstance(units, pa.ChunkedArray) else units
        encoded = units.flatten().dictionary_encode()
        order = pc.array_sort_indices(encoded.dictionary)
        self._units = encoded.dictionary.take(order)
        rank = self._np.empty(len(order), self._np.int64)
        rank[order.to_numpy()] = self._np.arange(len(order))
        self._unit_codes = rank[encoded.indices.to_numpy()]
        self._n_units = units.value_lengths().to_numpy(zero_copy_only=False)
        self._first_unit = self._np.concatenate([[0], self._np.cumsum(self._n_units)])

    def _take_edges(self, links: pa.Table, ids: pa.Array, wanted: Collection[str]) -> None:
        """The relationships among these entities, and of each community which are inside it, and inside no child."""
        np, every = self._np, self._tree.communities
        ends = [pc.index_in(links[end], ids) for end in ("source_id", "target_id")]
        inside = pc.and_(ends[0].is_valid(), ends[1].is_valid())
        self._edges = links.select(["id", "weight", ROW_ID]).filter(inside).combine_chunks()
        source, target = self._ends = tuple(end.filter(inside).to_numpy() for end in ends)
        self._weights = weights = self._edges["weight"].to_numpy()
        self._parts = np.rint(np.clip(weights, -_MOST, _MOST) * _PARTS).astype(np.int64)
        labels: dict[int, Any] = defaultdict(lambda: np.full(len(self._ids), -1))
        names_of = sorted({*wanted, *(child for id in wanted for child in every[id].children)})
        for number, id in enumerate(names_of):
            labels[every[id].level][self._members(id)] = number
        self._inside: dict[str, Any] = {}
        self._between: dict[str, Any] = {}
        # What is inside a community is inside its parent, so each level looks at what the one above has found.
        nested = all(id in wanted for name in names_of if (id := every[name].parent))
        places = np.arange(len(source))
        for level in sorted(labels):
            at, below = labels[level], labels[level + 1] if level + 1 in labels else np.full(len(self._ids), -1)
            here = at[source[places]]
            hit = (here == at[target[places]]) & (here >= 0)
            found, here = places[hit], here[hit]
            child = below[source[found]]
            apart = (child != below[target[found]]) | (child < 0)
            for some_, of, held in ((found, here, self._inside), (found[apart], here[apart], self._between)):
                order = np.argsort(of, kind="stable")
                groups, starts = np.unique(of[order], return_index=True)
                for group, part in zip(groups.tolist(), np.split(some_[order], starts[1:]), strict=True):
                    held[names_of[group]] = part
            places = found if nested else places

    def _members(self, community: str) -> Any:
        if community not in self._places:
            members = self._tree.communities[community].members
            numbers = map(self._number.__getitem__, members)
            self._places[community] = self._np.fromiter(numbers, self._np.int64, len(members))
        return self._places[community]

    def _leaves(self, snapshot: Snapshot, wanted: Collection[str]) -> dict[str, EntityRow]:
        every = self._tree.communities
        ids = sorted({one for id in wanted if not every[id].children for one in every[id].members})
        rows = self._rows(ids)
        row_ids = self._row_ids[[self._number[id] for id in ids]].tolist()
        for id, said in listed(snapshot.at("entities", row_ids, ["id", "evidence"])):
            rows[id].evidence = said
        return rows

    def _own(self, snapshot: Snapshot, wanted: Collection[str]) -> dict[str, list[EdgeRow]]:
        """Of each community the OWN heaviest relationships between its children, with their sentences, by id."""
        every = self._tree.communities
        chosen = {id: self._strongest(places, OWN if every[id].children else len(places)).tolist()
                  for id, places in self._between.items() if id in wanted}  # fmt: skip
        places = sorted({one for found in chosen.values() for one in found})
        rows = self._edge_rows(places)
        row_ids = self._edges[ROW_ID].take(pa.array(places, pa.int64())).to_pylist()
        for id, units, said in listed(snapshot.at("relationships", row_ids, ["id", "text_unit_ids", "evidence"])):
            rows[id].text_unit_ids, rows[id].evidence = units, said
        by_place = dict(zip(places, rows.values(), strict=True))
        return {id: sorted(map(by_place.__getitem__, found), key=attrgetter("id")) for id, found in chosen.items()}

    def _edge_rows(self, places: Sequence[int]) -> dict[str, EdgeRow]:
        """By id, in this order; what was said of them is not in it."""
        ends = (map(self._ids.__getitem__, end[places].tolist()) for end in self._ends)
        ids = self._edges["id"].take(pa.array(places, pa.int64())).to_pylist()
        weights = self._weights[places].tolist()
        return {id: EdgeRow(id, *row) for id, *row in zip(ids, *ends, weights, strict=True)}

    def _strongest(self, places: Any, most: int) -> Any:
        """At most so many of these relationships, the heaviest; in order of strength where there are more."""
        if len(places) <= most:
            return places
        weights = self._weights[places]
        places = places[weights >= self._np.partition(weights, len(places) - most)[len(places) - most]]
        some_ = self._edges.select(["id", "weight"]).take(pa.array(places))
        return places[pc.select_k_unstable(some_, most, [("weight", "descending"), ("id", "ascending")]).to_numpy()]

    def rest(self, id: str) -> str:
        """A hash of the relationships between the children of a community where these are more than OWN."""
        places = self._between.get(id, ())
        if len(places) <= OWN or not self._tree.communities[id].children:
            return ""
        rows = zip(self._edges["id"].take(pa.array(places)).to_pylist(), self._parts[places].tolist(), strict=True)
        return content_id("relationships", *(f"{edge} {parts}" for edge, parts in sorted(rows)))

    def titles(self, ids: Iterable[str]) -> list[str]:
        return self._titles.take(pa.array([self._number[id] for id in ids], pa.int64())).to_pylist()

    def inside(self, community: Community, quoted: Iterable[str] = (), cited: Iterable[str] = ()) -> Inside:
        """`quoted` and `cited` are entities and relationships that the children's reports name."""
        np, own = self._np, self.own.get(community.id, [])
        if not community.children:  # its rows are here, and few: most communities
            return of_rows(community, [self.leaves[id] for id in community.members], own)
        members = self._members(community.id)
        places = self._inside.get(community.id, np.empty(0, np.int64))
        source, target = (end[places] for end in self._ends)
        parts = self._parts[places]
        # Sums of whole numbers below 2^53 are exact in floating point, too.
        sums = np.bincount(np.concatenate([source, target]), np.concatenate([parts, parts]), len(self._ids))
        weights = sums / _PARTS
        order = self._heaviest(members, weights)
        links = self._cited(places, cited) | {edge.id: edge for edge in own}
        inside = set(community.members)
        named = dict.fromkeys(order) | {id: None for id in quoted if id in inside}
        named |= {end: None for edge in links.values() for end in (edge.source_id, edge.target_id)}
        rows = self._rows(list(named))
        weight = {id: float(weights[self._number[id]]) for id in rows}
        n_units, units = self._some_units(members)
        strong = self._edges["id"].take(pa.array(self._strongest(places, LISTED))).to_pylist()
        return Inside(
            size=len(members), n_links=len(places), n_units=n_units, total=int(parts.sum()) / _PARTS, rows=rows,
            links=links, weight=weight, order=order, own_rows=[], own_links=own,
            entity_ids=sorted(order) if len(members) <= LISTED else order,
            relationship_ids=strong if len(places) > LISTED else sorted(strong), text_unit_ids=units,
        )  # fmt: skip

    def _heaviest(self, members: Any, weights: Any) -> list[str]:
        np = self._np
        if len(members) > LISTED:  # what is lighter than the last of these is not ranked
            least = np.partition(weights[members], len(members) - LISTED)[len(members) - LISTED]
            members = members[weights[members] >= least]
        titles = self._titles.take(pa.array(members)).to_pylist()
        keys = zip((-weights[members]).tolist(), (-self._n_units[members]).tolist(), titles,
                   map(self._ids.__getitem__, members.tolist()), strict=True)  # fmt: skip
        return [id for *_, id in nsmallest(LISTED, keys)]

    def _cited(self, places: Any, ids: Iterable[str]) -> dict[str, EdgeRow]:
        """Those of the relationships that are among these."""
        wanted = pa.array(set(ids), pa.string())
        if not len(wanted) or not len(places):
            return {}
        hit = pc.is_in(self._edges["id"].take(pa.array(places)), wanted).to_numpy(zero_copy_only=False)
        return self._edge_rows(places[hit])

    def _rows(self, ids: Sequence[str]) -> dict[str, EntityRow]:
        units = self._unit_lists.take(pa.array([self._number[id] for id in ids], pa.int64())).to_pylist()
        return {id: EntityRow(id, *row) for id, *row in zip(ids, self.titles(ids), units, strict=True)}

    def _some_units(self, members: Any) -> tuple[int, list[str]]:
        """How many text units name the members, and the first of them."""
        np = self._np
        lengths = self._n_units[members]
        ends = np.cumsum(lengths)
        steps = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(
            self._first_unit[members] - ends + lengths, lengths
        )
        named = np.zeros(len(self._units), bool)
        named[self._unit_codes[steps]] = True
        codes = np.flatnonzero(named)
        return len(codes), self._units.take(pa.array(codes[:LISTED])).to_pylist()


# ---- reading ------------------------------------------------------------------------------------


def some(snapshot: Snapshot, table: str, values: Sequence[str], key: str, columns: Sequence[str]) -> pa.Table:
    """At least the rows with these keys; when many are wanted, all: choosing and ordering cost more than reading."""
    if len(values) * 10 > snapshot.count("entities"):
        return snapshot.rows(table, columns=columns)
    return snapshot.by_key(table, sorted(values), key, columns)


def listed(table: pa.Table) -> Iterator[Sequence[Any]]:
    """The rows as Python lists, see `lists`."""
    return (row for batch in table.to_batches() for row in zip(*lists(batch), strict=True))


def lists(batch: pa.RecordBatch) -> list[list[Any]]:
    """The columns as Python lists; a struct of evidence becomes (text unit, sentence), and equal strings of a column
    one object: a sentence stands in the rows of many pairs."""
    found: list[list[Any]] = []
    for column in batch.columns:
        if not pa.types.is_list(column.type):
            found.append(column.to_pylist())
            continue
        values = column.flatten()
        if pa.types.is_struct(values.type):
            flat = zip(*(_strings(values.field(name)) for name in ("text_unit_id", "text")), strict=True)
        else:
            flat = iter(_strings(values))
        found.append([list(islice(flat, length)) for length in column.value_lengths().to_pylist()])
    return found


def _strings(array: pa.Array) -> list[str]:
    encoded = array.dictionary_encode()
    return list(map(encoded.dictionary.to_pylist().__getitem__, encoded.indices.to_pylist()))
