"""Community reports without a model: sentences of the community's own evidence, chosen, ordered and cited.

Takes one community with its entities, the relationships inside it and its children's reports; gives a `Report`, whose
fields are columns of the table `reports`. Works in any script: nothing is generated but headings made of names. Knows
no store and no corpus: nothing here depends on what lies outside the community, so an edit elsewhere changes nothing.

A reference names content ids, ` [Data: Entities (<32 hex>, ...); Relationships (...); Sources (...)]`, at most 5 of
a kind, then `+more`; readers see them as short aliases.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heapreplace
from operator import attrgetter

from graphrag_mcp.index.communities import Community
from graphrag_mcp.index.evidence import (
    Candidate,
    EdgeRow,
    EntityRow,
    add_quotes,
    add_rows,
    alike,
    introduction,
    mostly_cjk,
    read_quotes,
)
from graphrag_mcp.text import is_cjk
from graphrag_mcp.types import content_id

__all__ = [
    "EdgeRow", "EntityRow", "Report", "ReportParams", "Written", "extractive_report", "fingerprint", "stored", "write",
]  # fmt: skip

VERSION = "3"  # part of every fingerprint: raise it when reports come out differently
_ID = attrgetter("id")
_JSON = json.JSONEncoder(ensure_ascii=False).encode


def _place(row: EntityRow) -> tuple[int, str, str]:
    return -len(row.text_unit_ids), row.title, row.id


MINORITY = 0.4  # worth of a sentence in the script that most of the community's sentences are not in


@dataclass(frozen=True)
class ReportParams:
    max_candidates: int = 200  # sentences considered for one report, so that no community costs quadratic time
    summary_sentences: int = 4
    max_findings: int = 10
    finding_sentences: int = 3
    max_characters: int = 400  # of one sentence; a longer one is cut at a space
    title_entities: int = 3
    per_group: int = 5  # references of one kind after a sentence


@dataclass(frozen=True)
class Report:
    """What a report says; `findings` is a JSON list of {"summary", "explanation"}, `rank` is 0-10."""

    id: str
    level: int
    title: str
    summary: str
    full_content: str
    rank: float
    rating_explanation: str
    findings: str
    entity_ids: list[str]
    relationship_ids: list[str]
    text_unit_ids: list[str]
    n_text_units: int
    method: str = "extractive"


@dataclass(frozen=True, slots=True)
class Written:
    """A report as its parent needs it: what it quotes, the same whether it was just made or read from the store."""

    report: Report
    quotes: Sequence[Candidate]


def stored(report: Report) -> Written:
    entities, edges = set(report.entity_ids), set(report.relationship_ids)
    return Written(report, read_quotes(report.summary, report.findings, entities, edges))


def fingerprint(
    community: Community, entities: Iterable[EntityRow], edges: Iterable[EdgeRow], child_fingerprints: Iterable[str]
) -> str:
    """Changes exactly when the input of the report changes: what it is stored under decides whether it is rebuilt.

    A row that a child's fingerprint covers need not be given again.
    """
    inside = set(community.members)
    parts = [VERSION, community.id, *sorted(child_fingerprints)]
    for row in sorted((row for row in entities if row.id in inside), key=_ID):
        parts += (f"e {len(row.text_unit_ids)} {len(row.evidence)}", row.id, row.title)
        _add_evidence(parts, row)
    for edge in sorted((edge for edge in edges if edge.source_id in inside and edge.target_id in inside), key=_ID):
        parts += (f"r {len(edge.text_unit_ids)} {len(edge.evidence)}", edge.id, repr(float(edge.weight)))
        _add_evidence(parts, edge)
    return content_id("report", *parts)


def _add_evidence(parts: list[str], row: EntityRow | EdgeRow) -> None:
    parts += sorted(row.text_unit_ids)
    for said in row.evidence if len(row.evidence) == 1 else sorted(row.evidence):
        parts += said


@dataclass(slots=True)
class _Inside:
    """One community: its rows, how much each of its entities weighs in it, and the candidate sentences."""

    rows: dict[str, EntityRow]
    links: dict[str, EdgeRow]
    weight: dict[str, float]  # of an entity: the weights of its relationships inside
    share: dict[str, float]  # square root of the weight: a hub does not drown the rest
    order: list[str]  # entities, heaviest first
    units: list[str]
    candidates: list[Candidate] = field(default_factory=list)  # best first

    def link_rank(self, id: str) -> tuple[float, float, str]:
        edge = self.links[id]
        return -edge.weight, -self.weight[edge.source_id] - self.weight[edge.target_id], id


def extractive_report(
    community: Community, entities: Sequence[EntityRow], edges: Sequence[EdgeRow], children: Sequence[Report] = (),
    params: ReportParams | None = None, document_of: Mapping[str, str] | None = None,
) -> Report:  # fmt: skip
    """As `write`, from reports as they are stored."""
    return write(community, entities, edges, list(map(stored, children)), params, document_of).report


def write(
    community: Community, entities: Sequence[EntityRow], edges: Sequence[EdgeRow], children: Sequence[Written] = (),
    params: ReportParams | None = None, document_of: Mapping[str, str] | None = None,
) -> Written:  # fmt: skip
    """The report of one community, the same whatever the order of its input.

    `entities` and `edges` may hold more than the community's own, the rest is left out. Evidence of rows that a child
    has in its report is not read again: the child's sentences stand for it. `document_of` maps text unit to document
    for the rating's spread; without it the spread is taken from the text units.
    """
    params = params or ReportParams()
    inside = _gather(community, entities, edges, children, params)
    rows, links = inside.rows, inside.links
    chosen = _summary(inside.candidates, inside.share, params)
    cite = _Citer(inside, params)
    top = [rows[one].title for one in inside.order[:3]]
    cjk = mostly_cjk("".join(c.text[:20] for c in chosen) or "".join(top))
    title = _title((rows[one].title for one in inside.order), params)
    summary = _running(map(cite, chosen)) or _fallback(inside, cite)
    findings, new = [], []
    for heading, group in _findings(inside, chosen, params):
        findings.append({"summary": heading, "explanation": _running(map(cite, group))})
        fresh = [c for c in group if c not in chosen]
        if fresh:  # a small community's findings may say no more than its summary
            new.append(f"## {heading}\n\n{_running(map(cite, fresh))}")
    units = inside.units
    rank, explanation = _rating(len(rows), links.values(), units, document_of, cjk)
    report = Report(
        id=community.id, level=community.level, title=title, summary=summary,
        full_content="\n\n".join([f"# {title}", summary, *new]), rank=rank, rating_explanation=explanation,
        findings=_JSON(findings), entity_ids=sorted(rows), relationship_ids=list(links), text_unit_ids=units,
        n_text_units=len(units),
    )  # fmt: skip
    return Written(report, cite.quotes)


def outline(community: Community, entities: Sequence[EntityRow], edges: Sequence[EdgeRow]) -> Report:
    """What a report says whoever writes it: its rows, its text units, a rating, its heaviest names. No evidence is
    read, so it costs nothing beside `write`; a model's draft is put over it."""
    params = ReportParams()
    inside = _gather(community, entities, edges, (), params, sentences=False)
    title = _title((inside.rows[one].title for one in inside.order), params)
    summary = _fallback(inside, _Citer(inside, params))
    rank, explanation = _rating(len(inside.rows), inside.links.values(), inside.units, None, mostly_cjk(title))
    return Report(
        id=community.id, level=community.level, title=title, summary=summary, full_content=f"# {title}\n\n{summary}",
        rank=rank, rating_explanation=explanation, findings="[]", entity_ids=sorted(inside.rows),
        relationship_ids=list(inside.links), text_unit_ids=inside.units, n_text_units=len(inside.units),
    )  # fmt: skip


