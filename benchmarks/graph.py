"""Do communities follow the topics of a labelled collection, and do they hold all of it?

    python benchmarks/graph.py [--set bbc_news] [--index FOLDER]

Indexes a set of ../shared/data without a model (or looks at an index of it that is there). A
document goes to the community that holds most of its text units, and, so that an export says the
same, to the one that holds most of its entities. Prints for each level: communities in use,
documents held, NMI (normalised mutual information, arithmetic mean) and purity against the labels.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.corpora import DATA, write_out
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.index.tree import stored_tree
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.types import IndexRequest


def nmi(one: Sequence[str], other: Sequence[str]) -> float:
    n, left, right = len(one), Counter(one), Counter(other)
    shared = sum(
        count / n * math.log(count * n / (left[a] * right[b]))
        for (a, b), count in Counter(zip(one, other, strict=True)).items()
    )
    entropies = [-sum(count / n * math.log(count / n) for count in each.values()) for each in (left, right)]
    return shared / (sum(entropies) / 2 or 1)


def purity(groups: Sequence[str], labels: Sequence[str]) -> float:
    held: dict[str, Counter[str]] = defaultdict(Counter)
    for group, label in zip(groups, labels, strict=True):
        held[group][label] += 1
    return sum(max(counts.values()) for counts in held.values()) / (len(groups) or 1)


def homes(units: Sequence[tuple[str, str]], of: Mapping[str, Sequence[str]], level: int) -> dict[str, str]:
    """Document -> the community of most of its votes; `units` are (what votes, document)."""
    votes: dict[str, Counter[str]] = defaultdict(Counter)
    for voter, document in units:
        path = of.get(voter, ())
        if path:
            votes[document][path[min(level, len(path) - 1)]] += 1
    return {document: counts.most_common(1)[0][0] for document, counts in votes.items()}


def measure(snapshot: Snapshot, labels: Mapping[str, str]) -> None:
    tree = stored_tree(snapshot)
    rows = snapshot.rows("documents", columns=["id", "uri"]).to_pylist()
    name = {row["id"]: Path(row["uri"]).stem for row in rows}
    units = snapshot.rows("text_units", columns=["id", "document_id"]).to_pylist()
    document = {row["id"]: row["document_id"] for row in units}
    entities = snapshot.rows("entities", columns=["id", "text_unit_ids"]).to_pylist()
    named = [(row["id"], document[unit]) for row in entities for unit in row["text_unit_ids"]]
    tops = [one for one in tree.communities.values() if not one.parent]
    sizes = sorted((len(one.units) for one in tops), reverse=True)
    print(f"{len(rows)} documents, {len(tree.communities)} communities, {len(tops)} at the top")
    print(f"text units of the top communities: {', '.join(map(str, sizes))}")
    for level in sorted({one.level for one in tree.communities.values()}):
        for how, votes in (("text units", list(document.items())), ("entities", named)):
            found = homes(votes, tree.path, level)
            placed = [id for id in found if name[id] in labels]
            groups, wanted = [found[id] for id in placed], [labels[name[id]] for id in placed]
            print(
                f"level {level} by {how}: {len(set(groups))} communities in use, {len(found)} "
                f"of {len(rows)} documents, NMI {nmi(groups, wanted):.3f}, "
                f"purity {purity(groups, wanted):.3f}"
            )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--set", default="bbc_news", help="a labelled set of ../shared/data")
    parser.add_argument("--index", help="an index of that set, instead of making one")
    options = parser.parse_args()
    lines = (DATA / options.set / "corpus.jsonl").read_text("utf-8").splitlines()
    labels = {str(row["id"]): row["label"] for row in map(json.loads, lines)}
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(options.index or Path(folder) / "index")
        if not options.index:
            documents = write_out(options.set, Path(folder))
            index_documents(corpus, IndexRequest((str(documents),)), Settings())
        measure(open_snapshot(corpus), labels)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
