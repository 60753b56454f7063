"""Views of a text unit and of a document, and the masks over credentials in their texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from graphrag_mcp.errors import NotFound
from graphrag_mcp.explorer.citing import Paper, Row, left_out, numbered, paper
from graphrag_mcp.explorer.links import Linked, links_of
from graphrag_mcp.explorer.topics import NUMBERED, Brief, Named, brief, holding, named
from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.query import context, filters, summaries, threads
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text import places
from graphrag_mcp.trust.fencing import SHOW_SECRETS, spans

ENTITIES = 24  # named beside a text unit
UNITS, TOPICS, THREAD = 400, 12, 200  # in the lists of a document


class Passage(TypedDict):
    """A text unit in full. `parts`: [start, end] of its passages, in its own code points; `places`: the
    page, slide, cells or time of each; `before` and `after`: ids of the text units beside it;
    `around`: what these have that it has not."""

    id: str
    title: str
    document: Paper
    line: int
    last_line: int
    place: str
    text: str
    parts: list[list[int]]
    places: list[str]
    before: str
    after: str
    around: dict[str, dict[str, str]]
    entities: list[Named]
    communities: list[Brief]


class Unit(TypedDict):
    """How a text unit of a document begins. `summary` is that of the section that begins there."""

    id: str
    line: int
    place: str
    first: str
    summary: str


class Document(Paper):
    summary: str
    communities: list[Brief]
    units: list[Unit]
    thread: list[Paper]
    links: Linked
    more: int


def passage(snapshot: Snapshot, n: int) -> Passage:
    """The text unit t`n`. Raises NotFound."""
    unit = numbered(snapshot, "text_units", n, "t")
    snapshot.with_places([unit])
    facts = filters.documents(snapshot)
    if unit["document_id"] not in facts:
        raise NotFound(f"the document of t{n} cannot be read", "Run doctor")
    document = paper(facts[unit["document_id"]])
    rows = sorted(context.numbered(snapshot, "passages", [n]), key=lambda row: row["part"])
    ids = list(dict.fromkeys(id for row in rows for id in row["entity_ids"]))
    members = snapshot.served("entities", ids, NUMBERED)
    members.sort(key=lambda row: (-row["degree"], row["n"]))
    start = unit["char_start"]
    parts = [[row["char_start"] - start, row["char_end"] - start] for row in rows]
    before, after = (_beside(snapshot, unit, step) for step in (-1, 1))
    around: dict[str, dict[str, str]] = {}
    if before:
        around["before"] = {"text": _open(before["text"])[: max(0, start - before["char_start"])]}
    if after:
        around["after"] = {"text": _open(after["text"])[max(0, unit["char_end"] - after["char_start"]) :]}
    return {
        "id": f"t{n}",
        "title": document["title"],
        "document": document,
        "line": unit["line_start"],
        "last_line": unit["line_end"],
        "place": places.of_row(unit),
        "text": unit["text"],
        "parts": parts,
        "places": [places.of_row(unit, start, end) for start, end in parts],
        "before": f"t{before['n']}" if before else "",
        "after": f"t{after['n']}" if after else "",
        "around": around,
        "entities": [named(row) for row in members[:ENTITIES]],
        "communities": [brief(topic) for topic in holding(snapshot, [unit["id"]]).get(unit["id"], [])],
    }


def _beside(snapshot: Snapshot, unit: Row, step: int) -> Row | None:
    """The text unit before (-1) or after (1) in the same document."""
    where = f"document_id = '{unit['document_id']}' AND chunk_index = {unit['chunk_index'] + step}"
    rows = snapshot.rows("text_units", where, ["n", "char_start", "text"]).to_pylist()
    return rows[0] if rows else None


def _open(text: str) -> str:
    """A text that is about to be cut, which may halve a credential: stars stand for it before."""
    return text if SHOW_SECRETS.get() else starred(text)


def starred(text: str) -> str:
    """The text with a star for each character of a credential, so that offsets stay right."""
    for start, end in reversed(spans(text)):
        text = f"{text[:start]}{'*' * (end - start)}{text[end:]}"
    return text


def document(snapshot: Snapshot, n: int) -> Document:
    """The document d`n`: how each of its text units begins, the topics of these, its thread of mail and
    its links. Raises NotFound."""
    rows = snapshot.by_key("documents", [n], "n", ["id"]).to_pylist()
    id = str(rows[0]["id"]) if rows else ""
    fact = filters.documents(snapshot).get(id)
    if fact is None:
        raise NotFound(f"d{n} is not in this index any more", "Search")
    columns = ["id", "n", "chunk_index", "char_start", "line_start", "text"]
    units = snapshot.by_key("text_units", [id], "document_id", columns).to_pylist()
    units.sort(key=lambda row: row["chunk_index"])
    snapshot.with_places(units[:UNITS])
    written = summaries.read(snapshot, [id]).get(id, [])
    first_of: dict[str, str] = {}  # the summary of a section, by its first text unit
    for summary in written:
        if summary.place:
            begins = (row["id"] for row in units if row["char_start"] >= summary.start)
            first_of.setdefault(next(begins, ""), summary.text)
    return {
        **paper(fact),
        "summary": "".join(summary.text for summary in written if not summary.place),
        "communities": _leaves(snapshot, [row["id"] for row in units])[:TOPICS],
        "units": [
            {
                "id": f"t{row['n']}",
                "line": row["line_start"],
                "place": places.of_row(row),
                "first": one_line(row["text"][:800], 200),
                "summary": first_of.get(row["id"], ""),
            }
            for row in units[:UNITS]
        ],
        "thread": [paper(mail) for mail in threads.of_document(snapshot, id)[:THREAD]],
        "links": links_of(snapshot, id),
        "more": left_out(units, UNITS),
    }


def _leaves(snapshot: Snapshot, units: Sequence[str]) -> list[Brief]:
    """The finest topics of text units."""
    leaves = {path[-1].n: brief(path[-1]) for path in holding(snapshot, units).values() if path}
    return list(leaves.values())
