"""Does a question ask what a collection is about, or after something in it?

It asks for an overview where it holds no term that the corpus can search by: words of ASKING and words that stand
nowhere select no document before another. One word alone is searched for. Of 120 questions in twelve languages that
ask for an overview 98 are recognised, with 3 of 120 others (tests/query/asking.toml)."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise

from graphrag_mcp.names.lexicon import is_grammar
from graphrag_mcp.query.question import MARKS, QUERY_CHARACTERS, is_stem, no_form_occurs, term_worth
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.terms import is_cjk, query_terms, stop_word

# Words that ask for an overview, and words for the collection.
ASKING = """
about theme topic subject overview summary summarize summarise gist outline trend takeaway recap main key important
common recurring cover discuss deal tell list show describe explain kind people event issue point thing here
document file text article note page paper material collection corpus dataset archive folder library content tldr
everything whole across give say find know share together idea
much many mention disagree mostly author piece group major view opinion story matter language long notes
provide high level whats mes mis du parlent hablan principales principaux principali principais
dokumente dateien texte notizen unterlagen sammlung ordner inhalt hier alles thema themen hauptthemen überblick
zusammenfassung zusammen fasse geht gibt steht stehen handeln wichtigsten fichiers dossier contenu thème sujets résumé
aperçu parle contient documentos archivos textos notas carpeta colección contenido temas resumen trata contiene hay
documenti raccolta argomenti temi riassunto panoramica документы файлы тексты материалы папка темы обзор кратко главное
主题 概述 概览 总结 文件 文件夹 文档 笔记 资料 内容 关于 什么 主要 所有 全部 哪些 要約 概要 テーマ 文書 資料 主な 何
요약 개요 주제 문서 내용 무엇"""


# Of a script without blanks a word is found within others.
_WITHIN = re.compile("|".join(word for word in ASKING.split() if is_cjk(word[0])))


@cache
def asking_terms() -> frozenset[str]:
    return frozenset(query_terms(ASKING, len(ASKING)))


def asked_about(snapshot: Snapshot, query: str) -> dict[str, float] | None:
    """The worth of the terms that say what a question asks about; None where it asks for an overview."""
    found = query_terms(query) if _is_one_word(query) else _divided(query)[1]
    worth, _ = term_worth(snapshot, found)
    return worth or None


def _is_one_word(query: str) -> bool:
    """Is it one word, which is searched for where texts hold it, such as "paper"?"""
    word = query.strip(f"{MARKS} ")
    return " " not in word and (not is_cjk(word[:1]) or word in ASKING.split())


def asks_for_unknown(snapshot: Snapshot, query: str) -> bool:
    """Does a question hold words that stand nowhere, and none that asks for an overview?"""
    asks, found = _divided(query)
    return bool(found) and not asks and not term_worth(snapshot, found)[0]


def _divided(query: str) -> tuple[bool, list[str]]:
    """Does a question hold a word that asks for an overview; and its terms without such and without grammar."""
    asking = asking_terms()
    every = query_terms(_WITHIN.sub(" ", query[:QUERY_CHARACTERS]))
    pairs = [(form, stem) for form, stem in pairwise(every) if is_stem(stem, form)]
    also = {term for pair in pairs if not asking.isdisjoint(pair) for term in pair}
    left_out = asking | also
    found = [
        term for term in every if term not in left_out and not (stop_word(term) or is_grammar(term))
    ]
    return _WITHIN.search(query) is not None or not left_out.isdisjoint(every), found


def nowhere(snapshot: Snapshot, query: str) -> list[str]:
    """The words of a question for an overview that stand nowhere in the corpus, without those that ask."""
    found = _divided(query)[1]
    known, unknown = term_worth(snapshot, found)
    words = [word.strip(MARKS) for word in query.split()]
    return [
        word
        for word in words
        if no_form_occurs(word, known, set(unknown)) and not _WITHIN.search(word)
    ]
