"""Checksums: of a row CRC-32 over its columns, of a file size, SHA-256 and CRC-32.

Lance never changes a file that it has written, so what a commit adds is hashed once: a record in
`files/` lists the new files, and the manifest names the records. Doctor compares the SHA-256,
opening a table the CRC-32.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from graphrag_mcp.store.schema import TABLES, VECTORS

BATCH = 8_192  # rows taken apart at once
SEEN = 8_000  # files remembered as whole, some 3 MB
FOLDERS = 8  # corpora of which what their records say is remembered
RECORDS = 32  # records that a manifest names; one more, and they are written again as one
LOOKED = (
    64 << 20
)  # bytes of a table's files that opening it may look at: 64 MB take 20 ms, once a process
WHOLE = 1 << 16  # bytes that are read at once
HINT = "latest_version_hint.json"  # the one file that Lance does change

Entry = dict[str, str]  # a record as a manifest names it: {file, sha256}
File = (
    tuple[int, str] | tuple[int, str, int]
)  # size, SHA-256, CRC-32; records from before have none of these
Files = dict[str, File]  # by path inside a table's folder


def seal(table_name: str, table: pa.Table) -> pa.Table:
    """The rows in the columns of their schema, with `check` computed where the schema has it."""
    schema = TABLES[table_name]
    if table_name in VECTORS.values():
        return table.select(schema.names)
    if "check" not in schema.names:
        return table.select(schema.names).cast(schema)
    bare = pa.schema([field for field in schema if field.name != "check"])
    table = table.select(bare.names).cast(bare)
    return table.append_column(schema.field("check"), check_values(table)).select(schema.names)


def prepared(table_name: str, rows: pa.Table | None) -> pa.Table | None:
    """The rows as they are written: sealed. ValueError where there are nulls."""
    if rows is None:
        return None
    rows = seal(table_name, rows)
    for column in rows.column_names:
        if rows[column].null_count:
            raise ValueError(
                f"{table_name}.{column} has {rows[column].null_count} nulls; they are never stored"
            )
    return rows


def check_values(table: pa.Table) -> pa.Array:
    """One value a row (int64): over numbers and lengths first, then over the bytes of texts and the
    parts of lists.

    Works on Arrow's buffers, 4 to 6 microseconds a row; a repr of every row costs about ten times
    that.
    """
    import numpy as np

    values: list[int] = []
    names = sorted(name for name in table.column_names if name != "check")
    for batch in table.select(names).to_batches(BATCH):
        numbers: list[Any] = []  # one int64 a row each
        pieces: list[
            tuple[memoryview, list[int]]
        ] = []  # bytes, and where each row's part begins (and the last ends)
        for column in batch.columns:
            _take_apart(column, np.arange(batch.num_rows + 1), True, numbers, pieces)
        width = 8 * len(numbers)
        fixed = memoryview(np.stack(numbers, axis=1).tobytes())
        for row in range(batch.num_rows):
            crc = zlib.crc32(fixed[row * width : (row + 1) * width])
            for data, ends in pieces:
                if ends[row] != ends[row + 1]:
                    crc = zlib.crc32(data[ends[row] : ends[row + 1]], crc)
            values.append(crc)
    return pa.array(values, pa.int64())


def _take_apart(
    array: pa.Array, rows: Any, top: bool, numbers: list[Any], pieces: list[Any]
) -> None:
    """Sort the content of `array` into `numbers` (one a row, only at the `top`) and `pieces`
    (ranges of bytes).

    `rows[i]:rows[i + 1]` are the values of row i: themselves at the top, a list's items below.
    """
    import numpy as np

    if pa.types.is_struct(array.type):
        for place in range(array.type.num_fields):
            _take_apart(array.field(place), rows, top, numbers, pieces)
        return
    if pa.types.is_list(array.type) or pa.types.is_string(array.type):
        if len(array):
            offsets = np.frombuffer(array.buffers()[1], np.int32)[
                array.offset : array.offset + len(array) + 1
            ]
        else:
            offsets = np.zeros(1, np.int32)
        ends = offsets.astype(np.int64)
        content = np.diff(ends)
        if pa.types.is_list(array.type):
            _take_apart(array.values, ends[rows], False, numbers, pieces)
        else:
            pieces.append((memoryview(array.buffers()[2] or b""), ends[rows].tolist()))
    else:
        if pa.types.is_boolean(array.type):
            array = array.cast(pa.int64())
        content = array.to_numpy(zero_copy_only=False)
    if top:
        numbers.append(content.view(np.int64))
    else:
        pieces.append((memoryview(content.tobytes()), (rows * 8).tolist()))


# ---- files ----------------------------------------------------------------------------------------


def record(
    folder: Path,
    entries: Sequence[Entry],
    before: Mapping[str, int],
    now: Mapping[str, int],
    generation: int,
) -> tuple[list[Entry], bytes]:
    """The records for the next manifest, and the bytes of the last of them (none when nothing is
    new).

    `entries` and `before` are the records and tables of the manifest before it: only what these do
    not know is hashed. A known file is never hashed again, so a bit that flips later is not taken
    for right.
    """
    known, broken = recorded(folder, entries) if now else ({}, [])
    dropped = (
        not before.keys() <= now.keys()
    )  # what is said of tables that are gone must not meet their successors
    merge = dropped or (len(entries) >= RECORDS and not broken)
    fresh: dict[str, Files] = {}
    for name in sorted(now):
        old = known.get(name, {}) if name in before else {}
        paths = _paths(folder / "tables" / f"{name}.lance", {} if merge else old)
        new = {path: old[path] if path in old else _measured(path, folder, name) for path in paths}
        fresh[name] = (
            new if merge else {path: value for path, value in new.items() if path not in old}
        )
    kept = [] if merge or not now else list(entries)
    if not any(fresh.values()):
        return kept, b""
    raw = json.dumps(
        {name: files for name, files in fresh.items() if files}, sort_keys=True
    ).encode()
    digest = hashlib.sha256(raw).hexdigest()
    return [*kept, {"file": f"{generation:08d}-{digest[:8]}.json", "sha256": digest}], raw


def recorded(folder: Path, entries: Sequence[Entry]) -> tuple[Mapping[str, Files], list[str]]:
    """What the records say, by table; and the names of records that cannot be used."""
    return _merged(str(folder), tuple((entry["file"], entry["sha256"]) for entry in entries))


def spoiled(
    folder: Path, entries: Sequence[Entry], table: str, version: int, limit: int = LOOKED
) -> list[str]:
    """Files that this version of the table reads and that are not what they were.

    Looks at each once a process, and at none where there are more than `limit` bytes to look at. A
    reader asks, so what is not there is no fault: the writer may have removed it.
    """
    wrong = []
    root, own = f"{folder}/tables/{table}.lance/", f"_versions/{(1 << 64) - 1 - version}.manifest"
    fresh = [entry for entry in entries if (root, version, entry["sha256"]) not in _seen]
    names = _content(root + own) if fresh else b""
    held = _held(str(folder), [entry["sha256"] for entry in entries])
    for entry in fresh:
        try:
            listed = _record(held, f"{folder}/files/{entry['file']}", entry["sha256"])
        except (OSError, ValueError):
            continue  # doctor will find it
        files = {
            path: known
            for path, known in listed.get(table, {}).items()
            if (path == own or _named(path, names)) and (root + path, *known[:2]) not in _seen
        }
        limit -= sum(size for size, *_ in files.values())
        if limit < 0:
            break
        if len(_seen) > SEEN:
            _seen.clear()  # a server that commits all day opens files without end
        bad = {
            path: what for path, known in files.items() if (what := _wrongness(root + path, *known))
        }
        wrong += [f"{table}.lance/{path}: {what}" for path, what in bad.items()]
        _seen.update((root + path, *known[:2]) for path, known in files.items() if path not in bad)
        if not bad:
            _seen.add((root, version, entry["sha256"]))
    return wrong


def _named(path: str, version: bytes) -> bool:
    """Does Lance's description of a version name this file? Half of what lies there belongs to
    older ones.

    It holds the names of data files, the 16 bytes of each index's id, and of files of deleted rows
    the number that ends their names. Where it names no data file so, Lance writes otherwise than it
    does today and every file counts.
    """
    kind, _, name = path.partition("/")
    if b".lance" not in version:
        return kind not in ("_versions", "_transactions")
    try:
        if kind == "data":
            return name.encode() in version
        if kind == "_indices":
            return bytes.fromhex(name.partition("/")[0].replace("-", "")) in version
        if kind == "_deletions":
            return _varint(int(name.partition(".")[0].rpartition("-")[2])) in version
    except ValueError:
        return True
    return kind not in ("_versions", "_transactions")


def _varint(number: int) -> bytes:
    """As protocol buffers write it, in which Lance describes a version."""
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def verify(
    folder: Path, entries: Sequence[Entry], tables: Mapping[str, int]
) -> Iterator[tuple[str, str]]:
    """(file, what is wrong with it) for all that is recorded and there, and for the records
    themselves.
    """
    known, _ = recorded(folder, entries)
    for entry in entries:  # as they are now, not as this process remembers them
        where = f"files/{entry['file']}"
        try:
            right = hashlib.sha256((folder / where).read_bytes()).hexdigest() == entry["sha256"]
        except OSError as error:
            yield where, f"it cannot be read ({error.strerror})"
            continue
        if not right:
            yield where, "its SHA-256 is not the one in the manifest"
    for table in sorted(tables):
        root = folder / "tables" / f"{table}.lance"
        for path, (size, sha256, *_) in sorted(known.get(table, {}).items()):
            if wrong := _wrongness(str(root / path), size, sha256):
                yield f"tables/{table}.lance/{path}", wrong
        yield from _hint(root, f"tables/{table}.lance/_versions/{HINT}", known.get(table, {}))


def _hint(root: Path, where: str, known: Files) -> Iterator[tuple[str, str]]:
    """The newest version, as Lance notes it beside them; after a kill it may be behind what was not
    committed.
    """
    try:
        raw = (root / "_versions" / HINT).read_bytes()
        versions = {
            (1 << 64) - 1 - int(path.stem): path.name
            for path in (root / "_versions").glob("*.manifest")
        }
        hint = json.loads(raw)["version"]
        if raw != json.dumps({"version": hint}, separators=(",", ":")).encode():
            raise ValueError(raw)
    except FileNotFoundError:
        return
    except OSError as error:
        yield where, f"it cannot be read ({error.strerror})"
        return
    except (ValueError, KeyError, TypeError):
        yield where, "it is not what Lance writes there"
        return
    if hint not in versions or any(
        n > hint and f"_versions/{name}" in known for n, name in versions.items()
    ):
        yield where, f"it says {hint}, which is not the newest version"


# Files, and records of a table, that this process has found whole.
_seen: set[tuple[str, int, str]] = set()
# What records say, by corpus and by the SHA-256 of each.
_parsed: dict[str, dict[str, dict[str, Any]]] = {}


@lru_cache(maxsize=1)
def _merged(
    folder: str, entries: tuple[tuple[str, str], ...]
) -> tuple[Mapping[str, Files], list[str]]:
    known: dict[str, Files] = {}
    broken = []
    held = _held(folder, [sha256 for _, sha256 in entries])
    for name, sha256 in entries:
        try:
            for table, files in _record(held, f"{folder}/files/{name}", sha256).items():
                known.setdefault(table, {}).update(
                    {path: tuple(value) for path, value in files.items()}
                )
        except (OSError, ValueError):
            broken.append(name)
    return known, broken


def _held(folder: str, named: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What was parsed of the records that a manifest names. Of others nothing is kept: one in 32
    lists every file there is, some 5 MB while an agent commits all day."""
    known = _parsed.pop(folder, {})
    _parsed[folder] = held = {sha256: known[sha256] for sha256 in named if sha256 in known}
    for other in list(_parsed)[:-FOLDERS]:
        _parsed.pop(other, None)
    return held


