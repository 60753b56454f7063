"""The arguments of our entry in a host's configuration, when it is written again: what a user added by hand stays.

Takes the entry that stands there and the one to be written; gives the arguments of the new one, and sentences on what
was kept or replaced. Knows no file and no host.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

FOLDERS = frozenset(("--root", "--home"))  # what may be read, and where indexes are: as the command says each time


def arguments(known: Mapping[str, Any], made: Mapping[str, Any]) -> tuple[list[str], tuple[str, ...]]:
    """The new arguments with those of the old ones that the new do not speak of, and what is to be said of them.

    An option that is named now counts as named now, and folders only so: fewer folders are fewer folders. Whatever else
    is not named stays, since a `--read-only` written by hand must not be gone after the next run.
    """
    new = list(made["args"])
    args = known.get("args")
    old = [word for word in args if isinstance(word, str)] if isinstance(args, list) else []
    if "serve" not in old or "serve" not in new:
        return new, ((f"the entry had other arguments, which are replaced: {plain(' '.join(old))}",) if old else ())
    was, is_now = old.index("serve"), new.index("serve")
    start, notes = new[:is_now], []
    if old[:was] != start and known.get("command") == made["command"]:
        words = iter(old[:was])
        if all(word in words for word in start):  # all of ours, in their order, and something of theirs
            start = old[:was]
            notes.append(f"kept how it is started: {plain(' '.join(start))}")
        else:
            notes.append(f"no longer started with: {plain(' '.join(old[:was]))}")
    before, after = options_of(old[was + 1 :]), options_of(new[is_now + 1 :])
    named = {one[0] for one in after} | FOLDERS
    kept = [one for one in before if one[0] not in named]
    gone = [one for one in before if one[0] in named and one not in after]
    if kept:
        said = plain(" ".join(word for one in kept for word in one))
        notes.append(f"kept what the entry had: {said}; to be rid of it run --undo first")
    if gone:
        notes.append(f"no longer in the entry: {plain(' '.join(word for one in gone for word in one))}")
    return [*start, "serve", *(word for one in (*after, *kept) for word in one)], tuple(notes)


def options_of(words: Sequence[str]) -> list[tuple[str, ...]]:
    """Each option with its values; `--a=b` as two words."""
    found: list[tuple[str, ...]] = []
    for word in words:
        if word.startswith("--") or not found:
            name, equals, value = word.partition("=")
            found.append((name, value) if equals and word.startswith("--") else (word,))
        else:
            found[-1] = (*found[-1], word)
    return found


def plain(name: str) -> str:
    """A word of somebody's file as a terminal may show it."""
    return "".join(ch if ch.isprintable() else "?" for ch in name)[:200]
