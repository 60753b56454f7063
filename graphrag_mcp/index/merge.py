"""The merge: adds new text units to entities and relationships, subtracts those that are gone, and
applies edits. The only module with a state: what it has read of the generation before.

Every touched entity and pair is recomputed from all its remaining mentions and evidence, so the
result of any history equals a fresh index; untouched rows are not read. A name that becomes an
entity (or stops being one, or is found to be an alias) changes the pairs of every unit that holds
it, also of units that were not edited; the loop of `merge` finds those units."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain

import pyarrow as pa

from graphrag_mcp.errors import Damaged
from graphrag_mcp.index.extract import Named, UnitNames
from graphrag_mcp.index.graph import (
    SENTENCES,
    UNTYPED,
    VAGUE,
    Evidence,
    Row,
    as_said,
    best_for_entity,
    best_for_pair,
    called,
    graph_to_table,
    group,
    mentions_from_table,
    mentions_to_table,
    pairs,
    pairs_from_table,
    stated_direction,
    stated_pairs,
    told_of_entity,
    told_of_pair,
)
from graphrag_mcp.packing.budget import shorten
from graphrag_mcp.plugins import PLUGGED
from graphrag_mcp.store.edit_log import Overlay, Pair, PairFact, concerned
from graphrag_mcp.store.edit_log import facts as facts_of
from graphrag_mcp.store.schema import TABLES
from graphrag_mcp.store.tables import Change, Snapshot
from graphrag_mcp.text.prose import readable
from graphrag_mcp.text.quote import LEANS, length_factor, one_line, says
from graphrag_mcp.text.terms import composed, entity_id, lists_of, relationship_id, terms
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.trust.fencing import masked

DESCRIBED = 1200  # tokens of a description that is joined
Place = tuple[str, int, int]  # text unit, start, end


def entity_row(row: Row, key: str, edits: Overlay) -> Row:
    """The row with the names, title, type and description that were given to it."""
    names = edits.names.get(key, ())
    words = edits.words(key)
    if not names and not words and row["title"]:
        return row
    title = words.get("title") or row["title"] or edits.forms.get(key, key)
    # Names that were given come after those of the texts, however many: they must all be found.
    names_by_hand = [edits.forms.get(name, name) for name in (*names, *([key] if words.get("title") else []))]
    shown = dict.fromkeys([*filter(None, [row["title"]]), *row["aliases"], *names_by_hand])
    shown.pop(title, None)
    row["title"], row["aliases"] = title, list(shown)
    row["type"] = words.get("type") or row["type"] or UNTYPED
    row["description"] = words.get("description") or row["description"]
    row["names"] = sorted({*row["names"], *names})
    spoken = [term for form in (title, *row["aliases"]) for term in terms(form)]
    row["terms"] = " ".join(dict.fromkeys(spoken))
    return row


def pair_row(row: Row, fact: PairFact) -> Row:
    """The row with the description, keywords and weight that were given to it."""
    row |= {name: value for name, value in fact.fields.items() if name != "weight"}
    row["weight"] = fact.weight(row["weight"])
    return row


@dataclass
class Merge:
    """What to write, and how the counters move."""

    changes: dict[str, Change] = field(default_factory=dict)
    entities: int = 0  # more or fewer than before
    relationships: int = 0
    # text units of which not all names are kept
    capped: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Changed:
    """Names and pairs of names about which the edits say something else than the rows of the
    snapshot follow."""

    keys: Collection[str] = ()
    pairs: Collection[Pair] = ()


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
    # text of a sentence or of another place by (unit, start, end)
    texts: dict[Place, str] = field(default_factory=dict)
    sentences: dict[Place, Row] = field(default_factory=dict)  # rows of evidence


def merge(
    snapshot: Snapshot | None,
    gone_units: Collection[str],
    fresh: Mapping[str, UnitNames],
    number: dict[str, int],
    edits: Overlay | None = None,
    changed: Changed | None = None,
) -> Merge:
    """`number` holds the next free alias number of "e" and "r" and is advanced; `changed` is
    what `edits` say differently from those that the snapshot's rows follow."""
    changed = changed or Changed()
    state = _State(snapshot, set(gone_units), fresh, edits or Overlay(), changed)
    gone_rows = _read(state, "mentions", state.gone, "text_unit_id", mentions_from_table)
    named = {row.key for row in gone_rows} | {row.key for unit in fresh.values() for row in unit.named}
    # Statements that a plug-in links name what other documents define.
    stated = {
        end for unit in fresh.values() for statement in unit.said or () for end in (statement.source, statement.target)
    }
    if snapshot is not None and not PLUGGED.keys().isdisjoint(snapshot.manifest.tables):
        for row in _read(state, "evidence", state.gone, "text_unit_id", pairs_from_table):
            stated.update(filter(None, (row.source_key, row.target_key)))
    keys = named.union(stated, changed.keys, *changed.pairs)
    reopened, by_hand = set[str](), set(changed.pairs)
    while True:  # what one unit holds may move names of others
        _gather(state, keys)
        groups, entity_of = group(state.by_key, state.edits)
        moved = _moved(state, entity_of)
        # Old units whose pairs change although their text did not, and relationships that were made by
        # hand, which come and go with their ends.
        units = {row.text_unit_id for key in moved for row in state.by_key[key]}
        units -= fresh.keys() | reopened
        edited = concerned(state.edits, moved) if state.edits.pairs else ()
        pairs_by_hand = {(edit.keys[0], edit.keys[1]) for edit in edited} - by_hand
        if not units and not pairs_by_hand:
            break
        reopened |= units
        by_hand |= pairs_by_hand
        keys = set(chain.from_iterable(pairs_by_hand))
        for row in _read(state, "mentions", units, "text_unit_id", mentions_from_table):
            state.by_unit.setdefault(row.text_unit_id, []).append(row)
            keys.add(row.key)
        for row in _read(state, "evidence", units, "text_unit_id", pairs_from_table):
            keys.update(filter(None, (row.source_key, row.target_key)))
    merged = Merge()
    merged.changes["mentions"] = Change(
        gone=sorted(state.gone), rows=mentions_to_table([row for unit in fresh.values() for row in unit.named])
    )
    degrees = _relationships(state, entity_of, reopened, by_hand, number, merged)
    _entities(state, groups, degrees, number, merged)
    return merged


