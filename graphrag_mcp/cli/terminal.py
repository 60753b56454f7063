"""What a person sees on a terminal: hits with marked words and links to their files, and tables.

Takes a result and the snapshot that it came from; prints with rich, which is imported here alone
and only when stdout is a terminal. A pipe, NO_COLOR and CI get the plain text of the commands.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_mcp.text import terms
from graphrag_mcp.trust import fencing

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from graphrag_mcp.store.tables import Snapshot
    from graphrag_mcp.types import Citation, SearchResult

HITS = 5
EXCERPT = 320  # characters of a hit
PASSAGE = 600  # tokens of the passage that the excerpt is taken from


def wanted() -> bool:
    """Whether stdout is a terminal that may be sent colours and links."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("CI") or os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not plain


def _console() -> Console:
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)


def show_hits(query: str, result: SearchResult, snapshot: Snapshot) -> None:
    """The best hits, one after another: id, title, place, and the sentences that fit the query."""
    from rich.text import Text

    from graphrag_mcp.query.lookup import get_source

    console, words = _console(), set(terms.query_terms(query))
    for place in result.citations[:HITS]:
        source = get_source(snapshot, [place.id], max_tokens=PASSAGE).text
        text = fencing.clean(source.partition("\n")[2].partition("\n")[2])
        head = Text(f"[{place.id}] ", style="cyan")
        head.append(fencing.clean(place.title), style="bold")
        console.print(head)
        said, line = excerpt(text, words)
        console.print(_place(place, line, snapshot.manifest.sources))
        console.print(marked(said, words))
        console.print()
    rest = len(result.citations) - HITS
    more = f"{rest} more hits: --max-tokens N shows them. " if rest > 0 else ""
    print(f"{more}graphrag-mcp source ID shows a whole passage", file=sys.stderr)


def _place(place: Citation, line: int, sources: Mapping[str, Mapping[str, str]]) -> Text:
    """`path:line` as a link, where the file is there; else the document's uri. `line` counts from
    the first line of the passage."""
    from rich.style import Style
    from rich.text import Text

    path = file_of(place.uri, sources)
    if path is None:
        return Text(fencing.clean(place.uri), style="dim")
    here = Path.cwd()
    shown = path.relative_to(here) if path.is_relative_to(here) else path
    known = place.line_start and "#" not in place.uri
    number = f":{place.line_start + line}" if known else ""
    return Text(fencing.clean(f"{shown}{number}"), Style(dim=True, link=path.as_uri()))


def file_of(uri: str, sources: Mapping[str, Mapping[str, str]]) -> Path | None:
    """The file of a document below its source's folder; None where there is none."""
    label, _, rest = uri.partition("/")
    folder = sources.get(label, {})
    if folder.get("kind") == "import" or not rest:
        return None
    for name in (rest, rest.rpartition("#")[0]):  # a row of a table: sample/log.csv#3
        path = Path(folder.get("path", ""), name)
        if name and path.is_file():
            return path
    return None


def excerpt(text: str, words: set[str]) -> tuple[str, int]:
    """The sentences of a text with most of the words, and the line that they begin in, from 0."""
    spans = terms.sentences(text) or [(0, len(text))]
    found = [len(words & set(terms.terms(text[start:end]))) for start, end in spans]
    best = found.index(max(found))
    start, end = spans[best]
    for _, following in spans[best + 1 :]:
        if following - start > EXCERPT:
            break
        end = following
    kept = text[start:end]
    said = kept if len(kept) <= 2 * EXCERPT else f"{kept[: 2 * EXCERPT]}…"
    return " ".join(said.split()), text.count("\n", 0, start)


def marked(text: str, words: set[str]) -> Text:
    """The text with every word of the query in bold red, in any of its forms."""
    from rich.text import Text

    shown, joined = Text(text), [one for one in words if any(map(terms.is_cjk, one))]
    for found in re.finditer(r"\w+", text):
        if any(map(terms.is_cjk, found[0])):  # no blanks between words
            for word in joined:
                for part in re.finditer(re.escape(word), found[0]):
                    at = found.start() + part.start()
                    shown.stylize("bold red", at, at + len(word))
        elif words & set(terms.terms(found[0])):
            shown.stylize("bold red", *found.span())
    return shown


def show_table(title: str, rows: Iterable[tuple[str, str]]) -> None:
    """Two columns without lines: a name and what is said of it."""
    from rich.table import Table

    table = Table(title=title, show_header=False, box=None, title_justify="left", padding=(0, 1))
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    for name, said in rows:
        table.add_row(name, fencing.clean(said))
    _console().print(table)
