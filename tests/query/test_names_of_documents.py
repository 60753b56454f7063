"""What documents are called in results, and lists that count who names somebody."""

from pathlib import Path

from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query.documents import list_documents
from graphrag_mcp.query.global_ import global_search
from graphrag_mcp.query.local import local_search
from graphrag_mcp.query.outline import outline
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.types import IndexRequest, InlineText
from tests.support.files import snapshot_of, write


def indexed(folder: Path, *texts: InlineText) -> Snapshot:
    return snapshot_of(folder / "c", texts)


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


def test_a_document_without_a_title_is_called_by_its_file(tmp_path: Path) -> None:
    files = write(tmp_path / "in", {"rates.txt": "the ferry to Orl costs 7 pounds\n", "rates.yaml": "ferry: Venn\nprice: 9 pounds\n"})
    index_documents(tmp_path / "c", IndexRequest(paths=[str(files)]), Settings(home=tmp_path))
    snapshot = open_snapshot(tmp_path / "c")
    for text in (local_search(snapshot, "What does the ferry cost in pounds?").text, list_documents(snapshot).text):
        assert "] rates.txt" in text and "] rates.yaml" in text, text


def test_the_outline_of_a_name_of_several_documents_says_so(tmp_path: Path) -> None:
    plan = "# Annual plan\n\nThe pier of {} is painted in May.\n"
    files = write(
        tmp_path / "in",
        {"orl.md": plan.format("Orl"), "venn.md": plan.format("Venn"), "fares.csv": "pier,fare\nOrl,7\nVenn,9\n"},
    )
    index_documents(tmp_path / "c", IndexRequest(paths=[str(files)]), Settings(home=tmp_path))
    snapshot = open_snapshot(tmp_path / "c")
    for name, several in (
        ("Annual plan", True),
        ("fares.csv", True),
        ("orl.md", False),
        ("venn", False),
        ("d1", False),
    ):
        head, *_ = outline(snapshot, name)
        assert ("2 documents have this name" in head) == several, head
