"""Answers by a model from the context of a search: the prompt, the reply read, its references
checked.

Without a model, or when it fails, the result is the context alone and a hint that says so: a model
that does not answer never looks like a corpus that does not know."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from graphrag_mcp.errors import GraphRAGError
from graphrag_mcp.llm import prompts, replies
from graphrag_mcp.llm.asker import NO_MODEL as NOBODY
from graphrag_mcp.llm.asker import Answer as Given
from graphrag_mcp.llm.asker import Ask, Asker, BadReply
from graphrag_mcp.llm.protocols import Message
from graphrag_mcp.packing.budget import (
    Item,
    Section,
    citation,
    compose,
    fill,
    finish,
    one_line,
    referenced_ids,
    shorten,
)
from graphrag_mcp.packing.citations import (
    Checked,
    data,
    example,
    numbered_items,
    restored,
    streamed,
)
from graphrag_mcp.packing.wire import size
from graphrag_mcp.query import context
from graphrag_mcp.query.drift_state import clean_query, near, read_score, words
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.types import Citation, DriftResult, SearchResult

ANSWER_CHARACTERS = 40_000
POINTS, FOLLOW_UPS = 60, 12  # read of one reply at most


def _object_schema(title: str, **properties: Any) -> dict[str, Any]:
    return {
        "title": title,
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_TEXT, _SCORE = {"type": "string"}, {"type": "integer"}
_TEXTS = {"type": "array", "items": _TEXT}
_ONE_POINT = _object_schema("point", description=_TEXT, score=_SCORE)
POINTS_SCHEMA = _object_schema("points", points={"type": "array", "items": _ONE_POINT})
RATING_SCHEMA = _object_schema("rating", reason=_TEXT, rating=_SCORE)
KEYWORDS_SCHEMA = _object_schema("keywords", high_level=_TEXTS, low_level=_TEXTS)
PRIMER_SCHEMA = _object_schema(
    "primer", intermediate_answer=_TEXT, score=_SCORE, follow_up_queries=_TEXTS
)
STEP_SCHEMA = _object_schema("step", answer=_TEXT, score=_SCORE, follow_up_queries=_TEXTS)
_ONE_STEP = _object_schema(
    "step", question=_SCORE, answer=_TEXT, score=_SCORE, follow_up_queries=_TEXTS
)
STEPS_SCHEMA = _object_schema("steps", answers={"type": "array", "items": _ONE_STEP})

# How a reply begins that says nothing but that nothing is known, in the languages that models
# write.
_UNKNOWN = re.compile(
    r"i (?:do not|don't|cannot|can't) (?:know|answer|determine|tell|say)|i (?:have|found) no (?:relevant )?information"
    r"|(?:sorry|unfortunately|unable to (?:answer|determine)|not (?:enough|sufficient) information|unknown\W*$)"
    r"|(?:there is |there's )?no (?:relevant )?information|(?:it |this )?is not (?:known|mentioned|stated)"
    r"|(?:the |these |this )?(?:provided |given )*(?:reports?|context|data|tables?|documents?|texts?) (?:do|does) not "
    r"(?:contain|mention|provide|include|give|say|speak)"
    r"|je ne (?:le )?(?:sais|peux) pas|aucune information|les (?:rapports|données) ne "
    r"|ich wei(?:ß|ss) (?:es )?nicht|(?:es (?:gibt|liegen) )?keine informationen|die berichte (?:enthalten|erwähnen) "
    r"(?:keine|nicht)|no (?:lo )?sé\b|no hay información|no se (?:sabe|menciona)|não sei|não há informaç"
    r"|non (?:lo )?so\b|nessuna informazione|non ci sono informazioni|ik weet het niet|geen informatie|jag vet inte"
    r"|jeg ved (?:det )?ikke|jeg vet ikke|en tiedä|nie wiem|brak informacji|nevím|nem tudom|nu știu|bilmiyorum"
    r"|(?:hiçbir )?bilgi yok|(?:я )?не знаю|нет (?:никакой )?информации|(?:я )?не можу|немає інформації"
    r"|δεν (?:γνωρίζω|ξέρω)|لا أعرف|لا أعلم|لا توجد معلومات|نمی‌?دانم|אינני יודע|אני לא יודע|मुझे नहीं पता|पता नहीं"
    r"|कोई जानकारी नहीं|tôi không biết|không có thông tin|saya tidak tahu|tidak ada informasi|ไม่ทราบ|ไม่มีข้อมูล"
    r"|我?不(?:知道|清楚|了解)|无法(?:回答|确定|得知)|無法(?:回答|確定|得知)|(?:报告|資料|资料|上下文|文中)?(?:中)?"
    r"(?:没有|沒有|未)(?:提及|提到|说明|提供|相关|相關|任何|足够)|わかりません|分かりません|不明です|情報(?:が|は)ありません"
    r"|모르겠|알 수 없|(?:관련 )?정보가 없"
)
_OWN_REFERENCES = re.compile(
    r"\n[ \t]{0,9}(?:#{1,6}[ \t]{0,9}|\*\*)?"
    r"(?:References?|Sources|Bibliography|Citations|Quellen|Referenzen|Références|Referencias"
    r"|Fuentes|Referências|Riferimenti|Fonti|Источники|Литература|参考文献|参考资料|參考資料|来源|引用|参照|참고문헌)"
    r"[ \t]{0,9}(?:\*\*)?[ \t]{0,9}[:：]?[ \t]{0,9}(?:\*\*)?[ \t]{0,9}(?=\n|\Z)",
    re.IGNORECASE,
)
_SCORE_LINE = re.compile(
    r"(?im)^\W{0,20}(?:score|rating|confidence|评分|分数|得分)\W{1,6}\d{1,3}(?:\s{0,3}/\s{0,3}\d{1,3})?[^\w\n]{0,20}$\n?"
    r"|(?<=[.!?。)\]])\s{0,9}[(\[]?score\W{1,4}\d{1,3}(?:/100)?\W{0,9}\Z"
)
_FOLLOW_UP_TAIL = re.compile(
    r"(?ims)^[\W_]{0,20}(?:follow[\s_-]?ups?\b[^\n]{0,40}|further questions|后续问题|後續問題)[^\w\n]{0,20}$.*"
)


@dataclass(frozen=True, slots=True)
class Point:
    """One statement of a map step and how much it helps with the question, 0 to 100."""

    description: str
    score: float


@dataclass(frozen=True, slots=True)
class Node:
    """What a model says to one node of a DRIFT walk; a score that cannot be read is None."""

    answer: str
    score: float | None
    follow_ups: tuple[str, ...]


def refuses(text: str) -> bool:
    """Does the text only say that it does not know?"""
    flat = re.sub(r"\s+", " ", text).replace("’", "'").casefold().lstrip("\"'“”«»*_#->•. 「『（(")
    return _UNKNOWN.match(flat) is not None


def read_answer(text: str) -> str:
    """Free text: thoughts, a fence around the whole and a list of references of the model's own are
    taken off."""
    text = replies.without_thoughts(text).strip()
    fenced = re.fullmatch(r"```(?:markdown|md|text|json)?[ \t]*\n(.*?)\n?```", text, re.DOTALL)
    text = fenced[1].strip() if fenced else text
    if re.match(r'\{\s*"(?:answer|response)"', text):
        held = _object(text)
        text = _text(held, "answer", "response") or text
    return _plain_answer(text)


def read_points(text: str) -> tuple[Point, ...]:
    """Points worth something, as they come; what only says that nothing is known is worth nothing."""
    held = _json(text)
    listed = held.get("points", held.get("key_points")) if isinstance(held, dict) else held
    if listed is None and isinstance(held, dict) and "description" in held:
        listed = [held]
    if not isinstance(listed, list):
        raise BadReply("there is no list of points")
    points = []
    for one in listed[:POINTS]:
        one = {"description": one} if isinstance(one, str) else one
        said = _text(one, "description", "point", "answer", "text") if isinstance(one, dict) else ""
        score = _score(one) if said else 0.0
        if said and not refuses(said) and score != 0:
            # without a score: kept, ranked last
            points.append(Point(said, 1.0 if score is None else score))
    return tuple(points)


def read_rating(text: str) -> int:
    """A whole number of 0 to 5."""
    said = replies.without_thoughts(text).strip()
    try:
        held = replies.read(said)
    except ValueError:
        held = said
    held = held[0] if isinstance(held, list) and held else held
    value = held
    if isinstance(held, dict):
        value = next((held[key] for key in ("rating", "score") if key in held), None)
    form = r"\W*+(?:(?:rating|score)\W*+)?(\d{1,3})(?:\.\d+)?(?:\s*+(?:/|of|out of)\s*5)?\W*+\Z"
    match = re.match(form, str(value), re.I)
    if match is None or isinstance(value, bool):
        raise BadReply("there is no rating of 0 to 5")
    return min(int(match[1]), 5)


def read_keywords(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(high-level themes, low-level names)."""
    held = _object(text)
    high = _strings(held.get("high_level", held.get("high_level_keywords")))
    low = _strings(held.get("low_level", held.get("low_level_keywords")))
    if not high and not low:
        raise BadReply("there are no keywords")
    return high, low


