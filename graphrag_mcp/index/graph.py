"""The merge: adds new text units to entities and relationships, subtracts those that are gone, and
applies edits.

Every touched entity and pair is recomputed from all its remaining mentions and evidence, so the
result of any history equals a fresh index; untouched rows are not read. Four steps, because a name
that becomes an entity (or stops being one, or is found to be an alias) changes the pairs of every
unit that holds it, also of units that were not edited; step 2 finds those units. Which names mean
the same, and which deserve an entity, depends on the mentions of those names alone, never on totals
of the corpus."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import chain, pairwise
from operator import attrgetter
from typing import Any

import pyarrow as pa

from graphrag_mcp.errors import Damaged
from graphrag_mcp.index import describe
from graphrag_mcp.index.chunk import recent_sentences
from graphrag_mcp.names.certain import enough, full
from graphrag_mcp.names.extract import Fields, mentions
from graphrag_mcp.store.edit_log import Overlay, Pair, PairFact, concerned
from graphrag_mcp.store.edit_log import facts as facts_of
from graphrag_mcp.store.schema import TABLES
from graphrag_mcp.store.tables import Change, Snapshot, rows_of
from graphrag_mcp.text.prose import (
    entries,
    fences,
    introduction,
    is_code,
    makes_a_statement,
    navigation,
    quotation,
    relates,
)
from graphrag_mcp.text.terms import composed, entity_id, is_cjk, lists_of, relationship_id, terms
from graphrag_mcp.trust.fencing import masked

EditedRow = dict[str, Any]
UNTYPED = ""  # nothing tells what the name is
CODE = "code"  # who says what is known of a symbol
EVIDENT = 0.2  # share of an entity's mentions that must say its type: "in Labour" is said once
VAGUE = ("other", "unknown")  # what mentions say for that


def entity_row(row: EditedRow, key: str, edits: Overlay) -> EditedRow:
    """The row with the names, title, type and description that were given to it."""
    names = edits.names.get(key, ())
    words = edits.words(key)
    if not names and not words and row["title"]:
        return row
    title = words.get("title") or row["title"] or edits.forms.get(key, key)
    # Names that were given come after those of the texts, however many: they must all be found.
    given = [
        edits.forms.get(name, name) for name in (*names, *([key] if words.get("title") else []))
    ]
    shown = dict.fromkeys([*filter(None, [row["title"]]), *row["aliases"], *given])
    shown.pop(title, None)
    row["title"], row["aliases"] = title, list(shown)
    row["type"] = words.get("type") or row["type"] or UNTYPED
    row["description"] = words.get("description") or row["description"]
    row["names"] = sorted({*row["names"], *names})
    spoken = [term for form in (title, *row["aliases"]) for term in terms(form)]
    row["terms"] = " ".join(dict.fromkeys(spoken))
    return row


def pair_row(row: EditedRow, fact: PairFact) -> EditedRow:
    """The row with the description, keywords and weight that were given to it."""
    row |= {name: value for name, value in fact.fields.items() if name != "weight"}
    row["weight"] = fact.weight(row["weight"])
    return row


@dataclass(slots=True)
class Named:
    """One name in one text unit. Offsets count from the start of the unit's text; `sentences` is
    start, end, ..."""

    key: str
    text_unit_id: str
    form: str
    type: str
    strong: bool
    count: int
    sentences: list[int]
    start: int
    end: int
    alias_of: str
    description: str = ""
    by: str = ""


@dataclass(frozen=True, slots=True)
class Said:
    """One relationship as a model or an agent stated it; start and end are of the sentence it rests
    on."""

    source: str  # names, normalised
    target: str
    description: str
    keywords: str
    weight: float
    start: int
    end: int


@dataclass(slots=True)
class UnitNames:
    """A text unit with its names; `text` is kept only while the unit is being indexed.

    `said`: its relationships where a model read it; None: they follow from names that share a
    sentence. `quotations`: of the sentences of its names, as far as they are known."""

    id: str
    text: str
    named: list[Named]
    said: list[Said] | None = None
    capped: bool = False  # does it hold more names or pairs than are kept?
    quotations: dict[tuple[int, int], tuple[str, float]] = field(default_factory=dict)

    def keep(self, most: int) -> None:
        """Only the best names: proper ones first, then those named more often, then the first."""
        if len(self.named) > most:
            ranked = sorted(
                self.named, key=lambda one: (not one.strong, -one.count, one.start, one.key)
            )
            best = {one.key for one in ranked[:most]}
            self.named = [one for one in self.named if one.key in best]


# A sentence of more than LISTED names, and a text unit of more than MOST_NAMES, is a list: KEPT
# names of the unit are kept. The sentence is read in parts of PART names: two names of one part
# stand near each other, and the part is the evidence, not all of the list. A text unit has at most
# MOST_PAIRS pairs. Of 3,000 units of news, encyclopaedias, papers and Chinese articles seven had a
# sentence over LISTED (a squad, a cast, a table); the most names of a unit were 101.
LISTED, MOST_NAMES, MOST_PAIRS = 30, 128, 400
# Share of the texts which name a family name's bearer in full that must name the same person.
BEARER = 0.9
# Of so many mentions of a family name one must stand in a text that names the bearer in full: where
# "Mr. Bingley" is on every page, he is not the Caroline Bingley of three letters.
SURNAME = 5
# Of two mentions of a given name, unless so many text units name its bearer in full.
OFTEN = 5
KEPT, PART = 40, 3
# A sentence of LIST names with fewer than SPACING characters each, or of NAMES names and a smaller
# share of words in small letters than SMALL, is a list: it says nothing about any two of them.
LIST, SPACING = 5, 18
NAMES, SMALL = 3, 0.12
# A sentence of so many names, or of more than SAYS_SOMETHING characters where it is not quoted, says
# nothing about any two of them either: of 38 such pairs that readers marked 12 were right, 12 wrong.
CROWD = 8
_POINTS = ".,;:!?()[]\"'*_“”‘’"


def collect(unit_id: str, text: str, core: int) -> tuple[UnitNames, list[tuple[int, str]]]:
    """The unit's names grouped, and every single mention as its start in the unit's text and its
    key. Of a list the best names are kept."""
    core_text = text[core:]
    left_out = sorted(navigation(core_text) + entries(core_text))
    every = [
        mention
        for mention in mentions(core_text)
        if (at := bisect_right(left_out, (mention[4], math.inf))) == 0
        or left_out[at - 1][1] <= mention[4]
    ]
    whole = recent_sentences(core_text)
    spans, listed = _with_lists_parted(core_text, whole, every)
    starts = [start for start, _ in spans]
    mute = _mute(core_text, spans, starts, every) | _crowded(whole, starts, every)
    groups = lists_of((mention[0], mention) for mention in every)
    named = [_group(unit_id, found, spans, starts, mute, core) for found in groups.values()]
    unit = UnitNames(unit_id, text, named, capped=listed or len(named) > MOST_NAMES)
    if unit.capped:
        unit.keep(KEPT)
    # Here and not in the merge, since this is computed in several processes.
    for name in unit.named:
        for start, end in zip(name.sentences[::2], name.sentences[1::2], strict=True):
            if (start, end) not in unit.quotations:
                unit.quotations[start, end] = quotation(text[start:end])
    places = [(mention[4] + core, mention[0]) for mention in every]
    if len(unit.named) < len(named):
        kept = {name.key for name in unit.named}
        places = [place for place in places if place[1] in kept]
    return unit, places


def _with_lists_parted(
    text: str, spans: list[tuple[int, int]], every: Sequence[Fields]
) -> tuple[list[tuple[int, int]], bool]:
    """The sentences, those that list over LISTED names in parts of PART names; whether any does."""
    if len(every) <= LISTED:
        return spans, False
    starts = [start for start, _ in spans]
    # by sentence: name -> where it stands first
    held: dict[int, dict[str, int]] = defaultdict(dict)
    for mention in every:
        held[max(0, bisect_right(starts, mention[4]) - 1)].setdefault(mention[0], mention[4])
    if max(map(len, held.values())) <= LISTED:
        return spans, False
    parted: list[tuple[int, int]] = []
    for number, (start, end) in enumerate(spans):
        places = list(held.get(number, {}).values())
        cuts = [start, *places[PART::PART], end] if len(places) > LISTED else [start, end]
        parted += [(at, at + len(text[at:to].rstrip())) for at, to in pairwise(cuts) if at < to]
    return parted, True


def _mute(
    text: str, spans: Sequence[tuple[int, int]], starts: list[int], every: Sequence[Fields]
) -> set[int]:
    """The sentences that say nothing about any two of their names: source code and lists."""
    blocks = fences(text)
    named = {(max(0, bisect_right(starts, one[4]) - 1), one[0]) for one in every}
    return {
        at
        for at, names in lists_of(named).items()
        if bisect_right(blocks, spans[at][0]) % 2 or _says_nothing(text[slice(*spans[at])], names)
    }


def _crowded(
    whole: Sequence[tuple[int, int]], starts: list[int], every: Sequence[Fields]
) -> set[int]:
    """The sentences, or parts of one, that begin at `starts` and lie within one of CROWD names."""
    begins = [start for start, _ in whole]
    named = {(max(0, bisect_right(begins, one[4]) - 1), one[0]) for one in every if one[3]}
    crowds = {at for at, names in lists_of(named).items() if len(names) >= CROWD}
    return {at for at, start in enumerate(starts) if bisect_right(begins, start) - 1 in crowds}


def _says_nothing(sentence: str, names: Collection[str]) -> bool:
    if is_code(sentence):
        return True
    room = sum(SPACING // 3 if is_cjk(name[:1]) else SPACING for name in names)
    if len(names) >= LIST and len(sentence) < room:
        return True  # Guests: Mary Somerville, Luigi Menabrea, Edinburgh, Turin, Bournemouth.
    if len(names) < NAMES or sentence[:1] == "|" or any(map(is_cjk, sentence)):
        return False
    words = [word.strip(_POINTS) for word in sentence.split()]
    small = sum(word.isalpha() and word == word.lower() for word in words)
    return small < SMALL * len(words)  # Systems: AIX, Irix, Solaris


def _group(
    unit_id: str,
    found: list[Fields],
    spans: list[tuple[int, int]],
    starts: list[int],
    mute: set[int],
    shift: int,
) -> Named:
    flat: list[int] = []
    for mention in found:
        at = max(0, bisect_right(starts, mention[4]) - 1)
        start, end = spans[at]
        if not flat or flat[-2] != start + shift:
            # a sentence that ends with the name is shared with no other name
            flat += (start + shift, (mention[5] if at in mute else end) + shift)
    # All mentions of a key in one text have one type, one strength and one alias.
    key, _, kind, strong, start, end, alias_of = found[0]
    form = majority(mention[1] for mention in found)
    return Named(
        key, unit_id, form, kind, strong, len(found), flat, start + shift, end + shift, alias_of
    )


def majority(values: Iterable[str]) -> str:
    """The most frequent value, the smallest of equals, "" of none."""
    counts = Counter(values)
    return min(counts, key=lambda value: (-counts[value], value)) if counts else ""


def mentions_to_table(rows: Sequence[object], table: str = "mentions") -> pa.Table:
    """Rows whose attributes are called like the columns of `table`."""
    names = TABLES[table].names
    return graph_to_table(table, [{name: getattr(row, name) for name in names} for row in rows])


def mentions_from_table(table: pa.Table) -> list[Named]:
    return [Named(*values) for values in rows_of(table.select(TABLES["mentions"].names))]


def called(key: str, found: Sequence[Named]) -> tuple[str, str, list[str]]:
    """Title, type and aliases by majority, their letters composed; under its own name where it has
    one, and of a symbol the type of its definition, however often prose uses its name as a word."""
    forms: Counter[str] = Counter()
    own: Counter[str] = Counter()
    types: Counter[str] = Counter()
    mentions = sum(row.count for row in found)
    for row in found:
        form = " ".join(composed(row.form).split())  # a name that goes on in the next line
        forms[form] += row.count
        if row.key == key:
            own[form] += row.count
        if row.type not in VAGUE:
            types[row.type] += row.count
    counted = own or forms
    title = min(counted, key=lambda form: (-counted[form], form))
    # a person by the name that the texts have, mostly without the one in the middle
    same = [one for one in forms if _ends(one) == _ends(title) and forms[one] > forms[title]]
    title = max(same, key=lambda form: (forms[form], form), default=title)
    aliases = sorted(
        (form for form in forms if form != title), key=lambda form: (-forms[form], form)
    )[:10]
    if defined := next((row.type for row in found if row.key == key and row.by == CODE), ""):
        return title, defined, aliases
    best = min(types, key=lambda kind: (-types[kind], kind), default=UNTYPED)
    return title, best if types[best] >= EVIDENT * mentions else UNTYPED, aliases


# ---- names that mean the same ----------------------------------------------------------------------


def canonical_names(by_key: Mapping[str, Sequence[Named]]) -> dict[str, str]:
    """Name -> the name it stands for. An acronym defined in several ways follows the most frequent
    definition.

    Only one step: an expansion that is itself defined as an alias is not followed, so there are no
    chains."""
    definitions: dict[str, Counter[str]] = {}
    for key, rows in by_key.items():
        for row in rows:
            if row.alias_of and row.alias_of != key:
                definitions.setdefault(key, Counter())[row.alias_of] += row.count
    canonical = {key: key for key in by_key}
    # full names before their parts
    for key in sorted(definitions, key=lambda key: (-key.count(" "), key)):
        targets = definitions[key]
        parts = {one for one in targets if f" {key.rpartition(' ')[2]} " in f" {one} "}
        own = {one for one in parts if canonical.get(one) == one}
        usable = [
            one for one in targets if by_key.get(one) and (one in own or one not in definitions)
        ]
        if usable:
            best = min(usable, key=lambda target: (-targets[target], target))
            # with the most frequent name in the middle, and without any
            like = [one for one in targets if _ends(one) == _ends(best) and one.count(" ") > 1]
            same = {" ".join(_ends(best)), best, *sorted(like, key=lambda o: (-targets[o], o))[:1]}
            told = sum(targets[one] for one in same)
            borne = told >= BEARER * sum(targets.values())
            often = sum(row.alias_of in same for row in by_key[key]) >= OFTEN
            seldom = 2 if best.startswith(f"{key} ") and not often else SURNAME
            named = sum(row.count for row in by_key[key])
            # HM may be the initials of two people, or elsewhere the name of a thing
            people = any(row.type == "person" for row in (*by_key[key], *by_key[best]))
            if (borne and seldom * told >= named) or not (people or best in parts):
                canonical[key] = best
    return canonical


def _ends(name: str) -> tuple[str, str]:
    return name.partition(" ")[0], name.rpartition(" ")[2]


def is_entity(rows: Sequence[Named]) -> bool:
    """Is enough of the mentions of this name certain, and is it named more than once, of a known
    type, or a full name? What source code defines or a model names is an entity always.

    Of those that this leaves out 65 % were names, of the others 85 % (eight collections, marked by
    readers)."""
    if any(row.by for row in rows):
        return True
    sure = [row.count for row in rows if row.strong]
    every = sum(row.count for row in rows)
    known = every > 1 or rows[0].type not in VAGUE or full(rows[0].form)
    return known and enough(rows[0].key, sum(sure), every, len(sure))


def group(
    by_key: Mapping[str, Sequence[Named]], edits: Overlay | None = None
) -> tuple[dict[str, list[Named]], dict[str, str]]:
    """Entity name -> all its mentions under any name; and name -> entity name for every name that
    has an entity.

    An edit decides over what the texts define: which name stands for which, which is hidden, and
    which has an entity although nothing mentions it."""
    canonical = canonical_names(by_key)
    edits = edits or Overlay()
    if edits.log:
        canonical = {key: edits.stands_for(key, found) for key, found in canonical.items()}
    groups: dict[str, list[Named]] = {}
    for key in sorted(by_key):
        target = canonical[key]
        if target and (by_key[key] or edits.made(key)):
            groups.setdefault(target, []).extend(by_key[key])
    groups = {
        key: rows
        for key, rows in groups.items()
        if edits.made(key)
        or (rows and (edits.names.get(key) or edits.words(key) or is_entity(rows)))
    }
    return groups, {key: target for key, target in canonical.items() if target in groups}


# A sentence of many names says little about a far pair, so each name is linked to the next three. Of
# 30 pairs that only a reach of six gave, the sentence was about 6.
REACH = 3
SAYS_SOMETHING = 26, 300  # characters of a sentence that is quoted first
# Sentences kept with an entity or a relationship, the best of so many: more would only repeat.
SENTENCES, READ = 3, 6
QUOTABLE = 0.2  # of `stands_alone`, for a sentence that a description is made of


@dataclass(slots=True)
class Evidence:
    """One pair of entities in one text unit; start and end are of its best sentence, in the unit's
    text."""

    relationship_id: str
    source_id: str
    target_id: str
    text_unit_id: str
    weight: float
    start: int
    end: int
    source_key: str = ""
    target_key: str = ""
    description: str = ""
    keywords: str = ""


def pairs(
    named: Sequence[Named], entity_of: Mapping[str, str], capped: set[str], reach: int = REACH
) -> list[Evidence]:
    """Evidence rows of one unit. Weight 1 a sentence between two proper names, a half where a
    common noun takes part. Where they would be more than MOST_PAIRS, only nearer names are linked.

    entity_of: name -> name of its entity, for names that have one. capped: gains the unit's id
    where pairs are left out."""
    by_sentence: dict[tuple[int, int], dict[str, tuple[bool, int]]] = {}
    unit = ""
    for name in named:
        target = entity_of.get(name.key)
        if target is None:
            continue
        unit = name.text_unit_id
        for at in range(0, len(name.sentences), 2):
            members = by_sentence.setdefault((name.sentences[at], name.sentences[at + 1]), {})
            strong, first = members.get(target, (False, name.start))
            members[target] = (strong or name.strong, min(first, name.start))
    found: dict[tuple[str, str], Evidence] = {}
    best: dict[tuple[str, str], tuple[int, ...]] = {}
    for (start, end), members in sorted(by_sentence.items()):
        if len(members) < 2:
            continue
        order = sorted(members, key=lambda key: (members[key][1], key))
        ids = [entity_id(key) for key in order]
        for i, a in enumerate(ids):
            for j in range(i + 1, min(i + 1 + reach, len(ids))):
                if _one_in_other(order[i], order[j]):
                    continue
                weight = 1.0 if members[order[i]][0] and members[order[j]][0] else 0.5
                pair = (a, ids[j]) if a < ids[j] else (ids[j], a)
                known = found.get(pair)
                # Fewer names between them, then fewer names beside them: more about the pair.
                rank = (_unreadable(end - start), j - i, len(members), end - start)
                if known is None:
                    found[pair] = Evidence(relationship_id(*pair), *pair, unit, weight, start, end)
                    best[pair] = rank
                    continue
                known.weight += weight
                if rank < best[pair]:
                    known.start, known.end, best[pair] = start, end, rank
    if len(found) > MOST_PAIRS:
        capped.add(unit)
        if reach > 1:
            return pairs(named, entity_of, capped, reach - 1)
    return list(found.values())[:MOST_PAIRS]


def _one_in_other(one: str, other: str) -> bool:
    """Does one name hold the other? Where both stand ("Joe Sepi is away, ask Joe") they are mostly
    one thing, of which the sentence does not tell how it relates to itself."""
    return f" {one} " in f" {other} " or f" {other} " in f" {one} "


def _unreadable(length: int) -> int:
    """0 for a sentence of a length that says something and can be quoted, else 1."""
    return 0 if SAYS_SOMETHING[0] <= length <= SAYS_SOMETHING[1] else 1


def stated_pairs(unit: str, said: Iterable[Said], entity_of: Mapping[str, str]) -> list[Evidence]:
    """Evidence rows of a unit that a model read. A statement about one entity and itself keeps its
    row, without ids: when its two names part again, it counts again."""
    rows = []
    for one in said:
        ends = entity_of.get(one.source, ""), entity_of.get(one.target, "")
        pair = sorted(entity_id(key) for key in ends)
        told = (one.source, one.target, one.description, one.keywords)
        apart = all(ends) and ends[0] != ends[1]
        ids = (relationship_id(*pair), *pair) if apart else ("", "", "")
        rows.append(Evidence(*ids, unit, one.weight, one.start, one.end, *told))
    return rows


def stated_direction(found: Sequence[Evidence]) -> tuple[str, str]:
    """(source, target) of a pair as most of its statements have it, by weight; in the order of ids
    where no model stated one or both directions weigh the same."""
    ends = (found[0].source_id, found[0].target_id) if found else ("", "")
    forth = math.fsum(one.weight * _way(one) for one in found)  # exact in any order
    return ends if forth >= 0 else ends[::-1]


def _way(one: Evidence) -> int:
    """1 for a statement in the order of ids, -1 for the other, 0 where other names stand for both."""
    if not one.source_key:
        return 0
    ends = entity_id(one.source_key), entity_id(one.target_key)
    return (ends[0] == one.source_id or ends[1] == one.target_id) - (
        ends[0] == one.target_id or ends[1] == one.source_id
    )


def as_said(rows: Iterable[Evidence]) -> list[Said]:
    return [Said(*_STATED(row)) for row in rows if row.source_key]


_STATED = attrgetter(*"source_key target_key description keywords weight start end".split())


def best_for_entity(rows: Sequence[Named]) -> list[tuple[str, int, int]]:
    """(text unit, start, end) of the sentences that may say most about a name: where it stands first,
    and often; of each text unit first the one that is no greeting ("Ana: Thanks!")."""
    ranked = []
    for row in rows:
        spans = list(zip(row.sentences[::2], row.sentences[1::2], strict=True))[:READ]
        spans.sort(key=lambda one: _unreadable(one[1] - one[0]))
        for place, (start, end) in enumerate(spans):
            late = min(row.start - start, 60) // 4 if start == row.sentences[0] else 60 // 4
            rank = (place, _unreadable(end - start), late, -row.count, row.text_unit_id, row.key)
            ranked.append((rank, (row.text_unit_id, start, end)))
    return list(dict.fromkeys(place for _, place in sorted(ranked)))[:READ]


def best_for_pair(rows: Sequence[Evidence]) -> list[tuple[str, int, int]]:
    """(text unit, start, end) of a pair's strongest sentences."""
    ranked = sorted(
        rows, key=lambda r: (_unreadable(r.end - r.start), -r.weight, r.text_unit_id, r.start)
    )
    return list(dict.fromkeys((row.text_unit_id, row.start, row.end) for row in ranked))[:READ]


