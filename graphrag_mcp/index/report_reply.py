"""A model's reply as the draft of a community report. The complete part of a reply that was cut off
is kept."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from graphrag_mcp.llm import replies
from graphrag_mcp.llm.asker import BadReply
from graphrag_mcp.llm.replies import cut, refused, words
from graphrag_mcp.packing.citations import replace_references
from graphrag_mcp.text.terms import sentences

LONGEST_REPLY = 400_000  # characters; a report has some 15,000
LONGEST_TITLE = 160
LONGEST_TEXT = 4_000
MOST_FINDINGS = 15
MOST_WORDS = 2_400  # 2,000 are asked for


@dataclass(frozen=True, slots=True)
class Draft:
    """`rating` is 0-10, None where the reply has none; `findings` are pairs of a heading and what
    it says."""

    title: str
    summary: str
    rating: float | None = None
    rating_explanation: str = ""
    findings: tuple[tuple[str, str], ...] = ()


# What models call the same thing, lower case, with `_` for blanks; the first that is there counts.
_TITLE = "title report_title name 标题 名称".split()
_SUMMARY = "summary executive_summary overview 摘要 总结 概述".split()
_RATING = "rating score rank impact_severity_rating 评分 评级".split()
_WHY = "rating_explanation explanation reason 评分说明 评分理由".split()
_FINDINGS = "findings key_findings insights 发现 主要发现".split()
_HEADING = "summary title heading headline 摘要 标题".split()
_EXPLANATION = "explanation description details text 解释 说明 描述".split()
_IN_WORDS = {"high": 8.0, "medium": 5.0, "low": 2.0, "高": 8.0, "中": 5.0, "低": 2.0}
_ECHO = re.compile(r"</?context>|^id,(?:entity,type|source,target|title,content)", re.MULTILINE)
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u2028\u2029\ufffe\uffff\ud800-\udfff]")


def parse_report(reply: str) -> Draft:
    """The draft that a reply holds: JSON in any state of repair."""
    if not reply.strip():
        raise BadReply("the reply was empty")
    if len(reply) > LONGEST_REPLY:
        raise BadReply("the reply was far too long")
    draft = None
    with suppress(ValueError):
        draft = next(filter(None, map(_draft, _objects(replies.read(reply)))), None)
    if draft is None:
        if refused(replies.without_thoughts(reply).strip()):
            raise BadReply("the model refused")
        if _ECHO.search(reply):
            raise BadReply("the reply was the prompt again")
        raise BadReply("no report with a title and a summary in the reply")
    if refused(draft.summary):
        raise BadReply("the model refused")
    return draft


def _objects(value: Any, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """Objects from the outside in: some wrap the report in another one, in a list or in a call."""
    if isinstance(value, Mapping):
        yield value
        value = list(value.values())
    if isinstance(value, list) and depth < 3:
        for one in value[:20]:
            yield from _objects(one, depth + 1)


def _draft(found: Mapping[str, Any]) -> Draft | None:
    title = _line(_of(found, _TITLE), LONGEST_TITLE)
    summary = _text(_of(found, _SUMMARY))
    if not (any(map(str.isalnum, title)) and any(map(str.isalnum, summary))):
        return None
    rating, why = _of(found, _RATING), _of(found, _WHY)
    if isinstance(rating, Mapping):  # {"score": 7, "explanation": ...}
        rating, why = _of(rating, [*_RATING, "value"]), why or _of(rating, _WHY)
    why = _line(why, 600)
    pairs = _capped(
        _findings(_of(found, _FINDINGS)), MOST_WORDS - words(f"{title} {summary} {why}")
    )
    return Draft(title, summary, _number(rating), why, tuple(pairs))


def _of(found: Mapping[str, Any], keys: Iterable[str]) -> Any:
    folded = {str(key).casefold().strip().replace(" ", "_"): value for key, value in found.items()}
    return next((folded[key] for key in keys if folded.get(key) not in (None, "")), None)


def _findings(value: Any) -> Iterator[tuple[str, str]]:
    """From a list of objects or of texts, or an object whose keys are the headings; also where JSON
    was put into a string, as models do that were taught to call tools."""
    if isinstance(value, str):
        with suppress(ValueError):
            value = replies.read(value)
    if isinstance(value, Mapping):
        value = [
            one if isinstance(one, Mapping) else {"summary": key, "explanation": one}
            for key, one in value.items()
        ]
    for one in value if isinstance(value, list) else [value]:
        heading, text = "", _text(one)
        if isinstance(one, Mapping):
            heading, text = _line(_of(one, _HEADING), 300), _text(_of(one, _EXPLANATION))
            if not text and len(heading) >= 60:
                text = heading  # all in one field; a short one was cut off before its text came
        if text:
            yield heading or _headline(text), text


def _number(value: Any) -> float | None:
    """0-10 out of what stands for a rating: 7, "7/10", "7,5", 75 (of 100), "high"."""
    if isinstance(value, bool) or value is None:
        return None
    said = unicodedata.normalize("NFKC", str(value)).strip().casefold()[:200]
    match = re.search(
        r"(-?\d{1,6}(?:[.,]\d{1,6})?)(?:\s*(%)|\s*(?:/|out of|of)\s*(\d{1,4}))?", said
    )
    if match is None:
        return next((number for word, number in _IN_WORDS.items() if word in said), None)
    number, whole = float(match[1].replace(",", ".")), float(match[3] or 0)
    whole = whole or (100.0 if match[2] or 10 < number <= 100 else 10.0)
    return round(min(10.0, max(0.0, number * 10 / whole)), 1)


def _line(value: Any, limit: int) -> str:
    flat = " ".join(_plain(value).split()).strip("#*_ ")
    return flat if len(flat) <= limit else flat[: limit - 1].rstrip() + "…"


def _text(value: Any) -> str:
    """Paragraphs without headings of their own."""
    if isinstance(value, list):
        value = "\n\n".join(one for one in value if isinstance(one, str))
    lines = (re.sub(r"^\s*#{1,6}\s+", "", line).rstrip() for line in _plain(value).splitlines())
    return cut(re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip(), LONGEST_TEXT)


def _plain(value: Any) -> str:
    return _CONTROL.sub(" ", value.replace("\r\n", "\n")) if isinstance(value, str) else ""


def _headline(text: str) -> str:
    """The first sentence, without references, as a heading."""
    plain = " ".join(replace_references(text[:600], lambda _: "").split()).strip("#*_ ")
    spans = sentences(plain)
    first = plain[: spans[0][1]] if spans else plain
    return first if len(first) <= 120 else first[:119].rstrip() + "…"


def _capped(pairs: Iterable[tuple[str, str]], left: int) -> list[tuple[str, str]]:
    """At most so many findings and words; what is over is cut at the end of a sentence."""
    kept: list[tuple[str, str]] = []
    for heading, text in pairs:
        size = words(heading) + words(text)
        if len(kept) == MOST_FINDINGS or left < 40:
            break
        if size > left:
            text = cut(text, max(1, len(text) * left // size))
        left -= size
        kept.append((heading, text))
    return kept
