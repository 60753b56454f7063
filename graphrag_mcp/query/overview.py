"""What there is to say when nothing can be ranked: an overview, or an honest nothing.

Takes a snapshot; gives the central entities, the reports and the tree of communities, or what was
searched for in vain with the nearest names. Ranks nothing by a question.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from graphrag_mcp.packing.budget import Item, Section, compose, finish, one_line
from graphrag_mcp.query import context
from graphrag_mcp.query.local import missing
from graphrag_mcp.query.retrieval import Retrieved
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.terms import counted, stop_word
from graphrag_mcp.types import SearchResult

if TYPE_CHECKING:
    from graphrag_mcp.query.filters import Filters

REPORTS, CENTRAL = 10, 20
TREE = 60  # communities of the tree
Parts = tuple[list[Item], list[Item], list[Item], int]
_told: WeakKeyDictionary[Snapshot, Parts] = WeakKeyDictionary()
COLUMNS = "id|title|occurrence weight|content|rank"


def overview(snapshot: Snapshot, budget: int, note: str) -> SearchResult:
    """What the corpus is about: its most connected entities, its highest ranked reports, the tree
    of communities.
    """
    known = _told.get(snapshot) if type(snapshot) is Snapshot else None  # filters leave reports out
    central, tree, items, reports = parts = known or _parts(snapshot)
    if type(snapshot) is Snapshot:
        _told[snapshot] = parts
    counters = snapshot.manifest.counters
    held = {
        name: counters.get(name, 0)
        for name in ("documents", "passages", "entities", "relationships")
    }
    coverage = {**held, "reports": reports}
    result = SearchResult(mode="overview", corpus=snapshot.manifest.corpus, coverage=coverage)
    result.hint = " ".join(
        filter(None, [note, "The question was empty; this is an overview. Ask with query=..."])
    )
    sections = [
        Section("Entities", central, 0.3),
        Section("Communities", tree, 0.2),
        Section("Reports", items, 0.5, header=COLUMNS),
    ]
    said = ", ".join(counted(value, name) for name, value in held.items())
    intro = f"Corpus {result.corpus}: {said}, {counted(reports, 'communities')}."
    result = compose(result, sections, budget, lambda _: "", intro=intro, first="Reports")
    result.communities = [item.id for item in items if f"\n{item.id}|" in result.text]
    return finish(result, budget)


def _parts(snapshot: Snapshot) -> Parts:
    """Central entities, the tree, the first reports, how many there are: one for a generation, so
    made once.
    """
    reports = context.every(snapshot, "reports", context.NUMBERS).to_pylist()
    reports.sort(key=lambda row: (row["level"], -row["rank"], -row["n_text_units"], row["id"]))
    most = max((row["n_text_units"] for row in reports), default=0) or 1
    found = context.rows(snapshot, "reports", [row["id"] for row in reports[:REPORTS]])
    items = context.report_items(
        snapshot, found, {row["id"]: row["n_text_units"] / most for row in reports}
    )
    central = context.entity_items(
        context.rows(snapshot, "entities", context.central(snapshot, CENTRAL)), False
    )
    return central, _tree(snapshot, reports), items, len(reports)


def _tree(snapshot: Snapshot, reports: list[dict[str, Any]]) -> list[Item]:
    """The hierarchy from the roots down, one community a line, weightiest first."""
    rows = context.every(snapshot, "communities", context.FAMILY)
    ids = rows["id"].to_pylist()
    parent, size = (
        dict(zip(ids, rows[name].to_pylist(), strict=True)) for name in ("parent", "size")
    )
    children: dict[str, list[dict[str, Any]]] = {}
    known = {row["id"] for row in reports}
    for row in sorted(reports, key=lambda row: (-row["n_text_units"], row["id"])):
        above = parent.get(row["id"], "")
        children.setdefault(above if above in known else "", []).append(row)
    items: list[Item] = []
    waiting = [(row, 0) for row in reversed(children.get("", []))]
    while waiting and len(items) < TREE:
        row, depth = waiting.pop()
        below = children.get(row["id"], [])
        inside = counted(size.get(row["id"], 0), "entities") + (
            f", {len(below)} below" if below else ""
        )
        line = f"{'  ' * depth}- [c{row['n']}] {one_line(row['title'], 80)} (level {row['level']}, {inside})"
        items.append(Item(f"c{row['n']}", line, None, "Communities"))
        waiting += [(child, depth + 1) for child in reversed(below)]
    return items


def not_found(
    snapshot: Snapshot,
    query: str,
    found: Retrieved,
    budget: int,
    note: str,
    filters: Filters | None = None,
) -> SearchResult:
    """An honest nothing: what was searched, the nearest names, another tool."""
    counters = snapshot.manifest.counters
    result = SearchResult(
        state="not_found", mode="local", corpus=snapshot.manifest.corpus, coverage={"passages": 0}
    )
    searched = " and ".join(
        counted(counters.get(kind, 0), kind) for kind in ("passages", "entities")
    )
    near: dict[str, Mapping[str, Any]] = {}
    words = (word for word in query[:200].split() if not stop_word(word.lower().strip("?!.,")))
    wanted = dict.fromkeys([*(mention.form for mention in found.names), query[:100], *words])
    for name in [name for name in wanted if len(name) > 1][:6]:
        near.update((row["id"], row) for row in context.nearest_names(snapshot, name, 3))
    result.text = (
        f"No word of this question occurs in the {searched} of corpus {snapshot.manifest.corpus}."
    )
    advice = (
        "Try a name from above with get_entity."
        if near
        else "Try global_search for what the corpus is about."
    )
    if found.passages:
        told = missing(found, query).partition(" Looked for")[0]
        result.text = (
            f"{told} Of this question only common words occur in corpus {snapshot.manifest.corpus}."
        )
        advice = "Ask without these names, or in words of the corpus, if something else is meant."
    elif filters is not None:
        from graphrag_mcp.query.filters import described, listed

        documents = counters.get("documents", 0)
        passed = documents if filters.documents is None else len(filters.documents)
        result.text = (
            f"Nothing that passes the filters ({described(filters)}) speaks of this question."
        )
        result.text += f" {passed} of {counted(documents, 'documents')} pass."
        result.text += listed(snapshot, filters)
        advice = "Ask again with fewer filters" + (
            ", or read one with get_source." if passed else "."
        )
    if near:
        result.text += f"\nNearest names: {context.named_list(list(near.values())[:5])}."
    result.hint = " ".join(filter(None, [note, advice]))
    return finish(result, budget)
