"""Answers that the server cut off at its length limit: shown, called what they are, and asked for anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from graphrag_mcp.llm.asker import Asker
from graphrag_mcp.llm.protocols import Reply
from graphrag_mcp.llm.scripted import ScriptedChat
from graphrag_mcp.query.local import local_search
from graphrag_mcp.store.reply_cache import AnswerBook
from graphrag_mcp.store.tables import open_snapshot
from tests.test_answer import QUESTION, SAID


def test_an_answer_that_was_cut_off_is_shown_as_such_and_not_kept(sample_home: Path, tmp_path: Path) -> None:
    snapshot = open_snapshot(sample_home / "corpora" / "sample")

    class Cut(ScriptedChat):
        finish = "length"

        async def complete(self, *given: Any, **wishes: Any) -> Reply:
            said = await super().complete(*given, **wishes)
            return Reply(said.text, said.usage, self.finish)

    chat = Cut([("<context>", SAID), ("low_level", '{"high_level": [], "low_level": []}')])
    door = Asker(AnswerBook(tmp_path), chat, None)
    results = []
    for chat.finish in ("length", "stop", "length"):
        results.append(local_search(snapshot, QUESTION, asker=door, answer=True))
    assert [result.state for result in results] == ["partial", "answered", "answered"]
    assert "cut off" in results[0].hint and "cut off" not in results[1].hint
    assert results[0].answer == results[2].answer
    door.close()
