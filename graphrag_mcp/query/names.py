"""Which entity a caller means: by alias, full id, name, other name, name without courtesies, then by words.

Takes a snapshot and what was asked for; gives the entity's row, or the candidates. Knows neither results nor budgets.
"""

from __future__ import annotations

import re
from typing import Any

from graphrag_mcp import extract, lexicon, lexicon_east, lexicon_foreign, lexicon_han, lexicon_uncased
from graphrag_mcp.han import is_han
from graphrag_mcp.lexicon_variants import SIMPLIFY
from graphrag_mcp.query import context
from graphrag_mcp.query.ranking import MARKS
from graphrag_mcp.stems import folded
from graphrag_mcp.store.edits import in_force
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text import composed, normalise_name, terms
from graphrag_mcp.types import content_id

Row = dict[str, Any]
# Beside a name that somebody is called by, and no part of it: el señor X, X जी को.
_BESIDE = frozenset("the el la los las il lo le der die das o a os as को ने से का की के पर में".split())
_GENITIVE = frozenset("का की के".split())
_UNTITLED = frozenset(("location", "organization", "natural object", "event"))  # 北京市长 is not 北京
_MARKS = MARKS.replace("'", "")
_SURNAMES = frozenset(
    name.translate(SIMPLIFY)  # as keys are
    for name in (*lexicon_east.JA_SURNAMES, *lexicon_han.ZH_SURNAMES, *lexicon_han.ZH_SURNAMES_TWO)
)
_VIETNAMESE = frozenset(map(folded, lexicon_foreign.VI_BEFORE["person"].split("|")))


def resolve(snapshot: Snapshot, asked: str) -> tuple[Row | None, list[Row]]:
    """The entity that is meant and others that hold its name; or None and the candidates."""
    if match := re.fullmatch(r"e(\d{1,12})", asked, re.IGNORECASE):
        if found := context.numbered(snapshot, "entities", [int(match[1])]):
            return found[0], []
    if re.fullmatch(r"[0-9a-f]{32}", asked) and (found := context.rows(snapshot, "entities", [asked])):
        return found[0], []
    asked = composed(asked)
    key = normalise_name(asked[:300])
    # "Harbour Tide Authority (HTA)"
    bare = normalise_name(re.sub(r"(?<!\s)\s*[(（][^()（）]*[)）]\s*$", "", asked[:300]))
    given = in_force(snapshot).alias  # names that somebody gave resolve as surely as their own
    keys = [one for name in (key, bare) if name for one in (name, given.get(name, name))]
    if found := context.rows(snapshot, "entities", [content_id("entity", one) for one in dict.fromkeys(keys)]):
        return found[0], _namesakes(snapshot, found[0]["key"])
    words = terms(asked[:300])[:16]
    near = snapshot.verified("entities", snapshot.full_text("entities", words, 60)).to_pylist()
    near.sort(key=lambda row: (-row["degree"], row["id"]))
    named = [row for row in near if key in row["names"]]
    if len(named) == 1:
        return named[0], []
    called, titled = _called(asked[:300])
    if called and normalise_name(called) != key:
        found, others = resolve(snapshot, called)
        if found is not None and not (titled and found["type"] in _UNTITLED):
            return found, others
    whole = [row for row in near if _holds(row, key)] if not named else named
    if len(whole) == 1:
        return whole[0], []
    nearest = context.rows(snapshot, "entities", [row["id"] for row in context.nearest_names(snapshot, asked, 8)])
    return None, list({row["id"]: row for row in [*whole[:8], *nearest]}.values())[:8]


def _holds(row: Row, key: str) -> bool:
    """Is this a whole word of the entity's name, or the family name that a name without blanks begins with?"""
    if key in _SURNAMES:
        return row["type"] == "person" and row["key"].startswith(key) and len(key) < len(row["key"]) < len(key) + 4
    return f" {key} " in f" {row['key']} "


def _called(asked: str) -> tuple[str, bool]:
    """The one name in what was asked for, all else courtesy: 田中さん, 김민수 씨는, السيد كريم, 王女士; "" for none.
    And is there a word that only people are called by?"""
    bare = asked.strip()
    title = next((one for one in lexicon_han.ZH_TITLES if bare.endswith(one)), "")
    if title and 0 < len(bare) - len(title) < 5 and all(map(is_han, bare)):
        return bare[: -len(title)], True
    strong = {(one[4], one[5]) for one in extract.mentions(asked, short=True) if one[3]}
    if len(strong) != 1:
        return "", False
    start, end = strong.pop()
    before, after = (part.replace("’", "'").split() for part in (asked[:start], asked[end:]))
    if len(after) > 1 and (after[0] == "'s" or not _GENITIVE.isdisjoint(after[:-1])):
        return "", False  # Fenn's doctor, राजेश गुप्ता के पिता: somebody else
    rest = [word.strip(_MARKS).casefold() for word in (*before, *after)]
    titled = any(word and word not in _BESIDE and word[0] != "'" for word in rest)
    return (asked[start:end], titled) if all(map(_courtesy, rest)) else ("", False)


def _courtesy(word: str) -> bool:
    bare, form = lexicon_foreign.bare(word), folded(word)
    if not word or word in _BESIDE or word in lexicon.TITLES or bare in lexicon_foreign.ROLES or word[0] == "'":
        return True
    if form in _VIETNAMESE:
        return True
    if word in lexicon_east.JA_TITLES or word in lexicon_uncased.THAI_TITLES or word in lexicon_east.JOSA:
        return True
    if any(word.removesuffix(particle) in lexicon_east.KO_TITLES for particle in ("", *lexicon_east.JOSA)):
        return True
    return (lexicon_uncased.TITLES.get(form) or lexicon_uncased.HINDI_HEADS.get(form)) == "person"


def _namesakes(snapshot: Snapshot, key: str) -> list[Row]:
    """Entities whose longer name holds this one word: a surname alone may mean any of them."""
    if " " in key or not key.isascii():
        return []
    near = snapshot.full_text("entities", [key], 20).to_pylist()
    held = [row for row in near if f" {key} " in f" {row['key']} " and row["key"] != key]
    return sorted(held, key=lambda row: (-row["degree"], row["id"]))[:5]
