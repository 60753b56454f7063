"""The result of a search: passages of one or several corpora for one or several questions.

Takes ranked passages by corpus; gives the result's text and citations: statements of the graph
between names of the question, hits in full, weaker ones as lines, how many more there are. Or, for
breadth, one sentence from each of many places.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from graphrag_mcp.names.extract import terms_of
from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.query import context, hits
from graphrag_mcp.query.hits import Source
from graphrag_mcp.text.terms import terms
from graphrag_mcp.types import SearchResult, content_id

DEFAULT_TOKENS = 1_200  # weaker hits are shown in full from more tokens on
CONNECTED = 5  # statements between names of the question
TITLED = 60  # passages of the ranking in which a title of the question is looked for
PER_QUESTION, LINES_PER_QUESTION = 2, 2  # hits in full and as lines, where several are asked
# Share of the best score from which several questions show a hit. Two of three lines below it were
# of no use to an agent with 20 two-hop questions.
RELEVANT = 0.45
FEW = 4  # passages with a name up to which it is said that no other one holds it

Ranked = list[tuple[float, int, int]]  # score, place in its corpus, number of the corpus


@dataclass(frozen=True, slots=True)
class Form:
    """How it is shown: `breadth` is passages or sentences, `sort` is rank or time. `literals` must be
    seen in what is shown. `every`: all hits are shown, not only those near the best one."""

    breadth: str = "passages"
    sort: str = "rank"
    literals: Sequence[str] = field(default_factory=tuple)
    every: bool = False


def concise(
    result: SearchResult,
    sources: Sequence[Source],
    budget: int,
    offset: int,
    cursor: Callable[[tuple[int]], str],
    form: Form,
) -> SearchResult:
    """The result for one question. What stands in its text already comes first."""
    ranked = _titles_first(_merged(sources), sources)
    page = hits.page_of(result, budget)
    worth = _worth(sources)
    if form.breadth == "sentences":
        found = lines(sources, ranked)[offset:]
        taken = hits.show_lines(page, found, form.sort == "time")
        rest = len(found) - taken
        _say_nothing(result, page, found)
        return hits.finished(result, page, rest, offset + taken, cursor)
    best = ranked[0][0] if ranked else 0.0
    listed = _hits(sources, ranked[offset : offset + max(20, budget // 50)])
    if form.sort == "time":
        listed.sort(key=lambda hit: (hit.date or "9999", hit.uri, hit.span))
    absent = _absent(sources, listed) if not offset and not form.every else []
    if not offset:
        _connect(page, sources)
        _say_absent(page, absent)
    if form.every:
        taken = offset + (hits.show_every(page, listed, worth, form.literals) if listed else 0)
    else:
        taken = offset + hits.show(
            page,
            listed,
            worth,
            floor=hits.WEAK * best,
            generous=budget > DEFAULT_TOKENS or form.sort == "time",
            literals=form.literals,
            most=-1 if absent else 0,
        )
    least = 0.0 if form.every else hits.WEAK * best
    rest = sum(score >= least for score, _, _ in ranked[taken:])
    if not offset:
        _say_exhausted(page, sources, listed)
    return hits.finished(result, page, rest, taken, cursor)


def several(
    result: SearchResult, asked: Sequence[tuple[str, Sequence[Source]]], budget: int, form: Form
) -> SearchResult:
    """The result for several questions: each with its share of the budget, no passage twice."""
    page = hits.page_of(result, budget)
    for number, (question, sources) in enumerate(asked):
        share = page.room // (len(asked) - number)
        part = hits.Page(share, page.characters // (len(asked) - number), page.seen, page.full)
        part.add(f"## {one_line(question, 120)}")
        ranked = _titles_first(_merged(sources), sources)
        if form.breadth == "sentences":
            hits.show_lines(part, lines(sources, ranked), form.sort == "time")
        else:
            best = ranked[0][0] if ranked else 0.0
            listed = _hits(sources, ranked[:20])
            known = [hit for hit in listed[:PER_QUESTION] if hit.id in page.full]
            _say_absent(part, absent := _absent(sources, listed))
            hits.show(
                part,
                [hit for hit in listed if hit.id not in page.full],
                _worth(sources),
                most=-1 if absent else PER_QUESTION - len(known) or 1,
                weak=LINES_PER_QUESTION,
                floor=RELEVANT * best,
                literals=form.literals,
            )
            _say_exhausted(part, sources, listed)
            if known:
                part.add(f"See also {', '.join(f'[{hit.id}]' for hit in known)} above.")
        if len(part.blocks) == 1:
            part.add("Nothing was found.")
        page.blocks += part.blocks
        page.citations |= part.citations
        spent = share - part.room
        page.room -= spent
    return hits.finished(result, page, 0, 0, lambda _: "")


def lines(sources: Sequence[Source], ranked: Ranked | None = None) -> list[hits.Line]:
    """One sentence from each of the places that have something to say on the question."""
    ranked = ranked if ranked is not None else _titles_first(_merged(sources), sources)
    names = [one for source in sources for one in source.names]
    parts = list(dict.fromkeys(part for source in sources for part in source.parts))
    return hits.lines(_hits(sources, ranked[: hits.LINES_READ]), _worth(sources), names, parts)


def _absent(sources: Sequence[Source], listed: Sequence[hits.Hit]) -> list[str]:
    """The names of the question, where each has several words and none of the passages has all of
    one: "Howard Flight" finds passages on flights."""
    names = [one for source in sources for one in source.names if one.strong]
    near = {term for source in sources for term in source.near}
    texts = [f"{hit.title} {hit.raw}".casefold() for hit in listed]
    for one in names:
        # Endings differ (Ville Virtasen); a name of one word stands in passages or is unknown.
        words = [word[: max(4, len(word) - 2)] for word in one.form.casefold().split()]
        if len(words) < 2 or any(all(word in text for word in words) for text in texts):
            return []
        if not near.isdisjoint(terms_of(one.form)):
            return []  # the hits hold the words that stand for it
    return list(dict.fromkeys(one.form for one in names)) if listed else []


def _say_absent(page: hits.Page, names: Sequence[str]) -> None:
    if names:
        said = " or ".join(f'"{one_line(name, 40)}"' for name in names[:3])
        page.add(f"No passage names {said}; nearest:")


def _say_exhausted(page: hits.Page, sources: Sequence[Source], listed: Sequence[hits.Hit]) -> None:
    """Add `No other passage names "Fawell".` for rare names of the question of which every passage
    is shown: who reads it need not look for more. Nothing where several corpora are asked."""
    if len(sources) != 1:
        return
    snapshot, worth = sources[0].snapshot, sources[0].worth
    rarest = {
        one.form: max(known, key=lambda term: (worth[term], term))
        for one in sources[0].names
        if one.strong and (known := [term for term in terms_of(one.form) if term in worth])
    }
    rows = snapshot.by_key("terms", sorted(set(rarest.values())), "term", ["term", "passages"])
    number = dict(zip(rows["term"].to_pylist(), rows["passages"].to_pylist(), strict=True))
    shown = page.citations.keys() | page.full
    held = [set(terms(f"{hit.title} {hit.raw}")) for hit in listed if hit.id in shown]
    # Keywords with capitals (Vioxx Merck Lawsuits) look like a name: one passage must have it.
    written = " ".join(f"{hit.title} {hit.raw}".casefold() for hit in listed)
    written = " ".join(written.split())
    names = [
        f'"{one_line(form, 40)}"'
        for form, term in rarest.items()
        if 0 < number.get(term, 0) <= min(FEW, sum(term in one for one in held))
        and " ".join(form.casefold().split()) in written
    ]
    if names:
        page.add(f"No other passage names {' or '.join(names)}.\n")


def _merged(sources: Sequence[Source]) -> Ranked:
    """Passages of all corpora by score; those of one corpus in its own order."""
    if len(sources) == 1:
        return [(score, place, 0) for place, (_, score) in enumerate(sources[0].scored)]
    ranked = [
        (score, place, at)
        for at, source in enumerate(sources)
        for place, (_, score) in enumerate(source.scored)
    ]
    return sorted(ranked, key=lambda one: (-round(one[0], 9), one[1], one[2]))


def _worth(sources: Sequence[Source]) -> dict[str, float]:
    return {term: worth for source in sources for term, worth in source.worth.items()}


def _hits(sources: Sequence[Source], wanted: Ranked) -> list[hits.Hit]:
    """These passages as hits, in this order."""
    found: dict[tuple[int, int], hits.Hit] = {}
    for at, source in enumerate(sources):
        places = {source.scored[place][0]: place for _, place, other in wanted if other == at}
        scored = [(id, source.scored[place][1]) for id, place in places.items()]
        why = source.why(list(places)) if source.why is not None else {}
        for id, hit in hits.read(source.snapshot, scored, source.corpus, why):
            found[at, places[id]] = hit
    return [found[at, place] for _, place, at in wanted if (at, place) in found]


def _say_nothing(result: SearchResult, page: hits.Page, found: Sequence[hits.Line]) -> None:
    if not found:
        result.state = "not_found"
        page.add(
            "No sentence says something on this. Ask with breadth=passages, or in other words."
        )


def _titles_first(ranked: Ranked, sources: Sequence[Source]) -> Ranked:
    """One passage of each document whose title the question names, before a second of any."""
    first: dict[tuple[int, str], tuple[float, int, int]] = {}
    for at, source in enumerate(sources):
        names = {content_id("entity", one.key) for one in source.names if one.strong}
        if not names:
            continue
        ids = [id for id, _ in source.scored[:TITLED]]
        rows = source.snapshot.by_key("passages", ids, "id", ["id", "title_id"])
        titled = {row["id"]: row["title_id"] for row in rows.to_pylist()}
        for one in ranked:
            if one[2] == at and one[1] < TITLED:
                title = titled.get(source.scored[one[1]][0])
                if title in names:
                    first.setdefault((at, title), one)
    chosen = set(first.values())
    return [*first.values(), *(one for one in ranked if one not in chosen)] if first else ranked


def _connect(page: hits.Page, sources: Sequence[Source]) -> None:
    """Add statements of the graph between two names of the question, the weightiest first, and what
    is claimed of a name."""
    lines: list[str] = []
    for source in sources:
        if not source.named:
            continue
        prefix = f"{source.corpus}/" if source.corpus else ""
        lines += [f"- [{prefix}{line}" for line in (*_statements(source), *_claims(source))]
    if lines:
        page.add("\n".join(["Connected:", *lines[:CONNECTED], ""]))


def _statements(source: Source) -> list[str]:
    snapshot = source.snapshot
    if len(source.named) < 2:
        return []
    listed = ", ".join(f"'{id}'" for id in list(source.named)[:20])
    where = f"source_id IN ({listed}) AND target_id IN ({listed})"
    rows = snapshot.rows("relationships", where, ["id", "weight"]).to_pylist()
    rows.sort(key=lambda row: (-row["weight"], row["id"]))
    found = context.rows(snapshot, "relationships", [row["id"] for row in rows[:CONNECTED]])
    ends = list(dict.fromkeys(row[end] for row in found for end in ("source_id", "target_id")))
    titles = snapshot.by_key("entities", ends, "id", ["id", "title"])
    title = dict(zip(titles["id"].to_pylist(), titles["title"].to_pylist(), strict=True))
    lines = []
    for row in found:
        one, other = (one_line(title.get(row[end], "?"), 60) for end in ("source_id", "target_id"))
        said = context.first_sentence(row["description"], 200)
        lines.append(f"r{row['n']}] {one} and {other}: {said}")
    return lines


def _claims(source: Source) -> list[str]:
    """What a model or an agent claims of the names of the question."""
    if "claims" not in source.snapshot.manifest.tables:
        return []
    entities = context.rows(source.snapshot, "entities", list(source.named)[:20])
    return [
        f"k{row['n']}] {one_line(row['subject'], 60)}: {one_line(row['description'], 200)}"
        for row in context.claim_rows(source.snapshot, entities)[:CONNECTED]
    ]
