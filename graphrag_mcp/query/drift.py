"""DRIFT: a question walked as a graph of questions, one node at a time, by the agent itself.

Takes a snapshot and the path of a journal; gives the context of one node per call, records the agent's answer,
score and follow-ups, and in the end the ranked, cited answers. The state is the journal (store/sessions.py),
folded into a graph (query/walk.py) at every call, so any process may take the next step. Calls no model; a model
walks the same session through query/drift_auto.py.

The method is that of DRIFT search in GraphRAG (a primer over community reports, then local searches over
follow-up questions, then a reduction); the order is ours: a stated score picks the next node, nothing is random.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from pathlib import Path

from graphrag_mcp import prompts
from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.pack import Item, Section, clamp_budget, compose, count_tokens, finish, one_line
from graphrag_mcp.query import answers, context, global_, proposals
from graphrag_mcp.query.local import local_search
from graphrag_mcp.query.walk import Walk, clean_query, read_follow_ups, read_score
from graphrag_mcp.store import sessions
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text import counted
from graphrag_mcp.types import DriftNode, DriftResult

DEFAULT_TOKENS = 6_000
DEPTH, BREADTH, NODES = (3, 1, 6), (20, 1, 100), (40, 2, 200)  # default, least, most
SESSION_TOKENS = 6_000  # of context per node of the budget, over the whole session
FOLLOW_UPS = 5  # kept of one answer
PRIMER_FOLLOW_UPS = 10  # kept of the first, which opens the walk
ANSWER_CHARACTERS = 20_000
KEEP_DAYS = 30  # a session that nobody touched for so long is forgotten
PRIMER_SHARES = {"Reports": 0.6, "Sources": 0.4}
STEP_SHARES = {"Sources": 0.9, "Reports": 0.1}


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
        walk = self.begin(query, depth=depth, breadth=breadth, max_nodes=max_nodes)
        if walk.graph.nodes[walk.root]["status"] != "frontier":
            return self._next(walk, "", budget, ["This session had been started before; it goes on."])
        return self._show(walk, walk.root, "", budget, [note])

    def begin(
        self, query: str, *, depth: int = DEPTH[0], breadth: int = BREADTH[0], max_nodes: int = NODES[0]
    ) -> Walk:
        """Write the session's first event, unless it has one."""
        query = clean_query(query)
        if not query:
            raise BadInput("the query is empty", 'Ask something, e.g. drift_search(query="How did A come to B?")')
        walk = Walk(sessions.read(self.path))
        if walk.header:
            return self._own(walk)
        limits = {
            "depth": _within(depth, DEPTH), "breadth": _within(breadth, BREADTH),
            "max_nodes": _within(max_nodes, NODES),
        }  # fmt: skip
        manifest = self.snapshot.manifest
        sessions.append(self.path, {
            "op": "start", "query": query, "corpus": manifest.corpus, "generation": manifest.generation, **limits,
        })  # fmt: skip
        return self.walk()

    def step(
        self, node_id: str, answer: str = "", score: object = None, follow_ups: object = (), prune: object = (),
        open_next: object = "", *, max_tokens: int = DEFAULT_TOKENS, by: str = "",
    ) -> DriftResult:  # fmt: skip
        """Record an answer to a node and open the next one.

        `open_next` is "" for the best frontier node, the id of any node, or "none". Without answer, score,
        follow-ups and prunings the node `node_id` itself is opened. The same call twice changes nothing more.
        `by`: who answered, when it was not the agent.
        """
        budget, note = clamp_budget(max_tokens, DEFAULT_TOKENS)
        walk = self.walk()
        node_id = self.known(walk, node_id)
        notes = [note]
        answer = str(answer or "").strip()[:ANSWER_CHARACTERS]
        value, said = read_score(score)
        notes.append(said)
        most = PRIMER_FOLLOW_UPS if node_id == walk.root else FOLLOW_UPS
        queries, said = read_follow_ups(follow_ups, most)
        notes.append(said)
        pruned = [self.known(walk, one) for one in _listed(prune)]
        wish = self._wished(walk, open_next)  # before anything is written: a call that fails has done nothing
        if not answer and value is None and not queries and not pruned and not wish:
            return self._show(walk, node_id, "", budget, notes)
        if value is not None and not answer:
            notes.append("The score was not recorded: a score belongs to an answer, and none was given.")
        notes.append(self._unknown(answer))
        if answer and not queries and node_id == walk.root:  # deeper, none means that it is settled
            queries = proposals.propose(self.snapshot, walk, node_id, answer)
            if queries:
                notes.append("No follow-ups were given, so the graph proposed some.")
        if not self._recorded(walk, node_id, answer, value, queries, pruned):
            if answer and walk.graph.nodes[node_id]["status"] == "answered":
                notes.append(f"Node {node_id} had an answer; this one replaces it.")
            before = set(walk.graph.nodes)
            walk = self.record(node_id, answer, value, queries, pruned, by)
            merged = len(queries) - len(set(walk.graph.nodes) - before)
            if merged > 0 and walk.graph.nodes[node_id]["depth"] < walk.header["depth"]:
                notes.append(f"{counted(merged, 'follow-ups')} repeated what is there: linked, not asked again.")
        return self._go_on(walk, node_id, wish, budget, notes)

    def go_on(self, after: str, open_next: object = "", *, max_tokens: int = DEFAULT_TOKENS) -> DriftResult:
        """Open what comes after a node that was answered."""
        budget, note = clamp_budget(max_tokens, DEFAULT_TOKENS)
        walk = self.walk()
        return self._go_on(walk, after, self._wished(walk, open_next), budget, [note])

    def record(
        self, id: str, answer: str, score: float | None, queries: Sequence[str], pruned: Sequence[str] = (),
        by: str = "",
    ) -> Walk:  # fmt: skip
        """Write one answer with its follow-ups and prunings; gives the state after it."""
        event = {
            "op": "step", "node": id, "answered": bool(answer), "answer": answer, "score": score,
            "follow_ups": list(queries), "prune": list(pruned),
        }  # fmt: skip
        sessions.append(self.path, event | ({"by": by} if by else {}))
        return self.walk()

    def finish(self, *, max_tokens: int = DEFAULT_TOKENS) -> DriftResult:
        """The answers so far, best first, repeats merged, references checked. The session stays open."""
        budget, note = clamp_budget(max_tokens, DEFAULT_TOKENS)
        walk = self.walk()
        result = self.state(walk, DriftResult(session_id=self.id), shown=3)
        result.done = self.over(walk)
        notes = [note, self.moved(walk)]
        query = walk.header["query"]
        items, gone = answers.ranked_items(self.snapshot, walk)
        if not items:
            result.state, result.done = "not_found", False
            result.text = f"No node of this session has an answer yet. Question: {one_line(query, 300)}"
            result.next_call = self._call((walk.with_status("open") or walk.frontier() or [walk.root])[0])
            result.hint = " ".join(filter(None, notes))
            return finish(result, budget)
        if gone:
            notes.append(f"Not in the index: {', '.join(sorted(gone)[:10])}.")
        if not result.done:
            waiting = [*(walk.frontier() if self._budget_left(walk) else []), *walk.with_status("open")]
            notes.append(f"{counted(len(waiting), 'questions')} still waiting for an answer.")
            result.next_call = f'drift_step(session_id="{self.id}", node_id="{waiting[0]}")'
        result.hint = " ".join(filter(None, notes))
        said = f"{counted(len(items), 'answers')} from {counted(result.answered, 'answered questions')}, best first."
        intro = f"# {one_line(query, 300)}\n{said}"
        return compose(result, [Section("Answers", items, 1.0)], budget, lambda _: "", intro=intro, first="Answers")

    def walk(self) -> Walk:
        """The state as it is on disk now. NotFound when no session was started there."""
        walk = Walk(sessions.read(self.path))
        if not walk.header:
            raise NotFound(f"there is no session {self.id[:60]!r}", 'Start one with drift_search(query="...")')
        return self._own(walk)

    def _own(self, walk: Walk) -> Walk:
        """Ids mean nothing in another corpus than the one that a session began in."""
        began, here = walk.header["corpus"], self.snapshot.manifest.corpus
        if began != here:
            what = f"session {self.id[:60]} belongs to corpus {began!r}, not to {here!r}"
            raise BadInput(what, f"Open it with corpus {began!r}, or start another with drift_search(query=...)")
        return walk

    # ---- opening a node --------------------------------------------------------------------------

    def _wished(self, walk: Walk, open_next: object) -> str:
        """ "" for the best node, "none", or the id of one."""
        wish = str(open_next if open_next is not None else "").strip()
        if wish.casefold() in ("none", "no", "false"):
            return "none"
        return "" if wish.casefold() in ("", "best", "true", "yes") else self.known(walk, wish)

    def _go_on(self, walk: Walk, after: str, wish: str, budget: int, notes: list[str]) -> DriftResult:
        if wish == "none":
            return self._reply(walk, budget, notes)
        if wish:
            return self._show(walk, wish, after, budget, notes)
        return self._next(walk, after, budget, notes)

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
        prompt = prompts.load("drift_primer" if primer else "drift_step")
        intro = prompt.substitute(question=walk.header["query"], node=id, node_query=node["query"])
        result = DriftResult(session_id=self.id, open_node=id)
        shown = 3 if budget < 2_000 else 8
        spent = count_tokens(intro) + 60 * shown + 220
        found = self._context(node["query"], max(budget - spent, 200), primer)
        if node["status"] == "frontier":
            walk = self.opened(id, [citation.id for citation in found.citations], found.tokens, after)
        result = self.state(walk, result, shown)
        result.text = f"{intro}\n\n{found.text}"
        result.citations = found.citations
        result.truncated = found.truncated
        result.next_call = self._call(id)
        result.hint = " ".join(filter(None, [*notes, self.moved(walk)]))
        if found.state == "not_found":
            nothing = "Nothing was found for this question; prune it or answer that it is not known."
            result.hint = f"{result.hint} {nothing}".strip()
        return finish(result, budget)

    def opened(self, id: str, ids: Sequence[str], tokens: int, after: str = "") -> Walk:
        """Write that a node was opened with these sources before it."""
        event = {"op": "open", "node": id, "after": after, "context": list(ids), "tokens": tokens}
        sessions.append(self.path, event)
        return self.walk()

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
        shares = {"Sources": 1.0} if primer else STEP_SHARES
        found = local_search(self.snapshot, query, max_tokens=budget, shares=shares)
        result.text = "\n\n".join(filter(None, [result.text, found.text]))
        result.citations = found.citations
        result.tokens += found.tokens
        result.truncated = found.truncated
        reported = result.text.startswith("## Reports")
        result.state = "not_found" if found.state == "not_found" and not reported else "context"
        return result

    # ---- results ---------------------------------------------------------------------------------

    def _reply(self, walk: Walk, budget: int, notes: list[str]) -> DriftResult:
        """The state alone: nothing was opened."""
        result = self.state(walk, DriftResult(session_id=self.id), shown=8)
        result.done = self.over(walk)
        if result.done:
            why = "The frontier is empty" if not walk.frontier() else "The budget is spent"
            result.text = f"{why}; answered: {counted(result.answered, 'questions')}."
            result.next_call = f'drift_finish(session_id="{self.id}")'
        else:
            ids = walk.frontier() or walk.with_status("open")
            result.text = f"Recorded. {result.answered} answered, {len(walk.frontier())} to open:\n{walk.to_markdown()}"
            result.next_call = f'drift_step(session_id="{self.id}", node_id="{ids[0]}")'
        result.hint = " ".join(filter(None, [*notes, self.moved(walk)]))
        return finish(result, budget)

    def over(self, walk: Walk) -> bool:
        """Nothing is open, and nothing is left that could be opened."""
        return not walk.with_status("open") and (not walk.frontier() or not self._budget_left(walk))

    def _unknown(self, answer: str) -> str:
        """A sentence about ids in an answer that the index does not have."""
        _, gone = answers.references(self.snapshot, [answer])
        listed = ", ".join(sorted(gone)[:10])
        return f"Not in the index: {listed}. Cite ids as they stand in the context." if gone else ""

    def state(self, walk: Walk, result: DriftResult, shown: int) -> DriftResult:
        names = ("parent", "query", "kind", "status")
        result.frontier = [
            DriftNode(id=id, score=round(walk.worth(id), 3), **{name: walk.graph.nodes[id][name] for name in names})
            for id in walk.frontier()[:shown]
        ]
        result.answered = len(walk.with_status("answered"))
        result.budget_left = self._budget_left(walk)
        return result

    def _budget_left(self, walk: Walk) -> int:
        spent = walk.tokens() >= SESSION_TOKENS * walk.header["max_nodes"]
        return 0 if spent else walk.budget_left()

    def _call(self, id: str) -> str:
        return f'drift_step(session_id="{self.id}", node_id="{id}", answer="...", score=0-100, follow_ups=["..."])'

    def moved(self, walk: Walk) -> str:
        then, now = walk.header["generation"], self.snapshot.manifest.generation
        return "" if then == now else f"The index has changed since this session began (generation {then} to {now})."

    def known(self, walk: Walk, id: object) -> str:
        """The id of a node, also from a prefix or in brackets."""
        asked = str(id).strip().strip("[]`'\" ")
        if asked in walk.graph:
            return asked
        near_ids = [one for one in walk.graph if len(asked) >= 6 and one.startswith(asked)]
        if len(near_ids) == 1:
            return near_ids[0]
        known = f"Known to go on with: {self._open_list(walk)}"
        raise NotFound(f"there is no node {asked[:40]!r} in session {self.id}", known)

    def _open_list(self, walk: Walk) -> str:
        ids = [*walk.with_status("open"), *walk.frontier()][:8]
        return "; ".join(ids) if ids else f'none is open, so call drift_finish(session_id="{self.id}")'

    def _recorded(
        self, walk: Walk, id: str, answer: str, score: float | None, queries: list[str], pruned: list[str]
    ) -> bool:
        """Is everything that this call says in the journal already?"""
        node = walk.graph.nodes[id]
        if answer and (node["status"] != "answered" or node["answer"] != answer or node["score"] != score):
            return False
        deep = node["depth"] >= walk.header["depth"]
        linked = set(walk.graph.successors(id)) | {id}
        asked = all(deep or walk.same_as(query) in linked for query in queries)
        return asked and all(walk.graph.nodes[one]["status"] in ("pruned", "answered") for one in pruned)


def forget_old(folder: Path) -> int:
    """Remove the journals of sessions that nobody touched for 30 days; how many went."""
    old = time.time() - KEEP_DAYS * 86_400
    gone = [path for path in folder.glob("*.jsonl") if path.stat().st_mtime < old]
    for path in gone:
        path.unlink(missing_ok=True)
    return len(gone)


def _within(value: object, limits: tuple[int, int, int]) -> int:
    default, least, most = limits
    try:
        number = int(value)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        return default
    return min(max(number, least), most) if number > 0 else default


def _listed(value: object) -> list[str]:
    """Ids as a list, from a list, a JSON list or words, also inside of a list."""
    if isinstance(value, list | tuple):
        return [id for one in value for id in _listed(one)]
    if isinstance(value, str) and value.strip().startswith("["):
        try:
            return _listed(json.loads(value))
        except ValueError:
            return re.findall(r"[0-9a-f]{6,12}", value)
    return [one for one in re.split(r"[\s,;]+", str(value or "")) if one]
