"""Entities, community reports and sources by id or name, as agents write them (`e12`, `c5`,
`t33.2`, full ids, uris, names)."""

from __future__ import annotations

import heapq
import json
import math
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from graphrag_mcp.code.parse import parse
from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.packing import budget as packing
from graphrag_mcp.packing.budget import HIGHEST, SMALL, Item, Section, compose, finish, one_line
from graphrag_mcp.query import (
    context,
    duplicates,
    entities,
    extracts,
    passages,
    series,
    symbols,
    timeline,
    topics,
)
from graphrag_mcp.query.entities import resolve
from graphrag_mcp.query.explore import candidates, entity_facts, statements
from graphrag_mcp.query.question import term_worth
from graphrag_mcp.query.times import Times, read
from graphrag_mcp.sources.decode import headings
from graphrag_mcp.store.tables import Snapshot, rows_of
from graphrag_mcp.text.prose import language_of, readable, says_something, sentences, stands_alone
from graphrag_mcp.text.terms import bracketed, counted, normalise_name, query_terms, terms
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.trust.fencing import quoted
from graphrag_mcp.types import EntityResult, ReportResult, SourceResult

Row = dict[str, Any]


class Place(NamedTuple):
    """A sentence: its worth, that on the question alone, what it holds of the question, its passage,
    its span in the passage's text, and the thing asked after that it is on."""

    value: float
    bearing: float
    holds: float
    passage: str
    start: int
    end: int
    thing: int = -1


# What an id begins with: its table, and what the rows are called.
KINDS = {
    "t": ("passages", "text units"),
    "d": ("documents", "documents"),
    "e": ("entities", "entities"),
    "r": ("relationships", "relationships"),
    "c": ("reports", "communities"),
    "k": ("claims", "claims"),
}
SEVERAL = 3  # documents of a series that name a person, who may be another one elsewhere
UNITS_PER_ID = 10  # of one entity, relationship or community, when its sources are asked for
IDS = 20
NAMES = 100  # ids of a call that are looked up: a name of nothing takes 5 ms
TIMELINE_FRAME = 60  # tokens around a timeline: its heading, fences and the hint
STATEMENT = 260  # characters of a sentence on a relationship
LEAST, BEARING = 100, 1_000  # tokens of a document that is read with a question
TEXT = 0.75  # of the budget, beside the heads of passages
HEAD = 40  # beside them
ON_IT = 0.4  # of the worth of its best sentence
AROUND = 0.2  # of the worth of a sentence whose passage holds no word of the question
# Of the worth of the best document, below which one sentence of a document is shown, and none where it
# also holds so little of the question; of up to SELECT documents, which a caller chose, each is shown.
LITTLE, SELECT = 0.25, 5
SAME, OFF = "Same text as others shown:", "Little or nothing on this in"
PLACES = 12  # passages of a document that are quoted
MAIN, CENTRAL = 8, 0.3  # terms that a document is about; worth of a sentence that holds them
FACTS = 5  # figures and names of a sentence that count
SHORT = 0.05  # of the worth of what says too little to be a sentence
ROW = 0.5  # of a thing that a question asks after, which a row of a table must hold
QUERY = 1_000  # characters of that question
GIVEN = 2_000  # characters of one string of ids that are read
GAP = 400  # characters of white space and lines of no words that may lie between two passages
_ALIAS = re.compile(r"([tderck])(\d{1,12})(?:\.(\d{1,6}))?(\+)?", re.IGNORECASE | re.ASCII)
_FULL_ID = re.compile(r"[0-9a-f]{32}")
_SECTION = re.compile(r"d(\d{1,12})#(\d{1,6})", re.IGNORECASE | re.ASCII)
_GROUP = re.compile(  # the words of a citation of ours
    r"\[Data:|\b(?:Sources|Entities|Relationships|Reports|Claims)(?=\s{0,4}\()", re.IGNORECASE
)
# A link or image, also one that is cut at an end of the text.
_LINKED = re.compile(
    r"!?\[[^\[\]\n]{0,300}\]\([^()\n]{0,2000}\)|\A[^\[\]\n]{0,200}\]\([^()\n]{0,2000}\)|"
    r"!?\[[^\[\]\n]{0,300}(?:\]\([^()\n]{0,2000})?\Z"
)
_BETWEEN = re.compile(r"[\s,;|/()\[\]`'\"]+")


def get_source(
    snapshot: Snapshot,
    ids: Sequence[str],
    *,
    max_tokens: int = 4_000,
    around: int = 0,
    raw: bool = False,
    query: str = "",
) -> SourceResult:
    """The text behind ids of any kind, passage by passage, with `around` neighbours on both sides:
    without addresses of links, images and menus, or to the letter with `raw`; with `query` a few
    sentences of each document."""
    budget, note = packing.clamp_budget(max_tokens, 4_000)
    items, notes = passage_items(snapshot, ids, around, raw, query, budget)
    return shown(items, [note, *notes], budget, options(raw, query))


