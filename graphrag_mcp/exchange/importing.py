"""Import of another index: its content as documents of a corpus, with its entities,
without a model.

Every text unit is placed in its document, every entity and relation in its units; then indexing
does what it does with any documents, but for extraction. Communities are made one sound hierarchy,
in which children divide their parent and every entity has one place a level; one that lost or
gained members on the way has another id, and its report is not taken. The same folder again changes
nothing."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from graphrag_mcp.errors import BadInput
from graphrag_mcp.exchange import files, graphrag, lightrag
from graphrag_mcp.exchange.files import Foreign, SourceDocument, SourceEntity, SourceUnit
from graphrag_mcp.index import imported
from graphrag_mcp.index.chunk import ChunkParams
from graphrag_mcp.index.derive import unit_ids
from graphrag_mcp.index.edits import Target, create
from graphrag_mcp.index.run import Progress, Run
from graphrag_mcp.packing.citations import Cited, cited, replace_references
from graphrag_mcp.packing.references import reference
from graphrag_mcp.settings import Settings
from graphrag_mcp.sources.decode import clean
from graphrag_mcp.sources.diff import Edit, Plan
from graphrag_mcp.sources.document import Document
from graphrag_mcp.sources.walk import distinct, shown
from graphrag_mcp.text.terms import content_id, counted, entity_id, normalise_name, relationship_id
from graphrag_mcp.types import IndexRequest, IndexResult

_BROKEN = "\ufffd"  # half of a character, at an end of a unit that was cut between two tokens


@dataclass(frozen=True, slots=True)
class Place:
    """Characters `start:end` of the document; `exact` when they are the unit's text to the letter."""

    start: int
    end: int
    exact: bool


def placed(document: str, units: Sequence[str]) -> list[Place | None]:
    """The place of each unit, to the letter or without blanks and halves of characters at its ends: after
    the start of the one before it where it can be, else anywhere; None for one that is not there."""
    places: list[Place | None] = []
    after = 0
    for text in units:
        bare = text.strip().strip(_BROKEN).strip()
        place = None
        for words in dict.fromkeys((text, bare)) if bare else ():
            at = document.find(words, after)
            at = at if at >= 0 else document.find(words)
            if at >= 0:
                place = Place(at, at + len(words), words == text)
                after = at
                break
        places.append(place)
    return places


def prepended(document: str, units: Sequence[str]) -> str:
    """The lines that the other program put before the text of each of these units, as GraphRAG does with
    `prepend_metadata`: what of a unit follows them, most of it, stands in the document. "" for none."""
    for text in units:
        starts = [0, *(match.end() for match in re.finditer("\n", text))]

        def stands(start: int, text: str = text) -> bool:
            return text[start:].strip().strip(_BROKEN).strip() in document

        first = starts[min(bisect_left(starts, True, key=stands), len(starts) - 1)]
        head = text[:first]
        if head and 2 * len(head) < len(text) and stands(first):
            return head if all(unit.startswith(head) for unit in units) else ""
    return ""


Row = dict[str, Any]  # id, level, parent (id or ""), members


def tree_of(communities: Sequence[files.SourceCommunity], ids: Mapping[str, str]) -> tuple[list[Row], dict[int, str]]:
    """The communities that make a sound hierarchy, in which children divide their parent and every
    entity has one place a level, and their ids by number. `ids`: the other index's entity ids as
    ours. Children that do not divide their parent are left out, with all below them."""
    members = {
        community.number: {ids[id] for id in community.entities if id in ids} for community in reversed(communities)
    }
    holder: dict[tuple[int, str], int] = {}  # (level, entity) -> number
    for community in communities:
        for member in members[community.number]:
            holder.setdefault((community.level, member), community.number)
    children: dict[int, list[int]] = defaultdict(list)
    for community in {community.number: community for community in reversed(communities)}.values():
        above = {holder.get((community.level - 1, member), -1) for member in members[community.number]}
        if len(above) == 1:
            children[above.pop()].append(community.number)
    rows: list[Row] = []
    number_of: dict[int, str] = {}

    def add(number: int, level: int, parent: str) -> None:
        ordered = sorted(members[number])
        id = number_of[number] = content_id("community", str(level), *ordered)
        rows.append({"id": id, "level": level, "parent": parent, "members": ordered})
        below = Counter(member for child in children[number] for member in members[child])
        if below == Counter(ordered):
            for child in sorted(children[number]):
                add(child, level + 1, id)

    taken: set[str] = set()
    for number in sorted(children[-1]):
        if taken.isdisjoint(members[number]):
            taken |= members[number]
            add(number, 0, "")
    return sorted(rows, key=lambda row: (row["level"], row["id"])), number_of


