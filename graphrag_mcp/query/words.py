"""Words in the original texts: full text over passages, and literals that must stand there.

Takes a snapshot and words, with exact ones in quotes; gives the passages that hold them, best first. What filters leave
out is not proposed. Knows neither entities nor reports.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphrag_mcp.errors import BadInput
from graphrag_mcp.extract import terms_of
from graphrag_mcp.pack import Section, clamp_budget, compose, finish, one_line, read_cursor, write_cursor
from graphrag_mcp.query import context, fused, modes, ranking
from graphrag_mcp.query.literals import pattern, plain, quoted, unquoted
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text import counted, query_terms
from graphrag_mcp.types import SearchResult

Row = dict[str, Any]
LITERALS = 5  # that are looked up, and words that are named, when they stand nowhere


def search_text(
    snapshot: Snapshot, query: str, *, max_tokens: int = 4_000, cursor: str = "", filters: Sequence[str] = ()
) -> SearchResult:
    """Full text over the original passages. What stands in quotes must occur literally (case and width aside)."""
    budget, note = clamp_budget(max_tokens, 4_000)
    nothing = context.empty_corpus(snapshot, "text")
    if nothing is not None:
        return finish(nothing, budget)
    query = query.strip()
    if not query:
        raise BadInput("the query is empty", 'Give words to find, with exact ones in quotes: "to be or not"')
    asked = f"text|{query}|{[*filters]}"
    offset = read_cursor(cursor, snapshot.manifest.generation, asked, 1)
    if offset is None:
        return finish(context.stale(snapshot, "text"), budget)
    ranked, literals = matches(snapshot, query, filters)
    result = SearchResult(mode="text", corpus=snapshot.manifest.corpus, coverage={"passages": len(ranked)})
    nowhere = said_absent(absent(snapshot, query, bool(ranked)), "this corpus")
    note = modes.told(note, modes.narrowed(snapshot, filters)[0])
    result.hint = " ".join(filter(None, [note, context.query_length_note(query, fused.QUERY_CHARACTERS), nowhere]))
    if not ranked:
        said = ", ".join(f'"{one_line(one, 80)}"' for one in literals) or "any of these words"
        result.state = "not_found"
        result.text = f"Nothing in {counted(snapshot.manifest.counters.get('passages', 0), 'passages')} holds {said}"
        result.text += " and passes the filters." if filters else "."
        if literals and not nowhere and not filters:
            result.text += " Each of them is in the corpus, but no passage holds them all."
        if filters and not nowhere:
            result.text += " Without the filters there is something."
        result.hint = " ".join(filter(None, [result.hint, "Try fewer words without quotes, or local_search."]))
        return finish(result, budget)
    stop = offset[0] + max(8, budget // 90)
    items, places, read = context.enough_items(snapshot, ranked[offset[0] : stop], budget)
    stop = min(stop, offset[0] + read)
    if not literals and not cursor.strip() and (exact := _as_written(snapshot, query, ranked)):
        result.hint = f"{result.hint} {exact}".strip()
    section = Section(
        "Sources", items, 1.0, offset[0], places=[offset[0] + place for place in places], more=stop < len(ranked)
    )
    return compose(result, [section], budget, lambda after: write_cursor(snapshot.manifest.generation, asked, after))


def _as_written(snapshot: Snapshot, query: str, ranked: Sequence[tuple[str, float]]) -> str:
    """For an identifier or a number: that what follows holds only pieces of it."""
    if not _is_identifier(query, named=True):
        return ""
    ids = [id for id, _ in ranked]
    texts = snapshot.by_key("passages", ids, "id", ["text"], hold=True)["text"].to_pylist()
    held = sum(plain(query) in plain(text) for text in texts)
    if not held:
        return f"None holds {one_line(query, 80)!r} as it is written, only parts of it."
    said = f"{one_line(query, 80)!r} stands as it is written in {held} of the {len(ids)} passages found, at the top."
    return said if held < len(ids) else ""


def _is_identifier(query: str, named: bool = False) -> bool:
    """One word of several parts, with a digit in it; `named`: or without (`get_source`, but `running` as well)."""
    digits = named or any(map(str.isdigit, query))
    return digits and len(query.split()) == 1 and query.isascii() and len(query_terms(query)) > 1


def matches(snapshot: Snapshot, query: str, filters: Sequence[str] = ()) -> tuple[list[tuple[str, float]], list[str]]:
    """(passage id, score) of what matches and passes, best first, and the literals of the query, as written."""
    used = query[: fused.QUERY_CHARACTERS]
    literals = quoted(used)
    kept, snapshot = modes.narrowed(snapshot, filters)
    ranked = _matches(snapshot, used, [plain(one) for one in literals])
    if kept is None:
        return ranked, literals
    facts = modes.facts(snapshot, [id for id, _ in ranked])
    ranked = [(id, score) for id, score in ranked if id in facts and kept.passage(*facts[id])]
    wanted = {row["id"] for row in kept.first}
    held = {id for id, _ in ranked if not wanted.isdisjoint(facts[id][1])}
    if not held:
        return ranked, literals
    first = [(id, 0.5 + score / 2) for id, score in ranked if id in held]
    return [*first, *((id, min(score, 0.99) / 2) for id, score in ranked if id not in held)], literals


def absent(snapshot: Snapshot, query: str, found: bool = False) -> list[str]:
    """Words of the query, and what it quotes, that stand nowhere in the corpus, as they were written, in this order.

    `found`: something holds all that is quoted, so that only the other words are looked up.
    """
    used = query[: fused.QUERY_CHARACTERS]
    known, unknown = fused.term_worth(snapshot, terms_of(used))
    gone = set(unknown)
    lost = [] if found else [one for one in quoted(used)[:LITERALS] if not _matches(snapshot, one, [plain(one)])]
    words = [word.strip(ranking.MARKS) for word in unquoted(used).split()]
    lost += [word for word in words if ranking.stands_nowhere(word, known, gone)]
    return list(dict.fromkeys(lost))


def said_absent(lost: Sequence[str], where: str) -> str:
    """The sentence on them; "" for none."""
    more = f" and {len(lost) - LITERALS} more" if len(lost) > LITERALS else ""
    return f"Nowhere in {where}: {', '.join(repr(one_line(one, 80)) for one in lost[:LITERALS])}{more}." if lost else ""


def _matches(snapshot: Snapshot, query: str, literals: Sequence[str]) -> list[tuple[str, float]]:
    """(passage id, score) best first: the whole query found literally before its words found apart."""
    worth, _ = fused.term_worth(snapshot, terms_of(query))
    names = ["id", "text", "terms", "n_terms"]
    found = snapshot.full_text("passages", list(worth), fused.CANDIDATES, names).select(names).to_pylist()
    found = [row for row in found if _holds(row, literals)]
    if literals and not found:  # only common words, or no word at all (an emoji, a fragment): read them all
        longest = pattern(max(literals, key=len))
        rows = snapshot.rows("passages", f"regexp_like(text, '{longest}')", names, limit=500).to_pylist()
        found = [row for row in rows if _holds(row, literals)]
    score = fused.bm25(snapshot, worth)
    whole = plain(query)
    raw = {row["id"]: score(row["terms"], row["n_terms"]) for row in found}
    top = max(raw.values(), default=0.0) or 1.0
    exact = {row["id"]: whole in plain(row["text"]) for row in found}
    if _is_identifier(query) and any(exact.values()):  # not all that holds some part of E4471 or ADR-019
        raw = {id: value for id, value in raw.items() if exact[id]}
    scored = [(id, 0.9 * value / top + 0.1 * exact[id]) for id, value in raw.items()]
    return sorted(scored, key=lambda one: (not literals and not exact[one[0]], -round(one[1], 9), one[0]))


def _holds(row: Row, literals: Sequence[str]) -> bool:
    text = plain(row["text"]) if literals else ""
    return all(literal in text for literal in literals)
