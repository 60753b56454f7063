"""What is said beside the hits of a search: names and words that occur nowhere or in none of the hits,
and statements of the graph between names of the question."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_mcp.names.extract import terms_of
from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.query import context
from graphrag_mcp.query.candidates import Passage
from graphrag_mcp.query.hits import Source
from graphrag_mcp.query.question import MARKS, QUERY_CHARACTERS, contained, no_form_occurs, telling
from graphrag_mcp.query.rank import Ranking
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.terms import is_cjk, query_terms

CONNECTED = 5  # statements between names of the question
NAMED = 3  # names that the passages shown lack
SUBJECT = 3  # words of a query that asks for a subject
ABSENT = 12  # names and words that occur nowhere
INSTEAD = 6  # words that were looked for in their place


def joined(*sentences: str) -> str:
    """The sentences on one line, without repetitions."""
    return " ".join(dict.fromkeys(filter(None, sentences)))


def length_note(query: str) -> str:
    if len(query) <= QUERY_CHARACTERS:
        return ""
    return f"Only the first {QUERY_CHARACTERS} characters of the query were used."


def connected(sources: Sequence[Source]) -> str:
    """Statements of the graph between two names of the question, the weightiest first; "" for
    none."""
    found: list[str] = []
    for source in sources:
        snapshot, named = source.snapshot, source.found.question.named[:20]
        prefix = f"{source.corpus}/" if source.corpus else ""
        rows = snapshot.by_key("relationships", named, "source_id", ["id", "target_id", "weight"])
        light = rows.filter(pc.is_in(rows["target_id"], pa.array(named, pa.string()))).to_pylist()
        light.sort(key=lambda row: (-row["weight"], row["id"]))
        best = [row["id"] for row in light[:CONNECTED]]
        for alias, said in context.connections(snapshot, best, 200):
            found.append(f"- [{prefix}{alias}] {said}")
    return "\n".join(["Connected:", *found[:CONNECTED], ""]) if found else ""


def absences(sources: Sequence[Source], shown: Sequence[Passage] = ()) -> tuple[str, bool]:
    """What of a question is absent, in one line: from a corpus, and from the passages that are shown for it; and
    do these lack all of its names?"""
    lines = []
    for source in sources:
        text = missing(source.snapshot, source.found)
        lines.append(f"In {source.corpus}: {text[0].lower()}{text[1:]}" if source.corpus and text else text)
    line, without = _not_in(sources, shown)
    return joined(*lines, line), without


def _not_in(sources: Sequence[Source], shown: Sequence[Passage]) -> tuple[str, bool]:
    """`Not in these: 'Howard Flight'.`: rare names of a question of which none of these passages holds all terms,
    at most NAMED; and is that so of all of its names? Such a question finds passages on flights. Names that another
    one stands for, and pairs of Chinese characters, are not missed.

    In batches 3 of 300 questions (HotpotQA, MuSiQue, Chroma) get this line, of 400 that are asked of another set 81;
    84 of these have no name in a passage. With all words of a question 194 of the 300 had it ('wrote', 'many')."""
    known = {term for source in sources for term in source.found.terms}
    unknown = {term for source in sources for term in source.found.question.unknown} - known
    near = {term for source in sources for term in source.found.question.near}
    rare = [list(terms) for source in sources for terms in source.found.question.rare]
    names = {name.form for source in sources for name in source.found.names if name.strong}
    held = [f" {passage.terms} " for passage in shown]
    absent: list[str] = []
    for form in sorted(names):
        terms = terms_of(form)
        of_form = [term for term in terms if term in known]
        nowhere = not unknown.isdisjoint(terms)
        counts = nowhere or of_form in rare
        missed = nowhere or not any(all(f" {term} " in terms for term in of_form) for terms in held)
        if counts and missed and near.isdisjoint(terms) and not is_cjk(form[0]):
            absent.append(form)
    told = [form for form in absent if unknown.isdisjoint(terms_of(form))]  # others are nowhere
    listed = ", ".join(repr(one_line(form, 40)) for form in told[:NAMED])
    # The passages may call a name of one word by another: Biden, the President.
    several = all(len(name.split()) > 1 for name in names)
    without = bool(shown) and several and 0 < len(absent) == len(names)
    return f"Not in these: {listed}." if shown and told else "", without


# ---- words of the question that do not occur -----------------------------------------------------

# Words that ask name nothing that could be missing.
_ASKING = re.compile(".*(?:[哪谁誰几幾何]|什么|什麼|怎)|어디|누구|누가|무엇|언제|어떻|얼마|어떤|무슨|몇|왜$")
_QUOTED = re.compile(r"[\"“«]([^\"“”«»]{1,200})[\"”»]")


def missing(snapshot: Snapshot, found: Ranking) -> str:
    """A sentence on names, numbers and quoted words of the question that no text contains: an agent should
    know before it trusts the context. Words that were looked for in their place are always named, and those
    that stand only inside of other words or of addresses, which search_text finds."""
    if not found.question.unknown:
        return ""
    names = [
        mention.form
        for mention in found.names
        if mention.strong or (is_cjk(mention.form[0]) and not _ASKING.match(mention.form))
    ]
    absent = [form for form in names if _absent(form, found)]
    cjk = [form for form in absent if is_cjk(form[0])]  # 동생은 is 동생
    words = [word for word in _absent_words(found) if not any(form in word for form in cjk)]
    absent += [word for word in words if not any(word in form for form in absent)]
    instead = dict.fromkeys(near for nearest in found.question.near.values() for near in nearest)
    return joined(not_there([snapshot], absent), listed("Looked for instead", [*instead][:INSTEAD]))


def not_there(snapshots: Sequence[Snapshot], words: Sequence[str]) -> str:
    """Which of these words, of which no term occurs, no text contains, and which stand inside of other words."""
    words = list(dict.fromkeys(words))[:ABSENT]
    inside = set[str]().union(*(contained(snapshot, words) for snapshot in snapshots))
    within = "Only inside of other words or addresses, where search_text finds it in quotes"
    return joined(
        listed("Nowhere in this corpus", [word for word in words if word not in inside]),
        listed(within, [word for word in words if word in inside]),
    )


def listed(what: str, words: Sequence[str]) -> str:
    """`Nowhere in this corpus: 'Orl', 'Venn'.`; "" for no words."""
    more = f" and {len(words) - ABSENT} more" if len(words) > ABSENT else ""
    shown = ", ".join(repr(one_line(word, 80)) for word in words[:ABSENT])
    return f"{what}: {shown}{more}." if words else ""


def _absent_words(found: Ranking) -> list[str]:
    """Numbers and quoted words of the question that occur nowhere; where most of the question is known,
    since in a language that the corpus does not hold all would be, capitalised ones too, and all of a
    subject in a few words (libel case), which holds none that ask."""
    unknown = set(found.question.unknown)
    every = [(word, word.strip(MARKS)) for word in found.question.text.split()]
    quoted = set(re.findall(r"\w+", " ".join(_QUOTED.findall(found.question.text))))
    known = len(found.question.unknown) <= len(found.terms)
    first = every[0][1] if every else ""
    subject = len(every) <= SUBJECT and not found.question.text.rstrip().endswith(("?", "？"))
    return [
        bare
        for word, bare in every
        if bare
        and not _ASKING.match(bare)
        and no_form_occurs(word, found.terms, unknown)
        and (
            any(map(str.isdigit, bare))
            or bare in quoted
            or (known and (subject or bare[0].isupper() and bare != first))
        )
    ]


def _absent(form: str, found: Ranking) -> bool:
    words = telling(query_terms(form))
    return bool(words) and found.terms.keys().isdisjoint(words)
