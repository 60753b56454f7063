"""Summaries that a model or an agent wrote: as a field that documents are found by, and as results
show them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from graphrag_mcp.packing.budget import HIGHEST, one_line, passage_alias
from graphrag_mcp.store.schema import doubts
from graphrag_mcp.store.tables import Snapshot, notes_of, once, values_of
from graphrag_mcp.text.terms import counted, lists_of

LONGEST = 800  # characters of a summary that is shown
CALL = 5_000  # tokens of text that one call of a model summarises
COLUMNS = ["document_id", "place", "char_start", "char_end", "heading", "text", "unsupported"]


@dataclass(frozen=True, slots=True)
class Summary:
    """What was written of a document (`place` 0) or of its n-th section, the characters `start` to
    `end` of it. `text` is as it is shown."""

    document: str
    place: int
    start: int
    end: int
    heading: str
    text: str


@dataclass(frozen=True, slots=True)
class Fields:
    """The summaries as a field of the ranking: what each covers, its terms between blanks, and how many
    hold a term. Of a document with sections their summaries stand here, not that of the whole."""

    spans: Sequence[tuple[str, int, int]]  # document, characters from and to
    terms: Sequence[str]
    holding: Mapping[str, int]


@once
def _fields(snapshot: Snapshot) -> Fields:
    if "summaries" not in snapshot.manifest.tables:
        return Fields((), (), {})
    columns = ["document_id", "place", "char_start", "char_end", "terms"]
    rows = snapshot.rows("summaries", "", columns).to_pylist()
    rows.sort(key=lambda row: (row["document_id"], row["place"]))
    divided = {row["document_id"] for row in rows if row["place"]}
    rows = [row for row in rows if row["place"] or row["document_id"] not in divided]
    spans = [(row["document_id"], row["char_start"], row["char_end"]) for row in rows]
    holding = Counter(term for row in rows for term in set(row["terms"].split()))
    return Fields(spans, [f" {row['terms']} " for row in rows], holding)


def count(snapshot: Snapshot) -> int:
    return len(_fields(snapshot).spans)


def holding(snapshot: Snapshot, terms: Sequence[str]) -> dict[str, int]:
    """How many summaries hold each of these terms."""
    known = _fields(snapshot).holding
    return {term: known[term] for term in terms if term in known}


def terms_of(snapshot: Snapshot, documents: Collection[str]) -> dict[str, set[str]]:
    """The terms of the summaries of each document, by content id; documents without a summary are
    missing."""
    fields = _fields(snapshot)
    found: dict[str, set[str]] = {}
    for (document, _, _), terms in zip(fields.spans, fields.terms, strict=True):
        if document in documents:
            found.setdefault(document, set()).update(terms.split())
    return found


def best(snapshot: Snapshot, worth: Mapping[str, float], most: int) -> list[tuple[tuple[str, int, int], float]]:
    """The texts (document, characters from and to) whose summaries hold most of these terms, best
    first, each with its share of their worth, 0 to 1."""
    fields = _fields(snapshot)
    needles = [(f" {term} ", value) for term, value in worth.items()]
    whole = math.fsum(worth.values()) or 1.0
    found = []
    for span, terms in zip(fields.spans, fields.terms, strict=True) if needles else ():
        if values := [value for needle, value in needles if needle in terms]:
            found.append((span, math.fsum(values) / whole))
    return sorted(found, key=lambda pair: (-round(pair[1], 9), pair[0]))[:most]


# ---- shown ---------------------------------------------------------------------------------------


def of_documents(snapshot: Snapshot, ids: Sequence[str]) -> dict[str, str]:
    """The summary of each document, by content id; documents without a summary are missing."""
    return {
        id: summary.text for id, written in read(snapshot, ids).items() for summary in written if summary.place == 0
    }


def read(snapshot: Snapshot, ids: Sequence[str]) -> dict[str, list[Summary]]:
    """The summaries of each document and of its sections, by content id, that of the whole document
    first. Words of a summary that its text does not contain are listed behind it."""
    if "summaries" not in snapshot.manifest.tables or not ids:
        return {}
    rows = snapshot.by_key("summaries", list(ids), "document_id", COLUMNS).to_pylist()
    rows.sort(key=lambda row: row["place"])
    return dict(
        lists_of(
            (
                row["document_id"],
                Summary(
                    row["document_id"],
                    row["place"],
                    row["char_start"],
                    row["char_end"],
                    one_line(row["heading"], 120),
                    shown(row["text"], row["unsupported"]),
                ),
            )
            for row in rows
        )
    )


def covering(summaries: Sequence[Summary], at: int) -> Summary | None:
    """The summary of the section of a document that contains the character `at`; if there is none,
    the summary of the whole document."""
    inside = (summary for summary in summaries if summary.place and summary.start <= at < summary.end)
    return next(inside, next((summary for summary in summaries if summary.place == 0), None))


def outline(snapshot: Snapshot, sections: Sequence[Summary]) -> list[str]:
    """`- [t12] Heading: summary` for each section of a document; the id is that of its first
    passage."""
    if not sections:
        return []
    names = ["char_start", "n", "part", "parts"]
    rows = snapshot.by_key("passages", [sections[0].document], "document_id", names).to_pylist()
    rows.sort(key=lambda row: row["char_start"])
    lines = []
    for section in sections:
        first = next((row for row in rows if row["char_start"] >= section.start), rows[-1])
        heading = f"{section.heading}: " if section.heading else ""
        lines.append(f"- [{passage_alias(first)}] {heading}{section.text}")
    return lines


def shown(text: str, unsupported: Sequence[str]) -> str:
    """A summary on one line, with the words that its text does not contain listed behind it."""
    missing = f"({doubts(unsupported)})" if unsupported else ""
    return " ".join(filter(None, [one_line(text, LONGEST), one_line(missing, LONGEST)]))


def missing(snapshot: Snapshot) -> str:
    """A sentence on what summaries would cost, where documents have none and together are longer than
    any result; else ""."""
    counters = snapshot.manifest.counters
    there = counters.get("summarised", 0)
    total = counters.get("documents", 0) - len(notes_of(snapshot))
    if total <= there:
        return ""
    tokens = sum(values_of(snapshot.rows("text_units", "", ["n_tokens"])["n_tokens"]))
    if tokens <= HIGHEST:
        return ""
    left = tokens * (total - there) // total
    return (
        f"{there:,} of {counted(total, 'documents')} have a summary. Summaries let results say more in "
        f"less: about {max(left // CALL, 1):,} calls of a model (GRAPHRAG_MCP_CHAT_MODEL), or agents "
        'write them with claim_work(kind="summary").'
    )
