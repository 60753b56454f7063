"""Passages as an agent reads them: strong hits in full, weaker ones as one line.

Long passages are cut to the sentences around the match, and passages that repeat another are named
with it. Before them stand statements of the graph between names of the question. For questions
whose answer is spread over a corpus there is a line from each place that has something to say;
where the question names a person, only from places that name the person."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_mcp.names.extract import terms_of
from graphrag_mcp.packing.budget import CHARACTERS, citation, one_line, repeats
from graphrag_mcp.query import context, series, times
from graphrag_mcp.query.code_features import DEFINING
from graphrag_mcp.query.rank import Ranked, Ranking
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.prose import (
    NOTICE,
    SPEAKER,
    WORKS,
    asks_consent,
    is_bibliography,
    is_menu,
    language_of,
    lists_links,
    readable,
    says_something,
    sentences,
    substance,
)
from graphrag_mcp.text.terms import query_terms, terms
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.trust.fencing import quoted
from graphrag_mcp.types import Citation, Mention, SearchResult

if TYPE_CHECKING:
    from graphrag_mcp.query.filters import Filters

DEFAULT_TOKENS = 1_200  # weaker hits are shown in full from more tokens on
# Shares of the best score. Of the passages at 0.6 and above, 3.7 (HotpotQA), 6 (Chroma) and 2
# (CMRC) are shown on average, with 90 %, 100 % and 100 % of the documents that answer; between 0.3
# and 0.6 lie nearly all of the others.
STRONG, WEAK = 0.6, 0.3
LINE, SHORT = 120, 100  # characters of a weak hit's line; of one that goes on behind a sentence
BEGINS = 48  # characters of the beginning of a document without a title
CODE_LINES = 5  # of a passage of source code that hold a literal
MOST_WEAK = 3  # eight took a seventh of the characters and held none of the evidence
ALIKE, SHINGLE = 0.8, 5  # share of common runs from which two passages say the same; words of a run
HEAD, PART = 30, 15  # tokens that a head may take; of a text, below which it is shown as a line
OVERHEAD = 50  # tokens of the fence around what documents say and of the line that leads on
CONNECTED = 5  # statements between names of the question
FEW = 4  # passages with a name up to which it is said that no other one holds it
# Of several questions: hits in full and as lines, and the share of the best score from which a hit
# is shown. Two of three lines below it were of no use to an agent with 20 two-hop questions.
PER_QUESTION, LINES_PER_QUESTION, RELEVANT = 1, 3, 0.45
WINDOW = 220  # tokens of a passage that one of several questions finds
LEAST = 50  # tokens of the result for one of them
ECHO = 60  # characters of such a question, which the caller knows
MOST_LINES, LINES_READ = 40, 160  # places that have a line; hits that are looked at
LEAST_WORTH, SOME_LINES = 0.35, 10  # of the worth of the best sentence, half of it up to so many
LISTED = re.compile(r"[,;，、；]")  # between the things that a question lists
_INTRO, _AND = re.compile("[:：]"), re.compile(" (?:and|or|und|oder|et|ou|y|o) |[和与及或]")
_ASIDE = re.compile(r"\[[^\[\]]*\]")  # [shares a photo of a dog]
# (Brunner, 1979), (Hare et al. 2001), (see Figure 3): no facts of the sentence that cites them
_CITED = re.compile(
    r"\([^()]{0,200}(?:\b[A-Z][^\W\d_]{0,30},|\bal\b\W{0,3}) (?:1[6-9]|20)\d\d[a-z]?\)"
    r"|\([^()\d]{0,40}\b[Ff]ig(?:ure|s)?\b[^()]{0,20}\)"
)
LINE_LENGTH = 260  # characters of such a sentence
NAMED = 0.3  # of the worth of a person's name within a passage
OTHERS = 0.6  # of the worth of a sentence that another person says in a conversation


Worth = Mapping[str, float]  # of the terms of a question
MergedPassages = list[tuple[float, int, Ranked]]  # score, number of the corpus, passage


COMMON = 2.1  # worth of words that every eighth passage holds


@dataclass(slots=True)
class Source:
    """What a search found in one corpus. `corpus` stands before ids, `factor` weighs scores.
    `explained`: results say of each passage why it is there. `useful`: it may be shown."""

    snapshot: Snapshot
    found: Ranking
    corpus: str = ""
    filters: Filters | None = None
    factor: float = 1.0
    explained: bool = False
    useful: bool = True


@dataclass(frozen=True, slots=True)
class Form:
    """How it is shown: `breadth` is passages or sentences, `sort` is rank or time. `literals` must
    be seen in what is shown. `every`: all hits are shown, not only those near the best one.
    `window`: tokens of a passage at most; 0: as many as have room. `works`: lists of works are
    asked for."""

    breadth: str = "passages"
    sort: str = "rank"
    literals: Sequence[str] = ()
    every: bool = False
    window: int = 0
    works: bool = False


@dataclass(slots=True)
class Hit:
    """One passage: `body` is the readable text of `raw`; `passage` and `document` are content ids;
    `also` are the ids of passages that repeat it."""

    score: float
    raw: str
    body: str
    citation: Citation
    times: times.Times
    date: str = ""  # with the clock of its document where another hit has that day
    moment: str = ""  # sorts by time
    passage: str = ""
    document: str = ""
    corpus: str = ""
    whole: bool = False  # the whole document
    validity: str = ""  # what the document says of its own validity
    begins: str = ""  # how a document without a title begins
    short: str = ""  # what tells the document from others of its series
    also: list[str] = field(default_factory=list)

    @property
    def id(self) -> str:
        return self.citation.id

    @property
    def uri(self) -> str:
        return f"{self.corpus}/{self.citation.uri}" if self.corpus else self.citation.uri

    def head(self, body: str, brief: bool = False) -> str:
        """`[t33.2] Title (uri:12-40) 2024-05-03`; no title that only repeats the file's name.
        `body`: what is shown of the text. `brief`: no place of a text that has a title."""
        uri, title = one_line(self.uri, 300), one_line(self.citation.title, 120)
        if repeats(uri, title):
            title = ""
        first, last = self.citation.line_start, self.citation.line_end
        place = f"({uri}:{first}-{last})" if first else f"({uri})"
        if brief and title and not language_of(self.uri):
            place = ""
        whole = "whole document" if self.whole and body == self.body else ""
        also = f"(also {', '.join(self.also[:4])})" if self.also else ""
        return _joined(f"[{self.id}]", title, place, self.date, self.validity, whole, also)

    def name(self, said: str = "") -> str:
        """The title, or the name of the file, on one line; with how a document without a title
        begins, unless `said` begins so."""
        title = self.short or self.citation.title or self.citation.uri.rpartition("/")[2]
        name = one_line(title, 60)
        known = not self.begins or said.startswith(self.begins[: BEGINS // 2])
        return name if known else f"{name} ({self.begins})"

    def why(self) -> str:
        return f"(why: {self.citation.why})" if self.citation.why else ""

    def cited(self) -> list[Citation]:
        """The citation with the days that the text speaks of."""
        return [self.citation.model_copy(update={"when": self.times.cited()})]


@dataclass(slots=True)
class Page:
    """One result that is being filled; several questions may share it, so nothing is shown twice."""

    room: int
    characters: int = CHARACTERS - 3_000
    seen: dict[str, frozenset[int]] = field(default_factory=dict)  # runs of words by id
    full: set[str] = field(default_factory=set)  # ids of what was shown in full
    blocks: list[str] = field(default_factory=list)
    citations: dict[str, Citation] = field(default_factory=dict)

    def add(self, text: str, cited: Iterable[Citation] = ()) -> bool:
        """Add a block if there is room for it."""
        price = count_tokens(text) + 2
        if price > self.room or len(text) > self.characters:
            return False
        self.room -= price
        self.characters -= len(text) + 2
        self.blocks.append(text)
        self.citations |= {one.id: one for one in cited}
        return True

    def text(self) -> str:
        return "\n".join(self.blocks)


def _joined(*parts: str) -> str:
    return " ".join(filter(None, parts))


# ---- the result of a search ----------------------------------------------------------------------


def concise(
    result: SearchResult,
    sources: Sequence[Source],
    budget: int,
    offset: int,
    cursor: Callable[[tuple[int]], str],
    form: Form,
) -> SearchResult:
    """The result for one question. What stands in its text already comes first."""
    ranked, page, worth = _merged(sources), page_of(result, budget), _focus(sources)
    form = replace(form, works=form.every or _asks_for_works(sources))
    if form.breadth == "sentences":
        every = lines(sources)[offset:]
        taken = show_lines(page, every, form.sort == "time")
        if not every:
            result.state = "not_found"
            page.add(
                "No sentence says something on this. Ask with breadth=passages, or in other words."
            )
        return finished(result, page, len(every) - taken, offset + taken, cursor)
    best = ranked[0][0] if ranked else 0.0
    hits = _hits(sources, ranked[offset : offset + max(20, budget // 50)])
    for hit in hits if form.every else ():  # what stands in quotes may be in a menu
        if not any(one.casefold() in hit.body.casefold() for one in form.literals):
            hit.body = hit.raw
    if form.sort == "time":
        hits.sort(key=_when)
    missing: list[str] = []
    if not offset:
        _connect(page, sources)
        missing = [] if form.every else _unnamed(sources, hits)
        _say_unnamed(page, missing)
    floor = 0.0 if form.every else WEAK * best
    generous = not form.every and (budget > DEFAULT_TOKENS or form.sort == "time")
    most = 0 if missing else None
    taken = offset + show(page, hits, worth, most=most, generous=generous, floor=floor, form=form)
    rest = sum(score >= floor for score, _, _ in ranked[taken:])
    if not offset:
        _say_no_other(page, sources, hits)
    return finished(result, page, rest, taken, cursor)


def several(
    result: SearchResult, asked: Sequence[tuple[str, Sequence[Source]]], budget: int, form: Form
) -> SearchResult:
    """The result for several questions: each with its share of the budget, no passage twice."""
    page, form = page_of(result, budget), replace(form, window=WINDOW)
    last = min(len(asked), max(page.room // LEAST, 1))
    page.room -= OVERHEAD // 2 if page.room < 2 * LEAST * len(asked) else 0
    for number, (question, sources) in enumerate(asked[:last]):
        left = last - number
        share = page.room // left
        part = Page(share, page.characters // left, page.seen, page.full)
        part.add(f"## {one_line(question, ECHO)}")
        if form.breadth == "sentences":
            show_lines(part, lines(sources), form.sort == "time")
        else:
            _show_question(part, sources, form)
        if not any(source.found.passages for source in sources):
            part.add("Nothing was found.")
        if len(part.blocks) < 2:
            last = number
            break
        page.blocks += part.blocks
        page.citations |= part.citations
        page.room -= share - part.room
    if last < len(asked):
        rest = f"No room from query {last + 1} of {len(asked)} on"
        page.blocks.append(f"{rest}: ask the others apart, or with more max_tokens.")
    return finished(result, page, 0, 0, lambda _: "")


def _show_question(page: Page, sources: Sequence[Source], form: Form) -> None:
    ranked, form = _merged(sources), replace(form, works=_asks_for_works(sources))
    hits = _hits(sources, ranked[:20])
    most, floor = PER_QUESTION, RELEVANT * ranked[0][0] if ranked else 0.0
    if by_time := form.sort == "time":
        most += LINES_PER_QUESTION
        hits = sorted((hit for hit in hits[:most] if hit.score >= floor), key=_when)
    known = [hit for hit in hits[:most] if hit.id in page.full]
    _say_unnamed(page, missing := _unnamed(sources, hits))
    show(
        page,
        [hit for hit in hits if hit.id not in page.full],
        _focus(sources),
        most=0 if missing else max(most - len(known), 1),
        weak=LINES_PER_QUESTION,
        floor=floor,
        generous=by_time,
        form=form,
    )
    _say_no_other(page, sources, hits)
    if known:
        page.add(f"See also {', '.join(f'[{hit.id}]' for hit in known)} above.")


def page_of(result: SearchResult, budget: int) -> Page:
    """A page with room for a budget of tokens, after what the result's text and hint take."""
    room = budget - OVERHEAD - count_tokens(f"{result.hint} {result.text}")
    return Page(max(room, 60), blocks=[result.text] if result.text else [])


