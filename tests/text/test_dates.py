"""What documents say of themselves: dates, with filters by them; and a first line that is no title."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_mcp.errors import BadInput
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query.filters import documents
from graphrag_mcp.query.listing import list_documents
from graphrag_mcp.query.local import local_search
from graphrag_mcp.settings import Settings
from graphrag_mcp.sources.decode import find_title
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.text import dates
from graphrag_mcp.types import IndexRequest, InlineText


@pytest.mark.parametrize(("head", "day"), [
    ("Date: Fri, 1 Dec 2023 09:14:00 +0100", "2023-12-01"), ("# Protokoll vom 19. Januar 2024", "2024-01-19"), ("On 1 May 2020", "2020-05-01"),
    ("日期：2024年3月29日", "2024-03-29"), ("12 de octubre de 1999", "1999-10-12"), ("March 3rd, 2021", "2021-03-03"), ("3 марта 2021 г.", "2021-03-03"),
    ("am 02.03.2024", "2024-03-02"), ("31.02.2020", ""), ("03/04/2024", ""), ("3 marbles 2020", ""), ("version 2024.1.2.3", ""), ("x " * 60 + "2024-01-02", ""),
    ("Ada was born on 4 May 1976 in York, and", ""), ("桥于2019年3月2日在新港的东岸正式通车并命名", ""), ("| Board | 4 May 2020 |", "2020-05-04"),
    ("Note: the bridge that Ada built opened on 4 May 1976", ""), ("Date: 25/12/2023", "2023-12-25"), ("4-Mar-2024", "2024-03-04"),
    ("Letter of 4 March 1868", "1868-03-04"), ("Born: 10 December 1815", ""), ("Deadline: 2024-05-01", ""),
    ("Chat of Audrey and Andrew, 1:10 pm on 27 March, 2023", "2023-03-27"), ("Meeting of the harbour board of the town of Varde, 2024-05-03 14:00", "2024-05-03"),
    ("[2024-03-01 10:00] Ana: The crane is broken, it fell into the harbour last night beside the old ferry", "2024-03-01"),
    ("[3/14/24, 10:12] Ana: The crane is broken, it fell into the harbour last night beside the old ferry", "2024-03-14"),
    ("Expiry date: 2031-02-03", ""), ("Fecha de vencimiento: 03/02/2031", ""), ("有效期至 2031年2月3日", ""),
    ("Born at 4:10 am on 3 May 1950", ""), ("We met at the pier at 1:56 pm on 8 May 2023 and went to see the boats with all of them", ""),
])  # fmt: skip
def test_a_date_in_the_first_lines_is_read(head: str, day: str) -> None:
    assert dates.in_head(f"Weekly\n\n{head}\n1999-01-01") == (day or "1999-01-01")
    assert dates.in_head("Weekly\n" * 6 + "2024-01-02") == ""


@pytest.mark.parametrize(("head", "date"), [
    ("# Newsletter March 2024", "2024-03"), ("# Report Q3 2024", "2024-Q3"), ("Bericht, 3. Quartal 2024", "2024-Q3"), ("二〇二四 2024年3月", "2024-03"),
    ("Year: 2024", "2024"), ("**Date:** 2024", "2024"), ("# Room 2024", ""), ("# Founded March 1999", ""), ("30 de febrero de 2024", ""), ("30 February 2024", ""),
])  # fmt: skip
def test_first_lines_without_a_day_date_by_a_month_a_quarter_or_a_year(
    head: str, date: str
) -> None:
    assert dates.in_head(f"{head}\n\nThe pier was closed and nobody came.") == date


WRITTEN = [
    ("2024-03-04", "2024-03-04"), ("4 March 2024", "2024-03-04"), ("March 4, 2024", "2024-03-04"), ("2024年3月4日", "2024-03-04"),
    ("4. März 2024", "2024-03-04"), ("Q3 2024", "2024-Q3"), ("March 2024", "2024-03"), ("2024", "2024"), ("2024-3-4", "2024-03-04"),
    ("4th of March, 2024", "2024-03-04"), ("Mon, 4 Mar 2024 09:14:00 +0100", "2024-03-04"), ("2024-03-04T10:00:00Z", "2024-03-04"),
    ("4.3.2024", "2024-03-04"), ("25/12/2024", "2024-12-25"), ("12/25/2024", "2024-12-25"), ("4/4/2024", "2024-04-04"), ("20240304", "2024-03-04"),
    ("Montag, den 4. März 2024", "2024-03-04"), ("le 4 mars 2024", "2024-03-04"), ("4 de marzo de 2024", "2024-03-04"), ("2024年3月4日 星期一", "2024-03-04"),
    ("2024年3月", "2024-03"), ("2024年", "2024"), ("2024年第三季度", "2024-Q3"), ("3rd quarter of 2024", "2024-Q3"), ("3. Quartal 2024", "2024-Q3"),
    ("3e trimestre 2024", "2024-Q3"), ("2024-Q3", "2024-Q3"), ("2024 March", "2024-03"), ("03/2024", "2024-03"), ("März 2024", "2024-03"), ("1868", "1868"),
    ("3/4/2024", ""), ("30 February 2024", ""), ("2024-13", ""), ("2024-02-30", ""), ("Q5 2024", ""), ("March", ""), ("yesterday", ""), ("12", ""),
    ("before 4 March 2024", ""), ("2024-03-04 or 2024-03-05", ""), ("FY2024", ""), ("", ""), ("0000", ""), ("2024-03-04T25:00", ""), ("{{date}}", ""),
]  # fmt: skip


@pytest.mark.parametrize(("written", "date"), WRITTEN)
def test_dates_of_the_usual_forms_are_read_and_what_could_be_two_is_not(
    written: str, date: str
) -> None:
    assert dates.read(written) == date


def test_a_period_has_a_first_and_a_last_day() -> None:
    assert dates.days("2024-Q1") == ("2024-01-01", "2024-03-31") and dates.days("2024-02") == (
        "2024-02-01",
        "2024-02-29",
    )
    assert dates.days("2024") == ("2024-01-01", "2024-12-31") and dates.days("2024-02-03") == (
        "2024-02-03",
        "2024-02-03",
    )


def test_documents_and_filters_take_dates_in_every_usual_form(tmp_path: Path) -> None:
    given = {
        "a": "4 March 2024",
        "b": "2024年3月4日",
        "c": "Q3 2024",
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
    index_documents(tmp_path / "c", IndexRequest(texts=texts), Settings(home=tmp_path))
    snapshot = open_snapshot(tmp_path / "c")

    def found(*filters: str) -> str:
        return "".join(
            sorted(
                one.title
                for one in local_search(
                    snapshot, "crane", filters=filters, max_tokens=6000
                ).citations
            )
        )

    assert {fact["document"][2]: fact["date"] for fact in documents(snapshot).values()} == {
        "a": "2024-03-04", "b": "2024-03-04", "c": "2024-Q3", "d": "2024-03", "e": "2024-03-04", "f": "", "g": "2023-03-04", "h": "2024",
    }  # fmt: skip
    assert (
        found("date=4 March 2024") == "abe"
        and found("date=March 2024") == "abde"
        and found("date=Q3 2024") == "c"
    )
    assert (
        found("date>=July 1, 2024") == "ch"
        and found("date<=2023年3月") == "g"
        and found("as_of=4. März 2023") == "fg"
    )
    assert (
        found("said=4 March 2024") == "abe"
        and found("said=2023-03-04", "said=2024-03-04") == "abeg"
    )
    with pytest.raises(BadInput, match="2024-04-03 or 2024-03-04, whichever is meant"):
        found("date>=3/4/2024")
    with pytest.raises(BadInput, match="Q3 2024 or 3 May 2024"):
        found("when=last week")
    lines = [line for line in list_documents(snapshot).text.splitlines() if line.startswith("- [")]
    assert [line.split()[2] for line in lines[:6]] == [
        "2023-03-04",
        "2024",
        "2024-03",
        "2024-03-04",
        "2024-03-04",
        "2024-03-04",
    ] and "2024-Q3" in lines[6]


def test_files_are_dated_by_what_they_say_and_listed_where_no_word_fits(tmp_path: Path) -> None:
    told = {"a.md": "# Stop\nDate: 2024-10-11\nAll lamps went out.", "b.md": "# Hall\n27. Mai 2025\nIt is too small.", "c.md": "# Pier\nIt stands.",
            "2023-02-01 d.md": "# Next\nMeeting on 2 March 2024\nBring tea."}  # fmt: skip
    for name, text in told.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    folder = tmp_path / "home" / "corpora" / "kb"
    index_documents(
        folder, IndexRequest(paths=(tmp_path,)), Settings(home=tmp_path / "home", roots=(tmp_path,))
    )
    found = local_search(
        open_snapshot(folder), "What happened?", filters=["date>=2023", "date<=2025-06"]
    )
    names = [line.rpartition(" ")[2] for line in found.text.splitlines() if line.startswith("- [d")]
    assert (
        found.state == "not_found"
        and names == ["Next", "Stop", "Hall"]
        and "get_source" in found.hint
    )


@pytest.mark.parametrize(("text", "title"), [
    ("ANNA: Good morning.\n\nBO: Hello.\n\nANNA: Shall we?\n", ""), ("[00:01] so, welcome\n\n[00:04] thanks\n\n[00:09] well\n", ""),
    ("王：早上好。\n\n李：你好。\n\n王：开始吧。\n", ""), ("Minutes: the pier\n\nAda spoke first.\nBo: no.\n", "Minutes: the pier"),
    ("The pier\n\nAnna: Good.\n\nBo: Yes.\n\nAnna: So.\n", "The pier"),
])  # fmt: skip
def test_what_somebody_says_first_is_no_title(text: str, title: str) -> None:
    assert find_title(text) == title


@pytest.mark.parametrize(
    ("head", "date"),
    [
        *((head, "") for head in (
            "# Shop\n\n© 2019 Shop Inc.", "# Shop\n\nCopyright © 12 May 2019 Shop", "Home\nAbout\nCopyright May 2019",
            "All rights reserved, 3 May 2019", "Archives\n- May 2019\n- June 2019\n- July 2019\n\nHello", "Archive for May 2019\n\nText",
            "Retrieved 3 May 2019", "Printed on 3 May 2019", "Next meeting: 3 May 2025", "版权所有 2019年5月", "Abgerufen am 3. Mai 2019",
        )),
        ("About us\nWe sell.\nLast updated: May 3, 2019", "2019-05-03"),
        ("Posted on May 3, 2019 by Ana\n\nText\n\n© 12 May 2021", "2019-05-03"),
        ("Copyright © 12 May 2021\n\nPublished: 3 May 2019", "2019-05-03"),
        ("# Letter\n\nMay 2019\n\nText", "2019-05"),
    ],
)  # fmt: skip
def test_rights_archives_and_visits_do_not_date_a_page(head: str, date: str) -> None:
    assert dates.in_head(head) == date


def test_a_day_in_a_name_that_the_calendar_does_not_have_dates_nothing(tmp_path: Path) -> None:
    text = InlineText(
        "The tank burst.\nThe crew of Ida repaired it.", "minutes-2023-11-31.md", "Minutes"
    )
    index_documents(tmp_path / "c", IndexRequest(texts=(text,)), Settings(home=tmp_path))
    assert "The tank burst" in local_search(open_snapshot(tmp_path / "c"), "tank").text
    assert [
        dates.in_name(name) for name in ("20231131.txt", "IMG_20230229.jpg", "IMG_20240229.jpg")
    ] == ["", "", "2024-02-29"]


@given(
    st.from_regex(
        r"[a-z_-]{0,3}(?:19|20)\d\d([-_. T/]?)\d{1,2}\1\d{1,2}(?:[T ]\d\d?:\d\d(?: ?[APap]M|[+-]\d\d:\d\d)?)?",
        fullmatch=True,
    )
    | st.text(max_size=40)
)
def test_no_date_of_metadata_or_of_a_name_is_one_that_the_calendar_does_not_have(
    written: str,
) -> None:
    metadata = {"date": written, "path": f"{written}/"}
    day, clock = dates.of_metadata(metadata), dates.clock(metadata)
    for one in (dates.in_name(written), dates.in_address(metadata), dates.read(written), day):
        assert not one or dates.days(one)[0] <= dates.days(one)[1]
        dates.moment(one, clock)


def test_a_clock_in_capitals_does_not_leave_a_document_undated() -> None:
    written = {"date": "2024-03-04 1:02 PM"}
    assert (dates.of_metadata(written), dates.clock(written)) == ("2024-03-04", "13:02")


def test_the_name_of_a_file_holds_its_day_in_several_forms() -> None:
    names = (
        "14.05.2024 Protokoll.md",
        "minutes 14 May 2024.md",
        "2024年5月14日.md",
        "Scan_2024-05-14.txt",
    )
    assert {dates.in_name(name) for name in names} == {"2024-05-14"}
    assert (
        dates.in_name("from 3 May 2024 to 5 May 2024.md") == dates.in_name("v2.5.2024.1.md") == ""
    )


PAGE = """# Steam shop opens for small studios

