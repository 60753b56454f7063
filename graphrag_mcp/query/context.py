"""Rows for searches: read, verified, and turned into items with short ids; and which entity a
caller means."""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_mcp.names import extract, lexicon
from graphrag_mcp.names.cjk import is_han
from graphrag_mcp.packing.budget import (
    Item,
    columns,
    cost,
    one_line,
    referenced_ids,
    render_references,
    source_item,
)
from graphrag_mcp.store.edit_log import in_force
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.folding import SIMPLIFY, folded
from graphrag_mcp.text.terms import bracketed, composed, normalise_name, sentences, terms
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.types import Citation, SearchResult, content_id

Row = dict[str, Any]
# Beside a name that someone is called by, and no part of it: el señor X, X जी को.
_BESIDE = frozenset("the el la los las il lo le der die das o a os as को ने से का की के पर में".split())
_GENITIVE = frozenset("का की के".split())
# 北京市长 is not 北京
_UNTITLED = frozenset(("location", "organization", "natural object", "event"))
# Columns of a passage that ranking reads
LIGHT = ("id", "document_id", "title_id", "position", "n_terms", "entity_ids", "terms")
# Around a word of a question and no part of it, in the scripts that have signs of their own.
MARKS = "\"'“”‘’«»„.,;:!?¿¡()[]，。？！、；：（）「」『』،؛؟।…"
_MARKS = MARKS.replace("'", "")
_SURNAMES = frozenset(
    name.translate(SIMPLIFY)  # as keys are
    for name in (*lexicon.JA_SURNAMES, *lexicon.ZH_SURNAMES, *lexicon.ZH_SURNAMES_TWO)
)
_VIETNAMESE = frozenset(map(folded, lexicon.VI_BEFORE["person"].split("|")))


# ---- symbols of source code ---------------------------------------------------------------------

SYMBOLS = ("module", "class", "interface", "type", "function", "method", "constant")
_NAME = re.compile(r"[^\W\d][\w$]*(?:[./:#]{1,2}[\w$]+)*(?:\([^()]{0,80}\))?")


def symbols_named(snapshot: Snapshot, asked: str) -> list[Row]:
    """The symbols that a name means: whole, or the last parts of the qualified one; the outermost
    first. Paths, `Class::method` and `call()` are read as names."""
    asked = asked.strip().strip("`")
    if "code" not in snapshot.manifest.tables or not _NAME.fullmatch(asked):
        return []
    bare = re.sub(r"\([^()]*\)\Z", "", asked)
    bare = re.sub(r"\.(?:py|pyi|js|jsx|mjs|ts|tsx|rs|rb|cc|cpp|h|hpp)(?=[:#]|\Z)", "", bare)
    name = re.sub(r"[/:#]+", ".", bare)
    types = ", ".join(f"'{one}'" for one in SYMBOLS)
    where = f"(key = '{name}' OR ends_with(key, '.{name}')) AND type IN ({types})"
    ids = snapshot.rows("entities", where, ["id"])["id"].to_pylist()
    found = rows(snapshot, "entities", ids)
    return sorted(found, key=lambda row: (row["key"].count("."), -row["degree"], row["key"]))


def is_symbol(row: Mapping[str, Any]) -> bool:
    return row["type"] in SYMBOLS and "." in row["key"]


