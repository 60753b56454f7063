"""Sentences: where they end, how they are shown (without what only leads elsewhere), and whether
one is worth quoting. Spans always point into the stored text, which is not changed."""

from __future__ import annotations

import html
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence, Set
from itertools import pairwise

from graphrag_mcp.text.citing import without_fingerprints
from graphrag_mcp.text.terms import LETTERS, Patterns, is_cjk, table, without_cjk

_TABLES = table(__file__)
_FORMS = Patterns(_TABLES["forms"])
_ENDS = {name: frozenset(words.split()) for name, words in _TABLES["sentences"].items()}
_CONJUNCTIONS = {"", *_ENDS["conjunctions"]}

# ---- sentences ----------------------------------------------------------------------------------
_MAX_SENTENCE = 1000
_CLOSERS = "\"'”’»›)\\]}」』）】》〉｝］〕"
# Every alternative succeeds where it starts, so a run of 100k dots or newlines is read once.
_END = re.compile(rf"[.!?…‽]++[{_CLOSERS}]*+(?:\[\d{{1,3}}\])*+|[。！？｡।॥؟۔．][!?…。！？｡]*+[{_CLOSERS}]*+|\n\s*+")


def sentences(text: str) -> list[tuple[int, int]]:
    """Character spans of the sentences, in order, together covering every character that is not
    blank.

    A blank line, heading, list item, table row, speaker or head of a turn ends one, a single newline
    in a paragraph does not; a sentence over 1,000 characters is cut at a blank, or anywhere when it has none."""
    spans: list[tuple[int, int]] = []
    start = line = 0
    for match in _END.finditer(text):
        at, end = match.span()
        newline = text[at] == "\n"
        ends = _newline_ends(text, line, at, end) if newline else _stop_ends(text, start, at, end)
        line = text.rfind("\n", at, end) + 1 if newline else line
        if ends:
            _append(spans, text, start, end)
            start = end
    _append(spans, text, start, len(text))
    return spans


# Characters of a line: texts that are wrapped have none longer than the first, and few under the other.
WRAPPED, HEADED = 200, 80


def _newline_ends(text: str, line: int, at: int, end: int) -> bool:
    """Does the line break at `at:end` end a sentence? `line` is where the line before it starts."""
    if text.count("\n", at, end) > 1 or end == len(text):
        return True
    if at - line < HEADED and text.find("\n", end, end + WRAPPED) < 0 < len(text) - end - WRAPPED:
        return True  # a line so long is a paragraph; what stands above it is a byline or a heading
    before = _FORMS.structure.match(text, line, at + 1)
    if before and (before[0].strip()[0] in "#|`~=_" or before[0].endswith("\n")):
        # headings, rows, fences and rules end with their line; a list item may go on in the next
        return True
    line = text.rfind("\n", at, end) + 1
    head = _FORMS.line_speaker.match(text, line) or _FORMS.turn.match(text, line)
    return (head or _FORMS.structure.match(text, line)) is not None


def _stop_ends(text: str, start: int, at: int, end: int) -> bool:
    """Does the punctuation at `at:end` end the sentence that began at `start`?"""
    after = text[end : end + 40]
    if text[at] in "。！？｡।॥؟۔．":
        return text[at] != "．" or not after[:1].isdigit()
    if after and not after[0].isspace():
        return is_cjk(after[0]) and text[at] in "!?"
    after = after.lstrip().lstrip("\"'“‘«([（「")
    if after[:1].islower():
        return False
    if text[at] != "." or text[at + 1 : at + 2] == ".":
        return True
    word = (text[max(start, at - 24) : at].split() or [""])[-1].lstrip("\"'“‘«([（「")
    key = word.casefold()
    if key in _ENDS["never_end"] or word == "v":  # Roe v. Wade
        return False
    if key in _ENDS["before_number"] and _FORMS.number_behind.match(after):
        return False
    initial = len(word) == 1 and word.isupper()
    if key in _ENDS["before_number"] and not initial:
        return True
    following = LETTERS.match(after)
    first = following[0] if following else ""
    if word.isdecimal() and len(word) <= 2 and first.casefold() in _ENDS["dated"]:
        return False  # a German 3. März
    dotted = "." in word and all(len(part) == 1 and part.isalpha() for part in word.split("."))
    if key in _ENDS["may_end"] or initial or dotted:
        # J. R. R. Tolkien and U.S. Army go on; `in the U.S. The army` does not.
        return not after or (first.istitle() and first.casefold() in _ENDS["starters"])
    return True


