"""Notes, and what has become of the text that they cite.

A note is a document whose front matter says `kind: note`. Its citations (text/citing.py) are compared
with the documents of the generation that is asked: nothing of it is stored."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from graphrag_mcp.packing.budget import TITLE, one_line, passage_alias
from graphrag_mcp.query import times
from graphrag_mcp.query.pages import folders, uris_of
from graphrag_mcp.sources import renames
from graphrag_mcp.sources.decode import front_matter
from graphrag_mcp.store.tables import Snapshot, notes_of, once, rows_of, values_of
from graphrag_mcp.text import citing
from graphrag_mcp.text.prose import readable
from graphrag_mcp.text.terms import counted, lists_of, terms

State = Literal["same", "changed", "gone"]  # gone: the corpus has no such document (any more)
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Source:
    """What a note cites, as it is now. `uri` and `document` (content id) are "" where the document is
    gone or absent. `id`: of the passage (`t12.3`), or of the document where all of it is cited or the
    text has changed; "" where there is none."""

    citation: citing.Citation
    state: State
    uri: str = ""
    document: str = ""
    id: str = ""

    @property
    def shown(self) -> str:
        """The citation as a reader of the index sees it: the id, or the name of the file."""
        if self.state == "same":
            return f"[{self.id}]"
        return f"[{self.citation.label}, {self.state} since]"


class Note(NamedTuple):
    """What a note cites, in the order of its text, and where the definitions of its citations stand in it."""

    sources: tuple[Source, ...] = ()
    definitions: Sequence[tuple[int, int]] = ()


def ids(snapshot: Snapshot) -> frozenset[str]:
    """Content ids of all notes, read once a generation."""
    return notes_of(snapshot)


def is_note(snapshot: Snapshot, document: str) -> bool:
    """Is the document with this content id a note?"""
    return document in ids(snapshot)


def sources(snapshot: Snapshot, document: str) -> tuple[Source, ...]:
    """What a note cites, in the order of its text."""
    return _note(snapshot, document).sources


def differing(old: Snapshot, snapshot: Snapshot) -> dict[str, tuple[int, int]]:
    """How many sources of a note have changed or gone, and how many it has, by uri, of the notes of which not as many
    had in an older generation."""
    before, now = _counts(old), _counts(snapshot)
    return {uri: now[uri] for uri in now if now[uri][0] not in (0, before.get(uri, (0, 0))[0])}


def _counts(snapshot: Snapshot) -> dict[str, tuple[int, int]]:
    facts = times.documents(snapshot)
    found = {facts[id].uri: sources(snapshot, id) for id in ids(snapshot)}
    return {uri: (_differ(found[uri]), len(found[uri])) for uri in sorted(found)}


def remark(snapshot: Snapshot, document: str, sure: bool = False, day: str = "") -> str:
    """`(note by Ada, 2026-05-01; 2 of 5 sources changed since)` for a note, "" for another document; `sure`: also
    that all are as they were; `day`: of the note."""
    if not is_note(snapshot, document):
        return ""
    writer = times.documents(snapshot)[document].metadata.get("writer", "")
    by = f"note by {one_line(str(writer), 60)}" if writer else "note"
    status = state(snapshot, document) if sure else since(sources(snapshot, document))
    return f"({'; '.join(filter(None, (f'{by}, {day}' if day else by, status)))})"


def state(snapshot: Snapshot, document: str) -> str:
    """What became of the sources of a note: `5 sources, unchanged`, `2 of 5 sources changed since`."""
    found = sources(snapshot, document)
    unchanged = f"{counted(len(found), 'sources')}, unchanged" if found else "names no sources"
    return since(found) or unchanged


def since(found: Sequence[Source]) -> str:
    """`2 of 5 sources changed since`; "" where all are as they were."""
    count = _differ(found)
    return f"{count} of {counted(len(found), 'sources')} changed since" if count else ""


def _differ(found: Sequence[Source]) -> int:
    return sum(source.state != "same" for source in found)


def with_ids(snapshot: Snapshot, row: Row) -> str:
    """The text of a passage of a note as it is shown: without its front matter, each citation as the id that its
    source has now, or with the name of the file where its text has changed or gone."""
    note, text = _note(snapshot, row["document_id"]), row["text"]
    for start, end in reversed(note.definitions):  # a passage may hold half of one
        start, end = (min(max(at - row["char_start"], 0), len(text)) for at in (start, end))
        text = text[:start] + text[end:]
    if not row["char_start"]:  # below, what looks like one is text
        text = text[front_matter(text)[1] :]
    now = {source.citation.key: source for source in note.sources}
    for citation in reversed([*citing.citations(text)]):  # links of earlier releases, within lines
        if citation.key in now and not citation.mark:
            text = text[: citation.start] + now[citation.key].shown + text[citation.end :]
    marks = {source.citation.mark: source.shown for source in note.sources if source.citation.mark}
    return citing.MARK.sub(lambda mark: marks.get(mark[1], mark[0]), text)


def differences(snapshot: Snapshot, document: str, kept: Callable[[citing.Fingerprint], str]) -> list[str]:
    """A heading, and for each source of a note that has changed or gone a block with its text then and
    now. `kept` gives the text of a fingerprint, "" where it was not kept."""
    found = sources(snapshot, document)
    fact = times.documents(snapshot)[document]
    same = dict.fromkeys(source.id for source in found if source.state == "same")
    head = f"[{fact.alias}] {one_line(fact.title, TITLE)}: {state(snapshot, document)}."
    blocks = [head + (f" The same: {', '.join(same)}." if same else "")]
    differing = {source.citation.key: source for source in found if source.state != "same"}
    for source in differing.values():
        old = kept(source.citation.fingerprint)
        then = readable(old) or "(the text was not kept)"
        now = "(the document is gone)"
        if source.document:
            row = _nearest(snapshot, source.document, old, source.citation.fragment)
            now = f"[{passage_alias(row)}] {readable(row['text'])}" if row else "(it has no text)"
        blocks.append(f"{source.citation.label}, {source.state} since\nthen: {then}\nnow: {now}")
    return blocks


def _nearest(snapshot: Snapshot, document: str, old: str, fragment: str) -> Row | None:
    """The passage of a document with most of the words of an old text; where the text was not kept, the one at the
    line that was cited."""
    names = ["n", "part", "parts", "position", "line_start", "line_end", "text"]
    rows = snapshot.by_key("passages", [document], "document_id", names).to_pylist()
    rows.sort(key=lambda row: row["position"])
    words, line = Counter(terms(old)), re.match(r"L(\d+)", fragment)
    at = int(line[1]) if line else 0

    def likeness(row: Row) -> tuple[int, bool]:
        shared = words & Counter(terms(row["text"])) if words else words
        return shared.total(), row["line_start"] <= at <= row["line_end"]

    return max(rows, key=likeness, default=None)


def check_of(text: str) -> str:
    """The check value of a note's text: 12 hexadecimal digits that change with it, but not with its white
    space."""
    return citing.fingerprint(text.removeprefix("\ufeff")).hash[-12:]


# ---- what became of them ---------------------------------------------------------------------------


@once
def _known(snapshot: Snapshot) -> dict[str, Note]:
    """The notes that were asked for, by content id; filled by `_note`."""
    return {}


def _note(snapshot: Snapshot, document: str) -> Note:
    """A note, read once a generation with the documents that it cites."""
    known = _known(snapshot)
    if document not in known:
        (note,) = values_of(snapshot.by_key("documents", [document], "id", ["text"])["text"]) or [""]
        uri, cited = times.documents(snapshot)[document].uri, [*citing.citations(note)]
        documents = [_document(snapshot, uri, citation) for citation in cited]
        named = list(dict.fromkeys(filter(None, documents)))
        rows = rows_of(snapshot.by_key("documents", named, "id", ["id", "text"]))
        texts = {id: citing.Searchable(text) for id, text in rows}
        names = ["document_id", "n", "part", "parts", "char_start", "char_end"]
        parts = snapshot.by_key("passages", named, "document_id", names).to_pylist()
        passages = lists_of((row["document_id"], row) for row in parts)
        found = (
            _source(snapshot, id, texts.get(id), passages.get(id, []), citation)
            for id, citation in zip(documents, cited, strict=True)
        )
        known[document] = Note(tuple(found), citing.definition_spans(note))
    return known[document]


def _source(
    snapshot: Snapshot,
    document: str,
    text: citing.Searchable | None,
    passages: Sequence[Row],
    citation: citing.Citation,
) -> Source:
    """What has become of the text that a note cites of a document, of which the text (None where it is gone) and the
    passages are given."""
    if text is None:
        return Source(citation, "gone")
    fact = times.documents(snapshot)[document]
    place = text.find(citation.fingerprint)
    if place is None or (citation.whole and not text.is_all(citation.fingerprint)):
        return Source(citation, "changed", fact.uri, document, fact.alias)
    inside = [row for row in passages if row["char_start"] <= place[0] < row["char_end"]]
    first = min(inside, key=lambda row: row["char_start"], default=None)
    id = fact.alias if citation.whole or first is None else passage_alias(first)
    return Source(citation, "same", fact.uri, document, id)


@once
def _by_uri(snapshot: Snapshot) -> dict[str, str]:
    """The content id of each document, by its uri, and by the uri that its file had before."""
    now = {fact.uri: id for id, fact in times.documents(snapshot).items()}
    renamed = renames.read(snapshot.manifest.sources)
    return {old: now[new] for old, new in renamed.items() if new in now} | now


def _document(snapshot: Snapshot, note: str, citation: citing.Citation) -> str:
    """Content id of the document that a citation names in the note with this uri; "" where there is none. A row of a
    table is named by its key, behind `#`; a line or a page of a document is, too."""
    by_uri = _by_uri(snapshot)
    uris = _uris(snapshot, note, citation.path)
    names = (name for uri in uris for name in (f"{uri}#{citation.fragment}", uri))
    return next((by_uri[name] for name in names if name in by_uri), "")


def _uris(snapshot: Snapshot, note: str, path: str) -> Iterator[str]:
    """The uris that a file or a text may have which the note with this uri names."""
    if path.startswith(("text:", "graphrag:")):
        yield path.removeprefix("graphrag:")
        return
    label, _, rest = note.partition("/")
    folder = snapshot.manifest.sources.get(label, {}).get("path", "")
    path = path.removeprefix("file://")
    if folder or os.path.isabs(path):
        whole = os.path.join(folder, os.path.dirname(rest), path)
        yield from uris_of(folders(snapshot), whole)
