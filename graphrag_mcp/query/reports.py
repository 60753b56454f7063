"""Community reports for a question: which are relevant, and their findings.
No model is asked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphrag_mcp.names.extract import extract
from graphrag_mcp.packing.budget import Item, one_line
from graphrag_mcp.packing.references import referenced_ids, render_references
from graphrag_mcp.query import context
from graphrag_mcp.query.overview import asked_about, asks_for_unknown
from graphrag_mcp.query.question import QUERY_CHARACTERS
from graphrag_mcp.store.tables import Snapshot, once, rows_of, values_of
from graphrag_mcp.text.terms import terms

Row = dict[str, Any]
REPORT = ("id", "n", "level", "title", "summary", "findings")  # lists of ids would take longer
_STATEMENTS = re.compile(r"(?<=\])\s+")  # where one ends: behind its references
_IDS = re.compile(r"\b[0-9a-f]{32}\b")
_TOLD = re.compile(r"(?<=\)\])\s*(?=\S)")  # ... also where no blank follows, as in Chinese


@once
def written(snapshot: Snapshot) -> frozenset[str]:
    """Ids of the reports that a model or an agent wrote, or that were imported."""
    return frozenset(values_of(snapshot.rows("reports", "method != 'extractive'", ["id"])["id"]))


CANDIDATES = 200  # reports that full text proposes
THRESHOLD = 1.0  # a rating from which a report is relevant
FINDING = 500  # characters of a finding
READ = 40  # reports read in full at most
TOP = 4  # topics of the highest level beside the reports near to a question
FLOOR = 0.2  # share of the question's words that the best report must cover to set the scale alone


@dataclass(slots=True)
class Rated:
    """A report with its rating by the words of a question."""

    id: str
    level: int
    parent: str  # "" for a root
    childless: bool
    rating: float
    weight: float  # its text units as a share of those of the report that has most
    rank: float


def all_rated(snapshot: Snapshot, query: str) -> dict[str, Rated]:
    """Every report by id, with its rating from 0 to 5 by the words of the question, on a scale set
    by the best of them (0 where no word is in it)."""
    rows = snapshot.rows("reports", "", ["id", "level", "rank", "n_text_units"]).to_pylist()
    tree = snapshot.rows("communities", "", ["id", "parent", "children"])
    family = {id: (parent, not children) for id, parent, children in rows_of(tree)}
    most = max((row["n_text_units"] for row in rows), default=0) or 1
    similar: dict[str, float] = {}
    if worth := asked_about(snapshot, query):
        proposed = snapshot.full_text("reports", list(worth), CANDIDATES, ["id", "terms"])
        whole = sum(worth.values())
        texts = rows_of(proposed.select(["id", "terms"]))
        similar = {id: similarity(text, worth) / whole for id, text in texts}
    scale = 5 / max(max(similar.values(), default=0.0), FLOOR)
    found = {}
    for row in rows:
        parent, childless = family.get(row["id"], ("", True))
        rating, weight = similar.get(row["id"], 0.0) * scale, row["n_text_units"] / most
        found[row["id"]] = Rated(
            row["id"], row["level"], parent, childless, rating, weight, row["rank"]
        )
    return found


def similarity(text_terms: str, worth: Mapping[str, float]) -> float:
    """The worth of the question's terms that a text holds, more where it keeps coming back to them."""
    counts, score = Counter(text_terms.split()), 0.0
    for term in worth.keys() & counts.keys():
        score += worth[term] * (0.5 + 0.5 * (counts[term] - 1) / (counts[term] + 2))
    return score


def select(snapshot: Snapshot, query: str, level: int = -1) -> tuple[list[Rated], dict[str, int]]:
    """The relevant reports, best first, and how many were rated, kept and pruned; without a question
    those of a level (the coarsest by default) by how much text they cover."""
    every = all_rated(snapshot, query)
    if asks_for_unknown(snapshot, query):
        chosen, rated = [], 0
    elif asked_about(snapshot, query) is None:
        chosen, rated = at_level(every, max(level, 0)), 0
    else:
        known = {id: report for id, report in every.items() if report.rating > 0}
        chosen = _apart(known.values()) if level < 0 else at_level(known, level)
        chosen, rated = [report for report in chosen if report.rating >= THRESHOLD], len(known)
    kept = sorted(chosen, key=by_rating)[:READ]
    pruned = rated - len(kept) if rated else 0
    return kept, {"reports": len(every), "rated": rated, "kept": len(kept), "pruned": pruned}


def opening(snapshot: Snapshot, query: str, most: int) -> list[Rated]:
    """The reports that an investigation begins with, `most` of them: those near to the question, and
    behind them, where it names nothing, those of TOP topics of the highest level. The words of a broad
    question ("Which controversies recur?") stand in few reports and choose them by chance; a question
    with a name is about what has it. Where no report is near, topics of the highest level alone."""
    near = select(snapshot, query)[0]
    if near and any(mention.strong for mention in extract(query[:QUERY_CHARACTERS])):
        return near[:most]
    near = near[: most - TOP]
    known = {report.id for report in near}
    top = sorted(at_level(all_rated(snapshot, query), 0), key=by_rating)
    others = [report for report in top if report.id not in known]
    return [*near, *others[: TOP if near else most]]


