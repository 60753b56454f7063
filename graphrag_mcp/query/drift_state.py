"""The query-state graph of a DRIFT session: built from the events of its journal, and scored; and
what agents and models send, read.

A networkx `MultiDiGraph` whose nodes carry {parent, query, kind, status, score, answer, ...} and
whose edges lead from a question to its follow-ups. The same events always give the same graph."""

from __future__ import annotations

import copy
import json
import logging
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.store.stored import Count, Finite, Open, shaped
from graphrag_mcp.text.terms import content_id, normalise_name, query_terms

if TYPE_CHECKING:
    import networkx as nx


log = logging.getLogger(__name__)

SAME = 0.8  # token overlap (Jaccard) from which two questions count as one
QUERY_CHARACTERS = 500
STATUS = ("answered", "open", "frontier", "pruned")
WHOLE = -1  # answers as recorded, with their history and context
ALIAS = re.compile(r"(?<![A-Za-z0-9.])([tderc])(\d{1,9})(?:\.(\d{1,4}))?(?![A-Za-z0-9])")
BRACKETS = re.compile(r"[\[(（【][^\[\]()（）【】\n]{1,400}[\])）】]")
_SCORE = re.compile(r"\s*(-?\d{1,9}(?:\.\d{1,9})?)\s*(?:(?:/|of|out of)\s*(\d{1,4})|(%))?\s*\.?\s*")


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
    entities: list[str]
    tokens: Count
    after: str


class _Round(Open, total=False):
    nodes: list[str]


class _Asked(Open):
    usage: dict[str, Count | Finite | dict[str, Count | Finite | dict[str, Count | Finite]]]


# What an event of a journal must be, by its `op`; a journal may have been damaged, or made by others.
EVENTS = {"start": _Start, "step": _Step, "open": _Open, "round": _Round, "asked": _Asked}


class Walk:
    """The state of a session. `header` is the start event, `root` the id of the first node.
    `damaged` counts events that are left out because their fields are wrong. `rounds` are the
    nodes that a model was asked about together; `usage` is what models were asked for."""

    def __init__(self, events: Sequence[Mapping[str, Any]]) -> None:
        import networkx as nx

        self.graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
        self.header: dict[str, Any] = {}
        self.root = ""
        self.words: dict[str, frozenset[str]] = {}
        self.steps: dict[str, Mapping[str, Any]] = {}  # the last answer to each node, as recorded
        self.rounds: list[list[str]] = []
        self.usage: dict[str, Any] = {}
        self.damaged = 0
        folds = (self._start, self._step, self._open, self._round, self._asked)
        named = {fold.__name__.strip("_"): fold for fold in folds}
        for event in events:
            op = str(event.get("op"))
            if op not in named or bool(self.header) == (op == "start"):
                continue
            try:
                named[op](shaped(event, EVENTS[op]))
            except ValueError as error:
                self.damaged += 1
                log.warning("an event %r of a session is left out: %s", op, error)

    def _start(self, event: Mapping[str, Any]) -> None:
        self.header = dict(event)
        self.root = self._node("", str(event["query"]), "primer", 0)

    def _step(self, event: Mapping[str, Any]) -> None:
        """One answer with its follow-ups and prunings. It replaces earlier ones, which are kept."""
        node = self.graph.nodes.get(event.get("node", ""))
        self.steps[event.get("node", "")] = event
        if node is not None and event.get("answered"):
            if node["status"] == "answered":
                node["history"].append({"answer": node["answer"], "score": node["score"]})
            fields = {name: event.get(name, "") for name in ("answer", "by")}
            fields["score"] = event.get("score")
            node.update(fields, status="answered")
        for query in event.get("follow_ups", ()) if node is not None else ():
            self._follow_up(event["node"], query)
        for id in event.get("prune", ()):
            pruned = self.graph.nodes.get(id)
            if pruned is not None and pruned["status"] != "answered" and id != self.root:
                pruned["status"] = "pruned"

    def _open(self, event: Mapping[str, Any]) -> None:
        node = self.graph.nodes.get(event.get("node", ""))
        if node is not None:
            node["context"] = list(event.get("context", ()))
            node["entities"] = list(event.get("entities", ()))
            node["calls"] += 1
            node["tokens"] += int(event.get("tokens", 0))
            node["after"] = event.get("after") or node["after"]
            node["status"] = "open" if node["status"] == "frontier" else node["status"]

    def _round(self, event: Mapping[str, Any]) -> None:
        self.rounds.append([id for id in event.get("nodes", ()) if id in self.graph])

    def _asked(self, event: Mapping[str, Any]) -> None:
        """What a model was asked for: added up, by stage too."""
        self.usage = _added(self.usage, event.get("usage", {}))

    def _follow_up(self, source: str, query: str) -> None:
        """A new node; only an edge when the question is there already; nothing for a repetition."""
        query = clean_query(query)
        key, asked = normalise_name(query), words(query)
        nodes = self.graph.nodes(data=True)
        equal = {id: normalise_name(node["query"]) == key for id, node in nodes}
        target = next((id for id in equal if equal[id] or near(asked, self.words[id])), "")
        depth = self.graph.nodes[source]["depth"] + 1
        if not target and query and depth <= self.header["depth"]:
            target = self._node(source, query, "local" if depth == 1 else "follow-up", depth)
        if target and target != source and not self.graph.has_edge(source, target):
            self.graph.add_edge(source, target, weight=1.0)

    def _node(self, parent: str, query: str, kind: str, depth: int) -> str:
        query = clean_query(query)
        id = content_id(parent, query)[:12]
        self.words[id] = words(query)
        place = {"parent": parent, "query": query, "kind": kind, "depth": depth}
        state = {"status": "frontier", "score": None, "answer": "", "by": "", "history": []}
        spent = {"context": [], "entities": [], "calls": 0, "tokens": 0, "after": ""}
        self.graph.add_node(id, **place, **state, **spent)
        return id

    def priority(self, id: str) -> float:
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
        share = 0.25 if score is None else score / 100
        return 0.5 * share + 0.3 * shared + 0.2 / max(node["depth"], 1) + 0.1 * asked

    def frontier(self) -> list[str]:
        """Nodes that may be opened, best first. At each depth at most `breadth` nodes are opened."""
        nodes = self.graph.nodes
        visited = Counter(nodes[id]["depth"] for id in self.with_status("open", "answered"))
        breadth = self.header["breadth"]
        ids = [id for id in self.with_status("frontier") if visited[nodes[id]["depth"]] < breadth]
        return sorted(ids, key=lambda id: (-round(self.priority(id), 9), id))

    def with_status(self, *status: str) -> list[str]:
        return [id for id, node in self.graph.nodes(data=True) if node["status"] in status]

    def budget_left(self) -> int:
        """How many more nodes may be opened."""
        return max(0, self.header["max_nodes"] - len(self.with_status("open", "answered")))

    def tokens(self) -> int:
        return sum(node["tokens"] for _, node in self.graph.nodes(data=True))

    def shortened(self, removed: Mapping[str, list[str]], longest: int, most: int) -> Walk:
        """This walk with `gone` at its nodes. Answers of at most `longest` characters, without
        bookkeeping (WHOLE: as recorded); only the `most` first nodes (0: all)."""
        shown = copy.copy(self)
        shown.graph = self.graph.copy()
        if most:
            shown.graph.remove_nodes_from({*self.graph} - self._first(most))
        for id, node in shown.graph.nodes(data=True):
            node["gone"] = removed.get(id, [])
            if longest != WHOLE:
                node["answer"] = one_line(node["answer"], longest) if longest else ""
                node["query"] = one_line(node["query"], 200 if longest else 80)
                for name in ("history", "context", "entities", "calls", "tokens", "after"):
                    del node[name]
        return shown

    def _first(self, most: int) -> set[str]:
        """The root, then what follows from it: the best answered first, then the most promising."""

        def place(id: str) -> tuple[int, float, str]:
            node = self.graph.nodes[id]
            answered = node["status"] == "answered"
            score = (node["score"] or 0.0) if answered else round(self.priority(id), 9)
            return STATUS.index(node["status"]), -score, id

        chosen = {self.root}
        while len(chosen) < most:
            rim = {target for id in chosen for target in self.graph.successors(id)} - chosen
            if not rim:
                break
            chosen.add(min(rim, key=place))
        return chosen

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

        def rank(id: str) -> tuple[bool, float, str]:
            score = self.graph.nodes[id]["score"]
            return score is None, -(score or 0.0), id

        def add(id: str, depth: int) -> None:
            node, indent = self.graph.nodes[id], "  " * depth
            mark = "" if node["score"] is None else f", score {node['score']:g}"
            again = " (see above)" if id in seen else ""
            lines.append(f"{indent}- `{id}` {node['query']} [{node['status']}{mark}]{again}")
            if not again:
                seen.add(id)
                if node["answer"]:
                    lines.append(f"{indent}  {one_line(node['answer'], 300)}")
                for target in sorted(set(self.graph.successors(id)), key=rank):
                    add(target, depth + 1)

        add(self.root, 0)
        return "\n".join(lines)


