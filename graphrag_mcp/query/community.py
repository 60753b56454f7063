"""One community with its report and documents (get_community_report)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from graphrag_mcp.errors import NotFound
from graphrag_mcp.packing import budget as packing
from graphrag_mcp.packing import references
from graphrag_mcp.packing.budget import HIGHEST, SMALL, one_line
from graphrag_mcp.packing.page import Page, finish, page_of
from graphrag_mcp.query import context, hits, topics
from graphrag_mcp.query.ids import id_range, was_given
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.terms import counted
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.types import ReportResult

Row = dict[str, Any]

NEXT = 60  # tokens that the next call takes


def get_community_report(snapshot: Snapshot, community_id: str, *, max_tokens: int = 4_000) -> ReportResult:
    budget, note = packing.clamp_budget(max_tokens, 4_000)
    row = _row(snapshot, str(community_id).strip().strip("[]` "))
    family = snapshot.served("communities", [row["id"]], ["parent", "children", "size"])
    parent, children = (family[0]["parent"], family[0]["children"]) if family else ("", [])
    ids = [*filter(None, [parent]), *children]
    kin = snapshot.by_key("reports", ids, "id", ["id", "n", "title"]).to_pylist()
    aliases = {report["id"]: f"c{report['n']}" for report in kin}
    members = snapshot.served("entities", row["entity_ids"], ["id", "n", "title", "degree"])
    members.sort(key=lambda member: (-member["degree"], member["id"]))
    result = ReportResult(
        id=f"c{row['n']}",
        title=row["title"],
        level=row["level"],
        rating=row["rank"],
        method=row["method"],
        parent=aliases.get(parent, ""),
        children=[aliases[id] for id in children if id in aliases][:40],
        members=[f"e{member['n']} {one_line(member['title'], 60)}" for member in members[:20]],
        stale="communities" in snapshot.manifest.stale,
        hint=note,
    )
    above = next((report["title"] for report in kin if report["id"] == parent), "")
    page = page_of(result, budget - (NEXT if budget >= SMALL else 0))
    missing = _fill(snapshot, page, row, result, above)
    result.truncated = missing > 0
    result.text, result.citations = page.text().rstrip(), list(page.citations.values())
    if result.truncated and SMALL <= budget < HIGHEST:  # with less, words count more
        larger = min(max(2 * budget, budget + missing), HIGHEST)
        result.next_call = f'get_community_report(community_id="{result.id}", max_tokens={larger})'
    return finish(result, budget)


def _row(snapshot: Snapshot, asked: str) -> Row:
    """The report of a community by its number or content id."""
    match = re.fullmatch(r"c?(\d{1,12})", asked, re.IGNORECASE)
    found = context.numbered(snapshot, "reports", [int(match[1])]) if match else []
    if not found and re.fullmatch(r"[0-9a-f]{32}", asked):
        found = snapshot.served("reports", [asked])
    if not found:
        known = f"{id_range(snapshot, 'c')}; global_search finds them"
        removed = " any more" if match and was_given(snapshot, f"c{match[1]}") else ""
        raise NotFound(f"there is no community {asked[:60]!r}{removed}", known)
    return found[0]


def _fill(snapshot: Snapshot, page: Page, row: Row, result: ReportResult, above: str) -> int:
    """Add the head, the report in whole paragraphs and the documents of the topic to the page: how many
    tokens of the report were left out."""
    topic, share = topics.topic_of(snapshot, row["id"])
    who = "chosen sentences" if row["method"] == "extractive" else f"written by {row['method']}"
    lines = [f"# {one_line(row['title'], 200)} ({result.id})", f"{share}; level {row['level']}, {who}."]
    if names := ", ".join(topic.names or result.members[:5]):
        lines.append(f"Names: {names}")
    if above:
        lines.append(f"Part of: {one_line(above, 80)} [{result.parent}]")
    if below := topics.inside(snapshot, topic):
        lines.append(f"Inside: {below}")
    page.add("\n".join([*lines, ""]))
    text = re.sub(r"\A# .*\n+", "", row["full_content"])
    named, cited = context.resolve_references(snapshot, [text])
    if result.stale:
        context.note(result, context.LATE)
        removed = set(references.referenced_ids(text).get("Sources", ())) - named["Sources"].keys()
        if removed:
            texts = f"{counted(len(removed), 'texts')} that this report cites"
            context.note(result, f"{texts} left the index since it was written.")
    documents = topics.summarised(snapshot, topic, row) or _documents(snapshot, topic.central)
    blocks = re.split(r"\n{2,}", references.short_references(text, named).strip())
    left, full = 0, False
    for block in blocks:
        places = [cited[alias] for alias in re.findall(r"\bt\d+\b", block) if alias in cited][:5]
        full = full or not page.add(block, places)
        left += count_tokens(block) if full else 0
    if documents:
        page.add("\nDocuments:")
    taken = 0
    while taken < len(documents) and page.add(documents[taken]):
        taken += 1
    if taken < len(documents):
        page.room += NEXT
        more = f'list_documents(filters=["topic={result.id}"])'
        page.add(f"- {counted(len(documents) - taken, 'more documents')}: {more}")
    return left


def _documents(snapshot: Snapshot, passages: Sequence[str]) -> list[str]:
    """`- [t12] Title (How it begins…)` for the document of each passage."""
    read = hits.read(snapshot, [(id, 0.0) for id in passages], openings=True)
    return [" ".join(filter(None, (f"- [{hit.id}]", hit.called(), hit.opening("")))) for hit in read]
