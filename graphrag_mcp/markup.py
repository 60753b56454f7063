"""What stands in a text without being said by it: addresses, attributes, keys; and who says it, in a log of a chat.

Takes a text; gives it in the same length with NULs for what names nobody, and the names of those who speak. Linear
time. Knows no names of its own (names.py, han.py find them in what is left).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

Candidate = tuple[int, int, str, bool]
MATTER = 4_000  # characters in which front matter must end
TURNS = 3  # lines of a text with a time and a speaker that make it a chat

_ADDRESS = re.compile(r"\b(?:https?|ftp)://[\w.~:/?#@!$&*+,;=%'-]+", re.ASCII)
_TAG = re.compile(r"<[A-Za-z][\w-]{0,20}\s[^<>=]{0,200}=[^<>]{0,4000}>")
_MATTER_KEY = re.compile(  # with what is the address of a page: aliases = ["2014/11/20/Cargo.html"]
    r"^[ \t]{0,20}[A-Za-z_][\w-]{0,40}[ \t]{0,4}[:=](?:[ \t]{0,4}[\[\x22']{0,2}[\w.-]{0,40}/[^\n]*)?", re.MULTILINE
)
_KEY = re.compile(r"""(["'])[^"'\n]{1,40}\1 ?: ?(?=["'\[{\d-]|true\b|false\b|null\b|None\b)""")  # of JSON
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


def without_markup(text: str) -> str:
    """As long as before, with NULs (no document has any) for web addresses, comments and attributes of HTML, keys of
    JSON and front matter. Their words would stand beside everything: `https` beside 3,299 names of one corpus."""
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
    """Who speaks in `[15:01] <mara> ...`, `12/03/24, 10:15 - Jens Ott: ...`; a relay (`<bot> <mara> ...`), too."""
    turns = [*_turns(text)]
    return turns if len(turns) >= TURNS else []


def _turns(text: str) -> Iterator[Candidate]:
    for match in _TURN.finditer(text):
        for group in ("nick", "relayed", "name"):
            if match[group]:
                yield *match.span(group), "person", True
