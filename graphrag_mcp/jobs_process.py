"""Processes of jobs: one started beside the server, and which of two with one number is meant.

Takes a home folder and a job's id; gives a process that does that job (`graphrag-mcp index --job`), and for any number
a mark that no later process of that number has. Knows no record.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def started(home: Path, job_id: str) -> subprocess.Popen[bytes]:
    """`graphrag_mcp index --job` in a session of its own: the end of the server does not reach it."""
    command = [sys.executable, "-P", "-m", "graphrag_mcp", "index", "--job", job_id, "--home", str(home)]
    environment = dict(os.environ)
    package = Path(__file__).resolve().parents[1]
    if package.name not in ("site-packages", "dist-packages"):  # run from a checkout
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(package), environment.get("PYTHONPATH")]))
    with open(home / "jobs" / f"{job_id}.log", "ab") as output:
        options: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": output,
            "stderr": output,
            "env": environment,
        }
        if os.name == "nt":
            detached = 0x00000008 | 0x00000200  # DETACHED_PROCESS, CREATE_NEW_PROCESS_GROUP
            try:  # out of the host's job object too, where that is permitted
                return subprocess.Popen(command, creationflags=detached | 0x01000000, **options)
            except OSError:
                return subprocess.Popen(command, creationflags=detached, **options)
        return subprocess.Popen(command, start_new_session=True, **options)


def process_mark(pid: int) -> str:
    """What tells this process from a later one with the same number; "" when there is no such process."""
    if pid <= 0:
        return ""
    if sys.platform.startswith("linux"):
        try:
            stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
        except OSError:
            return ""
        return "" if stat[0] in "ZX" else stat[19]  # state; start time in clock ticks since boot
    if os.name == "nt":
        return _windows_mark(pid)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return ""
    except PermissionError:
        pass
    return "alive"


def _windows_mark(pid: int) -> str:
    """The creation time of a running process; os.kill would end it there."""
    import ctypes

    kernel = ctypes.windll.kernel32  # type: ignore[attr-defined]
    handle = kernel.OpenProcess(0x1000, False, pid)  # PROCESS_QUERY_LIMITED_INFORMATION
    if not handle:
        return ""
    try:
        code, times = ctypes.c_ulong(), [ctypes.c_ulonglong() for _ in range(4)]
        kernel.GetExitCodeProcess(handle, ctypes.byref(code))
        kernel.GetProcessTimes(handle, *(ctypes.byref(one) for one in times))
        return str(times[0].value) if code.value == 259 else ""  # STILL_ACTIVE
    finally:
        kernel.CloseHandle(handle)
