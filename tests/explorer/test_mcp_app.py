"""The page as an MCP App, in a host of ours and in that of ext-apps."""

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
from mcp.client.extension import advertise
from mcp.server.apps import APP_MIME_TYPE, EXTENSION_ID
from playwright.sync_api import expect

from graphrag_mcp.app import App
from graphrag_mcp.server import build_server
from graphrag_mcp.settings import Settings
from tests.support.browser import Tab, browser_only
from tests.support.client import Caller, connected

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
