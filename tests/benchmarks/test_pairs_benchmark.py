"""Pairs of answers are judged in both orders without the names of their ways."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks import pairs


def test_packets_hide_the_ways_and_the_score_counts_both_orders(tmp_path: Path) -> None:
    for way in ("global", "vector"):
        folder = tmp_path / "answers" / way
        folder.mkdir(parents=True)
        for number in range(1, 7):
            (folder / f"{number:02}.md").write_text(f"Text {way[0]}{number}.", "utf-8")
    pairs.packets(tmp_path, "news", "global", "vector", judges=4, seed=1)
    key = json.loads((tmp_path / "key-global-vector.json").read_text("utf-8"))
    assert sorted(key.values()) == sorted(
        [n, *order] for n in range(1, 7) for order in (("global", "vector"), ("vector", "global"))
    )
    shown = [path.read_text("utf-8") for path in sorted((tmp_path / "packets").glob("*.md"))]
    assert sum(text.count("## Answer 1") for text in shown) == 12
    for half in (shown[:2], shown[2:]):  # no judge of a half sees both orders of a pair
        assert [sum(text.count(f"Text g{n}.") for text in half) for n in range(1, 7)] == [1] * 6
    # The first answer wins always, the global one wins, a tie, the vector one wins in one order.
    (tmp_path / "verdicts").mkdir()
    with (tmp_path / "verdicts" / "1.jsonl").open("w", encoding="utf-8") as file:
        for id, (_, left, _) in key.items():
            best = 1 if left == "global" else 2
            marks = dict(zip(pairs.CRITERIA, (1, best, 0, 1 if left == "vector" else 0), strict=True))
            file.write(json.dumps({"id": id, **marks}) + "\n")
    assert pairs.score(tmp_path) == [
        "global over vector, comprehensiveness: 50% ± 0% of 6 questions",
        "global over vector, diversity: 100% ± 0% of 6 questions",
        "global over vector, empowerment: 50% ± 0% of 6 questions",
        "global over vector, directness: 25% ± 0% of 6 questions",
    ]


def verdicts(out: Path, given: dict[str, tuple[tuple[int, str, str], int]]) -> Path:
    """The winner of all criteria by id, beside what stood on which side."""
    (out / "verdicts").mkdir(parents=True)
    (out / "key-1.json").write_text(json.dumps({id: key for id, (key, _) in given.items()}), "utf-8")
    lines = [json.dumps({"id": id, **dict.fromkeys(pairs.CRITERIA, winner)}) for id, (_, winner) in given.items()]
    (out / "verdicts" / "1.jsonl").write_text("\n".join(lines), "utf-8")
    return out


def test_agreement_compares_winners_and_not_sides(tmp_path: Path) -> None:
    first = verdicts(
        tmp_path / "first",
        {
            "a": ((1, "global", "vector"), 1), "b": ((1, "vector", "global"), 2), "c": ((2, "global", "vector"), 2),
            "d": ((2, "vector", "global"), 2), "e": ((3, "global", "vector"), 1),
        },
    )  # fmt: skip
    second = verdicts(tmp_path / "second", {"x": ((1, "vector", "global"), 2), "y": ((2, "global", "vector"), 2)})
    lines = pairs.agreement(first, second)  # global, global; vector, global against global, vector
    assert lines[0] == "comprehensiveness: 75% of 4 verdicts agree, kappa 0.50"
    assert lines[-1] == "all criteria: 75% of 16 verdicts agree, kappa 0.50"
