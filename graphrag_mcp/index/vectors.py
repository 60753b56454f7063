"""Vectors of passages, entities, relationships and reports. What could not be embedded has no
vector, and is found missing by the next run."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from graphrag_mcp.llm.asker import Asker
from graphrag_mcp.store.schema import VECTORS
from graphrag_mcp.store.tables import Change, Snapshot
from graphrag_mcp.trust.credentials import masked

Row = dict[str, Any]
_REFERENCES = re.compile(r"\[Data:[^\[\]]*\]")
LONGEST = 8_000  # characters of a text that are embedded; models cut at 512 to 8,192 tokens
BATCH = 2_000  # rows read at once when a whole table is embedded
COLUMNS = {
    "passages": ["id", "title", "text"],
    "entities": ["id", "title", "description"],
    "relationships": ["id", "source_id", "target_id", "keywords", "description"],
    "reports": ["id", "title", "summary"],
}


@dataclass
class _Wanted:
    ids: list[str]
    shas: list[str]
    future: Future[list[bytes | None]]


@dataclass
class Vectors:
    asker: Asker
    gone: dict[str, set[str]] = field(default_factory=dict)
    wanted: dict[str, list[_Wanted]] = field(default_factory=dict)
    # by table, ids that no vector could be had for
    lacking: dict[str, set[str]] = field(default_factory=dict)
    # by table, ids whose vectors a change of this run has
    given: dict[str, set[str]] = field(default_factory=dict)
    # by table and id, the text that counts now
    latest: dict[str, dict[str, str]] = field(default_factory=dict)
    _early: list[asyncio.Task[None]] = field(default_factory=list)

    def want(
        self,
        table: str,
        rows: pa.Table | None,
        gone: Sequence[str] | Mapping[str, Any] = (),
        snapshot: Snapshot | None = None,
    ) -> None:
        """Embed these rows; forget the vectors of `gone`. `snapshot`: where the ends of
        relationships have names."""
        self.gone.setdefault(table, set()).update(gone)
        latest = self.latest.setdefault(table, {})
        self.given.setdefault(table, set()).difference_update(gone)
        self.lacking.setdefault(table, set()).difference_update(gone)
        for id in gone:
            latest.pop(id, None)
        if rows is None or not rows.num_rows:
            return
        titles = (
            _titles(snapshot, rows) if table == "relationships" and snapshot is not None else {}
        )
        texts = {
            row["id"]: embedded_text(table, row, titles)
            for row in rows.select(COLUMNS[table]).to_pylist()
        }
        shas = [
            hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]
            for text in texts.values()
        ]
        latest.update(zip(texts, shas, strict=True))
        future = self.asker.start(self._embedded(list(texts.values())))
        self.wanted.setdefault(table, []).append(_Wanted(list(texts), shas, future))

    def early(self, rows: Sequence[Any]) -> None:
        """Embed reports into the book of answers before they are rows of a table; called on the
        asker's loop."""
        said = [
            embedded_text("reports", {"title": row.title, "summary": row.summary}, {})
            for row in rows
        ]
        self._early.append(asyncio.get_running_loop().create_task(self._ahead(said)))

    async def _ahead(self, texts: Sequence[str]) -> None:
        await self.asker.embed(texts)  # the book keeps the vectors, this task none

    async def _embedded(self, texts: Sequence[str]) -> list[bytes | None]:
        await asyncio.gather(*self._early)  # or what is on its way would be bought twice
        return await self.asker.embed(texts)

    def want_missing(self, snapshot: Snapshot, everything: bool) -> None:
        """Embed the rows of the generation that have no vector; `everything`: all, another model
        made the others."""
        for table, vectors in VECTORS.items():
            there = (
                set()
                if everything
                else set(snapshot.rows(vectors, columns=["id"])["id"].to_pylist())
            )
            on_the_way = {
                id for one in self.wanted.get(table, ()) for id in one.ids
            } | self.given.get(table, set())
            every = set(snapshot.rows(table, columns=["id"])["id"].to_pylist())
            missing = sorted(every - there - on_the_way - self.gone.get(table, set()))
            for start in range(0, len(missing), BATCH):
                rows = snapshot.by_key(table, missing[start : start + BATCH], "id", COLUMNS[table])
                self.want(table, rows, (), snapshot)

    def coming(self) -> list[Future[list[bytes | None]]]:
        """What was asked for and is in no change yet."""
        return [one.future for wanted in self.wanted.values() for one in wanted]

    @property
    def failed(self) -> int:
        """Rows without a vector. What failed may have been asked for once more, by the second
        commit, and been had."""
        return sum(map(len, self.lacking.values()))

    def changes(self) -> Iterator[tuple[str, Change]]:
        """Changes of the vector tables with what is there, one after another: who writes each
        before taking the next never holds the vectors of all tables twice."""
        for table, vectors in VECTORS.items():
            change = self._change(table)
            if change is not None:
                yield vectors, change
            del change

    def _change(self, table: str) -> Change | None:
        ready = [one for one in self.wanted.get(table, ()) if one.future.done()]
        self.wanted[table] = [one for one in self.wanted.get(table, ()) if one not in ready]
        rows: dict[str, tuple[str, bytes]] = {}
        for one in ready:
            for id, sha, vector in zip(one.ids, one.shas, one.future.result(), strict=True):
                if vector is not None and self.latest[table].get(id) == sha:
                    rows[id] = (sha, vector)
                elif vector is None and self.latest[table].get(id) == sha:
                    self.lacking.setdefault(table, set()).add(id)
        self.lacking.setdefault(table, set()).difference_update(rows)
        self.given.setdefault(table, set()).update(rows)
        gone = self.gone.pop(table, set()) | rows.keys()
        return Change(sorted(gone), _table(rows)) if gone else None