def _read(state: _State, table: str, values: Collection[str], key: str, parse: Callable[[pa.Table], list]) -> list:
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
        ids = {entity_id(key) for key in pending} - state.old_entities.keys()
        for row in _read(state, "entities", ids, "id", pa.Table.to_pylist):
            state.old_entities[row["id"]] = row
            related.update(row["names"])
            for item in row["evidence"]:
                state.texts[item["text_unit_id"], item["start"], item["end"]] = item["text"]
        pending = related - state.known


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
    merged.changes["evidence"] = Change(gone=sorted(replaced), rows=mentions_to_table(new, "evidence"))

    by_pair: dict[str, list[Evidence]] = {row.relationship_id: [] for row in old if row.relationship_id}
    for row in new:
        if row.relationship_id:
            by_pair.setdefault(row.relationship_id, []).append(row)
    _by_hand(state, entity_of, by_hand, by_pair)
    if state.snapshot is not None:
        for row in _read(state, "evidence", by_pair.keys(), "relationship_id", pairs_from_table):
            if row.text_unit_id not in replaced:
                by_pair[row.relationship_id].append(row)
    previous = {row["id"]: row for row in _read(state, "relationships", by_pair.keys(), "id", pa.Table.to_pylist)}
    for row in previous.values():
        for item in row["evidence"]:
            state.texts[item["text_unit_id"], item["start"], item["end"]] = item["text"]
    return _write_pairs(state, entity_of, by_pair, previous, number, merged)


