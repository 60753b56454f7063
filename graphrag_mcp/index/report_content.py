"""The content of a community for its report: counts, entities, relationships, and sentences worth
quoting.

A top community has thousands of members, and a report names the heaviest: these are chosen in Arrow
and numpy (`Columns`), and rows are made of them alone."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from heapq import nsmallest
from itertools import chain, islice
from operator import attrgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_mcp.index.communities import Community, Hierarchy
from graphrag_mcp.store.tables import ROW_ID, Snapshot
from graphrag_mcp.text.terms import is_cjk, sentences, terms
from graphrag_mcp.types import content_id

Evidence = tuple[str, str]  # id of the text unit, sentence


@dataclass(slots=True)
class EntityRow:
    id: str
    title: str
    text_unit_ids: Sequence[str] = ()
    evidence: Sequence[Evidence] = ()
    type: str = ""  # these two of leaves alone
    description: str = ""


@dataclass(slots=True)
class EdgeRow:
    id: str
    source_id: str
    target_id: str
    weight: float = 1.0
    text_unit_ids: Sequence[str] = ()
    evidence: Sequence[Evidence] = ()


@dataclass(slots=True, eq=False)
class Candidate:
    """One sentence and what of the community it speaks of: ordered sets of ids."""

    text: str
    worth: float = 1.0
    entities: dict[str, None] = field(default_factory=dict)
    edges: dict[str, None] = field(default_factory=dict)
    units: dict[str, None] = field(default_factory=dict)
    gain: float = 0.0  # its worth times the share of what it speaks of
    cited: str = ""  # the text with its references, once it has been written


class Candidates(dict[str, Candidate]):
    """Sentences of at most `limit` characters by their text, each once."""

    def __init__(self, limit: int) -> None:
        self._limit = limit

    def of(self, said: str) -> Candidate:
        text, worth = readable(said, self._limit)
        if text not in self:
            self[text] = Candidate(text, worth)
        return self[text]


def add_rows(found: Candidates, entities: Iterable[EntityRow], links: Iterable[EdgeRow]) -> None:
    """Add the evidence sentences of relationships and entities."""
    for edge in links:
        for unit, said in edge.evidence:
            candidate = found.of(said)
            candidate.edges[edge.id] = candidate.units[unit] = None
            candidate.entities[edge.source_id] = candidate.entities[edge.target_id] = None
    for row in entities:
        for unit, said in row.evidence:
            candidate = found.of(said)
            candidate.entities[row.id] = candidate.units[unit] = None


def add_quotes(found: Candidates, quotes: Iterable[Candidate]) -> None:
    """Add what reports quote."""
    for quote in quotes:
        candidate = found.of(quote.text)
        candidate.entities.update(quote.entities)
        candidate.edges.update(quote.edges)
        candidate.units.update(quote.units)


def in_turn(columns: Iterable[Iterable[Candidate]], most: int) -> list[Candidate]:
    """The first of each, then the second of each; `most` at most, and nothing is read beyond."""
    left = [iter(column) for column in columns]
    found: list[Candidate] = []
    while left:
        still = []
        for column in left:
            quote = next(column, None)
            if quote is not None:
                found.append(quote)
                still.append(column)
            if len(found) == most:
                return found
        left = still
    return found


_REFERENCE = re.compile(r" ?\[Data: ([^\[\]\n]{1,4000})\]")
_GROUP = re.compile(r"(Entities|Relationships|Sources) \(([^()\n]{0,4000})\)")
_HEX = re.compile(r"\b[0-9a-f]{32}\b")


def read_quotes(summary: str, findings: str) -> Iterator[Candidate]:
    """The cited sentences of a report written by us or by a model; what is not cited is left out."""
    seen: set[str] = set()
    for text in chain((summary,), _explanations(findings)):
        parts = _REFERENCE.split(text)
        for sentence, reference in zip(parts[::2], parts[1::2], strict=False):
            text = sentence.strip()
            if text not in seen:
                seen.add(text)
                groups = {match[1]: _HEX.findall(match[2]) for match in _GROUP.finditer(reference)}
                kinds = (
                    dict.fromkeys(groups.get(name, ()))
                    for name in ("Entities", "Relationships", "Sources")
                )
                yield Candidate(text, 1.0, *kinds)


def _explanations(findings: str) -> Iterator[str]:
    for one in json.loads(findings or "[]"):
        yield str(one.get("explanation", ""))


# ---- how a sentence reads -----------------------------------------------------------------------

_ENDED = re.compile(r"[.!?。！？…][\"'”’»)）」』\]]*$")
_DANGLING = re.compile(
    r"(?:he|she|it|they|we|this|these|those|that|his|her|its|their|however|also|but|and|then|there"
    r"|thus|therefore|instead|moreover|furthermore|indeed|recently|at the time|(?:by|in) contrast|to this end"
    r"|(?:first|second|third|final)(?:ly)?,|for (?:example|instance)|as a result|one of (?:the|these|them)"
    r"|figure \d|\(\w\))\b"
    r"|[他她它这那其该此后将]|但|因此|然而|同时|并且|参见|[.。]",
    re.IGNORECASE,
)
_DEFINES = re.compile(r"[^.。]{0,40}?(?:\b(?:is|was|are|were)\b|是|为|,? \(|（)")


# of a heading, quote or list; not the ** of bold words
_MARK = re.compile(r"(?:(?:#{1,6}|>|[-*•|]) )+")


@lru_cache(maxsize=8192)
def readable(text: str, limit: int) -> tuple[str, float]:
    """The sentence on one line and at most `limit` characters, and its worth as something to quote.

    Worth most: complete, 40-300 characters (half of that in CJK), not leaning on a sentence before
    it."""
    flat = " ".join(text.split())
    flat = flat[mark.end() if (mark := _MARK.match(flat)) else 0 :]
    flat = flat.replace("[Data:", "(Data:")  # only we write references
    if len(flat) > limit:
        flat = _shortened(flat, limit)
    length = len(flat) * (2 if mostly_cjk(flat) else 1)
    worth = (
        0.3 if flat.endswith("…") else 1.0 if 40 <= length <= 300 else 0.5 if length < 40 else 0.7
    )
    if not _ENDED.search(flat, max(0, len(flat) - 8)) or flat[:1].islower():
        worth *= 0.6
    if _DANGLING.match(flat):
        worth *= 0.6
    if (
        flat.count("(") != flat.count(")")
        or flat.count("（") != flat.count("）")
        or flat.count('"') % 2
    ):
        worth *= 0.6  # cut out of something
    return flat, worth


def introduction(text: str, names: Iterable[str]) -> float:
    """Does the sentence begin with one of the names, and does it say what that is?"""
    best = 1.0
    for name in names:
        at = text.find(name, 0, len(name) + 5)
        if name and at >= 0:
            if _DEFINES.match(text, at + len(name)):
                return 1.6
            best = 1.2
    return best


def _shortened(text: str, limit: int) -> str:
    """The first sentence of several that is long enough to say something; of a single long one its
    beginning."""
    pieces = [text[start:end].strip() for start, end in sentences(text)]
    piece = next((one for one in pieces if len(one) >= 40), text)
    if len(piece) <= limit:
        return piece
    cut = piece[: limit - 1]
    space = cut.rfind(" ")
    return (cut[:space] if space > limit // 2 else cut).rstrip(" ,;，；、") + "…"


def alike(one: str, other: str) -> bool:
    """Do the two sentences say nearly the same: four fifths of the shorter one's words in the
    other?"""
    a, b = _words(one), _words(other)
    return len(a & b) >= 0.8 * max(1, min(len(a), len(b)))


@lru_cache(maxsize=8192)
def _words(text: str) -> frozenset[str]:
    flat = text.casefold()
    if mostly_cjk(flat):
        return frozenset(flat[i : i + 2] for i in range(len(flat)))
    return frozenset(flat.split())


def mostly_cjk(text: str) -> bool:
    """Is at least half of the text's first letters CJK?"""
    head = text[:80]
    if not head or max(head) < "\u1100":  # no CJK below
        return False
    letters = [ch for ch in head if ch.isalpha()]
    return sum(map(is_cjk, letters)) * 2 > len(letters)


