"""Init: a settings file and the shipped prompts, to edit.

Every default stands behind a `#`, so a later release may change it. No key is written: a setting
holds the name of the variable that has it."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from graphrag_mcp.errors import BadInput
from graphrag_mcp.llm import prompts
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.manifest import write_durably

FILE = "graphrag-mcp.toml"
HEAD = """\
# Settings of graphrag-mcp, used when GRAPHRAG_MCP_SETTINGS names this file. Take the "# " from a line to change it.
# In quotes, ${...} with the name of an environment variable inside is replaced by its value; a missing one is an error.
# Environment and command line come after this file. Never write a key here: api_key_variable says where it is.
"""
# heading -> setting -> what it does
GROUPS: dict[str, dict[str, str]] = tomllib.loads(Path(__file__).with_name("settings.toml").read_text("utf-8"))
README = Path(__file__).with_name("prompts.md").read_text("utf-8")  # beside the copies


def init(folder: Path, force: bool = False) -> list[Path]:
    """Write the settings file and the prompts into `folder`; the paths written, the settings file
    first.

    Raises BadInput when one of the files is there already (unless `force`) or cannot be written;
    then nothing was."""
    shipped = prompts.folder()
    texts = {folder / FILE: settings_text(), folder / "prompts" / "README.md": README}
    for name in prompts.names():
        texts[folder / "prompts" / f"{name}.md"] = (shipped / f"{name}.md").read_text("utf-8")
    taken = [path for path in texts if path.exists()]
    if taken and not force:
        more = f" and {len(taken) - 1} more" if len(taken) > 1 else ""
        what = f"{taken[0]}{more} would be overwritten"
        raise BadInput(what, "Name another folder, or give --force")
    try:
        (folder / "prompts").mkdir(parents=True, exist_ok=True)
        for path, text in texts.items():
            write_durably(path, text.encode())
    except OSError as error:
        what = f"{folder} cannot be written ({error.strerror})"
        raise BadInput(what, "Name another folder") from error
    return list(texts)


def settings_text() -> str:
    """The settings file: `## ` before what explains, `# ` before a default."""
    usual, lines = Settings(), [HEAD]
    for heading, settings in GROUPS.items():
        lines.append(f"\n## ---- {heading} ----\n")
        for name, what in settings.items():
            lines.append(f"## {what}\n# {name} = {_toml(getattr(usual, name))}\n")
    return "".join(lines)


def _toml(value: Any) -> str:
    """JSON, which TOML reads alike but for tables: these are written inline."""
    if isinstance(value, dict) and value:
        return "{ " + ", ".join(f"{name} = {_toml(item)}" for name, item in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False, default=str)  # of a Path its text
