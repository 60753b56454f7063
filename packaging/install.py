"""Install with pip and say how far it is: `python packaging/install.py --megabytes N -e '.[dev]'` (`make demo` and others).

Plain lines, at most one every two seconds: what is downloaded and how many megabytes of about N that are, how many of
the packages are in place. pip knows the whole only when all is downloaded, so N is given: what was measured last. pip
itself says nothing while it installs, so the folder of packages is
counted. Uses the standard library alone, with the pip of the Python that runs it.
"""

from __future__ import annotations

import queue
import re
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Iterator
from pathlib import Path

PAUSE = 2.0  # seconds between two lines, and between two looks at the folder
KEPT = 30  # last lines of pip that are shown when it fails
FILE = re.compile(r"\s*(?:Downloading|Using cached) (\S+?)(\.metadata)? \(([\d.]+) (bytes|kB|MB|GB)\)")
MEGABYTES = {"bytes": 1e-6, "kB": 1e-3, "MB": 1.0, "GB": 1e3}


def plain(name: str) -> str:
    """The name of a package as it is compared: `Foo_bar[x]>=1` -> `foo-bar`."""
    found = re.match(r"[A-Za-z0-9._-]+", name)
    return re.sub(r"[-_.]+", "-", found[0] if found else name).lower()


class Progress:
    """What pip has said so far, and the line that tells it."""

    def __init__(self, folder: Path, megabytes: float = 0.0) -> None:
        self.folder = folder  # where packages are installed
        self.megabytes = megabytes  # of all downloads, about; 0 = not known
        self.looked_up: dict[str, None] = {}
        self.files: dict[str, float] = {}  # downloaded -> megabytes
        self.installing: list[str] = []
        self.last = ""

    def read(self, line: str) -> None:
        """Take in a line of pip."""
        if line.startswith("Collecting "):
            self.last = plain(line.split()[1])
            self.looked_up[self.last] = None
        elif match := FILE.match(line):
            name, metadata, size, unit = match.groups()
            if not metadata:
                self.last = plain(name.rpartition("/")[2].partition("-")[0])
                self.files[name] = float(size) * MEGABYTES[unit]
        elif line.startswith("Installing collected packages: "):
            self.installing = [plain(one) for one in line.partition(": ")[2].split(", ")]

    def told(self) -> str:
        """The state in one line; "" before there is any."""
        if self.installing:
            found = (path.name for path in self.folder.glob("*.dist-info"))
            there = {plain(name.partition("-")[0]) for name in found}
            done = [one for one in self.installing if one in there]
            now = next((one for one in self.installing if one not in there), "the last one")
            count = len(self.installing)
            return f"installing: {len(done)} of {count} packages are in place, now {now}"
        if self.files:
            size = sum(self.files.values())
            whole = f" of about {self.megabytes:,.0f}" if size < self.megabytes else ""
            return f"downloading: {size:,.0f}{whole} MB, now {self.last}"
        if self.looked_up:
            return f"looking up what is needed: packages so far {len(self.looked_up)}, now {self.last}"
        return ""


def lines_of(process: subprocess.Popen[str]) -> Iterator[str | None]:
    """The lines of a process as they come; None each time that a pause goes by without any."""
    said: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            said.put(line.rstrip("\n"))
        said.put(None)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    while True:
        try:
            line = said.get(timeout=PAUSE)
        except queue.Empty:
            yield None
            continue
        if line is None:
            return
        yield line


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> int:
    command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
    megabytes = 0.0
    if arguments[:1] == ["--megabytes"]:
        megabytes, arguments = float(arguments[1]), arguments[2:]
    command += ["--progress-bar", "off", *arguments]
    began, shown_at, shown = time.monotonic(), 0.0, ""
    progress, kept = Progress(Path(sysconfig.get_path("purelib")), megabytes), list[str]()
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, text=True, encoding="utf-8", errors="replace", **pipes) as pip:
        for line in lines_of(pip):
            if line is not None:
                progress.read(line)
                kept = [*kept, line][-KEPT:]
            told = progress.told() if time.monotonic() - shown_at >= PAUSE else ""
            if told and told != shown:
                say(f"  {told}")
                shown, shown_at = told, time.monotonic()
    if pip.returncode:
        sys.stderr.write("\n".join([*kept, ""]))
    elif progress.installing:
        size, seconds = sum(progress.files.values()), time.monotonic() - began
        say(f"  {len(progress.installing)} packages, {size:,.0f} MB, in {seconds:.0f} s")
    return pip.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
