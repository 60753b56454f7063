"""A document as it is read: its text and what is known of it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from graphrag_mcp.text.places import write as places_as_text
from graphrag_mcp.text.terms import content_id

# In the metadata of the document log, which has no columns for them; no document has such keys.
PLACES = " places"
LINKS = " links"

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
            renamed = {key.strip(): self.metadata[key] for key in (PLACES, LINKS) if key in self.metadata}
            others = {key: value for key, value in self.metadata.items() if key not in (PLACES, LINKS)}
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
