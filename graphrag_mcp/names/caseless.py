"""Names in scripts without capitals: Arabic, Persian, Hebrew, Hindi, Thai; by the words that stand
before or after.

A name is what follows a title or a head (in Hindi also what a head follows), begins with a given
name, or is a known place; then every other place where it stands. Words without such a sign are
weak, when they are repeated or the text is a question."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from graphrag_mcp.names.lexicon import (
    CASELESS_COMMON,
    CASELESS_GIVEN,
    CASELESS_HEADS,
    CASELESS_PLACES,
    CASELESS_TITLES,
    HINDI_BORN,
    HINDI_HEADS,
    HINDI_OUT,
    JOINING,
    ON,
    THAI_HEADS,
    THAI_KIN,
    THAI_PLACES,
    THAI_STOPS,
    THAI_TITLES,
    TWO_WORDS,
    VERBS,
)
from graphrag_mcp.text.folding import folded

Candidate = tuple[int, int, str, bool]
_ARABIC = "\u0620-\u06d3\u06d5\u06fa-\u06ff\u0750-\u077f\u200c\u064b-\u065f\u0670"
_HEBREW = "\u05d0-\u05ea\u0591-\u05c7"
_HINDI = "\u0900-\u0963\u0971-\u097f"
_SPACED = re.compile(
    f"[{_ARABIC}]+|[{_HEBREW}]+(?:[\"'׳״](?=[\u05d0-\u05ea])[{_HEBREW}]+)*['׳]?|[{_HINDI}]+"
)
_ANY = re.compile(f"[{_ARABIC}{_HEBREW}{_HINDI}\u0e00-\u0eff]")
_OTHER = re.compile(
    "[\u0964-\u0970\u0980-\u0dff\u0e80-\u0eff\u10a0-\u10ff\u1200-\u137f\u1780-\u17ff]{3,40}"
)
# after a name: with the, and the
_ARABIC_GLUED = re.compile(r"(?:بال|وال|كال|فال|لل)\w{2}|[وفبكل]ال\w{3}")
# إغلاق, زيارة, تعيين, folded: what someone did
_DEED = re.compile(r"ا\w{2,4}ا\w|\w{2,}[هة]|ت\w{2}ي\w")
_PROCLITICS = {
    "ar": ("وال", "بال", "لل", "و", "ب", "ل", "ف", "ك"),
    "he": tuple("וב של שב וה מה ו ב ל מ ש ה כ".split()),
}
_NO_NAME = CASELESS_COMMON | HINDI_HEADS.keys()
_WORDS = 3  # of a name, most

_THAI = "\u0e01-\u0e3a\u0e40-\u0e4e"
_THAI_KIND = {head: kind for kind, heads in THAI_HEADS.items() for head in heads.split()}
_THAI_NAMED = re.compile(
    rf"(?P<person>{'|'.join(map(re.escape, THAI_TITLES))}) ?"
    rf"(?P<first>[{_THAI}]{{2,40}})(?: (?P<second>[{_THAI}]{{2,30}}))?"
    rf"|(?P<head>{'|'.join(sorted(_THAI_KIND, key=lambda head: (-len(head), head)))})(?P<rest>[{_THAI}]{{2,50}})"
    rf"|(?<!์)(?P<place>{'|'.join(sorted(THAI_PLACES, key=lambda place: (-len(place), place)))})"
)
_THAI_STOP = re.compile("|".join(sorted(THAI_STOPS, key=lambda word: (-len(word), word))))
_THAI_PAIR = re.compile(f"(?<![{_THAI}])[{_THAI}]{{2,20}} [{_THAI}]{{2,20}}(?![{_THAI}])")
_THAI_RUN = re.compile(f"[{_THAI}]{{3,40}}")


class _Word:
    """One word with its folded form, and the form without a letter that means and, in, to."""

    __slots__ = ("bare", "end", "form", "kept", "start")

    def __init__(self, text: str, start: int, end: int) -> None:
        self.start, self.end = start, end
        self.form = text[start:end] if text[start:end] in ON else folded(text[start:end])
        self.bare, self.kept = self.form, start
        script = "he" if "א" <= text[start] <= "ת" else "ar" if text[start] < "\u0900" else ""
        if script and not _known(self.form):
            for letters in _PROCLITICS[script]:
                rest = self.form.removeprefix(letters)
                if not text.startswith(letters, start):
                    continue
                if rest != self.form and len(rest) > 1 and _known(rest):
                    self.bare, self.kept = rest, start + len(letters)
                    break
                if letters in ("بال", "وال") and _known("ال" + rest):
                    self.bare, self.kept = "ال" + rest, start + 1
                    break


def _known(form: str) -> bool:
    return (
        form in CASELESS_TITLES
        or form in CASELESS_HEADS
        or form in CASELESS_PLACES
        or form in CASELESS_GIVEN
    )


def candidates(text: str, short: bool) -> list[Candidate]:
    """All candidates of these scripts; `short`: take words seen once as well."""
    if not _ANY.search(text):
        return _repeated(_OTHER, text, bytearray(len(text)), short) if _OTHER.search(text) else []
    words = [word for match in _SPACED.finditer(text) if (word := _Word(text, *match.span())).form]
    found = _led(text, words) + list(_thai(text))
    taken = bytearray(len(text))
    kept = []
    for start, end, kind, strong in found:
        if taken.find(1, start, end) < 0:
            taken[start:end] = b"\x01" * (end - start)
            kept.append((start, end, kind, strong))
    again = _elsewhere(text, kept, taken)
    for start, end, _, _ in again:
        taken[start:end] = b"\x01" * (end - start)
    loose = [
        (w.start, w.end) for w in words if w.end - w.start > 2 and taken.find(1, w.start, w.end) < 0
    ]
    if short:
        loose = list(_joined(text, loose))
    counts = Counter(text[start:end] for start, end in loose)
    weak = [
        (a, b, "other", False)
        for a, b in loose
        if (short or counts[text[a:b]] > 1) and folded(text[a:b]) not in CASELESS_COMMON
    ]
    if short:
        pairs = (
            (m.start(), m.end()) for m in _THAI_PAIR.finditer(text) if not _THAI_STOP.search(m[0])
        )
        weak += [
            (start, end, "other", False) for start, end in pairs if taken.find(1, start, end) < 0
        ]
        for start, end, _, _ in weak:
            taken[start:end] = b"\x01" * (end - start)
    weak += _repeated(_THAI_RUN, text, taken, short) + _repeated(_OTHER, text, taken, short)
    return sorted(kept + again + weak)


def variants(text: str, spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Other spans that names of a question may have: without a letter that means and, in, to; one
    word of several."""
    for start, end in spans:
        letters = (
            "ובלמשהכ"
            if "א" <= text[start] <= "ת"
            else "وبلفك"
            if "\u0620" <= text[start] < "\u0700"
            else ""
        )
        blank = text.find(" ", start, end)
        if letters and text[start] in letters and blank < 0 and end - start > 3:
            yield start + 1, end
        elif blank > 0 and folded(text[start:blank]) in CASELESS_HEADS:  # the company X, X
            yield blank + 1, end
        elif blank > 0 and "\u0900" <= text[start] < "\u0e80":  # first and last word of a name
            yield start, blank
            yield text.rfind(" ", start, end) + 1, end


