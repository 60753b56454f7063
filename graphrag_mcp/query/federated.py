"""One question to several corpora: results merged by normalised score, with ids that name their
corpus (`a/e12`).

Scores of one corpus are relative to its best passage, so they are weighed by how much of the
question that passage holds. An answer by a model is made of one corpus."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.packing.budget import (
    Item,
    Section,
    clamp_budget,
    compose,
    finish,
    read_cursor,
    write_cursor,
)
from graphrag_mcp.query import context, global_, hits, local, lookup, passages, text_search, topics
from graphrag_mcp.query.local import missing
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.terms import counted, query_terms
from graphrag_mcp.types import (
    EntityResult,
    ReportResult,
    Result,
    SearchResult,
    SourceResult,
    content_id,
)

if TYPE_CHECKING:
    from graphrag_mcp.llm.asker import Asker
    from graphrag_mcp.query.retrieval import Retrieved


Part = tuple[str, Snapshot]
Found = TypeVar("Found", bound=Result)
ONE_ANSWER = "An answer is made of one corpus: ask with that corpus alone."
_QUALIFIED = re.compile(
    rf"\s*[\[(`]?([^\s/\[\]()]+)/((?i:{context.ALIAS}\+?|[0-9a-f]{{32}}))[\])`]?\s*"
)


def wanted(corpus: str, known: Sequence[str]) -> list[str]:
    """Names in `a,b`, all for `*`; [] when one corpus or none is named."""
    if corpus.strip() in ("*", "all") and corpus.strip() not in known:
        return list(known)
    named = [one.strip() for one in re.split(r"[,，、;]", corpus) if one.strip()]
    return list(dict.fromkeys(named)) if len(named) > 1 else []


def qualified(id: str) -> tuple[str, str]:
    """`a/e12` as (a, e12); ("", id) for everything else."""
    match = _QUALIFIED.fullmatch(id)
    return (match[1], match[2].lower()) if match else ("", id)


def named_by(ids: Sequence[str], known: Sequence[str]) -> tuple[list[str], bool]:
    """The corpora that qualified ids name, and whether every id names one."""
    named = [name for name, _ in map(qualified, ids)]
    return list(dict.fromkeys(name for name in named if name in known)), all(
        name in known for name in named
    )


def ends(start: str, goal: str, corpus: str, known: Sequence[str]) -> tuple[str, str, str]:
    """Corpus, start and goal of a walk, which stays in one corpus: the one that `a/e12` names, else
    `corpus`. BadInput where two are named."""
    named, every = named_by([one for one in (start, goal) if one], known)
    if not named:
        return corpus, start, goal
    if len(named) > 1 or not every and corpus.strip() not in ("", *named):
        said = " and ".join(repr(one[:60]) for one in (start, goal) if one)
        what = f"{said} are of different corpora"
        raise BadInput(what, "Give two of one corpus, for no path leads out of it")
    return named[0], *(
        qualified(one)[1] if qualified(one)[0] in named else one for one in (start, goal)
    )


# ---- searches ----------------------------------------------------------------------------------


def local_search(
    parts: Sequence[Part],
    query: str,
    *,
    max_tokens: int = local.DEFAULT_TOKENS,
    response_format: str = "concise",
    cursor: str = "",
    keywords: Sequence[str] = (),
    filters: Sequence[str] = (),
    min_rating: float = 0.0,
    history: Sequence[str] = (),
    explain: bool = False,
    mode: str = "local",
    form: passages.Form = passages.Form(),  # noqa: B008 (frozen)
    askers: Mapping[str, Asker] | None = None,
    answer: bool = False,
) -> SearchResult:
    """As the local search of one corpus, without an answer."""
    budget, note = clamp_budget(max_tokens, local.DEFAULT_TOKENS)
    query, detailed = query.strip(), response_format == "detailed"
    if not query and not any(one.startswith("entity=") for one in filters):
        return _overviews(parts, budget, note)
    turns, looked_for = local.with_history(history, query, keywords)
    settings = (
        response_format,
        explain,
        [*filters, min_rating],
        [*looked_for],
        form.breadth,
        form.sort,
    )
    asked = f"{mode}|{query}|{settings}"
    offsets, page = _paging(parts, asked, cursor, len(local.ORDER))
    if offsets is None:
        return finish(_stale(parts, mode), budget)
    merged: dict[str, list[tuple[float, int, Item]]] = {}
    shares: dict[str, Section] = {}
    result, notes, more, empty = _begun(parts, mode), [note], False, []
    sources: list[hits.Source] = []
    for name, snapshot, kept in _narrowed(parts, filters, min_rating):
        vector, said = local.vector_of((askers or {}).get(name), snapshot, query)
        found = local.find(
            snapshot, query, mode=mode, keywords=looked_for, filters=kept, vector=vector
        )
        notes += [said, missing(found), _of(name, local.told("", kept))]
        if not found.passages:
            empty.append(name)
            continue
        factor = _factor(snapshot, query, found)
        for kind, value in found.considered.items():
            result.coverage[kind] = result.coverage.get(kind, 0) + value
        sources.append(local.source_of(snapshot, found, name, factor, explain))
        if not detailed:
            continue
        sections = local.sections_of(
            snapshot,
            found,
            budget,
            detailed,
            filters=kept,
            explain=explain,
            mode=mode,
            window=offsets[0],
        )
        for section in sections:
            shares.setdefault(section.name, section)
            more |= section.more
            for place, item in enumerate(section.items):
                worth = item.score if section.name in ("Sources", "Reports") else 1.0 - place / 100
                merged.setdefault(section.name, []).append(
                    (factor * worth, len(merged), _prefixed(name, item, factor))
                )
    result.hint = _hint(notes, empty if sources else [], answer)
    if not sources:
        return _nothing(result, parts, budget)
    before = local.block(turns, budget) if not cursor.strip() else ""
    if not detailed:
        result.text = before
        return passages.concise(result, sources, budget, offsets[0], page, form)
    listed = [
        replace(
            section,
            items=_ranked(merged[name])[offsets[local.ORDER.index(name)] :],
            places=(),
            offset=offsets[local.ORDER.index(name)],
            more=more and name == "Sources",
        )
        for name, section in shares.items()
        if name in merged
    ]

    def following(after: tuple[int, ...]) -> str:
        reached = {section.name: offset for section, offset in zip(listed, after, strict=True)}
        return page(tuple(reached.get(name, 0) for name in local.ORDER))

    return compose(result, listed, budget, following, intro=before)


def global_search(
    parts: Sequence[Part],
    query: str,
    *,
    level: int = -1,
    max_tokens: int = global_.DEFAULT_TOKENS,
    cursor: str = "",
    response_format: str = "concise",
    filters: Sequence[str] = (),
    min_rating: float = 0.0,
    history: Sequence[str] = (),
    explain: bool = False,
    answer: bool = False,
) -> SearchResult:
    """As the global search of one corpus, without an answer."""
    budget, note = clamp_budget(max_tokens, global_.DEFAULT_TOKENS)
    looked_for, before = global_.with_history(history, query.strip(), budget)
    asked = f"global|{looked_for}|{(level, response_format, explain, [*filters, min_rating])}"
    offsets, page = _paging(parts, asked, cursor, 1)
    if offsets is None:
        return finish(_stale(parts, "global"), budget)
    result, notes = _begun(parts, "global"), [note]
    searched = _narrowed(parts, filters, min_rating)
    for name, snapshot, kept in searched:
        deep = global_.too_deep(snapshot, level)
        notes += [_of(name, one) for one in (local.told("", kept), deep)]
    result.hint = _hint(notes, [], answer)
    result.text = "" if cursor.strip() else before
    return global_.show(
        result,
        searched,
        looked_for,
        budget,
        level=level,
        offset=offsets[0],
        cursor=page,
        detailed=response_format == "detailed",
        explain=explain,
    )


def search_text(
    parts: Sequence[Part],
    query: str,
    *,
    max_tokens: int = local.DEFAULT_TOKENS,
    cursor: str = "",
    filters: Sequence[str] = (),
) -> SearchResult:
    """As the search for words of one corpus."""
    budget, note = clamp_budget(max_tokens, local.DEFAULT_TOKENS)
    query = query.strip()
    if not query:
        raise BadInput(
            "the query is empty", 'Give words to find, with exact ones in quotes: "to be or not"'
        )
    offsets, page = _paging(parts, f"text|{query}|{[*filters]}", cursor, 1)
    if offsets is None:
        return finish(_stale(parts, "text"), budget)
    result, empty, lost = _begun(parts, "text"), [], None
    sources: list[hits.Source] = []
    literals: list[str] = []
    notes = [note]
    for name, snapshot, kept in _narrowed(parts, filters, 0.0):
        notes.append(_of(name, local.told("", kept)))
        ranked, literals = text_search.matches(snapshot, query, filters)
        here = text_search.absent(snapshot, query, bool(ranked))
        lost = here if lost is None else [one for one in lost if one in here]
        if ranked:
            sources.append(text_search.source_of(snapshot, query, ranked, name))
        else:
            empty.append(name)
    result.coverage["passages"] = sum(len(source.scored) for source in sources)
    nowhere = text_search.said_absent(lost or (), "these corpora")
    result.hint = _hint([*notes, nowhere], empty if sources else [], False)
    if not sources:
        return _nothing(result, parts, budget)
    form = passages.Form(literals=literals or [query])
    return passages.concise(result, sources, budget, offsets[0], page, form)


# ---- look-ups ----------------------------------------------------------------------------------


def get_entity(parts: Sequence[Part], name: str, **given: Any) -> EntityResult:
    """The entity of the first corpus that has it; where others have it too, their ids."""
    results = [(corpus, lookup.get_entity(snapshot, name, **given)) for corpus, snapshot in parts]
    held = [(corpus, result) for corpus, result in results if result.state != "not_found"]
    if held:
        corpus, result = held[0]
        others = [f"{other}/{one.id} {one.title}" for other, one in held[1:]]
        result = of_corpus(corpus, result)
        if others:
            result.hint = f"{result.hint} Also there: {', '.join(others)}.".strip()
    else:
        result = of_corpus(*results[0])
        for other, one in results[1:]:
            more = of_corpus(other, one)
            result.candidates = (result.candidates + more.candidates)[:8]
            result.text += "\n" + "\n".join(
                line for line in more.text.splitlines() if line.startswith("- ")
            )
    return finish(result, clamp_budget(given.get("max_tokens", 3_000), 3_000)[0])


def get_source(
    parts: Sequence[Part], ids: Sequence[str], *, max_tokens: int = 4_000, around: int = 0
) -> SourceResult:
    """The text behind qualified ids; what is not qualified is looked up in every corpus."""
    budget, note = clamp_budget(max_tokens, 4_000)
    items: list[Item] = []
    notes, refused = [note], []
    for name, snapshot in parts:
        own = [one for corpus, one in map(qualified, ids) if corpus in ("", name)]
        if not own:
            continue
        try:
            found, said = lookup.exact(snapshot, own, around)
        except NotFound as error:
            refused.append(error)
            continue
        items += [_prefixed(name, item, 1.0) for item in found]
        notes += [f"{name}: {one}" for one in said]
    if not items:
        raise (
            refused[0]
            if refused
            else BadInput("no ids were given", 'Give ids, e.g. get_source(ids=["a/t33.2"])')
        )
    return lookup.shown(items, notes, budget)


def get_community_report(parts: Sequence[Part], community_id: str, **given: Any) -> ReportResult:
    """A report by its qualified id: numbers mean something else in every corpus."""
    name, alias = qualified(community_id)
    snapshot = dict(parts).get(name)
    if snapshot is None:
        listed = ", ".join(f"{corpus}/{alias}" for corpus, _ in parts[:5])
        what = f"{community_id[:60]!r} may be of any of {len(parts)} corpora"
        raise BadInput(what, f"Say which, e.g. {listed}")
    return of_corpus(name, lookup.get_community_report(snapshot, alias, **given))


def of_corpus(name: str, result: Found) -> Found:
    """The result with every id in it marked with its corpus."""
    for field, value in result:
        if field in ("id", "parent") and value:
            setattr(result, field, f"{name}/{value}")
        elif field in ("communities", "children", "members"):
            setattr(result, field, [f"{name}/{one}" for one in value])
        elif field == "citations":
            result.citations = [context.placed(name, one, 1.0) for one in value]  # type: ignore[attr-defined]
        elif field in ("candidates", "relationships"):
            keys = ("id", "entity_id")
            setattr(
                result,
                field,
                [one | {key: f"{name}/{one[key]}" for key in keys if key in one} for one in value],
            )
    for advice in ("hint", "next_call"):
        setattr(
            result,
            advice,
            re.sub(rf'"({context.ALIAS})"', rf'"{name}/\1"', getattr(result, advice)),
        )
    if not isinstance(result, SourceResult):
        result.text = context.marked(name, result.text)
    return result


# ---- merging -----------------------------------------------------------------------------------


def _narrowed(
    parts: Sequence[Part], filters: Sequence[str], min_rating: float
) -> list[tuple[str, Snapshot, Any]]:
    """The parts with their filters; one that does not know a field or entity has nothing that
    passes."""
    kept: list[tuple[str, Snapshot, Any]] = []
    refused: list[BadInput] = []
    for name, snapshot in parts:
        if not snapshot.manifest.counters.get("passages", 0):
            continue
        try:
            made, narrowed = local.narrowed(snapshot, filters, min_rating)
        except BadInput as error:
            refused.append(error)
            continue
        kept.append((name, narrowed, made))
    if refused and not kept:
        raise refused[0]
    return kept


def _factor(snapshot: Snapshot, query: str, found: Retrieved) -> float:
    """How far the best passage of a corpus may count: half, and more by the share of the question
    that it holds."""
    wanted = set(query_terms(query))
    if not wanted:
        return 1.0
    rows = snapshot.by_key("passages", [found.passages[0].id], "id", ["terms"])["terms"].to_pylist()
    held = wanted & set(rows[0].split()) if rows else set()
    return 0.5 + 0.5 * len(held) / len(wanted)


def _ranked(some: Sequence[tuple[float, int, Item]]) -> list[Item]:
    return [
        item for _, _, item in sorted(some, key=lambda one: (-round(one[0], 6), one[1], one[2].id))
    ]


def _prefixed(name: str, item: Item, factor: float) -> Item:
    """The item with ids that say its corpus: at its head, in its citations, in references that are
    not a source's."""
    id = f"{name}/{item.id}"
    text = (
        item.text.replace(item.id, id, 1) if item.id in item.text[: len(item.id) + 8] else item.text
    )
    if item.section != "Sources":
        text = context.marked(name, text)
    citation = context.placed(name, item.citation, factor) if item.citation else None
    also = tuple(context.placed(name, one, factor) for one in item.also)
    data = dict(item.data) if item.data is not None else None
    for key in ("id", "document_id") if data else ():
        if data and key in data:
            data[key] = f"{name}/{data[key]}"
    return replace(
        item,
        id=id,
        text=text,
        citation=citation,
        also=also,
        data=data,
        score=item.score * factor,
        tokens=0,
    )


