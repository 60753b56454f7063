"""Links between documents: what a document links to, what links to it, what its links miss, its tags; and how
explore_graph, get_entity, the outline of a document, filters and the status show them."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.packing.budget import Item, Section, finish, one_line, passage_alias
from graphrag_mcp.packing.page import compose
from graphrag_mcp.query import context
from graphrag_mcp.query.pages import Pages, pages, stem_of
from graphrag_mcp.query.times import AT_ONCE, documents
from graphrag_mcp.sources import links as written
from graphrag_mcp.sources.decode import headings
from graphrag_mcp.sources.ocr import PICTURES
from graphrag_mcp.sources.walk import kind_of, suffix_of
from graphrag_mcp.store.tables import Snapshot, once, rows_of, values_of
from graphrag_mcp.text import places
from graphrag_mcp.text.citing import without_fingerprints
from graphrag_mcp.text.prose import readable
from graphrag_mcp.text.terms import counted, normalise_name
from graphrag_mcp.types import Citation, ExploreResult

Row = dict[str, Any]
LINKS = "links"  # the kind of explore_graph
QUOTED = 160  # characters of the line that holds a link
MOST = 60  # links that are shown with their lines
LISTED = 20  # documents, tags and missing pages of an overview
NAMED = 5  # of them in one line

_BLOCK = re.compile(r"(?<!\S)\^([\w-]{1,100})[ \t]*$", re.MULTILINE)
_LINES = re.compile(r"L(\d{1,9})(?:-L?\d{1,9})?")
_ATTRIBUTES = re.compile(r"\{[^{}]*#([\w:.-]+)[^{}]*\}$")  # of a heading: `{#id .class}`
_ELEMENT = re.compile(r"<[A-Za-z][^<>]*>")
_ID = re.compile(r"\s(?:id|name)\s*=\s*[\"']?([^\s\"'<>]+)", re.IGNORECASE)
_AGAIN = re.compile(r"(.+)[-_](\d{1,9})")  # `install-1`: the second heading of this name


@dataclass(frozen=True, slots=True)
class Link:
    """A stored link or tag, with the number of its document and of the document to which it leads
    (-1: none, less: one of several, `Pages.rivals`). `renamed`: it names that document as it was called before."""

    source: int
    target: int
    kind: str
    written: str
    part: str
    line: int
    start: int
    end: int
    renamed: bool = False

    def misses(self) -> bool:
        """Does it lead to a page that the index does not have? Pictures and other files without text are no pages."""
        file = suffix_of(self.written) in PICTURES or bool(kind_of(self.written))
        return self.target == -1 and not file


class Links:
    """All links of a generation, by the documents of `pages`."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.pages: Pages = pages(snapshot)
        columns = ["document_id", "kind", "target", "part", "line", "char_start", "char_end"]
        rows = snapshot.rows("links", columns=columns)
        source = pc.index_in(rows["document_id"], pa.array(self.pages.ids, pa.string()))
        self.source = np.asarray(source.fill_null(-1).to_numpy())
        order = np.lexsort((np.asarray(rows["char_start"].to_numpy()), self.source))
        order = order[self.source[order] >= 0]
        self.rows, self.source = rows.take(pa.array(order, pa.int64())), self.source[order]
        self.target = np.full(len(order), -1)
        self.renamed = np.zeros(len(order), bool)
        asked = self.rows.select(["kind", "target", "part"]).to_pylist()
        for place, link in enumerate(asked):
            if link["kind"] == written.TAG:
                continue
            source = int(self.source[place])
            found = self.pages.target(link, source)
            if found == -1:
                found = self.pages.renamed(link, source)
                self.renamed[place] = found >= 0
            self.target[place] = found
        # A page that was saved from the web names hundreds of pages of its site: they are not missing here.
        real = np.array([link["kind"] != written.HREF for link in asked], bool) | (
            self.target != -1
        )
        self.rows = self.rows.take(pa.array(np.flatnonzero(real), pa.int64()))
        self.source, self.target = self.source[real], self.target[real]
        self.renamed = self.renamed[real]
        self.is_tag = np.array([kind == written.TAG for kind in values_of(self.rows["kind"])], bool)

    def out(self, number: int) -> list[Link]:
        """The links of a document in the order of its text."""
        return self._of((self.source == number) & ~self.is_tag)

    def into(self, number: int) -> list[Link]:
        """The links of other documents to this document."""
        return self._of((self.target == number) & (self.source != number))

    def tags(self, number: int) -> list[Link]:
        """The tags of a document."""
        return self._of((self.source == number) & self.is_tag)

    def tagged(self, tag: str) -> list[Link]:
        """The places of a tag, and of tags below it (`harbour/sill` of `harbour`), in any case."""
        folded = tag.casefold().strip("#/ ")
        names = enumerate(values_of(self.rows["target"]))
        found = [place for place, name in names if self.is_tag[place] and folded in above(name)]
        return self._at(found)

    def all_tags(self) -> Counter[str]:
        """The number of documents with each tag, or with a tag below it, in the spelling that comes
        first."""
        spelled: dict[str, str] = {}
        seen: set[tuple[int, str]] = set()
        for place in np.flatnonzero(self.is_tag):
            name = str(self.rows["target"][int(place)].as_py())
            names = above(name)
            spelled.setdefault(names[-1], name)
            seen |= {(int(self.source[place]), tag) for tag in names}
        return Counter(spelled[name] for _, name in sorted(seen) if name in spelled)

    def missing(self) -> list[Link]:
        """Links to pages that are not in the index: pages that do not exist, have another name, or are not indexed."""
        return [link for link in self._open() if link.misses()]

    def missing_pages(self) -> list[tuple[str, list[Link]]]:
        """The pages that links miss, as first written, with these links; those that most links name first."""
        of: dict[str, list[Link]] = {}
        for link in self.missing():
            of.setdefault(link.written.casefold(), []).append(link)
        ranked = sorted(of.items(), key=lambda pair: (-len(pair[1]), pair[0]))
        return [(links[0].written, links) for _, links in ranked]

    def files(self) -> list[Link]:
        """Links to files without text, as pictures."""
        return [link for link in self._open() if not link.misses()]

    def ambiguous(self) -> list[Link]:
        """Links to a path that several documents have in another case, and none in the case of the link."""
        return self._of(self.target < -1)

    def degrees(self) -> np.ndarray[Any, Any]:
        """How many other documents link to each document."""
        inner = (self.target >= 0) & (self.target != self.source)
        pairs = np.unique(np.stack([self.source[inner], self.target[inner]]), axis=1)
        return np.bincount(pairs[1], minlength=len(self.pages.ids))

    def near(self, number: int, hops: int, direction: str) -> dict[int, int]:
        """Documents that links lead to, and from, within so many steps, with their steps."""
        steps, ring = {number: 0}, {number}
        for hop in range(1, hops + 1):
            found: set[int] = set()
            inside = sorted(ring)
            if direction != "in":
                found.update(self.target[np.isin(self.source, inside)].tolist())
            if direction != "out":
                found.update(self.source[np.isin(self.target, inside)].tolist())
            ring = {document for document in found if document >= 0 and document not in steps}
            steps |= dict.fromkeys(sorted(ring), hop)
        return steps

    def way(self, start: int, goal: int, direction: str) -> list[int]:
        """The documents of a shortest way over links; [] where there is none."""
        before, ring = {start: start}, [start]
        while ring and goal not in before:
            steps: list[tuple[int, int]] = []
            for end, other, way_in in (
                (self.source, self.target, "out"),
                (self.target, self.source, "in"),
            ):
                if direction in ("", way_in):
                    mask = np.isin(end, ring) & (other >= 0) & ~self.is_tag
                    steps += zip(other[mask].tolist(), end[mask].tolist(), strict=True)
            ring = []
            for document, from_ in sorted(steps):
                if document not in before:
                    before[document] = from_
                    ring.append(document)
        way = [goal] if goal in before else []
        while way and way[-1] != start:
            way.append(before[way[-1]])
        return way[::-1]

    def at(self, which: np.ndarray[Any, Any]) -> list[Link]:
        """The links of which this is true."""
        return self._of(which)

    def _open(self) -> list[Link]:
        return self._of((self.target == -1) & ~self.is_tag)

    def _of(self, which: np.ndarray[Any, Any]) -> list[Link]:
        return self._at([int(place) for place in np.flatnonzero(which)])

    def _at(self, which: Sequence[int]) -> list[Link]:
        rows = self.rows.take(pa.array(which, pa.int64())).to_pylist()
        return [
            Link(
                int(self.source[place]),
                int(self.target[place]),
                row["kind"],
                row["target"],
                row["part"],
                row["line"],
                row["char_start"],
                row["char_end"],
                bool(self.renamed[place]),
            )
            for place, row in zip(which, rows, strict=True)
        ]


