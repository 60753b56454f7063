"""The explorer page in a real browser, on real indexes, served by the real command. Skipped without Chromium."""

from __future__ import annotations

import ast
import http.client
import http.server
import json
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.extension import advertise
from mcp.client.streamable_http import streamable_http_client
from mcp.server.apps import APP_MIME_TYPE, EXTENSION_ID
from playwright.sync_api import expect, sync_playwright

from graphrag_mcp.app import App
from graphrag_mcp.explorer import page as pages
from graphrag_mcp.explorer.data import load
from graphrag_mcp.explorer.topics import WHOLE, Circle, arranged
from graphrag_mcp.query.drift import Drift
from graphrag_mcp.server import build_server
from graphrag_mcp.settings import Settings
from graphrag_mcp.text.tokens import count_tokens
from tests.support.client import Caller, connected
from tests.support.command import ROOT, SAMPLE, clean_environment, run_cli
from tests.support.files import write
from tests.support.workload import until

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SECONDS = 120_000  # milliseconds that a view may take before a test fails: the machine may be busy
TEMPLATE = 200_000  # bytes, a fifth of what the strictest host of MCP Apps takes (1 MiB)

expect.set_options(timeout=SECONDS)
browser_only = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


@contextmanager
def explored(home: Path, corpus: str = "sample") -> Iterator[str]:
    """The address that `graphrag-mcp explore` prints."""
    command = [sys.executable, "-m", "graphrag_mcp", "explore", "--no-browser", "--home", str(home), "--corpus", corpus]
    server = subprocess.Popen(command, cwd=ROOT, env=clean_environment(), stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
    finally:
        server.terminate()
        server.wait(60)


@contextmanager
def serving(home: Path, *options: str, **environment: str) -> Iterator[str]:
    """Where `graphrag-mcp serve --http` listens."""
    command = [sys.executable, "-m", "graphrag_mcp", "serve", "--http", "--port", "0", "--home", str(home), *options]
    server = subprocess.Popen(command, cwd=ROOT, env=clean_environment(**environment), stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        line = next(line for line in server.stderr if "listening on" in line)
        yield re.search(r"http://[\w.:]+\d", line)[0]
    finally:
        server.kill()
        server.wait(60)


LOADED = "() => !document.getElementById('status').textContent.startsWith('Loading')"
GO = """view => new Promise(done => {
  const before = location.href;
  document.getElementById('side').replaceChildren();
  addEventListener('hashchange', () => done(), { once: true });
  location.hash = '#' + view;
  if (location.href === before) throw new Error('This view is open: ' + view);
})"""


class Tab:
    """One tab of a browser; `wrong` collects console errors, exceptions and violations of the policy.

    What an action leads to may come later than the action: `shows`, `gives` and `expect` wait for it.
    """

    def __init__(self, context: Any) -> None:
        self.page = context.new_page()
        context.set_default_timeout(SECONDS)
        self.wrong: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda one: self.wrong.append(one.text) if one.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.wrong.append("dialog: " + dialog.message), dialog.dismiss()))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def open(self, address: str) -> Tab:
        self.page.goto(address)
        return self.settled()

    def go(self, view: str) -> Tab:
        self.page.wait_for_function(LOADED)  # a view that is still loading would be taken for the next one
        self.page.evaluate(GO, view)
        return self.settled()

    def settled(self) -> Tab:
        self.page.wait_for_selector("#side h1", state="attached")
        self.page.wait_for_function(LOADED)
        self.page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return self

    def shows(self, *texts: str) -> Tab:
        """Waits until the text of the view holds these, as it is written on the screen."""
        for text in texts:
            expect(self.page.locator("#side"), str(self.wrong)).to_contain_text(text, use_inner_text=True)
        return self

    def is_headed(self, heading: str) -> Tab:
        """Waits until this is the heading of the view."""
        expect(self.page.locator("#side h1").first, str(self.wrong)).to_have_text(heading, use_inner_text=True)
        return self.settled()

    def gives(self, expression: str, wanted: Any, argument: Any = None) -> Any:
        """Waits until an expression of the page has a value, or one that a function accepts; that value."""
        value = None

        def held() -> bool:
            nonlocal value
            value = self.page.evaluate(expression, argument)
            return bool(wanted(value) if callable(wanted) else value == wanted)

        try:
            until(held)
        except AssertionError as error:
            raise AssertionError(f"{expression} gives {value!r}, not {wanted!r}; {self.wrong}") from error
        return value

    @property
    def heading(self) -> str:
        return str(self.page.locator("#side h1").first.inner_text())

    @property
    def text(self) -> str:
        return str(self.page.locator("#side").inner_text())

    def links(self) -> list[str]:
        found = self.page.eval_on_selector_all("#side a[href^='#']", "all => all.map(one => one.getAttribute('href').slice(1))")
        return list(dict.fromkeys(found))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_playwright() as run:
        started = run.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def sample(deep_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sample's home, with a DRIFT session in it."""
    home = tmp_path_factory.mktemp("explored") / "home"
    shutil.copytree(deep_home, home)
    app = App(Settings(home=home), "sample")
    session = Drift(app.snapshot(), app.drift_path("session-1"))
    begun = session.start("Why was the array moved out of the Narrows?")
    session.step(begun.open_node, "A sill crosses the Narrows [t2].", 80, ["Who found the sill?", "Who signed the accord?", "What is a sill?"], open_next="none")
    pruned = next(name for name, node in session.walk().graph.nodes(data=True) if node["query"] == "Who signed the accord?")
    session.step(begun.open_node, prune=[pruned])
    return home


@pytest.fixture(scope="module")
def served(sample: Path) -> Iterator[str]:
    with explored(sample) as address:
        yield address


@pytest.fixture(scope="module")
def context(browser: Any, served: str) -> Iterator[Any]:
    """A browser that has opened the address once: its tabs share the session."""
    made = browser.new_context(viewport={"width": 1280, "height": 800})
    Tab(made).open(served)
    yield made
    made.close()


@pytest.fixture
def tab(context: Any, served: str) -> Iterator[Tab]:
    """A tab on the map. Every test that uses it fails on a console error or a violation of the policy."""
    made = Tab(context).open(served.partition("#")[0])
    yield made
    made.page.close()
    assert made.wrong == []


def numbers(home: Path, corpus: str = "sample") -> dict[str, dict[str, int]]:
    """Numbers of entities by title and of documents by uri."""
    snapshot = App(Settings(home=home), corpus).snapshot()
    entities = {row["title"]: row["n"] for row in snapshot.rows("entities", "", ["title", "n"]).to_pylist()}
    documents = {row["uri"]: row["n"] for row in snapshot.rows("documents", "", ["uri", "n"]).to_pylist()}
    return {"entities": entities, "documents": documents}


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
def test_any_passage_is_two_requests_away(tab: Tab) -> None:
    tab.asked.clear()
    tab.page.fill("#query", "Who found the sill in the Narrows?")
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_selector("#side li a[href^='#passage/']")
    tab.page.locator("#side li a[href^='#passage/']").first.click()
    tab.page.wait_for_selector(".passage")
    assert len([url for url in tab.asked if "/data/" in url and "/data/map" not in url]) == 2


@browser_only
def test_a_search_lights_the_topics_that_hold_its_hits(tab: Tab) -> None:
    tab.go(f"search/{quote('Ines Calloway eelgrass')}")
    lit = tab.gives("[...graphragExplorer.map.hits.keys()].filter(key => Number.isInteger(key))", bool)
    assert set(lit) <= set(tab.page.evaluate("[...graphragExplorer.map.nodes.keys()]"))
    expect(tab.page.locator("#side mark, #side li")).not_to_have_count(0)
    tab.go(f"search/{quote('zzyzx qwrtp')}").shows("Nothing on this was found in corpus sample")


@browser_only
def test_a_topic_that_is_opened_from_hits_is_the_only_one_that_stands_out(tab: Tab) -> None:
    tab.go(f"search/{quote('Ines Calloway eelgrass')}").go("community/1")
    tab.gives("[graphragExplorer.map.hits.size, graphragExplorer.map.selected]", [0, 1])


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
def test_a_question_on_two_names_leads_to_what_connects_them(tab: Tab) -> None:
    tab.go(f"search/{quote('How are Tobias Fenn and Ines Calloway connected?')}")
    tab.page.locator("#side a", has_text="connected?").click()
    tab.page.wait_for_selector("#side ol")
    assert set(tab.settled().heading.split(" – ")) == {"Tobias Fenn", "Ines Calloway"}
    assert tab.page.locator("#side ol a[href^='#passage/']").count() > 0
    tab.go(f"search/{quote('What did Tobias Fenn find?')}")
    assert tab.page.locator("#side a", has_text="connected?").count() == 0


@browser_only
def test_a_path_has_its_sentences_above_its_lines_and_over_nothing_else(tab: Tab, sample: Path) -> None:
    known = numbers(sample)["entities"]
    shown = 0
    for one, other in (("Ines Calloway", "Tobias Fenn"), ("Harbour Tide Authority", "Marit Fenn"), ("Narrows", "Jonas Petrie")):
        tab.go(f"path/{known[one]}/{known[other]}")
        tab.gives("graphragExplorer.graph.boxes.length", lambda many: many >= 2)
        captions, titles, lines = tab.page.evaluate("""() => { const { graph } = graphragExplorer, { x, y, k } = graph.view;
          return [graph.captions, graph.boxes.map(({ box }) => box), [...graph.edges.values()].map(({ a, b }) => [x + a.x * k, y + a.y * k, x + b.x * k, y + b.y * k])]; }""")
        for caption in captions:
            left, top, right, bottom = caption["box"]
            assert caption["rows"] and " ".join(caption["rows"])[:20] in " ".join(tab.text.split())
            assert not [box for box in titles if left < box[2] and box[0] < right and top < box[3] and box[1] < bottom]
            for x1, y1, x2, y2 in lines:
                points = [(x1 + (x2 - x1) * at / 200, y1 + (y2 - y1) * at / 200) for at in range(201)]
                assert not [1 for x, y in points if left < x < right and top < y < bottom]
        shown += len(captions)
    assert shown > 0
    tab.go("graph").gives("graphragExplorer.graph.captions.length", 0)


@browser_only
def test_no_name_stands_on_the_line_of_a_direct_connection(tab: Tab, sample: Path) -> None:
    one = numbers(sample)["entities"]["Harbour Tide Authority"]
    found = load(App(Settings(home=sample), "sample"), "entity", {"id": str(one)})
    tab.go(f"path/{one}/{found['relations'][0]['other']['n']}")
    tab.shows("1 STEP")
    assert tab.text.count("ANOTHER WAY") >= 2
    heights = tab.page.evaluate("[...graphragExplorer.graph.nodes.values()].map(one => [one.centre === true, one.y])")
    ends = {y for end, y in heights if end}
    assert len(ends) == 1 and not ends & {y for end, y in heights if not end}


@browser_only
def test_a_second_name_can_be_typed(tab: Tab, sample: Path) -> None:
    tab.go(f"entity/{numbers(sample)['entities']['Tobias Fenn']}")
    tab.page.fill("#side form input", "zzyzx qwrtp")
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_function("() => document.getElementById('status').textContent.startsWith('No other entity')")
    tab.page.fill("#side form input", "Ines Calloway")
    tab.page.keyboard.press("Enter")
    tab.is_headed("Tobias Fenn – Ines Calloway")


@browser_only
def test_a_corpus_without_texts_says_so(browser: Any, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("nothing here", "utf-8")
    home = ("--home", tmp_path / "home", "--corpus", "sample")
    assert run_cli("index", tmp_path / "docs", *home).returncode == 0
    with explored(tmp_path / "home") as address:
        made = browser.new_context()
        tab = Tab(made).open(address)
        assert tab.heading == "sample"
        (tmp_path / "docs" / "a.md").unlink()
        assert run_cli("index", tmp_path / "docs", "--remove-missing", *home).returncode == 0
        tab.open(address.partition("#")[0]).shows("holds no document yet")
        expect(tab.page.locator("#legend")).to_contain_text("No topics to draw")
        for view, said in (("timeline", "No document states a date"), ("drift", "No session on this corpus"), ("search/x", "This corpus holds no text yet")):
            tab.go(view).shows(said)
        assert tab.wrong == []
        made.close()


@browser_only
def test_links_between_documents_are_shown_with_their_lines(browser: Any, tmp_path: Path) -> None:
    pages = {"Ada.md": "Ada leads the [[Sill Survey]].\n[[<b>None</b>]] #harbour\n", "Sill Survey.md": "Led by [[Ada]].\n"}
    home = ("--home", tmp_path / "home", "--corpus", "sample")
    assert run_cli("index", write(tmp_path / "docs", pages), *home).returncode == 0
    with explored(tmp_path / "home") as address:
        made = browser.new_context()
        tab = Tab(made).open(address)
        tab.go("links").shows("Links between documents", "1 document links to it", "<b>None</b> 1 link: ", "#harbour 1 document")
        tab.page.locator("#side a", has_text="Ada").first.click()
        tab.shows("LINKS TO IT", "Led by Ada.", "ITS LINKS", "Ada leads the Sill Survey.", "#harbour")
        assert tab.heading.startswith("Ada")
        assert tab.wrong == []
        made.close()


@browser_only
def test_the_neighbourhood_has_at_most_forty_names_and_no_title_over_another(tab: Tab, sample: Path) -> None:
    tab.go(f"entity/{numbers(sample)['entities']['Narrows']}")
    tab.gives("graphragExplorer.graph.nodes.size", lambda size: 1 < size <= 41)
    tab.gives("graphragExplorer.graph.boxes.length", lambda many: many > 1)
    boxes = [one["box"] for one in tab.page.evaluate("graphragExplorer.graph.boxes.map(({ box }) => ({ box }))")]
    over = [(a, b) for i, a in enumerate(boxes) for b in boxes[:i] if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]]
    assert over == []


@browser_only
def test_titles_of_the_graph_leave_nodes_free_and_every_entity_has_an_edge(tab: Tab) -> None:
    tab.go("graph")
    tab.page.wait_for_function("() => graphragExplorer.graph.boxes?.length > 40")
    covered, alone = tab.page.evaluate("""() => {
      const { graph } = graphragExplorer, { x, y, k } = graph.view, many = graph.visible(), ends = new Set([...graph.edges.values()].flatMap(({ a, b }) => [a, b]));
      const over = ([left, top, right, bottom], one, r) => x + one.x * k + r > left && x + one.x * k - r < right && y + one.y * k + r > top && y + one.y * k - r < bottom;
      return [graph.boxes.map(({ box, one }) => many.filter((other) => other !== one && over(box, other, graph.radius(other))).length), many.filter((one) => !ends.has(one)).length];
    }""")
    assert alone == 0
    assert max(covered[:40]) <= 1 and max(covered[40:]) == 0


@browser_only
def test_the_hubs_of_the_graph_are_named_on_a_phone(browser: Any, served: str, context: Any) -> None:
    tab = Tab(context)
    tab.page.set_viewport_size({"width": 390, "height": 844})
    tab.open(served.partition("#")[0]).go("graph")
    tab.gives("""() => { const { graph } = graphragExplorer, titled = graph.boxes.map(({ one }) => one.title);
      return graph.current().many.slice(0, 8).map((one) => one.title).filter((title) => !titled.includes(title)); }""", [])
    tab.page.close()
    assert tab.wrong == []


@browser_only
def test_a_line_runs_through_no_title_of_a_path(tab: Tab, sample: Path) -> None:
    """A title stands where no line crosses it; where there is no such place, paper lies between the two."""
    known = numbers(sample)["entities"]
    tab.go(f"path/{known['Harbour Tide Authority']}/{known['Marit Fenn']}")
    tab.gives("graphragExplorer.graph.boxes.length", lambda many: many >= 4)
    inked = tab.page.evaluate("""() => {
      const { graph } = graphragExplorer, ratio = window.devicePixelRatio || 1, accent = getComputedStyle(document.documentElement).getPropertyValue("--accent").trim();
      const [red, green, blue] = [1, 3, 5].map((at) => parseInt(accent.slice(at, at + 2), 16));
      const wide = graph.canvas.width, { data } = graph.context.getImageData(0, 0, wide, graph.canvas.height);
      return graph.boxes.map(({ box }) => {
        const [left, top, right, bottom] = box.map((side, at) => Math.round(side + (at < 2 ? 3 : -3)) * ratio);
        let found = 0;
        for (let y = top; y < bottom; y++) for (let x = left; x < right; x++) {
          const at = 4 * (y * wide + x);
          if (data[at + 3] > 100 && Math.abs(data[at] - red) + Math.abs(data[at + 1] - green) + Math.abs(data[at + 2] - blue) < 60) found++;
        }
        return found;
      });
    }""")
    assert len(inked) >= 4 and max(inked) == 0


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
def test_a_second_finger_ends_what_the_first_drags(tab: Tab) -> None:
    tab.go("graph")
    rests(tab)
    fingers = """() => {
      const { graph } = graphragExplorer, { canvas } = graph, box = canvas.getBoundingClientRect();
      canvas.setPointerCapture = () => {}; // which knows no finger of a script
      for (const [type, pointerId, x, y] of [["down", 1, 4, 4], ["move", 1, 40, 40], ["down", 2, 90, 90], ["move", 2, 120, 120], ["up", 2, 120, 120], ["up", 1, 40, 40]])
        canvas.dispatchEvent(new PointerEvent("pointer" + type, { pointerId, clientX: box.x + x, clientY: box.y + y }));
      return graph.dragged;
    }"""
    assert tab.page.evaluate(fingers) is False  # else it draws few titles, as while it moves


@browser_only
def test_every_entity_of_the_graph_has_a_filter_also_without_a_type(tab: Tab) -> None:
    tab.go("graph").page.locator("#graph [aria-label='Colour by']").select_option("type")
    shown = "graphragExplorer.graph.visible().length"
    chips = tab.page.locator("#graph .chip")
    expect(chips.last).to_contain_text("no type")
    tab.page.locator("#graph .more").click()
    expect(chips.last).to_be_visible()
    size, counts = tab.page.evaluate(shown), [int(re.search(r"\d+$", text)[0]) for text in chips.all_inner_texts()]
    assert sum(counts) == size
    chips.last.click()
    tab.gives(shown, size - counts[-1])
    tab.page.get_by_role("button", name="Show all", exact=True).click()
    tab.gives(shown, size)


@browser_only
def test_the_whole_graph_has_the_colours_of_its_topics_which_filter_it(tab: Tab, sample: Path) -> None:
    found = load(App(Settings(home=sample), "sample"), "graph", {})
    counts = {one["n"]: sum(node.get("topic") == one["n"] for node in found["nodes"]) for one in found["topics"]}
    assert list(counts.values()) == sorted(counts.values(), reverse=True) and min(counts.values()) > 0
    tab.go("graph")
    shown = "graphragExplorer.graph.visible().length"
    chips = tab.page.locator("#graph .chip")
    size, wanted = tab.page.evaluate(shown), list(counts.values())[:7]
    if rest := size - sum(wanted):
        wanted.append(rest)  # in grey
    assert [int(re.search(r"\d+$", text)[0]) for text in chips.all_text_contents()] == wanted
    expect(chips.first).to_have_attribute("title", f"Show or hide {found['topics'][0]['title']}")
    tones = tab.page.evaluate("[...document.querySelectorAll('#graph .chip .swatch')].map((one) => getComputedStyle(one).backgroundColor)")
    assert len(set(tones)) == len(wanted) > 2
    listed = tab.page.evaluate("[...document.querySelectorAll('#side .ranked .swatch')].map((one) => getComputedStyle(one).backgroundColor)")
    assert set(listed) <= set(tones), "names beside the graph have its colours"
    chips.first.click()
    tab.gives(shown, size - wanted[0])
    tab.page.locator("#graph [aria-label='Colour by']").select_option("type")
    tab.gives(shown, size)
    expect(chips.first).to_contain_text("person")
    tab.page.locator("#graph [aria-label='Colour by']").select_option("topic")


@browser_only
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_differ_for_people_who_see_two_hues_as_one(browser: Any, served: str, context: Any, scheme: str) -> None:
    """Machado, Oliveira and Fernandes 2009, all of a cone missing; the distance is that of OKLab. 3:1 is what WCAG asks of graphics."""
    tab = Tab(context)
    tab.page.emulate_media(color_scheme=scheme)
    tab.open(served.partition("#")[0])
    paper, *hues = tab.page.evaluate("""["paper", ...Array.from({ length: 8 }, (_, at) => "c" + at)].map((name) => {
      const text = getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
      return [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16) / 255).map((one) => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4); })""")
    tab.page.close()

    def times(rows: Any, light: Any) -> list[float]:
        return [max(0.0, sum(a * b for a, b in zip(row, light, strict=True))) for row in rows]

    def bright(light: Any) -> float:
        return times([(0.2126, 0.7152, 0.0722)], light)[0] + 0.05

    assert all(max(bright(one), bright(paper)) / min(bright(one), bright(paper)) >= 3 for one in hues)
    seen = {"all": [(1, 0, 0), (0, 1, 0), (0, 0, 1)],
            "no red": [(0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)],
            "no green": [(0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881)],
            "no blue": [(1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.3039)]}  # fmt: skip
    cones = [(0.4122214708, 0.5363325363, 0.0514459929), (0.2119034982, 0.6806995451, 0.1073969566), (0.0883024619, 0.2817188376, 0.6299787005)]
    axes = [(0.2104542553, 0.793617785, -0.0040720468), (1.9779984951, -2.428592205, 0.4505937099), (0.0259040371, 0.7827717662, -0.808675766)]
    for name, rows in seen.items():
        places = [[sum(a * b ** (1 / 3) for a, b in zip(axis, times(cones, times(rows, one)), strict=True)) for axis in axes] for one in hues]
        least = min(sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) ** 0.5 for at, one in enumerate(places) for other in places[:at])
        assert least > 0.07, (name, least)


