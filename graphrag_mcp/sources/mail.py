"""Mail: eml, mbox, mhtml (RFC 5322, 2045, 4155) and Outlook's msg (MS-OXMSG).

The subject is the title; the text begins with who wrote to whom and when. What a reply marks as a quotation is
left out, and of a mailbox the earlier mails that it repeats, which are documents themselves; nothing else is.
Attachments are given on."""

from __future__ import annotations

import base64
import codecs
import email
import email.policy
import mimetypes
import quopri
import re
import struct
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.errors import InvalidBase64LengthDefect
from email.message import EmailMessage, Message
from email.utils import getaddresses, parsedate_to_datetime
from functools import cached_property
from itertools import chain
from typing import Any

from graphrag_mcp.sources.decode import (
    SHIFTED,
    WIDE,
    ReadError,
    decode,
    refuse_base64,
    utc,
    web_encoding,
    why_not,
    without_base64,
)
from graphrag_mcp.sources.embedded import TNEF, Packed, of_tnef
from graphrag_mcp.sources.html import DECLARED, QUOTE, Page, decoded, readable
from graphrag_mcp.sources.piece import Attachment, NotRead, Piece, Writer, tidy
from graphrag_mcp.sources.rtf import rtf
from graphrag_mcp.text.prose import without_addresses
from graphrag_mcp.text.terms import terms

# "Re:", "AW:", "SV:" ...: two to four letters, or what Chinese and Japanese programs write.
_REPLY = re.compile(
    r"\s*(?:re|aw|antw|sv|vs|res|rif|ref|odp|ynt|回复|回覆|返信)(?:\[\d+\])?\s*[:：]", re.IGNORECASE
)
_QUOTED = re.compile(rf"[ \t]*[>＞{QUOTE}]")
_MARKS = re.compile(rf"^[ \t>＞{QUOTE}]+", re.MULTILINE)
_WORD = re.compile(r"[^\W\d_]+")
_WHEN = re.compile(r"@|\d{1,2}:\d\d|\b\d{4}(?!\d)")
_FIELD = re.compile(r"[ \t]*[*]?([^\W\d_][\w .-]{0,20}?)[*]?\s?[:：][*]?[ \t]*(\S.*)")
# RFC 4155: an address and a date, as `Mon Mar  4 09:15:00 2024`; some boxes have neither.
MAILBOX = re.compile(
    rb"^From \S.{0,250} [A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]?\d \d{1,2}:\d\d.{0,40}\r?\n(?=[A-Za-z][A-Za-z0-9-]*:)",
    re.MULTILINE,
)
_UNDATED = re.compile(rb"^From [^\r\n]*\r?\n(?=[A-Za-z][A-Za-z0-9-]*:)", re.MULTILINE)
# Two fields or more, `From` among them, which no mail is without (RFC 5322, 3.6).
_FIELD_LINE = rb"[A-Za-z][A-Za-z0-9-]*:[^\n]*\n(?:[ \t][^\n]*\n)*+"
_HEADER = re.compile(
    rb"(?=%b[A-Za-z][A-Za-z0-9-]*:)(?:(?!From:)%b)*+From:" % (_FIELD_LINE, _FIELD_LINE), re.I
)
_ESCAPED = re.compile(rb"^>(>*From )", re.MULTILINE)
_IDS = re.compile(r"<([^<>\s]{1,250})>")
_SIGNATURE = re.compile(  # RFC 9580, 7
    r"^-----BEGIN PGP SIGNATURE-----$(?:\n(?!-----).*)*\n-----END PGP SIGNATURE-----$", re.MULTILINE
)
_CELLS_AND_SENTENCES = re.compile(r"[|│]|(?<=[.!?:])[ \t]+|(?<=[。！？])")
EARLIER = 50  # mails of a thread of which a reply may hold the text
# of types that Python does not know
_BODIES = ("text/plain", "text/html")
_FIELDS = ("message/delivery-status", "message/disposition-notification", "message/rfc822-headers")
# Names of types of S/MIME (RFC 5652) as DER writes them.
_DATA, _SIGNED, _ENVELOPED = (bytes.fromhex(f"06092a864886f70d01070{kind}") for kind in (1, 2, 3))
_SUFFIXES = {"text/calendar": ".ics", "application/ics": ".ics", "text/vcard": ".vcf"}
RECEIVERS = 10  # that the sentence on sender and receivers names
MAILS = 200_000  # of a mailbox


