"""A dry run: the run itself in memory, with imitated replies, to count the calls of a model before
they are made.

Everything that follows from documents, settings, index and reply cache is exact; only the replies
are imitated. How much a model says is read from its replies in the cache. Without any: the 18 names
of a text that are connected most, each sentence's first name related with those after it; a second
pass finds a third of that; a report has a finding for every few rows."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import islice
from pathlib import Path
from statistics import mean, quantiles
from typing import Any, ClassVar

from graphrag_mcp.index import documents, models
from graphrag_mcp.index.documents import Batch, Row, Run
from graphrag_mcp.index.graph import Named, UnitNames
from graphrag_mcp.index.records import parse
from graphrag_mcp.index.units import Reading
from graphrag_mcp.llm.asker import Asker, BadReply
from graphrag_mcp.llm.protocols import Embedded, Message, Reply, Usage
from graphrag_mcp.sources import diff as planning
from graphrag_mcp.sources.diff import Plan
from graphrag_mcp.store import edit_log
from graphrag_mcp.store.manifest import Manifest
from graphrag_mcp.store.reply_cache import AnswerBook
from graphrag_mcp.store.tables import Change, Imagination, Snapshot
from graphrag_mcp.text.prose import sentences
from graphrag_mcp.text.terms import is_cjk
from graphrag_mcp.types import IndexRequest, IndexResult

# answers of a kind from which its habits are told, and the most that are read for it
ENOUGH, LOOKED_AT = (10, 200)
# CJK
_DENSE = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]+")
FULL = 400  # tokens of a text that holds more names than a reply


@dataclass(frozen=True, slots=True)
class Habits:
    """`names`: entities of a first reply, at the most; `links`: relationships; `more`: entities
    that a second look adds, and as many relationships; `said`: characters said of each, 0 for as
    many as its sentence has; `report`, `summary`: tokens of one, 0 for what its rows have; `spent`:
    output tokens that a provider counts, by kind, for each token of the reply as it can be read
    (thoughts are paid for, too); `answers`: of how many this was learnt."""

    names: int = 18
    links: int = 18
    more: int = 6
    said: int = 0
    report: float = 0.0
    summary: float = 0.0
    spent: Mapping[str, float] = field(default_factory=dict)
    answers: int = 0


# the file of o200k_base in the cache of tiktoken
VOCABULARY = "fb374d419588a4632f3f557e76b4b70aebbca790"


def tokens_of(text: str) -> float:
    """Tokens that a provider counts: by tiktoken where its vocabulary is on this machine, else
    about 4 letters, or 1.3 CJK characters, a token."""
    if encoding := _encoding():
        return len(encoding.encode_ordinary(text))
    dense = 0 if text.isascii() else len(text) - len(_DENSE.sub("", text))
    return (len(text) - dense) / 4 + dense / 1.3


@cache
def _encoding() -> Any:
    """The tokenizer of OpenAI's models, or None: tiktoken would download a missing vocabulary."""
    usual = os.path.join(tempfile.gettempdir(), "data-gym-cache")
    if not os.path.isfile(os.path.join(os.environ.get("TIKTOKEN_CACHE_DIR", usual), VOCABULARY)):
        return None
    import tiktoken

    return tiktoken.get_encoding("o200k_base")


def learnt(book: AnswerBook | None, model: str, constant: float) -> Habits:
    """The habits of a model; those that are usual where the book has too few answers of its.
    `constant`: tokens of the question about a text without the text."""
    habits = Habits()
    if book is None or not model:
        return habits
    rows = [row for row in book.listing() if row["answerer"] == f"llm:{model}"]
    for kind in ("extract", "glean", "report", "describe"):
        own = [row for row in rows if row["kind"] == kind]
        if len(own) < ENOUGH:
            continue
        own.sort(key=lambda row: (-row["prompt_tokens"], row["key"]))
        stored = (book.get(row["key"], row["answerer"]) for row in own[:LOOKED_AT])
        replies = [found[0] for found in stored if found]
        texts = [one.text for one in replies]
        read, paid = sum(map(tokens_of, texts)), sum(one.output_tokens for one in replies)
        if read and paid:
            spent, answers = {**habits.spent, kind: paid / read}, habits.answers + len(texts)
            habits = replace(habits, spent=spent, answers=answers)
        if kind == "extract":
            # What a short text holds says nothing of how much a reply can hold.
            full = [one.text for one in replies if one.prompt_tokens - constant >= FULL]
            habits = _of_records(habits, texts, full)
        elif kind == "glean":
            habits = replace(habits, more=round(mean(_records(text)[0] for text in texts)))
        else:
            size = read / len(texts) if texts else 0.0
            habits = replace(habits, **{"report" if kind == "report" else "summary": size})
    return habits


