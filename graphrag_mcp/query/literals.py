"""Literals: what stands in quotation marks or beside OR in a query, and must stand so in a text.

Any spelling of it counts: case, width, white space, escapes, traditional or simplified characters aside."""

from __future__ import annotations

import re
import string
import unicodedata
from dataclasses import dataclass

from graphrag_mcp.errors import BadInput
from graphrag_mcp.names import chinese
from graphrag_mcp.names.lexicon import ordinary
from graphrag_mcp.text.terms import SIMPLIFY, is_cjk, unwrapped

WORDS = 4  # of an alternative without quotation marks: more are a sentence
QUOTATIONS = 100  # of one query: each is compared with every passage
# The soft hyphen, zero width space, word joiner and byte order mark divide no word.
UNSEEN = "\u00ad\u200b\u2060\ufeff"
_QUOTED = re.compile(r'"([^"]{1,500})"|“([^“”]{1,500})”|「([^「」]{1,500})」|『([^『』]{1,500})』|«([^«»]{1,500})»')
_EITHER = re.compile(r"\s(?:OR|\|)(?=\s)")  # "car show" OR "car meet"
# Markdown and LaTeX write a backslash before a sign that would mean something: MAX\_RETRY, 50\%.
_ESCAPE = re.compile(rf"\\(?=[{re.escape(string.punctuation)}])")
_PLAIN = {**SIMPLIFY, **dict.fromkeys(map(ord, UNSEEN))}
_TRADITIONAL: dict[str, str] = {}
for _code, _simple in SIMPLIFY.items():
    _TRADITIONAL[_simple] = _TRADITIONAL.get(_simple, "") + chr(_code)


@dataclass(frozen=True, slots=True)
class Literal:
    """What a passage must contain: the plain forms of a quotation, at the beginning of a word, or of the `bare` words
    beside OR, as whole words: SEC is not in "6.56 secs"."""

    written: str
    forms: tuple[str, ...]
    bare: bool = False

    def within(self, text: str, anywhere: bool) -> bool:
        """Does a plain text contain it? `anywhere`: also inside a word, as "suing" in "issuing"."""
        unescaped = _ESCAPE.sub("", text)
        for form in self.forms:
            of = text if "\\" in form else unescaped
            if anywhere and not self.bare:
                found = form in of
            else:
                found = stands_in(of, form, whole=self.bare)
            if not found:
                return False
        return True


def literals_of(query: str) -> tuple[list[Literal], bool]:
    """The literals of a query, and does one of them suffice? Without OR these are its quotations, and all are needed;
    with OR its quotations and the up to WORDS bare words on each side. BadInput for too many."""
    query = query.replace("\0", " ")
    marks = (next(filter(None, match.groups())) for match in _QUOTED.finditer(query))
    sides = [side.split() for side in _EITHER.split(_QUOTED.sub(" \0 ", query))]
    either = len(sides) > 1
    found: dict[str, Literal] = {}
    for words in sides:
        quotations = [next(marks) for word in words if word == "\0"]
        for mark in quotations:
            if form := plain(mark):
                found.setdefault(mark, Literal(mark, (form,)))
        if either and words and not quotations:
            if len(words) > WORDS:
                return [], False
            written, forms = " ".join(words), tuple(filter(None, map(plain, words)))
            if forms:
                found.setdefault(written, Literal(written, forms, bare=True))
    if len(found) > QUOTATIONS:
        what = f"the query has {len(found)} quoted strings, and at most {QUOTATIONS} are looked for"
        raise BadInput(what, "Ask in several calls")
    return list(found.values()), either


def quoted(query: str) -> list[str]:
    """What stands in quotation marks, as it was written; of `robot OR "light drone"` both."""
    return [literal.written for literal in literals_of(query)[0]]


def words_beside(query: str) -> list[str]:
    """The words of a query that stand in no quotation."""
    return _EITHER.sub(" ", _QUOTED.sub(" ", query)).split()


def identifier(query: str) -> str:
    """The query where it is one word of letters and other signs or of two cases, without the marks around it: E4471,
    get_source, getSource, os.path, pre-commit; else ""."""
    word = query.strip("?!.,:;\"'`()[]*")
    camel = not word.isupper() and word[1:] != word[1:].lower()
    marked = camel or (any(map(str.isalnum, word)) and not word.replace("'", "").isalpha())
    return word if marked and len(word.split()) == 1 and word.isascii() else ""


def plain(text: str) -> str:
    """The text in the form in which literals are compared: NFKC, case folded, traditional characters as simplified
    characters, white space as one space, no line breaks in Chinese words, nothing UNSEEN."""
    if text.isascii():  # the rest changes nothing there
        return " ".join(text.casefold().split())
    whole = unwrapped(unicodedata.normalize("NFKC", text))
    return " ".join(whole.casefold().translate(_PLAIN).split())


def pattern(form: str) -> str:
    """A regular expression that ignores case, for texts in NFKC whose `plain` form may hold this
    form. Its matches are still to be compared."""
    form = form.encode("utf-8", "replace").decode("utf-8")  # half a character is in no text
    parts: list[str] = []
    for ch, following in zip(form, [*form[1:], " "], strict=True):
        if ch in string.punctuation and "\\" not in form:
            parts.append(r"\\?")  # of an escape
        plainly = r"\s+" if ch == " " else re.escape(ch)
        parts.append(f"[{ch}{_TRADITIONAL[ch]}]" if ch in _TRADITIONAL else plainly)
        if is_cjk(ch) and is_cjk(following):
            parts.append(r"\s*")  # a line may end between them
    found = "".join(parts)
    for folded, upper in (("ss", "ß"), ("i̇", "İ")):
        found = found.replace(folded, f"(?:{folded}|{upper})")
    return found


def stands_in(text: str, form: str, whole: bool = False) -> bool:
    """Does it stand in the text where a word begins, not only within one, as "suing" within
    "issuing"; if `whole`, also where a word ends? Words of Chinese have no such limits, and of a `whole` one a
    number is a word of its own: JPY of "JPY8 billion"."""

    def joined(before: str, after: str) -> bool:
        alike = not whole or before.isdigit() == after.isdigit()
        return alike and all(ch.isalnum() and not is_cjk(ch) for ch in (before, after))

    at = text.find(form)
    while at >= 0:
        behind = at + len(form)
        begins = at == 0 or not joined(text[at - 1], form[0])
        if begins and not (whole and behind < len(text) and joined(form[-1], text[behind])):
            return True
        at = text.find(form, at + 1)
    return False


def names(text: str, form: str, whole: bool = False) -> bool:
    """Does a text that is known to name an entity name it here, by one of its forms? An everyday word has its letters
    as written (US is not `us`), any other form in any case; a Chinese one is no part of a longer word (罗斯 of 俄罗斯)."""
    if not ordinary(form.lower()):
        text, form = plain(text), plain(form)
    if is_cjk(form[:1] or " ") and form in text:
        text = chinese.without_longer_words(text, form)
    return stands_in(" ".join(text.split()), form, whole)
