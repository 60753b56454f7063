"""Generations: which are kept, what changed since one of them, and the way back to it.

Takes a corpus folder and the number of a generation; gives what is kept, a `Changes`, or a new generation whose
content is that of the old one. Going back writes no table: the new manifest names the versions that the old one
named. Knows the document log and the ids of rows, no text.
"""

from __future__ import annotations

import datetime
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from graphrag_mcp.errors import BadInput, GraphRAGError, NotFound
from graphrag_mcp.store import manifest as manifests
from graphrag_mcp.store import truth
from graphrag_mcp.store.manifest import Manifest
from graphrag_mcp.store.tables import Snapshot

LOCK_SECONDS = 30.0
SHOWN = 30  # generations that an error lists


@dataclass(frozen=True)
class Changes:
    """What differs between generation `since` and the current one. Documents are uris, sorted; `counts` says of
    entities, relationships and communities how many there were, are, came and went ({before, now, added, removed})."""

    since: int
    generation: int
    committed: str  # when `since` was, ISO 8601
    added: list[str]
    changed: list[str]
    removed: list[str]
    counts: dict[str, dict[str, int]]

    def record(self) -> dict[str, Any]:
        return asdict(self)


def kept(folder: Path) -> list[Manifest]:
    """The generations that can be gone back to, oldest first, the current one last."""
    current = _current(folder)
    older = [one for one in manifests.generations(folder) if one.generation < current.generation]
    return [*(one for one in older if one.format == current.format and _readable(folder, one)), current]


def rollback(folder: Path, generation: int) -> Manifest:
    """Make the content of `generation` current again, as a new generation; gives that.

    Numbers behind aliases are never given again, so an alias of what is gone now stays gone. The next indexing of the
    same folders brings back what they hold. Raises NotFound when that generation is not kept any more, BadInput when
    it is the current one, Busy when another process is writing.
    """
    with manifests.writer_lock(folder, LOCK_SECONDS):
        current = _current(folder)
        if generation == current.generation:
            raise BadInput(f"generation {generation} is the current one", "Name an earlier one")
        old = _find(folder, current, generation)
        number = current.generation + 1
        settled = old.communities_generation == old.generation
        new = replace(
            old, generation=number, created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            next={letter: max(old.next.get(letter, 1), n) for letter, n in current.next.items()},
            communities_generation=number if settled else old.communities_generation,
        )  # fmt: skip
        manifests.commit(folder, new)
        return new


def changes(folder: Path, generation: int) -> Changes:
    """What the documents and the graph have become since `generation`. Raises NotFound when it is not kept any more."""
    current = _current(folder)
    old = current if generation == current.generation else _find(folder, current, generation)
    before, now = _documents(folder, old), _documents(folder, current)
    snapshots = Snapshot(folder, old), Snapshot(folder, current)
    counts = {}
    for table in ("entities", "relationships", "communities"):
        was, is_ = (set(snapshot.rows(table, columns=["id"])["id"].to_pylist()) for snapshot in snapshots)
        counts[table] = {"before": len(was), "now": len(is_), "added": len(is_ - was), "removed": len(was - is_)}
    return Changes(
        generation, current.generation, old.created, sorted(now.keys() - before.keys()),
        sorted(uri for uri in now.keys() & before.keys() if now[uri] != before[uri]),
        sorted(before.keys() - now.keys()), counts,
    )  # fmt: skip


def _current(folder: Path) -> Manifest:
    current = manifests.read(folder)
    if current is None:
        raise NotFound(f"no index at {folder}", "Call index_documents(paths=[...]) first")
    return current


def _find(folder: Path, current: Manifest, generation: int) -> Manifest:
    there = {one.generation: one for one in manifests.generations(folder) if one.format == current.format}
    found = there.get(generation)
    if found is not None and generation < current.generation and _readable(folder, found):
        return found
    numbers = [str(one.generation) for one in kept(folder)]
    more = f"{len(numbers) - SHOWN} older ones and " if len(numbers) > SHOWN else ""
    raise NotFound(
        f"generation {generation} of {folder.name} is not kept",
        f"Kept are {more}{', '.join(numbers[-SHOWN:])}; name one of these",
    )


def _readable(folder: Path, manifest: Manifest) -> bool:
    """Are its segments there, and do its tables open at its versions?"""
    if not all((folder / "truth" / segment["file"]).exists() for segment in manifest.segments):
        return False
    snapshot = Snapshot(folder, manifest)
    try:
        return all(snapshot.count(table) >= 0 for table in manifest.tables)
    except GraphRAGError:
        return False


def _documents(folder: Path, manifest: Manifest) -> dict[str, str]:
    found = truth.live_documents(folder, manifest, ("uri", "id"))
    return dict(zip(found["uri"].to_pylist(), found["id"].to_pylist(), strict=True))
