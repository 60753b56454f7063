"""What a run would ask of models, counted before it is asked.

The questions about texts are exact: the texts are read and cut as in the run, and what the reply
cache answers is not counted. Replies, and the questions that follow from replies (reports, second
looks), are estimated."""

from __future__ import annotations

import os
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from graphrag_mcp import plugins
from graphrag_mcp.index import models, pictures, summaries, vectors
from graphrag_mcp.index.chunk import chunk, chunk_params
from graphrag_mcp.index.derive import metadata_json
from graphrag_mcp.index.run import Cancelled, Row, Run, parameters
from graphrag_mcp.index.summaries_stage import COLUMNS
from graphrag_mcp.index.units import Context
from graphrag_mcp.llm.asker import Asker, key_of
from graphrag_mcp.llm.budget import Spent
from graphrag_mcp.llm.protocols import Message, Usage
from graphrag_mcp.sources import diff as planning
from graphrag_mcp.sources.document import Document
from graphrag_mcp.store import edit_log
from graphrag_mcp.store.tables import Snapshot, notes_of, values_of
from graphrag_mcp.text.citing import is_note
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.trust.fencing import masked
from graphrag_mcp.types import IndexRequest, IndexResult

PICTURES = "Descriptions of pictures are counted as long as they may be, pictures without their own tokens."
# Tokens of a reply, of a summary for each text. benchmarks/modelled.py --documents 20 (60 text units); 889 summaries
# and 13 reports by agents.
REPLY = {"extract": 1350, "glean": 500, "summary": 160, "report": 850}
GLEANED = 0.1  # second looks for each text that is read, with gleanings = "auto"
# Reports for each text, and tokens of what one shows: modelled.py, 442 news articles (464 text units) from summaries,
# 20 documents read in full.
REPORTS, SHOWN = {"light": 0.17, "llm": 0.25}, {"light": 1040, "llm": 3500}
# Names that rules find in a passage, and tokens of one with its sentence, where vectors are made: 1.8, 4.0, 4.4 and
# 4.6, and 52 to 62, in the sample, MuSiQue, Chinese notes and news.
NAMES, NAME_TOKENS = 4, 60


# The file of o200k_base in the cache of tiktoken.
VOCABULARY = "fb374d419588a4632f3f557e76b4b70aebbca790"


def tokens_of(text: str) -> int:
    """Tokens that a provider counts: by tiktoken where its vocabulary is on this machine, else by
    the counter of chunks, which is never below."""
    encoding = _encoding()
    return len(encoding.encode_ordinary(text)) if encoding else count_tokens(text)


@cache
def _encoding() -> Any:
    """The tokenizer of OpenAI's models, or None: tiktoken would download a missing vocabulary."""
    usual = Path(tempfile.gettempdir(), "data-gym-cache")
    if not Path(os.environ.get("TIKTOKEN_CACHE_DIR", usual), VOCABULARY).is_file():
        return None
    import tiktoken

    return tiktoken.get_encoding("o200k_base")


