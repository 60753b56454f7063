"""The numbers of paragraphs in a docx file: `§ 3`, `2.1`, `c)`. ECMA-376 part 1, 17.9: numbering."""

from __future__ import annotations

import re
import zipfile

from graphrag_mcp.sources.archive import Element, tree

_VALUE = re.compile(rb"<\w+:(pStyle|numId|ilvl)\s[^<>]*?:val=[\"']([^\"']*)")
_ROMAN = tuple(
    zip((1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1), "m cm d cd c xc l xl x ix v iv i".split(), strict=True)
)


def counted(number: int, style: str) -> str:
    """A number as the style of its list shows it: `3`, `c`, `III`."""
    kind = style.casefold()
    shown = str(number)
    if number < 1:
        return shown
    if kind.endswith(("alpha", "letter")) and number <= 780:  # z, aa, bb; Word ends at 30 letters
        shown = chr(97 + (number - 1) % 26) * (1 + (number - 1) // 26)
    elif kind.endswith("roman") and number < 4_000:
        shown = ""
        for value, letters in _ROMAN:
            shown += letters * (number // value)
            number %= value
    elif kind == "decimalzero":
        shown = f"{number:02d}"
    elif re.match("(chinese|japanese|taiwanese)counting", kind) and number < 100:
        tens, units = divmod(number, 10)
        digits = " 一二三四五六七八九"
        shown = (digits[tens] if tens > 1 else "") + "十" * (tens > 0) + digits[units].strip()
    return shown.upper() if kind.startswith("upper") else shown


class Lists:
    """Counts the numbered paragraphs of a document in their order."""

    def __init__(self, parts: zipfile.ZipFile) -> None:
        self.levels: dict[str, dict[int, Element]] = {}  # by the number of the list
        self.counters: dict[str, str] = {}  # list -> what it counts together with others
        self.starts: dict[tuple[str, int], int] = {}  # (list, level) -> where it begins
        self.restarts: dict[str, set[int]] = {}  # levels that restart with their list
        self.counts: dict[str, dict[int, int]] = {}
        self.of_style: dict[str, tuple[str, int]] = {}
        numbering = tree(parts, "word/numbering.xml")
        lists = {e.get("abstractNumId", ""): e for e in numbering.iterfind("abstractNum")}
        linked = {_value(element, "styleLink"): element for element in lists.values()}
        for num in numbering.iterfind("num"):
            base = lists.get(_value(num, "abstractNumId"))
            if base is not None and (style := _value(base, "numStyleLink")):
                base = linked.get(style, base)
            if base is not None:
                self._add(num.get("numId", ""), base, num)
        self._read_styles(parts)

    def _add(self, number: str, base: Element, num: Element) -> None:
        self.counters[number], self.restarts[number] = base.get("abstractNumId", ""), set()
        levels = self.levels[number] = {}
        for level in [*base.iterfind("lvl"), *num.iterfind("lvlOverride/lvl")]:
            at = _integer(level.get("ilvl", ""), 0)
            levels[at] = level
            self.starts[number, at] = _integer(_value(level, "start"), 0)
            self.of_style[_value(level, "pStyle")] = number, at
        for override in num.iterfind("lvlOverride"):
            if start := _value(override, "startOverride"):
                at = _integer(override.get("ilvl", ""), 0)
                self.starts[number, at] = _integer(start, 1)
                self.restarts[number].add(at)

    def _read_styles(self, parts: zipfile.ZipFile) -> None:
        """The list of each style of paragraphs, which it may have from the style that it is based on."""
        styles = {style.get("styleId", ""): style for style in tree(parts, "word/styles.xml")}
        lists = {
            id: (_value(pr, "numId"), _integer(_value(pr, "ilvl"), self.of_style.get(id, ("", 0))[1]))
            for id, style in styles.items()
            for pr in style.iter("numPr")
        }
        self.of_style = {}
        for id in styles:
            above, seen = id, set[str]()
            while above in styles and above not in lists and above not in seen:
                seen.add(above)
                above = _value(styles[above], "basedOn")
            if above in lists:
                self.of_style[id] = lists[above]

    def label(self, properties: bytes) -> str:
        """The number of the next paragraph, by the XML of its properties; "" for a bullet or none."""
        values = {name: value.decode("utf-8", "replace") for name, value in _VALUE.findall(properties)}
        number, level = self.of_style.get(values.get(b"pStyle", ""), ("", 0))
        number = values.get(b"numId", number)
        level = _integer(values.get(b"ilvl", ""), level)
        levels = self.levels.get(number, {})
        if level not in levels:
            return ""
        counts = self.counts.setdefault(self.counters[number], {})
        for at in self.restarts.pop(number, ()):
            counts.pop(at, None)
        counts[level] = counts[level] + 1 if level in counts else self.starts[number, level]
        for at in [at for at in counts if at > level and at in levels]:
            if _value(levels[at], "lvlRestart") != "0":
                del counts[at]
        if _value(levels[level], "numFmt") in ("bullet", "none"):
            return ""
        decimal = levels[level].find("isLgl") is not None  # all its numbers

        def value(found: re.Match[str]) -> str:
            at = int(found[1]) - 1
            if at not in levels:
                return ""
            style = "" if decimal else _value(levels[at], "numFmt")
            return counted(counts.get(at, self.starts[number, at]), style)

        return re.sub(r"%([1-9])", value, _value(levels[level], "lvlText")).strip()


def _value(element: Element, name: str) -> str:
    """The value of a child."""
    child = element.find(name)
    return "" if child is None else child.get("val", "")


def _integer(text: str, other: int) -> int:
    return int(text) if re.fullmatch("[0-9]{1,6}", text) else other
