"""What a run would ask of models, counted before it is asked.

The questions about texts are exact: the texts are read and cut as in the run, and what the reply
cache answers is not counted. Replies, and the questions that follow from replies (descriptions,
reports, second looks), are estimated as USUAL says."""

from __future__ import annotations

import os
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from graphrag_mcp import plugins
from graphrag_mcp.index import models, pictures, summaries, vectors
from graphrag_mcp.index.chunk import chunk, chunk_params
from graphrag_mcp.index.derive import metadata_json
from graphrag_mcp.index.models import Models
from graphrag_mcp.index.report_topics import SHARED, Earlier
from graphrag_mcp.index.run import Cancelled, Row, Run, parameters
from graphrag_mcp.index.summaries_stage import COLUMNS
from graphrag_mcp.index.units import Context
from graphrag_mcp.llm.asker import Asker, Spent, key_of
from graphrag_mcp.llm.protocols import Usage
from graphrag_mcp.llm.replies import words
from graphrag_mcp.sources import diff as planning
from graphrag_mcp.sources.document import Document
from graphrag_mcp.store import edit_log
from graphrag_mcp.store.manifest import Manifest
from graphrag_mcp.store.tables import Snapshot, notes_of, values_of
from graphrag_mcp.text.citing import is_note
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.trust.fencing import masked
from graphrag_mcp.types import IndexRequest, IndexResult

PICTURES = "Descriptions of pictures are counted as long as they may be, pictures without their own tokens."
# Names that rules find in a passage, and tokens of one with its sentence, where vectors are made: 1.8, 4.0, 4.4 and
# 4.6, and 52 to 62, in the sample, MuSiQue, Chinese notes and news.
NAMES, NAME_TOKENS = 4, 60
# the file of o200k_base in the cache of tiktoken
VOCABULARY = "fb374d419588a4632f3f557e76b4b70aebbca790"


class Usual(NamedTuple):
    """One kind of question: `calls` for each text that is read, tokens of a `prompt`, of a `reply`. The calls
    and prompts about texts are counted."""

    calls: float
    prompt: float
    reply: float


# Measured with benchmarks/modelled.py --documents 20 (60 text units, gleanings auto), 28 November; prompts of
# descriptions: 40 documents of 14 news articles each (443 text units).
REPORT_PROMPT = 450  # tokens of the prompt of a report without its rows
# Of the reply about one text, labels, names and JSON included: 889 summaries by agents (news, chats in two
# languages, web pages) have 648 to 746 characters.
SUMMARY_TOKENS = 160
USUAL = {
    "extract": Usual(0, 0, 1350),
    "claims": Usual(0, 0, 500),
    "glean": Usual(0.1, 3000, 500),
    "describe": Usual(0.15, 670, 150),
    "report": Usual(0.25, 3500, 1000),
}
# Reports from summaries: modelled.py --method light, 442 news articles (464 text units), 29 November; replies as
# 13 reports by agents.
OF_SUMMARIES = Usual(0.17, 1040, 850)


def tokens_of(text: str) -> int:
    """Tokens that a provider counts: by tiktoken where its vocabulary is on this machine, else by
    the counter of chunks, which is never below."""
    encoding = _encoding()
    return len(encoding.encode_ordinary(text)) if encoding else count_tokens(text)


@cache
def _encoding() -> Any:
    """The tokenizer of OpenAI's models, or None: tiktoken would download a missing vocabulary."""
    usual = os.path.join(tempfile.gettempdir(), "data-gym-cache")
    if not os.path.isfile(os.path.join(os.environ.get("TIKTOKEN_CACHE_DIR", usual), VOCABULARY)):
        return None
    import tiktoken

    return tiktoken.get_encoding("o200k_base")


