"""The documents of a file, and the parser process.

The parser is started for the first file that needs it and serves those after it, until `close`. One
that dies, hangs or floods costs one document; what comes back is checked."""

from __future__ import annotations

import atexit
import base64
import contextlib
import hashlib
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from graphrag_mcp.executors import Child
from graphrag_mcp.settings import Settings
from graphrag_mcp.sources import formats, licences
from graphrag_mcp.sources.decode import ReadError, clean, find_title, front_matter, iso_date, why_not
from graphrag_mcp.sources.document import Document
from graphrag_mcp.sources.opening import read, why
from graphrag_mcp.sources.piece import Described, NotRead, Picture, Piece, with_descriptions
from graphrag_mcp.sources.walk import NAMED_LIMIT, FoundFile, shown, suffix_of
from graphrag_mcp.text import dates
from graphrag_mcp.text.terms import content_id
from graphrag_mcp.types import InlineText

SECONDS = 25.0  # for one file; the process watches the clock itself, and this one
GRACE = 4.0  # seconds later, its start included
# bytes from which tables and JSON are parsed apart too: they take up to 40 times that in memory
LARGE = 4_000_000
OUTPUT = 120_000_000  # bytes that a file may become
PIECES = 200_000  # documents that one file may become
_KEPT = ("PATH SYSTEMROOT WINDIR TEMP TMP LANG LC_ALL LD_LIBRARY_PATH DYLD_LIBRARY_PATH GRAPHRAG_MCP_OCR").split()


Found = Piece | NotRead | Picture
Describe = Callable[[Sequence[Picture]], Sequence[Described]]  # has pictures described by a model


# ---- the parser process ---------------------------------------------------------------------------


def apart(suffix: str, size: int) -> bool:
    """Whether such a file is parsed in a process of its own."""
    return suffix in formats.APART or (size > LARGE and suffix in formats.ROWS)


class _Child(Child):
    def __init__(self) -> None:
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        # One arena: each thread's reserves 64 MB of the memory that a file may take.
        kept["MALLOC_ARENA_MAX"] = "1"
        options = {"cwd": sys.prefix, "stderr": subprocess.DEVNULL}
        super().__init__("sources.parser_child", kept, **options)
        self.late = False
        self.watch: threading.Timer | None = None
        self.sound = True  # may be used again

    def watched(self, seconds: float) -> None:
        """From now on it has so many seconds; 0: as many as it wants."""
        if self.watch is not None:
            self.watch.cancel()
        self.watch = threading.Timer(seconds, self.kill) if seconds else None
        if self.watch is not None:
            self.watch.daemon = True
            self.watch.start()

    def kill(self) -> None:
        self.late = True
        self.process.kill()

    def parse(self, data: bytes, suffix: str, seconds: float, described: bool, name: str) -> list[Found]:
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None and stdout is not None
        self.sound = False
        head = json.dumps(
            {"suffix": suffix, "size": len(data), "seconds": seconds, "described": described, "name": name}
        )
        with contextlib.suppress(OSError):  # it has died: reading says how
            stdin.write(head.encode() + b"\n" + data)
            stdin.flush()
        pieces: list[Found] = []
        size = 0
        while line := stdout.readline(OUTPUT):
            size += len(line)
            if size >= OUTPUT or len(pieces) > PIECES:
                limits = f"{PIECES:,} rows, or {OUTPUT / 1e6:g} MB of text"
                raise ReadError(f"it holds over {limits}. Split it")
            message = _read(line)
            if isinstance(message, Piece | NotRead | Picture):
                pieces.append(message)
                continue
            if "more" in message:  # another picture, which has the time of a file
                self.watched(seconds + GRACE)
                continue
            self.sound = not message.get("last")
            if message.get("error"):
                raise ReadError(str(message["error"])[:300])
            return pieces
        code = self.process.wait()
        # -24: SIGXCPU; 1: the clock inside, the only way to that code
        if self.late or code in (1, -24):
            raise ReadError(f"reading it takes over {seconds:g} seconds")
        if code in (77, -6, -9):
            raise ReadError("reading it takes too much memory")
        raise ReadError(f"its parser crashed (status {code})")


