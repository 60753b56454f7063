"""The hierarchy of communities and the tables: computed from the texts and the graph of a generation, read
as it is stored, and what changes between the two.

Text units of notes and of licences have no topic; those of a plug-in are grouped by it. Where no text
that has a topic changed, the stored groups stay: Leiden would find the same ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_mcp.index import imported, plugin
from graphrag_mcp.index.communities import VERSION as VERSION_OF_GROUPS
from graphrag_mcp.index.communities import (
    ClusterParams,
    Community,
    Hierarchy,
    Leaf,
    Texts,
    Topics,
    by_rank,
    characteristic,
    cluster,
    texts_of,
    tree_with,
    ways_of,
)
from graphrag_mcp.index.graph import graph_to_table
from graphrag_mcp.plugins import readers
from graphrag_mcp.store.schema import LIST, TABLES
from graphrag_mcp.store.segments import GRAPHS
from graphrag_mcp.store.sheets import sheets_of
from graphrag_mcp.store.tables import Change, Snapshot, licences_of, notes_of, repeated_lines_of, rows_of
from graphrag_mcp.text.prose import without_addresses
from graphrag_mcp.text.terms import content_id, lists_of, terms

AT_ONCE = 4096  # passages of which the terms are in memory

# ---- what is grouped ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Grouping:
    """The text units that have a topic, and a digest of all that their groups follow from. `document_of`:
    by text unit; `sheet_of`: the file of a text unit that is rows of a sheet."""

    document_of: Mapping[str, str]
    sheet_of: Mapping[str, str]
    made_of: str

    @staticmethod
    def of(snapshot: Snapshot, document_of: Mapping[str, str], params: ClusterParams) -> Grouping:
        files = sheets_of(snapshot, {*document_of.values()})
        sheet_of = {unit: files[of] for unit, of in document_of.items() if of in files}
        parts = repr(params), repr(sorted(document_of.items())), repr(sorted(sheet_of.items()))
        return Grouping(document_of, sheet_of, content_id(str(VERSION_OF_GROUPS), *parts))

    def is_stored(self, snapshot: Snapshot) -> bool:
        """Do the groups of the stored tree follow from the same?"""
        return snapshot.manifest.parameters.get("topics") == self.made_of

    def texts(self, snapshot: Snapshot) -> Texts:
        """The terms of these text units."""
        repeated = repeated_lines_of(snapshot)
        columns = ["document_id", "text_unit_id", "text", "terms"]
        batches = (with_told_terms(part, repeated) for part in snapshot.batches("passages", columns, AT_ONCE))
        return texts_of(batches, self.document_of)


def with_told_terms(passages: pa.Table, repeated: Mapping[str, Set[str]]) -> pa.Table:
    """The passages with the terms of what their texts tell: without those of addresses, and of the lines
    that a document repeats. By menus and notices pages of a site are alike, whatever they tell."""
    linked = pc.match_substring_regex(passages["text"], r"\]\(|://|www\.|[!-~]{40}").to_pylist()
    names = "document_id", "text", "terms"
    rows = zip(linked, *(passages[name].to_pylist() for name in names), strict=True)
    term_texts = [
        " ".join(terms(without_addresses(text, repeated.get(document, frozenset()))))
        if has_address or document in repeated
        else known
        for has_address, document, text, known in rows
    ]
    return passages.select(["text_unit_id"]).append_column("terms", pa.array(term_texts, pa.string()))


def topics_ahead(snapshot: Snapshot, params: ClusterParams, check: Callable[[], None]) -> Topics | None:
    """The topics of the texts of a generation to come, before its graph is merged; None where the stored
    ones hold. `tree_of` takes them where the graph moves no text: Leiden lets Python go on meanwhile.
    `check` raises where no one waits for them any longer."""
    uris = rows_of(snapshot.rows("documents", columns=["id", "uri"]))
    plugged = {id for id, uri in uris if any(reader.knows(uri) for reader in readers().values())}
    left_out = plugged | notes_of(snapshot) | licences_of(snapshot)
    units = rows_of(snapshot.rows("text_units", columns=["id", "document_id"]))
    grouping = Grouping.of(snapshot, {unit: of for unit, of in units if of not in left_out}, params)
    if grouping.is_stored(snapshot):
        return None
    check()
    texts = grouping.texts(snapshot)
    ways = ways_of(texts, params, grouping.sheet_of, check)
    return Topics(texts, ways, grouping.made_of)


# ---- the tree of a generation -------------------------------------------------------------------


def links_of(snapshot: Snapshot) -> pa.Table:
    """The relationships, in order of id: what is clustered, and what reports are compared by."""
    columns = ["id", "source_id", "target_id", "weight", "check"]
    return snapshot.rows("relationships", columns=columns).sort_by("id")


def tree_of(
    snapshot: Snapshot, params: ClusterParams, links: pa.Table, recluster: bool = False, ahead: Topics | None = None
) -> Hierarchy:
    """The hierarchy of the text units and entities that there are; imports may have a part. `recluster`:
    also where the stored groups hold."""
    found = imported_of(snapshot)
    by_import = found is not None and bool(found.ways)
    units_of = dict(rows_of(snapshot.rows("entities", columns=["id", "text_unit_ids"])))
    document_of = dict(rows_of(snapshot.rows("text_units", columns=["id", "document_id"])))
    outlined = {} if by_import else plugin.outlined_units(snapshot, document_of)
    grouping = Grouping.of(snapshot, _told(snapshot, document_of, outlined, units_of), params)
    if apart := {unit for units in outlined.values() for unit in units}:
        # an entity is where it is defined, however often documents name it
        units_of = {id: [unit for unit in units if unit in apart] or units for id, units in units_of.items()}
    if found is not None and by_import:
        texts, edges = grouping.texts(snapshot), list(_edges(links))
        tree = imported.hierarchy(found, texts, units_of, edges, params)
        return replace(tree, terms=characteristic(texts, tree))
    edges = list(_edges(_links_of_unplaced(links, units_of)))
    plugged = {name: list(plugin.plugins()[name].groups(units, params)) for name, units in outlined.items()}
    if not recluster and grouping.is_stored(snapshot):
        tree = _regrown(snapshot, grouping, units_of, edges, plugged)
        if tree is not None:
            return tree
    if ahead is not None and ahead.made_of == grouping.made_of:
        texts, tree = ahead.texts, tree_with(ahead.ways, units_of, edges, plugged)
    else:
        texts = grouping.texts(snapshot)
        tree = cluster(texts, units_of, edges, params, plugged, grouping.sheet_of)
    return replace(tree, terms=characteristic(texts, tree), made_of=grouping.made_of)


def _told(
    snapshot: Snapshot,
    document_of: Mapping[str, str],
    outlined: Mapping[str, Mapping[str, str]],
    units_of: Mapping[str, Sequence[str]],
) -> dict[str, str]:
    """The documents of the text units that have a topic; of notes and licences only those that name an
    entity, as imported ones may. `outlined`: those of plug-ins; `units_of`: by entity."""
    apart = {unit for units in outlined.values() for unit in units}
    left_out = notes_of(snapshot) | licences_of(snapshot)
    naming = {unit for units in units_of.values() for unit in units} if left_out else set[str]()
    return {
        unit: of for unit, of in document_of.items() if unit not in apart and (of not in left_out or unit in naming)
    }


def _links_of_unplaced(links: pa.Table, units_of: Mapping[str, Sequence[str]]) -> pa.Table:
    """The relationships of entities without a text unit: the others follow no link, and of 14,000
    documents theirs took 40 MB."""
    placed = pa.array([id for id, units in units_of.items() if units], pa.string())
    ends = (pc.is_in(links[end], placed) for end in ("source_id", "target_id"))
    return links.filter(pc.invert(pc.and_(*ends)))


def _edges(links: pa.Table) -> list[tuple[str, str, float]]:
    return list(rows_of(links.select(["source_id", "target_id", "weight"])))


def _regrown(
    snapshot: Snapshot,
    grouping: Grouping,
    units_of: Mapping[str, Sequence[str]],
    edges: list[tuple[str, str, float]],
    plugged: Mapping[str, list[Leaf]],
) -> Hierarchy | None:
    """The tree with the stored groups of text units and the entities as they are now; None where the
    stored tree lacks a group."""
    paths = _paths(snapshot)
    if not paths.keys() >= grouping.document_of.keys():
        return None
    stored = {unit: paths[unit] for unit in grouping.document_of}
    ids = sorted({id for path in stored.values() for id in path})
    terms_of = dict(rows_of(snapshot.by_key("reports", ids, "id", ["id", "terms"])))
    if len(ids) != len(terms_of):
        return None
    tree = tree_with(stored, units_of, edges, plugged)
    now = {id: new for unit, path in stored.items() for id, new in zip(path, tree.path[unit], strict=True)}
    words = {id: terms.rpartition("#")[2].split()[1:] for id, terms in terms_of.items()}
    found = {now[id]: by_rank(words[id]) for id in ids}
    return replace(tree, terms=found, made_of=grouping.made_of)


def imported_of(snapshot: Snapshot) -> imported.ImportedGraphs | None:
    """What imports brought; None where nothing was ever imported."""
    there = any(segment["kind"] == GRAPHS for segment in snapshot.manifest.segments)
    return imported.imported_graphs(snapshot) if there else None


# ---- the stored tree ----------------------------------------------------------------------------


def stored_tree(snapshot: Snapshot) -> Hierarchy:
    """The hierarchy as the tables have it."""
    path = _paths(snapshot)
    rows = snapshot.rows("communities").to_pylist()
    of_text = sorted(path.keys() - {id for row in rows for id in row["entity_ids"]})
    units = lists_of((community, id) for id in of_text for community in path[id])
    found = {}
    for row in rows:
        members = (row["children"], row["entity_ids"], units[row["id"]])
        found[row["id"]] = Community(row["id"], row["level"], row["parent"], *map(tuple, members))
    return Hierarchy(found, path)


def _paths(snapshot: Snapshot) -> dict[str, tuple[str, ...]]:
    """The communities of each entity and text unit, coarsest first."""
    rows = rows_of(snapshot.rows("memberships", columns=["entity_id", "path"]))
    return {id: tuple(path) for id, path in rows}


def compare(snapshot: Snapshot, tree: Hierarchy, number: dict[str, int]) -> tuple[dict[str, Change], dict[str, int]]:
    """What the tree changes in the tables, and the number of every community. An id says level and
    members, so what may have moved of a community is where it hangs. `number`: the next free number of "c"; it
    is advanced."""
    stored = rows_of(snapshot.rows("communities", columns=["id", "n", "parent", "children"]))
    old = {id: (n, parent, children) for id, n, parent, children in stored}
    numbers = {id: n for id, (n, _, _) in old.items()}
    vanished = [id for id in old if id not in tree.communities]
    removed, rows = list(vanished), []
    for id, community in tree.communities.items():
        if id not in old:
            numbers[id], number["c"] = number["c"], number["c"] + 1
        elif old[id][1:] == (community.parent, list(community.children)):
            continue
        else:
            removed.append(id)
        place = {"level": community.level, "parent": community.parent}
        lists = {"children": list(community.children), "entity_ids": list(community.members)}
        rows.append({"id": id, "n": numbers[id], **place, **lists, "size": len(community.members)})
    paths = _paths(snapshot)
    changed = [id for id, path in tree.path.items() if paths.get(id) != path]
    left = [*(paths.keys() - tree.path.keys()), *(id for id in changed if id in paths)]
    members = [pa.array(changed, pa.string()), pa.array(map(tree.path.get, changed), LIST)]
    changes = {
        "communities": Change(removed, graph_to_table("communities", rows)),
        "memberships": Change(sorted(left), pa.table(members, schema=TABLES["memberships"])),
        "reports": Change(vanished, graph_to_table("reports", [])),
    }
    return changes, numbers
