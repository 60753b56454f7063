"""How close the built-in token counter is to a real vocabulary, and how often it is under it.

    python benchmarks/counter.py o200k_base.tiktoken [FILE_OR_FOLDER ...]

Takes the vocabulary file of `o200k_base` (many packages carry it; nothing is downloaded here) and
texts, by default the evaluation sets. Needs tiktoken. Counts
whole files, and cuts of them.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from benchmarks.corpora import DATA
from graphrag_mcp.text.tokens import count_tokens

CUTS = ((100, 300), (400, 300), (2000, 300), (8000, 80))  # characters, how many
LETTERS = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}", r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
ENDING = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
# How o200k_base divides a text before it looks words up, as its publisher gives it.
PATTERN = "|".join(
    [
        rf"[^\r\n\p{{L}}\p{{N}}]?[{LETTERS[0]}]*[{LETTERS[1]}]+{ENDING}",
        rf"[^\r\n\p{{L}}\p{{N}}]?[{LETTERS[0]}]+[{LETTERS[1]}]*{ENDING}",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)


def vocabulary(path: Path) -> Any:
    """A tiktoken encoding of a file with a token, in base64, and its rank on each line."""
    import tiktoken

    lines = (line.split() for line in path.read_bytes().splitlines())
    ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
    return tiktoken.Encoding("o200k_base", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={})


def texts(path: Path) -> Iterator[str]:
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file():
            with contextlib.suppress(UnicodeDecodeError):
                yield file.read_text("utf-8")


def compared(real: Any, found: list[str], seed: int = 1) -> dict[str, Any]:
    """`ratio`: our count over the real one; per length of cuts, the share in % that is under, and
    the worst of all.
    """
    ours, true, some = (sum(map(count_tokens, found)), sum(len(real.encode_ordinary(text)) for text in found), {})
    for size, times in CUTS:
        chance, ratios = random.Random(seed), []
        for _ in range(times):
            text = chance.choice(found)
            start = chance.randrange(max(1, len(text) - size))
            if cut := text[start : start + size].strip():
                ratios.append(count_tokens(cut) / len(real.encode_ordinary(cut)))
        some[size] = (round(100 * sum(one < 1 for one in ratios) / len(ratios), 1), round(min(ratios), 2))
    return {"tokens": true, "ratio": round(ours / true, 3), "cuts": some}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("vocabulary", type=Path)
    parser.add_argument("paths", type=Path, nargs="*")
    given = parser.parse_args()
    real = vocabulary(given.vocabulary)
    print("| texts | tokens | counted / real |" + "".join(f" {size}: % under, worst |" for size, _ in CUTS))
    print("|---" * (3 + len(CUTS)) + "|")
    for path in given.paths or sorted(DATA.glob("*/corpus.jsonl")):
        told = compared(real, list(texts(path)))
        cuts = "".join(f" {under}, {worst} |" for under, worst in told["cuts"].values())
        print(f"| {path.parent.name}/{path.name} | {told['tokens']} | {told['ratio']} |{cuts}", flush=True)


if __name__ == "__main__":
    main()
