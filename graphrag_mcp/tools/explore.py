"""Walking the graph: around an entity, from one entity to another, or from its most central ones down.

Takes names or ids; gives entities, relationships and paths with the sentences that say so. One call of
query/explore.py; nothing is computed here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from mcp.types import CallToolResult
from pydantic import BeforeValidator, Field

from graphrag_mcp.tools.arguments import Budget4000, Corpus, Text, as_int, names
from graphrag_mcp.tools.results import MOST, Ctx, budgets, clamp, read, telling, too_long
from graphrag_mcp.types import ExploreResult, Result

if TYPE_CHECKING:
    from graphrag_mcp.store.tables import Snapshot

Start = Annotated[Text, Field(
    description="e12 or a name; c5: the communities under it; empty: where to begin",
    validation_alias=names("start", "source", "from", "a", "entity", "id_or_name", "name", "id", "node", "query"),
)]
Goal = Annotated[Text, Field(
    description="To connect start with", validation_alias=names("goal", "target", "to", "b", "end", "other"),
)]
Hops = Annotated[int, BeforeValidator(as_int(1)), Field(
    description="Steps around start, 1 to 4", validation_alias=names("hops", "depth", "steps", "distance", "radius"),
)]
MaxNodes = Annotated[int, BeforeValidator(as_int(30)), Field(
    description="Entities, 2 to 200", validation_alias=names("max_nodes", "nodes", "limit", "top_k", "max_entities"),
)]


async def explore_graph(
    ctx: Ctx, start: Start = "", goal: Goal = "", hops: Hops = 1, max_nodes: MaxNodes = 30, corpus: Corpus = "",
    max_tokens: Budget4000 = 4000,
) -> Annotated[CallToolResult, ExploreResult]:
    """Walk the graph: an entity's neighbours, or with goal how two entities are connected (shortest and strongest
    path, with evidence). Empty: central entities and the community tree."""
    steps, most = clamp("hops", hops, 1, 4), clamp("max_nodes", max_nodes, 2, 200)
    inner, whole = budgets(max_tokens, 4000, corpus, ctx)

    if "/" in start + goal:  # sample/e1: an id of that corpus
        from graphrag_mcp.query.several import ends

        with telling("explore_graph"):
            corpus, start, goal = ends(start, goal, corpus, ctx.request_context.lifespan_context.app.corpora())

    def work(snapshot: Snapshot) -> Result:
        from graphrag_mcp.query.explore import explore_graph as explore

        found = explore(snapshot, start, goal, hops=steps, max_nodes=most, max_tokens=inner)
        if found.truncated and found.start and whole < MOST:  # there are no pages: the whole of it needs more room
            ends = f'start="{found.start}"' + (f', goal="{found.goal}"' if found.goal else f", hops={steps}")
            found.next_call = f"explore_graph({ends}, max_nodes={most}, max_tokens={min(2 * whole, MOST)})"
        return found

    late = too_long(ExploreResult, "explore_graph", "get_entity(id_or_name=...)")
    return await read(ctx, "explore_graph", corpus, work, late, whole)
