"""The second commit of a run: communities, reports and vectors of the current graph.

Until then results say that communities are stale. A report is made again only when its fingerprint
(what it is made of) changed. What a model could not write stays in the table `pending`, and is
asked again by the next run."""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Future
from dataclasses import dataclass, field, fields, replace
from heapq import nsmallest
from os.path import commonprefix
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_mcp.executors import Executor, InProcess
from graphrag_mcp.index import imported, plugin, report_extractive, report_sentences, vectors
from graphrag_mcp.index.communities import VERSION as VERSION_OF_GROUPS
from graphrag_mcp.index.communities import (
    ClusterParams,
    Community,
    Hierarchy,
    Texts,
    Topics,
    Way,
    by_rank,
    characteristic,
    cluster,
    texts_of,
    tree_with,
    ways_of,
)
from graphrag_mcp.index.graph import graph_to_table
from graphrag_mcp.index.imported import GRAPHS
from graphrag_mcp.index.models import Models
from graphrag_mcp.index.report_content import Inside, Paper, content_of, inside_of
from graphrag_mcp.index.report_prompt import SummarisedText, summaries_by_unit
from graphrag_mcp.index.report_sentences import Chosen
from graphrag_mcp.index.report_writing import Writing
from graphrag_mcp.index.run import Run
from graphrag_mcp.index.units import pending
from graphrag_mcp.plugins import readers
from graphrag_mcp.store.schema import LIST, REPORT_FORM, TABLES, VECTOR_FORM
from graphrag_mcp.store.sheets import sheets_of
from graphrag_mcp.store.tables import (
    Change,
    Snapshot,
    licences_of,
    notes_of,
    repeated_lines_of,
    rows_of,
)
from graphrag_mcp.text import dates
from graphrag_mcp.text.prose import without_addresses
from graphrag_mcp.text.terms import content_id, lists_of, terms
from graphrag_mcp.trust.fencing import masked, uncovered

Row = dict[str, Any]
Papers = tuple[dict[str, str], dict[str, Paper]]  # document by text unit, paper by document
_REFERENCES = re.compile(r"\[Data:[^\[\]]*\]")
AT_ONCE = 4096  # passages of which the terms are in memory
REPORTED_ENTITIES = 10_000  # of communities that are reported at once: 100 MB
BEGINNING, HEADS = 2_000, 5  # characters of a text, texts of a topic that are quoted
_REPORT = tuple(field.name for field in fields(report_extractive.Report))

# ---- the hierarchy ------------------------------------------------------------------------------


def links_of(snapshot: Snapshot) -> pa.Table:
    """The relationships, in order of id: what is clustered, and what reports are compared by."""
    columns = ["id", "source_id", "target_id", "weight", "check"]
    return snapshot.rows("relationships", columns=columns).sort_by("id")


def topics_ahead(
    snapshot: Snapshot, params: ClusterParams, check: Callable[[], None]
) -> Topics | None:
    """The topics of the texts of a generation to come, before its graph is merged; None where the stored
    ones hold. `tree_of` takes them where the graph moves no text: Leiden lets Python go on meanwhile.
    `check` raises where no one waits for them any longer."""
    documents = dict(rows_of(snapshot.rows("text_units", columns=["id", "document_id"])))
    uris = rows_of(snapshot.rows("documents", columns=["id", "uri"]))
    plugged = {id for id, uri in uris if any(reader.knows(uri) for reader in readers().values())}
    left_out = plugged | notes_of(snapshot) | licences_of(snapshot)
    documents = {unit: of for unit, of in documents.items() if of not in left_out}
    sheets = _sheets(snapshot, documents)
    made_of = _made_of(params, documents, sheets)
    if snapshot.manifest.parameters.get("topics") == made_of:
        return None
    check()
    texts = _texts(snapshot, documents)
    return Topics(texts, ways_of(texts, params, sheets, check), made_of)