def finished(
    result: SearchResult, page: Page, rest: int, taken: int, cursor: Callable[[tuple[int]], str]
) -> SearchResult:
    """The result with what the page holds. `rest`: relevant passages that were not shown, which the
    next page begins with."""
    result.text = page.text().rstrip()
    result.citations = list(page.citations.values())
    result.truncated = rest > 0
    if rest:
        result.next_cursor = cursor((taken,))
        result.more = rest
    result.tokens = count_tokens(result.text)
    return result


def _merged(sources: Sequence[Source]) -> MergedPassages:
    """Passages of all corpora by score; those of one corpus in its own order."""
    ranked = [
        (one.score * source.factor, number, one)
        for number, source in enumerate(sources)
        for one in source.found.passages
    ]
    return sorted(ranked, key=lambda one: -round(one[0], 9)) if len(sources) > 1 else ranked


def _worth(sources: Sequence[Source]) -> dict[str, float]:
    return {term: worth for source in sources for term, worth in source.found.terms.items()}


def _focus(sources: Sequence[Source]) -> dict[str, float]:
    """The worth of terms within a passage: less for names of people, who are spoken to in it."""
    every, names = _worth(sources), [one for source in sources for one in source.found.names]
    rest = without_people(every, names)
    return {term: worth * (1.0 if term in rest else NAMED) for term, worth in every.items()}


