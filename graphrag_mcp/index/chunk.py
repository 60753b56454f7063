"""Chunking: a text into text units, and these into passages, as exact character spans.

`text[span.start:span.end]` is never blank, has no outer whitespace and splits no character. The
part of a unit that is not overlap is its core; passages tile the cores.

Boundaries are local. The text is cut into atoms (sentences, the long ones in parts); every start of
an atom has a priority, first by structure (heading, paragraph, line, sentence), then by a hash of
the text around it. An atom starts a unit when no start within WINDOW tokens on either side has a
higher one; what is still too long is divided evenly. So an insertion leaves all units beyond its
neighbourhood as they were.

WINDOW is half the room of a unit. Of 1,201 insertions into real texts 883 changed one unit, 270
two, 48 more. With 0.4 the mean unit was 5-9 % smaller and as stable; with 0.6 it was 3-9 % larger
and less stable."""

from __future__ import annotations

import re
import unicodedata
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING
from zlib import crc32

from graphrag_mcp.text.prose import sentences
from graphrag_mcp.text.spans import Span, Unit
from graphrag_mcp.text.terms import Lines
from graphrag_mcp.text.tokens import count_tokens

if TYPE_CHECKING:  # a process that reads texts needs no settings
    from graphrag_mcp.settings import Settings

WINDOW = 0.5
# A text of so many units is divided evenly: no edit can change more than these, and units are a
# third larger, which is what a model is paid for (446 against 308 units of 106 texts of 2,500
# tokens).
SHORT = 3
LEAST = 40  # tokens of a passage of an outlined text behind which its next part begins one
SLACK = 0.3  # how far from an even division, in parts, a better place is looked for
# characters given to `sentences` at once, so that memory is bounded by the block
_BLOCK = 1_000_000
LETTERS = 6  # characters that a token has at most, as a guess at where to cut a long sentence


@dataclass(frozen=True, slots=True)
class ChunkParams:
    """Sizes in tokens of `text.count_tokens`; `size` includes the overlap with the unit before."""

    size: int = 1200
    overlap: int = 100
    passage_size: int = 400


SIZES = ("chunk_size", "chunk_overlap", "passage_size")


def chunk_params(settings: Settings) -> ChunkParams:
    return ChunkParams(*(getattr(settings, name) for name in SIZES))


class _Atoms:
    """The smallest pieces kept whole: parallel arrays, 28 bytes an atom; tuples would take 300."""

    def __init__(self, outlined: bool, divisions: Collection[int], headers: Collection[int]) -> None:
        self.start, self.end = array("q"), array("q")
        self.total = array("q", [0])  # tokens before atom i
        self.opening = array("q")  # which atoms begin a sentence
        self.priority = array("q")
        self.outlined = outlined  # are its passages the parts of an outline?
        self.divisions = divisions  # offsets at which pages, slides or sheets begin
        self.headers = headers  # offsets at which tables show their header again

    def __len__(self) -> int:
        return len(self.start)

    def tokens(self, first: int, last: int) -> int:
        return self.total[last] - self.total[first]


