"""Full-text search over passages, and exact search for what stands in quotation marks.

An exact search reads every passage and finds any spelling of the quoted text: case, width, white
space, traditional or simplified characters aside. Knows neither entities nor reports."""

from __future__ import annotations

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from graphrag_mcp.errors import BadInput
from graphrag_mcp.names.extract import terms_of
from graphrag_mcp.packing.budget import clamp_budget, finish, one_line
from graphrag_mcp.query import local, render
from graphrag_mcp.query.candidates import PROPOSED, bm25
from graphrag_mcp.query.hits import Source
from graphrag_mcp.query.notes import ABSENT, joined, length_note
from graphrag_mcp.query.plugin import defines
from graphrag_mcp.query.question import (
    MARKS,
    QUERY_CHARACTERS,
    Question,
    in_addresses,
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


_EITHER = re.compile(r"\s(?:OR|\|)(?:\s+(?:OR|\|))*(?=\s)")  # "car show" OR "car meet"
WORDS = 4  # of an alternative without quotation marks
QUOTATIONS = 100  # of one query
# The soft hyphen, zero width space, word joiner and byte order mark divide no word.
UNSEEN = "\u00ad\u200b\u2060\ufeff"
# Markdown and LaTeX write a backslash before a sign that would mean something: MAX\_RETRY, 50\%.
_PLAIN = {**SIMPLIFY, **dict.fromkeys(map(ord, UNSEEN))}
_ESCAPE = re.compile(rf"\\(?=[{re.escape(string.punctuation)}])")

# Readers write a raised number as `^2`, and NFKC makes `²` the digit 2: "10² Mio" is not "102 Mio".
_RAISED = "[⁺⁻⁰¹²³⁴-⁹]+"


def quoted(query: str) -> list[str]:
    """What stands in quotation marks, as it was written; of `robot OR "light drone"` both."""
    return [literal for group in groups(query) for literal in group]


def groups(query: str) -> list[list[str]]:
    """The strings that a passage must contain, as they were written. Of each group it must contain
    one string. A group is a quotation, or the strings on both sides of OR: quotations, words, or
    several words. BadInput for too many quotations."""
    query = query.replace("\0", " ")
    marks = (next(filter(None, match.groups())) for match in _QUOTED.finditer(query))
    sides = [side.split() for side in _EITHER.split(_QUOTED.sub(" \0 ", query))]
    last, found = len(sides) - 1, list[list[str]]()
    if last and len(sides[0]) > WORDS and not _QUOTED.search(query):
        return []  # a sentence
    for at, side in enumerate(sides):
        parts = [(next(marks), True) if word == "\0" else (word, False) for word in side]
        phrase = " ".join(side) if last and 1 < len(side) <= WORDS and "\0" not in side else ""
        if phrase:
            parts = [(phrase, True)]
        for n, (text, whole) in enumerate(parts):
            if len(text) < 2 and not (whole or is_cjk(text)):
                continue  # every passage holds a letter
            if at and not n and found:
                found[-1].append(text)
            elif whole or (at < last and n == len(parts) - 1):
                found.append([text])
    kept = dict.fromkeys(tuple(literal for literal in group if plain(literal)) for group in found)
    literals = {literal for group in kept for literal in group}
    if len(literals) > QUOTATIONS:  # each is compared with every passage
        what = (
            f"the query has {len(literals)} quoted strings, and at most {QUOTATIONS} are looked for"
        )
        raise BadInput(what, "Ask in several calls")
    return [list(group) for group in kept if group]


def plain(text: str) -> str:
    """The text in the form in which literals are compared: NFKC, raised numbers as `^2`, case folded,
    traditional characters as simplified characters, white space as one space, no line breaks in Chinese
    words, nothing UNSEEN."""
    if text.isascii():  # the rest changes nothing there
        return " ".join(text.casefold().split())
    text = re.sub(_RAISED, lambda found: "^" + found[0].replace("⁻", "-"), text)
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


def _holding(
    snapshot: Snapshot,
    sought: Sequence[Sequence[str]],
    most: bool = False,
    bare: Container[str] = (),
    apart: bool = True,
) -> list[tuple[dict[str, Any], set[str]]]:
    """Rows of the passages that hold one literal of each group (of any with `most`), with all that they
    hold: within words only where no word begins with one, and those that are `bare` only as whole
    words, which may stand `apart`. A literal without a backslash is looked for in the text without its escapes. Every passage is
    read, for the best by words need not be all that hold them."""
    folded = [{plain(literal): literal for literal in group} for group in sought]
    read = [pair for group in folded for pair in group.items()]
    if not most:
        read = [*max(folded, key=lambda group: min(map(len, group))).items()]
    alternatives = "|".join(
        pattern(max(literal.split(), key=len) if apart and written in bare else literal)
        for literal, written in read
    )
    texts = snapshot.rows("passages", "", ["id", "text"])
    column = texts["text"]
    if "^" in alternatives:
        column = pc.replace_substring_regex(column, f"({_RAISED})", r"^\1")
        column = pc.replace_substring(column, "⁻", "-")
    normal = pc.call_function("utf8_normalize", [column], pc.Utf8NormalizeOptions("NFKC"))
    whole = pc.replace_substring_regex(normal, f"[{UNSEEN}]", "")
    kept = pc.match_substring_regex(whole, alternatives, ignore_case=True)
    ids = values_of(texts["id"].filter(kept))
    rows = snapshot.by_key("passages", ids, "id", COLUMNS).to_pylist()
    candidates = [(row, plain(row["text"])) for row in rows]
    for within in (False, True):

        def holds(text: str, literal: str, written: str, within: bool = within) -> bool:
            text = text if "\\" in literal else _ESCAPE.sub("", text)
            if written in bare:
                words = literal.split() if apart else [literal]
                return all(_is_word(text, word, end=True) for word in words)
            return literal in text if within else _is_word(text, literal)

        matched = [
            (
                row,
                [
                    {form for key, form in group.items() if holds(text, key, form)}
                    for group in folded
                ],
            )
            for row, text in candidates
        ]
        if found := [
            (row, set().union(*forms)) for row, forms in matched if (any if most else all)(forms)
        ]:
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
    rows = [row for row, _ in _holding(snapshot, [names], bare=frozenset(names), apart=False)]
    if kept is not None:
        passing = kept.passing(snapshot, [_ranked(row, 0.0) for row in rows])
        ids = {passage.id for passage in passing if kept.includes(passage.entity_ids)}
        rows = [row for row in rows if row["id"] in ids]
    worth, _ = term_worth(snapshot, terms_of(" ".join(names)))
    score = bm25(snapshot, worth)
    return sorted(rows, key=lambda row: (-round(score(row["terms"], row["n_terms"]), 9), row["id"]))


def is_word(text: str, name: str, cased: bool = True) -> bool:
    """Does the name stand in the text as whole words, in the case it is written in unless not `cased`?"""
    if not cased:
        return _is_word(plain(text), plain(name), end=True)
    return _is_word(" ".join(text.split()), name, end=True)


def bare_alternatives(query: str) -> frozenset[str]:
    """The words beside OR that stand without quotation marks. They mean words, several of them all of these:
    SEC is not in "6.56 secs"."""
    if not _EITHER.search(query):
        return frozenset()
    marked = {next(filter(None, match.groups())) for match in _QUOTED.finditer(query)}
    return frozenset(quoted(query)) - marked


READ = 40  # passages of each of several literals that are put in turns
MOST = "No passage holds all of these: those with most of them come first."
# Literals that are looked up when they stand nowhere.
LITERALS, ALTERNATIVES = 5, 15
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
    literals: list[str] = []
    lost: list[tuple[list[str], list[str]]] = []
    for name, snapshot, kept in local.narrowed(corpora, filters):
        found, literals, note = matches(snapshot, query, kept)
        sources.append(Source(snapshot, found, name, useful=bool(found.passages)))
        lost.append(absent(snapshot, query, literals, bool(found.passages) and not note))
        for message in (kept.note if kept else "", note):
            result.hint = joined(
                result.hint, f"In {name}: {message}" if name and message else message
            )
    missing, apart = (
        [word for word in first if all(word in words for words in of)]
        for first, of in ((of[0], of) for of in zip(*lost, strict=True))
    )
    nowhere = ""
    if missing:
        where = "this corpus" if len(corpora) == 1 else "these corpora"
        more = f" and {len(missing) - ABSENT} more" if len(missing) > ABSENT else ""
        listed = ", ".join(repr(one_line(word, 80)) for word in missing[:ABSENT])
        nowhere = f"Nowhere in {where}: {listed}{more}."
    if apart:
        listed = ", ".join(repr(one_line(part, 80)) for part in apart)
        nowhere = joined(nowhere, f"No passage holds all words of {listed}.")
    result.hint = joined(result.hint, nowhere)
    result.coverage["passages"] = sum(len(source.found.passages) for source in sources)
    useful = [source for source in sources if source.useful]
    if not useful:
        sought = (
            ", ".join(f'"{one_line(literal, 80)}"' for literal in literals) or "any of these words"
        )
        count = sum(snapshot.manifest.counters.get("passages", 0) for _, snapshot in corpora)
        sought = f"{counted(count, 'passages')} holds {sought}"
        return finish(_nothing(result, sought, bool(filters), bool(nowhere)), budget)
    if empty := [source.corpus for source in sources if not source.useful]:
        result.hint = joined(result.hint, f"Nothing in {', '.join(empty)}.")
    if not literals and (word := identifier(query)):
        none = f"None holds {one_line(word, 80)!r} as it is written, only parts of it."
        result.hint = joined(result.hint, none)
    several = len(literals) > 1 and (bool(_EITHER.search(query)) or MOST in result.hint)
    window = render.WINDOW if several else 0
    bare = bare_alternatives(query)
    words = (word for literal in literals if literal in bare for word in literal.split())
    shown = list(dict.fromkeys([*literals, *words])) or [query]
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
    snapshot: Snapshot, query: str, kept: Filters | None = None
) -> tuple[Ranking, list[str], str]:
    """What matches and passes, best first, with the literals of the query, as written; where none holds
    all that is quoted, those with most of it, and sentences that say so."""
    used = query[:QUERY_CHARACTERS]
    bare = bare_alternatives(used)
    sought = groups(used)
    ways = [(sought, False), (sought, True)][: len(sought) or 1]
    if not sought and (word := identifier(used)):
        ways.insert(0, ([[word]], False))

    def passing(required: list[list[str]], most: bool) -> Ranking:
        found = _matches(snapshot, used, required, most, bare)
        if kept is None:
            return found
        passages = kept.passing(snapshot, found.passages)
        return replace(found, passages=[p for p in passages if kept.includes(p.entity_ids)])

    required, most = ways.pop(0)
    while not (found := passing(required, most)).passages and ways:
        required, most = ways.pop(0)
    literals = [literal for group in required for literal in group]
    return found, literals, MOST if most and found.passages else ""


