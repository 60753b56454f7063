"""Answers from packed context: a question, the rows that were found for it, and a model, where there is one.

Takes the sections that a search has ranked; gives its `SearchResult` with the answer first (checked references, then
their titles) and as much of the context as the budget has left. Without a model, or when it fails, the context alone,
and a hint that says so: a model that does not answer never looks like a corpus that does not know. Ranks nothing.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from graphrag_mcp import prompts
from graphrag_mcp.ask import NO_MODEL as NOBODY
from graphrag_mcp.ask import Answer as Given
from graphrag_mcp.ask import Ask, Asker
from graphrag_mcp.errors import GraphRAGError
from graphrag_mcp.pack import Item, Section, citation, compose, fill, finish, one_line, shorten, size
from graphrag_mcp.query import context
from graphrag_mcp.query.numbering import Checked, data, numbered_items, restored, streamed
from graphrag_mcp.query.replies import KEYWORDS_SCHEMA, read_answer, read_keywords, refuses
from graphrag_mcp.seams import Message
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.types import Citation, DriftResult, SearchResult

R = TypeVar("R")
Answerable = TypeVar("Answerable", SearchResult, DriftResult)

READ_TOKENS = 4_000  # of context for the model at least: a short reply needs no less to go by
REFERENCES = 5  # titles listed below an answer
MOST_WORDS, LEAST_WORDS = 2_000, 60
ADDED_CITATIONS = 10  # of cited sources that the page itself does not show
VERIFY = "[LLM: verify]"
NO_MODEL = (
    "No model is configured, so this is context without an answer: answer from it yourself, or set "
    "GRAPHRAG_MCP_CHAT_MODEL and ask again."
)
CUT = "The model's answer was cut off where its length limit is; the same call again asks anew."
ONLY_CONTEXT = "Add nothing from general knowledge, even where you are sure of it."
MAY_ADD = (
    "Where the context does not reach, you may add general knowledge: end each such sentence with "
    f"{VERIFY} and give it no reference."
)


@dataclass(frozen=True, slots=True)
class Wish:
    """What the caller wants of an answer. `seconds`: how long to wait for it, 0 for as long as it takes."""

    response_type: str = ""
    instructions: str = ""
    general_knowledge: bool = False
    on_text: Callable[[str], None] | None = None
    seconds: float = 0.0
    history: str = ""  # the block of earlier turns, first in the context

    def form(self) -> str:
        """The caller's wishes as lines of the prompt."""
        lines = []
        if self.response_type.strip():
            lines.append(f"- Form of the answer: {one_line(self.response_type, 500)}")
        if self.instructions.strip():
            lines.append(f"- {one_line(self.instructions, 2_000)}")
        return "\n".join(lines) + ("\n" if lines else "")

    def knowledge(self) -> str:
        return MAY_ADD if self.general_knowledge else ONLY_CONTEXT


PLAIN = Wish()


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer with stored ids in its references; `by` is "" when there is none, then `reason` says why."""

    checked: Checked
    by: str = ""
    reason: str = ""
    cut: bool = False

    @property
    def text(self) -> str:
        return self.checked.text


class Meter:
    """What a call spends: the difference of the asker's account between two moments."""

    def __init__(self, asker: Asker) -> None:
        self.asker, self.before = asker, asker.spent().record()

    def usage(self) -> dict[str, Any]:
        """{calls, prompt_tokens, output_tokens, by_stage} since the beginning; zeros when the book knew it all."""
        now, then = self.asker.spent().record(), self.before
        stages: dict[str, dict[str, int]] = {}
        for kind, counts in now["by_stage"].items():
            earlier = then["by_stage"].get(kind, {})
            grown = {name: value - earlier.get(name, 0) for name, value in counts.items()}
            if any(grown.values()):
                stages[kind] = grown
        totals = {name: round(now[name] - then.get(name, 0), 6) for name in now if name != "by_stage"}
        return totals | {"by_stage": stages}


async def answer(
    asker: Asker, query: str, rows: str, names: Mapping[str, str], wish: Wish, *, words: int, prompt: str = "answer",
    kind: str = "answer", folder: Path | None = None,
) -> Answered:  # fmt: skip
    """Ask for free text over numbered rows. `names`: the rows' local ids -> the ids to show."""
    text = prompts.load(prompt, folder).substitute(
        context=data("\n\n".join(filter(None, [wish.history, rows]))), question=data(query), form=wish.form(),
        knowledge=wish.knowledge(), words=words,
    )
    ask = Ask(kind, (Message("user", text),), read_answer, lambda: "", if_cut="shown")
    reply = await asked(asker, ask, streamed(names, wish.on_text) if wish.on_text else None)
    if not reply.by:
        return Answered(Checked("", (), ()), reason=reply.reason)
    return Answered(_without_doubt(restored(reply.value, names)), reply.by, cut=reply.cut)


