"""Links between documents: what a document links to, what links to it, pages that are missing, tags; and how
explore_graph, get_entity, the outline of a document, filters and the status show them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from graphrag_mcp.errors import BadInput
from graphrag_mcp.packing.budget import TITLE, Item, Section, citation, one_line
from graphrag_mcp.packing.page import compose, finish
from graphrag_mcp.query import context
from graphrag_mcp.query.pages import Pages, documents_of, pages, stem_of
from graphrag_mcp.query.times import documents
from graphrag_mcp.sources import links as written
from graphrag_mcp.sources.ocr import PICTURES
from graphrag_mcp.sources.walk import kind_of, suffix_of
from graphrag_mcp.store.tables import Snapshot, once, rows_of
from graphrag_mcp.text.citing import without_fingerprints
from graphrag_mcp.text.terms import counted, lists_of
from graphrag_mcp.types import Citation, ExploreResult

LINKS = "links"  # the kind of explore_graph
QUOTED = 160  # characters of the line that holds a link
MOST = 60  # links that are shown with their lines
LISTED = 20  # documents, tags and missing pages of an overview
NAMED = 5  # of them in one line


class Link(NamedTuple):
    """A stored link or tag, with the number of its document and of the document to which it leads (-1: none)."""

    source: int
    start: int
    end: int
    target: int
    kind: str
    written: str
    part: str
    line: int

    def misses(self) -> bool:
        """Does it lead to a page that the index does not have? Pictures and other files without text are no pages."""
        file = suffix_of(self.written) in PICTURES or bool(kind_of(self.written))
        return self.target == -1 and not file


class Links:
    """All links and tags of a generation, by the documents of `pages`, in the order of their texts."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.pages: Pages = pages(snapshot)
        columns = ["document_id", "kind", "target", "part", "line", "char_start", "char_end"]
        found: list[Link] = []
        for document, kind, name, part, line, start, end in rows_of(snapshot.rows("links", "", columns)):
            if (source := self.pages.number.get(document, -1)) < 0:
                continue
            is_tag = kind == written.TAG
            target = -1 if is_tag else self.pages.target(kind, name, part, source)
            # A page saved from the web names hundreds of pages of its site: they are not missing here.
            if kind != written.HREF or target >= 0:
                found.append(Link(source, start, end, target, kind, name, part, line))
        self.all: list[Link] = sorted(found)
        self.links: list[Link] = [link for link in self.all if link.kind != written.TAG]
        self.tags = [link for link in self.all if link.kind == written.TAG]
        self._out = lists_of((link.source, link) for link in self.links)
        self._into = lists_of((link.target, link) for link in self.links if link.source != link.target)
        self._tags = lists_of((link.source, link.written) for link in self.tags)

    def out(self, number: int) -> list[Link]:
        """The links of a document in the order of its text."""
        return self._out.get(number, [])

    def into(self, number: int) -> list[Link]:
        """The links of other documents to this document."""
        return self._into.get(number, [])

    def tags_of(self, number: int) -> list[str]:
        """The tags of a document as they are written."""
        return list(dict.fromkeys(self._tags.get(number, [])))

    def tagged(self, tag: str) -> list[Link]:
        """The places of a tag, and of tags below it (`harbour/sill` of `harbour`), in any case."""
        folded = tag.casefold().strip("#/ ")
        return [link for link in self.tags if folded in above(link.written)]

    def all_tags(self) -> Counter[str]:
        """The number of documents with each tag, or with a tag below it, in small letters."""
        seen = {(link.source, tag) for link in self.tags for tag in above(link.written)}
        return Counter(sorted(tag for _, tag in seen))

    def missing_pages(self) -> list[tuple[str, list[Link]]]:
        """The pages that links miss, as first written, with these links; those that most links name first."""
        of = lists_of((link.written.casefold(), link) for link in self.links if link.misses())
        ranked = sorted(of.items(), key=lambda pair: (-len(pair[1]), pair[0]))
        return [(links[0].written, links) for _, links in ranked]

    def degrees(self) -> Counter[int]:
        """How many other documents link to each document; those that most link to first."""
        pairs = {(link.target, link.source) for link in self.links}
        linked = Counter(sorted(to for to, source in pairs if to >= 0 and to != source))
        return Counter(dict(linked.most_common()))

    def orphans(self) -> list[int]:
        """The documents of Markdown that no link leads to or from."""
        linked = {end for link in self.links for end in (link.source, link.target)}
        paths = enumerate(self.pages.paths)
        return [at for at, path in paths if at not in linked and written.holds_links(path)]


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
    facts, of_text = documents(snapshot), dict[str, list[str]]()
    if snapshot.count("links"):
        where = f"kind = '{written.TAG}'"
        of_text = lists_of(rows_of(snapshot.rows("links", where, ["document_id", "target"])))
    tags = {id: [*written.tags(facts[id].metadata), *of_text.get(id, [])] for id in facts}
    return {id: sorted({name for tag in tags[id] for name in above(tag)}) for id in facts}


