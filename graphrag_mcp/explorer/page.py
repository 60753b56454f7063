"""The explorer page as one HTML document: modules, style and data inlined, nothing loaded from
elsewhere."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parents[1] / "page"
MODULES = ("dom", "bridge", "transport", "map", "tree", "graph", "views", "app")
_IMPORT = re.compile(r"^import (?:\* as (\w+)|\{[^}]*\}) from \"\./(\w+)\.js\";\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (async )?(function|const|class|let) (\w+)", re.MULTILINE)
_NAMESPACES = ("graph", "views")  # imported as a whole: their names stay apart


def page(data: Mapping[str, Any] | None = None) -> str:
    """The page; with `data` ({"views": {...}}) a file that needs no server.

    Its policy allows the scripts and styles that are in it, by their hashes, and requests to its own
    address only.
    """
    script, style = _script(), (FOLDER / "style.css").read_text("utf-8")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "style-src-attr 'unsafe-inline'; img-src data:; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'"
    )
    text = json.dumps(data or {}, ensure_ascii=False, separators=(",", ":"))
    parts = {
        "@csp@": policy,
        "@style@": style,
        "@data@": text.replace("<", "\\u003c").replace("\u2028", "\\u2028"),
        "@script@": script,
    }
    shell = (FOLDER / "page.html").read_text("utf-8")
    return re.sub("|".join(parts), lambda match: parts[match[0]], shell)


def policy_of(document: str) -> str:
    """The Content-Security-Policy that stands in a page, for the header beside it."""
    found = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', document)
    return found[1] if found else "default-src 'none'"


@cache
def _script() -> str:
    """The modules one after another, without their imports and exports."""
    parts = []
    for name in MODULES:
        source = (FOLDER / f"{name}.js").read_text("utf-8")
        body = _EXPORT.sub(
            lambda match: f"{match[1] or ''}{match[2]} {match[3]}", _IMPORT.sub("", source)
        )
        if name in _NAMESPACES:
            exported = ", ".join(match[3] for match in _EXPORT.finditer(source))
            body = f"const {name} = (() => {{\n{body}\nreturn {{ {exported} }};\n}})();\n"
        parts.append(f"// ---- {name}.js\n{body}")
    script = "\n".join(parts)
    if "</script" in script.lower() or "<!--" in script:
        raise ValueError("a module of the page holds a tag that would end its script")
    return script


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode()
