"""The documents on a subject: those that name an entity, those that hold what stands in quotes, else those that
say most on a question."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.query import digests, entities, hits, literals, local, render, text_search
from graphrag_mcp.query.filters import Part
from graphrag_mcp.query.notes import missing
from graphrag_mcp.query.plugin import plugin_of
from graphrag_mcp.query.survey import Line, survey
from graphrag_mcp.store.tables import Snapshot, values_of
from graphrag_mcp.text import quote
from graphrag_mcp.text.terms import lists_of, normalise_name

NAME_WORDS = 5  # of a subject that may be a name
SUBJECT = 80  # characters of a subject in the line above its list

# A subject of a list: what stands between commas and their like, not those of a number or in quotation marks.
_PART = re.compile(r'(?:"[^"]{0,200}"|[“«「][^”»」]{0,200}[”»」]|\d[,;]\d|[^,;，；、\n])++')


@dataclass(frozen=True, slots=True)
class Row:
    """A document on a subject (content id): its line of about so many characters, and the documents
    whose lines have the same words."""

    document: str
    line: Callable[[int], str]
    same: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """The documents on a subject. `what` is said of them behind their number; `ranked`: the best
    stands first; `weaker` rows say less on it."""

    what: str
    rows: Sequence[Row] = ()
    weaker: Sequence[Row] = ()
    ranked: bool = False
    note: str = ""

    def without(self, documents: frozenset[str]) -> Found:
        """What is found beside these documents (content ids)."""
        rows = [row for row in self.rows if row.document not in documents]
        weaker = [row for row in self.weaker if row.document not in documents]
        return replace(self, rows=rows, weaker=weaker)


def subjects(snapshot: Snapshot, query: str) -> list[str]:
    """The subjects that a query lists. A question, a name, and what a colon says more of are one."""
    found = dict.fromkeys(part.strip() for part in _PART.findall(query) if part.strip())
    if len(found) < 2 or query.endswith(("?", "？")) or ":" in query:
        return [query]
    row, _ = entities.resolve(snapshot, query)
    return [query] if row is not None and _is_called(row, query) else list(found)


def on(part: Part, subject: str) -> Found:
    """The documents on a subject, of those that pass the filters."""
    bare = subject.strip("\"'“”«» ")
    row = entities.resolve(part[1], bare)[0] if 0 < len(bare.split()) <= NAME_WORDS else None
    if row is not None and _is_called(row, entities.called(bare)):
        if plugin_of(row) is None:
            return _naming(part, row)
        # Documents use a definition without a statement.
        subject = f'"{row["title"].rpartition(".")[2]}"'
    return _holding(part, subject) if literals.quoted(subject) else _saying(part, subject)


def _is_called(row: Mapping[str, Any], asked: str) -> bool:
    """Is this a whole name of the entity, or its id? A word of its title is none: "broadband" of
    "Broadband Britain", "Zumstein" of "Beat Zumstein"."""
    key = normalise_name(asked)
    if key == row["key"] or asked == f"e{row['n']}":
        return True
    return key in row["names"] and not entities.holds(row, key)


def _naming(part: Part, entity: Mapping[str, Any]) -> Found:
    """Every document in which the index knows the entity, or that holds one of its names."""
    _, snapshot, kept = part
    aliases = [form for form in entity["aliases"] if not entities.holds(entity, normalise_name(form))]
    forms = [entity["title"], *aliases]
    units = snapshot.by_key("text_units", entity["text_unit_ids"], "id", ["document_id"])
    ids = sorted(set(values_of(units["document_id"])))
    columns = ["id", "document_id", "position", "entity_ids"]
    rows = snapshot.by_key("passages", ids, "document_id", columns).to_pylist()
    rows.sort(key=lambda row: row["position"])
    known = entities.name_ids([entity])
    passage: dict[str, str] = {}
    # A passage with the name in its text says more of it than one that the index knows to speak of it.
    for row in text_search.naming(snapshot, forms, kept):
        if any(literals.names(row["text"], form, whole=True) for form in forms):
            passage.setdefault(row["document_id"], row["id"])
    for row in rows:
        if not known.isdisjoint(row["entity_ids"]):
            passage.setdefault(row["document_id"], row["id"])

    def line(id: str, room: int) -> str:
        for hit in hits.read(snapshot, [(id, 1.0)]):
            text = digests.digest(snapshot, hit.body, hit.citation.title, room, forms)
            return render.line(hit, text)
        return ""

    found = [Row(document, partial(line, id)) for document, id in passage.items()]
    return Found(f'naming "{one_line(forms[0], SUBJECT)}"', found)


def _holding(part: Part, subject: str) -> Found:
    """Every document that holds what stands in quotes, with its best sentence or line of it."""
    _, snapshot, kept = part
    found, written, note = text_search.matches(snapshot, subject, kept, "document_id")
    best: dict[str, str] = {}
    for passage in found.passages:
        best.setdefault(passage.document_id, passage.id)

    def line(id: str, _: int) -> str:
        read = hits.read(snapshot, [(id, 1.0)])
        return render.line_of(read[0], {}, written) if read else ""

    rows = [Row(document, partial(line, id)) for document, id in best.items()]
    most = "most of " if note else ""
    return Found(f"holding {most}{one_line(subject, SUBJECT)}", rows)


def _saying(part: Part, subject: str) -> Found:
    """The documents that say most on a question, the best first."""
    what = f'ranked for "{one_line(subject, SUBJECT)}"'
    source = local.asked(part, subject)
    if source is None:
        return Found(what, ranked=True)
    surveyed, worth = survey([source], beginnings=True), source.found.terms
    best = surveyed.lines[: surveyed.on_it]
    of_document = lists_of((line.hit.document, line) for line in best)
    known = set(of_document)
    rows: list[Row] = []
    for id, lines in of_document.items():
        same = dict.fromkeys(other for line in lines for other in line.same if other not in known)
        known |= same.keys()
        rows.append(Row(id, partial(_extract, lines, worth), tuple(same)))
    weaker = [
        Row(line.hit.document, partial(_weaker, line, worth))
        for line in surveyed.lines[surveyed.on_it :]
        if line.hit.document not in known
    ]
    others = f" ({surveyed.others:,} more hold some of its words)" if surveyed.others else ""
    return Found(f"{what}{others}", rows, weaker, True, missing(part[1], source.found))


def _weaker(line: Line, worth: Mapping[str, float], _: int) -> str:
    return render.line(line.hit, line.told if line.beginning else quote.clipped(line.told, worth, render.LINE))


def _extract(lines: Sequence[Line], worth: Mapping[str, float], room: int) -> str:
    """The best sentences of one document on a question, or what was written of their texts, in about
    `room` characters; at least one."""
    chosen, left = [lines[0]], room - len(lines[0].told)
    for line in lines[1:]:
        if len(line.told) <= left:
            chosen.append(line)
            left -= len(line.told)
    chosen.sort(key=lambda line: line.hit.citation.char_start)
    first = (
        chosen[0].told
        if chosen[0].summary or chosen[0].beginning
        else quote.clipped(chosen[0].text, worth, max(room, render.LINE))
    )
    texts = [first, *(f"[{line.hit.id}] {line.told}" for line in chosen[1:])]
    also = dict.fromkeys(id for line in lines for id in line.hit.also)
    return render.line(replace(chosen[0].hit, also=tuple(also)), " ".join(texts))
