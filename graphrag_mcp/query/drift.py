"""DRIFT: a question as a graph of questions that an agent works through, one node at a time.

The state is the journal (store/sessions.py), folded into a graph (query/drift_state.py) at every
call, so any process may take the next step. The method is that of GraphRAG (a primer over community
reports, local searches over follow-up questions, a reduction); the order is ours: a stated score
picks the next node."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.llm import prompts
from graphrag_mcp.packing import budget as packing
from graphrag_mcp.packing import sending
from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.packing.page import compose, finish
from graphrag_mcp.query import context, drift_state, reports
from graphrag_mcp.query.answer import source_places
from graphrag_mcp.query.drift_state import ALIAS, BRACKETS, Walk, cited_aliases, near, words
from graphrag_mcp.query.follow_ups import propose
from graphrag_mcp.query.local import local_search
from graphrag_mcp.query.model_replies import read_follow_ups, read_score
from graphrag_mcp.query.notes import joined
from graphrag_mcp.store import sessions
from graphrag_mcp.store.tables import Snapshot, values_of
from graphrag_mcp.text.terms import counted
from graphrag_mcp.types import Citation, DriftNode, DriftResult

TABLES = {"d": "documents", "e": "entities", "r": "relationships", "c": "reports"}
DEFAULT_TOKENS = 6_000
FOLLOW_UPS = 5  # kept of one answer
PRIMER_FOLLOW_UPS = 10  # kept of the first, which opens the walk
ANSWER_CHARACTERS = 20_000
KEEP_DAYS = 30  # a session that no one touched for so long is forgotten
SHOWN = 5  # nodes of the frontier beside a context
LISTED = 8  # that are named in a list
IN_JSON = 0.92  # of the room: a text takes 1.05 to 1.06 times its tokens as JSON (context of the sample, 600 to 6,000)
PRIMER_REPORTS = 8  # before the first step, in half of the room
FINISH = 'drift_step(session_id="{}", finish=true)'


# ---- answers -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Limits:
    """How large a walk may become: levels of follow-ups, nodes that are opened at a level, nodes in all."""

    depth: int = 3
    breadth: int = 20
    max_nodes: int = 40


@dataclass(slots=True)
class Answered:
    """A node with an answer, and the questions whose answers say nearly the same."""

    node: dict[str, Any]
    also: list[str] = field(default_factory=list)

    def item(self, id: str, known: dict[str, Citation], removed: set[str]) -> packing.Item:
        """The answer below its question and score, with the citations of what it names."""
        answer, score = self.node["answer"], self.node["score"]
        mark = "no score" if score is None else f"score {score:g}"
        lines = [f"### {one_line(self.node['query'], 300)} ({mark})", marked(answer, removed)]
        if self.also:
            lines.append(f"Also answers: {'; '.join(one_line(query, 200) for query in self.also)}")
        aliases = cited_aliases(answer)
        places = {known[alias].id: known[alias] for alias in aliases if alias in known}
        return packing.Item(id, "\n".join(lines), section="Answers", also=tuple(places.values()))


def best_answers(walk: Walk) -> list[Answered]:
    """The answers of a walk, best first; one that says nearly the same as a better one stands with that."""

    def place(id: str) -> tuple[float, int, str]:
        node = walk.graph.nodes[id]
        return 1.0 if node["score"] is None else -node["score"], node["depth"], id

    best: list[Answered] = []
    for id in sorted(walk.with_status("answered"), key=place):
        node = walk.graph.nodes[id]
        for better in best:
            other = better.node["answer"]
            if node["answer"] == other or near(words(node["answer"]), words(other)):
                better.also.append(node["query"])
                break
        else:
            best.append(Answered(node))
    return best


def references(snapshot: Snapshot, answers: Sequence[str]) -> tuple[dict[str, Citation], set[str]]:
    """Citations of the sources that the answers name; and the ids they name that do not exist."""
    named = list(dict.fromkeys(alias for answer in answers for alias in cited_aliases(answer)))
    known = source_places(snapshot, named)
    there = {*known}
    for letter, table in TABLES.items():
        number = {int(alias[1:].partition(".")[0]): alias for alias in named if alias[0] == letter}
        found = values_of(snapshot.by_key(table, sorted(number), "n", ["n"])["n"])
        there.update(number[n] for n in found)
    return known, {*named} - there


def not_there(removed: set[str]) -> str:
    """A sentence on ids that the index does not have."""
    return f"Not in the index: {', '.join(sorted(removed)[:10])}." if removed else ""


def marked(answer: str, removed: Collection[str]) -> str:
    """The answer with what it cites and the index no longer has marked as gone."""

    def mark(alias: re.Match[str]) -> str:
        return f"{alias[0]} (gone)" if alias[0] in removed else alias[0]

    return BRACKETS.sub(lambda part: ALIAS.sub(mark, part[0]), answer)


# ---- a session -----------------------------------------------------------------------------------


class Drift:
    """One session: `Drift(snapshot, path).start(query)`, `.step(...)` per node, `.finish()`. Each result has at
    most `max_tokens` tokens."""

    def __init__(self, snapshot: Snapshot, path: Path, max_tokens: int = DEFAULT_TOKENS) -> None:
        self.snapshot = snapshot
        self.path = path
        self.id = path.stem
        self.budget, self.clamped = packing.clamp_budget(max_tokens, DEFAULT_TOKENS)

    # ---- the journal -----------------------------------------------------------------------------

    def walk(self) -> Walk:
        """The state as it is on disk now. NotFound when no session was started there, BadInput for one of
        another corpus, in which ids mean something else."""
        walk = Walk(sessions.read(self.path))
        if not walk.header:
            what = f"there is no session {self.id[:60]!r}"
            raise NotFound(what, 'Start one with drift_search(query="...")')
        began, here = walk.header["corpus"], self.snapshot.manifest.corpus
        if began != here:
            raise BadInput(
                f"session {self.id[:60]} belongs to corpus {began!r}, not to {here!r}",
                f"Open it with corpus {began!r}, or start another with drift_search(query=...)",
            )
        return walk

    def begin(self, query: str, limits: Limits) -> Walk:
        """Write the first event of the session, unless the session has begun."""
        query = drift_state.clean_query(query)
        if not query:
            what = "the query is empty"
            raise BadInput(what, 'Ask something, e.g. drift_search(query="How did A come to B?")')
        if not Walk(sessions.read(self.path)).header:
            manifest = self.snapshot.manifest
            place = {"corpus": manifest.corpus, "generation": manifest.generation}
            sessions.append(self.path, {"op": "start", "query": query, **place, **asdict(limits)})
        return self.walk()

    def opened(self, id: str, ids: Sequence[str], after: str = "") -> Walk:
        """Write that a node was opened with these sources before it; gives the state after it."""
        sessions.append(self.path, {"op": "open", "node": id, "after": after, "context": list(ids)})
        return self.walk()

    def record(
        self,
        id: str,
        answer: str,
        score: float | None,
        queries: Sequence[str],
        pruned: Sequence[str] = (),
        by: str = "",
    ) -> Walk:
        """Write an answer with its follow-ups and the nodes that it drops; gives the state after it."""
        answered = {"node": id, "answered": bool(answer), "answer": answer, "score": score}
        event = {"op": "step", **answered, "follow_ups": list(queries), "prune": list(pruned)}
        sessions.append(self.path, event | ({"by": by} if by else {}))
        return self.walk()

    # ---- steps -----------------------------------------------------------------------------------

    def start(self, query: str, limits: Limits | None = None) -> DriftResult:
        """Open the session with the primer over the best-rated reports. A session that exists
        already continues."""
        walk = self.begin(query, limits or Limits())
        if walk.graph.nodes[walk.root]["status"] == "frontier":
            return self._show(walk, walk.root, "")
        return self._next(walk, "", "", "This session had been started before; it goes on.")

    def step(
        self,
        node_id: str,
        answer: str = "",
        score: object = None,
        follow_ups: object = (),
        prune: object = (),
        open_next: object = "",
    ) -> DriftResult:
        """Record an answer to a node and open the next node.

        `open_next` is "" for the best frontier node, the id of a node, or "none". Without
        answer, score, follow-ups and dropped nodes, the node `node_id` itself is opened. Without
        `node_id` the only open node is meant, or to be opened the one that waits for an answer longest. The
        same call twice changes nothing more."""
        walk = self.walk()
        text = str(answer or "").strip()
        answer = text[:ANSWER_CHARACTERS]
        value, unread = read_score(score)
        silent = not (text or value is not None or follow_ups or _listed(prune))
        if not (node_id := self.meant(walk, node_id, to_open=silent)):
            return self._waiting(walk)
        most = PRIMER_FOLLOW_UPS if node_id == walk.root else FOLLOW_UPS
        queries, more = read_follow_ups(follow_ups, most)
        # before anything is written: a call that fails has done nothing
        pruned = [self.known(walk, id) for id in _listed(prune)]
        chosen = self._chosen(walk, open_next)
        notes = [unread, more]
        if not (answer or value is not None or queries or pruned or chosen):
            return self._show(walk, node_id, "", *notes)
        if len(text) > len(answer):
            notes.append(f"Of the answer the first {ANSWER_CHARACTERS:,} characters are kept.")
        if value is not None and not answer:
            why = "a score belongs to an answer, and none was given."
            notes.append(f"The score was not recorded: {why}")
        if removed := references(self.snapshot, [answer])[1]:
            notes.append(f"{not_there(removed)[:-1]}. Cite ids as they stand in the context.")
        last = walk.steps.get(node_id, {})
        event = {"answer": answer, "score": value, "prune": pruned}
        again = all(last.get(name) == sent for name, sent in event.items())
        if not again or (queries and queries != last["follow_ups"]):
            if answer and not queries:
                queries = propose(self.snapshot, walk, node_id, answer)
                notes += ["No follow-ups were given, so the graph proposed some."] if queries else []
            before = len(walk.graph)
            walk = self.record(node_id, answer, value, queries, pruned)
            repeated = len(queries) - (len(walk.graph) - before)
            if repeated and walk.graph.nodes[node_id]["depth"] < walk.header["depth"]:
                what = counted(repeated, "follow-ups")
                notes.append(f"{what} repeated what is there: linked, not asked again.")
        return self._next(walk, node_id, chosen, *notes)

    def go_on(self, after: str, open_next: object = "", beside: int = 0) -> DriftResult:
        """Open what comes after a node that was answered; its result leaves room for `beside` tokens."""
        walk = self.walk()
        return self._next(walk, after, self._chosen(walk, open_next), beside=beside)

    def finish(self) -> DriftResult:
        """The answers, best first, repeats merged, references checked. The session stays open."""
        walk = self.walk()
        result = self.state(walk, DriftResult(session_id=self.id), SHOWN)
        result.hint = self.remarks(walk)
        query, best = one_line(walk.header["query"], 300), best_answers(walk)
        if not best:
            result.state, result.done = "not_found", False
            result.text = f"No node of this session has an answer yet. Question: {query}"
            result.next_call = self._call((walk.with_status("open") or walk.frontier())[0])
            return finish(result, self.budget)
        known, removed = references(self.snapshot, [found.node["answer"] for found in best])
        context.note(result, not_there(removed))
        if waiting := walk.waiting():
            count = counted(len(waiting), "questions")
            context.note(result, f"{count} still waiting for an answer.")
            result.next_call = self._open_call(waiting[0])
        items = [found.item(f"answer {n}", known, removed) for n, found in enumerate(best, 1)]
        answered = counted(result.answered, "answered questions")
        intro = f"# {query}\n{counted(len(best), 'answers')} from {answered}, best first."
        return compose(result, [packing.Section("Answers", items, 1.0)], self.budget, intro=intro)

    # ---- opening a node --------------------------------------------------------------------------

    def _chosen(self, walk: Walk, open_next: object) -> str:
        """ "" for the best node, "none", or the id of one."""
        asked = str(open_next or "").strip()
        return asked.casefold() if asked.casefold() in ("", "none") else self.known(walk, asked)

    def _next(self, walk: Walk, after: str, chosen: str, *notes: str, beside: int = 0) -> DriftResult:
        """Open the chosen node, or the best frontier node; the one that this answer opened before,
        when the call is repeated."""
        if not chosen:
            waiting = walk.with_status("open")
            again = [id for id in waiting if after and walk.graph.nodes[id]["after"] == after]
            best = [*again, *walk.waiting()]
            chosen = next((id for id in best if id != after), "none")
        if chosen == "none":
            return self._waiting(walk, *notes)
        return self._show(walk, chosen, after, *notes, beside=beside)

    def _show(self, walk: Walk, id: str, after: str, *notes: str, beside: int = 0) -> DriftResult:
        """The context of a node, and what the agent is asked to do with it."""
        node, primer = walk.graph.nodes[id], id == walk.root
        gone = {"pruned": "was pruned", "dropped": "gave way to better ones (max_nodes)"}
        if why := gone.get(node["status"]):
            raise BadInput(f"node {id} {why}", f"Open another: {self._open_list(walk)}")
        if node["status"] == "frontier" and not walk.budget_left():
            return self._waiting(walk, *notes, "The budget of this session is spent.")
        prompt = prompts.load("drift_primer" if primer else "drift_step")
        intro = prompt.substitute(question=walk.header["query"], node=id, node_query=node["query"])
        result = self.state(walk, DriftResult(session_id=self.id, open_node=id, text=intro), SHOWN)
        late = context.late(self.snapshot) if primer else ""
        result.next_call, result.hint = self._call(id), joined(*notes, late, self.remarks(walk))
        budget = max(self.budget - beside, packing.LOWEST)
        room = int((budget - sending.outgoing(result)) * IN_JSON)
        found = self._context(node["query"], max(room, packing.LOWEST), primer)
        if node["status"] == "frontier":
            ids = [citation.id for citation in found.citations]
            walk = self.opened(id, ids, after)
            result = self.state(walk, result, SHOWN)
        result.text = f"{intro}\n\n{found.text}"
        result.citations, result.truncated = found.citations, found.truncated
        if found.state == "not_found":
            nothing = "Nothing was found for this question; prune it or answer that it is not known."
            result.hint = joined(nothing, result.hint)
        return finish(result, budget)

    def _context(self, query: str, budget: int, primer: bool) -> DriftResult:
        """What a node is answered from: a local search, for the first node after reports in half of the room."""
        result = DriftResult()
        first = reports.opening(self.snapshot, query, PRIMER_REPORTS) if primer else []
        each = 4 * (budget // 2 // PRIMER_REPORTS)  # characters of a report: an even share of their room
        if items := reports.items(self.snapshot, [report.id for report in first], each, cited=True):
            result = compose(result, [packing.Section("Reports", items, 1.0)], budget // 2)
        left = max(budget - result.tokens, packing.LOWEST)
        found = local_search(self.snapshot, query, max_tokens=left)
        sources = f"## Sources\n{found.text}" if found.citations else found.text
        result.text = "\n\n".join(filter(None, [result.text, sources]))
        result.citations, result.truncated = found.citations, found.truncated
        result.tokens += found.tokens
        # Topics of the highest level stand there for any question: they are not what was found.
        near = any(report.rating >= reports.THRESHOLD for report in first)
        result.state = "not_found" if found.state == "not_found" and not near else "context"
        return result

    # ---- results ---------------------------------------------------------------------------------

    def _waiting(self, walk: Walk, *notes: str) -> DriftResult:
        """What waits for an answer: nothing was opened."""
        result = self.state(walk, DriftResult(session_id=self.id), LISTED)
        if waiting := walk.waiting():
            nodes = walk.graph.nodes
            lines = [f"- `{id}` {nodes[id]['query']} [{nodes[id]['status']}]" for id in waiting]
            head = f"Recorded. {result.answered} answered, {len(waiting)} wait:"
            result.text, result.next_call = "\n".join([head, *lines]), self._open_call(waiting[0])
        else:
            why = "The budget is spent" if walk.frontier() else "The frontier is empty"
            result.text = f"{why}; answered: {counted(result.answered, 'questions')}."
            result.next_call = FINISH.format(self.id)
        result.hint = joined(*notes, self.remarks(walk))
        return finish(result, self.budget)

    def state(self, walk: Walk, result: DriftResult, shown: int) -> DriftResult:
        """The result with how far the walk is: what is answered, and the first nodes that may be opened."""
        result.frontier = []
        for id in walk.frontier()[:shown]:
            node = walk.graph.nodes[id]
            facts = {name: node[name] for name in ("parent", "query", "kind", "status")}
            result.frontier.append(DriftNode(id=id, score=round(walk.priority(id), 3), **facts))
        result.answered = len(walk.with_status("answered"))
        result.budget_left = walk.budget_left()
        result.done = not walk.waiting()
        return result

    def _call(self, id: str) -> str:
        return f'drift_step(session_id="{self.id}", node_id="{id}", answer="...", score=0-100, follow_ups=["..."])'

    def _open_call(self, id: str) -> str:
        return f'drift_step(session_id="{self.id}", node_id="{id}")'

    def remarks(self, walk: Walk) -> str:
        """Sentences on a budget that was changed, an index that has changed, and records that cannot be read."""
        then, now = walk.header["generation"], self.snapshot.manifest.generation
        changed = f"The index has changed since this session began (generation {then} to {now})."
        verb = "is" if walk.damaged == 1 else "are"
        damaged = f"{counted(walk.damaged, 'records')} of this session cannot be read and {verb} left out."
        return joined(self.clamped, changed if then != now else "", damaged if walk.damaged else "")

    # ---- which node is meant ---------------------------------------------------------------------

    def known(self, walk: Walk, id: object) -> str:
        """The id of a node, also from a prefix or in brackets."""
        asked = str(id).strip().strip("[]`'\" ")
        ids = [node_id for node_id in walk.graph if len(asked) >= 6 and node_id.startswith(asked)]
        if len(ids) == 1:
            return ids[0]
        known = f"Known to go on with: {self._open_list(walk)}"
        raise NotFound(f"there is no node {asked[:40]!r} in session {self.id}", known)

    def meant(self, walk: Walk, id: object, to_open: bool) -> str:
        """The node of a call (`known`). Without an id the only open one, and `to_open` one that waits: an open
        one, else the best of the frontier; "" where none waits."""
        if str(id).strip():
            return self.known(walk, id)
        opened = walk.with_status("open")
        if to_open:
            return next(iter([*opened, *walk.waiting()]), "")
        if len(opened) != 1:
            waits = f"Give node_id, one of: {self._open_list(walk)}"
            raise BadInput("it is not said which node this is about", waits)
        return opened[0]

    def _open_list(self, walk: Walk) -> str:
        ids = [*walk.with_status("open"), *walk.frontier()][:LISTED]
        return "; ".join(ids) or f"none is open, so call {FINISH.format(self.id)}"


def _listed(value: object) -> list[str]:
    """Ids as a list, from a list, a JSON list or words, also inside of a list."""
    text = " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value or "")
    return [word for word in re.split(r"[\s,;\[\]\"']+", text) if word]