def _joined(text: str, loose: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Uncommon words of a question in Hindi that stand together are one name; others stand alone."""
    begun = ended = -1
    for start, end in loose:
        hindi = "\u0900" <= text[start] < "\u0980" and folded(text[start:end]) not in _NO_NAME
        if begun >= 0 and hindi and start == ended + 1 and text[ended] == " ":
            ended = end
            continue
        if begun >= 0:
            yield begun, ended
        begun, ended = (start, end) if hindi else (-1, -1)
        if not hindi:
            yield start, end
    if begun >= 0:
        yield begun, ended


# ---- words with blanks between them -------------------------------------------------------------


def _led(text: str, words: list[_Word]) -> list[Candidate]:
    """Names by the word that leads or follows them."""
    pairs = Counter(
        (a.form, b.form)
        for a, b in zip(words, words[1:], strict=False)
        if text[a.end : b.start] == " "
    )
    found: list[Candidate] = []
    index = 0
    while index < len(words):
        word = words[index]
        last, kind = index, ""
        if word.bare in CASELESS_TITLES:
            kind, first = CASELESS_TITLES[word.bare], index + 1
            last = _run(text, words, first, pairs, kind)
            start = words[first].start if last > index else 0
        elif word.bare in CASELESS_HEADS and (
            word.kept == word.start or text[word.kept - 1] not in "הل"
        ):
            kind = CASELESS_HEADS[word.bare]
            last = _run(text, words, index + 1, pairs, kind)
            start = word.kept
        elif word.bare in CASELESS_GIVEN and _begins(text, words, index):
            kind = "person"
            last = _run(text, words, index, pairs, kind)
            start = word.kept if last > index else 0
        elif word.form in VERBS and (said := _doer(text, words, index, pairs)):
            first, last, kind, start = index, said[1], "person", words[said[0]].start
            if last < index:  # before the verb
                found.append((start, words[last].end, kind, True))
                last = index
                start = 0
        if last > index:
            found.append((start, words[last].end, kind, True))
            index = last + 1
            continue
        if word.bare in CASELESS_PLACES:
            found.append((word.kept, word.end, "location", True))
        elif "\u0900" <= word.form[0] < "\u0980" and (before := _hindi(text, words, index, pairs)):
            found.append(before)
        index += 1
    for at in range(len(words) - 1):  # Tel Aviv, when nothing leads to it
        one, two = words[at], words[at + 1]
        if text[one.end : two.start] == " " and _two(one.form, two.form):
            shift = 1 if one.form not in TWO_WORDS else 0
            found.append((one.start + shift, two.end, "location", True))
    return found


def _begins(text: str, words: list[_Word], index: int) -> bool:
    """Does a person's name begin with this given name? In Hindi the word before it may be the first
    of it."""
    word = words[index]
    if index + 1 == len(words) or text[word.end : words[index + 1].start] != " ":
        return False
    before = words[index - 1] if index and "\u0900" <= word.form[0] < "\u0980" else None
    return (
        before is None
        or text[before.end : word.start] != " "
        or before.form in _NO_NAME
        or before.form in CASELESS_TITLES
    )


def _doer(
    text: str, words: list[_Word], index: int, pairs: Counter[tuple[str, str]]
) -> tuple[int, int] | None:
    """First and last word of who is said to have done something: after the verb in Arabic, before
    it in Hebrew."""
    if words[index].form[0] > "\u05ff":
        first = index + 1
        # his son X took over
        first += first < len(words) and CASELESS_TITLES.get(words[first].form) == "person"
        last = _run(text, words, first, pairs, "person")
        plain = first < len(words) and not words[first].form.startswith("ال")
        return (first, last) if last > first and plain else None
    first = index
    while (
        first > 0 and index - first < 4 and text[words[first - 1].end : words[first].start] == " "
    ):
        first -= 1
    opens = (
        first == 0
        or text[words[first].start - 2 : words[first].start - 1] in (".", "\n", "")
        or first == index
    )
    plain = all(
        word.form not in CASELESS_COMMON and word.form not in CASELESS_HEADS and word.form[0] != "ה"
        for word in words[first:index]
    )
    return (first, index - 1) if opens and plain and 1 < index - first < 4 else None


def _two(one: str, two: str) -> bool:
    first = one if one in TWO_WORDS else one[1:] if one[:1] in "בלמהוש" else ""
    return first in TWO_WORDS and len(two) > 1 and two not in CASELESS_COMMON


def _run(
    text: str, words: list[_Word], first: int, pairs: Counter[tuple[str, str]], kind: str
) -> int:
    """Index of the last word of the name that begins at `first`; first - 1 when none does."""
    last = first - 1
    named = 0
    while last + 1 < len(words) and last - first < _WORDS:
        word, before = words[last + 1], words[last] if last >= 0 else None
        gap = text[before.end : word.start] if before else " "
        if (
            gap not in (" ", ". ")
            or (gap == ". " and last >= first)
            or word.form in CASELESS_COMMON
            or word.form in CASELESS_HEADS
        ):
            break
        if word.kept > word.start and word.bare in CASELESS_PLACES:
            break
        if (
            last >= first
            and word.form in CASELESS_TITLES
            or (last < first and word.form[1:] in TWO_WORDS)
        ):
            break
        if named and not _goes_on(words[last], word, pairs, kind, named):
            break
        if named and _ARABIC_GLUED.match(text, word.start):
            break
        last += 1
        named += word.form not in JOINING
    return last


def _goes_on(
    before: _Word, word: _Word, pairs: Counter[tuple[str, str]], kind: str, named: int
) -> bool:
    """Does a name that has this word already have the next one too?"""
    if before.form in JOINING or word.form in JOINING or pairs[before.form, word.form] > 1:
        return True
    if kind == "person":
        goes = before.form in CASELESS_GIVEN and (
            word.form in CASELESS_GIVEN or not _DEED.fullmatch(word.form)
        )
        return named < 2 or (named == 2 and goes)
    if "א" <= word.form[0] <= "ת":
        return before.form in TWO_WORDS or (
            named < 2 and word.form[0] == "ה" and before.form[0] != "ה"
        )
    return named < 2 and word.form.startswith("ال") and before.form.startswith("ال")


def _hindi(
    text: str, words: list[_Word], index: int, pairs: Counter[tuple[str, str]]
) -> Candidate | None:
    """What a head, or the particle of who did something, follows."""
    word = words[index]
    born = (
        word.form in ("का", "की") and index + 1 < len(words) and words[index + 1].form in HINDI_BORN
    )
    kind = HINDI_HEADS.get(word.form, "person" if word.form == "ने" or born else "")
    first = index
    while (
        kind
        and first > 0
        and index - first < 3
        and text[words[first - 1].end : words[first].start] == " "
    ):
        before = words[first - 1]
        if (
            before.form in CASELESS_COMMON
            or before.form in CASELESS_TITLES
            or before.form in HINDI_HEADS
        ):
            break
        far = kind != "organization" or index - first > 1
        if first < index and kind != "person" and far and pairs[before.form, words[first].form] < 2:
            break
        first -= 1
    if first == index or (word.form == "ने" and index - first < 2):
        return None
    out = word.form in HINDI_OUT or word.form == "ने" or born
    return words[first].start, words[index - 1 if out else index].end, kind, True


def _elsewhere(text: str, kept: list[Candidate], taken: bytearray) -> list[Candidate]:
    """The other places where these names stand, after a letter that means and, in, to as well."""
    kinds = {
        text[start:end]: kind for start, end, kind, strong in kept if strong and end - start > 2
    }
    if not kinds:
        return []
    forms = sorted(kinds, key=lambda form: (-len(form), form))[:60]
    pattern = re.compile(
        f"(?<![{_HINDI}])(?:{'|'.join(map(re.escape, forms))})(?![{_ARABIC}{_HEBREW}{_HINDI}])"
    )
    found = []
    for match in pattern.finditer(text):
        start, end = match.span()
        glued = start and re.match(f"[{_ARABIC}{_HEBREW}]", text[start - 1])
        if taken.find(1, start, end) >= 0 or (glued and not _after_letter(text, start)):
            continue
        taken[start:end] = b"\x01" * (end - start)
        found.append((start, end, kinds[match[0]], True))
    return found


def _after_letter(text: str, start: int) -> bool:
    """Does one such letter, and before it no other, stand before this offset?"""
    before = text[start - 1]
    first = start < 2 or not re.match(f"[{_ARABIC}{_HEBREW}]", text[start - 2])
    return first and before in "وبلفكובלמשהכ"


def _repeated(
    pattern: re.Pattern[str], text: str, taken: bytearray, short: bool
) -> list[Candidate]:
    spans = [match.span() for match in pattern.finditer(text) if taken.find(1, *match.span()) < 0]
    counts = Counter(text[start:end] for start, end in spans)
    return [
        (start, end, "other", False) for start, end in spans if short or counts[text[start:end]] > 1
    ]


# ---- Thai: blanks stand between phrases ---------------------------------------------------------


def _thai(text: str) -> Iterator[Candidate]:
    at = 0
    while match := _THAI_NAMED.search(text, at):
        start, end, kind = match.start(), match.end(), "location"
        if match["head"]:
            kind, first = _THAI_KIND[match["head"]], match.start("rest")
            end = _cut(text, first, match.end("rest"))
        elif match["person"]:
            kind, start = "person", match.start("first")
            first, whole = match.span("first")
            if text.startswith(THAI_KIN, first):
                at = first
                continue
            # with a family name after it a short name is whole, also with a word in it: บุญมี
            # วงศ์ไทย
            end = whole if match["second"] and whole - first < 10 else _cut(text, first, whole)
            if end == whole and match["second"]:
                end = _cut(text, match.start("second"), match.end("second"))
                end = end if end > match.start("second") + 1 else whole
        else:
            first = start
        if end > first + 1:
            yield start, end, kind, True
        at = max(end, first)


def _cut(text: str, start: int, end: int) -> int:
    """Where the name ends that begins here: before the first word that no name holds."""
    stop = _THAI_STOP.search(text, start + 2, end)
    if _THAI_STOP.match(text, start, end) and not stop:
        opening = _THAI_STOP.match(text, start, end)
        return start if opening and opening.end() - start > 3 else end
    return stop.start() if stop else end