@once
def links(snapshot: Snapshot) -> Links:
    """The links of a generation, resolved once."""
    return Links(snapshot)


def above(tag: str) -> list[str]:
    """`harbour/sill` and `harbour` of `Harbour/Sill`."""
    parts = tag.casefold().strip("#/ ").split("/")
    return ["/".join(parts[: end + 1]) for end in range(len(parts))]


@once
def tags_of_documents(snapshot: Snapshot) -> dict[str, list[str]]:
    """The tags of each document, with those above them, by content id: of its text, or of its metadata."""
    facts = documents(snapshot)
    found = {id: written.tags(fact["metadata"]) for id, fact in facts.items()}
    if snapshot.count("links"):
        where = f"kind = '{written.TAG}'"
        for id, tag in rows_of(snapshot.rows("links", where, ["document_id", "target"])):
            if id in found:
                found[id].append(tag)
    return {id: sorted({name for tag in tags for name in above(tag)}) for id, tags in found.items()}


# ---- explore_graph -------------------------------------------------------------------------------


def explore(
    snapshot: Snapshot,
    result: ExploreResult,
    start: str,
    goal: str,
    direction: str,
    hops: int,
    most: int,
    budget: int,
) -> ExploreResult:
    """The links of a document (`d4`, its path, name or alias), the documents of a tag (`#harbour`), how two documents
    are linked, or with neither the documents that most others link to and the pages that are missing."""
    if direction not in ("", "in", "out"):
        raise BadInput(f"there is no direction {direction[:40]!r}", "Use in or out")
    found = links(snapshot)
    if not found.rows.num_rows:
        result.state, result.text = "not_found", "The documents of this corpus hold no links."
        return finish(result, budget)
    if not start and not goal:
        return _overview(snapshot, found, result, budget)
    if start.startswith("#"):
        return _of_tag(snapshot, found, result, start, budget)
    number = document_of(snapshot, start)
    if not goal:
        return _of_document(snapshot, found, result, number, direction, hops, most, budget)
    return _between(snapshot, found, result, number, document_of(snapshot, goal), direction, budget)


