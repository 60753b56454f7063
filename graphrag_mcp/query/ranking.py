"""The worth of words: terms and names of a question, BM25 over the counters of one generation.
Scores depend on what the index holds, not on its history."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from graphrag_mcp.names.cjk import other_particles
from graphrag_mcp.names.extract import terms_of
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.terms import is_cjk, normalise_name, query_terms, stop_word
from graphrag_mcp.types import Mention

K1, B = 1.2, 0.75  # BM25
QUESTION_WORDS = 40  # of a question that are tried as names
# Hindi and Thai have signs for vowels
_LETTER = r"[^\W_\u0900-\u0963\u0e31-\u0e4e]|[\u0900-\u0963\u0e31-\u0e4e]"
_WORD = re.compile(rf"(?:{_LETTER})+(?:['’.&/+#-]+(?:{_LETTER})+)*")


@dataclass(frozen=True, slots=True)
class Weights:
    """Shares of the parts; text itself counts 1, together with the vectors where there are any."""

    # of meaning where there are vectors and they bear out the words; the rest goes to the words
    vector: float = 0.6
    entity: float = 0.3  # of an entity's meaning, beside 1 for its name
    rerank: float = 0.7  # of a reranker's opinion; the rest goes to the order it was given
    keyword: float = (
        0.5  # of a word that only a keyword holds, beside a question that names something
    )
    name: float = 1.75  # x the worth of a rare term of a name that the question holds
    unnamed: float = 0.65  # x the words of a passage that holds no rare name of the question
    near: float = 0.5  # of a word that stands for one of the question that no passage holds
    form: float = 0.4  # of a word's own form; the rest goes to its stem, since text holds both
    named: float = 0.3  # the document's title is a name of the question
    holds: float = 0.02  # the passage holds a name of the question as a name, not only its words
    link: float = 0.5  # x score of the best passage that names this one's title
    shared: float = (
        0.3  # x score of a high passage of another document with which it shares a rare name
    )
    quiet: float = (
        0.1  # the same where titles are not named in other documents (chats, code, loose notes)
    )
    beside: float = 0.1  # x score of the best passage next to it
    around: float = (
        0.4  # the same x how that one compares to the best of all, but only up to the second best
    )
    defines: float = 0.5  # source code that defines a word of the question
    file: float = (
        0.4  # of source code: x the two next best passages of the same file, by their words
    )
    # x share of the question's 4-letter pieces in it: inflections, compounds, slips of the pen
    subword: float = 0.05
    pieces: int = 40  # passages that are read for pieces
    rare: int = 6  # most candidates that hold a rare name
    sources: int = 10  # passages that links start from
    titles: int = 80  # most titles looked up
    leads: int = 2  # first passages of a linked document
    focus: float = (
        4.0  # power of how a passage's own score compares to the best of its document, for `focus`
    )
    opening: float = (
        0.5  # least share of the first passage of a document, which says what it is about
    )
    # of the best passage's own worth: where the next has no more, nothing is carried past it
    lead: float = 0.8
    crowded: int = 5  # a title of more documents than this links nothing


@dataclass(slots=True)
class Scored:
    """A row id with its fused score (0 to 1), its raw BM25, what brought it in, and its raw cosine
    where it has one."""

    id: str
    score: float
    raw: float
    why: Mapping[str, float]
    similarity: float | None = None


@dataclass(slots=True)
class Passage:
    """A candidate with the parts of its score."""

    id: str
    raw: float
    title_id: str
    document_id: str
    entity_ids: list[str]
    terms: str
    position: int = 0
    parts: dict[str, float] = field(default_factory=dict)

    def score(self) -> float:
        return sum(self.parts.values())


def term_worth(
    snapshot: Snapshot, wanted: Sequence[str], weights: Weights = Weights()
) -> tuple[dict[str, float], list[str]]:
    """The terms of a query that occur, with weight x idf; and those that occur nowhere."""
    if not wanted:
        return {}, []
    known = snapshot.by_key("terms", wanted, "term", ["term", "passages"])
    df = dict(zip(known["term"].to_pylist(), known["passages"].to_pylist(), strict=True))
    total = snapshot.manifest.counters.get("passages", 0)
    worth: dict[str, float] = {}
    unknown: list[str] = []
    for at, term in enumerate(wanted):
        share = 1.0
        if at + 1 < len(wanted) and is_stem(wanted[at + 1], term):  # names are stored without stems
            share = weights.form if wanted[at + 1] in df else 1.0
        elif at and is_stem(term, wanted[at - 1]):
            share = 1.0 - weights.form
        if df.get(term, 0) > 0:
            worth[term] = share * rarity(total, df[term])
        elif share >= 0.5 or not is_stem(wanted[at + 1], term):
            unknown.append(term)
    return worth, unknown


def rarity(total: int, holding: int) -> float:
    """What a term is worth that `holding` of `total` passages hold."""
    return math.log(1 + (total - holding + 0.5) / (holding + 0.5))


def stands_nowhere(word: str, known: Container[str], unknown: Set[str]) -> bool:
    """Has no form of this word been found? Of a word and its stem `unknown` holds one: where that
    is gone, both are."""
    found = terms_of(word)
    return not unknown.isdisjoint(found) and not any(term in known for term in found)


def name_keys(query: str, names: Sequence[Mention]) -> list[str]:
    """Keys under which the question may name something: the names found in it, and its runs of up
    to six words.

    A question is short, so titles that no rule recognises as a name ("How to Eat") can be tried one
    by one."""
    keys = dict.fromkeys(mention.key for mention in names)
    spans = [match.span() for match in _WORD.finditer(query)][:QUESTION_WORDS]
    plain = [query[a:b].islower() and stop_word(query[a:b]) for a, b in spans]
    for first in range(len(spans)):
        for last in range(first, min(first + 6, len(spans))):
            if (
                plain[first]
                or plain[last]
                or (first == last and stop_word(query[slice(*spans[first])].casefold()))
            ):
                continue
            keys.setdefault(normalise_name(query[spans[first][0] : spans[last][1]]))
    return [key for key in keys if key]


def is_stem(term: str, form: str) -> bool:
    """Does `term` look like the stem that follows its form in a list of terms?"""
    return (
        len(term) <= len(form)
        and term != form
        and len(term) > 2
        and form.startswith(term[:-1])
        and form.isalpha()
    )


def inflections(keys: Iterable[str]) -> Callable[[str], bool]:
    """Is a key another form of one of these? For alphabets whose names take endings and have no
    stemmer here: of each word, five letters or more, all but the last two must agree (Северстрой,
    Северстроя)."""
    known = [
        [_bare(word) for word in key.split()]
        for key in keys
        if key[:1] > "\u036f" and not is_cjk(key[0])
    ]
    known = [forms for forms in known if all(forms)]

    def like(key: str) -> bool:
        words = key.split()
        return any(
            len(words) == len(forms)
            and all(map(str.startswith, words, forms))
            and all(len(word) <= len(form) + 4 for word, form in zip(words, forms, strict=True))
            for forms in known
        )

    return like


def _bare(word: str) -> str:
    """The word without a possible ending; "" when too little would be left."""
    return word[: max(len(word) - 2, 4)] if len(word) >= 5 else ""


def bm25(snapshot: Snapshot, worth: Mapping[str, float]) -> Callable[[str, int], float]:
    """Okapi BM25 for terms with their weighted idf, as a function of a row's terms and how many
    they are.

    Counting in the joined string is ten times as fast as splitting it. A word that follows itself
    at once ("Duran Duran") counts as one there, which changes next to nothing."""
    counters = snapshot.manifest.counters
    average = counters.get("passage_terms", 0) / max(counters.get("passages", 0), 1) or 1.0
    needles = [(term, f" {term} ", idf * (K1 + 1)) for term, idf in worth.items()]

    def score(terms: str, length: int) -> float:
        spaced = f" {terms} "
        norm = K1 * (1 - B + B * length / average)
        total = 0.0
        for term, needle, idf in needles:
            if (
                term in terms
            ):  # blanks at both ends make looking for it slow, and most rows do not hold it
                count = spaced.count(needle)
                total += idf * count / (count + norm)
        return total

    return score


def passages_of(rows: Any, score: Callable[[str, int], float]) -> list[Passage]:
    names = ("id", "title_id", "document_id", "entity_ids", "terms", "position", "n_terms")
    return [
        Passage(id, score(terms, length), title_id, document_id, entity_ids, terms, position)
        for id, title_id, document_id, entity_ids, terms, position, length in zip(
            *(rows[name].to_pylist() for name in names), strict=True
        )
    ]


def best(passages: Mapping[str, Passage], count: int) -> list[Passage]:
    placed = sorted([(-passage.score(), id) for id, passage in passages.items()])
    return [passages[id] for _, id in placed[:count]]


def ordered(passages: Iterable[Passage]) -> list[Passage]:
    """All of them, best first."""
    return [
        found[2] for found in sorted([(-round(one.score(), 9), one.id, one) for one in passages])
    ]


def focus(passages: Collection[Passage], part: str, weights: Weights) -> None:
    """What its title brings a document belongs where it speaks of the matter: whole for the passage
    that is best by its words and meaning, hardly any for those far behind it. In a long document
    every passage had all of it, and thirty of one ruler's life stood before the two that were asked
    for: evidence within 2,000 tokens 72 -> 80 for made-up questions over two of 78 long articles,
    97 -> 100 over one; as before where a document is one passage."""
    given = [passage for passage in passages if part in passage.parts]
    own = [passage.parts.get("text", 0.0) + passage.parts.get("vector", 0.0) for passage in given]
    top: dict[str, float] = {}
    for passage, value in zip(given, own, strict=True):
        top[passage.document_id] = max(top.get(passage.document_id, 0.0), value)
    for passage, value in zip(given, own, strict=True):
        if (most := top[passage.document_id]) > 0:
            least = weights.opening if passage.position == 0 else 0.0
            passage.parts[part] *= max((value / most) ** weights.focus, least)


# ---- words that stand nowhere -------------------------------------------------------------------
# Their nearest words, without knowing a language: endings are what is left behind a long common
# beginning (Koivulassa, Koivula), a slip is one letter more, less, other or exchanged with its
# neighbour, or a hyphen. What is found counts less than the word itself, and callers say so.
UNKNOWN = 6  # words of a question whose nearest are looked for
NEAREST = 3  # words of the corpus for one of them
# Shorter words are near to too many: with beginnings of 4 letters and slips in words of 6, `refuse`
# was read as `refuel` and `firing` as `filing`, which cost 0.4 points of the evidence in long
# English text.
# fewest of a word; with two exchanged; of the longer one with one other
LETTERS, EXCHANGED, SLIP_LETTERS = (4, 5, 7)
COMMON = 5, 2 / 3  # beginning that words with other endings share: letters, and of the longer one
ENDING, ADDED = 5, 3  # longest ending of the question's word, and of the other
_PLAIN_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+){0,2}")


def add_nearest(
    snapshot: Snapshot, worth: dict[str, float], wanted: Sequence[str], weights: Weights
) -> dict[str, list[str]]:
    """Add the nearest words to the terms of a question, each at its share of what it is worth;
    gives the words added.

    `wanted` are all terms of the question. Stems are not looked for: so short, they are near to too
    much."""
    total = snapshot.manifest.counters.get("passages", 0)
    pairs = zip(wanted, ["", *wanted], strict=False)
    unknown = [term for term, before in pairs if term not in worth and not is_stem(term, before)]
    found = nearest(snapshot, unknown, worth)
    for near in found.values():
        for term, passages in near:
            worth.setdefault(term, weights.near * rarity(total, passages))
    return {term: _words(near) for term, near in found.items()}


def _words(near: Sequence[tuple[str, int]]) -> list[str]:
    """Of near terms the words, to be told: not the stem (`alexand`) that stands only where one of
    these forms does."""
    forms: dict[str, int] = {}
    for form, passages in near:
        forms.update(
            {stem: forms.get(stem, 0) + passages for stem in query_terms(form) if stem != form}
        )
    return [term for term, passages in near if passages > forms.get(term, 0)]


def nearest(
    snapshot: Snapshot, unknown: Collection[str], known: Collection[str]
) -> dict[str, list[tuple[str, int]]]:
    """{unknown term: [(term, passages that hold it), ...]}, nearest first; without terms that have
    nothing near.

    `known` are the terms of the question that do occur: who has one form of a word needs no other.
    """
    wanted = [term for term in dict.fromkeys(unknown) if _worth_a_look(term, known)][:UNKNOWN]
    found = _with_other_particles(snapshot, unknown)
    if not wanted:
        return found
    starts = dict.fromkeys(start for term in wanted for start in _starts(term))
    ranges = " OR ".join(f"(term >= '{start}' AND term < '{start}\uffff')" for start in starts)
    rows = snapshot.rows("terms", ranges, ["term", "passages"])
    held = [
        row
        for row in zip(*(rows[name].to_pylist() for name in ("term", "passages")), strict=True)
        if row[1] > 0
    ]
    found |= {term: _nearest(term, held) for term in wanted}
    return {term: near for term, near in found.items() if near}


def _with_other_particles(
    snapshot: Snapshot, unknown: Collection[str]
) -> dict[str, list[tuple[str, int]]]:
    """Korean words of one syllable with the particles that they have in the corpus; no ends of
    longer words."""
    longer = [term for term in unknown if len(term) > 2]
    whole = [
        term for term in unknown if len(term) == 2 and not any(term in word for word in longer)
    ]
    forms = {term: other_particles(term) for term in whole[:UNKNOWN]}
    if not any(forms.values()):
        return {}
    rows = snapshot.by_key(
        "terms", [form for some in forms.values() for form in some], "term", ["term", "passages"]
    )
    held = dict(zip(*(rows[name].to_pylist() for name in ("term", "passages")), strict=True))
    return {
        term: near
        for term, some in forms.items()
        if (near := [(one, held[one]) for one in some if held.get(one)])
    }


def _worth_a_look(term: str, known: Collection[str]) -> bool:
    if (
        len(term) < LETTERS
        or not _PLAIN_WORD.fullmatch(term)
        or is_cjk(term[0])
        or is_cjk(term[-1])
    ):
        return False
    return "-" in term or not any(
        len(one) > 2 and (term.startswith(one) or one.startswith(term)) for one in known
    )


def _starts(term: str) -> tuple[str, ...]:
    """What all begin with that can be near."""
    return term[:2], term[0] + "-", term.replace("-", "")[:2]


def _nearest(term: str, held: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    endings: list[tuple[int, int, str, int]] = []
    slips: list[tuple[str, int]] = []
    # A close look takes twenty times as long, and large corpora hold thousands of words with one
    # beginning.
    starts, shortest, longest = _starts(term), len(term) - ENDING, len(term) + ADDED
    for other, passages in [
        row for row in held if row[0].startswith(starts) and shortest <= len(row[0]) <= longest
    ]:
        if not (
            other.startswith(term[: COMMON[0]])
            or "-" in other
            or "-" in term
            or abs(len(other) - len(term)) < 2
        ):
            continue
        if stop_word(other) or not _PLAIN_WORD.fullmatch(other):
            continue
        if (
            "-" in term + other
        ):  # Wi-Fi and wifi, en-tête and entête: made in the index, ranking in English fell
            slips += [(other, passages)] if term.replace("-", "") == other.replace("-", "") else []
            continue
        if (shared := _shared(term, other)) < 2:
            continue
        if _another_ending(len(term), len(other), shared):
            endings.append((-shared, len(other), other, passages))
        elif _one_slip(term, other, shared):
            slips.append((other, passages))
    most = min(endings, default=(0,))[0]
    same = [(other, passages) for shared, _, other, passages in sorted(endings) if shared == most]
    return [*sorted(slips), *same][:NEAREST]


def _another_ending(length: int, other: int, shared: int) -> bool:
    if shared < COMMON[0] or shared < COMMON[1] * max(length, other):
        return False
    return length - shared <= ENDING and other - shared <= ADDED


def _one_slip(term: str, other: str, shared: int) -> bool:
    """Are these the same but for one letter, or for two neighbours exchanged, behind the first
    `shared`?"""
    a, b = term[shared:], other[shared:]
    if len(term) >= EXCHANGED and len(a) > 1 and a[:2] == b[1::-1] and a[2:] == b[2:]:
        return True
    return max(len(term), len(other)) >= SLIP_LETTERS and (
        a[1:] == b[1:] or a[1:] == b or a == b[1:]
    )


def _shared(a: str, b: str) -> int:
    """Letters that both begin with."""
    most = min(len(a), len(b))
    return next((at for at in range(most) if a[at] != b[at]), most)


# ---- where source code defines what a question names ----------------------------------------------
# A definition is said once, its uses everywhere. Whether a passage is source code is told by its
# title, the name of its file, with which its terms begin; in other text nothing is looked for. Of
# 36 questions about the standard library of Python the definition came first in 15, now in 26 (with
# a share of 0.3 in 23, of 0.15 in 19; of the half that nothing was chosen by 9 -> 14); evidence
# within 2,000 tokens 86 -> 89, at 0.5 ms.
SHORTEST = 3  # letters of a name that is defined; `i` and `do` are in too many places
_C = "class struct enum union define typedef namespace"
_SCRIPT = "function class interface type enum const"
_JVM = "class interface enum record object trait fun def type"
# By the last part of a file's name, the words after which a name is defined.
DEFINES = {
    suffix: words.split()
    for suffixes, words in (
        ("py pyi pyx rb cr", "def class module"),
        ("rs", "fn struct enum trait type mod macro_rules const"),
        ("go", "func type const"),
        ("js jsx mjs cjs ts tsx mts vue svelte php", _SCRIPT),
        ("java kt kts scala groovy dart", _JVM),
        ("c h cc cpp cxx hh hpp hxx cs m mm", _C + " interface record"),
        ("swift", "func class struct enum protocol"),
        ("lua sh bash zsh fish awk r jl", "function struct"),
        ("pl pm", "sub package"),
        ("ex exs", "def defp defmodule defmacro"),
        ("erl hs ml fs", "module type data let"),
        ("clj cljs el lisp scm", "defn defun defmacro define defvar"),
        ("sql proto thrift", "table view message service"),
    )
    for suffix in suffixes.split()
}
_DEFINING = frozenset(word for words in DEFINES.values() for word in words)


def give_definitions(
    passages: Sequence[Passage], worth: Mapping[str, float], weights: Weights
) -> None:
    """Give each passage that defines terms of the question a share, whole for the term that is
    worth most."""
    names = _defined(worth)
    top = max(names.values(), default=0.0)
    for passage in passages if weights.defines and top > 0 else ():
        words = _defining(passage)
        if words is None:
            continue
        held = (
            value
            for name, value in names.items()
            if any(f" {word} {name} " in passage.terms for word in words)
        )
        if (most := max(held, default=0.0)) > 0:
            passage.parts["defines"] = weights.defines * most / top


def _defining(passage: Passage) -> list[str] | None:
    """The words that define a name in the language of this source code; None for other text."""
    return DEFINES.get(passage.terms.partition(" ")[0].rpartition(".")[2])


def give_files(passages: Iterable[Passage], weights: Weights) -> None:
    """Give each passage of source code a share of what the two next best passages of its file are
    worth by their words: a file that speaks of the matter in several definitions comes before one
    that repeats its words in one. File @5 of 19 issues 79 -> 95. The best passage of all source
    code keeps its score, so that it stands to prose as before."""
    held: dict[str, list[Passage]] = {}
    for passage in passages:
        if _defining(passage) is not None:
            held.setdefault(passage.document_id, []).append(passage)
    if not held or not weights.file:
        return
    after: list[tuple[Passage, float]] = []
    for some in held.values():
        own = sorted((passage.parts.get("text", 0.0) for passage in some), reverse=True)
        more = weights.file * sum(own[1:3])
        after += [(passage, passage.score() + more) for passage in some]
    scale = max(one.score() for one, _ in after) / (max(score for _, score in after) or 1.0)
    for passage, score in after:
        passage.parts["file"] = scale * score - passage.score()


def _defined(worth: Mapping[str, float]) -> dict[str, float]:
    """The terms that may be names (`struct` is none), each with what its stem, which follows it, is
    worth as well."""
    pairs = pairwise([*worth.items(), ("", 0.0)])
    return {
        term: value + (more if is_stem(after, term) else 0.0)
        for (term, value), (after, more) in pairs
        if len(term) >= SHORTEST and term not in _DEFINING
    }
