"""Names and statements of a model or of an import, put where they stand in the text of a unit."""

from __future__ import annotations

from graphrag_mcp.index.extract import Named, StatedRelation
from graphrag_mcp.index.places import Spans, best_sentence, locate
from graphrag_mcp.text.prose import sentences


class Placing:
    """The names of one text unit. `by`: who read it; `between`: what parts two descriptions of a name."""

    def __init__(self, unit: str, text: str, by: str, between: str = " ") -> None:
        self.unit, self.text, self.by, self.between = unit, text, by, between
        self.spans = sentences(text)
        self.found: dict[str, Spans] = {}  # by key of a name
        self.named: dict[tuple[str, ...], Named] = {}

    def find(self, key: str, form: str) -> None:
        """Look where a name stands, in the form that is given for it first."""
        if key and key not in self.found:
            self.found[key] = locate(self.text, form)

    def row(self, key: str, form: str, kind: str, description: str) -> Named:
        """A name with the sentences that hold it, and where it stands first. One that stands nowhere
        literally is in the sentence with most words of what is said of it."""
        found, count = self.found.get(key, []), max(len(self.found.get(key, [])), 1)
        if found:
            holding = [edge for span in self._holding(found) for edge in span] or [*found[0]]
            at = (holding, *found[0])
        else:
            start, end = best_sentence(self.text, self.spans, f"{form} {description}")
            at = ([start, end], start, end)
        return Named(key, self.unit, form, kind, True, count, *at, "", description, self.by)

    def add(self, row: Named, *form: str) -> None:
        """A name has one row for each type, and for each `form`, where given; said twice, both descriptions
        count."""
        before = self.named.setdefault((row.key, row.type, *form), row)
        if row.description not in before.description:
            before.description = f"{before.description}{self.between}{row.description}".strip()

    def stated(self, source: str, target: str, told: tuple[str, str, float], words: str) -> StatedRelation:
        """A statement on the shortest sentence with both names; else, of the sentences with one of them, on
        the one with most of the `words`; else, where neither stands in the text, of all sentences. `told`:
        description, keywords and weight."""
        first, second = (self._holding(self.found.get(key, [])) for key in (source, target))
        if both := first.keys() & second.keys():
            start, end = min(both, key=lambda span: (span[1] - span[0], span))
        else:
            either = sorted({*first, *second})
            start, end = best_sentence(self.text, either or self.spans, words)
        return StatedRelation(source, target, *told, start, end)

    def _holding(self, found: Spans) -> dict[tuple[int, int], None]:
        """The sentences in which these places begin, in their order."""
        return dict.fromkeys(span for start, _ in found for span in self.spans if span[0] <= start < span[1])
