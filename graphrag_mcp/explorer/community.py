"""The view of a topic: its report with citations, what it holds, and where it stands among the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from graphrag_mcp.errors import NotFound
from graphrag_mcp.explorer.citing import (
    Paper,
    Sources,
    Statement,
    left_out,
    numbered,
    paper,
    statements,
    without_references,
)
from graphrag_mcp.explorer.topics import NUMBERED, Brief, Named, beside, brief, named, topics
from graphrag_mcp.packing.budget import one_line
from graphrag_mcp.packing.references import referenced_ids
from graphrag_mcp.query import context, summaries
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.prose import readable

MEMBERS, DOCUMENTS = 60, 40  # in the lists
NEIGHBOURS = 6  # topics that share documents with it
PASSAGES = 40  # text units that are listed for a topic without subtopics
BEGINNING = 320  # characters of each


class Finding(TypedDict):
    """A finding of a report; the title is "" where the first statement says the same."""

    title: str
    statements: list[Statement]


class Report(TypedDict):
    method: str
    paragraphs: list[Statement]
    findings: list[Finding]


class Summarised(Paper):
    summary: str


class Shared(Brief):
    documents: int


class Beginning(TypedDict):
    """How a text unit begins."""

    id: str
    title: str
    first: str


class Community(Brief):
    """The data of the view. `more`: how many members and documents are not listed."""

    level: int
    parents: list[Brief]
    report: Report
    children: list[Brief]
    shared: list[Shared]
    passages: list[Beginning]
    members: list[Named]
    documents: list[Summarised]
    more: dict[str, int]


def community(snapshot: Snapshot, n: int) -> Community:
    """The topic c`n`. Raises NotFound."""
    row, known = numbered(snapshot, "reports", n, "c"), topics(snapshot)
    topic = known.by_id.get(row["id"])
    if topic is None:
        raise NotFound(f"c{n} is no community of this generation", "Search for it")
    findings = context.findings(row)
    texts = [row["summary"], *(finding.get("explanation", "") for finding in findings)]
    cited = [id for text in texts for id in referenced_ids(text).get("Sources", ())]
    sources = Sources(snapshot, cited)
    members = snapshot.by_key("entities", row["entity_ids"], "id", NUMBERED).to_pylist()
    members.sort(key=lambda member: (-member["degree"], member["n"]))
    documents = _documents(snapshot, row["text_unit_ids"], sources)
    return {
        **brief(topic),
        "level": topic.level,
        "parents": [brief(above) for above in known.parents(topic.id)],
        "report": {
            "method": row["method"],
            "paragraphs": statements(row["summary"], sources),
            "findings": [_finding(finding, sources) for finding in findings],
        },
        "children": [brief(known.by_id[id]) for id in topic.children],
        "shared": [{**brief(other), "documents": count} for other, count in beside(known, topic.id)[:NEIGHBOURS]],
        "passages": [] if topic.children else _beginnings(snapshot, row["text_unit_ids"], sources),
        "members": [named(member) for member in members[:MEMBERS]],
        "documents": documents[:DOCUMENTS],
        "more": {"members": left_out(members, MEMBERS), "documents": left_out(documents, DOCUMENTS)},
    }


def _documents(snapshot: Snapshot, units: Sequence[str], sources: Sources) -> list[Summarised]:
    """The documents of text units by date, those without one last."""
    ids = snapshot.by_key("text_units", units, "id", ["document_id"])["document_id"].to_pylist()
    present = [id for id in dict.fromkeys(map(str, ids)) if id in sources.documents]
    summary_of = summaries.of_documents(snapshot, present)
    listed: list[Summarised] = [{**paper(sources.documents[id]), "summary": summary_of.get(id, "")} for id in present]
    listed.sort(key=lambda document: (document["date"] or "9999", document["title"]))
    return listed


def _beginnings(snapshot: Snapshot, ids: Sequence[str], sources: Sources) -> list[Beginning]:
    """How each text unit begins, in the order of the documents."""
    columns = ["n", "document_id", "chunk_index", "text"]
    facts = sources.documents
    rows = snapshot.by_key("text_units", ids, "id", columns).to_pylist()
    units = [row for row in rows if row["document_id"] in facts]
    units.sort(key=lambda row: (facts[row["document_id"]].uri, row["chunk_index"]))
    return [
        {
            "id": f"t{row['n']}",
            "title": paper(facts[row["document_id"]])["title"],
            "first": one_line(readable(row["text"][:800]), BEGINNING),
        }
        for row in units[:PASSAGES]
    ]


def _finding(finding: Mapping[str, Any], sources: Sources) -> Finding:
    summary, explanation = finding.get("summary", ""), finding.get("explanation", "")
    repeated = explanation.startswith(summary)
    title = "" if repeated else one_line(without_references(summary), 200)
    return {"title": title, "statements": statements(explanation, sources)}
