"""The explorer page in a real browser, on real indexes, served by the real command. Skipped without Chromium."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from graphrag_mcp.app import App
from graphrag_mcp.explorer.data import load
from graphrag_mcp.explorer.topics import WHOLE, Circle, arranged
from graphrag_mcp.settings import Settings
from tests.explorer.conftest import SCRIPT, numbers
from tests.support.browser import Tab, browser_only, explored, tab_of
from tests.support.command import ROOT, SAMPLE, clean_environment, run_here
from tests.support.files import write

# ---- views ----------------------------------------------------------------------------------------


@browser_only
def test_the_first_view_says_what_the_corpus_is(tab: Tab) -> None:
    assert tab.heading == "sample"
    tab.shows("26 documents", "LARGEST TOPICS", "MOST CONNECTED ENTITIES")
    assert tab.page.locator("[role=treeitem]").count() >= 5
    tab.gives("graphragExplorer.map.drawn.length", lambda many: many >= 7)


@browser_only
def test_every_link_of_every_view_opens(tab: Tab) -> None:
    """Two steps from the first view and from a search: at most three links of each kind of each page."""
    seen: set[str] = set()
    todo = ["map", "search/Narrows", "timeline", "changes", "drift", "links"]
    while todo and len(seen) < 60:
        view = todo.pop(0)
        seen.add(view)
        tab.go(view)
        assert tab.heading != "This cannot be shown", view
        assert tab.text.strip().count("\n") > 0, view
        by_kind: dict[str, list[str]] = {}
        for link in tab.links():
            by_kind.setdefault(link.partition("/")[0], []).append(link)
        for links in by_kind.values():
            todo += [one for one in links[:3] if one not in seen and one not in todo]
    assert {one.partition("/")[0] for one in seen} >= {"map", "community", "entity", "passage", "document", "search", "drift"}


@browser_only
def test_a_statement_leads_to_its_sentence_in_the_source(tab: Tab, sample: Path) -> None:
    tab.go(f"entity/{numbers(sample)['entities']['T5']}")
    item = tab.page.locator("#side li", has_text="The Harbour Tide Authority confirms that model T5").first
    item.locator("a").first.click()
    expect(tab.page.locator("mark")).to_have_text("The Harbour Tide Authority confirms that model T5 has replaced T4.")
    expect(tab.page.locator("mark")).to_be_visible()


@browser_only
def test_the_sentences_of_a_report_are_marked_in_their_sources(tab: Tab, sample: Path) -> None:
    app = App(Settings(home=sample), "sample")
    reports = [load(app, "community", {"id": str(n)})["report"] for n in (1, 2, 3)]  # of prose; those of code are lists
    said = [one for report in reports for one in report["paragraphs"] if one["cites"]]
    said = [one for one in said if all(cite["end"] > cite["start"] for cite in one["cites"])]  # quotations, not counts
    assert len(said) >= 3
    for one in said[:3]:
        cite = one["cites"][0]
        tab.go(f"passage/{cite['id']}/{cite['start']}-{cite['end']}")
        expect(tab.page.locator("mark")).to_have_text(one["text"], use_inner_text=True)


@browser_only
def test_a_search_lights_the_topics_that_hold_its_hits(tab: Tab) -> None:
    tab.go(f"search/{quote('Ines Calloway eelgrass')}")
    lit = tab.gives("[...graphragExplorer.map.hits.keys()].filter(key => Number.isInteger(key))", bool)
    assert set(lit) <= set(tab.page.evaluate("[...graphragExplorer.map.nodes.keys()]"))
    expect(tab.page.locator("#side mark, #side li")).not_to_have_count(0)
    tab.go(f"search/{quote('zzyzx qwrtp')}").shows("Nothing on this was found in corpus sample")


@browser_only
def test_markdown_is_shown_whole_with_its_headings_set_off(tab: Tab, sample: Path) -> None:
    rows = App(Settings(home=sample), "sample").snapshot().rows("text_units", "", ["n", "text"]).to_pylist()
    n, text = next((row["n"], row["text"]) for row in rows if "## Terms" in row["text"] and "**Place.**" in row["text"])
    tab.go(f"passage/t{n}")
    assert tab.page.locator(".passage").evaluate("one => one.textContent") == text
    assert " Terms" in tab.page.locator(".passage .head:not(.sign)").all_inner_texts()
    assert tab.page.locator(".passage .strong").first.inner_text() == "Place."


@browser_only
def test_the_path_between_two_names_is_offered_and_shown(tab: Tab, sample: Path) -> None:
    known = numbers(sample)["entities"]
    tab.go(f"entity/{known['Tobias Fenn']}").go(f"entity/{known['Harbour Tide Authority']}")
    tab.page.locator("#side a", has_text="How is this connected with Tobias Fenn?").click()
    tab.shows("THE STRONGEST WAY").gives("graphragExplorer.graph.nodes.size", lambda size: size >= 3)


@browser_only
def test_links_between_documents_are_shown_with_their_lines(browser: Any, tmp_path: Path) -> None:
    pages = {"Ada.md": "Ada leads the [[Sill Survey]].\n[[<b>None</b>]] #harbour\n", "Sill Survey.md": "Led by [[Ada]].\n"}
    home = ("--home", tmp_path / "home", "--corpus", "sample")
    assert run_here("index", write(tmp_path / "docs", pages), *home).returncode == 0
    with explored(tmp_path / "home") as address, tab_of(browser, address) as tab:
        tab.go("links").shows("Links between documents", "1 document links to it", "<b>None</b> 1 link: ", "#harbour 1 document")
        tab.page.locator("#side a", has_text="Ada").first.click()
        tab.shows("LINKS TO IT", "Led by Ada.", "ITS LINKS", "Ada leads the Sill Survey.", "#harbour")
        assert tab.heading.startswith("Ada")


def rests(tab: Tab) -> None:
    """Waits until the graph stands still, all of it in the picture."""
    tab.gives("graphragExplorer.graph.heat", 0)
    tab.page.get_by_role("button", name="Fit", exact=True).click()
    tab.settled()


def click_on(tab: Tab, n: int, **options: Any) -> None:
    """Click the middle of a node of the graph."""
    rests(tab)
    at = tab.page.evaluate("n => { const { nodes, view } = graphragExplorer.graph, one = nodes.get(n); return { x: view.x + one.x * view.k, y: view.y + one.y * view.k }; }", n)
    tab.page.locator("#graph > canvas").click(position=at, **options)


@browser_only
def test_the_graph_can_be_worked_with(tab: Tab, sample: Path) -> None:
    known = numbers(sample)["entities"]
    fenn = known["Tobias Fenn"]
    tab.go(f"entity/{fenn}")
    size, shown, chosen = tab.gives("(({ graph }) => [graph.nodes.size, graph.visible().length, graph.chosen?.n])(graphragExplorer)", lambda state: state[2] == fenn)
    assert size == shown
    places = "[...graphragExplorer.graph.nodes.values()].map(one => [one.n, one.x, one.y])"
    again = tab.page.evaluate(places)
    tab.go("map").go(f"entity/{fenn}").gives(places, again)  # the layout is the same each time
    other, title = tab.page.evaluate("n => { const one = [...graphragExplorer.graph.nodes.values()].filter(one => one.n !== n).sort((a, b) => b.degree - a.degree)[0]; return [one.n, one.title]; }", fenn)
    click_on(tab, other)
    tab.is_headed(title)
    tab.gives("[graphragExplorer.graph.nodes.size, graphragExplorer.graph.chosen?.n]", [size, other])  # the graph stays

    def press(name: str) -> None:
        tab.page.get_by_role("button", name=name, exact=True).click()

    count = "graphragExplorer.graph.visible().length"
    press("Expand")
    grown = tab.gives(count, lambda many: many > size)
    press("Collapse")
    tab.gives(count, lambda many: many < grown)
    press("Undo")
    tab.gives(count, grown)
    press("Hide")
    tab.gives(count, grown - 1)
    press("Show all")
    tab.gives(count, grown)
    tab.page.locator("#graph .chip", has_text="person").click()
    tab.gives(count, lambda many: many < grown)
    expect(tab.page.locator("#graph .chip[aria-pressed=false]")).to_have_count(1)
    tab.page.locator("#graph .chip", has_text="person").click()
    tab.gives(count, grown)
    years = tab.page.get_by_label("From year").locator("option").all_inner_texts()
    tab.page.get_by_label("From year").select_option(years[-1])
    tab.gives(count, lambda many: many < grown)
    press("Show all")
    tab.gives(count, grown)
    # a line has its sentence, the list reaches every node, a dragged node stays where it was put
    tab.page.evaluate("() => { const { graph } = graphragExplorer; return graph.sentence([...graph.edges.values()].at(-1)); }")
    tab.page.wait_for_selector("#graph .told a[href^='#passage/']")
    tab.page.locator("#graph .told button").click()
    expect(tab.page.locator("#graph .told")).to_be_empty()
    tab.page.locator("#graph .nodes summary").click()
    expect(tab.page.locator("#graph .nodes li")).to_have_count(grown)
    tab.page.locator("#graph .nodes summary").click()
    expect(tab.page.locator("#graph .nodes li")).to_have_count(0)
    rests(tab)
    place = "n => { const { nodes, view } = graphragExplorer.graph, one = nodes.get(n), box = document.getElementById('picture').getBoundingClientRect(); return [box.x + view.x + one.x * view.k, box.y + view.y + one.y * view.k]; }"
    at = tab.page.evaluate(place, fenn)
    tab.page.mouse.move(*at)
    tab.page.mouse.down()
    tab.page.mouse.move(at[0] + 60, at[1] + 20, steps=4)
    tab.page.mouse.up()
    tab.gives(place, lambda moved: max(abs(moved[0] - at[0] - 60), abs(moved[1] - at[1] - 20)) < 3, fenn)


@browser_only
@pytest.mark.parametrize("width", [160, 390, 1280])
def test_every_width_shows_everything_without_scrolling_to_the_side(tab: Tab, sample: Path, width: int) -> None:
    known = numbers(sample)["entities"]
    tab.page.set_viewport_size({"width": width, "height": 700})
    over = """() => { const [a, b] = ['picture', 'side'].map(id => document.getElementById(id).getBoundingClientRect());
      return [document.documentElement.scrollWidth - innerWidth, a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1]; }"""
    for view in ("map", "community/5", f"entity/{known['Narrows']}", "passage/t1", f"path/{known['Narrows']}/{known['Tobias Fenn']}", "search/Narrows", "drift", "timeline"):
        tab.go(view).gives(over, [0, False])


@browser_only
def test_a_session_is_a_tree_of_questions_with_what_was_read(tab: Tab) -> None:
    tab.go("drift")
    tab.page.locator("#side li a").first.click()
    tab.page.wait_for_selector(".tree li li")
    tab.is_headed("Why was the array moved out of the Narrows?").shows("answered, score 80", "Who found the sill?")
    for status, name in (("pruned", "pruned"), ("frontier", "waiting"), ("open", "open")):
        assert all(f" {name}" in said for said in tab.page.locator(f".tree li.{status} > .type").all_inner_texts())
    expect(tab.page.locator(".tree li.pruned")).to_contain_text("Who signed the accord?")
    expect(tab.page.locator(".tree li.open, .tree li.frontier")).to_have_count(2)
    tab.page.locator("summary", has_text="what was read").first.click()
    tab.page.locator("#side details[open] a[href^='#passage/']").first.click()
    tab.page.wait_for_selector(".passage")


@browser_only
def test_the_timeline_has_a_row_a_year(tab: Tab) -> None:
    tab.go("timeline")
    tab.shows("1972", "2023", "13 documents without a date")
    left = {one[0]: one[1] for one in tab.page.eval_on_selector_all("#timeline a[href^='#timeline/']", "all => all.map(one => [one.getAttribute('href').slice(-4), Number(one.querySelector('.bar-of').getAttribute('x'))])")}
    assert (left["1996"] - left["1972"]) / (left["2023"] - left["1972"]) == pytest.approx(24 / 51, abs=0.01), "gaps are true to scale"
    expect(tab.page.locator("#timeline a[href^='#document/']")).to_have_count(13)  # there is room for their titles
    tab.page.locator("#timeline a[href='#timeline/1996']").click()
    expect(tab.page.locator("#side li strong").first).to_have_text("1996")
    # on a telephone there is no room for titles: the tallest bars have their counts before the others
    tab.page.set_viewport_size({"width": 390, "height": 844})
    expect(tab.page.locator("#timeline .count", has_text="2")).to_have_count(1)


@browser_only
def test_the_pictures_of_the_documentation(tmp_path: Path) -> None:
    """`python docs/screens.py` writes all twelve; here one, with a model."""
    command = [sys.executable, ROOT / "docs" / "screens.py", "answer", "--folder", tmp_path]
    # Not below `tmp_path`: the path of Chromium's socket may have 107 characters.
    with tempfile.TemporaryDirectory() as scratch:
        environment = clean_environment(TMPDIR=scratch)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "answer.webp").stat().st_size > 10_000
    listed = {path.stem for path in (ROOT / "docs" / "pictures").glob("*.webp")}
    pages = "".join(path.read_text("utf-8") for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
    assert len(listed) >= 12 and all(f"pictures/{name}.webp" in pages for name in listed)
    assert sum(path.stat().st_size for path in (ROOT / "docs" / "pictures").glob("*.webp")) < 1_500_000


# ---- keyboard and screen readers ------------------------------------------------------------------


@browser_only
def test_the_keyboard_reaches_everything(tab: Tab) -> None:
    focused = "() => document.activeElement.id || document.activeElement.getAttribute('role') || document.activeElement.tagName"
    order = []
    for _ in range(40):
        tab.page.keyboard.press("Tab")
        order.append(tab.page.evaluate(focused))
        if order[-1] == "treeitem":
            break
    assert order[0] == "query" and "SELECT" in order and order[-1] == "treeitem"
    topic = "document.activeElement.community?.n"
    first = tab.page.evaluate(topic)
    tab.page.keyboard.press("ArrowRight")
    tab.gives("document.activeElement.getAttribute('aria-expanded')", "true")
    tab.page.keyboard.press("ArrowRight")
    tab.gives("document.activeElement.getAttribute('aria-level')", "2")
    tab.page.keyboard.press("ArrowLeft")
    tab.gives(topic, first)
    tab.page.keyboard.press("End")
    tab.gives(topic, lambda last: last != first)
    tab.page.keyboard.press("Home")
    tab.gives(topic, first)
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_function("() => location.hash.startsWith('#community/')")


@browser_only
def test_everything_that_can_be_used_has_a_name(tab: Tab) -> None:
    unnamed = """() => [...document.querySelectorAll('a, button, input, select, [role=treeitem], section, aside, nav')].filter(one =>
      !(one.textContent.trim() || one.getAttribute('aria-label') || one.labels?.length)).map(one => one.outerHTML.slice(0, 80))"""
    for view in ("map", "entity/1", "search/Narrows"):
        tab.go(view).gives(unnamed, [])


# ---- hostile texts ----------------------------------------------------------------------------------


@browser_only
def test_hostile_names_titles_and_texts_are_shown_as_text(browser: Any, hostile: Path) -> None:
    with explored(hostile) as address, tab_of(browser, address) as tab:
        shown = ""
        views = ["map", f"search/{quote('Ada Lovelace')}", f"search/{quote(SCRIPT, safe='')}", "timeline", "changes", "drift"]
        app = App(Settings(home=hostile), "sample")
        for table, view in (("entities", "entity"), ("documents", "document"), ("text_units", "passage"), ("reports", "community")):
            rows = app.snapshot().rows(table, "", ["n"]).to_pylist()
            views += [f"{view}/{'t' if view == 'passage' else ''}{row['n']}" for row in rows]
        for view in views:
            tab.go(view)
            shown += tab.text
            assert tab.page.evaluate("document.querySelectorAll('#side script, #side img, #side iframe').length") == 0
            assert tab.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view
        assert "<script>" in shown and "\\u202e" in shown and "\u202e" not in shown
        assert "sk-proj-Zq83hfKd92Lw0xPvT4mN7bYc" not in shown


@browser_only
def test_marks_are_right_behind_an_emoji(browser: Any, hostile: Path) -> None:
    app = App(Settings(home=hostile), "sample")
    rows = app.snapshot().rows("text_units", "", ["n", "text"]).to_pylist()
    row = next(row for row in rows if "laughed" in row["text"])
    start = row["text"].index("Ada Lovelace laughed")
    assert "😀" in row["text"][:start]
    with explored(hostile) as address, tab_of(browser, address) as tab:
        tab.go(f"passage/t{row['n']}/{start}-{start + 20}")
        expect(tab.page.locator("mark")).to_have_text("Ada Lovelace laughed")


# ---- while it is open -------------------------------------------------------------------------------


# A message of the page goes away after a few seconds, and a slow test may look later.
TOLD = """() => { const status = document.getElementById('status'); window.told = [];
  new MutationObserver(() => window.told.push(status.textContent)).observe(status, { childList: true }); }"""


@browser_only
def test_an_edit_and_a_deletion_while_it_is_open(browser: Any, tmp_path: Path) -> None:
    folder, home = tmp_path / "docs", tmp_path / "home"
    shutil.copytree(SAMPLE, folder)
    assert run_here("index", folder, "--home", home, "--corpus", "sample").returncode == 0
    with explored(home) as address, tab_of(browser, address, refused="404") as tab:
        tab.go("changes").shows("first generation")
        (folder / "corrie-accord.md").write_text("# The Corrie Accord\n\nOlga Tamm signed the Corrie Accord in Tallinn.\n", "utf-8")
        (folder / "packet-2023-02-03.html").unlink()
        assert run_here("index", folder, "--home", home, "--corpus", "sample").returncode == 0
        tab.page.evaluate(TOLD)
        tab.go(f"search/{quote('Olga Tamm')}").shows("Tallinn")
        tab.gives("window.told.some(text => text.startsWith('The index has changed.'))", True)
        tab.go("changes").shows("CHANGED DOCUMENTS (1)", "DOCUMENTS GONE (1)")
        shutil.rmtree(home / "corpora" / "sample")
        tab.go("entity/3")
        assert tab.heading == "This cannot be shown"


def test_circles_lie_inside_each_other_and_side_by_side() -> None:
    children = {"": [f"a{i}" for i in range(40)], **{f"a{i}": [f"a{i}b{j}" for j in range(i % 9)] for i in range(40)}}
    found = arranged(children, lambda id: 1 + len(id) * 7 % 13)

    def gap(one: Circle, other: Circle) -> float:
        return ((one.x - other.x) ** 2 + (one.y - other.y) ** 2) ** 0.5 - one.r - other.r

    for parent, ids in children.items():
        outer = found.get(parent, WHOLE)
        for at, id in enumerate(ids):
            one = found[id]
            assert ((one.x - outer.x) ** 2 + (one.y - outer.y) ** 2) ** 0.5 + one.r <= outer.r + 1e-5
            assert all(gap(one, found[other]) >= -1e-5 for other in ids[:at])
    assert arranged(children, lambda id: 1 + len(id) * 7 % 13) == found
