"""The words and the names of the corpus that are written like those of a question, without knowing a
language: another ending, a slip of the pen, a hyphen."""

from __future__ import annotations

import re
from array import array
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from os.path import commonprefix
from typing import Any

from graphrag_mcp.names.cjk import other_particles
from graphrag_mcp.store.tables import Snapshot, once, rows_of, values_of
from graphrag_mcp.text.terms import is_cjk, normalise_name, stop_word, terms

Row = dict[str, Any]

# ---- words ---------------------------------------------------------------------------------------
# They are replaced by the nearest words of the corpus, without knowing a language. Another ending
# is what is left behind a long common beginning (Koivulassa, Koivula). A slip is one letter more,
# less, other or exchanged with its neighbour, or a hyphen. With beginnings of 4 letters and slips in
# words of 6, `refuse` was read as `refuel` and `firing` as `filing`.

UNKNOWN, NEAREST = 6, 3  # words that are replaced; words that replace one
LETTERS, EXCHANGED, SLIP_LETTERS = 4, 5, 7  # of a word; of one with letters exchanged; with others
COMMON, COMMON_SHARE = 5, 2 / 3  # letters of a common beginning; share of the longer word
ENDING, ADDED = 5, 3  # letters of the longest ending of the question's word, and of the other
_PLAIN_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+){0,2}")


def nearest(
    snapshot: Snapshot, unknown: Collection[str], known: Collection[str]
) -> dict[str, list[tuple[str, int]]]:
    """For each unknown term of the question the similar terms of the corpus, nearest first:
    {unknown term: [(term, number of passages), ...]}. Terms without a similar term are missing.
    `known` are the terms of the question that the corpus contains: a question that has one form
    of a word needs no other form."""
    replaceable = [term for term in dict.fromkeys(unknown) if _replaceable(term, known)][:UNKNOWN]
    # Korean words of one syllable are tried with other particles; no ends of longer words.
    longer = [term for term in unknown if len(term) > 2]
    short = (term for term in unknown if len(term) == 2)
    whole = [term for term in short if not any(term in word for word in longer)]
    particles = {term: other_particles(term) for term in whole[:UNKNOWN]}
    starts = sorted({start for term in replaceable for start in _starts(term)})
    where = [f"(term >= '{start}' AND term < '{start}\uffff')" for start in starts]
    where += [f"term IN ('{form}')" for forms in particles.values() for form in forms]
    if not where:
        return {}
    rows = snapshot.rows("terms", " OR ".join(where), ["term", "passages"])
    counts = {term: count for term, count in rows_of(rows) if count > 0}
    found = {
        term: [form for form in forms if form in counts] for term, forms in particles.items()
    } | {term: nearest_words(term, counts) for term in replaceable}
    return {term: [(form, counts[form]) for form in near] for term, near in found.items() if near}


def _replaceable(term: str, known: Collection[str]) -> bool:
    plain = len(term) >= LETTERS and _PLAIN_WORD.fullmatch(term)
    if not plain or is_cjk(term[0]) or is_cjk(term[-1]):
        return False
    longer = (word for word in known if len(word) > 2)
    return "-" in term or not any(term.startswith(word) or word.startswith(term) for word in longer)


def _starts(term: str) -> tuple[str, ...]:
    """What every word begins with that can be near."""
    return term[:2], term[0] + "-", term.replace("-", "")[:2]


def nearest_words(term: str, words: Iterable[str]) -> list[str]:
    """The words with a slip, then those with another ending and the longest common beginning."""
    from rapidfuzz.distance import OSA

    slips: list[str] = []
    endings: list[tuple[int, str]] = []
    joined, starts = term.replace("-", ""), _starts(term)
    shortest, longest = len(term) - ENDING, len(term) + ADDED
    near = [word for word in words if word.startswith(starts) and shortest <= len(word) <= longest]
    for other in near:  # large corpora hold thousands of words with one beginning
        if stop_word(other) or not _PLAIN_WORD.fullmatch(other):
            continue
        if "-" in term + other:
            if other.replace("-", "") == joined:
                slips.append(other)
            continue
        shared = len(commonprefix((term, other)))
        longer = max(len(term), len(other))
        rest, added = len(term) - shared, len(other) - shared
        if shared >= max(COMMON, COMMON_SHARE * longer) and rest <= ENDING and added <= ADDED:
            endings.append((-shared, other))
        elif abs(len(term) - len(other)) < 2 and OSA.distance(term, other, score_cutoff=1) == 1:
            exchanged = sorted(term) == sorted(other)
            if longer >= (EXCHANGED if exchanged else SLIP_LETTERS):
                slips.append(other)
    most = min(endings, default=(0, ""))[0]
    same = [other for shared, other in sorted(endings) if shared == most]
    return [*sorted(slips), *same][:NEAREST]


