"""Features of the ranking: what a passage is worth for a question, from 0 to 1, below 0 for what it
loses. A feature is a function of the question and the first round that gives a function of a passage,
or None where it says nothing about this question. A further one is a function here, a weight of the
same name, and its place in FIRST or SECOND.

Docstrings say what recall@5 loses without the feature, in points, on sets that weights were chosen on
(MuSiQue, HotpotQA) and on sets that variants were compared on (2Wiki, news, LoCoMo)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from graphrag_mcp.query.candidates import Passage, Place, place_of
from graphrag_mcp.query.question import Question

SHARING = 6  # most candidates that hold a name which ties them
FOCUS = 4.0  # power of a passage's own score as a share of the best in its document


@dataclass(frozen=True, slots=True)
class Weights:
    """Of the features. Chosen on musique100, hotpot_train100, chroma and cmrc_zh together; compared
    on 2Wiki, news and LoCoMo (docs/dev/decisions.md)."""

    words: float = 1.0
    rare_name: float = 0.35
    named_title: float = 0.3
    title_link: float = 0.4
    shared_name: float = 0.5
    adjacency: float = 0.3
    reranker: float = 0.7


WEIGHTS = Weights()


@dataclass(frozen=True, slots=True)
class FirstRound:
    """What a feature may look at besides the question: the BM25 that counts as 1 and all candidates;
    after the first round also their scores in it by id, and the SOURCES best of them."""

    top: float
    passages: Mapping[str, Passage]
    copies: Mapping[str, str]  # of `candidates.copies`
    scores: Mapping[str, float] = field(default_factory=dict)
    high: Sequence[Passage] = ()

    def text(self, id: str) -> str:
        """The passage that stands for all that have the same text."""
        return self.copies.get(id, id)

    def score(self, passage: Passage) -> float:
        return self.scores[passage.id]

    def words(self, passage: Passage) -> float:
        """BM25 as a share of the best candidate's."""
        return min(passage.bm25 / (self.top or 1.0), 1.0)


Value = Callable[[Passage], float]
Feature = Callable[[Question, FirstRound], Value | None]


def words(question: Question, first: FirstRound) -> Value:
    """BM25 as a share of the best candidate's."""
    return first.words


def rare_name(question: Question, first: FirstRound) -> Value | None:
    """What a passage loses of its words where the question has a rare name that neither it nor the
    passage before or behind it holds. MuSiQue 5.0, HotpotQA 1.5, 2Wiki and LoCoMo 0, news -0.4."""
    if not question.rare:
        return None
    holding = {
        place_of(passage)
        for passage in first.passages.values()
        if any(all(map(passage.holds, name)) for name in question.rare)
    }
    near = {(document, at + step) for document, at in holding for step in (-1, 0, 1)}
    return lambda passage: 0.0 if place_of(passage) in near else -first.words(passage)


def named_title(question: Question, first: FirstRound) -> Value | None:
    """The question names the title of the document. Whole for the passage of the document that is
    best by its words, and hardly any for those far behind it. MuSiQue 2.1, HotpotQA 2.0,
    2Wiki 1.3, news and LoCoMo 0."""
    named = frozenset(question.named)
    if not any(passage.title_id in named for passage in first.passages.values()):
        return None
    focus = focused(question, first)
    return lambda passage: focus(passage) if passage.title_id in named else 0.0


def title_link(question: Question, first: FirstRound) -> Value | None:
    """A high passage of another document names the title of the document: the score of the best such
    passage, focused as for `named_title`. MuSiQue 3.5, HotpotQA 4.5, 2Wiki 2.3, news and LoCoMo 0."""
    reach: dict[str, float] = defaultdict(float)
    for source in first.high:
        for id in source.entity_ids:
            if id != source.title_id:
                reach[id] = max(reach[id], first.score(source))
    if not any(passage.title_id in reach for passage in first.passages.values()):
        return None
    focus = focused(question, first)
    return lambda passage: reach[passage.title_id] * focus(passage) if passage.title_id in reach else 0.0


def shared_name(question: Question, first: FirstRound) -> Value | None:
    """A name that a high passage and few other candidates hold, and that the question does not name,
    ties them: the score of the high passage through the number of the others. It is 0 where no
    candidate names the title of another document (chats, news): there a name ties what it is said
    with, not what it is. MuSiQue 7.0, HotpotQA 4.5, 2Wiki 3.7; without the condition news lose 2.3 and
    LoCoMo 1.5."""
    if not _name_each_other(first.passages.values()):
        return None
    names = {id for passage in first.high for id in passage.entity_ids} - {*question.named}
    holders: dict[str, list[Passage]] = defaultdict(list)
    for passage in first.passages.values():
        for id in names.intersection(passage.entity_ids):
            holders[id].append(passage)
    gain: dict[str, float] = defaultdict(float)
    texts = {id: len({first.text(passage.id) for passage in passages}) for id, passages in holders.items()}
    for source in first.high:
        for id in source.entity_ids:
            others = holders.get(id, ())
            if 2 <= texts.get(id, 0) <= SHARING:
                share = first.score(source) / (texts[id] - 1)
                for other in others:
                    apart = first.text(other.id) != first.text(source.id)
                    if apart and other.document_id != source.document_id:
                        gain[other.id] = max(gain[other.id], share)
    return lambda passage: gain.get(passage.id, 0.0)


def _name_each_other(passages: Collection[Passage]) -> bool:
    titles = {passage.title_id for passage in passages} - {""}
    return any(not titles.isdisjoint({*passage.entity_ids} - {passage.title_id}) for passage in passages)


def adjacency(question: Question, first: FirstRound) -> Value:
    """The score of the best high passage next to this one, times its share of the very best: an answer
    is often a few lines before or behind the words of a question. News 0.2, others 0; evidence within
    2,000 tokens: Chroma 0.2, and 40 and 16 on chats and transcripts of our own."""
    top = max(map(first.score, first.high), default=0.0) or 1.0
    shares: dict[Place, float] = defaultdict(float)
    for source in first.high:
        for step in (-1, 1):
            place = source.document_id, source.position + step
            value = first.score(source) ** 2 / top
            shares[place] = max(shares[place], value)
    return lambda passage: shares.get(place_of(passage), 0.0)


def focused(question: Question, first: FirstRound) -> Value:
    """From 0 to 1: the FOCUS-th power of a passage's words as a share of the best in its document,
    since what a title brings belongs where the document speaks of the matter."""
    words = {id: first.words(passage) for id, passage in first.passages.items()}
    top: dict[str, float] = defaultdict(float)
    for id, passage in first.passages.items():
        top[passage.document_id] = max(top[passage.document_id], words[id])

    def value(passage: Passage) -> float:
        most = top[passage.document_id]
        return (words[passage.id] / most) ** FOCUS if most > 0 else 1.0

    return value


FIRST: tuple[Feature, ...] = (words, rare_name, named_title)  # look at a passage by itself
SECOND: tuple[Feature, ...] = (title_link, shared_name, adjacency)  # and those of plug-ins
