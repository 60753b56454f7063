"""DRIFT walked by a model: few calls, one journal, resumed after a kill or a slow model, taken over by an agent."""

from __future__ import annotations

import json
import re
import zlib
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from graphrag_mcp.app import App
from graphrag_mcp.errors import ModelError
from graphrag_mcp.llm.asker import Asker
from graphrag_mcp.packing import sending
from graphrag_mcp.packing.budget import Item, Section
from graphrag_mcp.query import drift_llm
from graphrag_mcp.query.answer import page_text
from graphrag_mcp.query.drift import Drift, Limits
from graphrag_mcp.query.request import AnswerOptions
from graphrag_mcp.server import build_server
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.reply_cache import AnswerBook
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from tests.support.command import SAMPLE
from tests.support.scripted import ScriptedChat

QUESTION = "Why was the Meridian Tern lost, and who was right about the back-run?"
PRIMER, STEP, REDUCE = "a first answer to the question", "Small question", "Answer the question from the context below"
FIRST = [
    "What did the court of inquiry of 1969 conclude?", "What did Tobias Fenn see from the gallery?",
    "Where was the wreck found?", "What does the radar at Corrie Head show?", "Who was Ines Calloway?",
    "What did the court of inquiry of 1969 conclude then?",
]  # fmt: skip
ANSWER = "The sea turned on her [Data: Sources (t1, t2, t999)]."


@pytest.fixture(scope="module")
def snapshot(sample_home: Path) -> Snapshot:
    return open_snapshot(sample_home / "corpora" / "sample")


def primer(messages: Any, _: Any) -> str:
    said = "# The loss\nThe court blamed him [Data: Reports (1, 2)]."
    return json.dumps({"answer": said, "score": "60/100", "follow_up_queries": FIRST})


def step(messages: Any, _: Any) -> str:
    """Scores by a hash, follow-ups about names in the context: the same for the same question."""
    prompt = messages[-1].content
    names = list(dict.fromkeys(re.findall(r"[A-Z][a-z]+ [A-Z][a-z]+", prompt.partition("<context>")[2])))

    question = prompt.rpartition("Small question: ")[2]
    mark = zlib.crc32(question.encode())
    asked = [f"What is known about {name}?" for name in names[mark % 5 : mark % 5 + 4]]
    said = f"{names[mark % len(names)]} {names[mark // 7 % len(names)]} is named [t1]."
    return json.dumps({"answer": said, "score": 20 + mark % 76, "follow_up_queries": asked})


def asker(*rules: Any, book: Path | None = None, **options: Any) -> tuple[Asker, ScriptedChat]:
    chat = ScriptedChat([*rules, (PRIMER, primer), (STEP, step), (REDUCE, ANSWER)], **options)
    return Asker(AnswerBook(book) if book else None, chat, None), chat


def prompts_with(chat: ScriptedChat, mark: str) -> list[str]:
    return [call[-1].content for call in chat.calls if mark in call[-1].content]


# ---- the whole walk --------------------------------------------------------------------------------


def test_a_walk_reaches_its_depth_in_at_most_25_calls_and_says_how_many(snapshot: Snapshot, tmp_path: Path) -> None:
    door, chat = asker()
    session = Drift(snapshot, tmp_path / "w.jsonl")
    result = drift_llm.run(session, QUESTION, door)
    assert (result.state, result.done, result.method) == ("answered", True, "llm:scripted")
    assert result.usage["calls"] == len(chat.calls) <= 25
    assert result.usage["prompt_tokens"] <= 150_000 and str(len(chat.calls)) in result.hint
    walk = session.walk()
    assert {walk.graph.nodes[id]["depth"] for id in walk.with_status("answered")} == {0, 1, 2, 3}
    assert all(walk.graph.nodes[id]["by"] == "llm:scripted" for id in walk.with_status("answered"))
    assert "t999" not in result.answer and "t999" in result.hint and "### References" in result.text
    cited = re.findall(r"\bt\d+(?:\.\d+)?", result.answer)
    assert cited and {*cited} <= {citation.id for citation in result.citations}
    assert sending.size(result)[0] <= 6000 and "## Answers" not in result.text


