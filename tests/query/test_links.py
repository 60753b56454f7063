"""Links between Markdown documents: exact, directed, with their lines, resolved as Obsidian does, right after any
history of edits."""

from __future__ import annotations

import errno
import json
import random
import re
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from graphrag_mcp.app import App
from graphrag_mcp.doctor.generations import digest
from graphrag_mcp.errors import BadInput
from graphrag_mcp.exchange.export import export
from graphrag_mcp.index import batches
from graphrag_mcp.index import documents as documents_stage
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query import documents
from graphrag_mcp.query.explore import explore_graph
from graphrag_mcp.query.links import Link, links
from graphrag_mcp.server import build_server
from graphrag_mcp.settings import Settings
from graphrag_mcp.sources.links import read_links
from graphrag_mcp.store.tables import Snapshot, open_snapshot, rows_of
from graphrag_mcp.types import IndexRequest, InlineText
from tests.support.client import connected
from tests.support.files import write
from tests.support.promises import doctor

# ---- reading ------------------------------------------------------------------------------------


def told(text: str) -> list[tuple[str, str, str, int]]:
    return [(one.kind, one.target, one.part, one.line) for one in read_links(text)]


@pytest.mark.parametrize(
    ("text", "link"),
    [
        ("[[Page]]", ("wikilink", "Page", "")),
        ("[[Page|other words]]", ("wikilink", "Page", "")),
        ("[[Folder/Page#Costs|x]]", ("wikilink", "Folder/Page", "Costs")),
        ("[[Page#^block]]", ("wikilink", "Page", "^block")),
        ("[[ Page ]]", ("wikilink", "Page", "")),
        ("> - **[[Page]]**, done", ("wikilink", "Page", "")),
        ("![[Page#Part]]", ("embed", "Page", "Part")),
        ("![[plan.png|300]]", ("embed", "plan.png", "")),
        ("[x](../a%20b.md#L12)", ("markdown", "../a b.md", "L12")),
        ("[x](<a b.md>)", ("markdown", "a b.md", "")),
        ('[x](a.md "cited 212")', ("markdown", "a.md", "")),
        ("[x](100%25%23.md)", ("markdown", "100%#.md", "")),
        ("[x][ref]\n\n[ref]: sub/a.md", ("markdown", "sub/a.md", "")),
        ("[ref]\n\n[Ref]: sub/a.md", ("markdown", "sub/a.md", "")),
        ("![plan](plan.svg)", ("image", "plan.svg", "")),
        ("[x](text:field-note)", ("markdown", "text:field-note", "")),
        ("#harbour", ("tag", "harbour", "")),
        ("- [ ] done #2024/q1, soon", ("tag", "2024/q1", "")),
        ("見よ #港湾/水門 。", ("tag", "港湾/水門", "")),
        ("| a |\n|---|\n| [[Page\\|alias]] |", ("wikilink", "Page", "")),
    ],
)
def test_a_link_is_read_in_each_of_its_forms(text: str, link: tuple[str, str, str]) -> None:
    (found,) = read_links(text)
    assert (found.kind, found.target, found.part) == link


@pytest.mark.parametrize(
    "text",
    [
        "`[[Page]]` and ``[[Page]] #tag``",
        "```\n[[Page]] #tag\n```",
        "~~~md\n[[Page]]",
        "    [[Page]]",
        "<!-- [[Page]] -->",
        "<div>\n[[Page]] #tag\n</div>",
        "$[[1, 2], [3, 4]]$",
        "\\[[Page]]",
        "[[Page",
        "![[a [[b\nc]] d]]",
        "[[]] [[ ]]",
        "[[#Part of this page]] [x](#part)",
        "[x](https://example.org/a.md) <https://example.org> [x](mailto:a@example.org) [x](//example.org/a.md)",
        "[x](C:\\vault\\a.md)",
        "#1 #2024 issue#tag a#b (#tag) ## #",
    ],
)
def test_code_comments_web_addresses_and_parts_of_the_same_page_are_no_links(text: str) -> None:
    assert read_links(text) == []


