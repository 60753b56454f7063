"""One way to spread work: order, a killed process, errors; and an index that is the same whoever computes it."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from graphrag_mcp.doctor.generations import digest
from graphrag_mcp.errors import BadInput, GraphRAGError
from graphrag_mcp.executors import AHEAD, PART, RARELY, Executor, InProcess, Processes, executor
from graphrag_mcp.index.chunk import ChunkParams, chunk, most_units
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.settings import Settings, load
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest, IndexResult
from tests.support.command import ROOT, SAMPLE, clean_environment
from tests.support.workload import until


def thresholds(_: int) -> tuple[int, int, int]:
    return gc.get_threshold()


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
    assert (
        list(processes.map(squared, items))
        == list(InProcess().map(squared, items))
        == [one * one for one in items]
    )
    assert list(processes.map(squared, [])) == [] and list(processes.map(squared, [3])) == [9]


def test_a_few_parts_are_read_ahead_and_fewer_where_items_are_heavy(processes: Processes) -> None:
    def read(taken: list[int]) -> Iterator[int]:
        for number in range(100_000):
            taken.append(number)
            yield number

    light: list[int] = []
    results = processes.map(squared, read(light))
    assert next(results) == 0 and len(light) == PART * AHEAD
    results.close()  # type: ignore[attr-defined]
    heavy: list[int] = []
    results = processes.map(squared, read(heavy), lambda _: 20_000_000)
    assert next(results) == 0 and len(heavy) == 2


def test_a_killed_process_costs_the_part_it_had_and_nothing_that_was_done(
    tmp_path: Path, processes: Processes
) -> None:
    log = tmp_path / "log"
    assert list(processes.map(noted, [(number, str(log)) for number in range(300)])) == list(
        range(300)
    )
    done = Counter(map(int, log.read_text().split()))
    assert set(done) == set(range(300))
    assert {number for number, times in done.items() if times > 1} == set(
        range(PART * 2, 70)
    )  # of that part alone


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
        [sys.executable, "-c", script],
        cwd=ROOT,
        env=clean_environment(PYTHONPATH=str(ROOT)),
        stdout=subprocess.PIPE,
    ) as parent:
        assert parent.stdout is not None
        children = parent.stdout.readline().split()
        assert children and all(os.path.exists(f"/proc/{int(child)}") for child in children)
        parent.kill()
    until(lambda: not any(os.path.exists(f"/proc/{int(child)}") for child in children))


def test_the_engine_is_chosen_by_name_and_by_the_size_of_the_work() -> None:
    assert isinstance(executor("inline", 4, items=10_000), InProcess)
    assert isinstance(executor("auto", 4, items=10), InProcess)
    for made in (executor("auto", 4, items=10_000), executor("processes", items=1)):
        assert isinstance(made, Processes)
        made.close()
    with pytest.raises(BadInput, match="engine"):
        load({}, engine="cluster")


def process_of(item: int) -> int:
    time.sleep(0.005)  # so that another process begins meanwhile
    return os.getpid()


def test_this_process_shares_the_work_of_the_engine_auto_and_leaves_all_to_others_under_its_name() -> None:
    for engine, shared in (("auto", True), ("processes", False)):
        with contextlib.closing(executor(engine, 2, items=10_000)) as made:
            found = list(made.map(process_of, range(PART * 12)))
            assert list(made.map(squared, range(PART * 12))) == [one * one for one in range(PART * 12)]
            with pytest.raises(BadInput, match="item 40 is refused. Take another."):
                list(made.map(refused, range(PART * 12)))
        of_parts = [set(found[at : at + PART]) for at in range(0, len(found), PART)]
        assert all(len(of_part) == 1 for of_part in of_parts)  # no part is done in two
        assert (os.getpid() in found) == shared and set(found) != {os.getpid()}


# ---- the index -------------------------------------------------------------------------------------


def write_out(folder: Path, documents: int = 60) -> Path:
    """The sample and short documents about invented people."""
    folder.mkdir()
    for path in SAMPLE.rglob("*.md"):
        (folder / path.name).write_text(path.read_text("utf-8"), "utf-8")
    for number in range(documents):
        names = (
            f"Quorra Vance{number % 7} met Ida Bellweather{number % 5} in Port Lumen {number % 3}."
        )
        (folder / f"note-{number}.md").write_text(
            f"# Note {number}\n\n{names} " + f"They signed treaty {number}. 微软在北京。 " * 20,
            "utf-8",
        )
    return folder


def indexed(home: Path, folder: Path, **settings: object) -> IndexResult:
    return index_documents(
        home, IndexRequest((str(folder),)), Settings(home=home.parent, roots=(folder,), **settings)
    )


def test_parts_that_other_processes_have_done_are_let_go_by_one_that_shares_the_work() -> None:
    def futures() -> int:
        return sum(isinstance(found, Future) for found in gc.get_objects())

    with contextlib.closing(Processes(1, shares=True)) as engine:
        until(lambda: set(engine.map(process_of, range(4 * PART))) - {os.getpid()})  # the other process has begun
        gc.collect()
        kept, before = 0, futures()  # other tests may have left some
        for n, _ in enumerate(engine.map(squared, range(10 * AHEAD * PART))):
            if n % PART == 0:
                time.sleep(0.01)  # a writer that is slower than the others
            if n % (20 * PART) == 0:
                kept = max(kept, futures() - before)
    assert kept <= 5 * AHEAD  # of ten times as many parts as are under way at most



@pytest.mark.parametrize(
    "chunks",
    [{}, {"chunk_size": 60, "chunk_overlap": 10, "passage_size": 30}],
)
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
        (folder / "note-3.md").write_text(
            "# Note 3\n\nQuorra Vance3 has left Port Lumen for Oslo.", "utf-8"
        )
        (folder / "note-4.md").unlink(missing_ok=True)
        (folder / "note-new.md").write_text(
            "# A new note\n\nIda Bellweather1 stayed in Port Lumen 1.", "utf-8"
        )


def test_circles_of_garbage_are_looked_for_rarely_while_indexing_and_as_before_behind_it(
    tmp_path: Path,
) -> None:
    usual, seen = gc.get_threshold(), set()
    settings = Settings(home=tmp_path, roots=[str(SAMPLE)])
    request = IndexRequest(paths=(str(SAMPLE),))
    index_documents(
        tmp_path / "c", request, settings, progress=lambda *_: seen.add(gc.get_threshold())
    )
    assert seen == {RARELY} and gc.get_threshold() == usual != RARELY
    with contextlib.closing(Processes(1)) as processes:
        assert list(processes.map(thresholds, [1])) == [RARELY]


def test_a_call_ends_with_the_same_document_at_the_limit_of_text_units(tmp_path: Path) -> None:
    folder = write_out(tmp_path / "files")
    limit = {"max_text_units": 41}
    inline = indexed(tmp_path / "inline", folder, engine="inline", **limit)
    spread = indexed(tmp_path / "spread", folder, engine="processes", processes=2, **limit)
    assert (
        inline.counts == spread.counts
        and inline.errors == spread.errors
        and len(inline.errors) == 1
    )
    assert digest(open_snapshot(tmp_path / "inline")) == digest(open_snapshot(tmp_path / "spread"))


@pytest.mark.parametrize(
    "params",
    [
        ChunkParams(),
        ChunkParams(60, 10, passage_size=30),
        ChunkParams(100, 0),
    ],
)
def test_a_text_has_no_more_units_than_are_reckoned_with(params: ChunkParams) -> None:
    texts = [path.read_text("utf-8") for path in SAMPLE.rglob("*.md")]
    for text in [
        *texts,
        "".join(texts),
        "😀🧭" * 4000,
        "研究院。" * 3000,
        "a " * 9000,
        "# x\n\n" * 3000,
        "",
        " ",
    ]:
        assert len(chunk(text, params)) <= most_units(text, params)


def test_every_executor_offers_the_same(processes: Processes) -> None:
    made: list[Executor] = [InProcess(), processes]
    assert [list(one.map(squared, range(5), lambda _: 1)) for one in made] == [[0, 1, 4, 9, 16]] * 2


def test_a_process_of_the_executor_imports_no_tables_no_models_and_no_settings() -> None:
    program = (
        "import sys; import graphrag_mcp.executors, graphrag_mcp.index.derive; "
        "heavy = 'pyarrow numpy pydantic lancedb pathspec openai graphrag_mcp.settings'.split(); "
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
