"""What people write to people is not flagged; what is written to a model is."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from graphrag_mcp.trust.fencing import suspicions

SET = tomllib.loads(Path(__file__).with_name("injection.toml").read_text("utf-8"))


@pytest.mark.parametrize("text", SET["ordinary"])
def test_what_people_write_to_people_is_not_flagged(text: str) -> None:
    assert suspicions(text) == ()


def test_everything_that_people_write_stays_unflagged_in_the_middle_of_a_text() -> None:
    lines = "\n".join(f"{number}. {text}" for number, text in enumerate(SET["ordinary"], 1))
    found = suspicions(lines)
    assert [lines[at : lines.find("\n", at)] for at, _ in found] == []


@pytest.mark.parametrize("text", SET["attacks"])
def test_what_is_written_to_a_model_is_flagged(text: str) -> None:
    assert suspicions(f"A report.\n\n{text}\nMore of it.")
