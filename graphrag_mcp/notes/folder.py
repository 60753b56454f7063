"""The folder of notes: names of files, a lock, files that are replaced whole, and what they were
before.

Beside the notes stands the hidden folder `.graphrag`, which no index reads: `old/<note>/` holds the
earlier contents of a note, `sources/` the texts that notes cite. The notes themselves are whole
without it."""

from __future__ import annotations

import os
import re
import secrets
import stat
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from graphrag_mcp.errors import BadInput, Busy, NotFound
from graphrag_mcp.query.note_sources import check_of
from graphrag_mcp.sources import opening, walk
from graphrag_mcp.text.citing import Fingerprint

HIDDEN = ".graphrag"
LONGEST = 150  # bytes of a name, which is with its suffix below the 255 of systems
LONGEST_FOLDER = 400  # characters of the folders above a note; systems take paths of 1,024 to 4,096 bytes
LARGEST = 1_000_000  # bytes of a note
KEPT = 20  # earlier contents of a note
SOURCE = 20_000  # characters that are kept of one cited text
LOCK_SECONDS = 20.0

# What Windows forbids in names, and what ends a link of a vault.
_FORBIDDEN = re.compile(r'[<>:"/\\|?*#^\[\]]')
_DEVICE = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|(?:com|lpt)[\d¹²³])(?: *\..*)?", re.IGNORECASE)


def file_name(name: str) -> str:
    """A title or the name of a folder as a name that any system takes. BadInput where nothing is
    left of it."""
    plain = unicodedata.normalize("NFC", name)
    plain = "".join(" " if unicodedata.category(ch)[0] in "CZ" else ch for ch in plain)
    plain = " ".join(_FORBIDDEN.sub("-", plain).split())
    plain = plain.encode("utf-8")[:LONGEST].decode("utf-8", "ignore").lstrip(" .").rstrip(" .-")
    if not re.search(r"\w", plain):
        raise BadInput(f"{name[:60]!r} has no letter or digit for the name of a file", "Give a title")
    return f"{plain} note" if _DEVICE.fullmatch(plain) else plain


def place(base: Path, title: str, folder: str = "", number: int = 1) -> Path:
    """The file of a note, of which the folder need not exist; `number` above 1 where other titles lead to that name. A name that differs from one that is
    there only in case or in the form of its accents is that one. BadInput for a folder outside of
    `base`, and for a name that no index reads."""
    if len(folder) > LONGEST_FOLDER:
        what = f"the folder has {len(folder):,} characters, and may have {LONGEST_FOLDER}"
        raise BadInput(what, 'Give a short one, e.g. folder="meetings"')
    at = base
    parts = [part for part in re.split(r"[\\/]", folder.strip()) if part not in ("", ".")]
    if os.path.isabs(folder.strip()) or ".." in parts or any(part[0] == "." for part in parts):
        what = f"the folder {folder[:60]!r} is not below the folder of notes"
        raise BadInput(what, 'Give one below it, e.g. folder="meetings"')
    for part in parts:
        at /= _spelled(at, file_name(part))
        if walk.folder_reason(at.name, ()):
            what = f"a folder of the name {at.name[:60]!r} is not indexed"
            raise BadInput(what, "Give it another name")
    name = file_name(title) if number == 1 else f"{file_name(title)} {number}"
    path = at / _spelled(at, f"{name}.md")
    if reason := walk.file_reason(path.name):
        raise BadInput(f"a file {path.name[:60]!r} is not indexed ({reason})", "Give another title")
    if path.parent.resolve() != path.parent or not path.parent.is_relative_to(base):
        raise BadInput("a folder of that note is a link", "Use a folder that is none")
    return path


def _spelled(folder: Path, name: str) -> str:
    """The name as the folder has it already, in any case."""

    def folded(text: str) -> str:
        return unicodedata.normalize("NFC", text).casefold()

    names: list[str] = []
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as listed:
        names = [entry.name for entry in listed]
    if name in names:
        return name
    return min((other for other in names if folded(other) == folded(name)), default=name)


@contextmanager
def locked(base: Path) -> Iterator[None]:
    """Hold the lock of the folder; Busy where another process holds it for LOCK_SECONDS."""
    from filelock import FileLock, Timeout

    hidden = base / HIDDEN
    hidden.mkdir(exist_ok=True)
    lock = FileLock(str(hidden / "lock"), timeout=LOCK_SECONDS)
    try:
        lock.acquire()
    except Timeout as error:
        raise Busy("another process is writing a note", "Try again") from error
    try:
        yield
    finally:
        lock.release()


def read(path: Path) -> str | None:
    """The text of a note; None where there is none. BadInput for a link and for what is no text."""
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise BadInput(f"{path.name!r} is no regular file", "Give another title")
        return opening.read(str(path), LARGEST).decode("utf-8-sig").replace("\r\n", "\n")
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise BadInput(f"{path.name!r} is no UTF-8 text", "Give another title") from error


