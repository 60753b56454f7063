"""Import: another index's content as documents of a corpus, with what was extracted from them, and no model asked.

Takes a `Foreign` (what another program's folder holds) and a corpus folder; gives an `IndexResult` and notes of what
could not be taken as it was. Every text unit is placed in its document, every entity and relation in its units; then
indexing does what it does with any documents, but for extraction, and commits as ever. The same folder again changes
nothing; a changed one brings its changes.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from graphrag_mcp.errors import BadInput
from graphrag_mcp.extract import mentions
from graphrag_mcp.index import import_graphrag, import_lightrag
from graphrag_mcp.index.chunk import ChunkParams, chunk
from graphrag_mcp.index.commits import Progress, Run
from graphrag_mcp.index.decode import clean
from graphrag_mcp.index.find import shown
from graphrag_mcp.index.foreign import Foreign, SourceDocument, SourceUnit
from graphrag_mcp.index.import_graph import as_json, graph_of, key_of, names_and_statements
from graphrag_mcp.index.import_text import Place, placed
from graphrag_mcp.index.imported import PREFIX, DocumentRecord, UnitRecord, row_of, sha_of
from graphrag_mcp.index.plan import Edit, Plan
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.outside import kind_of
from graphrag_mcp.types import Document, IndexRequest, IndexResult, content_id

OUTPUTS = ("output", "outputs", "artifacts", "rag_storage", "storage", "data")  # names that say nothing: the parent's


@dataclass
class Holder:
    """A document on its way in: its text, its record, and where each of its units went."""

    uri: str
    title: str
    text: str
    metadata: dict[str, Any]
    created: str
    record: DocumentRecord
    units: dict[str, UnitRecord] = field(default_factory=dict)  # by the other index's id


def read(folder: Path) -> Foreign:
    """What a folder of GraphRAG's tables, LightRAG's storage or our own export holds. Raises BadInput for others."""
    kind = kind_of(folder)
    if not kind:
        raise BadInput(
            f"{folder.name} holds neither tables of GraphRAG nor a storage of LightRAG",
            "Name the folder with entities.parquet, or the one with kv_store_text_chunks.json",
        )
    return import_graphrag.read(folder) if kind == "graphrag" else import_lightrag.read(folder)


def import_folder(
    corpus: Path, source: Path, settings: Settings, *, progress: Progress = lambda *_: None,
    cancelled: Callable[[], bool] = lambda: False,
) -> tuple[IndexResult, list[str]]:  # fmt: skip
    """Bring the content of `source` into the corpus. Raises GraphRAGError (BadInput, Busy, Damaged, ...)."""
    from graphrag_mcp.index.pipeline import index_documents

    foreign = read(source)
    if not any(unit.text.strip() for unit in foreign.units) and not any(one.text.strip() for one in foreign.documents):
        raise BadInput(
            f"{source.name} holds no text: neither documents nor text units can be read",
            "Without texts nothing could be cited; run graphrag-mcp doctor with that folder to see what is wrong",
        )

    def bring(run: Run, plan: Plan) -> None:
        _bring(foreign, str(source.resolve()), run, plan)

    # A budget that is spent from the start: other documents keep what models said of them, and nobody is asked.
    asked = replace(settings, max_calls=-1)
    result = index_documents(corpus, IndexRequest(), asked, progress=progress, cancelled=cancelled, bring=bring)
    return result, foreign.notes


def _bring(foreign: Foreign, source: str, run: Run, plan: Plan) -> None:
    """Fill the plan of a call: its edits, its label, and the rows for the log of imports."""
    file = PREFIX + content_id(source)[:12]
    others = {uri for uri, row in plan.live.items() if row["file"] != file}
    labels = _labels(plan.found.sources, source)
    if not foreign.units:
        _cut_anew(foreign, run.settings)
    holders = _holders(foreign, labels, others)
    names_and_statements(foreign, holders)
    there = set()
    log = run.imports
    for holder in sorted(holders, key=lambda holder: holder.uri):
        data = holder.record.to_json()
        document = Document(holder.uri, holder.title, holder.text, holder.metadata, holder.created, file, sha_of(data))
        there.add(holder.uri)
        known = plan.live.get(holder.uri)
        if known and known["id"] == document.id and known["file_sha"] == document.file_sha:
            plan.unchanged += 1
            continue
        log.new[document.uri, document.file_sha] = data
        run.brought.append(Edit("put", document.uri, document))
    earlier = {uri for uri, row in plan.live.items() if row["file"] == file}
    run.brought += [Edit("gone", uri) for uri in sorted(earlier - there)]
    graph = graph_of(foreign, holders, ChunkParams(passage_size=run.settings.passage_size))
    data, before = as_json(graph), log.latest(file)
    if before != data and (before or graph["communities"]):
        run.apart.append(row_of(file, data))
        groups = [*graph["communities"], *(json.loads(before)["communities"] if before else ())]
        run.touched |= {id for row in groups for id in row["members"]}  # their communities are compared anew
    if foreign.damaged and earlier and (run.brought or run.apart):
        raise BadInput(
            f"{', '.join(foreign.damaged)} cannot be read, and what was imported from there before would be lost",
            "Mend the folder (graphrag-mcp doctor names what is wrong), or import it into another corpus",
        )


def _labels(sources: dict[str, dict[str, str]], source: str) -> Callable[[str], str]:
    """What a label of the other index is called here: its own name where that is free. New ones are noted down, so
    that no folder takes the name."""

    def label(wanted: str) -> str:
        mark = f"{PREFIX}{source}#{wanted}" if wanted else f"{PREFIX}{source}"
        for name, entry in sources.items():
            if entry["path"] == mark:
                return name
        folder = Path(source)
        own = folder.parent.name if folder.name.lower() in OUTPUTS and folder.parent.name else folder.name
        name = distinct = shown(wanted or own).replace(":", "_") or "import"
        number = 1
        while distinct in sources:
            number += 1
            distinct = f"{name}~{number}"
        sources[distinct] = {"path": mark, "kind": "import"}
        return distinct

    return label


def _cut_anew(foreign: Foreign, settings: Settings) -> None:
    """Where no text unit can be read: documents are cut by us, and an entity stands where its name does."""
    places: dict[str, list[str]] = defaultdict(list)
    params = ChunkParams(settings.chunk_size, settings.chunk_overlap, passage_size=settings.passage_size)
    for document in foreign.documents:
        document.text = clean(document.text)
        for unit in chunk(document.text, params):
            body, id = document.text[unit.span.start : unit.span.end], f"{document.id} {unit.index}"
            span = (unit.span.start, unit.span.end)
            foreign.units.append(SourceUnit(id, len(foreign.units), body, [document.id], *span))
            for key in {mention[0] for mention in mentions(body)}:
                places[key].append(id)
    for entity in foreign.entities:
        entity.units = places[key_of(entity)]
    for relation in foreign.relations:
        relation.units = []  # those of its ends


# ---- documents and their units -------------------------------------------------------------------


def _holders(foreign: Foreign, label: Callable[[str], str], taken: set[str]) -> list[Holder]:
    """A holder for every document, and for every unit that stands in none."""
    by = f"imported:{foreign.program}"
    holders: dict[str, Holder] = {}
    titles = Counter(_title(one) for one in foreign.documents)
    for one in foreign.documents:
        text = one.text if one.uri else clean(one.text)
        if not text.strip() or one.id in holders:
            continue
        uri = _uri(one, label, titles[_title(one)] > 1, taken)
        holders[one.id] = Holder(uri, _title(one), text, one.metadata, one.created, DocumentRecord(by))
    used: set[str] = set()
    for holder in holders.values():  # two documents of one name and one beginning of an id
        while holder.uri in used:
            holder.uri += "~2"
        used.add(holder.uri)
    alone = _place_units(foreign, holders)
    for unit in alone:
        text = clean(unit.text)
        where = next((holders[id].title for id in unit.documents if id in holders), "")
        title = f"{where} ({foreign.program} text unit {unit.number})" if where else f"text unit {unit.number}"
        holder = Holder(f"{label('')}/text unit {unit.id[:32]}", title, text, {}, "", DocumentRecord(by))
        record = UnitRecord(0, len(text))
        holder.record.units.append(record)
        holder.units[unit.id] = record
        holders[f"unit {unit.id}"] = holder
    return list(holders.values())


def _place_units(foreign: Foreign, holders: dict[str, Holder]) -> list[SourceUnit]:
    """Put units into their documents; gives those that stand in none."""
    of_document: dict[str, list[SourceUnit]] = defaultdict(list)
    for unit in foreign.units:
        home = next((id for id in unit.documents if id in holders), "")
        of_document[home].append(unit)
    alone = [unit for unit in of_document.pop("", []) if unit.text.strip()]
    foreign.note(len(alone), "text units belong to no document that is there: each becomes a document of its own")
    near = lost = 0
    for id, units in of_document.items():
        holder = holders[id]
        marked = [unit for unit in units if holder.text[unit.start : unit.end] == unit.text and unit.start >= 0]
        places: dict[str, Place | None] = {unit.id: Place(unit.start, unit.end, True) for unit in marked}
        others = [unit for unit in units if unit.id not in places]
        found = placed(holder.text, [clean(unit.text) for unit in others])
        places |= dict(zip((unit.id for unit in others), found, strict=True))
        for unit in units:
            place = places[unit.id]
            if place is None:
                if unit.text.strip():
                    lost += 1
                    alone.append(unit)
                continue
            near += not place.exact
            record = UnitRecord(place.start, place.end)
            holder.record.units.append(record)
            holder.units[unit.id] = record
    foreign.note(lost, "text units stand nowhere in their document: each becomes a document of its own")
    foreign.note(near, "text units stand in their document with other blanks, or without what was put before them")
    return alone


def _title(one: SourceDocument) -> str:
    return clean(" ".join(one.title.split())[:300]) or one.id[:32]


def _uri(one: SourceDocument, label: Callable[[str], str], shared: bool, taken: set[str]) -> str:
    if one.uri.startswith("text:"):
        uri = one.uri
    elif one.uri:
        first, slash, rest = one.uri.partition("/")
        uri = f"{label(first)}/{rest}" if slash else f"{label('')}/{first}"
    else:
        name = _title(one)
        uri = f"{label('')}/{name} ({one.id[:12]})" if shared and name != one.id[:32] else f"{label('')}/{name}"
    while uri in taken:  # a text that was handed over here has this name
        uri += "~imported"
    return uri