LIGHTEST = 0.001  # of a statement: without any weight a pair belongs to no community
_OURS = re.compile(r"\[Data: (?:[A-Z][a-z]{4,14} \([\d, +more]{1,200}\)(?:; )?){1,5}\]")
Places = Mapping[str, tuple["Holder", imported.UnitRecord]]


def key_of(entity: SourceEntity) -> str:
    """The key under which an imported entity is merged with others of its name. One that only an edit has made has
    no name in any text, so its title is its name."""
    return (entity.key if entity.units else "") or normalise_name(entity.title)


class _Writer:
    """Puts each name and statement into the records of its units; counts what has none."""

    def __init__(self, foreign: Foreign, places: Places) -> None:
        self.foreign, self.places = foreign, places
        self.by_title = {entity.title: key_of(entity) for entity in reversed(foreign.entities)}
        self.by_name: dict[str, str] = {}
        for entity in foreign.entities:
            self.by_name.setdefault(normalise_name(entity.title), key_of(entity))
        self.keys = {key for key in self.by_title.values() if key}
        self.units_of: dict[str, set[str]] = defaultdict(set)  # key -> units that name it
        self.order = {id: number for number, id in enumerate(places)}

    def all(self) -> None:
        statements = self._statements()
        self._entities()
        self._ends(statements)
        for source, target, relation, units in statements:
            weight = max(relation.weight, LIGHTEST) / len(units)
            statement = imported.Statement(source, target, relation.description, relation.keywords, weight)
            for id in units:
                self._put(id, "statements", statement)

    def _put(self, unit: str, rows: str, row: Any) -> None:
        """Add a row to the list of its document, and its place there to that of its unit."""
        holder, record = self.places[unit]
        getattr(record, rows).append(_at(getattr(holder.record, rows), row))

    def _known(self, units: Iterable[str]) -> list[str]:
        return sorted({id for id in units if id in self.places}, key=self.order.__getitem__)

    def _statements(self) -> list[tuple[str, str, Any, list[str]]]:
        """Each relation with the keys of its ends and its units."""
        found: list[tuple[str, str, Any, list[str]]] = []
        for relation in self.foreign.relations:
            source, target = self.end(relation.source), self.end(relation.target)
            if (units := self._known(relation.units)) and source and target:
                found.append((source, target, relation, units))
        why = "no text unit that is there holds them, or an end has no name"
        by_hand = sum(map(self.foreign.by_hand, self.foreign.relations))
        lost = len(self.foreign.relations) - len(found) - by_hand
        self.foreign.note(lost, "relationships", f"left out, {why}")
        return found

    def end(self, title: str) -> str:
        name = normalise_name(title)
        return self.by_title.get(title) or self.by_name.get(name) or name

    def _entities(self) -> None:
        lost = 0
        for entity in self.foreign.entities:
            key = key_of(entity)
            units = self._known(entity.units)
            if not units or not key:
                lost += not self.foreign.by_hand(entity)
                continue
            name = imported.Name(key, entity.title, entity.type or "unknown", entity.description)
            # Its other names go with its first unit, unless one is an entity of its own. A title that was given by
            # hand is one of them.
            given = [] if normalise_name(entity.title) == key else [entity.title]
            keys = ((form, normalise_name(form)) for form in [*given, *entity.aliases])
            aliases = tuple(form for form, alias_key in keys if alias_key == key or alias_key not in self.keys)
            for id in units:
                self._put(id, "names", replace(name, aliases=aliases) if id == units[0] else name)
                self.units_of[key].add(id)
        self.foreign.note(lost, "entities", "left out, no text unit that is there names them")

    def _ends(self, statements: Sequence[tuple[str, str, Any, list[str]]]) -> None:
        """Ends that are no entity, or not named in a unit that speaks of them, are named there."""
        strange: set[str] = set()
        named = {key_of(entity): entity for entity in reversed(self.foreign.entities)}
        for source, target, relation, units in statements:
            for key, title in ((source, relation.source), (target, relation.target)):
                known = named.get(key)
                if known is not None and self.units_of.get(key):
                    continue  # its own text units are what the other index says
                if known is None:
                    strange.add(key)
                for id in units:
                    if id not in self.units_of[key]:
                        self._put(id, "names", imported.Name(key, title, "unknown", ""))
                        self.units_of[key].add(id)
        what = "end of a relationship and no entity of its own, so without a description"
        self.foreign.note(len(strange), "names", what)


