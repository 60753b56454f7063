"""Tools for the agent as the model: claim_work gives texts to read, submit_work takes the results,
which an indexing job merges a moment later."""

from __future__ import annotations

import os
import re
import secrets
from typing import Annotated, Any, Literal

from mcp.types import CallToolResult

from graphrag_mcp.app import App
from graphrag_mcp.errors import BadInput
from graphrag_mcp.jobs import queue, start
from graphrag_mcp.tools import contract
from graphrag_mcp.trust.fencing import SUBJECT, folder_name
from graphrag_mcp.types import Result, WorkResult

LEAST = 3_000  # tokens: with less, the instructions leave no room for a text
HAVE_INSTRUCTIONS = ("extract", "report", "summary")  # before the text
_PAYLOAD = re.compile(r"<(?:text(?: id=\"\d+\")?|context)>")
_HOW = {
    "extract": 'Hand in {"work_id", "entities": [{"name", "type", "description"}], "relationships": [{"source", '
    '"target", "description", "keywords", "strength"}]}, or the JSON above as "text".',
    "summary": 'Each text below is an item with a work_id. In place of the JSON above hand in {"work_id", "text", "labels": '
    '[...], "names": [{"name", "type"}]} for each, all of them in one submit_work.',
    "other": 'Hand in {"work_id", "text"}.',
}


async def claim_work(
    ctx: contract.Ctx,
    corpus: str = "",
    kind: Literal["any", "extract", "report", "summary"] = "any",
    level: int = -1,
    max_items: int = 5,
    max_tokens: int = 6000,
) -> Annotated[CallToolResult, WorkResult]:
    """Write for the index: gives documents to summarise, topics to report on (level=0) or texts to
    read, with instructions."""
    client = client_of(ctx)
    summaries = kind == "summary"
    count = contract.clamp("max_items", max_items, 1, 20)
    count = 100 if summaries and max_items == 5 else count
    tokens = max_tokens if max_tokens > 0 else 6000
    tokens = contract.MOST if summaries and tokens == 6000 else tokens
    tokens = contract.clamp("max_tokens", tokens, LEAST, contract.MOST)
    _, whole = contract.budgets(ctx, tokens, 0)

    def work(app: App) -> Result:
        from graphrag_mcp.index.work import claim
        from graphrag_mcp.store import leases

        name = app.corpus_for_reading(corpus.strip())
        # What was claimed through a server that has ended is free.
        leases.free(app.folder(name), lambda process: not queue.process_mark(process))
        found = claim(
            app.folder(name),
            app.settings,
            client,
            kind=kind,
            level=None if level < 0 else level,
            max_items=count,
            process=os.getpid(),
            fits=lambda items: contract.fits_whole(_claimed(name, items, kind), whole),
        )
        result = _claimed(name, found, kind)
        if found.agents and found.remaining and not (found.items or found.held or found.too_long):
            # the one that took the answers may have left before they were merged
            start.merge_later(app.settings, name)
        return result

    return await contract.serve(ctx, "claim_work", work, whole)


async def submit_work(
    ctx: contract.Ctx, results: contract.Objects, corpus: str = ""
) -> Annotated[CallToolResult, WorkResult]:
    """Hand in what claim_work asked for, several items at once."""
    by, client = contract.who(ctx), client_of(ctx)

    def work(app: App) -> Result:
        from graphrag_mcp.index.work import submit

        if not results:
            what = "there is nothing to submit"
            raise BadInput(what, 'Give results=[{"work_id": "...", "entities": [...]}]')
        name = app.corpus_for_reading(corpus.strip())
        # Before as well: killed behind the first answer, the merge comes all the same.
        done = submit(
            app.folder(name),
            app.settings,
            by,
            results,
            before=lambda: start.merge_later(app.settings, name),
            client=client,
        )
        if done.accepted:
            start.merge_later(app.settings, name)
        result = WorkResult(corpus=name, accepted=done.accepted, rejected=done.rejected[:50])
        merged = " Accepted work is merged in a moment." if done.accepted else ""
        lines = [f"Accepted {len(done.accepted)}, rejected {len(done.rejected)}.{merged}"]
        lines += [f"- {id}: replaces the answer that was there" for id in done.replaced[:50]]
        left = ((answer["work_id"], answer["reason"]) for answer in done.left_out[:50])
        lines += [f"- {id}: accepted, but left out: {reason}" for id, reason in left]
        lines += [f"- {answer['work_id']}: {answer['reason']}" for answer in done.rejected[:50]]
        lines += [f"- and {len(done.rejected) - 50} more"] if len(done.rejected) > 50 else []
        result.text, result.next_call = "\n".join(lines), f'claim_work(corpus="{name}")'
        return result

    return await contract.serve(ctx, "submit_work", work)


