"""Local search: the passages that answer a question, with the entities, relationships and reports around them.

Takes a snapshot, a question and a budget; gives a `SearchResult` whose text is ready for a model to read and
whose citations stand in the order of the fused ranking. An empty question gives an overview. Knows no model: an
answer, where one is wanted, is added by query/answer.py to what was found.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphrag_mcp.extract import extract
from graphrag_mcp.pack import Item, Section, clamp_budget, compose, finish, read_cursor, write_cursor
from graphrag_mcp.query import context, fused
from graphrag_mcp.query.fused import Retrieved
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.types import SearchResult

if TYPE_CHECKING:
    from graphrag_mcp.ask import Asker
    from graphrag_mcp.query.answer import Meter

DEFAULT_TOKENS = 6_000
ENTITIES = 10
RELATIONSHIPS_PER_ENTITY = 10
REPORTS = 10
HUB = 500  # an entity of more relationships adds none from outside the selection
SMALL, SMALL_SOURCES = 3_000, 0.8  # with so few tokens text counts most
HEADERS = {
    "Reports": "id|title|occurrence weight|content|rank",
    "Entities": "id|entity|description|number of relationships",
    "Relationships": "id|source|target|description|weight|links",
}


def local_search(
    snapshot: Snapshot, query: str, *, max_tokens: int = DEFAULT_TOKENS, response_format: str = "concise",
    cursor: str = "", shares: Mapping[str, float] | None = None, keywords: Sequence[str] = (),
    asker: Asker | None = None, answer: bool = False, response_type: str = "", instructions: str = "",
    general_knowledge: bool = False, on_text: Callable[[str], None] | None = None, seconds: float = 0.0,
) -> SearchResult:  # fmt: skip
    """Cited context for a question, and with `answer` what a model makes of it.

    `shares` of the budget by section replace the usual ones (at most 1 in all). `keywords` are looked for beside the
    question. `seconds`: how long to wait for the model, 0 for as long as it takes; a later page has no answer.
    """
    began = time.monotonic()
    budget, note = clamp_budget(max_tokens, DEFAULT_TOKENS)
    nothing = context.empty_corpus(snapshot, "local")
    if nothing is not None:
        return finish(nothing, budget)
    query = query.strip()
    meter = None
    if answer and query and asker is not None and not keywords:
        meter, keywords = _model_keywords(asker, snapshot, query, seconds)
    asked = f"local|{response_format}|{sorted((shares or {}).items())}|{query}" + "".join(f"|{one}" for one in keywords)
    generation = snapshot.manifest.generation
    offsets = read_cursor(cursor, generation, asked, 4)
    if offsets is None:
        return finish(context.stale(snapshot, "local"), budget)
    if not query:
        return overview(snapshot, budget, note)
    found = fused.retrieve(snapshot, query, keywords=keywords)
    if not found.passages:
        return not_found(snapshot, query, found, budget, note)
    result = SearchResult(mode="local", corpus=snapshot.manifest.corpus, coverage=dict(found.considered))
    long = context.query_length_note(query, fused.QUERY_CHARACTERS)
    result.hint = " ".join(filter(None, [note, long, missing(found)]))
    detailed = response_format == "detailed"
    sections = sections_of(snapshot, found, budget, detailed, offsets, shares)

    def page(after: tuple[int, ...]) -> str:
        return write_cursor(generation, asked, after if detailed else after[::-1])

    if not answer or cursor.strip():
        return compose(result, sections, budget, page)
    from graphrag_mcp.query.answer import Wish, with_answer

    left = max(seconds - (time.monotonic() - began), 0.05) if seconds else 0.0
    wish = Wish(response_type, instructions, general_knowledge, on_text, left)
    return with_answer(
        result, sections, budget, page, snapshot=snapshot, query=query, asker=asker, wish=wish, meter=meter
    )


def sections_of(
    snapshot: Snapshot, found: Retrieved, budget: int, detailed: bool = False, offsets: Sequence[int] = (0, 0, 0, 0),
    shares: Mapping[str, float] | None = None,
) -> list[Section]:  # fmt: skip
    """Reports, Entities, Relationships, Sources, in the order of reading; concise begins with the sources."""
    share = dict(shares) if shares else _shares(budget, detailed)
    start = offsets[3]
    stop = start + max(8, budget // 130)  # a citation alone costs nearly as much
    wanted = [(one.id, one.score) for one in found.passages[start:stop]]
    sources, places = context.passage_items(snapshot, wanted)
    chosen = [found.rows[one.id] for one in fused.entities(snapshot, found)[:ENTITIES]]
    reports = _reports(snapshot, chosen) if share.get("Reports") else []
    relationships = _relationships(snapshot, chosen) if detailed else []
    entities = context.entity_items(chosen, detailed)
    parts = [  # offsets in a cursor stand in this order
        Section("Reports", reports[offsets[0] :], share.get("Reports", 0.0), offsets[0], HEADERS["Reports"]),
        Section(
            "Entities", entities[offsets[1] :], share.get("Entities", 0.0), offsets[1],
            HEADERS["Entities"] if detailed else "", greedy=detailed,
        ),
        Section(
            "Relationships", relationships[offsets[2] :], share.get("Relationships", 0.0), offsets[2],
            HEADERS["Relationships"],
        ),
        Section(
            "Sources", sources, share.get("Sources", 0.0), start, places=[start + place for place in places],
            more=stop < len(found.passages),
        ),
    ]  # fmt: skip
    return parts if detailed else parts[::-1]


def _shares(budget: int, detailed: bool) -> dict[str, float]:
    """Reports 0.15, text 0.5, the rest for entities and relationships; what one does not use goes to the text."""
    if budget <= SMALL:
        small = {"Sources": SMALL_SOURCES, "Entities": 0.1, "Relationships": 0.05}
        return small | {"Reports": 0.05} if detailed else small
    usual = {"Sources": 0.5, "Entities": 0.15, "Relationships": 0.2}
    return usual | {"Reports": 0.15} if detailed else usual


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
    return context.report_items(snapshot, found, occurrence)


def _relationships(snapshot: Snapshot, chosen: Sequence[Mapping[str, Any]]) -> list[Item]:
    """All relationships between chosen entities; then outward ones, by how many chosen ones they link, by weight."""
    inside = {row["id"] for row in chosen}
    names = ["id", "source_id", "target_id", "weight"]
    open_ids = [row["id"] for row in chosen if row["degree"] <= HUB]
    every, some = _listed([row["id"] for row in chosen]), _listed(open_ids)
    where = f"(source_id IN ({every}) AND target_id IN ({every}))"
    if open_ids:
        where += f" OR source_id IN ({some}) OR target_id IN ({some})"
    light = snapshot.rows("relationships", where, names).to_pylist() if chosen else []
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


def _listed(ids: Sequence[str]) -> str:
    return ", ".join(f"'{id}'" for id in ids)


def _model_keywords(asker: Asker, snapshot: Snapshot, query: str, seconds: float) -> tuple[Meter, Sequence[str]]:
    """Keywords from a model, where the extractor finds no name in the question: then words alone would decide."""
    from graphrag_mcp.query.answer import Meter, keywords_of

    meter = Meter(asker)
    named = any(mention.strong for mention in extract(query[: fused.NAME_CHARACTERS]))
    return meter, () if named else keywords_of(asker, query, snapshot.folder, seconds)


# ---- nothing to rank ---------------------------------------------------------------------------


def missing(found: Retrieved) -> str:
    """Names of the question none of whose words occur anywhere: an agent should know before it trusts the context."""
    if not found.unknown:
        return ""
    absent = [mention.form for mention in found.names if mention.strong and _absent(mention.form, found)]
    if not absent:
        return ""
    return f"Nowhere in this corpus: {', '.join(repr(form) for form in dict.fromkeys(absent[:5]))}."


def _absent(form: str, found: Retrieved) -> bool:
    words = fused.query_terms(form)
    return bool(words) and not any(word in found.terms for word in words)


def not_found(snapshot: Snapshot, query: str, found: Retrieved, budget: int, note: str) -> SearchResult:
    """An honest nothing: what was searched, the nearest names, another tool."""
    counters = snapshot.manifest.counters
    result = SearchResult(state="not_found", mode="local", corpus=snapshot.manifest.corpus, coverage={"passages": 0})
    searched = f"{counters.get('passages', 0)} passages and {counters.get('entities', 0)} entities"
    near: dict[str, Mapping[str, Any]] = {}
    wanted = dict.fromkeys([*(mention.form for mention in found.names), query[:100], *query[:200].split()])
    for name in [name for name in wanted if len(name) > 1][:8]:
        near.update((row["id"], row) for row in context.nearest_names(snapshot, name, 3))
    result.text = f"No word of this question occurs in the {searched} of corpus {snapshot.manifest.corpus}."
    if near:
        result.text += f"\nNearest names: {context.named_list(list(near.values())[:5])}."
    advice = "Try a name from above with get_entity." if near else "Try global_search for what the corpus is about."
    result.hint = " ".join(filter(None, [note, advice]))
    return finish(result, budget)


def overview(snapshot: Snapshot, budget: int, note: str) -> SearchResult:
    """What the corpus is about: its most connected entities and its highest ranked reports."""
    entities = snapshot.rows("entities", "", ["id", "degree"]).to_pylist()
    entities.sort(key=lambda row: (-row["degree"], row["id"]))
    reports = snapshot.rows("reports", "", ["id", "rank", "level", "n_text_units"]).to_pylist()
    reports.sort(key=lambda row: (row["level"], -row["rank"], -row["n_text_units"], row["id"]))
    most = max((row["n_text_units"] for row in reports), default=0) or 1
    found = context.rows(snapshot, "reports", [row["id"] for row in reports[:REPORTS]])
    items = context.report_items(snapshot, found, {row["id"]: row["n_text_units"] / most for row in reports})
    central = context.entity_items(context.rows(snapshot, "entities", [row["id"] for row in entities[:20]]), False)
    counters = snapshot.manifest.counters
    counted = {name: counters.get(name, 0) for name in ("documents", "passages", "entities", "relationships")}
    coverage = {**counted, "reports": len(reports)}
    result = SearchResult(mode="overview", corpus=snapshot.manifest.corpus, coverage=coverage)
    result.hint = " ".join(filter(None, [note, "The question was empty; this is an overview. Ask with query=..."]))
    sections = [Section("Entities", central, 0.4), Section("Reports", items, 0.6, header=HEADERS["Reports"])]
    said = ", ".join(f"{value} {name}" for name, value in counted.items())
    result = compose(result, sections, budget, lambda _: "", intro=f"Corpus {result.corpus}: {said}.", first="Reports")
    result.communities = [item.id for item in items if f"\n{item.id}|" in result.text]
    return finish(result, budget)
