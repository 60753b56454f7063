"""Notes: what agents write down, with what real clients see of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from graphrag_mcp.app import App
from graphrag_mcp.server import build_server
from graphrag_mcp.settings import Settings
from tests.support.client import Caller, connected

STATION = "# Radar station\n\nThe radar station on Gull Point was opened in 1962 by Ines Calloway.\n\nIts mast is 40 metres high.\n"
LEDGER = "# Ledger\n\nTobias Fenn paid 300 crowns for the mast in March 1962.\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "radar station.md").write_text(STATION, "utf-8")
    (docs / "ledger.md").write_text(LEDGER, "utf-8")
    return docs


@pytest.fixture
def app(root: Path, tmp_path: Path) -> App:
    return App(Settings(home=tmp_path / "home", roots=(root,), notes=str(root / "notes")))


@pytest.fixture
def call(app: App) -> Iterator[Caller]:
    with connected(build_server(app)) as caller:
        caller.good("index_documents", paths=["."], wait_seconds=50)
        yield caller


def found_id(call: Caller, words: str) -> str:
    """The id of the first passage with these words."""
    text = call.good("search_text", query=f'"{words}"')["text"]
    return text.partition("[t")[2].partition("]")[0].join(("t", ""))


def test_a_note_is_a_file_with_links_and_is_found_when_the_call_returns(
    call: Caller, root: Path
) -> None:
    id = found_id(call, "Gull Point")
    said = call.good(
        "write_note", title="Mast of the station", text=f"Opened in 1962 [{id}], paid by Fenn [d1]."
    )
    assert (said["status"], said["cites"], said["documents"]) == ("done", 2, 2), said["text"]
    written = (root / "notes" / "Mast of the station.md").read_text("utf-8")
    assert (
        "[radar station.md:" in written
        and "(../radar%20station.md#L" in written
        and "(../ledger.md " in written
    )
    assert f"[{id}]" not in written and "kind: note" in written and "writer: " in written
    hits = call.good("local_search", query="Who paid for the mast of the station?")["text"]
    print(hits)
    assert "note by" in hits and "changed since" not in hits and f"[{id}]" in hits
    listed = call.good("list_documents", filters=["kind=note"])["text"]
    assert listed.count("\n- [") == 1 and "Mast of the station" in listed
