"""Full-text search over passages, and exact search for what stands in quotation marks.

An exact search reads every passage and finds any spelling of the quoted text: case, width, white
space, traditional or simplified characters aside. Knows neither entities nor reports.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

from graphrag_mcp.errors import BadInput
from graphrag_mcp.names.extract import terms_of
from graphrag_mcp.packing.budget import clamp_budget, finish, one_line, read_cursor, write_cursor
from graphrag_mcp.query import context, hits, local, passages, ranking, retrieval
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.folding import SIMPLIFY
from graphrag_mcp.text.terms import counted, is_cjk, query_terms, unwrapped
from graphrag_mcp.types import SearchResult

OVERLAP = 4  # characters from which on no more ways to write them are combined: …… is six dots
_QUOTED = re.compile(
    r'"([^"]{1,500})"|“([^“”]{1,500})”|「([^「」]{1,500})」|『([^『』]{1,500})』|«([^«»]{1,500})»'
)


def quoted(query: str) -> list[str]:
    """What stands in quotation marks, as it was written."""
    written = (next(filter(None, found.groups())) for found in _QUOTED.finditer(query))
    return [one for one in written if plain(one)]


def unquoted(query: str) -> str:
    """The rest of the query."""
    return _QUOTED.sub(" ", query)


def plain(text: str) -> str:
    """Text as literals are compared: NFKC, case folded, traditional characters as simplified ones,
    white space as one space, no line breaks in Chinese words."""
    return " ".join(_folded(unwrapped(unicodedata.normalize("NFKC", text))).split())


def _folded(text: str) -> str:
    return text.casefold().translate(SIMPLIFY)


def pattern(literal: str) -> str:
    """A regular expression (of Rust's kind) for the spellings of `literal` that are `plain` the
    same: any case, width and blanks, traditional or simplified, letters whole or in pieces. It may
    stand in SQL: all signs are escaped.

    What it finds is proposed, and still to be compared with `plain`.
    """
    longer = _spellings()[1]
    out: list[str] = []
    at = 0
    while at < len(literal):
        end, here = at + 1, at
        while here < min(end, at + OVERLAP):  # as far as what one character may stand for overlaps
            end = max(
                end,
                *(
                    here + size
                    for size in (1, 2, 3)
                    if size == 1 or literal[here : here + size] in longer
                ),
            )
            here += 1
        out.append(_ways(literal[at:end]) + _gap(literal[end - 1 : end + 1]))
        at = end
    return "".join(out)


def _ways(some: str) -> str:
    """All ways to write these few characters: each by itself, or several as one."""
    letters, longer = _spellings()
    ways = []
    for size in (1, 2, 3):
        first, rest = some[:size], some[size:]
        if len(first) == size and (size == 1 or first in longer):
            head = _one(first, letters) if size == 1 else f"[{''.join(map(_safe, longer[first]))}]"
            ways.append(head + (_gap(first[-1] + rest[0]) + _ways(rest) if rest else ""))
    return ways[0] if len(ways) == 1 else f"(?:{'|'.join(ways)})"


def _gap(pair: str) -> str:
    """Between two Chinese or Japanese characters a line may end."""
    return r"\s*" if len(pair) == 2 and is_cjk(pair[0]) and is_cjk(pair[1]) else ""


def _one(ch: str, letters: dict[str, str]) -> str:
    """The spellings of one folded character, in pieces as well."""
    if ch == " ":
        return r"\s+"
    whole = f"[{''.join(map(_safe, ch + letters.get(ch, '')))}]"
    if 0xAC00 <= ord(ch) < 0xD7A4:
        parts = unicodedata.normalize("NFD", ch)
    else:
        parts = "".join(
            chr(int(code, 16)) for code in unicodedata.decomposition(ch).split() if "<" not in code
        )
    return (
        f"(?:{whole}|{''.join(_one(part, letters) for part in parts)})" if len(parts) > 1 else whole
    )


def _safe(ch: str) -> str:
    code = (
        0xFFFD if "\ud800" <= ch <= "\udfff" else ord(ch)
    )  # half a character, which no stored text holds
    return ch if ch.isalnum() else f"\\x{{{code:X}}}"


@lru_cache(maxsize=1)
def _spellings() -> tuple[dict[str, str], dict[str, str]]:
    """Folded character -> the others that are read as it; two or three characters -> the single
    ones (ﬁ, ß, …).

    Read from Python's own table of characters, in 0.1 s, at the first literal that words do not
    find.
    """
    letters: dict[str, str] = {}
    longer: dict[str, str] = {}
    for code in (*range(0x41, 0xAC00), *range(0xF900, 0x1F000), *range(0x2F800, 0x2FA20)):
        folded = _folded(unicodedata.normalize("NFKC", chr(code)))
        if folded != chr(code) and 0 < len(folded) < 4 and " " not in folded:
            where = letters if len(folded) == 1 else longer
            where[folded] = where.get(folded, "") + chr(code)
    return letters, longer


Row = dict[str, Any]
LITERALS = 5  # that are looked up, and words that are named, when they stand nowhere


def search_text(
    snapshot: Snapshot,
    query: str,
    *,
    max_tokens: int = passages.DEFAULT_TOKENS,
    cursor: str = "",
    filters: Sequence[str] = (),
) -> SearchResult:
    """Full text over the original passages. What stands in quotes must occur literally (case and
    width aside).
    """
    budget, note = clamp_budget(max_tokens, passages.DEFAULT_TOKENS)
    nothing = context.empty_corpus(snapshot, "text")
    if nothing is not None:
        return finish(nothing, budget)
    query = query.strip()
    if not query:
        raise BadInput(
            "the query is empty", 'Give words to find, with exact ones in quotes: "to be or not"'
        )
    asked = f"text|{query}|{[*filters]}"
    offset = read_cursor(cursor, snapshot.manifest.generation, asked, 1)
    if offset is None:
        return finish(context.stale(snapshot, "text"), budget)
    ranked, literals = matches(snapshot, query, filters)
    result = SearchResult(
        mode="text", corpus=snapshot.manifest.corpus, coverage={"passages": len(ranked)}
    )
    nowhere = said_absent(absent(snapshot, query, bool(ranked)), "this corpus")
    note = local.told(note, local.narrowed(snapshot, filters)[0])
    result.hint = " ".join(
        filter(None, [note, context.query_length_note(query, retrieval.QUERY_CHARACTERS), nowhere])
    )
    if not ranked:
        said = ", ".join(f'"{one_line(one, 80)}"' for one in literals) or "any of these words"
        result.state = "not_found"
        result.text = f"Nothing in {counted(snapshot.manifest.counters.get('passages', 0), 'passages')} holds {said}"
        result.text += " and passes the filters." if filters else "."
        if literals and not nowhere and not filters:
            result.text += " Each of them is in the corpus, but no passage holds them all."
        if filters and not nowhere:
            result.text += " Without the filters there is something."
        result.hint = " ".join(
            filter(None, [result.hint, "Try fewer words without quotes, or local_search."])
        )
        return finish(result, budget)
    if not literals and _is_identifier(query):
        none = f"None holds {one_line(query, 80)!r} as it is written, only parts of it."
        result.hint = f"{result.hint} {none}".strip()
    following = partial(write_cursor, snapshot.manifest.generation, asked)
    form = passages.Form(literals=literals or [query], every=bool(literals))
    source = source_of(snapshot, query, ranked)
    return passages.concise(result, [source], budget, offset[0], following, form)


def source_of(
    snapshot: Snapshot, query: str, scored: list[tuple[str, float]], corpus: str = ""
) -> hits.Source:
    """What matches, for `passages`."""
    worth, _ = ranking.term_worth(snapshot, terms_of(query[: retrieval.QUERY_CHARACTERS]))
    return hits.Source(snapshot, scored, worth, corpus)


def _is_identifier(query: str) -> bool:
    """One word of several parts: E4471, ADR-019, get_source, getSource, os.path."""
    marked = any(ch.isdigit() or ch in "_.:/#-" for ch in query) or query[1:] != query[1:].lower()
    return marked and len(query.split()) == 1 and query.isascii() and len(query_terms(query)) > 1


def matches(
    snapshot: Snapshot, query: str, filters: Sequence[str] = ()
) -> tuple[list[tuple[str, float]], list[str]]:
    """(passage id, score) of what matches and passes, best first, and the literals of the query, as
    written.
    """
    used = query[: retrieval.QUERY_CHARACTERS]
    literals = quoted(used)
    kept, snapshot = local.narrowed(snapshot, filters)
    ranked: list[tuple[str, float]] = []
    if not literals and _is_identifier(used) and (ranked := _matches(snapshot, used, [used])):
        literals = [used]
    ranked = ranked or _matches(snapshot, used, literals)
    if kept is None:
        return ranked, literals
    facts = local.facts(snapshot, [id for id, _ in ranked])
    ranked = [(id, score) for id, score in ranked if id in facts and kept.passage(*facts[id])]
    timely = kept.timely(snapshot, [id for id, _ in ranked])
    ranked = [(id, score) for id, score in ranked if id in timely]
    if wanted := {row["id"] for row in kept.first}:
        ranked = [(id, score) for id, score in ranked if not wanted.isdisjoint(facts[id][1])]
    return ranked, literals


def absent(snapshot: Snapshot, query: str, found: bool = False) -> list[str]:
    """Words of the query, and what it quotes, that stand nowhere in the corpus, as they were
    written, in this order.

    `found`: something holds all that is quoted, so that only the other words are looked up.
    """
    used = query[: retrieval.QUERY_CHARACTERS]
    known, unknown = ranking.term_worth(snapshot, terms_of(used))
    gone = set(unknown)
    sought = [] if found else quoted(used)[:LITERALS]
    lost = [one for one in sought if not _matches(snapshot, one, [one])]
    words = [word.strip(context.MARKS) for word in unquoted(used).split()]
    lost += [word for word in words if ranking.stands_nowhere(word, known, gone)]
    return list(dict.fromkeys(lost))


def said_absent(lost: Sequence[str], where: str) -> str:
    """The sentence on them; "" for none."""
    more = f" and {len(lost) - LITERALS} more" if len(lost) > LITERALS else ""
    return (
        f"Nowhere in {where}: {', '.join(repr(one_line(one, 80)) for one in lost[:LITERALS])}{more}."
        if lost
        else ""
    )


def _matches(snapshot: Snapshot, query: str, literals: Sequence[str]) -> list[tuple[str, float]]:
    """(passage id, score) best first: the whole query found literally before its words found apart;
    of literals definitions, then those
    in the case that they are written in."""
    worth, _ = ranking.term_worth(snapshot, terms_of(query))
    names = ["id", "text", "terms", "n_terms"]
    if literals:  # every passage is read, for the best ones by words need not be all that hold it
        longest = pattern(plain(max(literals, key=len)))
        rows = snapshot.rows("passages", f"regexp_like(text, '{longest}')", names).to_pylist()
        folded = [plain(one) for one in literals]
        found = [row for row in rows if all(map(plain(row["text"]).__contains__, folded))]
    else:
        proposed = snapshot.full_text("passages", list(worth), retrieval.CANDIDATES, names)
        found = proposed.select(names).to_pylist()
    score = ranking.bm25(snapshot, worth)
    whole = plain(query)
    raw = {row["id"]: score(row["terms"], row["n_terms"]) for row in found}
    top = max(raw.values(), default=0.0) or 1.0
    exact = {row["id"]: whole in plain(row["text"]) for row in found}
    cased = {row["id"]: all(one in row["text"] for one in literals) for row in found}
    scored = [(id, 0.9 * value / top + 0.1 * exact[id]) for id, value in raw.items()]
    defined = {row["id"] for row in found if hits.defines(row["text"], literals)}
    first = cased if literals else exact
    return sorted(
        scored,
        key=lambda one: (one[0] not in defined, not first[one[0]], -round(one[1], 9), one[0]),
    )
