"""Names in text without a model: the `nlp` extractor, for documents and questions.

Gives proper names, acronyms, code identifiers, quoted terms (strong) and noun phrases with local
evidence (weak). A candidate is `(start, end, type, strong)`. Where two overlap the finder that ran
first wins; only a quoted term may contain other names. Addresses, attributes and keys are blanked
first. How often a name must be seen before it counts is decided where mentions are merged."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from operator import itemgetter

from graphrag_mcp.names import caseless, cjk
from graphrag_mcp.names.latin import LOWER_RUN, Names, common
from graphrag_mcp.names.lexicon import DULL, FILE_ENDINGS, PHRASE_HEADS, STARTERS
from graphrag_mcp.names.types import kind_of, subjects
from graphrag_mcp.text.folding import LANGUAGES, SIMPLIFY, UPPER, with_origins
from graphrag_mcp.text.terms import STOP_WORDS, composed, normalise_name, query_terms, stop_word
from graphrag_mcp.types import Mention

Candidate = tuple[int, int, str, bool]
MATTER = 4_000  # characters in which front matter must end
TURNS = 3  # lines of a text with a time and a speaker that make it a chat

_ADDRESS = re.compile(r"\b(?:https?|ftp)://[\w.~:/?#@!$&*+,;=%'-]+", re.ASCII)
_TAG = re.compile(r"<[A-Za-z][\w-]{0,20}\s[^<>=]{0,200}=[^<>]{0,4000}>")
_MATTER_KEY = re.compile(  # with what is the address of a page: aliases = ["2014/11/20/Cargo.html"]
    r"^[ \t]{0,20}[A-Za-z_][\w-]{0,40}[ \t]{0,4}[:=](?:[ \t]{0,4}[\[\x22']{0,2}[\w.-]{0,40}/[^\n]*)?",
    re.MULTILINE,
)
# of JSON
_KEY = re.compile(r"""(["'])[^"'\n]{1,40}\1 ?: ?(?=["'\[{\d-]|true\b|false\b|null\b|None\b)""")
_TIME = (
    r"^[\[(]?(?:\d{1,4}[./-]\d{1,2}[./-]\d{1,4},?[ T])?\d{1,2}:\d\d(?::\d\d)?(?:[ \u202f]?[AaPp][Mm])?[\])]?"
    r"[ \t]{1,3}(?:- )?"
)
_NICK = r"[^\W\d_][\w.`^|-]{1,30}"
_TURN = re.compile(
    rf"{_TIME}(?:<[@+%~& ]?(?P<nick>{_NICK})>(?:[ \t]<(?P<relayed>{_NICK})>)?[ \t]"
    rf"|(?P<name>{_NICK}(?: [^\s:<>]{{1,20}}){{0,2}}):[ \t])",
    re.MULTILINE,
)
_LINE = re.compile(
    rf"^(?:\*\*)?(?P<name>[{UPPER}][\w.'-]{{1,30}}(?: [{UPPER}][\w.'-]{{0,20}}){{0,2}})(?:\*\*)?:(?:\*\*)?[ \t]+(?=\S)",
    re.MULTILINE,
)


def without_markup(text: str) -> str:
    """As long as before, with NULs (no document has any) for web addresses, comments and attributes
    of HTML, keys of JSON and front matter. Their words would stand beside everything: `https`
    beside 3,299 names of one corpus."""
    spans = [match.span() for match in _ADDRESS.finditer(text)] if "://" in text else []
    if "<" in text:
        spans += [match.span() for match in _TAG.finditer(text)]
        at = 0
        while (at := text.find("<!--", at)) >= 0 and (end := text.find("-->", at)) >= 0:
            spans.append((at, end + 3))
            at = end + 3
    if '":' in text or "':" in text:
        spans += [match.span() for match in _KEY.finditer(text)]
    if text.startswith(("+++\n", "---\n")) and (end := text.find(f"\n{text[:3]}", 3, MATTER)) > 0:
        spans += [match.span() for match in _MATTER_KEY.finditer(text, 4, end)]
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
    """Who speaks in `[15:01] <mara> ...`, `12/03/24, 10:15 - Jens Ott: ...`; a relay (`<bot> <mara>
    ...`), too."""
    turns = [*_turns(text)]
    return turns if len(turns) >= TURNS else _script(text)


def _script(text: str) -> list[Candidate]:
    """Who speaks where each line begins with a name, `Anna Berg: ...` or `**Tom**: ...`: two
    speakers of two turns each, in half of the lines."""
    turns = [*_LINE.finditer(text)]
    if len(turns) < 2 * 2:
        return []
    counts = Counter(turn["name"] for turn in turns)
    often = {
        name
        for name, count in counts.items()
        if count > 1 and not common(name.lower()) and name.lower() not in _SKIP
    }
    kept = [turn for turn in turns if turn["name"] in often]
    lines = sum(1 for line in text.split("\n") if line.strip())
    if len(often) < 2 or 2 * len(kept) < lines:
        return []
    return [(*turn.span("name"), "person", True) for turn in kept]


def _turns(text: str) -> Iterator[Candidate]:
    for match in _TURN.finditer(text):
        for group in ("nick", "relayed", "name"):
            if match[group]:
                yield *match.span(group), "person", True


VERSION = "nlp-12"
Fields = tuple[str, str, str, bool, int, int, str]  # of a Mention, in its order
# characters: up to here a text is taken for a question, where single rare words are worth trying
SHORT = 300
LONGEST = 120  # characters of a name; what is longer is a run of letters, not a name
_SKIP = STARTERS | DULL | STOP_WORDS
PER_THOUSAND = 60  # distinct keys kept per started 1,000 characters

# every alternative begins with its sign, so that `re` skips to the next sign
_QUOTED = re.compile(
    r"《([^《》\n]{1,60})》|「([^「」\n]{1,40})」|『([^『』\n]{1,40})』|“([^“”\n]{2,80})”|«\s?([^«»\n]{2,80}?)\s?»"
    r"|„([^„“”\n]{2,80})[“”]|``\s?([^`'\n]{2,80}?)\s?''|`(?<![`\w]`)([^`\n]{1,60})`(?!`)"
    r"|\"(?<![\w\"]\")([^\s\"][^\"\n]{0,78}[^\s\"])\"(?![\w\"])|'(?<![\w']')([^\s'][^'\n]{0,38}[^\s'])'(?![\w'])"
)
_CODE = re.compile(
    r"(?<![\w.@/-])(?:"
    r"(?P<call>[A-Za-z_][\w]*+(?:\.[A-Za-z_]\w*+)*+)(?=\(\))"
    r"|(?P<dotted>[A-Za-z_][\w-]*+(?:\.[A-Za-z_][\w-]*+)++)"
    r"|(?P<snake>_{0,2}[A-Za-z0-9]++(?:_{1,2}[A-Za-z0-9]++)++_{0,2}|__[A-Za-z0-9]++__)(?![\w-])"
    r"|(?P<camel>[a-z]{2,30}[A-Z]\w*+)"
    r"|(?P<plus>[A-Z][a-z]?(?:\+\+|#)(?![\w+#])|\.NET\b))"
)
_CODE_SIGN, _HUMP = (
    re.compile(r"_|\.[A-Za-z_]|\(\)|\+\+|#(?<=[A-Za-z]#)"),
    re.compile(r"[a-z][A-Z]"),
)


def extract(text: str) -> list[Mention]:
    """All mentions of names in this text, sorted by start; `text[m.start:m.end] == m.form` for
    each, however the letters of the text are composed.

    A text of up to SHORT characters is taken for a question."""
    return [Mention(*fields) for fields in mentions(text, len(text) <= SHORT)]


# An issue with a traceback has 100 to 300 distinct terms. With 64 of them the file to be changed was
# among the first five for 63 % of 19 issues, with 150 for 84 %, with 300 for 89 %.
QUESTION_TERMS = 300


def terms_of(question: str) -> list[str]:
    """The search terms of a question, and after them its words of one character that stand in none
    of these alone."""
    question = composed(question)
    found = query_terms(question, QUESTION_TERMS)
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
    groups = (
        pairs,
        speakers(text),
        _code(text),
        subjects(text),
        names.find(),
        cjk.candidates(text, short),
        phrases,
    )
    taken = bytearray(len(text))
    kept: list[Candidate] = []
    for group in groups:
        for start, end, kind, strong in group:
            if taken.find(1, start, end) < 0:
                taken[start:end] = b"\x01" * (end - start)
                kept.append((start, end, kind, strong))
    found = _mentions(text, _with_quoted(text, kept, taken), aliases)
    return _with_variants(text, found) if short and not text.isascii() else found


def _with_variants(text: str, found: list[Fields]) -> list[Fields]:
    """Adds, to names of a question that may begin with a word of one letter (Arabic, Hebrew), what
    follows it."""
    keys = {mention[0] for mention in found}
    more: list[Fields] = []
    for start, end in caseless.variants(text, [(mention[4], mention[5]) for mention in found]):
        key = normalise_name(text[start:end])
        if key and key not in keys:
            keys.add(key)
            more.append((key, text[start:end], "other", False, start, end, ""))
    return sorted(found + more, key=itemgetter(4)) if more else found


def _with_quoted(text: str, kept: list[Candidate], taken: bytearray) -> list[Candidate]:
    """Adds quoted terms: the same span only once, weaker names that stick out over a quotation
    dropped."""
    quotes: dict[tuple[int, int], Candidate] = {}
    last = 0
    for quote in _quoted(text):
        if quote[0] >= last:
            quotes[quote[:2]] = quote
            last = quote[1]
    if not quotes:
        return kept
    closes = {start: end for start, end in quotes}
    edges = bytearray(len(text) + 1)  # 1 where a quotation begins, 2 where one ends
    for start, end in quotes:
        edges[start], edges[end] = 1, 2
    out = []
    for start, end, kind, strong in kept:
        if quote := quotes.pop((start, end), None):
            out.append((start, end, kind if quote[2] == "other" else quote[2], strong or quote[3]))
        elif not _crosses(start, end, edges, closes):
            out.append((start, end, kind, strong))
    return out + list(quotes.values())


def _crosses(start: int, end: int, edges: bytearray, closes: dict[int, int]) -> bool:
    """Does this span hold one end of a quotation without the other?"""
    at = start
    while (at := edges.find(1, at, end)) >= 0:
        if closes[at] > end:
            return at > start
        at = closes[at]
    closing = edges.find(2, start + 1, end)
    return closing >= 0 and edges.rfind(1, start, closing) < 0


def _mentions(
    text: str, found: list[Candidate], aliases: dict[tuple[int, int], tuple[int, int]]
) -> list[Fields]:
    """Keys, one type per key, and the cap: strong names first, then those seen more often, then
    longer ones."""
    rows = []
    counts: dict[str, int] = {}
    types: dict[str, list[str]] = {}
    strong_keys = set()
    begun = ended = 0  # the outer name
    found.sort(key=itemgetter(1), reverse=True)
    found.sort(key=itemgetter(0))
    for start, end, kind, strong in found:
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
        if not (key[:1].isalnum() or any(map(str.isalnum, key))):
            continue
        counts[key] = counts.get(key, 0) + 1
        if kind != "other":
            types.setdefault(key, []).append(kind)
        if strong:
            strong_keys.add(key)
        rows.append((key, form, start, end))
    limit = PER_THOUSAND * (1 + (len(text) - 1) // 1000)
    if len(counts) > limit:
        best = set(
            sorted(counts, key=lambda key: (key not in strong_keys, -counts[key], -len(key), key))[
                :limit
            ]
        )
        rows = [row for row in rows if row[0] in best]
    type_of = {
        key: min(set(kinds), key=lambda kind: (-kinds.count(kind), kind))
        if len(kinds) > 1
        else kinds[0]
        for key, kinds in types.items()
    }
    alias_of = {
        normalise_name(text[a:b]): normalise_name(text[c:d]) for (a, b), (c, d) in aliases.items()
    }
    alias_of = {short: long for short, long in alias_of.items() if short != long}
    _share_kinds(type_of, counts, alias_of)
    alias_of |= _family_names(type_of, counts, alias_of)
    kinds = {key: (type_of.get(key, "other"), key in strong_keys) for key, *_ in rows}
    return [
        (key, form, *kinds[key], start, end, alias_of.get(key, ""))
        for key, form, start, end in rows
    ]


_LETTERS = re.compile(r" ([A-Z]{2,5})\Z")  # behind a name
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


def _share_kinds(type_of: dict[str, str], keys: Iterable[str], alias_of: dict[str, str]) -> None:
    """Gives an acronym the type of what it is short for, and a family name alone that of the person
    of this text."""
    for short, long in alias_of.items():
        if kind := type_of.get(long) or type_of.get(short):
            type_of[long] = type_of[short] = kind
    family = {
        key.rpartition(" ")[2] for key, kind in type_of.items() if kind == "person" and " " in key
    }
    if family:
        for key in keys:
            if key in family and key not in type_of:
                type_of[key] = "person"


_NO_NAME = frozenset("of the and for at in from".split())  # "Doug Williams of BT" is no full name


def _family_names(
    type_of: Mapping[str, str], keys: Iterable[str], alias_of: Mapping[str, str]
) -> dict[str, str]:
    """Family names alone, each with the one person of this text whose full name ends with it."""
    full: dict[str, list[str]] = {}
    given: set[str] = set()
    for key, kind in type_of.items():
        words = key.split(" ")
        if kind == "person" and 1 < len(words) < 4 and _NO_NAME.isdisjoint(words):
            full.setdefault(key.rpartition(" ")[2], []).append(key)
            given.add(key.partition(" ")[0])
    return {
        key: full[key][0]
        for key in keys
        if len(full.get(key, ())) == 1
        and len(key) > 3
        and key not in given
        and key not in alias_of
        and type_of.get(key, "person") == "person"
    }


# ---- what the text itself defines ---------------------------------------------------------------

_ACRONYM = re.compile(r"[A-Z][A-Za-z0-9]?[A-Z0-9&./-]{0,8}[A-Z0-9]?s?")
_BEFORE_BRACKET = re.compile(r"(?<![\w.-])[A-Z][A-Za-z0-9&.-]{1,9} ?$")
_BRACKET = re.compile(r"[(（]([^()（）\n]{2,90})[)）]")
_WORDS = re.compile(r"[^\W_]+")
_LINKS = frozenset("of the and for in on de du la des von und et y e to a an".split())
_SHORTENED = re.compile(
    r"(?:，|,|（|\()(?:以下|又|亦|或|常)?(?:简称|簡稱)(?:为|為)?[“\"「『《]?([\u4e00-\u9fffA-Za-z0-9]{2,10})(?=[”\"」』》，。、；;,）)])"
)
_ZH_LONG = re.compile(r"[\u4e00-\u9fff·]{3,24}(?:（[^（）\n]{0,40}）)?$")


def _definitions(text: str) -> tuple[list[Candidate], dict[tuple[int, int], tuple[int, int]]]:
    """Acronyms that the text spells out: both names as candidates, and span of the short form ->
    span of the long."""
    found: list[Candidate] = []
    aliases: dict[tuple[int, int], tuple[int, int]] = {}
    for match in _BRACKET.finditer(text):
        start, end = match.span(1)
        inner = match[1].rstrip(" ;,")
        end = start + len(inner)
        if _ACRONYM.fullmatch(inner) and sum(map(str.isupper, inner)) >= 2:
            short, long = (
                (start, end),
                _spelled(text, inner, max(0, match.start() - 120), match.start()),
            )
        else:
            before = _BEFORE_BRACKET.search(text[max(0, match.start() - 12) : match.start()])
            if not before:
                continue
            at = max(0, match.start() - 12) + before.start()
            short, long = (at, at + len(before[0].rstrip())), None
            if sum(map(str.isupper, before[0])) >= 2:
                stop = re.search(r"[,;:，；]", inner)
                until = start + (stop.start() if stop else len(inner))
                long = _spelled(text, before[0].strip(), start, until)
                long = long if long and long[0] == start else None
        if long:
            aliases[short] = long
            kind = kind_of(text, *long, text[slice(*long)].split())
            found += [(*long, kind, True), (*short, "other", True)]
    shorts: set[str] = set()
    for match in _SHORTENED.finditer(text) if "称" in text or "稱" in text else ():
        if span := _shortened(text, match.start(), match[1]):
            aliases[match.span(1)] = span
            found += [(*span, "organization", True), (*match.span(1), "organization", True)]
            if (
                len(shorts) < 8
            ):  # the segmenter does not know a name coined here: find it again ourselves
                shorts.add(match[1])
    for short in sorted(shorts):
        found += [
            (m.start(), m.end(), "organization", True) for m in re.finditer(re.escape(short), text)
        ]
    return found, aliases


def _spelled(text: str, acronym: str, start: int, end: int) -> tuple[int, int] | None:
    """The words before `end` whose initials are the acronym's letters, small words skipped."""
    letters = [ch.lower() for ch in acronym.removesuffix("s") if ch.isalnum()]
    words = list(_WORDS.finditer(text, start, end))
    if not words or text[words[-1].end() : end].strip(" \"”’'"):
        return None
    index, count = len(words), 0
    while letters and index > 0:
        index -= 1
        word = words[index][0]
        capitals = [word[0].lower()] + [
            ch.lower() for ch in word[1:] if ch.isupper() and not word.isupper()
        ]
        if letters[-len(capitals) :] == capitals:
            del letters[-len(capitals) :]
            count += 1
        elif letters[-1] == word[0].lower():
            letters.pop()
            count += 1
        elif word.lower() not in _LINKS:
            return None
        if (
            letters
            and index
            and re.search(r"[^ \n&/’'.-]", text[words[index - 1].end() : words[index].start()])
        ):
            return None
    return (words[index].start(), words[-1].end()) if not letters and count > 1 else None


def _shortened(text: str, end: int, short: str) -> tuple[int, int] | None:
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


def _quoted(text: str) -> Iterator[Candidate]:
    for match in _QUOTED.finditer(text):
        kind = match.lastindex or 0
        start, end = match.span(kind)
        form = text[start:end]
        if kind == 1:
            yield start, end, "content", True
        elif kind in (2, 3) or any(cjk.is_han(ch) for ch in form[:3]):
            if len(form) <= 16 and not any(ch in "，。！？；,!?" for ch in form):
                yield start, end, "other", True
        elif kind == 8 and not any(map(str.isalpha, form)):
            continue  # `100`
        elif kind == 8:
            yield start, end, "artifact" if re.search(r"[\w]", form) else "other", True
        elif (words := form.split()) and (form[-1] not in ".,;:!?" or form.istitle()):
            capital = words[0][:1].isupper() or words[0][:1].isdigit()
            big = sum(word[:1].isupper() for word in words)
            if (
                capital
                and len(words) <= 8
                and big * 2 >= len(words)
                and not any(w in "?!;" for w in form)
            ):
                if len(words) > 1 or words[0].lower() not in STARTERS:
                    yield start, end, "content" if kind != 10 and len(words) > 1 else "other", True
            elif (
                len(words) <= 4
                and kind != 10
                and not stop_word(words[0].lower())
                and form[0].isalpha()
            ):
                yield start, end, "other", False


def _code(text: str) -> Iterator[Candidate]:
    if not (_CODE_SIGN.search(text) or _HUMP.search(text)):
        return  # four times as fast as to see that nothing matches
    for match in _CODE.finditer(text):
        kind, (start, end) = match.lastgroup, match.span()
        form = match[0]
        if kind == "dotted":
            parts = form.split(".")
            code = (
                parts[-1].lower() in FILE_ENDINGS
                or "_" in form
                or (len(parts) > 2 and form.islower())
            )
            if not code or max(map(len, parts)) < 2:
                continue
        elif kind == "snake" and not any(ch.isalpha() for ch in form):
            continue
        yield start, end, "artifact", True


def _phrases(
    text: str, runs: list[tuple[int, str]], language: str, short: bool
) -> Iterator[Candidate]:
    """Noun phrases of 2-4 lower-case words: those repeated in this text, or with a head that speaks
    for a term."""
    grammar = frozenset() if language == "en" else LANGUAGES[language]
    skipped = _SKIP | grammar if grammar else _SKIP
    segments = [
        found
        for start, run in runs
        if short or " " in run
        for found in _content(start, run, skipped)
    ]
    if not short:
        # a single word is never taken here
        segments = [found for found in segments if len(found[1]) > 1]
    pairs = Counter(pair for _, words in segments for pair in pairwise(words))
    for at, words in segments:
        index = len(words)
        while index > 0:
            head = words[index - 1]
            rare = short and len(head) > 2 and not common(head)
            size = 1
            while (
                index - size > 0
                and size < 4
                and pairs[words[index - size - 1], words[index - size]] > 1
            ):
                size += 1
            if grammar:
                # its verbs and adjectives cannot be told: single longer words only
                rare = short and len(head) > 4
            elif size == 1 and index > 1 and words[index - 2][-2:] != "ly":
                known = head in PHRASE_HEADS or head.endswith(
                    ("ology", "ography", "ics", "itis", "osis")
                )
                size = 2 if known or (rare and not common(words[index - 2])) else 1
            if size > 1 or rare:
                start = at + sum(map(len, words[: index - size])) + index - size
                yield (
                    start,
                    start + sum(map(len, words[index - size : index])) + size - 1,
                    "other",
                    False,
                )
            index -= size


def _content(start: int, run: str, skipped: frozenset[str]) -> Iterator[tuple[int, list[str]]]:
    """Maximal pieces of a lower-case run without words of grammar, with their offsets."""
    at, piece, begun = start, [], start
    for word in run.split(" "):
        if word in skipped:
            if piece:
                yield begun, piece
            piece = []
        else:
            if not piece:
                begun = at
            piece.append(word)
        at += len(word) + 1
    if piece:
        yield begun, piece
