"""Community reports without a model: sentences of the community's own evidence, chosen, ordered and
cited.

Nothing is generated but headings made of names, and nothing depends on what lies outside the
community. A reference names content ids, ` [Data: Entities (<32 hex>, ...); Relationships (...);
Sources (...)]`, at most 3 of a kind, then `+more`."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heapreplace, nsmallest
from itertools import chain, islice, zip_longest

from graphrag_mcp.code.symbols import PACKAGE_FILES
from graphrag_mcp.index.communities import Community
from graphrag_mcp.index.report_content import LISTED, EntityRow, Inside, alike, mostly_cjk, readable
from graphrag_mcp.names.cjk import is_han, nouns
from graphrag_mcp.packing.budget import one_line, reference, referenced_ids
from graphrag_mcp.text.dates import in_name
from graphrag_mcp.text.prose import OWN, SPEAKER, eventful, introduction, settled, spoken, substance
from graphrag_mcp.text.terms import compiled, is_cjk, latin_language, table
from graphrag_mcp.text.titles import Spread, apart, heading, joined, parts, terms_of
from graphrag_mcp.text.titles import telling as telling_titles

_TABLES = table(__file__)
_FORMS = compiled(_TABLES["forms"])

VERSION = "16"  # part of every fingerprint: raise it when reports come out differently
# Worth of a sentence in the script that most of the community's sentences are not in.
MINORITY = 0.4
ANSWER = 0.3  # worth of what one says of oneself in an interview, where texts are no chat
REPEATED = 0.2  # worth of what stands in three texts or more: of a form, a list of those present
# Sentences considered for one report, so that no community costs quadratic time; and of them from
# the reports of children, which say at most 34 sentences themselves.
CANDIDATES, QUOTES = 200, 100
SUMMARY, FINDINGS, FINDING = 3, 10, 3  # sentences, findings, sentences of a finding
LONGEST = 400  # characters of one sentence; a longer one is cut at a space
LISTS, _NOTICE = 0.3, 0.1  # substance of what stands in lists, of notices
SPOKEN_OF = 3  # subjects of a sentence that says what the community is about
CLEAR = 0.9  # worth of a sentence that stands alone
DEFINES = 1.5  # what an introduction is worth that says what a name is
FORM = 3  # documents that hold a heading
FEW = 2  # documents of a topic of which sentences are quoted, whatever they are worth
TITLE, SUBJECTS = 3, 6  # names in a title, and in the first sentence
# A document is the topic where more of the topic's text units than the first are its, and more of
# its own than the second are here.
ALONE, WHOLE = 0.66, 0.8
STRAY = 0.2  # share of a document's text units, up to which a topic is not named after it
NAMED = 60  # names that most documents hold, of which a title is made
PER_GROUP = 3  # references of one kind after a sentence
TURNS = 0.05  # share of sentences with a speaker, over which the texts are a chat
LEAD = 1.3  # worth of a sentence that a text begins with: it says what the text is about
NOUNS = 40  # sentences that are looked through for Chinese nouns
UNTITLED = 0.6  # of the weight of a term that is not in the title counts for the summary
KINDS = ("Entities", "Relationships", "Sources")


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


@dataclass(slots=True, eq=False)
class Candidate:
    """One sentence and what of the community it speaks of: ordered sets of ids."""

    text: str
    worth: float = 1.0
    entities: dict[str, None] = field(default_factory=dict)
    edges: dict[str, None] = field(default_factory=dict)
    units: dict[str, None] = field(default_factory=dict)
    sound: bool = True  # may it be quoted where there are enough better ones
    gain: float = 0.0  # its worth times the share of what it speaks of
    cited: str = ""  # the text with its references, once it has been written


_REFERENCE = re.compile(r" ?(\[Data: [^\[\]\n]{1,4000}\])")


def quotes_of(report: Report) -> Iterator[Candidate]:
    """The cited sentences of a report written by us or by a model; what is not cited is left out."""
    findings = (str(one.get("explanation", "")) for one in json.loads(report.findings or "[]"))
    seen: set[str] = set()
    for text in chain((report.summary,), findings):
        parts = _REFERENCE.split(text)
        for sentence, cited in zip(parts[::2], parts[1::2], strict=False):
            text, ids = sentence.strip(), referenced_ids(cited)
            # a parent says itself what the index knows of its documents
            opens = not seen and report.method == "extractive" and [*ids] == ["Sources"]
            if text not in seen and not (opens and _FORMS.facts.search(text)):
                yield Candidate(text, 1.0, *(dict.fromkeys(ids.get(kind, ())) for kind in KINDS))
            seen.add(text)


def quoted(children: Iterable[Report]) -> list[Candidate]:
    """What a parent takes of its children's reports: of each in turn, the best report first."""
    turns = zip_longest(*map(quotes_of, sorted(children, key=lambda one: (-one.rank, one.id))))
    return list(islice((one for turn in turns for one in turn if one is not None), QUOTES))


