"""Fences around text of documents, with marks that the text cannot contain.

A fence is `<documents-4821093375162: data only>` to `</documents-4821093375162>`. Its mark is made
of what it holds with the key of the home, so no document can compute it, and whatever looks like
any fence is broken, so none can close the one that it stands in. Invisible characters are escaped
and credentials masked. Nothing that is stored changes, and no offset."""

from __future__ import annotations

import re
import unicodedata
from contextvars import ContextVar
from functools import lru_cache

from graphrag_mcp.trust import confusables
from graphrag_mcp.trust.confusables import ANGLES, ESCAPES
from graphrag_mcp.trust.key import mark

# Characters of a text from which the fence says what it is; before, that costs too much.
TOLD_FROM = 1_500
RUN = 8  # hidden characters in a row from which they are only counted
SECTIONS = "Sources|Entities|Relationships|Claims|Reports|Points|Evidence|Communities|Paths|Candidates|Answers|Report"

# True where the user has said that credentials in documents are to be shown as they are (setting
# `show_secrets`).
SHOW_SECRETS: ContextVar[bool] = ContextVar("SHOW_SECRETS", default=False)

_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufdd0-\ufdef\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
# Writing systems whose letters take another form beside a joiner (Arabic, Syriac, N'Ko, those of
# India, Mongolian).
_JOINING = (
    (0x0600, 0x08FF),
    (0x0900, 0x0DFF),
    (0x0F00, 0x0FFF),
    (0x1000, 0x109F),
    (0x1780, 0x18AF),
    (0xA840, 0xA87F),
    (0xA8E0, 0xA8FF),
    (0xFB50, 0xFDCF),
    (0xFDF0, 0xFDFF),
    (0xFE70, 0xFEFC),
    (0x11000, 0x11FFF),
)
_UNSPACED = ((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF))  # Thai, Lao, Myanmar, Khmer
_MONGOLIAN = ((0x1800, 0x18AF),)
_JAMO = ((0x1100, 0x11FF), (0xA960, 0xA97F), (0xD7B0, 0xD7FF))
_HAN = ((0x3400, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF))
_FLAGS = re.compile(
    "\U0001f3f4\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074|"
    "\U000e0077\U000e006c\U000e0073)\U000e007f"
)
_TURNING = re.compile("[\u202a-\u202e\u2066-\u2069\U000e0000-\U000e0fff]")
_WORD = r"(?:d|cl)[o0][c(][uv](?:m|rn|nn)[e3]n[t7][s5$]"
_FENCE = re.compile(  # in folded text: any end, and what begins like one of ours
    rf"<(?:[\s_.]{{0,64}}/[\s/_.]{{0,64}}{_WORD}(?![a-z])"
    rf"|[\s_.]{{0,64}}{_WORD}(?:[\W_]{{0,8}}(?:[0-9]|data[\W_]{{0,4}}on[l1i|]y)|[\s_]{{0,4}}[-:=#~]{{1,4}}[\s_]{{0,4}}[a-z0-9]))"
)
_OPENING = r"\[【〔〖⟦⁅❲〚"  # brackets that pass for ours
# one # is the title of half of all documents
_BEGUN = re.compile(rf"[{_OPENING}［﹝|｜]|[#＃﹟][#＃﹟]")
# Cyrillic letters that look like Latin ones
_ALIKE = str.maketrans("аеіоѕсԁумтԍок", "aeioscdumtgok")
# What a head may have before it and be read as one: spaces, marks of lists, tables, quotes,
# emphasis, what is not seen.
_BEFORE = (
    r"[ \t\u00a0\u2000-\u200f\u3000>*_\\+•‣◦▪●·∙–—‒―‐‑~`|#\u00ad\u034f\u061c\u180e\u202a-\u202e\u2060-\u206f"
    r"\ufe00-\ufe0f\ufeff\U000e0000-\U000e0fff-]{0,60}"
)
# in folded text, so that ［ｔ１］ is [t1]; escaped or emphasised it is read as one all the same
_HEAD = re.compile(
    rf"^(?={_BEFORE}(?:(?:\d{{1,3}}|[a-z])[.)]{_BEFORE})?[{_OPENING}]{{1,3}}[ *_\\]{{0,4}}(?:[^\s\[\]/|]{{1,60}}/)?"
    rf"[tderck]\d{{1,12}}(?:\.\d{{1,6}})?[ *_\\]{{0,4}}[]】〕〗⟧⁆❳〛]|[ \\]{{0,4}}[tderck]\d{{1,12}}\\?\||"
    rf"[ \\]{{0,4}}##[ \t]{{1,4}}(?:{SECTIONS.lower()})[ \t]*$)",
    re.MULTILINE,
)


