"""Questions in the first person: what people say of themselves counts more than what is said at length."""

from __future__ import annotations

import pytest

from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query import local, rank
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.types import IndexRequest, InlineText

REPLY = "assistant: Bikes are a fine way to travel on the dry roads of the south."
OWNER = (
    "user: I want a new lock, since I own three bikes, two of them old. Which one is good? Thanks for all the help so far.\n\n"
    "assistant: Good locks are made of hard steel. " + "Steel chains, folding locks and frame locks are sold in shops. " * 4
)
KAYAK = "user: My kayak leaks, and so does the old bike of my brother. Where can it be mended near the harbour of the town?"


@pytest.fixture(scope="module")
def chats(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    home = tmp_path_factory.mktemp("chats")
    texts = [InlineText(f"user: What is said of travel, case {at}?\n\n{REPLY}", f"reply{at}", f"Chat {at}") for at in range(12)]
    texts += [InlineText(OWNER, "owner", "Chat of locks"), InlineText(KAYAK, "kayak", "Chat of boats")]
    index_documents(home / "c", IndexRequest(texts=tuple(texts)), Settings(home=home))
    return open_snapshot(home / "c")


def _first(snapshot: Snapshot, question: str) -> str:
    return local.find(snapshot, question).passages[0].document_id


def test_a_question_in_the_first_person_finds_what_somebody_says_of_himself(chats: Snapshot) -> None:
    owner, reply = _first(chats, "three bikes old lock"), _first(chats, "dry roads")
    assert owner != reply
    assert _first(chats, "How many bikes do I have?") == owner
    assert _first(chats, "How many bikes are there?") != owner


def test_the_measure_that_is_asked_for_is_not_searched_for(chats: Snapshot) -> None:
    found = local.find(chats, "How many days ago did I clean my bike?")
    assert "bike" in found.terms and {"many", "days", "ago"}.isdisjoint({*found.terms, *found.unknown})


@pytest.mark.parametrize(
    ("question", "own"),
    [(one, True) for one in "How many bikes do I own?|where do i keep my shoes|What's the name of our dog?|Wie viele Räder habe ich?"
     "|Où est mon vélo ?|¿Dónde vive mi hermana?|我去年买了什么？".split("|")]
    + [(one, False) for one in "Tell me about Rome|How do I install it?|Can I use it?|When did Elizabeth I die?|the US economy"
       "|World War I battles|Zeig mir alle Briefe|el mes pasado|告诉我谁是校长|What did Ana say of her job?|5 mi from Rome".split("|")],
)  # fmt: skip
def test_which_questions_are_in_the_first_person(question: str, own: bool) -> None:
    assert rank.in_first_person(question) is own


def test_a_question_in_the_first_person_without_a_known_word_finds_nothing(chats: Snapshot) -> None:
    assert local.find(chats, "What is my zymurgy?").passages == []
