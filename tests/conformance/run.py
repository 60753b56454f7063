"""The public conformance suite and the Inspector against this server, from nothing but npm.

Takes a folder for the Node packages (a temporary one without it); installs what is pinned here, unless it is there,
runs both requirement sets against the server with fixtures and against the product as it is, and the Inspector's strict
check of the tools. Prints one line per run; exit status 0 when all are as expected, 3 when npm has nothing to give.

A scenario has passed when each of its checks has succeeded, without a warning. A run is not as expected when something
fails that `baseline.yml` does not name, when an entry of it does not fail, or when other scenarios than `VACUOUS` pass
although the tool, prompt or resource that they ask for does not exist.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PACKAGES = ("@modelcontextprotocol/conformance@0.2.0-alpha.12", "@modelcontextprotocol/inspector@2.12.0")
REVISIONS = ("2026-07-28", "2025-11-25")
UNAVAILABLE = 3
# Scenarios that pass against the product without testing it, and why.
VACUOUS = {
    "tools-call-simple-text": "a result with text is asked for, and the refusal of an unknown tool is one",
    "tools-call-error": "an error result is asked for, and the refusal of an unknown tool is one",
    "completion-complete": "any completion will do, and that of an unknown prompt is empty",
    "resources-subscribe": "a subscription to a resource of another scheme is accepted, and never told anything",
    "resources-unsubscribe": "the same",
    "input-required-result-ignore-extra-params": "any complete result will do, and the refusal of an unknown tool is one",
}


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


@dataclass
class Run:
    """What one requirement set gave."""

    good: bool  # as the suite sees it
    text: str
    checks: dict[str, list[tuple[str, str]]]  # scenario -> (id, status) of its checks
    wanted: set[str]  # the scenarios that the revision requires of servers; the suite runs more
    vacuous: set[str] = field(default_factory=set)

    def passed(self) -> set[str]:
        good = {scenario for scenario, checks in self.checks.items() if all(status in FINE for _, status in checks)}
        return good & self.wanted

    def score(self) -> str:
        real = self.passed() - self.vacuous
        said = f"{len(real)} of {len(self.wanted)} required scenarios"
        if self.vacuous:
            said += f", {len(self.vacuous)} more without being tested"
        return said if real == self.wanted else f"{said}; the others need fixtures"


FINE = ("SUCCESS", "INFO", "SKIPPED")


def suite(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    script = folder / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    return subprocess.run(
        [node(folder), str(script), *arguments], cwd=folder, capture_output=True, encoding="utf-8", timeout=300
    )


def conformance(folder: Path, url: str, revision: str, baseline: Path | None = None) -> Run:
    """One requirement set against the server at `url`."""
    with tempfile.TemporaryDirectory() as results:
        command = ["server", "--url", url, "--requirements", revision, "-o", results]
        if baseline is not None:
            command += ["--expected-failures", str(baseline)]
        done = suite(folder, *command)
        checks = {}
        for path in Path(results).glob("*/checks.json"):
            scenario = re.sub(r"^server-|-\d{4}-\d\d-\d\dT[\d-]+Z$", "", path.parent.name)
            checks[scenario] = [(check["id"], check["status"]) for check in json.loads(path.read_text("utf-8"))]
    return Run(done.returncode == 0, done.stdout + done.stderr, checks, required(folder, revision))


def untested(folder: Path, url: str, revision: str, asked: Path, scenarios: set[str]) -> set[str]:
    """Those of the scenarios that ask for what the server does not have; it writes that down in `asked`."""
    found = set()
    for scenario in sorted(scenarios):
        asked.unlink(missing_ok=True)
        suite(folder, "server", "--url", url, "--scenario", scenario, "--spec-version", revision)
        if asked.exists():
            found.add(scenario)
    return found


def entries(baseline: Path) -> list[str]:
    """The scenarios, and single checks as `scenario:check`, that are expected to fail."""
    lines = (line.strip() for line in baseline.read_text("utf-8").splitlines())
    return [line.removeprefix("- ") for line in lines if line.startswith("- ")]


def stale(baseline: Sequence[str], runs: Sequence[Run]) -> list[str]:
    """Entries that did not fail in a run that had them, or that no run had. A warning is a failure of a check and not
    of its scenario."""
    found = []
    for entry in baseline:
        scenario, _, check = entry.partition(":")
        had = [
            [status for id, status in run.checks[scenario] if check in ("", id)]
            for run in runs
            if scenario in run.checks
        ]
        bad = ("FAILURE", "WARNING") if check else ("FAILURE",)
        if not had or any(not any(status in bad for status in statuses) for statuses in had):
            found.append(entry)
    return found


def product(folder: Path, home: Path) -> tuple[list[Run], list[str]]:
    """Both requirement sets against the product as it is; what is not as expected."""
    baseline = HERE / "baseline.yml"
    with serving(home) as url:
        runs = [conformance(folder, url, revision, baseline) for revision in REVISIONS]
        for revision, run in zip(REVISIONS, runs, strict=True):
            run.vacuous = untested(folder, url, revision, home / "asked", run.passed())
    wrong = [f"{entry}: named in baseline.yml, and passes" for entry in stale(entries(baseline), runs)]
    found = set().union(*(run.vacuous for run in runs))
    wrong += [f"{name}: passes without being tested, which VACUOUS does not say" for name in sorted(found - set(VACUOUS))]
    wrong += [f"{name}: is in VACUOUS, and does not pass untested" for name in sorted(set(VACUOUS) - found)]
    return runs, wrong


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
    text = suite(folder, "list", "--requirements", revision).stdout
    section = text.partition("Server scenarios")[2].partition("\n\n")[0]
    return set(re.findall(r"^\s+- (\S+)", section, re.MULTILINE))


def main(arguments: list[str]) -> int:
    with tempfile.TemporaryDirectory() as scratch:
        folder = installed(Path(arguments[0]).resolve() if arguments else Path(scratch) / "node")
        if folder is None:
            sys.stdout.write("npm is missing or cannot be reached\n")
            return UNAVAILABLE
        with serving(Path(scratch) / "with fixtures", "--fixtures") as url:
            whole = [conformance(folder, url, revision) for revision in REVISIONS]
        own, wrong = product(folder, Path(scratch) / "product")
        good, text = inspector(folder, Path(scratch) / "home", (), "--method", "tools/list", "--strict")
        lines = [(f"{one} with fixtures", run.good, run) for one, run in zip(REVISIONS, whole, strict=True)]
        lines += [(f"{one} product", run.good, run) for one, run in zip(REVISIONS, own, strict=True)]
        for name, fine, run in lines:
            told = run.score() + ("" if fine else f"\n{run.text}")
            sys.stdout.write(f"{'ok  ' if fine else 'FAIL'} {name}: {told}\n")
        sys.stdout.write("".join(f"FAIL {one}\n" for one in wrong))
        told = f"{text.count('inputSchema')} tools" if good else text
        sys.stdout.write(f"{'ok  ' if good else 'FAIL'} inspector --strict: {told}\n")
        return 0 if good and not wrong and all(fine for _, fine, _ in lines) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