class Tally:
    """Calls and tokens of a run by kind of question, and what is counted on the way."""

    def __init__(self, run: Run, asker: Asker, refresh: bool) -> None:
        self.run, self.models, self.asker, self.refresh = run, run.models, asker, refresh
        self.stages: dict[str, Counter[str]] = defaultdict(Counter)
        self.counts: Counter[str] = Counter()
        self.summarised = 0  # texts whose summary is asked for
        # To be embedded, by table, in the order in which the run does.
        self.texts: dict[str, dict[str, None]] = {"passages": {}, "entities": {}}

    def read(self, document: Document) -> None:
        """The questions about a document and the vectors of its passages."""
        text, outline = document.text, plugins.outline(document.uri, document.text)
        context = Context(document.uri, document.title, text, document.metadata)
        reader = self.models.extract
        asks = self.asker.on and outline is None and not is_note(document.uri, document.metadata)
        breaks = outline.breaks(text) if outline else None
        for unit in chunk(text, chunk_params(self.run.settings), breaks):
            self.counts.update(text_units=1, passages=len(unit.passages))
            for part in unit.passages:
                row = {"title": document.title, "text": text[part.start : part.end]}
                self.texts["passages"][vectors.embedded_text("passages", row)] = None
            shown = masked(text[unit.span.start : unit.span.end])
            if asks and reader is not None:
                messages, schema = reader.question(shown, context.line(unit.span.start))
                if self.refresh or not self.asker.settled(key_of(messages, schema)):
                    self.ask("extract", messages)

    def summarise(self, rows: Iterable[Row]) -> None:
        """The questions about documents without a summary, several short texts in one."""
        params = self.models.summaries
        if params is None or self.models.extract is not None or not self.asker.on:
            return
        parts, wholes = list[summaries.Part](), list[summaries.Part]()
        for row in rows:
            sections, before = summaries.parts_of(row, params.longest), len(parts)
            parts += [part for part in sections if not summaries.settled(self.asker, part, params)]
            if len(sections) > 1 and len(parts) > before:
                pairs = [(part, summaries.Summary("word " * 45)) for part in sections]
                wholes.append(summaries.whole_of(pairs, params.longest))
        self.summarised += len(parts)
        for asked_together in (parts, wholes):
            for texts in summaries.in_calls(asked_together, params.longest):
                self.ask("summary", summaries.ask(texts, params).messages, len(texts))

    def ask(self, kind: str, messages: Iterable[Message], replies: int = 1) -> None:
        tokens = sum(tokens_of(message.content) for message in messages)
        self.add(kind, 1, tokens, REPLY[kind] * replies)

    def add(self, kind: str, calls: int, prompt: int, reply: int = 0) -> None:
        self.stages[kind].update(calls=calls, prompt_tokens=prompt, output_tokens=reply)

    def finish(self) -> None:
        """Add what follows from replies."""
        settings, reports, extract = self.run.settings, self.models.reports, self.stages["extract"]
        if self.models.extract is not None:
            gleanings = GLEANED if settings.gleanings == "auto" else int(settings.gleanings)
            calls = round(gleanings * extract["calls"])
            prompt = round(gleanings * extract["prompt_tokens"]) + calls * REPLY["extract"]
            self.add("glean", calls, prompt, calls * REPLY["glean"])
        if reports is not None and self.asker.on:
            way = "light" if self.models.extract is None else "llm"
            texts, before = extract["calls"] + self.summarised, self.run.manifest
            if before is not None and before.parameters.get("reports") != reports.fingerprint:
                texts = max(texts, before.counters.get("text_units", 0))
            own = tokens_of(reports.template.template)
            calls, shown = -int(-REPORTS[way] * texts // 1), own + min(SHOWN[way], reports.tokens)
            self.add("report", calls, calls * shown, calls * REPLY["report"])
        if not (self.asker.embeds and self.models.embedding):
            return
        for embedded in self.texts.values():
            for call in self.asker.embedding_calls(list(embedded)):
                self.add("embedding", 1, sum(map(tokens_of, call)))
        if not self.texts["entities"]:
            names = NAMES * len(self.texts["passages"])
            self.add("embedding", -(-names // settings.embedding_batch), NAME_TOKENS * names)

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


def _not_summarised(run: Run, read: Collection[str], refresh: bool) -> Iterator[Row]:
    """Stored documents without a summary, or all to `refresh` them, but those that the run reads or
    removes."""
    if run.manifest is None or run.models.summaries is None:
        return
    snapshot, known = run.snapshot(), notes_of(run.snapshot())
    if not refresh and run.manifest.parameters.get("summaries") == run.models.summaries.fingerprint:
        rows = snapshot.rows("summaries", columns=["document_id"])
        known = known | {*values_of(rows["document_id"])}
    for batch in snapshot.batches("documents", COLUMNS):
        rows = batch.to_pylist()
        yield from (row for row in rows if row["id"] not in known and row["uri"] not in read)


def estimate(
    run: Run, request: IndexRequest, asker: Asker, open_units: Callable[[Run], set[str]]
) -> IndexResult:
    """What the call of `run` would read, and what it would ask of `asker`. `open_units`: uris of the
    documents with text units that a model is asked about again."""
    folder, before, settings, notes, status = run.folder, run.manifest, run.settings, "", "estimate"
    run.models = models.choose(request.method, settings, before, folder, asker)
    if before is not None:
        run.edits = edit_log.fold(edit_log.load(folder, before))
    plan = planning.make(folder, before, request, settings, run.edits)
    tally, again = Tally(run, asker, request.refresh_answers), set[str]()
    wanted = parameters(settings, run.models)
    if before is not None and wanted != {name: before.parameters.get(name) for name in wanted}:
        again = set(plan.live)
        notes = f"All {len(again)} documents are derived again: settings, models or the release are others."
    elif request.refresh_answers and run.models.extract is not None:
        again = set(plan.live)

    def picture(prompt: str) -> None:
        tally.add("picture", 1, tokens_of(prompt), tokens_of(pictures.LONGEST_DESCRIPTION))

    try:
        describe = None
        if request.method != "fast":
            describe = pictures.counter(asker, folder, settings, picture)
        if describe or run.models.extract or run.models.embedding or run.models.summaries:
            kept = vectors.without_others(before, run.models.embedding)
            if run.models.embedding and kept is not None and not notes:
                for table, texts in vectors.missing_texts(Snapshot(folder, kept)):
                    tally.texts[table] |= dict.fromkeys(texts.values())
            again |= open_units(run)
            read, rows = set[str](), list[Row]()
            for edit in planning.edits(folder, before, plan, request, settings, again, describe):
                run.check()
                if edit.what == "relog":  # nothing is derived of it
                    continue
                read.add(edit.uri)
                if (document := edit.document) is not None:
                    tally.read(document)
                    rows += [] if is_note(document.uri, document.metadata) else [_row(document)]
            tally.summarise([*rows, *_not_summarised(run, read, request.refresh_answers)])
    except Cancelled:
        status = "cancelled"
    tally.finish()
    known = {"files": len(plan.to_read), **tally.record()}
    known["bytes"] = sum(Path(file.path).stat().st_size for file in plan.to_read)
    notes = f"{notes} {PICTURES}".strip() if tally.stages["picture"] else notes
    counts = {"to_read": len(plan.to_read), "removed": len(plan.gone), "unchanged": plan.unchanged}
    return IndexResult(
        status=status,
        corpus=folder.name,
        errors=plan.errors,
        total=len(plan.to_read) + len(request.texts),
        counts={**counts, **tally.counts},
        skipped=dict(sorted(plan.found.skipped.items())),
        skipped_files=plan.found.named,
        hint=" ".join(filter(None, [*plan.notes, notes, run.models.note])),
        estimate=known,
    )
