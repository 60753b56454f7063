"""A DRIFT session as data: a tree of questions, JSON that networkx opens, or a chart.

graph = networkx.node_link_graph(json.loads(export(session, "json")), edges="edges")"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from typing import TYPE_CHECKING, Any

from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.packing import sending
from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.packing.page import finish
from graphrag_mcp.query.drift import Drift, best_answers, marked, references
from graphrag_mcp.query.drift_state import Walk, cited_aliases
from graphrag_mcp.query.notes import joined
from graphrag_mcp.text.terms import counted
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
    form, walk = checked(form), session.walk()
    return _text(session, walk, _graph(session, walk), form)


def view(session: Drift, form: str) -> DriftResult:
    """The session in this form, within its budget: answers are shortened first, then the last
    questions are left out."""
    form, walk, budget = checked(form), session.walk(), session.budget
    graph = _graph(session, walk)
    result = session.state(walk, DriftResult(session_id=session.id), shown=0)
    gone = sorted({id for _, node in graph.nodes(data=True) for id in node["gone"]})
    lost = f"Not in the index any more: {', '.join(gone[:10])}." if gone else ""
    notes = joined(session.remarks(walk), lost)

    def fits(shown: nx.MultiDiGraph[str], short: str = "") -> bool:
        left_out = len(walk.graph) - len(shown)
        more = f"{counted(left_out, 'nodes')} left out." if left_out else ""
        result.tokens, result.truncated = budget, bool(short or more)
        result.hint = joined(notes, short, more)
        result.text = _text(session, walk, shown, form, result.hint)
        return sending.fits(result, budget)

    if fits(graph):
        return finish(result, budget)
    short = ""
    if form == "json":  # a tree has short answers, a chart none
        graph, short = _shortened(graph), "Answers are shortened."
    order = [*graph]  # a question stands behind the one that it follows

    def first(count: int) -> nx.MultiDiGraph[str]:
        part = graph.copy()
        part.remove_nodes_from(order[count:])
        return part

    counts = range(1, len(order) + 1)
    count = bisect_left(counts, True, key=lambda count: not fits(first(count), short))
    if not count or not fits(first(count), short):
        result.text = f"The session does not fit into {budget} tokens as {form}."
        result.hint = joined(notes, "Give more max_tokens.")
    return finish(result, budget)


def note_text(session: Drift, answer: str) -> str:
    """The text that a note keeps of a session: the answer (if it is empty, the three best answers)
    and the tree of questions. NotFound if no node has an answer."""
    walk = session.walk()
    best = [found.node["answer"] for found in best_answers(walk)]
    if not best:
        what = f"no node of session {session.id} has an answer yet"
        raise NotFound(what, "Answer one with drift_step before it is kept as a note")
    body = answer.strip() or "\n\n".join(best[:KEPT])
    text = f"{body}\n\n## Questions\n\n{tree(walk.graph, walk.root)}"
    return marked(text, references(session.snapshot, [text])[1])


def checked(form: str) -> str:
    """The form as it is named in FORMS; BadInput for another one."""
    named = form.strip().casefold()
    if named not in FORMS:
        raise BadInput(f"a session has no form {form[:40]!r}", f"Use one of {', '.join(FORMS)}")
    return named


def _text(session: Drift, walk: Walk, graph: nx.MultiDiGraph[str], form: str, hint: str = "") -> str:
    """One form of the graph, the hint inside: behind JSON and charts it would break them."""
    if form == "mermaid":
        return chart(graph) + (f"\n  %% {hint}" if hint else "")
    if form == "tree":
        return f"# {one_line(walk.header['query'], 300)}\n{tree(graph, walk.root)}"
    from networkx.readwrite import json_graph

    header = {**walk.header, "id": session.id}
    header["generation_now"] = session.snapshot.manifest.generation
    header |= {"hint": hint} if hint else {}
    data = json_graph.node_link_data(graph, edges="edges")
    return json.dumps({**data, "session": header}, ensure_ascii=False, sort_keys=True)


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


def _shortened(graph: nx.MultiDiGraph[str]) -> nx.MultiDiGraph[str]:
    """The graph with short answers and without what only a walk needs."""
    shown = graph.copy()
    for _, node in shown.nodes(data=True):
        node["answer"] = one_line(node["answer"], SHORT)
        for name in ("history", "context", "entities", "calls", "tokens", "after"):
            del node[name]
    return shown


def chart(graph: nx.MultiDiGraph[str]) -> str:
    """A flow chart (Mermaid): one box per question with its status and score."""
    lines = ["flowchart TD"]
    for id, node in graph.nodes(data=True):
        label = re.sub(r'["\[\]{}<>|`#;\\\n\r]', " ", node["query"])[:LABEL]
        score = "" if node["score"] is None else f" {node['score']:g}"
        lines.append(f'  n{id}["{label}<br/>{node["status"]}{score}"]')
    lines += [f"  n{source} --> n{target}" for source, target in graph.edges()]
    return "\n".join(lines)


def tree(graph: nx.MultiDiGraph[str], root: str) -> str:
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
    return "\n".join(lines)
