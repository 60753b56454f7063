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


def test_a_list_of_who_names_somebody_is_complete_or_says_at_least(tmp_path: Path) -> None:
    said = [f"On day {n} Beat Zumstein mended lamp {n} of the pier." for n in range(5)]
    texts = [InlineText(text, f"n{n}") for n, text in enumerate(said)]
    whole = list_documents(indexed(tmp_path / "a", *texts), query="Beat Zumstein").text
    assert whole.startswith('5 documents that name "Beat Zumstein".')
    letter = InlineText("Zumsteins Brief kam am Abend an.", "letter")
    for name in ("Zumstein", "Beat Zumstein"):
        listed = list_documents(indexed(tmp_path / name, *texts, letter), query=name).text
        assert listed.startswith((f'At least 5 documents that name "{name}"', f'6 documents that name "{name}"')), listed
    alone = InlineText("Mr Zumstein was thanked for his lamps by the harbour board.", "thanks")
    more = list_documents(indexed(tmp_path / "b", *texts, alone), query="Beat Zumstein").text
    assert more.startswith(("At least 5 documents that name", '6 documents that name "Beat Zumstein".'))
    single = list_documents(indexed(tmp_path / "c", texts[0]), query="Beat Zumstein").text
    assert single.startswith('1 document that names "Beat Zumstein".')


def test_a_family_name_lists_every_document_that_holds_it(tmp_path: Path) -> None:
    texts = [
        *(f"On day {n} Beat Zumstein mended lamp {n} of the pier." for n in range(3)),
        "Mr Zumstein was thanked for his lamps.",
        "# Minutes\n\n- Zumstein: lamps",
        "Ursula Zumstein sells fish. Moon Jae-in met Ban Ki-moon.",
        "The Zumsteinberg is a hill. The harbour board met.",
    ]
    notes = [InlineText(text, f"n{n}") for n, text in enumerate(texts)]
    snapshot = indexed(tmp_path, *notes, InlineText("He mended lamps.", "x", "Letter of Zumstein"))
    for asked in ("Zumstein", "Mr Zumstein", "“Zumstein”"):
        assert list_documents(snapshot, query=asked).total == 7, asked
    assert list_documents(snapshot, query="Zumstein").text.startswith('7 documents that name "Zumstein"')
    least = list_documents(snapshot, query="Beat Zumstein").text
    assert least.startswith('At least 3 documents that name "Beat Zumstein"')
    for asked in ("Ki-moon", "Jae-in", "Ban Ki-moon", "Zumsteinberg"):
        assert list_documents(snapshot, query=asked).text.startswith(f'1 document that names "{asked}"')
    assert "rank for" in list_documents(snapshot, query="Lamps").text  # a topic


def test_a_name_that_is_an_everyday_word_is_not_counted_by_that_word(tmp_path: Path) -> None:
    texts = ("Mr Hope spoke. Hope said no.", "We hope for rain.", "Ida Hope paid, and Hope left.")
    snapshot = indexed(tmp_path, *(InlineText(text, f"n{n}") for n, text in enumerate(texts)))
    assert list_documents(snapshot, query="Ida Hope").text.startswith('At least 1 document that names "Ida Hope"')
    assert "We hope" not in list_documents(snapshot, query="Mr Hope").text


def test_a_short_name_does_not_count_the_documents_of_a_namesake(tmp_path: Path) -> None:
    texts = (
        "Mr Beat Zumstein mended lamps. Zumstein said he was glad.",
        "**Beat** **Zumstein** sang.",
        "Mrs Ursula Zumstein sells fish.",
    )
    snapshot = indexed(tmp_path, *(InlineText(text, f"n{n}") for n, text in enumerate(texts)))
    listed = list_documents(snapshot, query="Beat Zumstein").text
    assert "sells fish" not in listed and listed.startswith(("At least 1 document", "At least 2 documents", "2 documents"))
    assert list_documents(snapshot, query="Zumstein").text.startswith('3 documents that name "Zumstein"')
