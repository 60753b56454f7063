"""Names in text without a model: the `nlp` extractor, for documents and questions.

Gives proper names, acronyms, identifiers of source code and quoted terms. A candidate is `(start,
end, type, strong)`. Where two overlap the finder that ran first wins; only a quoted term may contain
other names. Addresses and attributes are blanked first. How often a name must be seen before it
counts is decided where mentions are merged."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from graphrag_mcp.names import cjk
from graphrag_mcp.names import lexicon as lex
from graphrag_mcp.names.kinds import by_form, noun_type, words_before
from graphrag_mcp.names.latin import Latin
from graphrag_mcp.names.lexicon import ordinary
from graphrag_mcp.text.prose import fences, sentences
from graphrag_mcp.text.spans import Mention
from graphrag_mcp.text.terms import (
    Patterns,
    composed,
    normalise_name,
    query_terms,
    stop_word,
    table,
    with_origins,
)

Candidate = tuple[int, int, str, bool]
Span = tuple[int, int]
Row = tuple[str, str, int, int]  # key, form, start, end
Fields = tuple[str, str, str, bool, int, int, str]  # of a Mention, in its order

# characters: up to here a text is taken for a question, where single rare words are worth trying
SHORT = 300
LONGEST = 120  # characters of a name; what is longer is a run of letters, not a name
PER_THOUSAND = 60  # distinct keys kept per started 1,000 characters
# An issue with a traceback has 100 to 300 distinct terms. With 64 of them the file to be changed was
# among the first five for 63 % of 19 issues, with 150 for 84 %, with 300 for 89 %.
QUESTION_TERMS = 300
_FORMS = Patterns(table(__file__))


def extract(text: str) -> list[Mention]:
    """All mentions of names in this text, sorted by start; `text[m.start:m.end] == m.form` for
    each, however the letters of the text are composed.

    A text of up to SHORT characters is taken for a question."""
    return [Mention(*fields) for fields in mentions(text, len(text) <= SHORT)]


def terms_of(question: str) -> list[str]:
    """The search terms of a question, then its words of one character that are not among these
    terms."""
    question = composed(question)
    found = query_terms(question, QUESTION_TERMS)
    if question.isascii():
        return found
    return [*found, *(word for word in cjk.alone(question) if word not in found)]


def mentions(text: str, short: bool = False, spans: Sequence[Span] | None = None) -> list[Fields]:
    """The mentions that `extract` gives, as plain tuples, which are made five times as fast. With
    `short`, as for a question, rare single words are names too. `spans` are the sentences, if
    they are known."""
    if text.isascii() or unicodedata.is_normalized("NFC", text):
        return _named(text, short, sentences(text) if spans is None else spans)
    whole, at = with_origins(text)
    return [
        (key, text[at[start] : at[end]], kind, strong, at[start], at[end], alias)
        for key, _, kind, strong, start, end, alias in _named(whole, short, sentences(whole))
    ]


def most(text: str) -> int:
    """The largest number of distinct names whose places `mentions` gives for a composed text."""
    return PER_THOUSAND * (1 + (len(text) - 1) // 1000)


def _named(text: str, short: bool, spans: Sequence[Span]) -> list[Fields]:
    text = without_markup(text)
    pairs, aliases = _definitions(text)
    finders = (
        pairs,
        _speakers(text),
        _identifiers(text),
        _proper(text, short, spans),
        () if text.isascii() else cjk.candidates(text, short),
        _rare_words(text) if short else (),
    )
    taken = bytearray(len(text))
    kept: dict[Span, Candidate] = {}
    for start, end, kind, strong in (candidate for found in finders for candidate in found):
        if taken.find(1, start, end) < 0:
            taken[start:end] = b"\x01" * (end - start)
            kept[start, end] = start, end, kind, strong
    for start, end, kind, strong in _quoted(text, short):
        if known := kept.get((start, end)):
            kind, strong = kind if kind != "other" else known[2], strong or known[3]
        kept[start, end] = start, end, kind, strong
    blocks = [] if short else fences(text)  # what stands in code alone is a word of an example
    return _mentions(
        text,
        [
            (start, end, kind, strong and bisect_right(blocks, start) % 2 == 0)
            for start, end, kind, strong in kept.values()
        ],
        aliases,
    )


# What a text must hold for a pattern to be tried: lines of links to the web and nothing else, as the navigation of a
# page has them, web addresses, mail addresses, targets of links, tags and comments.
_MENU = re.compile(
    r"^[\s*+-]{0,9}(?:\[[^\[\]\n]{0,60}\]\(http[^()\s]{1,2000}(?: \"[^\"\n]{0,200}\")?\)[ \t|•·]{0,9}+)++$",
    re.MULTILINE,
)
_MARKUP = (
    ("](http", _MENU),
    ("://", re.compile(r"\b(?:https?|ftp)://[\w.~:/?#@!$&*+,;=%'-]+", re.ASCII)),
    ("@", re.compile(r"(?<![\w@])[\w.+-]{1,60}@[\w-]{1,60}(?:\.[\w-]{1,30}){1,4}", re.ASCII)),
    ("](", re.compile(r"(?<=\]\()[^()\s]{1,2000}(?:\([^()\s]{0,200}\))?(?: \"[^\"\n]{0,1000}\")?")),
    ("<", re.compile(r"<(?:!--[^<>]{0,2000}--|[A-Za-z][\w-]{0,20}\s[^<>=]{0,200}=[^<>]{0,4000})>")),
)


def without_markup(text: str) -> str:
    """The text with NULs (which no document contains) in place of web and mail addresses, comments and
    tags with attributes. Its length is unchanged. Words of markup would be connected with everything:
    `https` occurred beside 3,299 names of one corpus."""
    for sign, pattern in _MARKUP:
        if sign in text:
            text = pattern.sub(lambda match: "\0" * len(match[0]), text)
    return text


# ---- candidates ---------------------------------------------------------------------------------

_RARE = re.compile(r"(?<![\w.@/\\’'-])[^\W\d_]{3,}+(?![\w(’'])")


def _proper(text: str, short: bool, spans: Sequence[Span]) -> Iterator[Candidate]:
    """Capitalised names; in a question all but the first word of it, and a question that is a name
    alone (Berta Flight)."""
    for name, strong in Latin(text, spans).names():
        asked = short and (not name.opening or " " in name.form == text)
        yield name.start, name.end, name.kind or "other", strong or asked


def _rare_words(text: str) -> Iterator[Candidate]:
    """Words of a question that are neither grammar nor everyday words: who founded microsoft."""
    for match in _RARE.finditer(text):
        word = match[0].lower()
        if not (ordinary(word) or lex.is_grammar(word) or cjk.is_han(word[0])):
            yield (*match.span(), "other", False)


def _speakers(text: str) -> list[Candidate]:
    """Who speaks in a text of turns: behind a time at the start of three lines (`[15:01] <mara> ...`),
    or before a colon at the start of half of its lines (`Anna Berg: ...`), where two names stand twice
    and one of them is no ordinary word."""
    lines = list(_FORMS.turn.finditer(text))
    stamped = [line for line in lines if line["time"] or line["nick"]]
    if len(stamped) < 3:
        counts = Counter(line["name"] for line in lines)
        names = {name for name, count in counts.items() if count > 1}
        turns = [line for line in lines if line["name"] in names]
        written = sum(1 for line in text.split("\n") if line.strip())
        if len(names) < 2 or 2 * len(turns) < written or all(ordinary(n.lower()) for n in names):
            return []
        stamped = turns
    return [(*line.span("name" if line["name"] else "nick"), "person", True) for line in stamped]


_LINKS = lex.PARTICLES | frozenset("the and in on to a an und et y e".split())


def _quoted(text: str, short: bool) -> Iterator[Candidate]:
    """Works in title marks, terms between back quotes, phrases in quotation marks that begin with a
    capital and have no other small words than those of names."""
    for match in _FORMS.quoted.finditer(text):
        start, end = match.span(match.lastindex or 0)
        form, sign = text[start:end], match[0][0]
        words = form.split()
        if not words:
            continue  # “ ”
        if sign == "《":
            yield start, end, "content", True
        elif sign in "「『" or cjk.is_han(form[0]):
            if len(form) <= 16 and not any(ch in "，。！？；,!?" for ch in form):
                yield start, end, "other", short
        elif sign == "`":
            if sum(map(str.isalpha, form)) > 1:  # not `100`, nor the variable `b` of an example
                yield start, end, "artifact", short or _is_identifier(form)
        elif 1 < len(words) <= 8 and words[0][:1].isupper():
            end -= form[-1] in ".,;:"
            small = any(word[0].islower() and word not in _LINKS for word in words)
            if not (small or any(sign in form for sign in "?!;")):  # no speech
                before = words_before(text, start)
                work = bool(before) and noun_type(before[-1]) == "content"
                yield start, end, "content" if work else "other", True


_IDENTIFIER = re.compile(r"[@$.]?[A-Za-z_][\w$-]*(?:(?:\.|::|->|/)[\w$-]+)*(?:\(\))?")


def _is_identifier(form: str) -> bool:
    """Is it one word of code that is no ordinary word?"""
    if len(form) < 3 or (form.isalpha() and ordinary(form.lower())):
        return False
    file = form.rpartition(".")[2].lower() in lex.FILE_ENDINGS  # src/core/engine.py, not a/b/c
    return (file or form.count("/") < 2) and _IDENTIFIER.fullmatch(form) is not None


def _identifiers(text: str) -> Iterator[Candidate]:
    """camelCase, snake_case, calls() and file.names of prose on source code."""
    for match in _FORMS.code.finditer(text):
        kind, form = match.lastgroup, match[0]
        parts = form.split(".")
        file = parts[-1].lower() in lex.FILE_ENDINGS and max(map(len, parts)) > 1  # not e.g.
        module = "_" in form or (len(parts) > 2 and form.islower())
        if (kind != "dotted" or file or module) and any(map(str.isalpha, form)):
            yield *match.span(), "artifact", not (kind == "call" and stop_word(form))


# ---- names that mean the same -------------------------------------------------------------------

_ACRONYM = re.compile(r"[A-Z][A-Za-z0-9]?[A-Z0-9&./-]{0,8}[A-Z0-9]?s?")
_BEFORE_BRACKET = re.compile(r"(?<![\w.-])([A-Z][A-Za-z0-9&.-]{1,9}) ?$")
_BRACKET = re.compile(r"[(（]([^()（）\n]{2,90})[)）]")
_WORDS = re.compile(r"[^\W_]+")
_APART = re.compile(r"[^\w \n&/’'.-]")  # between two words of a name that is spelled out


def _definitions(text: str) -> tuple[list[Candidate], dict[Span, Span]]:
    """Acronyms that the text spells out: both names as candidates; span of short -> of long."""
    aliases: dict[Span, Span] = {}
    for match in _BRACKET.finditer(text):
        begin, (start, end) = match.start(), match.span(1)
        inner = match[1].rstrip(" ;,")
        short: Span | None = None
        long: Span | None = None
        if _ACRONYM.fullmatch(inner):
            short = (start, start + len(inner))  # World Health Organization (WHO)
            long = _spelled(text, inner, max(0, begin - 120), begin)
        elif before := _BEFORE_BRACKET.search(text, max(0, begin - 12), begin):
            short = before.span(1)  # WHO (World Health Organization)
            long = _spelled(text, before[1], start, end)
            long = long if long and long[0] == start else None
        if short and long:
            aliases[short] = long
    kinds = {long: by_form(text[slice(*long)].split()) or "other" for long in aliases.values()}
    found = [(*long, kinds[long], True) for long in kinds]
    found += [(*short, kinds[long], True) for short, long in aliases.items()]
    if "称" in text or "稱" in text:
        for short, long in cjk.shortened(text, _FORMS.shortened):
            aliases[short] = long
            found += [(*short, "organization", True), (*long, "organization", True)]
    return found, aliases


def _spelled(text: str, acronym: str, start: int, end: int) -> Span | None:
    """The words before `end` whose initials are the acronym's letters, small words skipped."""
    letters = [ch.lower() for ch in acronym.removesuffix("s") if ch.isalnum()]
    words = list(_WORDS.finditer(text, start, end))
    if sum(map(str.isupper, acronym)) < 2 or not words:
        return None
    last = words[-1].end()
    for word in reversed(words):
        if word[0][0].lower() == letters[-1] and (len(letters) > 1 or word[0] not in _LINKS):
            letters.pop()
        elif word[0].lower() not in _LINKS:
            return None
        if not letters:
            first = word.start()
            return None if _APART.search(text, first, end) else (first, last)
    return None


