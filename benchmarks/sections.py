"""Do global_search and list_documents find articles of the section that a question is about?

    python benchmarks/sections.py [--set bbc_news] [--tokens 4000]

Indexes a labelled set of ../shared/data without a model and asks 21 questions on the whole of it,
lists of things and sentences. Prints for each, of global_search and of list_documents: characters,
documents, and how many of them have the label of the section.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.corpora import documents, write_out
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query.documents import list_documents
from graphrag_mcp.query.global_ import global_search
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest

QUESTIONS = [
    ("tech", "What dangers do internet users face: worms, hackers, identity theft, scams?"),
    ("tech", "virus, spyware, phishing, spam"),
    ("tech", "How did video games and consoles change: sales, new devices, online play?"),
    ("tech", "Which new gadgets and devices are described?"),
    ("business", "How did currencies, oil and interest rates develop?"),
    ("business", "takeovers, mergers, acquisitions, bids"),
    ("business", "unemployment, exports, inflation, consumer spending"),
    ("business", "Which companies had losses or went bankrupt?"),
    ("sport", "injuries, bans, doping, suspensions"),
    ("sport", "Which managers and coaches changed clubs?"),
    ("sport", "rugby, tennis, athletics: who won"),
    ("politics", "immigration, asylum, identity cards, terror laws"),
    ("politics", "taxes and public spending promises of the parties"),
    ("politics", "resignations and scandals of ministers"),
    ("entertainment", "box office, album charts, television ratings"),
    ("entertainment", "Which awards were given to films, actors and singers?"),
    ("entertainment", "festivals, tours and concerts"),
    ("tech", "Which threats to computer users are described, and what is advised against each?"),
    ("politics", "What happened in domestic politics over the time covered: issues, people, deciding events?"),
    ("business", "Where do articles disagree about the state of the economy?"),
    ("sport", "Which sporting rivalries run through the collection, and how did they stand at the end?"),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", default="bbc_news")
    parser.add_argument("--tokens", type=int, default=4_000)
    options = parser.parse_args()
    label = {row["id"]: row["label"] for row in documents(options.set)}
    totals = [0] * 6
    with tempfile.TemporaryDirectory() as scratch:
        folder, files = (Path(scratch) / "corpora" / "sections", write_out(options.set, Path(scratch)))
        index_documents(folder, IndexRequest(paths=(str(files),)), Settings(home=Path(scratch)))
        snapshot = open_snapshot(folder)
        uris = {row["id"]: row["uri"] for row in snapshot.rows("documents").to_pylist()}
        units = snapshot.rows("text_units", columns=["n", "document_id"]).to_pylist()
        names = {row["n"]: Path(uris[row["document_id"]]).stem for row in units}
        for section, question in QUESTIONS:
            found = global_search(snapshot, question, max_tokens=options.tokens)
            cited = {Path(one.uri).stem for one in found.citations}
            listed = list_documents(snapshot, query=question, max_tokens=options.tokens)
            numbers = map(int, re.findall(r"^- \[t(\d+)", listed.text, re.MULTILINE))
            lines = {names[number] for number in numbers}
            counts = [
                count
                for text, ids in ((found.text, cited), (listed.text, lines))
                for count in (len(text), len(ids), sum(label[id] == section for id in ids))
            ]
            totals = [total + count for total, count in zip(totals, counts, strict=True)]
            print(*(f"{count:6}" for count in counts), f"{section:14} {question[:80]}")
    print("characters, documents, of the section, twice:", totals)


if __name__ == "__main__":
    main()