def _of_records(habits: Habits, replies: Iterable[str], full: Sequence[str]) -> Habits:
    lengths = [len(one.description) for _, all_ in map(_records, replies) for one in all_]
    counts = [(names, len(all_) - names) for names, all_ in map(_records, full)]
    if lengths:
        habits = replace(habits, said=round(mean(lengths)))
    if len(counts) >= ENOUGH:  # some hold less than a reply could, a few hold more than is usual
        most = [max(1, round(quantiles(column, n=10)[8])) for column in zip(*counts, strict=True)]
        habits = replace(habits, names=most[0], links=most[1])
    return habits


def _records(reply: str) -> tuple[int, list[Any]]:
    """How many entities, and these with the relationships."""
    try:
        found = parse(reply)
    except BadReply:
        return 0, []
    return len(found.entities), [*found.entities, *found.relations]


AFTER = 4  # names of a sentence that its first one is related to
CLAIMS = 6
UNTYPED = 0.3  # Chinese words without a type that are listed, for each name with one
SAID = 280  # characters of a sentence that is repeated in a description
SUMMARY = 1_000  # characters of a description made of many
FINDINGS, PART = 8, 60  # of a report, and tokens of each and of its summary at the least
FRAME = 200  # tokens of a report beside what it says of rows: titles, references, signs
_TAGS = re.compile(r"<(?:context|descriptions)>\n(.*)\n</(?:context|descriptions)>", re.DOTALL)
_SIGNS = re.compile(r'[<>|"]|##')
Link = tuple[Named, Named, int, int]  # subject, the other, start and end of the sentence


