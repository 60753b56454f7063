"""The command that starts this installation, what kind of installation it is, and a trial start as
a client would do it."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from importlib import metadata, util
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from graphrag_mcp.errors import GraphRAGError

PACKAGE = "graphrag-mcp"
EXTRAS = {"docs": ("markitdown", "pypdfium2", "openpyxl"), "local": ("sentence_transformers",)}
# What hosts hand on by themselves, as the protocol's own client does.
HANDED_ON = ("HOME", "LOGNAME", "SHELL", "TERM", "USER")
HANDED_ON_WINDOWS = tuple(
    (
        "APPDATA HOMEDRIVE HOMEPATH LOCALAPPDATA PATHEXT PROCESSOR_ARCHITECTURE "
        "PROGRAMFILES SYSTEMDRIVE SYSTEMROOT TEMP USERNAME USERPROFILE"
    ).split()
)


def command(
    environ: Mapping[str, str], prefix: str = sys.prefix, executable: str = sys.executable
) -> list[str]:
    """The words that start this installation, before `serve`."""
    if in_uv_cache(prefix):
        # The environment that uvx made may be cleaned away any day; uvx itself stays.
        uv = environ.get("UV", "")
        beside = Path(uv).with_name("uvx.exe" if uv.endswith(".exe") else "uvx") if uv else None
        uvx = (
            str(beside)
            if beside and beside.is_file()
            else shutil.which("uvx", path=environ.get("PATH")) or "uvx"
        )
        extras = [name for name, there in extras_present().items() if there]
        spec = PACKAGE + (f"[{','.join(extras)}]" if extras else "") + _source()
        return [uvx, PACKAGE] if spec == PACKAGE else [uvx, "--from", spec, PACKAGE]
    folder = Path(executable).parent
    for script in (folder / PACKAGE, folder / f"{PACKAGE}.exe"):
        if script.is_file() and _checkout() is None:
            return [str(script)]
    # -P: a file such as json.py in the folder where a host starts it must not be taken for the
    # library's.
    return [executable, "-P", "-m", "graphrag_mcp"]


def environment() -> dict[str, str]:
    """What a server needs beyond a host's environment: the checkout, where nothing is installed."""
    checkout = _checkout()
    return {"PYTHONPATH": str(checkout)} if checkout else {}


def extras_present() -> dict[str, bool]:
    """Whether what each optional extra brings can be imported; nothing is."""
    return {
        name: all(util.find_spec(module) for module in modules) for name, modules in EXTRAS.items()
    }


def installation(prefix: str = sys.prefix) -> str:
    """In a few words how this copy came here."""
    try:
        found = metadata.distribution(PACKAGE)
    except metadata.PackageNotFoundError:
        return f"run from {_package_folder()}, not installed"
    if _checkout():
        return (
            f"run from {_package_folder()}; another copy, {found.version}, is installed in {prefix}"
        )
    if in_uv_cache(prefix):
        return "run by uvx"
    if _origin(found).get("dir_info", {}).get("editable"):
        return f"installed in {prefix}, editable, from {_package_folder()}"
    parts = Path(prefix).parts
    kind = (
        "by uv tool "
        if "tools" in parts and "uv" in parts
        else "by pipx "
        if "pipx" in parts
        else ""
    )
    return f"installed {kind}in {prefix}"


def in_uv_cache(prefix: str) -> bool:
    return any(
        re.fullmatch(r"(archive|environments|builds)-v\d+", part) for part in Path(prefix).parts
    )


def poorest_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What a desktop host gives a server: the user, and a PATH with the system's own commands."""
    if os.name == "nt":
        given = {name: environ[name] for name in HANDED_ON_WINDOWS if environ.get(name)}
        return {**given, "PATH": environ.get("PATH", "")}
    return {
        **{name: environ[name] for name in HANDED_ON if environ.get(name)},
        "PATH": "/usr/bin:/bin",
    }


def trial(
    words: Sequence[str], env: Mapping[str, str], folder: Path, seconds: float
) -> tuple[float, int]:
    """Start a server, shake hands, list its tools: seconds until then, and how many. GraphRAGError
    when it fails."""
    began = time.monotonic()
    try:
        process = subprocess.Popen(
            list(words),
            env=dict(env),
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    except OSError as error:
        raise GraphRAGError(
            f"{words[0]} cannot be started ({error.strerror or error})", _BY_HAND
        ) from error
    lines: queue.Queue[bytes] = queue.Queue()
    said: list[bytes] = []
    readers = [
        threading.Thread(
            target=lambda: [lines.put(line) for line in process.stdout or ()] + [lines.put(b"")],
            daemon=True,
        ),
        threading.Thread(target=lambda: said.extend(process.stderr or ()), daemon=True),
    ]
    for reader in readers:
        reader.start()
    try:
        answer: dict[str, object] = {}
        for message in _HANDSHAKE:
            assert process.stdin is not None
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            process.stdin.flush()
            while "id" in message and answer.get("id") != message["id"]:
                line = lines.get(timeout=max(0.01, began + seconds - time.monotonic()))
                if not line:
                    raise EOFError
                answer = json.loads(line)
        tools = answer["result"]["tools"]  # type: ignore[index]
        return time.monotonic() - began, len(tools)
    except (
        OSError,
        EOFError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
        queue.Empty,
    ) as error:
        process.kill()
        readers[1].join(2)
        last = " / ".join(b"".join(said).decode("utf-8", "replace").strip().splitlines()[-3:])[:400]
        late = "no answer that is MCP"
        if isinstance(error, queue.Empty):
            late = f"no answer within {seconds:.0f} s"
        what = f"the server does not start as this host would start it ({last or late})"
        raise GraphRAGError(what, _BY_HAND) from error
    finally:
        process.kill()
        process.wait(10)
        for stream in (process.stdin, process.stdout, process.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.close()  # type: ignore[union-attr]


_BY_HAND = "Run graphrag-mcp install with --print to see the command and try it; --no-check writes it all the same"
_CLIENT = {"protocolVersion": "2025-06-18", "capabilities": {}}
_CLIENT |= {"clientInfo": {"name": "graphrag-mcp", "version": "1"}}
_HANDSHAKE: tuple[dict[str, object], ...] = (
    {"id": 1, "method": "initialize", "params": _CLIENT},
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/list"},
)


def _package_folder() -> Path:
    return Path(__file__).resolve().parents[2]


def _checkout() -> Path | None:
    """The folder this package is run from, where the interpreter would not find it by itself."""
    here = _package_folder()
    if here.name in ("site-packages", "dist-packages"):
        return None
    try:
        url = _origin(metadata.distribution(PACKAGE))
    except metadata.PackageNotFoundError:
        return here
    source = Path(url2pathname(urlsplit(str(url.get("url", ""))).path))
    return None if url.get("dir_info", {}).get("editable") and source.resolve() == here else here


def _source() -> str:
    """Where uvx took the package from, as it wants to be told again; "" for an index."""
    try:
        origin = _origin(metadata.distribution(PACKAGE))
    except metadata.PackageNotFoundError:
        return ""
    if not origin.get("url"):
        return ""
    vcs = origin.get("vcs_info", {})
    return f" @ {vcs['vcs']}+{origin['url']}@{vcs['commit_id']}" if vcs else f" @ {origin['url']}"


def _origin(found: metadata.Distribution) -> dict[str, Any]:
    """What the installer noted of where it took the package from; nothing for one from an index."""
    try:
        return dict(json.loads(found.read_text("direct_url.json") or "{}"))
    except ValueError:
        return {}
