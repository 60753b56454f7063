"""The browser, and the indexes that the page shows."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import sync_playwright

from graphrag_mcp.app import App
from graphrag_mcp.query.drift import Drift
from graphrag_mcp.settings import Settings
from tests.support.browser import CHROMIUM, Tab, explored
from tests.support.command import run_here

SCRIPT = "<script>document.title='owned'</script><img src=x onerror=alert(1)>"
TURNED = "abc\u202etxt.exe"


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


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, home = tmp_path_factory.mktemp("hostile"), tmp_path_factory.mktemp("hostile-home")
    long = "Bartholomew" * 910
    (folder / "<img src=x onerror=alert(2)>.md").write_text(f"# {SCRIPT}\n\nAda Lovelace met Charles Babbage in London. {SCRIPT}\n", "utf-8")
    (folder / "turned.md").write_text(f"# {TURNED}\n\nAda Lovelace wrote to {TURNED}. كتبت ليلى حداد رسالة إلى سامي نصار في بيروت. 😀 Ada Lovelace laughed.\n", "utf-8")
    (folder / "long.md").write_text(f"# {long}\n\n{long} met Ada Lovelace. Mr {long} Smith wrote to Charles Babbage.\n", "utf-8")
    (folder / "json.md").write_text('# </script><script>alert(3)</script>\n\nAda Lovelace said "</script>" -->. api_key = "sk-proj-Zq83hfKd92Lw0xPvT4mN7bYc"\n', "utf-8")
    done = run_here("index", folder, "--home", home, "--corpus", "sample")
    assert done.returncode == 0, done.stderr
    return home


def numbers(home: Path, corpus: str = "sample") -> dict[str, dict[str, int]]:
    """Numbers of entities by title and of documents by uri."""
    snapshot = App(Settings(home=home), corpus).snapshot()
    entities = {row["title"]: row["n"] for row in snapshot.rows("entities", "", ["title", "n"]).to_pylist()}
    documents = {row["uri"]: row["n"] for row in snapshot.rows("documents", "", ["uri", "n"]).to_pylist()}
    return {"entities": entities, "documents": documents}
