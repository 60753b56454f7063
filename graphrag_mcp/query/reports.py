"""Community reports for a question: what it asks about, which reports are relevant, their findings.
No model is asked."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import pyarrow.compute as pc

from graphrag_mcp.packing.budget import Item, one_line, referenced_ids, render_references
from graphrag_mcp.query import context, ranking, retrieval
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.folding import SIMPLIFY
from graphrag_mcp.text.terms import is_cjk, query_terms, stop_word, terms

if TYPE_CHECKING:
    from graphrag_mcp.query.filters import Filters


_WORDS = tomllib.loads(Path(__file__).with_name("asking.toml").read_text("utf-8"))


def _pattern(name: str, flags: int = 0) -> re.Pattern[str]:
    text = re.sub("@([A-Z_]+)@", lambda part: _WORDS[part[1]], _WORDS[name])
    return re.compile(text.replace("\n", ""), flags)


OVERVIEW = _pattern("OVERVIEW", re.IGNORECASE)
ASKING_ELSEWHERE = _pattern("ASKING_ELSEWHERE", re.IGNORECASE)
ASKING_HAN = _pattern("ASKING_HAN")


Row = dict[str, Any]
_STATEMENTS = re.compile(r"(?<=\])\s+")  # where one ends: behind its references
_IDS = re.compile(r"\b[0-9a-f]{32}\b")
_TOLD = re.compile(r"(?<=\)\])\s*(?=\S)")  # ... also where no blank follows, as in Chinese
REPORT = (
    "id",
    "n",
    "level",
    "title",
    "summary",
    "findings",
)  # what is kept of reports: their lists of ids are longer
# score, place of its report, number in it, the report, the text
Finding = tuple[float, int, int, Row, str]


def similarity(text_terms: str, worth: Mapping[str, float]) -> float:
    """The worth of the question's terms that a text holds, more where it keeps coming back to them."""
    padded, doubled, score = f" {text_terms} ", "", 0.0
    for term, value in worth.items():
        if (word := f" {term} ") in padded:
            # so that the blank between two of them counts for both
            doubled = doubled or padded.replace(" ", "  ")
            count = doubled.count(word)
            score += value * (0.5 + 0.5 * (count - 1) / (count + 2))
    return score


_ancestors: WeakKeyDictionary[Snapshot, dict[str, str]] = WeakKeyDictionary()
CANDIDATES = 200  # reports that full text proposes
THRESHOLD = 1.0  # a rating from which a report is relevant
FINDING = 500  # characters of a finding
READ = 40  # reports read in full at most
INCLUDED = 10.0  # added to the rating of reports that an `entity=` filter asks for
FLOOR = 0.2  # share of the question's words that the best report must cover to set the scale alone
# a parent is at least this much as relevant as its best child, else its branch would be cut
FROM_CHILD = 0.8
ANCESTORS = 3_000  # reports whose terms are remembered, some 3 MB


_ASKING = frozenset(terms(_WORDS["ASKING"]))
_FRAMING = frozenset(terms(_WORDS["FRAMING"]))
LITTLE = 0.15


@dataclass(slots=True)
class Rated:
    """A report that was looked at. `own` is the rating by its own words, `rating` with what its
    children lend."""

    id: str
    level: int
    parent: str
    childless: bool
    own: float
    rating: float
    weight: float
    rank: float


def included_first(snapshot: Snapshot, kept: Sequence[Rated], filters: Filters) -> list[Rated]:
    """Reports on the included entities before all others; where none was relevant, those of the
    finest communities."""
    ids = [row["id"] for row in filters.first]
    paths = snapshot.by_key("memberships", ids, "entity_id", ["path"])["path"].to_pylist()
    on = {id for path in paths for id in path}
    held = [one for one in kept if one.id in on]
    covered = {id for path in paths for id in path if any(one.id in path for one in held)}
    finest = [path[-1] for path in paths if path and path[-1] not in covered]
    every = all_rated(snapshot, "") if finest else {}
    held += [every[id] for id in dict.fromkeys(finest) if id in every]
    first = [replace(one, rating=INCLUDED + one.rating) for one in held]
    return [*first, *(one for one in kept if one.id not in on)]