async def asked(asker: Asker, ask: Ask[R], on_text: Callable[[str], None] | None = None) -> Given[R]:
    """As `asker.ask`; a book of answers that cannot be used is no reason to lose a search."""
    try:
        return await asker.ask(ask, on_text=on_text)
    except GraphRAGError as error:
        return Given(ask.without(), reason=error.what)


def keywords_of(asker: Asker, query: str, folder: Path, seconds: float = 0.0) -> tuple[str, ...]:
    """What a model would look for: names first, then themes; nothing where none answers (in a quarter of the time)."""
    if not asker.may_answer("keywords"):
        return ()
    text = prompts.load("keywords", folder).substitute(question=data(query[:4_000]))
    ask = Ask("keywords", (Message("user", text),), read_keywords, lambda: ((), ()), KEYWORDS_SCHEMA)
    given = waited(asker, asked(asker, ask), seconds / 4)
    high, low = given.value if given is not None else ((), ())
    return tuple(dict.fromkeys([*low[:8], *high[:8]]))


def _without_doubt(checked: Checked) -> Checked:
    """A sentence of general knowledge cites nothing: references beside its mark go."""
    if VERIFY not in checked.text:
        return checked
    mark, bracket = re.escape(VERIFY), r"\[Data: [^\[\]\n]+\]"
    text = re.sub(rf"\s*(?:{bracket}\s*)+([.。]?\s*{mark})", r" \1", checked.text)
    text = re.sub(rf"({mark})(?:\s*{bracket})+", r"\1", text)
    cited = tuple(id for id in checked.cited if re.search(rf"(?<![\w.]){re.escape(id)}(?![\w.]*\w)", text))
    return Checked(text.replace(f"  {VERIFY}", f" {VERIFY}"), cited, checked.unknown)


# ---- a search with an answer ---------------------------------------------------------------------


def with_answer(
    result: SearchResult, sections: Sequence[Section], budget: int, cursor: Callable[[tuple[int, ...]], str], *,
    snapshot: Snapshot, query: str, asker: Asker | None, wish: Wish, meter: Meter | None = None,
) -> SearchResult:  # fmt: skip
    """As `pack.compose`, with an answer from what would have been shown. The answer comes first in the budget too."""
    if asker is None or not asker.may_answer("answer"):
        note(result, NO_MODEL)
        return compose(result, sections, budget, cursor, intro=wish.history)
    page = fill(sections, max(budget, READ_TOKENS))
    items = [item for section in sections for item in page.taken[section.name]]
    names: dict[str, str] = {}
    rows = page_text(sections, page.taken, names)
    back = {local: alias for alias, local in names.items()}
    meter = meter or Meter(asker)
    work = answer(asker, query, rows, back, wish, words=word_limit(budget), folder=snapshot.folder)
    given = waited(asker, work, wish.seconds)
    result.usage = meter.usage()
    if given is None:
        unfinished(result)
        return compose(result, sections, budget, cursor, intro=wish.history)
    if not given.by:
        result.state = "failed"
        note(result, failed(given.reason))
        return compose(result, sections, budget, cursor, intro=wish.history)
    return answered(result, given, sections, budget, cursor, snapshot=snapshot, shown=items)


def answered(
    result: Answerable, given: Answered, sections: Sequence[Section], budget: int,
    cursor: Callable[[tuple[int, ...]], str], *, snapshot: Snapshot, shown: Sequence[Item], first: str = "Sources",
) -> Answerable:  # fmt: skip
    """The result with a given answer: it, its references, then what fits of the sections."""
    places = cited_places(snapshot, given.checked.cited, shown)
    titles = _titles(snapshot, given.checked.cited, places)
    result.state, result.method = "partial" if given.cut else "answered", given.by
    if given.cut:
        note(result, CUT)
    block = "### References\n" + "\n".join(f"* [{n}] {title}" for n, title in enumerate(titles, 1)) if titles else ""
    result.answer = "\n\n".join(filter(None, [given.text, block]))
    if given.checked.unknown:
        listed = ", ".join(given.checked.unknown[:8])
        note(result, f"References of the model to what it was not given were removed: {listed}.")
    elif not given.checked.cited and not refuses(given.text):
        note(result, "The answer cites nothing; check it against the context.")
    if VERIFY in given.text:
        note(result, f"Sentences marked {VERIFY} are general knowledge, not from this corpus.")
    whole = "\n\n".join([result.answer, "## Context"])
    result.text = result.answer
    if not sections or size(result.model_copy(update={"text": whole}))[0] > budget - 150:
        return _alone(result, budget, cursor(tuple(section.offset for section in sections)) if sections else "")
    result = compose(result, sections, budget, cursor, intro=result.answer, first=first)
    held = {one.id for one in result.citations}
    missing = [place for place in places if place.id not in held][:ADDED_CITATIONS]
    if missing:
        added = sum(len(place.model_dump_json()) for place in missing) // 3 + 10
        result.citations = []
        result = compose(result, sections, max(budget - added, 1), cursor, intro=result.answer, first=first)
        held = {one.id for one in result.citations}
        result.citations += [place for place in missing if place.id not in held]
        while size(result)[0] > budget and result.citations and result.citations[-1].id not in held:
            result.citations.pop()
    return finish(result, budget)


