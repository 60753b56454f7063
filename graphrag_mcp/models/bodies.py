"""Bodies of replies: the JSON object that one is, and the error that some servers put inside.

Takes bytes and decoded bodies; gives objects and errors, or raises Again where another try may help. Knows no server,
no model and no vector.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from graphrag_mcp.models.wire import Again


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
