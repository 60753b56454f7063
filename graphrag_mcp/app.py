"""The open corpora of a server or command: snapshots, and folders that may be read."""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import logging
import os
import re
import threading
import unicodedata
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import unquote, urlsplit

from graphrag_mcp.errors import BadInput, Damaged, GraphRAGError, NewerFormat, NotFound, OutsideRoots, extra
from graphrag_mcp.settings import Settings, address_of
from graphrag_mcp.trust.fencing import SUBJECT, folder_name
from graphrag_mcp.trust.private import is_name, keep_private, name_character

if TYPE_CHECKING:
    from pandas import DataFrame

    from graphrag_mcp.llm.asker import Asker
    from graphrag_mcp.store.tables import Snapshot

log = logging.getLogger(__name__)

Found = TypeVar("Found")
READ = 10_000  # documents that agents have read and that are remembered, some 3 MB
NOTES_CORPUS = "notes"  # inline texts only, no name given, no folder to name the corpus after


class App:
    """One per process. Safe to use from several threads; opens nothing until asked."""

    def __init__(self, settings: Settings, corpus: str = "") -> None:
        self.settings = settings
        self.corpus = checked_name(corpus) if corpus else ""  # meant where a call names none
        self.home = settings.home
        self.store = address_of(self.home)  # the object storage that the home is a copy of, or ""
        self.read_only = False  # may nothing be written for the caller, as a server that only reads
        self.page = ""  # path of the explorer page, where a server of this process serves it
        keep_private(self.home)
        self._snapshots: dict[str, tuple[tuple[int, int, int], Snapshot]] = {}
        self._askers: dict[str, Asker] = {}
        # a link put in its place leads elsewhere
        self._pinned = [(root, root.resolve()) for root in settings.roots]
        self._lock = threading.Lock()
        self._odd: set[str] = set()  # folders whose names have been complained of
        # Content ids of the documents that agents have read, by agent, corpus and number (8 of d8).
        self._seen: dict[tuple[str, str, int], str] = {}

    def remember(self, by: str, corpus: str, number: int, id: str) -> None:
        """This agent has read the document as it is now; of READ documents those read last are known."""
        with self._lock:
            self._seen.pop((by, corpus, number), None)
            self._seen[by, corpus, number] = id
            if len(self._seen) > READ:
                del self._seen[next(iter(self._seen))]

    def last_read(self, by: str, corpus: str, number: int) -> str | None:
        """The content id of the document as this agent has read it."""
        return self._seen.get((by, corpus, number))

    # ---- corpora ------------------------------------------------------------------------------

    def corpora(self) -> list[str]:
        """Names of the corpora that have an index, sorted. A folder with a name that none can have,
        such as a copy that a file manager made, is left out, which is logged once."""
        named = self._folders()
        if odd := sorted(name for name in named - self._odd if not is_name(name)):
            self._odd |= set(odd)
            log.warning("%s", left_out(odd))
        return sorted(filter(is_name, named))

    def all_written(self) -> bool:
        """Has every document of the corpora a summary, and is no question open, so that agents have nothing
        to write? By the counts of the manifests alone: a list of tools must not wait for an index to be
        opened. An index of a release that did not count its questions may have one open."""
        from graphrag_mcp.store import manifest

        names = [self.corpus] if self.corpus else self.corpora()
        for name in names:
            with contextlib.suppress(GraphRAGError):
                stored = manifest.read(self.folder(name))
                counts = stored.counters if stored else {}
                uncounted = stored is not None and "pending" in stored.tables
                unsummarised = counts.get("documents", 0) > counts.get("summarised", 0)
                if counts.get("pending", uncounted) or unsummarised:
                    return False
        return True

    def misnamed(self) -> str:
        """What `corpora` leaves out, as a sentence; "" where it is nothing."""
        odd = sorted(name for name in self._folders() if not is_name(name))
        return left_out(odd) if odd else ""

    def _folders(self) -> set[str]:
        base, known = self.home / "corpora", set[str]()
        if self.store:
            from graphrag_mcp.store import mirror

            known.update(mirror.corpora(self.home))
        if base.is_dir():
            for folder in base.iterdir():  # a kept generation stands in for a lost manifest
                if folder.name.startswith("."):
                    continue  # on its way out (jobs/delete.py)
                kept = (folder / "generations").glob("*.json")
                known |= {folder.name} if (folder / "manifest.json").is_file() or any(kept) else set()
        return known

    def folder(self, corpus: str) -> Path:
        """Where a corpus lives or would live. BadInput for a name that cannot be one."""
        return self.home / "corpora" / checked_name(corpus)

    def corpus_for_writing(self, name: str = "", first_path: str | Path = "") -> str:
        """The name, else that of this server, the first folder indexed, the first root, `notes`."""
        if name or self.corpus:
            return checked_name(name or self.corpus)
        if str(first_path):
            path = Path(first_path).resolve()
            return corpus_name(path.parent if path.is_file() else path)
        return corpus_name(self.settings.roots[0]) if self.settings.roots else NOTES_CORPUS

    def corpus_to_update(self, name: str, paths: Sequence[str]) -> str:
        """The corpus that a call to index `paths` means: as in `corpus_for_writing`, but where there is none of this
        name yet and all files of `paths` lie in folders of the corpus that searches read, that corpus. Another would
        hold the same files, and searches would read it in place of the first. Texts without `paths` go to that corpus
        as well. Folders outside of the roots do not count."""
        from graphrag_mcp.store import manifest

        named = self.corpus_for_writing(name, paths[0] if paths else "")
        if name or self.corpus or named in self.corpora():
            return named
        roots = self._roots()
        try:  # a corpus that cannot be read must not keep others from being made
            folder = self.fetched()
            stored = manifest.read(folder)
        except GraphRAGError as error:
            log.info("%s", error.what)
            return named
        sources = stored.sources.values() if stored else ()
        folders = [Path(source["path"]) for source in sources if source.get("path")]
        folders = [path for path in folders if any(path.is_relative_to(root) for root in roots)]
        resolved = [Path(path).resolve() for path in paths]
        inside = all(any(path.is_relative_to(known) for known in folders) for path in resolved)
        return folder.name if folders and inside else named

    def corpus_for_reading(self, name: str = "") -> str:
        """The given name; else the corpus of the first root; else the only one with a folder of
        this project; else the only one there is. NotFound lists the corpora, nearest name first."""
        known = self.corpora()
        if name:
            if name in known:
                return name
            every = name.strip() in ("*", "all")
            if every and len(known) == 1:
                return known[0]
            if every or re.search("[,，、;]", name):
                what = f"this works on one corpus, and {name[:80]!r} means several"
                raise BadInput(what, _choose(known, ""))
            raise NotFound(f"there is no corpus {checked_name(name)!r}", _choose(known, name))
        if self.corpus:
            if self.corpus in known:
                return self.corpus
            what = f"there is no corpus {self.corpus!r} yet"
            raise NotFound(what, 'Call index_documents(paths=["."]) first')
        if self.settings.roots and (root_corpus := corpus_name(self.settings.roots[0])) in known:
            return root_corpus
        if len(known) == 1:
            return known[0]
        if not known:
            advice = 'Call index_documents(paths=["."]) or give it texts first'
            raise NotFound("there is no index yet", advice)
        ours = [corpus for corpus in known if self._holds_our_folder(corpus)]
        if len(ours) == 1:
            return ours[0]
        count = f"{len(ours)} corpora were" if ours else f"none of the {len(known)} corpora was"
        what = f"{count} made from this folder"
        raise NotFound(what, _choose(known, ""))

    def several(self, corpus: str, ids: Sequence[str] = ()) -> list[str]:
        """Corpora that ids (`a/e12`) name or `corpus` lists (`a,b`, `*`); [] where one is meant."""
        many = corpus.strip() in ("*", "all") or re.search("[,，、;]", corpus)
        if not many and not any("/" in id for id in ids):
            return []
        from graphrag_mcp.query.federated import named_by, wanted

        known = self.corpora()
        named, every = named_by(ids, known)
        listed = wanted(corpus, known)
        if not named and not listed:
            return []
        rest = [] if every else listed or [corpus]
        return list(dict.fromkeys([*named, *map(self.corpus_for_reading, rest)]))

    def fetched(self, corpus: str = "") -> Path:
        """The folder of a corpus with its newest generation in it, also where the home is on object
        storage and this machine has no copy yet."""
        folder = self.folder(self.corpus_for_reading(corpus))
        self._fetch(folder)
        return folder

    def snapshot(self, corpus: str = "") -> Snapshot:
        """A reader of the newest generation, cached until the manifest file changes."""
        from graphrag_mcp.store import tables

        name = self.corpus_for_reading(corpus)
        folder = self.folder(name)
        self._fetch(folder)
        stamp = file_stamp(folder / "manifest.json")
        with self._lock:
            cached = self._snapshots.get(name)
            if cached is None or cached[0] != stamp:
                # Stamp before reading: a commit in between only means one more reopening next time.
                cached = (stamp, tables.open_snapshot(folder))
                self._snapshots[name] = cached
            return cached[1]

    def table(self, name: str, corpus: str = "") -> DataFrame:
        """One table of the newest generation as a pandas DataFrame, sorted by id (extra [pandas]).

        `name` is one of `store.schema.TABLES`, for example entities, relationships, text_units or
        communities; the columns are in docs/reference.md. The whole table is read into memory.
        Raises NotFound for another name and for a corpus that does not exist, BadInput without pandas."""
        from graphrag_mcp.store.schema import TABLES

        if find_spec("pandas") is None:
            raise BadInput("pandas is not installed", f"Install {extra('pandas')}")
        if name not in TABLES:
            known = ", ".join(sorted(TABLES))
            raise NotFound(f"there is no table {name!r}", f"The tables are: {known}")
        rows = self.snapshot(corpus).rows(name)
        first = "id" if "id" in rows.column_names else rows.column_names[0]
        return rows.sort_by(first).to_pandas()

    def _fetch(self, folder: Path) -> None:
        if not self.store:
            return
        from graphrag_mcp.store import mirror

        mirror.of(folder).refresh()
        mirror.used(folder)
        for name in mirror.evict(self.home, self.settings.cache_bytes, folder.name):
            self.forget(name)

    def newest(self, corpus: str, work: Callable[[Snapshot], Found]) -> Found:
        """`work` on the newest generation; once more where that was cleaned away meanwhile."""
        snapshot = self.snapshot(corpus)
        try:
            return work(snapshot)
        except GraphRAGError:
            self.forget(corpus)
            newer = self.snapshot(corpus)
            if newer.manifest.generation == snapshot.manifest.generation:
                raise
            return work(newer)

    def forget(self, corpus: str) -> None:
        """Drop the cached snapshot, for a reader whose generation has been cleaned away."""
        with self._lock:
            self._snapshots.pop(corpus, None)

    def asker(self, corpus: str) -> Asker:
        """Whom searches may ask: configured models, through the reply cache, without a budget."""
        from graphrag_mcp.llm.opening import open_asker

        with self._lock:
            if corpus not in self._askers:
                self._askers[corpus] = open_asker(self.folder(corpus), self.settings, limited=False)
            return self._askers[corpus]

    def reads_with_models(self, corpus: str) -> bool:
        """Does a search of this corpus need a model: for the question's vector, or to rerank?"""
        from graphrag_mcp.llm.opening import with_vectors

        settings = with_vectors(self.settings, self.folder(corpus))
        return bool(settings.embedding_model or settings.rerank_model)

    def drift_path(self, session_id: str) -> Path:
        """The journal of a DRIFT session of the caller. BadInput for what is no id of ours."""
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,80}", session_id):
            what = f"session_id {session_id[:40]!r} is not one of ours"
            raise BadInput(what, "Start with drift_search(query=...)")
        # with tokens each has a folder: the same question is then not the same session
        subject = SUBJECT.get()
        subfolder = folder_name(subject) if subject else ""
        return self.home / "drift" / subfolder / f"{session_id}.jsonl"

    def warm(self) -> None:
        """Import what the first search needs, and open the default corpus where there is one."""
        from graphrag_mcp.query import local  # noqa: F401  (all that a search reads with)
        from graphrag_mcp.store.tables import lancedb

        lancedb()  # 1 s

        with contextlib.suppress(NotFound):
            self.snapshot().count("documents")

    # ---- folders ------------------------------------------------------------------------------

    def allowed(self, path: str | Path) -> Path:
        """`path` (relative to the first root) with links resolved, if it exists in a root.

        OutsideRoots for others, whether or not they exist; BadInput for what is no path."""
        roots = self._roots()
        if not roots:
            advice = "Set GRAPHRAG_MCP_ROOTS to the folders it may index"
            raise OutsideRoots("this server may not read any folder", advice)
        target = roots[0] / _plain_path(str(path))
        outside = OutsideRoots(
            f"{_short(path)} is outside the folders this server may read",
            f"Use a path under {', '.join(map(str, roots))}, or add its folder to GRAPHRAG_MCP_ROOTS",
        )
        # On Windows, looking at another machine's folder would already greet that machine.
        drives = {root.drive.lower() for root in roots}
        if target.drive.startswith("\\\\") and target.drive.lower() not in drives:
            raise outside

        def within(place: Path) -> bool:
            return any(place.is_relative_to(root) for root in roots)

        try:
            resolved = target.resolve()
        except (OSError, RuntimeError, ValueError) as error:
            what = f"{_short(path)} cannot be resolved"
            raise BadInput(what, "Give the path of a real file or folder") from error
        if not within(resolved):
            raise outside
        try:
            existing = target if os.path.lexists(target) else _respelled(resolved, roots)
            real = existing.resolve(strict=True)
        except (OSError, RuntimeError) as error:
            names = _names_in(resolved.parent) if within(resolved.parent) else []
            seen = sorted(name for name in names if not name.startswith("."))
            near = difflib.get_close_matches(resolved.name, seen, n=3, cutoff=0.4)
            advice = f"Nearest there: {', '.join(near)}"
            if not near:
                advice = f"Relative paths start at {roots[0]}"
            raise BadInput(f"there is no file or folder {_short(path)}", advice) from error
        if not within(real):
            raise outside  # a link has been put there meanwhile
        return real

    def notes_folder(self) -> Path:
        """The folder of notes without links, made where it is missing. BadInput where the server keeps
        no notes, or in a folder that no index reads; OutsideRoots for one outside of the roots."""
        from graphrag_mcp.sources.walk import folder_reason

        if not self.settings.notes:
            advice = "Start it with --notes DIR, a folder inside one of its roots"
            raise BadInput("this server keeps no notes", advice)
        base = Path(self.settings.notes).resolve()
        holding = [root for root in self._roots() if base.is_relative_to(root)]
        if not holding:
            listed = ", ".join(map(str, self._roots())) or "none"
            what = f"the folder of notes {_short(base)} is outside the folders this server may read"
            raise OutsideRoots(what, f"Name a folder below one of them ({listed}) with --notes")
        below = base.relative_to(max(holding, key=lambda root: len(root.parts)))
        if reasons := [reason for part in below.parts if (reason := folder_reason(part, ()))]:
            what = f"the folder of notes {_short(base)} is not indexed ({reasons[0]})"
            raise BadInput(what, "Name another folder with --notes")
        try:
            base.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            what = f"the folder of notes {_short(base)} cannot be made ({error.strerror})"
            advice = "Give this user the right to read and write it, or name another with --notes"
            raise BadInput(what, advice) from error
        return self.allowed(base)

    def _roots(self) -> list[Path]:
        """The roots as they were at the start; one that leads elsewhere by now is none any more."""
        return [real for root, real in self._pinned if root.resolve() == real]

    def _holds_our_folder(self, corpus: str) -> bool:
        from graphrag_mcp.store import manifest

        try:  # one that is damaged must not keep the others from being used
            stored, roots = manifest.read(self.folder(corpus)), self._roots()
        except (Damaged, NewerFormat) as error:
            log.warning("%s", error.what)
            return False
        sources = stored.sources.values() if stored else ()
        paths = [Path(source["path"]) for source in sources if source.get("path")]
        return any(path.is_relative_to(root) for path in paths for root in roots)