def pairs_from_table(table: pa.Table) -> list[Evidence]:
    return [Evidence(*values) for values in rows_of(table.select(TABLES["evidence"].names))]


Row = dict[str, object]
Place = tuple[str, int, int]  # text unit, start, end
Quote = tuple[Row, str, float]  # as it is stored, as it is shown, what it is worth alone


@dataclass
class Merge:
    """What to write, and how the counters move."""

    changes: dict[str, Change] = field(default_factory=dict)
    entities: int = 0  # more or fewer than before
    relationships: int = 0
    # text units of which not all names or pairs are kept
    capped: set[str] = field(default_factory=set)
    # Ids of rows whose descriptions a model should join -> their kind.
    long: dict[str, str] = field(default_factory=dict)
    is_long: Callable[[Sequence[str]], bool] | None = None


@dataclass(frozen=True)
class Changed:
    """Names and pairs of names about which the edits say something else than the rows of the
    snapshot follow; `told` are those of them whose description that concerns. Another description
    whose mentions stay is not made again."""

    keys: Collection[str] = ()
    pairs: Collection[Pair] = ()
    told: Collection[str | Pair] = ()


@dataclass
class _State:
    """The part of the previous generation that the merge has read, and what replaces it."""

    snapshot: Snapshot | None
    gone: set[str]
    fresh: Mapping[str, UnitNames]
    edits: Overlay
    changed: Changed
    by_key: dict[str, list[Named]] = field(default_factory=lambda: defaultdict(list))
    # old units whose pairs are recomputed
    by_unit: dict[str, list[Named]] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)  # keys whose mentions have been read
    lost: set[str] = field(default_factory=set)  # keys of which mentions are gone
    old_entities: dict[str, Row] = field(default_factory=dict)  # by id
    # text of a sentence or of a place in source code by (unit, start, end)
    texts: dict[Place, str] = field(default_factory=dict)
    quotes: dict[Place, Quote] = field(default_factory=dict)  # such texts as they are shown

    @property
    def is_edit(self) -> bool:
        """Does no document take part?"""
        return not self.gone and not self.fresh


