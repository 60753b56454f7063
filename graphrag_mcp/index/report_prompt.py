"""What a model or an agent is shown of a topic for its report: numbered lines in tables, within a budget.

The lines are the summaries of the topic's documents; where these have none, its entities and
relationships. Where they do not all fit, the reports on the parts of the topic come first. The order
comes from what the lines say, so the same topic gives the same prompt in every build."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from string import Template

from graphrag_mcp.index.report_content import EdgeRow, EntityRow, Topic
from graphrag_mcp.index.report_extractive import Report
from graphrag_mcp.llm import prompts
from graphrag_mcp.packing.citations import replace_references
from graphrag_mcp.packing.references import referenced_ids
from graphrag_mcp.settings import Settings
from graphrag_mcp.text.terms import content_id, terms
from graphrag_mcp.text.tokens import count_tokens

COLUMNS = {
    "Reports": "id,title,content",
    "Sources": "id,document,date,summary",
    "Entities": "id,entity,type,description",
    "Relationships": "id,source,target,description,weight",
}
AROUND = 80  # tokens of the heads of all tables and of the last line
_TAG = re.compile(r"<(?=/\s*context)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ReportPrompt:
    """How reports are asked for. Topics of fewer than `min_size` entities, or of fewer than `min_units`
    text units or summaries, are not worth a call (`Writing.wanted`). `levels`: only those of so many levels
    from the top are asked for; 0 for all."""

    template: Template
    tokens: int  # of the lines shown; the instructions come on top
    language: str
    min_size: int
    min_units: int
    levels: int = 0

    @property
    def fingerprint(self) -> str:
        numbers = self.tokens, self.min_size, self.min_units, self.levels
        return content_id("report", self.template.template, self.language, *map(str, numbers))

    @property
    def own(self) -> str:
        """A digest of a template of one's own and of the language; "" for the shipped one without a
        language, so that reports stay where a release changes its wording."""
        text = self.template.template
        text = "" if text == prompts.load("report").template else text
        return content_id("topic", text, self.language) if text or self.language else ""


def prompt_from(settings: Settings, corpus_folder: Path) -> ReportPrompt:
    return ReportPrompt(
        prompts.load("report", corpus_folder),
        settings.report_tokens,
        settings.output_language,
        settings.report_min_size,
        settings.report_min_units,
    )


# ---- lines ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ref:
    """What a numbered line stands for, as content ids."""

    entities: tuple[str, ...] = ()
    relationships: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """One row of a table. `when`: lines of a table are shown in its order, and else in that of their worth."""

    table: str
    fields: tuple[str, ...]
    ref: Ref
    when: str = ""

    @property
    def body(self) -> str:
        return ",".join(map(_quoted, self.fields))


@lru_cache(maxsize=1 << 15)
def _quoted(value: str) -> str:
    """A value on one line, in quotes where it holds a comma or quote; it ends no tag."""
    flat = _TAG.sub("<\\\\", " ".join(value.split())).replace("[Data:", "(Data:")
    return '"' + flat.replace('"', '""') + '"' if "," in flat or '"' in flat else flat


@lru_cache(maxsize=1 << 15)
def _tokens(body: str) -> int:
    """Counted once: a line is also one of the topic above, and of the one above that."""
    return count_tokens(f"1000,{body}\n")


def lines_of(topic: Topic) -> list[Line]:
    """All lines of a topic, best first."""
    return _of_summaries(topic) if topic.summaries else _of_rows(topic)


def _of_summaries(topic: Topic) -> list[Line]:
    """Those first that hold most of the characteristic terms, but of each part one before the second
    of any."""
    value = {
        text.identity: math.fsum(topic.worth.get(term, 0.0) for term in {*terms(text.text)}) for text in topic.summaries
    }
    part_of = {text.identity: at for at, part in enumerate(topic.parts) for text in part}
    best = sorted(topic.summaries, key=lambda text: (-round(value[text.identity], 9), text.identity))
    found, before = list[tuple[int, Line]](), Counter[int]()
    for text in best:
        part = part_of.get(text.identity, -1)
        ref, when = Ref(sources=(text.unit,)), text.date or "9999"
        line = Line("Sources", (text.title, text.date, text.text), ref, f"{when} {text.title}")
        found.append((before[part], line))
        before[part] += 1
    return [line for _, line in sorted(found, key=lambda pair: pair[0])]


def _of_rows(topic: Topic) -> list[Line]:
    """The strongest relationships, each behind the two entities that it joins; then the other entities."""
    weight = topic.weight
    order = sorted(topic.entities, key=lambda row: (-weight[row.id], row.title, row.id))
    title = {row.id: row.title for row in order}
    left = {row.id: Line("Entities", (row.title, row.type, _said(row)), Ref(entities=(row.id,))) for row in order}

    def strength(edge: EdgeRow) -> tuple[float, float, str, str, str]:
        ends = edge.source_id, edge.target_id
        heavy = sum(weight[end] for end in ends)
        return -edge.weight, -heavy, title[ends[0]], title[ends[1]], edge.id

    lines: list[Line] = []
    for edge in sorted(topic.edges, key=strength):
        ends = edge.source_id, edge.target_id
        lines += [left.pop(end) for end in ends if end in left]
        fields = title[ends[0]], title[ends[1]], _said(edge), f"{edge.weight:g}"
        lines.append(Line("Relationships", fields, Ref(relationships=(edge.id,))))
    return [*lines, *left.values()]


def _said(row: EntityRow | EdgeRow) -> str:
    return row.description or min((text for _, text in row.evidence), default="")


def _of_report(report: Report) -> Line:
    """The summary of a report on a part, which leads to what it rests on."""
    ids = referenced_ids(report.summary)
    ref = Ref(*(tuple(ids.get(kind, ())) for kind in ("Entities", "Relationships", "Sources")))
    if ref == Ref():
        ref = Ref(tuple(report.entity_ids[:5]), (), tuple(report.text_unit_ids[:5]))
    summary = replace_references(report.summary, lambda _: "").strip()
    return Line("Reports", (report.title, summary), ref)


# ---- the prompt -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Prompted:
    """What goes between the context tags, per table what its rows 1, 2, ... stand for, and the words of
    all rows; None where these are not known any more."""

    text: str
    numbering: Mapping[str, Sequence[Ref]]
    words: str | None


def prompted(topic: Topic, parts: Sequence[Report] | None, tokens: int) -> Prompted | None:
    """The lines of a topic within so many tokens; where not all fit, behind the written reports on its
    `parts`. None where these are needed and are None: they are yet to be written."""
    lines = lines_of(topic)
    kept = _fitting(lines, tokens)
    if len(kept) < len(lines):
        if parts is None:
            return None
        # a report without a model quotes the lines again
        written = [report for report in parts if report.method != "extractive"]
        written.sort(key=lambda report: (-report.rank, report.title, report.id))
        lines = [*map(_of_report, written), *lines]
        kept = _fitting(lines, tokens)
    tables = {name: [line for line in kept if line.table == name] for name in COLUMNS}
    shown: list[str] = []
    for name, rows in tables.items():
        rows.sort(key=lambda line: line.when)
        if rows:
            numbered = (f"{number},{line.body}" for number, line in enumerate(rows, 1))
            shown.append("\n".join([name, COLUMNS[name], *numbered]))
    if left_out := len(lines) - len(kept):
        shown.append(f"({left_out} further rows, of less weight, are not shown.)")
    refs = {name: [line.ref for line in rows] for name, rows in tables.items() if rows}
    words = "\n".join(field for line in kept for field in line.fields)
    return Prompted("\n\n".join(shown), refs, words)


def _fitting(lines: Iterable[Line], tokens: int) -> list[Line]:
    """The lines that fit, one after another; a long one is left out, so that others have room."""
    kept, left = list[Line](), tokens - AROUND
    for line in lines:
        price = _tokens(line.body)
        if price <= left:
            left -= price
            kept.append(line)
        elif left < 12:  # tokens of a short line
            break
    return kept
