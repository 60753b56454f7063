"""A model's reply as the draft of a community report, in whatever form it came. The complete part
of a reply that was cut off is kept."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from graphrag_mcp.llm import replies
from graphrag_mcp.llm.asker import BadReply
from graphrag_mcp.llm.replies import cut, refused, words
from graphrag_mcp.packing.citations import replace_references
from graphrag_mcp.text.terms import sentences

LONGEST_REPLY = 400_000  # characters; a report has some 15,000
LONGEST_TITLE = 160
LONGEST_SUMMARY = 4_000
LONGEST_EXPLANATION = 4_000
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


def _fold(word: str) -> str:
    return _known_fold(word) if len(word) < 64 else _fold_anew(word)


def _fold_anew(word: str) -> str:
    plain = unicodedata.normalize("NFKD", word.casefold())
    return "".join(ch for ch in plain if ch.isalnum())


_known_fold = lru_cache(maxsize=1 << 10)(_fold_anew)  # the same few keys in every reply


def _keys(words: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(_fold, words.split())))


_TITLE = _keys(
    "title report_title name titel titre título titolo heading 标题 標題 名称 タイトル 題名 제목 заголовок"
)
_SUMMARY = _keys(
    "summary executive_summary report_summary abstract overview zusammenfassung résumé resumen resumo riassunto "
    "synopsis 摘要 总结 總結 概述 概要 要約 サマリー 요약"
)
_RATING = _keys(
    "rating score rank impact impact_severity impact_severity_rating severity importance_rating report_rating "
    "bewertung note calificación puntuación évaluation 评分 評分 评级 評価 評点 평점"
)
_WHY = _keys(
    "rating_explanation explanation_of_rating rating_reason rating_rationale rating_justification reason rationale "
    "bewertungserklärung begründung explication_de_la_note explicación_de_la_calificación 评分说明 评分解释 评分理由 "
    "評分說明 評価理由 評価の説明"
)
_FINDINGS = _keys(
    "findings key_findings detailed_findings insights key_insights erkenntnisse befunde conclusions constats résultats "
    "hallazgos conclusiones 发现 發現 主要发现 要点 关键发现 洞察 所見 発見 知見 주요_발견"
)
_HEADING = _keys(
    "summary title heading headline finding insight name short_summary zusammenfassung titel titre résumé resumen "
    "título 摘要 标题 標題 总结 要約 タイトル 見出し"
)
_EXPLANATION = _keys(
    "explanation description details detail text content body explanations elaboration erklärung beschreibung "
    "explication explicación descripción 解释 解釋 说明 說明 描述 详情 内容 説明 詳細"
)
_WORDED = {"critical": 9.5, "very high": 9.0, "high": 8.0, "medium": 5.0, "moderate": 5.0}
_WORDED |= {"low": 2.0, "very low": 1.0, "none": 0.0, "高": 8.0, "中": 5.0, "低": 2.0}
_HTML = re.compile(r"\s*(?:<\?xml|<!doctype|<html|<head|<body|<script|<div)\b", re.IGNORECASE)
_ECHO = re.compile(
    r"</?(?:context|descriptions)>|^id,(?:entity,type|source,target|title,content)", re.MULTILINE
)
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u2028\u2029\ufffe\uffff\ud800-\udfff]")


def parse_report(reply: str) -> Draft:
    """The draft that a reply holds: JSON in any state of repair, or else Markdown."""
    if not reply.strip():
        raise BadReply("the reply was empty")
    if len(reply) > LONGEST_REPLY:
        raise BadReply("the reply was far too long")
    try:
        draft = _from_json(replies.read(reply))
    except ValueError:
        draft = None
    if draft is None:
        said = replies.without_thoughts(reply).strip()
        if not said:
            raise BadReply("the reply was nothing but thoughts")
        if _HTML.match(said):
            raise BadReply("the reply was a web page")
        if refused(said):
            raise BadReply("the model refused")
        if _ECHO.search(said):
            raise BadReply("the reply was the prompt again")
        draft = _from_markdown(said)
    if draft is None:
        raise BadReply("no report with a title and a summary in the reply")
    if refused(draft.summary):
        raise BadReply("the model refused")
    return draft


# ---- JSON ---------------------------------------------------------------------------------------


def _from_json(value: Any) -> Draft | None:
    for found in _dicts(value, 0):
        title = _line(_of(found, _TITLE), LONGEST_TITLE)
        summary = _text(_of(found, _SUMMARY), LONGEST_SUMMARY)
        if not (any(map(str.isalnum, title)) and any(map(str.isalnum, summary))):
            continue
        rating, why = _of(found, _RATING), _of(found, _WHY)
        if isinstance(rating, Mapping):  # {"score": 7, "explanation": ...}
            rating, why = (
                _of(rating, (*_RATING, "value")),
                why or _of(rating, (*_WHY, *_EXPLANATION)),
            )
        pairs = _findings(_of(found, _FINDINGS))
        return _capped(title, summary, _number(rating), _line(why, 600), pairs)
    return None


def _dicts(value: Any, depth: int) -> Iterable[Mapping[str, Any]]:
    """Objects from the outside in: some wrap the report in another one, in a list or in a call."""
    if isinstance(value, Mapping):
        yield value
        value = list(value.values())
    if isinstance(value, list) and depth < 3:
        for one in value[:20]:
            yield from _dicts(one, depth + 1)


def _of(found: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    folded = {_fold(str(key)): value for key, value in reversed(found.items())}
    return next((folded[key] for key in keys if folded.get(key) not in (None, "")), None)


def _findings(value: Any) -> list[tuple[str, str]]:
    """From a list of objects or of texts, or an object whose keys are the headings; also where JSON
    was put into a string, as models do that were taught to call tools."""
    if isinstance(value, str) and re.match(r"\s*[\[{]\s*[\"'{\[]", value):
        with suppress(ValueError):
            value = replies.read(value)
    if isinstance(value, str):
        return _listed(value)
    if isinstance(value, Mapping):
        if _of(value, _EXPLANATION) is not None and isinstance(_of(value, _HEADING), str):
            value = [value]  # a single one without its list
        else:
            value = [
                one if isinstance(one, Mapping) else {"summary": key, "explanation": one}
                for key, one in value.items()
            ]
    found: list[tuple[str, str]] = []
    for one in value if isinstance(value, list) else ():
        if isinstance(one, Mapping):
            heading, said = (
                _line(_of(one, _HEADING), 300),
                _text(_of(one, _EXPLANATION), LONGEST_EXPLANATION),
            )
            if not said and len(heading) >= 60:
                said = heading  # all in one field; a short one was cut off before its text came
            if said:
                found.append((heading if _said(heading) else _headline(said), said))
        elif isinstance(one, str) and _said(one):
            said = _text(one, LONGEST_EXPLANATION)
            found.append((_headline(said), said))
    return found


def _said(text: str) -> bool:
    """Is it more than a number? Headings `1` and `finding_2` are keys, not words."""
    return re.fullmatch(r"\W*(?:finding|insight|发现)?\W*\d*\W*", text, re.IGNORECASE) is None


def _number(value: Any) -> float | None:
    """0-10 out of what stands for a rating: 7, "7/10", "7,5", 75 (of 100), "high"."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return _clamped(float(value), 0.0)
    said = unicodedata.normalize("NFKC", str(value)).strip().casefold()[:200]
    match = re.search(
        r"(-?\d{1,6}(?:[.,]\d{1,6})?)(?:\s*(%)|\s*(?:/|out of|of|von|sur|de)\s*(\d{1,4}))?", said
    )
    if match is None:
        return next(
            (_WORDED[word] for word in sorted(_WORDED, key=len, reverse=True) if word in said), None
        )
    return _clamped(float(match[1].replace(",", ".")), 100.0 if match[2] else float(match[3] or 0))