def merge(
    snapshot: Snapshot | None,
    gone_units: Collection[str],
    fresh: Mapping[str, UnitNames],
    number: dict[str, int],
    is_long: Callable[[Sequence[str]], bool] | None = None,
    edits: Overlay | None = None,
    changed: Changed | None = None,
) -> Merge:
    """`number` holds the next free alias number of "e" and "r" and is advanced; `is_long` says of
    which descriptions a model should make one; `changed` is what `edits` say differently from those
    that the snapshot's rows follow."""
    changed = changed or Changed()
    state = _State(snapshot, set(gone_units), fresh, edits or Overlay(), changed)
    gone_rows = _read(state, "mentions", state.gone, "text_unit_id", mentions_from_table)
    named = {row.key for row in gone_rows} | {
        row.key for unit in fresh.values() for row in unit.named
    }
    # Statements on source code name what other files define.
    stated = {
        end
        for unit in fresh.values()
        for one in unit.said or ()
        for end in (one.source, one.target)
    }
    if snapshot is not None and "code" in snapshot.manifest.tables:
        for row in _read(state, "evidence", state.gone, "text_unit_id", pairs_from_table):
            stated.update(filter(None, (row.source_key, row.target_key)))
    _gather(state, named.union(stated, changed.keys, *changed.pairs))
    groups, entity_of = group(state.by_key, state.edits)
    reopened: set[str] = set()
    # What one unit holds may move names of others.
    while more := _reopened(state, entity_of) - reopened:
        reopened |= more
        for row in _read(state, "mentions", more, "text_unit_id", mentions_from_table):
            state.by_unit.setdefault(row.text_unit_id, []).append(row)
        held = {row.key for rows in state.by_unit.values() for row in rows}
        for row in _read(state, "evidence", more, "text_unit_id", pairs_from_table):
            held.update(filter(None, (row.source_key, row.target_key)))
        _gather(state, held)
        groups, entity_of = group(state.by_key, state.edits)
    # Relationships that were made by hand come and go with their ends.
    by_hand: set[Pair] = set(changed.pairs)
    if state.edits.pairs:
        by_hand.update(edit.keys for edit in concerned(state.edits, _moved(state, entity_of)))
    if by_hand:
        _gather(state, {key for pair in by_hand for key in pair})
        groups, entity_of = group(state.by_key, state.edits)
    merged = Merge(is_long=is_long)
    merged.changes["mentions"] = Change(
        gone=sorted(state.gone),
        rows=mentions_to_table([row for unit in fresh.values() for row in unit.named]),
    )
    degrees = _relationships(state, entity_of, reopened, by_hand, number, merged)
    _entities(state, groups, degrees, number, merged)
    return merged