def _running(sentences: Iterable[str]) -> str:
    """Sentences one after the other; no blank before Chinese."""
    text = ""
    for one in sentences:
        text += one if not text or is_cjk(one[:1]) else f" {one}"
    return text


def _gather(
    community: Community, entities: Sequence[EntityRow], edges: Sequence[EdgeRow], children: Sequence[Written],
    params: ReportParams, sentences: bool = True,
) -> _Inside:  # fmt: skip
    """The community's rows and weights, and as candidates what its children say and what no child could say."""
    members = set(community.members)
    ranked = sorted((row for row in entities if row.id in members), key=_place)
    rows = {row.id: row for row in ranked}
    links = {edge.id: edge for edge in sorted(edges, key=_ID) if edge.source_id in rows and edge.target_id in rows}
    weight = dict.fromkeys(rows, 0.0)
    for edge in links.values():
        weight[edge.source_id] += edge.weight
        weight[edge.target_id] += edge.weight
    order = sorted(rows, key=weight.__getitem__, reverse=True)  # stable: of equal weight as ranked
    below = [child.report for child in children]
    told = set().union(*(one.entity_ids for one in below), *(one.relationship_ids for one in below))
    own_rows = [rows[one] for one in order if one not in told]
    own_links = [edge for id, edge in links.items() if id not in told]
    units = set().union(*(one.text_unit_ids for one in below))
    units.update(*(row.text_unit_ids for row in own_rows), *(edge.text_unit_ids for edge in own_links))
    found: dict[str, Candidate] = {}
    if not sentences:
        return _Inside(rows, links, weight, {}, order, sorted(units))
    if children:
        said = [one.quotes for one in sorted(children, key=lambda one: (-one.report.rank, one.report.id))]
        add_quotes(found, said, params.max_candidates, params.max_characters)
    add_rows(found, own_rows, own_links, params.max_characters)
    found.pop("", None)
    share = {one: math.sqrt(value) for one, value in weight.items()}
    dense = [mostly_cjk(one.text) for one in found.values()]
    strange = sum(dense) * 2 < len(dense)  # of texts in two scripts a report speaks the commoner one where it can
    for one, is_dense in zip(found.values(), dense, strict=True):
        if is_dense == strange and sum(dense) * 2 != len(dense):
            one.worth *= MINORITY
        one.worth *= introduction(one.text, [rows[id].title for id in one.entities])
        one.gain = one.worth * sum(map(share.__getitem__, one.entities))
    best = sorted(found.values(), key=lambda one: (-one.gain, one.text))[: params.max_candidates]
    return _Inside(rows, links, weight, share, order, sorted(units), best)