def read_node(text: str) -> Node:
    """An answer with its score and follow-ups, of the primer or of a step; neither stands inside
    the answer."""
    return _node(_object(text))


def read_nodes(text: str, count: int) -> tuple[Node | None, ...]:
    """The answers to so many numbered questions, in the order of these; None where one is missing."""
    held = _json(text)
    if isinstance(held, dict):
        lists = [one for one in held.values() if isinstance(one, list)]
        held = next((one for one in lists if any(isinstance(each, dict) for each in one)), [held])
    if not isinstance(held, list):
        raise BadReply("there is no list of answers")
    found: list[Node | None] = [None] * count
    entries = [one for one in held if isinstance(one, dict)][: 2 * count]
    numbers = [one.get("question") for one in entries]
    ordered = sorted(map(str, numbers)) != sorted({str(n) for n in numbers if str(n).isdigit()})
    for place, one in enumerate(entries, 1):
        number = place if ordered else int(str(one["question"]))
        try:
            if 0 < number <= count and found[number - 1] is None:
                found[number - 1] = _node(one)
        except BadReply:
            continue
    if not any(found):
        raise BadReply("there is no answer to any of the questions")
    return tuple(found)


def _node(held: Mapping[str, Any]) -> Node:
    said = _text(held, "intermediate_answer", "answer", "response", "text")
    said = _SCORE_LINE.sub("", _FOLLOW_UP_TAIL.sub("", said).rstrip())
    # once more: one at the end may have hidden another
    said = _plain_answer(_SCORE_LINE.sub("", said.rstrip()))
    queries: Sequence[str] = ()
    for key in ("follow_up_queries", "follow_ups", "follow_up", "followup_queries", "questions"):
        if key in held:
            queries = _strings(held[key])
            break
    return Node(said, _score(held), distinct(queries)[:FOLLOW_UPS])