def _write_pairs(
    state: _State,
    entity_of: Mapping[str, str],
    by_pair: Mapping[str, Sequence[Evidence]],
    previous: Mapping[str, Row],
    number: dict[str, int],
    merged: Merge,
) -> Counter[str]:
    """The rows of relationships from all their evidence and from what edits say."""
    facts = facts_of(concerned(state.edits, state.known), entity_of) if state.edits.pairs else {}
    best = {pair: best_for_pair(rows) for pair, rows in by_pair.items() if rows}
    sentences = _sentences(state, chain.from_iterable(best.values()))
    degrees: Counter[str] = Counter()
    removed, rows = list[str](), list[Row]()
    for pair, found in by_pair.items():
        before, fact = previous.get(pair), facts.get(pair)
        ends = (fact.source_id, fact.target_id) if fact else stated_direction(found)

        kept = found if fact is None else found or fact.created
        if not kept or (fact is not None and fact.hidden):
            if before is not None:
                removed.append(pair)
                degrees[before["source_id"]] -= 1
                degrees[before["target_id"]] -= 1
            continue
        evidence = _best(sentences[place] for place in best.get(pair, ()))
        row = _relationship(pair, ends, found, evidence)
        if fact is None or "description" not in fact.fields:
            row["description"] = _described(evidence, told_of_pair(found))
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
            removed.append(pair)
        rows.append(row)
    merged.changes["relationships"] = Change(gone=removed, rows=graph_to_table("relationships", rows))
    merged.relationships = len(rows) - len(removed)
    return degrees


def _by_hand(
    state: _State, entity_of: Mapping[str, str], pairs: Collection[Pair], by_pair: dict[str, list[Evidence]]
) -> None:
    """Add the relationships that edited pairs of names are, and were."""
    before = _before(state)
    for pair in pairs:
        for ends in (pair, *(tuple(of.get(key, "") for key in pair) for of in (before, entity_of))):
            if all(ends) and ends[0] != ends[1]:
                by_pair.setdefault(relationship_id(*sorted(map(entity_id, ends))), [])


def _evidence(state: _State, entity_of: Mapping[str, str], old: Sequence[Evidence], capped: set[str]) -> list[Evidence]:
    """Rows of the new units, and of old ones whose pairs change: from what a model said, else from
    shared sentences. Units of which not all names are kept are added to `capped`."""
    new: list[Evidence] = []
    for unit in state.fresh.values():
        if unit.capped:
            capped.add(unit.id)
        if unit.said is None:
            new += pairs(unit.named, entity_of)
        else:
            new += stated_pairs(unit.id, unit.said, entity_of)
    stated = lists_of((row.text_unit_id, row) for row in old)
    for id in sorted(state.by_unit):
        named = state.by_unit[id]
        if any(row.stated for row in named):
            new += stated_pairs(id, as_said(stated[id]), entity_of)
        else:
            new += pairs(named, entity_of)
    return new


def _relationship(pair: str, ends: tuple[str, str], found: Sequence[Evidence], sentences: Sequence[Row]) -> Row:
    said = (row.keywords.split(", ") for row in found if row.keywords)
    words = Counter(filter(None, chain.from_iterable(said)))
    return {
        "id": pair,
        "n": 0,
        "source_id": ends[0],
        "target_id": ends[1],
        "description": "",
        "keywords": ", ".join(sorted(words, key=lambda word: (-words[word], word))[:20]),
        "weight": round(sum(row.weight for row in found), 6),
        "text_unit_ids": sorted({row.text_unit_id for row in found}),
        "evidence": list(sentences),
    }


def _entities(
    state: _State,
    groups: Mapping[str, Sequence[Named]],
    degrees: Mapping[str, int],
    number: dict[str, int],
    merged: Merge,
) -> None:
    best = {key: _candidates(state, key, rows) for key, rows in groups.items()}
    sentences = _sentences(state, chain.from_iterable(best.values()))
    removed = [id for id, row in state.old_entities.items() if row["key"] not in groups]
    merged.entities = -len(removed)
    rows: list[Row] = []
    # e1 is the most named.
    for key, found in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        forms = {row.form for row in found}
        evidence = _best((sentences[place] for place in best[key]), forms)
        row = _entity(key, found, evidence)
        before = state.old_entities.get(row["id"])
        if not state.edits.log or "description" not in state.edits.words(key):
            row["description"] = _described(evidence, told_of_entity(found))
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
            removed.append(row["id"])
        rows.append(row)
    merged.changes["entities"] = Change(gone=removed, rows=graph_to_table("entities", rows))


