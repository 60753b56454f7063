"""Text as a reader wants it: without what only leads elsewhere, and whether a sentence is worth
quoting. Spans always point into the stored text, which is not changed."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from functools import lru_cache

from graphrag_mcp.text import folding
from graphrag_mcp.text.terms import STOP_WORDS, is_cjk

# ---- what is shown of a text ----------------------------------------------------------------------

_IMAGE = re.compile(
    r"!\[[^\[\]\n]{0,300}\]\([^()\s]{0,2000}(?:\([^()\s]{0,200}\)[^()\s]{0,500})?(?: \"[^\"\n]{0,200}\")?\)"
)
_LINK = re.compile(
    r"\[([^\[\]\n]{0,300})\]\([^()\s]{0,2000}(?:\([^()\s]{0,200}\)[^()\s]{0,500})?(?: \"[^\"\n]{0,300}\")?\)"
)
# a["b"]["c"] and a[1][2] of a program have a letter or a bracket before them.
_NAMED_LINK = re.compile(r"(?<![\w\])])\[([^\[\]\n]{1,300})\]\[[^\[\]\n]{0,100}\]")
_DEFINITION = re.compile(
    r"^ {0,3}\[[^\[\]\n]{1,100}\]:[ \t]{1,4}\S{1,2000}[^\n]{0,300}$", re.MULTILINE
)
_ESCAPED = re.compile(r"\\([\[\]_*#&<>~.()-])")
_NOTE = re.compile(
    r"\[(?:citation needed|edit|note \d{1,3}|update]|dead link|sic)\]", re.IGNORECASE
)
# [12] behind a word or the end of a sentence; a[1] of a program has a single letter before it.
_NUMBER = re.compile(
    r"(?:(?<=[^\W\d_]{3})|(?<=[.,;:)\]\"”»。！？，])|(?<=[.,;:)\]\"”»] ))\[\d{1,3}\](?!\()"
)
_TAG = re.compile(
    r"</?(?:div|span|p|br|sup|sub|small|font|center|table|thead|tbody|tr|td|th|ul|ol|li|img|figure"
    r"|figcaption|picture|source|section|article|header|footer|nav|button|svg|path|iframe|h[1-6]|b|i|u|em|strong|a)"
    r"(?:\s[^<>]{0,1000})?/?>|<!--[^<>]{0,2000}-->",
    re.IGNORECASE,
)
_RULE = re.compile(r"[\s|:+=_*-]*")  # of tables, under headings, between paragraphs
_ITEM = re.compile(r"\s{0,40}(?:[*+-]|\d{1,3}\.)?\s{0,8}\[[^\[\]\n]{1,60}\]\([^()\s]{1,2000}\)\s*")
_CODE = re.compile(r"[=;{}]")
LINKS, OUTSIDE = 3, 25  # a line of so many links with so few other characters is navigation
RUN = 3  # so many lines in a row that are a link alone are navigation too

# Of source code, which is shown as it is.
_LANGUAGES = """python py pyi|javascript js mjs cjs jsx|typescript ts mts cts|tsx tsx|java java|go go
rust rs|c c h|cpp cc cpp cxx hh hpp hxx|c_sharp cs|ruby rb|php php|kotlin kt kts|scala scala|swift swift"""
SUFFIXES: Mapping[str, str] = {
    suffix: language
    for language, *suffixes in map(str.split, re.split(r"[|\n]", _LANGUAGES))
    for suffix in suffixes
}


def language_of(uri: str) -> str:
    """The language by the ending of a file's name, "" for none."""
    return SUFFIXES.get(uri.rpartition("/")[2].rpartition(".")[2].lower(), "")


def readable(text: str) -> str:
    """The text as it is shown; the same text where there is nothing to leave out."""
    if not any(mark in text for mark in ("[", "<", "&", "|", "  ", "\t", "===", "---")):
        return text.strip()
    lines: list[str] = []
    menu: list[str] = []  # lines that are a link and nothing else: three in a row are navigation
    for line in [*(_DEFINITION.sub("", text) if "]:" in text else text).split("\n"), "."]:
        if _ITEM.fullmatch(line):
            menu.append(_line(line))
            continue
        if menu and line.strip():
            lines += menu if len(menu) < RUN else []
            menu = []
        shown = _line(line)
        if shown or (not line.strip(" -") and lines and lines[-1]):
            lines.append(shown)
    return "\n".join(lines[:-1]).strip()


