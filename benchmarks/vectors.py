"""What vectors cost beside a plain loop of the same ONNX model over the same texts, in one run.

    python benchmarks/vectors.py --model local:FOLDER [--passages 10000]

Each passage has about 110 tokens of sentences of docs/sample, in random order, and is a file. The
folder is indexed without vectors and with them. The loop has the options that ONNX Runtime and
tokenizers come with, and takes 32 texts at a time in the order of the index. CPU and memory are
those of each process and of its children, as the system counts them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from graphrag_mcp.index.vectors import missing_texts
from graphrag_mcp.llm.local import files_of, place, prompts
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.text.prose import sentences
from graphrag_mcp.text.tokens import count_tokens

SAMPLE = Path(__file__).resolve().parent.parent / "docs" / "sample"
TOKENS, BATCH = 110, 32


def write(folder: Path, passages: int) -> None:
    texts = [path.read_text("utf-8") for path in sorted(SAMPLE.glob("*.md"))]
    lines = [" ".join(text[a:b].split()) for text in texts for a, b in sentences(text)]
    chance = random.Random(7)
    folder.mkdir()
    for number in range(passages):
        passage: list[str] = []
        while sum(map(count_tokens, passage)) < TOKENS:
            passage.append(chance.choice(lines))
        (folder / f"{number:05}.txt").write_text(" ".join(passage) + "\n", "utf-8")


def spent(command: Sequence[str], **variables: str) -> tuple[float, float, float]:
    """CPU seconds, wall seconds and megabytes of a command."""
    start = time.perf_counter()
    process = subprocess.Popen(command, env=os.environ | variables, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{command[1:]} failed")
    wall = time.perf_counter() - start
    return used.ru_utime + used.ru_stime, wall, used.ru_maxrss / 1024


def tell(way: str, used: tuple[float, float, float]) -> None:
    cpu, wall, memory = used
    print(f"{way:22} {cpu:8.1f} s CPU {wall:8.1f} s {memory:7.0f} MB", flush=True)


def loop(listed: Path, model: str) -> None:
    """The plain loop: a vector of each text, by the mean of its tokens."""
    import numpy as np
    import onnxruntime
    from tokenizers import Tokenizer

    files = files_of(place(model))
    tokenizer = Tokenizer.from_file(str(files.tokenizer))
    tokenizer.enable_truncation(files.longest)
    tokenizer.enable_padding()
    session = onnxruntime.InferenceSession(str(files.graph), providers=["CPUExecutionProvider"])
    names = [entry.name for entry in session.get_inputs()]
    before = prompts(place(model))[1]
    texts = [before + text for text in json.loads(listed.read_text("utf-8"))]
    for at in range(0, len(texts), BATCH):
        encodings = tokenizer.encode_batch(texts[at : at + BATCH])
        feed = {
            "input_ids": np.array([encoding.ids for encoding in encodings]),
            "attention_mask": np.array([encoding.attention_mask for encoding in encodings]),
            "token_type_ids": np.array([encoding.type_ids for encoding in encodings]),
        }
        output = np.asarray(session.run(None, {name: feed[name] for name in names})[0])
        mask = feed["attention_mask"][..., None]
        _ = (output * mask).sum(axis=1) / mask.sum(axis=1)


def main() -> None:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--model", required=True, help="local:FOLDER")
    parser.add_argument("--passages", type=int, default=10_000)
    parser.add_argument("--loop", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.loop:
        loop(options.loop, options.model)
        return
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        write(work / "texts", options.passages)
        index = [sys.executable, "-m", "graphrag_mcp", "index", str(work / "texts"), "--home"]
        tell("index without vectors", spent([*index, str(work / "home")]))
        snapshot = open_snapshot(next((work / "home").rglob("tables")).parent)
        texts = [text for _, batch in missing_texts(snapshot) for text in batch.values()]
        names = len(texts) - snapshot.count("passages")
        print(f"{snapshot.count('passages'):,} passages, {names:,} names", flush=True)
        (work / "texts.json").write_text(json.dumps(texts), "utf-8")
        again = [*index, str(work / "home")]
        tell("its vectors", spent(again, GRAPHRAG_MCP_EMBEDDING_MODEL=options.model))
        listed = ["--loop", str(work / "texts.json"), "--model", options.model]
        tell("plain loop", spent([sys.executable, __file__, *listed]))


if __name__ == "__main__":
    main()
