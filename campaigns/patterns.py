"""Is every regular expression of the package linear? The long form of tests/project/test_patterns.py, with
a clock.

    python campaigns/patterns.py [--sizes 1000 10000 100000]

Forty pumped texts of each pattern's own letters per size, with and without an end that spoils the
match, timed with the sizes. Prints the patterns whose time grows by more than 15 while the text
grows tenfold, and how many were tried. What is timed can be disturbed by other programs:
the best of the long texts counts, and the worst of the short ones.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tests.project.test_patterns import PUMPS, every_pattern, pumped

RATIO = 15.0  # of the times of two sizes ten apart; a quadratic pattern has 100
# Seconds below which a time is noise: a quadratic pattern takes far more at 10,000 characters.
FLOOR = 0.003


def seconds(pattern: re.Pattern[str], text: str, anywhere: bool = True) -> float:
    began = time.thread_time()
    at = 0
    for _ in range(4 if anywhere else 1):  # as finditer does, with what comes after a match
        match = pattern.search(text, at) if anywhere else pattern.match(text)
        if match is None:
            break
        at = max(match.end(), at + 1)
    return time.thread_time() - began


def slow(pattern: re.Pattern[str], anywhere: bool, sizes: tuple[int, ...]) -> str:
    """What makes this pattern more than linear; "" for nothing that was tried."""
    for piece in pumped(pattern)[:PUMPS]:
        for end in ("", "\x01"):
            taken = 0.0
            for size in sizes:
                text = (piece * (size // len(piece) + 1))[:size] + end
                before, taken = taken, seconds(pattern, text, anywhere)
                if before and taken > FLOOR and taken > RATIO * max(before, FLOOR / 10):
                    again = min(seconds(pattern, text, anywhere) for _ in range(3))
                    short = (piece * (size // 10 // len(piece) + 1))[: size // 10] + end
                    before = max(before, *(seconds(pattern, short, anywhere) for _ in range(3)))
                    if again > FLOOR and again > RATIO * max(before, FLOOR / 10):
                        return f"{piece!r} * {size}: {before * 1000:.1f} ms -> {again * 1000:.1f} ms"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    sizes = tuple(parser.parse_args().sizes)
    found = {}
    patterns = every_pattern()
    for pattern, anywhere in patterns.values():
        if said := slow(pattern, anywhere, sizes):
            found[pattern.pattern] = said
            print(f"{pattern.pattern[:100]!r}: {said}", flush=True)
    print(f"{len(patterns)} patterns, {len(found)} not linear")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