def _short_names(
    rows: Sequence[Row], type_of: Mapping[str, str], taken: Mapping[str, str]
) -> dict[str, str]:
    """Family names and given names alone, names with an initial and names without the initial in the
    middle, each with the one person of this text whose full name they shorten, and that stands
    before them. John Adams is not his son, John Quincy Adams.

    Who is later called by the last word alone is a person."""
    first_at: dict[str, int] = {}
    for key, _, start, _ in rows:
        first_at.setdefault(key, start)
    acronyms = {key for key, form, *_ in rows if form.rpartition(" ")[2].isupper()}  # Ray DVD
    full: dict[str, set[str]] = {}
    usable: set[str] = set()
    for key in sorted(first_at, key=lambda key: (-key.count(" "), key)):
        if not 1 <= key.count(" ") <= 2 or key in acronyms or not key.replace(" ", "").isalpha():
            continue
        first, *middle, last = key.split(" ")
        kind = type_of.get(key, "person")
        longer = full.get(key, ())
        if kind != "person" or first == last or len(first) < 3:
            continue
        if len(longer) == 1 and first_at[min(longer)] < first_at[key]:
            continue  # Brian Ripley, behind Brian D. Ripley
        short = {last, f"{first[0]} {last}"}
        if middle and len(middle[0]) == 1:
            short.add(f"{first} {last}")
        for name in (*short, first):
            full.setdefault(name, set()).add(key)
        if key in type_of:
            usable |= {*short, first}
        elif not any(map(ordinary, key.split(" "))):
            usable |= short
    return {
        key: min(full[key])
        for key in first_at
        if key in usable
        and len(full[key]) == 1
        and key not in taken
        and type_of.get(key, "person") == "person"
        and (" " not in key or first_at[key] > first_at[min(full[key])])
        and len(key) > 2
    }