def absent(
    snapshot: Snapshot, query: str, literals: Sequence[str], found: bool = False
) -> tuple[list[str], list[str]]:
    """Words of the query, and of its literals, that stand nowhere in the corpus, as they were
    written, in this order; and parts of OR whose words stand in no passage together. `found`: something
    holds all that is quoted, so that only the other words are looked up, and what may stand instead."""
    used = query[:QUERY_CHARACTERS]
    known, unknown = term_worth(snapshot, terms_of(used))
    either = _EITHER.search(used)
    sought = [] if found and not either else literals[: ALTERNATIVES if either else LITERALS]
    bare = bare_alternatives(used)
    rows = (
        _holding(snapshot, [[literal] for literal in sought], True, bare) if len(sought) > 1 else []
    )
    present = {form for _, forms in rows for form in forms}
    lost = [
        literal
        for literal in sought
        if literal not in present
        and not (literal in bare and " " in literal)  # its words follow
        and not _holding(snapshot, [[literal]], bare=bare)
    ]
    words = [word.strip(MARKS) for word in _EITHER.sub(" ", _QUOTED.sub(" ", used)).split()]
    words = [word for word in words if no_form_occurs(word, known, set(unknown))]
    linked = in_addresses(snapshot, words)
    lost = list(dict.fromkeys([*lost, *(word for word in words if word not in linked)]))
    several = [part for part in sought if part in bare - present and " " in part]
    return lost, [part for part in several if not any(word in part.split() for word in words)]


