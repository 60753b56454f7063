"""Which search a question wants, and why: exact words, the whole corpus, or passages and entities.

Takes a question and a snapshot; gives the mode `text`, `global` or `fused`, with one sentence of reason. Looks at the
words and at whether what they name is in the corpus; asks no model.
"""

from __future__ import annotations

import re

from graphrag_mcp.query import fused, global_
from graphrag_mcp.query.words import quoted
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.types import content_id

# Words about a corpus as a whole. Prefixes, since most of these languages inflect; CJK have no word ends at all.
_OVERVIEW = re.compile(
    r"\b(?:(?:main|major|key|overall|common|central|recurring|general)\s+(?:\w+\s+){0,2}?(?:theme|topic|idea|trend|"
    r"subject|issue|point|pattern)s?|themes|overview|summar(?:y|ise|ize|ies)|big\s+picture|as\s+a\s+whole|"
    r"trends|(?:corpus|collection|dataset|documents?|texts?|files|notes)\s+(?:is|are)?\s*about|"
    r"themen|überblick|zusammenfass\w*|hauptthem\w*|worum\s+geht|insgesamt|"
    r"thèmes?|aperçu|résum\w*|vue\s+d.ensemble|tendances?|temas?|resum\w*|panorama|tendencias?|visão\s+geral|"
    r"temi|riassum\w*|panoramica|tendenze|overzicht|samenvat\w*|thema.s|"
    r"темы|темах|обзор\w*|резюме|тенденци\w*|в\s+целом|кратко\w*)\b"
    r"|主题|主題|概述|概览|概要|总结|總結|综述|趋势|趨勢|整体|主要内容|全体|要約|まとめ|テーマ|傾向|주제|요약|개요|전반|동향"
    r"|ملخص|مواضيع|موضوعات|نظرة عامة|सारांश|विषय|अवलोकन|özet|tema(?:lar|ları)",
    re.IGNORECASE,
)
# One word that no one would write in a sentence: a code, a path, an identifier, a number with signs in it.
_IDENTIFIER = re.compile(
    r"(?=\S{3,200}\Z)(?:[\w.]*[A-Za-z]\w*(?:_|::|->|/|\\|\.(?=\w))[\w./\\:>-]*(?:\(\))?|[A-Za-z]+[-_]?\d[\w./-]*|"
    r"[a-z]+[A-Z]\w*(?:\(\))?|\d[\d.,:/_-]{2,}\w*|0x[0-9a-fA-F]+|[0-9a-f]{7,40}|[\w.+-]+@[\w-]+\.[\w.]+|"
    r"\w+://\S+|[A-Z][A-Z0-9]*_[A-Z0-9_]+)\Z"
)


def choose(query: str, snapshot: Snapshot) -> tuple[str, str]:
    """(mode, reason). `fused` is what local_search does."""
    query = query.strip()
    if not query:
        return "fused", "The question is empty, so this is an overview."
    if quoted(query):
        return "text", "The question quotes words, which must stand in the text."
    named = _names_here(query, snapshot)
    if _IDENTIFIER.match(query) and not named:
        return "text", "The question is one identifier or number, to be found as it is written."
    overview = _OVERVIEW.search(query)
    if overview and not named:
        return "global", f"{overview.group().strip()!r} asks about the corpus as a whole, and nothing in it is named."
    if global_.asked_about(snapshot, query) is None:
        return "global", "The question names nothing in particular, so it is about the corpus as a whole."
    if named:
        return "fused", f"The question names {named!r}, which is in the corpus."
    return "fused", "The question asks for something in particular."


def _names_here(query: str, snapshot: Snapshot) -> str:
    """The first name of the question that is an entity of this corpus; "" when none is."""
    from graphrag_mcp.extract import extract

    names = [mention for mention in extract(query[: fused.NAME_CHARACTERS]) if mention.strong]
    ids = {content_id("entity", mention.key): mention.form for mention in names}
    known = snapshot.by_key("entities", list(ids), "id", ["id"])["id"].to_pylist()
    return ids[known[0]] if known else ""