@dataclass
class Mail:
    """What is known of a mail before its text is written."""

    subject: str = ""
    sender: list[str] = field(default_factory=list)
    to: list[str] = field(default_factory=list)
    cc: list[str] = field(default_factory=list)
    date: str = ""  # ISO 8601, in the time of the sender
    id: str = ""
    reply_to: list[str] = field(default_factory=list)  # ids of earlier mails, the oldest first
    body: str = ""
    packed: str = ""  # the body in winmail.dat
    attachments: list[Attachment] = field(default_factory=list)
    mails: list[Mail] = field(default_factory=list)  # that are attached, and no files of their own
    not_named: list[Attachment] = field(default_factory=list)  # which the mail gives no names
    lost: list[str] = field(default_factory=list)  # why parts of its body are in no text
    passed_over: list[str] = field(default_factory=list)  # types of parts that are no text

    @cached_property
    def own_text(self) -> str:
        return _own_text(self)

    @cached_property
    def words(self) -> str:
        return f" {' '.join(_MARKS.sub('', self.body).split())} "


def eml(data: bytes, suffix: str) -> Iterator[Piece | Attachment | NotRead]:
    """A mail, and what is attached to it. ReadError where it begins with no header."""
    if suffix == "emlx" and (size := re.match(rb"(\d{1,9})\s*?\n", data)):  # of Apple Mail
        data = data[size.end() : size.end() + int(size[1])]
    if b"\0" in data[:100]:  # saved as UTF-16
        data = decode(data)[0].encode()
    if not re.match(rb"\s*(?:>?From .*\r?\n)?[A-Za-z][A-Za-z0-9-]*:", data[:2_000]):
        raise ReadError("it is damaged, or no mail: it begins with no header")
    yield from _given(_parsed(data), "")


def mbox(data: bytes, suffix: str) -> Iterator[Piece | Attachment | NotRead]:
    """Each mail of a mailbox as a document; its key is its number. One that cannot be read ends none of the
    others."""
    dated = list(MAILBOX.finditer(data))
    undated = list(_UNDATED.finditer(data))
    starts = undated
    if dated and dated[0].start() == undated[0].start():  # undated lines may be of a body
        known = {match.start() for match in dated}
        starts = [
            match for match in undated if match.start() in known or _HEADER.match(data, match.end())
        ]
    if not starts:
        raise ReadError("it is damaged, or no mailbox: no mail begins in it")
    if len(starts) > MAILS:
        raise ReadError(f"it holds over {MAILS:,} mails. Split it")
    ends = [match.start() for match in starts[1:]] + [len(data)]
    mails: list[Mail | NotRead] = []
    for number, (start, end) in enumerate(zip(starts, ends, strict=True), 1):
        try:
            mails.append(_parsed(_ESCAPED.sub(rb"\1", data[start.end() : end])))
        except MemoryError:
            raise
        except Exception as error:  # bytes from anywhere: the library raises what it likes
            mails.append(NotRead(str(number), why_not(error, "a mail")))
    by_id = {mail.id: mail for mail in mails if isinstance(mail, Mail) and mail.id}
    for number, mail in enumerate(mails, 1):
        if isinstance(mail, NotRead):
            yield mail
            continue
        earlier = [by_id[id] for id in mail.reply_to[-EARLIER:] if id in by_id and id != mail.id]
        try:
            yield from list(_given(mail, str(number), earlier))
        except ReadError as error:
            yield NotRead(str(number), str(error))


def mhtml(data: bytes, suffix: str) -> Iterator[Piece]:
    """A page that a browser saved with all its parts in one file."""
    message = email.message_from_bytes(data, policy=email.policy.compat32)
    pages: list[tuple[Page, dict[str, Any]]] = []
    for part in message.walk():
        if part.get_content_type() in ("text/html", "application/xhtml+xml"):
            page, metadata = decoded(_payload(part))
            if metadata and part.get_content_charset():
                page = readable(_words(part))
            pages.append((page, page.metadata | metadata))
    if not pages:
        raise ReadError("it is damaged, or no mhtml file: no page in it")
    first, metadata = pages[0]
    address = str(message.get("Snapshot-Content-Location") or "").strip()
    if address.startswith("http"):
        metadata["url"] = address
    # The other pages stand in frames of the first.
    texts = dict.fromkeys(page.text.strip() for page, _ in pages)
    text = "\n\n".join(filter(None, texts))
    title = next((page.title for page, _ in pages if page.title), "")
    yield Piece(f"{text}\n" if text else "", first.title or title, metadata=metadata)


# ---- writing ---------------------------------------------------------------------------------------


def _own_text(mail: Mail, earlier: Sequence[Mail] = ()) -> str:
    """The body; of a reply without what it quotes, unless that is all of it."""
    body = tidy(mail.body)
    whole = body.replace(QUOTE, ">")
    if not mail.reply_to and not _REPLY.match(mail.subject):
        return whole
    people = [*mail.sender, *mail.to, *mail.cc]
    people += (sender for other in earlier for sender in other.sender)
    names = [name.rstrip(">") for person in people for name in person.split(" <")]
    names = [name for name in names if len(name) > 1]
    unquoted = without_quotes(body, names, [other.words for other in earlier])
    return tidy(unquoted.replace(QUOTE, ">")) or whole