_lock = threading.RLock()
_child: _Child | None = None


def parse(data: bytes, suffix: str, seconds: float = SECONDS, described: bool = False, name: str = "") -> list[Found]:
    """All pieces of a file, and its pictures where they are `described`. ReadError with the reason,
    whatever happened to the process."""
    global _child

    with _lock:
        if _child is not None and _child.process.poll() is not None:
            close()
        child = _child = _child or _Child()
        child.watched(seconds + GRACE)
        try:
            return child.parse(data, suffix, seconds, described, name)
        finally:
            child.watched(0)
            if child.late or not child.sound:
                close()


def close() -> None:
    """End the process that parses, if there is one."""
    global _child

    with _lock:
        if _child is not None:
            _child.end()
            _child = None


atexit.register(close)


def _read(line: bytes) -> Found | dict[str, Any]:
    """A line of the child: a piece, a picture, a part that was not read, or its last word. ReadError
    for anything else."""
    with contextlib.suppress(ValueError, RecursionError, TypeError):
        message = json.loads(line)
        if isinstance(message, dict) and "not read" in message:
            name, reason = message["not read"]
            return NotRead(clean(str(name)), clean(str(reason))[:300])
        if isinstance(message, dict) and "picture" in message:
            data, place, key, metadata = message["picture"]
            picture = base64.b64decode(data, validate=True)
            return Picture(picture, clean(str(place)), clean(str(key)), dict(metadata))
        if isinstance(message, dict):
            return message
        kinds = [str, str, str, dict, bool, list, list]
        if isinstance(message, list) and [type(field) for field in message] == kinds:
            text, title, key, metadata, prose, places, written = message
            found = [(int(offset), clean(str(name))) for offset, name in places]
            ordered = all(place[0] <= other[0] for place, other in pairwise([(0, ""), *found, (len(text), "")]))
            links = tuple(
                (int(start), int(end), clean(str(page)), clean(str(part))) for start, end, page, part in written
            )
            if ordered:
                of_file = (clean(text), clean(title), clean(key), metadata, prose)
                return Piece(*of_file, tuple(found), links)
    raise ReadError("its parser crashed (broken output)")


# ---- documents ------------------------------------------------------------------------------------


def load(
    file: FoundFile, settings: Settings, not_read: list[NotRead] | None = None, describe: Describe | None = None
) -> Iterator[Document]:
    """The documents of a file, none when it is blank. ReadError with the reason. `not_read` gains
    the parts of it that are in no document: attachments of other kinds, damaged ones, pictures that the
    model did not `describe`, the terms of a licence that the folder only holds. A file with such pictures
    counts as changed, so that it is read again."""
    name = os.path.basename(file.path)
    try:
        data = read(file.path, NAMED_LIMIT if file.named else settings.max_file_bytes, file.links)
        changed = datetime.fromtimestamp(os.lstat(file.path).st_mtime, UTC)
    except OSError as error:
        raise ReadError(why(error)) from error
    digest, suffix = hashlib.sha256(data).hexdigest(), suffix_of(name)
    taken: dict[str, int] = {}
    try:
        pieces: Iterable[Piece | NotRead]
        if apart(suffix, len(data)):
            found = parse(data, suffix, described=describe is not None, name=shown(name))
            pieces = [piece for piece in found if not isinstance(piece, Picture)]
            if pictures := [picture for picture in found if isinstance(picture, Picture)]:
                assert describe is not None
                described = describe(pictures)
                pieces = _described(pieces, pictures, described)
                digest = digest if all(description.text for description in described) else ""
        else:
            without = formats.pieces(data, suffix)
            pieces = (piece for piece in without if not isinstance(piece, Picture))
        for number, piece in enumerate(pieces, 1):
            if isinstance(piece, NotRead):
                if not_read is not None:
                    not_read.append(piece)
                continue
            if number > settings.max_text_units:  # each is at least one text unit
                raise ReadError(
                    f"it holds over {settings.max_text_units:,} rows, and each would be a document. "
                    "Split it, join rows that belong together, or raise max_text_units in the settings"
                )
            if piece.prose and not piece.key and not file.named:
                piece, left = licences.without_terms(piece)
                if left is not None and not_read is not None:
                    not_read.append(left)
            if piece.text.strip():
                yield _document(file, piece, taken, digest, changed)
    except ReadError:
        raise
    except Exception as error:  # bytes from anywhere: one bad file never stops a run
        raise ReadError(why_not(error, suffix)) from error


