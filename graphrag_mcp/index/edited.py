"""Rows as edits want them: what a person or an agent said wins over what was computed from the documents.

Takes a row of `entities` or `relationships` as the merge made it, and the edits in force; gives the row that is stored.
Knows no table and no log.
"""

from __future__ import annotations

from typing import Any

from graphrag_mcp.store.edits import Overlay, PairFact
from graphrag_mcp.text import terms

Row = dict[str, Any]
UNTYPED = "other"  # a name made by hand without a type


def entity_row(row: Row, key: str, edits: Overlay) -> Row:
    """The row with the names, title, type and description that were given to it."""
    names = edits.names.get(key, ())
    words = edits.words(key)
    if not names and not words and row["title"]:
        return row
    title = words.get("title") or row["title"] or edits.forms.get(key, key)
    # Names that were given come after those of the texts, however many: they must all be found.
    given = [edits.forms.get(name, name) for name in (*names, *([key] if words.get("title") else []))]
    shown = dict.fromkeys([row["title"], *row["aliases"], *given] if row["title"] else [*row["aliases"], *given])
    shown.pop(title, None)
    row["title"], row["aliases"] = title, list(shown)
    row["type"] = words.get("type") or row["type"] or UNTYPED
    row["description"] = words.get("description") or row["description"]
    row["names"] = sorted({*row["names"], *names})
    spoken = [term for form in (title, *row["aliases"]) for term in terms(form)]
    row["terms"] = " ".join(dict.fromkeys(spoken))
    return row


def pair_row(row: Row, fact: PairFact) -> Row:
    """The row with the description, keywords and weight that were given to it."""
    row |= {name: value for name, value in fact.fields.items() if name != "weight"}
    row["weight"] = fact.weight(row["weight"])
    return row
