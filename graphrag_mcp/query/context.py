"""Rows of an index as they are shown: by number, with references, citations and short ids; and the
results of searches that found nothing to search."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import PrivateAttr

from graphrag_mcp.packing.budget import Item, located, one_line, passage_alias
from graphrag_mcp.packing.references import referenced_ids
from graphrag_mcp.store.tables import Snapshot, rows_of
from graphrag_mcp.text import places, quote
from graphrag_mcp.text.prose import readable, sentences
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.types import Citation, Result

Row = dict[str, Any]
_SPAN = ("char_start", "char_end", "line_start", "line_end", "n_tokens")
# What is shown of a passage, and remembered between searches: without its terms it takes half.
PASSAGE = ("id", "n", "part", "parts", "document_id", "uri", "title", *_SPAN, "text")
REFERENCES = {"Reports": ("reports", "c"), "Entities": ("entities", "e"), "Relationships": ("relationships", "r")}


# What is said of reports between the two commits of a run, when they may cite a text that has gone.
LATE = "Communities are being brought up to date."


def late(snapshot: Snapshot) -> str:
    """LATE where reports are older than the texts; else ""."""
    return LATE if "communities" in snapshot.manifest.stale else ""


def numbered(snapshot: Snapshot, table: str, numbers: Sequence[int]) -> list[Row]:
    """Whole rows by the number behind their alias; of text units, all passages."""
    if not numbers:
        return []
    return snapshot.by_key(table, list(numbers), "n").to_pylist()


def document_aliases(snapshot: Snapshot, ids: Iterable[str]) -> dict[str, str]:
    """`d12` for content ids of documents: a tenth of the tokens, and taken everywhere."""
    rows = snapshot.by_key("documents", list(ids), "id", ["id", "n"])
    return {id: f"d{n}" for id, n in rows_of(rows)}


def first_ids(snapshot: Snapshot, ids: Iterable[str]) -> dict[str, str]:
    """The id of the first passage of each document (content ids): what results call it by."""
    names = ["document_id", "position", "n", "part", "parts"]
    rows = snapshot.by_key("passages", list(ids), "document_id", names).to_pylist()
    rows.sort(key=lambda row: -row["position"])
    return {row["document_id"]: passage_alias(row) for row in rows}


def titles(snapshot: Snapshot, relationships: Iterable[Row]) -> dict[str, str]:
    ends = {row[end]: None for row in relationships for end in ("source_id", "target_id")}
    return dict(rows_of(snapshot.by_key("entities", list(ends), "id", ["id", "title"])))


def connections(snapshot: Snapshot, ids: Sequence[str], characters: int) -> list[tuple[str, str]]:
    """`r7` and `Ida Holm and Orl: the first sentence on the two` of relationships (content ids) of which something is said."""
    rows = snapshot.served("relationships", ids)
    title = titles(snapshot, rows)
    found = []
    for row in rows:
        pair = " and ".join(one_line(title.get(row[end], "?"), 60) for end in ("source_id", "target_id"))
        if said := first_sentence(readable(row["description"]), characters):
            found.append((f"r{row['n']}", f"{pair}: {said}"))
    return found


def of_corpus(corpus: str, item: Item) -> Item:
    """The item with ids that name its corpus: at its head, in its citation, and in references that
    are not a source's."""
    id = f"{corpus}/{item.id}"
    text = item.text.replace(item.id, id, 1)
    if item.section != "Sources":
        text = marked(corpus, text)
    cited = item.citation and placed(corpus, item.citation)
    data = dict(item.data or {})
    for key in {"id", "document_id"} & data.keys():
        data[key] = f"{corpus}/{data[key]}"
    return replace(item, id=id, text=text, citation=cited, data=data or None, tokens=0)


def first_sentence(text: str, characters: int) -> str:
    spans = sentences(text[: characters * 4])
    return one_line(text[slice(*spans[0])] if spans else "", characters)


def note(result: Result, sentence: str) -> None:
    result.hint = f"{result.hint} {sentence}".strip()


def part_of(row: Row, start: int, end: int) -> Row:
    """A passage cut to the characters `start` to `end` of its document, with its place there; the passage
    itself where these hold all of it."""
    whole: str = row["text"]
    first = max(start - row["char_start"], 0)
    last = min(end - row["char_start"], len(whole))
    if first == 0 and last == len(whole):
        return row
    text, line = whole[first:last], row["line_start"] + whole.count("\n", 0, first)
    part = row | {"text": text, "cut": True, "n_tokens": count_tokens(text)}
    part |= {"char_start": row["char_start"] + first, "char_end": row["char_start"] + last}
    part |= {"line_start": line, "line_end": line + text.rstrip().count("\n")}
    if stored := row.get("places", ""):
        part["places"] = places.write(places.part(places.read(stored), whole, first, last))
    return part


def topic_paths(snapshot: Snapshot, units: Iterable[str]) -> dict[str, list[str]]:
    """The communities of each text unit (content ids), the coarsest first."""
    path_of = dict(rows_of(snapshot.rows("memberships", "", ["entity_id", "path"])))
    if path := {id: path_of[id] for id in units if id in path_of}:
        return path
    # An index of an earlier release: a text unit goes with most of its entities.
    votes: dict[str, Counter[tuple[str, ...]]] = defaultdict(Counter)
    for unit, ids in rows_of(snapshot.rows("passages", "", ["text_unit_id", "entity_ids"])):
        votes[unit].update(tuple(path_of[id]) for id in ids if path_of.get(id))
    return {id: list(max(sorted(counter), key=counter.__getitem__)) for id, counter in votes.items() if counter}


