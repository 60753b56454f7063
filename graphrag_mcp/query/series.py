"""Series: documents whose names differ in numbers and dates only, such as the chats of two people
or the meetings of a group; where there are none, the documents of one folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.query import note_sources, times
from graphrag_mcp.store.tables import Snapshot, once
from graphrag_mcp.text.terms import counted, lists_of, stop_word

MOST = 40  # series of a corpus; more would be no overview
# documents of a series; share of all that lie in one, and in the largest at most
LEAST, COVERED = (3, 0.7)
DEPTH = 6  # folders of an address
SAID = 5  # letters of a title beside its series, from which on it says something

# Numbers, and the name of a month beside one: meetings_2024-03_mar-25.md
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_VARIES = re.compile(
    rf"\d+(?:[-_., ]{{1,2}}{_MONTH}(?![^\W\d_]))?|(?<![^\W\d_]){_MONTH}[-_., ]{{1,2}}\d+",
    re.IGNORECASE,
)
_STARS = re.compile(r"\*(?:[\W_]{0,3}\*)+")
Facts = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Series:
    """`uri`: pattern that all its documents pass; `documents`: content ids by address."""

    uri: str
    title: str
    documents: tuple[str, ...]


@once
def by_document(snapshot: Snapshot) -> dict[str, Series]:
    """The series of each document, by content id, in the order of their addresses; none where fewer
    than two series hold most of the documents."""
    notes = note_sources.ids(snapshot)
    facts = {id: fact for id, fact in times.documents(snapshot).items() if id not in notes}
    found = _grouped(facts, _pattern)
    for depth in range(DEPTH, 0, -1):
        found = found or _grouped(facts, lambda uri, depth=depth: _folder(uri, depth))
    every = {uri: Series(uri, _title(uri, ids, facts), tuple(ids)) for uri, ids in found.items()}
    return {id: every[uri] for uri, ids in found.items() for id in ids}


def grouped(snapshot: Snapshot, ids: Collection[str]) -> dict[Series | None, list[str]]:
    """These documents (content ids) by series, in the order of their addresses."""
    known, facts = by_document(snapshot), times.documents(snapshot)
    return dict(
        lists_of((known.get(id), id) for id in sorted(ids, key=lambda id: facts[id]["uri"]))
    )


def _pattern(uri: str) -> str:
    return _STARS.sub("*", _VARIES.sub("*", re.sub(r"[\[\]*]", "?", uri)))


def _folder(uri: str, depth: int) -> str:
    return "".join(f"{part}/" for part in uri.split("/")[:-1][:depth]) + "*"


def _grouped(facts: Facts, key: Callable[[str], str]) -> dict[str, list[str]]:
    order = sorted(facts, key=lambda id: facts[id]["uri"])
    groups = lists_of((key(facts[id]["uri"]), id) for id in order)
    covered = sum(len(ids) for ids in groups.values() if len(ids) >= LEAST)
    largest = max(map(len, groups.values()), default=0)
    several = largest <= COVERED * len(facts) <= covered and len(groups) <= MOST
    return dict(groups) if several else {}


def _title(uri: str, ids: Sequence[str], facts: Facts) -> str:
    """The words with which all titles begin, else the name without what varies."""
    titles = [facts[id]["document"][2].split() for id in ids]
    equal = takewhile(lambda words: len({*words}) == 1, zip(*titles, strict=False))
    same = [words[0] for words in equal]
    while same and stop_word(same[-1].strip(",.:;-–—#").casefold()):  # Chat of Ana and Ben on:
        same.pop()
    title = " ".join(same).strip(" ,.:;-–—#")
    file = uri.removesuffix("/*").rpartition("/")[2]
    return title if len(title) > 3 else file.rpartition(".")[0].strip("*_-. ") or file


def name(fact: Mapping[str, Any], of: Series | None) -> str:
    """What tells a document from others of its series: its title where that says more than numbers
    and a date, else the name of its file, without the suffix that the pattern of a series has; "" where it has no
    series."""
    if of is None:
        return ""
    _, _, title, _, file = fact["document"]
    rest = title.removeprefix(of.title)
    if sum(map(str.isalpha, _VARIES.sub("", rest))) >= SAID and title != file:
        return title
    return file if of.uri.endswith("/*") else file.rpartition(".")[0] or file


def described(snapshot: Snapshot, series: Series | None, ids: Sequence[str]) -> str:
    """`Chat of Ana and Ben: 12 documents, 2023-05-08 to 2023-10-22 (uri=chats/Ana_Ben_*.txt)`"""
    facts = times.documents(snapshot)
    dates = sorted(facts[id]["date"] for id in ids if facts[id]["date"])
    span = f", {dates[0]} to {dates[-1]}" if dates else ""
    place = f" (uri={one_line(series.uri, 120)})" if series else ""
    title = one_line(series.title, 80) if series else "Others"
    return f"{title}: {counted(len(ids), 'documents')}{span}{place}"
