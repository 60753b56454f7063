"""Plain text as the rest of the house needs it: tokens, sentences, search terms, names, scripts, lines.

Takes strings in any language; gives counts, character spans and keys. Deterministic, linear in the length of
the text, no model, no download. Knows nothing of documents, entities or tables.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import pairwise

# ---- scripts ------------------------------------------------------------------------------------

_HAN = "々〆〇\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_KANA = "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31f0-\u31ff\uff66-\uff9f"
_HANGUL = "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7fb"
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer: no spaces between words
_CJK = _HAN + _KANA + _HANGUL
_CJK_CHAR = re.compile(f"[{_CJK}]")


def is_cjk(ch: str) -> bool:
    """Is this one character Han, kana, bopomofo or Hangul?"""
    return _CJK_CHAR.match(ch) is not None


class Lines:
    """1-based line numbers of character offsets; `at` is a binary search. Ends of lines: \\n, \\r\\n, \\r."""

    def __init__(self, text: str) -> None:
        self._ends = [match.end() for match in re.finditer(r"\r\n|\n|\r", text)]

    def at(self, offset: int) -> int:
        return bisect_right(self._ends, offset) + 1


# ---- tokens -------------------------------------------------------------------------------------

# Costs are in sixteenths of a token. Rows: a letter (last row: start of the word); columns: the letter after it (last
# column: end of the word); base 36. A fit of o200k_base counts on running text in 100 languages that asked for a mean
# of 1.2 in each and at most 1.36 in English and code. Pairs that English hardly uses cost most, which is what tells a
# common word from a rare name; fitted with a third of the languages held out, the least mean on those was 1.08.
_PAIR_ROWS = (
    "e025re0g98931558847066711bh 5ej53eer80g1a73mj3643igbb9h 183v0rmc1u00c62de2c02kpib39 288527bm1ng2133ki4362585ca2 "
    "060040b8a9d611950215b270c99 0eao11eo0ni0e80fk0k00hkl6jc 7c6g0c310nc04989k04449kl802 00ep08fj0e947015j0a20bjkij1 "
    "4116710ih3c742026881f0j8e6l 6pge7ghzgekmhf39he3h0djklil 25052c4a13c9d37ka8534g6kac8 488215d906810545f81118d60c8 "
    "46b70f7q3ei63981jf3g4jrmeh9 5f035733438b1834jf0132mbg9a 5301b05ea2950010d063030072d 5f8f3nd07es10a40i0008ki60sb "
    "ghjitimi9mj5hiiifa0f0ieljkk 3715171i3d6710417612687m087 7r190aj51kg9695126005h0j837 5b0h27l00qg70c31x2524d0k0za "
    "320a258k37a00201d220ijm665m 3ndl0i0n0eg8ce4hj6dfajkkdkd 0k8108q00hjdj009h00lcg7jgj2 0g0g66qo2kif0i60ji209hs3r5a "
    "805iaiggccf73a02l9037h0mg50 2a7b1lbzdlo530aakam41cdia5d 23075675348816416212541d092 "
)
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_PAIR = {
    a + b: int(cost, 36)
    for a, row in zip(_LETTERS + "^", _PAIR_ROWS.split(), strict=True)
    for b, cost in zip(_LETTERS + "$", row, strict=True)
}
_TITLE, _MARK = 7, 12  # same fit: a capital first letter, an accent
# Blocks by first character, up to the next row: cost of one character. Measured tokens per letter beside it, worst text.
_BLOCKS = (
    (0x80, 32),  # controls, Latin-1 signs, single accented letters: at most 2
    (0x370, 12),  # Greek 0.57 on names
    (0x400, 16), (0x410, 9), (0x450, 16),  # Cyrillic 0.53, letters that Russian lacks 0.9
    (0x530, 10), (0x590, 16), (0x5D0, 10), (0x600, 11), (0x656, 18),  # Armenian 0.42, Hebrew 0.54, Arabic 0.57, others 1
    (0x900, 12), (0xA00, 15), (0xA80, 12), (0xB00, 22), (0xB80, 13), (0xD80, 14),  # Hindi 0.58 ... Oriya 1.16 ... Sinhala 0.7
    (0xE00, 11), (0xE80, 20), (0xF00, 30), (0x1000, 12), (0x10A0, 10), (0x1100, 32),  # Thai 0.58, Tibetan 1.6, Georgian 0.52
    (0x1780, 14), (0x1800, 32), (0x1E00, 32), (0x1F00, 32), (0x2000, 32), (0x200D, 12), (0x200E, 32),
    (0x2010, 16), (0x2027, 32), (0x2190, 32), (0x2300, 40), (0x2500, 24), (0x2600, 32), (0x27C0, 48),
    (0x2E80, 40), (0x3001, 18), (0x3003, 32), (0x3005, 18), (0x3012, 32), (0x3041, 16), (0x3100, 32),  # kana 0.86 on names
    (0x3400, 48), (0x4E00, 34), (0xA000, 48), (0xAC00, 17), (0xD7A4, 48), (0xF900, 48), (0xFE00, 12), (0xFE10, 40), (0xFF01, 24),
    (0xFFF0, 48), (0x10000, 70), (0x1F1E6, 36), (0x1F200, 48), (0x1F300, 46), (0x1F3FB, 24), (0x1F400, 46), (0x1F600, 36), (0x1F650, 54), (0x1F900, 46), (0x1FA00, 54), (0x20000, 64),
)
_BLOCK_STARTS = [start for start, _ in _BLOCKS]
_COMMON_HAN = 18  # of GB 2312 level 1: 0.90 on encyclopaedic prose, 1.01 on lists of names
_PIECE = re.compile(
    r"[A-Z]{1,16}(?![a-z])|[A-Z]?[a-z\u00df-\u00f6\u00f8-\u024f\u1e00-\u1eff]{1,24}|'(?:s|t|re|ve|m|ll|d)(?![a-z])"
    r"|[0-9]{1,3}|[!-/:-@\[-`{-~]{1,16}[\r\n]{0,2}|[\r\n]{1,8}"
    r"|[ \t]{1,64}(?= [0-9])|[ \t]{2,64}|\t| (?![!-/:-~\u00c0-\u0dff\u2600-\u27bf\U0001f000-\U0001faff])|[^\x00-\x7f]|[\x00-\x1f\x7f]"
)


class _Costs(dict[str, int]):
    """Cost by piece, worked out once; emptied when full, since random text has no end of pieces."""

    def __missing__(self, piece: str) -> int:
        if len(self) > 100_000:
            self.clear()
        cost = self[piece] = _cost(piece)
        return cost


def _cost(piece: str) -> int:
    first = piece[0]
    if not piece.isascii() and len(piece) == 1:
        if first in _common_han():
            return _COMMON_HAN
        return _BLOCKS[bisect_right(_BLOCK_STARTS, ord(first)) - 1][1]
    if piece.isascii() and piece.isalpha() and piece.isupper():
        pairs = sum(_PAIR[a + b] for a, b in pairwise("^" + piece.lower() + "$"))
        return max(16, 2 + 5 * len(piece) + pairs * 7 // 16) if len(piece) > 1 else 16  # 0.37 a letter, at random 0.6
    if first.isalpha():
        return _word_cost(piece)
    if piece == "_":
        return 10  # mostly one token with the part of an identifier after it
    if "!" <= first <= "~" and not piece[-1].isalnum():
        signs = piece.rstrip("\r\n")
        runs = 1 + sum(a != b for a, b in pairwise(signs))
        cost = 8 + 8 * min(runs, 4) + 13 * max(0, runs - 4) if runs > 1 or len(signs) < 5 else 24
        return cost + 6 * (len(signs) < len(piece))  # line ends after a sign are mostly one token with it
    return 16


def _word_cost(word: str) -> int:
    marks = 0
    base = word.lower()
    if not word.isascii():
        base = _folded(word)
        marks = sum(not ch.isascii() for ch in unicodedata.normalize("NFD", word))
    pairs = sum(_PAIR.get(a + b, 20) for a, b in pairwise("^" + base + "$"))
    return max(16, 1 + pairs + _TITLE * word[0].isupper() + _MARK * marks)


@lru_cache(maxsize=1)
def _common_han() -> frozenset[str]:
    """The 3,755 Han characters of level 1 of GB 2312, the ones in daily use."""
    cells = (bytes([row, cell]) for row in range(0xB0, 0xD8) for cell in range(0xA1, 0xFF))
    return frozenset("".join(cell.decode("gb2312", "ignore") for cell in cells))


_COSTS = _Costs()
_WINDOW = 1 << 20
_SLACK = 24  # the mean is safe on long text; this covers a short one that happens to be all rare words


def count_tokens(text: str) -> int:
    """Tokens of `text`: never under the o200k_base count on natural text, at most 1.5 times it on English,
    Chinese, code and emoji. Counts add up: the sum over the parts of a text is never under the whole.
    """
    cost = _COSTS
    total = 0
    for start in range(0, len(text), _WINDOW):  # so that the list of pieces stays small
        total += sum(map(cost.__getitem__, _PIECE.findall(text, start, start + _WINDOW)))
    return -(-(total + min(total, _SLACK)) // 16)


# ---- sentences ----------------------------------------------------------------------------------

_MAX_SENTENCE = 1000
_CLOSERS = "\"'”’»›)\\]}」』）】》〉｝］〕"
# Every alternative succeeds where it starts, so a run of 100k dots or newlines is read once.
_END = re.compile(rf"[.!?…‽؟۔।॥]++[{_CLOSERS}]*+|[。！？｡．]++[.!?…。！？｡]*+[{_CLOSERS}]*+|\n\s*+")
_STRUCTURE = re.compile(r"[ \t]*(?:#{1,6}\s|[-*+•‣·]\s|\d{1,3}[.)]\s|\(?[a-zA-Z\d]{1,2}\)\s|\||>|```|~~~|[-=*_]{3,}\s*$)")
_NEVER_END = frozenset(
    "dr mr mrs ms mme prof rev fr hon gen col lt capt cmdr sgt maj gov sen rep pres st mt ft vs cf viz e.g i.e eg ie "
    "ca approx esp resp incl al dept ed eds trans bros messrs mss op cit ibid".split()
)
_BEFORE_NUMBER = frozenset("no nos nr fig figs eq eqs sec ch chap vol vols pp p art par para tab ref refs ver v jan feb mar apr "
                           "jun jul aug sep sept oct nov dec".split())
_MAY_END = frozenset("inc ltd co corp llc plc jr sr etc u.s u.k u.n u.s.a a.m p.m b.c a.d d.c ph.d m.d b.a m.a est ave blvd rd".split())
_STARTERS = frozenset(
    "the a an he she it they we you i this that these those in on at by for from with when while after before as if "
    "but and so however his her its their our my there here what who why how where then no yes although since during".split()
)
_WORD = re.compile(r"[^\W_]+")


def sentences(text: str) -> list[tuple[int, int]]:
    """Character spans of the sentences, in order, together covering every character that is not blank."""
    spans: list[tuple[int, int]] = []
    start = line = 0
    for match in _END.finditer(text):
        at, end = match.span()
        if text[at] == "\n":
            if not _newline_ends(text, line, at, end):
                line = end
                continue
            line = end
        elif not _stop_ends(text, start, at, end):
            continue
        _append(spans, text, start, end)
        start = end
    _append(spans, text, start, len(text))
    return spans


def _newline_ends(text: str, line: int, at: int, end: int) -> bool:
    """Does the line break at `at:end` end a sentence: a blank line, or a heading, item or row beside it?"""
    if text.count("\n", at, end) > 1 or end == len(text):
        return True
    bol = text.rfind("\n", at, end) + 1
    previous = _STRUCTURE.match(text, line)
    if previous and previous[0].strip()[:1] in ("#", "|", "`", "~", "="):
        return True
    return _STRUCTURE.match(text, bol, bol + 80) is not None


def _stop_ends(text: str, start: int, at: int, end: int) -> bool:
    """Does the punctuation at `at:end` end a sentence?"""
    if text[at] in "。！？｡．।॥؟۔":
        return True
    if end < len(text) and not text[end].isspace():
        return is_cjk(text[end]) and text[at] in "!?…"
    window = text[end : end + 40].lstrip()
    following = window.lstrip("\"'“‘«(「『（[")
    if following[:1].islower():
        return False
    if text[at:end] != ".":
        return True
    before = text[max(start, at - 24) : at].split()
    word = before[-1].lstrip("\"'“‘«([{（") if before else ""
    key = word.casefold()
    if key in _NEVER_END:
        return False
    next_word = _WORD.match(following)
    starter = next_word is not None and next_word[0].casefold() in _STARTERS and next_word[0][0].isupper()
    if key in _BEFORE_NUMBER:
        return not following[:1].isdigit()
    if key in _MAY_END or (len(word) == 1 and word.isalpha() and word.isupper()) or re.fullmatch(r"(?:\w\.)+\w", word):
        return starter or not following
    return True


def _append(spans: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    """Add `start:end` without its outer blanks, cut into pieces of at most _MAX_SENTENCE characters."""
    while start < end:
        piece = text[start : min(end, start + _MAX_SENTENCE + 1)]
        start += len(piece) - len(piece.lstrip())
        piece = piece.strip() if start + len(piece) >= end else piece.lstrip()
        if end - start <= _MAX_SENTENCE:
            tail = len(text[start:end].rstrip())
            if tail:
                spans.append((start, start + tail))
            return
        cut = max(piece.rfind(" "), piece.rfind("\n"), piece.rfind("\t"))
        cut = cut if cut > 0 else min(len(piece), _MAX_SENTENCE)
        if piece[:cut].strip():
            spans.append((start, start + len(piece[:cut].rstrip())))
        start += cut


# ---- search terms -------------------------------------------------------------------------------

_JOIN = r"[._'\-/:@&]"
_TERM = re.compile(
    rf"[{_CJK}]+|[{_UNSPACED}]+"
    r"|(?:(?<![\w.])\.(?=[A-Za-z]))?"
    rf"(?:(?![{_CJK}{_UNSPACED}])\w){{1,128}}(?:[._'\-](?:(?![{_CJK}{_UNSPACED}])\w){{1,64}}){{0,8}}(?:\+\+|#(?!\w))?"
    r"|[\u00a2-\u00bf\u20a0-\u2bff\U0001f000-\U0001faff]"
)
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\dA-Za-z_]+")
_SPLIT = re.compile(r"[._'\-+#]+")
_LATIN = re.compile(r"[a-z]{3,}")


def _fold_table() -> dict[int, str | None]:
    """Latin and Greek letters without their marks; marks alone go away (kana and Indic marks stay)."""
    table: dict[int, str | None] = {code: None for code in range(0x300, 0x370)}
    for code in (*range(0xC0, 0x250), *range(0x370, 0x400), *range(0x1E00, 0x2000)):
        base = "".join(ch for ch in unicodedata.normalize("NFKD", chr(code)) if not unicodedata.combining(ch))
        if base != chr(code):
            table[code] = base
    table.update({ord(a): b for a, b in zip("łøđıħŧæœðþ’‘ʼ", ["l", "o", "d", "i", "h", "t", "ae", "oe", "d", "th", "'", "'", "'"], strict=True)})
    table.update({code: None for code in (0xAD, 0x200B, 0x200C, 0x200D, 0x200E, 0x200F, 0x2060, 0xFEFF)})
    return table


_FOLD = _fold_table()


def _folded(text: str) -> str:
    return text.casefold() if text.isascii() else text.casefold().translate(_FOLD)


@lru_cache(maxsize=1)
def _stemmer() -> Callable[[str], str]:
    from Stemmer import Stemmer  # Snowball in C: the same stems as the pure Python one, 150 times as fast

    return Stemmer("english", 0).stemWord


def _with_stem(form: str) -> Iterable[str]:
    yield form
    if _LATIN.fullmatch(form):
        stem = _stemmer()(form)
        if stem != form:
            yield stem


@lru_cache(maxsize=100_000)
def _expand(token: str) -> tuple[str, ...]:
    """All terms of one raw token, its whole form first."""
    if _CJK_CHAR.match(token) or "\u0e00" <= token[0] <= "\u17ff" and not token[0].isdigit() and re.match(f"[{_UNSPACED}]", token):
        return _grams(_folded(token))
    plain = token.translate(_FOLD) if not token.isascii() else token
    if plain.endswith("'s") or plain.endswith("'S"):
        plain = plain[:-2]
    whole = plain.casefold().strip("_'-")
    if not whole:
        return ()
    out = dict.fromkeys(_with_stem(whole))
    parts = [part for piece in _SPLIT.split(plain.replace("_", ".")) for part in _CAMEL.findall(piece)]
    parts = [part.casefold() for part in parts]
    if len(parts) > 1:
        if all(len(part) == 1 for part in parts):
            out["".join(parts)] = None
        if 2 < len(parts) <= 8 and "." not in whole and "-" not in whole:
            out.update(dict.fromkeys(a + b for a, b in zip(parts, parts[1:], strict=False)))
        for part in parts:
            out.update(dict.fromkeys(_with_stem(part)))
    elif parts and len(parts[0]) > 1:
        out.update(dict.fromkeys(_with_stem(parts[0])))
    return tuple(out)


def _grams(run: str) -> tuple[str, ...]:
    if re.match(f"[{_UNSPACED}]", run):
        return tuple(run[i : i + 2] for i in range(max(1, len(run) - 1)))
    out: list[str] = []
    for i, ch in enumerate(run):
        out.append(ch)
        if i + 1 < len(run):
            out.append(run[i : i + 2])
    if len(run) > 2 and re.fullmatch(f"[{_HANGUL}]+", run):
        out.append(run)
    return tuple(out)


def terms(text: str) -> list[str]:
    """Search terms in order, with repeats; see INDEX rules in the tests. No term holds whitespace."""
    out: list[str] = []
    expand, extend = _expand, out.extend
    for token in _TERM.findall(unicodedata.normalize("NFKC", text).replace("’", "'")):
        extend(expand(token))
    return out


_STOP_WORDS = frozenset(
    "a about above after again against all also am an and any are as at be because been before being below between both "
    "but by can could did do does doing down during each few for from further had has have having he her here hers him "
    "his how i if in into is it its itself just me more most my no nor not now of off on once only or other our out over "
    "own same she should so some such than that the their them then there these they this those through to too under "
    "until up very was we were what when where which while who whom whose why will with would you your 's t s "
    "的 了 是 在 和 与 及 或 也 都 就 而 着 之 其 这 那 个 吗 呢 吧 啊 被 把 对 于 有 什么 哪些 哪个 怎么 如何 为什么 是否 多少 "
    "の は が を に へ と も で や か です ます した する".split()
)


def stop_word(term: str) -> bool:
    """Is this term (as `terms` gives it) a word of grammar rather than of content?"""
    return term in _STOP_WORDS


def query_terms(text: str) -> list[str]:
    """At most 64 distinct terms worth searching, in order."""
    found: dict[str, None] = {}
    every: dict[str, None] = {}
    for token in _TERM.findall(unicodedata.normalize("NFKC", text).replace("’", "'")):
        expanded = _expand(token)
        if is_cjk(token[0]) and len(token) > 1:
            expanded = tuple(term for term in expanded if len(term) > 1)
        every.update(dict.fromkeys(expanded))
        if expanded and (is_cjk(token[0]) or not stop_word(expanded[0])):
            found.update(dict.fromkeys(term for term in expanded if not stop_word(term)))
        if len(found) >= 64:
            break
    return list(found or every)[:64]


# ---- names --------------------------------------------------------------------------------------

_OUTER = " \t\n\r\f\v.,;:!?…'\"`´“”‘’«»‹›*_|~^=<>/\\-–—·•，。、；：？！@"
_PAIRS = dict(zip("([{《〈「『（【〔［｛", ")]}》〉」』）】〕］｝", strict=True))
_KEEP_S = frozenset(
    "james charles jones williams wales angeles orleans states news series species means headquarters thames hughes "
    "adams evans rogers roberts richards stevens edwards phillips peters matthews andrews sanders walters daniels "
    "simmons collins perkins watkins hopkins hawkins jenkins wilkins atkins gates jobs brooks wells banks woods parks "
    "rivers waters stones davies hayes reynolds harris morris francis dennis windows mercedes netherlands philippines "
    "athens brussels naples cannes holmes barnes moses ulysses hermes archimedes socrates ramses mars venus".split()
)
_LONE_PLURAL = re.compile(r".{2,}(?:ions|ments|ists|isms|ities|ogies|works|graphs|ents|ants|odes|tors)|.{9,}")


def normalise_name(name: str) -> str:
    """The key under which two spellings of one name are the same entity."""
    text = unicodedata.normalize("NFKC", name)
    key = " ".join(_folded(text).replace("’", "'").split())
    key = _unwrapped(key)
    key = re.sub(r"'s\b", "", key)
    key = re.sub(r"\b(?:[a-z]\. ?){2,}", lambda m: m[0].replace(".", "").replace(" ", "") + (" " if m[0][-1] == " " else ""), key + ".")
    key = re.sub(r"\.(?= |$)", "", key)
    key = _unwrapped(re.sub(r"^(?:the|an?) (?=\S)", "", key))
    key = _singular(key)
    return key or text.casefold().strip()


def _unwrapped(key: str) -> str:
    """Without outer quotes, punctuation and brackets; `c++`, `c#` and `.net` keep what tells them apart."""
    before = None
    while key and key != before:
        before = key
        dotted = key[0] == "." and key[1:2].isalpha()
        key = ("." if dotted else "") + key.lstrip(_OUTER + "#+").rstrip(_OUTER)
        if key and key[0] in _PAIRS and (key[-1] == _PAIRS[key[0]] or _PAIRS[key[0]] not in key):
            key = key[1:-1] if key[-1] == _PAIRS[key[0]] else key[1:]
        elif key and key[-1] in _PAIRS.values() and not any(o in key for o, c in _PAIRS.items() if c == key[-1]):
            key = key[:-1]
    return key


def _singular(key: str) -> str:
    """The plural s of the last English word folded, where no other name is likely to be hit by it."""
    head, space, last = key.rpartition(" ")
    if len(last) < 4 or not re.fullmatch(r"[a-z]*[^aiousc'\W\d]s|[a-z]+[a-z]cs", last) or last in _KEEP_S or last.endswith("ics"):
        return key
    if not space and not _LONE_PLURAL.fullmatch(last):
        return key
    if last.endswith("ies"):
        last = last[:-3] + "y"
    elif re.search(r"(?:x|ch|sh|ss|zz)es$", last):
        last = last[:-2]
    else:
        last = last[:-1]
    return head + space + last
