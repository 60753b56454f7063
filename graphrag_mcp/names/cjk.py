"""Names in texts with Chinese, Japanese and Korean characters, and in questions their words of one character."""

from __future__ import annotations

import re
from collections.abc import Iterator

from graphrag_mcp.names import chinese, japanese, korean
from graphrag_mcp.names import lexicon as lex
from graphrag_mcp.text.spans import Candidate
from graphrag_mcp.text.terms import SIMPLIFY, stop_word

_KANA = re.compile("[\u3041-\u3096]")
_KATAKANA = re.compile("[ァ-ヺー]{2,30}(?:[・=＝][ァ-ヺー]{1,30})*")
_WORD = re.compile(f"[{lex.HAN}]{{2,6}}|[ァ-ヺー]{{2,12}}")
# ask, point, or stand in any text
_NO_THING = frozenset("何誰此其今特更既共主次常単急最為様谁这那哪人事时年月日")


def nouns(text: str) -> list[str]:
    """Words of a Chinese or Japanese text that may say a topic: nouns; in Japanese runs of kanji or katakana."""
    if not lex.HAN_CHARACTER.search(text):
        return []
    return _WORD.findall(text) if _KANA.search(text) else list(chinese.nouns(text))


def content_words(question: str) -> str:
    """A question without the Chinese words that cannot say what it asks about; any other question as it is."""
    if not lex.HAN_CHARACTER.search(question) or _KANA.search(question):
        return question
    return f"{lex.HAN_CHARACTER.sub(' ', question)} {' '.join(chinese.content_words(question))}"


def candidates(text: str, short: bool) -> list[Candidate]:
    """All candidates for names in Chinese, Japanese and Korean. With `short`, as for a question,
    words that occur once are candidates too."""
    found: list[Candidate] = []
    n_han, n_kana = len(lex.HAN_CHARACTER.findall(text)), len(_KANA.findall(text))
    if n_kana * 12 > n_han or (not n_han and _KATAKANA.search(text)):
        # A word of a document that nothing types is not certain: katakana spell many words.
        found += (
            (start, end, kind, sure and (short or kind != "other"))
            for start, end, kind, sure in japanese.candidates(text)
        )
    elif n_han:
        found += chinese.candidates(text, short)
    if n_han and (n_han + n_kana) * 6 > len(text):
        found += _latin(text, short)
    if any("가" <= ch <= "힣" for ch in text):
        found += korean.candidates(text, short)
    return found


_LATIN_RUN = re.compile(
    r"(?<![A-Za-z0-9_.&-])(?<![A-Za-z0-9]@)(?![A-Za-z0-9_.+-]{1,60}@)[A-Za-zα-ωΑ-Ω](?:(?:[A-Za-z0-9_.&'-]|(?<=[A-Z])·(?=[A-Z])){0,40}[A-Za-z0-9+#])?(?: [A-Z][A-Za-z0-9_.&'-]{0,40}){0,4}"
)


def _latin(text: str, short: bool) -> Iterator[Candidate]:
    """Latin runs inside Chinese and Japanese: brands and terms; in a question plain words in lower case, too."""
    for match in _LATIN_RUN.finditer(text):
        form = match[0]
        plain = form.isascii() and form.isalpha() and form.islower()
        if not plain and len(form) > 1 and not form.startswith("zh-"):
            yield (*match.span(), "other", True)
        elif plain and short and len(form) > 3:
            yield (*match.span(), "other", False)


# ---- words of one character in questions --------------------------------------------------------

# A kanji alone between kana, before a particle, a copula or the end. Endings of verbs are none of
# these.
_ALONE = re.compile(
    f"(?<![{lex.HAN}ァ-ヺー])([{lex.HAN}])(?=[はがをにでへともやの]|から|まで|より|だ|です|(?![ぁ-ゖァ-ヺー{lex.HAN}]))"
)
_PARTICLES = "은는이가을를에의도로와과만"
_POINTING = "그이저나너내네제누뭐것수때더또안못몇왜"  # these point, ask or deny


def alone(question: str) -> list[str]:
    """Words of one character in a Chinese or Japanese question. A search by pairs of characters
    (狗吃, 弟は) does not find them beside other characters (狗喜, 弟の)."""
    if not lex.HAN_CHARACTER.search(question):
        return []
    japanese = _KANA.search(question)
    found = _ALONE.findall(question) if japanese else chinese.single_nouns(question)
    words = dict.fromkeys(word.translate(SIMPLIFY) for word in found if word not in _NO_THING)
    return [word for word in words if not stop_word(word)]


def other_particles(term: str) -> list[str]:
    """배가, 배를, ... for 배는. Of the syllable alone other words are full."""
    if len(term) != 2 or not "가" <= term[0] <= "힣" or term[0] in _POINTING or term[1] not in _PARTICLES:
        return []
    return [term[0] + particle for particle in _PARTICLES if particle != term[1]]
