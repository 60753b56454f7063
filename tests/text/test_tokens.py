"""Token counts: never under those of o200k_base, and close to them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphrag_mcp.text.tokens import count_tokens
from tests.support.command import SAMPLE
from tests.text.test_terms import ALPHABET

# (kind, tokens by o200k_base, text). The counts were measured with the real vocabulary; the texts are ours.
COUNTED = [(row["kind"], row["tokens"], row["text"]) for row in json.loads(Path(__file__).with_name("counted.json").read_text("utf-8"))]
TIGHT = ("English", "JSON of a citation", "Chinese prose", "Chinese with names", "Python", "C", "emoji")


@pytest.mark.parametrize(("kind", "real", "text"), COUNTED, ids=[kind for kind, _, _ in COUNTED])
def test_a_count_is_never_under_the_real_one(kind: str, real: int, text: str) -> None:
    assert count_tokens(text) >= real
    if kind in TIGHT:
        assert count_tokens(text) <= 1.5 * real


@given(st.text(ALPHABET, max_size=200), st.text(ALPHABET, max_size=200))
@example("Organization", "q_Alo")
@settings(max_examples=300, deadline=None)
def test_counts_of_parts_cover_the_whole(left: str, right: str) -> None:
    # A cut may move how digits fall into threes or letters into pairs, and within a word leave two that are known to be
    # common: `android` and `husband` are a token each, what they make together is seven.
    grace = 6 if left[-1:].isalpha() and right[:1].isalpha() else 1
    assert count_tokens(left + right) <= count_tokens(left) + count_tokens(right) + grace


@pytest.mark.parametrize("name", ["shen-ruolan-diary.md", "eelgrass-survey.md"])
def test_cutting_real_text_anywhere_never_saves_tokens(name: str) -> None:
    (path,) = SAMPLE.rglob(name)
    text = path.read_text("utf-8")
    whole = count_tokens(text)
    for size in (7, 50, 333):
        assert sum(count_tokens(text[at : at + size]) for at in range(0, len(text), size)) >= whole > 300
