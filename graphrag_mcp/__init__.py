"""graphrag-mcp: a folder of documents in, a knowledge graph and tools for agents out.

Ten public names, none imported before it is used: `import graphrag_mcp` costs nothing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.2.0"

_HOME = {
    "App": "app",
    "Settings": "settings",
    "GraphRAGError": "errors",
    "build_server": "server",
    "index_documents": "index.pipeline",
    "local_search": "query.local",
    "global_search": "query.global_",
    "Drift": "query.drift",
    "export": "exchange.export",
    "digest": "doctor.generations",
}

__all__ = [*_HOME, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'graphrag_mcp' has no attribute {name!r}")
    return getattr(import_module(f"graphrag_mcp.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
