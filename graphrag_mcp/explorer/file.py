"""The explorer page as one file: the template with the data of a corpus in it, opened without a server.

Takes an `App` and a corpus; gives the document. It holds the map and all topics, the most connected
entities in full with the texts that they cite, and of the others names alone; what it leaves out it
says.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from graphrag_mcp.explorer.data import load
from graphrag_mcp.explorer.page import page
from graphrag_mcp.explorer.topics import TITLE, marks, topics
from graphrag_mcp.packing.budget import one_line

if TYPE_CHECKING:
    from graphrag_mcp.app import App

TOPICS, ENTITIES, NAMES, TEXTS = 1_500, 2_000, 50_000, 5_000
MOST = 24_000_000  # characters of data: what a browser opens in two seconds

Data = dict[str, Any]


class Views:
    """The data of views by the key under which the page asks for it, up to MOST characters."""

    def __init__(self, app: App, corpus: str) -> None:
        self.app, self.corpus = app, corpus
        self.held: dict[str, Data] = {}
        self.left = MOST

    def add(self, view: str, **given: str) -> Data | None:
        """The data of a view; None where it has no room any more."""
        key = f"{view}?{'&'.join(f'{name}={value}' for name, value in given.items())}"
        if key not in self.held:
            found = load(self.app, view, given, self.corpus)
            size = len(json.dumps(found, ensure_ascii=False, separators=(",", ":")))
            if size > self.left:
                return None
            self.left -= size
            self.held[key] = found
        return self.held[key]


def document(app: App, corpus: str = "") -> tuple[str, dict[str, int]]:
    """The file's text, and how many topics, entities and texts it holds in full."""
    name = app.corpus_for_reading(corpus)
    snapshot, views = app.snapshot(name), Views(app, name)
    found = topics(snapshot)
    ranked = sorted(found.by_id.values(), key=lambda one: (one.level, -one.size, one.n))[:TOPICS]
    overview = views.add("overview") or {}
    whole = views.add("map") or {}
    dots = [
        dot
        for one in ranked
        if not one.children
        for dot in load(app, "map", {"under": str(one.n)}, name)["entities"]
    ]
    views.held["map?"] = {
        **whole,
        "communities": marks(found, [one.id for one in ranked]),
        "entities": dots[:ENTITIES],
    }
    views.add("timeline")
    listed = snapshot.rows("entities", "", ["n", "title", "type", "degree"]).to_pylist()
    listed.sort(key=lambda row: (-row["degree"], row["n"]))
    names = [[row["n"], one_line(row["title"], TITLE), row["type"]] for row in listed[:NAMES]]
    shown = [views.add("community", id=str(one.n)) for one in ranked]
    shown += [views.add("entity", id=str(row[0])) for row in names[:ENTITIES]]
    texts = list(dict.fromkeys(id for data in shown for id in _cited(data)))[:TEXTS]
    passages = [views.add("passage", id=id) for id in texts]
    papers = dict.fromkeys(str(one["document"]["n"]) for one in passages if one)
    for n in papers:
        views.add("document", id=n)
    held = {
        "topics": sum(key.startswith("community?") for key in views.held),
        "entities": sum(key.startswith("entity?") for key in views.held),
        "texts": sum(key.startswith("passage?") for key in views.held),
    }
    counts = overview.get("counts", {})
    note = (
        f"This file holds {held['topics']:,} of {len(found.by_id):,} topics, {held['entities']:,} of "
        f"{counts.get('entities', 0):,} names and {held['texts']:,} texts in full, as of generation "
        f"{snapshot.manifest.generation}."
    )
    views.held["overview?"] = {**overview, "note": note}
    return page(
        {"views": views.held, "names": names, "generation": snapshot.manifest.generation}
    ), held


def _cited(data: Any) -> Iterable[str]:
    """Ids of the text units that a view cites, wherever they stand in it."""
    if isinstance(data, Mapping):
        for key, value in data.items():
            if key == "cites":
                yield from (one["id"] for one in value)
            else:
                yield from _cited(value)
    elif isinstance(data, list):
        for value in data:
            yield from _cited(value)
