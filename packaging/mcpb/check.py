"""Build the bundle and use it as a host does: `python packaging/mcpb/check.py [--keep DIR]`.

Packs it twice and compares the bytes; has the manifest checked and the bundle unpacked by the official tool, which npm
installs (`@anthropic-ai/mcpb`); then starts the command of the manifest, uv, which makes a clean environment of what
the bundle declares, in a folder without this checkout, and lists the tools over MCP. Needs npm and a package index.
Claude Desktop itself is not needed, and what it shows is not checked.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import anyio

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OFFICIAL = "@anthropic-ai/mcpb@2"
NEEDED = {"index_documents", "local_search", "global_search", "get_source", "graph_status"}
PASSED = ("SSL_CERT_FILE", "SSL_CERT_DIR", "HTTPS_PROXY", "NO_PROXY")  # of a network with a proxy
SECONDS = 900  # for uv to install and for the server to answer


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def run(*command: str | Path, cwd: Path | None = None) -> str:
    """What a command prints; it must succeed."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def packed(folder: Path) -> Path:
    """The bundle; the same bytes each time."""
    first, second = folder / "graphrag-mcp.mcpb", folder / "again.mcpb"
    for target in (first, second):
        run(sys.executable, HERE / "pack.py", target)
    if first.read_bytes() != second.read_bytes():
        raise SystemExit("two bundles of one checkout differ")
    say(f"packed: {first.stat().st_size / 1e6:.1f} MB, the same bytes twice")
    return first


def opened(bundle: Path, folder: Path) -> Path:
    """The files of the bundle, unpacked by the official tool, which also checks the manifest."""
    npm = shutil.which("npm")
    if npm is None:
        raise SystemExit("npm is needed for the official tool")
    tool = folder / "tool"
    tool.mkdir()
    quiet = ("--silent", "--ignore-scripts", "--no-audit", "--no-fund")
    run(npm, "install", "--prefix", tool, *quiet, OFFICIAL)
    mcpb, inside = tool / "node_modules" / ".bin" / "mcpb", folder / "bundle"
    run(mcpb, "unpack", bundle, inside)
    say(f"unpacked: {sum(path.is_file() for path in inside.rglob('*'))} files")
    said = run(mcpb, "validate", inside / "manifest.json").strip().splitlines()
    say(f"manifest: {said[-1] if said else 'valid'}")
    return inside


def filled(text: str, inside: Path, documents: Path) -> str:
    """A part of the manifest's command with its variables replaced, as a host does: the folder that the
    user chose, and the defaults."""
    manifest = json.loads((inside / "manifest.json").read_text("utf-8"))
    known = {f"user_config.{name}": str(one.get("default", "")) for name, one in manifest["user_config"].items()}  # fmt: skip
    known |= {"__dirname": str(inside), "user_config.folders": str(documents)}
    return re.sub(r"\$\{([\w.]+)\}", lambda match: known[match[1]], text)


async def tools(inside: Path, folder: Path) -> list[str]:
    """The names of the tools that the server of the bundle lists, started as its manifest says."""
    from mcp import Client, StdioServerParameters

    config = json.loads((inside / "manifest.json").read_text("utf-8"))["server"]["mcp_config"]
    documents, clean = folder / "documents", folder / "uv"
    documents.mkdir()
    (documents / "note.md").write_text("# Lamp\n\nIda Noll lit the lamp of Ostra Point.\n", "utf-8")
    run(sys.executable, "-m", "venv", clean)
    run(clean / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "uv")
    index = subprocess.run((clean / "bin" / "pip", "config", "get", "global.index-url"), capture_output=True, text=True)  # fmt: skip
    environment = {
        "PATH": f"{clean / 'bin'}{os.pathsep}{os.defpath}",
        "HOME": str(folder),
        "GRAPHRAG_MCP_HOME": str(folder / "home"),
        "UV_SYSTEM_CERTS": "1",
        "UV_NATIVE_TLS": "1",  # the name of the same in older releases
        **{name: os.environ[name] for name in PASSED if name in os.environ},
        **({"UV_DEFAULT_INDEX": index.stdout.strip()} if index.stdout.strip() else {}),
        **{name: filled(value, inside, documents) for name, value in config["env"].items()},
    }
    command, *arguments = (filled(part, inside, documents) for part in (config["command"], *config["args"]))
    say(f"starting: {command} {' '.join(arguments)}")
    sync = (clean / "bin" / "uv", "sync", "--quiet", "--no-dev", "--extra", "docs")
    subprocess.run(sync, cwd=inside, env=environment, check=True, timeout=SECONDS)
    started = StdioServerParameters(
        command=str(clean / "bin" / command), args=arguments, env=environment, cwd=str(folder)
    )
    with anyio.fail_after(SECONDS):
        async with Client(started) as client:
            listed = sorted(tool.name for tool in (await client.list_tools()).tools)
            done = await client.call_tool("index_documents", {"paths": [str(documents)]})
            found = await client.call_tool("local_search", {"query": "Who lit the lamp?"})
    if done.is_error or found.is_error or "Ida Noll" not in str(found.content):
        raise SystemExit(f"indexing or searching failed: {done.content} {found.content}")
    return listed


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--keep", type=Path, metavar="DIR", help="put the bundle there")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary).resolve()
        bundle = packed(folder)
        inside = opened(bundle, folder)
        if any(ROOT in path.resolve().parents for path in inside.rglob("*")):
            raise SystemExit("the bundle leads back into this checkout")
        listed = anyio.run(tools, inside, folder)
        if missing := NEEDED - set(listed):
            raise SystemExit(f"tools that are missing: {', '.join(sorted(missing))}")
        say(f"tools: {len(listed)}, among them index_documents and local_search, which were called")
        if given.keep:
            given.keep.mkdir(parents=True, exist_ok=True)
            shutil.copy(bundle, given.keep)
    return 0


if __name__ == "__main__":
    sys.exit(main())
