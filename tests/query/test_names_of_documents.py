"""What documents are called in results, and lists that count who names somebody."""

from pathlib import Path

from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query.documents import list_documents
from graphrag_mcp.query.global_ import global_search
from graphrag_mcp.query.local import local_search
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.types import IndexRequest, InlineText
from tests.support.files import write


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


def test_a_document_without_a_title_is_called_by_its_file(tmp_path: Path) -> None:
    files = write(tmp_path / "in", {"rates.txt": "the ferry to Orl costs 7 pounds\n", "rates.yaml": "ferry: Venn\nprice: 9 pounds\n"})
    index_documents(tmp_path / "c", IndexRequest(paths=[str(files)]), Settings(home=tmp_path))
    snapshot = open_snapshot(tmp_path / "c")
    for text in (local_search(snapshot, "What does the ferry cost in pounds?").text, list_documents(snapshot).text):
        assert "] rates.txt" in text and "] rates.yaml" in text, text


def test_a_name_of_an_entity_lists_every_document_that_names_it_and_another_word_those_that_rank(tmp_path: Path) -> None:
    texts = [
        *(f"On day {n} Beat Zumstein mended lamp {n} of the pier." for n in range(3)),
        "Mrs Ursula Zumstein sells fish. Moon Jae-in met Ban Ki-moon.",
        "Beat Zumstein and Beat Zumstein's lamps: we hope for rain.",
        "Ida Hope paid.",
    ]
    snapshot = indexed(tmp_path, *(InlineText(text, f"n{n}") for n, text in enumerate(texts)))
    for asked, start, not_shown in (
        ("Beat Zumstein", '4 documents naming "Beat Zumstein".', "fish"),
        ("Mr Beat Zumstein", '4 documents naming "Beat Zumstein".', "fish"),
        ("Ban Ki-moon", '1 document naming "Ban Ki-moon".', "lamp"),
        ("Ida Hope", '1 document naming "Ida Hope".', "rain"),
        ("Zumstein", '4 documents ranked for "Zumstein"', "Ida Hope"),
        ('"Zumstein"', '5 documents holding "Zumstein"', "Hope"),
    ):
        listed = list_documents(snapshot, query=asked).text
        assert listed.startswith(start) and not_shown not in listed, (asked, listed)