[Skip to content](https://example.org/#content)

28 Dec 2021 - 27 Sep 2025

*   [News](https://example.org/news)
*   [Reviews](https://example.org/reviews)
*   [Shops](https://example.org/shops)
*   [Ships](https://example.org/ships)

{line}

The shop opened to studios of any size yesterday, and the first of them sold two thousand copies.

By Bo Lind on May 9, 2022
"""


@pytest.mark.parametrize(
    ("line", "date"),
    [
        ("By Ana Ruiz on December 10th, 2015 at 11:54 am.", "2015-12-10"),
        ("By [Ana Ruiz](https://example.org/ana) published July 21, 2021", "2021-07-21"),
        ("### Last updated by Ana Ruiz on April 19, 2018 at 7:16PM", "2018-04-19"),
        ("Posted onAugust 1, 2012byLinux team", "2012-08-01"),
        ("Thursday 20 March 2014", "2014-03-20"),
        ("Sun 7 Jun 2015 08.45 EDT Last modified on Wed 6 Jun 2018 05.34 EDT", "2015-06-07"),
        ("2 minute read October 19, 2022 10:05 AM UTC Last Updated ago", "2022-10-19"),
        ("1. grant says: August 1, 2012 at 5:14 pm", "2022-05-09"),
        ("By May 3, 2024, three hundred small studios had come.", "2022-05-09"),  # a sentence
        (
            "[Share](https://example.org/2016/03/29/steam-shop-opens-small-studios?to=x)",
            "2016-03-29",
        ),
        ("입력 2018.05.02. 14:06 업데이트 2018.05.03. 14:08", "2018-05-02"),
        ("[Share](https://example.org/2016/0329/steam-shop-opens-small-studios)", "2016-03-29"),
        ("[Other](https://example.org/2016/03/29/a-game-of-last-summer)", "2022-05-09"),
        ("[](https://example.org/steam)12/31/1969", "2022-05-09"),
        ("By Ana Ruiz on January 1, 1970", "2022-05-09"),
    ],
)
def test_a_web_page_is_dated_by_its_byline_or_its_address(line, date):
    text = PAGE.format(line=line)
    if line.startswith(("[Share]", "Thursday")):
        text = text.rpartition("By Bo")[0]
    assert dates.in_head(text) == date


def test_a_page_that_is_a_menu_has_no_date():
    menu = "\n".join(f"*   [Part {n}](https://example.org/2016/03/29/steam-shop-part-{n})" for n in range(9))
    assert dates.in_head(menu) == ""


def test_bylines_of_one_day_are_those_of_other_stories():
    links = "\n".join(f"[{n}](https://example.org/{n})" for n in range(6))
    stories = "\n\n".join(f"Ana Ruiz December 2, 2025 {n}:34 pm" for n in range(1, 5))
    assert dates.in_head(f"# The mill\n\n{links}\n\n{stories}\n\nThe mill of Orl is closed.") == ""
    assert dates.in_head(f"# The mill\n\n{links}\n\nBy Bo Lind on May 9, 2022\n\n{stories}") == "2022-05-09"


def test_what_is_no_byline_dates_no_page():
    links = "\n".join(f"[{n}](https://example.org/{n})" for n in range(6))
    told = "The shop opened to studios of any size, and the first of them sold two thousand copies in a week or so. " * 3
    head = f"# Steam shop\n\n{links}\n\nSome words on it.\n\n"
    for line in (
        "By train we arrive on 4 March 2027", "Published figures for 3 May 2024 were discussed.", "Updated the server on 4 March 2025",
        "Von Berlin nach Rom am 4. März 2025", "发表演讲的时间是2019年3月4日", "> By John Smith, New York Times, March 4, 2019",
        "Published in Nature, 4 March 1999", "Par contre, le 4 mars 2025", "12. Mai 2026, 19:00 Uhr Sommerfest",
    ):
        assert dates.in_head(head + line) == "", line
    assert dates.in_head(f"{head}{told}\n\n" * 5 + "## Comments\n\nPosted by Joe Doe on March 4, 2024") == ""
    assert dates.in_head(f"# Newsletter\nMay 2024\n\n{links}\n\nPosted by Ana on 3 March 2019") == "2024-05"
    assert dates.in_head("# Sprint 14\n\n2024-03-01 – 2024-03-14\n\nPlans.") == "2024-03-01"


def test_the_address_of_a_page_dates_it_before_the_day_of_its_masthead():
    links = "\n".join(f"[{n}](https://example.org/{n})" for n in range(6))
    told = "The mill of Orl is closed since the storm, and its owner does not want to open it again."
    today = "Tuesday, December 2, 2025\n\n9:15 a.m. ET Dec. 2, 2025"
    for own, date in (
        ("[Skip to content](https://example.org/2020/02/15/world/mill.html#site-content)", "2020-02-15"),
        ("[Menu](https://example.org/story/2020-02/66982#nav) [Top](https://example.org/story/2020-02/66982#top)", "2020-02"),
        ("The Wayback Machine - http://example.org:80/articles/2012-12-14-the-mill", "2012-12-14"),
        ("[Notes](https://example.org/2019/01/01/mill#notes)", "2025-12-02"),  # another page
    ):
        assert dates.in_head(f"# The mill\n\n{own}\n\n{today}\n\n{links}\n\n{told}") == date, own
    updated = f"# Facts\n\n[Skip to content](https://example.org/2013/07/04/facts#main)\n\n{links}\n\nUpdated 3:03 PM EST, Wed November 26, 2025"
    assert dates.in_head(updated) == "2025-11-26"


def test_a_date_set_apart_in_a_title_dates_the_text_and_a_link_to_an_archive_or_a_span_does_not():
    links = "\n".join(f"* [{n}](https://example.org/{n})" for n in range(12))
    title = "Harbour asks for masks a hundred times more often than before - 07/02/2020 - Coast News"
    assert dates.in_head(f"{title}\n\nThe harbour was seen by many people from the town on 25/01/2020 and on other days too.") == "2020-02-07"
    assert dates.in_head("Harbour news of 07/02/2020 that were not expected in this quiet town of ours, as on 25/01/2020.") == ""
    for line in ('[December 02, 2025](https://example.org/archive/2025/12/02/ "archive page")', "###### 1-5 December 2025"):
        assert dates.in_head(f"# The mill\n\nThe mill of Orl.\n\n{links}\n\n{line}\n\nThe mill of Orl is closed.") == "", line


def test_an_address_of_another_site_of_an_event_or_of_a_version_dates_no_page():
    links = "\n".join(f"[{n}](https://example.org/{n})" for n in range(8))
    twice = "See [a]({0}#a) and [b]({0}#b)."
    for told, date in (
        ("Monday, 5 March 2012\n\nDear all,\n\n" + twice.format("https://other.net/2001/02/03/story"), "2012-03-05"),
        ("# Coral reefs\n\n" + twice.format("https://other.net/2011/03/04/flood"), ""),
        ("# Guide\n\n" + twice.format("https://docs.example.org/api/2012-10-17/Reference/"), ""),
        ("# Fair\n\n[Skip to main content](https://example.org/events/2031/05/06/fair/)", ""),
        ("Rent due - 2031-05-01 - Reminder\n\nDear all,", ""),
    ):
        assert dates.in_head(f"{told}\n\n{links}\n\nThe mill of Orl is closed.") == date, told
