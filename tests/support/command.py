"""The command line as a process of its own, and the folders that many tests use."""

from __future__ import annotations

import contextlib
import contextvars
import io
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "docs" / "sample"


def clean_environment(**extra: str) -> dict[str, str]:
    """The environment of a child process: ours without any setting, key or model of the developer's."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GRAPHRAG_MCP_", "OPENAI_"))}
    return {**kept, "PYTHONUTF8": "1", "PYTHONPATH": str(ROOT), **extra}


def run_cli(
    *arguments: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """`python -m graphrag_mcp ARGUMENTS` as a real process, output decoded as UTF-8."""
    return subprocess.run(
        [sys.executable, "-m", "graphrag_mcp", *map(str, arguments)],
        cwd=cwd or ROOT,
        env=env or clean_environment(),
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )


def run_here(*arguments: str | Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """As `run_cli`, in this process: a second less, where a test is not about the process."""
    from graphrag_mcp.cli.main import main

    def run() -> int:
        try:
            return main([*map(str, arguments)])
        except SystemExit as left:
            return int(left.code or 0)

    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.dict(os.environ, env or clean_environment(), clear=True),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        status = contextvars.copy_context().run(run)
    return subprocess.CompletedProcess(arguments, status, out.getvalue(), err.getvalue())
