"""Timelines: sentences by the days they speak of, of an entity, of two together, or of passages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

from graphrag_mcp.packing.budget import Item, citation, one_line
from graphrag_mcp.query import context, local, note_sources, times
from graphrag_mcp.query.entities import name_ids
from graphrag_mcp.query.literals import names
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text import quote
from graphrag_mcp.text.prose import sentences
from graphrag_mcp.text.terms import counted
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.types import Citation

if TYPE_CHECKING:
    from graphrag_mcp.query.filters import Part

UNITS = 500  # text units of an entity, or passages of a list, that are read
FOUND = 200  # passages of a question that are
COLUMNS = (*context.PASSAGE, "entity_ids")

Row = dict[str, Any]
_STOPS = tuple(".!?。！？")


class Statement(NamedTuple):
    """A sentence as a line, and with its letters as they stand in the document (content id); the days (ISO 8601) of
    which it speaks, else the day on which it was written or spoken. `own`: it says itself of which days it speaks.
    `moment` sorts by time: the first day, or the moment in which it was said."""

    line: str
    cited: Citation
    raw: str
    document: str
    days: tuple[tuple[str, str], ...]
    moment: str
    own: bool

    def names(self, forms: Sequence[str]) -> bool:
        """Does it have one of these names?"""
        return any(names(self.line, form) for form in forms)


def of(snapshot: Snapshot, entities: Sequence[Row], room: int) -> tuple[list[Item], str, str]:
    """Items of the timeline of what names all of these entities, within so many tokens; how many
    there are; and a sentence on what has no date. Where not all fit, those that tell most."""
    found, unread = _naming(snapshot, entities)
    dated, kept = _by_time(found), list[Statement]()
    for statement in sorted(dated, key=lambda one: (not one.own, -quote.says(one.raw))):
        room -= count_tokens(statement.line) + 1
        if room < 0:
            break
        kept.append(statement)
    how_many = counted(len(dated), "statements")
    if len(kept) < len(dated):
        how_many += f", of which the {len(kept)} that tell most"
    undated = (len(found) - len(dated), "statements", "without a date")
    items = [Item(one.cited.id, one.line, one.cited, "Timeline") for one in _by_time(kept)]
    return items, how_many, left_out(undated, unread)


def listed(part: Part, query: str) -> tuple[str, list[str]]:
    """What stands above the timeline of what passes the filters, of a question or of all, and its lines."""
    _, snapshot, kept = part
    notes, unread = note_sources.ids(snapshot), 0
    key, values = "document_id", sorted(times.documents(snapshot).keys() - notes)
    if query:
        source = local.asked(part, query)
        known = source.passages if source else []
        key, values = "id", [passage.id for passage in known[:FOUND]]
        unread = len(known[FOUND:])
    rows = snapshot.by_key("passages", values, key, COLUMNS).to_pylist()
    rows = [row for row in rows if row["document_id"] not in notes]
    if kept is not None:
        ids = kept.passing((row["id"], row["document_id"], row["entity_ids"]) for row in rows)
        rows = [row for row in rows if row["id"] in ids]
    rows.sort(key=lambda row: (row["uri"], row["char_start"]))
    forms = [form for entity in kept.first for form in _forms(entity)] if kept else []
    passing = [
        statement
        for statement in _statements(snapshot, rows[:UNITS])
        if (not forms or statement.names(forms))
        and (kept is None or not statement.days or kept.pass_time(statement.days, statement.cited.said))
    ]
    dated = _by_time(passing)
    rest = left_out(
        (len(passing) - len(dated), "statements", "without a date"),
        (unread + len(rows[UNITS:]), "passages", "not read"),
    )
    subject = one_line(query.strip('"'), 80)
    about = f' of passages on "{subject}"' if query else ""
    head = " ".join(filter(None, (f"{counted(len(dated), 'statements')}{about} by time.", rest)))
    return head, [statement.line for statement in dated]


def left_out(*counts: tuple[int, str, str]) -> str:
    """What a timeline leaves out: `1 statement without a date is left out.`"""
    parts = [f"{counted(number, things)} {rest}" for number, things, rest in counts if number]
    single = len(parts) == 1 and parts[0].startswith("1 ")
    return f"{' and '.join(parts)} {'is' if single else 'are'} left out." if parts else ""


def lines(snapshot: Snapshot, entity: Row, documents: Mapping[str, str], most: int) -> list[str]:
    """The sentences of these documents (content ids) that name the entity, by day, undated
    sentences last, and a sentence on what is left out. Sentences that the document repeats from
    an earlier text are left out."""
    found, unread = _naming(snapshot, [entity], documents)
    undated = [statement for statement in found if not statement.days]
    texts = [statement.line for statement in (*_by_time(found), *undated)]
    rest = left_out((len(texts[most:]), "statements", "behind these"), unread)
    return [*texts[:most], *filter(None, [rest])]


def _by_time(found: Sequence[Statement]) -> list[Statement]:
    """Those with a day, by time; of one moment by the files, since ids follow the order in which texts were
    indexed."""
    dated = [statement for statement in found if statement.days]
    return sorted(dated, key=lambda one: (one.moment, one.cited.uri, one.cited.char_start))


def _naming(
    snapshot: Snapshot, entities: Sequence[Row], documents: Mapping[str, str] | None = None
) -> tuple[list[Statement], tuple[int, str, str]]:
    """The sentences that name all of these entities, and how many passages were not read; of some documents
    (content ids) those that their earlier text does not have."""
    known = {id: one_line(text, len(text)) for id, text in (documents or {}).items()}
    shared = set.intersection(*(set(row["text_unit_ids"]) for row in entities))
    units = [id for id in entities[0]["text_unit_ids"] if id in shared]
    served = snapshot.served("text_units", units, ["n", "document_id"])
    numbers = [row["n"] for row in served if documents is None or row["document_id"] in documents]
    rows = snapshot.by_key("passages", numbers[:UNITS], "n", COLUMNS).to_pylist()
    every = [name_ids([entity]) for entity in entities]
    rows = [row for row in rows if not any(ids.isdisjoint(row["entity_ids"]) for ids in every)]
    naming = [
        statement
        for statement in _statements(snapshot, rows)
        if all(statement.names(_forms(entity)) for entity in entities)
        and statement.raw not in known.get(statement.document, "")
    ]
    return naming, (len(numbers[UNITS:]), "passages", "not read")


def _forms(entity: Row) -> list[str]:
    return [entity["title"], *entity["aliases"]]


def _statements(snapshot: Snapshot, rows: Sequence[Row]) -> Iterator[Statement]:
    """The sentences of passages that say something, or a day of their own ("Mum died yesterday.")."""
    spoken = times.read(snapshot, rows)
    for row in rows:
        for start, end in sentences(row["text"]):
            raw = row["text"][start:end]
            says = quote.says(raw) >= quote.LEANS and quote.plain(raw) != quote.plain(row["title"])
            if says or raw.endswith(_STOPS):
                statement = _statement(row, start, end, spoken[row["id"]])
                if says or statement.own:
                    yield statement


def _statement(row: Row, start: int, end: int, spoken: times.Times) -> Statement:
    first, last = row["char_start"] + start, row["char_start"] + end
    when = [expression for expression in spoken.when if first <= expression.char_start < last]
    said = spoken.said_at(first)
    days = tuple((expression.start, expression.end) for expression in when) or ((said, said),) * bool(said)
    at_once = days[:1] == ((said, said),)  # it speaks first of the day on which it was said
    moment = spoken.moment(said) if at_once else days[0][0] if days else ""
    raw = one_line(row["text"][start:end], 4_000)
    note = spoken.note(raw, when)
    if when and said and not note and days != ((said, said),):
        note = f"(said {said})"
    who, shown = quote.speaker(row["text"], start), one_line(raw, 500)
    shown = shown if shown.startswith(who.strip()) else who + shown
    label = times.span(*days[0]) if days else ""
    date = label if len(label) < 20 else days[0][0]  # of several days the first
    clock = spoken.document.clock if at_once and moment > said else ""
    place = {"char_start": first, "char_end": last, "said": said}
    cited = citation(row).model_copy(update=place | {"when": list(map(asdict, when))})
    line = " ".join(filter(None, ("-", "" if when else "said", date, clock, shown, f"[{cited.id}]", note)))
    return Statement(line, cited, raw, row["document_id"], days, moment, bool(when))
