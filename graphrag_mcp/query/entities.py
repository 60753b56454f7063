"""Entities: which one a caller means, and which ones a question is about."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from graphrag_mcp.names import lexicon
from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.query import plugin, spelling
from graphrag_mcp.query.candidates import PROPOSED, Passage
from graphrag_mcp.query.rank import Ranking
from graphrag_mcp.store import tables
from graphrag_mcp.store.edit_log import in_force
from graphrag_mcp.store.tables import Snapshot, once, values_of
from graphrag_mcp.text.terms import SIMPLIFY, composed, entity_id, normalise_name, terms

Row = dict[str, Any]
COLUMNS = tuple("id n key title type description names frequency degree terms".split())
HOLDING = 8  # best passages whose entities count
UNITS = 20  # text units of an entity whose passages are looked at


@dataclass(frozen=True, slots=True)
class Scored:
    """An entity with the parts of its score: its name, its words, the best passages, its meaning."""

    row: Row
    parts: Mapping[str, float]

    def score(self) -> float:
        return math.fsum(self.parts.values())


def ranked(snapshot: Snapshot, found: Ranking, count: int = 20) -> list[Scored]:
    """Entities that the question names (else those whose titles share its words), those of the best
    passages, and those near it in meaning, best first; damaged rows are missing. A name counts 1, everything else a
    half at most."""
    held: dict[str, float] = defaultdict(float)  # scores of passages, less from place to place
    for place, passage in enumerate(found.passages[:HOLDING], 1):
        for id in passage.entity_ids:
            held[id] += passage.score / place
    often = sorted(held, key=lambda id: (-round(held[id], 9), id))[:count]
    near: dict[str, float] = {}  # in meaning: 1 for the best, 0 for the middle of the candidates
    if found.question.vector and (nearest := tables.nearest(snapshot, "entities", found.question.vector, PROPOSED)):
        high, low = nearest[0][1], nearest[len(nearest) // 2][1]
        near = {id: (value - low) / (high - low) for id, value in nearest[:count] if value > low}
    rows = snapshot.served("entities", list(dict.fromkeys([*found.question.named, *often, *near])), COLUMNS)
    keys, named = {mention.key for mention in found.names}, frozenset(found.question.named)
    if not any(row["key"] in keys for row in rows):
        by_words = snapshot.full_text("entities", list(found.terms), 20, ["id"])["id"]
        rows = [*rows, *snapshot.served("entities", values_of(by_words), COLUMNS)]
    top = max(held.values(), default=0.0) or 1.0
    scored: dict[str, Scored] = {}
    for row in rows:
        words = row["terms"].split()
        rare = 1 + math.log(max(row["frequency"], 1))
        parts = {
            "name": float(row["id"] in named or not keys.isdisjoint((row["key"], *row["names"]))),
            "words": sum(word in found.terms for word in words) / max(len(words), 1) / 2,
            "passages": held.get(row["id"], 0.0) / top / rare / 2,
            "vector": found.meaning * near.get(row["id"], 0.0) / 2,
        }
        scored[row["id"]] = Scored(row, parts)
    best = sorted(scored.values(), key=lambda one: (-round(one.score(), 9), one.row["id"]))
    return best[:count]


def name_ids(entities: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """The ids of all names of these entities. Passages hold those of the names that they have, such as a
    family name alone, whatever entity it stands for."""
    return frozenset(entity_id(name) for entity in entities for name in entity["names"])


def naming(snapshot: Snapshot, entity: Row) -> list[Passage]:
    """Passages that name the entity, in the order of its text units, without a score."""
    whole = snapshot.served("entities", [entity["id"]])
    units = [id for row in whole for id in row["text_unit_ids"][:UNITS]]
    numbers = values_of(snapshot.by_key("text_units", units, "id", ["n"])["n"])
    names = ["id", "title_id", "document_id", "entity_ids"]
    rows = snapshot.by_key("passages", numbers, "n", names)
    found = (Passage(**row) for row in rows.to_pylist())
    ids = name_ids(whole)
    return [passage for passage in found if not ids.isdisjoint(passage.entity_ids)]


# Words beside a name: el señor X.
_BESIDE = frozenset("the el la los las il lo le der die das o a os as".split())
# 北京市长 is not 北京
_UNTITLED = frozenset(("location", "organization", "natural object", "event"))
_SURNAMES = frozenset(
    name.translate(SIMPLIFY)  # as keys are
    for name in (*lexicon.JA_SURNAMES, *lexicon.ZH_SURNAMES, *lexicon.ZH_SURNAMES_TWO)
)


def resolve(snapshot: Snapshot, asked: str) -> tuple[Row | None, list[Row]]:
    """The entity that is meant and others that hold its name; or None and the candidates."""
    if match := re.fullmatch(r"e(\d{1,12})", asked, re.IGNORECASE):
        if found := snapshot.by_key("entities", [int(match[1])], "n").to_pylist():
            return found[0], []
    if re.fullmatch(r"[0-9a-f]{32}", asked) and (found := snapshot.served("entities", [asked])):
        return found[0], []
    asked = composed(asked)
    if found := plugin.meant(snapshot, asked[:300]):
        return (found[0], []) if len(found) == 1 else (None, found[:12])
    asked = asked[:300]
    key = normalise_name(asked)
    # "Harbour Tide Authority (HTA)"
    bare = normalise_name(re.sub(r"(?<!\s)\s*[(（][^()（）]*[)）]\s*$", "", asked))
    aliases = in_force(snapshot).alias  # names that someone gave resolve as surely as their own
    keys = [form for name in (key, bare) if name for form in (name, aliases.get(name, name))]
    if found := snapshot.served("entities", [entity_id(form) for form in dict.fromkeys(keys)]):
        return found[0], _namesakes(snapshot, found[0]["key"])
    near = snapshot.full_text("entities", terms(asked)[:16], 60).to_pylist()
    near.sort(key=lambda row: (-row["degree"], row["id"]))
    named = [row for row in near if key in row["names"]]
    if len(named) == 1:
        return named[0], [row for row in _namesakes(snapshot, key) if row["id"] != named[0]["id"]]
    if (bare := called(asked)) != asked:
        meant, others = resolve(snapshot, bare)
        if meant is not None and meant["type"] not in _UNTITLED:
            return meant, others
    named = named or [row for row in near if holds(row, key)]
    if len(named) == 1:
        return named[0], []
    similar = [row["id"] for row in spelling.nearest_names(snapshot, asked, 8)]
    candidates = [*named[:8], *snapshot.served("entities", similar)]
    return None, list({row["id"]: row for row in candidates}.values())[:8]


def called(asked: str) -> str:
    """What was asked for, without the titles in front of it or at its end: Zumstein of Mr Zumstein, 田中 of
    田中さん."""
    words = composed(asked)[:300].split()
    while len(words) > 1 and words[0].casefold().rstrip(".") in _BESIDE | lexicon.TITLES:
        del words[0]
    name = " ".join(words)
    titles = (*lexicon.JA_TITLES, *lexicon.ZH_TITLES, *lexicon.KO_TITLES)
    title = next((title for title in titles if name.endswith(title)), "")
    return name.removesuffix(title).strip() or asked


def holds(row: Mapping[str, Any], key: str) -> bool:
    """Is `key` a whole word of the entity's name, or, in a name without blanks, the family name?"""
    if key in _SURNAMES:
        length = len(row["key"]) - len(key)
        return row["type"] == "person" and row["key"].startswith(key) and 0 < length < 4
    return f" {key} " in f" {row['key']} "


