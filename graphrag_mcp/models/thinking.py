"""What a model thinks aloud, told from what it answers: `<think>` blocks are taken out, also while text streams in.

Takes the raw text of a reply, whole or in pieces; gives what is meant for the reader. Knows no model and no JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_TAG = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
_BEGUN = re.compile(r"<(?:/?(?:t(?:h(?:i(?:n(?:k(?:i(?:ng?)?)?)?)?)?)?)?)?$", re.IGNORECASE)
_LONGEST = len("</thinking>")


def without_thinking(text: str) -> tuple[str, bool]:
    """The answer, and whether it was cut off inside its thinking. One pass: linear in the length of the text."""
    kept: list[str] = []
    at, opened, first = 0, -1, True
    for tag in _TAG.finditer(text):
        if opened < 0 and not tag[1]:
            kept.append(text[at : tag.start()])
            opened = tag.start()
        elif opened >= 0 and tag[1]:
            at, opened = tag.end(), -1
        elif first and tag[1] and _alone(text, tag):
            # Some chat templates write the opening tag into the prompt: the reply begins inside the thinking.
            at = tag.end()
        first = False
    if opened >= 0 and not "".join(kept).strip():
        return "", True
    # An opening tag that is never closed is one that an answer mentions, unless the answer begins with it.
    answer = "".join([*kept, text[max(at, opened) :]])
    return (answer.lstrip() if at and not (kept and kept[0].strip()) else answer), False


def _alone(text: str, tag: re.Match[str]) -> bool:
    """At the beginning or the end of a line: an answer that merely mentions the tag has it among its words."""
    before, after = text[max(0, tag.start() - 1) : tag.start()], text[tag.end() : tag.end() + 1]
    return before in ("\n", "") or after in ("\n", "")


class Screen:
    """Gives the pieces of a streamed reply on, without its thinking. `text` and `cut_off` are right after `finish`."""

    def __init__(self, give: Callable[[str], None]) -> None:
        self._give = give
        self.clear()

    def clear(self) -> None:
        """As if nothing had come: for another attempt, when nothing has been shown yet."""
        self.shown = 0  # characters given
        self.length = 0  # characters that came
        self.text, self.cut_off = "", False
        self._pieces: list[str] = []
        self._given: list[str] = []
        self._tail = ""  # not yet decided
        self._blank = ""  # white space before the first word: not shown if thinking follows
        self._inside = self._was_inside = False

    @property
    def raw(self) -> str:
        return "".join(self._pieces)

    def feed(self, piece: str) -> None:
        self._pieces.append(piece)
        self.length += len(piece)
        rest = self._tail + piece
        self._tail = ""
        while match := _TAG.search(rest):
            if not match[1] and not self._inside:
                self._show(rest[: match.start()])
                self._inside = self._was_inside = True
            elif match[1] and self._inside:
                self._inside = False
            elif not self._inside:
                self._show(rest[: match.end()])
            rest = rest[match.end() :]
        if self._inside:
            self._tail = rest[-_LONGEST + 1 :]
            return
        begun = _BEGUN.search(rest, max(0, len(rest) - _LONGEST))
        end = begun.start() if begun else len(rest)
        self._tail = rest[end:]
        self._show(rest[:end])

    def finish(self) -> None:
        """Works out the whole text and gives what of it has not been given."""
        self.text, self.cut_off = without_thinking(self.raw)
        given, self._blank = "".join(self._given), ""
        if self.text.startswith(given):
            self._show(self.text[len(given) :])

    def _show(self, text: str) -> None:
        if not self.shown:
            text = self._blank + text
            self._blank = "" if text.strip() else text
            text = "" if self._blank else text.lstrip() if self._was_inside else text
        if text:
            self._given.append(text)
            self.shown += len(text)
            self._give(text)
