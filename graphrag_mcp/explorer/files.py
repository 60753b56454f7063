"""Files of the page: what a person adds to a folder of this server, and the originals of documents.

A name of an upload is a relative path of plain parts, written below one folder of the first root, never
over another file unless that is asked for. An original is read below the folder of its source. A
browser opens it in a tab of its own, which sends no token: its address holds a ticket for that one
file instead, which is valid for some minutes. PDF files and pictures are shown, text of any kind as
plain text in a sandbox, everything else is saved; nothing is run. Callers who are not the user of this
machine are given texts with credentials masked, and no file of which a mask would not cover one."""

from __future__ import annotations

import base64
import hashlib
import hmac
import math
import os
import re
import secrets
import subprocess
import sys
import time
import unicodedata
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from graphrag_mcp.errors import BadInput, GraphRAGError, NotFound, OutsideRoots
from graphrag_mcp.sources import formats, opening, read
from graphrag_mcp.sources.origin import file_of, real_file_of
from graphrag_mcp.sources.piece import NotRead, Piece
from graphrag_mcp.sources.walk import NAMED_LIMIT, suffix_of
from graphrag_mcp.trust.fencing import SHOW_SECRETS, SUBJECT, TELL_PATHS, masked, spans

if TYPE_CHECKING:
    from graphrag_mcp.app import App
    from graphrag_mcp.settings import Settings

UPLOADS = "added to graphrag"  # the folder in the first root that uploads go to
FILE = "/explore/file/"  # before a ticket
VALID = 300  # seconds of a ticket
PARTS, PART = 12, 200  # parts of a name; bytes of one
TEXT_BYTES = 5_000_000  # of a file that is shown as text; longer ones are saved
NOBODY = "~"  # in a ticket without a token's name, which cannot have that sign
_KEY = secrets.token_bytes(32)  # of this process and the workers that it forks
_RESERVED = re.compile(r"(con|prn|aux|nul|(com|lpt)[\d¹²³]) *(\..*)?", re.IGNORECASE)
# What a browser shows without running anything; svg is not among it.
PICTURES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
UNCHECKED = "parts of this file cannot be checked for credentials"
SECRET = "this file holds what looks like a credential"
RECOUNT = 5  # seconds
LEFT = 86_400  # seconds without a write, from which a part of an upload is one that was left behind
_PART = re.compile(r"\.[0-9a-f]{16}\.part")
SANDBOX = "default-src 'none'; sandbox; frame-ancestors 'none'"


class Exists(GraphRAGError):
    """Another file has that name."""


# ---- uploads ----------------------------------------------------------------------------------------


def folder_of_uploads(app: App) -> Path:
    """The folder that uploads go to; it need not be there yet. OutsideRoots without a root, BadInput
    where a link has its name."""
    root = app.allowed(".")
    folder = root if root.name == UPLOADS else root / UPLOADS  # the page may be opened on that folder
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise BadInput(f"{UPLOADS} is no folder", "Rename it")
    return folder


def path_for_caller(app: App, path: Path) -> str:
    """A path as the caller may know it, and as tools take it: whole for the user of this machine, else
    relative to the first root; "" for one outside of it."""
    if TELL_PATHS.get():
        return str(path)
    roots = app.settings.roots
    try:
        return path.resolve().relative_to(roots[0].resolve()).as_posix() if roots else ""
    except ValueError:
        return ""


