"""Several corpora: ids that name their corpus (`a/e12`), and look-ups by them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.packing import sending
from graphrag_mcp.packing.budget import clamp_budget
from graphrag_mcp.packing.page import finish
from graphrag_mcp.query import community, context, entity, source
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.citing import Fingerprint
from graphrag_mcp.types import EntityResult, ReportResult, Result, SourceResult

Part = tuple[str, Snapshot]
Found = TypeVar("Found", bound=Result)
ENTITY_TOKENS = 3_000
_QUALIFIED = re.compile(rf"\s*[\[(`]?([^\s/\[\]()]+)/((?i:{context.ALIAS}\+?|[0-9a-f]{{32}}))[\])`]?\s*")


def wanted(corpus: str, known: Sequence[str]) -> list[str]:
    """The corpora that `corpus` names: several as `a,b`, all for `*`. [] if it names one corpus or
    none."""
    if corpus.strip() in ("*", "all") and corpus.strip() not in known:
        return list(known)
    named = [name.strip() for name in re.split(r"[,，、;]", corpus) if name.strip()]
    return list(dict.fromkeys(named)) if len(named) > 1 else []


def qualified(id: str) -> tuple[str, str]:
    """`a/e12` as (a, e12); ("", id) for everything else."""
    match = _QUALIFIED.fullmatch(id)
    return (match[1], match[2].lower()) if match else ("", id)


def named_by(ids: Iterable[str], known: Sequence[str]) -> tuple[list[str], bool]:
    """The corpora that qualified ids (`a/e12`) name, and whether every id names a corpus."""
    named = [name for name, _ in map(qualified, ids)]
    found = dict.fromkeys(name for name in named if name in known)
    return list(found), bool(named) and all(name in known for name in named)


def ends(start: str, goal: str, corpus: str, known: Sequence[str]) -> tuple[str, str, str]:
    """Corpus, start and goal of a path. A path stays in one corpus: the corpus that `a/e12` names,
    else `corpus`. BadInput if start and goal name two corpora."""
    named, every = named_by([end for end in (start, goal) if end], known)
    if not named:
        return corpus, start, goal
    if len(named) > 1 or not every and corpus.strip() not in ("", *named):
        quoted = " and ".join(repr(end[:60]) for end in (start, goal) if end)
        what = f"{quoted} are of different corpora"
        raise BadInput(what, "Give two of one corpus, for no path leads out of it")

    def plain(asked: str) -> str:
        name, id = qualified(asked)
        return id if name in named else asked

    return named[0], plain(start), plain(goal)


def get_entity(parts: Sequence[Part], name: str, **arguments: Any) -> EntityResult:
    """The entity of the first corpus that has it; where others have it too, their ids. One corpus
    named "" is meant without a name, here and below."""
    if not parts[0][0]:
        return entity.get_entity(parts[0][1], name, **arguments)
    budget = clamp_budget(arguments.get("max_tokens", ENTITY_TOKENS), ENTITY_TOKENS)[0]
    name = qualified(name)[1]
    results = [(corpus, entity.get_entity(snapshot, name, **arguments)) for corpus, snapshot in parts]
    found = [(corpus, result) for corpus, result in results if result.state != "not_found"]
    if not found:
        result = of_corpus(*results[0])
        for other, refused in results[1:]:
            more = of_corpus(other, refused)
            result.candidates = (result.candidates + more.candidates)[:8]
            lines = (line for line in more.text.splitlines() if line.startswith("- "))
            result.text += "\n" + "\n".join(lines)
        return finish(result, budget)
    corpus, result = found[0]
    others = [f"{other}/{result.id} {result.title}" for other, result in found[1:]]
    result = of_corpus(corpus, result)
    if (over := sending.outgoing(result) - budget) > 0:  # ids are longer with their corpus
        fewer = {**arguments, "max_tokens": budget - over}
        result = of_corpus(corpus, entity.get_entity(dict(parts)[corpus], name, **fewer))
    # The argument takes an id of one corpus, which the call names.
    id = result.id.removeprefix(f"{corpus}/")
    refers, meant = f'(query="{result.id}")', f'(query="{id}", corpus="{corpus}")'
    result.hint = result.hint.replace(refers, meant)
    if others:
        context.note(result, f"Also there: {', '.join(others)}.")
    return finish(result, budget)


def get_source(parts: Sequence[Part], ids: Sequence[str], *, max_tokens: int = 4_000, **arguments: Any) -> SourceResult:
    """The text behind qualified ids; others are looked up in every corpus."""
    if not parts[0][0]:
        return source.get_source(parts[0][1], ids, max_tokens=max_tokens, **arguments)
    budget, note = clamp_budget(max_tokens, 4_000)
    found: list[source.Part] = []
    notes, refused = [note], []
    for name, snapshot in parts:
        aliases = [id for corpus, id in map(qualified, ids) if corpus in ("", name)]
        if not aliases:
            continue
        try:
            passages, messages = source.passage_parts(snapshot, aliases, budget=budget, **arguments)
        except NotFound as error:
            refused.append(error)
            continue
        found += [passage.of_corpus(name) for passage in passages]
        notes += [f"{name}: {_placed(name, message)}" for message in messages]
    if not found and refused:
        raise refused[0]
    if not found:
        raise BadInput("no ids were given", 'Give ids, e.g. get_source(ids=["a/t33.2"])')
    options = source.options(arguments.get("raw", False), arguments.get("query", ""))
    return source.shown(found, notes, budget, options)


def changes(
    parts: Sequence[Part], ids: Sequence[str], kept: Callable[[Fingerprint], str], **arguments: Any
) -> SourceResult:
    """What happened to the sources of notes; all notes must be in the same corpus."""
    if not parts[0][0]:
        return source.changes(parts[0][1], ids, kept, **arguments)
    named, known = [qualified(id) for id in ids], dict(parts)
    name = named[0][0] if named else ""
    if name not in known or any(other != name for other, _ in named):
        listed = ", ".join(name for name, _ in parts[:5])
        raise BadInput(f"changes shows notes of one corpus, not of {listed}", "Give ids such as a/d4")
    return of_corpus(name, source.changes(known[name], [id for _, id in named], kept, **arguments))


def get_community_report(parts: Sequence[Part], community_id: str, **arguments: Any) -> ReportResult:
    """A report by its qualified id: numbers mean something else in every corpus."""
    if not parts[0][0]:
        return community.get_community_report(parts[0][1], community_id, **arguments)
    name, alias = qualified(community_id)
    snapshot = dict(parts).get(name)
    if snapshot is None:
        listed = ", ".join(f"{corpus}/{alias}" for corpus, _ in parts[:5])
        what = f"{community_id[:60]!r} may be of any of {len(parts)} corpora"
        raise BadInput(what, f"Say which, e.g. {listed}")
    return of_corpus(name, community.get_community_report(snapshot, alias, **arguments))


def of_corpus(name: str, result: Found) -> Found:
    """The result with every id in it marked with its corpus."""
    for field, value in result:
        if field in ("id", "parent") and value:
            setattr(result, field, f"{name}/{value}")
        elif field in ("communities", "children", "members"):
            setattr(result, field, [f"{name}/{id}" for id in value])
        elif field == "citations":
            result.citations = [context.placed(name, citation) for citation in value]  # type: ignore[attr-defined]
        elif field in ("candidates", "relationships"):
            for row in value:
                row |= {key: f"{name}/{row[key]}" for key in ("id", "entity_id") if key in row}
    for advice in ("hint", "next_call"):
        setattr(result, advice, _placed(name, getattr(result, advice)))
    if not isinstance(result, SourceResult):
        result.text = context.marked(name, result.text)
    return result


def _placed(name: str, advice: str) -> str:
    """Advice whose calls name the corpus of their ids."""
    return re.sub(rf'"({context.ALIAS})"', rf'"{name}/\1"', advice)