# ids of a kind in the row of a report: with all of them an edit wrote 100 KB for each thousand
# members
LISTED = 100
OWN = 50  # relationships between children whose sentences are considered, the heaviest first
_PARTS = (
    1_000_000  # weights are added up as whole millionths, so that no order of rows changes a sum
)
_MOST = 1e9


@dataclass(slots=True)
class Inside:
    """One community. `rows` and `links` hold at least what may be named, `weight` is that of
    relationships inside."""

    size: int
    n_links: int
    n_units: int
    total: float
    rows: Mapping[str, EntityRow]
    links: Mapping[str, EdgeRow]
    weight: Mapping[str, float]
    order: list[str]  # the heaviest entities, at most LISTED
    own_rows: list[EntityRow]  # of a community without children, heaviest first
    own_links: list[EdgeRow]  # of those inside no child the OWN heaviest, of a leaf all; by id
    entity_ids: list[str]  # at most LISTED of a kind
    relationship_ids: list[str]
    text_unit_ids: list[str]
    terms: Mapping[str, float] = field(default_factory=dict)  # what sets it apart, with weights
    said: Sequence[Evidence] = ()  # sentences of its texts, where no name stands in them
    title: str = ""  # of source code: its folder or file

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
    community: Community, entities: Iterable[EntityRow], edges: Iterable[EdgeRow]
) -> Inside:
    """From all rows of a community, as where no child has any of them."""
    rows, links = {row.id: row for row in entities}, {edge.id: edge for edge in edges}
    parts = dict.fromkeys(rows, 0)
    for edge in links.values():
        parts[edge.source_id] += _parts(edge.weight)
        parts[edge.target_id] += _parts(edge.weight)
    weight = {id: value / _PARTS for id, value in parts.items()}
    ranked = sorted(rows.values(), key=lambda row: _place(row, weight))
    order = [row.id for row in ranked[:LISTED]]
    units = community.units or set().union(*(row.text_unit_ids for row in rows.values()))
    strong = nsmallest(LISTED, links.values(), key=_strength)
    return Inside(
        size=len(rows),
        n_links=len(links),
        n_units=len(units),
        total=sum(_parts(edge.weight) for edge in links.values()) / _PARTS,
        rows=rows,
        links=links,
        weight=weight,
        order=order,
        own_rows=ranked,
        own_links=sorted(links.values(), key=attrgetter("id")),
        entity_ids=sorted(order) if len(rows) <= LISTED else order,
        relationship_ids=[edge.id for edge in strong] if len(links) > LISTED else sorted(links),
        text_unit_ids=nsmallest(LISTED, units),
    )


