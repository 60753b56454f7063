"""The knobs: read once at the door from the environment and one optional TOML file.

Takes `os.environ`-like mappings and a path; gives a frozen `Settings`. Knows no MCP and opens no index.
Each algorithm keeps its own parameters beside its code; only what a user may turn stands here.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from platformdirs import user_data_path

from graphrag_mcp.errors import BadInput

ENVIRONMENT = {
    "GRAPHRAG_MCP_HOME": "home",
    "GRAPHRAG_MCP_ROOTS": "roots",
    "GRAPHRAG_MCP_SETTINGS": "(the TOML file itself)",
}


@dataclass(frozen=True, slots=True)
class Settings:
    """All lengths in tokens of `text.count_tokens` unless said otherwise."""

    home: Path = field(default_factory=lambda: user_data_path("graphrag-mcp"))
    roots: tuple[Path, ...] = ()  # folders that tools may index; the command line may index anywhere
    chunk_size: int = 1200
    chunk_overlap: int = 100
    chunk_mode: str = "auto"  # auto, tokens, sentences, separator, separator_only
    chunk_separator: str = "\n\n"
    passage_size: int = 450
    max_file_bytes: int = 20_000_000
    max_cluster_size: int = 10
    seed: int = 42


CHUNK_MODES = ("auto", "tokens", "sentences", "separator", "separator_only")


def default_roots(cwd: Path | None = None) -> tuple[Path, ...]:
    """The working directory, unless it is `/`, a drive or a home folder: then nothing may be indexed."""
    here = (cwd or Path.cwd()).resolve()
    if here == Path(here.anchor) or here == Path.home().resolve():
        return ()
    return (here,)


def load(environ: Mapping[str, str] | None = None, **overrides: Any) -> Settings:
    """Settings from defaults, then the TOML file, then the environment, then `overrides` that are not None.

    Raises BadInput for an unknown name (with the nearest known one), a wrong type or a missing `${VAR}`.
    """
    env = os.environ if environ is None else environ
    values: dict[str, Any] = {}
    if path := env.get("GRAPHRAG_MCP_SETTINGS"):
        values.update(_read_toml(Path(path), env))
    if env.get("GRAPHRAG_MCP_HOME"):
        values["home"] = env["GRAPHRAG_MCP_HOME"]
    if env.get("GRAPHRAG_MCP_ROOTS"):
        values["roots"] = [part for part in env["GRAPHRAG_MCP_ROOTS"].split(os.pathsep) if part]
    values.update({name: value for name, value in overrides.items() if value is not None})
    settings = replace(Settings(), **{name: _typed(name, value) for name, value in values.items()})
    if not settings.roots:
        settings = replace(settings, roots=default_roots())
    return _checked(settings)


def _checked(settings: Settings) -> Settings:
    if settings.chunk_size < 50 or not 0 <= settings.chunk_overlap < settings.chunk_size // 2:
        raise BadInput(
            f"chunk_size {settings.chunk_size} with chunk_overlap {settings.chunk_overlap} cannot be used",
            "Set chunk_size to at least 50 and chunk_overlap to less than half of it",
        )
    if settings.chunk_mode not in CHUNK_MODES:
        raise BadInput(f"chunk_mode {settings.chunk_mode!r} is unknown", f"Use one of {', '.join(CHUNK_MODES)}")
    return settings


def _typed(name: str, value: Any) -> Any:
    known = {f.name: f for f in fields(Settings)}
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        raise BadInput(f"unknown setting {name!r}", f"Use {near[0]!r}" if near else f"Use one of {', '.join(known)}")
    if name == "home":
        return Path(value).expanduser().absolute()
    if name == "roots":
        return tuple(Path(part).expanduser().absolute() for part in value)
    kind = {"int": int, "str": str}[str(known[name].type)]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise BadInput(f"setting {name!r} must be {kind.__name__}, not {value!r}", "Correct it in the settings file")
    return value


def _read_toml(path: Path, env: Mapping[str, str]) -> dict[str, Any]:
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        what = f"the settings file {path} cannot be read ({error.strerror})"
        raise BadInput(what, "Correct GRAPHRAG_MCP_SETTINGS") from error

    def variable(match: re.Match[str]) -> str:
        if match[1] not in env:
            what = f"the settings file {path} uses ${{{match[1]}}}, which is not set"
            raise BadInput(what, f"Set {match[1]} or remove it")
        return env[match[1]]

    try:
        return tomllib.loads(re.sub(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}", variable, text))
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"the settings file {path} is not TOML ({error})", "Correct that line") from error
