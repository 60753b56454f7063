"""What machines share through object storage beside the index: replies of models, and DRIFT sessions."""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from graphrag_mcp.app import App
from graphrag_mcp.errors import GraphRAGError
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.llm.asker import Asker
from graphrag_mcp.query.drift import Drift
from graphrag_mcp.store import mirror, sessions, shared_replies
from graphrag_mcp.store.reply_cache import AnswerBook, Stored
from graphrag_mcp.types import IndexRequest
from tests.support.command import clean_environment, run_cli
from tests.support.scripted import ScriptedChat, ScriptedEmbedder

pytest.importorskip("obstore", reason="the extra [object-storage] is not installed")
pytest.importorskip("moto", reason="there is no S3 server to test with")

from tests.index.test_index_with_model import demo, write_documents
from tests.llm.test_asker import asked, question
from tests.store.test_object_storage import URL, machine, note, store  # noqa: F401  (a fixture)
from tests.support.object_store import ObjectStore
from tests.support.openai_server import openai_server


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is sent by a timer, so that a test says when: at `close`."""
    monkeypatch.setattr(shared_replies, "SEND_SECONDS", 3600.0)
    monkeypatch.setattr(mirror, "BACK_OFF", 0.0)
    monkeypatch.setattr(mirror, "LOOK_SECONDS", 30.0)
    monkeypatch.setattr(sessions, "BACK_OFF", 0.0)
    monkeypatch.setattr(shared_replies, "BACK_OFF", 0.0)


def book_of(app: App, indexing: bool = True) -> AnswerBook:
    return shared_replies.book(app.folder("notes"), indexing=indexing)


def stored(key: str, text: str = "good", kind: str = "extract", by: str = "llm:m") -> Stored:
    return Stored(key, by, kind, text, 3, 4)


def put(app: App, *rows: Stored) -> None:
    book = book_of(app)
    book.put(rows)
    book.close()


def texts(app: App, key: str, indexing: bool = True) -> list[str]:
    book = book_of(app, indexing)
    found = [one.text for one in book.get(key)]
    book.close()
    return found


def segments(app: App, kind: str = "") -> list[str]:
    return [one["path"] for one in mirror.of(app.folder("notes")).store.listed(f"corpora/notes/replies/{kind}")]


# ---- replies of models --------------------------------------------------------------------------------


def test_what_one_machine_has_paid_for_no_other_pays_for_again(store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    docs, one, two = write_documents(tmp_path / "docs", 6), tmp_path / "one", tmp_path / "two"
    with openai_server(demo) as server:
        models = {"chat_model": "m", "embedding_model": "e", "base_url": server.url, "report_min_size": 3, "report_min_units": 1}
        monkeypatch.setenv("OPENAI_API_KEY", "right-key")
        request, apps = IndexRequest(paths=(docs,), method="llm"), [machine(folder, **models) for folder in (one, two)]
        push = mirror.Mirror.push
        with monkeypatch.context() as patched:  # this machine is lost after the last reply and before the commit

            def lost(self: mirror.Mirror, generation: int, shas: Any, raw: bytes) -> None:
                if json.loads(raw)["communities_generation"] == generation:
                    raise GraphRAGError("the machine is gone", "")
                push(self, generation, shas, raw)

            patched.setattr(mirror.Mirror, "push", lost)
            with pytest.raises(GraphRAGError, match="the machine is gone"):
                index_documents(apps[0].folder("notes"), request, apps[0].settings)
        calls = len(server.requests)
        result = index_documents(apps[1].folder("notes"), request, apps[1].settings)
        assert result.status == "done" and not result.pending and calls > 5
        assert len(server.requests) - calls == result.usage["calls"] == 0


def test_a_question_of_a_search_is_paid_for_once_and_a_search_leaves_the_replies_of_indexing(store: ObjectStore, tmp_path: Path) -> None:  # noqa: F811
    apps = [machine(tmp_path / name) for name in ("one", "two")]
    chat = ScriptedChat([("", "good")])
    first = Asker(book_of(apps[0], indexing=False), chat, ScriptedEmbedder())
    assert asked(first, question("who?", "map"), question("read this", "extract"))[0].fresh
    first.wait(first.embed(["a passage"]))
    first.close()
    assert len(chat.calls) == 2 and {path.split("/")[-2] for path in segments(apps[0])} == {"map", "extract", "embedding"}
    second = Asker(book_of(apps[1], indexing=False), chat, None)
    assert not asked(second, question("who?", "map"))[0].fresh and len(chat.calls) == 2
    assert book_of(apps[1], indexing=False).kinds() == {"map": 1}
    second.close()
    third = Asker(book_of(apps[1]), chat, ScriptedEmbedder())  # now this machine indexes
    assert not asked(third, question("read this", "extract"))[0].fresh and len(chat.calls) == 2
    assert third.wait(third.embed(["a passage"])) and not third.spent().calls
    third.close()
    assert len(segments(apps[0])) == 3  # what came from the store was not sent there


def test_later_answers_and_deletions_count_whatever_arrives_first(store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    one, two, three = (machine(tmp_path / name) for name in ("one", "two", "three"))
    clock = iter(f"2026-01-01T00:00:{second:02d}+00:00" for second in range(60))
    monkeypatch.setattr("graphrag_mcp.store.reply_cache.now", lambda: next(clock))
    put(one, stored("k", "first", by="agent:a"), stored("other"))
    assert texts(two, "k") == ["first"]
    book = book_of(two)
    book.replace([stored("k", "corrected", by="agent:b")])  # takes out what the other agent said
    book.close()
    put(one, stored("third"))
    for app in (one, two, three):
        book_of(app).probe()
    assert texts(three, "k") == ["corrected"] and texts(two, "third") == ["good"]
    book = book_of(three)
    assert book.clear() == 3
    book.close()
    for app in (one, two, machine(tmp_path / "four")):
        held = book_of(app)
        held.probe()
        assert held.kinds() == {}
    put(one, stored("k", "anew", by="agent:b"))
    assert texts(three, "k") == []  # by the clock of this test that was before it was cleared
    monkeypatch.setattr("graphrag_mcp.store.reply_cache.now", lambda: "2999-01-01T00:00:00+00:00")
    put(one, stored("k", "anew", by="agent:b"))
    assert texts(three, "k") == texts(two, "k") == ["anew"]


def test_many_small_segments_become_few_and_lose_nothing(store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setattr(shared_replies, "SEGMENTS", 4)
    apps = [machine(tmp_path / f"m{number}") for number in range(3)]
    most = 0
    for number in range(36):
        put(apps[number % 3], stored(f"k{number}"), stored("same", str(number)))
        most = max(most, len(segments(apps[0])))
    fresh = book_of(machine(tmp_path / "fresh"))
    fresh.probe()
    assert fresh.kinds() == {"extract": 37} and most <= 8
    requests = len(store.trouble.requests)
    for app in apps:
        held = book_of(app)
        held.probe()
        assert held.kinds() == {"extract": 37}
    assert len(store.trouble.requests) - requests < 40


def test_replies_that_could_not_be_sent_are_sent_later(store: ObjectStore, tmp_path: Path) -> None:  # noqa: F811
    one, two = machine(tmp_path / "one"), machine(tmp_path / "two")
    store.trouble.read_only = True
    put(one, stored("k"))
    assert texts(one, "k") == ["good"] and texts(two, "k") == []
    store.trouble.status = 403
    put(one, stored("k2"))
    assert texts(one, "k2") == ["good"] and texts(one, "nobody knows") == []
    store.trouble.read_only, store.trouble.status = False, 0
    book = book_of(one)
    book.probe()  # as at the next start of a process
    book.close()
    assert texts(two, "k") == texts(two, "k2") == ["good"]


def test_a_segment_that_was_changed_is_not_believed(store: ObjectStore, tmp_path: Path) -> None:  # noqa: F811
    one, two = machine(tmp_path / "one"), machine(tmp_path / "two")
    put(one, stored("k"))
    mirror.of(one.folder("notes")).store.put(segments(one)[0], b"PAR1 other bytes PAR1")
    assert texts(two, "k") == [] and texts(one, "k") == ["good"]


def test_a_deleted_corpus_leaves_no_replies_on_the_store(store: ObjectStore, tmp_path: Path) -> None:  # noqa: F811
    from graphrag_mcp.jobs.delete import delete

    one = machine(tmp_path / "one")
    note(one, 1)
    put(one, stored("k"))
    assert segments(one)
    delete(one.home, "notes")
    assert not segments(one)


# ---- DRIFT sessions -----------------------------------------------------------------------------------


def lines(path: Path) -> list[int]:
    return [event["n"] for event in sessions.read(path)]


def test_a_session_begun_on_one_machine_goes_on_and_ends_on_others(store: ObjectStore, tmp_path: Path) -> None:  # noqa: F811
    apps = [machine(tmp_path / name) for name in ("one", "two", "three")]
    note(apps[0], *range(5))

    def session(app: App) -> Drift:
        return Drift(app.snapshot("notes"), app.drift_path("drift-1"))

    root = session(apps[0]).start("Whom did Quorra1 meet?").open_node
    step = session(apps[1]).step(root, "Ida Bellweather [t1].", 70, ["Where did Quorra2 meet her?"])
    assert step.answered == 1 and step.open_node
    last = session(apps[0]).step(step.open_node, "In Port Lumen [t2].", 80, [])
    assert last.answered == 2
    told = session(apps[2]).finish().text
    assert "Ida Bellweather" in told and "Port Lumen" in told
    environment = clean_environment(**store.environment, XDG_CACHE_HOME=str(tmp_path / "four"))
    listed = run_cli("drift", "--home", URL, env=environment)
    assert listed.returncode == 0 and "drift-1" in listed.stdout and "  2/" in listed.stdout, listed.stdout


def test_appends_of_several_machines_at_once_are_all_kept(store: ObjectStore, tmp_path: Path) -> None:  # noqa: F811
    paths = [machine(tmp_path / f"m{number}").drift_path("s") for number in range(4)]

    def write(place: int) -> None:
        for number in range(6):
            sessions.append(paths[place], {"n": 100 * place + number})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    wanted = sorted(100 * place + number for place in range(4) for number in range(6))
    for path in [*paths, machine(tmp_path / "new").drift_path("s")]:
        assert sorted(lines(path)) == wanted
    assert len({tuple(lines(path)) for path in paths}) == 1


def test_a_session_goes_on_while_the_store_cannot_be_reached_and_is_brought_together(store: ObjectStore, tmp_path: Path) -> None:  # noqa: F811
    one, two = (machine(tmp_path / name).drift_path("s") for name in ("one", "two"))
    sessions.append(one, {"n": 1})
    assert lines(two) == [1]
    store.trouble.status = 403
    sessions.append(one, {"n": 2})
    assert lines(one) == [1, 2] and lines(two) == [1]
    store.trouble.status = 0
    sessions.append(two, {"n": 3})
    assert lines(one) == [1, 3, 2]
    sessions.append(one, {"n": 4})
    assert lines(two) == [1, 3, 2, 4]


def test_sessions_are_listed_and_forgotten_everywhere(store: ObjectStore, tmp_path: Path) -> None:  # noqa: F811
    one, two = (machine(tmp_path / name).drift_path("x").parent for name in ("one", "two"))
    for name in ("a", "b"):
        sessions.append(one / f"{name}.jsonl", {"n": 1})
    assert sorted(path.stem for path in sessions.listing(two)) == ["a", "b"]
    old = time.time() - 40 * 86_400
    for path in (one / "a.jsonl", two / "b.jsonl"):
        os.utime(path, (old, old))
    assert sessions.forget(two, 30 * 86_400) == 0  # on the store they are new
    assert sessions.forget(two, -60) == 2 and not list(two.glob("*.jsonl"))
    assert sessions.listing(machine(tmp_path / "three").drift_path("x").parent) == []
