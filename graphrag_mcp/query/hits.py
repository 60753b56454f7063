"""Hits as an agent reads them: strong ones in full, weaker ones as one line.

Long passages are cut to the sentences around the match, and passages that repeat another are named
with it. For questions whose answer is spread over a corpus, a line from each place that has
something to say; where the question names a person, only from places that name the person."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from graphrag_mcp.packing.budget import CHARACTERS, citation, one_line
from graphrag_mcp.query import context, times
from graphrag_mcp.query.times import stated_date, validity
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.prose import SPEAKER, language_of, readable, says_something, substance
from graphrag_mcp.text.terms import query_terms, sentences, terms
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.trust.fencing import quoted
from graphrag_mcp.types import Citation, Mention, SearchResult

MOST_LINES = 40  # places
LINES_READ = 160  # hits that are looked at
LEAST_WORTH = 0.35  # of the worth of the best sentence
LEAST_OF_PART = 0.33  # the same, of the best on one part of a question that is a list
LINE_LENGTH = 260  # characters of a sentence
BEGINS = 48  # characters of the beginning of a document without a title
OTHERS = 0.6  # of the worth of a sentence that another person says in a conversation


_COMMA = re.compile(r"[,;，、；]")
_BETWEEN = re.compile(r"[,;，、；]|\b(?:and|or|und|oder|et|ou|y|o)\b")


@dataclass(frozen=True, slots=True)
class Line:
    """One sentence with the hit that it stands in, and its share of the best one's worth."""

    hit: Hit
    text: str
    value: float