def options(raw: bool, query: str) -> str:
    """What the call for the rest repeats of this one."""
    asked = f", query={json.dumps(query[:QUERY], ensure_ascii=False)}" if query else ""
    return f"{asked}{', raw=true' if raw else ''}"


def shown(
    items: Sequence[Item], notes: Sequence[str], budget: int, options: str = ""
) -> SourceResult:
    """As many items as fit, of each id about the same; the next call has what is left."""

    def composed(room: int) -> tuple[SourceResult, list[Item]]:
        sections = [Section("Sources", _fair(items, room), 1.0)]
        result = SourceResult(hint=" ".join(filter(None, notes)))
        result = finish(compose(result, sections, room, into={"Sources": "sources"}), room)
        said = ((one, quoted(one.text.partition("\n")[2].strip())) for one in items)
        return result, [one for one, text in said if text not in result.text]

    result, rest = composed(budget)
    if not rest:
        return result
    nothing, larger = len(rest) == len(items), 0
    if not nothing:
        result, rest = composed(budget - count_tokens(_call(rest, larger, options)))
        nothing = len(rest) == len(items)
    if nothing:  # with the same budget the call could only give the same
        larger = min(max(4_000, int(items[0].tokens * 1.2) + 300), HIGHEST)
        result, rest = composed(budget - count_tokens(_call(items, larger, options)))
    result.next_call, result.truncated = _call(rest, larger, options), True
    return finish(result, budget)


def _fair(items: Sequence[Item], room: int) -> list[Item]:
    """The first passages of every id that fit, then the second ones, in reading order."""
    turns = sorted(range(len(items)), key=lambda at: -items[at].score)
    taken = [turns[0]] if turns else []
    left = room - sum(items[at].tokens for at in taken)
    for at in turns[1:]:
        left -= items[at].tokens
        if left < 0:
            break
        taken.append(at)
    return [items[at] for at in sorted(taken)]


def _call(rest: Sequence[Item], max_tokens: int, options: str) -> str:
    """The call for what is left; many that follow each other in a document are one id (`t33.2+`)."""
    ids = [item.id for item in rest]
    if len(ids) > IDS:
        ids = [
            item.id + ("+" if at + 1 < len(rest) and _follows(item, rest[at + 1]) else "")
            for at, item in enumerate(rest)
            if not at or not _follows(rest[at - 1], item)
        ]
    larger = f", max_tokens={max_tokens}" if max_tokens else ""
    return f"get_source(ids={json.dumps(ids[:IDS])}{larger}{options})"


def _follows(one: Item, other: Item) -> bool:
    """Is `other` the next passage of the same document?"""
    here, there = one.data or {}, other.data or {}
    behind = here["char_start"] < there["char_start"] <= here["char_end"] + GAP
    return behind and here["document_id"] == there["document_id"]


def passage_items(
    snapshot: Snapshot,
    ids: Sequence[str],
    around: int = 0,
    raw: bool = False,
    query: str = "",
    budget: int = 4_000,
) -> tuple[list[Item], list[str]]:
    """The passages behind ids, each once, with `query` what bears on it; and notes on the ids."""
    given = [ids] if isinstance(ids, str) else [str(one) for one in ids]
    given = list(dict.fromkeys(one for one in given if one.strip()))
    meant = {one: _meant(snapshot, one) for one in given[:NAMES]}
    if not meant:
        example = 'Give ids from a result, e.g. get_source(ids=["t33.2"])'
        raise BadInput("no ids were given", example)
    wanted = list(dict.fromkeys(alias for aliases in meant.values() for alias in aliases))
    notes = []
    if len(given) > NAMES:
        notes.append(f"{len(given)} ids were given; the first {NAMES} were looked up.")
    if len(wanted) > IDS:
        notes.append(f"{len(wanted)} ids were given; the first {IDS} were read.")
    unknown = [one for one, aliases in meant.items() if not aliases]
    whole = raw or bool(query.strip())
    found, turns, left_out = _found(snapshot, wanted[:IDS], unknown, around, whole)
    if not found:
        named_ids = ", ".join(one[:40] for one in unknown[:5])
        gone = any(was_given(snapshot, one) for one in unknown)
        why = ". What they named has changed or is gone; search again" if gone else ""
        raise NotFound(f"none of these ids is known: {named_ids}{why}", id_range(snapshot, *KINDS))
    if unknown:
        notes.append(f"Unknown ids: {', '.join(one[:40] for one in unknown[:10])}.")
    if left_out:
        of_links = counted(left_out, "passages")
        notes.append(f"Left out: {of_links} of links (raw=true shows them).")
    documents = context.document_aliases(snapshot, [row["document_id"] for row in found.values()])
    said = read(snapshot, [] if raw else [*found.values()])
    items: list[Item] = []
    rows = list(found.values())
    if query.strip() and not raw:
        rows, repeated = _bearing(snapshot, found, query, budget)
        notes += [repeated] if repeated else []
    for row in rows:
        document = documents.get(row["document_id"], row["document_id"])
        item = _passage_item(row, document, raw, said.get(row["id"]))
        item = replace(item, score=-turns[row["id"]])
        last = items[-1] if items else None
        quoted_before = query.strip() and last and (last.data or {})["document_id"] == document
        if last and (quoted_before or _follows(last, item)):  # under the head of the one before
            head, _, text = item.text.partition("\n")
            lines = f" (lines {row['line_start']}-{row['line_end']})"
            lines = "" if _follows(last, item) else lines
            item = replace(item, text=f"{head.partition('] ')[0]}]{lines}\n{text}")
        items.append(item)
    return items, notes


