"""Prompts and instructions, kept as Markdown files with $variables.

Three places, in this order: `prompts` inside the index folder of a corpus (tuned ones), `_prompts`
inside the package (a wheel) and `prompts` beside it (a checkout). Never the working directory: a
folder that is indexed must not be able to change what an agent is told."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from string import Template

from graphrag_mcp.errors import BadInput, NotFound

PACKAGE = Path(__file__).resolve().parents[1]
_COMMENT = re.compile(r"\A<!--.*?-->\s*", re.DOTALL)  # each file begins with a note to its editor


@lru_cache(maxsize=1)
def folder() -> Path:
    """Where the prompts of this installation lie."""
    for place in (PACKAGE / "_prompts", PACKAGE.parent / "prompts"):
        if place.is_dir():
            return place
    raise NotFound("the prompts of graphrag-mcp are missing", "Install the package again")


def names() -> list[str]:
    """All prompts, sorted; README.md is not one."""
    return sorted(path.stem for path in folder().glob("*.md") if path.stem != "README")


def load(name: str, corpus_folder: Path | None = None) -> Template:
    """The template called `name`, without the editor's note at its top; the corpus's own where it
    has one.

    Raises NotFound with the known names, BadInput for a tuned prompt that uses a variable the
    product does not give."""
    shipped = _shipped(name)
    override = corpus_folder / "prompts" / f"{name}.md" if corpus_folder else None
    if override is None or not override.is_file():
        return shipped
    tuned = Template(_COMMENT.sub("", override.read_text("utf-8")).strip())
    known = {f"${name}" for name in shipped.get_identifiers()}
    wrong = {f"${name}" for name in tuned.get_identifiers()} - known
    if wrong or not tuned.is_valid():
        what = f"{override} uses {', '.join(sorted(wrong)) or 'a $ that names no variable'}"
        raise BadInput(what, f"Use only {', '.join(sorted(known))}, and $$ for a dollar sign")
    return tuned


@lru_cache(maxsize=64)
def _shipped(name: str) -> Template:
    if name not in names():
        raise NotFound(f"there is no prompt {name!r}", f"Known: {', '.join(names())}")
    return Template(_COMMENT.sub("", (folder() / f"{name}.md").read_text("utf-8")).strip())
