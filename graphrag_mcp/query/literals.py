"""What stands in quotation marks: read from a query, compared with texts, and proposed to a table in any spelling.

Takes strings, gives strings. Knows no tables.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from graphrag_mcp.lexicon_variants import SIMPLIFY
from graphrag_mcp.text import is_cjk, unwrapped

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
    letters, longer = _spellings()
    out: list[str] = []
    at = 0
    while at < len(literal):
        size = next((size for size in (3, 2) if literal[at : at + size] in longer), 1)
        some = literal[at : at + size]
        apart = "".join(_one(ch, letters) for ch in some)
        out.append(f"(?:{apart}|[{''.join(map(_safe, longer[some]))}])" if size > 1 else apart)
        at += size
        if at < len(literal) and is_cjk(literal[at - 1]) and is_cjk(literal[at]):
            out.append(r"\s*")  # the end of a line
    return "".join(out)


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
    return ch if ch.isalnum() else f"\\x{{{ord(ch):X}}}"


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
