"""Notes, and what has become of the text that they cite.

A note is a document whose front matter says `kind: note`. Its citations (text/citing.py) are compared
with the documents of the generation that is asked: nothing of it is stored."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from graphrag_mcp.packing.budget import one_line, passage_alias
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
Passages = list[tuple[Row, Counter[str]]]  # with their terms

_WITHIN = re.compile(r"(?:L\d+(?:-L?\d+)?|page=\d+)")  # fragments that name a place in a document


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


def is_note(snapshot: Snapshot, document: str) -> bool:
    """Is the document with this content id a note?"""
    return document in ids(snapshot)


def ids(snapshot: Snapshot) -> frozenset[str]:
    """Content ids of all notes, read once a generation."""
    return notes_of(snapshot)


def notes(snapshot: Snapshot) -> list[str]:
    """Content ids of all notes, by uri."""
    facts = times.documents(snapshot)
    return sorted(ids(snapshot), key=lambda id: facts[id]["uri"])


def sources(snapshot: Snapshot, document: str) -> tuple[Source, ...]:
    """What a note cites, in the order of its text."""
    known = _known(snapshot)
    if document not in known:
        known |= _read(snapshot, [document])
    return known[document]


def changed(snapshot: Snapshot, among: Collection[str]) -> dict[str, tuple[int, int]]:
    """How many sources of each of these notes have changed or gone, and how many it has, of the notes of which
    some have; by uri."""
    known, note_ids = _known(snapshot), [id for id in notes(snapshot) if id in among]
    known |= _read(snapshot, [id for id in note_ids if id not in known])
    facts = times.documents(snapshot)
    counts = {facts[id]["uri"]: (_differing(known[id]), len(known[id])) for id in note_ids}
    return {uri: pair for uri, pair in counts.items() if pair[0]}


def differing(old: Snapshot, snapshot: Snapshot) -> dict[str, tuple[int, int]]:
    """`changed` for the notes whose sources differ now from those in an older generation."""
    before = changed(old, ids(old))
    now = changed(snapshot, ids(snapshot))
    return {uri: pair for uri, pair in now.items() if before.get(uri, (0, 0))[0] != pair[0]}


def told(snapshot: Snapshot, document: str, sure: bool = False, day: str = "") -> str:
    """`(note by Ada, 2026-05-01; 2 of 5 sources changed since)` for a note, "" for another document; `sure`: also
    that all are as they were; `day`: of the note."""
    if not is_note(snapshot, document):
        return ""
    writer = times.documents(snapshot)[document]["metadata"].get("writer", "")
    by = f"note by {one_line(str(writer), 60)}" if writer else "note"
    by = f"{by}, {day}" if day else by
    status = state(snapshot, document) if sure else since(sources(snapshot, document))
    return f"({by}; {status})" if status else f"({by})"


def state(snapshot: Snapshot, document: str) -> str:
    """What became of the sources of a note: `5 sources, unchanged`, `2 of 5 sources changed since`."""
    found = sources(snapshot, document)
    unchanged = f"{counted(len(found), 'sources')}, unchanged" if found else "names no sources"
    return since(found) or unchanged


def since(found: Sequence[Source]) -> str:
    """`2 of 5 sources changed since`; "" where all are as they were."""
    count = _differing(found)
    return f"{count} of {counted(len(found), 'sources')} changed since" if count else ""


def with_ids(snapshot: Snapshot, row: Row) -> str:
    """The text of a passage of a note as it is shown: without its front matter, each citation as the id that its
    source has now, or with the name of the file where its text has changed or gone."""
    document, text = row["document_id"], row["text"]
    # A passage may hold half of one.
    for start, end in reversed(_definitions_of(snapshot, document)):
        start, end = (min(max(at - row["char_start"], 0), len(text)) for at in (start, end))
        text = text[:start] + text[end:]
    if not row["char_start"]:  # below, what looks like one is text
        text = text[front_matter(text)[1] :]
    found = sources(snapshot, document)
    now = {source.citation.key: source for source in found}
    parts, at = [], 0
    for citation in citing.citations(text):
        source = now.get(citation.key)
        if source is None or citation.mark:
            continue
        parts += [text[at : citation.start], _shown(source)]
        at = citation.end
    text = "".join([*parts, text[at:]])
    marked = {source.citation.mark: source for source in found if source.citation.mark}

    def shown(mark: re.Match[str]) -> str:
        return _shown(marked[mark[1]]) if mark[1] in marked else mark[0]

    return citing.MARK.sub(shown, text) if marked else text


def _shown(source: Source) -> str:
    """A citation as a reader of the index sees it."""
    if source.state == "same":
        return f"[{source.id}]"
    return f"[{source.citation.label}, {source.state} since]"


def differences(
    snapshot: Snapshot, document: str, kept: Callable[[citing.Fingerprint], str]
) -> list[str]:
    """A heading, and for each source of a note that has changed or gone a block with its text then and
    now. `kept` gives the text of a fingerprint, "" where it was not kept."""
    found = sources(snapshot, document)
    alias, _, title, _, _ = times.documents(snapshot)[document]["document"]
    status = state(snapshot, document)
    same = dict.fromkeys(source.id for source in found if source.state == "same")
    head = f"[{alias}] {one_line(title, 120)}: {status}."
    blocks = [head + (f" The same: {', '.join(same)}." if same else "")]
    differing = {source.citation.key: source for source in found if source.state != "same"}
    passages: dict[str, Passages] = {}
    for source in differing.values():
        if source.document and source.document not in passages:
            passages[source.document] = _passages(snapshot, source.document)
        old = kept(source.citation.fingerprint)
        then = readable(old) or "(the text was not kept)"
        now = "(the document is gone)"
        if source.document:
            row = _nearest(passages[source.document], old, source.citation.fragment)
            now = f"[{passage_alias(row)}] {readable(row['text'])}" if row else "(it has no text)"
        blocks.append(f"{source.citation.label}, {source.state} since\nthen: {then}\nnow: {now}")
    return blocks


def _passages(snapshot: Snapshot, document: str) -> Passages:
    """The passages of a document in their order."""
    names = ["n", "part", "parts", "position", "line_start", "line_end", "text"]
    rows = snapshot.by_key("passages", [document], "document_id", names).to_pylist()
    rows.sort(key=lambda row: row["position"])
    return [(row, Counter(terms(row["text"]))) for row in rows]


def _nearest(passages: Passages, old: str, fragment: str) -> Row | None:
    """Of the passages of a document the one with most of the words of an old text; the one at the line that was
    cited where the text was not kept."""
    line = re.match(r"L(\d+)", fragment)
    if not old and line:
        there = [
            passage
            for passage in passages
            if passage[0]["line_start"] <= int(line[1]) <= passage[0]["line_end"]
        ]
        passages = there or passages
    words = Counter(terms(old))
    return max(passages, key=lambda passage: (words & passage[1]).total(), default=(None,))[0]


def check_of(text: str) -> str:
    """The check value of a note's text: 12 hexadecimal digits that change with it, but not with its white
    space."""
    return citing.fingerprint(text.removeprefix("\ufeff")).hash[-12:]


# ---- what became of them ---------------------------------------------------------------------------


@once
def _known(snapshot: Snapshot) -> dict[str, tuple[Source, ...]]:
    """The sources of the notes that were asked for, by content id of the note."""
    return {}


@once
def _definitions(snapshot: Snapshot) -> dict[str, list[tuple[int, int]]]:
    """Where the definitions of the notes that were shown stand, by content id of the note."""
    return {}


def _definitions_of(snapshot: Snapshot, document: str) -> list[tuple[int, int]]:
    known = _definitions(snapshot)
    if document not in known:
        for text in values_of(snapshot.by_key("documents", [document], "id", ["text"])["text"]):
            known[document] = citing.definition_spans(text)
    return known.get(document, [])


@once
def _by_uri(snapshot: Snapshot) -> dict[str, str]:
    return {fact["uri"]: id for id, fact in times.documents(snapshot).items()}


def _differing(found: Iterable[Source]) -> int:
    return sum(source.state != "same" for source in found)


def _read(snapshot: Snapshot, note_ids: Sequence[str]) -> dict[str, tuple[Source, ...]]:
    """The sources of several notes; each document that they cite is read once."""
    facts, resolved = times.documents(snapshot), _resolver(snapshot)
    cited = _citations(snapshot, note_ids)
    of = {
        (note, number): resolved(facts[note]["uri"], citation)
        for note, citations in cited.items()
        for number, citation in enumerate(citations)
    }
    found: dict[tuple[str, int], Source] = {}
    by_document = lists_of((id, key) for key, id in of.items())
    order = sorted(by_document)
    for at in range(0, len(order), times.AT_ONCE):
        part = [id for id in order[at : at + times.AT_ONCE] if id]
        texts = dict(rows_of(snapshot.by_key("documents", part, "id", ["id", "text"])))
        names = ["document_id", "n", "part", "parts", "char_start", "char_end"]
        rows = snapshot.by_key("passages", part, "document_id", names).to_pylist()
        passages = lists_of((row["document_id"], row) for row in rows)
        for document in order[at : at + times.AT_ONCE]:
            keys = by_document[document]
            citations = [cited[note][number] for note, number in keys]
            text, inside = texts.get(document, ""), passages.get(document, [])
            compared = _compared(snapshot, document, text, inside, citations)
            found |= zip(keys, compared, strict=True)
    return {
        note: tuple(found[note, number] for number in range(len(citations)))
        for note, citations in cited.items()
    }


def _citations(snapshot: Snapshot, note_ids: Sequence[str]) -> dict[str, list[citing.Citation]]:
    """The citations of these notes."""
    cited: dict[str, list[citing.Citation]] = {id: [] for id in note_ids}
    rows = snapshot.by_key("documents", list(note_ids), "id", ["id", "text"])
    return cited | {id: list(citing.citations(text)) for id, text in rows_of(rows)}


def _resolver(snapshot: Snapshot) -> Callable[[str, citing.Citation], str]:
    """`_document`, worked out once for each folder of notes and place that is cited."""
    known: dict[tuple[str, str, str], str] = {}

    def resolved(note: str, citation: citing.Citation) -> str:
        key = note.rpartition("/")[0], citation.path, citation.fragment
        if key not in known:
            known[key] = _document(snapshot, note, citation)
        return known[key]

    return resolved


def _document(snapshot: Snapshot, note: str, citation: citing.Citation) -> str:
    """Content id of the document that a citation names; "" where there is none."""
    by_uri, renamed = _by_uri(snapshot), _renamed(snapshot)
    key = "" if _WITHIN.fullmatch(citation.fragment) else citation.fragment
    for uri in _uris(snapshot, note, citation):
        for file in (uri, renamed.get(uri, "")):
            for name in (f"{file}#{key}", file) if key else (file,):
                if name in by_uri:
                    return by_uri[name]
    return ""


@once
def _renamed(snapshot: Snapshot) -> dict[str, str]:
    return renames.read(snapshot.manifest.sources)


def _uris(snapshot: Snapshot, note: str, citation: citing.Citation) -> list[str]:
    """The uris that the file or the text of a citation in the note with this uri may have."""
    path = citation.path
    if path.startswith("text:"):
        return [path]
    if path.startswith("graphrag:"):
        return [path.partition(":")[2]]
    label, _, rest = note.partition("/")
    folder = snapshot.manifest.sources.get(label, {}).get("path", "")
    path = path.removeprefix("file://")
    if not folder and not os.path.isabs(path):
        return []
    return uris_of(folders(snapshot), os.path.join(folder, os.path.dirname(rest), path))


def _compared(
    snapshot: Snapshot,
    document: str,
    content: str,
    passages: Sequence[Row],
    cited: Sequence[citing.Citation],
) -> Iterable[Source]:
    """The citations of one document, of which the text and the passages are given, with what became of the text that
    they cite."""
    if not document:
        yield from (Source(citation, "gone") for citation in cited)
        return
    alias, _, _, uri, _ = times.documents(snapshot)[document]["document"]
    text = citing.Searchable(content)
    places: dict[citing.Fingerprint, tuple[int, int] | None] = {}
    for citation in cited:
        if citation.fingerprint not in places:
            places[citation.fingerprint] = text.find(citation.fingerprint)
        place = places[citation.fingerprint]
        whole = citation.whole
        if place is None or (whole and not text.is_all(citation.fingerprint)):
            yield Source(citation, "changed", uri, document, alias)
            continue
        inside = [row for row in passages if row["char_start"] <= place[0] < row["char_end"]]
        first = min(inside, key=lambda row: row["char_start"], default=None)
        id = alias if whole or first is None else passage_alias(first)
        yield Source(citation, "same", uri, document, id)
