"""Sentences, search terms, entity keys and lines of plain text.

Takes strings in any language; gives counts, character spans and keys. Deterministic, linear in the
length of the text, no model, no download. Knows nothing of documents, entities or tables."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from graphrag_mcp.text import folding
from graphrag_mcp.text.folding import SIMPLIFY, folded

# ---- scripts ------------------------------------------------------------------------------------
_HANGUL = "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7fb"
_CJK = (
    "々〆〇\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
    # kana, bopomofo
    "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3105-\u312f\u31f0-\u31ff\uff66-\uff9f"
    + _HANGUL
)
# Thai, Lao, Burmese, Khmer: no spaces between words
_UNSPACED = "\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff"
_CJK_CHAR, _UNSPACED_CHAR, _HANGUL_RUN = (
    re.compile(p) for p in (f"[{_CJK}]", f"[{_UNSPACED}]", f"[{_HANGUL}]+")
)


def composed(text: str) -> str:
    """The text with letters written in pieces put together (NFC); nearly always the very text that
    was given."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def is_cjk(ch: str) -> bool:
    """Is this one character Han, kana, bopomofo or Hangul?"""
    return _CJK_CHAR.match(ch) is not None


class Lines:
    """1-based line numbers of character offsets; `at` is a binary search. Ends of lines: \\n,
    \\r\\n, \\r."""

    def __init__(self, text: str) -> None:
        self._ends = [match.end() for match in re.finditer(r"\r\n|\n|\r", text)]

    def at(self, offset: int) -> int:
        return bisect_right(self._ends, offset) + 1


_WORDS = {name: frozenset(words.split()) for name, words in folding.table(__file__).items()}
STOP_WORDS = folding.STOP_WORDS | _WORDS["stop_words"]


# ---- sentences ----------------------------------------------------------------------------------
_MAX_SENTENCE = 1000
_CLOSERS = "\"'”’»›)\\]}」』）】》〉｝］〕"
# Every alternative succeeds where it starts, so a run of 100k dots or newlines is read once.
_END = re.compile(
    rf"[.!?…‽]++[{_CLOSERS}]*+(?:\[\d{{1,3}}\])*+|[。！？｡।॥؟۔．][!?…。！？｡]*+[{_CLOSERS}]*+|\n\s*+"
)
_STRUCTURE = re.compile(
    r"[ \t]*(?:#{1,6}\s|[-*+•‣·]\s|\d{1,3}[.)]\s|\([a-zA-Z\d]{1,2}\)\s|[|>]|```|~~~|([-=*_])\1{2,}[ \t]*(?:\n|\Z))"
)
# who speaks, at the start of a line of a chat or of minutes: `Anna Berg: `, `[14:03] jens: `, `王芳：`
_SPEAKER = re.compile(
    r"[ \t]*(?:\[[^\]\n]{4,30}\] ?)?[*_]{0,2}"
    r"(?:[^\W\d_][\w.'’-]{1,20}(?: [A-Z][\w.'’-]{0,20}){0,2}(?:[*_]{0,2}:|:[*_]{1,2}) |[\u4e00-\u9fff]{2,4}[:：])"
)
# when it was said, at the start of a line: `15/03/2024, 10:12 - Ana`, `Ana Ruiz (25 May 2023):`
_TURN = re.compile(
    r"[ \t]*(?:\[[^\]\n]{0,20}\d[-/.:]\d[^\]\n]{0,30}\]|\d{1,4}[-/.]\d\d?[-/.]\d{1,4}[T,]? ?\(?\d\d?:\d\d"
    r"|[^\W\d_][^\n.!?:—–|(]{1,60}[—–|(] ?(?:[^\W\d_]{3,9}\.? )?\d[^\n():]{3,24}(?:\):\s|(?::\d\d){1,2}[^\n():]{0,9}(?:\):\s|\n)))"
)
# What a number may look like behind `Fig.`: 2, #2, (3), S2, A-12, IV. Not I, which begins sentences.
_NUMBER = re.compile(r"[#№(]*(?:\d|[A-Z]{1,2}-?\d|(?:[IVXLC]{2,7}|[VXL])\b)")
_WORD, _DOTTED = re.compile(r"[^\W\d_]+"), re.compile(r"[^\W\d_](?:\.[^\W\d_])+")