def _clamped(number: float, whole: float) -> float | None:
    if number != number:
        return None
    if whole > 0:
        number = number * 10 / whole
    elif 10 < number <= 100:
        number /= 10
    return round(min(10.0, max(0.0, number)), 1)


# ---- Markdown -----------------------------------------------------------------------------------

_HEAD = re.compile(
    r"^[ \t]{0,3}(?:#{1,6}[ \t]+(.{1,300}?)[ \t#]*|\*\*(.{1,200}?):?\*\*:?[ \t]*)$", re.MULTILINE
)
_LABEL = re.compile(
    r"^[ \t]*(?:[-*][ \t]+)?(?:\*\*)?([^\W\d_][^\n:：*]{1,40})(?:\*\*)?[:：](?:\*\*)?[ \t]*(\S.*)$",
    re.MULTILINE,
)
_ITEM = re.compile(r"^[ \t]*(?:[-*•]|\d{1,2}[.)])[ \t]+", re.MULTILINE)


def _from_markdown(text: str) -> Draft | None:
    """A title as the first heading, paragraphs as the summary, a finding under each further
    heading."""
    heads = list(_HEAD.finditer(text))
    if not heads or not any(match[1] for match in heads[:1]):
        return None
    title, summary, rating, why = "", "", None, ""
    pairs: list[tuple[str, str]] = []
    ends = [match.start() for match in heads[1:]] + [len(text)]
    for match, end in zip(heads, ends, strict=True):
        head, body = (match[1] or match[2]).strip(" *_"), text[match.end() : end].strip()
        label, _, rest = re.sub("：", ":", head).partition(":")
        key = _fold(label)
        if not title:
            title = (
                rest.strip() if key in _TITLE and rest.strip() else body if key in _TITLE else head
            )
            summary = "" if key in _TITLE and not rest.strip() else body
        elif key in _SUMMARY:
            summary = body
        elif key in _RATING:
            rating, why = _number(rest or body), why or (body if len(body) > 12 else "")
        elif key in _WHY:
            why = body or rest
        elif key in _FINDINGS:
            pairs += _listed(body)
        elif body:
            pairs.append((head, body))
    for label, value in _LABEL.findall(summary):  # `Rating: 7` on a line of its own
        rating = _number(value) if rating is None and _fold(label) in _RATING else rating
        why = value if not why and _fold(label) in _WHY else why
    summary = "\n".join(line for line in summary.splitlines() if not _labelled(line))
    title, summary = _line(title, LONGEST_TITLE), _text(summary, LONGEST_SUMMARY)
    if not title or len(summary) < 20:
        return None
    return _capped(
        title,
        summary,
        rating,
        _line(why, 600),
        [(_line(head, 300), _text(body, LONGEST_EXPLANATION)) for head, body in pairs],
    )