class Tally:
    """Calls and tokens of a run by kind of question, and what is counted on the way."""

    def __init__(self, run: Run, chosen: Models, asker: Asker, refresh: bool) -> None:
        self.run, self.models, self.asker, self.refresh = run, chosen, asker, refresh
        self.stages: dict[str, Counter[str]] = defaultdict(Counter)
        self.counts: Counter[str] = Counter()
        self.summarised = 0  # texts whose summary is asked for
        # To be embedded, by table, in the order in which the run does.
        self.texts: dict[str, dict[str, None]] = defaultdict(dict)

    def read(self, document: Document) -> None:
        """The questions about a document and the vectors of its passages."""
        models, text = self.models, document.text
        outline = plugins.outline(document.uri, text)
        params = chunk_params(self.run.settings)
        context = Context(document.uri, document.title, text, document.metadata)
        readers = (("extract", models.extract), ("claims", models.claims))
        asks = self.asker.on and outline is None and not is_note(document.uri, document.metadata)
        for unit in chunk(text, params, outline.breaks(text) if outline else None):
            self.counts.update(text_units=1, passages=len(unit.passages))
            for part in unit.passages:
                row = {"title": document.title, "text": text[part.start : part.end]}
                self.embed("passages", vectors.embedded_text("passages", row))
            shown = masked(text[unit.span.start : unit.span.end])
            for kind, reader in readers if asks else ():
                if reader is not None:
                    self.ask(kind, *reader.question(shown, context.line(unit.span.start)))

    def summarise(self, rows: Iterable[Row]) -> None:
        """The questions about documents without a summary, several short texts in one."""
        params = self.models.summaries
        if params is None or self.models.extract is not None or not self.asker.on:
            return
        parts, wholes = list[summaries.Part](), list[summaries.Part]()
        for row in rows:
            open_before = len(parts)
            sections = summaries.parts_of(row, params.longest)
            for part in sections:
                asked = summaries.ask([part], params)
                brief = words(part.text) <= summaries.BRIEF
                if not (brief or self.asker.known(asked) or self.asker.refused(asked)):
                    parts.append(part)
            if len(sections) > 1 and len(parts) > open_before:
                pairs = [(part, summaries.Summary("word " * 45)) for part in sections]
                wholes.append(summaries.whole_of(pairs, params.longest))
        self.summarised += len(parts)
        for asked_together in (parts, wholes):
            for texts in summaries.in_calls(asked_together, params.longest):
                self.ask("summary", summaries.ask(texts, params).messages, None)
                self.stages["summary"].update(output_tokens=SUMMARY_TOKENS * len(texts))

    def picture(self, prompt: str) -> None:
        """The question about a picture. The tokens of the picture itself are left out: providers
        count them in different ways."""
        reply = tokens_of(pictures.LONGEST_DESCRIPTION)
        self.stages["picture"].update(calls=1, prompt_tokens=tokens_of(prompt), output_tokens=reply)

    def ask(self, kind: str, messages: Any, schema: Any) -> None:
        if self.refresh or not self.asker.settled(key_of(messages, schema)):
            tokens = sum(tokens_of(message.content) for message in messages)
            self.stages[kind].update(calls=1, prompt_tokens=tokens)

    def embed(self, table: str, text: str) -> None:
        if self.asker.embeds and self.models.embedding:
            self.texts[table][text] = None

    def finish(self) -> None:
        """Add what follows from replies."""
        settings, texts = self.run.settings, self.stages["extract"]["calls"]
        usual = dict(USUAL)
        if self.models.extract is None:
            texts, usual = self._retold(), {"report": OF_SUMMARIES}
        elif settings.gleanings != "auto":
            usual["glean"] = usual["glean"]._replace(calls=int(settings.gleanings))
        # What a report is made of is at most `report_tokens`, beside the words of its prompt.
        longest = settings.report_tokens + REPORT_PROMPT
        usual["report"] = usual["report"]._replace(prompt=min(usual["report"].prompt, longest))
        for kind, each in usual.items():
            stage, calls = self.stages[kind], round(each.calls * texts)
            calls = max(calls, self._least_reports(texts)) if kind == "report" else calls
            stage.update(calls=calls, prompt_tokens=round(calls * each.prompt))
            stage.update(output_tokens=round(stage["calls"] * each.reply))
        asked: Counter[str] = Counter()
        for table, embedded in self.texts.items():
            for call in self.asker.embedding_calls(list(embedded)):
                asked[table] += len(call)
                self.stages["embedding"].update(calls=1, prompt_tokens=sum(map(tokens_of, call)))
        if not asked["entities"]:
            names = NAMES * asked["passages"]
            calls = -(-names // settings.embedding_batch)
            self.stages["embedding"].update(calls=calls, prompt_tokens=NAME_TOKENS * names)

    def _retold(self) -> int:
        """Texts whose topics are reported from summaries: those of new summaries, or all where so many are
        new that no report stays, or the reports are asked in other words than before."""
        prompt, before = self.models.reports, self.run.manifest
        if prompt is None or not self.asker.on:
            return 0
        new = before is None or before.parameters.get("reports") != prompt.fingerprint
        if not self.summarised and not (new and Earlier(self.asker).none_of(prompt.of_topics)):
            return 0
        stored = before.counters.get("text_units", 0) if before else 0
        units = self.counts["text_units"]
        stale = new or units > (1 - SHARED) * stored
        return max(self.summarised, stored, units) if stale else self.summarised

    def _least_reports(self, texts: int) -> int:
        """Reports that an earlier run left open, and the one of each level that a new text is of."""
        before = self.run.manifest
        if self.models.reports is None or not self.asker.on or before is None:
            return 0
        rows = self.run.snapshot().rows("pending", "kind = 'report'", ["reason"]).to_pylist()
        left = sum(not self.asker.still_refused(row["reason"]) for row in rows)
        levels = set(values_of(self.run.snapshot().rows("communities", columns=["level"])["level"]))
        return max(left, len(levels) * bool(texts and self.models.extract))

    def record(self) -> dict[str, Any]:
        """As `Spent.record` has it."""
        spent = Spent()
        for kind, stage in self.stages.items():
            if stage["calls"]:
                spent.by_stage[kind] = Counter(calls=stage["calls"])
                usage = Usage(stage["prompt_tokens"], stage["output_tokens"], estimated=True)
                cost = self.asker.budget.cost(kind, usage)
                spent.used(kind, usage, cost, usage.prompt_tokens)
        return {**spent.record(), "cost": round(spent.cost, 4)}


def _row(document: Document) -> Row:
    fields = {name: getattr(document, name) for name in ("id", "uri", "title", "text")}
    return {**fields, "metadata": metadata_json(document.metadata)}


def _not_summarised(run: Run, replaced: Collection[str], refresh: bool) -> Iterator[Row]:
    """Stored documents without a summary, or all to `refresh` them, except those that the run reads or
    removes."""
    if run.manifest is None or run.models.summaries is None:
        return
    snapshot = run.snapshot()
    same = run.manifest.parameters.get("summaries") == run.models.summaries.fingerprint
    same = same and not refresh
    have = values_of(snapshot.rows("summaries", columns=["document_id"])["document_id"])
    known = notes_of(snapshot) | (set(have) if same else set())
    for batch in snapshot.batches("documents", COLUMNS):
        for row in batch.to_pylist():
            if row["id"] not in known and row["uri"] not in replaced:
                yield row


def _derives(chosen: Models, before: Manifest | None, run: Run) -> bool:
    """Are all documents derived again with these models?"""
    wanted = parameters(run.settings, chosen)
    return before is not None and wanted != {name: before.parameters.get(name) for name in wanted}


def estimate(
    run: Run, request: IndexRequest, asker: Asker, open_units: Callable[[Run], set[str]]
) -> IndexResult:
    """What the call of `run` would read, and what it would ask of `asker`. `open_units`: uris of the
    documents with text units that a model is asked about again."""
    folder, before, notes = run.folder, run.manifest, ""
    run.models = models.choose(request.method, run.settings, before, folder, asker)
    if before is not None:
        run.edits = edit_log.fold(edit_log.load(folder, before))
    plan = planning.make(folder, before, request, run.settings, run.edits)
    # Where `auto` takes the cheaper way for the first time, what the other one costs is counted too.
    methods = [request.method]
    if (
        request.method == "auto"
        and run.models.light
        and not (before and before.parameters.get("light"))
    ):
        methods.append("llm")
    tallies = [
        Tally(
            run,
            models.choose(method, run.settings, before, folder, asker),
            asker,
            request.refresh_answers,
        )
        for method in methods
    ]
    tally, status = tallies[0], "done"
    # of each way the documents that are read though their files did not change
    again = [set(plan.live) if _derives(each.models, before, run) else set() for each in tallies]
    if again[0]:
        notes = f"All {len(plan.live)} documents are derived again: settings, models or the release are others."
    for each, uris in zip(tallies, again, strict=True):
        if request.refresh_answers and each.models.extract is not None:
            uris.update(plan.live)
    replaced: set[str] = set()
    summarised_rows: list[Row] = []

    def picture(prompt: str) -> None:
        for each in tallies:
            each.picture(prompt)

    try:
        describe = None
        if request.method != "fast":
            describe = pictures.counter(asker, folder, run.settings, picture)
        if describe or run.models.extract or run.models.embedding or run.models.summaries:
            kept = vectors.without_others(before, run.models.embedding)
            if run.models.embedding and kept is not None and not again[0]:
                for table, texts in vectors.missing_texts(Snapshot(folder, kept)):
                    for text in texts.values():
                        tally.embed(table, text)
            again[0].update(open_units(run))
            every = set().union(*again)
            edits = planning.edits(folder, before, plan, request, run.settings, every, describe)
            for edit in edits:
                run.check()
                if edit.document is None:
                    replaced.add(edit.uri)
                if edit.document is None or edit.what == "relog":
                    continue
                for each, uris in zip(tallies, again, strict=True):
                    if edit.what == "put" or edit.uri in uris:
                        each.read(edit.document)
                if edit.what == "put" or edit.uri in again[0]:
                    replaced.add(edit.uri)
                    if not is_note(edit.document.uri, edit.document.metadata):
                        summarised_rows.append(_row(edit.document))
            summarised_rows += _not_summarised(run, replaced, request.refresh_answers)
            for each in tallies:
                each.summarise(summarised_rows)
    except Cancelled:
        status = "cancelled"
    for each in tallies:
        each.finish()
    known = {"files": len(plan.to_read), **tally.record()}
    if len(tallies) > 1:
        known["full"] = tallies[1].record()
    known["bytes"] = sum(Path(file.path).stat().st_size for file in plan.to_read)
    if tally.stages["picture"]["calls"]:
        notes = f"{notes} {PICTURES}".strip()
    counts = {"to_read": len(plan.to_read), "removed": len(plan.gone), "unchanged": plan.unchanged}
    return IndexResult(
        status="estimate" if status == "done" else status,
        corpus=folder.name,
        errors=plan.errors,
        total=len(plan.to_read) + len(request.texts),
        counts={**counts, **tally.counts},
        skipped=dict(sorted(plan.found.skipped.items())),
        skipped_files=plan.found.named,
        hint=" ".join(filter(None, [*plan.notes, notes, run.models.note])),
        estimate=known,
    )
