"""`python docs/screens.py [--folder DIR] [NAME ...]`: the twelve pictures of the page, of the sample corpus, as WebP.

Takes Chromium and Playwright of this machine. Each picture is a view of `graphrag-mcp explore` on an index that is made
for it, in a folder that is deleted afterwards, without the sample's texts in Chinese, for which not every machine has
letters. The model that answers in `answer` is a script: it stands for one at the address of `base_url`.
"""

from __future__ import annotations

import argparse
import base64
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SAMPLE = ROOT / "docs" / "sample"
QUESTION = "Who found the sill in the Narrows?"
WHOLE = "What is this collection about?"
QUALITY = 72  # of WebP: letters of 12 pixels are clean, and twelve pictures take about 500 kB


@dataclass(frozen=True, slots=True)
class Screen:
    """A picture: its view, what is done in it before, and how the browser looks. `view` may hold names of
    entities and titles of documents in braces, which become their numbers."""

    name: str
    view: str
    scheme: str = "light"
    width: int = 1200
    height: int = 750
    served: str = "sample"  # by which of the servers: an empty index, the sample, the sample with a model
    wait: str = ""  # a selector
    click: str = ""  # a selector


SCREENS = (
    Screen("start", "library", served="empty", height=520),
    Screen("topics", "map"),
    Screen("topic", "community/{1}", height=700),
    Screen("ask", f"search/{QUESTION}"),
    Screen("answer", f"search/{QUESTION}", served="model", wait=".answer .topic, .beside .sources"),
    Screen("whole", f"search/{WHOLE}/answer=all", wait=".answer .topic"),
    Screen("graph", "graph", scheme="dark"),
    Screen("entity", "entity/{Harbour Tide Authority}"),
    Screen("path", "path/{Ines Calloway}/{Tobias Fenn}", height=620),
    Screen("source", "entity/{Ines Calloway}", click="#side a[href^='#passage/']", wait=".passage mark"),
    Screen("documents", "library"),
    Screen("timeline", "timeline", height=620),
)  # fmt: skip
# Of the scripted model; the ids of the documents in braces are read from the prompt.
ANSWER = """\
The Authority's survey boat sounded the Narrows and found the sill at 11.2 metres {harbour-log.csv#log-2021}. Before that:

- **Ines Calloway** wrote in her notebook: "A sill? Ask the sounding people." {calloway-notebooks.md}
- The sounding roll of the Meridian Tern was found where a lighthouse keeper had said that it would be {corrie-accord.md}."""
ROW = re.compile(r"\[(t\d+)\][^\n]*\(skerrow/(\S+?):\d+-\d+\)")


def answered(messages: Sequence[Any], _: Any) -> str:
    """The reply of the scripted model to a prompt."""
    reply = ANSWER
    for id, name in ROW.findall("\n".join(str(one["content"]) for one in messages)):
        reply = reply.replace("{" + name + "}", f"[Data: Sources ({id})]")
    return reply


@contextmanager
def served(folder: Path, home: Path, *options: str, **environment: str) -> Iterator[str]:
    """The address that `graphrag-mcp explore` prints in a folder."""
    command = [sys.executable, "-m", "graphrag_mcp", "explore", "--no-browser", "--home", str(home)]
    given = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    server = subprocess.Popen([*command, *options], cwd=folder, env=given, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
    finally:
        server.terminate()
        server.wait(60)


def numbered(view: str, home: Path) -> str:
    """A view with numbers in the place of the names of entities."""
    from graphrag_mcp.app import App
    from graphrag_mcp.settings import Settings

    if "{" not in view:
        return view
    snapshot = App(Settings(home=home), "skerrow").snapshot()
    for row in snapshot.rows("entities", "", ["title", "n"]).to_pylist():
        view = view.replace("{" + row["title"] + "}", str(row["n"]))
    largest = max(snapshot.rows("communities", "", ["n", "size", "level"]).to_pylist(), key=lambda row: (row["size"], -row["n"]))  # fmt: skip
    return view.replace("{1}", str(largest["n"]))


def taken(browser: Any, address: str, screen: Screen, home: Path) -> bytes:
    """The picture of a view."""
    made = browser.new_context(viewport={"width": screen.width, "height": screen.height}, color_scheme=screen.scheme)
    made.set_default_timeout(120_000)  # milliseconds; a machine that runs tests beside it is slow
    page = made.new_page()
    page.goto(address)
    page.wait_for_selector("#side h1")
    page.evaluate("view => { location.hash = '#' + view; }", numbered(screen.view, home))
    page.wait_for_function(
        "view => decodeURIComponent(location.hash) === '#' + decodeURIComponent(view) && document.querySelector('#side h1')"
        " && !document.getElementById('status').textContent.startsWith('Loading')",
        arg=numbered(screen.view, home),
    )
    if screen.click:
        page.locator(screen.click).first.click()
    if screen.wait:
        page.wait_for_selector(screen.wait)
    page.wait_for_timeout(500)
    wanted = {"format": "webp", "quality": QUALITY}
    shot = made.new_cdp_session(page).send("Page.captureScreenshot", wanted)
    made.close()
    return base64.b64decode(shot["data"])


def draw(folder: Path, shown: Path, screens: Sequence[Screen]) -> None:
    """Write the pictures into a folder; the documents lie in the folder `shown`."""
    from playwright.sync_api import sync_playwright

    sys.path.insert(0, str(ROOT))
    from tests.support.openai_server import openai_server

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as temporary, sync_playwright() as run:
        base, home, empty = shown / "skerrow", Path(temporary) / "home", shown / "notes"
        shutil.copytree(SAMPLE, base, ignore=shutil.ignore_patterns("zh"))
        empty.mkdir()
        index = [sys.executable, "-m", "graphrag_mcp", "index", str(base), "--home", str(home)]
        subprocess.run([*index, "--corpus", "skerrow"], cwd=ROOT, check=True, capture_output=True)
        named = ("--corpus", "skerrow")
        options = {"executable_path": chromium, "args": ["--no-sandbox", "--disable-gpu"]}
        browser = run.chromium.launch(**options)
        with openai_server(answered) as model:
            names = ("GRAPHRAG_MCP_CHAT_MODEL", "OPENAI_BASE_URL", "OPENAI_API_KEY")
            settings = dict(zip(names, ("your-model", model.url, "k"), strict=True))
            servers = {
                "empty": lambda: served(empty, Path(temporary) / "other"),
                "sample": lambda: served(base, home, *named),
                "model": lambda: served(base, home, *named, **settings),
            }
            for screen in screens:
                with servers[screen.served]() as address:
                    picture = folder / f"{screen.name}.webp"
                    picture.write_bytes(taken(browser, address, screen, home))
                    picture.chmod(0o644)
        browser.close()


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("names", nargs="*", metavar="NAME", help="of pictures; all without one")
    options.add_argument("--folder", type=Path, default=ROOT / "docs" / "pictures")
    given = options.parse_args()
    screens = [one for one in SCREENS if not given.names or one.name in given.names]
    # The name of this folder stands in the pictures; an error where there is such a folder.
    shown = Path(tempfile.gettempdir()) / "documents"
    shown.mkdir()
    try:
        draw(given.folder, shown, screens)
    finally:
        shutil.rmtree(shown)
    return 0


if __name__ == "__main__":
    sys.exit(main())