@browser_only
def test_filters_of_the_graph_take_one_row_until_more_is_pressed(context: Any, served: str) -> None:
    tab = Tab(context)
    tab.page.set_viewport_size({"width": 1280, "height": 800})
    tab.open(served.partition("#")[0]).go("graph").page.locator("#graph [aria-label='Colour by']").select_option("type")
    rows = """() => new Set([...document.querySelectorAll(".key-bar > *")].filter((one) => one.offsetParent).map((one) => one.offsetTop)).size"""
    more = tab.page.locator("#graph .more")
    expect(more).to_have_text(re.compile(r"^\d+ more$"))
    tab.gives(rows, 1)
    more.click()
    tab.gives(rows, lambda many: many > 1)
    expect(tab.page.locator("#graph .chip").last).to_be_visible()
    more.click()
    tab.gives(rows, 1)
    tab.page.close()
    assert tab.wrong == []


@browser_only
def test_all_filters_of_the_graph_are_in_one_row_that_a_finger_moves_on_a_phone(context: Any, served: str) -> None:
    tab = Tab(context)
    tab.page.set_viewport_size({"width": 390, "height": 844})
    tab.open(served.partition("#")[0]).go("graph")
    expect(tab.page.locator("#graph .more")).to_be_hidden()
    chips = tab.page.locator("#graph .chip")
    assert chips.count() > 2 and len({chips.nth(at).bounding_box()["y"] for at in range(chips.count())}) == 1
    chips.last.tap() if tab.page.evaluate("'ontouchstart' in window") else chips.last.click()
    expect(chips.last).to_have_attribute("aria-pressed", "false")
    tab.page.close()
    assert tab.wrong == []