def distinct(queries: Iterable[str]) -> tuple[str, ...]:
    """Questions as one line each, without those that ask nearly the same as an earlier one."""
    kept: list[tuple[str, frozenset[str]]] = []
    for query in queries:
        query = clean_query(query)
        bag = words(query)
        if query and not any(
            query.casefold() == other.casefold() or near(bag, said) for other, said in kept
        ):
            kept.append((query, bag))
    return tuple(query for query, _ in kept)


# ---- pieces ----------------------------------------------------------------------------------------


def _plain_answer(text: str) -> str:
    for own in list(_OWN_REFERENCES.finditer("\n" + text))[-3:]:
        rest = text[own.end() - 1 :].strip()
        if all(
            re.match(r"[-*•\[\d(（【]", line.strip()) for line in rest.splitlines() if line.strip()
        ):
            text = text[: max(own.start() - 1, 0)]
            break
    text = text.strip()[:ANSWER_CHARACTERS]
    if not text:
        raise BadReply("the answer is empty")
    return text


def _json(text: str) -> Any:
    try:
        return replies.read(text)
    except ValueError as error:
        raise BadReply("there is no JSON in it") from error


def _object(text: str) -> dict[str, Any]:
    held = _json(text)
    held = held[0] if isinstance(held, list) and held else held
    if not isinstance(held, dict):
        raise BadReply("it is no JSON object")
    return held


def _text(held: Mapping[str, Any], *keys: str) -> str:
    for key in keys:
        value = held.get(key)
        if isinstance(value, list):
            value = "\n".join(one for one in value if isinstance(one, str))
        if isinstance(value, str) and value.strip():
            return value.strip()
    return ""


