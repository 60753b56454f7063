"""Local search: the passages that answer a question, with the entities, relationships, claims and reports around them.

Takes a snapshot, a question and a budget; gives a `SearchResult` whose text is ready for a model to read and
whose citations stand in the order of the fused ranking. An empty question gives an overview. Knows no chat model: an
answer, where one is wanted, is added by query/answer.py to what was found.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from graphrag_mcp.errors import BadInput
from graphrag_mcp.extract import extract
from graphrag_mcp.pack import Item, Section, clamp_budget, compose, finish, outgoing, read_cursor, write_cursor
from graphrag_mcp.query import context, fused, modes
from graphrag_mcp.query.fused import Retrieved
from graphrag_mcp.query.modes import missing
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.types import SearchResult

if TYPE_CHECKING:
    from graphrag_mcp.ask import Asker
    from graphrag_mcp.query.answer import Meter
    from graphrag_mcp.query.filters import Filters

DEFAULT_TOKENS = 6_000
RELATIONSHIPS_PER_ENTITY = 10
REPORTS = 10
HUB = 500  # an entity of more relationships adds none from outside the selection
SMALL, SMALL_SOURCES = 3_000, 0.8  # with so few tokens text counts most; entities are then named, not described
LISTED = 400  # tokens of the budget for which the detailed format lists one more candidate of each kind
ORDER = ("Sources", "Entities", "Relationships", "Claims", "Reports")  # of offsets in a cursor, and of concise blocks
DETAILED = ("Reports", "Entities", "Relationships", "Claims", "Sources")
HEADERS = {
    "Reports": "id|title|occurrence weight|content|rank",
    "Entities": "id|entity|description|number of relationships",
    "Relationships": "id|source|target|description|weight|links",
    "Claims": context.CLAIMS,
}


def local_search(
    snapshot: Snapshot, query: str, *, max_tokens: int = DEFAULT_TOKENS, response_format: str = "concise",
    cursor: str = "", shares: Mapping[str, float] | None = None, keywords: Sequence[str] = (),
    filters: Sequence[str] = (), min_rating: float = 0.0, history: Sequence[str] = (), explain: bool = False,
    mode: str = "local", asker: Asker | None = None, answer: bool = False, response_type: str = "",
    instructions: str = "", general_knowledge: bool = False, on_text: Callable[[str], None] | None = None,
    seconds: float = 0.0,
) -> SearchResult:  # fmt: skip
    """Cited context for a question, and with `answer` what a model makes of it.

    `shares` of the budget by section replace the usual ones (at most 1 in all). `keywords` are looked for beside the
    question. `asker` embeds the question where it can, and is asked for no words without `answer`. `mode`: local and
    fused are the whole, hybrid leaves out plain text, basic is ten passages. `seconds`: how long to wait for the
    model, 0 for as long as it takes; a later page has no answer.
    """
    began = time.monotonic()
    budget, note = clamp_budget(max_tokens, DEFAULT_TOKENS)
    if mode not in modes.MODES:
        raise BadInput(f"there is no search mode {mode[:40]!r}", f"Use one of {', '.join(modes.MODES)}")
    nothing = context.empty_corpus(snapshot, mode)
    if nothing is not None:
        return finish(nothing, budget)
    query, detailed = query.strip(), response_format == "detailed"
    meter = None
    turns, keywords = with_history(history, query, keywords)
    if answer and query and asker is not None and not keywords:
        meter, keywords = _model_keywords(asker, snapshot, query, seconds)
    settings = (response_format, mode, explain, sorted((shares or {}).items()), [*filters, min_rating], [*keywords])
    asked, generation = f"{mode}|{query}|{settings}|{turns}", snapshot.manifest.generation
    offsets = read_cursor(cursor, generation, asked, len(ORDER))
    if offsets is None:
        return finish(context.stale(snapshot, mode), budget)
    kept, snapshot = modes.narrowed(snapshot, filters, min_rating)
    note = modes.told(note, kept)
    vector, unembedded = modes.vector_of(asker, snapshot, query)
    found = modes.find(snapshot, query, mode=mode, keywords=keywords, filters=kept, vector=vector, asker=asker)
    if not found.passages or (not keywords and not (kept and kept.first) and modes.unheard_of(found)):
        return _nothing(snapshot, query, found, budget, note, kept)
    result = SearchResult(mode=mode, corpus=snapshot.manifest.corpus, coverage=dict(found.considered))
    long = context.query_length_note(query, fused.QUERY_CHARACTERS)
    result.hint = " ".join(filter(None, [note, long, unembedded, missing(found, query)]))
    sections = sections_of(snapshot, found, budget, detailed, offsets, shares, filters=kept, explain=explain, mode=mode)
    before = block(turns, budget) if not cursor.strip() else ""

    def page(after: tuple[int, ...]) -> str:
        reached = {section.name: offset for section, offset in zip(sections, after, strict=True)}
        return write_cursor(generation, asked, [reached.get(name, 0) for name in ORDER])

    if not answer or not query or cursor.strip():
        if detailed and mode != "basic":
            return _with_candidates(result, sections, budget, page, before, snapshot, found, kept)
        return compose(result, sections, budget, page, intro=before)
    from graphrag_mcp.query.answer import Wish, with_answer

    left = max(seconds - (time.monotonic() - began), 0.05) if seconds else 0.0
    wish = Wish(response_type, instructions, general_knowledge, on_text, left, before)
    return with_answer(
        result, sections, budget, page, snapshot=snapshot, query=query, asker=asker, wish=wish, meter=meter
    )


def _nothing(
    snapshot: Snapshot, query: str, found: Retrieved, budget: int, note: str, filters: Filters | None
) -> SearchResult:
    """No passage: an overview when nothing was asked, else an honest nothing."""
    from graphrag_mcp.query.overview import not_found, overview

    if not query and not (filters and filters.first):
        return overview(snapshot, budget, note)
    return not_found(snapshot, query, found, budget, note, filters)


def with_history(
    history: Sequence[str], query: str, keywords: Sequence[str]
) -> tuple[list[str], Sequence[str]]:
    """The user turns, and the keywords with the names that earlier turns add."""
    if not history:
        return [], keywords
    from graphrag_mcp.query import history as earlier

    turns = earlier.user_turns(history)
    return turns, [*keywords, *earlier.keywords(turns, query)] if query else keywords


def block(turns: Sequence[str], budget: int) -> str:
    if not turns:
        return ""
    from graphrag_mcp.query import history as earlier

    return earlier.block(turns, budget)


# ---- sections ----------------------------------------------------------------------------------


def sections_of(
    snapshot: Snapshot, found: Retrieved, budget: int, detailed: bool = False,
    offsets: Sequence[int] = (0,) * len(ORDER), shares: Mapping[str, float] | None = None, *,
    filters: Filters | None = None, explain: bool = False, mode: str = "local", window: int = 0,
) -> list[Section]:  # fmt: skip
    """Sources, entities, relationships, claims and reports in the order of reading; concise begins with the sources."""
    share = dict(shares) if shares else _shares(budget, detailed)
    parts = {"Sources": _sources(snapshot, found, offsets[0], budget, share.get("Sources", 0.0), explain, window)}
    if mode != "basic":
        wanted = None if detailed else modes.ENTITIES  # the list of candidates names more
        chosen = modes.chosen(snapshot, found, filters, wanted)[: modes.ENTITIES]
        claims = context.claims_about(snapshot, chosen)
        listed = {
            "Entities": context.entity_items(chosen, detailed, budget > SMALL),
            "Relationships": _relationships(snapshot, chosen, filters) if detailed else [],
            "Claims": claims,
            "Reports": _reports(snapshot, chosen) if share.get("Reports") else [],
        }
        if explain:
            listed = _explained(snapshot, found, listed, chosen, filters)
        for at, name in enumerate(ORDER[1:], 1):
            header = HEADERS[name] if detailed or name != "Entities" else ""
            items = listed[name][offsets[at] :]
            greedy = detailed or budget <= SMALL or name not in ("Entities", "Claims")
            parts[name] = Section(name, items, share.get(name, 0.0), offsets[at], header, greedy=greedy)
    return [parts[name] for name in (DETAILED if detailed else ORDER) if name in parts]


def _shares(budget: int, detailed: bool) -> dict[str, float]:
    """Reports 0.15, text 0.5, the rest for entities, relationships and claims; what one does not use goes to the
    text."""
    if budget <= SMALL and not detailed:
        return {"Sources": 1.0}  # others take what is too little for one more passage
    if budget <= SMALL:
        return {"Sources": SMALL_SOURCES, "Entities": 0.05, "Relationships": 0.05, "Claims": 0.05, "Reports": 0.05}
    usual = {"Sources": 0.5, "Entities": 0.15, "Relationships": 0.15, "Claims": 0.05}
    return usual | {"Reports": 0.15} if detailed else usual


def _sources(
    snapshot: Snapshot, found: Retrieved, start: int, budget: int, share: float, explain: bool, window: int
) -> Section:
    """The passages of the ranking from `start` on, as many as could fit, and `window` more."""
    stop = start + window + max(8, budget // 90)  # a citation alone costs nearly as much
    chosen = found.passages[start:stop]
    scored = [(one.id, one.score) for one in chosen]
    if explain or window:
        items, places = context.passage_items(snapshot, scored)
    else:
        items, places, read = context.enough_items(snapshot, scored, budget)
        stop = min(stop, start + read)
    if explain:
        from graphrag_mcp.query import why

        said = why.of_passages(snapshot, found, [one.id for one in chosen])
        items = [why.explained(item, said[chosen[at].id]) for item, at in zip(items, places, strict=True)]
    return Section(
        "Sources", items, share, start, places=[start + place for place in places], more=stop < len(found.passages),
        cut=partial(context.excerpt, worth=found.terms) if not explain else None,
    )  # fmt: skip


def _reports(snapshot: Snapshot, chosen: Sequence[Mapping[str, Any]]) -> list[Item]:
    """Reports of the communities that hold most of the chosen entities, then by rank."""
    members = snapshot.by_key("memberships", [row["id"] for row in chosen], "entity_id", ["entity_id", "path"])
    held: Counter[str] = Counter()
    for path in members["path"].to_pylist():
        held.update(path)
    light = snapshot.by_key("reports", list(held), "id", ["id", "rank", "level", "n_text_units"]).to_pylist()
    light.sort(key=lambda row: (-held[row["id"]], -row["rank"], -row["level"], row["id"]))
    most = max((row["n_text_units"] for row in light), default=0) or 1
    occurrence = {row["id"]: row["n_text_units"] / most for row in light}
    found = context.rows(snapshot, "reports", [row["id"] for row in light[:REPORTS]])
    items = context.report_items(snapshot, found, occurrence)
    return [replace(item, score=held[row["id"]]) for item, row in zip(items, found, strict=True)]


def _relationships(
    snapshot: Snapshot, chosen: Sequence[Mapping[str, Any]], filters: Filters | None = None
) -> list[Item]:
    """All relationships between chosen entities; then outward ones, by how many chosen ones they link, by weight."""
    inside = {row["id"] for row in chosen}
    names = ["id", "source_id", "target_id", "weight"]
    open_ids = [row["id"] for row in chosen if row["degree"] <= HUB]
    every, some = _listed([row["id"] for row in chosen]), _listed(open_ids)
    where = f"(source_id IN ({every}) AND target_id IN ({every}))"
    if open_ids:
        where += f" OR source_id IN ({some}) OR target_id IN ({some})"
    light = snapshot.rows("relationships", where, names).to_pylist() if chosen else []
    if filters is not None and filters.without:
        light = [row for row in light if filters.without.isdisjoint((row["source_id"], row["target_id"]))]
    links: Counter[str] = Counter()
    for row in light:
        links.update(end for end in (row["source_id"], row["target_id"]) if end not in inside)
    linked = {row["id"]: max(links[row["source_id"]], links[row["target_id"]]) for row in light}
    network = [row for row in light if row["source_id"] in inside and row["target_id"] in inside]
    outward = [row for row in light if row["source_id"] not in inside or row["target_id"] not in inside]
    network.sort(key=lambda row: (-row["weight"], row["id"]))
    outward.sort(key=lambda row: (-linked[row["id"]], -row["weight"], row["id"]))
    kept = network + outward[: RELATIONSHIPS_PER_ENTITY * len(chosen)]
    found = context.rows(snapshot, "relationships", [row["id"] for row in kept])
    ends = list(dict.fromkeys(end for row in found for end in (row["source_id"], row["target_id"])))
    titles = snapshot.by_key("entities", ends, "id", ["id", "title"])
    named = dict(zip(titles["id"].to_pylist(), titles["title"].to_pylist(), strict=True))
    return context.relationship_items(found, named, linked)


def _explained(
    snapshot: Snapshot, found: Retrieved, listed: Mapping[str, list[Item]], chosen: Sequence[Mapping[str, Any]],
    filters: Filters | None,
) -> dict[str, list[Item]]:  # fmt: skip
    """Every item with why it is there; sources have theirs already."""
    from graphrag_mcp.query import why

    first = [row["id"] for row in filters.first] if filters else []
    scored = fused.entities(snapshot, found, modes.ENTITIES * modes.OVERSAMPLED) if found.terms else []
    said = why.of_entities(scored, first)
    entities = [
        why.explained(item, said.get(row["id"], "refilled after others were left out"))
        for item, row in zip(listed["Entities"], chosen, strict=True)
    ]
    relationships = [
        why.explained(item, f"outside, linked to {links} chosen entities" if links else "joins two chosen entities")
        for item in listed["Relationships"] for links in [int(item.text.rpartition("|")[2])]
    ]  # fmt: skip
    reports = [why.explained(item, f"holds {item.score:g} of the chosen entities") for item in listed["Reports"]]
    claims = [why.explained(item, "about a chosen entity") for item in listed["Claims"]]
    return {"Entities": entities, "Relationships": relationships, "Claims": claims, "Reports": reports}


def _with_candidates(
    result: SearchResult, sections: Sequence[Section], budget: int, page: Callable[[tuple[int, ...]], str],
    before: str, snapshot: Snapshot, found: Retrieved, filters: Filters | None,
) -> SearchResult:  # fmt: skip
    """As `pack.compose`, with the list of what was considered, each marked as in the context or not."""
    most = min(max(budget // LISTED, 6), 20)
    entities = [f"e{row['n']}" for row in modes.chosen(snapshot, found, filters)][:most]
    window = [(one.id, one.score) for one in found.passages[:most]]
    sources = [item.id for item in context.passage_items(snapshot, window)[0]]
    wanted = [*entities, *sources] if budget > SMALL else []
    room = 23 * len(wanted) + 30 * bool(wanted)
    result = compose(result, sections, budget - room, page, intro=before)
    shown = {item.id for section in sections for item in section.items if _stands(item.id, result.text)}
    result.candidates = [{"id": id, "in_context": id in shown} for id in wanted]
    block = [", ".join(id for id in wanted if (id in shown) is inside) or "none" for inside in (True, False)]
    text = result.text
    if wanted:
        result.text = f"{text}\n\n## Candidates\nin context: {block[0]}\nnot in context: {block[1]}"
    if outgoing(result) > budget:
        result.text, result.candidates = text, []
    return finish(result, budget)


def _stands(id: str, text: str) -> bool:
    """Does the item with this id stand in the text, at the head of its line or behind the one that it was joined to?"""
    return any(mark in text for mark in (f"\n{id}|", f"\n[{id}] ", f"\n- [{id}] ", f"] [{id}] "))


def _listed(ids: Sequence[str]) -> str:
    return ", ".join(f"'{id}'" for id in ids)


def _model_keywords(asker: Asker, snapshot: Snapshot, query: str, seconds: float) -> tuple[Meter, Sequence[str]]:
    """Keywords from a model, where the extractor finds no name in the question: then words alone would decide."""
    from graphrag_mcp.query.answer import Meter, keywords_of

    meter = Meter(asker)
    named = any(mention.strong for mention in extract(query[: fused.NAME_CHARACTERS]))
    return meter, () if named else keywords_of(asker, query, snapshot.folder, seconds)
