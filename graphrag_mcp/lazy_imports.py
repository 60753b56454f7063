"""Imports of large packages without the parts that are not used here.

Takes the names of a package and of modules that it can do without; gives the package. What is stood
in for becomes itself again afterwards. Knows none of them. Measured in CPU seconds: lancedb 1.4 ->
0.4 without the models of a REST catalogue and without pandas (which `pyarrow.dataset` looks for
when it is imported), and 0.1 less where its methods are not compared with those that they override
(Python 3.11); openai 0.6 -> 0.3 without the models of every reply.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
import threading
import types
from collections.abc import Mapping, Sequence
from typing import Any

_importing = threading.RLock()
_alone = False


class _Absent(Exception):
    """Stands for any name of a stand-in; also where one is expected behind `except`."""

    @classmethod
    def __class_getitem__(cls, _: Any) -> type:
        return cls


class _StandIn(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = type(name, (_Absent,), {})
        setattr(self, name, made)
        return made


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(
        self,
        stand_ins: Sequence[str],
        missing: Sequence[str],
        instead: Mapping[str, Mapping[str, Any]],
    ) -> None:
        self.stand_ins, self.missing, self.instead = (*stand_ins, *instead), tuple(missing), instead
        self.thread = threading.get_ident()  # another thread may import the real ones meanwhile

    def find_spec(
        self, name: str, path: Any = None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        if threading.get_ident() != self.thread:
            return None
        if _within(name, self.missing):
            raise ModuleNotFoundError(f"{name} is not needed", name=name)
        return (
            importlib.machinery.ModuleSpec(name, self, is_package=True)
            if _within(name, self.stand_ins)
            else None
        )

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _StandIn(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        vars(module).update(self.instead.get(module.__name__, {}))


def _within(name: str, packages: Sequence[str]) -> bool:
    return any(name == one or name.startswith(f"{one}.") for one in packages)


def imported(
    package: str,
    stand_ins: Sequence[str] = (),
    missing: Sequence[str] = (),
    instead: Mapping[str, Mapping[str, Any]] = types.MappingProxyType({}),
) -> Any:
    """The package, imported at the first call; as it is when someone has imported it, or one of
    these, before.

    `stand_ins`: modules that only have to be importable; `missing`: modules that it asks for and
    does without; `instead`: names that it takes from a module, as it shall have them.
    """
    with _importing:
        if package in sys.modules or any(name in sys.modules for name in stand_ins):
            return importlib.import_module(package)
        before = set(sys.modules)
        instead = {name: given for name, given in instead.items() if name not in before}
        finder = _Finder(stand_ins, missing, instead)
        sys.meta_path.insert(0, finder)
        try:
            return importlib.import_module(package)
        except Exception:  # a release that does more with them while it is imported
            for name in [
                name
                for name in list(sys.modules)
                if name not in before and _within(name, [package])
            ]:
                del sys.modules[name]
        finally:
            sys.meta_path.remove(finder)
            for name in [
                name
                for name in list(sys.modules)
                if _within(name, finder.stand_ins) and name not in before
            ]:
                del sys.modules[name]
                parent, _, tail = name.rpartition(".")
                if isinstance(vars(sys.modules.get(parent, types)).get(tail), _StandIn):
                    delattr(
                        sys.modules[parent], tail
                    )  # the one that imports it later gets the real one
        return importlib.import_module(package)


def alone() -> None:
    """Say that no code but ours runs in this process: pandas is then not even looked for."""
    global _alone
    _alone = True


def is_alone() -> bool:
    return _alone


def arrow() -> Any:
    """The module `pyarrow`. At its first array it imports pandas, a third of a second and 40 MB, to
    see whether that is one of its series; in a process that is ours alone it looks in vain, and
    never again."""
    import pyarrow

    if _alone and "pandas" not in sys.modules:
        with _importing:
            finder = _Finder((), ("pandas",), {})
            sys.meta_path.insert(0, finder)
            try:
                pyarrow.array([0])
            finally:
                sys.meta_path.remove(finder)
    return pyarrow
