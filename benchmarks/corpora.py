"""Evaluation sets written out as the folders of files that a user would have.

A set is a folder with corpus.jsonl {id, title, text} and queries.jsonl {id, question, gold,
evidence}. Each document becomes one Markdown file `<id>.md` with its title as heading, so that what
is measured is the whole way in.
"""

from __future__ import annotations

import json
from pathlib import Path

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def sets(data: Path = DATA) -> list[str]:
    """The sets with questions; one without them has texts for other measurements."""
    found = sorted(path.parent.name for path in data.glob("*/queries.jsonl"))
    if not found:
        raise SystemExit(f"no set was found: {data} has no folder with a file queries.jsonl (--data)")
    return found


def write_out(name: str, folder: Path, data: Path = DATA) -> Path:
    """The set's documents as files in `folder/name`; gives that folder."""
    target = folder / name
    target.mkdir(parents=True, exist_ok=True)
    for row in documents(name, data):
        title = f"# {row['title']}\n\n" if row["title"] else ""
        (target / f"{row['id']}.md").write_text(title + row["text"], "utf-8")
    return target


def documents(name: str, data: Path = DATA) -> list[dict]:
    return _rows(data / name / "corpus.jsonl")


def questions(name: str, data: Path = DATA) -> list[dict]:
    return _rows(data / name / "queries.jsonl")


def _rows(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]
