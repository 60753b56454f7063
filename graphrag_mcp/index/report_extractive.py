"""Community reports without a model: sentences of the community's own evidence, chosen, ordered and
cited.

Nothing is generated but headings made of names, and nothing depends on what lies outside the
community. A reference names content ids, ` [Data: Entities (<32 hex>, ...); Relationships (...);
Sources (...)]`, at most 3 of a kind, then `+more`."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heapreplace
from operator import attrgetter

from graphrag_mcp.code.symbols import PACKAGE_FILES
from graphrag_mcp.index.communities import Community
from graphrag_mcp.index.report_content import (
    Candidate,
    Candidates,
    EdgeRow,
    EntityRow,
    Inside,
    add_quotes,
    add_rows,
    alike,
    in_turn,
    introduction,
    mostly_cjk,
    read_quotes,
    readable,
)
from graphrag_mcp.text.prose import substance
from graphrag_mcp.text.terms import is_cjk
from graphrag_mcp.text.titles import phrase, terms_of
from graphrag_mcp.types import content_id

VERSION = "7"  # part of every fingerprint: raise it when reports come out differently
_ID = attrgetter("id")
_JSON = json.JSONEncoder(ensure_ascii=False).encode
# Worth of a sentence in the script that most of the community's sentences are not in.
MINORITY = 0.4

# Sentences considered for one report, so that no community costs quadratic time; and of them from
# the reports of children, which say at most 34 sentences themselves.
CANDIDATES, QUOTES = 200, 100
SUMMARY, FINDINGS, FINDING = 3, 10, 3  # sentences, findings, sentences of a finding
LONGEST = 400  # characters of one sentence; a longer one is cut at a space
TITLE = 3  # names in a title
PER_GROUP = 3  # references of one kind after a sentence


@dataclass(frozen=True)
class Report:
    """What a report says; `findings` is a JSON list of {"summary", "explanation"}, `rank` is 0-10.

    The lists of ids hold at most `report_content.LISTED` each; all members are in the table `communities`.
    """

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
    """A report as its parent needs it: what it quotes, the same whether it was just made or read
    from the store."""

    report: Report
    just_made: Sequence[Candidate] | None = None

    @property
    def quotes(self) -> Iterable[Candidate]:
        if self.just_made is not None:
            return self.just_made
        return read_quotes(self.report.summary, self.report.findings)


def quoted(children: Iterable[Written]) -> list[Candidate]:
    """What a parent takes of its children's reports: of each in turn, the best report first."""
    best = sorted(children, key=lambda one: (-one.report.rank, one.report.id))
    return in_turn([one.quotes for one in best], QUOTES)


def fingerprint(
    community: Community,
    entities: Iterable[EntityRow],
    edges: Iterable[EdgeRow],
    child_fingerprints: Iterable[str],
    rest: str = "",
) -> str:
    """Changes exactly when the input of the report changes: what it is stored under decides whether
    it is rebuilt.

    A row that a child's fingerprint covers need not be given again. `rest` stands for edges of
    which only the weights matter."""
    inside = set(community.members)
    parts = [VERSION, community.id, rest, *community.units, *sorted(child_fingerprints)]
    for row in sorted((row for row in entities if row.id in inside), key=_ID):
        parts += (f"e {len(row.text_unit_ids)} {len(row.evidence)}", row.id, row.title)
        _add_evidence(parts, row)
    for edge in sorted(
        (edge for edge in edges if edge.source_id in inside and edge.target_id in inside), key=_ID
    ):
        parts += (
            f"r {len(edge.text_unit_ids)} {len(edge.evidence)}",
            edge.id,
            repr(float(edge.weight)),
        )
        _add_evidence(parts, edge)
    return content_id("report", *parts)


def _add_evidence(parts: list[str], row: EntityRow | EdgeRow) -> None:
    parts += sorted(row.text_unit_ids)
    for said in row.evidence if len(row.evidence) == 1 else sorted(row.evidence):
        parts += said


