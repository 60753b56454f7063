"""Texts of any size that hold as much as a text can: names without a full stop, in many scripts, joined in many ways.

`make(name, size)` gives the suffix and about `size` bytes of the family `name`; `FAMILIES` are all of them. The same
arguments give the same bytes. Nothing of the product is used.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator

Pieces = Iterator[str]
Family = tuple[str, Callable[[], Pieces]]
SEED = 7

_LATIN = "Al Bor Cas Dem Er Fal Gor Hal Is Jor Kel Lam Mor Nar Os Pel Quin Ras Sol Tor Ul Var Wen Xan Yor Zel".split()
_ENDS = "vin berg ter mond wick dale ford ham low nett son ton vale worth well man rick gard".split()
# Characters that names of these scripts are made of, and a word that may stand between two names.
_SCRIPTS = {
    "chinese": ("王李张刘陈杨黄赵吴周徐孙马朱胡林郭何高罗", "伟芳娜敏静丽强磊军洋勇艳杰娟涛明超霞平刚", "会见了"),
    "japanese": ("佐鈴高田伊渡山中小加吉松井木林清斎", "藤木橋中渡辺本村島田部上口崎野原", "は"),
    "katakana": ("アイウエオカキクケコサシスセソ", "タチツテトナニヌネノハヒフヘホマミムメモ", "・"),
    "korean": ("김이박최정강조윤장임한오서신권황안송류홍", "민서준하은지우현수영진호성빈경동재원희", "는 "),
    "cyrillic": ("АБВГДЕЖЗИКЛМНОПРСТУФХЦЧШЭЮЯ", "авденикорлтумсивоне", " встретил "),
    "greek": ("ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣΤΥΦΧΨΩ", "αβγδεηθικλμνοπρστυ", " και "),
    "armenian": ("ԱԲԳԴԵԶԷԸԹԺԻԼԽԾԿՀՁՂՃՄՅՆ", "աբգդեզէըթժիլխծկհձղ", " և "),
    "arabic": ("محمدعليحسنكريمسالم", "ابتثجحخدذرزسشصضطظعغفقكلمنهوي", " و"),
    "hebrew": ("אבגדהוזחטיכלמנסעפצקרשת", "אבגדהוזחטיכלמנסעפצקרשת", " ו"),
    "devanagari": ("कखगघचछजझटठडढणतथदधनपफबभमयरलवशसह", "ािीुेोकनरलसतम", " और "),
    "thai": ("กขคงจฉชซญฎฐณดตถทธนบปผพฟภมยรลวศสห", "าิีุูเแโใไกนรมต", "และ"),
    "georgian": ("აბგდევზთიკლმნოპჟრსტუფქღყშჩცძწჭხჯჰ", "აბგდევზთიკლმნოპ", " და "),
    "amharic": ("ሀለሐመሠረሰሸቀበተቸኀነኘአከኸወዐዘዠየደጀገጠጨጰጸፀፈፐ", "ሁሉሑሙሡሩሱሹቁቡቱቹኁኑኙኡኩኹውዑዙ", " እና "),
}


def make(name: str, size: int) -> tuple[str, bytes]:
    """About `size` bytes of that family, cut between two pieces, and the suffix of a file that holds them."""
    suffix, pieces = FAMILIES[name]
    parts: list[bytes] = []
    for piece in pieces():
        raw = piece.encode("utf-8")
        size -= len(raw)
        if size < 0:
            break
        parts.append(raw)
    data = b"".join(parts)
    return suffix, data + {b"[": b"]", b"{": b"}"}.get(data[:1], b"") if suffix == "json" else data


def _joined(name: Callable[[int], str], joiner: str) -> Callable[[], Pieces]:
    def pieces() -> Pieces:
        number = 0
        while True:
            yield (joiner if number else "") + name(number)
            number += 1

    return pieces


def _alvin(number: int) -> str:
    """The names of the attack: two words, the first of them never twice."""
    return f"Alvin{number} Borg{number * 7 % 9973}"


def _spoken(number: int) -> str:
    """Names without digits, each hardly ever twice."""
    chance = random.Random(number)
    return " ".join(f"{chance.choice(_LATIN)}{chance.choice(_ENDS)}{chance.choice(_ENDS)}" for _ in range(2))


def _script(script: str) -> Callable[[int], str]:
    first, second, _ = _SCRIPTS[script]

    def name(number: int) -> str:
        chance = random.Random(number)
        return chance.choice(first) + "".join(chance.choice(second) for _ in range(chance.randint(1, 5)))

    return name


def _letters(number: int) -> str:
    """A word of its own for every number, in lower case."""
    word = ""
    number += 26
    while number:
        number, at = divmod(number, 26)
        word += chr(97 + at)
    return word


def _noise() -> Pieces:
    """Any character of any script, blanks now and then."""
    chance = random.Random(SEED)
    while True:
        point = chance.choice((chance.randrange(0x20, 0x250), chance.randrange(0x250, 0xD7FF), 0x20, 0x41, 0x2E))
        yield chr(point)


def _table(number: int) -> str:
    return f"{'' if number else '| a | b | c |' + chr(10) + '|---|---|---|' + chr(10)}| {_alvin(number)} | {_spoken(number)} | {number} |\n"


def _row(number: int) -> str:
    return f"{'' if number else 'id,text' + chr(10)}{number},{_spoken(number)} met {_alvin(number)} and {_alvin(number + 1)}\n"


def _long_row(number: int) -> str:
    return f"{'' if number else 'id,text' + chr(10)}{number},{' met '.join(_alvin(number * 40 + at) for at in range(40))}\n"


def _object(number: int) -> str:
    one = {"id": number, "title": _spoken(number), "text": f"{_alvin(number)} met {_alvin(number + 1)}"}
    return ("," if number else "[") + json.dumps(one)


def _emphasis(number: int) -> str:
    return f"**{_spoken(number)}** _{_alvin(number)}_ [{_spoken(number + 1)}](https://x.example/{number}) "


def _chat(number: int) -> str:
    return f"[{number // 60 % 24:02d}:{number % 60:02d}] {_alvin(number).replace(' ', '')}: I saw {_spoken(number)}\n"


def _defined(number: int) -> str:
    words = _spoken(number).split()
    return f"{words[0]} {words[1]} {words[0]} ({words[0][0]}{words[1][0]}{words[0][0]}{number}) "


def _quote(number: int) -> str:
    return f"“{_spoken(number)}” "


def _page(number: int) -> str:
    return f"<tr><td>{_alvin(number)}<td><b>{_spoken(number)}</b>\n"


def _program(number: int) -> str:
    return f"def {_letters(number)}_{_letters(number * 3)}(a): return {_letters(number).title()}Node.{_letters(number * 7)}(a)\n"


def _prose(number: int) -> str:
    """Ordinary sentences, each with two names."""
    return f"In the spring {_spoken(number)} went to {_spoken(number // 3).split()[0]} and wrote a letter about the harvest. "


def _same(text: str) -> Callable[[], Pieces]:
    def pieces() -> Pieces:
        while True:
            yield text

    return pieces


FAMILIES: dict[str, Family] = {
    **{
        f"latin{mark}": ("txt", _joined(_alvin, joiner))
        for mark, joiner in (
            ("", " met "), ("-and", " and "), ("-comma", ", "), ("-dash", " - "), ("-semicolon", "; "), ("-tab", "\t"),
            ("-bar", "|"), ("-slash", "/"), ("-line", "\n"), ("-blank-line", "\n\n"), ("-none", ""), ("-dot", "."),
            ("-stop", ". "), ("-question", "? "), ("-colon", ": "), ("-bullet", " • "), ("-nul", "\u2028"),
        )
    },
    "latin-spoken": ("txt", _joined(_spoken, " met ")),
    "latin-spoken-comma": ("txt", _joined(_spoken, ", ")),
    "latin-pair": ("txt", _joined(lambda number: f"{_LATIN[number % 26]}{_ENDS[number // 26 % 18]}", " met ")),
    **{script: ("txt", _joined(_script(script), parts[2])) for script, parts in _SCRIPTS.items()},
    **{f"{script}-comma": ("txt", _joined(_script(script), "、" if script in ("chinese", "japanese") else ", "))
       for script in _SCRIPTS},
    **{f"{script}-none": ("txt", _joined(_script(script), "")) for script in _SCRIPTS},
    "same-name": ("txt", _same("Alvin Borg met ")),
    "digits": ("txt", _joined(str, "")),
    "dates": ("txt", _joined(lambda number: f"{number % 28 + 1}.{number % 12 + 1}.{1000 + number % 1000}", " ")),
    "initials": ("txt", _joined(lambda number: f"{chr(65 + number % 26)}. {chr(65 + number // 26 % 26)}. {_spoken(number)}", " ")),
    "lower-words": ("txt", _joined(_letters, " ")),
    "acronyms": ("txt", _joined(lambda number: _letters(number).upper(), " ")),
    "defined": ("txt", _joined(_defined, "")),
    "quoted": ("txt", _joined(_quote, "")),
    "codes": ("txt", _joined(lambda number: f"{_letters(number)}_{_letters(number + 5)}()", " ")),
    "addresses": ("txt", _joined(lambda number: f"https://{_letters(number)}.example/{_letters(number * 11)}", " ")),
    "noise": ("txt", _noise),
    "chat": ("txt", _joined(_chat, "")),
    "prose": ("txt", _joined(_prose, "")),
    "program": ("py", _joined(_program, "")),
    "emphasis": ("md", _joined(_emphasis, "")),
    "table": ("md", _joined(_table, "")),
    "page": ("html", _joined(_page, "")),
    "rows": ("csv", _joined(_row, "")),
    "long-rows": ("csv", _joined(_long_row, "")),
    "objects": ("json", _joined(_object, "")),
}  # fmt: skip
