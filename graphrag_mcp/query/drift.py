"""DRIFT: a question walked as a graph of questions, one node at a time, by the agent itself.

Takes a snapshot and the path of a journal; gives the context of one node per call, records the agent's answer,
score and follow-ups, and in the end the ranked, cited answers. The state is the journal (store/sessions.py),
folded into a graph (query/walk.py) at every call, so any process may take the next step. Calls no model.

The method is that of DRIFT search in GraphRAG (a primer over community reports, then local searches over
follow-up questions, then a reduction); the order is ours: a stated score picks the next node, nothing is random.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.pack import Item, Section, clamp_budget, compose, count_tokens, finish, one_line
from graphrag_mcp.pack import citation as cite
from graphrag_mcp.query import context, global_
from graphrag_mcp.query.local import local_search
from graphrag_mcp.query.walk import Walk, clean_query, near, read_follow_ups, read_score, words
from graphrag_mcp.store import sessions
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text import is_cjk, normalise_name
from graphrag_mcp.types import Citation, DriftNode, DriftResult

DEFAULT_TOKENS = 6_000
DEPTH, BREADTH, NODES = (3, 1, 6), (20, 1, 100), (40, 2, 200)  # default, least, most
SESSION_TOKENS = 6_000  # of context per node of the budget, over the whole session
FOLLOW_UPS = 5  # kept of one answer
PRIMER_FOLLOW_UPS = 10  # kept of the first, which opens the walk
ANSWER_CHARACTERS = 20_000
PRIMER_SHARES = {"Reports": 0.6, "Sources": 0.4}
STEP_SHARES = {"Sources": 0.9, "Reports": 0.1}
_CITED = re.compile(r"(?<![A-Za-z0-9.])([tderc])(\d{1,9})(?:\.(\d{1,4}))?(?![A-Za-z0-9])")
_BRACKETS = re.compile(r"[\[(（【][^\[\]()（）【】\n]{1,400}[\])）】]")


class Drift:
    """One session. `Drift(snapshot, path).start(query)`, then `.step(...)` per node, then `.finish()`."""

    def __init__(self, snapshot: Snapshot, path: Path) -> None:
        self.snapshot = snapshot
        self.path = path
        self.id = path.stem

    # ---- the three moves -------------------------------------------------------------------------

    def start(
        self, query: str, *, depth: int = DEPTH[0], breadth: int = BREADTH[0], max_nodes: int = NODES[0],
        max_tokens: int = DEFAULT_TOKENS,
    ) -> DriftResult:  # fmt: skip
        """Open the session with the first node: the primer over the best-rated reports. A known session goes on."""
        budget, note = clamp_budget(max_tokens, DEFAULT_TOKENS)
        query = clean_query(query)
        if not query:
            raise BadInput("the query is empty", 'Ask something, e.g. drift_search(query="How did A come to B?")')
        walk = Walk(sessions.read(self.path))
        if not walk.header:
            limits = {"depth": _within(depth, DEPTH), "breadth": _within(breadth, BREADTH), "max_nodes": _within(max_nodes, NODES)}
            manifest = self.snapshot.manifest
            sessions.append(self.path, {
                "op": "start", "query": query, "corpus": manifest.corpus, "generation": manifest.generation, **limits,
            })  # fmt: skip
            walk = self.walk()
        if walk.graph.nodes[walk.root]["status"] != "frontier":
            return self._next(walk, "", budget, ["This session had been started before; it goes on."])
        return self._show(walk, walk.root, "", budget, [note])

    def step(
        self, node_id: str, answer: str = "", score: object = None, follow_ups: object = (), prune: object = (),
        open_next: object = "", *, max_tokens: int = DEFAULT_TOKENS,
    ) -> DriftResult:  # fmt: skip
        """Record an answer to a node and open the next one.

        `open_next` is "" for the best frontier node, the id of any node, or "none". Without answer, score,
        follow-ups and prunings the node `node_id` itself is opened. The same call twice changes nothing more.
        """
        budget, note = clamp_budget(max_tokens, DEFAULT_TOKENS)
        walk = self.walk()
        node_id = self._known(walk, node_id)
        notes = [note]
        answer = str(answer or "").strip()[:ANSWER_CHARACTERS]
        value, said = read_score(score)
        notes.append(said)
        most = PRIMER_FOLLOW_UPS if node_id == walk.root else FOLLOW_UPS
        queries, said = read_follow_ups(follow_ups, most)
        notes.append(said)
        pruned = [self._known(walk, one) for one in _listed(prune)]
        if not answer and value is None and not queries and not pruned and not str(open_next or "").strip():
            return self._show(walk, node_id, "", budget, notes)
        if answer and not queries:
            queries = self._propose(walk, node_id, answer)
            if queries:
                notes.append("No follow-ups were given, so the graph proposed some.")
        if not self._recorded(walk, node_id, answer, value, queries, pruned):
            before = set(walk.graph.nodes)
            sessions.append(self.path, {
                "op": "step", "node": node_id, "answered": bool(answer), "answer": answer, "score": value,
                "follow_ups": queries, "prune": pruned,
            })  # fmt: skip
            walk = self.walk()
            merged = len(queries) - len(set(walk.graph.nodes) - before)
            if merged > 0 and walk.graph.nodes[node_id]["depth"] < walk.header["depth"]:
                notes.append(f"{merged} follow-ups repeat questions that are there already; they are linked, not asked again.")
        wish = str(open_next if open_next is not None else "").strip()
        if wish.casefold() in ("none", "no", "false"):
            return self._reply(walk, budget, notes)
        if wish and wish.casefold() not in ("best", "true", "yes"):
            return self._show(walk, self._known(walk, wish), node_id, budget, notes)
        return self._next(walk, node_id, budget, notes)

    def finish(self, *, max_tokens: int = DEFAULT_TOKENS) -> DriftResult:
        """The answers so far, best first, repeats merged, references checked. The session stays open."""
        budget, note = clamp_budget(max_tokens, DEFAULT_TOKENS)
        walk = self.walk()
        result = self._state(walk, DriftResult(session_id=self.id), shown=3)
        result.done = True
        notes = [note, self._moved(walk)]
        ranked = self._ranked(walk)
        query = walk.header["query"]
        if not ranked:
            result.state, result.done = "not_found", False
            result.text = f"No node of this session has an answer yet. Question: {one_line(query, 300)}"
            result.next_call = self._call((walk.with_status("open") or walk.frontier() or [walk.root])[0])
            result.hint = " ".join(filter(None, notes))
            return finish(result, budget)
        known, gone = self._references([node["answer"] for node, _ in ranked])
        items = [_answer_item(node, others, known, gone) for node, others in ranked]
        if gone:
            notes.append(f"Not in the index: {', '.join(sorted(gone)[:10])}.")
        result.hint = " ".join(filter(None, notes))
        intro = f"# {one_line(query, 300)}\n{len(ranked)} answers from {result.answered} answered questions, best first."
        return compose(result, [Section("Answers", items, 1.0)], budget, lambda _: "", intro=intro, first="Answers")

    def walk(self) -> Walk:
        """The state as it is on disk now. NotFound when no session was started there."""
        walk = Walk(sessions.read(self.path))
        if not walk.header:
            raise NotFound(f"there is no session {self.id[:60]!r}", 'Start one with drift_search(query="...")')
        return walk

    # ---- opening a node --------------------------------------------------------------------------

    def _next(self, walk: Walk, after: str, budget: int, notes: list[str]) -> DriftResult:
        """Open the best frontier node; the one that this answer opened before, when the call is repeated."""
        again = [id for id in walk.with_status("open") if after and walk.graph.nodes[id]["after"] == after]
        waiting = [id for id in walk.with_status("open") if id != after]
        frontier = walk.frontier() if self._budget_left(walk) else []
        chosen = (again or frontier or waiting)[:1]
        if not chosen:
            return self._reply(walk, budget, notes)
        return self._show(walk, chosen[0], after, budget, notes)

    def _show(self, walk: Walk, id: str, after: str, budget: int, notes: list[str]) -> DriftResult:
        """The context of a node, and what the agent is asked to do with it."""
        node = walk.graph.nodes[id]
        if node["status"] == "pruned":
            raise BadInput(f"node {id} was pruned", f"Open another: {self._open_list(walk)}")
        if node["status"] == "frontier" and not self._budget_left(walk):
            return self._reply(walk, budget, [*notes, "The budget of this session is spent."])
        primer = id == walk.root
        ask = _PRIMER if primer else _STEP
        intro = f"Question: {walk.header['query']}\n" + ("" if primer else f"Node {id}: {node['query']}\n") + ask
        result = DriftResult(session_id=self.id, open_node=id)
        shown = 3 if budget < 2_000 else 8
        spent = count_tokens(intro) + 60 * shown + 220
        found = self._context(node["query"], max(budget - spent, 200), primer)
        if node["status"] == "frontier":
            ids = [citation.id for citation in found.citations]
            event = {"op": "open", "node": id, "after": after, "context": ids, "tokens": found.tokens}
            sessions.append(self.path, event)
            walk = self.walk()
        result = self._state(walk, result, shown)
        result.text = f"{intro}\n\n{found.text}"
        result.citations = found.citations
        result.truncated = found.truncated
        result.next_call = self._call(id)
        result.hint = " ".join(filter(None, [*notes, self._moved(walk)]))
        if found.state == "not_found":
            result.hint = (result.hint + " Nothing was found for this question; prune it or answer that it is not known.").strip()
        return finish(result, budget)

    def _context(self, query: str, budget: int, primer: bool) -> DriftResult:
        """Primer: best-rated reports, then text. Else a local search with nearly all of the budget for text."""
        result = DriftResult()
        if primer:
            kept, _ = global_.select(self.snapshot, query)
            rows = context.rows(self.snapshot, "reports", [one.id for one in kept[:20]])
            summaries = context.rendered(self.snapshot, [row["summary"] for row in rows])
            items = [
                Item(f"c{row['n']}", f"- [c{row['n']}] **{one_line(row['title'], 120)}** {one_line(summary, 700)}")
                for row, summary in zip(rows, summaries, strict=True)
            ]
            share = int(budget * PRIMER_SHARES["Reports"]) if items else 0
            if share:
                result = compose(result, [Section("Reports", items, 1.0)], share, lambda _: "", first="Reports")
            budget = max(budget - result.tokens, 200)
        found = local_search(self.snapshot, query, max_tokens=budget, shares={"Sources": 1.0} if primer else STEP_SHARES)
        result.text = "\n\n".join(filter(None, [result.text, found.text]))
        result.citations = found.citations
        result.tokens += found.tokens
        result.truncated = found.truncated
        result.state = "not_found" if found.state == "not_found" and not result.text.startswith("## Reports") else "context"
        return result

    # ---- results ---------------------------------------------------------------------------------

    def _reply(self, walk: Walk, budget: int, notes: list[str]) -> DriftResult:
        """The state alone: nothing was opened."""
        result = self._state(walk, DriftResult(session_id=self.id), shown=8)
        result.done = not walk.with_status("open") and (not walk.frontier() or not self._budget_left(walk))
        finishing = f'drift_finish(session_id="{self.id}")'
        if result.done:
            why = "The frontier is empty" if not walk.frontier() else "The budget is spent"
            result.text = f"{why}: {result.answered} questions are answered. Call {finishing}."
            result.next_call = finishing
        else:
            ids = walk.frontier() or walk.with_status("open")
            result.text = f"Recorded. {result.answered} answered, {len(walk.frontier())} to open:\n{walk.to_markdown()}"
            result.next_call = f'drift_step(session_id="{self.id}", node_id="{ids[0]}")'
        result.hint = " ".join(filter(None, [*notes, self._moved(walk)]))
        return finish(result, budget)

    def _state(self, walk: Walk, result: DriftResult, shown: int) -> DriftResult:
        result.frontier = [
            DriftNode(id=id, parent=node["parent"], query=node["query"], kind=node["kind"], status=node["status"], score=round(walk.worth(id), 3))
            for id in walk.frontier()[:shown] for node in [walk.graph.nodes[id]]
        ]  # fmt: skip
        result.answered = len(walk.with_status("answered"))
        result.budget_left = self._budget_left(walk)
        return result

    def _budget_left(self, walk: Walk) -> int:
        spent = walk.tokens() >= SESSION_TOKENS * walk.header["max_nodes"]
        return 0 if spent else walk.budget_left()

    def _call(self, id: str) -> str:
        return f'drift_step(session_id="{self.id}", node_id="{id}", answer="...", score=0-100, follow_ups=["..."])'

    def _moved(self, walk: Walk) -> str:
        then, now = walk.header["generation"], self.snapshot.manifest.generation
        return "" if then == now else f"The index has changed since this session began (generation {then} to {now})."

    def _known(self, walk: Walk, id: object) -> str:
        """The id of a node, also from a prefix or in brackets."""
        asked = str(id).strip().strip("[]`'\" ")
        if asked in walk.graph:
            return asked
        near_ids = [one for one in walk.graph if len(asked) >= 6 and one.startswith(asked)]
        if len(near_ids) == 1:
            return near_ids[0]
        raise NotFound(f"there is no node {asked[:40]!r} in session {self.id}", f"Known to go on with: {self._open_list(walk)}")

    def _open_list(self, walk: Walk) -> str:
        ids = [*walk.with_status("open"), *walk.frontier()][:8]
        named = [f"{id} ({one_line(walk.graph.nodes[id]['query'], 60)})" for id in ids]
        return "; ".join(named) if named else f"none is open, so call drift_finish(session_id=\"{self.id}\")"

    def _recorded(self, walk: Walk, id: str, answer: str, score: float | None, queries: list[str], pruned: list[str]) -> bool:
        """Is everything that this call says in the journal already?"""
        node = walk.graph.nodes[id]
        if answer and (node["status"] != "answered" or node["answer"] != answer or node["score"] != score):
            return False
        deep = node["depth"] >= walk.header["depth"]
        linked = set(walk.graph.successors(id)) | {id}
        asked = all(deep or walk.same_as(query) in linked for query in queries)
        return asked and all(walk.graph.nodes[one]["status"] in ("pruned", "answered") for one in pruned)

    # ---- follow-ups from the graph, answers at the end ---------------------------------------------

    def _propose(self, walk: Walk, id: str, answer: str) -> list[str]:
        """Questions about unexplored neighbours of the entities that the answer cites (or else was shown)."""
        node = walk.graph.nodes[id]
        if node["depth"] >= walk.header["depth"] or node["status"] == "answered" and node["answer"] == answer:
            return []
        cited = [match.group() for part in _BRACKETS.findall(answer) for match in _CITED.finditer(part)]
        places = [alias for alias in cited if alias[0] == "t"] or node["context"][:4]
        numbers = [int(alias[1:].partition(".")[0]) for alias in places]
        held: dict[str, float] = {}
        for ids in self.snapshot.by_key("passages", numbers, "n", ["entity_ids"])["entity_ids"].to_pylist():
            for one in ids:
                held[one] = held.get(one, 0.0) + 1.0
        own = [int(alias[1:]) for alias in cited if alias[0] == "e"]
        for one in self.snapshot.by_key("entities", own, "n", ["id"])["id"].to_pylist():
            held[one] = held.get(one, 0.0) + 5.0
        return neighbour_questions(self.snapshot, walk, held, node["query"])

    def _ranked(self, walk: Walk) -> list[tuple[Mapping[str, Any], list[str]]]:
        """Answered nodes best first, each with the questions whose answers say nearly the same."""
        nodes = [walk.graph.nodes[id] | {"id": id} for id in walk.with_status("answered")]
        nodes.sort(key=lambda one: (one["score"] is None, -(one["score"] or 0.0), one["depth"], one["id"]))
        kept: list[tuple[Mapping[str, Any], list[str]]] = []
        said: list[frozenset[str]] = []
        for node in nodes:
            bag = words(node["answer"])
            same = next((at for at, other in enumerate(said) if kept[at][0]["answer"] == node["answer"] or near(bag, other)), None)
            if same is None:
                kept.append((node, []))
                said.append(bag)
            else:
                kept[same][1].append(node["query"])
        return kept

    def _references(self, answers: Sequence[str]) -> tuple[dict[str, Citation], set[str]]:
        """Citations of the sources that the answers name, and the ids among all they name that do not exist."""
        named = {match.groups(): match.group() for text in answers for part in _BRACKETS.findall(text) for match in _CITED.finditer(part)}
        known: dict[str, Citation] = {}
        gone: set[str] = set()
        tables = {"t": "passages", "d": "documents", "e": "entities", "r": "relationships", "c": "reports"}
        for letter, table in tables.items():
            wanted = sorted({int(number) for kind, number, _ in named if kind == letter})
            if not wanted:
                continue
            if letter == "t":
                for row in sorted(context.numbered(self.snapshot, table, wanted), key=lambda row: (row["n"], row["part"])):
                    place = cite(row)
                    known[place.id] = place
                    known.setdefault(f"t{row['n']}", place)
                    known.setdefault(f"t{row['n']}.{row['part']}", place)
                gone |= {alias for (kind, *_), alias in named.items() if kind == "t" and alias not in known}
            else:
                there = set(self.snapshot.by_key(table, wanted, "n", ["n"])["n"].to_pylist())
                gone |= {alias for (kind, number, _), alias in named.items() if kind == letter and int(number) not in there}
        return known, gone


def neighbour_questions(snapshot: Snapshot, walk: Walk, held: Mapping[str, float], query: str) -> list[str]:
    """Up to five questions that lead from known entities (id -> how often cited) to their strongest unasked neighbours."""
    rows = snapshot.by_key("entities", sorted(held), "id", ["id", "title", "key", "degree"]).to_pylist()
    rows.sort(key=lambda row: (-held[row["id"]] / (1 + math.log(1 + row["degree"])), row["id"]))
    start = {row["id"]: row for row in rows[:8] if 0 < row["degree"] <= 500}
    if not start:
        return []
    listed = ", ".join(f"'{id}'" for id in start)
    names = ["source_id", "target_id", "weight"]
    links = snapshot.rows("relationships", f"source_id IN ({listed}) OR target_id IN ({listed})", names).to_pylist()
    best: dict[str, tuple[float, str]] = {}
    for link in sorted(links, key=lambda one: (-one["weight"], one["source_id"], one["target_id"])):
        for here, there in ((link["source_id"], link["target_id"]), (link["target_id"], link["source_id"])):
            if here in start and there not in held:
                best.setdefault(there, (link["weight"], here))
    asked = " | ".join(normalise_name(node["query"]) for _, node in walk.graph.nodes(data=True))
    order = sorted(best, key=lambda id: (-best[id][0], id))[:40]
    titles = snapshot.by_key("entities", order, "id", ["id", "title", "key"]).to_pylist()
    cjk = any(is_cjk(ch) for ch in query)
    form = "{0}与{1}有什么关系？" if cjk else "How is {0} connected with {1}?"
    found = [
        form.format(one_line(row["title"], 80), one_line(start[best[row["id"]][1]]["title"], 80))
        for row in titles if row["key"] not in asked
    ]  # fmt: skip
    return found[:FOLLOW_UPS]


def _answer_item(node: Mapping[str, Any], others: Sequence[str], known: Mapping[str, Citation], gone: set[str]) -> Item:
    """One answer under its question, with ids that are gone marked as such."""
    score = "no score" if node["score"] is None else f"score {node['score']:g}"
    text = _BRACKETS.sub(lambda part: _CITED.sub(lambda m: f"{m.group()} (gone)" if m.group() in gone else m.group(), part.group()), node["answer"])
    aliases = [match.group() for part in _BRACKETS.findall(node["answer"]) for match in _CITED.finditer(part)]
    places = tuple({known[alias].id: known[alias] for alias in aliases if alias in known}.values())
    also = f"\nAlso answers: {'; '.join(one_line(other, 200) for other in others)}" if others else ""
    read = f"\nIt cites nothing; it was shown {', '.join(node['context'][:5])}." if not aliases and node["context"] else ""
    return Item(node["id"], f"### {one_line(node['query'], 300)} ({score})\n{text}{also}{read}", None, "Answers", also=places)


def _within(value: object, limits: tuple[int, int, int]) -> int:
    default, least, most = limits
    try:
        number = int(value)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        return default
    return min(max(number, least), most) if number > 0 else default


def _listed(value: object) -> list[str]:
    """Ids as a list, from a list, a JSON list or words."""
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.strip().startswith("[") else re.split(r"[\s,;]+", value)
        except ValueError:
            value = re.findall(r"[0-9a-f]{6,12}", str(value))
    return [str(one) for one in value if str(one).strip()] if isinstance(value, list | tuple) else []


_PRIMER = (
    "Answer it from the context below, in Markdown of about 2,000 characters under a heading tied to the question, citing ids "
    "such as [t33] or [c5]. Give a score of 0 to 100 for how well the answer settles the question, and at least 5 follow-up "
    "questions, each about one thing. Then call the next_call."
)
_STEP = (
    "Answer this node's question alone, from the context below, citing ids such as [t33]. Give a score of 0 to 100 for how much "
    "the answer helps with the first question, and up to 5 follow-up questions (none if it is settled)."
)
