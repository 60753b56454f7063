"""`python docs/pictures.py`: draws the three pictures of concepts.md into docs/pictures/.

Takes no arguments. All three show one paragraph of the sample; names and sentences are looked up in it, so that each
span is a real one. A test compares the files with `pages()` and the graph with an index of the sample.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from html import escape
from pathlib import Path

HERE = Path(__file__).resolve().parent
DOCUMENT = "calloway-notebooks.md"
BEGINS = "By 1957 Calloway"  # of the paragraph
# What the index finds in the paragraph: how a name is written there -> its entity.
NAMES = {
    "Calloway": "Ines Calloway",
    "Northern Hydrographic Office": "Northern Hydrographic Office",
    "Narrows": "Narrows",
    "Leonard Haig": "Leonard Haig",
    "Haig sailed": "Leonard Haig",
    "Meridian Tern": "Meridian Tern",
}
PAIRS = (
    ("Ines Calloway", "Northern Hydrographic Office", "By 1957"),
    ("Northern Hydrographic Office", "Narrows", "By 1957"),
    ("Leonard Haig", "Meridian Tern", "Eleven years"),
)
STYLE = """
  .page { fill: #ffffff } .box { fill: #f6f8fa; stroke: #57606a } .name { fill: #ddf4ff; stroke: #0969da }
  .topic { fill: #fbefff; stroke: #8250df } .mark { fill: #fff8c5; stroke: #bf8700 } .line { fill: none; stroke: #57606a }
  text { fill: #1f2328 } .small { fill: #57606a; font-size: 12px } .head { font-weight: 600 } .mono { font-family: monospace }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117 } .box { fill: #161b22; stroke: #8b949e } .name { fill: #0c2d6b; stroke: #58a6ff }
    .topic { fill: #3c1e70; stroke: #bc8cff } .mark { fill: #4b3600; stroke: #d29922 } .line { stroke: #8b949e }
    text { fill: #f0f6fc } .small { fill: #9ea7b3 }
  }
"""  # fmt: skip
LETTER = 7.5  # width of a letter of the paragraph, in pixels; `textLength` holds every browser to it


def paragraph() -> tuple[str, int]:
    """The paragraph, and where it begins in its document, in characters."""
    text = (HERE / "sample" / DOCUMENT).read_text("utf-8")
    start = text.index(BEGINS)
    return text[start : text.index("\n", start)], start


def sentence(begins: str) -> tuple[str, int, int]:
    """A sentence of the paragraph and its span in the document."""
    text, start = paragraph()
    at = text.index(begins)
    said = re.match(r".*?[.?!](?= [A-Z]|$)", text[at:])
    assert said
    return said[0], start + at, start + at + len(said[0])


def _svg(height: int, title: str, body: Iterator[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 900 {height}" role="img" aria-labelledby="t"'
    head += ' font-family="system-ui, sans-serif" font-size="14">'
    tip = '<marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    tip += '<path class="line" d="M0 0 L8 4 L0 8"/></marker>'
    page = f'<rect class="page" width="900" height="{height}"/>'
    lines = [head, f'<title id="t">{escape(title)}</title>', f"<style>{STYLE}</style>", f"<defs>{tip}</defs>", page]
    return "\n".join([*lines, *body, "</svg>"]) + "\n"


def _text(x: float, y: float, said: str, kind: str = "") -> str:
    return f'<text x="{x}" y="{y}" class="{kind}">{escape(said)}</text>'


def _box(x: float, y: float, width: float, lines: list[str], kind: str = "box") -> Iterator[str]:
    """A rectangle with lines of text, the first as its heading."""
    yield f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{18 * len(lines) + 12}" rx="6"/>'
    for number, line in enumerate(lines):
        yield _text(x + 10, y + 20 + 18 * number, line, "small" if number else "head")


def _arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    return f'<path class="line" marker-end="url(#a)" d="M{x} {y} L{to_x} {to_y}"/>'


def _graph() -> Iterator[str]:
    text, start = paragraph()
    yield _text(20, 28, f"Text unit t1 of {DOCUMENT}, characters {start} to {start + len(text)}", "head")
    lines, at = textwrap.wrap(text, 54), 0
    for number, line in enumerate(lines):
        y, at = 58 + 26 * number, text.index(line, at)
        for name in NAMES:
            shown = name.removesuffix(" sailed")
            for found in re.finditer(re.escape(name), line):
                x = 20 + LETTER * found.start()
                yield f'<rect class="mark" x="{x:.1f}" y="{y - 15}" width="{LETTER * len(shown):.1f}" height="20" rx="3"/>'
        length = f'textLength="{LETTER * len(line):.1f}" lengthAdjust="spacingAndGlyphs"'
        yield f'<text x="20" y="{y}" class="mono" {length}>{escape(line)}</text>'
    places = {
        "Ines Calloway": (560, 40), "Northern Hydrographic Office": (560, 130), "Narrows": (560, 220),
        "Leonard Haig": (560, 290), "Meridian Tern": (560, 380),
    }  # fmt: skip
    for first, second, begins in PAIRS:
        (x, y), (_, below) = places[first], places[second]
        _, begin, end = sentence(begins)
        yield f'<path class="line" d="M{x + 60} {y + 30} L{x + 60} {below}"/>'
        yield _text(x + 68, (y + 36 + below) / 2, f"{begin} to {end}", "small")
    for entity, (x, y) in places.items():
        width = 24 + 7.2 * len(entity)
        yield f'<rect class="name" x="{x}" y="{y}" width="{width:.0f}" height="30" rx="15"/>'
        yield _text(x + 12, y + 20, entity)
    yield _text(20, 330, "Marked: names, with their characters. On the right: entities, and relationships", "small")
    yield _text(20, 348, "with the characters of the sentence that names both.", "small")


def _topics() -> Iterator[str]:
    yield _text(20, 28, "Text units that share terms form a community", "head")
    circles = {(110, 150, 85): 6, (300, 120, 70): 5, (290, 280, 60): 3, (120, 320, 65): 4}
    for (x, y, radius), count in circles.items():
        yield f'<circle class="topic" cx="{x}" cy="{y}" r="{radius}"/>'
        for number in range(count):
            dot_x, dot_y = x - 30 + 30 * (number % 3), y - 12 + 32 * (number // 3)
            ours = (x, number) == (300, 0)
            kind = "mark" if ours else "box"
            yield f'<circle class="{kind}" cx="{dot_x}" cy="{dot_y}" r="13"/>'
            yield _text(dot_x - 6, dot_y + 4, "t1", "small") if ours else ""
    yield _text(20, 412, "t1 holds the paragraph. A community may hold smaller ones: a tree, level 0 on top.", "small")
    said, _, _ = sentence("By 1957")
    quoted = textwrap.wrap(f'"{said}" [t1]', 58)
    report = [
        "Community report", "Title: names and terms that stand for the topic",
        "Share of the documents, first and last date", "Names: its entities",
        "Findings: sentences, each with the id of its source, as",
    ]  # fmt: skip
    yield _arrow(372, 120, 445, 120)
    yield from _box(450, 90, 430, [*report, *quoted])
    yield _text(450, 290, "With a model, or an agent as the model, the report is written", "small")
    yield _text(450, 308, "in its words, and every reference is checked.", "small")


def _searches() -> Iterator[str]:
    columns = (
        ("Local search", "a question on names or facts", ["Who answered Calloway?"], [
            ["Names and words", "Calloway -> entity Ines Calloway", "its relationships and text units"],
            ["Passages, ranked", "t1.2: The reply, from a Dr Leonard", "Haig, is pasted inside the cover."],
            ["Result", "passages with file and lines,", "best first, within a token budget"]]),
        ("Global search", "a question on the whole", ["What is this about?"], [
            ["Community reports", "all of a level, or those that", "belong to the question"],
            ["Statements of the reports", "each with its sources; with a", "model rated (map) and joined (reduce)"],
            ["Result", "topics with share, dates, names,", "sentences and their ids"]]),
        ("DRIFT search", "a question with many parts", ["Why was the sill not charted?"], [
            ["Primer: the best reports", "give a first answer and", "first follow-up questions"],
            ["Follow-up: a local search", "answer, score, new questions;", "repeated while it is worth it"],
            ["Result", "a tree of questions with answers,", "ranked and cited, kept on disk"]]),
    )  # fmt: skip
    for number, (title, use, question, steps) in enumerate(columns):
        x = 20 + 295 * number
        yield _text(x, 28, title, "head")
        yield _text(x, 46, use, "small")
        yield from _box(x, 60, 270, question, "mark")
        for row, (lines, kind) in enumerate(zip(steps, ("name", "box", "topic"), strict=True)):
            y = 120 + 96 * row
            yield _arrow(x + 135, y - 30, x + 135, y - 3)
            yield from _box(x, y, 270, lines, kind)


def pages() -> dict[str, str]:
    """Name of each file and its text."""
    return {
        "graph.svg": _svg(425, "From a paragraph to entities and relationships", _graph()),
        "communities.svg": _svg(430, "From text units to communities and their reports", _topics()),
        "searches.svg": _svg(400, "Local, global and DRIFT search", _searches()),
    }


if __name__ == "__main__":
    for name, text in pages().items():
        (HERE / "pictures" / name).write_text(text, "utf-8", newline="\n")
