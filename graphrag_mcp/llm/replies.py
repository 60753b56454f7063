"""A model's reply as text: reasoning, fences and end marks removed, delimiters and JSON read,
values cleaned.

Every step is linear in the length of the reply. json_repair 0.64 took over 15 seconds for 22 kB of
bracketed prose, and keeps half a text as if it were whole."""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass, field
from typing import Any

from graphrag_mcp.text.terms import is_cjk, sentences

_ATTEMPTS = 64  # places where JSON might begin; more are noise
_DEEPEST = 60
_THOUGHT = re.compile(r"<(/?)(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
_BEGIN = re.compile(
    r"\{(?=\s*+(?:[\"'“‘}/]|\w{1,60}+\s*+[:：]))|\[(?=\s*+(?:[\"'“‘{\[\]/\-\d]|true|false|null))"
)
_SKIP = re.compile(r"(?:\s|//[^\n]*|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z))*+")
_NUMBER = re.compile(
    r"[-+]?\d{1,300}(?:\.\d{1,300})?(?:[eE][-+]?\d{1,4})?(?=\s*+(?:[,，}\]]|//|/\*|\Z|\n))"
)
_BARE = re.compile(r"[^,，}\]\n]{0,400}")
_BARE_KEY = re.compile(r"[\w$.\- ]{1,60}+(?=\s*+[:：])")
_NO_KEY = re.compile(r"[^\"'“‘,，\n{}\[\]]++|.", re.DOTALL)
_COLON = re.compile(r"\s*+(?:[:：]|=>)")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "b": "", "f": ""}
_PLAIN |= {same: same for same in "/\\\"'\n"}
_WORDS = {"true": True, "false": False, "null": None, "none": None, "undefined": None, "nan": None}
# A quote ends its string only where JSON could go on: models leave quotes inside a text unescaped.
_CLOSES = {'"': '"', "'": "'", "“": '”“"', "‘": "’‘'"}
_KEY = r"(?:[\"'“‘][^\"'“”‘’\n]{0,60}[\"'”’]\s*+[:：])"
_AFTER = {
    "key": re.compile(r"\s*+(?:[:：]|=>|\Z)"),
    "{": re.compile(
        rf"\s*+(?:\Z|[}}\]]|//|/\*|{_KEY}|[,，]\s*+(?:\Z|[}}\]]|//|/\*|{_KEY}|\w{{1,40}}+\s*+[:：]))"
    ),
    "[": re.compile(
        r"\s*+(?:\Z|[}\]]|//|/\*|[,，]\s*+(?:\Z|[\"'“‘{\[}\]\-\d]|//|/\*|true|false|null))"
    ),
}
_CUT = object()  # stands for a value that the reply ends in


def read(text: str, *, keep_cut: bool = False) -> Any:
    """The largest JSON object or array in the reply.

    Where the reply ends too early what is complete is kept; the value that it ends in is dropped,
    or with `keep_cut` kept when it is a text."""
    text = without_thoughts(text).strip().removeprefix("\ufeff")
    if re.match(r"[{\[]\s*+\\\"", text):  # escaped once too often
        text = text.replace('\\"', '"').replace("\\n", "\n")
    found, at, longest = _strict(text, 0) if text[:1] in ("{", "[", '"') else (None, 0, 0)
    if at and isinstance(found, str):
        return read(found, keep_cut=keep_cut) if found.lstrip()[:1] in ("{", "[") else _nothing()
    if at and not text[at:].strip():
        return _clean(found)
    at = 0
    for _ in range(_ATTEMPTS):
        begin = _BEGIN.search(text, at)
        if begin is None:
            break
        value, at, _ = _strict(text, begin.start())
        if not at:
            reader = _Reader(text, begin.start(), keep_cut)
            value, at = reader.value("", 0), reader.at
        if at - begin.start() > longest and value is not _CUT:
            found, longest = value, at - begin.start()
    return _clean(found) if longest else _nothing()


