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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from graphrag_mcp.index.communities import Community
from graphrag_mcp.index.evidence import Candidate, EdgeRow, EntityRow, alike, from_reports, from_rows, mostly_cjk
from graphrag_mcp.types import content_id

__all__ = ["EdgeRow", "EntityRow", "Report", "ReportParams", "extractive_report", "fingerprint"]

VERSION = "1"  # part of every fingerprint: raise it when reports come out differently

@dataclass(frozen=True)
class ReportParams:
    input_tokens: int = 8000  # evidence above this: the children's reports are read instead
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


def fingerprint(
    community: Community, entities: Iterable[EntityRow], edges: Iterable[EdgeRow], child_fingerprints: Iterable[str]
) -> str:
    """Changes exactly when the input of the report changes: what it is stored under decides whether it is rebuilt."""
    inside = set(community.members)
    rows = sorted(row.digest for row in entities if row.id in inside)
    links = sorted(row.digest for row in edges if row.source_id in inside and row.target_id in inside)
    return content_id("report", VERSION, community.id, *rows, *links, *sorted(child_fingerprints))


def extractive_report(
    community: Community,
    entities: Sequence[EntityRow],
    edges: Sequence[EdgeRow],
    children: Sequence[Report] = (),
    params: ReportParams | None = None,
    document_of: Mapping[str, str] | None = None,
) -> Report:
    """The report of one community, the same whatever the order of its input.

    `entities` and `edges` may hold more than the community's own, the rest is left out. `document_of` maps text unit
    to document for the rating's spread; without it the spread is taken from the text units.
    """
    params = params or ReportParams()
    inside = set(community.members)
    rows = {row.id: row for row in sorted(entities, key=lambda row: row.id) if row.id in inside}
    links = [edge for edge in edges if edge.source_id in rows and edge.target_id in rows]
    weight = dict.fromkeys(rows, 0.0)
    for edge in sorted(links, key=lambda edge: edge.id):
        weight[edge.source_id] += edge.weight
        weight[edge.target_id] += edge.weight
    links.sort(key=lambda edge: (-edge.weight, -weight[edge.source_id] - weight[edge.target_id], edge.id))
    order = sorted(rows, key=lambda one: (-weight[one], -len(rows[one].text_unit_ids), rows[one].title, one))
    candidates = _strongest(_candidates(rows, links, order, children, params), weight, params)
    share = {one: math.sqrt(weight[one]) for one in rows}  # a hub does not drown the rest
    chosen = _summary(candidates, share, params)
    cite = _Citer(order, links, params)
    cjk = mostly_cjk("".join(c.text[:20] for c in chosen) or "".join(rows[one].title for one in order[:3]))
    joint = "" if cjk else " "
    title = _title([rows[one].title for one in order], params)
    summary = joint.join(cite(c) for c in chosen) or _fallback(order, rows, cite)
    findings, new = [], []
    for heading, group in _findings(candidates, links, order, rows, share, {id(c) for c in chosen}, params):
        findings.append({"summary": heading, "explanation": joint.join(cite(c) for c in group)})
        fresh = [c for c in group if not any(c is one for one in chosen)]
        if fresh:  # a small community's findings may say no more than its summary
            new.append(f"## {heading}\n\n{joint.join(cite(c) for c in fresh)}")
    units = sorted({unit for row in (*rows.values(), *links) for unit in row.text_unit_ids})
    rank, explanation = _rating(len(rows), links, units, document_of, cjk)
    return Report(
        id=community.id, level=community.level, title=title, summary=summary,
        full_content="\n\n".join([f"# {title}", summary, *new]), rank=rank, rating_explanation=explanation,
        findings=json.dumps(findings, ensure_ascii=False), entity_ids=list(rows),
        relationship_ids=sorted(edge.id for edge in links), text_unit_ids=units, n_text_units=len(units),
    )


def _candidates(
    rows: Mapping[str, EntityRow], links: Sequence[EdgeRow], order: Sequence[str], children: Sequence[Report],
    params: ReportParams,
) -> list[Candidate]:
    """The community's own evidence; what its children's reports say when that is too much to read."""
    budget = params.input_tokens if children else 0
    own = from_rows(rows, links, order, budget, params.max_characters)
    if own is not None:
        return own
    said = [(child.summary, child.findings) for child in sorted(children, key=lambda one: (-one.rank, one.id))]
    return from_reports(said, rows, (edge.id for edge in links), params.max_candidates, params.max_characters)


def _strongest(candidates: Iterable[Candidate], weight: Mapping[str, float], params: ReportParams) -> list[Candidate]:
    scored = [(-c.worth * sum(weight[one] for one in c.entities), c.text, c) for c in candidates]
    scored.sort(key=lambda item: item[:2])
    return [candidate for _, _, candidate in scored[: params.max_candidates]]