def sentences(text: str) -> list[tuple[int, int]]:
    """Character spans of the sentences, in order, together covering every character that is not
    blank.

    A blank line, heading, list item, table row, speaker or head of a turn ends one, a single newline
    in a paragraph does not; a sentence over 1,000 characters is cut at a blank, or anywhere when it has none."""
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
        # headings, rows, fences and rules end with their line; a list item may go on in the next
        return True
    line = text.rfind("\n", at, end) + 1
    head = _SPEAKER.match(text, line) or _TURN.match(text, line)
    return (head or _STRUCTURE.match(text, line)) is not None


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
    if key in _WORDS["never_end"]:
        return False
    if key in _WORDS["before_number"] and _NUMBER.match(after):
        return False
    if word == "v":  # between two parties: `Roe v. Wade`, not `the letter v. Then`
        return not _is_versus(text[max(start, at - 80) : at - 1], after)
    initial = len(word) == 1 and word.isupper()
    if key in _WORDS["before_number"] and not initial:
        return True
    if word.isdecimal() and len(word) <= 2 and _is_ordinal(text[max(start, at - 80) : at], after):
        return False
    if key in _WORDS["may_end"] or initial or _DOTTED.fullmatch(word):
        # J. R. R. Tolkien and U.S. Army go on; `in the U.S. The army` does not.
        following = _WORD.match(after)
        return not after or (
            following is not None
            and following[0].istitle()
            and following[0].casefold() in _WORDS["starters"]
        )
    return True


def _is_ordinal(before: str, after: str) -> bool:
    """Is the number at the end of `before` a German `3.`, with its month or noun behind it?"""
    following = _WORD.match(after)
    if following is None:
        return False
    words, named = before.casefold().split()[:-1], following[0].casefold()
    dated = named in _WORDS["dated"] or (
        bool(words) and words[-1] in _WORDS["before_ordinal"] and named not in _WORDS["starters_de"]
    )
    return dated and named not in _WORDS["starters"] and _WORDS["in_english"].isdisjoint(words)


def _is_versus(before: str, after: str) -> bool:
    """Does `v.` between these stand for versus? Both parties begin with a capital."""
    party = (before.split() or [""])[-1].lstrip("\"'“‘«([（「")
    following = _WORD.match(after)
    if not party[:1].isupper() or following is None or not following[0][0].isupper():
        return False
    return following[0].casefold() not in _WORDS["starters"] or following[0].casefold() in (
        "the",
        "a",
    )


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
    # currencies, arrows, mathematics, emoji
    "|[¢£¤¥§©®°±\u20a0-\u20cf\u2100-\u2bff\U0001f000-\U0001faff]"
)
_WRAP = re.compile(
    rf"(?<=[{_CJK}])(?<![{_HANGUL}])[ \t]*(?:\r\n|\n|\r)[ \t]*(?=[{_CJK}])(?![{_HANGUL}])"
)
_SPLIT = re.compile(r"[._\-+#]+|'(?=\w{3})")  # l'amour, O'Brien; not don't
_LATIN_WORD = re.compile(r"(?:(?![\u0370-\uffff])[^\W\d_]){3,}")
_CAMEL = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^A-Za-z0-9]+")
_ENGLISH = folding.stemmer("en")


def _expand(token: str, language: str) -> tuple[str, ...]:
    """All terms of one token, of a word its whole form first; with the stems of a language that is
    written in Latin letters."""
    if token[0] > "\u0e00" and (_CJK_CHAR.match(token) or _UNSPACED_CHAR.match(token)):
        found = _grams(token)
    else:
        found = _word_terms(token)
    if not language:
        return found
    more = [folding.stem_in(language, word) for word in _LATIN_WORD.findall(token)]
    return found + tuple(stem for stem in more if stem not in found)


@lru_cache(maxsize=1 << 15)
def _word_terms(token: str) -> tuple[str, ...]:
    plain = folding.unmarked(token).removesuffix("'s").removesuffix("'S")
    plain = plain.replace(",", "").strip("_'-")
    whole = folded(plain)
    if not whole:
        return ()
    forms = [whole, whole[:-1]] if re.fullmatch("[A-Z]{2,}s", plain) else [whole]  # PDFs
    parts = [
        folded(part)
        for piece in _SPLIT.split(plain)
        for part in ([piece] if "'" in piece else _CAMEL.findall(piece))
    ]
    if len(parts) > 1 and all(len(part) == 1 for part in parts):
        forms.append("".join(parts))  # U.S. is found by US
    elif 2 < len(parts) <= 8 and "." not in whole and "-" not in whole:
        forms += [a + b for a, b in pairwise(parts)]  # getUserName is found by username
    if "'" in whole and (bare := folding.without_suffix(whole, True)) != whole:
        forms.append(bare)  # Ankara'da
    out: dict[str, None] = {}
    if token.startswith("__") and token.endswith("__"):
        parts = [*parts, folded(token)]  # __init__ is also another word than init
    for form in dict.fromkeys(forms + parts if len("".join(parts)) > 1 else forms):
        out[form] = None
        if len(form) > 2 and form.isascii() and form.isalpha():
            out[_ENGLISH.stemWord(form)] = None
        elif form[0] > "\u036f" and form[-1] > "\u036f":
            out.update(dict.fromkeys(folding.stems(form)))
    return tuple(out)