def compose(community: Community, inside: Inside, quotes: Sequence[Candidate] = ()) -> Report:
    """The report of one community, the same whatever the order of its input. `quotes`: what its
    children's reports quote, which stands for the evidence of rows that lie within a child."""
    found = _candidates(inside, quotes)
    names = [inside.entities[one].title for one in inside.order]
    said = [one.text for one in found if substance(one.text) > 0.1]
    title, subjects = _heading(inside, said)
    named = terms_of(title)
    sound = [one for one in found if one.sound]
    candidates = sound
    if len(sound) < FINDINGS:  # a small community has few sentences: all that say something
        candidates = [one for one in found if substance(one.text) > _EMPTY] or found
    about = [one for one in sound if named & terms_of(spoken(one.text))]
    # Chinese on programs has more Latin letters than others
    texts = [one.text for one in found[:NOUNS]] or names[:TITLE]
    chinese = 2 * sum(map(_is_chinese, texts)) > len(texts)
    telling_most = about if len(about) > 1 else sound or found
    if subjects and inside.documents and not inside.described:
        central = _central(inside, about, subjects)
        if not central and (
            len(inside.papers) <= FEW or 2 * sum(map(_is_foreign, texts)) > len(texts)
        ):
            central = [one for one in telling_most if SPEAKER.match(one.text) is None]
        chosen = _summary(central, inside, named, SUMMARY - 1)
    else:
        chosen = _summary(telling_most, inside, named)
    base = _base(community, inside, title, chinese)
    opening = _opening(inside, subjects, chinese)
    summary = _running(_cited(inside, one) for one in [*opening, *chosen]) or _names(inside)
    findings, new = [], []
    for group in _findings(inside, candidates, chosen):
        explanation = _running(_cited(inside, one) for one in group)
        findings.append({"summary": group[0].text, "explanation": explanation})
        fresh = [_cited(inside, one) for one in group if one not in chosen]
        if fresh:  # a small community's findings may say no more than its summary
            new.append(f"- {_running(fresh)}")
    content = "\n\n".join([f"# {base.title}", summary, *new])
    return replace(base, summary=summary, full_content=content, findings=_json(findings))


def _is_chinese(text: str) -> bool:
    """Does it hold Han and no kana or Hangul?"""
    signs = [*filter(is_cjk, text)]
    return bool(signs) and all(map(is_han, signs))


def _is_foreign(text: str) -> bool:
    """Is it in neither English nor Chinese: in another script, or in another language?"""
    letters = [*filter(str.isalpha, text)]
    other = 2 * sum(letter > "\u024f" for letter in letters) > len(letters)
    return other and not _is_chinese(text) or latin_language(text) != ""


