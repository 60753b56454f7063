"""Evaluation: how often an index finds the answers to given questions. No model is asked.

- recall@k: share of a question's gold documents among the first k distinct documents cited.
- evidence: share of a question's evidence strings in the text of a result of at most `tokens`
  tokens, compared by letters and digits after NFKC and lower case.
- answer: share of questions of which one answer string stands in that text.
- wall and CPU milliseconds of the call, p50 and p95.

A file of questions is JSON Lines, or a list in JSON. A question has `question` and any of `gold`,
`evidence` and `answer`, each a string or a list of strings; `id` and `type` may be there.
"""

from __future__ import annotations

import math
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from statistics import median
from typing import Any

from graphrag_mcp.errors import BadInput, GraphRAGError
from graphrag_mcp.store import stored
from graphrag_mcp.text.terms import counted, normalise_name
from graphrag_mcp.text.uris import file_and_key
from graphrag_mcp.types import Citation, SearchResult

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
    """The questions of a file. BadInput for none, or an unreadable one."""
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
    return found


def _rows(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    """(place, row) of every row of JSON Lines, or of a list in JSON."""
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
    for number, row in enumerate(whole if isinstance(whole, list) else [whole], 1):
        yield f"{path.name} question {number}", row


def _question(row: Any, place: str) -> Question:
    record = row if isinstance(row, dict) else {}
    text = str(record.get("question") or "").strip()
    if not text:
        raise BadInput(f"{place} has no question", _ADVICE)
    gold, evidence, answer = (_strings(record.get(field) or "") for field in ("gold", "evidence", "answer"))
    id, kind = str(record.get("id") or text[:80]), str(record.get("type") or "")
    return Question(id, text, gold, evidence, answer, kind)


def _strings(value: Any) -> tuple[str, ...]:
    """One string, or those of a list."""
    listed: Sequence[Any] = value if isinstance(value, list) else [value]
    plain = (part for part in listed if isinstance(part, str | int | float))
    found = [str(part).strip() for part in plain if not isinstance(part, bool)]
    return tuple(dict.fromkeys(text for text in found if text))


KS = (5, 20)
TOKENS = 2_000  # of the result in which evidence and answers are looked for
WIDE = 20_000  # of the result whose documents are counted
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
        values["answer"] = float(any(plain(answer) and plain(answer) in body for answer in question.answers))
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


def table_lines(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    every = (head, ["---", *(["---:"] * (len(head) - 1))], *rows)
    return [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in every]
