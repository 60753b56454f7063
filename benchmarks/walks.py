"""Walks over a large graph: neighbours, paths and the overview of explore_graph, on a synthetic
corpus.

    python benchmarks/walks.py [--entities 100000] [--keep DIR]

The graph grows by preferential attachment (five links of a new entity, most to well-linked ones),
so it has hubs of some thousand relationships; tables are written through the store itself. Prints
milliseconds of wall and CPU time.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa

from graphrag_mcp.query.explore import explore_graph
from graphrag_mcp.store import manifest as manifests
from graphrag_mcp.store import tables
from graphrag_mcp.store.schema import TABLES
from graphrag_mcp.text.terms import content_id

LINKS, UNITS_PER_DOCUMENT, GROUP = 5, 10, 20


def graph(count: int, draw: random.Random) -> dict[tuple[int, int], float]:
    """Pairs of entities with weights; the last hundred are islands of ten."""
    ends: list[int] = list(range(LINKS))
    pairs: dict[tuple[int, int], float] = {}
    for new in range(LINKS, count - 100):
        for _ in range(LINKS):
            other = draw.choice(ends) if draw.random() < 0.8 else draw.randrange(new)
            pair = (other, new)
            pairs[pair] = pairs.get(pair, 0.0) + draw.choice((0.5, 1, 1, 1, 2, 3))
            ends += pair
    for island in range(count - 100, count, 10):
        pairs |= {(island, island + at): 1.0 for at in range(1, 10)}
    return pairs


def rows_of(name: str, rows: list[dict]) -> tables.Change:
    schema = TABLES[name]
    empty = {pa.string(): "", pa.int64(): 0, pa.float64(): 0.0, pa.bool_(): False}
    filled = [{field.name: row.get(field.name, empty.get(field.type, [])) for field in schema} for row in rows]
    return tables.Change(rows=pa.Table.from_pylist(filled, schema))


def write(folder: Path, count: int) -> None:
    draw = random.Random(7)
    pairs = graph(count, draw)
    degree = [0] * count
    for one, other in pairs:
        degree[one] += 1
        degree[other] += 1
    unit = [content_id("unit", str(at)) for at in range(count // 5)]
    document = [content_id("document", str(at)) for at in range(len(unit) // UNITS_PER_DOCUMENT + 1)]
    entity = [content_id("entity", f"entity {at}") for at in range(count)]
    community = [content_id("community", str(at)) for at in range(count // GROUP)]
    top = [content_id("top", str(at)) for at in range(len(community) // 50 + 1)]

    def evidence(at: int, text: str) -> list[dict]:
        return [{"text_unit_id": unit[at % len(unit)], "start": 0, "end": len(text), "text": text}]

    entities, relationships = [], []
    for at, id in enumerate(entity):
        said = f"Entity {at} is described here."
        entities.append(
            {
                "id": id,
                "n": at + 1,
                "key": f"entity {at}",
                "title": f"Entity {at}",
                "type": "other",
                "frequency": 3,
                "degree": degree[at],
                "description": said,
                "names": [f"entity {at}"],
                "terms": f"entity {at}",
                "text_unit_ids": [unit[at % len(unit)]],
                "evidence": evidence(at, said),
            }
        )
    for n, ((one, other), weight) in enumerate(pairs.items(), 1):
        said = f"Entity {one} was seen with entity {other} on day {n}."
        relationships.append(
            {
                "id": content_id("relationship", entity[one], entity[other]),
                "n": n,
                "weight": weight,
                "description": said,
                "source_id": min(entity[one], entity[other]),
                "target_id": max(entity[one], entity[other]),
                "text_unit_ids": [unit[n % len(unit)]],
                "evidence": evidence(n, said),
            }
        )
    tree = [
        {"id": id, "n": at + 1, "level": 0, "size": 50 * GROUP, "children": community[50 * at : 50 * at + 50]}
        for at, id in enumerate(top)
    ]
    tree += [
        {
            "id": id,
            "n": len(top) + at + 1,
            "level": 1,
            "size": GROUP,
            "parent": top[at // 50],
            "entity_ids": entity[GROUP * at : GROUP * at + GROUP],
        }
        for at, id in enumerate(community)
    ]
    changes = {
        "documents": [
            {"id": id, "n": at + 1, "uri": f"f/{at}.md", "title": f"File {at}"} for at, id in enumerate(document)
        ],
        "text_units": [
            {"id": id, "n": at + 1, "document_id": document[at // UNITS_PER_DOCUMENT], "char_end": 80, "text": "Text."}
            for at, id in enumerate(unit)
        ],
        "entities": entities,
        "relationships": relationships,
        "communities": tree,
        "memberships": [
            {"entity_id": id, "path": [top[at // GROUP // 50], community[at // GROUP]]} for at, id in enumerate(entity)
        ],
        "reports": [
            {
                "id": row["id"],
                "n": row["n"],
                "level": row["level"],
                "title": f"Report {row['n']}",
                "findings": "[]",
                "terms": "report",
            }
            for row in tree
        ],
    }
    versions = tables.apply(folder, None, {name: rows_of(name, rows) for name, rows in changes.items()})
    counters = {"entities": count, "relationships": len(pairs)}
    manifests.commit(folder, manifests.Manifest("walks", 1, tables=versions, counters=counters))
    print(f"{count:,} entities, {len(pairs):,} relationships, largest degree {max(degree):,}")


def measure(name: str, calls: list[Callable[[], object]]) -> None:
    wall, cpu, states = [], [], []
    for call in calls:
        began, used = time.perf_counter(), time.process_time()
        states.append(call().state)
        wall.append(1000 * (time.perf_counter() - began))
        cpu.append(1000 * (time.process_time() - used))
    counted = ", ".join(f"{states.count(one)} {one}" for one in sorted(set(states)))
    shown = [sorted(values)[int(len(values) * part)] for values in (wall, cpu) for part in (0.5, 0.95)]
    figures = " ".join(f"{value:7.1f}" for value in shown)
    print(f"{name:34} {figures}   {counted}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entities", type=int, default=100_000)
    parser.add_argument("--keep", type=Path, help="keep the corpus here and use it again")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = (options.keep or Path(scratch)) / "walks"
        if not (folder / "manifest.json").exists():
            write(folder, options.entities)
            if options.keep:
                sys.exit("written; run again to measure, so that memory is that of reading alone")
        began = time.perf_counter()
        snapshot = tables.open_snapshot(folder)
        explore_graph(snapshot, "e1")
        print(f"open and first call {1000 * (time.perf_counter() - began):.0f} ms, import of LanceDB included")
        count = snapshot.count("entities")
        draw = random.Random(3)
        some = [f"e{draw.randrange(200, count - 100) + 1}" for _ in range(40)]
        print(f"{'':34} wall p50     p95 CPU p50     p95")

        def walks(ends: Sequence[tuple[str, str]], hops: int = 1) -> list[Callable[[], object]]:
            return [partial(explore_graph, snapshot, one, other, hops=hops) for one, other in ends]

        for hops in (1, 2, 3):
            measure(f"{hops} hops around any entity", walks([(one, "") for one in some], hops))
        measure("2 hops around a hub", walks([(f"e{at}", "") for at in range(1, 11)], 2))
        measure("path between any two", walks(list(zip(some, reversed(some), strict=True))[:20]))
        measure("path from any to a hub", walks([(one, "e3") for one in some[:20]]))
        measure("path between hubs", walks([(f"e{a}", f"e{b}") for a in (1, 2, 3) for b in (4, 5, 6)]))
        measure("no path (an island)", walks([(one, f"e{count}") for one in some[:20]]))
        measure("a name", walks([(f"Entity {at}", "") for at in range(1000, 1020)]))
        measure("overview", walks([("", "")] * 10))
        print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
