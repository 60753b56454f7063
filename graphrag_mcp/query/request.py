"""What is asked of a search, as tools, commands and Python give it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypedDict

from graphrag_mcp.packing.budget import clamp_budget, one_line
from graphrag_mcp.query import note_hits
from graphrag_mcp.query.render import Form


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """How a model's answer is to be. `instructions`: its form and what else it should keep to.
    `on_text` is given its text while it is written. `seconds`: how long to wait for it, 0 for as
    long as it takes."""

    instructions: str = ""
    on_text: Callable[[str], None] | None = None
    seconds: float = 0.0

    def form(self) -> str:
        """The instructions as a line of the prompt."""
        return f"- {one_line(self.instructions, 2_000)}\n" if self.instructions.strip() else ""


ANY_FORM = AnswerOptions()


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a local or a global search.

    With `answer` a model answers, as `options` say; a later page has no answer."""

    query: str
    max_tokens: int | None = None
    cursor: str = ""
    filters: Sequence[str] = ()
    min_rating: float = 0.0
    level: int = -1  # of a global search: -1 goes down where it is relevant
    form: Form = Form()
    answer: bool = False
    options: AnswerOptions = ANY_FORM
    # tokens of a note beside `max_tokens`; None: some where that is not given
    beside: int | None = None

    def for_notes(self) -> int:
        """Tokens that a note may take beside the budget."""
        if self.beside is None:
            return note_hits.TOKENS if self.max_tokens is None else 0
        return self.beside

    def budget(self, default: int) -> tuple[int, str]:
        """The budget in tokens, and a sentence where it had to be changed."""
        return clamp_budget(default if self.max_tokens is None else self.max_tokens, default)


class Fields(TypedDict, total=False):
    """The fields of a `Request` beside its question, as callers in Python give them."""

    max_tokens: int | None
    cursor: str
    filters: Sequence[str]
    min_rating: float
    level: int
    form: Form
    answer: bool
    options: AnswerOptions
