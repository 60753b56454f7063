"""LanceDB without its client for remote catalogues.

Takes nothing; gives the module `lancedb`. Importing it also imports `lance_namespace` and builds several hundred
pydantic models of a REST API: 0.7 of 1.4 CPU seconds, in every process, for connections that are never made here. So
these two packages are stood in for while lancedb is imported, and are themselves again afterwards.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import os
import sys
import threading
import types
from typing import Any

UNUSED = ("lance_namespace", "lance_namespace_urllib3_client")
_importing = threading.Lock()


class _Absent(Exception):
    """Stands for any class of the unused packages; also where lancedb names one behind `except`."""


class _Empty(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = type(name, (_Absent,), {})
        setattr(self, name, made)
        return made


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        unused = name.partition(".")[0] in UNUSED
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if unused else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _Empty(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def lancedb() -> Any:
    """The module, imported at the first call; as it is when somebody has imported it before."""
    os.environ.setdefault("LANCEDB_LOG", "error")  # else Lance writes warnings to stderr; read when it is imported
    with _importing:
        if "lancedb" in sys.modules or any(name in sys.modules for name in UNUSED):
            return importlib.import_module("lancedb")
        finder = _Finder()
        sys.meta_path.insert(0, finder)
        try:
            return importlib.import_module("lancedb")
        except Exception:  # a release that does more with them while it is imported
            for name in [name for name in sys.modules if name.partition(".")[0] == "lancedb"]:
                del sys.modules[name]
        finally:
            sys.meta_path.remove(finder)
            for name in [name for name in sys.modules if name.partition(".")[0] in UNUSED]:
                del sys.modules[name]
        return importlib.import_module("lancedb")
