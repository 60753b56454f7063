"""HTML as text: the main text of a page, its title, date and author, tables with every cell in its column.

Read in one pass without the standard library's HTMLParser, which is quadratic on unclosed tags
(`<a<a...`: 4.6 s for 80 KB on Python 3.11)."""

from __future__ import annotations

import contextlib
import html
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from graphrag_mcp.sources.decode import decode, decode_as, web_encoding
from graphrag_mcp.sources.formulas import as_text
from graphrag_mcp.sources.links import page_of
from graphrag_mcp.sources.piece import Piece, blocks, grid, raised, table_lines, tidy

_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9:-]{0,40}+)(?=[\s/>])")
_QUOTED_END = re.compile(r"""(?:[^"'>]++|"[^"]*+"|'[^']*+')*+>""")
_ATTRIBUTE = re.compile(
    r"""([A-Za-z][\w:.-]{0,40})(?:\s{0,20}=\s{0,20}("[^"]*"|'[^']*'|[^\s"'>]+))?"""
)
_RAW = {  # nothing inside is text for a reader, up to the closing tag
    name: re.compile(rf"</{name}(?=[\s/>])", re.I)
    for name in tuple("script style template iframe canvas math title noscript textarea".split())
}
_BLOCK = frozenset(
    "address article aside blockquote body caption center dd details dialog div dl dt fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 head header hr html legend li main nav ol option p pre section select summary table "
    "tbody tfoot thead title tr ul".split()
)
_GAP = frozenset("p h1 h2 h3 h4 h5 h6 table ul ol dl pre blockquote section article div hr".split())
# What stands around the main text of a page (WHATWG HTML, 4.3); inside of it these are content.
_AROUND = frozenset(("header", "footer", "aside"))
_MAIN = frozenset(("main", "article"))
_TOP_HEADINGS = frozenset(("h1", "h2", "h3"))
# Elements whose text is not shown: of a ruby annotation the text that it is of is read.
_UNREAD = frozenset(("button", "datalist", "rt", "rp"))
# Elements of SVG whose text is shown, and those of which nothing is (SVG 2, 5.2).
_DRAWN = frozenset(("text", "foreignobject"))
_UNDRAWN = frozenset("clippath defs desc marker mask metadata pattern symbol".split())
_FLAGGED = {*_MAIN, *_UNREAD, *_DRAWN, *_UNDRAWN, "option", "pre", "sup", "svg"}
# Types of inputs whose value is shown (WHATWG HTML, 4.10.5.1).
_SHOWN = frozenset(
    " text search tel url email date month week time datetime-local number".split(" ")
)
_VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())
_CELLS = ("td", "th", "caption")
_TABLE_PARTS = frozenset((*_CELLS, *"tr tbody thead tfoot".split()))
# Open elements that a start tag ends (WHATWG HTML, 13.2.6.4), and those through which no tag ends another.
_ENDED_BY = {
    **dict.fromkeys(_BLOCK - {"option", "title", "head", "html", "body", "legend"}, ("p",)),
    **dict.fromkeys(("tr", "tbody", "thead", "tfoot"), (*_CELLS, "tr")),
    **dict.fromkeys(_CELLS, _CELLS),
    **{name: (name, "p") for name in ("li", "form")},
    **dict.fromkeys(("dt", "dd"), ("dt", "dd", "p")),
    **{name: (name,) for name in ("a", "option", "button")},
    **dict.fromkeys(("rt", "rp", "rb"), ("rt", "rp")),
    "ruby": (),
}
_SCOPES = {
    "li": (*_CELLS, "table", "ul", "ol"),
    **dict.fromkeys(("dt", "dd"), (*_CELLS, "table", "dl")),
    **dict.fromkeys(_TABLE_PARTS, ("table",)),
    "table": (),
}
_SCOPE = (*_CELLS, "table")
_DEEPEST = 5_000  # open elements
# Around the number of a link, in front of its first word, until its place is known: no character (Unicode 23.7).
_MARK = "\ufdd0"
QUOTE = "\ufdd1"  # begins the lines of a quotation in a mail
_MARKED = re.compile(f"{_MARK}(\\d+){_MARK}")
_LINKS = 3  # paragraphs of links alone, one after the other, that are a menu
QUOTES = 10  # levels of quotations that are written: each is a mark in each line
FRAMES = 3  # of frames that hold frames, in the page itself
LEAST = 0.25  # of a page's text that its main text must be; with less the whole page is taken
# int() refuses thousands of digits; no character has eight
_NUMERIC = re.compile(r"&#[xX]?[0-9a-fA-F]{8,}+;?")
_UNSEEN = re.compile(r"display\s*:\s*none")
_SPACE = re.compile(r"[ \t\n\f]+")
_SPACE_RUN = re.compile(r" {2,}")
DECLARED = re.compile(rb"""<meta[^>]{0,200}?charset=["' ]{0,2}([A-Za-z0-9_.:-]{2,40})""", re.I)
_DATES = (
    "article:published_time datepublished dc.date dcterms.created dcterms.date date pubdate".split()
)
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
    writer = _written(markup, mail, frozenset())
    page = writer.page(whole)
    if not writer.layouts:
        return page
    return _written(markup, mail, frozenset(writer.layouts)).page(whole)


