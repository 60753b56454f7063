"""Entities and relationships of a text unit by a model: the `llm` extractor, with gleaning.

Takes an asker, a unit's text and the names that the keyless extractor found in it; gives an
`Extraction`, whose records are None when no one answered. Then places in the text: where a name
stands, in which spelling, and which sentence says a thing that stands nowhere literally. Knows
nothing of other units, of the graph or of who answers."""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, TypeVar

from graphrag_mcp.index import records as parsing
from graphrag_mcp.index.records import EntityRecord, Records, RelationRecord, parse
from graphrag_mcp.llm import prompts
from graphrag_mcp.llm.asker import Ask, BadReply, aside
from graphrag_mcp.llm.protocols import Message
from graphrag_mcp.llm.replies import without_thoughts
from graphrag_mcp.text.terms import (
    SIMPLIFY,
    composed,
    content_id,
    is_cjk,
    normalise_name,
    query_terms,
    terms,
    with_origins,
)

if TYPE_CHECKING:
    from graphrag_mcp.llm.asker import Asker
    from graphrag_mcp.settings import Settings


Finder = Callable[[str, str, int], list[tuple[int, int]]]
R = TypeVar("R", EntityRecord, RelationRecord)
_doubt, _whole = Records.doubt, Records.whole
VERSION = "llm-1"
ANY_TYPE = "whatever fits best, in one or two lower-case words"
# A second pass with gleanings "auto": see `gleaning_pays`. Share of 361 units of dense
# encyclopaedic text that is gleaned, each first reply having 18 entities: 42 % at 3 and 1/3, 27 %
# at 3 and 2/5, 10 % at 4 and 1/2.
MISSED_LEAST, MISSED_SHARE = 4, 1 / 2
NAMES_WORTH_A_RECORD = 3  # strong names in a unit from which an empty list is not believed
# characters of a first reply that a gleaning repeats; usual replies have up to 16,000
SHOWN = 24_000
MOST_HITS = 50
NOTHING_MORE = 600  # characters in which a second look may say that it found nothing


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

    @property
    def echoes(self) -> frozenset[str]:
        """Names of the example, in lower case: a reply that has them though the text has not
        repeats the prompt."""
        return _names_in(self.examples)

    def prompt(self, text: str, context: str = "") -> str:
        return self.template.substitute(
            entity_types=", ".join(self.types) or ANY_TYPE,
            language=language_rule(self.language),
            examples=self.examples,
            document=context,
            text=guarded(text),
        )


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


@lru_cache(maxsize=32)
def _names_in(examples: str) -> frozenset[str]:
    try:
        found = parse(examples, echoes=())
    except BadReply:
        return frozenset()
    ends = [end for relation in found.relations for end in (relation.source, relation.target)]
    return frozenset(map(str.casefold, [*(one.name for one in found.entities), *ends]))


# ---- asking ---------------------------------------------------------------------------------------


async def extract_unit(
    asker: Asker, text: str, known_names: Sequence[str], params: ExtractParams, context: str = ""
) -> Extraction:
    """What a model finds in `text`. `known_names`: the strong names that the keyless extractor
    finds in it. `context`: the line on its document."""

    def first_reply(reply: str, strict: bool = False) -> Records | None:
        records = parse(reply, params.types, text, params.echoes, strict=strict)
        empty = not records.entities and not records.relations
        if empty and len(known_names) >= NAMES_WORTH_A_RECORD:
            raise BadReply("an empty list for a text with names")
        return records

    def later_reply(reply: str) -> Records | None:
        # That nothing was missed is said in sentences, too: not believed, each later run would pay
        # for it again.
        asked = params.more.template[:60]
        # A shorter one, of someone's own, may be words of any reply.
        if len(asked) >= 40 and asked in reply:
            raise BadReply("the reply was the prompt again")
        return parse(reply, params.types, text, params.echoes, said=NOTHING_MORE)

    def pays(found: Records) -> bool:
        return gleaning_pays(text, known_names, found)

    first = Ask(
        "extract",
        (Message("user", params.prompt(text, context)),),
        first_reply,
        lambda: None,
        doubt=_doubt,
        worth=_whole,
        strictly=partial(first_reply, strict=True),
    )
    again = Gleaning(params.gleanings, params.more.substitute(), later_reply, pays, with_gleaned)
    return Extraction(*await asked(asker, first, again))