def _matches(
    snapshot: Snapshot,
    query: str,
    sought: Sequence[Sequence[str]],
    most: bool = False,
    bare: Container[str] = (),
) -> Ranking:
    """Passages best first: the whole query found literally before its words found apart; of
    literals those with `most` of them, then the rarest, then definitions, then those in the case that
    they are written in; what stands in addresses alone comes last, since their words are no terms."""
    worth, _ = term_worth(snapshot, terms_of(query))
    asked = Question(query, terms=worth)
    literals = [literal for group in sought for literal in group]
    if sought:
        matched = _holding(snapshot, sought, most, bare)
        if not most and len(literals) > len(sought):
            return Ranking(asked, _by_turns(snapshot, literals, matched, worth))
    else:
        rows = snapshot.full_text("passages", list(worth), PROPOSED, COLUMNS).to_pylist()
        matched = [(row, set()) for row in rows]
    score, whole = bm25(snapshot, worth), plain(query)
    raw = {row["id"]: score(row["terms"], row["n_terms"]) for row, _ in matched}
    top = max(raw.values(), default=0.0) or 1.0
    number = Counter(form for _, forms in matched for form in forms)
    order = []
    for row, forms in matched:
        id, text = row["id"], row["text"]
        exact = whole in plain(text)
        first = all(literal in text for literal in literals) if literals else exact
        value = 0.9 * raw[id] / top + 0.1 * exact
        passage = _ranked(row, value)
        rare = (
            -sum(not forms.isdisjoint(group) for group in sought),
            sum(number[form] for form in forms),
        )
        defined = bool(literals) and defines(text, literals)
        order.append((*rare, not defined, not first, -round(value, 9), id, passage))
    found = [passage for *_, passage in sorted(order, key=lambda place: place[:6])]
    if most:  # those of several corpora are merged by their scores
        found = [
            replace(passage, score=1 - 0.3 * at / len(found)) for at, passage in enumerate(found)
        ]
    return Ranking(asked, found)


