"""Models that are only imagined: replies of about the length and content that a model's usually have.

Takes the questions of indexing, and the keyless names of the texts that they are about; gives replies in the form that
the questions ask for, counted as providers count. Nothing of it is ever stored or shown: a rehearsed run
(estimate.py) is made of it, to see how many questions follow from which answers.

How much a model says is the one thing that no rule knows. What is assumed: of a text it names the names that are
connected most, 18 at the most, and relates the first name of a sentence, its subject, with those after it; of each
it says what the sentence says; a second look finds a third of that; a report has a finding for every few rows. Where
the answer book shows how much this model says, it is as much as that (habits.py).
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any
from zlib import crc32

from graphrag_mcp.index.extract_llm import hits
from graphrag_mcp.index.habits import Habits, tokens_of
from graphrag_mcp.index.mentions import Named, UnitNames
from graphrag_mcp.index.rows import Names
from graphrag_mcp.seams import Embedded, Message, Reply, Usage
from graphrag_mcp.text import sentences

AFTER = 4  # names of a sentence that its first one is related to
CLAIMS = 6
SAID = 280  # characters of a sentence that is repeated in a description
SUMMARY = 1_000  # characters of a description made of many
FINDINGS, EACH = 6, 3  # findings of a report, and how many rows one rests on; as many rows for the summary
FRAME = 200  # tokens of a report beside what it says of rows: titles, references, signs
_TAGS = re.compile(r"<(?:context|descriptions)>\n(.*)\n</(?:context|descriptions)>", re.DOTALL)
_SIGNS = re.compile(r'[<>|"]|##')
Link = tuple[Named, Named, int, int]  # subject, the other, start and end of the sentence


class ImitatedChat:
    """Answers the questions of indexing. `read` is told of every text before it is asked about."""

    def __init__(self, name: str, habits: Habits) -> None:
        self.name, self.habits = name, habits
        self._asked: dict[int, tuple[str, Names]] = {}

    def read(self, unit: Names, extract: str, claims: str = "") -> None:
        """The prompts that will ask about a text unit."""
        self._asked[hash(extract)] = "extract", unit
        if claims:
            self._asked[hash(claims)] = "claims", unit

    async def complete(
        self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None, max_output: int = 0,
        on_text: Callable[[str], None] | None = None,
    ) -> Reply:  # fmt: skip
        prompt = messages[0].content
        if (known := self._asked.get(hash(prompt))) is not None:
            kind, unit = known
            text = TEXTS[kind](_whole(unit), len(messages) // 2, self.habits)
        else:
            kind, make = ("report", reported) if schema is not None else ("describe", described)
            text = make(_between(prompt), self.habits)
        asked = sum(tokens_of(message.content) for message in messages)
        paid = tokens_of(text) * self.habits.spent.get(kind, 1.0)
        return Reply(text, Usage(round(asked), round(paid), estimated=True))

    async def close(self) -> None:
        """Nothing is held."""


class ImitatedEmbedder:
    """Vectors of `length` bytes, all alike. `text_prompt` is what the model of this name puts before a text."""

    def __init__(self, name: str, text_prompt: str = "") -> None:
        self.name, self.text_prompt, self.length = name, text_prompt, lambda: 4

    async def embed(self, texts: Sequence[str]) -> Embedded:
        length = self.length() or 4
        usage = Usage(round(sum(map(tokens_of, texts))), 0, estimated=True)
        return Embedded((bytes(length),) * len(texts), length // 4, usage)

    async def close(self) -> None:
        """Nothing is held."""


# ---- texts -------------------------------------------------------------------------------------------


def extraction(unit: UnitNames, looks: int, habits: Habits) -> str:
    """Records of the names that come next, and of the relationships that these have with names that were listed.
    `looks`: how often the text has been read already."""
    names, links = _by_weight(unit)
    begin = habits.names + habits.more * (looks - 1) if looks else 0
    end = begin + (habits.more if looks else habits.names)
    place = {name.key: at for at, name in enumerate(names[:end])}
    new = [link for link in links
           if link[0].key in place and link[1].key in place
           and max(place[link[0].key], place[link[1].key]) >= begin]  # fmt: skip
    records = [
        f'("entity"<|>{_plain(one.form)}<|>{one.type}<|>'
        f'{_told(f"{_plain(one.form)} is described:", unit, *one.sentences[:2], habits)})'
        for one in names[begin:end]
    ]
    for one, other, *span in new[: habits.more if looks else habits.links]:
        a, b = _plain(one.form), _plain(other.form)
        said = _told(f"{a} and {b} are connected:", unit, *span, habits)
        records.append(f'("relationship"<|>{a}<|>{b}<|>{said}<|>connection<|>5)')
    # A reply that was cut off, or passed over much of what the text repeats, is followed by a second look.
    if habits.looked < 0:
        again = sum(len(hits(unit.text, name.form, 2)) > 1 for name in unit.named if name.strong) > habits.names
    else:
        again = crc32(unit.text.encode("utf-8", "replace")) % 1_000 < 1_000 * habits.looked
    again = again and not looks
    return "\n##\n".join([*records, *([] if again else ["<|COMPLETE|>"])])


def claimed(unit: UnitNames, looks: int, habits: Habits) -> str:
    """A claim for each of the strongest relationships."""
    _, links = _by_weight(unit)
    records = []
    for one, other, start, end in () if looks else links[:CLAIMS]:
        quote = unit.text[start:end][:SAID].strip()
        said = f"{_plain(one.form)}<|>{_plain(other.form)}<|>STATEMENT<|>TRUE<|>NONE<|>NONE"
        records.append(f"({said}<|>{_plain(quote)}<|>{quote})")
    return "\n##\n".join([*records, "<|COMPLETE|>"])


def _whole(unit: Names) -> UnitNames:
    """The names of all of the text, of the part too that the unit before has."""
    found: dict[str, Named] = {}
    for one in [*unit.repeated().named, *unit.found()[0].named]:
        if (before := found.get(one.key)) is None:
            found[one.key] = replace(one)
        else:
            before.count, before.sentences = before.count + one.count, before.sentences + one.sentences
            before.strong = before.strong or one.strong
    return UnitNames(unit.id, unit.text, list(found.values()))


def _by_weight(unit: UnitNames) -> tuple[list[Named], list[Link]]:
    """Names, and of each sentence its first name with those after it; what is connected most first."""
    named = [name for name in unit.named if name.strong or name.count > 1] or unit.named
    by_sentence: dict[tuple[int, int], list[Named]] = defaultdict(list)
    for name in sorted(named, key=lambda name: name.start):
        for at in range(0, len(name.sentences), 2):
            by_sentence[name.sentences[at], name.sentences[at + 1]].append(name)
    links: dict[tuple[str, ...], Link] = {}
    weight: Counter[tuple[str, ...]] = Counter()
    held: Counter[str] = Counter({name.key: name.count for name in named})
    for span, (first, *others) in sorted(by_sentence.items(), key=lambda item: item[0]):
        for other in others[:AFTER]:
            pair = tuple(sorted((first.key, other.key)))
            links.setdefault(pair, (first, other, *span))
            weight[pair] += 1
    for pair in links:
        held.update(pair)
    names = sorted(named, key=lambda name: (-held[name.key], name.start))
    return names, [links[pair] for pair in sorted(links, key=lambda pair: (-weight[pair], links[pair][2], pair))]


def _told(begin: str, unit: UnitNames, start: int, end: int, habits: Habits) -> str:
    """A description that says what the sentence says."""
    said = f"{begin} {_plain(unit.text[start:end][:SAID])}"
    return _long(said, habits.said) if habits.said else said


def _long(text: str, length: float) -> str:
    """As much of it as that; said again where it is shorter."""
    return (f"{text} " * (int(length / (len(text) + 1)) + 1))[: int(length)].strip()


TEXTS = {"extract": extraction, "claims": claimed}


def _plain(text: str) -> str:
    return " ".join(_SIGNS.sub(" ", text).split())


# ---- descriptions and reports --------------------------------------------------------------------------


def _between(prompt: str) -> str:
    found = _TAGS.search(prompt)
    return found[1] if found else prompt


def described(told: str, habits: Habits) -> str:
    """What several texts say, said once: as long as they are together, up to SUMMARY."""
    lines = [line.partition(". ")[2] for line in told.splitlines()[1:]]
    said = _plain(" ".join(dict.fromkeys(filter(None, lines)))) or "Nothing more is told of it."
    return _of_tokens(said, habits.summary) if habits.summary else said[:SUMMARY]


def _of_tokens(text: str, tokens: float) -> str:
    return _long(text, tokens * len(text) / max(tokens_of(text), 1))


def reported(rows: str, habits: Habits) -> str:
    """A summary and findings, each of which says what some rows say, the first rows first."""
    lines = [line for line in rows.splitlines() if re.match(r"\d+,", line)]
    said = list(islice(_pieces(lines), EACH * (FINDINGS + 1)))
    if habits.report:
        share = habits.report / (FRAME + sum(map(tokens_of, said)))
        said = [_of_tokens(one, share * tokens_of(one)) for one in said]
    summary, rest = " ".join(said[:EACH]), said[EACH:] or said
    findings = [
        {"summary": part[0][:100], "explanation": " ".join(part) + " [Data: Entities (1, 2); Relationships (1)]"}
        for at in range(0, len(rest), EACH) if (part := rest[at : at + EACH])
    ]  # fmt: skip
    return json.dumps(
        {"title": "A community of names and what connects them", "summary": summary + " [Data: Entities (1, 2)]",
         "rating": 5, "rating_explanation": "The names are connected in several texts.", "findings": findings},
        ensure_ascii=False,
    )  # fmt: skip


def _pieces(lines: Sequence[str]) -> Iterator[str]:
    """The sentences of rows."""
    return (_plain(line[start:end]) for line in lines for start, end in sentences(line) if end - start >= 40)
