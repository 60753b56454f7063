"""What stands next to a high passage: an answer whose words the question does not hold."""

from __future__ import annotations

import pytest

from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query import fused
from graphrag_mcp.query.local import local_search
from graphrag_mcp.query.ranking import Weights
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.types import IndexRequest, InlineText

CHATTER = ["I think so, yes.", "Hear, hear.", "There is tea at the back.", "Can we keep to the agenda?"]
ASKED, SAID = "Who paid for the plumber, then?", "The council did, we only bought a valve."


def transcript(number: int) -> str:
    """Much chatter; in the third, a question and, some lines on, its answer."""
    lines = [f"[00:{at // 60:02}:{at % 60:02}] Speaker {at % 7}: {CHATTER[(at + number) % 4]}" for at in range(240)]
    if number == 3:
        lines[120], lines[132] = f"[00:02:00] Silva: {ASKED}", f"[00:02:12] Brandt: {SAID}"
    return "\n\n".join(lines)


@pytest.fixture(scope="module", params=[25_000, 0], ids=["held in memory", "read from disk"])
def snapshot(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Snapshot:
    home = tmp_path_factory.mktemp("home")
    texts = tuple(InlineText(transcript(number), f"talk{number}", f"Meeting {number}") for number in range(5))
    index_documents(home / "c", IndexRequest(texts=texts), Settings(home=home))
    whole = open_snapshot(home / "c")
    return Snapshot(whole.folder, whole.manifest, hold={"passages": request.param})


def test_the_answer_beside_the_words_of_the_question_is_within_the_budget(snapshot: Snapshot) -> None:
    question = "Who paid the plumber?"
    (held,) = [one for one in fused.retrieve(snapshot, question, Weights(beside=0.0)).passages]
    text = snapshot.by_key("passages", [held.id], "id", ["text"])["text"][0].as_py()
    assert ASKED in text and SAID not in text
    result = local_search(snapshot, question, max_tokens=2_000, explain=True)
    assert ASKED in result.text and SAID in result.text and "next to a high passage" in result.text
    assert result.citations[0].score == 1.0 and {one.title for one in result.citations} == {"Meeting 3"}


def test_what_no_word_brought_in_stands_behind_what_words_did(snapshot: Snapshot) -> None:
    found = fused.retrieve(snapshot, "Who paid the plumber?").passages
    assert len(found) == 3 and all(one.why["beside"] > 0 == one.raw for one in found[1:])
    assert found[0].score > 5 * found[1].score


def test_plain_text_search_by_similarity_has_no_neighbours(snapshot: Snapshot) -> None:
    assert len(local_search(snapshot, "Who paid the plumber?", mode="basic").citations) == 1
