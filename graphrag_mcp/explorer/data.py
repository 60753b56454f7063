"""The data of every view of the explorer: a view's name and parameters in, data out.

Takes an `App`, a view and parameters as text, as an address holds them; gives a dictionary ready for
JSON with the generation that it is of. Credentials that stand in documents are masked, in the text
of a passage with as many characters, so that offsets stay right. GraphRAGError for what is not there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from graphrag_mcp.errors import BadInput, GraphRAGError
from graphrag_mcp.explorer import finding, history, topics, views
from graphrag_mcp.trust.credentials import masked, spans
from graphrag_mcp.trust.fencing import SHOW_SECRETS

if TYPE_CHECKING:
    from graphrag_mcp.app import App
    from graphrag_mcp.store.tables import Snapshot

View = Callable[["App", "Snapshot", Mapping[str, str]], dict[str, Any]]

VIEWS: dict[str, View] = {
    "overview": lambda app, snapshot, _: topics.overview(snapshot, app.corpora()),
    "map": lambda _, snapshot, given: topics.map_(snapshot, _number(given, "under", "c")),
    "community": lambda _, snapshot, given: views.community(snapshot, _number(given, "id", "c")),
    "entity": lambda _, snapshot, given: views.entity(snapshot, _number(given, "id", "e")),
    "passage": lambda _, snapshot, given: views.passage(snapshot, _number(given, "id", "t")),
    "document": lambda _, snapshot, given: views.document(snapshot, _number(given, "id", "d")),
    "path": lambda _, snapshot, given: views.path(
        snapshot, _number(given, "id", "e"), _number(given, "to", "e")
    ),
    "search": lambda _, snapshot, given: finding.search(snapshot, given.get("query", "")),
    "drift": lambda app, snapshot, given: history.drift(
        snapshot, app.drift_path("x").parent, _session(given.get("id", ""))
    ),
    "changes": lambda _, snapshot, given: history.changes(
        snapshot, _number(given, "since", "") if given.get("since") else -1
    ),
    "timeline": lambda _, snapshot, __: history.timeline(snapshot),
}


def load(app: App, view: str, given: Mapping[str, str], corpus: str = "") -> dict[str, Any]:
    """The data of a view of a corpus; opened once more where its generation has been cleaned away."""
    if view not in VIEWS:
        raise BadInput(f"the explorer has no view {view[:40]!r}", f"Use one of {', '.join(VIEWS)}")
    if view == "drift" and given.get("id") and not corpus:
        corpus = history.corpus_of(app.drift_path(_session(given["id"])))
    name = app.corpus_for_reading(corpus)
    snapshot = app.snapshot(name)
    try:
        found = VIEWS[view](app, snapshot, given)
    except GraphRAGError:
        app.forget(name)
        newer = app.snapshot(name)
        if newer.manifest.generation == snapshot.manifest.generation:
            raise
        snapshot, found = newer, VIEWS[view](app, newer, given)
    shown = found if SHOW_SECRETS.get() else _without_secrets(found)
    return {**shown, "generation": snapshot.manifest.generation, "corpus": name}


def _number(given: Mapping[str, str], name: str, letter: str) -> int:
    """The number behind an id (`c5` or `5`); 0 where it is left out."""
    text = given.get(name, "").strip()
    match = re.fullmatch(rf"{letter}?(\d{{1,12}})(?:\.\d{{1,6}})?", text, re.IGNORECASE)
    if text and match is None:
        raise BadInput(f"{text[:40]!r} is no id of the explorer", "Choose one from a list")
    return int(match[1]) if match else 0


def _session(id: str) -> str:
    if id and not re.fullmatch(r"[A-Za-z0-9_-]{1,80}", id):
        raise BadInput(f"{id[:40]!r} is no DRIFT session", "Choose one from the list")
    return id


def _without_secrets(value: Any, name: str = "") -> Any:
    if isinstance(value, str):
        return _starred(value) if name == "text" else masked(value)
    if isinstance(value, dict):
        return {key: _without_secrets(one, key) for key, one in value.items()}
    return [_without_secrets(one) for one in value] if isinstance(value, list) else value


def _starred(text: str) -> str:
    """The text with a star for each character of a credential."""
    for start, end in reversed(spans(text)):
        text = f"{text[:start]}{'*' * (end - start)}{text[end:]}"
    return text