def tree_of(
    snapshot: Snapshot,
    params: ClusterParams,
    links: pa.Table,
    recluster: bool = False,
    ahead: Topics | None = None,
) -> Hierarchy:
    """The hierarchy of the text units and entities that there are; imports may have a part. Where no
    text but those of plug-ins changed, its groups are those of the stored tree, unless `recluster`."""
    found = _imported(snapshot)
    near = found is not None and found.near
    documents = dict(rows_of(snapshot.rows("text_units", columns=["id", "document_id"])))
    outlined = {} if near else plugin.outlined_units(snapshot, documents)
    plugged = {
        name: list(plugin.plugins()[name].groups(units, params)) for name, units in outlined.items()
    }
    apart = {unit for units in outlined.values() for unit in units}
    entities = dict(rows_of(snapshot.rows("entities", columns=["id", "text_unit_ids"])))
    documents = {unit: of for unit, of in documents.items() if unit not in apart}
    if left_out := notes_of(snapshot) | licences_of(snapshot):
        # but those of an import whose texts name something
        naming = {unit for units in entities.values() for unit in units}
        documents = {
            unit: of for unit, of in documents.items() if of not in left_out or unit in naming
        }
    if apart:  # an entity is where it is defined, however often documents name it
        entities = {
            id: [unit for unit in units if unit in apart] or units for id, units in entities.items()
        }
    if not near:  # what has text units follows no link; of 14,000 documents these took 40 MB
        placed = pa.array([id for id, units in entities.items() if units], pa.string())
        ends = (pc.is_in(links[end], placed) for end in ("source_id", "target_id"))
        links = links.filter(pc.invert(pc.and_(*ends)))
    edges = list(rows_of(links.select(["source_id", "target_id", "weight"])))
    sheets = _sheets(snapshot, documents)
    made_of = _made_of(params, documents, sheets)
    if not near and not recluster and snapshot.manifest.parameters.get("topics") == made_of:
        if (kept := _stored_groups(snapshot, documents)) is not None:
            tree = tree_with(kept[0], entities, edges, plugged)
            pairs = ((way, enumerate(tree.path[unit], 1)) for unit, way in kept[0].items())
            terms = {id: kept[1][way[:depth]] for way, above in pairs for depth, id in above}
            return replace(tree, terms=terms, made_of=made_of)
    if ahead is not None and ahead.made_of == made_of and not near:
        texts = ahead.texts
        tree = tree_with(ahead.ways, entities, edges, plugged)
    else:
        texts = _texts(snapshot, documents)
        if found is not None and near:
            tree = imported.hierarchy(found, texts, entities, edges, params)
        else:
            tree = cluster(texts, entities, edges, params, plugged, sheets)
    return replace(tree, terms=characteristic(texts, tree), made_of="" if near else made_of)


def _sheets(snapshot: Snapshot, documents: Mapping[str, str]) -> dict[str, str]:
    """The file of each text unit that is rows of a sheet."""
    files = sheets_of(snapshot, {*documents.values()})
    return {unit: files[of] for unit, of in documents.items() if of in files}


def _made_of(params: ClusterParams, documents: Mapping[str, str], sheets: Mapping[str, str]) -> str:
    parts = repr(params), repr(sorted(documents.items())), repr(sorted(sheets.items()))
    return content_id(str(VERSION_OF_GROUPS), *parts)


def _texts(snapshot: Snapshot, documents: Mapping[str, str]) -> Texts:
    """The terms of text units; `documents`: by text unit."""
    repeated = repeated_lines_of(snapshot)
    columns = ["document_id", "text_unit_id", "text", "terms"]
    batches = (said(part, repeated) for part in snapshot.batches("passages", columns, AT_ONCE))
    return texts_of(batches, documents)


def said(passages: pa.Table, repeated: Mapping[str, Set[str]]) -> pa.Table:
    """The passages with the terms of what their texts say: without those of addresses, and of the lines
    that a document repeats. By menus and notices pages of a site are alike, whatever they tell."""
    linked = pc.match_substring_regex(passages["text"], r"\]\(|://|www\.|[!-~]{40}").to_pylist()
    names = "document_id", "text", "terms"
    rows = zip(linked, *(passages[name].to_pylist() for name in names), strict=True)
    term_texts = [
        " ".join(terms(without_addresses(text, repeated.get(document, frozenset()))))
        if has_address or document in repeated
        else known
        for has_address, document, text, known in rows
    ]
    return passages.select(["text_unit_id"]).append_column(
        "terms", pa.array(term_texts, pa.string())
    )


