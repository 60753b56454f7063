"""One sentence from each of many places, for questions whose answer is spread over a corpus.

Takes hits in the order of rank; adds a line for each place that has something to say on the
question. Relevance ends the list, not a number. Where the question names a person, only places that
name the person count, and the name is no word to match.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.query.hits import Hit, Page, clipped
from graphrag_mcp.text.prose import says_something, substance
from graphrag_mcp.text.terms import query_terms, sentences, terms
from graphrag_mcp.types import Mention

MOST = 40  # places
READ = 160  # hits that are looked at
LEAST = 0.35  # of the worth of the best sentence
LENGTH = 260  # characters of a sentence

Worth = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Line:
    """One sentence with the hit that it stands in, and its share of the best one's worth."""

    hit: Hit
    text: str
    value: float


def lines(hits: Sequence[Hit], worth: Worth, names: Sequence[Mention] = ()) -> list[Line]:
    """The sentences that are relevant, best first; none twice."""
    asked, found = without_people(worth, names), []
    for hit in hits[:READ]:
        if not names_all(hit, names):
            continue
        best = _best(hit, asked)
        if best is not None:
            found.append(best)
    top = max((one.value for one in found), default=0.0)
    kept: dict[str, Line] = {}
    for one in sorted(found, key=lambda one: (-round(one.value, 6), -one.hit.score)):
        if one.value < LEAST * top or len(kept) == MOST:
            break
        kept.setdefault(" ".join(terms(one.text)), one)
    return list(kept.values())


def without_people(worth: Worth, names: Sequence[Mention]) -> dict[str, float]:
    """The worth of the terms that do not name a person; of all where none is left."""
    own = {term for one in names if one.type == "person" for term in query_terms(one.form)}
    own |= {part for term in worth if "-" in term for part in term.split("-")}  # counted with it
    return {term: value for term, value in worth.items() if term not in own} or dict(worth)


def names_all(hit: Hit, names: Sequence[Mention]) -> bool:
    """Does the passage, or its title, name all people among these? One word of a name is enough, the
    last or the first."""
    text = f"{hit.title}\n{hit.body}".casefold()
    people = [one.form.casefold().split() for one in names if one.type == "person"]
    return all(not words or words[-1] in text or words[0] in text for words in people)


def shortened(line: Line, worth: Worth = {}) -> Line:  # noqa: B006 - never changed
    """The line with at most LENGTH characters of its sentence."""
    said = line.text
    text = said if len(said) <= LENGTH else clipped(one_line(said, 4_000), worth, LENGTH)
    return replace(line, text=one_line(text, LENGTH + 2))


def _best(hit: Hit, worth: Worth) -> Line | None:
    """The sentence of a passage that says most on the question: words of the question, and something
    that only this sentence knows (names, figures)."""
    best: tuple[float, str] | None = None
    whole = sum(worth.values()) or 1.0
    for start, end in sentences(hit.body):
        said = hit.body[start:end]
        if not says_something(said):
            continue
        value = math.fsum(worth.get(term, 0.0) for term in set(terms(said))) / whole
        if value <= 0:
            continue
        words = said.split()
        facts = sum(any(map(str.isdigit, word)) or word[:1].isupper() for word in words[1:])
        value *= (1 + 0.1 * min(facts, 4) / 4) * (0.5 + 0.5 * substance(said))
        if best is None or value > best[0] + 1e-9:
            best = value, said
    if best is None:
        return None
    value, said = best
    return shortened(Line(hit, said, value * (0.5 + 0.5 * hit.score)), worth)


def show(page: Page, found: Sequence[Line], by_time: bool = False, head: str = "") -> int:
    """Add the lines to the page, in order of worth or of time, the first one under `head`: how many
    had room."""
    order = sorted(found, key=_when) if by_time else list(found)
    last = ""
    added = 0
    for one in order:
        hit = one.hit
        title = "" if hit.part_of == last else f"{hit.name()}: "
        date = f"{hit.date} " if hit.date else ""
        above = f"{head}\n" if head and not added else ""
        said = [hit.times(one.text), f"(why: {hit.why})" if hit.why else ""]
        text = " ".join([f"- [{hit.id}] {date}{title}{one.text}", *filter(None, said)])
        if not page.add(f"{above}{text}", hit.sources()):
            break
        last = hit.part_of
        added += 1
    return added


def _when(line: Line) -> tuple[str, str, int]:
    """Dated ones first, oldest first; within a document in the order of the text."""
    return line.hit.date or "9999", line.hit.uri, line.hit.span[0]
