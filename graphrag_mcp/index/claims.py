"""Claims extracted by a model: subject, object, type, dates, status and quotes. A claim whose
quotes do not stand in the text is dropped."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from graphrag_mcp.index.extraction import (
    Gleaning,
    asked,
    end_of,
    folded_with_starts,
    guarded,
    language_rule,
)
from graphrag_mcp.index.losses import Losses
from graphrag_mcp.index.records import EXAMPLE_NAMES
from graphrag_mcp.llm import prompts
from graphrag_mcp.llm.asker import Ask, BadReply
from graphrag_mcp.llm.protocols import Message
from graphrag_mcp.llm.replies import (
    FULL,
    clean,
    clean_name,
    json_items,
    plain_reply,
    split_fields,
    unescaped,
)
from graphrag_mcp.text.terms import is_cjk, normalise_name
from graphrag_mcp.types import content_id

if TYPE_CHECKING:
    from graphrag_mcp.llm.asker import Asker
    from graphrag_mcp.settings import Settings

VERSION = "claims-1"
STATUSES = ("TRUE", "FALSE", "SUSPECTED")
MOST_CLAIMS, MOST_QUOTES, MOST_PIECES = 200, 20, 5000
LONGEST_NAME, LONGEST_TYPE, LONGEST_DESCRIPTION, LONGEST_QUOTE = 200, 80, 4000, 2000


@dataclass(frozen=True, slots=True)
class Claim:
    """`object` "NONE" when unknown; dates ISO 8601 or "". `text[start:end]` of each of `spans` is
    the quote there."""

    subject: str
    object: str
    type: str
    status: str
    start_date: str
    end_date: str
    description: str
    quotes: tuple[str, ...]
    spans: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class ClaimParams:
    entity_specs: tuple[str, ...]
    description: str
    language: str
    gleanings: str
    template: Template
    more: Template

    @property
    def fingerprint(self) -> str:
        words = (self.template.template, self.more.template, self.description)
        return content_id(VERSION, *words, self.language, self.gleanings, *self.entity_specs)

    def prompt(self, text: str, context: str = "") -> str:
        return self.template.substitute(
            entity_specs=", ".join(self.entity_specs),
            claim_description=self.description,
            language=language_rule(self.language),
            document=context,
            text=guarded(text),
        )


def params_from(settings: Settings, corpus_folder: Path | None) -> ClaimParams:
    """From the settings and the corpus's own prompts, where it has some."""
    return ClaimParams(
        entity_specs=tuple(" ".join(one.split()) for one in settings.claims_entity_specs),
        description=" ".join(settings.claims_description.split()),
        language=" ".join(settings.output_language.split())[:60],
        gleanings=settings.gleanings,
        template=prompts.load("claims", corpus_folder),
        more=prompts.load("extract_more", corpus_folder),
    )


# ---- asking ---------------------------------------------------------------------------------------


async def claims_of_unit(
    asker: Asker,
    text: str,
    params: ClaimParams,
    dropped: Counter[str] | None = None,
    context: str = "",
) -> tuple[list[Claim], str]:
    """The claims in `text`, and why there was no answer ("" when there was one): of a second pass
    that was due, too; then those of the first stay. `dropped` counts what was not kept.

    With gleanings `auto` a second pass follows only a reply that was cut off."""

    def reading(reply: str) -> Reading | None:
        return read_claims(reply, text)

    def join(known: Reading, more: Reading) -> tuple[Reading, bool]:
        claims = merged(known[0], more[0])
        return (claims, more[1], known[2] + more[2]), claims != known[0]

    messages = (Message("user", params.prompt(text, context)),)
    first = Ask("claims", messages, reading, lambda: None, doubt=_doubt, worth=_worth)
    again = Gleaning(
        params.gleanings, params.more.substitute(), reading, lambda known: not known[1], join
    )
    found, _, reason = await asked(asker, first, again)
    if found is None:
        return [], reason
    if dropped is not None:
        dropped.update(found[2])
    return found[0], reason


def _doubt(reading: Reading | None) -> str:
    return Losses(len(reading[0]), reading[2]).doubt() if reading else ""


def _worth(reading: Reading | None) -> int:
    return len(reading[0]) if reading else 0


