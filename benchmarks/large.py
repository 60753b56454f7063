"""A large corpus: what searches cost over it, and what an update of five documents costs against a
small one.

    python benchmarks/large.py [--entities 10000 100000] [--keep DIR] [--questions 60]

60,000 entities make 10,000 documents of one text unit each, which is what goals of latency speak
of.

Documents of some 200 words about invented people, places and bodies are written and indexed by the
command line as anybody's would be; every name stands in one document or in several, as names do.
Per size: the index run, opening, CPU milliseconds of every kind of search in process and their
resident memory, then five documents are edited and indexed again, once by naming them and once by
naming their folder, of which every file is then looked at: CPU seconds per stage (clustering and
the start of the process apart) and bytes written, by table. Last the ratios of largest to smallest.
Each update is done twice; the cheaper counts, because other programs on the machine only ever add.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from indexing import run

NEW_A_DOCUMENT = 6  # names that a document is the first to mention
SYLLABLES = (
    "ba be bor cal dan der dor el fen gar hal hol in jor kel lan lor mar mel nor or pel quin ros sal tam".split()
)
KINDS = ("", "", "", " Harbour", " Institute", " Valley", " Company", " Council")
THINGS = "ledger survey bridge treaty vaccine turbine archive garden sonata verdict census reactor harvest lantern"
DOINGS = "signed repaired measured opposed financed translated inherited mapped disputed restored published witnessed"
WHENS = "in spring|after the flood|during the strike|on a Tuesday|before the vote|for the third time|at great cost"


def name(draw: random.Random) -> str:
    word = ["".join(draw.choice(SYLLABLES) for _ in range(draw.choice((2, 2, 3)))).capitalize() for _ in range(2)]
    return " ".join(word) + draw.choice(KINDS)


def write_out(folder: Path, entities: int) -> int:
    """Markdown files, a hundred a folder; returns how many."""
    draw = random.Random(7)
    things, doings, whens = THINGS.split(), DOINGS.split(), WHENS.split("|")
    known: list[str] = []
    count = entities // NEW_A_DOCUMENT
    for number in range(count):
        fresh = [name(draw) for _ in range(NEW_A_DOCUMENT)]
        told = fresh + [known[int(len(known) * draw.random() ** 3)] for _ in range(5) if known]
        known += fresh
        lines = [f"# Report {number}: {fresh[0]}"]
        for _ in range(14):
            one, other = draw.sample(told, 2)
            lines.append(
                f"{one} {draw.choice(doings)} the {draw.choice(things)} with {other} {draw.choice(whens)}, and the "
                f"{draw.choice(things)} of report {number} was {draw.choice(doings)} once more."
            )
        place = folder / f"{number // 100:04d}" / f"{number:06d}.md"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("\n\n".join(lines) + "\n", "utf-8")
    return count


def bytes_in(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_size for path in folder.rglob("*") if path.is_file()}


def edit(folder: Path, files: int, who: str) -> list[str]:
    """A sentence with one new name at the end of five documents that lie apart; gives their paths."""
    paths = []
    for number in range(5):
        at = number * files // 5
        path = folder / f"{at // 100:04d}" / f"{at:06d}.md"
        with path.open("a", encoding="utf-8") as file:
            file.write(f"\nNobody expected {who} Quelbrand {number} at the gate.\n")
        paths.append(str(path))
    return paths


SEARCHES = """
import json, resource, statistics, sys, time
from pathlib import Path
from graphrag_mcp import App, global_search, local_search
from graphrag_mcp.query.text_search import search_text
from graphrag_mcp.settings import load