def resolve(snapshot: Snapshot, asked: str) -> tuple[Row | None, list[Row]]:
    """The entity that is meant and others that hold its name; or None and the candidates."""
    if match := re.fullmatch(r"e(\d{1,12})", asked, re.IGNORECASE):
        if found := numbered(snapshot, "entities", [int(match[1])]):
            return found[0], []
    if re.fullmatch(r"[0-9a-f]{32}", asked) and (found := rows(snapshot, "entities", [asked])):
        return found[0], []
    asked = composed(asked)
    if found := symbols_named(snapshot, asked[:300]):
        return (found[0], []) if len(found) == 1 or found[0]["key"] == asked else (None, found[:12])
    key = normalise_name(asked[:300])
    # "Harbour Tide Authority (HTA)"
    bare = normalise_name(re.sub(r"(?<!\s)\s*[(（][^()（）]*[)）]\s*$", "", asked[:300]))
    given = in_force(snapshot).alias  # names that someone gave resolve as surely as their own
    keys = [one for name in (key, bare) if name for one in (name, given.get(name, name))]
    if found := rows(
        snapshot, "entities", [content_id("entity", one) for one in dict.fromkeys(keys)]
    ):
        return found[0], _namesakes(snapshot, found[0]["key"])
    words = terms(asked[:300])[:16]
    near = snapshot.full_text("entities", words, 60).to_pylist()
    near.sort(key=lambda row: (-row["degree"], row["id"]))
    named = [row for row in near if key in row["names"]]
    if len(named) == 1:
        return named[0], [row for row in _namesakes(snapshot, key) if row["id"] != named[0]["id"]]
    called, titled = _called(asked[:300])
    if called and normalise_name(called) != key:
        found, others = resolve(snapshot, called)
        if found is not None and not (titled and found["type"] in _UNTITLED):
            return found, others
    whole = [row for row in near if _holds(row, key)] if not named else named
    if len(whole) == 1:
        return whole[0], []
    nearest = rows(snapshot, "entities", [row["id"] for row in nearest_names(snapshot, asked, 8)])
    return None, list({row["id"]: row for row in [*whole[:8], *nearest]}.values())[:8]


def _holds(row: Row, key: str) -> bool:
    """Is this a whole word of the entity's name, or the family name that a name without blanks
    begins with?"""
    if key in _SURNAMES:
        return (
            row["type"] == "person"
            and row["key"].startswith(key)
            and len(key) < len(row["key"]) < len(key) + 4
        )
    return f" {key} " in f" {row['key']} "


def _called(asked: str) -> tuple[str, bool]:
    """The one name in what was asked for, all else courtesy: 田中さん, 김민수 씨는, السيد كريم, 王女士; "" for
    none. And is there a word that only people are called by?"""
    bare = asked.strip()
    title = next((one for one in lexicon.ZH_TITLES if bare.endswith(one)), "")
    if title and 0 < len(bare) - len(title) < 5 and all(map(is_han, bare)):
        return bare[: -len(title)], True
    strong = {(one[4], one[5]) for one in extract.mentions(asked, short=True) if one[3]}
    if len(strong) != 1:
        return "", False
    start, end = strong.pop()
    before, after = (part.replace("’", "'").split() for part in (asked[:start], asked[end:]))
    if len(after) > 1 and (after[0] == "'s" or not _GENITIVE.isdisjoint(after[:-1])):
        return "", False  # Fenn's doctor, राजेश गुप्ता के पिता: someone else
    rest = [word.strip(_MARKS).casefold() for word in (*before, *after)]
    titled = any(word and word not in _BESIDE and word[0] != "'" for word in rest)
    return (asked[start:end], titled) if all(map(_courtesy, rest)) else ("", False)


def _courtesy(word: str) -> bool:
    bare, form = lexicon.bare(word), folded(word)
    if (
        not word
        or word in _BESIDE
        or word in lexicon.TITLES
        or bare in lexicon.ROLES
        or word[0] == "'"
    ):
        return True
    if form in _VIETNAMESE:
        return True
    if word in lexicon.JA_TITLES or word in lexicon.THAI_TITLES or word in lexicon.JOSA:
        return True
    if any(word.removesuffix(particle) in lexicon.KO_TITLES for particle in ("", *lexicon.JOSA)):
        return True
    return (lexicon.CASELESS_TITLES.get(form) or lexicon.HINDI_HEADS.get(form)) == "person"