def _written(markup: str, mail: bool, layouts: frozenset[int]) -> _Writer:
    """The writer that has read the markup. `layouts`: numbers of the tables whose cells are blocks."""
    writer = _Writer(mail, layouts)
    _feed(writer, markup, 0)
    return writer


def _feed(writer: _Writer, markup: str, depth: int) -> None:
    """Read the markup, which stands in so many frames."""
    position, last_end, quoted = 0, markup.rfind(">"), True
    while True:
        at = markup.find("<", position)
        if at < 0 or at > last_end:  # no tag can end any more: the rest is text
            writer.text(markup[position:])
            break
        writer.text(markup[position:at])
        if markup.startswith("<!--", at):
            end = markup.find("-->", at + 4)
            position = len(markup) if end < 0 else end + 3
            continue
        tag = _TAG.match(markup, at)
        if tag is None:
            if markup[at + 1 : at + 2] in ("!", "?", "/"):
                position = markup.find(">", at) + 1
            else:
                writer.text("<")
                position = at + 1
            continue
        closed = _QUOTED_END.match(markup, tag.end()) if quoted else None
        # A quote that never closes fails once, after which quotes are not looked at.
        quoted = quoted and closed is not None
        position = closed.end() if closed else markup.find(">", tag.end()) + 1
        name = tag[2].lower()
        inside = markup[tag.end() : min(position, tag.end() + 4_000)]
        if not tag[1] and name in _RAW and not markup.startswith("/>", position - 2):
            end_tag = _RAW[name].search(markup, position)
            end = end_tag.start() if end_tag else len(markup)
            writer.raw(name, inside, markup[position:end])
            if name == "math":
                writer.text(html.escape(as_text(markup[position:end])))
            if name == "iframe" and "srcdoc" in inside and depth < FRAMES:
                whole = markup[tag.end() : position]
                with writer.frame(whole):
                    _feed(writer, _attributes(whole).get("srcdoc", ""), depth + 1)
            position = end
        else:
            writer.tag(name, bool(tag[1]), inside)
            if writer.draws() and markup.startswith("/>", position - 2):
                writer.tag(name, True, "")


def _attributes(inside: str) -> dict[str, str]:
    found = _ATTRIBUTE.finditer(inside)
    return {match[1].lower(): html.unescape((match[2] or "").strip("\"'")) for match in found}


def _number(value: str | None, other: int) -> int:
    """The number of an item of a list, from 1; `other` where none is given."""
    return int(value) if value and re.fullmatch("[1-9][0-9]{0,5}", value) else other


@dataclass
class _Table:
    number: int  # of the tables of the page, from 1
    heading: bool = False  # h1 to h3 in a cell, also of a table inside of it
    rows: list[list[tuple[str, int, int]]] = field(default_factory=list)
    cell: tuple[int, int] | None = None  # spans of the open cell
    parts: list[str] = field(default_factory=list)  # its text

    def end_cell(self) -> None:
        if self.cell is not None:
            if not self.rows:
                self.rows.append([])
            self.rows[-1].append((" ".join("".join(self.parts).split()), *self.cell))
        self.cell, self.parts = None, []

    def lays_out(self) -> bool:
        """Does it place parts of a page? Data are a second row with several cells that have text."""
        several = sum(sum(bool(text) for text, _, _ in row) > 1 for row in self.rows)
        return self.heading and several < 2


@dataclass
class _Link:
    """A link to another page, and the pieces of its text."""

    page: str
    part: str
    words: list[str] = field(default_factory=list)


