"""Does a question ask what a collection is about, or after something in it?

It asks for an overview where it holds no term that the corpus can search by: words of ASKING and words that stand
nowhere select no document before another. One word alone is searched for. Of 120 questions in twelve languages that
ask for an overview 98 are recognised, with 3 of 120 others (tests/query/asking.toml)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from graphrag_mcp.names.cjk import content_words
from graphrag_mcp.names.lexicon import is_grammar
from graphrag_mcp.query.question import MARKS, QUERY_CHARACTERS, is_stem, no_form_occurs, term_worth
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.terms import SIMPLIFY, is_cjk, query_terms, stop_word

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
主题 话题 概述 概览 概括 总结 介绍 要点 文件 文件夹 文档 文章 笔记 资料 材料 内容 事情 关于 什么 主要 重要 所有 全部 哪些 要約 概要 テーマ 文書 資料 主な 何
요약 개요 주제 문서 내용 무엇"""


# Of a script without blanks a word is found within others, in simplified characters.
_WITHIN = re.compile("|".join(word for word in ASKING.translate(SIMPLIFY).split() if is_cjk(word[0])))


@dataclass(frozen=True, slots=True)
class Asked:
    """What a question asks of a corpus: the `worth` of the terms that it asks about, none where it asks for an
    overview; `wide`: it holds a word that asks for one; `absent`: those of its other words that stand nowhere;
    `unknown`: all of them do, and none asks for an overview."""

    worth: Mapping[str, float]
    wide: bool
    absent: Sequence[str]
    unknown: bool


def asked(snapshot: Snapshot, query: str) -> Asked:
    """What a question asks. One word alone is searched for where texts hold it, such as "paper"."""
    simplified = query[:QUERY_CHARACTERS].translate(SIMPLIFY)
    others = _WITHIN.sub(" ", simplified)
    content = content_words(others)
    every = query_terms(content)
    asking = set(_asking_terms())
    pairs = [(form, stem) for form, stem in pairwise(every) if is_stem(stem, form)]
    asking |= {term for pair in pairs if not asking.isdisjoint(pair) for term in pair}
    wide = _WITHIN.search(simplified) is not None or not asking.isdisjoint(every)
    rest = (term for term in every if term not in asking)
    found = [term for term in rest if not (stop_word(term) or is_grammar(term))]
    worth, lost = term_worth(snapshot, found)
    unknown = bool(found) and not wide and not worth
    written = content if content != others else " ".join(word for word in query.split() if not _WITHIN.search(word))
    words = (word.strip(MARKS) for word in written.split())
    absent = [word for word in words if no_form_occurs(word, worth, set(lost))]
    alone = query.strip(f"{MARKS} ")
    if " " not in alone and (not is_cjk(alone[:1]) or alone in ASKING.split()):
        worth, _ = term_worth(snapshot, query_terms(query))
    return Asked(worth, wide, absent, unknown)


def asked_about(snapshot: Snapshot, query: str) -> Mapping[str, float] | None:
    """The worth of the terms that say what a question asks about; None where it asks for an overview."""
    return asked(snapshot, query).worth or None


@cache
def _asking_terms() -> frozenset[str]:
    return frozenset(query_terms(ASKING, len(ASKING)))