# ---- choosing -----------------------------------------------------------------------------------


def _summary(candidates: Sequence[Candidate], share: Mapping[str, float], params: ReportParams) -> list[Candidate]:
    """Sentences that together cover most of the members' weight; an entity said once counts a tenth after that."""
    left = dict(share)
    chosen: list[Candidate] = []
    heap = [(-one.gain, place) for place, one in enumerate(candidates)]  # sorted, so a heap
    while heap and len(chosen) < params.summary_sentences:
        known, place = heap[0]
        candidate = candidates[place]
        gain = candidate.worth * sum(map(left.__getitem__, candidate.entities))
        if gain < -known:  # what it speaks of has been said since; gains only fall, so the others' may wait
            heapreplace(heap, (-gain, place))
            continue
        if len(chosen) >= 2 and gain < 0.25 * chosen[0].gain:
            break
        heappop(heap)
        if any(alike(candidate.text, other.text) for other in chosen):
            continue
        chosen.append(candidate)
        for one in candidate.entities:
            left[one] = 0.1 * share[one]
    return chosen


def _findings(inside: _Inside, said: Sequence[Candidate], params: ReportParams) -> list[tuple[str, list[Candidate]]]:
    """Headings of the strongest relationships, then entities, each with sentences that no other finding has.

    Sentences that the summary has `said` come last.
    """
    rows, weight = inside.rows, inside.weight
    of_edge: dict[str, list[Candidate]] = {}
    of_entity: dict[str, list[Candidate]] = {}
    for candidate in [*(one for one in inside.candidates if one not in said), *said]:
        for id in candidate.edges:
            of_edge.setdefault(id, []).append(candidate)
        for id in candidate.entities:
            of_entity.setdefault(id, []).append(candidate)
    used: set[Candidate] = set()
    named: dict[str, int] = {}
    found: list[tuple[str, list[Candidate]]] = []

    def take(about: Sequence[Candidate], ends: Sequence[str], letters: int) -> None:
        group: list[Candidate] = []
        for one in about:
            if one not in used and not any(alike(one.text, other.text) for other in group):
                group.append(one)
                if len(group) == params.finding_sentences:
                    break
        if group:
            used.update(group)
            found.append((" – ".join(_short(rows[end].title, letters) for end in ends), group))
            for end in ends:
                named[end] = named.get(end, 0) + 1

    for id in sorted(of_edge, key=inside.link_rank):
        if len(found) >= params.max_findings:
            break
        edge = inside.links[id]
        if named.get(edge.source_id, 0) < 3 and named.get(edge.target_id, 0) < 3:
            ends = (edge.source_id, edge.target_id)
            take(of_edge[id], sorted(ends, key=lambda one: (-weight[one], rows[one].title, one)), 60)
    for one in inside.order:
        if len(found) >= params.max_findings:
            break
        if one in of_entity and one not in named:
            take(of_entity[one], [one], 120)
    return found


