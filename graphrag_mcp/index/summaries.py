"""Summaries: what a document, or a section of a long one, says, written by a model or by an agent.

A document of up to LONGEST tokens has one summary. A longer one is cut into sections, rather at headings
and paragraphs than elsewhere; each has a summary, and the document has one that is made of theirs. Several
short texts share one call, but the reply cache keeps each summary under the question about its text
alone: so a fresh index finds the same replies, whichever texts shared a call. A summary is checked
against its text; what the text does not have is listed in `unsupported`."""

from __future__ import annotations

import asyncio
import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from string import Template
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ValidationError

from graphrag_mcp.index.chunk import ChunkParams, chunk
from graphrag_mcp.index.extraction import language_rule
from graphrag_mcp.index.units import Context
from graphrag_mcp.index.unsupported import has_words, names, numbers
from graphrag_mcp.llm import prompts, replies
from graphrag_mcp.llm.asker import Ask, Asker
from graphrag_mcp.llm.protocols import Message
from graphrag_mcp.llm.replies import BadReply
from graphrag_mcp.packing.budget import shorten
from graphrag_mcp.settings import Settings
from graphrag_mcp.sources.decode import headings
from graphrag_mcp.store.schema import OTHER_SCRIPT, doubts
from graphrag_mcp.text.terms import content_id, holds_cjk, is_cjk, terms
from graphrag_mcp.text.tokens import count_tokens, packed
from graphrag_mcp.trust.fencing import masked

