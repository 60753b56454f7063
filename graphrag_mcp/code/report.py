"""Reports on source code, by rule: the title is the path. The text is the docstring, the names that
are defined there or the files and folders that lie there, then the signature and docstring of each
of the heaviest."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from graphrag_mcp.code.symbols import PACKAGE_FILES
from graphrag_mcp.index.report_content import EntityRow, Topic
from graphrag_mcp.index.report_extractive import Report, cited, outline, quotes_of
from graphrag_mcp.index.report_sentences import Chosen, shown

DEFINED = ("class", "interface", "type", "function", "constant", "method")
SHOWN = 12  # names in the summary
TOLD = 10  # of them with a sentence of their own
PACKAGES = frozenset(stem for stems in PACKAGE_FILES.values() for stem in stems)


def compose(topic: Topic, children: Sequence[Report]) -> Report:
    """The report of a community of source code: what its parts hold, or what is defined in it, most
    used first."""
    base = replace(outline(topic), title=topic.title)
    if children:
        opening, described = _of_parts(children)
        names = [text.partition(":")[0] for text, _ in described]
        listing = [_listing("Holds", names, described)] if names else []
    else:
        opening = list(_docstrings(topic))
        symbols = [row for row in _heaviest_first(topic) if row.type in DEFINED]
        symbols.sort(key=lambda row: DEFINED.index(row.type) // 5)  # methods last
        rows = [_of_row(row, f"{row.type} {row.title}") for row in symbols]
        listing = [_listing("Defines", [text for text, _ in rows], rows[:SHOWN])] if rows else []
        described = [_of_row(row, row.description) for row in symbols if row.description]
    summary = " ".join(cited(*sentence) for sentence in [*opening, *listing]) or base.summary
    findings = [{"summary": text, "explanation": cited(text, units)} for text, units in described[:TOLD]]
    lines = [f"- {finding['explanation']}" for finding in findings]
    content = "\n\n".join([f"# {base.title}", summary, *lines])
    return replace(base, summary=summary, full_content=content, findings=json.dumps(findings, ensure_ascii=False))


def _heaviest_first(topic: Topic) -> list[EntityRow]:
    return sorted(topic.entities, key=topic.place)


def _of_parts(children: Sequence[Report]) -> tuple[list[Chosen], list[Chosen]]:
    """What the file that stands for a folder says of it; and of each of its parts, the largest
    first, the path and the first sentence of its report."""
    opening: list[Chosen] = []
    parts: list[Chosen] = []
    for child in sorted(children, key=lambda child: (-child.n_text_units, child.title)):
        sentence, units = next(quotes_of(child), ("", child.text_unit_ids[:1]))
        # The list of names is no sentence.
        sentence = "" if sentence.startswith(("Defines ", "Holds ")) else sentence
        name = child.title.rpartition(": ")[2].rpartition("/")[2]  # of small files their names
        if sentence and name.partition(".")[0] in PACKAGES:
            opening.append((sentence, units))
        parts.append((shown(f"{name}: {sentence}" if sentence else name), units))
    return opening[:1], parts


def _docstrings(topic: Topic) -> Iterator[Chosen]:
    """The docstrings of the modules, at most three; with their names where there are several."""
    modules = [row for row in _heaviest_first(topic) if row.type == "module"]
    texts = {module.id: module.description.replace(f"Module {module.title}.", " ") for module in modules}
    lines = {id: " ".join(text.split()) for id, text in texts.items() if text.strip()}
    modules = [row for row in modules if row.id in lines]
    for row in sorted(modules, key=lambda row: (len(row.title), row.title))[:3]:
        text = lines[row.id]
        yield _of_row(row, text if len(modules) == 1 else f"{row.title}: {text}")


def _of_row(row: EntityRow, sentence: str) -> Chosen:
    return shown(sentence), sorted(row.text_unit_ids)[:1]


def _listing(verb: str, names: Sequence[str], parts: Sequence[Chosen]) -> Chosen:
    """A sentence with the first names, citing all of `parts`."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    units = [unit for _, cited_units in parts for unit in cited_units]
    return f"{verb} {', '.join(names[:SHOWN])}{more}.", units