def _strength(edge: EdgeRow) -> tuple[float, str]:
    return -edge.weight, edge.id


class Columns:
    """The communities `wanted`, from a few columns of the whole graph and the rows of what their
    reports may quote."""

    def __init__(
        self,
        snapshot: Snapshot,
        tree: Hierarchy,
        wanted: Collection[str],
        links: pa.Table,
        told: Mapping[str, str] | None = None,
    ) -> None:
        """`told`: where a model read the texts, descriptions newer than those of the snapshot, by
        row id; reports then say what the descriptions say. None: they quote the texts."""
        import numpy as np

        self._told = told
        self._np, self._tree, self._snapshot = np, tree, snapshot
        every = tree.communities
        roots = [id for id in sorted(wanted) if every[id].parent not in wanted]
        self._ids = list(dict.fromkeys(chain.from_iterable(every[id].members for id in roots)))
        self._number = dict(zip(self._ids, range(len(self._ids)), strict=True))
        self._places: dict[
            str, Any
        ] = {}  # of the members of each community, as they were asked for
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
        self._n_units = units.value_lengths().to_numpy(zero_copy_only=False)

    def _take_edges(self, links: pa.Table, ids: pa.Array, wanted: Collection[str]) -> None:
        """The relationships among these entities, and of each community which are inside it, and
        inside no child."""
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
        # What is inside a community is inside its parent, so each level looks at what the one above
        # has found.
        nested = all(id in wanted for name in names_of if (id := every[name].parent))
        places = np.arange(len(source))
        for level in sorted(labels):
            at, below = (
                labels[level],
                labels[level + 1] if level + 1 in labels else np.full(len(self._ids), -1),
            )
            here = at[source[places]]
            hit = (here == at[target[places]]) & (here >= 0)
            found, here = places[hit], here[hit]
            child = below[source[found]]
            apart = (child != below[target[found]]) | (child < 0)
            for some_, of, held in (
                (found, here, self._inside),
                (found[apart], here[apart], self._between),
            ):
                order = np.argsort(of, kind="stable")
                groups, starts = np.unique(of[order], return_index=True)
                for group, part in zip(
                    groups.tolist(), np.split(some_[order], starts)[1:], strict=True
                ):
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
        columns = ["id", "type", "evidence", "description"]
        for id, type, said, description in listed(snapshot.at("entities", row_ids, columns)):
            rows[id].evidence = self._said(id, said, description)
            rows[id].type, rows[id].description = type, description
        return rows

    def _said(self, id: str, evidence: Sequence[Evidence], description: str) -> Sequence[Evidence]:
        """Sentences of the model's description, each with the text unit whose evidence shares most
        terms with it; the evidence itself where no model read the texts."""
        text = description if self._told is None else self._told.get(id, description)
        if self._told is None or not text or not evidence:
            return evidence
        known = [(unit, set(terms(sentence))) for unit, sentence in sorted(evidence)]
        found = []
        text = text.replace("\n", "\n\n")  # a line is what one text unit says
        for start, end in sentences(text):
            spoken = set(terms(text[start:end]))
            unit = max(known, key=lambda one: len(spoken & one[1]))[0]
            found.append((unit, text[start:end].strip()))
        return found

    def _own(self, snapshot: Snapshot, wanted: Collection[str]) -> dict[str, list[EdgeRow]]:
        """Of each community the OWN heaviest relationships between its children, with their
        sentences, by id."""
        every = self._tree.communities
        chosen = {
            id: self._strongest(places, OWN if every[id].children else len(places)).tolist()
            for id, places in self._between.items()
            if id in wanted
        }
        places = sorted({one for found in chosen.values() for one in found})
        rows = self._edge_rows(places)
        row_ids = self._edges[ROW_ID].take(pa.array(places, pa.int64())).to_pylist()
        columns = ["id", "text_unit_ids", "evidence", "description"]
        for id, units, said, text in listed(snapshot.at("relationships", row_ids, columns)):
            rows[id].text_unit_ids, rows[id].evidence = units, self._said(id, said, text)
        by_place = dict(zip(places, rows.values(), strict=True))
        return {
            id: sorted(map(by_place.__getitem__, found), key=attrgetter("id"))
            for id, found in chosen.items()
        }

    def _edge_rows(self, places: Sequence[int]) -> dict[str, EdgeRow]:
        """By id, in this order; what was said of them is not in it."""
        ends = (map(self._ids.__getitem__, end[places].tolist()) for end in self._ends)
        ids = self._edges["id"].take(pa.array(places, pa.int64())).to_pylist()
        weights = self._weights[places].tolist()
        return {id: EdgeRow(id, *row) for id, *row in zip(ids, *ends, weights, strict=True)}

    def _strongest(self, places: Any, most: int) -> Any:
        """At most so many of these relationships, the heaviest; in order of strength where there
        are more."""
        if len(places) <= most:
            return places
        weights = self._weights[places]
        places = places[
            weights >= self._np.partition(weights, len(places) - most)[len(places) - most]
        ]
        some_ = self._edges.select(["id", "weight"]).take(pa.array(places))
        return places[
            pc.select_k_unstable(
                some_, most, [("weight", "descending"), ("id", "ascending")]
            ).to_numpy()
        ]

    def rest(self, id: str) -> str:
        """A hash of the relationships between the children of a community where these are more than
        OWN."""
        places = self._between.get(id, ())
        if len(places) <= OWN or not self._tree.communities[id].children:
            return ""
        rows = zip(
            self._edges["id"].take(pa.array(places)).to_pylist(),
            self._parts[places].tolist(),
            strict=True,
        )
        return content_id("relationships", *(f"{edge} {parts}" for edge, parts in sorted(rows)))

    def titles(self, ids: Iterable[str]) -> list[str]:
        return self._titles.take(pa.array([self._number[id] for id in ids], pa.int64())).to_pylist()

    def inside(
        self, community: Community, quoted: Iterable[str] = (), cited: Iterable[str] = ()
    ) -> Inside:
        """`quoted` and `cited` are entities and relationships that the children's reports name."""
        np, own = self._np, self.own.get(community.id, [])
        if not community.children:  # its rows are here, and few: most communities
            made = of_rows(community, [self.leaves[id] for id in community.members], own)
            made.terms = self._tree.terms.get(community.id, {})
            made.title = self._tree.titles.get(community.id, "")
            made.said = () if community.members else self._sentences(community.units)
            return made
        members = self._members(community.id)
        places = self._inside.get(community.id, np.empty(0, np.int64))
        source, target = (end[places] for end in self._ends)
        parts = self._parts[places]
        # Sums of whole numbers below 2^53 are exact in floating point, too.
        sums = np.bincount(
            np.concatenate([source, target]), np.concatenate([parts, parts]), len(self._ids)
        )
        weights = sums / _PARTS
        order = self._heaviest(members, weights)
        links = self._cited(places, cited) | {edge.id: edge for edge in own}
        inside = set(community.members)
        named = dict.fromkeys(order) | {id: None for id in quoted if id in inside}
        named |= {end: None for edge in links.values() for end in (edge.source_id, edge.target_id)}
        rows = self._rows(list(named))
        weight = {id: float(weights[self._number[id]]) for id in rows}
        strong = self._edges["id"].take(pa.array(self._strongest(places, LISTED))).to_pylist()
        return Inside(
            size=len(members),
            n_links=len(places),
            n_units=len(community.units),
            total=int(parts.sum()) / _PARTS,
            rows=rows,
            links=links,
            weight=weight,
            order=order,
            own_rows=[],
            own_links=own,
            entity_ids=sorted(order) if len(members) <= LISTED else order,
            relationship_ids=strong if len(places) > LISTED else sorted(strong),
            text_unit_ids=list(community.units[:LISTED]),
            terms=self._tree.terms.get(community.id, {}),
            title=self._tree.titles.get(community.id, ""),
        )

    def _sentences(self, units: Sequence[str]) -> list[Evidence]:
        rows = self._snapshot.by_key("text_units", units[:LISTED], "id", ["id", "text"]).to_pylist()
        return [
            (row["id"], row["text"][start:end])
            for row in sorted(rows, key=lambda row: str(row["id"]))
            for start, end in sentences(row["text"])
        ]

    def _heaviest(self, members: Any, weights: Any) -> list[str]:
        np = self._np
        if len(members) > LISTED:  # what is lighter than the last of these is not ranked
            least = np.partition(weights[members], len(members) - LISTED)[len(members) - LISTED]
            members = members[weights[members] >= least]
        titles = self._titles.take(pa.array(members)).to_pylist()
        keys = zip(
            (-weights[members]).tolist(),
            (-self._n_units[members]).tolist(),
            titles,
            map(self._ids.__getitem__, members.tolist()),
            strict=True,
        )
        return [id for *_, id in nsmallest(LISTED, keys)]

    def _cited(self, places: Any, ids: Iterable[str]) -> dict[str, EdgeRow]:
        """Those of the relationships that are among these."""
        wanted = pa.array(set(ids), pa.string())
        if not len(wanted) or not len(places):
            return {}
        hit = pc.is_in(self._edges["id"].take(pa.array(places)), wanted).to_numpy(
            zero_copy_only=False
        )
        return self._edge_rows(places[hit])

    def _rows(self, ids: Sequence[str]) -> dict[str, EntityRow]:
        units = self._unit_lists.take(
            pa.array([self._number[id] for id in ids], pa.int64())
        ).to_pylist()
        return {
            id: EntityRow(id, *row) for id, *row in zip(ids, self.titles(ids), units, strict=True)
        }


