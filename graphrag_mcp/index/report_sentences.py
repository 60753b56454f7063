"""The sentences of a topic's texts that its report quotes, of the texts and the topic's terms alone.

Imports nothing of the tables: another process chooses them (`executors.py`) while this one reads rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from graphrag_mcp.text import quote
from graphrag_mcp.text.terms import terms
from graphrag_mcp.trust.fencing import masked

QUOTES = 5  # sentences of a report
LONGEST = 400  # characters of one sentence; a longer one is cut at a space
Texts = Sequence[tuple[str, str]]  # (id of the text unit, text)
# A sentence and the ids of the text units whose best sentence it is.
Chosen = tuple[str, list[str]]


def chosen(item: tuple[Texts, quote.Worth]) -> list[Chosen]:
    """The sentences that say most of the weighted terms, one of each text, best first; none that
    repeats another."""
    texts, worth = item
    units: dict[str, dict[str, None]] = {}
    found: dict[str, quote.Quote] = {}
    for unit, text in texts:
        if best := quote.best(masked(text), worth):
            sentence = shown(best.text)
            found[sentence] = replace(best, text=sentence)
            units.setdefault(sentence, {})[unit] = None
    ranked = sorted(found.values(), key=lambda candidate: (-candidate.score, candidate.text))
    distinct = quote.distinct([(candidate, set(terms(candidate.text))) for candidate in ranked], QUOTES)
    return [(candidate.text, [*units[candidate.text]]) for candidate in distinct]


def shown(text: str) -> str:
    """The sentence on one line; only we write references."""
    flat = quote.one_line(text).replace("[Data:", "(Data:").lstrip("#").strip()
    if len(flat) <= LONGEST:
        return flat
    cut = flat[: LONGEST - 1]
    return (cut.rpartition(" ")[0] or cut).rstrip(" ,;，；、") + "…"
