"""A watch of folders goes on whatever becomes of them."""

from __future__ import annotations

import contextlib
import os
import queue
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphrag_mcp.jobs.watch import changes

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="modes and links of POSIX")


class Watch:
    """A watch in a thread. `seen` gives what it yields: names of the paths that are there, or the name of the
    one that is gone."""

    def __init__(self, folder: Path, names: str) -> None:
        self.end, self._told = threading.Event(), queue.Queue[str]()
        paths = [folder / name for name in names.split()]

        def run() -> None:
            for there in changes(paths, folder / "home", lambda path: self._told.put(f"{Path(path).name} is gone"), self.end):
                self._told.put(" ".join(path.name for path in there))

        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()

    def sees(self, what: str) -> None:
        """Wait until it tells this; it may have told the change before more than once."""
        while self._told.get(timeout=60) != what:
            pass

    def rest(self) -> list[str]:
        """Wait until the last change has been told in full: what it still told."""
        told: list[str] = []
        with contextlib.suppress(queue.Empty):
            while True:
                told.append(self._told.get(timeout=3))
        return told


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    for name in ("a/sub", "b", "c", "d"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "x.md").write_text("It rang.", "utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "c")
    yield tmp_path
    for name in ("a", "a/sub"):
        (tmp_path / name).chmod(0o755)


@pytest.fixture
def watch(folder: Path) -> Iterator[Watch]:
    watch = Watch(folder, "a b link")
    watch.sees("a b link")
    yield watch
    watch.end.set()
    watch.thread.join(60)


def test_the_others_are_watched_while_a_folder_is_gone(folder: Path, watch: Watch) -> None:
    shutil.rmtree(folder / "b")
    watch.sees("b is gone")
    watch.rest()
    (folder / "a" / "y.md").write_text("It rang again.", "utf-8")
    watch.sees("a link")
    watch.rest()
    (folder / "b").mkdir()
    watch.sees("a b link")


def test_a_link_that_leads_elsewhere_is_followed(folder: Path, watch: Watch) -> None:
    (folder / "new").symlink_to(folder / "d")
    os.replace(folder / "new", folder / "link")
    watch.sees("a b link")
    watch.rest()
    (folder / "d" / "y.md").write_text("It rang again.", "utf-8")
    watch.sees("a b link")


def again_without_rights_of_root(test: str) -> None:
    """Run a test in a process of root that may read no more than the modes of files say."""
    drop = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    assert "WITHOUT_RIGHTS_OF_ROOT" not in os.environ, "the modes of files mean nothing on this file system"
    if not shutil.which("setpriv") or subprocess.run([*drop, "true"], capture_output=True).returncode:
        pytest.skip("root reads everything")
    root = Path(__file__).parents[2]
    command = [*drop, sys.executable, "-m", "pytest", "-vv", "-p", "no:cacheprovider", test]
    environment = os.environ | {"WITHOUT_RIGHTS_OF_ROOT": "1"}
    ran = subprocess.run(command, cwd=root, capture_output=True, text=True, env=environment, timeout=300)
    assert "1 passed" in ran.stdout, ran.stdout + ran.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a", "a/sub"])
def test_a_folder_that_may_not_be_read_for_a_while_is_watched_again(
    folder: Path, watch: Watch, name: str, request: pytest.FixtureRequest
) -> None:
    (folder / name).chmod(0)
    if os.access(folder / name, os.R_OK):
        again_without_rights_of_root(request.node.nodeid)
        return
    watch.rest()
    for change in (lambda: shutil.rmtree(folder / "b"), (folder / "b").mkdir):  # each is a new watch
        change()
        watch.rest()
    (folder / name).chmod(0o755)
    watch.rest()
    (folder / name / "y.md").write_text("It rang again.", "utf-8")
    watch.sees("a b link")
