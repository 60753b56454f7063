"""Text in plain letters: lower case, without accents and characters of no width, look-alikes as the
Latin letter, dash, slash or angle that they look like, escapes decoded; and where each character
stood."""

from __future__ import annotations

import html.entities
import re
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache

ROUNDS = 4  # escapes within escapes: &amp;lt;
# What opens a tag, and passes for it.
ANGLES = "<\u00ab\u02c2\u1438\u16b2\u2039\u226a\u226e\u22d6\u2329\u2770\u276c\u276e\u27e8\u27ea\u2991\u29fc\u2a79\u2aa1\u2aaa\u3008\u300a\ufe3d\ufe3f\ufe64\uff1c\U0001d236"
# What begins an escape.
ESCAPES = "&\uff06\ufe60\\\uff3c\ufe68\u2216\u29f5\u29f9%\uff05\ufe6a\u066a"
# Of Unicode's table of confusable characters those that look like a letter of "documents" or "data
# only", a dash or a slash, and some more that the table leaves out. Not those that decompose into
# that letter or are called so.
_ALIKE = {
    "d": "\xf0\u03b4\u0501\u13a0\u13e7\u146f\u15de\u15ea\u2202\ua4d2\ua4d3",
    "o": (
        "\xa4\u039f\u03b8\u03bf\u03c3\u041e\u043e\u0555\u0585\u05e1\u0647\u06f5\u0966\u09e6"
        "\u0a66\u0ae6\u0b20\u0b66\u0be6\u0c02\u0c66\u0c82\u0ce6\u0d02\u0d20\u0d66\u0d82\u0e50"
        "\u0ed0\u101d\u1040\u10ff\u12d0\u25cb\u25cf\u25ef\u2b55\u2c9e\u2c9f\u2d54\u3007\ua4f3"
        "\uab3d\U00010292\U000102ab\U00010404\U0001042c\U000104c2\U000104ea\U00010516"
        "\U000114d0\U000118b5\U000118c8\U000118d7\U000118e0"
    ),
    "c": (
        "\xa2\u0421\u0441\u13df\u2ca4\u2ca5\ua4da\uabaf\U000102a2\U00010302\U00010415"
        "\U0001043d\U0001051c\U000118e9\U000118f2\U0001f74c"
    ),
    "u": (
        "\u028b\u03bc\u03c5\u0438\u054d\u057d\u1200\u144c\u222a\u22c3\ua4f4\ua79f\U000104ce"
        "\U000104f6\U000118b8\U000118d8\U00016f42"
    ),
    "m": "\u039c\u03fa\u041c\u043c\u13b7\u15f0\u16d6\u2c98\ua4df\U000102b0\U00010311",
    "e": (
        "\u0395\u03b5\u0415\u0435\u044d\u0454\u04bd\u13ac\u212e\u22ff\u2d39\ua4f0\uab32"
        "\U00010286\U000118a6\U000118ae"
    ),
    "n": "\u039d\u03b7\u043f\u0578\u057c\u2c9a\ua4e0\U00010513",
    "t": (
        "\u03a4\u03c4\u0422\u0442\u13a2\u2020\u22a4\u27d9\u2ca6\ua4d4\U00010297\U000102b1"
        "\U00010315\U000118bc\U00016f0a\U0001f768"
    ),
    "s": (
        "\u01bd\u03c2\u0405\u0455\u054f\u13d5\u13da\ua4e2\uabaa\U00010296\U00010420\U00010448"
        "\U000118c1\U00016f3a"
    ),
    "l": (
        "\u0131\u0196\u01c0\u0269\u026a\u0399\u03b9\u0406\u0456\u04c0\u04cf\u05c0\u05d5\u0661"
        "\u06f1\u13a5\u13de\u14aa\u16c1\u2223\u2373\u23fd\u2c92\u2cd0\u2d4f\ua4e1\ua4f2\ua647"
        "\uab75\U0001028a\U00010309\U00010320\U0001041b\U00010526\U000118a3\U000118b2"
        "\U000118c3\U00016f16\U00016f28\U0001d22a"
    ),
    "a": "\u0251\u0391\u03b1\u0410\u0430\u13aa\u15c5\u237a\ua4ee\U000102a0\U00016f40",
    "y": (
        "\u0263\u03a5\u03b3\u0423\u0443\u0447\u04ae\u04af\u10e7\u13a9\u13bd\u1d8c\u2ca8\ua4ec"
        "\U000102b2\U000118a4\U000118dc\U00016f43"
    ),
    "-": (
        "\u02d7\u06d4\u2010\u2012\u2013\u2014\u2015\u2043\u2212\u2500\u2501\u2796\u2cba\u30fc"
        "\u31d0\u4e00"
    ),
    "/": "\u1735\u2041\u2044\u2215\u2571\u27cb\u29f8\u2cc6\u3033\u30ce\u31d3\u4e3f\U0001d23a",
}
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
    plain = (
        text.lower() if text.isascii() else text.translate({ord(ch): fold(ch) for ch in set(text)})
    )
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
