"""Mail: eml, mbox, mhtml (RFC 5322, 2045, 4155)."""

from __future__ import annotations

import base64
import email
import email.policy
import mimetypes
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from email.errors import InvalidBase64LengthDefect
from email.message import Message
from itertools import chain
from typing import Any

from graphrag_mcp.sources.decode import ReadError, decode, why_not
from graphrag_mcp.sources.headers import IDS, day, header, in_charset, people
from graphrag_mcp.sources.html import Page, decoded, readable
from graphrag_mcp.sources.letter import Mail, written
from graphrag_mcp.sources.outlook import of_tnef
from graphrag_mcp.sources.piece import Attachment, NotRead, Piece
from graphrag_mcp.text.prose import without_addresses
from graphrag_mcp.text.terms import terms

# RFC 4155: an address and a date, as `Mon Mar  4 09:15:00 2024`; some boxes have neither.
MAILBOX = re.compile(
    rb"^From \S.{0,250} [A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]?\d \d{1,2}:\d\d.{0,40}\r?\n(?=[A-Za-z][A-Za-z0-9-]*:)",
    re.MULTILINE,
)
_UNDATED = re.compile(rb"^From [^\r\n]*\r?\n(?=[A-Za-z][A-Za-z0-9-]*:)", re.MULTILINE)
_ESCAPED = re.compile(rb"^>(>*From )", re.MULTILINE)
_CELLS_AND_SENTENCES = re.compile(r"[|│]|(?<=[.!?:])[ \t]+|(?<=[。！？])")
EARLIER = 50  # mails of a thread of which a reply may hold the text
# of types that Python does not know
_BODIES = ("text/plain", "text/html")
_FIELDS = ("message/delivery-status", "message/disposition-notification", "message/rfc822-headers")
# Names of types of S/MIME (RFC 5652) as DER writes them.
_DATA, _SIGNED, _ENVELOPED = (bytes.fromhex(f"06092a864886f70d01070{kind}") for kind in (1, 2, 3))
_SUFFIXES = {"text/calendar": ".ics", "application/ics": ".ics", "text/vcard": ".vcf"}
MAILS = 200_000  # of a mailbox


def eml(data: bytes, suffix: str) -> Iterator[Piece | Attachment | NotRead]:
    """A mail, and what is attached to it. ReadError where it begins with no header."""
    if suffix == "emlx" and (size := re.match(rb"(\d{1,9})\s*?\n", data)):  # of Apple Mail
        data = data[size.end() : size.end() + int(size[1])]
    if b"\0" in data[:100]:  # saved as UTF-16
        data = decode(data)[0].encode()
    if not re.match(rb"\s*(?:>?From .*\r?\n)?[A-Za-z][A-Za-z0-9-]*:", data[:2_000]):
        raise ReadError("it is damaged, or no mail: it begins with no header")
    yield from written(_parsed(data))


def mbox(data: bytes, suffix: str) -> Iterator[Piece | Attachment | NotRead]:
    """Each mail of a mailbox as a document; its key is its number. One that cannot be read ends none of the
    others."""
    dated = list(MAILBOX.finditer(data))
    undated = list(_UNDATED.finditer(data))
    # where the first mail has a date, lines without one are of a body
    starts = dated if dated and dated[0].start() == undated[0].start() else undated
    if not starts:
        raise ReadError("it is damaged, or no mailbox: no mail begins in it")
    if len(starts) > MAILS:
        raise ReadError(f"it holds over {MAILS:,} mails. Split it")
    if data[: starts[0].start()].strip():  # the rest of a mail whose beginning was cut off
        yield NotRead("", "what stands before its first mail")
    ends = [match.start() for match in starts[1:]] + [len(data)]
    mails: list[Mail | NotRead] = []
    for number, (start, end) in enumerate(zip(starts, ends, strict=True), 1):
        try:
            mails.append(_parsed(_ESCAPED.sub(rb"\1", data[start.end() : end])))
        except Exception as error:  # bytes from anywhere: the library raises what it likes
            if isinstance(error, MemoryError):
                raise
            mails.append(NotRead(str(number), why_not(error, "a mail")))
    by_id = {mail.id: mail for mail in mails if isinstance(mail, Mail) and mail.id}
    for number, mail in enumerate(mails, 1):
        if isinstance(mail, NotRead):
            yield mail
            continue
        earlier = [by_id[id] for id in mail.reply_to[-EARLIER:] if id in by_id and id != mail.id]
        try:
            yield from list(written(mail, str(number), earlier))
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


# ---- eml -------------------------------------------------------------------------------------------


def _parsed(data: bytes) -> Mail:
    message = email.message_from_bytes(data, policy=email.policy.default)
    mail = Mail(subject=header(message, "Subject"), id="".join(IDS.findall(header(message, "Message-ID"))[:1]))
    mail.sender, mail.to, mail.cc = (people(message, name) for name in ("From", "To", "Cc"))
    mail.date = day(header(message, "Date"))
    earlier = " ".join(header(message, name) for name in ("References", "In-Reply-To"))
    mail.reply_to = list(dict.fromkeys(IDS.findall(earlier)))
    texts: Texts = {"plain": [], "html": [], "packed": []}
    _collect(message, mail, texts)
    named = {b"".join(attachment.data.split()) for attachment in mail.attachments}
    mail.attachments += [
        attachment  # an invitation may also be attached with a name
        for attachment in mail.not_named
        if b"".join(attachment.data.split()) not in named
    ]
    plain = "\n\n".join(texts["plain"])
    mail.body = plain if plain.strip() else "\n\n".join(texts["html"])
    if packed := "\n".join(texts["packed"]).strip():
        mail.body = "\n".join(_of_alternatives({"plain": [mail.body], "html": [packed]}))
    return mail