@browser_only
def test_a_view_that_comes_late_draws_nothing_over_the_next_one(context: Any, served: str) -> None:
    tab = Tab(context)
    tab.open(served.partition("#")[0]).go("map")
    held: list[Any] = []
    tab.page.route("**/data/graph**", lambda route: held.append(route))
    tab.page.evaluate("location.hash = '#graph'")
    until(lambda: tab.page.evaluate("1") and held)
    tab.page.evaluate("location.hash = '#timeline'")
    tab.is_headed("Timeline")
    with tab.page.expect_response("**/data/graph**"):
        held[0].continue_()
    tab.settled()
    expect(tab.page.locator("#graph")).to_be_hidden()
    tab.page.close()
    assert tab.wrong == []


@browser_only
def test_the_map_names_the_most_connected_entities_and_no_colour_beside_it_is_one_that_it_lacks(tab: Tab) -> None:
    tab.go("map")
    tab.page.wait_for_function("graphragExplorer.map.drawn.some((one) => one.dot)")
    tab.settled()
    # of the three most connected entities of each topic: how many there are, and how many titles touch their dots
    titled = """() => { const { map } = graphragExplorer, { x, y, k } = map.view, of = new Map();
      for (const one of map.drawn) if (one.dot) of.set(one.community, [...(of.get(one.community) || []), one].slice(0, 3));
      const near = (one) => map.boxes.some(([left, top, right, bottom]) => { const [px, py, r] = [x + one.x * k, y + one.y * k, map.dot(one.r * k) + 4]; return left < px + r && px - r < right && top < py + r && py - r < bottom; });
      const first = [...of.values()].flat(); return [first.length, first.filter(near).length]; }"""
    tab.gives(titled, lambda found: found[0] > 6 and found[1] > 0.6 * found[0])
    expect(tab.page.locator("#side .swatch")).to_have_count(0)


