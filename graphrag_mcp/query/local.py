"""Local search: the passages that answer a question, with the entities, relationships, claims and
reports around them, in one corpus or several.

Takes snapshots, a question and a budget; gives a `SearchResult` whose citations stand in the order
of the ranking. An empty question gives an overview. Without `answer` it asks no model."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from graphrag_mcp.errors import BadInput
from graphrag_mcp.names.extract import extract
from graphrag_mcp.packing import budget as packing
from graphrag_mcp.packing.budget import clamp_budget, columns, finish, one_line, shorten
from graphrag_mcp.query import passages, rank
from graphrag_mcp.query.candidates import PROPOSED
from graphrag_mcp.query.context import ORDER
from graphrag_mcp.query.features import WITH_GRAPH, WORDS_ALONE
from graphrag_mcp.query.passages import DEFAULT_TOKENS, Form, Source
from graphrag_mcp.query.question import (
    MARKS,
    NAME_CHARACTERS,
    QUERY_CHARACTERS,
    in_addresses,
    no_form_occurs,
)
from graphrag_mcp.query.rank import Ranked, Ranking
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.terms import counted, is_cjk, query_terms, stop_word
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.types import SearchResult

if TYPE_CHECKING:
    from graphrag_mcp.llm.asker import Asker
    from graphrag_mcp.query.answer import AnswerOptions, Meter
    from graphrag_mcp.query.filters import Filters, Part

Corpus = tuple[str, Snapshot]  # its name, "" where one alone is searched

MODES = ("local", "fused", "hybrid", "basic")
BASIC = 10  # passages of the mode `basic`
ENTITIES, PAIR = 10, 0.5  # of the mode `hybrid`; worth of two in one passage, beside their own
FALL, LEAST_PASSAGES = 1 / 3, 3  # of the best score; passages that a model reads in any case
INCLUDED = 10  # passages that an `entity=` filter brings in beside the ranked ones
EMBED_SECONDS, LOAD_SECONDS = 5.0, 30.0  # for a question; a local model is loaded by the first one
QUERIES_TOKENS, MOST_QUERIES = 2_000, 12  # of several questions at once
ONE_ANSWER = "An answer is made of one corpus: ask with that corpus alone."


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a local or a global search.

    `keywords` are looked for beside the question, `history` adds names of earlier turns. Modes:
    local and fused are the whole ranking; basic leaves out the graph and ends after ten passages;
    hybrid leaves out plain text, so that passages count by the entities that they hold. `explain`
    says of each item why it is there. `seconds`: how long to wait for a model's answer, 0 for as
    long as it takes; a later page has no answer."""

    query: str
    max_tokens: int | None = None
    response_format: str = "concise"
    cursor: str = ""
    keywords: Sequence[str] = ()
    filters: Sequence[str] = ()
    min_rating: float = 0.0
    history: Sequence[str] = ()
    explain: bool = False
    mode: str = "local"
    level: int = -1  # of a global search: -1 goes down where it is relevant
    form: Form = Form()
    answer: bool = False
    response_type: str = ""
    instructions: str = ""
    general_knowledge: bool = False
    on_text: Callable[[str], None] | None = None
    seconds: float = 0.0

    def budget(self, default: int) -> tuple[int, str]:
        """The budget in tokens, and a sentence where it had to be changed."""
        return clamp_budget(default if self.max_tokens is None else self.max_tokens, default)

    def answer_options(self, seconds: float, history: str) -> AnswerOptions:
        """What is wanted of a model's answer."""
        from graphrag_mcp.query.answer import AnswerOptions

        form = self.response_type, self.instructions, self.general_knowledge
        return AnswerOptions(*form, self.on_text, seconds, history)


def local_search(
    snapshot: Snapshot, query: str, *, asker: Asker | None = None, **wishes: Any
) -> SearchResult:
    """Cited context for a question, and with `answer` what a model makes of it. `wishes` are the
    fields of a `Request`. `asker` embeds the question where it can, and is asked for no words
    without `answer`."""
    return search([("", snapshot)], Request(query, **wishes), {"": asker} if asker else {})


def search(
    corpora: Sequence[Corpus], request: Request, askers: Mapping[str, Asker] | None = None
) -> SearchResult:
    """The result of one corpus, or of several merged by score. Scores of one corpus are relative to
    its best passage, so among several they are weighed by how much of the question that holds."""
    if request.mode not in MODES:
        wrong = f"there is no search mode {request.mode[:40]!r}"
        raise BadInput(wrong, f"Use one of {', '.join(MODES)}")
    return _Search(corpora, replace(request, query=request.query.strip()), askers or {}).result()


