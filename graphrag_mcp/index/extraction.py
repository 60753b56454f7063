"""Entities and relationships of a text unit by a model: the `llm` extractor, with gleaning.

Takes an asker, a unit's text and the names that the keyless extractor found in it; gives an
`Extraction`, whose records are None when no one answered. Knows nothing of other units, of the graph
or of who answers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from graphrag_mcp.index import records as parsing
from graphrag_mcp.index.losses import listed
from graphrag_mcp.index.places import hits
from graphrag_mcp.index.records import EntityRecord, Records, RelationRecord, parse
from graphrag_mcp.llm import prompts
from graphrag_mcp.llm.asker import Ask, BadReply, aside
from graphrag_mcp.llm.protocols import Message
from graphrag_mcp.llm.replies import without_thoughts
from graphrag_mcp.text.terms import content_id, is_cjk, normalise_name

if TYPE_CHECKING:
    from graphrag_mcp.llm.asker import Asker
    from graphrag_mcp.settings import Settings


R = TypeVar("R", EntityRecord, RelationRecord)
T = TypeVar("T")  # what is read of replies
VERSION = "llm-2"
ANY_TYPE = "whatever fits best, in one or two lower-case words"
# A second pass with gleanings "auto": see `gleaning_pays`. Share of 361 units of dense
# encyclopaedic text that is gleaned, each first reply having 18 entities: 42 % at 3 and 1/3, 27 %
# at 3 and 2/5, 10 % at 4 and 1/2.
MISSED_LEAST, MISSED_SHARE = 4, 1 / 2
NAMES_WORTH_A_RECORD = 3  # strong names in a unit from which an empty list is not believed
# characters of a first reply that a gleaning repeats; usual replies have up to 16,000
SHOWN = 24_000


@dataclass(frozen=True, slots=True)
class ExtractParams:
    """What extraction depends on. `language` "" = that of the text; `gleanings` auto, 0, 1 or 2;
    `types` () = any."""

    types: tuple[str, ...]
    language: str
    gleanings: str
    template: Template
    more: Template
    examples: str

    @property
    def fingerprint(self) -> str:
        words = (self.template.template, self.more.template, self.examples)
        return content_id(VERSION, *words, self.language, self.gleanings, *self.types)

    def prompt(self, text: str, context: str = "") -> str:
        return self.template.substitute(
            entity_types=", ".join(self.types) or ANY_TYPE,
            language=language_rule(self.language),
            examples=self.examples,
            document=context,
            text=guarded(text),
        )

    def question(self, text: str, context: str = "") -> tuple[tuple[Message, ...], dict[str, Any]]:
        """The first question about a text: its messages and the schema of the reply."""
        return (Message("user", self.prompt(text, context)),), parsing.SCHEMA


@dataclass(frozen=True, slots=True)
class Extraction:
    """`records` None: no one answered, and `reason` says why. When a further pass that was due got
    no answer, `reason` says so and the records of the first stay."""

    records: Records | None
    by: str = ""
    reason: str = ""


def params_from(settings: Settings, corpus_folder: Path | None) -> ExtractParams:
    """From the settings and the corpus's own prompts, where it has some."""
    types = (kind.strip().lower() for kind in settings.entity_types)
    return ExtractParams(
        types=tuple(dict.fromkeys(filter(None, types))),
        language=" ".join(settings.output_language.split())[:60],
        gleanings=settings.gleanings,
        template=prompts.load("extract", corpus_folder),
        more=prompts.load("extract_more", corpus_folder),
        examples=prompts.load("extract_examples", corpus_folder).substitute(),
    )


def language_rule(language: str) -> str:
    return f"Write in {language}." if language else "Write in the language of the text."


def guarded(text: str) -> str:
    """A document cannot close the tag that it stands in, nor that of the line before it."""
    return re.sub(r"</(?=\s{0,20}(?:text|document))", r"<\\/", text, flags=re.IGNORECASE)


# ---- asking ---------------------------------------------------------------------------------------


async def extract_unit(
    asker: Asker, text: str, known_names: Sequence[str], params: ExtractParams, context: str = ""
) -> Extraction:
    """What a model finds in `text`. `known_names`: the strong names that the keyless extractor
    finds in it. `context`: the line on its document."""

    def first_reply(reply: str) -> Records | None:
        records = parse(reply, params.types, text)
        empty = not records.entities and not records.relations
        if empty and records.dropped:
            raise BadReply(f"{parsing.NOTHING_USABLE}: {listed(records.dropped, records.lost)}")
        if empty and len(known_names) >= NAMES_WORTH_A_RECORD:
            raise BadReply("an empty list for a text with names")
        return records

    def later_reply(reply: str) -> Records | None:
        return parse(reply, params.types, text)

    def pays(found: Records) -> bool:
        return gleaning_pays(text, known_names, found)

    messages, schema = params.question(text, context)

    def doubt(found: Records | None) -> str:
        return found.doubt() if found is not None else ""

    def worth(found: Records | None) -> int:
        return found.whole() if found is not None else 0

    first = Ask("extract", messages, first_reply, lambda: None, schema, doubt=doubt, worth=worth)
    again = Gleaning(params.gleanings, params.more.substitute(), later_reply, pays, with_gleaned)
    return Extraction(*await asked(asker, first, again))