# ---- names ---------------------------------------------------------------------------------------

LIKE = 0.6  # likeness from which a name counts as near; words in common without it count 0.5
SLIPPED = 3  # letters of a word of a name from which it may hold a slip


@dataclass(frozen=True, slots=True)
class Names:
    """The names of all entities: content ids and keys, the words of names with several, and for each
    word the place of its name."""

    ids: Sequence[str]
    keys: Sequence[str]
    words: Sequence[str]
    places: Sequence[int]


def nearest_names(snapshot: Snapshot, name: str, count: int = 5) -> list[Row]:
    """Entities whose names look most like `name`, as {id, n, key, title, type, degree}, best first.
    Likeness is optimal string alignment (insert, delete, change, swap neighbours) of the whole
    names or, a little less, of the name and one word of another ("Tobais" is near Tobias Fenn)."""
    key = normalise_name(name[:200])
    if not key:
        return []
    columns = ["id", "n", "key", "title", "type", "degree"]
    spelled = _spelled(snapshot)
    alike = {spelled.ids[at]: share for at, share in _alike(key, spelled.keys, 30)}
    for word, share in _alike(key, spelled.words, 60) if " " not in key else ():
        id = spelled.ids[spelled.places[word]]
        alike[id] = max(alike.get(id, 0.0), share - 0.1)
    best = sorted(alike, key=lambda id: (-round(alike[id], 6), id))[:60]
    rows = {row["id"]: row for row in snapshot.by_key("entities", best, "id", columns).to_pylist()}
    by_words = snapshot.full_text("entities", terms(key)[:16], 20, columns)
    rows |= {row["id"]: row for row in by_words.to_pylist()}
    likeness = {id: round(alike.get(id, LIKE - 0.1), 6) for id in rows}
    order = sorted(rows.values(), key=lambda row: (-likeness[row["id"]], -row["degree"], row["id"]))
    return order[:count]


def with_slips(snapshot: Snapshot, key: str) -> list[str]:
    """Content ids of the entities whose names have the words of `key`, with at most one slip in each word:
    the most alike ones, NEAREST at most; none where an entity has this very name.

    Of 1,268 names of two words with a slip in one or both, in three collections, each is read as the name that
    is meant, and none of 2,524 names of other collections as a name of this one. With a likeness of 0.8
    instead, 27 are missed and 24 are read as others."""
    spelled = _spelled(snapshot)
    words = key.split()
    near = [
        (spelled.ids[at], share)
        for at, share in _alike(key, spelled.keys, 30)
        if _slipped(words, spelled.keys[at].split())
    ]
    return [id for id, share in near if share == near[0][1] < 1][:NEAREST]


def _slipped(words: Sequence[str], others: Sequence[str]) -> bool:
    """Are these the same words, but for a slip in some? Numbers and initials have none."""
    from rapidfuzz.distance import OSA

    return len(words) == len(others) and all(
        word == other
        or (
            min(len(word), len(other)) >= SLIPPED
            and OSA.distance(word, other) == 1
            and f"{word}{other}".isalpha()
        )
        for word, other in zip(words, others, strict=True)
    )


def _alike(name: str, names: Sequence[str], count: int) -> list[tuple[int, float]]:
    """The places of the names that are written most like this one, with their likeness from LIKE to 1."""
    from rapidfuzz.distance import OSA
    from rapidfuzz.process import extract

    found = extract(name, names, scorer=OSA.normalized_similarity, score_cutoff=LIKE, limit=count)
    return [(at, share) for _, share, at in found]


@once
def _spelled(snapshot: Snapshot) -> Names:
    """Read once a generation, since a question of which nothing is known looks for six names."""
    rows = snapshot.rows("entities", "", ["id", "key"]).sort_by("key")
    keys = values_of(rows["key"])
    words = [(word, at) for at, key in enumerate(keys) if " " in key for word in key.split()]
    places = array("I", (at for _, at in words))
    return Names(values_of(rows["id"]), keys, [word for word, _ in words], places)
