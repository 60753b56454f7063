"""A document as it is read: its text and what is known of it; the suffix of its name."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from graphrag_mcp.text.places import write as places_as_text
from graphrag_mcp.text.terms import content_id

# In the metadata of the document log, which has no columns for them; no document has such keys.
PLACES = " places"
LINKS = " links"
COMMITTED = "committed"  # in metadata: the day of the last commit

# Suffixes of prose that is read as it is written, and of tables whose rows are documents.
PROSE = frozenset("txt text md markdown mdx rst adoc asciidoc org tex log".split()) | {""}
TABLES = frozenset("csv tsv tab json jsonl ndjson parquet canvas".split())


@dataclass(frozen=True, slots=True)
class Document:
    """A document. `uri`: `<source label>/<relative path>[#row]` or `text:<id>`, never absolute."""

    uri: str
    title: str
    text: str
    metadata: dict[str, Any] = field(default_factory=dict)
    created: str = ""  # ISO 8601 or "", in no digest
    file: str = ""  # uri of the file it came from; equals uri unless the file holds many documents
    file_sha: str = ""  # SHA-256 of that file's bytes (of the inline text when there is no file)
    places: tuple[tuple[int, str], ...] = ()  # (offset, page, slide or cell): text/places.py
    # of HTML, whose text does not show where they lead: (start, end, page, part), as in sources/links.py
    links: tuple[tuple[int, int, str, str], ...] = ()

    def __post_init__(self) -> None:
        if PLACES in self.metadata or LINKS in self.metadata:
            renamed = {
                key.strip(): self.metadata[key] for key in (PLACES, LINKS) if key in self.metadata
            }
            others = {
                key: value for key, value in self.metadata.items() if key not in (PLACES, LINKS)
            }
            object.__setattr__(self, "metadata", renamed | others)

    @property
    def sha(self) -> str:
        metadata = json.dumps(self.metadata, sort_keys=True, ensure_ascii=False)
        places = [places_as_text(self.places)] if self.places else []
        links = [f"links {json.dumps(self.links, ensure_ascii=False)}"] if self.links else []
        return content_id(self.title, self.text, metadata, *places, *links)

    @property
    def id(self) -> str:
        return content_id(self.uri, self.sha)


def file_and_key(uri: str) -> tuple[str, str]:
    """The uri of a document's file, and the key of the document in it; "" for the file itself. A file with keys has a
    suffix, so that a `#` in the name of a folder or a file begins no key (`C# notes/Minutes #3.rtf`)."""
    at = uri.find("#")
    while at >= 0 and not suffix_of(uri[:at].rpartition("/")[2]).isalnum():
        at = uri.find("#", at + 1)
    return (uri, "") if at < 0 else (uri[:at], uri[at + 1 :])


def suffix_of(name: str) -> str:
    """`md` of `Notes.MD`; "" for a name without one."""
    return name.rpartition(".")[2].casefold() if "." in name.lstrip(".") else ""
