"""The facts that a bug report needs, printed at the end of `doctor`.

Takes the settings, the names of the corpora and the folder of the one that is meant; gives one
record, and the same as lines of text: version and installation, extras, who would answer, where
things are, what is live, in which hosts this server is, what to do next. Reads, never writes; calls
no one, opens no index, shows no key.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from graphrag_mcp import __version__
from graphrag_mcp.errors import GraphRAGError
from graphrag_mcp.install import launch
from graphrag_mcp.install.hosts import HOSTS, seen
from graphrag_mcp.install.install import installed
from graphrag_mcp.settings import Settings, shown_as
from graphrag_mcp.store import manifest as manifests

LOCAL = "local:"
SHOWN = 8  # corpora that are named; the rest is counted
NOBODY = "none; the agent that asks is the model"


def about(
    settings: Settings, corpora: Sequence[str], folder: Path | None, damaged: bool = False
) -> dict[str, Any]:
    """`folder` is that of the corpus that is meant here, None when there is none yet."""
    home = Path.home()
    hosts = installed(os.environ, home, Path.cwd())
    record: dict[str, Any] = {
        "version": __version__,
        "installed": launch.installation(),
        "python": f"{platform.python_version()} at {sys.executable}",
        "extras": launch.extras_present(),
        "models": _models(settings),
        "home": str(settings.home),
        "roots": [str(root) for root in settings.roots],
        "corpora": list(corpora),
        "corpus": folder.name if folder else "",
        "generation": _generation(folder),
        "hosts": hosts,
        "hosts_here": [host.name for host in HOSTS if seen(host, os.environ, home)],
    }
    return {**record, "next": _next(settings, record, damaged)}


def lines(record: Mapping[str, Any]) -> list[str]:
    """The record for people, one thing a line."""
    models, corpora, here = record["models"], record["corpora"], record["hosts_here"]
    names = [*corpora[:SHOWN], *([f"{len(corpora) - SHOWN} more"] if len(corpora) > SHOWN else [])]
    unclear = "none yet" if len(corpora) < 2 else "not clear: --corpus NAME says which"
    rows = [
        ("version", f"{record['version']}, {record['installed']}"),
        ("python", record["python"]),
        (
            "extras",
            ", ".join(
                f"{name} {'yes' if there else 'no'}" for name, there in record["extras"].items()
            ),
        ),
        ("chat model", _with_server(models["chat"], models) or NOBODY),
        ("vectors", _with_server(models["embedding"], models) or "none"),
        ("reranking", models["rerank"] or "none"),
        ("home", record["home"]),
        ("roots", ", ".join(record["roots"]) or "none: tools may index no folder from here"),
        ("corpora", ", ".join(names) or "none yet"),
        (
            "meant here",
            f"{record['corpus']}, generation {record['generation']}"
            if record["corpus"]
            else unclear,
        ),
    ]
    for host in record["hosts"]:
        problem = f" ({host['problem']})" if host["problem"] else ""
        rows.append(
            ("in host", f"{host['host']} as {host['name'] or '?'}: {host['file']}{problem}")
        )
    if not record["hosts"]:
        rows.append(("in host", "none" + (f"; found here: {', '.join(here)}" if here else "")))
    rows += [("next", step) for step in record["next"]]
    return [f"{name:<11} {row}" for name, row in rows]


def _models(settings: Settings) -> dict[str, Any]:
    return {
        "chat": settings.chat_model,
        "embedding": settings.embedding_model,
        "rerank": settings.rerank_model,
        "server": _shown(settings.base_url),
        "embedding_server": _shown(settings.embedding_base_url or settings.base_url),
        "key_variable": settings.api_key_variable,
        "key_set": bool(os.environ.get(settings.api_key_variable)),
    }


def _with_server(model: str, models: Mapping[str, Any]) -> str:
    if not model or model.startswith(LOCAL):
        return f"{model.removeprefix(LOCAL)}, in this process" if model else ""
    server = models["server"] if model == models["chat"] else models["embedding_server"]
    return f"{model} at {server or 'its provider'}, {models['key_variable']} {'set' if models['key_set'] else 'not set'}"


def _shown(url: str) -> str:
    """A server's address without a name or password that may be in it."""
    if not url:
        return ""
    parts = urlsplit(shown_as(url))
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _generation(folder: Path | None) -> int | None:
    try:
        found = manifests.read(folder) if folder else None
    except GraphRAGError:
        return None
    return found.generation if found else None


def _next(settings: Settings, record: Mapping[str, Any], damaged: bool) -> list[str]:
    steps = []
    if damaged:
        steps.append("graphrag-mcp doctor --repair")
    if not record["corpora"]:
        steps.append("graphrag-mcp index FOLDER")
    if not record["extras"]["local"] and any(
        model.startswith(LOCAL) for model in (settings.embedding_model, settings.rerank_model)
    ):
        steps.append("install the extra graphrag-mcp[local], or set another embedding_model")
    models = record["models"]
    if models["chat"] and not models["key_set"] and not models["server"]:
        steps.append(
            f"set {models['key_variable']}, or OPENAI_BASE_URL to a server that needs no key"
        )
    for host in record["hosts"]:
        if host["problem"] and host["name"]:
            steps.append(
                f"graphrag-mcp install --client {host['host']} (once more: {host['problem']})"
            )
    if not any(host["name"] for host in record["hosts"]):
        steps.append(
            f"graphrag-mcp install --client {record['hosts_here'][0] if record['hosts_here'] else 'NAME'}"
        )
    return steps or ["ask: graphrag-mcp search QUESTION, or your host's agent"]
