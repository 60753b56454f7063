"""What a model is asked about texts, and when."""

from __future__ import annotations

from threading import Thread

from graphrag_mcp.index import rows as building
from graphrag_mcp.index.chunk import ChunkParams
from graphrag_mcp.types import Document

NOTE = "Ada Lovelace met George Boole in Lincoln."


def test_a_document_is_cut_before_its_names_are_looked_for_and_these_are_looked_for_once() -> None:
    document = Document("a.md", "Letters", "\n\n".join(f"# Day {day}\n\n{NOTE} It rained." for day in range(40)))
    params, numbers = ChunkParams(size=120, overlap=20, passage_size=60), {"d": 1, "t": 1}
    rows = building.cut(document, building.Before(), params, numbers)
    assert len(rows.units) == len(rows.to_read) > 3 and not rows.passages and not rows.fresh
    first, found = next(iter(rows.to_read.values())), []
    threads = [Thread(target=lambda: found.append(first.found())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    building.fill(rows)
    assert all(one is found[0] for one in found) and rows.fresh[first.id] is found[0][0]
    assert {"ada lovelace", "george boole"} <= {named.key for named in found[0][0].named}
    whole = building.build(document, building.Before(), params, {"d": 1, "t": 1})
    assert (whole.document, whole.units, whole.passages, whole.fresh) == (
        rows.document, rows.units, rows.passages, rows.fresh,
    )  # fmt: skip
