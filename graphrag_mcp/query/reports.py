"""Community reports for a question: which are relevant, and their findings.
No model is asked."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphrag_mcp.names.extract import extract
from graphrag_mcp.packing.budget import Item, one_line
from graphrag_mcp.packing.references import referenced_ids, render_references, short_references
from graphrag_mcp.query import context
from graphrag_mcp.query.overview import asked
from graphrag_mcp.query.question import QUERY_CHARACTERS
from graphrag_mcp.store.tables import Snapshot, once, rows_of, values_of
from graphrag_mcp.text.terms import terms

Row = dict[str, Any]
REPORT = ("id", "n", "level", "title", "summary", "findings")  # lists of ids would take longer
_IDS = re.compile(r"\b[0-9a-f]{32}\b")
# Where a statement ends: behind its references, also where no blank follows, as in Chinese.
_STATEMENTS = re.compile(r"(?<=\)\])\s*(?=\S)")


@once
def written(snapshot: Snapshot) -> frozenset[str]:
    """Ids of the reports that a model or an agent wrote, or that were imported."""
    return frozenset(values_of(snapshot.rows("reports", "method != 'extractive'", ["id"])["id"]))


CANDIDATES = 200  # reports that full text proposes
THRESHOLD = 0.2  # a rating from which a report is relevant
FINDING = 500  # characters of a finding
TITLE = 120  # characters of a title
READ = 40  # reports read in full at most
TOP = 4  # topics of the highest level beside the reports near to a question
FLOOR = 0.2  # share of the question's words that the best report must cover to set the scale alone


@dataclass(frozen=True, slots=True)
class Rated:
    """A report with its rating by the words of a question."""

    id: str
    level: int
    parent: str  # "" for a root
    childless: bool
    rating: float  # 0 to 1: the best of them
    texts: int  # text units that it covers
    rank: float


def all_rated(snapshot: Snapshot, query: str) -> dict[str, Rated]:
    """Every report by id, with its rating by the words of the question: 0 where no word is in it."""
    rows = rows_of(snapshot.rows("reports", "", ["id", "level", "rank", "n_text_units"]))
    tree = snapshot.rows("communities", "", ["id", "parent", "children"])
    family = {id: (parent, not children) for id, parent, children in rows_of(tree)}
    similar: dict[str, float] = {}
    if worth := asked(snapshot, query).worth:
        proposed = snapshot.full_text("reports", list(worth), CANDIDATES, ["id", "terms"])
        texts = rows_of(proposed.select(["id", "terms"]))
        similar = {id: similarity(text, worth) for id, text in texts}
    scale = max(max(similar.values(), default=0.0), FLOOR)
    return {
        id: Rated(id, level, *family.get(id, ("", True)), similar.get(id, 0.0) / scale, texts, rank)
        for id, level, rank, texts in rows
    }


def similarity(text_terms: str, worth: Mapping[str, float]) -> float:
    """The share of the worth of the question's terms that a text holds: half of a term's where it stands once, more
    where the text keeps coming back to it."""
    counts = Counter(text_terms.split())
    held = math.fsum(worth[term] * counts[term] / (1 + counts[term]) for term in worth)
    return held / math.fsum(worth.values())


def select(snapshot: Snapshot, query: str, level: int = -1) -> list[Rated]:
    """The relevant reports, best first; without a question those of a level (the coarsest by default) by how much text
    they cover."""
    every = all_rated(snapshot, query)
    about = asked(snapshot, query)
    if about.unknown:
        chosen = []
    elif not about.worth:
        chosen = at_level(every, max(level, 0))
    else:
        near = {id: report for id, report in every.items() if report.rating >= THRESHOLD}
        chosen = _apart(near.values()) if level < 0 else at_level(near, level)
    return sorted(chosen, key=by_rating)[:READ]


def opening(snapshot: Snapshot, query: str, most: int) -> list[Rated]:
    """The reports that an investigation begins with, `most` of them: those near to the question, and
    behind them, where it names nothing, those of TOP topics of the highest level. The words of a broad
    question ("Which controversies recur?") stand in few reports and choose them by chance; a question
    with a name is about what has it. Where no report is near, topics of the highest level alone."""
    near = select(snapshot, query)
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


def by_rating(report: Rated) -> tuple[float, int, float, str]:
    return -round(report.rating, 6), -report.texts, -report.rank, report.id


def at_level(every: Mapping[str, Rated], level: int) -> list[Rated]:
    """The communities of a level, and those above it that have no children, so that each entity is
    in one of them. A level below the deepest stands for the deepest."""
    level = min(level, max((report.level for report in every.values()), default=0))
    fits = (report for report in every.values() if report.level <= level)
    return [report for report in fits if report.level == level or report.childless]


def _apart(near: Iterable[Rated]) -> list[Rated]:
    """The reports; of a report and a part of it the one that is more relevant."""
    kept: dict[str, Rated] = {}
    above: set[str] = set()  # what these are parts of
    for report in sorted(near, key=by_rating):
        if report.parent not in kept and report.id not in above:
            kept[report.id] = report
            above.add(report.parent)
    return list(kept.values())


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding of a report, and its worth for a question: 0 to 1."""

    report: Row
    number: int  # in its report
    text: str
    worth: float


