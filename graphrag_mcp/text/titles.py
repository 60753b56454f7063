"""A title for texts: a phrase of the names and words that set them apart, in the spelling of the
sentences."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

from graphrag_mcp.text.terms import is_cjk, stop_word, table, tells_topic, terms

PARTS = 3  # of a title
_LEAST = 0.05  # worth of a part beside the best one
RARE = 0.2  # of the weight of a name's best term, below which another one makes the name rare
_HEADING = 90  # characters of the title of a document
_PIECE = re.compile(r"(?:(?! [-–—|] |[|｜：]|: ).){1,400}")
_MARKS = " -–—|:："
_READ = 120  # sentences that are looked through for the forms of words
_LONG = 40  # characters of a name
_WORD = re.compile(r"[^\W\d_][\w'’&-]*[^\W_]|[^\W\d_]")
_TITLED = re.compile(
    r"(?:mr|mrs|ms|miss|mx|dr|prof|professor|herr|frau|señora?)\.? ", re.IGNORECASE
)
# chunk_size, a/b, maxTokens
_CODE = re.compile(
    r"[_$=<>/\\{}()\[\]|]|\.\w+$|^-|[^\W\d_][A-Z]\w*[a-z]$|^[a-z]+-\w+-|\W$|[a-z][A-WYZ]$"
)
_PAST = re.compile(r"^[a-z]{2,}[^e]ed$")
_WORDS = {name: frozenset(words.split()) for name, words in table(__file__).items()}
_TELLING = 0.2  # worth of a title beside the best one
_LEADING = 0.5  # weight of a term that tells of the topic alone
_SAID = 0.4  # of a document that holds a form in its text, beside one with it in its heading
_AGAIN = 0.15  # of what a form covers that another one covers too
_SHARE = 1 / 3  # of the documents that hold a part of their title
_SEVERAL = 4  # documents, from which on a part is not what only one of them holds
_NAME, _NOUN, _OTHER = 1.0, 0.45, 0.01  # worth of kinds of parts


@lru_cache(maxsize=4096)  # 65,536 hold 110 MB more and save a twentieth of the CPU of reports
def terms_of(text: str) -> frozenset[str]:
    """The search terms of a text, each once."""
    return frozenset(terms(text))


@lru_cache(maxsize=1 << 15)
def _terms_in(word: str) -> tuple[str, ...]:
    """The search terms of a word; none for Chinese and Japanese. Texts repeat their words: looking
    them up again took half the time of a report."""
    return () if any(map(is_cjk, word)) else tuple(terms(word))


class Spread:
    """Which documents of a topic hold a form: in their heading, by name, or in their text. `told`:
    the characteristic terms of each document."""

    def __init__(
        self,
        headings: Sequence[str],
        told: Sequence[Collection[str]],
        names: Mapping[str, Collection[int]],
    ) -> None:
        self.headings = headings
        self.names = names
        self._headed: dict[str, set[int]] = defaultdict(set)
        self._told: dict[str, set[int]] = defaultdict(set)
        for held, texts in ((self._headed, map(terms_of, headings)), (self._told, told)):
            for place, found in enumerate(texts):
                for term in found:
                    held[term].add(place)

    def of(self, form: str) -> dict[int, float]:
        """The documents that hold all of the form, with how much that says."""
        keys = sorted(_stems(form))
        headed = set.intersection(*(self._headed[key] for key in keys)) if keys else set()
        if form in self.names:
            held = dict.fromkeys(self.names[form], _SAID)
        else:
            known = [self._told[key] for key in keys if key in self._told]
            part = _SAID / (2 if len(known) < len(keys) or len(keys) == 1 else 1)
            held = dict.fromkeys(set.intersection(*known) if known else (), part)
        return held | dict.fromkeys(headed, 1.0)


@lru_cache(maxsize=1 << 14)
def _stems(form: str) -> frozenset[str]:
    """Of a word its stem alone: a heading may have another form of it."""
    if any(map(is_cjk, form)):
        return frozenset(term for term in terms(form) if len(term) > 1) or terms_of(form)
    return frozenset(found[-1] for word in _WORD.findall(form) if (found := _terms_in(word)))


def phrase(weights: Mapping[str, float], *read: Sequence[str], **more: Any) -> str:
    """Up to three characteristic names and nouns as they are written, from what `parts` reads; ""
    where no term is known."""
    return joined(sorted(parts(weights, *read, **more), key=str.islower))


def parts(
    weights: Mapping[str, float],
    names: Sequence[str],
    sentences: Sequence[str],
    most: int = PARTS,
    known: str = "",
    nouns: Mapping[str, int] | None = None,
    spread: Spread | None = None,
    whole: Collection[str] = (),
) -> list[str]:
    """The most characteristic names and nouns as they are written, best first; none whose words
    stand in what is `known`. `nouns`: those of a script without blanks, with how often they stand.
    `spread`: each part is to add documents to those that hold one before. `whole`: names that may be
    no parts themselves, and of which no word is one."""
    every = {*names, *whole, *(spread.names if spread else ())}
    worth = _words(weights, names, sentences[:_READ], spread, every)
    for noun, count in (nouns or {}).items():
        found = [weights.get(term, 0.0) for term in terms_of(noun) if len(term) > 1]
        if count > 1 and found and noun not in _WORDS["general"]:
            worth[noun] = sum(sorted(found)) / len(found) * (1 + 0.1 * math.log(count))
    for place, name in enumerate(names if spread else names[:30]):
        name = _TITLED.sub("", name, count=1)
        found = [weights.get(term, 0.0) for term in terms_of(name)]
        if found and _plain(name):
            # a rare name of common words is no subject: "Financial Economists Roundtable"
            rare = name.count(" ") > 1 and min(found) < RARE * max(found)
            whole = len(found) * min(found) if rare else sum(sorted(found))
            share = whole / math.sqrt(len(found))
            worth[name] = max(worth.get(name, 0.0), share * (1.3 - 0.02 * min(place, 15)))
    ends = Counter(name[-2:] for name in names[:30] if is_cjk(name[-1:]) and len(name) > 2)
    for end, count in ends.items():  # 铁路 of 广茂铁路, 河茂铁路
        if count > 2 and end in weights:
            worth[end] = max(worth.get(end, 0.0), 1.5 * weights[end])
    return _chosen(
        worth, most, {key for word in _WORD.findall(known) for key in _keys(word)}, spread
    )


def _chosen(
    worth: Mapping[str, float], most: int, used: set[str], spread: Spread | None
) -> list[str]:
    """The best forms that share no word, each with what it adds to those before it."""
    forms = {form: round(value, 9) for form, value in worth.items() if value}
    held = {form: spread.of(form) if spread else {} for form in forms}
    if spread and len(spread.headings) >= _SEVERAL and any(len(one) > 1 for one in held.values()):
        forms = {form: value for form, value in forms.items() if len(held[form]) > 1}
    total = len(spread.headings) if spread else 1
    chosen: list[str] = []
    covered: dict[int, float] = {}
    best = 0.0

    def gain(form: str) -> float:
        if spread is None:
            return forms[form]
        new = math.fsum(
            max(value - covered.get(d, 0.0), _AGAIN * value) for d, value in held[form].items()
        )
        common = min(1.0, len(held[form]) / (_SHARE * total))
        return round(forms[form] * common * math.sqrt(new / total), 9)

    while forms and len(chosen) < most:
        form = min(forms, key=lambda form: (-gain(form), form))
        value = gain(form)
        best = best or value
        if value < _LEAST * best or not value:
            break  # a verb or an adjective beside a name: two parts are better
        del forms[form]
        mine = _keys(form)
        if not _shared(mine, used):
            chosen.append(form)
            used |= mine
            for d, strength in held[form].items():
                covered[d] = max(strength, covered.get(d, 0.0))
    return chosen


def heading(weights: Mapping[str, float], title: str) -> str:
    """The title of the one document that a topic is about, without pieces at its ends that say
    nothing of the topic: the name of a site or a series; "" where fewer than two words do."""
    pieces = list(_PIECE.finditer(" ".join(title.split())))
    worth = [len(weights.keys() & _stems(piece[0])) for piece in pieces]
    telling = [at for at, value in enumerate(worth) if value]
    if sum(worth) < 2 or not telling:
        return ""
    first, last = telling[0], telling[-1]
    while last > first and pieces[last].end() - pieces[first].start() > _HEADING:
        last -= 1
    said = pieces[0].string[pieces[first].start() : pieces[last].end()].strip(_MARKS)
    if len(said) > _HEADING:
        cut = said.rfind(" ", 0, _HEADING)
        said = said[: cut if cut > 0 else _HEADING] + "…"
    return said


def telling(titles: Mapping[str, float], weights: Mapping[str, float], most: int = 3) -> list[str]:
    """Of titles (with their worth) those that together say most of the characteristic terms, best
    first; none that says only one of them."""
    left = dict(weights)
    held = {title: terms_of(title) for title in titles if 4 < len(title) <= _HEADING}
    chosen: list[str] = []
    best = 0.0

    def gain(title: str) -> float:
        found = math.fsum(left[term] for term in held[title] & left.keys())
        return round(titles[title] * found / math.sqrt(4 + len(held[title])), 9)

    while held and len(chosen) < most:
        title = min(held, key=lambda title: (-gain(title), title))
        value = gain(title)
        best = best or value
        if not value or value < _TELLING * best:
            break
        own = held.pop(title) & weights.keys()
        if len(_stems(title) & own) > 1 or max(map(weights.__getitem__, own)) > _LEADING:
            chosen.append(title)
            for term in own:
                left[term] *= _AGAIN
    return chosen


def apart(titles: Sequence[str]) -> list[str]:
    """The titles without pieces at their ends that several have: the name of a site or a series."""
    every = [[piece[0].strip(_MARKS) for piece in _PIECE.finditer(title)] for title in titles]
    shared = Counter(piece for pieces in {*map(tuple, every)} for piece in {*pieces})
    found = []
    for title, pieces in zip(titles, every, strict=True):
        own = [piece for piece in pieces if shared[piece] == 1] or [title]
        found.append(title[title.find(own[0]) : title.rfind(own[-1]) + len(own[-1])])
    return found


def joined(parts: Sequence[str]) -> str:
    """The parts as one phrase: "Apple, music and users", "广州、铁路"."""
    if not parts:
        return ""
    if any(is_cjk(part[0]) for part in parts):
        return "、".join(parts)
    first = parts[0] if any(map(str.isupper, parts[0])) else parts[0].capitalize()
    *head, last = [first, *parts[1:]]
    return f"{', '.join(head)} and {last}" if head else last


def _keys(form: str) -> set[str]:
    """What two parts of a title may not share: terms, and the first letters of words, so that
    Tory and Tories, Spain and Spanish are said once."""
    starts = {word[:4].casefold() for word in _WORD.findall(form)}
    return starts | {one[:3] for one in starts if len(form) < 6} | set(terms_of(form))


def _shared(some: Iterable[str], others: Iterable[str]) -> bool:
    """Is a key of one part the beginning of one of the other: Deb, Deborah?"""
    keys = tuple(other for other in others if len(other) > 2 or is_cjk(other[0]))
    return any(
        one.startswith(keys) or (len(one) > 2 and any(key.startswith(one) for key in keys))
        for one in some
    )


def _plain(name: str) -> bool:
    """Can the name stand in a title: short, no number or month, no code?"""
    if name.lower() in _WORDS["general"] or any(word[0].isdigit() for word in name.split()):
        return False
    return len(name) + 3 * sum(map(is_cjk, name)) <= _LONG and not _CODE.search(name)


def _words(
    weights: Mapping[str, float],
    names: Sequence[str],
    sentences: Sequence[str],
    spread: Spread | None,
    every: Collection[str],
) -> dict[str, float]:
    """Words and pairs of words with their worth as parts of a title; `every`: all known names."""
    forms, pairs, nouns = _forms(weights, sentences)
    part = {word for name in every for word in name.split()[:20]} - set(names)
    worth: dict[str, float] = {}
    dull: set[str] = set()
    for form, count in forms.items():
        if any(map(str.isupper, form)) and form in part:
            continue  # the whole name is better
        noun = nouns[form] > 0 and not _PAST.search(form)
        kind = _NAME if form in names else _NOUN if noun else _OTHER
        if form.islower() and (kind == _OTHER or (count < 2 and kind == _NOUN)):
            dull.add(form)  # a verb or an adjective
        weight = max(weights.get(term, 0.0) for term in terms(form))
        worth[form] = kind * weight * (1 + 0.1 * math.log(count))
    for pair, count in pairs.items():
        both = pair.split(" ")
        said = nouns[both[1]] > 0 and not both[0].endswith("ly") and not both[1].endswith("ed")
        if (
            said
            and count > 1
            and 3 * count >= min(forms[word] for word in both)
            and set(both) <= set(worth)
        ):
            worth[pair] = max(weights.get(term, 0.0) for word in both for term in terms(word))
    worth |= _headed(weights, spread, sentences, nouns) if spread else {}
    return {form: value for form, value in worth.items() if _plain(form) and form not in dull}


def _headed(
    weights: Mapping[str, float], spread: Spread, sentences: Sequence[str], nouns: Mapping[str, int]
) -> dict[str, float]:
    """Two or three words in a row that several headings hold, as sentences write them."""
    rows: Counter[tuple[str, ...]] = Counter()
    ended: Counter[tuple[str, ...]] = Counter()  # a verb is not what ends there: Valve Announces
    for heading in dict.fromkeys(spread.headings):
        words = list(_WORD.finditer(heading))
        near = [heading[one.end() : two.start()] == " " for one, two in pairwise(words)]
        plain = [word[0].removesuffix("'s").removesuffix("’s") for word in words]
        spans = [(at, at + n) for n in (2, 3, 4) for at in range(len(words) - n + 1)]
        spans = [(at, to) for at, to in spans if all(near[at : to - 1])]
        ends = [(at, to) for at, to in spans if to > len(near) or not near[to - 1]]
        ends += [
            (at, to) for at, to in spans if to < len(words) and stop_word(words[to][0].lower())
        ]
        rows.update({tuple(plain[at:to]) for at, to in spans})
        ended.update({tuple(plain[at:to]) for at, to in ends})
    found: dict[str, float] = {}
    written = "\n".join(sentences)
    words = set(_WORD.findall(written))
    lower = {word for word in words if word.islower()}
    proper = {word for name in spread.names for word in name.split()}.union(words - lower)
    for row, count in rows.items():
        ends = [row[0].casefold(), row[-1].casefold()]
        if (
            count < 2
            or 4 * ended[row] < count
            or not all(map(tells_topic, ends))
            or not _WORDS["general"].isdisjoint(ends)
        ):
            continue
        value = [
            max((weights.get(one, 0.0) for one in _terms_in(word)), default=0.0) for word in row
        ]
        if not max(value[0], value[-1]) or (ends[1] in lower and nouns[ends[1]] <= 0):
            continue
        if any(tells_topic(word.casefold()) for word in row[1:-1]) and len(row) > 3:
            continue
        form = " ".join(row)
        as_is, small = written.count(form), written.count(form.casefold())
        if small > as_is or (not as_is and proper.isdisjoint(row)):
            form = form.casefold()
        found[form] = max(
            found.get(form, 0.0),
            math.fsum(value) / math.sqrt(sum(tells_topic(word.casefold()) for word in row)),
        )
    return found


def _forms(
    weights: Mapping[str, float], sentences: Iterable[str]
) -> tuple[dict[str, int], Counter[str], Counter[str]]:
    """The commonest written form of each characteristic word with how often it stands there, pairs
    of such forms, and how much more often a form stands where a noun does than where a verb does."""
    counts: dict[str, Counter[str]] = {}
    pairs: Counter[str] = Counter()
    nouns: Counter[str] = Counter()
    for sentence in sentences:
        words = list(_WORD.finditer(sentence))
        before, end, last = "", -1, ""
        for place, match in enumerate(words):
            word = match[0].removesuffix("'s").removesuffix("’s")
            previous, last = last, word.casefold()
            found = _terms_in(word)
            if last in _WORDS["general"] or not any(term in weights for term in found):
                before = ""
                continue
            form = word if place else word.lower() if word.istitle() else word
            counts.setdefault(found[-1], Counter())[form] += 1
            following = words[place + 1] if place + 1 < len(words) else None
            near = following and sentence[match.end() : following.start()] == " "
            next_word = following[0].lower() if near and following else ""
            goes_on = bool(next_word) and not stop_word(next_word)
            verb = previous in _WORDS["before_verb"] or next_word in _WORDS["after_verb"]
            nouns[form] -= verb
            nouns[form] += (
                not goes_on and not verb and (previous in _WORDS["before_noun"] or bool(before))
            )
            if before and sentence[end : match.start()] == " " and not goes_on:
                pairs[f"{before} {form}"] += 1
            before, end = form, match.end()
    forms: dict[str, int] = {}
    for found_forms in counts.values():
        form = min(
            found_forms,
            key=lambda one: (
                one != one.lower() and 2 * found_forms[one.lower()] >= found_forms[one],
                -found_forms[one],
                one,
            ),
        )
        forms[form] = forms.get(form, 0) + sum(found_forms.values())
    kept = {pair: n for pair, n in pairs.items() if all(word in forms for word in pair.split(" "))}
    return forms, Counter(kept), nouns
