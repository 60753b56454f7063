"""The MCP clients that `install` knows: where each keeps its configuration, the form of an entry,
and the documentation that says so."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Host:
    """One program that starts MCP servers, and how it wants to be told of one."""

    name: str  # after --client
    title: str
    key: str  # of the table of servers in its file
    project: str = ""  # its file inside a project
    program: str = ""  # its command on the PATH
    # how a value names an environment variable; "" = not at all; "env_vars" = a list beside it
    reference: str = ""
    typed: bool = True  # wants "type": "stdio"
    # starts servers in the folder that the user works in, and with the user's environment
    follows: bool = False
    reload: str = ""  # what makes it read its configuration again
    check: str = ""  # how a user sees that the server is there
    # the same after it has been taken out; "" = what makes it read its configuration does
    gone: str = ""

    @property
    def toml(self) -> bool:
        return self.key == "mcp_servers"


_LISTS = tomllib.loads(Path(__file__).with_name("hosts.toml").read_text("utf-8"))
HOSTS = tuple(Host(**host) for host in _LISTS["hosts"])
BY_NAME = {host.name: host for host in HOSTS}
# Clients whose entry is only printed, to be pasted; `reload` says where.
PRINTED = tuple(Host(**host) for host in _LISTS["printed"])


def printed(host: Host, name: str, server: Mapping[str, Any]) -> str:
    """The block to paste for a client of PRINTED, in its own form: JSON, or YAML for Goose."""
    if host.name == "goose":
        fields = {"name": name, "type": "stdio", "enabled": "true"}
        values = {"cmd": server["command"], "args": server["args"], "envs": server.get("env", {})}
        fields |= {key: json.dumps(value) for key, value in values.items()} | {"timeout": "300"}
        lines = [f"    {key}: {value}" for key, value in fields.items()]
        return "\n".join(["extensions:", f"  {name}:", *lines])
    entry = dict(server)
    if host.name == "opencode":
        entry = {"type": "local", "command": [server["command"], *server["args"]], "enabled": True}
        entry |= {"environment": server["env"]} if server.get("env") else {}
    return json.dumps({host.key: {name: entry}}, indent=2, ensure_ascii=False)


def user_file(host: Host, environ: Mapping[str, str], home: Path, platform: str = sys.platform) -> Path:
    if host.name == "claude-desktop":
        return _claude_folder(environ, home, platform) / "claude_desktop_config.json"
    if host.name == "vscode":
        return _settings_folder(environ, home, platform) / "Code" / "User" / "mcp.json"
    if host.name == "claude-code":
        return Path(environ.get("CLAUDE_CONFIG_DIR") or home) / ".claude.json"
    if host.name == "codex":
        return Path(environ.get("CODEX_HOME") or home / ".codex") / "config.toml"
    return home / ".cursor" / "mcp.json"


def seen(host: Host, environ: Mapping[str, str], home: Path, platform: str = sys.platform) -> bool:
    """Whether the host seems to be on this machine: its file, its folder, or its command."""
    file = user_file(host, environ, home, platform)
    folder = home / ".claude" if host.name == "claude-code" else file.parent
    command = host.program and shutil.which(host.program, path=environ.get("PATH"))
    # Path's may raise
    return os.path.exists(file) or (folder != home and os.path.isdir(folder)) or bool(command)


def here(environ: Mapping[str, str], home: Path) -> list[Host]:
    """The hosts that seem to be on this machine."""
    return [host for host in HOSTS if seen(host, environ, home)]


def _settings_folder(environ: Mapping[str, str], home: Path, platform: str) -> Path:
    """Where desktop programs keep their settings."""
    if platform == "darwin":
        return home / "Library" / "Application Support"
    if platform == "win32":
        return Path(environ.get("APPDATA") or home / "AppData" / "Roaming")
    return Path(environ.get("XDG_CONFIG_HOME") or home / ".config")


def _claude_folder(environ: Mapping[str, str], home: Path, platform: str) -> Path:
    if platform == "win32":
        # Packaged as MSIX, as it has been since 2026, it has a Roaming folder of its own and never
        # reads the plain one.
        local = Path(environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
        packaged = sorted(local.glob("Packages/Claude_*/LocalCache/Roaming/Claude"))
        if packaged:
            written = (path for path in packaged if (path / "claude_desktop_config.json").exists())
            return next(written, packaged[0])
    return _settings_folder(environ, home, platform) / "Claude"
