"""Text whose letters are written in pieces: composed (NFC), with the place that each character came from.

Names of files from a Mac, and what some programs write, hold `é` as two characters and a Korean syllable as two or
three. Names are looked for in the composed text and cited in the given one. Knows nothing of words.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache


def with_origins(text: str) -> tuple[str, list[int]]:
    """The composed text, and for each of its characters, and for its end, the offset in `text` at which the pieces of
    that character begin."""
    parts: list[str] = []
    origins: list[int] = []
    last = 0
    for match in _pieces().finditer(text):
        start, end = match.span()
        whole = unicodedata.normalize("NFC", match[0])
        parts += (text[last:start], whole)
        origins.extend(range(last, start))
        # More than one character comes out where not all of the pieces fit together.
        origins.extend(min(start + at, end - 1) if whole == match[0] else start for at in range(len(whole)))
        last = end
    parts.append(text[last:])
    origins.extend(range(last, len(text) + 1))
    return "".join(parts), origins


@lru_cache(maxsize=1)
def _pieces() -> re.Pattern[str]:
    """Whatever composing can change: a character with what may be joined to it, or one that is written otherwise.

    Read from Python's own table of characters, in 0.1 s, at the first text that is not composed.
    """
    joined, other = set(range(0x1161, 0x1176)) | set(range(0x11A8, 0x11C3)), set()
    for code in (*range(0xA0, 0x1F000), *range(0x2F800, 0x2FA20)):
        ch = chr(code)
        if unicodedata.combining(ch):
            joined.add(code)
        if unicodedata.normalize("NFC", ch) != ch:
            other.add(code)
        parts = unicodedata.decomposition(ch)
        if parts and parts[0] != "<" and not 0xAC00 <= code < 0xD7A4:
            joined.update(int(part, 16) for part in parts.split()[1:])
    return re.compile(f"(?s).[{_class(joined)}]+|[{_class(other - joined)}]|[{_class(other & joined)}]")


def _class(codes: set[int]) -> str:
    ranges: list[list[int]] = []
    for code in sorted(codes):
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"{chr(a)}-{chr(b)}" if a < b else chr(a) for a, b in ranges)
