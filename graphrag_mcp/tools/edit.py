"""Tools that edit an index. Everything can be undone, and survives every re-indexing."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from mcp.types import CallToolResult
from pydantic import BeforeValidator

from graphrag_mcp.app import App
from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.jobs import queue, start
from graphrag_mcp.tools import contract
from graphrag_mcp.tools.limits import as_json
from graphrag_mcp.types import EditResult, IndexRequest, RemoveResult, is_object

if TYPE_CHECKING:
    from graphrag_mcp.index.edits import Target
    from graphrag_mcp.store.tables import Snapshot

QUIET_SECONDS = 2.0  # after the last edit, communities are brought up to date
WAIT_SECONDS = 30  # for a removal; what takes longer goes on as a job
SHOWN = 20
ECHOED = 300  # characters of ids or fields that the next call repeats


def as_fields(value: Any) -> Any:
    """Fields however they come: an object, its JSON, or a list of `name=value`."""
    value = as_json(value, "{")
    if is_object(value):
        return [f"{name}={field}" for name, field in value.items()]
    return contract.as_strings(value)


Fields = Annotated[list[str], BeforeValidator(as_fields)]
Op = Literal["create", "update", "rename", "merge", "delete", "undo", "proposals", "reject", "log"]


async def remove_documents(
    ctx: contract.Ctx, ids: list[str], corpus: str = "", dry_run: bool = True
) -> Annotated[CallToolResult, RemoveResult]:
    """Remove documents for good: indexing their folder again does not add them; indexing the file by
    its name does."""
    arguments = corpus, ids, f"agent:{contract.who(ctx)}", dry_run
    return await contract.serve(ctx, "remove_documents", lambda app: remove(app, *arguments))


async def edit_graph(
    ctx: contract.Ctx, op: Op, ids: list[str] = [], fields: Fields = [], corpus: str = "", dry_run: bool = True
) -> Annotated[CallToolResult, EditResult]:
    """Correct entities and relationships. Edits take precedence over documents, survive indexing, can
    be undone."""
    arguments = corpus, op, ids, fields, f"agent:{contract.who(ctx)}", dry_run
    return await contract.serve(ctx, "edit_graph", lambda app: edit(app, *arguments))


def edit(
    app: App,
    corpus: str,
    op: str,
    ids: Sequence[str],
    fields: Sequence[str],
    by: str,
    dry_run: bool,
    wait: bool = False,
) -> EditResult:
    """The tool without its wire; with `wait`, communities are brought up to date before it returns."""
    from graphrag_mcp.index.edits import Wish, edit, ready
    from graphrag_mcp.query import duplicates, edited

    name = app.corpus_for_reading(corpus.strip())
    snapshot = app.snapshot(name)
    if op in ("proposals", "log"):
        found = edited.log(snapshot) if op == "log" else duplicates.proposals(snapshot, ids)
        found.corpus = name
        return found
    if wrong := [field for field in fields if "=" not in field]:
        what = f"the field {wrong[0][:60]!r} has no value"
        raise BadInput(what, 'Give fields=["description=..."]')
    values = dict(field.split("=", 1) for field in fields)
    if op == "create" and not ids:
        ids = [title] if (title := values.pop("title", "") or values.pop("name", "")) else []
    _check_ids(op, ids)
    ready(snapshot.manifest)  # before a name is not found for it
    targets = _targets(snapshot, op, [id.strip() for id in ids if id.strip()])
    result = edit(app.folder(name), Wish(op, targets, values, by), dry_run)
    result.corpus, result.op = name, op
    if dry_run and not result.text.startswith("Nothing"):
        arguments = f'op="{op}", ids={_again(ids)}' + (f", fields={_again(fields)}" if fields else "")
        result.next_call = f'edit_graph({arguments}, corpus="{name}", dry_run=false)'
    elif result.undo_id:
        follows = _follow(app, name, wait) if result.changes else ""
        result.text += f"{follows}\nUndo: {result.undo_id}."
        result.hint = f'edit_graph(op="undo", ids=["{result.undo_id}"], corpus="{name}", dry_run=false) takes it back.'
    return result


def _check_ids(op: str, ids: Sequence[str]) -> None:
    if op in ("merge", "reject") and len({id.strip().casefold() for id in ids}) < 2:
        reason = f"only {ids[0][:80]!r} is named" if ids else "none is named"
        example = "the first stays" if op == "merge" else 'op="proposals" lists pairs'
        what = f"{op} takes two or more entities, and {reason}"
        raise BadInput(what, f'Give ids=["e7", "e12"]; {example}')
    if op == "undo" and not ids:
        raise BadInput("no edit is named to undo", 'Give its undo_id; op="log" lists the edits')


def _again(texts: Sequence[str]) -> str:
    """A list of the call for the next call; a long one is the caller's own, and is not sent back."""
    quoted = json.dumps(list(texts), ensure_ascii=False)
    return quoted if len(quoted) <= ECHOED else "[...]"


def _targets(snapshot: Snapshot, op: str, ids: Sequence[str]) -> list[Target]:
    """Entities, relationships; ids of edits to undo; a new name, or both ends of a new pair."""
    from graphrag_mcp.index.edits import Target
    from graphrag_mcp.text.terms import normalise_name

    if op == "undo":
        return [Target((id.strip("[]` "),)) for id in ids]
    if op != "create":
        return [_target(snapshot, id) for id in ids]
    if len(ids) == 2:
        ends = [_target(snapshot, id, entity=True) for id in ids]
        return [Target((ends[0].keys[0], ends[1].keys[0]), (ends[0].forms[0], ends[1].forms[0]))]
    return [Target((normalise_name(name),), (name,)) for name in ids]


