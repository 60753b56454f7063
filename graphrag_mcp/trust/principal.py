"""The caller of a request: the name of its token, "" where no token is needed. A job, a DRIFT
session and a cursor belong to the principal that began them."""

from __future__ import annotations

import hashlib
import hmac
from contextvars import ContextVar

from graphrag_mcp.trust.key import mark

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