def _read(
    state: _State, table: str, values: Collection[str], key: str, parse: Callable[[pa.Table], list]
) -> list:
    if state.snapshot is None or not values:
        return []
    left_out = state.snapshot.left_out
    rows = state.snapshot.by_key(table, sorted(values), key, TABLES[table].names)
    # A row that was left out would be made a second time.
    if state.snapshot.left_out > left_out:
        what = f"rows of {table} do not match their check values"
        raise Damaged(what, "Run graphrag-mcp doctor --repair first")
    return parse(rows)


def _gather(state: _State, keys: set[str]) -> None:
    """Read all mentions of `keys`, of the names that they may stand for, and of the names that
    stand for them."""
    arrived = lists_of((row.key, row) for unit in state.fresh.values() for row in unit.named)
    pending = keys - state.known
    while pending:
        state.known |= pending
        related: set[str] = set()
        for row in _read(state, "mentions", pending, "key", mentions_from_table):
            if row.text_unit_id not in state.gone:
                state.by_key[row.key].append(row)
                continue
            state.lost.add(row.key)
            # What it stood for loses it, and may be named nowhere else in that unit.
            if row.alias_of:
                related.add(row.alias_of)
        for key in sorted(pending):
            state.by_key[key].extend(arrived.get(key, ()))
            related.update(row.alias_of for row in state.by_key[key] if row.alias_of)
            related.update(state.edits.names.get(key, ()))
            if key in state.edits.alias:
                related.add(state.edits.alias[key])
        wanted = {entity_id(key) for key in pending} - state.old_entities.keys()
        for row in _read(state, "entities", wanted, "id", pa.Table.to_pylist):
            state.old_entities[row["id"]] = row
            related.update(row["names"])
            for item in row["evidence"]:
                state.texts[item["text_unit_id"], item["start"], item["end"]] = item["text"]
        pending = related - state.known


