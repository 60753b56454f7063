"""Claims extracted by a model: subject, object, type, dates, status and quotes. A claim whose
quotes do not stand in the text is dropped."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import chain
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, BeforeValidator, ValidationError

from graphrag_mcp.index import extraction, places
from graphrag_mcp.llm import prompts
from graphrag_mcp.llm.asker import Ask, BadReply
from graphrag_mcp.llm.protocols import Message
from graphrag_mcp.llm.replies import clean, fault, read, schema_of
from graphrag_mcp.text import dates
from graphrag_mcp.text.terms import content_id, is_cjk, normalise_name

if TYPE_CHECKING:
    from graphrag_mcp.llm.asker import Asker
    from graphrag_mcp.settings import Settings

VERSION = "claims-3"
STATUSES = ("TRUE", "FALSE", "SUSPECTED")
MOST_CLAIMS, MOST_QUOTES = 200, 20
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
    template: Template

    @property
    def fingerprint(self) -> str:
        words = (self.template.template, self.description, self.language)
        return content_id(VERSION, *words, *self.entity_specs)

    def prompt(self, text: str, context: str = "") -> str:
        return self.template.substitute(
            entity_specs=", ".join(self.entity_specs),
            claim_description=self.description,
            language=extraction.language_rule(self.language),
            document=context,
            text=extraction.guarded(text),
        )

    def question(self, text: str, context: str = "") -> tuple[tuple[Message, ...], dict[str, Any]]:
        """The first question about a text: its messages and the schema of the reply."""
        return (Message("user", self.prompt(text, context)),), SCHEMA


def params_from(settings: Settings, corpus_folder: Path | None) -> ClaimParams:
    """From the settings and the corpus's own prompts, where it has some."""
    return ClaimParams(
        entity_specs=tuple(" ".join(spec.split()) for spec in settings.claims_entity_specs),
        description=" ".join(settings.claims_description.split()),
        language=" ".join(settings.output_language.split())[:60],
        template=prompts.load("claims", corpus_folder),
    )


async def claims_of_unit(
    asker: Asker,
    text: str,
    params: ClaimParams,
    dropped: Counter[str] | None = None,
    context: str = "",
) -> tuple[list[Claim], str]:
    """The claims in `text`, and why there was no answer ("" when there was one). `dropped` counts
    what was not kept."""
    messages, schema = params.question(text, context)
    reading: Callable[[str], Reading | None] = partial(read_claims, text=text)
    answer = await asker.ask(Ask("claims", messages, reading, lambda: None, schema))
    if answer.value is None:
        return [], answer.reason
    claims, lost = answer.value
    if dropped is not None:
        dropped.update(lost)
    return claims, ""


def _identity(claim: Claim) -> tuple[object, ...]:
    return normalise_name(claim.subject), normalise_name(claim.object), claim.type, claim.spans[:1]


# between several quotes in one field, or where words of one were left out
_BETWEEN_QUOTES = re.compile(r"[\"”]\s{0,9}[,;]?\s{0,9}[\"“]|\n|\.\.\.|…")
_NOTHING = frozenset(
    ("", "none", "unknown", "n/a", "na", "null", "nil", "-", "not specified", "无", "未知")
)


