"""Why an item is there: the channels that scored it, its rank in them, and the path by which a link reached it.

Takes what was retrieved; gives one short line per item, for `explain`. Changes no ranking.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphrag_mcp.pack import Item, passage_alias
from graphrag_mcp.query.fused import Retrieved, Scored
from graphrag_mcp.store.tables import Snapshot

SOURCES = 20  # high passages from which a path may start
ROW = ["id", "n", "part", "parts", "title_id", "document_id", "entity_ids"]
WORDS = {
    "text": "words", "vector": "meaning", "named": "its title is named in the question",
    "holds": "holds a name of the question", "link": "its title is named in", "shared": "shares a rare name with",
    "beside": "next to a high passage", "subword": "parts of words", "included": "holds an included entity",
    "defines": "defines a word of the question", "lead": "clearly best by itself",
    "entities": "entities", "relationships": "pairs of them", "rerank": "reranker",
}  # fmt: skip


def explained(item: Item, said: str) -> Item:
    """The item with its reason under the text, and in its citation."""
    gap = "\n" if "\n" in item.text else " "
    cited = item.citation.model_copy(update={"why": said}) if item.citation else None
    return replace(item, text=f"{item.text}{gap}(why: {said})", citation=cited, tokens=0, span=(0, 0))


def of_passages(snapshot: Snapshot, found: Retrieved, ids: Sequence[str]) -> dict[str, str]:
    """For each passage: its rank, the parts of its score, and for a link the passage that it comes from."""
    place = {one.id: number for number, one in enumerate(found.passages, 1)}
    by_words = sorted(found.passages, key=lambda one: (-one.why.get("text", 0.0), one.id))
    rank = {one.id: number for number, one in enumerate(by_words, 1)}
    high = [one.id for one in found.passages[:SOURCES]]
    rows = {row["id"]: row for row in snapshot.by_key("passages", [*high, *ids], "id", ROW, hold=True).to_pylist()}
    scored = {one.id: one for one in found.passages}
    said = {}
    for id in ids:
        parts = _parts(scored[id], rank[id], rows, high)
        said[id] = f"rank {place[id]}: " + (", ".join(parts) or "no channel of its own")
    return said


def _parts(one: Scored, rank: int, rows: Mapping[str, Mapping[str, Any]], high: Sequence[str]) -> list[str]:
    listed = []
    for name, value in sorted(one.why.items(), key=lambda pair: (-pair[1], pair[0])):
        if round(value, 2) <= 0:
            continue
        text = f"{WORDS.get(name, name)} {value:.2f}"
        if name == "text":
            text += f" (BM25 {one.raw:.1f}, rank {rank})"
        elif name in ("link", "shared"):
            source = _source(rows.get(one.id), rows, high, name)
            text = f"{WORDS[name]} {source or 'a high passage'} {value:.2f}"
        listed.append(text)
    return listed


def _source(
    row: Mapping[str, Any] | None, rows: Mapping[str, Mapping[str, Any]], high: Sequence[str], kind: str
) -> str:
    """The best passage of another document that names this one's title, or shares an entity with it."""
    if row is None:
        return ""
    own = {row["title_id"]} if kind == "link" else set(row["entity_ids"])
    for id in high:
        other = rows.get(id)
        if other and other["document_id"] != row["document_id"] and not own.isdisjoint(other["entity_ids"]):
            return passage_alias(other)
    return ""


def of_entities(scored: Sequence[Scored], first: Sequence[str]) -> dict[str, str]:
    """For each entity: rank, and how far its name, its words and the best passages speak for it."""
    names = {"name": "named in the question", "words": "words of its title", "passages": "named in the best passages"}
    said = {id: "asked for by a filter" for id in first}
    for place, one in enumerate(scored, 1):
        parts = [f"{names.get(name, name)} {value:.2f}" for name, value in one.why.items() if round(value, 2) > 0]
        said.setdefault(one.id, f"rank {place}: " + ", ".join(parts))
    return said
