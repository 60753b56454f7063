"""benchmarks/live: requests become files, replies become fixtures; an index is made of the kept replies without loss."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.types import IndexRequest
from tests.support.command import ROOT
from tests.support.openai_server import openai_server
from tests.support.reply_forms import entity, records

LIVE = ROOT / "benchmarks" / "live"
spec = importlib.util.spec_from_file_location("live", LIVE / "live.py")
assert spec and spec.loader
live: Any = importlib.util.module_from_spec(spec)
spec.loader.exec_module(live)
RECORDED = sorted((LIVE / "recorded").glob("*.json"))
KEPT = [json.loads(path.read_text("utf-8")) for path in RECORDED]


def test_a_record_is_kept_or_counted() -> None:
    of = {"kind": "extract", "about": "Ines leads the Board."}
    reply = records(entity("Ines", "Ines leads it."), entity("Board", "Ines leads it.", "organization"), entity("Zed", "Not there."))
    assert live.replay({**of, "reply": f"Sure!\n{reply}"}) == (3, 3)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_no_well_formed_record_of_a_kept_reply_is_lost(path: Path) -> None:
    there, kept = live.replay(json.loads(path.read_text("utf-8")))
    assert kept >= there


# ---- the kept replies as a model ------------------------------------------------------------------

AGAIN = (
    "no reply was kept for these requests (kind, what it is about). A prompt's words may change without this; when what is "
    "asked is another, record again as benchmarks/live/README.md says: run, answer, record"
)

UNREAD = "Babatunde Oyelaran"  # the letter has "BabatundeOyelaran": a name that a text does not have is left out and counted


def said(kind: str) -> list[dict[str, Any]]:
    return [one for one in KEPT if one["kind"] == kind]


def written(reply: str, kind: str, *names: str) -> list[tuple[str, ...]]:
    """These fields of the objects of a reply, read without the product; an object that was cut off is none."""
    _, _, listed = reply.partition(f'"{kind}": [')
    found, place = list[tuple[str, ...]](), 0
    while (start := re.compile(r"[\s,]*\{").match(listed, place)):
        try:
            record, place = json.JSONDecoder().raw_decode(listed, start.end() - 1)
        except json.JSONDecodeError:
            break
        found.append(tuple(record[name] for name in names))
    return found


def bare(name: str) -> str:
    return re.sub(r"（[^）]*）$", "", name).casefold()


@pytest.fixture(scope="module")
def live_index(tmp_path_factory: pytest.TempPathFactory) -> tuple[Snapshot, Any, Any]:
    """The ten documents, indexed with the kept replies as the model: snapshot, result, the replies."""
    kept, corpus = live.Recorded(LIVE / "recorded"), tmp_path_factory.mktemp("live") / "c"
    with openai_server(lambda messages, body: kept.reply(messages)) as server:
        chosen = Settings(chat_model="reader", base_url=server.url, max_retries=0)
        result = index_documents(corpus, IndexRequest(paths=(str(LIVE / "documents"),), method="llm"), chosen)
    return open_snapshot(corpus), result, kept


def test_the_ten_documents_are_indexed_with_the_kept_replies(live_index: tuple[Snapshot, Any, Any]) -> None:
    _, result, kept = live_index
    assert kept.missing == [], AGAIN
    assert result.status == "done" and result.counts["added"] == 10 and not result.pending
    assert set(result.usage["by_stage"]) == {"extract", "glean", "report"}


def test_every_entity_and_relationship_that_a_reader_wrote_is_in_the_graph(live_index: tuple[Snapshot, Any, Any]) -> None:
    snapshot, _, _ = live_index
    rows = snapshot.rows("entities").to_pylist()
    titles = {row["id"]: row["title"] for row in rows}
    pairs = {frozenset((titles[row["source_id"]].casefold(), titles[row["target_id"]].casefold()))
             for row in snapshot.rows("relationships").to_pylist()}  # fmt: skip
    # Tidewright is a name of Tidewright Ltd.
    of = {name: row["title"].casefold() for row in rows for name in (row["title"].casefold(), *row["names"])}
    known = {name.removeprefix("the ") for name in of}
    named, related = set(), set()
    for one in (*said("extract"), *said("extract_more")):
        named |= {bare(name).removeprefix("the ") for (name,) in written(one["reply"], "entities", "name")}
        ends = written(one["reply"], "relationships", "source", "target")
        related |= {frozenset(of.get(name, name) for name in map(bare, pair)) for pair in ends}
    unread = UNREAD.casefold()
    assert len(named) > 60 and named <= known | {"（2022）临民初字第0317号", unread}
    assert len(related) > 70 and related - pairs == {pair for pair in related if unread in pair}
