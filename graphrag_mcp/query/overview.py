"""What there is to say when nothing can be ranked: an overview, or an honest nothing.

Takes a snapshot; gives the central entities, the reports and the tree of communities, or what was searched for in
vain with the nearest names. Ranks nothing by a question.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from graphrag_mcp.pack import Item, Section, compose, finish, one_line
from graphrag_mcp.query import context
from graphrag_mcp.query.fused import Retrieved
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.types import SearchResult

if TYPE_CHECKING:
    from graphrag_mcp.query.filters import Filters

REPORTS, CENTRAL = 10, 20
TREE = 60  # communities of the tree
COLUMNS = "id|title|occurrence weight|content|rank"


def overview(snapshot: Snapshot, budget: int, note: str) -> SearchResult:
    """What the corpus is about: its most connected entities, its highest ranked reports, the tree of communities."""
    entities = snapshot.rows("entities", "", ["id", "degree"]).to_pylist()
    entities.sort(key=lambda row: (-row["degree"], row["id"]))
    reports = snapshot.rows("reports", "", ["id", "n", "title", "rank", "level", "n_text_units"]).to_pylist()
    reports.sort(key=lambda row: (row["level"], -row["rank"], -row["n_text_units"], row["id"]))
    most = max((row["n_text_units"] for row in reports), default=0) or 1
    found = context.rows(snapshot, "reports", [row["id"] for row in reports[:REPORTS]])
    items = context.report_items(snapshot, found, {row["id"]: row["n_text_units"] / most for row in reports})
    central = context.entity_items(context.rows(snapshot, "entities", [row["id"] for row in entities[:CENTRAL]]), False)
    counters = snapshot.manifest.counters
    counted = {name: counters.get(name, 0) for name in ("documents", "passages", "entities", "relationships")}
    coverage = {**counted, "reports": len(reports)}
    result = SearchResult(mode="overview", corpus=snapshot.manifest.corpus, coverage=coverage)
    result.hint = " ".join(filter(None, [note, "The question was empty; this is an overview. Ask with query=..."]))
    sections = [
        Section("Entities", central, 0.3), Section("Communities", _tree(snapshot, reports), 0.2),
        Section("Reports", items, 0.5, header=COLUMNS),
    ]  # fmt: skip
    said = ", ".join(f"{value} {name}" for name, value in counted.items())
    intro = f"Corpus {result.corpus}: {said}, {len(reports)} communities."
    result = compose(result, sections, budget, lambda _: "", intro=intro, first="Reports")
    result.communities = [item.id for item in items if f"\n{item.id}|" in result.text]
    return finish(result, budget)


def _tree(snapshot: Snapshot, reports: list[dict[str, Any]]) -> list[Item]:
    """The hierarchy from the roots down, one community a line, weightiest first."""
    rows = snapshot.by_key("communities", [row["id"] for row in reports], "id", ["id", "parent", "size"]).to_pylist()
    parent, size = ({row["id"]: row[name] for row in rows} for name in ("parent", "size"))
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
        counted = f"{size.get(row['id'], 0)} entities" + (f", {len(below)} below" if below else "")
        line = f"{'  ' * depth}- [c{row['n']}] {one_line(row['title'], 80)} (level {row['level']}, {counted})"
        items.append(Item(f"c{row['n']}", line, None, "Communities"))
        waiting += [(child, depth + 1) for child in reversed(below)]
    return items


def not_found(
    snapshot: Snapshot, query: str, found: Retrieved, budget: int, note: str, filters: Filters | None = None
) -> SearchResult:
    """An honest nothing: what was searched, the nearest names, another tool."""
    counters = snapshot.manifest.counters
    result = SearchResult(state="not_found", mode="local", corpus=snapshot.manifest.corpus, coverage={"passages": 0})
    searched = f"{counters.get('passages', 0)} passages and {counters.get('entities', 0)} entities"
    near: dict[str, Mapping[str, Any]] = {}
    wanted = dict.fromkeys([*(mention.form for mention in found.names), query[:100], *query[:200].split()])
    for name in [name for name in wanted if len(name) > 1][:8]:
        near.update((row["id"], row) for row in context.nearest_names(snapshot, name, 3))
    result.text = f"No word of this question occurs in the {searched} of corpus {snapshot.manifest.corpus}."
    advice = "Try a name from above with get_entity." if near else "Try global_search for what the corpus is about."
    if filters is not None:
        from graphrag_mcp.query.filters import described

        documents = counters.get("documents", 0)
        passed = documents if filters.documents is None else len(filters.documents)
        result.text = f"Nothing that passes the filters ({described(filters)}) speaks of this question."
        result.text += f" {passed} of {documents} documents pass."
        advice = "Ask again with fewer filters."
    if near:
        result.text += f"\nNearest names: {context.named_list(list(near.values())[:5])}."
    result.hint = " ".join(filter(None, [note, advice]))
    return finish(result, budget)