def merged(claims: list[Claim], more: list[Claim]) -> list[Claim]:
    """`claims` with those of a further reply: the longer of two with one subject, object, type and
    quote stays."""
    kept = {_identity(claim): claim for claim in claims}
    for claim in more:
        old = kept.get(_identity(claim))
        if old is None or len(claim.description) > len(old.description):
            kept[_identity(claim)] = claim
    return list(kept.values())[:MOST_CLAIMS]


def _identity(claim: Claim) -> tuple[object, ...]:
    return normalise_name(claim.subject), normalise_name(claim.object), claim.type, claim.spans[:1]


# ---- reading a reply ------------------------------------------------------------------------------

_BETWEEN = re.compile(r"[)）\]]?[ \t]{0,8}##|[)）\]][ \t,]{0,8}\n\s{0,9}(?=[(（\[])")
_LINES = re.compile(r"\n\s{0,9}(?=[^\n]{1,300}?" + FULL + ")")
_RULE = re.compile(r"\|[ \t]{0,3}:?-{3,}:?[ \t]{0,3}\|")  # under the names of a table's columns
# of a table
_ROW = re.compile(
    r"^[ \t]{0,9}\|(?=[^|\n]{0,400}\w)((?:[^|\n]{0,4000}\|){6,12})[ \t]{0,9}$", re.MULTILINE
)
_DELIMITER = re.compile(FULL)
_NO_CLAIMS = re.compile(
    r"\[\s{0,9}\]|\{\s{0,99}\"claims?\"\s{0,9}:\s{0,9}\[\s{0,9}\]", re.IGNORECASE
)
_QUOTE_ENDS = re.compile(r"[\"”]\s{0,9}[,;]?\s{0,9}[\"“]|\n| \| ")
_LEFT_OUT = re.compile(r"\.\.\.|…")
_NOTHING = frozenset(
    ("", "none", "unknown", "n/a", "na", "null", "nil", "-", "not specified", "无", "未知")
)
_FIELDS = {
    "subject": "subject subjectid subjectentity subjectname entity source".split(),
    "object": "object objectid objectentity objectname target".split(),
    "type": "type claimtype category".split(),
    "status": "status claimstatus".split(),
    "start": "startdate start claimstartdate date from".split(),
    "end": "enddate end claimenddate to until".split(),
    "description": "description claimdescription claim details".split(),
    "quotes": "quotes quote sourcetext claimsourcetext evidence text".split(),
}  # in the order of `Raw`
# claims, whether the reply was complete, what was dropped why
Reading = tuple[list[Claim], bool, Counter[str]]
Raw = tuple[str, str, str, str, str, str, str, list[str]]  # the fields in the order of the prompt


def read_claims(reply: str, text: str) -> Reading:
    """Claims, whether the reply was complete, and what was dropped why. Raises BadReply when
    nothing usable is in it.

    Claims that quote nothing of the text are dropped, not doubted: that a model made them up is all
    that is known."""
    plain, marked = plain_reply(reply)
    lost: Counter[str] = Counter()
    raws: list[Raw] = []
    closed = False
    if not _DELIMITER.search(plain) and ("{" in plain or "[" in plain):
        items, closed = json_items(plain)
        raws = [raw for item in items if (raw := _from_json(item))]
        closed = closed and (bool(raws) or _NO_CLAIMS.match(plain) is not None)
    else:
        for body in _pieces(unescaped(plain)):
            if raw := _from_tuple(body):
                raws.append(raw)
            elif _DELIMITER.search(body):
                lost["malformed"] += 1
    claims: dict[tuple[object, ...], Claim] = {}
    for raw in raws[: 10 * MOST_CLAIMS]:
        if claim := _checked(raw, text, lost):
            claims.setdefault((*_identity(claim), claim.description), claim)
    if not raws or not (claims or marked or closed):
        _reject(plain, marked or closed, lost)
    if not claims and any(raw[0].casefold() in EXAMPLE_NAMES for raw in raws):
        raise BadReply("the reply was the prompt again")
    return list(claims.values())[:MOST_CLAIMS], marked or closed, lost


