"""The query-state graph of a DRIFT session: built from the events of its journal, scored and shown.

A networkx `MultiDiGraph` whose nodes carry {parent, query, kind, status, score, answer, ...} and
whose edges lead from a question to its follow-ups. The same events always give the same graph."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.text.terms import normalise_name, query_terms
from graphrag_mcp.types import content_id

if TYPE_CHECKING:
    import networkx as nx


SAME = 0.8  # token overlap (Jaccard) from which two questions count as one
QUERY_CHARACTERS = 500


class Walk:
    """State of one session. `header` is the start event; `root` the id of the first node.

    `rounds` are the nodes that an automatic walk took up together, in groups that one prompt asks
    about; `usage` is what its models were asked for."""

    def __init__(self, events: Sequence[Mapping[str, Any]]) -> None:
        import networkx as nx

        self.graph: nx.MultiDiGraph = nx.MultiDiGraph()
        self.header: dict[str, Any] = {}
        self.root = ""
        self.words: dict[str, frozenset[str]] = {}
        self.rounds: list[list[list[str]]] = []
        self.usage: dict[str, Any] = {}
        folds = {
            "start": self._start,
            "step": self._step,
            "open": self._open,
            "round": self._round,
            "asked": self._asked,
        }
        for event in events:
            fold = folds.get(str(event.get("op")))
            if fold is not None and (self.header or event["op"] == "start"):
                fold(event)

    # ---- folding ---------------------------------------------------------------------------------

    def _start(self, event: Mapping[str, Any]) -> None:
        if self.header:
            return
        self.header = dict(event)
        self.root = self._node("", str(event["query"]), "primer", 0)

    def _step(self, event: Mapping[str, Any]) -> None:
        """One answer with its follow-ups and prunings. A later answer to a node replaces; the
        earlier ones are kept."""
        node = self.graph.nodes.get(event.get("node"))
        if node is not None and event.get("answered"):
            if node["status"] == "answered":
                node["history"].append({"answer": node["answer"], "score": node["score"]})
            node.update(
                answer=event["answer"],
                score=event["score"],
                status="answered",
                by=event.get("by", ""),
            )
        if node is not None:
            for query in event.get("follow_ups", ()):
                self._follow_up(event["node"], query)
        for id in event.get("prune", ()):
            pruned = self.graph.nodes.get(id)
            if pruned is not None and pruned["status"] != "answered" and id != self.root:
                pruned["status"] = "pruned"

    def _open(self, event: Mapping[str, Any]) -> None:
        node = self.graph.nodes.get(event.get("node"))
        if node is None:
            return
        node.update(
            context=list(event.get("context", ())), entities=list(event.get("entities", ()))
        )
        node["calls"] += 1
        node["tokens"] += int(event.get("tokens", 0))
        if event.get("after"):
            node["after"] = event["after"]
        if node["status"] == "frontier":
            node["status"] = "open"

    def _round(self, event: Mapping[str, Any]) -> None:
        groups = event.get("groups") or [[id] for id in event.get("nodes", ())]
        self.rounds.append([[id for id in group if id in self.graph] for group in groups])

    def _asked(self, event: Mapping[str, Any]) -> None:
        """What a model was asked for: added up, by stage too."""
        self.usage = added(self.usage, event.get("usage", {}))

    def _follow_up(self, source: str, query: str) -> None:
        """A new node, or only an edge when this question is there already; nothing when it repeats
        itself."""
        query = clean_query(query)
        target = self.same_as(query)
        depth = self.graph.nodes[source]["depth"] + 1
        if not target and query and depth <= self.header["depth"]:
            target = self._node(source, query, "local" if depth == 1 else "follow-up", depth)
        if target and target != source and not self.graph.has_edge(source, target):
            self.graph.add_edge(source, target, weight=1.0)

    def _node(self, parent: str, query: str, kind: str, depth: int) -> str:
        query = clean_query(query)
        id = content_id(parent, query)[:12]
        self.words[id] = words(query)
        self.graph.add_node(
            id,
            parent=parent,
            query=query,
            kind=kind,
            depth=depth,
            status="frontier",
            score=None,
            answer="",
            by="",
            history=[],
            context=[],
            entities=[],
            calls=0,
            tokens=0,
            after="",
        )
        return id

    # ---- asking ----------------------------------------------------------------------------------

    def same_as(self, query: str) -> str:
        """The node that asks this already, word for word or nearly; "" when none does."""
        key, asked = normalise_name(query), words(query)
        for id, node in self.graph.nodes(data=True):
            if normalise_name(node["query"]) == key or near(asked, self.words[id]):
                return id
        return ""

    def worth(self, id: str) -> float:
        """How promising a frontier node is, 0 to 1.3.

        0.5 x its parent's score / 100 (0.25 where that is null) + 0.3 x the share of the first
        question's words in it + 0.2 / its depth + 0.1 for each further question that led to it, at
        most 0.3."""
        node = self.graph.nodes[id]
        parent = self.graph.nodes.get(node["parent"])
        score = parent["score"] if parent is not None else None
        first = self.words[self.root]
        shared = len(first & self.words[id]) / len(first) if first else 0.0
        asked = min(max(self.graph.in_degree(id) - 1, 0), 3)
        return (
            0.5 * (0.25 if score is None else score / 100)
            + 0.3 * shared
            + 0.2 / max(node["depth"], 1)
            + 0.1 * asked
        )

    def frontier(self) -> list[str]:
        """Frontier nodes that may be opened, best first: at most `breadth` visited nodes at each
        depth."""
        visited: dict[int, int] = {}
        for _, node in self.graph.nodes(data=True):
            if node["status"] in ("open", "answered"):
                visited[node["depth"]] = visited.get(node["depth"], 0) + 1
        ids = [
            id
            for id, node in self.graph.nodes(data=True)
            if node["status"] == "frontier"
            and visited.get(node["depth"], 0) < self.header["breadth"]
        ]
        return sorted(ids, key=lambda id: (-round(self.worth(id), 9), id))

    def with_status(self, *status: str) -> list[str]:
        return [id for id, node in self.graph.nodes(data=True) if node["status"] in status]

    def budget_left(self) -> int:
        """How many more nodes may be opened."""
        return max(0, self.header["max_nodes"] - len(self.with_status("open", "answered")))

    def tokens(self) -> int:
        return sum(node["tokens"] for _, node in self.graph.nodes(data=True))

    # ---- views -----------------------------------------------------------------------------------

    def to_graph(self) -> nx.MultiDiGraph:
        return self.graph.copy()

    def to_json(self) -> str:
        """Node-link JSON of the graph, the session's header beside it."""
        from networkx.readwrite import json_graph

        data = json_graph.node_link_data(self.graph, edges="edges")
        return json.dumps({**data, "session": self.header}, ensure_ascii=False, sort_keys=True)

    def to_mermaid(self) -> str:
        """A flow chart: one box per question with its status and score."""
        lines = ["flowchart TD"]
        for id, node in self.graph.nodes(data=True):
            label = re.sub(r'["\[\]{}<>|`#;\\\n\r]', " ", node["query"])[:80]
            score = "" if node["score"] is None else f" {node['score']:g}"
            lines.append(f'  n{id}["{label}<br/>{node["status"]}{score}"]')
        lines += [f"  n{source} --> n{target}" for source, target in self.graph.edges()]
        return "\n".join(lines)

    def to_markdown(self) -> str:
        """The tree of questions, best answered first; a question met again is only named."""
        lines: list[str] = []
        seen: set[str] = set()
        stack = [(self.root, 0)]
        while stack:
            id, depth = stack.pop()
            node = self.graph.nodes[id]
            mark = "" if node["score"] is None else f", score {node['score']:g}"
            again = " (see above)" if id in seen else ""
            lines.append(f"{'  ' * depth}- `{id}` {node['query']} [{node['status']}{mark}]{again}")
            if id in seen:
                continue
            seen.add(id)
            if node["answer"]:
                lines.append(f"{'  ' * depth}  {one_line(node['answer'], 300)}")
            below = sorted(set(self.graph.successors(id)), key=self._rank, reverse=True)
            stack += [(target, depth + 1) for target in below]
        return "\n".join(lines)

    def _rank(self, id: str) -> tuple[int, float, str]:
        score = self.graph.nodes[id]["score"]
        return (score is None, -(score or 0.0), id)


