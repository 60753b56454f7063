"""What a run would ask models, before it asks: calls, tokens and cost.

Takes the documents that a call would read; gives an estimate, without a lock, a write or a call. Texts are chunked as
they would be, so the questions about them are counted exactly, less those that the answer book already answers. What
the answers will hold is imitated: a model names the best-connected names of a text unit and says a sentence of each,
as many as a first reply usually has; the graph of these is clustered, and its reports are counted. Measured against
runs with such a model (docs/benchmarks.md); one that says twice as much costs more.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphrag_mcp.ask import key_of
from graphrag_mcp.ask_limits import Budget
from graphrag_mcp.index import pairs as pr
from graphrag_mcp.index.communities import ClusterParams, cluster
from graphrag_mcp.index.mentions import Named, UnitNames, entity_id
from graphrag_mcp.index.models import Models
from graphrag_mcp.index.rows import Row
from graphrag_mcp.seams import Message
from graphrag_mcp.settings import Settings
from graphrag_mcp.text import is_cjk

FIRST = 18  # entities, and as many relationships, of a first reply
AFTER = 4  # names of a sentence that its first one is related to
RECORD = 25  # tokens of a record beside the sentence that it quotes: names, type, keywords, delimiters
GLEANED = 0.1  # share of units that are read a second time
REPORT_WORDS = 1_000  # tokens of a report
SUMMARY_WORDS = 250  # tokens of a description made of many
ROW = 30  # tokens of a row of a report's prompt beside its description
# What a row that was left open usually costs: prompt and output.
LEFT = {
    "entity": ("describe", 900, SUMMARY_WORDS), "relationship": ("describe", 900, SUMMARY_WORDS),
    "report": ("report", 2_100, REPORT_WORDS),
}  # fmt: skip


@dataclass
class Estimate:
    """Calls and tokens by kind of question."""

    calls: Counter[str] = field(default_factory=Counter)
    prompt: Counter[str] = field(default_factory=Counter)
    output: Counter[str] = field(default_factory=Counter)

    def add(self, kind: str, prompt: float, output: float, calls: int = 1) -> None:
        self.calls[kind] += calls
        self.prompt[kind] += round(prompt)
        self.output[kind] += round(output)

    def record(self, budget: Budget) -> dict[str, Any]:
        """Totals, cost by the prices of the settings, and the same by stage."""
        embedded = self.prompt["embedding"]
        cost = (self.prompt.total() - embedded) * budget.price_prompt + embedded * budget.price_embedding
        cost += self.output.total() * budget.price_output
        stages = {
            kind: {"calls": self.calls[kind], "prompt_tokens": self.prompt[kind], "output_tokens": self.output[kind]}
            for kind in sorted(self.calls)
            if self.calls[kind]
        }
        return {
            "calls": self.calls.total(), "prompt_tokens": self.prompt.total(), "output_tokens": self.output.total(),
            "cost": round(cost / 1_000_000, 4), "by_stage": stages,
        }  # fmt: skip


def tokens_of(text: str) -> float:
    """What providers' tokenizers make of a text, about: 4 letters, or 1.3 CJK characters, a token."""
    dense = 0 if text.isascii() else sum(map(is_cjk, text))
    return (len(text) - dense) / 4 + dense / 1.3


def estimate(
    units: Sequence[UnitNames], passages: Iterable[Row], models: Models, settings: Settings,
    known: Callable[[str], bool], waiting: Mapping[str, int],
) -> Estimate:  # fmt: skip
    """`known`: is there an answer to this key in the book? `waiting`: rows that an earlier run left open, by kind."""
    found = Estimate()
    if models.extract is not None:
        for kind, (name, size, output) in LEFT.items():
            found.add(name, size * waiting.get(kind, 0), output * waiting.get(kind, 0), waiting.get(kind, 0))
        _texts(found, units, models, known)
        graph = _imitated(units)
        _descriptions(found, graph, settings)
        communities = _reports(found, graph, models, settings)
        if models.embedding:
            _embeddings(found, graph, communities, settings)
    if models.embedding:
        sizes = [len(row["title"]) + len(row["text"]) for row in passages]
        _embedded(found, sizes, settings)
    return found


def _texts(found: Estimate, units: Sequence[UnitNames], models: Models, known: Callable[[str], bool]) -> None:
    assert models.extract is not None
    for unit in units:
        prompt = models.extract.prompt(unit.text)
        if known(key_of((Message("user", prompt),), None)):
            continue
        said = _said(unit)
        output = sum(RECORD + tokens_of(text) for text in said)
        found.add("extract", tokens_of(prompt), output)
        passes = GLEANED if models.extract.gleanings == "auto" else int(models.extract.gleanings)
        found.prompt["glean"] += round(passes * (tokens_of(prompt) + output + 60))
        found.output["glean"] += round(passes * output / 3)
        found.calls["glean"] += round(passes) if passes >= 1 else 0
        if models.claims is not None:
            found.add("claims", tokens_of(models.claims.prompt(unit.text)), 400)
    if models.extract.gleanings == "auto":
        found.calls["glean"] = round(GLEANED * found.calls["extract"])