def _reject(plain: str, complete: bool, lost: Counter[str]) -> None:
    if lost or not complete:
        raise BadReply("no usable claim" if lost else "no claims" if plain else "empty reply")
    if len(plain) > 60 and plain[0] not in "{[":
        raise BadReply("prose instead of claims")


def _pieces(plain: str) -> list[str]:
    """The records' texts without their outer brackets."""
    rule = _RULE.search(plain)
    if not _DELIMITER.search(plain) and (rows := _ROW.findall(plain, rule.end() if rule else 0)):
        return rows[:MOST_PIECES]
    found: list[str] = []
    for piece in _BETWEEN.split(plain, MOST_PIECES):
        if not (whole := piece.strip()):
            continue
        lines = (
            _LINES.split(whole)
            if whole.count("\n") and len(_DELIMITER.findall(whole)) > 12
            else [whole]
        )
        for line in lines if all(len(_DELIMITER.findall(line)) > 4 for line in lines) else [whole]:
            first = _DELIMITER.search(line)
            body = (
                line[line.rfind("\n", 0, first.start()) + 1 if first else 0 :].strip().lstrip("*- ")
            )
            end = re.search(r"[)）]\s{0,9}\n\s{0,9}(?![^\n]*" + FULL + ")", body[-3000:])
            if end and body[:1] in "(（[":
                body = body[: max(0, len(body) - 3000) + end.start()]  # prose after the last record
            found.append(
                body[1:].removesuffix(")").removesuffix("）")
                if body[:1] in ("(", "（", "[")
                else body
            )
    return found[:MOST_PIECES]


def _from_tuple(body: str) -> Raw | None:
    """Fields by their places, told from where the status stands; None for what is no claim."""
    fields = [field.strip() for field in split_fields(body, 5)]
    if fields and fields[0].strip("\"'“” ").lower() in ("claim", "covariate"):
        fields = fields[1:]
    at = next((index for index, field in enumerate(fields[:6]) if _status(field) in STATUSES), 3)
    if len(fields) <= at + 1 or at < 1:
        return None
    subject, *middle = (
        fields[:at] if at < 4 else [fields[0], " ".join(fields[1 : at - 1]), fields[at - 1]]
    )
    other, kind = (middle + ["", ""])[:2] if len(middle) != 1 else ("NONE", middle[0])
    rest = fields[at + 1 :]
    dates, rest = rest[: (count := _dates(rest))], rest[count:]
    if not rest:
        return None
    start, end = (dates + ["", ""])[:2]
    return subject, other, kind, fields[at], start, end, rest[0], rest[1:]


def _dates(rest: list[str]) -> int:
    """How many of the first two fields after the status are dates; with four or more, by their
    places."""
    if len(rest) > 3 and max(len(rest[0]), len(rest[1])) <= 60:
        return 2
    dated = [
        field.strip("\"' ").lower() in _NOTHING or iso_date(field) != ""
        for field in [*rest[:2], "x", "x"]
    ]
    return dated.index(False)


def _from_json(item: dict[str, Any]) -> Raw | None:
    values = {
        re.sub(r"[\s_-]", "", str(name).lower()): value
        for name, value in item.items()
        if value is not None
    }

    def one(field: str) -> Any:
        return next((values[name] for name in _FIELDS[field] if name in values), "")

    if not one("subject") or not one("description"):
        return None
    quotes = one("quotes")
    many = quotes if isinstance(quotes, list) else filter(None, [quotes])
    *words, _ = (str(one(field)) for field in _FIELDS)
    return *words, list(map(str, many))


def _status(value: str) -> str:
    return value.strip(" \t\n\"'“”`*.").upper()


