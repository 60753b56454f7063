"""Bytes to text: encoding, front matter, title and date.

Text is given as decoded, except that CR LF and CR become LF, no-break blanks become blanks, and a
byte order mark, NULs and lone surrogates go: the spans of a document refer to that text."""

from __future__ import annotations

import codecs
import re
import tomllib
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime, time
from typing import Any

from graphrag_mcp.text import dates
from graphrag_mcp.text.prose import sentences

HEAD = 8_192  # bytes that tell text from other files
SAMPLE = 64_000  # bytes that charset detection looks at: it is slow, and 30 MB must load in seconds


class ReadError(Exception):
    """A file that cannot be read; its text is the reason, to be shown beside the file's name."""


@contextmanager
def library(reason: str) -> Iterator[None]:
    """What a library raises of bytes that it does not expect is a ReadError with this reason."""
    try:
        yield
    except (MemoryError, ReadError):
        raise
    except Exception as error:
        raise ReadError(reason) from error


def why_not(error: Exception, kind: str) -> str:
    """Why bytes cannot be read as a kind of file, also of an error that its reader does not expect."""
    if isinstance(error, ReadError):
        return str(error)
    if isinstance(error, RecursionError):
        return "its parts are nested too deeply"
    return f"cannot be read as {kind or 'text'} ({type(error).__name__})"


_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# bytes that windows-1252 gives no letter worth keeping
_NEVER_TEXT = re.compile(rb"[\x81\x8d\x8f\x90\x9d\xff]")
# Encodings that files of people have, without those of which these hold every letter at its byte
# (ISO-8859-1, EUC-KR); of all that exist cp858 or iso8859_14 win on short texts.
_LEGACY = (
    "gb18030 big5hkscs cp932 euc_jis_2004 cp949 cp1252 cp1251 cp1250 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258 "
    "cp874 koi8-r koi8-u iso8859-2 iso8859-5 iso8859-15 mac-roman cp437 cp850 cp852 cp866"
).split()
SHIFTED = b"\x1b$"  # by which ISO-2022 goes to two bytes a character, in bytes that are all ASCII
_SURROGATE = re.compile("[\ud800-\udfff]")
# no-break, figure, thin and narrow no-break: "Mr.\xa0Weston" is written with one
_BLANK = re.compile("[\xa0\u2007\u2009\u202f]")


