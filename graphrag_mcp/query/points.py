"""Points of a global search: the findings of chosen reports, ranked, with their references resolved.

Takes a snapshot, the worth of a question's terms and rated reports; gives findings best first, and as items for `pack`
those that are wanted: most of what is ranked is never shown. Chooses no report and knows no budget.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from graphrag_mcp.pack import Item, one_line, referenced_ids, render_references
from graphrag_mcp.query import context
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text import terms

if TYPE_CHECKING:
    from graphrag_mcp.query.global_ import Rated

Row = dict[str, Any]
_STATEMENTS = re.compile(r"(?<=\])\s+")  # where one ends: behind its references
_IDS = re.compile(r"\b[0-9a-f]{32}\b")
_TOLD = re.compile(r"(?<=\)\])\s*(?=\S)")  # ... also where no blank follows, as in Chinese
REPORT = ("id", "n", "level", "title", "summary", "findings")  # what is kept of reports: their lists of ids are longer
Point = tuple[float, int, int, Row, str]  # score, place of its report, number in it, the report, the text


def ranked(
    snapshot: Snapshot, worth: Mapping[str, float], kept: Sequence[Rated], detailed: bool
) -> list[Point]:
    """Findings, best first: two thirds the report's rating, one third the finding's own words."""
    whole = sum(worth.values()) or 1.0
    rating = {one.id: one.rating for one in kept}
    found: list[Point] = []
    for place, row in enumerate(snapshot.served("reports", [one.id for one in kept], REPORT)):
        findings = context.findings(row) or [{"summary": row["title"], "explanation": row["summary"]}]
        for number, one in enumerate(findings, 1):  # of equal points those of the weightier report first
            text, words = _point(str(one.get("summary", "")), str(one.get("explanation", "")), detailed)
            own = min(1.0, similarity(words, worth) / whole) if worth else 1 / number
            found.append((20 * rating[row["id"]] * 2 / 3 + 100 * own / 3, place, number, row, text))
    return sorted(found, key=lambda one: (-round(one[0], 6), one[1], one[2]))


def passing(snapshot: Snapshot, found: Sequence[Point], documents: Collection[str]) -> list[Point]:
    """The points with only those statements that cite a document that passes, or no text at all: a report on a wide
    community tells of many documents."""
    wanted = {id for one in found for id in referenced_ids(one[4]).get("Sources", ())}
    units = snapshot.by_key("text_units", sorted(wanted), "id", ["id", "document_id"]) if wanted else None
    pairs = zip(units["id"].to_pylist(), units["document_id"].to_pylist(), strict=True) if units else ()
    fits = {id for id, document in pairs if document in documents}
    kept = []
    for score, place, number, row, text in found:
        told = [one for one in _TOLD.split(text)
                if not (ids := referenced_ids(one).get("Sources")) or not fits.isdisjoint(ids)]  # fmt: skip
        if told:
            kept.append((score, place, number, row, " ".join(told)))
    return kept


def communities_of(found: Sequence[Point]) -> list[str]:
    return list(dict.fromkeys(f"c{one[3]['n']}" for one in found))


def point_items(
    snapshot: Snapshot, found: Sequence[Point], kept: Sequence[Rated], detailed: bool, explain: bool
) -> list[Item]:
    """Some of the points as the reader sees them, with their references resolved."""
    rating = {one.id: one.rating for one in kept}
    rank = {one.id: f"{place} of {len(kept)} by relevance" for place, one in enumerate(kept, 1)}
    aliases, cited = context.resolve_references(snapshot, [one[4] for one in found])
    items = []
    lines = {"line_start": 0, "line_end": 0} if not detailed else {}
    for score, _, number, row, text in found:
        shown = render_references(text, aliases)
        alias = f"c{row['n']}"
        places = [place for id, place in cited.items() if f"{id})" in shown or f"{id}," in shown][:5]
        at = {"score": round(min(score / 100, 1.0), 3)} | lines
        scored = [place.model_copy(update=at) for place in places]
        line = f"- {shown} ({one_line(row['title'], 60)}, {alias})"
        if explain:
            own = f"report {rank[row['id']]}, rated {min(rating[row['id']], 5.0):.1f} of 5"
            asked = " and asked for by a filter" if rating[row["id"]] > 5.0 else ""
            line += f" (why: {own}{asked}; finding {number} of the report at level {row['level']})"
        items.append(Item(f"{alias}.{number}", line, None, "Points", score, also=tuple(scored)))
    return items


@lru_cache(maxsize=2_000)
def _point(summary: str, explanation: str, detailed: bool) -> tuple[str, str]:
    """A finding on one line, whole statements with their references, without the summary where they begin with it;
    and its terms. Remembered, because reports of large communities come with every question."""
    limit = 1_600 if detailed else 500
    kept: list[str] = []
    length = 0
    for piece in _STATEMENTS.split(explanation.strip()):
        body, mark, references = piece.partition("[Data:")
        if kept and length + len(body) > limit:
            break
        kept.append(one_line(body, limit) + (f" {mark}{references}" if mark else ""))
        length += len(body)
    body = " ".join(kept)
    if body.startswith(summary.rstrip(".…")) or not summary:
        text = body
    else:
        text = f"**{one_line(summary, 200)}** {body}"
    return text, " ".join(terms(_IDS.sub("", text)))  # each id has some ten terms, of which none says anything


def similarity(text_terms: str, worth: Mapping[str, float]) -> float:
    """The worth of the question's terms that a text holds, more where it keeps coming back to them."""
    padded, doubled, score = f" {text_terms} ", "", 0.0
    for term, value in worth.items():
        if (word := f" {term} ") in padded:
            doubled = doubled or padded.replace(" ", "  ")  # so that the blank between two of them counts for both
            count = doubled.count(word)
            score += value * (0.5 + 0.5 * (count - 1) / (count + 2))
    return score