def _line(line: str) -> str:
    """One line as it is shown; "" for what only leads elsewhere or separates."""
    plain = _IMAGE.sub(" ", line) if "![" in line else line
    if "](" in plain:
        links = _LINK.findall(plain)
        outside = _LINK.sub("", plain)
        if len(links) >= LINKS and sum(map(str.isalnum, outside)) < OUTSIDE:
            return ""
        plain = _LINK.sub(r"\1", plain)
    if "[" in plain:
        plain = _NAMED_LINK.sub(r"\1", plain) if "][" in plain else plain
        plain = _NOTE.sub("", plain)
        if not _CODE.search(plain):
            plain = _NUMBER.sub("", plain)
    if "<" in plain:
        plain = _TAG.sub(" ", plain)
    if "&" in plain:
        plain = html.unescape(plain).replace("\xa0", " ")
    if "\\" in plain and plain != line:
        plain = _ESCAPED.sub(r"\1", plain)
    if _RULE.fullmatch(plain):
        return ""
    indent = len(plain) - len(plain.lstrip(" \t"))
    return plain[: min(indent, 8)] + " ".join(plain.split()) if plain.strip() else ""


# ---- what a sentence is worth -----------------------------------------------------------------------

# What stands before the words of a speaker: "[Tue 3 May 10:12] Ana:", "**Ana:**".
SPEAKER = re.compile(
    r"(?:\[[^\[\]\n]{1,40}\]\s{0,3})?\*{0,2}[^\s:：*][^:：\n]{0,39}[:：]\*{0,2}\s{1,3}(?=\S)"
)
_GREETING = re.compile(
    r"(?:hi|hey|hello|good (?:morning|afternoon|evening|night)|merry|happy|thanks|thank you|bye|goodbye|see you"
    r"|take care|congratulations|sorry|welcome|cheers|dear|haha|lol|omg|hmm"
    r"|hallo|guten|danke|bonjour|merci|salut|hola|gracias|ciao|grazie)\b"
    r"|你好|您好|早上好|晚上好|晚安|大家好|谢谢|再见|こんにちは|ありがとう|안녕",
    re.IGNORECASE,
)
# How a reply begins that adds nothing of its own: "Wow, that view looks great!"
_REACTION = re.compile(
    r"(?:wow|yeah|yep|yes|oh|ooo|aww?|oof|haha|cool|nice|great|awesome|amazing|sure|definitely|absolutely|totally"
    r"|no (?:problem|worries)|good luck|congrats|hope|sounds|glad|that(?:'s|’s| is| sounds| must)|i(?:'m|’m| am) (?:glad|sorry|sure|so happy)"
    r"|you(?:'re|’re| are)|keep (?:going|me|it)|can(?:'|’)t wait|genau|stimmt|super|genial|vale)\b"
    r"|哇|哈哈|好的|是的|嗯|真的|太好了|没错|对啊",
    re.IGNORECASE,
)
# A sentence on the conversation itself: "Been ages since we chatted!", "How's it going since we talked?"
_TALK = re.compile(
    r"\bsince (?:we|our) [^.!?]{0,20}\b(?:talk(?:ed)?|chat(?:ted)?|spoke|met|caught up|saw each other|conversation|hung out)"
    r"[.!?…]*\Z|\b(?:let's|talk to you|chat) (?:\w+ ){0,2}(?:again )?soon[.!]*\Z|\blong time no\b",
    re.IGNORECASE,
)
# What a person did or plans: "I started my own firm", "we're moving", 我们上周去了北京.
_DID = re.compile(
    r"\b(?:I|we|my \w{1,30}|our \w{1,30}|(?:I|we)['’]ve) (?:(?:just|also|recently|finally|even|already|both) ){0,2}"
    r"(?:\w{3,30}ed|went|got|took|made|began|lost|won|bought|sold|met|had|came|saw|found|left|broke|wrote|gave|told"
    r"|felt|became|ran|led|built|held|kept|spent|taught|caught|flew|drove|hurt|hit|set|put|quit|read|been|done|seen)\b"
    r"|(?:\A|: )(?:(?:just|finally|recently|also) )?(?:went|got|took|lost|won|bought|sold|met|had|came|saw|found|left|finished|started)\b"
    r"|\b(?:I|we)['’](?:ve|m|re) (?:just )?(?:been )?\w{1,30}(?:ed|ing)\b"
    r"|\b(?:ich habe|wir haben|ich bin|wir sind|j['’]ai|nous avons|je suis|he \w+do|hemos|ho \w+to|abbiamo)\b"
    r"|[我咱][^，。！？]{0,20}[了过]",
    re.IGNORECASE,
)
# Words of the first person.
OWN = re.compile(
    r"(?<![\w(])(?:I(?=['’ ])|i(?=['’ ]\w)|(?i:my|mine|myself|we|our|ours|ourselves|ich|mich|mir|meine?[mnrs]?|wir|unsere?[mnrs]?|je|j(?=['’])|"
    r"moi|nous|notre|conmigo|nosotr[oa]s|nuestr[oa]s?)|me|us|uns|mon|ma|nos|yo|mí|(?<!\d )mis?)(?!\w|\.\w)|我|咱|俺"
)
_WHEN = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|recently|lately|just|finally|soon|since|news|ago|plan(?:s|ned|ning)?"
    r"|(?:last|this|next) (?:night|morning|week|weekend|month|year|summer|winter|spring|autumn|fall|\w{3,6}day)"
    r"|gestern|heute|morgen|letzte\w*|nächste\w*|hier|demain|ayer|mañana|ieri|domani)\b"
    r"|[昨今明]天|[上下这本]个?[周月]|[去今明]年|最近|刚刚?|终于|打算|准备|开始",
    re.IGNORECASE,
)
_ADDRESSED = re.compile(r"\b(?:you|your|you['’]re|yours)\b|[你您]", re.IGNORECASE)
_POINTING = re.compile(r"(?:it|that|this|they|these|those)\b|[这那它]", re.IGNORECASE)
_NOISE = re.compile(
    r"\||https?:|www\.|copyright|\blicen[cs]e[ds]?:|all rights reserved|\w\(|[<>={}]|_{2}|\\n"
    r"|\bcookies?\b.{0,80}\b(?:site|ads|content|accept|polic|traffic|browser|use)|\bjavascript\b|privacy policy"
    r"|terms of (?:use|service)|newsletter|\bsubscri(?:be|ption)|\bsign (?:in|up)\b|\blog ?in\b|\bskip to\b"
    r"|\bclick (?:here|on|to)\b|permalink|your browser|press escape|donat(?:e|ion)s? (?:now|to us)|scroll past|\bfrom [\w.]{1,80} import\b|receive .{0,30}e-?mails",
    re.IGNORECASE,
)
# An entry of a bibliography: initials before a comma, pages, volumes, numbers of books.
_REFERENCE = re.compile(
    r"\bet al\b|\bpp?\. ?\d|\bvol\. ?\d|\bno\. ?\d+ ?\(|\bisbn\b|\bdoi\b|\beds?\.\)|\bretrieved\b|\barchived\b"
    r"|\(\d{4}[a-z]?\)[.,:]|, \d{4}\.$",
    re.IGNORECASE,
)
_INITIALS = re.compile(
    r"\A\W{0,3}(?:[A-Z]\. ?){1,3}[A-Z][\w-]{1,30},"
    r"|(?<![\w-])[A-Z][\w-]{1,30}, (?:[A-Z]\. ?){1,3}(?:,|&|\()"
)
# Words that only stand in clauses, in English; of other languages the share of grammar decides.
_CLAUSE = frozenset(
    "is are was were be been being am has have had having do does did will would can could may might must shall "
    "should not that which who whom whose what when where why how because although though while if than it he she "
    "they we i you this these those there".split()
)
_ENGLISH = frozenset("the of and to in for with on by from at as".split())
_LEANING = re.compile(
    r"(?:he|she|it|they|this|that|these|those|but|and|or|so|however|his|her|its|their|we|i|you|then|also)\b",
    re.IGNORECASE,
)
_GRAMMAR = STOP_WORDS.union(*folding.LANGUAGES.values())
# share of words of grammar; prose in Latin letters has 0.3 to 0.5, a menu hardly any
_LEAST_GRAMMAR = 0.15
# share of digits in a table's row; in Chinese a word is two characters
_DIGITS, _DENSE_DIGITS = (0.15, 0.4)


