"""Times of passages: on which day a passage was said, and of which days it speaks. Expressions are
read when they are asked for.

The day of a passage is that of the nearest dated heading or turn above it, else the date of its
document. The time of a file's last change dates nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import groupby
from typing import Any
from weakref import WeakKeyDictionary

from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text import dates
from graphrag_mcp.text.temporal import Anchor, When, anchors, expressions

COLUMNS = ("id", "document_id", "char_start", "char_end", "text")
BATCH = 64  # documents whose texts are read at once
KEPT = (
    20_000  # passages of a generation whose expressions are kept: a filter asks for all candidates
)
COMPARED, READ = 400, 50_000  # documents of years that are compared, and characters of each
SAME = 0.5  # share of the runs of words that a later version still has
SHOWN = 6  # resolved expressions that are shown beside one passage

OUTDATED = frozenset(  # values of `status` in front matter that are shown beside each quote
    "deprecated superseded obsolete withdrawn archived draft rejected replaced expired".split()
)

# In the name of a file: -v2, _V1.10, (v3), version 2; or a year and no day.
_VERSION = re.compile(
    r"[-_ .(](?:v|ver|version|rev)[-_ .]?(?P<v>\d{1,4}(?:\.\d{1,4}){0,3})(?![\d])\)?"
    r"|[-_ (](?P<year>(?:19|20)\d\d)(?![\d]|[-_.]?\d)\)?",
    re.IGNORECASE,
)
_EDITION = re.compile(r"\b(?:edition|version|release|ausgabe|auflage|édition|edición)\b|版", re.I)
_WORD = re.compile(r"[\u2e80-\U0003ffff]|[^\W_]+")  # a letter of Chinese counts as a word
_DIGITS = re.compile(r"\d+")
_SEPARATORS = re.compile(r"[-_ .]+")

Row = Mapping[str, Any]

_facts: WeakKeyDictionary[Snapshot, dict[str, dict[str, Any]]] = WeakKeyDictionary()
_validity: WeakKeyDictionary[Snapshot, dict[str, str]] = WeakKeyDictionary()
_anchors: WeakKeyDictionary[Snapshot, dict[str, list[Anchor]]] = WeakKeyDictionary()
_whens: WeakKeyDictionary[Snapshot, dict[str, tuple[When, ...]]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Times:
    """`said`: the days (ISO 8601) on which the passage was said, in the order of its text; `when`:
    the days of which it speaks, with offsets into the document."""

    said: tuple[str, ...] = ()
    anchors: tuple[Anchor, ...] = ()  # in force in the passage, with offsets into the document
    passage: str = ""  # content id
    text: str = ""
    start: int = 0  # of the text in the document
    kept: dict[str, tuple[When, ...]] = field(default_factory=dict)  # of other passages

    @cached_property
    def when(self) -> tuple[When, ...]:
        if self.passage not in self.kept:
            here = [(at - self.start, day) for at, day in self.anchors]
            found = tuple(
                replace(
                    one, char_start=one.char_start + self.start, char_end=one.char_end + self.start
                )
                for one in expressions(self.text, here)
            )
            if len(self.kept) >= KEPT:
                self.kept.clear()
            self.kept[self.passage] = found
        return self.kept[self.passage]

    def words(self) -> dict[When, str]:
        return spoken(self.text, self.start, self.when)

    def cited(self) -> list[dict[str, Any]]:
        """`days` as citations carry them."""
        return [asdict(one) for one in self.days()]

    def days(self) -> tuple[When, ...]:
        """`when`; where no expression says a day, the day on which it was said, of kind `document`."""
        if self.when or not self.said:
            return self.when
        return tuple(When(-1, -1, day, day, "document", day) for day in self.said[:1])


def read(snapshot: Snapshot, rows: Sequence[Row]) -> dict[str, Times]:
    """The times of passages by id, from rows with COLUMNS."""
    held = _of_documents(snapshot, [row["document_id"] for row in rows])
    kept = _whens.setdefault(snapshot, {})
    return {row["id"]: _times(row, held.get(row["document_id"], []), kept) for row in rows}


def of_passages(snapshot: Snapshot, ids: Iterable[str]) -> dict[str, Times]:
    rows = snapshot.by_key("passages", list(ids), "id", list(COLUMNS)).to_pylist()
    return read(snapshot, rows)


def of_documents(snapshot: Snapshot, ids: Sequence[str]) -> dict[str, list[Times]]:
    """The times of all passages of documents."""
    found: dict[str, list[Times]] = {id: [] for id in ids}
    for at in range(0, len(ids), BATCH):
        some = ids[at : at + BATCH]
        rows = snapshot.by_key("passages", some, "document_id", list(COLUMNS)).to_pylist()
        times = read(snapshot, rows)
        for row in rows:
            found[row["document_id"]].append(times[row["id"]])
    return found


def _of_documents(snapshot: Snapshot, ids: Iterable[str]) -> dict[str, list[Anchor]]:
    held = _anchors.setdefault(snapshot, {})
    missing = [id for id in dict.fromkeys(ids) if id not in held]
    for at in range(0, len(missing), BATCH):
        some = missing[at : at + BATCH]
        columns = ["id", "uri", "metadata", "text"]
        for row in snapshot.by_key("documents", some, "id", columns).to_pylist():
            day = stated_date(row)
            held[row["id"]] = anchors(row["text"], day if len(day) == 10 else "")
    return held


def _times(row: Row, held: Sequence[Anchor], kept: dict[str, tuple[When, ...]]) -> Times:
    start, end = row["char_start"], row["char_end"]
    above = [(start, day) for at, day in held if at <= start][-1:]
    here = (*above, *((at, day) for at, day in held if start < at < end))
    said = tuple(dict.fromkeys(day.isoformat() for _, day in here))
    return Times(said, here, row["id"], row["text"], start, kept)


def said_at(times: Times, offset: int) -> str:
    """The day on which what stands at this offset of the document was said; "" for none."""
    days = [day for at, day in times.anchors if at <= offset]
    return days[-1].isoformat() if days else ""


def note(when: Sequence[When], words: Mapping[When, str], body: str) -> str:
    """`(said 2023-05-25; last Saturday = 2023-05-20)`, of the resolved expressions whose words stand
    in `body`; "" for none."""
    seen = [one for one in when if one.kind == "resolved" and words.get(one) and words[one] in body]
    parts = []
    for anchor, some in groupby(seen[:SHOWN], key=lambda one: one.anchor):
        meant = dict.fromkeys(f"{words[one]} = {interval(one)}" for one in some)
        parts.append("; ".join([f"said {anchor}", *meant]))
    return f"({'; '.join(parts)})" if parts else ""


def spoken(raw: str, offset: int, when: Iterable[When]) -> dict[When, str]:
    """The words of each expression, from the text that begins at this offset of the document."""
    return {one: one_line(raw[one.char_start - offset : one.char_end - offset], 80) for one in when}


def interval(when: When) -> str:
    return when.start if when.start == when.end else f"{when.start} to {when.end}"


def metadata_of(row: Row) -> dict[str, Any]:
    """The metadata of a document, its names in lower case."""
    try:
        metadata = json.loads(row["metadata"] or "{}")
    except ValueError:
        metadata = {}
    known = metadata if isinstance(metadata, dict) else {}
    return {str(name).casefold(): value for name, value in known.items()}


def date_of(metadata: Mapping[str, Any], uri: str) -> str:
    """The date that the metadata give, else the file's name: `2024`, `2024-Q3`, `2024-03` or
    `2024-03-04`; "" for none. The time of a file's last change is no statement."""
    return dates.of_metadata(metadata) or dates.in_name(uri.rpartition("/")[2])


