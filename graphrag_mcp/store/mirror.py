"""A home on object storage: a store holds what was committed, and each machine a copy of it on
disk.

Brings the newest generation of the store to a corpus folder, and its commits to the store. Files go
up under their SHA-256, so none is ever changed; then `head.json`, which holds the manifest and the
list of its files, is swapped by a conditional put. Two writers cannot both do that from the same
head, whatever becomes of their lease. Everything else works on the copy, whose path holds the
store's address; credentials come from the environment and are kept nowhere. Knows no rows."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import Field
from typing_extensions import TypedDict

from graphrag_mcp.errors import BadInput, Busy, Damaged, GraphRAGError, NotFound, extra
from graphrag_mcp.settings import address_of
from graphrag_mcp.store import stored
from graphrag_mcp.store.stored import Below, Count, Finite, Open

T = TypeVar("T")
Sha = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
LEASE_SECONDS = 60.0  # after which the lease of a dead writer is free
RENEWED = 3  # times in that
TIMEOUT, RETRY = timedelta(seconds=60), timedelta(seconds=40)  # of a request; of all its tries
# For the look at the newest generation, and for fetching it, of a search that has a copy to read.
LOOK_SECONDS, FETCH_SECONDS = 3.0, 30.0
BACK_OFF = 30.0  # seconds in which a store that did not answer is not asked again
POLL_SECONDS = 2.0  # between two looks at the head of a corpus that is read
LIST_SECONDS = 5.0
TRANSFERS = 8  # at a time
TRIES = 5  # at a generation that other writers go on replacing
SWEPT_EVERY, ORPHAN = 100, timedelta(days=1)  # generations; the age of what no head names
HEAD, LEASE, STATE = "head.json", "lease.json", "mirror.json"
REPLIES = "replies/"  # the folder of the reply cache (shared_replies.py)

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Tag:
    """Which content of an object is meant: by e-tag (S3, Azure) or by version (GCS)."""

    e_tag: str | None
    version: str | None = field(default=None, compare=False)

    @classmethod
    def of(cls, meta: Mapping[str, Any]) -> Tag:
        return cls(meta.get("e_tag"), meta.get("version"))


class _Head(Open):
    """The schema of `head.json`."""

    manifest: str
    files: dict[Below, tuple[Count, Sha]]
    dropped: list[Sha]


class _Manifest(TypedDict):
    """What every manifest has, of any format (store/manifest.py reads them)."""

    generation: Count
    format: Count
    check: str


class _State(TypedDict):
    """The schema of what `mirror.json` has besides: e-tag and version of the head."""

    tag: tuple[str | None, str | None]


class _Lease(TypedDict):
    until: Finite


@dataclass
class Head:
    """What the store holds of a corpus. `files`: by path in its folder, [size, SHA-256]; `dropped`:
    objects that the last commit did not name any more and that its readers may still fetch."""

    tag: Tag | None = None
    manifest: str = ""
    files: dict[str, list[Any]] = field(default_factory=dict)
    dropped: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, raw: bytes, tag: Tag) -> Head:
        try:
            body = stored.parsed(raw, _Head)
        except ValueError as error:
            what = f"{HEAD} of the store cannot be read ({error})"
            raise Damaged(what, "Restore it from a backup") from error
        files = {path: list(file) for path, file in body["files"].items()}
        return cls(tag, body["manifest"], files, body["dropped"])

    def generation(self) -> int:
        """That of the manifest; 0 without one."""
        if not self.manifest:
            return 0
        try:
            return stored.parsed(self.manifest, _Manifest)["generation"]
        except ValueError as error:
            what = f"the manifest in {HEAD} of the store cannot be read ({error})"
            raise Damaged(what, "Restore it from a backup") from error

    def raw(self) -> bytes:
        body = {"manifest": self.manifest, "files": self.files, "dropped": self.dropped}
        return json.dumps(body, sort_keys=True).encode()


@lru_cache(maxsize=256)
def of(folder: Path) -> Mirror:
    """The mirror of a corpus folder in the object storage of its home."""
    return Mirror(folder, store_of(folder.parent.parent))


@lru_cache(maxsize=16)
def store_of(home: Path) -> Store:
    """The object storage of a home, which has an address of one. BadInput without obstore."""
    return Store(address_of(home))


class Store:
    """An object store, in which errors are sentences."""

    def __init__(self, url: str) -> None:
        try:
            import obstore
            from obstore import exceptions
            from obstore.store import from_url
        except ImportError as error:
            what = f"the home {url} is on object storage, which needs obstore"
            raise BadInput(what, f"Install {extra('object-storage')}") from error
        self.url, self._obstore, self._errors = url, obstore, exceptions
        self._probed = False
        options: dict[str, Any] = {"client_options": {"timeout": TIMEOUT}}
        options["retry_config"] = {"max_retries": 6, "retry_timeout": RETRY}
        if url.startswith("s3") and os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://"):
            options["client_options"]["allow_http"] = True
        with self._told():
            self._store = from_url(url, **options)

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (GraphRAGError, self._errors.AlreadyExistsError, self._errors.PreconditionError):
            raise
        except (FileNotFoundError, self._errors.NotFoundError) as error:
            what = f"there is no such object or bucket in {self.url}"
            raise Absent(what, "Check the address of the home") from error
        except (self._errors.BaseError, ValueError) as error:
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
            raise GraphRAGError(
                f"the store {self.url} cannot be used ({reason})",
                "Check the address, the network and the credentials in the environment; what was committed is kept",
            ) from error

    def get(self, path: str) -> tuple[bytes, Tag]:
        """Content and tag. Absent when it is not there."""
        with self._told():
            found = self._obstore.get(self._store, path)
            return bytes(found.bytes()), Tag.of(found.meta)

    def tag(self, path: str) -> Tag | None:
        """None when it is not there."""
        with contextlib.suppress(Absent), self._told():
            return Tag.of(self._obstore.head(self._store, path))
        return None

    def put(self, path: str, raw: bytes | Path) -> None:
        with self._told():
            self._obstore.put(self._store, path, raw)

    def swap(self, path: str, raw: bytes, tag: Tag | None) -> Tag | None:
        """Put if the object is still the one of this tag, or if there is none where that is None.
        The new tag; None when it was another one. An answer may be lost and the put repeated: who
        finds the own content there has done it."""
        mode: Any = "create"
        if tag is not None:
            mode = {name: value for name, value in asdict(tag).items() if value is not None}
        try:
            with self._told():
                return Tag.of(self._obstore.put(self._store, path, raw, mode=mode))
        except (self._errors.AlreadyExistsError, self._errors.PreconditionError):
            with contextlib.suppress(Absent):
                stored, now = self.get(path)
                if stored == raw:
                    return now
            return None

    def delete(self, paths: list[str]) -> None:
        with contextlib.suppress(Absent), self._told():
            if paths:
                self._obstore.delete(self._store, paths)

    def listed(self, prefix: str) -> list[dict[str, Any]]:
        with self._told():
            return [dict(entry) for part in self._obstore.list(self._store, prefix) for entry in part]

    def folders(self, prefix: str) -> list[str]:
        with self._told():
            found = self._obstore.list_with_delimiter(self._store, prefix)
        return sorted(prefix.rstrip("/").rpartition("/")[2] for prefix in found["common_prefixes"])

    def probe(self) -> None:
        """BadInput unless conditional puts are honoured, else writers would lose commits."""
        if self._probed:
            return
        path, good = f"probe-{secrets.token_hex(8)}", False
        try:
            first = self.swap(path, b"1", None)
            good = first is not None and self.swap(path, b"2", None) is None
            second = self.swap(path, b"3", first) if good else None
            good = second is not None and self.swap(path, b"4", first) is None
        finally:
            self.delete([path])
        self._probed = good
        if not good:
            raise BadInput(
                f"{self.url} does not honour conditional puts, so that writers would lose commits",
                "Use a store that knows If-Match and If-None-Match, such as S3, GCS or Azure Blob Storage",
            )


def in_time(work: Callable[[], T], seen: threading.Event | None = None) -> T:
    """What `work` gives, if the store answers within LOOK_SECONDS, or sets `seen` by then and ends
    within FETCH_SECONDS; else GraphRAGError. The work goes on in its thread."""
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)
        if seen is not None:
            seen.set()

    threading.Thread(target=run, name="store", daemon=True).start()
    seconds = LOOK_SECONDS
    if seen is not None:
        seconds = FETCH_SECONDS if seen.wait(LOOK_SECONDS) else 0.0
    try:
        return done.result(seconds)
    except TimeoutError:
        what = f"the store did not answer within {seconds or LOOK_SECONDS:.0f} s"
        raise GraphRAGError(what, "Check the network and the store") from None


class Absent(NotFound):
    """An object that is not there."""


class Mirror:
    """One corpus: the local folder and what the store holds of it."""

    def __init__(self, folder: Path, store: Store) -> None:
        self.folder, self.store = folder, store
        self._prefix = f"corpora/{folder.name}/"
        self._objects = f"{self._prefix}objects/"
        self._next_look = 0.0
        self._lost = False  # the lease, while this process writes
        self._lock = threading.Lock()

    # ---- reading ---------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Bring the copy to the newest generation, unless that was just done or cannot be. Where there
        is a copy, a search does not wait for a store that hangs, and none looks there for a while."""
        with self._lock:
            if time.monotonic() < self._next_look:
                return
            present, wait = (self.folder / "manifest.json").exists(), POLL_SECONDS
            try:
                if present:
                    seen = threading.Event()
                    in_time(lambda: self.pull(seen.set), seen)
                else:
                    self.pull()
            except GraphRAGError as error:
                if not present:
                    raise
                log.warning("%s; the copy on this machine is read", error.what)
                wait = BACK_OFF
            self._next_look = time.monotonic() + wait

    def pull(self, seen: Callable[[], None] = lambda: None) -> Head:
        """The newest generation, in the folder; the head of the store. `seen` is called when that is
        known."""
        from filelock import FileLock

        self.folder.mkdir(parents=True, exist_ok=True)
        with FileLock(str(self.folder / "pull.lock"), timeout=600):
            for _ in range(TRIES):
                head = self._head()
                seen()
                present = (self.folder / "manifest.json").exists()
                if head.tag == self._state().tag and present == (head.tag is not None):
                    return head
                try:
                    self._fetch(head)
                except Absent:  # another generation has replaced this one meanwhile
                    continue
                return head
        raise Busy("the index is written faster than it can be read", "Try again in a moment")

    def _head(self) -> Head:
        state = self._state()
        tag = self.store.tag(self._prefix + HEAD)
        if tag is None:
            return Head()
        if tag == state.tag:
            return state
        with contextlib.suppress(Absent):
            return Head.of(*self.store.get(self._prefix + HEAD))
        return Head()

    def _state(self) -> Head:
        """The head that the copy was brought to."""
        with contextlib.suppress(OSError, ValueError, Damaged):
            raw = (self.folder / STATE).read_bytes()
            return Head.of(raw, Tag(*stored.parsed(raw, _State)["tag"]))
        return Head()

    def _note(self, head: Head) -> None:
        tag = [head.tag.e_tag, head.tag.version] if head.tag else None
        body = {"tag": tag, **json.loads(head.raw())}
        _write(self.folder / STATE, json.dumps(body).encode())

    def _fetch(self, head: Head) -> None:
        before, current = self._state(), head.generation()
        missing = [
            (path, size, sha)
            for path, (size, sha) in head.files.items()
            if before.files.get(path) != [size, sha] or not (self.folder / path).exists()
        ]
        with ThreadPoolExecutor(TRANSFERS) as pool:
            list(pool.map(lambda entry: self._load(*entry), missing))
        if head.manifest:
            _write(self.folder / "manifest.json", head.manifest.encode())
        else:
            (self.folder / "manifest.json").unlink(missing_ok=True)
        for path in (self.folder / "generations").glob("*.json"):
            if not path.stem.isdecimal() or int(path.stem) > current:
                path.unlink(missing_ok=True)
        # Readers of the generation before may still be at work: what that one had stays once more.
        past, older = self.folder / "older.json", set[str]()
        with contextlib.suppress(OSError, ValueError):
            older = set(stored.parsed(past.read_bytes(), list[Below]))
        for path in older - head.files.keys() - before.files.keys():
            (self.folder / path).unlink(missing_ok=True)
        _write(past, json.dumps(sorted(before.files.keys() - head.files.keys())).encode())
        self._note(head)

    def _load(self, path: str, size: int, sha: str) -> None:
        raw, _ = self.store.get(f"{self._objects}{sha}")
        if len(raw) != size or hashlib.sha256(raw).hexdigest() != sha:
            what = f"object {sha} of the store is not what was written"
            raise Damaged(what, "Index the documents into a new corpus")
        target = self.folder / path
        if not target.resolve().is_relative_to(self.folder.resolve()):
            raise Damaged(f"{HEAD} of the store names {path[:80]!r}", "Restore it from a backup")
        target.parent.mkdir(parents=True, exist_ok=True)
        _write(target, raw)

    # ---- writing ---------------------------------------------------------------------------------

    @contextlib.contextmanager
    def writing(self, timeout: float) -> Iterator[None]:
        """Hold the lease of the corpus, with the newest generation in the folder. Busy when another
        machine holds it for longer than `timeout` seconds."""
        self.store.probe()
        lease = [self._lease(time.monotonic() + timeout)]
        done, self._lost = threading.Event(), False

        def renew() -> None:
            while not done.wait(LEASE_SECONDS / RENEWED):
                with contextlib.suppress(GraphRAGError):  # the next time, perhaps
                    lease[0] = self.store.swap(self._prefix + LEASE, self._claim(), lease[0])
                    if lease[0] is None:
                        self._lost = True
                        return

        renewing = threading.Thread(target=renew, name="lease", daemon=True)
        try:
            self.pull()
            renewing.start()
            yield
        finally:
            done.set()
            if renewing.is_alive():
                renewing.join()
            with contextlib.suppress(GraphRAGError):  # it runs out by itself
                if lease[0] and self.store.tag(self._prefix + LEASE) == lease[0]:
                    self.store.delete([self._prefix + LEASE])

    def _claim(self) -> bytes:
        body = {"by": secrets.token_hex(8), "until": time.time() + LEASE_SECONDS}
        return json.dumps(body).encode()

    def _lease(self, end: float) -> Tag | None:
        seen, since, over = None, time.monotonic(), False
        while True:
            tag = self.store.tag(self._prefix + LEASE)
            if tag != seen:
                seen, since, over = tag, time.monotonic(), self._over()
            # Whether it has run out is seen by this machine's clock: it did not change for so long.
            if tag is None or over or time.monotonic() - since > LEASE_SECONDS:
                if taken := self.store.swap(self._prefix + LEASE, self._claim(), tag):
                    return taken
            if time.monotonic() > end:
                raise Busy(
                    f"another machine is indexing corpus {self.folder.name}",
                    "Wait for it, or try again; a lease of a dead writer is free after a minute",
                )
            time.sleep(0.1 + secrets.randbelow(100) / 1000)

    def _over(self) -> bool:
        """Has the lease run out a while ago by its own words? Clocks differ by less."""
        with contextlib.suppress(Absent, ValueError):
            raw, _ = self.store.get(self._prefix + LEASE)
            return stored.parsed(raw, _Lease)["until"] + LEASE_SECONDS < time.time()
        return False

    def push(self, generation: int, shas: Mapping[str, str], raw: bytes) -> None:
        """Take a commit to the store at once or, where another was first (Busy), not at all. `shas`:
        of its files, by their path in the folder; `raw`: the manifest."""
        if self._lost:
            raise Busy("another machine has taken over the lease of this corpus", "Run it again")
        base = self._state()
        present = [path for path in sorted(shas) if (self.folder / path).exists()]
        files = {path: [(self.folder / path).stat().st_size, shas[path]] for path in present}
        stored = {sha for _, sha in base.files.values()}
        new = {sha: path for path, (_, sha) in files.items() if sha not in stored}
        with ThreadPoolExecutor(TRANSFERS) as pool:
            list(pool.map(self._save, new, new.values()))
        named = {sha for _, sha in files.values()}
        head = Head(None, raw.decode(), files, sorted(stored - named))
        head.tag = self.store.swap(self._prefix + HEAD, head.raw(), base.tag)
        if head.tag is None:
            raise Busy("another writer has committed meanwhile", "Run it again; nothing was lost")
        self._note(head)
        with contextlib.suppress(GraphRAGError):  # what is left over is swept later
            dropped = [sha for sha in base.dropped if sha not in named]
            self.store.delete([f"{self._objects}{sha}" for sha in dropped])
            if generation % SWEPT_EVERY == 0:  # what killed writers have left
                old = time.time() - ORPHAN.total_seconds()
                kept = named.union(head.dropped)
                for entry in self.store.listed(self._objects):
                    sha = entry["path"].rpartition("/")[2]
                    if sha not in kept and entry["last_modified"].timestamp() < old:
                        self.store.delete([entry["path"]])

    def _save(self, sha: str, path: str) -> None:
        self.store.put(f"{self._objects}{sha}", self.folder / path)

    def remove(self) -> None:
        """Take the corpus out of the store: its head first."""
        self.store.delete([self._prefix + HEAD])
        for part in ("objects/", REPLIES):
            self.store.delete([entry["path"] for entry in self.store.listed(f"{self._prefix}{part}")])
        (self.folder / STATE).unlink(missing_ok=True)


