"""Full-text search over passages, and exact search for what stands in quotation marks.

An exact search reads every passage and finds any spelling of the quoted text: case, width, white
space, traditional or simplified characters aside. Knows neither entities nor reports."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from graphrag_mcp.errors import BadInput
from graphrag_mcp.names.extract import terms_of
from graphrag_mcp.packing.budget import clamp_budget, one_line
from graphrag_mcp.packing.page import finish
from graphrag_mcp.query import local, render
from graphrag_mcp.query.candidates import PROPOSED, bm25
from graphrag_mcp.query.hits import Source
from graphrag_mcp.query.notes import ABSENT, joined, length_note
from graphrag_mcp.query.plugin import defines
from graphrag_mcp.query.question import (
    MARKS,
    QUERY_CHARACTERS,
    Question,
    contained,
    no_form_occurs,
    term_worth,
)
from graphrag_mcp.query.rank import Ranked, Ranking
from graphrag_mcp.query.render import DEFAULT_TOKENS, Form
from graphrag_mcp.query.request import Request
from graphrag_mcp.store.tables import Snapshot, values_of
from graphrag_mcp.text.terms import SIMPLIFY, counted, is_cjk, unwrapped
from graphrag_mcp.types import SearchResult

if TYPE_CHECKING:
    from graphrag_mcp.query.filters import Filters

_TRADITIONAL: dict[str, str] = {}
for _code, _simple in SIMPLIFY.items():
    _TRADITIONAL[_simple] = _TRADITIONAL.get(_simple, "") + chr(_code)
_QUOTED = re.compile(
    r'"([^"]{1,500})"|“([^“”]{1,500})”|「([^「」]{1,500})」|『([^『』]{1,500})』|«([^«»]{1,500})»'
)
_EITHER = re.compile(r"\s(?:OR|\|)(?=\s)")  # "car show" OR "car meet"
WORDS = 4  # of an alternative without quotation marks
QUOTATIONS = 100  # of one query
# The soft hyphen, zero width space, word joiner and byte order mark divide no word.
UNSEEN = "\u00ad\u200b\u2060\ufeff"
_PLAIN = {**SIMPLIFY, **dict.fromkeys(map(ord, UNSEEN))}
# Markdown and LaTeX write a backslash before a sign that would mean something: MAX\_RETRY, 50\%.
_ESCAPE = re.compile(rf"\\(?=[{re.escape(string.punctuation)}])")


@dataclass(frozen=True, slots=True)
class Literal:
    """What a passage must contain: the plain forms of a quotation, at the beginning of a word, or of the `bare` words
    beside OR, as whole words: SEC is not in "6.56 secs"."""

    written: str
    forms: tuple[str, ...]
    bare: bool = False

    def within(self, text: str, anywhere: bool) -> bool:
        """Does a plain text contain it? `anywhere`: also inside a word, as "suing" in "issuing"."""
        unescaped = _ESCAPE.sub("", text)
        return all(
            (form in of if anywhere and not self.bare else _is_word(of, form, end=self.bare))
            for form in self.forms
            for of in ((text,) if "\\" in form else (unescaped,))
        )


def literals_of(query: str) -> tuple[list[Literal], bool]:
    """The literals of a query, and does one of them suffice? Without OR these are its quotations, and all are needed;
    with OR its quotations and the up to WORDS bare words on each side. BadInput for too many."""
    query = query.replace("\0", " ")
    marks = (next(filter(None, match.groups())) for match in _QUOTED.finditer(query))
    sides = [side.split() for side in _EITHER.split(_QUOTED.sub(" \0 ", query))]
    either = len(sides) > 1
    found: dict[str, Literal] = {}
    for words in sides:
        quotations = [next(marks) for word in words if word == "\0"]
        for mark in quotations:
            if form := plain(mark):
                found.setdefault(mark, Literal(mark, (form,)))
        if either and words and not quotations:
            if len(words) > WORDS:  # a sentence
                return [], False
            written, forms = " ".join(words), tuple(filter(None, map(plain, words)))
            if forms:
                found.setdefault(written, Literal(written, forms, bare=True))
    if len(found) > QUOTATIONS:  # each is compared with every passage
        what = f"the query has {len(found)} quoted strings, and at most {QUOTATIONS} are looked for"
        raise BadInput(what, "Ask in several calls")
    return list(found.values()), either


def quoted(query: str) -> list[str]:
    """What stands in quotation marks, as it was written; of `robot OR "light drone"` both."""
    return [literal.written for literal in literals_of(query)[0]]


def plain(text: str) -> str:
    """The text in the form in which literals are compared: NFKC, case folded, traditional characters as simplified
    characters, white space as one space, no line breaks in Chinese words, nothing UNSEEN."""
    if text.isascii():  # the rest changes nothing there
        return " ".join(text.casefold().split())
    whole = unwrapped(unicodedata.normalize("NFKC", text))
    return " ".join(whole.casefold().translate(_PLAIN).split())


def pattern(literal: str) -> str:
    """A regular expression that ignores case, for texts in NFKC whose `plain` form may equal that
    of this text. Its matches are still to be compared."""
    literal = literal.encode("utf-8", "replace").decode("utf-8")  # half a character is in no text
    parts: list[str] = []
    for ch, following in zip(literal, [*literal[1:], " "], strict=True):
        plainly = r"\s+" if ch == " " else re.escape(ch)
        if ch in string.punctuation and "\\" not in literal:
            parts.append(r"\\?")  # of an escape
        parts.append(f"[{ch}{_TRADITIONAL[ch]}]" if ch in _TRADITIONAL else plainly)
        if is_cjk(ch) and is_cjk(following):
            parts.append(r"\s*")  # a line may end between them
    found = "".join(parts)
    for folded, whole in (("ss", "ß"), ("i̇", "İ")):
        found = found.replace(folded, f"(?:{folded}|{whole})")
    return found


Held = tuple[
    dict[str, Any], set[str]
]  # a row of a passage, and the literals that it holds, as written


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
        matched = [
            (row, {each.written for each in literals if each.within(text, anywhere)})
            for row, text in candidates
        ]
        if found := [(row, held) for row, held in matched if held]:
            return found
    return []


def _is_word(text: str, literal: str, end: bool = False) -> bool:
    """Does the literal stand in the text where a word begins, not only within one, as "suing" within
    "issuing"; with `end`, also where a word ends? Words of Chinese have no such limits, and with `end` a
    number is a word of its own: JPY of "JPY8 billion"."""

    def joined(before: str, after: str) -> bool:
        alike = not end or before.isdigit() == after.isdigit()
        return alike and all(ch.isalnum() and not is_cjk(ch) for ch in (before, after))

    at = text.find(literal)
    while at >= 0:
        behind = at + len(literal)
        begins = at == 0 or not joined(text[at - 1], literal[0])
        if begins and not (end and behind < len(text) and joined(literal[-1], text[behind])):
            return True
        at = text.find(literal, at + 1)
    return False


def naming(
    snapshot: Snapshot, names: Sequence[str], kept: Filters | None = None
) -> list[dict[str, Any]]:
    """Rows of the passages that contain one of these names as whole words, in upper or lower case,
    best first."""
    sought = [Literal(name, (plain(name),), bare=True) for name in names]
    rows = [row for row, _ in _holding(snapshot, sought)]
    if kept is not None:
        ids = kept.passing((row["id"], row["document_id"], row["entity_ids"]) for row in rows)
        rows = [row for row in rows if row["id"] in ids]
    worth, _ = term_worth(snapshot, terms_of(" ".join(names)))
    score = bm25(snapshot, worth)
    return sorted(rows, key=lambda row: (-round(score(row["terms"], row["n_terms"]), 9), row["id"]))


def is_word(text: str, name: str, cased: bool = True) -> bool:
    """Does the name stand in the text as whole words, in the case it is written in unless not `cased`?"""
    if not cased:
        return _is_word(plain(text), plain(name), end=True)
    return _is_word(" ".join(text.split()), name, end=True)


MOST = "No passage holds all of these: those with most of them come first."
COLUMNS = ("id", "title_id", "document_id", "entity_ids", "text", "terms", "n_terms")


def search_text(
    snapshot: Snapshot,
    query: str,
    *,
    max_tokens: int = DEFAULT_TOKENS,
    cursor: str = "",
    filters: Sequence[str] = (),
) -> SearchResult:
    """Full text over the passages. What is in quotes must occur literally (case, width aside)."""
    parts = [("", snapshot)]
    return search(parts, query, max_tokens=max_tokens, cursor=cursor, filters=filters)


def search(
    corpora: Sequence[local.Corpus],
    query: str,
    *,
    max_tokens: int = DEFAULT_TOKENS,
    cursor: str = "",
    filters: Sequence[str] = (),
    beside: int = 0,
) -> SearchResult:
    """The same in several corpora. `beside`: tokens that a note may take beside the budget."""
    budget, note = clamp_budget(max_tokens, DEFAULT_TOKENS)
    result = local.begun(corpora, "text")
    result.hint = joined(note, length_note(query))
    corpora = local.with_text(corpora)
    if not corpora:
        return finish(local.without_text(result), budget)
    query = query.strip()[:QUERY_CHARACTERS]
    if not query:
        what = "the query is empty"
        raise BadInput(what, 'Give words to find, with exact ones in quotes: "to be or not"')
    offsets, page = local.paging(corpora, f"text|{query}|{[*filters]}", cursor, 1)
    if offsets is None:
        return finish(local.stale(result), budget)
    sources: list[Source] = []
    asked_for, either = literals_of(query)
    literals: list[str] = []
    lost: list[list[str]] = []
    for name, snapshot, kept in local.narrowed(corpora, filters):
        found, literals, note = matches(snapshot, query, kept)
        sources.append(Source(snapshot, found, name))
        lost.append(absent(snapshot, query))
        for message in filter(None, (kept.note if kept else "", note)):
            result.hint = joined(result.hint, f"In {name}: {message}" if name else message)
    missing = [word for word in lost[0] if all(word in words for words in lost)]
    if missing:
        where = "this corpus" if len(corpora) == 1 else "these corpora"
        more = f" and {len(missing) - ABSENT} more" if len(missing) > ABSENT else ""
        listed = ", ".join(repr(one_line(word, 80)) for word in missing[:ABSENT])
        result.hint = joined(result.hint, f"Nowhere in {where}: {listed}{more}.")
    result.coverage["passages"] = sum(len(source.found.passages) for source in sources)
    useful = [source for source in sources if source.useful]
    if not useful:
        sought = ", ".join(f'"{one_line(literal, 80)}"' for literal in literals)
        count = sum(snapshot.manifest.counters.get("passages", 0) for _, snapshot in corpora)
        sought = f"{counted(count, 'passages')} holds {sought or 'any of these words'}"
        return finish(_nothing(result, sought, bool(filters), bool(missing)), budget)
    if empty := [source.corpus for source in sources if not source.useful]:
        result.hint = joined(result.hint, f"Nothing in {', '.join(empty)}.")
    if not literals and (word := identifier(query)):
        none = f"None holds {one_line(word, 80)!r} as it is written, only parts of it."
        result.hint = joined(result.hint, none)
    several = len(literals) > 1 and (either or MOST in result.hint)
    words = (word for literal in asked_for if literal.bare for word in literal.written.split())
    shown = list(dict.fromkeys([*literals, *words])) or [query]
    window = render.WINDOW if several else 0
    form = Form(literals=shown, every=bool(literals), window=window)
    request = Request(query, form=form, beside=beside)
    return local.show(result, useful, budget, offsets[0], page, request)


def _nothing(result: SearchResult, sought: str, filtered: bool, absent: bool) -> SearchResult:
    result.state = "not_found"
    result.text = f"Nothing in {sought}{' and passes the filters' if filtered else ''}."
    if filtered and not absent:
        result.text += " Without the filters there is something."
    result.hint = joined(result.hint, "Try fewer words without quotes, or local_search.")
    return result


def identifier(query: str) -> str:
    """The query where it is one word of letters and other signs or of two cases, without the marks around it: E4471,
    get_source, getSource, os.path, pre-commit; else ""."""
    word = query.strip("?!.,:;\"'`()[]*")
    camel = not word.isupper() and word[1:] != word[1:].lower()
    marked = camel or (any(map(str.isalnum, word)) and not word.replace("'", "").isalpha())
    return word if marked and len(word.split()) == 1 and word.isascii() else ""


def matches(
    snapshot: Snapshot, query: str, kept: Filters | None = None, of: str = "id"
) -> tuple[Ranking, list[str], str]:
    """What matches and passes, best first, with the literals of the query that were looked for; where no passage
    holds all that is quoted, those with most of it, and a sentence that says so. `of`: what must hold all, the
    passage, or (`document_id`) its document."""
    literals, either = literals_of(query[:QUERY_CHARACTERS])
    single = not literals and identifier(query)
    if single:
        literals = [Literal(single, (plain(single),))]
    worth, _ = term_worth(snapshot, terms_of(query))
    asked = Question(query, terms=worth)
    held = _holding(snapshot, literals) if literals else []
    if not held and (not literals or single):
        literals = []
        rows = snapshot.full_text("passages", list(worth), PROPOSED, COLUMNS)
        held = [(row, set[str]()) for row in rows.to_pylist()]
    if kept is not None:
        ids = kept.passing((row["id"], row["document_id"], row["entity_ids"]) for row, _ in held)
        held = [(row, forms) for row, forms in held if row["id"] in ids]
    written = [literal.written for literal in literals]
    if either and literals:
        return Ranking(asked, _by_turns(snapshot, literals, held, worth)), written, ""
    together: dict[str, set[str]] = {}
    for row, forms in held:
        together.setdefault(row[of], set()).update(forms)
    whole = [pair for pair in held if len(together[pair[0][of]]) == len(written)]
    note = MOST if held and not whole else ""
    return Ranking(asked, _in_order(snapshot, query, written, whole or held, worth)), written, note


def absent(snapshot: Snapshot, query: str) -> list[str]:
    """Literals of the query, and words beside them, that stand nowhere in the corpus, as they were written."""
    used = query[:QUERY_CHARACTERS]
    literals, _ = literals_of(used)
    known, unknown = term_worth(snapshot, terms_of(used))
    lost = list(literals)
    while lost and (held := {form for _, forms in _holding(snapshot, lost) for form in forms}):
        lost = [literal for literal in lost if literal.written not in held]
    bare = (word for each in literals if each.bare for word in each.written.split())
    beside = {*_EITHER.sub(" ", _QUOTED.sub(" ", used)).split()} - {*bare}
    words = (word.strip(MARKS) for word in used.split() if word in beside)
    words = [word for word in words if no_form_occurs(word, known, set(unknown))]
    linked = contained(snapshot, words)
    nowhere = [literal.written for literal in lost]
    return list(dict.fromkeys([*nowhere, *(word for word in words if word not in linked)]))


def _in_order(
    snapshot: Snapshot,
    query: str,
    written: Sequence[str],
    held: Sequence[Held],
    worth: Mapping[str, float],
) -> list[Ranked]:
    """Passages best first: those with most literals, then those that hold them as whole words, then definitions, then
    those with the whole query or literals as written, then by words."""
    score, whole = bm25(snapshot, worth), plain(query)
    raw = {row["id"]: score(row["terms"], row["n_terms"]) for row, _ in held}
    top = max(raw.values(), default=0.0) or 1.0
    order = []
    for row, forms in held:
        text = plain(row["text"])
        exact = whole in text
        inside = any(not _is_word(text, plain(form), end=True) for form in forms)
        first = all(form in row["text"] for form in written) if written else exact
        defined = bool(written) and defines(row["text"], written)
        value = 0.9 * raw[row["id"]] / top + 0.1 * exact
        order.append(
            (-len(forms), inside, not defined, not first, -round(value, 9), row["id"], row)
        )
    order.sort(key=lambda place: place[:6])
    # By these the passages of several corpora are merged.
    scores = [1 - 0.3 * at / len(order) if written else -place[4] for at, place in enumerate(order)]
    return [_ranked(place[-1], value) for place, value in zip(order, scores, strict=True)]


def _ranked(row: Mapping[str, Any], score: float) -> Ranked:
    names = ("id", "document_id", "title_id", "entity_ids", "terms")
    return Ranked(**{name: row[name] for name in names}, score=score)


def _by_turns(
    snapshot: Snapshot,
    literals: Sequence[Literal],
    held: Sequence[Held],
    worth: Mapping[str, float],
) -> list[Ranked]:
    """The passages that hold one of several literals: the best one on each of these in turn, as whole words before
    parts of others. What holds many of them is a table or a menu as often as not, so those with fewest come first,
    then by words."""
    score = bm25(snapshot, worth)
    value = {row["id"]: score(row["terms"], row["n_terms"]) for row, _ in held}
    order = sorted(
        held, key=lambda pair: (len(pair[1]), -round(value[pair[0]["id"]], 9), pair[0]["id"])
    )
    texts = {row["id"]: plain(row["text"]) for row, _ in held}
    turns: list[list[dict[str, Any]]] = []
    for literal in literals:
        rows_of_it = [row for row, forms in order if literal.written in forms]
        word = plain(literal.written)
        turns.append(
            sorted(rows_of_it, key=lambda row: not _is_word(texts[row["id"]], word, end=True))
        )
    rows = {row["id"]: row for turn in zip_longest(*turns) for row in turn if row is not None}
    return [_ranked(row, 1 - 0.3 * at / len(rows)) for at, row in enumerate(rows.values())]
