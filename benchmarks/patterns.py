"""Is every regular expression of the package linear? The long form of tests/test_patterns.py.

    python benchmarks/patterns.py [--sizes 1000 10000 100000]

Forty pumped texts of each pattern's own letters per size, with and without an end that spoils the
match. Prints the patterns whose time grows by more than 15 while the text grows tenfold, and how
many were tried.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from tests.test_patterns import PUMPS, every_pattern, slow


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    sizes = tuple(parser.parse_args().sizes)
    found = {}
    patterns = every_pattern()
    for pattern, anywhere in patterns.values():
        if said := slow(pattern, anywhere, sizes, PUMPS):
            found[pattern.pattern] = said
            print(f"{pattern.pattern[:100]!r}: {said}", flush=True)
    print(f"{len(patterns)} patterns, {len(found)} not linear")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