def added(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """The sum of two accounts, name by name, whatever is nested in them."""
    total = dict(one)
    for name, value in other.items():
        if isinstance(value, Mapping):
            total[name] = added(total.get(name, {}), value)
        elif isinstance(value, int | float):
            total[name] = total.get(name, 0) + value
    return total


def words(query: str) -> frozenset[str]:
    return frozenset(query_terms(query))


def near(one: frozenset[str], other: frozenset[str]) -> bool:
    """Nearly the same words; a number in only one of them makes them different ("in 1990?", "in
    1991?")."""
    if not one or not other or len(one & other) < SAME * len(one | other):
        return False
    return not any(any(ch.isdigit() for ch in word) for word in one ^ other)


def clean_query(query: str) -> str:
    """One line, at most 500 characters, without list marks in front."""
    flat = re.sub(r"\s+", " ", query).strip()
    return re.sub(r"^(?:[-*•]|\d{1,2}[.)])\s+", "", flat)[:QUERY_CHARACTERS].strip()


def read_score(value: object) -> tuple[float | None, str]:
    """A score of 0 to 100, and a sentence when it is not what was sent. "85/100", "8/10", "85%" are
    understood.

    A fraction between 0 and 1 is a share of 100."""
    if value is None or value == "":
        return None, ""
    if isinstance(value, bool):
        return None, f"The score {value!r} is no number, so this node has none and ranks last."
    match = re.fullmatch(
        r"\s*(-?\d{1,9}(?:\.\d{1,9})?)\s*(?:(?:/|of|out of)\s*(\d{1,4})|%)?\s*\.?\s*", str(value)
    )
    if match is None or (match[2] is not None and int(match[2]) == 0):
        return (
            None,
            f"The score {str(value)[:40]!r} cannot be read, so this node has none and ranks last.",
        )
    number = float(match[1])
    score = number * 100 / int(match[2]) if match[2] else number
    if not match[2] and 0 < number < 1 and "%" not in str(value):
        return round(
            100 * number, 2
        ), f"The score {str(value)[:40]!r} was read as {round(100 * number, 2):g} of 100."
    if score < 0 or score > 100:
        return min(
            max(score, 0.0), 100.0
        ), f"The score {str(value)[:40]!r} was moved into 0 to 100."
    return round(score, 2), ""


def read_follow_ups(value: object, most: int) -> tuple[list[str], str]:
    """At most `most` questions, and a sentence when more were sent.

    Lists, JSON, lines of text, {query: ...} and one list under any name all do."""
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.lstrip()[:1] in ("[", "{") else value.splitlines()
        except ValueError:
            value = value.splitlines()
    if isinstance(value, Mapping):
        value = next((one for one in value.values() if isinstance(one, list)), [value])
    found: Iterable[object] = value if isinstance(value, list | tuple) else ()
    queries: list[str] = []
    for one in found:
        if isinstance(one, Mapping):
            one = one.get("query") or one.get("question") or ""
        if isinstance(one, str) and (query := clean_query(one)) and query not in queries:
            queries.append(query)
    said = ""
    if len(queries) > most:
        said = f"{len(queries)} follow-ups were sent; the first {most} are kept."
    return queries[:most], said