@dataclass
class _Part:
    """A paragraph, a heading, a table; "" is a gap. `links`: characters of it that are links. `marked`: its text with
    the numbers of the links that lead to other pages of its folder; "" where it has none."""

    text: str
    links: int
    main: bool = False  # inside <main> or <article>
    # of a header, an aside, a footer, which no article is around; of a menu: those that have an end tag
    around: bool = False
    menu: bool = False
    marked: str = ""


@dataclass(slots=True)
class _Element:
    """An open element."""

    name: str
    seen: bool  # by a reader
    # what its content is: hidden, main, a (with a page), pre, author, quote, table, svg, drawn
    flags: tuple[str, ...]
    start: int  # parts before it
    links: int  # characters of links before it in its line


class _Writer:
    """Collects text between tags: whitespace as in a browser, structure as in Markdown. Elements without an
    end tag end where they do in HTML5."""

    def __init__(self, mail: bool, layouts: frozenset[int]) -> None:
        self.layouts: list[int] = []  # numbers of the tables that turned out to lay out the page
        self.title = ""
        self.metadata: dict[str, Any] = {}
        self._meta: dict[str, str] = {}  # of meta elements
        self._mail = mail
        self._parts: list[_Part] = []
        self._line: list[str] = []  # pieces of the line being written
        self._links = 0
        self._pages: list[_Link] = []  # links to other pages, by number
        self._page: _Link | None = None  # the open one of them
        self._base = ""  # what the paths of links begin at, where the page says it
        self._prefix = ""
        self._tables: list[_Table] = []
        self._blocks = layouts  # numbers of the tables whose cells are blocks
        self._count_tables = 0
        # one number per open list: 0 for bullets, else the next item's number
        self._lists: list[int] = []
        self._elements: list[_Element] = []
        # where in `_elements` those of a name stand; "": blocks and parts of tables
        self._places: defaultdict[str, list[int]] = defaultdict(list)
        self._frame = 0  # elements outside of the frame that is read
        self._open: Counter[str] = Counter()  # flags of open elements
        # By the number of a part: menus that begin at it, less those that end before it. So for `part.around`.
        self._menus: Counter[int] = Counter()
        self._around: Counter[int] = Counter()

    def raw(self, name: str, inside: str, content: str) -> None:
        if name == "title" and not self.title and not self.draws():
            self.title = " ".join(html.unescape(_NUMERIC.sub("", content)).split())
        elif name == "textarea" and "hidden" not in self._flags(name, _attributes(inside)):
            self.text(content)
        elif name == "script" and "ld+json" in inside:
            with contextlib.suppress(ValueError, RecursionError):
                self._linked_data(json.loads(content))

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

    def text(self, raw: str) -> None:
        if not raw or self._open["hidden"] or self._open["svg"] > self._open["drawn"]:
            return
        piece = html.unescape(_NUMERIC.sub("", raw) if "&#" in raw else raw) if "&" in raw else raw
        piece = piece if self._open["pre"] else _SPACE.sub(" ", piece)
        if self._open["a"]:
            self._links += len(piece.strip())
        if self._open["sup"]:
            piece = raised(piece)
        if self._open["author"] and piece.strip():
            self._meta.setdefault("author", piece.strip())
        piece = piece.replace(_MARK, "").replace(QUOTE, "")
        if self._page and piece.strip():
            if not self._page.words:
                first = len(piece) - len(piece.lstrip())
                number = f"{_MARK}{len(self._pages)}{_MARK}"
                piece, words = f"{piece[:first]}{number}{piece[first:]}", piece
                self._pages.append(self._page)
                self._page.words.append(words)
            else:
                self._page.words.append(piece)
        table = self._tables[-1] if self._tables else None
        (table.parts if table and table.cell is not None else self._line).append(piece)

    def draws(self) -> bool:
        """Is a picture of SVG open, whose elements `/>` ends?"""
        return self._open["svg"] > 0

    @contextlib.contextmanager
    def frame(self, inside: str) -> Iterator[None]:
        """A page in the page: it ends no element around it, and its elements end with it."""
        self.tag("section", False, inside)
        outer, self._frame = self._frame, len(self._elements)
        yield
        self._end_from(self._frame)
        self._frame = outer
        self.tag("section", True, "")

    def tag(self, name: str, closing: bool, inside: str) -> None:
        if closing:
            if not self._end(name, explicit=True) and name in _BLOCK and not self._open["hidden"]:
                self._end_line()
            return
        for ended in _ENDED_BY.get(name, ()):
            self._end(ended)
        attributes = _attributes(inside) if inside.strip(" />\n") else {}
        flagged = (attributes or name in _FLAGGED) and name not in _VOID
        flags = self._flags(name, attributes) if flagged else ()
        seen = not self._open["hidden"] and "hidden" not in flags
        element = _Element(name, seen, flags, len(self._parts), self._links)
        if seen:
            self._begin(name, attributes, element)
        nests = name in _BLOCK or name in _ENDED_BY or element.flags or self._places[name]
        if name in _VOID or not nests or len(self._elements) >= _DEEPEST:
            return
        for key in (name, "") if name in _BLOCK or name in _TABLE_PARTS else (name,):
            self._places[key].append(len(self._elements))
        self._elements.append(element)
        self._open.update(element.flags)

    def _flags(self, name: str, attributes: dict[str, str]) -> tuple[str, ...]:
        """What the content of an element is."""
        flags = []
        drawing = name == "svg" or self.draws()
        if name not in ("html", "body") and (
            name in _UNREAD
            or (name == "option" and "selected" not in attributes)
            or "hidden" in attributes
            or attributes.get("aria-hidden") == "true"
            or ("style" in attributes and _UNSEEN.search(attributes["style"]))
            or (drawing and (name in _UNDRAWN or attributes.get("display") == "none"))
        ):
            flags.append("hidden")
        if drawing and (name == "svg" or name in _DRAWN):
            flags.append("svg" if name == "svg" else "drawn")
        if name in _MAIN or attributes.get("role") == "main":
            flags.append("main")
        if name in ("pre", "sup") or (name == "a" and "href" in attributes):
            flags.append(name)
        if attributes.get("itemprop") == "author" or attributes.get("rel") == "author":
            flags.append("author")
        cited = attributes.get("type") == "cite" or "quote" in attributes.get("class", "")
        if self._mail and name == "blockquote" and cited:
            flags.append("quote")
        return tuple(flags)

    def _begin(self, name: str, attributes: dict[str, str], element: _Element) -> None:
        if name == "meta":
            key = (
                attributes.get("property")
                or attributes.get("name")
                or attributes.get("itemprop")
                or ""
            )
            self._meta.setdefault(key.lower(), attributes.get("content", ""))
        elif name == "base":
            self._base = self._base or attributes.get("href", "")
        elif name == "time" and attributes.get("datetime"):
            self._meta.setdefault("time", attributes["datetime"])
        elif name == "img" and attributes.get("alt", "").strip():
            self.text(f" [image: {attributes['alt'].strip()}] ".replace("&", "&amp;"))
        elif name == "input" and attributes.get("type", "").lower() in _SHOWN:
            if value := attributes.get("value", "").strip():
                self.text(f" {value} ".replace("&", "&amp;"))
        elif name == "a":
            to = page_of(attributes.get("href", ""), self._base)
            self._page = _Link(*to) if to else None
        if name in _TOP_HEADINGS:
            for table in self._tables:
                table.heading = True
        if name in ("td", "th", "tr", "table"):
            self._begin_table(name, attributes, element)
        elif name == "br":
            self._cell_or_line("\n" if not self._tables else " ")
        elif "drawn" in element.flags:
            self._edge(name)
        elif name == "tspan" and not attributes.keys().isdisjoint(("x", "y")):
            self.text(" ")  # it begins at another place
        elif name in _BLOCK:
            self._edge(name)
            if not self._tables:
                self._structure(name, False, attributes)
            element.start = len(self._parts)

    def _edge(self, name: str) -> None:
        """A block begins or ends."""
        if self._tables:
            self._cell_or_line(" ")  # a paragraph inside a cell stays in its row
            return
        self._end_line()
        if name in _GAP and not (self._lists and name in ("ul", "ol", "p")):
            self._gap()

    def _last(self, names: tuple[str, ...]) -> int:
        """Where the last open element of these names stands in `_elements`, -1 for none."""
        found = [places[-1] for name in names if (places := self._places.get(name))]
        return max(found) if found else -1

    def _end(self, name: str, explicit: bool = False) -> bool:
        """End the last open element of this name with those inside of it; False where none can be ended here.
        `explicit`: by its end tag, which ends no blocks inside of an inline element. No start tag in a picture of
        SVG ends what is around it."""
        places = self._places.get(name)
        outside = max(self._frame, self._last(_SCOPES.get(name, _SCOPE)))
        picture = self._last(("svg",))
        if not places or places[-1] < (outside if explicit else max(outside, picture)):
            return False
        at = places[-1]
        inline = name not in _BLOCK and name not in _TABLE_PARTS and not 0 <= picture <= at
        if inline and at < self._last(("",)):
            if name == "a":
                self._leave(self._elements[at], explicit)
                self._elements[at] = _Element("", False, (), 0, 0)
                self._places[name].pop()
            return name == "a"
        self._end_from(at, explicit)
        return True

    def _end_from(self, at: int, explicit: bool = False) -> None:
        """End the open elements from this place on. `explicit`: the first of them by its end tag."""
        while len(self._elements) > at:
            element = self._elements.pop()
            self._leave(element, explicit and len(self._elements) == at)
            for key in (element.name, ""):
                if self._places[key] and self._places[key][-1] == len(self._elements):
                    self._places[key].pop()

    def _leave(self, element: _Element, explicit: bool) -> None:
        name = element.name
        if element.seen:
            if name in ("td", "th", "tr", "table"):
                self._end_table_part(element)
            elif "drawn" in element.flags:
                self._edge(name)
            elif name in _BLOCK:
                self._edge(name)
                if not self._tables:
                    self._structure(name, True, {})
            if name == "a":
                self._page = None
        self._open.subtract(element.flags)
        if explicit and (name == "nav" or name in _AROUND):
            edges = self._menus if name == "nav" else self._around
            edges[element.start] += 1
            edges[len(self._parts)] -= 1
        elif "a" in element.flags and not explicit:
            # Without an end tag, how far the link goes is not known: what it took in is text.
            inside = self._parts[element.start :]
            self._links = 0 if inside else element.links
            for part in inside:
                part.links, element.links = element.links, 0

    def _cell_or_line(self, text: str) -> None:
        table = self._tables[-1] if self._tables else None
        (table.parts if table and table.cell is not None else self._line).append(text)

    def _begin_table(self, name: str, attributes: dict[str, str], element: _Element) -> None:
        if name == "table":
            if not self._tables:
                self._end_line()
                self._gap()
            self._count_tables += 1
            block = not self._tables and self._count_tables in self._blocks
            if not block and len(self._tables) < 50:
                self._tables.append(_Table(self._count_tables))
                element.flags = (*element.flags, "table")
            return
        if not self._tables:
            self._end_line()
            self._gap()
            return
        table = self._tables[-1]
        table.end_cell()
        if name == "tr":
            table.rows.append([])
        else:
            spans = (attributes.get("colspan", ""), attributes.get("rowspan", ""))
            wide, tall = (int(span) if span.isdigit() and len(span) < 6 else 1 for span in spans)
            table.cell = (max(1, wide), max(1, tall))

    def _end_table_part(self, element: _Element) -> None:
        if "table" in element.flags:
            self._end_table()
        elif element.name != "table" and self._tables:
            self._tables[-1].end_cell()
        elif not self._tables:
            self._end_line()
            self._gap()

    def _end_table(self) -> None:
        table = self._tables.pop()
        table.end_cell()
        if table.lays_out():
            self.layouts.append(table.number)
        rows = [row for row in grid(table.rows) if any(row)]
        if self._tables:  # inside a cell of another: its words stand there
            words = "; ".join(", ".join(filter(None, row)) for row in rows)
            self._cell_or_line(f" {words} ")
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

    def _structure(self, name: str, closing: bool, attributes: dict[str, str]) -> None:
        if name in ("ul", "ol", "dl"):
            if closing:
                del self._lists[-1:]
            elif len(self._lists) < 1000:
                self._lists.append(_number(attributes.get("start"), 1) if name == "ol" else 0)
        elif name[0] == "h" and name[1:].isdigit():
            self._prefix = "" if closing else "#" * int(name[1:]) + " "
        elif name == "li" and not closing:
            number = self._lists[-1] if self._lists else 0
            number = number and _number(attributes.get("value"), number)
            self._prefix = "  " * min(len(self._lists) - 1, 8) + (f"{number}. " if number else "- ")
            if number:
                self._lists[-1] = number + 1

    def _gap(self) -> None:
        self._parts.append(_Part("", 0))

    def _put(self, text: str) -> None:
        if quoted := f"{QUOTE} " * min(self._open["quote"], QUOTES):
            text = "\n".join(f"{quoted}{line}" for line in text.split("\n"))
        plain = _MARKED.sub("", text) if _MARK in text else text
        marked = text if plain != text else ""
        self._parts.append(_Part(plain, self._links, self._open["main"] > 0, marked=marked))
        self._links = 0
        if self._page and self._page.words:  # its place is in this part
            self._page = None

    def _end_line(self) -> None:
        if self._tables:
            return
        content = "".join(self._line)
        self._line = []
        if self._open["pre"]:
            self._put(content.strip("\n"))
            return
        content = "\n".join(line.strip() for line in content.split("\n")).strip()
        if content:
            self._put(self._prefix + _SPACE_RUN.sub(" ", content))
            self._prefix = ""

    def page(self, every: bool) -> Page:
        """`every`: with what stands around the main text, but for menus."""
        self._end_line()
        self._end_from(0)
        menus = around = 0
        for number, part in enumerate(self._parts):
            menus += self._menus[number]
            around += self._around[number]
            part.menu, part.around = menus > 0, around > 0 and not part.main
        parts = [part for part in self._parts if part.text.strip() or not part.text]
        whole = sum(len(part.text) for part in parts)
        has_main = not every and any(part.main for part in parts)
        kept = [part for part in parts if not part.menu and (every or not part.around)]
        if has_main:  # beside it stand other articles, related links, comments
            kept = [
                part
                for part in kept
                if part.main or part.links * 2 < len(part.text) or not part.text
            ]
        kept = _without_menus(kept)
        if sum(len(part.text) for part in kept) < LEAST * whole:
            kept = parts
        text = tidy("\n".join(part.text for part in kept))
        links = list(_placed(kept, text, self._pages))
        for name, keys in (("date", [*_DATES, "time"]), ("author", _AUTHORS)):
            value = next(
                (self._meta[key].strip() for key in keys if self._meta.get(key, "").strip()), ""
            )
            if value and not value.startswith("http"):
                self.metadata[name] = " ".join(value.split())[:200]
        return Page(self.title, text + "\n" if text else "", self.metadata, links)


