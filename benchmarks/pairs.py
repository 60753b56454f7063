"""Global answers compared in pairs, as GraphRAG's paper does (Edge et al. 2024): which of two ways of searching gives the
better answers to questions on a whole collection?

    python benchmarks/pairs.py contexts OUT --questions news --summaries HOME --vectors HOME --model local:DIR --corpus NAME
    python benchmarks/pairs.py packets OUT global vector --questions news
    python benchmarks/pairs.py score OUT
    python benchmarks/pairs.py agreement OUT OTHER

`contexts` writes, for each of the questions in `pairs/news.json` or `pairs/chats.json`, what one `global_search` of 8,000 tokens shows
(`OUT/global/NN.txt`) and the nearest passages by vectors up to as many characters (`OUT/vector/NN.txt`). Agents write an
answer to each context into `OUT/answers/WAY/NN.md`. `packets` puts each pair of answers in both orders, without their
ways, into packets for different judges (`OUT/packets/`); `pairs/judge.md` says what writers and judges are told. `score`
prints win rates of the verdicts (`OUT/verdicts/*.jsonl`) with intervals of 95 % over the questions. `agreement` compares
them with the verdicts of a judge in `OTHER`, who judged some of the pairs, perhaps in other packets.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

QUESTIONS = Path(__file__).with_name("pairs")
CRITERIA = ("comprehensiveness", "diversity", "empowerment", "directness")
TOKENS = 8_000  # of a context, as in the paper
NEAREST = 80  # passages, more than fit


def asked_of(collection: str) -> list[dict[str, str]]:
    """The questions on a collection, each with its persona and task."""
    return json.loads((QUESTIONS / f"{collection}.json").read_text("utf-8"))


def contexts(out: Path, collection: str, summaries: str, vectors: str, model: str, corpus: str) -> None:
    import anyio

    from graphrag_mcp import App
    from graphrag_mcp.query.global_ import global_search
    from graphrag_mcp.settings import load
    from graphrag_mcp.store.tables import nearest, values_of

    told = App(load(home=summaries)).snapshot(corpus)
    app = App(load(home=vectors, embedding_model=model))
    snapshot, asker = app.snapshot(corpus), app.asker(corpus)
    passages = {row["id"]: row for row in snapshot.rows("passages").to_pylist()}
    documents = snapshot.rows("documents", columns=["id", "uri"])
    names = {
        id: Path(uri).stem for id, uri in zip(values_of(documents["id"]), values_of(documents["uri"]), strict=True)
    }
    for way in ("global", "vector"):
        (out / way).mkdir(parents=True, exist_ok=True)
    for number, asked in enumerate(asked_of(collection), 1):
        text = global_search(told, asked["question"], max_tokens=TOKENS).text
        (out / "global" / f"{number:02}.txt").write_text(text, "utf-8")
        room, parts = len(text), []
        vector = anyio.run(lambda query=asked["question"]: asker.embed([query], query=True))[0]
        for id, _ in nearest(snapshot, "passages", vector, NEAREST):
            passage = passages[id]
            part = f"[{names[passage['document_id']]}] {passage['text'].strip()}\n\n"
            if len(part) > room:
                break
            parts.append(part)
            room -= len(part)
        (out / "vector" / f"{number:02}.txt").write_text("".join(parts), "utf-8")


def packets(out: Path, collection: str, first: str, second: str, judges: int, seed: int) -> None:
    """The two orders of a pair go to different halves of the judges."""
    questions = asked_of(collection)
    answers = {
        way: {int(path.stem): path.read_text("utf-8").strip() for path in (out / "answers" / way).glob("*.md")}
        for way in (first, second)
    }
    chance = random.Random(seed)
    halves: tuple[list[tuple[int, str, str]], list[tuple[int, str, str]]] = ([], [])
    for number in sorted(answers[first].keys() & answers[second].keys()):
        turn = chance.randrange(2)
        halves[turn].append((number, first, second))
        halves[1 - turn].append((number, second, first))
    (out / "packets").mkdir(parents=True, exist_ok=True)
    key: dict[str, tuple[int, str, str]] = {}
    packet = 0
    for half in halves:
        chance.shuffle(half)
        size = -(-len(half) // max(judges // 2, 1)) or 1
        for start in range(0, len(half), size):
            packet += 1
            parts = []
            for place, (number, left, right) in enumerate(half[start : start + size], 1):
                id = f"{first}-{second}-{packet}-{place}"
                key[id] = number, left, right
                asked = questions[number - 1]
                parts.append(
                    f"# Comparison {id}\n\nPersona: {asked['persona']}. Task: {asked['task']}.\nQuestion: "
                    f"{asked['question']}\n\n## Answer 1\n\n{answers[left][number]}\n\n## Answer 2\n\n"
                    f"{answers[right][number]}\n"
                )
            path = out / "packets" / f"{first}-{second}-{packet}.md"
            path.write_text("\n".join(parts), "utf-8")
    (out / f"key-{first}-{second}.json").write_text(json.dumps(key), "utf-8")


Pair = tuple[int, str, str]  # the number of a question and two ways, in the order of their names


def judged(out: Path) -> Iterator[tuple[Pair, dict[str, str]]]:
    """Each verdict: the pair, and by criterion the way that won, "" for a tie."""
    key: dict[str, Pair] = {}
    for path in sorted(out.glob("key-*.json")):
        key |= json.loads(path.read_text("utf-8"))
    for path in sorted((out / "verdicts").glob("*.jsonl")):
        for line in filter(str.strip, path.read_text("utf-8").splitlines()):
            verdict = json.loads(line)
            number, left, right = key[verdict["id"]]
            ways = {1: left, 2: right}
            winners = {name: ways.get(verdict[name], "") for name in CRITERIA}
            yield (number, *sorted((left, right))), winners  # pyright: ignore[reportReturnType]


def agreement(out: Path, other: Path) -> list[str]:
    """One line for each criterion: the share of the verdicts of `out` on pairs that `other` judged as
    well whose winner is the same, and kappa (Cohen 1960). Kappa is low where one way wins nearly
    always, since chance would agree as often."""
    second = dict(judged(other))
    both = [(pair, first, second[pair]) for pair, first in judged(out) if pair in second]
    lines = []
    for names in (*((name,) for name in CRITERIA), CRITERIA):
        # The same label means the same side: ways differ from pair to pair.
        sides = [
            tuple({pair[1]: 1, pair[2]: 2}.get(winners[name], 0) for winners in (one, two))
            for pair, one, two in both
            for name in names
        ]
        same = sum(one == two for one, two in sides) / len(sides)
        of_first, of_second = (Counter(column) for column in zip(*sides, strict=True))
        chance = sum(of_first[side] * of_second[side] for side in of_first) / len(sides) ** 2
        kappa = (same - chance) / (1 - chance) if chance < 1 else 1.0
        what = names[0] if len(names) == 1 else "all criteria"
        lines.append(f"{what}: {same:.0%} of {len(sides)} verdicts agree, kappa {kappa:.2f}")
    return lines


def score(out: Path) -> list[str]:
    """One line for each pair of ways and criterion."""
    wins: dict[tuple[str, str], dict[str, dict[int, list[float]]]] = {}
    for (number, one, other), winners in judged(out):
        by_criterion = wins.setdefault((one, other), {name: defaultdict(list) for name in CRITERIA})
        for name, winner in winners.items():
            by_criterion[name][number].append(float(winner == one) if winner else 0.5)
    lines = []
    for (one, other), by_criterion in sorted(wins.items()):
        for name, marks in by_criterion.items():
            means = [sum(both) / len(both) for both in marks.values()]
            mean = sum(means) / len(means)
            spread = math.sqrt(sum((value - mean) ** 2 for value in means) / max(len(means) - 1, 1))
            width = 1.96 * spread / math.sqrt(len(means))
            lines.append(f"{one} over {other}, {name}: {mean:.0%} ± {width:.0%} of {len(means)} questions")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("contexts")
    making.add_argument("out", type=Path)
    for name in ("--questions", "--summaries", "--vectors", "--model", "--corpus"):
        making.add_argument(name, required=True)
    packing = commands.add_parser("packets")
    packing.add_argument("out", type=Path)
    packing.add_argument("first")
    packing.add_argument("second")
    packing.add_argument("--questions", required=True)
    packing.add_argument("--judges", type=int, default=4)
    packing.add_argument("--seed", type=int, default=1)
    commands.add_parser("score").add_argument("out", type=Path)
    comparing = commands.add_parser("agreement")
    comparing.add_argument("out", type=Path)
    comparing.add_argument("other", type=Path)
    given = parser.parse_args()
    if given.command == "contexts":
        contexts(given.out, given.questions, given.summaries, given.vectors, given.model, given.corpus)
    elif given.command == "packets":
        packets(given.out, given.questions, given.first, given.second, given.judges, given.seed)
    elif given.command == "agreement":
        print(*agreement(given.out, given.other), sep="\n")
    else:
        print(*score(given.out), sep="\n")


if __name__ == "__main__":
    main()
