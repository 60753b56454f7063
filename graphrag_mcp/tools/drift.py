"""DRIFT tools: drift_search begins an investigation, drift_step answers its next node."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Annotated, Any

from mcp.types import CallToolResult
from pydantic import WithJsonSchema

from graphrag_mcp.app import App
from graphrag_mcp.errors import NotFound
from graphrag_mcp.tools.contract import (
    Budget3000,
    Corpus,
    Flag,
    Query,
    SessionId,
    Strings,
    Text,
    argument,
    choice,
    number,
)
from graphrag_mcp.tools.results import (
    LONGEST_VIEW,
    Ctx,
    budgets,
    clamp,
    read,
    remark,
    serve,
    too_long,
)
from graphrag_mcp.types import DriftResult, Result

if TYPE_CHECKING:
    from graphrag_mcp.query.drift import Drift
    from graphrag_mcp.store.tables import Snapshot

ANSWER_SECONDS = 38.0  # for the model, within the call's own limit

Mode = choice(
    ("step", "auto"), "step: you answer each node; auto: the server's model walks, if it has one"
)
Depth = number(3, "Levels of follow-ups, 1 to 6", "depth max_depth")
Breadth = number(20, "Nodes per level, 1 to 100", "breadth width")
MaxNodes = number(40, "Nodes in all, 2 to 200", "max_nodes nodes node_budget")
NodeId = argument(
    Text, "The node you answer (open_node of the last result)", "node_id node open_node"
)
Answer = argument(Text, "Your answer to this node alone, citing ids", "answer response text")
# What models send as a score or as questions is read, and explained where it cannot be, by
# query/drift_state.py.
Score = argument(
    Annotated[Any, WithJsonSchema({"type": "number"})],
    "0 to 100: how much the answer helps the first question",
    "score rating",
)
FollowUps = argument(
    Annotated[Any, WithJsonSchema({"type": "array", "items": {"type": "string"}})],
    "Up to 5 new questions, 10 for the first node",
    "follow_ups follow_up followups questions follow_up_questions",
)
Prune = argument(Strings, "Frontier nodes to drop", "prune pruned prune_ids")
Finish = argument(Flag, "true: give the answers, ranked, instead of a next node", "finish done end")
Auto = argument(Flag, "true: the server's model answers this node", "auto let_model_answer")
Reduce = argument(Flag, "true: the server's model joins the answers", "reduce join")
Form = choice(
    ("answers", "tree", "json", "mermaid"), "or the whole graph of questions", "format form view as"
)
OpenNext = argument(
    Text, 'Node to open next; empty: the best; "none": none', "open_next next next_node"
)


async def drift_search(
    query: Query,
    ctx: Ctx,
    corpus: Corpus = "",
    mode: Mode = "step",
    depth: Depth = 3,
    breadth: Breadth = 20,
    max_nodes: MaxNodes = 40,
    max_tokens: Budget3000 = 3000,
) -> Annotated[CallToolResult, DriftResult]:
    """Begin an investigation that needs several steps: how things connect, why something happened.
    Gives context for the first node; answer it with drift_step, node by node. The session is kept
    on disk."""
    limits = {
        "depth": clamp("depth", depth, 1, 6),
        "breadth": clamp("breadth", breadth, 1, 100),
        "max_nodes": clamp("max_nodes", max_nodes, 2, 200),
    }
    inner, whole = budgets(max_tokens, 3000, corpus, ctx, LONGEST_VIEW)
    app = ctx.request_context.lifespan_context.app
    name = f"drift-{secrets.token_hex(6)}"

    def work(snapshot: Snapshot) -> Result:
        from graphrag_mcp.query.drift import KEEP_DAYS, Drift
        from graphrag_mcp.store import sessions

        sessions.forget(app.drift_path(name).parent, KEEP_DAYS * 86_400)
        if mode == "auto":
            from graphrag_mcp.query import drift_llm
            from graphrag_mcp.query.answer import AnswerOptions

            asker = app.asker(app.corpus_for_reading(corpus))
            if asker.may_answer("drift_step"):
                path = app.drift_path(drift_llm.session_name(snapshot, query, **limits))
                options = AnswerOptions(seconds=ANSWER_SECONDS)
                return drift_llm.run(
                    Drift(snapshot, path), query, asker, **limits, max_tokens=inner, options=options
                )
            remark(drift_llm.NO_MODEL)
        return Drift(snapshot, app.drift_path(name)).start(query, **limits, max_tokens=inner)

    late = too_long(DriftResult, "drift_search", "drift_search(query=...)")
    return await read(ctx, "drift_search", corpus, work, late, whole)


async def drift_step(
    session_id: SessionId,
    ctx: Ctx,
    node_id: NodeId = "",
    answer: Answer = "",
    score: Score = None,
    follow_ups: FollowUps = [],
    finish: Finish = False,
    prune: Prune = [],
    open_next: OpenNext = "",
    auto: Auto = False,
    max_tokens: Budget3000 = 3000,
) -> Annotated[CallToolResult, DriftResult]:
    """Record your answer, score and follow-up questions for a node and get the next node's context;
    with finish=true the ranked answers, to write the final answer from."""
    inner, whole = budgets(max_tokens, 3000, ctx=ctx)

    def work(app: App) -> Result:
        session, corpus = _session(app, session_id)
        if finish and not node_id.strip():
            return session.finish(max_tokens=inner)
        if auto and not answer.strip():
            from graphrag_mcp.query.drift_llm import answer_node

            return answer_node(
                session,
                node_id,
                app.asker(corpus),
                open_next=open_next,
                max_tokens=inner,
                seconds=ANSWER_SECONDS,
            )
        given = node_id, answer, score, follow_ups, prune
        if not finish:
            return session.step(*given, open_next, max_tokens=inner)
        session.step(*given, "none", max_tokens=inner)
        return session.finish(max_tokens=inner)

    late = too_long(DriftResult, "drift_step", "drift_step(...) with the same arguments")
    return await serve(ctx, "drift_step", work, late, whole)


async def drift_finish(
    session_id: SessionId,
    ctx: Ctx,
    reduce: Reduce = False,
    format: Form = "answers",
    max_tokens: Budget3000 = 3000,
) -> Annotated[CallToolResult, DriftResult]:
    """The answers of a DRIFT session, ranked and cited, to write the final answer from. The session
    stays open.
    """
    inner, whole = budgets(max_tokens, 3000, ctx=ctx)
    late = too_long(DriftResult, "drift_finish", "drift_finish(session_id=...)")

    def work(app: App) -> Result:
        session, corpus = _session(app, session_id)
        if format != "answers":
            from graphrag_mcp.query.drift import view

            return view(session, format, max_tokens=inner)
        if reduce:
            from graphrag_mcp.query import drift_llm

            return drift_llm.reduce(
                session, app.asker(corpus), max_tokens=inner, seconds=ANSWER_SECONDS
            )
        return session.finish(max_tokens=inner)

    return await serve(ctx, "drift_finish", work, late, whole)


def _session(app: App, session_id: str) -> tuple[Drift, str]:
    """The session on the newest generation of the corpus that it began in, and that corpus."""
    from graphrag_mcp.query.drift import Drift
    from graphrag_mcp.store import sessions

    path = app.drift_path(session_id.strip())
    corpus = next(
        (
            str(event.get("corpus", ""))
            for event in sessions.read(path)
            if event.get("op") == "start"
        ),
        "",
    )
    if not corpus:
        what = f"there is no DRIFT session {session_id[:60]!r}"
        raise NotFound(what, 'Start one with drift_search(query="...")')
    return Drift(app.snapshot(corpus), path), corpus