def _record(held: dict[str, dict[str, Any]], path: str, sha256: str) -> dict[str, Any]:
    if sha256 not in held:
        raw = Path(path).read_bytes()
        if hashlib.sha256(raw).hexdigest() != sha256:
            raise ValueError(path)
        held[sha256] = json.loads(raw)
    return held[sha256]


def _paths(root: Path, known: Files) -> Iterator[str]:
    """The files of a table. An index's folder is written before its version is, so a known one
    holds nothing new.
    """
    indexes = {path[: path.index("/", 9)] for path in known if path.startswith("_indices/")}
    flat = ["_deletions", "_transactions", "_versions", "data"]
    for folder in [*flat, *(f"_indices/{name}" for name in _names(root / "_indices"))]:
        if folder not in indexes:
            yield from (f"{folder}/{name}" for name in _names(root / folder) if name != HINT)


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""  # the one that opens it will say so


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []


def _measured(path: str, folder: Path, table: str) -> File:
    with open(f"{folder}/tables/{table}.lance/{path}", "rb") as file:
        size, sha256 = os.fstat(file.fileno()).st_size, _sha256(file)
        file.seek(0)
        return size, sha256, _crc32(file)


def _sha256(file: Any) -> str:
    """`hashlib.file_digest` makes room for 256 KB first, which costs more than hashing a small file
    does.
    """
    head = file.read(WHOLE)
    if len(head) < WHOLE:
        return hashlib.sha256(head).hexdigest()
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()


def _crc32(file: Any) -> int:
    crc = 0
    while block := file.read(WHOLE):
        crc = zlib.crc32(block, crc)
    return crc


def _wrongness(path: str, size: int, sha256: str, crc: int | None = None) -> str:
    try:
        with open(path, "rb", buffering=0) as file:
            if os.fstat(file.fileno()).st_size != size:
                return f"it has another size than the {size:,} bytes that were written"
            if crc is not None:
                return "" if _crc32(file) == crc else "its CRC-32 is not the one that was recorded"
            return "" if _sha256(file) == sha256 else "its SHA-256 is not the one that was recorded"
    except FileNotFoundError:
        return ""  # freed with the versions that named it
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
