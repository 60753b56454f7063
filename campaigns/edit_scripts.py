"""Random edit scripts: whatever was added, edited, renamed, moved and deleted, the index is that of
what is left.

    python campaigns/edit_scripts.py [--scripts 500] [--edits 100] [--documents 120] [--set NAME]

Each script makes a small folder, then three to five commits of random edits. At the end the content
digest must be that of a fresh index of the folder and, after recluster, the communities' digest
too; taking out again what a script put in must give back what was there; texts given in another
order, in other portions, by other processes and under another hash seed must give the same digests.
Then `--edits` small edits in a row of a larger corpus: communities that changed against those that
hold a name an edit touched, and the digests against those of a fresh index.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.corpora import write_out
from graphrag_mcp.doctor.generations import digest
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.types import IndexRequest, InlineText
from tests.support.promises import doctor

FIRST = "Ada Brynn Corvin Della Edda Falk Greta Hollis Ingrid Jonas Kira Lorne Mira Nils Orla Petra".split()
LAST = "Ashdown Brandt Castellan Drury Ekholm Farrow Gale Hargreave Imrie Jessop".split()
THINGS = ["Harbour Trust", "Corrie Accord", "Meridian Tern", "buoy B12", "Royal Society (RS)", "RS", "《工程控制论》"]
KINDS = ("content", "communities")


def person(rng: random.Random, circle: int = -1) -> str:
    """Anybody; or one of the sixteen people of a circle, and now and then somebody from elsewhere."""
    last = rng.choice(LAST) if circle < 0 or rng.random() < 0.1 else LAST[circle % len(LAST)]
    return f"{rng.choice(FIRST)} {last}"


def sentence(rng: random.Random, circle: int = -1) -> str:
    one, other = person(rng, circle), person(rng, circle)
    thing = rng.choice(THINGS) if circle < 0 else f"{LAST[circle % len(LAST)]} Ledger"
    return rng.choice(
        [
            f"{one} wrote to {other} about the {thing}.",
            f"{one} met {other} in Port {rng.choice(LAST)}.",
            f"The {thing} was described by {one}.",
            f"{one}在杭州会见了{other}，讨论{thing}。",
        ]
    )


def document(rng: random.Random, circle: int = -1) -> str:
    lengths = [rng.randint(1, 5) for _ in range(rng.randint(1, 4))]
    body = "\n\n".join(" ".join(sentence(rng, circle) for _ in range(length)) for length in lengths)
    return f"# {person(rng)}\n\n{body}\n"


def put(folder: Path, *paths: Path, texts: Sequence[InlineText] = (), recluster: bool = False) -> None:
    request = IndexRequest(tuple(map(str, paths)), tuple(texts), recluster=recluster, remove_missing=True)
    result = index_documents(folder, request, Settings())
    assert result.status == "done" and not result.errors, result


def digests(folder: Path) -> dict[str, str]:
    return digest(open_snapshot(folder))


# ---- one script ---------------------------------------------------------------------------------------


def edit(rng: random.Random, folder: Path) -> None:
    """One random edit of a folder of files."""
    files = sorted(path for path in folder.rglob("*.md"))
    what = rng.choice(["add", "edit", "rename", "delete", "move", "touch", "copy"]) if len(files) > 2 else "add"
    path = rng.choice(files) if files else folder
    new = folder / rng.choice(["", "sub", "sub/deep"]) / f"f{rng.randrange(10**6)}.md"
    new.parent.mkdir(parents=True, exist_ok=True)
    if what == "add":
        new.write_text(document(rng), "utf-8")
    elif what == "edit":
        paragraphs = path.read_text("utf-8").split("\n\n")
        paragraphs[rng.randrange(len(paragraphs))] = " ".join(sentence(rng) for _ in range(rng.randint(0, 3)))
        path.write_text("\n\n".join(paragraphs) or "x", "utf-8")
    elif what == "delete":
        path.unlink()
    elif what == "touch":
        os.utime(path)
    elif what == "copy":
        shutil.copy(path, new)
    else:
        shutil.move(path, path.with_name(new.name) if what == "rename" else new)


def moved(rng: random.Random, home: Path, docs: Path) -> Path:
    """The folder itself has another name or another place, every third time, and one of its files
    has been edited.
    """
    if rng.random() > 0.33 or len(list(docs.rglob("*.md"))) < 4:
        return docs
    new = home / f"place{rng.randrange(10**6)}" / rng.choice(["docs", "papers", docs.name])
    new.parent.mkdir()
    docs.rename(new)
    edit(rng, new)
    return new


def script(home: Path, seed: int) -> list[str]:
    """What is wrong after one random script; nothing, if all is well."""
    rng, wrong = random.Random(seed), []
    docs, folder = home / "docs", home / "kb"
    docs.mkdir(parents=True)
    for number in range(rng.randint(3, 7)):
        (docs / f"{number}.md").write_text(document(rng), "utf-8")
    put(folder, docs)
    for _ in range(rng.randint(3, 5)):
        for _ in range(rng.randint(1, 4)):
            edit(rng, docs)
        put(folder, docs)
        docs = moved(rng, home, docs)
        put(folder, docs)
    put(home / "fresh", docs)
    wanted, had = digests(home / "fresh"), digests(folder)
    wrong += ["content is not that of a fresh index"] if had["content"] != wanted["content"] else []
    extra = [InlineText(document(rng), f"extra{number}") for number in range(rng.randint(1, 3))]
    (docs / "extra.md").write_text(document(rng), "utf-8")
    put(folder, docs, texts=extra)
    (docs / "extra.md").unlink()
    put(folder, docs, texts=[InlineText("Nothing.", text.id) for text in extra])  # B is taken out of the graph
    put(home / "fresh", texts=[InlineText("Nothing.", text.id) for text in extra])
    wanted = digests(home / "fresh")
    wrong += ["(A+B)-B is not A"] if digests(folder)["content"] != wanted["content"] else []
    for one in (folder, home / "fresh"):
        put(one, docs, recluster=True)
    if digests(folder) != digests(home / "fresh"):
        wrong.append("communities after recluster are not those of a fresh index")
    return wrong + [f"doctor: {found.kind} {found.what}" for found in doctor(folder) if not found.remark]


CHILD = (
    "import sys, json; sys.path.insert(0, sys.argv[1]); from pathlib import Path;"
    "from campaigns.edit_scripts import put; from graphrag_mcp.types import InlineText;"
    "texts = [InlineText(*one) for one in json.loads(sys.stdin.read())]; put(Path(sys.argv[2]), texts=texts)"
)


def orders(home: Path, seed: int) -> list[str]:
    """The same texts at once, in two orders, one by one, by several processes, under two hash
    seeds.
    """
    rng = random.Random(seed)
    texts = [InlineText(document(rng), f"text{number}") for number in range(8)]
    shuffled = rng.sample(texts, len(texts))
    put(home / "all", texts=texts)
    for start in range(0, 8, 3):
        put(home / "portions", texts=shuffled[start : start + 3])
    built = {"seed1": ("1", [texts]), "seed2": ("77", [shuffled]), "many": ("5", [shuffled[:3], shuffled[3:]])}
    for name, (hash_seed, parts) in built.items():
        for part in parts:
            command = [sys.executable, "-c", CHILD, str(ROOT), str(home / name)]
            given = json.dumps([(text.text, text.id) for text in part])
            environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
            subprocess.run(command, check=True, text=True, timeout=120, input=given, env=environment)
    names = ["all", "portions", "seed1", "seed2", "many"]
    for name in names:
        put(home / name, recluster=True)
    found = {name: digests(home / name) for name in names}
    return [f"{kind} of {name} differs" for name in names for kind in KINDS if found[name][kind] != found["all"][kind]]


# ---- a long row of small edits --------------------------------------------------------------------------


def tree(snapshot: Snapshot) -> dict[str, set[str]]:
    rows = snapshot.rows("communities", columns=["id", "entity_ids"]).to_pylist()
    return {row["id"]: set(row["entity_ids"]) for row in rows}


def touched(before: Snapshot, after: Snapshot) -> set[str]:
    """Entities whose own row, or a relationship of theirs, is another one."""
    found: set[str] = set()
    for table, ends in (("entities", ("id",)), ("relationships", ("source_id", "target_id"))):
        old, new = (
            {
                row["id"]: (row["check"], *(row[end] for end in ends))
                for row in snapshot.rows(table, columns=sorted({"id", "check", *ends})).to_pylist()
            }
            for snapshot in (before, after)
        )
        for id in old.keys() ^ new.keys() | {id for id in old.keys() & new.keys() if old[id] != new[id]}:
            found.update((old.get(id) or new[id])[1:])
    return found


def row_of_edits(home: Path, documents: int, edits: int, seed: int, named: str = "") -> list[str]:
    """Of made-up documents of ten circles of people, or of an evaluation set (corpora.py)."""
    rng, docs, folder = random.Random(seed), home / "docs", home / "kb"
    docs.mkdir(parents=True)
    for number in range(0 if named else documents):
        (docs / f"{number:04d}.md").write_text(document(rng, number), "utf-8")
    docs = write_out(named, docs) if named else docs
    files = sorted(docs.iterdir())
    put(folder, docs)
    before, changed, near = open_snapshot(folder), 0.0, 0.0
    for _ in range(edits):
        path, other = rng.choice(files), rng.choice(files)
        more = rng.choice(other.read_text("utf-8").split("\n\n")) if named else sentence(rng, files.index(path))
        path.write_text(f"{path.read_text('utf-8')}\n\n{more}\n", "utf-8")
        put(folder, docs)
        after = open_snapshot(folder)
        old, new, names = tree(before), tree(after), touched(before, after)
        changed += len(new.keys() - old.keys()) / max(1, len(new))
        near += sum(1 for members in new.values() if members & names) / max(1, len(new))
        before = after
    print(
        f"{edits} edits in a row of {len(files)} documents, {len(tree(before))} communities: a commit changed "
        f"{100 * changed / edits:.2f} % of them and touched {100 * near / edits:.2f} %"
    )
    index_fresh = home / "fresh"
    put(index_fresh, docs)
    same = digests(folder) == digests(index_fresh)
    return [] if same else ["after a row of edits the digests are not those of a fresh index"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("scripts", 500), ("edits", 100), ("documents", 120), ("seed", 0), ("minutes", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--set", default="", help="an evaluation set for the edits in a row, instead of made-up text")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    wrong, done, end = [], 0, time.monotonic() + 60 * (options.minutes or 10**6)
    for number in range(options.seed, options.seed + options.scripts):
        if time.monotonic() > end:
            break
        with tempfile.TemporaryDirectory() as home:
            bad = script(Path(home), number) + (orders(Path(home) / "orders", number) if number % 20 == 0 else [])
        wrong += [f"script {number}: {one}" for one in bad]
        done += 1
        for one in bad:
            print(f"script {number}: {one}", flush=True)
    print(f"{done} scripts, {len(wrong)} faults")
    with tempfile.TemporaryDirectory() as home:
        if options.edits:
            wrong += row_of_edits(Path(home), options.documents, options.edits, options.seed, options.set)
    print("\n".join(wrong) or "nothing is wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
