"""Address cards (vcf, RFC 6350) and calendars (ics, RFC 5545): a document each, as lines of `name: value`."""

from __future__ import annotations

import quopri
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from graphrag_mcp.sources.decode import ReadError, decode, decode_as, web_encoding
from graphrag_mcp.sources.piece import Piece

_LINE = re.compile(
    r"(?:[\w-]{1,40}\.)?([A-Za-z][\w-]{0,40})((?:;[^:;\"\n]{0,100}=\"[^\"\n]{0,400}\"|;[^:;\"\n]{0,400})*+):(.*)",
    re.DOTALL,
)
# A line in an encoding of its own, with those that go on with it.
_ENCODED = re.compile(
    rb"^[^:\r\n]{1,200};CHARSET=\"?([\w.:-]{1,40}).*(?:\r?\n[ \t].*)*", re.IGNORECASE | re.MULTILINE
)
_FOLDED = re.compile(r"\n[ \t]")
_DATE = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(?:\d\d)?(Z?))?\Z")
_CARD = {
    "FN": "name", "ORG": "organization", "TITLE": "title", "ROLE": "role", "TEL": "telephone", "EMAIL": "mail",
    "ADR": "address", "BDAY": "born", "URL": "page", "NOTE": "note", "NICKNAME": "called",
}  # fmt: skip
_EVENT = {
    "SUMMARY": "event", "DTSTART": "start", "DTEND": "end", "DUE": "due", "LOCATION": "place", "ORGANIZER": "organizer",
    "ATTENDEE": "attendee", "STATUS": "status", "RRULE": "repeats", "DESCRIPTION": "description", "URL": "page",
}  # fmt: skip


@dataclass
class _Record:
    kind: str
    lines: list[str] = field(default_factory=list)
    title: str = ""
    date: str = ""
    key: str = ""


def cards(data: bytes, suffix: str) -> Iterator[Piece]:
    """Each VCARD, VEVENT, VTODO and VJOURNAL of a file."""
    text, metadata = decode(_ENCODED.sub(_as_utf8, data))
    open_records: list[_Record] = []
    number = 0
    for line in _unfolded(text):
        found = _LINE.fullmatch(line.strip())
        if not found:
            continue
        name, options, value = found[1].upper(), found[2], found[3]
        if name == "BEGIN":
            open_records.append(_Record(value.strip().upper()))
        elif name == "END" and open_records:
            record = open_records.pop()
            if record.lines and record.kind in ("VCARD", "VEVENT", "VTODO", "VJOURNAL"):
                number += 1
                words, key = "\n".join(record.lines) + "\n", record.key or str(number)
                dated = {"date": record.date} if record.date else {}
                yield Piece(words, record.title, key, metadata | dated)
        elif open_records:
            _take(open_records[-1], name, options, _plain(value, options))
    if not number:
        raise ReadError(f"it is damaged, or no {suffix} file: it holds no record")


def _as_utf8(line: re.Match[bytes]) -> bytes:
    encoding = web_encoding(line[1].decode("ascii"))
    return decode_as(line[0], encoding)[0].encode() if encoding else line[0]


def _take(record: _Record, name: str, options: str, value: str) -> None:
    label = (_CARD if record.kind == "VCARD" else _EVENT).get(name, "")
    if name == "UID" and "\n" not in value:
        record.key = value.strip()[:200]
    if not label or not value.strip(" ;,"):
        return
    if moment := _DATE.fullmatch(value.strip()):
        year, month, day, hour, minute, utc = moment.groups()
        value = f"{year}-{month}-{day}"
        if name == "DTSTART":
            record.date = value
        if hour:  # most calendars are exported in UTC, which is no time of the place
            zone = "UTC" if utc else _option(options, "TZID")
            value = f"{value} {hour}:{minute} {zone}"
    if name in ("ADR", "ORG"):
        value = ", ".join(part.strip() for part in value.split(";") if part.strip())
    value = value[7:] if value.casefold().startswith("mailto:") else value
    if named := _option(options, "CN"):
        value = f"{named} <{value}>"
    if name in ("FN", "SUMMARY"):
        record.title = " ".join(value.split())
    record.lines.append(f"{label}: {value.strip()}")


def _unfolded(text: str) -> Iterator[str]:
    """Content lines; those of quoted-printable go on behind `=`."""
    lines = iter(_FOLDED.sub("", text).split("\n"))
    for line in lines:
        while "QUOTED-PRINTABLE" in line.partition(":")[0].upper() and line.endswith("="):
            line = line[:-1] + next(lines, "")
        yield line


def _plain(value: str, options: str) -> str:
    if "QUOTED-PRINTABLE" in options.upper():
        data = quopri.decodestring(value.encode("utf-8"))
        encoding = web_encoding(_option(options, "CHARSET"))
        value = (decode_as(data, encoding) if encoding else decode(data))[0]
    return re.sub(r"\\([nN,;\\])", lambda match: "\n" if match[1] in "nN" else match[1], value)


def _option(options: str, name: str) -> str:
    """A parameter of a line, as `TZID` of `;TZID=Europe/Berlin`."""
    found = re.search(rf";{name}=\"?([^\";:]+)", options, re.IGNORECASE)
    return found[1] if found else ""
