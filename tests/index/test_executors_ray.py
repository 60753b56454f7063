"""The same work as tasks of a Ray cluster: one node of this machine, and three of which one is killed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphrag_mcp.doctor.generations import digest
from graphrag_mcp.errors import BadInput
from graphrag_mcp.executors import PART, Ray
from graphrag_mcp.store.tables import open_snapshot
from tests.index.test_executors import indexed, noted, refused, squared, write_out

ray: Any = pytest.importorskip("ray", reason="the extra [ray] is not installed")
pytestmark = pytest.mark.slow
NODE = {"num_cpus": 1, "object_store_memory": 100_000_000}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Three nodes, each a process of its own, with this checkout."""
    from ray.cluster_utils import Cluster

    made = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
    for _ in range(2):
        made.add_node(**NODE)
    ray.init(address=made.address, log_to_driver=False, logging_level="error")
    yield made
    ray.shutdown()
    made.shutdown()


def test_results_errors_and_the_index_are_the_same_as_here(cluster: Any, tmp_path: Path) -> None:
    engine = Ray()
    assert list(engine.map(squared, range(500))) == [one * one for one in range(500)]
    with pytest.raises(BadInput, match="item 40 is refused. Take another."):
        list(engine.map(refused, range(100)))
    engine.close()
    assert ray.is_initialized()  # it was not this executor that connected
    folder = write_out(tmp_path / "files")
    inline, spread = (
        indexed(tmp_path / "inline", folder, engine="inline"),
        indexed(tmp_path / "ray", folder, engine="ray"),
    )
    assert inline.counts == spread.counts and not spread.errors
    assert digest(open_snapshot(tmp_path / "inline")) == digest(open_snapshot(tmp_path / "ray"))


def test_a_killed_task_and_a_killed_node_cost_nothing_but_time(cluster: Any, tmp_path: Path) -> None:
    engine, log = Ray(), tmp_path / "log"
    items = [(number, str(log)) for number in range(PART * 30)]
    results = engine.map(noted, items)
    found = [next(results) for _ in range(PART)]
    cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)
    assert found + list(results) == list(range(PART * 30))
    assert os.path.exists(f"{log}.died") and {int(one) for one in log.read_text().split()} == set(range(PART * 30))


def test_a_node_of_another_release_is_said(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphrag_mcp.executors.__version__", "9.9.9")
    with pytest.raises(BadInput, match="Install the same release on all nodes"):
        list(Ray().map(squared, range(3)))


def test_a_cluster_that_is_not_there_is_said(cluster: Any) -> None:
    ray.shutdown()
    try:
        with pytest.raises(BadInput, match="the Ray cluster cannot be reached"):
            Ray("127.0.0.1:1")
    finally:
        ray.init(address=cluster.address, log_to_driver=False, logging_level="error", ignore_reinit_error=True)
