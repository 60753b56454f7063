"""Which files an edit may give other edges: those that were edited, and those that name what changed.

Takes what the edited files stated before and now, and what all files state; gives the uris of the
files whose names have to be resolved again, or None for all. What a name means in a file depends on
definitions, imports and bases of other files only through names that the file itself writes, or that
an import renames or a signature returns on the way there; these are followed. Where modules come or
go, or bases or `*` imports change, all files are resolved.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from graphrag_mcp.code.resolve import RETURNS
from graphrag_mcp.code.symbols import Reference, SourceFile, Symbol

MOST = 200  # changed names, above which asking for each costs more than resolving all
_WORD = re.compile(r"\w+")


def affected(
    before: Mapping[str, SourceFile],
    now: Mapping[str, SourceFile],
    files: Sequence[SourceFile],
    facts: Mapping[str, str],
) -> set[str] | None:
    """`before` and `now`: the edited source files by uri; `files`: all as they are now; `facts`:
    what the files that were not edited state, as it is stored."""
    if before.keys() != now.keys():
        return None
    names: set[str] = set()
    for uri, old in before.items():
        changed = _changed(old, now[uri])
        if changed is None or _around(changed, files):
            return None
        names |= {name.rpartition(".")[2] for name in changed}
    while more := _renamed(names, [*files, *before.values()]) - names:
        names |= more
    bases = (word for file in files for one in _bases(file) for word in _words(one))
    if "*" in names or len(names) > MOST or not names.isdisjoint(bases):
        return None
    if not names:
        return set(now)
    told = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names)))})\b")
    return now.keys() | {uri for uri, text in facts.items() if told.search(text)}


def _changed(old: SourceFile, new: SourceFile) -> set[str] | None:
    """The names by which others may see a difference; None where any may see it. Of what is there
    twice the first counts."""
    whole = [
        (
            one.language,
            one.module,
            [(base.inside, base.receiver, base.name) for base in _bases(one)],
            [given.target for given in one.imports if given.local == "*"],
        )
        for one in (old, new)
    ]
    if whole[0] != whole[1]:
        return None
    symbols, imports = (_defined(old), _defined(new)), (_imported(old), _imported(new))
    if any(
        symbols[0][name].kind != symbols[1][name].kind for name in symbols[0].keys() & symbols[1]
    ):
        return None
    stated = [{(one.name, one.signature, one.parent) for one in held.values()} for held in symbols]
    return {name for name, *_ in stated[0] ^ stated[1]} | {
        local for local, _ in imports[0].items() ^ imports[1].items()
    }


def _defined(file: SourceFile) -> dict[str, Symbol]:
    return {one.name: one for one in reversed(file.symbols)}


def _imported(file: SourceFile) -> dict[str, str]:
    return {given.local: given.target for given in reversed(file.imports)}


def _around(names: set[str], files: Sequence[SourceFile]) -> bool:
    """Is one of these the path to a module? Then it decides where paths begin."""
    return any(file.module.startswith(f"{name}.") for name in names for file in files)


def _renamed(names: set[str], files: Sequence[SourceFile]) -> set[str]:
    """Names under which others import one of these, and of functions that return one."""
    if not names:
        return set()
    told = re.compile(rf"\b(?:{'|'.join(map(re.escape, sorted(names)))})\b")
    found: set[str] = set()
    for file in files:
        found.update(one.local for one in file.imports if told.search(one.target))
        for one in file.symbols:
            returned = RETURNS.search(one.signature) if "->" in one.signature else None
            if returned and told.search(returned[1]):
                found.add(one.short)
    return found


def _bases(file: SourceFile) -> list[Reference]:
    return [one for one in file.references if one.kind == "inherits"]


def _words(one: Reference) -> list[str]:
    return _WORD.findall(f"{one.receiver} {one.name}")