def _given(
    mail: Mail, key: str, earlier: Sequence[Mail] = ()
) -> Iterator[Piece | Attachment | NotRead]:
    """The mail as a document, what of it is not read, and what is attached to it. `earlier`: mails before it in its
    thread."""
    lines = [("From", ", ".join(mail.sender)), ("To", ", ".join(mail.to))]
    lines += [("Cc", ", ".join(mail.cc)), ("Date", mail.date[:16].replace("T", " "))]
    inner = [
        (inner_mail, inner_mail.subject or f"mail {number}")
        for number, inner_mail in enumerate(mail.mails, 1)
    ]
    attached = [attachment.name for attachment in mail.attachments] + [name for _, name in inner]
    lines.append(("Attachments", ", ".join(attached)))
    names = [
        person.partition(" <")[0] for person in (*mail.sender[:1], *(mail.to + mail.cc)[:RECEIVERS])
    ]
    body = without_earlier(_own_text(mail, earlier), [other.own_text for other in earlier])
    writer = Writer()
    # a heading: what is quoted is the text below it
    writer.add(f"# {mail.subject}" if mail.subject else "")
    writer.add("\n".join(f"{name}: {value}" for name, value in lines if value))
    if mail.sender and len(names) > 1:  # a sentence, so that they are related as people
        writer.add(
            f"{names[0]} wrote to {' and '.join(filter(None, (', '.join(names[1:-1]), names[-1])))}."
        )
    writer.add(body)
    thread = (mail.reply_to or [mail.id])[0]
    metadata: dict[str, Any] = {"from": ", ".join(mail.sender), "date": mail.date}
    metadata |= {"to": mail.to, "cc": mail.cc, "message_id": mail.id}
    metadata |= {"in_reply_to": "".join(mail.reply_to[-1:]), "thread": thread}
    metadata = {name: value for name, value in metadata.items() if value}
    yield writer.piece(mail.subject, key=key, metadata=metadata)
    if mail.passed_over:
        which = "a part of it" if body else "its body"
        mail.lost.append(f"{which} is {', '.join(mail.passed_over)}, which is not read")
    for reason in dict.fromkeys(mail.lost):
        yield NotRead(key, reason)
    origin = {"attached_to": mail.subject, "date": mail.date, "thread": thread}
    origin = {name: value for name, value in origin.items() if value}
    for attachment in mail.attachments:
        yield Attachment(
            f"{key}/{attachment.name}" if key else attachment.name, attachment.data, origin
        )
    for inner_mail, name in inner:
        for found in _given(inner_mail, f"{key}/{name}" if key else name):
            if isinstance(found, NotRead):
                yield found
            else:
                yield replace(found, metadata=origin | found.metadata)


def without_quotes(body: str, people: Sequence[str], earlier: Sequence[str] = ()) -> str:
    """A reply without the blocks that it quotes, and the lines that introduce them. The HTML of a mail marks its
    quotations. Lines with `>` are a quotation where they stand in an earlier mail, and below an introduction where no
    earlier mail holds a block of the reply; others may be prompts, or say "more than". A block that begins with the
    header of a mail is kept: it is forwarded, and may stand nowhere else. `earlier`: the words of earlier mails."""
    lines = body.split("\n")
    kept: list[str] = []
    number, introduced = 0, False
    known = False  # does an earlier mail hold a quotation of it?
    while number < len(lines):
        if not _QUOTED.match(lines[number]):
            kept.append(lines[number])
            number += 1
            continue
        start = end = number
        while number < len(lines) and (_QUOTED.match(lines[number]) or not lines[number].strip()):
            number += 1  # blank lines may stand inside of a block
            end = number if lines[number - 1].strip() else end
        number, block = end, lines[start:end]
        above = len(kept)
        while above and not kept[above - 1].strip():
            above -= 1
        introduction = _introduction(kept[max(0, above - 3) : above], people)
        bare = [*filter(None, (_MARKS.sub("", line).strip() for line in block))]
        introduced = introduced or introduction > 0
        introduced = introduced or any(_introduction(bare[:count], people) for count in (1, 2, 3))
        words = f" {' '.join(' '.join(bare).split())} "
        repeated = any(words in text for text in earlier)
        known = known or (introduced and repeated)
        quoted = repeated or QUOTE in block[0] or (introduced and not known)
        if _is_forwarded(block[:20]) or not quoted:
            kept += block
        else:
            kept[above - introduction :] = [""]
    return "\n".join(kept).strip()


