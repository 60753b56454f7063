"""Names in text without a model: the `nlp` extractor, for documents and questions.

Finders give candidates: capitalised names (`latin.py`), names in Chinese, Japanese and Korean (`cjk.py`),
names that their marks tell (`marked.py`) and acronyms that the text spells out (`aliases.py`). Where two
overlap the finder that ran first wins; only a quoted term may contain other names. How often a name must
be seen before it counts is decided where mentions are merged."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from graphrag_mcp.names import aliases, cjk, latin, marked
from graphrag_mcp.names import lexicon as lex
from graphrag_mcp.names.kinds import by_form
from graphrag_mcp.names.lexicon import ordinary
from graphrag_mcp.text.prose import fences, sentences
from graphrag_mcp.text.spans import Candidate, Mention
from graphrag_mcp.text.terms import composed, latin_language, normalise_name, query_terms, with_origins

# characters: up to here a text is taken for a question, where single rare words are worth trying
SHORT = 300
LONGEST = 120  # characters of a name; what is longer is a run of letters, not a name
PER_THOUSAND = 60  # distinct keys kept per started 1,000 characters
# An issue with a traceback has 100 to 300 distinct terms. With 64 of them the file to be changed was
# among the first five for 63 % of 19 issues, with 150 for 84 %, with 300 for 89 %.
QUESTION_TERMS = 300


def extract(text: str) -> list[Mention]:
    """All mentions of names in this text; one of up to SHORT characters is taken for a question."""
    return mentions(text, len(text) <= SHORT)


def terms_of(question: str) -> list[str]:
    """The search terms of a question, then its words of one character that are not among these
    terms."""
    question = composed(question)
    found = query_terms(question, QUESTION_TERMS)
    if question.isascii():
        return found
    return [*found, *(word for word in cjk.alone(question) if word not in found)]


def mentions(text: str, question: bool = False, spans: Sequence[aliases.Span] | None = None) -> list[Mention]:
    """All mentions of names in this text, sorted by start; `text[m.start:m.end] == m.form` for each,
    however the letters of the text are composed. In a question rare single words are names too.
    `spans` are the sentences, if they are known."""
    if text.isascii() or unicodedata.is_normalized("NFC", text):
        return _named(text, question, sentences(text) if spans is None else spans)
    whole, at = with_origins(text)
    return [
        mention._replace(form=text[at[mention.start] : at[mention.end]], start=at[mention.start], end=at[mention.end])
        for mention in _named(whole, question, sentences(whole))
    ]


def most(text: str) -> int:
    """The largest number of distinct names whose places `mentions` gives for a composed text."""
    return PER_THOUSAND * (1 + (len(text) - 1) // 1000)


def _named(text: str, question: bool, spans: Sequence[aliases.Span]) -> list[Mention]:
    text = without_markup(text)
    language = latin_language(text) or "en"
    introduced = aliases.introduced(text)
    finders = (
        _introduced(text, introduced),
        marked.speakers(text),
        marked.identifiers(text),
        _proper(text, question, spans, language),
        () if text.isascii() else cjk.candidates(text, question),
        _rare_words(text) if question else (),
    )
    taken = bytearray(len(text))
    kept: dict[aliases.Span, Candidate] = {}
    for start, end, kind, strong in (candidate for found in finders for candidate in found):
        if taken.find(1, start, end) < 0:
            taken[start:end] = b"\x01" * (end - start)
            kept[start, end] = start, end, kind, strong
    for start, end, kind, strong in marked.quoted(text, question):
        if known := kept.get((start, end)):
            kind, strong = kind if kind != "other" else known[2], strong or known[3]
        kept[start, end] = start, end, kind, strong
    blocks = [] if question else fences(text)  # what stands in code alone is a word of an example
    return _mentions(
        text,
        (
            (start, end, kind, strong and bisect_right(blocks, start) % 2 == 0)
            for start, end, kind, strong in kept.values()
        ),
        introduced,
        language,
    )


# Of markup, what a text must hold and the pattern of what goes: targets and labels of links; what a label means (no
# footnote, and no line of a chat); addresses of the web and of mail; tags with attributes, and comments.
_MARKUP = (
    ("](", re.compile(r"(?<=\]\()[^()\s]{1,2000}(?:\([^()\s]{0,200}\))?(?: \"[^\"\n]{0,1000}\")?")),
    ("][", re.compile(r"(?<=\])\[[^\[\]\n]{1,200}\]")),
    ("]:", re.compile(r"(?m)^ {0,3}\[(?!\^)[^\[\]\n]{1,200}\]:[ \t]+\S{1,2000}(?:[ \t]+[\"'(].*)?[ \t]*$")),
    ("://", re.compile(r"\b(?:https?|ftp)://[\w.~:/?#@!$&*+,;=%'-]+", re.ASCII)),
    ("@", re.compile(r"(?<![\w@])[\w.+-]{1,60}@[\w-]{1,60}(?:\.[\w-]{1,30}){1,4}", re.ASCII)),
    ("<", re.compile(r"<(?:!--[^<>]{0,2000}--|[A-Za-z][\w-]{0,20}\s[^<>=]{0,200}=[^<>]{0,4000})>")),
)


def without_markup(text: str) -> str:
    """The text with NULs (which no document contains) in place of web and mail addresses, labels and
    definitions of links, comments and tags with attributes. Its length is unchanged. Words of markup would be
    connected with everything: `https` occurred beside 3,299 names of one corpus."""
    for sign, pattern in _MARKUP:
        if sign in text:
            text = pattern.sub(lambda match: "\0" * len(match[0]), text)
    return text


# ---- candidates ---------------------------------------------------------------------------------

_RARE = re.compile(r"(?<![\w.@/\\’'-])[^\W\d_]{3,}+(?![\w(’'])")


def _introduced(text: str, introduced: dict[aliases.Span, aliases.Span]) -> Iterator[Candidate]:
    """The long forms of short names, then the short ones with their types."""
    kind = {
        long: "organization" if lex.is_han(text[long[0]]) else by_form(text[slice(*long)].split())
        for long in introduced.values()
    }
    yield from ((*long, kind[long] or "other", True) for long in kind)
    yield from ((*short, kind[long] or "other", True) for short, long in introduced.items())


def _proper(text: str, question: bool, spans: Sequence[aliases.Span], language: str) -> Iterator[Candidate]:
    """Capitalised names; in a question all but the first word of it, and a question that is a name
    alone (Berta Flight)."""
    for phrase, kind, strong in latin.names(text, spans, language):
        asked = question and (not phrase.opening or " " in phrase.form == text)
        yield phrase.start, phrase.end, kind or "other", strong or asked


def _rare_words(text: str) -> Iterator[Candidate]:
    """Words of a question that are neither grammar nor everyday words: who founded microsoft."""
    for match in _RARE.finditer(text):
        word = match[0].lower()
        if not (ordinary(word) or lex.is_grammar(word) or lex.is_han(word[0])):
            yield (*match.span(), "other", False)


# ---- the mentions of a text ---------------------------------------------------------------------


@dataclass(slots=True)
class _Named:
    """What a text shows of all mentions of one key."""

    count: int = 0
    strong: bool = False
    kinds: Counter[str] = field(default_factory=Counter)


def _mentions(
    text: str, found: Iterable[Candidate], introduced: dict[aliases.Span, aliases.Span], language: str
) -> list[Mention]:
    """The candidates with their keys, each key with one type, one strength and one alias. Of more keys
    than `most` the strong ones stay, then the frequent and the long ones."""
    rows: list[tuple[str, int, int]] = []
    named: dict[str, _Named] = {}
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
        name = named.setdefault(key, _Named())
        name.count += 1
        name.strong |= strong
        name.kinds[kind] += kind != "other"
        rows.append((key, start, end))
    if len(named) > most(text):
        best = sorted(named, key=lambda key: (not named[key].strong, -named[key].count, -len(key), key))
        named = {key: named[key] for key in best[: most(text)]}
    type_of = {
        key: min(name.kinds, key=lambda kind: (-name.kinds[kind], kind))
        for key, name in named.items()
        if name.kinds.total()
    }
    for key in named.keys() - type_of.keys():  # Alex Ferguson, whom the text calls Mr Ferguson
        if type_of.get(key.rpartition(" ")[2]) == "person":
            type_of[key] = "person"
    alias_of = {
        normalise_name(text[slice(*short)]): normalise_name(text[slice(*long)]) for short, long in introduced.items()
    }
    capitals = {key for key, start, end in rows if text[start:end].rpartition(" ")[2].isupper()}
    # What has no type is a person's if none of its words is an everyday one; not in German, whose nouns have capitals.
    rare = () if language == "de" else named.keys() - type_of.keys() - capitals
    people = {key for key in named if type_of.get(key) == "person"} | {
        key
        for key in rare
        if named[key].strong and key.replace(" ", "").isalpha() and not any(map(ordinary, key.split(" ")))
    }
    untold = [key for key in named if type_of.get(key, "person") == "person" and key not in alias_of]
    for short, long in aliases.short_names(untold, people).items():
        alias_of[short] = long
        type_of[long] = type_of[short] = "person"
        named[short].strong |= named[long].strong
    return [
        Mention(key, text[start:end], type_of.get(key, "other"), named[key].strong, start, end, alias_of.get(key, ""))
        for key, start, end in rows
        if key in named
    ]
