"""The MCP clients that `install` knows: where each keeps its configuration, the form of an entry,
and the documentation that says so.
"""

from __future__ import annotations

import base64
import json
import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode


@dataclass(frozen=True)
class Host:
    """One program that starts MCP servers, and how it wants to be told of one."""

    name: str  # after --client
    title: str
    key: str  # of the table of servers in its file
    project: str  # its file inside a project; "" = it has none
    program: str  # its command on the PATH; "" = none
    # how a value names an environment variable; "" = not at all; "env_vars" = a list beside it
    reference: str
    typed: bool = True  # wants "type": "stdio"
    # starts servers in the folder that the user works in, and with the user's environment
    follows: bool = False
    reload: str = ""  # what makes it read its configuration again
    check: str = ""  # how a user sees that the server is there
    gone: str = (
        ""  # the same after it has been taken out; "" = what makes it read its configuration does
    )

    @property
    def toml(self) -> bool:
        return self.key == "mcp_servers"


HOSTS = (
    # "Connect to local MCP servers", modelcontextprotocol.io. No values from the environment:
    # servers get HOME, PATH and little else. On Linux there is no official build; the others keep
    # to ~/.config/Claude.
    Host(
        "claude-desktop",
        "Claude Desktop",
        "mcpServers",
        "",
        "",
        "",
        typed=False,
        reload="Quit Claude Desktop (closing its window is not enough) and start it again",
        check="the tools of graphrag stand under the + below the message field; Settings > Developer shows errors",
    ),
    # "Connect Claude Code to tools via MCP", Claude Code Docs: user scope in ~/.claude.json,
    # project scope in .mcp.json with ${NAME} and ${NAME:-default}. Servers inherit the environment
    # of the command line.
    Host(
        "claude-code",
        "Claude Code",
        "mcpServers",
        ".mcp.json",
        "claude",
        "${%s:-}",
        follows=True,
        reload="Start a new session of claude",
        check="claude mcp list, or /mcp in a session",
    ),
    # "Model Context Protocol (MCP)", Cursor Docs: config locations, config interpolation.
    Host(
        "cursor",
        "Cursor",
        "mcpServers",
        ".cursor/mcp.json",
        "cursor",
        "${env:%s}",
        reload="Turn graphrag off and on in Cursor Settings > MCP, or restart Cursor",
        check="Cursor Settings > MCP shows graphrag with its tools",
    ),
    # "MCP configuration reference" and "Variables reference", Visual Studio Code documentation; run
    # in 1.139.1.
    Host(
        "vscode",
        "VS Code",
        "servers",
        ".vscode/mcp.json",
        "code",
        "${env:%s}",
        reload="VS Code starts it with the next message in its chat, or from MCP: List Servers; it may ask you first",
        check="MCP: List Servers in the command palette, then Show Output",
        gone="If it still runs, stop it: MCP: List Servers in the command palette",
    ),
    # "Model Context Protocol" and "Configuration Reference", Codex documentation: CODEX_HOME,
    # env_vars, time-outs.
    Host(
        "codex",
        "Codex",
        "mcp_servers",
        ".codex/config.toml",
        "codex",
        "env_vars",
        follows=True,
        reload="Start a new session of codex",
        check="codex mcp list, or /mcp in a session",
    ),
)
BY_NAME = {host.name: host for host in HOSTS}