def _at(rows: list[Any], row: Any) -> int:
    """The place of a row in a list that holds each once; a name comes in runs, at its end."""
    for place in range(len(rows) - 1, max(-1, len(rows) - 4), -1):
        if rows[place] == row:
            return place
    rows.append(row)
    return len(rows) - 1


# ---- communities and reports ---------------------------------------------------------------------


def graph_of(foreign: Foreign, holders: Sequence[Holder], params: ChunkParams) -> dict[str, Any]:
    """Communities and reports for the log."""
    if not foreign.communities:
        foreign.note(len(foreign.reports), "reports", "left out, their communities are not there")
        return {"communities": [], "reports": []}
    keys = {entity.id: key_of(entity) for entity in foreign.entities}
    ids = {id: entity_id(key) for id, key in keys.items() if key}
    tree, number_of = tree_of(foreign.communities, ids)
    what = "computed again, for they do not divide their parent, as after an update"
    foreign.note(len(foreign.communities) - len(tree), "communities", what)
    known = _numbers(foreign, holders, ids, number_of, params)
    reports: list[Row] = []
    members_of = {row["id"]: row["members"] for row in tree}
    with_ids = partial(_with_content_ids, known=known, foreign=foreign)
    for report in (report for report in foreign.reports if report.community in number_of):
        community = number_of[report.community]
        texts = ("summary", "full_content", "rating_explanation")
        row: Row = {name: with_ids(getattr(report, name)) for name in texts}
        row |= {name: getattr(report, name) for name in ("title", "rank", "method")}
        row |= {"community": community, "members": members_of[community]}
        pairs_told = ((with_ids(summary), with_ids(explanation)) for summary, explanation in report.findings)
        row["findings"] = [{"summary": a, "explanation": b} for a, b in pairs_told]
        reports.append(row)
    what = "left out, their community is not there as it was when they were written"
    foreign.note(len(foreign.reports) - len(reports), "reports", what)
    return {"communities": tree, "reports": reports}