def _introduction(lines: Sequence[str], people: Sequence[str]) -> int:
    """How many of these lines, from the last, are nothing but an introduction, as `On 4 March 2024 at 9:12, Ana wrote:`:
    a person, a day with its year or a time, no other numbers, and ten other words at most. A line with more may hold
    what stands nowhere else."""
    for count in range(1, len(lines) + 1):
        text = " ".join(lines[-count:]).strip()
        if not text.endswith((":", "：")) or not all(map(str.strip, lines[-count:])):
            return 0
        if not any(name in text for name in people):
            continue
        for name in sorted(people, key=len, reverse=True):
            text = text.replace(name, " ")
        text = " ".join(word for word in text.split() if "@" not in word)
        numbers = (int(number[:5]) for number in re.findall(r"\d+", text))
        of_day = all(number < 60 or 1900 <= number < 2100 for number in numbers)
        if of_day and _WHEN.search(text) and len(_WORD.findall(text)) <= 10:
            return count
    return 0


def _is_forwarded(lines: Sequence[str]) -> bool:
    """Does a block begin with the header of a mail? Three fields or more, an address or a time among them."""
    fields: list[str] = []
    for line in lines:
        words = _MARKS.sub("", line)
        if _FIELD.fullmatch(words):
            fields.append(words)
        elif words and (fields or not _QUOTED.match(line)):
            break
    return len(fields) >= 3 and _WHEN.search("\n".join(fields)) is not None


def without_earlier(body: str, earlier: Iterable[str]) -> str:
    """A reply without the earlier mails that stand in it whole below its own words, however their lines are
    broken. One of a single line, which a reply may have of its own, is left out only below the header of a mail or
    a rule of dashes."""
    joined = " ".join(body.split())
    for text in earlier:
        words = text.split()
        at = f" {joined} ".find(f" {' '.join(words)} ")
        if not words or at <= 0:
            continue
        found = list(re.finditer(r"\S+", body))
        first = joined.count(" ", 0, at)
        start, end = found[first].start(), found[first + len(words) - 1].end()
        above, _, before = body[:start].rpartition("\n")
        after = body[end:].partition("\n")[0]
        last = above.rstrip().rpartition("\n")[2]
        introduced = "\n" in text.strip() or _FIELD.fullmatch(last) or last.endswith(("--", "__"))
        if not before.strip() and not after.strip() and introduced:
            body = f"{body[:start]}\n\n{body[end:]}"
            joined = " ".join(body.split())
    return tidy(body)


# ---- eml -------------------------------------------------------------------------------------------


def _parsed(data: bytes) -> Mail:
    message = email.message_from_bytes(data, policy=email.policy.default)
    mail = Mail(
        subject=_header(message, "Subject"),
        id="".join(_IDS.findall(_header(message, "Message-ID"))[:1]),
    )
    mail.sender, mail.to, mail.cc = (_people(message, name) for name in ("From", "To", "Cc"))
    mail.date = _day(_header(message, "Date"))
    earlier = " ".join(_header(message, name) for name in ("References", "In-Reply-To"))
    mail.reply_to = list(dict.fromkeys(_IDS.findall(earlier)))
    texts: dict[str, list[str]] = {"plain": [], "html": []}
    _collect(message, mail, texts, 0)
    named = {b"".join(attachment.data.split()) for attachment in mail.attachments}
    mail.attachments += [
        attachment  # an invitation may also be attached with a name
        for attachment in mail.not_named
        if b"".join(attachment.data.split()) not in named
    ]
    plain = "\n\n".join(texts["plain"])
    mail.body = plain if plain.strip() else "\n\n".join(texts["html"])
    if mail.packed.strip():
        mail.body = "\n".join(_of_alternatives({"plain": [mail.body], "html": [mail.packed]}))
    return mail


