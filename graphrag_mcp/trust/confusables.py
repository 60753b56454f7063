"""Text in plain letters: lower case, without accents and characters of no width, look-alikes as the
Latin letter, dash, slash or angle that they look like, escapes decoded; and where each character
stood."""

from __future__ import annotations

import html.entities
import re
import tomllib
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path

ROUNDS = 4  # escapes within escapes: &amp;lt;
# What opens a tag, and passes for it.
ANGLES = "<\u00ab\u02c2\u1438\u16b2\u2039\u226a\u226e\u22d6\u2329\u2770\u276c\u276e\u27e8\u27ea\u2991\u29fc\u2a79\u2aa1\u2aaa\u3008\u300a\ufe3d\ufe3f\ufe64\uff1c\U0001d236"
# What begins an escape.
ESCAPES = "&\uff06\ufe60\\\uff3c\ufe68\u2216\u29f5\u29f9%\uff05\ufe6a\u066a"
_ALIKE = tomllib.loads(Path(__file__).with_name("confusables.toml").read_text("ascii"))
_LETTER = {alike: plain for plain, some in _ALIKE.items() for alike in some}
_CALLED = re.compile(  # LATIN SMALL LETTER D WITH HOOK, NEGATIVE SQUARED LATIN CAPITAL LETTER D
    r"(?:LATIN (?:SMALL|CAPITAL) LETTER|LATIN LETTER SMALL CAPITAL|SYMBOL LETTER) "
    r"(?:(?:TURNED|REVERSED|INVERTED|OPEN|SIDEWAYS|SCRIPT|BARRED|CLOSED|LONG|INSULAR) )?([A-Z])(?![A-Z])"
)
_BLANK = "\u2800"  # Braille without a dot
_FILLERS = "\u115f\u1160\u3164\uffa0"  # letters without a shape
_ESCAPE = re.compile(  # in folded text
    r"&(?:#(?P<decimal>[0-9]{1,8})|#x(?P<hex>[0-9a-f]{1,8})|(?P<name>[a-z]{2,32}));?"
    r"|\\u(?P<high>d[89ab][0-9a-f]{2})\\u(?P<low>d[c-f][0-9a-f]{2})"
    r"|\\u0000(?P<wide>[0-9a-f]{4})|(?:\\|%)u(?P<unit>[0-9a-f]{4})|\\u\{(?P<braced>[0-9a-f]{1,6})\}"
    r"|\\x(?P<byte>[0-9a-f]{2})|\\0{0,4}(?P<css>3c|2f)(?![0-9a-f])[ ]?|(?P<percent>(?:%[0-9a-f]{2})+)"
)


def folded(text: str) -> str:
    """The text in plain letters, escapes decoded. Nothing of it tells where it stood."""
    plain = text.lower()
    if not text.isascii():
        plain = text.translate({ord(ch): fold(ch) for ch in set(text)})
    for _ in range(ROUNDS):
        if not any(sign in plain for sign in "&\\%"):
            break
        decoded = _ESCAPE.sub(lambda match: _meant(match[0]), plain)
        if decoded == plain:
            break
        plain = decoded
    return plain


def located(text: str) -> tuple[str, list[int]]:
    """`folded`, and where each of its characters stood in the text."""
    pairs = [(one, at) for at, ch in enumerate(text) for one in fold(ch)]
    plain, places = "".join(one for one, _ in pairs), [at for _, at in pairs]
    for _ in range(ROUNDS):
        parts: list[str] = []
        moved: list[int] = []
        done = 0
        for match in _ESCAPE.finditer(plain):
            parts.append(plain[done : match.start()])
            moved += places[done : match.start()]
            for one, at in _decoded(match):
                parts.append(one)
                moved += [places[at]] * len(one)
            done = match.end()
        if not done:
            break
        plain, places = "".join((*parts, plain[done:])), moved + places[done:]
    return plain, places


@lru_cache(maxsize=16_384)
def fold(ch: str) -> str:
    """One character as those that it looks like; "" where it is not seen."""
    if ch.isascii():
        return ch.lower() if ch.isprintable() or ch.isspace() else ""
    if ch in ANGLES:
        return "<"
    if ch in ESCAPES:
        return "&" if ch in ESCAPES[:3] else "%" if ch in ESCAPES[-4:] else "\\"
    if ch in _LETTER:
        return _LETTER[ch]
    if "\u3400" <= ch <= "\u9fff" or "\uac00" <= ch <= "\ud7a3":
        return ch
    if ch == _BLANK or ch.isspace():
        return " "
    if ch in _FILLERS or unicodedata.category(ch) in ("Mn", "Me", "Cf", "Cc"):
        return ""
    if called := _CALLED.search(unicodedata.name(ch, "")):
        return called[1].lower()
    parts = unicodedata.normalize("NFKD", ch)
    seen = [one for one in parts if unicodedata.category(one)[0] not in "MC"]
    return "".join(_LETTER.get(one, "<" if one in ANGLES else one.lower()) for one in seen)


@lru_cache(maxsize=4_096)
def _meant(escape: str) -> str:
    return _ESCAPE.sub(lambda match: "".join(ch for ch, _ in _decoded(match)), escape)


def _decoded(match: re.Match[str]) -> Iterator[tuple[str, int]]:
    """The characters that an escape stands for, folded, and where each began."""
    kind, start = match.lastgroup or "", match.start()
    said = match[kind]
    if kind == "percent":
        raw = bytes.fromhex(said.replace("%", ""))
        for ch in raw.decode("utf-8", "replace"):
            yield fold(ch), start
            start += 3 * (1 if ch == "\ufffd" else len(ch.encode()))
            start = min(start, match.end() - 1)
    elif kind == "name":
        known = _names()
        length = next((end for end in range(len(said), 1, -1) if said[:end] in known), 0)
        if not length:
            yield from zip(match[0], range(start, match.end()), strict=True)
            return
        yield "".join(map(fold, known[said[:length]])), start
        rest = start + 1 + length
        if length < len(said):
            yield from zip(match.string[rest : match.end()], range(rest, match.end()), strict=True)
    elif kind == "low":
        code = 0x10000 + ((int(match["high"], 16) - 0xD800) << 10) + int(said, 16) - 0xDC00
        yield fold(chr(code)), start
    else:
        code = int(said, 10 if kind == "decimal" else 16)
        yield fold(chr(code)) if code < 0x110000 else "", start


@cache
def _names() -> dict[str, str]:
    """Names of entities in lower case, without the semicolon."""
    found: dict[str, str] = {}
    for name, value in sorted(html.entities.html5.items(), key=lambda one: not one[0].islower()):
        found.setdefault(name.rstrip(";").lower(), value)
    return found