class _Search:
    """One local search: what is asked of which corpora, and where its page begins."""

    def __init__(
        self, corpora: Sequence[Corpus], request: Request, askers: Mapping[str, Asker]
    ) -> None:
        self.request, self.askers, self.began = request, askers, time.monotonic()
        self.budget, note = request.budget(DEFAULT_TOKENS)
        self.corpora = with_text(corpora)
        self.parts: list[Part] = []
        self.found = begun(corpora, request.mode)
        self.found.hint = note
        self.meter: Meter | None = None
        block, self.keywords = read_history(request.history, request.query, self.budget)
        self.keywords = [*request.keywords, *self.keywords]
        self.answers = request.answer and bool(request.query) and len(corpora) == 1
        if self.answers and not self.keywords and (asker := askers.get(corpora[0][0])):
            self._ask_keywords(asker)
        form = request.form.breadth, request.form.sort, request.response_format, request.explain
        asked = f"{request.mode}|{request.query}|{form}|{self.keywords}"
        asked += f"|{[*request.filters, request.min_rating]}"
        self.offsets, self.page = paging(self.corpora, asked, request.cursor, len(ORDER))
        self.first = not request.cursor.strip()
        self.block = block if self.first else ""

    def result(self) -> SearchResult:
        if not self.corpora:
            return finish(without_text(self.found), self.budget)
        if self.offsets is None:
            return finish(stale(self.found), self.budget)
        request = self.request
        self.parts = narrowed(self.corpora, request.filters, request.min_rating)
        if not request.query and not any(kept and kept.first for _, _, kept in self.parts):
            from graphrag_mcp.query import topics

            self.found.mode = "overview"
            self.found.hint = joined(self.found.hint, topics.UNASKED)
            return topics.overview(self.found, self.parts, self.budget)
        sources, notes = found_in(self.parts, request, self.keywords, self.askers)
        useful = [one for one in sources if one.useful]
        self.found.hint = joined(self.found.hint, *notes)
        if request.answer and len(self.corpora) > 1:
            self.found.hint = joined(self.found.hint, ONE_ANSWER)
        if not useful:
            return self._not_found(sources)
        for kind in {kind for one in useful for kind in one.found.considered}:
            self.found.coverage[kind] = sum(one.found.considered.get(kind, 0) for one in useful)
        if empty := [one.corpus for one in sources if not one.useful]:
            self.found.hint = joined(self.found.hint, f"Nothing in {', '.join(empty)}.")
        if self.answers and self.first:
            return self._answered(useful[0])
        return self._shown(self.found, useful)

    def _ask_keywords(self, asker: Asker) -> None:
        """Keywords from a model, where the question has no name: else words alone decide."""
        from graphrag_mcp.query.answer import Meter, keywords_of

        self.meter = Meter(asker)
        query, folder = self.request.query, self.corpora[0][1].folder
        if not any(mention.strong for mention in extract(query[:NAME_CHARACTERS])):
            self.keywords = [*keywords_of(asker, query, folder, self.request.seconds)]

    def _shown(self, result: SearchResult, sources: Sequence[Source]) -> SearchResult:
        result.text = self.block
        offsets, request = self.offsets or (0,), self.request
        if request.response_format != "detailed":
            place = self.budget, offsets[0], self.page
            return passages.concise(result, sources, *place, request.form)
        from graphrag_mcp.query import sections

        listed = sections.merged(sources, request.mode, self.budget, offsets)

        def following(after: Sequence[int]) -> str:
            reached = dict(zip((section.name for section in listed), after, strict=True))
            return self.page([reached.get(name, 0) for name in ORDER])

        result = packing.compose(result, listed, self.budget, following, intro=self.block)
        result.candidates = [
            {"id": item.id, "in_context": any(head in result.text for head in heads)}
            for section in listed
            if section.name in ("Entities", "Sources")
            for item in section.items
            for heads in [(f"{item.id}|", f"[{item.id}]")]
        ]
        return result

    def _answered(self, source: Source) -> SearchResult:
        """The result with a model's answer from the detailed context; else what was found."""
        from graphrag_mcp.query import sections
        from graphrag_mcp.query.answer import READ_TOKENS, Question, with_answer

        request = self.request
        near = replace(source.found, passages=near_the_best(source.found.passages))
        on_topic = replace(source, found=near, explained=False)
        budget = max(self.budget, READ_TOKENS)
        read = sections.sections_of(on_topic, budget, mode=request.mode)
        read.sort(key=lambda section: ORDER.index(section.name))  # t1 is the best passage
        left = request.seconds
        if left:
            left = max(left - (time.monotonic() - self.began), 0.05)
        asker, options = self.askers.get(source.corpus), request.answer_options(left, self.block)
        asked = source.snapshot, request.query, asker, options
        question = Question(*asked, self.budget, self.page((0,)))
        plain = partial(self._shown, sources=[source])
        return with_answer(self.found, read, question, plain, self.meter)

    def _not_found(self, sources: Sequence[Source]) -> SearchResult:
        """An honest nothing: what was searched, the nearest names, another tool."""
        from graphrag_mcp.query.entities import named_list

        result, found = self.found, sources[0].found
        result.state, result.mode = "not_found", "local"
        result.coverage |= {"passages": 0}
        counters = [snapshot.manifest.counters for _, snapshot, _ in self.parts]
        kinds = ("passages", "entities")
        held = [counted(sum(one.get(kind, 0) for one in counters), kind) for kind in kinds]
        near = {} if len(counters) > 1 else self._near_names(sources[0])
        advice = "Try global_search for what the corpus is about."
        if near:
            advice = "Try a name from above with get_entity."
        if len(counters) > 1:
            result.text = f"Nothing on this was found in {len(counters)} corpora ({held[0]})."
            advice = "Ask with other words, or one corpus alone for nearest names."
        elif found.passages:
            absent = missing(sources[0].snapshot, found).partition(" Looked for")[0]
            said = f"Of this question only common words occur in corpus {result.corpus}."
            result.text = joined(absent, said)
            advice = "Ask without these names, or in words of the corpus."
        elif filters := sources[0].filters:
            result.text, advice = filters.nothing(sources[0].snapshot)
        else:
            searched = f"{' and '.join(held)} of corpus {result.corpus}"
            result.text = f"No word of this question occurs in the {searched}."
        if near:
            result.text += f"\nNearest names: {named_list(near.values())}."
        result.hint = joined(result.hint, advice)
        return finish(result, self.budget)

    def _near_names(self, source: Source) -> dict[str, dict[str, Any]]:
        """Entities with names like those of the question, or like its words; five at most."""
        from graphrag_mcp.query.entities import nearest_names

        query = self.request.query
        words = [word.lower().strip("?!.,") for word in query[:200].split()]
        names = [mention.form for mention in source.found.names]
        wanted = dict.fromkeys([*names, query[:100], *(one for one in words if not stop_word(one))])
        near: dict[str, dict[str, Any]] = {}
        for name in [name for name in wanted if len(name) > 1][:6]:
            near |= {row["id"]: row for row in nearest_names(source.snapshot, name, 3)}
        return dict(islice(near.items(), 5))