def _append(spans: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    """Add `start:end` without its outer blanks, in pieces of at most _MAX_SENTENCE characters."""
    while start < end:
        if text[start].isspace():
            start += 1
            continue
        stop = end
        if end - start > _MAX_SENTENCE:
            blank = max(text.rfind(ch, start, start + _MAX_SENTENCE + 1) for ch in " \n\t\u3000")
            stop = blank if blank > start else start + _MAX_SENTENCE
        spans.append((start, start + len(text[start:stop].rstrip())))
        start = stop


# ---- what is shown of a text ----------------------------------------------------------------------

_ESCAPED = re.compile(r"\\([\[\]_*#&<>~.()-])")
# What a link leads to, and an address behind its scheme.
_TARGET = re.compile(r"\]\((?:https?:/)?/[^\s)]{1,4000}")
_LINK = re.compile(r"://[^\s\"'<>|,)\]}`]{1,4000}")
# An address in running text; the rest of one that was cut; what no word is so long as.
_ADDRESS = re.compile(r"[!-~]{0,200}(?:://|www\.)[!-~]{1,4000}|[!-~]{40,4000}")
LEFT = 5  # of a document at least a fifth is left
SHARED = 3  # documents that hold a line of the furniture of a site

_FENCE = re.compile(r"^[ \t]*```+[ \t]*(\w*)", re.MULTILINE)
# What stands before an indented block: a paragraph that ends with two colons, a directive.
_LITERAL = re.compile(
    r"^(?P<indent>[ \t]*+)(?:\.\. (?:code|code-block|sourcecode|parsed-literal)::[^\n]*+"
    r"|(?!\.\. )(?:[^\n:]++|:(?!:[ \t]{0,9}\n))*+::)[ \t]{0,9}\n(?:[ \t]++:[^\n]*+\n){0,9}[ \t]*+\n",
    re.MULTILINE,
)
# What may stand around the words of prose.
_AROUND = ".,;!?()[]\"'`/–—-…‘’“”„«»，。！？、；：（）《》「」"
_WORDS = re.compile(r"(?:[A-Za-z]|[^\x00-\x7f])+(?:['&/-]++(?:[A-Za-z]|[^\x00-\x7f])+)*")


ENUMERATED = 4  # names in a row with commas and conjunctions alone between them are a list; three may be an address


def is_prose(sentence: str, names: Sequence[tuple[int, int]]) -> bool:
    """Is a sentence with these names (spans, in order, none within another) running prose, and no list of names? It
    has twice as many words beside them as signs (numbers, labels with a colon, code, paths, rows of tables), and no
    fewer words than names but one; a word with a capital within the sentence is neither. Two characters of Chinese,
    Japanese and Korean are one word.

    Of eight collections, sentences with fewer than two words for a sign were code and citations. Of 30 enumerations in
    minutes, blogs and articles 24 said nothing about two of their names."""
    row = 1
    for (_, before), (start, _) in pairwise(names):
        between = sentence[before:start].strip(" \n*_`\"'“”")
        row = row + 1 if between and between.strip(" ,;/|、，") in _CONJUNCTIONS else 1
        if row == ENUMERATED:
            return False
    parts: list[str] = []
    at = 0
    for start, end in names:
        parts.append(sentence[at:start])
        at = end
    rest, dense = without_cjk("X".join([*parts, sentence[at:]]))
    words, signs = (dense + 1) // 2, 0
    for at, piece in enumerate(rest.replace("\0", " ").split()):
        word = piece.strip(_AROUND)
        if _WORDS.fullmatch(word):
            words += not word[0].isupper() or (at == 0 and "X" not in word)
        else:
            signs += bool(word.strip("*_#>+"))
    return words >= max(1, len(names) - 1, 2 * signs)


def fences(text: str) -> list[int]:
    """Where blocks of code begin and end, in turns: fenced ones, and indented ones that two colons
    announce. A text that was cut inside a block is told by a fence that names a language, since
    such a fence opens a block, or else by the blank line on one side of its first fence."""
    found = list(_FENCE.finditer(text)) if "```" in text else []
    places = [match.start() for match in found]
    opens = next((at for at, match in enumerate(found) if match[1]), None)
    if opens is None and len(places) % 2:
        above, below = text[: places[0]], text[found[0].end() :]
        blank_above = not above.strip() or above.endswith("\n\n")
        blank_below = not below.strip() or not "".join(below.split("\n", 2)[:2]).strip()
        if blank_above == blank_below:
            return _indented(text)
        opens = int(blank_below)
    places = [0] * ((opens or 0) % 2) + places
    places += [len(text)] * (len(places) % 2)
    return places or _indented(text)


def _indented(text: str) -> list[int]:
    places: list[int] = []
    for match in _LITERAL.finditer(text) if "::" in text else ():
        if places and match.start() < places[-1]:
            continue
        end = match.end()
        while end < len(text):  # line by line: most blocks are short
            line_end = (text.find("\n", end) + 1) or len(text)
            line = text[end:line_end]
            if line.strip() and len(line) - len(line.lstrip(" \t")) <= len(match["indent"]):
                break
            end = line_end
        places += [match.end(), end] if end > match.end() else []
    return places


def repeated_lines(rows: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """The lines of each document, of (document, text), that SHARED documents hold: menus, notices and
    licences of a site. None of a document of which they are nearly all, such as a copy."""
    lines_of: dict[str, set[str]] = defaultdict(set)
    holders: dict[str, tuple[str, ...]] = {}  # SHARED documents at most; a set takes four times it
    for document, text in rows:
        for line in filter(None, readable(text).split("\n")):
            lines_of[document].add(line)
            documents = holders.get(line, ())
            if len(documents) < SHARED and document not in documents:
                holders[line] = (*documents, document)
    shared = {line for line, documents in holders.items() if len(documents) == SHARED}
    found: dict[str, set[str]] = {}
    for document, lines in lines_of.items():
        repeated = lines & shared
        size = sum(map(len, lines))
        if repeated and sum(map(len, repeated)) * LEFT <= size * (LEFT - 1):
            found[document] = repeated
    return found


def readable(text: str) -> str:
    """The text as it is shown; the same text where there is nothing to leave out."""
    if not any(mark in text for mark in ("[", "](", "<", "&", "|", "  ", "\t", "===", "---")):
        return text.strip()
    lines: list[str] = []
    closed = _closed(text) if "<" in text else frozenset()
    for line in (_FORMS.definition.sub("", text) if "]:" in text else text).split("\n"):
        shown = _line(line, closed)
        if shown or (not line.strip(" -") and lines and lines[-1]):
            lines.append(shown)
    return "\n".join(lines).strip()


def searched(text: str) -> str:
    """The text by whose words a passage is found: without the targets of links to web pages, and
    without what follows the path of other addresses. On a saved web page these are half of the
    characters, and their words are those of other pages. Nor by the fingerprints of citations."""
    text = without_fingerprints(text)
    text = _TARGET.sub("]", text) if "](" in text else text
    if "://" not in text:
        return text
    return _LINK.sub(lambda link: link[0].partition("?")[0].partition("#")[0], text)


def without_addresses(text: str, left_out: Set[str] = frozenset()) -> str:
    """What is readable of a text without the addresses in it, whose parts are the words of a site, and
    without these lines."""
    kept = (line for line in readable(text).split("\n") if line not in left_out)
    return _ADDRESS.sub(" ", "\n".join(kept))


# Elements that need no end.
_OPEN_ENDED = frozenset("br img source path p li tr td th".split())


def _closed(text: str) -> Set[str]:
    """The elements of HTML that end in this text: `<div>` alone is a word about HTML."""
    return {tag["name"].lower() for tag in _FORMS.tag.finditer(text) if tag["end"]} | _OPEN_ENDED


def _without_tag(tag: re.Match[str], closed: Set[str]) -> str:
    """A blank in the place of a tag of HTML; `if a<b and c>d` and a lone `<div>` hold none."""
    name, more = tag["name"], tag["more"]
    if name is None or tag["end"]:
        return " "
    if more and more.strip():
        return " " if "=" in more else tag[0]
    return " " if name.lower() in closed else tag[0]


def _line(line: str, closed: Set[str] = _OPEN_ENDED) -> str:
    """One line as it is shown; "" for what only leads elsewhere or separates. `closed`: the elements
    of HTML whose tags are left out."""
    plain = _FORMS.image.sub(" ", line) if "![" in line else line
    if "](" in plain:
        plain = _FORMS.link.sub(r"\1", plain)
    if "[" in plain:
        plain = _FORMS.named_link.sub(r"\1", plain) if "][" in plain else plain
        plain = _FORMS.note.sub("", plain)
        if not any(sign in plain for sign in "=;{}"):
            plain = _FORMS.number.sub("", plain)
    if "<" in plain:
        plain = _FORMS.tag.sub(lambda tag: _without_tag(tag, closed), plain)
    if "&" in plain:
        plain = html.unescape(plain).replace("\xa0", " ")
    if "\\" in plain and plain != line:
        plain = _ESCAPED.sub(r"\1", plain)
    if not plain.strip(" \t|:+=_*-"):  # of tables, under headings, between paragraphs
        return ""
    indent = len(plain) - len(plain.lstrip(" \t"))
    return plain[: min(indent, 8)] + " ".join(plain.split()) if plain.strip() else ""