def document_of(snapshot: Snapshot, asked: str) -> int:
    """The number of the document that an id, uri, path, name, alias or title means. NotFound."""
    known = pages(snapshot)
    facts = documents(snapshot)
    folded = asked.casefold()

    def named(fields: slice) -> int:
        same = (
            id
            for id, fact in facts.items()
            if folded in map(str.casefold, fact["document"][fields])
        )
        return min((known.number[id] for id in same), default=-1)

    # A name means the page that a link with this name leads to, before a document with such a title.
    ways = (
        partial(named, slice(2)),
        partial(known.find, asked.strip("[]")),
        partial(named, slice(2, None)),
        partial(known.find_renamed, asked.strip("[]")),
    )
    found = next((number for way in ways if (number := way()) >= 0), -1)
    if found < 0:
        what = f"there is no document {one_line(asked, 80)!r} to follow links from"
        raise NotFound(what, "list_documents gives the ids of all")
    return found


def _of_document(
    snapshot: Snapshot,
    found: Links,
    result: ExploreResult,
    number: int,
    direction: str,
    hops: int,
    most: int,
    budget: int,
) -> ExploreResult:
    name = _names(snapshot)
    out, into = found.out(number), found.into(number)
    lost = [link for link in out if link.target == -1]
    unsure = [link for link in out if link.target < -1]
    out = [link for link in out if link.target >= 0 and link.target != number]
    result.start = name[number][0]
    head = f"# {one_line(name[number][1], 120)} ({result.start}, {name[number][2]})\n{counts_of(found, number)}."
    sections: list[Section] = []
    if direction != "out":
        sections.append(Section("Links in", _items(snapshot, into, "source"), 0.4, into="edges"))
    if direction != "in":
        sections.append(Section("Links out", _items(snapshot, out, "target"), 0.4, into="edges"))
        sections.append(Section("Ambiguous", _items(snapshot, unsure, ""), 0.1, into="edges"))
        sections.append(Section("Not in the index", _items(snapshot, lost, ""), 0.1, into="edges"))
    steps = found.near(number, hops, direction)
    far = {document: step for document, step in steps.items() if step > 1}
    sections.append(Section("Further", _documents(snapshot, far, most), 0.1))
    result = compose(result, sections, budget, intro=head)
    result.nodes = [_node(name[document], step) for document, step in list(steps.items())[:most]]
    return finish(result, budget)


