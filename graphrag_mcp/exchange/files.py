"""Files of other programs (GraphRAG's tables, LightRAG's JSON and GraphML, ids of Lance tables), and
the content of their indexes in our terms.

Rows are mappings; a file that cannot be read raises Unreadable. NaN, and numbers and lists written as
text, are converted."""

from __future__ import annotations

import io
import json
import math
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from graphrag_mcp.errors import BadInput
from graphrag_mcp.store import stored
from graphrag_mcp.text.terms import counted

TABLES = ("documents", "text_units", "entities", "relationships", "communities")
TABLES += ("community_reports", "covariates")
CHUNKS, DOCS = "kv_store_text_chunks.json", "kv_store_full_docs.json"
STATUS = "kv_store_doc_status.json"
GRAPH = "graph_chunk_entity_relation.graphml"
SEP = "<SEP>"  # between the values of several chunks in one field of LightRAG
# Of one table: 500,000 rows of ten columns. As rows of Python they take some 0.5 GB.
MOST_VALUES = 5_000_000
# Of all tables of a folder, a row counted as at least VALUES_OF_A_ROW. On a busy machine `doctor` takes 2.6
# microseconds of CPU for a value and 13 for a row of one column: 21 seconds for MOST_IN_ALL.
MOST_IN_ALL = 8_000_000
VALUES_OF_A_ROW = 5
MOST_BYTES = 500_000_000
# Of GraphML, some nine for a node or edge of LightRAG: 0.5 to 0.8 kB of memory and 10 to 30 microseconds each.
MOST_ELEMENTS = 2_000_000
LONGEST = 20_000_000  # bytes of one value: a text costs several times its size on its way
Row = dict[str, Any]
Edge = tuple[str, str, Row]


class Unreadable(Exception):
    """A file that is there and cannot be read; the text is the reason."""

    def __init__(self, error: object) -> None:
        super().__init__(" ".join(str(error).split())[:160])


def kind_of(folder: Path) -> str:
    """`graphrag`, `lightrag` or "" for a folder of neither kind."""
    if any((folder / name).is_file() for name in (CHUNKS, DOCS, GRAPH)):
        return "lightrag"
    return "graphrag" if any(path_of(folder, name) for name in TABLES) else ""


def program_of(folder: Path) -> str:
    """As `kind_of`; BadInput for a folder of neither kind."""
    if kind := kind_of(folder):
        return kind
    raise BadInput(
        f"{folder} holds neither tables of GraphRAG nor a storage of LightRAG",
        "Name the folder with entities.parquet, or the one with kv_store_text_chunks.json",
    )


def located(folder: Path) -> Path:
    """The folder itself, or the one in it where both programs keep their output by default."""
    inner = (folder / "output", folder / "output" / "artifacts", folder / "rag_storage")
    return next((candidate for candidate in (folder, *inner) if kind_of(candidate)), folder)


def path_of(folder: Path, table: str) -> Path | None:
    """The file of a table, None where there is none."""
    path = folder / f"{table}.parquet"
    return path if path.is_file() else None


@dataclass
class Room:
    """How many values more are read of the tables of a folder."""

    values: int = MOST_IN_ALL

    def take(self, metadata: pq.FileMetaData) -> None:
        """Unreadable for a table that has more."""
        values = max(_values(metadata), VALUES_OF_A_ROW * metadata.num_rows)
        if values > self.values:
            raise Unreadable(
                f"it holds {metadata.num_rows:,} rows, and of all tables together at most "
                f"{MOST_IN_ALL:,} values are read, {VALUES_OF_A_ROW} for a row or more"
            )
        self.values -= values


def rows_of(folder: Path, table: str, room: Room | None = None) -> list[Row] | None:
    """All rows of a table, None where there is none. `room`: what the tables before it have left."""
    path = path_of(folder, table)
    if path is None:
        return None
    try:
        with pq.ParquetFile(path) as file:
            schema, metadata = file.schema, file.metadata
            _check_size(metadata)
            (room or Room()).take(metadata)
            columns = map(schema.column, range(len(schema.names)))
            texts = [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]
        # Equal texts are stored once. Read so, they can be measured before each takes its own place.
        with pq.ParquetFile(path, read_dictionary=texts) as file:
            read = file.read()
        size = sum(_decoded(part) for column in read.columns for part in column.chunks)
        if size > MOST_BYTES:
            raise Unreadable(f"it holds {size:,} bytes, and at most {MOST_BYTES:,} are read")
        if max((_longest(part) for column in read.columns for part in column.chunks), default=0) > LONGEST:
            raise Unreadable(f"it holds a longer value, and at most {LONGEST:,} bytes of one are read")
        return _plain(read).to_pylist()
    except (OSError, pa.ArrowException, ValueError) as error:
        raise Unreadable(error) from error