def without_thoughts(text: str) -> str:
    """The text without blocks of thinking. A block opens at the start of a line; some chat templates
    write the opening of the first one into the prompt. One that is never closed was cut off."""
    kept: list[str] = []
    at, inside = 0, False
    for tag in _THOUGHT.finditer(text):
        if tag[1]:
            before, after = (
                text[max(0, tag.start() - 1) : tag.start()],
                text[tag.end() : tag.end() + 1],
            )
            alone = before in ("", "\n") or after in ("", "\n")
            if inside or (not kept and alone):
                kept, at, inside = kept or [""], tag.end(), False
        elif (
            not inside
            and not text[max(0, tag.start() - 200) : tag.start()].rpartition("\n")[2].strip()
        ):
            kept.append(text[at : tag.start()])
            inside = True
    answer = "".join(kept) + ("" if inside else text[at:])
    return answer if answer == text else answer.lstrip()


def _nothing() -> Any:
    raise ValueError("no JSON in the reply")


def _strict(text: str, at: int) -> tuple[Any, int, int]:
    """The value and where it ends; the end is 0 when it is not JSON to the letter."""
    try:
        return *json.JSONDecoder(strict=False, parse_constant=lambda _: None).raw_decode(
            text, at
        ), 0
    except (ValueError, RecursionError):
        return None, 0, 0


def _clean(value: Any) -> Any:
    """Half characters replaced: no file takes them."""
    if isinstance(value, str):
        if _SURROGATE.search(value):
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return value
    if isinstance(value, list):
        return [_clean(one) for one in value]
    if isinstance(value, dict):
        return {_clean(key): _clean(one) for key, one in value.items()}
    return value


class _Reader:
    """Reads one value from `at` on, never going back further than one quote."""

    def __init__(self, text: str, at: int, keep_cut: bool) -> None:
        self.text, self.at, self.keep_cut = text, at, keep_cut

    def value(self, inside: str, depth: int) -> Any:
        if depth > _DEEPEST:
            raise ValueError("the JSON in the reply is nested too deep")
        self.skip()
        first = self.text[self.at : self.at + 1]
        if first == "{":
            return self.object(inside, depth)
        if first == "[":
            return self.array(inside, depth)
        if first in _CLOSES:
            return self.string(inside)
        if not first:
            return _CUT
        if number := _NUMBER.match(self.text, self.at):
            self.at = number.end()
            said = number[0]
            return (
                _CUT
                if self.at == len(self.text)
                else float(said)
                if re.search("[.eE]", said)
                else int(said)
            )
        bare = _BARE.match(self.text, self.at)
        self.at = bare.end()  # type: ignore[union-attr]
        word = bare[0].strip()  # type: ignore[index]
        return _CUT if self.at == len(self.text) else _WORDS.get(word.casefold(), word)

    def object(self, outside: str, depth: int) -> Any:
        found: dict[str, Any] = {}
        self.at += 1
        while self.next("}", "]", outside == "["):
            bare = _BARE_KEY.match(self.text, self.at)
            if bare:
                key, self.at = bare[0].strip(), bare.end()
            elif self.text[self.at] in _CLOSES:
                key = self.string("key")
            else:
                self.at = _NO_KEY.match(self.text, self.at).end()  # type: ignore[union-attr]
                continue
            colon = _COLON.match(self.text, self.at)
            if colon is None or key is _CUT:
                continue
            self.at = colon.end()
            value = self.value("{", depth + 1)
            if value is not _CUT:
                found.setdefault(key, value)
        return found if found or self.text[self.at - 1] == "}" else _CUT

    def array(self, outside: str, depth: int) -> list[Any]:
        found: list[Any] = []
        self.at += 1
        while self.next("]", "}", outside == "{"):
            begin = self.at
            value = self.value("[", depth + 1)
            if self.at == begin:
                self.at += 1
            elif value is not _CUT:
                found.append(value)
        return found

    def next(self, close: str, other: str, other_is_open: bool) -> bool:
        """Is there another element? A bracket of the wrong kind ends this one when an outer one may
        have it."""
        while True:
            self.skip()
            here = self.text[self.at : self.at + 1]
            if not here or here == close or (here == other and other_is_open):
                self.at += here == close
                return False
            if here not in ",;，；" and here != other:
                return True
            self.at += 1

    def skip(self) -> None:
        self.at = _SKIP.match(self.text, self.at).end()  # type: ignore[union-attr]

    def string(self, inside: str) -> Any:
        text, after = self.text, _AFTER.get(inside, _AFTER["["])
        ends = re.compile(rf"[^\\{_CLOSES[text[self.at]]}]*+")
        begin = at = self.at + 1
        while True:
            at = ends.match(text, at).end()  # type: ignore[union-attr]
            if at >= len(text):
                self.at = len(text)
                return self.plain(text[begin:]) if self.keep_cut and inside != "key" else _CUT
            if text[at] == "\\":
                at += 2
            elif after.match(text, at + 1):
                self.at = at + 1
                return self.plain(text[begin:at])
            else:
                at += 1

    def plain(self, said: str) -> str:
        """The text of a string; an escape that JSON does not know stays as it stands."""

        def one(match: re.Match[str]) -> str:
            sign = match[1]
            return chr(int(sign[1:], 16)) if len(sign) == 5 else _PLAIN.get(sign, match[0])

        return _ESCAPE.sub(one, said)


