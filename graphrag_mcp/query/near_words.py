"""Words of a question that stand nowhere, and the words of the corpus that may be meant: other endings, slips.

Takes a snapshot and terms that no passage holds; gives, for each, the nearest words that some passage holds. Knows no
language: endings are what is left behind a long common beginning (Koivulassa, Koivula), a slip is one letter more,
less, other or exchanged with its neighbour. What is found counts less than the word itself, and callers say so.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from graphrag_mcp.query.ranking import Weights, is_stem, rarity
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text import is_cjk, stop_word

WORDS = 6  # of a question that are looked for
NEAREST = 3  # words of the corpus for one of them
# Shorter words are near to too many: with beginnings of 4 letters and slips in words of 6, `refuse` was read as
# `refuel` and `firing` as `filing`, which cost 0.4 points of the evidence in long English text.
LETTERS, SLIP_LETTERS = 5, 7  # fewest of a word that is looked for; of the longer one where one letter is another
COMMON = 5, 2 / 3  # beginning that words with other endings share: letters, and of the longer one
ENDING, ADDED = 5, 3  # longest ending of the question's word, and of the other
_WORD = re.compile(r"[^\W\d_]+")


def add(snapshot: Snapshot, worth: dict[str, float], wanted: Sequence[str], weights: Weights) -> dict[str, list[str]]:
    """Add the nearest words to the terms of a question, each at its share of what it is worth; gives what was added.

    `wanted` are all terms of the question. Stems are not looked for: so short, they are near to too much.
    """
    total = snapshot.manifest.counters.get("passages", 0)
    pairs = zip(wanted, ["", *wanted], strict=False)
    unknown = [term for term, before in pairs if term not in worth and not is_stem(term, before)]
    found = nearest(snapshot, unknown, worth)
    for near in found.values():
        for term, passages in near:
            worth.setdefault(term, weights.near * rarity(total, passages))
    return {term: [other for other, _ in near] for term, near in found.items()}


def nearest(snapshot: Snapshot, unknown: Iterable[str], known: Collection[str]) -> dict[str, list[tuple[str, int]]]:
    """{unknown term: [(term, passages that hold it), ...]}, nearest first; without terms that have nothing near.

    `known` are the terms of the question that do occur: who has one form of a word needs no other.
    """
    wanted = [term for term in dict.fromkeys(unknown) if _worth_a_look(term, known)][:WORDS]
    if not wanted:
        return {}
    starts = dict.fromkeys(term[:2] for term in wanted)
    ranges = " OR ".join(f"(term >= '{start}' AND term < '{start}\uffff')" for start in starts)
    rows = snapshot.rows("terms", ranges, ["term", "passages"])
    held = [row for row in zip(*(rows[name].to_pylist() for name in ("term", "passages")), strict=True) if row[1] > 0]
    found = {term: _nearest(term, held) for term in wanted}
    return {term: near for term, near in found.items() if near}


def _worth_a_look(term: str, known: Collection[str]) -> bool:
    if len(term) < LETTERS or not _WORD.fullmatch(term) or is_cjk(term[0]) or is_cjk(term[-1]):
        return False
    return not any(len(one) > 2 and (term.startswith(one) or one.startswith(term)) for one in known)


def _nearest(term: str, held: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    endings: list[tuple[int, int, str, int]] = []
    slips: list[tuple[str, int]] = []
    for other, passages in held:
        if not other.startswith(term[:2]) or stop_word(other) or not _WORD.fullmatch(other):
            continue
        shared = _shared(term, other)
        if _another_ending(len(term), len(other), shared):
            endings.append((-shared, len(other), other, passages))
        elif _one_slip(term, other, shared):
            slips.append((other, passages))
    most = min(endings, default=(0,))[0]
    same = [(other, passages) for shared, _, other, passages in sorted(endings) if shared == most]
    return [*sorted(slips), *same][:NEAREST]


def _another_ending(length: int, other: int, shared: int) -> bool:
    if shared < COMMON[0] or shared < COMMON[1] * max(length, other):
        return False
    return length - shared <= ENDING and other - shared <= ADDED


def _one_slip(term: str, other: str, shared: int) -> bool:
    """Are these the same but for one letter, or for two neighbours exchanged, behind the first `shared`?"""
    a, b = term[shared:], other[shared:]
    if a[:2] == b[1::-1] and a[2:] == b[2:] and len(a) > 1:
        return True
    return max(len(term), len(other)) >= SLIP_LETTERS and (a[1:] == b[1:] or a[1:] == b or a == b[1:])


def _shared(a: str, b: str) -> int:
    """Letters that both begin with."""
    most = min(len(a), len(b))
    return next((at for at in range(most) if a[at] != b[at]), most)