def _reopened(state: _State, entity_of: Mapping[str, str]) -> set[str]:
    """Old units whose pairs change although their text did not: they hold a name whose entity
    changed."""
    moved = _moved(state, entity_of)
    return {row.text_unit_id for key in moved for row in state.by_key[key]} - state.fresh.keys()


def _moved(state: _State, entity_of: Mapping[str, str]) -> set[str]:
    """Names that mean another entity than before, or one now and none before."""
    before = _before(state)
    return {key for key in state.known if before.get(key) != entity_of.get(key)}


def _before(state: _State) -> dict[str, str]:
    return {name: row["key"] for row in state.old_entities.values() for name in row["names"]}


def _relationships(
    state: _State,
    entity_of: Mapping[str, str],
    reopened: set[str],
    by_hand: Collection[Pair],
    number: dict[str, int],
    merged: Merge,
) -> Counter[str]:
    """Fill the changes of evidence and relationships; give how each entity's degree moves."""
    replaced = state.gone | reopened
    old = _read(state, "evidence", replaced, "text_unit_id", pairs_from_table)
    new = _evidence(state, entity_of, old, merged.capped)
    merged.changes["evidence"] = Change(
        gone=sorted(replaced), rows=mentions_to_table(new, "evidence")
    )

    by_pair: dict[str, list[Evidence]] = {
        row.relationship_id: [] for row in old if row.relationship_id
    }
    for row in new:
        if row.relationship_id:
            by_pair.setdefault(row.relationship_id, []).append(row)
    told = _by_hand(state, entity_of, by_hand, by_pair)
    if state.snapshot is not None:
        for row in _read(state, "evidence", by_pair.keys(), "relationship_id", pairs_from_table):
            if row.text_unit_id not in replaced:
                by_pair[row.relationship_id].append(row)
    previous = {
        row["id"]: row
        for row in _read(state, "relationships", by_pair.keys(), "id", pa.Table.to_pylist)
    }
    for row in previous.values():
        for item in row["evidence"]:
            state.texts[item["text_unit_id"], item["start"], item["end"]] = item["text"]
    return _write_pairs(state, entity_of, by_pair, previous, told, number, merged)


