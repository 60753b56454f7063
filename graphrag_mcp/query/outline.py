"""The outline of a document: its headings, the summaries of its sections, or how its passages begin."""

from __future__ import annotations

from collections.abc import Sequence

from graphrag_mcp import plugins
from graphrag_mcp.packing.budget import one_line, passage_alias
from graphrag_mcp.query import digests, links, summaries, threads
from graphrag_mcp.query.pages import documents_of
from graphrag_mcp.query.times import documents
from graphrag_mcp.sources.decode import headings
from graphrag_mcp.store.tables import Snapshot, values_of
from graphrag_mcp.text import places
from graphrag_mcp.text.prose import readable
from graphrag_mcp.text.terms import Lines, counted


def outline(snapshot: Snapshot, asked: str) -> tuple[str, list[str], str]:
    """What stands above the outline of a document, its lines, and a hint. The document is `asked` for by
    id, uri, title or file. Each heading has an id that `get_source` takes."""
    id, *others = documents_of(snapshot, asked)
    fact = documents(snapshot)[id]
    alias, uri = fact.alias, fact.uri
    (text,) = values_of(snapshot.by_key("documents", [id], "id", ["text"])["text"])
    columns = ["id", "n", "part", "parts", "position", "text"]
    rows = snapshot.by_key("passages", [id], "document_id", columns).to_pylist()
    head = f"[{alias}] {one_line(fact.title, 120)} ({uri}): {len(text):,} characters, {counted(len(rows), 'passages')}."
    if others:
        head += f" {len(others) + 1} documents have this name: list_documents gives their ids."
    plugged = plugins.outline(uri, text)
    if plugged and (parts := plugged.parts()):
        lines = _parts(alias, text, parts)
    else:
        written = summaries.read(snapshot, [id]).get(id, [])
        head += "".join(f" {summary.text}" for summary in written if summary.place == 0)
        sections = [summary for summary in written if summary.place]
        lines = _headings(alias, text, sections) or summaries.outline(snapshot, sections)
    if not lines:
        snapshot.with_places(rows)
        for row in sorted(rows, key=lambda row: row["position"]):
            begins = one_line(readable(row["text"][:400]), digests.SENTENCE)
            place = places.of_row(row)
            lines.append(f"- [{passage_alias(row)}] {f'({place}) ' if place else ''}{begins}")
    linked, call = links.of_outline(snapshot, id)
    notes = filter(None, (threads.position(snapshot, id), linked))
    return " ".join([head, *notes]), lines, f"Its links: {call}." if call else ""


def _headings(alias: str, text: str, sections: Sequence[summaries.Summary]) -> list[str]:
    """Each heading, with the summary of the section that begins with it."""
    lines = []
    for number, (at, level, words) in enumerate(headings(text), 1):
        begun = [summary for summary in sections if summary.start <= at]
        sections = sections[len(begun) :]
        about = "".join(f": {summary.text}" for summary in begun)
        lines.append(f"{'  ' * (level - 1)}- [{alias}#{number}] {readable(words)}{about}")
    return lines


def _parts(alias: str, text: str, parts: Sequence[plugins.Part]) -> list[str]:
    """The parts that a plug-in finds in a document, with their lines."""
    lines, found = Lines(text), []
    for number, part in enumerate(parts, 1):
        place = f"lines {lines.at(part.start)}-{lines.at(max(part.end - 1, part.start))}"
        about = f": {one_line(part.about, digests.SENTENCE)}" if part.about else ""
        head = f"{'  ' * part.depth}- [{alias}#{number}] {one_line(part.title, 160)}"
        found.append(f"{head}, {place}{about}")
    return found
