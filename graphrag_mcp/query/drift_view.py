"""A DRIFT session as data: a tree of questions, JSON that networkx opens, or a chart.

graph = networkx.node_link_graph(json.loads(export(session, "json")), edges="edges")"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.packing.budget import Item, Section, one_line
from graphrag_mcp.packing.page import compose
from graphrag_mcp.query.drift import Drift, best_answers, marked, references
from graphrag_mcp.query.drift_state import Walk, cited_aliases
from graphrag_mcp.query.notes import joined
from graphrag_mcp.types import DriftResult

if TYPE_CHECKING:
    import networkx as nx

FORMS = ("tree", "json", "mermaid")
SHORT = 300  # characters of an answer in a tree, and of one that is shortened
LABEL = 80  # characters of a question in a chart
KEPT = 3  # answers of a note without one of its own


def export(session: Drift, form: str = "tree") -> str:
    """The whole session as "tree", "json" or "mermaid". BadInput for another form, NotFound if
    there is no session."""
    form, walk = form.strip().casefold(), session.walk()
    graph = _graph(session, walk)
    if form == "mermaid":
        return chart(graph)
    if form == "tree":
        return "\n".join([f"# {one_line(walk.header['query'], 300)}", *tree(graph, walk.root)])
    if form == "json":
        return json.dumps(record(session, walk, graph), ensure_ascii=False, sort_keys=True)
    raise BadInput(f"a session has no form {form[:40]!r}", f"Use one of {', '.join(FORMS)}")


def view(session: Drift) -> DriftResult:
    """The tree of questions within the session's budget; the last ones are left out."""
    walk = session.walk()
    graph = _graph(session, walk)
    result = session.state(walk, DriftResult(session_id=session.id), shown=0)
    gone = sorted({id for _, node in graph.nodes(data=True) for id in node["gone"]})
    lost = f"Not in the index any more: {', '.join(gone[:10])}." if gone else ""
    result.hint = joined(session.remarks(walk), lost)
    items = [Item(str(number), line) for number, line in enumerate(tree(graph, walk.root))]
    intro = f"# {one_line(walk.header['query'], 300)}"
    return compose(result, [Section("Questions", items, 1.0)], session.budget, intro=intro)


def shortened(session: Drift, characters: int) -> dict[str, Any]:
    """The session as data in at most so many characters of JSON: short answers, and of the questions, each of which
    stands behind the one that it follows, as many as fit."""
    walk = session.walk()
    graph = _graph(session, walk)
    for _, node in graph.nodes(data=True):
        node["answer"] = one_line(node["answer"], SHORT)
        for name in ("history", "context", "after"):
            del node[name]
    while len(json.dumps(found := record(session, walk, graph), ensure_ascii=False)) > characters and len(graph) > 1:
        graph.remove_nodes_from([*graph][-math.ceil(len(graph) / 10) :])
    return found


def note_text(session: Drift, answer: str) -> str:
    """The text that a note keeps of a session: the answer (if it is empty, the three best answers)
    and the tree of questions. NotFound if no node has an answer."""
    walk = session.walk()
    best = [found.node["answer"] for found in best_answers(walk)]
    if not best:
        what = f"no node of session {session.id} has an answer yet"
        raise NotFound(what, "Answer one with drift_step before it is kept as a note")
    body = answer.strip() or "\n\n".join(best[:KEPT])
    text = f"{body}\n\n## Questions\n\n{chr(10).join(tree(walk.graph, walk.root))}"
    return marked(text, references(session.snapshot, [text])[1])


def record(session: Drift, walk: Walk, graph: nx.MultiDiGraph[str]) -> dict[str, Any]:
    """A graph of questions in the form of node-link, with the facts of the session."""
    from networkx.readwrite import json_graph

    header = {**walk.header, "id": session.id, "generation_now": session.snapshot.manifest.generation}
    return {**json_graph.node_link_data(graph, edges="edges"), "session": header}


def _graph(session: Drift, walk: Walk) -> nx.MultiDiGraph[str]:
    """The graph with `gone` at each node: the ids that its answer cites, or that it was shown, and that the
    index no longer has."""
    graph = walk.graph.copy()
    for _, node in graph.nodes(data=True):
        node["gone"] = list(dict.fromkeys([*cited_aliases(node["answer"]), *node["context"]]))
    every = {alias for _, node in graph.nodes(data=True) for alias in node["gone"]}
    _, removed = references(session.snapshot, [f"[{alias}]" for alias in sorted(every)])
    for _, node in graph.nodes(data=True):
        node["gone"] = [alias for alias in node["gone"] if alias in removed]
    return graph


def chart(graph: nx.MultiDiGraph[str]) -> str:
    """A flow chart (Mermaid): one box per question with its status and score."""
    lines = ["flowchart TD"]
    for id, node in graph.nodes(data=True):
        label = re.sub(r'["\[\]{}<>|`#;\\\n\r]', " ", node["query"])[:LABEL]
        score = "" if node["score"] is None else f" {node['score']:g}"
        lines.append(f'  n{id}["{label}<br/>{node["status"]}{score}"]')
    lines += [f"  n{source} --> n{target}" for source, target in graph.edges()]
    return "\n".join(lines)


def tree(graph: nx.MultiDiGraph[str], root: str) -> list[str]:
    """The questions below each other, best answered first; a question met again is only named."""
    lines: list[str] = []
    seen: set[str] = set()

    def place(id: str) -> tuple[bool, float, str]:
        score = graph.nodes[id]["score"]
        return score is None, -(score or 0.0), id

    def add(id: str, depth: int) -> None:
        node: dict[str, Any] = graph.nodes[id]
        indent = "  " * depth
        mark = "" if node["score"] is None else f", score {node['score']:g}"
        again = " (see above)" if id in seen else ""
        lines.append(f"{indent}- `{id}` {node['query']} [{node['status']}{mark}]{again}")
        if again:
            return
        seen.add(id)
        if node["answer"]:
            answer = one_line(node["answer"], SHORT)
            lines.append(f"{indent}  {marked(answer, node.get('gone', ()))}")
        for target in sorted(set(graph.successors(id)), key=place):
            add(target, depth + 1)

    add(root, 0)
    return lines
