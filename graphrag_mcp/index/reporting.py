"""The reports of communities: which are made again, and by whom: an import, a plug-in, a model or agent, or
the sentences of their texts.

A report is made again only where its fingerprint (what it is made of) changed. Children come before
parents, since a report is also made of those on the parts."""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, fields
from heapq import nsmallest
from os.path import commonprefix
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from graphrag_mcp.executors import Executor, InProcess
from graphrag_mcp.index import imported, plugin, report_extractive, report_sentences
from graphrag_mcp.index.communities import Community, Hierarchy
from graphrag_mcp.index.models import Models
from graphrag_mcp.index.report_content import Paper, SummarisedText, Topic, content_of, summaries_by_unit, units_of
from graphrag_mcp.index.report_extractive import Report
from graphrag_mcp.index.report_sentences import Chosen
from graphrag_mcp.index.tree import imported_of
from graphrag_mcp.store.schema import REPORT_FORM
from graphrag_mcp.store.tables import Snapshot, rows_of
from graphrag_mcp.text import dates
from graphrag_mcp.text.terms import content_id, lists_of, terms
from graphrag_mcp.trust.fencing import masked, uncovered

if TYPE_CHECKING:
    from graphrag_mcp.index.report_writing import Writing

AT_ONCE = 4096  # text units that are read at once
BEGINNING, HEADS = 2_000, 5  # characters of a text, texts of a topic that are quoted
NAMED = 50  # entities by whose names a report is found
COLUMNS = tuple(field.name for field in fields(Report))
_REFERENCES = re.compile(r"\[Data:[^\[\]]*\]")


@dataclass(frozen=True)
class Library:
    """The document of each text unit, and what a report says of each document."""

    document_of: Mapping[str, str]
    papers: Mapping[str, Paper]


def library_of(snapshot: Snapshot) -> Library:
    document_of = dict(rows_of(snapshot.rows("text_units", columns=["id", "document_id"])))
    papers: dict[str, Paper] = {}
    rows = rows_of(snapshot.rows("documents", columns=["id", "title", "uri", "metadata"]))
    for id, title, uri, metadata in rows:
        known = {key.casefold(): value for key, value in json.loads(metadata or "{}").items()}
        date = dates.of_metadata(known) or dates.in_name(uri.rpartition("/")[2])
        papers[id] = Paper(_line(title), date)
    return Library(document_of, papers)


def _line(text: str) -> str:
    """A title, a heading or the name of a folder as a sentence may hold it: on one line, without a
    credential and without what is invisible."""
    return uncovered(" ".join(masked(text).split()))[0].replace("[Data:", "(Data:")


def summaries_of(
    snapshot: Snapshot, communities: Iterable[Community], models: Models, library: Library
) -> dict[str, list[SummarisedText]]:
    """The summaries of the documents of these communities, each once, where most documents have one."""
    if models.reports is None:
        return {}
    by_unit = summaries_by_unit(snapshot, library.papers)
    found = {}
    for community in communities if by_unit else ():
        texts = {text.identity: text for unit in community.units if (text := by_unit.get(unit))}
        documents = {library.document_of[unit] for unit in community.units}
        if 2 * len({text.document for text in texts.values()}) > len(documents):
            found[community.id] = [texts[identity] for identity in sorted(texts)]
    return found


# ---- which reports change -----------------------------------------------------------------------


def fingerprints(
    snapshot: Snapshot, tree: Hierarchy, links: pa.Table, models: Models, library: Library
) -> dict[str, str]:
    """Of every community what its report is made of, children before parents. A row stands there as
    its check value. `links`: the relationships, in order of id."""
    check_of = dict(rows_of(snapshot.rows("entities", columns=["id", "check"])))
    # Of each community the relationships that lie in none of its children.
    checks = rows_of(links.select(["source_id", "target_id", "check"]))
    homes = ((_home(tree, source, target), check) for source, target, check in checks)
    edges = lists_of((home, check) for home, check in homes if home is not None)
    prompt = models.reports.fingerprint if models.reports is not None else ""
    brought = imported_of(snapshot)
    summarised = summaries_of(snapshot, tree.communities.values(), models, library)
    prints: dict[str, str] = {}
    for id in sorted(tree.communities, key=lambda id: (-tree.communities[id].level, id)):
        community = tree.communities[id]
        # Of a parent the fingerprints of the children say it.
        members = [] if community.children else [check_of[member] for member in community.members]
        papers = {library.papers[library.document_of[unit]] for unit in community.units}
        report = brought.report(community) if brought else None
        prints[id] = content_id(
            *("report", REPORT_FORM, prompt, id, tree.titles.get(id, "")),
            *sorted(map(repr, papers)),
            *community.units,
            *(prints[child] for child in community.children),
            *map(str, (tree.terms.get(id, {}), members, edges[id])),
            *([json.dumps(report, sort_keys=True)] if report else []),
            *(text.identity for text in summarised.get(id, ())),
        )
    return prints