@dataclass(frozen=True, slots=True)
class Gleaning:
    """A further look at a text: `more` is what asks for it, `parse` reads the reply, `pays` says of
    what is known whether to ask at all (with gleanings "auto"), `join` gives what is known then and
    how much that is new."""

    gleanings: str
    more: str
    parse: Callable[[str], Any]
    pays: Callable[[Any], bool]
    join: Callable[[Any, Any], tuple[Any, int]]


async def asked(asker: Asker, first: Ask[Any], again: Gleaning) -> tuple[Any, str, str]:
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
        more = replace(first, kind="glean", messages=messages, parse=again.parse, strictly=None)
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
    entities, relations, gained = list(first.entities), list(first.relations), 0
    for some, key, further, most in (
        (entities, _kind, more.entities, parsing.MOST_ENTITIES),
        (relations, _pair, more.relations, parsing.MOST_RELATIONS),
    ):
        at = {key(one): index for index, one in reversed(list(enumerate(some)))}
        gained += sum(_put(some, at, key(one), one, most) for one in further)
    if gained and more.complete:  # what was cut off has been repeated in full
        first = replace(first, dropped={**first.dropped, parsing.CUT_OFF: 0})
    dropped = Counter(first.dropped) + Counter(more.dropped)
    repaired = Counter(first.repaired) + Counter(more.repaired)
    rows = (tuple(entities), tuple(relations))
    return Records(*rows, more.complete, dict(dropped), dict(repaired)), gained


def _kind(entity: EntityRecord) -> tuple[str, str]:
    return normalise_name(entity.name), entity.type


def _pair(relation: RelationRecord) -> tuple[str, str]:
    one, other = sorted((normalise_name(relation.source), normalise_name(relation.target)))
    return one, other


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


# ---- places in the text ---------------------------------------------------------------------------

_SMALL = frozenset(
    "of the and in on for at by to from with a an or de la le du des del di da von van der und".split()
)
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
_ROMAN = re.compile(r"[IVXLC]+")
_SAME_SIGN = SIMPLIFY | str.maketrans("’‘ʼ´`“”„«»–—‑−‐", "'''''\"\"\"\"\"-----")


@lru_cache(maxsize=512)
def locate(text: str, name: str) -> list[tuple[int, int]]:
    """Where `name` stands in `text`, at most MOST_HITS: exactly; else in any case, traditional or
    simplified; else whatever blanks and accents.

    Never inside a longer word, where a script has words. However the letters of either are
    composed."""
    return hits(text, " ".join(name.split()), MOST_HITS)


@lru_cache(maxsize=512)  # the ends of relationships are names of entities
def spelled(text: str, name: str) -> str:
    """The text's own spelling of `name`; a name that does not stand in it as it is, unless shouted."""
    name = " ".join(name.split())
    shouted = name.isupper() and sum(map(str.isalpha, name)) > 5
    spans = _placed(_any_case, text, name, MOST_HITS) if shouted else []
    spans = spans or locate(text, name)
    forms = Counter(" ".join(text[start:end].split()) for start, end in spans)
    if forms:
        best = max(forms, key=lambda form: (forms[form], not form.isupper() and " " in form))
        return name if best.isupper() and not name.isupper() and " " in name else best
    if shouted and " " in name:
        words = name.split(" ")
        return " ".join(_title(word, index > 0) for index, word in enumerate(words))
    return name


def _title(word: str, inner: bool) -> str:
    if _ROMAN.fullmatch(word):
        return word
    return word.lower() if inner and word.lower() in _SMALL else word.capitalize()


def best_sentence(
    text: str, spans_of_sentences: Sequence[tuple[int, int]], words: str
) -> tuple[int, int]:
    """The sentence with most distinct terms of `words` (a description); the first of equals."""
    wanted = set(query_terms(words))
    shared = [len(wanted & _terms_of(text[start:end])) for start, end in spans_of_sentences]
    return spans_of_sentences[shared.index(max(shared))] if shared else (0, len(text))


