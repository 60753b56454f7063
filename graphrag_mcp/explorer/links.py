"""Links between documents: of one document, and of all as a graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypedDict

from graphrag_mcp.explorer.citing import Paper, Statement, left_out, paper, whole
from graphrag_mcp.explorer.topics import TITLE
from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.query import filters, links
from graphrag_mcp.store.tables import Snapshot

LISTED = 200
DRAWN = 400  # documents of the graph
NAMED = 6  # documents that link to a missing page

# Two of the keys are words of Python.
Ends = TypedDict("Ends", {"from": Paper, "to": Paper | None})


class Link(Ends, Statement):
    """A link: `written` is what it says, `part` the heading that it leads to, `text` its line."""

    kind: str
    written: str
    part: str
    line: int


Linked = TypedDict(
    "Linked", {"in": list[Link], "out": list[Link], "missing": list[Link], "tags": list[str], "more": int}
)


class Node(Paper):
    """A document of the graph; `degree` counts the other documents that link to it."""

    degree: int


class Missing(TypedDict):
    """A page that links name and that is not in the index."""

    written: str
    count: int
    documents: list[Paper]


class Tag(TypedDict):
    tag: str
    count: int


class LinkGraph(TypedDict):
    """`edges`: [n of a document, n of another, links between them]."""

    nodes: list[Node]
    edges: list[list[int]]
    missing: list[Missing]
    tags: list[Tag]
    more: dict[str, int]


def links_of(snapshot: Snapshot, id: str) -> Linked:
    """The links in and out of a document (by its content id) with the lines that hold them, those that
    lead to nothing, and its tags."""
    found = links.links(snapshot)
    number = found.pages.number[id]
    out, into = found.out(number), found.into(number)
    tags = [one_line(tag, TITLE) for tag in found.tags_of(number)]
    return {
        "in": _listed(snapshot, into),
        "out": _listed(snapshot, [link for link in out if link.target >= 0]),
        "missing": _listed(snapshot, [link for link in out if link.target == -1]),
        "tags": tags[:LISTED],
        "more": left_out(into, LISTED) + left_out(out, LISTED),
    }


def _listed(snapshot: Snapshot, listed: Sequence[links.Link]) -> list[Link]:
    facts, ids = filters.documents(snapshot), links.pages(snapshot).ids
    return [
        {
            "from": paper(facts[ids[link.source]]),
            "to": paper(facts[ids[link.target]]) if link.target >= 0 else None,
            "kind": link.kind,
            "written": one_line(link.written, TITLE),
            "part": one_line(link.part, TITLE),
            "line": link.line,
            "text": text,
            "cites": [whole(cited)] if cited else [],
        }
        for link, text, cited in links.quoted(snapshot, listed[:LISTED])
    ]


def link_graph(snapshot: Snapshot) -> LinkGraph:
    """Documents by their links, the most linked first, with the pages that links miss and all tags."""
    found, facts = links.links(snapshot), filters.documents(snapshot)
    ids, degrees = found.pages.ids, found.degrees()
    counts = Counter(
        (link.source, link.target) for link in found.links if link.target >= 0 and link.source != link.target
    )
    linked = {end for ends in counts for end in ends}
    ranked = sorted(linked, key=lambda number: (-degrees[number], number))
    nodes: dict[int, Node] = {
        number: {**paper(facts[ids[number]]), "degree": degrees[number]} for number in ranked[:DRAWN]
    }
    missing: list[Missing] = []
    pages = found.missing_pages()
    for target, mentions in pages[:LISTED]:
        sources = list(dict.fromkeys(link.source for link in mentions))[:NAMED]
        documents = [paper(facts[ids[source]]) for source in sources]
        written = one_line(target, TITLE)
        missing.append({"written": written, "count": len(mentions), "documents": documents})
    return {
        "nodes": list(nodes.values()),
        "edges": [
            [nodes[source]["n"], nodes[target]["n"], count]
            for (source, target), count in counts.items()
            if source in nodes and target in nodes
        ],
        "missing": missing,
        "tags": [{"tag": one_line(tag, TITLE), "count": count} for tag, count in found.all_tags().most_common(LISTED)],
        "more": {"nodes": left_out(ranked, DRAWN), "missing": left_out(pages, LISTED)},
    }