# ---- a whole home -------------------------------------------------------------------------------

_listed: dict[Path, tuple[float, list[str]]] = {}


def corpora(home: Path) -> list[str]:
    """The corpora of the store; none where it cannot be reached and this machine has copies."""
    at, names = _listed.get(home, (-LIST_SECONDS, []))
    if time.monotonic() - at < LIST_SECONDS:
        return names

    def listed() -> list[str]:
        store = store_of(home)
        tags = {name: store.tag(f"corpora/{name}/{HEAD}") for name in store.folders("corpora/")}
        return [name for name, tag in tags.items() if tag is not None]

    later, copies = 0.0, any((home / "corpora").glob("*/manifest.json"))
    try:
        names = in_time(listed) if copies else listed()
    except GraphRAGError as error:
        if not copies:
            raise
        log.warning("%s; the copies on this machine are listed", error.what)
        later = BACK_OFF
    _listed[home] = (time.monotonic() + later, names)
    return names


def evict(home: Path, most: int, keep: str) -> list[str]:
    """Take the oldest copies off this machine until all take `most` bytes; gives their names."""
    from filelock import FileLock, Timeout

    entries = []
    for folder in (home / "corpora").iterdir():
        with contextlib.suppress(OSError, ValueError):
            files = stored.parsed((folder / STATE).read_bytes(), _Head)["files"]
            size = sum(size for size, _ in files.values())
            entries.append(((folder / STATE).stat().st_mtime, folder, size))
    total, evicted = sum(size for *_, size in entries), []
    for _, folder, size in sorted(entries):
        if total <= most or folder.name == keep:
            continue
        writer, pull = (FileLock(str(folder / name), timeout=0) for name in ("lock", "pull.lock"))
        with contextlib.suppress(Timeout), writer, pull:
            (folder / STATE).unlink(missing_ok=True)
            (folder / "manifest.json").unlink(missing_ok=True)
            for part in ("tables", "truth", "files", "generations"):
                shutil.rmtree(folder / part, ignore_errors=True)
            total -= size
            evicted.append(folder.name)
    return evicted


def _write(path: Path, raw: bytes) -> None:
    """The whole of it at once. What a power cut takes is fetched again."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    temporary.write_bytes(raw)
    os.replace(temporary, path)


def used(folder: Path) -> None:
    """Note that a search has read this copy, so that it is kept longest."""
    with contextlib.suppress(OSError):
        os.utime(folder / STATE)