def _target(snapshot: Snapshot, asked: str, entity: bool = False) -> Target:
    """The entity or relationship that an id or a name means. NotFound names the nearest."""
    from graphrag_mcp.index.edits import Target
    from graphrag_mcp.query import context, entities

    asked = asked.strip().strip("[]` ")
    match = re.fullmatch(r"r(\d{1,12})", asked, re.IGNORECASE)
    if match and not entity:
        if not (found := context.numbered(snapshot, "relationships", [int(match[1])])):
            what = f"there is no relationship {asked}"
            raise NotFound(what, "get_entity shows those of an entity")
        ends = snapshot.served("entities", [found[0]["source_id"], found[0]["target_id"]])
        return Target(tuple(row["key"] for row in ends), tuple(row["title"] for row in ends))
    row, near = entities.resolve(snapshot, asked)
    if row is None:
        ids = ", ".join(f"e{candidate['n']}" for candidate in near)
        raise NotFound(
            f"there is no entity {asked[:80]!r}",
            f"{f'The nearest are {ids}; ' if near else ''}get_entity finds names",
            names=f"Nearest: {entities.named_list(near)}" if near else "",
        )
    return Target((row["key"],), (row["title"],))


_waiting: dict[Path, threading.Timer] = {}  # by folder: tenants may name their corpora alike
_lock = threading.Lock()


def _follow(app: App, corpus: str, wait: bool) -> str:
    """Bring communities up to date once nothing was edited for a moment, where no model would be
    paid for it; say when that is. Should this process end before, the next indexing does it."""
    if app.settings.chat_model:
        return "\nCommunities and their reports follow with the next indexing."
    folder = app.folder(corpus)
    if wait:
        from graphrag_mcp.index.pipeline import index_documents

        index_documents(folder, IndexRequest(), app.settings)
        return ""
    with _lock:
        if timer := _waiting.pop(folder, None):
            timer.cancel()
        work = partial(start.start, app.settings, corpus, IndexRequest())
        timer = threading.Timer(QUIET_SECONDS, work)
        timer.daemon = True
        _waiting[folder] = timer
        timer.start()
    return "\nCommunities and their reports follow in a moment."


def remove(app: App, corpus: str, ids: Sequence[str], by: str, dry_run: bool, wait: bool = False) -> RemoveResult:
    """The tool without its wire; with `wait`, the rows have gone before it returns."""
    from graphrag_mcp.index import removal
    from graphrag_mcp.text.terms import counted

    name = app.corpus_for_reading(corpus.strip())
    folder = app.folder(name)
    chosen = removal.choose(folder, ids)
    suggestions = [(f"{id[:80]!r}", ", ".join(near)) for id, near in chosen.unknown.items()]
    listed = [f"{id}, nearest {near}" if near else id for id, near in suggestions[:10]]
    unknown = "; ".join(listed) + (f" and {len(suggestions) - 10} more" if len(suggestions) > 10 else "")
    if not chosen.documents:
        what = f"no document is called {unknown}"
        raise NotFound(what, "Take ids from a result, e.g. d4; get_source takes the same")
    documents = list(chosen.documents)
    lost, names = removal.loss(folder, chosen)
    result = RemoveResult(corpus=name, dry_run=dry_run, documents=documents[:SHOWN], counts=lost)
    pairs = list(chosen.unknown.items())[:SHOWN]
    result.unknown = [{"id": id, "nearest": near} for id, near in pairs]
    counts = ", ".join(counted(count, kind) for kind, count in result.counts.items())
    lines = [f"{'Would remove' if dry_run else 'Removed'} {counts}."]
    lines += [f"- {uri}" for uri in result.documents]
    if len(documents) > SHOWN:
        lines.append(f"- and {len(documents) - SHOWN} more")
    if names:
        more = "." if lost["entities"] <= len(names) else ", ..."
        lines.append(f"Entities that vanish: {', '.join(names)}{more}")
    if unknown:
        lines.append(f"Unknown: {unknown}.")
    if dry_run:
        quoted = json.dumps(list(ids), ensure_ascii=False)
        result.next_call = f'remove_documents(ids={quoted}, corpus="{name}", dry_run=false)'
    else:
        result.undo_id = removal.write_down(folder, chosen, by)
        _take_away(app, name, result, wait)
        if result.status != "done":
            lines.append(f"Their rows go with {result.job_id or 'the next indexing'}.")
        # Our own words: among those of documents they would be flagged as a call of a tool.
        undo = f'edit_graph(op="undo", ids=["{result.undo_id}"], dry_run=false)'
        result.hint = (
            "They stay out when their folder is indexed again. To have one back, index it by its "
            f"own name, or {undo} and index the folder; texts have to be given again."
        )
    result.text = "\n".join(lines)
    return result


def _take_away(app: App, corpus: str, result: RemoveResult, wait: bool) -> None:
    """The rows, in a job that asks no model: their reports are written from what is left."""
    settings = replace(app.settings, max_calls=-1)
    if wait:
        from graphrag_mcp.index.pipeline import index_documents

        result.status = index_documents(app.folder(corpus), IndexRequest(), settings).status
        return
    job = start.start(settings, corpus, IndexRequest())
    result.job_id, result.status = job.job_id, job.status
    for _ in range(WAIT_SECONDS * 10):
        job = queue.load(app.home, job.job_id)
        result.status = job.status
        if job.status in queue.FINAL:
            return
        time.sleep(0.1)
    result.next_call = f'graph_status(job_id="{job.job_id}")'
