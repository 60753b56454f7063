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


@pytest.mark.parametrize("text", SET["attacks"])
def test_what_is_written_to_a_model_is_flagged(text: str) -> None:
    assert suspicions(f"A report.\n\n{text}\nMore of it.")