def _collect(
    part: Message, mail: Mail, texts: dict[str, list[str]], depth: int, in_alternative: bool = False
) -> None:
    kind, name = part.get_content_type(), _file_name(part)
    is_mail = kind.startswith("message/")
    payload: Any = part.get_payload() if is_mail else None
    inner_parts: list[Message] = payload if isinstance(payload, list) else []
    # Why a mail was not delivered (RFC 3464), whether it was read (RFC 8098): fields alone.
    if inner_parts and (kind in _FIELDS or not any(fields.get_payload() for fields in inner_parts)):
        fields = (inner.as_bytes(policy=email.policy.compat32).strip() for inner in inner_parts)
        texts["plain"].append(decode(b"\n\n".join(fields))[0])
        return
    if part.is_multipart() and not is_mail:
        alternatives: dict[str, list[str]] = {"plain": [], "html": []}
        inner = alternatives if kind == "multipart/alternative" else texts
        lost, passed_over = len(mail.lost), len(mail.passed_over)
        for subpart in part.get_payload() if depth < 50 else ():
            if isinstance(subpart, Message):
                _collect(subpart, mail, inner, depth + 1, inner is alternatives)
        if inner is alternatives:
            texts["plain"] += _of_alternatives(alternatives)
            if "".join(alternatives["html"]).strip():  # the last is the richest (RFC 2046, 5.1.4)
                del mail.lost[lost:]
            if "".join(alternatives["plain"] + alternatives["html"]).strip():
                del mail.passed_over[passed_over:]
        return
    attached = part.get_content_disposition() == "attachment"
    # A body may also be of another kind of text, or of parts between which no boundary stands.
    whole = kind.startswith("multipart/") or (kind.startswith("text/") and kind not in _SUFFIXES)
    if (
        whole
        and not attached
        and not name
        and (
            kind in _BODIES or not in_alternative or not any(map(str.strip, chain(*texts.values())))
        )
    ):
        try:
            words = _words(part)
        except ReadError as error:
            mail.lost.append(f"its body: {error}")
            return
        if str(part.get_param("format", "")).casefold() == "flowed":
            words = _unflowed(words, str(part.get_param("delsp", "")).casefold() == "yes")
        if kind == "text/html":
            words = readable(words, mail=True).text
        texts["html" if kind == "text/html" else "plain"].append(_without_base64(words, mail))
        return
    if is_mail:
        payload = part.get_payload()
        inner_mail = payload[0] if isinstance(payload, list) and payload else None
        data = b""
        if isinstance(inner_mail, Message):
            coding = str(part.get("Content-Transfer-Encoding", "")).strip().casefold()
            if coding == "base64" and not inner_mail.keys():  # against RFC 2046, 5.2.1
                inner_mail["Content-Transfer-Encoding"] = coding
                data = _payload(inner_mail)
            else:
                data = inner_mail.as_bytes(policy=email.policy.compat32)
            if coding == "quoted-printable" and _is_quoted(data):
                data = quopri.decodestring(data)
        subject = _header(inner_mail, "Subject") if isinstance(inner_mail, Message) else ""
        mail.attachments.append(Attachment(name or f"{subject or 'mail'}.eml", data))
        return
    if kind in ("application/pkcs7-mime", "application/x-pkcs7-mime"):
        data = _payload(part)
        if depth < 50 and (signed := _signed(data)):
            inner_part = email.message_from_bytes(signed, policy=email.policy.default)
            _collect(inner_part, mail, texts, depth + 1, in_alternative)
            return
        if _ENVELOPED in data[:60]:
            mail.lost.append("its body is encrypted (S/MIME)")
            return
    if kind == "application/ms-tnef" or name.casefold() == "winmail.dat":
        data = _payload(part)
        if (packed := of_tnef(data)) == Packed():
            mail.attachments.append(Attachment(name or "winmail.dat", data))
            return
        inner_packed = _packed(packed, 1)
        mail.packed = inner_packed.body
        mail.attachments += inner_packed.attachments
        mail.mails += inner_packed.mails
        mail.lost += inner_packed.lost
        return
    if name:
        mail.attachments.append(Attachment(name, _payload(part)))
        return
    suffix = _SUFFIXES.get(kind) or mimetypes.MimeTypes().guess_extension(kind)
    if suffix is None and not attached:
        mail.passed_over.append(kind)
        return
    number = len(mail.not_named) + 1
    name = f"attachment {number}{suffix or '.' + kind.rpartition('/')[2]}"
    mail.not_named.append(Attachment(name, _payload(part)))


def _packed(packed: Packed, depth: int) -> Mail:
    """A mail that winmail.dat holds, and the mails that are attached to it."""
    mail = Mail(packed.subject, _sender(*packed.sender), date=packed.date)
    pages = {_BODY: packed.code_page}
    try:
        body = packed.text or _text(packed.ansi, _code_page(pages, (_BODY,)))
        body = body.strip() or _page(packed.page, pages) or _of_rtf(packed.rtf)
        mail.body = _without_base64(body, mail)
    except ReadError as error:
        mail.lost.append(f"its body: {error}")
    for file in packed.files:
        if file.data.startswith(TNEF) and depth < DEPTH:
            inner = _packed(of_tnef(file.data), depth + 1)
            inner.subject = inner.subject or file.name
            mail.mails.append(inner)
        else:
            mail.attachments.append(file)
    return mail


def _signed(data: bytes) -> bytes:
    """What a signature of S/MIME is wrapped around (RFC 5652, 5.2): octets, or chunks of octets, behind the name
    of their type; b"" for none."""
    at = data.find(_DATA) + len(_DATA)
    if _SIGNED not in data[:60] or at < len(_DATA):
        return b""
    chunks: list[bytes] = []
    while at + 2 <= len(data):
        tag, size = data[at], data[at + 1]
        long = size & 0x7F if size > 0x80 else 0
        start = at + 2 + long
        if tag not in (0xA0, 0x24, 0x04):
            break
        if tag == 0x04:
            size = int.from_bytes(data[at + 2 : start], "big") if long else size
            chunks.append(data[start : start + size])
            start += size
        at = start
    return b"".join(chunks)


