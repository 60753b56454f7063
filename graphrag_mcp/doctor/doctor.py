"""Doctor: finds damage in everything that is stored, says how to repair it, and prints the facts
that a bug report needs.

Every file is compared with what is known of it, then the rows with each other (doctor/checks.py).
Repaired is what loses nothing: the manifest from its kept copy, files that no generation names,
older generations that cannot be read, damaged entries of the reply cache. Tables are derived again;
that needs `index/`, so the function is handed in."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow.compute as pc

from graphrag_mcp import __version__
from graphrag_mcp.doctor.checks import inconsistencies
from graphrag_mcp.errors import Damaged, GraphRAGError, NewerFormat, NotFound
from graphrag_mcp.install import launch
from graphrag_mcp.install.hosts import HOSTS, seen
from graphrag_mcp.install.install import installed
from graphrag_mcp.settings import Settings, shown_as
from graphrag_mcp.store import checksums, lance
from graphrag_mcp.store import manifest as manifests
from graphrag_mcp.store import segments as segment_store
from graphrag_mcp.store.checksums import check_values, differing
from graphrag_mcp.store.manifest import Manifest
from graphrag_mcp.store.reply_cache import AnswerBook, salvage
from graphrag_mcp.store.schema import TABLES
from graphrag_mcp.store.tables import Snapshot

LOCAL = "local:"
NAMED = 8  # corpora that are named; the rest is counted
NOBODY = "none; the agent that asks is the model"


def about(
    settings: Settings, corpora: Sequence[str], folder: Path | None, damaged: bool = False
) -> dict[str, Any]:
    """`folder` is that of the corpus that is meant here, None when there is none yet."""
    home = Path.home()
    hosts = installed(os.environ, home, Path.cwd())
    record: dict[str, Any] = {
        "version": __version__,
        "installed": launch.installation(),
        "python": f"{platform.python_version()} at {sys.executable}",
        "extras": launch.extras_present(),
        "models": _models(settings),
        "home": str(settings.home),
        "roots": [str(root) for root in settings.roots],
        "corpora": list(corpora),
        "corpus": folder.name if folder else "",
        "generation": _generation(folder),
        "hosts": hosts,
        "hosts_here": [host.name for host in HOSTS if seen(host, os.environ, home)],
    }
    return {**record, "next": _next(settings, record, damaged)}


def lines(record: Mapping[str, Any]) -> list[str]:
    """The record for people, one thing a line."""
    models, corpora, here = record["models"], record["corpora"], record["hosts_here"]
    names = [*corpora[:NAMED]]
    if len(corpora) > NAMED:
        names.append(f"{len(corpora) - NAMED} more")
    meant = "none yet" if len(corpora) < 2 else "not clear: --corpus NAME says which"
    if record["corpus"]:
        meant = f"{record['corpus']}, generation {record['generation']}"
    there = record["extras"].items()
    extras = ", ".join(f"{name} {'yes' if one else 'no'}" for name, one in there)
    rows = [
        ("version", f"{record['version']}, {record['installed']}"),
        ("python", record["python"]),
        ("extras", extras),
        ("chat model", _with_server(models["chat"], models) or NOBODY),
        ("vectors", _with_server(models["embedding"], models) or "none"),
        ("reranking", models["rerank"] or "none"),
        ("home", record["home"]),
        ("roots", ", ".join(record["roots"]) or "none: tools may index no folder from here"),
        ("corpora", ", ".join(names) or "none yet"),
        ("meant here", meant),
    ]
    for host in record["hosts"]:
        problem = f" ({host['problem']})" if host["problem"] else ""
        where = f"{host['host']} as {host['name'] or '?'}: {host['file']}{problem}"
        rows.append(("in host", where))
    if not record["hosts"]:
        rows.append(("in host", "none" + (f"; found here: {', '.join(here)}" if here else "")))
    rows += [("next", step) for step in record["next"]]
    return [f"{name:<11} {row}" for name, row in rows]


def _models(settings: Settings) -> dict[str, Any]:
    return {
        "chat": settings.chat_model,
        "embedding": settings.embedding_model,
        "rerank": settings.rerank_model,
        "server": _shown(settings.base_url),
        "embedding_server": _shown(settings.embedding_base_url or settings.base_url),
        "key_variable": settings.api_key_variable,
        "key_set": bool(os.environ.get(settings.api_key_variable)),
    }


def _with_server(model: str, models: Mapping[str, Any]) -> str:
    if not model or model.startswith(LOCAL):
        return f"{model.removeprefix(LOCAL)}, in this process" if model else ""
    server = models["server"] if model == models["chat"] else models["embedding_server"]
    return f"{model} at {server or 'its provider'}, {models['key_variable']} {'set' if models['key_set'] else 'not set'}"


def _shown(url: str) -> str:
    """A server's address without a name or password that may be in it."""
    if not url:
        return ""
    parts = urlsplit(shown_as(url))
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _generation(folder: Path | None) -> int | None:
    try:
        found = manifests.read(folder) if folder else None
    except GraphRAGError:
        return None
    return found.generation if found else None