def _texts(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class ClaimSaid(BaseModel):
    subject: str
    object: str
    type: str
    status: str
    start_date: str
    end_date: str
    description: str
    quotes: Annotated[list[str], BeforeValidator(_texts)]


class Claimed(BaseModel):
    """The form of a reply. Its claims are validated one by one."""

    claims: list[ClaimSaid]


SCHEMA = schema_of(Claimed)
Reading = tuple[list[Claim], Counter[str]]  # claims, and what was dropped why


def read_claims(reply: str, text: str) -> Reading:
    """Claims, and what was dropped why. Raises BadReply when the reply is not of the form asked for or
    none of its claims can be used. Claims that quote nothing of the text are dropped."""
    parsed = read(reply)
    forms = (form.get("claims") for form in parsed.values if isinstance(form, dict))
    lists = [claim_list for claim_list in forms if isinstance(claim_list, list)]
    if not lists:
        raise BadReply('the reply has no list "claims"')
    lost: Counter[str] = Counter({"cut off": not parsed.whole})
    claims: dict[tuple[object, ...], Claim] = {}
    for value in chain.from_iterable(lists):
        if claim := _checked(value, text, lost):
            claims.setdefault((*_identity(claim), claim.description), claim)
    if not claims and +lost:
        raise BadReply("no usable claim")
    lost["too many"] += max(0, len(claims) - MOST_CLAIMS)
    return list(claims.values())[:MOST_CLAIMS], +lost


def _checked(value: Any, text: str, lost: Counter[str]) -> Claim | None:
    try:
        claim = ClaimSaid.model_validate(value)
    except ValidationError as error:
        lost[fault(error)] += 1
        return None
    subject, other = clean(claim.subject, LONGEST_NAME), clean(claim.object, LONGEST_NAME)
    description = clean(claim.description, LONGEST_DESCRIPTION)
    spans = quoted(text, claim.quotes)
    reasons = {
        "no subject": _is_nothing(subject),
        "no description": not re.search(r"\w", description),
        "no quote": not any(map(str.strip, claim.quotes)),
        "invented quote": not spans,
    }
    if reason := next((reason for reason, holds in reasons.items() if holds), ""):
        lost[reason] += 1
        return None
    start, end = iso_date(claim.start_date), iso_date(claim.end_date)
    for date, read_as in ((claim.start_date, start), (claim.end_date, end)):
        lost["bad date"] += not read_as and not _is_nothing(date.strip(" \"'."))
    if start and end and end[:10] < start[:10]:
        lost["bad date"] += 1
        end = ""
    kind = clean(claim.type, LONGEST_TYPE).upper()
    status = claim.status.strip().upper()
    return Claim(
        subject,
        "NONE" if _is_nothing(other) else other,
        "OTHER" if _is_nothing(kind) else kind,
        status if status in STATUSES else "SUSPECTED",
        start,
        end,
        description,
        tuple(text[begin:stop] for begin, stop in spans),
        tuple(spans),
    )


def _is_nothing(value: str) -> bool:
    return value.lower() in _NOTHING


def quoted(text: str, quotes: Sequence[str]) -> list[tuple[int, int]]:
    """Where the quotes stand, each once, in the order given: whatever case, blanks and kind of
    quotation marks. Of a quote that does not stand there as a whole the parts count, unless less
    than half of it is there: a sentence made up around a few true words supports nothing."""
    folded, starts = places.folded_with_starts(text)
    spans: dict[tuple[int, int], None] = {}
    for quote in quotes[:MOST_QUOTES]:
        if whole := _place(text, folded, starts, quote):
            spans[whole] = None
            continue
        parts = _BETWEEN_QUOTES.split(quote[:20_000])[:MOST_QUOTES]
        found = [(part, span) for part in parts if (span := _place(text, folded, starts, part))]
        if 2 * sum(len(part) for part, _ in found) >= sum(map(len, parts)):
            spans |= dict.fromkeys(span for _, span in found)
    return list(spans)[:MOST_QUOTES]


def _place(text: str, folded: str, starts: Any, quote: str) -> tuple[int, int] | None:
    folded_quote = places.folded_with_starts(clean(quote, LONGEST_QUOTE))[0].strip(" \"'.,;:")
    # A word or two stand in any text and prove nothing.
    weight = sum(3 if is_cjk(ch) else 1 for ch in folded_quote if ch.isalnum())
    at = folded.find(folded_quote) if weight >= 12 else -1
    if at < 0:
        return None
    begin, stop = starts[at], places.end_of(text, starts[at + len(folded_quote) - 1])
    while stop < len(text) and text[stop] in ".!?。！？”\"'’":
        stop += 1  # the sentence's own end, which was taken off to compare
    return begin, stop


def iso_date(value: str) -> str:
    """ISO 8601, as exact as it was said (`2022`, `2022-01-10`, with a time); else ""."""
    text = clean(value, 60).strip(" .()\"'")
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return dates.read(text)
    exact = moment.replace(tzinfo=None).isoformat(timespec="seconds")
    return exact if ":" in text else dates.read(text)