def stated_date(row: Row) -> str:
    """`date_of` a row with metadata and uri."""
    return date_of(metadata_of(row), row["uri"])


def documents(snapshot: Snapshot) -> dict[str, dict[str, Any]]:
    """What filters ask of every document, read once a generation: alias, uri, title, date,
    metadata. The day of the last commit dates what states no date; no relative word counts from it."""
    if snapshot not in _facts:
        rows = snapshot.rows("documents", "", ["id", "n", "uri", "title", "metadata"]).to_pylist()
        _facts[snapshot] = {row["id"]: _fact(row) for row in rows}
    return _facts[snapshot]


def _fact(row: Mapping[str, Any]) -> dict[str, Any]:
    held = metadata_of(row)
    stated = date_of(held, row["uri"])
    date = stated or dates.read(str(held.get("committed") or ""))
    names = [f"d{row['n']}", row["id"], row["title"], row["uri"], row["uri"].rpartition("/")[2]]
    by = "committed" if date and not stated else ""
    return {"document": names, "uri": row["uri"], "date": date, "by": by, "metadata": held}


def validity(snapshot: Snapshot) -> dict[str, str]:
    """What documents say of their own validity, by content id: their status where it is not a usual
    one, until when they are valid, and by which document they are superseded; and that another
    document is a later version by its name. Read once a generation."""
    if snapshot not in _validity:
        facts = documents(snapshot)
        _validity[snapshot] = _validities(facts, _later_versions(snapshot, facts))
    return _validity[snapshot]