def _score(held: Mapping[str, Any]) -> float | None:
    value = next(
        (held[key] for key in ("score", "importance", "importance_score", "rating") if key in held),
        None,
    )
    return read_score(value)[0]


def _strings(value: object) -> tuple[str, ...]:
    """Texts of a list, of objects in it that hold a question, or of lines."""
    value = value.splitlines() if isinstance(value, str) else value
    found = []
    for one in value if isinstance(value, list) else ():
        if isinstance(one, Mapping):
            one = one.get("query") or one.get("question") or one.get("keyword") or ""
        if isinstance(one, str) and one.strip():
            found.append(one.strip())
    return tuple(found)


R = TypeVar("R")
Answerable = TypeVar("Answerable", SearchResult, DriftResult)

READ_TOKENS = 4_000  # of context for the model at least: a short reply needs no less to go by
MOST_WORDS, LEAST_WORDS = 2_000, 60
PLACES = 2  # of a cited entity, relationship or report: where its first statements stand
ENDS = ("source_id", "target_id")
VERIFY = "[LLM: verify]"
NO_MODEL = (
    "No model is configured, so this is context without an answer: answer from it yourself, or set "
    "GRAPHRAG_MCP_CHAT_MODEL and ask again."
)
CUT = "The model's answer was cut off where its length limit is; the same call again asks again."
ONLY_CONTEXT = "Add nothing from general knowledge, even where you are sure of it."
MAY_ADD = (
    "Where the context does not reach, you may add general knowledge: end each such sentence with "
    f"{VERIFY} and give it no reference."
)


@dataclass(frozen=True, slots=True)
class Wish:
    """What the caller wants of an answer. `seconds`: how long to wait for it, 0 for as long as it
    takes."""

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
    """An answer with stored ids in its references; `by` is "" when there is none, then `reason`
    says why."""

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
        """{calls, prompt_tokens, output_tokens, by_stage} since the beginning; zeros when the book
        knew it all."""
        now, then = self.asker.spent().record(), self.before
        stages: dict[str, dict[str, int]] = {}
        for kind, counts in now["by_stage"].items():
            earlier = then["by_stage"].get(kind, {})
            grown = {name: value - earlier.get(name, 0) for name, value in counts.items()}
            if any(grown.values()):
                stages[kind] = grown
        totals = {
            name: round(now[name] - then.get(name, 0), 6) for name in now if name != "by_stage"
        }
        return totals | {"by_stage": stages}


async def answer(
    asker: Asker,
    query: str,
    rows: str,
    names: Mapping[str, str],
    wish: Wish,
    *,
    words: int,
    prompt: str = "answer",
    kind: str = "answer",
    folder: Path | None = None,
) -> Answered:
    """Ask for free text over numbered rows. `names`: the rows' local ids -> the ids to show."""
    text = prompts.load(prompt, folder).substitute(
        context=data("\n\n".join(filter(None, [wish.history, rows]))),
        question=data(query),
        form=wish.form(),
        knowledge=wish.knowledge(),
        example=example(names),
        words=words,
    )
    ask = Ask(kind, (Message("user", text),), read_answer, lambda: "", if_cut="shown")
    reply = await asked(asker, ask, streamed(names, wish.on_text) if wish.on_text else None)
    if not reply.by:
        return Answered(Checked("", (), ()), reason=reply.reason)
    return Answered(_without_doubt(restored(reply.value, names)), reply.by, cut=reply.cut)


async def asked(
    asker: Asker, ask: Ask[R], on_text: Callable[[str], None] | None = None
) -> Given[R]:
    """As `asker.ask`; a book of answers that cannot be used is no reason to lose a search."""
    try:
        return await asker.ask(ask, on_text=on_text)
    except GraphRAGError as error:
        return Given(ask.without(), reason=error.what)


def keywords_of(asker: Asker, query: str, folder: Path, seconds: float = 0.0) -> tuple[str, ...]:
    """What a model would look for: names first, then themes; nothing where none answers (in a
    quarter of the time)."""
    if not asker.may_answer("keywords"):
        return ()
    text = prompts.load("keywords", folder).substitute(question=data(query[:4_000]))
    ask = Ask(
        "keywords", (Message("user", text),), read_keywords, lambda: ((), ()), KEYWORDS_SCHEMA
    )
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
    cited = tuple(
        id for id in checked.cited if re.search(rf"(?<![\w.]){re.escape(id)}(?![\w.]*\w)", text)
    )
    return Checked(text.replace(f"  {VERIFY}", f" {VERIFY}"), cited, checked.unknown)