def _heading(inside: Inside, said: Sequence[str]) -> tuple[str, list[str]]:
    """A phrase of the names, words and headings that most of the community's documents share; and
    with those of it more of them, the first one first."""
    words = nouns(filter(mostly_cjk, said[:NOUNS]))
    heaviest = map(inside.entities.__getitem__, inside.order)
    names = [row.title for row in heaviest if not inside.documents or _is_subject(row)]
    held = Counter(inside.documents.values())
    spread = None
    if len(held) > 1:
        papers = {id: one for id, one in inside.papers.items() if held[id] > STRAY * one.n_units}
        papers = papers if len(papers) > 1 else inside.papers
        place = {document: at for at, document in enumerate(papers)}
        of = {unit: place[id] for unit, id in inside.documents.items() if id in place}
        named = {
            row.title: {of[unit] for unit in row.text_unit_ids if unit in of}
            for row in inside.entities.values()
        }
        order = {name: at for at, name in enumerate(names)}
        rows = {row.title: row for row in inside.entities.values()}
        first = nsmallest(
            4 * NAMED, named, lambda one: (-len(named[one]), order.get(one, LISTED), one)
        )
        every = [paper.title for paper in papers.values()]
        titled = {one for one in first if len(every) < 20 * sum(one in title for title in every)}
        told_of = (one for one in first if one in titled or _is_subject(rows[one]))
        names = list(islice(told_of, NAMED))
        told = [inside.told.get(document, ()) for document in place]
        headings = [[paper.title] for paper in papers.values()]
        for line, units in _sections(inside).items():
            for at in dict.fromkeys(of[unit] for unit in units if unit in of):
                headings[at].append(line)
        spread = Spread(list(map("\n".join, headings)), told, named)
    whole = [row.title for row in inside.entities.values()]
    found = parts(inside.terms, names, said, SUBJECTS, nouns=words, spread=spread, whole=whole)
    found = found or [inside.entities[one].title for one in inside.order[:TITLE] if inside.terms]
    title = joined(sorted(found[:TITLE], key=str.islower)) or _titled(inside)
    told_whole = [of for of, number in held.items() if number > WHOLE * inside.papers[of].n_units]
    if len(told_whole) == 1 and held[told_whole[0]] > ALONE * inside.n_units:
        title = heading(inside.terms, inside.papers[told_whole[0]].title) or title
    return title, found