Texts = dict[str, list[str]]  # bodies by their kind: plain, html, packed (in winmail.dat)


def _collect(part: Message, mail: Mail, texts: Texts, in_alternative: bool = False) -> None:
    """Put the parts of a mail where they belong: into its texts, or to what is attached to it."""
    kind, name = part.get_content_type(), _file_name(part)
    attached = part.get_content_disposition() == "attachment"
    if kind.startswith("message/"):
        _collect_message(part, name, mail, texts)
    elif part.is_multipart():
        _collect_parts(part, mail, texts)
    # A body may also be of another kind of text, or of parts between which no boundary stands.
    elif (
        kind.startswith(("multipart/", "text/"))
        and kind not in _SUFFIXES
        and not attached
        and not name
        and (kind in _BODIES or not in_alternative or not any(map(str.strip, chain(*texts.values()))))
    ):
        _collect_body(part, mail, texts)
    elif kind in ("application/pkcs7-mime", "application/x-pkcs7-mime"):
        data = _payload(part)
        if signed := _signed(data):
            inner = email.message_from_bytes(signed, policy=email.policy.default)
            _collect(inner, mail, texts, in_alternative)
        elif _ENVELOPED in data[:60]:
            mail.lost.append("its body is encrypted (S/MIME)")
        else:
            _attach(part, name, attached, mail)
    elif kind == "application/ms-tnef" or name.casefold() == "winmail.dat":
        packed = of_tnef(_payload(part))
        if packed == Mail():
            _attach(part, name or "winmail.dat", attached, mail)
        texts["packed"].append(packed.body)
        mail.attachments += packed.attachments
        mail.mails += packed.mails
        mail.lost += packed.lost
    else:
        _attach(part, name, attached, mail)


def _collect_message(part: Message, name: str, mail: Mail, texts: Texts) -> None:
    """A mail that is attached; of a report the fields: why one was not delivered (RFC 3464), whether it was read
    (RFC 8098)."""
    payload: Any = part.get_payload()
    inner: list[Message] = payload if isinstance(payload, list) else []
    if inner and (part.get_content_type() in _FIELDS or not any(x.get_payload() for x in inner)):
        fields = (x.as_bytes(policy=email.policy.compat32).strip() for x in inner)
        texts["plain"].append(decode(b"\n\n".join(fields))[0])
        return
    subject, data = "", b""
    for message in inner[:1]:
        subject = header(message, "Subject")
        coding = str(part.get("Content-Transfer-Encoding", "")).strip().casefold()
        if coding == "base64" and not message.keys():  # against RFC 2046, 5.2.1
            message["Content-Transfer-Encoding"] = coding
            data = _payload(message)
        else:
            data = message.as_bytes(policy=email.policy.compat32)
    mail.attachments.append(Attachment(name or f"{subject or 'mail'}.eml", data))


def _collect_parts(part: Message, mail: Mail, texts: Texts) -> None:
    parts: Any = part.get_payload()
    if part.get_content_type() != "multipart/alternative":
        for inner in parts:
            _collect(inner, mail, texts)
        return
    alternatives: Texts = {**texts, "plain": [], "html": []}
    lost, passed_over = len(mail.lost), len(mail.passed_over)
    for inner in parts:
        _collect(inner, mail, alternatives, in_alternative=True)
    texts["plain"] += _of_alternatives(alternatives)
    if "".join(alternatives["html"]).strip():  # the last is the richest (RFC 2046, 5.1.4)
        del mail.lost[lost:]
    if "".join(alternatives["plain"] + alternatives["html"]).strip():
        del mail.passed_over[passed_over:]


def _collect_body(part: Message, mail: Mail, texts: Texts) -> None:
    try:
        words = _words(part)
    except ReadError as error:
        mail.lost.append(f"its body: {error}")
        return
    if str(part.get_param("format", "")).casefold() == "flowed":
        words = _unflowed(words, str(part.get_param("delsp", "")).casefold() == "yes")
    if part.get_content_type() == "text/html":
        texts["html"].append(mail.take_body(readable(words, mail=True).text))
    else:
        texts["plain"].append(mail.take_body(words))


def _attach(part: Message, name: str, attached: bool, mail: Mail) -> None:
    """A file; one without a name has that of its kind, if it has one."""
    if name:
        mail.attachments.append(Attachment(name, _payload(part)))
        return
    kind = part.get_content_type()
    suffix = _SUFFIXES.get(kind) or mimetypes.MimeTypes().guess_extension(kind)
    if suffix is None and not attached:
        mail.passed_over.append(kind)
        return
    name = f"attachment {len(mail.not_named) + 1}{suffix or '.' + kind.rpartition('/')[2]}"
    mail.not_named.append(Attachment(name, _payload(part)))


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


def _of_alternatives(alternatives: dict[str, list[str]]) -> list[str]:
    """The plain text where it holds all terms of the page as often, as it does of the same text; the page where it
    holds all of the plain text; else the plain text, and the cells and sentences of the page that it lacks."""
    plain, page = (Counter(terms(without_addresses("\n".join(alternatives[name])), "")) for name in ("plain", "html"))
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


def _file_name(part: Message) -> str:
    try:
        name = part.get_filename() or ""
        for key, raw in part.raw_items() if "\ufffd" in name else ():  # raw bytes
            if key.lower() in ("content-disposition", "content-type"):
                written = str(raw).encode("utf-8", "surrogateescape")
                text = " ".join(in_charset(written, "windows-1252").split())
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
    return in_charset(_payload(part), part.get_content_charset() or "")


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