def _hits(sources: Sequence[Source], ranked: MergedPassages) -> list[Hit]:
    found: dict[tuple[int, str], Hit] = {}
    for number, source in enumerate(sources):
        scored = [(one.id, score) for score, other, one in ranked if other == number]
        why = source.found.why([id for id, _ in scored]) if source.explained else {}
        for hit in read(source.snapshot, scored, source.corpus, why):
            found[number, hit.passage] = hit
    return [found[at, one.id] for _, at, one in ranked if (at, one.id) in found]


# ---- what is said beside the hits ------------------------------------------------------------------


def _connect(page: Page, sources: Sequence[Source]) -> None:
    """Add statements of the graph between two names of the question, the weightiest first, and what
    a model or an agent claims of a name."""
    found: list[str] = []
    for source in sources:
        snapshot, named = source.snapshot, source.found.named[:20]
        prefix = f"{source.corpus}/" if source.corpus else ""
        rows = snapshot.by_key("relationships", named, "source_id", ["id", "target_id", "weight"])
        light = rows.filter(pc.is_in(rows["target_id"], pa.array(named, pa.string()))).to_pylist()
        light.sort(key=lambda row: (-row["weight"], row["id"]))
        held = snapshot.served("relationships", [row["id"] for row in light[:CONNECTED]])
        title = context.titles(snapshot, held) if held else {}
        for row in held:
            pair = (one_line(title.get(row[end], "?"), 60) for end in ("source_id", "target_id"))
            told = readable(row["description"])
            if told and not is_menu(row["description"], told):
                said = f"{' and '.join(pair)}: {context.first_sentence(told, 200)}"
                found.append(f"- [{prefix}r{row['n']}] {said}")
        if "claims" in snapshot.manifest.tables:
            rows = snapshot.served("entities", named)
            for row in context.claim_rows(snapshot, rows)[:CONNECTED]:
                said = f"{one_line(row['subject'], 60)}: {one_line(row['description'], 200)}"
                found.append(f"- [{prefix}k{row['n']}] {said}")
    if found:
        page.add("\n".join(["Connected:", *found[:CONNECTED], ""]))