LONGEST_REPLY = 4_000_000  # characters that are looked at
MOST_TOKENS = 300_000  # signs and texts of JSON that are looked at; 1,500 records have some 40,000
DEEPEST = 64

# ---- the reply as a whole -------------------------------------------------------------------------

# Half a mark is one only in capital letters and where nothing follows: elsewhere it is a field
# between delimiters.
_MARK = re.compile(
    r"[<＜][ ]?[|｜#]{0,3}[ ]?(?i:COMPLETED?)[ ]?(?:[|｜#]{1,3}[ ]?[>＞]|[>＞])"
    r"|(?:[<＜][ ]?[|｜#]{1,3}[ ]?COMPLETED?[|｜#]{0,3}|(?<!\w)[|｜]COMPLETED?[|｜])(?=[ \t)\]\"'*`.]{0,9}(?:\n|\Z))"
)
_SPECIAL = re.compile(
    r"<[|｜](?:im_(?:start|end)|endoftext|eot_id|end_of_turn|end|eos|return|start|channel|message)[|｜]>|<end_of_turn>|</s>",
    re.IGNORECASE,
)
_FENCE = re.compile(r"^[ \t]{0,8}(?:```|~~~)[ \t]{0,8}\w{0,20}[ \t]{0,8}$", re.MULTILINE)
_LITERAL = re.compile(r"(?<!\\)(?:\\r)?\\n")
_JSON_ESCAPE = re.compile(r"&(?:lt|gt|amp|quot|apos|nbsp|#\d{1,6}|#x[0-9a-f]{1,5});", re.IGNORECASE)


def plain_reply(reply: str) -> tuple[str, bool]:
    """The reply without thoughts, fences, special tokens and end marks; and whether it had an end
    mark."""
    text = reply[:LONGEST_REPLY].lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    text = without_thoughts(text)
    if "\\n" in text and "\n" not in text.strip() and text.lstrip()[:1] not in ("{", "["):
        text = _LITERAL.sub("\n", text)  # the reply of a model that escapes what no one unescapes
    if "&lt;" in text and text.lstrip()[:1] not in ("{", "["):
        text = unescaped(text)
    # Patterns that may begin anywhere are tried at every letter: they are only shown what may hold
    # what they look for.
    low = text.lower()
    at = max(0, low.find("complete") - 8) if len(low) == len(text) else 0
    tail, marks = _MARK.subn("\n", text[at:]) if "complete" in low else (text[at:], 0)
    text = _SPECIAL.sub("\n", text[:at] + tail)
    return (_FENCE.sub("", text) if "```" in text or "~~~" in text else text).strip(), marks > 0


def unescaped(text: str) -> str:
    """HTML entities as characters; only those that end in a semicolon, so that `?a=1&copy=2` stays."""
    return _JSON_ESCAPE.sub(lambda match: html.unescape(match[0]), text) if "&" in text else text


# ---- tuples ---------------------------------------------------------------------------------------

