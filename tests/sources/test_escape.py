"""No path, link, name or race brings a byte from outside the folders that the server may read.

The short form of a campaign: `SWAPS` races of each kind here, 1,000 in campaigns/hostile.py.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from graphrag_mcp.app import App
from graphrag_mcp.errors import BadInput, GraphRAGError, OutsideRoots
from graphrag_mcp.settings import Settings
from graphrag_mcp.sources.decode import ReadError
from graphrag_mcp.sources.read import load
from graphrag_mcp.sources.walk import find, hash_of

pytestmark = pytest.mark.skipif(os.name != "posix", reason="made of links, and of names as POSIX has them")

SECRET = "outside-0f8e1c"
SWAPS = 200
Swap = Callable[[Path], None]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder that may be read, beside folders that may not."""
    base = tmp_path / "base"
    for name, text in {
        "root/a.md": "inside\n", "root/sub/b.md": "inside too\n", "root/sub/deep/c.md": "inside\n", "other/d.md": "a second root\n",
        "outside/secret.md": SECRET, "root-evil/secret.md": SECRET, "roo/secret.md": SECRET, "ROOT/secret.md": SECRET,
        "outside/.gitignore": f"# {SECRET}\n", "outside/sub/secret.md": SECRET,
    }.items():  # fmt: skip
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_text(text)
    here, outside = base / "root", base / "outside"
    links = {
        "link.md": outside / "secret.md", "link": outside, "sub/up": "../../outside", "chain": "chain2", "chain2": "sub/up",
        "loop": "loop", "self": ".", "parent": "..", "proc": "/proc/self/root", "in": "sub", "dangling": outside / "nothing",
        "dot": "sub/../../outside/secret.md", "fd": "/dev/fd", "cwd": "/proc/self/cwd", "absolute": "/etc",
    }  # fmt: skip
    for name, target in links.items():
        os.symlink(target, here / name)
    os.link(outside / "secret.md", here / "hard.md")
    os.mkfifo(here / "pipe")
    (here / "..\\outside").mkdir()
    return here


def app_of(root: Path) -> App:
    return App(Settings(home=root.parent / "home", roots=(root, root.parent / "other")))


def reach(app: App, path: str) -> str:
    """Everything that comes back when a tool is given this path: texts, uris, reasons, refusals."""
    try:
        allowed = str(app.allowed(path))
    except GraphRAGError as error:
        return str(error)
    within = [str(folder.resolve()) for folder in app.settings.roots]
    found = find([allowed], {}, app.settings, within)
    said = [str(found.errors), str(found.skipped)]
    for file in found.files:
        try:
            said += [
                file.uri,
                hash_of(file),
                *(f"{document.title}: {document.text}" for document in load(file, app.settings)),
            ]
        except (OSError, ReadError) as error:
            said.append(str(error))
    return "\n".join(said)


OUTSIDE = [
    "..", "../", "../outside", "../outside/secret.md", "sub/../../outside/secret.md", "./../outside", "sub/deep/../../../outside",
    "../root-evil", "../root-evil/secret.md", "../roo/secret.md", "../ROOT/secret.md", "../root/../outside", "sub//..//..//outside",
    "link", "link/", "link/secret.md", "link.md", "link.md/", "link/.", "link/../outside/secret.md", "sub/up", "sub/up/secret.md",
    "chain", "chain/secret.md", "dot", "parent", "parent/outside", "self/../outside", "self/self/self/../outside", "in/up/secret.md",
    "/", "/etc/passwd", "/etc/shadow", "/proc/self/environ", "/proc/self/root", "/proc/self/fd/0", "/proc/1/environ", "proc/etc/passwd",
    "proc", "fd/0", "fd", "cwd", "absolute/passwd", "/dev/zero", "/dev/fd/0", "/dev/stdin", "~", "~/.ssh/id_rsa", "~root", "~/../../etc/passwd",
    "file:///etc/passwd", "FILE:///etc/passwd", "file://localhost/etc/passwd", "file:///{base}/outside/secret.md", "file://{root}/../outside",
    "file://{root}/%2e%2e/outside/secret.md", "file://{root}%2f..%2foutside", "{root}/../outside/secret.md", "{root}-evil/secret.md",
    "{base}/outside", "{base}/root/link", "{base}//outside/secret.md", "//{base}/outside/secret.md", "{base}/root/./sub/./../../outside",
    "dangling", "{base}/ROOT/secret.md",
]  # fmt: skip
NO_PATH = [
    "", " ", "\0", "a.md\0", "\0/../outside/secret.md", "../outside/secret.md\0.md", "file:///a%00b", "http://127.0.0.1/a", "ftp://x/y",
    "file://server/share/x", "smb://server/share", "\\\\server\\share\\x", "//server/share", "C:\\Windows\\win.ini", "..\\outside\\secret.md",
    "%2e%2e/outside/secret.md", "..%2foutside", "..;/outside", "a.md/../../outside/secret.md/", "loop", "loop/x", "nowhere", "A.MD/x",
    "sub/\u2024\u2024/\u2024\u2024/outside", "\uff0e\uff0e/outside", "x" * 5000, "/".join(["sub"] * 2000), "~nobody-of-that-name/x", "\ud800",
    "data:text/plain,x", "jar:file:///etc/passwd!/x", "a.md::$DATA", "sub/..\x2f..\x2f..\x2froot-evil", "$HOME", "`id`", "{a,b}", "*",
]  # fmt: skip


