"""Text of a document that reads like an instruction to a model, as a call of a tool or as a request
for secrets, in many languages. Only finds: nothing is removed."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path

_PART = re.compile("@([A-Z_]+)@")


def _read() -> Iterator[tuple[str, tuple[str, ...], re.Pattern[str]]]:
    """(kind, words, pattern) of each pattern in `injection.toml`, in order."""
    lists = tomllib.loads(Path(__file__).with_name("injection.toml").read_text("utf-8"))
    parts: dict[str, str] = {}

    def whole(text: str) -> str:
        return _PART.sub(lambda found: parts[found[1]], text.replace("\n", ""))

    for name, text in lists.pop("parts").items():
        parts[name] = whole(text)
    for kind, patterns in lists.items():
        for one in patterns:
            words = one["words"]
            several = tuple(words if isinstance(words, list) else whole(words).split("|"))
            flags = re.IGNORECASE | re.MULTILINE | re.DOTALL
            yield kind, several, re.compile(whole(one["pattern"]), flags)


_PATTERNS = list(_read())
# "said " holds "ai " as well, and no pattern begins within a word
_AI = re.compile(r"ai(?<!\wai)[ :,]")
MOST = 8  # places that one pattern is looked for in


@lru_cache(maxsize=64)
def suspicions(text: str) -> tuple[tuple[int, str], ...]:
    """(offset, kind) of what reads as meant for a model, in order; of each pattern the first eight
    places."""
    lower = text.lower()
    found: list[tuple[int, str]] = []
    for kind, words, pattern in _PATTERNS:
        if any(word in lower and (word[:2] != "ai" or _AI.search(lower)) for word in words):
            found += [(match.start(), kind) for match in islice(pattern.finditer(text), MOST)]
    return tuple(sorted(found))
