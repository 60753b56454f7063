"""The answers of a DRIFT walk: ranked, merged, their references checked against the index as it is now.

Takes a snapshot and a `Walk`; gives items for the final text with the references of every answer resolved, and the
ids among them that are gone. Opens no node and writes no event.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from graphrag_mcp.pack import Item, citation, one_line
from graphrag_mcp.query import context
from graphrag_mcp.query.walk import Walk, near, words
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.types import Citation

TABLES = {"t": "passages", "d": "documents", "e": "entities", "r": "relationships", "c": "reports"}
_ALIAS = re.compile(r"(?<![A-Za-z0-9.])([tderc])(\d{1,9})(?:\.(\d{1,4}))?(?![A-Za-z0-9])")
_BRACKETS = re.compile(r"[\[(（【][^\[\]()（）【】\n]{1,400}[\])）】]")


def cited_aliases(answer: str) -> list[str]:
    """The short ids inside brackets of an answer, each once, in order."""
    return list(dict.fromkeys(match.group() for part in _BRACKETS.findall(answer) for match in _ALIAS.finditer(part)))


# ---- answers -------------------------------------------------------------------------------------


def ranked_items(snapshot: Snapshot, walk: Walk) -> tuple[list[Item], set[str]]:
    """The answers as items, best first, and the ids named in them that the index does not have."""
    best = ranked(walk)
    known, gone = references(snapshot, [node["answer"] for node, _ in best])
    return [_item(node, others, known, gone) for node, others in best], gone


def ranked(walk: Walk) -> list[tuple[Mapping[str, Any], list[str]]]:
    """Answered nodes best first, each with the questions whose answers say nearly the same."""
    nodes = [walk.graph.nodes[id] | {"id": id} for id in walk.with_status("answered")]
    nodes.sort(key=lambda one: (one["score"] is None, -(one["score"] or 0.0), one["depth"], one["id"]))
    kept: list[tuple[Mapping[str, Any], list[str]]] = []
    said: list[frozenset[str]] = []
    for node in nodes:
        bag = words(node["answer"])
        for at, (other, queries) in enumerate(kept):
            if other["answer"] == node["answer"] or near(bag, said[at]):
                queries.append(node["query"])
                break
        else:
            kept.append((node, []))
            said.append(bag)
    return kept


def references(snapshot: Snapshot, answers: Sequence[str]) -> tuple[dict[str, Citation], set[str]]:
    """Citations of the sources that the answers name, and the ids among all they name that do not exist."""
    named = list(dict.fromkeys(alias for answer in answers for alias in cited_aliases(answer)))
    known: dict[str, Citation] = {}
    gone: set[str] = set()
    for letter, table in TABLES.items():
        aliases = [alias for alias in named if alias[0] == letter]
        numbers = sorted({int(alias[1:].partition(".")[0]) for alias in aliases})
        if letter == "t":
            rows = context.numbered(snapshot, table, numbers)
            for row in sorted(rows, key=lambda row: (row["n"], row["part"])):
                place = citation(row)
                known[place.id] = place
                known.setdefault(f"t{row['n']}", place)
                known.setdefault(f"t{row['n']}.{row['part']}", place)
            gone.update(alias for alias in aliases if alias not in known)
        elif numbers:
            there = set(snapshot.by_key(table, numbers, "n", ["n"])["n"].to_pylist())
            gone.update(alias for alias in aliases if int(alias[1:].partition(".")[0]) not in there)
    return known, gone


def marked(answer: str, gone: set[str]) -> str:
    """The answer with what it cites and the index no longer has marked as gone."""

    def mark(part: re.Match[str]) -> str:
        return _ALIAS.sub(lambda one: one.group() + (" (gone)" if one.group() in gone else ""), part.group())

    return _BRACKETS.sub(mark, answer)


def _item(node: Mapping[str, Any], others: Sequence[str], known: Mapping[str, Citation], gone: set[str]) -> Item:
    """One answer under its question, with ids that are gone marked as such."""
    score = "no score" if node["score"] is None else f"score {node['score']:g}"
    lines = [f"### {one_line(node['query'], 300)} ({score})", marked(node["answer"], gone)]
    aliases = cited_aliases(node["answer"])
    if others:
        lines.append(f"Also answers: {'; '.join(one_line(other, 200) for other in others)}")
    if not aliases and node["context"]:
        lines.append(f"It cites nothing; it was shown {', '.join(node['context'][:5])}.")
    places = {known[alias].id: known[alias] for alias in aliases if alias in known}
    return Item(node["id"], "\n".join(lines), None, "Answers", also=tuple(places.values()))
