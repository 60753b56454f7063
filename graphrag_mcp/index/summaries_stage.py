"""The commit of summaries: of documents that have none, whose question is another one, or whose
question was left open. The rows of a document go with it (documents.py)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from graphrag_mcp.index import summarised
from graphrag_mcp.index.graph import graph_to_table
from graphrag_mcp.index.losses import pending
from graphrag_mcp.index.models import with_tuned
from graphrag_mcp.index.run import Run, commit_draft
from graphrag_mcp.index.summaries import (
    BRIEF,
    OWN_WORDS,
    Part,
    Summary,
    Written,
    as_reply,
    ask,
    params_from,
    parts_of,
    read,
    summarise,
    whole_of,
)
from graphrag_mcp.llm.replies import BadReply, words
from graphrag_mcp.settings import Settings
from graphrag_mcp.store import shared_replies
from graphrag_mcp.store.reply_cache import Stored
from graphrag_mcp.store.tables import Change, Snapshot, notes_of, open_snapshot, values_of
from graphrag_mcp.text.terms import content_id

Row = dict[str, Any]
KIND = "summary"
DOCUMENTS = 500  # read at once, so that the memory is bounded by them
COLUMNS = ["id", "uri", "title", "text", "metadata"]


def summaries(run: Run, refresh: bool) -> None:
    """Bring the table to what the documents and the replies about them are. `refresh`: every question
    is asked again. Where a model reads the texts in full, it is asked for none: those that there are stay
    as long as their text does."""
    models, snapshot, manifest = run.models, run.snapshot(), run.committed
    asks = models.extract is None or not models.asker.on
    fingerprint = models.summaries.fingerprint if models.summaries else ""
    again, have = (refresh and asks) or of_another(run), summarised_documents(snapshot)
    open_ = snapshot.rows("pending", f"kind = '{KIND}'").to_pylist()
    wanted = [row["id"] for row in due(run, again)]
    written = _written(run, wanted, asks)
    rows = [result.row() for result in written if result.summary is not None]
    left: list[Row] = []
    if asks:
        missing = {result.part.document_id: result for result in written if result.summary is None}
        left = [pending(KIND, id, result.part.uri, result.reason) for id, result in missing.items()]
    replaced = have if again else {row["document_id"] for row in rows}
    names = summarised.names_of(rows)
    # Also of an edited document without a summary: its old texts have the names of the last one.
    named_before = summarised.corrected_documents(snapshot) if wanted or replaced else set[str]()
    renamed = names.keys() | (named_before - (have - replaced))
    reasons = [{row["id"]: row["reason"] for row in every} for every in (open_, left)]
    if not rows and not again and not renamed and reasons[0] == reasons[1]:
        return
    removed = sorted(reasons[0].keys() | reasons[1].keys())
    run.write(
        {
            "summaries": Change(sorted(replaced & have), graph_to_table("summaries", rows)),
            "pending": Change(removed, graph_to_table("pending", left)),
        }
    )
    run.parameters = {**manifest.parameters, **run.parameters, "summaries": fingerprint}
    numbers, moved = dict(manifest.next), Counter[str]()
    if models.extract is None:
        with run.stage("merge"):
            moved = summarised.correct(run, sorted(renamed), names, numbers)
    # Counted whole, since an index of an earlier release has summaries and no count of them.
    whole = run.draft_snapshot().rows("summaries", "place = 0", ["document_id"]).num_rows
    moved["summarised"] = whole - manifest.counters.get("summarised", 0)
    commit_draft(run, manifest.sources, manifest.segments, numbers, moved)


def of_another(run: Run) -> bool:
    """Were the summaries made otherwise than now, so that all are made again, of the same replies?"""
    now = run.models.summaries.fingerprint if run.models.summaries else ""
    return now != run.committed.parameters.get("summaries", "")


def summarised_documents(snapshot: Snapshot) -> set[str]:
    """The documents with a summary, of themselves or of a section."""
    return {*values_of(snapshot.rows("summaries", columns=["document_id"])["document_id"])}


def due(run: Run, again: bool) -> list[Row]:
    """Documents (id, uri) whose summaries are to be made, in order of uri: those without one, and where a
    question was left open or its answer replaced; all of them `again`. A note is as short as it is to be."""
    snapshot = run.snapshot()
    open_ = snapshot.rows("pending", f"kind = '{KIND}'", ["subject"])["subject"]
    asked = {*values_of(open_), *(one.subject for one in run.corrections if one.kind == KIND)}
    done = notes_of(snapshot) if again else notes_of(snapshot) | (summarised_documents(snapshot) - asked)
    rows = snapshot.rows("documents", columns=["id", "uri"]).to_pylist()
    return sorted((row for row in rows if row["id"] not in done), key=lambda row: row["uri"])


def _written(run: Run, ids: Sequence[str], asks: bool) -> list[Written]:
    """The summaries of these documents, in parts that bound the memory; none where no one writes any."""
    params, asker = run.models.summaries, run.models.asker
    found: list[Written] = []
    if params is None:
        return found
    with run.stage("summaries"):
        for start in range(0, len(ids), DOCUMENTS):
            run.progress("summaries", start, len(ids))
            rows = run.snapshot().served("documents", ids[start : start + DOCUMENTS], COLUMNS)
            parts = [parts_of(row, params.longest) for row in rows]
            run.check()
            found += run.take(asker.start(summarise(asker, parts, params, asks)))
    return found


def take_in(folder: Path, settings: Settings, exported: Iterable[Row]) -> tuple[int, int]:
    """Put the summaries that another index exported into the reply cache, each for the texts with its
    check value: how many were taken, and how many are of no text here or cannot be used. The next run
    finds them."""
    known = {str(row.get("sha", "")): row for row in exported if row.get("written_by") != OWN_WORDS}
    params, snapshot = params_from(with_tuned(settings, folder), folder), open_snapshot(folder)
    answers: dict[str, Stored] = {}
    used: set[str] = set()

    def summary_of(part: Part) -> Summary | None:
        if words(part.text) <= BRIEF:
            return Summary(" ".join(part.text.split()))
        row = known.get(sha := content_id(part.text))
        try:
            summary = read(_reply(row), [part], params.language)[1] if row else None
        except BadReply:
            return None
        if row and summary:
            used.add(sha)
            by = str(row.get("written_by", ""))
            by = by if re.fullmatch(r"(?:llm|agent):[^\n]{1,100}", by) else "agent:import"
            key = ask([part], params).key
            answers[key] = Stored(key, by, KIND, summary.as_json())
        return summary

    for batch in snapshot.batches("documents", COLUMNS) if known else ():
        for row in batch.to_pylist():
            parts = parts_of(row, params.longest)
            summarised_parts = [(part, summary) for part in parts if (summary := summary_of(part)) is not None]
            if len(parts) > 1 and len(summarised_parts) == len(parts):
                summary_of(whole_of(summarised_parts, params.longest))
    if answers:
        book = shared_replies.book(folder)
        book.put(answers.values())
        book.close()
    return len(used), len(known) - len(used)


def _reply(row: Row) -> str:
    labels, *names = (row[name] if isinstance(row.get(name), list) else [] for name in ("labels", "names", "types"))
    return as_reply(row.get("text"), labels, zip(*names, strict=False))