def _of_tag(
    snapshot: Snapshot, found: Links, result: ExploreResult, tag: str, budget: int
) -> ExploreResult:
    places_of = found.tagged(tag)
    of = list(dict.fromkeys(link.source for link in places_of))
    result.start = tag
    if not places_of:
        known = ", ".join(f"#{name}" for name, _ in found.all_tags().most_common(LISTED))
        result.state = "not_found"
        result.text = f"No document has the tag {one_line(tag, 60)}. Tags: {known or 'none'}."
        return finish(result, budget)
    head = f"# {one_line(tag, 80)}\n{counted(len(of), 'documents')} with this tag."
    sections = [Section("Documents", _items(snapshot, places_of, "source"), 1.0, into="edges")]
    result = compose(result, sections, budget, intro=head)
    name = _names(snapshot)
    result.nodes = [_node(name[document], 1) for document in of]
    return finish(result, budget)


def _between(
    snapshot: Snapshot,
    found: Links,
    result: ExploreResult,
    start: int,
    goal: int,
    direction: str,
    budget: int,
) -> ExploreResult:
    name = _names(snapshot)
    result.start, result.goal = name[start][0], name[goal][0]
    both = f"{_shown(name[start])} and {_shown(name[goal])}"
    way = found.way(start, goal, direction)
    if not way:
        result.state, result.text = "not_found", f"No way over links leads between {both}."
        return finish(result, budget)
    steps: list[Link] = []
    for document, other in zip(way, way[1:], strict=False):
        forward = [link for link in found.out(document) if link.target == other]
        steps += forward[:1] or [link for link in found.out(other) if link.target == document][:1]
    chain = _shown(name[way[0]])
    for link, other in zip(steps, way[1:], strict=True):
        chain += f" {'->' if link.target == other else '<-'} {_shown(name[other])}"
    sections = [Section("Links", _items(snapshot, steps, "both"), 1.0, into="edges")]
    intro = f"# How {both} are linked\n{chain}"
    result = compose(result, sections, budget, intro=intro)
    result.nodes = [_node(name[document], step) for step, document in enumerate(way)]
    return finish(result, budget)


def _overview(
    snapshot: Snapshot, found: Links, result: ExploreResult, budget: int
) -> ExploreResult:
    """The documents that most others link to, tags, and pages that links miss."""
    name, degrees = _names(snapshot), found.degrees()
    central = [
        int(document)
        for document in np.argsort(-degrees, kind="stable")[:LISTED]
        if degrees[document]
    ]
    items = []
    for document in central:
        text = f"- [{name[document][0]}] {one_line(name[document][1], 80)}: {counted(int(degrees[document]), 'documents')} link to it"
        items.append(
            Item(
                name[document][0],
                text,
                data=_node(name[document], 0) | {"degree": int(degrees[document])},
            )
        )
    tags = [
        Item(f"#{tag}", f"- #{one_line(tag, 60)}: {counted(count, 'documents')}")
        for tag, count in sorted(found.all_tags().items(), key=lambda pair: (-pair[1], pair[0]))[
            :LISTED
        ]
    ]
    sections = [
        Section("Most linked", items, 0.4, into="nodes"),
        Section("Tags", tags, 0.2),
        Section("Not in the index", _missing_items(snapshot, found), 0.3),
        Section("Ambiguous", _items(snapshot, found.ambiguous(), "both"), 0.1),
        Section("Without such a part", _items(snapshot, lost_parts(snapshot), "both"), 0.1),
    ]
    intro = f"# Links of {result.corpus}\n{summary(found)}."
    result = compose(result, sections, budget, intro=intro)
    if central:
        result.next_call = f'explore_graph(start="{name[central[0]][0]}", kinds=["{LINKS}"])'
    return finish(result, budget)


# ---- shown elsewhere -----------------------------------------------------------------------------