def _without_base64(words: str, mail: Mail) -> str:
    """A body; of one that is mostly base64, which is a loss, what stands beside it. A signature is no loss,
    nor are letters in quoted-printable, beside which words are read."""
    words = words.replace("\r\n", "\n")
    try:
        refuse_base64(_SIGNATURE.sub("", words))
    except ReadError as error:
        mail.lost.append(f"its body: {error}")
        return without_base64(words)
    return words


def _of_alternatives(alternatives: dict[str, list[str]]) -> list[str]:
    """The plain text where it holds all terms of the page as often, as it does of the same text; the page where it
    holds all of the plain text; else the plain text, and the cells and sentences of the page that it lacks."""
    plain, page = (
        Counter(terms(without_addresses("\n".join(alternatives[name])), ""))
        for name in ("plain", "html")
    )
    if plain and page <= plain:
        return alternatives["plain"]
    if plain <= page:
        return alternatives["html"]
    further: list[str] = []
    for line in "\n".join(alternatives["html"]).split("\n"):
        new: list[str] = []
        repeated = False
        for part in _CELLS_AND_SENTENCES.split(line):
            words = Counter(terms(without_addresses(part), ""))
            if all(plain[term] >= count for term, count in words.items()):
                plain.subtract(words)
                repeated = repeated or bool(words)
            else:
                new.append(part.strip())
        further.append(" ".join(new) if repeated else line if new else "")
    return [*alternatives["plain"], "\n".join(further)]


def _is_quoted(data: bytes) -> bool:
    """Is a whole mail in quoted-printable, against RFC 2046, 5.2.1? Then each `=` of its header is `=3D`;
    without one, the mail names no encoding."""
    header = data.replace(b"\r\n", b"\n").partition(b"\n\n")[0]
    if b"=" in header:
        return header.count(b"=") == len(re.findall(rb"=(?:3D|\n)", header))
    return b"content-transfer-encoding:" not in header.lower()


def _file_name(part: Message) -> str:
    try:
        name = part.get_filename() or ""
        for key, raw in part.raw_items() if "\ufffd" in name else ():  # raw bytes
            if key.lower() in ("content-disposition", "content-type"):
                written = str(raw).encode("utf-8", "surrogateescape")
                text = " ".join(_text(written, "windows-1252").split())
                params = email.policy.default.header_factory(key, text).params  # type: ignore[attr-defined]
                name = params.get("filename") or params.get("name") or name
    except (ValueError, LookupError, TypeError):
        name = ""
    return " ".join(re.split(r"[/\\]", str(name))[-1].split())[:200]


def _payload(part: Message) -> bytes:
    payload = part.get_payload(decode=True)
    data = payload if isinstance(payload, bytes) else b""
    if any(isinstance(defect, InvalidBase64LengthDefect) for defect in part.defects):
        with suppress(ValueError):  # a letter too many, for which the library decodes nothing
            return base64.b64decode(b"".join(data.split())[:-1] + b"==")
    return data


def _words(part: Message) -> str:
    """The text of a part. ReadError for what is no text."""
    return _text(_payload(part), part.get_content_charset() or "")


def _text(data: bytes, charset: str) -> str:
    """Bytes in the charset that a mail names. It is guessed where Python does not know it or the bytes are not in
    it; ISO-2022, which is all ASCII, and UTF-8 are read where another charset is named."""
    named = web_encoding(charset)
    if not (SHIFTED in data and data.isascii()):
        for encoding in (named,) if data.isascii() or named in WIDE else ("utf-8", named):
            with suppress(LookupError, UnicodeError):
                return data.decode(encoding)
    return decode(data)[0]


def _unflowed(text: str, without_blank: bool) -> str:
    """Paragraphs of `format=flowed` on one line each (RFC 3676): a line that ends with a blank goes on
    in the next of the same depth of quoting; the mark of a signature does not."""
    lines: list[list[str]] = []  # the parts of each
    flows, depth = False, 0
    for line in text.replace("\r\n", "\n").split("\n"):
        bare = line.lstrip(">")
        quoted = len(line) - len(bare)
        bare = bare.removeprefix(" ")
        signature = bare == "-- "
        if flows and bare and quoted == depth and not signature:
            if without_blank:
                lines[-1][-1] = lines[-1][-1][:-1]
            lines[-1].append(bare)
        else:
            lines.append([f"{'>' * quoted} {bare}" if quoted else bare])
        flows, depth = bare.endswith(" ") and not signature, quoted
    return "\n".join(map("".join, lines))


