"""DRIFT by a model: primer, rounds of local questions, one answer, in the same journal that agents
write.

A session that was stopped goes on where it was, and an agent may take over. Reports go into as few
folds as a model reads well, questions that ask nearly the same are one node, nodes whose contexts
are mostly the same passages are asked together, each round takes a share of what is left of 8 calls
per level of depth, and it ends when its scores are saturated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest

from graphrag_mcp.llm import prompts
from graphrag_mcp.llm.asker import Answer as Reply
from graphrag_mcp.llm.asker import Ask, Asker
from graphrag_mcp.llm.protocols import Message
from graphrag_mcp.packing.budget import Filled, Section, clamp_budget, fill, finish, one_line
from graphrag_mcp.packing.citations import data, example, numbered_brackets, restored
from graphrag_mcp.query import answer as answers
from graphrag_mcp.query import drift, model_replies, rank, reports
from graphrag_mcp.query.context import note
from graphrag_mcp.query.drift import DEFAULT_TOKENS, PRIMER_FOLLOW_UPS, Drift
from graphrag_mcp.query.drift_state import Walk
from graphrag_mcp.query.follow_ups import propose
from graphrag_mcp.query.hits import Source
from graphrag_mcp.query.request import ANY_FORM, AnswerOptions
from graphrag_mcp.query.sections import sections_of
from graphrag_mcp.store import sessions
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.terms import content_id
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.types import DriftResult

CALLS_PER_LEVEL = 8  # 24 calls at the usual depth of 3, primer and reduction among them
PRIMER_REPORTS, FOLDS, FOLD_TOKENS = 20, 5, 8_000
REPORT_CHARACTERS = 4_000  # of one report in a fold
STEP_TOKENS = 5_000  # of context for one node
STEP_SHARES = {"Sources": 0.9, "Reports": 0.1}
JOINT_TOKENS, TOGETHER = 7_000, 5  # of context for nodes that one prompt asks about, and how many
REDUCE_TOKENS = 12_000  # of answers for the last prompt
LOW = 10  # a round without a score from here on has found nothing
NO_MODEL = "mode auto needs a model (set GRAPHRAG_MCP_CHAT_MODEL), so this is mode step: you answer each node."
NOT_CONFIGURED = "set GRAPHRAG_MCP_CHAT_MODEL."
TIME_IS_UP = "Time is up; the walk goes on with the same call, and nothing answered is asked again."

Nodes = tuple[model_replies.Node | None, ...]
Left = Callable[[], float]  # seconds that are left, 0 for no limit


class Stopped(Exception):
    """The walk cannot go on: the model gave no answer, or there is no time (reason "")."""


@dataclass(frozen=True, slots=True)
class Pending:
    """Nodes that a model is answering with one reply, and how the reply's ids are to be read."""

    ids: Sequence[str]
    names: dict[str, str]
    future: Future[Reply[Nodes]]

    def taken(self, left: Left) -> Reply[Nodes]:
        try:
            return self.future.result(left() or None)
        except (NotYet, CancelledError):
            raise Stopped("") from None


@dataclass(frozen=True, slots=True)
class Context:
    """What was found for a node, as far as it fits into a prompt."""

    id: str
    sections: Sequence[Section]
    page: Filled

    def sources(self) -> list[str]:
        items = self.page.taken.get("Sources", ())
        return [item.citation.id for item in items if item.citation is not None]


def session_name(snapshot: Snapshot, query: str, depth: int, breadth: int, max_nodes: int) -> str:
    """The same question over the same index is the same session, so asking again goes on with it."""
    manifest = snapshot.manifest
    parts = manifest.corpus, manifest.generation, query.strip(), depth, breadth, max_nodes
    return f"drift-{content_id('auto', *map(str, parts))[:12]}"