def _stored_groups(
    snapshot: Snapshot, units: Collection[str]
) -> tuple[dict[str, Way], dict[Way, Mapping[str, float]]] | None:
    """The groups of text units in the stored tree as `ways_of` numbers them, and the characteristic
    terms of each; None where the stored tree lacks one."""
    paths = _paths(snapshot)
    units_of: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for unit in sorted(units):
        for end in range(1, 1 + len(path := paths.get(unit, ()))):
            units_of[path[:end]].append(unit)
    rows = snapshot.by_key(
        "reports", sorted({path[-1] for path in units_of}), "id", ["id", "terms"]
    )
    terms_of = dict(rows_of(rows))
    if len(units_of) != len(terms_of) or not paths.keys() >= set(units):
        return None
    numbers: Counter[tuple[str, ...]] = Counter()
    ways: dict[tuple[str, ...], Way] = {(): ()}
    for path in sorted(
        units_of, key=lambda path: (len(path), -len(units_of[path]), units_of[path][0])
    ):
        ways[path] = (*ways[path[:-1]], numbers[path[:-1]])
        numbers[path[:-1]] += 1
    known: dict[Way, Mapping[str, float]] = {
        ways[path]: by_rank(terms_of[path[-1]].rpartition("#")[2].split()[1:]) for path in units_of
    }
    return {unit: ways[paths[unit]] for unit in units}, known


def _imported(snapshot: Snapshot) -> imported.ImportedGraphs | None:
    """What imports brought; None where nothing was ever imported."""
    there = any(segment["kind"] == GRAPHS for segment in snapshot.manifest.segments)
    return imported.imported_graphs(snapshot) if there else None


def stored_tree(snapshot: Snapshot) -> Hierarchy:
    path = _paths(snapshot)
    rows = snapshot.rows("communities").to_pylist()
    of_text = sorted(path.keys() - {id for row in rows for id in row["entity_ids"]})
    units = lists_of((community, id) for id in of_text for community in path[id])
    found = {}
    for row in rows:
        members = (row["children"], row["entity_ids"], units[row["id"]])
        found[row["id"]] = Community(row["id"], row["level"], row["parent"], *map(tuple, members))
    return Hierarchy(found, path)


def _paths(snapshot: Snapshot) -> dict[str, tuple[str, ...]]:
    rows = rows_of(snapshot.rows("memberships", columns=["entity_id", "path"]))
    return {id: tuple(path) for id, path in rows}


def compare(
    snapshot: Snapshot, tree: Hierarchy, number: dict[str, int]
) -> tuple[dict[str, Change], dict[str, int]]:
    """What the tree changes in the tables, and the number of every community. An id says level and
    members, so what may have moved of a community is where it hangs."""
    stored = rows_of(snapshot.rows("communities", columns=["id", "n", "parent", "children"]))
    old = {id: (n, parent, children) for id, n, parent, children in stored}
    numbers = {id: n for id, (n, _, _) in old.items()}
    vanished = [id for id in old if id not in tree.communities]
    removed, rows = list(vanished), []
    for id, community in tree.communities.items():
        if id not in old:
            numbers[id], number["c"] = number["c"], number["c"] + 1
        elif old[id][1:] == (community.parent, list(community.children)):
            continue
        else:
            removed.append(id)
        place = {"level": community.level, "parent": community.parent}
        lists = {"children": list(community.children), "entity_ids": list(community.members)}
        rows.append({"id": id, "n": numbers[id], **place, **lists, "size": len(community.members)})
    paths = _paths(snapshot)
    changed = [id for id, path in tree.path.items() if paths.get(id) != path]
    left = [*(paths.keys() - tree.path.keys()), *(id for id in changed if id in paths)]
    members = [pa.array(changed, pa.string()), pa.array(map(tree.path.get, changed), LIST)]
    changes = {
        "communities": Change(removed, graph_to_table("communities", rows)),
        "memberships": Change(sorted(left), pa.table(members, schema=TABLES["memberships"])),
        "reports": Change(vanished, graph_to_table("reports", [])),
    }
    return changes, numbers


