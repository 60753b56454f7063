"""Lines that come over stdin: what the SDK could not read is put right where it can be, else answered.

Takes lines; gives those that hold a message. The SDK drops any other without a word, and a host that sent a request
then waits for its time-out. So half an emoji (models write such) becomes a replacement character, as over HTTP, and
what is no message at all is refused with its id. Knows no method and no tool.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

PARSE_ERROR, INVALID_REQUEST = -32700, -32600
_HALVES = re.compile("[\ud800-\udfff]")  # after parsing, whole pairs are one character


class Incoming:
    """The lines of a file, as `stdio_server` iterates over them. `answer` sends a message to the other side."""

    def __init__(self, lines: Any) -> None:
        self.lines = lines
        self.answer: Callable[[Any], Awaitable[None]] | None = None

    async def __aiter__(self) -> AsyncIterator[str]:
        from mcp.shared.message import SessionMessage

        async for line in self.lines:
            good, refusal = judged(line)
            if good:
                yield good
            elif refusal is not None and self.answer is not None:
                await self.answer(SessionMessage(refusal))


def judged(line: str) -> tuple[str, Any]:
    """(the line, put right if need be; "" for none, and what to answer then: None for nothing)."""
    from mcp.types import ErrorData, JSONRPCError, JSONRPCNotification, jsonrpc_message_adapter

    def readable(text: str) -> bool:
        try:
            found = jsonrpc_message_adapter.validate_json(text, by_name=False)
        except ValueError:
            return False
        # A request whose id is null, 1.5 or true passes for a notification, and nobody would ever answer it.
        return not (isinstance(found, JSONRPCNotification) and '"id"' in text and "id" in json.loads(text))

    def refused(code: int, message: str, name: Any = None) -> tuple[str, Any]:
        return "", JSONRPCError(jsonrpc="2.0", id=name, error=ErrorData(code=code, message=message))

    if readable(line):
        return line, None
    line = line.strip().lstrip("\ufeff")
    if not line:
        return "", None
    try:
        parsed = json.loads(line)
        mended = _HALVES.sub("\ufffd", json.dumps(parsed, ensure_ascii=False))
    except (ValueError, RecursionError):
        return refused(PARSE_ERROR, "this line is no JSON that can be read. Send each message on a line of its own.")
    if readable(mended):
        return mended, None
    if not isinstance(parsed, dict):
        return refused(INVALID_REQUEST, "this is no message, or several. Send each on a line of its own.")
    if "method" in parsed and "id" not in parsed or "result" in parsed or "error" in parsed:
        return "", None  # notifications and answers are not answered
    name = parsed.get("id")
    known = isinstance(name, int | str) and not isinstance(name, bool) and not _HALVES.search(str(name))
    wanted = 'It needs jsonrpc "2.0", an id that is text or a whole number, a method, and params that are an object,'
    wanted += " not nested 200 levels deep."
    return refused(INVALID_REQUEST, f"this is no request. {wanted}", name if known else None)
