"""Generations: which are kept, what changed since one, rollback, and digests.

Going back writes no table: the new manifest names the versions that the old one named. A digest
hashes rows sorted by what they mean (uri, span, key), so it knows no time, alias, table layout,
absolute path or history."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_mcp.errors import BadInput, GraphRAGError, NotFound
from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.query import entities, note_sources, timeline, times
from graphrag_mcp.store import manifest as manifests
from graphrag_mcp.store import segments as segment_store
from graphrag_mcp.store.manifest import Manifest
from graphrag_mcp.store.tables import Snapshot, rows_of, values_of
from graphrag_mcp.text import dates
from graphrag_mcp.text.terms import content_id, counted

DIGITS = 9  # sums of the same weights in another order differ behind this
TEXTS = 500  # documents or reports read at once
ROWS = 4_096  # rows of light columns written out at once


def digest(snapshot: Snapshot) -> dict[str, str]:
    """`content`: documents, text units, passages, mentions, entities, relationships and their
    evidence: the same for the same input whatever the history. `communities`: the hierarchy and
    its reports. Both 64 hex digits.

    What a model said counts, not who said it; vectors do not count, they follow from the texts and
    the model."""
    entities = snapshot.rows("entities", columns=["id", "key"])
    return {"content": _content(snapshot, entities), "communities": _communities(snapshot, entities)}


def _content(snapshot: Snapshot, entities: pa.Table) -> str:
    hashed = hashlib.sha256()
    documents = snapshot.rows("documents", columns=["id", "uri"])
    columns = ["uri", "title", "text", "metadata"]
    for ids in _chunks(values_of(documents.sort_by("uri")["id"])):
        _feed(hashed, "document", snapshot.by_key("documents", ids, columns=columns))

    units = snapshot.rows("text_units", columns=["id", "document_id", "char_start", "char_end"])
    uris = _looked_up(documents, "uri", units["document_id"])
    places = units.select(["char_start", "char_end", "id"]).rename_columns(["from", "to", "id"])
    places = places.append_column("uri", uris)
    _feed(hashed, "unit", _sorted(places.select(["uri", "from", "to"])))
    passages = snapshot.rows("passages", columns=["uri", "char_start", "char_end", "part", "parts"])
    _feed(hashed, "passage", _sorted(passages))

    entity_columns = ["key", "form", "type", "count", "sentences", "description", "text_unit_id"]
    mentions = _placed(snapshot.rows("mentions", columns=entity_columns), places)
    order = ["key", "uri", "from", "to", "type", "form"]
    _feed(hashed, "mention", _sorted(mentions, order))
    rows = snapshot.rows("entities", columns=["key", "title", "type", "description", "aliases"])
    aliases = [sorted(names) for names in values_of(rows["aliases"])]
    rows = rows.set_column(4, "aliases", pa.array(aliases, pa.list_(pa.string())))
    _feed(hashed, "entity", _sorted(rows, ["key"]))

    columns = ["source_id", "target_id", "weight", "description", "keywords"]
    rows = snapshot.rows("relationships", columns=columns)
    _feed(hashed, "relationship", _sorted(_with_keys(rows, entities), ["source", "target"]))
    pair_columns = ["start", "end", "source_key", "target_key", "description", "keywords"]
    columns = ["source_id", "target_id", "text_unit_id", "weight", *pair_columns]
    rows = snapshot.rows("evidence", columns=columns)
    order = ["source", "target", "uri", "from", "to", *pair_columns]
    _feed(hashed, "evidence", _sorted(_with_keys(_placed(rows, places), entities), order))

    columns = ["document_id", "place", "char_start", "char_end", "text", "labels", "names", "types"]
    rows = snapshot.rows("summaries", columns=columns)
    if rows.num_rows:
        uris = _looked_up(documents, "uri", rows["document_id"])
        rows = rows.set_column(0, "uri", uris)
        _feed(hashed, "summary", rows.sort_by([("uri", "ascending"), ("place", "ascending")]))
    columns = ["document_id", "kind", "target", "part", "line", "char_start", "char_end"]
    rows = snapshot.rows("links", columns=columns)
    if rows.num_rows:
        uris = _looked_up(documents, "uri", rows["document_id"])
        _feed(hashed, "link", _sorted(rows.set_column(0, "uri", uris)))
    return hashed.hexdigest()


def _communities(snapshot: Snapshot, entities: pa.Table) -> str:
    hashed = hashlib.sha256()
    key_of = dict(rows_of(entities))
    rows = snapshot.rows("communities", columns=["id", "level", "parent", "entity_ids"]).to_pylist()
    members = {row["id"]: sorted(key_of.get(id, id) for id in row["entity_ids"]) for row in rows}
    units: dict[str, list[str]] = defaultdict(list)
    entity_ids = {id for row in rows for id in row["entity_ids"]}
    for id, path in sorted(rows_of(snapshot.rows("memberships", columns=["entity_id", "path"]))):
        for community in path if id not in entity_ids else ():
            units[community].append(id)
    # Members alone do not tell a community from its only child; the level does.
    levels = {row["id"]: f"{row['level']:03d}" for row in rows}
    hashes = {id: content_id(*(members[id] or units[id])) for id in levels}
    name = {id: f"{level} {hashes[id]}" for id, level in levels.items()}
    for row in sorted(rows, key=lambda row: name[row["id"]]):
        id, parent = row["id"], name.get(row["parent"], row["parent"])
        _add(hashed, "community", [(row["level"], members[id], parent)])
        if units[id]:  # an earlier release wrote none
            _add(hashed, "units", [(name[id], *units[id])])
    reports = snapshot.column("reports", "id")
    columns = ["id", "title", "summary", "full_content", "rank"]
    for ids in _chunks(sorted(reports, key=lambda id: (name.get(id, ""), id))):
        for row in snapshot.by_key("reports", ids, columns=columns).to_pylist():
            content = (row["title"], row["summary"], row["full_content"], round(row["rank"], DIGITS))
            _add(hashed, "report", [(name.get(row["id"], row["id"]), *content)])
    return hashed.hexdigest()


def _placed(rows: pa.Table, places: pa.Table) -> pa.Table:
    """`text_unit_id` replaced by the uri and span of the unit (nulls where there is none)."""
    for column in ("uri", "from", "to"):
        rows = rows.append_column(column, _looked_up(places, column, rows["text_unit_id"]))
    return rows.drop_columns("text_unit_id")


def _with_keys(rows: pa.Table, entities: pa.Table) -> pa.Table:
    """`source_id`, `target_id` replaced by the entities' keys, `weight` rounded."""
    for end in ("source", "target"):
        rows = rows.append_column(end, _looked_up(entities, "key", rows[f"{end}_id"]))
    weight = pc.round(rows["weight"], DIGITS)
    rows = rows.set_column(rows.column_names.index("weight"), "weight", weight)
    return rows.drop_columns(["source_id", "target_id"])


