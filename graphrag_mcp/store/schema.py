"""The columns of every table, as Parquet segments and as LanceDB tables.

Nothing depends on the whole corpus: a row changes only when the text it speaks of changes. `n` is
the number behind the short alias (e12, t33, c5, d4, r7): given once, never reused, in no digest.
`check` is a CRC-32 over the row's other columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

S, I, F, B = pa.string(), pa.int64(), pa.float64(), pa.bool_()
LIST = pa.list_(S)

# Truth: appended, never changed. op is "put" or "gone"; the last row of a uri wins.
DOCUMENT_LOG = pa.schema(
    [
        ("op", S),
        ("uri", S),
        ("id", S),
        ("file", S),
        ("file_sha", S),
        ("title", S),
        ("text", S),
        ("metadata", S),
        ("created", S),
        ("n", I),
    ]
)

# The edit log, the same way: one row a change, those of one call with one id. fields is JSON
# (store/edit_log.py).
EDIT_LOG = pa.schema(
    [
        ("id", S),
        ("op", S),
        ("kind", S),
        ("keys", LIST),
        ("forms", LIST),
        ("fields", S),
        ("by", S),
        ("time", S),
    ]
)

_EVIDENCE = pa.list_(pa.struct([("text_unit_id", S), ("start", I), ("end", I), ("text", S)]))

TABLES: dict[str, pa.Schema] = {
    "documents": pa.schema(
        [
            ("id", S),
            ("n", I),
            ("uri", S),
            ("title", S),
            ("text", S),
            ("metadata", S),
            ("created", S),
            ("check", I),
        ]
    ),
    "text_units": pa.schema(
        [
            ("id", S),
            ("n", I),
            ("document_id", S),
            ("chunk_index", I),
            ("char_start", I),
            ("char_end", I),
            ("line_start", I),
            ("line_end", I),
            ("n_tokens", I),
            ("text", S),
            ("check", I),
        ]
    ),
    # Passages tile their text unit. entity_ids: every candidate named there, entity or not.
    # title_id: the entity id that the document's title would have, so that who names a title finds
    # its passages.
    "passages": pa.schema(
        [
            ("id", S),
            ("n", I),
            ("part", I),
            ("parts", I),
            ("text_unit_id", S),
            ("document_id", S),
            ("uri", S),
            ("title", S),
            ("position", I),
            ("char_start", I),
            ("char_end", I),
            ("line_start", I),
            ("line_end", I),
            ("n_tokens", I),
            ("text", S),
            ("terms", S),
            ("n_terms", I),
            ("entity_ids", LIST),
            ("title_id", S),
            ("check", I),
        ]
    ),
    # One row per (name, text unit): what makes deletion a subtraction. Offsets here, in evidence
    # and in the evidence of entities and relationships count from the start of the text unit, so
    # that an insertion above moves no row. sentences: start, end, start, end, ... of the sentences
    # that hold the name.
    "mentions": pa.schema(
        [
            ("key", S),
            ("text_unit_id", S),
            ("form", S),
            ("type", S),
            ("strong", B),
            ("count", I),
            ("sentences", pa.list_(I)),
            ("start", I),
            ("end", I),
            ("alias_of", S),
            ("description", S),
            ("by", S),  # what a model or an agent said of it, and who; else ""
        ]
    ),
    # One row per (pair, text unit), only between entities; source_id < target_id. What a model said
    # keeps the names it used, so that it can be resolved again; where both now mean one entity, the
    # ids are "".
    "evidence": pa.schema(
        [
            ("relationship_id", S),
            ("source_id", S),
            ("target_id", S),
            ("text_unit_id", S),
            ("weight", F),
            ("start", I),
            ("end", I),
            ("source_key", S),
            ("target_key", S),
            ("description", S),
            ("keywords", S),
        ]
    ),
    # What texts claim about names (only with a model, and when asked for). spans: of the quotes, in
    # the text unit.
    "claims": pa.schema(
        [
            ("id", S),
            ("n", I),
            ("text_unit_id", S),
            ("subject", S),
            ("object", S),
            ("subject_id", S),
            ("object_id", S),
            ("type", S),
            ("status", S),
            ("start_date", S),
            ("end_date", S),
            ("description", S),
            ("quotes", LIST),
            ("spans", pa.list_(I)),
            ("check", I),
        ]
    ),
    # What a model still has to answer: kind is extract, claims (subject: a text unit), entity,
    # relationship or report.
    "pending": pa.schema([("id", S), ("kind", S), ("subject", S), ("uri", S), ("reason", S)]),
    # Text units of which records of a reply were left out (`dropped`) or kept with a value that the
    # reply did not say (`repaired`), with the reasons; kind is extract or claims, subject the text
    # unit.
    "losses": pa.schema(
        [
            ("id", S),
            ("kind", S),
            ("subject", S),
            ("uri", S),
            ("dropped", I),
            ("repaired", I),
            ("reason", S),
        ]
    ),
    "entities": pa.schema(
        [
            ("id", S),
            ("n", I),
            ("key", S),
            ("title", S),
            ("type", S),
            ("description", S),
            ("aliases", LIST),
            ("names", LIST),
            ("frequency", I),
            ("degree", I),
            ("text_unit_ids", LIST),
            ("evidence", _EVIDENCE),
            ("terms", S),
            ("check", I),
        ]
    ),
    "relationships": pa.schema(
        [
            ("id", S),
            ("n", I),
            ("source_id", S),
            ("target_id", S),
            ("description", S),
            ("keywords", S),
            ("weight", F),
            ("text_unit_ids", LIST),
            ("evidence", _EVIDENCE),
            ("check", I),
        ]
    ),
    "communities": pa.schema(
        [
            ("id", S),
            ("n", I),
            ("level", I),
            ("parent", S),
            ("children", LIST),
            ("entity_ids", LIST),
            ("size", I),
            ("check", I),
        ]
    ),
    # path: ids of the communities that hold the entity or, by its id, the text unit; coarsest first.
    "memberships": pa.schema([("entity_id", S), ("path", LIST)]),
    "reports": pa.schema(
        [
            ("id", S),
            ("n", I),
            ("level", I),
            ("title", S),
            ("summary", S),
            ("full_content", S),
            ("rank", F),
            ("rating_explanation", S),
            ("findings", S),
            ("entity_ids", LIST),
            ("relationship_ids", LIST),
            ("text_unit_ids", LIST),
            ("n_text_units", I),
            ("method", S),
            ("fingerprint", S),
            ("terms", S),
            ("check", I),
        ]
    ),
    # One row a document that defines or names symbols of source code. facts: JSON of what it defines,
    # imports, extends and calls (code/symbols.py); links: JSON of a digest by text unit of what that
    # was resolved to, so that a change elsewhere is seen.
    "code": pa.schema([("id", S), ("uri", S), ("facts", S), ("links", S)]),
    # How many passages hold a term: the df of our own BM25, so that scores do not depend on
    # history.
    "terms": pa.schema([("term", S), ("passages", I)]),
}

# Vectors of the rows of four tables, where an embedding model is configured. `sha` is of the text
# that was embedded; `vector` is in truth a list of fixed size, whose length is the model's.
VECTORS = {name: f"{name}_vectors" for name in ("passages", "entities", "relationships", "reports")}
TABLES |= {
    name: pa.schema([("id", S), ("sha", S), ("vector", pa.list_(pa.float32()))])
    for name in VECTORS.values()
}

# What one row is known by when it is replaced, the columns with a scalar index, and with full text.
KEY = {
    "mentions": "text_unit_id", "evidence": "text_unit_id", "claims": "text_unit_id", "memberships": "entity_id",
    "terms": "term",
}  # fmt: skip
SCALAR = {
    "documents": ("id", "n", "uri"),
    "text_units": ("id", "n", "document_id"),
    "passages": ("id", "n", "document_id", "title_id"),
    "mentions": ("key", "text_unit_id"),
    "evidence": ("relationship_id", "text_unit_id"),
    "entities": ("id", "n"),
    "relationships": ("id", "n", "source_id", "target_id"),
    "communities": ("id", "n"),
    "memberships": ("entity_id",),
    "reports": ("id", "n"),
    "terms": ("term",),
    "claims": ("text_unit_id", "subject_id", "object_id"),
    "pending": ("id",),
    "losses": ("id",),
    "code": ("id",),
    **{name: ("id",) for name in VECTORS.values()},
}
FULL_TEXT = {"passages": "terms", "entities": "terms", "reports": "terms"}

# values in one IN list; 500 cost 12 ms, 5,000 cost 41 ms at 50k rows, one scan of a column 4 ms
STATEMENT = 2_000


def in_lists(key: str, values: Sequence[str] | Sequence[int]) -> Iterator[str]:
    """SQL conditions `key IN (...)` of at most STATEMENT values each."""
    for start in range(0, len(values), STATEMENT):
        part = values[start : start + STATEMENT]
        yield f"{key} IN ({', '.join(_literal(value) for value in part)})"


def _literal(value: str | int) -> str:
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"
