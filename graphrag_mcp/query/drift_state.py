"""The query-state graph of a DRIFT session: built from the events of its journal, and scored.

A networkx `MultiDiGraph` whose nodes carry {parent, query, kind, status, score, answer, ...} and
whose edges lead from a question to its follow-ups. The same events always give the same graph."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_mcp.store import sessions
from graphrag_mcp.store.stored import Count, Finite, Open, shaped
from graphrag_mcp.text.terms import content_id, normalise_name, query_terms

if TYPE_CHECKING:
    import networkx as nx


log = logging.getLogger(__name__)

SAME = 0.8  # token overlap (Jaccard) from which two questions count as one
QUERY_CHARACTERS = 500
ALIAS = re.compile(r"(?<![A-Za-z0-9.])([tderc])(\d{1,9})(?:\.(\d{1,4}))?(?![A-Za-z0-9])")
BRACKETS = re.compile(r"[\[(（【][^\[\]()（）【】\n]{1,400}[\])）】]")


class _Start(Open):
    query: str
    corpus: str
    generation: Count
    depth: Count
    breadth: Count
    max_nodes: Count


class _Step(Open, total=False):
    node: str
    answered: bool
    answer: str
    score: Finite | None
    follow_ups: list[str]
    prune: list[str]
    by: str


class _Open(Open, total=False):
    node: str
    context: list[str]
    after: str


class _Asked(Open):
    usage: dict[str, Count | Finite | dict[str, Count | Finite | dict[str, Count | Finite]]]


# What an event of a journal must be, by its `op`; a journal may have been damaged, or made by others.
EVENTS = {"start": _Start, "step": _Step, "open": _Open, "asked": _Asked}


class Walk:
    """The state of a session. `header` is the start event, `root` the id of the first node.
    `damaged` counts events that are left out because their fields are wrong; `usage` is what models
    were asked for."""

    def __init__(self, events: Sequence[Mapping[str, Any]]) -> None:
        import networkx as nx

        self.graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
        self.header: dict[str, Any] = {}
        self.root = ""
        self.words: dict[str, frozenset[str]] = {}
        self.steps: dict[str, Mapping[str, Any]] = {}  # the last answer to each node, as recorded
        self.usage: dict[str, Any] = {}
        self.damaged = 0
        folds = {"start": self._start, "step": self._step, "open": self._open, "asked": self._asked}
        for event in events:
            op = str(event.get("op"))
            if op not in folds or bool(self.header) == (op == "start"):
                continue
            try:
                folds[op](shaped(event, EVENTS[op]))
            except ValueError as error:
                self.damaged += 1
                log.warning("an event %r of a session is left out: %s", op, error)

    # ---- events ----------------------------------------------------------------------------------

    def _start(self, event: Mapping[str, Any]) -> None:
        self.header = dict(event)
        self.root = self._node("", event["query"], 0)

    def _step(self, event: Mapping[str, Any]) -> None:
        """One answer with its follow-ups and prunings. It replaces earlier ones, which are kept."""
        id = event.get("node", "")
        self.steps[id] = event
        node = self.graph.nodes.get(id)
        if node is not None and event.get("answered"):
            if node["status"] == "answered":
                node["history"].append({"answer": node["answer"], "score": node["score"]})
            said = {name: event.get(name, "") for name in ("answer", "by")}
            node.update(said, score=event.get("score"), status="answered")
        for query in event.get("follow_ups", ()) if node is not None else ():
            self._follow_up(id, query)
        for other in event.get("prune", ()):
            pruned = self.graph.nodes.get(other)
            if pruned is not None and pruned["status"] != "answered" and other != self.root:
                pruned["status"] = "pruned"

    def _open(self, event: Mapping[str, Any]) -> None:
        node = self.graph.nodes.get(event.get("node", ""))
        if node is not None:
            node["context"] = list(event.get("context", ()))
            node["after"] = event.get("after") or node["after"]
            if node["status"] == "frontier":
                node["status"] = "open"

    def _asked(self, event: Mapping[str, Any]) -> None:
        """What a model was asked for: added up, by stage too."""
        self.usage = _added(self.usage, event["usage"])

    def _follow_up(self, source: str, query: str) -> None:
        """A new node; only an edge when the question is there already; nothing for a repetition. Of more than
        `max_nodes` the least promising one that waits is dropped."""
        query = clean_query(query)
        key, asked = normalise_name(query), words(query)
        same = (
            id
            for id, node in self.graph.nodes(data=True)
            if normalise_name(node["query"]) == key or near(asked, self.words[id])
        )
        target = next(same, "")
        depth = self.graph.nodes[source]["depth"] + 1
        if not target and query and depth <= self.header["depth"]:
            target = self._node(source, query, depth)
        if target and target != source and not self.graph.has_edge(source, target):
            self.graph.add_edge(source, target, weight=1.0)
        waiting = self.with_status("frontier")
        if waiting and self.budget_left() < len(waiting):
            self.graph.nodes[max(waiting, key=self._order)]["status"] = "dropped"

    def _node(self, parent: str, query: str, depth: int) -> str:
        query = clean_query(query)
        id = content_id(parent, query)[:12]
        self.words[id] = words(query)
        kind = ("primer", "local")[depth] if depth < 2 else "follow-up"
        place = {"parent": parent, "query": query, "kind": kind, "depth": depth}
        state = {"status": "frontier", "score": None, "answer": "", "by": "", "history": []}
        self.graph.add_node(id, **place, **state, context=[], after="")
        return id

    # ---- what is asked next ----------------------------------------------------------------------

    def priority(self, id: str) -> float:
        """How promising a node is, 0 to 1: the mean of its parent's score as a share of 100 (a half where
        that is null), of the share of the first question's words in it, and of 1 / its depth."""
        node = self.graph.nodes[id]
        score = self.graph.nodes[node["parent"]]["score"] if node["parent"] else None
        first = self.words[self.root]
        shared = len(first & self.words[id]) / max(len(first), 1)
        return ((0.5 if score is None else score / 100) + shared + 1 / max(node["depth"], 1)) / 3

    def _order(self, id: str) -> tuple[float, str]:
        return -round(self.priority(id), 9), id

    def frontier(self) -> list[str]:
        """Nodes that may be opened, best first. At each depth at most `breadth` nodes are opened."""
        nodes = self.graph.nodes
        visited = Counter(nodes[id]["depth"] for id in self.with_status("open", "answered"))
        breadth = self.header["breadth"]
        ids = [id for id in self.with_status("frontier") if visited[nodes[id]["depth"]] < breadth]
        return sorted(ids, key=self._order)

    def with_status(self, *status: str) -> list[str]:
        """The nodes of any of these statuses, in the order in which they came up."""
        return [id for id, node in self.graph.nodes(data=True) if node["status"] in status]

    def waiting(self) -> list[str]:
        """The nodes that wait for an answer: those that may still be opened, best first, and the open ones."""
        return [*(self.frontier() if self.budget_left() else []), *self.with_status("open")]

    def budget_left(self) -> int:
        """How many more nodes may be opened."""
        return max(0, self.header["max_nodes"] - len(self.with_status("open", "answered")))


