"""The answer book: what was paid for stays, what was tampered with is not believed, and damage is survived."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from graphrag_mcp.errors import Damaged
from graphrag_mcp.store.reply_cache import NAME, AnswerBook, Stored, salvage
from graphrag_mcp.store.shared_replies import open_book
from tests.support.command import clean_environment

KEYS = [f"{number * 2_654_435_761 % 2**32:08x}{number:056x}" for number in range(300)]


def filled(folder: Path, count: int = 300) -> AnswerBook:
    book = AnswerBook(folder)
    book.put([Stored(key, "llm:m", "extract", f"answer {number} 答" * 40, 7, 9) for number, key in enumerate(KEYS[:count])])
    book.put_vectors("v", {key: bytes(range(64)) for key in KEYS[:50]}, 100)
    return book


def test_what_was_put_is_there_for_the_next_process_and_the_own_answerer_comes_first(tmp_path: Path) -> None:
    filled(tmp_path, 2).close()
    book = AnswerBook(tmp_path)
    book.put([Stored(KEYS[0], "llm:other", "extract", "other"), Stored(KEYS[0], "agent:a", "extract", "agent")])
    assert [one.answerer for one in book.get(KEYS[0], "llm:other")] == ["llm:other", "llm:m", "agent:a"]
    assert [one.answerer for one in book.get(KEYS[0])] == ["llm:m", "llm:other", "agent:a"]
    assert book.vectors(KEYS[:60], "v").keys() == set(KEYS[:50]) and not book.vectors(KEYS, "w")
    assert book.kinds() == {"extract": 4, "embedding": 50} and book.has("extract") and not book.has("report")


def test_asking_a_book_that_is_not_there_makes_no_file(tmp_path: Path) -> None:
    book = AnswerBook(tmp_path / "corpus")
    assert not book.get("k") and not book.kinds() and not book.vectors(["k"], "v") and not book.verify()
    book.probe()
    assert not (tmp_path / "corpus").exists()


@pytest.mark.parametrize("column", ["key", "answerer", "kind", "text", "prompt_tokens", "output_tokens", "time", "mark"])
def test_a_row_of_which_any_column_was_changed_is_not_believed(tmp_path: Path, column: str) -> None:
    filled(tmp_path, 3).close()
    with sqlite3.connect(tmp_path / NAME) as file:
        value = "5" if column.endswith("tokens") else f"'{'f' * 64}'"
        file.execute(f"UPDATE answers SET {column} = {value} WHERE key = ?", (KEYS[1],))
    file.close()
    book = AnswerBook(tmp_path)
    assert not book.get(KEYS[1]) and not book.get("f" * 64)
    assert book.get(KEYS[0]) and book.get(KEYS[2])
    assert len(book.verify()) == 1


@pytest.mark.parametrize("damage", ["garbage", "header", "truncated"])
def test_a_damaged_file_is_a_clear_error_and_salvage_keeps_what_can_be_read(tmp_path: Path, damage: str) -> None:
    filled(tmp_path).close()
    path = tmp_path / NAME
    raw = bytearray(path.read_bytes())
    if damage == "truncated":
        raw = raw[: len(raw) * 3 // 4]
    else:
        raw[: 100 if damage == "header" else len(raw)] = os.urandom(100 if damage == "header" else len(raw))
    path.write_bytes(raw)
    book = AnswerBook(tmp_path)
    with pytest.raises(Damaged, match="cannot be used"):
        book.probe()
    assert book.torn
    book.close()
    saved = salvage(tmp_path)
    assert (tmp_path / f"{NAME}.damaged").exists() and not AnswerBook(tmp_path).verify()
    assert saved == sum(AnswerBook(tmp_path).kinds().values())
    assert saved > 100 if damage == "truncated" else saved == 0


def test_a_damaged_page_costs_its_neighbours_and_no_more(tmp_path: Path) -> None:
    filled(tmp_path).close()
    path = tmp_path / NAME
    raw = bytearray(path.read_bytes())
    middle = len(raw) // 2 // 4096 * 4096
    raw[middle : middle + 4096] = b"\xff" * 4096
    path.write_bytes(raw)
    assert salvage(tmp_path) > 250


@pytest.mark.skipif(sys.platform == "win32", reason="limits the size of files")
def test_a_salvage_that_the_disk_stops_leaves_the_book_as_it_was(tmp_path: Path) -> None:
    book = AnswerBook(tmp_path)
    book.put([Stored(f"{number:04x}", "llm:m", "extract", "word " * 400) for number in range(300)])
    book.close()
    before = (tmp_path / NAME).read_bytes()
    code = (
        "import resource, signal, sys; from pathlib import Path; from graphrag_mcp.store.reply_cache import salvage\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({len(before) // 2},) * 2)\n"
        f"salvage(Path({str(tmp_path)!r}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode and "Error" in done.stderr
    assert (tmp_path / NAME).read_bytes() == before and salvage(tmp_path) == 300
    assert not list(tmp_path.glob("*.made")) and AnswerBook(tmp_path).kinds() == {"extract": 300}


def test_a_damaged_book_is_set_aside_once_when_that_is_asked_for(tmp_path: Path) -> None:
    filled(tmp_path).close()
    path = tmp_path / NAME
    path.write_bytes(b"no database" * 1000)
    book, note = open_book(tmp_path, mend=False, needed=False)
    assert book is None and "cannot be used" in note
    book, note = open_book(tmp_path, mend=True, needed=True)
    assert book is not None and "0 whole answers" in note
    book.put([Stored("k", "llm:m", "extract", "new")])
    assert open_book(tmp_path, mend=True, needed=True)[1] == ""
    assert path.with_name(f"{NAME}.damaged").read_bytes() == b"no database" * 1000
    assert book.get("k")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="this user may write everywhere")
def test_a_folder_that_may_not_be_written_is_a_clear_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(Damaged, match="doctor --repair"):
            AnswerBook(tmp_path).put([Stored("k", "llm:m", "extract", "t")])
    finally:
        tmp_path.chmod(0o700)


WRITER = """
import sys
from pathlib import Path
from graphrag_mcp.store.reply_cache import AnswerBook, Stored
book = AnswerBook(Path(sys.argv[1]))
for number in range(40):
    book.put([Stored(f"{sys.argv[2]}{number}", "llm:m", "extract", "t" * 500)])
    print(number, flush=True)
