"""A few text units that stand for a corpus, and excerpts of them that fit into a prompt.

Takes a snapshot and how to choose (random, top or centroid); gives texts, each once, in an order that depends on
content and seed alone. Cuts at sentence ends. Knows no prompt; asks an asker for vectors and for nothing else.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from graphrag_mcp.ask import Asker
from graphrag_mcp.credentials import masked
from graphrag_mcp.errors import BadInput
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text import count_tokens, sentences, stop_word, terms

SELECTIONS = ("random", "top", "centroid")
POOL = 300  # units among which the centroid is looked for; a mean of 300 hardly moves with more
EMBEDDED = 6_000  # characters of a unit that are embedded: a unit of 1,200 tokens has some 5,000
SHORT = 40  # tokens under which an excerpt holds too little to show how names are related


def sample(snapshot: Snapshot, selection: str, limit: int, seed: int, asker: Asker) -> tuple[list[str], str]:
    """Texts of at most `limit` text units, and what was done instead of what was asked for ("" when nothing).

    `random` orders units by a hash of seed and text, so the same content gives the same sample whatever the history;
    `top` takes the first by address and position; `centroid` the nearest to the mean of up to POOL random ones, by
    the embedding model where there is one, else by weighted words.
    """
    if selection not in SELECTIONS:
        raise BadInput(f"selection {selection!r} is unknown", f"Use one of {', '.join(SELECTIONS)}")
    if selection == "top":
        return _top(snapshot, limit), ""
    if selection == "random":
        return _random(snapshot, limit, seed), ""
    pool = _random(snapshot, max(POOL, limit), seed)
    vectors = asker.wait(asker.embed([text[:EMBEDDED] for text in pool])) if asker.embeds else []
    if vectors and None not in vectors:
        nearness = _by_vectors([vector for vector in vectors if vector is not None])
        note = ""
    else:
        nearness = _by_words(pool)
        note = "the centroid was found by words, because not every vector could be had" if vectors else ""
    best = sorted(range(len(pool)), key=lambda at: (-round(nearness[at], 6), at))  # rounded: sums differ by machine
    return [pool[at] for at in best[:limit]], note


def _random(snapshot: Snapshot, limit: int, seed: int) -> list[str]:
    best: dict[str, str] = {}  # hash of seed and text -> id
    for batch in snapshot.batches("text_units", ["id", "text"]):
        for id, text in zip(batch["id"].to_pylist(), batch["text"].to_pylist(), strict=True):
            best[hashlib.sha256(f"{seed}\n{text}".encode("utf-8", "replace")).hexdigest()] = id
        best = dict(sorted(best.items())[:limit])
    return _texts(snapshot, list(best.values()))


def _top(snapshot: Snapshot, limit: int) -> list[str]:
    documents = snapshot.rows("documents", columns=["id", "uri"])
    uri = dict(zip(documents["id"].to_pylist(), documents["uri"].to_pylist(), strict=True))
    units = snapshot.rows("text_units", columns=["document_id", "chunk_index", "id"]).to_pylist()
    order = sorted((uri.get(unit["document_id"], ""), unit["chunk_index"], unit["id"]) for unit in units)
    found: list[str] = []
    for start in range(0, len(order), max(limit, 1)):  # again only where texts repeat
        found = list(dict.fromkeys([*found, *_texts(snapshot, [id for *_, id in order[start : start + limit]])]))
        if len(found) >= limit:
            break
    return found[:limit]


def _texts(snapshot: Snapshot, ids: Sequence[str]) -> list[str]:
    rows = snapshot.verified("text_units", snapshot.by_key("text_units", ids))
    return list(map(masked, rows["text"].to_pylist()))  # no model is shown a key that stands in a text


# ---- nearest the middle ---------------------------------------------------------------------------


def _by_vectors(vectors: Sequence[bytes]) -> list[float]:
    """Cosine of each vector with the mean of all of them."""
    import numpy as np

    rows = np.stack([np.frombuffer(vector, "<f4") for vector in vectors]).astype("f8")
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return (rows @ rows.mean(axis=0)).tolist()


def _by_words(texts: Sequence[str]) -> list[float]:
    """The same with tf-idf over the texts; idf counts them alone, so a name in one text pulls nothing."""
    counts = [Counter(term for term in terms(text) if not stop_word(term)) for text in texts]
    holding = Counter(term for count in counts for term in count)
    rows: list[dict[str, float]] = []
    middle: dict[str, float] = {}
    for count in counts:
        row = {term: (1 + math.log(n)) * math.log(1 + len(texts) / holding[term]) for term, n in count.items()}
        norm = math.sqrt(sum(weight * weight for weight in row.values())) or 1.0
        rows.append({term: weight / norm for term, weight in row.items()})
        for term, weight in rows[-1].items():
            middle[term] = middle.get(term, 0.0) + weight / len(texts)
    return [sum(weight * middle[term] for term, weight in row.items()) for row in rows]


# ---- excerpts -------------------------------------------------------------------------------------


def excerpts(texts: Sequence[str], budget: int) -> list[str]:
    """The beginning of each text, together at most `budget` tokens, shared evenly; what one leaves the next may use.

    Many short pieces rather than few whole ones: what a corpus is about is said by its variety.
    """
    found, left = [], budget
    for at, text in enumerate(texts):
        piece = next(windows(text, left // (len(texts) - at)), "")
        if piece:
            found.append(piece)
            left -= count_tokens(piece)
    return found


def passages(texts: Sequence[str], size: int) -> list[str]:
    """Excerpts of at most `size` tokens: the first of every text, then the second of every text, and so on; those
    too short to show anything come last."""
    rounds = zip_longest(*(windows(text, size) for text in texts), fillvalue="")
    found = list(dict.fromkeys(piece for pieces in rounds for piece in pieces if piece))
    return sorted(found, key=lambda piece: count_tokens(piece) < SHORT)


def windows(text: str, size: int) -> Iterator[str]:
    """`text` cut into pieces of whole sentences of at most `size` tokens; a sentence over that is cut off."""
    start = end = 0
    for first, last in sentences(text):
        if end > start and count_tokens(text[start:last]) > size:
            yield text[start:end]
            start = first
        elif end == start:
            start = first
        end = last
        if count_tokens(text[start:end]) > size:
            if piece := _cut(text[start:end], size):
                yield piece
            start = end
    if end > start:
        yield text[start:end]


def _cut(text: str, size: int) -> str:
    tokens = count_tokens(text)
    while text and tokens > size:
        text = text[: max(0, min(len(text) - 1, len(text) * size // tokens))]
        tokens = count_tokens(text)
    return text.rstrip()
