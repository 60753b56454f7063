"""Sources: the text behind ids (get_source), and what the sources of notes said and say."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from graphrag_mcp import plugins
from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.packing import budget as packing
from graphrag_mcp.packing import sending
from graphrag_mcp.packing.budget import (
    CHARACTERS,
    HIGHEST,
    Item,
    Section,
    Size,
    cost,
    one_line,
    shorten_item,
)
from graphrag_mcp.packing.page import Page, compose, finish, room_beside
from graphrag_mcp.query import context, note_sources, summaries, threads
from graphrag_mcp.query.extracts import HEAD, QUERY, Extract, extracts
from graphrag_mcp.query.hits import names_of, openings_of
from graphrag_mcp.query.ids import (
    IDS,
    KINDS,
    id_range,
    meant_by,
    passages_of,
    section,
    was_given,
    with_neighbours,
)
from graphrag_mcp.query.notes import joined
from graphrag_mcp.query.times import Times, read
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text import places, quote
from graphrag_mcp.text.citing import Fingerprint
from graphrag_mcp.text.prose import readable
from graphrag_mcp.text.terms import counted, lists_of
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.trust.fencing import quoted
from graphrag_mcp.types import SourceResult

Row = dict[str, Any]

NAMES = 100  # ids of a call that are looked up: a name of nothing takes 5 ms
LISTED = 20  # ids of a call that stand one by one
THREADS = 3  # documents of which the mails of their thread are named
LED = 4  # tokens around the call for the rest
LEAST = 40  # tokens of a beginning: a head and about one sentence
GAP = 400  # characters of white space and lines of no words that may lie between two passages


@dataclass(frozen=True, slots=True)
class Part:
    """A passage with a head that has its path and lines, and in `brief` as it stands below another one of its
    document, with its id alone. `name`: what results call the document. `turn`: the place of the passage among those
    of its id, 0 for what is shown first. `excerpt`: it is cut to the sentences on a question."""

    item: Item
    brief: Item
    name: str
    turn: int
    excerpt: bool = False

    @property
    def document(self) -> str:
        return (self.item.data or {})["document_id"]

    def of_corpus(self, corpus: str) -> Part:
        item, brief = (context.of_corpus(corpus, item) for item in (self.item, self.brief))
        return replace(self, item=item, brief=brief)

    def continues(self, other: Part) -> bool:
        """Does this passage stand below the other one, without a head between them?"""
        return _follows(other.item, self.item) or (self.excerpt and self.document == other.document)


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
    without addresses of links and images, or to the letter with `raw`; with `query` a few
    sentences of each document."""
    budget, note = packing.clamp_budget(max_tokens, 4_000)
    parts, notes = passage_parts(snapshot, ids, around, raw, query, budget)
    references = [ids] if isinstance(ids, str) else ids
    meant = (alias for id in references[:NAMES] for alias in meant_by(snapshot, str(id)))
    whole = not raw and not query.strip() and any(re.fullmatch(r"d\d+", alias) for alias in meant)
    intro = _sections_first(snapshot, parts, budget) if whole else ""
    return shown(parts, [note, *notes], budget, options(raw, query), intro)


def _sections_first(snapshot: Snapshot, parts: Sequence[Part], budget: int) -> str:
    """The sections of a document that is longer than the budget, with what was written of them, in
    half of the budget at most."""
    documents = {part.document for part in parts}
    if len(documents) != 1 or sum(part.item.tokens for part in parts) <= budget:
        return ""
    (alias,) = documents
    ids = context.numbered(snapshot, "documents", [int(alias[1:])])
    texts = [
        summary
        for row in ids
        for summary in summaries.read(snapshot, [row["id"]]).get(row["id"], ())
    ]
    lines = summaries.outline(snapshot, [summary for summary in texts if summary.place])
    page = Page(budget // 2 - HEAD)
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
    parts: Sequence[Part], notes: Sequence[str], budget: int, options: str = "", intro: str = ""
) -> SourceResult:
    """As many passages as fit behind the intro, of each id about the same; the next call has what is left. Of several
    ids whose first passages do not fit, the beginning of each."""
    result = SourceResult(hint=" ".join(filter(None, notes)))
    name = "Sources" if intro else ""
    firsts = [part for part in parts if part.turn == 0]
    needed = sum(part.item.tokens for part in firsts)
    room = room_beside(result, intro, budget, [f"## {name}" if name else ""]).tokens
    whole = ""
    if len(firsts) > 1 and needed > room and budget < HIGHEST and not options:
        # With as little room this call would give the same beginnings.
        whole = _call(parts, min(max(4_000, int(needed * 1.2) + 300), HIGHEST), options)
        room -= count_tokens(whole) + LED
        parts = _beginnings(firsts, room)
    items, call = _fair(result, parts, room, options)
    result.next_call = call = whole or call
    if count_tokens(call) > budget // 2:
        result.hint = joined(result.hint, f"{len(firsts)} ids need more than max_tokens={budget}.")
    section = Section(name, items, 1.0, into="sources")
    result = compose(result, [section], budget, intro=intro)
    if call:
        result.next_call, result.truncated = call, True
    return finish(result, budget)


