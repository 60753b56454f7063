"""A file's hash and its documents.

`find` says which files there are; `sha` and `load` take one of them, so that an unchanged folder
costs a walk and a hash. `inline` makes documents of texts handed over in a call. Knows nothing of
what is already indexed.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from graphrag_mcp.settings import Settings
from graphrag_mcp.sources import formats, parsers, walk
from graphrag_mcp.sources.decode import ReadError, clean, find_title, iso_date
from graphrag_mcp.sources.opening import blocks, read, why
from graphrag_mcp.sources.walk import NAMED_LIMIT, FoundFile, shown, suffix_of
from graphrag_mcp.text import dates
from graphrag_mcp.types import Document, InlineText, content_id


def sha(file: FoundFile) -> str:
    """SHA-256 of the bytes. OSError when they cannot be read."""
    digest = hashlib.sha256()
    for block in blocks(file.path, NAMED_LIMIT + 1, file.links):
        digest.update(block)
    return digest.hexdigest()


def load(file: FoundFile, settings: Settings) -> Iterator[Document]:
    """The documents of a file, none when it is blank. ReadError, whose text is the reason, when it
    cannot be read.
    """
    name = os.path.basename(file.path)
    try:
        data = read(
            file.path, NAMED_LIMIT if file.named else settings.max_file_bytes, links=file.links
        )
        changed = datetime.fromtimestamp(os.lstat(file.path).st_mtime, UTC).isoformat(
            timespec="seconds"
        )
    except OSError as error:
        raise ReadError(why(error)) from error
    digest, suffix = hashlib.sha256(data).hexdigest(), suffix_of(name)
    taken: dict[str, int] = {}
    try:
        if parsers.apart(suffix, len(data)):
            pieces: Iterable[formats.Piece] = parsers.parse(data, suffix)
        else:
            pieces = formats.FORMATS.get(suffix, formats.code)(data, suffix)
        for number, piece in enumerate(pieces, 1):
            if said := walk.too_many(number, settings):
                raise ReadError(said)
            if piece.text.strip():
                yield _document(file, name, piece, taken, created=changed, digest=digest)
    except ReadError:
        raise
    except (
        Exception
    ) as error:  # bytes from anywhere, parsers from elsewhere: one bad file never stops a run
        raise ReadError(f"cannot be read as {suffix or 'text'} ({type(error).__name__})") from error


def _document(
    file: FoundFile,
    name: str,
    piece: formats.Piece,
    taken: dict[str, int],
    *,
    created: str,
    digest: str,
) -> Document:
    uri = file.uri
    if piece.key:
        uri = f"{uri}#{piece.key}"
        taken[uri] = taken.get(uri, 0) + 1
        while taken[uri] > 1:  # `a~2` may itself be an id
            uri = f"{file.uri}#{piece.key}~{taken[uri]}"
            taken[uri] = taken.get(uri, 0) + 1
    found = find_title(piece.text) if piece.prose and not piece.title else ""
    title = piece.title or found or (f"{shown(name)} #{piece.key}" if piece.key else shown(name))
    metadata = dict(piece.metadata)
    known = {key.casefold(): value for key, value in metadata.items()}
    if (
        piece.prose
        and not known.get("date")
        and not dates.of_metadata(known)
        and not dates.in_name(name)
    ):
        said = dates.in_address(metadata) or dates.in_head(piece.text)
        metadata |= {"date": said} if said else {}
    dated = iso_date(metadata.get("date") or metadata.get("created") or "")
    return Document(uri, _one_line(title), piece.text, metadata, dated or created, file.uri, digest)


def _one_line(title: object) -> str:
    return clean(" ".join(str(title).split())[:300])


def inline(texts: Sequence[InlineText]) -> Iterator[Document]:
    """Texts handed over in a call as documents, blank ones left out; of two with one id the last
    counts.
    """
    documents: dict[str, Document] = {}
    for given in texts:
        text = clean(given.text)
        if not text.strip():
            continue
        digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
        name = clean(" ".join(given.id.split())[:300]) or content_id(text)[:12]
        metadata = json.loads(clean(json.dumps(given.metadata, default=str, ensure_ascii=False)))
        uri = f"text:{name}"
        title = _one_line(given.title or find_title(text) or name)
        documents[uri] = Document(
            uri, title, text, metadata, iso_date(metadata.get("date", "")), uri, digest
        )
    yield from documents.values()