def _alone(result: Answerable, budget: int, cursor: str) -> Answerable:
    """No room for context. The text keeps the whole answer; its copy in `answer` is shortened before the text is."""
    result.text, result.next_cursor, result.truncated = result.answer, cursor, bool(cursor)
    result.tokens = budget
    lighten(result, budget)
    over = size(result)[0] - budget
    if over > 0:
        from graphrag_mcp.text import count_tokens

        result.answer = shorten(result.answer, max(count_tokens(result.answer) - over - 20, 20)) + " …"
    return finish(result, budget)


def lighten(result: SearchResult | DriftResult, budget: int) -> None:
    """Let accounts go before words when a result is over its budget."""
    for kept in ("calls", "prompt_tokens", "output_tokens"), ("calls",):
        if size(result)[0] > budget:
            result.usage = {name: result.usage[name] for name in kept if name in result.usage}
    if isinstance(result, SearchResult) and size(result)[0] > budget:
        result.coverage = {}


def page_text(sections: Sequence[Section], taken: Mapping[str, list[Item]], names: dict[str, str]) -> str:
    """The page as the model reads it: the same blocks, ids numbered within it."""
    blocks = []
    for section in sections:
        rows = numbered_items(taken.get(section.name, []), names)
        if rows:
            header = f"{section.header}\n" if section.header else ""
            blocks.append(f"## {section.name}\n{header}" + ("\n\n" if "\n" in rows[0] else "\n").join(rows))
    return "\n\n".join(blocks)


def word_limit(budget: int) -> int:
    """Words of an answer that leave room for context: the answer stands in a result twice, as a field and as text."""
    return min(MOST_WORDS, max(LEAST_WORDS, budget // 5 // 10 * 10))


# ---- what a model's failure looks like -----------------------------------------------------------


def waited(asker: Asker, work: Coroutine[Any, Any, R], seconds: float) -> R | None:
    """The result of the work; None when it takes longer. It goes on, and what is answered is kept in the book."""
    future = asker.start(work)
    try:
        return future.result(seconds or None)
    except CancelledError:  # the asker was closed meanwhile
        return None
    except NotYet:
        if future.done():
            raise
        return None


def failed(reason: str) -> str:
    """What to say when a model gave no answer."""
    if reason == NOBODY:
        return NO_MODEL
    why = one_line(reason or "no reply", 160).rstrip(".")
    return f"The model gave no answer ({why}), so this is context without one: answer from it, or try again."


def unfinished(result: SearchResult) -> None:
    """A model that is still at it: the context now, the answer at the next call."""
    result.state = "partial"
    note(result, "The model has not finished; its answer is kept, so the same call again will have it soon.")


def note(result: SearchResult | DriftResult, sentence: str) -> None:
    result.hint = " ".join(filter(None, [result.hint, sentence]))


def deadline(seconds: float) -> Callable[[], float]:
    """How many of these seconds are left, never less than a moment; 0 for "no limit"."""
    end = time.monotonic() + seconds
    return lambda: max(end - time.monotonic(), 0.05) if seconds else 0.0


# ---- what an answer cites ------------------------------------------------------------------------


def cited_places(snapshot: Snapshot, cited: Iterable[str], shown: Sequence[Item]) -> list[Citation]:
    """The citations of the cited sources, in the order of the answer."""
    known = {one.id: one for item in shown for one in item.citations()}
    wanted = [alias for alias in cited if alias[0] == "t"]
    numbers = sorted({int(alias[1:].partition(".")[0]) for alias in wanted if alias not in known})
    rows = context.numbered(snapshot, "passages", numbers)
    documents = context.document_aliases(snapshot, [row["document_id"] for row in rows])
    for row in rows:
        place = citation(row, document=documents.get(row["document_id"], ""))
        known.setdefault(place.id, place)
    whole = [int(alias[1:]) for alias in wanted if alias not in known and "." not in alias]
    ids = snapshot.by_key("text_units", whole, "n", ["id"])["id"].to_pylist() if whole else []
    known |= {place.id: place for place in context.unit_citations(snapshot, ids).values()}
    return [known[alias] for alias in wanted if alias in known]


def _titles(snapshot: Snapshot, cited: Sequence[str], places: Sequence[Citation]) -> list[str]:
    """Titles of the cited documents, each once; where no source is cited, of the reports, then the entities."""
    documents = {place.document_id: one_line(place.title, 150) for place in places}
    if documents:
        return list(documents.values())[:REFERENCES]
    for letter, table in (("c", "reports"), ("e", "entities")):
        numbers = [int(alias[1:]) for alias in cited if alias[0] == letter]
        rows = snapshot.by_key(table, numbers, "n", ["n", "title"]).to_pylist() if numbers else []
        if rows:
            return list(dict.fromkeys(one_line(row["title"], 150) for row in rows))[:REFERENCES]
    return []
