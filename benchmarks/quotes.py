"""Does the best sentence of the right document hold what answers a question?

    python benchmarks/quotes.py [--data ../shared/data]

For each question of the labelled sets and each of its gold documents: is one of the first one, three
sentences that `text/quote.py` picks the evidence, or does it hold the answer? Long documents are read
around their evidence (4,000 characters). Prints the share of questions, and that of picking by the share
of terms alone.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from graphrag_mcp.text import quote
from graphrag_mcp.text.prose import sentences
from graphrag_mcp.text.terms import query_terms, terms

SETS = ("hotpot_train100", "chroma", "cmrc_zh")
AROUND = 2_000  # characters before and behind the evidence in a long document


def flat(text: str) -> str:
    return "".join(ch for ch in text.lower() if ch.isalnum())


def held(evidence: str, sentence: str) -> bool:
    """Does the sentence hold the evidence, or is it most of it?"""
    wanted, said = flat(evidence), flat(sentence)
    return wanted in said or (said in wanted and 3 * len(said) > len(wanted))


def cases(folder: Path) -> list[tuple[str, str, list[str]]]:
    """(question, text, evidence) of each gold document that holds any."""
    rows = [json.loads(line) for line in (folder / "corpus.jsonl").open(encoding="utf-8")]
    texts = {row["id"]: row["text"] for row in rows}
    found = []
    for line in (folder / "queries.jsonl").open(encoding="utf-8"):
        row = json.loads(line)
        for id in row["gold"]:
            text = texts[id]
            evidence = [one for one in row["evidence"] or row["answer"] if one in text]
            if evidence and len(text) > 3 * AROUND:
                at = text.index(evidence[0])
                text = text[max(at - AROUND, 0) : at + AROUND]
            if evidence:
                found.append((row["question"], text, evidence))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    folder = parser.parse_args().data
    print("set              questions  first  first three  share of terms alone")
    for name in SETS:
        rows = cases(folder / name)
        texts = list(dict.fromkeys(text for _, text, _ in rows))
        number = Counter(term for text in texts for term in set(terms(text)))
        counts = [0, 0, 0]
        for question, text, evidence in rows:
            worth = {t: math.log(1 + len(texts) / (number[t] + 0.5)) for t in query_terms(question)}
            picked = quote.quotes(text, worth, 3)
            spans = [text[start:end] for start, end in sentences(text)]
            alone = max(spans, key=lambda s: sum(worth.get(t, 0) for t in set(terms(s))))
            ways = ([one.text for one in picked[:1]], [one.text for one in picked], [alone])
            for at, said in enumerate(ways):
                counts[at] += any(held(one, sentence) for one in evidence for sentence in said)
        shares = (f"{100 * count / len(rows):5.1f}" for count in counts)
        print(f"{name:16} {len(rows):9}  " + "        ".join(shares))


if __name__ == "__main__":
    main()
