"""MCP sampling: the model of the client writes the summaries and top reports of an index.

`index_documents(method="client")` builds the index without a model, then asks the client for replies to
the questions that `claim_work` would give, and hands them in as `submit_work` does. A client shows its
user each request, or asks for consent, as the protocol has it; the server sees no key.

Two eras of the protocol: a client of a session answers requests while the call waits; a client from
2026-07-28 on gets the request as the result of the call and calls again with the reply."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass
from typing import Any

import anyio
from mcp.types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    InputRequiredResult,
    SamplingMessage,
    TextContent,
)

from graphrag_mcp.app import App
from graphrag_mcp.jobs import start
from graphrag_mcp.text.terms import counted
from graphrag_mcp.tools import contract
from graphrag_mcp.tools.work import asked_as, client_of
from graphrag_mcp.types import is_list, is_object

ROUNDS = 8  # requests of one call: clients of the newer protocol end a call after ten rounds
OUTPUT = 8_000  # tokens of a reply: 20,000 tokens of texts are some 40 summaries of 110 tokens
KINDS = ("summary", "report")
KEY = "work"
NOT_OFFERED = (
    "This client offers no sampling, so the index was built without its model: "
    'claim_work(kind="summary") lets you write the summaries.'
)
NO_SESSION = (
    "A server with several workers keeps no session with a client of an older protocol, so the index was "
    'built without its model: claim_work(kind="summary") lets you write the summaries.'
)
NO_API = (
    "The JSON API offers no sampling, so the index was built without the model of a client: "
    'claim_work(kind="summary") lets you write the summaries.'
)
NOT_YET = "The client's model is asked when the job is done: call this again then."
_FORM = (
    "\n\n## Form of the reply\nIn the place of submit_work reply with one JSON object and nothing else: "
    '{"results": [{"work_id": "...", ...}, ...]}, with one element for each work_id above, as it is to be handed in.'
)


@dataclass(frozen=True, slots=True)
class Progress:
    """What a call has done so far; it travels sealed through a client of the newer protocol.
    `useful`: something of the last reply could be used."""

    corpus: str = ""
    job: str = ""
    rounds: int = 0
    accepted: int = 0
    rejected: int = 0
    useful: bool = True

    def summary(self) -> str:
        """What the client's model wrote, in a sentence."""
        if not self.rounds:
            return "The client's model wrote nothing."
        requests = counted(self.rounds, "requests")
        sentence = f"The client's model wrote {self.accepted} summaries and reports in {requests}"
        sentence += f"; {self.rejected} could not be used" if self.rejected else ""
        return f"{sentence}." + " They are merged in a moment." * bool(self.accepted)


def offered(ctx: contract.Ctx) -> bool:
    """Does the client offer sampling?"""
    capabilities = ctx.client_capabilities
    return capabilities is not None and capabilities.sampling is not None


def missing(ctx: contract.Ctx) -> str:
    """Why the client's model cannot be asked. Without a session its capabilities are not known."""
    if contract.API_CALL.get() is not None:
        return NO_API
    return NO_SESSION if ctx.client_capabilities is None else NOT_OFFERED


def resumed(ctx: contract.Ctx) -> Progress | None:
    """The progress of the call that this one continues; None for a new one."""
    return Progress(**json.loads(ctx.request_state)) if ctx.request_state else None


async def write(ctx: contract.Ctx, progress: Progress, seconds: float) -> InputRequiredResult | str:
    """Ask the client until nothing is open, the limit of requests or the time is reached. Returns a
    sentence on what was done, or what the newer protocol sends in the place of a request."""
    desk, ends = contract.desk_of(ctx), time.monotonic() + seconds
    client, who = client_of(ctx), contract.who(ctx)
    most = min(ROUNDS, desk.app.settings.max_calls or ROUNDS)

    async def aside(work: Any, *arguments: Any) -> Any:
        return await anyio.to_thread.run_sync(work, *arguments, limiter=desk.threads)

    if ctx.request_state:
        response = (ctx.input_responses or {}).get(KEY)
        if response is None:
            return f"{progress.summary()} The client gave no reply."
        progress = await aside(_submitted, desk.app, progress, response, who, client)
    ended = ""
    while progress.rounds < most and progress.useful:
        request, others = await aside(_next, desk.app, progress.corpus, client)
        if request is None:
            ended = "" if progress.rounds else " Nothing is open for it."
            ended = f" Other agents hold {counted(others, 'open questions')}." if others else ended
            break
        if not ctx.session.can_send_request:
            state = json.dumps(asdict(progress))
            return InputRequiredResult(input_requests={KEY: request}, request_state=state)
        reply = None
        with anyio.move_on_after(ends - time.monotonic()) as waited:
            try:
                reply = await ctx.session.send_request(request, CreateMessageResult)
            except Exception as error:  # the user declined, or the client's model failed
                ended = f" The client ended it: {' '.join(str(error).split())[:200]}."
                break
        if waited.cancelled_caught:
            ended = " The time of this call was over; call it again to go on."
            break
        assert reply is not None
        progress = await aside(_submitted, desk.app, progress, reply, who, client)
    else:
        if not progress.useful:
            ended = " Nothing of its last reply could be used, so no more was asked."
        else:
            ended = " The limit of requests of a call is reached; call it again to go on."
    return progress.summary() + ended


def _next(app: App, corpus: str, client: str) -> tuple[CreateMessageRequest | None, int]:
    """The next open questions of the corpus as one request (None where nothing is open), and how many
    are with other agents."""
    others = 0
    for kind in KINDS:
        prompt, count = asked_as(app, corpus, client, kind, os.getpid())
        others += count
        if prompt:
            text = TextContent(type="text", text=prompt + _FORM)
            messages = [SamplingMessage(role="user", content=text)]
            params = CreateMessageRequestParams(messages=messages, max_tokens=OUTPUT)
            return CreateMessageRequest(params=params), others
    return None, others


def _submitted(app: App, progress: Progress, reply: Any, who: str, client: str) -> Progress:
    """The progress after a reply was handed in."""
    from graphrag_mcp.index.work import submit

    name = progress.corpus
    done = submit(
        app.folder(name),
        app.settings,
        who,
        _results(reply),
        before=lambda: start.merge_later(app.settings, name),
        client=client,
    )
    accepted = progress.accepted + len(done.accepted)
    rejected = progress.rejected + len(done.rejected)
    return Progress(
        name, progress.job, progress.rounds + 1, accepted, rejected, bool(done.accepted)
    )


def _results(reply: Any) -> list[Any]:
    """The results in the reply of a client's model; none where it holds no JSON."""
    from graphrag_mcp.llm.replies import BadReply, read

    content = getattr(reply, "content", None)
    parts: list[Any] = [*content] if is_list(content) else [content]
    text = "".join(str(getattr(part, "text", "")) for part in parts)
    try:
        values = read(text).values
    except BadReply:
        return []
    found: list[Any] = []
    for value in values:
        inner = value.get("results", value) if is_object(value) else value
        found += inner if is_list(inner) else [inner]
    return found
