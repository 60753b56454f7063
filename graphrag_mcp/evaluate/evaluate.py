"""Evaluation: how often an index finds the answers to given questions, and whether another index
does better. No model is asked.

- recall@k: share of a question's gold documents among the first k distinct documents cited.
- evidence: share of a question's evidence strings in the text of a result of at most `tokens`
  tokens, compared by letters and digits after NFKC and lower case.
- answer: share of questions of which one answer string stands in that text.
- wall and CPU milliseconds of the call, p50 and p95.

A file of questions is JSON Lines, JSON or CSV, or a folder with `corpus.jsonl` and `queries.jsonl`.
A question has `question` and any of `gold`, `evidence` and `answer`; `id` and `type` may be there.
"""

from __future__ import annotations

import csv
import math
import random
import re
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from statistics import median
from typing import Any

from graphrag_mcp.errors import BadInput, GraphRAGError
from graphrag_mcp.store import stored
from graphrag_mcp.text.citing import file_and_key
from graphrag_mcp.text.terms import counted, normalise_name
from graphrag_mcp.types import Citation, SearchResult

NAMES = ("corpus.jsonl", "queries.jsonl")
_ADVICE = 'Give JSON Lines such as {"question": "Who was Ada?", "gold": ["ada.md"], "answer": ["a mathematician"]}'


@dataclass(frozen=True, slots=True)
class Question:
    """`gold`: documents; `evidence`: strings that all belong to it; `answers`: strings of which one
    suffices."""

    id: str
    text: str
    gold: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    type: str = ""


def read_questions(path: Path) -> tuple[Question, ...]:
    """The questions of a file or evaluation folder. BadInput for none, or an unreadable one."""
    if path.is_dir():
        path = path / NAMES[1]
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} cannot be read as a question file ({error})", _ADVICE) from error
    found = tuple(_question(row, place) for place, row in _rows(path, text))
    if not found:
        raise BadInput(f"{path} holds no questions", _ADVICE)
    if not any(question.gold or question.evidence or question.answers for question in found):
        what = f"no question of {path} says what should be found"
        raise BadInput(what, "Add gold, evidence or answer to them")
    seen: Counter[str] = Counter()
    unique = []
    for question in found:  # two questions of one id would be compared with each other
        seen[question.id] += 1
        unique.append(
            question
            if seen[question.id] == 1
            else replace(question, id=f"{question.id}#{seen[question.id]}")
        )
    return tuple(unique)