# ---- a search with an answer ---------------------------------------------------------------------


def with_answer(
    result: SearchResult,
    sections: Sequence[Section],
    budget: int,
    cursor: Callable[[tuple[int, ...]], str],
    *,
    snapshot: Snapshot,
    query: str,
    asker: Asker | None,
    wish: Wish,
    meter: Meter | None = None,
    plain: Callable[[SearchResult], SearchResult],
    read: Sequence[Section] = (),
) -> SearchResult:
    """The result with an answer from `read`, or from the sections themselves; without one, what
    `plain` makes of it. The answer comes first in the budget too."""
    if asker is None or not asker.may_answer("answer"):
        note(result, NO_MODEL)
        return plain(result)
    read = read or sections
    page = fill(read, max(budget, READ_TOKENS))
    items = [item for section in read for item in page.taken[section.name]]
    names: dict[str, str] = {}
    rows = page_text(read, page.taken, names)
    back = {local: alias for alias, local in names.items()}
    meter = meter or Meter(asker)
    work = answer(asker, query, rows, back, wish, words=word_limit(budget), folder=snapshot.folder)
    given = waited(asker, work, wish.seconds)
    result.usage = meter.usage()
    if given is None:
        unfinished(result)
        return plain(result)
    if not given.by:
        result.state = "failed"
        note(result, failed(given.reason))
        return plain(result)
    context_page = cursor(tuple(0 for _ in sections))
    return answered(result, given, budget, snapshot=snapshot, shown=items, cursor=context_page)


def answered(
    result: Answerable,
    given: Answered,
    budget: int,
    *,
    snapshot: Snapshot,
    shown: Sequence[Item] = (),
    cursor: str = "",
) -> Answerable:
    """The result with a given answer: it, its references, then the cited passages of `shown` that
    fit. `cursor` leads to the context without an answer."""
    places = cited_places(snapshot, given.checked.cited, shown)
    listed = _references(snapshot, given.checked.cited, places)
    result.state, result.method = "partial" if given.cut else "answered", given.by
    if given.cut:
        note(result, CUT)
    block = (
        "### References\n" + "\n".join(f"* [{id}] {what}" for id, what in listed.items())
        if listed
        else ""
    )
    result.answer = "\n\n".join(filter(None, [given.text, block]))
    if given.checked.unknown:
        listed = ", ".join(given.checked.unknown[:8])
        note(result, f"References of the model to what it was not given were removed: {listed}.")
    elif not given.checked.cited and not refuses(given.text):
        note(result, "The answer cites nothing; check it against the context.")
    if VERIFY in given.text:
        note(result, f"Sentences marked {VERIFY} are general knowledge, not from this corpus.")
    result.text = result.answer
    passages = [item for item in shown if item.id in {place.id for place in places}]
    result.citations = places
    whole = "\n\n".join([result.answer, "## Sources"])
    if not passages or size(result.model_copy(update={"text": whole}))[0] > budget - 150:
        return _alone(result, budget, cursor)
    section = Section("Sources", passages, 1.0, more=bool(cursor))
    result = compose(result, [section], budget, lambda _: cursor, intro=result.answer)
    result.citations = places
    return finish(result, budget)


def _alone(result: Answerable, budget: int, cursor: str) -> Answerable:
    """No room for context. The text keeps the whole answer; its copy in `answer` is shortened
    before the text is."""
    result.text, result.next_cursor, result.truncated = result.answer, cursor, bool(cursor)
    result.tokens = budget
    lighten(result, budget)
    over = size(result)[0] - budget
    if over > 0:
        from graphrag_mcp.text.tokens import count_tokens

        result.answer = (
            shorten(result.answer, max(count_tokens(result.answer) - over - 20, 20)) + " …"
        )
    return finish(result, budget)


def lighten(result: SearchResult | DriftResult, budget: int) -> None:
    """Let accounts go before words when a result is over its budget."""
    for kept in ("calls", "prompt_tokens", "output_tokens"), ("calls",):
        if size(result)[0] > budget:
            result.usage = {name: result.usage[name] for name in kept if name in result.usage}
    if isinstance(result, SearchResult) and size(result)[0] > budget:
        result.coverage = {}