def _claimed(corpus: str, found: Any, kind: str) -> WorkResult:
    from graphrag_mcp.store.leases import SECONDS

    result = WorkResult(corpus=corpus, remaining=found.remaining, lease_seconds=int(SECONDS))
    blocks: list[str] = []
    explained: set[str] = set()
    for item in found.items:
        at = _PAYLOAD.search(item.prompt)
        split = at.start() if at and item.ask_kind in HAVE_INSTRUCTIONS else 0
        line = item.prompt.rfind("\n", 0, max(split - 1, 0)) + 1  # the line before names the document
        split = line if item.prompt.startswith("<document>", line) else split
        if split and item.ask_kind not in explained:
            explained.add(item.ask_kind)
            how = _HOW.get(item.ask_kind, _HOW["other"])
            blocks.append(f"## How to {item.ask_kind}\n{item.prompt[:split].strip()}\n\n{how}")
        result.items.append({"work_id": item.work_id, "kind": item.ask_kind})
        blocks.append(f"## {item.work_id} ({item.ask_kind})\n{item.prompt[split:]}")
    if found.too_long:
        blocks.append(
            f"{found.too_long} open questions are longer than this reply may be and are not claimed: "
            f"call claim_work with a larger max_tokens, up to {contract.MOST}, or let a model answer them."
        )
    if found.items:
        result.next_call = f'submit_work(corpus="{corpus}", results=[{{"work_id": "{found.items[0].work_id}", ...}}])'
    elif not found.too_long:
        blocks.append(_no_work(found, kind))
    result.text = "\n\n".join(blocks)
    return result


def _no_work(found: Any, kind: str) -> str:
    more = 'New texts: index_documents(paths=[...], method="agent").'
    if found.held:
        return f"The {found.held} open questions are with agents that claimed them: those of one that left come free within 15 minutes. {more}"
    if kind != "any" and found.remaining and kind not in found.remaining:
        others = ", ".join(f"{count} {name}" for name, count in found.remaining.items())
        hint = f'open are {others}: claim_work(kind="any").'
        return f"Nothing of kind {kind} waits for an agent; {hint}"
    if kind == "summary" and not found.remaining:
        reports = 'claim_work(kind="report", level=0)'
        return f"Every document has a summary. Reports of topics are written from them: {reports}."
    if kind == "report" and not found.agents:
        return (
            "No report of a top topic is left to write: your work on this corpus is done. "
            f"Very small topics have no report. {more}"
        )
    if found.remaining:
        return f"What was handed in is being merged, other questions may follow: call claim_work again in 5 s. {more}"
    if found.agents:
        return f"Every question is answered. {more}"
    return (
        "No text waits for an agent: this corpus was not indexed for one. To write summaries, call "
        'claim_work(kind="summary"); for the reports of its top topics kind="report", level=0. To read '
        'its texts, first call index_documents(paths=[...], method="agent") with its folders or texts.'
    )


def client_of(ctx: contract.Ctx) -> str:
    """Who holds what is claimed: the client's name, and a mark of its token and of its session, or
    over stdio of this process. Over HTTP without sessions two clients of one name cannot be told
    apart, so there every claim is one of its own."""
    session = str(os.getpid())
    if ctx.headers is not None:
        session = ctx.headers.get("mcp-session-id") or secrets.token_hex(8)
    # The id of a session is not written: with it others could speak in the session.
    return f"{contract.who(ctx)}@{folder_name(f'{SUBJECT.get()} {session}')}"
