"""A mail as what is known of it, and as text: who wrote to whom and when, then the body.

What a reply marks as a quotation is left out, and of a mailbox the earlier mails that it repeats, which are documents
themselves; nothing else is. Attachments are given on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from graphrag_mcp.sources.decode import ReadError, refuse_base64, without_base64
from graphrag_mcp.sources.html import QUOTE
from graphrag_mcp.sources.piece import Attachment, NotRead, Piece, Writer, tidy

# "Re:", "AW:", "SV:" ...: two to four letters, or what Chinese and Japanese programs write.
_REPLY = re.compile(r"\s*(?:re|aw|antw|sv|vs|res|rif|ref|odp|ynt|回复|回覆|返信)(?:\[\d+\])?\s*[:：]", re.IGNORECASE)
_QUOTED = re.compile(rf"[ \t]*[>＞{QUOTE}]")
_MARKS = re.compile(rf"^[ \t>＞{QUOTE}]+", re.MULTILINE)
_WORD = re.compile(r"[^\W\d_]+")
_WHEN = re.compile(r"@|\d{1,2}:\d\d|\b\d{4}(?!\d)")
_FIELD = re.compile(r"[ \t]*[*]?([^\W\d_][\w .-]{0,20}?)[*]?\s?[:：][*]?[ \t]*(\S.*)")
_SIGNATURE = re.compile(  # RFC 9580, 7
    r"^-----BEGIN PGP SIGNATURE-----$(?:\n(?!-----).*)*\n-----END PGP SIGNATURE-----$", re.MULTILINE
)
RECEIVERS = 10  # that the sentence on sender and receivers names


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
    attachments: list[Attachment] = field(default_factory=list)
    mails: list[Mail] = field(default_factory=list)  # that are attached, and no files of their own
    not_named: list[Attachment] = field(default_factory=list)  # which the mail gives no names
    lost: list[str] = field(default_factory=list)  # why parts of its body are in no text
    passed_over: list[str] = field(default_factory=list)  # types of parts that are no text

    @cached_property
    def own_text(self) -> str:
        return self.without_quotations()

    @cached_property
    def words(self) -> str:
        return f" {' '.join(_MARKS.sub('', self.body).split())} "

    def take_body(self, words: str) -> str:
        """A body; of one that is mostly base64, which is a loss, what stands beside it. A signature is no loss,
        nor are letters in quoted-printable, beside which words are read."""
        words = words.replace("\r\n", "\n")
        try:
            refuse_base64(_SIGNATURE.sub("", words))
        except ReadError as error:
            self.lost.append(f"its body: {error}")
            return without_base64(words)
        return words

    def without_quotations(self, earlier: Sequence[Mail] = ()) -> str:
        """The body; of a reply without what it quotes, unless that is all of it."""
        body = tidy(self.body)
        whole = body.replace(QUOTE, ">")
        if not self.reply_to and not _REPLY.match(self.subject):
            return whole
        people = [*self.sender, *self.to, *self.cc]
        people += (sender for other in earlier for sender in other.sender)
        names = [name.rstrip(">") for person in people for name in person.split(" <")]
        names = [name for name in names if len(name) > 1]
        unquoted = without_quotes(body, names, [other.words for other in earlier])
        return tidy(unquoted.replace(QUOTE, ">")) or whole


def written(mail: Mail, key: str = "", earlier: Sequence[Mail] = ()) -> Iterator[Piece | Attachment | NotRead]:
    """The mail as a document, what of it is not read, and what is attached to it. `earlier`: mails before it in its
    thread."""
    inner = [(each, each.subject or f"mail {number}") for number, each in enumerate(mail.mails, 1)]
    attached = [attachment.name for attachment in mail.attachments] + [name for _, name in inner]
    fields = {
        "From": ", ".join(mail.sender),
        "To": ", ".join(mail.to),
        "Cc": ", ".join(mail.cc),
        "Date": mail.date[:16].replace("T", " "),
        "Attachments": ", ".join(attached),
    }
    people = (*mail.sender[:1], *(mail.to + mail.cc)[:RECEIVERS])
    writer_name, *receivers = [person.partition(" <")[0] for person in people] or [""]
    body = mail.without_quotations(earlier)
    body = without_earlier(body, [other.own_text for other in earlier])
    writer = Writer()
    # a heading: what is quoted is the text below it
    writer.add(f"# {mail.subject}" if mail.subject else "")
    writer.add("\n".join(f"{name}: {value}" for name, value in fields.items() if value))
    if mail.sender and receivers:  # a sentence, so that they are related as people
        names = " and ".join(filter(None, (", ".join(receivers[:-1]), receivers[-1])))
        writer.add(f"{writer_name} wrote to {names}.")
    writer.add(body)
    thread = (mail.reply_to or [mail.id])[0]
    metadata: dict[str, Any] = {
        "from": ", ".join(mail.sender),
        "date": mail.date,
        "to": mail.to,
        "cc": mail.cc,
        "message_id": mail.id,
        "in_reply_to": "".join(mail.reply_to[-1:]),
        "thread": thread,
    }
    metadata = {name: value for name, value in metadata.items() if value}
    yield writer.piece(mail.subject, key=key, metadata=metadata)
    if mail.passed_over:
        which = "a part of it" if body else "its body"
        mail.lost.append(f"{which} is {', '.join(mail.passed_over)}, which is not read")
    for reason in dict.fromkeys(mail.lost):
        yield NotRead(key, reason)
    origin = {"attached_to": mail.subject, "date": mail.date, "thread": thread}
    origin = {name: value for name, value in origin.items() if value}
    above = f"{key}/" if key else ""
    for attachment in mail.attachments:
        yield Attachment(f"{above}{attachment.name}", attachment.data, origin)
    for inner_mail, name in inner:
        for found in written(inner_mail, f"{above}{name}"):
            known = {} if isinstance(found, NotRead) else {"metadata": origin | found.metadata}
            yield replace(found, **known)


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
