"""Rules for `ScriptedChat` that answer every prompt of this package from the prompt's own text: for tests, campaigns and
benchmarks of whole runs with a model."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from graphrag_mcp.llm.protocols import Message
from graphrag_mcp.text.prose import sentences
from tests.support.scripted import Rule

_BLOCK = re.compile(r"<(text|context|reports?|answers?|points|data)>\n(.*?)\n?</\1>", re.DOTALL)
_NUMBERED_TEXT = re.compile(r'<text id="(\d+)">\n(.*?)\n</text>', re.DOTALL)
_CAPITAL = r"[A-ZÀ-ÖØ-Þ][\w’'-]*"
_NAME = re.compile(rf"{_CAPITAL}(?: (?:(?:of|the|de|von|van) ){{0,2}}{_CAPITAL}){{0,4}}")
_QUOTED = re.compile(r"[《「『“]([^《》「」『』“”\n]{2,30})[》」』”]")
_NO_NAMES = frozenset(
    "The A An And But Or So He She It They We You I In On At As By For From His Her Its Their This That These Those "
    "There Then When While After Before Since If Of To With Both Also However Although During Between Under Over Who "
    "What Which Where How Why Is Was Were Are Not No Nobody Nothing Yes One Two Three Other Some Many Most All Each "
    "January February March April May June July August September October November December "
    "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
)
_GROUPS = {"t": "Sources", "e": "Entities", "r": "Relationships", "c": "Reports"}
_ROW_ID = re.compile(r"^(?:- |#+ )?\[?([terc]\d+)(?=[\]|.])", re.MULTILINE)
_NUMBERED = re.compile(r"^(\d+)[|,]([^|,\n]*)", re.MULTILINE)
_TABLE = re.compile(r"^[#\- ]*(Reports|Entities|Relationships|Claims|Sources)[ -]*$", re.MULTILINE)
# What stands before a row's text: `[t1] file.md:3 `, `1|title|5|`, `1,entity,type,`; and lines that
# only name columns.
_ROW_HEAD = re.compile(
    r"^(?:(?:- )?\[?[terc]\d+[\]|.] ?(?:\S{1,200}:\d+ )?|\d+\|(?:[^|\n]{0,200}\|){1,2}|\d+,(?:[^,\n]{0,200},){1,2})",
    re.MULTILINE,
)
_HEADING = re.compile(r"(?:id|number)[,|]|#|(?:Reports|Entities|Relationships|Claims|Sources)$")
_LONG_WORD = re.compile(r"[^\W\d_]{4,}")
_ORGANIZATION = tuple("University Company Council Institute Authority Society Agency Cooperative".split())


def demonstration() -> list[Rule]:
    """The rules, the most particular first; the last one answers anything."""
    return [
        _rule(_extraction, '"entities"', '"relationships"'),
        _rule(_summaries, '"summaries"', '"labels"'),
        _rule(_report, '"findings"', '"rating_explanation"'),
        _rule(_drift_first, '"follow_up_queries"', "first answer to the question"),
        _rule(_drift_step, '"follow_up_queries"'),
        _rule(_profile, '"persona"', '"entity_types"'),
        _rule(lambda prompt: _prose(prompt.text, prompt.question)),
    ]


@dataclass(frozen=True, slots=True)
class _Prompt:
    """A conversation, the `text` between its tags (the last message where there are none) and the
    question that is asked about it."""

    messages: Sequence[Message]
    text: str
    question: str


def _rule(answer: Callable[[_Prompt], str | dict[str, Any]], *marks: str) -> Rule:
    """A rule for prompts whose own words hold all marks. What stands between tags is data and is
    not looked at. An answer that is no text is said as JSON."""

    def rule(messages: Sequence[Message], schema: Mapping[str, Any] | None) -> str | None:
        words = "\n".join(_BLOCK.sub(r"<\1>", m.content) for m in messages if m.role != "assistant")
        if not all(mark in words for mark in marks):
            return None
        last = messages[-1].content
        blocks = [match[2] for message in messages for match in _BLOCK.finditer(message.content)]
        asked = re.findall(r"^(?:Question|Small question): (.+)$", last, re.MULTILINE)
        question = asked[-1] if asked else last[-200:]
        said = answer(_Prompt(messages, "\n".join(blocks) if blocks else last, question))
        return said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)

    return rule


# ---- what stands in a prompt ------------------------------------------------------------------------


def _sentences(text: str) -> list[str]:
    """Whole sentences on one line each, without heads of rows and what the record formats use as
    signs."""
    prose = "\n\n".join(_ROW_HEAD.sub("", line) for line in text.splitlines() if not _HEADING.match(line))
    prose = prose if _ROW_HEAD.search(text) else text
    plain = (re.sub(r'[<>|"]|##', " ", prose[start:end]) for start, end in sentences(prose))
    plain = (" ".join(one.split()) for one in plain)
    return [one for one in plain if len(one) >= 20] or ["Nothing more is said."]


def _names(sentence: str) -> list[str]:
    names = []
    for name in (match[0] for match in _NAME.finditer(sentence)):
        words = name.split()
        while words and words[0] in _NO_NAMES:
            words.pop(0)
        starts = len(words) == 1 and sentence.startswith(words[0])
        if words and len(words[0]) > 1 and not (starts and words[0].endswith(("ed", "ing", "ly"))):
            names.append(" ".join(words))
    return list(dict.fromkeys([*names, *_QUOTED.findall(sentence)]))


def _most_named(text: str, count: int) -> list[str]:
    """Names by how often they stand there, then by where they come first."""
    return [name for name, _ in Counter(n for one in _sentences(text) for n in _names(one)).most_common(count)]


def _references(text: str, count: int = 3) -> str:
    """The first ids of the rows, as references are written; "" where the rows have none."""
    ids = list(islice(dict.fromkeys(_ROW_ID.findall(text)), count))
    groups = {group: [i for i in ids if i[0] == letter] for letter, group in _GROUPS.items()}
    if not ids:
        tables = [(match.start(), match[1]) for match in _TABLE.finditer(text)]
        for row in islice(_NUMBERED.finditer(text), count):
            table = next((name for start, name in reversed(tables) if start < row.start()), "Reports")
            groups.setdefault(table, []).append(row[1])
    said = "; ".join(f"{group} ({', '.join(ids)})" for group, ids in groups.items() if ids)
    return f" [Data: {said}]" if said else ""


def _shared(text: str, question: str, least: int, most: int) -> int:
    """A score: the share of the question's words that the text holds."""
    asked = set(_LONG_WORD.findall(question.casefold()))
    held = sum(word in text.casefold() for word in asked)
    return least + round((most - least) * held / max(1, len(asked)))