@pytest.mark.parametrize("path", OUTSIDE)
def test_a_path_that_leads_outside_is_refused_and_says_nothing_of_what_is_there(root: Path, path: str) -> None:
    path = path.replace("{root}", str(root)).replace("{base}", str(root.parent))
    with pytest.raises((OutsideRoots, BadInput)) as refused:
        app_of(root).allowed(path)
    assert SECRET not in str(refused.value) and "secret.md" not in str(refused.value).replace(path, "").replace(
        repr(path), ""
    )
    assert SECRET not in reach(app_of(root), path)


@pytest.mark.parametrize("path", NO_PATH)
def test_what_is_no_path_is_refused(root: Path, path: str) -> None:
    with pytest.raises((OutsideRoots, BadInput)):
        app_of(root).allowed(path)


@pytest.mark.parametrize("name", ["secret.md", "nothing.md"])
def test_a_refusal_does_not_tell_whether_the_file_is_there(root: Path, name: str) -> None:
    with pytest.raises(OutsideRoots, match="is outside the folders this server may read") as refused:
        app_of(root).allowed(f"../outside/{name}")
    assert name in str(refused.value)


@pytest.mark.parametrize("path", ["a.md", "./a.md", "sub/../a.md", "in/b.md", "self/a.md", "file://{root}/a.md", "{root}/sub/b.md",
                                  "{base}/other", "../other/d.md", "../root/a.md", "sub/deep", "."])  # fmt: skip
def test_what_lies_inside_is_read(root: Path, path: str) -> None:
    """So that the tests above can fail: the same way in, for paths that may be read."""
    said = reach(app_of(root), path.replace("{root}", str(root)).replace("{base}", str(root.parent)))
    assert ("inside" in said or "a second root" in said) and SECRET not in said


def test_a_name_is_found_in_whichever_form_its_accents_are_written(root: Path) -> None:
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    (root / decomposed).mkdir()
    (root / decomposed / f"{decomposed}.md").write_text("inside", "utf-8")
    assert "inside" in reach(app_of(root), f"{composed}/{composed}.md")
    (root / "link to").symlink_to(root.parent / "outside")
    (root.parent / "outside" / decomposed).write_text(SECRET, "utf-8")
    for path in (f"link to/{composed}", f"../outside/{composed}", f"{composed}/../../outside/{composed}"):
        with pytest.raises(OutsideRoots):
            app_of(root).allowed(path)


def test_walking_the_folder_follows_no_link_hard_or_soft(root: Path) -> None:
    found = find([str(root)], {}, Settings(home=root))
    assert [file.uri for file in found.files] == ["root/a.md", "root/sub/b.md", "root/sub/deep/c.md"]
    assert found.skipped == {
        "hard link to a file elsewhere (see the setting hard_links)": 1,
        "hidden": 1,
        "not a regular file": 1,
        "symbolic link": 15,
    }


