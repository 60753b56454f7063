"""What stands next to a high passage: an answer whose words the question does not hold."""

from __future__ import annotations

import pytest

from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query import rank
from graphrag_mcp.query.features import Weights
from graphrag_mcp.query.local import local_search
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.types import IndexRequest, InlineText
from tests.support.files import snapshot_of

CHATTER = ["I think so, yes.", "Hear, hear.", "There is tea at the back.", "Can we keep to the agenda?"]
ASKED, SAID = "Who paid for the plumber, then?", "The council did, we only bought a valve."


def transcript(number: int) -> str:
    """Much chatter; in the third, a question and, some lines on, its answer."""
    lines = [f"[00:{at // 60:02}:{at % 60:02}] Speaker {at % 7}: {CHATTER[(at + number) % 4]}" for at in range(240)]
    if number == 3:
        lines[120], lines[132] = f"[00:02:00] Silva: {ASKED}", f"[00:02:12] Brandt: {SAID}"
    return "\n\n".join(lines)


@pytest.fixture(scope="module", params=[True, False], ids=["kept in memory", "read from disk"])
def snapshot(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Snapshot:
    home = tmp_path_factory.mktemp("home")
    texts = tuple(InlineText(transcript(number), f"talk{number}", f"Meeting {number}") for number in range(5))
    index_documents(home / "c", IndexRequest(texts=texts), Settings(home=home))
    return open_snapshot(home / "c", keep=request.param)


def test_the_answer_beside_the_words_of_the_question_is_within_the_budget(snapshot: Snapshot) -> None:
    question = "Who paid the plumber?"
    (held,) = [one for one in rank.retrieve(snapshot, question, Weights(adjacency=0.0)).passages]
    text = snapshot.by_key("passages", [held.id], "id", ["text"])["text"][0].as_py()
    assert ASKED in text and SAID not in text
    result = local_search(snapshot, question, max_tokens=2_000)
    assert ASKED in result.text and SAID in result.text
    assert result.citations[0].score == 1.0 and {one.title for one in result.citations} == {"Meeting 3"}


NICKS = "ana tobi marek lin raj".split()
SMALL_TALK = ["deploy done", "who has the key?", "build failed", "lunch?", "on it"]
ASK, REPLY = "can we get rid of the nightly backup?", "compromise: full on sundays, incremental otherwise"
ELSEWHERE = ["the backup of db-3 finished", "a nightly build is up", "get the key from lin", "the backup disk is full"]


def chat(day: int) -> str:
    """A day of small talk with a word of the question here and there; on the third, question and, later, answer."""
    lines = [f"[{9 + at // 20}:{at % 20 * 3:02}] <{NICKS[at % 5]}> {SMALL_TALK[at * day % 5]}" for at in range(160)]
    for at in range(3, 160, 23):
        lines[at] = f"[{9 + at // 20}:{at % 20 * 3:02}] <{NICKS[at % 5]}> {ELSEWHERE[(at + day) % 4]}"
    if day == 3:
        lines[60], lines[76] = f"[12:00] <marek> {ASK}", f"[12:48] <marek> {REPLY}"
    return "\n".join(lines)


@pytest.fixture(scope="module")
def chats(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    home = tmp_path_factory.mktemp("home")
    texts = tuple(InlineText(chat(day), f"log{day}", f"Log of day {day}") for day in range(1, 7))
    return snapshot_of(home / "c", texts)


def test_the_reply_in_a_chat_is_found_though_others_hold_more_words_of_the_question(chats: Snapshot) -> None:
    question = "Can we get rid of the nightly backup?"
    best = [one.id for one in rank.retrieve(chats, question).passages[:5]]
    assert any(REPLY in text for text in chats.by_key("passages", best, "id", ["text"])["text"].to_pylist())
    (asked,) = [one for one in rank.retrieve(chats, question).passages if one.score == 1.0]
    assert ASK in chats.by_key("passages", [asked.id], "id", ["text"])["text"][0].as_py()
    without = rank.retrieve(chats, question, Weights(adjacency=0.0)).passages[:5]
    texts = chats.by_key("passages", [one.id for one in without], "id", ["text"])["text"].to_pylist()
    assert not any(REPLY in text for text in texts)