def _ranked(row: Mapping[str, Any], score: float) -> Ranked:
    names = ("id", "document_id", "title_id", "entity_ids", "terms")
    return Ranked(**{name: row[name] for name in names}, score=score)


def _by_turns(
    snapshot: Snapshot,
    literals: Sequence[str],
    rows: Sequence[tuple[dict[str, Any], set[str]]],
    worth: Mapping[str, float],
) -> list[Ranked]:
    """The passages that hold one of several literals: the best one on each of these in turn. What holds
    many of them is a table or a menu as often as not, so those with fewest come first, then those of
    documents that have been shown less, then by the words of the literal and those beside the literals."""
    parts = [terms_of(literal) for literal in literals]
    # Words that stand as they were written come before those that stand apart.
    written = {
        literal: {row["id"] for row, _ in rows if plain(literal) in plain(row["text"])}
        for literal in literals
    }
    beside = sorted(worth.keys() - {term for terms in parts for term in terms})
    every = {row["id"]: (row, len(forms)) for row, forms in rows}
    turns: list[dict[str, float]] = []  # for each literal the value of the passages that hold it
    for literal, terms in zip(literals, parts, strict=True):
        score = bm25(snapshot, {term: worth[term] for term in [*terms, *beside] if term in worth})
        holding = (row for row, forms in rows if literal in forms)
        turns.append({row["id"]: score(row["terms"], row["n_terms"]) for row in holding})
    value = {id: max(turn.get(id, 0.0) for turn in turns) for id in every}
    shown = Counter[str]()

    def place(id: str) -> tuple[int, int, float, str]:
        row, held = every[id]
        return held, shown[row["document_id"]], -round(value[id], 9), id

    order: dict[str, None] = {}
    waiting = [
        (sorted(turn, key=lambda id: (id not in whole, place(id)))[:READ], whole)
        for turn, whole in zip(turns, written.values(), strict=True)
    ]
    while any(ids for ids, _ in waiting):
        for ids, whole in waiting:
            ids[:] = [id for id in ids if id not in order]
            if ids:
                order[(best := min(ids, key=lambda id: (id not in whole, place(id))))] = None
                shown[every[best][0]["document_id"]] += 1
    order |= dict.fromkeys(sorted(every.keys() - order.keys(), key=place))
    return [_ranked(every[id][0], 1 - 0.3 * at / len(order)) for at, id in enumerate(order)]