def _labelled(line: str) -> bool:
    match = _LABEL.match(line)
    return match is not None and _fold(match[1]) in (*_RATING, *_WHY)


def _listed(text: str) -> list[tuple[str, str]]:
    """A finding for each item of a list, or for each paragraph where there is no list."""
    parts = _ITEM.split(text) if _ITEM.search(text) else re.split(r"\n\s*\n", text)
    said = [_text(part, LONGEST_EXPLANATION) for part in parts]
    return [(_headline(one), one) for one in said if len(one) >= 20]


# ---- wording ------------------------------------------------------------------------------------


def _line(value: Any, limit: int) -> str:
    flat = " ".join(_plain(value).split()).strip("#*_ ")
    return flat if len(flat) <= limit else flat[: limit - 1].rstrip() + "…"


def _text(value: Any, limit: int) -> str:
    """Paragraphs without headings of their own."""
    if isinstance(value, list):
        value = "\n\n".join(one for one in value if isinstance(one, str))
    lines = (re.sub(r"^\s*#{1,6}\s+", "", line).rstrip() for line in _plain(value).splitlines())
    return cut(re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip(), limit)


def _plain(value: Any) -> str:
    return _CONTROL.sub(" ", value.replace("\r\n", "\n")) if isinstance(value, str) else ""


def _headline(text: str) -> str:
    """The first sentence, without references, as a heading."""
    plain = " ".join(replace_references(text[:600], lambda _: "").split()).strip("#*_ ")
    spans = sentences(plain)
    first = plain[: spans[0][1]] if spans else plain
    return first if len(first) <= 120 else first[:119].rstrip() + "…"


def _capped(
    title: str, summary: str, rating: float | None, why: str, pairs: Iterable[tuple[str, str]]
) -> Draft:
    """At most so many findings and words; what is over is cut at the end of a sentence."""
    left = MOST_WORDS - words(title) - words(summary) - words(why)
    kept: list[tuple[str, str]] = []
    for heading, said in pairs:
        size = words(heading) + words(said)
        if len(kept) == MOST_FINDINGS or left < 40 or not said:
            break
        if size > left:
            said = cut(said, max(1, len(said) * left // size))
        left -= size
        kept.append((heading, said))
    return Draft(title, summary, rating, why, tuple(kept))
