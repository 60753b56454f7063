"""Names in text without a model: the `nlp` extractor, for documents and questions.

Gives proper names, acronyms, code identifiers, quoted terms (strong) and noun phrases with local
evidence (weak). A candidate is `(start, end, type, strong)`. Where two overlap the finder that ran
first wins; only a quoted term may contain other names. Addresses, attributes and keys are blanked
first. How often a name must be seen before it counts is decided where mentions are merged."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import accumulate, pairwise
from operator import itemgetter

from graphrag_mcp.names import caseless, cjk
from graphrag_mcp.names import lexicon as lex
from graphrag_mcp.names.certain import SIGNS as _SIGNS
from graphrag_mcp.names.certain import certain, is_prose, ordinary
from graphrag_mcp.names.latin import LOWER_RUN, Names, by_definition, common, kind_of, subjects
from graphrag_mcp.text.prose import fences, is_code
from graphrag_mcp.text.terms import (
    LANGUAGES,
    LOWER,
    SIMPLIFY,
    STOP_WORDS,
    UPPER,
    compiled,
    composed,
    normalise_name,
    query_terms,
    stop_word,
    table,
    with_origins,
)
from graphrag_mcp.types import Mention

Candidate = tuple[int, int, str, bool]
Span = tuple[int, int]
Row = tuple[str, str, int, int]  # key, form, start, end
MATTER = 4_000  # characters in which front matter must end
TURNS = 3  # lines of a text with a time and a speaker that make it a chat

_FORMS = compiled(table(__file__))
_TARGET = re.compile(
    r"!\[[^\[\]\n]{0,200}\]\([^()\s]{1,300}"
    r"|(?<=\]\()[^()\s]{1,2000}(?:\([^()\s]{0,200}\))?(?: \"[^\"\n]{0,1000}\")?(?=\))"
)
_ROLE = re.compile(r":(?:[a-z_]{1,30}:){1,3}(?=`)|(?<=:ref:`|:doc:`)[\w./-]{1,100}(?=`)")
_ADDRESS = re.compile(r"\b(?:https?|ftp)://[\w.~:/?#@!$&*+,;=%'-]+", re.ASCII)
_TAG = re.compile(r"<[A-Za-z][\w-]{0,20}\s[^<>=]{0,200}=[^<>]{0,4000}>")
_SIGN = re.compile(r"\{%-?[ \t]{0,9}\w{1,40}|&(?!amp;)[a-z]{2,8}\d{0,2};")
# of JSON
_KEY = re.compile(r"""(["'])[^"'\n]{1,40}\1 ?: ?(?=["'\[{\d-]|true\b|false\b|null\b|None\b)""")
_LINE = re.compile(
    rf"^(?:\*\*)?(?P<name>[{UPPER}][\w.'-]{{1,30}}(?: [{UPPER}][\w.'-]{{0,20}}){{0,2}})(?:\*\*)?:(?:\*\*)?[ \t]+(?=[^\n]*[^\W\d_])",
    re.MULTILINE,
)


def without_markup(text: str) -> str:
    """As long as before, with NULs (no document has any) for web addresses, comments, attributes and
    characters of HTML, tags of templates, keys of JSON and front matter. Their words would stand
    beside everything: `https` beside 3,299 names of one corpus."""
    spans = [match.span() for match in _ADDRESS.finditer(text)] if "://" in text else []
    if "](" in text:
        spans += [match.span() for match in _TARGET.finditer(text)]
    if ":`" in text:
        spans += [match.span() for match in _ROLE.finditer(text)]
    if "<" in text:
        spans += [match.span() for match in _TAG.finditer(text)]
        at = 0
        while (at := text.find("<!--", at)) >= 0 and (end := text.find("-->", at)) >= 0:
            spans.append((at, end + 3))
            at = end + 3
    if "{%" in text or "&" in text:
        spans += [match.span() for match in _SIGN.finditer(text)]
    if '":' in text or "':" in text:
        spans += [match.span() for match in _KEY.finditer(text)]
    if text.startswith(("+++\n", "---\n")) and (end := text.find(f"\n{text[:3]}", 3, MATTER)) > 0:
        spans += [match.span() for match in _FORMS.matter_key.finditer(text, 4, end)]
    if not spans:
        return text
    pieces, at = [], 0
    for start, end in sorted(spans):
        if end > at:
            start = max(start, at)
            pieces += [text[at:start], "\0" * (end - start)]
            at = end
    return "".join([*pieces, text[at:]])


def speakers(text: str) -> list[Candidate]:
    """Who speaks, where lines begin with a time and a name (`[15:01] <mara> ...`, `12/03/24, 10:15 -
    Jens Ott: ...`; a relay `<bot> <mara>` too), or half of them with one of two names or more
    (`Anna Berg: ...`, `**Tom**: ...`)."""
    turns = [
        (*match.span(group), "person", True)
        for match in _FORMS.turn.finditer(text)
        for group in ("nick", "relayed", "name")
        if match[group]
    ]
    if len(turns) >= TURNS:
        return turns
    lines = list(_LINE.finditer(text))
    counts = Counter(line["name"] for line in lines)
    often = {name for name, count in counts.items() if count > 1 and not common(name.lower())}
    often = {name for name in often if not name.lower().startswith("the ")}  # THE SHERIFF
    kept = [line for line in lines if line["name"] in often]
    if len(often) < 2 or 2 * len(kept) < sum(1 for line in text.split("\n") if line.strip()):
        return []
    return [(_behind_title(line), line.end("name"), "person", True) for line in kept]


def _behind_title(line: re.Match[str]) -> int:
    """Where the name of a speaker begins: MR COLQUHOUN is COLQUHOUN."""
    first, _, rest = line["name"].partition(" ")
    titled = rest and first.lower().rstrip(".") in lex.TITLES
    return line.start("name") + (len(first) + 1 if titled else 0)


VERSION = "nlp-25"
Fields = tuple[str, str, str, bool, int, int, str]  # of a Mention, in its order
# characters: up to here a text is taken for a question, where single rare words are worth trying
SHORT = 300
LONGEST = 120  # characters of a name; what is longer is a run of letters, not a name
_SKIP = lex.STARTERS | lex.DULL | STOP_WORDS
_LEARNED = ("ology", "ography", "ics", "itis", "osis")  # ends of words that speak for a term
PER_THOUSAND = 60  # distinct keys kept per started 1,000 characters


def extract(text: str) -> list[Mention]:
    """All mentions of names in this text, sorted by start; `text[m.start:m.end] == m.form` for
    each, however the letters of the text are composed.

    A text of up to SHORT characters is taken for a question."""
    return [Mention(*fields) for fields in mentions(text, len(text) <= SHORT)]


# An issue with a traceback has 100 to 300 distinct terms. With 64 of them the file to be changed was
# among the first five for 63 % of 19 issues, with 150 for 84 %, with 300 for 89 %.
QUESTION_TERMS = 300


def terms_of(question: str) -> list[str]:
    """The search terms of a question, then its words of one character that are none of these."""
    question = composed(question)
    found = query_terms(question, QUESTION_TERMS)
    if question.isascii():
        return found
    return [*found, *(word for word in cjk.alone(question) if word not in found)]


def mentions(text: str, short: bool = False) -> list[Fields]:
    """The same as plain tuples, which are made five times as fast. `short`: single rare words too,
    as of a question (in a short document they would only be noise: "film", "starring")."""
    if text.isascii() or unicodedata.is_normalized("NFC", text):
        return _named(text, short)
    whole, at = with_origins(text)
    return [
        (key, text[at[start] : at[end]], kind, strong, at[start], at[end], alias)
        for key, _, kind, strong, start, end, alias in _named(whole, short)
    ]


def _named(text: str, short: bool) -> list[Fields]:
    text = without_markup(text)
    runs = [(match.start(), match[0]) for match in LOWER_RUN.finditer(text)]
    lower = {word for _, run in runs for word in run.split(" ")}
    pairs, aliases = _definitions(text)
    names = Names(text, lower)
    phrases = _phrases(text, runs, names.language, short)
    proper = (subjects(text), names.find(), () if text.isascii() else cjk.candidates(text, short))
    if not short:
        proper = tuple(certain(text, found, lower, names.language) for found in proper)
    groups = (pairs, speakers(text), _code(text), *proper, phrases)
    taken = bytearray(len(text))
    kept: list[Candidate] = []
    for group in groups:
        for start, end, kind, strong in group:
            if taken.find(1, start, end) < 0:
                taken[start:end] = b"\x01" * (end - start)
                kept.append((start, end, kind, strong))
    named = _with_quoted(text, kept, short)
    found = _mentions(text, named if short else _outside_code(text, named), aliases)
    return _with_variants(text, found) if short and not text.isascii() else found


def _outside_code(text: str, found: Iterable[Candidate]) -> Iterator[Candidate]:
    """The same candidates, those in code weak: what is only assigned or called there is a variable or
    a column of an example."""
    blocks = fences(text)

    @cache
    def code(begin: int) -> bool:
        end = text.find("\n", begin)
        line = text[begin : end if end >= 0 else len(text)]
        return is_code(line) or not is_prose(text, begin)

    for start, end, kind, strong in found:
        strong = strong and bisect_right(blocks, start) % 2 == 0
        if strong and kind == "artifact":
            used = _ASSIGNED.match(text, end) or _PASSED.search(text, max(0, start - 2), start)
            used = used or _DIGEST.fullmatch(text, start, end)
            strong = not (used or code(text.rfind("\n", 0, start) + 1))
        yield start, end, kind, strong


def _with_variants(text: str, found: list[Fields]) -> list[Fields]:
    """Adds, to names of a question that may begin with a word of one letter (Arabic, Hebrew), what
    follows it."""
    keys = {mention[0] for mention in found}
    more: list[Fields] = []
    for start, end in caseless.variants(text, [(mention[4], mention[5]) for mention in found]):
        key = normalise_name(text[start:end])
        if key not in keys:
            keys.add(key)
            more.append((key, text[start:end], "other", False, start, end, ""))
    return sorted(found + more, key=itemgetter(4)) if more else found


def _with_quoted(text: str, kept: list[Candidate], short: bool) -> list[Candidate]:
    """Adds quoted terms: the same span only once, names that stick out over a quotation dropped."""
    quotes: dict[Span, Candidate] = {}
    last = 0
    for quote in _quoted(text, short):
        if quote[0] >= last:
            quotes[quote[:2]] = quote
            last = quote[1]
    spans = list(quotes)
    out = []
    for start, end, kind, strong in kept:
        if quote := quotes.pop((start, end), None):
            if kind != "person" or not _INITIAL.search(text, start, end):
                person = kind == "person" and " " in text[start:end]  # who may be a work yet
                kind = kind if quote[2] == "other" and not person else quote[2]
            out.append((start, end, kind, strong or quote[3]))
        elif not _crosses(start, end, spans):
            out.append((start, end, kind, strong))
    return out + list(quotes.values())


def _crosses(start: int, end: int, quotes: list[Span]) -> bool:
    """Does this span hold one end of a quotation without the other?"""
    around = quotes[max(0, bisect_right(quotes, (start, 0)) - 1) : bisect_left(quotes, (end, 0))]
    ends = (around[0], around[-1]) if around else ()
    return any(start < a < end < b or a < start < b < end for a, b in ends)


def _mentions(text: str, found: Iterable[Candidate], aliases: dict[Span, Span]) -> list[Fields]:
    """Keys, one type per key, and the cap: strong names first, then frequent, then long ones."""
    rows = []
    counts: dict[str, int] = {}
    types: dict[str, list[str]] = {}
    strong_keys = set()
    begun = ended = 0  # the outer name
    ordered = sorted(found, key=itemgetter(1), reverse=True)
    ordered.sort(key=itemgetter(0))
    for start, end, kind, strong in ordered:
        if end - start > LONGEST:
            continue
        if kind == "person":
            end, kind = _without_letters(text, start, end)
        if start >= ended:
            begun, ended = start, end
        elif (end - start) * 10 > (ended - begun) * 6:
            continue  # "Hours of Power" says nothing beside the quoted "Three Hours of Power"
        form = text[start:end]
        key = normalise_name(form) if "\0" not in form else ""
        if not any(map(str.isalnum, key)) or (key in lex.ON_PAGES and _on_page(text, start, end)):
            continue
        counts[key] = counts.get(key, 0) + 1
        if kind != "other":
            types.setdefault(key, []).append(kind)
        if strong:
            strong_keys.add(key)
        rows.append((key, form, start, end))
    limit = PER_THOUSAND * (1 + (len(text) - 1) // 1000)
    if len(counts) > limit:
        ranked = sorted(
            counts, key=lambda key: (key not in strong_keys, -counts[key], -len(key), key)
        )
        best = set(ranked[:limit])
        rows = [row for row in rows if row[0] in best]
    type_of = {
        key: min(set(kinds), key=lambda kind: (-kinds.count(kind), kind))
        for key, kinds in types.items()
    }
    alias_of = {
        normalise_name(text[slice(*short)]): normalise_name(text[slice(*long)])
        for short, long in aliases.items()
    }
    families = set(_share_kinds(type_of, counts, alias_of))
    alias_of |= _spaced(text, rows, type_of)
    alias_of |= (short_names := _short_names(text, rows, type_of, alias_of))
    strong_keys |= families | {key for key, long in short_names.items() if long in strong_keys}
    kinds = {key: (type_of.get(key, "other"), key in strong_keys) for key, *_ in rows}
    return [
        (key, form, *kinds[key], start, end, alias_of.get(key, ""))
        for key, form, start, end in rows
    ]


def _on_page(text: str, start: int, end: int) -> bool:
    """Is it a phrase, or a word in a line of at most three: Reply is a firm of Turin too?"""
    line = text[text.rfind("\n", 0, start) + 1 : (text.find("\n", end) + 1 or len(text) + 1) - 1]
    return " " in text[start:end] or len(line.split()) <= 3


_INITIAL = re.compile(r"[A-Z]\. ")
_LETTERS = re.compile(r",? ([A-Z]{2,5})\Z")  # behind a name
_HONOURS = frozenset("MP QC KC OBE MBE CBE MEP MSP TD JP PHD MD DDS RN FRS ESQ".split())


def _without_letters(text: str, start: int, end: int) -> tuple[int, str]:
    """The end and the type of a person's name without the letters of an office or honour behind it:
    "Boris Johnson MP". With other letters behind it, it is no person: "Ray DVD"."""
    letters = _LETTERS.search(text, start, end)
    if letters is None or text[start : letters.start()].isupper():
        return end, "person"
    if letters[1] in _HONOURS:
        return letters.start(), "person"
    return end, "other"


def _share_kinds(
    type_of: dict[str, str], keys: Iterable[str], alias_of: dict[str, str]
) -> Iterator[str]:
    """Gives an acronym the type of what it is short for, and a family name alone that of the person
    of this text; these family names."""
    for short, long in alias_of.items():
        if kind := type_of.get(long) or type_of.get(short):
            type_of[long] = type_of[short] = kind
    family = {
        key.rpartition(" ")[2] for key, kind in type_of.items() if kind == "person" and " " in key
    }
    for key in keys:
        if key in family and type_of.setdefault(key, "person") == "person":
            yield key


def _short_names(
    text: str, rows: Sequence[Row], type_of: Mapping[str, str], alias_of: dict[str, str]
) -> dict[str, str]:
    """Family names and given names alone, names with an initial and names without the initial in the
    middle, each with the one person of this text whose full name they shorten, and that stands
    before them. John Adams is not his son, John Quincy Adams."""
    full: dict[str, set[str]] = {}
    given: set[str] = set()
    people = [key for key, kind in type_of.items() if kind == "person" and 0 < key.count(" ") < 3]
    for key in sorted(people, key=lambda key: (-key.count(" "), key)):
        first, *middle, last = key.split(" ")
        plain = key.replace(" ", "").isalpha() and key not in alias_of and "the" not in middle
        if len(first) < 3 or common(first) or first in lex.TITLES or not plain:
            continue  # E. Gardiner, Lady Catherine
        longer = full.get(key, ())
        if len(longer) == 1 and not _apart(text, rows, key, *longer):
            continue  # Brian Ripley, beside Brian D. Ripley
        short = {last, f"{first[0]} {last}"}
        if middle and all(len(one.rstrip(".")) == 1 for one in middle):
            short.add(f"{first} {last}")
        if lex.FIRST.get(first) != "person":  # not Princess Anneliese
            short.add(first)
            given.add(first)
        for one in short:
            full.setdefault(one, set()).add(key)
    for key in type_of:
        if key[1:] in lex.ZH_TITLES:  # 张经理
            full[key] = {one for one in type_of if one[0] == key[0] and type_of[one] == "person"}
            full[key] -= {one for one in full[key] if one[1:] in lex.ZH_TITLES}
    return {
        key: min(full[key])
        for key in dict.fromkeys(row[0] for row in rows)
        if len(full.get(key, ())) == 1
        and (len(key) > (1 if key in given else 3) or key[1:] in lex.ZH_TITLES)
        and key not in alias_of
        and type_of.get(key, "person") == "person"
        and (" " not in key or not _apart(text, rows, key, min(full[key])))
    }


def _apart(text: str, rows: Iterable[Row], one: str, other: str) -> bool:
    """Does the shorter name `one` stand first, or does a sentence name both, and so tell them apart:
    George Bush and George W. Bush?"""
    places = sorted((start, end, key) for key, _, start, end in rows if key in (one, other))
    return bool(places and places[0][2] == one) or any(
        a[2] != b[2] and not _SENTENCE_END.search(text, a[1], b[0] + 1) for a, b in pairwise(places)
    )


_SENTENCE_END = re.compile(r"[.!?]\W{0,9} [A-Z]|\n")
_PLURAL = re.compile("[A-Z]{2,6}s")
_ONE = re.compile(r"\b(?:an?|one|each|every|another) \Z")
_CAMEL = re.compile(rf"[{UPPER}][{LOWER}]+(?:[{UPPER}][{LOWER}]+)+")


def _spaced(text: str, rows: Sequence[Row], type_of: Mapping[str, str]) -> dict[str, str]:
    """People written as one word, each with the same name in words: AnnaBerg, Anna Berg; several
    things with one of them: APIs, API; iPods, where the text has "an iPod" too."""
    ones = {row[0] for row in rows if _ONE.search(text, row[2] - 9, row[2])}
    ones -= {key for key, kind in type_of.items() if kind in ("person", "location")}
    plural = {
        key: key[:-1] for key, form, *_ in rows if _PLURAL.fullmatch(form) or key[:-1] in ones
    }
    return plural | {
        key: normalise_name(re.sub(rf"(?<=[{LOWER}])(?=[{UPPER}])", " ", form))
        for key, form, _, _ in rows
        if type_of.get(key) == "person" and _CAMEL.fullmatch(form)
    }


# ---- what the text itself defines ---------------------------------------------------------------

_ACRONYM = re.compile(r"[A-Z][A-Za-z0-9]?[A-Z0-9&./-]{0,8}[A-Z0-9]?s?")
_BEFORE_BRACKET = re.compile(r"(?<![\w.-])([A-Z][A-Za-z0-9&.-]{1,9}) ?$")
_BRACKET = re.compile(r"[(（]([^()（）\n]{2,90})[)）]")
_WORDS = re.compile(r"[^\W_]+")
_APART = re.compile(r"[^ \n&/’'.-]")  # between two words of a name that is spelled out
_LINKS = frozenset("of the and for in on de du la des von und et y e to a an".split())
_ZH_LONG = re.compile(r"[\u4e00-\u9fff·]{3,24}(?:（[^（）\n]{0,40}）)?$")


def _definitions(text: str) -> tuple[list[Candidate], dict[Span, Span]]:
    """Acronyms that the text spells out: both names as candidates; span of short -> of long."""
    found: list[Candidate] = []
    aliases: dict[Span, Span] = {}
    for match in _BRACKET.finditer(text):
        begin, (start, end) = match.start(), match.span(1)
        inner = match[1].rstrip(" ;,")
        long = None
        if _ACRONYM.fullmatch(inner) and sum(map(str.isupper, inner)) > 1:
            short = (start, start + len(inner))  # World Health Organization (WHO)
            long = _spelled(text, inner, max(0, begin - 120), begin)
        elif before := _BEFORE_BRACKET.search(text, max(0, begin - 12), begin):
            short = before.span(1)  # WHO (World Health Organization)
            if sum(map(str.isupper, before[1])) > 1:
                stop = re.search(r"[,;:，；]", inner)
                long = _spelled(text, before[1], start, start + stop.start() if stop else end)
                long = long if long and long[0] == start else None
        said = text[slice(*short)].lower() if long else ""
        ordinary_too = said in lex.NAMES or (len(said) < 3 and stop_word(said))
        if long and not ordinary_too:  # not Jaswanth Sreeram (JS)
            aliases[short] = long
            words = text[slice(*long)].split()
            kind = kind_of(text, *long, words) if not words[0].islower() else "other"
            found += [(*long, kind, True), (*short, "other", True)]
    shorts: set[str] = set()
    for match in _FORMS.shortened.finditer(text) if "称" in text or "稱" in text else ():
        if span := _shortened(text, match.start(), match[1]):
            aliases[match.span(1)] = span
            found.append((*span, "organization", True))
            shorts.add(match[1])
    for short in sorted(shorts)[:8]:  # the segmenter does not know a name coined here
        places = re.finditer(re.escape(short), text)
        found += ((*place.span(), "organization", True) for place in places)
    return found, aliases


def _spelled(text: str, acronym: str, start: int, end: int) -> Span | None:
    """The words before `end` whose initials are the acronym's letters, small words skipped."""
    letters = [ch.lower() for ch in acronym.removesuffix("s") if ch.isalnum()]
    words = list(_WORDS.finditer(text, start, end))
    if not words or text[words[-1].end() : end].strip(" \"”’'"):
        return None
    last = words[-1].end()
    while letters and words:
        word = words.pop()
        inside = (ch.lower() for ch in word[0][1:] if ch.isupper() and not word[0].isupper())
        capitals = [word[0][0].lower(), *inside]
        small = len(letters) < 2 and word[0] in _LINKS  # Office of the Deputy Prime Minister
        if letters[-len(capitals) :] == capitals and not small:
            del letters[-len(capitals) :]
        elif letters[-1] == capitals[0] and not small:
            letters.pop()
        elif word[0].lower() not in _LINKS:
            return None
        if letters and words and _APART.search(text, words[-1].end(), word.start()):
            return None
        first = word.start()
    return None if letters else (first, last)


def _shortened(text: str, end: int, short: str) -> Span | None:
    """The Chinese long form before `end` that holds the characters of `short` in order, from its
    first one on."""
    before = _ZH_LONG.search(text, max(0, end - 64), end)
    if not before:
        return None
    form, short = before[0].split("（")[0].translate(SIMPLIFY), short.translate(SIMPLIFY)
    at = form.rfind(short[0], 0, -len(short)) if len(form) > len(short) else -1
    while at >= 0:
        rest = iter(form[at:])
        if all(ch in rest for ch in short):
            return before.start() + at, before.start() + len(form)
        at = form.rfind(short[0], 0, at)
    return None


# ---- the finders --------------------------------------------------------------------------------


_NUMBER_BEHIND = re.compile(r"\.\d")
_ASSIGNED = re.compile(r"[ \t]{0,20}(?:=(?!=)|<-)")
_PASSED = re.compile(r"\w\(\Z")  # before an argument
_EXAMPLE = re.compile(r"(?:self|cls|[A-Za-z]|foo\w*|my_\w*)\.|(?:foo|my)_")  # of an example
_DIGEST = re.compile("[0-9a-f]{7,64}")
_IDENTIFIER = re.compile(
    r"(?!\$\w+/|v\d+(?:\.|$))[@$.]?[A-Za-z_][\w$-]*(?:(?:\.|::|->|/)[\w$-]+)*(?:\(\))?"
)


def _identifier(form: str) -> bool:
    """Is it one word of code that is no ordinary word?"""
    plain = form.isalpha() and (form.islower() or form.istitle())
    plain = plain and (len(form) < 4 or ordinary(form.lower()))
    plain = plain or len(form) < 3 or _EXAMPLE.match(form)
    file = form.rpartition(".")[2].lower() in lex.FILE_ENDINGS  # src/core/engine.py, not a/b/c
    return not plain and (file or form.count("/") < 2) and _IDENTIFIER.fullmatch(form) is not None


_GLOSSED = re.compile(r"[”」』]?[ ]?[（(][A-Za-z]")  # “丝带”（the Ribbon）


_WORK = re.compile(rf"(?<![\w-])(?:{'|'.join(sorted(lex.WORKS))})s?(?![\w-])", re.IGNORECASE)
_DATED = re.compile(
    r"[\"”»']{1,3},? (?:\([^()\n]{0,20}|in )(?:1[5-9]|20)\d\d|[\"”»']{1,3},? by [A-Z]"
)
_AUTHOR = re.compile(r"[A-Z]\w{1,40}(?:'s|’s|s['’]) [\"“«]\Z")  # Atwood's "The Robber Bride"
_SENTENCE = re.compile(r"[.!?][\"”»)]* ")


def _is_work(text: str, start: int, end: int, last: int) -> bool:
    """Does the sentence say that this quoted name is that of a work: a noun or verb of works beside
    it, a year or an author behind it, its author or another work before it?"""
    before = _SENTENCE.split(text[max(0, start - 150) : start])[-1]
    behind = _SENTENCE.split(text[end : end + 100], 1)[0]
    said = _WORK.search(before) or _WORK.search(behind) or _DATED.search(behind)
    said = said or _AUTHOR.search(before) or by_definition(text, end + 1) == "content"
    return bool(said) or 0 < start - last < 12


def _marked(text: str, start: int, end: int, short: bool) -> Candidate:  # `tide.gauge`
    if text[start - 2 : start - 1] == "\0":  # a role before it: :meth:`~tide.gauge`
        start = end - len(text[start:end].lstrip("@!~"))
    form = text[start:end]
    link = text[end + 1 : end + 2] == "_" and all(map(ordinary, re.split("[ -]", form.lower())))
    return start, end, "artifact", short or (_identifier(form) and not link)


def _quoted(text: str, short: bool) -> Iterator[Candidate]:
    last = -1  # where the work before ends
    for match in _FORMS.quoted.finditer(text):
        start, end = match.span(match.lastindex or 0)
        form, sign = text[start:end], match[0][:2]
        if not (words := form.split()):
            continue  # “ ”
        if sign[0] == "《":
            yield start, end, "content", True
        elif sign[0] in "「『" or any(cjk.is_han(ch) for ch in form[:3]):
            if len(form) <= 16 and not any(ch in "，。！？；,!?" for ch in form):
                yield start, end, "other", short or _GLOSSED.match(text, end) is not None
        elif sign[0] == "`" and sign != "``":
            if sum(map(str.isalpha, form)) > 1:  # not `100`, nor the variable `b` of an example
                yield _marked(text, start, end, short)
        elif words and (form[-1] not in ".,;:!?" or form.istitle()):
            opening = words[0][:1].isupper() or words[0][:1].isdigit()
            big = sum(word[:1].isupper() for word in words)
            spoken = any(sign in form for sign in "?!;")
            if opening and len(words) <= 8 and big * 2 >= len(words) and not spoken:
                if len(words) > 1 or words[0].lower() not in lex.STARTERS:  # "Jar of Kingdom"
                    title = sign[0] != "'" and len(words) > 1
                    spoken = words[0].lower().rstrip(".") in lex.TITLES or not form[-1].isalnum()
                    work = title and (short or _is_work(text, start, end, last))
                    last = end if work else last
                    if not form[-1].isalnum():
                        if not work and "," in form[:-1]:
                            continue  # "Yes, Conrad."
                        end -= form[-1] in ".,;:"
                    named = work or all(
                        word[0].isupper() or word in lex.SMALL_WORDS for word in words
                    )
                    sure = title and named and not spoken and not _SIGNS.search(form)
                    yield start, end, "content" if work else "other", short or sure
            elif len(words) <= 4 and sign[0] != "'" and form[0].isalpha():
                if not stop_word(words[0].lower()):
                    yield start, end, "other", False  # a "heat pump"


def _code(text: str) -> Iterator[Candidate]:
    for match in _FORMS.code.finditer(text):
        kind, form = match.lastgroup, match[0]
        if kind == "dotted":
            parts = form.split(".")
            file = parts[-1].lower() in lex.FILE_ENDINGS
            module = "_" in form or (len(parts) > 2 and form.islower())
            if not (file or module) or max(map(len, parts)) < 2:
                continue  # not e.g.
            if _NUMBER_BEHIND.match(text, match.end()):
                continue  # libc.so.6
        if any(map(str.isalpha, form)) and (form[-1] != "_" or form.endswith("__")):
            start = match.start()  # bates at stat.wisc.edu; a for() loop
            if text[match.end() : match.end() + 1] == "@" or (
                text[start - 1 : start] == "@" and text[start - 2 : start - 1].isalnum()
            ):
                continue  # a part of an address of mail
            mail = kind == "dotted" and text.endswith(" at ", 0, start)
            sure = not (mail or _EXAMPLE.match(form))
            yield start, match.end(), "artifact", sure and not (kind == "call" and stop_word(form))


def _phrases(
    text: str, runs: list[tuple[int, str]], language: str, short: bool
) -> Iterator[Candidate]:
    """Noun phrases of 2-4 lower-case words: those repeated in this text, or with a head that speaks
    for a term; in a question single rare words too."""
    grammar = LANGUAGES[language] if language != "en" else frozenset()
    skipped = _SKIP | grammar
    runs = runs if short else [one for one in runs if " " in one[1]]
    segments = [found for start, run in runs for found in _content(start, run, skipped)]
    if not short:
        segments = [found for found in segments if len(found[1]) > 1]
    pairs = Counter(pair for _, words in segments for pair in pairwise(words))
    for at, words in segments:
        starts, index = [0, *accumulate(len(word) + 1 for word in words)], len(words)
        while index > 0:
            head = words[index - 1]
            # Verbs and adjectives of another language cannot be told: longer words only.
            rare = short and (len(head) > 4 if grammar else len(head) > 2 and not common(head))
            size = 1
            for one, two in pairwise(reversed(words[max(index - 4, 0) : index])):
                if pairs[two, one] < 2:
                    break
                size += 1
            if size == 1 and index > 1 and not grammar and words[index - 2][-2:] != "ly":
                known = head in lex.PHRASE_HEADS or head.endswith(_LEARNED)
                size += known or (rare and not common(words[index - 2]))
            if size > 1 or rare:
                yield at + starts[index - size], at + starts[index] - 1, "other", False
            index -= size


def _content(start: int, run: str, skipped: frozenset[str]) -> Iterator[tuple[int, list[str]]]:
    """Maximal pieces of a lower-case run without words of grammar, with their offsets."""
    at, piece = start, list[str]()
    for word in [*run.split(" "), ""]:
        if word and word not in skipped:
            piece.append(word)
        elif piece:
            yield at - sum(len(one) + 1 for one in piece), piece
            piece = []
        at += len(word) + 1