def test_a_hard_link_whose_names_all_lie_inside_is_read(root: Path) -> None:
    os.link(root / "a.md", root / "sub/again.md")
    found = find([str(root)], {}, Settings(home=root))
    assert [file.uri for file in found.files][:3] == ["root/a.md", "root/sub/again.md", "root/sub/b.md"]
    assert [document.text for document in load(found.files[1], Settings(home=root))] == ["inside\n"]
    part = find([str(root / "sub")], {}, Settings(home=root))  # its other name lies beside this folder
    assert [file.uri for file in part.files] == ["sub/b.md", "sub/deep/c.md"]


def test_a_hard_link_named_itself_is_refused_unless_the_setting_allows_it(root: Path) -> None:
    assert "hard link" in reach(app_of(root), "hard.md") and SECRET not in reach(app_of(root), "hard.md")
    allowing = Settings(home=root, hard_links=True)
    for path in (root, root / "hard.md"):
        (file,) = (file for file in find([str(path)], {}, allowing).files if file.uri.endswith("hard.md"))
        assert [document.text for document in load(file, allowing)] == [SECRET]


def test_what_moved_outside_between_the_check_and_the_walk_is_refused(root: Path) -> None:
    allowed = str(app_of(root).allowed("sub"))
    shutil.rmtree(root / "sub")
    os.symlink("../outside", root / "sub")
    found = find([allowed], {}, Settings(home=root), [str(root)])
    assert found.files == [] and found.errors == [
        {"path": allowed, "reason": "outside the folders this server may read"}
    ]


# ---- races ----------------------------------------------------------------------------------------


def _folder_for_link(root: Path) -> None:
    os.rename(root / "sub", root.parent / "aside")
    os.symlink("../outside", root / "sub")
    os.unlink(root / "sub")
    os.rename(root.parent / "aside", root / "sub")


def _folder_for_folder(root: Path) -> None:
    """Moved out and in again: what is open must not be read by its name."""
    os.rename(root / "sub", root.parent / "aside")
    os.symlink(root.parent / "outside/sub", root / "sub")
    time.sleep(0)
    os.unlink(root / "sub")
    os.rename(root.parent / "aside", root / "sub")


def _file_for(make: Callable[[Path], None]) -> Swap:
    def swap(root: Path) -> None:
        make(root / "sub/new")
        os.rename(root / "sub/new", root / "sub/b.md")
        (root / "sub/new").write_text("inside again\n")
        os.rename(root / "sub/new", root / "sub/b.md")

    return swap


RACES: dict[str, Swap] = {
    "a folder for a link": _folder_for_link,
    "a folder for another": _folder_for_folder,
    "a file for a link": _file_for(lambda path: os.symlink("../../outside/secret.md", path)),
    "a file for a hard link": _file_for(lambda path: os.link(path.parents[2] / "outside/secret.md", path)),
    "a file for a pipe": _file_for(os.mkfifo),
    "an ignore file for a link": lambda root: (
        os.symlink("../../outside/.gitignore", root / "sub/.gitignore"), os.unlink(root / "sub/.gitignore"))[1],
}  # fmt: skip


def race(root: Path, swap: Swap, swaps: int) -> tuple[int, int, set[str]]:
    """Swap while another thread reads: how often it read, how often what was inside came back, and what else did."""
    app, done = app_of(root), threading.Event()
    reads, inside, seen = 0, 0, set()

    def work() -> None:
        for _ in range(swaps):
            swap(root)
            time.sleep(0.0005)
        done.set()

    swapping = threading.Thread(target=work)
    swapping.start()
    while not done.is_set():
        for path in ("sub", "sub/b.md"):
            said = reach(app, path)
            reads, inside = reads + 1, inside + ("inside" in said)
            if SECRET in said or "secret.md" in said:
                seen.add(said)
    swapping.join()
    return reads, inside, seen


@pytest.mark.parametrize("name", RACES)
def test_a_swap_between_any_two_steps_brings_nothing_from_outside(root: Path, name: str) -> None:
    reads, inside, seen = race(root, RACES[name], SWAPS)
    assert seen == set()
    assert reads > 20 and inside, "nothing was raced"


def test_a_root_that_a_link_has_replaced_since_the_start_is_none_any_more(root: Path) -> None:
    app = app_of(root)
    assert app.allowed("a.md") == root / "a.md"
    root.rename(root.parent / "moved")
    os.symlink(root.parent / "outside", root)
    with pytest.raises(GraphRAGError) as refused:
        app.allowed(str(root / "secret.md"))
    assert SECRET not in str(refused.value)