def too_deep(snapshot: Snapshot, level: int) -> str:
    deepest = 0
    if level > 0:
        deepest = max(snapshot.rows("reports", "", ["level"])["level"].to_pylist(), default=0)
    return (
        f"There is no level {level}; the deepest, {deepest}, was used." if level > deepest else ""
    )


# ---- which reports -----------------------------------------------------------------------------


def select(snapshot: Snapshot, query: str, level: int = -1) -> tuple[list[Rated], dict[str, int]]:
    """The relevant reports, best first, and how many were rated, kept and pruned."""
    total = snapshot.count("reports")
    coverage = {"reports": total, "rated": 0, "kept": 0, "pruned": 0}
    if not total:
        return [], coverage
    worth = asked_about(snapshot, query)
    if worth is None:
        return _ranked_by_weight(snapshot, level, coverage)
    rated = _rate(snapshot, worth) if worth else {}
    if level >= 0:
        deepest = max((one.level for one in rated.values()), default=0)
        chosen = [one for one in rated.values() if _at_level(one, min(level, deepest))]
    else:
        chosen = _descend(rated)
    kept = [one for one in chosen if one.rating >= THRESHOLD]
    kept.sort(key=lambda one: (-round(one.rating, 6), -round(one.weight, 6), -one.rank, one.id))
    kept = kept[:READ]
    coverage.update(rated=len(rated), kept=len(kept), pruned=len(rated) - len(kept))
    return kept, coverage


def all_rated(snapshot: Snapshot, query: str) -> dict[str, Rated]:
    """Every report by id, with its lexical rating (0 where no word of the question is in it)."""
    worth = asked_about(snapshot, query)
    rated = _rate(snapshot, worth) if worth else {}
    rows = snapshot.rows("reports", "", context.NUMBERS).to_pylist()
    family = _family(snapshot, [row["id"] for row in rows])
    most = max((row["n_text_units"] for row in rows), default=0) or 1
    for row in rows:
        own, rating = (
            (rated[row["id"]].own, rated[row["id"]].rating) if row["id"] in rated else (0.0, 0.0)
        )
        rated[row["id"]] = Rated(
            row["id"],
            row["level"],
            *family.get(row["id"], ("", True)),
            own,
            rating,
            row["n_text_units"] / most,
            row["rank"],
        )
    return rated


def whole_level(snapshot: Snapshot, query: str, level: int) -> tuple[list[Rated], dict[str, int]]:
    """All reports of a level and the childless ones above it: nearest to the question first, then
    the weightiest."""
    every = all_rated(snapshot, query)
    deepest = max((one.level for one in every.values()), default=0)
    chosen = [one for one in every.values() if _at_level(one, min(level, deepest))]
    chosen.sort(key=lambda one: (-round(one.rating, 6), -round(one.weight, 6), -one.rank, one.id))
    return chosen, {"reports": len(every), "rated": 0, "kept": len(chosen), "pruned": 0}


def asked_about(snapshot: Snapshot, query: str) -> dict[str, float] | None:
    """The worth of the terms that say what is asked about; None for an empty or a wholly general
    question."""
    asked = query[: retrieval.QUERY_CHARACTERS]
    if OVERVIEW.search(asked):  # with one word that stays, so that those of grammar go
        asked = f"{ASKING_ELSEWHERE.sub(' ', OVERVIEW.sub(' ', asked))} corpus"
    wanted = query_terms(ASKING_HAN.sub(" ", asked.translate(SIMPLIFY)))
    if all(term in _ASKING or (is_cjk(term[0]) and stop_word(term)) for term in wanted):
        return None
    worth, unknown = ranking.term_worth(snapshot, wanted)
    worth = {term: value for term, value in worth.items() if term not in _ASKING}
    if worth.keys() <= _FRAMING:
        return None if (_FRAMING | _ASKING).issuperset(unknown) else worth
    return {term: value * (LITTLE if term in _FRAMING else 1) for term, value in worth.items()}


