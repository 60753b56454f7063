"""Asking, adding, removing and opening on the page, in a real browser. Skipped without Chromium."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import expect

from tests.support import hostile_archives
from tests.support.browser import Tab, browser_only, explored, tab_of
from tests.support.command import run_here
from tests.support.files import write
from tests.support.openai_server import openai_server
from tests.support.workload import until

LETTER = "# A letter\n\nIda Noll lit the lamp of Ostra Point in 1911. Tobias Fenn kept the lamp for thirty years.\n"
QUESTION = "Who lit the lamp?"
SAID = "Ida Noll lit it [Data: Sources (t1)]. **Tobias Fenn** kept it <img src=x onerror=alert(1)>."


@contextmanager
def library(browser: Any, tmp_path: Path, files: dict[str, str | bytes], **environment: str) -> Iterator[tuple[Tab, Path]]:
    """The page on an index of these files: (its tab, the folder of the files)."""
    folder, home = write(tmp_path / "docs", files), tmp_path / "home"
    assert run_here("index", folder, "--home", home, "--corpus", "sample").returncode == 0
    with explored(home, "", folder, **environment) as address, tab_of(browser, address) as tab:
        yield tab, folder


@browser_only
def test_a_new_user_adds_files_asks_and_opens_without_a_terminal(browser: Any, tmp_path: Path) -> None:
    folder, home = tmp_path / "docs", tmp_path / "home"
    folder.mkdir()
    (tmp_path / "letter.md").write_text(LETTER, "utf-8")
    (tmp_path / "odd.bin").write_bytes(b"\x00\x01" * 300)
    with explored(home, "", folder) as address, tab_of(browser, address, refused="409") as tab:
        tab.is_headed("Start here").shows(str(folder / "added to graphrag"))
        tab.page.locator("input[type=file]").first.set_input_files([tmp_path / "letter.md", tmp_path / "odd.bin"])
        tab.shows("A letter", "Done: 1 added.", "odd.bin").is_headed("Documents")
        assert (folder / "added to graphrag" / "letter.md").read_text("utf-8") == LETTER
        # the same name again is written over only when that is asked for
        (tmp_path / "letter.md").write_text(LETTER.replace("1911", "1912"), "utf-8")
        held: list[Any] = []
        tab.page.route("**/data/library**", lambda route: held.append(route))
        tab.page.locator("input[type=file]").first.set_input_files([tmp_path / "letter.md"])
        tab.shows("Copied 0 of 1 file").gives("1", lambda _: bool(held))
        replace = tab.page.get_by_role("button", name="Replace them")
        assert replace.count() == 0, "a click would be lost while the view is drawn again"
        held[0].continue_()
        tab.page.unroute("**/data/library**")
        tab.shows("the name of another one there")
        assert "1911" in (folder / "added to graphrag" / "letter.md").read_text("utf-8")
        replace.click()
        tab.shows("Done: 1 changed.")
        # ask, narrow, and open what is cited
        tab.page.locator("#query").fill(QUESTION)
        tab.page.keyboard.press("Enter")
        tab.page.wait_for_selector("#side .hits mark")
        expect(tab.page.locator("#picture")).to_be_hidden()
        expect(tab.page.locator("#side .hits mark", has_text=re.compile("^lamp$"))).not_to_have_count(0)
        tab.page.locator("#side .hits a[href^='#passage/']").first.click()
        tab.page.wait_for_selector("#side .passage mark")
        with tab.page.context.expect_page() as opened:
            tab.page.get_by_role("button", name="Open the original").click()
        original = opened.value
        expect(original.locator("body")).to_contain_text("1912")
        assert original.evaluate("document.contentType") == "text/plain"
        original.close()
        in_field = "() => document.activeElement.id === 'query'"
        tab.go("history").shows(QUESTION).gives(in_field, False)
        tab.page.locator("#views a[href='#history']").click()
        tab.gives(in_field, True)
        tab.go("library").page.locator("#views a[href='#history']").click()
        tab.shows(QUESTION).gives(in_field, True)


@browser_only
def test_a_text_is_pasted_removed_and_brought_back(browser: Any, tmp_path: Path) -> None:
    with library(browser, tmp_path, {"letter.md": LETTER}) as (tab, folder):
        tab.go("library")
        tab.page.get_by_text("Paste a text").click()
        tab.page.get_by_label("Title").fill("<b>Note</b>")
        tab.page.get_by_role("textbox", name="Text").fill("Olga Tamm painted the lighthouse of Ostra Point white.")
        tab.page.get_by_role("button", name="Add the text").click()
        tab.shows("<b>Note</b>")
        tab.page.get_by_role("button", name="Remove A letter").click()
        tab.page.get_by_role("button", name="Remove", exact=True).click()
        tab.shows("TAKEN OUT")
        expect(tab.page.locator("tbody a", has_text="A letter")).to_have_count(0)
        assert "NEW FILES" not in tab.text and (folder / "letter.md").exists()
        tab.page.get_by_role("button", name="Undo").last.click()
        tab.page.locator("tbody a", has_text="A letter").wait_for()
        # a pasted text comes back from the state of the index before
        tab.page.get_by_role("button", name="Remove <b>Note</b>").click()
        tab.page.get_by_role("button", name="Remove", exact=True).click()
        tab.shows("Removed <b>Note</b>.")
        tab.page.locator("#side .report button").click()
        tab.shows("Done: 1 added.").page.locator("tbody a", has_text="<b>Note</b>").wait_for()
        expect(tab.page.locator(".documents tbody tr")).to_have_count(2)
        tab.go("search/Who painted the lighthouse?").shows("Olga Tamm painted the lighthouse of Ostra Point white.")
        tab.go("library")
        # a watched folder is indexed when a file changes
        tab.page.get_by_label("watch for changes").check()
        tab.shows("Folders are watched")
        (folder / "second.md").write_text("# Second\n\nMarta Quill sailed to Ostra Point.\n", "utf-8")
        until(lambda: "Second" in tab.go("history").go("library").text, every=1)


@browser_only
def test_an_answer_streams_in_with_its_sources_beside_it(browser: Any, tmp_path: Path) -> None:
    with openai_server(lambda messages, body: SAID) as model:
        given = {"GRAPHRAG_MCP_CHAT_MODEL": "small", "OPENAI_BASE_URL": model.url, "OPENAI_API_KEY": "k"}
        with library(browser, tmp_path, {"letter.md": LETTER}, **given) as (tab, _):
            tab.go(f"search/{QUESTION}")
            tab.shows("Answer by small.")
            answer = tab.page.locator("#side .answer")
            expect(answer.locator("a[href^='#passage/t']")).to_have_text("[1]")
            expect(answer.locator("strong")).to_have_text("Tobias Fenn")
            expect(answer).to_contain_text("<img src=x")
            expect(answer.locator("img")).to_have_count(0)
            expect(tab.page.locator("#side .beside")).to_contain_text("Sources of the answer")
            calls = len(model.requests)
            tab.go("library").go(f"search/{QUESTION}")
            tab.shows("Answer by small.")
            assert len(model.requests) == calls
            # an address that another page may have made asks no model by itself
            other = Tab(tab.page.context).open(tab.page.url.partition("#")[0] + "#search/Who kept the lamp?").page
            other.locator("#side .answer button").wait_for()
            assert len(model.requests) == calls
            other.locator("#side .answer button").click()
            other.locator("#side .answer strong").wait_for()
            assert len(model.requests) > calls
            other.close()
            # the whole collection instead of the best passages
            tab.page.get_by_role("link", name="Whole collection").click()
            tab.shows("Answer by small from the whole collection.")
            expect(tab.page).to_have_url(re.compile("/answer%3Dall$"))
            expect(tab.page.locator("#side .hits")).to_have_count(0)
            tab.go("library").page.get_by_role("button", name="What will it cost?").click()
            tab.shows("tokens in")


@browser_only
def test_a_question_on_all_documents_is_answered_from_all_of_them_without_a_model(browser: Any, sample_home: Path) -> None:
    with explored(sample_home) as address, tab_of(browser, address) as tab:
        tab.go("search/What is this collection about?")
        assert "Nothing in this corpus" not in tab.text
        tab.go("search/What is this about?")
        chosen = tab.page.locator(".choice a[aria-current]")
        expect(chosen).to_have_text("Whole collection")
        tab.page.locator("#side .answer a[href^='#community/']").first.wait_for()
        assert not tab.page.locator("#side .answer .topic > a").first.inner_text().startswith("["), "the title is the link"
        expect(tab.page.locator("#side .answer li a[href^='#passage/t']").nth(3)).to_be_attached()
        assert "documents-" not in tab.text
        tab.page.get_by_role("link", name="Best passages").click()
        tab.page.locator("#side .hits").wait_for()
        expect(tab.page.locator("#side .answer")).to_have_count(0)
        tab.go("search/Who found the sill?")
        expect(chosen).to_have_text("Best passages")
        tab.page.get_by_role("link", name="Whole collection").click()
        tab.page.locator("#side .answer a[href^='#passage/t']").first.wait_for()


@browser_only
def test_hostile_names_are_text_in_the_views_that_work(browser: Any, hostile: Path) -> None:
    with explored(hostile) as address, tab_of(browser, address, viewport={"width": 390, "height": 800}) as tab:
        for view in ("library", "search/Ada Lovelace/kind=md/folder=<img src=x onerror=alert(5)>", "search/Ada Lovelace", "history"):
            tab.go(view)
            assert tab.page.locator("#side img, #side script").count() == 0
            tab.gives("document.documentElement.scrollWidth - innerWidth", 0)
        assert re.search(r"\\u202e", tab.go("library").text) and tab.page.title() != "owned"


@browser_only
def test_a_pdf_is_opened_at_the_page_of_the_hit(browser: Any, tmp_path: Path) -> None:
    filler = "\n".join(f"Line {number} says that the lighthouse of Ostra Point is white and tall." for number in range(40))
    audit = hostile_archives.pages(filler, filler, "Tom Reed waited at the sluice.\n" + filler, filler)
    with library(browser, tmp_path, {"audit.pdf": audit}) as (tab, _):
        # the viewer of PDFs is no part of a browser without a window: the link is looked at, not the viewer
        tab.page.evaluate("HTMLAnchorElement.prototype.click = function () { window.opened = this.href }")
        tab.page.locator("#query").fill("Where did Tom Reed wait?")
        tab.page.keyboard.press("Enter")
        tab.page.locator("#side .hits a[href^='#passage/']").first.click()
        tab.page.get_by_role("button", name="Open the original").click()
        opened = tab.page.wait_for_function("() => window.opened").json_value()
        assert opened.endswith("#page=3")
        given = tab.page.request.get(opened)
        assert given.headers["content-type"] == "application/pdf" and given.body().startswith(b"%PDF-")
        assert given.headers["content-disposition"].startswith("inline") and "sandbox" not in given.headers["content-security-policy"]


@browser_only
def test_the_keyboard_alone_asks_opens_a_citation_finds_a_path_and_removes(browser: Any, tmp_path: Path) -> None:
    focused = "() => { const one = document.activeElement; return `${one.tagName} ${one.getAttribute('aria-label') || one.textContent}`; }"

    def held(name: str) -> None:
        tab.gives(focused, name)

    def tabbed(name: str) -> None:
        for _ in range(60):
            if tab.page.evaluate(focused) == name:
                return
            tab.page.keyboard.press("Tab")
        raise AssertionError(name)

    boat = "# The boat\n\nOlga Tamm sailed with Tobias Fenn to Ostra Point.\n"
    with library(browser, tmp_path, {"letter.md": LETTER, "boat.md": boat}) as (tab, _):
        tab.page.keyboard.press("Tab")  # the first is the field
        tab.page.keyboard.type(QUESTION)
        tab.page.keyboard.press("Enter")
        tab.page.wait_for_selector("#side .hits mark")
        tabbed("A [t2] A letter")
        tab.page.keyboard.press("Enter")
        tab.page.wait_for_selector("#side .passage mark")
        held("H1 A letter")  # a screen reader says it, and the next key goes on from there
        tab.go("graph")
        tabbed("SUMMARY List of 4 entities")
        tab.page.keyboard.press("Enter")
        tab.page.wait_for_selector(".nodes a")
        tabbed("A Ida Noll")
        tab.page.keyboard.press("Enter")
        tab.is_headed("Ida Noll")
        held("A Ida Noll")
        tab.page.keyboard.press("p")
        tabbed("A Olga Tamm")
        tab.page.keyboard.press("Enter")
        tab.is_headed("Ida Noll – Olga Tamm")
        tab.go("library")
        tabbed("BUTTON Remove A letter")
        tab.page.keyboard.press("Enter")
        tab.page.locator("tbody button", has_text="Keep").wait_for()
        held("BUTTON Remove")
        tab.page.keyboard.press("Enter")
        tab.shows("TAKEN OUT")
        tab.page.wait_for_function("() => document.activeElement.tagName === 'H1'")
        tabbed("BUTTON Undo")
        tab.page.keyboard.press("Enter")
        tab.page.locator("tbody a", has_text="A letter").wait_for()
