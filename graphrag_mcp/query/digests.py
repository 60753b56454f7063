"""Digests: the sentences of a text, or of several documents, that say most.

A sentence says much if its words are rare in the corpus and come back in the text, and more if it
says what a speaker did or plans."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.query import passages, times
from graphrag_mcp.query.passages import Hit, Line
from graphrag_mcp.query.question import term_worth
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.prose import says_something, sentences, telling
from graphrag_mcp.text.terms import terms

SENTENCE = 140  # characters of a sentence where a document has only one
LENGTH = 8  # words by which short sentences count as longer ones
SHORT = 40  # characters in which no sentence fits
READ = 60  # passages of which several documents are told

_STAGE = re.compile(r"(?<=[.!?…\"'])\s*\[[^\[\]\n]{8,300}\]\Z")  # [shares a photo of a dog]


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence with its value and its place among those of its text."""

    value: float
    place: int
    text: str


def ranked(snapshot: Snapshot, texts: Sequence[str], titles: Sequence[str]) -> list[list[Said]]:
    """Of each text the sentences that say something, best first. `titles` are no such sentences."""
    own = {title.casefold() for title in titles}
    every: list[list[str]] = []
    for text in texts:
        spans = ((start, text[start:end].strip()) for start, end in sentences(text))
        said = [_STAGE.sub("", passages.with_speaker(text, start, one)) for start, one in spans]
        said = [one for one in said if one.strip("# *").casefold() not in own]
        every.append(list(filter(says_something, said)))
    # in their order, by which a stem belongs to its form
    words = [[dict.fromkeys(terms(one)) for one in said] for said in every]
    counts = [Counter(term for some in held for term in some) for held in words]
    wanted = list(dict.fromkeys(term for counter in counts for term in counter))
    worth, _ = term_worth(snapshot, wanted)

    def value(said: str, held: dict[str, None], place: int, counter: Counter[str]) -> float:
        weight = math.fsum(worth.get(term, 0.0) * math.log1p(counter[term]) for term in held)
        return (1 + 1 / (2 + place)) * telling(said) * weight / (len(held) + LENGTH) ** 0.3

    found = []
    for said, held, counter in zip(every, words, counts, strict=True):
        listed = enumerate(zip(said, held, strict=True))
        some = [Said(value(one, own, at, counter), at, one) for at, (one, own) in listed]
        found.append(sorted(some, key=lambda one: (-one.value, one.place)))
    return found


def digest(snapshot: Snapshot, text: str, title: str, room: int, forms: Sequence[str] = ()) -> str:
    """The sentences of a text that say most, in its order, at most `room` characters. `forms`: only
    sentences with one of them, where there are any."""
    (every,) = ranked(snapshot, [text], [title])
    every = [one for one in every if any(form in one.text for form in forms)] or every
    chosen: list[Said] = []
    for one in every:
        if chosen and len(one.text) > room:
            continue
        chosen.append(one)
        room -= len(one.text) + 2
        if room < SHORT:
            break
    chosen.sort(key=lambda one: one.place)
    said = [one_line(one.text, SENTENCE + max(room, 0)) for one in chosen]
    return " … ".join(said) if said else one_line(text, SENTENCE)


def of_documents(snapshot: Snapshot, ids: Sequence[str], most: int, corpus: str = "") -> list[Line]:
    """The sentences that say most of several documents (content ids), at most `most`, spread over
    their time or else their order, none of a passage twice."""
    facts = times.documents(snapshot)
    rows = snapshot.by_key("passages", list(ids), "document_id", ["id", "document_id", "position"])

    def place(row: dict[str, Any]) -> tuple[str, str, int]:
        fact = facts[row["document_id"]]
        return fact["moment"] or "9999", fact["uri"], row["position"]

    order = sorted(rows.to_pylist(), key=place)
    step = max(len(order) / READ, 1.0)
    some = [order[int(at * step)] for at in range(int(len(order) / step))]
    hits = passages.read(snapshot, [(row["id"], 1.0) for row in some], corpus)
    said = ranked(snapshot, [hit.body for hit in hits], [hit.citation.title for hit in hits])
    chosen: list[tuple[Hit, Said]] = []
    size = len(hits) / most if most else 0
    for number in range(most):
        run = range(int(number * size), int((number + 1) * size))
        best = [(hits[at], said[at][0]) for at in run if said[at]]
        if best:
            chosen.append(max(best, key=lambda one: one[1].value))
    return [Line(hit, one_line(one.text, SENTENCE + SHORT), one.value) for hit, one in chosen]