def _unnamed(sources: Sequence[Source], hits: Sequence[Hit]) -> list[str]:
    """The names of the question, where each has several words and none of the passages has all of
    one: "Howard Flight" finds passages on flights."""
    names = [one for source in sources for one in source.found.names if one.strong]
    replaced = {term for source in sources for term in source.found.near}
    texts = [f"{hit.citation.title} {hit.raw}".casefold() for hit in hits]
    worth = _worth(sources)
    for one in names:
        if all(worth.get(term, math.inf) < COMMON for term in terms_of(one.form)):
            return []  # United States, in texts on them
        # Endings differ (Ville Virtasen); a name of one word stands in passages or is unknown.
        words = [word[: max(4, len(word) - 2)] for word in one.form.casefold().split()]
        codes = all(any(map(str.isdigit, word)) for word in words)  # "V-2 B-29" are two names
        if len(words) < 2 or codes or any(all(word in text for word in words) for text in texts):
            return []
        if len(words) > 2 and all(any(word in text for text in texts) for word in words):
            return []  # a list of names: "Oliver Luna Bailey"
        if not replaced.isdisjoint(terms_of(one.form)):
            return []  # the hits hold the words that stand for it
    return list(dict.fromkeys(one.form for one in names)) if hits else []


def _say_unnamed(page: Page, names: Sequence[str]) -> None:
    if names:
        said = " or ".join(f'"{one_line(name, 40)}"' for name in names[:3])
        page.add(f"No passage names {said}; nearest:")


def _say_no_other(page: Page, sources: Sequence[Source], hits: Sequence[Hit]) -> None:
    """Add `No other passage names "Fawell".` for rare names of the question of which every passage
    is shown: who reads it need not look for more. Nothing where several corpora are asked."""
    if len(sources) != 1:
        return
    snapshot, found = sources[0].snapshot, sources[0].found
    rarest: dict[str, str] = {}
    for one in found.names if hits else ():
        known = [term for term in terms_of(one.form) if term in found.terms]
        if one.strong and known:
            rarest[one.form] = max(known, key=lambda term: (found.terms[term], term))
    rows = snapshot.by_key("terms", [*rarest.values()], "term", ["term", "passages"])
    number = {row["term"]: row["passages"] for row in rows.to_pylist()}
    shown = [f"{hit.citation.title} {hit.raw}" for hit in hits if hit.id in page.citations]
    # Keywords with capitals (Vioxx Merck Lawsuits) look like a name: one passage must have it.
    written = " ".join(" ".join(shown).casefold().split())
    held = Counter(term for text in shown for term in set(terms(text)))
    names = [
        f'"{one_line(form, 40)}"'
        for form, term in rarest.items()
        if 0 < number.get(term, 0) <= min(FEW, held[term])
        and " ".join(form.casefold().split()) in written
    ]
    if names:
        page.add(f"No other passage names {' or '.join(names)}.\n")


# ---- hits ----------------------------------------------------------------------------------------


def read(
    snapshot: Snapshot,
    scored: Iterable[tuple[str, float]],
    corpus: str = "",
    why: Mapping[str, str] = {},
) -> list[Hit]:
    """Passages (content id, score) as hits, in this order; damaged rows are left out. `corpus` is
    put before the ids."""
    score = dict(scored)
    rows = snapshot.served("passages", list(score), context.PASSAGE)
    ids = list(dict.fromkeys(row["document_id"] for row in rows))
    columns = ["id", "document_id", "position"]
    parts = snapshot.by_key("passages", ids, "document_id", columns).to_pylist()
    count = Counter(part["document_id"] for part in parts)
    untitled = {  # the title is only the name of the file; source code needs no other
        row["document_id"]
        for row in rows
        if row["title"] in ("", row["uri"].rpartition("/")[2]) and not language_of(row["uri"])
    }
    first = [p["id"] for p in parts if p["document_id"] in untitled and not p["position"]]
    begins = {
        row["document_id"]: _beginning(row["text"])
        for row in snapshot.served("passages", first, context.PASSAGE)
    }
    facts, valid = times.documents(snapshot), times.validity(snapshot)
    shown = times.shown(facts[id] for id in ids if id in facts)
    of_series = series.by_document(snapshot)
    spoken = times.read(snapshot, rows)
    hits = []
    for row in rows:
        fact, time = facts.get(row["document_id"]), spoken[row["id"]]
        said = next(iter(time.said), "")
        date = said or (fact["date"] if fact and not fact["by"] else "")
        alias = fact["document"][0] if fact else row["document_id"]
        cited = citation(row, score[row["id"]], alias)
        cited = context.placed(corpus, cited) if corpus else cited
        hits.append(
            Hit(
                score[row["id"]],
                row["text"],
                _body(row["text"], row["title"], row["uri"]),
                cited.model_copy(update={"why": why.get(row["id"], ""), "said": said}),
                time,
                shown[row["document_id"]] if fact and date == fact["date"] else date,
                time.moment(date),
                row["id"],
                row["document_id"],
                corpus,
                whole=count[row["document_id"]] == 1 and "cut" not in row,
                validity=valid.get(row["document_id"], ""),
                begins=begins.get(row["document_id"], ""),
                short=series.name(fact, of_series.get(row["document_id"])) if fact else "",
            )
        )
    return hits


