"""Text units and passages: exact spans, exact tiling, sizes, and boundaries that stay where they were."""

from __future__ import annotations

import random
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_mcp.index.chunk import ChunkParams, chunk
from graphrag_mcp.text.tokens import count_tokens
from tests.support.workload import ends

WORDS = (
    "harbour lighthouse ledger storm keeper signal captain morning chart engine cargo winter brass lantern oil northern "
    "company island letter winch repaired measured carried found before after under between slowly never twice again"
).split()
ZH = "灯塔的看守人每天早晨记录天气和过往船只。风暴来临之前，他会把油灯擦亮，并检查北面的窗户。公司在冬天寄来新的账簿。"
MARKDOWN = """# Harbour manual

The harbour has two lights. The northern one was built in 1897, by Dr. A. Brun & Co., and is lit by oil.

## Lights

| name | height | colour |
|---|---|---|
| North | 21 m | white |
| South | 14 m | red 🔴 |

- Clean the lens daily.
- Write the time into the ledger.

### Code of the signal

```python
def flash(times: int) -> list[str]:
    # one entry per flash
    return ["on", "off"] * times
```

灯塔的看守人每天早晨记录天气。家庭 👨‍👩‍👧‍👦 住在岛上。Café, naïve, ångström. नमस्ते दुनिया।
"""


def prose(characters: int, seed: int) -> str:
    """Made-up English in paragraphs, no two alike."""
    random_ = random.Random(seed)
    paragraphs, size = [], 0
    while size < characters:
        sentences = [
            " ".join(random_.choice(WORDS) for _ in range(random_.randint(5, 24))).capitalize() + "."
            for _ in range(random_.randint(1, 9))
        ]
        paragraphs.append(" ".join(sentences))
        size += len(paragraphs[-1]) + 2
    return "\n\n".join(paragraphs)