def clean(text: str) -> str:
    """Text as documents hold it: LF, one kind of blank, no byte order mark, NUL, lone surrogate."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text:
        text = text.replace("\0", "")
    if not text.isascii():
        text = _BLANK.sub(" ", _SURROGATE.sub("\ufffd", text.removeprefix("\ufeff")))
    return text


def _nec(error: UnicodeError) -> tuple[str, int]:
    """A handler of errors for ISO-2022-JP: Windows writes the signs of NEC (①, ㈱) at places of JIS X 0208
    that the codec of Python leaves free and that cp932 has, shifted."""
    if isinstance(error, UnicodeDecodeError):
        pair = error.object[error.start : error.end]
        if len(pair) == 2 and all(0x21 <= byte <= 0x7E for byte in pair):
            row, cell = pair[0] - 0x21, pair[1] - 0x21
            lead = (0x81 if row < 62 else 0xC1) + row // 2
            trail = cell + (0x9F if row % 2 else 0x40 if cell < 63 else 0x41)
            with suppress(UnicodeDecodeError):
                return bytes((lead, trail)).decode("cp932"), error.end
    raise error


codecs.register_error("graphrag_nec", _nec)


def decode(data: bytes) -> tuple[str, dict[str, Any]]:
    """(text, {} or {"encoding": what was found and what was replaced}) of bytes in any encoding."""
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return decode_as(data[len(mark) :], encoding)
    if wide := wide_encoding(data[:HEAD]):
        return decode_as(data, wide)
    if SHIFTED in data:
        for encoding in ("iso2022_jp_ext", "iso2022_kr"):
            with suppress(UnicodeDecodeError):
                return clean(data.decode(encoding, "graphrag_nec")), {"encoding": encoding}
    try:
        return clean(data.decode("utf-8")), {}
    except UnicodeDecodeError as error:
        first = error.start
    _, bad, good = _replaced(data)
    # Valid sequences hardly occur by chance: where they outnumber the bad bytes it is UTF-8.
    if good >= bad or (bad * 100 <= len(data) and _NEVER_TEXT.search(data)):
        return _line_by_line(data)
    from chardet import detect_all

    start = 0
    if first > SAMPLE // 2:
        start = data.find(b"\n", first - SAMPLE // 2, first) + 1 or first - 200
    sample = data[start : start + SAMPLE]
    guesses = {
        guess["encoding"]: guess["confidence"]
        for guess in detect_all(sample, ignore_threshold=True, compat_names=False, include_encodings=_LEGACY)
        if guess["encoding"] in _LEGACY and not _mixes_scripts(sample.decode(guess["encoding"], "replace"))
    }
    if guesses:
        best = max(guesses, key=lambda name: guesses[name])
        return decode_as(data, best.replace("-", "_"))
    if bad * 100 <= len(data):
        return _line_by_line(data)
    raise ReadError("its encoding is not known; save it as UTF-8")


_BASE64 = re.compile(
    r"^(?=[^\n]*[A-Z])(?=[^\n]*[a-z])(?=[^\n]*[0-9+/])[ \t]*[A-Za-z0-9+/]{40,}={0,2}[ \t]*$", re.MULTILINE
)
_BASE64_BLOCK = re.compile(rf"{_BASE64.pattern}(?:\n[ \t]*[A-Za-z0-9+/]+={{0,2}}[ \t]*$)?", re.MULTILINE)
CODED = 0.5  # of a text that may be base64; of a page with a picture in it less is


def refuse_base64(text: str) -> None:
    """ReadError for a text of which most is base64."""
    sample = text[:200_000]
    if len(sample) >= 200 and sum(len(match[0]) for match in _BASE64.finditer(sample)) > CODED * len(sample):
        raise ReadError("it is mostly base64: decode it first")


def without_base64(text: str) -> str:
    """A text without its lines of base64 and the last of each block, which may be short."""
    return _BASE64_BLOCK.sub("", text)


_WORD_OF_ASCII = re.compile(r"(?<![A-Za-z])[A-Za-z]++[^\W\d_A-Za-z]++[A-Za-z]+")
# Letters of Chinese, Japanese and Korean, which put no blanks beside a Latin word.
_UNSPACED = re.compile("[\u3005\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]+")


def _mixes_scripts(text: str) -> bool:
    """Do words mix Latin letters with those of another script, as in `f\u067er` for `für`? Then the
    encoding is another one. Letters of unspaced scripts do so by right, but not where most of them
    stand alone, as in `K罵n` for `Köln`."""
    text = text[:20_000]
    runs = [len(run) for run in _UNSPACED.findall(text)]
    unspaced = sum(length for length in runs if length > 1) * 2 >= sum(runs)
    return any(
        not (unspaced and _UNSPACED.match(letter))
        and not unicodedata.name(letter, "LATIN").startswith(("LATIN", "MICRO", "FEMININE", "MASCULINE"))
        for word in set(_WORD_OF_ASCII.findall(text))
        for letter in word
    )


def wide_encoding(start: bytes) -> str:
    """`utf-16-le` or `utf-16-be` where the first bytes are such text without a mark, else "". Every
    line end and blank has a zero at the same side, and nothing is a control character."""
    start = start[: len(start) // 2 * 2]
    if len(start) < 4 or b"\0" not in start:
        return ""
    for encoding in ("utf-16-le", "utf-16-be"):
        try:
            text = start.decode(encoding)
        except UnicodeDecodeError as error:
            if error.start < len(start) - 2:
                continue
            text = start[: error.start].decode(encoding)
        known = [
            unicodedata.category(character) not in ("Cc", "Cn", "Co", "Cs")
            for character in text
            if character not in "\t\n\r\f"
        ]
        spaced = sum(character in " \n" for character in text) * 100 >= len(text) or len(text) < 100
        if spaced and all(known) and any(character in " \n" for character in text):
            return encoding
    return ""


def _replaced(data: bytes) -> tuple[str, int, int]:
    """UTF-8 with wrong bytes replaced: the text, how many were, and how many characters are not ASCII."""
    text = data.decode("utf-8", "replace")
    bad = text.count("\ufffd") - data.count(b"\xef\xbf\xbd")
    return text, bad, len(text) - len(text.encode("ascii", "ignore")) - bad


def _line_by_line(data: bytes) -> tuple[str, dict[str, Any]]:
    """UTF-8 in which some lines are of another program: these are read as cp1252 where they can be;
    other wrong bytes are replaced and counted."""
    lines: list[str] = []
    other = lost = 0
    for line in data.split(b"\n"):
        try:
            lines.append(line.decode("utf-8"))
            continue
        except UnicodeDecodeError:
            text, bad, good = _replaced(line)
        if good <= 0 and not _NEVER_TEXT.search(line):
            text = line.decode("cp1252")
            other += 1
        else:
            lost += bad
        lines.append(text)
    notes = [f"{other} lines of cp1252"] if other else []
    notes += [f"{lost} invalid bytes replaced"] if lost else []
    return clean("\n".join(lines)), {"encoding": f"utf-8 ({', '.join(notes)})"} if notes else {}


# Declared encodings as the WHATWG Encoding Standard reads them: programs write signs of the larger one under these names.
_LARGER = {
    "ascii": "cp1252", "iso8859-1": "cp1252", "iso8859-9": "cp1254", "iso8859-11": "cp874", "tis-620": "cp874",
    "shift_jis": "cp932", "gb2312": "gb18030", "gbk": "gb18030", "euc_kr": "cp949", "big5": "big5hkscs",
}  # fmt: skip
# Encodings with several bytes a character, in which short texts may be valid UTF-8 as well.
WIDE = frozenset("gb18030 hz big5hkscs cp932 cp949 euc_jp utf-7 utf-16 utf-16-le utf-16-be utf-32".split())


def web_encoding(name: str) -> str:
    """What Python calls the encoding that a page, a mail or a card names; "" for one that it does not know."""
    try:
        found = codecs.lookup(name.strip()).name
    except (LookupError, ValueError):  # ValueError: a zero byte in the name
        return ""
    return _LARGER.get(found, found)


def decode_as(data: bytes, encoding: str) -> tuple[str, dict[str, Any]]:
    """As `decode` where the encoding is known or declared; wrong bytes are replaced and counted."""
    encoding = _LARGER.get(codecs.lookup(encoding).name, encoding)
    try:
        text, lost = data.decode(encoding), 0
    except UnicodeDecodeError:
        text = data.decode(encoding, "replace")
        lost = text.count("\ufffd") - (data.count(b"\xef\xbf\xbd") if encoding == "utf-8" else 0)
    if lost:
        return clean(text), {"encoding": f"{encoding} ({lost} invalid bytes replaced)"}
    return clean(text), {} if encoding == "utf-8" else {"encoding": encoding}


_HEADINGS = re.compile(r"^(#{1,6})[ \t]{1,4}(\S[^\n]{0,200})$|^(\S[^\n]{0,120})\n(={3,}|-{3,})[ \t]*$", re.MULTILINE)
_NO_WORDS = re.compile(r"\A(?:[ \t]*+(?:(?:[-=*_]{3,}|<!--[^\n]{0,80}-->)[ \t]*+)?\n)*+")
# A tag of HTML, or code in backticks, in which none is looked for.
_TAG = re.compile(
    r"(?<!`)(?P<ticks>`++).+?(?<!`)(?P=ticks)(?!`)"
    r"|<(?P<end>/?)(?P<name>[A-Za-z]\w{0,20})(?P<attributes>\s[^<>\n]{0,1000})?>"
)
_ATTRIBUTE = re.compile(r"\s[\w:-]+=[\"']")
_FENCE = re.compile(r"^(```|~~~)", re.MULTILINE)
_KEY_VALUE = re.compile(r"([A-Za-z_][\w -]{0,60})[ \t]*:(?:[ \t]+(.*))?$")
# A value of YAML, which may be a list or stand in quotes, in both of which `#` begins no comment.
_VALUE = re.compile(r"""(\[.*?\]|"(?:[^"\\]|\\.)*+"|'(?:[^']|'')*+'|.*?)(?:\s+#.*)?""")
_SPOKEN = re.compile(r"^(?:[\[(]?\d{1,2}:\d\d(?::\d\d)?[\])]?[ \t]|[^\W\d_][\w .'-]{0,30}[:：])[ \t]*\S", re.M)
SPEECH = 2_000  # characters in which two more lines begin with who speaks, or when
TITLE_AREA = 2_000  # characters in which a heading is looked for: one far down names a part
MATTER = 20_000  # ... and in which front matter must end


