"""How much one request may hold. It is looked at before anything else is done with a request, in one
pass that ends at the limit: what comes after may take time for each argument, item and character.

Files and texts to be indexed, and results of an agent, are no smaller than the request that brings
them (over HTTP 4 MiB); everything else is a question, a name or a list of ids."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from graphrag_mcp.store import stored

ARGUMENTS = 100  # of one call; the tools have up to 17
ITEMS = 1_000  # of one argument, those within items counted as well
CHARACTERS = 20_000  # of one text: as a question they take up to 0.6 s, where four million took 11 s
IN_ALL = 200_000  # characters of one argument
# Texts or results in one call: 300,000 texts kept a server at work for 24 s of CPU, and `graph_status` after it.
LISTED = 10_000
# Values in the JSON of one request. 1.4 million empty lists (4 MiB) hold the event loop for 1.2 s, these for 0.2 s.
VALUES = 200_000


def too_many_values(body: bytes) -> str:
    """That a request holds more than VALUES, as a sentence; "" for one that does not."""
    if stored.values_in(body, VALUES) <= VALUES:
        return ""
    return f"the request holds over {VALUES:,} values. Make several calls of it, or give long texts as files (paths)."


def excess(arguments: Mapping[str, Any], whole: Collection[str] = ()) -> str:
    """What is too much in the arguments of a call, as a sentence; "" for nothing. Arguments that
    `whole` names may be of any size."""
    if len(arguments) > ARGUMENTS:
        return f"{len(arguments):,} arguments were given, and at most {ARGUMENTS} are read."
    for name, value in arguments.items():
        if len(name) > CHARACTERS:
            return f"the name of an argument has {len(name):,} characters."
        if name not in whole and (what := too_much(value)):
            return f"{name[:60]!r} has {what}."
        if isinstance(value, list) and len(listed := cast(list[Any], value)) > LISTED:
            return f"{name[:60]!r} has {len(listed):,} items, and at most {LISTED:,} are read."
    return ""


def too_much(value: Any) -> str:
    """What one value has too much of, as in `3,000 items, and at most 1,000 are read`."""
    if isinstance(value, str) and len(value) <= IN_ALL:
        value = as_json(value, "[{")
    items = characters = 0
    left = [value]
    while left:
        part = left.pop()
        inner: Iterable[Any] = ()
        if isinstance(part, str):
            if len(part) > CHARACTERS:
                return f"a text of {len(part):,} characters, and at most {CHARACTERS:,} are read"
            characters += len(part)
        elif isinstance(part, Mapping):
            fields = cast(Mapping[Any, Any], part)
            inner = (*fields, *fields.values()) if len(fields) <= ITEMS else ()
            items += len(fields)
        elif isinstance(part, list | tuple):
            listed = cast(Sequence[Any], part)
            inner = listed if len(listed) <= ITEMS else ()
            items += len(listed)
        if items > ITEMS:
            return f"{items:,} items or more, and at most {ITEMS:,} are read"
        if characters > IN_ALL:
            return f"over {IN_ALL:,} characters"
        left.extend(inner)
    return ""


def as_json(value: Any, openings: str) -> Any:
    """What a text of JSON says that begins with one of these signs; any other value as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in tuple(openings):
        with suppress(ValueError, RecursionError):
            return json.loads(value)
    return value