FULL = r"[<＜][ ]?[|｜#\\]{1,5}[ ]?[>＞]"
HALF = rf"{FULL}|[<＜][|｜]{{1,2}}|[|｜]{{1,2}}[>＞]"
_LEVELS = tuple(re.compile(level) for level in (FULL, HALF, rf"{HALF}|[|｜]|\t"))
# closing signs are optional: one that is missing must not be looked for again and again
_COMMA_FIELD = re.compile(
    r"\"((?:[^\"\\]|\\.)*+)\"?|'((?:[^'\\]|\\.)*+)'?|“([^”]*+)”?|(-?\d+(?:\.\d+)?)", re.DOTALL
)


def split_fields(body: str, enough: int = 3) -> list[str]:
    """The fields of a tuple by the strictest delimiter that gives enough of them; raw texts."""
    fields: list[str] = []
    for level in _LEVELS:
        fields = level.split(body)
        if len(fields) > 1 and not fields[0].strip(" \t\"'“”`*|｜"):
            fields = fields[1:]
        if len(fields) >= enough or (len(fields) > 1 and level is _LEVELS[1]):
            break
    else:
        if len(fields) <= 1 and body.lstrip().startswith((",", '"', "'", "“")):
            quoted = ("".join(groups) for groups in _COMMA_FIELD.findall(body, 0, 100_000))
            fields = [re.sub(r"\\([\"'\\])", r"\1", field) for field in quoted]
    if len(fields) > enough and not fields[-1].strip():
        fields = fields[:-1]  # the bar that closes a table's row
    return fields


# ---- JSON -----------------------------------------------------------------------------------------

LONGEST_JSON = (
    1_000_000  # characters of JSON that are read at once; what is longer is read item by item
)
_JSON = re.compile(r"[{\[]\s{0,64}[\"'{\[}\]]")
_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"?|[{}\[\]:]', re.DOTALL)
_SIGN = re.compile("[\"']")
_QUOTED = r"'(?:[^'\\]|\\.|'(?!\s{0,9}[,:}\]]))*+'?"
# with texts in single quotes
_PYTHON_TOKEN = re.compile(rf"{_QUOTED}|{_JSON_TOKEN.pattern}", re.DOTALL)
_COMMA_AT_END = re.compile(r",(?=\s{0,64}[}\]])")
_PAIR = re.compile(
    r"[\"'](\w{1,40})[\"'] ?: ?(?:\"((?:[^\"\\]|\\.|\"(?!\s{0,9}[,}\]]))*+)\"?|'((?:[^'\\]|\\.|'(?!\s{0,9}[,}\]]))*+)'?"
    r"|(-?\d+(?:\.\d+)?)|\[([^\]\[]*+)\]?)",
    re.DOTALL,
    # a quotation mark ends a value only before a comma or bracket: models forget to escape those inside
)


def json_start(text: str) -> int:
    """Where JSON seems to begin; -1 where nothing looks like it."""
    match = _JSON.search(text)
    return match.start() if match else -1


def json_values(text: str) -> tuple[list[tuple[str, Any]], bool, int]:
    """The objects and arrays of a reply, each with the key that it stands under ("" at the top);
    whether all was closed; and how many objects had to be mended.

    Text around and between them does not matter. Where one is no JSON its parts are tried, down to
    the pairs that can be made out; a reply that was cut off gives the parts that are whole."""
    for candidate in (text, _COMMA_AT_END.sub("", text)) if len(text) <= LONGEST_JSON else ():
        if values := _replies_strict(candidate):
            return [("", value) for value in values], True, 0
    tops, closed = _brackets(text)
    values, mended, waiting = [], 0, tops[::-1]
    while waiting:
        one = waiting.pop()
        part = text[one.start : one.end]
        decoded = _decoded(part) if one.end else None
        if decoded is not None:
            values.append((one.key, decoded))
        elif (
            not one.end
            or one.sign == "["
            or any(inner.sign == "{" or inner.parts for inner in one.parts)
        ):
            waiting += one.parts[::-1]
        elif pairs := _pairs(part):
            values.append((one.key, pairs))
            mended += 1
    return values, closed, mended


