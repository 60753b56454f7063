"""Data types: rows of the engine and results of the tools. All spans are character offsets into
the text of a document, end exclusive."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeGuard

from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema


@dataclass(frozen=True, slots=True)
class InlineText:
    """A text of the call itself; its uri is `text:<id>` (without an id, its content hash)."""

    text: str
    id: str = ""
    title: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IndexRequest:
    """What a call of index_documents asks for. Paths are absolute and allowed by the caller."""

    paths: tuple[str, ...] = ()
    texts: tuple[InlineText, ...] = ()
    method: str = "auto"  # auto, fast, light, llm, agent, reports
    remove_missing: bool = False  # let it remove more than half of over 20 documents
    recluster: bool = False  # compute communities again though no text changed
    dry_run: bool = False
    refresh_answers: bool = False  # ask the model again, whatever stands in the reply cache
    retry_refused: bool = False  # ask again about texts whose replies were refused twice
    # folders without links in which the paths must still lie when they are read; (): any
    within: tuple[str, ...] = ()


# ---- what an agent sees -------------------------------------------------------------------------

State = Literal["answered", "context", "not_found", "partial", "stale", "failed"]


class Model(BaseModel):
    """A type of the protocol. What checks its values is built when the first is made: a command makes
    one or two of sixteen."""

    model_config = ConfigDict(defer_build=True)


class Citation(Model):
    """Where a piece of context stands in its original document."""

    id: str = Field(description="short id, e.g. t33 or t33.2; get_source takes it")
    title: str
    uri: str
    document_id: str
    char_start: int
    char_end: int
    line_start: int = 0
    line_end: int = 0
    place: str = Field(default="", description="page, slide, cells or time: p. 3, Costs!B7")
    text: str = Field(default="", description="what is shown of it")
    score: float = 0.0
    said: str = Field(default="", description="the day on which it was said (ISO 8601)")
    when: list[dict[str, Any]] = Field(
        default=[], description="days of which it speaks: {start, end, kind, char_start, char_end, anchor}"
    )


class Result(Model):
    """What every tool result carries: the same Markdown as the text channel, and the budget's
    account."""

    text: str = ""
    tokens: int = 0
    truncated: bool = False
    next_cursor: str = ""
    hint: str = ""
    next_call: str = ""
    suspicious: dict[str, str] = Field(default={}, description="by id: what its text was flagged for")
    view: SkipJsonSchema[str] = Field(default="", exclude=True)  # of the explorer page that shows it
    beside: SkipJsonSchema[int] = Field(default=0, exclude=True)  # tokens of a note that is shown beside the budget


class SearchResult(Result):
    state: State = "context"
    mode: str = ""
    corpus: str = ""
    answer: str = Field(default="", description="a model's answer, when one was asked for and given")
    method: str = Field(default="", description="who answered: llm:<model>")
    usage: dict[str, Any] = Field(default={}, description="calls, prompt_tokens, output_tokens, by_stage")
    citations: list[Citation] = []
    communities: list[str] = []
    coverage: dict[str, int] = Field(default={}, description="how much was considered, by kind")
    more: int = Field(default=0, description="relevant passages that are not shown")


class ListResult(Result):
    state: State = "context"
    corpus: str = ""
    total: int = Field(default=0, description="lines of the whole list")
    more: int = Field(default=0, description="lines that are not shown")


class DriftNode(Model):
    id: str
    parent: str = ""
    query: str
    kind: str = "follow-up"
    status: str = "frontier"
    score: float | None = None


class DriftResult(Result):
    corpus: SkipJsonSchema[str] = Field(default="", exclude=True)
    session_id: str = ""
    state: State = "context"
    open_node: str = ""
    frontier: list[DriftNode] = []
    answered: int = 0
    budget_left: int = 0
    done: bool = False
    citations: list[Citation] = []
    answer: str = ""
    method: str = ""
    usage: dict[str, Any] = {}


class EntityResult(Result):
    state: State = "context"
    id: str = ""
    title: str = ""
    type: str = ""
    description: str = ""
    aliases: list[str] = []
    degree: int = 0
    frequency: int = 0
    relationships: list[dict[str, Any]] = []
    communities: list[str] = []
    candidates: list[dict[str, Any]] = []
    citations: list[Citation] = []


class ReportResult(Result):
    state: State = "context"
    id: str = ""
    title: str = ""
    level: int = 0
    rating: float = 0.0
    method: str = "extractive"
    parent: str = ""
    children: list[str] = []
    members: list[str] = []
    stale: bool = False
    citations: list[Citation] = []


class SourceResult(Result):
    state: State = "context"
    sources: list[dict[str, Any]] = []


class ExploreResult(Result):
    """Parts of the graph: ids as everywhere (e12, r7, c5); edges and paths name entities by id."""

    state: State = "context"
    corpus: str = ""
    start: str = ""
    goal: str = ""
    nodes: list[dict[str, Any]] = Field(default=[], description="{id, title, type, degree, hops}")
    edges: list[dict[str, Any]] = Field(default=[], description="{id, source, target, weight}")
    paths: list[dict[str, Any]] = Field(default=[], description="{kind, entities, relationships, strength}")
    communities: list[dict[str, Any]] = Field(default=[], description="{id, title, level, parent, size}")
    candidates: list[dict[str, Any]] = []
    citations: list[Citation] = []


REFUSED = "of these, refused twice: asked again only with --retry-refused"
LOSSES = "records of replies: dropped, repaired, and of how many texts"


class IndexResult(Result):
    job_id: str = ""
    status: str = "done"  # queued, running, done, failed, cancelled
    corpus: str = ""
    done: int = 0
    total: int = 0
    counts: dict[str, int] = Field(default={}, description="added, changed, removed, unchanged, ...")
    skipped: dict[str, int] = {}
    skipped_files: list[dict[str, str]] = Field(
        default=[], description="files that were passed over: {path, suffix, reason}"
    )
    errors: list[dict[str, str]] = Field(
        default=[], description='{path, reason, kind}; kind "unread": a file in a folder that could not be read'
    )
    estimate: dict[str, Any] = {}
    usage: dict[str, Any] = Field(default={}, description="calls, prompt_tokens, output_tokens, by_stage")
    degraded: list[dict[str, str]] = Field(default=[], description="{kind, id, document, reason}")
    pending: dict[str, int] = Field(default={}, description="what a model still has to answer, by kind")
    refused: dict[str, int] = Field(default={}, description=REFUSED)
    losses: dict[str, int] = Field(default={}, description=LOSSES)
    poll_after_ms: int = 0
    seconds: dict[str, float] = Field(default={}, description="CPU seconds per stage")


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """True for a JSON object."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """True for a JSON list."""
    return isinstance(value, list)


class StatusResult(Result):
    corpus: str = ""
    corpora: list[str] = []
    generation: int = 0
    counts: dict[str, int] = {}
    levels: dict[str, int] = Field(default={}, description="communities per level")
    model: str = "none (extractive)"
    pending: dict[str, int] = Field(default={}, description="what a model still has to answer, by kind")
    refused: dict[str, int] = Field(default={}, description=REFUSED)
    losses: dict[str, int] = Field(default={}, description=LOSSES)
    jobs: list[dict[str, Any]] = []
    documents: list[dict[str, str]] = Field(default=[], description="of a job: {uri, state, error}")
    states: dict[str, int] = Field(default={}, description="of a job: its documents by state")
    stale: list[str] = []


class WorkResult(Result):
    corpus: str = ""
    items: list[dict[str, Any]] = Field(
        default=[], description="{work_id, kind}; what is to be read stands in the text"
    )
    accepted: list[str] = []
    rejected: list[dict[str, str]] = Field(default=[], description="{work_id, reason}")
    remaining: dict[str, int] = Field(default={}, description="open questions by kind")
    lease_seconds: int = 0


class EditResult(Result):
    corpus: str = ""
    op: str = ""
    dry_run: bool = True
    undo_id: str = Field(default="", description="op undo takes it")
    changes: dict[str, int] = Field(default={}, description="entities_added, relationships_removed, ...")
    ids: list[str] = Field(default=[], description="entities that come or change")
    edits: list[dict[str, Any]] = Field(default=[], description="{undo_id, what, by, time, state}")
    proposals: list[dict[str, Any]] = Field(default=[], description="{ids, names, kind, why, score}")


class NoteResult(Result):
    corpus: str = ""
    status: str = "done"  # of the indexing: queued, running, done, failed
    job_id: str = ""
    path: str = Field(default="", description="of the file, below the folder of notes")
    id: str = Field(default="", description="of the note as a document, e.g. d9")
    check: str = Field(default="", description="append, replace and undo take it")
    cites: int = Field(default=0, description="places of documents that it cites")
    documents: int = Field(default=0, description="that it cites")


class RemoveResult(Result):
    corpus: str = ""
    dry_run: bool = True
    job_id: str = ""
    status: str = ""
    undo_id: str = ""
    counts: dict[str, int] = Field(default={}, description="documents, text_units, entities")
    documents: list[str] = Field(default=[], description="uris")
    unknown: list[dict[str, Any]] = Field(default=[], description="{id, nearest}")
