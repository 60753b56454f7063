"""Word lists of the extractor without a model, from `lexicon.toml`, folded as their text is folded
before the look-up.

Every list is a hint, never a gate alone: a word that is missing costs one doubtful name."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from graphrag_mcp.text.terms import STOP_WORDS, folded, table, without_cases

_LISTS: dict[str, Any] = table(__file__)


@lru_cache(maxsize=1 << 14)
def bare(word: str) -> str:
    """A word without accents and endings of its cases, as lists of several languages have it."""
    return without_cases(folded(word))


def _words(name: str) -> frozenset[str]:
    return frozenset(_LISTS[name].split())


def _signs(name: str) -> frozenset[str]:
    return frozenset("".join(_LISTS[name].split()))


def _longest_first(name: str) -> tuple[str, ...]:
    return tuple(sorted(_LISTS[name].split(), key=lambda word: (-len(word), word)))


def _kinds(name: str) -> dict[str, str]:
    """Word -> type; of a word with several types the first counts."""
    rows = reversed(_LISTS[name].items())
    return {word: kind for kind, words in rows for word in words.split()}


def _bare_words(text: str) -> frozenset[str]:
    return frozenset(map(bare, text.split()))


def _folded_kinds(name: str) -> dict[str, str]:
    return {folded(word): kind for word, kind in _kinds(name).items()}


def _folded_words(text: str) -> frozenset[str]:
    return frozenset(map(folded, text.split()))


# ---- English ------------------------------------------------------------------------------------

STARTERS, MONTHS, DEMONYMS = map(_words, ("STARTERS", "MONTHS", "DEMONYMS"))
TITLES, OFFICES, GROUPS = map(_words, ("TITLES", "OFFICES", "GROUPS"))
ROLE_WORDS, BODIES, EVENT_HEADS = map(_words, ("ROLE_WORDS", "BODIES", "EVENT_HEADS"))
PHRASE_HEADS, AMBIGUOUS_HEADS, TAILS = map(_words, ("PHRASE_HEADS", "AMBIGUOUS_HEADS", "TAILS"))
FILE_ENDINGS, ACRONYM_NOISE = map(_words, ("FILE_ENDINGS", "ACRONYM_NOISE"))
NO_ACRONYMS, NAMES = map(_words, ("NO_ACRONYMS", "NAMES"))
DULL, COMMON, GIVEN, PLACES = map(_words, ("DULL", "COMMON", "GIVEN", "PLACES"))
HEAD_TYPE = _kinds("HEADS")

# Of types only: these lists decide nothing about what is a name.
LAST = HEAD_TYPE | _kinds("LAST")
FIRST = _kinds("FIRST")
FAMILY = AMBIGUOUS_HEADS | _words("FAMILY")
GIVEN_NAMES = GIVEN | _words("GIVEN_NAMES")
EITHER = _words("EITHER")
KNOWN = dict.fromkeys(PLACES, "location") | _kinds("KNOWN")
for _word in ("french", "german", "spanish", "greek", "english", "arabic", "hebrew", "latin"):
    KNOWN.pop(_word)  # as often the people as the language
NEVER = DEMONYMS | MONTHS
ENDINGS = (
    *((one, "location") for one in "ville burgh shire stan grad polis borough abad istan".split()),
    *((one, "concept") for one in "ology ianity osophy ism".split()),
)
OF_PLACE, IN_PLACE, TO_PLACE = map(_words, ("OF_PLACE", "IN_PLACE", "TO_PLACE"))
OF_PERSON, BY_PERSON, SAYS_PERSON = map(_words, ("OF_PERSON", "BY_PERSON", "SAYS_PERSON"))
BY_BODY, AT_BODY = map(_words, ("BY_BODY", "AT_BODY"))
ON_BODY = frozenset("aired premiered broadcast airs airing televised".split())
IS_PLACE = frozenset("located situated bordered bounded".split())

# ---- other languages with capitals --------------------------------------------------------------

FOREIGN_GIVEN, VI_SURNAMES = (
    _bare_words(_LISTS[name]) for name in ("FOREIGN_GIVEN", "VI_SURNAMES")
)
_FEMININE = _LISTS["FEMININE"].split()
ROLES = _bare_words(" ".join((*_FEMININE, *(f"{word}in" for word in _FEMININE), _LISTS["ROLES"])))
HEADS = {bare(word): kind for word, kind in reversed(_kinds("KINDS").items())}
DE_PART, DE_COMMON = _kinds("DE_PARTS"), _words("DE_COMMON")
# A place mostly follows: in Regensburg, à Lyon, ở Đà Nẵng.
INTO = {
    "de": frozenset("in nach aus bei".split()),
    "romance": frozenset("à a en em".split()),
    "ru": frozenset("в во из".split()),
    "uk": frozenset("в у із з".split()),
    "el": frozenset("στη στην στο στον".split()),
    "vi": frozenset("ở tại".split()),
    "nl": frozenset("in te naar".split()),
    "es": frozenset(["en"]),  # "a" stands before persons too
}
OPENING = {name: frozenset(words.split()) for name, words in _LISTS["OPENING"].items()}
SAYS = _words("SAYS")
VI_HEADS, VI_BEFORE = _LISTS["VI_HEADS"], _LISTS["VI_BEFORE"]

# ---- Japanese, Korean, Chinese ------------------------------------------------------------------

JA_HEADS = _kinds("JA_HEADS")
JA_TITLES = _longest_first("JA_TITLES")
JA_TITLES_KANA = tuple("さん さま ちゃん くん せんせい".split())
JA_DULL, JA_PLACES, JA_SURNAMES = map(_words, ("JA_DULL", "JA_PLACES", "JA_SURNAMES"))

JOSA = _longest_first("JOSA")
KO_HEADS = _kinds("KO_HEADS")
KO_DULL, KO_TITLES, KO_PLACES = map(_words, ("KO_DULL", "KO_TITLES", "KO_PLACES"))
KO_COMMON, KO_GIVEN = _words("KO_COMMON"), _signs("KO_GIVEN")
KO_ROLES = KO_TITLES - frozenset("씨 님 왕".split()) | _words("KO_ROLES")
KO_SURNAMES = frozenset(
    "김이박최정강조윤장임한오서신권황안송류유홍전고문손양배백허남심노하곽성차주우구민진지엄채원천방공현함변염석선설마길연위표명기반왕금옥육인맹제모탁국여어"
)
KO_ENDINGS = tuple("다 는 한 된 고 며 던 지 게 서 할 될 인 하여 했던 니다".split())

ZH_HEAD_TYPE = _kinds("ZH_HEADS")
ZH_FUNCTION, ZH_SURNAMES, ZH_SOUNDS = map(_signs, ("ZH_FUNCTION", "ZH_SURNAMES", "ZH_SOUNDS"))
ZH_DULL, ZH_SURNAMES_TWO = _words("ZH_DULL"), _words("ZH_SURNAMES_TWO")
ZH_KNOWN = _kinds("ZH_KNOWN")
ZH_WIDE = frozenset("海高新外东南西北大小中四上下老古本该全各内前后")
ZH_TITLES = tuple(sorted(_LISTS["ZH_TITLES"].split(), key=lambda title: -len(title)))
ZH_TRAIL = frozenset(
    "于於以为為在是有和与與及曾现現将將被把从從向对對的了也都即又则則便说說称稱任至使让讓给給后後时時等得能就却卻并並"
)

# ---- scripts without capitals -------------------------------------------------------------------

CASELESS_TITLES, CASELESS_HEADS = map(_folded_kinds, ("CASELESS_TITLES", "CASELESS_HEADS"))
CASELESS_GIVEN, CASELESS_PLACES = (
    _folded_words(_LISTS[name]) for name in ("CASELESS_GIVEN", "CASELESS_PLACES")
)
# the name goes on after these
JOINING = _folded_words("بن ابن بنت أبو أبي أم عبد آل الدين الله بو بنت בן בת אבו בר")
TWO_WORDS = _folded_words(
    "نيو سان تل نווה נווה תל בית קרית קריית כפר גבעת רמת בני ראש באר הר גן עין מעלה נוף פתח"
)
# Too common to be a name: words of time and measure, adjectives, verbs that stand beside names.
# Unfolded "على" is "on"; folded it is Ali.
ON = frozenset("على وعلى فعلى".split())
CASELESS_COMMON = STOP_WORDS | ON | _folded_words(_LISTS["CASELESS_COMMON"])
HINDI_HEADS = _folded_kinds("HINDI_HEADS")
HINDI_OUT = _folded_words("शहर गाँव गांव कस्बा जिला ज़िला जिले ज़िले राज्य प्रांत जी साहब नदी")
THAI_HEADS = _LISTS["THAI_HEADS"]
THAI_TITLES, THAI_STOPS, THAI_PLACES = (
    _LISTS[name].split() for name in ("THAI_TITLES", "THAI_STOPS", "THAI_PLACES")
)
