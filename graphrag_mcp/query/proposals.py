"""Questions that the graph itself proposes for a DRIFT walk, when nobody else does.

Takes a snapshot, a `Walk` and an answer; gives questions about neighbours of what the answer cites which the walk has
not come to yet. Each asks one thing in the language of the first question: what a person did, what happened at a
place, with what a model or the texts say of the relationship. Opens no node and writes no event.

Rank: the weight of the relationship / (1 + ln of the neighbour's degree), times how new the neighbour is: 1 where the
walk has not met it, 0.7 where it stands in what was cited but no answer names it, 0.3 where an answer does; one that
a question names is left out. At most two questions begin at the same entity, so that the walk spreads.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from graphrag_mcp.lexicon import LANGUAGES
from graphrag_mcp.names import language
from graphrag_mcp.pack import one_line
from graphrag_mcp.query.answers import cited_aliases
from graphrag_mcp.query.walk import Walk
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text import is_cjk, normalise_name

Row = dict[str, Any]
QUESTIONS = 5
FROM_ONE = 2  # questions that begin at the same entity
HUB = 500  # an entity of more relationships proposes nothing: everything is its neighbour
STARTS, LOOKED_AT = 12, 60  # entities that proposals begin at, neighbours that are read
SHOWN, MENTIONED = 0.7, 0.3  # how new a neighbour is that stands in cited text, or in an answer
FOREIGN = 0.5  # what a name in another script than the question's is worth: often the translation of a known one
# {there}: the neighbour, {here}: what the answer was about, {topic}: what their relationship is about.
FORMS: dict[str, dict[str, str]] = {
    "en": {
        "person": "What did {there} have to do with {here}{topic}?",
        "organization": "What part did {there} play in regard to {here}{topic}?",
        "location": "What happened at {there} that concerns {here}{topic}?",
        "event": "What did {there} change for {here}{topic}?",
        "date": "What happened to {here} in {there}{topic}?",
        "": "How is {there} connected with {here}{topic}?",
        "topic": " (in regard to {})",
        "and": " and ",
    },
    "zh": {
        "person": "{there}为{here}做了什么{topic}？",
        "organization": "{there}对{here}起了什么作用{topic}？",
        "location": "在{there}发生了哪些与{here}有关的事{topic}？",
        "event": "{there}给{here}带来了什么变化{topic}？",
        "date": "{there}时{here}发生了什么{topic}？",
        "": "{there}与{here}有什么关系{topic}？",
        "topic": "（关于{}）",
        "and": "、",
    },
    "": {"": "{there} – {here}{topic}?", "topic": " ({})", "and": ", "},  # any other language: the names ask
}
KINDS = {
    "organisation": "organization", "company": "organization", "institution": "organization", "place": "location",
    "geo": "location", "city": "location", "country": "location", "people": "person", "time": "date", "year": "date",
    "accident": "event", "meeting": "event", "war": "event",
}  # fmt: skip
GRAMMAR = LANGUAGES["en"] | frozenset("since while until during within between about after before".split())
_WORD = re.compile(r"[^\W\d_]{5,40}")


def propose(snapshot: Snapshot, walk: Walk, id: str, answer: str) -> list[str]:
    """At most 5 questions, best first; none at the last depth, and none for an answer that is recorded already."""
    node = walk.graph.nodes[id]
    if node["depth"] >= walk.header["depth"] or (node["status"] == "answered" and node["answer"] == answer):
        return []
    held = _held(snapshot, answer, node["context"])
    rows = snapshot.by_key("entities", sorted(held), "id", ["id", "title", "key", "degree"]).to_pylist()
    rows.sort(key=lambda row: (-held[row["id"]] / (1 + math.log(1 + row["degree"])), row["id"]))
    start = {row["id"]: row for row in rows[:STARTS] if 0 < row["degree"] <= HUB}
    best = {id: one for id, one in _neighbours(snapshot, start).items() if one["here"] in start}
    names = ["id", "title", "key", "type", "degree"]
    there = {row["id"]: row for row in snapshot.by_key("entities", list(best), "id", names).to_pylist()}
    asked = " | ".join(normalise_name(node["query"]) for _, node in walk.graph.nodes(data=True))
    said = " | ".join(normalise_name(text) for text in (answer, *(n["answer"] for _, n in walk.graph.nodes(data=True))))
    worth: dict[str, float] = {}
    for one, row in there.items():
        here = start[best[one]["here"]]
        one_name = _names(row["key"], here["key"]) or _names(here["key"], row["key"])
        if not one_name and not _names(asked, row["key"]):
            new = MENTIONED if _names(said, row["key"]) else SHOWN if one in held else 1.0
            new *= 1.0 if _foreign(row["title"]) == _foreign(walk.header["query"]) else FOREIGN
            worth[one] = new * best[one]["weight"] / (1 + math.log(max(row["degree"], 1)))
    spread: Counter[str] = Counter()
    chosen: list[str] = []
    for one in sorted(worth, key=lambda one: (-round(worth[one], 9), one)):
        here = best[one]["here"]
        if spread[here] < FROM_ONE and len(chosen) < QUESTIONS:
            spread[here] += 1
            chosen.append(one)
    links = snapshot.served("relationships", [best[one]["id"] for one in chosen])
    link = {row["id"]: row for row in links}
    forms = FORMS[language_of(walk.header["query"])]
    return [_question(forms, there[one], start[best[one]["here"]], link.get(best[one]["id"])) for one in chosen]


def language_of(query: str) -> str:
    """ "zh", "en", or "" for any other: Han without kana or hangul is Chinese; English shows by its small words."""
    if any("\u3040" <= ch <= "\u30ff" or "\uac00" <= ch <= "\ud7af" for ch in query):
        return ""
    if any(is_cjk(ch) for ch in query):
        return "zh"
    return "en" if language(set(re.findall(r"[^\W\d_]+", query.lower()))) == "en" else ""


def _held(snapshot: Snapshot, answer: str, context: Sequence[str]) -> dict[str, float]:
    """The entities of what an answer cites, or else was shown: id -> how much they are cited."""
    cited = cited_aliases(answer)
    places = [alias for alias in cited if alias[0] == "t"] or context[:4]
    numbers = [int(alias[1:].partition(".")[0]) for alias in places if alias[:1] == "t"]
    held: dict[str, float] = {}
    for ids in snapshot.by_key("passages", numbers, "n", ["entity_ids"])["entity_ids"].to_pylist():
        for one in ids:
            held[one] = held.get(one, 0.0) + 1.0
    own = [int(alias[1:]) for alias in cited if alias[0] == "e"]
    for one in snapshot.by_key("entities", own, "n", ["id"])["id"].to_pylist():
        held[one] = held.get(one, 0.0) + 5.0
    return held


def _neighbours(snapshot: Snapshot, start: Mapping[str, Row]) -> dict[str, Row]:
    """The strongest neighbours: id -> its best relationship {id, weight, here}, from the more cited of a pair."""
    if not start:
        return {}
    listed = ", ".join(f"'{id}'" for id in start)
    names = ["id", "source_id", "target_id", "weight"]
    links = snapshot.rows("relationships", f"source_id IN ({listed}) OR target_id IN ({listed})", names).to_pylist()
    place = {id: at for at, id in enumerate(start)}
    best: dict[str, Row] = {}
    for link in sorted(links, key=lambda one: (-one["weight"], one["source_id"], one["target_id"])):
        ends = sorted((link["source_id"], link["target_id"]), key=lambda id: (place.get(id, len(place)), id))
        best.setdefault(ends[1], {"id": link["id"], "weight": link["weight"], "here": ends[0]})
    order = sorted(best, key=lambda id: (-best[id]["weight"], id))[:LOOKED_AT]
    return {id: best[id] for id in order}


def _names(text: str, key: str) -> bool:
    """Does the text name it, as a word of its own where words are apart?"""
    if not key.isascii():
        return key in text
    return re.search(rf"(?<![a-z0-9]){re.escape(key)}(?![a-z0-9])", text) is not None


def _foreign(text: str) -> bool:
    return any(is_cjk(ch) for ch in text)


# ---- words ---------------------------------------------------------------------------------------


def _question(forms: Mapping[str, str], there: Row, here: Row, link: Row | None) -> str:
    kind = there["type"].casefold()
    form = forms.get(KINDS.get(kind, kind), forms[""])
    words = _topic(link, there["title"], here["title"]) if link else []
    topic = forms["topic"].format(forms["and"].join(words)) if words else ""
    return form.format(there=one_line(there["title"], 80), here=one_line(here["title"], 80), topic=topic)


def _topic(link: Row, *titles: str) -> list[str]:
    """Two words on what a relationship is about: a model's keywords, else words that its sentences repeat."""
    names = " ".join(titles).casefold()
    said = [one_line(word, 40) for word in re.split(r"[,;，、；]+", link["keywords"]) if word.strip()]
    kept = [word for word in said if word.casefold() not in names]
    if not kept:
        text = " ".join(dict.fromkeys(one["text"] for one in link["evidence"]))
        found = Counter(word for word in _WORD.findall(text) if word.islower() and word.isascii())
        kept = [
            word for word, count in found.most_common(8)
            if count > 1 and word not in names and word not in GRAMMAR
        ]  # fmt: skip
    return kept[:2]
