"""The tuples of a model's reply: where each record starts and ends, and its fields.

A record starts with its tag (entity, relationship) behind an opening bracket, at the start of a
line or behind the record mark. The same word elsewhere belongs to a name or keyword."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from graphrag_mcp.llm.replies import FULL, HALF, split_fields

MOST_REFUSED = (
    8  # tags within one record that are looked at and taken for words, so that reading stays linear
)
MOST_ENDS = 8  # brackets and line ends at which a record might end
ENOUGH = 3  # fields: name, type, description; or source, target, description

Whole = Callable[[str, list[str]], bool]  # of a kind and its fields


@dataclass(frozen=True, slots=True)
class Tuple:
    """`kind`: "e" or "r". `cut_off`: the reply ended in the middle of it. `keywords_first`: its
    delimiters are those of LightRAG, whose relationships have the keywords before the
    description."""

    kind: str
    fields: list[str]
    cut_off: bool = False
    keywords_first: bool = False


@dataclass(frozen=True, slots=True)
class _Start:
    """A tag where a record can start: `begin` of the mark or bracket before it, `end` of the tag
    itself. `opened`: a bracket stands before it; `sure`: a bracket or a record mark does."""

    kind: str
    begin: int
    end: int
    opened: bool
    sure: bool


_OPENING, _CLOSING = "(（[［{｛【", ")）]］}｝】"
_COMMA = re.compile(r"\s{0,9}[,，]\s{0,9}(?=[\"'“])")
_QUOTES = r"[\"'“”‘’`*＂「『」』\\]{0,4}"
_TAG = rf"{_QUOTES}(?P<tag>entity|entities|relationships?|relations?){_QUOTES}[ \t]{{0,4}}"
# Before a record that starts a line: the marks of lists, quotations, emphasis and tables.
_LIST = r"[ \t>]{0,8}(?:[-*•+–]{1,3}[ \t]|[(（]?\d{1,4}[.)）、:：])?[ \t*]{0,4}[|｜]?[ \t]{0,4}"
_OPEN = rf"[{re.escape(_OPENING)}]"
_BETWEEN = "(?<![<＜])(?:##|＃＃)(?![>＞])"  # the mark between records, which is no delimiter
_PLACE = rf"(?:(?P<line>^|{_BETWEEN}){_LIST}(?:(?P<open>{_OPEN})\s{{0,9}})?|(?P<within>{_OPEN})\s{{0,9}})"
_STRICT = re.compile(rf"{_PLACE}{_TAG}(?={HALF})", re.IGNORECASE | re.MULTILINE)
_PLAIN = re.compile(rf"{_PLACE}{_TAG}(?=[|｜\t]|{_COMMA.pattern})", re.IGNORECASE | re.MULTILINE)
_LOOSE = re.compile(rf"(?<!\w){_TAG}(?={HALF})", re.IGNORECASE)
_DELIMITED = re.compile(rf"(?:{HALF})\s{{0,9}}\Z")
# a list of keywords within a tuple of quoted fields
_IN_LIST = re.compile(r"[\"'”]\s{0,9}[,，]\s{0,9}\Z")


def first_start(plain: str) -> int:
    """Where the first record stands whose fields have delimiters of the prompt's kind; -1 without
    one."""
    match = _STRICT.search(plain)
    return match.start() if match else -1


def read_tuples(plain: str, complete: bool, whole: Whole) -> tuple[list[Tuple], list[str]]:
    """The records in their order, and what stands before and between them. `complete`: the reply
    had an end mark, so that a last record without a closing bracket was not cut off."""
    starts = _starts(plain, whole)
    found: list[Tuple] = []
    between = [plain[: starts[0].begin] if starts else plain]
    for place, start in enumerate(starts, 1):
        last = place == len(starts)
        segment = (
            plain[start.end :] if last else plain[start.end : starts[place].begin].rstrip(_TAIL)
        )
        fields, closed, rest = _record(segment, start, whole)
        cut_off = last and start.opened and not closed and not complete
        found.append(Tuple(start.kind, fields, cut_off, "<|#|>" in segment))
        between.append(rest)
    return found, between


def _starts(plain: str, whole: Whole) -> list[_Start]:
    """By the strictest form that finds any."""
    strict = [_start(match) for match in _STRICT.finditer(plain)]
    known = {one.end for one in strict}
    loose = [one for one in map(_start, _LOOSE.finditer(plain)) if one.end not in known]
    if not strict:
        strict = [_start(match) for match in _PLAIN.finditer(plain)]
        loose = [] if strict else loose
    candidates = sorted(
        [(one, True) for one in strict] + [(one, False) for one in loose],
        key=lambda one: one[0].end,
    )
    return list(_without_words(plain, candidates, whole))


def _start(match: re.Match[str]) -> _Start:
    groups = match.groupdict()
    opened = bool(groups.get("open") or groups.get("within"))
    return _Start(
        match["tag"][0].lower(),
        match.start(),
        match.end(),
        opened,
        opened or bool(groups.get("line")),
    )


def _without_words(
    plain: str, candidates: Sequence[tuple[_Start, bool]], whole: Whole
) -> Iterator[_Start]:
    """The candidates without those that are words of a record. Each has with it whether it stands
    where a record can start: one that does not is a record only behind a whole one and as a whole
    one, on a line without brackets. One that does is a word of a record that goes on: that has an
    open bracket or ends in a delimiter, and is not whole."""
    last: _Start | None = None
    refused = 0
    for place, (one, strict) in enumerate(candidates):
        if (
            last is not None
            and one.opened
            and _IN_LIST.search(plain, max(last.end, one.begin - 20), one.begin)
        ):
            continue
        if last is not None and not one.sure and refused < MOST_REFUSED:
            fields, closed, _ = _record(plain[last.end : one.begin].rstrip(_TAIL), last, whole)
            complete = whole(last.kind, fields)
            if strict:
                open_ = last.opened or _DELIMITED.search(
                    plain, max(last.end, one.begin - 20), one.begin
                )
                word = open_ and not closed and not complete
            else:
                word = (
                    last.opened
                    or not complete
                    or not _goes_on(plain, one, candidates[place + 1 : place + 4], whole)
                )
            if word:
                refused += 1
                continue
        elif last is not None and not strict:
            continue
        yield one
        last, refused = one, 0


def _goes_on(plain: str, start: _Start, after: Sequence[tuple[_Start, bool]], whole: Whole) -> bool:
    """Is there a whole record from here to one of the candidates `after`, or to the end?"""
    for other, strict in after:
        if whole(start.kind, _record(plain[start.end : other.begin], start, whole)[0]):
            return True
        if strict:
            return False
    return len(after) < 3 and whole(start.kind, _record(plain[start.end :], start, whole)[0])


_BRACKET = re.compile(rf"[{re.escape(_OPENING + _CLOSING)}]")
_CLOSE = re.compile(rf"[{re.escape(_CLOSING)}](?=[ \t*`\"'.,;。，；、]{{0,8}}(?:\n|##|＃＃|\Z))")
_LINE_END = re.compile(r"\n")
_TAIL = " \t\r\n\"'“`#＃*•–>-"  # what stands before the next record


def _record(segment: str, start: _Start, whole: Whole) -> tuple[list[str], bool, str]:
    """Fields of the record that `segment` begins with, whether its end was seen, and what follows
    it.

    A description may hold brackets and line breaks. Of the places where the record might end, the
    first counts that leaves all fields and no bracket open; else the first that leaves all fields,
    else the first that leaves enough. A bracket with other text behind it on its line ends a record
    only where nothing else does."""
    if quoted := _quoted(segment):
        return quoted
    worth, end, best = 0, 0, list[str]()
    for at, balanced, usual in _ends(segment, start.opened):
        if worth > 2 or (worth == 2 and not usual):
            break
        fields = _split(segment[:at])
        value = 2 * whole(start.kind, fields) + balanced
        if len(fields) >= ENOUGH and (not best or value > worth):
            worth, end, best = value, at, fields
    if worth or (best and not start.opened):
        return best, True, segment[end + 1 :]
    body = segment.rstrip(_TAIL)
    closed = start.opened and body.endswith(tuple(_CLOSING))
    fields = _split(body[:-1] if closed else body)
    if (
        start.opened and not closed and not whole(start.kind, fields)
    ):  # its bracket was forgotten, and prose follows
        for match, _ in zip(_LINE_END.finditer(body), range(MOST_ENDS), strict=False):
            shorter = _split(body[: match.start()])
            if whole(start.kind, shorter):
                return shorter, False, body[match.end() :]
    return fields, closed, ""


def _ends(segment: str, opened: bool) -> Iterator[tuple[int, bool, bool]]:
    """Where the record might end; whether no bracket of its fields is open there; and whether
    nothing follows on the same line."""
    depth, at = 0, 0
    ends = (_CLOSE if opened else _LINE_END).finditer(segment)
    for match, _ in zip(ends, range(MOST_ENDS), strict=False):
        depth += sum(
            1 if sign in _OPENING else -1 for sign in _BRACKET.findall(segment, at, match.start())
        )
        at = match.start()
        yield at, depth == 0, True
    depth = 0
    for match in _BRACKET.finditer(segment) if opened else ():
        depth += 1 if match[0] in _OPENING else -1
        if depth < 0:
            yield match.start(), True, False
            return


# One quoted field of a tuple in the syntax of Python, or a number. A sign of quotation ends it only
# before a comma or bracket: models forget to escape those inside.
_FIELD = re.compile(
    r"\s{0,99}(?:\"(?P<double>(?:[^\"\\]|\\.|\"(?!\s{0,9}(?:[,，)）\]］]|\Z)))*+)\""
    r"|'(?P<single>(?:[^'\\]|\\.|'(?!\s{0,9}(?:[,，)）\]］]|\Z)))*+)'"
    r"|“(?P<curved>(?:[^”]|”(?!\s{0,9}(?:[,，)）\]］]|\Z)))*+)”|(?P<number>-?\d{1,9}(?:\.\d{1,9})?)|\[(?P<list>[^\]\[]*+)\])"
    r"\s{0,99}(?:(?P<more>[,，])|(?P<end>[)）\]］]))?",
    re.DOTALL,
)


_ESCAPED = re.compile(r"\\([\"'\\nrt])")


def _quoted(segment: str) -> tuple[list[str], bool, str] | None:
    """A tuple of quoted fields with commas between them; None for any other and for one that is not
    well formed."""
    comma = _COMMA.match(segment)
    at, fields = comma.end() if comma else 0, list[str]()
    while comma and (match := _FIELD.match(segment, at)):
        text = next(
            one
            for one in match.group("double", "single", "curved", "number", "list")
            if one is not None
        )
        fields.append(_ESCAPED.sub(lambda sign: " " if sign[1] in "nrt" else sign[1], text))
        at = match.end()
        if match["end"] or not match["more"]:
            whole = len(fields) >= ENOUGH and (match["end"] or not segment[at:].strip())
            return (fields, bool(match["end"]), segment[at:]) if whole else None
    return None


_MARKS = tuple(re.compile(mark) for mark in (FULL, HALF, r"[|｜]", r"\t"))


def _split(body: str) -> list[str]:
    """The fields by the kind of delimiter that stands behind the tag, where it gives enough of
    them: others are part of what is said."""
    body = body.strip(" ")
    mark = next((mark for mark in _MARKS if mark.match(body)), None)
    fields = mark.split(body)[1:] if mark else []
    if len(fields) > ENOUGH and not fields[-1].strip():
        fields = fields[:-1]  # the bar that closes a table's row
    return fields if len(fields) >= ENOUGH else split_fields(body)
