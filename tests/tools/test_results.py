"""What an agent reads: one channel, strong hits in full and weak ones as lines, breadth, several questions, lists."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphrag_mcp.app import App
from graphrag_mcp.errors import BadInput
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query import documents, topics
from graphrag_mcp.query.batch import several
from graphrag_mcp.query.local import local_search
from graphrag_mcp.query.render import Form
from graphrag_mcp.query.request import Request
from graphrag_mcp.query.text_search import search_text
from graphrag_mcp.server import build_server
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.text.prose import readable
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.types import IndexRequest, InlineText
from tests.support.client import Caller, connected
from tests.support.command import SAMPLE

FILMS = {
    "harbour-lights": ("Harbour Lights", "Harbour Lights is a 1938 drama film directed by Joan Cole. It was shot on the quay of Port Ellis."),
    "harbour-lights-copy": ("Harbour Lights (print)", "Harbour Lights is a 1938 drama film directed by Joan Cole. It was shot on the quay of Port Ellis."),
    "night-tango": ("Night Tango", "Night Tango is a 1991 drama film directed by Ivo Brandt, a nephew of Joan Cole."),
    "viktor": ("Viktor Gorin", "Viktor Gorin was a painter who lived in Port Ellis until 1952."),
    "gorin-film": ("The Painter", "The Painter is a film about Viktor Gorin, Viktor Gorin the elder and the house of Viktor Gorin."),
}
CHAT = [
    ("2024-01-05", "Ada Marsh: Hi Bo! How are you?\nAda Marsh: The board and I argued about the budget of the pier until midnight.\n"),
    ("2024-03-11", "Bo Lind: Hello again!\nBo Lind: The argument about the budget ended when Ada Marsh proposed 40,000 crowns.\n"),
    ("2024-02-02", "Bo Lind: Good morning.\nBo Lind: I argued with the harbour master about the budget for paint.\n"),
    ("2023-12-24", "Ada Marsh: Merry Christmas to everybody!\nAda Marsh: The lamp broke and we argued about the budget for a new one.\n"),
]
REPORT = "# Yearly report\n\n" + "\n\n".join(
    f"## Chapter {n}\n\n" + " ".join(f"Sentence {n}.{k} of the report is about the dredging of basin {n}." for k in range(30))
    for n in range(1, 7)
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    texts = [InlineText(text, id, title) for id, (title, text) in FILMS.items()]
    texts += [InlineText(text, f"chat-{date}", f"Chat of {date}", {"date": date}) for date, text in CHAT]
    texts.append(InlineText(REPORT, "report", "Yearly report"))
    index_documents(home / "corpora" / "c", IndexRequest(texts=tuple(texts)), Settings(home=home))
    return home


@pytest.fixture(scope="module")
def snapshot(home: Path) -> Snapshot:
    return open_snapshot(home / "corpora" / "c")


@pytest.fixture(scope="module")
def call(home: Path) -> Iterator[Caller]:
    with connected(build_server(App(Settings(home=home)))) as caller:
        yield caller


@pytest.mark.parametrize(("tool", "arguments"), [
    ("local_search", {"query": "Joan Cole"}), ("search_text", {"query": "Joan Cole"}), ("global_search", {"query": "films"}),
    ("get_entity", {"id_or_name": "Joan Cole"}), ("get_source", {"ids": ["d1"]}), ("list_documents", {}), ("explore_graph", {}),
])  # fmt: skip
def test_what_a_model_reads_is_text_alone(call: Caller, tool: str, arguments: dict[str, object]) -> None:
    result = call(tool, corpus="c", **arguments)
    assert not result.is_error and result.structured_content is None and len(result.content) == 1
    listed = call.portal.call(call.client.list_tools).tools
    assert next(one for one in listed if one.name == tool).output_schema is None


def test_what_a_program_acts_on_has_fields(call: Caller) -> None:
    assert call("graph_status", corpus="c").structured_content["counts"]["documents"] == 10


def test_what_does_not_fit_is_counted_and_comes_with_the_cursor(snapshot: Snapshot) -> None:
    first = search_text(snapshot, "dredging", max_tokens=300)
    assert first.more > 0 and first.next_cursor
    second = search_text(snapshot, "dredging", max_tokens=300, cursor=first.next_cursor)
    assert not {one.id for one in first.citations} & {one.id for one in second.citations}


# ---- readable text -------------------------------------------------------------------------------


@pytest.mark.parametrize(("stored", "shown"), [
    ("See [the plan](https://example.org/a/very/long/address?x=1) of 1890.", "See the plan of 1890."),
    ("![logo](a.png)The mill burned.[12] It was rebuilt.[citation needed]", "The mill burned. It was rebuilt."),
    ("| a | b |\n|---|---|\n| 1     |  2 |", "| a | b |\n| 1 | 2 |"), ("a &amp; b&nbsp;c", "a & b c"),
    ("x = a[1] + b[12];", "x = a[1] + b[12];"), ("def f(a: list[int]) -> None:\n    return a[0]", "def f(a: list[int]) -> None:\n    return a[0]"),
    ("Plain text stays.\n\nAs it is.", "Plain text stays.\n\nAs it is."), ("他说[3]。", "他说[3]。"),
])  # fmt: skip
def test_stored_text_is_shown_without_what_only_leads_elsewhere(stored: str, shown: str) -> None:
    assert readable(stored) == shown


def test_the_exact_text_is_still_to_be_had(tmp_path: Path) -> None:
    text = "See [the plan](https://example.org/plan) of the mill.[3]\n"
    index_documents(tmp_path / "c", IndexRequest(texts=(InlineText(text, "a"),)), Settings(home=tmp_path))
    from graphrag_mcp.query.source import get_source

    snapshot = open_snapshot(tmp_path / "c")
    assert "https" not in local_search(snapshot, "plan of the mill").text
    assert "See the plan of the mill." in get_source(snapshot, ["t1"]).text
    assert text.strip() in get_source(snapshot, ["t1"], raw=True).text


def test_a_filter_selects_the_documents_of_a_topic(tmp_path: Path) -> None:
    index_documents(tmp_path / "c", IndexRequest(paths=(str(SAMPLE),)), Settings(home=tmp_path, chunk_size=120, chunk_overlap=0))
    snapshot = open_snapshot(tmp_path / "c")
    every = topics.of_level(snapshot, 0)
    names = {row["id"]: row["title"] for row in snapshot.rows("documents", "", ["id", "title"]).to_pylist()}

    def listed(*wanted: str) -> set[str]:
        text = documents.list_documents(snapshot, filters=wanted, max_tokens=20_000).text
        return {title for title in names.values() if re.search(rf"{re.escape(title)}(?: \([^()]*\))?, ", text)}

    for one in [*every, *topics.of_level(snapshot, 1)]:
        assert listed(f"topic=c{one.n}") == {names[id] for id in one.main}
    first, second = (f"c{one.n}" for one in every[:2])
    assert listed(f"topic={first}", f"topic=[{second}]") == listed(f"topic={first}") | listed(f"topic={second}")
    assert listed(f"topic!={first}") == set(names.values()) - listed(f"topic={first}")
    for wrong, said in (("topic=c99999", "no topic c99999"), ("topic=harbour", "is no topic"), (f"topic>={first}", "has no order")):
        with pytest.raises(BadInput, match=said):
            listed(wrong)


# ---- breadth and several questions -----------------------------------------------------------------


def test_sentences_come_from_many_places_and_say_something(snapshot: Snapshot) -> None:
    result = local_search(snapshot, "arguments about the budget", form=Form("sentences", "time"))
    lines = result.text.splitlines()
    days = ["2023-12-24", "2024-01-05", "2024-02-02", "2024-03-11"]
    assert [line.split("] ")[1][:18] for line in lines] == [f"Chat of {day}" for day in days]
    assert not re.search(r"Hi Bo|Hello|Good morning|Merry", result.text) and len(result.citations) == 4


def test_several_questions_share_one_result_and_repeat_nothing(snapshot: Snapshot) -> None:
    asked = ["Who directed Night Tango?", "Who directed Harbour Lights?", "Who is the nephew of Joan Cole?", "zzqx vrrt"]
    result = several([("", snapshot)], asked, Request("", form=Form()))
    assert all(f"## {one}" in result.text for one in asked) and result.text.rstrip().endswith("Nothing was found.")
    shown = re.findall(r"^(- )?\[(t[\d.]+)\] ", result.text, re.MULTILINE)
    full = [id for line, id in shown if not line]
    assert len(full) == len(set(full)) >= 1 and len({id for _, id in shown}) >= 2
    for at, (_, id) in enumerate(shown):  # a passage in full is not shown again
        assert id not in full or ("", id) not in shown[:at]
    assert "directed by Joan Cole" in result.text
    assert result.tokens <= 2_000


def test_several_questions_through_the_tool(call: Caller) -> None:
    text = call("local_search", queries=["Night Tango", "Viktor Gorin"], corpus="c").content[0].text
    assert "## Night Tango" in text and "## Viktor Gorin" in text
    text = call("local_search", queries=[f"Night {n}" for n in range(13)], corpus="c").content[0].text
    assert "Only the first 12 queries" in text


# ---- lists ---------------------------------------------------------------------------------------


def test_documents_are_listed_with_their_dates_and_most_telling_sentences(snapshot: Snapshot) -> None:
    result = documents.list_documents(snapshot)
    lines = result.text.splitlines()
    assert lines[0].startswith("10 documents, 2023-12-24 to 2024-03-11, 6 without a date")
    assert [re.search(r"2\d{3}-\d\d-\d\d", line)[0] for line in lines[1:5]] == sorted(date for date, _ in CHAT)  # type: ignore[index]
    assert "Merry" not in result.text and "Hi Bo" not in result.text
    assert heads_of(documents.list_documents(snapshot, sort="title").text)[0].startswith("Chat of 2023")
    assert "Yearly report" in documents.list_documents(snapshot, sort="size").text.splitlines()[1]


def test_a_name_lists_every_document_that_names_it(tmp_path: Path) -> None:
    texts = [InlineText(f"Ferry {n} left at noon. From the pier Ada Keene watched ferry {n}.", f"n{n}", "") for n in range(60)]
    texts += [InlineText(f"Ferry {n} came late and nobody watched it.", f"m{n}", "") for n in range(5)]
    index_documents(tmp_path / "c", IndexRequest(texts=tuple(texts)), Settings(home=tmp_path))
    found = documents.list_documents(open_snapshot(tmp_path / "c"), query="Ada Keene", max_tokens=20_000)
    assert found.text.startswith('60 documents naming "Ada Keene".') and found.total == 60
    assert all(": From the pier Ada Keene watched ferry" in line for line in found.text.splitlines()[1:])
    loosely = documents.list_documents(open_snapshot(tmp_path / "c"), query="ferries that came late", max_tokens=20_000)
    assert '5 documents ranked for "ferries that came late"' in loosely.text
    nothing = documents.list_documents(open_snapshot(tmp_path / "c"), query="xylophones")
    assert nothing.text == 'No document says anything on "xylophones".'
    periods = documents.list_documents(open_snapshot(tmp_path / "c"), by="month")
    assert periods.text == "65 documents. None states a date, so there are no periods."


def heads_of(text: str) -> list[str]:
    return [line.split("] ", 1)[1].removeprefix(line.split("] ", 1)[1][:12]) for line in text.splitlines()[1:]]


def test_pages_of_a_list_hold_every_document_once(snapshot: Snapshot) -> None:
    seen, cursor = [], ""
    for _ in range(20):
        page = documents.list_documents(snapshot, max_tokens=200, cursor=cursor)
        seen += re.findall(r"^- \[(t[\d.]+)\]", page.text, re.MULTILINE)
        assert count_tokens(page.text) <= 200
        if not (cursor := page.next_cursor):
            break
    assert len(seen) == len(set(seen)) == 10


def test_periods_a_timeline_and_an_outline(snapshot: Snapshot) -> None:
    months = documents.list_documents(snapshot, by="month").text.splitlines()[1:]
    assert [line[2:9] for line in months] == ["2023-12", "2024-01", "2024-02", "2024-03"]
    timeline = documents.list_documents(snapshot, query="argued about the budget").text.splitlines()
    assert timeline[0].startswith('4 documents ranked for "argued about the budget"') and "2023-12-24" in timeline[1]
    outline = documents.list_documents(snapshot, document="Yearly report").text
    assert [line.split("] ")[1] for line in outline.splitlines()[2:]] == [f"Chapter {n}" for n in range(1, 7)]


def test_a_list_that_cannot_be_made_is_refused_with_what_to_do(call: Caller) -> None:
    assert "list_documents gives the ids" in call.bad("list_documents", document="d999", corpus="c")
    assert "sort must be" in call.bad("list_documents", sort="colour", corpus="c")


def test_a_section_of_the_outline_is_read_by_its_id(call: Caller, snapshot: Snapshot) -> None:
    report = re.search(r"\[(d\d+)\]", documents.list_documents(snapshot, document="Yearly report").text)
    text = call("get_source", ids=[f"{report[1]}#4"], corpus="c", max_tokens=6_000).content[0].text  # type: ignore[index]
    assert "Sentence 3.0 of" in text and "Sentence 3.29 of" in text and "Sentence 5.20" not in text
    assert "none of these ids is known" in call.bad("get_source", ids=[f"{report[1]}#99"], corpus="c")  # type: ignore[index]
