"""Mentions -> entities, evidence -> relationships: pure functions, and their rows as tables.

Which names mean the same, and which deserve an entity, depends on the mentions of those names alone,
never on totals of the corpus."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import pyarrow as pa

from graphrag_mcp.index.extract import SUMMARY, Named, StatedRelation
from graphrag_mcp.names.lexicon import ordinary
from graphrag_mcp.plugins import PLUGGED
from graphrag_mcp.store.edit_log import Overlay
from graphrag_mcp.store.schema import TABLES
from graphrag_mcp.store.tables import rows_of
from graphrag_mcp.text.terms import composed, entity_id, relationship_id

Row = dict[str, Any]
UNTYPED = ""  # nothing tells what the name is
EVIDENT = 0.2  # share of an entity's mentions that must say its type: "in Labour" is said once
VAGUE = ("other", "unknown")  # what mentions say for that
# Share of the texts which name a family name's bearer in full that must name the same person.
BEARER = 0.9
# A family name is its bearer's where one of so many text units with it holds the full name: Malaysia is not Peninsular
# Malaysia for one of seven. A given name, or the first word of another name, needs more than half: Pizza is not Pizza
# Hut. Of 41 names that counts of mentions joined on 2,884 passages of an encyclopaedia about 33 were joined wrongly.
SURNAME = 3


# ---- rows and tables


def graph_to_table(name: str, rows: Sequence[Row]) -> pa.Table:
    """Rows in the columns of their schema; `check` is filled when they are written."""
    schema = TABLES[name]
    columns = [pa.array([row.get(column, 0) for row in rows], schema.field(column).type) for column in schema.names]
    return pa.table(columns, schema=schema)


def mentions_to_table(rows: Sequence[object], table: str = "mentions") -> pa.Table:
    """Rows whose attributes are called like the columns of `table`."""
    schema = TABLES[table]
    columns = [pa.array(list(map(attrgetter(column.name), rows)), column.type) for column in schema]
    return pa.table(columns, schema=schema)


def mentions_from_table(table: pa.Table) -> list[Named]:
    return [Named(*values) for values in rows_of(table.select(TABLES["mentions"].names))]


def pairs_from_table(table: pa.Table) -> list[Evidence]:
    return [Evidence(*values) for values in rows_of(table.select(TABLES["evidence"].names))]


# ---- entities


def called(key: str, found: Sequence[Named]) -> tuple[str, str, list[str]]:
    """Title, type and aliases by majority, their letters composed; under its own name where it has
    one, and of what a document of a plug-in defines the type that it has there, however often prose uses
    its name as a word. A type that most summaries give it is its own, whatever rules say."""
    forms: Counter[str] = Counter()
    forms_of_key: Counter[str] = Counter()
    types: Counter[str] = Counter()
    mentions = sum(row.count for row in found)
    for row in found:
        form = " ".join(composed(row.form).split())  # a name that goes on in the next line
        forms[form] += row.count
        if row.key == key:
            forms_of_key[form] += row.count
        if row.type not in VAGUE:
            types[row.type] += row.count
    counted = forms_of_key or forms
    title = min(counted, key=lambda form: (" " in form and form.isupper(), -counted[form], form))
    # a person by the name that the texts have, mostly without the one in the middle
    same = [form for form in forms if _ends(form) == _ends(title) and forms[form] > forms[title]]
    title = max(same, key=lambda form: (forms[form], form), default=title)
    aliases = sorted((form for form in forms if form != title), key=lambda form: (-forms[form], form))[:10]
    if defined := next((row.type for row in found if row.key == key and row.by in PLUGGED), ""):
        return title, defined, aliases
    told = Counter(row.type for row in found if row.by == SUMMARY and row.type not in VAGUE)
    for kind, texts in told.items():
        if 2 * texts > told.total():
            return title, kind, aliases
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
        parts = {name for name in targets if f" {key.rpartition(' ')[2]} " in f" {name} "}
        canonical_parts = {name for name in parts if canonical.get(name) == name}
        usable = [name for name in targets if by_key.get(name) and (name in canonical_parts or name not in definitions)]
        if usable:
            best = min(usable, key=lambda target: (-targets[target], target))
            # with the most frequent name in the middle, and without any
            like = [name for name in targets if _ends(name) == _ends(best) and name.count(" ") > 1]
            same = {" ".join(_ends(best)), best, *sorted(like, key=lambda o: (-targets[o], o))[:1]}
            same |= {name for name in targets if name.endswith(f" {best}")}  # PM Tony Blair
            count = sum(targets[name] for name in same)
            borne = count >= BEARER * sum(targets.values())
            defining, texts = sum(row.alias_of in same for row in by_key[key]), len(by_key[key])
            given = best.startswith(f"{key} ")
            enough = 2 * defining > texts if given else SURNAME * defining >= texts
            # HM may be the initials of two people, or elsewhere the name of a thing
            people = any(row.type == "person" for row in (*by_key[key], *by_key[best]))
            if (borne and enough) or not (people or best in parts):
                canonical[key] = best
    return canonical


def _ends(name: str) -> tuple[str, str]:
    return name.partition(" ")[0], name.rpartition(" ")[2]


SHARE = 0.25  # of a name's mentions that must be certain: "Sounds" is a name once


def is_entity(rows: Sequence[Named]) -> bool:
    """Do the texts show often enough that this is a name? What a plug-in, a model or a summary names is
    an entity always.

    `rows`: all mentions under this very name. Those under its other names are left out, since an
    update may not have read them yet. A name of everyday words (White House, Sounds) must be shown
    twice or have a type; one that stands once must have a type or be a full name with a word that is
    rarer."""
    if not rows or any(row.by for row in rows):
        return bool(rows)
    sure, every = sum(row.count for row in rows if row.strong), sum(row.count for row in rows)
    if not sure or sure < SHARE * every:
        return False
    if any(row.type not in VAGUE for row in rows):
        return True
    usual = [ordinary(word) for word in rows[0].key.split()]
    if all(usual):
        return sure > 1
    return every > 1 or len(usual) > 1


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
        if edits.made(key) or (rows and (edits.names.get(key) or edits.words(key) or is_entity(by_key.get(key, ()))))
    }
    return groups, {key: target for key, target in canonical.items() if target in groups}


# ---- relationships


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


# A sentence of several names says little about a far pair, so each name is linked to the next three.
# Of 30 pairs that only a reach of six gave, the sentence was about 6.
REACH = 3


def pairs(named: Sequence[Named], entity_of: Mapping[str, str]) -> list[Evidence]:
    """Evidence rows of one unit: two names that share a sentence, weight 1 for each sentence.

    entity_of: name -> name of its entity, for names that have one."""
    by_sentence: dict[tuple[int, int], dict[str, int]] = {}
    unit = ""
    for name in named:
        target = entity_of.get(name.key)
        if target is None:
            continue
        unit = name.text_unit_id
        for start, end in pairwise_spans(name.sentences):
            members = by_sentence.setdefault((start, end), {})
            members[target] = min(members.get(target, name.start), name.start)
    found: dict[tuple[str, str], Evidence] = {}
    best: dict[tuple[str, str], tuple[int, int, int]] = {}
    shared = ((span, members) for span, members in by_sentence.items() if len(members) > 1)
    for (start, end), members in sorted(shared):
        names = sorted(members, key=lambda key: (members[key], key))
        order = [(entity_id(name), set(name.split())) for name in names]
        for i, (id, words) in enumerate(order):
            for distance, (other, others) in enumerate(order[i + 1 : i + 1 + REACH]):
                # Where one name holds all words of the other ("Joe Sepi is away, ask Joe"; Sachiko
                # Kokubu, Kokubu Sachiko) they are mostly one thing, of which the sentence does not
                # tell how it relates to itself.
                if words <= others or others <= words:
                    continue
                first, second = sorted((id, other))
                # Fewer names between them, then fewer names beside them: more about the pair.
                rank = (distance, len(order), start)
                known = found.get((first, second))
                if known is None:
                    ids = relationship_id(first, second), first, second
                    found[first, second] = Evidence(*ids, unit, 1.0, start, end)
                    best[first, second] = rank
                    continue
                known.weight += 1.0
                if rank < best[first, second]:
                    known.start, known.end, best[first, second] = start, end, rank
    return list(found.values())


def pairwise_spans(flat: Sequence[int]) -> Iterable[tuple[int, int]]:
    return zip(flat[::2], flat[1::2], strict=True)


def stated_pairs(unit: str, statements: Iterable[StatedRelation], entity_of: Mapping[str, str]) -> list[Evidence]:
    """Evidence rows of a unit that a model read. A statement about one entity and itself keeps its
    row, without ids: when its two names part again, it counts again."""
    rows = []
    for statement in statements:
        ends = entity_of.get(statement.source, ""), entity_of.get(statement.target, "")
        first, second = sorted(entity_id(key) for key in ends)
        texts = (statement.source, statement.target, statement.description, statement.keywords)
        apart = all(ends) and ends[0] != ends[1]
        ids = (relationship_id(first, second), first, second) if apart else ("", "", "")
        rows.append(Evidence(*ids, unit, statement.weight, statement.start, statement.end, *texts))
    return rows


def stated_direction(found: Sequence[Evidence]) -> tuple[str, str]:
    """(source, target) of a pair as most of its statements have it, by weight; in the order of ids
    where no model stated one or both directions weigh the same."""
    first, second = (found[0].source_id, found[0].target_id) if found else ("", "")
    forth = math.fsum(evidence.weight * _way(evidence) for evidence in found)  # exact in any order
    return (first, second) if forth >= 0 else (second, first)


def _way(evidence: Evidence) -> int:
    """1 for a statement in the order of ids, -1 for the other, 0 where other names stand for both."""
    if not evidence.source_key:
        return 0
    ends = entity_id(evidence.source_key), entity_id(evidence.target_key)
    return (ends[0] == evidence.source_id or ends[1] == evidence.target_id) - (
        ends[0] == evidence.target_id or ends[1] == evidence.source_id
    )


def as_said(rows: Iterable[Evidence]) -> list[StatedRelation]:
    return [StatedRelation(*_STATED(row)) for row in rows if row.source_key]


_STATED = attrgetter(*"source_key target_key description keywords weight start end".split())


# Of so many sentences the best are kept with an entity or a relationship: more would only repeat.
SENTENCES, READ = 3, 6


def best_for_entity(rows: Sequence[Named]) -> list[tuple[str, int, int]]:
    """(text unit, start, end) of the sentences that may say most about a name: the first of each text
    unit, from where it stands most often; then the second, and so on."""
    ranked = [
        (place, -row.count, row.text_unit_id, row.key, (row.text_unit_id, start, end))
        for row in rows
        for place, (start, end) in enumerate(list(pairwise_spans(row.sentences))[:READ])
    ]
    return list(dict.fromkeys(row[-1] for row in sorted(ranked)))[:READ]


def best_for_pair(rows: Sequence[Evidence]) -> list[tuple[str, int, int]]:
    """(text unit, start, end) of a pair's strongest sentences."""
    if len(rows) == 1:  # as of most pairs
        return [(rows[0].text_unit_id, rows[0].start, rows[0].end)]
    ranked = sorted(rows, key=lambda row: (-row.weight, row.text_unit_id, row.start))
    return list(dict.fromkeys((row.text_unit_id, row.start, row.end) for row in ranked))[:READ]


def told_of_entity(found: Sequence[Named]) -> list[str]:
    """What models said of a name, each once, from where it is named most. No id decides: a rename
    would cost calls."""
    described = sorted(
        (row for row in found if row.description), key=lambda row: (-row.count, row.description, row.type)
    )
    return list(dict.fromkeys(row.description for row in described))


def told_of_pair(found: Sequence[Evidence]) -> list[str]:
    """What models said of a pair, each once, the strongest first."""
    described = sorted((row for row in found if row.description), key=lambda row: (-row.weight, row.description))
    return list(dict.fromkeys(row.description for row in described))