# ---- answers, one for each form ---------------------------------------------------------------------


def _read(asked: _Prompt) -> tuple[str, dict[str, str], dict[tuple[str, str], list[str]]]:
    """The question about a text, its names with their first sentence, and the pairs of a sentence."""
    prompt = asked.messages[-1].content
    text = ([""] + [match[2] for match in _BLOCK.finditer(prompt) if match[1] == "text"])[-1]
    first: dict[str, str] = {}
    pairs: dict[tuple[str, str], list[str]] = {}
    for sentence in _sentences(text):
        names = _names(sentence)[:6]
        for name in names:
            first.setdefault(name, sentence)
        for other in names[1:]:
            pairs.setdefault((names[0], other), []).append(sentence)
    return prompt, first, pairs


def _again(asked: _Prompt) -> bool:
    """Is it a second look? Nothing was missed."""
    return any(message.role == "assistant" for message in asked.messages)


def _extraction(asked: _Prompt) -> dict[str, Any]:
    if _again(asked):
        return {"entities": [], "relationships": []}
    prompt, first, pairs = _read(asked)
    listed = re.search(r"^Types: (.+)$", prompt, re.MULTILINE)
    types = [part.strip() for part in listed[1].split(",")] if listed else []
    entities = [{"name": name, "type": _type(name, types), "description": said} for name, said in first.items()]
    relationships = []
    for (a, b), said in pairs.items():
        subject = sorted(_LONG_WORD.findall(said[0].casefold()), key=len)[-2:] or ["mention"]
        record = {"source": a, "target": b, "description": said[0], "keywords": sorted(subject)}
        relationships.append(record | {"strength": min(10, 3 + 2 * len(said))})
    return {"entities": entities, "relationships": relationships}


def _summaries(asked: _Prompt) -> dict[str, Any]:
    """Of each text its first sentence, its most frequent names, and long words as labels."""
    found = []
    for number, text in _NUMBERED_TEXT.findall(asked.messages[-1].content):
        words = Counter(_LONG_WORD.findall(text.casefold()))
        names = [{"name": name, "type": "other"} for name in _most_named(text, 4)]
        labels = [word for word, _ in words.most_common(4)]
        said = next((one for one in _sentences(text) if "#" not in one), text[:80])
        found.append({"id": int(number), "text": said, "labels": labels, "names": names})
    return {"summaries": found}


def _type(name: str, types: Sequence[str]) -> str:
    likely = "person" if name.count(" ") == 1 else "location"
    if name.endswith(_ORGANIZATION):
        likely = "organization"
    if likely in types:
        return likely
    return types[0] if types and "," not in types[0] else "other"


def _report(prompt: _Prompt) -> dict[str, Any]:
    rows = [match[2].strip() for match in _NUMBERED.finditer(prompt.text) if match[2].strip()]
    names = (list(dict.fromkeys(rows)) or _most_named(prompt.text, 3) or ["a community"])[:3]
    said, cited = _sentences(prompt.text), _references(prompt.text)
    return {
        "title": " and ".join(names)[:120],
        "summary": " ".join(said[:2]) + cited,
        "rating": min(9.0, 2.0 + len(rows) / 4),
        "rating_explanation": "The more rows a community has, the higher it is rated here.",
        "findings": [{"summary": one[:120], "explanation": one + cited} for one in said[:5]],
    }


def _drift_first(prompt: _Prompt) -> dict[str, Any]:
    return _drift(prompt.text, prompt.question, 5)


def _drift_step(prompt: _Prompt) -> dict[str, Any]:
    return _drift(prompt.text, prompt.question)


def _drift(text: str, question: str, follow_ups: int = 2) -> dict[str, Any]:
    names = _most_named(text, follow_ups)
    return {
        "answer": _prose(text, question),
        "score": _shared(text, question, 20, 90),
        "follow_up_queries": [f"What else is known about {name}?" for name in names],
    }


def _profile(prompt: _Prompt) -> dict[str, Any]:
    """Tuning: what fits any corpus."""
    return {
        "domain": "documents of all kinds",
        "language": "English",
        "persona": "You are an analyst of documents. You look for who and what is connected, and how.",
        "role": "You are an analyst who reports to readers that know nothing of the documents.",
        "rating_criteria": "how much the group matters to the rest of the documents",
        "entity_types": "person organization location event concept method artifact".split(),
    }


def _prose(text: str, question: str, count: int = 3) -> str:
    """The sentences that share most words with the question, in their order, citing the first rows."""
    said = _sentences(text)
    best = sorted(range(len(said)), key=lambda at: (-_shared(said[at], question, 0, 100), at))[:count]
    return " ".join(said[at] for at in sorted(best)) + _references(text)