# ---- which reports change -----------------------------------------------------------------------


def fingerprints(
    snapshot: Snapshot, tree: Hierarchy, links: pa.Table, models: Models, known: Papers
) -> dict[str, str]:
    """Of every community what its report is made of, children before parents. A row stands there as
    its check value."""
    rows = dict(rows_of(snapshot.rows("entities", columns=["id", "check"])))
    # Of each community the relationships that lie in none of its children.
    checks = rows_of(links.select(["source_id", "target_id", "check"]))
    homes = ((_home(tree, source, target), check) for source, target, check in checks)
    edges = lists_of((home, check) for home, check in homes if home is not None)
    prompt = models.reports.fingerprint if models.reports is not None else ""
    found = _imported(snapshot)
    documents, papers = known
    summarised = summaries_of(snapshot, tree.communities.values(), models, known)
    prints: dict[str, str] = {}
    for id in sorted(tree.communities, key=lambda id: (-tree.communities[id].level, id)):
        community = tree.communities[id]
        # Of a parent the fingerprints of the children say it.
        members = () if community.children else [rows[member] for member in community.members]
        report = found.report(community) if found else None
        parts = (
            [REPORT_FORM, prompt, id, tree.titles.get(id, "")],
            sorted({repr(papers[documents[unit]]) for unit in community.units}),
            [*community.units, *(prints[child] for child in community.children)],
            map(str, (tree.terms.get(id, {}), members, edges[id])),
            [json.dumps(report, sort_keys=True)] if report else [],
            [text.identity for text in summarised.get(id, ())],
        )
        prints[id] = content_id("report", *(part for strings in parts for part in strings))
    return prints


def _home(tree: Hierarchy, source: str, target: str) -> str | None:
    """The smallest community with both."""
    both = commonprefix([tree.path.get(end, ()) for end in (source, target)])
    return both[-1] if both else None


def _changed(run: Run, snapshot: Snapshot, tree: Hierarchy, prints: Mapping[str, str]) -> set[str]:
    """Communities whose report is new, is made of something else now, or whose answer an agent
    replaced; with these all that are made of them."""
    stored = dict(rows_of(snapshot.rows("reports", columns=["id", "fingerprint"])))
    again = {correction.subject for correction in run.corrections if correction.kind == "report"}
    changed = {id for id in prints if stored.get(id) != prints[id]}
    for id in again & tree.communities.keys():
        while id:
            changed.add(id)
            id = tree.communities[id].parent
    return changed


def _in_parts(tree: Hierarchy, communities: Collection[str]) -> Iterator[set[str]]:
    """The communities in parts that are reported one after another, or memory would grow with the
    graph. What lies in one coarsest community is in one part."""
    below: dict[str, list[str]] = defaultdict(list)  # by coarsest community
    for id in communities:
        top = id
        while tree.communities[top].parent:
            top = tree.communities[top].parent
        below[top].append(id)
    part: set[str] = set()
    size = 0
    for top, ids in sorted(below.items()):
        part.update(ids)
        size += len(tree.communities[top].members)
        if size >= REPORTED_ENTITIES:
            yield part
            part, size = set(), 0
    if part:
        yield part


# ---- the reports --------------------------------------------------------------------------------


def _children_first(every: Mapping[str, Community], ids: Collection[str]) -> list[str]:
    """These communities, each behind its children and beside what quotes the same texts."""

    def path(id: str) -> list[str]:
        found = ["~"]  # behind every id of a child
        while id:
            found.append(id)
            id = every[id].parent
        return found[::-1]

    return sorted(ids, key=path)


