"""Reports on source code, by rule: the title is the path. The text is the docstring, the names that
are defined there or the files and folders that lie there, then the signature and docstring of each
of the heaviest."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from graphrag_mcp.code.symbols import PACKAGE_FILES
from graphrag_mcp.index.communities import Community
from graphrag_mcp.index.report_content import EntityRow, Inside
from graphrag_mcp.index.report_extractive import Quoted, Report, cited, outline, quotes_of, running
from graphrag_mcp.index.report_sentences import shown

DEFINED = ("class", "interface", "type", "function", "constant", "method")
SHOWN = 12  # names in the summary
TOLD = 10  # of them with a sentence of their own
PACKAGES = frozenset(stem for stems in PACKAGE_FILES.values() for stem in stems)


def compose(community: Community, inside: Inside, children: Sequence[Report]) -> Report:
    base = replace(outline(community, inside), title=inside.title)
    if children:
        opening, described = _of_parts(children)
        names = [item.text.partition(":")[0] for item in described]
        listing = [_listing("Holds", names, described)] if names else []
    else:
        opening = list(_docstrings(inside))
        symbols = [row for row in _heaviest_first(inside) if row.type in DEFINED]
        symbols.sort(key=lambda row: DEFINED.index(row.type) // 5)  # methods last
        rows = [_of_row(row, f"{row.type} {row.title}") for row in symbols]
        listing = [_listing("Defines", [row.text for row in rows], rows[:SHOWN])] if rows else []
        described = [_of_row(row, row.description) for row in symbols if row.description]
    summary = running(cited(inside, quoted) for quoted in [*opening, *listing]) or base.summary
    findings = [
        {"summary": item.text, "explanation": cited(inside, item)} for item in described[:TOLD]
    ]
    lines = [f"- {finding['explanation']}" for finding in findings]
    content = "\n\n".join([f"# {base.title}", summary, *lines])
    return replace(
        base,
        summary=summary,
        full_content=content,
        findings=json.dumps(findings, ensure_ascii=False),
    )


def _heaviest_first(inside: Inside) -> list[EntityRow]:
    return sorted(inside.entities.values(), key=lambda row: inside.place(row.id))


def _of_parts(children: Sequence[Report]) -> tuple[list[Quoted], list[Quoted]]:
    """What the file that stands for a folder says of it; and of each of its parts, the largest
    first, the path and the first sentence of its report."""
    opening: list[Quoted] = []
    parts: list[Quoted] = []
    for child in sorted(children, key=lambda child: (-child.n_text_units, child.title)):
        units = dict.fromkeys(child.text_unit_ids[:1])
        first = next(quotes_of(child), Quoted("", {}, {}, units))
        # The list of names is no sentence.
        sentence = "" if first.text.startswith(("Defines ", "Holds ")) else first.text
        name = child.title.rpartition(": ")[2].rpartition("/")[2]  # of small files their names
        if sentence and name.partition(".")[0] in PACKAGES:
            opening.append(Quoted(sentence, first.entities, {}, first.units))
        text = shown(f"{name}: {sentence}" if sentence else name)
        parts.append(Quoted(text, first.entities, {}, first.units))
    return opening[:1], parts


def _docstrings(inside: Inside) -> Iterator[Quoted]:
    """The docstrings of the modules, at most three; with their names where there are several."""
    modules = [row for row in _heaviest_first(inside) if row.type == "module"]
    texts = {
        module.id: module.description.replace(f"Module {module.title}.", " ") for module in modules
    }
    lines = {id: " ".join(text.split()) for id, text in texts.items() if text.strip()}
    modules = [row for row in modules if row.id in lines]
    for row in sorted(modules, key=lambda row: (len(row.title), row.title))[:3]:
        text = lines[row.id]
        yield _of_row(row, text if len(modules) == 1 else f"{row.title}: {text}")


def _of_row(row: EntityRow, sentence: str) -> Quoted:
    text = shown(sentence)
    return Quoted(text, {row.id: None}, {}, dict.fromkeys(sorted(row.text_unit_ids)[:1]))


def _listing(verb: str, names: Sequence[str], parts: Sequence[Quoted]) -> Quoted:
    """A sentence with the first names, citing all of `parts`."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    entities = {id: None for part in parts for id in part.entities}
    units = {unit: None for part in parts for unit in part.units}
    return Quoted(f"{verb} {', '.join(names[:SHOWN])}{more}.", entities, {}, units)