def test_front_matter_holds_links_and_tags_with_their_lines() -> None:
    text = '---\nup: "[[Home|h]]"\ntags:\n  - harbour\n  - "two words"\nrelated:\n    - "[[Ä/B]]"\n---\n#open\n'
    assert told(text) == [
        ("wikilink", "Home", "", 2),
        ("tag", "harbour", "", 4),
        ("tag", "two words", "", 5),
        ("wikilink", "Ä/B", "", 7),
        ("tag", "open", "", 9),
    ]
    assert told("---\ntags: #a, b c\n---\n") == [("tag", name, "", 2) for name in ("a", "b", "c")]


def test_places_are_characters_whatever_the_script() -> None:
    text = "Ünïcödé 🌊 [[Seite]] 見 #港 [x](ä.md)\n\n🌊🌊 [[Zwei]]"
    found = read_links(text)
    assert [text[one.start : one.end] for one in found] == ["[[Seite]]", "#港", "[x](ä.md)", "[[Zwei]]"]


def test_long_and_hostile_texts_take_no_longer_than_their_length() -> None:
    for text in (
        "[[" * 12_500,
        "[a](b " * 12_500,
        "![[a|" * 12_500,
        "#" * 25_000,
        "> " * 5_000 + "[[x]]",
        "#a/" * 12_500,
        "é" + "[![a](b.png)](c.md) " * 10_000,
    ):
        assert len(read_links(text)) < 100_000


# ---- resolution ---------------------------------------------------------------------------------


def indexed(tmp_path: Path, files: dict[str, str | bytes], name: str = "c") -> Snapshot:
    folder = write(tmp_path / "vault", files)
    corpus = tmp_path / name
    index_documents(corpus, IndexRequest(paths=(str(folder),)), Settings(home=tmp_path))
    return open_snapshot(corpus)


def ends(snapshot: Snapshot) -> list[tuple[str, int, str, str]]:
    """(path of the document, line, what is written, path of the document that it leads to) of every link."""
    found = links(snapshot)
    paths = [path.partition("/")[2] for path in found.pages.paths]

    def told(one: Link) -> tuple[str, int, str, str]:
        return paths[one.source], one.line, one.written, paths[one.target] if one.target >= 0 else ""

    return [told(one) for number in range(len(paths)) for one in found.out(number)]


def leads(snapshot: Snapshot, source: str) -> list[str]:
    return [target for path, _, _, target in ends(snapshot) if path == source]


def test_links_are_resolved_by_path_name_alias_and_case(tmp_path: Path) -> None:
    snapshot = indexed(
        tmp_path,
        {
            "start.md": "[[Sill Survey]] [[sill survey.MD]] [[Work/Plan]] [[plan]] [[The Harbour Master]]\n"
            "[[People/Ada Brandt|Ada]] [[/Work/Plan]] [[./Plan]] [[None]] [x](Work/Plan.md) [x](plan)",
            "Sill Survey.md": "[[start]]",
            "Work/Plan.md": "[x](../Sill%20Survey.md#L1) [[../start]] [[Deep Plan]] [x](deep/Deep%20Plan.md) [[x/y]]",
            "Work/deep/Deep Plan.md": "[[plan]] [x](Plan.md) [[../../start]] [x](../../../start.md)",
            "People/Ada Brandt.md": "---\naliases: [A. Brandt, the harbour master]\n---\nAda",
            "People/Ships.md": "---\naliases: Vessels, Boats\n---\n[[vessels]] [[BOATS]] [[ships]]",
            "reports/plan.pdf.md": "[[plan.pdf]]",
        },
    )
    plan, ada = "Work/Plan.md", "People/Ada Brandt.md"
    assert leads(snapshot, "start.md") == [
        "Sill Survey.md", "Sill Survey.md", plan, plan, ada, ada, plan, "", "", plan, plan,
    ]  # fmt: skip
    assert leads(snapshot, plan) == ["Sill Survey.md", "start.md", *["Work/deep/Deep Plan.md"] * 2, ""]
    assert leads(snapshot, "Work/deep/Deep Plan.md") == [plan, plan, "start.md", ""]
    assert leads(snapshot, "People/Ships.md") == ["People/Ships.md"] * 3
    assert leads(snapshot, "reports/plan.pdf.md") == ["reports/plan.pdf.md"]


