"""Notes, and what has become of the text that they cite.

A note is a document whose front matter says `kind: note`. Its citations (text/citing.py) are compared
with the documents of the generation that is asked: nothing of it is stored."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Literal

from graphrag_mcp.packing.budget import one_line, passage_alias
from graphrag_mcp.query import times
from graphrag_mcp.query.pages import folders, uris_of
from graphrag_mcp.sources import renames
from graphrag_mcp.sources.decode import front_matter
from graphrag_mcp.store.tables import Snapshot, notes_of, once, rows_of, values_of
from graphrag_mcp.text import citing
from graphrag_mcp.text.citing import file_and_key
from graphrag_mcp.text.prose import readable
from graphrag_mcp.text.terms import Lines, content_id, counted, lists_of, terms

State = Literal["same", "changed", "gone", "absent"]  # absent: a file that this corpus lacks
Row = dict[str, Any]
Passages = list[tuple[Row, Counter[str]]]  # with their terms

DIFFERING = ("changed", "gone")
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
    """`changed` for the notes whose sources differ now from those in an older generation. Only
    notes that are new, or that cite a document whose text is another now, are compared."""
    before, now = ids(old), ids(snapshot)
    affected, facts = set(now - before), times.documents(snapshot)
    if times.documents(old).keys() != facts.keys():  # a note may cite a note
        was, is_ = _resolver(old), _resolver(snapshot)
        for note, citations in _citations(snapshot, sorted(now & before)).items():
            uri = facts[note]["uri"]
            # What is gone under its name may stand under another one, then or now.
            pairs = [(was(uri, citation), is_(uri, citation)) for citation in citations]
            if any(then != now or not now for then, now in pairs):
                affected.add(note)
    then, uris = _by_uri(old), {facts[id]["uri"] for id in affected}
    earlier = changed(old, {id for uri in uris if (id := then.get(uri, "")) in before})
    return {
        uri: pair
        for uri, pair in changed(snapshot, affected).items()
        if earlier.get(uri, (0, 0))[0] != pair[0]
    }


def told(snapshot: Snapshot, document: str, sure: bool = False, day: str = "") -> str:
    """`(note by Ada, 2026-05-01; 2 of 5 sources changed since)` for a note, "" for another document; `sure`: also
    that all are as they were, and what became of the collection; `day`: of the note."""
    if not is_note(snapshot, document):
        return ""
    writer = times.documents(snapshot)[document]["metadata"].get("writer", "")
    by = f"note by {one_line(str(writer), 60)}" if writer else "note"
    by = f"{by}, {day}" if day else by
    status = state(snapshot, document) if sure else since(sources(snapshot, document))
    return f"({by}; {status})" if status else f"({by})"


def state(snapshot: Snapshot, document: str) -> str:
    """What became of the sources of a note, and of the collection since it was written or replaced:
    `5 sources, unchanged; 668 documents as they were`."""
    found = sources(snapshot, document)
    total, absent = (
        counted(len(found), "sources"),
        sum(source.state == "absent" for source in found),
    )
    same = f"{absent} of {total} not in this corpus" if absent else f"{total}, unchanged"
    status = since(found) or (same if found else "names no sources")
    return "; ".join(filter(None, (status, _collection_since(snapshot, document))))


@once
def seen(snapshot: Snapshot) -> citing.Fingerprint:
    """The number of the documents of a generation, notes aside, and a hash of their texts: where a note has the same,
    there is no text that its writer could not have found, under whatever path, in whatever corpus. The bytes of the
    files would not tell: a picture that is described later, or a better reader, gives another text of the same file."""
    found = sorted(
        content_id(text)
        for batch in snapshot.batches("documents", ["id", "text"])
        for id, text in rows_of(batch)
        if id not in ids(snapshot)
    )
    return citing.Fingerprint(len(found), sha256(" ".join(found).encode()).hexdigest()[:16])


def _collection_since(snapshot: Snapshot, document: str) -> str:
    """What became of the documents since a note was written; "" where the note does not say which there were."""
    (text,) = values_of(snapshot.by_key("documents", [document], "id", ["text"])["text"])
    then, now = citing.seen(text), seen(snapshot)
    if then is None:
        return ""
    if then == now:
        return (
            f"{counted(now.length, 'documents')} as {'it was' if now.length == 1 else 'they were'}"
        )
    if then.length == now.length:
        return "documents edited or replaced"
    return f"{counted(then.length, 'documents')} then, {now.length:,} now"


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
    became = "not in this corpus" if source.state == "absent" else f"{source.state} since"
    return f"[{source.citation.label}, {became}]"


def differences(
    snapshot: Snapshot, document: str, kept: Callable[[citing.Fingerprint], str]
) -> list[str]:
    """A heading, and for each source of a note that has changed or gone a block with its text then and
    now. `kept` gives the text of a fingerprint, "" where it was not kept."""
    found = sources(snapshot, document)
    alias, _, title, _, _ = times.documents(snapshot)[document]["document"]
    status = state(snapshot, document).partition("; ")[0]
    same = dict.fromkeys(source.id for source in found if source.state == "same")
    head = f"[{alias}] {one_line(title, 120)}: {status}."
    blocks = [head + (f" The same: {', '.join(same)}." if same else "")]
    differing = {source.citation.key: source for source in found if source.state in DIFFERING}
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
    return sum(source.state in DIFFERING for source in found)


def _read(snapshot: Snapshot, note_ids: Sequence[str]) -> dict[str, tuple[Source, ...]]:
    """The sources of several notes; each document that they cite is read once."""
    facts, resolved = times.documents(snapshot), _resolver(snapshot)
    cited = _citations(snapshot, note_ids)
    of: dict[tuple[str, int], str] = {}
    for note, citations in cited.items():
        for number, citation in enumerate(citations):
            of[note, number] = resolved(facts[note]["uri"], citation)
    found = _of_documents(snapshot, cited, of)
    found |= _moved_rows(
        snapshot, {key: source for key, source in found.items() if source.state != "same"}
    )
    gone = {key: source for key, source in found.items() if source.state == "gone"}
    found |= _of_documents(snapshot, cited, _under_other_names(snapshot, gone))
    for (note, number), source in gone.items():
        if found[note, number] is source and _is_absent(snapshot, facts[note]["uri"], source):
            found[note, number] = replace(source, state="absent")
    return {
        note: tuple(found[note, number] for number in range(len(citations)))
        for note, citations in cited.items()
    }


def _of_documents(
    snapshot: Snapshot,
    cited: Mapping[str, Sequence[citing.Citation]],
    of: Mapping[tuple[str, int], str],
) -> dict[tuple[str, int], Source]:
    """The sources by content id of the note and number, each compared with the document that `of` gives for it."""
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
            text, document_passages = texts.get(document, ""), passages.get(document, [])
            found |= zip(
                keys, _compared(snapshot, document, text, document_passages, citations), strict=True
            )
    return found


def _under_other_names(
    snapshot: Snapshot, gone: Mapping[tuple[str, int], Source]
) -> dict[tuple[str, int], str]:
    """The documents in which texts stand whose own file is gone: it has another name, or another one was like it, or
    the note was moved. A part of a document counts at its line or in a file of the same name, and where all documents
    that have it so are alike: what many files say ("Approved.") is no evidence that one was renamed. For a file of which
    the index saw that it was deleted, only documents count that came after the note: a twin was another source."""
    facts, deleted = times.documents(snapshot), _renamed(snapshot)
    after = {
        key: _number(facts[key[0]])
        for key, source in gone.items()
        if any(uri in deleted for uri in _uris(snapshot, facts[key[0]]["uri"], source.citation))
    }
    named = lists_of((_file_name(source.citation.path), key) for key, source in gone.items())
    moved = [id for id, fact in facts.items() if _file_name(fact["uri"]) in named]
    parts = (moved[at : at + times.AT_ONCE] for at in range(0, len(moved), times.AT_ONCE))
    rows = (snapshot.by_key("documents", part, "id", ["id", "text"]) for part in parts)
    found = _holding(snapshot, gone, rows, lambda id, _: named[_file_name(facts[id]["uri"])], after)
    rest = {key: source.citation for key, source in gone.items() if key not in found}
    if rest:  # few where a folder has another name
        whole = lists_of((of.fingerprint.length, key) for key, of in rest.items() if of.whole)
        parts_of = [key for key, of in rest.items() if not of.whole]
        apart = ids(snapshot)  # a note repeats what its sources say

        def asked(id: str, length: int) -> Sequence[tuple[str, int]]:
            return [*whole.get(length, ()), *(() if id in apart else parts_of)]

        every = snapshot.batches("documents", ["id", "text"], times.AT_ONCE)
        found |= _holding(snapshot, gone, every, asked, after)
    return found


def _holding(
    snapshot: Snapshot,
    gone: Mapping[tuple[str, int], Source],
    tables: Iterable[Any],
    asked: Callable[[str, int], Sequence[tuple[str, int]]],
    after: Mapping[tuple[str, int], int],
) -> dict[tuple[str, int], str]:
    """The documents of these tables (`id`, `text`) that hold what is gone; `asked`: what a document of this length is
    asked for; `after`: the number above which it counts."""
    facts, apart = times.documents(snapshot), ids(snapshot)
    standing: dict[tuple[str, int], dict[str, str]] = {}
    for id, text in (row for table in tables for row in rows_of(table)):
        bare, number = "".join(text.split()), _number(facts[id])
        keys = [key for key in asked(id, len(bare)) if number > after.get(key, 0)]
        if not keys:
            continue
        searchable, lines = citing.Searchable(text), Lines(text)
        last = lines.at(len(text))
        held: dict[citing.Fingerprint, list[int]] = {}  # the lines at which each text begins
        for key in keys:
            citation = gone[key].citation
            of, uri = citation.fingerprint, facts[id]["uri"]
            if citation.whole:
                holds = of.length == len(bare) and searchable.is_all(of)
            elif (
                id in apart
                or of.length > len(bare)
                or not _is_evidence(citation, range(1, last + 1), uri)
            ):
                holds = False  # a note repeats what its sources say
            else:
                if of not in held:
                    held[of] = [lines.at(start) for start, _ in searchable.each(of)]
                holds = bool(held[of]) and _is_evidence(citation, held[of], uri)
            if holds:
                standing.setdefault(key, {})[id] = bare
    return {
        key: min(texts)
        for key, texts in standing.items()
        if gone[key].citation.whole or len(set(texts.values())) == 1
    }


def _number(fact: Mapping[str, Any]) -> int:
    """The number of a document (4 of d4): one that came later has a higher one."""
    return int(fact["document"][0][1:])


def _file_name(path: str) -> str:
    return file_and_key(path)[0].rpartition("/")[2]


def _is_evidence(citation: citing.Citation, lines: Sequence[int], uri: str) -> bool:
    """Do the lines on which the text of a citation stands, or the name of its file, say that this is its document?"""
    line = re.match(r"L(\d+)", citation.fragment)
    return line is None or int(line[1]) in lines or _file_name(uri) == _file_name(citation.path)


def _is_absent(snapshot: Snapshot, note: str, source: Source) -> bool:
    """Is the file of a source there, beside what the corpus holds? Only below the folder that holds those of the
    corpus: what lies elsewhere on this machine is not told."""
    label, _, rest = note.partition("/")
    folder = snapshot.manifest.sources.get(label, {}).get("path", "")
    if not os.path.isabs(folder) or os.path.isabs(source.citation.path):
        return False
    path = os.path.normpath(os.path.join(folder, os.path.dirname(rest), source.citation.path))
    tops = [top for top in folders(snapshot).values() if os.path.isabs(top)]
    if len({os.path.splitdrive(place)[0] for place in (*tops, path)}) > 1:
        return False
    top = os.path.commonpath(tops)
    below = top != os.path.dirname(top) and os.path.commonpath((top, path)) == top
    uris = _uris(snapshot, note, source.citation)
    return below and os.path.isfile(path) and _files(snapshot).isdisjoint(uris)


@once
def _files(snapshot: Snapshot) -> frozenset[str]:
    """The uris of the files that a corpus holds."""
    return frozenset(file_and_key(uri)[0] for uri in _by_uri(snapshot))


def _moved_rows(
    snapshot: Snapshot, lost: Mapping[tuple[str, int], Source]
) -> dict[tuple[str, int], Source]:
    """The sources that are whole rows of a table and stand in another row of it by now, by content id of the note
    and number: rows are numbered, and one may have come or gone before them."""
    facts, by_uri = times.documents(snapshot), _by_uri(snapshot)
    by_file: dict[str, list[tuple[tuple[str, int], Source]]] = {}
    for key, source in lost.items():
        if (
            source.citation.whole and source.citation.fragment
        ):  # the last rows of a shorter table are no documents
            uris = (
                [source.uri]
                if source.uri
                else _uris(snapshot, facts[key[0]]["uri"], source.citation)
            )
            for uri in uris:
                by_file.setdefault(file_and_key(uri)[0], []).append((key, source))
    found: dict[tuple[str, int], Source] = {}
    for file, pairs in by_file.items():
        ids = [id for uri, id in by_uri.items() if file_and_key(uri)[0] == file]
        rows = snapshot.by_key("documents", ids, "id", ["id", "text"]).to_pylist()
        lengths = {source.citation.fingerprint.length for _, source in pairs}
        prints = {
            row["id"]: citing.fingerprint(row["text"])
            for row in rows
            if len("".join(row["text"].split())) in lengths
        }
        same = {of.characters: id for id, of in prints.items()}
        same |= {of: id for id, of in prints.items()}
        for key, source in pairs:
            if id := same.get(source.citation.fingerprint):
                alias, _, _, uri, _ = facts[id]["document"]
                found[key] = Source(source.citation, "same", uri, id, alias)
    return found


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
