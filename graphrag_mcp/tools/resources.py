"""MCP resources: corpora, entities, reports, texts, sessions, jobs and prompts, of bounded size,
with the same content as the tools give."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError

from graphrag_mcp.app import App
from graphrag_mcp.errors import BadInput, GraphRAGError, NotFound
from graphrag_mcp.jobs import queue
from graphrag_mcp.llm import prompts
from graphrag_mcp.tools import index
from graphrag_mcp.tools.results import SECONDS, THREADS, encodable
from graphrag_mcp.trust import fencing

if TYPE_CHECKING:
    from mcp.server import MCPServer

    from graphrag_mcp.query.drift_state import Walk
    from graphrag_mcp.store.tables import Snapshot

CHARACTERS = 48_000  # of one resource: hosts put a resource into the context whole
TOKENS = 10_000  # of one that the engine packs
SHOWN = 500  # corpora or errors listed
JSON, MARKDOWN, PLAIN = "application/json", "text/markdown", "text/plain"


def register(server: MCPServer[Any], app: App) -> None:
    """Put all resources and templates on a server; the docstrings are what a client shows."""
    threads = _Threads()

    @server.resource("graphrag://corpora", name="corpora", title="Corpora", mime_type=JSON)
    async def all_corpora() -> str:
        """What is indexed: every corpus with its number of documents and its generation."""
        return await threads.read(lambda: corpora(app))

    # Before the other templates: a corpus may be called "jobs", and no job is called "stats".
    @server.resource(
        "graphrag://{corpus}/stats", name="stats", title="Corpus statistics", mime_type=JSON
    )
    async def stats(corpus: str) -> str:
        """Counts, community levels, generation, model and recent jobs of a corpus."""
        return await threads.read(lambda: _json(index.status(app, corpus).model_dump(mode="json")))

    @server.resource(
        "graphrag://drift/{session_id}", name="drift", title="DRIFT session", mime_type=JSON
    )
    async def drift(session_id: str) -> str:
        """A DRIFT session: its graph of questions (node-link), the same as a tree, and the answers
        ranked by score.
        """
        return await threads.read(lambda: session(app, session_id))

    @server.resource("graphrag://jobs/{job_id}", name="job", title="Indexing job", mime_type=JSON)
    async def job(job_id: str) -> str:
        """An indexing job: status, progress, counts and errors."""
        return await threads.read(lambda: job_record(app, job_id))

    @server.resource(
        "graphrag://prompts/{name}", name="prompt", title="Prompt text", mime_type=MARKDOWN
    )
    async def prompt(name: str) -> str:
        """The text of one of the server's prompts, with its $variables."""
        return await threads.read(lambda: prompts.load(name).template)

    @server.resource(
        "graphrag://{corpus}/entity/{id}", name="entity", title="Entity", mime_type=MARKDOWN
    )
    async def entity(corpus: str, id: str) -> str:
        """One entity by id (e12) or name: description, evidence, relationships, communities."""
        return await threads.read(
            lambda: _read(app, corpus, lambda snapshot: entity_text(snapshot, id)), fence=True
        )

    @server.resource(
        "graphrag://{corpus}/community/{id}",
        name="community",
        title="Community report",
        mime_type=MARKDOWN,
    )
    async def community(corpus: str, id: str) -> str:
        """The report on one community (c5), with its members."""
        return await threads.read(
            lambda: _read(app, corpus, lambda snapshot: report_text(snapshot, id)), fence=True
        )

    @server.resource(
        "graphrag://{corpus}/text_unit/{id}",
        name="text_unit",
        title="Text unit",
        mime_type=MARKDOWN,
    )
    async def text_unit(corpus: str, id: str) -> str:
        """The exact original text of one text unit (t33) or passage (t33.2), with where it stands."""
        return await threads.read(
            lambda: _read(app, corpus, lambda snapshot: source_text(snapshot, id)), fence=True
        )

    @server.resource(
        "graphrag://{corpus}/document/{id}", name="document", title="Document", mime_type=PLAIN
    )
    async def document(corpus: str, id: str) -> str:
        """One document (d4) as it was read."""
        return await threads.read(
            lambda: _read(app, corpus, lambda snapshot: document_text(snapshot, id))
        )


class _Threads:
    """Reading in worker threads with a time limit, and errors as the protocol wants them."""

    def __init__(self) -> None:
        self.limiter: anyio.CapacityLimiter | None = None

    async def read(self, work: Callable[[], str], fence: bool = False) -> str:
        """What `work` gives; `fence`: it is words of documents."""
        self.limiter = self.limiter or anyio.CapacityLimiter(THREADS)
        try:
            with anyio.fail_after(SECONDS):
                text = await anyio.to_thread.run_sync(
                    work, abandon_on_cancel=True, limiter=self.limiter
                )
                return encodable(fencing.fenced(fencing.clean(text)) if fence else text)
        except (NotFound, BadInput) as error:
            raise ResourceNotFoundError(encodable(str(error))) from None
        except GraphRAGError as error:
            raise ResourceError(encodable(str(error))) from None
        except TimeoutError:
            raise ResourceError(
                f"The resource was not read after {SECONDS:.0f} s. Read it again."
            ) from None


def _read(app: App, corpus: str, work: Callable[[Snapshot], str]) -> str:
    """`work` on the newest generation of a named corpus; once more when it was cleaned away
    meanwhile."""
    name = app.corpus_for_reading(corpus)
    snapshot = app.snapshot(name)
    try:
        return work(snapshot)
    except GraphRAGError:
        app.forget(name)
        newer = app.snapshot(name)
        if newer.manifest.generation == snapshot.manifest.generation:
            raise
        return work(newer)