@dataclass
class Reporting:
    """Reports of the communities `wanted`, from their rows and the reports of their children."""

    snapshot: Snapshot
    tree: Hierarchy
    models: Models
    wanted: set[str]
    take: Callable[[Future[Any]], Any] = Future.result
    known: Papers | None = None  # None: they are read
    executor: Executor = field(default_factory=InProcess)  # chooses the sentences of the texts

    def __post_init__(self) -> None:
        written = self.models.reports is not None
        self.content = content_of(self.snapshot, self.tree, self.wanted, evidence=written)
        every = self.tree.communities
        units = {unit for id in self.wanted for unit in every[id].units}
        self.told = told(self.snapshot, units, self.tree.terms)
        self.documents, self.papers = self.known or papers_of(self.snapshot)
        children = {child for id in self.wanted for child in every[id].children} - self.wanted
        communities = (every[id] for id in self.wanted | children)
        papers = self.documents, self.papers
        self.summaries = summaries_of(self.snapshot, communities, self.models, papers)
        self.central = {id: self._central(every[id]) for id in self.wanted}
        central = sorted({unit for units in self.central.values() for unit in units})
        self.texts: dict[str, str] = {}
        for at in range(0, len(central), AT_ONCE):
            key = ("text_units", central[at : at + AT_ONCE], "id", ["id", "text"])
            self.texts |= {id: text[:BEGINNING] for id, text in rows_of(self.snapshot.by_key(*key))}
        stored = self.snapshot.by_key("reports", sorted(children), "id", _REPORT).to_pylist()
        self.done = {row["id"]: report_extractive.Report(**row) for row in stored}
        # Why which report is not by a model although one was asked.
        self.degraded: dict[str, str] = {}
        # These, and reports that a model made of such reports.
        self.unsure: set[str] = set()

    def write(self) -> dict[str, report_extractive.Report]:
        """Children come before parents, and what no model is asked about before the rest."""
        every, found = self.tree.communities, _imported(self.snapshot)
        if found is not None:
            for id in self.wanted:
                if (row := found.report(every[id])) is not None:
                    base = report_extractive.outline(every[id], self._inside(every[id]))
                    self.done[id] = imported.report(row, base)
        left = _children_first(every, self.wanted - self.done.keys())
        writing = self._writing()
        asked: set[str] = set()
        for id in left:
            # Where documents wait for their summaries, a model may write of a part and not of the whole.
            above = not asked.isdisjoint(every[id].children)
            if writing and (above or writing.wanted(every[id])):
                asked.add(id)
        composing = [id for id in left if id not in asked]
        # In this process, but for the choice of sentences: to hand a whole community to another one
        # takes half as long as its report.
        for id, sentences in self._sentences(composing):
            children = [self.done[child] for child in every[id].children]
            self.done[id] = self._composed(id, children, sentences)
        if writing and asked:
            self.done |= self.take(writing.asker.start(writing.all(sorted(asked))))
            self.degraded, self.unsure = writing.degraded, writing.unsure
        return {id: self.done[id] for id in self.wanted}

    def _sentences(self, ids: Sequence[str]) -> Iterator[tuple[str, Sequence[Chosen] | None]]:
        """The communities, each with the sentences of its texts as another process chooses them; None
        where they are those of its rows, or a plug-in writes the report."""
        items = {
            id: (texts, terms)
            for id in ids
            if id not in self.tree.plugins
            and (texts := self._texts(id))
            and (terms := self.tree.terms.get(id))
        }
        found = self.executor.map(report_sentences.chosen, items.values())
        return ((id, next(found) if id in items else None) for id in ids)

    def _texts(self, id: str) -> report_sentences.Texts:
        """The texts whose sentences a report quotes."""
        return [(unit, self.texts[unit]) for unit in self.central[id]]

    def _composed(
        self,
        id: str,
        children: Sequence[report_extractive.Report],
        sentences: Sequence[Chosen] | None = None,
    ) -> report_extractive.Report:
        """The report without a model. `sentences`: of its texts, where these are chosen."""
        community = self.tree.communities[id]
        inside = self._inside(community)
        if inside.plugin:
            return plugin.plugins()[inside.plugin].report(community, inside, children)
        return report_extractive.compose(community, inside, sentences)

    def _inside(self, community: Community) -> Inside:
        id, content = community.id, self.content
        rows = [content.entities[member] for member in community.members]
        inside = inside_of(community, rows, content.edges[id])
        inside.texts = self._texts(id)
        inside.terms = self.tree.terms.get(id, {})
        inside.title = self.tree.titles.get(id, "")
        inside.plugin = self.tree.plugins.get(id, "")
        documents = sorted({self.documents[unit] for unit in community.units})
        inside.papers = [self.papers[document] for document in documents]
        return inside

    def _central(self, community: Community) -> list[str]:
        """The texts of a topic, or those that name its entities, that hold most of its terms: what they begin
        with tells of it."""
        terms = self.tree.terms.get(community.id, {})
        rows = map(self.content.entities.__getitem__, community.members)
        units = community.units or {unit for row in rows for unit in row.text_unit_ids}

        def place(unit: str) -> tuple[float, str]:
            shared = self.told.get(unit, set()) & terms.keys()
            return -round(math.fsum(terms[term] for term in shared), 9), unit

        return nsmallest(HEADS, units, place)

    def _writing(self) -> Writing | None:
        """What a model needs to write the reports; None where none is to. One that is only switched
        off is to: what it cannot write meanwhile stays listed."""
        models = self.models
        if models.reports is None:
            return None
        return Writing(
            models.asker,
            models.reports,
            self.tree.communities,
            self.content,
            self.done,
            self._composed,
            self.summaries,
            self.tree.terms,
        )

    def terms(self, report: report_extractive.Report) -> str:
        """What a report is found by: its title, its summary without references (ids are no words),
        some of its names, and the characteristic terms of its community behind their number."""
        members = self.tree.communities[report.id].members[:50]
        names = [self.content.entities[id].title for id in members]
        parts = [*report.title.split(" · "), *_REFERENCES.split(report.summary), *names]
        weights = self.tree.terms.get(report.id, {})
        return " ".join([*terms(" | ".join(parts)), f"#{len(weights)}", *weights])