# ---- explore_graph -------------------------------------------------------------------------------


def explore(
    snapshot: Snapshot, result: ExploreResult, start: str, goal: str, direction: str, budget: int
) -> ExploreResult:
    """The links of a document (`d4`, its path, name or alias), the documents of a tag (`#harbour`), or without
    `start` the documents that most others link to and the pages that are missing."""
    if goal:
        raise BadInput("links lead from one document", "Ask for the links of start without goal")
    found, name = links(snapshot), _names(snapshot)
    result.start = start
    near: dict[int, int] = {}  # documents of the result, with their distance from `start`
    if not found.all:
        result.state, result.text = "not_found", "The documents of this corpus hold no links."
        return finish(result, budget)
    if not start:
        head = f"# Links of {result.corpus}\n{summary(found)}."
        sections = _overview(found, name)
    elif start.startswith("#"):
        tagged = found.tagged(start)
        near = dict.fromkeys((link.source for link in tagged), 1)
        head = f"# {one_line(start, 80)}\n{counted(len(near), 'documents')} with this tag."
        if not tagged:
            known = ", ".join(f"#{tag}" for tag, _ in found.all_tags().most_common(LISTED))
            result.state, head = "not_found", f"{head} Tags: {known or 'none'}."
        sections = [Section("Documents", _items(snapshot, tagged, "source"), 1.0, into="edges")]
    else:
        number, *others = (found.pages.number[id] for id in documents_of(snapshot, start))
        result.start, title, uri = name[number]
        head = f"# {one_line(title, TITLE)} ({result.start}, {uri})\n{counts_of(found, number) or 'No links'}."
        if others:
            head += f"\nAlso named so: {_first([_bracketed(name[other]) for other in others])}."
        into = found.into(number) if direction != "out" else []
        out = found.out(number) if direction != "in" else []
        lost = [link for link in out if link.target == -1]
        out = [link for link in out if link.target not in (-1, number)]
        near = {number: 0} | dict.fromkeys([link.source for link in into], 1)
        near |= dict.fromkeys([link.target for link in out], 1)
        sections = [
            Section("Links in", _items(snapshot, into, "source"), 0.4, into="edges"),
            Section("Links out", _items(snapshot, out, "target"), 0.4, into="edges"),
            Section("Not in the index", _items(snapshot, lost, "target"), 0.2, into="edges"),
        ]
    result = compose(result, sections, budget, intro=head)
    result.nodes = [_node(name[at], hops) for at, hops in near.items()] or result.nodes
    return finish(result, budget)


def _overview(found: Links, name: Sequence[Name]) -> list[Section]:
    """The documents that most others link to, tags, pages that links miss, and documents without links."""
    items = [
        Item(
            name[number][0],
            f"- {_bracketed(name[number])}: {counted(degree, 'documents')} link to it",
            data=_node(name[number], 0) | {"degree": degree},
        )
        for number, degree in found.degrees().most_common(LISTED)
    ]
    tags = [
        Item(f"#{tag}", f"- #{one_line(tag, 60)}: {counted(count, 'documents')}")
        for tag, count in found.all_tags().most_common(LISTED)
    ]
    lost = []
    for target, mentions in found.missing_pages():
        sources = [f"{name[link.source][0]} line {link.line}" for link in mentions]
        lost.append(Item(target, f"- {one_line(target, 100)}: {_first(sources)}"))
    alone = [Item(name[number][0], f"- {_bracketed(name[number])}") for number in found.orphans()[:LISTED]]
    return [
        Section("Most linked", items, 0.4, into="nodes"),
        Section("Tags", tags, 0.2),
        Section("Not in the index", lost, 0.3),
        Section("Without links", alone, 0.1),
    ]


# ---- shown elsewhere -----------------------------------------------------------------------------


def summary(found: Links) -> str:
    """`40 links in 12 documents, 3 of them to pages that are not in the index, 5 tags`"""
    within = counted(len({link.source for link in found.links}), "documents")
    text = f"{counted(len(found.links), 'links')} in {within}"
    if lost := sum(link.misses() for link in found.links):
        text += f", {lost} of them to pages that are not in the index"
    return f"{text}, {counted(len(found.all_tags()), 'tags')}"