def corpora(app: App) -> str:
    from graphrag_mcp.store import manifest

    names, found = app.corpora(), []
    for name in names[:SHOWN]:
        held = manifest.read(app.folder(name))
        counted = held.counters.get("documents", 0) if held else 0
        found.append(
            {"name": name, "documents": counted, "generation": held.generation if held else 0}
        )
    return _json({"corpora": found, "more": max(0, len(names) - SHOWN)})


def entity_text(snapshot: Snapshot, id: str) -> str:
    from graphrag_mcp.query.lookup import get_entity

    found = get_entity(snapshot, id, max_tokens=TOKENS, response_format="detailed")
    if found.state == "not_found":
        near = [str(one["id"]) for one in found.candidates[:5]]
        advice = f"Nearest: {', '.join(near)}" if near else "Call search_text for the words"
        raise NotFound(f"there is no entity {id[:60]!r}", advice)
    return found.text


def report_text(snapshot: Snapshot, id: str) -> str:
    from graphrag_mcp.query.lookup import get_community_report

    return get_community_report(snapshot, id, max_tokens=TOKENS, response_format="detailed").text


def source_text(snapshot: Snapshot, id: str) -> str:
    from graphrag_mcp.query.lookup import get_source

    if not re.fullmatch(r"t\d{1,12}(\.\d{1,6})?|[0-9a-f]{32}", id):
        raise BadInput(f"{id[:60]!r} is no text unit", "Give an id such as t33 or t33.2")
    return get_source(snapshot, [id], max_tokens=TOKENS).text


def document_text(snapshot: Snapshot, id: str) -> str:
    row = document_row(snapshot, id)
    if row is None:
        last = snapshot.manifest.next.get("d", 1) - 1
        raise NotFound(f"there is no document {id[:60]!r}", f"Known are documents d1 to d{last}")
    text = row["text"]
    if len(text) <= CHARACTERS:
        return text
    return f"{text[:CHARACTERS]}\n\n[{len(text) - CHARACTERS:,} more characters: get_source reads them by id]"


def document_row(snapshot: Snapshot, id: str) -> dict[str, Any] | None:
    """The whole row of a document by d4 or its full id; None when it is unknown or damaged."""
    if match := re.fullmatch(r"d(\d{1,12})", id):
        rows = snapshot.by_key("documents", [int(match[1])], "n")
    elif re.fullmatch(r"[0-9a-f]{32}", id):
        rows = snapshot.by_key("documents", [id], "id")
    else:
        return None
    return next(iter(rows.to_pylist()), None)


def session(app: App, session_id: str) -> str:
    """The graph of a session; answers are shortened and waiting questions left out until the whole
    is small enough."""
    from graphrag_mcp.query.drift_state import Walk
    from graphrag_mcp.store import sessions

    walk = Walk(sessions.read(app.drift_path(session_id)))
    if not walk.header:
        what = f"there is no DRIFT session {session_id[:60]!r}"
        raise NotFound(what, 'Start one with drift_search(query="...")')
    header, nodes = walk.header, walk.graph.number_of_nodes()
    text = ""
    for answer, query, most in (
        (4_000, 500, nodes),
        (1_000, 500, nodes),
        (300, 300, 400),
        (80, 120, 150),
        (0, 60, 60),
    ):
        graph = _node_link(walk, answer, query, most)
        answered = [node for node in graph["nodes"] if node["status"] == "answered"]
        ranked = sorted(answered, key=lambda node: (-(node["score"] or 0.0), node["id"]))
        body = {
            "session_id": session_id,
            "question": header["query"],
            "corpus": header["corpus"],
            "graph": graph,
            "ranked": [{"id": node["id"], "score": node["score"]} for node in ranked],
            "tree": walk.to_markdown()[: CHARACTERS // 6],
            "left_out": nodes - len(graph["nodes"]),
        }
        text = _json(body)
        if len(text) <= CHARACTERS:
            break
    return text


def _node_link(walk: Walk, answer: int, query: int, most: int) -> dict[str, Any]:
    """The walk as node-link data with texts of at most so many characters, answered nodes before
    waiting ones."""
    from graphrag_mcp.packing.budget import one_line

    order = {"answered": 0, "open": 1, "frontier": 2, "pruned": 3}
    kept = sorted(walk.graph.nodes(data=True), key=lambda pair: order.get(pair[1]["status"], 4))[
        :most
    ]
    names = ("parent", "kind", "depth", "status", "score", "by")
    nodes = [
        {
            "id": id,
            "query": one_line(node["query"], query),
            **{name: node[name] for name in names},
            "answer": one_line(node["answer"], answer) if answer else "",
            "sources": node["context"][:10],
        }
        for id, node in kept
    ]
    known = {id for id, _ in kept}
    edges = [
        {"source": one, "target": other}
        for one, other in walk.graph.edges()
        if {one, other} <= known
    ]
    return {"directed": True, "multigraph": True, "nodes": nodes, "edges": edges}


def job_record(app: App, job_id: str) -> str:
    """The record without the request: that may hold whole texts."""
    job = queue.load(app.home, job_id)
    names = "job_id corpus status phase done total error started updated".split()
    shown = {name: getattr(job, name) for name in names}
    wanted = ("counts", "skipped", "errors", "usage", "degraded", "pending", "losses", "seconds")
    result = {name: job.result[name] for name in wanted if job.result.get(name)}
    return _json(
        shown
        | {name: one[:SHOWN] if isinstance(one, list) else one for name, one in result.items()}
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)