def summaries_of(
    snapshot: Snapshot, communities: Iterable[Community], models: Models, known: Papers
) -> dict[str, list[SummarisedText]]:
    """The summaries of the documents of these communities, each once, where most documents have one."""
    if models.reports is None:
        return {}
    documents, papers = known
    by_unit = summaries_by_unit(snapshot, papers)
    found = {}
    for community in communities if by_unit else ():
        texts = {text.identity: text for unit in community.units if (text := by_unit.get(unit))}
        members = {documents[unit] for unit in community.units}
        if 2 * len({text.document for text in texts.values()}) > len(members):
            found[community.id] = [texts[identity] for identity in sorted(texts)]
    return found


def papers_of(snapshot: Snapshot) -> Papers:
    """The document of each text unit, and what a report says of each document."""
    documents = dict(rows_of(snapshot.rows("text_units", columns=["id", "document_id"])))
    rows = list(rows_of(snapshot.rows("documents", columns=["id", "title", "uri", "metadata"])))
    papers = {}
    for id, title, uri, metadata in rows:
        name = uri.rpartition("/")[2]
        known = {key.casefold(): value for key, value in json.loads(metadata or "{}").items()}
        date = dates.of_metadata(known) or dates.in_name(name)
        papers[id] = Paper(_line(title), date)
    return documents, papers


def _line(text: str) -> str:
    """A title, a heading or the name of a folder as a sentence may hold it: on one line, without a
    credential and without what is invisible."""
    return uncovered(" ".join(masked(text).split()))[0].replace("[Data:", "(Data:")