@dataclass
class Uploaded:
    """What lies in the folder of uploads: counted on the disk, at most every RECOUNT seconds, and kept
    in step with the uploads of this process in between."""

    files: int = 0
    bytes: int = 0
    counted: float = -math.inf  # time.monotonic

    def count(self, folder: Path) -> None:
        """Count the files below the folder again where the last count is old, and delete parts that a killed
        process has left. It follows no link."""
        if time.monotonic() - self.counted < RECOUNT:
            return
        files = size = 0
        for above, _, names in os.walk(folder):
            for name in names:
                with suppress(OSError):
                    path = os.path.join(above, name)
                    status = os.lstat(path)
                    if _PART.fullmatch(name) and status.st_mtime < time.time() - LEFT:
                        os.unlink(path)
                        continue
                    size += status.st_size
                files += 1
        self.files, self.bytes, self.counted = files, size, time.monotonic()

    def check(self, settings: Settings, replaced: int | None = None) -> None:
        """BadInput where the folder holds more than the settings allow. `replaced`: bytes of the file
        whose place an upload takes, None for none."""
        most = settings.max_upload_bytes
        if most and self.bytes - (replaced or 0) > most:
            what = f"the folder for uploads is full: all files together may have {most / 1e6:g} MB"
            raise BadInput(what, "Delete some of them, or raise the setting max_upload_bytes")
        if self.files - (replaced is not None) > settings.max_files:
            what = f"the folder for uploads is full: it may hold {settings.max_files:,} files"
            raise BadInput(what, "Delete some of them, or raise the setting max_files")