@browser_only
def test_three_sections_lead_to_all_views(tab: Tab) -> None:
    sections = tab.page.locator("#views a")
    expect(sections).to_have_text(["Ask", "Graph", "Library"])
    expect(tab.page.locator("#views svg.icon")).to_have_count(3)
    seen: list[str] = []
    for at, heading in enumerate(("Ask", "Graph", "Documents")):
        sections.nth(at).click()
        tab.is_headed(heading)
        expect(sections.nth(at)).to_have_attribute("aria-current", "true")
        seen += tab.page.locator("#within a").all_inner_texts()
    assert seen == ["Entities", "Topics", "Links", "Timeline", "Documents", "Changes", "DRIFT sessions"]


@browser_only
def test_documents_without_links_are_said_to_have_none(tab: Tab) -> None:
    tab.go("links").shows("No document of this corpus links to another one.", "Links between Markdown notes")
    assert "object" not in tab.text


@browser_only
def test_a_phone_has_both_days_in_one_row_and_the_list_before_the_place_to_add(context: Any, served: str) -> None:
    tab = Tab(context)
    tab.page.set_viewport_size({"width": 390, "height": 844})
    tab.open(served.partition("#")[0]).go(f"search/{quote('Who found the sill?')}")
    top = "name => document.querySelector(name).getBoundingClientRect().top"
    assert tab.page.evaluate(top, "[aria-label='From day']") == tab.page.evaluate(top, "[aria-label='To day']")
    tab.go("library")
    assert tab.page.evaluate(top, ".documents") < tab.page.evaluate(top, ".drop")
    tab.page.get_by_role("button", name="Add documents").click()
    expect(tab.page.locator(".drop button").first).to_be_in_viewport()
    tab.gives("document.documentElement.scrollWidth - innerWidth", 0)
    tab.page.set_viewport_size({"width": 1280, "height": 844})
    expect(tab.page.get_by_role("button", name="Add documents")).to_be_hidden()
    tab.page.close()
    assert tab.wrong == []


@browser_only
def test_links_in_lists_are_underlined_under_the_keyboard_and_in_high_contrast(tab: Tab) -> None:
    tab.go("graph")
    link = tab.page.locator("#side .ranked a").nth(1)
    line = "one => getComputedStyle(one).textDecorationColor"
    colour = link.evaluate("one => getComputedStyle(one).color")
    assert link.evaluate(line) == "rgba(0, 0, 0, 0)"
    tab.page.locator("#side .ranked a").first.focus()
    tab.page.keyboard.press("Tab")
    assert link.evaluate("one => one.matches(':focus-visible')") and link.evaluate(line) == colour
    link.blur()
    tab.page.emulate_media(contrast="more")
    assert link.evaluate(line) == colour
    tab.page.emulate_media(contrast="no-preference")


@browser_only
def test_a_name_of_a_hundred_thousand_letters_breaks_no_view(browser: Any, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    long, home = "Bartholomew" * 9_091, ("--home", tmp_path / "home", "--corpus")
    assert run_cli("index", write(tmp_path / "docs", {"a.md": "Ada Lovelace met Otto Brunner in London. Otto Brunner wrote to Ada Lovelace.\n"}), *home, "sample").returncode == 0
    assert run_cli("export", tmp_path / "tables", *home, "sample").returncode == 0
    for name in ("entities", "relationships"):  # only an import brings such a name
        table = pq.read_table(file := tmp_path / "tables" / f"{name}.parquet")
        for column in {"title", "source", "target"} & set(table.column_names):
            values = [long if "brunner" in value.lower() else value for value in table[column].to_pylist()]
            table = table.set_column(table.column_names.index(column), column, pa.array(values))
        pq.write_table(table, file)
    assert run_cli("import", tmp_path / "tables", *home, "moved").returncode == 0
    known = numbers(tmp_path / "home", "moved")["entities"]
    n = next(n for title, n in known.items() if title.startswith("Bartholomew"))
    with explored(tmp_path / "home", "moved") as address:
        made = browser.new_context(viewport={"width": 390, "height": 800})
        tab = Tab(made).open(address)
        for view in (f"entity/{n}", f"path/{n}/{known['Ada Lovelace']}", "graph", "library"):
            tab.go(view)
            assert tab.heading != "This cannot be shown" and len(tab.heading) < 200
            tab.gives("document.documentElement.scrollWidth - innerWidth", 0)
        assert tab.wrong == []
        made.close()


@browser_only
def test_hits_and_documents_have_the_icon_of_their_kind(tab: Tab) -> None:
    tab.go(f"search/{quote('Who found the sill in the Narrows?')}")
    drawn = "(words) => [...document.querySelectorAll('.hits .where')].find((one) => one.textContent.includes(words)).querySelector('svg path').getAttribute('d')"
    table, text, code = (tab.page.evaluate(drawn, words) for words in ("harbour-log.csv", ".md", "backrun.py"))
    assert len({table, text, code}) == 3
    tab.go("library")
    row = "(words) => [...document.querySelectorAll('tbody tr')].find((one) => one.textContent.includes(words)).querySelector('svg path').getAttribute('d')"
    assert [tab.page.evaluate(row, words) for words in ("harbour-log.csv", "accord.md", "backrun.py")] == [table, text, code]


@browser_only
def test_a_type_has_its_colour_whichever_view_is_opened_first(tab: Tab, sample: Path) -> None:
    tones = "[...graphragExplorer.graph.tones].slice(0, 3)"
    tab.go("graph")
    first = tab.page.evaluate(tones)
    tab.go(f"entity/{numbers(sample)['entities']['Harbour Tide Authority']}").page.reload()
    tab.is_headed("Harbour Tide Authority").gives(tones, first)
    assert "person" in dict(first)


@browser_only
def test_types_that_are_rare_on_the_map_have_colours_of_their_own_in_a_view(tab: Tab) -> None:
    tab.go("graph")
    coloured = """types => { const { graph } = graphragExplorer; graph.palette = () => Array.from({ length: 20 }, (_, at) => "type " + at).values();
      graph.colour(types); return types.map(type => graph.tones.get(type)); }"""
    rare = [f"type {at}" for at in range(12, 17)]
    first = tab.page.evaluate(coloured, rare)
    assert len(set(first)) == 5
    assert tab.page.evaluate(coloured, ["type 6", *rare, "type 18"]) == [6, *first, 5], "what is shown keeps its colour"
    every = tab.page.evaluate(coloured, [f"type {at}" for at in range(20)])
    assert every[:7] == list(range(7)) and set(every[7:]) == {7}


@browser_only
def test_the_whole_map_stays_in_the_picture_when_the_window_changes_meanwhile(tab: Tab) -> None:
    outside = """() => { const { map } = graphragExplorer, { x, y, k } = map.view;
      return map.roots().filter(one => x + (one.x - one.r) * k < 0 || x + (one.x + one.r) * k > map.width || y + (one.y - one.r) * k < 0 || y + (one.y + one.r) * k > map.height).length; }"""
    tab.go("map").go("search/What is a sill?")
    tab.page.set_viewport_size({"width": 390, "height": 844})
    tab.go("map")
    tab.gives("graphragExplorer.map.width", lambda width: width <= 390)
    tab.gives(outside, 0)
    tab.page.evaluate("() => graphragExplorer.map.zoom(3)")
    near = tab.page.evaluate("graphragExplorer.map.view.k")
    tab.page.set_viewport_size({"width": 500, "height": 844})
    tab.gives("graphragExplorer.map.width", lambda width: width > 390)
    assert tab.page.evaluate("graphragExplorer.map.view.k") == near, "what was zoomed stays"


@browser_only
def test_a_source_begins_with_its_title_where_the_cited_sentence_is_in_sight(tab: Tab, sample: Path) -> None:
    tab.page.set_viewport_size({"width": 1440, "height": 560})
    tab.page.emulate_media(reduced_motion="reduce")  # it is scrolled at once
    rows = App(Settings(home=sample), "sample").snapshot().rows("text_units", "", ["n", "text"]).to_pylist()
    n, at = next((row["n"], row["text"].index("This is the famous")) for row in rows if "This is the famous" in row["text"])
    tab.go("search/What is the survey about?").go(f"passage/t{n}/{at}-{at + 26}")
    tab.page.wait_for_selector(".passage mark")
    below = "name => { const at = document.querySelector(name).getBoundingClientRect(), side = document.getElementById('side').getBoundingClientRect(); return [at.top - side.top, side.bottom - at.bottom]; }"
    for name in ("#side h1", "mark"):
        tab.gives(below, lambda free: min(free) > 0, name)
    expect(tab.page.locator("#query")).to_have_value("What is the survey about?")
    expect(tab.go("timeline").page.locator("#query")).to_have_value("")


@browser_only
def test_a_graph_whose_filters_leave_nothing_can_be_used_on(tab: Tab) -> None:
    tab.go("graph")
    hide = "() => { const { graph } = graphragExplorer; for (const one of graph.nodes.values()) one.hidden = true; graph.known = null; graph.settle(); return graph.visible().length; }"
    assert tab.page.evaluate(hide) == 0
    tab.page.get_by_role("button", name="Show all", exact=True).click()
    tab.gives("graphragExplorer.graph.visible().length", lambda many: many > 0)


@browser_only
def test_no_zoom_of_the_map_leads_to_an_empty_picture(tab: Tab) -> None:
    tab.go("map")
    leaf = tab.page.evaluate("[...graphragExplorer.map.nodes.values()].find(one => !one.children).n")
    tab.go(f"community/{leaf}")
    tab.page.evaluate("() => { for (let at = 0; at < 40; at++) graphragExplorer.map.zoom(1.5); }")
    tab.page.wait_for_selector("#leaf a[href^='#passage/']")
    tab.gives("n => { const { map } = graphragExplorer; return map.nodes.get(n).r * map.view.k <= Math.max(map.width, map.height); }", True, leaf)
    tab.page.locator("#crumbs a", has_text="All topics").click()
    tab.page.wait_for_function("() => document.getElementById('leaf').hidden && document.getElementById('crumbs').childElementCount === 0")
    tab.settled().page.evaluate("() => { for (let at = 0; at < 40; at++) graphragExplorer.map.zoom(0.5); }")
    tab.settled().gives("graphragExplorer.map.drawn.length", lambda many: many > 1)


@browser_only
@pytest.mark.parametrize("view", ["map", "community/5", "community/6"])
def test_no_title_of_the_map_covers_another(tab: Tab, view: str) -> None:
    tab.go(view)
    tab.page.wait_for_function("() => graphragExplorer.map.boxes && graphragExplorer.map.boxes.length > 1")
    boxes = tab.page.evaluate("graphragExplorer.map.boxes")
    over = [(a, b) for i, a in enumerate(boxes) for b in boxes[:i] if a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]]
    assert over == []


