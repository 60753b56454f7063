"""Random histories of documents, edits by hand and their undoing, each step compared with a fresh
index.

    python campaigns/edits.py [SEED ...] [--steps N]

Takes seeds; prints one line each. After every step the index must be what a new index of the same
folder with the same edit log is: content digest, degrees, and nothing for doctor to find. A dry run
must say what then happens; an undo made at once must give the digest from before, and its own undo
the one after. The short form of this is tests/index/test_edits.py.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from graphrag_mcp.errors import GraphRAGError
from graphrag_mcp.index.edits import Target
from graphrag_mcp.store.tables import open_snapshot
from tests.index.test_edits import content, do, fresh, index, random_edit, undo
from tests.index.test_index import document
from tests.support.promises import doctor

FIELDS: list[dict[str, Any]] = [
    {"description": "Said by hand."},
    {"type": "kind"},
    {"weight": 3},
    {"keywords": "one, two"},
]


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("seeds", nargs="*", type=int, default=list(range(1, 6)))
    options.add_argument("--steps", type=int, default=20)
    given = options.parse_args()
    wrong = 0
    for seed in given.seeds:
        with tempfile.TemporaryDirectory() as folder:
            began = time.monotonic()
            said = history(Path(folder), random.Random(seed), given.steps)
            wrong += not said.startswith("ok")
            print(f"seed {seed}: {said}, {time.monotonic() - began:.0f} s", flush=True)
    return 1 if wrong else 0


def history(work: Path, rng: random.Random, steps: int) -> str:
    docs, kb = work / "docs", work / "kb"
    docs.mkdir()
    for number in range(6):
        (docs / f"{number}.md").write_text(document(rng), "utf-8")
    index(kb, docs)
    ids: list[str] = []
    for step in range(steps):
        if rng.random() < 0.3:
            path = docs / f"{rng.randrange(8)}.md"
            if path.exists() and rng.random() < 0.4:
                path.unlink()
            else:
                path.write_text(document(rng), "utf-8")
            index(kb, docs)
        elif said := one_edit(rng, kb, ids, step):
            return f"step {step}: {said}"
        other = fresh(kb, f"fresh{step}")
        if content(kb) != content(other) or degrees(kb) != degrees(other):
            return f"step {step}: it is not what a fresh index is"
    found = doctor(kb)
    return f"ok after {len(ids)} edits" if not found else f"doctor finds {found[0]}"


def one_edit(rng: random.Random, kb: Path, ids: list[str], step: int) -> str:
    """One edit, tried first, sometimes undone and done again; what was wrong with it."""
    op, *targets = random_edit(rng, kb, ids, step)
    fields = {"update": rng.choice(FIELDS[:2]), "rename": {"title": f"Name {step}"}}.get(op, {})
    if op in ("update", "delete") and rng.random() < 0.5:
        targets, fields = ([a_relationship(rng, kb)], rng.choice(FIELDS[::2]) if op == "update" else {})
    before = content(kb)
    try:
        tried = do(kb, op, *targets, dry_run=True, **fields)
    except GraphRAGError:
        return ""
    if content(kb) != before:
        return f"trying {op} changed something"
    done = do(kb, op, *targets, **fields)
    if done.changes != tried.changes:
        return f"{op} did {done.changes}, and {tried.changes} when it was tried"
    if done.undo_id:
        ids.append(done.undo_id)
        if rng.random() < 0.4:
            after = content(kb)
            back = undo(kb, done.undo_id)
            if content(kb) != before:
                return f"the undo of {op} is not exact"
            undo(kb, back.undo_id)
            ids.append(back.undo_id)
            if content(kb) != after:
                return f"the undo of the undo of {op} is not exact"
    return ""


def a_relationship(rng: random.Random, kb: Path) -> Target:
    snapshot = open_snapshot(kb)
    row = rng.choice(sorted(snapshot.rows("relationships").to_pylist(), key=lambda row: row["id"]))
    ends = snapshot.by_key("entities", [row["source_id"], row["target_id"]], "id", ["key", "title"]).to_pylist()
    return Target(tuple(one["key"] for one in ends), tuple(one["title"] for one in ends))


def degrees(kb: Path) -> dict[str, int]:
    rows = open_snapshot(kb).rows("entities", columns=["key", "degree"]).to_pylist()
    return {row["key"]: row["degree"] for row in rows}


if __name__ == "__main__":
    raise SystemExit(main())
