"""Each campaign can fail: a fault is planted, and the campaign names it. What a campaign finds in a sound product is in
test_campaigns.py."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from campaigns import hostile, kills, many_agents, stdout_purity
from campaigns.edit_scripts import put
from graphrag_mcp.errors import NotFound
from graphrag_mcp.types import InlineText
from tests.support import faulty_writers
from tests.support.command import ROOT, clean_environment

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="copies of a process, memory in /proc")

# ---- kills ---------------------------------------------------------------------------------------------


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LANCEDB_LOG", "PYTHONWARNINGS"):
        monkeypatch.setenv(name, clean_environment().get(name, ""))
    kills.quiet()
    kills.CONTEXT.set_forkserver_preload(["campaigns.kills"])


class Patient(kills.Campaign):
    """Kills nothing that does not run for minutes."""

    def __init__(self, home: Path, seed: int) -> None:
        super().__init__(home, seed)
        self.seconds = dict.fromkeys(self.seconds, 500.0)
        self.rng.random = lambda: 1.0  # type: ignore[method-assign]


@linux
@pytest.mark.parametrize(
    ("victim", "said", "count"),
    [
        (faulty_writers.ends_at_once, "only 0 of 1 victims were alive when they were killed", 0),
        (faulty_writers.fails, "the victim failed by itself (status 1)", 0),
        (faulty_writers.breaks_its_manifest, "doctor: manifest 0", 1),
        (faulty_writers.forgets_its_manifest, "doctor: manifest manifest.json manifest.json is missing", 1),
    ],
)
def test_a_victim_that_cannot_be_killed_or_harms_its_index_is_found(
    victim: Callable[..., None], said: str, count: int, tmp_path: Path, quiet: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("indexing", victim), ("TRIES", 1), ("Campaign", Patient)):
        monkeypatch.setattr(kills, name, value)
    wrong, done = kills.campaign(tmp_path, 1, ["index"], seed=1)
    assert any(said in one for one in wrong), wrong
    assert done["index"] == count


@linux
def test_a_note_that_is_acknowledged_before_it_is_committed_is_found(
    tmp_path: Path, quiet: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kills, "noting", faulty_writers.acknowledges_too_early)
    wrong, _ = kills.campaign(tmp_path, 1, ["notes"], seed=1)
    assert sum("was acknowledged and is not there" in one for one in wrong) == 19, wrong


# ---- many agents ------------------------------------------------------------------------------------------


def test_a_reader_whose_tables_have_gone_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "kb"
    put(folder, texts=[InlineText("Ingrid Moe spoke of a buoy at the Harbour Trust.", "one")])
    assert many_agents.look(folder) == ""
    command = [sys.executable, "-c", many_agents.READER, str(folder), str(ROOT)]
    shutil.rmtree(folder / "tables")
    reader = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=clean_environment())
    assert reader.stdout is not None
    try:
        assert reader.stdout.readline().startswith("error ")
    finally:
        reader.kill()
        reader.communicate()


def test_a_generation_that_is_not_found_twice_is_a_fault_and_once_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "kb"
    put(folder, texts=[InlineText("Ingrid Moe spoke of a buoy at the Harbour Trust.", "one")])
    opened, missing = many_agents.open_snapshot, [1]

    def opening(folder: Path) -> object:
        if missing[0]:
            missing[0] -= 1
            raise NotFound("this generation was cleaned away", "Open it again")
        return opened(folder)

    monkeypatch.setattr(many_agents, "open_snapshot", opening)
    assert many_agents.look(folder) == ""
    missing[0] = 2
    assert many_agents.look(folder).startswith("error NotFound")


def test_a_reader_that_never_read_is_a_fault(tmp_path: Path) -> None:
    options = many_agents.argparse.Namespace(servers=1, calls=1, readers=1, kills=0)
    home, root = tmp_path / "home", tmp_path / "notes"
    root.mkdir()
    (home / "corpora").mkdir(parents=True)
    (home / "corpora" / "stop").touch()  # the reader ends before there is an index
    many_agents.report(home, root, options)
    assert options.wrong == ["1 readers read nothing"]


# ---- noise on standard output ------------------------------------------------------------------------------

LEAK = """
import graphrag_mcp.server as product
sound = product.take_stdio
def leaking():
    wire = sound()
    os.dup2(wire[1].fileno(), 1)
    return wire
product.take_stdio = leaking
"""


@pytest.mark.skipif(os.name == "nt", reason="ctypes.CDLL(None)")
def test_a_server_whose_output_is_not_its_own_is_found(tmp_path: Path) -> None:
    server = stdout_purity.NOISY.replace("from graphrag_mcp.cli.main import main", f"{LEAK}from graphrag_mcp.cli.main import main")
    wrong = stdout_purity.faults(stdout_purity.run(5, tmp_path, server))
    assert any(one.startswith("no message of the protocol: ") and "noise" in one for one in wrong), wrong


@pytest.mark.skipif(os.name == "nt", reason="ctypes.CDLL(None)")
def test_a_campaign_without_noise_proves_nothing(tmp_path: Path) -> None:
    silent = stdout_purity.NOISY.replace("while True:", "while False:")
    wrong = stdout_purity.faults(stdout_purity.run(3, tmp_path, silent))
    assert wrong == [f"no {kind!r} was heard beside the calls" for kind in stdout_purity.KINDS]


# ---- hostile files --------------------------------------------------------------------------------------------

BY_NAME = r"""
import re
from graphrag_mcp.sources import read
sound, kept = read.load, {}
def load(file, settings, *rest):
    for document in sound(file, settings, *rest):
        for name in set(re.findall(r"[A-Z]\w+", document.text)):
            kept[name] = b"x" * 120_000
        yield document
read.load = load
"""
LOST = """
from graphrag_mcp.sources import walk as find
sound = find.find
def without(*arguments):
    found = sound(*arguments)
    found.files.clear()
    return found
find.find = without
"""


@linux
def test_memory_that_grows_with_names_is_seen_with_many_names_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that repeats one name, as it was tried before, does not show it."""
    monkeypatch.setattr(hostile, "MEMORY", 500_000_000)
    for name, wrong in (("many-names.md", "too much memory"), ("capitals.md", "")):
        found = hostile.one(name, tmp_path / name, heavy=False, planted=BY_NAME)
        assert found["wrong"] == wrong, found


@pytest.mark.parametrize(
    ("program", "said"),
    [("import os; os._exit(11)", "crashed with status 11"), (LOST, "1 entries and 0 accounted for")],
    ids=["a crash", "a file that is lost"],
)
def test_a_crash_and_a_lost_file_are_found(program: str, said: str, tmp_path: Path) -> None:
    assert said in str(hostile.one("stops.md", tmp_path, heavy=False, planted=program)["wrong"])