def _namesakes(snapshot: Snapshot, key: str) -> list[Row]:
    """Entities whose longer name holds this one word: a surname alone may mean any of them."""
    if " " in key or not key.isascii():
        return []
    near = snapshot.full_text("entities", [key], 20).to_pylist()
    held = [row for row in near if f" {key} " in f" {row['key']} " and row["key"] != key]
    return sorted(held, key=lambda row: (-row["degree"], row["id"]))[:5]


CLAIMS = "id|entity|object|status|start_date|end_date|description"
# tokens of a citation; of passages read, in budgets: overlapping ones cost less than alone
ACCOUNT, ENOUGH = (80, 1.3)
LEAST = 60  # tokens of a part of a passage that are worth its citation
_LINES = re.compile(r":(\d+)-(\d+)\)\Z")
LIKE = 0.6  # from which two names count as near; words in common without it count 0.5
# Of all entities the ids and the keys; the words of their names; where the places of each word
# begin; and these places.
Names = tuple[pa.ChunkedArray, list[str], list[str], Any, Any]
_spelled: WeakKeyDictionary[Snapshot, Names] = WeakKeyDictionary()
_central: WeakKeyDictionary[Snapshot, list[str]] = WeakKeyDictionary()
_parts: WeakKeyDictionary[Snapshot, dict[str, list[str]]] = WeakKeyDictionary()
DOCUMENT = ("id", "n", "title", "uri")  # what is kept of tables, the one that asks
_SPAN = ("char_start", "char_end", "line_start", "line_end", "n_tokens")
# What is shown of a passage, and remembered between searches: without its terms it takes half.
PASSAGE = ("id", "n", "part", "parts", "document_id", "uri", "title", *_SPAN, "text")
NUMBERS = ("id", "n", "level", "rank", "n_text_units", "title")  # of reports
FAMILY = ("id", "parent", "children", "size")  # of communities
REFERENCES = {
    "Reports": ("reports", "c"),
    "Entities": ("entities", "e"),
    "Relationships": ("relationships", "r"),
}


def rows(snapshot: Snapshot, table: str, ids: Sequence[str]) -> list[Row]:
    """Whole rows in the order of the ids; unknown and damaged ones are missing."""
    return snapshot.served(table, list(ids))


def part_of(snapshot: Snapshot) -> dict[str, list[str]]:
    """Entities (ids) whose titles begin with the title of an organization, with the ids of these
    organizations: who names "BBC Radio 4" names the BBC."""
    known = _parts.get(snapshot)
    if known is None:
        rows = snapshot.rows("entities", "", ["id", "title", "type"]).to_pylist()
        ids = {row["title"]: row["id"] for row in rows if row["type"] == "organization"}
        known = {}
        for row in rows:
            words = row["title"].split()
            shorter = (" ".join(words[:count]) for count in range(1, len(words)))
            if found := [ids[one] for one in shorter if one in ids]:
                known[row["id"]] = found
        _parts[snapshot] = known
    return known


def numbered(snapshot: Snapshot, table: str, numbers: Sequence[int]) -> list[Row]:
    """Whole rows by the number behind their alias; of text units, all passages."""
    if not numbers:
        return []
    return snapshot.by_key(table, list(numbers), "n").to_pylist()


def central(snapshot: Snapshot, count: int) -> list[str]:
    """The entities of most relationships: one pass over all of them, once a generation."""
    if len(_central.get(snapshot, ())) < count:
        rows = snapshot.rows("entities", "", ["id", "degree"])
        best = pc.select_k_unstable(
            rows, max(count, 20), [("degree", "descending"), ("id", "ascending")]
        )
        _central[snapshot] = rows["id"].take(best).to_pylist()
    return _central[snapshot][:count]


# ---- items -------------------------------------------------------------------------------------


