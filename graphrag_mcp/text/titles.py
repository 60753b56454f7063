"""A title for texts: a phrase of the names and words that set them apart, in the spelling of the
sentences."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from graphrag_mcp.text.terms import is_cjk, stop_word, table, terms

PARTS = 3  # of a title
_LEAST = 0.05  # worth of a part beside the best one
RARE = 0.2  # of the weight of a name's best term, below which another one makes the name rare
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


def phrase(weights: Mapping[str, float], *read: Sequence[str], **more: Mapping[str, int]) -> str:
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
) -> list[str]:
    """The most characteristic names and nouns as they are written, best first; none whose words
    stand in what is `known`. `nouns`: those of a script without blanks, with how often they stand."""
    worth = _words(weights, names, sentences[:_READ])
    for noun, count in (nouns or {}).items():
        found = [weights.get(term, 0.0) for term in terms_of(noun) if len(term) > 1]
        if count > 1 and found and noun not in _WORDS["general"]:
            worth[noun] = sum(sorted(found)) / len(found) * (1 + 0.1 * math.log(count))
    for place, name in enumerate(names[:30]):
        name = _TITLED.sub("", name, count=1)
        found = [weights.get(term, 0.0) for term in terms_of(name)]
        if found and _plain(name):
            # a rare name of common words is no subject: "Financial Economists Roundtable"
            rare = name.count(" ") > 1 and min(found) < RARE * max(found)
            whole = len(found) * min(found) if rare else sum(sorted(found))
            share = whole / math.sqrt(len(found))
            worth[name] = max(worth.get(name, 0.0), share * (1.3 - 0.02 * place))
    ends = Counter(name[-2:] for name in names[:30] if is_cjk(name[-1:]) and len(name) > 2)
    for end, count in ends.items():  # 铁路 of 广茂铁路, 河茂铁路
        if count > 2 and end in weights:
            worth[end] = max(worth.get(end, 0.0), 1.5 * weights[end])
    chosen: list[str] = []
    used: set[str] = {key for word in _WORD.findall(known) for key in _keys(word)}
    for form in sorted(worth, key=lambda form: (-round(worth[form], 9), form)):
        mine = _keys(form)
        if len(chosen) == most or (chosen and worth[form] < _LEAST * worth[chosen[0]]):
            break  # a verb or an adjective beside a name: two parts are better
        if worth[form] and not _shared(mine, used):
            chosen.append(form)
            used |= mine
    return chosen


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
    weights: Mapping[str, float], names: Sequence[str], sentences: Iterable[str]
) -> dict[str, float]:
    """Words and pairs of words with their worth as parts of a title."""
    forms, pairs, nouns = _forms(weights, sentences)
    part = {word for name in names for word in name.split()[:20]} - set(names)
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
    return {form: value for form, value in worth.items() if _plain(form) and form not in dull}


def _forms(
    weights: Mapping[str, float], sentences: Iterable[str]
) -> tuple[dict[str, int], Counter[str], Counter[str]]:
    """The commonest written form of each characteristic word with how often it stands there, pairs
    of such forms, and how much more often a form stands where a noun does than where a verb does."""
    counts: dict[str, Counter[str]] = {}
    pairs: Counter[str] = Counter()
    nouns: Counter[str] = Counter()
    lower: set[str] = set()
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
            if form.islower():
                lower.add(form)
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
            key=lambda one: (one.lower() in lower and one != one.lower(), -found_forms[one], one),
        )
        forms[form] = forms.get(form, 0) + sum(found_forms.values())
    kept = {pair: n for pair, n in pairs.items() if all(word in forms for word in pair.split(" "))}
    return forms, Counter(kept), nouns
