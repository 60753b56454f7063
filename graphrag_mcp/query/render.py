"""The renderer of searches: hits and lines become blocks of a page (packing/page.py).

Passages are shown in full, best first, as long as they are strong and have room; weaker ones as one
line each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from graphrag_mcp import plugins
from graphrag_mcp.packing.budget import cut_line, one_line
from graphrag_mcp.packing.page import Page
from graphrag_mcp.query import hits
from graphrag_mcp.query.hits import STRONG, Hit, Worth
from graphrag_mcp.query.plugin import defines
from graphrag_mcp.query.survey import Survey
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
HEAD, PART = 30, 15  # tokens that a head may take; of a text, below which it is shown as a line
WEAKER = "Weaker:"  # stands above what is less on the question than the lines before it
ALSO = 4  # ids of other versions that stand behind a line
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
    """Add hits to the page, best first; gives how many were shown, behind which the next page goes on. At least
    one hit is shown, however little room there is. With `form.every` all are shown: the best of them in full in half
    of the room; others, and hits of plug-ins that define no literal, as lines."""
    if not found:
        return 0
    candidates = found if form.every else [hit for hit in found if hit.body] or found
    top = candidates[0].score or 1.0
    kept = [
        hit for at, hit in enumerate(candidates) if (hit.score >= limits.floor or not at) and hit.id not in page.full
    ]
    strong = [hit for hit in kept if hit.score >= (limits.floor if limits.generous else STRONG * top)]
    lines, reserved = limits.lines, min(page.room // 6, 40 * min(limits.lines, len(kept) - len(strong)))
    if form.every:
        strong = [hit for hit in strong if not plugins.verbatim(hit.uri) or defines(hit.raw, form.literals)]
        lines, reserved = len(found), page.room // 2
    in_full = {hit.id for hit in strong[: limits.most]}
    weaker = bool(limits.most)  # then good hits stand as lines too, and weaker ones are to be told from them
    versions: list[set[str]] = []  # the words of each hit that is shown in full
    for hit in kept:
        words = set(terms(hit.body))
        is_version = not hit.note and any(quote.says_the_same(words, other) for other in versions)
        if hit.id in in_full and not is_version:  # of another version of the same text a line is enough
            if shown := _in_full(page, hit, worth, form, page.room - reserved):
                versions.append(words)
            # Parts of many passages hold less of the evidence than a few whole ones.
            in_full = in_full if shown == hit.body or (shown and form.window) else set()
            if shown:
                continue
        heading = f"{WEAKER}\n" if weaker and hit.score < STRONG * top else ""
        if not (lines or is_version) or not _in_line(page, hit, worth, form.literals, heading):
            return next(at for at, other in enumerate(found) if other is hit)
        lines, weaker = lines - (not is_version), weaker and not heading
    below = (at for at, hit in enumerate(found) if hit.score < limits.floor and at)
    return next(below, len(found))


def _in_full(page: Page, hit: Hit, worth: Worth, form: Form, room: int) -> str:
    """Add a hit in at most `room` tokens, the first one of a page in whatever room there is; gives what is shown of
    its text, "" where it has no room."""
    if room >= HEAD + PART:
        body = quote.excerpt(hit.body, worth, min(room - HEAD, form.window or room), form.literals)
        beside = hit.times.note(body, date=hit.date)
        block = "\n".join(filter(None, [head_of(hit, body), quoted(body), beside])) + "\n"
        if count_tokens(block) + 2 <= room and page.add(block, hit.cited(body)):
            page.full.add(hit.id)
            page.told.add(hit.document)
            return body
    if not page.citations:
        head = f"[{hit.id}]\n"
        body = quote.excerpt(hit.body, worth, page.room - count_tokens(head) - 4, form.literals)
        if page.add(head + quoted(body), hit.cited(body)):
            page.full.add(hit.id)
            return body
    return ""


def _in_line(page: Page, hit: Hit, worth: Worth, literals: Sequence[str], heading: str) -> bool:
    """Add a hit as a line below a heading, the first one of a page as its id where there is no room for more."""
    if not page.told.isdisjoint((hit.document, hit.summary)):
        hit.share = 0.0  # its best sentence says more
    cited = hit.cited(sentence_of(hit, worth, literals))
    above = _unit(hit.id) in map(_unit, page.citations)  # then its id tells of which document it is
    text = line_of(replace(hit, name="", begins="") if above else hit, worth, literals)
    shorter = () if page.citations else (text.partition("\n")[0], f"- [{hit.id}]")
    if not any(page.add(heading + each, cited) for each in (text, *shorter)):
        return False
    page.told |= {hit.summary} - {""}
    return True


def head_of(hit: Hit, body: str) -> str:
    """`[t33.2] Title 2024-05-03`; a text that is shown as it is with its lines. `body`: what is shown of
    the text."""
    name = hit.called(body)
    if plugins.verbatim(hit.uri) and hit.citation.line_start:
        name = f"{hit.uri}:{hit.citation.line_start}-{hit.citation.line_end}"
    whole = "whole document" if hit.whole and body == hit.body else ""
    begins = hit.opening(body)
    return _joined(f"[{hit.id}]", name, begins, hit.day, hit.validity, whole)


def line_of(hit: Hit, worth: Worth, literals: Sequence[str] = ()) -> str:
    """A weak hit: id, name and its best sentence for the question, or what was written of its text; of
    a text that is shown as it is, its line."""
    if plugins.verbatim(hit.uri):
        return "\n".join(lines_as_they_are(hit, worth, literals))
    return line(hit, sentence_of(hit, worth, literals))


def sentence_of(hit: Hit, worth: Worth, literals: Sequence[str] = ()) -> str:
    """What a line shows of a hit; of a text that is shown as it is all of its lines."""
    if plugins.verbatim(hit.uri):
        return hit.raw
    if hit.summary and not literals:
        return hit.summary
    return quote.best_line(hit.body, worth, LINE, literals=literals)


def line(hit: Hit, text: str) -> str:
    """`- [t12.3] 2024-05-03 Title: a sentence`, without a title that the sentence begins with."""
    name, rest = hit.name, text[len(hit.name) :][:1]
    repeated = text.casefold().startswith(name.casefold()) and not rest.isalnum()
    known = hit.where(text) if repeated else _joined(hit.called(text), hit.opening(text))
    note = hit.times.note(text, date=hit.date)
    name = f"{known}:".removeprefix(":")
    more = f" and {len(hit.also) - ALSO} more" if len(hit.also) > ALSO else ""
    also = f"(also {', '.join(hit.also[:ALSO])}{more})" if hit.also else ""
    return _joined(f"- [{hit.id}]", hit.day, name, text, note, hit.validity, also)


def _unit(id: str) -> str:
    """`t33` for the passage `t33.2`."""
    unit, _, part = id.rpartition(".")
    return unit if part.isdecimal() else id


def _joined(*parts: str) -> str:
    return " ".join(filter(None, parts))


# ---- lines -------------------------------------------------------------------------------------------


def show_survey(page: Page, surveyed: Survey, offset: int = 0, by_time: bool = False, told: bool = False) -> int:
    """Add the lines of a survey from `offset` on: those on the question in order of worth or of time, then
    the weaker ones. With `told` a line has the summary of its text, if there is
    one. Gives how many lines had room."""
    on_it = surveyed.lines[offset : max(surveyed.on_it, offset)]
    texts = [each.told if told else each.text for each in on_it]
    taken = _show_lines(page, [*zip((each.hit for each in on_it), texts, strict=True)], by_time)
    if taken < len(on_it):
        return taken
    for number, each in enumerate(surveyed.lines[offset + taken :]):
        text = line(each.hit, each.told) if number else f"{WEAKER}\n{line(each.hit, each.told)}"
        if not page.add(text, each.hit.cited(each.told)):
            return taken + number or _add_cut(page, text, each.hit)
    return len(surveyed.lines) - offset


def _show_lines(page: Page, found: Sequence[tuple[Hit, str]], by_time: bool) -> int:
    """Add hits with their texts to the page, in order of worth or of time: how many had room. The first
    line of a page is cut to its room; from the second line of a document on its name is short."""
    if by_time:  # of the best lines that have room
        prices = accumulate(count_tokens(line(hit, text)) + 2 for hit, text in found)
        most = max(sum(price <= page.room for price in prices), 1)
        found = sorted(found[:most], key=lambda pair: hits.by_time(pair[0]))
    named = set[str]()
    for added, (hit, text) in enumerate(found):
        short = replace(hit, name=one_line(hit.name, NAME)) if hit.document in named else hit
        named.add(hit.document)
        if not page.add(line(short, text), hit.cited(text)):
            return added or _add_cut(page, line(short, text), hit)
    return len(found)


def _add_cut(page: Page, text: str, hit: Hit) -> int:
    """Add the beginning of a line to a page that has no line yet, so that every page of a result goes on; 0 where it has
    other texts, and the next page will have room."""
    if page.citations:
        return 0
    page.room = max(page.room, HEAD)
    return int(page.add(cut_line(text, page.room - 2), hit.cited()))


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
