"""Write the collections and questions of the agent benchmark: python make.py FOLDER [--data DIR]

    FOLDER/twohop    short passages of two sets of two-hop questions, 20 questions
    FOLDER/news      news articles, 10 questions on all of it and on long stretches
    FOLDER/long      long documents of several kinds, 12 questions in other words than the text's

In each: documents/*.txt, questions.json for the agents, answers.json for the judge alone. The data
sets are those of benchmarks/corpora.py; none is part of this repository.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import corpora

SEED = 11
NEWS = (
    "What are the main topics of this collection, and how much of it is about each?",
    "What happened in domestic politics over the time covered: issues, people, deciding events?",
    "Which legal disputes of companies are reported, and how did each stand at the end?",
    "How did the market for mobile phones and fast internet develop?",
    "Which films, music and prizes dominated, and who won what?",
    "Who are the ten people that matter most across all articles, and why?",
    "Which sporting rivalries run through the collection, and how did they stand at the end?",
    "Where do articles disagree about the state of the economy?",
    "Which threats to computer users are described, and what is advised against each?",
    "Which stories belong to two fields at once, such as politics and sport?",
)


def write(folder: Path, documents: list[dict], questions: list[dict], answers: list[dict]) -> None:
    (folder / "documents").mkdir(parents=True, exist_ok=True)
    for row in documents:
        name = "".join(ch if ch.isalnum() else "_" for ch in row["id"])[:80]
        title = f"{row['title']}\n\n" if row.get("title") else ""
        (folder / "documents" / f"{name}.txt").write_text(title + row["text"], "utf-8")
    for name, rows in (("questions", questions), ("answers", answers)):
        (folder / f"{name}.json").write_text(json.dumps(rows, indent=1, ensure_ascii=False), "utf-8")


def _picked(
    names: tuple[str, ...], each: int, letter: str, kept: str, data: Path
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    chosen = random.Random(SEED)
    rows = [row for name in names for row in chosen.sample(corpora.questions(name, data), each)]
    asked = [{"id": f"{letter}{n}", "question": row["question"]} for n, row in enumerate(rows)]
    answers = [one | {kept: row.get(kept, "")} for one, row in zip(asked, rows, strict=True)]
    return asked, answers


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", type=Path, default=corpora.DATA)
    options = parser.parse_args()
    pairs = ("musique100", "hotpot_train100")
    documents = {row["id"]: row for name in pairs for row in corpora.documents(name, options.data)}
    found = _picked(pairs, 10, "T", "answer", options.data)
    write(options.folder / "twohop", list(documents.values()), *found)
    asked = [{"id": f"N{n}", "question": question} for n, question in enumerate(NEWS)]
    write(options.folder / "news", corpora.documents("bbc_news", options.data), asked, [])
    found = _picked(("chroma",), 12, "C", "evidence", options.data)
    write(options.folder / "long", corpora.documents("chroma", options.data), *found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
