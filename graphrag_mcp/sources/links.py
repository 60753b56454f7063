"""The links and tags that a Markdown text holds, each with its place: wikilinks (`[[Page#Part|alias]]`),
embeds (`![[Page]]`), Markdown links and images whose target is no web address, and tags (`#harbour`).

The parser is pulldown-cmark (https://github.com/pulldown-cmark/pulldown-cmark), so that code, mathematics,
comments and HTML hold no links; nor do the comments of Obsidian (`%%...%%`). What a link leads to is not decided here: that depends on the other documents
(query/pages.py)."""

from __future__ import annotations

import posixpath
import re
from bisect import bisect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from graphrag_mcp.sources.decode import front_matter
from graphrag_mcp.text.terms import Lines
from graphrag_mcp.text.uris import suffix_of

if TYPE_CHECKING:
    from pyromark import Markdown

MARKDOWN = frozenset("md markdown mdown mkd mdx".split())
WIKILINK, EMBED, INLINE, IMAGE, TAG = ("wikilink", "embed", "markdown", "image", "tag")
HREF = "href"  # a link of HTML

CANVAS = "canvas"  # Obsidian's boards, which are read as Markdown
INLINE_TEXT = "text:"  # what the uris of texts without a file begin with
BLOCK = 500  # characters that are counted at once
# The characters of a tag are those of Obsidian: no blank, no punctuation but - _ and /. A number is no tag.
_TAG = re.compile(r"#(?![0-9]+(?:[\s!-,.:-@\[-^`{-~]|\Z))((?:[^\s!-,.:-@\[-^`{-~\u2000-\u206f\u2e00-\u2e7f]){1,200})")
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")  # https:, mailto:, C:
# A comment of Obsidian; code is passed over, since `%%` begins comments and cells in several languages.
_COMMENT = re.compile(
    r"^[ \t]*(?P<fence>`{3,}|~{3,}).*?(?:^[ \t]*(?P=fence)|\Z)|(?<!`)(?P<code>`++)[^\n]{1,500}?(?<!`)(?P=code)(?!`)"
    r"|(?P<note>%%.*?%%)",
    re.MULTILINE | re.DOTALL,
)
_GOES_ON = re.compile(r"[ \t]*[^\s]")
_BLANK = re.compile(r"[^\n]")
_NO_PAGE = re.compile(r"\n|\[\[|\]\]")  # which the name of a page does not hold
_TAGS_KEY = re.compile(r"^[ \t]*[\"']?tags?[\"']?[ \t]*[:=]", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Link:
    """A link or a tag of a text. `target` is as written, without its `part` (what stands behind `#`: a heading,
    a block or a line) and, of Markdown links, without percent encoding; of a tag its name without `#`.
    `start` and `end` are characters of the text, `line` counts from 1."""

    kind: str
    target: str
    part: str
    start: int
    end: int
    line: int = 0


def holds_links(uri: str) -> bool:
    """Is a document of this uri Markdown? Texts without a file are taken for it."""
    return uri.startswith(INLINE_TEXT) or suffix_of(uri.rpartition("/")[2]) in {*MARKDOWN, CANVAS}


def page_of(href: str, base: str = "") -> tuple[str, str] | None:
    """The page and the part that the `href` of HTML names, without its query; None for a web address and for a part
    of the same page. `base`: the `href` of the page's `<base>`. A folder means its `index.html`, as on a server."""
    path, part = _path_of(href), href.partition("#")[2]
    if not path or _ADDRESS.match(href.strip()) or _ADDRESS.match(base.strip()):
        return None
    path = posixpath.join(posixpath.dirname(_path_of(base)), path)
    return f"{path}index.html" if path.endswith("/") else path, unquote(part.strip(), errors="replace")


def _path_of(href: str) -> str:
    """The path of an `href`, with `/` at the end of `.` and `..`, which are folders."""
    path = unquote(href.partition("#")[0].partition("?")[0], errors="replace").strip()
    return f"{path}/" if path.rpartition("/")[2] in (".", "..") else path


def read_links(text: str) -> list[Link]:
    """All links and tags of a Markdown text in the order of their places, those of its front matter as well.
    Links inside the text itself (`[[#Part]]`) are left out."""
    matter, body = front_matter(text)
    lines = Lines(text)
    placed = [
        *_of_matter(text[:body], matter),
        *(replace(x, start=x.start + body, end=x.end + body) for x in _of_body(text[body:])),
    ]
    placed.sort(key=lambda link: (link.start, link.end))
    return [replace(link, line=lines.at(link.start)) for link in placed]


def listed(value: Any) -> list[str]:
    """The values of a property that holds a list, or a text with commas between them."""
    values = value if isinstance(value, list) else str(value or "").split(",")
    return [text for element in values if (text := str(element).strip(" \t\"'"))]


def aliases(metadata: Mapping[str, Any]) -> list[str]:
    """The other names that the front matter gives a page; a text with a comma is also one name."""
    found: list[str] = []
    for key in ("aliases", "alias"):
        value = metadata.get(key)
        found += [*listed(value), *([value.strip()] if isinstance(value, str) else [])]
    return list(dict.fromkeys(filter(None, found)))


def tags(metadata: Mapping[str, Any]) -> list[str]:
    """The tags of the metadata of a document, without `#`. A text holds several, with commas or blanks."""
    found: list[str] = []
    for key in ("tags", "tag"):
        value = metadata.get(key)
        found += listed(value) if isinstance(value, list) else str(value or "").replace(",", " ").split()
    return list(dict.fromkeys(tag for text in found if (tag := text.strip("#\"' "))))


@cache
def _parser() -> Markdown:
    import pyromark

    of = pyromark.Options
    options = of.ENABLE_WIKILINKS | of.ENABLE_TABLES | of.ENABLE_FOOTNOTES | of.ENABLE_MATH
    return pyromark.Markdown(options=options | of.ENABLE_STRIKETHROUGH | of.ENABLE_TASKLISTS)


def _of_body(text: str) -> Iterator[Link]:
    """The links and tags of Markdown without front matter."""
    if "[" not in text and _TAG.search(text) is None:
        return
    if "%%" in text:
        text = _COMMENT.sub(_without_comment, text)
    at = _characters(text)
    depth, code = 0, False  # inside so many links, in which no tag stands; inside a block of code
    for event, span in _parser().events_with_range(text, merge_text=True):
        if isinstance(event, str):
            continue
        (what, value), *_ = event.items()
        if what == "Start" and isinstance(value, dict):
            (block, fields), *_ = value.items()
            code |= block == "CodeBlock"
            if block in ("Link", "Image"):
                depth += 1
                start, end = at(span["start"]), at(span["end"])
                if link := _link(block == "Image", fields, start, end):
                    yield link
        elif what == "End":
            code &= value != "CodeBlock"
            depth -= value in ("Link", "Image")
        elif what == "Text" and not depth and not code:
            for tag in _TAG.finditer(text, at(span["start"]), at(span["end"])):
                if not tag.start() or text[tag.start() - 1].isspace():
                    yield Link(TAG, tag[1], "", tag.start(), tag.end())


def _without_comment(found: re.Match[str]) -> str:
    """Blanks in the place of a comment, and a letter before what follows it in its line, which would be code behind so
    many blanks."""
    if not found["note"]:
        return found[0]
    blank = _BLANK.sub(" ", found[0])
    at = blank.rfind("\n") + 1
    goes_on = _GOES_ON.match(found.string, found.end())
    return f"{blank[:at]}x{blank[at + 1 :]}" if goes_on else blank


def _link(shown: bool, fields: Mapping[str, Any], start: int, end: int) -> Link | None:
    """A link, or what is `shown` in its place (an embed, an image); None for a web address and for a part of the
    same text."""
    kind, target = fields["link_type"], str(fields["dest_url"])
    wiki = isinstance(kind, dict)
    outside = not wiki and _ADDRESS.match(target) and not target.startswith(INLINE_TEXT)
    if outside or kind in ("Autolink", "Email") or "://" in target:
        return None
    if wiki:
        target = target.removesuffix("\\")  # between the cells of a table the bar is written as \|
    page, _, part = (text.strip() for text in target.partition("#"))
    if not page or (wiki and _NO_PAGE.search(target)):
        return None
    if wiki:
        return Link(EMBED if shown else WIKILINK, page, part, start, end)
    page, part = unquote(page, errors="replace"), unquote(part, errors="replace")
    return Link(IMAGE if shown else INLINE, page, part, start, end)


def _of_matter(text: str, matter: Mapping[str, Any]) -> Iterator[Link]:
    """The wikilinks and tags of the front matter; each line is read alone, since YAML is no Markdown."""
    start = 0
    for line in text.split("\n"):
        if "[[" in line:
            bare = line.lstrip()
            indent = start + len(line) - len(bare)
            for link in _of_body(bare):
                if link.kind in (WIKILINK, EMBED):
                    yield replace(link, start=link.start + indent, end=link.end + indent)
        start += len(line) + 1
    key = _TAGS_KEY.search(text)
    at = key.end() if key else 0
    for tag in tags(matter):
        found = text.find(tag, at)
        yield (Link(TAG, tag, "", at, at) if found < 0 else Link(TAG, tag, "", found, found + len(tag)))


def _characters(text: str) -> Callable[[int], int]:
    """Offsets of characters for those of UTF-8 bytes, which links inside of links ask for in any order."""
    if text.isascii():
        return lambda byte: byte
    parts = [text[at : at + BLOCK].encode("utf-8", "replace") for at in range(0, len(text), BLOCK)]
    starts = list(accumulate(map(len, parts), initial=0))

    def at(byte: int) -> int:
        block = min(bisect(starts, byte), len(parts)) - 1
        return block * BLOCK + len(parts[block][: byte - starts[block]].decode("utf-8", "replace"))

    return at


def rows_of_links(
    document_id: str, uri: str, text: str, hrefs: Sequence[tuple[int, int, str, str]] = ()
) -> list[dict[str, Any]]:
    """The rows of the table `links` that follow from one document alone. `hrefs`: its links of HTML, as (start, end,
    page, part)."""
    lines = Lines(text) if hrefs else None
    found = [
        Link(HREF, page, part, start, end, lines.at(start))
        for start, end, page, part in hrefs
        if lines and end <= len(text)  # of a licence the end is left out
    ]
    return [
        {
            "document_id": document_id,
            "kind": link.kind,
            "target": link.target,
            "part": link.part,
            "line": link.line,
            "char_start": link.start,
            "char_end": link.end,
        }
        for link in (read_links(text) if holds_links(uri) else found)
    ]