def chunk(
    text: str,
    params: ChunkParams,
    breaks: Mapping[int, int] | None = None,
    divisions: Collection[int] = (),
    headers: Collection[int] = (),
) -> list[Unit]:
    """The text units of `text` in order; [] for a blank one.

    `breaks`: of a text that a plug-in outlines, offset -> depth (1 for the outermost) of its parts, which
    are headings there; a passage begins at each of them that follows LEAST tokens or more, and at each of
    `divisions`, the offsets at which pages, slides and sheets begin: a citation names one of them. It also
    begins at those of `headers`, at which a table shows its header again, whose rows fit into a passage."""
    lines, units = Lines(text), []
    most = min(params.passage_size, params.size - params.overlap)
    if breaks is None and not divisions and not headers:
        if (tokens := _of_one_passage(text, most)) is not None:
            start, end = len(text) - len(text.lstrip()), len(text.rstrip())
            span = Span(start, end, lines.at(start), lines.at(end - 1))
            return [Unit(0, span, tokens, (span,))]
    atoms = _Atoms(breaks is not None, divisions, headers)
    # Sentences, of an outlined text blocks between blank lines and parts; long ones are cut.
    parts = _sentences(text) if breaks is None else _blocks(text, breaks)
    before = total = 0
    longest = max(8, most // 3)
    for first, last in parts:
        tokens = count_tokens(text[first:last])
        atoms.opening.append(len(atoms))
        whole = [(first, last, tokens)] if tokens <= longest else None
        for at, to, tokens in whole or _parts(text, first, last, longest, most):
            atoms.start.append(at)
            atoms.end.append(to)
            total += tokens + _joint(text, before, at)
            atoms.total.append(total)
            before = to
    if not len(atoms):
        return []
    if breaks is not None:
        _set_outline_priorities(atoms, text, breaks)
    elif total > most:
        _set_priorities(atoms, text)
    for first, last in pairwise(_cuts(atoms, params)):
        units.append(_unit(text, lines, atoms, first, last, len(units), params))
    return units


def _of_one_passage(text: str, most: int) -> int | None:
    """The tokens of a text that fits into one passage of at most `most`; None for another one."""
    bare = text.strip()
    if not bare or len(bare) > LETTERS * most:
        return None
    tokens = count_tokens(bare)
    return tokens if tokens <= most else None


def most_units(text: str, params: ChunkParams) -> int:
    """More units than these cannot be cut from a text. A boundary is at least WINDOW of the size
    away from the next, and a character has at most four tokens."""
    return 1 + 8 * len(text) // max(1, params.size - params.overlap)


def _cuts(atoms: _Atoms, params: ChunkParams) -> list[int]:
    """Indices of the atoms at which cores start, with len(atoms) at the end."""
    whole = atoms.tokens(0, len(atoms))
    if whole <= params.size:
        return [0, len(atoms)]
    by_headers = bool(atoms.headers)
    if whole <= SHORT * params.size:  # a full part has less overlap than others
        return [0, *_divided(atoms, 0, len(atoms), params.size, by_headers)]
    room, cuts = params.size - params.overlap, [0]
    for at in [*_peaks(atoms, int(WINDOW * room)), len(atoms)]:
        cuts += _divided(atoms, cuts[-1], at, room, by_headers)
    return cuts


def _peaks(atoms: _Atoms, window: int) -> list[int]:
    """Atoms with a higher priority than any other start within `window` tokens, on both sides, ends
    of the text included. One pass with a stack: each atom's distance to the nearest one that is at
    least as high."""
    total, priority, count = atoms.total, atoms.priority, len(atoms)
    reach = array("q", bytes(8 * count))
    stack: list[int] = []
    for i in range(count):
        while stack and priority[stack[-1]] <= priority[i]:
            beaten = stack.pop()
            reach[beaten] = min(reach[beaten], total[i] - total[beaten])
        reach[i] = total[i] - total[stack[-1]] if stack else total[i]
        stack.append(i)
    for i in stack:
        reach[i] = min(reach[i], total[count] - total[i])
    return [i for i in range(1, count) if reach[i] > window]


def _divided(atoms: _Atoms, first: int, last: int, limit: int, before_headers: bool = False) -> list[int]:
    """Ends of about equal parts of `first:last`, none over `limit`; `last` included. `before_headers`: rather smaller
    parts than rows without their header."""
    total, ends, todo = atoms.total, [], [(first, last)]
    while todo:
        first, last = todo.pop()
        parts = -(-(total[last] - total[first]) // limit)
        if parts <= 1 or last - first == 1:
            ends.append(last)
            continue
        cut = _best_cut(atoms, first, last, parts, limit)
        if before_headers and atoms.priority[cut] >> 32 < _PARAGRAPH:
            smaller = _best_cut(atoms, first, last, parts + 1, limit)
            cut = smaller if atoms.priority[smaller] >> 32 >= _PARAGRAPH else cut
        todo += [(cut, last), (first, cut)]
    return ends


def _best_cut(atoms: _Atoms, first: int, last: int, parts: int, limit: int) -> int:
    """The best atom near one of the even divisions. Of few parts any division may come first, so
    that a change at one end seldom moves the others; of many the first does, or dividing would take
    quadratic time."""
    total, priority = atoms.total, atoms.priority
    base, even = total[first], (total[last] - total[first]) / parts
    best = -1
    for part in range(1, parts if parts <= 8 else 2):
        low = max(total[last] - (parts - part) * limit, base + (part - SLACK) * even)
        high = min(base + part * limit, base + (part + SLACK) * even)
        begin = bisect_left(total, low, first + 1, last)
        for at in range(begin, bisect_right(total, high, first + 1, last)):
            if best < 0 or priority[at] > priority[best]:
                best = at
    if best > 0:
        return best
    return max(bisect_right(total, base + limit, first + 1, last) - 1, first + 1)


def _unit(text: str, lines: Lines, atoms: _Atoms, first: int, last: int, index: int, params: ChunkParams) -> Unit:
    start = bisect_left(atoms.total, atoms.total[first] - params.overlap, 0, first)
    start = max(start, bisect_left(atoms.total, atoms.total[last] - params.size, 0, first))
    passages, begin = [], first
    for end in _passages(atoms, first, last, params.passage_size):
        passages.append(_span(lines, atoms, begin, end))
        begin = end
    tokens = count_tokens(text[atoms.start[start] : atoms.end[last - 1]])
    return Unit(index, _span(lines, atoms, start, last), tokens, tuple(passages))


def _passages(atoms: _Atoms, first: int, last: int, size: int) -> list[int]:
    """Ends of the passages of a unit: about equal parts; of an outlined text its parts, of pages
    the parts of each."""
    if not atoms.outlined and not atoms.divisions and not atoms.headers:
        return _divided(atoms, first, last, size)
    ends = []
    begin = first
    for at in range(first + 1, last + 1):
        starts = at == last or (
            atoms.priority[at] >> 32 >= _SECTION
            if atoms.outlined
            else atoms.start[at] in atoms.divisions or _is_table(atoms, at, last, size)
        )
        least = LEAST if atoms.outlined else 1  # a slide may hold a few words
        if starts and (at == last or atoms.tokens(begin, at) >= least):
            ends += _divided(atoms, begin, at, size)
            begin = at
    return ends


def _is_table(atoms: _Atoms, first: int, last: int, size: int) -> bool:
    """Does a header begin here, and fit into a passage with all rows to the next header or sheet?"""
    if atoms.start[first] not in atoms.headers:
        return False
    for at in range(first + 1, last + 1):
        if atoms.tokens(first, at) > size:
            return False
        if at == len(atoms) or atoms.start[at] in atoms.headers or atoms.start[at] in atoms.divisions:
            return True
    return False


def _span(lines: Lines, atoms: _Atoms, first: int, last: int) -> Span:
    start, end = atoms.start[first], atoms.end[last - 1]
    return Span(start, end, lines.at(start), lines.at(end - 1))


# ---- atoms ----------------------------------------------------------------------------------------

_HEADING = re.compile(
    r"(#{1,6})[ \t]|第[\d一二三四五六七八九十百千零〇]{1,8}[章节回卷部篇]|(?:CHAPTER|Chapter) [\dIVXLC]{1,8}\b"
)
# skin tones, Hangul vowels and finals, tags of flags
_ADDED = re.compile("[\U0001f3fb-\U0001f3ff\u1160-\u11ff\U000e0020-\U000e007f]")
_FLAGS = "".join(map(chr, range(0x1F1E6, 0x1F200)))  # letters, of which two make a flag
_BLANK_LINE = re.compile(r"\n[ \t\r]*\n\s*")
_INSIDE, _ROW, _SENTENCE, _LINE, _PARAGRAPH, _SECTION, _CHAPTER = range(7)


def _set_priorities(atoms: _Atoms, text: str) -> None:
    """How good a place to cut each atom's start is; needed only where something must be cut."""
    levels = bytearray(len(atoms))  # _INSIDE
    after_heading = False
    before = 0
    for at, following in pairwise([*atoms.opening, len(atoms)]):
        first, last = atoms.start[at], atoms.end[following - 1]
        kind = _heading(text, first)
        if not after_heading:  # a heading stays with what it heads
            levels[at] = _level(text, before, first, kind)
        after_heading = kind > 0 and text.find("\n", first, last) < 0
        before = last
    _prioritise(atoms, text, levels)


def _prioritise(atoms: _Atoms, text: str, levels: bytearray) -> None:
    for at, level in zip(atoms.start, levels, strict=True):
        around = text[max(0, at - 32) : at + 64].encode("utf-8", "surrogatepass")
        atoms.priority.append(level << 32 | crc32(around))


def _set_outline_priorities(atoms: _Atoms, text: str, breaks: Mapping[int, int]) -> None:
    """As `_set_priorities`: an outer part is a chapter, one inside it a section."""
    levels = bytearray(len(atoms))
    for at in atoms.opening:
        depth = breaks.get(atoms.start[at], 0)
        levels[at] = (_CHAPTER if depth == 1 else _SECTION) if depth else _PARAGRAPH
    _prioritise(atoms, text, levels)


def _blocks(text: str, breaks: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    """Spans of an outlined text between blank lines and parts, without blanks at their ends."""
    cuts = {match.end() for match in _BLANK_LINE.finditer(text)}
    cuts.update(at for at in breaks if 0 < at < len(text))
    for first, last in pairwise([0, *sorted(cuts), len(text)]):
        block = text[first:last].rstrip()
        bare = block.lstrip()
        if bare:
            yield first + len(block) - len(bare), first + len(block)


def _joint(text: str, before: int, at: int) -> int:
    """Tokens to add between two atoms so that sums never fall below the count of the whole: the
    blanks, or one where a word may have been cut (two halves of ten letters count 2 and 2, the
    whole 5)."""
    if at > before:
        gap = text[before:at]
        return 0 if gap == " " and text[at].isascii() and text[at].isalpha() else count_tokens(gap)
    return 1 if text[at].isascii() else 0


def _heading(text: str, at: int) -> int:
    """The level of the heading that starts at `at`: _SECTION, _CHAPTER, or 0 for none."""
    match = _HEADING.match(text, at)
    if match is None or (at and text[at - 1] != "\n"):
        return 0
    return _SECTION if match[1] and len(match[1]) > 2 else _CHAPTER


def _level(text: str, before: int, first: int, kind: int) -> int:
    breaks = text.count("\n", before, first)
    if kind and breaks:
        return kind
    if breaks > 1:
        return _PARAGRAPH
    if breaks:
        return _ROW if text[first] == "|" else _LINE
    return _SENTENCE if first > before or text[first - 1 : first] in "。！？｡．" else _INSIDE


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Sentences, block by block: a blank line ends a sentence, so also a block."""
    start, end = 0, len(text)
    while start < end:
        stop = end
        if end - start > _BLOCK:
            stop = text.find("\n\n", start + _BLOCK, min(end, start + 2 * _BLOCK))
            stop = stop if stop > 0 else _whole(text, start, start + _BLOCK)
        previous = -1
        sentence: tuple[int, int] | None = None
        for first, last in recent_sentences(text[start:stop]):
            first, last = first + start, last + start
            if sentence is not None:
                # Cut without a blank: move the cut off the inside of a character.
                if first == previous:
                    first = _whole(text, sentence[0], first)
                    sentence = (sentence[0], first)
                yield sentence
            sentence, previous = (first, last), last
        if sentence is not None:
            yield sentence
        start = stop


@lru_cache(maxsize=1)
def recent_sentences(text: str) -> list[tuple[int, int]]:
    """`sentences`, the last answer kept: short documents are asked about twice."""
    return sentences(text)


def _parts(text: str, first: int, last: int, longest: int, most: int) -> Iterator[tuple[int, int, int]]:
    """A long sentence in parts of at most `longest` tokens, at blanks where there are any."""
    while first < last:
        end = min(last, first + longest * LETTERS)
        tokens = count_tokens(text[first:end])
        while tokens > longest and end - first > 1:
            end = first + max(1, (end - first) * longest // (tokens + 1))
            tokens = count_tokens(text[first:end])
        if end < last:
            late = range(end, first + (end - first) // 2, -1)  # in the second half a blank
            blanks = (at for at in late if text[at].isspace() or text[at - 1].isspace())
            end = next(blanks, 0) or _whole(text, first, end)
            # One character of many code points: whole, unless it is too large by itself.
            if _joined(text, end):
                ahead = range(end + 1, min(last, end + 64) + 1)
                after = next((at for at in ahead if at == last or not _joined(text, at)), end)
                end = after if count_tokens(text[first:after]) <= most else end
        to = end
        while text[to - 1].isspace():
            to -= 1
        yield first, to, count_tokens(text[first:to])
        while end < last and text[end].isspace():
            end += 1
        first = end


def _whole(text: str, first: int, at: int) -> int:
    """The last place at or before `at` that is between two characters as a reader sees them, `at`
    itself when there is none (a hundred marks on one letter)."""
    for place in range(at, max(first, at - 100), -1):
        if not _joined(text, place):
            return place
    return at


def _joined(text: str, at: int) -> bool:
    """Do the code points on both sides of `at` belong to one character?"""
    before, after = text[at - 1], text[at]
    if after.isascii():
        return before == "\r" and after == "\n"
    if "\u200d" in (before, after) or unicodedata.category(after)[0] == "M":
        return True
    if after in _FLAGS:
        before = text[max(0, at - 64) : at]
        return (len(before) - len(before.rstrip(_FLAGS))) % 2 == 1
    return _ADDED.match(after) is not None