def _beginning(text: str) -> str:
    """The first words of a document, if they say something."""
    text = readable(text)
    start, end = (sentences(text) or [(0, 0)])[0]
    said = one_line(text[start:end], 4_000)
    return clipped(said, {}, BEGINS) if says_something(said) else ""


def _body(raw: str, title: str, uri: str) -> str:
    """The readable text, without a first line that only repeats the title; source code as it is."""
    if language_of(uri):
        return raw.strip("\n")
    text = readable(raw)
    first, newline, rest = text.partition("\n")
    if newline and first.lstrip("# ").strip().casefold() == title.strip().casefold():
        return rest.strip()
    return text


def _when(hit: Hit) -> tuple[str, str, int]:
    """Dated ones first, oldest first; within a document in the order of the text."""
    return hit.moment or "9999", hit.uri, hit.citation.char_start


def show(
    page: Page,
    hits: Sequence[Hit],
    worth: Worth,
    *,
    most: int | None = None,
    weak: int = MOST_WEAK,
    generous: bool = False,
    floor: float = 0.0,
    form: Form = Form(),
) -> int:
    """Add hits to the page, best first: how many of them were shown or named.

    `most` limits those in full (None: as many as the room allows), `weak` those as lines.
    `generous`: weaker hits are shown in full too, as far as there is room. At least one hit is
    shown, however little room there is, and no menu where another hit says something. With
    `form.every` all are shown: the best of them in full, in half of the room, others and source code
    that defines nothing as lines."""
    if not hits:
        return 0
    told = hits if form.every else [one for one in hits if not is_menu(one.raw, one.body)] or hits
    told = told if form.works else _without_bibliographies(told, worth)
    late = set() if form.every else _late(told, worth)
    told = sorted(told, key=lambda one: one.id in late)
    top, literals = told[0].score or 1.0, form.literals
    kept = _without_repeats(page, told, floor)
    strong = [hit for hit in kept if hit.score >= (floor if generous else STRONG * top)]
    if form.every:
        strong = [one for one in strong if not language_of(one.uri) or defines(one.raw, literals)]
        weak, reserved = len(hits), page.room // 2
        if kept and kept[0] not in strong:  # or the next page begins with it again
            said = _line(kept[0], worth, literals)
            shorter = (said, said.partition("\n")[0], f"- [{kept[0].id}]")
            if any(page.add(one, kept[0].cited()) for one in shorter):
                page.full.add(kept[0].id)
    else:
        strong = strong[:most]
        reserved = min(page.room // 6, 40 * min(weak, len(kept) - len(strong)))
    _in_full(page, strong, worth, form, reserved)
    left = [hit for hit in kept if hit.id not in page.full]
    for number, hit in enumerate(left):
        if number == weak or not page.add(_line(hit, worth, literals), hit.cited()):
            if hit.id in late:  # no page shows those that have no room here
                return len(hits)
            return next(at for at, other in enumerate(hits) if other is hit)
    return next((at for at, hit in enumerate(hits) if hit.score < floor and at), len(hits))


def _late(hits: Sequence[Hit], worth: Worth) -> set[str]:
    """The hits that say nothing of their own and come after all others: lists of links to other
    pages, and notices on cookies unless the question is on these."""
    notices = NOTICE.isdisjoint(worth)
    late = {one.id for one in hits if lists_links(one.raw) or (notices and asks_consent(one.body))}
    return late if len(late) < len(hits) else set()


def _asks_for_works(sources: Sequence[Source]) -> bool:
    return any(not WORKS.isdisjoint(terms(one.found.query)) for one in sources)


def _without_bibliographies(hits: Sequence[Hit], worth: Worth) -> Sequence[Hit]:
    """The hits without lists of works, but for those that hold words of the question which the other
    hits all together lack, such as the name of an author."""
    lists = {hit.id for hit in hits if is_bibliography(hit.body)}
    held = {hit.id: worth.keys() & terms(hit.body) for hit in hits} if lists else {}
    told = set().union(*(held[id] for id in held.keys() - lists))
    return [hit for hit in hits if hit.id not in lists or held[hit.id] - told] or hits


def _in_full(page: Page, strong: Sequence[Hit], worth: Worth, form: Form, reserved: int) -> None:
    """Add as many hits as have room beside the tokens that are `reserved` for lines, whole ones
    where it lasts. The first one is shown in whatever room there is."""
    literals = form.literals
    for hit in strong:
        room = page.room - reserved
        if room < HEAD + PART:
            break
        size = min(room - HEAD, form.window or room)
        body = window(hit.body, worth, size, literals)
        beside = filter(None, (hit.times.note(body, date=hit.date), hit.why()))
        head = hit.head(body, brief=bool(form.window))
        block = "\n".join([head, quoted(body), *beside]) + "\n"
        if count_tokens(block) + 2 > room or not page.add(block, hit.cited()):
            break
        page.full.add(hit.id)
    if strong and not page.citations:
        head, hit = f"[{strong[0].id}]\n", strong[0]
        body = window(hit.body, worth, page.room - count_tokens(head) - 4, literals)
        if page.add(head + quoted(body), hit.cited()):
            page.full.add(hit.id)


def _line(hit: Hit, worth: Worth, literals: Sequence[str]) -> str:
    """A weak hit: id, title and its best sentence for the question; of source code, its line."""
    if language_of(hit.uri):
        return "\n".join(code_lines(hit, worth, literals))
    said = best_sentence(hit.body, worth, literals, LINE)
    name = hit.name(said)
    name = "" if said.casefold().startswith(name.casefold()) else f"{name}:"
    return _joined(
        f"- [{hit.id}]", hit.date, name, said, hit.times.note(said, date=hit.date), hit.validity
    )


def in_brief(hit: Hit, literals: Sequence[str]) -> str:
    """`[t12.3] sentence`: of what holds a literal; of source code, `[t12.3] :40: line`."""
    if uri := hit.uri if language_of(hit.uri) else "":
        return code_lines(hit, {}, literals)[0].removeprefix("- ").replace(f"{uri}:", ":", 1)
    return f"[{hit.id}] {best_sentence(hit.body, {}, literals, LINE)}"


def code_lines(hit: Hit, worth: Worth, literals: Sequence[str]) -> list[str]:
    """`- [t12.3] path/file.py:40: line` for each line that holds a literal, or for the best one; of
    several lines the id stands before the first."""
    code = hit.raw.splitlines() or [""]
    small = [one.casefold() for one in literals]
    at = [n for n, line in enumerate(code) if any(one in line for one in literals)]
    at = at or [n for n, line in enumerate(code) if any(one in line.casefold() for one in small)]
    if not at:
        values = [math.fsum(worth.get(term, 0.0) for term in set(terms(line))) for line in code]
        at = [values.index(max(values))]
    first, uri = hit.citation.line_start or 1, one_line(hit.uri, 300)
    said = [f"{uri}:{first + n}: {one_line(code[n], LINE)}" for n in at[:CODE_LINES]]
    more = [f"  {len(at) - CODE_LINES} more lines in this passage"] if len(at) > CODE_LINES else []
    return [f"- [{hit.id}] {said[0]}", *(f"  {one}" for one in said[1:]), *more]


def defines(code: str, names: Sequence[str]) -> bool:
    """Does a passage define a symbol of this name?"""
    words, said = "|".join(sorted(DEFINING)), "|".join(map(re.escape, names))
    return bool(said) and re.search(rf"\b(?:{words})\s+(?:{said})\b", code) is not None


def _without_repeats(page: Page, hits: Sequence[Hit], floor: float) -> list[Hit]:
    """Relevant hits, without those that repeat another, which are named with it."""
    kept: dict[str, Hit] = {}
    for at, hit in enumerate(hits):
        if hit.score < floor and at:
            break
        if hit.id in page.full:
            continue
        runs = runs_of(hit.body)
        others = ((id, other) for id, other in page.seen.items() if id != hit.id)
        same = next((id for id, other in others if alike(runs, other)), "")
        if not same:
            page.seen[hit.id] = runs
            kept[hit.id] = hit
        elif same in kept:
            kept[same].also.append(hit.id)
    return list(kept.values())


def runs_of(text: str) -> frozenset[int]:
    """Hashes of all runs of five words (of five characters where words have no blanks)."""
    words = [word for word in text.casefold().split() if any(map(str.isalnum, word))]
    if len(words) < len(text) / 30:
        words = [ch for ch in text if ch.isalnum()]
    starts = range(max(len(words) - SHINGLE + 1, 1))
    return frozenset(hash(tuple(words[at : at + SHINGLE])) for at in starts)


def alike(one: frozenset[int], other: frozenset[int]) -> bool:
    return len(one & other) >= ALIKE * len(one | other)


# ---- sentences of a passage ------------------------------------------------------------------------


def window(text: str, worth: Worth, room: int, literals: Sequence[str] = ()) -> str:
    """The run of whole sentences with the best one that is worth most, at most so many tokens; the
    whole text if it fits."""
    if count_tokens(text) <= room:
        return text
    spans = sentences(text)
    if not spans:
        return ""
    prices = [count_tokens(text[start:end]) + 1 for start, end in spans]
    values = [value_of(text[start:end], worth, literals) for start, end in spans]
    best = max(range(len(spans)), key=lambda at: (values[at], -at))
    if prices[best] > room:
        return _cut(text[slice(*spans[best])], worth, room)
    runs = []
    for first in range(best + 1):
        last = first + bisect_right(list(accumulate(prices[first:])), room) - 1
        if last >= best:
            runs.append((round(math.fsum(values[first : last + 1]), 9), first, last))
    _, first, last = max(runs)
    before, after = "… " if first else "", " …" if last < len(spans) - 1 else ""
    return before + text[spans[first][0] : spans[last][1]].strip() + after


def _cut(text: str, worth: Worth, room: int) -> str:
    """A part of a sentence around the first word of the question, of at most so many tokens."""
    characters = max(room * 4, 8)
    cut = clipped(text, worth, characters)
    while count_tokens(cut) > max(room, 4) and characters > 8:
        characters = characters * 3 // 4
        cut = clipped(text, worth, characters)
    return cut


def value_of(said: str, worth: Worth, literals: Sequence[str] = ()) -> float:
    """What a sentence holds of the question's worth; a literal counts more than all words."""
    value = math.fsum(worth.get(term, 0.0) for term in set(terms(said)))
    if literals:
        folded = said.casefold()
        value += (sum(worth.values()) + 1.0) * sum(one.casefold() in folded for one in literals)
    return value


def best_sentence(text: str, worth: Worth, literals: Sequence[str], characters: int) -> str:
    """The sentence that holds most of the question's worth, on one line, with who says it."""
    spans = sentences(text)
    values = [
        value_of(text[start:end], worth, literals) * (0.5 + 0.5 * substance(text[start:end]))
        for start, end in spans
    ]
    whole = sum(worth.values()) / 2
    held = [at for at, value in enumerate(values) if literals and value > whole]
    telling = [at for at, span in enumerate(spans) if says_something(text[slice(*span)])]
    among = held or telling or range(len(spans))
    if not among:
        return ""
    said = _with_following(text, spans, max(among, key=lambda at: (values[at], -at)), characters)
    return clipped(one_line(said, 4_000), worth, characters)


def _with_following(text: str, spans: Sequence[tuple[int, int]], at: int, most: int) -> str:
    """A sentence with who says it, and with those behind it: of a question the answer, of a paragraph
    as many as fit into `most` characters ("I got to another country. It was Norway.")."""
    start, end = spans[at]
    asks = bool(speaker(text, start)) and text[start:end].rstrip().endswith(("?", "？"))
    for after, until in spans[at + 1 :]:
        if not asks and (until - start > most or "\n" in text[end:after]):
            break
        end, asks = until, False
    return with_speaker(text, start, text[start:end])


def speaker(text: str, start: int) -> str:
    """`Ana: ` for a sentence of Ana's turn in a conversation; "" where there are no two turns."""
    who = SPEAKER.match(text, text.rfind("\n", 0, start) + 1)
    if who is None or len(who[0].split()) > 3:
        return ""
    return f"{who[0].strip()} " if sum(map(bool, map(SPEAKER.match, text.splitlines()))) > 1 else ""


def with_speaker(text: str, start: int, said: str) -> str:
    who = speaker(text, start)
    return said if said.startswith(who) else who + said


def clipped(text: str, worth: Worth, characters: int) -> str:
    """At most so many characters, where the words of the question are worth most together."""
    if len(text) <= characters:
        return text
    folded = text.casefold()
    places = sorted(
        (found.start(), term)
        for term in worth
        if len(term) > 1
        for found in re.finditer(re.escape(term), folded)
    )

    def value(first: int) -> float:
        end = first + characters * 2 // 3
        return math.fsum(worth[term] for term in {t for at, t in places if first <= at < end})

    first = max((at for at, _ in places), key=lambda at: (value(at), -at), default=0)
    start = max(first - characters // 3, 0)
    if start:
        space = text.find(" ", start, start + 30)
        start = space + 1 if space > 0 else start
    end = start + characters
    if end < len(text):
        space = text.rfind(" ", start + characters // 2, end)
        end = space if space > 0 else end
    return ("…" if start else "") + text[start:end].strip() + ("…" if end < len(text) else "")


# ---- sentences from many places --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Line:
    """One sentence with the hit that it stands in, and its share of the best one's worth."""

    hit: Hit
    text: str
    value: float


def lines(sources: Sequence[Source]) -> list[Line]:
    """One sentence from each of the places that have something to say on the question."""
    names = [one for source in sources for one in source.found.names]
    hits = _hits(sources, _merged(sources)[:LINES_READ])
    kept = {source.corpus: source.filters for source in sources}
    hits = [of_then(hit, kept.get(hit.corpus)) for hit in hits]
    return best_lines(hits, _worth(sources), names, sources[0].found.query if sources else "")


def of_then(hit: Hit, kept: Filters | None) -> Hit:
    """The passage with only those sentences that speak of the days of a filter on `when`."""
    if kept is None or not kept.of("when"):
        return hit
    said = []
    for start, end in sentences(hit.raw):
        at, until = hit.times.start + start, hit.times.start + end
        days = [(one.start, one.end) for one in hit.times.when if at <= one.char_start < until]
        day = hit.times.said_at(at)
        if kept.speaks_of(days or [(day, day)] * bool(day), day):
            said.append(with_speaker(hit.raw, start, hit.raw[start:end]))
    return replace(hit, body=readable("\n".join(said)))


def things_of(query: str, worth: Worth) -> list[Worth]:
    """The worth of the terms of each thing that a question lists ("injury, hospital, doctor"), with
    those before a colon for each ("primes: records, proofs"); of all of them where it lists none."""
    subject, colon, rest = _INTRO.sub(":", query).rpartition(":")
    if not colon or LISTED.search(subject):  # "rugby, tennis: who won"
        subject, rest = "", _INTRO.sub(",", query)
    first, comma, last = rest.rpartition(",")
    if comma and not query.endswith(("?", "？")):  # festivals, tours and concerts
        rest = f"{first},{_AND.sub(',', last)}"
    parts = LISTED.split(rest)
    of_each = {one: worth[one] for one in query_terms(subject) if one in worth}
    own = [{one: worth[one] for one in query_terms(part) if one in worth} for part in parts]
    listed = len(parts) > 2 - bool(subject) or any(mark in query for mark in ";；")
    return ([of_each | one for one in own if one] if listed else []) or [worth or {"": 1.0}]


def share_of(said: str, things: Sequence[Worth]) -> float:
    """What a sentence holds of one of these things, 0 to 1, without what it has in brackets."""
    said = _ASIDE.sub(" ", said)
    return max(value_of(said, one) / sum(one.values()) for one in things)


def best_lines(
    hits: Sequence[Hit], worth: Worth, names: Sequence[Mention] = (), query: str = ""
) -> list[Line]:
    """The sentences that are relevant, best first; none twice, and two of a document where there
    are many documents. Where `query` lists things, one of them is enough."""
    things = things_of(query, without_people(worth, names))
    people = [one.form.casefold().split()[0] for one in names if one.type == "person"]
    read = hits[:LINES_READ]
    named = [hit for hit in read if names_all(hit, names)]
    # each of several people, as in a list of names
    if len(people) > 1 and (len(named) < FEW or len(things) > 1):
        each_name = [[one] for one in names if one.type == "person"]
        named = [hit for hit in read if any(names_all(hit, one) for one in each_name)]
    best = (_best_line(hit, things, people) for hit in named)
    found = sorted((one for one in best if one is not None), key=lambda one: -one.value)
    top = found[0].value if found else 0.0
    found = [
        replace(one, value=one.value / top)
        for n, one in enumerate(found)
        if one.value >= (LEAST_WORTH if n >= SOME_LINES else LEAST_WORTH / 2) * top
    ]
    each = max(2, MOST_LINES // len({one.hit.document for one in found} or "1"))
    kept: dict[str, Line] = {}
    of_document = Counter[str]()
    for one in sorted(found, key=lambda one: (-round(one.value, 6), -one.hit.score)):
        key = " ".join(terms(one.text))
        if key not in kept and of_document[one.hit.document] < each:
            of_document[one.hit.document] += 1
            kept[key] = one
    return list(kept.values())[:MOST_LINES]


def without_people(worth: Worth, names: Sequence[Mention]) -> dict[str, float]:
    """The worth of the terms that do not name a person; of all where none is left."""
    own = {term for one in names if one.type == "person" for term in query_terms(one.form)}
    own |= {part for term in worth if "-" in term for part in term.split("-")}  # counted with it
    return {term: value for term, value in worth.items() if term not in own} or dict(worth)


def names_all(hit: Hit, names: Sequence[Mention]) -> bool:
    """Does the passage, or its title, name all people among these? One word of a name is enough, the
    last or the first."""
    text = f"{hit.citation.title}\n{hit.body}".casefold()
    people = [one.form.casefold().split() for one in names if one.type == "person"]
    return all(not words or words[-1] in text or words[0] in text for words in people)


def shortened(line: Line, worth: Worth = {}) -> Line:  # noqa: B006 - never changed
    """The line with at most LINE_LENGTH characters of its sentence."""
    said = line.text
    text = said if len(said) <= LINE_LENGTH else clipped(one_line(said, 4_000), worth, LINE_LENGTH)
    return replace(line, text=one_line(text, LINE_LENGTH + 2))


def facts(said: str) -> int:
    """The words of a sentence behind the first that are figures or begin with a capital, without
    what it cites."""
    words = _CITED.sub("", said).split()[1:]
    return sum(word[:1].isupper() or any(map(str.isdigit, word)) for word in words)


def figures(said: str) -> int:
    """The words with a digit, without what the sentence cites."""
    return sum(any(map(str.isdigit, word)) for word in _CITED.sub("", said).split())


def _best_line(hit: Hit, things: Sequence[Worth], people: Sequence[str]) -> Line | None:
    """The sentence of a passage that says most on one thing of the question, by its words and by what
    only it knows (names, figures). What others than `people` say without naming them counts less."""
    best, chosen = 0.0, -1
    spans = sentences(hit.body)
    for at, (start, end) in enumerate(spans):
        said = hit.body[start:end]
        value = share_of(said, things)
        if value <= 0 or not says_something(said):
            continue
        value *= (1 + 0.1 * min(facts(said), 4) / 4) * (0.5 + 0.5 * substance(said))
        if people and (who := speaker(hit.body, start)):
            value *= 1.0 if any(one in f"{who}{said}".casefold() for one in people) else OTHERS
        if value > best + 1e-9:
            best, chosen = value, at
    if chosen < 0:
        return None
    said = _with_following(hit.body, spans, chosen, SHORT)
    worth = {term: value for one in things for term, value in one.items()}
    return shortened(Line(hit, said, best * (0.5 + 0.5 * hit.score)), worth)


def show_lines(
    page: Page, found: Sequence[Line], by_time: bool = False, head: str = "", indent: str = ""
) -> int:
    """Add the lines to the page, in order of worth or of time, the first one under `head`: how many
    had room. The first line of a page is cut to its room."""
    order = sorted(found, key=lambda one: _when(one.hit)) if by_time else found
    last = ""
    for added, one in enumerate(order):
        hit = one.hit
        title = "" if hit.document == last else f"{hit.name(one.text)}:"
        above = f"{head}\n" if head and not added else ""
        before = _joined(f"{above}{indent}- [{hit.id}]", hit.date, title)
        note = hit.times.note(one.text, date=hit.date)
        if not page.add(_joined(before, one.text, note, hit.why()), hit.cited()):
            room = page.room - count_tokens(before) - 4
            short = "" if page.citations or room < PART else _cut(one.text, {}, room)
            return added + bool(short and page.add(_joined(before, short), hit.cited()))
        last = hit.document
    return len(order)
