"""Replies of models in the forms that the prompts ask for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

Record = dict[str, Any]


def entity(name: str, description: str, kind: str = "person") -> Record:
    return {"name": name, "type": kind, "description": description}


def relation(source: str, target: str, description: str, keywords: str = "work", strength: Any = 8) -> Record:
    parts = [word.strip() for word in keywords.split(",")]
    return {"source": source, "target": target, "description": description, "keywords": parts, "strength": strength}


def records(*parts: Record) -> str:
    """Entities and relationships, told apart by their keys."""
    found: dict[str, list[Record]] = {"entities": [], "relationships": []}
    for part in parts:
        found["relationships" if "source" in part else "entities"].append(part)
    return json.dumps(found, ensure_ascii=False)


def cut(reply: str, after: str) -> str:
    """The reply as it is when the server stops behind these words."""
    return reply[: reply.index(after) + len(after)]


NOTHING = records()


def report(title: str, summary: str, findings: Sequence[tuple[str, str]] = (), rating: Any = 5) -> str:
    listed = [{"summary": heading, "explanation": text} for heading, text in findings]
    whole = {"title": title, "summary": summary, "rating": rating, "rating_explanation": "So it is.", "findings": listed}
    return json.dumps(whole, ensure_ascii=False)
