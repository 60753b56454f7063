"""Sources: the text behind ids (get_source), and what the sources of notes said and say."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from graphrag_mcp import plugins
from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.packing import budget as packing
from graphrag_mcp.packing import sending
from graphrag_mcp.packing.budget import CHARACTERS, HIGHEST, Item, Section, Size, cost, one_line, shorten_item
from graphrag_mcp.packing.page import Page, compose, finish, room_beside
from graphrag_mcp.query import context, note_sources, summaries, threads
from graphrag_mcp.query.extracts import HEAD, QUERY, Extract, extracts
from graphrag_mcp.query.hits import names_of, openings_of
from graphrag_mcp.query.ids import IDS, KINDS, id_range, meant_by, passages_of, section, was_given, with_neighbours
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
CUT = "Texts that end with … go on: open them by id."
LETTERS = 12  # of an id
LEAST = 40  # tokens of a beginning: a head and about one sentence
GAP = 400  # characters of white space and lines of no words that may lie between two passages


@dataclass(frozen=True, slots=True)
class Part:
    """A passage below a head with its path and lines. `name`: what results call its document; `place`: its place in
    that. `turn`: the place of the passage among those of its id, 0 for what is shown first. `excerpt`: it is cut to the
    sentences on a question."""

    item: Item
    name: str
    place: str
    turn: int
    excerpt: bool = False

    @property
    def document(self) -> str:
        return (self.item.data or {})["document_id"]

    def of_corpus(self, corpus: str) -> Part:
        return replace(self, item=context.of_corpus(corpus, self.item))

    def headed(self, *remarks: str) -> Item:
        """The item with its id and these remarks as its head."""
        _, _, text = self.item.text.partition("\n")
        return replace(self.item, text=f"{' '.join([f'[{self.item.id}]', *filter(None, remarks)])}\n{text}")

    def below(self) -> Item:
        """The item as it stands below another one of its document."""
        return self.headed(f"({self.place})" if self.place else "")

    def beginning(self, tokens: int) -> Item:
        """The item, cut at the end of a sentence to so many tokens."""
        size = Size(max(tokens, LEAST), CHARACTERS)
        return self.item if self.item.tokens <= size.tokens else shorten_item(self.headed(self.name), size)

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
    texts = [summary for row in ids for summary in summaries.read(snapshot, [row["id"]]).get(row["id"], ())]
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


def shown(parts: Sequence[Part], notes: Sequence[str], budget: int, options: str = "", intro: str = "") -> SourceResult:
    """As many passages as fit behind the intro, the first of every id before the second ones, in reading order; the
    next call has what is left. Of several ids whose first passages do not fit, the beginning of each."""
    result, name = SourceResult(hint=joined(*notes)), "Sources" if intro else ""
    order = sorted(range(len(parts)), key=lambda at: parts[at].turn)
    items = [parts[at].below() if parts[at].turn else parts[at].item for at in order]
    prices = [sending.price(result, quoted(item.text)).tokens for item in items]
    needed = [*accumulate(prices)]
    firsts, count, call = sum(not part.turn for part in parts), len(parts), ""

    def room_with(call: str) -> int:
        result.next_call = call
        return room_beside(result, intro, budget, [f"## {name}"] if name else []).tokens

    if needed[-1] > room_with(""):
        larger = min(max(4_000, int(needed[firsts - 1] * 1.2) + 300), HIGHEST)
        whole = call = _call(parts, larger, options)
        for count, tokens in enumerate(needed):  # the call for the others has room beside them
            following = _call([parts[at] for at in sorted(order[count + 1 :])], 0, options)
            if tokens > room_with(following):
                break
            call = following
        if count < firsts > 1 and not options:
            count, first, room = firsts, "", room_with(f'get_source(ids=["{"t" * LETTERS}"])') - count_tokens(CUT)
            begun = [*parts]
            for number, at in enumerate(order[:firsts]):
                item = parts[at].beginning(room // (firsts - number))
                begun[at] = replace(parts[at], item=item)
                room -= cost(item).tokens
                follows = at + 1 < len(parts) and parts[at + 1].turn > 0
                if not first and (follows or item is not parts[at].item):
                    first = item.id + "+" * follows
            parts, call = begun, whole
            if room >= 0:  # agents open a few of the texts whose beginnings they read
                call = f'get_source(ids=["{first}"])'
                result.hint = joined(result.hint, CUT)
        result.next_call = call
    chosen = [parts[at] for at in sorted(order[: max(count, 1)])]
    pairs = zip([None, *chosen], chosen, strict=False)
    items = [part.below() if last and part.continues(last) else part.item for last, part in pairs]
    result = compose(result, [Section(name, items, 1.0, into="sources")], budget, intro=intro)
    if call:
        result.next_call, result.truncated = call, True
    return finish(result, budget)


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
    snapshot: Snapshot, ids: Sequence[str], around: int = 0, raw: bool = False, query: str = "", budget: int = 4_000
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
    notes += filter(None, (threads.position(snapshot, id) for id in of[:THREADS]))
    notes += filter(None, (_note(snapshot, id) for id in of))
    if not raw:
        _show_ids(snapshot, found)
    aliases = context.document_aliases(snapshot, of)
    dates = read(snapshot, [] if raw else [*found.values()])
    by_id = lists_of((asked_for[row["id"]], row) for row in found.values())
    order = {row["id"]: at for rows in by_id.values() for at, row in enumerate(rows)}
    extracted: dict[str, Extract] = {}
    if asks := bool(query.strip()) and not raw:
        extracted = extracts(snapshot, by_id, query, budget)
        found = {id: row for id, row in found.items() if id in extracted}
    begins = openings_of(snapshot, of) if asks and len(of) > 1 else {}
    names, parts = names_of(snapshot), []
    for id, row in found.items():
        document: str = row["document_id"]
        extract = extracted.get(id)
        text = extract.text if extract else row["text"] if raw else _readable(row)
        item = _item(row, text, aliases.get(document, document), dates.get(id))
        place = _place(row) if extract else places.of_row(row)
        part = Part(item, names[document], place, extract.turn if extract else order[id], asks)
        if extract:
            silent = "(no word of the question)" if extract.silent else ""
            begun = begins.get(document, "")
            begun = f"({begun})" if begun and begun[: len(begun) // 2] not in item.text else ""
            head = part.headed(part.name, f"({place})" if place else "", begun, silent)
            part = replace(part, item=head)
        parts.append(part)
    return parts, notes


def changes(
    snapshot: Snapshot, ids: Sequence[str], kept: Callable[[Fingerprint], str], *, max_tokens: int = 4_000
) -> SourceResult:
    """What the sources of notes said when they were cited, and what they say now. `kept` gives the
    text of a fingerprint, "" if it was not kept. BadInput if no id names a note."""
    budget, hint = packing.clamp_budget(max_tokens, 4_000)
    aliases = list(dict.fromkeys(alias for reference in ids[:NAMES] for alias in meant_by(snapshot, reference)))
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


def _readable(row: Row) -> str:
    """The text of a passage for reading; of a plug-in as it is."""
    text = row["text"] if plugins.verbatim(row["uri"]) else readable(row["text"])
    return text or "(links, images or rules only: raw=true shows them)"


def _item(row: Row, text: str, document: str, times: Times | None) -> Item:
    """What is shown of a passage below a head with its path and lines; then what relative dates in it mean."""
    item = packing.source_item(row, 0.0, document, True)
    if times and not plugins.verbatim(row["uri"]):
        text = "\n".join(filter(None, (text, times.note(one_line(text, len(text))))))
    head, alias = item.text.partition("\n")[0], item.id
    if row.get("alias", ""):  # a definition: asked for again by its own id
        alias = row["alias"]
        head = f"[{alias}] {head.partition('] ')[2]}"
    names = ("title", "uri", "char_start", "char_end", "line_start", "line_end")
    data = {"id": alias, **{name: row[name] for name in names}, "document_id": document}
    tokens = item.tokens if text == row["text"] else count_tokens(f"{head}\n{text}") + 2
    return Item(alias, f"{head}\n{text}", None, tokens=tokens, data=data)


def _place(row: Row) -> str:
    """The page of a passage, or its lines; "" where all is on the first line."""
    first, last = row["line_start"], row["line_end"]
    return places.of_row(row) or (f"lines {first}-{last}" if last > 1 else "")