home, questions = Path(sys.argv[1]), json.loads(sys.stdin.read())
app = App(load({}, home=home))
began = time.process_time()
snapshot = app.snapshot("")
local_search(snapshot, "warm up")
first = time.process_time() - began
began = time.perf_counter()
from graphrag_mcp.store.tables import open_snapshot
open_snapshot(snapshot.folder)
found = {"open": [(time.perf_counter() - began) * 1000]}
for name, tool in (("local_search", local_search), ("asked again", local_search), ("global_search", global_search),
                   ("search_text", search_text)):
    for question in questions:
        began = time.process_time()
        tool(snapshot, question)
        found.setdefault(name, []).append((time.process_time() - began) * 1000)
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
print(json.dumps({"first": first, "memory": memory, "found": found}))
"""


def searches(home: Path, folder: Path, count: int) -> None:
    files = sorted(folder.rglob("*.md"))
    draw = random.Random(3)
    questions = []
    for path in draw.sample(files, count):
        who = path.read_text("utf-8").partition(": ")[2].splitlines()[0]
        questions.append(f"What did {who} do with the {draw.choice(THINGS.split())}?")
    command = [sys.executable, "-c", SEARCHES, str(home)]
    done = subprocess.run(command, input=json.dumps(questions), text=True, capture_output=True, check=True)
    said = json.loads(done.stdout)
    print(f"  first search {said['first']:.2f} s CPU, peak {said['memory']} MB")
    for name, values in said["found"].items():
        values.sort()
        print(f"  {name:14} p50 {values[len(values) // 2]:7.1f} ms   p95 {values[int(len(values) * 0.95)]:7.1f} ms")


def update(command: list[str], home: Path, named: str) -> tuple[float, float, int]:
    """CPU seconds of one update without clustering, those of clustering, and the bytes that it wrote."""
    before = bytes_in(home)
    result, cpu, wall, _ = run(command)
    written: Counter[str] = Counter()
    for path, size in bytes_in(home).items():
        if before.get(path) != size:
            parts = path.relative_to(home).parts[2:]
            written[parts[1] if parts[0] == "tables" else "beside the tables"] += size
    stages = result["seconds"]
    own = sum(value for stage, value in stages.items() if stage != "communities")
    most = ", ".join(f"{name} {size / 1e6:.2f}" for name, size in written.most_common(3))
    apart = f"apart from clustering {stages['communities']:.2f}"
    print(f"  update of 5, {named}: {own:.2f} s CPU, {apart}; {stages}; process {cpu:.1f}, {wall:.1f} s wall")
    print(f"    {written.total() / 1e6:.2f} MB written, of it {most}")
    assert result["counts"]["changed"] == 5, result
    return own, stages["communities"], written.total()


def measured(work: Path, entities: int, questions: int) -> dict[str, tuple[float, float, int]]:
    """What `update` gives, by what was named."""
    folder, home = work / f"files-{entities}", work / f"home-{entities}"
    command = [sys.executable, "-m", "graphrag_mcp", "index"]
    options = ["--home", str(home), "--json"]
    if not home.exists():
        write_out(folder, entities)
        result, cpu, wall, rss = run([*command, str(folder), *options])
        print(f"{entities} entities wanted: {result['counts']}")
        print(f"  indexed in {cpu:.1f} s CPU, {wall:.1f} s, peak {rss} MB; {result['seconds']}")
    files = len(list(folder.rglob("*.md")))
    if questions:
        searches(home, folder, questions)
    options += ["--corpus", next((home / "corpora").iterdir()).name]
    found = {}
    for named in ("the files named", "the folder named"):
        for who in ("Orsalin", "Tervis"):
            paths = edit(folder, files, who)
            given = update([*command, *(paths if named == "the files named" else [str(folder)]), *options], home, named)
            found[named] = tuple(map(min, given, found.get(named, given)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entities", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--keep", type=Path, help="keep files and indexes here and use them again")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        work = options.keep or Path(scratch)
        figures = [measured(work, entities, options.questions) for entities in options.entities]
    for named, few in figures[0].items() if len(figures) > 1 else ():
        cpu, clustering, size = (large / small for large, small in zip(figures[-1][named], few, strict=True))
        print(
            f"largest against smallest, {named}: {cpu:.2f} times the CPU, {size:.2f} times the bytes; "
            f"clustering, which is not in it: {clustering:.2f} times"
        )


if __name__ == "__main__":
    main()