def find_title(text: str) -> str:
    """The first heading, else a first line of at most 120 characters before a blank line, if no one
    speaks it and no full stop ends it; else ""."""
    area = text[front_matter(text)[1] :][:TITLE_AREA]
    first = next(headings(area), None)
    return (first[2] or "#") if first else _first_line(area)


def top_title(text: str) -> str:
    """The title at the top of a text: a first-level heading, else a line as in `find_title`."""
    area = _NO_WORDS.sub("", text[front_matter(text)[1] :][:TITLE_AREA])
    offset, level, words = next(headings(area), (-1, 0, ""))
    if offset == 0:
        return words if level == 1 else ""
    return _first_line(area)


_MAIL = re.compile(r"(?:(?!S)[A-Z][\w-]{1,30}: [^\n]{0,400}\n){0,9}Subject: ([^\n]{1,300})\n")


def _first_line(area: str) -> str:
    if mail := _MAIL.match(area):
        return " ".join(mail[1].split())
    first, _, rest = _NO_WORDS.sub("", area).partition("\n")
    first = _without_tags(first)
    alone = rest.strip() and not rest.partition("\n")[0].strip()
    # of an interview, a chat
    spoken = _SPOKEN.match(first) and len(_SPOKEN.findall(area[:SPEECH])) > 2
    first = first.strip()
    title = alone and len(first) <= 120 and not spoken and any(map(str.isalnum, first))
    return first if title and not _is_sentence(first) else ""


