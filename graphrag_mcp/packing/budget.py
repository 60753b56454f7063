"""A budget of tokens and characters: whole items in order of worth, citations, cursors, short aliases. The page
that they fill: page.py."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from unicodedata import category

from graphrag_mcp import types
from graphrag_mcp.sources.document import PROSE, TABLES
from graphrag_mcp.text import places
from graphrag_mcp.text.prose import sentences
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.text.uris import file_and_key, suffix_of
from graphrag_mcp.trust.fencing import mark

CHARACTERS = 48_000  # some hosts cut at 25,000 tokens: in any script this stays below it


_ID = re.compile(r"\[[a-z]\d+(?:\.\d+)?\]")


class Size(NamedTuple):
    """What a text takes, or the room for it."""

    tokens: int
    characters: int

    def within(self, room: Size) -> bool:
        return self.tokens <= room.tokens and self.characters <= room.characters

    def __sub__(self, other: Size) -> Size:
        return Size(self.tokens - other.tokens, self.characters - other.characters)

    def share(self, part: float) -> Size:
        return Size(int(part * self.tokens), int(part * self.characters))


# ---- lines ------------------------------------------------------------------------------------


def one_line(text: str, characters: int) -> str:
    """The text without line breaks, at most so many characters."""
    flat = re.sub(r"\s+", " ", text).strip()
    return flat if len(flat) <= characters else flat[: characters - 1].rstrip() + "…"


def shorten(text: str, budget: int) -> str:
    """The longest run of whole sentences within the budget; at least words of the first."""
    room = Size(budget, CHARACTERS)
    return longest(text, lambda part: Size(count_tokens(part), len(part)).within(room))


def longest(text: str, fits: Callable[[str], bool]) -> str:
    """The longest beginning of the text that fits: all of it, or up to the end of a sentence, of a word, of a
    character. Of a text that fits every beginning fits."""
    if fits(text):
        return text.rstrip()
    ends = [end for _, end in sentences(text)][:-1]
    if not ends or not fits(text[: ends[0]]):
        ends = [word.end() for word in re.finditer(r"\S+", text[: ends[0] if ends else None])]
    if not ends or not fits(text[: ends[0]]):
        ends = range(1, ends[0] if ends else len(text))
    fitting = bisect_left(ends, True, key=lambda end: not fits(text[:end]))
    return text[: ends[fitting - 1]].rstrip() if fitting else ""


def cut_line(text: str, budget: int) -> str:
    """The beginning of a line within the budget, with the first id in it: `- 2019 She left the … [t3]`."""
    id = _ID.search(text)

    def cut(part: str) -> str:
        return f"{part} … {'' if id is None or id[0] in part else id[0]}".strip()

    return cut(longest(text, lambda part: count_tokens(cut(part)) <= budget))


# ---- cursors ------------------------------------------------------------------------------------


def write_cursor(generation: int, query: str, offsets: Iterable[int]) -> str:
    """Where the next page starts, tied to one generation and one question; short, because it is
    sent three times."""
    listed = list(offsets)
    while len(listed) > 1 and not listed[-1]:
        listed.pop()
    return f"{generation}.{_mark(query)}." + "-".join(map(str, listed))


def read_cursor(cursor: str, generation: int, query: str, count: int) -> tuple[int, ...] | None:
    """The offsets of a cursor; zeros for none; None for another generation or question."""
    if not cursor.strip():
        return (0,) * count
    match = re.fullmatch(r"(\d{1,12})\.(\d{6})\.(\d{1,6}(?:-\d{1,6})*)", cursor.strip())
    if match is None or int(match[1]) != generation or match[2] != _mark(query):
        return None
    offsets = tuple(int(part) for part in match[3].split("-"))
    return (*offsets, *(0,) * (count - len(offsets))) if len(offsets) <= count else None


def _mark(query: str) -> str:
    """Six digits (two tokens) that tell one question from another, made with the key of the home."""
    return mark("question", query)[-6:]


# ---- aliases ------------------------------------------------------------------------------------


def passage_alias(row: Mapping[str, Any]) -> str:
    """`t33`, or `t33.2` where the text unit has several passages."""
    return f"t{row['n']}" if row["parts"] <= 1 else f"t{row['n']}.{row['part']}"


TITLE = 120  # characters of a title that is shown
LOWEST, HIGHEST = 200, 20_000  # tokens a caller may ask for
LEAST_TEXT, LEAST_LETTERS = 8, 400  # tokens and characters of text that a cut item has in any case
LEAST, CUT = 24, 60  # letters of a long title; of a file's name that may be cut
SMALL = 400  # tokens of a result below which accounts (coverage) go before words


@dataclass(frozen=True, slots=True)
class Item:
    """One row of context. `text` is what the reader sees; `tokens` is its count where it is known
    already.

    `also` are further places that the text speaks of; `data` goes into a list field of the result.
    """

    id: str
    text: str
    citation: types.Citation | None = None
    section: str = "Sources"
    score: float = 0.0
    tokens: int = 0
    also: tuple[types.Citation, ...] = ()
    data: Mapping[str, Any] | None = None

    def citations(self) -> tuple[types.Citation, ...]:
        return self.also if self.citation is None else (self.citation, *self.also)


@dataclass(frozen=True, slots=True)
class Section:
    """Items in order of worth, and the share of the budget they are sure of. `more`: the ranking goes
    on behind the last item. A section without a name has no heading."""

    name: str
    items: Sequence[Item]
    share: float
    more: bool = False
    into: str = ""  # the list field of the result that takes the data of the items


@dataclass(frozen=True, slots=True)
class Filled:
    """What fits: the items by section; is there more; was a single item cut to fit?"""

    taken: Mapping[str, list[Item]]
    more: bool
    cut: bool = False


def clamp_budget(max_tokens: int, default: int) -> tuple[int, str]:
    """A usable budget and, when the one asked for is not, a sentence that says so."""
    if max_tokens <= 0:
        return default, f"max_tokens {max_tokens} cannot be used, so {default} was."
    used = min(max(max_tokens, LOWEST), HIGHEST)
    changed = f"max_tokens {max_tokens} was changed to {used} ({LOWEST} to {HIGHEST})."
    return used, "" if used == max_tokens else changed


def cost(item: Item) -> Size:
    """What the item adds to a text: its own and a little for what is between."""
    return Size(count_tokens(item.text) + (2 if "\n" in item.text else 1), len(item.text) + 2)


def fill(sections: Sequence[Section], budget: int | Size, price: Callable[[Item], Size] = cost) -> Filled:
    """Whole items in order; each section up to its share, then what is left over.

    Nothing is skipped for being long. Only when nothing fits is one item cut at a sentence end."""
    taken: dict[str, list[Item]] = {section.name: [] for section in sections}
    whole = left = budget if isinstance(budget, Size) else Size(budget, CHARACTERS)
    rounds = [(section, section.share) for section in sections]
    for section, share in [*rounds, *((section, 1.0) for section in sections)]:
        room = Size(*map(min, left, whole.share(share)))
        for item in section.items[len(taken[section.name]) :]:
            size = price(item)
            if not size.within(room):
                break
            taken[section.name].append(item)
            room, left = room - size, left - size
    cut = None if any(taken.values()) else next((section for section in sections if section.items), None)
    if cut is not None:
        taken[cut.name].append(shorten_item(cut.items[0], left, price))
    more = any(section.more or len(taken[section.name]) < len(section.items) for section in sections)
    return Filled(taken, more, cut is not None)


def shorten_item(item: Item, room: Size, price: Callable[[Item], Size] = cost) -> Item:
    """The item cut at a sentence end to fit; a citation keeps the span of what is left of the text.
    Where its head alone would fill the room, that is shortened as well."""
    head, _, body = item.text.partition("\n")
    if not body:
        head, body = "", item.text
    if head and room.tokens - count_tokens(head) < LEAST_TEXT + 2:
        head = f"[{item.id}]" if head.startswith(f"[{item.id}]") else one_line(head, 60)

    def cut(part: str) -> Item:
        return replace(item, text=f"{head}\n{part} …".lstrip("\n"), tokens=0)

    least = Size(count_tokens(head) + LEAST_TEXT, len(head) + LEAST_LETTERS)
    room = Size(*map(max, room, least))
    kept = longest(body, lambda part: price(cut(part)).within(room))
    citation = item.citation
    if citation is not None:
        last = max(citation.line_start, citation.line_end - body[len(kept) :].count("\n"))
        end = citation.char_start + len(kept)
        citation = citation.model_copy(update={"char_end": end, "line_end": last})
    data = dict(item.data) if item.data is not None else None
    if data and "char_end" in data:
        data["char_end"] = data["char_start"] + len(kept)
    return replace(cut(kept), citation=citation, data=data)


# ---- aliases and citations -----------------------------------------------------------------------


def citation(row: Mapping[str, Any], score: float = 0.0, document: str = "", lines: bool = True) -> types.Citation:
    """The citation of a row of `passages`; `document`: the alias of its document, shorter."""
    place = {name: row[name] for name in ("title", "uri", "char_start", "char_end")}
    place |= {name: row[name] if lines else 0 for name in ("line_start", "line_end")}
    place["place"] = places.of_row(row)
    of = document or row["document_id"]
    return types.Citation(id=passage_alias(row), document_id=of, score=round(score, 3), **place)


def repeats(uri: str, title: str) -> bool:
    """Is the file named by the title? A long one aside from spaces and signs; its name may be cut."""
    file = uri.rpartition("/")[2].removeprefix("text:").casefold()
    # A title that is made of a file and what stands in it has a blank in front of that.
    stem, name = file.rpartition(".")[0], title.casefold().replace(" #", "#")
    if name in (file, stem):
        return True
    letters, named = _letters(name), _letters(stem or file)
    cut = len(named) >= CUT and letters.startswith(named)
    return len(letters) >= LEAST and (letters == named or cut)


def located(uri: str, place: str, name: str = "") -> str:
    """`(audit-report.pdf p. 3)`, `(offer.eml#annexes.zip/plan.docx)`: the file of a document, with the path of one
    inside of it, and the place of a text in it. Without a place only what the `name` that is shown beside it does not
    say; "" for a text or a table of texts, which is what it is read as."""
    outer, key = file_and_key(uri)
    holder = outer.rpartition("/")[2]
    file = f"{holder}#{key}" if key else holder
    if place:
        return f"({file} {place})"
    if uri.startswith("text:") or suffix_of(holder) in PROSE | TABLES:
        return ""
    if key and repeats(key, name):
        file = file[: -len(key.rpartition("/")[2]) - 1]
    # A title that is made of a file and a number has a blank in front of the number.
    named = re.search(rf"(?<!\w){re.escape(file)}(?!\w)", name.replace(" #", "#"), re.IGNORECASE)
    return "" if named or repeats(file, name) else f"({file})"


def _letters(text: str) -> str:
    return "".join(letter for letter in text if letter.isalnum() or category(letter)[0] == "M")


def source_item(row: Mapping[str, Any], score: float = 0.0, document: str = "", lines: bool = False) -> Item:
    """A passage as the reader sees it: `[t33.2] Title (uri:12-40)` and its exact text; no title
    that only repeats the file's name. The lines stand in the text, so the citation has them only
    with `lines`."""
    cited = citation(row, score, document, lines)
    uri = one_line(cited.uri, 1_000)  # a file's name may hold a line break
    title = one_line(cited.title, TITLE)
    named = "" if repeats(uri, title) else f"{title} "
    at = f"{uri} {cited.place}" if cited.place else f"{uri}:{row['line_start']}-{row['line_end']}"
    head = f"[{cited.id}] {named}({at})"
    tokens = row["n_tokens"] + count_tokens(head) + 2
    return Item(cited.id, f"{head}\n{row['text'].strip()}", cited, "Sources", score, tokens)