def compose(community: Community, inside: Inside, quotes: Sequence[Candidate] = ()) -> Written:
    """The report of one community, the same whatever the order of its input. `quotes`: what its
    children's reports quote, which stands for the evidence of rows that lie within a child."""
    rows = inside.rows
    share = {one: math.sqrt(value) for one, value in inside.weight.items()}
    candidates = _candidates(inside, share, quotes)
    chosen = _summary(candidates, share, inside.terms)
    cite = _Citer(inside)
    cjk = mostly_cjk(
        "".join(c.text[:20] for c in chosen) or "".join(rows[one].title for one in inside.order[:3])
    )
    base = _base(community, inside, cjk, [one.text for one in candidates])
    summary = _running(map(cite, chosen)) or _fallback(inside, cite)
    findings, new = [], []
    for group in _findings(inside, candidates, chosen):
        findings.append({"summary": group[0].text, "explanation": _running(map(cite, group))})
        fresh = [c for c in group if c not in chosen]
        if fresh:  # a small community's findings may say no more than its summary
            new.append(f"- {_running(map(cite, fresh))}")
    content = "\n\n".join([f"# {base.title}", summary, *new])
    return Written(
        replace(base, summary=summary, full_content=content, findings=_JSON(findings)), cite.quotes
    )


def outline(community: Community, inside: Inside) -> Report:
    """The report without sentences: its rows, its text units, a rating, its heaviest names. The
    words of a model or of an import are put over it."""
    summary = _fallback(inside, _Citer(inside))
    base = _base(community, inside, None)
    return replace(base, summary=summary, full_content=f"# {base.title}\n\n{summary}")


def _base(
    community: Community, inside: Inside, cjk: bool | None, texts: Sequence[str] = ()
) -> Report:
    """The report without its text; `cjk` None: the title decides about the language of the rating."""
    names = [inside.rows[one].title for one in inside.order]
    title = phrase(inside.terms, names, texts) or _title(names)
    title = title or f"{_count(inside.n_units, 'text')} without names"
    rank, explanation = _rating(inside, mostly_cjk(title) if cjk is None else cjk)
    return Report(
        id=community.id,
        level=community.level,
        title=title,
        summary="",
        full_content="",
        rank=rank,
        rating_explanation=explanation,
        findings="[]",
        entity_ids=inside.entity_ids,
        relationship_ids=inside.relationship_ids,
        text_unit_ids=inside.text_unit_ids,
        n_text_units=inside.n_units,
    )


def _running(sentences: Iterable[str]) -> str:
    """Sentences one after the other; no blank before Chinese."""
    text = ""
    for one in sentences:
        text += one if not text or is_cjk(one[:1]) else f" {one}"
    return text


def _candidates(
    inside: Inside, share: Mapping[str, float], quotes: Sequence[Candidate]
) -> list[Candidate]:
    """What the children say and what no child could say, best first."""
    rows, links = inside.rows, inside.links
    found = Candidates(LONGEST)
    add_quotes(found, quotes)
    for one in found.values():
        one.entities = {id: None for id in one.entities if id in rows}
        one.edges = {id: None for id in one.edges if id in links}
    add_rows(found, inside.own_rows, inside.own_links)
    for unit, sentence in inside.said:
        found.of(sentence).units[unit] = None
    found.pop("", None)
    dense = [mostly_cjk(one.text) for one in found.values()]
    # of texts in two scripts a report speaks the commoner one where it can
    strange = sum(dense) * 2 < len(dense)
    full = any(substance(one.text) > _EMPTY for one in found.values())
    for one, is_dense in zip(found.values(), dense, strict=True):
        if is_dense == strange and sum(dense) * 2 != len(dense):
            one.worth *= MINORITY
        one.worth *= introduction(one.text, [rows[id].title for id in one.entities])
        one.worth *= substance(one.text)
        if inside.terms:
            one.gain = one.worth * telling(one.text, inside.terms)
        else:
            one.gain = one.worth * sum(map(share.__getitem__, one.entities))
    kept = [one for one in found.values() if not full or substance(one.text) > _EMPTY]
    return sorted(kept, key=lambda one: (-one.gain, one.text))[:CANDIDATES]


