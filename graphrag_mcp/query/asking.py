"""How a corpus as a whole is asked about in many languages: patterns, no code.

`OVERVIEW` finds the words that ask for themes or a summary; what is left of such a question without these words and
those of the other two patterns is what it asks about. Prefixes, since most of these languages inflect.
"""

from __future__ import annotations

import re

_KINDS = r"(?:people|persons|figures|characters|actors|names|entities|places|locations|organi[sz]ations|events|things)"
_KINDS_HAN = "(?:人物|人名|事件|地方|地点|组织|机构|概念|事情)"

# Taken out before the terms are made. CJK and Thai have no word ends at all.
OVERVIEW = re.compile(
    r"\b(?:(?:main|major|key|overall|common|central|recurring|general)\s+(?:\w+\s+){0,2}?(?:theme|topic|idea|trend|"
    r"subject|issue|point|pattern)s?|themes|overview|summar(?:y|ise|ize|ies)|big\s+picture|as\s+a\s+whole|"
    rf"(?:main|major|key|central|important|leading|recurring|principal)\s+{_KINDS}"
    rf"(?:\s*(?:,|and|or|&|,\s*and)\s*{_KINDS}\b){{0,4}}|"
    r"what(?:.s|\s+is|\s+are)\s+(?:all\s+)?(?:this|these|it|that|everything|here)(?:\s+all)?(?:\s+about)?(?=\W*$)|"
    r"what(?:.s|\s+is|\s+are)\s+(?:there\s+)?in\s+(?:here|this|these|it|all\s+this)(?=\W*$)|"
    r"(?:corpus|collection|dataset|documents?|texts?|files|notes)\s+(?:contain|cover|deal\s+with|talk\s+about)(?=\W*$)|"
    r"(?:topics|subjects)\s+(?:are\s+)?(?:covered|discussed|treated|there)|"
    r"trends|(?:corpus|collection|dataset|documents?|texts?|files|notes)\s+(?:is|are)?\s*about|"
    r"themen|überblick|zusammenfass\w*|hauptthem\w*|worum\s+geht|wovon\s+handeln|insgesamt|"
    r"thèmes?|aperçu|résum\w*|vue\s+d.ensemble|tendances?|de\s+quoi\s+(?:parlent|traitent)|temas?|resum\w*|panorama|"
    r"tendencias?|de\s+qu[eé]\s+(?:tratan|hablan)|visão\s+geral|(?:do\s+que\s+tratam|sobre\s+o\s+que\s+são)|"
    r"temi|riassum\w*|panoramica|tendenze|di\s+(?:che\s+)?cosa\s+(?:parlano|trattano)|overzicht|samenvat\w*|thema.s|"
    r"темы|темах|обзор\w*|резюме|тенденци\w*|в\s+целом|кратко\w*|теми|огляд\w*|"
    r"(?:о\s+ч[её]м|про\s+що)\s+(?:\w+\s+){0,3}?(?:документ|текст|материал|матеріал|файл)\w*|"
    r"özet\w*|tema(?:lar|ları)|(?:ana|genel|temel)\s+konu\w*|konuları?|nelerden\s+bahsed\w*|ne\s+hakkında|"
    r"chủ\s+đề|tổng\s+quan|tóm\s+tắt|nội\s+dung\s+chính)\b"
    r"|主题|主題|概述|概览|概要|总结|總結|综述|趋势|趨勢|整体|主要内容|全体|要約|まとめ|テーマ|傾向|주제|요약|개요|전반|동향"
    r"|ملخص|مواضيع|موضوعات|نظرة عامة|عن ماذا تتحدث|خلاصه|סיכום|תקציר|נושאים|סקירה"
    r"|सारांश|विषय|अवलोकन|किस बारे में|เกี่ยวกับอะไร|หัวข้อ|ประเด็น|ภาพรวม|สรุป|เนื้อหาหลัก",
    re.IGNORECASE,
)
ASKING_ELSEWHERE = re.compile(
    r"\b(?:news|articles?|documents?|notes|files?|everything|appears?|emerges?|across|fassen?|zusammen|gib|nenne|zeig\w*|"
    r"mir|uns|bitte|sind|alle[nrs]?|diese[nrs]?|eine[nr]?|wichtigste[nrs]?|inhalte?s?|dokumente?n?|texten?|principaux|"
    r"principales?|quel(?:le)?s|quoi|parle(?:nt)?|donne[rz]?|moi|l.ensemble|contenu|textes?|tous|dame|haz|documentos|"
    r"textos|contenido|archivos|todos|todas|estos|estas|cuáles|principali|quali|dammi|documenti|testi|contenuto|tutti|"
    r"questi|principais|quais|conteúdo|estes|belangrijkste|geef|documenten|teksten|inhoud|каковы|основн\w+|главн\w+|"
    r"документ\w*|текст\w*|содержани\w+|все|всё|всех|этих|ana|belge\w*|metin\w*|dosya\w*|nelerdir|nedir|neler|tüm|bütün|"
    r"tài\s+liệu|văn\s+bản|chính|tất\s+cả|hãy|của|các|những|này|là|gì|về|trong)\b"
    r"|文書|資料|記事|内容|主な|どんな|すべて|について|ください|お願い(?:し|致し|いたし)?|教えて?|何|で(?:す|した|しょう)か?|ますか?"
    # particles, but not within きのこ
    r"|(?<![ぁ-ゖ])(?:これら|この|その)|(?:を)?して|(?<![ぁ-ゖ])[のをはがにで]|[のをはがにで](?![ぁ-ゖ])"
    r"|주요|전체|무엇(?:인가요|입니까)?|문서\w*|내용\w*|해\s?주세요|(?<!\w)[은는이가을를의]\b"
    r"|الرئيسية|المستندات|الوثائق|النصوص|الملفات|جميع|(?<!\w)ال(?!\w)|המסמכים|הטקסטים|העיקריים"
    r"|मुख्य|दस्तावे[जज़]़?[\u0900-\u094d]*|(?<![\u0900-\u097f])(?:इन|सभी)(?![\u0900-\u097f])"
    r"|เอกสาร|ข้อความ|ทั้งหมด|เหล่านี้|นี้|หลัก|ของ|คือ|อะไร|บ้าง|ช่วย",
    re.IGNORECASE,
)
ASKING_HAN = re.compile(
    f"(?:主要|重要|关键|哪些|什么)的?{_KINDS_HAN}(?:[和与及、]{_KINDS_HAN}){{0,4}}"
    "|主要|主题|话题|议题|这里|这儿|内容|概述|概括|总结|介绍|文档|文件|文集|资料|语料库?|讲了?|提到|说了?|关于|整个|这[个些]|有?什么|哪些|是"
    "|一下|新闻|文章|报道|[请的了吗呢]"
)
