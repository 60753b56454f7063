"""A DRIFT session as node-link JSON, Mermaid chart, Markdown tree or networkx graph, whole or
shortened to a budget.

    graph = networkx.node_link_graph(json.loads(export(session, "json")), edges="edges")"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from graphrag_mcp.errors import BadInput
from graphrag_mcp.packing.budget import clamp_budget, finish, one_line
from graphrag_mcp.packing.wire import size
from graphrag_mcp.query import drift
from graphrag_mcp.query.drift import DEFAULT_TOKENS, Drift
from graphrag_mcp.query.drift_state import Walk
from graphrag_mcp.text.terms import counted
from graphrag_mcp.types import DriftResult

FORMS = ("tree", "json", "mermaid")
ANSWER = 300  # characters of an answer in a tree
# What is tried until it fits: characters of an answer (-1: as recorded, with history and context),
# nodes.
SHORTER = ((-1, 0), (1_000, 0), (300, 120), (120, 60), (0, 30), (0, 12), (0, 4))


def export(session: Drift, form: str = "tree") -> str:
    """The whole session in one form. BadInput for another form, NotFound when there is no session."""
    walk = session.walk()
    return _text(session, walk, _gone(session, walk), checked(form))


def to_graph(session: Drift) -> Any:
    """The session as a networkx `MultiDiGraph`: nodes {parent, query, kind, status, score, answer,
    gone, ...}."""
    walk = session.walk()
    return _shortened(walk, _gone(session, walk), -1, 0).graph


def view(session: Drift, form: str, *, max_tokens: int = DEFAULT_TOKENS) -> DriftResult:
    """The session in one form within a budget: answers are shortened first, then the least
    promising nodes left out."""
    form = checked(form)
    budget, note = clamp_budget(max_tokens, DEFAULT_TOKENS)
    walk = session.walk()
    gone = _gone(session, walk)
    result = session.state(walk, DriftResult(session_id=session.id), shown=0)
    result.done = session.over(walk)
    notes = [note, session.moved(walk)]
    if gone:
        listed = ", ".join(sorted({alias for ids in gone.values() for alias in ids})[:10])
        notes.append(f"Not in the index any more: {listed}.")
    for longest, most in SHORTER:
        left_out = max(0, len(walk.graph) - most) if most else 0
        result.truncated = longest >= 0 or bool(left_out)
        short = [f"{counted(left_out, 'nodes')} left out."] if left_out else []
        short += ["Answers are shortened."] if longest >= 0 and form != "mermaid" else []
        result.hint = " ".join(filter(None, [*notes, *short]))
        result.text = _text(session, walk, gone, form, longest, most, result.hint)
        result.tokens = budget
        if size(result)[0] <= budget:
            return finish(result, budget)
    result.text = f"The session does not fit into {budget} tokens as {form}."
    result.hint = " ".join(filter(None, [*notes, "Give more max_tokens."]))
    return finish(result, budget)


def checked(form: str) -> str:
    named = form.strip().casefold()
    named = {"markdown": "tree", "md": "tree", "node-link": "json", "graph": "json"}.get(
        named, named
    )
    if named not in FORMS:
        raise BadInput(f"a session has no form {form[:40]!r}", f"Use one of {', '.join(FORMS)}")
    return named


def _text(
    session: Drift,
    walk: Walk,
    gone: Mapping[str, list[str]],
    form: str,
    longest: int = -1,
    most: int = 0,
    hint: str = "",
) -> str:
    """One form of what is shown. The hint stands inside of JSON and charts: behind them it would
    break them."""
    shown = _shortened(walk, gone, longest, most)
    if form == "mermaid":
        return shown.to_mermaid() + (f"\n  %% {hint}" if hint else "")
    if form == "json":
        shown.header = {
            **walk.header,
            "id": session.id,
            "generation_now": session.snapshot.manifest.generation,
        }
        shown.header |= {"hint": hint} if hint else {}
        return shown.to_json()
    for id, node in shown.graph.nodes(data=True):
        said = one_line(node["answer"], ANSWER if longest < 0 else max(longest, 40))
        node["answer"] = drift.marked(said, set(gone.get(id, ())))
    return f"# {one_line(walk.header['query'], 300)}\n{shown.to_markdown()}"


def _gone(session: Drift, walk: Walk) -> dict[str, list[str]]:
    """By node: the ids that its answer cites, or that it was shown, and that the index no longer
    has."""
    named = {
        id: [*drift.cited_aliases(node["answer"]), *node["context"]]
        for id, node in walk.graph.nodes(data=True)
    }
    every = sorted({alias for ids in named.values() for alias in ids})
    _, gone = drift.references(session.snapshot, [f"[{alias}]" for alias in every])
    lost = {
        id: [alias for alias in dict.fromkeys(ids) if alias in gone] for id, ids in named.items()
    }
    return {id: ids for id, ids in lost.items() if ids}


def _shortened(walk: Walk, gone: Mapping[str, list[str]], longest: int, most: int) -> Walk:
    """The walk with `gone` at its nodes; answers cut and bookkeeping left out, only the `most`
    first nodes (0: all)."""
    shown = copy.copy(walk)
    shown.graph = walk.graph.copy()
    if most:
        shown.graph.remove_nodes_from([id for id in walk.graph if id not in _first(walk, most)])
    for id, node in shown.graph.nodes(data=True):
        node["gone"] = gone.get(id, [])
        if longest >= 0:
            node["answer"] = one_line(node["answer"], max(longest, 1)) if longest else ""
            node["query"] = one_line(node["query"], 200 if longest else 80)
            for name in ("history", "context", "entities", "calls", "tokens", "after"):
                node.pop(name, None)
    return shown


def _first(walk: Walk, most: int) -> set[str]:
    """The root, then whatever follows from what is kept: the best answered first, then what is most
    promising."""
    kept: dict[str, None] = {walk.root: None}
    while len(kept) < most:
        rim = {target for id in kept for target in walk.graph.successors(id) if target not in kept}
        if not rim:
            break
        kept[min(rim, key=lambda id: (_place(walk, id), id))] = None
    return set(kept)


def _place(walk: Walk, id: str) -> tuple[int, float]:
    node = walk.graph.nodes[id]
    state = ("answered", "open", "frontier", "pruned").index(node["status"])
    return state, -(node["score"] or 0.0) if state == 0 else -round(walk.worth(id), 9)