def several(
    corpora: Sequence[Corpus],
    queries: Sequence[str],
    *,
    max_tokens: int = QUERIES_TOKENS,
    filters: Sequence[str] = (),
    askers: Mapping[str, Asker] | None = None,
    form: Form,
) -> SearchResult:
    """Several questions in one result, of one corpus (named "") or several."""
    budget, note = clamp_budget(max_tokens, QUERIES_TOKENS)
    wanted = list(dict.fromkeys(one.strip() for one in queries if one.strip()))
    dropped = len(wanted) - MOST_QUERIES
    note += f" Only the first {MOST_QUERIES} queries were asked." if dropped > 0 else ""
    result = begun(corpora, "local")
    result.hint = note.strip()
    asked = []
    for query in wanted[:MOST_QUERIES]:
        parts = narrowed(with_text(corpora), filters)
        sources, _ = found_in(parts, Request(query), (), askers or {})
        asked.append((query, [one for one in sources if one.useful]))
    return passages.several(result, asked, budget, form)


def joined(*sentences: str) -> str:
    return " ".join(dict.fromkeys(filter(None, sentences)))


# ---- corpora -----------------------------------------------------------------------------------


def begun(corpora: Sequence[Corpus], mode: str) -> SearchResult:
    names = [name or snapshot.manifest.corpus for name, snapshot in corpora]
    coverage = {"corpora": len(names)} if len(names) > 1 else {}
    return SearchResult(mode=mode, corpus=",".join(names), coverage=coverage)


def with_text(corpora: Iterable[Corpus]) -> list[Corpus]:
    """Those that hold any passage."""
    return [one for one in corpora if one[1].manifest.counters.get("passages", 0)]


