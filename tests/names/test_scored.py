"""How many names of small sets are found, how much is taken for a name that is none, and how many types are right.

The sentences are our own. A rule is judged by its share of a set, not by a sentence; the shares are those that the
present rules reach, less a few points.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from graphrag_mcp.names.extract import mentions
from graphrag_mcp.names.lexicon import ordinary

HERE = Path(__file__).parent


def read(name: str) -> list[dict]:
    return json.loads((HERE / f"{name}.json").read_text("utf-8"))


def certain(text: str) -> set[str]:
    """The forms of the names of a document that its text shows to be names: one of everyday words twice."""
    counts = Counter(form for _, form, _, strong, *_ in mentions(text) if strong)
    return {form for form, n in counts.items() if n > all(map(ordinary, form.lower().split()))}


# set, share of the names that are found at least, share of what is no name that is found at most
SHARES = [("english", 0.76, 0.23), ("abroad", 0.88, 0.05), ("german", 0.85, 0.05)]


@pytest.mark.parametrize(("name", "least", "most"), SHARES)
def test_most_names_of_a_set_are_found_and_little_else(name: str, least: float, most: float) -> None:
    rows = [(certain(row["text"]), row) for row in read(name)]
    missed = [(one, row["text"]) for found, row in rows for one in row["names"] if one not in found]
    wrong = [(one, row["text"]) for found, row in rows for one in row["none"] if one in found]
    names, others = (sum(len(row[key]) for _, row in rows) for key in ("names", "none"))
    assert 1 - len(missed) / names >= least, missed
    assert len(wrong) / others <= most, wrong


def test_types_are_right_where_there_is_one() -> None:
    right = wrong = missed = 0
    for row in read("types"):
        found = {form: kind for _, form, kind, *_ in mentions(row["text"])}
        for form, kind in row["types"].items():
            given = found.get(form, "other")
            right += given == kind
            missed += given == "other" != kind
            wrong += given not in ("other", kind)
    assert right >= 0.9 * (right + wrong + missed) and wrong <= 0.05 * (right + wrong), (right, wrong, missed)