# ---- wording ------------------------------------------------------------------------------------


class _Citer:
    """Writes a sentence with its reference, ids in the order of the community's own worth; keeps what it wrote."""

    def __init__(self, inside: _Inside, params: ReportParams) -> None:
        self._entity_rank = {one: place for place, one in enumerate(inside.order)}.__getitem__
        self._link_rank = inside.link_rank
        self._limit = params.per_group
        self.quotes: list[Candidate] = []

    def __call__(self, candidate: Candidate) -> str:
        if not candidate.cited:
            candidate.cited = self._write(candidate)
        return candidate.cited

    def _write(self, candidate: Candidate) -> str:
        limit = self._limit
        ranked = {
            "Entities": sorted(candidate.entities, key=self._entity_rank),
            "Relationships": sorted(candidate.edges, key=self._link_rank),
            "Sources": sorted(candidate.units),
        }
        self.quotes.append(Candidate(candidate.text, 1.0, *(dict.fromkeys(ids[:limit]) for ids in ranked.values())))
        more = {name: ", +more" if len(ids) > limit else "" for name, ids in ranked.items()}
        groups = [f"{name} ({', '.join(ids[:limit])}{more[name]})" for name, ids in ranked.items() if ids]
        return f"{candidate.text} [Data: {'; '.join(groups)}]"


def _fallback(inside: _Inside, cite: _Citer) -> str:
    """Without any evidence sentence: the names themselves, cited."""
    top = inside.order[:10]
    names = " · ".join(_short(inside.rows[one].title, 60) for one in top)
    units = dict.fromkeys(unit for one in top for unit in inside.rows[one].text_unit_ids)
    return cite(Candidate(names, 1.0, dict.fromkeys(top), {}, units))


def _title(titles: Iterable[str], params: ReportParams) -> str:
    """The heaviest names, leaving out one that is part of another."""
    chosen: list[str] = []
    for title in titles:
        name = _short(title, 60)
        folded = name.casefold()
        if not any(folded in other.casefold() or other.casefold() in folded for other in chosen):
            chosen.append(name)
        if len(chosen) == params.title_entities:
            break
    return " · ".join(chosen)


def _short(text: str, limit: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1].rstrip() + "…"


def _rating(
    size: int, links: Collection[EdgeRow], units: Sequence[str], document_of: Mapping[str, str] | None, cjk: bool
) -> tuple[float, str]:
    """0-10 from how much there is, each part on a logarithmic scale that is full at the figure given.

    A pair from one sentence gets about 1.5, a leaf of ten names from eight text units about 4, a whole field 9-10.
    """
    documents = len({document_of.get(unit, unit) for unit in units}) if document_of else 0
    weight = math.fsum(edge.weight for edge in links)
    parts = ((0.25, size, 200), (0.15, weight, 1000), (0.35, len(units), 200), (0.25, documents or len(units), 100))
    rank = round(10 * sum(part * min(1.0, math.log1p(value) / math.log1p(full)) for part, value, full in parts), 1)
    if cjk:
        spread = f"{len(units)} 个文本单元" + (f"、{documents} 篇文档" if documents else "")
        return rank, f"评分 {rank}（满分 10）依据：{size} 个实体、{len(links)} 条关系（总权重 {weight:g}）、{spread}。"
    facts = f"{_count(size, 'entity', 'entities')}, {_count(len(links), 'relationship')} of total weight {weight:g}"
    spread = _count(len(units), "text unit") + (f" of {_count(documents, 'document')}" if documents else "")
    return rank, f"Rated {rank} of 10 for {facts}, and {spread}."


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"
