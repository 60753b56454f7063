"""The command that starts this installation, what kind of installation it is, and a trial start as
a client would do it."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from importlib import metadata, util
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import urlsplit
from urllib.request import url2pathname

from graphrag_mcp.errors import GraphRAGError

PACKAGE = "graphrag-mcp"
EXTRAS = {"docs": ("markitdown", "pypdfium2", "openpyxl"), "local": ("sentence_transformers",)}
_BY_HAND = "Run graphrag-mcp install with --print to see the command and try it; --no-check writes it all the same"


def command(
    environ: Mapping[str, str], prefix: str = sys.prefix, executable: str = sys.executable
) -> list[str]:
    """The words that start this installation, before `serve`."""
    if in_uv_cache(prefix):
        # The environment that uvx made may be cleaned away any day; uvx itself stays.
        uv = environ.get("UV", "")
        uvx = str(Path(uv).with_name("uvx.exe" if uv.endswith(".exe") else "uvx")) if uv else ""
        if not os.path.isfile(uvx):
            uvx = shutil.which("uvx", path=environ.get("PATH")) or "uvx"
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
    here = _package_folder()
    try:
        found = metadata.distribution(PACKAGE)
    except metadata.PackageNotFoundError:
        return f"run from {here}, not installed"
    if _checkout():
        return f"run from {here}; another copy, {found.version}, is installed in {prefix}"
    if in_uv_cache(prefix):
        return "run by uvx"
    if _origin().get("dir_info", {}).get("editable"):
        return f"installed in {prefix}, editable, from {here}"
    parts = Path(prefix).parts
    if "tools" in parts and "uv" in parts:
        return f"installed by uv tool in {prefix}"
    return f"installed {'by pipx ' if 'pipx' in parts else ''}in {prefix}"


def in_uv_cache(prefix: str) -> bool:
    return any(
        re.fullmatch(r"(archive|environments|builds)-v\d+", part) for part in Path(prefix).parts
    )


def trial(
    words: Sequence[str], env: Mapping[str, str], folder: Path, seconds: float
) -> tuple[float, int]:
    """Start a server with what a desktop client gives one (the user, a PATH with the system's own
    commands) and `env`, and list its tools: seconds until then, and how many. GraphRAGError when it
    fails."""
    import anyio
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    logging.getLogger("mcp.client.stdio").setLevel(logging.CRITICAL)  # it is told below
    began = time.monotonic()
    path = os.environ.get("PATH", "") if os.name == "nt" else "/usr/bin:/bin"
    server = StdioServerParameters(
        command=words[0], args=list(words[1:]), env={"PATH": path, **env}, cwd=folder
    )

    async def listed(errors: TextIO) -> tuple[float, int]:
        with anyio.fail_after(seconds):
            async with Client(stdio_client(server, errors)) as client:
                found = await client.list_tools()
                return time.monotonic() - began, len(found.tools)

    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        try:
            return anyio.run(listed, errors)
        except Exception as error:  # of the system, the protocol's own, and groups of them
            errors.seek(0)
            why = " / ".join(errors.read().strip().splitlines()[-3:])[:400]
            if not why:
                late = f"no answer within {seconds:.0f} s"
                why = late if isinstance(error, TimeoutError) else f"no answer that is MCP: {error}"
            what = f"the server does not start as this host would start it ({why})"
            raise GraphRAGError(what, _BY_HAND) from error


def _package_folder() -> Path:
    return Path(__file__).resolve().parents[2]


def _checkout() -> Path | None:
    """The folder this package is run from, where the interpreter would not find it by itself."""
    here = _package_folder()
    if here.name in ("site-packages", "dist-packages"):
        return None
    url = _origin()
    source = Path(url2pathname(urlsplit(str(url.get("url", ""))).path))
    return None if url.get("dir_info", {}).get("editable") and source.resolve() == here else here


def _source() -> str:
    """Where uvx took the package from, as it wants to be told again; "" for an index."""
    origin = _origin()
    if not origin.get("url"):
        return ""
    vcs = origin.get("vcs_info", {})
    return f" @ {vcs['vcs']}+{origin['url']}@{vcs['commit_id']}" if vcs else f" @ {origin['url']}"


def _origin() -> dict[str, Any]:
    """What the installer noted of where it took the package from; nothing for one from an index, or
    where nothing is installed."""
    try:
        return dict(json.loads(metadata.distribution(PACKAGE).read_text("direct_url.json") or "{}"))
    except (metadata.PackageNotFoundError, ValueError):
        return {}