def without_text(result: SearchResult) -> SearchResult:
    """The result where there is nothing to search in."""
    result.state, result.text = "not_found", "This corpus holds no text yet."
    result.hint = "Add documents with index_documents."
    result.next_call = 'index_documents(paths=["..."])'
    return result


def stale(result: SearchResult) -> SearchResult:
    """The result for a cursor of another generation or another question."""
    result.state, result.hint = "stale", "Search again without a cursor."
    result.text = "This cursor belongs to another question or to an earlier state of the index."
    return result


def paging(
    corpora: Sequence[Corpus], asked: str, cursor: str, count: int
) -> tuple[tuple[int, ...] | None, Callable[[Sequence[int]], str]]:
    """Where this page starts, None for a stale cursor; and how the cursor of the next page is
    written. It is tied to the question and to the generation of every corpus."""
    generations = [(name, snapshot.manifest.generation) for name, snapshot in corpora]
    generation, whole = sum(one for _, one in generations), f"{generations}|{asked}"
    write = partial(packing.write_cursor, generation, whole)
    return packing.read_cursor(cursor, generation, whole, count), write


def narrowed(
    corpora: Iterable[Corpus], filters: Sequence[str], min_rating: float = 0.0
) -> list[Part]:
    """The corpora with their filters, without those that know no such field, unless none does."""
    if not filters and min_rating <= 0:
        return [(name, snapshot, None) for name, snapshot in corpora]
    from graphrag_mcp.query.filters import Narrowed, read

    parts: list[Part] = []
    refused: BadInput | None = None
    for name, snapshot in corpora:
        try:
            kept = read(snapshot, filters, min_rating)
        except BadInput as error:
            refused = refused or error
            continue
        parts.append((name, Narrowed(snapshot, kept) if kept else snapshot, kept))
    if refused and not parts:
        raise refused
    return parts


# ---- finding -----------------------------------------------------------------------------------


def found_in(
    parts: Sequence[Part], request: Request, keywords: Sequence[str], askers: Mapping[str, Asker]
) -> tuple[list[Source], list[str]]:
    """What is found in each corpus, and what is to be said of it."""
    sources, notes = [], []
    for name, snapshot, kept in parts:
        asker = askers.get(name)
        vector, late = vector_of(asker, snapshot, request.query)
        found = find(snapshot, request.query, request.mode, keywords, kept, vector, asker)
        source = source_of(snapshot, found, name, kept, request.explain)
        asked_for = keywords or name or (kept and kept.first)  # another corpus may know the rest
        if not asked_for and only_common_words(found):
            source.useful = False
        sources.append(source)
        said = [
            kept.note if kept else "",
            length_note(request.query),
            late,
            missing(snapshot, found),
        ]
        notes += [f"In {name}: {one[0].lower()}{one[1:]}" if name else one for one in said if one]
    return sources, notes


def find(
    snapshot: Snapshot,
    query: str,
    mode: str = "local",
    keywords: Sequence[str] = (),
    filters: Filters | None = None,
    vector: bytes | None = None,
    asker: Asker | None = None,
) -> Ranking:
    """Passages best first, as the mode sees them, of those that pass the filters."""
    found = Ranking()
    if query:
        found = rank.retrieve(
            snapshot,
            query,
            WORDS_ALONE if mode == "basic" else WITH_GRAPH,
            keywords,
            vector=vector,
            rerank=asker.rerank if asker is not None and asker.reranks else None,
            keep=partial(filters.rows, snapshot) if filters is not None else None,
        )
    if filters is not None:
        found = replace(found, considered={**found.considered, "filtered": len(found.passages)})
    if mode == "hybrid" and found.passages:
        found = _ranked_by_entities(snapshot, found, filters)
    if filters is not None and filters.first:
        some = filters.including(snapshot, found.passages, INCLUDED if query else None)
        found = replace(found, passages=some)
    if mode == "basic":
        found = replace(found, passages=found.passages[:BASIC])
    return found


