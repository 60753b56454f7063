"""Word lists of the extractor without a model, from `lexicon.toml`, folded as their text is folded
before the look-up.

Every list is a hint, never a gate alone: a word that is missing costs one doubtful name."""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Any

from graphrag_mcp.text.folding import STOP_WORDS, folded, without_cases

_LISTS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("lexicon.toml").read_text("utf-8"))


def _set(name: str) -> frozenset[str]:
    return frozenset(_LISTS[name].split())


def _signs(name: str) -> frozenset[str]:
    return frozenset("".join(_LISTS[name].split()))


STARTERS = _set("STARTERS")

MONTHS = _set("MONTHS")

DEMONYMS = _set("DEMONYMS")

TITLES = _set("TITLES")
OFFICES = _set("OFFICES")
GROUPS = _set("GROUPS")
ROLE_WORDS = _set("ROLE_WORDS")
BODIES = _set("BODIES")
EVENT_HEADS = _set("EVENT_HEADS")

_HEADS = _LISTS["HEADS"]
HEAD_TYPE: dict[str, str] = {}
for _type, _words in _HEADS.items():
    for _word in _words.split():
        HEAD_TYPE.setdefault(_word, _type)
FIRST_TYPE = _LISTS["FIRST_TYPE"]

PHRASE_HEADS = _set("PHRASE_HEADS")

FILE_ENDINGS = _set("FILE_ENDINGS")
ACRONYM_NOISE = _set("ACRONYM_NOISE")
TAILS = _set("TAILS")
AMBIGUOUS_HEADS = _set("AMBIGUOUS_HEADS")
DULL = _set("DULL")
GIVEN = _set("GIVEN")
PLACES = _set("PLACES")
COMMON = _set("COMMON")


def _kinds(rows: dict[str, str]) -> dict[str, str]:
    return {word: kind for kind, words in rows.items() for word in words.split()}


JA_HEADS = _kinds(_LISTS["JA_HEADS"])
JA_TITLES = sorted(_LISTS["JA_TITLES"].split(), key=lambda word: (-len(word), word))
# the last sign of no given name
JA_ABSTRACT = frozenset("者値的性力法化率量部会員上中下前後間点面書用品")
JA_TITLES_KANA = tuple("さん さま ちゃん くん せんせい".split())
JA_ROLES = sorted(_LISTS["JA_ROLES"].split(), key=lambda word: (-len(word), word))
JA_DULL = _set("JA_DULL")
JA_PLACES = _set("JA_PLACES")
JA_SURNAMES = _set("JA_SURNAMES")

JOSA = tuple(sorted(_LISTS["JOSA"].split(), key=lambda word: (-len(word), word)))
KO_HEADS = _kinds(_LISTS["KO_HEADS"])
KO_DULL = _set("KO_DULL")
KO_TITLES = _set("KO_TITLES")
KO_ROLES = KO_TITLES - frozenset("씨 님 왕".split()) | _set("KO_ROLES")
KO_SURNAMES = frozenset(
    "김이박최정강조윤장임한오서신권황안송류유홍전고문손양배백허남심노하곽성차주우구민진지엄채원천방공현함변염석선설마길연위표명기반왕금옥육인맹제모탁국여어"
)
KO_GIVEN = _signs("KO_GIVEN")
KO_PLACES = _set("KO_PLACES")
# Syllables that spell foreign names more than Korean words.
KO_FOREIGN = frozenset("드르스크트프그브즈츠베리델만슨턴톤린네르쿠루레메니코로카타파바")
KO_ENDINGS = tuple("다 는 한 된 고 며 던 지 게 서 할 될 인 하여 했던 니다".split())
KO_COMMON = _set("KO_COMMON")


@lru_cache(maxsize=1 << 14)
def bare(word: str) -> str:
    """A word as these lists have it."""
    return without_cases(folded(word))


def _words(text: str) -> frozenset[str]:
    return frozenset(map(bare, text.split()))


_FEMININE = _LISTS["FEMININE"]
ROLES = _words(
    _FEMININE + " " + " ".join(word + "in" for word in _FEMININE.split()) + " " + _LISTS["ROLES"]
)

_KINDS = _LISTS["KINDS"]
HEADS: dict[str, str] = {}
for _kind, _list in _KINDS.items():
    for _word in _words(_list):
        HEADS.setdefault(_word, _kind)
DE_PARTS = _LISTS["DE_PARTS"]
DE_PART = {part: kind for kind, parts in DE_PARTS.items() for part in parts.split()}
DE_COMMON = _set("DE_COMMON")
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
LABELS = _words(_LISTS["LABELS"])
# A number before one of these is the day of a date.
MONTH = re.compile(
    r" (?:de )?(?:(?:янв|фев|мар|апр|июн|июл|авг|сен|окт|ноя|дек)[а-я]*|ма[яй]|(?:січ|лют|берез|квіт|трав|черв|лип|серп|верес|жовт"
    r"|листоп|груд)[а-яі]*|enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre|janvier|février"
    r"|mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|décembre|gennaio|febbraio|aprile|maggio|giugno|luglio|settembre"
    r"|ottobre|dicembre|janeiro|fevereiro|março|maio|junho|julho|setembro|outubro|dezembro)\b"
)
SAYS = _set("SAYS")
FOREIGN_GIVEN = _words(_LISTS["FOREIGN_GIVEN"])
VI_SURNAMES = _words(_LISTS["VI_SURNAMES"])
VI_HEADS = _LISTS["VI_HEADS"]
VI_BEFORE = _LISTS["VI_BEFORE"]


