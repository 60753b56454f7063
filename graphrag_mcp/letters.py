"""Letters of the scripts that have capitals, as parts of patterns, since `re` knows no \\p{Lu}.

Takes nothing, gives character classes without their brackets; knows nothing of words or names.
"""

from __future__ import annotations

CASED = "A-Za-zÀ-ÖØ-öø-ʯͰ-ϿЀ-ԯԱ-ևḀ-ỿἀ-῾"
WORD = CASED + "0-9\u0300-\u036f"


def _ranges(test: str) -> str:
    """Character class of all letters of the cased scripts for which `str.<test>()` holds."""
    found = [c for c in (*range(0x41, 0x250), *range(0x370, 0x588), *range(0x1E00, 0x2000)) if getattr(chr(c), test)()]
    parts: list[list[int]] = []
    for code in found:
        if parts and parts[-1][1] == code - 1:
            parts[-1][1] = code
        else:
            parts.append([code, code])
    return "".join(f"{chr(a)}-{chr(b)}" if a != b else chr(a) for a, b in parts)


UPPER, LOWER = _ranges("isupper"), _ranges("islower")