def fenced(text: str) -> str:
    """The text between marks of its own. It should have been through `clean` before."""
    number = 0
    while (made := mark("fence", text, str(number))) in text:
        number += 1
    told = ": data only" if len(text) >= TOLD_FROM else ""
    return f"<documents-{made}{told}>\n{text}\n</documents-{made}>"


def clean(text: str) -> str:
    """The text as it may stand in a fence: nothing invisible, no credential, nothing like a fence."""
    seen = shown(text)
    for _, at in reversed(_imitations(seen)):
        seen = f"{seen[:at]}\\{seen[at:]}"
    return seen


def imitations(text: str) -> list[int]:
    """Where something begins that looks like one of our fences."""
    return [start for start, _ in _imitations(text)]


@lru_cache(maxsize=64)
def _imitations(text: str) -> tuple[tuple[int, int], ...]:
    """Where marks begin that look like ours, and where their first character ends: `<`, `＜`,
    `&lt;`."""
    signs = "<&\\%" if text.isascii() else ANGLES + ESCAPES
    if not any(sign in text for sign in signs):
        return ()
    if not _FENCE.search(confusables.folded(text)):
        return ()  # folding takes twenty times as long as looking for these
    plain, places = confusables.located(text)
    found = []
    for match in _FENCE.finditer(plain):
        at, start = match.start() + 1, places[match.start()]
        while at < len(places) and places[at] == start:
            at += 1
        found.append((start, places[at] if at < len(places) else len(text)))
    return tuple(found)


def folded(text: str) -> str:
    """Lower case, in the plain letters that others look like; as long as before."""
    if text.isascii():
        return text.lower()
    return text.translate({ord(ch): _folded(ch) for ch in set(text)})


@lru_cache(maxsize=4096)
def _folded(ch: str) -> str:
    """One character as the one that it looks like, so that places stay."""
    if ch.isascii():
        return ch.lower()
    plain = unicodedata.normalize("NFKC", ch)
    plain = plain if len(plain) == 1 else ch
    lower = plain.lower()
    return (lower if len(lower) == 1 else plain).translate(_ALIKE)


def shown(text: str) -> str:
    """The text as it may be shown anywhere, also as a value of its own: nothing invisible, no
    credential."""
    seen = visible(text)
    if SHOW_SECRETS.get():
        return seen
    # imported here: its patterns take 12 ms of the start of a server
    from graphrag_mcp.trust.credentials import masked

    return masked(seen)


def quoted(text: str) -> str:
    """Lines that look like the head of an item or a section of ours begin with a backslash."""
    if _BEGUN.search(text) is None:
        return text
    for match in reversed([*_HEAD.finditer(folded(text))]):
        text = f"{text[: match.start()]}\\{text[match.start() :]}"
    return text


def visible(text: str) -> str:
    r"""Invisible and direction-changing characters as `\u202e`, but for those that the text around
    them explains.

    Explained are: joiners between letters of scripts that join, after a virama, or between emoji; a
    space of no width between letters of scripts without spaces; one variation selector behind what
    has variants; the tags of the three flags that have them; fillers beside Hangul letters; a
    line's own end. Of long runs the first four are shown."""
    return _HIDDEN.sub(_escaped, text) if _holds_hidden(text) else text


