"""Links between documents: what a document links to, what links to it, pages that are missing, tags; and how
explore_graph, get_entity, the outline of a document, filters and the status show them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.packing.budget import Item, Section, one_line, passage_alias
from graphrag_mcp.packing.page import compose, finish
from graphrag_mcp.query import context
from graphrag_mcp.query.pages import Pages, pages, stem_of
from graphrag_mcp.query.times import documents
from graphrag_mcp.sources import links as written
from graphrag_mcp.sources.ocr import PICTURES
from graphrag_mcp.sources.walk import kind_of, suffix_of
from graphrag_mcp.store.tables import Snapshot, once, rows_of, values_of
from graphrag_mcp.text import places
from graphrag_mcp.text.citing import without_fingerprints
from graphrag_mcp.text.terms import counted, lists_of, normalise_name
from graphrag_mcp.types import Citation, ExploreResult

Row = dict[str, Any]
LINKS = "links"  # the kind of explore_graph
QUOTED = 160  # characters of the line that holds a link
MOST = 60  # links that are shown with their lines
LISTED = 20  # documents, tags and missing pages of an overview
NAMED = 5  # of them in one line


@dataclass(frozen=True, slots=True)
class Link:
    """A stored link or tag, with the number of its document and of the document to which it leads (-1: none)."""

    source: int
    target: int
    kind: str
    written: str
    part: str
    line: int
    start: int
    end: int

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
        asked = self.rows.select(["kind", "target", "part"]).to_pylist()
        found = [self._target(link, int(at)) for link, at in zip(asked, self.source, strict=True)]
        self.target = np.array(found, np.int64)
        # A page that was saved from the web names hundreds of pages of its site: they are not missing here.
        real = np.array([link["kind"] != written.HREF for link in asked], bool) | (
            self.target != -1
        )
        self.rows = self.rows.take(pa.array(np.flatnonzero(real), pa.int64()))
        self.source, self.target = self.source[real], self.target[real]
        self.is_tag = np.array([kind == written.TAG for kind in values_of(self.rows["kind"])], bool)

    def _target(self, link: Row, source: int) -> int:
        """The document of a link; -1 for a tag, and for a page that the index does not have."""
        return -1 if link["kind"] == written.TAG else self.pages.target(link, source)

    def out(self, number: int) -> list[Link]:
        """The links of a document in the order of its text."""
        return self.at((self.source == number) & ~self.is_tag)

    def into(self, number: int) -> list[Link]:
        """The links of other documents to this document."""
        return self.at((self.target == number) & (self.source != number))

    def tags(self, number: int) -> list[Link]:
        """The tags of a document."""
        return self.at((self.source == number) & self.is_tag)

    def tagged(self, tag: str) -> list[Link]:
        """The places of a tag, and of tags below it (`harbour/sill` of `harbour`), in any case."""
        folded = tag.casefold().strip("#/ ")
        names = values_of(self.rows["target"])
        return self.at(self.is_tag & np.array([folded in above(name) for name in names], bool))

    def all_tags(self) -> Counter[str]:
        """The number of documents with each tag, or with a tag below it, in small letters."""
        of = zip(self.source[self.is_tag], self.rows.filter(self.is_tag)["target"], strict=True)
        seen = {(int(number), tag) for number, name in of for tag in above(name.as_py())}
        return Counter(sorted(tag for _, tag in seen))

    def missing_pages(self) -> list[tuple[str, list[Link]]]:
        """The pages that links miss, as first written, with these links; those that most links name first."""
        lost = (link for link in self.at((self.target == -1) & ~self.is_tag) if link.misses())
        of = lists_of((link.written.casefold(), link) for link in lost)
        ranked = sorted(of.items(), key=lambda pair: (-len(pair[1]), pair[0]))
        return [(links[0].written, links) for _, links in ranked]

    def degrees(self) -> np.ndarray[Any, Any]:
        """How many other documents link to each document."""
        inner = (self.target >= 0) & (self.target != self.source)
        pairs = np.unique(np.stack([self.source[inner], self.target[inner]]), axis=1)
        return np.bincount(pairs[1], minlength=len(self.pages.ids))

    def orphans(self) -> list[int]:
        """The documents of Markdown that no link leads to or from."""
        linked = {*self.source[~self.is_tag].tolist(), *self.target.tolist()}
        paths = enumerate(self.pages.paths)
        return [at for at, path in paths if at not in linked and written.holds_links(path)]

    def at(self, which: np.ndarray[Any, Any]) -> list[Link]:
        """The links of which this is true."""
        numbers = np.flatnonzero(which)
        rows = self.rows.take(pa.array(numbers, pa.int64())).select(
            ["kind", "target", "part", "line", "char_start", "char_end"]
        )
        ends = zip(self.source[numbers].tolist(), self.target[numbers].tolist(), strict=True)
        return [Link(*ends_of, *row) for ends_of, row in zip(ends, rows_of(rows), strict=True)]


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
    snapshot: Snapshot, result: ExploreResult, start: str, goal: str, direction: str, budget: int
) -> ExploreResult:
    """The links of a document (`d4`, its path, name or alias), the documents of a tag (`#harbour`), or without
    `start` the documents that most others link to and the pages that are missing."""
    if direction not in ("", "in", "out"):
        raise BadInput(f"there is no direction {direction[:40]!r}", "Use in or out")
    if goal:
        raise BadInput("links lead from one document", "Ask for the links of start without goal")
    found = links(snapshot)
    if not found.rows.num_rows:
        result.state, result.text = "not_found", "The documents of this corpus hold no links."
        return finish(result, budget)
    if not start:
        return _overview(snapshot, found, result, budget)
    if start.startswith("#"):
        return _of_tag(snapshot, found, result, start, budget)
    number = document_of(snapshot, start)
    return _of_document(snapshot, found, result, number, direction, budget)


def document_of(snapshot: Snapshot, asked: str) -> int:
    """The number of the document that an id, uri, path, name, alias or title means. NotFound."""
    known, folded = pages(snapshot), asked.casefold()
    bare = asked.strip("[]")
    # A name means the page that a link with this name leads to, before a document with such a title.
    titled: list[int] = []
    for id, fact in documents(snapshot).items():
        alias, content, title, uri, _ = fact["document"]
        if folded in (alias, content, uri.casefold()):
            return known.number[id]
        if folded == title.casefold():
            titled.append(known.number[id])
    for number in (known.find(bare), min(titled, default=-1), known.find_renamed(bare)):
        if number >= 0:
            return number
    what = f"there is no document {one_line(asked, 80)!r} to follow links from"
    raise NotFound(what, "list_documents gives the ids of all")


def _of_document(
    snapshot: Snapshot,
    found: Links,
    result: ExploreResult,
    number: int,
    direction: str,
    budget: int,
) -> ExploreResult:
    name = _names(snapshot)
    into = found.into(number) if direction != "out" else []
    every = found.out(number) if direction != "in" else []
    out = [link for link in every if link.target >= 0 and link.target != number]
    lost = [link for link in every if link.target == -1]
    result.start = name[number][0]
    head = f"# {one_line(name[number][1], 120)} ({result.start}, {name[number][2]})\n{counts_of(found, number)}."
    sections = [
        Section("Links in", _items(snapshot, into, "source"), 0.4, into="edges"),
        Section("Links out", _items(snapshot, out, "target"), 0.4, into="edges"),
        Section("Not in the index", _items(snapshot, lost, ""), 0.2, into="edges"),
    ]
    result = compose(result, sections, budget, intro=head)
    near = dict.fromkeys([*(link.source for link in into), *(link.target for link in out)])
    result.nodes = [_node(name[number], 0), *(_node(name[document], 1) for document in near)]
    return finish(result, budget)


def _of_tag(
    snapshot: Snapshot, found: Links, result: ExploreResult, tag: str, budget: int
) -> ExploreResult:
    tagged = found.tagged(tag)
    of = list(dict.fromkeys(link.source for link in tagged))
    result.start = tag
    if not tagged:
        known = ", ".join(f"#{name}" for name, _ in found.all_tags().most_common(LISTED))
        result.state = "not_found"
        result.text = f"No document has the tag {one_line(tag, 60)}. Tags: {known or 'none'}."
        return finish(result, budget)
    head = f"# {one_line(tag, 80)}\n{counted(len(of), 'documents')} with this tag."
    sections = [Section("Documents", _items(snapshot, tagged, "source"), 1.0, into="edges")]
    result = compose(result, sections, budget, intro=head)
    name = _names(snapshot)
    result.nodes = [_node(name[document], 1) for document in of]
    return finish(result, budget)


def _overview(
    snapshot: Snapshot, found: Links, result: ExploreResult, budget: int
) -> ExploreResult:
    """The documents that most others link to, tags, pages that links miss, and documents without links."""
    name, degrees = _names(snapshot), found.degrees()
    best = (int(at) for at in np.argsort(-degrees, kind="stable")[:LISTED])
    central = [document for document in best if degrees[document]]
    items = []
    for document in central:
        degree = int(degrees[document])
        line = f"{_bracketed(name[document])}: {counted(degree, 'documents')} link to it"
        node = _node(name[document], 0) | {"degree": degree}
        items.append(Item(name[document][0], f"- {line}", data=node))
    tags = [
        Item(f"#{tag}", f"- #{one_line(tag, 60)}: {counted(count, 'documents')}")
        for tag, count in found.all_tags().most_common(LISTED)
    ]
    alone = [
        Item(name[number][0], f"- {_bracketed(name[number])}")
        for number in found.orphans()[:LISTED]
    ]
    sections = [
        Section("Most linked", items, 0.4, into="nodes"),
        Section("Tags", tags, 0.2),
        Section("Not in the index", _missing_items(snapshot, found), 0.3),
        Section("Without links", alone, 0.1),
    ]
    intro = f"# Links of {result.corpus}\n{summary(found)}."
    result = compose(result, sections, budget, intro=intro)
    if central:
        result.next_call = shows(name[central[0]][0])
    return finish(result, budget)


# ---- shown elsewhere -----------------------------------------------------------------------------


def summary(found: Links) -> str:
    """`40 links in 12 documents, 3 of them to pages that are not in the index, 5 tags`"""
    real = ~found.is_tag
    text = f"{counted(int(real.sum()), 'links')} in {counted(len(set(found.source[real])), 'documents')}"
    if lost := sum(len(links) for _, links in found.missing_pages()):
        text += f", {lost} of them to pages that are not in the index"
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
    """`2 links out (1 of them to no page of the index), 3 in; tags #person, #harbour`. Links of a document to itself
    do not count."""
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


def _bracketed(name: Name) -> str:
    return f"[{name[0]}] {one_line(name[1], 80)}"


def _node(name: Name, hops: int) -> Row:
    return {"id": name[0], "title": one_line(name[1], 80), "type": "document", "hops": hops}


def _items(snapshot: Snapshot, links: Sequence[Link], end: str) -> list[Item]:
    """A line each: the document at this end of the link (source, target; "": what is written), the line of the text
    that holds it and its passage."""
    name, items = _names(snapshot), []
    for link, text, cited in quoted(snapshot, links[:MOST]):
        source = name[link.source]
        target = name[link.target] if link.target >= 0 else ("", link.written, "")
        shown = source if end == "source" else target
        id, head = (shown[0], _bracketed(shown)) if end else ("", one_line(link.written, 80))
        if link.part and end != "source":
            head += f" > {one_line(link.part, 60)}"
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
    rows = snapshot.by_key("passages", ids, "document_id", list(context.PASSAGE)).to_pylist()
    of = lists_of((row["document_id"], row) for row in snapshot.with_places(rows))
    found: list[tuple[Link, str, Citation | None]] = []
    for link in links:
        passages = of.get(known.ids[link.source], [])
        inside = (row for row in passages if row["char_start"] <= link.start < row["char_end"])
        row = next(inside, None)
        if row is None:
            found.append((link, link.written, None))
            continue
        cited = Citation(
            id=passage_alias(row),
            title=row["title"],
            uri=row["uri"],
            document_id=documents(snapshot)[row["document_id"]]["document"][0],
            char_start=link.start,
            char_end=link.end,
            line_start=link.line,
            line_end=link.line,
            place=places.of_row(row),
        )
        found.append((link, _line(row["text"], link.start - row["char_start"]), cited))
    return found


def _line(text: str, at: int) -> str:
    """The line of a text that holds a character, cut around it to QUOTED characters."""
    start = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    line = without_fingerprints(text[start : end if end >= 0 else len(text)])
    first = max(0, len(without_fingerprints(text[start:at])) - QUOTED // 2)
    cut = line[first : first + QUOTED]
    return f"{'…' * (first > 0)}{one_line(cut, QUOTED)}{'…' * (first + QUOTED < len(line))}"
