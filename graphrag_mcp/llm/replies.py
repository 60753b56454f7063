"""A model's reply as text: reasoning, fences and end marks removed, delimiters and JSON read,
values cleaned.

JSON is read by the standard library. What is broken is asked for once more (`llm/asker.py`)."""

from __future__ import annotations

import html
import json
import re
from typing import Any

from graphrag_mcp.text.terms import is_cjk, sentences

VAIN = 50  # places in a reply at which JSON is looked for without finding any
_THOUGHT = re.compile(r"<(/?)(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
_BEGIN = re.compile(r"\{(?=\s*+[\"}])|\[(?=\s*+(?:[\"{\[\]\-\d]|true|false|null))")
_LAST_COMMA = re.compile(r",(?=\s*+[}\]])")
_SURROGATE = re.compile("[\ud800-\udfff]")
_DECODER = json.JSONDecoder(strict=False, parse_constant=lambda _: None)


def read(text: str) -> Any:
    """The largest JSON object or array in the reply; ValueError without one."""
    found, _ = _values(without_thoughts(text))
    if not found:
        raise ValueError("no JSON in the reply")
    return _clean(max(found, key=lambda one: one[1])[0])


def json_start(text: str) -> int:
    """Where JSON seems to begin; -1 where nothing looks like it."""
    match = _BEGIN.search(text)
    return match.start() if match else -1


def json_values(text: str) -> tuple[list[Any], bool]:
    """The objects and arrays of a reply, whatever stands around and between them, and whether all
    could be read. Of one that is broken, or cut off, those that it holds are."""
    values, closed = _values(text)
    return [value for value, _ in values], closed


def _values(text: str) -> tuple[list[tuple[Any, int]], bool]:
    """Each object and array and its length. Commas before a closing bracket are forgiven."""
    found, closed = _scanned(text)
    if not closed and _LAST_COMMA.search(text):
        found, closed = _scanned(_LAST_COMMA.sub("", text))
    return found, closed


def _scanned(text: str) -> tuple[list[tuple[Any, int]], bool]:
    found: list[tuple[Any, int]] = []
    at = vain = 0
    while vain < VAIN and (begin := _BEGIN.search(text, at)):
        start = begin.start()
        try:
            value, at = _DECODER.raw_decode(text, start)
            found.append((value, at - start))
        except (ValueError, RecursionError):  # broken, or the reply ends in it
            vain, at = vain + 1, start + 1
    return found, not vain


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
            and not text[max(at, tag.start() - 200) : tag.start()].rpartition("\n")[2].strip()
        ):
            kept.append(text[at : tag.start()])
            inside = True
    answer = "".join(kept) + ("" if inside else text[at:])
    return answer if answer == text else answer.lstrip()


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
    # What begins with a letter or digit is not wrapped.
    for _ in range(0 if text[:1].isalnum() else 6):
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