def chinese(characters: int, seed: int) -> str:
    random_ = random.Random(seed)
    letters = [ch for ch in ZH if ch not in "，。"]
    return "".join(
        "".join(random_.choice(letters) for _ in range(random_.randint(6, 40))) + random_.choice("。。，！") for _ in range(characters // 23)
    )


def texts(text: str, **params: object) -> list[str]:
    return [text[unit.span.start : unit.span.end] for unit in chunk(text, ChunkParams(**params))]


def check(text: str, params: ChunkParams) -> None:
    """Everything that holds for every text and size."""
    units = chunk(text, params)
    assert [unit.index for unit in units] == list(range(len(units)))
    covered: list[tuple[int, int]] = []
    for unit in units:
        body = text[unit.span.start : unit.span.end]
        assert body and body == body.strip()
        assert unit.n_tokens == count_tokens(body)
        assert unit.n_tokens <= params.size
        assert unit.span.line_start == text.count("\n", 0, unit.span.start) + 1
        assert unit.span.line_end == text.count("\n", 0, unit.span.end - 1) + 1
        assert unit.passages and unit.passages[-1].end == unit.span.end and unit.passages[0].start >= unit.span.start
        for passage in unit.passages:
            piece = text[passage.start : passage.end]
            assert piece and piece == piece.strip() and count_tokens(piece) <= params.passage_size
            covered.append((passage.start, passage.end))
    at = 0
    for start, end in covered:
        assert start >= at, "passages overlap"
        assert not text[at:start].strip(), "text lost between passages"
        at = end
    assert not text[at:].strip()


REAL = {"english": prose(40_000, 1), "chinese": chinese(20_000, 2), "markdown": MARKDOWN * 30, "code": Path(__file__).read_text("utf-8")}


@pytest.mark.parametrize("kind", REAL)
@pytest.mark.parametrize("size", [(1200, 100, 450), (200, 20, 100), (50, 0, 50)])
def test_spans_are_exact_and_passages_hold_every_character_once(kind: str, size: tuple[int, int, int]) -> None:
    check(REAL[kind], ChunkParams(*size))


fragments = st.sampled_from(
    ["word ", "a. ", "句子。", "字", "\n", "\n\n", "# Title\n", "| a | b |\n", "- item\n", "👩🏽‍🚀", "👨‍👩‍👧‍👦", "e\u0301", "\t", "\u3000", "\u2028",
     "supercalifragilistic", "🇳🇴🇸🇪", "```\n", "नि", "x" * 90, "0.5 ", "한국어 ", "\x1c"]  # fmt: skip
)


@given(st.lists(fragments, max_size=250), st.sampled_from([(1200, 100, 450), (120, 30, 60), (50, 10, 20)]))
@settings(max_examples=120, deadline=None)
def test_any_text_is_tiled_exactly(parts: list[str], size: tuple[int, int, int]) -> None:
    check("".join(parts), ChunkParams(*size))


def test_units_of_a_long_text_are_near_the_size_and_end_at_sentences() -> None:
    body = prose(300_000, 4)
    units = chunk(body, ChunkParams())
    mean = sum(unit.n_tokens for unit in units) / len(units)
    passages = [span for unit in units for span in unit.passages]
    mean_passage = sum(count_tokens(body[span.start : span.end]) for span in passages) / len(passages)
    assert 700 <= mean <= 1000 and 260 <= mean_passage <= 400
    assert all(body[unit.span.end - 1] == "." for unit in units)
    assert all(body[unit.span.start].isupper() for unit in units)


def test_the_overlap_is_the_end_of_the_unit_before_and_no_longer_than_asked() -> None:
    body = prose(60_000, 5)
    units = chunk(body, ChunkParams())
    overlaps = [(before, unit) for before, unit in zip(units, units[1:], strict=False) if unit.span.start < before.span.end]
    assert len(overlaps) > len(units) * 0.8
    for before, unit in overlaps:
        assert unit.passages[0].start >= before.span.end
        assert count_tokens(body[unit.span.start : before.span.end]) <= 100
    assert all(unit.span.start == unit.passages[0].start for unit in chunk(body, ChunkParams(overlap=0)))


def test_units_prefer_headings_and_a_heading_stays_with_its_section() -> None:
    sections = [f"## Section {i}\n\n" + prose(2_400, 100 + i) for i in range(40)]
    body = "\n\n".join(sections)
    units = chunk(body, ChunkParams(overlap=0))
    at_heading = sum(body.startswith("## ", unit.span.start) for unit in units)
    assert at_heading > len(units) * 0.8
    assert not any(body[: span.end].rsplit("\n", 1)[-1].startswith("## ") for unit in units for span in unit.passages)


@pytest.mark.parametrize("make", [prose, chinese])
def test_an_insertion_at_the_start_changes_at_most_three_units(make) -> None:
    """Over 360 insertions into real English and Chinese: one unit 267 times, two 84 times, three 9 times, never more;
    in the middle of a text, where both sides may move, never more than 5."""
    base = make(200_000 if make is prose else 60_000, 6)
    before = set(texts(base))
    assert len(before) > 40
    for seed in range(8):
        inserted = make([30, 200, 400, 700][seed % 4] // (1 if make is prose else 2), 50 + seed)
        assert len(set(texts(inserted + "\n\n" + base)) - before) <= 3
        middle = base.index(". " if make is prose else "。", len(base) // 2) + (2 if make is prose else 1)
        assert len(set(texts(base[:middle] + inserted + " " + base[middle:])) - before) <= 5


def test_long_lines_and_endless_repetition_are_linear() -> None:
    with ends():
        for body in ("x" * 200_000, "word " * 100_000, "字" * 100_000, "A! " * 50_000, "\n" * 500_000 + "end", "e" + "\u0301" * 40_000):
            check_units = chunk(body, ChunkParams())
            assert all(unit.n_tokens <= 1200 for unit in check_units)


def test_memory_stays_under_ten_times_the_text() -> None:
    body = prose(400_000, 9)
    tracemalloc.start()
    chunk(body, ChunkParams())
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * len(body)


@given(st.text(st.characters(exclude_characters="\r"), max_size=400))
@settings(max_examples=80, deadline=None)
def test_arbitrary_unicode_is_tiled_exactly(text: str) -> None:
    check(text, ChunkParams(50, 10, 30))


def test_no_character_is_split() -> None:
    family, accents, flags = "👨‍👩‍👧‍👦", "e\u0301\u0323", "🇳🇴🇸🇪"
    for unit in (family, accents, "👩🏽‍🚀", "각"):
        body = unit * 3_000
        for piece in texts(body, size=60, overlap=10, passage_size=30):
            assert piece.replace(unit, "") == ""
    for piece in texts((flags * 15 + " ") * 200, size=60, overlap=0, passage_size=30):
        assert all(len(word) % 2 == 0 for word in piece.split())