# ---- choosing -----------------------------------------------------------------------------------


def _summary(
    candidates: Sequence[Candidate], share: Mapping[str, float], weights: Mapping[str, float]
) -> list[Candidate]:
    """Sentences that together say most of the community's terms, or, where these are not known, of
    its members' weight; what was said once counts a tenth after that."""
    left: dict[str, float] = dict(weights or share)
    chosen: list[Candidate] = []
    heap = [(-one.gain, place) for place, one in enumerate(candidates)]  # sorted, so a heap
    while heap and len(chosen) < SUMMARY:
        known, place = heap[0]
        candidate = candidates[place]
        speaks = terms_of(candidate.text) & left.keys() if weights else candidate.entities
        gain = candidate.worth * (
            telling(candidate.text, left) if weights else sum(map(left.__getitem__, speaks))
        )
        if (
            gain < -known
        ):  # what it speaks of has been said since; gains only fall, so the others' may wait
            heapreplace(heap, (-gain, place))
            continue
        if len(chosen) >= 2 and gain < 0.25 * chosen[0].gain:
            break
        heappop(heap)
        if any(alike(candidate.text, other.text) for other in chosen):
            continue
        chosen.append(candidate)
        for one in speaks:
            left[one] = 0.1 * (weights or share)[one]
    return chosen


def _findings(
    inside: Inside, candidates: Sequence[Candidate], said: Sequence[Candidate]
) -> list[list[Candidate]]:
    """Sentences on the strongest relationships, then on entities, none in two findings.

    Sentences that the summary has `said` come last."""
    of_edge: dict[str, list[Candidate]] = {}
    of_entity: dict[str, list[Candidate]] = {}
    for candidate in [*(one for one in candidates if one not in said), *said]:
        for id in candidate.edges:
            of_edge.setdefault(id, []).append(candidate)
        for id in candidate.entities:
            of_entity.setdefault(id, []).append(candidate)
    used: set[Candidate] = set()
    named: dict[str, int] = {}
    found: list[list[Candidate]] = []

    def take(about: Sequence[Candidate], ends: Sequence[str]) -> None:
        group: list[Candidate] = []
        for one in about:
            if one not in used and not any(alike(one.text, other.text) for other in group):
                group.append(one)
                if len(group) == FINDING:
                    break
        if group:
            used.update(group)
            found.append(group)
            for end in ends:
                named[end] = named.get(end, 0) + 1

    for id in sorted(of_edge, key=inside.link_rank):
        if len(found) >= FINDINGS:
            break
        edge = inside.links[id]
        if named.get(edge.source_id, 0) < 3 and named.get(edge.target_id, 0) < 3:
            take(of_edge[id], (edge.source_id, edge.target_id))
    for one in sorted(of_entity, key=inside.place):
        if len(found) >= FINDINGS:
            break
        if one not in named:
            take(of_entity[one], [one])
    return found


# ---- wording ------------------------------------------------------------------------------------


class _Citer:
    """Writes a sentence with its reference, ids in the order of the community's own worth; keeps
    what it wrote."""

    def __init__(self, inside: Inside) -> None:
        self._inside = inside
        self.quotes: list[Candidate] = []

    def __call__(self, candidate: Candidate) -> str:
        if not candidate.cited:
            candidate.cited = self._write(candidate)
        return candidate.cited

    def _write(self, candidate: Candidate) -> str:
        ranked = {
            "Entities": sorted(candidate.entities, key=self._inside.place),
            "Relationships": sorted(candidate.edges, key=self._inside.link_rank),
            "Sources": sorted(candidate.units),
        }
        self.quotes.append(
            Candidate(
                candidate.text, 1.0, *(dict.fromkeys(ids[:PER_GROUP]) for ids in ranked.values())
            )
        )
        more = {name: ", +more" if len(ids) > PER_GROUP else "" for name, ids in ranked.items()}
        groups = [
            f"{name} ({', '.join(ids[:PER_GROUP])}{more[name]})"
            for name, ids in ranked.items()
            if ids
        ]
        return f"{candidate.text} [Data: {'; '.join(groups)}]"