def run(
    session: Drift,
    query: str,
    asker: Asker,
    *,
    depth: int = 3,
    breadth: int = 20,
    max_nodes: int = 40,
    max_tokens: int = DEFAULT_TOKENS,
    options: AnswerOptions = ANY_FORM,
) -> DriftResult:
    """The walk, as far as `options.seconds` allow: then state `partial`; the same call goes on."""
    walk = session.begin(query, depth=depth, breadth=breadth, max_nodes=max_nodes)
    left = answers.deadline(options.seconds)
    try:
        if walk.graph.nodes[walk.root]["status"] != "answered":
            with _accounted(session, asker):
                _answer_root(session, walk, asker, left)
        for number in range(walk.header["depth"]):
            walk = session.walk()
            if number >= len(walk.rounds):
                chosen = [] if saturated(walk) else _choose(session, walk, number)
                if not chosen:
                    break
                nodes = [id for group in chosen for id in group]
                sessions.append(session.path, {"op": "round", "nodes": nodes, "groups": chosen})
                walk = session.walk()
            left_open = {*walk.with_status("frontier", "open")}
            waiting = [group for group in walk.rounds[number] if not left_open.isdisjoint(group)]
            with _accounted(session, asker):
                _answer_nodes(session, walk, asker, waiting, left)
    except Stopped as stopped:
        return _stopped(session, max_tokens, str(stopped))
    result = reduce(session, asker, max_tokens=max_tokens, options=options, seconds=left())
    result.done = result.state == "answered"  # an agent may go on all the same
    if result.done and (unanswered := session.walk().with_status("open")):
        listed = ", ".join(unanswered[:5])
        note(result, f"{len(unanswered)} questions got no answer from the model: {listed}.")
    return finish(result, clamp_budget(max_tokens, DEFAULT_TOKENS)[0])


@contextmanager
def _accounted(session: Drift, asker: Asker) -> Iterator[answers.Meter]:
    """Write into the journal what is spent meanwhile, when it is anything."""
    meter = answers.Meter(asker)
    try:
        yield meter
    finally:
        if (usage := meter.usage())["calls"]:
            sessions.append(session.path, {"op": "asked", "usage": usage})


# ---- which nodes are asked -----------------------------------------------------------------------


def saturated(walk: Walk) -> bool:
    """Do further rounds promise nothing? So it is if no answer of the last round scores 10, or if
    the last two rounds brought no better score than the rounds before them."""
    best = [walk.graph.nodes[walk.root]["score"] or 0.0]
    for groups in walk.rounds:
        scores = [walk.graph.nodes[id]["score"] or 0.0 for group in groups for id in group]
        best.append(max(scores, default=0.0))
    if len(best) > 1 and best[-1] < LOW:
        return True
    return len(best) > 2 and max(best[-2:]) <= max(best[:-2])