def _forms(
    state: _State, entity_of: Mapping[str, str], units: Set[str]
) -> Mapping[tuple[str, str], set[str]]:
    """How these text units call entities, by (entity id, text unit). What other texts call one may
    change while a pair is not read again."""
    forms: dict[tuple[str, str], set[str]] = defaultdict(set)
    for key, target in entity_of.items():
        for row in state.by_key[key]:
            if row.text_unit_id in units:
                forms[entity_id(target), row.text_unit_id].add(" ".join(row.form.split()))
    return forms


def _write_pairs(
    state: _State,
    entity_of: Mapping[str, str],
    by_pair: Mapping[str, Sequence[Evidence]],
    previous: Mapping[str, Row],
    told: Collection[str],
    number: dict[str, int],
    merged: Merge,
) -> Counter[str]:
    """The rows of relationships from all their evidence and from what edits say. `told`: whose
    description these change."""
    facts = facts_of(concerned(state.edits, state.known), entity_of) if state.edits.pairs else {}
    best = {pair: best_for_pair(rows) for pair, rows in by_pair.items() if rows}
    quotes = _quotes(state, chain.from_iterable(best.values()))
    quoted = {unit for places in best.values() for unit, _, _ in places}
    forms = _forms(state, entity_of, quoted)
    degrees: Counter[str] = Counter()
    gone, rows = list[str](), list[Row]()
    for pair, found in by_pair.items():
        before, fact = previous.get(pair), facts.get(pair)
        ends = (fact.source_id, fact.target_id) if fact else stated_direction(found)

        def told_of(unit: str, said: str, ends: tuple[str, str] = ends) -> bool:
            return relates(forms[ends[0], unit], forms[ends[1], unit], said)

        sentences = [quotes[place] for place in best.get(pair, ())]
        said = _chosen(sentences, told_of)
        kept = _stated(found, said, sentences) if fact is None else found or fact.created
        if not kept or (fact is not None and fact.hidden):
            if before is not None:
                gone.append(pair)
                degrees[before["source_id"]] -= 1
                degrees[before["target_id"]] -= 1
            continue
        row = _relationship(pair, ends, found, said)
        if (
            before is not None
            and state.is_edit
            and pair not in told
            and told_of_pair(found)  # what a model wrote is not asked for again
            and _same(row, before, "description", "n")
        ):
            row["description"] = before["description"]
        elif fact is None or "description" not in fact.fields:
            row["description"] = _described(said, pair, "relationship", told_of_pair(found), merged)
        row = row if fact is None else pair_row(row, fact)
        if before is None:
            row["n"] = number["r"]
            number["r"] += 1
            degrees[row["source_id"]] += 1
            degrees[row["target_id"]] += 1
        else:
            row["n"] = before["n"]
            if _same(row, before):
                continue
            gone.append(pair)
        rows.append(row)
    merged.changes["relationships"] = Change(gone=gone, rows=graph_to_table("relationships", rows))
    merged.relationships = len(rows) - len(gone)
    return degrees


