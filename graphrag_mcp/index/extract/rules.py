"""Names of a text unit without a model, and the sentences that relate them.

A sentence relates the names that it holds if it is prose (`is_prose`) and no crowd of names. In any other the
place of a name is the name alone, so that no two names share it."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from graphrag_mcp.index.chunk import recent_sentences
from graphrag_mcp.index.extract import SUMMARY, Mentions, Named, UnitNames
from graphrag_mcp.index.extract.summarised import corrected
from graphrag_mcp.names.extract import mentions, most, without_markup
from graphrag_mcp.text.prose import is_prose
from graphrag_mcp.text.spans import Mention, Unit
from graphrag_mcp.text.terms import composed, lists_of

# A text unit of more than MOST_NAMES is a list, of which KEPT names are kept. Of 3,000 units of news,
# encyclopaedias, papers and Chinese articles the most names of a unit were 101.
MOST_NAMES, KEPT = 128, 40
# A sentence of so many names says nothing about any two of them: of 38 such pairs that readers marked
# 12 were right, 12 wrong.
CROWD = 8


@dataclass(frozen=True, slots=True)
class RuleExtractor:
    """Finds the names of prose with rules (`names/extract.py`), and the `names` with their types that
    summaries of the document have (`summarised.py`)."""

    names: Mapping[str, str] = field(default_factory=dict)

    def extract(self, unit: Unit, id: str, text: str) -> tuple[UnitNames, Mentions]:
        return collect(id, text, unit.passages[0].start - unit.span.start, self.names)


def collect(unit_id: str, text: str, core: int, names: Mapping[str, str] | None = None) -> tuple[UnitNames, Mentions]:
    """The names of a unit's text grouped, and every mention as its start in that text and its key.
    `core`: where the part begins that the unit before does not repeat. Of a list the best names are
    kept."""
    core_text = text[core:]
    spans = recent_sentences(core_text)
    found = mentions(core_text, spans=spans)
    every, summarised = corrected(found, core_text, names or {})
    silent = _silent(core_text, spans, every)
    groups = lists_of((mention[0], mention) for mention in every)
    starts = [start for start, _ in spans]
    named = [_group(unit_id, group, spans, starts, silent, core) for group in groups.values()]
    for name in named:
        name.by = SUMMARY if name.key in summarised else ""
    # 1,000 characters may hold more names than `mentions` gives of them: that is told as well
    crowded = len({mention[0] for mention in found}) >= most(composed(core_text))
    listed = len(named) > MOST_NAMES
    unit = UnitNames(unit_id, text, named, capped=listed or crowded)
    places = [(mention[4] + core, mention[0]) for mention in every]
    if listed:
        unit.keep(KEPT)
        kept = {name.key for name in unit.named}
        places = [place for place in places if place[1] in kept]
    return unit, places


def _silent(text: str, spans: Sequence[tuple[int, int]], every: Sequence[Mention]) -> set[int]:
    """The sentences that say nothing about any two of their names."""
    starts = [start for start, _ in spans]
    plain = without_markup(text)
    by_sentence = lists_of((max(0, bisect_right(starts, name[4]) - 1), name) for name in every)
    return {
        at
        for at, names in by_sentence.items()
        if len({name[0] for name in names}) > 1 and not _relates(plain, *spans[at], names)
    }


def _relates(text: str, start: int, end: int, names: Sequence[Mention]) -> bool:
    if len({name.key for name in names if name.strong}) >= CROWD:
        return False
    places = [(name[4] - start, name[5] - start) for name in _outermost(names) if name[5] <= end]
    return is_prose(text[start:end], places)


def _outermost(names: Iterable[Mention]) -> Iterable[Mention]:
    """The names that lie in no other one."""
    ended = 0
    for name in sorted(names, key=lambda name: (name[4], -name[5])):
        if name[5] > ended:
            ended = name[5]
            yield name


def _group(
    unit_id: str,
    found: Sequence[Mention],
    spans: Sequence[tuple[int, int]],
    starts: Sequence[int],
    silent: set[int],
    core: int,
) -> Named:
    """All mentions of a name in one unit; they have one type, one strength and one alias. `starts`: where the
    sentences `spans` begin."""
    flat: list[int] = []
    for mention in found:
        at = max(0, bisect_right(starts, mention[4]) - 1)
        start, end = mention[4:6] if at in silent or not spans else spans[at]
        if not flat or flat[-2] != start + core:
            flat += (start + core, end + core)
    key, _, kind, strong, start, end, alias_of = found[0]
    form = found[0][1]
    if len(found) > 1:
        forms = Counter(mention[1] for mention in found)
        form = min(forms, key=lambda form: (-forms[form], form))
    return Named(key, unit_id, form, kind, strong, len(found), flat, start + core, end + core, alias_of)