class ImitatedChat:
    """Answers the questions of indexing. `read` is told of every text before it is asked about."""

    def __init__(self, name: str, habits: Habits) -> None:
        self.name, self.habits = name, habits
        self._asked: dict[int, tuple[str, UnitNames]] = {}

    def read(self, unit: UnitNames, extract: str, claims: str = "") -> None:
        """The prompts that will ask about a text unit."""
        self._asked[hash(extract)] = "extract", unit
        if claims:
            self._asked[hash(claims)] = "claims", unit

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        schema: Mapping[str, Any] | None = None,
        max_output: int = 0,
        on_text: Callable[[str], None] | None = None,
    ) -> Reply:
        prompt = messages[0].content
        if (known := self._asked.get(hash(prompt))) is not None:
            kind, unit = known
            text = TEXTS[kind](unit, len(messages) // 2, self.habits)
        else:
            kind, make = ("report", reported) if schema is not None else ("describe", described)
            found = _TAGS.search(prompt)
            text = make(found[1] if found else prompt, self.habits)
        asked = sum(tokens_of(message.content) for message in messages)
        paid = tokens_of(text) * self.habits.spent.get(kind, 1.0)
        return Reply(text, Usage(round(asked), round(paid), estimated=True))

    async def close(self) -> None:
        """Nothing is held."""


class ImitatedEmbedder:
    """Vectors of `length` bytes, all alike; `text_prompt`: what its model puts before a text."""

    def __init__(self, name: str, text_prompt: str = "") -> None:
        self.name, self.text_prompt, self.length = name, text_prompt, lambda: 4

    async def embed(self, texts: Sequence[str]) -> Embedded:
        length = self.length() or 4
        usage = Usage(round(sum(map(tokens_of, texts))), 0, estimated=True)
        return Embedded((bytes(length),) * len(texts), length // 4, usage)

    async def close(self) -> None:
        """Nothing is held."""


# ---- texts -------------------------------------------------------------------------------------------


def extraction(unit: UnitNames, looks: int, habits: Habits) -> str:
    """Records of the names that come next, and of the relationships that these have with names that
    were listed. `looks`: how often the text has been read already."""
    names, links = _by_weight(unit)
    begin = habits.names + habits.more * (looks - 1) if looks else 0
    end = begin + (habits.more if looks else habits.names)
    place = {name.key: at for at, name in enumerate(names[:end])}
    listed = [link for link in links if link[0].key in place and link[1].key in place]
    new = [link for link in listed if max(place[link[0].key], place[link[1].key]) >= begin]
    records = [
        f'("entity"<|>{_plain(one.form)}<|>{one.type}<|>'
        f"{_told(f'{_plain(one.form)} is described:', unit, *one.sentences[:2], habits)})"
        for one in names[begin:end]
    ]
    for one, other, *span in new[: habits.more if looks else habits.links]:
        a, b = _plain(one.form), _plain(other.form)
        said = _told(f"{a} and {b} are connected:", unit, *span, habits)
        records.append(f'("relationship"<|>{a}<|>{b}<|>{said}<|>connection<|>5)')
    return "\n##\n".join([*records, "<|COMPLETE|>"])


def claimed(unit: UnitNames, looks: int, habits: Habits) -> str:
    """A claim for each of the strongest relationships."""
    _, links = _by_weight(unit)
    records = []
    for one, other, start, end in () if looks else links[:CLAIMS]:
        quote = unit.text[start:end][:SAID].strip()
        said = f"{_plain(one.form)}<|>{_plain(other.form)}<|>STATEMENT<|>TRUE<|>NONE<|>NONE"
        records.append(f"({said}<|>{_plain(quote)}<|>{quote})")
    return "\n##\n".join([*records, "<|COMPLETE|>"])


def _by_weight(unit: UnitNames) -> tuple[list[Named], list[Link]]:
    """Names, and of each sentence its first name with those after it; what is connected most first."""
    named = _listed(unit.named) or unit.named
    by_sentence: dict[tuple[int, int], list[Named]] = defaultdict(list)
    for name in sorted(named, key=lambda name: name.start):
        for at in range(0, len(name.sentences), 2):
            by_sentence[name.sentences[at], name.sentences[at + 1]].append(name)
    links: dict[tuple[str, ...], Link] = {}
    weight: Counter[tuple[str, ...]] = Counter()
    held: Counter[str] = Counter({name.key: name.count for name in named})
    for span, (first, *others) in sorted(by_sentence.items(), key=lambda item: item[0]):
        for other in others[:AFTER]:
            pair = tuple(sorted((first.key, other.key)))
            links.setdefault(pair, (first, other, *span))
            weight[pair] += 1
    for pair in links:
        held.update(pair)
    names = sorted(named, key=lambda name: (-held[name.key], name.start))
    order = sorted(links, key=lambda pair: (-weight[pair], links[pair][2], pair))
    return names, [links[pair] for pair in order]


def _listed(names: Sequence[Named]) -> list[Named]:
    """Names that a model would list. Of Chinese words without a type those that are repeated are
    mostly verbs, the others mostly parts of names."""
    plain, untyped = [], []
    for name in names:
        if is_cjk(name.form[:1]) and name.type in ("", "other"):
            untyped.append(name)
        elif name.strong or name.count > 1:
            plain.append(name)
    untyped.sort(key=lambda name: (name.count, name.start))
    return [*plain, *untyped[: round(UNTYPED * len(plain))]]


def _told(begin: str, unit: UnitNames, start: int, end: int, habits: Habits) -> str:
    """A description that says what the sentence says."""
    said = f"{begin} {_plain(unit.text[start:end][:SAID])}"
    return _long(said, habits.said) if habits.said else said


def _long(text: str, length: float) -> str:
    """As much of it as that; said again where it is shorter."""
    return (f"{text} " * (int(length / (len(text) + 1)) + 1))[: int(length)].strip()


TEXTS = {"extract": extraction, "claims": claimed}


def _plain(text: str) -> str:
    return " ".join(_SIGNS.sub(" ", text).split())


# ---- descriptions and reports --------------------------------------------------------------------------


def described(told: str, habits: Habits) -> str:
    """What several texts say, said once: as long as they are together, up to SUMMARY."""
    lines = [line.partition(". ")[2] for line in told.splitlines()[1:]]
    said = _plain(" ".join(dict.fromkeys(filter(None, lines)))) or "Nothing more is told of it."
    return _of_tokens(said, habits.summary) if habits.summary else said[:SUMMARY]


def _of_tokens(text: str, tokens: float) -> str:
    return _long(text, tokens * len(text) / max(tokens_of(text), 1))


def reported(rows: str, habits: Habits) -> str:
    """A summary and findings, each of which says what some rows say, the first rows first."""
    lines = [line for line in rows.splitlines() if re.match(r"\d+,", line)]
    parts = list(islice(_parts(lines), FINDINGS + 1))
    if habits.report:
        share = habits.report / (FRAME + sum(tokens_of(one) for part in parts for one in part))
        parts = [[_of_tokens(one, share * tokens_of(one)) for one in part] for part in parts]
    summary, rest = " ".join(*parts[:1]), parts[1:] or parts
    cited = "[Data: Entities (1, 2); Relationships (1)]"
    report = {
        "title": "A community of names and what connects them",
        "summary": summary + " [Data: Entities (1, 2)]",
        "rating": 5,
        "rating_explanation": "The names are connected in several texts.",
        "findings": [
            {"summary": part[0][:100], "explanation": f"{' '.join(part)} {cited}"} for part in rest
        ],
    }
    return json.dumps(report, ensure_ascii=False)


def _parts(lines: Sequence[str]) -> Iterator[list[str]]:
    """Their sentences in runs of PART tokens or more."""
    part: list[str] = []
    said = (line[start:end] for line in lines for start, end in sentences(line))
    for one in (one for one in said if tokens_of(one) >= 10):
        part.append(_plain(one))
        if sum(map(tokens_of, part)) >= PART:
            yield part
            part = []
    if part:
        yield part


Work = Callable[[Run, IndexRequest, Asker], tuple[Plan, str]]


class Rehearsal(Run):
    """A run whose generations are imagined and whose models are imitated."""

    writes: ClassVar[bool] = False
    chat: ImitatedChat
    imagination: Imagination

    def opened(self, manifest: Manifest) -> Snapshot:
        return self.imagination.snapshot(manifest)

    def ask(self, uri: str, unit: UnitNames, context: str) -> Reading | None:
        reader = self.models.reader
        asks = (one for one in (reader.extract, reader.claims) if one is not None)
        self.chat.read(unit, *(one.prompt(unit.text, context) for one in asks))
        return super().ask(uri, unit, context)

    def originals(self, batch: Batch) -> list[Row]:
        return []

    def apply(self, base: Manifest | None, changes: Mapping[str, Change]) -> dict[str, int]:
        for name in ("text_units", "passages"):
            self.counts[name] += changes[name].rows.num_rows if name in changes else 0
        return self.imagination.apply(base, changes)

    def commit(self, manifest: Manifest) -> None:
        self.manifest = manifest

    def compacted(self, idle: bool = False) -> dict[str, int] | None:
        return None


def estimate(run: Rehearsal, request: IndexRequest, asker: Asker, work: Work) -> IndexResult:
    """What a call would read and ask. `asker`: whom it would ask; `work`: what it would do."""
    folder, before, notes, status = run.folder, run.manifest, "", "done"
    run.chat, run.imagination = ImitatedChat(asker.model, Habits()), Imagination(folder)
    embedder = ImitatedEmbedder(asker.embedding_model, asker.text_prompt)
    door = asker.rehearsal(run.chat if asker.on else None, embedder if asker.embeds else None)
    embedder.length = lambda: door.length
    try:
        chosen = models.choose(request.method, run.settings, before, folder, door)
        if chosen.extract is not None and asker.on:
            run.chat.habits = learnt(asker.book, asker.model, tokens_of(chosen.extract.prompt("")))
        if chosen.extract is not None or chosen.embedding:
            plan, status = work(run, request, door)
        else:
            in_force = edit_log.fold(edit_log.load(folder, before))
            plan = planning.make(folder, before, request, run.settings, in_force)
        wanted = documents.parameters(run.settings, chosen)
        if before is not None and wanted != {one: before.parameters.get(one) for one in wanted}:
            notes = f"All {len(plan.live)} documents are derived again: settings, models or the release are others."
    finally:
        door.close()
    counts = {"to_read": len(plan.to_read), "removed": len(plan.gone), "unchanged": plan.unchanged}
    counts |= {name: run.counts[name] for name in ("text_units", "passages") if run.counts[name]}
    size = sum(Path(file.path).stat().st_size for file in plan.to_read)
    habits, spent = run.chat.habits, door.spent()
    known: dict[str, Any] = {"files": len(plan.to_read), "bytes": size}
    known |= {**spent.record(), "cost": round(spent.cost, 4)}
    if "extract" in spent.by_stage:
        why = "since no answer is known yet of"
        why = f"as in {habits.answers} answers of" if habits.answers else why
        known["because"] = f"up to {habits.names} names a text, {why} this model"
    return IndexResult(
        status="estimate" if status == "done" else status,
        corpus=folder.name,
        errors=plan.errors,
        total=len(plan.to_read) + len(request.texts),
        counts=counts,
        skipped=dict(sorted(plan.found.skipped.items())),
        hint=" ".join(filter(None, [*plan.notes, notes])),
        estimate=known,
    )
