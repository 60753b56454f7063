"""The renderer of searches: hits and lines become blocks of a page (packing/page.py).

Passages are shown in full, best first, as long as they are strong and have room; weaker ones as one
line each; what repeats another is named with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from graphrag_mcp import plugins
from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.packing.page import Page
from graphrag_mcp.query import hits
from graphrag_mcp.query.hits import STRONG, Hit, Worth
from graphrag_mcp.query.plugin import defines
from graphrag_mcp.query.survey import Line, Survey
from graphrag_mcp.text import quote
from graphrag_mcp.text.terms import terms
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.trust.fencing import quoted

DEFAULT_TOKENS = 1_200  # weaker hits are shown in full from more tokens on
# Share of the best score. Of the passages at STRONG (0.6) and above, 3.7 (HotpotQA), 6 (Chroma) and 2
# (CMRC) are shown on average, with 90 %, 100 % and 100 % of the documents that answer; between 0.3
# and 0.6 lie nearly all of the others.
WEAK = 0.3
LINE = 160  # characters of a weak hit's sentence
NAME = 24  # characters of the name of a document that stands above
AS_THEY_ARE, CUT = 5, 120  # lines of a text that is shown as it is; characters of one
MOST_WEAK = 3  # eight took a seventh of the characters and held none of the evidence
ALIKE, SHINGLE = 0.8, 5  # share of common runs from which two passages say the same; words of a run
HEAD, PART = 30, 15  # tokens that a head may take; of a text, below which it is shown as a line
FEW = 10  # weaker lines behind those on the question; a cursor leads to more
BRIEF, TITLE = 60, 60  # characters of a weaker line and of the name before it
WEAKER = "Weaker:"  # stands above what is less on the question than the lines before it
WINDOW = 220  # tokens of a passage where one result answers several questions


@dataclass(frozen=True, slots=True)
class Form:
    """How hits are shown. `breadth` is passages or sentences, `sort` is rank or time. `literals`
    must be seen in the text that is shown. If `every`, all hits are shown, not only those near
    the best hit. `window` is the largest number of tokens of a passage; 0 for as many as have
    room."""

    breadth: str = "passages"
    sort: str = "rank"
    literals: Sequence[str] = ()
    every: bool = False
    window: int = 0


@dataclass(frozen=True, slots=True)
class Limits:
    """How many hits are shown in full (None for as many as have room), how many as lines, and the
    score from which a hit is shown at all. `generous`: weaker hits come in full as well."""

    most: int | None = None
    lines: int = MOST_WEAK
    floor: float = 0.0
    generous: bool = False


# ---- passages ----------------------------------------------------------------------------------------


def show(page: Page, found: Sequence[Hit], worth: Worth, form: Form, limits: Limits) -> int:
    """Add hits to the page, best first; gives the number of hits that were shown or named. At least
    one hit is shown, however little room there is. With `form.every` all are shown: the best of
    them in full in half of the room; others, and hits of plug-ins that define no literal, as
    lines."""
    if not found:
        return 0
    candidates = found if form.every else [hit for hit in found if hit.body] or found
    top = candidates[0].score or 1.0
    kept = _without_repeats(page, candidates, limits.floor)
    strong = [
        hit for hit in kept if hit.score >= (limits.floor if limits.generous else STRONG * top)
    ]
    if form.every:
        strong = [
            hit
            for hit in strong
            if not plugins.verbatim(hit.uri) or defines(hit.raw, form.literals)
        ]
        lines, reserved = len(found), page.room // 2
        if kept and kept[0] not in strong:  # or the next page begins with it again
            hit_line = line_of(kept[0], worth, form.literals)
            shorter = (hit_line, hit_line.partition("\n")[0], f"- [{kept[0].id}]")
            cited = kept[0].cited(sentence_of(kept[0], worth, form.literals))
            if any(page.add(text, cited) for text in shorter):
                page.full.add(kept[0].id)
    else:
        strong, lines = strong[: limits.most], limits.lines
        reserved = min(page.room // 6, 40 * min(lines, len(kept) - len(strong)))
    _in_full(page, strong, worth, form, reserved)
    left = [hit for hit in kept if hit.id not in page.full]
    for number, hit in enumerate(left):
        if not page.told.isdisjoint((hit.document, hit.summary)):
            hit.summary = ""  # its best sentence says more
        cited = hit.cited(sentence_of(hit, worth, form.literals)) if number < lines else ()
        unit = _unit(hit.id)
        days = {other.said for id, other in page.citations.items() if _unit(id) == unit}
        if number == lines or not page.add(line_of(hit, worth, form.literals, days), cited):
            return next(at for at, other in enumerate(found) if other is hit)
        page.told |= {hit.summary} - {""}
    below = (at for at, hit in enumerate(found) if hit.score < limits.floor and at)
    return next(below, len(found))


def _in_full(page: Page, strong: Sequence[Hit], worth: Worth, form: Form, reserved: int) -> None:
    """Add as many hits as have room beside the tokens that are `reserved` for lines: whole ones, and
    a part of the last. The first one is shown in whatever room there is."""
    for hit in strong:
        room = page.room - reserved
        if room < HEAD + PART:
            break
        size = min(room - HEAD, form.window or room)
        body = quote.excerpt(hit.body, worth, size, form.literals)
        beside = filter(None, (hit.times.note(body, date=hit.date), hit.why()))
        block = "\n".join([head_of(hit, body), quoted(body), *beside]) + "\n"
        if count_tokens(block) + 2 > room or not page.add(block, hit.cited(body)):
            break
        page.full.add(hit.id)
        page.told.add(hit.document)
        if body != hit.body and not form.window:
            break  # parts of many passages hold less of the evidence than a few whole ones
    if strong and not page.citations:
        hit = strong[0]
        head = f"[{hit.id}]\n"
        body = quote.excerpt(hit.body, worth, page.room - count_tokens(head) - 4, form.literals)
        if page.add(head + quoted(body), hit.cited(body)):
            page.full.add(hit.id)


def head_of(hit: Hit, body: str) -> str:
    """`[t33.2] Title 2024-05-03`; a text that is shown as it is with its lines. `body`: what is shown of
    the text."""
    name = hit.called(body)
    if plugins.verbatim(hit.uri) and hit.citation.line_start:
        name = f"{hit.uri}:{hit.citation.line_start}-{hit.citation.line_end}"
    whole = "whole document" if hit.whole and body == hit.body else ""
    begins = hit.opening(body)
    return _joined(f"[{hit.id}]", name, begins, hit.day, hit.validity, whole, _also(hit))


def line_of(
    hit: Hit, worth: Worth, literals: Sequence[str] = (), days: Collection[str] = ()
) -> str:
    """A weak hit: id, name and its best sentence for the question, or what was written of its text; of
    a text that is shown as it is, its line. `days`: as in `line`."""
    if plugins.verbatim(hit.uri):
        return "\n".join(lines_as_they_are(hit, worth, literals))
    return line(hit, sentence_of(hit, worth, literals), days)


def _unit(id: str) -> str:
    """`t33` for the passage `t33.2`."""
    unit, _, part = id.rpartition(".")
    return unit if part.isdecimal() else id


def sentence_of(hit: Hit, worth: Worth, literals: Sequence[str] = ()) -> str:
    """What a line shows of a hit; of a text that is shown as it is all of its lines."""
    if plugins.verbatim(hit.uri):
        return hit.raw
    if hit.summary and not literals:
        return hit.summary
    best = quote.best(hit.body, worth, literals=literals)
    sentence = quote.with_speaker(hit.body, best).text if best else ""
    cut = {literal.casefold(): 9.0 for literal in literals} or worth
    return quote.clipped(sentence, cut, LINE)


def line(hit: Hit, text: str, days: Collection[str] = ()) -> str:
    """`- [t12.3] 2024-05-03 Title: a sentence`, without a title that the sentence begins with. `days`
    on which the passages of its text unit that are shown above were said ("" for the day of the document):
    beside such a passage it has no title, since its id tells of which document it is, and no date that all
    of them have."""
    name, rest = hit.name, text[len(hit.name) :][:1]
    repeated = text.casefold().startswith(name.casefold()) and not rest.isalnum()
    known = _joined(hit.called(text), hit.opening(text))
    if days:
        known = hit.where(text) if hit.place(text) else ""
    elif repeated:
        known = hit.where(text)
    name = f"{known}:".removeprefix(":")
    note = hit.times.note(text, date=hit.date)
    if days:
        date = "" if set(days) == {hit.citation.said} else hit.date
    else:
        date = hit.day
    return _joined(f"- [{hit.id}]", date, name, text, note, hit.validity, _also(hit), hit.why())


def brief(hit: Hit, text: str) -> str:
    """`- [t12] notes.txt: How its text begins…`: the line of a weaker hit, from which a reader tells what
    its document is about; beside a title, or in a long document, the first words of the text."""
    begins = hit.begins or one_line(text, BRIEF)
    return _joined(f"- [{hit.id}]", hit.day, f"{one_line(hit.called(), TITLE)}:", begins)


def _also(hit: Hit) -> str:
    more = f" and {len(hit.also) - 4} more" if len(hit.also) > 4 else ""
    return f"(also {', '.join(hit.also[:4])}{more})" if hit.also else ""


def _joined(*parts: str) -> str:
    return " ".join(filter(None, parts))


def _without_repeats(page: Page, found: Sequence[Hit], floor: float) -> list[Hit]:
    """Relevant hits, without those that repeat another, which are named with it."""
    kept: dict[str, Hit] = {}
    for at, hit in enumerate(found):
        if hit.score < floor and at:
            break
        if hit.id in page.full:
            continue
        runs = runs_of(hit.body)
        others = (  # a note and its sources never stand for each other
            (id, other)
            for id, other in page.seen.items()
            if id != hit.id and not hit.note and (id in page.full or id in kept)
        )
        same = next((id for id, other in others if alike(runs, other)), "")
        if not same:
            page.seen |= {} if hit.note else {hit.id: runs}
            kept[hit.id] = hit
        elif same in kept and hit.id not in kept[same].also:
            kept[same].also.append(hit.id)
    return list(kept.values())


def runs_of(text: str) -> frozenset[int]:
    """Hashes of all runs of five words (of five characters where words have no blanks)."""
    words = [word for word in text.casefold().split() if any(map(str.isalnum, word))]
    if len(words) < len(text) / 30:
        words = [ch for ch in text if ch.isalnum()]
    starts = range(max(len(words) - SHINGLE + 1, 1))
    return frozenset(hash(tuple(words[at : at + SHINGLE])) for at in starts)


def alike(runs: frozenset[int], other: frozenset[int]) -> bool:
    return len(runs & other) >= ALIKE * len(runs | other)


# ---- lines -------------------------------------------------------------------------------------------


def show_survey(
    page: Page,
    surveyed: Survey,
    offset: int = 0,
    by_time: bool = False,
    topic_of: Callable[[Line], str] | None = None,
) -> int:
    """Add the lines of a survey from `offset` on: those on the question in order of worth, of time or of
    topics, then FEW weaker ones, by their first words where not all have room. Gives how many lines
    that are."""
    on_it = surveyed.lines[offset : max(surveyed.on_it, offset)]
    if topic_of is None:
        taken = show_lines(page, on_it, by_time)
    else:
        taken = show_by_topic(page, on_it, topic_of)
    if taken < len(on_it):
        return taken
    weaker = surveyed.lines[offset + taken :]
    weaker = weaker[:FEW] if on_it else weaker
    texts = [line(each.hit, each.told) for each in weaker]
    if sum(map(count_tokens, texts)) > page.room:
        texts = [brief(each.hit, each.told) for each in weaker]
    for added, (each, text) in enumerate(zip(weaker, texts, strict=True)):
        if not page.add(f"{WEAKER}\n{text}" if not added else text, each.hit.cited("")):
            return taken + added
    return taken + len(weaker)


def show_lines(page: Page, found: Sequence[Line], by_time: bool = False, indent: str = "") -> int:
    """Add the lines to the page, in order of worth or of time: how many had room. The first line of a page
    is cut to its room; from the second line of a document on its name is short."""
    order, named = found, set[str]()
    if by_time:  # of the best lines that have room
        prices = accumulate(
            count_tokens(indent + line(sentence.hit, sentence.text)) + 2 for sentence in found
        )
        most = max(sum(price <= page.room for price in prices), 1)
        order = sorted(found[:most], key=lambda sentence: hits.by_time(sentence.hit))
    for added, sentence in enumerate(order):
        hit = sentence.hit
        if hit.document in named:
            hit = replace(hit, name=one_line(hit.name, NAME))
        named.add(hit.document)
        text = indent + line(hit, sentence.text)
        if not page.add(text, sentence.hit.cited(sentence.text)):
            return added + _add_cut(page, sentence.hit, sentence.text)
    return len(order)


def _add_cut(page: Page, hit: Hit, text: str) -> bool:
    """Add the first line of a page, cut to its room."""
    if page.citations or page.room < PART:
        return False
    short = quote.cut(text, {}, page.room - HEAD)
    return page.add(f"- [{hit.id}] {short}", hit.cited(short))


def show_by_topic(page: Page, found: Sequence[Line], topic_of: Callable[[Line], str]) -> int:
    """Add as many of these lines as have room, best first; gives their number. They stand below the
    heading of their topic, in the order of the best line of each topic; `topic_of` gives the
    heading, "" for none. A line shows the summary of its text, if there is a summary."""
    shown: dict[str, list[tuple[str, Line]]] = {}
    room, characters = page.room, page.characters
    for sentence in found:
        topic, bullet = topic_of(sentence), line(sentence.hit, sentence.told)
        heads = [f"\n{topic}"] if topic and topic not in shown else []
        room -= sum(count_tokens(text) + 2 for text in (bullet, *heads))
        characters -= sum(len(text) + 2 for text in (bullet, *heads))
        if room < 0 or characters < 0:
            break
        shown.setdefault(topic, []).append((bullet, sentence))
    for topic, pairs in shown.items():
        if topic:
            page.add(f"\n{topic}" if page.blocks else topic)
        for bullet, sentence in pairs:
            page.add(bullet, sentence.hit.cited(sentence.told))
    taken = sum(map(len, shown.values()))
    if not taken and found:
        return int(_add_cut(page, found[0].hit, found[0].told))
    return taken


# ---- texts that are shown as they are ------------------------------------------------------------------


def lines_as_they_are(hit: Hit, worth: Worth, literals: Sequence[str]) -> list[str]:
    """`- [t12.3] path/file.py:40: line` for each line that contains a literal; if none does, for
    the best line. Of several lines only the first has the id."""
    rows = hit.raw.splitlines() or [""]
    small = [literal.casefold() for literal in literals]
    at = [n for n, row in enumerate(rows) if any(literal in row for literal in literals)]
    at = at or [n for n, row in enumerate(rows) if any(each in row.casefold() for each in small)]
    if not at:
        values = [math.fsum(worth.get(term, 0.0) for term in set(terms(row))) for row in rows]
        at = [values.index(max(values))]
    first, uri = hit.citation.line_start or 1, one_line(hit.uri, 300)
    lines = [f"{uri}:{first + n}: {one_line(rows[n], CUT)}" for n in at[:AS_THEY_ARE]]
    more = [f"  {len(at) - AS_THEY_ARE} more lines in this passage"]
    more = more if len(at) > AS_THEY_ARE else []
    return [f"- [{hit.id}] {lines[0]}", *(f"  {text}" for text in lines[1:]), *more]


def narrowed(form: Form) -> Form:
    """The form of each result if several questions are asked at once."""
    return replace(form, window=WINDOW)
