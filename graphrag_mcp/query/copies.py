"""Equal texts: letters in one case and all blanks as one. Passages that repeat another, and files of which
every passage stands in another file as well."""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable

from graphrag_mcp import plugins
from graphrag_mcp.store.tables import Snapshot, rows_of
from graphrag_mcp.text.citing import file_and_key
from graphrag_mcp.text.terms import lists_of


def key_of(text: str) -> bytes:
    """16 bytes that equal texts share."""
    words = " ".join(text.casefold().split()).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(words, digest_size=16).digest()


def first_of_equal(texts: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Of (id, text) the ids whose text another id has, with the first id that has it."""
    same = lists_of((key_of(text), id) for id, text in texts)
    return {id: min(ids) for ids in same.values() if len(ids) > 1 for id in ids}


def files(snapshot: Snapshot) -> list[str]:
    """The uris, sorted, of files all of whose passages stand in other files. Of files with the same
    passages the first by uri is not listed, and neither is a file that contains another and
    more."""
    passages: dict[str, set[bytes]] = defaultdict(set)
    for batch in snapshot.batches("passages", ["uri", "text"]):
        for uri, text in rows_of(batch):
            passages[file_and_key(uri)[0]].add(key_of(text))
    seen: set[bytes] = set()
    found: list[str] = []
    for uri in sorted(passages, key=lambda uri: (-len(passages[uri]), uri)):
        if passages[uri] <= seen:
            found.append(uri)
        seen |= passages[uri]
    return sorted(found)


LINES, ALIKE = 50, 0.9  # lines of a file that looks generated, and the share of them that repeat


def uniform(snapshot: Snapshot) -> list[str]:
    """The uris, sorted, of files with LINES lines or more, of which all but a tenth are another line of
    the file but for their numbers, such as a listing of an interface; not of sheets, whose rows are
    documents, nor of kinds that plug-ins read: of 75 files of programs a person wrote 30."""
    lines: dict[str, Counter[str]] = defaultdict(Counter)
    for batch in snapshot.batches("passages", ["uri", "text"]):
        for uri, text in rows_of(batch):
            file, row = file_and_key(uri)
            if not row and not plugins.verbatim(file):
                folded = re.sub(r"\d+", "0", text.casefold())
                lines[file].update(line.strip() for line in folded.splitlines() if line.strip())
    return sorted(
        file
        for file, counts in lines.items()
        if (total := counts.total()) >= LINES
        and sum(count for count in counts.values() if count > 1) >= ALIKE * total
    )