def _is_sentence(line: str) -> bool:
    """Does a full stop end it, and not that of an abbreviation, behind which a name goes on?"""
    return line.endswith((".", "。")) and len(sentences(f"{line} Ana")) > len(sentences(line))


def headings(text: str) -> Iterator[tuple[int, int, str]]:
    """(offset, level, words) of Markdown headings outside of front matter and code blocks."""
    fences = [match.start() for match in _FENCE.finditer(text)]
    at = 0
    for match in _HEADINGS.finditer(text, front_matter(text)[1]):
        while at < len(fences) and fences[at] < match.start():
            at += 1
        if at % 2:
            continue
        if match[1]:
            words = _without_tags(match[2]).strip()
            if words:  # else a logo
                yield match.start(), len(match[1]), words.rstrip("# ")
        elif not match[3].lstrip().startswith(("|", "-", "*", ">", "#")):
            if words := _without_tags(match[3]).strip():
                yield match.start(), 1 if match[4][0] == "=" else 2, words


def _without_tags(line: str) -> str:
    """A line of Markdown without the tags of HTML in it: those with an attribute in quotes, those that
    end, and those that are ended. The <int> of vector<int> is none, nor is what stands in backticks."""
    if "<" not in line:
        return line
    ended = {tag["name"] for tag in _TAG.finditer(line) if tag["end"]}

    def is_tag(tag: re.Match[str]) -> bool:
        return tag["name"] in ended or bool(_ATTRIBUTE.search(tag["attributes"] or ""))

    return _TAG.sub(lambda tag: "" if is_tag(tag) else tag[0], line)