def _grams(run: str) -> tuple[str, ...]:
    """Single characters and bigrams of a run without spaces; of Thai and its kin bigrams; of Korean
    also the word. Traditional Chinese is read as simplified."""
    run = run.translate(SIMPLIFY)
    pairs = list(map("".join, pairwise(run)))
    if _UNSPACED_CHAR.match(run):
        return tuple(pairs) or (run,)
    out = [term for ch, pair in zip(run, pairs, strict=False) for term in (ch, pair)] + [run[-1]]
    return tuple(out + [run]) if len(run) > 2 and _HANGUL_RUN.fullmatch(run) else tuple(out)


def unwrapped(text: str) -> str:
    """Chinese and Japanese text without the line breaks that a page's width put into words (PDF,
    mail, manuals)."""
    return text if text.isascii() else _WRAP.sub("", text)


def _tokens(text: str) -> list[str]:
    return _TERM.findall(unwrapped(unicodedata.normalize("NFKC", text).replace("’", "'")))


def terms(text: str) -> list[str]:
    """Search terms in order, with repeats, stop words kept, no blanks in them: words with case and
    accents folded, the stem beside the form, identifiers whole and in parts, `c++`, `c#`, `.net`;
    CJK characters and bigrams, Chinese ones simplified."""
    text = composed(text)
    language = folding.latin_language(text)
    return [term for token in _tokens(text) for term in _expand(token, language)]


def stop_word(term: str) -> bool:
    """Is this term (as `terms` gives it) a word of grammar?"""
    return term in STOP_WORDS


def tells_topic(term: str) -> bool:
    """May this term say what a text is about?"""
    return len(term) > 1 and term not in _WORDS["web"] and term not in STOP_WORDS


def without_grammar(found: Sequence[str]) -> list[str]:
    """Characteristic terms without the words of grammar of a language that several of them are of:
    "und", "der", "das" of German texts; "war" and "die" of English ones stay."""
    dropped: set[str] = set()
    for words in folding.LANGUAGES.values():
        grammar = words.intersection(found)
        dropped |= grammar if len(grammar) >= GRAMMAR else set()
    return [term for term in found if term not in dropped]


GRAMMAR = 4  # words of it among the characteristic terms show a language
# Between words, so that a pair with one of them is hardly ever a word: 她的公司 asks about 公司, not
# about 的公.
_JOINTS, _NO_JOINTS = (
    frozenset("的吗嗎呢をの"),
    frozenset("目的 标的 標的 的确 的確 的士 吗啡 嗎啡 もの".split()),
)
# きのこ, のり, いのち are words; この is none.
_SPELLED = re.compile("の[ぁ-ゖ]|[ぁ-ゖ]の(?<![こそあど]の)")
_POINTING = frozenset("我你您他她它こそあど")


def query_terms(text: str, most: int = 64) -> list[str]:
    """At most `most` distinct terms worth searching, in order: without stop words when anything else
    remains, without single CJK characters when they stand in bigrams within a word, or bigrams of
    two words. WHO and IT in capitals within a normal sentence are names."""
    found, every = dict[str, None](), dict[str, None]()
    text = composed(text)
    shouted = text.isupper()
    language = folding.latin_language(text)
    grammar = folding.LANGUAGES[language] if language else frozenset()
    for token in _tokens(text):
        expanded = _expand(token, language)
        every.update(dict.fromkeys(expanded))
        if is_cjk(token[0]):
            expanded = _searched(expanded)
        elif (
            expanded
            and (stop_word(expanded[0]) or token.lower() in grammar)
            and (shouted or len(token) < 2 or not token.isupper())
        ):
            continue
        found.update(dict.fromkeys(expanded))
        if len(found) >= most:
            break
    return list(found or every)[:most]