def _is_subject(row: EntityRow) -> bool:
    """Do sentences tell of the name: is it no speaker, who tells of other things, and none that stands
    in menus and lists alone?"""
    said = [text for _, text in row.evidence]
    marks = [mark[0] for text in said if (mark := SPEAKER.match(text))]
    worth = sorted(map(substance, said)) or [1.0]
    written = worth[-1] > LISTS and worth[len(worth) // 2] > _NOTICE
    return written and 2 * sum(row.title in mark for mark in marks) <= len(said)


def _opening(inside: Inside, subjects: Sequence[str], chinese: bool) -> list[Candidate]:
    """What the index knows of the community: how many documents of which years and folder it holds,
    on what, whom they name, and which of their titles or headings tell most of it."""
    papers = [inside.papers[of] for of in sorted({*inside.documents.values()})]
    if not papers or not subjects:
        return []
    years = sorted(paper.year for paper in papers if paper.year)
    years = [] if 2 * len(years) < len(papers) else sorted({years[0], years[-1]})
    folder, number = Counter(paper.folder for paper in papers).most_common(1)[0]
    folder = folder if number > max(2, WHOLE * len(papers)) else ""
    part = "part" if 2 * inside.n_units <= sum(paper.n_units for paper in papers) else ""
    people = {row.title for row in inside.entities.values() if row.type == "person"}
    titles, headings = _titles(inside)
    units = list(titles.values()) + list(headings.values()) or [unit for unit, _ in inside.leads]
    wording = _TABLES["chinese" if chinese else "english"]
    said = wording["documents"].format(len(papers)) if len(papers) > 1 else wording["one"]
    facts = (
        ("years", [wording["to"].join(years)]),
        ("folder", [folder]),
        ("part", [part]),
        ("about", [one for one in subjects if one not in people]),
        ("named", [one for one in subjects if one in people]),
        (
            "titles" if len(papers) > 1 else "called",
            [wording["title"].format(one) for one in titles],
        ),
        ("headings", [wording["heading"].format(one) for one in headings]),
    )
    for name, some in facts:
        if any(some):
            listed = wording["last"].join(
                filter(None, (wording["comma"].join(some[:-1]), some[-1]))
            )
            said = wording[name].format(said, listed)
    cited = dict.fromkeys(islice(units or inside.text_unit_ids, PER_GROUP))
    return [Candidate(wording["end"].format(said), units=cited)]


def _titles(inside: Inside) -> tuple[dict[str, str], dict[str, str]]:
    """The titles of documents that tell most of the community, each with a text unit; where these are
    few, headings too."""
    held = Counter(inside.documents.values())
    first = {of: unit for unit, of in sorted(inside.documents.items(), reverse=True)}
    order = [of for of in sorted(held) if not _FORMS.file.fullmatch(inside.papers[of].title)]
    known = apart(
        [_FORMS.reply.sub("", readable(inside.papers[of].title, LONGEST)[0]) for of in order]
    )
    titles: Counter[str] = Counter()
    units: dict[str, str] = {}
    for of, title in zip(order, known, strict=True):
        # of minutes the day says nothing
        if not (_FORMS.no_title.search(title) or title.count('"') % 2 or in_name(title)):
            titles[title] += held[of] / inside.papers[of].n_units
            units.setdefault(title, first[of])
    found = telling_titles({title: math.log1p(n) for title, n in titles.items()}, inside.terms)
    named = {title: units[title] for title in found}
    if len(found) > 1:
        return named, {}
    sections = {
        line: some
        for line, some in _sections(inside).items()
        if not (line in titles or in_name(line) or any(alike(line, title) for title in found))
    }
    worth = {line: math.log1p(len(some)) for line, some in sections.items()}
    return named, {line: sections[line][0] for line in telling_titles(worth, inside.terms)}


def _sections(inside: Inside) -> dict[str, list[str]]:
    """The headings in the community's texts, each with its text units; without those that many of its
    documents have, which are of a form: Conclusion, Attendees."""
    found: dict[str, list[str]] = {}
    for unit, words in inside.sections:
        line = readable(words, LONGEST)[0]
        if not _FORMS.running.search(line):
            found.setdefault(line, []).append(unit)
    most = max(FORM, len(inside.papers) // 20)
    return {
        line: units
        for line, units in sorted(found.items())
        if len({inside.documents[unit] for unit in units}) <= most
    }


def _titled(inside: Inside) -> str:
    """Where no name and no term is known: how its first documents are called."""
    titled = (paper.title for paper in inside.papers.values())
    known = (title for title in titled if not _FORMS.file.fullmatch(title))
    titles = dict.fromkeys(one_line(title, 40) for title in known if title)
    return "" if inside.order else " · ".join(islice(titles, 2))


def outline(community: Community, inside: Inside) -> Report:
    """The report without sentences: its rows, its text units, a rating, its heaviest names. The
    words of a model or of an import are put over it."""
    summary = _names(inside)
    base = _base(community, inside)
    return replace(base, summary=summary, full_content=f"# {base.title}\n\n{summary}")


def _base(community: Community, inside: Inside, title: str = "", cjk: bool | None = None) -> Report:
    """The report without its text; `cjk` None: the title decides about the language of the rating."""
    title = title or _title(inside.entities[one].title for one in inside.order)
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


def _json(findings: Sequence[Mapping[str, str]]) -> str:
    return json.dumps(findings, ensure_ascii=False)


def _running(sentences: Iterable[str]) -> str:
    """Sentences one after the other; no blank before Chinese."""
    text = ""
    for one in sentences:
        text += one if not text or is_cjk(one[:1]) else f" {one}"
    return text


# ---- choosing -----------------------------------------------------------------------------------


def _candidates(inside: Inside, quotes: Sequence[Candidate]) -> list[Candidate]:
    """What the children say and what no child could say, best first."""
    found = _gathered(inside, quotes)
    dense = [mostly_cjk(one.text) for one in found]
    # of texts in two scripts a report speaks the commoner one where it can
    strange = sum(dense) * 2 < len(dense)
    marks = [mark[0] if (mark := SPEAKER.match(one.text)) else "" for one in found]
    turns = Counter(mark for mark, one in zip(marks, found, strict=True) if one.worth > 0.1)
    speakers = [bool(mark) and turns[mark] > 1 for mark in marks]
    # in a chat a sentence without a name, behind the first of a turn, has no speaker
    several = sum(n > 1 for mark, n in turns.items() if mark) > 1
    chat = several and sum(speakers) > TURNS * len(found)
    for one, is_dense, speaks in zip(found, dense, speakers, strict=True):
        if is_dense == strange and sum(dense) * 2 != len(dense):
            one.worth *= MINORITY
            one.sound = False
        one.worth *= introduction((inside.entities[id].title for id in one.entities), one.text)
        one.worth *= math.sqrt(eventful(one.text)) if speaks else 1.0
        one.sound &= speaks or not chat
        if not chat and SPEAKER.match(one.text) and OWN.search(spoken(one.text)):
            one.worth *= ANSWER
        if len(one.units) >= 3:
            one.worth *= REPEATED
            one.sound = False
        if inside.terms:
            one.gain = one.worth * telling(one.text, inside.terms)
        else:
            one.gain = one.worth * sum(math.sqrt(inside.weight[id]) for id in one.entities)
    return sorted(found, key=lambda one: (-one.gain, one.text))[:CANDIDATES]


def _gathered(inside: Inside, quotes: Sequence[Candidate]) -> list[Candidate]:
    """Each sentence once, with all that it speaks of."""
    found: dict[str, Candidate] = {}

    def of(sentence: str) -> Candidate:
        text, worth = readable(sentence, LONGEST)
        return found.setdefault(text, Candidate(text, worth, sound=worth > _SOUND))

    for quote in quotes:
        one = of(quote.text)
        one.entities |= {id: None for id in quote.entities if id in inside.entities}
        one.edges |= {id: None for id in quote.edges if id in inside.edges}
        one.units |= quote.units
    for edge in inside.own_edges:
        for unit, sentence in edge.evidence:
            one = of(sentence)
            one.edges[edge.id] = one.units[unit] = None
            one.entities[edge.source_id] = one.entities[edge.target_id] = None
    for row in inside.own_entities:
        for unit, sentence in row.evidence:
            one = of(sentence)
            one.entities[row.id] = one.units[unit] = None
    for unit, sentence in inside.leads:
        one = of(sentence)
        one.worth = LEAD * readable(sentence, LONGEST)[1]
        one.units[unit] = None
    found.pop("", None)
    return list(found.values())


def _summary(
    candidates: Sequence[Candidate], inside: Inside, named: frozenset[str], most: int = SUMMARY
) -> list[Candidate]:
    """Sentences that together say most of the community's terms, those `named` in the title first, or,
    where these are not known, of its members' weight; what was said once counts a tenth after that."""
    weights = {id: one if id in named else UNTITLED * one for id, one in inside.terms.items()}
    weights = weights or {id: math.sqrt(one) for id, one in inside.weight.items()}
    left = dict(weights)
    chosen: list[Candidate] = []
    heap = [(-one.gain, place) for place, one in enumerate(candidates)]  # sorted, so a heap
    while heap and len(chosen) < most:
        known, place = heap[0]
        candidate = candidates[place]
        if inside.terms:
            speaks: Iterable[str] = terms_of(candidate.text) & left.keys()
            gain = candidate.worth * telling(candidate.text, left)
        else:
            speaks = candidate.entities
            gain = candidate.worth * sum(map(left.__getitem__, speaks))
        # What it speaks of may have been said since; gains only fall, so the others' may wait.
        if gain < -known:
            heapreplace(heap, (-gain, place))
            continue
        if len(chosen) >= 2 and gain < 0.25 * chosen[0].gain:
            break
        heappop(heap)
        if any(
            alike(candidate.text, one.text) or candidate.text[:16] == one.text[:16]
            for one in chosen
        ):
            continue
        chosen.append(candidate)
        for one in speaks:
            left[one] = 0.1 * weights[one]
    return chosen


def _central(
    inside: Inside, candidates: Sequence[Candidate], subjects: Sequence[str]
) -> list[Candidate]:
    """Those that are understood alone and say what a subject is or speak of several, best first, by
    the terms that most documents share."""
    share = Counter(term for held in inside.told.values() for term in held)
    weights = {term: one * math.sqrt(share[term]) for term, one in inside.terms.items()}
    keys = [terms_of(one) for one in subjects]
    people = {row.title for row in inside.entities.values() if row.type == "person"}
    if 2 * len(people.intersection(subjects)) >= len(subjects):
        return []  # what happens to people is no summary
    found = []
    for one in candidates:
        spoken_of = sum(not terms_of(one.text).isdisjoint(key) for key in keys)
        defines = introduction(subjects, one.text)
        clear = settled(one.text) and readable(one.text, LONGEST)[1] > CLEAR
        if SPEAKER.match(one.text) is None and clear:
            if defines > DEFINES or spoken_of >= SPOKEN_OF:
                one.worth = defines**2
                one.gain = one.worth * telling(one.text, weights)
                found.append(one)
    return sorted(found, key=lambda one: (-one.gain, one.text))


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

    for id in sorted(of_edge, key=inside.edge_place):
        edge = inside.edges[id]
        ends = (edge.source_id, edge.target_id)
        if len(found) < FINDINGS and all(named.get(end, 0) < 3 for end in ends):
            take(of_edge[id], ends)
    for id in sorted(of_entity, key=inside.place):
        if len(found) < FINDINGS and id not in named:
            take(of_entity[id], [id])
    return found


# ---- wording ------------------------------------------------------------------------------------


def _cited(inside: Inside, candidate: Candidate) -> str:
    """The sentence with its reference, ids in the order of their weight in the community."""
    if not candidate.cited:
        orders = (
            sorted(candidate.entities, key=inside.place),
            sorted(candidate.edges, key=inside.edge_place),
            sorted(candidate.units),
        )
        cited = reference(zip(KINDS, orders, strict=True), PER_GROUP)
        candidate.cited = f"{candidate.text} {cited}".rstrip()
    return candidate.cited


def _names(inside: Inside) -> str:
    """Without any evidence sentence: the names themselves, cited."""
    top = inside.order[:10]
    names = " · ".join(one_line(inside.entities[one].title, 60) for one in top)
    units = dict.fromkeys(unit for one in top for unit in inside.entities[one].text_unit_ids)
    return _cited(inside, Candidate(names, 1.0, dict.fromkeys(top), {}, units))


def _title(titles: Iterable[str]) -> str:
    """The heaviest names, leaving out one that is part of another."""
    chosen: list[str] = []
    for title in titles:
        name = one_line(title, 60)
        folded = name.casefold()
        if not any(folded in other.casefold() or other.casefold() in folded for other in chosen):
            chosen.append(name)
        if len(chosen) == TITLE:
            break
    return " · ".join(chosen)


def _rating(inside: Inside, cjk: bool) -> tuple[float, str]:
    """0-10 from how much there is, each part on a logarithmic scale that is full at the figure
    given.

    A pair from one sentence gets about 1.5, a leaf of ten names from eight text units about 4, a
    whole field 9-10."""
    size, links = len(inside.entities), len(inside.edges)
    units, weight = inside.n_units, inside.total
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
_SOUND = 0.5  # what stands less alone is not quoted where there are enough better sentences


def telling(text: str, weights: Mapping[str, float]) -> float:
    """More for a sentence of many characteristic terms and few others; a figure or a date helps."""
    said = terms_of(text)
    found = sum(sorted(weights[term] for term in said & weights.keys()))
    return found / math.sqrt(8 + len(said)) * (1.15 if _FIGURE.search(text) else 1.0)


# ---- source code --------------------------------------------------------------------------------

# By rule: the title is the path. The text is the docstring, the names that are defined there or the
# files and folders that lie there, then the signature and docstring of each of the heaviest.
DEFINED = ("class", "interface", "type", "function", "constant", "method")
SHOWN = 12  # names in the summary
TOLD = 10  # of them with a sentence of their own
PACKAGES = frozenset(stem for stems in PACKAGE_FILES.values() for stem in stems)


def compose_code(community: Community, inside: Inside, children: Sequence[Report]) -> Report:
    base = replace(outline(community, inside), title=inside.title)
    if children:
        opening, described = _of_parts(children)
        held = [one.text.partition(":")[0] for one in described]
        listing = [_listing("Holds", held, described)] if held else []
    else:
        opening = list(_docstrings(inside))
        symbols = [row for row in inside.own_entities if row.type in DEFINED]
        symbols.sort(key=lambda row: DEFINED.index(row.type) // 5)  # methods last
        rows = [_of_row(row, f"{row.type} {row.title}") for row in symbols]
        listing = [_listing("Defines", [one.text for one in rows], rows[:SHOWN])] if rows else []
        described = [_of_row(row, row.description) for row in symbols if row.description]
    summary = _running(_cited(inside, one) for one in [*opening, *listing]) or base.summary
    findings = [
        {"summary": one.text, "explanation": _cited(inside, one)} for one in described[:TOLD]
    ]
    lines = [f"- {one['explanation']}" for one in findings]
    content = "\n\n".join([f"# {base.title}", summary, *lines])
    return replace(base, summary=summary, full_content=content, findings=_json(findings))


def _of_parts(children: Sequence[Report]) -> tuple[list[Candidate], list[Candidate]]:
    """What the file that stands for a folder says of it; and of each of its parts, the largest
    first, the path and the first sentence of its report."""
    opening: list[Candidate] = []
    parts: list[Candidate] = []
    for one in sorted(children, key=lambda one: (-one.n_text_units, one.title)):
        units = dict.fromkeys(one.text_unit_ids[:1])
        first = next(quotes_of(one), Candidate("", 1.0, {}, {}, units))
        # The list of names is no sentence.
        sentence = "" if first.text.startswith(("Defines ", "Holds ")) else first.text
        name = one.title.rpartition(": ")[2].rpartition("/")[2]  # of small files their names
        if sentence and name.partition(".")[0] in PACKAGES:
            opening.append(Candidate(sentence, 1.0, first.entities, {}, first.units))
        text, _ = readable(f"{name}: {sentence}" if sentence else name, LONGEST)
        parts.append(Candidate(text, 1.0, first.entities, {}, first.units))
    return opening[:1], parts


def _docstrings(inside: Inside) -> Iterator[Candidate]:
    """The docstrings of the modules, at most three; with their names where there are several."""
    modules = [row for row in inside.own_entities if row.type == "module"]
    told = {one.id: one.description.replace(f"Module {one.title}.", " ") for one in modules}
    said = {id: " ".join(text.split()) for id, text in told.items() if text.strip()}
    modules = [row for row in modules if row.id in said]
    for row in sorted(modules, key=lambda row: (len(row.title), row.title))[:3]:
        text = said[row.id]
        yield _of_row(row, text if len(modules) == 1 else f"{row.title}: {text}")


def _of_row(row: EntityRow, said: str) -> Candidate:
    text, _ = readable(said, LONGEST)
    return Candidate(text, 1.0, {row.id: None}, {}, dict.fromkeys(sorted(row.text_unit_ids)[:1]))


def _listing(verb: str, names: Sequence[str], parts: Sequence[Candidate]) -> Candidate:
    """A sentence with the first names, citing all of `parts`."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    entities = {id: None for one in parts for id in one.entities}
    units = {unit: None for one in parts for unit in one.units}
    return Candidate(f"{verb} {', '.join(names[:SHOWN])}{more}.", 1.0, entities, {}, units)