def finding_items(
    snapshot: Snapshot, query: str, kept: Sequence[Rated], documents: Collection[str] | None = None
) -> list[Item]:
    """Findings as items, best first. A finding counts two
    thirds by its report's rating, one third by its own words. With `documents` only the statements
    that cite one of these, or no text at all: a report on a wide community tells of many."""
    worth = asked(snapshot, query).worth
    rating = {report.id: report.rating for report in kept}
    found: list[Finding] = []
    for row in snapshot.served("reports", list(rating), REPORT):
        listed = context.findings(row) or [{"summary": row["title"], "explanation": row["summary"]}]
        for number, finding in enumerate(listed, 1):
            text = _point(finding)
            share = similarity(" ".join(terms(_IDS.sub("", text))), worth) if worth else 1 / number
            found.append(Finding(row, number, text, (2 * rating[row["id"]] + share) / 3))
    # of equal ones those of the weightier report first
    found.sort(key=lambda each: -round(each.worth, 6))
    texts = [each.text for each in found]
    if documents is not None:
        texts = _citing(snapshot, texts, documents)
    aliases, cited = context.resolve_references(snapshot, texts)
    items = []
    for each, text in zip(found, texts, strict=True):
        if not text:
            continue
        shown, alias = render_references(text, aliases), f"c{each.report['n']}"
        at = {"score": round(each.worth, 3), "line_start": 0, "line_end": 0}
        places = [place for id, place in cited.items() if re.search(rf"\b{id}[,)]", shown)]
        also = tuple(place.model_copy(update=at) for place in places[:5])
        line = f"- {shown} ({one_line(each.report['title'], 60)}, {alias})"
        items.append(Item(f"{alias}.{each.number}", line, None, "Points", each.worth, also=also))
    return items


def items(
    snapshot: Snapshot, ids: Sequence[str], characters: int, *, whole: bool = False, cited: bool = False
) -> list[Item]:
    """`- [c5] Title: summary` for each report (content ids); with its findings if `whole`, with the ids of its texts if
    `cited`."""
    rows = snapshot.served("reports", ids)
    aliases, _ = context.resolve_references(snapshot, [row["summary"] for row in rows] if cited else [])
    found = []
    for row in rows:
        findings = map(context.finding, context.findings(row)) if whole else ()
        said = short_references(" ".join([row["summary"], *findings]), aliases)
        alias, title = f"c{row['n']}", one_line(row["title"], TITLE)
        line = f"- [{alias}] {title}: {one_line(said, characters)}"
        found.append(Item(alias, line, None, "Reports"))
    return found


def _citing(snapshot: Snapshot, texts: Sequence[str], documents: Collection[str]) -> list[str]:
    """Of each text the statements that cite one of these documents, or none at all."""
    cited_ids = {id for text in texts for id in referenced_ids(text).get("Sources", ())}
    rows = snapshot.served("text_units", sorted(cited_ids), ["id", "document_id"])
    fits = {row["id"] for row in rows if row["document_id"] in documents}

    def told(statement: str) -> bool:
        ids = referenced_ids(statement).get("Sources")
        return not ids or not fits.isdisjoint(ids)

    return [" ".join(filter(told, _STATEMENTS.split(text))) for text in texts]


def _point(finding: Mapping[str, Any]) -> str:
    """A finding on one line, in whole statements."""
    kept: list[str] = []
    length = 0
    for statement in _STATEMENTS.split(context.finding(finding).strip()):
        body, mark, references = statement.partition("[Data:")
        if kept and length + len(body) > FINDING:
            break
        kept += filter(None, (one_line(body, FINDING), mark + references))
        length += len(body)
    return " ".join(kept)