def _plain(table: pa.Table) -> pa.Table:
    """The table with each text in its own place: rows are made of it in a third of the time."""
    for at, column in enumerate(table.schema):
        if pa.types.is_dictionary(column.type):
            table = table.set_column(at, column.name, table.column(at).cast(column.type.value_type))
    return table


def _values(metadata: pq.FileMetaData) -> int:
    groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
    return sum(group.column(at).num_values for group in groups for at in range(group.num_columns))


def _check_size(metadata: pq.FileMetaData) -> None:
    """Unreadable for what would take too much memory, as far as the file's own numbers say it."""
    groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
    chunks = [group.column(at) for group in groups for at in range(group.num_columns)]
    if (values := _values(metadata)) > MOST_VALUES:
        raise Unreadable(f"it holds {values:,} values, and at most {MOST_VALUES:,} are read")
    if any(chunk.total_uncompressed_size > LONGEST * max(chunk.num_values, 1) for chunk in chunks):
        raise Unreadable(f"it holds a longer value, and at most {LONGEST:,} bytes of one are read")
    if (size := sum(chunk.total_uncompressed_size for chunk in chunks)) > MOST_BYTES:
        raise Unreadable(f"it holds {size:,} bytes, and at most {MOST_BYTES:,} are read")


def _longest(array: Any) -> int:
    """Bytes of the longest text of an array."""
    if pa.types.is_dictionary(array.type):
        return _longest(array.dictionary)
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        return _longest(array.flatten())
    if pa.types.is_struct(array.type):
        return max(map(_longest, array.flatten()), default=0)
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        return pc.max(pc.binary_length(array)).as_py() or 0
    return 0


def _decoded(array: Any) -> int:
    """Bytes of an array with every text written out."""
    if pa.types.is_dictionary(array.type):
        lengths = pc.binary_length(array.dictionary).cast(pa.int64())
        return pc.sum(lengths.take(array.indices)).as_py() or 0
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type):
        return array.nbytes + _decoded(array.flatten())
    if pa.types.is_struct(array.type):
        return sum(map(_decoded, array.flatten()))
    return array.nbytes


def json_of(folder: Path, name: str) -> dict[str, Row] | None:
    """The rows of a JSON store by key, None where there is none."""
    if (body := _object(folder / name)) is None:
        return None
    return {key: row for key, row in body.items() if isinstance(row, dict)}


def _object(path: Path) -> dict[str, Any] | None:
    try:
        raw = _bytes_of(path)
        if (values := stored.values_in(raw, MOST_VALUES)) > MOST_VALUES:
            raise Unreadable(f"it holds {values:,} values, and at most {MOST_VALUES:,} are read")
        body = stored.value(raw, nan=True)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise Unreadable(error) from error
    if not isinstance(body, dict):
        raise Unreadable("it holds no JSON object")
    return body


def _bytes_of(path: Path) -> bytes:
    """The content of a regular file of at most MOST_BYTES; a FIFO would be waited for."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise Unreadable("it is no regular file")
    if status.st_size > MOST_BYTES:
        raise Unreadable(f"it holds {status.st_size:,} bytes, and at most {MOST_BYTES:,} are read")
    return path.read_bytes()


def graph_of(folder: Path) -> tuple[list[tuple[str, Row]], list[Edge]] | None:
    """Nodes and edges of the GraphML file with their attributes, None where there is none."""
    import networkx

    if not (folder / GRAPH).exists():
        return None
    try:
        raw = _bytes_of(folder / GRAPH)
        plain = raw.replace(b"\0", b"")  # of UTF-16: in other XML no byte is 0
        if (elements := plain.count(b"</") + plain.count(b"/>")) > MOST_ELEMENTS:
            what = f"it holds {elements:,} elements"
            raise Unreadable(f"{what}, and at most {MOST_ELEMENTS:,} are read")
        graph = networkx.read_graphml(io.BytesIO(raw))
    except Unreadable:
        raise
    except Exception as error:  # a file of another form raises whatever its first wrong value does
        raise Unreadable(error) from error
    return list(graph.nodes(data=True)), list(graph.edges(data=True))


def empty(value: Any) -> bool:
    """None, NaN, blank text and the words that programs write for them."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return True
    return isinstance(value, str) and value.strip().lower() in ("", "nan", "none", "null")


