"""Equal texts: letters in one case and all blanks as one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from graphrag_mcp.store.tables import Snapshot, once, rows_of
from graphrag_mcp.text.terms import lists_of


def key_of(text: str) -> bytes:
    """16 bytes that equal texts share."""
    words = " ".join(text.casefold().split()).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(words, digest_size=16).digest()


def first_of_equal(texts: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Of (id, text) the ids whose text another id has, with the first id that has it."""
    same = lists_of((key_of(text), id) for id, text in texts)
    return {id: min(ids) for ids in same.values() if len(ids) > 1 for id in ids}


@once
def equal_documents(snapshot: Snapshot) -> dict[str, str]:
    """Documents (content ids) whose text another document has, with the first of them. Only texts whose passages
    have the same lengths and numbers of terms are read."""
    passages = snapshot.rows("passages", "", ["document_id", "char_end", "n_terms"])
    sizes = lists_of((id, size) for id, *size in rows_of(passages))
    alike = lists_of((str(sorted(found)), id) for id, found in sizes.items())
    ids = [id for group in alike.values() if len(group) > 1 for id in group]
    texts = snapshot.by_key("documents", ids, "id", ["id", "text"])
    return first_of_equal(rows_of(texts))