def _next(settings: Settings, record: Mapping[str, Any], damaged: bool) -> list[str]:
    steps = []
    if damaged:
        steps.append("graphrag-mcp doctor --repair")
    if not record["corpora"]:
        steps.append("graphrag-mcp index FOLDER")
    here = any(name.startswith(LOCAL) for name in (settings.embedding_model, settings.rerank_model))
    if here and not record["extras"]["local"]:
        steps.append("install the extra graphrag-mcp[local], or set another embedding_model")
    models = record["models"]
    if models["chat"] and not models["key_set"] and not models["server"]:
        variable = models["key_variable"]
        steps.append(f"set {variable}, or OPENAI_BASE_URL to a server that needs no key")
    install = "graphrag-mcp install --client"
    for host in record["hosts"]:
        if host["problem"] and host["name"]:
            steps.append(f"{install} {host['host']} (once more: {host['problem']})")
    if not any(host["name"] for host in record["hosts"]):
        steps.append(f"{install} {[*record['hosts_here'], 'NAME'][0]}")
    return steps or ["ask: graphrag-mcp search QUESTION, or your host's agent"]


LOCK_SECONDS = 30.0
SHOWN = 10  # findings of one kind and place; the rest is counted
DERIVE = "Run graphrag-mcp doctor --repair: the tables are derived again from the stored originals"
RESTORE = "Restore the file from a backup, or index the folders again into a new corpus"
UNREADABLE = "Give this user the right to read it, or take away what stands in its place"
REMOVE = "Run graphrag-mcp doctor --repair: it is removed"
LEFT = "The next run that writes removes it, or graphrag-mcp doctor --repair"
FORGET = "Run graphrag-mcp doctor --repair: the older generations that need it are forgotten"
OVERTAKEN = (
    "Delete manifest.json and run graphrag-mcp doctor --repair to go on from there; was the older one put back on "
    "purpose, delete the later files in generations. The next commit would drop them"
)
SALVAGE = (
    "Run graphrag-mcp doctor --repair while no server runs: what can be read of the book is kept"
)
# Communities depend on those before them: where these are sound (rows of two of the tables have
# check values, and the third is compared with them), what is derived again begins with them.
HISTORY = ("communities", "memberships", "reports")


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong. `repair` is the next move; `repaired` says that it has been done. A
    `remark` is nothing wrong: what a process that was killed has left, which no one reads."""

    # manifest, truth, generation, answers, orphan, file, table, row, or a promise of the rows
    kind: str
    where: str
    what: str
    repair: str
    repaired: bool = False
    remark: bool = False


def doctor(
    folder: Path, repair: bool = False, rebuild: Callable[[Path], object] | None = None
) -> list[Finding]:
    """Everything that is wrong with the index in `folder`; with `repair`, what could be repaired
    has been.

    `rebuild(folder)` must derive all tables from the truth and take the writer's lock itself. It is
    called after a generation was committed that names no tables, and only when the truth is whole:
    readers find nothing until it is done, and if it fails the next index call derives everything.
    Raises NotFound when there is no index, Busy when another process holds the lock (repair only),
    NewerFormat."""
    if not repair:
        return _examined(folder)
    with manifests.writer_lock(folder, LOCK_SECONDS), manifests.writing(folder):
        before = _examined(folder)
        _repair_files(folder, before)
        left = _examined(folder)
        if any(finding.repair in (REMOVE, LEFT) for finding in left):
            # A newer whole generation took the place of a torn manifest.
            _repair_files(folder, left)
            left = _examined(folder)
        derivable = [finding for finding in left if finding.repair == DERIVE]
        whole = not any(finding.kind == "truth" and finding.repair != DERIVE for finding in left)
        if derivable and whole and rebuild is not None:
            _forget_tables(folder, {finding.where.removeprefix("tables/") for finding in derivable})
    if derivable and whole and rebuild is not None:
        rebuild(folder)
        with manifests.writer_lock(folder, LOCK_SECONDS), manifests.writing(folder):
            _repair_files(folder, [])  # what the forgotten generation had
            left = _examined(folder)
    still = {(finding.kind, finding.where, finding.what) for finding in left}
    done = [
        replace(found, repaired=True)
        for found in before
        if (found.kind, found.where, found.what) not in still
    ]
    return [*done, *left]


def _examined(folder: Path) -> list[Finding]:
    try:
        manifest = manifests.read(folder)
    except Damaged as error:
        return [Finding("manifest", "manifest.json", error.what, RESTORE)]
    if manifest is None:
        raise NotFound(f"no index at {folder}", "Call index_documents(paths=[...]) first")
    lance.disconnect(folder)  # what this process remembers of a file is not what is on disk
    found = [*_manifest(folder), *_truth(folder, manifest), *_answers(folder), *_orphans(folder)]
    found += _files(folder, manifest)
    snapshot = Snapshot(folder, manifest, examine=True)
    broken = list(_tables(snapshot))
    found += broken
    if not any(finding.kind == "table" for finding in broken):
        try:
            promises = inconsistencies(snapshot)
            found += [Finding(kind, where, what, DERIVE) for kind, where, what in promises]
        except GraphRAGError as error:  # rows can be read, an index cannot
            found.append(Finding("table", "indexes", error.what, DERIVE))
    return _shortened(found)


def _manifest(folder: Path) -> Iterator[Finding]:
    advice = (
        "Run graphrag-mcp doctor --repair: it is written again from the newest whole generation"
    )
    if later := _overtaken(folder):
        what = f"generation {later} was committed after the one it names"
        yield Finding("manifest", "manifest.json", what, OVERTAKEN)
    for path in [folder / "manifest.json", *sorted((folder / "generations").glob("*.json"))]:
        try:
            generation = manifests.parse(path.read_bytes(), path.name).generation
            if path.stem.isdigit() and int(path.stem) != generation:
                yield Finding("manifest", path.name, f"it holds generation {generation}", advice)
        except FileNotFoundError:
            yield Finding("manifest", path.name, f"{path.name} is missing", advice)
        except (Damaged, NewerFormat) as error:
            yield Finding("manifest", path.name, error.what, advice)
        except OSError as error:
            what = f"{path.name} cannot be read ({error.strerror})"
            yield Finding("manifest", path.name, what, UNREADABLE)


def _overtaken(folder: Path) -> int:
    """The newest whole generation, where manifest.json names an earlier one; else 0. The one after
    the current may be of a commit that was killed before its end. Two are of commits that came to
    theirs: an older file was put back."""
    path = folder / "manifest.json"
    try:
        current = manifests.parse(path.read_bytes(), path.name).generation
    except (OSError, Damaged, NewerFormat):
        return 0
    later = [kept.generation for kept in manifests.generations(folder) if kept.generation > current]
    return later[-1] if len(later) > 1 else 0


def _truth(folder: Path, manifest: Manifest) -> Iterator[Finding]:
    """Segments of the current generation, and all that older ones need beside it."""
    for where, what in differing(folder / "truth", manifest.segments):
        yield Finding("truth", where, what, RESTORE)
    kept, named = manifests.generations(folder), {one["file"] for one in _entries(manifest)}
    for part in ("truth", "files"):
        entries = [one for old in kept for one in (old.segments if part == "truth" else old.files)]
        older = {one["file"]: one for one in entries if one["file"] not in named}
        for where, what in differing(folder / part, [older[name] for name in sorted(older)]):
            yield Finding("generation", where, what, FORGET)


def _entries(manifest: Manifest) -> list[dict[str, Any]]:
    return [*manifest.segments, *manifest.files]


def _answers(folder: Path) -> Iterator[Finding]:
    with contextlib.closing(AnswerBook(folder)) as book:
        for problem in book.verify():
            where, _, what = problem.partition(": ")
            yield Finding("answers", where, what, SALVAGE)


def _files(folder: Path, manifest: Manifest) -> Iterator[Finding]:
    """The records, and every file of the tables that these list, those of older generations and of
    indexes included."""
    for where, what in differing(folder / "files", manifest.files):
        yield Finding("file", f"files/{where}", what, DERIVE)
    for where, what in checksums.verify(folder, manifest.files, manifest.tables):
        yield Finding("file", where, what, DERIVE)


def _orphans(folder: Path) -> Iterator[Finding]:
    for path, what in _orphaned(folder):
        where = path.relative_to(folder).as_posix()
        yield Finding("orphan", where, what, REMOVE if path.is_dir() else LEFT, remark=True)


def _orphaned(folder: Path) -> list[tuple[Path, str]]:
    """Files that no kept generation names: left by a crash, or by generations that have been
    forgotten."""
    current = manifests.read(folder)
    kept = [*([current] if current else []), *manifests.generations(folder)]
    named = {f"{name}.lance" for manifest in kept for name in manifest.tables}
    found = [
        (path, f"a {what} that no generation names" if path.suffix != ".tmp" else "left by a crash")
        for path in manifests.unnamed(folder, kept)
        for what in ["truth segment" if path.parent.name == "truth" else "record"]
    ]
    temporary = sorted([*folder.glob(".*.tmp"), *folder.glob("generations/.*.tmp")])
    found += [(path, "left by a crash") for path in temporary]
    found += [
        (path, "a table that no generation names")
        for path in sorted((folder / "tables").glob("*.lance"))
        if path.name not in named
    ]
    return found


def _tables(snapshot: Snapshot) -> Iterator[Finding]:
    """Every table is read whole, once, in batches: that it opens, and that rows match their check
    values."""
    for name in TABLES:
        wanted = snapshot.manifest.counters.get(name)
        try:
            count = snapshot.count(name)
            for rows in snapshot.batches(name):
                if "check" in rows.column_names:
                    wrong = pc.not_equal(rows["check"], check_values(rows))
                    for id in rows.filter(wrong)["id"].to_pylist():
                        what = f"row {id} does not match its check value"
                        yield Finding("row", name, what, DERIVE)
        except GraphRAGError as error:
            yield Finding("table", name, error.what, DERIVE)
            continue
        if wanted is not None and wanted != count:
            yield Finding("count", name, f"{count} rows, the manifest counts {wanted}", DERIVE)


def _repair_files(folder: Path, found: list[Finding]) -> None:
    """What loses nothing: manifest and copies made equal, copies that cannot be read and orphans
    removed."""
    if any(finding.kind == "answers" for finding in found):
        salvage(folder)
    lost = {finding.where for finding in found if finding.kind == "generation"}
    try:
        manifest = manifests.read(folder)
    except Damaged:
        return
    for path in (folder / "generations").glob("*.json"):
        try:
            kept = manifests.parse(path.read_bytes(), path.name)
            files = {entry["file"] for entry in _entries(kept)}
            if kept.generation != int(path.stem) or lost & files:
                path.unlink()
        except Damaged:
            path.unlink()
        except OSError:  # found, and not ours to mend
            continue
    if manifest is not None and not _overtaken(folder):  # a commit forgets what is later
        manifests.commit(folder, manifest)
    for path, _ in _orphaned(folder):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _forget_tables(folder: Path, damaged: Set[str]) -> None:
    """A generation without tables: the one that indexes next derives everything from the truth. Numbers
    are not reused.

    Older generations are forgotten, as their tables go. The new ones come into a folder of their
    own, since processes that have the old one open remember parts of it. Killed anywhere here, the
    next repair begins again."""
    manifest = manifests.read(folder)
    assert manifest is not None
    unsound = {where.split(".")[0] for where in damaged}
    history = [name for name in HISTORY if name not in unsound and "indexes" not in unsound]
    if "communities" not in history:  # they tell which reports have to go
        history = [name for name in history if name != "reports"]
    kept = {name: manifest.tables[name] for name in history if name in manifest.tables}
    # Deriving replaces each document of the log, so these count as there; all other counters start
    # again.
    counters = {"documents": segment_store.live_documents(folder, manifest).num_rows}
    counters |= {name: manifest.counters[name] for name in kept if name in manifest.counters}
    # Who has read the texts stays known: then what they answered is looked up, and not thrown away.
    named = manifest.parameters
    parameters = {"extraction": named["extraction"]} if "extraction" in named else {}
    empty = replace(
        manifest,
        generation=manifest.generation + 1,
        tables=kept,
        counters=counters,
        parameters=parameters,
        stale=["communities"] if kept else [],
    )
    manifests.commit(folder, empty)
    for path in (folder / "generations").glob("*.json"):
        if int(path.stem) != empty.generation:
            path.unlink()
    lance.disconnect(folder)
    old, new = (folder / f".tables-{which}-{os.getpid()}.tmp" for which in ("old", "new"))
    (folder / "tables").mkdir(exist_ok=True)
    new.mkdir()
    for name in kept:
        os.replace(folder / "tables" / f"{name}.lance", new / f"{name}.lance")
    os.replace(folder / "tables", old)
    os.replace(new, folder / "tables")
    shutil.rmtree(old)


def _shortened(findings: list[Finding]) -> list[Finding]:
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.kind, finding.where), []).append(finding)
    shown = []
    for (kind, where), group in groups.items():
        shown += group[:SHOWN]
        if len(group) > SHOWN:
            what = f"and {len(group) - SHOWN} more like these"
            shown.append(Finding(kind, where, what, group[0].repair))
    return shown
