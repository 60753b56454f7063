"""Facts in time: what relative expressions of chats mean (LoCoMo), and whether both sides of an
update are found and ordered (LongMemEval).

    python benchmarks/time.py --locomo locomo10.json
    python benchmarks/time.py --longmemeval longmemeval_oracle.json [--sessions N]

LoCoMo: the questions of category 2 whose answer is a date. The days that the evidence turns speak
of, with the day of their session as the anchor, are compared with the answer: `exact` when both
ends are within a day of one of them, `overlapping` when they share a day; `session` is the day of
the session alone. And all sessions of all talks as one corpus: which share of the sessions with
evidence are among the first ten, by the category of the question. And digests: the share of the annotated events of
which the digest of their session, in 140 and in 420 characters, holds two fifths of the words.
LongMemEval: all sessions of all questions as one corpus, documents by rank.
Neither data set belongs into the repository.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections import defaultdict
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query import digests, filters, local
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.text.temporal import Anchor, expressions
from graphrag_mcp.text.terms import terms
from graphrag_mcp.types import IndexRequest, InlineText

Interval = tuple[date, date]
PREFIX = re.compile(
    r"(?:the |last )?(few days|week|weekend|monday|tuesday|wednesday|thursday|friday|saturday|sunday) (before|of) ",
    re.IGNORECASE,
)
SEASON = re.compile(r"(spring|summer|autumn|fall|winter)(?: of)? (\d{4})", re.IGNORECASE)


def answered(answer: str) -> Interval | None:
    """The interval that an annotated answer means; None when it is no date."""
    if re.fullmatch(r"(?:in )?(?:19|20)\d\d\.?", answer.strip(), re.IGNORECASE):
        year = int(re.sub(r"\D", "", answer))
        return date(year, 1, 1), date(year, 12, 31)
    text = re.sub(r"(?<=[a-z])[.,]+ ?(?=\d{4})|(?<=\d)(?=[A-Z])", " ", answer)
    days = expressions(text, language="en")
    if season := SEASON.search(text):
        anchor = Anchor(0, date(int(season[2]), 1, 1))
        days = expressions(f"this {season[1]}", [anchor], "en")
    if not days:
        return None
    start, end = date.fromisoformat(days[0].start), date.fromisoformat(days[0].end)
    prefix = PREFIX.search(text)
    if prefix is None or start != end:
        return start, end
    unit, relation = prefix[1].lower(), prefix[2].lower()
    if unit in ("week", "few days"):
        return (
            (start - timedelta(days=7), start - timedelta(days=1))
            if relation == "before"
            else (start - timedelta(days=3), start + timedelta(days=3))
        )
    if relation == "of":
        return start - timedelta(days=1), start + timedelta(days=1)
    (found,) = expressions(f"last {unit}", [Anchor(0, start)], "en")
    return date.fromisoformat(found.start), date.fromisoformat(found.end)


CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open domain", 4: "single-hop", 5: "adversarial"}


def locomo_sessions(path: Path) -> None:
    texts, questions = [], []
    events: dict[str, list[set[str]]] = {}  # the words of each, without the person's name
    for number, sample in enumerate(json.loads(path.read_text("utf-8"))):
        talk = sample["conversation"]
        for name, of in sample["event_summary"].items():
            events[f"{number}-D{name.rpartition('_')[2]}"] = [
                set(terms(event)) - set(terms(who)) for who, all_ in of.items() if who != "date" for event in all_
            ]
        for name in filter(re.compile(r"session_\d+").fullmatch, talk):
            id = f"{number}-D{name[8:]}"
            said = "\n\n".join(f"{turn['speaker']}: {turn['text']}" for turn in talk[name])
            day = _session_day(talk[f"{name}_date_time"]).isoformat()
            texts.append(InlineText(said, id, id, {"date": day}))
        for one in sample["qa"]:
            sessions = {f"{number}-{turn.partition(':')[0]}" for turn in one["evidence"]}
            questions.append((CATEGORIES[one["category"]], one["question"], sessions))
    known = {one.id for one in texts}
    recall: dict[str, list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "corpora" / "sessions"
        index_documents(folder, IndexRequest(texts=tuple(texts)), Settings(home=Path(home)))
        snapshot = open_snapshot(folder)
        for kind, question, wanted in questions:
            if wanted and wanted <= known:
                top = _first_sessions(snapshot, question)
                recall[kind].append(len(wanted & top.keys()) / len(wanted))
        for room in (digests.SENTENCE, 420):
            _digests(snapshot, texts, events, room)
    _printed("LoCoMo", len(texts), recall)


def _digests(snapshot: Any, texts: list[InlineText], events: dict[str, list[set[str]]], room: int) -> None:
    told = []
    for one in texts:
        held = set(terms(digests.digest(snapshot, one.text, "", room)))
        told += [len(words & held) >= 0.4 * len(words) for words in events.get(one.id, ()) if words]
    print(f"digests of {room} characters tell {100 * sum(told) / len(told):.1f} % of {len(told)} events")


def locomo(path: Path) -> None:
    total, exact, overlap, session_exact, session_overlap = 0, 0, 0, 0, 0
    for sample in json.loads(path.read_text("utf-8")):
        talk = sample["conversation"]
        turns = {
            turn["dia_id"]: (turn["text"], _session_day(talk[f"{name}_date_time"]))
            for name in talk
            if re.fullmatch(r"session_\d+", name)
            for turn in talk[name]
        }
        for question in sample["qa"]:
            gold = answered(str(question.get("answer", ""))) if question["category"] == 2 else None
            evidence = [turns[id] for id in question["evidence"] if id in turns]
            if gold is None or not evidence:
                continue
            total += 1
            sessions = [(day, day) for _, day in evidence]
            found = [one for text, day in evidence for one in _spoken(text, day)] or sessions
            exact += any(_near(one, gold) for one in found)
            overlap += any(_share(one, gold) for one in found)
            session_exact += any(_near(one, gold) for one in sessions)
            session_overlap += any(_share(one, gold) for one in sessions)
    print(f"LoCoMo: {total} questions whose answer is a date")
    print(f"resolved: exact {exact / total:.1%}, overlapping {overlap / total:.1%}")
    print(f"session:  exact {session_exact / total:.1%}, overlapping {session_overlap / total:.1%}")


def _session_day(said: str) -> date:
    return date.fromisoformat(expressions(said, language="en")[0].start)


def _spoken(text: str, day: date) -> list[Interval]:
    found = expressions(text, [Anchor(0, day)], "en")
    return [(date.fromisoformat(one.start), date.fromisoformat(one.end)) for one in found]


def _near(one: Interval, gold: Interval) -> bool:
    return all(abs((a - b).days) <= 1 for a, b in zip(one, gold, strict=True))


def _share(one: Interval, gold: Interval) -> bool:
    return one[0] <= gold[1] and gold[0] <= one[1]


def longmemeval(path: Path, most: int) -> None:
    questions: list[dict[str, Any]] = json.loads(path.read_text("utf-8"))
    texts: dict[str, InlineText] = {}
    days: dict[str, str] = {}
    for one in questions:
        for id, said, turns in zip(
            one["haystack_session_ids"], one["haystack_dates"], one["haystack_sessions"], strict=True
        ):
            if id in texts or (most and len(texts) >= most):
                continue
            days[id] = said
            text = "\n\n".join(f"{turn['role']}: {turn['content']}" for turn in turns)
            texts[id] = InlineText(text, id, id, {"date": said})
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "corpora" / "sessions"
        index_documents(folder, IndexRequest(texts=tuple(texts.values())), Settings(home=Path(home)))
        _recall(open_snapshot(folder), questions, days)


def _recall(snapshot: Any, questions: list[dict[str, Any]], days: dict[str, str]) -> None:
    recall: dict[str, list[float]] = defaultdict(list)
    ordered = []
    for one in questions:
        wanted = set(one["answer_session_ids"])
        if not wanted <= days.keys():
            continue
        top = _first_sessions(snapshot, one["question"])
        recall[one["question_type"]].append(len(wanted & top.keys()) / len(wanted))
        if one["question_type"] == "knowledge-update":
            right = sorted(wanted, key=days.__getitem__)
            shown = [top.get(id, "") for id in right]
            ordered.append(all(shown) and all(a < b for a, b in zip(shown, shown[1:], strict=False)))
    _printed("LongMemEval", len(days), recall)
    print(f"updates with all sessions found and ordered: {sum(ordered) / max(len(ordered), 1):.1%}")


def _first_sessions(snapshot: Any, question: str) -> dict[str, str]:
    """The first ten sessions for a question, each with its moment."""
    facts = filters.documents(snapshot)
    found = local.find(snapshot, question).passages
    ranked = list(dict.fromkeys(hit.document_id for hit in found))[:10]
    return {facts[id].uri.removeprefix("text:"): facts[id].moment for id in ranked}


def _printed(name: str, sessions: int, recall: dict[str, list[float]]) -> None:
    every = [value for values in recall.values() for value in values]
    print(f"{name}: {sessions} sessions, {len(every)} questions")
    print(f"recall@10 of sessions: {sum(every) / max(len(every), 1):.1%}")
    for kind, values in sorted(recall.items()):
        print(f"  {kind}: {sum(values) / len(values):.1%} of {len(values)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--locomo", type=Path)
    parser.add_argument("--longmemeval", type=Path)
    parser.add_argument("--sessions", type=int, default=0, help="only so many; 0: all")
    options = parser.parse_args()
    if options.locomo:
        locomo(options.locomo)
        locomo_sessions(options.locomo)
    if options.longmemeval:
        longmemeval(options.longmemeval, options.sessions)


if __name__ == "__main__":
    main()