def _ranked_by_weight(
    snapshot: Snapshot, level: int, coverage: dict[str, int]
) -> tuple[list[Rated], dict[str, int]]:
    """No question: the reports of a level (the coarsest by default) by how much text they cover."""
    rows = snapshot.rows("reports", "", context.NUMBERS).to_pylist()
    family = _family(snapshot, [row["id"] for row in rows])
    most = max((row["n_text_units"] for row in rows), default=0) or 1
    deepest = max((row["level"] for row in rows), default=0)
    found = [_rated(row, family, 0.0, most) for row in rows]
    chosen = [one for one in found if _at_level(one, min(max(level, 0), deepest))]
    chosen.sort(key=lambda one: (-round(one.weight, 6), -one.rank, one.id))
    coverage.update(rated=0, kept=len(chosen[:READ]), pruned=0)
    return chosen[:READ], coverage


def _rated(row: Row, family: Mapping[str, tuple[str, bool]], rating: float, most: int) -> Rated:
    """`most`: text units of the report that has most."""
    parent, childless = family.get(row["id"], ("", True))
    weight = row["n_text_units"] / most
    return Rated(row["id"], row["level"], parent, childless, rating, rating, weight, row["rank"])


def _at_level(one: Rated, level: int) -> bool:
    """Level n is the communities of that level and the childless ones above it: each entity once."""
    return one.level == level or (one.level < level and one.childless)


def _family(snapshot: Snapshot, ids: Sequence[str]) -> dict[str, tuple[str, bool]]:
    """Parent ("" for a root) and whether childless, by id."""
    rows = snapshot.by_key("communities", ids, "id", context.FAMILY)
    alone = pc.equal(pc.list_value_length(rows["children"]), 0).to_pylist()
    pairs = zip(rows["parent"].to_pylist(), alone, strict=True)
    return dict(zip(rows["id"].to_pylist(), pairs, strict=True))


def _rate(snapshot: Snapshot, worth: Mapping[str, float]) -> dict[str, Rated]:
    """Reports proposed by full text, and all their ancestors, rated 0 to 5 on a scale set by the
    best of them."""
    whole = sum(worth.values())
    proposed = snapshot.full_text("reports", list(worth), CANDIDATES, ["id", "terms"])
    words = dict(zip(proposed["id"].to_pylist(), proposed["terms"].to_pylist(), strict=True))
    family = _family(snapshot, list(words))
    missing = {parent for parent, _ in family.values() if parent} - family.keys()
    while missing:  # at most the depth of the tree
        above = _family(snapshot, sorted(missing))
        family |= above
        missing = {parent for parent, _ in above.values() if parent} - family.keys()
    words |= _terms_of(snapshot, sorted(family.keys() - words.keys()))
    rows = snapshot.by_key("reports", list(words), "id", context.NUMBERS).to_pylist()
    similar = {row["id"]: similarity(words[row["id"]], worth) / whole for row in rows}
    scale = 5 / max(max(similar.values(), default=0.0), FLOOR)
    most = max((row["n_text_units"] for row in rows), default=0) or 1
    rated = {
        id: _rated(row, family, similar[id] * scale, most) for row in rows for id in [row["id"]]
    }
    for one in sorted(rated.values(), key=lambda one: (-one.level, one.id)):
        if one.parent in rated:
            rated[one.parent].rating = max(rated[one.parent].rating, FROM_CHILD * one.rating)
    return rated


def _terms_of(snapshot: Snapshot, ids: Sequence[str]) -> dict[str, str]:
    """The terms of reports, remembered: the ancestors of what is proposed are few, and the same
    every time."""
    held = _ancestors.setdefault(snapshot, {}) if type(snapshot) is Snapshot else {}
    missing = [id for id in ids if id not in held]
    rows = snapshot.by_key("reports", missing, "id", ["id", "terms"])
    fresh = dict(zip(rows["id"].to_pylist(), rows["terms"].to_pylist(), strict=True))
    found = {id: held.get(id, fresh.get(id)) for id in ids}
    if len(held) + len(fresh) > ANCESTORS:
        held.clear()
    held |= fresh
    return {id: one for id, one in found.items() if one is not None}


