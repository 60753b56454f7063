"""DRIFT by a model: it answers the nodes of a session in place of an agent, in the same journal.

The primer is one question over community reports. Then the model answers the best nodes of each depth,
each over the passages found for it. At last the answers are joined to one. What was answered and opened
says how far a walk is, so a session that was stopped goes on where it was, and an agent may take over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as NotYet
from contextlib import contextmanager
from dataclasses import astuple

from graphrag_mcp.llm import prompts
from graphrag_mcp.llm.asker import Ask, Asker
from graphrag_mcp.llm.protocols import Message
from graphrag_mcp.packing.budget import fill, one_line, shorten
from graphrag_mcp.packing.citations import data, example, numbered_brackets, restored
from graphrag_mcp.packing.page import finish
from graphrag_mcp.query import answer as answers
from graphrag_mcp.query import drift, model_replies, rank
from graphrag_mcp.query.context import note
from graphrag_mcp.query.drift import FOLLOW_UPS, PRIMER_FOLLOW_UPS, Drift, Limits
from graphrag_mcp.query.drift_state import Walk
from graphrag_mcp.query.follow_ups import propose
from graphrag_mcp.query.hits import Source
from graphrag_mcp.query.model_replies import Node
from graphrag_mcp.query.request import ANY_FORM, AnswerOptions
from graphrag_mcp.query.sections import sections_of
from graphrag_mcp.store import sessions
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.terms import content_id
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.types import DriftResult

NODES_OF_A_DEPTH = 7  # with primer and reduction at most 23 calls at the usual depth of 3
REPORT_TOKENS = 8_000  # of reports for the primer
STEP_TOKENS = 5_000  # of context for one node
STEP_SHARES = {"Sources": 0.9, "Reports": 0.1}
REDUCE_TOKENS = 12_000  # of answers for the last prompt
LOW = 10  # a score below which an answer has found nothing to ask more about
NO_MODEL = "mode auto needs a model (set GRAPHRAG_MCP_CHAT_MODEL), so this is mode step: you answer each node."
YOURSELF = "No model is configured: do it yourself, or set GRAPHRAG_MCP_CHAT_MODEL."
TIME_IS_UP = "Time is up; the walk goes on with the same call, and nothing answered is asked again."


class Stopped(Exception):
    """The walk cannot go on: the model gave no answer, or there is no time (reason "")."""


def session_name(snapshot: Snapshot, query: str, limits: Limits) -> str:
    """The same question over the same index is the same session, so asking again goes on with it."""
    manifest = snapshot.manifest
    parts = manifest.corpus, manifest.generation, query.strip(), *astuple(limits)
    return f"drift-{content_id('auto', *map(str, parts))[:12]}"


def run(
    session: Drift, query: str, asker: Asker, limits: Limits | None = None, options: AnswerOptions = ANY_FORM
) -> DriftResult:
    """The walk, as far as `options.seconds` allow: then state `partial`; the same call goes on."""
    walk = session.begin(query, limits or Limits())
    left = answers.deadline(options.seconds)
    try:
        with _accounted(session, asker):
            _answer(session, asker, [walk.root], left)
            for level in range(1, walk.header["depth"] + 1):
                _answer(session, asker, _nodes_of(session.walk(), level), left)
    except Stopped as stopped:
        return _stopped(session, str(stopped))
    result = reduce(session, asker, options, left())
    result.done = result.state == "answered"  # an agent may go on all the same
    if result.done and (unanswered := session.walk().with_status("open")):
        listed = ", ".join(unanswered[:5])
        note(result, f"{len(unanswered)} questions got no answer from the model: {listed}.")
    return finish(result, session.budget)


def _nodes_of(walk: Walk, depth: int) -> list[str]:
    """The nodes of a depth to answer: those that were opened, and the best of the frontier, NODES_OF_A_DEPTH
    with those that are done. What follows from an answer that found nothing is not asked."""
    nodes = walk.graph.nodes

    def in_vain(id: str) -> bool:
        score = nodes[nodes[id]["parent"]]["score"]
        return depth > 1 and score is not None and score < LOW

    def of_depth(ids: Sequence[str]) -> list[str]:
        return [id for id in ids if nodes[id]["depth"] == depth]

    opened = of_depth(walk.with_status("open"))
    done = of_depth(walk.with_status("answered", "pruned"))
    frontier = [id for id in of_depth(walk.frontier()) if not in_vain(id)]
    room = min(NODES_OF_A_DEPTH, walk.header["breadth"]) - len(opened) - len(done)
    return [*opened, *frontier[: max(min(room, walk.budget_left()), 0)]]


@contextmanager
def _accounted(session: Drift, asker: Asker) -> Iterator[answers.Meter]:
    """Write into the journal what is spent meanwhile, when it is anything."""
    meter = answers.Meter(asker)
    try:
        yield meter
    finally:
        if (usage := meter.usage())["calls"]:
            sessions.append(session.path, {"op": "asked", "usage": usage})


# ---- questions to the model ----------------------------------------------------------------------


def _answer(session: Drift, asker: Asker, ids: Sequence[str], left: Callable[[], float]) -> None:
    """Answer the nodes at once, in the seconds that are `left` (0 for no limit). A question for which nothing
    is found is pruned."""
    walk, pending = session.walk(), []
    for id in ids:
        status = walk.graph.nodes[id]["status"]
        if status in ("answered", "pruned"):
            continue
        text, names = _prompt(session.snapshot, walk, id)
        if not names:
            if id == walk.root:
                raise Stopped("nothing was found to begin with")
            session.record(id, "", None, (), [id])
            continue
        if status == "frontier":
            session.opened(id, list(names.values()))
        ask: Ask[Node | None] = Ask(
            "drift_step",
            (Message("user", text),),
            model_replies.read_node,
            lambda: None,
            model_replies.NODE_SCHEMA,
            if_cut="shown",
        )
        pending.append((id, names, asker.start(answers.asked(asker, ask))))
    failures, late = [], False
    for id, names, future in pending:
        try:
            reply = future.result(left() or None)
        except (NotYet, CancelledError):
            late = True
            continue
        node = reply.value
        if node is None:
            failures.append(reply.reason or "no reply")
            continue
        primer, text = id == walk.root, restored(node.answer, names).text
        queries = node.follow_up_queries[: PRIMER_FOLLOW_UPS if primer else FOLLOW_UPS]
        if primer and not queries:
            queries = propose(session.snapshot, session.walk(), id, text)
        session.record(id, text, node.score, queries, by=reply.by)
    if late:
        raise Stopped("")
    if pending and len(failures) == len(pending):
        raise Stopped(failures[0])


def _prompt(snapshot: Snapshot, walk: Walk, id: str) -> tuple[str, dict[str, str]]:
    """The prompt of a node over numbered rows, and the stored ids of these numbers; none where nothing
    was found."""
    question, query = walk.header["query"], walk.graph.nodes[id]["query"]
    if id == walk.root:
        sections = [answers.reports_section(snapshot, question)]
        text, names = answers.page_text(sections, fill(sections, REPORT_TOKENS).taken)
        if names:
            prompt = prompts.load("drift_auto_primer", snapshot.folder)
            shown = {"reports": data(text), "example": example(names)}
            return prompt.substitute(question=data(question), **shown), names
    found = rank.retrieve(snapshot, query)
    if not found.passages:
        return "", {}
    sections = sections_of(Source(snapshot, found), STEP_TOKENS, STEP_SHARES)
    text, names = answers.page_text(sections, fill(sections, STEP_TOKENS).taken)
    prompt, asking = prompts.load("drift_auto_step", snapshot.folder), data(query)
    shown = {"context": data(text), "example": example(names)}
    return prompt.substitute(question=data(question), node_query=asking, **shown), names


# ---- one node, one answer ------------------------------------------------------------------------


def answer_node(
    session: Drift, node_id: str, asker: Asker | None, open_next: object = "", seconds: float = 0.0
) -> DriftResult:
    """Let the model answer a node, and open the next node. If no model is configured, the node is
    shown."""
    walk = session.walk()
    if not (id := session.meant(walk, node_id, to_open=True)):
        return session.go_on("", "none")
    if walk.graph.nodes[id]["status"] in ("pruned", "dropped"):
        return session.step(id)  # an error that says what else is open
    why = YOURSELF
    if asker is not None and asker.may_answer("drift_step"):
        try:
            with _accounted(session, asker) as meter:
                _answer(session, asker, [id], answers.deadline(seconds))
            return _answered(session, id, meter, open_next)
        except Stopped as stopped:
            why = answers.failed(str(stopped)) if str(stopped) else answers.NOT_FINISHED
    result = session.step(id)
    note(result, why)
    return finish(result, session.budget)


def _answered(session: Drift, id: str, meter: answers.Meter, open_next: object) -> DriftResult:
    """What the model said of a node, in a quarter of the room, before the next node."""
    node = session.walk().graph.nodes[id]
    if node["status"] == "pruned":
        result = session.go_on(id, open_next)
        note(result, "Nothing was found for this question; it was pruned.")
        return finish(result, session.budget)
    score = "no score" if node["score"] is None else f"score {node['score']:g}"
    head = f"{node['by']} answered `{id}` ({score}):\n{shorten(node['answer'], session.budget // 4)}"
    result = session.go_on(id, open_next, beside=2 * count_tokens(head))
    result.answer, result.method, result.usage = node["answer"], node["by"], meter.usage()
    result.text = f"{head}\n\n{result.text}"
    return finish(result, session.budget)


def reduce(session: Drift, asker: Asker | None, options: AnswerOptions = ANY_FORM, seconds: float = 0.0) -> DriftResult:
    """The answers of a session, with an answer before them in which the model joins them. If no
    model answers, the answers alone."""
    walk, budget = session.walk(), session.budget
    best = drift.best_answers(walk)
    if asker is None or not asker.may_answer("answer") or not best:
        result = session.finish()
        note(result, YOURSELF if best else "")
        return finish(result, budget)
    names: dict[str, str] = {}
    blocks = (
        f"### {one_line(found.node['query'], 300)}\n{numbered_brackets(found.node['answer'], names)}" for found in best
    )
    rows = "\n\n".join(answers.fitting(blocks, REDUCE_TOKENS))
    back = {local: alias for alias, local in names.items()}
    asking = asker, walk.header["query"], rows, back, options
    work = answers.answer(*asking, words=answers.word_limit(budget), folder=session.snapshot.folder)
    with _accounted(session, asker):
        reply = answers.waited(asker, work, seconds)
    if reply is None or not reply.by:
        return _stopped(session, "" if reply is None else reply.reason)
    walk = session.walk()
    result = session.state(walk, DriftResult(session_id=session.id, usage=walk.usage), shown=0)
    stages = sorted(walk.usage.get("by_stage", {}).items())
    listed = ", ".join(f"{kind} {counts.get('calls', 0)}" for kind, counts in stages)
    result.hint = f"{walk.usage.get('calls', 0)} model calls ({listed})." if listed else ""
    _, removed = drift.references(session.snapshot, [found.node["answer"] for found in best])
    note(result, drift.not_there(removed))
    return answers.answered(result, reply, budget, snapshot=session.snapshot)


def _stopped(session: Drift, reason: str) -> DriftResult:
    """The walk as far as it is: out of time (reason ""), or the model does not answer."""
    walk = session.walk()
    if reason and not walk.with_status("answered"):  # nothing to show but where an agent may begin
        result = session.step(walk.root)
    else:
        result = session.finish()
    result.done, result.usage = False, walk.usage
    if reason:
        note(result, answers.failed(reason).replace("answer from it", "go on with drift_step"))
    else:
        result.state = "partial"
        header = walk.header
        limits = ", ".join(f"{name}={header[name]}" for name in ("depth", "breadth", "max_nodes"))
        query = header["query"].replace("\\", "\\\\").replace('"', '\\"')
        arguments = f'query="{query}", mode="auto", corpus="{header["corpus"]}", {limits}'
        result.next_call = f"drift_search({arguments})"
        note(result, TIME_IS_UP)
    return finish(result, session.budget)