def forgotten(changes: Mapping[str, Change], named: Mapping[str, int]) -> dict[str, Change]:
    """Vectors of rows that a commit replaces go with them: after a kill they would speak of other
    words."""
    return {
        VECTORS[table]: Change(sorted(changes[table].gone), None)
        for table in ("entities", "relationships")
        if changes[table].gone and VECTORS[table] in named
    }


def embedded_text(table: str, row: Mapping[str, Any], titles: Mapping[str, str]) -> str:
    """The words of a row that its vector stands for. No model is sent a key that stands in a text;
    what is said of names was made of texts without."""
    if table == "passages":
        text = masked(f"{row['title']}\n{row['text']}")
    elif table == "entities":
        text = f"{row['title']}: {row['description']}"
    elif table == "relationships":
        ends = (titles.get(row["source_id"], ""), titles.get(row["target_id"], ""))
        text = " ".join(part for part in (row["keywords"], *ends, row["description"]) if part)
    else:
        # ids mean nothing, and change with a rename
        text = f"{row['title']}\n{_REFERENCES.sub('', row['summary'])}"
    return text[:LONGEST]


def _titles(snapshot: Snapshot, rows: pa.Table) -> dict[str, str]:
    ends = sorted({*rows["source_id"].to_pylist(), *rows["target_id"].to_pylist()})
    found = snapshot.by_key("entities", ends, "id", ["id", "key"])
    return dict(zip(found["id"].to_pylist(), found["key"].to_pylist(), strict=True))


def _table(rows: Mapping[str, tuple[str, bytes]]) -> pa.Table | None:
    """Rows of a vector table; the list of fixed size is what Lance can search."""
    if not rows:
        return None
    raw = b"".join(vector for _, vector in rows.values())
    dimension = len(raw) // 4 // len(rows)
    values = pa.Array.from_buffers(pa.float32(), len(raw) // 4, [None, pa.py_buffer(raw)])
    return pa.table(
        {
            "id": pa.array(list(rows), pa.string()),
            "sha": pa.array([sha for sha, _ in rows.values()], pa.string()),
            "vector": pa.FixedSizeListArray.from_arrays(values, dimension),
        }
    )
