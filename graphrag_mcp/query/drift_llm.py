"""DRIFT by a model: primer, rounds of local questions, one answer, in the same journal that agents
write.

A session that was stopped goes on where it was, and an agent may take over. Reports go into as few
folds as a model reads well, questions that ask nearly the same are one node, nodes whose contexts
are mostly the same passages are asked together, each round takes a share of what is left of 8 calls
per level of depth (8 in all where the texts fit into two prompts), and it ends when its scores are
saturated."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass
from itertools import zip_longest

from graphrag_mcp.llm import prompts
from graphrag_mcp.llm.asker import Answer as Given
from graphrag_mcp.llm.asker import Ask, Asker
from graphrag_mcp.llm.protocols import Message
from graphrag_mcp.packing.budget import Page, Section, clamp_budget, fill, finish, one_line
from graphrag_mcp.packing.citations import data, example, numbered_brackets, restored
from graphrag_mcp.query import context, drift, reports, retrieval
from graphrag_mcp.query.answer import (
    PLAIN,
    PRIMER_SCHEMA,
    STEP_SCHEMA,
    STEPS_SCHEMA,
    Meter,
    Node,
    Wish,
    answer,
    answered,
    asked,
    deadline,
    distinct,
    failed,
    lighten,
    note,
    page_text,
    read_answer,
    read_node,
    read_nodes,
    waited,
    word_limit,
)
from graphrag_mcp.query.drift import DEFAULT_TOKENS, PRIMER_FOLLOW_UPS, STEP_SHARES, Drift
from graphrag_mcp.query.drift_state import Walk
from graphrag_mcp.query.passages import Source
from graphrag_mcp.query.reports import Row
from graphrag_mcp.query.sections import sections_of
from graphrag_mcp.store import sessions
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.types import DriftResult, content_id

CALLS_PER_LEVEL = 8  # 24 calls at the usual depth of 3, primer and reduction among them
SMALL_CALLS, SMALL_PROMPTS = 8, 2  # calls in all where the texts fit into so many prompts of a step
PRIMER_REPORTS, FOLDS, FOLD_TOKENS = 20, 5, 8_000
REPORT_CHARACTERS = 4_000  # of one report in a fold
STEP_TOKENS = 5_000  # of context for one node
JOINT_TOKENS, TOGETHER = 7_000, 5  # of context for nodes that one prompt asks about, and how many
REDUCE_TOKENS = 12_000  # of answers for the last prompt
LOW = 10  # a round without a score from here on has found nothing
FROM_THIS_LEVEL = (
    0.75  # of a round at least for questions of its own depth, so that the walk gets deep
)
NO_MODEL = "mode auto needs a model (set GRAPHRAG_MCP_CHAT_MODEL), so this is mode step: you answer each node."

Replied = tuple[Node | None, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """Nodes that a model is answering with one reply, and how the reply's ids are to be read."""

    ids: Sequence[str]
    names: dict[str, str]
    future: Future[Given[Replied]]


@dataclass(frozen=True, slots=True)
class Context:
    """What was found for a node, as far as it fits into a prompt."""

    id: str
    sections: Sequence[Section]
    page: Page

    def sources(self) -> list[str]:
        held = self.page.taken.get("Sources", ())
        return [item.citation.id for item in held if item.citation is not None]


def session_name(snapshot: Snapshot, query: str, depth: int, breadth: int, max_nodes: int) -> str:
    """The same question over the same index is the same session, so asking again goes on with it."""
    manifest = snapshot.manifest
    parts = (
        manifest.corpus,
        str(manifest.generation),
        query.strip(),
        str(depth),
        str(breadth),
        str(max_nodes),
    )
    return f"drift-{content_id('auto', *parts)[:12]}"


