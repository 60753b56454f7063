"""A set of dated texts that no rule was made for: how many expressions are resolved right."""

from __future__ import annotations

import tomllib
from datetime import date, timedelta
from pathlib import Path

from graphrag_mcp.text.temporal import When, anchors, expressions

TEXTS = tomllib.loads(Path(__file__).with_name("dated_texts.toml").read_text("utf-8"))["text"]


def _read() -> tuple[list[tuple[str, When | None, str, str]], list[str]]:
    """(words, what was found there, first and last right day) of each annotation; and the words of
    what was found where nothing is annotated, but the head of the text."""
    read, more = [], []
    for one in TEXTS:
        text = one["text"]
        found = expressions(text, anchors(text, one["date"]))
        used: set[When] = set()
        for said in one["says"]:
            words, _, days = said.rpartition(" = ")
            at = text.index(words)
            here = [when for when in found if when.char_start < at + len(words) and when.char_end > at]
            used.update(here)
            read.append((words, here[0] if here else None, days[:10], days[-10:]))
        head = text.index("\n") if "\n\n" in text else 0
        more += [text[when.char_start : when.char_end] for when in found if when not in used and when.char_start >= head]
    return read, more


def test_most_expressions_of_texts_kept_apart_are_resolved_right() -> None:
    """76 of 125 are exact within a day, 1 is wrong."""
    read, more = _read()
    exact, overlapping, wrong = [], [], []
    for words, when, *right in read:
        if when is None:
            continue
        start, end, first, last = map(date.fromisoformat, (when.start, when.end, *right))
        if max(abs(start - first), abs(end - last)) <= timedelta(days=1):
            exact.append(words)
        if start <= last and first <= end:
            overlapping.append(words)
        else:
            wrong.append(words)
    assert len(read) == 125
    assert len(exact) >= 74 and len(overlapping) >= 82
    assert len(wrong) <= 2 and more == []  # no date without its words
