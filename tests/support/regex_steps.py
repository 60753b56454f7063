"""How much work a regular expression does on a text, counted and not timed.

Takes a compiled pattern; runs its parsed form by backtracking, in the order in which `re` does, and counts the characters
that are looked at. The number depends on pattern and text alone. Knows nothing of the shortcuts of `re`, which leave out
a constant part of the work.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

Go = Callable[[int], bool]  # what follows, tried at a position
Node = Callable[[int, Go], bool]
First = Callable[[str], bool] | None

_parser: Any = re._parser  # type: ignore[attr-defined]
_compiler: Any = re._compiler  # type: ignore[attr-defined]
SINGLE = ("LITERAL", "NOT_LITERAL", "ANY", "IN", "CATEGORY")
REPEATS = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")


class TooMany(Exception):
    """More steps than were allowed."""


class Counter:
    """A pattern that counts. `steps` is the work done until now; over `most` it ends with TooMany."""

    def __init__(self, pattern: re.Pattern[str], most: int = 1 << 62) -> None:
        self.pattern, self.flags, self.steps, self.most = pattern, pattern.flags, 0, most
        self.tree = _parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
        self.groups: dict[int, tuple[int, int]] = {}
        self.text = ""
        self.node = self._sequence(list(self.tree), self.flags)
        self.first = self._first(list(self.tree), self.flags)

    def match(self, text: str, start: int = 0) -> int | None:
        """Where a match that begins at `start` ends; None without one."""
        with _deep():
            return self._match(text, start)

    def search(self, text: str, start: int = 0) -> tuple[int, int] | None:
        """The first match from `start` on."""
        with _deep():
            for at in range(start, len(text) + 1):
                if (end := self._match(text, at)) is not None:
                    return at, end
        return None

    def _match(self, text: str, start: int) -> int | None:
        self.text = text
        self.groups.clear()
        self.step(1)
        return self._once(self.node, start) if self._may_begin(self.first, start) else None

    def _may_begin(self, first: First, at: int) -> bool:
        return first is None or (at < len(self.text) and first(self.text[at]))

    def step(self, count: int) -> None:
        self.steps += count
        if self.steps > self.most:
            raise TooMany

    # ---- parts of a pattern ------------------------------------------------------------------------

    def _sequence(self, items: list[Any], flags: int) -> Node:
        nodes = [self._node(kind, value, flags) for kind, value in items]
        if len(nodes) == 1:
            return nodes[0]

        def sequence(at: int, go: Go, first: int = 0) -> bool:
            if first == len(nodes):
                return go(at)
            return nodes[first](at, lambda next_: sequence(next_, go, first + 1))

        return sequence

    def _node(self, kind: Any, value: Any, flags: int) -> Node:
        name = str(kind)
        if name in SINGLE:
            return self._single(kind, value, flags)
        return getattr(self, f"_{name.lower()}")(value, flags)

    def _single(self, kind: Any, value: Any, flags: int) -> Node:
        fits = _fits(kind, value, flags, self.tree.state)

        def single(at: int, go: Go) -> bool:
            self.step(1)
            return at < len(self.text) and fits(self.text[at]) and go(at + 1)

        return single

    def _at(self, value: Any, flags: int) -> Node:
        pattern = _compiled([(_parser.AT, value)], flags, self.tree.state)

        def position(at: int, go: Go) -> bool:
            self.step(1)
            return pattern.match(self.text, at) is not None and go(at)

        return position

    def _branch(self, value: Any, flags: int) -> Node:
        parts = [(self._first(list(one), flags), self._sequence(list(one), flags)) for one in value[1]]

        @cache
        def possible(character: str) -> list[Node]:
            return [node for first, node in parts if first is None or (character and first(character))]

        def branch(at: int, go: Go) -> bool:
            self.step(1)
            for node in possible(self.text[at : at + 1]):  # no `any`: calls through C would need a deep stack
                if node(at, go):
                    return True
            return False

        return branch

    def _subpattern(self, value: Any, flags: int) -> Node:
        group, added, removed, inner = value
        node = self._sequence(list(inner), (flags | added) & ~removed)
        if group is None:
            return node

        def subpattern(at: int, go: Go) -> bool:
            before = self.groups.get(group)

            def closed(end: int) -> bool:
                held = self.groups.get(group)
                self.groups[group] = at, end
                return go(end) or self._restore(group, held)

            return node(at, closed) or self._restore(group, before)

        return subpattern

    def _restore(self, group: int, span: tuple[int, int] | None) -> bool:
        if span is None:
            self.groups.pop(group, None)
        else:
            self.groups[group] = span
        return False

    def _groupref(self, group: int, flags: int) -> Node:
        def reference(at: int, go: Go) -> bool:
            if group not in self.groups:
                return False
            start, end = self.groups[group]
            self.step(end - start + 1)
            there, wanted = self.text[at : at + end - start], self.text[start:end]
            same = there.lower() == wanted.lower() if flags & re.IGNORECASE else there == wanted
            return same and go(at + end - start)

        return reference

    def _groupref_exists(self, value: Any, flags: int) -> Node:
        group, yes, no = value
        there = self._sequence(list(yes), flags)
        missing = self._sequence(list(no or []), flags)
        return lambda at, go: (there if group in self.groups else missing)(at, go)

    def _assert(self, value: Any, flags: int) -> Node:
        inside = self._inside(value, flags)
        return lambda at, go: inside(at) is not None and go(at)

    def _assert_not(self, value: Any, flags: int) -> Node:
        inside = self._inside(value, flags)
        return lambda at, go: inside(at) is None and go(at)

    def _inside(self, value: Any, flags: int) -> Callable[[int], int | None]:
        direction, inner = value
        node, back = self._sequence(list(inner), flags), inner.getwidth()[0] if direction < 0 else 0
        return lambda at: self._once(node, at - back) if at >= back else None

    def _atomic_group(self, inner: Any, flags: int) -> Node:
        node = self._sequence(list(inner), flags)

        def atomic(at: int, go: Go) -> bool:
            end = self._once(node, at)
            return end is not None and go(end)

        return atomic

    def _once(self, node: Node, at: int) -> int | None:
        """Where the first way through a part ends; none of the others is tried later."""
        end: list[int] = []

        def found(position: int) -> bool:
            end.append(position)
            return True

        return end[0] if node(at, found) else None

    def _first(self, items: list[Any], flags: int) -> First:
        """Whether a match may begin with a character; None where that is not known."""
        for kind, value in items:
            name = str(kind)
            if name in SINGLE:
                return _fits(kind, value, flags, self.tree.state)
            if name == "SUBPATTERN":
                return self._first(list(value[3]), (flags | value[1]) & ~value[2])
            if name in REPEATS:
                return self._first(list(value[2]), flags) if value[0] else None
            if name == "BRANCH":
                return _either([self._first(list(one), flags) for one in value[1]])
            if name not in ("AT", "ASSERT", "ASSERT_NOT"):
                return None
        return None

    # ---- repetition --------------------------------------------------------------------------------

    def _max_repeat(self, value: Any, flags: int) -> Node:
        least, most, inner = value
        if len(inner) == 1 and str(inner[0][0]) in SINGLE:
            return self._run(least, most, _fits(*inner[0], flags, self.tree.state))
        node = self._sequence(list(inner), flags)

        def greedy(at: int, go: Go, count: int = 0) -> bool:
            def another(end: int) -> bool:
                return (end > at or count < least) and greedy(end, go, count + 1)

            self.step(1)
            if count < most and node(at, another):
                return True
            return count >= least and go(at)

        return greedy

    def _run(self, least: int, most: int, fits: Callable[[str], bool]) -> Node:
        """As many of one character as there are, then fewer."""

        def run(at: int, go: Go) -> bool:
            end, last = at, min(len(self.text), at + most)
            while end < last and fits(self.text[end]):
                end += 1
            self.step(end - at + 1)
            while end >= at + least:
                self.step(1)
                if go(end):
                    return True
                end -= 1
            return False

        return run

    def _min_repeat(self, value: Any, flags: int) -> Node:
        least, most, inner = value
        node = self._sequence(list(inner), flags)

        def lazy(at: int, go: Go, count: int = 0) -> bool:
            self.step(1)
            if count >= least and go(at):
                return True
            return count < most and node(at, lambda end: (end > at or count < least) and lazy(end, go, count + 1))

        return lazy

    def _possessive_repeat(self, value: Any, flags: int) -> Node:
        greedy = self._max_repeat(value, flags)

        def possessive(at: int, go: Go) -> bool:
            end = self._once(greedy, at)
            return end is not None and go(end)

        return possessive


def _either(firsts: list[First]) -> First:
    known = [first for first in firsts if first is not None]
    return (lambda character: any(first(character) for first in known)) if len(known) == len(firsts) else None


@contextmanager
def _deep() -> Iterator[None]:
    """Repetitions of a group go one call deeper each; calls of Python functions need no stack of the system."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000_000)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


def _compiled(items: list[Any], flags: int, state: Any) -> re.Pattern[str]:
    return _compiler.compile(_parser.SubPattern(state, items), flags & ~re.DEBUG)


def _fits(kind: Any, value: Any, flags: int, state: Any) -> Callable[[str], bool]:
    """Whether a character is one that this part of a pattern takes, as `re` says."""
    pattern = _compiled([(kind, value)], flags, state)
    return cache(lambda character: pattern.fullmatch(character) is not None)