@once
def lost_parts(snapshot: Snapshot) -> list[Link]:
    """Links to headings, blocks and lines that their page does not have. The text of each page that a link names with
    a part is read for it."""
    found = links(snapshot)
    parts = np.array([bool(part) for part in values_of(found.rows["part"])], bool)
    inner = parts & (found.target >= 0) & ~found.is_tag
    return without_part(snapshot, found.at(inner))


def summary(found: Links) -> str:
    """`40 links in 12 documents, 3 lead to pages that are not in the index, 5 tags`."""
    real = ~found.is_tag
    text = f"{counted(int(real.sum()), 'links')} in {counted(len(set(found.source[real])), 'documents')}"
    missing, files = len(found.missing()), len(found.files())
    if missing:
        text += f", {missing} of them to pages that are not in the index"
    if unsure := len(found.ambiguous()):
        text += f", {unsure} of them ambiguous (the names of pages differ in case alone)"
    if files:
        text += f", {files} to pictures and other files without text"
    if renamed := int(found.renamed.sum()):
        text += f", {renamed} by the old name of a page that was renamed"
    return f"{text}, {counted(len(found.all_tags()), 'tags')}"


def status(snapshot: Snapshot) -> tuple[dict[str, int], list[str], str]:
    """Counts of links for the status of a corpus, its lines, and an advice; ({}, [], "") where there are none."""
    if not snapshot.count("links"):
        return {}, [], ""
    found = links(snapshot)
    missing = found.missing_pages()
    lost = sum(len(links) for _, links in missing)
    counts = {"links": int((~found.is_tag).sum()), "unresolved_links": lost}
    lines = [f"Links: {summary(found)}."]
    if not missing:
        return counts, lines, ""
    shown = ", ".join(one_line(target, 60) for target, _ in missing[:NAMED])
    more = f" and {len(missing) - NAMED} more" if len(missing) > NAMED else ""
    lines.append(f"Pages that links miss: {shown}{more}.")
    return counts, lines, f'All pages that links miss: explore_graph(kinds=["{LINKS}"]).'


def of_outline(snapshot: Snapshot, id: str) -> tuple[str, str]:
    """A sentence about the links of a document (content id), and the call that shows them; "" and
    "" if the document has no links. The call contains no words of a document, so it may stand
    outside of fences."""
    if not snapshot.count("links"):
        return "", ""
    found = links(snapshot)
    number = found.pages.number[id]
    sentence = counts_of(found, number, empty="")
    return (f"{sentence}.", shows(_names(snapshot)[number][0])) if sentence else ("", "")


def shows(alias: str) -> str:
    """The call that shows the links of a document (d4)."""
    return f'explore_graph(start="{alias}", kinds=["{LINKS}"])'


def of_entity(snapshot: Snapshot, names: Iterable[str]) -> tuple[list[str], str]:
    """A line with its links for each document that has one of these names (normalised); and the
    call for the first document."""
    if not snapshot.count("links"):
        return [], ""
    known, of = pages(snapshot), _named(snapshot)
    numbers = list(dict.fromkeys(number for name in names for number in of.get(name, ())))[:NAMED]
    lines, calls = [], []
    for number in numbers:
        alias, _, uri = _names(snapshot)[number]
        sentence, call = of_outline(snapshot, known.ids[number])
        lines.append(f"Page: {uri} ({alias}). {sentence}".strip())
        calls += [call] if call else []
    return lines, calls[0] if calls else ""


def counts_of(found: Links, number: int, empty: str = "No links") -> str:
    """`2 links out, 1 of them to a page that is not in the index, 3 in; tags #person, #harbour`. Links of a document to
    itself do not count."""
    out = [link for link in found.out(number) if link.target != number]
    into, tags = found.into(number), found.tags(number)
    if not (out or into or tags):
        return empty
    lost = sum(link.misses() for link in out)
    text = f"{counted(len(out), 'links')} out"
    text += f" ({lost} of them to no page of the index)" if lost else ""
    text += f", {len(into)} in"
    if tags:
        named = list(dict.fromkeys(f"#{one_line(tag.written, 40)}" for tag in tags))
        more = f" and {len(named) - LISTED} more" if len(named) > LISTED else ""
        text += f"; tags {', '.join(named[:LISTED])}{more}"
    return text