def _home(tree: Hierarchy, source: str, target: str) -> str | None:
    """The smallest community with both."""
    both = commonprefix([tree.path.get(end, ()) for end in (source, target)])
    return both[-1] if both else None


def changed(snapshot: Snapshot, tree: Hierarchy, prints: Mapping[str, str], corrected: Collection[str]) -> set[str]:
    """Communities whose report is new, is made of something else now, or is one of `corrected`, whose answer
    an agent replaced; with these all that are made of them."""
    stored = dict(rows_of(snapshot.rows("reports", columns=["id", "fingerprint"])))
    found = {id for id in prints if stored.get(id) != prints[id]}
    for id in tree.communities.keys() & corrected:
        while id:
            found.add(id)
            id = tree.communities[id].parent
    return found


# ---- the reports --------------------------------------------------------------------------------


@dataclass
class Reporting:
    """Reports of the communities `wanted`, from their rows and the reports of their children."""

    snapshot: Snapshot
    tree: Hierarchy
    models: Models
    wanted: set[str]
    take: Callable[[Future[Any]], Any] = Future.result
    library: Library | None = None  # None: it is read
    executor: Executor = field(default_factory=InProcess)  # chooses the sentences of the texts

    def __post_init__(self) -> None:
        every = self.tree.communities
        self._library = self.library or library_of(self.snapshot)
        self.content = content_of(self.snapshot, self.tree, self.wanted, evidence=self.models.reports is not None)
        children = {child for id in self.wanted for child in every[id].children} - self.wanted
        communities = (every[id] for id in self.wanted | children)
        self.summaries = summaries_of(self.snapshot, communities, self.models, self._library)
        self.central = self._central_units()
        self.texts = self._beginnings()
        stored = self.snapshot.by_key("reports", sorted(children), "id", COLUMNS).to_pylist()
        self.done = {row["id"]: Report(**row) for row in stored}
        # Why which report is not by a model although one was asked.
        self.degraded: dict[str, str] = {}
        # These, and reports that a model made of such reports.
        self.unsure: set[str] = set()

    def write(self, meanwhile: Callable[[], None] = lambda: None) -> dict[str, Report]:
        """Children come before parents, and what no model is asked about before the rest. `meanwhile`: what is
        to be done while a model writes."""
        self._take_imported()
        left = _children_first(self.tree.communities, self.wanted - self.done.keys())
        writing = self._writing()
        asked = self._asked(left, writing) if writing else set[str]()
        # In this process, but for the choice of sentences: to hand a whole community to another one
        # takes half as long as its report.
        for id, sentences in self._sentences([id for id in left if id not in asked]):
            topic = self._topic(id)
            children = [self.done[child] for child in topic.community.children]
            self.done[id] = self._composed(topic, children, sentences)
        if writing and asked:
            written = writing.asker.start(writing.all(sorted(asked)))
            meanwhile()
            self.done |= self.take(written)
            self.degraded, self.unsure = writing.degraded, writing.unsure
        return {id: self.done[id] for id in self.wanted}

    def terms(self, report: Report) -> str:
        """What a report is found by: its title, its summary without references (ids are no words),
        some of its names, and the characteristic terms of its community behind their number."""
        members = self.tree.communities[report.id].members[:NAMED]
        names = [self.content.entities[id].title for id in members]
        parts = [*report.title.split(" · "), *_REFERENCES.split(report.summary), *names]
        weights = self.tree.terms.get(report.id, {})
        return " ".join([*terms(" | ".join(parts)), f"#{len(weights)}", *weights])

    def _take_imported(self) -> None:
        brought = imported_of(self.snapshot)
        if brought is None:
            return
        for id in self.wanted:
            community = self.tree.communities[id]
            if (row := brought.report(community)) is not None:
                base = report_extractive.outline(self._topic(id))
                self.done[id] = imported.report(row, base)

    def _asked(self, ids: Sequence[str], writing: Writing) -> set[str]:
        """Those of the communities that a model is asked about, and all above them. Where documents wait for
        their summaries, a model may write of a part and not of the whole."""
        asked: set[str] = set()
        for id in ids:
            community = self.tree.communities[id]
            if not asked.isdisjoint(community.children) or writing.wanted(self._topic(id)):
                asked.add(id)
        return asked

    def _writing(self) -> Writing | None:
        """What a model needs to write the reports; None where none is to. One that is only switched
        off is to: what it cannot write meanwhile stays listed."""
        models = self.models
        if models.reports is None:
            return None
        from graphrag_mcp.index.report_writing import Writing

        return Writing(models.asker, models.reports, self._topic, self.done, self._composed)

    def _sentences(self, ids: Sequence[str]) -> Iterator[tuple[str, Sequence[Chosen] | None]]:
        """The communities, each with the sentences of its texts as another process chooses them; None
        where it has none, or a plug-in writes the report."""
        items = {
            id: (self._texts(id), self.tree.terms[id])
            for id in ids
            if id not in self.tree.plugins and self.central[id] and self.tree.terms.get(id)
        }
        found = self.executor.map(report_sentences.chosen, items.values())
        return ((id, next(found) if id in items else None) for id in ids)

    def _composed(self, topic: Topic, children: Sequence[Report], sentences: Sequence[Chosen] | None = None) -> Report:
        """The report without a model. `sentences`: of its texts, where these are chosen."""
        if topic.plugin:
            return plugin.plugins()[topic.plugin].report(topic, children)
        return report_extractive.compose(topic, sentences)

    def _topic(self, id: str) -> Topic:
        community, library = self.tree.communities[id], self._library
        documents = sorted({library.document_of[unit] for unit in community.units})
        return Topic(
            community,
            [self.content.entities[member] for member in community.members],
            self.content.edges[id],
            self.tree.terms.get(id, {}),
            self._texts(id),
            [library.papers[document] for document in documents],
            self.tree.titles.get(id, ""),
            self.tree.plugins.get(id, ""),
            self.summaries.get(id, ()),
            [self.summaries.get(child, ()) for child in community.children],
        )

    def _texts(self, id: str) -> report_sentences.Texts:
        """The texts whose sentences a report quotes."""
        return [(unit, self.texts[unit]) for unit in self.central[id]]

    def _central_units(self) -> dict[str, list[str]]:
        """Of each community its text units, or those that name its entities, that hold most of its terms:
        what they begin with tells of it."""
        every = self.tree.communities
        told = _told_terms(self.snapshot, {unit for id in self.wanted for unit in every[id].units}, self.tree.terms)
        found: dict[str, list[str]] = {}
        for id in self.wanted:
            weights = self.tree.terms.get(id, {})
            rows = map(self.content.entities.__getitem__, every[id].members)
            units = units_of(every[id], rows)

            def place(unit: str, weights: Mapping[str, float] = weights) -> tuple[float, str]:
                shared = told.get(unit, set()) & weights.keys()
                return -round(math.fsum(weights[term] for term in shared), 9), unit

            found[id] = nsmallest(HEADS, units, place)
        return found

    def _beginnings(self) -> dict[str, str]:
        """How the central text units begin."""
        units = sorted({unit for units in self.central.values() for unit in units})
        found: dict[str, str] = {}
        for at in range(0, len(units), AT_ONCE):
            key = ("text_units", units[at : at + AT_ONCE], "id", ["id", "text"])
            found |= {id: text[:BEGINNING] for id, text in rows_of(self.snapshot.by_key(*key))}
        return found


def _children_first(every: Mapping[str, Community], ids: Collection[str]) -> list[str]:
    """These communities, each behind its children and beside what quotes the same texts."""

    def path(id: str) -> list[str]:
        found = ["~"]  # behind every id of a child
        while id:
            found.append(id)
            id = every[id].parent
        return found[::-1]

    return sorted(ids, key=path)


def _told_terms(
    snapshot: Snapshot, units: Collection[str], weights: Mapping[str, Mapping[str, float]]
) -> dict[str, set[str]]:
    """Which of the characteristic terms of communities (`weights`) stand in each of these text units."""
    known = {term for terms in weights.values() for term in terms}
    found: dict[str, set[str]] = defaultdict(set)
    order = sorted(units)
    for at in range(0, len(order) if known else 0, AT_ONCE):
        key = ("passages", order[at : at + AT_ONCE], "text_unit_id", ["text_unit_id", "terms"])
        for unit, stored in rows_of(snapshot.by_key(*key)):
            found[unit] |= known.intersection(stored.split(" "))
    return found
