"""Files that hold nothing of their own: every passage of them stands in another file as well."""

from __future__ import annotations

import hashlib
from collections import defaultdict

from graphrag_mcp.store.tables import Snapshot, rows_of


def copies(snapshot: Snapshot) -> list[str]:
    """The uris of such files, in order. Of files that are equal the first by uri stays, and a file
    that holds another and more stays."""
    passages: dict[str, set[bytes]] = defaultdict(set)
    for batch in snapshot.batches("passages", ["uri", "text"]):
        for uri, text in rows_of(batch):
            words = " ".join(text.split()).encode("utf-8", "surrogatepass")
            file = uri.partition("#")[0]
            passages[file].add(hashlib.blake2b(words, digest_size=16).digest())
    seen: set[bytes] = set()
    found: list[str] = []
    for uri in sorted(passages, key=lambda uri: (-len(passages[uri]), uri)):
        if passages[uri] <= seen:
            found.append(uri)
        seen |= passages[uri]
    return sorted(found)
