"""The views of the explorer: a view's name and parameters in, JSON out.

A module holds the views of one noun and the types of their data: `topics.py`, `community.py`,
`entity.py`, `texts.py`, `links.py`, `drift.py`, `history.py`, `search.py`, `library.py`. Credentials
that stand in documents are masked here, in the text of a passage with as many characters, so that
offsets stay right. Raises GraphRAGError for what is not there."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from graphrag_mcp.errors import BadInput
from graphrag_mcp.explorer import drift, entity, history, search, texts
from graphrag_mcp.explorer.community import community
from graphrag_mcp.explorer.library import library
from graphrag_mcp.explorer.links import link_graph
from graphrag_mcp.explorer.topics import map_, overview, topics
from graphrag_mcp.query.drift_state import Walk
from graphrag_mcp.store import sessions
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.trust.fencing import SHOW_SECRETS, masked

if TYPE_CHECKING:
    from graphrag_mcp.app import App

Arguments = Mapping[str, str]


def _drift(app: App, snapshot: Snapshot, arguments: Arguments) -> Mapping[str, Any]:
    if id := _session_id(arguments):
        return drift.session(snapshot, app.drift_path(id))
    return drift.listed_sessions(snapshot, app.drift_path("x").parent)


def _path(app: App, snapshot: Snapshot, arguments: Arguments) -> Mapping[str, Any]:
    return entity.path(snapshot, _number(arguments, "id", "e"), _number(arguments, "to", "e"))


View = Callable[["App", Snapshot, Arguments], Mapping[str, Any]]
VIEWS: dict[str, View] = {
    "overview": lambda app, snapshot, _: overview(snapshot, app.corpora()),
    "map": lambda _, snapshot, arguments: map_(snapshot, _number(arguments, "under", "c")),
    "community": lambda _, snapshot, arguments: community(snapshot, _number(arguments, "id", "c")),
    "entity": lambda _, snapshot, arguments: entity.entity(snapshot, _number(arguments, "id", "e")),
    "graph": lambda _, snapshot, __: entity.entity_graph(snapshot),
    "path": _path,
    "passage": lambda _, snapshot, arguments: texts.passage(snapshot, _number(arguments, "id", "t")),
    "document": lambda _, snapshot, arguments: texts.document(snapshot, _number(arguments, "id", "d")),
    "links": lambda _, snapshot, __: link_graph(snapshot),
    "search": lambda _, snapshot, arguments: search.search(snapshot, arguments),
    "library": lambda app, snapshot, _: library(app, snapshot),
    "drift": _drift,
    "changes": lambda _, snapshot, arguments: history.changes(snapshot, _number(arguments, "since", "", -1)),
    "timeline": lambda _, snapshot, __: history.timeline(snapshot),
}


def load(app: App, view: str, arguments: Arguments, corpus: str = "") -> dict[str, Any]:
    """The data of a view of a corpus; opened once more where its generation has been cleaned away."""
    if view not in VIEWS:
        raise BadInput(f"the explorer has no view {view[:40]!r}", f"Use one of {', '.join(VIEWS)}")
    if view == "drift" and arguments.get("id") and not corpus:
        session = Walk(sessions.read(app.drift_path(_session_id(arguments))))
        corpus = str(session.header.get("corpus", ""))
    name = app.corpus_for_reading(corpus)

    def shown(snapshot: Snapshot) -> dict[str, Any]:
        topics(snapshot)  # before a view asks for them
        found: Any = VIEWS[view](app, snapshot, arguments)
        found = found if SHOW_SECRETS.get() else _without_secrets(found)
        return {**found, "generation": snapshot.manifest.generation, "corpus": name}

    return app.newest(name, shown)


def _number(arguments: Arguments, name: str, letter: str, without: int = 0) -> int:
    """The number of an id of this letter (`c5`, `t33.2` or `5`); `without` where it is left out."""
    text = arguments.get(name, "").strip()
    match = re.fullmatch(rf"(?:{letter})?([0-9]{{1,12}})(?:\.[0-9]{{1,6}})?", text, re.IGNORECASE)
    if text and match is None:
        raise BadInput(f"{text[:40]!r} is no id of the explorer", "Choose one from a list")
    return int(match[1]) if match else without


def _session_id(arguments: Arguments) -> str:
    id = arguments.get("id", "")
    if id and not re.fullmatch(r"[A-Za-z0-9_-]{1,80}", id):
        raise BadInput(f"{id[:40]!r} is no DRIFT session", "Choose one from the list")
    return id


def _without_secrets(value: Any, name: str = "") -> Any:
    """The data without credentials; `name` is the key under which a value stands."""
    if isinstance(value, str):
        return texts.starred(value) if name == "text" else masked(value)
    if isinstance(value, dict):
        fields = cast(dict[str, Any], value)
        return {key: _without_secrets(field, key) for key, field in fields.items()}
    if isinstance(value, list):
        return [_without_secrets(element) for element in cast(list[Any], value)]
    return value