def _looked_up(table: pa.Table, column: str, ids: pa.ChunkedArray) -> pa.ChunkedArray:
    return table[column].take(pc.index_in(ids, table["id"]))


def _sorted(table: pa.Table, by: Sequence[str] | None = None) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in by or table.column_names])


def _feed(hashed: Any, kind: str, table: pa.Table) -> None:
    """Hash the rows in their order, columns by name."""
    table = table.select(sorted(table.column_names))
    for start in range(0, table.num_rows, ROWS):
        _add(hashed, kind, list(rows_of(table.slice(start, ROWS))))


def _add(hashed: Any, kind: str, rows: list[Any]) -> None:
    """Rows as one JSON list without its brackets, so that it does not matter how many come at once."""
    text = json.dumps([(kind, *row) for row in rows], ensure_ascii=False, separators=(",", ":"))
    hashed.update(f"{text[1:-1]},".encode("utf-8", "surrogatepass"))


def _chunks(ids: list[str]) -> list[list[str]]:
    return [ids[start : start + TEXTS] for start in range(0, len(ids), TEXTS)]


LOCK_SECONDS = 30.0
SHOWN = 30  # generations that an error lists, and statements


@dataclass(frozen=True)
class Changes:
    """What differs between generation `since` and the current one. Documents are uris, sorted;
    `counts` says of entities, relationships and communities how many there were, are, came and went
    ({before, now, added, removed}). `names`: of entities that came, the most frequent first.
    `statements`: sentences of new and changed documents that name the entity that was asked for.
    `notes`: those whose sources changed or went meanwhile, with how many did, and of how many."""

    since: int
    generation: int
    committed: str  # when `since` was, ISO 8601; "" for 0
    added: list[str]
    changed: list[str]
    removed: list[str]
    counts: dict[str, dict[str, int]]
    names: list[str] = field(default_factory=list)
    statements: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def kept(folder: Path) -> list[Manifest]:
    """The generations that can be gone back to, oldest first, the current one last."""
    *older, current = _listed(folder)
    return [*(manifest for manifest in older if _readable(folder, manifest)), current]


