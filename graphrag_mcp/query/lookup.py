"""Entities, community reports and sources by id or name, as agents write them (`e12`, `c5`,
`t33.2`, full ids, uris, names)."""

from __future__ import annotations

import heapq
import json
import math
import os
import posixpath
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import unquote

from graphrag_mcp import plugins
from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.packing import budget as packing
from graphrag_mcp.packing.budget import HIGHEST, SMALL, Item, Section, compose, finish, one_line
from graphrag_mcp.query import (
    context,
    duplicates,
    entities,
    links,
    local,
    note_sources,
    plugin,
    render,
    series,
    summaries,
    threads,
    timeline,
    times,
    topics,
)
from graphrag_mcp.query.entities import resolve
from graphrag_mcp.query.explore import candidates, entity_facts, statements
from graphrag_mcp.query.filters import Filters, Narrowed
from graphrag_mcp.query.hits import names_of
from graphrag_mcp.query.pages import folders, uris_of
from graphrag_mcp.query.plugin import SearchingPlugin
from graphrag_mcp.query.question import term_worth
from graphrag_mcp.query.times import Times, read
from graphrag_mcp.sources.decode import headings
from graphrag_mcp.store.tables import Snapshot, once, rows_of, values_of
from graphrag_mcp.text import places, quote
from graphrag_mcp.text.citing import Fingerprint
from graphrag_mcp.text.prose import readable
from graphrag_mcp.text.terms import bracketed, counted, lists_of, normalise_name, query_terms
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.trust.fencing import quoted
from graphrag_mcp.types import Citation, EntityResult, ReportResult, SourceResult

Row = dict[str, Any]


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
SAME = 5  # entities that documents define under one name and that are given at once
RELATED = 12  # relationships of an entity that are shown
UNITS_PER_ID = 10  # of one entity, relationship or community, when its sources are asked for
IDS = 20
NAMES = 100  # ids of a call that are looked up: a name of nothing takes 5 ms
TIMELINE_FRAME = 60  # tokens around a timeline: its heading, fences and the hint
STATEMENT = 260  # characters of a sentence on a relationship
LEAST, BEARING = 100, 1_000  # tokens of a document that is read with a question
TEXT = 0.75  # of the budget, beside the heads of passages
HEAD = 40  # tokens of the head of a passage
ON_IT = 0.3  # of the score of a document's best sentence
MAIN, CENTRAL = 8, 0.2  # terms that a document is about; what they count beside the question
QUERY = 1_000  # characters of that question
GIVEN = 2_000  # characters of one string of ids that are read
THREADS = 3  # documents of which the mails of their thread are named
GAP = 400  # characters of white space and lines of no words that may lie between two passages
_ALIAS = re.compile(r"([tderck])(\d{1,12})(?:\.(\d{1,6}))?(\+)?", re.IGNORECASE | re.ASCII)
# A place as citations and editors write it: notes/b.md:1-3, notes/b.md:3, notes/b.md#L3-L5
_CITED_LINES = re.compile(
    r"(?P<path>[^\n]{1,1000}?)(?::|#L)(?P<first>\d{1,9})(?:-L?(?P<last>\d{1,9}))?"
)
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
    intro = "" if raw or query.strip() else _sections_first(snapshot, items, budget)
    return shown(items, [note, *notes], budget, options(raw, query), intro)


