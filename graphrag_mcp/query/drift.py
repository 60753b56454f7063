"""DRIFT: a question as a graph of questions that an agent works through, one node at a time.

The state is the journal (store/sessions.py), folded into a graph (query/drift_state.py) at every
call, so any process may take the next step. The method is that of GraphRAG (a primer over community
reports, local searches over follow-up questions, a reduction); the order is ours: a stated score
picks the next node.

The graph proposes follow-ups where the agent gives none: questions about neighbours of what the
answer cites, ranked by the weight of the relationship / (1 + ln of the neighbour's degree), times 1
for a new neighbour, 0.7 where it stands in what was cited but no answer names it, 0.3 where an
answer does; at most two begin at the same entity."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.llm import prompts
from graphrag_mcp.names.latin import language
from graphrag_mcp.packing.budget import (
    Item,
    Section,
    citation,
    clamp_budget,
    compose,
    finish,
    one_line,
    short_references,
)
from graphrag_mcp.query import context, reports
from graphrag_mcp.query.drift_state import (
    Walk,
    clean_query,
    near,
    read_follow_ups,
    read_score,
    words,
)
from graphrag_mcp.query.local import local_search
from graphrag_mcp.store import sessions
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.folding import LANGUAGES
from graphrag_mcp.text.terms import counted, is_cjk, normalise_name
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.types import Citation, DriftNode, DriftResult

TABLES = {"t": "passages", "d": "documents", "e": "entities", "r": "relationships", "c": "reports"}
_ALIAS = re.compile(r"(?<![A-Za-z0-9.])([tderc])(\d{1,9})(?:\.(\d{1,4}))?(?![A-Za-z0-9])")
_BRACKETS = re.compile(r"[\[(（【][^\[\]()（）【】\n]{1,400}[\])）】]")


def cited_aliases(answer: str) -> list[str]:
    """The short ids inside brackets of an answer, each once, in order."""
    return list(
        dict.fromkeys(
            match.group() for part in _BRACKETS.findall(answer) for match in _ALIAS.finditer(part)
        )
    )


# ---- answers -------------------------------------------------------------------------------------


def ranked_items(snapshot: Snapshot, walk: Walk) -> tuple[list[Item], set[str]]:
    """The answers as items, best first, and the ids named in them that the index does not have."""
    best = ranked(walk)
    known, gone = references(snapshot, [node["answer"] for node, _ in best])
    return [_item(node, others, known, gone) for node, others in best], gone


def ranked(walk: Walk) -> list[tuple[Mapping[str, Any], list[str]]]:
    """Answered nodes best first, each with the questions whose answers say nearly the same."""
    nodes = [walk.graph.nodes[id] | {"id": id} for id in walk.with_status("answered")]
    nodes.sort(
        key=lambda one: (one["score"] is None, -(one["score"] or 0.0), one["depth"], one["id"])
    )
    kept: list[tuple[Mapping[str, Any], list[str]]] = []
    said: list[frozenset[str]] = []
    for node in nodes:
        bag = words(node["answer"])
        for at, (other, queries) in enumerate(kept):
            if other["answer"] == node["answer"] or near(bag, said[at]):
                queries.append(node["query"])
                break
        else:
            kept.append((node, []))
            said.append(bag)
    return kept


def references(snapshot: Snapshot, answers: Sequence[str]) -> tuple[dict[str, Citation], set[str]]:
    """Citations of the sources that the answers name, and the ids among all they name that do not
    exist."""
    named = list(dict.fromkeys(alias for answer in answers for alias in cited_aliases(answer)))
    known: dict[str, Citation] = {}
    gone: set[str] = set()
    for letter, table in TABLES.items():
        aliases = [alias for alias in named if alias[0] == letter]
        numbers = sorted({int(alias[1:].partition(".")[0]) for alias in aliases})
        if letter == "t":
            rows = context.numbered(snapshot, table, numbers)
            for row in sorted(rows, key=lambda row: (row["n"], row["part"])):
                place = citation(row)
                known[place.id] = place
                known.setdefault(f"t{row['n']}", place)
                known.setdefault(f"t{row['n']}.{row['part']}", place)
            gone.update(alias for alias in aliases if alias not in known)
        elif numbers:
            there = set(snapshot.by_key(table, numbers, "n", ["n"])["n"].to_pylist())
            gone.update(alias for alias in aliases if int(alias[1:].partition(".")[0]) not in there)
    return known, gone


def marked(answer: str, gone: set[str]) -> str:
    """The answer with what it cites and the index no longer has marked as gone."""

    def mark(part: re.Match[str]) -> str:
        return _ALIAS.sub(
            lambda one: one.group() + (" (gone)" if one.group() in gone else ""), part.group()
        )

    return _BRACKETS.sub(mark, answer)


def _item(
    node: Mapping[str, Any], others: Sequence[str], known: Mapping[str, Citation], gone: set[str]
) -> Item:
    """One answer under its question, with ids that are gone marked as such."""
    score = "no score" if node["score"] is None else f"score {node['score']:g}"
    lines = [f"### {one_line(node['query'], 300)} ({score})", marked(node["answer"], gone)]
    aliases = cited_aliases(node["answer"])
    if others:
        lines.append(f"Also answers: {'; '.join(one_line(other, 200) for other in others)}")
    if not aliases and node["context"]:
        lines.append(f"It cites nothing; it was shown {', '.join(node['context'][:5])}.")
    places = {known[alias].id: known[alias] for alias in aliases if alias in known}
    return Item(node["id"], "\n".join(lines), None, "Answers", also=tuple(places.values()))


Row = dict[str, Any]
QUESTIONS = 5
FROM_ONE = 2  # questions that begin at the same entity
HUB = 500  # an entity of more relationships proposes nothing: everything is its neighbour
STARTS, LOOKED_AT = 12, 60  # entities that proposals begin at, neighbours that are read
SHOWN, MENTIONED = 0.7, 0.3  # how new a neighbour is that stands in cited text, or in an answer
# what a name in another script than the question's is worth: often the translation of a known one
FOREIGN = 0.5
FORMS: dict[str, dict[str, str]] = tomllib.loads(
    Path(__file__).with_name("drift_questions.toml").read_text("utf-8")
)
KINDS = {
    **dict.fromkeys(("organisation", "company", "institution"), "organization"),
    **dict.fromkeys(("place", "geo", "city", "country"), "location"),
    **dict.fromkeys(("time", "year"), "date"),
    **dict.fromkeys(("accident", "meeting", "war"), "event"),
    "people": "person",
}
GRAMMAR = LANGUAGES["en"] | frozenset(
    "since while until during within between about after before".split()
)
_WORD = re.compile(r"[^\W\d_]{5,40}")


def propose(snapshot: Snapshot, walk: Walk, id: str, answer: str) -> list[str]:
    """At most 5 questions, best first; none at the last depth, and none for an answer that is
    recorded already."""
    node = walk.graph.nodes[id]
    if node["depth"] >= walk.header["depth"] or (
        node["status"] == "answered" and node["answer"] == answer
    ):
        return []
    held = _held(snapshot, answer, node["context"])
    rows = snapshot.by_key(
        "entities", sorted(held), "id", ["id", "title", "key", "degree"]
    ).to_pylist()
    rows.sort(key=lambda row: (-held[row["id"]] / (1 + math.log(1 + row["degree"])), row["id"]))
    start = {row["id"]: row for row in rows[:STARTS] if 0 < row["degree"] <= HUB}
    best = {id: one for id, one in _neighbours(snapshot, start).items() if one["here"] in start}
    names = ["id", "title", "key", "type", "degree"]
    there = {
        row["id"]: row for row in snapshot.by_key("entities", list(best), "id", names).to_pylist()
    }
    asked = " | ".join(normalise_name(node["query"]) for _, node in walk.graph.nodes(data=True))
    said = " | ".join(
        normalise_name(text)
        for text in (answer, *(n["answer"] for _, n in walk.graph.nodes(data=True)))
    )
    worth: dict[str, float] = {}
    for one, row in there.items():
        here = start[best[one]["here"]]
        one_name = _names(row["key"], here["key"]) or _names(here["key"], row["key"])
        if not one_name and not _names(asked, row["key"]):
            new = MENTIONED if _names(said, row["key"]) else SHOWN if one in held else 1.0
            new *= 1.0 if _foreign(row["title"]) == _foreign(walk.header["query"]) else FOREIGN
            worth[one] = new * best[one]["weight"] / (1 + math.log(max(row["degree"], 1)))
    spread: Counter[str] = Counter()
    chosen: list[str] = []
    for one in sorted(worth, key=lambda one: (-round(worth[one], 9), one)):
        here = best[one]["here"]
        if spread[here] < FROM_ONE and len(chosen) < QUESTIONS:
            spread[here] += 1
            chosen.append(one)
    links = snapshot.served("relationships", [best[one]["id"] for one in chosen])
    link = {row["id"]: row for row in links}
    forms = FORMS[language_of(walk.header["query"])]
    return [
        _question(forms, there[one], start[best[one]["here"]], link.get(best[one]["id"]))
        for one in chosen
    ]


def language_of(query: str) -> str:
    """ "zh", "en", or "" for any other: Han without kana or hangul is Chinese; English shows by its
    small words."""
    if any("\u3040" <= ch <= "\u30ff" or "\uac00" <= ch <= "\ud7af" for ch in query):
        return ""
    if any(is_cjk(ch) for ch in query):
        return "zh"
    return "en" if language(set(re.findall(r"[^\W\d_]+", query.lower()))) == "en" else ""


def _held(snapshot: Snapshot, answer: str, context: Sequence[str]) -> dict[str, float]:
    """The entities of what an answer cites, or else was shown: id -> how much they are cited."""
    cited = cited_aliases(answer)
    places = [alias for alias in cited if alias[0] == "t"] or context[:4]
    numbers = [int(alias[1:].partition(".")[0]) for alias in places if alias[:1] == "t"]
    held: dict[str, float] = {}
    for ids in snapshot.by_key("passages", numbers, "n", ["entity_ids"])["entity_ids"].to_pylist():
        for one in ids:
            held[one] = held.get(one, 0.0) + 1.0
    own = [int(alias[1:]) for alias in cited if alias[0] == "e"]
    for one in snapshot.by_key("entities", own, "n", ["id"])["id"].to_pylist():
        held[one] = held.get(one, 0.0) + 5.0
    return held


def _neighbours(snapshot: Snapshot, start: Mapping[str, Row]) -> dict[str, Row]:
    """The strongest neighbours: id -> its best relationship {id, weight, here}, from the more cited
    of a pair."""
    if not start:
        return {}
    listed = ", ".join(f"'{id}'" for id in start)
    names = ["id", "source_id", "target_id", "weight"]
    links = snapshot.rows(
        "relationships", f"source_id IN ({listed}) OR target_id IN ({listed})", names
    ).to_pylist()
    place = {id: at for at, id in enumerate(start)}
    best: dict[str, Row] = {}
    for link in sorted(links, key=lambda one: (-one["weight"], one["source_id"], one["target_id"])):
        ends = sorted(
            (link["source_id"], link["target_id"]), key=lambda id: (place.get(id, len(place)), id)
        )
        best.setdefault(ends[1], {"id": link["id"], "weight": link["weight"], "here": ends[0]})
    order = sorted(best, key=lambda id: (-best[id]["weight"], id))[:LOOKED_AT]
    return {id: best[id] for id in order}


def _names(text: str, key: str) -> bool:
    """Does the text name it, as a word of its own where words are apart?"""
    if not key.isascii():
        return key in text
    return re.search(rf"(?<![a-z0-9]){re.escape(key)}(?![a-z0-9])", text) is not None


def _foreign(text: str) -> bool:
    return any(is_cjk(ch) for ch in text)


# ---- words ---------------------------------------------------------------------------------------


def _question(forms: Mapping[str, str], there: Row, here: Row, link: Row | None) -> str:
    kind = there["type"].casefold()
    form = forms.get(KINDS.get(kind, kind), forms[""])
    words = _topic(link, there["title"], here["title"]) if link else []
    topic = forms["topic"].format(forms["and"].join(words)) if words else ""
    return form.format(
        there=one_line(there["title"], 80), here=one_line(here["title"], 80), topic=topic
    )


def _topic(link: Row, *titles: str) -> list[str]:
    """Two words on what a relationship is about: a model's keywords, else words that its sentences
    repeat."""
    names = " ".join(titles).casefold()
    said = [
        one_line(word, 40) for word in re.split(r"[,;，、；]+", link["keywords"]) if word.strip()
    ]
    kept = [word for word in said if word.casefold() not in names]
    if not kept:
        text = " ".join(dict.fromkeys(one["text"] for one in link["evidence"]))
        found = Counter(word for word in _WORD.findall(text) if word.islower() and word.isascii())
        kept = [
            word
            for word, count in found.most_common(8)
            if count > 1 and word not in names and word not in GRAMMAR
        ]
    return kept[:2]


DEFAULT_TOKENS = 6_000
DEPTH, BREADTH, NODES = (3, 1, 6), (20, 1, 100), (40, 2, 200)  # default, least, most
SESSION_TOKENS = 6_000  # of context per node of the budget, over the whole session
FOLLOW_UPS = 5  # kept of one answer
PRIMER_FOLLOW_UPS = 10  # kept of the first, which opens the walk
ANSWER_CHARACTERS = 20_000
KEEP_DAYS = 30  # a session that no one touched for so long is forgotten
PRIMER_REPORTS, NEAR = 4, 0.6  # reports before the first step, at least so near to the best one
PRIMER_SHARES = {"Reports": 0.6, "Sources": 0.4}
STEP_SHARES = {"Sources": 0.9, "Reports": 0.1}


class Drift:
    """One session. `Drift(snapshot, path).start(query)`, then `.step(...)` per node, then
    `.finish()`."""

    def __init__(self, snapshot: Snapshot, path: Path) -> None:
        self.snapshot = snapshot
        self.path = path
        self.id = path.stem

    # ---- the three moves -------------------------------------------------------------------------

    def start(
        self,
        query: str,
        *,
        depth: int = DEPTH[0],
        breadth: int = BREADTH[0],
        max_nodes: int = NODES[0],
        max_tokens: int = DEFAULT_TOKENS,
    ) -> DriftResult:
        """Open the session with the first node: the primer over the best-rated reports. A known
        session goes on."""
        budget, note = clamp_budget(max_tokens, DEFAULT_TOKENS)
        walk = self.begin(query, depth=depth, breadth=breadth, max_nodes=max_nodes)
        if walk.graph.nodes[walk.root]["status"] != "frontier":
            return self._next(
                walk, "", budget, ["This session had been started before; it goes on."]
            )
        return self._show(walk, walk.root, "", budget, [note])

    def begin(
        self,
        query: str,
        *,
        depth: int = DEPTH[0],
        breadth: int = BREADTH[0],
        max_nodes: int = NODES[0],
    ) -> Walk:
        """Write the session's first event, unless it has one."""
        query = clean_query(query)
        if not query:
            what = "the query is empty"
            raise BadInput(what, 'Ask something, e.g. drift_search(query="How did A come to B?")')
        walk = Walk(sessions.read(self.path))
        if walk.header:
            return self._own(walk)
        limits = {
            "depth": _within(depth, DEPTH),
            "breadth": _within(breadth, BREADTH),
            "max_nodes": _within(max_nodes, NODES),
        }
        manifest = self.snapshot.manifest
        sessions.append(
            self.path,
            {
                "op": "start",
                "query": query,
                "corpus": manifest.corpus,
                "generation": manifest.generation,
                **limits,
            },
        )
        return self.walk()

    def step(
        self,
        node_id: str,
        answer: str = "",
        score: object = None,
        follow_ups: object = (),
        prune: object = (),
        open_next: object = "",
        *,
        max_tokens: int = DEFAULT_TOKENS,
        by: str = "",
    ) -> DriftResult:
        """Record an answer to a node and open the next one.

        `open_next` is "" for the best frontier node, the id of any node, or "none". Without answer,
        score, follow-ups and prunings the node `node_id` itself is opened. The same call twice
        changes nothing more. `by`: who answered, when it was not the agent."""
        budget, note = clamp_budget(max_tokens, DEFAULT_TOKENS)
        walk = self.walk()
        node_id = self.known(walk, node_id)
        notes = [note]
        answer = str(answer or "").strip()[:ANSWER_CHARACTERS]
        value, said = read_score(score)
        notes.append(said)
        most = PRIMER_FOLLOW_UPS if node_id == walk.root else FOLLOW_UPS
        queries, said = read_follow_ups(follow_ups, most)
        notes.append(said)
        pruned = [self.known(walk, one) for one in _listed(prune)]
        # before anything is written: a call that fails has done nothing
        wish = self._wished(walk, open_next)
        if not answer and value is None and not queries and not pruned and not wish:
            return self._show(walk, node_id, "", budget, notes)
        if value is not None and not answer:
            notes.append(
                "The score was not recorded: a score belongs to an answer, and none was given."
            )
        notes.append(self._unknown(answer))
        if answer and not queries and node_id == walk.root:  # deeper, none means that it is settled
            queries = propose(self.snapshot, walk, node_id, answer)
            if queries:
                notes.append("No follow-ups were given, so the graph proposed some.")
        if not self._recorded(walk, node_id, answer, value, queries, pruned):
            if answer and walk.graph.nodes[node_id]["status"] == "answered":
                notes.append(f"Node {node_id} had an answer; this one replaces it.")
            before = set(walk.graph.nodes)
            walk = self.record(node_id, answer, value, queries, pruned, by)
            merged = len(queries) - len(set(walk.graph.nodes) - before)
            if merged > 0 and walk.graph.nodes[node_id]["depth"] < walk.header["depth"]:
                notes.append(
                    f"{counted(merged, 'follow-ups')} repeated what is there: linked, not asked again."
                )
        return self._go_on(walk, node_id, wish, budget, notes)

    def go_on(
        self, after: str, open_next: object = "", *, max_tokens: int = DEFAULT_TOKENS
    ) -> DriftResult:
        """Open what comes after a node that was answered."""
        budget, note = clamp_budget(max_tokens, DEFAULT_TOKENS)
        walk = self.walk()
        return self._go_on(walk, after, self._wished(walk, open_next), budget, [note])

    def record(
        self,
        id: str,
        answer: str,
        score: float | None,
        queries: Sequence[str],
        pruned: Sequence[str] = (),
        by: str = "",
    ) -> Walk:
        """Write one answer with its follow-ups and prunings; gives the state after it."""
        event = {
            "op": "step",
            "node": id,
            "answered": bool(answer),
            "answer": answer,
            "score": score,
            "follow_ups": list(queries),
            "prune": list(pruned),
        }
        sessions.append(self.path, event | ({"by": by} if by else {}))
        return self.walk()

    def finish(self, *, max_tokens: int = DEFAULT_TOKENS) -> DriftResult:
        """The answers so far, best first, repeats merged, references checked. The session stays
        open."""
        budget, note = clamp_budget(max_tokens, DEFAULT_TOKENS)
        walk = self.walk()
        result = self.state(walk, DriftResult(session_id=self.id), shown=3)
        result.done = self.over(walk)
        notes = [note, self.moved(walk)]
        query = walk.header["query"]
        items, gone = ranked_items(self.snapshot, walk)
        if not items:
            result.state, result.done = "not_found", False
            result.text = (
                f"No node of this session has an answer yet. Question: {one_line(query, 300)}"
            )
            result.next_call = self._call(
                (walk.with_status("open") or walk.frontier() or [walk.root])[0]
            )
            result.hint = " ".join(filter(None, notes))
            return finish(result, budget)
        if gone:
            notes.append(f"Not in the index: {', '.join(sorted(gone)[:10])}.")
        if not result.done:
            waiting = [
                *(walk.frontier() if self._budget_left(walk) else []),
                *walk.with_status("open"),
            ]
            notes.append(f"{counted(len(waiting), 'questions')} still waiting for an answer.")
            result.next_call = f'drift_step(session_id="{self.id}", node_id="{waiting[0]}")'
        result.hint = " ".join(filter(None, notes))
        said = f"{counted(len(items), 'answers')} from {counted(result.answered, 'answered questions')}, best first."
        intro = f"# {one_line(query, 300)}\n{said}"
        return compose(
            result,
            [Section("Answers", items, 1.0)],
            budget,
            lambda _: "",
            intro=intro,
            first="Answers",
        )

    def walk(self) -> Walk:
        """The state as it is on disk now. NotFound when no session was started there."""
        walk = Walk(sessions.read(self.path))
        if not walk.header:
            raise NotFound(
                f"there is no session {self.id[:60]!r}", 'Start one with drift_search(query="...")'
            )
        return self._own(walk)

    def _own(self, walk: Walk) -> Walk:
        """Ids mean nothing in another corpus than the one that a session began in."""
        began, here = walk.header["corpus"], self.snapshot.manifest.corpus
        if began != here:
            what = f"session {self.id[:60]} belongs to corpus {began!r}, not to {here!r}"
            raise BadInput(
                what,
                f"Open it with corpus {began!r}, or start another with drift_search(query=...)",
            )
        return walk

    # ---- opening a node --------------------------------------------------------------------------

    def _wished(self, walk: Walk, open_next: object) -> str:
        """ "" for the best node, "none", or the id of one."""
        wish = str(open_next if open_next is not None else "").strip()
        if wish.casefold() in ("none", "no", "false"):
            return "none"
        return "" if wish.casefold() in ("", "best", "true", "yes") else self.known(walk, wish)

    def _go_on(
        self, walk: Walk, after: str, wish: str, budget: int, notes: list[str]
    ) -> DriftResult:
        if wish == "none":
            return self._reply(walk, budget, notes)
        if wish:
            return self._show(walk, wish, after, budget, notes)
        return self._next(walk, after, budget, notes)

    def _next(self, walk: Walk, after: str, budget: int, notes: list[str]) -> DriftResult:
        """Open the best frontier node; the one that this answer opened before, when the call is
        repeated."""
        again = [
            id
            for id in walk.with_status("open")
            if after and walk.graph.nodes[id]["after"] == after
        ]
        waiting = [id for id in walk.with_status("open") if id != after]
        frontier = walk.frontier() if self._budget_left(walk) else []
        chosen = (again or frontier or waiting)[:1]
        if not chosen:
            return self._reply(walk, budget, notes)
        return self._show(walk, chosen[0], after, budget, notes)

    def _show(self, walk: Walk, id: str, after: str, budget: int, notes: list[str]) -> DriftResult:
        """The context of a node, and what the agent is asked to do with it."""
        node = walk.graph.nodes[id]
        if node["status"] == "pruned":
            raise BadInput(f"node {id} was pruned", f"Open another: {self._open_list(walk)}")
        if node["status"] == "frontier" and not self._budget_left(walk):
            return self._reply(walk, budget, [*notes, "The budget of this session is spent."])
        primer = id == walk.root
        prompt = prompts.load("drift_primer" if primer else "drift_step")
        intro = prompt.substitute(question=walk.header["query"], node=id, node_query=node["query"])
        result = DriftResult(session_id=self.id, open_node=id)
        shown = 3 if budget < 2_000 else 8
        spent = count_tokens(intro) + 60 * shown + 220
        found = self._context(node["query"], max(budget - spent, 200), primer)
        if node["status"] == "frontier":
            walk = self.opened(
                id, [citation.id for citation in found.citations], found.tokens, after
            )
        result = self.state(walk, result, shown)
        result.text = f"{intro}\n\n{found.text}"
        result.citations = found.citations
        result.truncated = found.truncated
        result.next_call = self._call(id)
        result.hint = " ".join(filter(None, [*notes, self.moved(walk)]))
        if found.state == "not_found":
            nothing = (
                "Nothing was found for this question; prune it or answer that it is not known."
            )
            result.hint = f"{result.hint} {nothing}".strip()
        return finish(result, budget)

    def opened(self, id: str, ids: Sequence[str], tokens: int, after: str = "") -> Walk:
        """Write that a node was opened with these sources before it."""
        event = {"op": "open", "node": id, "after": after, "context": list(ids), "tokens": tokens}
        sessions.append(self.path, event)
        return self.walk()

    def _context(self, query: str, budget: int, primer: bool) -> DriftResult:
        """Primer: best-rated reports, then text. Else a local search with nearly all of the budget
        for text."""
        result = DriftResult()
        if primer:
            kept, _ = reports.select(self.snapshot, query)
            good = [one.id for one in kept[:PRIMER_REPORTS] if one.rating >= NEAR * kept[0].rating]
            rows = self.snapshot.served("reports", good)
            names, _ = context.resolve_references(self.snapshot, [row["summary"] for row in rows])
            items = []
            for row in rows:
                said = one_line(short_references(row["summary"], names), 360)
                title = one_line(row["title"], 120)
                items.append(Item(f"c{row['n']}", f"- [c{row['n']}] {title}: {said}"))
            share = int(budget * PRIMER_SHARES["Reports"]) if items else 0
            if share:
                result = compose(
                    result, [Section("Reports", items, 1.0)], share, lambda _: "", first="Reports"
                )
            budget = max(budget - result.tokens, 200)
        found = local_search(self.snapshot, query, max_tokens=budget)
        sources = f"## Sources\n{found.text}" if found.citations else found.text
        result.text = "\n\n".join(filter(None, [result.text, sources]))
        result.citations = found.citations
        result.tokens += found.tokens
        result.truncated = found.truncated
        reported = result.text.startswith("## Reports")
        result.state = "not_found" if found.state == "not_found" and not reported else "context"
        return result

    # ---- results ---------------------------------------------------------------------------------

    def _reply(self, walk: Walk, budget: int, notes: list[str]) -> DriftResult:
        """The state alone: nothing was opened."""
        result = self.state(walk, DriftResult(session_id=self.id), shown=8)
        result.done = self.over(walk)
        if result.done:
            why = "The frontier is empty" if not walk.frontier() else "The budget is spent"
            result.text = f"{why}; answered: {counted(result.answered, 'questions')}."
            result.next_call = f'drift_step(session_id="{self.id}", finish=true)'
        else:
            ids = walk.frontier() or walk.with_status("open")
            result.text = f"Recorded. {result.answered} answered, {len(walk.frontier())} to open:\n{walk.to_markdown()}"
            result.next_call = f'drift_step(session_id="{self.id}", node_id="{ids[0]}")'
        result.hint = " ".join(filter(None, [*notes, self.moved(walk)]))
        return finish(result, budget)

    def over(self, walk: Walk) -> bool:
        """Nothing is open, and nothing is left that could be opened."""
        return not walk.with_status("open") and (not walk.frontier() or not self._budget_left(walk))

    def _unknown(self, answer: str) -> str:
        """A sentence about ids in an answer that the index does not have."""
        _, gone = references(self.snapshot, [answer])
        listed = ", ".join(sorted(gone)[:10])
        return f"Not in the index: {listed}. Cite ids as they stand in the context." if gone else ""

    def state(self, walk: Walk, result: DriftResult, shown: int) -> DriftResult:
        names = ("parent", "query", "kind", "status")
        result.frontier = [
            DriftNode(
                id=id,
                score=round(walk.worth(id), 3),
                **{name: walk.graph.nodes[id][name] for name in names},
            )
            for id in walk.frontier()[:shown]
        ]
        result.answered = len(walk.with_status("answered"))
        result.budget_left = self._budget_left(walk)
        return result

    def _budget_left(self, walk: Walk) -> int:
        spent = walk.tokens() >= SESSION_TOKENS * walk.header["max_nodes"]
        return 0 if spent else walk.budget_left()

    def _call(self, id: str) -> str:
        return f'drift_step(session_id="{self.id}", node_id="{id}", answer="...", score=0-100, follow_ups=["..."])'

    def moved(self, walk: Walk) -> str:
        then, now = walk.header["generation"], self.snapshot.manifest.generation
        if then == now:
            return ""
        return f"The index has changed since this session began (generation {then} to {now})."

    def known(self, walk: Walk, id: object) -> str:
        """The id of a node, also from a prefix or in brackets."""
        asked = str(id).strip().strip("[]`'\" ")
        if asked in walk.graph:
            return asked
        near_ids = [one for one in walk.graph if len(asked) >= 6 and one.startswith(asked)]
        if len(near_ids) == 1:
            return near_ids[0]
        known = f"Known to go on with: {self._open_list(walk)}"
        raise NotFound(f"there is no node {asked[:40]!r} in session {self.id}", known)

    def _open_list(self, walk: Walk) -> str:
        ids = [*walk.with_status("open"), *walk.frontier()][:8]
        if ids:
            return "; ".join(ids)
        return f'none is open, so call drift_step(session_id="{self.id}", finish=true)'

    def _recorded(
        self,
        walk: Walk,
        id: str,
        answer: str,
        score: float | None,
        queries: list[str],
        pruned: list[str],
    ) -> bool:
        """Is everything that this call says in the journal already?"""
        node = walk.graph.nodes[id]
        if answer and (
            node["status"] != "answered" or node["answer"] != answer or node["score"] != score
        ):
            return False
        deep = node["depth"] >= walk.header["depth"]
        linked = set(walk.graph.successors(id)) | {id}
        asked = all(deep or walk.same_as(query) in linked for query in queries)
        return asked and all(
            walk.graph.nodes[one]["status"] in ("pruned", "answered") for one in pruned
        )


def _within(value: object, limits: tuple[int, int, int]) -> int:
    default, least, most = limits
    try:
        number = int(value)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        return default
    return min(max(number, least), most) if number > 0 else default


def _listed(value: object) -> list[str]:
    """Ids as a list, from a list, a JSON list or words, also inside of a list."""
    if isinstance(value, list | tuple):
        return [id for one in value for id in _listed(one)]
    if isinstance(value, str) and value.strip().startswith("["):
        try:
            return _listed(json.loads(value))
        except ValueError:
            return re.findall(r"[0-9a-f]{6,12}", value)
    return [one for one in re.split(r"[\s,;]+", str(value or "")) if one]
