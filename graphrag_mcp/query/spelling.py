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
# They are replaced by the nearest words of the corpus. Another ending is what is left behind a long common
# beginning (Koivulassa, Koivula). A slip is one letter more, less, other or exchanged with its neighbour, or a hyphen.
# With beginnings of 4 letters and slips in words of 6, `refuse` was read as `refuel` and `firing` as `filing`.

UNKNOWN, NEAREST = 6, 3  # words that are replaced; words that replace one
LETTERS, SLIP_LETTERS = (4, 7)  # of a word that is replaced; of one with a slip, two fewer where letters are exchanged
COMMON, COMMON_SHARE = 5, 2 / 3  # letters of a common beginning; share of the longer word
ENDING, ADDED = 5, 3  # letters of the longest ending of the question's word, and of the other
_PLAIN_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+){0,2}")


def nearest(snapshot: Snapshot, unknown: Collection[str], known: Collection[str]) -> dict[str, list[tuple[str, int]]]:
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
    found = {term: [form for form in forms if form in counts] for term, forms in particles.items()}
    found |= {term: nearest_words(term, counts) for term in replaceable}
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
    slips: list[str] = []
    endings: list[tuple[int, str]] = []
    starts, lengths = _starts(term), range(len(term) - ENDING, len(term) + ADDED + 1)
    near = [word for word in words if word.startswith(starts) and len(word) in lengths]
    for other in near:  # large corpora hold thousands of words with one beginning
        if stop_word(other) or not _PLAIN_WORD.fullmatch(other):
            continue
        shared = len(commonprefix((term, other)))
        if "-" in term + other:
            if other.replace("-", "") == term.replace("-", ""):
                slips.append(other)
        elif _is_ending(term, other, shared):
            endings.append((-shared, other))
        elif _is_slip(term, other):
            slips.append(other)
    most = min(endings, default=(0, ""))[0]
    same = [other for shared, other in sorted(endings) if shared == most]
    return [*sorted(slips), *same][:NEAREST]


def _is_ending(term: str, other: str, shared: int) -> bool:
    """Do two words differ in what is behind their common beginning?"""
    least = max(COMMON, COMMON_SHARE * max(len(term), len(other)))
    return shared >= least and len(term) - shared <= ENDING and len(other) - shared <= ADDED


def _is_slip(term: str, other: str) -> bool:
    """Is one letter more, less or other, or are two neighbours exchanged, in words that are long enough?"""
    from rapidfuzz.distance import OSA

    least = SLIP_LETTERS - 2 if sorted(term) == sorted(other) else SLIP_LETTERS
    return max(len(term), len(other)) >= least and OSA.distance(term, other, score_cutoff=1) == 1


# ---- names ---------------------------------------------------------------------------------------

LIKE = 0.6  # likeness from which a name counts as near
ALIKE = 30  # names that are looked at
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
    """Entities whose names look most like `name`, as {id, n, key, title, type, degree}, best first: by likeness
    (insert, delete, change, swap neighbours) of the whole names or of the name and one word of another ("Tobais" is
    near Tobias Fenn); then those that share a word."""
    key = normalise_name(name[:200])
    if not key:
        return []
    columns = ["id", "n", "key", "title", "type", "degree"]
    spelled = _spelled(snapshot)
    alike = {spelled.ids[at]: share for at, share in _alike(key, spelled.keys)}
    for word, share in _alike(key, spelled.words) if " " not in key else ():
        alike.setdefault(spelled.ids[spelled.places[word]], share)
    rows = snapshot.by_key("entities", list(alike), "id", columns).to_pylist()
    rows += snapshot.full_text("entities", terms(key)[:16], ALIKE, columns).to_pylist()
    found = {row["id"]: row for row in rows}
    likeness = {id: round(alike.get(id, 0.0), 6) for id in found}
    order = sorted(found.values(), key=lambda row: (-likeness[row["id"]], -row["degree"], row["id"]))
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
        (spelled.ids[at], share) for at, share in _alike(key, spelled.keys) if _slipped(words, spelled.keys[at].split())
    ]
    return [id for id, share in near if share == near[0][1] < 1][:NEAREST]


def _slipped(words: Sequence[str], others: Sequence[str]) -> bool:
    """Are these the same words, but for a slip in some? Numbers and initials have none."""
    from rapidfuzz.distance import OSA

    def same(word: str, other: str) -> bool:
        if word == other:
            return True
        short = min(len(word), len(other)) < SLIPPED
        return not short and f"{word}{other}".isalpha() and OSA.distance(word, other) == 1

    return len(words) == len(others) and all(map(same, words, others))


def _alike(name: str, names: Sequence[str]) -> list[tuple[int, float]]:
    """The places of the names that are written most like this one, with their likeness from LIKE to 1."""
    from rapidfuzz.distance import OSA
    from rapidfuzz.process import extract

    found = extract(name, names, scorer=OSA.normalized_similarity, score_cutoff=LIKE, limit=ALIKE)
    return [(at, share) for _, share, at in found]


@once
def _spelled(snapshot: Snapshot) -> Names:
    """Read once a generation, since a question of which nothing is known looks for several names."""
    rows = snapshot.rows("entities", "", ["id", "key"]).sort_by("key")
    keys = values_of(rows["key"])
    words = [(word, at) for at, key in enumerate(keys) if " " in key for word in key.split()]
    places = array("I", (at for _, at in words))
    return Names(values_of(rows["id"]), keys, [word for word, _ in words], places)
