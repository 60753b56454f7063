"""The manifest: the file that names the content of an index. Replacing it is the commit.

A commit first keeps the generation as `generations/<n>.json`, then swaps `manifest.json`: a crash
in between leaves a generation that no one reads; a lost `manifest.json` loses none.

Sizes and SHA-256 of the tables' files are recorded first, in `files/`; the manifest names the
record. Lance never changes a file that it has written, so each is hashed once."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import json
import logging
import os
import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BeforeValidator

from graphrag_mcp import errors
from graphrag_mcp.settings import address_of
from graphrag_mcp.store import stored
from graphrag_mcp.store.stored import Below, Count, FileName, Open

if TYPE_CHECKING:
    from graphrag_mcp.store.mirror import Mirror

# 2 and 3 have the same tables. What is in 3 has logs beside that of the documents (edits by hand,
# imports): a release that knows only 2 would derive the tables without them, so it must not open
# it. Without such logs 2 is written.
FORMAT, WITHOUT_LOGS = 3, 2
FIRST_LOG = "documents"
# Bump when the meaning of derived rows changes: the next indexing derives everything again.
DERIVATION = 31
# the parameter `derivation` while other parameters than those named are taking their place
IN_PART = "in part"
KEEP_SECONDS = 600.0  # every generation younger than this stays readable,
KEEP_LAST = 20  # and the last of this many runs whatever their age
REPAIR = "Run graphrag-mcp doctor --repair"
# Tables whose rows are counted; of documents those that are still to be derived are counted as well.
COUNTED = ("text_units", "passages", "entities", "relationships", "communities", "reports")
FIRST_NUMBERS = {"d": 1, "t": 1, "e": 1, "r": 1, "c": 1}

log = logging.getLogger(__name__)


class _Segment(Open):
    """The schema of an entry of `Manifest.segments`."""

    kind: str
    file: FileName
    rows: Count
    sha256: str


class _Record(Open):
    """The schema of an entry of `Manifest.files`."""

    file: FileName
    sha256: str


class _Source(Open):
    """The schema of a value of `Manifest.sources`."""

    path: str
    kind: str


class _Parameters(Open, total=False):
    """Those whose values are used; others are only compared."""

    edits: Count
    numbers: dict[str, Count]
    embedding: str


def _as(schema: Any) -> AfterValidator:
    """A field of plain dictionaries whose values have a schema."""
    return AfterValidator(lambda value: stored.shaped(value, schema))


@dataclass(frozen=True)
class Manifest:
    """One generation of one corpus. Change it with `dataclasses.replace` only."""

    corpus: str
    generation: Count = 0
    format: Count = FORMAT
    created: str = ""  # ISO 8601, when this generation was committed
    # {kind, file, rows, sha256}, in order of writing.
    segments: Annotated[list[dict[str, Any]], _as(list[_Segment])] = field(default_factory=list)
    tables: dict[FileName, Count] = field(default_factory=dict)  # LanceDB table -> version
    counters: dict[str, Count] = field(default_factory=dict)
    # The next alias number of each kind.
    next: dict[str, Count] = field(default_factory=lambda: dict(FIRST_NUMBERS))
    # Label -> {path, kind: folder|files}.
    sources: Annotated[dict[str, dict[str, str]], _as(dict[str, _Source])] = field(default_factory=dict)
    parameters: Annotated[dict[str, Any], _as(_Parameters)] = field(default_factory=dict)
    stale: list[str] = field(default_factory=list)
    communities_generation: Count = 0
    began: Count = 0  # the first generation of the run that this one is of; 0: of no other
    # Records of what the tables' files are, {file, sha256}; `commit` makes them.
    files: Annotated[list[dict[str, str]], _as(list[_Record])] = field(default_factory=list, compare=False)

    def to_json(self) -> str:
        """Readable JSON with `check`, the SHA-256 over the canonical JSON of everything else."""
        body = asdict(self)
        if self.format == FORMAT and all(segment["kind"] == FIRST_LOG for segment in self.segments):
            body["format"] = WITHOUT_LOGS
        whole = {**body, "check": _check(body)}
        return json.dumps(whole, sort_keys=True, indent=1, ensure_ascii=False) + "\n"

    def following(self, **changes: Any) -> Manifest:
        """The next generation; communities that are those of this one stay so."""
        number = self.generation + 1
        settled = self.communities_generation == self.generation
        fields = {"generation": number, "created": now()}
        fields |= {"communities_generation": number} if settled else {}
        return replace(self, **fields | changes)

    def readers(self) -> dict[str, Any]:
        """The parameters that say who has read the texts. They stay where everything else is derived
        again: then what a model or an agent answered is looked up, and not thrown away."""
        names = ("extraction", "agent", "light", "reading", "reports")
        return {name: self.parameters[name] for name in names if name in self.parameters}

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        return [segment for segment in self.segments if segment["kind"] == kind]

    def named_files(self, folder: Path) -> dict[str, str]:
        """The SHA-256 of every file of this generation, by its path in the folder."""
        found = {f"truth/{segment['file']}": segment["sha256"] for segment in self.segments}
        found |= {f"files/{entry['file']}": entry["sha256"] for entry in self.files}
        known, broken = recorded(folder, self.files)
        if broken:
            raise errors.Damaged(f"the record {broken[0]}", REPAIR)
        for table in self.tables:
            for path, (_, sha256) in known.get(table, {}).items():
                found[f"tables/{table}.lance/{path}"] = sha256
        return found

    def of_another_release(self) -> bool:
        """Do rows mean other things than what this release derives? Not told while in part."""
        return self.parameters.get("derivation", DERIVATION) not in (DERIVATION, IN_PART)


def now() -> str:
    """The time in UTC, ISO 8601 to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def parse(raw: bytes, where: str) -> Manifest:
    """The manifest in these bytes. Raises Damaged (torn, or changed since) or NewerFormat."""
    try:
        body = stored.shaped(stored.value(raw), dict[str, Any])
        wrong = body.pop("check") != _check(body)
        form = stored.shaped(body.get("format", 0), Count)
    except (ValueError, KeyError) as error:
        raise errors.Damaged(f"{where} is not a complete manifest", REPAIR) from error
    # A later release may make the check value of something else. Taken for damage, an earlier
    # generation would be built on and replace it. One bit makes 6 of 2 and 7 of 3: damage, and no
    # later release.
    if form > FORMAT and not (wrong and form in (6, 7)):
        what = f"{where} has format {form}, this release reads up to {FORMAT}"
        raise errors.NewerFormat(what, "Upgrade graphrag-mcp, or index again")
    if wrong:
        raise errors.Damaged(f"{where} does not match its check value", REPAIR)
    try:
        manifest = stored.shaped(body, Manifest)
    except ValueError as error:
        raise errors.Damaged(f"{where} is no manifest ({error})", REPAIR) from error
    for name in COUNTED:
        if manifest.counters.get(name) and name not in manifest.tables:
            raise errors.Damaged(f"{where} counts {name} and names no table of them", REPAIR)
    return replace(
        manifest,
        format=FORMAT if manifest.format == WITHOUT_LOGS else manifest.format,
        next={**FIRST_NUMBERS, **manifest.next},  # an earlier release knew fewer kinds
    )