def topic_at(path: Sequence[str], level: int) -> str:
    """The community of a level, or the finest where its branch ends sooner."""
    return path[min(max(level, 0), len(path) - 1)]


def main_topics(topic_of: Mapping[str, str], document_of: Mapping[str, str]) -> dict[str, str]:
    """Of each document the topic of most of its text units."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for unit, topic in topic_of.items():
        counts[document_of[unit]][topic] += 1
    return {document: min(counter, key=lambda id: (-counter[id], id)) for document, counter in counts.items()}


def resolve_references(
    snapshot: Snapshot, texts: Sequence[str]
) -> tuple[dict[str, dict[str, str]], dict[str, Citation]]:
    """Aliases by group name and content id, and the citations of the sources, by alias."""
    references: dict[str, dict[str, None]] = {}
    for text in texts:
        for group, ids in referenced_ids(text).items():
            references.setdefault(group, {}).update(dict.fromkeys(ids))
    aliases: dict[str, dict[str, str]] = {}
    for group, (table, letter) in REFERENCES.items():
        if references.get(group):
            found = snapshot.by_key(table, list(references[group]), "id", ["id", "n"]).to_pylist()
            aliases[group] = {row["id"]: f"{letter}{row['n']}" for row in found}
    cited = unit_citations(snapshot, list(references.get("Sources", ())))
    aliases["Sources"] = {id: citation.id for id, citation in cited.items()}
    return aliases, {citation.id: citation for citation in cited.values()}


class UnitCitation(Citation):
    """The citation of a whole text unit, which knows where the parts of its text stand."""

    _row: Row = PrivateAttr(default_factory=dict)


def where(cited: Citation) -> str:
    """` (audit-report.pdf p. 3)`, with a blank before; "" for a text without a place."""
    return f" {located(cited.uri, cited.place)}".rstrip()


def unit_citations(snapshot: Snapshot, ids: Sequence[str]) -> dict[str, Citation]:
    """Citations of whole text units, by content id, in the order given; unknown ids are missing."""
    if not ids:
        return {}
    names = ["id", "n", "document_id", "char_start", "char_end", "line_start", "line_end"]
    units = snapshot.served("text_units", list(ids), [*names, "text"])
    document_ids = list(dict.fromkeys(unit["document_id"] for unit in units))
    rows = snapshot.served("documents", document_ids, ["id", "n", "title", "uri"])
    documents = {row["id"]: row for row in rows}
    found: dict[str, Citation] = {}
    for unit in units:
        if row := documents.get(unit["document_id"]):
            found[unit["id"]] = cited = UnitCitation(
                id=f"t{unit['n']}",
                title=row["title"],
                uri=row["uri"],
                document_id=f"d{row['n']}",
                char_start=unit["char_start"],
                char_end=unit["char_end"],
                line_start=unit["line_start"],
                line_end=unit["line_end"],
                place=places.of_row(unit),
            )
            cited._row = unit
    return found


def sentence_citation(unit: Citation, start: int, end: int) -> Citation:
    """The place of a sentence by its offsets in a text unit. Lines stay the unit's."""
    at = unit.char_start
    place = places.of_row(unit._row, start, end) if isinstance(unit, UnitCitation) else unit.place
    update = {"char_start": at + start, "char_end": at + end, "place": place}
    return unit.model_copy(update=update)


def relationship_statement(row: Row, units: Mapping[str, Citation], longest: int) -> tuple[str, Citation | None]:
    """The best sentence that says that two are related, or only names both, and where it stands, after
    what a model made of it; `units` are citations by text unit."""
    first = next(iter(row["evidence"]), None)
    unit = units.get(first["text_unit_id"]) if first else None
    description = one_line(row["description"], longest)
    if first is None or unit is None:
        return description, None
    sentence = quote.one_line(first["text"]) if quote.says(first["text"]) >= quote.LEANS else ""
    cited = sentence_citation(unit, first["start"], first["end"])
    if not description or (sentence and sentence in row["description"]):
        # then the description is sentences
        return one_line(sentence if description or not sentence else f"both named: {sentence}", longest), cited
    return f'{description} "{one_line(first["text"], longest)}"', cited


def findings(row: Mapping[str, Any]) -> list[dict[str, str]]:
    """The findings of a report as stored: a JSON list of {summary, explanation}."""
    found: list[dict[str, str]] = json.loads(row["findings"] or "[]")
    return found


def finding(fields: Mapping[str, Any]) -> str:
    """A finding as one text: its explanation, after the summary if the explanation does not begin
    with it."""
    summary, explanation = str(fields.get("summary", "")), str(fields.get("explanation", ""))
    return explanation if not summary or explanation.startswith(summary) else f"{summary}: {explanation}"


ALIAS = r"[tderck]\d{1,12}(?:\.\d{1,6})?"
_DATA = re.compile(r"\[Data: [^\[\]\n]{1,4000}\]")
_INNER = re.compile(rf"(?<![\w./])({ALIAS})(?![\w/])")
_MARKED = re.compile(rf"(?<=\[)({ALIAS})(?=\])|(?<=\()({ALIAS})(?=[,)])|(?<=, )({ALIAS})(?=\))")


def placed(name: str, place: Citation) -> Citation:
    """The citation with ids that name its corpus."""
    ids = {"id": f"{name}/{place.id}", "document_id": f"{name}/{place.document_id}"}
    return place.model_copy(update=ids)


def marked(name: str, text: str) -> str:
    """Ids in references and brackets with their corpus before them."""
    text = _MARKED.sub(lambda match: f"{name}/{match.group()}", text)
    return _DATA.sub(lambda match: _INNER.sub(lambda alias: f"{name}/{alias[1]}", match.group()), text)
