"""A fixed piece of work, by which figures of different machines can be compared.

It tokenises texts, counts their words in each and in all, and writes text, words and counts as
Parquet, with the standard library and pyarrow. It never changes: an index that takes twice its CPU
on one machine takes about twice its CPU on another."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

WORD = re.compile(r"[^\W_]+")
ROUNDS = 5  # one takes 0.2 s for 2,884 passages, too little to be measured


def once(texts: Sequence[str], file: Path) -> None:
    """Tokenise, count and write the texts."""
    words = [WORD.findall(text.casefold()) for text in texts]
    held = Counter(word for found in words for word in set(found))
    rows = [sorted(Counter(found).items()) for found in words]
    terms = [[word for word, _ in row if held[word] > 1] for row in rows]
    counts = [[n for word, n in row if held[word] > 1] for row in rows]
    columns = {"text": pa.array(texts), "terms": pa.array(terms), "counts": pa.array(counts)}
    pq.write_table(pa.table(columns), file, compression="zstd")


def seconds(texts: Sequence[str], folder: Path) -> float:
    """CPU seconds of one round, the mean of ROUNDS."""
    before = time.process_time()
    for number in range(ROUNDS):
        once(texts, folder / f"{number}.parquet")
    return (time.process_time() - before) / ROUNDS