def test_the_rows_of_a_step_are_numbered_within_it() -> None:
    items = [Item("c7", "- [c7] Loss: It is so.", section="Reports"), Item("t4.2", "[t4.2] It is so, says t4.2.")]
    text, names = page_text([Section("Reports", items, 1.0)], {"Reports": items})
    assert text == "## Reports\n- [c1] Loss: It is so.\n[t1] It is so, says t4.2." and names == {"c1": "c7", "t1": "t4.2"}


def test_limits_of_depth_breadth_and_nodes_hold(snapshot: Snapshot, tmp_path: Path) -> None:
    door, chat = asker()
    drift_llm.run(Drift(snapshot, tmp_path / "a.jsonl"), QUESTION, door, Limits(depth=1))
    assert len(chat.calls) <= 8
    door, chat = asker()
    drift_llm.run(Drift(snapshot, tmp_path / "b.jsonl"), QUESTION, door, Limits(max_nodes=3, breadth=1))
    assert len(prompts_with(chat, STEP)) <= 2


def test_prompts_hold_no_stored_number_and_are_the_same_every_time(snapshot: Snapshot, tmp_path: Path) -> None:
    seen = []
    for name in ("a", "b"):
        door, chat = asker()
        drift_llm.run(Drift(snapshot, tmp_path / f"{name}.jsonl"), QUESTION, door, Limits(depth=2))
        seen.append(sorted(call[-1].content for call in chat.calls))
    assert seen[0] == seen[1]
    for prompt in prompts_with(chat, STEP):
        heads = re.findall(r"^\[(t[\d.]+)\]", prompt, re.MULTILINE)
        assert heads == [f"t{n + 1}" for n in range(len(heads))]
    numbers = re.findall(r"^- \[c(\d+)\]", prompts_with(chat, PRIMER)[0], re.MULTILINE)
    assert numbers and numbers == [str(n + 1) for n in range(len(numbers))]
    named = set(re.findall(r"\bt\d+(?:\.\d+)?\b", prompts_with(chat, REDUCE)[0].partition("<context>")[2]))
    assert named == {f"t{n + 1}" for n in range(len(named))}


# ---- going on --------------------------------------------------------------------------------------


def test_a_walk_out_of_time_says_how_to_go_on_and_pays_for_nothing_twice(snapshot: Snapshot, tmp_path: Path) -> None:
    door, chat = asker(book=tmp_path, latency=0.15)
    session = Drift(snapshot, tmp_path / "w.jsonl")
    result = drift_llm.run(session, QUESTION, door, options=AnswerOptions(seconds=0.25))
    assert (result.state, result.done, result.session_id) == ("partial", False, "w")
    assert result.next_call.startswith("drift_search(") and 'mode="auto"' in result.next_call
    for _ in range(20):
        if result.state != "partial":
            break
        result = drift_llm.run(Drift(snapshot, session.path), QUESTION, door, options=AnswerOptions(seconds=0.6))
    assert result.state == "answered"
    assert len({call[-1].content for call in chat.calls}) == len(chat.calls) <= 25