def _header(message: Message, name: str) -> str:
    """A header as text; "" for none. It is taken as written where the library cannot parse it. Raw bytes are in the
    charset of the mail; of raw ISO-2022 the library's parser of addresses loses the escapes."""
    raw = next((raw for key, raw in message.raw_items() if key.lower() == name.lower()), "")
    written = str(raw).encode("utf-8", "surrogateescape")
    if SHIFTED in written:
        return " ".join(decode(written)[0].split())
    try:
        if not written.isascii():
            text = _text(written, _charset(message))
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


_CHARSET = re.compile(r"=\?([\w.:-]{1,40})(?=(?:\*[\w-]{1,20})?\?[bBqQ]\?)")


def _larger(charset: re.Match[str]) -> str:
    """The charset of an encoded word as Python calls the one that its letters are of."""
    return f"=?{web_encoding(charset[1]) or charset[1]}"


def _people(message: EmailMessage | Message, name: str) -> list[str]:
    found = getaddresses([_header(message, name)])
    return [person for person in (_person(who, address) for who, address in found) if person]


def _person(name: str, address: str) -> str:
    who = _turned(name, address)
    return f"{who} <{address}>" if who and address and who != address else who or address


def _sender(who: str = "", address: str = "") -> list[str]:
    """The sender of a mail of Outlook. Beside a name, an address of Exchange (X.500) says nothing."""
    person = _person(who, address if "@" in address or not who else "")
    return [person] if person else []


_SURNAME_FIRST = re.compile(
    r"(?P<last>[^\W\d_][^,()]{0,40}), (?P<first>[^\W\d_][^,()]{0,40}?)(?P<rest> \(.{1,60}\))?"
)


def _turned(name: str, address: str = "") -> str:
    """`Holm, Ana (Sales)`, as Exchange writes people, in the order of texts, `Ana Holm (Sales)`, where
    their address has both names in this order: `Support, Europe` and `King, Jr.` stay as they are. The
    quotes that Outlook puts around a name are left out."""
    name = name.strip("\0 ")
    name = name[1:-1] if len(name) > 2 and name[0] == name[-1] == "'" else name
    found = _SURNAME_FIRST.fullmatch(name)
    if not found:
        return name
    last, first = found["last"], found["first"]
    mailbox = _spellings(address.rpartition("@")[0])
    if not mailbox & (_spellings(first + last) | _spellings(first.split()[0] + last)):
        return name
    return f"{first} {last}{found['rest'] or ''}"


_UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"})


def _spellings(name: str) -> set[str]:
    """The letters of a name without their marks: {"muller", "mueller"} of `Müller`."""
    return {
        "".join(filter(str.isalpha, unicodedata.normalize("NFKD", spelling)))
        for spelling in (name.casefold(), name.casefold().translate(_UMLAUTS))
    } - {""}


def _day(value: str) -> str:
    try:
        return parsedate_to_datetime(value).isoformat(timespec="seconds") if value else ""
    except (ValueError, TypeError, IndexError, OverflowError):
        return ""


# ---- msg -------------------------------------------------------------------------------------------

_STRING, _ANSI, _BYTES, _OBJECT = "001F", "001E", "0102", "000D"
_INTEGER, _TIME = 0x0003, 0x0040
_MESSAGE, _BODY = 0x3FFD, 0x3FDE  # properties that hold a code page
DEPTH = 4  # of mails in mails
_EPOCH = datetime(1601, 1, 1, tzinfo=UTC)


def msg(data: bytes, suffix: str) -> Iterator[Piece | Attachment | NotRead]:
    """A mail as Outlook saves it, and what is attached to it. ReadError for a damaged one."""
    import io

    import olefile

    if not data.startswith(b"\xd0\xcf\x11\xe0"):
        raise ReadError("it is damaged, or no msg file")
    try:
        yield from _given(_outlook(olefile.OleFileIO(io.BytesIO(data)), []), "")
    except (OSError, ValueError, struct.error, AttributeError, TypeError) as error:
        raise ReadError("it is damaged, or no msg file") from error