def text(row: Mapping[str, Any], *names: str) -> str:
    """The first of these columns that holds something, as text; "" for none."""
    for name in names:
        if not empty(value := row.get(name)):
            return value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    return ""


def number(row: Mapping[str, Any], name: str) -> float | None:
    """A finite number, also one written as text; else None."""
    try:
        value = float(row[name])
    except (KeyError, TypeError, ValueError):
        return None
    return value if math.isfinite(value) else None


def whole(row: Mapping[str, Any], *names: str) -> int | None:
    """The first of these fields that holds a number, without what follows its point."""
    return next((int(found) for name in names if (found := number(row, name)) is not None), None)


def ids(row: Mapping[str, Any], *names: str) -> list[str]:
    """The first of these columns that holds a list of ids; [] for none."""
    found = next((value for name in names if isinstance(value := row.get(name), list)), [])
    return [str(id) for id in found if id is not None and str(id)]


def parts(row: Mapping[str, Any], name: str) -> list[str]:
    """The values of several chunks in one field of LightRAG, each once."""
    return list(dict.fromkeys(part.strip() for part in text(row, name).split(SEP) if part.strip()))


# ---- the content in our terms --------------------------------------------------------------------

T = TypeVar("T")


@dataclass(slots=True)
class SourceDocument:
    """`uri` only where the other index is one of ours."""

    id: str
    title: str
    text: str
    uri: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    created: str = ""


@dataclass(slots=True)
class SourceUnit:
    """`start`, `end`: characters of the document; -1 where the other index does not say so."""

    id: str
    number: int
    text: str
    documents: list[str]
    start: int = -1
    end: int = -1


@dataclass(slots=True)
class SourceEntity:
    """An entity of another index. `units`: ids of the text units that name it."""

    id: str
    number: int
    title: str
    type: str
    description: str
    units: list[str]
    key: str = ""  # only where the other index is one of ours
    aliases: list[str] = field(default_factory=list)


@dataclass(slots=True)
class SourceRelation:
    """`source` and `target` are titles."""

    id: str
    number: int
    source: str
    target: str
    description: str
    keywords: str
    weight: float
    units: list[str]


@dataclass(slots=True)
class SourceCommunity:
    """`parent` None: unknown, to be found by its members; -1: none."""

    number: int
    level: int
    parent: int | None
    entities: list[str]  # ids


@dataclass(slots=True)
class SourceReport:
    """A report of another index on a community, by its number."""

    community: int
    title: str
    summary: str
    full_content: str
    rank: float | None
    rating_explanation: str
    findings: list[tuple[str, str]]
    method: str


@dataclass
class Foreign:
    """`program`: graphrag, lightrag or graphrag-mcp. `faults`: (file, what is wrong) of files that
    are missing or cannot be read. `damaged`: those of them that must be there, so that what is not
    here may not be gone."""

    program: str
    documents: list[SourceDocument] = field(default_factory=list)
    units: list[SourceUnit] = field(default_factory=list)
    entities: list[SourceEntity] = field(default_factory=list)
    relations: list[SourceRelation] = field(default_factory=list)
    communities: list[SourceCommunity] = field(default_factory=list)
    reports: list[SourceReport] = field(default_factory=list)
    summaries: list[Row] = field(default_factory=list)  # as our own export has them
    notes: list[str] = field(default_factory=list)
    faults: list[tuple[str, str]] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)

    def by_hand(self, row: SourceEntity | SourceRelation) -> bool:
        """Was it made in an index of ours by an edit alone?"""
        return self.program == "graphrag-mcp" and not row.units

    def opened(self, name: str, read: Callable[[], T | None], expected: bool = True, needed: bool = True) -> T | None:
        """What `read` gives; None where the file cannot be read or is missing. Both are noted, the
        latter where the file is `expected`."""
        try:
            found, what = read(), "is missing"
        except Unreadable as error:
            found, expected, needed, what = None, True, True, f"cannot be read ({error})"
        if found is None and expected:
            self.notes.append(f"{name} {what}")
            self.faults.append((name, what))
            if needed:
                self.damaged.append(name)
        return found

    def note(self, count: int, things: str, what: str) -> None:
        """`2 claims: left out`, where there are any."""
        if count:
            self.notes.append(f"{counted(count, things)}: {what}")