def lines(
    hits: Sequence[Hit],
    worth: Worth,
    names: Sequence[Mention] = (),
    parts: Sequence[frozenset[str]] = (),
) -> list[Line]:
    """The sentences that are relevant, best first; none twice, and two of a document where there are
    many documents. `parts` are the terms of each part
    of a question that is a list: a sentence is compared with the best one on the same part."""
    found = []
    for part in parts or (frozenset(worth),):
        own = [one for one in names if not parts or not part.isdisjoint(query_terms(one.form))]
        asked = without_people({term: worth[term] for term in part & worth.keys()}, own)
        people = [one.form.casefold().split()[0] for one in own if one.type == "person"]
        best = [_best(hit, asked, people) for hit in hits[:LINES_READ] if names_all(hit, own)]
        said = [one for one in best if one is not None]
        if parts:  # "market share" of anything has these words: the passage must be on the whole
            said = [replace(one, value=one.value * math.sqrt(one.hit.score)) for one in said]
        top = max((one.value for one in said), default=0.0)
        least = LEAST_WORTH if not parts else LEAST_OF_PART
        found += [replace(one, value=one.value / top) for one in said if one.value >= least * top]
    kept: dict[str, Line] = {}
    of_document = Counter[str]()
    each = max(2, MOST_LINES // len({one.hit.part_of for one in found} or "1"))
    for one in sorted(found, key=lambda one: (-round(one.value, 6), -one.hit.score)):
        if len(kept) == MOST_LINES:
            break
        key = " ".join(terms(one.text))
        if key not in kept and of_document[one.hit.part_of] < each:
            of_document[one.hit.part_of] += 1
            kept[key] = one
    return list(kept.values())


def parts_of(query: str) -> list[frozenset[str]]:
    """The terms of each part of a question that is a list: "house prices, retail sales and interest
    rates". A part of one word belongs to the part before it. Nothing for a sentence."""
    if not _COMMA.search(query) or re.search(r"[?？]", query):
        return []
    parts: list[set[str]] = []
    for said in _BETWEEN.split(query):
        found = set(query_terms(said))
        if parts and (len(found) < 2 or len(parts[-1]) < 2):
            parts[-1] |= found
        elif found:
            parts.append(found)
    return [frozenset(one) for one in parts] if len(parts) > 1 else []


def without_people(worth: Worth, names: Sequence[Mention]) -> dict[str, float]:
    """The worth of the terms that do not name a person; of all where none is left."""
    own = {term for one in names if one.type == "person" for term in query_terms(one.form)}
    own |= {part for term in worth if "-" in term for part in term.split("-")}  # counted with it
    return {term: value for term, value in worth.items() if term not in own} or dict(worth)


def names_all(hit: Hit, names: Sequence[Mention]) -> bool:
    """Does the passage, or its title, name all people among these? One word of a name is enough, the
    last or the first."""
    text = f"{hit.title}\n{hit.body}".casefold()
    people = [one.form.casefold().split() for one in names if one.type == "person"]
    return all(not words or words[-1] in text or words[0] in text for words in people)


def shortened(line: Line, worth: Worth = {}) -> Line:  # noqa: B006 - never changed
    """The line with at most LINE_LENGTH characters of its sentence."""
    said = line.text
    text = said if len(said) <= LINE_LENGTH else clipped(one_line(said, 4_000), worth, LINE_LENGTH)
    return replace(line, text=one_line(text, LINE_LENGTH + 2))


def _best(hit: Hit, worth: Worth, people: Sequence[str]) -> Line | None:
    """The sentence of a passage that says most on the question, by its words and by what only it knows
    (names, figures). In a conversation a question comes with its answer, and what others than
    `people` say without naming them counts less."""
    best, chosen = 0.0, -1
    whole = sum(worth.values()) or 1.0
    spans = sentences(hit.body)
    for at, (start, end) in enumerate(spans):
        said = hit.body[start:end]
        value = math.fsum(worth.get(term, 0.0) for term in set(terms(said))) / whole
        if value <= 0 or not says_something(said):
            continue
        words = said.split()
        facts = sum(any(map(str.isdigit, word)) or word[:1].isupper() for word in words[1:])
        value *= (1 + 0.1 * min(facts, 4) / 4) * (0.5 + 0.5 * substance(said))
        if people and (who := speaker(hit.body, start)):
            value *= 1.0 if any(one in f"{who}{said}".casefold() for one in people) else OTHERS
        if value > best + 1e-9:
            best, chosen = value, at
    if chosen < 0:
        return None
    start, end = spans[chosen]
    who, said = speaker(hit.body, start), hit.body[start:end]
    if who and said.rstrip().endswith(("?", "？")) and chosen + 1 < len(spans):
        said = hit.body[start : spans[chosen + 1][1]]
    said = said if said.startswith(who) else who + said
    return shortened(Line(hit, said, best * (0.5 + 0.5 * hit.score)), worth)


def show_lines(page: Page, found: Sequence[Line], by_time: bool = False, head: str = "") -> int:
    """Add the lines to the page, in order of worth or of time, the first one under `head`: how many
    had room."""
    order = sorted(found, key=_when) if by_time else list(found)
    last = ""
    added = 0
    for one in order:
        hit = one.hit
        title = "" if hit.part_of == last else f"{hit.name(one.text)}: "
        date = f"{hit.date} " if hit.date else ""
        above = f"{head}\n" if head and not added else ""
        said = [hit.times(one.text), f"(why: {hit.why})" if hit.why else ""]
        text = " ".join([f"- [{hit.id}] {date}{title}{one.text}", *filter(None, said)])
        if not page.add(f"{above}{text}", hit.sources()):
            break
        last = hit.part_of
        added += 1
    return added


def _when(line: Line) -> tuple[str, str, int]:
    """Dated ones first, oldest first; within a document in the order of the text."""
    return line.hit.date or "9999", line.hit.uri, line.hit.span[0]


# Shares of the best score. Of the passages at 0.6 and above, 3.7 (HotpotQA), 6 (Chroma) and 2
# (CMRC) are shown on average, with 90 %, 100 % and 100 % of the documents that answer; between 0.3
# and 0.6 lie nearly all of the others.
STRONG, WEAK = 0.6, 0.3
LEAST_ROOM = 150  # tokens for a part of a passage; with less a line says what it is about
LINE = 160  # characters of the sentence of a weak hit
CODE_LINES = 5  # of a passage of source code that hold a literal
MOST_WEAK = 3  # eight took a seventh of the characters and held none of the evidence
ALIKE = 0.8  # share of common shingles from which two passages say the same
SHINGLE = 5  # words of a shingle
JOINED = 2_400  # characters up to which parts that follow each other are shown as one
HEAD = 60  # tokens that a head may take
OVERHEAD = 50  # tokens of the fence around what documents say and of the line that leads on
EACH = 220  # tokens of room for which one more hit is shown in full

_DEFINING = r"\b(?:def|class|func|fun|fn|function|interface|struct|enum|trait|type|module)\s+"
_NUMBER = re.compile(r"\n\s{0,3}\d{1,3}[.)]\Z")  # of a list item whose text is left out

Worth = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Source:
    """What a search found in one corpus: `scored` are (passage id, score), best first; `worth` of the
    terms of the question; its names, and the ids that entities of these names have. `corpus` stands
    before ids."""

    snapshot: Snapshot
    scored: Sequence[tuple[str, float]]
    worth: Mapping[str, float]
    corpus: str = ""
    names: Sequence[Mention] = ()
    named: Sequence[str] = ()
    why: Callable[[Sequence[str]], Mapping[str, str]] | None = None
    parts: Sequence[frozenset[str]] = ()  # terms of each part of a question that is a list
    near: Collection[
        str
    ] = ()  # terms of the question for which others of the corpus were looked for


@dataclass(slots=True)
class Hit:
    """One passage, or several that follow each other: `body` is the readable text of `raw`, which
    is characters `span` of its document; `also` are the ids of passages that repeat it."""

    id: str
    score: float
    title: str
    uri: str
    date: str
    raw: str
    body: str
    citation: Citation
    span: tuple[int, int]
    part_of: str = ""  # the document's content id
    cited: list[Citation] = field(default_factory=list)  # of all parts, in the order of the text
    also: list[str] = field(default_factory=list)
    whole: bool = False  # the whole document
    why: str = ""
    passage: str = ""  # content id
    corpus: str = ""  # "" where only one is searched
    validity: str = ""  # what the document says of its own validity
    spoken: list[times.Times] = field(default_factory=list)  # of each of `cited`
    begins: str = ""  # how a document without a title begins

    def head(self) -> str:
        """`[t33.2] Title (uri:12-40) 2024-05-03`, with the title only where it says more than the
        file's name."""
        cited = self.cited or [self.citation]
        uri = one_line(self.uri, 300)
        title = one_line(self.title, 120)
        file = uri.rpartition("/")[2].casefold()
        if title.casefold() in (file, file.rpartition(".")[0]):
            title = ""
        first, last = cited[0].line_start, max(one.line_end for one in cited)
        place = f"({uri}:{first}-{last})" if first else f"({uri})"
        said = [*(f"[{one.id}]" for one in cited), title, place, self.date]
        said += [self.validity, "whole document" if self.whole else ""]
        said.append(f"(also {', '.join(self.also[:4])})" if self.also else "")
        return " ".join(filter(None, said))

    def times(self, shown: str) -> str:
        """What the relative expressions in the part that is shown mean; "" for none."""
        words = {when: said for part in self.spoken for when, said in part.words().items()}
        return times.note(list(words), words, shown)

    def sources(self) -> Iterator[Citation]:
        """The citations of what is shown, with the days that its text speaks of."""
        for one, part in zip(self.cited, self.spoken, strict=True):
            yield one.model_copy(update={"when": part.cited()})

    def name(self, said: str = "") -> str:
        """The title, or the name of the file, on one line; with how a document without a title
        begins, unless `said` begins so."""
        name = one_line(self.title or self.uri.rpartition("/")[2], 60)
        known = not self.begins or said.startswith(self.begins[: BEGINS // 2])
        return name if known else f"{name} ({self.begins})"


@dataclass(slots=True)
class Page:
    """One result that is being filled; several questions may share it, so nothing is shown twice."""

    room: int
    characters: int = CHARACTERS - 3_000
    seen: dict[str, frozenset[int]] = field(default_factory=dict)  # shingles by id
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


def read(
    snapshot: Snapshot,
    scored: Sequence[tuple[str, float]],
    corpus: str = "",
    why: Mapping[str, str] | None = None,
) -> list[tuple[str, Hit]]:
    """(content id, hit) of passages, in this order; damaged rows are left out. `corpus` is put before the ids."""
    score = dict(scored)
    found = snapshot.served("passages", list(score), context.PASSAGE)
    documents = list(dict.fromkeys(row["document_id"] for row in found))
    names = ["id", "n", "uri", "metadata"]
    facts = {
        row["id"]: row for row in snapshot.by_key("documents", documents, "id", names).to_pylist()
    }
    units = Counter(
        snapshot.by_key("text_units", documents, "document_id", ["document_id"])[
            "document_id"
        ].to_pylist()
    )
    prefix = f"{corpus}/" if corpus else ""
    spoken, valid = times.read(snapshot, found), validity(snapshot)
    hits = []
    for row in found:
        document = facts.get(row["document_id"], {})
        alias = f"{prefix}d{document['n']}" if document else row["document_id"]
        cited, time = citation(row, score[row["id"]], alias), spoken[row["id"]]
        cited = cited.model_copy(
            update={
                "id": prefix + cited.id,
                "why": (why or {}).get(row["id"], ""),
                "said": (*time.said, "")[0],
            }
        )
        hit = Hit(
            cited.id,
            score[row["id"]],
            row["title"],
            prefix + row["uri"],
            cited.said or (stated_date(document) if document else ""),
            row["text"],
            _body(row["text"], row["title"], row["uri"]),
            cited,
            (row["char_start"], row["char_end"]),
            row["document_id"],
            [cited],
            whole=row["parts"] <= 1 and units[row["document_id"]] == 1,
            why=cited.why,
            passage=row["id"],
            corpus=corpus,
            validity=valid.get(row["document_id"], ""),
            spoken=[time],
        )
        hits.append((row["id"], hit))
    first = beginnings(snapshot, [hit for _, hit in hits if not language_of(hit.uri)])
    for _, hit in hits:
        hit.begins = first.get(hit.part_of, "")
    return hits


def beginnings(snapshot: Snapshot, hits: Sequence[Hit]) -> dict[str, str]:
    """The first words of documents whose title is only the name of their file, by content id: a
    sentence from the middle of a text seldom says what the text is about."""
    untitled = {hit.part_of for hit in hits if hit.title in ("", hit.uri.rpartition("/")[2])}
    if not untitled:
        return {}
    listed = ", ".join(f"'{id}'" for id in sorted(untitled))
    where = f"document_id IN ({listed}) AND position = 0"
    rows = snapshot.rows("passages", where, ["document_id", "text"]).to_pylist()
    found = {}
    for row in rows:
        text = readable(row["text"])
        start, end = (sentences(text) or [(0, 0)])[0]
        if says_something(text[start:end]):
            found[row["document_id"]] = clipped(one_line(text[start:end], 4_000), {}, BEGINS)
    return found


def _body(raw: str, title: str, uri: str) -> str:
    """The readable text, without a first line that only repeats the title; source code as it is."""
    if language_of(uri):
        return raw.strip("\n")
    text = readable(raw)
    first, newline, rest = text.partition("\n")
    if newline and first.lstrip("# ").strip().casefold() == title.strip().casefold():
        return rest.strip()
    return text


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


# ---- passages ------------------------------------------------------------------------------------


def show(
    page: Page,
    hits: Sequence[Hit],
    worth: Worth,
    *,
    most: int = 0,
    weak: int = MOST_WEAK,
    generous: bool = False,
    floor: float = 0.0,
    literals: Sequence[str] = (),
) -> int:
    """Add hits to the page, best first: how many of them were shown or named.

    `most` limits those in full (0: as many as the room allows, -1: none). `generous`: weaker hits are shown in
    full too, and long passages whole, as far as there is room. `literals` are what must be seen in the
    sentences that are shown. At least one hit is shown, however little room there is."""
    if not hits:
        return 0
    top = hits[0].score or 1.0
    most = most or (len(hits) if generous else max(page.room // EACH, 1))
    floor = floor or WEAK * top
    kept = _without_repeats(page, hits, floor)
    full = floor if generous else STRONG * top
    strong = [hit for hit in kept if hit.score >= full][: max(most, 0)]
    others = len(kept) - len(strong)
    kept_for_lines = min(page.room // 6, 40 * min(weak, others))
    shown = _in_full(page, strong, worth, literals, kept_for_lines)
    for hit in kept[shown : shown + weak]:
        if not page.add(_line(hit, worth, literals), hit.sources()):
            break
        shown += 1
    if shown < len(kept):
        return next(at for at, hit in enumerate(hits) if hit is kept[shown])
    last = next((at for at, hit in enumerate(hits) if hit.score < floor and at), len(hits))
    return max(last, 1)


def show_every(page: Page, hits: Sequence[Hit], worth: Worth, literals: Sequence[str]) -> int:
    """Add all hits of an exact search, as far as there is room: how many. The best of them in full, in
    half of the room; the others, and source code that does not define it, as lines."""
    kept = _without_repeats(page, hits, 0.0)
    strong = [hit for hit in kept if hit.score >= STRONG * hits[0].score]
    strong = [hit for hit in strong if not language_of(hit.uri) or defines(hit.raw, literals)]
    _in_full(page, strong, worth, literals, page.room // 2)
    for hit in kept:
        told = hit.id in page.full or page.add(_line(hit, worth, literals), hit.sources())
        if not told and page.citations:
            return hits.index(hit)
    return len(hits)


def defines(code: str, names: Sequence[str]) -> bool:
    """Does a passage define a symbol of this name? By the words of fourteen languages."""
    said = "|".join(map(re.escape, names))
    return bool(said) and re.search(rf"{_DEFINING}(?:{said})\b", code) is not None


def _without_repeats(page: Page, hits: Sequence[Hit], floor: float) -> list[Hit]:
    """Relevant hits, without those that repeat another, which are named with it."""
    kept: dict[str, Hit] = {}
    for at, hit in enumerate(hits):
        if hit.score < floor and at:
            break
        shingles = _shingles(hit.body)
        if hit.id in page.full:
            continue
        others = ((id, other) for id, other in page.seen.items() if id != hit.id)
        same = next((id for id, other in others if _alike(shingles, other)), "")
        if not same:
            page.seen[hit.id] = shingles
            kept[hit.id] = hit
        elif same in kept:
            kept[same].also.append(hit.id)
    return list(kept.values())


def _in_full(
    page: Page, strong: Sequence[Hit], worth: Worth, literals: Sequence[str], kept_for_lines: int
) -> int:
    """Add as many hits as have room, whole ones where it lasts, parts that follow each other as one
    block: how many."""
    room = page.room - kept_for_lines
    chosen: list[tuple[Hit, str]] = []
    for hit in strong:
        body = window(hit.body, worth, room - HEAD, literals)
        price = count_tokens(_block(hit, body)) + 2
        part = body != hit.body and bool(chosen) and room < LEAST_ROOM
        if price > room or room < HEAD or part:
            break
        chosen.append((hit, body))
        room -= price
    shown = len(chosen)
    if not chosen and strong and not page.citations:  # the first one, in whatever room there is
        head = f"[{strong[0].id}]\n"
        body = window(strong[0].body, worth, page.room - count_tokens(head) - 4, literals)
        return int(page.add(head + quoted(body), strong[0].sources()))
    blocks: list[tuple[Hit, str]] = []
    for hit, body in chosen:
        whole = body == hit.body
        beside = next(
            (one for one, text in blocks if whole and text == one.body and _beside(one, hit)), None
        )
        if beside is None:
            blocks.append((hit, body))
            continue
        at = next(number for number, (one, _) in enumerate(blocks) if one is beside)
        _join(beside, hit)
        blocks[at] = beside, beside.body
    for hit, body in blocks:
        page.add(_block(hit, body), hit.sources())
    page.full.update(hit.id for hit, _ in chosen)
    return shown


def _beside(one: Hit, other: Hit) -> bool:
    near = one.span[0] <= other.span[1] + 3 and other.span[0] <= one.span[1] + 3
    length = max(one.span[1], other.span[1]) - min(one.span[0], other.span[0])
    same = one.part_of == other.part_of and one.citation.document_id == other.citation.document_id
    return same and near and length <= JOINED


def _join(one: Hit, other: Hit) -> None:
    """Add a neighbouring part to a hit, in the order of the text; what both hold once."""
    first, second = (one, other) if one.span <= other.span else (other, one)
    shared = first.span[1] - second.span[0]
    rest = second.raw[max(shared, 0) :] if second.span[1] > first.span[1] else ""
    one.raw = first.raw + ("\n" if shared < 0 else "") + rest
    one.body = _body(one.raw, one.title, one.uri)
    one.span = first.span[0], max(first.span[1], second.span[1])
    one.why = "; ".join(filter(None, [one.why, other.why]))
    parts = [*zip(one.cited, one.spoken, strict=True), *zip(other.cited, other.spoken, strict=True)]
    parts.sort(key=lambda part: part[0].char_start)
    one.cited, one.spoken = [cited for cited, _ in parts], [part for _, part in parts]


def _block(hit: Hit, body: str) -> str:
    said = [hit.times(body), f"(why: {hit.why})" if hit.why else ""]
    return "\n".join([hit.head(), quoted(body), *filter(None, said)]) + "\n"


def _line(hit: Hit, worth: Worth, literals: Sequence[str]) -> str:
    """A weak hit: id, title and its best sentence for the question; of source code, its line."""
    if language_of(hit.uri):
        return "\n".join(code_lines(hit, worth, literals))
    said = best_sentence(hit.body, worth, literals, LINE)
    name = hit.name(said)
    name = "" if said.casefold().startswith(name.casefold()) else f"{name}: "
    date = f"{hit.date} " if hit.date else ""
    return " ".join(
        filter(None, [f"- [{hit.id}] {date}{name}{said}", hit.times(said), hit.validity])
    )


def in_brief(hit: Hit, literals: Sequence[str]) -> str:
    """`[t12.3] sentence`: of what holds a literal; of source code, `[t12.3] :40: line`."""
    if language_of(hit.uri):
        return code_lines(hit, {}, literals)[0].removeprefix("- ").replace(f"{hit.uri}:", ":", 1)
    return f"[{hit.id}] {best_sentence(hit.body, {}, literals, LINE)}"


def code_lines(hit: Hit, worth: Worth, literals: Sequence[str]) -> list[str]:
    """`- [t12.3] path/file.py:40: line` for each line that holds a literal, or for the best one; of
    several lines the id stands before the first."""
    lines = hit.raw.splitlines()
    at = [n for n, line in enumerate(lines) if any(one in line for one in literals)]
    if not at:
        small = [one.casefold() for one in literals]
        at = [n for n, line in enumerate(lines) if any(one in line.casefold() for one in small)]
    if not at:
        values = [math.fsum(worth.get(term, 0.0) for term in set(terms(line))) for line in lines]
        at = [max(range(len(values)), key=lambda number: (values[number], -number), default=0)]
    first, uri = hit.citation.line_start or 1, one_line(hit.uri, 300)
    said = [
        f"{uri}:{first + n}: {one_line(lines[n] if lines else '', LINE)}" for n in at[:CODE_LINES]
    ]
    more = [f"  {len(at) - CODE_LINES} more lines in this passage"] if len(at) > CODE_LINES else []
    return [f"- [{hit.id}] {said[0]}", *(f"  {one}" for one in said[1:]), *more]


# ---- sentences -----------------------------------------------------------------------------------


def window(text: str, worth: Worth, room: int, literals: Sequence[str] = ()) -> str:
    """The sentences around the match, whole ones, at most so many tokens; the whole text if it fits.

    Grows from the best sentence to the side that is worth more; a gap to another sentence that is
    worth much is shown as "…"."""
    if count_tokens(text) <= room:
        return text
    spans = sentences(text)
    if not spans:
        return ""
    prices = [count_tokens(text[start:end]) + 1 for start, end in spans]
    values = _values(text, spans, worth, literals)
    chosen: set[int] = set()
    left = room
    for at in sorted(range(len(spans)), key=lambda at: (-values[at], at)):
        if chosen and (values[at] <= 0 or values[at] < 0.5 * max(values)):
            break
        if prices[at] <= left:
            chosen.add(at)
            left -= prices[at]
        elif not chosen:
            return _cut(text[slice(*spans[at])], worth, room)
    grown = True
    while grown and left > 0:  # the neighbours of what was chosen: behind first, then before
        grown = False
        for at in sorted(chosen):
            for near in (at + 1, at - 1):
                if 0 <= near < len(spans) and near not in chosen and prices[near] <= left:
                    chosen.add(near)
                    left -= prices[near]
                    grown = True
    return _shown_spans(text, spans, sorted(chosen))


def _cut(text: str, worth: Worth, room: int) -> str:
    """A part of a sentence around the first word of the question, of at most so many tokens."""
    characters = max(room * 4, 8)
    cut = clipped(text, worth, characters)
    while count_tokens(cut) > max(room, 4) and characters > 8:
        characters = characters * 3 // 4
        cut = clipped(text, worth, characters)
    return cut


def _shown_spans(text: str, spans: Sequence[tuple[int, int]], chosen: Sequence[int]) -> str:
    """These sentences in the order of the text, with "…" for what is left out."""
    runs: list[list[int]] = []
    for at in chosen:
        if runs and at == runs[-1][1] + 1:
            runs[-1][1] = at
        else:
            runs.append([at, at])
    parts = [text[spans[first][0] : spans[last][1]].strip() for first, last in runs]
    parts = [_NUMBER.sub("", part) for part in parts]
    before = "… " if chosen[0] else ""
    after = " …" if chosen[-1] < len(spans) - 1 else ""
    return before + " … ".join(parts) + after


def _values(
    text: str, spans: Sequence[tuple[int, int]], worth: Worth, literals: Sequence[str]
) -> list[float]:
    """What each sentence holds of the question's worth; a literal counts more than all words."""
    values = []
    whole = sum(worth.values()) + 1.0
    for start, end in spans:
        said = text[start:end]
        value = math.fsum(worth.get(term, 0.0) for term in set(terms(said)))
        if literals:
            folded = said.casefold()
            value += whole * sum(one.casefold() in folded for one in literals)
        values.append(value)
    return values


def best_sentence(text: str, worth: Worth, literals: Sequence[str], characters: int) -> str:
    """The sentence that holds most of the question's worth, on one line, with who says it."""
    spans = sentences(text)
    values = _values(text, spans, worth, literals)
    held = [at for at, value in enumerate(values) if literals and value > sum(worth.values())]
    telling = [at for at in range(len(spans)) if says_something(text[slice(*spans[at])])]
    among = held or telling or range(len(spans))
    if not among:
        return ""
    start, end = spans[max(among, key=lambda at: (values[at], -at))]
    who, said = speaker(text, start), one_line(text[start:end], 4_000)
    return clipped(said if said.startswith(who) else who + said, worth, characters)


def speaker(text: str, start: int) -> str:
    """`Ana: ` for a sentence of Ana's turn in a conversation; "" where there are no two turns."""
    who = SPEAKER.match(text, text.rfind("\n", 0, start) + 1)
    if who is None or len(who[0].split()) > 3:
        return ""
    return f"{who[0].strip()} " if sum(map(bool, map(SPEAKER.match, text.splitlines()))) > 1 else ""


def clipped(text: str, worth: Worth, characters: int) -> str:
    """At most so many characters around the first word of the question."""
    if len(text) <= characters:
        return text
    folded = text.casefold()
    places = [place for term in worth if len(term) > 1 and (place := folded.find(term)) >= 0]
    start = max(min(places, default=0) - characters // 3, 0)
    if start:
        space = text.find(" ", start, start + 30)
        start = space + 1 if space > 0 else start
    end = start + characters
    if end < len(text):
        space = text.rfind(" ", start + characters // 2, end)
        end = space if space > 0 else end
    return ("…" if start else "") + text[start:end].strip() + ("…" if end < len(text) else "")


# ---- repeated passages ---------------------------------------------------------------------------


def _shingles(text: str) -> frozenset[int]:
    """Hashes of all runs of five words (of two characters where words have no blanks)."""
    words = [word for word in text.casefold().split() if any(map(str.isalnum, word))]
    if len(words) < len(text) / 30:
        words = [ch for ch in text if ch.isalnum()]
    runs = range(max(len(words) - SHINGLE + 1, 1))
    return frozenset(hash(tuple(words[at : at + SHINGLE])) for at in runs)


def _alike(one: frozenset[int], other: frozenset[int]) -> bool:
    small, large = sorted((len(one), len(other)))
    if small < ALIKE * large:
        return False
    both = len(one & other)
    return both >= ALIKE * (small + large - both)
