"""Communities: text units divided by topic, and the entities that stand in them.

Text units and their characteristic terms form a bipartite graph, which Leiden (Traag, Waltman, van
Eck 2019, arXiv:1810.08473) divides; then each text unit moves to the group whose mean is nearest.
Links between entities take no part: names that stand beside each other say less about a topic than
words do. Each community is divided again in the same way, with its terms weighted inside it. An entity belongs where most of its text units do. The result is
a function of the content alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import pyarrow.compute as pc

from graphrag_mcp.text.terms import content_id, is_cjk, lists_of, tells_topic, without_grammar

VERSION = 16  # another number when the same content would give another hierarchy
Edges = Iterable[tuple[str, str, float]]
Way = tuple[Any, ...]  # the groups of a text unit, coarsest first, whatever these are called


# Figures of 668 labelled news articles (benchmarks/graph.py).
COMMON = 0.4  # terms of a larger share of the text units say nothing (0.1: NMI 0.76, not 0.8)
MOST_TOPICS = 30  # parts of a community
LEAST = 0.01  # share of the text units that is a topic; those of smaller ones join the nearest
# Of the median of the topics at the top: smaller ones are what is left of several, and join the nearest. NMI of 668
# news articles with 0, 0.25, 0.4, 0.6: 0.819, 0.825, 0.867, 0.867 (mean of four seeds); of 1,186 others 0.811, 0.822,
# 0.864, 0.864; of 1,000 Chinese ones 0.836, 0.842, 0.845, 0.845.
MIXED = 0.5
SAME = 0.85  # share of a community above which a part is no part but the same again
# Modularity of a division below the top: few text units reach 0.3 by chance, of SURE 0.2 is enough.
CLEAR, ENOUGH, SURE = 0.3, 0.2, 150
MOST_LEVELS = 6
ROUNDS = 10  # in which text units settle: see `_settled`


@dataclass(frozen=True)
class ClusterParams:
    max_cluster_size: int = 10  # more text units than these are divided where that is better
    seed: int = 42
    sample: int = 4000  # text units that Leiden sees of one community; the others join the nearest


@dataclass(frozen=True, slots=True)
class Community:
    """`children` divide `members` (entity ids) and `units` (text unit ids), both sorted. A root has
    parent "", a leaf no children."""

    id: str
    level: int
    parent: str
    children: tuple[str, ...]
    members: tuple[str, ...]
    units: tuple[str, ...] = ()


@dataclass(frozen=True)
class Hierarchy:
    """Communities by level, then id; `path`, of entities and text units, is coarsest first."""

    communities: dict[str, Community]
    path: dict[str, tuple[str, ...]]
    terms: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # `characteristic`
    titles: Mapping[str, str] = field(default_factory=dict)  # of groups that a plug-in made
    plugins: Mapping[str, str] = field(default_factory=dict)  # of these the name of the plug-in
    made_of: str = ""  # a digest of all that the groups of text units follow from


@dataclass(frozen=True, slots=True)
class Leaf:
    """Text units that a plug-in groups, with the groups on the way to them from the top, and the titles of
    these."""

    units: Sequence[str]
    way: Way
    titles: Sequence[str]


@dataclass(frozen=True)
class Texts:
    """How often terms stand in text units: unit `u` has `first[u]:first[u + 1]` of `term` (rising)
    and `count`. `document` numbers the document of each unit."""

    ids: list[str]
    first: Any
    term: Any
    count: Any
    document: Any
    words: list[str]  # what each term is


@dataclass(frozen=True, slots=True)
class Topics:
    """The terms of text units, the ways of these through the groups that share topics, and a digest of
    what both follow from."""

    texts: Texts
    ways: Mapping[str, Way]
    made_of: str


def texts_of(batches: Iterable[Any], documents: Mapping[str, str]) -> Texts:
    """From passages (`text_unit_id`, `terms`) in any order; `documents`: by text unit."""
    import numpy as np

    ids = sorted(documents)
    number = {id: place for place, id in enumerate(ids)}
    codes: dict[str, int] = {}
    telling: list[bool] = []  # by code
    found: list[tuple[Any, Any]] = []
    for batch in batches:
        words = pc.split_pattern(batch["terms"], " ").combine_chunks()
        units = np.array([number.get(id, -1) for id in batch["text_unit_id"].to_pylist()], np.int32)
        flat = words.flatten().dictionary_encode()
        new = [codes.setdefault(word, len(codes)) for word in flat.dictionary.to_pylist()]
        telling += map(tells_topic, islice(codes, len(telling), None))
        of = units[pc.list_parent_indices(words).to_numpy()]
        term = np.array(new, np.int32)[flat.indices.to_numpy()]
        kept = (of >= 0) & np.array(telling, bool)[term]
        found.append((of[kept], term[kept]))
    order = sorted(codes)
    rank = np.empty(len(codes), np.int64)
    rank[[codes[word] for word in order]] = np.arange(len(codes))
    width = max(1, len(order))
    # Of 14,000 short documents these are 5 million pairs: each copy of them takes 40 MB.
    pair = np.empty(sum(len(of) for of, _ in found), np.int64)
    at = 0
    while found:
        of, term = found.pop()
        pair[at : at + len(of)] = of * np.int64(width) + rank[term]
        at += len(of)
    pair.sort()
    starts = np.flatnonzero(np.append(True, pair[1:] != pair[:-1])[: len(pair)])
    count = np.diff(starts, append=len(pair)).astype(np.int32)
    pair = pair[starts]
    first = np.searchsorted(pair, np.arange(len(ids) + 1, dtype=np.int64) * width)
    _, document = np.unique([documents[id] for id in ids], return_inverse=True)
    return Texts(ids, first, (pair % width).astype(np.int32), count, document, order)


def without(texts: Texts, ids: Container[str]) -> Texts:
    import numpy as np

    keep = np.array([id not in ids for id in texts.ids], bool)
    lengths = np.diff(texts.first)
    rows = np.repeat(keep, lengths)
    return replace(
        texts,
        ids=[id for id in texts.ids if id not in ids],
        first=np.concatenate([[0], np.cumsum(lengths[keep])]),
        term=texts.term[rows],
        count=texts.count[rows],
        document=texts.document[keep],
    )


def cluster(
    texts: Texts,
    entities: Mapping[str, Sequence[str]],
    links: Edges = (),
    params: ClusterParams | None = None,
    plugged: Mapping[str, Sequence[Leaf]] | None = None,
    sheets: Mapping[str, str] | None = None,
) -> Hierarchy:
    """The hierarchy of all text units, and of all entities that have text units or links. `sheets`: the
    file of text units that are rows of a sheet; each sheet is a group of the highest level."""
    ways = ways_of(texts, params or ClusterParams(), sheets or {})
    return tree_with(ways, entities, links, plugged)


def ways_of(
    texts: Texts, params: ClusterParams, sheets: Mapping[str, str], check: Callable[[], None] = lambda: None
) -> dict[str, Way]:
    """The groups of each text unit, numbered among those of one group. `check`: called before each
    division; it may raise."""
    import numpy as np

    small = min(params.max_cluster_size, max(4, len(texts.ids) // 6))  # of few texts sooner
    by_sheet = lists_of((sheets.get(id, ""), place) for place, id in enumerate(texts.ids))
    others = np.array(by_sheet.pop("", []), np.int64)
    todo: list[tuple[Any, Way]] = [(others, ())]
    found: dict[str, Way] = {}
    while todo and texts.ids:
        check()
        units, way = todo.pop()
        groups = [units] if len(units) else []
        if len(way) < MOST_LEVELS and len(units) > (small if way else params.max_cluster_size):
            groups = _groups(texts, units, params, top=not way)
        if not way:
            groups += map(np.array, by_sheet.values())
        if len(groups) > 1 or not way:
            todo += [(group, (*way, number)) for number, group in enumerate(groups)]
        else:
            found.update((texts.ids[unit], way) for unit in units.tolist())
    return found


def tree_with(
    ways: Mapping[str, Way],
    entities: Mapping[str, Sequence[str]],
    links: Edges,
    plugged: Mapping[str, Sequence[Leaf]] | None = None,
    given: Mapping[str, Way] | None = None,
) -> Hierarchy:
    """The hierarchy of text units that are divided. `entities`: the text units of each; an entity
    without any is where its links lead. `plugged`: by plug-in the leaves of text units that are not in
    `ways`; `given`: the ways of other entities."""
    path, every = dict(ways), plugged or {}
    for name, leaves in every.items():
        for leaf in leaves:
            path.update((unit, (f"{name} {leaf.way[0]}", *leaf.way[1:])) for unit in leaf.units)
    units = {*path}
    path |= _placed(entities, path) | dict(given or {})
    _follow_links(path, links)
    tree = hierarchy_of(path, units)
    titles: dict[str, str] = {}
    plugins: dict[str, str] = {}
    for name, leaves in every.items():
        for leaf in leaves:
            ids = tree.path[leaf.units[0]]
            titles |= zip(ids, leaf.titles, strict=True)
            plugins |= dict.fromkeys(ids, name)
    return replace(tree, titles=titles, plugins=plugins)


def hierarchy_of(path: Mapping[str, Sequence[Any]], units: Set[str]) -> Hierarchy:
    """From the way of each entity and text unit through groups, whatever these are called.

    A community has an id of its level and its entities, or of its text units where it has none."""
    pairs = ((id, tuple(path[id])) for id in sorted(path))
    groups = lists_of((way[:end], id) for id, way in pairs for end in range(1, len(way) + 1))
    parts = {
        way: (tuple(id for id in ids if id not in units), tuple(id for id in ids if id in units))
        for way, ids in groups.items()
    }
    name = {
        way: content_id("community", str(len(way) - 1), *(members or unit_ids))
        for way, (members, unit_ids) in parts.items()
    }
    order = sorted(parts, key=name.__getitem__)
    children = lists_of((name[way[:-1]], name[way]) for way in order if len(way) > 1)
    ways = {way: tuple(name[way[:end]] for end in range(1, len(way) + 1)) for way in parts}
    found = []
    for way, ids in ways.items():
        parent, below = ("", *ids)[-2], tuple(children[ids[-1]])
        found.append(Community(ids[-1], len(way) - 1, parent, below, *parts[way]))
    found.sort(key=lambda community: (community.level, community.id))
    known = {community.id: community for community in found}
    return Hierarchy(known, {id: ways[tuple(way)] for id, way in path.items()})


FALL = 0.1  # of the weight of a term from one rank to the next


def characteristic(texts: Texts, tree: Hierarchy, most: int = 40) -> dict[str, Mapping[str, float]]:
    """The terms of each community that set it apart from the one above, with weights that fall from 1
    by rank. A document counts as the root of its text units, so that a long one is not the topic.

    By rank, since shares change with every edit anywhere: what a report is made of changes only
    where the order of its terms does."""
    import numpy as np

    number = {id: place for place, id in enumerate(texts.ids)}
    part = np.bincount(texts.document)[texts.document] ** -0.5 if texts.ids else np.zeros(0)
    every = np.repeat(part, np.diff(texts.first))
    shares = np.bincount(texts.term, every, len(texts.words)) / max(part.sum(), 1e-9)
    of: dict[str, tuple[Any, Any]] = {"": (np.arange(len(texts.words)), shares)}
    found: dict[str, Mapping[str, float]] = {}
    for community in tree.communities.values():
        if community.id in tree.titles:
            continue
        places = np.array([number[id] for id in community.units], np.int64)
        rows = [slice(*texts.first[[at, at + 1]].tolist()) for at in places]
        term = np.concatenate([texts.term[row] for row in rows]) if rows else np.zeros(0, np.int64)
        terms, inverse, units = np.unique(term, return_inverse=True, return_counts=True)
        weights = np.concatenate([every[row] for row in rows]) if rows else np.zeros(0)
        share = np.bincount(inverse, weights, len(terms)) / max(part[places].sum(), 1e-9)
        of[community.id] = terms, share
        above, common = of[community.parent]
        if len(rows) == len(texts.ids):  # nothing to set it apart from
            count = [texts.count[row] for row in rows] or [np.zeros(0, np.int64)]
            worth = np.log1p(np.bincount(inverse, np.concatenate(count), len(terms)))
        else:
            worth = share * np.log(share / common[np.searchsorted(above, terms)])
            worth[units < min(2, len(rows))] = 0
        worth = (worth / max(worth.max(initial=0.0), 1e-9)).round(2)
        order = np.argsort(-worth, kind="stable")  # equal ones in the order of the alphabet
        chosen: list[str] = []
        for place in order.tolist():
            word = texts.words[terms[place]]
            if worth[place] <= 0 or len(chosen) == 2 * most:
                break
            digits = any(map(str.isdigit, word))  # tells_topic holds of all: see texts_of
            if not digits and (len(word) > 2 or is_cjk(word[0])):
                chosen.append(word)
        found[community.id] = by_rank(without_grammar(chosen)[:most])
    return found


def by_rank(words: Sequence[str]) -> dict[str, float]:
    return {word: round(1 / (1 + FALL * at), 4) for at, word in enumerate(words)}


# ---- entities -----------------------------------------------------------------------------------


def _placed(entities: Mapping[str, Sequence[str]], path: Mapping[str, Way]) -> dict[str, Way]:
    """Each where most of its text units are, from the top down; among equals in the larger group, of
    equal ones in that with the first id."""
    ways = (path[id] for id in sorted(path))
    sizes = Counter(way[:end] for way in ways for end in range(1, len(way) + 1))
    rank = {way: place for place, way in enumerate(sorted(sizes, key=lambda way: -sizes[way]))}
    found: dict[str, Way] = {}
    for id, units in entities.items():
        left, depth = [path[unit] for unit in units], 1
        while left := [way for way in left if len(way) >= depth]:
            counts = Counter(way[:depth] for way in left)
            best = found[id] = min(counts, key=lambda way: (-counts[way], rank[way]))
            left = [way for way in left if way[:depth] == best]
            depth += 1
    return found


def _follow_links(path: dict[str, Way], links: Edges) -> None:
    """Entities without text units, made by hand, are with what they are linked with most; those
    that are linked only with each other form a group."""
    near: dict[str, list[tuple[str, float]]] = defaultdict(list)
    for source, target, weight in links:
        for entity, other in ((source, target), (target, source)):
            if entity not in path and entity != other:
                near[entity].append((other, weight))
    while near:
        found: dict[str, Way] = {}
        for entity, others in near.items():
            pull: dict[Way, float] = defaultdict(float)
            for other, weight in sorted(others):
                if other in path:
                    pull[path[other]] += weight
            if pull:
                found[entity] = max(pull, key=pull.__getitem__)
        path |= found or dict.fromkeys(near, ("",))
        near = {entity: others for entity, others in near.items() if entity not in path}


# ---- text units ---------------------------------------------------------------------------------


def _groups(texts: Texts, units: Any, params: ClusterParams, top: bool) -> list[Any]:
    """The topics of these text units; one group, of all of them, where there are none."""
    import numpy as np

    sample = units[: params.sample]  # ids are hashes, so the first ones are a sample
    unit, term, weight = _weighted(texts, units, sample)
    seen = np.isin(unit, np.flatnonzero(np.isin(units, sample)))
    quality, found = _leiden(unit[seen], term[seen], weight[seen], params.seed)
    labels = np.full(len(units), -1)
    for place, label in found.items():
        labels[place] = label
    sizes = np.bincount(labels[labels >= 0]) if found else np.zeros(0, np.int64)
    large = np.argsort(-sizes, kind="stable")[:MOST_TOPICS]
    large = large[sizes[large] >= max(3 if top else 2, LEAST * len(sample))]
    if top and len(large) and len(whole := large[sizes[large] >= MIXED * np.median(sizes[large])]) > 1:
        large = whole  # a topic of its own inside the nearest, where it is one
    clear = CLEAR if len(found) < SURE else ENOUGH
    if len(large) < 2 or (not top and quality < clear):
        return [units]
    renamed = np.full(len(sizes) + 1, -1)
    renamed[large] = np.arange(len(large))
    labels = _settled(renamed[labels], unit, term, weight, len(large))
    most = np.bincount(labels[labels >= 0]).argmax()
    labels[labels < 0] = most  # what shares no term with any other goes with most
    groups = [group for label in range(len(large)) if len(group := units[labels == label])]
    return [units] if max(map(len, groups)) > SAME * len(units) and not top else groups


def _weighted(texts: Texts, units: Any, sample: Any) -> tuple[Any, Any, Any]:
    """Characteristic terms as (place in `units`, term, weight), each unit of length 1."""
    import numpy as np

    lengths = texts.first[units + 1] - texts.first[units]
    ends = np.cumsum(lengths)
    at = np.arange(ends[-1]) + np.repeat(texts.first[units] - ends + lengths, lengths)
    unit, term, count = np.repeat(np.arange(len(units)), lengths), texts.term[at], texts.count[at]
    unit_counts = np.bincount(term[np.isin(units, sample)[unit]], minlength=len(texts.words))
    most = max(COMMON * len(sample), min(3, len(sample) - 1))
    kept = ((unit_counts >= 2) & (unit_counts <= most))[term]
    unit, term, count = unit[kept], term[kept], count[kept]
    weight = (1 + np.log(count)) * np.log(len(sample) / unit_counts[term])
    return unit, term, weight / np.sqrt(np.bincount(unit, weight**2, len(units)))[unit]


def _leiden(unit: Any, term: Any, weight: Any, seed: int) -> tuple[float, dict[int, int]]:
    """Modularity, and the group of each text unit that has a term."""
    from graspologic_native import leiden

    if not len(unit):
        return 0.0, {}
    names = {place: f"u{place}" for place in set(unit.tolist())}
    words = {place: f"t{place}" for place in set(term.tolist())}
    ends = zip(unit.tolist(), term.tolist(), weight.tolist(), strict=True)
    edges = [(names[place], words[other], share) for place, other, share in ends]
    quality, found = leiden(
        edges=edges,
        starting_communities=None,
        resolution=1.0,
        randomness=0.001,
        # Modularity of 2,884 passages with 1 to 4: 0.420, 0.434, 0.435, 0.435; CPU 0.40 to 0.79 s.
        iterations=4,
        use_modularity=True,
        seed=seed,
        trials=1,
    )
    return quality, {place: found[name] for place, name in sorted(names.items())}


def _settled(labels: Any, unit: Any, term: Any, weight: Any, many: int) -> Any:
    """The group (0 to `many` - 1) of each text unit, that whose mean is nearest to its terms: spherical k-means
    (Dhillon, Modha 2001) that starts with the groups of `labels` (-1: in none yet). NMI of three labelled sets
    after 0, 1, 5, 10 rounds: 668 news articles 0.811, 0.813, 0.816, 0.816; 1,186 others 0.789, 0.819, 0.821, 0.821;
    1,000 Chinese ones 0.832, 0.843, 0.857, 0.875."""
    import numpy as np

    if not len(unit):
        return labels
    _, term = np.unique(term, return_inverse=True)
    width = int(term.max()) + 1
    first = np.flatnonzero(np.diff(unit, prepend=-1))  # of each text unit that has terms
    having = unit[first]
    for _ in range(ROUNDS):
        inside = labels[unit] >= 0
        place = labels[unit[inside]] * width + term[inside]
        mean = np.bincount(place, weight[inside], many * width).reshape(many, width)
        mean /= np.maximum(np.sqrt((mean**2).sum(axis=1, keepdims=True)), 1e-12)
        near = np.array([np.add.reduceat(weight * each[term], first) for each in mean])
        best = np.where(near.max(axis=0) > 0, near.round(9).argmax(axis=0), labels[having])
        if (best == labels[having]).all():
            break
        labels[having] = best
    return labels