def test_a_killed_walk_goes_on_from_its_journal(snapshot: Snapshot, tmp_path: Path) -> None:
    door, chat = asker(book=tmp_path)
    whole = drift_llm.run(Drift(snapshot, tmp_path / "whole.jsonl"), QUESTION, door, Limits(depth=2))
    asked = len(chat.calls)
    journal = (tmp_path / "whole.jsonl").read_bytes().splitlines(keepends=True)
    for lines in (1, 4, len(journal) // 2, len(journal) - 2):
        killed = tmp_path / f"killed-{lines}.jsonl"
        killed.write_bytes(b"".join(journal[:lines]) + journal[lines][:20])
        again = drift_llm.run(Drift(snapshot, killed), QUESTION, door, Limits(depth=2))
        assert again.answer == whole.answer and len(chat.calls) == asked


def test_an_agent_goes_on_where_the_model_stopped(snapshot: Snapshot, tmp_path: Path) -> None:
    door, _ = asker((STEP, ModelError("the server said 503", "Try later")))
    session = Drift(snapshot, tmp_path / "w.jsonl")
    result = drift_llm.run(session, QUESTION, door)
    assert (result.state, result.done) == ("context", False) and "503" in result.hint and "drift_step" in result.next_call
    open_node = session.walk().with_status("open")[0]
    stepped = session.step(open_node, "The court blamed the master [t1].", 55)
    assert stepped.answered == 2 and session.walk().graph.nodes[open_node]["by"] == ""
    door, chat = asker()
    assert drift_llm.run(session, QUESTION, door).state == "answered"
    assert session.walk().graph.nodes[open_node]["answer"] == "The court blamed the master [t1]."


def test_a_model_that_never_answers_leaves_a_session_to_walk(snapshot: Snapshot, tmp_path: Path) -> None:
    door, _ = asker(("", ModelError("the key is wrong", "Set another", final=True)))
    result = drift_llm.run(Drift(snapshot, tmp_path / "w.jsonl"), QUESTION, door)
    assert (result.state, result.answer, result.answered, result.done) == ("context", "", 0, False)
    assert "the key is wrong" in result.hint and "drift_step" in result.next_call and result.citations


# ---- one node, and the reduction ------------------------------------------------------------------


def test_the_model_answers_one_node_of_an_agents_walk(snapshot: Snapshot, tmp_path: Path) -> None:
    session = Drift(snapshot, tmp_path / "w.jsonl")
    root = session.start(QUESTION).open_node
    opened = session.step(root, "The court blamed the master [t1].", 60, FIRST[:3]).open_node
    door, chat = asker()
    result = drift_llm.answer_node(session, opened, door)
    node = session.walk().graph.nodes[opened]
    assert len(chat.calls) == 1 and node["by"] == result.method == "llm:scripted" and result.answer == node["answer"]
    assert result.open_node not in ("", opened) and "## Sources" in result.text
    assert sending.size(result)[0] <= 6000 and result.usage["calls"] == 1
    size = session.path.stat().st_size
    again = drift_llm.answer_node(session, opened, door)
    assert session.path.stat().st_size == size and (again.open_node, again.answer) == (result.open_node, result.answer)
    unanswered = drift_llm.answer_node(session, result.open_node, None)
    assert unanswered.open_node == result.open_node and "GRAPHRAG_MCP_CHAT_MODEL" in unanswered.hint


# ---- what a careless agent does -------------------------------------------------------------------


def test_finish_is_done_only_when_nothing_waits(snapshot: Snapshot, tmp_path: Path) -> None:
    session = Drift(snapshot, tmp_path / "w.jsonl")
    root = session.start(QUESTION, Limits(depth=1)).open_node
    opened = session.step(root, "One.", 50, FIRST[:1]).open_node
    waiting = session.finish()
    assert not waiting.done and opened in waiting.next_call
    session.step(opened, "Two.", 50)
    assert session.finish().done and session.finish().next_call == ""


# ---- through the tools -----------------------------------------------------------------------------


def test_the_tools_walk_alone_or_step_by_step(sample_home: Path, tmp_path: Path) -> None:
    class Answering(App):
        door = asker(book=tmp_path)[0]

        def asker(self, corpus: str) -> Asker:
            return self.door

        def drift_path(self, session_id: str) -> Path:
            return tmp_path / "drift" / super().drift_path(session_id).name

    app = Answering(Settings(home=sample_home, roots=(SAMPLE,)))

    async def walk() -> list[dict[str, Any]]:
        async with Client(build_server(app)) as client:
            async def call(tool: str, **arguments: Any) -> dict[str, Any]:
                result = await client.call_tool(tool, arguments)
                assert not result.is_error, result.content[0].text
                return result.structured_content

            alone = await call("drift_search", query=QUESTION, corpus="sample", mode="auto")
            again = await call("drift_search", query=QUESTION, corpus="sample", mode="auto")
            begun = await call("drift_search", query=QUESTION, corpus="sample")
            first = await call("drift_step", session_id=begun["session_id"], node_id=begun["open_node"], auto=True)
            joined = await call("drift_finish", session_id=begun["session_id"], reduce=True)
            Answering.door = Asker(None, None, None)
            without = await call("drift_search", query=QUESTION, corpus="sample", mode="auto")
            return [alone, again, begun, first, joined, without]

    alone, again, begun, first, joined, without = anyio.run(walk)
    assert alone["state"] == again["state"] == "answered" and alone["done"]
    assert alone["session_id"] == again["session_id"] != begun["session_id"] and alone["answer"] == again["answer"]
    assert first["method"] == "llm:scripted" and first["answered"] == 1 and first["open_node"]
    assert joined["answer"].startswith("The sea turned on her")
    assert without["state"] == "context" and without["open_node"] and "GRAPHRAG_MCP_CHAT_MODEL" in without["hint"]