@browser_only
def test_a_title_on_the_map_is_cut_behind_a_phrase_only(tab: Tab) -> None:
    """In circles of all sizes: the title, its first phrases, one of them, or a beginning that says that it is one."""
    titles = {
        "Stock market, economic growth and shares": " ", "Food and Agriculture Organisation, Unilever and Anglo-Dutch": " ",
        "Yukos, charges and oil company": " ", "广州、长江大桥、铁路": "", "A report by a model on the harbour and its tides": " ",
    }  # fmt: skip
    for title, between in titles.items():
        parts = re.split(", | and |、", title)
        allowed = {title, *(title[: match.start()] for match in re.finditer(", | and |、", title)), *parts}
        for radius in range(14, 120, 3):
            said = between.join(tab.page.evaluate("([title, radius]) => graphragExplorer.map.lines(title, radius, Math.min(14, Math.max(10.5, radius / 6)))", [title, radius]))
            assert not said or said in allowed or (said.endswith("…") and len(said) > 6), (title, radius, said)
        assert said == title


@browser_only
@pytest.mark.parametrize("width", [80, 160, 320, 500, 800, 2000])
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
def test_dark_and_light_follow_the_system(tab: Tab) -> None:
    colour = "getComputedStyle(document.body).backgroundColor"
    tab.page.emulate_media(color_scheme="light")
    tab.gives("matchMedia('(prefers-color-scheme: light)').matches", True)
    light = tab.page.evaluate(colour)
    tab.page.emulate_media(color_scheme="dark")
    tab.gives(colour, lambda dark: dark != light)


@browser_only
def test_the_pictures_of_the_documentation(tmp_path: Path) -> None:
    """`python docs/screens.py` writes all twelve; here two, one of them with a model."""
    command = [sys.executable, ROOT / "docs" / "screens.py", "answer", "entity", "--folder", tmp_path]
    # Not below `tmp_path`: the path of Chromium's socket may have 107 characters.
    with tempfile.TemporaryDirectory() as scratch:
        environment = clean_environment(TMPDIR=scratch)
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert all((tmp_path / f"{name}.webp").stat().st_size > 10_000 for name in ("answer", "entity"))
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


@browser_only
def test_a_topic_of_one_text_unit_is_named_so(tab: Tab) -> None:
    tab.go("entity/1").page.evaluate("() => graphragExplorer.map.roots().slice(0, 2).forEach((one, at) => { one.size = [1, 1200][at]; })")
    labels = tab.go("map").page.locator("#side [role=treeitem]").evaluate_all("all => all.map(one => one.getAttribute('aria-label'))")
    assert [label.endswith(end) for end in (" 1 text unit", " 1,200 text units") for label in labels].count(True) == 2
    hovered = """size => { const { map } = graphragExplorer; map.at = () => ({ title: "Tides", size }); map.hover(0, 0); return map.canvas.title; }"""
    assert [tab.page.evaluate(hovered, size) for size in (1, 1200)] == ["Tides (1 text unit)", "Tides (1,200 text units)"]


# ---- hostile texts ----------------------------------------------------------------------------------

SCRIPT = "<script>document.title='owned'</script><img src=x onerror=alert(1)>"
TURNED = "abc\u202etxt.exe"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, home = tmp_path_factory.mktemp("hostile"), tmp_path_factory.mktemp("hostile-home")
    long = "Bartholomew" * 910
    (folder / "<img src=x onerror=alert(2)>.md").write_text(f"# {SCRIPT}\n\nAda Lovelace met Charles Babbage in London. {SCRIPT}\n", "utf-8")
    (folder / "turned.md").write_text(f"# {TURNED}\n\nAda Lovelace wrote to {TURNED}. كتبت ليلى حداد رسالة إلى سامي نصار في بيروت. 😀 Ada Lovelace laughed.\n", "utf-8")
    (folder / "long.md").write_text(f"# {long}\n\n{long} met Ada Lovelace. Mr {long} Smith wrote to Charles Babbage.\n", "utf-8")
    (folder / "json.md").write_text('# </script><script>alert(3)</script>\n\nAda Lovelace said "</script>" -->. api_key = "sk-proj-Zq83hfKd92Lw0xPvT4mN7bYc"\n', "utf-8")
    done = run_cli("index", folder, "--home", home, "--corpus", "sample")
    assert done.returncode == 0, done.stderr
    return home


@browser_only
def test_hostile_names_titles_and_texts_are_shown_as_text(browser: Any, hostile: Path) -> None:
    with explored(hostile) as address:
        made = browser.new_context()
        tab = Tab(made).open(address)
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
        assert tab.wrong == []
        made.close()


@browser_only
def test_marks_are_right_behind_an_emoji(browser: Any, hostile: Path) -> None:
    app = App(Settings(home=hostile), "sample")
    rows = app.snapshot().rows("text_units", "", ["n", "text"]).to_pylist()
    row = next(row for row in rows if "laughed" in row["text"])
    start = row["text"].index("Ada Lovelace laughed")
    assert "😀" in row["text"][:start]
    with explored(hostile) as address:
        made = browser.new_context()
        tab = Tab(made).open(address).go(f"passage/t{row['n']}/{start}-{start + 20}")
        expect(tab.page.locator("mark")).to_have_text("Ada Lovelace laughed")
        made.close()


# ---- who may come in --------------------------------------------------------------------------------