@lru_cache(maxsize=4096)
def _terms_of(sentence: str) -> frozenset[str]:
    return frozenset(terms(sentence))


def hits(text: str, name: str, most: int) -> list[tuple[int, int]]:
    return _placed(_hits, text, name, most)


def _placed(find: Finder, text: str, name: str, most: int) -> list[tuple[int, int]]:
    """What `find` finds in the composed text, as places of the given one, letters whole."""
    name = composed(name)
    if text.isascii() or unicodedata.is_normalized("NFC", text):
        return find(text, name, most)
    whole, at = _composed(text)
    found = find(whole, name, most)
    return [(at[start], next(i for i in at[end:] if i > at[end - 1])) for start, end in found]


def _hits(text: str, name: str, most: int) -> list[tuple[int, int]]:
    exactly = _bounded(text, text, name, most)
    return exactly or _any_case(text, name, most) or _loosely(text, name, most)


def _any_case(text: str, name: str, most: int) -> list[tuple[int, int]]:
    lower = _lower(text)
    if len(lower) != len(text):
        return _loosely(text, name, most)
    spans = _bounded(lower, text, _lower(name), most)
    if len(name) <= 3:  # US is not `us`
        spans = [span for span in spans if text[span[0]].isupper() or not name[0].isupper()]
    return spans


def _loosely(text: str, name: str, most: int) -> list[tuple[int, int]]:
    if len(name) <= 3:
        return []
    folded, starts = folded_with_starts(text)
    spans = _bounded(folded, folded, folded_with_starts(name)[0].strip(), most)
    return [(starts[start], end_of(text, starts[end - 1])) for start, end in spans]


def _bounded(where: str, text: str, name: str, most: int) -> list[tuple[int, int]]:
    """Spans of `name` in `where` that cut no word of `text`, which has the same offsets."""
    spans: list[tuple[int, int]] = []
    at = where.find(name) if name else -1
    while at >= 0 and len(spans) < most:
        end = at + len(name)
        edges = (one for one in (at, end) if 0 < one < len(text))
        inside = any(_of_word(text[one - 1]) and _of_word(text[one]) for one in edges)
        if inside or (len(name) == 1 and text[end : end + 1] in ("+", "#")):  # C is not C++
            at = where.find(name, at + 1)
        else:
            spans.append((at, end))
            at = where.find(name, end)
    return spans


def _of_word(ch: str) -> bool:
    """A letter or digit of a script with blanks: not Han, kana, Hangul, Thai."""
    return ch.isalnum() and (ch < "\u0e00" or not (is_cjk(ch) or _UNSPACED.match(ch)))


_composed = lru_cache(maxsize=16)(with_origins)


@lru_cache(maxsize=16)
def _lower(text: str) -> str:
    """In lower case and in simplified Chinese, which changes no offset."""
    return text.lower() if text.isascii() else text.lower().translate(SIMPLIFY)


@lru_cache(maxsize=16)
def folded_with_starts(text: str) -> tuple[str, array[int]]:
    """Case, accents, width, kinds of quotes and dashes, traditional Chinese folded, blanks
    collapsed; and where each sign came from."""
    out: list[str] = []
    starts = array("q")
    for at, ch in enumerate(text):
        for sign in _fold(ch):
            if sign != " " or (out and out[-1] != " "):
                out.append(sign)
                starts.append(at)
    return "".join(out), starts


@lru_cache(maxsize=4096)
def _fold(ch: str) -> str:
    if ch.isspace():
        return " "
    plain = unicodedata.normalize("NFKD", ch.translate(_SAME_SIGN)).casefold()
    signs = (sign for sign in plain if not unicodedata.combining(sign))
    return "".join(" " if sign.isspace() else sign for sign in signs)


def end_of(text: str, at: int) -> int:
    """The end of the character at `at`, accents that follow it included."""
    at += 1
    while at < len(text) and unicodedata.combining(text[at]):
        at += 1
    return at