def _numbers(
    foreign: Foreign,
    holders: Sequence[Holder],
    ids: Mapping[str, str],
    number_of: Mapping[int, str],
    params: ChunkParams,
) -> dict[str, dict[int, list[str]]]:
    """What the numbers in reports stand for: by group the id, then the text units that it rests on."""
    unit_of: dict[str, str] = {}
    for holder in holders:
        name_of = unit_ids(holder.uri)
        foreign_ids = {id(record): other for other, record in holder.units.items()}
        for unit, record in holder.record.cut(holder.text, params):
            unit_id = name_of(unit, holder.text[unit.span.start : unit.span.end])
            if record is not None:
                unit_of[foreign_ids[id(record)]] = unit_id
    writer = _Writer(Foreign(foreign.program, entities=foreign.entities), {})

    def with_units(id: str, units: Iterable[str]) -> list[str]:
        return [id, *(unit_of[unit] for unit in units if unit in unit_of)]

    known = (entity for entity in foreign.entities if entity.id in ids)
    relations: dict[int, list[str]] = {}
    for relation in foreign.relations:
        ends = sorted(entity_id(writer.end(title)) for title in (relation.source, relation.target))
        relations[relation.number] = with_units(relationship_id(*ends), relation.units)
    units = (unit for unit in foreign.units if unit.id in unit_of)
    return {
        "Entities": {entity.number: with_units(ids[entity.id], entity.units) for entity in known},
        "Relationships": relations,
        "Sources": {unit.number: [unit_of[unit.id]] for unit in units},
        "Reports": {number: [id] for number, id in number_of.items()},
    }


def _with_content_ids(text: str, known: Mapping[str, Mapping[int, list[str]]], foreign: Foreign) -> str:
    """The text with references by content id. Where another program names only entities and
    relationships, the text units that these rest on are added, so that every statement leads to its
    source."""

    def write(citation: Cited) -> str:
        groups: list[tuple[str, list[str]]] = []
        units: list[str] = []
        for group in ("Entities", "Relationships", "Sources", "Reports"):
            numbers, rows_by_number = citation.numbers.get(group, ()), known[group]
            rows = [rows_by_number[number] for number in numbers if number in rows_by_number]
            units = [unit for row in rows for unit in row[1:]] + units
            groups.append((group, [row[0] for row in rows]))
        if not citation.numbers.get("Sources") and foreign.program != "graphrag-mcp":
            groups.append(("Sources", units))
        return reference(groups, more=citation.more)

    if foreign.program == "graphrag-mcp":  # what we wrote ourselves is put back to the letter
        return _OURS.sub(lambda match: "".join(map(write, cited(match[0]))), text)
    return replace_references(text, write)


# Names that say nothing: the parent's is taken.
OUTPUTS = ("output", "outputs", "artifacts", "rag_storage", "storage", "data")


@dataclass
class Holder:
    """A document on its way in: its text, its record, and where each of its units went."""

    uri: str
    title: str
    text: str
    metadata: dict[str, Any]
    created: str
    record: imported.DocumentRecord
    units: dict[str, imported.UnitRecord] = field(default_factory=dict)  # by the other index's id


def read(folder: Path) -> Foreign:
    """What a folder of GraphRAG, LightRAG or our own export holds. BadInput for others."""
    is_graphrag = files.program_of(folder) == "graphrag"
    return graphrag.read(folder) if is_graphrag else lightrag.read(folder)


def import_folder(
    corpus: Path, source: Path, settings: Settings, *, progress: Progress = lambda *_: None
) -> tuple[IndexResult, list[str]]:
    """Bring the content of `source` into the corpus. Raises GraphRAGError."""
    from graphrag_mcp.index.pipeline import index_documents

    foreign = read(source)
    if not any(unit.text.strip() for unit in foreign.units):
        what = f"{source.name} holds no text: its text units cannot be read"
        move = "Index the documents themselves"
        raise BadInput(what, move)

    def bring(run: Run, plan: Plan) -> None:
        _bring(foreign, str(source.resolve()), run, plan)

    # A budget that is spent from the start: other documents keep what models said of them, and
    # no one is asked.
    asked = replace(settings, max_calls=-1)
    result = index_documents(corpus, IndexRequest(), asked, progress=progress, bring=bring)
    again = _created(corpus, foreign)
    if foreign.program == "graphrag-mcp" and foreign.summaries:
        from graphrag_mcp.index.summaries_stage import take_in

        taken, lost = take_in(corpus, settings, foreign.summaries)
        if lost:
            foreign.notes.append(f"{counted(lost, 'summaries')} of no text that is here are left out")
        again |= bool(taken)
    if again:
        after = index_documents(corpus, IndexRequest(), asked, progress=progress)
        result.counts |= {kind: after.counts[kind] for kind in ("entities", "relationships", "communities")}
    return result, foreign.notes


