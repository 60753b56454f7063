"""Source code in the graph: symbols as names of text units, edges between them as statements.

The key of a name is the qualified name of its symbol. The table `code` holds what each file defines
and uses; `link` resolves what an edit can touch and gives the text units whose statements or names
changed, also in files that were not edited."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from graphrag_mcp.code.extracting import title_of
from graphrag_mcp.code.parse import PROSE
from graphrag_mcp.code.resolve import documented, known, resolve, touched
from graphrag_mcp.code.symbols import SourceFile, UnitSpan, loaded, placed
from graphrag_mcp.index.chunk import recent_sentences
from graphrag_mcp.index.extract import Named, StatedRelation, UnitNames
from graphrag_mcp.index.extract.plugin import UNLINKED
from graphrag_mcp.index.extract.rules import collect
from graphrag_mcp.index.graph import as_said, mentions_from_table, pairs_from_table
from graphrag_mcp.store.schema import TABLES
from graphrag_mcp.text.terms import content_id, lists_of, normalise_name
from graphrag_mcp.trust.fencing import masked

if TYPE_CHECKING:
    from graphrag_mcp.store.tables import Snapshot

Row = dict[str, Any]
# Weights of relationships; that of a call is its certainty.
WEIGHTS = {"contains": 3.0, "inherits": 3.0, "imports": 2.0, "calls": 1.0}
SAYS = {"contains": "contains", "inherits": "inherits from", "imports": "imports", "calls": "calls"}


class Links:
    """What `link` found: rows of `code` to write, statements and names by text unit, of all units
    and of those that changed."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.statements: dict[str, list[StatedRelation]] = {}
        self.named: dict[str, list[Named]] = {}
        self.instead: dict[str, dict[str, str]] = {}  # keys of names as written -> of symbols
        self.core: dict[str, int] = {}  # where the part begins that no other unit repeats
        self.changed: list[str] = []


def link(rows: Sequence[Row], before: Sequence[Row] | None = None) -> Links:
    """Resolve the names of all rows of `code`; with `before`, the rows in the place of which come
    those that were not linked yet, of the files that these touch."""
    links = Links()
    files = {row["uri"]: (row, *loaded(row["facts"])) for row in rows}
    sources = [file for _, file, _ in files.values() if file.language != PROSE or file.variables]
    only: Set[str] | None = None
    if before is not None:
        new = [file for row, file, _ in files.values() if row["links"] == UNLINKED]
        old = [loaded(row["facts"])[0] for row in before]
        only = touched(old, new, (file for _, file, _ in files.values()))
    kinds = {file.key(symbol.name): symbol.kind for file in sources for symbol in file.symbols}
    parents = {file.key(symbol.name): file.key(symbol.parent) for file in sources for symbol in file.symbols}

    @cache
    def title(name: str) -> str:
        # A name may have members and no definition here: `mod tests` of Rust, a C++ namespace.
        return title_of(name, kinds.get(name, ""), kinds.get(parents.get(name, ""), ""))

    corpus = known(sorted(sources, key=lambda file: file.uri)) if sources else None
    edges = lists_of((edge.uri, edge) for edge in (resolve(sources, corpus, only) if corpus else ()))
    for uri, (row, file, units) in files.items():
        if only is not None and uri not in only:
            continue
        statements: dict[str, list[StatedRelation]] = {unit.id: [] for unit in units}
        starts = [unit.core for unit in units]
        for edge in edges.get(uri, ()):
            id, start, end = placed(units, starts, edge.start, edge.end)
            sentence = f"{title(edge.source)} {SAYS[edge.kind]} {title(edge.target)}."
            weight = WEIGHTS[edge.kind] * edge.certainty
            ends = edge.source, edge.target
            statements[id].append(StatedRelation(*ends, sentence, edge.kind, weight, start, end))
        named = _mentioned(file, units, title, kinds, corpus, links.instead) if corpus else {}
        if file.language == PROSE:
            links.core |= {unit.id: unit.core - unit.start for unit in units}
        else:
            links.statements |= statements
        links.named |= named
        now = {id: _digest(statements.get(id, ()), named.get(id, ())) for id in statements}
        before_ = json.loads(row["links"])
        changed = [id for id, digest in now.items() if before_.get(id, "") != digest]
        links.changed += changed
        if changed or before_.keys() != now.keys():
            links.rows.append(row | {"links": json.dumps(now, separators=(",", ":"))})
    return links


