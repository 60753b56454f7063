"""Records that a reply loses are counted and told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from graphrag_mcp.app import App
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.server import build_server
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest, IndexResult, InlineText
from tests.support.client import connected
from tests.support.openai_server import Server, openai_server
from tests.support.promises import doctor
from tests.support.reply_forms import entity, records, relation

TEXTS = {
    "c": "Sable Point has a chapel.",
    "a": "Mira Okafor built the tide mill at Sable Point in 1904. Her brother Jonas Okafor kept its books.",
    "b": "The tide mill at Sable Point burned in 1931. Jonas Okafor rebuilt it with the Sable Cooperative.",
}
GOOD = [
    entity("Mira Okafor", "Mira Okafor built the mill."),
    entity("Jonas Okafor", "Jonas Okafor kept the books."),
    entity("Sable Point", "Sable Point has a mill.", "location"),
    relation("Mira Okafor", "Sable Point", "She built the mill there.", "building", 9),
    relation("Jonas Okafor", "Sable Point", "He kept the books of the mill.", "books", 6),
]
BARE = [entity("tide mill", "", "artifact"), entity("--- ", "A person."), entity("Ada Obi", "She is not named in the text.")]
VAGUE = relation("Mira Okafor", "Jonas Okafor", "They are siblings.", "family", "very")
ALONE = relation("Mira Okafor", "tide mill", "She built it.", "building", 4)
reply = records


def asked(messages: list[dict[str, Any]]) -> str:
    return "\n".join(message["content"] for message in messages)


def model(server: Server, **more: Any) -> Settings:
    given = {"chat_model": "m", "base_url": server.url, "gleanings": "0", "max_retries": 0, "report_min_units": 99, "concurrency": 1}
    return Settings(**{**given, **more})


def index(folder: Path, given: Settings, *ids: str) -> IndexResult:
    texts = tuple(InlineText(TEXTS[id], id) for id in ids)
    return index_documents(folder, IndexRequest(texts=texts, method="llm" if given.chat_model else "fast"), given)


def damaged(messages: list[dict[str, Any]], body: dict[str, Any]) -> str:
    return reply(*GOOD, BARE[0], VAGUE, ALONE) if "built the tide mill" in asked(messages) else reply(*GOOD[1:3])


WHY = "records of the reply left out 1 (1 x no description), repaired 2 (1 x end without an entity, 1 x no strength from 0 to 10)"


def test_what_a_reply_lost_is_told_by_the_run_by_status_and_by_text(tmp_path: Path) -> None:
    folder = tmp_path / "corpora" / "kb"
    with openai_server(damaged) as server:
        result = index(folder, model(server), "a", "b")
        assert result.usage["calls"] == 2 and not result.pending
        assert result.losses == {"dropped": 1, "repaired": 2, "texts": 1}
        (lost,) = result.degraded
        assert (lost["kind"], lost["document"], lost["reason"]) == ("records", "text:a", WHY)
        again = index(folder, model(server), "a", "b")
        assert (again.losses, again.degraded) == ({}, []), "a run tells of what it read"
        with connected(build_server(App(model(server, home=tmp_path)))) as caller:
            status = caller.good("graph_status", corpus="kb")
            assert status["losses"] == {"dropped": 1, "repaired": 2, "texts": 1}
            assert f"1 left out and 2 repaired, in 1 text units.\n- {lost['id']}: {WHY}" in status["text"]
            said = caller.good("index_documents", texts=[{"id": "c", "text": TEXTS["a"] + " So it is said."}], corpus="kb", wait_seconds=40)
            assert said["losses"]["dropped"] == 1 and "Records of the replies: 1 left out" in said["text"]
    assert doctor(folder) == []
    index(folder, Settings(home=tmp_path), "a", "b")
    assert open_snapshot(folder).count("losses") == 0, "read by rules, these texts have lost nothing"


def test_the_losses_of_a_text_go_with_it_and_come_back_from_the_reply_cache(tmp_path: Path) -> None:
    folder = tmp_path / "corpora" / "kb"
    with openai_server(damaged) as server:
        index(folder, model(server), "a", "b")
        TEXTS_OF_C = (InlineText("Nothing is said here.", "a"),)
        index_documents(folder, IndexRequest(texts=TEXTS_OF_C, method="llm"), model(server))
        assert open_snapshot(folder).rows("losses").to_pylist() == []
        back = index(folder, model(server), "a")
        assert back.usage["calls"] == 0 and back.losses == {"dropped": 1, "repaired": 2, "texts": 1}


# ---- refused twice --------------------------------------------------------------------------------


def test_what_was_refused_twice_is_named_and_asked_again_only_when_told(tmp_path: Path) -> None:
    questions: list[str] = []

    def answer(messages: list[dict[str, Any]], body: dict[str, Any]) -> str:
        questions.append(asked(messages))
        if "chapel" in questions[-1]:
            return reply(GOOD[2])
        return "I would rather not." if "burned in 1931" in questions[-1] else reply(*GOOD)

    folder = tmp_path / "corpora" / "kb"
    with openai_server(answer) as server:
        first = index(folder, model(server), "a", "b")
        assert len(questions) == 3 and first.pending == first.refused == {"extract": 1}
        (named,) = [one for one in first.degraded if one["kind"] == "extract"]
        assert named["document"] == "text:b" and named["reason"] == "refused twice by m: there is no JSON in the reply"
        again = index(folder, model(server), "a", "b")
        assert len(questions) == 3 and again.usage["calls"] == 0 and again.refused == {"extract": 1}
        index(folder, model(server), "a", "b", "c")
        assert len(questions) == 4, "a new text is asked about"
        assert open_snapshot(folder).count("pending") == 1 and doctor(folder) == []
        texts = tuple(InlineText(TEXTS[id], id) for id in ("a", "b"))
        foreseen = index_documents(folder, IndexRequest(texts=texts, method="llm", dry_run=True), model(server))
        assert foreseen.estimate["calls"] == 0
        told = index_documents(folder, IndexRequest(texts=texts, method="llm", retry_refused=True), model(server))
        assert len(questions) == 6 and told.refused == {"extract": 1}
        other = index(folder, model(server, chat_model="n"), "a", "b")
        assert len(questions) == 8 and other.refused == {"extract": 1}, "another model is asked"
        with connected(build_server(App(model(server, home=tmp_path)))) as caller:
            assert "Replies of the model were refused twice: 1 extract." in caller.good("graph_status", corpus="kb")["text"]