def json_items(text: str) -> tuple[list[dict[str, Any]], bool]:
    """The objects of a reply that hold no other objects; and whether all was closed."""
    values, closed, _ = json_values(text)
    items: list[dict[str, Any]] = []
    waiting = [value for _, value in reversed(values)]
    while waiting:
        value = waiting.pop()
        within = [
            one
            for one in (value.values() if isinstance(value, dict) else value)
            if isinstance(one, dict | list)
        ]
        deeper = [
            one
            for one in within
            if isinstance(one, dict) or any(isinstance(part, dict | list) for part in one)
        ]
        if isinstance(value, dict) and value and not deeper:
            items.append(value)
        waiting += (within if isinstance(value, list) else deeper)[::-1]
    return items, closed


def _replies_strict(text: str) -> list[Any]:
    """Every value as JSON, with prose around; [] when one of them is not JSON to the letter."""
    decoder, values, at = json.JSONDecoder(strict=False), [], 0
    while begin := _JSON.search(text, at):
        try:
            value, at = decoder.raw_decode(text, begin.start())
        except (ValueError, RecursionError):
            return []
        values.append(value)
    return values


@dataclass(slots=True)
class _Bracket:
    """An object or array of a reply: its span (`end` 0: never closed), the key it stands under,
    what it holds."""

    sign: str
    start: int
    key: str
    end: int = 0
    parts: list[_Bracket] = field(default_factory=list)


def _brackets(text: str) -> tuple[list[_Bracket], bool]:
    """The brackets that no other one holds; and whether all were closed."""
    begin = _JSON.search(text)
    if begin is None:
        return [], False
    tops: list[_Bracket] = []
    stack: list[_Bracket] = []
    key, last = "", (0, 0)
    first = _SIGN.search(text, begin.start())
    token = _PYTHON_TOKEN if first and first[0] == "'" else _JSON_TOKEN
    for count, match in enumerate(token.finditer(text, begin.start())):
        sign = match[0][0]
        if sign in "\"'":
            last = match.span()
        elif sign == ":":
            key = text[last[0] + 1 : min(last[1] - 1, last[0] + 300)]
        elif sign in "{[":
            if count > MOST_TOKENS or len(stack) >= DEEPEST:
                return tops, False
            outer = stack[-1] if stack else None
            made = _Bracket(
                sign,
                match.start(),
                outer.key if outer and outer.sign == "[" else key if outer else "",
            )
            (outer.parts if outer else tops).append(made)
            stack.append(made)
        elif stack and stack[-1].sign == ("{" if sign == "}" else "["):
            stack.pop().end = match.end()
    return tops, not stack


def _decoded(part: str) -> Any:
    """The value as JSON, or with commas at its ends removed; None for anything else."""
    for candidate in (part, _COMMA_AT_END.sub("", part)):
        try:
            return json.loads(candidate, strict=False)
        except (ValueError, RecursionError):
            continue
    return None


def _pairs(part: str) -> dict[str, Any]:
    """Names and values that can be made out in an object that is no JSON."""
    pairs: dict[str, Any] = {}
    for name, double, single, number, array in _PAIR.findall(part):
        words = [word for word in re.split(r"[\"',]+", array) if word.strip()]
        pairs[name] = words or _unquoted(double or single) or number
    return pairs


def _unquoted(text: str) -> str:
    return re.sub(r"\\([\"'\\nrt])", lambda sign: " " if sign[1] in "nrt" else sign[1], text)


# ---- values ---------------------------------------------------------------------------------------

# Control characters, lone halves of surrogate pairs, direction marks and other invisible signs.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
_WORD_OR_SIGN = re.compile(r"[^\W_]|[^\x00-\x7f\u2000-\u206f\u3000-\u303f\uff00-\uff0f\w]")
_PAIRS = tuple("\"\" '' “” ‘’ «» 「」 『』 `` ** ＂＂ „“ <> {} ＜＞".split())


def clean(value: str, longest: int) -> str:
    """One line without invisible characters, blanks collapsed, wrapping quotes and emphasis off, at
    most `longest`."""
    text = unescaped(value[: 4 * longest + 400])
    text = " ".join((text if text.isprintable() else _INVISIBLE.sub("", text)).split())
    for _ in range(
        0 if text[:1].isalnum() else 6
    ):  # what begins with a letter or digit is not wrapped
        before = text
        if (
            len(text) > 1
            and text[0] + text[-1] in _PAIRS
            and text[0] not in text[1:-1]
            and text[-1] not in text[1:-1]
        ):
            text = text[1:-1].strip()
        elif len(text) > 4 and text[:2] == text[-2:] and text[:2] in ("**", '""'):
            text = text[2:-2].strip()
        if text == before:
            break
    return text[:longest].rstrip()


