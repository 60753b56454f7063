"""How much of the evidence does get_source show with a question, of eight documents in one call?

    python benchmarks/sources.py [--data ../shared/data] [--tokens 600]

The documents of two sets are cut into documents of at most 3,500 characters without a title. For 100 questions, by a
fixed draw, get_source reads the document that holds the evidence and those that a search finds, eight at
most. Prints the share of the evidence that is shown, in runs of 30 letters, and the characters of a result.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks import corpora
from benchmarks.quotes import flat
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query.local import local_search
from graphrag_mcp.query.source import get_source
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest

SETS = ("chroma", "cmrc_zh")
LONGEST, LEAST = 3_500, 1_500  # characters of a document, and before a cut
QUESTIONS, DOCUMENTS, SEED = 100, 8, 5
RUN, STEP = 30, 10  # letters


def cut(text: str) -> list[str]:
    """The text in documents that end with a line or a sentence where there is one."""
    found = []
    while len(text) > LONGEST:
        line, sentence = text.rfind("\n", LEAST, LONGEST), text.rfind(". ", LEAST, LONGEST)
        end = max(line, sentence + 1)
        end = end if end > 0 else LONGEST
        found.append(text[:end])
        text = text[end:]
    return [*found, text]


def shown(evidence: str, text: str) -> float:
    """The share of the evidence that stands in the text."""
    runs = [evidence[at : at + RUN] for at in range(0, max(len(evidence) - RUN + 1, 1), STEP)]
    return sum(run in text for run in runs) / len(runs)


def measure(name: str, data: Path, tokens: int, folder: Path) -> tuple[float, int]:
    docs = folder / name
    docs.mkdir()
    texts = [part for row in corpora.documents(name, data) for part in cut(row["text"])]
    for number, text in enumerate(texts):
        (docs / f"p{number:04d}.txt").write_text(text, "utf-8")
    index = folder / f"{name}.index"
    index_documents(index, IndexRequest(paths=(str(docs),)), Settings(home=index))
    snapshot = open_snapshot(index)
    flat_texts = [flat(text) for text in texts]
    cases = []
    for row in corpora.questions(name, data):
        for evidence in map(flat, (row["evidence"] or row["answer"])[:2]):
            holders = (number for number, text in enumerate(flat_texts) if evidence in text)
            if evidence and (holder := next(holders, None)) is not None:
                cases.append((row["question"], evidence, f"p{holder:04d}.txt"))
    draw = random.Random(SEED)
    draw.shuffle(cases)
    share, characters = 0.0, 0
    for question, evidence, holder in cases[:QUESTIONS]:
        found = local_search(snapshot, question, max_tokens=3_000).citations
        ids = list(dict.fromkeys([holder, *(citation.uri.rpartition("/")[2] for citation in found)]))
        ids = ids[:DOCUMENTS]
        draw.shuffle(ids)
        text = get_source(snapshot, ids, query=question, max_tokens=tokens).text
        share += shown(evidence, flat(text))
        characters += len(text)
    number = min(len(cases), QUESTIONS)
    return 100 * share / number, characters // number


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--tokens", type=int, default=600)
    arguments = parser.parse_args()
    print("set       evidence shown, %  characters")
    for name in SETS:
        with tempfile.TemporaryDirectory() as folder:
            share, characters = measure(name, arguments.data, arguments.tokens, Path(folder))
        print(f"{name:9} {share:17.1f}  {characters:10}")


if __name__ == "__main__":
    main()