def _created(corpus: Path, foreign: Foreign) -> bool:
    """Make the entities and relationships that people made in an index of ours, as one edit: was any not there?
    Those that cannot be made are noted."""
    wishes: list[tuple[Target, Row]] = []
    end = _Writer(foreign, {}).end
    for entity in filter(foreign.by_hand, foreign.entities):
        fields: Row = {"type": entity.type, "description": entity.description}
        wishes.append((Target((key_of(entity),), (entity.title,)), fields))
    for relation in filter(foreign.by_hand, foreign.relations):
        fields = {"description": relation.description, "keywords": relation.keywords}
        forms = relation.source, relation.target
        wishes.append((Target((end(forms[0]), end(forms[1])), forms), {**fields, "weight": relation.weight}))
    made, left_out = create(corpus, wishes, "import")
    lost = Counter(target.kind for target in left_out)
    foreign.note(lost["entity"], "entities", "left out, they were made by hand and cannot be made here")
    foreign.note(lost["relationship"], "relationships", "left out, they were made by hand and an end is not there")
    return made


def _bring(foreign: Foreign, source: str, run: Run, plan: Plan) -> None:
    """Fill the plan of a call: its edits, its label, and the rows for the log of imports."""
    file = imported.PREFIX + content_id(source)[:12]
    others = {uri for uri, row in plan.live.items() if row["file"] != file}
    holders = _holders(foreign, _labels(plan.found.sources, source), others)
    places = {id: (holder, record) for holder in holders for id, record in holder.units.items()}
    _Writer(foreign, places).all()
    imported_uris = set()
    log = run.imports
    assert log is not None  # opened by the job that imports
    for holder in sorted(holders, key=lambda holder: holder.uri):
        data = holder.record.to_json()
        fields = (holder.uri, holder.title, holder.text, holder.metadata, holder.created)
        document = Document(*fields, file, imported.sha_of(data))
        imported_uris.add(holder.uri)
        known = plan.live.get(holder.uri)
        if known and known["id"] == document.id and known["file_sha"] == document.file_sha:
            plan.unchanged += 1
            continue
        log.new[document.uri, document.file_sha] = data
        run.brought.append(Edit("put", document.uri, document))
    earlier = {uri for uri, row in plan.live.items() if row["file"] == file}
    run.brought += [Edit("gone", uri) for uri in sorted(earlier - imported_uris)]
    graph = graph_of(foreign, holders, ChunkParams(passage_size=run.settings.passage_size))
    data = json.dumps(graph, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    before = log.latest(file)
    if before != data and (before or graph["communities"]):
        run.apart.append(imported.row_of(file, data))
    if foreign.damaged and earlier and (run.brought or run.apart):
        what = f"{', '.join(foreign.damaged)} cannot be read, and what was imported from there before would be lost"
        move = "Mend the folder, or import it into another corpus"
        raise BadInput(what, move)


def _labels(sources: dict[str, dict[str, str]], source: str) -> Callable[[str], str]:
    """What a label of the other index is called here: its own name where that is free. New ones are
    noted down, so that no folder takes the name."""

    def label(foreign_label: str) -> str:
        mark = f"{imported.PREFIX}{source}#{foreign_label}" if foreign_label else f"{imported.PREFIX}{source}"
        for name, entry in sources.items():
            if entry["path"] == mark:
                return name
        folder = Path(source)
        unnamed = folder.name.lower() in OUTPUTS and folder.parent.name
        folder_name = folder.parent.name if unnamed else folder.name
        name = distinct(shown(foreign_label or folder_name).replace(":", "_") or "import", sources)
        sources[name] = {"path": mark, "kind": "import"}
        return name

    return label


# ---- documents and their units -------------------------------------------------------------------


def _holders(foreign: Foreign, label: Callable[[str], str], taken: set[str]) -> list[Holder]:
    """A holder for every document, and for every unit that stands in none."""
    by = f"imported:{foreign.program}"
    holders: dict[str, Holder] = {}
    titles = Counter(_title(document) for document in foreign.documents)
    for document in foreign.documents:
        text = document.text if document.uri else clean(document.text)
        if not text.strip() or document.id in holders:
            continue
        uri, record = (_uri(document, label, titles[_title(document)] > 1, taken), imported.DocumentRecord(by))
        holders[document.id] = Holder(uri, _title(document), text, document.metadata, document.created, record)
    used: set[str] = set()
    for holder in holders.values():  # two documents of one name and one beginning of an id
        while holder.uri in used:
            holder.uri += "~2"
        used.add(holder.uri)
    for unit in _place_units(foreign, holders):
        text = clean(unit.text)
        where = next((holders[id].title for id in unit.documents if id in holders), "")
        title = f"text unit {unit.number}"
        title = f"{where} ({foreign.program} {title})" if where else title
        uri = f"{label('')}/text unit {unit.id[:32]}"
        holder = Holder(uri, title, text, {}, "", imported.DocumentRecord(by))
        record = imported.UnitRecord(0, len(text))
        holder.record.units.append(record)
        holder.units[unit.id] = record
        holders[f"unit {unit.id}"] = holder
    return list(holders.values())


def _place_units(foreign: Foreign, holders: dict[str, Holder]) -> list[SourceUnit]:
    """Put units into their documents; gives those that stand in none."""
    of_document: dict[str, list[SourceUnit]] = defaultdict(list)
    for unit in foreign.units:
        of_document[next((id for id in unit.documents if id in holders), "")].append(unit)
    alone = [unit for unit in of_document.pop("", []) if unit.text.strip()]
    what = "in no document that is there, so each becomes a document of its own"
    foreign.note(len(alone), "text units", what)
    near, headed, apart = 0, 0, len(alone)
    for id, units in of_document.items():
        holder = holders[id]
        places: dict[str, Place | None] = {
            unit.id: Place(unit.start, unit.end, True)
            for unit in units
            if holder.text[unit.start : unit.end] == unit.text and unit.start >= 0
        }
        others = [unit for unit in units if unit.id not in places]
        texts = [clean(unit.text) for unit in others]
        if head := prepended(holder.text, texts):
            texts = [text.removeprefix(head) for text in texts]
        found = placed(holder.text, texts)
        headed += sum(place is not None for place in found) if head else 0
        places |= dict(zip((unit.id for unit in others), found, strict=True))
        for unit in units:
            place = places[unit.id]
            if place is None:
                alone += [unit] if unit.text.strip() else []
                continue
            near += not place.exact
            record = imported.UnitRecord(place.start, place.end)
            holder.record.units.append(record)
            holder.units[unit.id] = record
    what = "nowhere in their document, so each becomes a document of its own"
    foreign.note(len(alone) - apart, "text units", what)
    foreign.note(near, "text units", "in their document without what is at their ends")
    foreign.note(headed, "text units", "taken without the lines of metadata before their text")
    return alone


def _title(document: SourceDocument) -> str:
    return clean(" ".join(document.title.split())[:300]) or document.id[:32]


def _uri(document: SourceDocument, label: Callable[[str], str], shared: bool, taken: set[str]) -> str:
    if document.uri.startswith("text:"):
        uri = document.uri
    elif document.uri:
        first, slash, rest = document.uri.partition("/")
        uri = f"{label(first)}/{rest}" if slash else f"{label('')}/{first}"
    else:
        name = _title(document)
        mark = f" ({document.id[:12]})" if shared and name != document.id[:32] else ""
        uri = f"{label('')}/{name}{mark}"
    while uri in taken:  # a text that was handed over here has this name
        uri += "~imported"
    return uri
