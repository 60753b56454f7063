"""The page in a real browser: one tab, and the commands that serve the page."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.support.command import ROOT, clean_environment
from tests.support.workload import until

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SECONDS = 120_000  # milliseconds that a view may take before a test fails: the machine may be busy

expect.set_options(timeout=SECONDS)
browser_only = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


@contextmanager
def explored(home: Path, corpus: str = "sample", cwd: Path = ROOT, **environment: str) -> Iterator[str]:
    """The address that `graphrag-mcp explore` prints; without a corpus that of the folder where it is started."""
    command = [sys.executable, "-m", "graphrag_mcp", "explore", "--no-browser", "--home", str(home)]
    command += ["--corpus", corpus] if corpus else []
    server = subprocess.Popen(command, cwd=cwd, env=clean_environment(**environment), stdout=subprocess.PIPE, text=True)
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


@contextmanager
def tab_of(browser: Any, address: str, refused: str = "no status", **options: Any) -> Iterator[Tab]:
    """A tab on an address, in a browser of its own. Nothing may be wrong when it is closed; the browser tells of a
    request that the server refuses with the status `refused`."""
    context = browser.new_context(**options)
    tab = Tab(context).open(address)
    yield tab
    assert [message for message in tab.wrong if refused not in message] == []
    context.close()