def _ranked_by_entities(snapshot: Snapshot, found: Ranking, filters: Filters | None) -> Ranking:
    """The passages by the entities of the question that they hold, rare ones counting more, and by
    the pairs of them; plain text counts nothing."""
    from graphrag_mcp.query.entities import naming, ranked

    chosen = ranked(snapshot, found)
    if filters is not None:
        chosen = [one for one in chosen if filters.entity(one.row)]
    best = [(one.row, one.score()) for one in chosen[:ENTITIES]]
    worth = {row["id"]: score / (1 + math.log(max(row["frequency"], 1))) for row, score in best}
    known = {one.id: one for one in found.passages}
    more = [one for row, _ in best for one in naming(snapshot, row)]
    for one in more if filters is None else filters.passing(snapshot, more):
        known.setdefault(one.id, one)
    scored: list[Ranked] = []
    for one in known.values():
        values = sorted((worth[id] for id in worth.keys() & one.entity_ids), reverse=True)
        parts = {"entities": sum(values), "relationships": PAIR * sum(values[1:])}
        scored.append(replace(one, parts=parts))
    scored.sort(key=lambda one: -round(one.total(), 9))  # equal ones stay in the order of the text
    kept = rank.scaled([one for one in scored if one.total() > 0][:PROPOSED])
    considered = {"passages": len(kept), "entities": len(worth)}
    return replace(found, passages=kept, considered=considered)


def near_the_best(ranked: Sequence[Ranked]) -> list[Ranked]:
    """Without the passages behind a fall of relevance: what a model reads should be on topic."""
    least = FALL * ranked[0].score
    return [one for n, one in enumerate(ranked) if n < LEAST_PASSAGES or one.score >= least]


def source_of(
    snapshot: Snapshot,
    found: Ranking,
    corpus: str = "",
    filters: Filters | None = None,
    explain: bool = False,
) -> Source:
    """What was found, ready to be shown. Among several corpora the best passage of one counts half,
    and more by the share of the question that it holds."""
    source = Source(snapshot, found, corpus, filters, explained=explain)
    source.useful = bool(found.passages)
    if corpus and found.passages and (wanted := set(query_terms(found.query))):
        held = wanted.intersection(found.passages[0].terms.split())
        source.factor = 0.5 + 0.5 * len(held) / len(wanted)
    return source


def vector_of(asker: Asker | None, snapshot: Snapshot, query: str) -> tuple[bytes | None, str]:
    """The question's vector, where this index has vectors; and a sentence when that failed."""
    if asker is None or not query or not asker.embeds or not snapshot.count("passages_vectors"):
        return None, ""
    future = asker.start(asker.embed([query[:8_000]], query=True))
    local = asker.embedding_model.startswith("local:")
    try:
        (vector,) = future.result(LOAD_SECONDS if local else EMBED_SECONDS)
    except Exception:  # a model that is late or fails in any way must not cost the search
        vector = None
    said = "" if vector else "The question could not be embedded, so its words alone decided."
    return vector, said


def length_note(query: str) -> str:
    if len(query) <= QUERY_CHARACTERS:
        return ""
    return f"Only the first {QUERY_CHARACTERS} characters of the query were used."


# ---- words of the question that do not occur -----------------------------------------------------

# Words that ask name nothing that could be missing.
_ASKING = re.compile(
    ".*(?:[哪谁誰几幾何]|什么|什麼|怎)|어디|누구|누가|무엇|언제|어떻|얼마|어떤|무슨|몇|왜$"
)
_QUOTED = re.compile(r"[\"“«]([^\"“”«»]{1,200})[\"”»]")


def only_common_words(found: Ranking) -> bool:
    """Does every name of the question hold a word that does not occur, and does the corpus hold few
    of its other words?

    Half as many unknown words as known ones are still a question on this corpus in other words;
    with a vector its meaning decides. Words of Chinese cannot be counted, for their pairs of
    characters cross from one word to the next: there it is enough that nothing of any name occurs.
    """
    if found.vector or not found.names:
        return False
    if all(is_cjk(mention.form[0]) for mention in found.names):
        alone = any(len(term) == 1 and is_cjk(term) for term in found.terms)  # 猫和红烧肉
        return not (alone or found.near) and all(_absent(one.form, found) for one in found.names)
    named = [mention.form for mention in found.names if mention.strong]
    known = {*found.terms, *found.near}
    known |= {term for word in found.near for term in query_terms(word)}
    unknown = {term for term in found.unknown if term not in known and not is_cjk(term[0])}
    if len(unknown) < 2 or not named or len(unknown) * 4 < len(found.terms) * 3:
        return False
    words = (form.split() for form in named)
    return all(any(no_form_occurs(word, known, unknown) for word in some) for some in words)


