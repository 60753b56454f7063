"""A hook of mkdocs: links that leave docs/ lead to the repository, since the site holds docs/ alone."""

from __future__ import annotations

import posixpath
import re
from typing import Any

REPOSITORY = "https://github.com/graphrag-mcp/graphrag-mcp/blob/main/"
OUTSIDE = ("sample/", "demo.py", "reference.py")  # in docs/, and not part of the site


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The page's text with such links made absolute; called by mkdocs for every page."""
    folder = posixpath.dirname(page.file.src_uri)

    def absolute(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join("docs", folder, link[1]))
        outside = not path.startswith("docs/") or path[5:].startswith(OUTSIDE)
        return f"]({REPOSITORY}{path}{link[2] or ''})" if outside else link[0]

    return re.sub(r"\]\((?!\w+:|#)([^)\s#]+)(#[^)\s]*)?\)", absolute, markdown)