def status(snapshot: Snapshot) -> tuple[dict[str, int], list[str], str]:
    """Counts of links for the status of a corpus, its lines, and an advice; ({}, [], "") where there are none."""
    if not snapshot.count("links"):
        return {}, [], ""
    found = links(snapshot)
    lost = sum(link.misses() for link in found.links)
    counts, lines = ({"links": len(found.links), "unresolved_links": lost}, [f"Links: {summary(found)}."])
    if not lost:
        return counts, lines, ""
    names = [one_line(target, 60) for target, _ in found.missing_pages()]
    lines.append(f"Pages that links miss: {_first(names)}.")
    return counts, lines, f'All pages that links miss: explore_graph(kinds=["{LINKS}"]).'


def of_outline(snapshot: Snapshot, id: str) -> tuple[str, str]:
    """A sentence about the links of a document (content id), and the call that shows them; "" and
    "" if the document has no links. The call contains no words of a document, so it may stand
    outside of fences."""
    if not snapshot.count("links"):
        return "", ""
    found = links(snapshot)
    number = found.pages.number[id]
    counts = counts_of(found, number)
    call = f'explore_graph(start="{_names(snapshot)[number][0]}", kinds=["{LINKS}"])'
    return (f"{counts}.", call) if counts else ("", "")


def of_entity(snapshot: Snapshot, names: Iterable[str]) -> tuple[str, str]:
    """A line on the page of an entity, to which a link with one of its names leads, and the call that shows its
    links; "" and "" where there is none."""
    known = pages(snapshot)
    number = next((at for name in names if (at := known.find(name)) >= 0), -1)
    if number < 0 or not snapshot.count("links"):
        return "", ""
    alias, _, uri = _names(snapshot)[number]
    sentence, call = of_outline(snapshot, known.ids[number])
    return f"Page: {uri} ({alias}). {sentence}".strip(), call


def counts_of(found: Links, number: int) -> str:
    """`2 links out (1 of them to no page of the index), 3 in; tags #person, #harbour`; "" for none. Links of a
    document to itself do not count."""
    out = [link for link in found.out(number) if link.target != number]
    into, tags = found.into(number), found.tags_of(number)
    if not (out or into or tags):
        return ""
    lost = sum(link.misses() for link in out)
    no_page = f" ({lost} of them to no page of the index)" if lost else ""
    named = f"; tags {_first([f'#{one_line(tag, 40)}' for tag in tags], LISTED)}" if tags else ""
    return f"{counted(len(out), 'links')} out{no_page}, {len(into)} in{named}"


# ---- items ---------------------------------------------------------------------------------------

Name = tuple[str, str, str]  # id (d4), name as links write it, uri


@once
def _names(snapshot: Snapshot) -> list[Name]:
    """Of each document by number. A Markdown file is known by the name of the file, other documents by their title;
    with its path where another one has the same name."""
    known, facts = pages(snapshot), documents(snapshot)
    found: list[Name] = []
    for path, id in zip(known.paths, known.ids, strict=True):
        fact = facts[id]
        name = stem_of(path) if written.holds_links(fact.uri) else fact.title
        found.append((fact.alias, name, fact.uri))
    many = Counter(name.casefold() for _, name, _ in found)
    return [(alias, name if many[name.casefold()] == 1 else f"{name} ({uri})", uri) for alias, name, uri in found]


def _first(words: Sequence[str], most: int = NAMED) -> str:
    """`a, b and 3 more`"""
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return f"{', '.join(words[:most])}{more}"


def _bracketed(name: Name) -> str:
    return f"[{name[0]}] {one_line(name[1], 80)}"


def _node(name: Name, hops: int) -> dict[str, Any]:
    return {"id": name[0], "title": one_line(name[1], 80), "type": "document", "hops": hops}


def _items(snapshot: Snapshot, links: Sequence[Link], end: str) -> list[Item]:
    """A line each: the document at this end of the link (source, target), or what is written where there is none;
    the line of the text that holds it and its passage."""
    name, items = _names(snapshot), []
    for link, text, cited in quoted(snapshot, links[:MOST]):
        source = name[link.source]
        target = name[link.target] if link.target >= 0 else ("", link.written, "")
        shown = source if end == "source" else target
        head = _bracketed(shown) if shown[0] else one_line(link.written, 80)
        if link.part and end == "target":
            head += f" > {one_line(link.part, 60)}"
        data = {"source": source[0], "target": target[0] or link.written}
        data |= {"kind": link.kind, "line": link.line}
        place = f" [{cited.id}]" if cited else ""
        # Of HTML the lines are those of the text that was read, not those of the file.
        line = f"line {link.line}{' of its text' if link.kind == written.HREF else ''}"
        items.append(Item(shown[0], f"- {head}, {line}: {text}{place}", cited, data=data))
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
        place = {"char_start": link.start, "char_end": link.end, "line_start": link.line, "line_end": link.line}
        cited = citation(row, document=documents(snapshot)[row["document_id"]].alias).model_copy(update=place)
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
