"""The numbers of paragraphs in a docx file: `§ 3`, `2.1`, `c)`. ECMA-376 part 1, 17.9: numbering."""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass

from graphrag_mcp.sources.archive import Element, attribute, local, tree

_VALUE = re.compile(rb"<\w+:(pStyle|numId|ilvl)\s[^<>]*?:val=[\"']([^\"']*)")
_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"),
    (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip


def counted(number: int, style: str) -> str:
    """A number as the style of its list shows it: `3`, `c`, `III`."""
    kind = style.casefold()
    shown = str(number)
    if number < 1:
        return shown
    if kind.endswith(("alpha", "letter")):  # z, aa, bb
        shown = chr(97 + (number - 1) % 26) * min(1 + (number - 1) // 26, 10)
    elif kind.endswith("roman") and number < 4_000:
        shown = ""
        for value, letters in _ROMAN:
            shown += letters * (number // value)
            number %= value
    elif kind == "decimalzero":
        shown = f"{number:02d}"
    elif re.match("(chinese|japanese|taiwanese)counting", kind) and number < 100:
        tens, ones = divmod(number, 10)
        digits = " 一二三四五六七八九"
        shown = (digits[tens] if tens > 1 else "") + "十" * (tens > 0) + digits[ones].strip()
    return shown.upper() if kind.startswith("upper") else shown


@dataclass(frozen=True)
class _Level:
    start: int
    style: str
    text: str
    restarts: bool
    decimal: bool  # all numbers of it


class Lists:
    """Counts the numbered paragraphs of a document in their order."""

    def __init__(self, parts: zipfile.ZipFile) -> None:
        numbering = tree(parts, "word/numbering.xml")
        styles = tree(parts, "word/styles.xml") if numbering is not None else None
        self.levels: dict[str, dict[int, _Level]] = {}  # by the number of the list
        self.lists: dict[str, str] = {}  # number -> what it counts together with others
        self.starts: dict[str, set[int]] = {}  # levels at which a list begins anew
        self.counts: dict[str, dict[int, int]] = {}
        self.of_style: dict[str, tuple[str, int]] = {}
        abstract: dict[str, Element] = {}
        linked: dict[str, Element] = {}
        for element in numbering if numbering is not None else ():
            if local(element.tag) == "abstractNum":
                abstract[attribute(element, "abstractNumId")] = element
                linked[_of(element, "styleLink")] = element
            elif local(element.tag) == "num":
                self._add(element, abstract, linked)
        self._read_styles(styles)

    def _add(self, num: Element, abstract: dict[str, Element], linked: dict[str, Element]) -> None:
        number, of = attribute(num, "numId"), _of(num, "abstractNumId")
        base = abstract.get(of)
        if base is not None and (style := _of(base, "numStyleLink")):
            base = linked.get(style, base)
        if base is None:
            return
        self.lists[number], self.starts[number] = attribute(base, "abstractNumId"), set()
        self.levels[number] = levels = {}
        for level in (child for child in base if local(child.tag) == "lvl"):
            levels[_int(attribute(level, "ilvl"), 0)] = _level(level)
            if style := _of(level, "pStyle"):
                self.of_style[style] = number, _int(attribute(level, "ilvl"), 0)
        for override in (child for child in num if local(child.tag) == "lvlOverride"):
            at = _int(attribute(override, "ilvl"), 0)
            for level in (child for child in override if local(child.tag) == "lvl"):
                levels[at] = _level(level)
            if at in levels and (start := _of(override, "startOverride")):
                old = levels[at]
                levels[at] = _Level(_int(start, 1), old.style, old.text, old.restarts, old.decimal)
                self.starts[number].add(at)

    def _read_styles(self, styles: Element | None) -> None:
        """The list of each style of paragraphs, which it may have from the style that it is based on."""
        own: dict[str, tuple[str, str]] = {}
        based: dict[str, str] = {}
        for style in styles if styles is not None else ():
            if local(style.tag) == "style" and attribute(style, "type") == "paragraph":
                id = attribute(style, "styleId")
                based[id] = _of(style, "basedOn")
                for element in style.iter():
                    if local(element.tag) == "numPr":
                        own[id] = _of(element, "numId"), _of(element, "ilvl")
        levels = {style: level for style, (_, level) in self.of_style.items()}
        self.of_style = {}
        for style in based:
            above, seen = style, set[str]()
            while above and above not in own and above not in seen:
                seen.add(above)
                above = based.get(above, "")
            if above in own:
                number, level = own[above]
                self.of_style[style] = number, _int(level, levels.get(above, 0))

    def label(self, properties: bytes) -> str:
        """The number of the next paragraph, by the XML of its properties; "" for a bullet or none."""
        values = {
            found[1]: found[2].decode("utf-8", "replace") for found in _VALUE.finditer(properties)
        }
        number, level = self.of_style.get(values.get(b"pStyle", ""), ("", 0))
        number = values.get(b"numId", number)
        level = _int(values.get(b"ilvl", ""), level)
        levels = self.levels.get(number, {})
        if level not in levels:
            return ""
        counts = self.counts.setdefault(self.lists[number], {})
        for at in self.starts[number]:
            counts.pop(at, None)
        self.starts[number] = set()
        counts[level] = counts[level] + 1 if level in counts else levels[level].start
        for at in [at for at in counts if at > level and at in levels and levels[at].restarts]:
            del counts[at]
        shown = levels[level]
        if shown.style in ("bullet", "none"):
            return ""

        def value(found: re.Match[str]) -> str:
            at = int(found[1]) - 1
            if at not in levels:
                return ""
            return counted(
                counts.get(at, levels[at].start), "decimal" if shown.decimal else levels[at].style
            )

        return re.sub(r"%([1-9])", value, shown.text).strip()


def _level(element: Element) -> _Level:
    return _Level(
        _int(_of(element, "start"), 0),
        _of(element, "numFmt") or "decimal",
        _of(element, "lvlText"),
        _of(element, "lvlRestart") != "0",
        any(local(child.tag) == "isLgl" for child in element),
    )


def _of(element: Element, name: str) -> str:
    """The value of a child."""
    return next((attribute(child, "val") for child in element if local(child.tag) == name), "")


def _int(text: str, other: int) -> int:
    return int(text) if re.fullmatch("[0-9]{1,6}", text) else other
