"""Timelines: sentences by the days they speak of, of an entity, of two together, or of passages.

Where two sentences of different days have the same form and say different things, each names the
other as `later` or `earlier`; neither is withdrawn."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from difflib import SequenceMatcher
from typing import Any

from graphrag_mcp.names.extract import extract
from graphrag_mcp.packing.budget import Item, citation, one_line
from graphrag_mcp.query import context, hits, times
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.terms import counted, is_cjk, sentences
from graphrag_mcp.types import Citation

UNITS = 500  # text units of an entity that are read
STATEMENTS = 300  # that are compared with each other
ALIKE = 0.75  # of two forms of a sentence, as difflib measures it
LEAST = 3  # words of a form

Row = dict[str, Any]
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


@dataclass(slots=True)
class Statement:
    """A sentence with its day (ISO 8601, "" for none). `form`: its words, with a placeholder for
    each name and number."""

    id: str
    start: str
    text: str
    note: str = ""
    cited: Citation | None = None
    bare: str = ""  # its text without expressions of time
    form: list[str] = field(default_factory=list)
    words: str = ""
    # ids of entities: statements on different ones are not compared
    about: frozenset[str] = frozenset()
    days: tuple[tuple[str, str], ...] = ()  # of which it speaks, else on which it was said
    beside: str = ""

    def item(self) -> Item:
        text = " ".join(
            filter(None, ["-", self.start, self.text, f"[{self.id}]", self.note, self.beside])
        )
        return Item(self.id, text, self.cited, "Timeline")


def of(snapshot: Snapshot, entities: Sequence[Row]) -> tuple[list[Item], str]:
    """Items of the timeline of what names all of these entities, and a sentence on what has no date."""
    found = [*_sentences(snapshot, entities), *_claims(snapshot, entities)]
    dated = sorted((one for one in found if one.start), key=lambda one: (one.start, one.id))
    _compare(dated[:STATEMENTS], [[row["title"], *row["aliases"]] for row in entities])
    undated = len(found) - len(dated)
    said = f"{counted(undated, 'statements')} without a date are left out." if undated else ""
    return [one.item() for one in dated], said


def of_passages(
    snapshot: Snapshot, rows: Sequence[Row], passes: Callable[[Statement], bool]
) -> tuple[list[Statement], int]:
    """Statements of passages (rows with `entity_ids`) that pass, by day, and how many have no date.
    Only sentences that name an entity of their passage are compared."""
    ids = list(dict.fromkeys(id for row in rows for id in row["entity_ids"]))
    named = snapshot.by_key("entities", ids, "id", ["id", "title", "aliases"]).to_pylist()
    forms = {row["id"]: [row["title"], *row["aliases"]] for row in named}
    spoken, dated, undated = times.read(snapshot, rows), [], 0
    for row in rows:
        for start, end in sentences(row["text"]):
            if not hits.says_something(row["text"][start:end]):
                continue
            one = _statement(row, start, end, spoken[row["id"]])
            names = row["entity_ids"]
            one.about = frozenset(
                id for id in names if any(form in one.text for form in forms.get(id, ()))
            )
            undated += not one.start
            if one.start and passes(one):
                dated.append(one)
    dated.sort(key=lambda one: (one.start, one.id))
    _compare([one for one in dated if one.about][:STATEMENTS], ())
    return dated, undated


def lines(snapshot: Snapshot, entity: Row, documents: set[str]) -> list[str]:
    """Sentences of these documents (content ids) that name the entity, by day, undated ones last."""
    found = _sentences(snapshot, [entity], documents)
    found.sort(key=lambda one: (one.start or "9999", one.id))
    return [one.item().text for one in found]


def _sentences(
    snapshot: Snapshot, entities: Sequence[Row], documents: set[str] | None = None
) -> list[Statement]:
    ids = {row["id"] for row in entities}
    shared = set.intersection(*(set(row["text_unit_ids"]) for row in entities))
    units = [id for id in entities[0]["text_unit_ids"] if id in shared]
    held = snapshot.by_key("text_units", units, "id", ["n", "document_id"]).to_pylist()
    wanted = (row for row in held if documents is None or row["document_id"] in documents)
    numbers = [row["n"] for row in wanted][:UNITS]
    columns = [*context.PASSAGE, "entity_ids"]
    rows = snapshot.by_key("passages", numbers, "n", columns).to_pylist()
    rows = [row for row in rows if ids <= set(row["entity_ids"])]
    spoken = times.read(snapshot, rows)
    forms = [[row["title"], *row["aliases"]] for row in entities]
    found = []
    for row in rows:
        for start, end in sentences(row["text"]):
            text = row["text"][start:end]
            named = all(any(form in text for form in some) for some in forms)
            if named and hits.says_something(text):
                found.append(_statement(row, start, end, spoken[row["id"]]))
    return found


def _statement(row: Row, start: int, end: int, spoken: times.Times) -> Statement:
    text, first = row["text"][start:end], row["char_start"] + start
    when = [one for one in spoken.when if first <= one.char_start < row["char_start"] + end]
    above = times.said_at(spoken, first)
    days = [one.start for one in when] or [above][: bool(above)]
    words = times.spoken(row["text"], row["char_start"], when)
    cited = citation(row).model_copy(
        update={
            "char_start": first,
            "char_end": row["char_start"] + end,
            "said": above,
            "when": [asdict(one) for one in when],
        }
    )
    bare = text
    for one in when:
        bare = bare.replace(words[one], " ")
    intervals = tuple((one.start, one.end) for one in when) or ((above, above),)[: bool(above)]
    return Statement(
        cited.id,
        days[0] if days else "",
        one_line(text, 500),
        times.note(when, words, one_line(text, 4_000)) or (f"(said {above})" if above else ""),
        cited,
        bare,
        [],
        " ".join(_WORD.findall(bare)).casefold(),
        frozenset(),
        intervals,
    )


def _form(text: str, forms: Sequence[Sequence[str]]) -> list[str]:
    """The words of a sentence; the entity is `=`, other names and numbers are `_`."""
    own = {form for some in forms for form in some}
    for mention in sorted(extract(text), key=lambda one: -one.start):
        if mention.strong or mention.form in own:
            sign = " = " if mention.form in own else " _ "
            text = text[: mention.start] + sign + text[mention.end :]
    for form in sorted(own, key=len, reverse=True):
        text = text.replace(form, " = ")
    text = re.sub(r"\d[\d.,:]*", " _ ", text)
    words = re.findall(r"[=_]|[^\W_]+(?:['’-][^\W_]+)*", text.casefold())
    return [part for word in words for part in (word if is_cjk(word[0]) else [word])]


def _compare(statements: Sequence[Statement], forms: Sequence[Sequence[str]]) -> None:
    """Say beside each statement which one of another day has the same form and says another thing."""
    for one in statements:
        one.form = _form(one.bare, forms)
    for at, one in enumerate(statements):
        if len(one.form) < LEAST:
            continue
        for other in statements[at + 1 :]:
            if other.start[: len(one.start)] == one.start or one.words == other.words:
                continue
            if (one.about or other.about) and not one.about & other.about:
                continue
            if _same_kind(one.form, other.form):
                one.beside = one.beside or f"(later: [{other.id}] {other.start})"
                other.beside = f"(earlier: [{one.id}] {one.start})"
                break


def _same_kind(one: Sequence[str], other: Sequence[str]) -> bool:
    if len(other) < LEAST or not set(one) & set(other) - {"=", "_"}:
        return False
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    return matcher.real_quick_ratio() >= ALIKE and matcher.ratio() >= ALIKE


def _claims(snapshot: Snapshot, entities: Sequence[Row]) -> list[Statement]:
    """Claims of a model on the entities, by the day from which they hold."""
    found = []
    for row in context.claim_rows(snapshot, entities) if len(entities) == 1 else ():
        start, end = row["start_date"], row["end_date"]
        until = f" until {end}" if end and end != start else ""
        text = f"{one_line(row['subject'], 60)}: {one_line(row['description'], 300)}"
        note = f"(claim{until}, {one_line(row['status'], 20)})"
        found.append(Statement(f"k{row['n']}", start if start[:4].isdigit() else "", text, note))
    return found
