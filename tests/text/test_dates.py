"""What documents say of themselves: dates, with filters by them; and a first line that is no title."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_mcp.errors import BadInput
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query.documents import list_documents
from graphrag_mcp.query.filters import documents
from graphrag_mcp.query.local import local_search
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.text import dates
from graphrag_mcp.types import IndexRequest, InlineText
from tests.support.files import snapshot_of

WRITTEN = [
    ("2024-03-04", "2024-03-04"), ("4 March 2024", "2024-03-04"), ("March 4, 2024", "2024-03-04"), ("2024年3月4日", "2024-03-04"),
    ("4. März 2024", "2024-03-04"), ("March 2024", "2024-03"), ("2024", "2024"), ("2024-3-4", "2024-03-04"),
    ("4th of March, 2024", "2024-03-04"), ("Mon, 4 Mar 2024 09:14:00 +0100", "2024-03-04"), ("2024-03-04T10:00:00Z", "2024-03-04"),
    ("4.3.2024", "2024-03-04"), ("25/12/2024", "2024-12-25"), ("12/25/2024", "2024-12-25"), ("4/4/2024", "2024-04-04"), ("20240304", "2024-03-04"),
    ("Montag, den 4. März 2024", "2024-03-04"), ("le 4 mars 2024", "2024-03-04"), ("4 de marzo de 2024", "2024-03-04"), ("2024年3月4日 星期一", "2024-03-04"),
    ("2024年3月", "2024-03"), ("2024年", "2024"), ("Q3 2024", ""),
    ("2024 March", "2024-03"), ("03/2024", "2024-03"), ("März 2024", "2024-03"), ("1868", "1868"),
    ("3/4/2024", ""), ("30 February 2024", ""), ("2024-13", ""), ("2024-02-30", ""), ("March", ""), ("yesterday", ""), ("12", ""),
    ("before 4 March 2024", ""), ("2024-03-04 or 2024-03-05", ""), ("FY2024", ""), ("", ""), ("0000", ""), ("2024-03-04T25:00", ""), ("{{date}}", ""),
    ("2019-2021", ""), ("Date: 2019-2021", ""), ("2024-0315", ""), ("-2024", ""), ("2024-03-04 -2026", ""), ("Mon Mar 4 09:14:00 2024 +0100", "2024-03-04"),
]  # fmt: skip


@pytest.mark.parametrize(("written", "date"), WRITTEN)
def test_dates_of_the_usual_forms_are_read_and_what_could_be_two_is_not(written: str, date: str) -> None:
    assert dates.read(written) == date


def test_a_period_has_a_first_and_a_last_day() -> None:
    assert dates.days("2024-02") == ("2024-02-01", "2024-02-29")
    assert dates.days("2024") == ("2024-01-01", "2024-12-31") and dates.days("2024-02-03") == (
        "2024-02-03",
        "2024-02-03",
    )


def test_documents_and_filters_take_dates_in_every_usual_form(tmp_path: Path) -> None:
    given = {
        "a": "4 March 2024",
        "b": "2024年3月4日",
        "c": "2024-08",
        "d": "March 2024",
        "e": 1709510400,
        "f": "TBD",
        "g": "4. März 2023",
        "h": "2024",
    }
    texts = tuple(
        InlineText(f"The crane of {name} stood still in the wind.", name, name, {"date": date})
        for name, date in given.items()
    )
    snapshot = snapshot_of(tmp_path / "c", texts)

    def found(*filters: str) -> str:
        return "".join(
            sorted(one.title for one in local_search(snapshot, "crane", filters=filters, max_tokens=6000).citations)
        )

    assert {fact.title: fact.date for fact in documents(snapshot).values()} == {
        "a": "2024-03-04", "b": "2024-03-04", "c": "2024-08", "d": "2024-03", "e": "2024-03-04", "f": "", "g": "2023-03-04", "h": "2024",
    }  # fmt: skip
    assert (
        found("date=4 March 2024") == "abe" and found("date=March 2024") == "abde" and found("date=August 2024") == "c"
    )
    assert (
        found("date>=July 1, 2024") == "ch" and found("date<=2023年3月") == "g" and found("as_of=4. März 2023") == "fg"
    )
    assert found("said=4 March 2024") == "abe" and found("said=2023-03-04", "said=2024-03-04") == "abeg"
    with pytest.raises(BadInput, match="2024-04-03 or 2024-03-04, whichever is meant"):
        found("date>=3/4/2024")
    with pytest.raises(BadInput, match="2024-05-03 or 3 May 2024"):
        found("when=last week")
    with pytest.raises(BadInput, match="2024-05-03 or 3 May 2024"):
        found("date=2019-2021")
    lines = [line for line in list_documents(snapshot).text.splitlines() if line.startswith("- [")]
    assert [line.split()[2].rstrip(",") for line in lines[:6]] == [
        "2023-03-04",
        "2024",
        "2024-03",
        "2024-03-04",
        "2024-03-04",
        "2024-03-04",
    ] and "2024-08" in lines[6]


def test_files_are_dated_by_what_they_say(tmp_path: Path) -> None:
    told = {"a.md": "# Stop\nDate: 2024-10-11\nAll lamps went out.", "b.md": "# Hall\n27. Mai 2025\nIt is too small.", "c.md": "# Pier\nIt stands.",
            "2023-02-01 d.md": "# Next\nMeeting on 2 March 2024\nBring tea."}  # fmt: skip
    for name, text in told.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    folder = tmp_path / "home" / "corpora" / "kb"
    index_documents(folder, IndexRequest(paths=(tmp_path,)), Settings(home=tmp_path / "home", roots=(tmp_path,)))
    snapshot = open_snapshot(folder)
    filters = ["date>=2023", "date<=2025-06"]
    listed = list_documents(snapshot, filters=filters).text
    assert all(
        f"{date}, {title}" in listed
        for date, title in (("2023-02-01", "Next"), ("2024-10-11", "Stop"), ("2025-05-27", "Hall"))
    )
    assert "Pier" not in listed and local_search(snapshot, "What happened?", filters=filters).state == "not_found"


@settings(deadline=None)  # the first example compiles every form
@given(
    st.from_regex(
        r"[a-z_-]{0,3}(?:19|20)\d\d([-_. T/]?)\d{1,2}\1\d{1,2}(?:[T ]\d\d?:\d\d(?: ?[APap]M|[+-]\d\d:\d\d)?)?",
        fullmatch=True,
    )
    | st.text(max_size=40)
)
def test_no_date_of_metadata_or_of_a_name_is_one_that_the_calendar_does_not_have(written: str) -> None:
    metadata = {"date": written}
    day, clock = dates.of_metadata(metadata), dates.clock(metadata)
    for one in (dates.in_name(written), dates.read(written), day):
        assert not one or dates.days(one)[0] <= dates.days(one)[1]
        dates.moment(one, clock)


def test_the_name_of_a_file_holds_its_day_in_several_forms() -> None:
    names = ("14.05.2024 Protokoll.md", "minutes 14 May 2024.md", "2024年5月14日.md", "Scan_2024-05-14.txt")
    assert {dates.in_name(name) for name in names} == {"2024-05-14"}
    assert dates.in_name("from 3 May 2024 to 5 May 2024.md") == dates.in_name("v2.5.2024.1.md") == ""


@pytest.mark.parametrize(
    ("head", "date"),
    [
        ("# Shop\n\n© 2019 Shop Inc.", ""),
        ("Home\nAbout\nCopyright May 2019", ""),
        ("# Hall\n\nNext meeting: 3 May 2025", ""),
        ("# Hall\n\nArchives\n- May 2019\n- June 2019\n- July 2019", ""),
        ("# Pier\n\n03 Jun 2001 - 05 Jul 2025\n\nText", ""),
        ("# Pier\n\n2024-03-02 - moved from the quay\n\nText", "2024-03-02"),
        ("About us\nWe sell.\nLast updated: May 3, 2019", "2019-05-03"),
        ("# Shop\n\nPosted on May 3, 2019 by Ana\n\nText\n\n© 12 May 2021", "2019-05-03"),
        ("# Letter\n\nMay 2019\n\nText", "2019-05"),
        ("# Letter\n\nDate: 2019-2021\n\nText", ""),
        ("# Pier\n\nBy Ulrika Sand, 4 May 2023\n\nThe office is closed on Sunday.", "2023-05-04"),
        ("# Pier\n\nBy Ana Ruiz on December 10th, 2015 at 11:54 am.", "2015-12-10"),
    ],
)
def test_rights_archives_and_events_do_not_date_a_text_and_bylines_do(head: str, date: str) -> None:
    assert dates.in_head(head) == date