def _namesakes(snapshot: Snapshot, key: str) -> list[Row]:
    """Entities whose longer name holds this one word: a surname alone may mean any of them."""
    if " " in key or not key.isascii():
        return []
    near = snapshot.full_text("entities", [key], 20).to_pylist()
    namesakes = [row for row in near if f" {key} " in f" {row['key']} " and row["key"] != key]
    return sorted(namesakes, key=lambda row: (-row["degree"], row["id"]))[:5]


def named_list(found: Iterable[Row]) -> str:
    return ", ".join(f"{one_line(row['title'], 60)} (e{row['n']})" for row in found)


@once
def part_of(snapshot: Snapshot) -> dict[str, list[str]]:
    """Entities (ids) whose titles begin with the title of an organization, with the ids of these
    organizations: who names "BBC Radio 4" names the BBC."""
    rows = snapshot.rows("entities", "", ["id", "title", "type"]).to_pylist()
    ids = {row["title"]: row["id"] for row in rows if row["type"] == "organization"}
    known: dict[str, list[str]] = {}
    for row in rows:
        words = row["title"].split()
        shorter = (" ".join(words[:count]) for count in range(1, len(words)))
        if found := [ids[title] for title in shorter if title in ids]:
            known[row["id"]] = found
    return known


def central(snapshot: Snapshot, count: int, among: pa.Table | None = None) -> list[str]:
    """The entities of most relationships, of all or of rows with `id` and `degree`."""
    rows = snapshot.rows("entities", "", ["id", "degree"]) if among is None else among
    rows = rows.sort_by([("degree", "descending"), ("id", "ascending")])
    return values_of(rows["id"].slice(0, max(count, 1)))