# ---- choosing -----------------------------------------------------------------------------------


def _summary(candidates: Sequence[Candidate], share: Mapping[str, float], params: ReportParams) -> list[Candidate]:
    """Sentences that together cover most of the members' weight; an entity said once counts a tenth after that."""
    left = dict(share)
    first = 0.0
    chosen: list[Candidate] = []
    rest = list(candidates)
    while rest and len(chosen) < params.summary_sentences:
        gains = [c.worth * sum(left[one] for one in c.entities) for c in rest]
        best = max(range(len(rest)), key=gains.__getitem__)
        first = first or gains[best]
        if len(chosen) >= 2 and gains[best] < 0.25 * first:
            break
        candidate = rest.pop(best)
        if any(alike(candidate.text, other.text) for other in chosen):
            continue
        chosen.append(candidate)
        for one in candidate.entities:
            left[one] = 0.1 * share[one]
    return chosen


def _findings(
    candidates: Sequence[Candidate], links: Sequence[EdgeRow], order: Sequence[str], rows: Mapping[str, EntityRow],
    share: Mapping[str, float], said: set[int], params: ReportParams,
) -> list[tuple[str, list[Candidate]]]:
    """Headings of the strongest relationships, then entities, each with sentences that no other finding has."""
    of_edge: dict[str, list[Candidate]] = {}
    of_entity: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        for edge_id in candidate.edges:
            of_edge.setdefault(edge_id, []).append(candidate)
        for one in candidate.entities:
            of_entity.setdefault(one, []).append(candidate)
    used: set[int] = set()
    named: dict[str, int] = {}
    found: list[tuple[str, list[Candidate]]] = []

    def take(heading: str, about: Sequence[Candidate], ends: Sequence[str]) -> None:
        free = [c for c in about if id(c) not in used]
        free.sort(key=lambda c: (id(c) in said, -c.worth * sum(share[one] for one in c.entities), c.text))
        group: list[Candidate] = []
        for candidate in free:
            if len(group) < params.finding_sentences and not any(alike(candidate.text, c.text) for c in group):
                group.append(candidate)
        if group:
            used.update(map(id, group))
            found.append((heading, group))
            for end in ends:
                named[end] = named.get(end, 0) + 1

    for edge in links:
        ends = sorted((edge.source_id, edge.target_id), key=lambda one: (-share[one], rows[one].title, one))
        if len(found) >= params.max_findings:
            break
        if edge.id in of_edge and all(named.get(end, 0) < 3 for end in ends):
            take(" – ".join(_short(rows[end].title, 60) for end in ends), of_edge[edge.id], ends)
    for one in order:
        if len(found) >= params.max_findings:
            break
        if one in of_entity and not named.get(one):
            take(_short(rows[one].title, 120), of_entity[one], [one])
    return found


# ---- wording ------------------------------------------------------------------------------------


class _Citer:
    """Writes a sentence with its reference; ids in the order of the community's own worth."""

    def __init__(self, order: Sequence[str], links: Sequence[EdgeRow], params: ReportParams) -> None:
        self._place = {one: place for place, one in enumerate([*order, *(edge.id for edge in links)])}
        self._limit = params.per_group

    def __call__(self, candidate: Candidate) -> str:
        groups = []
        spoken_of = {"Entities": candidate.entities, "Relationships": candidate.edges, "Sources": candidate.units}
        for name, ids in spoken_of.items():
            ranked = sorted(ids, key=lambda one: (self._place.get(one, 0), one))
            if ranked:
                shown = ranked[: self._limit] + ["+more"] * (len(ranked) > self._limit)
                groups.append(f"{name} ({', '.join(shown)})")
        return f"{candidate.text} [Data: {'; '.join(groups)}]" if groups else candidate.text


def _fallback(order: Sequence[str], rows: Mapping[str, EntityRow], cite: _Citer) -> str:
    """Without any evidence sentence: the names themselves, cited."""
    names = " · ".join(_short(rows[one].title, 60) for one in order[:10])
    units = dict.fromkeys(unit for one in order[:10] for unit in rows[one].text_unit_ids)
    return cite(Candidate(names, 1.0, dict.fromkeys(order[:10]), {}, units))


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
    size: int, links: Sequence[EdgeRow], units: Sequence[str], document_of: Mapping[str, str] | None, cjk: bool
) -> tuple[float, str]:
    """0-10 from how much there is, each part on a logarithmic scale that is full at the figure given.

    A pair from one sentence gets about 1.5, a leaf of ten names from eight text units about 4, a whole field 9-10.
    """
    documents = len({document_of.get(unit, unit) for unit in units}) if document_of else 0
    weight = sum(sorted(edge.weight for edge in links))
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