def corpus_name(folder: Path) -> str:
    """`<slug of the name>-<6 hex of the absolute path>`: stable, and two folders never share it."""
    path = os.path.normcase(folder.resolve())
    letters = unicodedata.normalize("NFC", folder.resolve().name).lower()
    slug = "".join(ch if name_character(ch) else "-" for ch in letters)
    slug = re.sub(r"-+", "-", slug).strip("-.~")[:40]
    digest = hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{slug or 'folder'}-{digest[:6]}"


def left_out(names: Sequence[str]) -> str:
    """One sentence on folders in `corpora/` that are no corpora."""
    listed = ", ".join(_short(name) for name in names[:3])
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"Left out of corpora: {listed}{more}, since no corpus can have such a name; rename the folder."


def checked_name(name: str) -> str:
    """The name when it can be a folder on any platform: letters of any script, digits, - _ . ~"""
    if not is_name(name):
        raise BadInput(
            f"corpus name {name[:40]!r} cannot be used",
            "Use letters, digits, - _ . ~ without spaces or slashes, not starting or ending with a dot",
        )
    return name


def _choose(known: list[str], name: str) -> str:
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
    listed = [*near, *(corpus for corpus in known if corpus not in near)][:12]
    if not listed:
        return 'Call index_documents(paths=["FOLDER"]) to make the first'
    more = f" (and {len(known) - 12} more)" if len(known) > 12 else ""
    return f"Give corpus= one of: {', '.join(listed)}{more}"


