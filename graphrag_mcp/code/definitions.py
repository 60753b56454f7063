"""The definitions that a name means, and their text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from graphrag_mcp.code.symbols import MODULE, NAME, TYPES, loaded
from graphrag_mcp.store.tables import Snapshot, values_of
from graphrag_mcp.text.terms import entity_id
from graphrag_mcp.text.tokens import count_tokens

Row = dict[str, Any]
SAME = 5  # definitions of one name in one document that are given
WHOLE = 12_000  # characters of a definition that is given in one piece, a result of 4,000 tokens
_NAME = re.compile(r"[^\W\d][\w$]*(?:[./:#]{1,2}[\w$]+)*(?:\([^()]{0,80}\))?")


def is_symbol(row: Mapping[str, Any]) -> bool:
    """Is the row of an entity a definition of source code?"""
    return row["type"] in TYPES and "." in row["key"]


def named(snapshot: Snapshot, asked: str) -> list[Row]:
    """The symbols that a name means: whole, or the last parts of the qualified one; the outermost
    first. Paths, `Class::method` and `call()` are read as names."""
    asked = asked.strip().strip("`")
    if NAME not in snapshot.manifest.tables or not _NAME.fullmatch(asked):
        return []
    bare = re.sub(r"\([^()]*\)\Z", "", asked)
    bare = re.sub(r"\.(?:py|pyi|js|jsx|mjs|ts|tsx|rs|rb|cc|cpp|h|hpp)(?=[:#]|\Z)", "", bare)
    name = re.sub(r"[/:#]+", ".", bare)
    types = ", ".join(f"'{kind}'" for kind in TYPES)
    owner, _, last = name.rpartition(".")
    spellings = (name, f"{owner}.exports.{last}") if owner else (name,)
    ends = [f"ends_with(key, '.{spelling}')" for spelling in spellings]
    where = f"(key IN ('{name}', ':{name}') OR {' OR '.join(ends)}) AND type IN ({types})"
    ids = values_of(snapshot.rows("entities", where, ["id"])["id"])
    if owner and not ids:  # a module that imports it from elsewhere
        where = f"(source_key = '{owner}' OR ends_with(source_key, '.{owner}'))"
        where += f" AND keywords = 'imports' AND ends_with(target_key, '.{last}')"
        targets = values_of(snapshot.rows("evidence", where, ["target_key"])["target_key"])
        ids = [entity_id(key) for key in dict.fromkeys(targets)]
    found = snapshot.served("entities", ids)
    keys = {row["key"] for row in found}  # a class, not its constructor
    found = [row for row in found if row["key"].rpartition(".")[0] not in keys]
    return sorted(found, key=lambda row: (row["key"].count("."), -row["degree"], row["key"]))


def narrowed(found: list[Row], asked: str) -> list[Row]:
    """Of these symbols the one with this qualified name, if one has it."""
    whole = [row for row in found if row["key"].removeprefix(MODULE) == asked]
    return whole if len(whole) == 1 else found


def text(snapshot: Snapshot, row: Row) -> list[Row]:
    """The text of a symbol, decorators included, as a row like one of `passages` with its own
    `alias`, and with the position of the `last` passage that it reaches; the passages themselves of
    a module and of more than WHOLE characters. [] where the corpus does not define it."""
    names = snapshot.by_key("mentions", [row["key"]], "key", ["text_unit_id", "by"]).to_pylist()
    units = [row["text_unit_id"] for row in names if row["by"] == NAME]
    ids = values_of(snapshot.by_key("text_units", units, "id", ["document_id"])["document_id"])
    found: list[Row] = []
    for document in snapshot.served("documents", sorted(set(ids))):
        facts = values_of(snapshot.by_key(NAME, [document["id"]], "id", ["facts"])["facts"])
        spans = [
            (symbol.start, symbol.end)
            for file in (loaded(fact)[0] for fact in facts)
            for symbol in file.symbols
            if file.key(symbol.name) == row["key"]
        ][:SAME]
        passages = snapshot.by_key("passages", [document["id"]], "document_id").to_pylist()
        for start, end in spans:
            found += _part(row, document["text"], start, end, passages)
    return found


def _part(row: Row, text: str, start: int, end: int, passages: Sequence[Row]) -> list[Row]:
    inside = [passage for passage in passages if passage["char_start"] < end and passage["char_end"] > start]
    inside.sort(key=lambda passage: passage["position"])
    if not inside or row["type"] == "module" or end - start > WHOLE:
        return inside
    line = text.rfind("\n", 0, start) + 1
    start = line if not text[line:start].strip() else start
    first = text.count("\n", 0, start) + 1
    body = text[start:end]
    place = {"char_start": start, "char_end": end, "line_start": first}
    place |= {"line_end": first + body.count("\n"), "text": body, "n_tokens": count_tokens(body)}
    alias = f"e{row['n']}"
    item = {"id": f"{alias} {start} {inside[0]['id']}", "alias": alias}
    return [inside[0] | place | item | {"last": inside[-1]["position"]}]
