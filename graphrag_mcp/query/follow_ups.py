"""Questions that the graph proposes in a DRIFT session, where the agent or the model gives none.

They ask about neighbours of what an answer cites, the strongest first (`query/graph.py`), which no
question and no answer names yet: `Ada Lind – Tern?`, for names alone ask in any language."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain, islice, zip_longest

import numpy as np

from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.query.drift_state import Walk, cited_aliases
from graphrag_mcp.query.graph import HUB, graph_of
from graphrag_mcp.store.tables import Snapshot, rows_of, values_of
from graphrag_mcp.text.terms import normalise_name

QUESTIONS, READ = 5, 60  # questions; neighbours whose names are read


def propose(snapshot: Snapshot, walk: Walk, id: str, answer: str) -> list[str]:
    """Questions that follow an answer to a node, best first; none at the last depth."""
    node = walk.graph.nodes[id]
    if node["depth"] >= walk.header["depth"]:
        return []
    texts = [node[part] for _, node in walk.graph.nodes(data=True) for part in ("query", "answer")]
    cited = cited_aliases(answer)
    return _questions(snapshot, cited or node["context"], [answer, *texts])


def after(snapshot: Snapshot, query: str, shown: Sequence[str]) -> list[str]:
    """Questions that follow a search for `query` that showed these sources (`t33.2`)."""
    return _questions(snapshot, shown, [query])


def _questions(snapshot: Snapshot, aliases: Sequence[str], texts: Sequence[str]) -> list[str]:
    """Questions on neighbours of what these ids stand for: the nearest of the first entity, of the second, and so on,
    then the next ones. Neighbours that the ids do not name come first: an agent has read the others."""
    place = {id: at for at, id in enumerate(_entities(snapshot, aliases))}
    rows = snapshot.by_key("entities", list(place), "id", ["id", "title", "key"])
    title_of = {id: (title, key) for id, title, key in rows_of(rows)}
    told = " | ".join(map(normalise_name, texts))
    turns = zip_longest(*(_near(snapshot, id, place) for id in place if id in title_of))
    in_turn = filter(None, chain.from_iterable(turns))
    pairs = sorted(in_turn, key=lambda pair: pair[1] in place)[:READ]
    ends = list(dict.fromkeys(there for _, there in pairs))
    rows = snapshot.by_key("entities", ends, "id", ["id", "title", "key"])
    title_of |= {id: (title, key) for id, title, key in rows_of(rows)}
    asked: dict[str, str] = {}  # one question for each neighbour
    for here, there in pairs:
        title, key = title_of.get(there, ("", ""))
        other, other_key = title_of[here]
        known = not key or key in told or key in other_key or other_key in key
        if not known and there not in asked:
            asked[there] = f"{one_line(title, 80)} – {one_line(other, 80)}?"
    return list(islice(asked.values(), QUESTIONS))


def _entities(snapshot: Snapshot, aliases: Sequence[str]) -> list[str]:
    """The entities of these ids, those that most of the passages name first."""
    numbers = {
        letter: [int(alias[1:].partition(".")[0]) for alias in aliases if alias[:1] == letter]
        for letter in "te"
    }
    cited = values_of(snapshot.by_key("entities", numbers["e"], "n", ["id"])["id"])
    passages = values_of(
        snapshot.by_key("passages", numbers["t"], "n", ["entity_ids"])["entity_ids"]
    )
    found = Counter(id for ids in passages for id in ids)
    return [*cited, *sorted(found.keys() - set(cited), key=lambda id: (-found[id], id))]


def _near(snapshot: Snapshot, id: str, place: Mapping[str, int]) -> list[tuple[str, str]]:
    """The entity with each of its strongest neighbours, so that two which have a place are one pair, of which the
    later one is the neighbour; a hub, which everything is a neighbour of, has none."""
    graph = graph_of(snapshot)
    number = graph.number(id)
    if number < 0 or graph.degree[number] > HUB:
        return []
    positions, _ = graph.links(np.array([number]))
    there, strength = graph.there[positions], graph.strength[positions].round(9)
    names = graph.named(there[np.lexsort((there, -strength))].tolist())
    return [(id, other) for other in names if place.get(other, len(place)) > place[id]]