def _found(
    snapshot: Snapshot, aliases: Sequence[str], unknown: list[str], around: int, whole: bool
) -> tuple[dict[str, Row], dict[str, int], int]:
    """The passages behind ids, the place of each among those of its id, and how many of documents
    are left out, since they only hold links, where these are not asked for as a `whole`. Adds ids
    of nothing to `unknown`."""
    found: dict[str, Row] = {}
    turns: dict[str, int] = {}
    left_out: set[str] = set()
    for alias in aliases:
        rows = _section(snapshot, alias) if "#" in alias else _passages_of(snapshot, alias)
        if not rows:
            unknown.append(alias)
        if (alias[0] == "d" or alias[-1] == "+") and not whole:
            told = [row for row in rows if not _only_links(row["text"])] or rows
            left_out |= {row["id"] for row in rows} - {row["id"] for row in told}
            rows = told
        for turn, row in enumerate(_with_neighbours(snapshot, rows, min(max(around, 0), 10))):
            found.setdefault(row["id"], row)
            turns.setdefault(row["id"], turn)
    return found, turns, len(left_out - found.keys())


def _bearing(
    snapshot: Snapshot, found: Mapping[str, Row], query: str, budget: int
) -> tuple[list[Row], str]:
    """The passages with only those sentences that say most on the question, of each document its share
    of the budget; and which documents are left out: the same text as another one, or little on it."""
    worth, _ = term_worth(snapshot, query_terms(query[:QUERY]))
    things, asked = passages.things_of(query, worth), extracts.question_of(snapshot, worth, query)
    known = topics.count(snapshot)
    of_document: dict[str, list[str]] = {}
    kept: dict[str, list[tuple[int, int]]] = {}
    for id, row in found.items():
        if language_of(row["uri"]):  # code has no sentences
            kept[id] = [(0, len(row["text"]))]
        else:
            row["text"] = known.own(row["document_id"], readable(row["text"]))
            own = of_document.setdefault(row["document_id"], [])
            own += [] if id in known.furniture else [id]
    places: dict[str, list[Place]] = {}
    for document, ids in of_document.items():
        held = {id: set(terms(found[id]["text"])) for id in ids}
        central = _central(held.values(), known)
        places[document] = [
            place
            for id, some in held.items()
            for place in _valued(id, found[id]["text"], some, things, asked, central)
        ]
    best = {id: max((one.bearing for one in own), default=0.0) for id, own in places.items()}
    holds = {id: max((one.holds for one in own), default=0.0) for id, own in places.items()}
    least = LITTLE if len(places) > SELECT else 0.0
    worst = least * max(best.values(), default=0.0)
    off = {id for id in best if holds[id] < least * max(holds.values()) and best[id] < 2 * worst}
    shown: list[frozenset[int]] = []
    apart: dict[str, list[str]] = {SAME: [], OFF: []}
    for document, own in list(places.items()):
        runs = passages.runs_of(" ".join(_text(found, one) for one in own))
        if not own or document in off:
            apart[OFF].append(document)
        elif any(passages.alike(runs, other) for other in shown):
            apart[SAME].append(document)
        else:
            shown.append(runs)
            if best[document] < worst:
                places[document] = [max(own, key=lambda one: one.holds * one.bearing)]
            continue
        del places[document]
    share = min(max(int(budget * TEXT) // max(len(places), 1) - HEAD, LEAST), BEARING)
    for own in places.values():
        for one in _best_places(found, own, share):
            kept.setdefault(one.passage, []).append((one.start, one.end))
    for id, spans in kept.items():
        text = _joined(found[id]["text"], sorted(spans))
        found[id] |= {"text": text, "n_tokens": count_tokens(text)}
    aliases = context.document_aliases(snapshot, [one for some in apart.values() for one in some])
    notes = (f"{to} {', '.join(map(aliases.get, some))}." for to, some in apart.items() if some)
    return [row for id, row in found.items() if id in kept], " ".join(notes)


def _best_places(found: Mapping[str, Row], own: Sequence[Place], room: int) -> Iterator[Place]:
    """Of a document the first sentence, where it has no title, the best one on each thing asked
    after, and other good ones of a few passages, each with the one behind it, in so many tokens;
    at least one."""
    ranked = sorted(own, key=lambda one: -one.value)
    least = ON_IT * ranked[0].value
    leading = list({one.thing: one for one in reversed(ranked) if one.thing >= 0}.values())
    begins = found[own[0].passage]
    if begins["uri"].endswith(begins["title"]):
        leading.insert(0, own[0])
    ranked = list(dict.fromkeys([*leading, *ranked]))
    among = list(dict.fromkeys(one.passage for one in ranked))[:PLACES]
    behind = {one: other for one, other in pairwise(own) if one.passage == other.passage}
    given: set[Place] = set()
    for one in (one for one in ranked if one.passage in among):
        if given and one.value < least and one not in leading:
            return
        for part in (one, behind.get(one)):
            if part is None or part in given:
                continue
            price = count_tokens(_text(found, part))
            if given and room < price:
                if part is one:
                    return
                continue
            room -= price
            given.add(part)
            yield part


def _text(found: Mapping[str, Row], place: Place) -> str:
    return found[place.passage]["text"][place.start : place.end]


def _central(held_by: Collection[Set[str]], known: topics.Counts) -> Callable[[Set[str]], float]:
    """How much terms of a document say of it, up to 1: rare terms that its passages come back to."""
    counts = Counter(term for held in held_by for term in held)
    every = len(known.passages) + 1
    worth = {
        term: math.log1p(count) * math.log(every / (len(known.places.get(term, ())) + 1))
        for term, count in counts.items()
    }
    whole = math.fsum(heapq.nlargest(MAIN, worth.values())) or 1.0
    return lambda held: min(math.fsum(worth.get(term, 0.0) for term in held) / whole, 1.0)


def _valued(
    id: str,
    text: str,
    held: Set[str],
    things: Sequence[passages.Worth],
    asked: extracts.Asked,
    central: Callable[[Set[str]], float],
) -> Iterator[Place]:
    """The sentences of a passage that say something, and figures under a word of the question, with
    what they are worth: by the words of the question in them and around them, by their figures and
    names, and by what they say of the document. `held`: the terms of the passage."""
    around = AROUND + asked.held_by(held)
    for at, (start, end) in enumerate(sentences(text)):
        said = text[start:end]
        figures = passages.figures(said)
        shares, solid = [passages.share_of(said, [one]) for one in things], stands_alone(said)
        share, tells = max(shares), says_something(said)
        if not tells and figures and share > ROW:  # of a table: "DEAD 714"
            tells, solid = True, 1.0
        own = set(terms(said))
        on_it = max(share, asked.held_by(own))
        telling = min(2 * figures + passages.facts(said) / 2, FACTS) / FACTS
        bearing = (on_it * (0.1 + 0.9 * solid) + 0.5 * telling * solid) * around
        value = bearing + CENTRAL * central(own) * solid * (1 + telling)
        if tells:
            thing = shares.index(share) if share > ROW else -1
            yield Place(value, bearing, on_it, id, start, end, thing)
        elif not at or share > ROW:  # where nothing else of a document is told
            yield Place(value * SHORT, bearing * SHORT, on_it, id, start, end)


def _joined(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """These parts of a text with who says them, and … for what is left out between them."""
    said, last = "", spans[0][0]
    for start, end in spans:
        between, part = text[last:start], text[start:end]
        turn = not said or "\n" in between
        gap = between if not between.strip() else " …\n" if turn else " … "
        said += gap + (passages.with_speaker(text, start, part) if turn else part)
        last = end
    return said


# ---- which ids are meant -------------------------------------------------------------------------


def _meant(snapshot: Snapshot, given: str) -> list[str]:
    """The ids that one reference stands for. An id is one only where it is the whole reference or
    stands in a list of ids: `text:d2` and `notes/t33.md` are uris, known or not."""
    alone = given.strip().strip("[]()`'\" ")
    if _SECTION.fullmatch(alone) or _ALIAS.fullmatch(alone):
        return [alone.lower()]
    if _FULL_ID.fullmatch(alone):
        return _of_full_id(snapshot, alone)
    if found := _by_uri(snapshot, given, alone) or _aliases(given):
        return found
    if named := entities.symbols_named(snapshot, alone[:300])[: symbols.SAME]:
        return [f"e{row['n']}" for row in named]
    files = snapshot.rows("documents", f"contains(uri, '{_sql(alone)}.')", ["n", "uri"]).to_pylist()
    same = [row for row in files if PurePosixPath(row["uri"]).stem == alone]  # a name without .txt
    return [f"d{row['n']}" for row in same] if len(same) == 1 else []


def _sql(text: str) -> str:
    return text[:1_000].replace("'", "''")


def _of_full_id(snapshot: Snapshot, id: str) -> list[str]:
    """The short id of the row with this content id."""
    for letter, table in [("t", "text_units"), *((one, kind[0]) for one, kind in KINDS.items())]:
        for row in snapshot.served(table, [id]):
            return [packing.passage_alias(row) if table == "passages" else f"{letter}{row['n']}"]
    return []


def _aliases(given: str) -> list[str]:
    """The ids of a list, as `t1, t3` or `[Data: Sources (t1, t3)]`; [] for anything else."""
    cut = given[:GIVEN]
    if len(given) > GIVEN:
        cut = cut[: max((cut.rfind(sign) for sign in " ,;/|\n"), default=0)]  # no part of an id
    parts = _BETWEEN.split(_GROUP.sub(" ", cut))
    found = [part for part in parts if part and part.lower() not in ("and", "see", "+more")]
    return [one.lower() for one in found] if all(map(_ALIAS.fullmatch, found)) else []


def _by_uri(snapshot: Snapshot, given: str, bare: str) -> list[str]:
    """Aliases of the documents with this uri or path, or whose uri ends with it."""
    if not bare or len(given) > 1_000:
        return []
    spellings = list(dict.fromkeys((given, given.strip(), bare, *_uris_of(snapshot, bare))))
    names = [_sql(one) for one in spellings]
    ways = [f"uri = '{one}' OR uri = 'text:{one}'" for one in names]
    ways.append(f"ends_with(uri, '/{names[-1]}') OR starts_with(uri, '{names[-1]}#')")
    for where in ways:
        if found := snapshot.rows("documents", where, ["n", "uri"]).to_pylist():
            found.sort(key=lambda row: row["uri"])
            whole = [row for row in found if row["uri"] in spellings]
            return [f"d{row['n']}" for row in (whole or found)[:IDS]]
    return []


def _uris_of(snapshot: Snapshot, path: str) -> list[str]:
    """The uris that a path may have in this index: in the form of their accents (NFC), and for an
    absolute path `<label>/<path below the folder>`, the innermost folder last."""
    name = unicodedata.normalize("NFC", path)
    if not os.path.isabs(path):
        return [name]
    name, found = os.path.normpath(name), []
    for label, source in snapshot.manifest.sources.items():
        folder = unicodedata.normalize("NFC", source.get("path", "")).rstrip(os.sep) + os.sep
        if source.get("path") and name.startswith(folder):
            found.append((len(folder), f"{label}/{name[len(folder) :].replace(os.sep, '/')}"))
    return [uri for _, uri in sorted(found)]


# ---- the passages behind an id -------------------------------------------------------------------


def _passage_item(row: Row, document: str, raw: bool, said: Times | None = None) -> Item:
    """Below its text what relative dates in it mean."""
    item = packing.source_item(row, 0.0, document, True)
    code = language_of(row["uri"])
    text = row["text"] if raw or code else readable(row["text"])
    text = text or "(links, images or rules only: raw=true shows them)"
    if said and not code and (note := said.note(one_line(text, len(text)))):
        text = f"{text}\n{note}"
    head = item.text.partition("\n")[0]
    if alias := row.get("alias", ""):  # a definition: asked for again by its own id
        item = replace(item, id=alias)
        head = f"[{alias}] {head.partition('] ')[2]}"
    names = ("title", "uri", "document_id", "char_start", "char_end", "line_start", "line_end")
    data = {"id": item.id, **{name: row[name] for name in names}, "document_id": document}
    tokens = item.tokens if text == row["text"] else count_tokens(f"{head}\n{text}") + 2
    return Item(item.id, f"{head}\n{text}", None, tokens=tokens, data=data)


def _only_links(text: str) -> bool:
    """Does it hold no words but those of links, as a sitemap?"""
    words = sum(map(str.isalnum, _LINKED.sub("", text)))
    return not readable(text) or ("](http" in text and 4 * words < len(_LINKED.findall(text)))


def _passages_of(snapshot: Snapshot, alias: str) -> list[Row]:
    """Passages that an id stands for, in reading order."""
    match = _ALIAS.fullmatch(alias)
    assert match is not None
    letter, number = match[1], int(match[2])
    found = context.numbered(snapshot, KINDS[letter][0], [number])
    if letter == "t":
        part = int(match[3] or 0)
        rows = _ordered([one for one in found if not part or one["part"] == part])
        if not match[4] or not rows:
            return rows
        place = f"document_id = '{rows[0]['document_id']}'"  # and what follows in it
        return _passages(snapshot, f"{place} AND position >= {rows[0]['position']}")
    if not found:
        return []
    row = found[0]
    if letter == "d":  # its whole text is in its passages already
        return _passages(snapshot, f"document_id = '{row['id']}'")
    if letter == "e" and entities.is_symbol(row) and (own := symbols.definition(snapshot, row)):
        return own
    ids = [row["text_unit_id"]] if letter == "k" else row["text_unit_ids"][:UNITS_PER_ID]
    units = snapshot.by_key("text_units", ids, "id", ["n"])["n"].to_pylist()
    rows = context.numbered(snapshot, "passages", units)
    names = {"e": {row["id"]}, "r": {row.get("source_id"), row.get("target_id")}}.get(letter, set())
    return _ordered([one for one in rows if names <= set(one["entity_ids"])] or rows)


def section_of(text: str, number: int, uri: str = "") -> tuple[int, int] | None:
    """The characters of the heading with this number (from 1) and what stands under it; of source
    code those of the definition."""
    if source := parse(uri, text):
        inside = source.symbols[1:]
        if 0 < number <= len(inside):
            return inside[number - 1].start, inside[number - 1].end
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
        if span := section_of(document["text"], int(match[2]), document["uri"]):
            place = f"char_start < {span[1]} AND char_end > {span[0]}"
            return _passages(snapshot, f"document_id = '{document['id']}' AND {place}")
    return []


def _passages(snapshot: Snapshot, where: str) -> list[Row]:
    return _ordered(snapshot.rows("passages", where).to_pylist())


def _ordered(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row["uri"], row["document_id"], row["position"]))


def _with_neighbours(snapshot: Snapshot, rows: list[Row], around: int) -> list[Row]:
    if not around or not rows:
        return rows
    near = []
    for row in rows[:50]:
        low, high = row["position"] - around, row.get("last", row["position"]) + around
        near.append(f"(document_id = '{row['document_id']}' AND position BETWEEN {low} AND {high})")
    return _passages(snapshot, " OR ".join(near))


def was_given(snapshot: Snapshot, id: str) -> bool:
    """Did an id once name something here? Ids are never given twice."""
    match = re.fullmatch(r"([a-z])(\d{1,12})(?:\.\d{1,9})?\+?", id)
    return match is not None and 0 < int(match[2]) < snapshot.manifest.next.get(match[1], 1)


def id_range(snapshot: Snapshot, *letters: str) -> str:
    """Which ids were ever given: `text units t1 to t40, ...`."""
    following = snapshot.manifest.next
    ever = (one for one in letters if following.get(one, 1) > 1)
    known = [f"{KINDS[one][1]} {one}1 to {one}{following[one] - 1}" for one in ever]
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
    budget, note = packing.clamp_budget(max_tokens, 3_000)
    asked = id_or_name.strip().strip("[]` ")
    if not asked:
        raise BadInput("no entity was named", "Give its name or an id such as e12")
    row, found = resolve(snapshot, asked)
    if row is None:
        return _candidates(snapshot, asked, found, budget, note)
    hints, symbol = [note], entities.is_symbol(row)
    own = {row["key"], *row["names"], f"e{row['n']}", row["id"]}
    if not symbol and own.isdisjoint((asked, normalise_name(asked))):
        title = f"{one_line(row['title'], 80)} (e{row['n']})"
        hints.append(f"{asked[:80]!r} was read as {title}.")
    if found:
        hints.append(f"Others hold this name: {entities.named_list(found)}.")
    hint = " ".join(filter(None, hints))
    if order == "time" or other:
        return _timeline(snapshot, row, other.strip().strip("[]` "), budget, hint)
    path = snapshot.by_key("memberships", [row["id"]], "entity_id", ["path"])["path"].to_pylist()
    near = path[0] if path else []
    groups = snapshot.by_key("reports", near, "id", ["id", "n", "title"]).to_pylist()
    groups.sort(key=lambda group: near.index(group["id"]))
    result = EntityResult(
        id=f"e{row['n']}",
        title=row["title"],
        type=row["type"],
        aliases=row["aliases"][:10],
        description=packing.shorten(one_line(row["description"], 300), budget // 10),
        degree=row["degree"],
        frequency=row["frequency"],
        communities=[f"c{group['n']}" for group in groups],
        hint=hint,
        candidates=[entity_facts(one) for one in found],
    )
    intro, into = _intro(snapshot, row, groups, symbol, budget), {"Relationships": "relationships"}
    most = 40 if response_format == "detailed" else 12
    sections = _sections(snapshot, row, groups, symbol, most)
    result = compose(result, sections, budget, intro=intro, first="Evidence", into=into)
    if symbol:
        result.hint = f"{result.hint} {symbols.text_of(result.id)}".strip()
    elif result.truncated and not result.hint:
        result.hint = f'More text: get_source(ids=["{result.id}"]).'
    return finish(result, budget)


def _sections(
    snapshot: Snapshot, row: Row, groups: Sequence[Row], symbol: bool, most: int
) -> list[Section]:
    sections = symbols.sections(snapshot, row, 3 * most) if symbol else []
    if symbol and row["type"] == "module" and (about := symbols.reported(row, groups)):
        sections.insert(0, symbols.report(snapshot, about["id"]))
    return [
        *sections,
        Section("Evidence", _evidence(snapshot, row), 0.3 if symbol else 0.5),
        Section("Relationships", [] if symbol else _relationships(snapshot, row, most), 0.4),
        Section("Claims", context.claims_about(snapshot, [row]), 0.1, header=context.CLAIMS),
        Section("Perhaps the same", _proposed(snapshot, row), 0.05),
    ]


def _intro(snapshot: Snapshot, row: Row, groups: Sequence[Row], symbol: bool, budget: int) -> str:
    """Name, counts, other names, edits, communities, and what a model or an agent says."""
    id = f"e{row['n']}"
    lines = [f"# {one_line(row['title'], 200)} {bracketed(id, row['type'])}"]
    counts = (counted(row["frequency"], "text units"), counted(row["degree"], "relationships"))
    lines.append(f"{', '.join(counts)}.")
    if row["aliases"]:
        lines.append(f"Also: {', '.join(one_line(alias, 60) for alias in row['aliases'][:10])}")
    lines += filter(None, [duplicates.about(snapshot, row), _several_people(snapshot, row)])
    if groups:
        named = (f"{one_line(group['title'], 80)} (c{group['n']})" for group in groups)
        lines.append(f"Communities: {'; '.join(named)}")
    description = one_line(row["description"], 600)
    sentences = [one_line(readable(one["text"]), 2_000) for one in row["evidence"]]
    if description and (
        symbol or not any(description[:40] in one or one[:40] in description for one in sentences)
    ):
        lines += ["", packing.shorten(description, budget // 4)]
    return "\n".join(lines)


def _several_people(snapshot: Snapshot, row: Row) -> str:
    """The series of documents that name a person by one word, which may be several people."""
    if row["type"] != "person" or " " in row["title"]:
        return ""
    units = snapshot.by_key("text_units", row["text_unit_ids"], "id", ["document_id"])
    found = series.grouped(snapshot, set(units["document_id"].to_pylist()))
    named = {one: ids for one, ids in found.items() if one and len(ids) >= SEVERAL}
    if len(named) < 2:
        return ""
    listed = ", ".join(f"{one.title} {len(ids)}" for one, ids in named.items() if one)
    return f"This name may stand for several people. Documents by series: {listed}."


def _timeline(snapshot: Snapshot, row: Row, other: str, budget: int, note: str) -> EntityResult:
    """What is said of an entity, or of it and another one, by the days that it speaks of."""
    both = [row]
    if other:
        second, candidates = resolve(snapshot, other)
        if second is None:
            return _candidates(snapshot, other, candidates, budget, note)
        both.append(second)
    title = " and ".join(f"{one_line(one['title'], 100)} (e{one['n']})" for one in both)
    used = count_tokens(title) + count_tokens(note) + TIMELINE_FRAME
    items, how_many, undated = timeline.of(snapshot, both, budget - used)
    facts = {"id": f"e{row['n']}", "title": row["title"], "type": row["type"]}
    result = EntityResult(**facts, hint=f"{note} {undated}".strip())
    intro = f"# {title}: {how_many}, by time"
    return finish(compose(result, [Section("Timeline", items, 1.0)], budget, intro=intro), budget)


def _candidates(
    snapshot: Snapshot, asked: str, found: Sequence[Row], budget: int, note: str
) -> EntityResult:
    """Several entities could be meant, or none; or the name was deleted by hand."""
    advice = "Use search_text."
    if found:
        advice = "Call get_entity with an id from the list, or search_text for the words."
    if by := duplicates.hidden(snapshot, normalise_name(asked[:300])):
        undo = f'edit_graph(op="undo", ids=["{by}"], dry_run=false) brings it back'
        advice = f"{one_line(asked, 100)!r} was deleted by hand: {undo}. {advice}"
    result = EntityResult(title=one_line(asked, 100), hint=note)
    return candidates(snapshot, result, asked, found, budget, advice)


def _proposed(snapshot: Snapshot, row: Row) -> list[Item]:
    """Names that may mean this entity too; edit_graph merges or rejects them."""
    found = duplicates.of_entity(snapshot, row)[:3]
    return [Item(f"p{number}", duplicates.line(one)) for number, one in enumerate(found)]


def _evidence(snapshot: Snapshot, row: Row) -> list[Item]:
    """The entity's sentences, each with the place where it stands."""
    held = dict.fromkeys(one["text_unit_id"] for one in row["evidence"])
    units, items = context.unit_citations(snapshot, list(held)), []
    for one in row["evidence"]:
        unit = units.get(one["text_unit_id"])
        if unit is not None:
            cited = context.sentence_citation(unit, one["start"], one["end"])
            told = one_line(readable(one["text"]), 500)
            items.append(Item(unit.id, f"- {told} [{unit.id}]", cited, "Evidence"))
    return items


def _relationships(snapshot: Snapshot, entity: Row, most: int) -> list[Item]:
    """The strongest relationships, each with the sentence that says it best. What is linked with
    everything counts less: weight / (1 + ln of the other's degree)."""
    id = entity["id"]
    ends = ["source_id", "target_id"]
    where = f"source_id = '{id}' OR target_id = '{id}'"
    light = snapshot.rows("relationships", where, ["id", "weight", *ends]).to_pylist()
    far = [row["source_id" if row["target_id"] == id else "target_id"] for row in light]
    degree = dict(rows_of(snapshot.by_key("entities", far, "id", ["id", "degree"])))
    for row, other in zip(light, far, strict=True):
        row["strength"] = row["weight"] / (1 + math.log(max(degree.get(other, 1), 1)))
    light.sort(key=lambda row: (-round(row["strength"], 9), row["id"]))
    items = []
    wanted = [row["id"] for row in light[:most]]
    for row, pair, text, cited in statements(snapshot, wanted, STATEMENT, id):
        other = next((end for end in pair if end["id"] != id), entity)
        data = {"id": f"r{row['n']}", "entity": one_line(other["title"], 80)}
        data |= {"entity_id": f"e{other['n']}", "weight": row["weight"]}
        items.append(Item(data["id"], text, cited, score=row["weight"], data=data))
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
    budget, note = packing.clamp_budget(max_tokens, 4_000)
    asked = str(community_id).strip().strip("[]` ")
    match = re.fullmatch(r"c?(\d{1,12})", asked, re.IGNORECASE)
    found = context.numbered(snapshot, "reports", [int(match[1])]) if match else []
    if not found and re.fullmatch(r"[0-9a-f]{32}", asked):
        found = snapshot.served("reports", [asked])
    if not found:
        known = f"{id_range(snapshot, 'c')}; global_search finds them"
        gone = " any more" if match and was_given(snapshot, f"c{match[1]}") else ""
        raise NotFound(f"there is no community {asked[:60]!r}{gone}", known)
    row = found[0]
    family = snapshot.served("communities", [row["id"]], ["parent", "children", "size"])
    parent, children = (family[0]["parent"], family[0]["children"]) if family else ("", [])
    ids = [*filter(None, [parent]), *children]
    kin = snapshot.by_key("reports", ids, "id", ["id", "n", "title"]).to_pylist()
    aliases = {one["id"]: f"c{one['n']}" for one in kin}
    members = snapshot.served("entities", row["entity_ids"], ["id", "n", "title", "degree"])
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
    page = passages.page_of(result, budget - (NEXT if budget >= SMALL else 0))
    result.truncated = not _report(snapshot, page, row, result, above, detailed)
    result.text, result.citations = page.text().rstrip(), list(page.citations.values())
    if result.truncated and SMALL <= budget < HIGHEST:  # with less, words count more
        larger = min(2 * budget, HIGHEST)
        result.next_call = f'get_community_report(community_id="{result.id}", max_tokens={larger})'
    return finish(result, budget)


def _report(
    snapshot: Snapshot,
    page: passages.Page,
    row: Row,
    result: ReportResult,
    above: str,
    detailed: bool,
) -> bool:
    """Add the report to the page, in one shape for all methods. True where all had room."""
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
    if result.stale:
        context.note(result, "Communities are being brought up to date.")
        gone = set(packing.referenced_ids(text).get("Sources", ())) - named["Sources"].keys()
        if gone:
            texts = f"{counted(len(gone), 'texts')} that this report cites"
            context.note(result, f"{texts} left the index since it was written.")
    write = packing.render_references if detailed else packing.short_references
    text = write(text, named)
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
    found = [row["summary"]]
    for one in context.findings(row):
        heading, explanation = str(one.get("summary", "")), str(one.get("explanation", "")).strip()
        first = _STATEMENT.match(explanation)
        if explanation.startswith(heading):
            found.append(f"- {first[0] if first else explanation}")
        else:
            reference = re.search(r"\[Data: [^\[\]]*\]", explanation)
            found.append(f"- {heading} {reference[0] if reference else ''}")
    return "\n\n".join(found)
