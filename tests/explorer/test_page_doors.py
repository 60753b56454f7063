"""Who may see the page: requests of others, other sites, tokens, a file without a server, addresses in results."""

from __future__ import annotations

import http.client
import http.server
import json
import re
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from playwright.sync_api import expect

from graphrag_mcp.explorer import page as pages
from graphrag_mcp.text.tokens import count_tokens
from tests.support.browser import Tab, browser_only, explored, serving
from tests.support.command import run_cli

TEMPLATE = 200_000  # bytes, a fifth of what the strictest host of MCP Apps takes (1 MiB)


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
    ("global_search", {"query": "What are the main topics?"}, "“What are the main topics?”"),
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
        others = [("local_search", {"query": "Tobias Fenn", **named}), ("global_search", {"query": "tide letters", **named}), ("get_entity", {"id_or_name": "Tobias Fenn", **named})]
        assert all("/explore/" not in text for text in told(base, token, others))


def test_the_address_of_the_page_keeps_within_the_budget(sample: Path) -> None:
    with serving(sample, "--corpus", "sample") as base:
        budgets = (200, 420, 800, 1_500, 3_000)
        calls = [("global_search", {"query": "What are the main topics?", "max_tokens": budget}) for budget in budgets]
        calls += [("explore_graph", {"start": "Narrows", "hops": 3, "max_tokens": budget}) for budget in budgets]
        for text, (tool, arguments) in zip(told(base, "", calls), calls, strict=True):
            assert count_tokens(text) <= arguments["max_tokens"], (tool, arguments)
            assert arguments["max_tokens"] == 200 or text.splitlines()[-1].startswith("Page for people: "), (tool, arguments)