def whole_level(snapshot: Snapshot, query: str, level: int) -> list[Rated]:
    """The reports of a level, and reports above it that have no children: nearest to the question
    first."""
    return sorted(at_level(all_rated(snapshot, query), level), key=by_rating)


def by_rating(report: Rated) -> tuple[float, float, float, str]:
    return -round(report.rating, 6), -round(report.weight, 6), -report.rank, report.id


def at_level(every: Mapping[str, Rated], level: int) -> list[Rated]:
    """The communities of a level, and those above it that have no children, so that each entity is
    in one of them. A level below the deepest stands for the deepest."""
    level = min(level, max((report.level for report in every.values()), default=0))
    fits = (report for report in every.values() if report.level <= level)
    return [report for report in fits if report.level == level or report.childless]


def _apart(rated: Iterable[Rated]) -> list[Rated]:
    """The relevant reports; of a report and a part of it the one that is more relevant."""
    kept: dict[str, Rated] = {}
    above: set[str] = set()  # what these are parts of
    for report in sorted(rated, key=by_rating):
        if report.rating >= THRESHOLD and report.parent not in kept and report.id not in above:
            kept[report.id] = report
            above.add(report.parent)
    return list(kept.values())


def finding_items(
    snapshot: Snapshot, query: str, kept: Sequence[Rated], documents: Collection[str] | None = None
) -> tuple[list[Item], list[str]]:
    """Findings as items, best first, and the aliases of their communities. A finding counts two
    thirds by its report's rating, one third by its own words. With `documents` only the statements
    that cite one of these, or no text at all: a report on a wide community tells of many."""
    worth = asked_about(snapshot, query) or {}
    whole = sum(worth.values()) or 1.0
    rating = {report.id: report.rating for report in kept}
    found: list[tuple[float, int, int, Row, str]] = []
    for place, row in enumerate(snapshot.served("reports", list(rating), REPORT)):
        listed = context.findings(row) or [{"summary": row["title"], "explanation": row["summary"]}]
        # of equal ones those of the weightier report first
        for number, finding in enumerate(listed, 1):
            text = _point(str(finding.get("summary", "")), str(finding.get("explanation", "")))
            words = " ".join(terms(_IDS.sub("", text)))
            share = min(1.0, similarity(words, worth) / whole) if worth else 1 / number
            score = (20 * rating[row["id"]] * 2 + 100 * share) / 3
            found.append((-round(score, 6), place, number, row, text))
    found.sort(key=lambda scored: scored[:3])
    if documents is not None:
        texts = _citing(snapshot, [scored[4] for scored in found], documents)
        found = [(*scored[:4], text) for scored, text in zip(found, texts, strict=True) if text]
    aliases, cited = context.resolve_references(snapshot, [scored[4] for scored in found])
    items = []
    for score, _, number, row, text in found:
        shown, alias = render_references(text, aliases), f"c{row['n']}"
        at = {"score": round(min(-score / 100, 1.0), 3), "line_start": 0, "line_end": 0}
        places = [place for id, place in cited.items() if f"{id})" in shown or f"{id}," in shown]
        also = tuple(place.model_copy(update=at) for place in places[:5])
        line = f"- {shown} ({one_line(row['title'], 60)}, {alias})"
        items.append(Item(f"{alias}.{number}", line, None, "Points", -score, also=also))
    return items, list(dict.fromkeys(f"c{scored[3]['n']}" for scored in found))


def _citing(snapshot: Snapshot, texts: Sequence[str], documents: Collection[str]) -> list[str]:
    """Of each text the statements that cite one of these documents, or none at all."""
    cited_ids = {id for text in texts for id in referenced_ids(text).get("Sources", ())}
    rows = snapshot.served("text_units", sorted(cited_ids), ["id", "document_id"])
    fits = {row["id"] for row in rows if row["document_id"] in documents}

    def told(statement: str) -> bool:
        ids = referenced_ids(statement).get("Sources")
        return not ids or not fits.isdisjoint(ids)

    return [" ".join(filter(told, _TOLD.split(text))) for text in texts]


def _point(summary: str, explanation: str) -> str:
    """A finding on one line, in whole statements; the summary only where they lack it."""
    kept: list[str] = []
    length = 0
    for piece in _STATEMENTS.split(explanation.strip()):
        body, mark, references = piece.partition("[Data:")
        if kept and length + len(body) > FINDING:
            break
        kept += filter(None, (one_line(body, FINDING), mark + references))
        length += len(body)
    text = " ".join(kept)
    if not summary or text.startswith(summary.rstrip(".…")):
        return text
    return f"**{one_line(summary, 200)}** {text}"
