"""A text that stands in several documents counts once: among candidates, in what names tie, and in results."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query import candidates
from graphrag_mcp.query.documents import list_documents
from graphrag_mcp.query.local import find, local_search
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.types import IndexRequest, InlineText
from tests.support.files import snapshot_of

LICENCE = "Permission is granted to use the harbour software free of charge, without any warranty for the lamp or the crane."
NOTES = tuple(
    f"The crane number {n} of the harbour lost its lamp in storm {n}, so that the quay was dark."
    for n in range(4)
)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    """More licences than full text proposes, and four notes. One licence has other blanks and capitals."""
    home = tmp_path_factory.mktemp("mixed")
    licences = [LICENCE] * (candidates.PROPOSED + 40) + [LICENCE.replace(" to use", "\nto Use")]
    texts = [InlineText(text, f"l{n}", f"Licence {n}") for n, text in enumerate(licences)]
    texts += [InlineText(text, f"n{n}", f"Note {n}") for n, text in enumerate(NOTES)]
    return snapshot_of(home / "c", texts)


def test_copies_take_one_place_and_leave_room_for_other_texts(mixed: Snapshot) -> None:
    found = find(mixed, "harbour software crane lamp warranty")
    assert len([one for one in found.passages if one.score > 0]) == 1 + len(NOTES)
    assert len([one for one in found.passages if one.score == 0]) > 50


def test_a_result_shows_a_text_once(mixed: Snapshot) -> None:
    text = local_search(mixed, "harbour software without warranty", max_tokens=2_000).text
    assert text.count("Permission is granted") == 1


def test_a_filter_finds_a_copy_by_its_document(mixed: Snapshot) -> None:
    found = local_search(mixed, "harbour software", filters=["uri=text:l7"])
    assert [one.uri for one in found.citations] == ["text:l7"]


def test_documents_with_a_copied_text_are_still_listed(mixed: Snapshot) -> None:
    assert list_documents(mixed, filters=["uri=text:l*"]).total == candidates.PROPOSED + 41


def test_a_licence_in_a_folder_is_found_but_is_no_topic_and_has_no_entities(tmp_path: Path) -> None:
    from identify.vendor.licenses import LICENSES

    texts = dict(LICENSES)
    for name in ("GPL-3.0", "Apache-2.0", "MPL-2.0"):
        (tmp_path / "docs" / name).mkdir(parents=True)
        (tmp_path / "docs" / name / "LICENSE").write_text(texts[name], "utf-8")
    (tmp_path / "docs" / "vote.md").write_text("Ida Holm asked Bram Olde for a vote on the bridge of Pellwick.", "utf-8")
    index_documents(tmp_path / "c", IndexRequest(paths=(str(tmp_path / "docs"),)), Settings(home=tmp_path))
    snapshot = open_snapshot(tmp_path / "c")
    assert snapshot.count("documents") == 4
    assert "Free Software Foundation" not in snapshot.column("entities", "title")
    assert "Ida Holm" in snapshot.column("entities", "title")
    reports = snapshot.rows("reports").to_pylist()
    assert reports and not any("licen" in f"{row['title']} {row['summary']}".lower() for row in reports)
    assert local_search(snapshot, "Free Software Foundation").citations[0].uri.endswith("LICENSE")
