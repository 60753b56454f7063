"""Earlier turns of a conversation: what the user said, as a block above a result, and the names in it that a question
is searched for with."""

from __future__ import annotations

import re
from collections.abc import Sequence

from graphrag_mcp.names.extract import extract
from graphrag_mcp.packing.budget import columns, one_line, shorten
from graphrag_mcp.query.question import MARKS, NAME_CHARACTERS
from graphrag_mcp.text.terms import query_terms, stop_word
from graphrag_mcp.text.tokens import count_tokens

TURNS, NAMES = 5, 8  # the newest user turns that are read; names that are looked for
HEADING = "-----Conversation History-----\nturn|content"
HISTORY_SHARE, LEAST_TURN = 0.1, 14  # of the budget at most; tokens of a turn that is cut
_ROLE = re.compile(r"\s*(user|human|me|assistant|ai|bot|system|tool)\s*[:：|]\s*", re.IGNORECASE)
_USER = {"user", "human", "me"}


def read(history: Sequence[str], query: str, budget: int) -> tuple[str, list[str]]:
    """The block of the user's turns, and the names that they add to the question."""
    if not history:
        return "", []
    turns = []
    for turn in history:
        match = _ROLE.match(turn)
        body = turn[match.end() :] if match else turn  # a turn without a role is the user's
        if body.strip() and (match is None or match[1].casefold() in _USER):
            turns.append(body.strip())
    turns = turns[-TURNS:]
    return _block(turns, budget), keywords(turns, query) if query else []


def keywords(turns: Sequence[str], query: str) -> list[str]:
    """Names of earlier turns, the newest first: of all when the question names nothing itself, else
    of the newest. Where no turn names anything, the content words of the newest, as written."""
    keys = {mention.key for mention in extract(query[:NAME_CHARACTERS]) if mention.strong}
    found: dict[str, str] = {}
    for turn in list(reversed(turns))[: 1 if keys else TURNS]:
        for mention in extract(turn[:NAME_CHARACTERS]):
            if mention.strong and mention.key not in keys:
                found.setdefault(mention.key, mention.form)
    if found or keys or not turns:
        return list(found.values())[:NAMES]
    words = [word.strip(MARKS) for word in turns[-1][:1_000].split()]
    return [word for word in words if not all(map(stop_word, query_terms(word)))][:NAMES]


def _block(turns: Sequence[str], budget: int) -> str:
    """The newest turns that fit into their share of the budget; "" if not even one fits."""
    left = int(budget * HISTORY_SHARE) - count_tokens(HEADING)
    kept: list[str] = []
    for turn in reversed(turns):
        line = columns("user", one_line(turn, 2_000))
        if count_tokens(line) >= left:
            if not kept and left >= LEAST_TURN:
                kept.append(columns("user", shorten(one_line(turn, 2_000), left - 4) + " …"))
            break
        left -= count_tokens(line) + 1
        kept.insert(0, line)
    return "\n".join([HEADING, *kept]) if kept else ""
