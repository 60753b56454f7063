"""What models reply to the questions of the searches, read: texts, points, ratings, keywords, DRIFT answers.

Takes the raw reply; gives plain values, or raises `BadReply` with the reason in a few words. Forgiving about keys,
scores and wrapping, strict about there being something to use. Knows no prompt, no table and no id.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphrag_mcp import loose_json
from graphrag_mcp.ask import BadReply
from graphrag_mcp.query.walk import clean_query, near, read_score, words

ANSWER_CHARACTERS = 40_000
POINTS, FOLLOW_UPS = 60, 12  # read of one reply at most


def _object_schema(title: str, **properties: Any) -> dict[str, Any]:
    return {
        "title": title, "type": "object", "properties": properties, "required": list(properties),
        "additionalProperties": False,
    }  # fmt: skip


_TEXT, _SCORE = {"type": "string"}, {"type": "integer"}
_TEXTS = {"type": "array", "items": _TEXT}
_ONE_POINT = _object_schema("point", description=_TEXT, score=_SCORE)
POINTS_SCHEMA = _object_schema("points", points={"type": "array", "items": _ONE_POINT})
RATING_SCHEMA = _object_schema("rating", reason=_TEXT, rating=_SCORE)
KEYWORDS_SCHEMA = _object_schema("keywords", high_level=_TEXTS, low_level=_TEXTS)
PRIMER_SCHEMA = _object_schema("primer", intermediate_answer=_TEXT, score=_SCORE, follow_up_queries=_TEXTS)
STEP_SCHEMA = _object_schema("step", answer=_TEXT, score=_SCORE, follow_up_queries=_TEXTS)

# How a reply begins that says nothing but that nothing is known, in the languages that models write.
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
    r"[ \t]{0,9}(?:\*\*)?[ \t]{0,9}[:：]?[ \t]{0,9}(?:\*\*)?[ \t]{0,9}(?=\n|\Z)", re.IGNORECASE,
)  # fmt: skip
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
    """Free text: thoughts, a fence around the whole and a list of references of the model's own are taken off."""
    text = loose_json.without_thoughts(text).strip()
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
            points.append(Point(said, 1.0 if score is None else score))  # without a score: kept, ranked last
    return tuple(points)


def read_rating(text: str) -> int:
    """A whole number of 0 to 5."""
    said = loose_json.without_thoughts(text).strip()
    try:
        held = loose_json.read(said)
    except ValueError:
        held = said
    held = held[0] if isinstance(held, list) and held else held
    value = next((held[key] for key in ("rating", "score") if key in held), None) if isinstance(held, dict) else held
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
    """An answer with its score and follow-ups, of the primer or of a step; neither stands inside the answer."""
    held = _object(text)
    said = _text(held, "intermediate_answer", "answer", "response", "text")
    said = _SCORE_LINE.sub("", _FOLLOW_UP_TAIL.sub("", said).rstrip())
    said = _plain_answer(_SCORE_LINE.sub("", said.rstrip()))  # once more: one at the end may have hidden another
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
        if query and not any(query.casefold() == other.casefold() or near(bag, said) for other, said in kept):
            kept.append((query, bag))
    return tuple(query for query, _ in kept)


# ---- pieces ----------------------------------------------------------------------------------------


def _plain_answer(text: str) -> str:
    for own in list(_OWN_REFERENCES.finditer("\n" + text))[-3:]:
        rest = text[own.end() - 1 :].strip()
        if all(re.match(r"[-*•\[\d(（【]", line.strip()) for line in rest.splitlines() if line.strip()):
            text = text[: max(own.start() - 1, 0)]
            break
    text = text.strip()[:ANSWER_CHARACTERS]
    if not text:
        raise BadReply("the answer is empty")
    return text


def _json(text: str) -> Any:
    try:
        return loose_json.read(text)
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
    value = next((held[key] for key in ("score", "importance", "importance_score", "rating") if key in held), None)
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
