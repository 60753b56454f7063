"""The command that starts this installation, what kind of installation it is, a trial start as a
client would do it, and the facts that a bug report needs."""

from __future__ import annotations

import json
import logging
import os
import platform
import re
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import metadata, util
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import urlsplit
from urllib.request import url2pathname

from graphrag_mcp import __version__
from graphrag_mcp.errors import BadInput, GraphRAGError, extra
from graphrag_mcp.install.hosts import here
from graphrag_mcp.install.install import installed
from graphrag_mcp.llm.protocols import LOCAL
from graphrag_mcp.llm.provider import shown_address
from graphrag_mcp.settings import Settings
from graphrag_mcp.store import manifest as manifests

PACKAGE = "graphrag-mcp"
FOLDER = Path(__file__).resolve().parents[2]  # that this package lies in
EXTRAS = {"ocr": ("rapidocr",), "vectors": ("onnxruntime", "tokenizers")}
_BY_HAND = "Run graphrag-mcp install with --print to see the command and try it; --no-check writes it all the same"


def command(prefix: str = sys.prefix, executable: str = sys.executable) -> list[str]:
    """The words that start this installation, before `serve`. BadInput for one of uvx."""
    if any(re.fullmatch(r"(archive|environments|builds)-v\d+", part) for part in Path(prefix).parts):
        what = "uvx started this program, and uv may remove its environment any day"
        raise BadInput(what, "Run in the folder of the project: uv tool install .")
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
    return {name: all(util.find_spec(module) for module in modules) for name, modules in EXTRAS.items()}


def installation(prefix: str = sys.prefix) -> str:
    """In a few words how this copy came here."""
    try:
        found = metadata.distribution(PACKAGE)
    except metadata.PackageNotFoundError:
        return f"run from {FOLDER}, not installed"
    if _checkout():
        return f"run from {FOLDER}; another copy, {found.version}, is installed in {prefix}"
    return f"installed in {prefix}"


def trial(words: Sequence[str], env: Mapping[str, str], folder: Path, seconds: float) -> tuple[float, int]:
    """Start a server with what a desktop client gives one (the user, a PATH with the system's own
    commands) and `env`, and list its tools: seconds until then, and how many. GraphRAGError when it
    fails."""
    import anyio
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    logging.getLogger("mcp.client.stdio").setLevel(logging.CRITICAL)  # it is told below
    began = time.monotonic()
    path = os.environ.get("PATH", "") if os.name == "nt" else "/usr/bin:/bin"
    options = {"env": {"PATH": path, **env}, "cwd": folder}
    server = StdioServerParameters(command=words[0], args=list(words[1:]), **options)

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
            what = f"the server does not start as this client would start it ({why})"
            raise GraphRAGError(what, _BY_HAND) from error


def _checkout() -> Path | None:
    """The folder this package is run from, where the interpreter would not find it by itself."""
    if FOLDER.name in ("site-packages", "dist-packages"):
        return None
    url = _origin()
    source = Path(url2pathname(urlsplit(str(url.get("url", ""))).path))
    ours = url.get("dir_info", {}).get("editable") and source.resolve() == FOLDER
    return None if ours else FOLDER


def _origin() -> dict[str, Any]:
    """What the installer noted of where it took the package from; nothing for one from an index, or
    where nothing is installed."""
    try:
        return dict(json.loads(metadata.distribution(PACKAGE).read_text("direct_url.json") or "{}"))
    except (metadata.PackageNotFoundError, ValueError):
        return {}


# ---- facts for a bug report ----------------------------------------------------------------------


def about(settings: Settings, corpora: Sequence[str], folder: Path | None, damaged: bool = False) -> dict[str, Any]:
    """`folder` is that of the corpus that is meant here, None when there is none yet."""
    home = Path.home()
    hosts, generation = installed(os.environ, home, Path.cwd()), None
    with suppress(GraphRAGError):
        found = manifests.read(folder) if folder else None
        generation = found.generation if found else None
    record: dict[str, Any] = {
        "version": __version__,
        "installed": installation(),
        "python": f"{platform.python_version()} at {sys.executable}",
        "extras": extras_present(),
        "models": _models(settings),
        "home": str(settings.home),
        "roots": [str(root) for root in settings.roots],
        "corpora": list(corpora),
        "corpus": folder.name if folder else "",
        "generation": generation,
        "hosts": hosts,
        "hosts_here": [host.name for host in here(os.environ, home)],
    }
    return {**record, "next": _next(settings, record, damaged)}


def lines(record: Mapping[str, Any]) -> list[str]:
    """The record for people: a line for each fact, client and next step."""

    def shown(value: Any) -> str:
        if isinstance(value, dict):
            return ", ".join(f"{name} {shown(part)}" for name, part in value.items() if part not in ("", None))
        if isinstance(value, list):
            return ", ".join(map(shown, value)) or "none"
        if isinstance(value, bool):
            return "yes" if value else "no"
        return "none" if value in (None, "") else str(value)

    rows = [
        (name, part) for name, value in record.items() for part in (value if name in ("hosts", "next") else [value])
    ]
    return [f"{name.replace('_', ' '):<11} {shown(value)}" for name, value in rows]


def _models(settings: Settings) -> dict[str, Any]:
    return {
        "chat": settings.chat_model,
        "embedding": settings.embedding_model,
        "rerank": settings.rerank_model,
        "server": shown_address(settings.base_url),
        "embedding_server": shown_address(settings.embedding_base_url or settings.base_url),
        "key_variable": settings.api_key_variable,
        "key_set": bool(os.environ.get(settings.api_key_variable)),
    }


def _next(settings: Settings, record: Mapping[str, Any], damaged: bool) -> list[str]:
    steps = ["graphrag-mcp doctor --repair"] if damaged else []
    if not record["corpora"]:
        steps.append("graphrag-mcp index FOLDER")
    named = settings.embedding_model, settings.rerank_model
    if any(name.startswith(LOCAL) for name in named) and not record["extras"]["vectors"]:
        steps.append(f"install {extra('vectors')}, or set another embedding_model")
    models = record["models"]
    if models["chat"] and not models["key_set"] and not models["server"]:
        variable = models["key_variable"]
        steps.append(f"set {variable}, or OPENAI_BASE_URL to a server that needs no key")
    install = "graphrag-mcp install --client"
    for host in record["hosts"]:
        if host["problem"] and host["name"]:
            steps.append(f"{install} {host['host']} (once more: {host['problem']})")
    if not any(host["name"] for host in record["hosts"]):
        steps.append(f"{install} {[*record['hosts_here'], 'NAME'][0]}")
    return steps or ["ask: graphrag-mcp search QUESTION, or your host's agent"]
