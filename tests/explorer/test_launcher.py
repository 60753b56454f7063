"""How `explore` opens the browser: no other user of the machine may see the token."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.support.command import ROOT, clean_environment
from tests.support.workload import until

BROWSER = """#!/bin/sh
printf '%s\\n' "$@" > "$SEEN.part" && mv "$SEEN.part" "$SEEN"
"""


@pytest.mark.skipif(os.name == "nt", reason="file modes are those of POSIX")
def test_the_browser_gets_a_private_file_and_no_argument_holds_the_token(sample_home: Path, tmp_path: Path) -> None:
    browser, seen = tmp_path / "browser", tmp_path / "seen"
    browser.write_text(BROWSER, "utf-8")
    browser.chmod(0o755)
    env = clean_environment(BROWSER=f"{browser} %s", DISPLAY=":99", SEEN=str(seen))
    command = [sys.executable, "-m", "graphrag_mcp", "explore", "--home", str(sample_home), "--corpus", "sample"]
    with subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True) as process:
        try:
            printed = process.stdout.readline().strip()
            base, _, token = printed.partition("#token=")
            assert token
            until(seen.exists)
            (given,) = seen.read_text("utf-8").splitlines()
            assert given.startswith("file://") and token not in given
            file = Path(given.removeprefix("file://"))
            assert stat.S_IMODE(file.stat().st_mode) == 0o600 and not file.parent.stat().st_mode & 0o077
            assert re.search(r'content="0;url=([^"]+)"', file.read_text("utf-8"))[1] == printed
            request = urllib.request.Request(f"{base}session", b"", {"Authorization": f"Bearer {token}"})
            assert json.load(urllib.request.urlopen(request, timeout=30))["token"]
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(30)
    assert not file.exists()