def test_of_several_pages_of_one_name_the_nearest_and_then_the_shortest_path_is_meant(tmp_path: Path) -> None:
    snapshot = indexed(
        tmp_path,
        {
            "a/Log.md": "[[Index]] [[Log]]",
            "a/Index.md": "a",
            "b/Index.md": "b",
            "b/c/d/Index.md": "bcd",
            "b/Start.md": "[[Index]] [[c/d/Index]] [[d/index]]",
            "z/Start.md": "[[Index]]",
            "Top.md": "root",
            "b/Top.md": "[[Top]] [x](Top.md)",
        },
    )
    assert leads(snapshot, "a/Log.md") == ["a/Index.md", "a/Log.md"]
    assert leads(snapshot, "b/Start.md") == ["b/Index.md", "b/c/d/Index.md", "b/c/d/Index.md"]
    assert leads(snapshot, "z/Start.md") == ["a/Index.md"]
    assert leads(snapshot, "b/Top.md") == ["Top.md", "b/Top.md"], ("a wikilink that is a whole path means that")
    (others,) = re.findall("\nAlso named so: (.*)", explore_graph(snapshot, "Index", kinds=["links"]).text)
    assert others.count("[d") == 2 and "b/c/d/Index.md" in others, others
    for wrong in ({"kinds": ["foo"]}, {"kinds": ["links", "calls"]}, {"kinds": ["links"], "direction": "up"}):
        with pytest.raises(BadInput, match="there is no (kind|direction)"):
            explore_graph(snapshot, **wrong)  # type: ignore[arg-type]


def test_accents_that_are_composed_otherwise_are_the_same_name(tmp_path: Path) -> None:
    snapshot = indexed(tmp_path, {"Küste.md": "x", "a.md": "[[Ku\u0308ste]] [x](ku%CC%88ste.md)"})
    assert leads(snapshot, "a.md") == ["Küste.md"] * 2


def test_links_lead_to_texts_rows_and_other_folders(tmp_path: Path) -> None:
    vault = write(
        tmp_path / "vault",
        {"a.md": "[x](../tables/costs.csv#2) [[costs.csv]] [[b]] [x](../tables/b.md) [[note-1]]", "x/log.md": "The log."},
    )
    tables = write(
        tmp_path / "tables",
        {"costs.csv": "id,item\n1,rope\n2,tar\n", "b.md": "[[a]] [x](text:note-1)", "q/c.md": "[[log]]", "y/z/log.md": "The log."},
    )
    inline = InlineText("See [[a]] and [[note-2]].", id="note-1"), InlineText("[x](text:note-1)", id="note-2")
    request = IndexRequest(paths=(str(vault), str(tables)), texts=inline)
    index_documents(tmp_path / "c", request, Settings(home=tmp_path))
    snapshot = open_snapshot(tmp_path / "c")
    assert leads(snapshot, "a.md") == ["costs.csv#2", "costs.csv#1", "b.md", "b.md", "note-1"]
    assert leads(snapshot, "b.md") == ["a.md", "note-1"]
    assert leads(snapshot, "q/c.md") == ["y/z/log.md"], "of the folder of the link, though the other path is shorter"
    assert leads(snapshot, "note-1") == ["a.md", "note-2"]
    assert leads(snapshot, "note-2") == ["note-1"]


# ---- edits --------------------------------------------------------------------------------------


