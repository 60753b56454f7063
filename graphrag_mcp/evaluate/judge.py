"""A model as the judge of two answers to each of many questions, by the criteria of the GraphRAG
paper (arXiv 2404.16130).

Each pair is judged in both orders, because models prefer what they read first (or last): who wins
in both has won, else it is a tie."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphrag_mcp.errors import BadInput
from graphrag_mcp.evaluate.evaluate import sign_test
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
    """Compare every pair in both orders. BadInput when no one can judge."""
    may_judge(asker)
    given = asker.wait(_given(asker, pairs))
    wins = {name: [0, 0, 0] for name in CRITERIA}  # ties, one, other
    reasons: dict[str, None] = {}
    judged, by = 0, ""
    for forth, back in given:
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


async def _given(
    asker: Asker, pairs: Sequence[Pair]
) -> list[tuple[Answer[dict[str, int]], Answer[dict[str, int]]]]:
    """Both orders of every pair, all at once: how many are in flight is the asker's business."""
    asks = [
        asker.ask(_question(pair.question, *answers))
        for pair in pairs
        for answers in ((pair.one, pair.other), (pair.other, pair.one))
    ]
    given = await asyncio.gather(*asks)
    return list(zip(given[::2], given[1::2], strict=True))


def _question(question: str, first: str, second: str) -> Ask[dict[str, int]]:
    parts = {"question": question, "first": first, "second": second}
    text = prompts.load("judge").substitute({name: _data(part) for name, part in parts.items()})
    messages = (Message("user", text),)
    return Ask("judge", messages, read_verdicts, lambda: dict.fromkeys(CRITERIA, 0), SCHEMA)


def _data(text: str) -> str:
    """An answer for a place between tags: it cannot close them."""
    return _CLOSING.sub(r"<\\", text[:CHARACTERS]).strip() or "(no answer)"


def read_verdicts(text: str) -> dict[str, int]:
    """The winner by criterion: 1, 2, or 0 for neither. BadReply when one is missing."""
    try:
        held = replies.read(text)
    except ValueError as error:
        raise BadReply("there is no JSON in it") from error
    held = held[0] if isinstance(held, list) and held else held
    if not isinstance(held, Mapping):
        raise BadReply("it is no JSON object")
    given = {str(name).strip().casefold(): value for name, value in held.items()}
    return {name: _winner(given.get(name), name) for name in CRITERIA}


def _winner(value: Any, name: str) -> int:
    value = value.get("winner", value.get("better")) if isinstance(value, Mapping) else value
    said = "" if value is None else str(value).strip().casefold()
    if said in ("0", "tie", "neither", "none", "equal", "draw", "0.0"):
        return 0
    match = re.fullmatch(r"(?:answer)?[\s_#]*([12])(?:\.0)?", said)
    if match is None:
        raise BadReply(f"there is no winner of {name}")
    return int(match[1])


def table(one: str, other: str, found: Judgement) -> str:
    """One line per criterion, Markdown."""
    title = f"# {one} and {other} compared by {found.by or 'no one'}: {found.judged} questions"
    lines = [title, "", f"| criterion | {one} | {other} | ties | p |", "|---|---:|---:|---:|---:|"]
    lines += [
        f"| {row.criterion} | {row.one} | {row.other} | {row.ties} | {row.p:.3f} |"
        for row in found.criteria
    ]
    if found.unjudged:
        reasons = "; ".join(found.reasons[:3])
        lines += ["", f"{found.unjudged} questions were not judged: {reasons}."]
    return "\n".join(lines)