def page_text(
    sections: Sequence[Section], taken: Mapping[str, list[Item]], names: dict[str, str]
) -> str:
    """The page as the model reads it: the same blocks, ids numbered within it, without references to
    what is no row of the page."""
    shown = {item.id for items in taken.values() for item in items}
    blocks = []
    for section in sections:
        rows = numbered_items(taken.get(section.name, []), names, shown)
        if rows:
            header = f"{section.header}\n" if section.header else ""
            blocks.append(
                f"## {section.name}\n{header}" + ("\n\n" if "\n" in rows[0] else "\n").join(rows)
            )
    return "\n\n".join(blocks)


def word_limit(budget: int) -> int:
    """Words of an answer that leave room for context: the answer stands in a result twice, as a
    field and as text."""
    return min(MOST_WORDS, max(LEAST_WORDS, budget // 5 // 10 * 10))


# ---- what a model's failure looks like -----------------------------------------------------------


def waited(asker: Asker, work: Coroutine[Any, Any, R], seconds: float) -> R | None:
    """The result of the work; None when it takes longer. It goes on, and what is answered is kept
    in the book."""
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
    note(
        result,
        "The model has not finished; its answer is kept, so the same call again will have it soon.",
    )


def note(result: SearchResult | DriftResult, sentence: str) -> None:
    result.hint = " ".join(filter(None, [result.hint, sentence]))


def deadline(seconds: float) -> Callable[[], float]:
    """How many of these seconds are left, never less than a moment; 0 for "no limit"."""
    end = time.monotonic() + seconds
    return lambda: max(end - time.monotonic(), 0.05) if seconds else 0.0


# ---- what an answer cites ------------------------------------------------------------------------


def cited_places(snapshot: Snapshot, cited: Iterable[str], shown: Sequence[Item]) -> list[Citation]:
    """The citations of the cited sources, in the order of the answer."""
    places = (one for item in shown for one in item.citations())
    known = {one.id: one for one in places if one.line_start}  # others are read with their lines
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


def _references(
    snapshot: Snapshot, cited: Sequence[str], places: Sequence[Citation]
) -> dict[str, str]:
    """What each cited id stands for, in the order of the answer: document and lines of a source;
    of another row its title with the first documents and lines that it comes from."""
    said = {one.id: _place(one) for one in places}
    for letter, table in (("c", "reports"), ("e", "entities"), ("r", "relationships")):
        numbers = [int(id[1:]) for id in cited if id[0] == letter]
        rows = context.numbered(snapshot, table, numbers)
        titles = _pairs(snapshot, rows) if letter == "r" else [row["title"] for row in rows]
        for row, title in zip(rows, titles, strict=True):
            said[f"{letter}{row['n']}"] = f"{one_line(title, 150)}{_from(snapshot, row)}"
    return {id: said[id] for id in dict.fromkeys(cited) if id in said}


def _place(one: Citation) -> str:
    lines = f", lines {one.line_start}-{one.line_end}" if one.line_start else ""
    return f"{one_line(one.title, 150)}{lines}"


def _from(snapshot: Snapshot, row: Mapping[str, Any]) -> str:
    """The places of a row's statements: of its evidence, of a report's references, else of all its
    text units."""
    units = [one["text_unit_id"] for one in row.get("evidence") or ()]
    units += referenced_ids(row.get("full_content") or "").get("Sources", [])
    units = list(dict.fromkeys(units)) or row["text_unit_ids"]
    places = [_place(one) for one in context.unit_citations(snapshot, units[:PLACES]).values()]
    more = f"; {len(units) - PLACES} more" if len(units) > PLACES else ""
    return f" ({'; '.join(places)}{more})" if places else ""


def _pairs(snapshot: Snapshot, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The two names of each relationship."""
    ends = sorted({row[end] for row in rows for end in ENDS})
    named = snapshot.by_key("entities", ends, "id", ["id", "title"]).to_pylist() if ends else []
    title = {row["id"]: one_line(row["title"], 70) for row in named}
    return [" - ".join(title.get(row[end], "") for end in ENDS) for row in rows]
