"""HTML as text: the main text of a page, its title, date and author, tables with every cell in its column.

The parser is that of libxml2 (lxml). What it reports is put together as a tree here, since the trees of libxml2 end at
2,048 levels, which old pages with unclosed tags have."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder

from graphrag_mcp.sources import formulas
from graphrag_mcp.sources.decode import decode, decode_as, web_encoding
from graphrag_mcp.sources.links import page_of
from graphrag_mcp.sources.piece import Piece, blocks, grid, raised, table_lines, tidy

_BLOCK = frozenset(
    "address article aside blockquote body caption center dd details dialog div dl dt fieldset figcaption figure "
    "footer foreignobject form h1 h2 h3 h4 h5 h6 head header hr html iframe legend li main nav ol option p pre section "
    "select summary table tbody text tfoot thead tr ul".split()
)
_HEADINGS = frozenset("h1 h2 h3 h4 h5 h6".split())
_GAP = _HEADINGS | frozenset("p table ul ol dl pre blockquote section article div hr iframe".split())
# What stands around the main text of a page (WHATWG HTML, 4.3); inside of it these are content.
_AROUND = frozenset(("header", "footer", "aside"))
_MAIN = frozenset(("main", "article"))
_TOP_HEADINGS = frozenset(("h1", "h2", "h3"))
# Elements whose text is not shown.
_UNREAD = frozenset("button canvas datalist noscript script style template title".split())
# Elements that are left out, or of which parts are, and whose end tag no page may omit (WHATWG HTML, 13.1.2.4).
_ENDED = "aside button canvas datalist footer header nav noscript ruby script style template title".split()
# Their tags, and comments, in which none is.
_ENDED_TAGS = re.compile(
    rf"<!--(?:-?>|.*?(?:--!?>|\Z))|<(?P<end>/?)(?P<name>{'|'.join(_ENDED)})(?=[\s/>])(?P<attributes>[^>]*)", re.S | re.I
)
# Those in which there are no tags but their end.
_RAW_ENDS = {name: re.compile(f"</{name}", re.I) for name in ("script", "style", "title")}
# Elements of SVG of which nothing is shown (SVG 2, 5.2).
_UNDRAWN = frozenset("clippath defs desc marker mask metadata pattern symbol".split())
# Types of inputs whose value is shown (WHATWG HTML, 4.10.5.1).
_SHOWN = frozenset(" text search tel url email date month week time datetime-local number".split(" "))
# Around the number of a link, in front of its first word, until its place is known: no character (Unicode 23.7).
_MARK = "\ufdd0"
QUOTE = "\ufdd1"  # begins the lines of a quotation in a mail
_MARKED = re.compile(f"{_MARK}(\\d+){_MARK}")
_LINKS = 3  # paragraphs of links alone, one after the other, that are a menu
QUOTES = 10  # levels of quotations that are written: each is a mark in each line
FRAMES = 3  # of frames that hold frames, in the page itself
# Tables in cells of tables that are written as such. A table is written again by each one around it: with 20,000 in
# each other a page of 1 MB takes 28 s, with these 0.8 s.
TABLES = 50
LEAST = 0.25  # of a page's text that its main text must be; with less the whole page is taken
# Elements in which HTML has text alone, though it is the markup of a page (WHATWG HTML, 13.1.2).
_UNPARSED = frozenset("noembed noframes xmp".split())
# Comments, scripts and tags. `open` is a quote that does not close: no other follows, or the next one begins the value
# of another tag. Each alternative takes what it begins, so that the time grows with the length of the page alone.
_TAGS = re.compile(
    r"""<!--(?:-?>|.*?(?:--!?>|\Z))|<(script|style)\b[^>]*+>.*?(?:</\1|\Z)
    |(?P<before><[a-z](?:[^>=]++|=\s*+(?:"(?:[^"<]*+"|[^"]*+"(?=\s|/?>))|'(?:[^'<]*+'|[^']*+'(?=\s|/?>))|(?!["'])))*+)
    (?:>|\Z|(?P<equals>=\s*+)(?P<open>["']))""",
    re.I | re.S | re.X,
)
_UNSEEN = re.compile(r"display\s*:\s*none")
_SPACE = re.compile(r"[ \t\n\f]+")
DECLARED = re.compile(rb"""<meta[^>]{0,200}?charset=["' ]{0,2}([A-Za-z0-9_.:-]{2,40})""", re.I)
_DATES = "article:published_time datepublished dc.date dcterms.created dcterms.date date pubdate".split()
_AUTHORS = "author article:author dc.creator dcterms.creator".split()


@dataclass
class Page:
    """What a page says: `text` is its main text."""

    title: str = ""
    text: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    links: list[tuple[int, int, str, str]] = field(default_factory=list)  # as a Document has them


def read_html(data: bytes, suffix: str) -> Iterator[Piece]:
    """The main text of a page, with its title, metadata and links."""
    page, metadata = decoded(data)
    yield Piece(page.text, page.title, metadata=page.metadata | metadata, links=tuple(page.links))


def decoded(data: bytes, whole: bool = False) -> tuple[Page, dict[str, Any]]:
    """The page of bytes in the encoding that they declare, and what was found of the encoding.
    `whole`: also what stands around the main text, but for menus, as in the chapters of a book."""
    declared = DECLARED.search(data[:4096])
    try:
        data.decode("utf-8")
        known = "utf-8"  # whatever it says
    except UnicodeDecodeError:
        known = web_encoding(declared[1].decode("ascii")) if declared else ""
    markup, metadata = decode(data) if known in ("", "utf-8") else decode_as(data, known)
    return readable(markup, whole=whole), metadata


def readable(markup: str, mail: bool = False, whole: bool = False) -> Page:
    """The page of some markup. `mail`: quotations of earlier mails, as programs mark them, are lines with
    QUOTE. `whole`: as in `decoded`."""
    root = tree(markup)
    writer = _Writer(mail)
    writer.walk(root)
    if writer.layouts:  # known when they end: the page is read once more, their cells as blocks
        writer = _Writer(mail, writer.layouts)
        writer.walk(root)
    return writer.page(whole)


class _Builder(TreeBuilder):
    """Builds the tree of what lxml reports, whose attributes are in a mapping of its own. One element is around all,
    since pages go on behind `</html>`."""

    def __init__(self) -> None:
        super().__init__()
        self.start("html", {})

    def start(self, tag: str, attributes: Mapping[str, str]) -> Element:  # pyright: ignore
        return super().start(tag, dict(attributes))

    def close(self) -> Element:
        self.end("html")
        return super().close()


def tree(markup: str) -> Element:
    """The elements of a page, with names in lower case."""
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue]

    parser = etree.HTMLParser(target=_Builder(), encoding="utf-8", huge_tree=True)
    # An open quote would take in the rest of the page. As a character of the value it ends with its tag.
    closed = _TAGS.sub(
        lambda tag: f"{tag['before']}{tag['equals']}&quot;" if tag["open"] else tag[0], _without_unclosed(markup)
    )
    parser.feed(closed.encode("utf-8", "replace"))
    root = Element("html")
    with suppress(etree.LxmlError):  # nothing is in it
        root = parser.close()
    return root


def _without_unclosed(markup: str) -> str:
    """The markup with `div` for each element that would be left out and has no end tag: the rest of the page may stand
    in it, and no parser knows where it should end."""
    opened: dict[str, list[int]] = {name: [] for name in _ENDED}
    at = 0
    while tag := _ENDED_TAGS.search(markup, at):
        at = tag.end()
        name = (tag["name"] or "").lower()  # "": a comment
        if name and tag["end"]:
            del opened[name][-1:]
        elif name and not tag["attributes"].endswith("/"):
            opened[name].append(tag.start("name"))
            # Where one has no end, those behind it have none either: each page is searched once.
            if name in _RAW_ENDS and len(opened[name]) == 1 and (end := _RAW_ENDS[name].search(markup, at)):
                at = end.start()
    parts, before = list[str](), 0
    for start, name in sorted((start, name) for name, starts in opened.items() for start in starts):
        parts += [markup[before:start], "div"]
        before = start + len(name)
    return "".join(parts) + markup[before:]


def _number(value: str | None, other: int) -> int:
    """The number of an item of a list, from 1; `other` where none is given."""
    return int(value) if value and re.fullmatch("[1-9][0-9]{0,5}", value) else other


@dataclass(frozen=True, slots=True)
class _Inside:
    """What the text of an element is, as are the elements in it."""

    main: bool = False  # inside of <main> or <article>
    around: bool = False  # of a header, an aside, a footer, which no article is around
    menu: bool = False
    ruby: bool = False  # where annotations are left out, and the text that they are of is read
    pre: bool = False
    raised: bool = False
    author: bool = False
    drawing: bool = False  # in a picture of SVG: only blocks have text, those of SVG and those of a page behind it
    quotes: int = 0  # of earlier mails
    frames: int = 0


@dataclass
class _Table:
    element: Element
    heading: bool = False  # h1 to h3 in a cell, also of a table inside of it
    rows: list[list[tuple[str, int, int]]] = field(default_factory=list)
    cell: tuple[int, int] | None = None  # spans of the open cell
    words: list[str] = field(default_factory=list)  # its text

    def end_cell(self) -> None:
        if self.cell is not None:
            if not self.rows:
                self.rows.append([])
            self.rows[-1].append((" ".join("".join(self.words).split()), *self.cell))
        self.cell, self.words = None, []

    def lays_out(self) -> bool:
        """Does it place parts of a page? Data are a second row with several cells that have text."""
        several = sum(sum(bool(text) for text, _, _ in row) > 1 for row in self.rows)
        return self.heading and several < 2


@dataclass
class _Link:
    """A link and the pieces of its text. `page`: another page of the folder that it leads to, or ""."""

    page: str = ""
    part: str = ""
    words: list[str] = field(default_factory=list)


@dataclass
class _Part:
    """A paragraph, a heading, a table; "" is a gap. `marked`: its text with the numbers of links; `links`: characters
    of it that are links."""

    marked: str
    inside: _Inside
    links: int = 0
    text: str = field(init=False)

    def __post_init__(self) -> None:
        self.text = _MARKED.sub("", self.marked) if _MARK in self.marked else self.marked

    @property
    def level(self) -> int:
        """The level of a heading, 0 of another part."""
        return len(self.text) - len(self.text.lstrip("#"))


class _Writer:
    """Writes the text of elements: whitespace as in a browser, structure as in Markdown."""

    def __init__(self, mail: bool, layouts: frozenset[Element] = frozenset()) -> None:
        """`layouts`: tables whose cells are blocks."""
        self.layouts = frozenset[Element]()  # tables that turned out to lay out the page
        self._mail = mail
        self._blocks = layouts
        self._title = ""
        self._meta: dict[str, str] = {}  # of meta elements, by their names
        self._base = ""  # what the paths of links begin at, where the page says it
        self._parts: list[_Part] = []
        self._line: list[str] = []  # pieces of the line being written
        self._links = 0  # characters of links in it
        self._pages: list[_Link] = []  # links to other pages, by number
        self._link: _Link | None = None  # the open link
        self._prefix = ""  # of the next line
        self._tables: list[_Table] = []
        # one number per open list: 0 for bullets, else the next item's number
        self._lists: list[int] = []
        self._inside = _Inside()

    def walk(self, root: Element) -> None:
        """Write an element and all in it. A stack holds what is left, since pages are deeper than Python may call."""
        left: list[tuple[Element, _Inside | None]] = [(root, None)]
        while left:
            element, outer = left.pop()
            if outer is not None:
                self._end(element)
                self._inside = outer
            elif self._is_shown(element):
                outer, children = self._inside, [*element]
                self._begin(element)
                self._inside = self._of(element)
                if element.tag == "iframe" or element.tag in _UNPARSED:
                    markup = (element.get("srcdoc") if element.tag == "iframe" else element.text) or ""
                    self._inside = replace(outer, frames=outer.frames + 1)
                    children = [tree(markup)] if outer.frames < FRAMES else []
                    self._text("" if children else markup)
                elif element.tag == "math":
                    self._text(formulas.as_text(element))
                    children = []
                else:
                    self._text(element.text)
                left.append((element, outer))
                left += ((child, None) for child in reversed(children))
                continue
            if element is not root:
                self._text(element.tail)

    def _is_shown(self, element: Element) -> bool:
        """Does a reader see it? The words of some elements that no one sees are metadata."""
        name, attributes = element.tag, element.attrib
        if name == "title" and not self._title and not self._inside.drawing:
            self._title = " ".join((element.text or "").split())
        elif name == "script" and "ld+json" in attributes.get("type", ""):
            with suppress(ValueError, RecursionError):
                self._linked_data(json.loads(element.text or ""))
        drawing = self._inside.drawing or name == "svg"
        return name in ("html", "body") or not (
            name in _UNREAD
            # An option is text alone: with elements in it its end was missed, and they stand behind it.
            or (name == "option" and "selected" not in attributes and not len(element))
            or (name in ("rp", "rt") and self._inside.ruby)
            or "hidden" in attributes
            or attributes.get("aria-hidden") == "true"
            or _UNSEEN.search(attributes.get("style", ""))
            or (drawing and (name in _UNDRAWN or attributes.get("display") == "none"))
        )

    def _linked_data(self, value: Any) -> None:
        """Date and author of schema.org, which pages have in JSON-LD."""
        for node in value if isinstance(value, list) else [value]:
            if not isinstance(node, dict):
                continue
            if isinstance(node.get("@graph"), list):
                self._linked_data(node["@graph"])
            if isinstance(node.get("datePublished"), str):
                self._meta.setdefault("datepublished", node["datePublished"])
            authors = node.get("author")
            for author in authors if isinstance(authors, list) else [authors]:
                name = author.get("name") if isinstance(author, dict) else author
                if isinstance(name, str):
                    self._meta.setdefault("author", name)

    def _of(self, element: Element) -> _Inside:
        """What stands in this element, which stands in the open one."""
        name, attributes, outer = element.tag, element.attrib, self._inside
        cited = attributes.get("type") == "cite" or "quote" in attributes.get("class", "")
        by = attributes.get("itemprop") == "author" or attributes.get("rel") == "author"
        inside = _Inside(
            main=outer.main or name in _MAIN or attributes.get("role") == "main",
            around=outer.around or name in _AROUND,
            menu=outer.menu or name == "nav",
            ruby=outer.ruby or name == "ruby",
            pre=outer.pre or name == "pre",
            raised=name == "sup" or (outer.raised and name not in _BLOCK),
            author=outer.author or by,
            drawing=name == "svg" or (outer.drawing and name not in _BLOCK),
            quotes=outer.quotes + (self._mail and name == "blockquote" and cited),
            frames=outer.frames,
        )
        return outer if inside == outer else inside

    def _text(self, raw: str | None) -> None:
        if not raw or self._inside.drawing:
            return
        piece = raw if self._inside.pre else _SPACE.sub(" ", raw)
        if self._inside.raised:
            piece = raised(piece)
        words = piece.strip()
        if self._inside.author and words:
            self._meta.setdefault("author", words)
        piece = piece.replace(_MARK, "").replace(QUOTE, "")
        if self._link and words:
            self._links += len(words)
            first = not self._link.words
            self._link.words.append(piece)
            if first and self._link.page:
                at = len(piece) - len(piece.lstrip())
                piece = f"{piece[:at]}{_MARK}{len(self._pages)}{_MARK}{piece[at:]}"
                self._pages.append(self._link)
        self._add(piece)

    def _add(self, piece: str) -> None:
        """Append to the open cell of a table, else to the line."""
        table = self._tables[-1] if self._tables else None
        (table.words if table and table.cell is not None else self._line).append(piece)

    def _begin(self, element: Element) -> None:
        name, attributes = element.tag, element.attrib
        if name == "meta":
            keys = (attributes.get(key, "") for key in ("property", "name", "itemprop"))
            key = next(filter(None, keys), "")
            self._meta.setdefault(key.lower(), attributes.get("content", ""))
        elif name == "base":
            self._base = self._base or attributes.get("href", "")
        elif name == "time" and attributes.get("datetime"):
            self._meta.setdefault("time", attributes["datetime"])
        elif name == "img" and (about := attributes.get("alt", "").strip()):
            self._text(f" [image: {about}] ")
        elif name == "input" and attributes.get("type", "").lower() in _SHOWN:
            self._text(f" {attributes.get('value', '').strip()} ")
        elif name == "a" and "href" in attributes:
            page, part = page_of(attributes["href"], self._base) or ("", "")
            self._link = _Link(page, part)
        elif name == "br":
            self._add(" " if self._tables else "\n")
        elif name == "tspan" and not attributes.keys().isdisjoint(("x", "y")):
            self._text(" ")  # it begins at another place
        elif name in ("td", "th", "tr", "table"):
            self._begin_table(element)
        elif name in _BLOCK:
            self._edge(name)
            if not self._tables:
                self._structure(element)
        if name in _TOP_HEADINGS:
            for table in self._tables:
                table.heading = True

    def _end(self, element: Element) -> None:
        name = element.tag
        if name == "a":
            self._link = None
        elif name in ("td", "th", "tr", "table"):
            if self._tables and element is self._tables[-1].element:
                self._end_table()
            elif self._tables and name != "table":
                self._tables[-1].end_cell()
            elif not self._tables:
                self._end_line()
                self._gap()
        elif name in _BLOCK:
            self._edge(name)
            if self._tables:
                pass
            elif name in ("ul", "ol", "dl"):
                del self._lists[-1:]
            elif name in _HEADINGS:
                self._prefix = ""

    def _edge(self, name: str) -> None:
        """A block begins or ends."""
        if self._tables:
            self._add(" ")  # a paragraph inside a cell stays in its row
            return
        self._end_line()
        if name in _GAP and not (self._lists and name in ("ul", "ol", "p")):
            self._gap()

    def _structure(self, element: Element) -> None:
        name = element.tag
        if name in ("ul", "ol", "dl"):
            self._lists.append(_number(element.get("start"), 1) if name == "ol" else 0)
        elif name in _HEADINGS:
            self._prefix = "#" * int(name[1]) + " "
        elif name == "li":
            number = self._lists[-1] if self._lists else 0
            number = number and _number(element.get("value"), number)
            self._prefix = "  " * min(len(self._lists) - 1, 8) + (f"{number}. " if number else "- ")
            if number:
                self._lists[-1] = number + 1

    def _begin_table(self, element: Element) -> None:
        name = element.tag
        if name == "table":
            if not self._tables:
                self._end_line()
                self._gap()
            block = not self._tables and element in self._blocks
            if not block and len(self._tables) < TABLES:
                self._tables.append(_Table(element))
        elif not self._tables:
            self._end_line()
            self._gap()
        else:
            table = self._tables[-1]
            table.end_cell()
            if name == "tr":
                table.rows.append([])
            else:
                spans = (element.get(name, "") for name in ("colspan", "rowspan"))
                wide, tall = (_number(span, 1) for span in spans)
                table.cell = (wide, tall)

    def _end_table(self) -> None:
        table = self._tables.pop()
        table.end_cell()
        if table.lays_out():
            self.layouts |= {table.element}
        rows = [row for row in grid(table.rows) if any(row)]
        if self._tables:  # inside a cell of another: its words stand there
            words = "; ".join(", ".join(filter(None, row)) for row in rows)
            self._add(f" {words} ")
            return
        if len(rows) == 1 and len(rows[0]) == 1:  # for layout alone
            self._put(rows[0][0])
        elif rows:
            # A number of a link is no word of a cell, and takes no tokens.
            plain = [[_MARKED.sub("", cell) for cell in row] for row in rows]
            cut = [at for _, at in blocks(plain)] if len(rows) > 20 else [list(range(len(rows)))]
            lines = table_lines(rows)
            self._put("\n\n".join("\n".join(lines[at] for at in block) for block in cut))
        self._gap()

    def _gap(self) -> None:
        self._parts.append(_Part("", self._inside))

    def _put(self, text: str) -> None:
        if quoted := f"{QUOTE} " * min(self._inside.quotes, QUOTES):
            text = "\n".join(f"{quoted}{line}" for line in text.split("\n"))
        self._parts.append(_Part(text, self._inside, self._links))
        self._links = 0
        if self._link and self._link.words:  # an unclosed one would take in all that follows
            self._link = None

    def _end_line(self) -> None:
        content = "".join(self._line)
        self._line = []
        if self._inside.pre:
            self._put(content.strip("\n"))
            return
        lines = (" ".join(filter(None, line.split(" "))).strip() for line in content.split("\n"))
        if content := "\n".join(lines).strip():
            self._put(self._prefix + content)
            self._prefix = ""

    def page(self, every: bool) -> Page:
        """`every`: with what stands around the main text, but for menus."""
        self._end_line()
        parts = [part for part in self._parts if part.text.strip() or not part.text]
        whole = sum(len(part.text) for part in parts)
        has_main = not every and any(part.inside.main for part in parts)
        kept = [
            part for part in parts if not part.inside.menu and (every or part.inside.main or not part.inside.around)
        ]
        if has_main:  # beside it stand other articles, related links, comments
            kept = [part for part in kept if part.inside.main or part.links * 2 < len(part.text) or not part.text]
        kept = _without_menus(kept)
        if sum(len(part.text) for part in kept) < LEAST * whole:
            kept = parts
        pieces = _MARKED.split(tidy("\n".join(part.marked for part in kept)))
        text = "".join(pieces[::2])
        metadata: dict[str, Any] = {}
        for name, keys in (("date", [*_DATES, "time"]), ("author", _AUTHORS)):
            values = (" ".join(self._meta.get(key, "").split()) for key in keys)
            value = next(filter(None, values), "")
            if value and not value.startswith("http"):
                metadata[name] = value[:200]
        links = list(self._placed(pieces, text))
        return Page(self._title, text + "\n" if text else "", metadata, links)

    def _placed(self, pieces: list[str], text: str) -> Iterator[tuple[int, int, str, str]]:
        """The links to other pages with their places. `pieces`: of the text, with the numbers of links between them.
        Words that are written otherwise there, as of a link with a line break, have the place where they begin."""
        start, seen = 0, set[int]()  # a header that a table shows again holds its links once
        for before, number in zip(pieces[::2], map(int, pieces[1::2]), strict=False):
            start += len(before)
            if number not in seen:
                seen.add(number)
                link = self._pages[number]
                words = " ".join("".join(link.words).split())
                yield (start, start + len(words) * text.startswith(words, start), link.page, link.part)


def _without_menus(parts: list[_Part]) -> list[_Part]:
    """Without runs of paragraphs that are links and nothing else."""
    kept: list[_Part] = []
    run: list[_Part] = []
    for part in [*parts, _Part("# end", _Inside())]:
        if not part.text or part.links >= 0.8 * len(part.text.lstrip("-# 0123456789.")):
            run.append(part)
            continue
        menu = sum(1 for paragraph in run if paragraph.text) >= _LINKS
        if menu and part.level:
            last = next((at for at in range(len(kept) - 1, -1, -1) if kept[at].text), -1)
            # Nothing else stands below its heading, which is not that of the page.
            if last >= 0 and kept[last].level >= max(part.level, 2):
                del kept[last]
        kept += [paragraph for paragraph in run if not paragraph.text] if menu else run
        run = []
        kept.append(part)
    return kept[:-1]