_MARKS = frozenset('"“”«»*`')


def clean_name(value: str) -> str:
    """A name as it is stored; "" for one without a letter, digit or sign of a language (`C++`, `😀`
    stay)."""
    name = clean(value, 1000).lstrip("#").strip()
    for sign in () if _MARKS.isdisjoint(name) else '"“”«»*`':
        if name.count(sign) == 1 and sign in (name[:1], name[-1:]):
            name = name.replace(sign, "").strip()  # its partner was lost
    name = name.rstrip(";,").strip()
    return name if _WORD_OR_SIGN.search(name) else ""


_GLOSS = re.compile(r"([^()（）]{2,150}?)\s{0,4}[(（]([^()（）]{2,150})[)）]")
_SAYS_SHORT = re.compile(r"(?:以下)?[简簡][称稱]|英[文语語]名?|[，,、:：“”\"]")
_WORD, _NUMERAL = re.compile(r"[^\W\d_a-zA-Z]{2}|[^\W\d_]{3}"), re.compile(r"[IVXLC]+")


def without_gloss(name: str) -> str:
    """`World Health Organization (WHO)` and `回流（back-run）` without what repeats the name in short
    or in another script: with it the name would be another one than without, and stand nearly
    nowhere. `Mercury (planet)` stays."""
    match = _GLOSS.fullmatch(name)
    if match is None:
        return name
    head, gloss = match[1].strip(), match[2].strip()
    for short, long in ((gloss, head), (head, gloss)):
        if (
            " " in long
            and short.isupper()
            and short.isascii()
            and short.isalnum()
            and len(short) <= 10
        ):
            initials = iter(re.sub(r"\B\w|[\W_]", "", long).upper())
            if all(letter in initials for letter in short if letter.isalpha()):
                return long
    gloss = _SAYS_SHORT.sub("", gloss)
    translated = (
        _latin(head) != _latin(gloss) and _WORD.search(gloss) and not _NUMERAL.fullmatch(gloss)
    )
    return head if translated else name


def _latin(name: str) -> bool:
    return all(ord(ch) < 0x250 for ch in name if ch.isalpha())


# ---- prose --------------------------------------------------------------------------------------

_REFUSAL = re.compile(
    r"\W*(?:i(?:['’]m| am) (?:sorry|unable|not able|afraid)|i (?:can(?:not|['’]t| not)|could not|couldn['’]t|won['’]t)|"
    r"sorry,? (?:but|i)\b|unfortunately,? i\b|as an? (?:ai|language model|large)|"
    r"(?:there is )?no (?:data|context|descriptions?|text) (?:was |were |is |are )?(?:provided|given)|please provide|"
    r"抱歉|很抱歉|对不起|對不起|我无法|我無法|我不能|申し訳|es tut mir leid|ich kann (?:nicht|keine)|désolé|"
    r"je ne peux pas|lo siento|no puedo)",
    re.IGNORECASE,
)


def refused(text: str) -> bool:
    """Does the text begin as one in which a model says that it will not answer?"""
    return _REFUSAL.match(text[:200]) is not None


def words(text: str) -> int:
    """Words of a text, two CJK characters as one."""
    if text.isascii():
        return len(text.split())
    dense = sum(is_cjk(ch) for ch in text if ch > "\u10ff")
    return dense // 2 + len(text.split())


def cut(text: str, limit: int) -> str:
    """The text up to the last sentence end within `limit` characters, with the reference after it."""
    if len(text) <= limit:
        return text
    head = text[:limit]
    ends = [end for _, end in sentences(head)][:-1]
    end = ends[-1] if ends and ends[-1] > limit // 3 else max(head.rfind(" "), limit // 2)
    after = re.compile(r"\s*[\[【［][^\[\]【】［］]{0,400}[\]】］]").match(text, end)
    return text[: after.end() if after else end].rstrip()