def passage_items(
    snapshot: Snapshot, scored: Sequence[tuple[str, float]], lines: bool = False
) -> tuple[list[Item], list[int]]:
    """Passages as items, and for each its place in the ranking (a damaged row leaves a gap)."""
    score = dict(scored)
    place = {id: number for number, (id, _) in enumerate(scored)}
    found = snapshot.served("passages", list(score), PASSAGE)
    alias = document_aliases(snapshot, [row["document_id"] for row in found])
    items = [
        source_item(row, score[row["id"]], alias.get(row["document_id"], ""), lines)
        for row in found
    ]
    return items, [place[row["id"]] for row in found]


def enough_items(
    snapshot: Snapshot, scored: Sequence[tuple[str, float]], budget: int
) -> tuple[list[Item], list[int], int]:
    """Passages as items, their places, and how many of the ranking were looked at: as many as could
    fit the budget.

    Most passages are long, so few are read at a time: four times as many would be read as are
    shown."""
    items: list[Item] = []
    places: list[int] = []
    some, at = max(8, budget // 250), 0
    while at < len(scored) and sum(item.tokens + ACCOUNT for item in items) <= ENOUGH * budget:
        read, where = passage_items(snapshot, scored[at : at + some])
        items, places, at = items + read, places + [at + place for place in where], at + some
    return items, places, min(at, len(scored))


def document_aliases(snapshot: Snapshot, ids: Iterable[str]) -> dict[str, str]:
    """`d12` for content ids of documents: a tenth of the tokens, and taken wherever an id of a
    document is."""
    rows = snapshot.by_key("documents", list(ids), "id", DOCUMENT)
    return {
        id: f"d{n}" for id, n in zip(rows["id"].to_pylist(), rows["n"].to_pylist(), strict=True)
    }


def entity_items(found: Sequence[Row], detailed: bool, described: bool = True) -> list[Item]:
    """One line per entity: a bullet, described or not, or `id|entity|description|number of
    relationships`."""
    # four names of one sentence have it for description: it is written once
    items, shown = ([], {""})
    for row in found:
        alias = f"e{row['n']}"
        if detailed:
            text = columns(alias, row["title"], one_line(row["description"], 600), row["degree"])
        else:
            said = first_sentence(row["description"], 160) if described else ""
            text = f"- [{alias}] {' '.join(filter(None, (one_line(row['title'], 100), bracketed(row['type']))))}{'' if said in shown else f': {said}'}"
            shown.add(said)
        items.append(Item(alias, text, None, "Entities"))
    return items


def report_items(
    snapshot: Snapshot, found: Sequence[Row], occurrence: Mapping[str, float]
) -> list[Item]:
    """`id|title|occurrence weight|content|rank`."""
    items = []
    summaries = rendered(snapshot, [row["summary"] for row in found])
    for row, summary in zip(found, summaries, strict=True):
        weight = round(occurrence.get(row["id"], 0.0), 2)
        text = columns(f"c{row['n']}", row["title"], weight, summary, f"{row['rank']:g}")
        items.append(Item(f"c{row['n']}", text, None, "Reports", weight))
    return items


def relationship_items(
    found: Sequence[Row], titles: Mapping[str, str], links: Mapping[str, int]
) -> list[Item]:
    """`id|source|target|description|weight|links`."""
    items = []
    for row in found:
        names = titles.get(row["source_id"], "?"), titles.get(row["target_id"], "?")
        description = one_line(row["description"], 300)
        text = columns(
            f"r{row['n']}", *names, description, f"{row['weight']:g}", links.get(row["id"], 0)
        )
        items.append(Item(f"r{row['n']}", text, None, "Relationships"))
    return items


def claims_about(snapshot: Snapshot, entities: Sequence[Row]) -> list[Item]:
    """What is claimed about the entities, in their order and by any of their `names`; then what
    names them as its object."""
    return claim_items(claim_rows(snapshot, entities))


def claim_rows(snapshot: Snapshot, entities: Sequence[Row]) -> list[Row]:
    """The claims themselves, in the same order."""
    if "claims" not in snapshot.manifest.tables:
        return []
    named = [content_id("entity", name) for row in entities for name in row["names"]]
    listed: dict[str, None] = {}
    for column in ("subject_id", "object_id"):
        listed |= dict.fromkeys(
            snapshot.by_key("claims", named, column, ["id", column])["id"].to_pylist()
        )
    return rows(snapshot, "claims", list(listed))


def claim_items(found: Sequence[Row]) -> list[Item]:
    """`id|entity|object|status|start_date|end_date|description`."""
    items = []
    for row in found:
        dates = row["start_date"], row["end_date"]
        said = one_line(row["description"], 300)
        text = columns(f"k{row['n']}", row["subject"], row["object"], row["status"], *dates, said)
        items.append(Item(f"k{row['n']}", text, None, "Claims"))
    return items


def first_sentence(text: str, characters: int) -> str:
    spans = sentences(text[: characters * 4])
    return one_line(text[spans[0][0] : spans[0][1]] if spans else "", characters)


# ---- references --------------------------------------------------------------------------------


def rendered(snapshot: Snapshot, texts: Sequence[str]) -> list[str]:
    """Texts of reports with aliases in place of content ids; one lookup per kind for all of them."""
    aliases, _ = resolve_references(snapshot, texts)
    return [render_references(text, aliases) for text in texts]


def resolve_references(
    snapshot: Snapshot, texts: Sequence[str]
) -> tuple[dict[str, dict[str, str]], dict[str, Citation]]:
    """Aliases by group name and content id, and the citations of the sources, by alias."""
    wanted: dict[str, dict[str, None]] = {}
    for text in texts:
        for group, ids in referenced_ids(text).items():
            wanted.setdefault(group, {}).update(dict.fromkeys(ids))
    aliases: dict[str, dict[str, str]] = {}
    for group, (table, letter) in REFERENCES.items():
        if wanted.get(group):
            found = snapshot.by_key(table, list(wanted[group]), "id", ["id", "n"]).to_pylist()
            aliases[group] = {row["id"]: f"{letter}{row['n']}" for row in found}
    cited = unit_citations(snapshot, list(wanted.get("Sources", ())))
    aliases["Sources"] = {id: citation.id for id, citation in cited.items()}
    return aliases, {citation.id: citation for citation in cited.values()}


def unit_citations(snapshot: Snapshot, ids: Sequence[str]) -> dict[str, Citation]:
    """Citations of whole text units, by content id, in the order given; unknown ids are missing."""
    if not ids:
        return {}
    names = ["id", "n", "document_id", "char_start", "char_end", "line_start", "line_end"]
    units = snapshot.by_key("text_units", list(ids), "id", names).to_pylist()
    wanted = list(dict.fromkeys(unit["document_id"] for unit in units))
    rows = snapshot.by_key("documents", wanted, "id", DOCUMENT).to_pylist()
    documents = {
        row["id"]: {"title": row["title"], "uri": row["uri"], "document_id": f"d{row['n']}"}
        for row in rows
    }
    return {
        unit["id"]: Citation(
            id=f"t{unit['n']}",
            **documents[unit["document_id"]],
            **{name: unit[name] for name in names[3:]},
        )
        for unit in units
        if unit["document_id"] in documents
    }


def sentence_citation(unit: Citation, start: int, end: int) -> Citation:
    """The place of a sentence, from the citation of its text unit and its offsets there. Lines stay
    the unit's."""
    return unit.model_copy(
        update={"char_start": unit.char_start + start, "char_end": unit.char_start + end}
    )


def relationship_statement(
    row: Row, units: Mapping[str, Citation], longest: int
) -> tuple[str, Citation | None]:
    """The best sentence that says that two are related and where it stands, after what a model made
    of it; `units` are citations by text unit."""
    first = next(iter(row["evidence"]), None)
    unit = units.get(first["text_unit_id"]) if first else None
    told = one_line(row["description"], longest)
    if first is None or unit is None:
        return told, None
    said = one_line(first["text"], longest)
    # then the description is sentences
    own = first["text"].strip() and first["text"].strip() in row["description"]
    cited = sentence_citation(unit, first["start"], first["end"])
    return (said or told) if own or not told else f'{told} "{said}"', cited


def findings(row: Row) -> list[dict[str, str]]:
    """The findings of a report as stored: a JSON list of {summary, explanation}."""
    try:
        found = json.loads(row["findings"] or "[]")
    except ValueError:
        return []
    return [one for one in found if isinstance(one, dict)]


def finding(one: Mapping[str, Any]) -> str:
    """A finding as one text: the explanation, behind the summary where it does not begin with it."""
    summary, told = str(one.get("summary", "")), str(one.get("explanation", ""))
    return told if not summary or told.startswith(summary) else f"{summary}: {told}"


# ---- nothing found -----------------------------------------------------------------------------


def nearest_names(snapshot: Snapshot, name: str, count: int = 5) -> list[Row]:
    """Entities whose names look most like this one: {id, n, key, title, type, degree}, best first.

    Likeness is optimal string alignment (insert, delete, change, swap neighbours), of the whole
    names or, a little less worth, of the name and one word of another ("Tobais" is near Tobias
    Fenn). 17 ms for 105,000 names."""
    key = normalise_name(name[:200])
    if not key:
        return []
    from rapidfuzz.distance import OSA
    from rapidfuzz.process import extract as closest

    names = ["id", "n", "key", "title", "type", "degree"]
    ids, keys, words, starts, places = _names(snapshot)
    alike: dict[str, float] = {}
    for _, share, at in closest(
        key, keys, scorer=OSA.normalized_similarity, limit=30, score_cutoff=LIKE
    ):
        alike[ids[at].as_py()] = share
    if " " not in key:
        near = closest(key, words, scorer=OSA.normalized_similarity, limit=10, score_cutoff=LIKE)
        for _, share, word in near:
            for at in places[starts[word] : starts[word + 1]].tolist():
                id = ids[at].as_py()
                alike[id] = max(alike.get(id, 0.0), share - 0.1)
    best = sorted(alike, key=lambda id: (-round(alike[id], 6), id))[:60]
    rows = {row["id"]: row for row in snapshot.by_key("entities", best, "id", names).to_pylist()}
    rows |= {
        row["id"]: row
        for row in snapshot.full_text("entities", terms(key)[:16], 20, names).to_pylist()
    }
    likeness = {id: round(alike.get(id, LIKE - 0.1), 6) for id in rows}
    return sorted(rows.values(), key=lambda row: (-likeness[row["id"]], -row["degree"], row["id"]))[
        :count
    ]


def _names(snapshot: Snapshot) -> Names:
    """Made once for a generation, 125 ms for 105,000, since a question of which nothing is known
    looks for six names; words are those of names with several."""
    if (known := _spelled.get(snapshot)) is not None:
        return known
    import numpy as np

    listed = snapshot.rows("entities", "", ["id", "key"])
    keys = listed["key"].to_pylist()
    numbers: dict[str, int] = {}
    word, place = array("I"), array("I")  # a list for each word took 11 MB more for 105,000
    for at, key in enumerate(keys):
        for one in key.split() if " " in key else ():
            word.append(numbers.setdefault(one, len(numbers)))
            place.append(at)
    order = np.argsort(word, kind="stable")
    starts = np.searchsorted(np.asarray(word)[order], np.arange(len(numbers) + 1))
    found = listed["id"], keys, list(numbers), starts, np.asarray(place)[order]
    if type(snapshot) is Snapshot:
        _spelled[snapshot] = found
    return found


def named_list(found: Iterable[Row]) -> str:
    return ", ".join(f"{one_line(row['title'], 60)} (e{row['n']})" for row in found)


def empty_corpus(snapshot: Snapshot, mode: str) -> SearchResult | None:
    """The result to give when there is nothing to search in."""
    if snapshot.manifest.counters.get("passages", 0) > 0:
        return None
    return SearchResult(
        state="not_found",
        mode=mode,
        corpus=snapshot.manifest.corpus,
        text="This corpus holds no text yet.",
        hint="Add documents with index_documents.",
        next_call='index_documents(paths=["..."])',
    )


def stale(snapshot: Snapshot, mode: str) -> SearchResult:
    """The result for a cursor of another generation or another question."""
    return SearchResult(
        state="stale",
        mode=mode,
        corpus=snapshot.manifest.corpus,
        text="This cursor belongs to another question or to an earlier state of the index.",
        hint="Search again without a cursor.",
    )


def query_length_note(query: str, limit: int) -> str:
    return (
        f"Only the first {limit} characters of the query were used." if len(query) > limit else ""
    )


def excerpt(item: Item, room: int, worth: Mapping[str, float]) -> Item | None:
    """The part of a passage that fits where the whole does not, in at most `room` tokens: the
    sentences in a row that hold most of the terms' worth. None where that would be too little to be
    of use.

    With 2,000 tokens four passages fit, and 100 to 400 tokens would be left over. Filled so, they
    hold the evidence of one question more in a hundred (Chroma set: 92.1 -> 92.5 at 100 tokens of
    account a passage, 93.6 -> 94.7 at 30)."""
    head, _, body = item.text.partition("\n")
    left = room - cost(replace(item, text=head, tokens=0)) - 8  # what marks the cuts
    if item.citation is None or not item.span[1] or left < LEAST:
        return None
    spans = sentences(body)
    prices = [count_tokens(body[start:end]) + 1 for start, end in spans]
    worths = [
        sum(worth.get(term, 0.0) for term in set(terms(body[start:end]))) for start, end in spans
    ]
    best, chosen, first, price, value = -1.0, (0, 0), 0, 0, 0.0
    for last in range(len(spans)):
        price, value = price + prices[last], value + worths[last]
        while price > left and first <= last:
            price, value, first = price - prices[first], value - worths[first], first + 1
        if first <= last and value > best + 1e-9:
            best, chosen = value, (spans[first][0], spans[last][1])
    start, end = chosen
    if best < 0 or count_tokens(body[start:end]) < LEAST // 2:
        return None
    text = ("… " if start else "") + body[start:end] + (" …" if end < len(body) else "")
    skipped, kept = body[:start].count("\n"), body[start:end].count("\n")
    head = _LINES.sub(lambda m: f":{int(m[1]) + skipped}-{int(m[1]) + skipped + kept})", head)
    place = item.span[0]
    named = {"char_start": place + start, "char_end": place + end}
    if item.citation.line_start:
        line = item.citation.line_start + skipped
        named |= {"line_start": line, "line_end": line + kept}
    cited = item.citation.model_copy(update=named)
    return replace(item, text=f"{head}\n{text}", citation=cited, tokens=0, span=(0, 0), part=True)


# ---- several corpora -----------------------------------------------------------------------------

ALIAS = r"[tderck]\d{1,12}(?:\.\d{1,6})?"
_DATA = re.compile(r"\[Data: [^\[\]\n]{1,4000}\]")
_INNER = re.compile(rf"(?<![\w./])({ALIAS})(?![\w/])")
_MARKED = re.compile(rf"(?<=\[)({ALIAS})(?=\])|(?<=\()({ALIAS})(?=[,)])|(?<=, )({ALIAS})(?=\))")


def placed(name: str, place: Citation, factor: float) -> Citation:
    ids = {"id": f"{name}/{place.id}", "document_id": f"{name}/{place.document_id}"}
    return place.model_copy(update=ids | {"score": round(place.score * factor, 3)})


def marked(name: str, text: str) -> str:
    """Ids in references and brackets with their corpus before them."""
    text = _MARKED.sub(lambda one: f"{name}/{one.group()}", text)
    return _DATA.sub(lambda one: _INNER.sub(lambda alias: f"{name}/{alias[1]}", one.group()), text)