def _added(account: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """The sum of two accounts, name by name, whatever is nested in them."""
    total = dict(account)
    for name, value in other.items():
        if isinstance(value, Mapping):
            total[name] = _added(total.get(name, {}), value)
        elif isinstance(value, int | float):
            total[name] = total.get(name, 0) + value
    return total


def words(query: str) -> frozenset[str]:
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


def read_score(value: object) -> tuple[float | None, str]:
    """A score of 0 to 100, and a sentence when it is not what was sent. "85/100", "8/10", "85%" are
    understood. A fraction between 0 and 1 is a share of 100."""
    if value is None or value == "":
        return None, ""
    sent, match = str(value)[:40], _SCORE.fullmatch(str(value))
    if isinstance(value, bool) or match is None or (match[2] and int(match[2]) == 0):
        return None, f"The score {sent!r} cannot be read, so this node has none and ranks last."
    number = float(match[1])
    if match[2]:
        number *= 100 / int(match[2])
    elif 0 < number < 1 and not match[3]:
        number *= 100
    score = min(max(number, 0.0), 100.0)
    moved = "" if score == number else f"The score {sent!r} was moved into 0 to 100."
    return round(score, 2), moved


def read_follow_ups(value: object, most: int) -> tuple[list[str], str]:
    """At most `most` questions, and a sentence if more were sent. `value` may be a list, JSON,
    lines of text, {query: ...}, or an object with a list under any name."""
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.lstrip()[:1] in ("[", "{") else value.splitlines()
        except ValueError:
            value = value.splitlines()
    if isinstance(value, Mapping):
        value = next((part for part in value.values() if isinstance(part, list)), [value])
    found: Iterable[object] = value if isinstance(value, list | tuple) else ()
    queries: dict[str, None] = {}
    for entry in found:
        if isinstance(entry, Mapping):
            entry = entry.get("query") or entry.get("question")
        if isinstance(entry, str) and (query := clean_query(entry)):
            queries[query] = None
    note = ""
    if len(queries) > most:
        note = f"{len(queries)} follow-ups were sent; the first {most} are kept."
    return list(queries)[:most], note
