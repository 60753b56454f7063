"""Keys, tokens and private keys in a text, found by their form and masked character for character,
so that every offset stays."""

from __future__ import annotations

import base64
import re
import tomllib
import unicodedata
from functools import lru_cache
from pathlib import Path

_FORMS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
# What begins with a mark of its maker: all but four characters of it are masked. Behind `_`, `-`
# and `%20` as well.
_KEY = re.compile(
    rf"(?:(?<![A-Za-z0-9])|(?<=%[0-9A-Fa-f][0-9A-Fa-f]))(?:{'|'.join(_FORMS['keys'])})"
)
_LONG_RUN = re.compile(r"[A-Za-z0-9]{16}")
_BOT = re.compile(_FORMS["bot"])
_HEADER = re.compile(_FORMS["header"])
# Addresses that are a key themselves, or hold one: what is behind the part that says where.
_ADDRESS = re.compile("|".join(_FORMS["addresses"]))
_NAMED = re.compile(_FORMS["named"])
# What each of these ends with, in small letters: most texts are told apart by it in a fifth of the time.
_NAMED_END = re.compile(
    r"(?:key|token)['\"]?\s{0,4}[:=]\s{0,4}['\"]?[a-z0-9/+_~.=-]{20}|client_?secret"
)
# A key in disguise: characters of no width within it, as they are or as they are shown, and letters
# of full width.
_UNSEEN = "\u00ad\u034f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
_DISGUISE = re.compile(
    f"(?:[{_UNSEEN}]|\\\\u(?:00ad|034f|180e|200[b-f]|202[a-e]|206[0-9a-f]|fe0[0-9a-f]|feff))(?=[A-Za-z0-9_.-])|"
    "[\uff0d\uff10-\uff19\uff21-\uff3a\uff3f\uff41-\uff5a\U0001d400-\U0001d7ff]"
)
EXAMPLES = frozenset(
    "password passwd secret passphrase changeme example yourpassword your-password your_password".split()
)

