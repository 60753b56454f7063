"""Look-ups: an entity, a community report, words in the original texts, the exact text behind an id.

Takes a snapshot and ids or words as agents write them (`e12`, `t33.2`, full ids, names, brackets around them);
gives results within their budget. What is unknown is said, with the nearest names or the valid range of ids.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.pack import (
    Item,
    Section,
    clamp_budget,
    compose,
    finish,
    one_line,
    read_cursor,
    render_references,
    shorten,
    source_item,
    write_cursor,
)
from graphrag_mcp.query import context, fused
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text import normalise_name, query_terms, terms
from graphrag_mcp.types import Citation, EntityResult, ReportResult, SearchResult, SourceResult, content_id

Row = dict[str, Any]
TABLE_OF = {"t": "passages", "d": "documents", "e": "entities", "r": "relationships", "c": "reports"}
KIND = {"t": "text units", "d": "documents", "e": "entities", "r": "relationships", "c": "communities"}
UNITS_PER_ID = 10  # of one entity, relationship or community, when its sources are asked for
IDS = 20
_ALIAS = re.compile(r"(?<![A-Za-z0-9])(?:([tderc])(\d{1,12})(?:\.(\d{1,6}))?|([0-9a-f]{32}))(?![A-Za-z0-9])")
_QUOTED = re.compile(r'"([^"]{1,500})"|“([^“”]{1,500})”|「([^「」]{1,500})」|『([^『』]{1,500})』|«([^«»]{1,500})»')


# ---- entity ------------------------------------------------------------------------------------


def get_entity(
    snapshot: Snapshot, id_or_name: str, *, max_tokens: int = 3_000, response_format: str = "concise"
) -> EntityResult:
    """One entity with its evidence and strongest relationships; candidates when the name is not exact."""
    budget, note = clamp_budget(max_tokens, 3_000)
    asked = id_or_name.strip().strip("[]` ")
    if not asked:
        raise BadInput("no entity was named", "Give its name or an id such as e12")
    row, candidates = _resolve(snapshot, asked)
    if row is None:
        return _candidates(asked, candidates, budget, note)
    own = normalise_name(asked) in {row["key"], *row["names"]} or asked in (f"e{row['n']}", row["id"])
    hint = "" if own else f"{asked[:80]!r} was read as {one_line(row['title'], 80)} (e{row['n']})."
    if candidates:
        hint += f" Others hold this name: {context.named_list(candidates)}."
    result = EntityResult(
        id=f"e{row['n']}", title=row["title"], type=row["type"], aliases=row["aliases"][:10],
        description=shorten(one_line(row["description"], 300), budget // 10), degree=row["degree"],
        frequency=row["frequency"],
        hint=" ".join(filter(None, [note, hint])),
    )  # fmt: skip
    path = snapshot.by_key("memberships", [row["id"]], "entity_id", ["path"])["path"].to_pylist()
    groups = snapshot.by_key("reports", path[0] if path else [], "id", ["n", "title"]).to_pylist()
    result.communities = [f"c{group['n']}" for group in groups]
    also = f"\nAlso: {', '.join(one_line(alias, 60) for alias in result.aliases)}" if result.aliases else ""
    counted = f"{row['frequency']} text units, {row['degree']} relationships."
    intro = f"# {one_line(row['title'], 200)} ({result.id}, {row['type']})\n{counted}{also}"
    if groups:
        intro += "\nCommunities: " + "; ".join(f"{one_line(group['title'], 80)} (c{group['n']})" for group in groups)
    most = 40 if response_format == "detailed" else 12
    sections = [
        Section("Evidence", _evidence(snapshot, row), 0.5),
        Section("Relationships", _relationships(snapshot, row, most), 0.5),
    ]
    into = {"Relationships": "relationships"}
    result = compose(result, sections, budget, lambda _: "", intro=intro, first="Evidence", into=into)
    if result.truncated and not result.hint:
        result.hint = f'More text: get_source(ids=["{result.id}"]).'
    return finish(result, budget)


def _resolve(snapshot: Snapshot, asked: str) -> tuple[Row | None, list[Row]]:
    """The entity that is meant, or the candidates: by alias, full id, name, other name, then by words."""
    if match := re.fullmatch(r"e(\d{1,12})", asked, re.IGNORECASE):
        if found := context.numbered(snapshot, "entities", [int(match[1])]):
            return found[0], []
    if re.fullmatch(r"[0-9a-f]{32}", asked) and (found := context.rows(snapshot, "entities", [asked])):
        return found[0], []
    key = normalise_name(asked[:300])
    bare = normalise_name(re.sub(r"\s*[(（][^()（）]*[)）]\s*$", "", asked[:300]))  # "Harbour Tide Authority (HTA)"
    if found := context.rows(snapshot, "entities", [content_id("entity", one) for one in (key, bare) if one]):
        return found[0], _namesakes(snapshot, found[0]["key"])
    words = terms(asked[:300])[:16]
    near = snapshot.verified("entities", snapshot.full_text("entities", words, 60)).to_pylist()
    near.sort(key=lambda row: (-row["degree"], row["id"]))
    named = [row for row in near if key in row["names"]]
    if len(named) == 1:
        return named[0], []
    whole = [row for row in near if f" {key} " in f" {row['key']} "] if not named else named
    if len(whole) == 1:
        return whole[0], []
    nearest = context.rows(snapshot, "entities", [row["id"] for row in context.nearest_names(snapshot, asked, 8)])
    return None, list({row["id"]: row for row in [*whole[:8], *nearest]}.values())[:8]


def _namesakes(snapshot: Snapshot, key: str) -> list[Row]:
    """Entities whose longer name holds this one word: a surname alone may mean any of them."""
    if " " in key or not key.isascii():
        return []
    near = snapshot.full_text("entities", [key], 20, ["id", "n", "key", "title", "degree"]).to_pylist()
    held = [row for row in near if f" {key} " in f" {row['key']} " and row["key"] != key]
    return sorted(held, key=lambda row: (-row["degree"], row["id"]))[:5]


def _candidates(asked: str, found: Sequence[Row], budget: int, note: str) -> EntityResult:
    """Several entities could be meant, or none: what tells them apart."""
    result = EntityResult(state="not_found", title=one_line(asked, 100))
    items = []
    for row in found:
        alias, title = f"e{row['n']}", one_line(row["title"], 100)
        facts = {"id": alias, "title": title, "type": row["type"], "degree": row["degree"]}
        text = f"- [{alias}] {title} ({row['type']}, {row['degree']} relationships)"
        items.append(Item(alias, f"{text}: {context.first_sentence(row['description'], 160)}", data=facts))
    intro = f"There is no entity named {one_line(asked, 100)!r}." + (" Did you mean one of these?" if items else "")
    advice = "Call get_entity with an id from the list, or search_text for the words."
    result.hint = " ".join(filter(None, [note, advice]))
    sections, into = [Section("Candidates", items, 1.0)], {"Candidates": "candidates"}
    return compose(result, sections, budget, lambda _: "", intro=intro, first="Candidates", into=into)


def _evidence(snapshot: Snapshot, row: Row) -> list[Item]:
    """The entity's sentences, each with the place where it stands."""
    units = context.unit_citations(snapshot, list(dict.fromkeys(one["text_unit_id"] for one in row["evidence"])))
    items = []
    for one in row["evidence"]:
        unit = units.get(one["text_unit_id"])
        if unit is not None:
            cited = sentence_citation(unit, one["start"], one["end"])
            items.append(Item(unit.id, f"- {one_line(one['text'], 500)} [{unit.id}]", cited, "Evidence"))
    return items


