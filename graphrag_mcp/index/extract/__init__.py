"""What a reader (rules, a model, a plug-in) finds in a text unit: names and statements.

An extractor turns a text unit into its names and its statements. Three implement the protocol: the
rules of this package (`rules.py`), also with the names of a document's summaries (`summarised.py`),
plug-ins (`plugin.py`) and what an import says of a text (`index/imported.py`). A model replaces what
the rules found (`index/units.py`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from graphrag_mcp.text.spans import Unit

Mentions = list[tuple[int, str]]  # start in the text of the unit, key of the name
SUMMARY = "summary"  # `by` of a name that a summary of its document has


@dataclass(slots=True)
class Named:
    """One name in one text unit. Offsets count from the start of the unit's text; `sentences` is
    start, end, ..."""

    key: str
    text_unit_id: str
    form: str
    type: str
    strong: bool
    count: int
    sentences: list[int]
    start: int
    end: int
    alias_of: str
    description: str = ""
    by: str = ""

    @property
    def stated(self) -> bool:
        """Did a model, an import or a plug-in read its unit and state what relates the names?"""
        return self.by not in ("", SUMMARY)


@dataclass(frozen=True, slots=True)
class StatedRelation:
    """One relationship as a model or an agent stated it; start and end are of the sentence it rests
    on."""

    source: str  # names, normalised
    target: str
    description: str
    keywords: str
    weight: float
    start: int
    end: int


@dataclass(slots=True)
class UnitNames:
    """A text unit with its names; `text` is kept only while the unit is being indexed.

    `said`: its statements where a model, an import or a plug-in gives them; None: its
    relationships follow from names that share a sentence."""

    id: str
    text: str
    named: list[Named]
    said: list[StatedRelation] | None = None
    capped: bool = False  # does it hold more names or pairs than are kept?

    def keep(self, most: int) -> None:
        """Only the best names: proper ones first, then those named more often, then the first."""
        if len(self.named) > most:
            ranked = sorted(self.named, key=lambda name: (not name.strong, -name.count, name.start, name.key))
            best = {name.key for name in ranked[:most]}
            self.named = [name for name in self.named if name.key in best]


class Extractor(Protocol):
    """Reads the text units of one document."""

    def extract(self, unit: Unit, id: str, text: str) -> tuple[UnitNames, Mentions]:
        """The names and statements of a text unit, and every place where it has one of them.

        `unit`: its span in the document, and its passages; `text`: its own text, with secrets
        masked, from which all offsets count."""
        ...