def _mentioned(
    file: SourceFile,
    units: Sequence[UnitSpan],
    title: Callable[[str], str],
    kinds: Mapping[str, str],
    corpus: Any,
    instead: dict[str, dict[str, str]],
) -> dict[str, list[Named]]:
    """The symbols that a document names, by text unit."""
    found: dict[str, dict[str, Named]] = {}
    starts = [unit.core for unit in units]
    for reference in file.references:
        if reference.kind != "documents" or not (key := documented(corpus, reference.name)):
            continue
        if file.key(reference.inside) == key:
            continue
        id, start, end = placed(units, starts, reference.start, reference.end)
        instead.setdefault(id, {})[normalise_name(reference.name)] = key
        row = found.setdefault(id, {}).get(key)
        if row is None:
            place = [start, end], start, end
            found[id][key] = Named(key, id, title(key), kinds[key], True, 1, *place, "")
        else:
            row.count += 1
    return {id: list(rows.values()) for id, rows in found.items()}


def _digest(statements: Sequence[StatedRelation], named: Sequence[Named]) -> str:
    if not statements and not named:
        return ""
    stated = [
        (statement.description, statement.source, statement.target, statement.weight, statement.start, statement.end)
        for statement in statements
    ]
    told_of = [(name.key, name.form, name.type, name.start, name.count) for name in named]
    return content_id(repr(stated), repr(told_of))[:12]


def apply(snapshot: Snapshot | None, fresh: dict[str, UnitNames], links: Links) -> set[str]:
    """Put statements and names of symbols into the units of a batch; read the older units that
    changed into it. Gives the ids of these."""
    older = [id for id in links.changed if id not in fresh]
    for id, unit in fresh.items():
        if id in links.statements:
            unit.said = [*(unit.said or ()), *links.statements[id]]
        if id in links.named:
            unit.named = _with(unit.named, links, id, unit.text)
    if snapshot is None or not older:
        return set()
    texts = snapshot.by_key("text_units", older, "id", ["id", "text"]).to_pylist()
    mentions = snapshot.by_key("mentions", older, "text_unit_id", TABLES["mentions"].names)
    mentioned = lists_of((row.text_unit_id, row) for row in mentions_from_table(mentions))
    evidence = snapshot.by_key("evidence", older, "text_unit_id", TABLES["evidence"].names)
    stated = lists_of((row.text_unit_id, row) for row in pairs_from_table(evidence))
    for text_unit in texts:
        id, text = text_unit["id"], masked(text_unit["text"])
        before, statements = mentioned.get(id, []), None
        if any(row.stated for row in before):  # source code, or a document that a model read
            stored = as_said(stated.get(id, ()))
            kept = [
                statement for statement in stored if id not in links.statements or statement.keywords not in WEIGHTS
            ]
            statements = [*kept, *links.statements.get(id, ())]
        else:
            before = collect(id, text, links.core.get(id, 0))[0].named
        fresh[id] = UnitNames(id, text, _with(before, links, id, text), statements)
    return {text_unit["id"] for text_unit in texts}


def _with(named: Sequence[Named], links: Links, id: str, text: str) -> list[Named]:
    """Names of a unit with the symbols that it names: a name of prose becomes an alias of its
    symbol, and a symbol that is no name of prose is added."""
    found = links.named.get(id, ())
    spans = recent_sentences(text) if found else []
    starts, symbols = [start for start, _ in spans], {}
    for row in found:
        at = max(bisect_right(starts, row.start) - 1, 0)
        sentence = list(spans[at]) if spans else [row.start, row.end]
        symbols[row.key] = replace(row, sentences=sentence)
    instead = links.instead.get(id, {})
    out = [row for row in named if row.by or row.type not in SYMBOL_TYPES]
    for at, row in enumerate(out):
        if not row.by and (symbol := symbols.get(instead.get(row.key, ""))):
            out[at] = replace(row, type=symbol.type, alias_of=symbol.key)
    keys = {key for row in out for key in (row.key, row.alias_of)}
    return [*out, *(row for row in symbols.values() if row.key not in keys)]


SYMBOL_TYPES = frozenset(("module", "class", "interface", "function", "method", "constant"))
