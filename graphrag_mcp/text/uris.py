"""Uris of documents: the file, the key of a document in it, the suffix; and what metadata say a document is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Key of metadata: the SPDX identifier of the licence that a file is the text of.
LICENCE = "licence_text"


def file_and_key(uri: str) -> tuple[str, str]:
    """The uri of a document's file, and the key of the document in it; "" for the file itself. A file with keys has a
    suffix with a letter, so that a `#` in the name of a folder or a file begins no key (`C# notes/v1.2#3.rtf`)."""
    at = uri.find("#")
    while at >= 0 and not _names_a_kind(suffix_of(uri[:at].rpartition("/")[2])):
        at = uri.find("#", at + 1)
    return (uri, "") if at < 0 else (uri[:at], uri[at + 1 :])


def _names_a_kind(suffix: str) -> bool:
    return suffix.isalnum() and not suffix.isdigit()


def suffix_of(name: str) -> str:
    """`md` of `Notes.MD`; "" for a name without one."""
    return name.rpartition(".")[2].casefold() if "." in name.lstrip(".") else ""


def is_note(uri: str, metadata: Mapping[str, Any]) -> bool:
    """Is a document a note? A file that says `kind: note` of itself is one; a row of a table or a file in
    another one (`visits.csv#3`) is none, whatever stands in its column `kind`."""
    if file_and_key(uri)[1]:
        return False
    return any(name.casefold() == "kind" and str(value).casefold() == "note" for name, value in metadata.items())
