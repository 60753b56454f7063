"""Series of documents: how they are found, and what lists, maps and extracts say by them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.packing import budget as packing_budget
from graphrag_mcp.query import documents, series
from graphrag_mcp.query.global_ import global_search
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.types import IndexRequest

PAIRS = {"Ida_Omar": "boats", "Lena_Ravi": "bees", "Maria_Theo": "clocks"}
ADOPTED = {
    "Ida_Omar": "We adopted a puppy from the shelter last Friday",
    "Lena_Ravi": "I finally got my two kittens at the market hall this weekend",
    "Maria_Theo": "My sister gave me her old turtle when she left for Lisbon yesterday",
}
DOINGS = (
    "I just sold my old {0} to a collector in Bergen",
    "I bought new tools for the {0} last week",
    "I broke two of my {0} yesterday and had to mend them",
    "I'm planning to show my {0} at the fair next month",
)


@pytest.fixture(scope="module")
def chats(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """36 chats of three pairs; the last chat of each pair tells of a new animal."""
    home = tmp_path_factory.mktemp("chats")
    folder = home / "talks"
    folder.mkdir()
    for pair, what in PAIRS.items():
        one, other = pair.split("_")
        for n in range(1, 13):
            news = ADOPTED[pair] if n == 12 else DOINGS[n % 4].format(what)
            (folder / f"{pair}_{n:02}.txt").write_text(
                f"Chat of {one} and {other}, {n}:15 pm on {n} May, 2023\n\n"
                f"{one}: Hello {other}! It is so good to hear from you again!\n"
                f"{other}: Animals make the world a better place, don't you think so?\n"
                f"{one}: {news}.\n"
                f"{other}: That sounds wonderful, you are really good at what you do!\n"
            )
    index_documents(home / "c", IndexRequest(paths=[str(folder)]), Settings(home=home, roots=(home,)))
    return open_snapshot(home / "c")


def uris(*names: str) -> dict[str, dict[str, object]]:
    return {name: {"uri": name, "document": ["d1", name, "", name, name.rpartition("/")[2]]} for name in names}


@pytest.mark.parametrize(
    ("names", "patterns"),
    [
        (
            [f"talks/{pair}_{n:02}.txt" for pair in ("Ana_Ben", "Maria_Ken") for n in range(5)],
            ["talks/Ana_Ben_*.txt", "talks/Maria_Ken_*.txt"],
        ),
        (
            [f"m/2024-0{n}_{kind}-{n}.md" for n in range(1, 6) for kind in ("notes-mar", "agenda-apr")],
            ["m/*_agenda-*.md", "m/*_notes-*.md"],
        ),
        ([f"{folder}/{word}.md" for folder in ("api", "guide") for word in "one two six".split()], ["api/*", "guide/*"]),
        ([f"issue-{n}.md" for n in range(20)], []),  # one series is all of it
        ([f"peps/pep-{n}.rst" for n in range(20)] + ["peps/build.rst"], []),
        ([f"{word}.txt" for word in "night river stone amber cloud".split()], []),
        (["a[1]_1.txt", "a[1]_2.txt", "a[1]_3.txt", "b_1.txt", "b_2.txt", "b_3.txt"], ["a?*.txt", "b_*.txt"]),
    ],
)
def test_names_that_differ_in_numbers_and_dates_are_a_series_else_folders(
    names: list[str], patterns: list[str], monkeypatch: pytest.MonkeyPatch, chats: Snapshot
) -> None:
    monkeypatch.setattr(series.times, "documents", lambda _: uris(*names))
    found = series.by_document.__wrapped__(chats)  # type: ignore[attr-defined]
    assert sorted({one.uri for one in found.values()}) == patterns


def test_more_documents_than_have_room_are_listed_by_series_with_what_was_done(chats: Snapshot) -> None:
    text = documents.list_documents(chats, max_tokens=1_000).text
    assert text.startswith("36 documents, 2023-05-01 to 2023-05-12, in 3 series.")
    for pair in PAIRS:
        title = f"Chat of {pair.replace('_', ' and ')}"
        assert f"- {title}: 12 documents, 2023-05-01 to 2023-05-12 (uri=talks/{pair}_*.txt)" in text
    said = re.findall(r"^  - \[t[\d.]+\] 2023-05-\d\d (\w+_\d\d): (.*)$", text, re.MULTILINE)
    assert len(said) >= 6 and all(any(f": {own} " in one for own in ("I", "I'm", "We", "My")) for _, one in said)


def test_the_pattern_of_a_series_is_a_filter_and_its_documents_have_short_names(chats: Snapshot) -> None:
    listed = documents.list_documents(chats, filters=["uri=talks/Lena_Ravi_*.txt"], max_tokens=4_000).text
    assert listed.startswith("12 documents") and listed.count("\n- [t") == 12
    assert "2023-05-03, Lena_Ravi_03, " in listed and "Chat of" not in listed
    titled = documents.list_documents(chats, sort="title", max_tokens=200)
    assert "in 3 series" not in titled.text and titled.next_cursor  # all, one by one


def test_the_map_of_series_says_who_talks_with_whom_and_what_sets_each_apart(chats: Snapshot) -> None:
    result = global_search(chats, "What are these chats about: who talks with whom?", max_tokens=1_500)
    assert result.text.startswith("36 documents in 3 series.") and result.communities
    for pair, what in PAIRS.items():
        about = result.text.split(f"uri=talks/{pair}_*.txt)\n  About: ", 1)[1].partition("\n")[0]
        assert what in about and pair.partition("_")[0] not in about
    assert {one.id for one in result.citations} >= set(re.findall(r"  - \[(t[\d.]+)\]", result.text))
    assert result.text.startswith("36 documents in 3 series.") and packing_budget.size(result)[0] <= 1_500
    topics = global_search(chats, "What are these chats about?", level=0).text
    assert " topics.\n" in topics and "series" not in topics


def test_filters_hold_for_maps_and_extracts_by_series(chats: Snapshot) -> None:
    one = ["uri=talks/Lena_Ravi_*.txt"]
    assert "Omar" not in global_search(chats, "kittens", filters=one).text
    several = global_search(chats, "", filters=["uri=talks/Lena_*", "uri=talks/Ida_*"]).text
    assert several.startswith("24 documents in 2 series.") and "Maria_Theo" not in several


def test_a_list_of_many_documents_without_series_is_by_topic_with_titles(tmp_path: Path, note: Callable[..., None]) -> None:
    kinds = {"harbour": "crane cargo ship quay mooring", "orchard": "apple cider harvest pear press", "museum": "statue fresco gallery canvas frame"}
    names = "amber birch cedar delta ember fjord grove haven inlet jetty knoll ledge".split()
    for kind, words in kinds.items():
        for name in names if kind != "museum" else names[::-1]:
            name = f"{name}{kind[:2]}"
            note(f"{name}{kind}.md", f"# The {name} {kind}\n\nThe {kind} of {name} has a {words.replace(' ', ' and a ')}.\n")
    index_documents(tmp_path / "c", IndexRequest(paths=[str(tmp_path / "notes")]), Settings(home=tmp_path, roots=(tmp_path,)))
    text = documents.list_documents(open_snapshot(tmp_path / "c"), max_tokens=700).text
    assert text.startswith("36 documents, in ") and 'sort="title" all.' in text
    lines = [line for line in text.splitlines() if line.startswith("- [c")]
    assert len(lines) >= 2
    for line in lines:  # a topic holds documents of one kind
        assert len({kind for kind in kinds if f" {kind}" in line.split("documents: ", 1)[1]}) == 1, line
    shown = re.findall(r"\[t\d+\] The", text)
    assert len(shown) + sum(int(n) for n in re.findall(r"; (\d+) more", text)) == 36


@pytest.fixture
def note(tmp_path: Path) -> Callable[..., None]:
    def write(name: str, text: str) -> None:
        (tmp_path / "notes").mkdir(exist_ok=True)
        (tmp_path / "notes" / name).write_text(text)

    return write


def test_the_timeline_of_a_speaker_is_what_that_speaker_did(chats: Snapshot) -> None:
    from graphrag_mcp.query.entity import get_entity

    text = get_entity(chats, "Lena", order="time", max_tokens=1_500).text
    lines = [line for line in text.splitlines() if line.startswith("- ")]
    assert len(lines) >= 12 and sum(" Lena: " in line for line in lines) >= 12
    assert "I finally got my two kittens" in lines[-1] or any("kittens" in line for line in lines)
    assert "Hello Ravi" not in text and "That sounds wonderful" not in text


def test_a_long_list_of_titles_has_neither_paths_nor_sizes(chats: Snapshot) -> None:
    lines = documents.list_documents(chats, sort="title", max_tokens=1_500).text.splitlines()
    named = [line for line in lines if line.startswith("- [")]
    assert len(named) > 20 and not any("characters" in line or "talks/" in line for line in named)
