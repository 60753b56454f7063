"""DRIFT: a question as a graph of questions that an agent works through, one node at a time.

The state is the journal (store/sessions.py), folded into a graph (query/drift_state.py) at every
call, so any process may take the next step. The method is that of GraphRAG (a primer over community
reports, local searches over follow-up questions, a reduction); the order is ours: a stated score
picks the next node.

    graph = networkx.node_link_graph(json.loads(export(session, "json")), edges="edges")"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.llm import prompts
from graphrag_mcp.packing import budget as packing
from graphrag_mcp.packing.budget import finish
from graphrag_mcp.packing.page import compose
from graphrag_mcp.query import context, drift_state, reports
from graphrag_mcp.query.answer import source_places
from graphrag_mcp.query.drift_state import ALIAS, BRACKETS, WHOLE, Walk, cited_aliases, near, words
from graphrag_mcp.query.follow_ups import propose
from graphrag_mcp.query.local import local_search
from graphrag_mcp.store import sessions
from graphrag_mcp.store.tables import Snapshot, values_of
from graphrag_mcp.text.terms import counted
from graphrag_mcp.types import Citation, DriftNode, DriftResult

TABLES = {"d": "documents", "e": "entities", "r": "relationships", "c": "reports"}
DEFAULT_TOKENS = 6_000
DEPTH, BREADTH, NODES = 3, 20, 40  # levels of follow-ups, nodes of a level, nodes in all
SESSION_TOKENS = 6_000  # of context per node of the budget, over the whole session
FOLLOW_UPS = 5  # kept of one answer
PRIMER_FOLLOW_UPS = 10  # kept of the first, which opens the walk
ANSWER_CHARACTERS = 20_000
KEEP_DAYS = 30  # a session that no one touched for so long is forgotten
SPARE = 40  # tokens for a note on what was found and for the marks of a longer fence
PRIMER_REPORTS, NEAR = 4, 0.6  # reports before the first step, at least so near to the best one
PRIMER_SHARE = 0.6  # of the budget for them


# ---- answers -------------------------------------------------------------------------------------


def ranked_items(snapshot: Snapshot, walk: Walk) -> tuple[list[packing.Item], set[str]]:
    """The answers as items, best first, and the ids named in them that the index does not have."""
    best, items = ranked(walk), []
    known, removed = references(snapshot, [node["answer"] for node, _ in best])
    for node, others in best:
        score = "no score" if node["score"] is None else f"score {node['score']:g}"
        lines = [f"### {packing.one_line(node['query'], 300)} ({score})"]
        lines.append(marked(node["answer"], removed))
        aliases = cited_aliases(node["answer"])
        if others:
            listed = "; ".join(packing.one_line(other, 200) for other in others)
            lines.append(f"Also answers: {listed}")
        if not aliases and node["context"]:
            lines.append(
                f"The answer cites nothing; its context had {', '.join(node['context'][:5])}."
            )
        places = {known[alias].id: known[alias] for alias in aliases if alias in known}
        text, also = "\n".join(lines), tuple(places.values())
        items.append(packing.Item(node["id"], text, section="Answers", also=also))
    return items, removed


def ranked(walk: Walk) -> list[tuple[Mapping[str, Any], list[str]]]:
    """Answered nodes best first, each with the questions whose answers say nearly the same."""
    nodes: list[dict[str, Any]] = [
        {**walk.graph.nodes[id], "id": id} for id in walk.with_status("answered")
    ]
    nodes.sort(
        key=lambda node: (node["score"] is None, -(node["score"] or 0.0), node["depth"], node["id"])
    )
    found: list[tuple[Mapping[str, Any], list[str]]] = []
    for node in nodes:
        bag = words(node["answer"])
        for other, queries in found:
            if other["answer"] == node["answer"] or near(bag, words(other["answer"])):
                queries.append(node["query"])
                break
        else:
            found.append((node, []))
    return found


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


def marked(answer: str, removed: set[str]) -> str:
    """The answer with what it cites and the index no longer has marked as gone."""

    def mark(part: re.Match[str]) -> str:
        return ALIAS.sub(
            lambda match: f"{match[0]} (gone)" if match[0] in removed else match[0], part[0]
        )

    return BRACKETS.sub(mark, answer)


# ---- a session -----------------------------------------------------------------------------------


class Drift:
    """One session: `Drift(snapshot, path).start(query)`, `.step(...)` per node, `.finish()`."""

    def __init__(self, snapshot: Snapshot, path: Path) -> None:
        self.snapshot = snapshot
        self.path = path
        self.id = path.stem

    def start(
        self,
        query: str,
        *,
        depth: int = DEPTH,
        breadth: int = BREADTH,
        max_nodes: int = NODES,
        max_tokens: int = DEFAULT_TOKENS,
    ) -> DriftResult:
        """Open the session with the primer over the best-rated reports. A session that exists
        already continues."""
        budget, note = packing.clamp_budget(max_tokens, DEFAULT_TOKENS)
        walk = self.begin(query, depth=depth, breadth=breadth, max_nodes=max_nodes)
        if walk.graph.nodes[walk.root]["status"] != "frontier":
            notes = ["This session had been started before; it goes on."]
            return self._next(walk, "", "", budget, notes)
        return self._show(walk, walk.root, "", budget, [note])

    def begin(
        self, query: str, *, depth: int = DEPTH, breadth: int = BREADTH, max_nodes: int = NODES
    ) -> Walk:
        """Write the first event of the session, unless the session has begun."""
        query = drift_state.clean_query(query)
        if not query:
            what = "the query is empty"
            raise BadInput(what, 'Ask something, e.g. drift_search(query="How did A come to B?")')
        walk = Walk(sessions.read(self.path))
        if walk.header:
            return self._own(walk)
        limits = {"depth": depth, "breadth": breadth, "max_nodes": max_nodes}
        manifest = self.snapshot.manifest
        place = {"corpus": manifest.corpus, "generation": manifest.generation}
        sessions.append(self.path, {"op": "start", "query": query, **place, **limits})
        return self.walk()

    def step(
        self,
        node_id: str,
        answer: str = "",
        score: object = None,
        follow_ups: object = (),
        prune: object = (),
        open_next: object = "",
        *,
        max_tokens: int = DEFAULT_TOKENS,
    ) -> DriftResult:
        """Record an answer to a node and open the next node.

        `open_next` is "" for the best frontier node, the id of a node, or "none". Without
        answer, score, follow-ups and dropped nodes, the node `node_id` itself is opened. The
        same call twice changes nothing more."""
        budget, note = packing.clamp_budget(max_tokens, DEFAULT_TOKENS)
        walk = self.walk()
        node_id = self.known(walk, node_id)
        text = str(answer or "").strip()
        answer = text[:ANSWER_CHARACTERS]
        value, unread = drift_state.read_score(score)
        most = PRIMER_FOLLOW_UPS if node_id == walk.root else FOLLOW_UPS
        queries, more = drift_state.read_follow_ups(follow_ups, most)
        pruned = [self.known(walk, id) for id in _listed(prune)]
        notes = [note, unread, more]
        if len(text) > len(answer):
            notes.append(f"Of the answer the first {ANSWER_CHARACTERS:,} characters are kept.")
        # before anything is written: a call that fails has done nothing
        chosen = self._chosen(walk, open_next)
        if not answer and value is None and not queries and not pruned and not chosen:
            return self._show(walk, node_id, "", budget, notes)
        if value is not None and not answer:
            why = "a score belongs to an answer, and none was given."
            notes.append(f"The score was not recorded: {why}")
        _, removed = references(self.snapshot, [answer])
        if removed:
            listed = ", ".join(sorted(removed)[:10])
            notes.append(f"Not in the index: {listed}. Cite ids as they stand in the context.")
        last = walk.steps.get(node_id, {})
        event = {"answer": answer, "score": value, "prune": pruned}
        again = all(last.get(name) == field for name, field in event.items())
        if not again or (queries and queries != last["follow_ups"]):
            if answer and not queries:
                queries = propose(self.snapshot, walk, node_id, answer)
                proposed = "No follow-ups were given, so the graph proposed some."
                notes += [proposed] if queries else []
            if answer and walk.graph.nodes[node_id]["status"] == "answered":
                notes.append(f"Node {node_id} had an answer; this one replaces it.")
            before = set(walk.graph.nodes)
            walk = self.record(node_id, answer, value, queries, pruned)
            merged = len(queries) - len(set(walk.graph.nodes) - before)
            if merged > 0 and walk.graph.nodes[node_id]["depth"] < walk.header["depth"]:
                notes.append(
                    f"{counted(merged, 'follow-ups')} repeated what is there: linked, not asked again."
                )
        return self._next(walk, node_id, chosen, budget, notes)

    def go_on(
        self, after: str, open_next: object = "", *, max_tokens: int = DEFAULT_TOKENS
    ) -> DriftResult:
        """Open what comes after a node that was answered."""
        budget, note = packing.clamp_budget(max_tokens, DEFAULT_TOKENS)
        walk = self.walk()
        return self._next(walk, after, self._chosen(walk, open_next), budget, [note])

    def record(
        self,
        id: str,
        answer: str,
        score: float | None,
        queries: Sequence[str],
        pruned: Sequence[str] = (),
        by: str = "",
    ) -> Walk:
        """Write an answer with its follow-ups and the nodes that it drops; gives the state after
        it."""
        answered = {"node": id, "answered": bool(answer), "answer": answer, "score": score}
        event = {"op": "step", **answered, "follow_ups": list(queries), "prune": list(pruned)}
        sessions.append(self.path, event | ({"by": by} if by else {}))
        return self.walk()

    def prune(self, id: str) -> None:
        self.record(id, "", None, (), [id])

    def finish(self, *, max_tokens: int = DEFAULT_TOKENS) -> DriftResult:
        """The answers, best first, repeats merged, references checked. The session stays open."""
        budget, note = packing.clamp_budget(max_tokens, DEFAULT_TOKENS)
        walk = self.walk()
        result = self.state(walk, DriftResult(session_id=self.id), shown=3)
        result.done = self.over(walk)
        notes = [note, self.moved(walk)]
        query = packing.one_line(walk.header["query"], 300)
        items, removed = ranked_items(self.snapshot, walk)
        waiting = [*(walk.frontier() if self.budget_left(walk) else []), *walk.with_status("open")]
        if removed:
            notes.append(f"Not in the index: {', '.join(sorted(removed)[:10])}.")
        if not items:
            result.state, result.done = "not_found", False
            result.text = f"No node of this session has an answer yet. Question: {query}"
            first = walk.with_status("open") or walk.frontier() or [walk.root]
            result.next_call = self._call(first[0])
        elif not result.done:
            notes.append(f"{counted(len(waiting), 'questions')} still waiting for an answer.")
            result.next_call = f'drift_step(session_id="{self.id}", node_id="{waiting[0]}")'
        result.hint = " ".join(filter(None, notes))
        if not items:
            return finish(result, budget)
        counts = f"{counted(len(items), 'answers')} from {counted(result.answered, 'answered questions')}, best first."
        sections, intro = [packing.Section("Answers", items, 1.0)], f"# {query}\n{counts}"
        return compose(result, sections, budget, intro=intro)

    def walk(self) -> Walk:
        """The state as it is on disk now. NotFound when no session was started there."""
        walk = Walk(sessions.read(self.path))
        if not walk.header:
            what = f"there is no session {self.id[:60]!r}"
            raise NotFound(what, 'Start one with drift_search(query="...")')
        return self._own(walk)

    def _own(self, walk: Walk) -> Walk:
        """Ids mean nothing in another corpus than the one that a session began in."""
        began, here = walk.header["corpus"], self.snapshot.manifest.corpus
        if began != here:
            raise BadInput(
                f"session {self.id[:60]} belongs to corpus {began!r}, not to {here!r}",
                f"Open it with corpus {began!r}, or start another with drift_search(query=...)",
            )
        return walk

    # ---- opening a node --------------------------------------------------------------------------

    def _chosen(self, walk: Walk, open_next: object) -> str:
        """ "" for the best node, "none", or the id of one."""
        asked = str(open_next if open_next is not None else "").strip()
        if asked.casefold() in ("none", "no", "false"):
            return "none"
        return "" if asked.casefold() in ("", "best", "true", "yes") else self.known(walk, asked)

    def _next(
        self, walk: Walk, after: str, chosen: str, budget: int, notes: list[str]
    ) -> DriftResult:
        """Open the chosen node, or the best frontier node; the one that this answer opened before,
        when the call is repeated."""
        if not chosen:
            nodes, waiting = walk.graph.nodes, walk.with_status("open")
            again = [id for id in waiting if after and nodes[id]["after"] == after]
            frontier = walk.frontier() if self.budget_left(walk) else []
            best = again or frontier or [id for id in waiting if id != after]
            chosen = best[0] if best else "none"
        if chosen == "none":
            return self._reply(walk, budget, notes)
        return self._show(walk, chosen, after, budget, notes)

    def _show(self, walk: Walk, id: str, after: str, budget: int, notes: list[str]) -> DriftResult:
        """The context of a node, and what the agent is asked to do with it."""
        node = walk.graph.nodes[id]
        if node["status"] == "pruned":
            raise BadInput(f"node {id} was pruned", f"Open another: {self._open_list(walk)}")
        if node["status"] == "frontier" and not self.budget_left(walk):
            return self._reply(walk, budget, [*notes, "The budget of this session is spent."])
        primer = id == walk.root
        prompt = prompts.load("drift_primer" if primer else "drift_step")
        intro = prompt.substitute(question=walk.header["query"], node=id, node_query=node["query"])
        shown = 3 if budget < 2_000 else 8
        notes = [*notes, context.late(self.snapshot)] if primer else notes  # it shows reports
        # What stands beside the context, measured: a host that shows text alone needs the next call.
        beside = self.state(walk, DriftResult(session_id=self.id, open_node=id, text=intro), shown)
        beside.next_call, beside.hint = (
            self._call(id),
            " ".join(filter(None, [*notes, self.moved(walk)])),
        )
        room = max(budget - packing.outgoing(beside) - SPARE, 200)
        found = self._context(node["query"], room, primer)
        if node["status"] == "frontier":
            ids = [citation.id for citation in found.citations]
            walk = self.opened(id, ids, found.tokens, after)
        result = self.state(walk, DriftResult(session_id=self.id, open_node=id), shown)
        result.text = f"{intro}\n\n{found.text}"
        result.citations, result.truncated = found.citations, found.truncated
        result.next_call = self._call(id)
        if found.state == "not_found":
            advice = "prune it or answer that it is not known."
            notes = [*notes, f"Nothing was found for this question; {advice}"]
        result.hint = " ".join(filter(None, [*notes, self.moved(walk)]))
        return finish(result, budget)

    def opened(self, id: str, ids: Sequence[str], tokens: int, after: str = "") -> Walk:
        """Write that a node was opened with these sources before it."""
        event = {"op": "open", "node": id, "after": after, "context": list(ids), "tokens": tokens}
        sessions.append(self.path, event)
        return self.walk()

    def _context(self, query: str, budget: int, primer: bool) -> DriftResult:
        """Primer: best-rated reports, then text. Else a local search, nearly all of it text."""
        result = DriftResult()
        near = self._near_reports(query) if primer else []
        items = self._report_items(query, near) if primer else []
        if items and (share := int(budget * PRIMER_SHARE)):
            sections = [packing.Section("Reports", items, 1.0)]
            result = compose(result, sections, share)
        budget = max(budget - result.tokens, 200)
        found = local_search(self.snapshot, query, max_tokens=budget)
        # Topics of the highest level stand there for any question: they are not what was found.
        nothing = found.state == "not_found" and not near
        sources = f"## Sources\n{found.text}" if found.citations else found.text
        result.text = "\n\n".join(filter(None, [result.text, sources]))
        result.citations, result.truncated = found.citations, found.truncated
        result.tokens += found.tokens
        result.state = "not_found" if nothing else "context"
        return result

    def _near_reports(self, query: str) -> list[reports.Rated]:
        rated, _ = reports.select(self.snapshot, query)
        return [
            report for report in rated[:PRIMER_REPORTS] if report.rating >= NEAR * rated[0].rating
        ]

    def _report_items(self, query: str, near: Sequence[reports.Rated]) -> list[packing.Item]:
        first = reports.opening(self.snapshot, query, near, PRIMER_REPORTS + reports.TOP)
        rows = self.snapshot.served("reports", [report.id for report in first])
        names, _ = context.resolve_references(self.snapshot, [row["summary"] for row in rows])
        items = []
        for row in rows:
            summary = packing.one_line(packing.short_references(row["summary"], names), 360)
            title = packing.one_line(row["title"], 120)
            items.append(packing.Item(f"c{row['n']}", f"- [c{row['n']}] {title}: {summary}"))
        return items

    # ---- results ---------------------------------------------------------------------------------

    def _reply(self, walk: Walk, budget: int, notes: list[str]) -> DriftResult:
        """The state alone: nothing was opened."""
        result = self.state(walk, DriftResult(session_id=self.id), shown=8)
        result.done, frontier = self.over(walk), walk.frontier()
        if result.done:
            why = "The budget is spent" if frontier else "The frontier is empty"
            result.text = f"{why}; answered: {counted(result.answered, 'questions')}."
            result.next_call = f'drift_step(session_id="{self.id}", finish=true)'
        else:
            first = (frontier or walk.with_status("open"))[0]
            counts = f"{result.answered} answered, {len(frontier)} to open"
            result.text = f"Recorded. {counts}:\n{walk.to_markdown()}"
            result.next_call = f'drift_step(session_id="{self.id}", node_id="{first}")'
        result.hint = " ".join(filter(None, [*notes, self.moved(walk)]))
        return finish(result, budget)

    def over(self, walk: Walk) -> bool:
        """Nothing is open, and nothing is left that could be opened."""
        return not walk.with_status("open") and (not walk.frontier() or not self.budget_left(walk))

    def state(self, walk: Walk, result: DriftResult, shown: int) -> DriftResult:
        names = ("parent", "query", "kind", "status")
        for id in walk.frontier()[:shown]:
            facts = {name: walk.graph.nodes[id][name] for name in names}
            result.frontier.append(DriftNode(id=id, score=round(walk.priority(id), 3), **facts))
        result.answered = len(walk.with_status("answered"))
        result.budget_left = self.budget_left(walk)
        return result

    def budget_left(self, walk: Walk) -> int:
        spent = walk.tokens() >= SESSION_TOKENS * walk.header["max_nodes"]
        return 0 if spent else walk.budget_left()

    def _call(self, id: str) -> str:
        return f'drift_step(session_id="{self.id}", node_id="{id}", answer="...", score=0-100, follow_ups=["..."])'

    def moved(self, walk: Walk) -> str:
        then, now = walk.header["generation"], self.snapshot.manifest.generation
        sentences = []
        if then != now:
            sentences.append(
                f"The index has changed since this session began (generation {then} to {now})."
            )
        if walk.damaged:
            what = counted(walk.damaged, "records")
            sentences.append(
                f"{what} of this session cannot be read and {'is' if walk.damaged == 1 else 'are'} left out."
            )
        return " ".join(sentences)

    def known(self, walk: Walk, id: object) -> str:
        """The id of a node, also from a prefix or in brackets."""
        asked = str(id).strip().strip("[]`'\" ")
        if asked in walk.graph:
            return asked
        ids = [node_id for node_id in walk.graph if len(asked) >= 6 and node_id.startswith(asked)]
        if len(ids) == 1:
            return ids[0]
        known = f"Known to go on with: {self._open_list(walk)}"
        raise NotFound(f"there is no node {asked[:40]!r} in session {self.id}", known)

    def _open_list(self, walk: Walk) -> str:
        ids = [*walk.with_status("open"), *walk.frontier()][:8]
        none = f'none is open, so call drift_step(session_id="{self.id}", finish=true)'
        return "; ".join(ids) or none


def _listed(value: object) -> list[str]:
    """Ids as a list, from a list, a JSON list or words, also inside of a list."""
    text = " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value or "")
    return [word for word in re.split(r"[\s,;\[\]\"']+", text) if word]


# ---- a session as data ---------------------------------------------------------------------------

FORMS = ("tree", "json", "mermaid")
ANSWER = 300  # characters of an answer in a tree
# What is tried until it fits: characters of an answer, nodes (0: all).
SHORTER = ((WHOLE, 0), (1_000, 0), (300, 120), (120, 60), (0, 30), (0, 12), (0, 4))


def export(session: Drift, form: str = "tree") -> str:
    """The whole session as "tree", "json" or "mermaid". BadInput for another form, NotFound if
    there is no session."""
    form, walk = checked(form), session.walk()
    return _text(session, walk.shortened(_gone(session, walk), WHOLE, 0), form)


def note_text(session: Drift, answer: str) -> str:
    """The text that a note keeps of a session: the answer (if it is empty, the three best answers)
    and the tree of questions. NotFound if no node has an answer."""
    walk = session.walk()
    best = [node["answer"] for node, _ in ranked(walk)]
    if not best:
        what = f"no node of session {session.id} has an answer yet"
        raise NotFound(what, "Answer one with drift_step before it is kept as a note")
    body = answer.strip() or "\n\n".join(best[:3])
    text = f"{body}\n\n## Questions\n\n{walk.to_markdown()}"
    return marked(text, references(session.snapshot, [text])[1])


def view(session: Drift, form: str, *, max_tokens: int = DEFAULT_TOKENS) -> DriftResult:
    """The session in this form, within `max_tokens`: answers are shortened first, then the last
    nodes are left out."""
    form = checked(form)
    budget, note = packing.clamp_budget(max_tokens, DEFAULT_TOKENS)
    walk = session.walk()
    removed = _gone(session, walk)
    result = session.state(walk, DriftResult(session_id=session.id), shown=0)
    result.done = session.over(walk)
    notes = [note, session.moved(walk)]
    if removed:
        listed = ", ".join(sorted({alias for ids in removed.values() for alias in ids})[:10])
        notes.append(f"Not in the index any more: {listed}.")
    for longest, most in SHORTER:
        left_out = max(0, len(walk.graph) - most) if most else 0
        result.truncated = longest != WHOLE or bool(left_out)
        short = [f"{counted(left_out, 'nodes')} left out."] if left_out else []
        short += ["Answers are shortened."] if longest != WHOLE and form != "mermaid" else []
        result.hint = " ".join(filter(None, [*notes, *short]))
        shown = walk.shortened(removed, longest, most)
        result.text, result.tokens = _text(session, shown, form, result.hint), budget
        if packing.size(result)[0] <= budget:
            return finish(result, budget)
    result.text = f"The session does not fit into {budget} tokens as {form}."
    result.hint = " ".join(filter(None, [*notes, "Give more max_tokens."]))
    return finish(result, budget)


def checked(form: str) -> str:
    named = form.strip().casefold()
    if named not in FORMS:
        raise BadInput(f"a session has no form {form[:40]!r}", f"Use one of {', '.join(FORMS)}")
    return named


def _text(session: Drift, shown: Walk, form: str, hint: str = "") -> str:
    """One form of what is shown, the hint inside: behind JSON and charts it would break them."""
    if form == "mermaid":
        return shown.to_mermaid() + (f"\n  %% {hint}" if hint else "")
    if form == "json":
        now = session.snapshot.manifest.generation
        shown.header = {**shown.header, "id": session.id, "generation_now": now}
        shown.header |= {"hint": hint} if hint else {}
        return shown.to_json()
    for _, node in shown.graph.nodes(data=True):
        node["answer"] = marked(packing.one_line(node["answer"], ANSWER), set(node["gone"]))
    return f"# {packing.one_line(shown.header['query'], 300)}\n{shown.to_markdown()}"


def _gone(session: Drift, walk: Walk) -> dict[str, list[str]]:
    """By node: the ids that its answer cites, or that it was shown, and that are gone."""
    nodes = walk.graph.nodes(data=True)
    named = {id: [*cited_aliases(node["answer"]), *node["context"]] for id, node in nodes}
    every = sorted({alias for ids in named.values() for alias in ids})
    _, removed = references(session.snapshot, [f"[{alias}]" for alias in every])
    lost = {
        id: [alias for alias in dict.fromkeys(ids) if alias in removed] for id, ids in named.items()
    }
    return {id: ids for id, ids in lost.items() if ids}
