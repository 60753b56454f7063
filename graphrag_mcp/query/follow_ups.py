"""Questions that the graph proposes in a DRIFT session, where the agent or the model gives none.

They ask about neighbours of what an answer cites, the strongest first (`query/graph.py`), which no
question and no answer names yet: `Ada Lind – Tern?`, for names alone ask in any language. At most two
begin at the same entity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.query.drift_state import Walk, cited_aliases
from graphrag_mcp.query.graph import HUB, graph_of
from graphrag_mcp.query.literals import stands_in
from graphrag_mcp.store.tables import Snapshot, rows_of, values_of
from graphrag_mcp.text.terms import normalise_name

QUESTIONS, FROM_ONE = 5, 2  # questions; those that begin at the same entity
SHOWN, STARTS, READ = 4, 12, 60  # passages, entities to begin at, neighbours whose names are read


def propose(snapshot: Snapshot, walk: Walk, id: str, answer: str) -> list[str]:
    """Questions that follow an answer to a node, best first; none at the last depth."""
    node = walk.graph.nodes[id]
    if node["depth"] >= walk.header["depth"]:
        return []
    texts = [node[part] for _, node in walk.graph.nodes(data=True) for part in ("query", "answer")]
    cited = cited_aliases(answer)
    return _questions(snapshot, cited or node["context"][:SHOWN], [answer, *texts])


def after(snapshot: Snapshot, query: str, shown: Sequence[str]) -> list[str]:
    """Questions that follow a search for `query` that showed these sources (`t33.2`)."""
    return _questions(snapshot, shown[:SHOWN], [query])


def _questions(snapshot: Snapshot, aliases: Sequence[str], texts: Sequence[str]) -> list[str]:
    """Questions on the strongest neighbours of what these ids stand for."""
    pairs = _neighbours(snapshot, _entities(snapshot, aliases))
    ids = list(dict.fromkeys(id for pair in pairs for id in pair))
    rows = snapshot.by_key("entities", ids, "id", ["id", "title", "key"])
    named = {id: (title, key) for id, title, key in rows_of(rows)}
    told = " | ".join(map(normalise_name, texts))
    begun: Counter[str] = Counter()
    questions: list[str] = []
    for here, there in pairs:
        if here not in named or there not in named or begun[here] == FROM_ONE:
            continue
        (other, other_key), (title, key) = named[here], named[there]
        within = ((told, key), (other_key, key), (key, other_key))
        if not any(not name or stands_in(text, name, whole=True) for text, name in within):
            begun[here] += 1
            questions.append(f"{one_line(title, 80)} – {one_line(other, 80)}?")
    return questions[:QUESTIONS]


def _entities(snapshot: Snapshot, aliases: Sequence[str]) -> list[str]:
    """The entities of these ids, those that most of the passages name first."""
    numbers = {
        letter: [int(alias[1:].partition(".")[0]) for alias in aliases if alias[:1] == letter] for letter in "te"
    }
    cited = values_of(snapshot.by_key("entities", numbers["e"], "n", ["id"])["id"])
    passages = values_of(snapshot.by_key("passages", numbers["t"], "n", ["entity_ids"])["entity_ids"])
    found = Counter(id for ids in passages for id in ids)
    return [*cited, *sorted(found.keys() - set(cited), key=lambda id: (-found[id], id))]


def _neighbours(snapshot: Snapshot, named: Sequence[str]) -> list[tuple[str, str]]:
    """Of the first of these entities that have neighbours, the strongest ones, each once, behind the entity that it
    is nearest to; of two of these entities the later one is the neighbour. Of neighbours that are as strong those
    that are not `named` come first: an agent has read the others. A hub is left out, since everything is a
    neighbour of it."""
    graph = graph_of(snapshot)
    numbers = np.array([number for id in named if (number := graph.number(id)) >= 0], int)
    starts = numbers[graph.degree[numbers] <= HUB][:STARTS]
    place = {number: at for at, number in enumerate(starts.tolist())}
    positions, here = graph.links(starts)
    there, strength = graph.there[positions], graph.strength[positions].round(9)
    nearest: dict[int, int] = {}
    for at in np.lexsort((here, there, np.isin(there, numbers), -strength)).tolist():
        start, other = int(here[at]), int(there[at])
        if place[start] < place.get(other, STARTS):
            nearest.setdefault(other, start)
    ends = list(nearest)[:READ]
    begins = graph.named([nearest[end] for end in ends])
    return list(zip(begins, graph.named(ends), strict=True))
