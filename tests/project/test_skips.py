"""CI skips nothing in silence (tests/support/skips.py)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import ROOT, clean_environment
from tests.support.skips import allowed

BODY = """
import pytest
@pytest.mark.skipif(True, reason="{reason}")
def test_marked(): pass
def test_called(): pytest.skip("{reason}")
def test_import(): pytest.importorskip("no_such_package", reason="{reason}")
@pytest.fixture
def part(): pytest.skip("{reason}")
def test_fixture(part): pass
@pytest.mark.xfail
def test_known(): assert False
def test_passes(): pass
"""
MODULE = 'import pytest\npytest.importorskip("no_such_package", reason="{reason}")\ndef test_one(): pass\n'
EMPTY = 'import pytest\n@pytest.mark.parametrize("one", [])\ndef test_one(one): pass\n'


def summary(folder: Path, text: str, ci: str, *options: str) -> str:
    """The last line of a run of pytest over one file."""
    (folder / "test_it.py").write_text(text, "utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "tests.support.skips", "-p", "no:cacheprovider", "--rootdir", str(folder), "-c", "none.ini", *options, "test_it.py"]
    (folder / "none.ini").write_text("", "utf-8")
    done = subprocess.run(command, cwd=folder, env=clean_environment(CI=ci, PYTHONPATH=str(ROOT)), capture_output=True, text=True)
    return done.stdout.splitlines()[-1]


@pytest.mark.parametrize("options", [(), ("-n", "1")], ids=["alone", "xdist"])
def test_a_skip_in_ci_is_a_failure(tmp_path: Path, options: tuple[str, ...]) -> None:
    assert "2 failed, 1 passed, 1 xfailed, 2 errors" in summary(tmp_path, BODY.format(reason="not today"), "true", *options)
    assert "1 error" in summary(tmp_path, MODULE.format(reason="not today"), "true", *options)
    assert "1 error" in summary(tmp_path, EMPTY, "true", *options)


def test_elsewhere_and_for_the_reasons_of_the_list_it_is_a_skip(tmp_path: Path) -> None:
    assert "1 passed, 4 skipped, 1 xfailed" in summary(tmp_path, BODY.format(reason="not today"), "")
    assert "1 passed, 4 skipped, 1 xfailed" in summary(tmp_path, BODY.format(reason="root reads everything"), "true")
    assert "1 skipped" in summary(tmp_path, MODULE.format(reason="root reads everything"), "true")


def test_the_list_is_short() -> None:
    assert sys.platform != "linux" or len(allowed()) <= 5
