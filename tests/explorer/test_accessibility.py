"""Every view of the page under axe-core, light and dark, on a laptop and on a phone. `make app-host` installs axe-core."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.explorer.conftest import numbers
from tests.support.browser import Tab, browser_only, explored

AXE = Path(sys.prefix) / "app-host" / "node_modules" / "axe-core" / "axe.min.js"
# The rule skip-link takes a tab that a phone has scrolled out of sight for one; tabs lead to views, not to a place below.
RUN = """axe.run(document, {resultTypes: ['violations'], rules: {'skip-link': {enabled: false}}}).then((found) => JSON.stringify(
  found.violations.map((one) => [one.id, one.impact, one.nodes.slice(0, 3).map((node) => node.html.slice(0, 200))])))"""


@browser_only
@pytest.mark.parametrize("width, height, scheme", [(1280, 800, "light"), (390, 844, "dark")])
def test_axe_finds_nothing_in_any_view(browser: Any, sample: Path, width: int, height: int, scheme: str) -> None:
    if not AXE.is_file():
        pytest.skip("axe-core is not installed: make app-host")
    known = numbers(sample)["entities"]
    views = ("map", "community/5", "graph", f"entity/{known['Narrows']}", f"path/{known['Narrows']}/{known['Tobias Fenn']}", "passage/t1", "document/1",
             "search/Who found the sill?", "search/What is this about?", "library", "links", "timeline", "changes", "drift", "history")  # fmt: skip
    wrong: dict[str, Any] = {}
    with explored(sample) as address:
        made = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        tab = Tab(made).open(address)
        inside = made.new_cdp_session(tab.page)
        for view in views:
            assert tab.go(view).heading != "This cannot be shown", view
            inside.send("Runtime.evaluate", {"expression": AXE.read_text("utf-8")})  # which the page's policy would refuse
            found = inside.send("Runtime.evaluate", {"expression": RUN, "awaitPromise": True})
            if violations := json.loads(found["result"]["value"]):
                wrong[view] = violations
        made.close()
    assert wrong == {} and tab.wrong == []