def _described(
    pieces: Sequence[Piece | NotRead], pictures: Sequence[Picture], descriptions: Sequence[Described]
) -> list[Piece | NotRead]:
    """The pieces with what was said of the pictures, in the document that holds them: the whole file,
    or one inside of it."""
    lost = Counter(description.reason for description in descriptions if not description.text)
    has_text = any(isinstance(piece, Piece) for piece in pieces)
    if lost and not has_text and not any(description.text for description in descriptions):
        raise ReadError(f"the model has not described it ({next(iter(lost))})")
    by_key: dict[str, list[tuple[Picture, Described]]] = {}
    for picture, description in zip(pictures, descriptions, strict=True):
        by_key.setdefault(picture.key, []).append((picture, description))
    joined: list[Piece | NotRead] = []
    for piece in pieces:
        if isinstance(piece, Piece) and piece.key in by_key:
            piece = with_descriptions(piece, by_key.pop(piece.key))
        joined.append(piece)
    for key, pairs in by_key.items():  # in documents without text
        blank = Piece("", key.rpartition("/")[2], key, pairs[0][0].metadata)
        joined.append(with_descriptions(blank, pairs))
    undescribed = [
        NotRead("", f"{count} pictures not described by the model ({reason})") for reason, count in lost.items()
    ]
    return [*joined, *undescribed]


def _document(file: FoundFile, piece: Piece, taken: dict[str, int], digest: str, changed: datetime) -> Document:
    name, uri = shown(os.path.basename(file.path)), file.uri
    if piece.key:
        uri = f"{file.uri}#{piece.key}"
        taken[uri] = taken.get(uri, 0) + 1
        while taken[uri] > 1:  # `a~2` may itself be an id
            uri = f"{file.uri}#{piece.key}~{taken[uri]}"
            taken[uri] = taken.get(uri, 0) + 1
    title = piece.title or (find_title(piece.text) if piece.prose else "")
    title = title or (f"{name} #{piece.key}" if piece.key else name)
    metadata = dict(piece.metadata)
    known = {key.casefold(): value for key, value in metadata.items()}
    dated = known.get("date") or dates.of_metadata(known) or dates.in_name(name)
    if piece.prose and not dated:
        body = piece.text[front_matter(piece.text)[1] :]
        date = dates.in_head(body)
        metadata |= {"date": date} if date else {}
    created = iso_date(metadata.get("date") or metadata.get("created") or "")
    created = created or changed.isoformat(timespec="seconds")
    title = _one_line(title)
    of_file = (file.uri, digest, piece.places, piece.links)
    return Document(uri, title, piece.text, metadata, created, *of_file)


def _one_line(title: object) -> str:
    return clean(" ".join(str(title).split())[:300])


def inline(texts: Sequence[InlineText]) -> Iterator[Document]:
    """Texts of a call as documents, without blank ones; of two with one id the last counts."""
    documents: dict[str, Document] = {}
    for inline_text in texts:
        text = clean(inline_text.text)
        if not text.strip():
            continue
        digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
        name = clean(" ".join(inline_text.id.split())[:300]) or content_id(text)[:12]
        metadata = json.loads(clean(json.dumps(inline_text.metadata, default=str, ensure_ascii=False)))
        uri = f"text:{name}"
        title = _one_line(inline_text.title or find_title(text) or name)
        created = iso_date(metadata.get("date", ""))
        documents[uri] = Document(uri, title, text, metadata, created, uri, digest)
    yield from documents.values()