def _rows(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    """(place, row) of every row, by the kind of the file."""
    if delimiter := {".csv": ",", ".tsv": "\t"}.get(path.suffix.lower()):
        reader = csv.DictReader(text.splitlines(), delimiter=delimiter)
        for row in reader:
            yield f"{path.name} line {reader.line_num}", row
        return
    try:
        whole = stored.value(text, nan=True)
    except ValueError:
        for number, line in enumerate(text.split("\n"), 1):
            place = f"{path.name} line {number}"
            try:
                if line.strip():
                    yield place, stored.value(line, nan=True)
            except ValueError as error:
                raise BadInput(f"{place} is not JSON ({error})", _ADVICE) from error
        return
    if isinstance(whole, dict):
        whole = whole.get("questions", [whole])
    for number, row in enumerate(whole if isinstance(whole, list) else [whole], 1):
        yield f"{path.name} question {number}", row


def _question(row: Any, place: str) -> Question:
    record = row if isinstance(row, dict) else {}
    text = str(record.get("question") or "").strip()
    if not text:
        raise BadInput(f"{place} has no question", _ADVICE)
    gold, evidence, answer = (
        _strings(record.get(field) or "") for field in ("gold", "evidence", "answer")
    )
    id, kind = str(record.get("id") or text[:80]), str(record.get("type") or "")
    return Question(id, text, gold, evidence, answer, kind)


def _strings(value: Any) -> tuple[str, ...]:
    """A list, a JSON list in a string, strings with `|` between them, or one string."""
    if isinstance(value, str) and not value.strip().startswith("["):
        value = re.split(r"(?<!\s)\s*\|\s*", value.strip())
    elif isinstance(value, str):
        with suppress(ValueError):
            value = stored.value(value, nan=True)
    listed: Sequence[Any] = value if isinstance(value, list | tuple) else [value]
    plain = (part for part in listed if isinstance(part, str | int | float))
    found = [str(part).strip() for part in plain if not isinstance(part, bool)]
    return tuple(dict.fromkeys(text for text in found if text))


def is_set(path: Path) -> bool:
    return path.is_dir() and all((path / name).is_file() for name in NAMES)


def write_documents(folder: Path, target: Path) -> int:
    """The documents of an evaluation folder as Markdown files, `<id>.md`; how many there are."""
    target.mkdir(parents=True, exist_ok=True)
    count = 0
    for number, line in enumerate((folder / NAMES[0]).read_text("utf-8").split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = stored.value(line, nan=True)
            name, text = str(row["id"]), str(row["text"])
        except (ValueError, KeyError, TypeError) as error:
            what = f"{NAMES[0]} line {number} is no document with id and text"
            advice = 'Give lines such as {"id": "a", "title": "A", "text": "..."}'
            raise BadInput(what, advice) from error
        safe = re.sub(r"[^\w.-]", "_", name)[:120]
        title = f"# {row['title']}\n\n" if row.get("title") else ""
        (target / f"{safe}.md").write_text(title + text, "utf-8")
        count += 1
    return count


KS = (5, 20)
TOKENS = 2_000  # of the result in which evidence and answers are looked for
WIDE = 20_000  # of the result whose documents are counted
RESAMPLES = 2_000
METRICS = (*(f"recall@{k}" for k in KS), "evidence", "answer")
Search = Callable[[str, str, int], SearchResult]  # mode, question, max_tokens


@dataclass(frozen=True, slots=True)
class Asked:
    """One question in one mode: its values by metric (only those it can have), and what it cost."""

    id: str
    values: Mapping[str, float]
    tokens: int
    wall_ms: float
    cpu_ms: float
    state: str
    missing: tuple[str, ...]  # gold documents that were not among the first 20
    error: str = ""


@dataclass(frozen=True, slots=True)
class ModeScores:
    """One mode over all questions. `means` by metric, in percent; `counted`: how many have it."""

    mode: str
    means: Mapping[str, float]
    counted: Mapping[str, int]
    tokens: float
    wall_ms: tuple[float, float]  # p50, p95
    cpu_ms: tuple[float, float]
    not_found: int
    failed: int
    asked: tuple[Asked, ...]


@dataclass(frozen=True, slots=True)
class EvalResult:
    name: str
    questions: int
    tokens: int
    modes: tuple[ModeScores, ...]
    unknown_gold: tuple[str, ...] = ()  # gold documents that no document of the index is


@dataclass(frozen=True, slots=True)
class Difference:
    """One metric in one mode, in percent. `low` and `high`: 95 % of the resampled differences
    (other - one).

    `p`: two-sided sign test over the questions on which they differ."""

    mode: str
    metric: str
    one: float
    other: float
    low: float
    high: float
    better: int
    worse: int
    p: float

    @property
    def sure(self) -> bool:
        """Is the difference more than chance, by both measures?"""
        return self.p < 0.05 and (self.low > 0 or self.high < 0)


def evaluate(
    name: str,
    questions: Sequence[Question],
    modes: Sequence[str],
    search: Search,
    *,
    tokens: int = TOKENS,
    documents: Sequence[Citation] = (),
    progress: Callable[[str, int, int], None] | None = None,
) -> EvalResult:
    """Ask every question in every mode. `documents` of the index, to tell gold that it does not
    hold from gold that was not found."""
    if not questions or not modes:
        raise BadInput("there is nothing to evaluate", "Give questions and at least one mode")
    scores = []
    for mode in modes:
        try:
            # what the first call imports is not its own cost
            search(mode, questions[0].text, tokens)
        except GraphRAGError as error:
            if len(questions) == 1 or isinstance(error, BadInput):
                raise
        asked = []
        for number, question in enumerate(questions, 1):
            asked.append(_asked(question, mode, search, tokens))
            if progress is not None:
                progress(mode, number, len(questions))
        scores.append(_scores(mode, asked))
    gold = dict.fromkeys(document for question in questions for document in question.gold)
    unknown = _missing(gold, documents) if documents else ()
    return EvalResult(name, len(questions), tokens, tuple(scores), unknown)


def _asked(question: Question, mode: str, search: Search, tokens: int) -> Asked:
    began, used = time.perf_counter(), time.process_time()
    try:
        narrow = search(mode, question.text, tokens)
        wall, spent = 1000 * (time.perf_counter() - began), 1000 * (time.process_time() - used)
        wide = search(mode, question.text, WIDE) if question.gold else narrow
    except GraphRAGError as error:
        values = _values(question, "", [])
        return Asked(question.id, values, 0, 0.0, 0.0, "failed", question.gold, str(error))
    found = list({citation.document_id: citation for citation in wide.citations}.values())
    values = _values(question, narrow.text, found)
    times = (round(wall, 3), round(spent, 3))
    missing = _missing(question.gold, found[: KS[-1]])
    return Asked(question.id, values, narrow.tokens, *times, narrow.state, missing)


def _missing(gold: Iterable[str], documents: Sequence[Citation]) -> tuple[str, ...]:
    return tuple(name for name in gold if not any(is_document(name, each) for each in documents))


def _values(question: Question, text: str, found: Sequence[Citation]) -> dict[str, float]:
    """Shares of 1 by metric; a metric that the question says nothing about is missing."""
    values: dict[str, float] = {}
    gold, evidence = question.gold, question.evidence
    for k in KS if gold else ():
        values[f"recall@{k}"] = (len(gold) - len(_missing(gold, found[:k]))) / len(gold)
    body = plain(text) if evidence or question.answers else ""
    if evidence:
        values["evidence"] = sum(plain(quote) in body for quote in evidence) / len(evidence)
    if question.answers:
        values["answer"] = float(
            any(plain(answer) and plain(answer) in body for answer in question.answers)
        )
    return values


def plain(text: str) -> str:
    """Letters and digits alone, after NFKC and lower case."""
    return "".join(ch for ch in unicodedata.normalize("NFKC", text).lower() if ch.isalnum())


def is_document(gold: str, document: Citation) -> bool:
    """Does gold mean this document: by uri or its end, file name, its stem, title, or id?"""
    if gold in (document.uri, document.document_id):
        return True
    path = PurePosixPath(file_and_key(document.uri)[0])
    ends = (f"/{gold}", f":{gold}", f"#{gold}")
    if gold in (path.name, path.stem) or document.uri.endswith(ends):
        return True
    return bool(document.title) and normalise_name(gold) == normalise_name(document.title)


def _scores(mode: str, asked: Sequence[Asked]) -> ModeScores:
    means, counted = {}, {}
    for metric in METRICS:
        values = [question.values[metric] for question in asked if metric in question.values]
        if values:
            means[metric], counted[metric] = round(100 * sum(values) / len(values), 2), len(values)
    went = [question for question in asked if not question.error]
    return ModeScores(
        mode,
        means,
        counted,
        tokens=round(sum(question.tokens for question in went) / max(len(went), 1), 1),
        wall_ms=_quantiles([question.wall_ms for question in went]),
        cpu_ms=_quantiles([question.cpu_ms for question in went]),
        not_found=sum(question.state == "not_found" for question in asked),
        failed=len(asked) - len(went),
        asked=tuple(asked),
    )


def _quantiles(values: Sequence[float]) -> tuple[float, float]:
    if not values:
        return (0.0, 0.0)
    ordered = sorted(values)
    return (round(median(ordered), 2), round(ordered[math.ceil(0.95 * (len(ordered) - 1))], 2))


# ---- two indexes ---------------------------------------------------------------------------------


def compare(result: EvalResult, other: EvalResult, seed: int = 7) -> tuple[Difference, ...]:
    """The other's values less the one's, question by question, by mode and metric of both."""
    found = []
    for mine in result.modes:
        theirs = next((scores for scores in other.modes if scores.mode == mine.mode), None)
        if theirs is None:
            continue
        answers = {asked.id: asked.values for asked in theirs.asked}
        for metric in METRICS:
            pairs = [
                (asked.values[metric], answers[asked.id][metric])
                for asked in mine.asked
                if metric in asked.values and metric in answers.get(asked.id, {})
            ]
            if not pairs:
                continue
            changes = [100 * (b - a) for a, b in pairs]
            better, worse = sum(c > 1e-9 for c in changes), sum(c < -1e-9 for c in changes)
            first, second = (
                round(100 * sum(side) / len(pairs), 2) for side in zip(*pairs, strict=True)
            )
            low, high = interval(changes, seed)
            p = sign_test(better, worse)
            found.append(Difference(mine.mode, metric, first, second, low, high, better, worse, p))
    return tuple(found)


def interval(changes: Sequence[float], seed: int = 7) -> tuple[float, float]:
    """The middle 95 % of the means of resampled changes (bootstrap over questions)."""
    draw, count = random.Random(seed), len(changes)
    means = sorted(sum(draw.choices(changes, k=count)) / count for _ in range(RESAMPLES))
    return round(means[int(0.025 * RESAMPLES)], 2), round(means[int(0.975 * RESAMPLES) - 1], 2)


def sign_test(better: int, worse: int) -> float:
    """Two-sided p of so uneven a split, were better and worse equally likely; 1 for none."""
    count = better + worse
    tail = sum(math.comb(count, at) for at in range(min(better, worse) + 1))
    return round(min(1.0, 2 * tail / 2**count), 4)


# ---- tables --------------------------------------------------------------------------------------


def table(result: EvalResult) -> str:
    """One line per mode, Markdown."""
    metrics = [name for name in METRICS if any(name in scores.means for scores in result.modes)]
    clocks = ("wall p50", "wall p95", "CPU p50", "CPU p95")
    head = ["mode", *metrics, "tokens", *clocks, "nothing found", "failed"]
    rows = []
    for scores in result.modes:
        means = scores.means
        shown = [f"{means[name]:.1f}" if name in means else "" for name in metrics]
        times = [f"{value:.1f}" for value in (*scores.wall_ms, *scores.cpu_ms)]
        counts = (str(scores.not_found), str(scores.failed))
        rows.append([scores.mode, *shown, f"{scores.tokens:.0f}", *times, *counts])
    title = f"# {result.name}: {counted(result.questions, 'questions')}, evidence within {result.tokens:,} tokens"
    lines = [title, "", *table_lines(head, rows)]
    if result.unknown_gold:
        named = ", ".join(name[:60] for name in result.unknown_gold[:5])
        count = counted(len(result.unknown_gold), "gold documents")
        lines += ["", f"In no document of this index: {count} ({named})."]
    errors = dict.fromkeys(question.error for scores in result.modes for question in scores.asked)
    reasons = [f"failed: {error}" for error in errors if error][:3]
    return "\n".join([*lines, *([""] if reasons else []), *reasons])


def comparison_table(name: str, other: str, differences: Sequence[Difference]) -> str:
    """One line per mode and metric, Markdown; a difference that is more than chance is marked."""
    rows = []
    for row in differences:
        change = f"{row.other - row.one:+.1f}" + (" *" if row.sure else "")
        span, counts = f"{row.low:+.1f} to {row.high:+.1f}", f"{row.better}/{row.worse}"
        sides = (f"{row.one:.1f}", f"{row.other:.1f}")
        rows.append([row.mode, row.metric, *sides, change, span, counts, f"{row.p:.3f}"])
    head = ["mode", "metric", name, other, "difference", "95 %", "better/worse", "p"]
    note = "* more than chance: sign test below 0.05 and an interval without 0"
    return "\n".join([f"# {other} against {name}", "", *table_lines(head, rows), "", note])


def table_lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    every = (head, ["---", *(["---:"] * (len(head) - 1))], *rows)
    return [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in every]
