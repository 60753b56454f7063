"""Bodies of replies: the JSON object that one is, the events of a stream, the error that some servers put inside.

Takes bytes and decoded bodies; gives objects, texts and errors, or raises Again where another try may help. Knows no
server, no model and no vector.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any

from graphrag_mcp.models.wire import Again

EVENT = re.compile(rb"\s*(?:data|event|id|retry)?:")  # the first line of a stream, whatever its type says
_ALOUD = re.compile(r"reason|think|redacted")  # types of parts that are no answer


def sendable(text: str) -> str:
    """A text as it can be sent: without halves of characters, which a question typed in another encoding may hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def parsed(body: bytes) -> dict[str, Any]:
    """The JSON object that a body is; raises Again for anything else."""
    if not body.strip():
        raise Again("an empty reply")
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        page = body.lstrip().startswith(b"<")
        raise Again("a web page instead of a reply" if page else "a reply that is no JSON") from None
    if not isinstance(data, dict):
        raise Again("a reply that is no JSON object")
    return data


def error_in(data: Mapping[str, Any]) -> tuple[int, Any] | None:
    """Some servers answer 200 and put the error inside: its status and what it says."""
    error = data.get("error")
    if not error:
        return None
    code = error.get("code", error.get("status")) if isinstance(error, dict) else None
    if isinstance(code, str) and code.isdigit():
        code = int(code)
    if isinstance(code, int) and 400 <= code < 600:
        return code, error
    return (404 if "unexpected endpoint" in json.dumps(error).lower() else 500), error


def content(said: Any) -> str:
    """Text as a string or as a list of parts, of which the thinking ones are left out."""
    if isinstance(said, str):
        return said
    if not isinstance(said, list):
        return ""
    spoken = (part for part in said if not (isinstance(part, dict) and _ALOUD.match(str(part.get("type")))))
    parts = (part if isinstance(part, str) else part.get("text") for part in spoken if isinstance(part, str | dict))
    return "".join(part for part in parts if isinstance(part, str))


async def in_one(body: bytes) -> AsyncIterator[bytes]:
    yield body


async def events(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The data of server-sent events. Lines end at line feeds alone: JSON may hold what else ends lines in Unicode."""
    rest, first = b"", True
    async for chunk in pieces:
        if first:
            chunk, first = chunk.removeprefix(b"\xef\xbb\xbf"), False
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line.startswith(b"data:") and line[5:].strip():  # one without data only keeps the line open
                yield line[5:].strip()
    if rest.startswith(b"data:") and rest[5:].strip():
        yield rest[5:].strip()
