"""Agents that name themselves alike, at one server over HTTP: none is given what another works on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from tests.support.http_server import ALICE, BOB, TOKENS, client, good, running, served

NOTES = [
    {"id": str(n), "text": f"Mira Okafor built mill {n} at Sable Point. Jonas Okafor kept its books."} for n in range(6)
]


@pytest.fixture(scope="module", params=["", TOKENS], ids=["open", "tokens"])
def port(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    home: Path = tmp_path_factory.mktemp("work") / "home"
    tokens = {"GRAPHRAG_MCP_TOKENS": request.param} if request.param else {}
    with running(served(home), home.parent / "server.log", **tokens) as (_, number):

        async def fill() -> None:
            async with client(number, ALICE if request.param else "") as one:
                for corpus in ("auto", "legacy"):
                    await good(one, "index_documents", texts=NOTES, corpus=corpus, method="agent", wait_seconds=40)

        anyio.run(fill)
        yield number


async def claimed(who: Client, corpus: str, most: int = 2) -> set[str]:
    found = await good(who, "claim_work", corpus=corpus, kind="extract", max_items=most)
    return {item["work_id"] for item in found["items"]}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_agents_of_one_name_never_share_what_they_claimed(port: int, mode: str) -> None:
    async def work() -> None:
        async with client(port, ALICE, mode) as one, client(port, BOB, mode) as two, client(port, ALICE, mode) as third:
            first, second, more = [await claimed(who, mode) for who in (one, two, third)]
            assert len(first) == len(second) == len(more) == 2 and len(first | second | more) == 6
            if mode == "legacy":  # a session is known again, and may look at its items once more
                assert await claimed(one, mode, 6) == first
            said = await good(
                two, "submit_work", corpus=mode, results=[{"work_id": id, "text": "<|COMPLETE|>"} for id in second]
            )
            assert not [one for one in said["rejected"] if "no such work_id" in one["reason"]]

    anyio.run(work)