def _said(unit: UnitNames) -> list[str]:
    """The sentences of the records of a first reply."""
    names, links = _best(unit)
    text = unit.text
    sentences = [text[name.sentences[0] : name.sentences[1]][:280] for name in names]
    return sentences + [text[link.start : link.end][:280] for link in links]


def _best(unit: UnitNames) -> tuple[list[Named], list[pr.Evidence]]:
    """The names that are connected most, and of each sentence its first name with those after it: its subject, as a
    model would relate them."""
    strong = [name for name in unit.named if name.strong] or unit.named
    by_sentence: dict[tuple[int, int], list[Named]] = defaultdict(list)
    for name in sorted(strong, key=lambda name: name.start):
        for at in range(0, len(name.sentences), 2):
            by_sentence[name.sentences[at], name.sentences[at + 1]].append(name)
    found: dict[tuple[str, str], pr.Evidence] = {}
    held: Counter[str] = Counter({name.key: name.count for name in strong})
    for (start, end), (first, *others) in sorted(by_sentence.items(), key=lambda item: item[0]):
        for other in others[:AFTER]:
            one, two = sorted((entity_id(first.key), entity_id(other.key)))
            made = pr.Evidence(pr.relationship_id(one, two), one, two, unit.id, 0, start, end)
            link = found.setdefault((one, two), made)
            link.weight += 1
            held.update((first.key, other.key))
    names = sorted(strong, key=lambda name: (-held[name.key], name.start))[:FIRST]
    ids = {entity_id(name.key) for name in names}
    kept = [link for link in found.values() if link.source_id in ids and link.target_id in ids]
    return names, sorted(kept, key=lambda link: (-link.weight, link.start))[:FIRST]


# ---- the graph that the answers would make -----------------------------------------------------------


@dataclass
class _Graph:
    """Text units, length of what is said, by entity and pair; entities by pair."""

    units: dict[str, set[str]]
    said: Counter[str]
    ends: dict[str, tuple[str, str]]
    weight: Counter[str]


def _imitated(units: Sequence[UnitNames]) -> _Graph:
    graph = _Graph(defaultdict(set), Counter(), {}, Counter())
    for unit in units:
        names, links = _best(unit)
        for name in names:
            id = entity_id(name.key)
            graph.units[id].add(unit.id)
            graph.said[id] += min(name.sentences[1] - name.sentences[0], 280) + 40
        for link in links:
            graph.units[link.relationship_id].add(unit.id)
            graph.said[link.relationship_id] += min(link.end - link.start, 280) + 40
            graph.ends[link.relationship_id] = (link.source_id, link.target_id)
            graph.weight[link.relationship_id] += link.weight
    return graph


def _descriptions(found: Estimate, graph: _Graph, settings: Settings) -> None:
    for id, units in graph.units.items():
        tokens = graph.said[id] / 4
        if len(units) >= settings.summary_fragments or (len(units) > 1 and tokens > settings.summary_tokens):
            found.add("describe", 180 + tokens, SUMMARY_WORDS)


def _reports(found: Estimate, graph: _Graph, models: Models, settings: Settings) -> int:
    """Adds the reports that a model would write; how many there are with those that rules write."""
    assert models.reports is not None
    edges = [(*graph.ends[id], graph.weight[id]) for id in sorted(graph.ends)]
    if not edges:
        return 0
    tree = cluster(edges, None, ClusterParams(max_cluster_size=settings.max_cluster_size, seed=settings.seed))
    constant = tokens_of(models.reports.template.template)
    inside: dict[str, list[str]] = defaultdict(list)
    for id, (source, target) in graph.ends.items():
        for one, other in zip(tree.path.get(source, ()), tree.path.get(target, ()), strict=False):
            if one != other:
                break
            inside[one].append(id)
    for id, community in tree.communities.items():
        rows = [*community.members, *inside[id]]
        held = set().union(*(graph.units[row] for row in rows))
        if len(community.members) >= settings.report_min_size and len(held) >= settings.report_min_units:
            shown = sum(ROW + graph.said[row] / 4 for row in rows)
            found.add("report", constant + min(shown, settings.report_tokens), REPORT_WORDS)
    return len(tree.communities)


def _embeddings(found: Estimate, graph: _Graph, communities: int, settings: Settings) -> None:
    _embedded(found, [graph.said[id] for id in graph.units if id not in graph.ends], settings)
    _embedded(found, [graph.said[id] for id in graph.ends], settings)
    _embedded(found, [2_000] * found.calls["report"] + [500] * (communities - found.calls["report"]), settings)


def _embedded(found: Estimate, sizes: Sequence[int], settings: Settings) -> None:
    """Batches as the asker makes them."""
    from graphrag_mcp.ask import EMBED_CHARACTERS

    count = size = 0
    for length in sizes:
        if not count or count >= settings.embedding_batch or size + length > EMBED_CHARACTERS:
            found.calls["embedding"] += 1
            count = size = 0
        count, size = count + 1, size + length
    found.prompt["embedding"] += round(sum(sizes) / 4)
