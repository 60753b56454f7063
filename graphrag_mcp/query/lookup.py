"""Entities, community reports and exact sources by id or name, as agents write them (`e12`, `c5`,
`t33.2`, full ids, uris, names)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphrag_mcp.code.parse import parse
from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.packing.budget import (
    HIGHEST,
    SMALL,
    Item,
    Section,
    clamp_budget,
    compose,
    finish,
    one_line,
    render_references,
    short_references,
    shorten,
    source_item,
)
from graphrag_mcp.query import context, duplicates, hits, symbols, timeline, topics
from graphrag_mcp.query.context import resolve
from graphrag_mcp.query.duplicates import line, of_entity
from graphrag_mcp.sources.decode import headings
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.terms import bracketed, counted, normalise_name
from graphrag_mcp.trust.fencing import quoted
from graphrag_mcp.types import EntityResult, ReportResult, SourceResult

Row = dict[str, Any]
TABLE_OF = {
    "t": "passages",
    "d": "documents",
    "e": "entities",
    "r": "relationships",
    "c": "reports",
    "k": "claims",
}
KIND = {
    "t": "text units",
    "d": "documents",
    "e": "entities",
    "r": "relationships",
    "c": "communities",
    "k": "claims",
}
UNITS_PER_ID = 10  # of one entity, relationship or community, when its sources are asked for
IDS = 20
STATEMENT = 260  # characters of a sentence on a relationship
GIVEN = 2_000  # characters of one string of ids that are read
GAP = 400  # characters of white space and lines of no words that may lie between two passages
_ALIAS = re.compile(
    r"(?:([tderck])(\d{1,12})(?:\.(\d{1,6}))?|([0-9a-f]{32}))(\+)?", re.IGNORECASE | re.ASCII
)
_SECTION = re.compile(r"d(\d{1,12})#(\d{1,6})", re.IGNORECASE | re.ASCII)
_GROUP = re.compile(  # the words of a citation of ours
    r"\[Data:|\b(?:Sources|Entities|Relationships|Reports|Claims)(?=\s{0,4}\()", re.IGNORECASE
)
_BETWEEN = re.compile(r"[\s,;|/()\[\]`'\"]+")


def get_source(
    snapshot: Snapshot, ids: Sequence[str], *, max_tokens: int = 4_000, around: int = 0
) -> SourceResult:
    """The exact text behind ids of any kind, passage by passage, with `around` neighbours on both
    sides."""
    budget, note = clamp_budget(max_tokens, 4_000)
    items, notes = exact(snapshot, ids, around)
    return shown(items, [note, *notes], budget)


def shown(items: Sequence[Item], notes: Sequence[str], budget: int) -> SourceResult:
    """As many of the items as fit; the others, and one that was cut, are in the next call."""
    hint, into = " ".join(filter(None, notes)), {"Sources": "sources"}
    result = compose(
        SourceResult(hint=hint), [Section("Sources", items, 1.0)], budget, lambda _: "", into=into
    )
    if not (rest := _left(items, finish(result, budget))):
        return result
    result = SourceResult(hint=hint, next_call=_call(rest))  # its place is kept free this time
    result = compose(result, [Section("Sources", items, 1.0)], budget, lambda _: "", into=into)
    rest = _left(items, result)
    # Not even the first fits: with the same budget the call could only give the same.
    larger = (
        min(max(4_000, int(items[0].tokens * 1.2) + 300), HIGHEST) if len(rest) == len(items) else 0
    )
    result.next_call, result.truncated = _call(rest, larger), True
    result = finish(result, budget)
    again = _left(items, result)
    result.next_call = _call(again, larger) if len(again) > len(rest) else result.next_call
    return result


def _left(items: Sequence[Item], result: SourceResult) -> list[Item]:
    """What does not stand in the text to its end."""
    return [
        item for item in items if quoted(item.text.partition("\n")[2].strip()) not in result.text
    ]


def _call(rest: Sequence[Item], max_tokens: int = 0) -> str:
    """The call for what is left; many that follow each other in a document are one id (`t33.2+`)."""
    ids = [item.id for item in rest]
    if len(ids) > IDS:
        ids = [
            item.id + ("+" if at + 1 < len(rest) and _follows(item, rest[at + 1]) else "")
            for at, item in enumerate(rest)
            if not at or not _follows(rest[at - 1], item)
        ]
    larger = f", max_tokens={max_tokens}" if max_tokens else ""
    return f"get_source(ids={json.dumps(ids[:IDS])}{larger})"


def _follows(one: Item, other: Item) -> bool:
    """Is `other` the next passage of the same document?"""
    here, there = one.data or {}, other.data or {}
    return (
        here["document_id"] == there["document_id"]
        and 0 < there["char_start"] - here["char_start"]
        and (there["char_start"] <= here["char_end"] + GAP)
    )


def exact(snapshot: Snapshot, ids: Sequence[str], around: int = 0) -> tuple[list[Item], list[str]]:
    """The passages behind ids, each once, and what is to be said about the ids."""
    given = [ids] if isinstance(ids, str) else [str(one) for one in ids]
    meant = {one: _meant(snapshot, one) for one in given if one.strip()}
    wanted = list(dict.fromkeys(alias for aliases in meant.values() for alias in aliases))
    strange = [one for one, aliases in meant.items() if not aliases]
    if not wanted and not strange:
        raise BadInput(
            "no ids were given", 'Give ids from a result, e.g. get_source(ids=["t33.2"])'
        )
    notes = []
    if len(wanted) > IDS:
        notes.append(f"{len(wanted)} ids were given; the first {IDS} are shown.")
    found: dict[str, Row] = {}
    unknown = list(strange)
    at_once = _of_units(snapshot, wanted[:IDS])
    for alias in wanted[:IDS]:
        rows = _section(snapshot, alias) if "#" in alias else _passages_of(snapshot, alias, at_once)
        if not rows:
            unknown.append(alias)
        for row in _with_neighbours(snapshot, rows, min(max(around, 0), 10)):
            found.setdefault(row["id"], row)
    if not found:
        named_ids = ", ".join(one[:40] for one in unknown[:5])
        gone = any(was_given(snapshot, one) for one in unknown)
        why = ". What they named has changed or is gone; search again" if gone else ""
        raise NotFound(
            f"none of these ids is known: {named_ids}{why}", id_range(snapshot, *"tderck")
        )
    if unknown:
        notes.append(f"Unknown ids: {', '.join(one[:40] for one in unknown[:10])}.")
    documents = context.document_aliases(snapshot, [row["document_id"] for row in found.values()])
    return [
        _exact(row, documents.get(row["document_id"], row["document_id"])) for row in found.values()
    ], notes


def _meant(snapshot: Snapshot, given: str) -> list[str]:
    """The ids that one reference stands for. An id is one only where it is the whole reference or
    stands in a list of ids: `text:d2` and `notes/t33.md` are uris, known or not."""
    alone = _bare(given)
    if _SECTION.fullmatch(alone):
        return [alone.lower()]
    if _ALIAS.fullmatch(alone):
        return [alone.lower()]
    if found := _by_uri(snapshot, given) or _aliases(given):
        return found
    named = context.symbols_named(snapshot, alone[:300])[: symbols.SAME]
    return [f"e{row['n']}" for row in named]


def _aliases(given: str) -> list[str]:
    """The ids of a list of ids, as in `t1, t3` or `[Data: Sources (t1, t3)]`; [] where it holds
    anything else."""
    cut = given[:GIVEN]
    if len(given) > GIVEN:
        cut = cut[: max((cut.rfind(sign) for sign in " ,;/|\n"), default=0)]  # no part of an id
    parts = _BETWEEN.split(_GROUP.sub(" ", cut))
    found = [part for part in parts if part and part.lower() not in ("and", "see", "+more")]
    return [one.lower() for one in found] if all(map(_ALIAS.fullmatch, found)) else []


def _bare(given: str) -> str:
    return given.strip().strip("[]()`'\" ")


def _by_uri(snapshot: Snapshot, given: str) -> list[str]:
    """Aliases of the documents with this uri, or whose uri ends with it."""
    if not (bare := _bare(given)) or len(given) > 1_000:
        return []
    for one in dict.fromkeys((given, given.strip(), bare)):
        quoted = one.replace("'", "''")
        where = f"uri = '{quoted}' OR uri = 'text:{quoted}'"
        found = snapshot.rows("documents", where, ["n", "uri"]).to_pylist()
        if found:
            break
    else:
        where = f"ends_with(uri, '/{quoted}') OR starts_with(uri, '{quoted}#')"
        found = snapshot.rows("documents", where, ["n", "uri"]).to_pylist()
    found.sort(key=lambda row: row["uri"])
    whole = [row for row in found if row["uri"] == one]
    return [f"d{row['n']}" for row in (whole or found)[:IDS]]


def _exact(row: Row, document: str) -> Item:
    item = source_item(row, 0.0, document, True)
    head = item.text.partition("\n")[0]
    if alias := row.get("alias", ""):  # a definition: asked for again by its own id
        item = replace(item, id=alias)
        head = f"[{alias}] {head.partition('] ')[2]}"
    names = ("title", "uri", "document_id", "char_start", "char_end", "line_start", "line_end")
    data = {"id": item.id, **{name: row[name] for name in names}, "document_id": document}
    return Item(item.id, f"{head}\n{row['text']}", None, "Sources", 0.0, item.tokens, data=data)


def _of_units(snapshot: Snapshot, aliases: Sequence[str]) -> dict[int, list[Row]]:
    """Passages by the number of their text unit, of all these ids in one reading: nine apart took
    four times that."""
    matches = filter(None, map(_ALIAS.fullmatch, aliases))
    numbers = {int(match[2]) for match in matches if match[1] == "t"}
    found: dict[int, list[Row]] = {number: [] for number in numbers}
    for row in context.numbered(snapshot, "passages", sorted(numbers)):
        found[row["n"]].append(row)
    return found


def _passages_of(snapshot: Snapshot, alias: str, units: Mapping[int, list[Row]]) -> list[Row]:
    """Passages that an id stands for, in reading order; those of `units` are at hand."""
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
        of_unit = (
            units[number] if number in units else context.numbered(snapshot, "passages", [number])
        )
        rows = [one for one in of_unit if not part or one["part"] == part]
        return _to_the_end(snapshot, rows) if match[5] else _ordered(rows)
    if letter == "d":  # its whole text is in its passages already
        document = snapshot.by_key("documents", [number], "n", ["id"])["id"].to_pylist()
        where = f"document_id = '{document[0] if document else ''}'"
        return _ordered(snapshot.rows("passages", where).to_pylist())
    row = row or next(iter(context.numbered(snapshot, TABLE_OF[letter], [number])), None)
    if row is None:
        return []
    if letter == "e" and context.is_symbol(row) and (own := symbols.definition(snapshot, row)):
        return own
    held = [row["text_unit_id"]] if letter == "k" else row["text_unit_ids"][:UNITS_PER_ID]
    units = snapshot.by_key("text_units", held, "id", ["n"])["n"].to_pylist()
    rows = context.numbered(snapshot, "passages", units)
    names = {"e": {row["id"]}, "r": {row.get("source_id"), row.get("target_id")}}.get(letter, set())
    return _ordered([one for one in rows if names <= set(one["entity_ids"])] or rows)


def section_of(text: str, number: int, uri: str = "") -> tuple[int, int] | None:
    """The characters of the heading with this number (from 1) and what stands under it; of source
    code those of the definition."""
    if source := parse(uri, text):
        inside = source.symbols[1:]
        if 0 < number <= len(inside):
            return (inside[number - 1].start, inside[number - 1].end)
        return None
    listed = list(headings(text))
    if not 0 < number <= len(listed):
        return None
    start, level, _ = listed[number - 1]
    ends = (place for place, other, _ in listed[number:] if other <= level)
    return start, next(ends, len(text))


def _section(snapshot: Snapshot, alias: str) -> list[Row]:
    """Passages of the section under a heading of the outline: `d4#3`, the third one."""
    match = _SECTION.fullmatch(alias)
    assert match is not None
    for document in context.numbered(snapshot, "documents", [int(match[1])]):
        span = section_of(document["text"], int(match[2]), document["uri"])
        if span is None:
            return []
        names = ["id", "char_start", "char_end"]
        passages = snapshot.by_key("passages", [document["id"]], "document_id", names).to_pylist()
        passages.sort(key=lambda row: row["char_start"])
        inside = [
            row for row in passages if row["char_start"] < span[1] and row["char_end"] > span[0]
        ]
        return context.rows(snapshot, "passages", [row["id"] for row in inside])
    return []


def _to_the_end(snapshot: Snapshot, rows: list[Row]) -> list[Row]:
    """The rest of the document, from the first of these passages on."""
    if not rows:
        return []
    first = _ordered(rows)[0]
    where = f"document_id = '{first['document_id']}' AND position >= {first['position']}"
    return _ordered(snapshot.rows("passages", where).to_pylist())


def _ordered(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row["uri"], row["document_id"], row["position"]))


def _with_neighbours(snapshot: Snapshot, rows: list[Row], around: int) -> list[Row]:
    if not around or not rows:
        return rows
    near = [
        (row["document_id"], row["position"] - around, row.get("last", row["position"]) + around)
        for row in rows[:50]
    ]
    wanted = " OR ".join(
        f"(document_id = '{id}' AND position BETWEEN {low} AND {high})" for id, low, high in near
    )
    return _ordered(snapshot.rows("passages", wanted).to_pylist())


def was_given(snapshot: Snapshot, id: str) -> bool:
    """Did an id once name something here? Ids are never given twice."""
    match = re.fullmatch(r"([a-z])(\d{1,12})(?:\.\d{1,9})?\+?", id)
    return match is not None and 0 < int(match[2]) < snapshot.manifest.next.get(match[1], 1)


def id_range(snapshot: Snapshot, *letters: str) -> str:
    """Which ids were ever given: `text units t1 to t40, ...`."""
    following = snapshot.manifest.next
    known = [
        f"{KIND[one]} {one}1 to {one}{following[one] - 1}"
        for one in letters
        if following.get(one, 1) > 1
    ]
    return "Known are " + ", ".join(known) if known else "The corpus has none yet"


# ---- entity ------------------------------------------------------------------------------------


def get_entity(
    snapshot: Snapshot,
    id_or_name: str,
    *,
    max_tokens: int = 3_000,
    response_format: str = "concise",
    order: str = "",
    other: str = "",
) -> EntityResult:
    """One entity with its evidence and strongest relationships; candidates when the name is not
    exact. With `order="time"` its timeline, or that of what names it and `other`."""
    budget, note = clamp_budget(max_tokens, 3_000)
    asked = id_or_name.strip().strip("[]` ")
    if not asked:
        raise BadInput("no entity was named", "Give its name or an id such as e12")
    row, candidates = resolve(snapshot, asked)
    if row is None:
        return _candidates(snapshot, asked, candidates, budget, note)
    symbol = context.is_symbol(row)
    own = (
        symbol
        or normalise_name(asked) in {row["key"], *row["names"]}
        or asked in (f"e{row['n']}", row["id"])
    )
    hint = "" if own else f"{asked[:80]!r} was read as {one_line(row['title'], 80)} (e{row['n']})."
    if candidates:
        hint += f" Others hold this name: {context.named_list(candidates)}."
    others = [_facts(row) for row in candidates]
    if order == "time" or other:
        return _timeline(
            snapshot, row, other.strip().strip("[]` "), budget, f"{note} {hint}".strip()
        )
    result = EntityResult(
        id=f"e{row['n']}",
        title=row["title"],
        type=row["type"],
        aliases=row["aliases"][:10],
        description=shorten(one_line(row["description"], 300), budget // 10),
        degree=row["degree"],
        frequency=row["frequency"],
        hint=" ".join(filter(None, [note, hint])),
        candidates=others,
    )
    path = snapshot.by_key("memberships", [row["id"]], "entity_id", ["path"])["path"].to_pylist()
    near = path[0] if path else []
    groups = snapshot.by_key("reports", near, "id", ["id", "n", "title"]).to_pylist()
    groups.sort(key=lambda group: near.index(group["id"]))
    result.communities = [f"c{group['n']}" for group in groups]
    also = ""
    if result.aliases:
        also = f"\nAlso: {', '.join(one_line(alias, 60) for alias in result.aliases)}"
    held = f"{counted(row['frequency'], 'text units')}, {counted(row['degree'], 'relationships')}."
    intro = f"# {one_line(row['title'], 200)} {bracketed(result.id, row['type'])}\n{held}{also}"
    if edited := duplicates.about(snapshot, row):
        intro += f"\n{edited}"
    if groups:
        intro += "\nCommunities: " + "; ".join(
            f"{one_line(group['title'], 80)} (c{group['n']})" for group in groups
        )
    # a model's or an agent's words; ours are the evidence below
    said = one_line(row["description"], 600)
    sentences = [one_line(one["text"], 2_000) for one in row["evidence"]]
    if said and (symbol or not any(said[:40] in one or one[:40] in said for one in sentences)):
        intro += f"\n\n{shorten(said, budget // 4)}"
    most = 40 if response_format == "detailed" else 12
    sections = symbols.sections(snapshot, row, 3 * most) if symbol else []
    if row["type"] == "module" and (told := symbols.reported(row, groups)):
        sections.insert(0, symbols.report(snapshot, told["id"]))
    sections += [
        Section("Evidence", _evidence(snapshot, row), 0.3 if symbol else 0.5),
        Section("Relationships", [] if symbol else _relationships(snapshot, row, most), 0.4),
        Section("Claims", context.claims_about(snapshot, [row]), 0.1, header=context.CLAIMS),
        Section("Perhaps the same", _proposed(snapshot, row), 0.05),
    ]
    into = {"Relationships": "relationships"}
    result = compose(
        result, sections, budget, lambda _: "", intro=intro, first="Evidence", into=into
    )
    if result.truncated and not result.hint and not symbol:
        result.hint = f'More text: get_source(ids=["{result.id}"]).'
    if symbol:
        result.hint = f"{result.hint} {symbols.text_of(result.id)}".strip()
    return finish(result, budget)


def _timeline(snapshot: Snapshot, row: Row, other: str, budget: int, note: str) -> EntityResult:
    """What is said of an entity, or of it and another one, by the days that it speaks of."""
    both = [row]
    if other:
        second, candidates = resolve(snapshot, other)
        if second is None:
            return _candidates(snapshot, other, candidates, budget, note)
        both.append(second)
    items, undated = timeline.of(snapshot, both)
    title = " and ".join(f"{one_line(one['title'], 100)} (e{one['n']})" for one in both)
    result = EntityResult(
        id=f"e{row['n']}", title=row["title"], type=row["type"], hint=f"{note} {undated}".strip()
    )
    intro = f"# {title}: {counted(len(items), 'statements')} by time"
    return finish(
        compose(result, [Section("Timeline", items, 1.0)], budget, lambda _: "", intro=intro),
        budget,
    )


def _candidates(
    snapshot: Snapshot, asked: str, found: Sequence[Row], budget: int, note: str
) -> EntityResult:
    """Several entities could be meant, or none: what tells them apart."""
    result = EntityResult(state="not_found", title=one_line(asked, 100))
    items = []
    for row in found:
        alias, title = f"e{row['n']}", one_line(row["title"], 100)
        facts = _facts(row)
        text = (
            f"- [{alias}] {title} {bracketed(row['type'], counted(row['degree'], 'relationships'))}"
        )
        items.append(
            Item(alias, f"{text}: {context.first_sentence(row['description'], 160)}", data=facts)
        )
    intro = f"There is no entity named {one_line(asked, 100)!r}." + (
        " Did you mean one of these?" if items else ""
    )
    advice = "Use search_text."
    if items:
        advice = "Call get_entity with an id from the list, or search_text for the words."
    if by := duplicates.hidden(snapshot, normalise_name(asked[:300])):
        undo = f'edit_graph(op="undo", ids=["{by}"], dry_run=false) brings it back'
        advice = f"{one_line(asked, 100)!r} was deleted by hand: {undo}. {advice}"
    result.hint = " ".join(filter(None, [note, advice]))
    sections, into = [Section("Candidates", items, 1.0)], {"Candidates": "candidates"}
    return compose(
        result, sections, budget, lambda _: "", intro=intro, first="Candidates", into=into
    )


def _facts(row: Row) -> dict[str, Any]:
    return {
        "id": f"e{row['n']}",
        "title": one_line(row["title"], 100),
        "type": row["type"],
        "degree": row["degree"],
    }


def _proposed(snapshot: Snapshot, row: Row) -> list[Item]:
    """Names that may mean this entity too; edit_graph merges or rejects them."""
    return [
        Item(f"p{number}", line(one)) for number, one in enumerate(of_entity(snapshot, row)[:3])
    ]


def _evidence(snapshot: Snapshot, row: Row) -> list[Item]:
    """The entity's sentences, each with the place where it stands."""
    units = context.unit_citations(
        snapshot, list(dict.fromkeys(one["text_unit_id"] for one in row["evidence"]))
    )
    items = []
    for one in row["evidence"]:
        unit = units.get(one["text_unit_id"])
        if unit is not None:
            cited = context.sentence_citation(unit, one["start"], one["end"])
            items.append(
                Item(unit.id, f"- {one_line(one['text'], 500)} [{unit.id}]", cited, "Evidence")
            )
    return items


