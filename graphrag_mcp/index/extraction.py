"""Entities and relationships of a text unit by a model: the `llm` extractor, with gleaning.

Takes an asker, a unit's text and the names that the keyless extractor found in it; gives an
`Extraction`, whose records are None when no one answered. Knows nothing of other units, of the graph
or of who answers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, TypeVar

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
VERSION = "llm-3"
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
    """What extraction depends on. `language` "" = that of the text; `gleanings` auto, 0 or 1;
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
    """`records` None: no one answered, and `reason` says why. When a gleaning that was due got no
    answer, `reason` says so and the records of the first reply stay."""

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

    messages, schema = params.question(text, context)
    first = Ask("extract", messages, first_reply, lambda: None, schema)
    answer = await asker.ask(first)
    found = answer.value
    if found is None:
        return Extraction(None, "", answer.reason)
    if params.gleanings == "0":
        return Extraction(found, answer.by)
    if params.gleanings == "auto" and not await aside(gleaning_pays, text, known_names, found):
        return Extraction(found, answer.by)
    messages += (Message("assistant", shown(answer.raw)), Message("user", params.more.substitute()))
    more = await asker.ask(replace(first, kind="glean", messages=messages, parse=later_reply))
    if more.value is None:
        return Extraction(found, answer.by, f"no gleaning: {more.reason}")
    return Extraction(with_gleaned(found, more.value), answer.by)


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


def with_gleaned(first: Records, more: Records) -> Records:
    """`first` with what a further reply adds. Of two records of the same name and type, or of the same
    pair, the one that says more stays. Both replies mostly lose the same records, which count once."""
    entities = _longest(first.entities, more.entities, _kind)[: parsing.MOST_ENTITIES]
    relations = _longest(first.relations, more.relations, _pair)[: parsing.MOST_RELATIONS]
    dropped = Counter(first.dropped) | Counter(more.dropped)
    if more.complete and (entities, relations) != (first.entities, first.relations):
        dropped[parsing.CUT_OFF] = 0  # what was cut off has been said in full
    return Records(
        entities, relations, more.complete, dict(+dropped), dict(Counter(first.repaired) | Counter(more.repaired))
    )


def _kind(entity: EntityRecord) -> tuple[str, str]:
    return normalise_name(entity.name), entity.type


def _pair(relation: RelationRecord) -> tuple[str, str]:
    first, other = sorted((normalise_name(relation.source), normalise_name(relation.target)))
    return first, other


def _longest(records: Sequence[R], further: Sequence[R], key: Callable[[R], tuple[str, str]]) -> tuple[R, ...]:
    found: dict[tuple[str, str], R] = {}
    for record in (*records, *further):
        before = found.get(key(record))
        if before is None or len(record.description) > len(before.description):
            found[key(record)] = record
    return tuple(found.values())
