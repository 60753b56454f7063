"""A home on object storage: several machines, many writers, readers beside them, and a store that fails."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from graphrag_mcp.app import App
from graphrag_mcp.doctor.generations import digest
from graphrag_mcp.errors import BadInput, Busy, GraphRAGError, NotFound
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.jobs.delete import delete
from graphrag_mcp.settings import Settings, address_of, load
from graphrag_mcp.store import manifest as manifests
from graphrag_mcp.store import mirror
from graphrag_mcp.store.manifest import Manifest, writer_lock
from graphrag_mcp.types import IndexRequest, InlineText
from tests.support.command import ROOT, clean_environment, run_cli

pytest.importorskip("obstore", reason="the extra [object-storage] is not installed")
pytest.importorskip("moto", reason="there is no S3 server to test with")

from tests.support.object_store import BUCKET, KEYS, ObjectStore, object_store

URL = f"s3://{BUCKET}/team"
PERSON = "Quorra{0} met Ida Bellweather in Port Lumen {0}."


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    with object_store() as made:
        for name, value in made.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(mirror, "POLL_SECONDS", 0.0)
        monkeypatch.setattr(mirror, "LIST_SECONDS", 0.0)
        monkeypatch.setattr(mirror, "BACK_OFF", 0.0)
        monkeypatch.setattr(mirror, "LOOK_SECONDS", 30.0)
        yield made
        mirror.of.cache_clear()
        mirror.store_of.cache_clear()


def machine(folder: Path, **settings: object) -> App:
    """One machine: a cache of its own. Machines of one test share a process and no state but the store."""
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(folder)
    try:
        return App(load({}, home=URL, roots=[str(ROOT)], **settings))
    finally:
        os.environ.pop("XDG_CACHE_HOME") if before is None else os.environ.update(XDG_CACHE_HOME=before)


def note(app: App, *numbers: int, corpus: str = "notes") -> None:
    texts = tuple(InlineText(id=f"n{number}", text=PERSON.format(number)) for number in numbers)
    result = index_documents(app.folder(corpus), IndexRequest(texts=texts), app.settings)
    assert result.status == "done" and not result.errors


def uris(app: App, corpus: str = "notes") -> set[str]:
    return set(app.snapshot(corpus).rows("documents", columns=["uri"])["uri"].to_pylist())


def committed(folder: Path, number: int) -> None:
    """A commit that costs no indexing: one more counter."""
    with writer_lock(folder, 120):
        base = manifests.read(folder) or Manifest("notes")
        manifests.commit(folder, replace(base, generation=base.generation + 1, counters={**base.counters, f"by{number}": base.counters.get(f"by{number}", 0) + 1}))


# ---- machines that share a home -----------------------------------------------------------------------


def test_what_one_machine_writes_the_others_read_and_go_on_with(store: ObjectStore, tmp_path: Path) -> None:
    one, two, three = (machine(tmp_path / name) for name in ("one", "two", "three"))
    assert one.corpora() == []
    note(one, 1, 2)
    assert two.corpora() == ["notes"] and uris(two) == {"text:n1", "text:n2"}
    note(two, 3)
    assert uris(one) == uris(three) == {"text:n1", "text:n2", "text:n3"}
    note(one, 4)
    index_documents(two.folder("notes"), IndexRequest(texts=(InlineText(id="n1", text="Quorra1 has left."),)), two.settings)
    assert len({json.dumps(digest(app.snapshot("notes")), sort_keys=True) for app in (one, two, three)}) == 1
    local = App(Settings(home=tmp_path / "local", roots=(ROOT,)))
    index_documents(local.folder("notes"), IndexRequest(texts=(InlineText(id="n1", text="Quorra1 has left."), *(InlineText(id=f"n{n}", text=PERSON.format(n)) for n in (2, 3, 4)))), local.settings)
    assert digest(local.snapshot("notes")) == digest(one.snapshot("notes"))
    delete(two.home, "notes")
    assert one.corpora() == [] or pytest.raises(NotFound, one.snapshot, "notes")
    assert not [request for request in store.trouble.requests if "canary" in request]


def test_a_reader_fetches_what_changed_and_asks_once_where_nothing_did(store: ObjectStore, tmp_path: Path) -> None:
    one, two = machine(tmp_path / "one"), machine(tmp_path / "two")
    note(one, *range(30))
    uris(two)
    store.trouble.requests.clear()
    uris(two)
    assert {request for request in store.trouble.requests if "/notes/" in request} == {f"HEAD /{BUCKET}/team/corpora/notes/head.json"}
    note(one, 99)
    store.trouble.requests.clear()
    assert "text:n99" in uris(two)
    fetched = [request for request in store.trouble.requests if "/objects/" in request]
    body = json.loads((two.folder("notes") / mirror.STATE).read_bytes())
    assert 0 < len(fetched) < len(body["files"])


def test_a_copy_that_is_too_large_gives_way_to_what_is_read(store: ObjectStore, tmp_path: Path) -> None:
    one = machine(tmp_path / "one")
    for name in ("first", "second"):
        note(one, 1, 2, corpus=name)
    two = machine(tmp_path / "two", cache_bytes=1)
    assert uris(two, "first") and (two.folder("first") / "tables").exists()
    assert uris(two, "second") and not (two.folder("first") / "tables").exists()
    assert uris(two, "first") == {"text:n1", "text:n2"} and not (two.folder("second") / "tables").exists()


def test_the_command_line_works_on_a_store_and_writes_no_credentials(store: ObjectStore, tmp_path: Path) -> None:
    environment = {**store.environment, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text(PERSON.format(7), "utf-8")
    done = run_cli("index", tmp_path / "docs", "--home", URL, "--corpus", "notes", env=clean_environment(**environment))
    assert done.returncode == 0, done.stderr
    other = {**environment, "XDG_CACHE_HOME": str(tmp_path / "other")}
    found = run_cli("search", "Quorra7", "--home", URL, env=clean_environment(**other))
    assert found.returncode == 0 and "Bellweather" in found.stdout, found.stderr
    for path in [*(tmp_path / "cache").rglob("*"), *(tmp_path / "other").rglob("*")]:
        assert not path.is_file() or KEYS["AWS_SECRET_ACCESS_KEY"].encode() not in path.read_bytes()


# ---- writers ----------------------------------------------------------------------------------------


def test_of_eight_writers_no_commit_is_lost_and_readers_see_whole_generations(store: ObjectStore, tmp_path: Path) -> None:
    writers, commits = 8, 6
    apps = [machine(tmp_path / f"writer{number}") for number in range(writers)]
    reader, over, seen = machine(tmp_path / "reader"), threading.Event(), []
    note(apps[0], 1)

    def write(number: int) -> None:
        for _ in range(commits):
            committed(apps[number].folder("notes"), number)

    def read() -> None:
        while not over.is_set():
            snapshot = reader.snapshot("notes")
            counters = [value for name, value in snapshot.manifest.counters.items() if name.startswith("by")]
            seen.append((snapshot.manifest.generation, sum(counters), len(snapshot.rows("documents", columns=["uri"]))))

    with ThreadPoolExecutor(writers + 1) as pool:
        reading = pool.submit(read)
        list(pool.map(write, range(writers)))
        over.set()
        reading.result()
    last = reader.snapshot("notes").manifest
    assert [last.counters[f"by{number}"] for number in range(writers)] == [commits] * writers
    assert len({generation - count for generation, count, _ in seen}) == 1 and {rows for *_, rows in seen} == {1}
    assert [generation for generation, *_ in seen] == sorted(generation for generation, *_ in seen)


def test_processes_that_are_killed_while_they_write_lose_nothing_and_block_nothing(store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror, "LEASE_SECONDS", 0.5)
    one = machine(tmp_path / "one")
    note(one, 1)
    script = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom graphrag_mcp.store import mirror\n"
        "from tests.store.test_object_storage import machine, note\nmirror.LEASE_SECONDS = 0.5\n"
        "def dies(self, *_):\n    os.kill(os.getpid(), signal.SIGKILL)\n"
        "note(machine(Path(sys.argv[1])), 1)\nsetattr(mirror.Mirror, sys.argv[2], dies)\n"
        "note(machine(Path(sys.argv[1])), 2)\n"
    )
    for place in ("_save", "_note"):  # before the swap and after it
        killed = subprocess.run([sys.executable, "-c", script, str(tmp_path / place), place], cwd=ROOT, env=clean_environment(PYTHONPATH=str(ROOT), **store.environment), check=False)
        assert killed.returncode == -9
    assert uris(one) >= {"text:n1"}
    note(one, 3)
    assert uris(machine(tmp_path / "new")) >= {"text:n1", "text:n3"}


def test_who_lost_the_lease_does_not_commit(store: ObjectStore, tmp_path: Path) -> None:
    one, two = machine(tmp_path / "one"), machine(tmp_path / "two")
    note(one, 1)
    folder = one.folder("notes")
    with writer_lock(folder, 5):
        base = manifests.read(folder)
        assert base is not None
        mirror.of(folder).store.delete(["corpora/notes/lease.json"])  # as when it has run out
        note(two, 2)
        with pytest.raises(Busy, match="another writer has committed"):
            manifests.commit(folder, replace(base, generation=base.generation + 1))
        assert manifests.read(folder) == base
    assert uris(one) == {"text:n1", "text:n2"}
    note(one, 3)
    assert uris(two) == {"text:n1", "text:n2", "text:n3"}


def test_an_indexing_that_was_overtaken_is_done_again(store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = machine(tmp_path / "one"), machine(tmp_path / "two")
    note(one, 1, 2)
    push, overtaken = mirror.Mirror.push, []

    def late(self: mirror.Mirror, *given: object) -> None:
        if self.folder == one.folder("notes") and not overtaken:
            overtaken.append(True)
            self.store.delete(["corpora/notes/lease.json"])
            note(two, 3)
            index_documents(two.folder("notes"), IndexRequest(texts=(InlineText(id="n1", text="Quorra1 has left."),)), two.settings)
        push(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(mirror.Mirror, "push", late)
    with pytest.raises(Busy, match="another writer has committed"):
        note(one, 4)
    assert overtaken and uris(one) == {"text:n1", "text:n2", "text:n3"}
    note(one, 4)
    note(two, 5)
    assert uris(one) == uris(two) == {f"text:n{number}" for number in range(1, 6)}
    local = App(Settings(home=tmp_path / "local", roots=(ROOT,)))
    texts = (InlineText(id="n1", text="Quorra1 has left."), *(InlineText(id=f"n{n}", text=PERSON.format(n)) for n in range(2, 6)))
    index_documents(local.folder("notes"), IndexRequest(texts=texts), local.settings)
    assert digest(local.snapshot("notes")) == digest(one.snapshot("notes")) == digest(two.snapshot("notes"))


# ---- a store that fails -------------------------------------------------------------------------------


def test_a_store_without_conditional_puts_is_refused(store: ObjectStore, tmp_path: Path) -> None:
    store.trouble.unconditional = True
    with pytest.raises(BadInput, match="does not honour conditional puts"):
        note(machine(tmp_path / "one"), 1)
    assert not [request for request in store.trouble.requests if "head.json" in request and request.startswith("PUT")]


def test_passing_errors_and_lost_answers_cost_no_commit(store: ObjectStore, tmp_path: Path) -> None:
    one = machine(tmp_path / "one")
    note(one, 1)
    store.trouble.refuse = [503, 503, 500, 503]
    note(one, 2)
    store.trouble.lose_swaps = 2
    note(one, 3)
    assert not store.trouble.refuse and not store.trouble.lose_swaps
    assert uris(machine(tmp_path / "two")) == {"text:n1", "text:n2", "text:n3"}


def test_a_search_with_a_copy_does_not_wait_for_a_store_that_hangs(store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two, three = (machine(tmp_path / name) for name in ("one", "two", "three"))
    note(one, 1)
    assert uris(two) == {"text:n1"}
    monkeypatch.setattr(mirror, "LOOK_SECONDS", 0.2)
    monkeypatch.setattr(mirror, "BACK_OFF", 600.0)
    store.trouble.hang = 10**6  # for longer than any limit of a request
    try:
        assert uris(two) == {"text:n1"}
        asked = len(store.trouble.requests)
        assert uris(two) == {"text:n1"} and two.corpora() == ["notes"]
        assert len(store.trouble.requests) == asked, "it is not asked again for a while"
    finally:
        store.trouble.hang = 0
        store.trouble.released.set()
    assert three.fetched("notes").joinpath("manifest.json").exists()


def test_an_object_that_is_not_what_was_written_is_found(store: ObjectStore, tmp_path: Path) -> None:
    one = machine(tmp_path / "one")
    note(one, 1)
    sha = next(iter(json.loads((one.folder("notes") / mirror.STATE).read_bytes())["files"].values()))[1]
    mirror.of(one.folder("notes")).store.put(f"corpora/notes/objects/{sha}", b"other bytes")
    with pytest.raises(GraphRAGError, match="is not what was written"):
        machine(tmp_path / "two").snapshot("notes")


def test_the_store_keeps_what_is_named_and_no_more(store: ObjectStore, tmp_path: Path) -> None:
    one = machine(tmp_path / "one")
    for number in range(6):
        note(one, number)
    shutil.rmtree(one.folder("notes") / "tables" / "documents.lance" / "_transactions")  # as compaction does
    committed(one.folder("notes"), 1)
    committed(one.folder("notes"), 1)
    held = mirror.of(one.folder("notes"))
    names = {entry["path"].rpartition("/")[2] for entry in held.store.listed("corpora/notes/objects/")}
    assert names == {sha for _, sha in held._state().files.values()}
    assert uris(machine(tmp_path / "two")) == uris(one)


# ---- the address --------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", ["s3://key:secret-canary@bucket/x", "s3://bucket/x?token=secret-canary", "s3:///x"])
def test_an_address_with_credentials_or_without_a_bucket_is_refused(address: str) -> None:
    with pytest.raises(BadInput) as caught:
        load({}, home=address)
    assert "canary" not in str(caught.value)


def test_the_address_is_known_from_the_copy_and_a_folder_has_none(tmp_path: Path) -> None:
    for address in (URL, "gs://bucket/a b/c", "az://account/container/x"):
        assert address_of(load({}, home=address).home) == address
    assert address_of(tmp_path) == "" and address_of(tmp_path / "object-stores" / "x") == ""
