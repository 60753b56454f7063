"""Short forms of what is packed: lines, joined passages, cursors, aliases, references with aliases for content ids.

Takes offsets, rows and texts; gives strings for an agent to read and to hand back. Part of packing, by which these are
used; knows no budget and no table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphrag_mcp.text import count_tokens, sentences
from graphrag_mcp.types import content_id

if TYPE_CHECKING:
    from graphrag_mcp.pack import Item

CHARACTERS = 48_000  # some hosts cut at 25,000 tokens: this many characters stay below in any script
PER_GROUP = 5  # references of one kind in one bracket, then "+more"

_REFERENCES = re.compile(r"\[Data: ([^\[\]\n]{1,4000})\]")
_GROUP = re.compile(r"(Reports|Entities|Relationships|Sources) \(([^()\n]{0,4000})\)")
_HEX = re.compile(r"\b[0-9a-f]{32}\b")
_HEAD = re.compile(r"(\[[^\[\]]+\]) (.*:)(\d+)-(\d+)\)\Z")
NEAR = 3  # characters between two passages that are read as one: the white space where a text was cut


# ---- lines ------------------------------------------------------------------------------------


def one_line(text: str, characters: int) -> str:
    """The text without line breaks, at most so many characters."""
    flat = re.sub(r"\s+", " ", text).strip()
    return flat if len(flat) <= characters else flat[: characters - 1].rstrip() + "…"


def columns(*values: object) -> str:
    """One row of a block with columns: `|` between values, escaped inside them, no line breaks."""
    flat = (re.sub(r"\s+", " ", str(value)).strip() for value in values)
    return "|".join(value.replace("\\", "\\\\").replace("|", "\\|") for value in flat)


def shorten(text: str, budget: int, characters: int = CHARACTERS) -> str:
    """The longest run of whole sentences from the start within the budget; at least a few words of the first.

    Tokens are counted on the JSON form, because that is where the text will have to fit.
    """
    text = text[: min(characters, budget * 12 + 200)]
    ends = [end for _, end in sentences(text)] or [len(text)]
    if _json_tokens(text) <= budget and len(text) < characters:
        return text.rstrip()
    low, high = 0, len(ends)  # the largest count of sentences that fits, by bisection
    while low < high:
        middle = (low + high + 1) // 2
        if _json_tokens(text[: ends[middle - 1]]) <= budget:
            low = middle
        else:
            high = middle - 1
    if low:
        return text[: ends[low - 1]].rstrip()
    end = min(ends[0], budget * 4)
    while end > 8 and _json_tokens(text[:end]) > budget:
        end = end * 3 // 4
    space = text.rfind(" ", end // 2, end)
    return text[: space if space > 0 else end].rstrip()


def _json_tokens(text: str) -> int:
    return count_tokens(json.dumps(text, ensure_ascii=False))


def joined(items: Sequence[Item]) -> list[str]:
    """Passages as blocks: those that follow each other in one document are one, in its order, where the best stood.

    Text units overlap, and what they share is shown once. Every id stands at the head of its block.
    """
    blocks: list[list[Item]] = []
    for item in items:
        met = [block for block in blocks if any(adjoin(item, other) for other in block)] if item.span[1] else []
        if not met:
            blocks.append([item])
            continue
        met[0].append(item)
        for other in met[1:]:  # it joins two that stood apart
            met[0].extend(other)
            blocks.remove(other)
    return [_block(sorted(block, key=lambda item: item.span)) for block in blocks]


def adjoin(one: Item, other: Item) -> bool:
    """Are these two passages of one document that follow each other, or overlap?"""
    if not other.span[1] or one.citation is None or other.citation is None:
        return False
    near = one.span[0] <= other.span[1] + NEAR and other.span[0] <= one.span[1] + NEAR
    return near and one.citation.document_id == other.citation.document_id


def _block(items: Sequence[Item]) -> str:
    head, _, text = items[0].text.partition("\n")
    found = [_HEAD.match(item.text.partition("\n")[0]) for item in items]
    if len(items) == 1 or None in found:
        return "\n\n".join(item.text for item in items)
    end = items[0].span[1]
    for item in items[1:]:
        body = item.text.partition("\n")[2]
        if item.span[0] > end:
            text += "\n" + body
        elif item.span[1] > end:
            text += body[end - item.span[0] :]
        end = max(end, item.span[1])
    heads = [match for match in found if match is not None]
    ids = " ".join(match[1] for match in heads)
    last = max(int(match[4]) for match in heads)
    return f"{ids} {heads[0][2]}{heads[0][3]}-{last})\n{text}"


# ---- cursors ------------------------------------------------------------------------------------


def write_cursor(generation: int, query: str, offsets: Iterable[int]) -> str:
    """Where the next page starts, tied to one generation and one question; short, because it is sent three times."""
    listed = list(offsets)
    while len(listed) > 1 and not listed[-1]:
        listed.pop()
    return f"{generation}.{_mark(query)}." + "-".join(map(str, listed))


def read_cursor(cursor: str, generation: int, query: str, count: int) -> tuple[int, ...] | None:
    """The offsets of a cursor; zeros for none; None when it belongs to another generation or question."""
    if not cursor.strip():
        return (0,) * count
    match = re.fullmatch(r"(\d{1,12})\.(\d{6})\.(\d{1,6}(?:-\d{1,6})*)", cursor.strip())
    if match is None or int(match[1]) != generation or match[2] != _mark(query):
        return None
    offsets = tuple(int(part) for part in match[3].split("-"))
    return (*offsets, *(0,) * (count - len(offsets))) if len(offsets) <= count else None


def _mark(query: str) -> str:
    """Six digits (two tokens) that tell one question from another."""
    return f"{int(content_id(query), 16) % 1_000_000:06d}"


# ---- aliases ------------------------------------------------------------------------------------


def passage_alias(row: Mapping[str, Any]) -> str:
    """`t33`, or `t33.2` where the text unit has several passages."""
    return f"t{row['n']}" if row["parts"] <= 1 else f"t{row['n']}.{row['part']}"


def referenced_ids(text: str) -> dict[str, list[str]]:
    """Content ids inside `[Data: Entities (hex, hex); Sources (hex)]`, by group name, each once, in order."""
    found: dict[str, dict[str, None]] = {}
    for bracket in _REFERENCES.finditer(text):
        for group in _GROUP.finditer(bracket[1]):
            found.setdefault(group[1], {}).update(dict.fromkeys(_HEX.findall(group[2])))
    return {name: list(ids) for name, ids in found.items()}


def render_references(text: str, aliases: Mapping[str, Mapping[str, str]]) -> str:
    """References with aliases instead of content ids: at most 5 per group, then `+more`; unknown ids are removed.

    `aliases` maps group name -> content id -> alias. A bracket that loses all its ids goes altogether.
    """

    def bracket(match: re.Match[str]) -> str:
        groups = []
        for group in _GROUP.finditer(match[1]):
            known = aliases.get(group[1], {})
            names = list(dict.fromkeys(known[one] for one in _HEX.findall(group[2]) if one in known))
            if names:
                more = ["+more"] if len(names) > PER_GROUP or "+more" in group[2] else []
                groups.append(f"{group[1]} ({', '.join(names[:PER_GROUP] + more)})")
        return f"[Data: {'; '.join(groups)}]" if groups else ""

    return re.sub(r"(?<! ) +([.,;。]|$)", r"\1", _REFERENCES.sub(bracket, text), flags=re.MULTILINE)
