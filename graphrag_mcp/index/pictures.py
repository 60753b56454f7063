"""Descriptions of pictures by the model that the setting `vision_model` names.

They are text of the document that holds the picture, and are asked for while files are read. Replies are
kept in the reply cache by the bytes of the picture, so that no picture is paid for twice."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from graphrag_mcp.llm.asker import Ask, Asker
from graphrag_mcp.llm.prompts import load
from graphrag_mcp.llm.protocols import Message
from graphrag_mcp.llm.replies import BadReply, without_thoughts
from graphrag_mcp.settings import Settings
from graphrag_mcp.sources.pictures import media_type
from graphrag_mcp.sources.piece import Described, Picture
from graphrag_mcp.sources.read import Describe

LANGUAGE = "that of the text in the picture, else English"
MOST_WORDS = 400  # asked for
LONGEST = 8_000  # characters that are kept of a description


def describer(asker: Asker, folder: Path, settings: Settings, take: Callable[[Future[Any]], Any]) -> Describe | None:
    """What has pictures described; None without such a model. `take` waits for an answer."""
    if asker.vision is None:
        return None
    vision, prompt = asker.vision, _prompt(folder, settings)

    async def answers(pictures: Sequence[Picture]) -> list[Described]:
        found = await asyncio.gather(*(vision.ask(_ask(prompt, picture)) for picture in pictures))
        return [Described(answer.value, answer.by, answer.reason) for answer in found]

    return lambda pictures: take(vision.start(answers(pictures)))


def _prompt(folder: Path, settings: Settings) -> str:
    language = settings.output_language or LANGUAGE
    return load("picture", folder).substitute(language=language, words=MOST_WORDS)


def _ask(prompt: str, picture: Picture) -> Ask[str]:
    data = base64.b64encode(picture.data).decode("ascii")
    url = f"data:{media_type(picture.data)};base64,{data}"
    return Ask("picture", (Message("user", prompt, (url,)),), _description, str)


def _description(reply: str) -> str:
    """The description on one line: a paragraph of a document."""
    description = " ".join(without_thoughts(reply).split())
    if not description:
        raise BadReply("the reply is empty")
    return description[:LONGEST]
