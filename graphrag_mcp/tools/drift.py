"""DRIFT tools: drift_search begins an investigation, drift_step answers its next node."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Annotated, Any, Literal

from mcp.types import CallToolResult
from pydantic import WithJsonSchema

from graphrag_mcp.app import App
from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.tools import contract, notes
from graphrag_mcp.tools.contract import Ctx, budgets, clamp, desk_of, read, remark, serve
from graphrag_mcp.types import DriftResult, Result

if TYPE_CHECKING:
    from graphrag_mcp.query.drift import Drift
    from graphrag_mcp.store.tables import Snapshot

ANSWER_SECONDS = 38.0  # for the model, within the call's own limit

# What models send as a score or as questions is read by query/model_replies.py.
Score = Annotated[Any, WithJsonSchema({"type": "number"})]
FollowUps = Annotated[Any, WithJsonSchema({"type": "array", "items": {"type": "string"}})]


async def drift_search(
    query: str,
    ctx: Ctx,
    corpus: str = "",
    mode: Literal["step", "auto"] = "step",
    depth: int = 3,
    breadth: int = 20,
    max_nodes: int = 40,
    max_tokens: int = 3000,
) -> Annotated[CallToolResult, DriftResult]:
    """Begin an investigation in steps (why something happened): context for its first node, which
    drift_step answers."""
    depth, breadth = clamp("depth", depth, 1, 6), clamp("breadth", breadth, 1, 100)
    max_nodes = clamp("max_nodes", max_nodes, 2, 200)
    inner, whole = budgets(ctx, max_tokens, 3000, corpus, page=True)
    app = desk_of(ctx).app
    name = f"drift-{secrets.token_hex(6)}"

    def work(parts: list[tuple[str, Snapshot]]) -> Result:
        from graphrag_mcp.query.drift import KEEP_DAYS, Drift, Limits
        from graphrag_mcp.store import sessions

        snapshot, limits = parts[0][1], Limits(depth, breadth, max_nodes)
        sessions.forget(app.drift_path(name).parent, KEEP_DAYS * 86_400)
        if mode == "auto":
            from graphrag_mcp.query import drift_llm
            from graphrag_mcp.query.request import AnswerOptions

            asker = app.asker(app.corpus_for_reading(corpus))
            if asker.may_answer("drift_step"):
                path = app.drift_path(drift_llm.session_name(snapshot, query, limits))
                options = AnswerOptions(seconds=ANSWER_SECONDS)
                return drift_llm.run(Drift(snapshot, path, inner), query, asker, limits, options)
            remark(drift_llm.NO_MODEL)
        return Drift(snapshot, app.drift_path(name), inner).start(query, limits)

    return await read(ctx, "drift_search", corpus, work, whole)


async def drift_step(
    session_id: str,
    ctx: Ctx,
    node_id: str = "",
    answer: str = "",
    score: Score = None,
    follow_ups: FollowUps = [],
    finish: bool = False,
    prune: list[str] = [],
    open_next: str = "",
    auto: bool = False,
    note: str = "",
    max_tokens: int = 3000,
) -> Annotated[CallToolResult, DriftResult]:
    """Hand in the answer to a node; gives the next node's context."""
    from graphrag_mcp.query.drift_view import note_text

    inner, whole = budgets(ctx, max_tokens, 3000)

    def work(app: App) -> Result:
        session, corpus = session_of(app, session_id, inner)
        if note.strip() and not finish:
            raise BadInput("note keeps what a session has found", "Give finish=true with it")
        if finish and not node_id.strip():
            return finished(app, session, corpus, answer)
        if auto and not answer.strip():
            from graphrag_mcp.query.drift_llm import answer_node

            return answer_node(session, node_id, app.asker(corpus), open_next, ANSWER_SECONDS)
        arguments = node_id, answer, score, follow_ups, prune
        if not finish:
            return session.step(*arguments, open_next)
        session.step(*arguments, "none")
        return finished(app, session, corpus, "")

    def finished(app: App, session: Drift, corpus: str, last_answer: str) -> Result:
        result = session.finish()
        if note.strip():
            kept = notes.kept(app, notes.Note(note, note_text(session, last_answer)), corpus, by)
            result.hint = kept if result.hint in kept else f"{kept} {result.hint}"
        return result

    by = contract.who(ctx)
    return await serve(ctx, "drift_step", work, whole)


async def drift_finish(
    session_id: str,
    ctx: Ctx,
    reduce: bool = False,
    format: Literal["answers", "tree"] = "answers",
    max_tokens: int = 3000,
) -> Annotated[CallToolResult, DriftResult]:
    """The answers of a DRIFT session, ranked and cited: write the final answer from them. The session
    stays open."""
    inner, whole = budgets(ctx, max_tokens, 3000)

    def work(app: App) -> Result:
        session, corpus = session_of(app, session_id, inner)
        if format == "tree":
            from graphrag_mcp.query.drift_view import view

            return view(session)
        if reduce:
            from graphrag_mcp.query import drift_llm

            return drift_llm.reduce(session, app.asker(corpus), seconds=ANSWER_SECONDS)
        return session.finish()

    return await serve(ctx, "drift_finish", work, whole)


def session_of(app: App, session_id: str, max_tokens: int = 3000) -> tuple[Drift, str]:
    """The session on the newest generation of the corpus that it began in, and that corpus."""
    from graphrag_mcp.query.drift import Drift
    from graphrag_mcp.query.drift_state import Walk
    from graphrag_mcp.store import sessions

    path = app.drift_path(session_id.strip())
    corpus = Walk(sessions.read(path)).header.get("corpus", "")
    if not corpus:
        what = f"there is no DRIFT session {session_id[:60]!r}"
        raise NotFound(what, 'Start one with drift_search(query="...")')
    return Drift(app.snapshot(corpus), path, max_tokens), corpus
