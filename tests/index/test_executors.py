"""One way to spread work: order, a killed process, errors; and an index that is the same whoever computes it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphrag_mcp.doctor.generations import digest
from graphrag_mcp.errors import BadInput, GraphRAGError
from graphrag_mcp.executors import AHEAD, PART, InProcess, Processes
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest, IndexResult
from tests.support.command import ROOT, SAMPLE, clean_environment
from tests.support.workload import until


def squared(item: int) -> int:
    return item * item


def noted(item: tuple[int, str]) -> int:
    """Writes down what it did; dies at the first item 70, in the middle of a part."""
    number, log = item
    if number == 70 and not os.path.exists(f"{log}.died"):
        Path(f"{log}.died").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    with open(log, "a") as file:
        file.write(f"{number}\n")
    return number


def deadly(item: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return item


def refused(item: int) -> int:
    if item == 40:
        raise BadInput(f"item {item} is refused", "Take another")
    print("what a function prints is no result")
    return item


@pytest.fixture(params=[1, 2, 4])
def processes(request: pytest.FixtureRequest) -> Iterator[Processes]:
    made = Processes(request.param)
    yield made
    made.close()


def test_results_come_in_the_order_of_the_items(processes: Processes) -> None:
    items = range(PART * (AHEAD + 3) + 5)
    assert list(processes.map(squared, items)) == list(InProcess().map(squared, items)) == [one * one for one in items]
    assert list(processes.map(squared, [])) == [] and list(processes.map(squared, [3])) == [9]


def test_a_killed_process_costs_the_part_it_had_and_nothing_that_was_done(tmp_path: Path, processes: Processes) -> None:
    log = tmp_path / "log"
    assert list(processes.map(noted, [(number, str(log)) for number in range(300)])) == list(range(300))
    done = Counter(map(int, log.read_text().split()))
    assert set(done) == set(range(300))
    assert {number for number, times in done.items() if times > 1} == set(range(PART * 2, 70))  # of that part alone


def test_a_part_over_which_every_process_dies_is_an_error(processes: Processes) -> None:
    with pytest.raises(GraphRAGError, match="3 processes ended over the same part"):
        list(processes.map(deadly, range(3)))
    assert list(processes.map(squared, range(3))) == [0, 1, 4]


def test_an_error_of_the_function_is_raised_as_it_is(processes: Processes) -> None:
    with pytest.raises(BadInput, match="item 40 is refused. Take another."):
        list(processes.map(refused, range(100)))


@pytest.mark.skipif(sys.platform != "linux", reason="the processes are looked at in /proc")
def test_processes_end_with_the_one_that_started_them(tmp_path: Path) -> None:
    script = (
        "import time\nfrom graphrag_mcp.executors import Processes\nfrom tests.index.test_executors import squared\n"
        "made = Processes(2)\nassert list(made.map(squared, range(100)))\n"
        "print(*[child.process.pid for child in made._children], flush=True)\ntime.sleep(600)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, env=clean_environment(PYTHONPATH=str(ROOT)), stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        children = parent.stdout.readline().split()
        assert children and all(os.path.exists(f"/proc/{int(child)}") for child in children)
        parent.kill()
    until(lambda: not any(os.path.exists(f"/proc/{int(child)}") for child in children))


# ---- the index -------------------------------------------------------------------------------------


def write_out(folder: Path, documents: int = 60) -> Path:
    """The sample and short documents about invented people."""
    folder.mkdir()
    for path in SAMPLE.rglob("*.md"):
        (folder / path.name).write_text(path.read_text("utf-8"), "utf-8")
    for number in range(documents):
        names = f"Quorra Vance{number % 7} met Ida Bellweather{number % 5} in Port Lumen {number % 3}."
        (folder / f"note-{number}.md").write_text(
            f"# Note {number}\n\n{names} " + f"They signed treaty {number}. 微软在北京。 " * 20, "utf-8"
        )
    return folder


def indexed(home: Path, folder: Path, **settings: object) -> IndexResult:
    return index_documents(home, IndexRequest((str(folder),)), Settings(home=home.parent, roots=(folder,), **settings))


@pytest.mark.parametrize("chunks", [{}, {"chunk_size": 60, "chunk_overlap": 10, "passage_size": 30}])
def test_the_index_is_the_same_whoever_computes_it_and_whatever_was_before(
    chunks: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_out(tmp_path / "files")
    ways = {
        "inline": {"engine": "inline"},
        "two": {"engine": "processes", "processes": 2},
        "four": {"engine": "processes", "processes": 4},
        "shared": {"engine": "auto", "processes": 2},
    }
    monkeypatch.setattr("graphrag_mcp.executors.FEW", 1)
    for _ in range(2):
        found = {}
        for name, way in ways.items():
            result = indexed(tmp_path / name, folder, **way, **chunks)
            assert not result.errors
            found[name] = (digest(open_snapshot(tmp_path / name)), result.counts)
        assert found["inline"] == found["two"] == found["four"] == found["shared"]
        (folder / "note-3.md").write_text("# Note 3\n\nQuorra Vance3 has left Port Lumen for Oslo.", "utf-8")
        (folder / "note-4.md").unlink(missing_ok=True)
        (folder / "note-new.md").write_text("# A new note\n\nIda Bellweather1 stayed in Port Lumen 1.", "utf-8")


def test_a_process_of_the_executor_imports_no_tables_no_models_and_no_settings() -> None:
    program = (
        "import sys; import graphrag_mcp.executors, graphrag_mcp.index.derive; "
        "heavy = 'pyarrow numpy pydantic lancedb pathspec openai graphrag_mcp.settings'.split(); "
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=clean_environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