def _stated(
    found: Sequence[Evidence], said: Iterable[tuple[Row, str]], sentences: Iterable[Quote]
) -> bool:
    """Is there a sentence on the two, or a statement of a model or of source code? What stands
    together in lists, tables and code alone has no relationship. A sentence that is not worth quoting,
    since it speaks of a newsletter, makes one without a description."""
    if any(shown for _, shown in said) or any(row.source_key for row in found):
        return True
    return any(
        shown or (len(row["text"]) <= SAYS_SOMETHING[1] and makes_a_statement(row["text"]))
        for row, shown, _ in sentences
    )


def _by_hand(
    state: _State,
    entity_of: Mapping[str, str],
    pairs: Collection[Pair],
    by_pair: dict[str, list[Evidence]],
) -> set[str]:
    """Add the relationships that edited pairs of names are, and were; give those whose description
    is concerned."""
    before, told = _before(state), set()
    for pair in pairs:
        for ends in (pair, *(tuple(of.get(key, "") for key in pair) for of in (before, entity_of))):
            if all(ends) and ends[0] != ends[1]:
                id = relationship_id(*sorted(map(entity_id, ends)))
                by_pair.setdefault(id, [])
                if pair in state.changed.told:
                    told.add(id)
    return told


def _evidence(
    state: _State, entity_of: Mapping[str, str], old: Sequence[Evidence], capped: set[str]
) -> list[Evidence]:
    """Rows of the new units, and of old ones whose pairs change: from what a model said, else from
    shared sentences. Units of which not all names or pairs are kept are added to `capped`."""
    new: list[Evidence] = []
    for unit in state.fresh.values():
        if unit.capped:
            capped.add(unit.id)
        if unit.said is None:
            new += pairs(unit.named, entity_of, capped)
        else:
            new += stated_pairs(unit.id, unit.said, entity_of)
    stated = lists_of((row.text_unit_id, row) for row in old)
    for id in sorted(state.by_unit):
        named = state.by_unit[id]
        if any(row.by for row in named):
            new += stated_pairs(id, as_said(stated[id]), entity_of)
        else:
            new += pairs(named, entity_of, capped)
    return new


def _relationship(
    pair: str, ends: tuple[str, str], found: Sequence[Evidence], quotes: Sequence[tuple[Row, str]]
) -> Row:
    words = Counter(word for row in found for word in row.keywords.split(", ") if word)
    return {
        "id": pair,
        "n": 0,
        "source_id": ends[0],
        "target_id": ends[1],
        "description": "",
        "keywords": ", ".join(sorted(words, key=lambda word: (-words[word], word))[:20]),
        "weight": round(sum(row.weight for row in found), 6),
        "text_unit_ids": sorted({row.text_unit_id for row in found}),
        "evidence": [quote for quote, _ in quotes],
    }


def _entities(
    state: _State,
    groups: Mapping[str, Sequence[Named]],
    degrees: Mapping[str, int],
    number: dict[str, int],
    merged: Merge,
) -> None:
    best = {key: _candidates(state, key, rows) for key, rows in groups.items()}
    quotes = _quotes(state, chain.from_iterable(best.values()))
    gone = [id for id, row in state.old_entities.items() if row["key"] not in groups]
    merged.entities = -len(gone)
    rows: list[Row] = []
    # e1 is the most named.
    for key, found in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        forms = {row.form for row in found}

        def introduces(_: str, said: str, forms: set[str] = forms) -> float:
            return introduction(forms, said)

        said = _chosen((quotes[place] for place in best[key]), introduces)
        row = _entity(key, found, said)
        before = state.old_entities.get(row["id"])
        if before is not None and _keeps_description(state, key, row, before):
            row["description"] = before["description"]
        elif not state.edits.log or "description" not in state.edits.words(key):
            told = told_of_entity(found)
            row["description"] = _described(said, row["id"], "entity", told, merged)
        if state.edits.log:
            row = entity_row(row, key, state.edits)
        row["degree"] = (before["degree"] if before else 0) + degrees.get(row["id"], 0)
        row["n"] = before["n"] if before else number["e"]
        if before is None:
            number["e"] += 1
            merged.entities += 1
        elif _same(row, before):
            continue
        else:
            gone.append(row["id"])
        rows.append(row)
    merged.changes["entities"] = Change(gone=gone, rows=graph_to_table("entities", rows))