# ---- the mentions of a text ---------------------------------------------------------------------


def _mentions(text: str, found: Iterable[Candidate], aliases: dict[Span, Span]) -> list[Fields]:
    """Keys, one type per key, and the cap: strong names first, then frequent, then long ones."""
    rows: list[Row] = []
    counts: Counter[str] = Counter()
    types: dict[str, Counter[str]] = {}
    strong_keys = set()
    begun = ended = 0  # the outer name
    for start, end, kind, strong in sorted(found, key=lambda name: (name[0], -name[1])):
        if end - start > LONGEST:
            continue
        if start >= ended:
            begun, ended = start, end
        elif (end - start) * 10 > (ended - begun) * 6:
            continue  # "Hours of Power" says nothing beside the quoted "Three Hours of Power"
        form = text[start:end]
        key = normalise_name(form) if "\0" not in form else ""
        if not any(map(str.isalnum, key)):
            continue
        counts[key] += 1
        if kind != "other":
            types.setdefault(key, Counter())[kind] += 1
        if strong:
            strong_keys.add(key)
        rows.append((key, form, start, end))
    if len(counts) > most(text):
        best = sorted(
            counts, key=lambda key: (key not in strong_keys, -counts[key], -len(key), key)
        )
        kept = set(best[: most(text)])
        rows = [row for row in rows if row[0] in kept]
    type_of = {
        key: min(kinds, key=lambda kind: (-kinds[kind], kind)) for key, kinds in types.items()
    }
    alias_of = {
        normalise_name(text[slice(*short)]): normalise_name(text[slice(*long)])
        for short, long in aliases.items()
    }
    for key in counts:  # Alex Ferguson, whom the text calls Mr Ferguson
        if key not in type_of and type_of.get(key.rpartition(" ")[2]) == "person":
            type_of[key] = "person"
    short_names = _short_names(rows, type_of, alias_of)
    for short, long in short_names.items():
        type_of[long] = type_of[short] = "person"
        if long in strong_keys:
            strong_keys.add(short)
    alias_of |= short_names
    kinds = {key: (type_of.get(key, "other"), key in strong_keys) for key, *_ in rows}
    return [
        (key, form, *kinds[key], start, end, alias_of.get(key, ""))
        for key, form, start, end in rows
    ]