def sentence_citation(unit: Citation, start: int, end: int) -> Citation:
    """The place of a sentence, from the citation of its text unit and its offsets there. Lines stay the unit's."""
    return unit.model_copy(update={"char_start": unit.char_start + start, "char_end": unit.char_start + end})


def _relationships(snapshot: Snapshot, entity: Row, most: int) -> list[Item]:
    id = entity["id"]
    light = snapshot.rows("relationships", f"source_id = '{id}' OR target_id = '{id}'", ["id", "weight"]).to_pylist()
    light.sort(key=lambda row: (-row["weight"], row["id"]))
    found = context.rows(snapshot, "relationships", [row["id"] for row in light[:most]])
    others = [row["target_id"] if row["source_id"] == id else row["source_id"] for row in found]
    names = {row["id"]: row for row in snapshot.by_key("entities", others, "id", ["id", "n", "title"]).to_pylist()}
    items = []
    for row, other_id in zip(found, others, strict=True):
        other = names.get(other_id)
        if other is None:
            continue
        title, alias = one_line(other["title"], 80), f"r{row['n']}"
        text = f"- [{alias}] {title} (e{other['n']}), weight {row['weight']:g}: {one_line(row['description'], 200)}"
        data = {"id": alias, "entity": title, "entity_id": f"e{other['n']}", "weight": row["weight"]}
        items.append(Item(alias, text, None, "Relationships", row["weight"], data=data))
    return items