@dataclass(frozen=True, slots=True)
class Gleaning(Generic[T]):
    """A further look at a text: `more` is what asks for it, `parse` reads the reply, `pays` says of
    what is known whether to ask at all (with gleanings "auto"), `join` gives what is known then and
    how much that is new."""

    gleanings: str
    more: str
    parse: Callable[[str], T | None]
    pays: Callable[[T], bool]
    join: Callable[[T, T], tuple[T, int]]


async def asked(
    asker: Asker, first: Ask[T | None], again: Gleaning[T]
) -> tuple[T | None, str, str]:
    """What a model finds in a text, by further looks as long as they bring something; by whom, and
    why there was no answer: of a further look that was due, too. Then what was known stays."""
    answer = await asker.ask(first)
    known, by, messages = answer.value, answer.by, first.messages
    if known is None:
        return None, "", answer.reason
    auto = again.gleanings == "auto"
    for _ in range(1 if auto else int(again.gleanings)):
        if auto and not await aside(again.pays, known):
            break
        messages += (Message("assistant", shown(answer.raw)), Message("user", again.more))
        more = replace(first, kind="glean", messages=messages, parse=again.parse)
        answer = await asker.ask(more)
        if answer.value is None:
            return known, by, f"no gleaning: {answer.reason}"
        known, gained = again.join(known, answer.value)
        if not gained:
            break
    return known, by, ""


def shown(reply: str) -> str:
    """An earlier reply, repeated without its thoughts, and cut at a line's end when huge."""
    text = without_thoughts(reply).strip()
    if len(text) <= SHOWN:
        return text
    cut = text.rfind("\n", SHOWN // 2, SHOWN)
    return text[: cut if cut > 0 else SHOWN]


def gleaning_pays(text: str, known_names: Sequence[str], records: Records) -> bool:
    """Is a second pass worth its price (the unit and the first reply once more)?

    Always after a reply that was cut off. Else when the reply passed over what the text speaks of
    more than once: at least MISSED_LEAST, and at least MISSED_SHARE, of the known names that occur
    twice. Names seen once do not count: a model is right to leave out much of what is only
    mentioned, and dense text would be gleaned everywhere."""
    if not records.complete:
        return True
    ends = [end for relation in records.relations for end in (relation.source, relation.target)]
    have = {normalise_name(name) for name in [*(entity.name for entity in records.entities), *ends]}
    inside = " | ".join(sorted(have))
    repeated = missed = 0
    for key, name in {normalise_name(name): name for name in known_names}.items():
        if len(hits(text, name, 2)) > 1:
            repeated += 1
            # No blanks between Han names.
            longer = key in inside if is_cjk(key[:1]) else f" {key} " in f" {inside} "
            missed += not (key in have or longer)
    return missed >= MISSED_LEAST and missed >= MISSED_SHARE * repeated


def with_gleaned(first: Records, more: Records) -> tuple[Records, int]:
    """`first` with what a further reply adds or corrects, and how many records that are.

    The same name and type, or the same pair, is a correction when it says more than what stands
    there; else it is a repetition and ignored."""
    entities, relations = list(first.entities), list(first.relations)
    gained = _gathered(entities, more.entities, _kind, parsing.MOST_ENTITIES)
    gained += _gathered(relations, more.relations, _pair, parsing.MOST_RELATIONS)
    if gained and more.complete:  # what was cut off has been repeated in full
        first = replace(first, dropped={**first.dropped, parsing.CUT_OFF: 0})
    lost = tuple(dict.fromkeys((*first.lost, *more.lost)))
    said_again = Counter(reason for reason, _ in {*first.lost} & {*more.lost})
    dropped = Counter(first.dropped) + (Counter(more.dropped) - said_again)
    repaired = Counter(first.repaired) + Counter(more.repaired)
    rows = (tuple(entities), tuple(relations))
    return Records(*rows, more.complete, dict(dropped), dict(repaired), lost), gained


def _kind(entity: EntityRecord) -> tuple[str, str]:
    return normalise_name(entity.name), entity.type


def _pair(relation: RelationRecord) -> tuple[str, str]:
    first, other = sorted((normalise_name(relation.source), normalise_name(relation.target)))
    return first, other


def _gathered(
    records: list[R], further: Iterable[R], key: Callable[[R], tuple[str, str]], most: int
) -> int:
    """Adds the further records that are new or say more, up to `most` in all; how many these are."""
    at = {key(record): index for index, record in reversed(list(enumerate(records)))}
    return sum(_put(records, at, key(record), record, most) for record in further)


def _put(
    records: list[R], at: dict[tuple[str, str], int], key: tuple[str, str], new: R, most: int
) -> bool:
    """Adds `new`, or puts it in the place of what says less."""
    index = at.get(key)
    if index is None:
        if len(records) >= most:
            return False
        at[key] = len(records)
        records.append(new)
        return True
    if len(new.description) <= len(records[index].description):
        return False
    records[index] = new
    return True
