"""A question as it is searched for: its terms with their worth, the names in it, and the words of the
corpus that are nearest to words that do not occur."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Container, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import chain
from statistics import median

import pyarrow.compute as pc

from graphrag_mcp.names.extract import extract, terms_of
from graphrag_mcp.query import spelling, summaries
from graphrag_mcp.store.tables import Snapshot, rows_of
from graphrag_mcp.text.spans import Mention
from graphrag_mcp.text.terms import composed, entity_id, is_cjk, normalise_name, query_terms, stop_word, terms

QUERY_CHARACTERS, NAME_CHARACTERS = 20_000, 4_000  # that are read of a question
RARE = 1.6  # a name's term is rare from this multiple of the median worth of a question's terms
QUESTION_WORDS, NAME_WORDS = 40, 6  # of a question that are tried as names; most in one name
SLIP_WORDS = 3  # most in a name that is read with slips: a look costs 20 ms among 100,000 names
NEAR = 0.5  # worth of a word that replaces an unknown one
LOOKED_FOR = 12  # words that are looked for inside of others
FORM = 0.4  # share of a word's own form; the rest goes to its stem, since text holds both
MARKS = "\"'“”‘’«»„.,;:!?¿¡()[]，。？！、；：（）「」『』،؛؟।…"  # around a word of a question

# Hindi and Thai have signs for vowels
_LETTER = r"[^\W_\u0900-\u0963\u0e31-\u0e4e]|[\u0900-\u0963\u0e31-\u0e4e]"
_WORD = re.compile(rf"(?:{_LETTER})+(?:['’.&/+#-]+(?:{_LETTER})+)*")


@dataclass(frozen=True, slots=True)
class Question:
    """What is searched for. `terms`: those that occur in the corpus, with their worth (idf times what
    the question makes of them). `named`: ids that entities of the names have. `rare`: of each name
    that few passages hold, its terms. `near`: words or names of the corpus in place of `unknown` words.
    `summary_terms`: its terms with their worth among the summaries that were written. `vector`:
    float32 bytes."""

    text: str = ""
    names: Sequence[Mention] = ()
    named: Sequence[str] = ()
    terms: Mapping[str, float] = field(default_factory=dict)
    rare: Sequence[Sequence[str]] = ()
    unknown: Sequence[str] = ()
    near: Mapping[str, Sequence[str]] = field(default_factory=dict)
    vector: bytes = b""
    summary_terms: Mapping[str, float] = field(default_factory=dict)


def read(snapshot: Snapshot, text: str, vector: bytes | None = None) -> Question:
    """The question as this corpus understands it; of a text over QUERY_CHARACTERS, its beginning."""
    text = composed(text[:QUERY_CHARACTERS])
    start = text[:NAME_CHARACTERS]
    names, words = extract(start), terms_of(text)
    worth, unknown = term_worth(snapshot, words)
    repeated = Counter(terms(text))  # a long text, such as an issue, repeats what it is about
    worth = {term: idf * (1 + math.log(max(repeated[term], 1))) for term, idf in worth.items()}
    keys = name_keys(start, names)
    named = names_read(snapshot, keys, worth, unknown)
    near, added = in_place_of(snapshot, worth, words, named)
    worth |= added
    least = RARE * median(worth.values()) if worth else 0.0
    forms = [name.form for name in names if name.strong]
    forms += [title for titles in named.values() for title in titles.values()]
    known = ([term for term in terms_of(form) if term in worth] for form in dict.fromkeys(forms))
    rare = [name for name in known if any(worth[term] >= least for term in name)]
    return Question(
        text,
        names,
        list(dict.fromkeys([*chain.from_iterable(named.values()), *map(entity_id, keys)])),
        worth,
        rare,
        unknown,
        near,
        vector or b"",
        worth_among(words, summaries.holding(snapshot, words), summaries.count(snapshot))[0],
    )


def term_worth(snapshot: Snapshot, terms: Sequence[str]) -> tuple[dict[str, float], list[str]]:
    """The terms of a query that occur, with their idf; and those that occur nowhere."""
    if not terms:
        return {}, []
    holding = dict(rows_of(snapshot.by_key("terms", terms, "term", ["term", "passages"])))
    return worth_among(terms, holding, snapshot.manifest.counters.get("passages", 0))


def worth_among(terms: Sequence[str], holding: Mapping[str, int], total: int) -> tuple[dict[str, float], list[str]]:
    """The same among `total` texts, given how many are `holding` each term."""
    worth: dict[str, float] = {}
    unknown: list[str] = []
    for before, term, after in zip(["", *terms], terms, [*terms[1:], ""], strict=False):
        share = 1.0
        stemmed = is_stem(after, term)  # names are stored without stems
        if stemmed:
            share = FORM if after in holding else 1.0
        elif is_stem(term, before):
            share = 1.0 - FORM
        if holding.get(term, 0) > 0:
            worth[term] = share * rarity(total, holding[term])
        elif share >= 0.5 or not stemmed:
            unknown.append(term)
    return worth, unknown


def rarity(total: float, holding: float) -> float:
    """What a term is worth that `holding` of `total` passages hold."""
    return math.log(1 + (total - holding + 0.5) / (holding + 0.5))


def is_stem(term: str, form: str) -> bool:
    """Does `term` look like the stem that follows its form in a list of terms?"""
    shorter = 2 < len(term) <= len(form) and term != form
    return shorter and form.startswith(term[:-1]) and form.isalpha()


def no_form_occurs(word: str, known: Container[str], unknown: Set[str]) -> bool:
    """Was no form of this word found? `unknown` holds a word or its stem."""
    found = telling(terms_of(word))
    return not unknown.isdisjoint(found) and not any(term in known for term in found)


def telling(terms: Sequence[str]) -> Sequence[str]:
    """The terms of a word without single letters, which stand anywhere: the A of A380. All of them
    where no other is left."""
    return [term for term in terms if len(term) > 1 or is_cjk(term)] or terms


def contained(snapshot: Snapshot, words: Sequence[str]) -> set[str]:
    """Those of at most LOOKED_FOR words that a text contains, in any case, though none of its terms is the word: it
    stands inside of another word or of an address."""
    words = words[:LOOKED_FOR]
    if not words:
        return set()
    texts = snapshot.rows("passages", "", ["text"])["text"]
    either = "|".join(map(re.escape, words))
    texts = texts.filter(pc.match_substring_regex(texts, either, ignore_case=True))
    return {word for word in words if pc.any(pc.match_substring(texts, word, ignore_case=True)).as_py()}


def name_keys(query: str, names: Sequence[Mention]) -> list[str]:
    """The keys under which a question may name something: the names found in it, and its runs of up
    to six words. A question is short, so titles that no rule recognises as names ("How to Eat")
    can be tried too."""
    keys = dict.fromkeys(mention.key for mention in names)
    spans = [match.span() for match in _WORD.finditer(query)][:QUESTION_WORDS]
    plain = [query[a:b].islower() and stop_word(query[a:b]) for a, b in spans]
    for first, (start, end) in enumerate(spans):
        if plain[first]:
            continue
        if not stop_word(query[start:end].casefold()):
            keys.setdefault(normalise_name(query[start:end]))
        for last in range(first + 1, min(first + NAME_WORDS, len(spans))):
            if not plain[last]:
                keys.setdefault(normalise_name(query[start : spans[last][1]]))
    return [key for key in keys if key]


def names_read(
    snapshot: Snapshot, keys: Sequence[str], worth: Collection[str], unknown: Sequence[str]
) -> dict[str, dict[str, str]]:
    """For each of these keys that holds a word of which no form occurs, the names that are written like it
    but for a slip in a word, as {id: title}. Keys without such a name are missing, and so are those of
    further words than the first `spelling.UNKNOWN` of which no form occurs."""
    strange, tried = set(unknown), set[str]()
    read: dict[str, list[str]] = {}
    for key in keys:
        words = key.split()
        if not 1 < len(words) <= SLIP_WORDS:
            continue
        missing = {word for word in words if no_form_occurs(word, worth, strange)}
        if missing and len(tried | missing) <= spelling.UNKNOWN:
            tried |= missing
            read[key] = spelling.with_slips(snapshot, key)
    ids = list(dict.fromkeys(chain.from_iterable(read.values())))
    titles = dict(rows_of(snapshot.by_key("entities", ids, "id", ["id", "title"])))
    return {key: {id: titles[id] for id in found} for key, found in read.items() if found}


def in_place_of(
    snapshot: Snapshot, worth: Mapping[str, float], terms: Sequence[str], named: Mapping[str, Mapping[str, str]]
) -> tuple[dict[str, list[str]], dict[str, float]]:
    """What stands for the unknown terms of a question: {unknown term: names or words of the corpus}, and
    what their terms are worth. `named`: of `names_read`. Stems are not replaced by words: so short, they are
    near to too much."""
    total = snapshot.manifest.counters.get("passages", 0)
    near: dict[str, list[str]] = {}
    added: dict[str, float] = {}
    for key, titles in named.items():
        near |= {term: [*titles.values()] for term in terms_of(key) if term not in worth}
        for title in titles.values():
            title_worth, _ = term_worth(snapshot, terms_of(title))
            added |= {term: NEAR * idf for term, idf in title_worth.items() if term not in worth}
    pairs = zip(terms, ["", *terms], strict=False)
    unknown = [term for term, before in pairs if term not in worth and not is_stem(term, before)]
    unknown = [term for term in unknown if term not in near]
    for term, words in spelling.nearest(snapshot, unknown, worth).items():
        forms = Counter[str]()
        for form, passages in words:
            if form not in worth:
                added.setdefault(form, NEAR * rarity(total, passages))
            forms.update({stem: passages for stem in query_terms(form) if stem != form})
        # no stem that stands only where one of these forms does
        near[term] = [form for form, passages in words if passages > forms[form]]
    return near, added