_BLOCK = re.compile(r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_BLOCK_END = re.compile(r"-----END (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_LINES = re.compile(r"^(?:[A-Za-z0-9+/]{64}\r?\n){3,}[A-Za-z0-9+/=]{0,64}", re.MULTILINE)
_LINE = re.compile(r"[A-Za-z0-9+/=]{1,76}")
# A passage may hold the middle of a block alone. Pictures are written in the same lines, so the
# numbers that an RSA key is made of must be there: their lengths stand before them, and no 300
# bytes of such a key are without one.
_NUMBERS = re.compile(
    rb"\x02(?:\x81[\x81\xc1]|\x82(?:\x01[\x01\x81]|[\x02\x04]\x01))\x00[\x80-\xff]|"
    rb"\x02(?:\x81[\x80\xc0]|\x82(?:\x01[\x00\x80]|[\x02\x04]\x00))[\x40-\x7f]"
)
_LONGEST_BLOCK = 20_000


def masked(text: str) -> str:
    """The text with credentials as stars behind their first four characters: as long as before."""
    parts, at = [], 0
    for start, end in spans(text):
        parts += (text[at:start], re.sub(r"[^\r\n]", "*", text[start:end]))
        at = end
    return "".join((*parts, text[at:])) if parts else text


def credentials(text: str) -> list[int]:
    """Where credentials begin."""
    return [start for start, _ in spans(text)]


@lru_cache(maxsize=64)
def spans(text: str) -> tuple[tuple[int, int], ...]:
    """What is to be masked of each credential, in order, none within another."""
    found = _found(text)
    # our own sign for parts of English text
    plain_letters = text.isascii() or text.replace("…", "").isascii()
    if (not plain_letters or "\\u" in text) and _DISGUISE.search(text):
        plain, places = _undisguised(text)
        found += [(places[start], places[end - 1] + 1) for start, end in _found(plain)]
    apart: list[tuple[int, int]] = []
    for start, end in sorted(found):
        if not apart or start >= apart[-1][1]:
            apart.append((start, end))
        elif end > apart[-1][1]:
            apart[-1] = (apart[-1][0], end)
    return tuple(apart)


def _undisguised(text: str) -> tuple[str, list[int]]:
    """The text in plain letters, and where each of its characters stood."""
    letters, places, at = [], [], 0
    for match in _DISGUISE.finditer(text):
        letters.append(text[at : match.start()])
        places += range(at, match.start())
        at = match.end()
        if unicodedata.category(match[0][0]) not in ("Cf", "Mn") and match[0][0] != "\\":
            letters.append(unicodedata.normalize("NFKC", match[0])[:1])
            places.append(match.start())
    return "".join((*letters, text[at:])), places + [*range(at, len(text))]


def _found(text: str) -> list[tuple[int, int]]:
    """What is to be masked of the credentials in a text without disguise; some may lie within
    another."""
    found = [
        (match.start(match.lastindex or 0) + 4, match.end())
        for pattern, is_one in _FORMS
        if pattern is not _NAMED or not text.isascii() or _NAMED_END.search(text.lower())
        for match in pattern.finditer(text)
        if is_one(match)
    ]
    for match in _ADDRESS.finditer(text):
        start, end = match.span(match.lastindex or 0)
        if text[start:end].lower() not in EXAMPLES:
            found.append((start, end))
    found += _blocks(text)
    return found + [match.span() for match in _LINES.finditer(text) if _of_a_key(match[0])]


def _begins(match: re.Match[str]) -> bool:
    """Behind `_` or `-` also names go on, `get_fw_version_of_the_device`: there a key has a long
    run of both kinds."""
    if match.string[match.start() - 1 : match.start()] not in ("_", "-"):
        return True
    return _random(match[0]) and _LONG_RUN.search(match[0]) is not None


def _authorizes(match: re.Match[str]) -> bool:
    """A token of digits and letters, in a text that speaks of such; or, behind `Basic`, a name and
    a password in base64."""
    if not re.search(r"bearer|authorization", match.string, re.IGNORECASE):
        return False
    if match[1]:
        return len(match[2]) >= 20 and _random(match[2])
    try:
        said = base64.b64decode(match[2], validate=True).decode("utf-8")
    except ValueError:
        return False
    return ":" in said and said.isprintable()


def _random(value: str) -> bool:
    """A key has digits and letters; `settings.oauth.client_secret` only names one."""
    return (
        any(map(str.isdigit, value))
        and any(map(str.isalpha, value))
        and not re.search(r"[a-z]\.[a-z]", value)
    )


# Patterns of keys, and whether a match is one; the first four characters of its group stay.
_FORMS = (
    (_KEY, _begins),
    (_BOT, lambda match: re.search(r"\d", match[0])),
    (_NAMED, lambda match: _random(match[1])),
    (_HEADER, _authorizes),
)


def _of_a_key(lines: str) -> bool:
    """Lines of base64 that hold the numbers of a private key, and not a picture, a certificate's
    seal or a gene."""
    packed = "".join(lines.split())
    return bool(_NUMBERS.search(base64.b64decode(packed[: len(packed) // 4 * 4])))


def _blocks(text: str) -> list[tuple[int, int]]:
    """Private keys between their first and their last line; what stands above a last line whose
    first is not here."""
    found, at = [], 0
    while begin := _BLOCK.search(text, at):
        found += _above(text, at, begin.start())
        end = _BLOCK_END.search(text, begin.end(), begin.end() + _LONGEST_BLOCK)
        at = end.end() if end else min(len(text), begin.end() + _LONGEST_BLOCK)
        found.append((begin.end(), end.start() if end else at))
    return found + _above(text, at, len(text))


def _above(text: str, start: int, end: int) -> list[tuple[int, int]]:
    last = _BLOCK_END.search(text, start, end)
    if last is None:
        return []
    at = last.start()
    for line in reversed(text[max(start, at - _LONGEST_BLOCK) : at].splitlines(keepends=True)):
        if not _LINE.fullmatch(line.rstrip("\r\n")):
            break
        at -= len(line)
    return [(at, last.start())] if at < last.start() else []