@once
def _named(snapshot: Snapshot) -> dict[str, list[int]]:
    """The documents with links by their normalised names: title, file name, aliases."""
    known, found = pages(snapshot), dict[str, list[int]]()
    for id, fact in documents(snapshot).items():
        stem = stem_of(known.paths[known.number[id]])
        names = (fact["document"][2], stem, *written.aliases(fact["metadata"]))
        for name in dict.fromkeys(normalise_name(spelling) for spelling in names):
            found.setdefault(name, []).append(known.number[id])
    return {name: sorted(numbers) for name, numbers in found.items() if name}


# ---- items ---------------------------------------------------------------------------------------

Name = tuple[str, str, str]  # id (d4), name as links write it, uri


@once
def _names(snapshot: Snapshot) -> list[Name]:
    """Of each document by number. A Markdown file is known by the name of the file, other documents by their title;
    with its path where another one has the same name."""
    known, facts = pages(snapshot), documents(snapshot)
    pairs = list(zip(known.paths, (facts[id]["document"] for id in known.ids), strict=True))
    names = [
        stem_of(path) if written.holds_links(uri) else title
        for path, (_, _, title, uri, _) in pairs
    ]
    many = Counter(map(str.casefold, names))
    return [
        (alias, name if many[name.casefold()] == 1 else f"{name} ({uri})", uri)
        for name, (_, (alias, _, _, uri, _)) in zip(names, pairs, strict=True)
    ]


def _shown(name: Name) -> str:
    return f"{one_line(name[1], 80)} ({name[0]})"


def _node(name: Name, hops: int) -> Row:
    return {"id": name[0], "title": one_line(name[1], 80), "type": "document", "hops": hops}


def _documents(snapshot: Snapshot, steps: Mapping[int, int], most: int) -> list[Item]:
    name = _names(snapshot)
    return [
        Item(
            name[document][0],
            f"- [{name[document][0]}] {one_line(name[document][1], 80)}, {counted(step, 'steps')} away",
        )
        for document, step in list(steps.items())[:most]
    ]


def _items(snapshot: Snapshot, links: Sequence[Link], end: str) -> list[Item]:
    """A line each: the document at this end of the link (source, target, both; "": what is written), the line of the
    text that holds it and its passage."""
    name, items, found = _names(snapshot), [], pages(snapshot)
    lost = set(without_part(snapshot, links[:MOST]))
    for link, text, cited in quoted(snapshot, links[:MOST]):
        source = name[link.source]
        target = name[link.target] if link.target >= 0 else ("", link.written, "")
        part = f" > {one_line(link.part, 60)}" if link.part else ""
        part += " (it has no such part)" if link in lost else ""
        renamed = f" (renamed: {one_line(link.written, 60)} before)" if link.renamed else ""
        if link.target < -1:
            rivals = (
                f"{name[number][0]} ({name[number][2]})" for number in found.rivals(link.target)
            )
            part += f": {' or '.join(rivals)}"
        id = (source if end == "source" else target)[0] if end != "both" else ""
        if end == "both":
            head = f"{_shown(source)} -> {_shown(target)}{part}{renamed}"
        elif end == "source":
            head = f"[{source[0]}] {one_line(source[1], 80)}{renamed}"
        else:
            head = f"[{target[0]}] " if target[0] else ""
            head += f"{one_line(target[1], 80)}{part}{renamed}"
        data = {
            "source": source[0],
            "target": target[0] or link.written,
            "kind": link.kind,
            "line": link.line,
        }
        place = f" [{cited.id}]" if cited else ""
        # Of HTML the lines are those of the text that was read, not those of the file.
        line = f"line {link.line}{' of its text' if link.kind == written.HREF else ''}"
        items.append(Item(id, f"- {head}, {line}: {text}{place}", cited, data=data))
    return items


def without_part(snapshot: Snapshot, links: Sequence[Link]) -> list[Link]:
    """The links that name a heading, a block or a line which their page, a text of Markdown, does not have."""
    known = pages(snapshot)
    asked = [
        link
        for link in links
        if link.part and link.target >= 0 and written.holds_links(known.paths[link.target])
    ]
    ids = sorted({known.ids[link.target] for link in asked})
    parts: dict[str, Parts] = {}
    for at in range(0, len(ids), AT_ONCE):
        rows = snapshot.by_key("documents", ids[at : at + AT_ONCE], "id", ["id", "text"])
        parts |= {id: Parts.of(text) for id, text in rows_of(rows)}
    return [link for link in asked if link.part not in parts[known.ids[link.target]]]


