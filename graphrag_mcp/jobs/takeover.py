"""What a job may do that another process has left open. Its record is a file of the home, and a home
may have been made by others: the job is done with the roots, addresses, options and key variable of
the process that takes it over, or it waits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from graphrag_mcp.errors import GraphRAGError
from graphrag_mcp.jobs.queue import Job
from graphrag_mcp.settings import Settings, from_record, record_of

# Settings that decide where a job connects to, what it sends along, and which files it may open.
REACHING = (*("base_url", "embedding_base_url", "api_key_variable", "chat_options", "engine_address"), "hard_links")
MODELS = ("chat_model", "vision_model", "embedding_model", "rerank_model")
LOCAL = "local:"  # begins a model that is a folder of this machine
# Jobs that were asked for in this process. The process id of a record does not tell them: in containers
# most processes have the same.
_asked: set[str] = set()


def asked_here(job: Job) -> bool:
    """Was the job asked for in this process?"""
    return job.job_id in _asked


def remember(job: Job) -> None:
    """Note that the job was asked for in this process."""
    _asked.add(job.job_id)


def objection(settings: Settings, job: Job) -> str:
    """Why a process with these settings may not do a job; "" where it may. What was asked
    for in it, it always may."""
    if asked_here(job):
        return ""
    roots = roots_of(settings)
    if not all(_within(path, roots) for path in job.request.get("paths", ())):
        return "a path of it lies outside of the roots of this server"
    return of_settings(settings, job.settings)


def of_settings(settings: Settings, record: Mapping[str, Any]) -> str:
    """The same for the settings in a record."""
    templates: Any = record.get("templates") or {}
    mine = record_of(settings).get("templates", {})
    if not isinstance(templates, Mapping):
        return "its settings cannot be read"
    pairs = cast(Mapping[str, Any], templates).items()
    if any(mine.get(name) != template for name, template in pairs):
        return "its settings hold other variables of the environment than those of this server"
    try:
        theirs = from_record(settings, record)
    except GraphRAGError:
        return "its settings cannot be read"
    for name in REACHING:
        if getattr(theirs, name) != getattr(settings, name):
            return f"its {name} is not that of this server"
    for name in MODELS:
        model = getattr(theirs, name)
        if model.startswith(LOCAL) and model != getattr(settings, name):
            return f"its {name} is a folder that this server does not use"
        if model and not getattr(settings, name):
            return f"it has a {name}, and this server has none"
    return ""


def confined(settings: Settings, job: Job) -> Job:
    """The job with its files held to the roots of this process when they are read."""
    if not asked_here(job) and job.request.get("paths"):
        job.request = {**job.request, "within": list(map(str, roots_of(settings)))}
    return job


def roots_of(settings: Settings) -> list[Path]:
    """The folders that may be read, without links."""
    return [root.resolve() for root in settings.roots]


def _within(path: str, roots: Iterable[Path]) -> bool:
    try:
        real = Path(path).resolve()
    except (OSError, RuntimeError, ValueError):
        return False
    return any(real.is_relative_to(root) for root in roots)
