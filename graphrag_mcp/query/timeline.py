"""Timelines: sentences by the days they speak of, of an entity, of two together, or of passages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from graphrag_mcp.packing.budget import Item, citation, one_line
from graphrag_mcp.query import context, hits, local, note_sources, times
from graphrag_mcp.query.entities import name_ids
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text import quote
from graphrag_mcp.text.prose import sentences
from graphrag_mcp.text.terms import counted, lists_of
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.types import Citation

if TYPE_CHECKING:
    from graphrag_mcp.query.filters import Part

UNITS = 500  # text units of an entity, or passages of a list, that are read
FOUND = 200  # passages of a question that are
COLUMNS = (*context.PASSAGE, "entity_ids")

Row = dict[str, Any]
_STOPS = tuple(".!?。！？")


@dataclass(slots=True)
class Statement:
    """A sentence with the days (ISO 8601) of which it speaks, else with the day on which it was
    written or spoken."""

    id: str
    text: str
    days: tuple[tuple[str, str], ...] = ()
    moment: str = ""  # sorts by time: the first day, or the moment in which it was said
    clock: str = ""  # of that moment
    note: str = ""
    cited: Citation | None = None
    said: str = ""  # the day on which it was said
    own: bool = True  # does it say itself of which days it speaks?
    document: str = ""  # its content id
    raw: str = ""  # its text as it stands in the document

    @property
    def start(self) -> str:
        return self.days[0][0] if self.days else ""

    @property
    def date(self) -> str:
        """The first day, month or year of which the sentence speaks, as exact as the text."""
        label = times.span(*self.days[0]) if self.days else ""
        label = label if len(label) < 20 else self.start  # of several days the first
        return f"{label} {self.clock}".strip()

    def item(self) -> Item:
        label = "" if self.own else "said"
        parts = ("-", label, self.date, self.text, f"[{self.id}]", self.note)
        return Item(self.id, " ".join(filter(None, parts)), self.cited, "Timeline")


def of(snapshot: Snapshot, entities: Sequence[Row], room: int) -> tuple[list[Item], str, str]:
    """Items of the timeline of what names all of these entities, within so many tokens; how many
    there are; and a sentence on what has no date. Where not all fit, those that tell most."""
    found, others = _naming(snapshot, entities)
    dated = _by_time(found)
    sentence = left_out((len(found) - len(dated), "statements", "without a date"), *others)
    kept = []
    for statement in sorted(
        dated, key=lambda statement: (not statement.own, -quote.says(statement.text))
    ):
        room -= count_tokens(statement.item().text) + 1
        if room < 0:
            break
        kept.append(statement)
    how_many = counted(len(dated), "statements")
    if len(kept) < len(dated):
        how_many += f", of which the {len(kept)} that tell most"
    return [statement.item() for statement in _by_time(kept)], how_many, sentence


def listed(part: Part, query: str) -> tuple[str, list[str]]:
    """What stands above the timeline of what passes the filters, of a question or of all, and its lines."""
    _, snapshot, kept = part
    notes = note_sources.ids(snapshot)
    key, values, unread = "document_id", sorted(times.documents(snapshot).keys() - notes), 0
    if query:
        source = local.asked(part, query)
        known = hits.apart([source])[0].found.passages if source else []
        key, values = "id", [passage.id for passage in known[:FOUND]]
        unread = len(known[FOUND:])
    rows = snapshot.by_key("passages", values, key, COLUMNS).to_pylist()
    rows = [row for row in rows if row["document_id"] not in notes]
    if kept is not None:
        ids = kept.passing((row["id"], row["document_id"], row["entity_ids"]) for row in rows)
        rows = [row for row in rows if row["id"] in ids]
    rows.sort(key=lambda row: row["n"])
    passing = [
        statement
        for statement in _statements(snapshot, rows[:UNITS])
        if kept is None or not statement.days or kept.speaks_of(statement.days, statement.said)
    ]
    telling = [statement for statement in passing if _says(statement)]
    dated = _by_time(telling)
    rest = left_out(
        (len(telling) - len(dated), "statements", "without a date"),
        (len(passing) - len(telling), "sentences", "of little content"),
        (unread + len(rows[UNITS:]), "passages", "not read"),
    )
    subject = one_line(query.strip('"'), 80)
    about = f' of passages on "{subject}"' if query else ""
    head = " ".join(filter(None, (f"{counted(len(dated), 'statements')}{about} by time.", rest)))
    passed = kept.passing_documents if kept is not None and not dated else []
    if passed and notes.issuperset(passed):
        head += " Only notes pass the filters, and notes stand in no timeline."
    return head, [statement.item().text for statement in dated]


def left_out(*counts: tuple[int, str, str]) -> str:
    """What a timeline leaves out: `1 statement without a date is left out.`"""
    parts = [f"{counted(number, things)} {rest}" for number, things, rest in counts if number]
    single = len(parts) == 1 and parts[0].startswith("1 ")
    return f"{' and '.join(parts)} {'is' if single else 'are'} left out." if parts else ""


def lines(snapshot: Snapshot, entity: Row, documents: Mapping[str, str], most: int) -> list[str]:
    """The sentences of these documents (content ids) that name the entity, by day, undated
    sentences last, and a sentence on what is left out. Sentences that the document repeats from
    an earlier text are left out."""
    found, others = _naming(snapshot, [entity], documents)
    undated = sorted(
        (statement for statement in found if not statement.days), key=lambda statement: statement.id
    )
    texts = [statement.item().text for statement in (*_by_time(found), *undated)]
    rest = left_out((len(texts[most:]), "statements", "behind these"), *others)
    return [*texts[:most], *filter(None, [rest])]


def _by_time(found: Iterable[Statement]) -> list[Statement]:
    """Those with a day, by time. The clock is kept where the day has two moments."""
    dated = sorted(
        (statement for statement in found if statement.days),
        key=lambda statement: (statement.moment, statement.id),
    )
    of_day = lists_of({(statement.start, statement.moment) for statement in dated})
    for statement in dated:
        statement.clock = statement.clock if len(of_day[statement.start]) > 1 else ""
    return dated


def _naming(
    snapshot: Snapshot, entities: Sequence[Row], documents: Mapping[str, str] | None = None
) -> tuple[list[Statement], list[tuple[int, str, str]]]:
    """The sentences that name all of these entities and tell something of them, and how many others
    there are; of some documents (content ids) those that their earlier text does not have."""
    known = {id: one_line(text, len(text)) for id, text in (documents or {}).items()}
    shared = set.intersection(*(set(row["text_unit_ids"]) for row in entities))
    units = [id for id in entities[0]["text_unit_ids"] if id in shared]
    served = snapshot.served("text_units", units, ["n", "document_id"])
    numbers = [row["n"] for row in served if documents is None or row["document_id"] in documents]
    rows = snapshot.by_key("passages", numbers[:UNITS], "n", COLUMNS).to_pylist()
    every = [name_ids([entity]) for entity in entities]
    rows = [row for row in rows if not any(ids.isdisjoint(row["entity_ids"]) for ids in every)]
    entity_forms = [[entity["title"], *entity["aliases"]] for entity in entities]
    naming = [
        statement
        for statement in _statements(snapshot, rows)
        if all(any(form in statement.text for form in forms) for forms in entity_forms)
        and statement.raw not in known.get(statement.document, "")
    ]
    telling = [statement for statement in naming if _says(statement)]
    others = [
        (len(naming) - len(telling), "sentences", "of little content"),
        (len(numbers[UNITS:]), "passages", "not read"),
    ]
    return telling, others


def _says(statement: Statement) -> bool:
    """Does a sentence say something, or a day of its own ("Mum died yesterday.")?"""
    dated = statement.own and statement.raw.endswith(_STOPS)
    return dated or quote.says(statement.raw) >= quote.LEANS


def _statements(snapshot: Snapshot, rows: Sequence[Row]) -> Iterable[Statement]:
    """The sentences of passages that say something or end as one."""
    spoken = times.read(snapshot, rows)
    for row in rows:
        for start, end in sentences(row["text"]):
            sentence = row["text"][start:end]
            if quote.plain(sentence) == quote.plain(row["title"]):
                continue
            if quote.says(sentence) >= quote.LEANS or sentence.endswith(_STOPS):
                yield _statement(row, start, end, spoken[row["id"]])


def _statement(row: Row, start: int, end: int, spoken: times.Times) -> Statement:
    first, last = row["char_start"] + start, row["char_start"] + end
    when = [expression for expression in spoken.when if first <= expression.char_start < last]
    said = spoken.said_at(first)
    own_days = tuple((expression.start, expression.end) for expression in when)
    days = own_days or (((said, said),) if said else ())
    at_once = days[:1] == ((said, said),)  # it speaks first of the day on which it was said
    moment = spoken.moment(said) if at_once else days[0][0] if days else ""
    raw = one_line(row["text"][start:end], 4_000)
    note = spoken.note(raw, when)
    if when and said and not note and days != ((said, said),):
        note = f"(said {said})"
    who, shown = quote.speaker(row["text"], start), one_line(raw, 500)
    place = {"char_start": first, "char_end": last, "said": said}
    place["when"] = [asdict(expression) for expression in when]
    cited = citation(row).model_copy(update=place)
    return Statement(
        id=cited.id,
        text=shown if shown.startswith(who.strip()) else who + shown,
        days=days,
        moment=moment,
        clock=spoken.document["clock"] if at_once and moment > said else "",
        note=note,
        cited=cited,
        said=said,
        own=bool(when),
        document=row["document_id"],
        raw=raw,
    )