def spoken(sentence: str) -> str:
    """The sentence without the name of its speaker and the marks of a list or a heading."""
    return SPEAKER.sub("", sentence.strip().lstrip("#>*-•| \t"), count=1)


def says_something(sentence: str) -> bool:
    """Does a sentence say something: no greeting, heading, bare name or time stamp?"""
    if sentence.lstrip().startswith("#"):
        return False
    bare = spoken(sentence)
    greets = _GREETING.match(bare) is not None
    if any(map(is_cjk, bare[:20])):
        return sum(map(str.isalpha, bare)) >= (20 if greets else 8)
    words = [word for word in bare.split() if any(map(str.isalpha, word))]
    if len(words) < (10 if greets else 5):
        return False
    return any(word[:1].islower() for word in words[1:])


@lru_cache(maxsize=16_384)
def substance(sentence: str) -> float:
    """How much a sentence is worth as a quotation, above 0 to 1: little for a greeting, a table's
    row, code, a notice, a menu or a bibliography's entry; less for a question or an exclamation."""
    bare = spoken(sentence)
    said = bare or sentence
    worth = 0.1 if _NOISE.search(sentence) or _GREETING.match(said) or _TALK.search(said) else 1.0
    worth *= 0.4 if _REACTION.match(said) else 1.0
    dense = any(map(is_cjk, said[:40]))
    if bare != sentence.strip() and len(said) < 25 and not dense:
        worth *= 0.3
    if sum(map(str.isdigit, said)) > (_DENSE_DIGITS if dense else _DIGITS) * len(said):
        worth *= 0.3
    if said.endswith(("!", "！", "?", "？", "…", "...")):
        worth *= 0.5
    return worth * _entry(said) * (1.0 if dense else _clause(said))