def test_links_of_html_lead_to_files_of_the_folder_and_to_nothing_else(tmp_path: Path) -> None:
    site, settings = tmp_path / "site", Settings(home=tmp_path / "home")
    pages: dict[str, str | bytes] = {
        "start.html": '<p>Tobias Fenn keeps <a href="guide/lamp%20room.html?v=2#oil">the <b>lamp</b>\nroom</a>.</p>'
        '<p>See <a href="guide/">the guide</a>, <a href="/notes.md">notes</a>, <a href="room.html">a room</a>, '
        '<a href="https://example.org/start.html">the web</a>, <a href="#end">the end</a>.</p>'
        '<table><tr><th>Who<th>What<tr><td>Ada<td><a href="guide/lamp room.html">Lamps</a></table>',
        "guide/lamp room.html": '<h1>Lamp room</h1><p>Back to <a href="../start.html">Start</a> [[start]] #oil.</p>',
        "guide/index.html": '<nav><a href="../start.html"><i></i></a></nav><h1>Guide</h1><p>It is short.</p>',
        "other/room.html": "<h1>A room</h1><p>No page names its folder.</p>",
        "notes.md": "# Notes\n\nOf [the start](start.html).\n",
    }
    write(site, pages)

    def told(folder: Path) -> list[tuple[str, str, int, str]]:
        snapshot = open_snapshot(folder)
        found = links(snapshot)
        uris, every = [path[5:] for path in found.pages.paths], found.all
        texts = dict(rows_of(snapshot.rows("documents", columns=["id", "text"])))
        words = [texts[found.pages.ids[link.source]][link.start : link.end] for link in every]
        return [
            (uris[link.source], uris[link.target], link.line, word)
            for link, word in zip(every, words, strict=True)
        ]

    index_documents(tmp_path / "c", IndexRequest(paths=(str(site),)), settings)
    assert told(tmp_path / "c") == [
        ("guide/lamp room.html", "start.html", 3, "Start"),
        ("notes.md", "start.html", 3, "[the start](start.html)"),
        ("start.html", "guide/lamp room.html", 1, "the lamp room"),
        ("start.html", "guide/index.html", 3, "the guide"),
        ("start.html", "notes.md", 3, "notes"),
        ("start.html", "guide/lamp room.html", 6, "Lamps"),
    ]
    assert links(open_snapshot(tmp_path / "c")).missing_pages() == []
    shown = explore_graph(open_snapshot(tmp_path / "c"), "start.html", kinds=["links"]).text
    assert "keeps the lamp room" in shown and "4 links out, 2 in" in shown
    # The text of the page is as it was; the link leads elsewhere.
    lamp = str(pages["guide/lamp room.html"]).replace("../start", "index")
    write(site, {"guide/lamp room.html": lamp})
    index_documents(tmp_path / "c", IndexRequest(paths=(str(site),)), settings)
    assert ("guide/lamp room.html", "guide/index.html", 3, "Start") in told(tmp_path / "c")
    derived = replace(settings, chunk_size=600)
    index_documents(tmp_path / "c", IndexRequest(paths=(str(site),)), derived)
    index_documents(tmp_path / "fresh", IndexRequest(paths=(str(site),)), derived)
    assert digest(open_snapshot(tmp_path / "c")) == digest(open_snapshot(tmp_path / "fresh"))
    assert told(tmp_path / "c") == told(tmp_path / "fresh")