@dataclass(frozen=True, slots=True)
class Parts:
    """What may stand behind `#` in a link to a text of Markdown: headings as they are written or as addresses have
    them, ids (`## Title {#id}`, `<a id="id">`), blocks (`^name`) and lines."""

    headings: Counter[str]
    ids: frozenset[str]
    blocks: frozenset[str]
    lines: int

    @classmethod
    def of(cls, text: str) -> Parts:
        titles: Counter[str] = Counter()
        ids = [found[1] for tag in _ELEMENT.finditer(text) for found in _ID.finditer(tag[0])]
        for _, _, words in headings(text):
            ids += _ATTRIBUTES.findall(words)
            # Obsidian takes the words as they are written, other programs as they are shown.
            titles.update({_slug(words), _slug(readable(_ATTRIBUTES.sub("", words)))})
        blocks = (match[1].casefold() for match in _BLOCK.finditer(text))
        return cls(
            titles, frozenset(map(str.casefold, ids)), frozenset(blocks), 1 + text.count("\n")
        )

    def __contains__(self, part: str) -> bool:
        last = part.rpartition("#")[2].strip()  # Obsidian names the headings above it as well
        if last.startswith("^"):
            return last[1:].casefold() in self.blocks
        line = _LINES.fullmatch(last)
        if (line and int(line[1]) <= self.lines) or last.casefold() in self.ids:
            return True
        again = _AGAIN.fullmatch(last)
        repeated = again is not None and int(again[2]) < self.headings[_slug(again[1])]
        return repeated or _slug(last) in self.headings


def _slug(words: str) -> str:
    """A heading as addresses have it (GitHub, Obsidian): in small letters, without punctuation and blanks."""
    return "".join(ch for ch in unicodedata.normalize("NFC", words).casefold() if ch.isalnum())


def _missing_items(snapshot: Snapshot, found: Links) -> list[Item]:
    """Each page that links miss, those that most links name first, with the documents that name it."""
    name, items = _names(snapshot), []
    for target, links in found.missing_pages():
        sources = [f"{name[link.source][0]} line {link.line}" for link in links[:NAMED]]
        more = f" and {len(links) - NAMED} more" if len(links) > NAMED else ""
        items.append(Item(target, f"- {one_line(target, 100)}: {', '.join(sources)}{more}"))
    return items


def quoted(snapshot: Snapshot, links: Sequence[Link]) -> list[tuple[Link, str, Citation | None]]:
    """Each link with the line that holds it, and with its place."""
    known = pages(snapshot)
    ids = list(dict.fromkeys(known.ids[link.source] for link in links))
    rows = snapshot.by_key(
        "passages", ids, "document_id", list((*context.PASSAGE, "position"))
    ).to_pylist()
    snapshot.with_places(rows)
    rows.sort(key=lambda row: row["position"])
    of: dict[str, list[Row]] = {}
    for row in rows:
        of.setdefault(row["document_id"], []).append(row)
    found = []
    for link in links:
        passages = of.get(known.ids[link.source], [])
        row = next(
            (row for row in passages if row["char_start"] <= link.start < row["char_end"]), None
        )
        if row is None:
            found.append((link, link.written, None))
            continue
        alias = documents(snapshot)[row["document_id"]]["document"][0]
        at = link.start - row["char_start"]
        cited = Citation(
            id=passage_alias(row),
            title=row["title"],
            uri=row["uri"],
            document_id=alias,
            char_start=link.start,
            char_end=link.end,
            line_start=link.line,
            line_end=link.line,
            place=places.of_row(row),
        )
        found.append((link, _line(row["text"], at), cited))
    return found


def _line(text: str, at: int) -> str:
    """The line of a text that holds a character, cut around it to QUOTED characters."""
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    line = without_fingerprints(text[start : end if end >= 0 else len(text)])
    first = max(0, len(without_fingerprints(text[start:at])) - QUOTED // 2)
    cut = line[first : first + QUOTED]
    return f"{'…' * (first > 0)}{one_line(cut, QUOTED)}{'…' * (first + QUOTED < len(line))}"