def telling(sentence: str) -> float:
    """`substance`, and more for what a speaker says of their own doings."""
    return substance(sentence) * eventful(sentence)


def eventful(sentence: str) -> float:
    """Up to 4 for what a speaker did or plans; below 1 for what addresses the other or points back."""
    worth = (2.0 if _DID.search(sentence) else 1.0) * (0.5 if _ADDRESSED.search(sentence) else 1.0)
    worth *= 2.0 if OWN.search(sentence) and _WHEN.search(sentence) else 1.0
    return worth * (0.5 if _POINTING.match(spoken(sentence)) else 1.0)


def stands_alone(sentence: str) -> float:
    """`substance`, and less for a fragment and for a sentence that leans on the one before it."""
    said = sentence.strip()
    whole = said[-1:] in '.!?。！？…"”»)’' and (said[:1].isalnum() or said[:1] in '"“«(¿¡')
    whole = whole and not said.count('"') % 2 and said.count("“") == said.count("”")
    return substance(said) * (1.0 if whole else 0.3) * (0.6 if _LEANING.match(said) else 1.0)


def _entry(said: str) -> float:
    return 0.2 if _REFERENCE.search(said) or _INITIALS.search(said) else 1.0


def _clause(said: str) -> float:
    """Little for words in a row without grammar, as in a menu; less for a heading without a verb."""
    words = [word.strip("\"'“”‘(),.;:!?").casefold() for word in said.replace("’", "'").split()]
    words = [word for word in words if word]
    if len(words) < 4 or not said[:80].isascii() and not _latin(said):
        return 1.0
    grammar = sum(word in _GRAMMAR for word in words)
    if grammar < _LEAST_GRAMMAR * len(words):
        return 0.3
    if _ENGLISH.isdisjoint(words) or not _CLAUSE.isdisjoint(words):
        return 1.0
    acts = any("'" in word for word in words) or any(
        word.endswith(("ed", "ing", "s")) for word in words[1:]
    )
    return 1.0 if acts else 0.5


def _latin(said: str) -> bool:
    letters = [ch for ch in said[:80] if ch.isalpha()]
    return sum(ch < "\u0250" for ch in letters) * 2 > len(letters)