def asked(address: str, path: str, method: str = "GET", **headers: str) -> tuple[int, str]:
    """(status, body) of one request; `host` replaces the Host header."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 0, timeout=60)
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, headers=given)
    response = connection.getresponse()
    body = response.read().decode()
    connection.close()
    return response.status, body


@pytest.mark.skipif(sys.platform != "linux", reason="the browser is a script for a shell")
def test_the_browser_is_opened_where_there_is_a_screen(sample: Path, tmp_path: Path) -> None:
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}.part\nmv {opened}.part {opened}\n', "utf-8")
    browser.chmod(0o755)
    command = [sys.executable, "-m", "graphrag_mcp", "explore", "--home", str(sample), "--corpus", "sample"]
    for screen in ("", ":9"):
        env = clean_environment(BROWSER=str(browser), DISPLAY=screen, WAYLAND_DISPLAY="")
        server = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            assert asked(address, "/explore/data/overview")[0] == 401  # it serves by now
            if screen:
                until(opened.exists)
            assert opened.exists() == bool(screen)
        finally:
            server.terminate()
            server.wait(60)
    assert re.fullmatch(r"file:///\S+\.html", opened.read_text("utf-8").strip())  # which holds the address: no argument holds the token


FIRST_REQUEST = """
import http.client, json, os, sys, threading
from pathlib import Path
from graphrag_mcp import http as served
from graphrag_mcp.app import App
from graphrag_mcp.explorer.data import load
from graphrag_mcp.explorer.topics import WHOLE, Circle, arranged
from graphrag_mcp.settings import Settings

app = App(Settings(home=Path(sys.argv[1])), "sample")
load(app, "overview", {}, "sample")

def opened(address):
    before, (base, _, token) = set(sys.modules), address.partition("#token=")
    def ask(method, path, token):
        connection = http.client.HTTPConnection(base.split("/")[2], timeout=60)
        connection.request(method, path, headers={"Authorization": "Bearer " + token})
        return json.loads(connection.getresponse().read())
    def look():
        session = ask("POST", "/explore/session", token)["token"]
        assert ask("GET", "/explore/data/map", session)["communities"]
        print(sorted({name.partition(".")[0] for name in set(sys.modules) - before}), flush=True)
        os._exit(0)
    threading.Thread(target=look).start()

served.explore(app, "sample", opened)
"""


def test_the_first_view_waits_for_no_import_of_a_large_package(sample: Path) -> None:
    """They took 1 s of the time to the first picture."""
    done = subprocess.run([sys.executable, "-c", FIRST_REQUEST, str(sample)], cwd=ROOT, env=clean_environment(), capture_output=True, text=True, timeout=120)
    assert done.stdout, done.stderr
    assert not {"mcp", "pydantic", "lancedb", "httpx2"} & set(ast.literal_eval(done.stdout))


def test_requests_of_others_are_refused(sample: Path) -> None:
    with explored(sample) as address:
        token = address.partition("#token=")[2]
        bearer = {"Authorization": f"Bearer {token}"}
        assert asked(address, "/explore/data/overview")[0] == 401
        assert asked(address, "/explore/data/overview", **bearer)[0] == 401  # it is for one exchange, not for data
        assert asked(address, "/explore/session", "POST", Host="evil.example", **bearer)[0] == 421
        assert asked(address, "/explore/session", "POST", Origin="https://evil.example", **bearer)[0] == 403
        assert asked(address, "/explore/session", "POST", Authorization="Bearer wrong")[0] == 401
        status, body = asked(address, "/explore/session", "POST", **bearer)
        session = {"Authorization": f"Bearer {json.loads(body)['token']}"}
        assert status == 200
        assert asked(address, "/explore/session", "POST", **bearer)[0] == 401  # used
        status, body = asked(address, "/explore/data/overview", **session)
        assert (status, json.loads(body)["corpus"]) == (200, "sample")
        assert asked(address, "/explore/data/overview", Origin="https://evil.example", **session)[0] == 403
        assert asked(address, "/explore/data/overview", Host="evil.example", **session)[0] == 421
        assert asked(address, "/explore/data/nothing", **session)[0] == 400
        assert asked(address, "/explore/data/entity?id=e99999", **session)[0] == 404
        assert asked(address, "/explore/data/entity?id=../../x", **session)[0] == 400
        assert asked(address, "/explore/data/drift?id=../../etc/passwd", **session)[0] == 400
        assert asked(address, "/mcp", "POST", **session)[0] == 404
        assert asked(address, "/explore/data/overview", "POST", **session)[0] == 405


@browser_only
def test_a_page_of_another_site_reads_nothing(browser: Any, sample: Path) -> None:
    """In the browser that has opened the page: by requests, in a frame, and by a window of its own."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)  # says 501: a page is a page
    threading.Thread(target=server.serve_forever, daemon=True).start()
    tries = """async (base) => { const said = [];
      for (const [path, given] of [["data/overview", {}], ["data/overview", { credentials: "include" }], ["session", { method: "POST", headers: { Authorization: "Bearer x" } }]])
        said.push(await fetch(base + "/explore/" + path, given).then((got) => got.text(), (error) => String(error)));
      const frame = document.createElement("iframe"); frame.src = base + "/explore/"; document.body.append(frame);
      const other = window.open(base + "/explore/"); await new Promise((done) => setTimeout(done, 1500));
      try { said.push(frame.contentDocument?.body.innerText || "closed"); } catch (error) { said.push(error.name); }
      try { said.push(other?.document.body.innerText || "closed"); } catch (error) { said.push(error.name); }
      return said; }"""
    try:
        with explored(sample) as address:
            made = browser.new_context()
            Tab(made).open(address)
            page = made.new_page()
            page.goto(f"http://127.0.0.1:{server.server_port}/")
            said = page.evaluate(tries, urlsplit(address)._replace(path="", fragment="").geturl())
            assert all("Failed to fetch" in one for one in said[:3]), said
            assert all(one in ("closed", "SecurityError") for one in said[3:]), said
            made.close()
    finally:
        server.shutdown()
        server.server_close()


@browser_only
def test_the_address_works_once_and_tabs_share_the_session(browser: Any, sample: Path) -> None:
    with explored(sample) as address:
        first = browser.new_context()
        tab = Tab(first).open(address)
        assert "token" not in tab.page.url
        assert Tab(first).open(address.partition("#")[0]).heading == "sample"
        assert Tab(first).open(address).heading == "sample"  # the same browser, with its session
        other = browser.new_context()
        late = Tab(other).open(address)
        late.is_headed("This address is no longer valid").shows("graphrag-mcp explore")
        assert tab.wrong == []
        first.close()
        other.close()


def test_the_page_is_small_and_asks_for_nothing_elsewhere() -> None:
    document = pages.page()
    assert len(document.encode()) <= TEMPLATE
    assert set(re.findall(r"https?://[^\s\"'<>]+", document)) <= {"http://www.w3.org/2000/svg"}
    for never in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
        assert never not in document
    policy = pages.policy_of(document)
    assert "default-src 'none'" in policy and "unsafe-inline'" not in policy.partition("style-src-attr")[0]


# ---- without a server, and behind the tokens of one ------------------------------------------------


@browser_only
def test_the_page_as_a_file_has_every_view_that_it_offers(browser: Any, sample: Path, tmp_path: Path) -> None:
    done = run_cli("export", "--html", tmp_path / "graph.html", "--home", sample, "--corpus", "sample")
    assert done.returncode == 0 and re.search(r" \d+ topics, \d+ entities, \d+ texts", done.stdout), done.stderr
    made = browser.new_context(offline=True)
    tab = Tab(made).open((tmp_path / "graph.html").as_uri())
    expect(tab.page.locator("#side")).to_contain_text(re.compile(r"This file holds (\d+) of \1 topics, (\d{2,}) of \2 entities"))
    expect(tab.page.locator("#views a")).to_have_text(["Graph"])
    expect(tab.page.locator("#within a")).to_have_text(["Entities", "Topics", "Timeline"])
    seen: set[str] = set()
    todo = ["map", "timeline", f"search/{quote('Tobias Fenn')}"]
    while todo and len(seen) < 40:
        view = todo.pop(0)
        seen.add(view)
        assert tab.go(view).heading != "This cannot be shown", view
        kinds = {link.partition("/")[0]: link for link in tab.links()}
        todo += [link for link in kinds.values() if link not in seen and link not in todo]
    tab.go(f"search/{quote('Tobias Fenn')}")
    tab.page.locator("#side li a[href^='#passage/']").first.click()
    expect(tab.page.locator("mark")).to_contain_text("tobias", ignore_case=True)
    assert tab.wrong == [] and all(url.startswith(("file:", "data:")) for url in tab.asked)
    made.close()


