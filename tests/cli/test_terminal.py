"""What a person sees: hits, `status` with what changed on disk, and `index --watch`."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from graphrag_mcp.jobs.watch import heeded
from tests.support.command import clean_environment, run_cli, run_here


def test_status_says_what_has_changed_on_disk(tmp_path: Path) -> None:
    folder, home = tmp_path / "notes", tmp_path / "home"
    folder.mkdir()
    for name in ("a", "b", "c"):
        (folder / f"{name}.md").write_text(f"The {name} bell was found in Port Kell.", "utf-8")
    run_here("index", folder, "--home", home)
    assert "On disk: nothing has changed since." in run_here("status", "--home", home).stdout
    (folder / "d.md").write_text("new", "utf-8")
    (folder / "a.md").write_text("changed", "utf-8")
    (folder / "b.md").unlink()
    disk = {"new": ["notes/d.md"], "changed": ["notes/a.md"], "deleted": ["notes/b.md"], "unread": [], "scans": [], "pictures": [], "pictures_left_out": []}
    assert json.loads(run_here("status", "--json", "--home", home).stdout)["disk"] == disk
    assert "On disk: 1 file new, 1 file changed, 1 file deleted since: notes/d.md" in run_here("status", "--home", home).stdout
    shutil.rmtree(folder)
    disk = {"new": [], "changed": [], "deleted": ["notes/a.md", "notes/b.md", "notes/c.md"], "unread": [], "scans": [], "pictures": [], "pictures_left_out": []}
    assert json.loads(run_here("status", "--json", "--home", home).stdout)["disk"] == disk


def test_watch_heeds_what_is_below_the_folder_that_was_named(tmp_path: Path) -> None:
    """A folder in `node_modules`, or beside a home whose name begins its own, was watched and never seen to change."""
    place, home = tmp_path / "node_modules" / "ind-notes", tmp_path / "node_modules" / "ind"
    heeds = heeded([str(place)], home)
    for name in ("a.md", "deep/er/a.md", "venv.md", "ind"):
        assert heeds(None, str(place / name)), name
    assert heeds(None, str(place))
    for name in (".git/index", "node_modules/a.md", "deep/.venv/a.md", "a.md~", ".a.md.swp"):
        assert not heeds(None, str(place / name)), name
    heeds = heeded([str(tmp_path / "node_modules")], home)
    assert not heeds(None, str(home)) and not heeds(None, str(home / "corpora" / "a.lance"))
    assert heeds(None, str(tmp_path / "node_modules" / "index.md"))


@pytest.mark.skipif(sys.platform == "win32", reason="ends the process by a signal")
def test_watch_indexes_again_after_a_change_until_it_is_interrupted(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.md").write_text("The bell was found in Port Kell.", "utf-8")
    command = [sys.executable, "-m", "graphrag_mcp", "index", str(folder), "--watch", "--home", str(folder / "home")]
    # A shell starts background processes with SIGINT ignored, and the child would inherit that.
    child = subprocess.Popen(
        command, env=clean_environment(PYTHONUNBUFFERED="1"), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    said = []
    try:
        for line in child.stdout or ():
            said.append(line)
            if "watching for changes" in line:
                (folder / "b.md").write_text("Ada Brandt rang it.", "utf-8")
            elif "1 added, 1 unchanged" in line:
                child.send_signal(signal.SIGINT)
        assert child.wait(timeout=60) == 130, said
    finally:
        child.kill()
    assert any("1 added, 1 unchanged" in line for line in said), said
    refused = run_cli("index", folder, "--watch", "--dry-run", "--home", tmp_path / "home")
    assert refused.returncode == 2 and "exclude each other" in refused.stderr