def read(folder: Path) -> Manifest | None:
    """The committed generation of a corpus folder; None when nothing was ever committed.

    Where `manifest.json` is missing or unreadable, the newest kept generation stands in (a warning
    is logged). Damaged where it does not match its check value and no generation does."""
    path = folder / "manifest.json"
    try:
        return parse(path.read_bytes(), str(path))
    except FileNotFoundError:
        kept = generations(folder)
        if kept:
            log.warning("%s is missing; generation %d stands in", path, kept[-1].generation)
        return kept[-1] if kept else None
    except OSError as error:
        what = f"{path} cannot be read ({error.strerror})"
        advice = "Give this user the right to read it, or restore it from a backup"
        raise errors.Damaged(what, advice) from error
    except errors.Damaged as error:
        kept = generations(folder)
        if not kept:
            raise
        log.warning("%s; generation %d stands in", error.what, kept[-1].generation)
        return kept[-1]


def current(folder: Path) -> Manifest:
    """As `read`; NotFound when nothing was ever committed there."""
    if (manifest := read(folder)) is None:
        raise errors.NotFound(f"no index at {folder}", "Call index_documents(paths=[...]) first")
    return manifest


def generations(folder: Path) -> list[Manifest]:
    """The kept generations that are whole, oldest first."""
    kept = []
    for path in sorted((folder / "generations").glob("*.json")):
        try:
            kept.append(parse(path.read_bytes(), str(path)))
        except FileNotFoundError:  # pruned by the writer meanwhile
            continue
        except (errors.Damaged, errors.NewerFormat) as error:
            log.warning("%s", error.what)
        except OSError as error:
            log.warning("%s cannot be read (%s)", path, error.strerror)
    return sorted(kept, key=lambda manifest: manifest.generation)