def _beginnings(firsts: Sequence[Part], room: int) -> list[Part]:
    """The first passages of several ids, each cut at the end of a sentence to its share of the room that is left."""
    found = []
    for number, part in enumerate(firsts):
        share = Size(max(room // (len(firsts) - number), LEAST), CHARACTERS)
        if part.item.tokens > share.tokens:
            _, _, text = part.item.text.partition("\n")
            named = replace(part.item, text=f"[{part.item.id}] {part.name}\n{text}")
            part = replace(part, item=shorten_item(named, share))
        found.append(part)
        room -= cost(part.item).tokens
    return found


def _fair(
    result: SourceResult, parts: Sequence[Part], room: int, options: str
) -> tuple[list[Item], str]:
    """The first passages of every id that fit, then the second ones, in reading order; and the call for the others,
    which has room beside them."""
    turns = sorted(range(len(parts)), key=lambda at: parts[at].turn)
    prices: list[int] = []
    for number, at in enumerate(turns):
        below = any(parts[at].continues(parts[other]) for other in turns[:number])
        item = parts[at].brief if below else parts[at].item
        prices.append(sending.price(result, quoted(item.text)).tokens)
    count = len(turns) if sum(prices) <= room else 0
    first = parts[0].item
    call = _call(parts, min(max(4_000, int(first.tokens * 1.2) + 300), HIGHEST), options)
    while count < len(turns):
        room -= prices[count]
        following = _call([parts[at] for at in sorted(turns[count + 1 :])], 0, options)
        if room < count_tokens(following) + LED:
            break
        count, call = count + 1, following
    # Where not even one fits, the call with the same budget could only give the same.
    chosen = [parts[at] for at in sorted(turns[: max(count, 1)])]
    pairs = zip([None, *chosen], chosen, strict=False)
    shown = [part.brief if last and part.continues(last) else part.item for last, part in pairs]
    return shown, call if count < len(turns) else ""


def _call(parts: Sequence[Part], max_tokens: int, options: str) -> str:
    """The call for what is left; many that follow each other in a document are one id (`t33.2+`)."""
    rest = [part.item for part in parts]
    ids = [item.id for item in rest]
    if len(ids) > LISTED:
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


def passage_parts(
    snapshot: Snapshot,
    ids: Sequence[str],
    around: int = 0,
    raw: bool = False,
    query: str = "",
    budget: int = 4_000,
) -> tuple[list[Part], list[str]]:
    """The passages behind ids, each once, with `query` what bears on it; and notes on the ids."""
    references = [ids] if isinstance(ids, str) else [str(reference) for reference in ids]
    references = list(dict.fromkeys(reference for reference in references if reference.strip()))
    meant = {reference: meant_by(snapshot, reference) for reference in references[:NAMES]}
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
    found, asked_for = _found(snapshot, short_ids[:IDS], unknown, around)
    if not found:
        named_ids = ", ".join(reference[:40] for reference in unknown[:5])
        removed = any(was_given(snapshot, reference) for reference in unknown)
        why = ". What they named has changed or is gone; search again" if removed else ""
        raise NotFound(f"none of these ids is known: {named_ids}{why}", id_range(snapshot, *KINDS))
    if unknown:
        notes.append(f"Unknown ids: {', '.join(reference[:40] for reference in unknown[:10])}.")
    of = list(dict.fromkeys(row["document_id"] for row in found.values()))
    notes += filter(None, (threads.told(snapshot, id) for id in of[:THREADS]))
    notes += filter(None, (_note(snapshot, id) for id in of))
    if not raw:
        _show_ids(snapshot, found)
    aliases = context.document_aliases(snapshot, of)
    dates = read(snapshot, [] if raw else [*found.values()])
    by_id = lists_of((asked_for[row["id"]], row) for row in found.values())
    order = {row["id"]: at for rows in by_id.values() for at, row in enumerate(rows)}
    if asks := bool(query.strip()) and not raw:
        found = _extracted(found, extracts(snapshot, by_id, query, budget))
        order |= {id: row["turn"] for id, row in found.items()}
    begins = openings_of(snapshot, of) if asks and len(of) > 1 else {}
    names, parts = names_of(snapshot), []
    for row in found.values():
        id: str = row["document_id"]
        item = _passage_item(row, aliases.get(id, id), raw, dates.get(row["id"]))
        if asks:
            item = _excerpt(item, row, names[id], begins.get(id, ""))
        parts.append(Part(item, _brief(item, row, asks), names[id], order[row["id"]], asks))
    return parts, notes


def _extracted(found: Mapping[str, Row], shown: Mapping[str, Extract]) -> dict[str, Row]:
    """The passages with what is shown of them, which has the place of all of the passage."""
    rows = {}
    for id, row in found.items():
        if extract := shown.get(id):
            place = places.of_row(row)
            rows[id] = row | {
                "text": extract.text,
                "n_tokens": count_tokens(extract.text),
                "places": places.write([(0, place)]) if place else "",
                "silent": extract.silent,
                "turn": extract.turn,
            }
    return rows


def _brief(item: Item, row: Row, excerpt: bool) -> Item:
    """The item under the head of another one of its document: its id, and its page; of an excerpt its lines."""
    head, _, text = item.text.partition("\n")
    place = _place(row) if excerpt else places.of_row(row)
    return replace(item, text=f"{head.partition('] ')[0]}]{f' ({place})' * bool(place)}\n{text}")


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
        dict.fromkeys(alias for reference in ids[:NAMES] for alias in meant_by(snapshot, reference))
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
        blocks = [quote.clipped(block, {}, int(len(block) * share)) for block in blocks]
        result.text, result.truncated = "\n\n".join(blocks), True
    return finish(result, budget)


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
    snapshot: Snapshot, aliases: Sequence[str], unknown: list[str], around: int
) -> tuple[dict[str, Row], dict[str, str]]:
    """The passages behind ids, and the id that each was asked for with. Of a passage of which two ids name a
    part it is the whole. Adds ids of nothing to `unknown`."""
    found: dict[str, Row] = {}
    asked_for: dict[str, str] = {}
    for alias in aliases:
        rows = section(snapshot, alias) if "#" in alias else passages_of(snapshot, alias)
        if not rows:
            unknown.append(alias)
        for row in with_neighbours(snapshot, rows, min(max(around, 0), 10)):
            known = found.setdefault(row["id"], row)
            asked_for.setdefault(row["id"], alias)
            parts = "cut" in known or "cut" in row
            if parts and known["text"] != row["text"]:
                (found[row["id"]],) = snapshot.by_key("passages", [row["id"]], "id").to_pylist()
    snapshot.with_places([row for row in found.values() if "cut" not in row])
    return found, asked_for


def _passage_item(row: Row, document: str, raw: bool, dates: Times | None = None) -> Item:
    """A passage with its head; below its text what relative dates in it mean."""
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


def _place(row: Row) -> str:
    """The page of a passage, or its lines; "" where all is on the first line."""
    first, last = row["line_start"], row["line_end"]
    return places.of_row(row) or (f"lines {first}-{last}" if last > 1 else "")


def _excerpt(item: Item, row: Row, name: str, begins: str) -> Item:
    """The item of an excerpt, whose head has the name of its document and its place in that, and how the document
    begins unless the text contains that."""
    _, _, text = item.text.partition("\n")
    remarks = list(filter(None, [_place(row)]))
    if begins and begins[: len(begins) // 2] not in text:
        remarks.append(begins)
    if row.get("silent"):
        remarks.append("no word of the question")
    head = " ".join([f"[{item.id}] {name}", *(f"({remark})" for remark in remarks)])
    return replace(item, text=f"{head}\n{text}", tokens=count_tokens(f"{head}\n{text}") + 2)