def _listed(folder: Path) -> list[Manifest]:
    """The generations of this format, oldest first, the current one last. Of older ones the tables may be gone, which
    takes a tenth of a second to find out."""
    current = manifests.current(folder)
    return [
        *(
            manifest
            for manifest in manifests.generations(folder)
            if manifest.generation < current.generation and manifest.format == current.format
        ),
        current,
    ]


def rollback(folder: Path, generation: int) -> Manifest:
    """Make the content of `generation` current again, as a new generation; gives that.

    Numbers behind aliases are never given again, so an alias of what is gone now stays gone. The
    next indexing of the same folders brings back what they hold. Raises NotFound when that
    generation is not kept any more, BadInput when it is the current one, Busy when another process
    is writing."""
    with manifests.writer_lock(folder, LOCK_SECONDS):
        current = manifests.current(folder)
        if generation == current.generation:
            raise BadInput(f"generation {generation} is the current one", "Name an earlier one")
        old = _find(folder, current, generation)
        number = current.generation + 1
        settled = old.communities_generation == old.generation
        new = replace(
            old,
            generation=number,
            created=manifests.now(),
            next={letter: max(old.next.get(letter, 1), n) for letter, n in current.next.items()},
            communities_generation=number if settled else old.communities_generation,
            began=0,
        )
        manifests.commit(folder, new)
        return new


def generation_of(folder: Path, since: str) -> int:
    """The generation that `since` names: a number, or a day (ISO 8601), for which it is the last one
    committed before that day, 0 before the first one of all. Raises BadInput where it is neither,
    NotFound where none is kept."""
    written = since.strip()
    if written.isdecimal() and len(written) != 4:
        return int(written)
    day = dates.read(written)
    if not day:
        what = f"{written[:40]!r} is no generation and no day"
        raise BadInput(what, f"Write 12 or {dates.advice(written)}")
    *older, current = listed = _listed(folder)

    def readable(manifest: Manifest) -> bool:
        return manifest is current or _readable(folder, manifest)

    before = (manifest for manifest in reversed(listed) if manifest.created < dates.days(day)[0])
    if found := next(filter(readable, before), None):
        return found.generation
    oldest = next(filter(readable, older), current)
    if oldest.generation == 1:
        return 0
    advice = f"The oldest is {oldest.generation} of {oldest.created}"
    raise NotFound(f"no generation from before {written} is kept", advice)


def changes(folder: Path, generation: int, about: str = "") -> Changes:
    """What the documents and the graph have become since `generation`, 0 for an empty index, and with `about` what new
    text says of that entity. Raises NotFound when the generation is not kept any more, or there is
    no such entity."""
    current = manifests.current(folder)
    if generation == 0:
        old = replace(current, generation=0, tables={}, segments=[], created="")
    else:
        old = current if generation == current.generation else _find(folder, current, generation)
    before, now = _documents(folder, old), _documents(folder, current)
    snapshots = Snapshot(folder, old), Snapshot(folder, current)
    counts = {}
    for table in ("entities", "relationships", "communities"):
        was, is_ = (_ids(snapshot, table) for snapshot in snapshots)
        counts[table] = {"before": len(was), "now": len(is_)}
        counts[table] |= {"added": len(is_ - was), "removed": len(was - is_)}
    new = {id: before.get(uri, "") for uri, id in now.items() if id not in before.values()}
    return Changes(
        generation,
        current.generation,
        old.created,
        sorted(now.keys() - before.keys()),
        sorted(uri for uri in now.keys() & before.keys() if now[uri] != before[uri]),
        sorted(before.keys() - now.keys()),
        counts,
        [f"{one_line(row['title'], 60)} (e{row['n']})" for row in names(*snapshots)[:SHOWN]],
        _statements(*snapshots, about, new) if about.strip() else [],
        _notes(*snapshots),
    )