def _outlook(file: Any, folder: list[str]) -> Mail:
    numbers = _numbers(file, folder)
    encoding = _code_page(numbers, (_MESSAGE, _BODY))

    def text(tag: str, at: list[str] = folder) -> str:
        for kind in (_STRING, _ANSI):
            path = [*at, f"__substg1.0_{tag}{kind}"]
            if file.exists(path):
                found = file.openstream(path).read()
                words = found.decode("utf-16-le", "replace") if kind == _STRING else _ansi(found)
                return words.rstrip("\0")
        return ""

    def _ansi(data: bytes) -> str:
        with suppress(UnicodeDecodeError, LookupError):
            return data.decode(encoding)
        return decode(data)[0]

    def raw(tag: str, at: list[str] = folder) -> bytes:
        path = [*at, f"__substg1.0_{tag}{_BYTES}"]
        return file.openstream(path).read() if file.exists(path) else b""

    headers = email.message_from_string(text("007D"), policy=email.policy.default)
    mail = Mail(subject=text("0037") or _header(headers, "Subject"), id=text("1035").strip("<> "))
    address = text("5D01") or text("0C1F")
    mail.sender = _sender(text("0C1A"), address) or _people(headers, "From")
    mail.to = _people(headers, "To") or _split(text("0E04"))
    mail.cc = _people(headers, "Cc") or _split(text("0E03"))
    mail.date = _day(_header(headers, "Date")) or _time(numbers)
    earlier = _IDS.findall(text("1039")) + _IDS.findall(text("1042"))
    mail.reply_to = list(dict.fromkeys(earlier or _IDS.findall(_header(headers, "In-Reply-To"))))
    try:
        mail.body = text("1000")
        if not mail.body.strip():
            page = _page(raw("1013"), numbers)
            mail.body = page or readable(text("1013"), mail=True).text or _of_rtf(raw("1009"))
        mail.body = _without_base64(mail.body, mail)
    except ReadError as error:
        mail.lost.append(f"its body: {error}")
    names = {
        path[len(folder)]
        for path in file.listdir(streams=True, storages=True)
        if path[: len(folder)] == folder and len(path) > len(folder)
    }
    for storage in sorted(name for name in names if name.startswith("__attach_version1.0_")):
        at = [*folder, storage]
        inside = [*at, f"__substg1.0_3701{_OBJECT}"]
        if len(folder) < 2 * DEPTH and file.exists([*inside, "__properties_version1.0"]):
            mail.mails.append(_outlook(file, inside))
            continue
        name = text("3707", at) or text("3704", at) or text("3001", at) or "attachment"
        mail.attachments.append(Attachment(" ".join(name.split())[:200], raw("3701", at)))
    return mail


def _page(markup: bytes, numbers: dict[int, int]) -> str:
    """A body of HTML: UTF-8 where it is such, else in the encoding that it declares, else in that of
    bodies, else in that of the message."""
    charset = DECLARED.search(markup[:4096])
    named = (charset[1].decode("ascii") if charset else "", _code_page(numbers, (_BODY, _MESSAGE)))
    with suppress(UnicodeDecodeError):
        markup.decode("utf-8")
        # the encodings with escapes, such as ISO-2022-JP, are valid UTF-8
        named = named if b"\x1b" in markup else ()
    for name in named:
        with suppress(UnicodeDecodeError, LookupError):
            return readable(markup.decode(web_encoding(name)), mail=True).text
    return readable(decode(markup)[0], mail=True).text if markup else ""


def _of_rtf(packed: bytes) -> str:
    """The text of a body that is compressed RTF (MS-OXRTFCP); "" for none."""
    if not packed:
        return ""
    from compressed_rtf import decompress

    try:
        data = decompress(packed)
    except MemoryError:
        raise
    except Exception as error:  # what the library raises of bytes that it does not expect
        raise ReadError("its compressed RTF is damaged") from error
    return "\n".join(piece.text for piece in rtf(data, "rtf"))


def _split(people: str) -> list[str]:
    return [_turned(" ".join(person.split())) for person in people.split(";") if person.strip()]


def _numbers(file: Any, folder: list[str]) -> dict[int, int]:
    """The properties of up to 8 bytes that a mail has, by tag."""
    path = [*folder, "__properties_version1.0"]
    data = file.openstream(path).read() if file.exists(path) else b""
    found: dict[int, int] = {}
    for at in range(32 if not folder else 24, len(data) - 15, 16):
        kind, tag = struct.unpack_from("<HH", data, at)
        if kind in (_INTEGER, _TIME):
            found[tag] = struct.unpack_from("<Q" if kind == _TIME else "<I", data, at + 8)[0]
    return found


def _code_page(numbers: dict[int, int], properties: tuple[int, ...]) -> str:
    """The encoding that the first of these properties names whose code page is known; "" for none."""
    known = {65001: "utf-8", 936: "gb18030", 20866: "koi8-r"}
    for page in filter(None, map(numbers.get, properties)):
        with suppress(LookupError):
            return codecs.lookup(known.get(page, f"cp{page}")).name
    return ""


def _time(numbers: dict[int, int]) -> str:
    """When it was sent, or came: 100 nanoseconds since 1601."""
    ticks = numbers.get(0x0039) or numbers.get(0x0E06) or 0
    return utc(_EPOCH + timedelta(microseconds=ticks // 10)) if 0 < ticks < 2**62 else ""
