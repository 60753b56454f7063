"""How much a model says: what is usual, or what the answers show that this one gave before.

Takes the answers of one model in a book; gives numbers that `imitated.py` says as much by. A few dozen answers are
enough, so the first part of a run (`max_calls`) tells what the rest will cost. Knows no text that was asked about.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import mean, quantiles
from typing import Any, Protocol

from graphrag_mcp.ask import BadReply
from graphrag_mcp.index.records import parse

ENOUGH, LOOKED_AT = 10, 200  # answers of a kind from which its habits are told, and the most that are read for it
_DENSE = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]+")  # CJK
FULL = 400  # tokens of a text that holds more names than a reply


@dataclass(frozen=True, slots=True)
class Habits:
    """`names`: entities of a first reply, at the most; `links`: relationships; `more`: entities that a
    second look adds, and as many relationships; `said`: characters said of each, 0 for
    as many as its sentence has; `looked`: share of texts that are looked at once more, below 0 for those that repeat
    more names than a reply has; `report`, `summary`: tokens of one, 0 for what its rows have; `spent`:
    output tokens that a provider counts, by kind, for each token of the reply as it can be read (thoughts are paid for,
    too); `answers`: of how many this was learnt."""

    names: int = 18
    links: int = 18
    more: int = 6
    said: int = 0
    looked: float = -1.0
    report: float = 0.0
    summary: float = 0.0
    spent: Mapping[str, float] = field(default_factory=dict)
    answers: int = 0


class Answers(Protocol):
    """What of an answer book is read here."""

    def listing(self, kind: str = "") -> Iterable[Mapping[str, Any]]: ...

    def get(self, key: str, preferred: str = "") -> list[Any]: ...


def tokens_of(text: str) -> float:
    """What providers' tokenizers make of a text, about: 4 letters, or 1.3 CJK characters, a token."""
    dense = 0 if text.isascii() else len(text) - len(_DENSE.sub("", text))
    return (len(text) - dense) / 4 + dense / 1.3


def learnt(book: Answers | None, model: str, constant: float) -> Habits:
    """The habits of a model; those that are usual where the book has too few answers of its. `constant`: tokens of the
    question about a text without the text."""
    habits = Habits()
    if book is None or not model:
        return habits
    rows = [row for row in book.listing() if row["answerer"] == f"llm:{model}"]
    for kind in ("extract", "glean", "report", "describe"):
        own = [row for row in rows if row["kind"] == kind]
        if len(own) < ENOUGH:
            continue
        own.sort(key=lambda row: (-row["prompt_tokens"], row["key"]))
        replies = [found[0] for row in own[:LOOKED_AT] if (found := book.get(row["key"], row["answerer"]))]
        texts = [one.text for one in replies]
        read, paid = sum(map(tokens_of, texts)), sum(one.output_tokens for one in replies)
        if read and paid:
            habits = replace(habits, spent={**habits.spent, kind: paid / read}, answers=habits.answers + len(texts))
        if kind == "extract":
            looked = sum(row["kind"] == "glean" for row in rows) / sum(row["kind"] == "extract" for row in rows)
            # What a short text holds says nothing of how much a reply can hold.
            full = [one.text for one in replies if one.prompt_tokens - constant >= FULL]
            habits = _of_records(replace(habits, looked=looked), texts, full)
        elif kind == "glean":
            habits = replace(habits, more=round(mean(_records(text)[0] for text in texts)))
        else:
            size = read / len(texts) if texts else 0.0
            habits = replace(habits, **{"report" if kind == "report" else "summary": size})
    return habits


def _of_records(habits: Habits, replies: Iterable[str], full: Sequence[str]) -> Habits:
    lengths = [len(one.description) for _, all_ in map(_records, replies) for one in all_]
    counts = [(names, len(all_) - names) for names, all_ in map(_records, full)]
    if lengths:
        habits = replace(habits, said=round(mean(lengths)))
    if len(counts) >= ENOUGH:  # some hold less than a reply could, a few hold more than is usual
        most = [max(1, round(quantiles(column, n=10)[8])) for column in zip(*counts, strict=True)]
        habits = replace(habits, names=most[0], links=most[1])
    return habits


def _records(reply: str) -> tuple[int, list[Any]]:
    """How many entities, and these with the relationships."""
    try:
        found = parse(reply)
    except BadReply:
        return 0, []
    return len(found.entities), [*found.entities, *found.relations]
