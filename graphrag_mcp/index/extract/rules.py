"""Names of a text unit without a model, and the sentences that relate them.

A sentence relates the names that it holds, unless it is silent: code, a heading, a row of a
table, a list, a crowd of names. In a silent sentence the place of a name is the name alone, so that
no two names share it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from graphrag_mcp.index.chunk import recent_sentences
from graphrag_mcp.index.extract import SUMMARY, Mentions, Named, UnitNames
from graphrag_mcp.index.extract.summarised import corrected
from graphrag_mcp.names.extract import mentions, most
from graphrag_mcp.sources.decode import front_matter
from graphrag_mcp.text.prose import fences, is_code
from graphrag_mcp.text.quote import LEANS, says
from graphrag_mcp.text.spans import Mention, Unit
from graphrag_mcp.text.terms import composed, holds_cjk, lists_of

# A text unit of more than MOST_NAMES is a list, of which KEPT names are kept. Of 3,000 units of news,
# encyclopaedias, papers and Chinese articles the most names of a unit were 101.
MOST_NAMES, KEPT = 128, 40
# A sentence of so many names says nothing about any two of them: of 38 such pairs that readers marked
# 12 were right, 12 wrong.
CROWD = 8
LIST = 3  # names of a sentence that may be a list
_WORD = re.compile(r"(?<![\w@#])[^\W\d_]+")  # not a handle such as @ada


@dataclass(frozen=True, slots=True)
class RuleExtractor:
    """Finds the names of prose with rules (`names/extract.py`), and the `names` with their types that
    summaries of the document have (`summarised.py`)."""

    names: Mapping[str, str] = field(default_factory=dict)

    def extract(self, unit: Unit, id: str, text: str) -> tuple[UnitNames, Mentions]:
        return collect(id, text, unit.passages[0].start - unit.span.start, self.names)


def collect(
    unit_id: str, text: str, core: int, names: Mapping[str, str] | None = None
) -> tuple[UnitNames, Mentions]:
    """The names of a unit's text grouped, and every mention as its start in that text and its key.
    `core`: where the part begins that the unit before does not repeat. Of a list the best names are
    kept."""
    core_text = text[core:]
    spans = recent_sentences(core_text)
    found = mentions(core_text, spans=spans)
    every, summarised = corrected(found, core_text, names or {})
    silent = _silent(core_text, spans, every)
    groups = lists_of((mention[0], mention) for mention in every)
    named = [_group(unit_id, group, spans, silent, core) for group in groups.values()]
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
    by_sentence = lists_of((max(0, bisect_right(starts, name[4]) - 1), name) for name in every)
    blocks, below = fences(text), _end_of_matter(text)
    return {
        at
        for at, names in by_sentence.items()
        if len({name[0] for name in names}) > 1
        and (
            spans[at][0] < below
            or bisect_right(blocks, spans[at][0]) % 2
            or _says_nothing(text[slice(*spans[at])], names)
        )
    }


def _end_of_matter(text: str) -> int:
    """Where the front matter ends with which the text begins; 0 without one. A text unit may also begin with a
    rule between two parts of its document: what is no front matter of some lines in a row is not taken for it."""
    end = front_matter(text)[1]
    block = text[:end].rstrip()
    return end if block.endswith(("---", "...", "+++")) and "\n\n" not in block else 0


def _says_nothing(sentence: str, names: Sequence[Mention]) -> bool:
    """Is it code, a heading, a fragment, a crowd of names, or a list: fewer words beside the names
    than names (Guests: Mary Somerville, Luigi Menabrea, Edinburgh)? A handle or a number is no word."""
    if sentence[:1] in "#|" or is_code(sentence) or says(sentence) < LEANS:
        return True
    if len({key for key, *_ in names}) >= CROWD:
        return True
    outer = list(_outermost(names))
    if len(outer) < LIST:
        return False
    if holds_cjk(sentence):
        letters = sum(map(str.isalnum, sentence))
        return letters < 2 * sum(end - start for *_, start, end, _ in outer)
    words = len(_WORD.findall(sentence)) - sum(len(_WORD.findall(form)) for _, form, *_ in outer)
    return words < len(outer) - 1


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
    silent: set[int],
    core: int,
) -> Named:
    """All mentions of a name in one unit; they have one type, one strength and one alias."""
    flat: list[int] = []
    starts = [start for start, _ in spans]
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
    return Named(
        key, unit_id, form, kind, strong, len(found), flat, start + core, end + core, alias_of
    )