Row = dict[str, Any]
# Raise it when the same replies give other rows, as with another check (`unsupported`).
VERSION = "7"
LONGEST = 6_000  # tokens of a text that is summarised as one, and of the texts of one call
BRIEF = 45  # words that are asked for; a text of no more is its own summary
OWN_WORDS = "text"  # who wrote the summary of such a text
LONGEST_TEXT, LONGEST_LABEL, LONGEST_NAME, LONGEST_TYPE = 800, 40, 120, 40  # characters
MOST_LABELS, MOST_NAMES = 8, 8
LEAST = 30  # tokens of the line of a section, where a document has so many that each is cut
_WORD = re.compile(r"[^\W\d_]+")
_ADDRESS = re.compile(r"://\S+")
_MARKS = str.maketrans("", "", "[]{}<>|`#*")
_BRACKETS = str.maketrans("", "", "[]<>")  # of names, where C# and A* are words
_TAG = re.compile(r"<(?=/?\s{0,9}(?:text|document)\b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SummaryParams:
    """How summaries are asked for. `longest`: tokens of the texts of one question, no more than the
    model is given for a report: with a context of 8,000 the texts and the reply must fit."""

    template: Template
    language: str = ""
    longest: int = LONGEST

    @property
    def fingerprint(self) -> str:
        """Another one derives the rows again, of the same replies."""
        return content_id(f"summaries-{VERSION}", self.template.template, self.language, str(self.longest))


def params_from(settings: Settings, corpus_folder: Path | None) -> SummaryParams:
    language = " ".join(settings.output_language.split())[:60]
    longest = min(LONGEST, settings.report_tokens)
    return SummaryParams(prompts.load("summarise", corpus_folder), language, longest)


# ---- texts --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Part:
    """A text that has a summary: a document (`place` 0) or its n-th section. `start`, `end`: in
    characters of the document. `line`: what is known of the document, as in other prompts."""

    document_id: str
    uri: str
    place: int
    start: int
    end: int
    heading: str
    line: str
    text: str

    @property
    def id(self) -> str:
        return content_id("summary", self.document_id, str(self.place))


def parts_of(document: Mapping[str, Any], longest: int = LONGEST) -> list[Part]:
    """The sections of a document row, each of up to `longest` tokens, or the document alone where it
    is short enough."""
    text = document["text"]
    metadata = json.loads(document["metadata"])
    context = Context(document["uri"], document["title"], text, metadata)
    found = list(headings(text))
    spans = cut(text, longest)
    parts = []
    for place, (start, end) in enumerate(spans, len(spans) > 1):
        at = bisect_right([offset for offset, _, _ in found], start) - 1
        heading = found[at][2] if len(spans) > 1 and at >= 0 else ""
        shown = masked(text[start:end]).strip()
        origin = document["id"], document["uri"], place, start, end
        parts.append(Part(*origin, " ".join(heading.split())[:150], context.line(start), shown))
    return parts


def cut(text: str, longest: int = LONGEST) -> list[tuple[int, int]]:
    """Spans that tile the text, each of at most `longest` tokens: one where that is enough, else as text
    units are cut (chunk.py), so that an edit asks about the sections around it alone."""
    if len(text) <= longest or count_tokens(text) <= longest:  # a token is a character or more
        return [(0, len(text))]
    units = chunk(text, ChunkParams(longest, 0, longest))
    return list(pairwise([0, *(unit.span.start for unit in units[1:]), len(text)]))


# ---- questions and replies ----------------------------------------------------------------------


class NameSaid(BaseModel):
    name: str
    type: str = ""


def listed(value: Any) -> list[Any]:
    """What a reply has as a list, or as one value without its brackets."""
    return value if isinstance(value, list) else [] if value is None else [value]


def _labels(value: Any) -> list[str]:
    return [label for label in listed(value) if isinstance(label, str)]


def _names(value: Any) -> list[Any]:
    """The names with or without a type, without what is none: one bad name costs no summary."""
    found = [{"name": name} if isinstance(name, str) else name for name in listed(value)]
    return [
        {"name": name["name"], "type": kind if isinstance(kind := name.get("type"), str) else ""}
        for name in found
        if isinstance(name, dict) and isinstance(name.get("name"), str)
    ]


class SummarySaid(BaseModel):
    id: int
    text: str
    labels: Annotated[list[str], BeforeValidator(_labels)] = []
    names: Annotated[list[NameSaid], BeforeValidator(_names)] = []


class SummariesSaid(BaseModel):
    """The form of a reply."""

    summaries: list[SummarySaid]


SCHEMA = replies.schema_of(SummariesSaid)


@dataclass(frozen=True, slots=True)
class Summary:
    """`unsupported`: numbers and names of it that its text does not have. `cut`: was the end of the reply
    left out? `left_out`: labels and names of the reply that are none."""

    text: str
    labels: tuple[str, ...] = ()
    names: tuple[tuple[str, str], ...] = ()
    unsupported: tuple[str, ...] = ()
    cut: bool = False
    left_out: int = 0

    def as_json(self) -> str:
        return as_reply(self.text, self.labels, self.names)


Summaries = Mapping[int, Summary]


def as_reply(text: Any, labels: Iterable[Any], names: Iterable[tuple[Any, Any]]) -> str:
    """A summary as the reply to a question about its text alone."""
    named = [{"name": name, "type": kind} for name, kind in names]
    summary = {"id": 1, "text": text, "labels": list(labels), "names": named}
    return json.dumps({"summaries": [summary]}, ensure_ascii=False)


def ask(parts: Sequence[Part], params: SummaryParams) -> Ask[Summaries]:
    """The question about these texts, which are numbered from 1."""
    texts = "\n\n".join(
        f'{part.line}<text id="{number}">\n{_TAG.sub("‹", part.text)}\n</text>' for number, part in enumerate(parts, 1)
    )
    language = language_rule(params.language).replace("of the text", "of each text")
    message = Message("user", params.template.substitute(texts=texts, language=language))

    def parse(reply: str) -> Summaries:
        return read(reply, parts, params.language)

    def doubt(found: Summaries) -> str:
        """Of a text alone; of several each is asked about again by itself."""
        faults = [fault for summary in found.values() for fault in summary.unsupported]
        return doubts(faults) if len(parts) == 1 else ""

    def worth(found: Summaries) -> int:
        return -sum(len(summary.unsupported) for summary in found.values())

    alone = len(parts) == 1
    # Summaries that agents wrote stay valid when a release changes the wording of its prompt.
    shipped = params.template.template == prompts.load("summarise").template
    about = (params.language, parts[0].line, parts[0].text) if alone and shipped else ()
    return Ask(
        "summary", (message,), parse, dict, SCHEMA,
        doubt=doubt, worth=worth, stored=alone, about=about,
    )  # fmt: skip


def read(reply: str, parts: Sequence[Part], language: str = "") -> Summaries:
    """Summaries by the number of their text. One that is damaged, or that is of a text that was not
    asked about, is left out; BadReply when none can be used."""
    found: dict[int, Summary] = {}
    reason = ""
    for value in replies.read(reply).values:
        for entry in listed(value.get("summaries")) if isinstance(value, dict) else ():
            try:
                record = SummarySaid.model_validate(entry)
            except ValidationError as error:
                reason = reason or replies.fault(error)
                continue
            number = 1 if len(parts) == 1 else record.id
            summary = _cleaned(record)
            if not re.search(r"\w", summary.text):
                reason = reason or "a summary is empty"
            elif not 1 <= number <= len(parts):
                reason = reason or f"there is no text {record.id}"
            else:
                part = parts[number - 1]
                missing = unsupported(summary, part.line + part.text, language)
                given = len(listed(entry.get("labels"))) + len(listed(entry.get("names")))
                left_out = given - len(record.labels) - len(record.names)
                found.setdefault(number, replace(summary, unsupported=missing, left_out=left_out))
    if not found:
        raise BadReply(reason or 'the reply has no list "summaries"')
    return found


def _cleaned(record: SummarySaid) -> Summary:
    """Without marks of ours, in one line each, and within the limits."""
    labels = [replies.clean(label.translate(_MARKS), LONGEST_LABEL) for label in record.labels]
    names = {
        replies.clean(name.name.translate(_BRACKETS), LONGEST_NAME): replies.clean(
            name.type.lower().translate(_BRACKETS), LONGEST_TYPE
        )
        for name in record.names
    }
    names.pop("", None)
    text = replies.clean(record.text.translate(_MARKS), 10 * LONGEST_TEXT)
    return Summary(
        replies.cut(text, LONGEST_TEXT),
        tuple(dict.fromkeys(filter(None, labels)))[:MOST_LABELS],
        tuple(names.items())[:MOST_NAMES],
        cut=len(text) > LONGEST_TEXT,
    )


def unsupported(summary: Summary, text: str, language: str = "") -> tuple[str, ...]:
    """Numbers and names of a summary that its text does not have, and whether it is in another script."""
    faults = numbers(summary.text, text)
    faults += [name for name, _ in summary.names if not has_words(text, name.split())]
    faults += names(summary.text, text)
    if not language and _is_cjk(summary.text) != _is_cjk(text):
        faults.append(OTHER_SCRIPT)
    return tuple(dict.fromkeys(faults))


def _is_cjk(text: str) -> bool:
    """Are more of its words Chinese, Japanese or Korean? A character of these is about a word, and
    the addresses of links say nothing of the language."""
    if not holds_cjk(text):
        return False
    text = _ADDRESS.sub(" ", text)
    characters = sum(map(is_cjk, text))
    return characters > sum(not is_cjk(word[0]) for word in _WORD.findall(text))


# ---- asking -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Written:
    """`summary` None: no one answered, and `reason` says why."""

    part: Part
    summary: Summary | None
    by: str = ""
    reason: str = ""

    def row(self) -> Row:
        """The row of the table `summaries`."""
        assert self.summary is not None
        part, summary = self.part, self.summary
        place = {"char_start": part.start, "char_end": part.end, "heading": part.heading}
        found_by = " ".join([summary.text, *summary.labels, *(name for name, _ in summary.names)])
        return {
            "id": part.id,
            "document_id": part.document_id,
            "place": part.place,
            **place,
            "text": summary.text,
            "labels": list(summary.labels),
            "names": [name for name, _ in summary.names],
            "types": [kind for _, kind in summary.names],
            "unsupported": list(summary.unsupported),
            "written_by": self.by,
            "sha": content_id(part.text),
            "terms": " ".join(terms(found_by)),
        }


def settled(asker: Asker, part: Part, params: SummaryParams) -> Written | None:
    """The summary of a text about which nothing is to be asked: a short text is its own, and the reply
    cache may hold a reply, or that it was refused. None for any other."""
    if replies.words(part.text) <= BRIEF:
        return Written(part, Summary(" ".join(part.text.split())), OWN_WORDS)
    single = ask([part], params)
    if known := asker.known(single):
        return Written(part, known.value[1], known.by)
    if why := asker.refused(single):
        return Written(part, None, reason=why)
    return None


def whole_of(summarised: Sequence[tuple[Part, Summary]], longest: int = LONGEST) -> Part:
    """A document of several sections, as the text that their summaries make, of at most `longest`
    tokens: of more, each is cut, and of very many sections every n-th is there."""
    first, last = summarised[0][0], summarised[-1][0]
    lines = [f"{part.heading}: {summary.text}".removeprefix(": ") for part, summary in summarised]
    if count_tokens("\n".join(lines)) > longest:
        lines = lines[:: -(-len(lines) * LEAST // longest)]
        lines = [shorten(line, longest // len(lines) - 1) for line in lines]
    return replace(first, place=0, start=0, end=last.end, heading="", text="\n".join(lines))


async def summarise(
    asker: Asker, documents: Sequence[Sequence[Part]], params: SummaryParams, asks: bool = True, alone: bool = False
) -> list[Written]:
    """The summaries of these documents, given as their sections: first of all sections, then of each
    document that has several, made of theirs. Not `asks`: only those that the reply cache holds. `alone`:
    no two texts share a question."""
    most = (0 if alone else params.longest) if asks else None
    sections = await _of_parts(asker, [part for parts in documents for part in parts], params, most)
    of = {section.part.id: section for section in sections}
    wholes, waiting = [], []
    for parts in (parts for parts in documents if len(parts) > 1):
        pairs = ((part, of[part.id].summary) for part in parts)
        summarised = [(part, summary) for part, summary in pairs if summary is not None]
        if len(summarised) == len(parts):
            wholes.append(whole_of(summarised, params.longest))
        else:
            whole = replace(parts[0], place=0)
            waiting.append(Written(whole, None, reason="its sections are not summarised yet"))
    return [*sections, *await _of_parts(asker, wholes, params, most), *waiting]


async def _of_parts(asker: Asker, parts: Sequence[Part], params: SummaryParams, most: int | None) -> list[Written]:
    """`most`: tokens of the texts of one question; None: none is asked."""
    found = {part.id: settled(asker, part, params) for part in parts}
    missing = [part for part in parts if found[part.id] is None and most is not None]
    calls = (_call(asker, call, params) for call in in_calls(missing, most or 0))
    for written in await asyncio.gather(*calls):
        found |= {result.part.id: result for result in written}
    return [found[part.id] or Written(part, None) for part in parts]


def in_calls(parts: Sequence[Part], longest: int = LONGEST) -> list[list[Part]]:
    """The texts in calls of up to `longest` tokens, in their order."""
    return packed(parts, lambda part: count_tokens(part.text), longest)


async def _call(asker: Asker, parts: Sequence[Part], params: SummaryParams) -> list[Written]:
    """One call for these texts; what is missing or unsupported of several is asked again alone, but not
    where the call itself failed: no shorter question would be answered."""
    answer = await asker.ask(ask(parts, params))
    if len(parts) == 1 or answer.failed or (not answer.by and not asker.on):
        return [Written(part, answer.value.get(1), answer.by, answer.reason) for part in parts]
    return await asyncio.gather(
        *(_alone(asker, part, answer.value.get(number), params, answer.by) for number, part in enumerate(parts, 1))
    )


async def _alone(asker: Asker, part: Part, first: Summary | None, params: SummaryParams, by: str) -> Written:
    """The summary of one text of a call, asked for once more where it is missing or says what the
    text does not; the better one is kept."""
    single = ask([part], params)
    if first is not None and not first.unsupported:
        await asker.keep(single, first.as_json())
        return Written(part, first, by)
    # What was doubted once is not doubted again.
    again = await asker.ask(single if first is None else replace(single, doubt=lambda _: ""))
    second = again.value.get(1)
    if first is None or (second is not None and len(second.unsupported) < len(first.unsupported)):
        return Written(part, second, again.by, again.reason)
    await asker.keep(single, first.as_json())
    return Written(part, first, by)
