"""Mails that answer each other are one thread, whichever of the headers say so, with what is attached to them."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_mcp.explorer.texts import document
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query import documents, threads
from graphrag_mcp.query.source import get_source
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.types import IndexRequest

MAILS = {
    # name: (day, headers, words)
    "offer": (4, "", "We sell the pilot boat Skua for 418,000 euros."),
    "answer": (5, "In-Reply-To: <offer@x>\n", "The board accepts 402,000 euros."),
    "end": (6, "In-Reply-To: <answer@x>\n", "Agreed: 402,000 euros in August."),  # names the mail before alone
    "aside": (7, "References: <offer@x> <answer@x>\n", "Who pays the pilot?"),
    "other": (8, "", "The lock at Leer is closed."),
}


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    folder, corpus = tmp_path_factory.mktemp("mails"), tmp_path_factory.mktemp("home") / "c"
    for name, (day, headers, words) in MAILS.items():
        attached = (
            'Content-Type: multipart/mixed; boundary="b"\n\n--b\nContent-Type: text/plain\n\n'
            f'{words}\n\n--b\nContent-Type: text/csv\nContent-Disposition: attachment; filename="costs.csv"\n\nitem,cost\nengine,99000\n\n--b--\n'
        )
        body = attached if name == "offer" else f"Content-Type: text/plain; charset=utf-8\n\n{words}\n"
        (folder / f"{name}.eml").write_text(
            f"From: Henrik Vos <h@x>\nTo: Mara Lindt <m@x>\nSubject: {name.title()}\nDate: Mon, {day:02} Mar 2024 09:00:00 +0000\n"
            f"Message-ID: <{name}@x>\n{headers}{body}"
        )
    index_documents(corpus, IndexRequest(paths=(str(folder),)), Settings(home=corpus.parent))
    return open_snapshot(corpus)


def numbered(snapshot: Snapshot, name: str) -> dict[str, object]:
    (row,) = snapshot.rows("documents", f"uri LIKE '%/{name}.eml'", ["n", "id"]).to_pylist()
    return row


@pytest.mark.parametrize("name", ["offer", "answer", "end", "aside"])
def test_a_thread_is_found_from_each_of_its_mails(snapshot: Snapshot, name: str) -> None:
    thread = threads.of_document(snapshot, str(numbered(snapshot, name)["id"]))
    files = ["offer.eml", "offer.eml#costs.csv/1", "answer.eml", "end.eml", "aside.eml"]
    assert [fact.uri.partition("/")[2] for fact in thread] == files


def test_a_mail_alone_is_no_thread(snapshot: Snapshot) -> None:
    assert threads.of_document(snapshot, str(numbered(snapshot, "other")["id"])) == []
    assert threads.position(snapshot, str(numbered(snapshot, "other")["id"])) == ""


def test_source_outline_and_explorer_name_the_thread(snapshot: Snapshot) -> None:
    mail = numbered(snapshot, "answer")
    said = f"d{mail['n']} is 3 of 5 in a thread: d{numbered(snapshot, 'offer')['n']} 2024-03-04 Offer; "
    assert said in get_source(snapshot, [f"d{mail['n']}"]).hint
    assert said in documents.list_documents(snapshot, document=f"d{mail['n']}").text
    shown = document(snapshot, int(str(mail["n"])))["thread"]
    assert [one["title"] for one in shown if "costs" not in one["uri"]] == ["Offer", "Answer", "End", "Aside"]


def test_a_mail_in_a_list_is_told_by_its_text_and_not_by_its_subject(snapshot: Snapshot) -> None:
    listed = documents.list_documents(snapshot, query="board accepts").text
    assert ": The board accepts 402,000 euros." in listed and "Subject" not in listed


def test_a_first_mail_without_a_date_is_first(tmp_path: Path) -> None:
    mail = "From: Henrik Vos <h@x>\nSubject: {}\nMessage-ID: <{}@x>\n{}\nThe pilot boat Skua is for sale.\n"
    (tmp_path / "z.eml").write_text(mail.format("Offer", "offer", ""))
    (tmp_path / "a.eml").write_text(
        mail.format("Answer", "answer", "In-Reply-To: <offer@x>\nDate: Mon, 05 Mar 2024 09:00:00 +0000\n")
    )
    index_documents(tmp_path / "c", IndexRequest(paths=(str(tmp_path),)), Settings(home=tmp_path))
    found = open_snapshot(tmp_path / "c")
    assert " is 1 of 2 in a thread: " in threads.position(found, str(numbered(found, "z")["id"]))
