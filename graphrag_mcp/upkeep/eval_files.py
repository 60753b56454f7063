"""Question files for an evaluation: what is asked, and what a good index finds for it.

Takes a JSON Lines, JSON or CSV file, or a folder with `corpus.jsonl` and `queries.jsonl`; gives `Question`s, and the
documents of such a folder as files. One question has `question` and any of `gold` (documents: their uri, file name,
title or id), `evidence` (strings that the context should hold) and `answer` (strings of which one should be in it);
common other names of these fields are understood. Knows no index.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphrag_mcp.errors import BadInput

FIELDS: dict[str, tuple[str, ...]] = {
    "question": ("question", "query", "q", "prompt", "input"),
    "gold": ("gold", "gold_documents", "gold_docs", "documents", "docs", "document", "uris", "uri", "titles", "sources",
             "source", "supporting_documents"),
    "evidence": ("evidence", "evidences", "quotes", "quote", "supporting_facts", "contexts"),
    "answer": ("answer", "answers", "answer_aliases", "expected", "expected_answer"),
    "type": ("type", "kind", "category"),
    "id": ("id", "qid", "question_id"),
}  # fmt: skip
NAMES = ("corpus.jsonl", "queries.jsonl")
_ADVICE = 'Give JSON Lines such as {"question": "Who was Ada?", "gold": ["ada.md"], "answer": ["a mathematician"]}'


@dataclass(frozen=True, slots=True)
class Question:
    """`gold`: documents; `evidence`: strings that all belong to it; `answers`: strings of which one suffices."""

    id: str
    text: str
    gold: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    type: str = ""


def read_questions(path: Path) -> tuple[Question, ...]:
    """The questions of a file or evaluation folder. BadInput where there are none, or one cannot be read."""
    if path.is_dir():
        path = path / NAMES[1]
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} cannot be read as a question file ({error})", _ADVICE) from error
    found = tuple(_question(row, place) for place, row in _rows(path, text))
    if not found:
        raise BadInput(f"{path} holds no questions", _ADVICE)
    if not any(one.gold or one.evidence or one.answers for one in found):
        raise BadInput(f"no question of {path} says what should be found", "Add gold, evidence or answer to them")
    seen: dict[str, int] = {}
    unique = []
    for one in found:  # two questions of one id would be compared with each other
        seen[one.id] = seen.get(one.id, 0) + 1
        id = one.id if seen[one.id] == 1 else f"{one.id}#{seen[one.id]}"
        unique.append(Question(id, one.text, one.gold, one.evidence, one.answers, one.type))
    return tuple(unique)


def _rows(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    """(place, row) of every row, by the kind of the file."""
    if path.suffix.lower() in (".csv", ".tsv"):
        reader = csv.DictReader(text.splitlines(), delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
        for row in reader:
            yield f"{path.name} line {reader.line_num}", {name: value for name, value in row.items() if name and value}
        return
    try:
        whole = json.loads(text)
    except ValueError:
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                try:
                    yield f"{path.name} line {number}", json.loads(line)
                except ValueError as error:
                    raise BadInput(f"{path.name} line {number} is not JSON ({error})", _ADVICE) from error
        return
    if isinstance(whole, Mapping):
        listed = next((value for value in whole.values() if isinstance(value, list) and value and
                       all(isinstance(one, Mapping) for one in value)), [whole])  # fmt: skip
        whole = [whole] if any(name in whole for name in FIELDS["question"]) else listed
    for number, row in enumerate(whole if isinstance(whole, list) else [whole], 1):
        yield f"{path.name} question {number}", row


def _question(row: Any, place: str) -> Question:
    if not isinstance(row, Mapping):
        raise BadInput(f"{place} is no object", _ADVICE)
    given = {str(name).strip().casefold(): value for name, value in row.items()}
    held = {field: next((given[name] for name in names if given.get(name)), "") for field, names in FIELDS.items()}
    text = str(held["question"]).strip()
    if not text:
        raise BadInput(f"{place} has no question", _ADVICE)
    return Question(
        str(held["id"] or text[:80]), text, _strings(held["gold"]), _strings(held["evidence"]),
        _strings(held["answer"]), str(held["type"]),
    )  # fmt: skip


def _strings(value: Any) -> tuple[str, ...]:
    """A list, a JSON list in a string, strings with `|` between them, or one string."""
    if isinstance(value, str):
        flat = value.strip()
        if flat.startswith("["):
            try:
                value = json.loads(flat)
            except ValueError:
                value = [flat]
        else:
            value = re.split(r"(?<!\s)\s*\|\s*", flat)
    listed: Sequence[Any] = value if isinstance(value, list | tuple) else [value]
    found = [str(one).strip() for one in listed if isinstance(one, str | int | float) and not isinstance(one, bool)]
    return tuple(dict.fromkeys(one for one in found if one))


def is_set(path: Path) -> bool:
    """Is this a folder that brings its own documents?"""
    return path.is_dir() and all((path / name).is_file() for name in NAMES)


def write_documents(folder: Path, target: Path) -> int:
    """The documents of an evaluation folder as one Markdown file each, `<id>.md`; how many there are."""
    target.mkdir(parents=True, exist_ok=True)
    count = 0
    for number, line in enumerate((folder / NAMES[0]).read_text("utf-8").split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            name, text = str(row["id"]), str(row["text"])
        except (ValueError, KeyError, TypeError) as error:
            what = f"{NAMES[0]} line {number} is no document with id and text"
            raise BadInput(what, 'Give lines such as {"id": "a", "title": "A", "text": "..."}') from error
        safe = re.sub(r"[^\w.-]", "_", name)[:120]
        title = f"# {row['title']}\n\n" if row.get("title") else ""
        (target / f"{safe}.md").write_text(title + text, "utf-8")
        count += 1
    return count