def _fallback(inside: Inside, cite: _Citer) -> str:
    """Without any evidence sentence: the names themselves, cited."""
    top = inside.order[:10]
    names = " · ".join(_short(inside.rows[one].title, 60) for one in top)
    units = dict.fromkeys(unit for one in top for unit in inside.rows[one].text_unit_ids)
    return cite(Candidate(names, 1.0, dict.fromkeys(top), {}, units))


def _title(titles: Iterable[str]) -> str:
    """The heaviest names, leaving out one that is part of another."""
    chosen: list[str] = []
    for title in titles:
        name = _short(title, 60)
        folded = name.casefold()
        if not any(folded in other.casefold() or other.casefold() in folded for other in chosen):
            chosen.append(name)
        if len(chosen) == TITLE:
            break
    return " · ".join(chosen)


def _short(text: str, limit: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1].rstrip() + "…"


def _rating(inside: Inside, cjk: bool) -> tuple[float, str]:
    """0-10 from how much there is, each part on a logarithmic scale that is full at the figure
    given.

    A pair from one sentence gets about 1.5, a leaf of ten names from eight text units about 4, a
    whole field 9-10."""
    size, links, units, weight = inside.size, inside.n_links, inside.n_units, inside.total
    parts = ((0.25, size, 200), (0.15, weight, 1000), (0.35, units, 200), (0.25, units, 100))
    shares = (part * min(1.0, math.log1p(value) / math.log1p(full)) for part, value, full in parts)
    rank = round(10 * sum(shares), 1)
    if cjk:
        facts = f"{size} 个实体、{links} 条关系（总权重 {weight:g}）、{units} 个文本单元"
        return rank, f"评分 {rank}（满分 10）依据：{facts}。"
    facts = f"{_count(size, 'entity', 'entities')}, {_count(links, 'relationship')}"
    spread = _count(units, "text unit")
    return rank, f"Rated {rank} of 10 for {facts} of total weight {weight:g}, and {spread}."


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


# ---- words --------------------------------------------------------------------------------------

_FIGURE = re.compile(r"\d")
_EMPTY = 0.2  # substance of what is not quoted where anything better is there


def telling(text: str, weights: Mapping[str, float]) -> float:
    """More for a sentence of many characteristic terms and few others; a figure or a date helps."""
    said = terms_of(text)
    found = sum(sorted(weights[term] for term in said & weights.keys()))
    return found / math.sqrt(8 + len(said)) * (1.15 if _FIGURE.search(text) else 1.0)


# ---- source code --------------------------------------------------------------------------------

# By rule: the title is the path. The text is the docstring, the names that are defined there or the
# files and folders that lie there, then the signature and docstring of each of the heaviest.
CODE_VERSION = "1"  # raise it when these reports come out differently
DEFINED = ("class", "interface", "type", "function", "constant", "method")
SHOWN = 12  # names in the summary
TOLD = 10  # of them with a sentence of their own
PACKAGES = frozenset(stem for stems in PACKAGE_FILES.values() for stem in stems)


def code_fingerprint(rest: str, title: str, symbols: Iterable[EntityRow]) -> str:
    """What these reports are made of besides what the fingerprint of every report covers."""
    told = sorted((row.id, row.type, row.description) for row in symbols)
    return content_id("code", CODE_VERSION, rest, title, *(part for one in told for part in one))