def _candidates(state: _State, key: str, found: Sequence[Named]) -> list[Place]:
    """`best_for_entity`, without the sentences that were worth less than those that are quoted.

    Where mentions only came and no form of the name is new, they are still worth less. Else the
    texts of most old units would be read again in each merge, and their sentences valued."""
    best, before = best_for_entity(found), state.old_entities.get(entity_id(key))
    if before is None:
        return best
    names, stayed = before["names"], [row for row in found if row.text_unit_id not in state.fresh]
    quoted = {(evidence["text_unit_id"], evidence["start"], evidence["end"]) for evidence in before["evidence"]}
    only_more = (
        quoted.issubset(best)
        and state.lost.isdisjoint(names)
        and {row.key for row in stayed} == set(names)
        and {row.form for row in stayed} == {row.form for row in found}
    )
    return [place for place in best if place in quoted or place[0] in state.fresh] if only_more else best


def _entity(key: str, found: Sequence[Named], sentences: Sequence[Row]) -> Row:
    """The row of an entity as its mentions have it, without its description; no title where nothing
    mentions it."""
    if len(found) == 1:
        mention = found[0]
        kind = UNTYPED if mention.type in VAGUE else mention.type
        title = " ".join(composed(mention.form).split())  # it may go on in the next line
        aliases, units = [], [mention.text_unit_id]
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
        "evidence": list(sentences),
        "terms": " ".join(dict.fromkeys(words)),
    }


def _same(row: Row, before: Row) -> bool:
    return all(before[name] == value for name, value in row.items())


def _sentences(state: _State, places: Iterable[Place]) -> Mapping[Place, Row]:
    """Each sentence as evidence is stored. Many pairs share one sentence."""
    missing = dict.fromkeys(place for place in places if place not in state.sentences)
    _fetch_texts(state, missing)
    for place in missing:
        unit, start, end = place
        fresh = state.fresh.get(unit)
        text = fresh.text[start:end] if fresh else state.texts[place]
        state.sentences[place] = {"text_unit_id": unit, "start": start, "end": end, "text": text}
    return state.sentences


def _best(found: Iterable[Row], names: Collection[str] = ()) -> list[Row]:
    """The SENTENCES best of these: those that say something, of them those that begin with one of the
    names, of them those that are not long."""

    def worth(row: Row) -> tuple[float, bool, float]:
        text = str(row["text"])
        return says(text), text.startswith(tuple(names)), length_factor(text)

    rows = list(found)
    return sorted(rows, key=worth, reverse=True)[:SENTENCES] if len(rows) > 1 else rows


def _described(sentences: Iterable[Row], fragments: Sequence[str]) -> str:
    """What models said, joined; else the evidence sentences, each once."""
    # Lines are in no model's description here, only in imported ones, which stay as they came.
    if len(fragments) == 1 and "\n" in fragments[0]:
        return fragments[0]
    if fragments:
        return joined(fragments)
    texts = [str(row["text"]) for row in sentences]
    return " ".join(dict.fromkeys(_shown(text) for text in texts if says(text) >= LEANS))


def joined(fragments: Iterable[str], limit: int = DESCRIBED) -> str:
    """Each fragment once, one a line, in their order; what is over `limit` tokens is cut. Equal but for
    case and the full stop is the same."""
    distinct: dict[str, str] = {}
    for fragment in fragments:
        line = " ".join(fragment.split())
        if line:
            distinct.setdefault(line.casefold().rstrip(".。"), line)
    text = "\n".join(distinct.values())
    if len(text.encode()) <= limit or count_tokens(text) <= limit:  # a token is a byte or more
        return text
    return shorten(text, limit)


@lru_cache(maxsize=1 << 14)
def _shown(sentence: str) -> str:
    """The sentence as a description holds it. Many names and pairs share one."""
    return one_line(readable(sentence))


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
