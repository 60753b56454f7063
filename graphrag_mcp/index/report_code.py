"""Reports on source code, by rule: what a folder or file says of itself and what it defines.

Takes a community of source code with its symbols and its children's reports; gives a `Report` as
report_extractive.py does. The title is the path. The text is the docstring, the names that are
defined there or the files and folders that lie there, then the signature and docstring of each of the
heaviest. Nothing here depends on what lies outside the community.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from graphrag_mcp.code.symbols import PACKAGE_FILES
from graphrag_mcp.index.communities import Community
from graphrag_mcp.index.report_content import Candidate, EntityRow, Inside, readable
from graphrag_mcp.index.report_extractive import (
    Citer,
    ReportParams,
    Written,
    outlined,
    running,
)
from graphrag_mcp.types import content_id

VERSION = "1"  # raise it when these reports come out differently
DEFINED = ("class", "interface", "type", "function", "constant", "method")
LISTED = 12  # names in the summary
TOLD = 10  # of them with a sentence of their own
PACKAGES = frozenset(stem for stems in PACKAGE_FILES.values() for stem in stems)


def fingerprint(rest: str, title: str, symbols: Iterable[EntityRow]) -> str:
    """What these reports are made of besides what the fingerprint of every report covers."""
    told = sorted((row.id, row.type, row.description) for row in symbols)
    return content_id("code", VERSION, rest, title, *(part for one in told for part in one))


def heads(children: Iterable[Written]) -> list[Candidate]:
    """What a folder says of each of its parts, the largest first: its path and the first sentence of
    its report. The file that stands for the folder speaks for the whole, so its sentence is first."""
    own: list[Candidate] = []
    found: list[Candidate] = []
    for one in sorted(children, key=lambda one: (-one.report.n_text_units, one.report.title)):
        title = one.report.title
        said = next(iter(one.quotes), None)
        name = title.rpartition(": ")[2].rpartition("/")[2]  # of small files together their names
        if said is not None and name.partition(".")[0] in PACKAGES and not found_names(said.text):
            own.append(Candidate(said.text, 1.0, said.entities, {}, said.units))
        units = dict.fromkeys(one.report.text_unit_ids[:1])
        first = "" if said is None or found_names(said.text) else f": {said.text}"
        entities = said.entities if said is not None else {}
        text, _ = readable(f"{name}{first}", ReportParams.max_characters)
        found.append(Candidate(text, 1.0, entities, {}, said.units if said else units))
    for one in found:
        one.gain = 1.0  # a part, and not the whole
    return [*own[:1], *found]


def found_names(text: str) -> bool:
    """Is this the list of names, and no docstring?"""
    return text.startswith(("Defines ", "Holds "))


def compose(community: Community, inside: Inside, quotes: Sequence[Candidate] = ()) -> Written:
    """`quotes`: of its children, by `heads`."""
    cite = Citer(inside, ReportParams())
    base = replace(outlined(community, inside), title=inside.title)
    if community.children:
        said = [one for one in quotes if not one.gain][:1]
        told = [one for one in quotes if one.gain]
        named = [_held([one.text.partition(":")[0] for one in told], told)] if told else []
    else:
        said = list(_docs(inside))
        symbols = [row for row in inside.own_rows if row.type in DEFINED]
        symbols.sort(key=lambda row: DEFINED.index(row.type) // 5)  # methods last
        named = [_defined(symbols)] if symbols else []
        told = [_of(row, row.description) for row in symbols if row.description]
    summary = running(map(cite, [*said, *named])) or base.summary
    findings = [{"summary": one.text, "explanation": cite(one)} for one in told[:TOLD]]
    lines = [f"- {one['explanation']}" for one in findings]
    content = "\n\n".join([f"# {base.title}", summary, *lines])
    text = json.dumps(findings, ensure_ascii=False)
    report = replace(base, summary=summary, full_content=content, findings=text)
    return Written(report)


def _docs(inside: Inside) -> Iterator[Candidate]:
    """The docstrings of the modules, at most three; with their names where there are several."""
    modules = [row for row in inside.own_rows if row.type == "module" and _documented(row)]
    for row in sorted(modules, key=lambda row: (len(row.title), row.title))[:3]:
        yield _of(row, row.description if len(modules) == 1 else f"{row.title}: {row.description}")


def _documented(row: EntityRow) -> bool:
    """Is the description a docstring, and not the first lines?"""
    said = " ".join(row.description.split()).rstrip("…")
    heads = (" ".join(text.split()) for _, text in row.evidence)
    return bool(said) and not any(head.startswith(said[:60]) for head in heads)


def _of(row: EntityRow, said: str) -> Candidate:
    text, _ = readable(said, ReportParams.max_characters)
    return Candidate(text, 1.0, {row.id: None}, {}, dict.fromkeys(sorted(row.text_unit_ids)[:1]))


def _defined(symbols: Sequence[EntityRow]) -> Candidate:
    shown = symbols[:LISTED]
    names = [f"{row.type} {row.title}" for row in shown]
    entities = {row.id: None for row in shown}
    units = {unit: None for row in shown for unit in sorted(row.text_unit_ids)[:1]}
    return Candidate(f"Defines {_list(names, len(symbols))}.", 1.0, entities, {}, units)


def _held(names: Sequence[str], parts: Sequence[Candidate]) -> Candidate:
    entities = {id: None for one in parts for id in one.entities}
    units = {unit: None for one in parts for unit in one.units}
    return Candidate(f"Holds {_list(names[:LISTED], len(names))}.", 1.0, entities, {}, units)


def _list(shown: Sequence[str], of: int) -> str:
    more = f" and {of - len(shown)} more" if of > len(shown) else ""
    return ", ".join(shown) + more