def front_matter(text: str) -> tuple[dict[str, Any], int]:
    """`key: value` lines between `---` lines, or TOML between `+++`, and their end; else ({}, 0).

    Of two blocks, one after the other, the second wins: a program has put its own above."""
    if text.startswith("+++\n"):
        return _toml_matter(text)
    found, end = _yaml_matter(text, 0)
    if end:
        below = end + len(text[end:MATTER]) - len(text[end:MATTER].lstrip("\n"))
        more, further = _yaml_matter(text, below)
        if more:
            return {**found, **more}, further
    return found, end


def _yaml_matter(text: str, start: int) -> tuple[dict[str, Any], int]:
    """One block. One that never ends is over with the first blank line."""
    if not text.startswith("---\n", start):
        return {}, 0
    found: dict[str, Any] = {}
    open_end: tuple[dict[str, Any], int] = ({}, 0)  # as far as the first blank line
    key, position = "", start + 4
    for line in text[start + 4 : MATTER].split("\n")[:200]:
        position += len(line) + 1
        stripped = line.strip()
        if stripped in ("---", "..."):
            return _without_empty(found), min(position, len(text))
        if not stripped and found and not open_end[1]:
            open_end = (dict(found), position)
        if match := _KEY_VALUE.match(line):
            key, value = match[1].strip().lower(), _without_comment(match[2] or "")
            listed = value.startswith("[") and value.endswith("]")
            items = [part.strip(" \"'") for part in value[1:-1].split(",")] if listed else []
            found[key] = [part for part in items if part] if listed else value.strip("\"'")
        elif stripped.startswith("- ") and key:
            items = found[key] if isinstance(found[key], list) else []
            found[key] = [*items, _without_comment(stripped[2:]).strip(" \"'")]
        elif stripped and not stripped.startswith("#") and not line.startswith((" ", "\t")):
            break  # ordinary text
    return _without_empty(open_end[0]), open_end[1]


def _without_comment(value: str) -> str:
    """A value of YAML without the comment behind it. `#tag`, with which people begin lists of tags, is none."""
    value = value.strip()
    if value.startswith("#"):
        return value if value[1:2].strip() else ""
    found = _VALUE.fullmatch(value)
    return found[1].rstrip() if found else value


def _toml_matter(text: str) -> tuple[dict[str, Any], int]:
    """As Hugo and Zola have it. What stands in its tables is found under the last part of its name."""
    end = text.find("\n+++", 3, MATTER)
    after = text[end + 4 :].partition("\n")[0] if end > 0 else "none"
    if after.strip():
        return {}, 0
    try:
        tables = [tomllib.loads(text[4 : end + 1])]
    except (ValueError, RecursionError):  # pluses above ordinary text
        return {}, 0
    found: dict[str, Any] = {}
    for table in tables:  # which grows: what stands nearer to the top comes first
        tables += (value for value in table.values() if isinstance(value, dict))
        for name, value in table.items():
            if isinstance(value, list):
                found.setdefault(name.lower(), [x for x in value if isinstance(x, str) and x])
            elif not isinstance(value, dict):
                plain = value.isoformat() if isinstance(value, date | time) else str(value)
                found.setdefault(name.lower(), plain)
    return _without_empty(found), min(end + 5 + len(after), len(text))


def _without_empty(found: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if value not in ("", [])}


def iso_date(value: Any) -> str:
    """A day or time as ISO 8601 in UTC, the day in any usual form; "" for what is none."""
    text = str(value).strip()
    try:
        return utc(datetime.fromisoformat(text))
    except (ValueError, OverflowError):
        day = dates.read(text)
        return utc(datetime.fromisoformat(day)) if len(day) == 10 else ""


def utc(moment: datetime) -> str:
    """A time in UTC, ISO 8601 to the second; one without a zone is taken for UTC."""
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return moment.isoformat(timespec="seconds")
