"""The tool that writes notes: Markdown files whose ids become links to their sources."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import anyio.to_thread
from mcp.types import CallToolResult

from graphrag_mcp.app import App
from graphrag_mcp.errors import BadInput, GraphRAGError, NotFound
from graphrag_mcp.jobs import queue, start
from graphrag_mcp.jobs.queue import FINAL, Job
from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.settings import Settings
from graphrag_mcp.text.terms import counted
from graphrag_mcp.tools import contract
from graphrag_mcp.tools.contract import Ctx, desk_of, reply, telling
from graphrag_mcp.tools.index import shielded, watch
from graphrag_mcp.trust.fencing import SUBJECT
from graphrag_mcp.types import IndexRequest, NoteResult, SourceResult

if TYPE_CHECKING:
    from graphrag_mcp.store.tables import Snapshot
    from graphrag_mcp.text.citing import Fingerprint
    from graphrag_mcp.tools.contract import Parts

WAIT = 40.0  # seconds for the index; hosts want a reply within 50
WAIT_IN_THREAD = 30.0  # of a call that does other things as well
LONGEST_TITLE = 200  # characters
UNREAD = (
    "Read it with get_source, which shows the check value, so that you overwrite nothing "
    "unread. Where its file was edited by hand, call index_documents first"
)
OPS = ("new", "append", "replace", "undo")


@dataclass(frozen=True, slots=True)
class Note:
    """What is to be written. `op` is one of OPS; `check` is the check value of what was read."""

    title: str
    text: str = ""
    folder: str = ""
    op: str = "new"
    check: str = ""


@dataclass(slots=True)
class Written:
    """A note on the disk, and what is still to be indexed for it."""

    corpus: str
    path: Path
    result: NoteResult
    paths: tuple[str, ...]
    verb: str = "Wrote"
    topics: int = 0  # that it names by their titles
    remarks: list[str] = field(default_factory=list)


async def write_note(
    ctx: Ctx,
    title: str,
    text: str = "",
    folder: str = "",
    op: Literal["new", "append", "replace", "undo"] = "new",
    check: str = "",
    corpus: str = "",
) -> Annotated[CallToolResult, NoteResult]:
    """Keep an answer as a Markdown note that people and later searches read. Cite the ids of its
    sources: they become links, and the note says when a source changes. The next search for it
    shows it first and whole: write the whole answer, in the words of the question, and what you
    searched for in vain."""
    note = Note(title, text, folder, op, check)
    with telling("write_note"):
        if op == "undo" and not check.strip():
            # A person at the command line sees what is undone; of two agents one may have added to it.
            raise BadInput("undo needs check", UNREAD)
        return reply(await written(ctx, note, corpus))


async def written(ctx: Ctx, note: Note, corpus: str) -> NoteResult:
    """Write a note and wait until it is searchable. What has begun is not cancelled with the call: the
    file is there whole, or as it was."""
    desk, by = desk_of(ctx), SUBJECT.get() or contract.who(ctx)

    def begin() -> tuple[Written, Job]:
        written_note = write(desk.app, note, corpus, by)
        return written_note, start.start(quiet(desk.app), written_note.corpus, request(desk.app, written_note))

    def tell() -> NoteResult:
        return note_result(desk.app, written_note, job.status, job.job_id)

    written_note, job = await shielded(desk, begin)
    job = await watch(ctx, job, WAIT)
    return await anyio.to_thread.run_sync(tell, limiter=desk.threads)


def kept(app: App, note: Note, corpus: str, by: str) -> str:
    """Write a note from a thread of a call and wait until it is searchable: where it is, in a sentence.
    What the call says besides is not lost where the note cannot be written."""
    if app.read_only:
        return "Not kept as a note: this server only reads."
    try:
        written_note = write(app, note, corpus, SUBJECT.get() or by)
    except GraphRAGError as error:
        return f"Not kept as a note: {error}"
    job = start.start(quiet(app), written_note.corpus, request(app, written_note))
    end = time.monotonic() + WAIT_IN_THREAD
    while job.status not in FINAL and time.monotonic() < end:
        time.sleep(0.1)
        job = queue.load(app.home, job.job_id)
    result = note_result(app, written_note, job.status, job.job_id)
    return " ".join(filter(None, (result.text.replace("\n", " "), result.hint)))


def write_now(app: App, note: Note, corpus: str, by: str) -> NoteResult:
    """The same in this process, for the command line."""
    from graphrag_mcp.index.pipeline import index_documents

    written_note = write(app, note, corpus, by)
    result = index_documents(app.folder(written_note.corpus), request(app, written_note), quiet(app))
    return note_result(app, written_note, result.status)


def quiet(app: App) -> Settings:
    """Settings that ask no model, for a note is to be searchable when the call returns. What a model
    has to read of it, the next indexing asks."""
    return replace(app.settings, max_calls=-1)


def request(app: App, written_note: Written) -> IndexRequest:
    """What is to be indexed: the file of the note alone, or the folder that it has left; all of the
    folder of notes where the corpus has no part of it yet."""
    from graphrag_mcp.store import manifest

    within, base = tuple(str(root.resolve()) for root in app.settings.roots), app.notes_folder()
    stored = manifest.read(app.folder(written_note.corpus))
    known = [Path(source["path"]) for source in (stored.sources.values() if stored else ()) if source.get("path")]
    inside = any(base.is_relative_to(path) for path in known)
    return IndexRequest(written_note.paths if inside else (str(base),), within=within)


def write(app: App, note: Note, corpus: str, by: str) -> Written:
    """Write the file. BadInput, with nothing written, where the note is there already, where it is
    another one than `check` says, and where the text cannot be a note."""
    from graphrag_mcp.notes import folder as files
    from graphrag_mcp.notes import writing
    from graphrag_mcp.query.note_sources import check_of
    from graphrag_mcp.text import citing

    title = " ".join(note.title.split())
    if not title or len(title) > LONGEST_TITLE:
        raise BadInput(f"the title has {len(title)} characters", f"Give 1 to {LONGEST_TITLE}")
    if note.op not in OPS:
        raise BadInput(f"there is no op {note.op[:40]!r}", f"Use {', '.join(OPS)}")
    if note.op != "undo" and not note.text.strip():
        raise BadInput("the note has no text", "Give text, with the ids that it is from")
    if len(note.text) > files.LARGEST:
        what = f"the text has {len(note.text):,} characters, and a note may have {files.LARGEST:,}"
        raise BadInput(what, "Write several notes that link to each other")
    base = app.notes_folder()
    name, snapshot = _corpus(app, corpus, base)
    with files.locked(base):
        path, old = _file(base, title, note)
        shown = path.relative_to(base).as_posix()
        written_note = Written(name, path, NoteResult(corpus=name, path=shown), (str(path),))
        _compare(note, old, shown)
        if note.op != "undo" and (by_file := _ignored(app, snapshot, base, path)):
            what = f"a note {shown!r} is not indexed (ignored by {by_file})"
            raise BadInput(what, "Give another title or folder")
        if note.op == "undo":
            written_note.verb = "Brought back"
            if not files.undo(base, path, note.check.strip()):
                written_note.paths = (str(path.parent),)
            undone = files.undone(base, path)[-1].relative_to(base).as_posix()
            written_note.remarks.append(f"What was there is kept as {undone}.")
            return written_note
        day = datetime.now(UTC).date().isoformat()
        before = (old or "") if note.op == "append" else ""
        linked = writing.linked(snapshot, path, note.text, before, old or "")
        if snapshot is not None:
            _check_read(app, snapshot, by, linked.ids)
        make = writing.appended if note.op == "append" else writing.replaced
        if old is None:
            text = writing.composed(title, linked, day, by)
        else:
            text = make(old, title, linked, day, by)
        files.write(base, path, text, linked.cited, name)
    written_note.result.check = check_of(text)
    if linked.left:
        ids = ", ".join(linked.left[:10])
        written_note.remarks.append(
            f"Not linked, for a citation is ids alone in square brackets: {ids}. "
            'If they are sources, op="replace" with e.g. [t5] or [t5, d2].'
        )
    if linked.topics:
        written_note.topics = len(linked.topics)
        remark = (
            f"{', '.join(linked.topics)} became words: a topic is a view of all documents, and no text that is followed. "
            "Cite passages for facts"
        )
        written_note.remarks.append(f"{remark}.")
    elif note.op in ("new", "replace") and not any(citing.citations(text)):
        written_note.remarks.append("The note cites nothing, so searches cannot say when it is out of date.")
    return written_note


def remember(app: App, parts: Parts, result: SourceResult, by: str) -> None:
    """Remember which text of documents an agent has read: their ids (d8) stay when they are edited."""
    read = {source.get("document_id", "") for source in result.sources}
    for name, snapshot in parts if app.settings.notes else ():
        prefix = f"{name}/d" if name else "d"
        ids = (id.removeprefix(prefix) for id in read if id.startswith(prefix))
        numbers = [int(id) for id in ids if id.isdecimal()]
        for row in snapshot.by_key("documents", numbers, "n", ["n", "id"]).to_pylist():
            app.remember(by, snapshot.manifest.corpus, row["n"], row["id"])


def _check_read(app: App, snapshot: Snapshot, by: str, ids: Iterable[str]) -> None:
    """Refuse documents that were edited after this agent had read them; of notes the check value says it."""
    from graphrag_mcp.query.note_sources import is_note

    found = (re.fullmatch(r"(?:.*/)?d(\d+)(?:#.*)?", id) for id in ids)
    of = {int(match[1]): match[0] for match in found if match}
    for row in snapshot.by_key("documents", [*of], "n", ["n", "id"]).to_pylist() if of else ():
        read = app.last_read(by, snapshot.manifest.corpus, row["n"])
        if read not in (None, row["id"]) and not is_note(snapshot, row["id"]):
            what = f"{of[row['n']]} was edited after you read it"
            raise BadInput(what, "Read it again with get_source, and cite what it says now")


def _file(base: Path, title: str, note: Note) -> tuple[Path, str | None]:
    """The file of a note and its text, None without one: a title that leads to the file of another one (`A:B` and
    `A/B`) has the same name with a number."""
    from graphrag_mcp.notes import folder as files
    from graphrag_mcp.notes.writing import is_of
    from graphrag_mcp.sources.decode import front_matter

    first = path = files.place(base, title, note.folder)
    old, number = files.read(path), 1
    while old is not None and not is_of(title, old, path):
        number += 1
        path = files.place(base, title, note.folder, number)
        old = files.read(path)
    if old is None and number > 1 and note.op != "new":
        old_title = front_matter(files.read(first) or "")[0].get("title", first.stem)
        what = f"the file {first.name!r} is the note {old_title!r}, not {title!r}"
        raise NotFound(what, 'Give that title, or op="new" for a note of its own')
    return path, old


def _compare(note: Note, old: str | None, shown: str) -> None:
    """Refuse a write over what the caller has not read."""
    from graphrag_mcp.query.note_sources import check_of
    from graphrag_mcp.sources.decode import front_matter
    from graphrag_mcp.text.uris import is_note

    if old is None and note.op == "undo":
        return  # there is nothing to undo
    now = check_of(old) if old is not None else ""
    if old is not None and note.op != "undo" and not is_note(shown, front_matter(old)[0]):
        what = f"the file {shown!r} is no note (its front matter does not say `kind: note`)"
        raise BadInput(what, "Give another title, and cite the file if the note is about it")
    if note.op == "new" and old is not None:
        what = f"there is a note {shown!r} already"
        advice = 'op="append" adds to it; op="replace" needs check, the check value that get_source shows'
        raise BadInput(what, advice)
    if note.op in ("append", "replace") and old is None:
        raise NotFound(f"there is no note {shown!r}", 'op="new" writes it')
    check = note.check.strip()
    if (check and check != now) or (note.op == "replace" and not check):
        what = f"the note {shown!r} has another check value" if check else "replace needs check"
        raise BadInput(what, UNREAD)


def _ignored(app: App, snapshot: Snapshot | None, base: Path, path: Path) -> str:
    """The ignore file for which an index of the corpus, or of the root where the corpus has no folder of
    the notes, leaves a note out; "" where none does."""
    from graphrag_mcp.sources.walk import ignored_below

    known = snapshot.manifest.sources.values() if snapshot else ()
    folders = [source["path"] for source in known if source["kind"] == "folder"]
    tops = sorted(path for path in folders if base.is_relative_to(path))  # the outermost first
    if not tops or str(base) in tops:  # apart from the root, but for an index of all of it
        roots = [root.resolve() for root in app.settings.roots]
        tops = sorted([*tops, *(str(root) for root in roots if base.is_relative_to(root))])
        tops = [str(base)] if ignored_below(tops[0], str(base)) else tops
    return ignored_below(tops[0], str(path))


def _corpus(app: App, corpus: str, base: Path) -> tuple[str, Snapshot | None]:
    """The corpus whose ids a note cites and that holds it; a new one where there is none."""
    try:
        name = app.corpus_for_reading(corpus.strip())
    except NotFound:
        if app.corpora():
            raise
        return app.corpus_for_writing(corpus.strip(), base), None
    return name, app.snapshot(name)


def kept_text(notes: str) -> Callable[[Fingerprint], str]:
    """The texts that the notes of a folder cited, by their fingerprints; "" for those that are not kept."""
    from graphrag_mcp.notes import folder

    return partial(folder.source, Path(notes)) if notes else lambda _: ""


def note_result(app: App, written_note: Written, status: str, job_id: str = "") -> NoteResult:
    """The result, with what the index has made of the note."""
    from graphrag_mcp.query import note_sources, pages, times

    result = written_note.result
    result.status = status
    lines = [f"{written_note.verb} {result.path}."] if written_note.path.exists() else [f"Took {result.path} away."]
    if status == "done":
        snapshot = app.snapshot(written_note.corpus)
        facts = times.documents(snapshot)
        ids = {fact.uri: id for id, fact in facts.items()}
        for uri in reversed(pages.uris_of(pages.folders(snapshot), str(written_note.path))):
            if id := ids.get(uri):
                found = note_sources.sources(snapshot, id)
                result.id, result.cites = facts[id].alias, len(found)
                result.documents = len({source.document for source in found} - {""})
                (row,) = snapshot.by_key("documents", [id], "id", ["text"]).to_pylist()
                result.check = note_sources.check_of(row["text"])
        if result.id:
            cited = f"{counted(result.cites, 'citations')} of {counted(result.documents, 'documents')}"
            cited += f", {counted(written_note.topics, 'topics')} by title" if written_note.topics else ""
            lines[0] = f"{written_note.verb} {result.path} as [{result.id}], searchable now: {cited}."
    elif status not in FINAL:
        result.job_id, result.next_call = job_id, f'graph_status(job_id="{job_id}")'
        lines.append("The file is there; it is searchable when the index has come to it.")
    else:
        lines.append("The file is there, but the index was not brought up to date: index_documents.")
    if result.check:
        lines.append(f"Check value: {result.check}.")
    result.text = "\n".join(one_line(line, 600) for line in lines)
    result.hint = " ".join(written_note.remarks)
    return result