def _sections_first(snapshot: Snapshot, items: Sequence[Item], budget: int) -> str:
    """The sections of a document that is longer than the budget, with what was written of them, in
    half of the budget at most."""
    documents = {item.data["document_id"] for item in items if item.data}
    if len(documents) != 1 or sum(item.tokens for item in items) <= budget:
        return ""
    (alias,) = documents
    ids = context.numbered(snapshot, "documents", [int(alias[1:])])
    texts = [
        summary
        for row in ids
        for summary in summaries.read(snapshot, [row["id"]]).get(row["id"], ())
    ]
    lines = summaries.outline(snapshot, [summary for summary in texts if summary.place])
    page = render.Page(budget // 2 - HEAD)
    shown = [line for line in lines if page.add(line)]
    if not shown:
        return ""
    rest = f'\n- {len(lines) - len(shown)} more: list_documents(document="{alias}")'
    whole = next((f" {summary.text}" for summary in texts if summary.place == 0), "")
    head = f"[{alias}] {counted(len(lines), 'sections')}.{whole}"
    return "\n".join([head, *shown]) + (rest if len(shown) < len(lines) else "")


def options(raw: bool, query: str) -> str:
    """The arguments of this call that the call for the rest repeats."""
    asked = f", query={json.dumps(query[:QUERY], ensure_ascii=False)}" if query else ""
    return f"{asked}{', raw=true' if raw else ''}"


def shown(
    items: Sequence[Item], notes: Sequence[str], budget: int, options: str = "", intro: str = ""
) -> SourceResult:
    """As many items as fit behind the intro, of each id about the same; the next call has what is
    left."""

    def composed(room: int) -> tuple[SourceResult, list[Item]]:
        fair = _fair(items, room - count_tokens(intro))
        sections = [Section("Sources", fair, 1.0)]
        result = SourceResult(hint=" ".join(filter(None, notes)))
        source_result = compose(result, sections, room, intro=intro, into={"Sources": "sources"})
        result = finish(source_result, room)
        quotes = ((item, quoted(item.text.partition("\n")[2].strip())) for item in items)
        return result, [item for item, text in quotes if text not in result.text]

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


def _follows(item: Item, other: Item) -> bool:
    """Is `other` the next passage of the same document?"""
    here, there = item.data or {}, other.data or {}
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
    references = [ids] if isinstance(ids, str) else [str(reference) for reference in ids]
    references = list(dict.fromkeys(reference for reference in references if reference.strip()))
    meant = {reference: _meant(snapshot, reference) for reference in references[:NAMES]}
    if not meant:
        example = 'Give ids from a result, e.g. get_source(ids=["t33.2"])'
        raise BadInput("no ids were given", example)
    short_ids = list(dict.fromkeys(alias for aliases in meant.values() for alias in aliases))
    notes = []
    if len(references) > NAMES:
        notes.append(f"{len(references)} ids were given; the first {NAMES} were looked up.")
    if len(short_ids) > IDS:
        notes.append(f"{len(short_ids)} ids were given; the first {IDS} were read.")
    unknown = [reference for reference, aliases in meant.items() if not aliases]
    whole = raw or bool(query.strip())
    found, turns, left_out = _found(snapshot, short_ids[:IDS], unknown, around, whole)
    if not found:
        named_ids = ", ".join(reference[:40] for reference in unknown[:5])
        removed = any(was_given(snapshot, reference) for reference in unknown)
        why = ". What they named has changed or is gone; search again" if removed else ""
        raise NotFound(f"none of these ids is known: {named_ids}{why}", id_range(snapshot, *KINDS))
    if unknown:
        notes.append(f"Unknown ids: {', '.join(reference[:40] for reference in unknown[:10])}.")
    notes += _numbered_otherwise(snapshot, references[:IDS])
    if left_out:
        of_links = counted(left_out, "passages")
        notes.append(f"Left out: {of_links} of links (raw=true shows them).")
    of = list(dict.fromkeys(row["document_id"] for row in found.values()))
    notes += filter(None, (threads.told(snapshot, id) for id in of[:THREADS]))
    notes += filter(None, (_note(snapshot, id) for id in of))
    if not raw:
        _show_ids(snapshot, found)
    documents = context.document_aliases(snapshot, of)
    dates = read(snapshot, [] if raw else [*found.values()])
    items: list[Item] = []
    rows = snapshot.with_places(list(found.values()))
    if query.strip() and not raw:
        for row in rows:  # the sentences that are shown of it have the place of all of it
            if place := places.of_row(row):
                row["places"] = places.write([(0, place)])
        rows, repeated = _bearing(snapshot, found, query, budget)
        notes += [repeated] if repeated else []
    for row in rows:
        document_id: str = row["document_id"]
        document = documents.get(document_id, document_id)
        item = _passage_item(row, document, raw, dates.get(row["id"]))
        item = replace(item, score=-turns[row["id"]])
        last = items[-1] if items else None
        quoted_before = query.strip() and last and (last.data or {})["document_id"] == document
        if last and (quoted_before or _follows(last, item)):  # under the head of the one before
            head, _, text = item.text.partition("\n")
            where = places.of_row(row)
            lines = f" ({where})" if where else f" (lines {row['line_start']}-{row['line_end']})"
            lines = lines if where or not _follows(last, item) else ""
            item = replace(item, text=f"{head.partition('] ')[0]}]{lines}\n{text}")
        items.append(item)
    return items, notes


def changes(
    snapshot: Snapshot,
    ids: Sequence[str],
    kept: Callable[[Fingerprint], str],
    *,
    max_tokens: int = 4_000,
) -> SourceResult:
    """What the sources of notes said when they were cited, and what they say now. `kept` gives the
    text of a fingerprint, "" if it was not kept. BadInput if no id names a note."""
    budget, hint = packing.clamp_budget(max_tokens, 4_000)
    aliases = list(
        dict.fromkeys(alias for reference in ids[:NAMES] for alias in _meant(snapshot, reference))
    )
    rows = [row for alias in aliases[:IDS] for row in passages_of(snapshot, alias)[:1]]
    of = dict.fromkeys(row["document_id"] for row in rows)
    found = [id for id in of if note_sources.is_note(snapshot, id)]
    if not found:
        lists = 'list_documents(filters=["kind=note"]) lists the notes'
        raise BadInput("changes shows the sources of notes, and none of these ids is one", lists)
    blocks = [block for id in found for block in note_sources.differences(snapshot, id, kept)]
    result = SourceResult(hint=hint, text="\n\n".join(blocks))
    if (over := count_tokens(result.text)) > budget:
        share = budget / over
        blocks = [quote.clipped(block, {}, max(int(len(block) * share), LEAST)) for block in blocks]
        result.text, result.truncated = "\n\n".join(blocks), True
    return finish(result, budget)


# report0012.txt, chapter 3.md, bbc-7.html
_NUMBERED = re.compile(r"[^\W\d_]{0,40}[ _.-]?0{0,9}(\d{1,6})(?:\.\w{1,8})?")


@once
def _numbered(snapshot: Snapshot) -> tuple[dict[str, tuple[str, str]], dict[str, str]]:
    """Of each document whose file name ends in a number: id -> number and name; and number -> the first id."""
    names: dict[str, tuple[str, str]] = {}
    holders: dict[str, str] = {}
    for fact in times.documents(snapshot).values():
        id, *_, file = fact["document"]
        if number := _NUMBERED.fullmatch(file):
            names[id] = number[1], one_line(file, 60)
            holders.setdefault(number[1], id)
    return names, holders


def _numbered_otherwise(snapshot: Snapshot, ids: Sequence[str]) -> list[str]:
    """A note for the first `d` id whose number stands in the name of another file: who has read `bbc0128.txt`
    easily asks for d128, which may be `bbc0127.txt`."""
    numbers = {id[1:]: id for id in ids if re.fullmatch(r"d\d+", id)}
    if not numbers:
        return []
    names, holders = _numbered(snapshot)
    for number, asked in numbers.items():
        other = holders.get(number, asked)
        if asked in names and names[asked][0] != number and other != asked:
            return [f"{asked} is {names[asked][1]}; {names[other][1]} is {other}."]
    return []


def _note(snapshot: Snapshot, document: str) -> str:
    """What an agent has to know of a note that it reads: how it writes to it, and what became of its
    sources."""
    if not note_sources.is_note(snapshot, document):
        return ""
    row = snapshot.by_key("documents", [document], "id", ["n", "text"]).to_pylist()[0]
    alias = f"d{row['n']}"
    check, state = note_sources.check_of(row["text"]), note_sources.state(snapshot, document)
    text = f"{alias} is a note, its check value {check}. {state[0].upper()}{state[1:]}."
    if note_sources.since(note_sources.sources(snapshot, document)):
        text += f' get_source(ids=["{alias}"], changes=true) shows what they said and say.'
    return text


def _show_ids(snapshot: Snapshot, found: dict[str, Row]) -> None:
    """Put the ids of their sources into the passages of notes; a passage of definitions alone is not shown."""
    for id, row in list(found.items()):
        if note_sources.is_note(snapshot, row["document_id"]):
            text = note_sources.with_ids(snapshot, row)
            if text.strip() or len(found) == 1:
                row |= {"text": text, "n_tokens": count_tokens(text)}
            else:
                del found[id]


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
        rows = _section(snapshot, alias) if "#" in alias else passages_of(snapshot, alias)
        if not rows:
            unknown.append(alias)
        if (alias[0] == "d" or alias[-1] == "+") and not whole:
            kept = [row for row in rows if not _only_links(row["text"])] or rows
            left_out |= {row["id"] for row in rows} - {row["id"] for row in kept}
            rows = kept
        for turn, row in enumerate(_with_neighbours(snapshot, rows, min(max(around, 0), 10))):
            found.setdefault(row["id"], row)
            turns.setdefault(row["id"], turn)
    return found, turns, len(left_out - found.keys())


def _bearing(
    snapshot: Snapshot, found: dict[str, Row], query: str, budget: int
) -> tuple[list[Row], str]:
    """The passages with only the best sentences on the question, of each document its share of the
    budget and at least one; and which documents are left out since they say the same as another."""
    worth, _ = term_worth(snapshot, query_terms(query[:QUERY]))
    whole = math.fsum(worth.values()) or 1.0
    of_document = lists_of((row["document_id"], id) for id, row in found.items())
    share = min(max(int(budget * TEXT) // max(len(of_document), 1) - HEAD, LEAST), BEARING)
    passing = Filters(documents=frozenset(of_document))
    ranking = local.find(Narrowed(snapshot, passing), query[:QUERY], filters=passing)
    scores = {passage.id: passage.score for passage in ranking.passages if passage.id in found}
    kept: dict[str, list[quote.Quote]] = {}
    seen: list[frozenset[int]] = []

    def rarity(terms: list[str]) -> dict[str, float]:
        return term_worth(snapshot, terms)[0]

    same: list[str] = []
    for ids in of_document.values():
        if plugins.verbatim(found[ids[0]]["uri"]):  # it has no sentences
            kept |= {id: [] for id in ids}
            continue
        first = found[ids[0]]
        begins = len(of_document) > 1 and first["uri"].endswith(first["title"])
        bearing = [id for id in ids if scores.get(id) or (begins and id == ids[0])] or ids
        for id in bearing:
            found[id]["text"] = readable(found[id]["text"])
        own_weights = quote.weights_of([found[id]["text"] for id in bearing], rarity)
        scale = CENTRAL * whole / (math.fsum(heapq.nlargest(MAIN, own_weights.values())) or 1.0)
        about = {term: scale * value for term, value in own_weights.items()}
        about |= {term: value + about.get(term, 0.0) for term, value in worth.items()}
        top = max(scores.get(id, 0.0) for id in bearing)
        passages = {
            id: (found[id]["text"], scores.get(id, 0.0) / top if top else 1.0) for id in bearing
        }
        room = share if top or len(of_document) == 1 else LEAST  # others may hold the answer
        chosen = _best_of(passages, about, room, ids[0] if begins else "")
        if not chosen:  # of images or rules alone
            kept[ids[0]] = []
            continue
        runs = render.runs_of(
            " ".join(sentence.text for quotes in chosen.values() for sentence in quotes)
        )
        if any(render.alike(runs, other) for other in seen):
            name = names_of(snapshot)[found[ids[0]]["document_id"]]
            same.append(f"{name} [{packing.passage_alias(found[ids[0]])}]")
            continue
        seen.append(runs)
        kept |= chosen
    for id, quotes in kept.items():
        if quotes:
            text = _with_gaps(
                found[id]["text"], sorted(quotes, key=lambda sentence: sentence.start)
            )
            found[id] |= {"text": text, "n_tokens": count_tokens(text)}
    note = f"Same text as others shown: {', '.join(same)}." if same else ""
    return [row for id, row in found.items() if id in kept], note


def _best_of(
    passages: Mapping[str, tuple[str, float]], worth: Mapping[str, float], room: int, first: str
) -> dict[str, list[quote.Quote]]:
    """The best sentences of one document by passage, in about `room` tokens; at least one. `passages`:
    text and score, as a share of the best one's. The first sentence of the passage `first` is among
    them, since a document without a title says there what it is.

    A sentence counts with the mean of those beside it, times the square of its passage's score. Evidence
    shown in 1,000 tokens: of long documents (Chroma) 83 % instead of 57 %, of HotpotQA 98 instead of
    96, of CMRC 98 instead of 96; without the neighbours 81 % (Chroma)."""
    every: list[tuple[str, quote.Quote]] = []
    chosen: dict[str, list[quote.Quote]] = {}
    for id, (text, score) in passages.items():
        found = quote.scored(text, worth)
        for at, sentence in enumerate(found):
            beside = [
                other.score for other in (*found[max(at - 1, 0) : at], *found[at + 1 : at + 2])
            ]
            value = sentence.score + math.fsum(beside) / max(len(beside), 1)
            every.append((id, replace(sentence, score=score**2 * value)))
        if id == first and found:
            chosen[id] = [every.pop(-len(found))[1]]
    every.sort(key=lambda pair: -pair[1].score)
    for place, (id, sentence) in enumerate(every):
        room -= count_tokens(sentence.text)
        if place and (room < 0 or sentence.score < ON_IT * every[0][1].score):
            break
        chosen.setdefault(id, []).append(sentence)
    return chosen


def _with_gaps(text: str, sentences: Sequence[quote.Quote]) -> str:
    """These sentences of a text with who says them, and … for what is left out between them."""
    joined, last = "", sentences[0].start
    for sentence in sentences:
        between, part = text[last : sentence.start], text[sentence.start : sentence.end]
        turn = not joined or "\n" in between
        gap = between if not between.strip() else " …\n" if turn else " … "
        who = quote.speaker(text, sentence.start) if turn else ""
        joined += gap + ("" if part.startswith(who.strip()) else who) + part
        last = sentence.end
    return joined


# ---- which ids are meant -------------------------------------------------------------------------


def _meant(snapshot: Snapshot, reference: str) -> list[str]:
    """The ids that one reference stands for. An id is one only where it is the whole reference or
    stands in a list of ids: `text:d2` and `notes/t33.md` are uris, known or not."""
    alone = reference.strip().strip("[]()`'\" ")
    if _SECTION.fullmatch(alone) or _ALIAS.fullmatch(alone):
        return [alone.lower()]
    if _FULL_ID.fullmatch(alone):
        return _of_full_id(snapshot, alone)
    if found := _by_uri(snapshot, reference, alone) or _aliases(reference):
        return found
    if cited := _CITED_LINES.fullmatch(alone):
        path, first, last = cited["path"], int(cited["first"]), int(cited["last"] or cited["first"])
        documents = _by_uri(snapshot, path, path)
        if found := [
            id for document in documents for id in _at_lines(snapshot, document, first, last)
        ]:
            return found
    if named := plugin.named(snapshot, alone[:300])[:SAME]:
        return [f"e{row['n']}" for row in named]
    files = snapshot.rows("documents", f"contains(uri, '{_sql(alone)}.')", ["n", "uri"]).to_pylist()
    same = [row for row in files if PurePosixPath(row["uri"]).stem == alone]  # a name without .txt
    return [f"d{row['n']}" for row in same] if len(same) == 1 else []


def _at_lines(snapshot: Snapshot, document: str, first: int, last: int) -> list[str]:
    """The passages that these lines of a document (`d4`) lie in, in reading order."""
    rows = context.numbered(snapshot, "documents", [int(document[1:])])
    place = " OR ".join(f"document_id = '{row['id']}'" for row in rows)
    where = f"({place}) AND line_start <= {last} AND line_end >= {first}"
    columns = ["n", "part", "parts", "position"]
    found = snapshot.rows("passages", where, columns).to_pylist()
    return [packing.passage_alias(row) for row in sorted(found, key=lambda row: row["position"])]


def _sql(text: str) -> str:
    return text[:1_000].replace("'", "''")


def _of_full_id(snapshot: Snapshot, id: str) -> list[str]:
    """The short id of the row with this content id."""
    for letter, table in [
        ("t", "text_units"),
        *((letter, kind[0]) for letter, kind in KINDS.items()),
    ]:
        for row in snapshot.served(table, [id]):
            return [packing.passage_alias(row) if table == "passages" else f"{letter}{row['n']}"]
    return []


def _aliases(reference: str) -> list[str]:
    """The ids of a list, as `t1, t3` or `[Data: Sources (t1, t3)]`; [] for anything else."""
    cut = reference[:GIVEN]
    if len(reference) > GIVEN:
        cut = cut[: max((cut.rfind(sign) for sign in " ,;/|\n"), default=0)]  # no part of an id
    parts = _BETWEEN.split(_GROUP.sub(" ", cut))
    found = [part for part in parts if part and part.lower() not in ("and", "see", "+more")]
    return [alias.lower() for alias in found] if all(map(_ALIAS.fullmatch, found)) else []


def _by_uri(snapshot: Snapshot, reference: str, bare: str) -> list[str]:
    """Aliases of the documents with this uri or path, or whose uri ends with it."""
    if not bare or len(reference) > 1_000:
        return []
    spellings = list(dict.fromkeys((reference, reference.strip(), bare, *_uris_of(snapshot, bare))))
    names = [_sql(spelling) for spelling in spellings]
    ways = [f"uri = '{name}' OR uri = 'text:{name}'" for name in names]
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
    if name.startswith("file://"):
        name = unquote(name.removeprefix("file://"))
    if not os.path.isabs(name):
        return [name, posixpath.normpath(name)]
    return uris_of(folders(snapshot), name)[::-1]


# ---- the passages behind an id -------------------------------------------------------------------


def _passage_item(row: Row, document: str, raw: bool, dates: Times | None = None) -> Item:
    """Below its text what relative dates in it mean."""
    item = packing.source_item(row, 0.0, document, True)
    whole = plugins.verbatim(row["uri"])
    text = row["text"] if raw or whole else readable(row["text"])
    text = text or "(links, images or rules only: raw=true shows them)"
    if dates and not whole and (note := dates.note(one_line(text, len(text)))):
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


def passages_of(snapshot: Snapshot, alias: str) -> list[Row]:
    """Passages that an id stands for, in reading order."""
    match = _ALIAS.fullmatch(alias)
    assert match is not None
    letter, number = match[1], int(match[2])
    found = context.numbered(snapshot, KINDS[letter][0], [number])
    if letter == "t":
        part = int(match[3] or 0)
        rows = _ordered([row for row in found if not part or row["part"] == part])
        if not match[4] or not rows:
            return rows
        place = f"document_id = '{rows[0]['document_id']}'"  # and what follows in it
        return _passages(snapshot, f"{place} AND position >= {rows[0]['position']}")
    if not found:
        return []
    row = found[0]
    if letter == "d":  # its whole text is in its passages already
        return _passages(snapshot, f"document_id = '{row['id']}'")
    if letter == "e" and (of := plugin.plugin_of(row)) and (passages := of.text(snapshot, row)):
        return passages
    ids = [row["text_unit_id"]] if letter == "k" else row["text_unit_ids"][:UNITS_PER_ID]
    units = values_of(snapshot.by_key("text_units", ids, "id", ["n"])["n"])
    rows = context.numbered(snapshot, "passages", units)
    names = {"e": {row["id"]}, "r": {row.get("source_id"), row.get("target_id")}}.get(letter, set())
    return _ordered([row for row in rows if names <= set(row["entity_ids"])] or rows)


def section_of(text: str, number: int, uri: str = "") -> tuple[int, int] | None:
    """The characters of the heading with this number (from 1) and what stands under it, or of the part
    that a plug-in lists."""
    if outline := plugins.outline(uri, text):
        parts = outline.parts()
        if 0 < number <= len(parts):
            return parts[number - 1].start, parts[number - 1].end
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
    ever = (letter for letter in letters if following.get(letter, 1) > 1)
    known = [f"{KINDS[letter][1]} {letter}1 to {letter}{following[letter] - 1}" for letter in ever]
    return "Known are " + ", ".join(known) if known else "The corpus has none yet"


# ---- entity ------------------------------------------------------------------------------------


def get_entity(
    snapshot: Snapshot,
    id_or_name: str,
    *,
    max_tokens: int = 3_000,
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
    hints, of = [note], plugin.plugin_of(row)
    names = {row["key"], *row["names"], f"e{row['n']}", row["id"]}
    if of is None and names.isdisjoint((asked, normalise_name(asked))):
        title = f"{one_line(row['title'], 80)} (e{row['n']})"
        hints.append(f"{asked[:80]!r} was read as {title}.")
    if found:
        hints.append(f"Also with this name: {entities.named_list(found)}.")
    hint = " ".join(filter(None, hints))
    if order == "time" or other:
        return _timeline(snapshot, row, other.strip().strip("[]` "), budget, hint)
    path = values_of(snapshot.by_key("memberships", [row["id"]], "entity_id", ["path"])["path"])
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
        next_call=links.of_entity(snapshot, [row["key"], *row["names"]])[1],
        candidates=[entity_facts(entity) for entity in found],
    )
    documents = [] if of else _documents(snapshot, row)
    into = {"Relationships": "relationships"}
    intro = _intro(snapshot, row, groups, of, budget, len(documents))
    sections = _sections(snapshot, row, groups, of, documents)
    result = compose(result, sections, budget, intro=intro, first="Evidence", into=into)
    if of is not None:
        result.hint = f"{result.hint} {text_of(result.id)}".strip()
    elif not result.hint:
        advice = f'What each of {counted(len(documents), "documents")} says of it: list_documents(query="{result.id}").'
        result.hint = advice if len(documents) > 1 else ""
    return finish(result, budget)


def text_of(id: str) -> str:
    return f'Its text: get_source(ids=["{id}"]).'


def _sections(
    snapshot: Snapshot,
    row: Row,
    groups: Sequence[Row],
    of: SearchingPlugin | None,
    documents: Sequence[Item],
) -> list[Section]:
    """`of`: the plug-in whose sections stand in the place of relationships."""
    return [
        *(of.sections(snapshot, row, groups, 3 * RELATED) if of else ()),
        Section("Evidence", _evidence(snapshot, row), 0.3 if of else 0.35),
        Section("Documents", documents, 0.2),
        Section("Relationships", [] if of else _relationships(snapshot, row, RELATED), 0.35),
        Section("Claims", context.claims_about(snapshot, [row]), 0.1, header=context.CLAIMS),
        Section("Perhaps the same", _proposed(snapshot, row), 0.05),
    ]


def _intro(
    snapshot: Snapshot,
    row: Row,
    groups: Sequence[Row],
    of: SearchingPlugin | None,
    budget: int,
    documents: int,
) -> str:
    """Name, counts, other names, edits, communities, and what a model or an agent says."""
    id = f"e{row['n']}"
    lines = [f"# {one_line(row['title'], 200)} {bracketed(id, row['type'])}"]
    units = counted(row["frequency"], "text units")
    within = f"{units} of {counted(documents, 'documents')}" if documents else units
    lines.append(f"{within}, {counted(row['degree'], 'relationships')}.")
    if row["aliases"]:
        lines.append(f"Also: {', '.join(one_line(alias, 60) for alias in row['aliases'][:10])}")
    lines += filter(None, [duplicates.about(snapshot, row), _several_people(snapshot, row)])
    lines += links.of_entity(snapshot, [row["key"], *row["names"]])[0]
    if groups:
        named = (f"{one_line(group['title'], 80)} (c{group['n']})" for group in groups)
        lines.append(f"Communities: {'; '.join(named)}")
    description = one_line(row["description"], 600)
    sentences = [one_line(readable(sentence["text"]), 2_000) for sentence in row["evidence"]]
    if description and (
        of
        or not any(
            description[:40] in sentence or sentence[:40] in description for sentence in sentences
        )
    ):
        lines += ["", packing.shorten(description, budget // 4)]
    return "\n".join(lines)


def _several_people(snapshot: Snapshot, row: Row) -> str:
    """The series of documents that name a person by one word, which may be several people."""
    if row["type"] != "person" or " " in row["title"]:
        return ""
    units = snapshot.by_key("text_units", row["text_unit_ids"], "id", ["document_id"])
    found = series.grouped(snapshot, set(values_of(units["document_id"])))
    named = {group: ids for group, ids in found.items() if group and len(ids) >= SEVERAL}
    if len(named) < 2:
        return ""
    listed = ", ".join(f"{group.title} {len(ids)}" for group, ids in named.items() if group)
    return f"This name may stand for several people. Documents by series: {listed}."


def _timeline(snapshot: Snapshot, row: Row, other: str, budget: int, note: str) -> EntityResult:
    """What is said of an entity, or of it and another one, by the days that it speaks of."""
    both = [row]
    if other:
        second, candidates = resolve(snapshot, other)
        if second is None:
            return _candidates(snapshot, other, candidates, budget, note)
        both.append(second)
    title = " and ".join(f"{one_line(entity['title'], 100)} (e{entity['n']})" for entity in both)
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
    return [Item(f"p{number}", duplicates.line(proposal)) for number, proposal in enumerate(found)]


def _evidence(snapshot: Snapshot, row: Row) -> list[Item]:
    """The entity's sentences, each with the place where it stands."""
    unit_ids = dict.fromkeys(sentence["text_unit_id"] for sentence in row["evidence"])
    units, items = context.unit_citations(snapshot, list(unit_ids)), []
    for sentence in row["evidence"]:
        unit = units.get(sentence["text_unit_id"])
        if unit is not None:
            cited = context.sentence_citation(unit, sentence["start"], sentence["end"])
            text = one_line(quote.one_line(readable(sentence["text"])), 500)
            if quote.plain(text) == quote.plain(unit.title):
                continue  # its title stands in the list of documents
            items.append(
                Item(unit.id, f"- {text} [{unit.id}]{context.where(cited)}", cited, "Evidence")
            )
    return items


def _documents(snapshot: Snapshot, row: Row) -> list[Item]:
    """The documents that name an entity, oldest first and undated ones last: `- [t12] 2024-05-03 Title`,
    with the number of text units that name it where there are several, what was written of it, and
    the page, slide or cells of the first of these units."""
    rows = snapshot.by_key("text_units", row["text_unit_ids"], "id", ["id", "document_id", "n"])
    listed = rows.to_pylist()
    units = lists_of((unit["document_id"], unit["n"]) for unit in listed)
    at = _first_named(snapshot, row, {unit["n"]: unit["id"] for unit in listed}, units)
    facts, names = times.documents(snapshot), names_of(snapshot)
    written = summaries.of_documents(snapshot, list(units))
    order = sorted(units, key=lambda id: (facts[id]["moment"] or "9999", facts[id]["uri"]))
    items = []
    for id in order:
        several = f" ({len(units[id])} text units)" if len(units[id]) > 1 else ""
        about = f": {written[id]}" if id in written else ""
        where = at.get(id) or packing.located(facts[id]["uri"], "", names[id])
        named = f"{' '.join(filter(None, (names[id], where)))}{several}{about}"
        line = " ".join(filter(None, [facts[id]["date"], named]))
        items.append(Item(f"t{min(units[id])}", f"- [t{min(units[id])}] {line}"))
    return items


def _first_named(
    snapshot: Snapshot, entity: Row, ids: Mapping[int, str], units: Mapping[str, Sequence[int]]
) -> dict[str, str]:
    """`(audit-report.pdf p. 3)` of each document (content id) with places: where the first of its text
    units names the entity, the whole unit where it stands in other words. `ids`: content ids of text
    units by number; `units`: numbers by document."""
    first = {ids[min(numbers)]: document for document, numbers in units.items()}
    placed = snapshot.with_places([{"id": id} for id in first])
    cited = context.unit_citations(snapshot, [row["id"] for row in placed if "places" in row])
    names = [entity["title"], *entity["names"]]
    return {
        first[id]: context.where(context.part_citation(unit, names)).strip()
        for id, unit in cited.items()
    }


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
    ids = [row["id"] for row in light[:most]]
    for row, pair, text, cited in statements(snapshot, ids, STATEMENT, id):
        other = next((end for end in pair if end["id"] != id), entity)
        data = {"id": f"r{row['n']}", "entity": one_line(other["title"], 80)}
        data |= {"entity_id": f"e{other['n']}", "weight": row["weight"]}
        items.append(Item(data["id"], text, cited, score=row["weight"], data=data))
    return items


# ---- report ------------------------------------------------------------------------------------


NEXT = 60  # tokens that the next call takes
_STATEMENT = re.compile(r".*?\[Data: [^\[\]]*\]", re.DOTALL)


def get_community_report(
    snapshot: Snapshot, community_id: str, *, max_tokens: int = 4_000
) -> ReportResult:
    budget, note = packing.clamp_budget(max_tokens, 4_000)
    asked = str(community_id).strip().strip("[]` ")
    match = re.fullmatch(r"c?(\d{1,12})", asked, re.IGNORECASE)
    found = context.numbered(snapshot, "reports", [int(match[1])]) if match else []
    if not found and re.fullmatch(r"[0-9a-f]{32}", asked):
        found = snapshot.served("reports", [asked])
    if not found:
        known = f"{id_range(snapshot, 'c')}; global_search finds them"
        removed = " any more" if match and was_given(snapshot, f"c{match[1]}") else ""
        raise NotFound(f"there is no community {asked[:60]!r}{removed}", known)
    row = found[0]
    family = snapshot.served("communities", [row["id"]], ["parent", "children", "size"])
    parent, children = (family[0]["parent"], family[0]["children"]) if family else ("", [])
    ids = [*filter(None, [parent]), *children]
    kin = snapshot.by_key("reports", ids, "id", ["id", "n", "title"]).to_pylist()
    aliases = {report["id"]: f"c{report['n']}" for report in kin}
    members = snapshot.served("entities", row["entity_ids"], ["id", "n", "title", "degree"])
    members.sort(key=lambda member: (-member["degree"], member["id"]))
    result = ReportResult(
        id=f"c{row['n']}",
        title=row["title"],
        level=row["level"],
        rating=row["rank"],
        method=row["method"],
        parent=aliases.get(parent, ""),
        children=[aliases[id] for id in children if id in aliases][:40],
        members=[f"e{member['n']} {one_line(member['title'], 60)}" for member in members[:20]],
        stale="communities" in snapshot.manifest.stale,
        hint=note,
    )
    above = next((report["title"] for report in kin if report["id"] == parent), "")
    page = render.page_of(result, budget - (NEXT if budget >= SMALL else 0))
    result.truncated = not _report(snapshot, page, row, result, above)
    result.text, result.citations = page.text().rstrip(), list(page.citations.values())
    if result.truncated and SMALL <= budget < HIGHEST:  # with less, words count more
        larger = min(2 * budget, HIGHEST)
        result.next_call = f'get_community_report(community_id="{result.id}", max_tokens={larger})'
    return finish(result, budget)


def _report(
    snapshot: Snapshot, page: render.Page, row: Row, result: ReportResult, above: str
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
    whole = re.sub(r"\A# .*\n+", "", row["full_content"])
    text = whole if count_tokens(whole) < page.room else _brief(row)
    named, cited = context.resolve_references(snapshot, [text])
    if result.stale:
        context.note(result, context.LATE)
        removed = set(packing.referenced_ids(text).get("Sources", ())) - named["Sources"].keys()
        if removed:
            texts = f"{counted(len(removed), 'texts')} that this report cites"
            context.note(result, f"{texts} left the index since it was written.")
    text = _with_places(packing.short_references(text, named), cited)
    page.add("\n".join([*lines, ""]))
    left = 0
    for block in re.split(r"\n{2,}", text.strip()):
        places = [cited[alias] for alias in re.findall(r"\bt\d+\b", block) if alias in cited][:5]
        if left or not page.add(block, places):
            left += 1
    if documents := topics.summarised(snapshot, topic, row):
        page.add("\nDocuments:")
        taken = 0
        while taken < len(documents) and page.add(documents[taken]):
            taken += 1
        page.room += NEXT
        if taken < len(documents):
            more = f'list_documents(filters=["topic={result.id}"])'
            page.add(f"- {counted(len(documents) - taken, 'more documents')}: {more}")
    elif topic.central:
        page.add(f"\nDocuments: {'; '.join(topic.central)}")
    return not left


_SHORT = re.compile(r"\[(t\d+(?:, t\d+)*)\]")


def _with_places(text: str, cited: Mapping[str, Citation]) -> str:
    """Behind each reference the page, slide or cells on which its statement stands; those of the whole
    text unit where that says it in other words."""
    parts: list[str] = []
    end = 0
    for found in _SHORT.finditer(text):
        before = text[end : found.start()]
        statement = before.rpartition("\n")[2].strip("- ")
        units = [cited[id] for id in found[1].split(", ") if id in cited]
        at = (context.where(context.part_citation(unit, [statement])) for unit in units)
        parts += [before, found[0], *dict.fromkeys(filter(None, at))]
        end = found.end()
    return "".join([*parts, text[end:]])


def _brief(row: Row) -> str:
    """The summary, and each finding with its first statement."""
    found = [row["summary"]]
    for finding in context.findings(row):
        heading, explanation = (
            str(finding.get("summary", "")),
            str(finding.get("explanation", "")).strip(),
        )
        first = _STATEMENT.match(explanation)
        if explanation.startswith(heading):
            found.append(f"- {first[0] if first else explanation}")
        else:
            reference = re.search(r"\[Data: [^\[\]]*\]", explanation)
            found.append(f"- {heading} {reference[0] if reference else ''}")
    return "\n\n".join(found)