def _choose(session: Drift, walk: Walk, number: int) -> list[list[str]]:
    """The nodes of a round, those at its own depth first, so that the walk gets deep, within the calls
    that are left. Nodes whose contexts are mostly the same passages are one group."""
    depth = walk.header["depth"]
    spent = max(walk.usage.get("calls", 0), 1 + sum(map(len, walk.rounds)))
    left = CALLS_PER_LEVEL * depth - 1 - spent
    room = min(walk.header["breadth"], walk.budget_left())
    calls = min(-(-left // (depth - number)), room)
    if calls <= 0 or session.over(walk):
        return []
    frontier = walk.frontier()[: walk.header["breadth"]]
    of_round = [id for id in frontier if walk.graph.nodes[id]["depth"] == number + 1]
    groups: list[list[Context]] = []
    for id in dict.fromkeys([*of_round, *frontier]):
        if room <= 0:
            break
        found = _context(session, walk, id)
        if found is None:
            session.prune(id)
            continue
        group = _group_of(found, groups)
        if group is None and len(groups) < calls:
            groups.append(group := [])
        if group is not None:
            group.append(found)
            room -= 1
    return [[context.id for context in group] for group in groups]


def _group_of(found: Context, groups: Sequence[list[Context]]) -> list[Context] | None:
    """The first group with room whose best node has more than half of these passages too."""
    sources = set(found.sources())
    for group in groups:
        shared = len(sources & set(group[0].sources()))
        if len(group) < TOGETHER and 2 * shared > len(sources):
            if not fill(_joined([*group, found]), JOINT_TOKENS).more:
                return group
    return None


def _context(session: Drift, walk: Walk, id: str) -> Context | None:
    found = rank.retrieve(session.snapshot, walk.graph.nodes[id]["query"])
    sections = []
    if found.passages:
        source = Source(session.snapshot, found)
        sections = sections_of(source, STEP_TOKENS, STEP_SHARES, graph=False)
    page = fill(sections, STEP_TOKENS)
    return Context(id, sections, page) if any(page.taken.values()) else None


def _joined(contexts: Sequence[Context]) -> list[Section]:
    """The sections of several contexts as one, the best items of each first, each once."""
    sections: dict[str, Section] = {}
    for context in reversed(contexts):
        sections = {section.name: section for section in context.sections} | sections
    joined = []
    for name, first in sections.items():
        taken = zip_longest(*(context.page.taken.get(name, ()) for context in contexts))
        items = {item.id: item for row in reversed([*taken]) for item in reversed(row) if item}
        items_in_order = list(reversed(items.values()))
        joined.append(Section(name, items_in_order, first.share, header=first.header))
    return joined


# ---- questions to the model ----------------------------------------------------------------------


def _ask(
    kind: str, text: str, schema: dict[str, object], several: int = 0
) -> Ask[tuple[model_replies.Node | None, ...]]:
    """A question about one node, or about `several`, of which a missing one is asked for again."""

    def read(reply: str) -> Nodes:
        if several:
            return model_replies.read_nodes(reply, several)
        return (model_replies.read_node(reply),)

    def missing(nodes: Nodes) -> str:
        left = [str(n) for n, node in enumerate(nodes, 1) if node is None]
        return f"question {', '.join(left)} has no answer" if left else ""

    return Ask(
        kind,
        (Message("user", text),),
        read,
        tuple,
        schema,
        if_cut="shown",
        doubt=missing,
        worth=lambda nodes: sum(node is not None for node in nodes),
    )


def _answer_root(session: Drift, walk: Walk, asker: Asker, left: Left) -> None:
    """Answer the root from the best-rated reports, a fold of them in each call."""
    snapshot, query = session.snapshot, walk.header["query"]
    near = reports.select(snapshot, query)[0][:PRIMER_REPORTS]
    first = reports.opening(snapshot, query, near, PRIMER_REPORTS)
    rows = snapshot.served("reports", [report.id for report in first])
    if not rows:
        raise Stopped("there are no community reports to begin with")
    tokens = [count_tokens(answers.report_line(row, REPORT_CHARACTERS)) for row in rows]
    folds = min(FOLDS, max(1, -(-sum(tokens) // FOLD_TOKENS)))
    prompt, pending = prompts.load("drift_auto_primer", snapshot.folder), []
    for fold in (rows[at::folds] for at in range(folds)):
        lines = []
        for n, row in enumerate(fold, 1):
            title = one_line(row["title"], 200).replace("|", "/")
            lines.append(f"{n}|{title}|{answers.report_line(row, REPORT_CHARACTERS)}")
        text = prompt.substitute(reports=data("\n".join(lines)), question=data(query))
        names = {f"c{n}": f"c{row['n']}" for n, row in enumerate(fold, 1)}
        ask = answers.asked(asker, _ask("drift_primer", text, model_replies.PRIMER_SCHEMA))
        pending.append(Pending([walk.root], names, asker.start(ask)))
    replies = [(call.taken(left), call.names) for call in pending]
    nodes = [(node, names) for reply, names in replies for node in reply.value if node]
    if not nodes:
        raise Stopped(next((reply.reason for reply, _ in replies if reply.reason), "no reply"))
    text_of_all = "\n\n".join(restored(node.answer, names).text for node, names in nodes)
    scores = [node.score for node, _ in nodes if node.score is not None]
    rounds = zip_longest(*(node.follow_ups for node, _ in nodes), fillvalue="")
    queries = model_replies.distinct(query for follow_ups in rounds for query in follow_ups)[
        :PRIMER_FOLLOW_UPS
    ]
    walk = session.opened(walk.root, [f"c{row['n']}" for row in rows], sum(tokens))
    queries = queries or tuple(propose(snapshot, walk, walk.root, text_of_all))
    score = round(sum(scores) / len(scores), 2) if scores else None
    by = next(reply.by for reply, _ in replies if reply.value)
    session.record(walk.root, text_of_all, score, queries, by=by)


def _answer_nodes(
    session: Drift, walk: Walk, asker: Asker, groups: Sequence[Sequence[str]], left: Left
) -> None:
    """Answer the nodes at once. A question for which nothing is found is pruned."""
    pending = [
        call for group in groups if (call := _start(session, walk, asker, group)) is not None
    ]
    reasons, late = [], False
    for call in pending:
        try:
            reply = call.taken(left)
        except Stopped:
            late = True
            continue
        if not reply.value:
            reasons.append(reply.reason or "no reply")
        for id, node in zip(call.ids, reply.value, strict=False):
            if walk.graph.nodes[id]["status"] == "answered":  # before the walk was stopped
                continue
            if node is None:  # the model passed over it twice
                session.prune(id)
            else:
                answer_text = restored(node.answer, call.names).text
                session.record(id, answer_text, node.score, node.follow_ups[:5], by=reply.by)
    if late:
        raise Stopped("")
    if pending and len(reasons) == len(pending):
        raise Stopped(reasons[0])


def _start(session: Drift, walk: Walk, asker: Asker, group: Sequence[str]) -> Pending | None:
    """Find the context of some nodes and begin to ask."""
    contexts = [context for id in group if (context := _context(session, walk, id)) is not None]
    for id in {*group} - {context.id for context in contexts}:
        session.prune(id)
    if not contexts:
        return None
    sections = _joined(contexts)
    page = contexts[0].page if len(contexts) == 1 else fill(sections, JOINT_TOKENS)
    rows, names = answers.page_text(sections, page.taken)
    queries = [data(walk.graph.nodes[context.id]["query"]) for context in contexts]
    several = len(contexts) if len(contexts) > 1 else 0
    name, schema, asking = "drift_auto_step", model_replies.STEP_SCHEMA, {"node_query": queries[0]}
    if several:
        listed = "\n".join(f"{n}. {query}" for n, query in enumerate(queries, 1))
        name, schema, asking = "drift_auto_steps", model_replies.STEPS_SCHEMA, {"queries": listed}
    text = prompts.load(name, session.snapshot.folder).substitute(
        context=data(rows), question=data(walk.header["query"]), example=example(names), **asking
    )
    for context in contexts:
        if walk.graph.nodes[context.id]["status"] == "frontier":
            session.opened(context.id, context.sources(), count_tokens(rows) // len(contexts))
    ask = answers.asked(asker, _ask("drift_step", text, schema, several))
    return Pending([context.id for context in contexts], names, asker.start(ask))


# ---- one node, one answer ------------------------------------------------------------------------


def answer_node(
    session: Drift,
    node_id: str,
    asker: Asker | None,
    *,
    open_next: object = "",
    max_tokens: int = DEFAULT_TOKENS,
    seconds: float = 0.0,
) -> DriftResult:
    """Let the model answer a node, and open the next node. If no model is configured, the node is
    shown."""
    budget, _ = clamp_budget(max_tokens, DEFAULT_TOKENS)
    walk = session.walk()
    id = session.known(walk, node_id)
    if asker is None or not asker.may_answer("drift_step"):
        result = session.step(id, max_tokens=budget)
        note(result, f"No model is configured, so answer it yourself, or {NOT_CONFIGURED}")
        return finish(result, budget)
    if walk.graph.nodes[id]["status"] == "pruned":
        return session.step(id)  # an error that says what else is open
    with _accounted(session, asker) as meter:
        why = ""
        try:
            if walk.graph.nodes[id]["by"]:
                pass  # the same call again only shows what comes next
            elif id == walk.root:
                _answer_root(session, walk, asker, answers.deadline(seconds))
            else:
                _answer_nodes(session, walk, asker, [[id]], answers.deadline(seconds))
        except Stopped as stopped:
            late = "The model has not finished; the same call again will have its answer."
            why = answers.failed(str(stopped)) if str(stopped) else late
    node = session.walk().graph.nodes[id]
    if why:
        result = session.step(id, max_tokens=budget)
        note(result, why)
    elif node["status"] == "pruned":
        result = session.go_on(id, open_next, max_tokens=budget)
        note(result, "Nothing was found for this question; it was pruned.")
    else:
        score = "no score" if node["score"] is None else f"score {node['score']:g}"
        head = f"{node['by']} answered `{id}` ({score}):\n{node['answer']}"
        room = max(budget - 2 * count_tokens(head) - 40, 200)
        result = session.go_on(id, open_next, max_tokens=room)
        result.answer, result.method, result.usage = node["answer"], node["by"], meter.usage()
        result.text = f"{head}\n\n{result.text}"
    return finish(result, budget)


def reduce(
    session: Drift,
    asker: Asker | None,
    *,
    max_tokens: int = DEFAULT_TOKENS,
    options: AnswerOptions = ANY_FORM,
    seconds: float = 0.0,
) -> DriftResult:
    """The answers of a session, with an answer before them in which the model joins them. If no
    model answers, the answers alone."""
    budget, _ = clamp_budget(max_tokens, DEFAULT_TOKENS)
    walk = session.walk()
    best = drift.ranked(walk)
    if asker is None or not asker.may_answer("reduce") or not best:
        result = session.finish(max_tokens=budget)
        if best:
            alone = f"do it yourself, or {NOT_CONFIGURED}"
            note(result, f"No model is configured to join them: {alone}")
        return finish(result, budget)
    names: dict[str, str] = {}
    blocks = (
        f"### {one_line(node['query'], 300)}\n{numbered_brackets(node['answer'], names)}"
        for node, _ in best
    )
    rows = "\n\n".join(answers.fitting(blocks, REDUCE_TOKENS, 0))
    folder, back = session.snapshot.folder, {local: alias for alias, local in names.items()}
    asking = asker, walk.header["query"], rows, back, options
    words = answers.word_limit(budget)
    work = answers.answer(*asking, words=words, prompt="drift_reduce", folder=folder)
    with _accounted(session, asker):
        reply = answers.waited(asker, work, seconds)
    if reply is None or not reply.by:
        return _stopped(session, max_tokens, "" if reply is None else reply.reason)
    walk = session.walk()
    result = session.state(walk, DriftResult(session_id=session.id, usage=walk.usage), shown=0)
    stages = sorted(walk.usage.get("by_stage", {}).items())
    listed = ", ".join(f"{kind} {counts.get('calls', 0)}" for kind, counts in stages)
    result.hint = f"{walk.usage.get('calls', 0)} model calls ({listed})." if listed else ""
    result.done = session.over(walk)
    _, removed = drift.ranked_items(session.snapshot, walk)
    if removed:
        note(result, f"Not in the index: {', '.join(sorted(removed)[:10])}.")
    return answers.answered(result, reply, budget, snapshot=session.snapshot)


def _stopped(session: Drift, max_tokens: int, reason: str) -> DriftResult:
    """The walk as far as it is: out of time (reason ""), or the model does not answer."""
    budget, _ = clamp_budget(max_tokens, DEFAULT_TOKENS)
    walk = session.walk()
    if reason and not walk.with_status("answered"):  # nothing to show but where an agent may begin
        result = session.step(walk.root, max_tokens=budget)
    else:
        result = session.finish(max_tokens=budget)
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
    answers.shorten_usage(result, budget)
    return finish(result, budget)