def told(
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


# ---- the commit ---------------------------------------------------------------------------------


def communities(run: Run, recluster: bool) -> None:
    """Everything that depends on the graph as a whole; where it changed or was left open."""
    models, numbers = run.models, dict(run.committed.next)
    with run.stage("communities"):
        ahead = run.take(run.topics) if run.topics else None
        tree = tree_of(run.snapshot(), _params(run), links_of(run.snapshot()), recluster, ahead)
        run.topics = None
        del ahead
        moved, number_of = compare(run.snapshot(), tree, numbers)
    run.check()
    run.progress("reports", 0, len(tree.communities))
    with run.stage("reports"):
        run.write(moved)
        del moved  # before the reports are made
        run.write(_pending(run, _report(run, tree, number_of)))
    if models.embedding and models.asker.embeds:
        _embed(run)
    _commit(run, numbers, tree)
    run.progress("reports", len(tree.communities), len(tree.communities))


def begin_topics(run: Run) -> None:
    """Divide the texts that were written, beside the merge of what they name."""
    given = run.draft_snapshot(), _params(run), run.check_ended
    run.topics = run.beside.submit(topics_ahead, *given)


def _params(run: Run) -> ClusterParams:
    return ClusterParams(run.settings.max_cluster_size, run.settings.seed)


def embed(run: Run) -> None:
    """The vectors that are missing, where nothing else is due."""
    _embed(run)
    named = {"embedding": run.models.embedding, "vectors": VECTOR_FORM}
    parameters = {**run.committed.parameters, **named}
    run.commit(run.committed.following(tables=dict(run.draft.tables), parameters=parameters))


def _embed(run: Run) -> None:
    """Write the vectors of the rows that have none."""
    with run.stage("vectors"):
        done, left = 0, vectors.missing(run.draft_snapshot())
        for change in vectors.embed_missing(run.models.asker, run.draft_snapshot(), run.take):
            run.progress("vectors", done, left)
            run.write(change)
            done += sum(table.rows.num_rows for table in change.values() if table.rows)


def _report(run: Run, tree: Hierarchy, numbers: Mapping[str, int]) -> dict[str, str]:
    """Write the reports that changed; why which is not by a model although one was asked."""
    snapshot = run.draft_snapshot()
    known = papers_of(snapshot)
    prints = fingerprints(snapshot, tree, links_of(snapshot), run.models, known)
    stored = set(snapshot.rows("reports", columns=["id"])["id"].to_pylist())
    degraded: dict[str, str] = {}
    for part in _in_parts(tree, _changed(run, snapshot, tree, prints)):
        run.check()
        draft = run.draft_snapshot()
        reporting = Reporting(draft, tree, run.models, part, run.take, known, run.executor)
        rows = []
        for id, report in sorted(reporting.write().items()):
            row = {name: getattr(report, name) for name in _REPORT}
            # Without a fingerprint what a model could not write is made again by the next run.
            row["fingerprint"] = "" if id in reporting.unsure else prints[id]
            row |= {"n": numbers[id], "terms": reporting.terms(report)}
            rows.append(row)
        run.write({"reports": Change(sorted(part & stored), graph_to_table("reports", rows))})
        degraded |= reporting.degraded
        del reporting, rows  # before the next part is read
    return degraded


def _pending(run: Run, degraded: Mapping[str, str]) -> dict[str, Change]:
    """The change of the table `pending`: what no model could write this time, in the place of what
    none could write before; nothing, where no one is to be asked any more."""
    rows = [pending("report", id, "", why) for id, why in degraded.items()]
    texts = ["extract", "claims"] if run.models.reports is not None else []
    texts += ["summary"] if run.models.summaries is not None else []
    before = run.snapshot().rows("pending", columns=["id", "kind"]).to_pylist()
    removed = {row["id"] for row in before if row["kind"] not in texts} | {
        row["id"] for row in rows
    }
    return {"pending": Change(sorted(removed), graph_to_table("pending", rows))} if removed else {}


def _commit(run: Run, numbers: Mapping[str, int], tree: Hierarchy) -> None:
    manifest = run.committed
    parameters = {**run.parameters, **run.models.parameters(), "topics": tree.made_of}
    many = len(tree.communities)  # each has a report
    for name in ("embedding", "vectors"):  # a run without that model leaves the vectors
        parameters[name] = parameters[name] or run.parameters.get(name, "")
    run.commit(
        manifest.following(
            tables=dict(run.draft.tables),
            next=dict(numbers),
            counters={**manifest.counters, "communities": many, "reports": many},
            communities_generation=manifest.generation + 1,
            stale=[],
            parameters=parameters,
        )
    )
