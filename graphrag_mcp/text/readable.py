"""Stored text in readable form: without link addresses, image tags, citation marks and navigation.
Spans always point into the stored text.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping

_ALTERNATIVE = re.compile(r"!\[(?:Image \d+(?:: )?)?([^\]]*)\]")
_IMAGE = re.compile(
    r"!\[[^\[\]\n]{0,300}\]\([^()\s]{0,2000}(?:\([^()\s]{0,200}\)[^()\s]{0,500})?(?: \"[^\"\n]{0,200}\")?\)"
)
_LINK = re.compile(
    r"\[([^\[\]\n]{0,300})\]\([^()\s]{0,2000}(?:\([^()\s]{0,200}\)[^()\s]{0,500})?(?: \"[^\"\n]{0,300}\")?\)"
)
# a["b"]["c"] and a[1][2] of a program have a letter or a bracket before them.
_NAMED_LINK = re.compile(r"(?<![\w\])])\[([^\[\]\n]{1,300})\]\[[^\[\]\n]{0,100}\]")
_DEFINITION = re.compile(
    r"^ {0,3}\[[^\[\]\n]{1,100}\]:[ \t]{1,4}\S{1,2000}[^\n]{0,300}$", re.MULTILINE
)
_ESCAPED = re.compile(r"\\([\[\]_*#&<>~.()-])")
_NOTE = re.compile(
    r"\[(?:citation needed|edit|note \d{1,3}|update]|dead link|sic)\]", re.IGNORECASE
)
# [12] behind a word or the end of a sentence; a[1] of a program has a single letter before it.
_NUMBER = re.compile(
    r"(?:(?<=[^\W\d_]{3})|(?<=[.,;:)\]\"”»。！？，])|(?<=[.,;:)\]\"”»] ))\[\d{1,3}\](?!\()"
)
_TAG = re.compile(
    r"</?(?:div|span|p|br|sup|sub|small|font|center|table|thead|tbody|tr|td|th|ul|ol|li|img|figure"
    r"|figcaption|picture|source|section|article|header|footer|nav|button|svg|path|iframe|h[1-6]|b|i|u|em|strong|a)"
    r"(?:\s[^<>]{0,1000})?/?>|<!--[^<>]{0,2000}-->",
    re.IGNORECASE,
)
_ENTITY = re.compile(r"&(?:[a-z]{2,8}|#\d{1,6}|#x[0-9a-f]{1,5});", re.IGNORECASE)
_RULE = re.compile(r"[\s|:+=_*-]*")  # of tables, under headings, between paragraphs
_ITEM = re.compile(r"\s{0,40}(?:[*+-]|\d{1,3}\.)?\s{0,8}\[[^\[\]\n]{1,60}\]\([^()\s]{1,2000}\)\s*")
_CODE = re.compile(r"[=;{}]")
LINKS, OUTSIDE = 3, 25  # a line of so many links with so few other characters is navigation
RUN = 3  # so many lines in a row that are a link alone are navigation too

# Of source code, which is shown as it is.
_LANGUAGES = """python py pyi|javascript js mjs cjs jsx|typescript ts mts cts|tsx tsx|java java|go go
rust rs|c c h|cpp cc cpp cxx hh hpp hxx|c_sharp cs|ruby rb|php php|kotlin kt kts|scala scala|swift swift"""
SUFFIXES: Mapping[str, str] = {
    suffix: language
    for language, *suffixes in map(str.split, re.split(r"[|\n]", _LANGUAGES))
    for suffix in suffixes
}


def language_of(uri: str) -> str:
    """The language by the ending of a file's name, "" for none."""
    return SUFFIXES.get(uri.rpartition("/")[2].rpartition(".")[2].lower(), "")


def readable(text: str) -> str:
    """The text as it is shown; the same text where there is nothing to leave out."""
    if not any(mark in text for mark in ("[", "<", "&", "|", "  ", "\t", "===", "---")):
        return text.strip()
    lines: list[str] = []
    menu: list[str] = []  # lines that are a link and nothing else: three in a row are navigation
    for line in [*(_DEFINITION.sub("", text) if "]:" in text else text).split("\n"), "."]:
        if _ITEM.fullmatch(line):
            menu.append(_line(line))
            continue
        if menu and line.strip():
            lines += menu if len(menu) < RUN else []
            menu = []
        shown = _line(line)
        if shown or (not line.strip() and lines and lines[-1]):
            lines.append(shown)
    return "\n".join(lines[:-1]).strip()


def _formula(image: re.Match[str]) -> str:
    """What stands for an image: its alternative text where that is a formula."""
    alternative = _ALTERNATIVE.match(image[0])
    said = alternative[1] if alternative else ""
    return f" {said} " if "\\" in said or "^" in said or "_{" in said else " "


def _line(line: str) -> str:
    """One line as it is shown; "" for what only leads elsewhere or separates."""
    plain = _IMAGE.sub(_formula, line) if "![" in line else line
    if "](" in plain:
        links = _LINK.findall(plain)
        outside = _LINK.sub("", plain)
        if len(links) >= LINKS and sum(map(str.isalnum, outside)) < OUTSIDE and _short(links):
            return ""
        plain = _LINK.sub(r"\1", plain)
    if "[" in plain:
        plain = _NAMED_LINK.sub(r"\1", plain) if "][" in plain else plain
        plain = _NOTE.sub("", plain)
        if not _CODE.search(plain):
            plain = _NUMBER.sub("", plain)
    if "<" in plain:
        plain = _TAG.sub(" ", plain)
    if "&" in plain and _ENTITY.search(plain):
        plain = html.unescape(plain).replace("\xa0", " ")
    if "\\" in plain and plain != line:
        plain = _ESCAPED.sub(r"\1", plain)
    if _RULE.fullmatch(plain):
        return ""
    indent = len(plain) - len(plain.lstrip(" \t"))
    return plain[: min(indent, 8)] + " ".join(plain.split()) if plain.strip() else ""


def _short(links: list[str]) -> bool:
    """Are these labels of a menu rather than names within a list?"""
    return sum(len(one.split()) for one in links) <= 4 * len(links)