ZH_HEADS = _LISTS["ZH_HEADS"]
ZH_HEAD_TYPE: dict[str, str] = {}
for _type, _words in ZH_HEADS.items():
    for _word in _words.split():
        ZH_HEAD_TYPE.setdefault(_word, _type)
ZH_FUNCTION = _signs("ZH_FUNCTION")
ZH_TRAIL = frozenset(
    "".join(
        """
于於以为為在是有和与與及曾现現将將被把从從向对對的了也都即又则則便说說称稱任至使让讓给給后後时時等得能就却卻并並
""".split()
    )
)
ZH_DULL = _set("ZH_DULL")
ZH_SURNAMES = _signs("ZH_SURNAMES")
ZH_SURNAMES_TWO = _set("ZH_SURNAMES_TWO")
ZH_SOUNDS = _signs("ZH_SOUNDS")
ZH_TITLES = tuple(sorted(_LISTS["ZH_TITLES"].split(), key=lambda title: -len(title)))


LAST = HEAD_TYPE | _kinds(_LISTS["LAST"])
FAMILY = AMBIGUOUS_HEADS | _set("FAMILY")
FIRST = FIRST_TYPE | _kinds(_LISTS["FIRST"])
ENDINGS = (
    *((one, "location") for one in "ville burgh shire stan grad polis borough abad istan".split()),
    *((one, "concept") for one in "ology ianity osophy ism".split()),
)
GIVEN_NAMES = GIVEN | _set("GIVEN_NAMES")
KNOWN = dict.fromkeys(PLACES, "location") | _kinds(_LISTS["KNOWN"])
for _word in ("french", "german", "spanish", "greek", "english", "arabic", "hebrew", "latin"):
    KNOWN.pop(_word)  # as often the people as the language

OF_PLACE = _set("OF_PLACE")
OF_PERSON = _set("OF_PERSON")
IN_PLACE = _set("IN_PLACE")
TO_PLACE = _set("TO_PLACE")
BY_PERSON = _set("BY_PERSON")
BY_BODY = _set("BY_BODY")
ON_BODY = frozenset("aired premiered broadcast airs airing televised".split())
AT_BODY = _set("AT_BODY")
SAYS_PERSON = _set("SAYS_PERSON")
WAS_CONTENT = frozenset("released premiered published filmed recorded aired composed".split())
IS_PLACE = frozenset("located situated bordered bounded".split())
THE_NO_BODY = _set("THE_NO_BODY")
EITHER = _set("EITHER")
NEVER = DEMONYMS | MONTHS


def _caseless_words(text: str) -> frozenset[str]:
    return frozenset(map(folded, text.split()))


def _caseless_kinds(rows: dict[str, str]) -> dict[str, str]:
    return {folded(word): kind for kind, words in rows.items() for word in words.split()}


CASELESS_TITLES = _caseless_kinds(_LISTS["CASELESS_TITLES"])
CASELESS_HEADS = _caseless_kinds(_LISTS["CASELESS_HEADS"])
HINDI_HEADS = _caseless_kinds(_LISTS["HINDI_HEADS"])
HINDI_OUT = _caseless_words("शहर गाँव गांव कस्बा जिला ज़िला जिले ज़िले राज्य प्रांत जी साहब नदी")
HINDI_BORN = _caseless_words("जन्म मृत्यु निधन विवाह पत्नी पति पुत्र पुत्री पिता माता बेटा बेटी भाई")
VERBS = _caseless_words(_LISTS["VERBS"])
CASELESS_GIVEN = _caseless_words(_LISTS["CASELESS_GIVEN"])
# the name goes on after these
JOINING = _caseless_words("بن ابن بنت أبو أبي أم عبد آل الدين الله بو بنت בן בת אבו בר")
TWO_WORDS = _caseless_words(
    "نيو سان تل نווה נווה תל בית קרית קריית כפר גבעת רמת בני ראש באר הר גן עין מעלה נוף פתח"
)
CASELESS_PLACES = _caseless_words(_LISTS["CASELESS_PLACES"])
# Too common to be a name: words of time and measure, adjectives, verbs that stand beside names.
# Unfolded "على" is "on"; folded it is Ali.
ON = frozenset("على وعلى فعلى".split())
CASELESS_COMMON = STOP_WORDS | ON | _caseless_words(_LISTS["CASELESS_COMMON"])

THAI_HEADS = _LISTS["THAI_HEADS"]
THAI_KIN = tuple("ยาย ย่า ปู่ พ่อ แม่ ลุง ป้า น้า ครู หมอ".split())  # whom คุณ makes no name of
THAI_TITLES = _LISTS["THAI_TITLES"].split()
THAI_STOPS = _LISTS["THAI_STOPS"].split()
THAI_PLACES = _LISTS["THAI_PLACES"].split()