def write(base: Path, path: Path, text: str, cited: Mapping[Fingerprint, str] = {}, corpus: str = "") -> None:
    """Replace a note of a corpus whole, after what it was and the texts that it cites were put aside. A
    note that is refused leaves no trace."""
    data = text.encode("utf-8", "replace")
    if len(data) > LARGEST:
        what = f"the note would have {len(data):,} bytes, and may have {LARGEST:,}"
        raise BadInput(what, "Write several notes that link to each other")
    before = read(path) or ""
    _check_mode(path)
    if corpus:
        mark(base, corpus)
    keep(base, path, before, check_of(text))
    for fingerprint, source in cited.items():
        file = _source(base, fingerprint)
        if not file.exists():
            _replace(file, source[:SOURCE].encode("utf-8", "replace"))
    _replace(path, data)


def mark(base: Path, corpus: str) -> None:
    """Record that this folder holds notes of a corpus, before the first note is written. The next index or status of
    the corpus then finds the folder, even if this process is killed before it has indexed anything."""
    file = base / HIDDEN / "corpora" / corpus
    if not file.exists():
        _replace(file, b"")


def marked(base: Path, corpus: str) -> bool:
    """Does this folder hold notes of the corpus?"""
    return (base / HIDDEN / "corpora" / corpus).exists()


def source(base: Path, fingerprint: Fingerprint) -> str:
    """The text that a note cited, at most its first SOURCE characters; "" where it is not kept."""
    with suppress(OSError):
        return opening.read(str(_source(base, fingerprint)), 4 * SOURCE).decode("utf-8", "replace")
    return ""


def _source(base: Path, fingerprint: Fingerprint) -> Path:
    return base / HIDDEN / "sources" / f"{str(fingerprint).replace(' ', '-')}.txt"


def _replace(path: Path, data: bytes) -> None:
    """Write a file under another name and give it its name at once: no reader sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{secrets.token_hex(6)}.tmp")
    try:
        with open(new, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileNotFoundError):
            os.chmod(new, stat.S_IMODE(os.stat(path).st_mode))
        os.replace(new, path)
    finally:
        new.unlink(missing_ok=True)


def _check_mode(path: Path) -> None:
    """Refuse to replace a file that its owner made read-only: the folder would allow it."""
    with suppress(FileNotFoundError):
        if not os.stat(path).st_mode & 0o222 or not os.access(path, os.W_OK):
            raise BadInput(f"the file {path.name!r} is read-only", "Write a note of another title")


# ---- what a note was before --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Earlier:
    """An earlier content of a note, "" before its first, and the check value of what took its place."""

    file: Path
    followed_by: str

    def text(self) -> str:
        return self.file.read_text("utf-8")


def earlier(base: Path, path: Path) -> list[Earlier]:
    """What a note was, oldest first."""
    files: list[Path] = []
    with suppress(OSError):
        files = sorted(_old(base, path).glob("*-*.md"))
    return [Earlier(file, file.stem.rpartition("-")[2]) for file in files]


def keep(base: Path, path: Path, text: str, followed_by: str) -> None:
    """Put the content of a note aside; of more than KEPT the oldest goes."""
    known = earlier(base, path)
    number = int(known[-1].file.stem.partition("-")[0]) + 1 if known else 1
    _replace(_old(base, path) / f"{number:06d}-{followed_by}.md", text.encode("utf-8", "replace"))
    for version in known[: max(len(known) + 1 - KEPT, 0)]:
        version.file.unlink(missing_ok=True)


def undo(base: Path, path: Path, check: str = "") -> str:
    """Give a note the content before the last write, which is returned: "" where the write made the
    note, whose file goes. What it was stays in the hidden folder (`undone`). NotFound where nothing is kept,
    BadInput where the file was edited since, unless `check` says that this edit is meant too."""
    now, known = read(path), earlier(base, path)
    if now is None or not known:
        raise NotFound(f"there is nothing to undo of {path.name!r}", "list_documents shows the notes")
    _check_mode(path)
    current = check_of(now)
    last = next((version for version in reversed(known) if version.followed_by == current), None)
    if last is None and check != current:
        what = f"{path.name!r} was edited since it was written"
        raise BadInput(what, f'Give check="{current}" to undo this too')
    last = last or known[-1]
    before = last.text()
    known_undone = undone(base, path)
    number = int(known_undone[-1].stem.partition(".")[2]) + 1 if known_undone else 1
    _replace(_old(base, path) / f"undone.{number:06d}.md", now.encode("utf-8", "replace"))
    for file in known_undone[: max(len(known_undone) + 1 - KEPT, 0)]:
        file.unlink(missing_ok=True)
    if before:
        _replace(path, before.encode("utf-8"))
    else:
        path.unlink(missing_ok=True)
    last.file.unlink(missing_ok=True)
    return before


def undone(base: Path, path: Path) -> list[Path]:
    """The files with what undo took away from a note, oldest first."""
    with suppress(OSError):
        return sorted(_old(base, path).glob("undone.*.md"))
    return []


def _old(base: Path, path: Path) -> Path:
    return base / HIDDEN / "old" / path.relative_to(base).with_suffix("")
