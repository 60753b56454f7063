"""A fault of another program's index, and the tables it is looked for in.

Takes what is wrong as a list of examples; gives at most one `Fault` for it, with their number and the first three.
Knows no file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from graphrag_mcp.store.outside import Row, ids

EXAMPLES = 3
LONGEST = 160  # characters of an example
AGAIN = "Run `graphrag index` again; its cache answers what was asked before"
UPDATE = "Run `graphrag index` afresh: an update does not count these anew"


@dataclass(frozen=True)
class Fault:
    """`kind` names the sort of fault, `where` the table or file. A remark is worth knowing and harms nothing."""

    kind: str
    where: str
    count: int
    what: str
    examples: list[str]
    repair: str
    remark: bool = False


@dataclass
class Tables:
    """Rows of the tables that could be read, by name."""

    rows: dict[str, list[Row]] = field(default_factory=dict)

    def of(self, name: str) -> list[Row]:
        return self.rows.get(name, [])

    def known(self, name: str) -> set[str]:
        return {str(row.get("id")) for row in self.of(name)}


def fault(
    kind: str, where: str, examples: Sequence[str], what: str, repair: str, *, remark: bool = False
) -> list[Fault]:
    """One fault of these, none for an empty list."""
    if not examples:
        return []
    first = [" ".join(str(one).split())[:LONGEST] for one in examples[:EXAMPLES]]
    return [Fault(kind, where, len(examples), what, first, repair, remark)]


def dangling(
    tables: Tables, where: str, rows: Sequence[Row], column: str, table: str, shown: Callable[[Row], str]
) -> Iterator[Fault]:
    """Ids in a column that are not in the table they point to; nothing is said of a table that could not be read."""
    if table not in tables.rows:
        return
    known = tables.known(table)
    lost = [f"{shown(row)} names {id[:32]}" for row in rows for id in ids(row, column) if id not in known]
    yield from fault("dangling", where, lost, f"{column} lead nowhere in {table}", AGAIN)
