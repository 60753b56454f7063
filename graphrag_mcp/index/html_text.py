"""HTML to readable text: title, headings as Markdown `#`, lists, table rows, paragraphs; no script, no style.

Takes markup as a string; gives (title, text). Linear in its length whatever the markup: one pass, no recursion, no
pattern that looks back. The standard library's HTMLParser is not used because it is quadratic on unclosed tags
(`<a<a<a...`: 4.6 s for 80 KB on Python 3.11, so hours for a file of 20 MB).
"""

from __future__ import annotations

import html
import re

_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9:-]{0,40}+)(?=[\s/>])")
_QUOTED_END = re.compile(r"""(?:[^"'>]++|"[^"]*+"|'[^']*+')*+>""")
_RAW = {  # nothing inside is text for a reader, up to the closing tag
    name: re.compile(rf"</{name}(?=[\s/>])", re.I)
    for name in ("script", "style", "svg", "template", "iframe", "canvas", "math", "object", "title")
}
_BLOCK = frozenset(
    "address article aside blockquote body caption center dd details dialog div dl dt fieldset figcaption figure "
    "footer form h1 h2 h3 h4 h5 h6 head header hr html legend li main nav ol option p pre section select summary table "
    "tbody tfoot thead title tr ul".split()
)
_GAP = frozenset("p h1 h2 h3 h4 h5 h6 table ul ol dl pre blockquote section article div hr".split())
_NUMERIC = re.compile(r"&#[xX]?[0-9a-fA-F]{8,}+;?")  # int() refuses thousands of digits; no character has eight
_SPACE = re.compile(r"[ \t\n\f]+")


def readable(markup: str) -> tuple[str, str]:
    """(title, text) of an HTML page; the title is "" when the page has none."""
    writer = _Writer()
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
        # A quote that never closes fails once, after which quotes are not looked at: still one pass in all.
        quoted = quoted and closed is not None
        position = closed.end() if closed else markup.find(">", tag.end()) + 1
        name = tag[2].lower()
        if not tag[1] and name in _RAW and not markup.startswith("/>", position - 2):
            end_tag = _RAW[name].search(markup, position)
            end = end_tag.start() if end_tag else len(markup)
            if name == "title" and not writer.title:
                writer.title = " ".join(html.unescape(_NUMERIC.sub("", markup[position:end])).split())
            position = end
        else:
            writer.tag(name, closing=bool(tag[1]))
    return writer.title, writer.result()


class _Writer:
    """Collects text between tags; whitespace as a browser shows it, structure as Markdown writes it."""

    def __init__(self) -> None:
        self.title = ""
        self._parts: list[str] = []
        self._line: list[str] = []  # pieces of the line being written
        self._prefix = ""
        self._row: list[str] | None = None
        self._pre = 0
        self._lists: list[int] = []  # one number per open list: 0 for bullets, else the next item's number

    def text(self, raw: str) -> None:
        if not raw:
            return
        piece = html.unescape(_NUMERIC.sub("", raw) if "&#" in raw else raw) if "&" in raw else raw
        self._line.append(piece if self._pre else _SPACE.sub(" ", piece))

    def tag(self, name: str, *, closing: bool) -> None:
        if name in ("td", "th"):
            self._cell()
        elif name == "br":
            self._line.append("\n" if self._row is None else " ")
        elif name in _BLOCK:
            if self._row is not None and name not in ("tr", "table", "tbody", "thead", "tfoot"):
                self._line.append(" ")  # a paragraph inside a cell stays in its row
                return
            self._end_line()
            if name in _GAP and not (self._lists and name in ("ul", "ol", "p")):
                self._parts.append("")
            self._structure(name, closing)

    def _structure(self, name: str, closing: bool) -> None:
        if name == "tr":
            self._row = None if closing else []
        elif name == "table":
            self._row = None
        elif name == "pre":
            self._pre = max(0, self._pre + (-1 if closing else 1))
        elif name in ("ul", "ol", "dl"):
            if closing:
                del self._lists[-1:]
            elif len(self._lists) < 1000:
                self._lists.append(1 if name == "ol" else 0)
        elif name[0] == "h" and name[1:].isdigit():
            self._prefix = "" if closing else "#" * int(name[1:]) + " "
        elif name == "li" and not closing:
            number = self._lists[-1] if self._lists else 0
            self._prefix = "  " * min(len(self._lists) - 1, 8) + (f"{number}. " if number else "- ")
            if number:
                self._lists[-1] += 1

    def _cell(self) -> None:
        if self._row is not None:
            content = " ".join("".join(self._line).split())
            self._line = []
            if content:
                self._row.append(content.replace("|", "\\|"))

    def _end_line(self) -> None:
        if self._row is not None:
            self._cell()
            if self._row:
                self._parts.append(f"| {' | '.join(self._row)} |")
                self._row = []
            return
        content = "".join(self._line)
        self._line = []
        if self._pre:
            self._parts.append(content.strip("\n"))
            return
        content = "\n".join(" ".join(line.split(" ")).strip() for line in content.split("\n")).strip()
        if content:
            self._parts.append(self._prefix + _SPACE_RUN.sub(" ", content))
            self._prefix = ""

    def result(self) -> str:
        self._end_line()
        lines: list[str] = []
        for part in self._parts:
            if part.strip() or (lines and lines[-1]):
                lines.append(part if part.strip() else "")
        return "\n".join(lines).strip() + "\n" if lines else ""


_SPACE_RUN = re.compile(r" {2,}")
