"""What documents are called in results, and lists that count who names somebody."""

from pathlib import Path

from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query.documents import list_documents
from graphrag_mcp.query.global_ import global_search
from graphrag_mcp.query.local import local_search
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.types import IndexRequest, InlineText


def indexed(folder: Path, *texts: InlineText) -> Snapshot:
    index_documents(folder / "c", IndexRequest(texts=texts), Settings(home=folder))
    return open_snapshot(folder / "c")


def test_equal_titles_are_shown_with_their_path_everywhere_and_others_without(tmp_path: Path) -> None:
    snapshot = indexed(
        tmp_path,
        InlineText("The ferry of Orl leaves the pier at noon.", "orl/README.md", "README"),
        InlineText("The ferry of Venn leaves the pier at dusk.", "venn/README.md", "README"),
        InlineText("The ferry of Hask leaves the pier at dawn.", "hask.md", "Ferry of Hask"),
    )
    for text in (
        local_search(snapshot, "When does the ferry leave the pier?").text,
        global_search(snapshot, "ferries that leave the pier").text,
        list_documents(snapshot).text,
    ):
        assert "orl/README.md" in text and "venn/README.md" in text
        assert "Ferry of Hask" in text and "hask.md" not in text


def test_a_list_of_who_names_somebody_is_complete_or_says_at_least(tmp_path: Path) -> None:
    said = [f"On day {n} Beat Zumstein mended lamp {n} of the pier." for n in range(5)]
    texts = [InlineText(text, f"n{n}") for n, text in enumerate(said)]
    whole = list_documents(indexed(tmp_path / "a", *texts), query="Beat Zumstein").text
    assert whole.startswith('5 documents that name "Beat Zumstein".')
    alone = InlineText("Mr Zumstein was thanked for his lamps by the harbour board.", "thanks")
    more = list_documents(indexed(tmp_path / "b", *texts, alone), query="Beat Zumstein").text
    assert more.startswith(("At least 5 documents that name", '6 documents that name "Beat Zumstein".'))
    single = list_documents(indexed(tmp_path / "c", texts[0]), query="Beat Zumstein").text
    assert single.startswith('1 document that names "Beat Zumstein".')
