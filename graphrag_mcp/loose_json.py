"""JSON out of what a model said: fences, thoughts and prose around it, and the usual faults inside it.

Takes a reply; gives the object or array that it holds, as `json.loads` would. Raises ValueError when there is none.
Linear in the length of the reply, 2 MB of the worst take about a second. json_repair 0.64 was tried: it took over 15
seconds for 22 kB of bracketed prose, and keeps half a text as if it were whole. Knows nothing of what the JSON is
about.
"""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["read", "without_thoughts"]

_ATTEMPTS = 64  # places where JSON might begin; more are noise
_DEEPEST = 60
_THOUGHT = re.compile(r"<(/?)(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
_BEGIN = re.compile(r"\{(?=\s*+(?:[\"'“‘}/]|\w{1,60}+\s*+[:：]))|\[(?=\s*+(?:[\"'“‘{\[\]/\-\d]|true|false|null))")
_SKIP = re.compile(r"(?:\s|//[^\n]*|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z))*+")
_NUMBER = re.compile(r"[-+]?\d{1,300}(?:\.\d{1,300})?(?:[eE][-+]?\d{1,4})?(?=\s*+(?:[,，}\]]|//|/\*|\Z|\n))")
_BARE = re.compile(r"[^,，}\]\n]{0,400}")
_BARE_KEY = re.compile(r"[\w$.\- ]{1,60}+(?=\s*+[:：])")
_NO_KEY = re.compile(r"[^\"'“‘,，\n{}\[\]]++|.", re.DOTALL)
_COLON = re.compile(r"\s*+(?:[:：]|=>)")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_SURROGATE = re.compile("[\ud800-\udfff]")
_PLAIN = {"n": "\n", "t": "\t", "r": "\r", "b": "", "f": "", "/": "/", "\\": "\\", '"': '"', "'": "'", "\n": "\n"}
_WORDS = {"true": True, "false": False, "null": None, "none": None, "undefined": None, "nan": None}
# A quote ends its string only where JSON could go on: models leave quotes inside a text unescaped.
_CLOSES = {'"': '"', "'": "'", "“": '”“"', "‘": "’‘'"}
_KEY = r"(?:[\"'“‘][^\"'“”‘’\n]{0,60}[\"'”’]\s*+[:：])"
_AFTER = {
    "key": re.compile(r"\s*+(?:[:：]|=>|\Z)"),
    "{": re.compile(rf"\s*+(?:\Z|[}}\]]|//|/\*|{_KEY}|[,，]\s*+(?:\Z|[}}\]]|//|/\*|{_KEY}|\w{{1,40}}+\s*+[:：]))"),
    "[": re.compile(r"\s*+(?:\Z|[}\]]|//|/\*|[,，]\s*+(?:\Z|[\"'“‘{\[}\]\-\d]|//|/\*|true|false|null))"),
}
_CUT = object()  # stands for a value that the reply ends in


def read(text: str, *, keep_cut: bool = False) -> Any:
    """The largest JSON object or array in the reply.

    Where the reply ends too early what is complete is kept; the value that it ends in is dropped, or with
    `keep_cut` kept when it is a text.
    """
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
    """Thoughts are blocks that open at the start of a line; some servers swallow the opening of the first one."""
    kept: list[str] = []
    at, inside = 0, False
    for match in _THOUGHT.finditer(text):
        if match[1]:
            before, after = text[max(0, match.start() - 1) : match.start()], text[match.end() : match.end() + 1]
            alone = before in ("", "\n") or after in ("", "\n")
            if inside or (not kept and alone):
                kept, at, inside = kept or [""], match.end(), False
        elif not inside and not text[max(0, match.start() - 200) : match.start()].rpartition("\n")[2].strip():
            kept.append(text[at : match.start()])
            inside = True
    return "".join(kept) + ("" if inside else text[at:])  # never closed: cut off while thinking


def _nothing() -> Any:
    raise ValueError("no JSON in the reply")


def _strict(text: str, at: int) -> tuple[Any, int, int]:
    """The value and where it ends; the end is 0 when it is not JSON to the letter."""
    try:
        return *json.JSONDecoder(strict=False, parse_constant=lambda _: None).raw_decode(text, at), 0
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
    return {_clean(key): _clean(one) for key, one in value.items()} if isinstance(value, dict) else value


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
            return _CUT if self.at == len(self.text) else float(said) if re.search("[.eE]", said) else int(said)
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
        """Is there another element? A bracket of the wrong kind ends this one when an outer one may have it."""
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
