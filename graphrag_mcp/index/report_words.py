"""Words of a report: how much a sentence says of a community, and a title in words of its texts.

Takes the characteristic terms of a community with their weights, its names and its sentences; gives
figures and a phrase. Knows no tables.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from graphrag_mcp.text.terms import is_cjk, terms

_WORD = re.compile(r"[^\W\d_][\w'’&-]*[^\W_]|[^\W\d_]")
_FIGURE = re.compile(r"\d")
_NOISE = re.compile(
    r"\||https?:|www\.|copyright|all rights reserved|\w\(|[<>={}]|_{2}", re.IGNORECASE
)
_GREETING = re.compile(
    r"(?:hi|hey|hello|thanks|thank you|bye|goodbye|dear|good (?:morning|afternoon|evening|night)|see you"
    r"|congratulations|sorry|welcome|cheers)\b|你好|您好|谢谢|再见|早上好|晚安|大家好",
    re.IGNORECASE,
)
_READ = 80  # sentences that are looked through for the forms of words
_PARTS = 3  # of a title


@lru_cache(maxsize=65536)
def terms_of(text: str) -> frozenset[str]:
    return frozenset(terms(text))


def telling(text: str, weights: Mapping[str, float]) -> float:
    """More for a sentence of many characteristic terms and few others; a figure or a date helps."""
    said = terms_of(text)
    found = sum(sorted(weights[term] for term in said & weights.keys()))
    return found / math.sqrt(8 + len(said)) * (1.15 if _FIGURE.search(text) else 1.0)


def substance(text: str) -> float:
    """Little of a greeting, a table, code or a notice that stands on every page; else 1."""
    worth = 0.1 if _NOISE.search(text) or _GREETING.match(text) else 1.0
    if sum(map(str.isdigit, text)) > 0.15 * len(text):
        worth *= 0.3
    if text.endswith(("!", "！", "?", "？", "…")):
        worth *= 0.5
    return worth


def phrase(weights: Mapping[str, float], names: Sequence[str], sentences: Sequence[str]) -> str:
    """Up to three characteristic names and terms as they are written; "" where none is known."""
    if not weights:
        return ""
    worth: dict[str, float] = {}
    forms, pairs = _forms(weights, sentences[:_READ])
    part = {word for name in names for word in name.split()[:20]} - set(names)
    for form, count in forms.items():
        if form in part and not form.islower():
            continue  # the whole name is better
        kind = 1.0 if any(map(str.isupper, form)) else 0.75  # a plain word may be a verb
        worth[form] = kind * weights[terms(form)[0]] * (1 + 0.1 * math.log(count))
    for pair, count in pairs.items():
        both = pair.split(" ")
        if count >= 2 and 3 * count >= min(forms[word] for word in both) and both[0] in worth:
            worth[pair] = 1.2 * max(worth.get(word, 0.0) for word in both)
    for place, name in enumerate(names[:30]):
        said = [weights.get(term, 0.0) for term in terms_of(name)]
        if any(said) and len(name) <= 40:
            share = sum(sorted(said)) / math.sqrt(len(said))
            worth[name] = max(worth.get(name, 0.0), share * (1.3 - 0.02 * place))
    chosen: list[str] = []
    used: set[str] = set()
    for form in sorted(worth, key=lambda form: (-round(worth[form], 9), form)):
        mine = terms_of(form)
        if len(chosen) < _PARTS and used.isdisjoint(mine):
            chosen.append(form)
            used |= mine
    return _joined(chosen)


def _forms(
    weights: Mapping[str, float], sentences: Iterable[str]
) -> tuple[dict[str, int], Counter[str]]:
    """The commonest written form of each characteristic word with how often it stands there, and
    pairs of such forms."""
    counts: dict[str, Counter[str]] = {}
    pairs: Counter[str] = Counter()
    for sentence in sentences:
        before, end = "", -1
        for place, match in enumerate(_WORD.finditer(sentence)):
            word = match[0].removesuffix("'s").removesuffix("’s")
            found = () if is_cjk(word[0]) else terms(word)
            if not found or found[0] not in weights:
                before = ""
                continue
            form = word if place else word.lower() if word.istitle() else word
            counts.setdefault(found[-1], Counter())[form] += 1
            if before and match.start() == end + 1 and word == match[0]:
                pairs[f"{before} {form}"] += 1
            before, end = form, match.end()
    forms = {}
    for found in counts.values():
        form = min(found, key=lambda one: (-found[one], one))
        forms[form] = sum(found.values())
    return forms, Counter({p: n for p, n in pairs.items() if all(w in forms for w in p.split(" "))})


def _joined(parts: Sequence[str]) -> str:
    if not parts:
        return ""
    if sum(is_cjk(part[0]) for part in parts) * 2 > len(parts):
        return "、".join(parts)
    first = parts[0] if any(ch.isupper() for ch in parts[0]) else parts[0].capitalize()
    *head, last = [first, *parts[1:]]
    return f"{', '.join(head)} and {last}" if head else last
