"""The models of a run and what each is used for.

Who reads the texts: method "fast" no model; "llm" the configured model, in full; "agent" the calling
agent (index/work.py); "light" no model, but the configured model writes a summary of every document and
the reports of topics; "reports" no model, but the agent writes the reports of the top topics; "auto"
the way in which a model or an agent last read the index (`last_reading`), also when the model is switched
off, else "light" if a model is configured, else none.

What a model is asked is imported where one is: most runs ask none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_mcp.errors import BadInput
from graphrag_mcp.llm.asker import Asker
from graphrag_mcp.settings import Settings
from graphrag_mcp.store import stored
from graphrag_mcp.store.manifest import Manifest
from graphrag_mcp.store.schema import REPORT_FORM, VECTOR_FORM

if TYPE_CHECKING:
    from graphrag_mcp.index.extraction import ExtractParams
    from graphrag_mcp.index.report_prompt import ReportPrompt
    from graphrag_mcp.index.summaries import SummaryParams

KEYLESS = "nlp"
TOP_LEVELS = 1  # levels of communities whose reports an agent writes, where it reads no text
TOP_TOKENS = 3_000  # of what it is shown of one


@dataclass(frozen=True, slots=True)
class Models:
    """`extract` and what follows: None where no one reads texts; `embedding`: "" for none."""

    asker: Asker
    settings: Settings
    extract: ExtractParams | None = None
    reports: ReportPrompt | None = None
    summaries: SummaryParams | None = None
    embedding: str = ""
    light: bool = False  # summaries and topic reports are asked for, and nothing else
    agent: bool = False  # what no one answers is left open for an agent
    reading: str = ""  # as `last_reading` finds it after this run
    fast: bool = False  # what models and agents wrote is left out

    @property
    def note(self) -> str:
        """What the settings ask for and this method does not do."""
        if self.fast and any(map(self.asker.has_answers, ("summary", "report", "extract"))):
            what = 'method="fast" leaves out what models and agents wrote of this corpus'
            return f"{what}; it is kept, and another method shows it again."
        return ""

    def parameters(self) -> dict[str, Any]:
        """What rows depend on besides documents and settings; `extraction` decides about documents'
        rows."""
        return {
            "extraction": self.extract.fingerprint if self.extract else KEYLESS,
            "reports": self.reports.fingerprint if self.reports else "",
            "report_form": REPORT_FORM,
            "summaries": self.summaries.fingerprint if self.summaries else "",
            "embedding": self.embedding,
            "vectors": VECTOR_FORM if self.embedding else "",
            "agent": self.agent,
            "light": self.light,
            "reading": self.reading,
        }


def choose(method: str, settings: Settings, manifest: Manifest | None, folder: Path, asker: Asker) -> Models:
    """Raises BadInput for a method that cannot be had."""
    settings = with_tuned(settings, folder)
    if method in ("llm", "light") and not asker.model:
        raise BadInput(
            f"method {method!r} needs a chat model and none is configured",
            "Set GRAPHRAG_MCP_CHAT_MODEL (and OPENAI_BASE_URL for a local server), or use method 'auto'",
        )
    way = reading_of(method, manifest, asker)
    light, reads, agent = way == "light", way in ("llm", "agent"), way == "agent"
    reading = way or last_reading(manifest)
    embedding = asker.embedding_model if method != "fast" else ""
    summaries = None
    if light or (method != "fast" and asker.has_answers("summary")):
        from graphrag_mcp.index.summaries import params_from as summary_params

        summaries = summary_params(settings, folder)
    if not way:
        models = Models(asker, settings, summaries=summaries, embedding=embedding)
        return replace(models, reading=reading, fast=method == "fast")
    from graphrag_mcp.index.report_prompt import prompt_from as report_prompt

    if light:
        prompt = report_prompt(settings, folder)
        models = Models(asker, settings, reports=prompt, summaries=summaries, embedding=embedding)
        return replace(models, light=True, reading=reading)
    if not reads:
        asker.leave_to_agents()
        prompt = report_prompt(settings, folder)
        # with less of each community: an agent reads some thirty of them
        reports = replace(prompt, levels=TOP_LEVELS, tokens=min(prompt.tokens, TOP_TOKENS))
        models = Models(asker, settings, reports=reports, summaries=summaries, embedding=embedding)
        return replace(models, reading=reading)
    from graphrag_mcp.index.extraction import params_from as extract_params

    if agent:  # an agent is asked once about a text
        settings = replace(settings, gleanings="0")
        asker.leave_to_agents()
    return Models(
        asker,
        settings,
        extract_params(settings, folder),
        report_prompt(settings, folder),
        summaries,
        embedding,
        agent=agent,
        reading=reading,
    )


def reading_of(method: str, manifest: Manifest | None, asker: Asker) -> str:
    """Who reads the texts in a run with this method: "light", "llm", "agent", "reports", or "" for no one.

    Under "auto" what the index was last read by decides, and replies in the cache do not: one may be left of
    a trial. Only of an index that no one has read they tell that a first reading in full was interrupted."""
    if method != "auto":
        return "" if method == "fast" else method
    last = last_reading(manifest)
    answered = asker.has_answers("extract")
    if not last and answered:
        return "llm"
    if last == "agent" and asker.model:
        return "llm" if answered else "light"
    return "light" if asker.model and last != "llm" else last


def last_reading(manifest: Manifest | None) -> str:
    """By which method a model or an agent read this index last, "" for none; "fast" keeps it."""
    before = manifest.parameters if manifest else {}
    if "reading" in before:
        return str(before["reading"])
    if before.get("light"):
        return "light"
    if manifest is not None and reads_in_full(manifest):
        return "agent" if before.get("agent") else "llm"
    return "reports" if before.get("reports") else ""


def reads_in_full(manifest: Manifest) -> bool:
    """Did a model or an agent read every text of this index?"""
    return manifest.parameters.get("extraction", KEYLESS) != KEYLESS


def with_tuned(settings: Settings, corpus_folder: Path) -> Settings:
    """The settings with what tuning found (`prompts/tuned.json`), where they are defaults."""
    try:
        found = stored.value((corpus_folder / "prompts" / "tuned.json").read_bytes())
    except (OSError, ValueError):
        return settings
    default, tuned = Settings(), {}
    types = found.get("entity_types") if isinstance(found, dict) else None
    if isinstance(types, list) and settings.entity_types == default.entity_types:
        tuned["entity_types"] = tuple(str(kind) for kind in types)
    language = found.get("output_language") if isinstance(found, dict) else None
    if isinstance(language, str) and not settings.output_language:
        tuned["output_language"] = language
    return replace(settings, **tuned)