def _checked(raw: Raw, text: str, lost: Counter[str]) -> Claim | None:
    subject, other = clean_name(raw[0])[:LONGEST_NAME], clean_name(raw[1])[:LONGEST_NAME]
    description = clean(raw[6], LONGEST_DESCRIPTION)
    if subject.lower() in _NOTHING:
        lost["no subject"] += 1
        return None
    if not re.search(r"\w", description):
        lost["no description"] += 1
        return None
    if not raw[7]:
        lost["no quote"] += 1
        return None
    spans = quoted(text, raw[7])
    if not spans:
        lost["invented quote"] += 1
        return None
    start, end = iso_date(raw[4]), iso_date(raw[5])
    for said, date in ((raw[4], start), (raw[5], end)):
        if not date and said.strip(" \"'.").lower() not in _NOTHING:
            lost["bad date"] += 1
    if start and end and end[:10] < start[:10]:
        lost["bad date"] += 1
        end = ""
    kind = clean(raw[2], LONGEST_TYPE).strip(" .()\"'").upper()
    return Claim(
        subject,
        "NONE" if other.lower() in _NOTHING else other,
        kind if kind.lower() not in _NOTHING else "OTHER",
        _status(raw[3]) if _status(raw[3]) in STATUSES else "SUSPECTED",
        start,
        end,
        description,
        tuple(text[begin:stop] for begin, stop in spans),
        tuple(spans),
    )


def quoted(text: str, quotes: list[str]) -> list[tuple[int, int]]:
    """Where the quotes stand, each once, in the order given: whatever case, blanks and kind of
    quotation marks."""
    folded, starts = folded_with_starts(text)
    spans: dict[tuple[int, int], None] = {}
    for quote in quotes[:MOST_QUOTES]:
        whole = _place(text, folded, starts, quote)
        # in one field
        several = [quote] if whole else _QUOTE_ENDS.split(quote[:20_000])[:MOST_QUOTES]
        for part in several:
            spans.update(dict.fromkeys(_shortened(text, folded, starts, part)))
    return list(spans)[:MOST_QUOTES]


def _shortened(text: str, folded: str, starts: Any, quote: str) -> list[tuple[int, int]]:
    """Places of one quote, or of its parts when something was left out; none where less than half
    of it is there: a sentence made up around a few true words supports nothing."""
    if span := _place(text, folded, starts, quote):
        return [span]
    parts = _LEFT_OUT.split(quote)[:MOST_QUOTES]
    found = [(part, span) for part in parts if (span := _place(text, folded, starts, part))]
    enough = 2 * sum(len(part) for part, _ in found) >= sum(map(len, parts))
    return [span for _, span in found] if enough else []


def _place(text: str, folded: str, starts: Any, quote: str) -> tuple[int, int] | None:
    wanted = folded_with_starts(clean(quote, LONGEST_QUOTE))[0].strip(" \"'.,;:")
    # A word or two stand in any text and prove nothing.
    weight = sum(3 if is_cjk(ch) else 1 for ch in wanted if ch.isalnum())
    at = folded.find(wanted) if weight >= 12 else -1
    if at < 0:
        return None
    begin, stop = starts[at], end_of(text, starts[at + len(wanted) - 1])
    while stop < len(text) and text[stop] in ".!?。！？”\"'’":
        stop += 1  # the sentence's own end, which was taken off to compare
    return begin, stop


# ---- dates ----------------------------------------------------------------------------------------

_ISO = re.compile(
    r"(\d{4})(?:[-/.年](\d{1,2})(?:[-/.月](\d{1,2})日?)?月?)?年?"
    r"(?:[T ](\d{2}:\d{2}(?::\d{2})?)(?:\.\d{1,9})?(?:Z|[+-]\d{2}:?\d{2})?)?",
    re.ASCII,
)
_SPOKEN = ("%d %B %Y", "%B %d, %Y", "%d %b %Y", "%b %d, %Y", "%B %Y", "%d.%m.%Y")


def iso_date(value: str) -> str:
    """A date in ISO 8601 as exact as it was said (`2022`, `2022-01`, `2022-01-10`, with a time);
    else ""."""
    said = clean(value, 60).strip(" .()\"'")
    if match := _ISO.fullmatch(said):
        year, month, day, time = match.groups()
        date = "-".join(part.zfill(2) for part in (year, month, day) if part)
        try:
            datetime(int(year), int(month or 1), int(day or 1))
            if time and day:
                return datetime.fromisoformat(f"{date}T{time}").isoformat(timespec="seconds")
        except ValueError:
            return ""
        return date
    for form in _SPOKEN if said[:1].isalnum() and len(said) < 25 else ():
        try:
            return datetime.strptime(said, form).date().isoformat()[: 7 if form == "%B %Y" else 10]
        except ValueError:
            continue
    return ""