def test_export_needs_a_folder_or_a_file(sample: Path) -> None:
    done = run_cli("export", "--home", sample, "--corpus", "sample")
    assert done.returncode == 2 and "--html FILE" in done.stderr


@browser_only
def test_a_server_with_tokens_shows_the_page_to_who_has_one(browser: Any, sample: Path) -> None:
    token = "long-enough-for-a-test-token"
    with serving(sample, "--corpus", "sample", GRAPHRAG_MCP_TOKENS=f"ada={token}") as base:
        bearer = {"Authorization": f"Bearer {token}"}
        assert asked(base, "/explore/data/overview")[0] == 401
        assert asked(base, "/explore/data/overview", Host="evil.example", **bearer)[0] == 421
        assert asked(base, "/explore/session", "POST", **bearer)[0] in (404, 405)
        assert asked(base, "/explore/", Host="evil.example")[0] == 421
        assert json.loads(asked(base, "/explore/data/drift", **bearer)[1])["sessions"] == []  # the session is another's
        assert asked(base, "/explore/data/drift?id=session-1", **bearer)[0] == 404
        made = browser.new_context()
        tab = Tab(made).open(f"{base}/explore")
        assert tab.heading == "This server asks for a token"
        tab.page.fill("#side input", token)
        tab.page.keyboard.press("Enter")
        tab.page.wait_for_selector("[role=tree]")
        tab.is_headed("sample")
        made.close()
        other = browser.new_context()
        assert Tab(other).open(f"{base}/explore/#token={token}").heading == "sample"
        other.close()


RESULTS: list[tuple[str, dict[str, Any], str]] = [
    ("explore_graph", {"start": "Tobias Fenn"}, "Tobias Fenn"),
    ("explore_graph", {"start": "Tobias Fenn", "goal": "Harbour Tide Authority"}, "Tobias Fenn – Harbour Tide Authority"),
    ("explore_graph", {"start": "c5"}, ""),
    ("explore_graph", {}, "sample"),
    ("global_search", {"query": "What do the letters say of the tide?"}, "“What do the letters say of the tide?”"),
    ("global_search", {"query": "潮汐模型是怎样工作的？" * 20}, "sample"),
    ("drift_search", {"query": "Who found the sill?"}, "Who found the sill?"),
]  # fmt: skip


def told(base: str, token: str, calls: list[tuple[str, dict[str, Any]]]) -> list[str]:
    """The texts of these calls, over HTTP."""

    async def all_of_them() -> list[str]:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as transport, Client(streamable_http_client(f"{base}/mcp", http_client=transport)) as client:
            found = [await client.call_tool(tool, arguments) for tool, arguments in calls]
            assert not any(one.is_error for one in found), found
            return [one.content[0].text for one in found]

    with ThreadPoolExecutor(1) as thread:  # the browser's loop runs in this one
        return thread.submit(anyio.run, all_of_them).result()


@browser_only
@pytest.mark.parametrize("several", [False, True])
def test_results_end_with_the_address_of_their_view(browser: Any, sample: Path, tmp_path: Path, several: bool) -> None:
    token, home = "long-enough-for-a-test-token", tmp_path / "home"
    shutil.copytree(sample, home)
    if several:
        shutil.copytree(home / "corpora" / "sample", home / "corpora" / "潮汐")
    named = {"corpus": "sample"} if several else {}
    with serving(home, GRAPHRAG_MCP_TOKENS=f"ada={token}") as base:
        made = browser.new_context()
        Tab(made).open(f"{base}/explore/{'?corpus=sample' if several else ''}#token={token}")
        calls = [(tool, {**arguments, **named}) for tool, arguments, _ in RESULTS]
        for text, (tool, arguments, wanted) in zip(told(base, token, calls), RESULTS, strict=True):
            line = text.splitlines()[-1]
            assert line.startswith(f"Page for people: {base}/explore/"), (tool, arguments, line)
            assert ("?corpus=sample#" in line) == several and token not in text and len(line) < 260
            tab = Tab(made).open(line.partition(": ")[2])
            if wanted:
                tab.is_headed(wanted)
            else:
                expect(tab.page).to_have_url(re.compile("#community/5$"))
            assert tab.wrong == []
            tab.page.close()
        made.close()
        others = [("local_search", {"query": "Tobias Fenn", **named}), ("get_entity", {"id_or_name": "Tobias Fenn", **named})]
        assert all("/explore/" not in text for text in told(base, token, others))


def test_the_address_of_the_page_keeps_within_the_budget(sample: Path) -> None:
    with serving(sample, "--corpus", "sample") as base:
        budgets = (200, 420, 800, 1_500, 3_000)
        calls = [("global_search", {"query": "What do the letters say of the tide?", "max_tokens": budget}) for budget in budgets]
        calls += [("explore_graph", {"start": "Narrows", "hops": 3, "max_tokens": budget}) for budget in budgets]
        for text, (tool, arguments) in zip(told(base, "", calls), calls, strict=True):
            assert count_tokens(text) <= arguments["max_tokens"], (tool, arguments)
            assert arguments["max_tokens"] == 200 or text.splitlines()[-1].startswith("Page for people: "), (tool, arguments)


def test_results_name_no_page_where_none_is_served(call: Caller) -> None:
    for tool, arguments, _ in RESULTS:
        assert "/explore/" not in call.good(tool, **arguments)["text"]


# ---- as an MCP App ----------------------------------------------------------------------------------

HOST = """<!doctype html><title>host</title><iframe sandbox="allow-scripts" style="width:1200px;height:700px;border:0"></iframe>
<script>
  const frame = document.querySelector("iframe"); window.heard = [];
  const send = (message) => frame.contentWindow.postMessage({ jsonrpc: "2.0", ...message }, "*");
  window.addEventListener("message", async ({ source, data }) => {
    if (source !== frame.contentWindow) return;
    window.heard.push(data.method || "answer");
    if (data.method === "ui/initialize") send({ id: data.id, result: { protocolVersion: "2026-01-26", hostInfo: { name: "host", version: "1" },
      hostCapabilities: { serverTools: {} }, hostContext: { theme: "dark" } } });
    if (data.method === "ui/notifications/initialized") {
      send({ method: "ui/notifications/tool-input", params: { arguments: window.given.arguments } });
      send({ method: "ui/notifications/tool-result", params: window.given.result });
    }
    if (data.method === "tools/call") send({ id: data.id, result: await window.callTool(data.params.name, data.params.arguments) });
  });
</script>"""


@contextmanager
def hosted(browser: Any, call: Caller, tool: str, script: str = "", **arguments: Any) -> Iterator[tuple[Any, Tab]]:
    """(the frame of the page, its tab) in a host that has called a tool and shows the page for it: ours, or that of a
    script."""
    listed = {one.name: one for one in call.portal.call(call.client.list_tools).tools}
    uri = listed[tool].meta["ui"]["resourceUri"]
    read = call.portal.call(lambda: call.client.read_resource(uri)).contents[0]
    assert read.mime_type == "text/html;profile=mcp-app"

    def sent(result: Any) -> dict[str, Any]:
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)

    made = browser.new_context(viewport={"width": 1280, "height": 800})
    tab = Tab(made)
    tab.page.expose_function("callTool", lambda name, given: sent(call(name, **given)))
    tab.page.set_content(HOST.partition("<script>")[0] if script else HOST)
    given = {"arguments": arguments, "result": sent(call(tool, **arguments))}
    if script:
        tab.page.add_script_tag(content=script)
        tab.page.evaluate("([given, html]) => begin(html, given)", [given, read.text])
    else:
        tab.page.evaluate("([given, html]) => { window.given = given; document.querySelector('iframe').srcdoc = html; }", [given, read.text])
    frame = tab.page.wait_for_selector("iframe").content_frame()
    frame.wait_for_selector("#side h1")
    yield frame, tab
    made.close()


@pytest.fixture(scope="module")
def call(sample: Path) -> Iterator[Caller]:
    """A client that renders apps."""
    apps = advertise(EXTENSION_ID, {"mimeTypes": [APP_MIME_TYPE]})
    server = build_server(App(Settings(home=sample), "sample"))
    with connected(server, extensions=[apps]) as made:
        yield made


