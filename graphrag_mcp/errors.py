"""Error classes. A message is two sentences: what is wrong, then what to do next."""

from __future__ import annotations

import errno


def extra(name: str) -> str:
    """An extra of this package as messages name it. How it is installed depends on where the package
    came from (an index of packages, a copy of the repository), and stands on that page."""
    return f"the extra [{name}] (https://github.com/graphrag-mcp/graphrag-mcp#install)"


class GraphRAGError(Exception):
    """Base of all errors that are meant to be read by a person or an agent."""

    # `names`: words of documents that help (the nearest names). They are no part of the message,
    # which a model reads as ours: a tool shows them in a fence, the command line behind the rest.
    def __init__(self, what: str, next_move: str, *, names: str = "") -> None:
        self.what = what.rstrip(". ")
        self.next_move = next_move.rstrip(". ")
        self.names = names.rstrip(". ")
        super().__init__(f"{self.what}. {self.next_move}.")

    def __reduce__(self) -> tuple[type, tuple[str, str], dict[str, object]]:
        """Errors come back from other processes."""
        return type(self), (self.what, self.next_move), self.__dict__


class BadInput(GraphRAGError):
    """An argument cannot be used as given."""


class OutsideRoots(BadInput):
    """A path that lies outside the folders this server may read."""


class NotFound(GraphRAGError):
    """Something named does not exist; `names` are the nearest."""


class Damaged(GraphRAGError):
    """Stored bytes do not match their check value."""


class NewerFormat(GraphRAGError):
    """The index was written by a later release of graphrag-mcp."""


class Busy(GraphRAGError):
    """Another process is writing this corpus."""


class OutOfMemory(GraphRAGError):
    """Indexing took more memory than it may."""


class ModelError(GraphRAGError):
    """A configured model cannot be reached, refuses, or gives no useful answer. `final`: asking
    again is useless (wrong key, no such model)."""

    # `divisible`: it is about what was sent; of several texts in one call, others may be welcome.
    def __init__(self, what: str, next_move: str, *, final: bool = False, divisible: bool = False) -> None:
        super().__init__(what, next_move)
        self.final, self.divisible = final, divisible


def too_many_files() -> GraphRAGError:
    """The error for a process that may open no further file."""
    what = "this process has too many files open"
    return GraphRAGError(what, "Try again in a moment, or raise its limit (ulimit -n)")


def out_of_files(error: BaseException | None) -> bool:
    """Does an error come from the limit of open files? Then index and disk are sound."""
    while error is not None:
        if getattr(error, "errno", None) in (errno.EMFILE, errno.ENFILE):
            return True
        # As Lance says it.
        if not isinstance(error, GraphRAGError) and f"os error {errno.EMFILE}" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False