def commit(folder: Path, manifest: Manifest) -> None:
    """Make `manifest` current, durably and all at once; then forget generations past keeping.

    Only for the holder of the writer's lock. GraphRAGError: nothing, or at the end all, was
    written."""
    with writing(folder):
        before = read(folder) or Manifest(manifest.corpus)
        number, tables = manifest.generation, manifest.tables
        files, new = record(folder, before.files, before.tables, tables, number)
        if new:
            (folder / "files").mkdir(parents=True, exist_ok=True)
            write_durably(folder / "files" / files[-1]["file"], new)
        (folder / "generations").mkdir(parents=True, exist_ok=True)
        manifest = replace(manifest, files=files)
        raw = manifest.to_json().encode("utf-8")
        kept = folder / "generations" / f"{manifest.generation:08d}.json"
        write_durably(kept, raw)
        if (store := mirrored(folder)) is not None:
            try:
                store.push(manifest.generation, manifest.named_files(folder), raw)
            except BaseException:
                kept.unlink(missing_ok=True)
                raise
        write_durably(folder / "manifest.json", raw)
        for path in unnamed(folder, [manifest, *prune(folder, manifest.generation)]):
            path.unlink(missing_ok=True)


def unnamed(folder: Path, kept: Sequence[Manifest]) -> list[Path]:
    """Truth segments and records that no generation names. The lock's holder may remove them."""
    named = {entry["file"] for generation in kept for entry in [*generation.segments, *generation.files]}
    paths = [path for name in ("truth", "files") for path in sorted((folder / name).glob("*"))]
    return [path for path in paths if path.name not in named]


@contextlib.contextmanager
def writing(folder: Path) -> Iterator[None]:
    """What the system says of a disk that is full, failing or not ours, as an error of ours."""
    try:
        yield
    # the latter is what LanceDB raises, with lines of its source
    except (OSError, RuntimeError) as error:
        if errors.out_of_files(error):
            raise errors.too_many_files() from error
        reason = getattr(error, "strerror", None) or str(error).splitlines()[0][:300]
        if number := re.search(r"\(os error (\d+)\)", reason):
            reason = os.strerror(int(number[1]))
        raise errors.GraphRAGError(
            f"corpus {folder.name} cannot be written ({reason})",
            "Free disk space or give this user the right to write there, then run it again; what was committed is kept",
        ) from error


def prune(folder: Path, current: int) -> list[Manifest]:
    """Forget generations past keeping: of a run all but the last, what is beyond the last runs, and
    numbers above the current one, left by commits that did not happen. Gives those that stay."""
    kept, ends, first = [], 0, current + 1
    for path in sorted((folder / "generations").glob("*.json"), reverse=True):
        try:
            generation = parse(path.read_bytes(), str(path))
        except (OSError, errors.GraphRAGError):  # it names nothing
            generation = Manifest("", int(path.stem) if path.stem.isdecimal() else 0)
        if generation.generation > current:
            path.unlink(missing_ok=True)
            continue
        ends += generation.generation < first
        past = generation.generation >= first or ends > KEEP_LAST
        first = min(first, generation.began or generation.generation)
        if past and time.time() - path.stat().st_mtime > KEEP_SECONDS:
            path.unlink(missing_ok=True)
        else:
            kept.append(generation)
    return kept