def run(
    session: Drift,
    query: str,
    asker: Asker,
    *,
    depth: int = 3,
    breadth: int = 20,
    max_nodes: int = 40,
    max_tokens: int = DEFAULT_TOKENS,
    wish: Wish = PLAIN,
    hyde: bool = False,
) -> DriftResult:
    """The whole walk, or as much of it as `wish.seconds` allow: then state `partial`, and the same
    call goes on."""
    walk = session.begin(query, depth=depth, breadth=breadth, max_nodes=max_nodes)
    left = deadline(wish.seconds)
    if walk.graph.nodes[walk.root]["status"] != "answered":
        meter = Meter(asker)
        reason = _primer(session, walk, asker, left, hyde)
        walk = _account(session, meter)
        if reason is not None:
            return _stopped(session, max_tokens, reason)
    for number in range(walk.header["depth"]):
        if number >= len(walk.rounds):
            chosen = [] if saturated(walk) else _choose(session, walk, number)
            if not chosen:
                break
            nodes = [id for group in chosen for id in group]
            sessions.append(session.path, {"op": "round", "nodes": nodes, "groups": chosen})
            walk = session.walk()
        waiting = [
            group
            for group in walk.rounds[number]
            if any(walk.graph.nodes[id]["status"] in ("frontier", "open") for id in group)
        ]
        meter = Meter(asker)
        reason = _round(session, walk, asker, waiting, left) if waiting else None
        walk = _account(session, meter)
        if reason is not None:
            return _stopped(session, max_tokens, reason)
    result = reduce(session, asker, max_tokens=max_tokens, wish=wish, seconds=left())
    result.done = result.state == "answered"  # an agent may go on all the same
    unanswered = session.walk().with_status("open")
    if unanswered and result.done:
        note(
            result,
            f"{len(unanswered)} questions got no answer from the model: {', '.join(unanswered[:5])}.",
        )
    return finish(result, clamp_budget(max_tokens, DEFAULT_TOKENS)[0])


def saturated(walk: Walk) -> bool:
    """Do further rounds promise nothing: none of the last one's answers scores 10, or two rounds
    brought no better score than there was before them."""
    best = [walk.graph.nodes[walk.root]["score"] or 0.0]
    for groups in walk.rounds:
        scores = [walk.graph.nodes[id]["score"] or 0.0 for group in groups for id in group]
        best.append(max(scores, default=0.0))
    if len(best) > 1 and best[-1] < LOW:
        return True
    return len(best) > 2 and max(best[-2:]) <= max(best[:-2])


def most_calls(snapshot: Snapshot, depth: int) -> int:
    """Calls of a whole walk; few where each step would read the same passages again."""
    most = CALLS_PER_LEVEL * depth
    if snapshot.count("passages") > SMALL_PROMPTS * STEP_TOKENS // 20:
        return most
    tokens = sum(snapshot.rows("passages", columns=["n_tokens"])["n_tokens"].to_pylist())
    return min(SMALL_CALLS, most) if tokens <= SMALL_PROMPTS * STEP_TOKENS else most


