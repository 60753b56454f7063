"""What stands in a text and names nothing, and who speaks in a log of a chat."""

from __future__ import annotations

import pytest

from graphrag_mcp.names.extract import extract
from tests.support.workload import ends


def forms(text: str) -> set[str]:
    found = extract(text)
    assert all(text[one.start : one.end] == one.form for one in found)
    return {one.form for one in found}


def test_words_of_an_address_are_no_names_in_any_script() -> None:
    said = "灯塔周刊介绍了[新港大桥](https://img.harbour-news.example/assets/pics/2024.webp)，另见https://img.harbour-news.example/assets/pics/7.webp。"
    assert "新港大桥" in forms(said)
    assert not {"https", "assets", "pics", "img.harbour-news.example"} & forms(said)
    assert forms("Ada Bray drew the map (https://maps.example.org/Kelp_Sound/Old_Pier.html).") <= {"Ada Bray", "drew"}


def test_comments_and_attributes_of_html_and_keys_of_json_are_no_names() -> None:
    text = 'Mara Voss wrote it. <!-- Chart Tide Levels start --> <img alt="tide-levels" src="tide-levels.png"/> Then <b>Otto Finn</b>.'
    assert forms(text) == {"Mara Voss", "Otto Finn"}
    record = """Odo Brann ruled the isle. {'Died': '411 (aged 40), Mirador', "Spouse": "Hild Aske"}"""
    assert not {"Died", "Spouse"} & forms(record) and "Odo Brann" in forms(record)
    assert "Night Ferry" in forms('She called it "Night Ferry": nobody laughed.')


@pytest.mark.parametrize("line", [
    "[15:0{}] <brackwater> it is Tuesday", "(3:05:0{} PM) brackwater: fine", "12/03/24, 10:1{} - brackwater: yes", "2024-05-01 09:0{} <brackwater> no",
    "[15:0{}] <RelayBot> <brackwater> ok then",
])  # fmt: skip
def test_who_speaks_in_a_chat_is_a_person(line: str) -> None:
    text = "\n".join(line.format(minute) for minute in range(4))
    found = {one.form: (one.type, one.strong) for one in extract(text)}
    assert found.get("brackwater") == ("person", True)


def test_two_times_with_a_colon_make_no_chat_of_a_timetable() -> None:
    text = "09:10 departs: the harbour is quiet then.\n10:20 arrives: the harbour wakes.\n"
    assert "person" not in {one.type for one in extract(text)}


@pytest.mark.parametrize("piece", ["<!--", "<a ", "<a b=", "https://", "'a' :", "12:00 <", "12:00 a a ", "+++\n", "+++\na/"])
def test_no_half_of_a_mark_is_slow(piece: str) -> None:
    with ends():
        extract(piece * (60_000 // len(piece)))


def test_targets_of_links_and_images_are_no_names() -> None:
    text = "See [the plan](docs/tide_plan.md) of Ada Brandt and ![mq-6](./images/mq-6.png) on the wall."
    assert forms(text) == {"Ada Brandt"}


def certain(text: str) -> set[str]:
    return {one.form for one in extract(text) if one.strong}


def test_the_host_of_an_address_in_words_and_a_keyword_that_is_called_are_no_certain_names() -> None:
    text = (
        "The notes were kept by Ada Brandt and sent to brandt at stat.kell_brig.edu on the day before. Long for() loops "
        "and read_tide() were what they had spoken of in the rooms of the old library, and no one had asked them for more, "
        "since it was late in the year and the harbour was closed to all who had no boat of their own to bring them home."
    )
    assert len(text) > 300 and certain(text) == {"Ada Brandt", "read_tide"}


def test_a_text_that_begins_or_ends_inside_a_block_of_code_has_no_certain_names_there() -> None:
    said = "The lock was written by Ada Brandt in the spring of the year, and most of those who had read it agreed that it was slow. "
    begun = f"    oldLock = waitNode;\n```\n\n{said}{said}\n\n```java\nint lastStamp;\n```\n\n{said}\n"
    assert certain(begun) == {"Ada Brandt"}
    assert certain(f"{said}{said}{said}\n\n```java\nint lastStamp;\n") == {"Ada Brandt"}


def test_tags_of_templates_references_and_paths_without_a_file_are_no_names_of_things() -> None:
    text = (
        '{% image_with_frame "Ada Bray smiles" %}\nThey used :meth:`@close` and :class:`~tide.Gauge` of it, '
        "then `$PREFIX/etc/tide.list` and `lib/data/tide` and `lib/data/tide.yml` and `v1.4.0` and the **__Next__** one of &ldquo;Tide Talks&rdquo; by `tide-ng`_. " + "It rains. " * 30
    )
    assert not {"image_with_frame", "@close", "close", "$PREFIX/etc/tide.list", "lib/data/tide", "__Next__"} & certain(text)
    assert {"lib/data/tide.yml", "tide.Gauge", "tide-ng", "Ada Bray"} <= certain(text)