def _validities(facts: Mapping[str, Mapping[str, Any]], later: Mapping[str, str]) -> dict[str, str]:
    by_name: dict[str, set[str]] = {}
    for id, fact in facts.items():
        for name in fact["document"]:
            by_name.setdefault(name.casefold(), set()).add(id)
    said: dict[str, list[str]] = {}
    for id, fact in facts.items():
        held = fact["metadata"]
        old = held.get("supersedes") or []
        for name in old if isinstance(old, list) else [old]:
            same = by_name.get(str(name).strip().casefold(), set()) - {id}
            if len(same) == 1:  # a name that several documents have says nothing
                said.setdefault(*same, []).append(f"superseded by {fact['document'][0]}")
        status = one_line(str(held.get("status") or ""), 30)
        if status.casefold() in OUTDATED:
            said.setdefault(id, []).append(f"status: {status}")
        if id in later and not any(one.startswith("superseded") for one in said.get(id, [])):
            said.setdefault(id, []).append(f"a later version by its name: {later[id]}")
        for key, words in (("valid_from", "valid from"), ("valid_until", "valid until")):
            if day := dates.read(str(held.get(key) or "")):
                said.setdefault(id, []).append(f"{words} {day}")
    return {id: f"({'; '.join(some)})" for id, some in said.items()}


def _later_versions(snapshot: Snapshot, facts: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The alias of the next version by content id, where names in one folder differ only in the
    number behind a v (report-v2, report_v3) or in their year (rules 2023, rules 2024). A year makes
    a version where the name says edition, or where the texts are the same for the most part: diaries
    and minutes of years are not versions of each other."""
    series: dict[tuple[str, ...], dict[tuple[int, ...], list[str]]] = {}
    for id, fact in facts.items():
        folder, _, name = fact["uri"].rpartition("/")
        # Records of one file (events.csv#1972) are no versions of each other.
        if "#" not in fact["uri"] and (match := _VERSION.search(name)):
            rest = name[: match.start()], name[match.end() :]
            if "".join(filter(str.isalpha, rest[0])) and not any(map(str.isdigit, rest[0])):
                key = (folder, *(_SEPARATORS.sub(" ", part).casefold() for part in rest))
                number = tuple(map(int, (match["v"] or match["year"]).split(".")))
                series.setdefault((*key, "v" if match["v"] else "year"), {}).setdefault(
                    number, []
                ).append(id)
    found: dict[str, str] = {}
    of_years: list[tuple[str, str]] = []
    for key, versions in series.items():
        order = sorted(versions)
        sure = key[-1] == "v" or any(map(_EDITION.search, key[1:]))
        for older, newer in zip(order, order[1:], strict=False):
            if len(versions[newer]) == 1:  # a version that several documents have says nothing
                pairs = [(one, versions[newer][0]) for one in versions[older]]
                found |= {one: facts[other]["document"][0] for one, other in pairs if sure}
                of_years += [] if sure else pairs
    same = _same_text(snapshot, of_years)
    return found | {one: facts[other]["document"][0] for one, other in same}


def _same_text(snapshot: Snapshot, pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The pairs (content ids) of which the second holds most of the first, in runs of four words;
    numbers count as equal."""
    ids = list(dict.fromkeys(id for pair in pairs for id in pair))[:COMPARED]
    runs: dict[str, set[tuple[str, ...]]] = {}
    for at in range(0, len(ids), BATCH):
        rows = snapshot.by_key("documents", ids[at : at + BATCH], "id", ["id", "text"])
        for row in rows.to_pylist():
            words = _WORD.findall(_DIGITS.sub("0", row["text"][:READ].casefold()))
            runs[row["id"]] = set(zip(*(words[n:] for n in range(4)), strict=False))
    return [
        (older, newer)
        for older, newer in pairs
        if older in runs and len(runs[older] & runs.get(newer, set())) > SAME * len(runs[older])
    ]
