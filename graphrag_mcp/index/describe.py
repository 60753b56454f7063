"""The description of an entity or a relationship as one text: joined up to a limit, or summarised
by a model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from string import Template

from pydantic import BaseModel

from graphrag_mcp.llm.asker import Ask, Asker, BadReply
from graphrag_mcp.llm.protocols import Message
from graphrag_mcp.llm.replies import clean, cut, schema_of, validated, words
from graphrag_mcp.packing.budget import shorten
from graphrag_mcp.settings import Settings
from graphrag_mcp.text.tokens import count_tokens

JOINED = 1200  # tokens of a description that no model has summarised
MOST_WORDS = 800  # of a summary; 500 are asked for
LONGEST_REPLY = 100_000  # characters
OWN_LANGUAGE = "that of the descriptions"
_TAG = re.compile(r"<(?=/\s*descriptions)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class DescribeParams:
    template: Template
    language: str = ""
    input_tokens: int = 4000  # of descriptions in one question


def needs_summary(fragments: Sequence[str], settings: Settings) -> bool:
    """Are the distinct fragments so many, or so long, that a model should join them?"""
    distinct = _distinct(fragments)
    if len(distinct) < 2 or len(distinct) >= settings.summary_fragments:
        return len(distinct) >= 2
    return count_tokens("\n".join(distinct)) > settings.summary_tokens


def joined(fragments: Sequence[str], limit: int = JOINED) -> str:
    """Each fragment once, in order, within `limit` tokens, ending with a whole sentence."""
    kept: list[str] = []
    left = limit
    distinct = _distinct(fragments)
    if (
        sum(len(fragment.encode()) + 1 for fragment in distinct) <= limit
    ):  # a token is a byte or more
        return "\n".join(distinct)
    for fragment in distinct:
        price = count_tokens(fragment + "\n")
        if price > left:
            if left >= 30:
                short = shorten(fragment, left)
                ended = short.endswith((".", "!", "?", "。", "！", "？", "…"))
                kept.append(short if ended else f"{short}…")
            break
        kept.append(fragment)
        left -= price
    return "\n".join(kept)


async def summarise(
    asker: Asker, names: Sequence[str], fragments: Sequence[str], params: DescribeParams
) -> tuple[str, str, str]:
    """One description, who wrote it ("" for no one) and why no model did ("" when one did). A model is
    shown as many fragments as fit, the first ones, which are the strongest."""
    shown = joined(fragments, params.input_tokens).split("\n")
    answer = await asker.ask(_ask(names, shown, params))
    return (answer.value, answer.by, "") if answer.by else (joined(fragments), "", answer.reason)


def _ask(names: Sequence[str], fragments: Sequence[str], params: DescribeParams) -> Ask[str]:
    listed = "\n".join(
        f"{number}. {_inside(fragment)}" for number, fragment in enumerate(fragments, 1)
    )
    named = " – ".join(_inside(name)[:200] for name in names)
    language = params.language or OWN_LANGUAGE
    text = params.template.substitute(names=named, descriptions=listed, language=language)
    without = partial(joined, fragments)
    return Ask(
        "describe", (Message("user", text),), parse_description, without, SCHEMA, if_cut="refused"
    )


def _inside(text: str) -> str:
    """Text of a document as it may stand between the tags: on one line, and it cannot end them."""
    return _TAG.sub("<\\\\", " ".join(text.split()))


class Described(BaseModel):
    """The form of a reply."""

    description: str


SCHEMA = schema_of(Described)


def parse_description(reply: str) -> str:
    """The description in a reply, in lines without marks of headings and emphasis."""
    if len(reply) > LONGEST_REPLY:
        raise BadReply("the reply was far too long")
    text = validated(Described, reply).description
    lines = (clean(line, len(line)).lstrip("# ") for line in text.splitlines())
    text = "\n".join(filter(None, lines)).replace("**", "")
    if sum(map(str.isalpha, text)) < 3:
        raise BadReply("the description is empty")
    size = words(text)
    return text if size <= MOST_WORDS else cut(text, max(1, len(text) * MOST_WORDS // size))


def _distinct(fragments: Sequence[str]) -> list[str]:
    """Each fragment once, on one line; equal but for case and the full stop is the same."""
    kept: dict[str, str] = {}
    for fragment in fragments:
        flat = " ".join(fragment.split())
        if flat:
            kept.setdefault(flat.casefold().rstrip(".。"), flat)
    return list(kept.values())
