"""LanceDB is imported in one thread while others import modules too."""

from __future__ import annotations

import sys
import threading
from types import ModuleType

from graphrag_mcp.store import tables


def test_other_threads_may_import_while_lancedb_is_imported() -> None:
    done = threading.Event()

    def imports() -> None:
        number = 0
        while not done.is_set():
            sys.modules[f"module_of_a_test_{number % 500}"] = ModuleType("module")
            sys.modules.pop(f"module_of_a_test_{(number + 250) % 500}", None)
            number += 1

    interval = sys.getswitchinterval()
    other = threading.Thread(target=imports)
    sys.setswitchinterval(1e-6)
    other.start()
    try:
        for _ in range(3000):
            with tables._without_rest_client():  # pyright: ignore[reportPrivateUsage]
                pass
    finally:
        done.set()
        other.join()
        sys.setswitchinterval(interval)
        for name in [name for name in sys.modules if name.startswith("module_of_a_test_")]:
            del sys.modules[name]