# ---- report ------------------------------------------------------------------------------------


def get_community_report(
    snapshot: Snapshot, community_id: str, *, response_format: str = "concise", max_tokens: int = 4_000
) -> ReportResult:
    """One community's report, its members, parent and children."""
    budget, note = clamp_budget(max_tokens, 4_000)
    asked = str(community_id).strip().strip("[]` ")
    match = re.fullmatch(r"c?(\d{1,12})", asked, re.IGNORECASE)
    found = context.numbered(snapshot, "reports", [int(match[1])]) if match else []
    if not found and re.fullmatch(r"[0-9a-f]{32}", asked):
        found = context.rows(snapshot, "reports", [asked])
    if not found:
        known = f"{_range(snapshot, 'c')}; global_search finds them"
        raise NotFound(f"there is no community {asked[:60]!r}", known)
    row = found[0]
    family = snapshot.by_key("communities", [row["id"]], "id", ["parent", "children"]).to_pylist()
    parent, children = (family[0]["parent"], family[0]["children"]) if family else ("", [])
    kin = snapshot.by_key("reports", [*([parent] if parent else []), *children], "id", ["id", "n"]).to_pylist()
    aliases = {one["id"]: f"c{one['n']}" for one in kin}
    members = snapshot.by_key("entities", row["entity_ids"][:60], "id", ["id", "n", "title", "degree"]).to_pylist()
    members.sort(key=lambda one: (-one["degree"], one["id"]))
    body = re.sub(r"\A# .*\n+", "", row["full_content"]) if response_format == "detailed" else _brief(row)
    named, cited = context.resolve_references(snapshot, [body])
    result = ReportResult(
        id=f"c{row['n']}", title=row["title"], level=row["level"], rating=row["rank"], method=row["method"],
        parent=aliases.get(parent, ""), children=[aliases[id] for id in children if id in aliases][:40],
        members=[f"e{one['n']} {one_line(one['title'], 60)}" for one in members[:20]],
        stale="communities" in snapshot.manifest.stale, hint=note,
    )  # fmt: skip
    body = render_references(body, named)
    lines = f"Level {row['level']}, rating {row['rank']:g}, {len(row['entity_ids'])} entities, method {row['method']}."
    names = ", ".join(f"{one_line(one['title'], 60)} (e{one['n']})" for one in members[:20])
    head = f"# {one_line(row['title'], 200)} ({result.id})\n{lines}\nMembers: {names}"
    items = [_block(number, block, cited) for number, block in enumerate(re.split(r"\n{2,}", body.strip()))]
    return compose(result, [Section("Report", items, 1.0)], budget, lambda _: "", intro=head, first="Report")


def _brief(row: Row) -> str:
    """Summary and what each finding says, without the explanations."""
    found = [f"- {one.get('summary', '')} {_bracket(one.get('explanation', ''))}" for one in context.findings(row)]
    return row["summary"] + ("\n\n" + "\n\n".join(found) if found else "")


def _bracket(text: str) -> str:
    match = re.search(r"\[Data: [^\[\]]*\]", text)
    return match[0] if match else ""


def _block(number: int, text: str, cited: Mapping[str, Citation]) -> Item:
    """One paragraph of a report with the sources it refers to."""
    places = [cited[alias] for alias in re.findall(r"\bt\d+\b", text) if alias in cited]
    return Item(f"b{number}", text, None, "Report", also=tuple(places[:5]))


# ---- words -------------------------------------------------------------------------------------