def heads(children: Iterable[Written]) -> list[Candidate]:
    """What a folder says of each of its parts, the largest first: its path and the first sentence of
    its report. The file that stands for the folder speaks for the whole, so its sentence is first."""
    own: list[Candidate] = []
    found: list[Candidate] = []
    for one in sorted(children, key=lambda one: (-one.report.n_text_units, one.report.title)):
        title = one.report.title
        said = next(iter(one.quotes), None)
        name = title.rpartition(": ")[2].rpartition("/")[2]  # of small files together their names
        if said is not None and name.partition(".")[0] in PACKAGES and not found_names(said.text):
            own.append(Candidate(said.text, 1.0, said.entities, {}, said.units))
        units = dict.fromkeys(one.report.text_unit_ids[:1])
        first = "" if said is None or found_names(said.text) else f": {said.text}"
        entities = said.entities if said is not None else {}
        text, _ = readable(f"{name}{first}", LONGEST)
        found.append(Candidate(text, 1.0, entities, {}, said.units if said else units))
    for one in found:
        one.gain = 1.0  # a part, and not the whole
    return [*own[:1], *found]


def found_names(text: str) -> bool:
    """Is this the list of names, and no docstring?"""
    return text.startswith(("Defines ", "Holds "))


def compose_code(community: Community, inside: Inside, quotes: Sequence[Candidate]) -> Written:
    """`quotes`: of its children, by `heads`."""
    cite = _Citer(inside)
    base = replace(outline(community, inside), title=inside.title)
    if community.children:
        said = [one for one in quotes if not one.gain][:1]
        told = [one for one in quotes if one.gain]
        named = [_held([one.text.partition(":")[0] for one in told], told)] if told else []
    else:
        said = list(_docs(inside))
        symbols = [row for row in inside.own_rows if row.type in DEFINED]
        symbols.sort(key=lambda row: DEFINED.index(row.type) // 5)  # methods last
        named = [_defined(symbols)] if symbols else []
        told = [_told(row, row.description) for row in symbols if row.description]
    summary = _running(map(cite, [*said, *named])) or base.summary
    findings = [{"summary": one.text, "explanation": cite(one)} for one in told[:TOLD]]
    lines = [f"- {one['explanation']}" for one in findings]
    content = "\n\n".join([f"# {base.title}", summary, *lines])
    return Written(replace(base, summary=summary, full_content=content, findings=_JSON(findings)))


def _docs(inside: Inside) -> Iterator[Candidate]:
    """The docstrings of the modules, at most three; with their names where there are several."""
    told = {row.id: _documented(row) for row in inside.own_rows if row.type == "module"}
    modules = [row for row in inside.own_rows if told.get(row.id)]
    for row in sorted(modules, key=lambda row: (len(row.title), row.title))[:3]:
        said = told[row.id]
        yield _told(row, said if len(modules) == 1 else f"{row.title}: {said}")


def _documented(row: EntityRow) -> str:
    """The docstring; "" of a module without one."""
    return " ".join(row.description.replace(f"Module {row.title}.", " ").split())


def _told(row: EntityRow, said: str) -> Candidate:
    text, _ = readable(said, LONGEST)
    return Candidate(text, 1.0, {row.id: None}, {}, dict.fromkeys(sorted(row.text_unit_ids)[:1]))


def _defined(symbols: Sequence[EntityRow]) -> Candidate:
    shown = symbols[:SHOWN]
    names = [f"{row.type} {row.title}" for row in shown]
    entities = {row.id: None for row in shown}
    units = {unit: None for row in shown for unit in sorted(row.text_unit_ids)[:1]}
    return Candidate(f"Defines {_enumerated(names, len(symbols))}.", 1.0, entities, {}, units)


def _held(names: Sequence[str], parts: Sequence[Candidate]) -> Candidate:
    entities = {id: None for one in parts for id in one.entities}
    units = {unit: None for one in parts for unit in one.units}
    return Candidate(f"Holds {_enumerated(names[:SHOWN], len(names))}.", 1.0, entities, {}, units)


def _enumerated(shown: Sequence[str], of: int) -> str:
    more = f" and {of - len(shown)} more" if of > len(shown) else ""
    return ", ".join(shown) + more