def missing(snapshot: Snapshot, found: Ranking) -> str:
    """A sentence on names, numbers and quoted words of the question that occur nowhere: an agent
    should know before it trusts the context. Words that were looked for in their place are always
    named, and words of addresses, which only search_text finds."""
    if not found.unknown:
        return ""
    names = [
        one.form
        for one in found.names
        if one.strong or (is_cjk(one.form[0]) and not _ASKING.match(one.form))
    ]
    absent = [form for form in names if _absent(form, found)]
    cjk = [form for form in absent if is_cjk(form[0])]  # 동생은 is 동생
    words = [word for word in _absent_words(found) if not any(form in word for form in cjk)]
    absent += [word for word in words if not any(word in form for form in absent)]
    instead = dict.fromkeys(near for nearest in found.near.values() for near in nearest)
    absent = list(dict.fromkeys(absent))[:5]
    linked = in_addresses(snapshot, absent)
    said = {
        "Nowhere in this corpus": [one for one in absent if one not in linked],
        "Only in addresses, where search_text finds it in quotes": [
            *filter(linked.__contains__, absent)
        ],
        "Looked for instead": [*instead][:6],
    }
    return joined(
        *(f"{what}: {', '.join(map(repr, some))}." for what, some in said.items() if some)
    )


def _absent_words(found: Ranking) -> list[str]:
    """Numbers and quoted words of the question that occur nowhere; capitalised ones too where most of
    the question is known, since in a language that the corpus does not hold all would be."""
    unknown = set(found.unknown)
    every = [(word, word.strip(MARKS)) for word in found.query.split()]
    quoted = set(re.findall(r"\w+", " ".join(_QUOTED.findall(found.query))))
    known = len(found.unknown) <= len(found.terms)
    first = every[0][1] if every else ""
    return [
        bare
        for word, bare in every
        if bare
        and no_form_occurs(word, found.terms, unknown)
        and (
            any(map(str.isdigit, bare))
            or bare in quoted
            or (known and bare[0].isupper() and bare != first)
        )
    ]


def _absent(form: str, found: Ranking) -> bool:
    words = query_terms(form)
    return bool(words) and found.terms.keys().isdisjoint(words)


# ---- earlier turns of a conversation ---------------------------------------------------------------

TURNS, NAMES = 5, 8  # the newest user turns that are read; names that are looked for
HEADING = "-----Conversation History-----\nturn|content"
HISTORY_SHARE, LEAST_TURN = 0.1, 14  # of the budget at most; tokens of a turn that is cut
_ROLE = re.compile(r"\s*(user|human|me|assistant|ai|bot|system|tool)\s*[:：|]\s*", re.IGNORECASE)
_USER = {"user", "human", "me"}


def read_history(history: Sequence[str], query: str, budget: int) -> tuple[str, list[str]]:
    """The block of the user's turns, and the names that they add to the question."""
    if not history:
        return "", []
    turns = []
    for one in history:
        match = _ROLE.match(one)
        body = one[match.end() :] if match else one  # a turn without a role is the user's
        if body.strip() and (match is None or match[1].casefold() in _USER):
            turns.append(body.strip())
    turns = turns[-TURNS:]
    return history_block(turns, budget), history_keywords(turns, query) if query else []


def history_keywords(turns: Sequence[str], query: str) -> list[str]:
    """Names of earlier turns, the newest first: of all when the question names nothing itself, else
    of the newest. Where no turn names anything, the content words of the newest, as written."""
    own = {mention.key for mention in extract(query[:NAME_CHARACTERS]) if mention.strong}
    found: dict[str, str] = {}
    for turn in list(reversed(turns))[: 1 if own else TURNS]:
        for mention in extract(turn[:NAME_CHARACTERS]):
            if mention.strong and mention.key not in own:
                found.setdefault(mention.key, mention.form)
    if found or own or not turns:
        return list(found.values())[:NAMES]
    words = [word.strip(MARKS) for word in turns[-1][:1_000].split()]
    return [word for word in words if not all(map(stop_word, query_terms(word)))][:NAMES]


def history_block(turns: Sequence[str], budget: int) -> str:
    """As many of the newest turns as their share of the budget holds; "" when that is not one."""
    left = int(budget * HISTORY_SHARE) - count_tokens(HEADING)
    kept: list[str] = []
    for turn in reversed(turns):
        line = columns("user", one_line(turn, 2_000))
        if count_tokens(line) >= left:
            if not kept and left >= LEAST_TURN:
                kept.append(columns("user", shorten(one_line(turn, 2_000), left - 4) + " …"))
            break
        left -= count_tokens(line) + 1
        kept.insert(0, line)
    return "\n".join([HEADING, *kept]) if kept else ""