def _plain_path(text: str) -> Path:
    """Text as a path: `~` and file:// understood, other URLs and NUL refused."""
    text = text.strip()
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", text):
        parts = urlsplit(text)
        if parts.scheme.lower() != "file" or parts.netloc not in ("", "localhost"):
            what = f"{_short(text)} is a URL, and only files and folders are read"
            raise BadInput(what, "Save it to a file first")
        text = unquote(parts.path)
    if not text or "\0" in text:
        what = "an empty path or one with a NUL character names nothing"
        raise BadInput(what, 'Give a folder or file, e.g. "docs"')
    try:
        return Path(text).expanduser()
    except RuntimeError as error:
        what = f"{_short(text)} names an unknown user's folder"
        raise BadInput(what, "Give an absolute path") from error


def _respelled(path: Path, roots: list[Path]) -> Path:
    """The path as the disk spells it, where only the form of its accents differs: names from a Mac
    are decomposed, and what models write is not. Looks only below the roots."""
    spelled = next(root for root in roots if path.is_relative_to(root))
    for part in path.relative_to(spelled).parts:
        if not part.isascii() and not os.path.lexists(spelled / part):
            names, form = _names_in(spelled), unicodedata.normalize("NFC", part)
            same = [name for name in names if unicodedata.normalize("NFC", name) == form]
            part = same[0] if len(same) == 1 else part
        spelled /= part
    return spelled


def _names_in(folder: Path) -> list[str]:
    from graphrag_mcp.sources.opening import entries

    with contextlib.suppress(OSError, ValueError), entries(str(folder)) as listed:
        return [entry.name for entry in listed]
    return []


def file_stamp(path: Path) -> tuple[int, int, int]:
    """What changes when a file is replaced; zeros where there is none."""
    with contextlib.suppress(OSError):
        stat = path.stat()
        return (stat.st_mtime_ns, stat.st_size, stat.st_ino)
    return (0, 0, 0)


def _short(path: object) -> str:
    text = str(path)
    return repr(text if len(text) <= 200 else text[:199] + "…")
