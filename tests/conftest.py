"""Shared by all tests: no network but loopback, the sample corpus, one index of it per run."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.settings import Settings
from graphrag_mcp.sources import read
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.types import IndexRequest
from tests.support.command import ROOT, SAMPLE, run_cli

pytest_plugins = ["tests.support.skips"]
# No test measures time: on a busy machine examples are slow to make. Hypothesis has the same profile where CI is set.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
if not os.environ.get("CI"):
    settings.load_profile("busy")
LOOPBACK = ("127.", "::1", "localhost")
# Started first: whoever of two workers began the longest file last would be left alone with it.
LONGEST = ("test_explorer", "test_executors", "test_object_storage", "test_docs", "test_cli", "test_index_with_model",
           "test_generations", "test_campaigns", "test_evaluate", "test_conformance", "test_many_names", "test_golden",
           "test_moved_folders", "test_query")  # fmt: skip
# Stems of the files of tests, which are unique, those whose tests take more than 10 s together; `make test` leaves them out.
SLOW = frozenset(
    """
    accessibility bit_rot campaigns cli cli_models clients
    code_edits code_graph communities conformance connections corpus_life docs doctor
    doctor_with_model drift_arguments drift_export drift_llm dry_run edit_tools edits evaluate
    executors explorer extract generations graphml hostile_files hosts http import import_lightrag
    import_log index index_documents index_with_model install jobs keys_on_disk live_benchmark llama
    local_vectors losses many_names mcp_app model_histories moved_folders notes notes_http object_storage
    ocr page_doors page_work patterns remove secrets several_machines statements summaries tables tenants
    terminal token_shares views wheel work work_claims work_http workers
    """.split()
)


@pytest.fixture
def without_ocr(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Pictures and scanned pages are read as on a machine without the extra [ocr]."""
    monkeypatch.setenv("GRAPHRAG_MCP_OCR", "off")
    read.close()  # the process that parses has the environment of its start
    yield
    read.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.stem.removeprefix("test_") in SLOW and not item.get_closest_marker("core"):
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST))


@pytest.fixture(autouse=True)
def only_loopback(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A socket to anything but this machine raises: the product must not call out, and neither must its tests."""
    connect, connect_ex = socket.socket.connect, socket.socket.connect_ex

    def checked(address: object) -> None:
        host = address[0] if isinstance(address, tuple) else ""
        if isinstance(host, str) and host and not host.startswith(LOOPBACK):
            raise AssertionError(f"a test tried to reach {address!r}")

    def guarded_connect(self: socket.socket, address: object) -> None:
        checked(address)
        connect(self, address)  # type: ignore[arg-type]

    def guarded_connect_ex(self: socket.socket, address: object) -> int:
        checked(address)
        return connect_ex(self, address)  # type: ignore[arg-type]

    monkeypatch.setattr(socket.socket, "connect", guarded_connect)
    monkeypatch.setattr(socket.socket, "connect_ex", guarded_connect_ex)
    yield


@pytest.fixture(scope="session")
def sample_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which the sample corpus has been indexed by the command line, as corpus `sample`. Do not write to it."""
    home = tmp_path_factory.mktemp("sample-home")
    done = run_cli("index", SAMPLE, "--home", home, "--corpus", "sample")
    assert done.returncode == 0, done.stderr
    return home


@pytest.fixture(scope="session")
def deep_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As `sample_home`, in so many text units that there are two levels of communities."""
    home = tmp_path_factory.mktemp("deep-home")
    settings = Settings(home=home, roots=(ROOT,), chunk_size=200, chunk_overlap=10)
    index_documents(home / "corpora" / "sample", IndexRequest(paths=(str(SAMPLE),)), settings)
    return home


@pytest.fixture(scope="session")
def deep_sample(deep_home: Path) -> Snapshot:
    snapshot = open_snapshot(deep_home / "corpora" / "sample")
    assert max(snapshot.rows("communities", "", ["level"])["level"].to_pylist()) >= 1
    return snapshot
