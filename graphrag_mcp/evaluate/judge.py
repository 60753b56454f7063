"""A model as the judge of two answers to each of many questions, by the criteria of the GraphRAG
paper (arXiv 2404.16130).

Each pair is judged in both orders, because models prefer what they read first (or last): who wins
in both has won, else it is a tie."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any, Literal

from pydantic import BaseModel, TypeAdapter

from graphrag_mcp.errors import BadInput
from graphrag_mcp.evaluate.evaluate import sign_test, table_lines
from graphrag_mcp.llm import prompts, replies
from graphrag_mcp.llm.asker import Answer, Ask, Asker, BadReply
from graphrag_mcp.llm.protocols import Message

CRITERIA = ("comprehensiveness", "diversity", "empowerment", "directness")
CHARACTERS = 12_000  # of an answer
_VERDICT = {
    "type": "object",
    "additionalProperties": False,
    "required": ["winner", "reason"],
    "properties": {"winner": {"type": "integer", "enum": [0, 1, 2]}, "reason": {"type": "string"}},
}
SCHEMA: dict[str, Any] = {
    "title": "comparison",
    "type": "object",
    "properties": {name: _VERDICT for name in CRITERIA},
    "required": list(CRITERIA),
    "additionalProperties": False,
}
_CLOSING = re.compile(r"<(?=\s*/\s*(?:answer_[12]|question))", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Pair:
    """One question with the answers of both sides."""

    question: str
    one: str
    other: str


@dataclass(frozen=True, slots=True)
class Verdicts:
    """One criterion over all pairs. `p`: two-sided sign test of the wins."""

    criterion: str
    one: int
    other: int
    ties: int
    p: float


@dataclass(frozen=True, slots=True)
class Judgement:
    """`judged` pairs were compared in both orders; `unjudged` were not, with the reasons."""

    criteria: tuple[Verdicts, ...]
    judged: int
    unjudged: int
    reasons: tuple[str, ...]
    by: str


def judge(asker: Asker, pairs: Sequence[Pair]) -> Judgement:
    """Compare every pair in both orders, all at once. BadInput when no one can judge."""
    may_judge(asker)

    async def both_orders() -> list[Answer[dict[str, int]]]:
        asks = []
        for pair in pairs:
            asks.append(_question(pair.question, pair.one, pair.other))
            asks.append(_question(pair.question, pair.other, pair.one))
        return await asyncio.gather(*map(asker.ask, asks))

    given = asker.wait(both_orders())
    wins = {name: [0, 0, 0] for name in CRITERIA}  # ties, one, other
    reasons: dict[str, None] = {}
    judged, by = 0, ""
    for forth, back in zip(given[::2], given[1::2], strict=True):
        if not forth.by or not back.by:
            reasons[forth.reason or back.reason or "no reply"] = None
            continue
        judged, by = judged + 1, by or forth.by
        for name in CRITERIA:
            first, second = forth.value[name], back.value[name]
            wins[name][first if first and second == 3 - first else 0] += 1
    criteria = tuple(
        Verdicts(name, one, other, ties, sign_test(other, one))
        for name, (ties, one, other) in wins.items()
    )
    return Judgement(criteria, judged, len(pairs) - judged, tuple(reasons), by)


def may_judge(asker: Asker) -> None:
    """BadInput where no model can judge."""
    if not asker.may_answer("judge"):
        what = "judging needs a chat model and none is configured"
        raise BadInput(what, "Set GRAPHRAG_MCP_CHAT_MODEL")


def _question(question: str, first: str, second: str) -> Ask[dict[str, int]]:
    parts = {"question": question, "first": first, "second": second}
    text = prompts.load("judge").substitute({name: _data(part) for name, part in parts.items()})
    messages = (Message("user", text),)
    return Ask("judge", messages, read_verdicts, lambda: dict.fromkeys(CRITERIA, 0), SCHEMA)


def _data(text: str) -> str:
    """An answer for a place between tags: it cannot close them."""
    return _CLOSING.sub(r"<\\", text[:CHARACTERS]).strip() or "(no answer)"


class Verdict(BaseModel):
    winner: Literal[0, 1, 2]


def read_verdicts(text: str) -> dict[str, int]:
    """The winner by criterion: 1, 2, or 0 for neither. BadReply when one is missing."""
    try:
        given = _VERDICTS.validate_python(replies.read(text).values[0])
        return {name: given[name].winner for name in CRITERIA}
    except ValueError as error:
        raise BadReply("it is no JSON object with a winner of 0, 1 or 2 by criterion") from error
    except KeyError as missing:
        raise BadReply(f"there is no winner of {missing.args[0]}") from missing


_VERDICTS = TypeAdapter(dict[str, Verdict])


def table(one: str, other: str, found: Judgement) -> str:
    """One line per criterion, Markdown."""
    rows = [[*map(str, astuple(row)[:-1]), f"{row.p:.3f}"] for row in found.criteria]
    title = f"# {one} and {other} compared by {found.by or 'no one'}: {found.judged} questions"
    lines = [title, "", *table_lines(["criterion", one, other, "ties", "p"], rows)]
    if found.unjudged:
        reasons = "; ".join(found.reasons[:3])
        lines += ["", f"{found.unjudged} questions were not judged: {reasons}."]
    return "\n".join(lines)
