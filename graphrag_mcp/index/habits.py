"""How much a model says: what is usual, or what the answers show that this one gave before.

Takes the answers of one model in a book; gives numbers that `imitated.py` says as much by. A few dozen answers are
enough, so the first part of a run (`max_calls`) tells what the rest will cost. Knows no text that was asked about.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from statistics import mean, quantiles
from typing import Any, Protocol

from graphrag_mcp.ask import BadReply
from graphrag_mcp.index.records import parse
from graphrag_mcp.text import is_cjk

ENOUGH, LOOKED_AT = 10, 200  # answers of a kind from which its habits are told, and the most that are read for it


@dataclass(frozen=True, slots=True)
class Habits:
    """`names`: entities of a first reply, at the most; `links`: relationships; `said`: characters said of each, 0 for
    as many as its sentence has; `looked`: share of texts that are looked at once more, below 0 for those that repeat
    more names than a reply has; `report`, `summary`: tokens of one, 0 for what its rows have; `spent`:
    output tokens that a provider counts, by kind, for each token of the reply as it can be read (thoughts are paid for,
    too); `answers`: of how many this was learnt."""

    names: int = 18
    links: int = 18
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
    dense = 0 if text.isascii() else sum(map(is_cjk, text))
    return (len(text) - dense) / 4 + dense / 1.3


def learnt(book: Answers | None, model: str) -> Habits:
    """The habits of a model; those that are usual where the book has too few answers of its."""
    habits = Habits()
    if book is None or not model:
        return habits
    rows = [row for row in book.listing() if row["answerer"] == f"llm:{model}"]
    for kind in ("extract", "report", "describe"):
        own = [row for row in rows if row["kind"] == kind]
        if len(own) < ENOUGH:
            continue
        # Of the longest texts: what a short one holds says nothing of how much a reply can hold.
        if kind == "extract":
            own.sort(key=lambda row: (-row["prompt_tokens"], row["key"]))
            del own[len(own) // 2 + 1 :]
        replies = [book.get(row["key"], row["answerer"])[:1] for row in own[:LOOKED_AT]]
        texts = [(found[0].text, found[0].output_tokens) for found in replies if found]
        read, paid = sum(tokens_of(text) for text, _ in texts), sum(tokens for _, tokens in texts)
        if read and paid:
            habits = replace(habits, spent={**habits.spent, kind: paid / read}, answers=habits.answers + len(texts))
        if kind == "extract":
            looked = sum(row["kind"] == "glean" for row in rows) / sum(row["kind"] == "extract" for row in rows)
            habits = _of_records(replace(habits, looked=looked), [text for text, _ in texts])
        else:
            size = mean(tokens_of(text) for text, _ in texts) if texts else 0.0
            habits = replace(habits, **{"report" if kind == "report" else "summary": size})
    return habits


def _of_records(habits: Habits, replies: Iterable[str]) -> Habits:
    names, links, lengths = [], [], []
    for reply in replies:
        try:
            found = parse(reply)
        except BadReply:
            continue
        names.append(len(found.entities))
        links.append(len(found.relations))
        lengths += [len(one.description) for one in (*found.entities, *found.relations)]
    if len(names) < 2 or not lengths:
        return habits
    # Some texts hold less than a reply could: the upper quarter shows how much that is.
    most = [max(1, round(quantiles(counts, n=4)[2])) for counts in (names, links)]
    return replace(habits, names=most[0], links=most[1], said=round(mean(lengths)))