# Clients whose entry is only printed, to be pasted; `reload` says where. From their documentation: "Cascade MCP
# integration" (Windsurf), "Model Context Protocol" (Zed, JetBrains AI Assistant, LM Studio, which takes Cursor's form),
# "MCP servers with the Gemini CLI", "MCP servers" (opencode), "Configuring MCP servers" (Cline), "Config file" (Goose).
PRINTED = (
    Host(
        "windsurf",
        "Windsurf",
        "mcpServers",
        "",
        "windsurf",
        "${env:%s}",
        typed=False,
        reload="Paste it into ~/.codeium/windsurf/mcp_config.json, then refresh the servers in Cascade",
    ),
    Host(
        "zed",
        "Zed",
        "context_servers",
        "",
        "zed",
        "",
        typed=False,
        reload="Paste it into Zed's settings.json (command palette: zed: open settings)",
    ),
    Host(
        "gemini-cli",
        "Gemini CLI",
        "mcpServers",
        "",
        "gemini",
        "${%s}",
        typed=False,
        reload="Paste it into ~/.gemini/settings.json, then see gemini mcp list",
    ),
    Host(
        "opencode",
        "opencode",
        "mcp",
        "",
        "opencode",
        "{env:%s}",
        typed=False,
        reload="Paste it into ~/.config/opencode/opencode.json, then see opencode mcp list",
    ),
    Host(
        "cline",
        "Cline",
        "mcpServers",
        "",
        "",
        "",
        typed=False,
        reload="Paste it into cline_mcp_settings.json (MCP Servers > Configure MCP Servers)",
    ),
    Host(
        "jetbrains",
        "JetBrains AI Assistant",
        "mcpServers",
        "",
        "",
        "",
        typed=False,
        reload="Settings > Tools > AI Assistant > Model Context Protocol (MCP) > Add > As JSON, and paste it",
    ),
    Host(
        "goose",
        "Goose",
        "extensions",
        "",
        "goose",
        "",
        typed=False,
        reload="Paste it into ~/.config/goose/config.yaml",
    ),
    Host(
        "lm-studio",
        "LM Studio",
        "mcpServers",
        "",
        "",
        "",
        typed=False,
        reload="Program > Install > Edit mcp.json, and paste it",
    ),
)


def printed(host: Host, name: str, made: Mapping[str, Any]) -> str:
    """The block to paste for a client of PRINTED, in its own form: JSON, or YAML for Goose."""
    if host.name == "goose":
        lines = [
            "extensions:",
            f"  {name}:",
            f"    name: {name}",
            "    type: stdio",
            "    enabled: true",
        ]
        lines += [
            f"    cmd: {json.dumps(made['command'])}",
            f"    args: {json.dumps(made['args'])}",
        ]
        lines += [f"    envs: {json.dumps(made.get('env', {}))}", "    timeout: 300"]
        return "\n".join(lines)
    entry = dict(made)
    if host.name == "opencode":
        entry = {"type": "local", "command": [made["command"], *made["args"]], "enabled": True}
        entry |= {"environment": made["env"]} if made.get("env") else {}
    return json.dumps({host.key: {name: entry}}, indent=2, ensure_ascii=False)


def user_file(
    host: Host, environ: Mapping[str, str], home: Path, platform: str = sys.platform
) -> Path:
    """The configuration of this user, whether or not it is there."""
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
    own = home / ".claude" if host.name == "claude-code" else file.parent
    command = host.program and shutil.which(host.program, path=environ.get("PATH"))
    return (
        os.path.exists(file) or (own != home and os.path.isdir(own)) or bool(command)
    )  # Path's may raise


def own_way(host: Host, name: str, made: Mapping[str, Any]) -> str:
    """The host's own command, or link, that would put the same entry in; "" where it has none."""
    words = ["--", made["command"], *made["args"]]
    env = [
        part for key, value in made.get("env", {}).items() for part in ("--env", f"{key}={value}")
    ]
    if host.name == "claude-code":
        return shlex.join(["claude", "mcp", "add", "--scope", "user", name, *env, *words])
    if host.name == "codex":
        return shlex.join(["codex", "mcp", "add", name, *env, *words])
    if host.name == "vscode":
        return shlex.join(["code", "--add-mcp", json.dumps({"name": name, **made})])
    if host.name == "cursor":
        packed = base64.b64encode(json.dumps(made).encode()).decode()
        query = urlencode({"name": name, "config": packed})
        return f"cursor://anysphere.cursor-deeplink/mcp/install?{query}"
    return ""


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
        for folder in sorted(
            packaged, key=lambda one: not (one / "claude_desktop_config.json").exists()
        ):
            return folder
    return _settings_folder(environ, home, platform) / "Claude"
