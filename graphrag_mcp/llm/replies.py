"""A model's reply as text: reasoning, fences and end marks removed, delimiters and JSON read,
values cleaned.

Every step is linear in the length of the reply. json_repair 0.64 took over 15 seconds for 22 kB of
bracketed prose, and keeps half a text as if it were whole."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from typing import Any

from graphrag_mcp.text.prose import sentences
from graphrag_mcp.text.terms import is_cjk

DEEPEST = 60  # brackets within brackets
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
    """The largest JSON object or array in the reply; ValueError without one.

    Where the reply ends too early what is complete is kept; the value that it ends in is dropped,
    or with `keep_cut` kept when it is a text."""
    text = without_thoughts(text).strip().removeprefix("\ufeff")
    if re.match(r"[{\[]\s*+\\\"", text):  # escaped once too often
        text = text.replace('\\"', '"').replace("\\n", "\n")
    if text.startswith('"'):
        said, _ = _strict(text, 0)
        if isinstance(said, str) and said.lstrip()[:1] in ("{", "["):
            return read(said, keep_cut=keep_cut)
    found = list(_Json(text, keep_cut=keep_cut).values())
    if not found:
        raise ValueError("no JSON in the reply")
    return _clean(max(found, key=lambda one: one[1])[0])


def json_start(text: str) -> int:
    """Where JSON seems to begin; -1 where nothing looks like it."""
    match = _BEGIN.search(text)
    return match.start() if match else -1


def json_values(text: str) -> tuple[list[Any], bool, int]:
    """The objects and arrays of a reply, whatever stands around and between them; whether all was
    closed; and how many objects had to be mended. An object that the reply ends in is dropped."""
    reader = _Json(text, whole=True)
    return [value for value, _ in reader.values()], reader.closed, reader.mended


def without_thoughts(text: str) -> str:
    """The text without blocks of thinking. A block opens at the start of a line; some chat templates
    write the opening of the first one into the prompt. One that is never closed was cut off."""
    kept: list[str] = []
    at, inside = 0, False
    for tag in _THOUGHT.finditer(text):
        start, end = tag.span()
        if tag[1]:
            beside = {text[max(0, start - 1) : start], text[end : end + 1]}
            alone = not beside.isdisjoint(("", "\n"))
            if inside or (not kept and alone):
                kept, at, inside = kept or [""], end, False
        elif not inside and not text[max(at, start - 200) : start].rpartition("\n")[2].strip():
            kept.append(text[at:start])
            inside = True
    answer = "".join(kept) + ("" if inside else text[at:])
    return answer if answer == text else answer.lstrip()


def _strict(text: str, at: int) -> tuple[Any, int]:
    """The value and where it ends; the end is 0 when it is not JSON to the letter."""
    try:
        return json.JSONDecoder(strict=False, parse_constant=lambda _: None).raw_decode(text, at)
    except (ValueError, RecursionError):
        return None, 0


def storable(text: str) -> str:
    """Halves of characters replaced, as a reply cut inside one has them: nothing can store them."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _clean(value: Any) -> Any:
    """The same for all texts of a JSON value."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, list):
        return [_clean(one) for one in value]
    if isinstance(value, dict):
        return {_clean(key): _clean(one) for key, one in value.items()}
    return value


class _Json:
    """Reads the values of a reply one after the other, never going back further than one quote.
    `keep_cut`: the text that the reply ends in is kept; `whole`: an object that it ends in is not,
    unless it holds others."""

    def __init__(self, text: str, *, keep_cut: bool = False, whole: bool = False) -> None:
        self.text, self.keep_cut, self.whole = text, keep_cut, whole
        self.at, self.mended, self.closed = 0, 0, True

    def values(self) -> Iterator[tuple[Any, int]]:
        """Each object and array, and its length."""
        while begin := _BEGIN.search(self.text, self.at):
            value, end = _strict(self.text, begin.start())
            self.at = end or begin.start()
            if not end:
                value = self.value("", 0)
            if value is not _CUT:
                yield value, self.at - begin.start()

    def value(self, inside: str, depth: int) -> Any:
        if depth > DEEPEST:
            self.at, self.closed = len(self.text), False
            return _CUT
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
            if self.at == len(self.text):
                return _CUT
            return float(number[0]) if re.search("[.eE]", number[0]) else int(number[0])
        bare = _BARE.match(self.text, self.at)
        self.at = bare.end()  # type: ignore[union-attr]
        word = bare[0].strip()  # type: ignore[index]
        return _CUT if self.at == len(self.text) else _WORDS.get(word.casefold(), word)

    def object(self, outside: str, depth: int) -> Any:
        found: dict[str, Any] = {}
        begin = self.at
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
        closed = self.text[self.at - 1] == "}"
        parts = (part for one in found.values() if isinstance(one, list) for part in one)
        holds = any(isinstance(one, dict) for one in found.values())
        holds = holds or any(isinstance(part, dict | list) for part in parts)
        if not closed and (not found or (self.whole and not holds)):
            return _CUT
        self.mended += not holds and not _strict(self.text, begin)[1]
        return found

    def array(self, outside: str, depth: int) -> Any:
        found: list[Any] = []
        self.at += 1
        while self.next("]", "}", outside == "{"):
            begin = self.at
            value = self.value("[", depth + 1)
            if self.at == begin:
                self.at += 1
            elif value is not _CUT:
                found.append(value)
        return found if found or self.text[self.at - 1] == "]" else _CUT

    def next(self, close: str, other: str, other_is_open: bool) -> bool:
        """Is there another element? A wrong bracket ends this one when an outer one may have it."""
        while True:
            self.skip()
            here = self.text[self.at : self.at + 1]
            if not here or here == close or (here == other and other_is_open):
                self.at += here == close
                self.closed &= bool(here)
                return False
            if here not in ",;,，；" and here != other:
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
    """The reply without thoughts, fences, special tokens and end marks; and whether it had one."""
    text = reply[:LONGEST_REPLY].lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    text = without_thoughts(text)
    if "\\n" in text and "\n" not in text.strip() and text.lstrip()[:1] not in ("{", "["):
        text = _LITERAL.sub("\n", text)  # the reply of a model that escapes what no one unescapes
    if "&lt;" in text and text.lstrip()[:1] not in ("{", "["):
        text = unescaped(text)
    text, marks = _MARK.subn("\n", text)
    return _FENCE.sub("", _SPECIAL.sub("\n", text)).strip(), marks > 0


def unescaped(text: str) -> str:
    """HTML entities as characters; only those that end in a semicolon, so that `?a=1&copy=2` stays."""
    return _JSON_ESCAPE.sub(lambda match: html.unescape(match[0]), text) if "&" in text else text


# ---- tuples ---------------------------------------------------------------------------------------

FULL = r"[<＜][ ]?[|｜#\\]{1,5}[ ]?[>＞]"
HALF = rf"{FULL}|[<＜][|｜]{{1,2}}|[|｜]{{1,2}}[>＞]"

# ---- values ---------------------------------------------------------------------------------------

# Control characters, lone halves of surrogate pairs, direction marks and other invisible signs.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
_WORD_OR_SIGN = re.compile(r"[^\W_]|[^\x00-\x7f\u2000-\u206f\u3000-\u303f\uff00-\uff0f\w]")
_PAIRS = tuple("\"\" '' “” ‘’ «» 「」 『』 `` ** ＂＂ „“ <> {} ＜＞".split())


def clean(value: str, longest: int) -> str:
    """One line of at most `longest`, without invisible signs, wrapping quotes and emphasis."""
    text = unescaped(value[: 4 * longest + 400])
    text = " ".join(_INVISIBLE.sub("", text).split())
    for _ in range(6):
        before, inner = text, text[1:-1]
        if len(text) > 1 and (pair := text[0] + text[-1]) in _PAIRS and not set(pair) & set(inner):
            text = inner.strip()
        elif len(text) > 4 and text[:2] == text[-2:] and text[:2] in ("**", '""'):
            text = text[2:-2].strip()
        if text == before:
            break
    return text[:longest].rstrip()


def clean_name(value: str) -> str:
    """A name as it is stored; "" for one without a letter, digit or sign (`C++`, `😀` stay)."""
    name = clean(value, 1000).lstrip("#").strip()
    for sign in '"“”«»*`':
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
        if " " in long and short.isupper() and re.fullmatch("[A-Za-z0-9]{1,10}", short):
            initials = iter(re.sub(r"\B\w|[\W_]", "", long).upper())
            if all(letter in initials for letter in short if letter.isalpha()):
                return long
    gloss = _SAYS_SHORT.sub("", gloss)
    other = _latin(head) != _latin(gloss)
    translated = other and _WORD.search(gloss) and not _NUMERAL.fullmatch(gloss)
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