# ---- reading ------------------------------------------------------------------------------------


def some(
    snapshot: Snapshot, table: str, values: Sequence[str], key: str, columns: Sequence[str]
) -> pa.Table:
    """At least the rows with these keys; when many are wanted, all: choosing and ordering cost more
    than reading."""
    if len(values) * 10 > snapshot.count("entities"):
        return snapshot.rows(table, columns=columns)
    return snapshot.by_key(table, sorted(values), key, columns)


def listed(table: pa.Table) -> Iterator[Sequence[Any]]:
    """The rows as Python lists, see `lists`."""
    return (row for batch in table.to_batches() for row in zip(*lists(batch), strict=True))


def lists(batch: pa.RecordBatch) -> list[list[Any]]:
    """The columns as Python lists; a struct of evidence becomes (text unit, sentence), and equal
    strings of a column one object: a sentence stands in the rows of many pairs."""
    found: list[list[Any]] = []
    for column in batch.columns:
        if not pa.types.is_list(column.type):
            found.append(column.to_pylist())
            continue
        values = column.flatten()
        if pa.types.is_struct(values.type):
            flat = zip(
                *(strings(values.field(name)) for name in ("text_unit_id", "text")), strict=True
            )
        else:
            flat = iter(strings(values))
        found.append([list(islice(flat, length)) for length in column.value_lengths().to_pylist()])
    return found


def strings(array: pa.Array | pa.ChunkedArray) -> list[str]:
    """A column as a Python list, in which equal strings are one object."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    encoded = array.dictionary_encode()
    return list(map(encoded.dictionary.to_pylist().__getitem__, encoded.indices.to_pylist()))
