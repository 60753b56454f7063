"""Headers of mail as text: words in any charset, persons with their addresses, days."""

from __future__ import annotations

import email.policy
import re
import unicodedata
from contextlib import suppress
from email.message import Message
from email.utils import getaddresses, parsedate_to_datetime

from graphrag_mcp.sources.decode import SHIFTED, WIDE, decode, web_encoding

IDS = re.compile(r"<([^<>\s]{1,250})>")  # of mails
_CHARSET = re.compile(r"=\?([\w.:-]{1,40})(?=(?:\*[\w-]{1,20})?\?[bBqQ]\?)")
_SURNAME_FIRST = re.compile(r"(?P<last>[^\W\d_][^,()]{0,40}), (?P<first>[^\W\d_][^,()]{0,40}?)(?P<rest> \(.{1,60}\))?")


def header(message: Message, name: str) -> str:
    """A header as text; "" for none. It is taken as written where the library cannot parse it. Raw bytes are in the
    charset of the mail; of raw ISO-2022 the library's parser of addresses loses the escapes."""
    raw = next((raw for key, raw in message.raw_items() if key.lower() == name.lower()), "")
    written = str(raw).encode("utf-8", "surrogateescape")
    if SHIFTED in written:
        return " ".join(decode(written)[0].split())
    try:
        if not written.isascii():
            text = in_charset(written, _charset(message))
            value = email.policy.default.header_factory(name, " ".join(text.split()))
        else:
            text = _CHARSET.sub(_larger, " ".join(written.decode("ascii").split()))
            value = email.policy.default.header_factory(name, text) if "=?" in text else text
    except Exception:  # headers from anywhere: the library raises what it likes
        value = raw
    text = str(value or "").encode("utf-8", "replace").decode("utf-8", "replace")
    # Signs of windows-1252 in words that say that they are ISO-8859-1.
    text = re.sub("[-]", lambda sign: sign[0].encode("latin-1").decode("cp1252", "replace"), text)
    return " ".join(text.split())


def _charset(message: Message) -> str:
    """The charset of raw bytes in a header: the first that a part names, ASCII excepted, else the one that is detected
    in all raw headers of the mail together."""
    named = (part.get_content_charset() or "" for part in message.walk())
    charset = next((name for name in named if name and "ascii" not in name), "")
    lines = (str(raw) for part in message.walk() for _, raw in part.raw_items())
    raw = "\n".join(line for line in lines if not line.isascii())
    found = decode(raw.encode("utf-8", "surrogateescape"))[1]
    return charset or str(found.get("encoding", "utf-8")).partition(" ")[0]


def _larger(charset: re.Match[str]) -> str:
    """The charset of an encoded word as Python calls the one that its letters are of."""
    return f"=?{web_encoding(charset[1]) or charset[1]}"


def people(message: Message, name: str) -> list[str]:
    """The persons that a header names."""
    found = getaddresses([header(message, name)])
    return [person(who, address) for who, address in found if who or address]


def day(value: str) -> str:
    try:
        return parsedate_to_datetime(value).isoformat(timespec="seconds") if value else ""
    except (ValueError, TypeError, IndexError, OverflowError):
        return ""


def person(name: str, address: str) -> str:
    """`Ana Holm <ana@x.org>`, or what of it is known."""
    who = _turned(name, address)
    return f"{who} <{address}>" if who and address and who != address else who or address


def _turned(name: str, address: str = "") -> str:
    """`Holm, Ana (Sales)`, as Exchange writes people, in the order of texts, `Ana Holm (Sales)`, where
    their address has both names in this order, with all first names or the first alone: `Support, Europe` and
    `King, Jr.` stay as they are. The quotes that Outlook puts around a name are left out."""
    name = name.strip("\0 ")
    name = name[1:-1] if len(name) > 2 and name[0] == name[-1] == "'" else name
    found = _SURNAME_FIRST.fullmatch(name)
    if not found:
        return name
    first, last, rest = found.group("first", "last", "rest")
    in_address = {_letters(first + last), _letters(first.split()[0] + last)}
    return f"{first} {last}{rest or ''}" if _letters(address.rpartition("@")[0]) in in_address else name


def _letters(name: str) -> str:
    """The letters of a name without their marks: `muller` of `Müller` and of `Mueller`."""
    letters = "".join(filter(str.isalpha, unicodedata.normalize("NFKD", name.casefold())))
    return letters.replace("ae", "a").replace("oe", "o").replace("ue", "u")


def in_charset(data: bytes, charset: str) -> str:
    """Bytes in the charset that a mail names. It is guessed where Python does not know it or the bytes are not in
    it; ISO-2022, which is all ASCII, and UTF-8 are read where another charset is named."""
    named = web_encoding(charset)
    if not (SHIFTED in data and data.isascii()):
        for encoding in (named,) if data.isascii() or named in WIDE else ("utf-8", named):
            with suppress(LookupError, UnicodeError):
                return data.decode(encoding)
    return decode(data)[0]