def checked(name: str) -> tuple[str, ...]:
    """The parts of a name that a file may get on any system. BadInput for any other."""
    name = unicodedata.normalize("NFC", name)
    parts = tuple(name.split("/"))
    wrong = len(parts) > PARTS or any(
        not part
        or part.startswith((".", "~"))
        or part.endswith((".", " "))
        or len(part.encode("utf-8", "replace")) > PART
        or re.search(r'[\x00-\x1f\x7f\\:*?"<>|]', part)
        or any(unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp") for sign in part)
        or _RESERVED.fullmatch(part)
        for part in parts
    )
    if wrong:
        if any(len(part.encode("utf-8", "replace")) > PART for part in parts):
            raise BadInput(f"a name of a file or folder is longer than {PART} bytes", "Shorten it")
        what = f"the name {name[:120]!r} is hidden, too deep, or has signs that a system reserves"
        raise BadInput(what, "Rename it")
    return parts


async def added(
    app: App, name: str, replace: bool, stream: AsyncIterator[bytes], uploaded: Uploaded
) -> tuple[Path, int]:
    """Write an upload: (its path, its bytes). Exists where another file has the name, unless it is to
    be replaced; BadInput for a name or size that is not taken, and where the folder is full. A part of a
    file is never seen under its name, and an upload that fails leaves no folder."""
    from starlette.concurrency import run_in_threadpool

    parts = checked(name)
    folder, most = folder_of_uploads(app), app.settings.max_file_bytes
    target = folder.joinpath(*parts)
    if os.path.lexists(target) and not replace:
        raise Exists(f"there is a file {name} already", "Replace it, or rename yours")
    above = target.parent
    while above != folder and not os.path.lexists(above):
        above = above.parent
    if above != folder and not above.is_dir():
        what = f"{name[:120]!r} would lie in a folder that has the name of a file"
        raise BadInput(what, "Choose another name")
    if above != folder:
        _within(app, folder, above, name)  # before a folder is made behind a link
    if target.is_dir():
        raise BadInput(f"{name[:120]!r} is a folder", "Choose another name")
    folder.mkdir(parents=True, exist_ok=True)
    await run_in_threadpool(uploaded.count, folder)
    part = above / f".{secrets.token_hex(8)}.part"
    size, kept = 0, False
    replaced = target.lstat().st_size if os.path.lexists(target) else None
    uploaded.files += 1
    try:
        uploaded.check(app.settings, replaced)
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            async for piece in stream:
                size += len(piece)
                if size > most:
                    what = f"{name[:120]!r} is over {most / 1e6:g} MB"
                    raise BadInput(what, "The setting max_file_bytes allows more")
                uploaded.bytes += len(piece)
                uploaded.check(app.settings, replaced)
                file.write(piece)
        target.parent.mkdir(parents=True, exist_ok=True)
        _within(app, folder, target.parent, name)
        if replace:
            with suppress(OSError):
                uploaded.bytes -= os.lstat(target).st_size
                uploaded.files -= 1
            os.replace(part, target)
        elif not _linked(part, target):
            raise Exists(f"there is a file {name} already", "Replace it, or rename yours")
        kept = True
    finally:
        part.unlink(missing_ok=True)
        if not kept:
            uploaded.counted = -math.inf  # counted again with the next upload
    return target, size


def _within(app: App, folder: Path, place: Path, name: str) -> None:
    """OutsideRoots or BadInput where a link leads a place for uploads out of their folder."""
    what, advice = f"{name[:120]!r} leads out of the folder for uploads", "Choose another name"
    if not allowed(app, place, what, advice).is_relative_to(folder.resolve()):
        raise BadInput(what, advice)


def allowed(app: App, path: str | Path, what: str, advice: str) -> Path:
    """A file or folder of this server below its roots. OutsideRoots in these words, which name no path
    of this machine, for another or one that is gone."""
    try:
        return app.allowed(path)
    except (OutsideRoots, BadInput) as error:
        raise OutsideRoots(what, advice) from error


def _linked(part: Path, target: Path) -> bool:
    """Give a file its name unless another has it."""
    try:
        os.link(part, target)
    except FileExistsError:
        return False
    except OSError:  # a file system without hard links
        if os.path.lexists(target):
            return False
        os.rename(part, target)
    return True


# ---- originals --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Original:
    """A document's own file, or its text where it was given as one."""

    name: str
    path: Path | None
    text: str = ""


def original(app: App, corpus: str, n: int, everywhere: bool) -> Original:
    """The original of document `d<n>`. NotFound where it is gone. A file outside of the roots of this
    server is given to the user of this machine alone (`everywhere`)."""
    snapshot = app.snapshot(corpus)
    rows = snapshot.by_key("documents", [n], "n", ["id", "uri"]).to_pylist()
    if not rows:
        raise NotFound(f"d{n} is not in this index any more", "Search for it")
    uri, sources = str(rows[0]["uri"]), snapshot.manifest.sources
    path = real_file_of(uri, sources)
    if path is not None:
        if not everywhere:
            what = f"the file of d{n} is outside the folders this server may read"
            path = allowed(app, path, what, "Open it on the machine of the server")
        return Original(path.name, path)
    if file_of(uri, sources) is not None:
        raise NotFound(f"the file of d{n} is a link that leads out of its folder", "Open it there")
    if sources.get(uri.partition("/")[0], {}).get("path"):
        raise NotFound(f"the file of d{n} is not in its folder any more", "Read its text here")
    text = snapshot.by_key("documents", [n], "n", ["text"]).to_pylist()[0]["text"]
    return Original(f"d{n}.txt", None, text if everywhere or SHOW_SECRETS.get() else masked(text))


def for_others(path: Path, kind: str) -> bytes | None:
    """What callers who are not the user of this machine get of a file: text with its credentials
    masked, None for a file without any, which is given as it is. BadInput for a file that holds a
    credential which no mask covers, or of which a part cannot be checked."""
    if kind.startswith("image/"):
        return None
    is_text = kind.startswith("text/plain")
    try:
        status = os.stat(path)
        why = withheld(str(path), status.st_mtime_ns, status.st_size, is_text)
        text = path.read_bytes().decode("utf-8", "replace") if is_text else ""
    except OSError:
        why, text = UNCHECKED, ""
    if why:
        raise BadInput(f"{why}: it is given on the machine of the server alone", "Read it here")
    return masked(text).encode("utf-8", "replace") if spans(text) else None


@lru_cache(maxsize=1_000)
def withheld(path: str, changed: int, size: int, is_text: bool) -> str:
    """Why a file is not given to others, or "". What its reader makes of it is searched: mail and pages
    hold texts in another form than their bytes. A text is read with its credentials masked already.
    `changed` (ns) and `size` (bytes) are those of the file, which is parsed once for all requests."""
    data, suffix = opening.read(path, NAMED_LIMIT), suffix_of(os.path.basename(path))
    try:
        if is_text:
            data = masked(data.decode("utf-8", "replace")).encode("utf-8", "replace")
        elif suffix not in formats.PACKED and spans(data.decode("utf-8", "replace")):
            return SECRET
        apart = read.apart(suffix, len(data))
        unread = False
        for piece in read.parse(data, suffix) if apart else formats.pieces(data, suffix):
            if isinstance(piece, Piece) and (spans(piece.text) or spans(piece.title)):
                return SECRET
            unread = unread or isinstance(piece, NotRead)
    except Exception:  # bytes from anywhere, which no reader may understand
        return UNCHECKED
    return UNCHECKED if unread else ""


def kind_of(path: Path) -> tuple[str, bool]:
    """(media type, may it be shown) of a file."""
    with open(path, "rb") as file:
        return type_of(path.name, file.read(4_096), os.fstat(file.fileno()).st_size)


def type_of(name: str, first: bytes, size: int) -> tuple[str, bool]:
    """(media type, may it be shown) of a file by its name and first bytes."""
    suffix = os.path.splitext(name)[1].lower()
    if first.startswith(b"%PDF-"):
        return "application/pdf", True
    if suffix in PICTURES:
        return PICTURES[suffix], True
    if b"\0" not in first and size <= TEXT_BYTES and _is_text(first):
        return "text/plain; charset=utf-8", True
    return "application/octet-stream", False


def _is_text(first: bytes) -> bool:
    try:
        first.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start > len(first) - 4 and len(first) > 4  # a sign that the piece has cut
    return True


def headers_of(name: str, kind: str, shown: bool) -> dict[str, str]:
    """Headers of an original: what is shown is named, what is not is saved, and neither runs. A sandbox
    would keep the viewer of a browser from showing a PDF, which runs nothing of our origin."""
    how = "inline" if shown else "attachment"
    plain = re.sub(r"[^A-Za-z0-9._ -]", "_", name)
    pdf = kind == "application/pdf"
    return {
        "Content-Disposition": f"{how}; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}",
        "Content-Security-Policy": "frame-ancestors 'none'" if pdf else SANDBOX,
        "Content-Type": kind,
    }


def show_folder(path: Path) -> None:
    """Open the folder of a file in the desktop of this machine. BadInput where there is none."""
    folder = str(path if path.is_dir() else path.parent)
    if sys.platform == "win32":
        os.startfile(os.path.join(folder, ""))  # without the slash a program beside it may be meant
        return
    command = ["open", "-R", str(path)] if sys.platform == "darwin" else ["xdg-open", folder]
    nothing = subprocess.DEVNULL
    try:  # an absolute path is no option; -R shows it in its folder, which may be an .app that would run
        subprocess.Popen(command, stdin=nothing, stdout=nothing, stderr=nothing)
    except OSError as error:
        raise BadInput(f"this machine has no {command[0]}", f"The folder is {folder}") from error


# ---- tickets ----------------------------------------------------------------------------------------


def address_of(corpus: str, n: int, name: str) -> str:
    """Where the caller finds an original for the next minutes."""
    parts = [corpus, str(n), str(int(time.time()) + VALID), SUBJECT.get() or NOBODY]
    shown = re.sub(r"[/\\]", "_", name)
    return f"{FILE}{'/'.join(quote(part, safe='') for part in (*parts, _seal(parts), shown))}"


def holder_of(path: str) -> str | None:
    """The name of the token whose ticket a path (without escapes) holds, "" without tokens; None for no
    valid one."""
    parts = path.removeprefix(FILE).split("/")
    if not path.startswith(FILE) or len(parts) != 6:
        return None
    *claimed, seal, _ = parts
    if not hmac.compare_digest(_seal(claimed).encode(), seal.encode("utf-8", "replace")):
        return None
    if int(claimed[2]) < time.time():
        return None
    return "" if claimed[3] == NOBODY else claimed[3]


def asked_for(path: str) -> tuple[str, int]:
    """(corpus, number of the document) of a path with a valid ticket."""
    corpus, n = path.removeprefix(FILE).split("/")[:2]
    return corpus, int(n)


def _seal(parts: list[str]) -> str:
    digest = hmac.new(_KEY, "\0".join(parts).encode("utf-8", "replace"), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest[:18]).decode()