def test_a_page_that_appears_goes_or_is_renamed_changes_links_of_files_that_did_not(tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    snapshot = indexed(tmp_path, {"a.md": "[[Plan]] and [[Map]]", "Plan.md": "plan " * 20, "other.md": "else"})
    assert leads(snapshot, "a.md") == ["Plan.md", ""]

    def again() -> Snapshot:
        request = IndexRequest(paths=(str(vault),), remove_missing=True)
        index_documents(tmp_path / "c", request, Settings(home=tmp_path))
        return open_snapshot(tmp_path / "c")

    (vault / "Map.md").write_text("map", "utf-8")
    assert leads(again(), "a.md") == ["Plan.md", "Map.md"]
    (vault / "Plan.md").rename(vault / "Scheme.md")
    snapshot = again()
    assert leads(snapshot, "a.md") == ["Scheme.md", "Map.md"]
    (vault / "a.md").write_text("[[Scheme]] and [[Map]]", "utf-8")
    assert leads(again(), "a.md") == ["Scheme.md", "Map.md"]
    (vault / "Map.md").unlink()
    (vault / "Scheme.md").write_text("---\naliases: [Map]\n---\nplan", "utf-8")
    assert leads(again(), "a.md") == ["Scheme.md", "Scheme.md"]
    assert doctor(tmp_path / "c") == []


def test_a_renamed_page_keeps_the_links_to_its_old_name_until_there_is_a_page_of_that_name(tmp_path: Path) -> None:
    vault, lines = tmp_path / "vault", "".join(f"Line {n} of the plan.\n" for n in range(6))
    page = {"a.md": "[[Plan]], [x](f/Plan.md#L2), ![[plan]] and [[Gone]]", "f/Plan.md": lines, "Gone.md": "Quite short.\n"}
    indexed(tmp_path, page)

    def again() -> Snapshot:
        request = IndexRequest(paths=(str(vault),), remove_missing=True)
        index_documents(tmp_path / "c", request, Settings(home=tmp_path))
        return open_snapshot(tmp_path / "c")

    (vault / "Gone.md").unlink()
    (vault / "f" / "Plan.md").rename(vault / "Scheme.md")
    (vault / "Scheme.md").write_text(f"# Preface\n\n{lines}", "utf-8")
    snapshot = again()
    assert leads(snapshot, "a.md") == ["Scheme.md"] * 3 + [""]
    for start in ("Scheme", "Plan", "f/Plan.md"):
        shown = explore_graph(snapshot, start=start, kinds=["links"]).text
        assert "0 links out, 3 in" in shown, shown
    (vault / "Scheme.md").rename(vault / "Last.md")
    assert leads(again(), "a.md") == ["Last.md"] * 3 + [""], "a second name"
    write(vault, {"f/Plan.md": "Another plan.\n"})
    snapshot = again()
    assert leads(snapshot, "a.md") == ["f/Plan.md"] * 3 + [""]
    (vault / "f" / "Plan.md").unlink()
    assert leads(again(), "a.md") == [""] * 4, "what came under the name was deleted"
    assert doctor(tmp_path / "c") == []


def body(name: str) -> str:
    return "".join(f"Line {n} of {name}.\n" for n in range(6))


def after(tmp_path: Path, *folders: Path) -> Snapshot:
    paths = tuple(map(str, folders or (tmp_path / "vault",)))
    index_documents(tmp_path / "c", IndexRequest(paths=paths, remove_missing=True), Settings(home=tmp_path))
    return open_snapshot(tmp_path / "c")


def test_a_run_that_ends_after_its_first_batch_forgets_no_renames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault, numbers = tmp_path / "vault", range(8)
    indexed(tmp_path, {"start.md": " ".join(f"[[p{n}]]" for n in numbers)} | {f"p{n}.md": body(f"P{n}") for n in numbers})
    for n in numbers:
        (vault / f"p{n}.md").rename(vault / f"q{n}.md")

    def full(*given: object) -> None:
        if open_snapshot(tmp_path / "c").manifest.generation > before:
            raise OSError(errno.ENOSPC, "no space")
        commit(*given)

    before, commit = open_snapshot(tmp_path / "c").manifest.generation, documents_stage.commit_batch
    with monkeypatch.context() as small:
        small.setattr(batches, "BATCH_PASSAGES", 2)
        small.setattr(documents_stage, "commit_batch", full)
        with pytest.raises(OSError, match="no space"):
            after(tmp_path)
    found = leads(open_snapshot(tmp_path / "c"), "start.md")
    assert "q0.md" in found and "" in found, "some batches were committed"
    snapshot = after(tmp_path)
    assert leads(snapshot, "start.md") == [f"q{n}.md" for n in numbers]
    assert digest(snapshot) == digest(indexed(tmp_path, {}, "fresh")), "edits equal a fresh index"


@pytest.mark.parametrize("new", ["other", "inside/vault"])
def test_a_folder_that_moved_keeps_the_old_names_of_its_pages(tmp_path: Path, new: str) -> None:
    vault = tmp_path / "vault"
    indexed(tmp_path, {"start.md": "[[A]] [x](A.md)", "A.md": body("A"), "keep.md": body("keep")})
    (vault / "A.md").rename(vault / "B.md")
    assert leads(after(tmp_path), "start.md") == ["B.md", "B.md"]
    (tmp_path / new).parent.mkdir(exist_ok=True)
    vault.rename(tmp_path / new)
    assert leads(after(tmp_path, tmp_path / new), "start.md") == ["B.md", "B.md"]


@pytest.mark.slow
def test_links_after_any_history_of_edits_are_those_of_a_fresh_index(tmp_path: Path) -> None:
    vault, dice = write(tmp_path / "vault", {"keep.md": "[[n1]] [[n2]] #keep"}), random.Random(7)
    settings = Settings(home=tmp_path)
    names = [f"{folder}n{number}" for folder in ("", "f/", "f/g/") for number in range(4)]
    for turn in range(6):
        for name in dice.sample(names, 5):
            path = vault / f"{name}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists() and dice.random() < 0.4:
                path.unlink()
                continue
            words = [f"[[{dice.choice(names)}]]", f"[x](../n{dice.randrange(4)}.md)", f"#t{dice.randrange(3)}"]
            matter = f"---\naliases: [n{dice.randrange(9)}]\n---\n" if dice.random() < 0.4 else ""
            path.write_text(f"{matter}Turn {turn}. {' '.join(dice.sample(words, 2))}\n", "utf-8")
        index_documents(tmp_path / "c", IndexRequest(paths=(str(vault),), remove_missing=True), settings)
    index_documents(tmp_path / "fresh", IndexRequest(paths=(str(vault),)), settings)
    edited, fresh = open_snapshot(tmp_path / "c"), open_snapshot(tmp_path / "fresh")
    assert digest(edited) == digest(fresh)
    assert sorted(ends(edited)) == sorted(ends(fresh)) != []
    assert doctor(tmp_path / "c") == []


# ---- views --------------------------------------------------------------------------------------

VAULT: dict[str, str | bytes] = {
    "People/Ada Brandt.md": "---\ntags: [person, harbour/master]\naliases: [Harbour Master]\n---\nAda Brandt is harbour "
    "master.\nShe works with [[Jonas Petrie|Jonas]] on the [[Sill Survey#Costs]].\n![[map.png]]\n",
    "daily/2024-05-03.md": "Met [[ada brandt]] about the [survey](../Sill%20Survey.md#L1). #Meeting\n\nSee [[Jonas Petrie]].\n",
    "Sill Survey.md": "The survey of the sill is led by [[Ada Brandt]]. Next: [[Tide Tables]].\n",
    "Tide Tables.md": "High water at noon.\n",
    "alone.md": "Nothing leads here.\n",
}


@pytest.fixture(scope="module")
def vault(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return indexed(tmp_path_factory.mktemp("vault"), VAULT)


def alias(snapshot: Snapshot, name: str) -> str:
    (row,) = snapshot.rows("documents", f"uri LIKE '%{name}.md'", ["n"]).to_pylist()
    return f"d{row['n']}"


def test_a_document_shows_what_it_links_to_and_what_links_to_it_with_lines(vault: Snapshot) -> None:
    ada, survey, daily = (alias(vault, name) for name in ("Brandt", "Survey", "03"))
    found = explore_graph(vault, ada, kinds=["links"])
    assert f"# Ada Brandt ({ada}, vault/People/Ada Brandt.md)" in found.text
    assert "3 links out (1 of them to no page of the index), 2 in; tags #person, #harbour/master." in found.text
    assert f"[{survey}] Sill Survey, line 1: The survey of the sill is led by [[Ada Brandt]]." in found.text
    assert f"[{daily}] 2024-05-03, line 1: Met [[ada brandt]]" in found.text
    assert f"[{survey}] Sill Survey > Costs, line 6: She works with" in found.text
    assert "- Jonas Petrie, line 6" in found.text and "- map.png, line 7" in found.text
    edges = {(one["source"], one["target"], one["kind"], one["line"]) for one in found.edges}
    assert edges == {
        (ada, survey, "wikilink", 6),
        (ada, "Jonas Petrie", "wikilink", 6),
        (ada, "map.png", "embed", 7),
        (survey, ada, "wikilink", 1),
        (daily, ada, "wikilink", 1),
    }
    assert {one["id"] for one in found.nodes} == {ada, survey, daily}
    documents_of = {one.document_id for one in found.citations}
    assert documents_of == {ada, survey, daily}
    for one in found.citations:
        (row,) = vault.rows("documents", f"n = {one.document_id[1:]}", ["text"]).to_pylist()
        assert row["text"][one.char_start : one.char_end].startswith(("[", "![")), ("the place is that of the link")


@pytest.mark.parametrize(
    "start",
    [
        "vault/People/Ada Brandt.md",
        "People/Ada Brandt",
        "ada brandt",
        "Harbour Master",
        "[[Ada Brandt]]",
    ],
)
def test_a_document_is_meant_by_its_path_name_or_alias(vault: Snapshot, start: str) -> None:
    assert explore_graph(vault, start, kinds=["links"]).start == alias(vault, "Brandt")


def test_the_overview_counts_links_and_lists_pages_that_are_missing(vault: Snapshot) -> None:
    found = explore_graph(vault, kinds=["links"])
    assert "8 links in 3 documents, 2 of them to pages that are not in the index, 4 tags" in found.text
    ada, daily = alias(vault, "Brandt"), alias(vault, "03")
    assert f"- Jonas Petrie: {ada} line 6, {daily} line 3" in found.text
    assert "map.png" not in found.text
    assert f"## Without links\n- [{alias(vault, 'alone')}] alone" in found.text
    assert f"[{ada}] Ada Brandt: 2 documents link to it" in found.text
    assert "#meeting: 1 document" in found.text


def test_a_tag_lists_its_documents_with_the_lines_that_hold_it(vault: Snapshot) -> None:
    found = explore_graph(vault, "#meeting", kinds=["links"])
    assert "1 document with this tag" in found.text and "line 1: Met [[ada brandt]]" in found.text
    assert "line 2: tags: [person, harbour/master]" in explore_graph(vault, "#harbour", kinds=["links"]).text
    assert "Tags: " in explore_graph(vault, "#nothing", kinds=["links"]).text


@pytest.mark.parametrize(
    ("written", "names"),
    [
        (["tag=person"], ["Ada"]),
        (["tag=#Person"], ["Ada"]),
        (["tag=harbour"], ["Ada"]),
        (["tag=harbour/master"], ["Ada"]),
        (["tag=master"], []),
        (["tag=meeting", "tag=person"], ["2024-05-03", "Ada"]),
        (["tag!=meeting", "tag!=person"], ["Sill", "Tide", "alone"]),
        (["tag=person", "uri=*/daily/*"], []),
    ],
)
def test_documents_are_listed_by_their_tags(vault: Snapshot, written: list[str], names: list[str]) -> None:
    text = documents.list_documents(vault, filters=written, sort="title").text
    lines = [line for line in text.splitlines() if line.startswith("- ")]
    assert len(lines) == len(names) and all(any(name in line for line in lines) for name in names)


def test_an_export_has_every_link_with_what_it_leads_to(vault: Snapshot, tmp_path: Path) -> None:
    counts = export(vault, tmp_path / "out")
    rows = pq.read_table(tmp_path / "out" / "links.parquet").to_pylist()
    uri = {row["id"]: row["uri"] for row in vault.rows("documents", "", ["id", "uri"]).to_pylist()} | {"": ""}
    assert counts["links"] == len(rows) == vault.count("links")
    found = {(uri[row["document_id"]], row["line"], row["kind"], row["target"], uri[row["target_id"]]) for row in rows}
    assert ("vault/Sill Survey.md", 1, "wikilink", "Ada Brandt", "vault/People/Ada Brandt.md") in found
    assert ("vault/Sill Survey.md", 1, "wikilink", "Tide Tables", "vault/Tide Tables.md") in found
    assert ("vault/People/Ada Brandt.md", 6, "wikilink", "Jonas Petrie", "") in found
    assert ("vault/daily/2024-05-03.md", 1, "tag", "Meeting", "") in found


# ---- with a client ------------------------------------------------------------------------------


def test_the_citations_of_a_note_are_links_to_its_sources_and_the_status_counts_links(tmp_path: Path) -> None:
    docs = write(
        tmp_path / "docs",
        {"radar station.md": "Ines Calloway opened the radar station in 1962. See [[Ledger]].\n"},
    )
    app = App(Settings(home=tmp_path / "home", roots=(docs,), notes=str(docs / "notes")))
    with connected(build_server(app)) as call:
        call.good("index_documents", paths=["."], wait_seconds=50)
        call.good("write_note", title="Mast", text="Opened in 1962 [d1], by Calloway [t1]. Unlike [[ledger]]. #open\n")
        into = call.good("explore_graph", start="d1", kinds=["links"])["text"]
        assert "1 link out (1 of them to no page of the index), 2 in" in into and "] Mast, line " in into
        note = call.good("explore_graph", start="Mast", kinds=["links"])["text"]
        assert "] radar station, line " in note and "] radar station > L1, line " in note and "ledger, line " in note
        assert "Mast" in call.good("list_documents", filters=["tag=open"])["text"]
        status = call.good("graph_status")
        assert (status["counts"]["links"], status["counts"]["unresolved_links"]) == (4, 2)
        assert "Pages that links miss: ledger." in status["text"] and "Flagged" not in status["text"]
        assert 'explore_graph(kinds=["links"])' in status["hint"]
        for shown in (into, note, call.good("list_documents", document="d1")["text"]):
            assert "Flagged" not in shown
        write(docs, {"Ledger.md": "Paid.\n"})
        call.good("index_documents", paths=["."], wait_seconds=50)
        assert call.good("graph_status")["counts"]["unresolved_links"] == 0


def test_comments_of_obsidian_hold_no_links_and_code_holds_no_comments() -> None:
    text = (
        "See [[One]].\n%% not [[Two]] #two %%\n\n%%\nnor [[Three]]\n\n#three\n%%\n\n"
        "```matlab\n%% cell\n```\n[[Four]] `%%` [[Five]] `%%`\n\nÄ %%ä%% [[Six]] %% open [[Seven]]\n"
    )
    found = read_links(text)
    assert [link.target for link in found] == ["One", "Four", "Five", "Six", "Seven"]
    for link in found:
        assert text[link.start : link.end] == f"[[{link.target}]]"


# ---- comments, boards, and what stands behind # --------------------------------------------------------


def test_a_board_is_read_as_its_cards_pages_and_arrows(tmp_path: Path) -> None:
    board = {
        "nodes": [
            {"id": "a", "type": "text", "text": "# Plan\n\nAs in [[Log]] #plan"},
            {"id": "b", "type": "file", "file": "logs/Mast.md", "subpath": "#Height"},
            {"id": "c", "type": "group", "label": "Harbour"},
            {"id": "d", "type": "link", "url": "https://example.org/"},
            {"id": "e", "type": "text", "text": "```python\nraise_mast()"},
            {"id": "f", "type": "text", "text": "~~~\n````\n~~~\nBehind [[Log]]"},
            "broken",
        ],
        "edges": [
            {"fromNode": "a", "toNode": "b", "label": "needs"},
            {"fromNode": "a", "toNode": "z"},
            {"fromNode": "e", "toNode": "b"},
        ],
    }
    files = {
        "board.canvas": json.dumps(board),
        "broken.canvas": "{not json",
        "logs/Mast.md": "# Mast\n\n## Height\n\n40 metres.\n",
        "Log.md": "Quiet.\n",
    }
    snapshot = indexed(tmp_path, files)
    assert leads(snapshot, "board.canvas") == ["Log.md", "logs/Mast.md", "Log.md", "logs/Mast.md", "logs/Mast.md"]
    (text,) = (
        row["text"]
        for row in snapshot.rows("documents", columns=["uri", "text"]).to_pylist()
        if row["uri"].endswith("board.canvas") and "broken" not in row["uri"]
    )
    assert "## Harbour" in text and "Plan -> [[logs/Mast.md]]: needs" in text
    assert "raise_mast()\n```\n" in text and "raise_mast() -> [[logs/Mast.md]]" in text
