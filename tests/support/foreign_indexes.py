"""Small folders as GraphRAG 3.x and LightRAG leave them, written by us, sound as they are; tests damage them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Row = dict[str, Any]
Tables = dict[str, list[Row]]

LAMP = (
    "Port Ellis was built by Mira Castellan in 1871. The harbour lamp of Port Ellis was lit that autumn. "
    "Mira Castellan sold the harbour to the Northern Ferry Company in 1880.\n\n"
    "The Northern Ferry Company carries wool for Anton Brandt. Anton Brandt met Mira Castellan in Port Ellis. "
    "Nobody else kept the lamp."
)
MILL = (
    "Anton Brandt sold wool to the Harrow Mill. The Harrow Mill stands in Lower Fenton. "
    "Devi Rao keeps the engines of the Harrow Mill. Devi Rao was born in Lower Fenton. 灯塔由安东照管。"
)
CUT = LAMP.index("The Northern Ferry Company carries")
UNITS = {"u0": ("d0", LAMP[: CUT + 58]), "u1": ("d0", LAMP[CUT:]), "u2": ("d1", MILL)}  # u0 and u1 overlap
PEOPLE = [
    ("MIRA CASTELLAN", "PERSON", "Mira Castellan built the harbour and sold it.", ["u0", "u1"]),
    ("PORT ELLIS", "GEO", "Port Ellis is a harbour town with a lamp.", ["u0", "u1"]),
    ("NORTHERN FERRY COMPANY", "ORGANIZATION", "A company that runs ships.", ["u0", "u1"]),
    ("ANTON BRANDT", "PERSON", "A wool merchant whom everybody meets.", ["u1", "u2"]),
    ("HARROW MILL", "ORGANIZATION", "A mill that buys wool.", ["u2"]),
    ("LOWER FENTON", "GEO", "The village of the mill.", ["u2"]),
    ("DEVI RAO", "PERSON", "An engineer.", ["u2"]),
]
LINKS = [
    ("MIRA CASTELLAN", "PORT ELLIS", "She built it.", 9.0, ["u0", "u1"]),
    ("MIRA CASTELLAN", "NORTHERN FERRY COMPANY", "She sold the harbour to it.", 7.0, ["u0"]),
    ("NORTHERN FERRY COMPANY", "ANTON BRANDT", "It carries his wool.", 8.0, ["u1"]),
    ("ANTON BRANDT", "MIRA CASTELLAN", "They met.", 2.0, ["u1"]),
    ("ANTON BRANDT", "HARROW MILL", "He sold wool to it.", 1.5, ["u2"]),
    ("HARROW MILL", "LOWER FENTON", "It stands there.", 6.0, ["u2"]),
    ("DEVI RAO", "HARROW MILL", "Keeps its engines.", 5.0, ["u2"]),
    ("DEVI RAO", "LOWER FENTON", "Was born there.", 4.0, ["u2"]),
]
GROUPS = {0: (-1, [0, 1, 2, 3]), 1: (-1, [4, 5, 6]), 2: (0, [0, 1]), 3: (0, [2, 3])}  # parent, members


def graphrag() -> Tables:
    """All seven tables of one run, whose counts and ids agree."""
    degree: Counter[str] = Counter(end for link in LINKS for end in link[:2])
    rows: Tables = {"documents": [
        {"id": id, "human_readable_id": n, "title": f"{title}.txt", "text": text, "raw_data": None,
         "text_unit_ids": [unit for unit, (home, _) in UNITS.items() if home == id], "creation_date": "2024-05-01"}
        for n, (id, title, text) in enumerate([("d0", "lamp", LAMP), ("d1", "mill", MILL)])
    ]}  # fmt: skip
    rows["entities"] = [
        {"id": f"e{n}", "human_readable_id": n, "title": title, "type": kind, "description": told,
         "text_unit_ids": list(units), "frequency": len(units), "degree": degree[title]}
        for n, (title, kind, told, units) in enumerate(PEOPLE)
    ]  # fmt: skip
    rows["relationships"] = [
        {"id": f"r{n}", "human_readable_id": n, "source": a, "target": b, "description": told, "weight": weight,
         "combined_degree": degree[a] + degree[b], "text_unit_ids": list(units)}
        for n, (a, b, told, weight, units) in enumerate(LINKS)
    ]  # fmt: skip
    rows["covariates"] = [{
        "id": "c0", "human_readable_id": 0, "covariate_type": "claim", "type": "SALE", "text_unit_id": "u0",
        "description": "Mira Castellan sold the harbour.", "subject_id": "MIRA CASTELLAN", "status": "TRUE",
        "object_id": "NORTHERN FERRY COMPANY", "start_date": "1880-01-01T00:00:00", "end_date": "NONE",
        "source_text": "Mira Castellan sold the harbour to the Northern Ferry Company in 1880.",
    }]  # fmt: skip
    rows["text_units"] = [
        {"id": id, "human_readable_id": n, "text": text, "n_tokens": len(text) // 4, "document_id": home,
         "entity_ids": [row["id"] for row in rows["entities"] if id in row["text_unit_ids"]],
         "relationship_ids": [row["id"] for row in rows["relationships"] if id in row["text_unit_ids"]],
         "covariate_ids": ["c0"] if id == "u0" else []}
        for n, (id, (home, text)) in enumerate(UNITS.items())
    ]  # fmt: skip
    rows["communities"], rows["community_reports"] = [], []
    for number, (parent, members) in GROUPS.items():
        titles = {PEOPLE[n][0] for n in members}
        inside = [row for row in rows["relationships"] if {row["source"], row["target"]} <= titles]
        shared = {
            "human_readable_id": number, "community": number, "level": 0 if parent < 0 else 1, "parent": parent,
            "children": [other for other, (above, _) in GROUPS.items() if above == number], "period": "2024-05-01",
            "size": len(members),
        }  # fmt: skip
        rows["communities"].append({
            **shared, "id": f"g{number}", "title": f"Community {number}", "entity_ids": [f"e{n}" for n in members],
            "relationship_ids": [row["id"] for row in inside],
            "text_unit_ids": sorted({unit for row in inside for unit in row["text_unit_ids"]}),
        })  # fmt: skip
        said = f"What holds group {number} together [Data: Entities ({members[0]}); Relationships ({inside[0]['human_readable_id']})]."
        findings = [{"summary": f"Finding of {number}", "explanation": said}]
        rows["community_reports"].append({
            **shared, "id": f"p{number}", "title": f"Report of group {number}", "summary": f"Group {number} in short.",
            "full_content": f"# Report of group {number}\n\n{said}", "rank": 5.0 + number, "findings": findings,
            "rating_explanation": "It matters.", "full_content_json": "{}",
        })  # fmt: skip
    return rows


def changed() -> Tables:
    """Another description, a document less, and another report."""
    tables = graphrag()
    tables["entities"][0]["description"] = "Mira Castellan never sold anything."
    tables["documents"].pop()
    tables["text_units"].pop()
    gone = {"e4", "e5", "e6"}
    tables["entities"] = [row for row in tables["entities"] if row["id"] not in gone]
    tables["relationships"] = tables["relationships"][:4]
    tables["communities"].pop(1)
    tables["community_reports"].pop(1)
    tables["community_reports"][0]["title"] = "Another title"
    return tables


def write(folder: Path, tables: Tables, prefix: str = "") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in tables.items():
        pq.write_table(pa.Table.from_pylist(rows), folder / f"{prefix}{name}.parquet")
    return folder


def lightrag() -> Row:
    """The files of one working directory by name; the graph as {"nodes", "edges"}."""
    chunk = {id: f"chunk-{id}" for id in UNITS}
    orders = {"u0": 0, "u1": 1, "u2": 0}

    def listed(units: list[str]) -> str:
        return "<SEP>".join(chunk[unit] for unit in units)

    nodes = {
        title.title(): {"entity_id": title.title(), "entity_type": kind.lower(), "description": told,
                        "source_id": listed(units), "file_path": "lamp.txt"}
        for title, kind, told, units in PEOPLE
    }  # fmt: skip
    edges = [
        (a.title(), b.title(), {"weight": weight, "description": told, "keywords": "trade,harbour",
                                "source_id": listed(units), "file_path": "lamp.txt"})
        for a, b, told, weight, units in LINKS
    ]  # fmt: skip
    texts = {"d0": ("/home/someone/lamp.txt", LAMP), "d1": ("mill.txt", MILL)}
    vector = {"__created_at__": 1, "vector": "AAAA"}
    return {
        "kv_store_full_docs.json": {f"doc-{id}": {"content": text, "file_path": path} for id, (path, text) in texts.items()},
        "kv_store_text_chunks.json": {
            chunk[id]: {"content": text, "full_doc_id": f"doc-{home}", "tokens": len(text) // 4,
                        "chunk_order_index": orders[id], "file_path": texts[home][0]}
            for id, (home, text) in UNITS.items()
        },
        "kv_store_doc_status.json": {
            "doc-d0": {"status": "processed", "chunks_count": 2, "chunks_list": [chunk["u0"], chunk["u1"]],
                       "created_at": "2025-03-01T00:00:00+00:00", "file_path": "/home/someone/lamp.txt"},
            "doc-d1": {"status": "processed", "chunks_count": 1, "chunks_list": [chunk["u2"]], "file_path": "mill.txt"},
        },
        "kv_store_entity_chunks.json": {
            title.title(): {"chunk_ids": [chunk[unit] for unit in units], "count": len(units)}
            for title, _, _, units in PEOPLE
        },
        "kv_store_full_entities.json": {"doc-d1": {"entity_names": ["Harrow Mill", "Devi Rao"], "count": 2}},
        "kv_store_full_relations.json": {"doc-d1": {"relation_pairs": [["Devi Rao", "Harrow Mill"]], "count": 1}},
        "vdb_entities.json": {"embedding_dim": 4, "matrix": "", "data": [
            {"__id__": f"ent-{n}", "entity_name": name, "content": f"{name}\n{row['description']}",
             "source_id": row["source_id"], **vector} for n, (name, row) in enumerate(nodes.items())]},
        "vdb_relationships.json": {"embedding_dim": 4, "matrix": "", "data": [
            {"__id__": f"rel-{n}", "src_id": a, "tgt_id": b, "content": f"trade\t{a}\n{b}\n{row['description']}",
             "source_id": row["source_id"], **vector} for n, (a, b, row) in enumerate(edges)]},
        "vdb_chunks.json": {"embedding_dim": 4, "matrix": "", "data": [
            {"__id__": chunk[id], "content": text, "full_doc_id": f"doc-{home}", **vector}
            for id, (home, text) in UNITS.items()]},
        "graph": {"nodes": nodes, "edges": edges},
    }  # fmt: skip


def write_lightrag(folder: Path, files: Row) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, body in files.items():
        if name != "graph":
            (folder / name).write_text(json.dumps(body, ensure_ascii=False), "utf-8")
    if "graph" in files:
        import networkx

        graph = networkx.Graph()
        for name, row in files["graph"]["nodes"].items():
            graph.add_node(name, **row)
        for a, b, row in files["graph"]["edges"]:
            graph.add_edge(a, b, **row)
        networkx.write_graphml(graph, folder / "graph_chunk_entity_relation.graphml")
    return folder
