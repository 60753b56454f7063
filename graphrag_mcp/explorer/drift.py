"""Views of DRIFT: the sessions on a corpus, and the questions of one as a tree."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import TypedDict

from graphrag_mcp.errors import NotFound
from graphrag_mcp.explorer.citing import Cite, whole
from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.query.drift import marked, references
from graphrag_mcp.query.drift_state import Walk, cited_aliases, listed
from graphrag_mcp.store import sessions
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.types import Citation

SESSIONS = 100  # in the list
ANSWER, CITES = 4_000, 12  # characters of an answer, citations of a question


class Listed(TypedDict):
    """A session in the list, with how many of its questions have each status."""

    id: str
    query: str
    answered: int
    open: int
    frontier: int
    pruned: int
    dropped: int


class Node(TypedDict):
    """A question: `cites` of its answer, `context` that was read for it."""

    id: str
    parent: str
    query: str
    status: str
    score: float | None
    answer: str
    cites: list[Cite]
    context: list[Cite]


class Session(TypedDict):
    """`began`: the generation of the first question."""

    id: str
    query: str
    began: int
    nodes: list[Node]


def listed_sessions(snapshot: Snapshot, folder: Path) -> dict[str, list[Listed]]:
    """The sessions on this corpus, the one touched last first."""
    found: list[Listed] = [
        {
            "id": id,
            "query": one_line(walk.header["query"], 300),
            "answered": len(walk.with_status("answered")),
            "open": len(walk.with_status("open")),
            "frontier": len(walk.with_status("frontier")),
            "pruned": len(walk.with_status("pruned")),
            "dropped": len(walk.with_status("dropped")),
        }
        for id, walk in islice(listed(folder), SESSIONS)
        if walk.header["corpus"] == snapshot.manifest.corpus
    ]
    return {"sessions": found}


def session(snapshot: Snapshot, path: Path) -> Session:
    """The session in a file. Raises NotFound where it is of another corpus."""
    walk = Walk(sessions.read(path))
    if walk.header.get("corpus") != snapshot.manifest.corpus:
        raise NotFound("there is no such DRIFT session on this corpus", "Choose another one")
    nodes: list[Node] = []
    for name, node in walk.graph.nodes(data=True):
        read = " ".join(f"[{alias}]" for alias in node["context"][:CITES])
        known, removed = references(snapshot, [node["answer"], read])
        nodes.append(
            {
                "id": name,
                "parent": node["parent"],
                "query": node["query"],
                "status": node["status"],
                "score": node["score"],
                "answer": marked(node["answer"], removed)[:ANSWER],
                "cites": _cites(cited_aliases(node["answer"]), known),
                "context": _cites(node["context"], known),
            }
        )
    return {"id": path.stem, "query": walk.header["query"], "began": walk.header.get("generation", 0), "nodes": nodes}


def _cites(aliases: Iterable[str], known: dict[str, Citation]) -> list[Cite]:
    return [whole(known[alias]) for alias in aliases if alias in known][:CITES]
