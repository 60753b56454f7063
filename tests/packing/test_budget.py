"""No result passes its budget, and pages show every item once: over languages, formats, searches and the wire."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp.types import Implementation

from graphrag_mcp.app import App
from graphrag_mcp.server import build_server
from graphrag_mcp.settings import Settings
from graphrag_mcp.text.tokens import count_tokens
from tests.support.client import Caller, connected
from tests.support.command import SAMPLE

QUESTIONS = (
    "What did the court of inquiry conclude about Captain Renwick?", "back-run", "海槛最浅处有多少米？", "Ines Calloway",
    "回流与海草", "¿Qué dijo el tribunal sobre Renwick?", "Зачем нужна карта Narrows?", "🌊 eelgrass 118",
)  # fmt: skip


@pytest.fixture(scope="module")
def call(sample_home: Path) -> Iterator[Caller]:
    with connected(build_server(App(Settings(home=sample_home, roots=(SAMPLE,))))) as caller:
        yield caller


# ---- little room -----------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [200, 230, 260, 300])
@pytest.mark.parametrize("question", QUESTIONS[:5])
def test_with_little_room_there_is_text_a_citation_and_a_way_on(call: Caller, question: str, budget: int) -> None:
    result = call.good("local_search", query=question, max_tokens=budget)
    assert count_tokens(result["text"]) <= budget
    assert result["citations"] and f"[{result['citations'][0]['id']}]" in result["text"]
    body = re.sub(r"^(?:\[t|.*cursor=|Next:).*$", "", result["text"], flags=re.MULTILINE)
    assert len(body.split()) >= 3 or len(body.strip()) >= 8
    assert not result["next_cursor"] or result["next_cursor"] in result["text"]


@pytest.mark.parametrize("budget", [200, 245, 290])
@pytest.mark.parametrize("question", QUESTIONS[:5])
def test_the_id_at_the_head_of_an_excerpt_gives_the_passage_whole(call: Caller, question: str, budget: int) -> None:
    cut = call.good("local_search", query=question, max_tokens=budget)
    cited = cut["citations"][0]
    given = call.good("get_source", ids=[cited["id"]])
    (whole,) = given["sources"]
    assert (whole["char_start"], whole["char_end"]) == (cited["char_start"], cited["char_end"])
    shown = cut["text"].partition(f"[{cited['id']}]")[2].partition("\n")[2].partition("\n")[0]
    words = "".join(filter(str.isalnum, shown.strip("… ")))
    assert words[:30] in "".join(filter(str.isalnum, given["text"])) and not given["truncated"]


def test_a_source_that_does_not_fit_is_continued_with_a_call_that_gets_further(call: Caller) -> None:
    cut = call.good("get_source", ids=["t1", "t2"], max_tokens=250)
    assert cut["truncated"] and [one["id"][:2] for one in cut["sources"]] == ["t1", "t2"]
    ids = re.findall(r'"(t[\d.]+\+?)"', cut["next_call"])
    whole = call.good("get_source", ids=ids)
    assert ids[0].rstrip("+") == cut["sources"][0]["id"] and whole["sources"][0]["char_end"] > cut["sources"][0]["char_end"]


# ---- what a citation costs -------------------------------------------------------------------------


SHORT_CALLS = [
    ("local_search", {"query": "Who opened the canister with the sounding roll?"}),
    ("global_search", {"query": "What are the main themes?"}),
    ("search_text", {"query": "the harbour and the tide"}),
    ("explore_graph", {"start": "Skerrow"}),
    ("drift_search", {"query": "How did the accord come about?"}),
]


@pytest.mark.parametrize("host", ["Visual Studio Code", "Visual Studio Code - Insiders", "code-server"])
def test_vs_code_gets_results_that_it_still_shows_and_longer_ones_when_they_are_asked_for(
    sample_home: Path, call: Caller, host: str
) -> None:
    target = build_server(App(Settings(home=sample_home, roots=(SAMPLE,))))
    with connected(target, client_info=Implementation(name=host, version="1.139.1")) as there:
        for tool, arguments in SHORT_CALLS:
            shown = there(tool, **arguments)
            sent = shown.structured_content or shown.content[0].text
            assert len(json.dumps(sent, ensure_ascii=False)) <= 8_192, tool  # above it VS Code writes it to a file
        tool, arguments = SHORT_CALLS[0]
        plain, short = call.good(tool, **arguments), there.good(tool, **arguments)
        assert short["tokens"] <= 2_000
        assert short["citations"][0] == plain["citations"][0]  # the best of it, not another answer
        assert there.good(tool, **arguments, max_tokens=5_000)["tokens"] > 2_000
