"""What a run would ask of models, counted before it is asked.

The documents are read and cut as in the run, and their questions go to an asker that rehearses: the
reply cache answers what it can, every other question is counted with the tokens of its prompt. Replies,
and the questions that follow from replies (reports, second looks), are estimated."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

from graphrag_mcp import plugins
from graphrag_mcp.index import models, pictures, vectors
from graphrag_mcp.index.chunk import chunk_params
from graphrag_mcp.index.derive import row_of, units_of
from graphrag_mcp.index.extraction import extract_unit
from graphrag_mcp.index.outcome import of_plan
from graphrag_mcp.index.rereading import open_units
from graphrag_mcp.index.run import Cancelled, Row, Run, derives_all
from graphrag_mcp.index.summaries import BRIEF, Summary, parts_of, summarise
from graphrag_mcp.index.summaries_stage import COLUMNS, due, of_another
from graphrag_mcp.index.units import Context
from graphrag_mcp.llm.asker import REHEARSED, Ask, Asker
from graphrag_mcp.llm.budget import provider_tokens
from graphrag_mcp.llm.protocols import Usage
from graphrag_mcp.sources import diff as planning
from graphrag_mcp.sources.document import Document
from graphrag_mcp.store import edit_log
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.uris import is_note
from graphrag_mcp.trust.fencing import masked
from graphrag_mcp.types import IndexRequest, IndexResult

# Tokens of a reply, of a summary for each text. benchmarks/modelled.py --documents 20 (60 text units); 889 summaries
# and 13 reports by agents. A description of a picture may have the 400 words that its prompt allows.
REPLY = {"extract": 1350, "glean": 500, "summary": 160, "report": 850, "picture": 400}
GLEANED = 0.1  # second looks for each text that is read, with gleanings = "auto"
# Reports for each text, and tokens of what one shows: modelled.py, 442 news articles (464 text units) from summaries,
# 20 documents read in full.
REPORTS, SHOWN = {"light": 0.17, "llm": 0.25}, {"light": 1040, "llm": 3500}
# Names that rules find in a passage, and tokens of one with its sentence, where vectors are made: 1.8, 4.0, 4.4 and
# 4.6, and 52 to 62, in the sample, MuSiQue, Chinese notes and news.
NAMES, NAME_TOKENS = 4, 60


class _Rehearsal:
    """Counts the questions of a run into what its asker spent. `passages`: their texts, as vectors are made of them."""

    def __init__(self, run: Run, asker: Asker) -> None:
        self.run, self.asker, self.spent = run, asker, asker.spent()
        self.counts, self.passages, self.asked = Counter[str](), dict[str, None](), set[str]()
        for each in filter(None, (asker, asker.vision)):
            each.rehearsal = self.reply

    def reply(self, ask: Ask[Any]) -> str:
        """Count a question; a reply as long as one may be, where more is asked about it."""
        if ask.key not in self.asked:
            self.asked.add(ask.key)
            self.add(ask.kind, 1, sum(provider_tokens(one.content) for one in ask.messages))
        if ask.kind == "summary":
            return Summary("word " * BRIEF).as_json()
        return "word " * REPLY["picture"] if ask.kind == "picture" else ""

    def add(self, kind: str, calls: int, prompt: int, replies: int | None = None) -> None:
        """`replies`: as many as calls, where not given."""
        output = REPLY.get(kind, 0) * (calls if replies is None else replies)
        if calls or output:
            stage = self.spent.by_stage.setdefault(kind, Counter())
            stage.update(calls=calls, prompt_tokens=prompt, output_tokens=output)
            self.spent.cost += self.asker.budget.cost(kind, Usage(prompt, output))

    def read(self, document: Document) -> None:
        """Ask about the text units of a document."""
        text, reader = document.text, self.run.models.extract
        outline = plugins.outline(document.uri, text)
        context = Context(document.uri, document.title, text, document.metadata)
        is_read = outline is None and not is_note(document.uri, document.metadata)
        for unit in units_of(document, chunk_params(self.run.settings), outline):
            self.counts.update(text_units=1, passages=len(unit.passages))
            for part in unit.passages:
                row = {"title": document.title, "text": text[part.start : part.end]}
                self.passages[vectors.embedded_text("passages", row)] = None
            if reader is not None and is_read:
                shown = masked(text[unit.span.start : unit.span.end])
                line = context.line(unit.span.start)
                self.asker.wait(extract_unit(self.asker, shown, (), reader, line))

    def follow(self, summarised: int) -> None:
        """Add the questions that follow from replies, and the vectors. `summarised`: texts of which a summary
        is asked for."""
        models, settings, before = self.run.models, self.run.settings, self.run.manifest
        extract = self.spent.by_stage.get("extract", Counter())
        calls = self.spent.by_stage.get("summary", Counter())["calls"]
        self.add("summary", 0, 0, summarised - calls)
        texts = extract["calls"] + summarised
        gleanings = GLEANED if settings.gleanings == "auto" else int(settings.gleanings)
        calls = round(gleanings * extract["calls"])
        prompt = round(gleanings * extract["prompt_tokens"]) + calls * REPLY["extract"]
        self.add("glean", calls, prompt)
        if models.reports is not None and self.asker.on:
            way = "light" if models.extract is None else "llm"
            if before and before.parameters.get("reports") != models.reports.fingerprint:
                texts = max(texts, before.counters.get("text_units", 0))
            shown = provider_tokens(models.reports.template.template)
            shown += min(SHOWN[way], models.reports.tokens)
            calls = math.ceil(REPORTS[way] * texts)
            self.add("report", calls, calls * shown)
        if models.embedding and self.asker.embeds:
            for call in self.asker.embedding_calls(list(self.passages)):
                self.add("embedding", 1, sum(map(provider_tokens, call)))
            names = NAMES * len(self.passages)
            calls = math.ceil(names / settings.embedding_batch)
            self.add("embedding", calls, NAME_TOKENS * names)


def estimate(run: Run, request: IndexRequest, asker: Asker) -> IndexResult:
    """What the call of `run` would read, and what it would ask of `asker`."""
    before, settings, status, note = run.manifest, run.settings, "estimate", ""
    run.models = models.choose(request.method, settings, before, run.folder, asker)
    if before is not None:
        run.edits = edit_log.fold(edit_log.load(run.folder, before))
    plan = planning.make(run.folder, before, request, settings, run.edits)
    rehearsal = _Rehearsal(run, asker)
    if derives_all(run, request):
        again = {*plan.live}
        if not request.refresh_answers:  # which derives all of them, too
            note = f"All {len(again)} documents are derived again: settings, models or the release are others."
    else:
        again = open_units(run)
        kept = vectors.without_others(before, run.models.embedding)
        if run.models.embedding and kept is not None:
            missing = vectors.missing_texts(Snapshot(run.folder, kept), ("passages",))
            rehearsal.passages |= {text: None for _, texts in missing for text in texts.values()}
    describe = None
    if request.method != "fast":
        describe = pictures.describer(asker, run.folder, settings, run.take)
    chosen, summarised = run.models, 0
    asks = describe or chosen.extract or chosen.summaries or chosen.embedding
    given = (run.folder, before, plan, request, settings, again, describe)
    read, rows = set[str](), list[Row]()
    try:
        for edit in planning.edits(*given) if asks else ():
            run.check()
            if edit.what == "relog":  # nothing is derived of it
                continue
            read.add(edit.uri)
            if (document := edit.document) is not None:
                rehearsal.read(document)
                rows += [] if is_note(document.uri, document.metadata) else [row_of(document)]
        if chosen.summaries is not None and chosen.extract is None and asker.on:
            if before is not None:
                left = due(run, request.refresh_answers or of_another(run))
                ids = [row["id"] for row in left if row["uri"] not in read]
                rows += run.snapshot().served("documents", ids, COLUMNS)
            parts = [parts_of(row, chosen.summaries.longest) for row in rows]
            written = run.take(asker.start(summarise(asker, parts, chosen.summaries)))
            summarised = sum(result.reason == REHEARSED for result in written)
    except Cancelled:
        status = "cancelled"
    rehearsal.follow(summarised)
    known: dict[str, Any] = {"files": len(plan.to_read), **asker.spent().record()}
    known["cost"] = round(asker.spent().cost, 4)
    known["bytes"] = sum(Path(file.path).stat().st_size for file in plan.to_read)
    counts = rehearsal.counts
    counts.update(to_read=len(plan.to_read), removed=len(plan.gone), unchanged=plan.unchanged)
    return IndexResult(
        **of_plan(run, plan, status, note, chosen.note),
        total=len(plan.to_read) + len(request.texts),
        counts=dict(counts),
        estimate=known,
    )