def search_text(snapshot: Snapshot, query: str, *, max_tokens: int = 4_000, cursor: str = "") -> SearchResult:
    """Full text over the original passages. What stands in quotes must occur literally (case and width aside)."""
    budget, note = clamp_budget(max_tokens, 4_000)
    nothing = context.empty_corpus(snapshot, "text")
    if nothing is not None:
        return finish(nothing, budget)
    query = query.strip()
    if not query:
        raise BadInput("the query is empty", 'Give words to find, with exact ones in quotes: "to be or not"')
    offset = read_cursor(cursor, snapshot.manifest.generation, f"text|{query}", 1)
    if offset is None:
        return finish(context.stale(snapshot, "text"), budget)
    used = query[: fused.QUERY_CHARACTERS]
    literals = list(filter(None, (plain(next(filter(None, found.groups()))) for found in _QUOTED.finditer(used))))
    ranked = _matches(snapshot, used, literals)
    result = SearchResult(mode="text", corpus=snapshot.manifest.corpus, coverage={"passages": len(ranked)})
    result.hint = " ".join(filter(None, [note, context.query_length_note(query, fused.QUERY_CHARACTERS)]))
    if not ranked:
        said = ", ".join(f'"{one_line(one, 80)}"' for one in literals) or "any of these words"
        result.state = "not_found"
        result.text = f"None of {snapshot.manifest.counters.get('passages', 0)} passages holds {said}."
        result.hint = " ".join(filter(None, [result.hint, "Try fewer words without quotes, or local_search."]))
        return finish(result, budget)
    stop = offset[0] + max(8, budget // 130)
    items, places = context.passage_items(snapshot, ranked[offset[0] : stop])
    section = Section(
        "Sources", items, 1.0, offset[0], places=[offset[0] + place for place in places], more=stop < len(ranked)
    )
    asked = f"text|{query}"
    return compose(result, [section], budget, lambda after: write_cursor(snapshot.manifest.generation, asked, after))


def plain(text: str) -> str:
    """Text as literals are compared: NFKC, case folded, white space as one space."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _matches(snapshot: Snapshot, query: str, literals: Sequence[str]) -> list[tuple[str, float]]:
    """(passage id, score) best first: the whole query found literally before its words found apart."""
    worth, _ = fused.term_worth(snapshot, query_terms(query))
    names = ["id", "text", "terms", "n_terms"]
    found = snapshot.full_text("passages", list(worth), fused.CANDIDATES, names).select(names).to_pylist()
    found = [row for row in found if _holds(row, literals)]
    if literals and not found:  # only common words, or no word at all (an emoji, a fragment): read them all
        longest = max(literals, key=len).replace("'", "''")
        rows = snapshot.rows("passages", f"contains(lower(text), '{longest}')", names, limit=500).to_pylist()
        found = [row for row in rows if _holds(row, literals)]
    score = fused.bm25(snapshot, worth)
    whole = plain(query)
    raw = {row["id"]: score(row["terms"], row["n_terms"]) for row in found}
    top = max(raw.values(), default=0.0) or 1.0
    scored = [(row["id"], 0.9 * raw[row["id"]] / top + (0.1 if whole in plain(row["text"]) else 0.0)) for row in found]
    first = {row["id"]: whole in plain(row["text"]) for row in found} if not literals else {}
    return sorted(scored, key=lambda one: (not first.get(one[0], False), -round(one[1], 9), one[0]))


def _holds(row: Row, literals: Sequence[str]) -> bool:
    text = plain(row["text"]) if literals else ""
    return all(literal in text for literal in literals)


# ---- exact text --------------------------------------------------------------------------------


def get_source(snapshot: Snapshot, ids: Sequence[str], *, max_tokens: int = 4_000, around: int = 0) -> SourceResult:
    """The exact text behind ids of any kind, passage by passage, with `around` neighbours on both sides."""
    budget, note = clamp_budget(max_tokens, 4_000)
    given = [ids] if isinstance(ids, str) else [str(one) for one in ids]
    wanted = list(dict.fromkeys(match.group() for one in given for match in _ALIAS.finditer(one)))
    strange = [one for one in given if one.strip() and not _ALIAS.search(one)]
    if not wanted and not strange:
        raise BadInput("no ids were given", 'Give ids from a result, e.g. get_source(ids=["t33.2"])')
    notes = [note] if note else []
    if len(wanted) > IDS:
        notes.append(f"{len(wanted)} ids were given; the first {IDS} are shown.")
    found: dict[str, Row] = {}
    unknown = list(strange)
    for alias in wanted[:IDS]:
        rows = _passages_of(snapshot, alias)
        if not rows:
            unknown.append(alias)
        for row in _with_neighbours(snapshot, rows, min(max(around, 0), 10)):
            found.setdefault(row["id"], row)
    if not found:
        named = ", ".join(one[:40] for one in unknown[:5])
        raise NotFound(f"none of these ids is known: {named}", _range(snapshot, *"tderc"))
    if unknown:
        notes.append(f"Unknown ids: {', '.join(one[:40] for one in unknown[:10])}.")
    items = [_exact(row) for row in found.values()]
    result = SourceResult(hint=" ".join(notes))
    result = compose(result, [Section("Sources", items, 1.0)], budget, lambda _: "", into={"Sources": "sources"})
    rest = [item.id for item in items[len(result.sources) :]]
    if rest:
        result.next_call = f"get_source(ids={str(rest[:IDS]).replace(chr(39), chr(34))})"
    return finish(result, budget)


def _exact(row: Row) -> Item:
    item = source_item(row)
    head = item.text.partition("\n")[0]
    names = ("title", "uri", "document_id", "char_start", "char_end", "line_start", "line_end")
    data = {"id": item.id, **{name: row[name] for name in names}}
    return Item(item.id, f"{head}\n{row['text']}", None, "Sources", 0.0, item.tokens, data=data)


def _passages_of(snapshot: Snapshot, alias: str) -> list[Row]:
    """Passages that an id stands for, in reading order."""
    match = _ALIAS.fullmatch(alias)
    assert match is not None
    letter, row = match[1], None
    if match[4]:
        for kind, table in (("p", "passages"), ("u", "text_units"), *TABLE_OF.items()):
            row = row or next(iter(context.rows(snapshot, table, [match[4]])), None)
            letter = letter or (kind if row else None)
        if row is None:
            return []
    number = row["n"] if row else int(match[2])
    if letter in "tpu":
        part = row["part"] if row and letter == "p" else int(match[3] or 0)
        rows = [one for one in context.numbered(snapshot, "passages", [number]) if not part or one["part"] == part]
        return _ordered(rows)
    if letter == "d":  # its whole text is in its passages already
        document = snapshot.by_key("documents", [number], "n", ["id"])["id"].to_pylist()
        where = f"document_id = '{document[0] if document else ''}'"
        return _ordered(snapshot.verified("passages", snapshot.rows("passages", where)).to_pylist())
    row = row or next(iter(context.numbered(snapshot, TABLE_OF[letter], [number])), None)
    if row is None:
        return []
    units = snapshot.by_key("text_units", row["text_unit_ids"][:UNITS_PER_ID], "id", ["n"])["n"].to_pylist()
    rows = context.numbered(snapshot, "passages", units)
    names = {"e": {row["id"]}, "r": {row.get("source_id"), row.get("target_id")}}.get(letter, set())
    return _ordered([one for one in rows if names <= set(one["entity_ids"])] or rows)


def _ordered(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row["uri"], row["document_id"], row["position"]))


def _with_neighbours(snapshot: Snapshot, rows: list[Row], around: int) -> list[Row]:
    if not around or not rows:
        return rows
    near = [(row["document_id"], row["position"] - around, row["position"] + around) for row in rows[:50]]
    wanted = " OR ".join(f"(document_id = '{id}' AND position BETWEEN {low} AND {high})" for id, low, high in near)
    return _ordered(snapshot.verified("passages", snapshot.rows("passages", wanted)).to_pylist())


def _range(snapshot: Snapshot, *letters: str) -> str:
    """Which ids there are: `text units t1 to t40, ...`."""
    following = snapshot.manifest.next
    known = [f"{KIND[one]} {one}1 to {one}{following[one] - 1}" for one in letters if following.get(one, 1) > 1]
    return "Known are " + ", ".join(known) if known else "The corpus has none yet"