@browser_only
@pytest.mark.parametrize(("tool", "arguments", "wanted"), [
    ("explore_graph", {"start": "Tobias Fenn"}, "Tobias Fenn"),
    ("explore_graph", {"start": "Tobias Fenn", "goal": "Harbour Tide Authority"}, "Tobias Fenn – Harbour Tide Authority"),
    ("explore_graph", {}, "sample"),
    ("global_search", {"query": "What do the letters say of the tide?"}, "“What do the letters say of the tide?”"),
    ("drift_search", {"query": "Who found the sill?"}, "Who found the sill?"),
])  # fmt: skip
def test_a_host_shows_the_view_of_a_result(browser: Any, call: Caller, tool: str, arguments: dict[str, Any], wanted: str) -> None:
    with hosted(browser, call, tool, **arguments) as (frame, tab):
        expect(frame.locator("#side h1")).to_have_text(wanted)
        expect(frame.locator("html")).to_have_attribute("data-theme", "dark")
        if tool == "drift_search":
            frame.locator("#side summary").first.click()
        frame.locator("#side a[href^='#passage/']:visible, #side a[href^='#community/']:visible").first.click()
        expect(frame.locator("#side h1")).not_to_have_text(wanted)
        expect(frame.locator("#side")).not_to_contain_text("cannot be shown")
        tab.gives("window.heard", lambda heard: "ui/notifications/size-changed" in heard)
        assert tab.wrong == [] and all(url.startswith(("about:", "data:")) for url in tab.asked)


# The host of ext-apps itself. Not installed by the tests: `make app-host` does that.
THEIR_HOST = """import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";
window.heard = []; window.wrong = [];
window.begin = async (html, given) => {
  const frame = document.querySelector("iframe");
  const bridge = window.bridge = new AppBridge(null, { name: "host", version: "1" },
    { openLinks: {}, serverTools: {}, serverResources: {}, logging: {}, updateModelContext: { text: {} } }, { hostContext: { theme: "dark", displayMode: "inline" } });
  bridge.oncalltool = async (params) => { window.heard.push(["tool", params.name]); return await window.callTool(params.name, params.arguments); };
  bridge.onupdatemodelcontext = async (params) => { window.heard.push(["context", params.content[0].text]); return {}; };
  bridge.addEventListener("sizechange", (params) => { window.heard.push(["size", params.height]); frame.style.height = params.height + "px"; });
  bridge.addEventListener("initialized", async () => {
    await bridge.sendToolInput({ arguments: given.arguments });
    await bridge.sendToolResult(given.result);
  });
  bridge.onerror = (error) => window.wrong.push(String(error));
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
  frame.srcdoc = html;
};"""


@pytest.fixture(scope="module")
def their_host(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A script with the host of ext-apps, made by esbuild."""
    installed = Path(sys.prefix) / "app-host"
    node = shutil.which("node")
    if node is None or not (installed / "node_modules" / "@modelcontextprotocol" / "ext-apps").is_dir():
        pytest.skip("the host of ext-apps is not installed: make app-host")
    esbuild = [node, str(installed / "node_modules" / "esbuild" / "bin" / "esbuild"), "--bundle", "--format=iife"]
    done = subprocess.run(esbuild, input=THEIR_HOST, cwd=installed, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@browser_only
def test_the_host_of_ext_apps_shows_the_page(browser: Any, call: Caller, their_host: str) -> None:
    """The handshake, input and result of a tool, calls of tools, size, what the model is told, another theme, the end."""
    with hosted(browser, call, "explore_graph", their_host, start="Tobias Fenn") as (frame, tab):
        expect(frame.locator("#side h1")).to_have_text("Tobias Fenn")
        expect(frame.locator("html")).to_have_attribute("data-theme", "dark")
        tab.page.evaluate("bridge.setHostContext({ theme: 'light', displayMode: 'inline' })")
        expect(frame.locator("html")).to_have_attribute("data-theme", "light")
        frame.locator("#side a[href^='#passage/']:visible").first.click()
        frame.wait_for_selector("mark")
        id = frame.locator("#side .note", has_text="[t").inner_text()[1:].partition("]")[0]
        heard = tab.gives("window.heard", lambda heard: ["size", 620] in heard and any(kind == "context" and id in one for kind, one in heard))
        assert {one for kind, one in heard if kind == "tool"} == {"explore_data"}
        told = [text for kind, text in heard if kind == "context"]
        assert re.fullmatch(r"On the explorer page the person is looking at e\d+\.", told[0]) and id in told[-1]
        assert tab.page.evaluate("bridge.getAppVersion().name") == "graphrag-mcp explorer"
        assert tab.page.evaluate("bridge.teardownResource({})") == {}
        assert tab.page.evaluate("window.wrong") == [] and tab.wrong == []
        assert all(url.startswith(("about:", "data:")) for url in tab.asked)


def test_the_page_is_offered_to_hosts_that_render_apps_alone(call: Caller, sample: Path) -> None:
    def offered(one: Caller) -> tuple[dict[str, Any], set[str]]:
        tools = one.portal.call(one.client.list_tools).tools
        return {tool.name: tool.meta for tool in tools}, {str(one.uri) for one in one.portal.call(one.client.list_resources).resources}

    tools, resources = offered(call)
    assert tools["explore_data"]["ui"]["visibility"] == ["app"]
    assert {name for name, meta in tools.items() if meta and "resourceUri" in meta.get("ui", {})} == {
        "explore_data", "explore_graph", "global_search", "drift_search"
    }  # fmt: skip
    assert "ui://graphrag/explore.html" in resources
    with connected(build_server(App(Settings(home=sample), "sample"))) as plain:
        tools, resources = offered(plain)
        assert "explore_data" not in tools and not any(tools.values()) and "ui://graphrag/explore.html" not in resources
        assert "Tobias Fenn" in plain.good("explore_graph", start="Tobias Fenn")["text"]


# ---- while it is open -------------------------------------------------------------------------------


# A message of the page goes away after a few seconds, and a slow test may look later.
TOLD = """() => { const status = document.getElementById('status'); window.told = [];
  new MutationObserver(() => window.told.push(status.textContent)).observe(status, { childList: true }); }"""


@browser_only
def test_an_edit_and_a_deletion_while_it_is_open(browser: Any, tmp_path: Path) -> None:
    folder, home = tmp_path / "docs", tmp_path / "home"
    shutil.copytree(SAMPLE, folder)
    assert run_cli("index", folder, "--home", home, "--corpus", "sample").returncode == 0
    with explored(home) as address:
        made = browser.new_context()
        tab = Tab(made).open(address)
        tab.go("changes").shows("first generation")
        (folder / "corrie-accord.md").write_text("# The Corrie Accord\n\nOlga Tamm signed the Corrie Accord in Tallinn.\n", "utf-8")
        (folder / "packet-2023-02-03.html").unlink()
        assert run_cli("index", folder, "--home", home, "--corpus", "sample").returncode == 0
        tab.page.evaluate(TOLD)
        tab.go(f"search/{quote('Olga Tamm')}").shows("Tallinn")
        tab.gives("window.told.some(text => text.startsWith('The index has changed.'))", True)
        tab.go("changes").shows("CHANGED DOCUMENTS (1)", "DOCUMENTS GONE (1)")
        shutil.rmtree(home / "corpora" / "sample")
        tab.go("entity/3")
        assert tab.heading == "This cannot be shown"
        assert [one for one in tab.wrong if "404" not in one] == []
        made.close()


SUBJECTS = {
    "bread": "flour yeast oven crust dough loaf bakery kneading rye sourdough", "ships": "hull mast anchor deck rudder keel harbour sail cargo crew",
    "bees": "hive queen nectar swarm drone comb pollen smoker wax honey", "rail": "train platform signal driver carriage track junction ticket station tunnel",
    "music": "violin cello concert sonata tempo orchestra rehearsal score pianist choir", "law": "judge appeal verdict witness statute court lawyer contract plea jury",
}  # fmt: skip


def test_the_only_entity_of_a_topic_stands_in_its_middle(tmp_path: Path) -> None:
    folder, home = tmp_path / "docs", tmp_path / "home"
    write(folder, {"bread.md": "Olga Tamm baked rye bread for the whole street. Then Olga Tamm sold it at the market.\n"})
    assert run_cli("index", folder, "--home", home, "--corpus", "sample").returncode == 0
    app = App(Settings(home=home), "sample")
    (topic,) = load(app, "map", {})["communities"]
    (dot,) = load(app, "map", {"under": str(topic["n"])})["entities"]
    assert (dot["x"], dot["y"]) == (topic["x"], topic["y"])


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