"""


def test_processes_and_threads_write_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    writers = [subprocess.Popen([*command, name], env=clean_environment(), stdout=subprocess.PIPE) for name in "ab"]
    book = AnswerBook(tmp_path)

    def write(name: str) -> None:
        for number in range(40):
            book.put([Stored(f"{name}{number}", "llm:m", "extract", "t" * 500)])
            assert book.get(f"{name}{number}")

    threads = [threading.Thread(target=write, args=(name,)) for name in "cd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for writer in writers:
        writer.communicate(timeout=60)
        assert writer.returncode == 0
    assert book.kinds() == {"extract": 160} and not book.verify()


def test_what_a_killed_process_had_put_is_there(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path), "k"]
    writer = subprocess.Popen(command, env=clean_environment(), stdout=subprocess.PIPE)
    assert writer.stdout is not None
    said = [int(writer.stdout.readline()) for _ in range(7)]
    writer.kill()
    writer.communicate()
    book = AnswerBook(tmp_path)
    assert all(book.get(f"k{number}") for number in said) and not book.verify()


def test_a_book_that_two_begin_at_once_serves_both(tmp_path: Path) -> None:
    def both(folder: Path) -> list[Stored]:
        book, go = AnswerBook(folder), threading.Barrier(2)

        def look() -> None:
            go.wait()
            for _ in range(300):
                book.get("k")

        with ThreadPoolExecutor(1) as pool:
            looking = pool.submit(look)
            go.wait()
            book.put([Stored("k", "llm:m", "extract", "text")])
            looking.result()
        found = book.get("k")
        book.close()
        return found

    assert all(len(both(tmp_path / str(number))) == 1 for number in range(120))