def change_lines(found: Changes, about: str = "") -> list[str]:
    """Lines on what changed: counts, names that came, statements, documents by what they became."""
    if found.since == found.generation:
        return [f"Generation {found.generation} is the current one, so nothing has changed since."]
    since = f"From generation {found.since} ({found.committed}) to {found.generation}"
    first = f"All is new in generation {found.generation}: nothing was indexed before."
    lines = [f"{since}, the current one:" if found.since else first]
    for table, count in found.counts.items():
        came = f"{count['added']:,} new, {count['removed']:,} gone"
        came = came if count["added"] or count["removed"] else "the same"
        lines.append(f"{counted(count['now'], table)}, before {count['before']:,} ({came})")
    if found.names:
        lines.append(f"Names that came: {', '.join(found.names)}.")
    if found.statements:
        lines += ["New statements:", *found.statements]
    elif about.strip():
        lines.append(f"No new statement on {one_line(about, 60)}.")
    if found.notes:
        lines += [f"{counted(len(found.notes), 'notes')} whose sources changed:"]
        lines += [f"- {note}" for note in found.notes]
    documents = {"added": found.added, "changed": found.changed, "removed": found.removed}
    for how, uris in documents.items():
        if uris:
            lines += [f"{counted(len(uris), 'documents')} {how}:", *(f"- {uri}" for uri in uris)]
    return lines if any(documents.values()) else [*lines, "No document has changed."]


def _notes(old: Snapshot, snapshot: Snapshot) -> list[str]:
    """`[d9] notes/a.md: 2 of 5 sources` for each note of which other sources differ now than then."""
    facts = times.documents(snapshot)
    alias = {fact.uri: fact.alias for fact in facts.values()}
    return [
        f"[{alias[uri]}] {uri}: {count} of {counted(total, 'sources')}"
        for uri, (count, total) in note_sources.differing(old, snapshot).items()
    ]


def names(old: Snapshot, current: Snapshot) -> list[dict[str, Any]]:
    """Numbers and titles of entities that came, the most frequent first."""
    known = _ids(old, "entities")
    rows = current.rows("entities", columns=["id", "n", "title", "frequency"]).to_pylist()
    came = [row for row in rows if row["id"] not in known]
    came.sort(key=lambda row: (-row["frequency"], row["n"]))
    return came


def _ids(snapshot: Snapshot, table: str) -> set[str]:
    return set(snapshot.column(table, "id"))


def _statements(old: Snapshot, snapshot: Snapshot, about: str, new: Mapping[str, str]) -> list[str]:
    """What new and changed documents say of an entity, by day, without what they said before. `new`:
    content ids with those of the same documents in the old generation."""
    row, near = entities.resolve(snapshot, about)
    if row is None:
        advice = f"Nearest: {entities.named_list(near[:5])}" if near else "Use search_text"
        raise NotFound(f"there is no entity {one_line(about, 80)!r}", advice)
    rows = old.by_key("documents", [*filter(None, new.values())], "id", ["id", "text"])
    texts = dict(rows_of(rows))
    known = {id: texts.get(was, "") for id, was in new.items()}
    return timeline.lines(snapshot, row, known, SHOWN)


def _find(folder: Path, current: Manifest, generation: int) -> Manifest:
    older = (manifest for manifest in manifests.generations(folder) if manifest.format == current.format)
    found = next((manifest for manifest in older if manifest.generation == generation), None)
    if found is not None and generation < current.generation and _readable(folder, found):
        return found
    *older, _ = _listed(folder)
    readable = filter(partial(_readable, folder), reversed(older))
    last = [current, *islice(readable, SHOWN - 1)][::-1]
    more = "older ones and " if next(readable, None) else ""
    listed = ", ".join(str(manifest.generation) for manifest in last)
    what = f"generation {generation} of {folder.name} is not kept"
    raise NotFound(what, f"Kept are {more}{listed}; name one of these")


def _readable(folder: Path, manifest: Manifest) -> bool:
    """Are its segments there, and do its tables open at its versions?"""
    if not all((folder / "truth" / segment["file"]).exists() for segment in manifest.segments):
        return False
    snapshot = Snapshot(folder, manifest)
    try:
        return all(snapshot.count(table) >= 0 for table in manifest.tables)
    except GraphRAGError:
        return False


def _documents(folder: Path, manifest: Manifest) -> dict[str, str]:
    found = segment_store.live_documents(folder, manifest, ("uri", "id"))
    return dict(rows_of(found.select(["uri", "id"])))
