"""The key of a home, and the marks that are made with it."""

from __future__ import annotations

import os
import subprocess
import sys
from contextvars import copy_context
from pathlib import Path
from typing import Any

import pytest

from graphrag_mcp.trust import fencing
from graphrag_mcp.trust.fencing import HOME, SUBJECT, key_of, sealed, unsealed

POSIX = pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
ASKED = "import sys; from pathlib import Path; from graphrag_mcp.trust.fencing import key_of; print(key_of(Path(sys.argv[1])).hex())"


def within(home: Path | None, function: Any, *arguments: Any, subject: str = "") -> Any:
    def call() -> Any:
        HOME.set(home)
        SUBJECT.set(subject)
        return function(*arguments)

    return copy_context().run(call)


def test_processes_that_begin_together_share_the_key_of_a_home(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ASKED, str(tmp_path)]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    keys = {process.communicate(timeout=60)[0].strip() for process in started}
    assert keys == {key_of(tmp_path).hex()} and len(key_of(tmp_path)) == 32
    assert [path.name for path in tmp_path.iterdir()] == ["key"]


def test_a_key_that_another_process_makes_after_the_first_look_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, other = fencing._read, fencing.secrets.token_bytes(32)

    def late(path: Path) -> bytes | None:
        found = read(path)
        if not path.exists():
            path.write_bytes(other)
        return found

    monkeypatch.setattr(fencing, "_read", late)
    assert key_of(tmp_path) == other == (tmp_path / "key").read_bytes()


@POSIX
def test_only_its_owner_reads_the_key(tmp_path: Path) -> None:
    key_of(tmp_path)
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    other = tmp_path / "other"
    other.mkdir()
    (other / "key").write_bytes(b"k" * 32)
    (other / "key").chmod(0o644)
    assert key_of(other) == b"k" * 32 and (other / "key").stat().st_mode & 0o777 == 0o600


def test_two_homes_have_two_keys_and_a_damaged_one_is_replaced(tmp_path: Path) -> None:
    homes = [tmp_path / name for name in "abc"]
    for home in homes:
        home.mkdir()
    (homes[2] / "key").write_bytes(b"short")
    assert len({key_of(home) for home in homes}) == 3 and len((homes[2] / "key").read_bytes()) == 32


def test_a_cursor_is_opened_by_the_subject_and_the_home_that_it_was_given_in(tmp_path: Path) -> None:
    cursor = within(tmp_path, sealed, "3.123456.10", subject="alice")
    assert within(tmp_path, unsealed, cursor, subject="alice") == "3.123456.10"
    changed = cursor.replace(".10~", ".20~")
    for given, home, subject in ((cursor, tmp_path, "bob"), (cursor, None, "alice"), (changed, tmp_path, "alice")):
        assert within(home, unsealed, given, subject=subject) is None
    for wrong in ("3.123456.10", "3.123456.10~", "3.123456.10~é", "~", cursor + "a"):
        assert within(tmp_path, unsealed, wrong, subject="alice") is None