def _descend(rated: Mapping[str, Rated]) -> list[Rated]:
    """From the roots to the children of what is relevant; a parent is kept only where no child of
    it is relevant.

    When nothing on a frontier is relevant, the whole next level is looked at before giving up,
    twice at most."""
    children: dict[str, list[Rated]] = {}
    for one in rated.values():
        children.setdefault(one.parent if one.parent in rated else "", []).append(one)
    kept: list[Rated] = []
    frontier = children.get("", [])
    fallback = 0
    while frontier:
        following: list[Rated] = []
        relevant = [one for one in frontier if one.rating >= THRESHOLD]
        if not relevant and not kept and fallback < 2:
            fallback += 1
            relevant = frontier
        for one in relevant:
            least = max(THRESHOLD, FROM_CHILD * one.own)
            below = [child for child in children.get(one.id, []) if child.rating >= least]
            following += below
            if not below and one.rating >= THRESHOLD:
                kept.append(one)
        frontier = following
    return kept


# ---- their findings ----------------------------------------------------------------------------


def finding_items(
    snapshot: Snapshot, query: str, kept: Sequence[Rated]
) -> tuple[list[Item], list[str]]:
    """Findings as items, best first, and the aliases of their communities."""
    found = ranked(snapshot, asked_about(snapshot, query) or {}, kept)
    aliases, cited = context.resolve_references(snapshot, [one[4] for one in found])
    items = []
    for score, _, number, row, text in found:
        shown = render_references(text, aliases)
        alias = f"c{row['n']}"
        places = [place for id, place in cited.items() if f"{id})" in shown or f"{id}," in shown]
        at = {"score": round(min(score / 100, 1.0), 3), "line_start": 0, "line_end": 0}
        scored = tuple(place.model_copy(update=at) for place in places[:5])
        line = f"- {shown} ({one_line(row['title'], 60)}, {alias})"
        items.append(Item(f"{alias}.{number}", line, None, "Points", score, also=scored))
    return items, list(dict.fromkeys(f"c{one[3]['n']}" for one in found))


def ranked(snapshot: Snapshot, worth: Mapping[str, float], kept: Sequence[Rated]) -> list[Finding]:
    """Findings, best first: two thirds the report's rating, one third the finding's own words."""
    whole = sum(worth.values()) or 1.0
    rating = {one.id: one.rating for one in kept}
    found: list[Finding] = []
    for place, row in enumerate(snapshot.served("reports", [one.id for one in kept], REPORT)):
        findings = context.findings(row) or [
            {"summary": row["title"], "explanation": row["summary"]}
        ]
        for number, one in enumerate(
            findings, 1
        ):  # of equal points those of the weightier report first
            text, words = _point(str(one.get("summary", "")), str(one.get("explanation", "")))
            own = min(1.0, similarity(words, worth) / whole) if worth else 1 / number
            found.append((20 * rating[row["id"]] * 2 / 3 + 100 * own / 3, place, number, row, text))
    return sorted(found, key=lambda one: (-round(one[0], 6), one[1], one[2]))


def passing(
    snapshot: Snapshot, found: Sequence[Finding], documents: Collection[str]
) -> list[Finding]:
    """The points with only those statements that cite a document that passes, or no text at all: a
    report on a wide community tells of many documents."""
    wanted = {id for one in found for id in referenced_ids(one[4]).get("Sources", ())}
    units = None
    if wanted:
        units = snapshot.by_key("text_units", sorted(wanted), "id", ["id", "document_id"])
    pairs = (
        zip(units["id"].to_pylist(), units["document_id"].to_pylist(), strict=True) if units else ()
    )
    fits = {id for id, document in pairs if document in documents}
    kept = []
    for score, place, number, row, text in found:
        told = [
            one
            for one in _TOLD.split(text)
            if not (ids := referenced_ids(one).get("Sources")) or not fits.isdisjoint(ids)
        ]
        if told:
            kept.append((score, place, number, row, " ".join(told)))
    return kept


@lru_cache(maxsize=2_000)
def _point(summary: str, explanation: str) -> tuple[str, str]:
    """A finding on one line, whole statements with their references, without the summary where they
    begin with it; and its terms. Remembered, because reports of large communities come with every
    question."""
    limit = FINDING
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
    # each id has some ten terms, of which none says anything
    return text, " ".join(terms(_IDS.sub("", text)))
