"""The choice of a search for a question: full text, global or local, with the reason, by its words
and whether the corpus holds what they name."""

from __future__ import annotations

from graphrag_mcp.query.literals import identifier, quoted
from graphrag_mcp.query.overview import asked_about
from graphrag_mcp.query.question import NAME_CHARACTERS
from graphrag_mcp.store.tables import Snapshot, values_of
from graphrag_mcp.text.terms import entity_id


def choose(query: str, snapshot: Snapshot) -> tuple[str, str]:
    """(mode, reason)."""
    from graphrag_mcp.names.extract import extract

    query = query.strip()
    if not query:
        return "local", "The question is empty, so this is an overview."
    if quoted(query):
        return "text", "The question quotes words, which must stand in the text."
    mentions = extract(query[:NAME_CHARACTERS])
    forms = {entity_id(mention.key): mention.form for mention in mentions if mention.strong}
    known = values_of(snapshot.by_key("entities", list(forms), "id", ["id"])["id"])
    named = forms[known[0]] if known else ""  # the first one that is an entity of this corpus
    if identifier(query) and not named:
        return "text", "The question is one identifier or number, to be found as it is written."
    if asked_about(snapshot, query) is None:
        whole = "so it is about the corpus as a whole."
        return "global", f"The question names nothing in particular, {whole}"
    if named:
        return "local", f"The question names {named!r}, which is in the corpus."
    return "local", "The question asks for something in particular."
