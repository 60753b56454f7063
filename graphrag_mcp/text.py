"""Plain text as the rest of the house needs it: tokens, sentences, search terms, names, scripts, lines.

Takes strings in any language; gives counts, character spans and keys. Deterministic, linear in the length of
the text, no model, no download. Knows nothing of documents, entities or tables.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from functools import lru_cache
from itertools import chain, pairwise

from Stemmer import Stemmer

# ---- scripts ------------------------------------------------------------------------------------
_HANGUL = "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7fb"
_CJK = (
    "々〆〇\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
    "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31f0-\u31ff\uff66-\uff9f"  # kana, bopomofo
    + _HANGUL
)
_UNSPACED = "\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer: no spaces between words
_CJK_CHAR, _UNSPACED_CHAR, _HANGUL_RUN = (re.compile(p) for p in (f"[{_CJK}]", f"[{_UNSPACED}]", f"[{_HANGUL}]+"))


def is_cjk(ch: str) -> bool:
    """Is this one character Han, kana, bopomofo or Hangul?"""
    return _CJK_CHAR.match(ch) is not None


class Lines:
    """1-based line numbers of character offsets; `at` is a binary search. Ends of lines: \\n, \\r\\n, \\r."""

    def __init__(self, text: str) -> None:
        self._ends = [match.end() for match in re.finditer(r"\r\n|\n|\r", text)]

    def at(self, offset: int) -> int:
        return bisect_right(self._ends, offset) + 1


def _fold_table() -> dict[int, str | None]:
    """Latin and Greek letters without their marks; loose marks and invisible characters go (Indic, kana marks stay)."""
    gone = (*range(0x300, 0x370), *range(0x591, 0x5BE), *range(0x64B, 0x660), 0x640, 0x670, 0xAD, 0x2060, 0xFEFF)
    table: dict[int, str | None] = {code: None for code in (*gone, *range(0x200B, 0x2010))}
    for code in (*range(0xC0, 0x250), *range(0x370, 0x400), *range(0x1E00, 0x2000)):
        base = "".join(ch for ch in unicodedata.normalize("NFKD", chr(code)) if not unicodedata.combining(ch))
        if chr(code).isalpha() and base.isalpha() and base != chr(code):
            table[code] = base
    table.update({ord(a): b for a, b in zip("łøđıħŧð", "lodihtd", strict=True)})
    table.update({ord("æ"): "ae", ord("œ"): "oe", ord("þ"): "th", ord("’"): "'", ord("‘"): "'", ord("ʼ"): "'"})
    return table


_FOLD = _fold_table()


def _folded(text: str) -> str:
    return text.casefold() if text.isascii() else text.casefold().translate(_FOLD)


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
_KEYS = (a + b for a in _LETTERS + "^" for b in _LETTERS + "$")
_PAIR = dict(zip(_KEYS, (int(cost, 36) for cost in _PAIR_ROWS.replace(" ", "")), strict=True))
_TITLE, _MARK = 7, 12  # same fit: a capital first letter, an accent
# First character of a block, cost of each of its characters; in words what was measured on the worst text (names).
_BLOCKS = (
    (0x80, 32), (0x370, 12), (0x400, 16), (0x410, 14), (0x430, 9), (0x450, 16),  # Greek 0.57, Cyrillic 0.53
    (0x530, 10), (0x590, 16), (0x5D0, 10), (0x600, 11), (0x656, 18),  # Armenian 0.42, Hebrew 0.54, Arabic 0.57
    (0x900, 12), (0xA00, 15), (0xA80, 12), (0xB00, 22), (0xB80, 13), (0xD80, 14),  # Hindi 0.58, Punjabi 0.8, Oriya 1.16
    (0xE00, 11), (0xE80, 20), (0xF00, 30), (0x1000, 12), (0x10A0, 10), (0x1100, 32),  # Thai 0.58, Tibetan 1.6
    (0x1780, 14), (0x1800, 32), (0x200D, 12), (0x200E, 32), (0x2010, 16), (0x2027, 32),  # Khmer 0.72; “ ” — …
    (0x2300, 40), (0x2500, 24), (0x2600, 34), (0x26C0, 50), (0x2700, 34), (0x27C0, 48),  # signs: 1 to 3 tokens
    (0x2E80, 40), (0x3001, 18), (0x3003, 32), (0x3005, 18), (0x3012, 32), (0x3041, 16), (0x3100, 32),  # kana 0.86
    (0x3400, 48), (0x4E00, 34), (0xA000, 48), (0xAC00, 17), (0xD7A4, 48), (0xFE00, 12),  # rare Han 2.06, Hangul 0.99
    (0xFE10, 40), (0xFF01, 24), (0xFFF0, 48), (0x10000, 70),
    (0x1F1E6, 36), (0x1F200, 48), (0x1F300, 36), (0x1F3C0, 40), (0x1F3FB, 24), (0x1F400, 40), (0x1F440, 36),  # emoji go
    (0x1F540, 51), (0x1F600, 36), (0x1F6C0, 51), (0x1F900, 36), (0x1F940, 40), (0x1F980, 51), (0x20000, 64),  # by 64
)
_BLOCK_STARTS = [start for start, _ in _BLOCKS]
_COMMON_HAN = 18  # 0.90 in encyclopaedic prose, 1.01 in lists of names
_SLACK = 24  # means are safe on long text; this covers a short one that happens to be all rare words
# Cut as o200k_base cuts, where that is simple: digits by three, capitals apart, a blank belongs to the word after it.
_PIECE = re.compile(
    r"[A-Z]{1,16}(?![a-z])|[A-Z]?[a-z\u00df-\u00f6\u00f8-\u024f\u1e00-\u1eff]{1,24}|'(?:s|t|re|ve|m|ll|d)(?![a-z])"
    r"|[0-9]{1,3}|[!-/:-@\[-`{-~]{1,16}[\r\n]{0,2}|[\r\n]{1,8}|[ \t]{1,64}(?= [0-9])|[ \t]{2,64}|\t"
    r"| (?![!-/:-~\u00c0-\u0dff\u2600-\u27bf\U0001f000-\U0001faff])|[^\x00-\x7f]|[\x00-\x1f\x7f]"
)
_WINDOW = 1 << 20  # characters at a time, so that the list of pieces stays small


class _Costs(dict[str, int]):
    """Cost by piece, worked out once; emptied when full, since random text has no end of pieces."""
    def __missing__(self, piece: str) -> int:
        if len(self) > 100_000:
            self.clear()
        return self.setdefault(piece, _cost(piece))


_COSTS = _Costs()


def _cost(piece: str) -> int:
    first, last = piece[0], piece[-1]
    if not piece.isascii() and len(piece) == 1:
        return _COMMON_HAN if piece in _common_han() else _BLOCKS[bisect_right(_BLOCK_STARTS, ord(piece)) - 1][1]
    if first.isalpha():
        return _word_cost(piece)
    if piece == "_":
        return 10  # mostly one token with the part of an identifier after it
    if "!" <= first <= "~" and not last.isalnum():
        signs = piece.rstrip("\r\n")
        runs = 1 + sum(a != b for a, b in pairwise(signs))  # `-----` is one token, `({[` seldom
        cost = 8 + 8 * min(runs, 4) + 13 * max(0, runs - 4) if runs > 1 or len(signs) < 5 else 24
        return cost + 6 * (len(signs) < len(piece))  # a line end after a sign is mostly one token with it
    return 16


def _word_cost(word: str) -> int:
    pairs = sum(_PAIR.get(a + b, 20) for a, b in pairwise(f"^{_folded(word)}$"))
    if word.isascii() and word.isupper():  # 0.37 a letter in English headings, 0.6 at random
        return max(16, 2 + 5 * len(word) + pairs * 7 // 16) if len(word) > 1 else 16
    marks = 0 if word.isascii() else sum(not ch.isascii() for ch in unicodedata.normalize("NFD", word))
    return max(16, 1 + pairs + _TITLE * word[0].isupper() + _MARK * marks)


@lru_cache(maxsize=1)
def _common_han() -> frozenset[str]:
    """The 3,755 Han characters of level 1 of GB 2312, the ones in daily use."""
    cells = (bytes([row, cell]) for row in range(0xB0, 0xD8) for cell in range(0xA1, 0xFF))
    return frozenset("".join(cell.decode("gb2312", "ignore") for cell in cells))


def count_tokens(text: str) -> int:
    """Tokens of `text`: on documents never under the o200k_base count, and at most 1.5 times it in English, Chinese,
    code and emoji (means of many files; small odd files reach 1.8). Of random cuts of 1 to 2,000 characters from text
    in 100 languages 0.2 % came out under it, mostly by 1. Parts add up to the whole or more (random letters: less 3).
    """
    cost = _COSTS.__getitem__
    total = sum(sum(map(cost, _PIECE.findall(text, at, at + _WINDOW))) for at in range(0, len(text), _WINDOW))
    return -(-(total + min(total, _SLACK)) // 16)


# ---- sentences ----------------------------------------------------------------------------------
_MAX_SENTENCE = 1000
_CLOSERS = "\"'”’»›)\\]}」』）】》〉｝］〕"
# Every alternative succeeds where it starts, so a run of 100k dots or newlines is read once.
_END = re.compile(rf"[.!?…‽]++[{_CLOSERS}]*+(?:\[\d{{1,3}}\])*+|[。！？｡।॥؟۔．][!?…。！？｡]*+[{_CLOSERS}]*+|\n\s*+")
_STRUCTURE = re.compile(
    r"[ \t]*(?:#{1,6}\s|[-*+•‣·]\s|\d{1,3}[.)]\s|\([a-zA-Z\d]{1,2}\)\s|[|>]|```|~~~|([-=*_])\1{2,}[ \t]*(?:\n|\Z))"
)
_NEVER_END, _BEFORE_NUMBER, _MAY_END, _STARTERS = (
    frozenset(words.split())
    for words in (
        "dr mr mrs ms mme prof rev fr hon gen col lt capt cmdr sgt maj gov sen rep pres st mt ft vs cf e.g i.e "
        "ca approx esp resp incl dept ed eds trans bros messrs op cit",
        "no nos nr fig figs eq eqs sec ch chap vol vols pp p art par tab ref refs ver v jan feb mar apr jun jul aug "
        "sep sept oct nov dec",
        "inc ltd co corp llc plc jr sr etc al est ave blvd rd ph.d",
        "the a an he she it they we you i this that these those in on at by for from with when while after before as "
        "if but and so however his her its their our my there here what who why how where then no yes although since",
    )
)
_WORD, _DOTTED = re.compile(r"[^\W\d_]+"), re.compile(r"[^\W\d_](?:\.[^\W\d_])+")


def sentences(text: str) -> list[tuple[int, int]]:
    """Character spans of the sentences, in order, together covering every character that is not blank.

    A blank line, heading, list item or table row ends one, a single newline in a paragraph does not; a sentence over
    1,000 characters is cut at a blank, or anywhere when it has none.
    """
    spans: list[tuple[int, int]] = []
    start = line = 0
    for match in _END.finditer(text):
        at, end = match.span()
        newline = text[at] == "\n"
        ends = _newline_ends(text, line, at, end) if newline else _stop_ends(text, start, at, end)
        line = text.rfind("\n", at, end) + 1 if newline else line
        if ends:
            _append(spans, text, start, end)
            start = end
    _append(spans, text, start, len(text))
    return spans


def _newline_ends(text: str, line: int, at: int, end: int) -> bool:
    """Does the line break at `at:end` end a sentence? `line` is where the line before it starts."""
    if text.count("\n", at, end) > 1 or end == len(text):
        return True
    before = _STRUCTURE.match(text, line, at + 1)
    if before and (before[0].strip()[0] in "#|`~=_" or before[0].endswith("\n")):
        return True  # headings, rows, fences and rules end with their line; a list item may go on in the next
    return _STRUCTURE.match(text, text.rfind("\n", at, end) + 1) is not None


def _stop_ends(text: str, start: int, at: int, end: int) -> bool:
    """Does the punctuation at `at:end` end the sentence that began at `start`?"""
    after = text[end : end + 40]
    if text[at] in "。！？｡।॥؟۔．":
        return text[at] != "．" or not after[:1].isdigit()
    if after and not after[0].isspace():
        return is_cjk(after[0]) and text[at] in "!?"
    after = after.lstrip().lstrip("\"'“‘«([（「")
    if after[:1].islower():
        return False
    if text[at] != "." or text[at + 1 : at + 2] == ".":
        return True
    word = (text[max(start, at - 24) : at].split() or [""])[-1].lstrip("\"'“‘«([（「")
    key = word.casefold()
    if key in _NEVER_END or key in _BEFORE_NUMBER:
        return key in _BEFORE_NUMBER and not after[:1].isdigit()
    if key in _MAY_END or (len(word) == 1 and word.isupper()) or _DOTTED.fullmatch(word):
        following = _WORD.match(after)  # J. R. R. Tolkien and U.S. Army go on; `in the U.S. The army` does not
        return not after or (following is not None and following[0].istitle() and following[0].casefold() in _STARTERS)
    return True


def _append(spans: list[tuple[int, int]], text: str, start: int, end: int) -> None:
    """Add `start:end` without its outer blanks, in pieces of at most _MAX_SENTENCE characters."""
    while start < end:
        if text[start].isspace():
            start += 1
            continue
        stop = end
        if end - start > _MAX_SENTENCE:
            blank = max(text.rfind(ch, start, start + _MAX_SENTENCE + 1) for ch in " \n\t\u3000")
            stop = blank if blank > start else start + _MAX_SENTENCE
        spans.append((start, start + len(text[start:stop].rstrip())))
        start = stop


# ---- search terms -------------------------------------------------------------------------------
_MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0963\u0971-\u0dff"
_LETTER = rf"(?:(?![{_CJK}{_UNSPACED}])[\w{_MARKS}])"
_TERM = re.compile(
    rf"[{_CJK}]+|[{_UNSPACED}]+|[0-9]{{1,3}}(?:,[0-9]{{3}})+(?![\w,])"
    rf"|(?:(?<![\w.])\.(?=[A-Za-z]))?{_LETTER}{{1,128}}(?:[._'\-]{_LETTER}{{1,64}}){{0,8}}(?:\+\+|#(?!\w))?"
    "|[¢£¤¥§©®°±\u20a0-\u20cf\u2100-\u2bff\U0001f000-\U0001faff]"  # currencies, arrows, mathematics, emoji
)
_SPLIT = re.compile(r"[._\-+#]+|'(?=\w{3})")  # l'amour, O'Brien; not don't
_CAMEL = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^A-Za-z0-9]+")
_ENGLISH = Stemmer("english", 0)  # in C: 1 us a word, 160 in pure Python


def _expand(token: str) -> tuple[str, ...]:
    """All terms of one raw token, of a word its whole form first."""
    dense = token[0] > "\u0e00" and (_CJK_CHAR.match(token) or _UNSPACED_CHAR.match(token))
    return _grams(token) if dense else _word_terms(token)


@lru_cache(maxsize=1 << 16)
def _word_terms(token: str) -> tuple[str, ...]:
    plain = token if token.isascii() else token.translate(_FOLD)
    plain = plain.removesuffix("'s").removesuffix("'S").replace(",", "").strip("_'-")
    whole = _folded(plain)
    if not whole:
        return ()
    forms = [whole, whole[:-1]] if re.fullmatch("[A-Z]{2,}s", plain) else [whole]  # PDFs
    pieces = [] if plain.isascii() and plain.isalpha() and plain[1:].islower() else _SPLIT.split(plain)
    parts = [_folded(part) for piece in pieces for part in ([piece] if "'" in piece else _CAMEL.findall(piece))]
    if len(parts) > 1 and all(len(part) == 1 for part in parts):
        forms.append("".join(parts))  # U.S. is found by US
    elif 2 < len(parts) <= 8 and not {".", "-"} & set(whole):
        forms += [a + b for a, b in pairwise(parts)]  # getUserName is found by username
    out: dict[str, None] = {}
    for form in dict.fromkeys(forms + parts if len("".join(parts)) > 1 else forms):
        out[form] = None
        if len(form) > 2 and form.isascii() and form.isalpha():
            out[_ENGLISH.stemWord(form)] = None
    return tuple(out)


def _grams(run: str) -> tuple[str, ...]:
    """Single characters and bigrams of a run without spaces; of Thai and its kin bigrams; of Korean also the word."""
    pairs = list(map("".join, pairwise(run)))
    if _UNSPACED_CHAR.match(run):
        return tuple(pairs) or (run,)
    out = [term for ch, pair in zip(run, pairs, strict=False) for term in (ch, pair)] + [run[-1]]
    return tuple(out + [run]) if len(run) > 2 and _HANGUL_RUN.fullmatch(run) else tuple(out)


def _raw_terms(text: str) -> list[str]:
    return _TERM.findall(unicodedata.normalize("NFKC", text).replace("’", "'"))


def terms(text: str) -> list[str]:
    """Search terms in order, with repeats, stop words kept, no blanks in them: words with case and accents folded, the
    English stem beside the form, identifiers whole and in parts, `c++`, `c#`, `.net`; CJK characters and bigrams.
    """
    return list(chain.from_iterable(map(_word_terms if text.isascii() else _expand, _raw_terms(text))))


_STOP_WORDS = frozenset(
    "a about above after again against all also am an and any are as at be because been before being below between "
    "both but by can could did do does doing don't down during each few for from further had has have having he her "
    "here hers him his how i if in into is it it's its itself just me more most my no nor not now of off on once only "
    "or other our out over own same she should so some such than that the their them then there these they this those "
    "through to too under until up us very was we were what when where which while who whom whose why will with would "
    "you your 的 了 是 在 和 与 及 或 也 都 就 而 着 之 其 这 那 个 吗 呢 吧 啊 被 把 对 于 有 谁 什么 哪些 哪个 怎么 "
    "如何 为什 是否 多少 の は が を に へ と も で や か です ます した する".split()
)


def stop_word(term: str) -> bool:
    """Is this term (as `terms` gives it) a word of grammar?"""
    return term in _STOP_WORDS


def query_terms(text: str) -> list[str]:
    """At most 64 distinct terms worth searching, in order: without stop words when anything else remains, without
    single CJK characters when they stand in bigrams. WHO and IT in capitals within a normal sentence are names.
    """
    found, every = dict[str, None](), dict[str, None]()
    shouted = text.isupper()
    for token in _raw_terms(text):
        expanded = _expand(token)
        every.update(dict.fromkeys(expanded))
        if is_cjk(token[0]):
            expanded = tuple(term for term in expanded if (len(term) > 1 or len(token) == 1) and not stop_word(term))
        elif expanded and stop_word(expanded[0]) and (shouted or len(token) < 2 or not token.isupper()):
            continue
        found.update(dict.fromkeys(expanded))
        if len(found) >= 64:
            break
    return list(found or every)[:64]


# ---- names --------------------------------------------------------------------------------------
_OUTER = " .,;:!?…'\"`´“”‘’«»‹›*_|~^=<>/\\-–—·•，。、；：？！@"
_BRACKETS = dict(zip("([{《〈「『（【〔［｛", ")]}》〉」』）】〕］｝", strict=True))
_INITIALS = re.compile(r"\b[^\W\d_]\.(?: ?[^\W\d_]\.)+|\b[^\W\d_](?:\.[^\W\d_])+(?![\w.])")
_PLAIN, _PLURAL = re.compile(r"(?!(?:the|an?) )[a-z0-9]+(?: [a-z0-9]+)*"), re.compile(r"[a-z]{2,}(?<![aious])(?<!ic)s")
# A single word is folded only where the singular is no surname: not Adams, Gates, Brooks, but neurons and networks.
_LONE_PLURAL = re.compile(r"\w+(?:ions|ments|ists|isms|ities|ogies|works|graphs|ents|ants|odes|tors|rons)|\w{9,}")
_KEEP_S = frozenset(
    "james charles jones williams wales angeles orleans states news series species means headquarters thames hughes "
    "adams evans rogers roberts richards stevens edwards phillips peters matthews andrews sanders daniels simmons "
    "collins perkins hopkins hawkins jenkins wilkins gates jobs brooks wells banks woods parks rivers waters "
    "stones davies hayes reynolds windows mercedes netherlands philippines brussels naples holmes barnes athens".split()
)


@lru_cache(maxsize=1 << 16)
def normalise_name(name: str) -> str:
    """The key of an entity: two spellings with the same key are one name; a key is its own key.

    Case, width, Latin accents, possessives, outer quotes, brackets and articles, dots of abbreviations (`U.S.` is `us`,
    `J. R. R. Tolkien` is `jrr tolkien`) and the plural of the last English word are folded. `c++`, `c#`, `.net` stay
    apart from `c` and `net`. Never empty for a name with a letter or digit.
    """
    key, before = " ".join(_folded(unicodedata.normalize("NFKC", name)).split()), ""
    for _ in range(8):  # wrappings come in layers; nobody writes nine
        if key in ("", before):
            break
        before = key
        if not _PLAIN.fullmatch(key):
            key = re.sub(r"'s?(?= |$)", "", key.replace("’", "'"))
            key = _INITIALS.sub(lambda match: match[0].replace(".", "").replace(" ", ""), key)
            key = re.sub(r"\.(?= |$)", "", _unwrapped(key))
            key = re.sub(r"^(?:(?:the|an?) )+(?=\S)", "", key)
        key = _singular(key)
    return key or before or name.casefold().strip()


def _unwrapped(key: str) -> str:
    """Without outer quotes, punctuation and brackets."""
    dot = "." if re.match(r"\.[a-z]", key) else ""
    key = key.lstrip(_OUTER + "#+").rstrip(_OUTER)
    for opening, closing in _BRACKETS.items():
        if key.startswith(opening) and (key.endswith(closing) or closing not in key):
            return key[1:].removesuffix(closing)
        if key.endswith(closing) and opening not in key:
            return key[:-1]
    return dot + key


def _singular(key: str) -> str:
    """The plural s of the last English word folded, where no other name is likely to be hit by it."""
    head, space, last = key.rpartition(" ")
    if len(last) < 4 or last in _KEEP_S or not _PLURAL.fullmatch(last) or not (space or _LONE_PLURAL.fullmatch(last)):
        return key
    if last.endswith("ies"):
        return head + space + last[:-3] + "y"
    return head + space + last[: -2 if re.search(r"(?:x|ch|sh|ss|zz)es$", last) else -1]