def _holds_hidden(text: str) -> bool:
    """Is there any character of _HIDDEN? Nearly always answered with no."""
    # our own sign for parts of English text
    plain = text if text.isascii() else text.replace("…", "")
    if plain.isascii() and plain.replace("\n", "").replace("\t", "").isprintable():
        return False
    return _HIDDEN.search(text) is not None


def hiding(text: str) -> list[int]:
    """Where the text hides something: what turns its direction around, tags, and three unexplained
    ones in a row."""
    if not _holds_hidden(text):
        return []
    found = []
    for match in _HIDDEN.finditer(text):
        unexplained = [at for at in range(*match.span()) if not _explained(text, at)]
        if unexplained and (len(unexplained) > 2 or _TURNING.search(match[0])):
            found.append(unexplained[0])
    return found


def uncovered(text: str) -> tuple[str, list[int]]:
    """The text without what is invisible, and where each character stood; the text and [] where
    nothing was."""
    if not _holds_hidden(text):
        return text, []
    places = [at for at, ch in enumerate(text) if ch in "\r" or _HIDDEN.match(ch) is None]
    return "".join(text[at] for at in places), places


def _escaped(match: re.Match[str]) -> str:
    text, (start, end) = match.string, match.span()
    kept = [_explained(text, at) for at in range(start, min(end, start + RUN))]
    if all(kept) and end - start <= RUN:
        return match[0]
    if end - start <= RUN:
        pairs = zip(match[0], kept, strict=True)
        return "".join(ch if good else _escape(ch) for ch, good in pairs)
    first = "".join(map(_escape, match[0][:4]))
    return f"{first}[+{end - start - 4} hidden characters]"


def _escape(ch: str) -> str:
    r"""`\u202e`; what lies beyond as its two halves, so that it is right inside of JSON as well."""
    halves = ch.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{halves[at : at + 4]}" for at in range(0, len(halves), 4))


def _explained(text: str, at: int) -> bool:
    """Is there a reason in the text for this character to stand here?"""
    ch, before, after = text[at], text[at - 1 : at], text[at + 1 : at + 2]
    if ch == "\r":
        return after == "\n"
    if ch in "\u200c\u200d":
        joined = _within(after, _JOINING) or (before and unicodedata.combining(before) == 9)
        if joined and _within(before, _JOINING):
            return True
        base = text[at - 2 : at - 1] if before == "\ufe0f" else before
        return ch == "\u200d" and _pictured(base) and _pictured(after)
    if ch == "\u200b":
        return _within(before, _UNSPACED) and _within(after, _UNSPACED)
    if "\ufe00" <= ch <= "\ufe0f":
        key = after == "\u20e3" and before in "0123456789#*"
        return bool(before) and (key or _pictured(before) or _within(before, _HAN + _JOINING))
    if "\u180b" <= ch <= "\u180f":
        return _within(before, _MONGOLIAN)
    if ch in "\u115f\u1160":
        return _within(before, _JAMO) or _within(after, _JAMO)
    if "\U000e0100" <= ch <= "\U000e01ef":
        return _within(before, _HAN)
    if "\U000e0020" <= ch <= "\U000e007f":
        start = text.rfind("\U0001f3f4", max(0, at - 6), at)
        flag = _FLAGS.match(text, start) if start >= 0 else None
        return flag is not None and at < flag.end()
    return False


def _within(ch: str, ranges: tuple[tuple[int, int], ...]) -> bool:
    if not ch or unicodedata.category(ch)[0] not in "LMN":
        return False
    return any(low <= ord(ch) <= high for low, high in ranges)


def _pictured(ch: str) -> bool:
    """An emoji or another symbol that has variants."""
    symbol = ch > "\u007f" and unicodedata.category(ch) in ("So", "Sk", "Sm", "Po")
    return symbol or ch == "\u3030"
