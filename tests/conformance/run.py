"""The public conformance suite and the Inspector against this server, from nothing but npm.

Takes a folder for the Node packages (a temporary one without it); installs what is pinned here, unless it is there,
runs both requirement sets against the server with fixtures and against the product as it is, and the Inspector's strict
check of the tools. Prints one line per run; exit status 0 when all are as expected, 3 when npm has nothing to give.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PACKAGES = ("@modelcontextprotocol/conformance@0.2.0-alpha.12", "@modelcontextprotocol/inspector@2.12.0")
REVISIONS = ("2026-07-28", "2025-11-25")
UNAVAILABLE = 3


def node_package() -> str:
    """The npm package that holds Node 22 for this machine: the suite needs it, and many machines have an older one."""
    system = {"Linux": "linux", "Darwin": "darwin", "Windows": "win"}[platform.system()]
    return f"node-{system}-{'arm64' if platform.machine().lower() in ('arm64', 'aarch64') else 'x64'}@22"


def installed(folder: Path) -> Path | None:
    """The folder of packages, filled when it is not; None when npm is missing or cannot be reached."""
    if (folder / "node_modules" / "@modelcontextprotocol" / "inspector").is_dir():
        return folder
    npm = shutil.which("npm")
    if npm is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text('{"private": true}', "utf-8")
    command = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", node_package(), *PACKAGES]
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", timeout=240)
    return folder if done.returncode == 0 else None


def node(folder: Path) -> str:
    kind = node_package().partition("@")[0]
    names = (folder / "node_modules" / kind / "bin" / "node", folder / "node_modules" / kind / "bin" / "node.exe")
    return str(next(name for name in names if name.exists()))


@contextlib.contextmanager
def serving(home: Path, *options: str) -> Iterator[str]:
    """The address of a server in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.conformance.app", *options, str(home)], stdout=subprocess.PIPE, text=True,
        cwd=ROOT, env=environment,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(20)


def conformance(folder: Path, url: str, revision: str, baseline: Path | None = None) -> tuple[bool, str]:
    """(as expected, what the suite says of it) for one requirement set."""
    suite = folder / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    command = [node(folder), str(suite), "server", "--url", url, "--requirements", revision]
    if baseline is not None:
        command += ["--expected-failures", str(baseline)]
    done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", timeout=300)
    return done.returncode == 0, done.stdout + done.stderr


def inspector(folder: Path, home: Path, options: Sequence[str], *arguments: str) -> tuple[bool, str]:
    """The Inspector against the product over stdio, served with some options."""
    launcher = folder / "node_modules" / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build" / "index.js"
    environment = {**os.environ, "HOME": str(folder), "USERPROFILE": str(folder)}
    # A file between: the launcher would take options of the product for its own.
    begin = home.parent / "serve.py"
    words = ["serve", "--home", str(home), *options]
    begin.write_text(f"from graphrag_mcp.cli.main import main\nmain({words!r})\n", "utf-8")
    environment["PYTHONPATH"] = str(ROOT)
    serve = [sys.executable, str(begin)]
    done = subprocess.run(
        [node(folder), str(launcher), "--cli", *serve, *arguments], cwd=ROOT, env=environment, capture_output=True,
        encoding="utf-8", timeout=120,
    )  # fmt: skip
    return done.returncode == 0, done.stdout + done.stderr


def required(folder: Path, revision: str) -> set[str]:
    """The scenarios that a revision requires of servers; the suite runs more, which it does not score."""
    suite = folder / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    command = [node(folder), str(suite), "list", "--requirements", revision]
    text = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", timeout=60).stdout
    section = text.partition("Server scenarios")[2].partition("\n\n")[0]
    return set(re.findall(r"^\s+- (\S+)", section, re.MULTILINE))


def score(text: str, wanted: set[str]) -> str:
    passed = set(re.findall(r"^✓ (\S+):", text, re.MULTILINE)) & wanted
    return f"{len(passed)} of {len(wanted)} required scenarios" + ("" if wanted <= passed else ", the others need fixtures")


def main(arguments: list[str]) -> int:
    with tempfile.TemporaryDirectory() as scratch:
        began = time.monotonic()
        folder = installed(Path(arguments[0]).resolve() if arguments else Path(scratch) / "node")
        if folder is None:
            sys.stdout.write("npm is missing or cannot be reached\n")
            return UNAVAILABLE
        runs: list[tuple[str, bool, str]] = []
        for name, options, baseline in (
            ("with fixtures", ("--fixtures",), None), ("product", (), HERE / "baseline.yml"),
        ):  # fmt: skip
            with serving(Path(scratch) / "home", *options) as url:
                for revision in REVISIONS:
                    good, text = conformance(folder, url, revision, baseline)
                    line = score(text, required(folder, revision))
                    runs.append((f"{revision} {name}", good, line if good else f"{line}\n{text}"))
        good, text = inspector(folder, Path(scratch) / "home", (), "--method", "tools/list", "--strict")
        runs.append(("inspector --strict", good, f"{text.count('inputSchema')} tools" if good else text))
        for name, good, text in runs:
            sys.stdout.write(f"{'ok  ' if good else 'FAIL'} {name}: {text}\n")
        sys.stdout.write(f"{time.monotonic() - began:.0f} s\n")
        return 0 if all(good for _, good, _ in runs) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