def _relationships(snapshot: Snapshot, entity: Row, most: int) -> list[Item]:
    """The strongest relationships, each with the sentence that says it best. What is linked with
    everything counts less: weight / (1 + ln of the other's degree)."""
    id = entity["id"]
    ends = ["source_id", "target_id"]
    light = snapshot.rows(
        "relationships", f"source_id = '{id}' OR target_id = '{id}'", ["id", "weight", *ends]
    ).to_pylist()
    far = [
        next(row[end] for end in ends[::-1] if row[end] != id or end == ends[0]) for row in light
    ]
    known = snapshot.by_key("entities", far, "id", ["id", "degree"])
    degree = dict(zip(known["id"].to_pylist(), known["degree"].to_pylist(), strict=True))
    worth = {
        row["id"]: row["weight"] / (1 + math.log(max(degree.get(other, 1), 1)))
        for row, other in zip(light, far, strict=True)
    }
    light.sort(key=lambda row: (-round(worth[row["id"]], 9), row["id"]))
    found = context.rows(snapshot, "relationships", [row["id"] for row in light[:most]])
    others = [row["target_id"] if row["source_id"] == id else row["source_id"] for row in found]
    names = {
        row["id"]: row
        for row in snapshot.by_key("entities", others, "id", ["id", "n", "title"]).to_pylist()
    }
    units = context.unit_citations(
        snapshot, [row["evidence"][0]["text_unit_id"] for row in found if row["evidence"]]
    )
    items, shown = [], {}  # a sentence that names ten of them is written once
    for row, other_id in zip(found, others, strict=True):
        other = names.get(other_id)
        if other is None:
            continue
        title, alias = one_line(other["title"], 80), f"r{row['n']}"
        said, cited = context.relationship_statement(row, units, STATEMENT)
        again = shown.setdefault(said, alias)
        said = said if again == alias or len(said) < 30 else f"as {again}"
        place = f" [{cited.id}]" if cited else ""
        text = f"- [{alias}] {title} (e{other['n']}), weight {row['weight']:g}: {said}{place}"
        data = {
            "id": alias,
            "entity": title,
            "entity_id": f"e{other['n']}",
            "weight": row["weight"],
        }
        items.append(Item(alias, text, cited, "Relationships", row["weight"], data=data))
    return items


