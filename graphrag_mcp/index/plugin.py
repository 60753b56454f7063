"""What a plug-in (`plugins.py`) does in an indexing run with all documents: it links the facts that it
extracted (`index/extract/plugin.py`), groups its documents and reports on the groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from graphrag_mcp.index.communities import ClusterParams, Leaf
from graphrag_mcp.index.extract import UnitNames
from graphrag_mcp.plugins import plugged, readers
from graphrag_mcp.store.tables import rows_of

if TYPE_CHECKING:
    from graphrag_mcp.index.report_content import Topic
    from graphrag_mcp.index.report_extractive import Report
    from graphrag_mcp.store.tables import Snapshot

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Linked:
    """Rows of the plug-in's table that are to be written again, and the ids of the text units of other
    documents that joined the batch."""

    rows: Sequence[Row] = ()
    units: set[str] = field(default_factory=set)


class IndexingPlugin(Protocol):
    def link(
        self, rows: Sequence[Row], before: Sequence[Row] | None, snapshot: Snapshot | None, fresh: dict[str, UnitNames]
    ) -> Linked:
        """Link the facts of all documents (`rows`: id, uri, facts, links), and put the names and
        statements that follow into the text units of a batch (`fresh`). Older text units whose names or
        statements change are read into it. `before`: the rows that rows with UNLINKED replace, all
        others being linked; None: nothing is known to be linked."""
        ...

    def groups(self, units: Mapping[str, str], params: ClusterParams) -> Iterable[Leaf]:
        """The groups of the text units of its documents; `units`: id -> uri of the document."""
        ...

    def report(self, topic: Topic, children: Sequence[Report]) -> Report:
        """The report on such a group, without a model."""
        ...


def plugins() -> Mapping[str, IndexingPlugin]:
    """By name."""
    return plugged("indexing")


def outlined_units(snapshot: Snapshot, documents: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """By plug-in the text units of documents of its kind, each with the uri of its document.
    `documents`: the document by text unit."""
    found: dict[str, dict[str, str]] = {}
    for name, reader in readers().items():
        rows = rows_of(snapshot.rows(name, columns=["id", "uri"]))
        uris = {id: uri for id, uri in rows if reader.knows(uri)}
        found[name] = {unit: uris[of] for unit, of in documents.items() if of in uris}
    return {name: units for name, units in found.items() if units}