def _candidates(state: _State, key: str, found: Sequence[Named]) -> list[Place]:
    """`best_for_entity`, without the sentences that were worth less than those that are quoted.

    Where mentions only came and no form of the name is new, they are still worth less. Else the
    texts of most old units would be read again in each merge, and their sentences valued."""
    best, before = best_for_entity(found), state.old_entities.get(entity_id(key))
    if before is None:
        return best
    names, stayed = before["names"], [row for row in found if row.text_unit_id not in state.fresh]
    quoted = {(one["text_unit_id"], one["start"], one["end"]) for one in before["evidence"]}
    only_more = (
        quoted.issubset(best)
        and state.lost.isdisjoint(names)
        and {row.key for row in stayed} == set(names)
        and {row.form for row in stayed} == {row.form for row in found}
    )
    return [one for one in best if one in quoted or one[0] in state.fresh] if only_more else best


def _keeps_description(state: _State, key: str, row: Row, before: Row) -> bool:
    """Is this an edit that leaves alone what was said of the entity, and who was meant?"""
    mentioned = {name for name in before["names"] if state.by_key.get(name)} | {key}
    return state.is_edit and key not in state.changed.told and mentioned == set(row["names"])


def _entity(key: str, found: Sequence[Named], quotes: Sequence[tuple[Row, str]]) -> Row:
    """The row of an entity as its mentions have it, without its description; no title where nothing
    mentions it."""
    if len(found) == 1:
        one = found[0]
        kind = UNTYPED if one.type in VAGUE else one.type
        title, aliases, units = composed(one.form), [], [one.text_unit_id]
    else:
        title, kind, aliases = called(key, found) if found else ("", "", [])
        units = sorted({row.text_unit_id for row in found})
    words = [term for form in (title, *aliases) for term in terms(form)]
    return {
        "id": entity_id(key),
        "n": 0,
        "key": key,
        "title": title,
        "type": kind,
        "description": "",
        "aliases": aliases,
        "names": sorted({key, *(row.key for row in found)}),
        "frequency": len(units),
        "degree": 0,
        "text_unit_ids": units,
        "evidence": [quote for quote, _ in quotes],
        "terms": " ".join(dict.fromkeys(words)),
    }


def _same(row: Row, before: Row, *but: str) -> bool:
    return all(before[name] == value for name, value in row.items() if name not in but)


def graph_to_table(name: str, rows: Sequence[Row]) -> pa.Table:
    """Rows in the columns of their schema; `check` is filled when they are written."""
    schema = TABLES[name]
    columns = [
        pa.array([row.get(column, 0) for row in rows], schema.field(column).type)
        for column in schema.names
    ]
    return pa.table(columns, schema=schema)


def _quotes(state: _State, places: Iterable[Place]) -> Mapping[Place, Quote]:
    """Each sentence as evidence is stored, and as it is shown. Many pairs share one sentence."""
    wanted = dict.fromkeys(place for place in places if place not in state.quotes)
    _fetch_texts(state, wanted)
    for place in wanted:
        unit, start, end = place
        fresh = state.fresh.get(unit)
        text = fresh.text[start:end] if fresh else state.texts[place]
        known = fresh.quotations.get((start, end)) if fresh else None
        row = {"text_unit_id": unit, "start": start, "end": end, "text": text}
        state.quotes[place] = (row, *(known or quotation(text)))
    return state.quotes


def _chosen(quotes: Iterable[Quote], value: Callable[[str, str], float]) -> list[tuple[Row, str]]:
    """The SENTENCES best quotations, without what is shown of those that are worth too little.
    `value` of a text unit's sentence."""
    worth = [
        (alone * value(quote["text_unit_id"], said), quote, said) for quote, said, alone in quotes
    ]
    worth.sort(key=lambda one: -one[0])
    return [(quote, said if rate > QUOTABLE else "") for rate, quote, said in worth[:SENTENCES]]


def told_of_entity(found: Sequence[Named]) -> list[str]:
    """What models said of a name, each once, from where it is named most. No id decides: a rename
    would cost calls."""
    said = sorted(
        (row for row in found if row.description),
        key=lambda row: (-row.count, row.description, row.type),
    )
    return list(dict.fromkeys(row.description for row in said))


def told_of_pair(found: Sequence[Evidence]) -> list[str]:
    """What models said of a pair, each once, the strongest first."""
    said = sorted(
        (row for row in found if row.description), key=lambda row: (-row.weight, row.description)
    )
    return list(dict.fromkeys(row.description for row in said))


def _described(
    quotes: Sequence[tuple[Row, str]], id: str, kind: str, told: list[str], merged: Merge
) -> str:
    """What models said, joined, and remembered where that is long; else the evidence sentences,
    each once."""
    if told:
        if merged.is_long is not None and merged.is_long(told):
            merged.long[id] = kind
        # Lines are in no model's description here, only in imported ones, which stay as they came.
        return told[0] if len(told) == 1 and "\n" in told[0] else describe.joined(told)
    return " ".join(dict.fromkeys(said for _, said in quotes if said))


def _fetch_texts(state: _State, places: Iterable[Place]) -> None:
    """Sentences that neither a new unit nor an old row can supply: read them from their text units."""
    missing = [p for p in places if p[0] not in state.fresh and p not in state.texts]
    if not missing or state.snapshot is None:
        return
    ids = sorted({unit for unit, _, _ in missing})
    units = state.snapshot.served("text_units", ids, ["id", "text"])
    texts = {row["id"]: masked(row["text"]) for row in units}
    for unit, start, end in missing:
        state.texts[unit, start, end] = texts[unit][start:end]
