"""Names in text without a model: the `nlp` extractor, for documents and questions.

Gives proper names, acronyms, identifiers of source code and quoted terms. A candidate is `(start,
end, type, strong)`. Where two overlap the finder that ran first wins; only a quoted term may contain
other names. Addresses, attributes and keys are blanked first. How often a name must be seen before
it counts is decided where mentions are merged."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from graphrag_mcp.names import cjk
from graphrag_mcp.names import lexicon as lex
from graphrag_mcp.names.kinds import by_form, noun_type
from graphrag_mcp.names.latin import Evidence, names
from graphrag_mcp.names.lexicon import ordinary
from graphrag_mcp.text.prose import fences, is_code, sentences
from graphrag_mcp.text.spans import Mention
from graphrag_mcp.text.terms import (
    LANGUAGES,
    LOWER,
    UPPER,
    WORD,
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
_FRONT_MATTER = 4_000  # characters in which front matter must end
_TURNS = 3  # lines of a text with a time and a speaker that make it a chat
_FORMS = Patterns(table(__file__))


# ---- what is no text ----------------------------------------------------------------------------

_TARGET = re.compile(
    r"!\[[^\[\]\n]{0,200}\]\([^()\s]{1,300}"
    r"|(?<=\]\()[^()\s]{1,2000}(?:\([^()\s]{0,200}\))?(?: \"[^\"\n]{0,1000}\")?(?=\))"
)
_ROLE = re.compile(r":(?:[a-z_]{1,30}:){1,3}(?=`)|(?<=:ref:`|:doc:`)[\w./-]{1,100}(?=`)")
_ADDRESS = re.compile(r"\b(?:https?|ftp)://[\w.~:/?#@!$&*+,;=%'-]+", re.ASCII)
_MAIL = re.compile(r"(?<![\w@])[\w.+-]{1,60}@[\w-]{1,60}(?:\.[\w-]{1,30}){1,4}", re.ASCII)
_TAG = re.compile(r"<[A-Za-z][\w-]{0,20}\s[^<>=]{0,200}=[^<>]{0,4000}>")
_SIGN = re.compile(r"\{%-?[ \t]{0,9}\w{1,40}|&(?!amp;)[a-z]{2,8}\d{0,2};")
_KEY = re.compile(  # of JSON
    r"""(["'])[^"'\n]{1,40}\1 ?: ?(?=["'\[{\d-]|true\b|false\b|null\b|None\b)"""
)
# What a text must hold for a pattern to be tried.
_BLANKED = (
    ("://", _ADDRESS),
    ("@", _MAIL),
    ("](", _TARGET),
    (":`", _ROLE),
    ("<", _TAG),
    ("{%", _SIGN),
    ("&", _SIGN),
    ('":', _KEY),
    ("':", _KEY),
)


def without_markup(text: str) -> str:
    """The text with NULs (which no document contains) in place of markup: web and mail addresses,
    comments, attributes and characters of HTML, tags of templates, keys of JSON and front
    matter. Its length is unchanged. Words of markup would be connected with everything: `https`
    occurred beside 3,299 names of one corpus."""
    used = dict.fromkeys(pattern for sign, pattern in _BLANKED if sign in text)
    spans = [match.span() for pattern in used for match in pattern.finditer(text)]
    at = 0
    while (at := text.find("<!--", at)) >= 0 and (end := text.find("-->", at)) >= 0:
        spans.append((at, end + 3))
        at = end + 3
    if text.startswith(("+++\n", "---\n")):
        end = text.find(f"\n{text[:3]}", 3, _FRONT_MATTER)
        spans += [match.span() for match in _FORMS.matter_key.finditer(text, 4, max(end, 4))]
    pieces, at = [], 0
    for start, end in sorted(spans):
        if end > at:
            start = max(start, at)
            pieces += [text[at:start], "\0" * (end - start)]
            at = end
    return "".join([*pieces, text[at:]])


# ---- all names of a text ------------------------------------------------------------------------


def extract(text: str) -> list[Mention]:
    """All mentions of names in this text, sorted by start; `text[m.start:m.end] == m.form` for
    each, however the letters of the text are composed.

    A text of up to SHORT characters is taken for a question."""
    return [Mention(*fields) for fields in mentions(text, len(text) <= SHORT)]


# An issue with a traceback has 100 to 300 distinct terms. With 64 of them the file to be changed was
# among the first five for 63 % of 19 issues, with 150 for 84 %, with 300 for 89 %.
QUESTION_TERMS = 300


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
    spoken = speakers(text)
    found, evidence = names(text, spans, (text[start:end] for start, end, *_ in spoken))
    # A question may be a name alone, such as "Berta Flight".
    alone = text if short and " " in text else ""
    proper = [
        (
            name.start,
            name.end,
            name.kind or "other",
            strong or (short and (not name.opening or name.form == alone)),
        )
        for name, strong in found
    ]
    others = () if text.isascii() else cjk.candidates(text, short)
    rare = _rare_words(text, evidence) if short else ()
    taken = bytearray(len(text))
    kept: list[Candidate] = []
    for group in (pairs, spoken, _identifiers(text), proper, others, rare):
        for start, end, kind, strong in group:
            if taken.find(1, start, end) < 0:
                taken[start:end] = b"\x01" * (end - start)
                kept.append((start, end, kind, strong))
    named = _with_quoted(text, kept, short)
    return _mentions(text, named if short else _outside_code(text, named), aliases)


_RARE = re.compile(r"(?<![\w.@/\\’'-])[^\W\d_]{3,}+(?![\w(’'])")


def _rare_words(text: str, evidence: Evidence) -> Iterator[Candidate]:
    """Words of a question that are neither grammar nor everyday words: who founded microsoft."""
    grammar = LANGUAGES[evidence.language]
    for match in _RARE.finditer(text):
        word = match[0].lower()
        if not (ordinary(word) or word in grammar or word in lex.MONTHS or cjk.is_han(word[0])):
            yield (*match.span(), "other", False)


def _outside_code(text: str, found: Iterable[Candidate]) -> Iterator[Candidate]:
    """The same candidates, those in code weak: what is only assigned or called there is a variable or
    a column of an example."""
    blocks = fences(text)
    lines: dict[int, bool] = {}
    for start, end, kind, strong in found:
        strong = strong and bisect_right(blocks, start) % 2 == 0
        if strong and kind == "artifact":
            begin = text.rfind("\n", 0, start) + 1
            if begin not in lines:
                last = text.find("\n", begin)
                lines[begin] = is_code(text[begin : last if last >= 0 else len(text)])
            used = _ASSIGNED.match(text, end) or _PASSED.search(text, max(0, start - 2), start)
            strong = not (used or lines[begin])
        yield start, end, kind, strong


def _with_quoted(text: str, kept: list[Candidate], short: bool) -> list[Candidate]:
    """Adds quoted terms, the same span only once."""
    quotes: dict[Span, Candidate] = {}
    last = 0
    for quote in _quoted(text, short):
        if quote[0] >= last:
            quotes[quote[:2]] = quote
            last = quote[1]
    out = []
    for start, end, kind, strong in kept:
        if quote := quotes.pop((start, end), None):
            kind = kind if quote[2] == "other" else quote[2]
            out.append((start, end, kind, strong or quote[3]))
        else:
            out.append((start, end, kind, strong))
    return out + list(quotes.values())


def _mentions(text: str, found: Iterable[Candidate], aliases: dict[Span, Span]) -> list[Fields]:
    """Keys, one type per key, and the cap: strong names first, then frequent, then long ones."""
    rows: list[Row] = []
    counts: Counter[str] = Counter()
    types: dict[str, Counter[str]] = {}
    strong_keys = set()
    begun = ended = 0  # the outer name
    for start, end, kind, strong in sorted(
        found, key=lambda candidate: (candidate[0], -candidate[1])
    ):
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
    limit = most(text)
    if len(counts) > limit:
        ranked = sorted(
            counts, key=lambda key: (key not in strong_keys, -counts[key], -len(key), key)
        )
        best = set(ranked[:limit])
        rows = [row for row in rows if row[0] in best]
    type_of = {
        key: min(kinds, key=lambda kind: (-kinds[kind], kind)) for key, kinds in types.items()
    }
    alias_of = {
        normalise_name(text[slice(*short)]): normalise_name(text[slice(*long)])
        for short, long in aliases.items()
    }
    for short, long in alias_of.items():
        if kind := type_of.get(long) or type_of.get(short):
            type_of[long] = type_of[short] = kind
    for key in counts:  # Alex Ferguson, whom the text calls Mr Ferguson
        if key not in type_of and type_of.get(key.rpartition(" ")[2]) == "person":
            type_of[key] = "person"
    alias_of |= _respelled(rows, type_of)
    short_names = _short_names(text, rows, type_of, alias_of)
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


# ---- other names of the same --------------------------------------------------------------------


def _short_names(
    text: str, rows: Sequence[Row], type_of: Mapping[str, str], alias_of: Mapping[str, str]
) -> dict[str, str]:
    """Family names and given names alone, names with an initial and names without the initial in the
    middle, each with the one person of this text whose full name they shorten, and that stands
    before them. John Adams is not his son, John Quincy Adams.

    Who is later called by the last word alone is a person."""
    keys = dict.fromkeys(row[0] for row in rows)
    acronyms = {key for key, form, *_ in rows if form.rpartition(" ")[2].isupper()}  # Ray DVD
    full: dict[str, set[str]] = {}
    given_names: set[str] = set()
    by_family: set[str] = set()
    for key in sorted(keys, key=lambda key: (-key.count(" "), key)):
        kind = type_of.get(key, "")
        if " " not in key:
            break  # the rest are single words
        first, *middle, last = key.split(" ")
        if kind not in ("", "person") or len(middle) > 1 or first == last:
            continue
        plain = key.replace(" ", "").isalpha() and key not in acronyms
        if not plain or key in alias_of or len(first) < 3:
            continue
        sure = kind or not any(map(ordinary, key.split(" ")))
        longer = full.get(key, ())
        if len(longer) == 1 and not _apart(text, rows, key, *longer):
            continue  # Brian Ripley, beside Brian D. Ripley
        short = {last, f"{first[0]} {last}"}
        if middle and len(middle[0].rstrip(".")) == 1:
            short.add(f"{first} {last}")
        if kind:
            given_names.add(first)
        for short_name in (*short, first):
            full.setdefault(short_name, set()).add(key)
        if sure:
            by_family.update(short)
    titled = cjk.titled_names(keys, type_of)
    full |= titled
    usable = by_family | given_names | titled.keys()
    return {
        key: min(full[key])
        for key in keys
        if key in usable
        and len(full[key]) == 1
        and (len(key) > (1 if key in given_names else 2) or cjk.is_han(key[0]))
        and key not in alias_of
        and type_of.get(key, "person") == "person"
        and (" " not in key or not _apart(text, rows, key, min(full[key])))
    }


def _apart(text: str, rows: Iterable[Row], name: str, other: str) -> bool:
    """Does the shorter `name` stand first, or does a sentence name both, and so tell them apart:
    George Bush and George W. Bush?"""
    places = sorted((start, end, key) for key, _, start, end in rows if key in (name, other))
    return bool(places and places[0][2] == name) or any(
        a[2] != b[2] and not _SENTENCE_END.search(text, a[1], b[0] + 1) for a, b in pairwise(places)
    )


_SENTENCE_END = re.compile(r"[.!?]\W{0,9} [A-Z]|\n")
_PLURAL = re.compile("[A-Z]{2,6}s")
_CAMEL = re.compile(rf"[{UPPER}][{LOWER}]+(?:[{UPPER}][{LOWER}]+)+")


def _respelled(rows: Sequence[Row], type_of: Mapping[str, str]) -> dict[str, str]:
    """People written as one word, each with the same name in words (AnnaBerg, Anna Berg); several
    things with one of them (APIs, API)."""
    plural = {key: key[:-1] for key, form, *_ in rows if _PLURAL.fullmatch(form)}
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
_LINKS = lex.PARTICLES | frozenset("the and in on to a an und et y e".split())


def _definitions(text: str) -> tuple[list[Candidate], dict[Span, Span]]:
    """Acronyms that the text spells out: both names as candidates; span of short -> of long."""
    found: list[Candidate] = []
    aliases: dict[Span, Span] = {}
    for match in _BRACKET.finditer(text):
        begin, (start, end) = match.start(), match.span(1)
        inner = match[1].rstrip(" ;,")
        short: Span | None = None
        long: Span | None = None
        if _ACRONYM.fullmatch(inner) and sum(map(str.isupper, inner)) > 1:
            short = (start, start + len(inner))  # World Health Organization (WHO)
            long = _spelled(text, inner, max(0, begin - 120), begin)
        elif before := _BEFORE_BRACKET.search(text, max(0, begin - 12), begin):
            short = before.span(1)  # WHO (World Health Organization)
            if sum(map(str.isupper, before[1])) > 1:
                stop = re.search(r"[,;:，；]", inner)
                long = _spelled(text, before[1], start, start + stop.start() if stop else end)
                long = long if long and long[0] == start else None
        if short and long:
            aliases[short] = long
            words = text[slice(*long)].split()
            kind = by_form(words) or "other"
            found += [(*long, kind, True), (*short, kind, True)]
    if "称" in text or "稱" in text:
        for short, long in cjk.shortened(text, _FORMS.shortened):
            aliases[short] = long
            found += [(*short, "organization", True), (*long, "organization", True)]
    return found, aliases


def _spelled(text: str, acronym: str, start: int, end: int) -> Span | None:
    """The words before `end` whose initials are the acronym's letters, small words skipped."""
    letters = [ch.lower() for ch in acronym.removesuffix("s") if ch.isalnum()]
    words = list(_WORDS.finditer(text, start, end))
    if not words or text[words[-1].end() : end].strip(" \"”’'"):
        return None
    first = last = words[-1].end()
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


# ---- speakers, quotations, identifiers ----------------------------------------------------------

_LINE = re.compile(
    rf"^(?:\*\*)?(?P<name>[{UPPER}][\w.'-]{{1,30}}(?: [{UPPER}][\w.'-]{{0,20}}){{0,2}})(?:\*\*)?:(?:\*\*)?[ \t]+(?=[^\n]*[^\W\d_])",
    re.MULTILINE,
)


# A word with a capital at the end of a clause, as the name of who is addressed, and a word in small letters.
_ADDRESSED = re.compile(rf"(?<=[{WORD},] )[{UPPER}][{WORD}]*+(?=[,.!?…])")
_SMALL = re.compile(rf"(?<![{WORD}-])[{LOWER}][{WORD}]*+(?![{WORD}-])")


def speakers(text: str) -> list[Candidate]:
    """The names of speakers in a text of turns, as candidates.

    It is such a text if lines begin with a time and a name (`[15:01] <mara> ...`, `12/03/24,
    10:15 - Jens Ott: ...`; also behind a relay, `<bot> <mara>`). It is also if half of its lines
    begin with a name and a colon (`Anna Berg: ...`, `**Tom**: ...`), of at least two names, each
    used twice or before a sentence. A name that is an ordinary word (Tom, Question) counts if it
    occurs elsewhere in the text, beside another name that is no ordinary word. Two ordinary words
    count if the text has both at the end of a clause and never in small letters (Hey James!)."""
    turns = [
        (*match.span(group), "person", True)
        for match in _FORMS.turn.finditer(text)
        for group in ("nick", "relayed", "name")
        if match[group]
    ]
    if len(turns) >= _TURNS:
        return turns
    lines = list(_LINE.finditer(text))
    counts = Counter(line["name"] for line in lines)
    turns = [line for line in lines if counts[line["name"]] > 1 or _closed(text, line.end())]
    if 2 * len(turns) < sum(1 for line in text.split("\n") if line.strip()):
        return []
    speaking = {line["name"] for line in turns}
    addressed, small = set(_ADDRESSED.findall(text)), set(_SMALL.findall(text))
    sure = {name for name in speaking if not ordinary(name.lower())}
    called = {name for name in speaking & addressed if name.lower() not in small}
    sure |= called if len(called) > 1 else set()
    elsewhere = Counter(_WORDS.findall(text))
    elsewhere.subtract(line["name"].split(" ")[0] for line in lines)
    named = {name for name in speaking if elsewhere[name.split(" ")[0]] > 0}
    if len(speaking) < 2 or not sure or len(sure | named) < 2 and not named:
        return []
    kept = [line for line in turns if line["name"] in sure | named]
    return [(_behind_title(line), line.end("name"), "person", True) for line in kept]


def _closed(text: str, at: int) -> bool:
    """Does the line end as a sentence does?"""
    end = text.find("\n", at)
    return text[at : end if end >= 0 else len(text)].rstrip().endswith((".", "!", "?", "…"))


def _behind_title(line: re.Match[str]) -> int:
    """Where the name of a speaker begins: MR COLQUHOUN is COLQUHOUN."""
    first, _, rest = line["name"].partition(" ")
    titled = rest and first.lower().rstrip(".") in lex.TITLES
    return line.start("name") + (len(first) + 1 if titled else 0)


_GLOSSED = re.compile(r"[”」』]?[ ]?[（(][A-Za-z]")  # “丝带”（the Ribbon）
_SAID_OF_WORK = re.compile(
    rf"(?<![{LOWER}])([{LOWER}]++)(?:[ ,:]| called | titled | named ){{1,2}}[\"“«]\Z"
)


def _quoted(text: str, short: bool) -> Iterator[Candidate]:
    for match in _FORMS.quoted.finditer(text):
        start, end = match.span(match.lastindex or 0)
        form, sign = text[start:end], match[0][:2]
        if not (words := form.split()):
            continue  # “ ”
        if sign[0] == "《":
            yield start, end, "content", True
        elif sign[0] in "「『" or any(map(cjk.is_han, form[:3])):
            if len(form) <= 16 and not any(ch in "，。！？；,!?" for ch in form):
                yield start, end, "other", short or _GLOSSED.match(text, end) is not None
        elif sign[0] == "`" and sign != "``":
            if sum(map(str.isalpha, form)) > 1:  # not `100`, nor the variable `b` of an example
                start = (
                    end - len(form.lstrip("@!~")) if text[start - 2 : start - 1] == "\0" else start
                )
                yield start, end, "artifact", short or _is_identifier(text[start:end])
        elif 1 < len(words) <= 8 and words[0][:1].isupper() and sign[0] != "'":
            end -= form[-1] in ".,;:"
            small = sum(word[0].islower() and word not in _LINKS for word in words)
            if small or any(sign in form for sign in "?!;"):
                continue  # speech
            before = _SAID_OF_WORK.search(text, max(0, start - 40), start)
            work = before is not None and noun_type(before[1]) == "content"
            yield start, end, "content" if work else "other", True


_NUMBER_BEHIND = re.compile(r"\.\d")
_ASSIGNED = re.compile(r"[ \t]{0,20}(?:=(?!=)|<-)")
_PASSED = re.compile(r"\w\(\Z")  # before an argument
_EXAMPLE = re.compile(r"(?:self|cls|[A-Za-z]|foo\w*|my_\w*)\.|(?:foo|my)_")  # of an example
_IDENTIFIER = re.compile(
    r"(?!\$\w+/|v\d+(?:\.|$))[@$.]?[A-Za-z_][\w$-]*(?:(?:\.|::|->|/)[\w$-]+)*(?:\(\))?"
)


def _is_identifier(form: str) -> bool:
    """Is it one word of code that is no ordinary word?"""
    if len(form) < 3 or _EXAMPLE.match(form) or (form.isalpha() and ordinary(form.lower())):
        return False
    file = form.rpartition(".")[2].lower() in lex.FILE_ENDINGS  # src/core/engine.py, not a/b/c
    return (file or form.count("/") < 2) and _IDENTIFIER.fullmatch(form) is not None


def _identifiers(text: str) -> Iterator[Candidate]:
    """camelCase, snake_case, calls() and file.names of prose on source code."""
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
            other = kind == "call" and stop_word(form)  # a for() loop
            other = other or text.endswith(" at ", 0, match.start())  # bates at stat.wisc.edu
            yield match.start(), match.end(), "artifact", not (_EXAMPLE.match(form) or other)
