"""What claim_work leases is what it shows, a client has its own items again, and answers can be corrected."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphrag_mcp.app import App
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.server import build_server
from graphrag_mcp.settings import Settings
from graphrag_mcp.store import leases
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest, InlineText
from tests.index.test_work import MIRA, entities, indexed, settings
from tests.support.client import Caller, connected, item_texts
from tests.support.workload import until

WORDS = "Mira Okafor and Jonas Okafor kept the tide mill at Sable Point with the Sable Cooperative. "


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "corpora" / "kb"
    indexed(folder, **{str(n): f"Text {n} begins. {WORDS * 55} Text {n} ends here." for n in range(6)})
    return folder


@pytest.fixture
def caller(folder: Path) -> Iterator[Caller]:
    with connected(build_server(App(settings(folder)))) as caller:
        yield caller


def shown(folder: Path, claimed: dict) -> set[str]:
    """Claimed items of a reply, each checked to stand there whole."""
    units, texts = {leases.work_id(key): text for key, text in texts_of(folder)}, item_texts(claimed)
    for item in claimed["items"]:
        assert units[item["work_id"]] in texts[item["work_id"]]
    return {item["work_id"] for item in claimed["items"]}


def texts_of(folder: Path) -> Iterator[tuple[str, str]]:
    units = {row["id"]: row["text"] for row in open_snapshot(folder).rows("text_units").to_pylist()}
    with leases._open(folder) as db:
        for key, subject in db.execute("SELECT key, subject FROM leases"):
            yield key, units[subject]


def leased(folder: Path) -> set[str]:
    with leases._open(folder) as db:
        return {id for (id,) in db.execute("SELECT work_id FROM leases WHERE until > unixepoch()")}


@pytest.mark.parametrize("budget", [3000, 4000, 5000, 6000, 9000, 14000])
def test_what_is_leased_is_shown_whole_at_every_budget(folder: Path, caller: Caller, budget: int) -> None:
    claimed = caller.good("claim_work", corpus="kb", kind="extract", max_items=20, max_tokens=budget)
    assert claimed["tokens"] <= budget
    assert leased(folder) == shown(folder, claimed)
    assert claimed["items"] or "larger max_tokens" in claimed["text"]


def test_a_client_that_asks_again_has_its_own_items_again(folder: Path, caller: Caller) -> None:
    first = caller.good("claim_work", corpus="kb", kind="extract", max_items=1, max_tokens=9000)
    again = caller.good("claim_work", corpus="kb", kind="extract", max_items=1, max_tokens=9000)
    assert shown(folder, first) == shown(folder, again) == leased(folder) and len(first["items"]) == 1


def test_summaries_are_claimed_and_handed_in_over_the_protocol(folder: Path, caller: Caller) -> None:
    claimed = caller.good("claim_work", corpus="kb", kind="summary")
    assert len(claimed["items"]) == 6 and "at most 45 words" in claimed["text"]
    text = "Mira Okafor and Jonas Okafor kept the tide mill at Sable Point."
    results = [
        {"work_id": item["work_id"], "text": text, "labels": ["mills"], "names": []} for item in claimed["items"]
    ]
    done = caller.good("submit_work", corpus="kb", results=results)
    assert len(done["accepted"]) == 6 and done["rejected"] == []
    until(lambda: text in caller.good("list_documents", corpus="kb")["text"])


def work_of(caller: Caller) -> str:
    return caller.good("claim_work", corpus="kb", kind="extract", max_items=1, max_tokens=9000)["items"][0]["work_id"]


def described(text: str) -> dict:
    entities = [{**MIRA["entities"][0], "description": text}, MIRA["entities"][1]]
    return {"entities": entities, "relationships": MIRA["relationships"]}


def test_a_second_answer_replaces_the_first_before_and_after_it_is_merged(folder: Path, caller: Caller) -> None:
    work = work_of(caller)
    for words in ("She built a wind mill.", "She built a tide mill."):
        done = caller.good("submit_work", corpus="kb", results=[{"work_id": work, **described(words)}])
        assert done["accepted"] == [work] and done["rejected"] == []
    assert "replaces" in done["text"]
    until(lambda: "She built a tide mill." in entities(folder).get("Mira Okafor", {}).get("description", ""))
    assert "wind mill" not in entities(folder)["Mira Okafor"]["description"]
    caller.good("submit_work", corpus="kb", results=[{"work_id": work, **described("She built a lighthouse.")}])
    until(lambda: "She built a lighthouse." in entities(folder)["Mira Okafor"]["description"])
    assert "tide mill." not in entities(folder)["Mira Okafor"]["description"].replace("Mira Okafor built the", "")


def test_the_tools_of_writers_are_listed_while_a_document_has_no_summary(tmp_path: Path) -> None:
    folder = tmp_path / "corpora" / "kb"
    home = Settings(home=tmp_path, roots=())
    index_documents(folder, IndexRequest(texts=tuple(InlineText(WORDS * 4, n) for n in "ab"), method="fast"), home)
    pair = ["claim_work", "submit_work"]

    def listed(read_only: bool = False) -> list[str]:
        with connected(build_server(App(home), "core", read_only)) as caller:
            return [tool.name for tool in caller.portal.call(caller.client.list_tools).tools]

    assert listed()[-2:] == pair and not set(pair) & set(listed(read_only=True))
    with connected(build_server(App(home), "core")) as caller:
        claimed = caller.good("claim_work", kind="summary")
        told = [
            {"work_id": one["work_id"], "text": "Mira Okafor kept a mill.", "labels": ["mills"]}
            for one in claimed["items"]
        ]
        assert len(caller.good("submit_work", results=told)["accepted"]) == 1  # two equal texts are one question
    until(lambda: open_snapshot(folder).count("summaries") == 2)
    assert listed() and not set(pair) & set(listed())


def test_the_tools_of_writers_are_listed_while_a_report_waits_for_an_agent(tmp_path: Path) -> None:
    """After the last summary `claim_work` names the reports as the next work: a client that lists the
    tools again still has to find it."""
    folder = tmp_path / "corpora" / "kb"
    home = Settings(home=tmp_path, roots=())
    texts = tuple(InlineText(f"{WORDS} Note {n} on mill {n}. " * 3, f"note{n}") for n in range(6))
    index_documents(folder, IndexRequest(texts=texts, method="fast"), home)

    def listed() -> bool:
        with connected(build_server(App(home), "core")) as caller:
            names = [tool.name for tool in caller.portal.call(caller.client.list_tools).tools]
            return {"claim_work", "submit_work"} <= set(names)

    with connected(build_server(App(home), "core")) as caller:
        items = caller.good("claim_work", kind="summary")["items"]
        told = {"text": "Mira Okafor kept a mill.", "labels": ["mills"]}
        written = [{"work_id": item["work_id"], **told} for item in items]
        caller.good("submit_work", results=written)
        until(lambda: open_snapshot(folder).count("pending") == 1)
        assert listed()
        (report,) = caller.good("claim_work", kind="report", level=0)["items"]
        finding = {"summary": "A mill was kept.", "explanation": "By Mira Okafor [Data: Sources (1)]."}
        text = {"title": "Mills", "summary": "Mira Okafor kept a mill [Data: Sources (1)].", "findings": [finding]}
        text |= {"rating": 5, "rating_explanation": "It is all."}
        caller.good("submit_work", results=[{"work_id": report["work_id"], "text": json.dumps(text)}])
        until(lambda: not open_snapshot(folder).count("pending"))
        assert not listed()
