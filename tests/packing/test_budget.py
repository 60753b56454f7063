"""No result passes its budget, and pages show every item once: over languages, formats, searches and the wire."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp.types import Implementation

from graphrag_mcp.app import App
from graphrag_mcp.packing import budget as packing_budget
from graphrag_mcp.packing import sending
from graphrag_mcp.query.community import get_community_report
from graphrag_mcp.query.entity import get_entity
from graphrag_mcp.query.global_ import global_search
from graphrag_mcp.query.local import local_search
from graphrag_mcp.query.source import get_source
from graphrag_mcp.query.text_search import search_text
from graphrag_mcp.server import build_server
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.types import Result
from tests.support.client import Caller, connected
from tests.support.command import SAMPLE

QUESTIONS = (
    "What did the court of inquiry conclude about Captain Renwick?", "back-run", "海槛最浅处有多少米？", "Ines Calloway",
    "回流与海草", "¿Qué dijo el tribunal sobre Renwick?", "Зачем нужна карта Narrows?", "🌊 eelgrass 118",
)  # fmt: skip
ALIAS = r"[tderck]\d+(?:\.\d+)?"
SEARCHES: dict[str, Callable[..., Result]] = {"local": local_search, "global": global_search, "text": search_text}


@pytest.fixture(scope="module")
def snapshot(sample_home: Path) -> Snapshot:
    return open_snapshot(sample_home / "corpora" / "sample")


@pytest.fixture(scope="module")
def call(sample_home: Path) -> Iterator[Caller]:
    with connected(build_server(App(Settings(home=sample_home, roots=(SAMPLE,))))) as caller:
        yield caller


def weight(result: Result) -> int:
    """Tokens of the text that a model reads."""
    return count_tokens(result.text)


def heads(text: str) -> list[str]:
    """Ids at the heads of items: `[t1] [t2] Title`, `[t1]` where room is scarce, `- [e1]`, `e1|`, one a point (which has no id) by its line."""
    found: list[str] = []
    for line in text.splitlines():
        if match := re.match(rf"(?:\[{ALIAS}\](?: |$))+", line):
            found += re.findall(ALIAS, match.group())
        elif match := re.match(rf"- \[({ALIAS})\] |({ALIAS})\|", line):
            found.append(match[1] or match[2])
        elif line.startswith("- ") and line.endswith(")"):
            found.append(line)
    return found


# ---- budgets ---------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(sorted(SEARCHES)), st.sampled_from(QUESTIONS), st.integers(200, 20_000)
)
def test_no_search_passes_its_budget(snapshot: Snapshot, name: str, question: str, budget: int) -> None:
    result = SEARCHES[name](snapshot, question, max_tokens=budget)
    assert weight(result) <= budget and result.tokens <= budget
    assert sending.outgoing(result) <= budget  # with the lines that a tool puts under the text


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(["entity", "report", "source"]), st.integers(200, 20_000))
def test_no_look_up_passes_its_budget(snapshot: Snapshot, name: str, budget: int) -> None:
    result: Result
    if name == "entity":
        result = get_entity(snapshot, "Corrie Head", max_tokens=budget)
    elif name == "report":
        result = get_community_report(snapshot, "c1", max_tokens=budget)
    else:
        result = get_source(snapshot, ["d1", "d2", "t9"], max_tokens=budget)
    assert weight(result) <= budget and result.tokens <= budget


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(sorted(SEARCHES)), st.sampled_from(QUESTIONS[:5]), st.integers(800, 6_000))
def test_pages_show_every_item_once(
    snapshot: Snapshot, name: str, question: str, budget: int
) -> None:
    whole = SEARCHES[name](snapshot, question, max_tokens=20_000)
    shown, cursor = [], ""
    for _ in range(200):
        page = SEARCHES[name](snapshot, question, max_tokens=budget, cursor=cursor)
        shown += heads(page.text)
        cursor = page.next_cursor
        if not cursor:
            break
    assert not cursor and len(shown) == len(set(shown))
    assert set(heads(whole.text)) <= set(shown)
    assert whole.next_cursor or set(shown) <= set(heads(whole.text))


# ---- little room -----------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [200, 230, 260, 300])
@pytest.mark.parametrize("question", QUESTIONS[:5])
def test_with_little_room_there_is_text_a_citation_and_a_way_on(
    call: Caller, question: str, budget: int
) -> None:
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
    assert cut["truncated"] and "max_tokens=4000" in cut["next_call"] and "t2" in cut["next_call"]
    ids = re.findall(r'"(t[\d.]+)"', cut["next_call"])
    whole = call.good("get_source", ids=ids, max_tokens=4000)
    assert ids[0] == cut["sources"][0]["id"] and whole["sources"][0]["char_end"] > cut["sources"][0]["char_end"]


# ---- what a citation costs -------------------------------------------------------------------------


def test_a_citation_keeps_its_fields(call: Caller) -> None:
    result = call.good("local_search", query=QUESTIONS[0], max_tokens=2000)
    assert len(result["citations"]) >= 3
    for cited in result["citations"]:
        fields = {"id", "title", "uri", "document_id", "char_start", "char_end", "score"}
        assert fields <= set(cited) <= fields | {"line_start", "line_end", "said", "when", "text"}
        assert re.fullmatch(r"d\d+", cited["document_id"])
        source = call.good("get_source", ids=[cited["document_id"]], max_tokens=20_000)["sources"]
        assert {one["uri"] for one in source} == {cited["uri"]}


def test_what_every_result_is_promised_to_carry_is_there_even_when_it_is_empty(call: Caller) -> None:
    result = call.good("local_search", query="Where is the eelgrass?", max_tokens=20_000)
    assert {"text", "tokens", "truncated", "next_cursor", "hint", "state", "mode", "corpus", "citations"} <= set(result)
    assert not {"answer", "method", "usage", "candidates"} & set(result)


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


@pytest.mark.parametrize(("uri", "title", "same"), [
    ("a/Brie Larson Paul Rudd and More to Star in Marvel Dining Adventure on Disney.txt", "Brie Larson, Paul Rudd and More to Star in 'Marvel' Dining Adventure on Disney Wish", True),
    ("a/board-of-the-harbour-of-varde-in-1904.md", "Board of the Harbour of Varde in 1904", True), ("n1.txt", "n1.txt", True),
    ("mail/offer 7.eml#price list.pdf", "offer 7.eml #price list.pdf", True),
    ("笔记/望沙湾候鸟.md", "望沙湾候鸟", True), ("text:x.py", "x.py", True), ("text:harbour-lights", "Harbour Lights", False),
    ("golang.md", "Go", False), ("getting-started/setup.md", "Getting started", False), ("board-minutes-12.md", "Board minutes 1", False),
    ("the-long-history-of-varde.md", "The long history of Varde: the years of loss 1931", False), ("c.md", "C++", False), ("क.md", "कि", False),
])  # fmt: skip
def test_a_title_that_the_file_is_named_by_is_not_repeated(uri: str, title: str, same: bool) -> None:
    assert packing_budget.repeats(uri, title) is same


@pytest.mark.parametrize(
    ("uri", "name", "shown"),
    [
        ("in/C# notes/minutes.rtf", "Report of May", "(minutes.rtf)"), ("in/Minutes #3.rtf", "Report of May", "(Minutes #3.rtf)"),
        ("in/v1.2/C# notes.md", "Report of May", ""), ("in/v1.2/README", "Report of May", ""),
        ("in/a.doc", "Canada documents", "(a.doc)"), ("in/a.doc", "A note on a.doc", ""), ("in/a.doc", "a", ""),
        ("in/box.mbox#1", "box.mbox #1", ""), ("in/box.mbox#1", "Price of slate", "(box.mbox#1)"),
        ("in/offer.eml#plan.pdf", "plan", "(offer.eml)"), ("in/b.zip#c/page.html", "Lamp oil", "(b.zip#c/page.html)"),
        ("in/log.csv#3", "Rain", ""), ("in/b.zip#c/cards.vcf/3", "Ana Holm", "(b.zip#c/cards.vcf/3)"),
        ("in/offer.eml#b.zip/plan.docx", "plan.docx", "(offer.eml#b.zip)"), ("in/b.zip#c/page.html", "b.zip #c/page.html", ""),
    ],
)  # fmt: skip
def test_a_file_is_named_where_the_title_does_not_say_it(uri: str, name: str, shown: str) -> None:
    assert packing_budget.located(uri, "", name) == shown
