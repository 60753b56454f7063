"""The key of a home, marks made with it that documents and other clients cannot compute, and the
caller that a handle belongs to. Without a home the key is one of this process."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
from contextvars import ContextVar
from pathlib import Path

NAME = "key"  # of the file in a home
LENGTH = 32  # bytes
DIGITS = 13  # of a mark
_PROCESS = secrets.token_bytes(LENGTH)

_known: dict[Path, bytes] = {}

# The home of the call; the server and the command line set theirs.
HOME: ContextVar[Path | None] = ContextVar("HOME", default=None)


def key_of(home: Path | None) -> bytes:
    """The key of a home, the same for every process. A folder that is not there yet has none."""
    if home is None or home in _known:
        return _PROCESS if home is None else _known[home]
    path = home / NAME
    with contextlib.suppress(OSError):
        if len(found := _read(path)) != LENGTH:
            _create(path, replace=path.exists())
            found = _read(path)
        if len(found) == LENGTH:
            return _known.setdefault(home, found)
    return _PROCESS


def mark(purpose: str, *said: str) -> str:
    """Thirteen digits (43 bits) that only who holds the key can compute. In digits every mark costs
    as many tokens as any other, so that how much fits into a result does not depend on the key."""
    digest = hashlib.blake2b(key=key_of(HOME.get()), person=purpose.encode(), digest_size=16)
    for one in said:
        held = one.encode("utf-8", "surrogatepass")
        digest.update(len(held).to_bytes(8, "big") + held)
    return f"{int.from_bytes(digest.digest()) % 10**DIGITS:0{DIGITS}d}"


def _read(path: Path) -> bytes:
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        return b""
    with open(descriptor, "rb") as file:
        if hasattr(os, "fchmod") and os.fstat(descriptor).st_mode & 0o077:
            os.fchmod(descriptor, 0o600)
        return file.read(LENGTH + 1)


def _create(path: Path, replace: bool) -> None:
    """A whole key at once: of two processes the first one's stays. A damaged file is replaced."""
    beside = path.with_name(f"{NAME}-{secrets.token_hex(6)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with open(os.open(beside, flags, 0o600), "wb") as file:
        file.write(secrets.token_bytes(LENGTH))
    try:
        if replace:
            os.replace(beside, path)
        else:
            os.link(beside, path)
    except FileExistsError:  # another process was first
        pass
    except OSError:  # a disk without hard links
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


# ---- the caller ----------------------------------------------------------------------------------


# "" is the user of this machine (stdio, the command line, a server without tokens), who may open
# every job.
SUBJECT: ContextVar[str] = ContextVar("SUBJECT", default="")


def folder_name(subject: str) -> str:
    """A name for a subject's own folder: ten hex digits, because a subject may be called anything."""
    return hashlib.sha256(subject.encode("utf-8", "backslashreplace")).hexdigest()[:10]


def may_open(owner: str) -> bool:
    """Is what belongs to `owner` the caller's own?"""
    return SUBJECT.get() in ("", owner)


def sealed(cursor: str) -> str:
    """The cursor with a mark of its owner behind it, made with the key of the home; unchanged where
    there are no subjects."""
    subject = SUBJECT.get()
    return f"{cursor}~{mark('cursor', subject, cursor)}" if subject and cursor else cursor


def unsealed(cursor: str) -> str | None:
    """The cursor as the engine wrote it; None when it was not given to this subject."""
    subject = SUBJECT.get()
    if not subject or not cursor.strip():
        return cursor
    plain, _, said = cursor.strip().rpartition("~")
    right = mark("cursor", subject, plain)
    return plain if plain and hmac.compare_digest(said.encode(), right.encode()) else None
