"""Full-text search over passages, and exact search for what stands in quotation marks (literals.py).

An exact search reads every passage. Knows neither entities nor reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow.compute as pc

from graphrag_mcp.errors import BadInput
from graphrag_mcp.names.extract import terms_of
from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.packing.page import finish
from graphrag_mcp.query import local, render
from graphrag_mcp.query.candidates import PROPOSED, Passage, bm25
from graphrag_mcp.query.hits import Source, notes_apart
from graphrag_mcp.query.literals import (
    UNSEEN,
    Literal,
    identifier,
    literals_of,
    pattern,
    plain,
    stands_in,
    words_beside,
)
from graphrag_mcp.query.notes import joined, length_note, listed
from graphrag_mcp.query.plugin import defines
from graphrag_mcp.query.question import MARKS, QUERY_CHARACTERS, Question, contained, no_form_occurs, term_worth
from graphrag_mcp.query.rank import Ranking
from graphrag_mcp.query.render import DEFAULT_TOKENS, Form
from graphrag_mcp.query.request import Request
from graphrag_mcp.store.tables import Snapshot, values_of
from graphrag_mcp.text.terms import counted
from graphrag_mcp.types import SearchResult

if TYPE_CHECKING:
    from graphrag_mcp.query.filters import Filters

MOST = "No passage holds all of these: those with most of them come first."
COLUMNS = ("id", "title_id", "document_id", "entity_ids", "text", "terms", "n_terms")
Row = dict[str, Any]


class Held(NamedTuple):
    """A passage, and which literals it holds, as they were written."""

    row: Row
    literals: frozenset[str]


class Matches(NamedTuple):
    """What matches a query, the literals that were looked for as they were written, and MOST where no passage holds
    all of them."""

    ranking: Ranking
    literals: list[str]
    note: str = ""


# ---- the search --------------------------------------------------------------------------------------


def search_text(
    snapshot: Snapshot, query: str, *, max_tokens: int = DEFAULT_TOKENS, cursor: str = "", filters: Sequence[str] = ()
) -> SearchResult:
    """Full text over the passages. What is in quotes must occur literally (case, width aside)."""
    request = Request(query, max_tokens, cursor, filters, beside=0)
    return search([("", snapshot)], request)


def search(corpora: Sequence[local.Corpus], request: Request) -> SearchResult:
    """The same in several corpora."""
    note = length_note(request.query)
    query = request.query.strip()[:QUERY_CHARACTERS]
    begun = local.begin(corpora, request, f"text|{query}|{[*request.filters]}", DEFAULT_TOKENS)
    result, budget = begun.result, begun.budget
    if begun.over:
        return result
    if not query:
        what = "the query is empty"
        raise BadInput(what, 'Give words to find, with exact ones in quotes: "to be or not"')
    result.hint = joined(result.hint, note)
    sources, literals = list[Source](), list[str]()
    for name, snapshot, kept in begun.parts:
        ranking, written, lacking = matches(snapshot, query, kept)
        literals = written or literals
        # A note that holds what stands in quotes is a hit as any other.
        notes = frozenset[str]() if written else notes_apart(snapshot, ranking.passages)
        sources.append(Source(snapshot, ranking, name, notes=notes))
        for message in filter(None, (kept.note if kept else "", lacking)):
            result.hint = joined(result.hint, f"In {name}: {message}" if name else message)
    first, *others = (absent(snapshot, query) for _, snapshot, _ in begun.parts)
    missing = [word for word in first if all(word in words for words in others)]
    where = "this corpus" if len(begun.parts) == 1 else "these corpora"
    result.hint = joined(result.hint, listed(f"Nowhere in {where}", missing))
    result.coverage["passages"] = sum(len(source.found.passages) for source in sources)
    useful = [source for source in sources if source.useful]
    if not useful:
        sought = ", ".join(f'"{one_line(literal, 80)}"' for literal in literals)
        count = sum(snapshot.manifest.counters.get("passages", 0) for _, snapshot in corpora)
        passing = " and passes the filters" if request.filters else ""
        result.state = "not_found"
        result.text = f"Nothing in {counted(count, 'passages')} holds {sought or 'any of these words'}{passing}."
        if request.filters and not missing:
            result.text += " Without the filters there is something."
        result.hint = joined(result.hint, "Try fewer words without quotes, or local_search.")
        return finish(result, budget)
    if empty := [source.corpus for source in sources if not source.useful]:
        result.hint = joined(result.hint, f"Nothing in {', '.join(empty)}.")
    if not literals and (word := identifier(query)):
        none = f"None holds {one_line(word, 80)!r} as it is written, only parts of it."
        result.hint = joined(result.hint, none)
    asked_for, either = literals_of(query)
    words = (word for literal in asked_for if literal.bare for word in literal.written.split())
    several = len(literals) > 1 and (either or MOST in result.hint)
    form = Form(
        literals=list(dict.fromkeys([*literals, *words])) or [query],
        every=bool(literals),
        window=render.WINDOW if several else 0,
    )
    shown = replace(request, query=query, form=form)
    return local.show(result, useful, budget, begun.offset, begun.cursor, shown)


def matches(snapshot: Snapshot, query: str, kept: Filters | None = None, of: str = "id") -> Matches:
    """What matches and passes, best first; where no passage holds all that is quoted, those with most of it.
    `of`: what must hold all, the passage, or (`document_id`) its document."""
    query = query[:QUERY_CHARACTERS]
    literals, either = literals_of(query)
    single = "" if literals else identifier(query)
    if single:
        literals = [Literal(single, (plain(single),))]
    worth, _ = term_worth(snapshot, terms_of(query))
    held = _holding(snapshot, literals) if literals else []
    if not held and (not literals or single):
        literals = []
        rows = snapshot.full_text("passages", list(worth), PROPOSED, COLUMNS).to_pylist()
        held = [Held(row, frozenset()) for row in rows]
    held = _passing(held, kept)
    written, note = [literal.written for literal in literals], ""
    if not either:
        together: dict[str, set[str]] = {}
        for row, forms in held:
            together.setdefault(row[of], set()).update(forms)
        whole = [each for each in held if len(together[each.row[of]]) == len(written)]
        note, held = MOST if held and not whole else "", whole or held
    ranked = _in_order(snapshot, query, written, held, worth, either)
    return Matches(Ranking(Question(query, terms=worth), ranked), written, note)


def naming(snapshot: Snapshot, names: Sequence[str], kept: Filters | None = None) -> list[Row]:
    """Rows of the passages that contain one of these names as whole words, in upper or lower case,
    best first."""
    sought = [Literal(name, (plain(name),), bare=True) for name in names]
    rows = [row for row, _ in _passing(_holding(snapshot, sought), kept)]
    score = bm25(snapshot, term_worth(snapshot, terms_of(" ".join(names)))[0])
    return sorted(rows, key=lambda row: (-round(score(row["terms"], row["n_terms"]), 9), row["id"]))


def absent(snapshot: Snapshot, query: str) -> list[str]:
    """Literals of the query, and words beside them, that stand nowhere in the corpus, as they were written."""
    query = query[:QUERY_CHARACTERS]
    literals, _ = literals_of(query)
    known, unknown = term_worth(snapshot, terms_of(query))
    lost = list(literals)
    while lost and (held := {form for each in _holding(snapshot, lost) for form in each.literals}):
        lost = [literal for literal in lost if literal.written not in held]
    bare = {word for each in literals if each.bare for word in each.written.split()}
    words = [word.strip(MARKS) for word in words_beside(query) if word not in bare]
    words = [word for word in words if no_form_occurs(word, known, set(unknown))]
    linked = contained(snapshot, words)
    nowhere = [literal.written for literal in lost]
    return list(dict.fromkeys([*nowhere, *(word for word in words if word not in linked)]))


# ---- passages ----------------------------------------------------------------------------------------


def _holding(snapshot: Snapshot, literals: Sequence[Literal]) -> list[Held]:
    """The passages that hold one of these literals, with all that each holds: inside of words only where no passage
    holds one at the beginning of a word. Every passage is read, for the best by words need not be all."""
    alternatives = "|".join(pattern(max(literal.forms, key=len)) for literal in literals)
    texts = snapshot.rows("passages", "", ["id", "text"])
    options = pc.Utf8NormalizeOptions("NFKC")
    normal = pc.call_function("utf8_normalize", [texts["text"]], options)
    whole = pc.replace_substring_regex(normal, f"[{UNSEEN}]", "")
    kept = pc.match_substring_regex(whole, alternatives, ignore_case=True)
    ids = values_of(texts["id"].filter(kept))
    rows = snapshot.by_key("passages", ids, "id", COLUMNS).to_pylist()
    candidates = [(row, plain(row["text"])) for row in rows]
    for anywhere in (False, True):
        held = [
            Held(row, frozenset(each.written for each in literals if each.within(text, anywhere)))
            for row, text in candidates
        ]
        if found := [each for each in held if each.literals]:
            return found
    return []


def _passing(held: Sequence[Held], kept: Filters | None) -> list[Held]:
    """Those that pass the filters."""
    if kept is None:
        return list(held)
    ids = kept.passing((row["id"], row["document_id"], row["entity_ids"]) for row, _ in held)
    return [each for each in held if each.row["id"] in ids]


def _in_order(
    snapshot: Snapshot,
    query: str,
    written: Sequence[str],
    held: Sequence[Held],
    worth: Mapping[str, float],
    either: bool,
) -> list[Passage]:
    """Passages best first: those with most literals, unless one suffices; then those that hold them as whole words,
    definitions, those with the literals or the whole query as written, and by words. Without literals the score is
    that of the words; else the share of the literals that a passage must hold and does, which falls with its place,
    since the passages of several corpora are merged by it."""
    by_words = bm25(snapshot, worth)
    raw = {row["id"]: by_words(row["terms"], row["n_terms"]) for row, _ in held}
    top = max(raw.values(), default=0.0) or 1.0

    def place(each: Held) -> tuple[int, bool, bool, bool, float, str]:
        row, text = each.row, plain(each.row["text"])
        exact = all(form in row["text"] for form in written) if written else plain(query) in text
        return (
            0 if either else -len(each.literals),
            any(not stands_in(text, plain(form), whole=True) for form in each.literals),
            not (written and defines(row["text"], written)),
            not exact,
            -round(raw[row["id"]], 9),
            row["id"],
        )

    def score(each: Held, at: int) -> float:
        if not written:
            return raw[each.row["id"]] / top
        share = 1.0 if either else len(each.literals) / len(written)
        return share * (1 - 0.3 * at / len(held))

    names = ("id", "document_id", "title_id", "entity_ids", "terms")
    order = sorted(held, key=place)
    return [
        Passage(**{name: each.row[name] for name in names}, score=score(each, at)) for at, each in enumerate(order)
    ]
