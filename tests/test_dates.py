"""What documents say of themselves: dates, with filters by them; and a first line that is no title."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query.local import local_search
from graphrag_mcp.settings import Settings
from graphrag_mcp.sources.decode import find_title
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.text import dates
from graphrag_mcp.types import IndexRequest


@pytest.mark.parametrize(("head", "day"), [
    ("Date: Fri, 1 Dec 2023 09:14:00 +0100", "2023-12-01"), ("# Protokoll vom 19. Januar 2024", "2024-01-19"), ("On 1 May 2020", "2020-05-01"),
    ("日期：2024年3月29日", "2024-03-29"), ("12 de octubre de 1999", "1999-10-12"), ("March 3rd, 2021", "2021-03-03"), ("3 марта 2021 г.", "2021-03-03"),
    ("am 02.03.2024", "2024-03-02"), ("31.02.2020", ""), ("03/04/2024", ""), ("3 marbles 2020", ""), ("version 2024.1.2.3", ""), ("x " * 60 + "2024-01-02", ""),
    ("Ada was born on 4 May 1976 in York, and", ""), ("桥于2019年3月2日在新港的东岸正式通车并命名", ""), ("| Board | 4 May 2020 |", "2020-05-04"),
    ("Note: the bridge that Ada built opened on 4 May 1976", ""),
])  # fmt: skip
def test_a_date_in_the_first_lines_is_read(head: str, day: str) -> None:
    assert dates.in_head(f"Weekly\n\n{head}\n1999-01-01") == (day or "1999-01-01")
    assert dates.in_head("Weekly\n" * 6 + "2024-01-02") == ""


def test_files_are_dated_by_what_they_say_and_listed_where_no_word_fits(tmp_path: Path) -> None:
    told = {"a.md": "# Stop\nDate: 2024-10-11\nAll lamps went out.", "b.md": "# Hall\n27. Mai 2025\nIt is too small.", "c.md": "# Pier\nIt stands.",
            "2023-02-01 d.md": "# Next\nMeeting on 2 March 2024\nBring tea."}  # fmt: skip
    for name, text in told.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    folder = tmp_path / "home" / "corpora" / "kb"
    index_documents(folder, IndexRequest(paths=(tmp_path,)), Settings(home=tmp_path / "home", roots=(tmp_path,)))
    found = local_search(open_snapshot(folder), "What happened?", filters=["date>=2023", "date<=2025-06"])
    names = [line.rpartition(" ")[2] for line in found.text.splitlines() if line.startswith("- [d")]
    assert found.state == "not_found" and names == ["Next", "Stop", "Hall"] and "get_source" in found.hint


@pytest.mark.parametrize(("text", "title"), [
    ("ANNA: Good morning.\n\nBO: Hello.\n\nANNA: Shall we?\n", ""), ("[00:01] so, welcome\n\n[00:04] thanks\n\n[00:09] well\n", ""),
    ("王：早上好。\n\n李：你好。\n\n王：开始吧。\n", ""), ("Minutes: the pier\n\nAda spoke first.\nBo: no.\n", "Minutes: the pier"),
    ("The pier\n\nAnna: Good.\n\nBo: Yes.\n\nAnna: So.\n", "The pier"),
])  # fmt: skip
def test_what_somebody_says_first_is_no_title(text: str, title: str) -> None:
    assert find_title(text) == title