# ---- report ------------------------------------------------------------------------------------


NEXT = 60  # tokens that the next call takes
_STATEMENT = re.compile(r".*?\[Data: [^\[\]]*\]", re.DOTALL)


def get_community_report(
    snapshot: Snapshot,
    community_id: str,
    *,
    response_format: str = "concise",
    max_tokens: int = 4_000,
) -> ReportResult:
    budget, note = clamp_budget(max_tokens, 4_000)
    asked = str(community_id).strip().strip("[]` ")
    match = re.fullmatch(r"c?(\d{1,12})", asked, re.IGNORECASE)
    found = context.numbered(snapshot, "reports", [int(match[1])]) if match else []
    if not found and re.fullmatch(r"[0-9a-f]{32}", asked):
        found = context.rows(snapshot, "reports", [asked])
    if not found:
        known = f"{id_range(snapshot, 'c')}; global_search finds them"
        gone = " any more" if match and was_given(snapshot, f"c{match[1]}") else ""
        raise NotFound(f"there is no community {asked[:60]!r}{gone}", known)
    row = found[0]
    family = snapshot.by_key(
        "communities", [row["id"]], "id", ["parent", "children", "size"]
    ).to_pylist()
    parent, children = (family[0]["parent"], family[0]["children"]) if family else ("", [])
    kin = snapshot.by_key(
        "reports", [*([parent] if parent else []), *children], "id", ["id", "n", "title"]
    ).to_pylist()
    aliases = {one["id"]: f"c{one['n']}" for one in kin}
    members = snapshot.by_key(
        "entities", row["entity_ids"], "id", ["id", "n", "title", "degree"]
    ).to_pylist()
    members.sort(key=lambda one: (-one["degree"], one["id"]))
    result = ReportResult(
        id=f"c{row['n']}",
        title=row["title"],
        level=row["level"],
        rating=row["rank"],
        method=row["method"],
        parent=aliases.get(parent, ""),
        children=[aliases[id] for id in children if id in aliases][:40],
        members=[f"e{one['n']} {one_line(one['title'], 60)}" for one in members[:20]],
        stale="communities" in snapshot.manifest.stale,
        hint=note,
    )
    above = next((one["title"] for one in kin if one["id"] == parent), "")
    detailed = response_format == "detailed"
    page = hits.page_of(result, budget - (NEXT if budget >= SMALL else 0))
    result.truncated = not _report(snapshot, page, row, result, above, detailed)
    result.text, result.citations = page.text().rstrip(), list(page.citations.values())
    if result.truncated and SMALL <= budget < HIGHEST:  # with less, words count more
        larger = min(2 * budget, HIGHEST)
        result.next_call = f'get_community_report(community_id="{result.id}", max_tokens={larger})'
    return finish(result, budget)


