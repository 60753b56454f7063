"""What stands in quotation marks: read from a query, compared with texts, and proposed to a table in any spelling.

Takes strings, gives strings. Knows no tables.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from graphrag_mcp.lexicon_variants import SIMPLIFY
from graphrag_mcp.text import is_cjk, unwrapped

OVERLAP = 4  # characters from which on no more ways to write them are combined: …… is six dots
_QUOTED = re.compile(r'"([^"]{1,500})"|“([^“”]{1,500})”|「([^「」]{1,500})」|『([^『』]{1,500})』|«([^«»]{1,500})»')


def quoted(query: str) -> list[str]:
    """What stands in quotation marks, as it was written."""
    written = (next(filter(None, found.groups())) for found in _QUOTED.finditer(query))
    return [one for one in written if plain(one)]


def unquoted(query: str) -> str:
    """The rest of the query."""
    return _QUOTED.sub(" ", query)


def plain(text: str) -> str:
    """Text as literals are compared: NFKC, case folded, traditional characters as simplified ones, white space as one
    space, no line breaks in Chinese words."""
    return " ".join(_folded(unwrapped(unicodedata.normalize("NFKC", text))).split())


def _folded(text: str) -> str:
    return text.casefold().translate(SIMPLIFY)


def pattern(literal: str) -> str:
    """A regular expression (of Rust's kind) for the spellings of `literal` that are `plain` the same: any case, width
    and blanks, traditional or simplified, letters whole or in pieces. It may stand in SQL: all signs are escaped.

    What it finds is proposed, and still to be compared with `plain`.
    """
    longer = _spellings()[1]
    out: list[str] = []
    at = 0
    while at < len(literal):
        end, here = at + 1, at
        while here < min(end, at + OVERLAP):  # as far as what one character may stand for overlaps
            end = max(end, *(here + size for size in (1, 2, 3) if size == 1 or literal[here : here + size] in longer))
            here += 1
        out.append(_ways(literal[at:end]) + _gap(literal[end - 1 : end + 1]))
        at = end
    return "".join(out)


def _ways(some: str) -> str:
    """All ways to write these few characters: each by itself, or several as one."""
    letters, longer = _spellings()
    ways = []
    for size in (1, 2, 3):
        first, rest = some[:size], some[size:]
        if len(first) == size and (size == 1 or first in longer):
            head = _one(first, letters) if size == 1 else f"[{''.join(map(_safe, longer[first]))}]"
            ways.append(head + (_gap(first[-1] + rest[0]) + _ways(rest) if rest else ""))
    return ways[0] if len(ways) == 1 else f"(?:{'|'.join(ways)})"


def _gap(pair: str) -> str:
    """Between two Chinese or Japanese characters a line may end."""
    return r"\s*" if len(pair) == 2 and is_cjk(pair[0]) and is_cjk(pair[1]) else ""


def _one(ch: str, letters: dict[str, str]) -> str:
    """The spellings of one folded character, in pieces as well."""
    if ch == " ":
        return r"\s+"
    whole = f"[{''.join(map(_safe, ch + letters.get(ch, '')))}]"
    if 0xAC00 <= ord(ch) < 0xD7A4:
        parts = unicodedata.normalize("NFD", ch)
    else:
        parts = "".join(chr(int(code, 16)) for code in unicodedata.decomposition(ch).split() if "<" not in code)
    return f"(?:{whole}|{''.join(_one(part, letters) for part in parts)})" if len(parts) > 1 else whole


def _safe(ch: str) -> str:
    code = 0xFFFD if "\ud800" <= ch <= "\udfff" else ord(ch)  # half a character, which no stored text holds
    return ch if ch.isalnum() else f"\\x{{{code:X}}}"


@lru_cache(maxsize=1)
def _spellings() -> tuple[dict[str, str], dict[str, str]]:
    """Folded character -> the others that are read as it; two or three characters -> the single ones (ﬁ, ß, …).

    Read from Python's own table of characters, in 0.1 s, at the first literal that words do not find.
    """
    letters: dict[str, str] = {}
    longer: dict[str, str] = {}
    for code in (*range(0x41, 0xAC00), *range(0xF900, 0x1F000), *range(0x2F800, 0x2FA20)):
        folded = _folded(unicodedata.normalize("NFKC", chr(code)))
        if folded != chr(code) and 0 < len(folded) < 4 and " " not in folded:
            where = letters if len(folded) == 1 else longer
            where[folded] = where.get(folded, "") + chr(code)
    return letters, longer