def _searched(grams: Sequence[str]) -> tuple[str, ...]:
    """Of the terms of a CJK run those that are no grammar: pairs of one word, and words of one
    character (猫の寿命)."""
    if len(grams) == 1:
        return () if stop_word(grams[0]) else tuple(grams)
    pairs = [term for term in grams if len(term) > 1]
    within = _POINTING.union(*(pair for pair in pairs if not _of_two(pair)))
    said = (
        term
        for pair in pairs
        for term in ((set(pair) - _JOINTS - within) if _of_two(pair) else (pair,))
    )
    return tuple(term for term in dict.fromkeys(said) if not stop_word(term))


def _of_two(pair: str) -> bool:
    """Do these two characters belong to two words?"""
    if len(pair) > 2 or _JOINTS.isdisjoint(pair) or pair in _NO_JOINTS:
        return False
    return not _SPELLED.fullmatch(pair) or any(ch not in _JOINTS and stop_word(ch) for ch in pair)


# ---- names --------------------------------------------------------------------------------------
_OUTER = " .,;:!?…'\"`´“”‘’«»‹›*_|~^=<>/\\-–—·•，。、；：？！@"
_BRACKETS = dict(zip("([{《〈「『（【〔［｛", ")]}》〉」』）】〕］｝", strict=True))
_INITIALS = re.compile(r"\b[^\W\d_]\.(?: ?[^\W\d_]\.)+|\b[^\W\d_](?:\.[^\W\d_])+(?![\w.])")
_PLAIN, _PLURAL = (
    re.compile(r"(?!(?:the|an?) )[a-z0-9]+(?: [a-z0-9]+)*"),
    re.compile(r"[a-z]{2,}(?<![aious])(?<!ic)s"),
)
# A single word is folded only where the singular is no surname: not Adams, Gates, Brooks, but
# neurons and networks.
_LONE_PLURAL = re.compile(
    r"\w+(?:ions|ments|ists|isms|ities|ogies|works|graphs|ents|ants|odes|tors|rons)|\w{9,}"
)


@lru_cache(maxsize=1 << 15)
def normalise_name(name: str) -> str:
    """The key of an entity: two spellings with the same key are one name; a key is its own key.

    Case, width, traditional characters, Latin accents, possessives, outer quotes, brackets and
    articles, dots of abbreviations (`U.S.` is `us`, `J. R. R. Tolkien` is `jrr tolkien`) and the
    plural of the last English word are folded. `c++`, `c#`, `.net` stay apart from `c` and `net`.
    Never empty for a name with a letter or digit."""
    key = " ".join(folded(unicodedata.normalize("NFKC", name)).split())
    before = ""
    for _ in range(8):  # wrappings come in layers; no one writes nine
        if key in ("", before):
            break
        before = key
        if not _PLAIN.fullmatch(key):
            key = re.sub(r"'s?(?= |$)", "", key.replace("’", "'"))
            key = _INITIALS.sub(lambda match: match[0].replace(".", "").replace(" ", ""), key)
            key = re.sub(r"\.(?= |$)", "", _unwrapped(key))
            key = folding.without_cases(re.sub(r"^(?:(?:the|an?) )+(?=\S)", "", key))
        key = _singular(key)
    return key or before or name.casefold().strip()


def _unwrapped(key: str) -> str:
    """Without outer quotes, punctuation and brackets."""
    dot = "." if re.match(r"\.[a-z]", key) else ""
    key = key.lstrip(_OUTER + "#+").rstrip(_OUTER)
    for opening, closing in _BRACKETS.items():
        if key.startswith(opening) and (key.endswith(closing) or closing not in key):
            return key[1:].removesuffix(closing).strip()
        if key.endswith(closing) and opening not in key:
            return key[:-1]
    return dot + key


def _singular(key: str) -> str:
    """The plural s of the last English word folded, where no other name is likely to be hit by it."""
    head, space, last = key.rpartition(" ")
    if (
        len(last) < 4
        or last in _WORDS["keep_s"]
        or not _PLURAL.fullmatch(last)
        or not (space or _LONE_PLURAL.fullmatch(last))
    ):
        return key
    if last.endswith("ies"):
        return head + space + last[:-3] + "y"
    return head + space + last[: -2 if re.search(r"(?:x|ch|sh|ss|zz)es$", last) else -1]


def bracketed(*parts: str) -> str:
    """The parts that are not empty, "(e3, person)"; "" where none is left."""
    said = ", ".join(part for part in parts if part)
    return f"({said})" if said else ""


def counted(count: int, things: str) -> str:
    """`1 text unit`, `26 entities`: `things` are named in the plural, with underscores or without."""
    name = things.replace("_", " ")
    if count == 1:
        name = f"{name[:-3]}y" if name.endswith("ies") else name.removesuffix("s")
    return f"{count:,} {name}"