# ---- results -----------------------------------------------------------------------------------


def _paging(
    parts: Sequence[Part], asked: str, cursor: str, count: int
) -> tuple[tuple[int, ...] | None, Callable[[tuple[int, ...]], str]]:
    """Where this page starts, and how the next one's cursor is written: tied to every corpus and
    its generation."""
    marks = content_id(*(f"{name}@{snapshot.manifest.generation}" for name, snapshot in parts))
    generation = sum(snapshot.manifest.generation for _, snapshot in parts)
    whole = f"{marks}|{asked}"
    return read_cursor(cursor, generation, whole, count), lambda after: write_cursor(
        generation, whole, after
    )


def _begun(parts: Sequence[Part], mode: str) -> SearchResult:
    return SearchResult(
        mode=mode, corpus=",".join(name for name, _ in parts), coverage={"corpora": len(parts)}
    )


def _stale(parts: Sequence[Part], mode: str) -> SearchResult:
    return context.stale(parts[0][1], mode).model_copy(
        update={"corpus": ",".join(name for name, _ in parts)}
    )


def _hint(notes: Sequence[str], empty: Sequence[str], answer: bool) -> str:
    nothing = f"Nothing in {', '.join(empty)}." if empty else ""
    return " ".join(dict.fromkeys(filter(None, [*notes, nothing, ONE_ANSWER if answer else ""])))


def _of(name: str, note: str) -> str:
    return f"In {name}: {note[0].lower()}{note[1:]}" if note else ""


def _nothing(result: SearchResult, parts: Sequence[Part], budget: int) -> SearchResult:
    """Found in none of them."""
    result.state = "not_found"
    passages = sum(snapshot.manifest.counters.get("passages", 0) for _, snapshot in parts)
    result.text = (
        f"Nothing on this was found in {len(parts)} corpora ({counted(passages, 'passages')})."
    )
    result.hint = " ".join(
        filter(None, [result.hint, "Ask with other words, or one corpus alone for nearest names."])
    )
    return finish(result, budget)


def _overviews(parts: Sequence[Part], budget: int, note: str) -> SearchResult:
    """The topics of each, one after the other."""
    result = _begun(parts, "overview")
    result.hint = " ".join(filter(None, [note, topics.UNASKED]))
    filled = [part for part in parts if part[1].manifest.counters.get("passages", 0)]
    return topics.overview(result, [(name, snapshot, None) for name, snapshot in filled], budget)