def write_durably(path: Path, raw: bytes, mark: str = "") -> None:
    """Write beside, fsync, rename over `path`, fsync the folder: a reader sees the old bytes or the
    new ones. `mark` keeps apart what several write at once, where no lock does."""
    temporary = path.with_name(f".{path.name}{mark}.tmp")
    try:
        with open(temporary, "wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        replace_file(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def replace_file(temporary: Path, path: Path) -> None:
    """Rename a file that is already on disk over `path` and make the rename durable."""
    for attempt in range(20):
        try:
            os.replace(temporary, path)
            break
        except PermissionError:  # Windows refuses while someone reads the old file
            if os.name != "nt" or attempt == 19:
                raise
            time.sleep(0.05)
    if os.name != "nt":  # a folder cannot be opened for fsync there
        descriptor = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def mirrored(folder: Path) -> Mirror | None:
    """The corpus on object storage that this folder is a copy of; None for most."""
    if folder.parent.name != "corpora" or not address_of(folder.parent.parent):
        return None
    from graphrag_mcp.store import mirror

    return mirror.of(folder)


@contextlib.contextmanager
def writer_lock(folder: Path, timeout: float) -> Iterator[None]:
    """Hold the corpus's one writer's lock; Busy when another holds it for longer than `timeout`
    seconds. On object storage the lock is a lease, and the newest generation is fetched."""
    store = mirrored(folder)
    with local_lock(folder, timeout), store.writing(timeout) if store else contextlib.nullcontext():
        yield


@contextlib.contextmanager
def local_lock(folder: Path, timeout: float) -> Iterator[None]:
    """The same among the processes of this machine."""
    from filelock import FileLock, Timeout

    lock = FileLock(str(folder / "lock"), timeout=timeout)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout as error:
        what = f"another process is indexing corpus {folder.name}"
        raise errors.Busy(what, "Wait for it with graph_status, or try again") from error
    except (OSError, RuntimeError) as error:  # the latter where a file system knows no locks
        if errors.out_of_files(error):
            raise errors.too_many_files() from error
        what = f"{folder / 'lock'} cannot be locked ({getattr(error, 'strerror', None) or error})"
        advice = "Free disk space or give this user the right to write there, then retry"
        raise errors.GraphRAGError(what, advice) from error
    try:
        yield
    finally:
        lock.release()


def _check(body: dict[str, Any]) -> str:
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8")).hexdigest()


# ---- what the files of tables must be ------------------------------------------------------------

SEEN = 8_000  # files remembered as whole, some 3 MB
HINT = "latest_version_hint.json"  # the one file that Lance does change; it does without, too

Entry = dict[str, str]  # a record as a manifest names it: {file, sha256}
Tables = Collection[str]  # their names
File = tuple[int, str]  # size, SHA-256
_File = Annotated[File, BeforeValidator(lambda value: value[:2] if isinstance(value, list) else value)]
Files = dict[str, File]  # by path inside a table's folder


def record(
    folder: Path, entries: Sequence[Entry], before: Tables, now: Tables, generation: int
) -> tuple[list[Entry], bytes]:
    """The record for the next manifest, and its bytes (none when nothing is new).

    `entries` and `before` are the records and tables of the manifest before it: only what these do
    not know is hashed. A known file is never hashed again, so a bit that flips later is not taken
    for right, and a record that is damaged stays named until it is repaired. What is said of tables
    that are gone must not meet their successors."""
    known, broken = recorded(folder, entries)
    damaged = [entry for entry in entries if entry["file"] in broken]
    files: dict[str, Files] = {}
    for name in sorted(now):
        root = folder / "tables" / f"{name}.lance"
        old = known.get(name, {}) if name in before else {}
        found = {path: old.get(path) or _measured(f"{root}/{path}") for path in _paths(root)}
        files |= {name: found} if found else {}
    if not files:
        return [], b""
    if files == known:
        return list(entries), b""
    raw = json.dumps(files, sort_keys=True).encode()
    digest = hashlib.sha256(raw).hexdigest()
    entry = {"file": f"{generation:08d}-{digest[:8]}.json", "sha256": digest}
    return [*damaged, entry], raw


def recorded(folder: Path, entries: Sequence[Entry]) -> tuple[Mapping[str, Files], list[str]]:
    """What the records say, by table; and the names of records that cannot be used."""
    known: dict[str, Files] = {}
    broken = []
    for entry in entries:
        try:
            raw = (folder / "files" / entry["file"]).read_bytes()
            if hashlib.sha256(raw).hexdigest() != entry["sha256"]:
                raise ValueError(entry["file"])
            for table, files in _record_in(raw).items():
                known.setdefault(table, {}).update(files)
        except (OSError, ValueError):
            broken.append(entry["file"])
    return known, broken


@lru_cache(maxsize=4)  # each table of a generation asks for the same record
def _record_in(raw: bytes) -> Mapping[str, Files]:
    return stored.parsed(raw, dict[FileName, dict[Below, _File]])


def spoiled(folder: Path, entries: Sequence[Entry], table: str) -> list[str]:
    """Files of the table that are not what they were. Each is looked at once a process.

    A reader asks, so what is not there is no fault: the writer may have removed it."""
    wrong = []
    known, _ = recorded(folder, entries)
    if len(_seen) > SEEN:
        _seen.clear()  # a server that commits all day opens files without end
    for path, value in known.get(table, {}).items():
        where = f"{folder}/tables/{table}.lance/{path}"
        if (where, *value) in _seen or path.startswith("_transactions/"):
            continue
        if what := _wrongness(where, *value):
            wrong.append(f"{table}.lance/{path}: {what}")
        else:
            _seen.add((where, *value))
    return wrong


def verify(folder: Path, entries: Sequence[Entry], tables: Tables) -> Iterator[tuple[str, str]]:
    """(file, what is wrong with it) for all files of tables that are recorded and there."""
    known, _ = recorded(folder, entries)
    for table in sorted(tables):
        root = folder / "tables" / f"{table}.lance"
        for path, (size, sha256) in sorted(known.get(table, {}).items()):
            if wrong := _wrongness(str(root / path), size, sha256):
                yield f"tables/{table}.lance/{path}", wrong


def differing(folder: Path, entries: Sequence[Entry]) -> Iterator[tuple[str, str]]:
    """(file, what is wrong with it) of these {file, sha256} in a folder, as they are now."""
    for entry in entries:
        try:
            if _measured(str(folder / entry["file"]))[1] != entry["sha256"]:
                yield entry["file"], "its SHA-256 is not the one in the manifest"
        except OSError as error:
            yield entry["file"], f"cannot be read ({error.strerror})"


_seen: set[tuple[str, int, str]] = set()  # files that this process has found whole


def _paths(root: Path) -> list[str]:
    found = []
    for folder, _, names in os.walk(root):
        inside = Path(folder).relative_to(root).as_posix()
        found += [f"{inside}/{name}" for name in names if name != HINT]
    return sorted(found)


def _measured(path: str) -> File:
    with open(path, "rb") as file:
        return os.fstat(file.fileno()).st_size, hashlib.file_digest(file, "sha256").hexdigest()


def _wrongness(path: str, size: int, sha256: str) -> str:
    """What is wrong with a file; "" for nothing."""
    try:
        found = _measured(path)
    except FileNotFoundError:
        return ""  # freed with the versions that named it
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    if found[0] != size:
        return f"it has another size than the {size:,} bytes that were written"
    return "" if found[1] == sha256 else "its SHA-256 is not the one that was recorded"