def _choose(session: Drift, walk: Walk, number: int) -> list[list[str]]:
    """The nodes of a round by their worth, most of them at the depth of the round, within the calls
    that are left. Nodes whose contexts are mostly the same passages are one group."""
    depth = walk.header["depth"]
    spent = max(walk.usage.get("calls", 0), 1 + sum(map(len, walk.rounds)))
    left = most_calls(session.snapshot, depth) - 1 - spent
    calls = min(-(-left // (depth - number)), walk.header["breadth"], walk.budget_left())
    if calls <= 0 or session.over(walk):
        return []
    frontier = walk.frontier()[: walk.header["breadth"]]
    own = [id for id in frontier if walk.graph.nodes[id]["depth"] == number + 1]
    groups: list[list[Context]] = []
    room = min(walk.header["breadth"], walk.budget_left())
    for ids, most in (own, max(1, int(FROM_THIS_LEVEL * calls))), (frontier, calls):
        taken = {one.id for group in groups for one in group}
        for id in ids:
            if room <= 0 or id in taken:
                continue
            found = _context(session, walk, id)
            group = _beside(found, groups) if found else None
            if found is None:
                session.record(id, "", None, (), [id])
            elif group is not None or len(groups) < most:
                groups.append([]) if group is None else None
                (groups[-1] if group is None else group).append(found)
                room -= 1
    return [[one.id for one in group] for group in groups]


def _beside(found: Context, groups: Sequence[list[Context]]) -> list[Context] | None:
    """The first group whose best node has more than half of these passages too, and whose prompt
    has room for the others."""
    own = set(found.sources())
    for group in groups:
        shared = len(own & set(group[0].sources()))
        if len(group) < TOGETHER and 2 * shared > len(own):
            if not fill(_joined([*group, found]), JOINT_TOKENS).more:
                return group
    return None


# ---- the primer ----------------------------------------------------------------------------------


def _primer(
    session: Drift, walk: Walk, asker: Asker, left: Callable[[], float], hyde: bool
) -> str | None:
    """Answer the root from the best-rated reports; None when it is done, else why not ("" for want
    of time)."""
    snapshot, query = session.snapshot, walk.header["query"]
    rows = _reports(snapshot, query, asker, left) if hyde else _best_reports(snapshot, query)
    if not rows:
        return "there are no community reports to begin with"
    prompt = prompts.load("drift_auto_primer", snapshot.folder)
    pending: list[Asked] = []
    for fold in _folds(rows):
        titles = [one_line(row["title"], 200).replace("|", "/") for row in fold]
        lines = [
            f"{n}|{title}|{_content(row)}"
            for n, (title, row) in enumerate(zip(titles, fold, strict=True), 1)
        ]
        text = prompt.substitute(reports=data("\n".join(lines)), question=data(query))
        names = {f"c{n}": f"c{row['n']}" for n, row in enumerate(fold, 1)}
        pending.append(
            Asked(
                [walk.root],
                names,
                asker.start(asked(asker, _asking("drift_primer", text, PRIMER_SCHEMA))),
            )
        )
    given, late, reason = _collected(pending, left)
    if late or not given:
        return "" if late else reason
    nodes = [node for (node,), *_ in given if node is not None]
    texts = [restored(node.answer, names).text for (node,), names, _ in given if node is not None]
    scores = [node.score for node in nodes if node.score is not None]
    most = max(len(node.follow_ups) for node in nodes)
    mixed = [
        node.follow_ups[at] for at in range(most) for node in nodes if at < len(node.follow_ups)
    ]
    queries = distinct(mixed)[:PRIMER_FOLLOW_UPS]
    said = "\n\n".join(texts)
    shown = [f"c{row['n']}" for row in rows]
    walk = session.opened(walk.root, shown, sum(count_tokens(_content(row)) for row in rows))
    queries = queries or tuple(drift.propose(snapshot, walk, walk.root, said))
    score = round(sum(scores) / len(scores), 2) if scores else None
    session.record(walk.root, said, score, queries, by=given[0][2])
    return None


def _best_reports(snapshot: Snapshot, query: str) -> list[Row]:
    """The reports nearest to the question; where no word of it is in any, the weightiest."""
    kept, coverage = reports.select(snapshot, query)
    if not kept and coverage["reports"]:
        kept, _ = reports.select(snapshot, "")
    return snapshot.served("reports", [one.id for one in kept[:PRIMER_REPORTS]])


def _reports(snapshot: Snapshot, query: str, asker: Asker, left: Callable[[], float]) -> list[Row]:
    """The same, ranked by the question together with what an answer might look like."""
    rows = _best_reports(snapshot, query)
    if not rows:
        return rows
    prompt = prompts.load("hyde", snapshot.folder)
    text = prompt.substitute(report=data(_content(rows[0])), question=data(query))
    ask = Ask("hyde", (Message("user", text),), read_answer, lambda: "")
    given = waited(asker, asked(asker, ask), left())
    if given is not None and given.by:
        return _best_reports(snapshot, f"{query} {given.value}")
    return rows


def _folds(rows: Sequence[Row]) -> list[list[Row]]:
    """As few folds as a model reads well, the best reports spread over them."""
    tokens = sum(count_tokens(_content(row)) for row in rows)
    count = min(FOLDS, max(1, -(-tokens // FOLD_TOKENS)))
    return [list(rows[at::count]) for at in range(count)]


def _content(row: Row) -> str:
    """Summary and findings of a report on one line, without references: answers refer to the
    report."""
    parts = [row["summary"]]
    parts += map(context.finding, context.findings(row))
    return one_line(
        re.sub(r"(?<!\s)\s*\[Data: [^\[\]\n]*\]", "", " ".join(parts)), REPORT_CHARACTERS
    ).replace("|", "/")


# ---- rounds --------------------------------------------------------------------------------------


def _round(
    session: Drift,
    walk: Walk,
    asker: Asker,
    groups: Sequence[Sequence[str]],
    left: Callable[[], float],
) -> str | None:
    """Answer the nodes at once; None when the walk can go on, else why not ("" for want of time)."""
    pending = [one for group in groups if (one := _start(session, walk, asker, group)) is not None]
    reason, late, done = "", False, 0
    for one in pending:
        given, slow, why = _collected([one], left)
        late, reason = late or slow, reason or why
        for nodes, names, by in given:
            for id, node in zip(one.ids, nodes, strict=True):
                if walk.graph.nodes[id]["status"] == "answered":  # before the walk was stopped
                    continue
                if node is None:  # the model passed over it twice
                    session.record(id, "", None, (), [id])
                    continue
                said = restored(node.answer, names).text
                session.record(id, said, node.score, node.follow_ups[:5], by=by)
            done += 1
    if late:
        return ""
    return reason or "no reply" if pending and not done else None


def _context(session: Drift, walk: Walk, id: str) -> Context | None:
    """What is found for a node; None for nothing."""
    found = retrieval.retrieve(session.snapshot, walk.graph.nodes[id]["query"])
    sections = []
    if found.passages:
        sections = sections_of(Source(session.snapshot, found), STEP_TOKENS, False, STEP_SHARES)
    page = fill(sections, STEP_TOKENS)
    return Context(id, sections, page) if any(page.taken.values()) else None


def _start(session: Drift, walk: Walk, asker: Asker, group: Sequence[str]) -> Asked | None:
    """Find the context of some nodes and begin to ask; a question for which nothing is found is
    pruned, which costs nothing."""
    contexts = [one for id in group if (one := _context(session, walk, id)) is not None]
    for id in {*group} - {one.id for one in contexts}:
        session.record(id, "", None, (), [id])
    if not contexts:
        return None
    sections = _joined(contexts)
    page = contexts[0].page if len(contexts) == 1 else fill(sections, JOINT_TOKENS)
    names: dict[str, str] = {}
    rows = page_text(sections, page.taken, names)
    ids = [one.id for one in contexts]
    queries = [walk.graph.nodes[id]["query"] for id in ids]
    several = len(ids) > 1
    listed = "\n".join(f"{n}. {data(query)}" for n, query in enumerate(queries, 1))
    asking = {"queries": listed} if several else {"node_query": data(queries[0])}
    prompt = prompts.load(
        "drift_auto_steps" if several else "drift_auto_step", session.snapshot.folder
    )
    text = prompt.substitute(
        context=data(rows),
        question=data(walk.header["query"]),
        example=example(names.values()),
        **asking,
    )
    for one in contexts:
        if walk.graph.nodes[one.id]["status"] == "frontier":
            session.opened(one.id, one.sources(), count_tokens(rows) // len(contexts))
    back = {local: alias for alias, local in names.items()}
    schema = STEPS_SCHEMA if several else STEP_SCHEMA
    ask = _asking("drift_step", text, schema, len(ids) if several else 0)
    return Asked(ids, back, asker.start(asked(asker, ask)))


def _joined(contexts: Sequence[Context]) -> list[Section]:
    """The sections of several contexts as one, the best items of each first, each once."""
    joined = []
    for name in dict.fromkeys(section.name for one in contexts for section in one.sections):
        found = [next((s for s in one.sections if s.name == name), None) for one in contexts]
        taken = zip_longest(*(one.page.taken.get(name, ()) for one in contexts))
        items = {item.id: item for row in reversed([*taken]) for item in reversed(row) if item}
        first = next(section for section in found if section is not None)
        joined.append(
            Section(name, list(reversed(items.values())), first.share, header=first.header)
        )
    return joined


def _asking(
    kind: str, text: str, schema: dict[str, object], several: int = 0
) -> Ask[tuple[Node | None, ...]]:
    """A question about one node, or about `several`, of which a missing one is asked for again."""

    def read(reply: str) -> tuple[Node | None, ...]:
        return read_nodes(reply, several) if several else (read_node(reply),)

    def missing(nodes: Replied) -> str:
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


def _collected(
    pending: Sequence[Asked], left: Callable[[], float]
) -> tuple[list[tuple[Replied, dict[str, str], str]], bool, str]:
    """The replies that came and who gave them, whether some were too late, and why one failed."""
    given: list[tuple[Replied, dict[str, str], str]] = []
    late, reason = False, ""
    for one in pending:
        try:
            reply = one.future.result(left() or None)
        except (NotYet, CancelledError):
            late = True
            continue
        if reply.by and reply.value:
            given.append((reply.value, one.names, reply.by))
        else:
            reason = reason or reply.reason or "no reply"
    return given, late, reason


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
    """Let the model answer one node of an agent's walk, and open the next. Without a model the node
    is shown."""
    budget, _ = clamp_budget(max_tokens, DEFAULT_TOKENS)
    walk = session.walk()
    id = session.known(walk, node_id)
    if asker is None or not asker.may_answer("drift_step"):
        result = session.step(id, max_tokens=budget)
        note(
            result, "No model is configured, so answer it yourself, or set GRAPHRAG_MCP_CHAT_MODEL."
        )
        return finish(result, budget)
    if walk.graph.nodes[id]["status"] == "pruned":
        return session.step(id)  # an error that says what else is open
    meter, left = Meter(asker), deadline(seconds)
    reason: str | None = None
    if not walk.graph.nodes[id]["by"]:  # the same call again only shows what comes next
        reason = (
            _primer(session, walk, asker, left, False)
            if id == walk.root
            else _round(session, walk, asker, [[id]], left)
        )
    walk = _account(session, meter)
    node = walk.graph.nodes[id]
    if not node["by"]:
        if node["status"] == "pruned":
            result = session.go_on(id, open_next, max_tokens=budget)
            note(result, "Nothing was found for this question; it was pruned.")
            return finish(result, budget)
        result = session.step(id, max_tokens=budget)
        late = "The model has not finished; the same call again will have its answer."
        note(result, failed(reason) if reason else late)
        return finish(result, budget)
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
    wish: Wish = PLAIN,
    seconds: float = 0.0,
) -> DriftResult:
    """The answers of the walk joined to one by the model; they follow it. Without one, the answers
    alone."""
    budget, _ = clamp_budget(max_tokens, DEFAULT_TOKENS)
    walk = session.walk()
    best = drift.ranked(walk)
    if asker is None or not asker.may_answer("reduce") or not best:
        result = session.finish(max_tokens=budget)
        if best:
            note(
                result,
                "No model is configured to join them: do it yourself, or set GRAPHRAG_MCP_CHAT_MODEL.",
            )
        return finish(result, budget)
    names: dict[str, str] = {}
    lines: list[str] = []
    room = REDUCE_TOKENS
    for node, _ in best:
        block = f"### {one_line(node['query'], 300)}\n{numbered_brackets(node['answer'], names)}"
        room -= count_tokens(block)
        if room < 0 and lines:
            break
        lines.append(block)
    meter = Meter(asker)
    work = answer(
        asker,
        walk.header["query"],
        "\n\n".join(lines),
        {local: alias for alias, local in names.items()},
        wish,
        words=word_limit(budget),
        prompt="drift_reduce",
        kind="reduce",
        folder=session.snapshot.folder,
    )
    given = waited(asker, work, seconds)
    walk = _account(session, meter)
    if given is None or not given.by:
        return _stopped(session, max_tokens, "" if given is None else given.reason)
    result = session.state(walk, DriftResult(session_id=session.id, usage=walk.usage), shown=0)
    result.done, result.hint = session.over(walk), _calls(walk)
    _, gone = drift.ranked_items(session.snapshot, walk)
    if gone:
        note(result, f"Not in the index: {', '.join(sorted(gone)[:10])}.")
    return answered(result, given, budget, snapshot=session.snapshot)


def _account(session: Drift, meter: Meter) -> Walk:
    """Write what was spent since, when it was anything; gives the state as it is now."""
    usage = meter.usage()
    if usage["calls"]:
        sessions.append(session.path, {"op": "asked", "usage": usage})
    return session.walk()


def _calls(walk: Walk) -> str:
    stages = walk.usage.get("by_stage", {})
    listed = ", ".join(
        f"{kind} {counts.get('calls', 0)}" for kind, counts in sorted(stages.items())
    )
    return f"{walk.usage.get('calls', 0)} model calls ({listed})." if listed else ""


def _stopped(session: Drift, max_tokens: int, reason: str) -> DriftResult:
    """The walk as far as it is: out of time (reason ""), or the model does not answer."""
    budget, _ = clamp_budget(max_tokens, DEFAULT_TOKENS)
    walk = session.walk()
    if reason and not walk.with_status(
        "answered"
    ):  # nothing to show yet but where an agent may begin
        result = session.step(walk.root, max_tokens=budget)
    else:
        result = session.finish(max_tokens=budget)
    result.done, result.usage = False, walk.usage
    if reason:
        note(
            result,
            failed(reason).replace(
                "answer from it, or try again", "go on with drift_step, or try again"
            ),
        )
    else:
        result.state = "partial"
        header = walk.header
        limits = f', corpus="{header["corpus"]}"'
        limits += "".join(f", {name}={header[name]}" for name in ("depth", "breadth", "max_nodes"))
        query = header["query"].replace("\\", "\\\\").replace('"', '\\"')
        result.next_call = f'drift_search(query="{query}", mode="auto"{limits})'
        note(
            result,
            "Time is up; the walk goes on with the same call, and nothing answered is asked again.",
        )
    lighten(result, budget)
    return finish(result, budget)
