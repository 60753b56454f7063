"""Search by meaning: questions that share no word with their passage, and questions in another
language than their document. Words alone, vectors alone, and both as a search ranks them.

    python benchmarks/meaning.py --model local:FOLDER [--keep DIR]

`meaning/other-words.jsonl`: 100 questions on docs/sample; no word of a question, nor a form of it,
occurs in the passage that answers it (checked here). `meaning/languages.jsonl`: 24 short documents,
six each in English, German, Chinese and Japanese, each with a question in all four languages; they
are searched together with docs/sample, and a second time beside 20 files of noise: licences, READMEs
of installed packages and generated files. Questions and documents were written for these sets and have
the licence of the project. hits@5: share of the questions whose passage is among the first five.
"""

from __future__ import annotations

import argparse
import json
import os
import pydoc
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import distribution
from pathlib import Path

from identify.vendor.licenses import LICENSES

from graphrag_mcp.llm.opening import open_asker
from graphrag_mcp.query import rank
from graphrag_mcp.settings import load
from graphrag_mcp.store import tables
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.text.terms import query_terms

HERE = Path(__file__).resolve().parent
SAMPLE, SETS = HERE.parent / "docs" / "sample", HERE / "meaning"
README_OF = ("anyio", "json_repair", "lancedb", "mcp", "pydantic", "RapidFuzz")
FIRST = 5  # passages in which the right one has to be


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with the words that only its passage has. `group`: what its figure is added to."""

    question: str
    evidence: str
    group: str


def other_words(folder: Path) -> list[Asked]:
    """The files of the set written to `folder`, and its questions."""
    shutil.copytree(SAMPLE, folder, dirs_exist_ok=True)
    return [Asked(row["question"], row["evidence"], "other words") for row in rows("other-words")]


def languages(folder: Path) -> list[Asked]:
    shutil.copytree(SAMPLE, folder, dirs_exist_ok=True)
    return documents(folder)


def mixed(folder: Path) -> list[Asked]:
    """The documents without docs/sample, beside 8 licences, 6 READMEs and 6 generated files."""
    folder.mkdir(parents=True, exist_ok=True)
    licences = sorted(LICENSES)[:8]
    headed = [(name, distribution(name).read_text("METADATA") or "") for name in README_OF]
    readmes = [(name, text.partition("\n\n")[2]) for name, text in headed]
    texts = {f"vendor/{name}/LICENSE": text for name, text in licences}
    texts |= {f"vendor/{name}/README.md": text for name, text in readmes}
    for module in (json, subprocess, tempfile):
        texts[f"docs/{module.__name__}.txt"] = pydoc.plain(pydoc.render_doc(module))
    lines = [f"2024-{1 + n % 12:02},branch {n % 7},{n * 37 % 200}" for n in range(300)]
    texts["export.csv"] = "\n".join(["month,branch,count", *lines])
    texts["CHANGES.md"] = "".join(f"## 1.{n}.0\n\n- Fix contract {n}\n\n" for n in range(40))
    texts["listing.txt"] = "".join(f"GET /v1/items/{n}: 200, 404\n\n" for n in range(200))
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return [replace(one, group=f"{one.group}, noise") for one in documents(folder)]


def documents(folder: Path) -> list[Asked]:
    """The documents of languages.jsonl, written to `folder`, and their questions."""
    asked = []
    for row in rows("languages"):
        (folder / f"{row['id']}.md").write_text(f"# {row['title']}\n\n{row['text']}\n", "utf-8")
        for language, question in row["questions"].items():
            same = language == row["language"]
            groups = [f"{language} on {'the same' if same else 'another'}"]
            groups += ["same language" if same else "another language"]
            asked += [Asked(question, row["text"], group) for group in groups]
    return asked


def rows(name: str) -> list[dict]:
    return [json.loads(line) for line in (SETS / f"{name}.jsonl").read_text("utf-8").splitlines()]


def indexed(folder: Path, home: Path, model: str) -> Snapshot:
    environment = os.environ | {"GRAPHRAG_MCP_EMBEDDING_MODEL": model}
    command = [sys.executable, "-m", "graphrag_mcp", "index", str(folder), "--home", str(home)]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    return open_snapshot(next(home.rglob("tables")).parent)


def plain(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).casefold()


def measure(snapshot: Snapshot, asked: Sequence[Asked], model: str, home: Path) -> None:
    """Prints hits@5 of each group by words, by vectors and by both."""
    settings = replace(load(home=home), embedding_model=model)
    asker = open_asker(snapshot.folder, settings, limited=False)
    # A search embeds its question alone. With 8-bit weights the others of a batch change a vector.
    alone = (asker.wait(asker.embed([one.question], query=True)) for one in asked)
    vectors = [vector for (vector,) in alone]
    passages = snapshot.rows("passages", "", ["id", "text", "terms"]).to_pylist()
    hits: dict[str, list[tuple[bool, ...]]] = defaultdict(list)
    for one, vector in zip(asked, vectors, strict=True):
        right = {row["id"] for row in passages if plain(one.evidence)[:200] in plain(row["text"])}
        if not right:
            raise SystemExit(f"no passage holds {one.evidence!r}")
        if one.group == "other words":
            check(one, [row["terms"] for row in passages if row["id"] in right])
        near = tables.similarities(snapshot, "passages", vector or b"", 200)
        ways = (
            ranked(rank.retrieve(snapshot, one.question)),
            sorted(near, key=lambda id: (-near[id], id)),
            ranked(rank.retrieve(snapshot, one.question, vector=vector)),
        )
        hits[one.group].append(tuple(bool(right & set(way[:FIRST])) for way in ways))
    asker.close()
    for group, found in hits.items():
        shares = (100 * sum(way) / len(found) for way in zip(*found, strict=True))
        print(f"{group:26} {len(found):9}" + "".join(f"{share:9.1f}" for share in shares))


def ranked(found: rank.Ranking) -> list[str]:
    return [passage.id for passage in found.passages]


def check(asked: Asked, holding: Iterable[str]) -> None:
    shared = set(query_terms(asked.question)).intersection(*(terms.split() for terms in holding))
    if shared:
        raise SystemExit(f"{asked.question!r} shares {sorted(shared)} with its passage")


def main() -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--model", required=True, help="local:FOLDER or local:OWNER/NAME")
    parser.add_argument("--keep", type=Path, help="keep files and indexes here and use them again")
    options = parser.parse_args()
    print(f"{'hits@5':26} questions    words  vectors     both")
    with tempfile.TemporaryDirectory() as scratch:
        work = options.keep or Path(scratch)
        for make in (other_words, languages, mixed):
            folder, home = work / make.__name__, work / f"home-{make.__name__}"
            asked = make(folder)
            measure(indexed(folder, home, options.model), asked, options.model, home)


if __name__ == "__main__":
    main()
