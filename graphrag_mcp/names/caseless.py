"""Names in scripts without capitals: Arabic, Persian, Hebrew, Hindi, Thai.

A word of one of the lists (titles, heads, given names, places) tells that a name begins, stands or
ends here: see RULES. Then every other place where it stands is that name. Words without such a sign
are weak names, when they are repeated or the text is a question."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from graphrag_mcp.names import lexicon as lex
from graphrag_mcp.text.terms import folded

Candidate = tuple[int, int, str, bool]
Span = tuple[int, int]
_ARABIC = "\u0620-\u06d3\u06d5\u06fa-\u06ff\u0750-\u077f\u200c\u064b-\u065f\u0670"
_HEBREW = "\u05d0-\u05ea\u0591-\u05c7"
_HINDI = "\u0900-\u0963\u0971-\u097f"
_THAI = "\u0e01-\u0e3a\u0e40-\u0e4e"
_WORD = re.compile(
    f"[{_ARABIC}]+|[{_HEBREW}]+(?:[\"'׳״](?=[\u05d0-\u05ea])[{_HEBREW}]+)*['׳]?|[{_HINDI}]+"
)
_ANY = re.compile(
    f"[{_ARABIC}{_HEBREW}{_HINDI}\u0980-\u0eff\u10a0-\u10ff\u1200-\u137f\u1780-\u17ff]"
)
# Scripts without lists: Bengali, Tamil, Georgian, Amharic, Khmer.
_OTHER = re.compile(
    "[\u0964-\u0970\u0980-\u0dff\u0e80-\u0eff\u10a0-\u10ff\u1200-\u137f\u1780-\u17ff]{3,40}"
)
# Letters that mean and, in, to, the, and are written with the word that follows.
_PROCLITICS = {
    "ar": ("وال", "بال", "لل", "و", "ب", "ل", "ف", "ك"),
    "he": tuple("וב של שב וה מה ו ב ל מ ש ה כ".split()),
}
_LETTERS = {"ar": "وبلفك", "he": "ובלמשהכ"}
_LONGEST = 3  # words of a name


def _script(ch: str) -> str:
    if "א" <= ch <= "ת":
        return "he"
    if "\u0620" <= ch < "\u0700":
        return "ar"
    return "hi" if "\u0900" <= ch < "\u0980" else ""


@dataclass(frozen=True, slots=True)
class _Word:
    """A word, its folded form, and the form without letters that mean and, in, to; `bare_start` is
    where that begins. `next`: a single blank is all before the word that follows."""

    start: int
    end: int
    form: str
    bare: str
    bare_start: int
    script: str
    next: bool


def _words(text: str) -> list[_Word]:
    spans = [match.span() for match in _WORD.finditer(text)]
    found = []
    for (start, end), (following, _) in zip(spans, [*spans[1:], (-1, -1)], strict=False):
        form = text[start:end] if text[start:end] in lex.ON else folded(text[start:end])
        script = _script(text[start])
        bare, at = form, start
        for letters in () if _known(form) else _PROCLITICS.get(script, ()):
            rest = form.removeprefix(letters)
            if rest != form and _known(rest):
                bare, at = rest, start + len(letters)
                break
            if letters in ("بال", "وال") and rest != form and _known("ال" + rest):
                bare, at = "ال" + rest, start + 1
                break
        gap = text[end:following] if following >= 0 else ""
        near = gap == " " or (gap == ". " and bare in lex.CASELESS_TITLES)  # Dr. X
        found.append(_Word(start, end, form, bare, at, script, near))
    return found


def _known(form: str) -> bool:
    lists = (lex.CASELESS_TITLES, lex.CASELESS_HEADS, lex.CASELESS_PLACES, lex.CASELESS_GIVEN)
    return any(form in words for words in lists)


def candidates(text: str, short: bool) -> list[Candidate]:
    """All candidates of these scripts; `short`: take words seen once as well."""
    if not _ANY.search(text):
        return []
    words = _words(text)
    taken = bytearray(len(text))
    strong = _free([*_led(words), *_thai(text)], taken)
    strong += _free(_elsewhere(text, strong), taken)
    loose = [(word.start, word.end) for word in words if word.end - word.start > 2]
    loose = [span for span in loose if taken.find(1, *span) < 0]
    if short:
        loose = list(_joined(text, loose))
    counts = Counter(text[start:end] for start, end in loose)
    weak = [
        (start, end, "other", False)
        for start, end in loose
        if (short or counts[text[start:end]] > 1)
        and folded(text[start:end]) not in lex.CASELESS_COMMON
    ]
    if short:
        pairs = (match for match in _THAI_PAIR.finditer(text) if not _THAI_STOP.search(match[0]))
        weak += _free([(*match.span(), "other", False) for match in pairs], taken)
    for pattern in (_THAI_RUN, _OTHER):
        spans = [one.span() for one in pattern.finditer(text) if taken.find(1, *one.span()) < 0]
        counts = Counter(text[start:end] for start, end in spans)
        often = (span for span in spans if short or counts[text[slice(*span)]] > 1)
        weak += [(*span, "other", False) for span in often]
    return sorted(strong + weak)


def _free(found: list[Candidate], taken: bytearray) -> list[Candidate]:
    """Those that overlap none that was taken before; they are taken now."""
    kept = []
    for one in found:
        start, end = one[:2]
        if taken.find(1, start, end) < 0:
            taken[start:end] = b"\x01" * (end - start)
            kept.append(one)
    return kept


def variants(text: str, spans: list[Span]) -> Iterator[Span]:
    """Other spans that names of a question may have: without a letter that means and, in, to; one
    word of several."""
    for start, end in spans:
        script, blank = _script(text[start]), text.find(" ", start, end)
        if blank < 0 and end - start > 3 and text[start] in _LETTERS.get(script, ""):
            yield start + 1, end
        elif blank > 0 and folded(text[start:blank]) in lex.CASELESS_HEADS:  # the company X, X
            yield blank + 1, end
        elif blank > 0 and "\u0900" <= text[start] < "\u0e80":  # first and last word of a name
            yield start, blank
            yield text.rfind(" ", start, end) + 1, end


def _joined(text: str, loose: list[Span]) -> Iterator[Span]:
    """Uncommon words of a question in Hindi that stand together are one name; others stand alone."""
    begun = ended = -1
    for start, end in loose:
        form = folded(text[start:end])
        uncommon = form not in lex.CASELESS_COMMON and form not in lex.HINDI_HEADS
        hindi = _script(text[start]) == "hi" and uncommon
        if hindi and begun >= 0 and start == ended + 1:
            ended = end
            continue
        if ended >= 0:
            yield begun, ended
            begun = ended = -1
        if hindi:
            begun, ended = start, end
        else:
            yield start, end
    if ended >= 0:
        yield begun, ended


Where = tuple[int, int]  # the first and the last word of a name


def _after(words: list[_Word], at: int, kind: str) -> Where:
    return at + 1, _last(words, at, kind)


def _from(words: list[_Word], at: int, kind: str) -> Where:
    return at, _last(words, at, kind)


def _from_given(words: list[_Word], at: int, kind: str) -> Where:
    return at, _last(words, at, kind, named=1)


def _alone(words: list[_Word], at: int, kind: str) -> Where:
    return at, at


def _before(words: list[_Word], at: int, kind: str) -> Where:
    first = at
    while first and at - first < _LONGEST and words[first - 1].next:
        form = words[first - 1].form
        if form in lex.CASELESS_COMMON or form in lex.CASELESS_TITLES or form in lex.HINDI_HEADS:
            break
        first -= 1
    outside = first == at or words[at].form in lex.HINDI_OUT
    return first, at - 1 if outside else at


# Lists of words with the kind of name that each tells of; where that name stands; how many words it
# has at least; an example. The first rule that gives a name counts.
RULES: tuple[tuple[Mapping[str, str], Callable[[list[_Word], int, str], Where], int, str], ...] = (
    (lex.CASELESS_TITLES, _after, 1, "الدكتورة ليلى الحمصي"),  # without the title
    (lex.CASELESS_HEADS, _from, 2, "جامعة الياسمين"),
    (dict.fromkeys(lex.CASELESS_GIVEN, "person"), _from_given, 2, "أحمد منصور"),
    (dict.fromkeys(lex.CASELESS_PLACES, "location"), _alone, 1, "دمشق"),
    (lex.HINDI_HEADS, _before, 1, "सूरजगढ़ शहर"),
)


def _led(words: list[_Word]) -> Iterator[Candidate]:
    """Names that a word of the lists tells of."""
    ended = 0
    for at, word in enumerate(words):
        for known, where, least, _ in RULES if at >= ended else ():
            if not (kind := known.get(word.bare, "")):
                continue
            first, last = where(words, at, kind)
            if last - first + 1 >= least:
                start = word.bare_start if first == at else words[first].start
                yield start, words[last].end, kind, True
                ended = last + 1
                break
        # Tel Aviv, when nothing leads to it
        prefix = word.form[:1] in "בלמהוש" and word.form[1:] in lex.TWO_WORDS
        if word.next and (prefix or word.form in lex.TWO_WORDS):
            if words[at + 1].form not in lex.CASELESS_COMMON:
                yield word.start + prefix, words[at + 1].end, "location", True


def _last(words: list[_Word], at: int, kind: str, named: int = 0) -> int:
    """Index of the last word of the name that goes on behind `at`, of which `named` words are known;
    `at` where it does not."""
    last = at
    while words[last].next and last - at < _LONGEST:
        before, word = words[last], words[last + 1]
        if word.form in lex.CASELESS_COMMON or word.form in lex.CASELESS_HEADS:
            break
        if named and word.form in lex.CASELESS_TITLES:
            break
        if word.bare_start > word.start and word.bare in lex.CASELESS_PLACES:
            break  # in Haifa
        if word.form[1:] in lex.TWO_WORDS:
            break  # in Tel Aviv
        joined = (
            word.form in lex.JOINING or before.form in lex.JOINING or before.form in lex.TWO_WORDS
        )
        if named < 2:
            joined |= word.form[0] == "ה" != before.form[0]  # חברת ים השקט
            joined |= word.form.startswith("ال") and before.form.startswith("ال")  # المملكة القابضة
        if named >= (2 if kind == "person" else 1) and not joined:
            break
        last += 1
        named += word.form not in lex.JOINING
    return last


def _elsewhere(text: str, names: list[Candidate]) -> list[Candidate]:
    """The other places where these names stand, behind a letter that means and, in, to as well."""
    kinds = {text[start:end]: kind for start, end, kind, _ in names if end - start > 2}
    if not kinds:
        return []
    forms = sorted(kinds, key=lambda form: (-len(form), form))[:60]
    letters = f"{_ARABIC}{_HEBREW}{_HINDI}"
    pattern = re.compile(
        f"(?<![{letters}])[{''.join(_LETTERS.values())}]?({'|'.join(map(re.escape, forms))})(?![{letters}])"
    )
    return [(*match.span(1), kinds[match[1]], True) for match in pattern.finditer(text)]


def _any_of(words: Iterable[str]) -> str:
    return "|".join(map(re.escape, sorted(words, key=lambda word: (-len(word), word))))


_THAI_KIND = {head: kind for kind, heads in lex.THAI_HEADS.items() for head in heads.split()}
_THAI_NAMED = re.compile(
    rf"(?:{_any_of(lex.THAI_TITLES)}) ?(?P<person>[{_THAI}]{{2,40}}(?: [{_THAI}]{{2,30}})?)"  # นายสมชาย ใจดี
    rf"|(?P<head>{_any_of(_THAI_KIND)})[{_THAI}]{{2,50}}"  # จังหวัดเชียงใหม่
    rf"|(?<!์)(?P<place>{_any_of(lex.THAI_PLACES)})"  # ขอนแก่น
)
_THAI_STOP = re.compile(_any_of(lex.THAI_STOPS))
_THAI_PAIR = re.compile(f"(?<![{_THAI}])[{_THAI}]{{2,20}} [{_THAI}]{{2,20}}(?![{_THAI}])")
_THAI_RUN = re.compile(f"[{_THAI}]{{3,40}}")


def _thai(text: str) -> Iterator[Candidate]:
    at = 0
    while match := _THAI_NAMED.search(text, at):
        group = match.lastgroup or ""
        start = match.start("person") if group == "person" else match.start()
        kind = _THAI_KIND.get(match["head"] or "", "location" if group == "place" else group)
        # The name ends before the first word that no name holds; a short given name before a
        # family name may hold one.
        inside = match.end("head") if group == "head" else start
        if group == "person":
            inside = max(start, text.find(" ", start, min(start + 10, match.end())) + 1)
        stop = _THAI_STOP.search(text, inside + 2, match.end())
        end = stop.start() if stop else match.end()
        if end > inside + 1:
            yield start, len(text[:end].rstrip()), kind, True
        at = max(end, start + 1)
