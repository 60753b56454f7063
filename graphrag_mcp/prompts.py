"""Words for models and agents, kept as Markdown files with $variables.

Takes a prompt's name; gives its `string.Template`. Knows two places, in this order: `_prompts` inside the
package (a wheel) and `prompts` beside it (a checkout). Never the working directory: a folder that somebody
indexes must not be able to change what an agent is told.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from string import Template

from graphrag_mcp.errors import NotFound

PACKAGE = Path(__file__).resolve().parent
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


@lru_cache(maxsize=64)
def load(name: str) -> Template:
    """The template called `name`, without the editor's note at its top. Raises NotFound with the known names."""
    if name not in names():
        raise NotFound(f"there is no prompt {name!r}", f"Known: {', '.join(names())}")
    text = (folder() / f"{name}.md").read_text("utf-8")
    return Template(_COMMENT.sub("", text).strip())