def listed(folder: Path) -> Iterator[tuple[str, Walk]]:
    """The sessions in a folder by id, the one touched last first."""
    for path in sessions.listing(folder):
        if (walk := Walk(sessions.read(path))).header:
            yield path.stem, walk


def _added(account: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """The sum of two accounts, name by name, whatever is nested in them."""
    total = dict(account)
    for name, value in other.items():
        nested = isinstance(value, Mapping)
        total[name] = _added(total.get(name, {}), value) if nested else total.get(name, 0) + value
    return total


def words(query: str) -> frozenset[str]:
    """The terms of a question, by which it is compared with others."""
    return frozenset(query_terms(query))


def near(bag: frozenset[str], other: frozenset[str]) -> bool:
    """Do two questions have nearly the same words? A number that only one of them has ("in 1990?",
    "in 1991?") is a difference."""
    if not bag or not other or len(bag & other) < SAME * len(bag | other):
        return False
    return not any(any(ch.isdigit() for ch in word) for word in bag ^ other)


def clean_query(query: str) -> str:
    """One line, at most 500 characters, without list marks in front."""
    flat = re.sub(r"\s+", " ", query).strip()
    return re.sub(r"^(?:[-*•]|\d{1,2}[.)])\s+", "", flat)[:QUERY_CHARACTERS].strip()


def cited_aliases(answer: str) -> list[str]:
    """The short ids inside brackets of an answer, each once, in order."""
    parts = BRACKETS.findall(answer)
    return list(dict.fromkeys(match[0] for part in parts for match in ALIAS.finditer(part)))
