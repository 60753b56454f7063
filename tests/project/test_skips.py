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


def summary(folder: Path, texts: dict[str, str], ci: str, *options: str) -> str:
    """The last lines of a run of pytest over these files, without plugins that it does not need."""
    for name, text in texts.items():
        (folder / f"test_{name}.py").write_text(text, "utf-8")
    (folder / "none.ini").write_text("", "utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "tests.support.skips", "-p", "no:cacheprovider", "--rootdir", str(folder), "-c", "none.ini", *options, "."]
    env = clean_environment(CI=ci, PYTHONPATH=str(ROOT), PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
    return "\n".join(line for line in done.stdout.splitlines() if line.startswith("ERROR test_") or " passed" in line)


@pytest.mark.parametrize("options", [(), ("-p", "xdist", "-n", "1")], ids=["alone", "xdist"])
def test_a_skip_in_ci_is_a_failure(tmp_path: Path, options: tuple[str, ...]) -> None:
    texts = {"body": BODY.format(reason="not today"), "module": MODULE.format(reason="not today"), "empty": EMPTY}
    said = summary(tmp_path, texts, "true", "--continue-on-collection-errors", "-rE", *options)
    assert "2 failed, 1 passed, 1 xfailed, 4 errors" in said
    assert "ERROR test_module.py" in said and "ERROR test_empty.py" in said


@pytest.mark.parametrize(("reason", "ci"), [("not today", ""), ("root reads everything", "true")])
def test_elsewhere_and_for_the_reasons_of_the_list_it_is_a_skip(tmp_path: Path, reason: str, ci: str) -> None:
    texts = {"body": BODY.format(reason=reason), "module": MODULE.format(reason=reason)}
    assert "1 passed, 5 skipped, 1 xfailed" in summary(tmp_path, texts, ci)


def test_the_list_is_short() -> None:
    assert sys.platform != "linux" or len(allowed()) <= 5
