"""benchmarks/live: requests become files, replies become fixtures, and every kept reply is read without loss."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphrag_mcp.llm.protocols import Message
from graphrag_mcp.llm.scripted import ScriptedChat, demonstration
from tests.conftest import ROOT

LIVE = ROOT / "benchmarks" / "live"
spec = importlib.util.spec_from_file_location("live", LIVE / "live.py")
assert spec and spec.loader
live: Any = importlib.util.module_from_spec(spec)
spec.loader.exec_module(live)
RECORDED = sorted((LIVE / "recorded").glob("*.json"))
EXTRACT = [{"role": "user", "content": "List the entities of a text\n<text>\nInes leads the Board.\n</text>"}]


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[list[str]]:
    """Answers open requests in the folder, each in a fence behind a sentence, as chat models do."""
    chat, done, replied = ScriptedChat(demonstration()), threading.Event(), list[str]()
    folder = tmp_path / "work" / "asks"

    def read() -> None:
        while not done.wait(0.05):
            for ask in live.Folder(folder).open():
                asked = json.loads((folder / f"{ask.name[:4]}.json").read_text("utf-8"))
                messages = [Message(one["role"], one["content"]) for one in asked["messages"]]
                said = asyncio.run(chat.complete(messages, schema=asked["response_format"])).text
                part = folder / f"{ask.name[:4]}.tmp"
                part.write_text(f"Here is what you asked for:\n\n```\n{said}\n```\n", "utf-8")
                part.rename(folder / f"{ask.name[:4]}.reply.md")
                replied.append(ask.name)

    thread = threading.Thread(target=read)
    thread.start()
    yield replied
    done.set()
    thread.join()


def test_a_run_is_answered_through_files_recorded_and_replayed_without_loss(
    tmp_path: Path, reader: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = tmp_path / "bench"
    (here / "documents").mkdir(parents=True)
    for name in ("05-letter-oyelaran.md", "02-interview-with-the-keeper.md"):
        (here / "documents" / name).write_bytes((LIVE / "documents" / name).read_bytes())
    questions = json.loads((LIVE / "questions.json").read_text("utf-8"))
    (here / "questions.json").write_text(json.dumps([questions[4], questions[9]]), "utf-8")
    monkeypatch.setattr(live, "HERE", here)
    monkeypatch.setattr(live, "RECORDED", here / "recorded")
    work = tmp_path / "work"
    assert live.main(["run", str(work)]) == 0
    said = {one.stem: json.loads(one.read_text("utf-8")) for one in (work / "results").glob("*.json")}
    assert set(said) == {"dry-run", "index", "q05", "q10"}
    assert said["q05"]["result"]["state"] == "answered" and said["q10"]["result"]["answer"]
    before = len(reader)
    assert live.main(["run", str(work)]) == 0 and len(reader) == before
    assert live.main(["record", str(work), "--reader", "demonstration"]) == 0
    kinds = {json.loads(one.read_text("utf-8"))["kind"] for one in (here / "recorded").glob("*.json")}
    assert {"extract", "answer", "drift_auto_primer", "drift_auto_step"} <= kinds
    capsys.readouterr()
    assert live.main(["replay"]) == 0, capsys.readouterr().out
    assert "extract: " in capsys.readouterr().out


def test_a_lost_record_is_seen() -> None:
    twice = 'Sure!\n("entity"<|>Ines<|>person<|>Ines leads it.)##("entity"<|>Ines<|>person<|>Ines leads it.)'
    tagless = twice + "\n(Board<|>organization<|>The Board is led by Ines.<|>more)\n<|COMPLETE|>"
    assert live.replay({"kind": "extract", "messages": EXTRACT, "reply": twice}) == (1, 1)
    there, kept = live.replay({"kind": "extract", "messages": EXTRACT, "reply": tagless})
    assert kept < there


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_no_well_formed_record_of_a_kept_reply_is_lost(path: Path) -> None:
    there, kept = live.replay(json.loads(path.read_text("utf-8")))
    assert kept >= there


def test_documents_and_questions_are_as_the_protocol_says() -> None:
    documents = [one.read_text("utf-8") for one in (LIVE / "documents").iterdir()]
    assert len(documents) == 10 and sum("闸" in text for text in documents) == 4
    questions = json.loads((LIVE / "questions.json").read_text("utf-8"))
    assert [one["id"] for one in questions] == [f"q{n:02}" for n in range(1, 13)]
    assert {one["mode"] for one in questions} == {"local", "global", "drift"}
