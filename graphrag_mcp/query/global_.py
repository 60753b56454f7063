"""Global search: what the corpus as a whole says about a question, from its community reports.

Takes a snapshot and a question; gives the findings of the best-rated reports as cited points. Without a model a
report is rated 0 to 5 by how much of the question its words cover, the best report of the tree setting the
scale, so that a vague question over a small corpus still finds its communities. With a model (query/map_reduce.py)
it rates, reads and answers. Knows no passages but those cited.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import pyarrow.compute as pc

from graphrag_mcp.lexicon_variants import SIMPLIFY
from graphrag_mcp.pack import (
    Item,
    Section,
    clamp_budget,
    compose,
    cost,
    finish,
    one_line,
    read_cursor,
    write_cursor,
)
from graphrag_mcp.query import context, fused
from graphrag_mcp.query.asking import ASKING_ELSEWHERE, ASKING_HAN, OVERVIEW
from graphrag_mcp.query.modes import narrowed, told
from graphrag_mcp.query.points import communities_of, passing, point_items, ranked, similarity
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text import is_cjk, query_terms, stop_word, terms
from graphrag_mcp.types import SearchResult

if TYPE_CHECKING:
    from graphrag_mcp.ask import Asker
    from graphrag_mcp.query.filters import Filters

Row = dict[str, Any]
_ancestors: WeakKeyDictionary[Snapshot, dict[str, str]] = WeakKeyDictionary()
DEFAULT_TOKENS = 6_000
CANDIDATES = 200  # reports that full text proposes
THRESHOLD = 1.0  # a rating from which a report is relevant
READ = 40  # reports read in full at most
INCLUDED = 10.0  # added to the rating of reports that an `entity=` filter asks for
THEMES = 8  # titles shown when no report is relevant
FLOOR = 0.2  # share of the question's words that the best report must cover to set the scale alone
FROM_CHILD = 0.8  # a parent is at least this much as relevant as its best child, else its branch would be cut
POINT = 100  # tokens of a point with its citations: about so many are made at a time
ENOUGH = 1.6  # budgets of points that are made: what several of them cite is paid for once
ANCESTORS = 3_000  # reports whose terms are remembered, some 3 MB


# Words about the asking, not about what is asked: "What is said about X?" is about X.
_ASKING = frozenset(terms(
    "say says said tell tells told describe described description mention mentioned discuss discussed explain give "
    "list main major key important overall general common theme themes topic topics subject subjects point points "
    "overview summary summarize summarise corpus document documents text texts dataset collection content contents "
))  # fmt: skip


@dataclass(slots=True)
class Rated:
    """A report that was looked at. `own` is the rating by its own words, `rating` with what its children lend."""

    id: str
    level: int
    parent: str
    childless: bool
    own: float
    rating: float
    weight: float
    rank: float


def global_search(
    snapshot: Snapshot, query: str, *, level: int = -1, max_tokens: int = DEFAULT_TOKENS, cursor: str = "",
    response_format: str = "concise", filters: Sequence[str] = (), min_rating: float = 0.0,
    history: Sequence[str] = (), explain: bool = False, asker: Asker | None = None, answer: bool = False,
    response_type: str = "", instructions: str = "", general_knowledge: bool = False,
    on_text: Callable[[str], None] | None = None, seconds: float = 0.0,
) -> SearchResult:  # fmt: skip
    """Points from community reports, and with `answer` what a model makes of the reports.

    level -1 goes down the tree where it is relevant; n takes that level. `filters` and `min_rating` leave reports out
    before any is chosen. `seconds`: how long to wait for the model, 0 for as long as it takes. A later page has points
    alone.
    """
    budget, note = clamp_budget(max_tokens, DEFAULT_TOKENS)
    nothing = context.empty_corpus(snapshot, "global")
    if nothing is not None:
        return finish(nothing, budget)
    query = query.strip()
    settings = (level, response_format, explain, [*filters, min_rating])
    turns, looked_for, before = with_history(history, query, budget)
    asked, generation = f"global|{looked_for}|{settings}", snapshot.manifest.generation
    offset = read_cursor(cursor, generation, asked, 1)
    if offset is None:
        return finish(context.stale(snapshot, "global"), budget)
    narrowing, snapshot = narrowed(snapshot, filters, min_rating)
    kept, coverage = select(snapshot, looked_for, level)
    if narrowing is not None:
        coverage["passing"] = snapshot.rows("reports", "", ["id"]).num_rows
    if narrowing is not None and narrowing.first:
        kept = included_first(snapshot, kept, narrowing)
    result = SearchResult(mode="global", corpus=snapshot.manifest.corpus, coverage=coverage)
    stale = "Communities are being brought up to date." if "communities" in snapshot.manifest.stale else ""
    result.hint = " ".join(filter(None, [told(note, narrowing), stale, too_deep(snapshot, level)]))

    def page(after: tuple[int, ...]) -> str:
        return write_cursor(generation, asked, after)

    if answer and query and coverage["reports"] and not cursor.strip():
        from graphrag_mcp.query.map_reduce import Wish, with_answer

        wish = Wish(response_type, instructions, general_knowledge, on_text, seconds, before)
        return with_answer(snapshot, query, level, result, kept, budget, page, asker, wish)
    if not kept:
        return finish(nothing_said(snapshot, result, level), budget)
    detailed = response_format == "detailed"
    found = ranked(snapshot, asked_about(snapshot, looked_for) or {}, kept, detailed)
    if narrowing is not None and narrowing.documents is not None:
        found = passing(snapshot, found, narrowing.documents)
        if not found:
            return finish(nothing_said(snapshot, result, level), budget)
    result.communities = communities_of(found)[:20]
    items: list[Item] = []
    while (at := offset[0] + len(items)) < len(found) and sum(map(cost, items)) <= ENOUGH * budget:
        items += point_items(snapshot, found[at : at + max(8, budget // POINT)], kept, detailed, explain)
    section = Section("Points", items, 1.0, offset[0], more=offset[0] + len(items) < len(found))
    result = compose(result, [section], budget, page, intro="" if cursor.strip() else before, first="Points")
    return finish(result, budget)


def with_history(history: Sequence[str], query: str, budget: int) -> tuple[list[str], str, str]:
    """The user turns, the question with the names that they add, and their block."""
    if not history:
        return [], query, ""
    from graphrag_mcp.query import history as earlier

    turns = earlier.user_turns(history)
    return turns, " ".join([query, *earlier.keywords(turns, query)] if query else []), earlier.block(turns, budget)


def included_first(snapshot: Snapshot, kept: Sequence[Rated], filters: Filters) -> list[Rated]:
    """Reports on the included entities before all others; where none was relevant, those of the finest communities."""
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
    """A sentence when there is no such level."""
    deepest = max(snapshot.rows("reports", "", ["level"])["level"].to_pylist(), default=0) if level > 0 else 0
    return f"There is no level {level}; the deepest, {deepest}, was used." if level > deepest else ""


def nothing_said(snapshot: Snapshot, result: SearchResult, level: int) -> SearchResult:
    """No report shares a word with the question: say so, and what the reports do speak of, to ask again with."""
    result.state, total = "not_found", result.coverage["reports"]
    said = f"none of the {total} community reports speaks of this" if total else "there is no community report yet"
    if "passing" in result.coverage:
        said += f" and passes the filters ({result.coverage['passing']} pass)"
    result.text = f"In corpus {result.corpus} {said}."
    listed: list[str] = []
    if total:
        weighty, _ = _ranked_by_weight(snapshot, level, {})
        rows = context.rows(snapshot, "reports", [one.id for one in weighty[:THEMES]])
        result.communities = [f"c{row['n']}" for row in rows]
        listed = [f"- [c{row['n']}] {one_line(row['title'], 120)}" for row in rows]
        result.text += "\n".join(["", "The weightiest of them are about:", *listed] if listed else [])
    advice = "Ask with names or words from these titles, or use local_search."
    if not listed and "passing" in result.coverage:
        advice = "Ask again with other filters, or without."
    result.hint = " ".join(filter(None, [result.hint, advice]))
    return result


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
    rows = context.every(snapshot, "reports", context.NUMBERS).to_pylist()
    family = _family(snapshot, [row["id"] for row in rows])
    most = max((row["n_text_units"] for row in rows), default=0) or 1
    for row in rows:
        own, rating = (rated[row["id"]].own, rated[row["id"]].rating) if row["id"] in rated else (0.0, 0.0)
        rated[row["id"]] = Rated(
            row["id"], row["level"], *family.get(row["id"], ("", True)), own, rating, row["n_text_units"] / most,
            row["rank"],
        )  # fmt: skip
    return rated


def whole_level(snapshot: Snapshot, query: str, level: int) -> tuple[list[Rated], dict[str, int]]:
    """All reports of a level and the childless ones above it: nearest to the question first, then the weightiest."""
    every = all_rated(snapshot, query)
    deepest = max((one.level for one in every.values()), default=0)
    chosen = [one for one in every.values() if _at_level(one, min(level, deepest))]
    chosen.sort(key=lambda one: (-round(one.rating, 6), -round(one.weight, 6), -one.rank, one.id))
    return chosen, {"reports": len(every), "rated": 0, "kept": len(chosen), "pruned": 0}


def asked_about(snapshot: Snapshot, query: str) -> dict[str, float] | None:
    """The worth of the terms that say what is asked about; None for an empty or a wholly general question."""
    asked = query[: fused.QUERY_CHARACTERS]
    if OVERVIEW.search(asked):  # with one word that stays, so that those of grammar go
        asked = f"{ASKING_ELSEWHERE.sub(' ', OVERVIEW.sub(' ', asked))} corpus"
    wanted = query_terms(ASKING_HAN.sub(" ", asked.translate(SIMPLIFY)))
    if all(term in _ASKING or (is_cjk(term[0]) and stop_word(term)) for term in wanted):
        return None
    worth, _ = fused.term_worth(snapshot, wanted)
    return {term: value for term, value in worth.items() if term not in _ASKING}


def _ranked_by_weight(snapshot: Snapshot, level: int, coverage: dict[str, int]) -> tuple[list[Rated], dict[str, int]]:
    """No question: the reports of a level (the coarsest by default) by how much text they cover."""
    rows = context.every(snapshot, "reports", context.NUMBERS).to_pylist()
    family = _family(snapshot, [row["id"] for row in rows])
    most = max((row["n_text_units"] for row in rows), default=0) or 1
    deepest = max((row["level"] for row in rows), default=0)
    found = [
        Rated(id, row["level"], *family.get(id, ("", True)), 0.0, 0.0, row["n_text_units"] / most, row["rank"])
        for row in rows for id in [row["id"]]
    ]  # fmt: skip
    chosen = [one for one in found if _at_level(one, min(max(level, 0), deepest))]
    chosen.sort(key=lambda one: (-round(one.weight, 6), -one.rank, one.id))
    coverage.update(rated=0, kept=len(chosen[:READ]), pruned=0)
    return chosen[:READ], coverage


def _at_level(one: Rated, level: int) -> bool:
    """Level n is the communities of that level and the childless ones above it: each entity once."""
    return one.level == level or (one.level < level and one.childless)


def _family(snapshot: Snapshot, ids: Sequence[str]) -> dict[str, tuple[str, bool]]:
    """Parent ("" for a root) and whether childless, by id."""
    rows = context.light(snapshot, "communities", ids, context.FAMILY)
    alone = pc.equal(pc.list_value_length(rows["children"]), 0).to_pylist()
    pairs = zip(rows["parent"].to_pylist(), alone, strict=True)
    return dict(zip(rows["id"].to_pylist(), pairs, strict=True))


def _rate(snapshot: Snapshot, worth: Mapping[str, float]) -> dict[str, Rated]:
    """Reports proposed by full text, and all their ancestors, rated 0 to 5 on a scale set by the best of them."""
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
    rows = context.light(snapshot, "reports", list(words), context.NUMBERS).to_pylist()
    similar = {row["id"]: similarity(words[row["id"]], worth) / whole for row in rows}
    scale = 5 / max(max(similar.values(), default=0.0), FLOOR)
    most = max((row["n_text_units"] for row in rows), default=0) or 1
    rated = {
        row["id"]: Rated(
            row["id"], row["level"], *family.get(row["id"], ("", True)), similar[row["id"]] * scale,
            similar[row["id"]] * scale, row["n_text_units"] / most, row["rank"],
        )
        for row in rows
    }  # fmt: skip
    for one in sorted(rated.values(), key=lambda one: (-one.level, one.id)):
        if one.parent in rated:
            rated[one.parent].rating = max(rated[one.parent].rating, FROM_CHILD * one.rating)
    return rated


def _terms_of(snapshot: Snapshot, ids: Sequence[str]) -> dict[str, str]:
    """The terms of reports, remembered: the ancestors of what is proposed are few, and the same every time."""
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
    """From the roots to the children of what is relevant; a parent is kept only where no child of it is relevant.

    When nothing on a frontier is relevant, the whole next level is looked at before giving up, twice at most.
    """
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


# ---- points ------------------------------------------------------------------------------------


def points(
    snapshot: Snapshot, query: str, kept: Sequence[Rated], detailed: bool, explain: bool = False
) -> tuple[list[Item], list[str]]:
    """Findings as items, best first, and the aliases of their communities."""
    found = ranked(snapshot, asked_about(snapshot, query) or {}, kept, detailed)
    return point_items(snapshot, found, kept, detailed, explain), communities_of(found)