def _placed(
    parts: list[_Part], text: str, pages: list[_Link]
) -> Iterator[tuple[int, int, str, str]]:
    """The links (`pages`, by number) of parts with their places in `text`, which is that of these parts; those without
    words are left out. Words that are written otherwise there, as of a link with a line break, have the place where
    they begin."""
    if not any(part.marked for part in parts):
        return
    at, seen = 0, set[int]()  # a header that a table shows again holds its links once
    for part in parts:
        content = tidy(part.text)
        start = text.find(content, at)
        if start < 0:
            continue
        at = start + len(content)
        pieces = _MARKED.split(tidy(part.marked))
        exact = "".join(pieces[::2]) == content  # not where a link begins with a bullet
        for number, before in zip(map(int, pieces[1::2]), pieces[::2], strict=False):
            start += len(before) * exact
            if number not in seen:
                seen.add(number)
                words = " ".join("".join(pages[number].words).split())
                end = start + len(words) * text.startswith(words, start)
                yield start, end, pages[number].page, pages[number].part


def _without_menus(parts: list[_Part]) -> list[_Part]:
    """Without runs of paragraphs that are links and nothing else."""
    kept: list[_Part] = []
    run: list[_Part] = []
    for part in [*parts, _Part("# end", 0)]:
        if part.text and part.links < 0.8 * len(part.text.lstrip("-# 0123456789.")):
            menu = sum(1 for paragraph in run if paragraph.text) >= _LINKS
            if menu and (level := _level(part)):
                last = next((at for at in range(len(kept) - 1, -1, -1) if kept[at].text), -1)
                # Nothing else stands below its heading, which is not that of the page.
                if last >= 0 and _level(kept[last]) >= max(level, 2):
                    del kept[last]
            kept += [paragraph for paragraph in run if not paragraph.text] if menu else run
            run = []
            kept.append(part)
        else:
            run.append(part)
    return kept[:-1]


def _level(part: _Part) -> int:
    """The level of a heading, 0 of another part."""
    return len(part.text) - len(part.text.lstrip("#"))
