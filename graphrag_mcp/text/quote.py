"""The sentence picker: which sentences of a text are worth showing, for weighted terms.

Search results, lists, maps, reports and summaries all quote through `quotes`. A sentence counts by
four factors: the share of the terms that it holds by worth, its length, its place in the text, and
whether it says something. None of them knows a site, a language or a kind of document.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache

from graphrag_mcp.text.prose import sentences
from graphrag_mcp.text.terms import holds_cjk, latin_language, terms
from graphrag_mcp.text.tokens import count_tokens

Worth = Mapping[str, float]

# Measured by benchmarks/quotes.py: how often the best sentence of a gold document holds the evidence.
BRIEF = 5  # words of a sentence below which it says nothing; of Chinese, two letters for a word
NOTHING = 0.05  # worth of a heading, a menu, a bare name or a time stamp, beside a statement
LEANS = 0.5  # worth of a fragment and of a question, beside a statement
LED = 0.2  # what the first sentence of a text counts more; the second half of it, and so on
LONG = 60  # words from which a sentence counts less, since it holds more terms by its length alone
SAME = 0.7  # share of common terms from which two sentences say the same
LONGEST = 260  # characters of one quotation

_STOPS, _ASKS = tuple(".!?…。！？｡।॥؟۔"), ("?", "？", "؟")
_CLOSERS = "\"'”’»›)]」』】》〉*_`"  # behind a stop
# Marks of a list or a quotation, not the sign of a number, and no emphasis: "**The fund.** It pays".
_LISTED = re.compile(r"\A(?:(?:[#>•|]|\*(?=\s)|[+\-–—](?!\d))\s*)+")
# The head of a mail, and the sentence below it that `sources/letter.py` writes of the same: Ida Holm wrote to Otto Moe.
_HEAD = re.compile(r"^(From: .+\n(?:(?:To|Cc|Date|Attachments): .*\n)*+)\n(.+ wrote to .+\.)$", re.MULTILINE)
# A speaker at the start of a line, "Ana:", "[Tue 3 May 10:12] Ana:", "**Ana:**": at most three words.
_SPEAKER = re.compile(
    r"(?:\[[^\[\]\n]{1,40}\]\s{0,3})?\*{0,2}[^\s:：*#|>-][^:：\n]{0,39}(?:：|[:：]\*{0,2}\s{1,3})(?=\S)"
)


@dataclass(frozen=True, slots=True)
class Quote:
    """One sentence: its span in the text, its words on one line, and its score.

    `share` is the part of the terms' worth that it holds, 0 to 1. `score` is `share` with the other
    factors; scores of several texts for the same terms can be compared."""

    start: int
    end: int
    text: str
    score: float
    share: float = 0.0


def quotes(
    text: str, worth: Worth, most: int = 1, *, literals: Collection[str] = (), skip: Collection[str] = ()
) -> list[Quote]:
    """The best sentences of a text for weighted terms, best first, none that repeats another.

    `worth`: terms (`text.terms.terms`) with weights. With no term in a sentence its share is 0 and its
    score is small, so that a text always has a quotation. `literals` must be seen: a sentence that
    holds one comes before all others. `skip`: sentences that are not quoted, such as the title.
    """
    order = sorted(scored(text, worth, literals, skip), key=lambda quote: (-quote.score, quote.start))
    return distinct(((quote, set(terms(quote.text))) for quote in order), most)


def scored(text: str, worth: Worth, literals: Collection[str] = (), skip: Collection[str] = ()) -> list[Quote]:
    """All sentences of a text with their scores, in its order, as `quotes` weighs them."""
    left_out = {plain(sentence) for sentence in skip if sentence}
    whole = math.fsum(worth.values()) or 1.0
    folded = [literal.casefold() for literal in literals]
    found: list[Quote] = []
    for start, end, line, sentence_terms, factor in _sentences(text):
        if left_out and plain(text[start:end]) in left_out:
            continue
        share = math.fsum(worth[term] for term in worth.keys() & sentence_terms) / whole
        exact = 0
        if folded:
            sentence = text[start:end].casefold()
            exact = sum(literal in sentence for literal in folded)
        score = (share + 0.01) * factor
        found.append(Quote(start, end, line, round(score + 2 * exact, 9), share))
    return found


@lru_cache(maxsize=1024)  # 15 MB of passages of 400 tokens
def _sentences(text: str) -> list[tuple[int, int, str, frozenset[str], float]]:
    """Of each sentence of a text its span, its words on one line, its terms, and the product of the
    factors that no question changes. Nested topics quote the same texts, and so do searches that
    follow each other."""
    language = latin_language(text)
    repeated = _repeats_head(text)
    return [
        (
            start,
            end,
            one_line(text[start:end]),
            frozenset(terms(text[start:end], language)),
            (NOTHING if start in repeated else says(text[start:end]))
            * length_factor(text[start:end])
            * (1 + LED / (1 + place)),
        )
        for place, (start, end) in enumerate(sentences(text))
    ]


def _repeats_head(text: str) -> range:
    """The characters of the sentence below the head of a mail that has no other words than the head."""
    found = _HEAD.search(text)
    if not found:
        return range(0)
    head, sentence = ({word.strip(".,<>") for word in part.split()} for part in found.groups())
    return range(*found.span(2)) if sentence <= head | {"wrote", "to", "and"} else range(0)


def best(text: str, worth: Worth, *, literals: Collection[str] = (), skip: Collection[str] = ()) -> Quote | None:
    """The best sentence of a text; None for a text without words."""
    return next(iter(quotes(text, worth, 1, literals=literals, skip=skip)), None)


def distinct(found: Iterable[tuple[Quote, Set[str]]], most: int) -> list[Quote]:
    """The first `most` of these quotes with their terms, without those that repeat one before."""
    kept: list[Quote] = []
    seen: list[Set[str]] = []
    for quote, quote_terms in found if most > 0 else ():
        if not repeats(quote_terms, seen):
            kept.append(quote)
            seen.append(quote_terms)
            if len(kept) == most:  # before the terms of the next one are worked out
                break
    return kept


def repeats(quote_terms: Set[str], seen: Iterable[Set[str]]) -> bool:
    """Do these terms say the same as one of the sets before?"""
    size = len(quote_terms)
    for other in seen:
        both, all_ = len(quote_terms & other), size + len(other)
        if both > SAME * (all_ - both):
            return True
    return False


def says_the_same(words: Set[str], other: Set[str]) -> bool:
    """As `repeats`, for two sentences of different texts: they hold the same numbers, too."""
    return repeats(words, [other]) and not any(any(map(str.isdigit, word)) for word in words ^ other)


def weights_of(texts: Sequence[str], rarity: Callable[[list[str]], Worth]) -> dict[str, float]:
    """Weights of the terms of texts that nothing is asked of: rare in the corpus, and coming back in
    the texts. `rarity` gives the worth of terms in the corpus, such as their inverse frequency."""
    counts = Counter(term for text in texts for term in terms(text))
    known = rarity(list(counts))
    return {term: known[term] * math.log1p(n) for term, n in counts.items() if term in known}


# ---- factors ------------------------------------------------------------------------------------


@lru_cache(maxsize=16_384)
def says(sentence: str) -> float:
    """Does a sentence say something: 1 for a statement, less for a fragment, a question or a figure alone
    ("Total: 460,250 euros."), and next to nothing for a heading, a menu, a bare name or a time stamp, which have no
    words in lower case."""
    bare = _LISTED.sub("", sentence.strip()).lstrip("*")
    if "#" in sentence[:1]:
        return NOTHING
    if who := _SPEAKER.match(bare):
        bare = bare[who.end() :]
    words = [word for word in bare.split() if word.isalpha() or any(map(str.isalpha, word))]
    dense = holds_cjk(bare[:40])
    number = sum(map(str.isalpha, bare)) / 2 if dense else len(words)
    end = bare.rstrip(_CLOSERS)
    whole = end.endswith(_STOPS) and not bare[:1].islower()
    figure = number < BRIEF and whole and any(map(str.isdigit, bare))
    lower = any(not word[:1].isupper() for word in words[not figure :])
    if (number < BRIEF and not figure) or not (dense or lower):
        return NOTHING
    if figure:
        return LEANS
    return 1.0 if whole and not end.endswith(_ASKS) else LEANS


def length_factor(sentence: str) -> float:
    """1 for a sentence of up to LONG words, less for a longer one."""
    words = len(sentence) / 2.5 if holds_cjk(sentence[:40]) else sentence.count(" ") + 1
    return min(1.0, math.sqrt(LONG / words))


# ---- what is shown ---------------------------------------------------------------------------------


def one_line(text: str) -> str:
    """The text on one line without the marks of a list or a quotation at its start."""
    return " ".join(_LISTED.sub("", text.strip()).split())


def plain(text: str) -> str:
    return one_line(text).strip("*_` ").casefold()


def speaker(text: str, start: int) -> str:
    """`Ana: ` for a sentence of Ana's turn in a conversation; "" where there are no two turns. A turn goes on
    up to a blank line or the next turn; its first line may hold the name alone."""
    line = text.rfind("\n", 0, start) + 1
    while (who := _SPEAKER.match(text, line)) is None:
        before = text.rfind("\n", 0, max(line - 1, 0)) + 1
        if not text[before:line].strip():
            return ""
        line = before
    return f"{who[0].strip()} " if is_conversation(text) and len(who[0].split()) <= 3 else ""


def is_conversation(text: str) -> bool:
    """Do two lines or more begin with who speaks, and at least every second paragraph? `Rejected: the tunnel`
    in minutes names no speaker."""
    starts = [at for at in range(len(text)) if not at or text[at - 1] == "\n"]
    turns = sum(_SPEAKER.match(text, at) is not None for at in starts)
    return turns > 1 and 2 * turns >= len(re.split(r"\n[ \t]*\n", text.strip()))


def lead(text: str, room: int, title: str = "") -> str:
    """The beginning of a text: as many of its sentences that say something as fit into `room` characters, without a
    heading that only repeats the title; the first one is cut at a word if it does not fit. Chinese, Japanese and
    Korean say as much in half of the characters, and have half of the room."""
    if holds_cjk(text[:40]):
        room //= 2
    telling = [quote.text for quote in scored(text, {}, skip=[title]) if says(quote.text) >= LEANS]
    if not telling:
        return ""
    if len(telling[0]) > room:
        return clipped(telling[0], {}, room - 1)
    found = telling[0]
    for sentence in telling[1:]:
        if len(found) + 1 + len(sentence) > room:
            break
        found += f" {sentence}"
    return found


def with_speaker(text: str, quote: Quote) -> Quote:
    """The quotation with who says it, where the text is a conversation; there a question comes with the
    sentence behind it, which answers it."""
    who = speaker(text, quote.start)
    if not who:
        return quote
    quotation = quote.text if quote.text.startswith(who.strip()) else who + quote.text
    if quotation.rstrip(_CLOSERS).endswith(_ASKS):
        following = (span for span in sentences(text) if span[0] >= quote.end)
        if span := next(following, None):
            quotation = f"{quotation} {one_line(text[slice(*span)])}"
    return replace(quote, text=quotation)


def best_line(text: str, worth: Worth, characters: int = LONGEST, *, literals: Collection[str] = ()) -> str:
    """The best sentence of a text with who says it, cut to so many characters where the terms or literals stand; ""
    for a text without words."""
    found = best(text, worth, literals=literals)
    around = dict.fromkeys(map(str.casefold, literals), 1.0) or worth
    return clipped(with_speaker(text, found).text, around, characters) if found else ""


def clipped(text: str, worth: Worth, characters: int = LONGEST) -> str:
    """At most so many characters of a text, cut at words, where the terms are worth most together."""
    if len(text) <= characters:
        return text
    folded = text.casefold()
    places = sorted(
        (match.start(), term) for term in worth if len(term) > 1 for match in re.finditer(re.escape(term), folded)
    )

    def value(first: int) -> float:
        end = first + characters * 2 // 3
        return math.fsum(worth[term] for term in {t for at, t in places if first <= at < end})

    first = max((at for at, _ in places), key=lambda at: (value(at), -at), default=0)
    start = max(first - characters // 3, 0)
    if start:
        space = text.find(" ", start, start + 30)
        start = space + 1 if space > 0 else start
    end = start + characters
    if end < len(text):
        space = text.rfind(" ", start + characters // 2, end)
        end = space if space > 0 else end
    return ("…" if start else "") + text[start:end].strip() + ("…" if end < len(text) else "")


def excerpt(text: str, worth: Worth, room: int, literals: Collection[str] = ()) -> str:
    """Whole sentences around the best one, at most `room` tokens; the whole text if it fits.

    The excerpt grows by the neighbour with the better score, so that the best sentence stands in it
    whole; a sentence that is longer than the room is cut where the terms stand."""
    if count_tokens(text) <= room:
        return text
    found = scored(text, worth, literals)
    if not found:
        return ""
    first = last = max(range(len(found)), key=lambda at: (found[at].score, -at))
    left = room - count_tokens(text[found[first].start : found[first].end])
    if left < 0:
        return cut(found[first].text, worth, room)
    while True:
        beside = [at for at in (first - 1, last + 1) if 0 <= at < len(found)]
        if not beside:
            break
        at = max(beside, key=lambda at: (found[at].score, at))
        left -= count_tokens(text[found[at].start : found[at].end]) + 1
        if left < 0:
            break
        first, last = min(first, at), max(last, at)
    before, after = "… " if first else "", " …" if last < len(found) - 1 else ""
    return before + text[found[first].start : found[last].end].strip() + after


def cut(text: str, worth: Worth, room: int) -> str:
    """A part of a sentence around its terms, of at most so many tokens."""
    characters = max(room * 4, 8)
    part = clipped(text, worth, characters)
    while count_tokens(part) > max(room, 4) and characters > 8:
        characters = characters * 3 // 4
        part = clipped(text, worth, characters)
    return part


def marks(text: str, words: Collection[str]) -> list[list[int]]:
    """[start, end] of the words of a text that are terms of a question, in any of their forms."""
    found: list[list[int]] = []
    joined = [word for word in words if holds_cjk(word)]
    for match in re.finditer(r"\w+", text):
        if holds_cjk(match[0]):  # no blanks between words
            at = match.start()
            places = (re.finditer(re.escape(word), match[0]) for word in joined)
            found += [[at + place.start(), at + place.end()] for matches in places for place in matches]
        elif not set(terms(match[0])).isdisjoint(words):
            found.append(list(match.span()))
    merged: list[list[int]] = []
    for start, end in sorted(found):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(end, merged[-1][1])
        else:
            merged.append([start, end])
    return merged
