"""Earlier turns of a conversation: what they add to a question, and the block that stands first in its context.

Takes the turns as a caller gives them, oldest first (strings, or `role: content`); gives the last user turns, names
to look for beside a question that only points back ("and his brother?"), and a block within a budget. Asks no model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from graphrag_mcp.extract import extract
from graphrag_mcp.pack import columns, count_tokens, one_line, shorten
from graphrag_mcp.query.ranking import MARKS
from graphrag_mcp.text import query_terms, stop_word

TURNS = 5  # user turns that are kept, the newest
HEADING = "-----Conversation History-----\nturn|content"
SHARE = 0.1  # of the budget at most
NAMES = 8  # looked for beside the question
LEAST = 10  # tokens of a turn below which it is left out

_ROLE = re.compile(r"\s*(user|human|me|assistant|ai|bot|system|tool)\s*[:：|]\s*", re.IGNORECASE)
_USER = {"user", "human", "me"}


def user_turns(history: Sequence[str]) -> list[str]:
    """The last user turns, oldest first. A turn without a role is the user's."""
    turns = []
    for one in history:
        match = _ROLE.match(one)
        body = one[match.end() :] if match else one
        if body.strip() and (match is None or match[1].casefold() in _USER):
            turns.append(body.strip())
    return turns[-TURNS:]


def keywords(turns: Sequence[str], query: str) -> list[str]:
    """Names of earlier turns, the newest first: of all when the question names nothing itself, else of the newest.

    Where no turn names anything, the content words of the newest, as they are written: they may be told.
    """
    own = {mention.key for mention in extract(query[:4_000]) if mention.strong}
    found: dict[str, str] = {}
    for turn in list(reversed(turns))[: 1 if own else TURNS]:
        for mention in extract(turn[:4_000]):
            if mention.strong and mention.key not in own:
                found.setdefault(mention.key, mention.form)
    if found or own or not turns:
        return list(found.values())[:NAMES]
    words = [word.strip(MARKS) for word in turns[-1][:1_000].split()]
    return [word for word in words if not all(map(stop_word, query_terms(word)))][:NAMES]


def block(turns: Sequence[str], budget: int) -> str:
    """The block, with as many of the newest turns as its share of the budget holds; "" when that is not one."""
    left = int(budget * SHARE) - count_tokens(HEADING)
    kept: list[str] = []
    for turn in reversed(turns):
        line = columns("user", one_line(turn, 2_000))
        if count_tokens(line) + 1 > left:
            if kept or left < LEAST + 4:
                break
            line = columns("user", shorten(one_line(turn, 2_000), left - 4) + " …")
            left = 0
        left -= count_tokens(line) + 1
        kept.insert(0, line)
        if left <= 0:
            break
    return "\n".join([HEADING, *kept]) if kept else ""