def _report(
    snapshot: Snapshot, page: hits.Page, row: Row, result: ReportResult, above: str, detailed: bool
) -> bool:
    """Add the report to the page, in one shape for rules, agents and models. True where all of it had
    room."""
    topic, share = topics.topic_of(snapshot, row["id"])
    who = "chosen sentences" if row["method"] == "extractive" else f"written by {row['method']}"
    lines = [
        f"# {one_line(row['title'], 200)} ({result.id})",
        f"{share}; level {row['level']}, {who}.",
    ]
    if topic.names or result.members:
        names = ", ".join(topic.names) or ", ".join(result.members[:5])
        lines.append(f"Names: {names}")
    if above:
        lines.append(f"Part of: {one_line(above, 80)} [{result.parent}]")
    if below := topics.inside(snapshot, topic):
        lines.append(f"Inside: {below}")
    text = re.sub(r"\A# .*\n+", "", row["full_content"]) if detailed else _brief(row)
    named, cited = context.resolve_references(snapshot, [text])
    text = render_references(text, named) if detailed else short_references(text, named)
    page.add("\n".join([*lines, ""]))
    left = 0
    for block in re.split(r"\n{2,}", text.strip()):
        places = [cited[alias] for alias in re.findall(r"\bt\d+\b", block) if alias in cited][:5]
        if left or not page.add(f"{block}\n" if detailed else block, places):
            left += 1
    if topic.central:
        page.add(f"\nDocuments: {'; '.join(topic.central)}")
    return not left


def _brief(row: Row) -> str:
    """The summary, and each finding with its first statement."""
    found = []
    for one in context.findings(row):
        heading, told = str(one.get("summary", "")), str(one.get("explanation", ""))
        first = _STATEMENT.match(told.strip())
        said = first[0] if first else told
        if told.startswith(heading):
            found.append(f"- {said}")
        elif row["method"] == "extractive":  # names, in an index of an earlier release
            found.append(f"- {heading}: {said}")
        else:  # a statement itself
            found.append(f"- {heading} {_bracket(told)}")
    return "\n\n".join([row["summary"], *found])


def _bracket(text: str) -> str:
    match = re.search(r"\[Data: [^\[\]]*\]", text)
    return match[0] if match else ""
