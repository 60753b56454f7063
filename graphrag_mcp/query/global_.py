"""Global search: what the corpus as a whole says about a question.

Takes a snapshot and a question. Without a model it gives a map of the topics where the question names
none, and otherwise sentences from many documents, grouped by topic, after what a model or an agent
wrote of it in community reports. With a model, reports are rated down the tree, read in batches for
points, and the points are joined to an answer. A batch holds as much as a model reads well; reports
are numbered inside each prompt in the order of their weight, never by stored ids.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import pyarrow.compute as pc

from graphrag_mcp.llm import prompts
from graphrag_mcp.llm.asker import Ask, Asker
from graphrag_mcp.llm.protocols import Message
from graphrag_mcp.packing.budget import (
    Item,
    Section,
    clamp_budget,
    compose,
    finish,
    one_line,
    read_cursor,
    referenced_ids,
    render_references,
    write_cursor,
)
from graphrag_mcp.packing.citations import Checked, data, restored
from graphrag_mcp.query import context, hits, local, ranking, retrieval, topics
from graphrag_mcp.query.answer import (
    NO_MODEL,
    POINTS_SCHEMA,
    RATING_SCHEMA,
    Answered,
    Meter,
    Point,
    Wish,
    answer,
    answered,
    asked,
    failed,
    note,
    read_points,
    read_rating,
    unfinished,
    waited,
    word_limit,
)
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.text.folding import SIMPLIFY
from graphrag_mcp.text.terms import counted, is_cjk, query_terms, stop_word, terms
from graphrag_mcp.text.tokens import count_tokens
from graphrag_mcp.types import SearchResult, content_id

if TYPE_CHECKING:
    from graphrag_mcp.query.filters import Filters


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


Row = dict[str, Any]
Part = tuple[str, Snapshot, "Filters | None"]  # name of the corpus, what passes, the filters
_STATEMENTS = re.compile(r"(?<=\])\s+")  # where one ends: behind its references
_IDS = re.compile(r"\b[0-9a-f]{32}\b")
_TOLD = re.compile(r"(?<=\)\])\s*(?=\S)")  # ... also where no blank follows, as in Chinese
REPORT = (
    "id",
    "n",
    "level",
    "title",
    "summary",
    "findings",
)  # what is kept of reports: their lists of ids are longer
Finding = tuple[
    float, int, int, Row, str
]  # score, place of its report, number in it, the report, the text


def ranked(
    snapshot: Snapshot, worth: Mapping[str, float], kept: Sequence[Rated], detailed: bool
) -> list[Finding]:
    """Findings, best first: two thirds the report's rating, one third the finding's own words."""
    whole = sum(worth.values()) or 1.0
    rating = {one.id: one.rating for one in kept}
    found: list[Finding] = []
    for place, row in enumerate(snapshot.served("reports", [one.id for one in kept], REPORT)):
        findings = context.findings(row) or [
            {"summary": row["title"], "explanation": row["summary"]}
        ]
        for number, one in enumerate(
            findings, 1
        ):  # of equal points those of the weightier report first
            text, words = _point(
                str(one.get("summary", "")), str(one.get("explanation", "")), detailed
            )
            own = min(1.0, similarity(words, worth) / whole) if worth else 1 / number
            found.append((20 * rating[row["id"]] * 2 / 3 + 100 * own / 3, place, number, row, text))
    return sorted(found, key=lambda one: (-round(one[0], 6), one[1], one[2]))


def passing(
    snapshot: Snapshot, found: Sequence[Finding], documents: Collection[str]
) -> list[Finding]:
    """The points with only those statements that cite a document that passes, or no text at all: a
    report on a wide community tells of many documents."""
    wanted = {id for one in found for id in referenced_ids(one[4]).get("Sources", ())}
    units = (
        snapshot.by_key("text_units", sorted(wanted), "id", ["id", "document_id"])
        if wanted
        else None
    )
    pairs = (
        zip(units["id"].to_pylist(), units["document_id"].to_pylist(), strict=True) if units else ()
    )
    fits = {id for id, document in pairs if document in documents}
    kept = []
    for score, place, number, row, text in found:
        told = [
            one
            for one in _TOLD.split(text)
            if not (ids := referenced_ids(one).get("Sources")) or not fits.isdisjoint(ids)
        ]
        if told:
            kept.append((score, place, number, row, " ".join(told)))
    return kept


def communities_of(found: Sequence[Finding]) -> list[str]:
    return list(dict.fromkeys(f"c{one[3]['n']}" for one in found))


def point_items(
    snapshot: Snapshot,
    found: Sequence[Finding],
    kept: Sequence[Rated],
    detailed: bool,
    explain: bool,
) -> list[Item]:
    """Some of the points as the reader sees them, with their references resolved."""
    rating = {one.id: one.rating for one in kept}
    rank = {one.id: f"{place} of {len(kept)} by relevance" for place, one in enumerate(kept, 1)}
    aliases, cited = context.resolve_references(snapshot, [one[4] for one in found])
    items = []
    lines = {"line_start": 0, "line_end": 0} if not detailed else {}
    for score, _, number, row, text in found:
        shown = render_references(text, aliases)
        alias = f"c{row['n']}"
        places = [place for id, place in cited.items() if f"{id})" in shown or f"{id}," in shown][
            :5
        ]
        at = {"score": round(min(score / 100, 1.0), 3)} | lines
        scored = [place.model_copy(update=at) for place in places]
        line = f"- {shown} ({one_line(row['title'], 60)}, {alias})"
        if explain:
            own = f"report {rank[row['id']]}, rated {min(rating[row['id']], 5.0):.1f} of 5"
            asked = " and asked for by a filter" if rating[row["id"]] > 5.0 else ""
            line += f" (why: {own}{asked}; finding {number} of the report at level {row['level']})"
        items.append(Item(f"{alias}.{number}", line, None, "Points", score, also=tuple(scored)))
    return items


@lru_cache(maxsize=2_000)
def _point(summary: str, explanation: str, detailed: bool) -> tuple[str, str]:
    """A finding on one line, whole statements with their references, without the summary where they
    begin with it; and its terms. Remembered, because reports of large communities come with every
    question."""
    limit = 1_600 if detailed else 500
    kept: list[str] = []
    length = 0
    for piece in _STATEMENTS.split(explanation.strip()):
        body, mark, references = piece.partition("[Data:")
        if kept and length + len(body) > limit:
            break
        kept.append(one_line(body, limit) + (f" {mark}{references}" if mark else ""))
        length += len(body)
    body = " ".join(kept)
    if body.startswith(summary.rstrip(".…")) or not summary:
        text = body
    else:
        text = f"**{one_line(summary, 200)}** {body}"
    return text, " ".join(
        terms(_IDS.sub("", text))
    )  # each id has some ten terms, of which none says anything


def similarity(text_terms: str, worth: Mapping[str, float]) -> float:
    """The worth of the question's terms that a text holds, more where it keeps coming back to them."""
    padded, doubled, score = f" {text_terms} ", "", 0.0
    for term, value in worth.items():
        if (word := f" {term} ") in padded:
            doubled = doubled or padded.replace(
                " ", "  "
            )  # so that the blank between two of them counts for both
            count = doubled.count(word)
            score += value * (0.5 + 0.5 * (count - 1) / (count + 2))
    return score


_ancestors: WeakKeyDictionary[Snapshot, dict[str, str]] = WeakKeyDictionary()
DEFAULT_TOKENS = 6_000
CANDIDATES = 200  # reports that full text proposes
THRESHOLD = 1.0  # a rating from which a report is relevant
READ = 40  # reports read in full at most
INCLUDED = 10.0  # added to the rating of reports that an `entity=` filter asks for
THEMES = 8  # titles shown when no report is relevant
FLOOR = 0.2  # share of the question's words that the best report must cover to set the scale alone
# a parent is at least this much as relevant as its best child, else its branch would be cut
FROM_CHILD = 0.8
ANCESTORS = 3_000  # reports whose terms are remembered, some 3 MB


# Words about the asking, not about what is asked: "What is said about X?" is about X.
_ASKING = frozenset(
    terms(
        "say says said tell tells told describe described description mention mentioned discuss discussed explain give "
        "list main major key important overall general common theme themes topic topics subject subjects point points "
        "overview summary summarize summarise corpus document documents text texts dataset collection content contents "
        "happen happens happened affect affects affected come comes came occur occurred case cases involve involved "
        "way ways reason reasons example examples different various several roughly approximately share shares part "
        "parts proportion percentage articles article files file stories story entire whole everything much many each "
        "name people persons places things most "
    )
)


# Words about how it is asked, which count little beside others: "what was its state at the end".
_FRAMING = frozenset(
    terms(
        "issue issues event events period time times over cover covers covered decide decides decided decisive report "
        "reports reported state status end ends ended stand stands stood run runs running develop develops developed "
        "development developments role roles matter matters change changes changed become became between outcome "
        "outcomes result results resulted resolve resolved dominate dominates dominated according appear appears "
        "appeared connect connects connected relate related relationship compare compared difference differences "
        "disagree agree course finally eventually start started begin began follow followed view views opinion opinions "
        "detail details fact facts figure figures kind kinds type types another first last next long later "
    )
)
LITTLE = 0.15


@dataclass(slots=True)
class Rated:
    """A report that was looked at. `own` is the rating by its own words, `rating` with what its
    children lend.
    """

    id: str
    level: int
    parent: str
    childless: bool
    own: float
    rating: float
    weight: float
    rank: float


def global_search(
    snapshot: Snapshot,
    query: str,
    *,
    level: int = -1,
    max_tokens: int = DEFAULT_TOKENS,
    cursor: str = "",
    response_format: str = "concise",
    filters: Sequence[str] = (),
    min_rating: float = 0.0,
    history: Sequence[str] = (),
    explain: bool = False,
    asker: Asker | None = None,
    answer: bool = False,
    response_type: str = "",
    instructions: str = "",
    general_knowledge: bool = False,
    on_text: Callable[[str], None] | None = None,
    seconds: float = 0.0,
) -> SearchResult:
    """Points from community reports, and with `answer` what a model makes of the reports.

    level -1 goes down the tree where it is relevant; n takes that level. `filters` and `min_rating`
    leave reports out before any is chosen. `seconds`: how long to wait for the model, 0 for as long
    as it takes. A later page has points alone.
    """
    budget, note = clamp_budget(max_tokens, DEFAULT_TOKENS)
    nothing = context.empty_corpus(snapshot, "global")
    if nothing is not None:
        return finish(nothing, budget)
    query = query.strip()
    settings = (level, response_format, explain, [*filters, min_rating])
    turns, looked_for, before = with_history(history, query, budget)
    asked, generation = f"global|{looked_for}|{settings}", snapshot.manifest.generation
    offset = read_cursor(cursor, generation, asked, 1)
    if offset is None:
        return finish(context.stale(snapshot, "global"), budget)
    narrowing, snapshot = local.narrowed(snapshot, filters, min_rating)
    result = SearchResult(mode="global", corpus=snapshot.manifest.corpus)
    stale = "Communities are being brought up to date."
    late = stale if "communities" in snapshot.manifest.stale else ""
    notes = [local.told(note, narrowing), late, too_deep(snapshot, level)]
    result.hint = " ".join(filter(None, notes))

    def page(after: tuple[int, ...]) -> str:
        return write_cursor(generation, asked, after)

    def plain(result: SearchResult) -> SearchResult:
        result.text = "" if cursor.strip() else before
        return show(
            result,
            [("", snapshot, narrowing)],
            looked_for,
            budget,
            level=level,
            offset=offset[0],
            cursor=page,
            detailed=response_format == "detailed",
            explain=explain,
        )

    if answer and query and snapshot.count("reports") and not cursor.strip():
        wish = Wish(response_type, instructions, general_knowledge, on_text, seconds, before)
        return with_answer(snapshot, query, level, result, budget, page, asker, wish, plain)
    return plain(result)


def show(
    result: SearchResult,
    parts: Sequence[Part],
    query: str,
    budget: int,
    *,
    level: int = -1,
    offset: int = 0,
    cursor: Callable[[tuple[int, ...]], str] = lambda _: "",
    detailed: bool = False,
    explain: bool = False,
) -> SearchResult:
    """The result without a model, of one corpus (named "") or several: a map of the topics, or what
    the documents say on the question. What stands in the result's text already comes first.
    """
    if all(asked_about(snapshot, query) is None for _, snapshot, _ in parts):
        result = topics.overview(
            result, parts, budget, level=level, offset=offset, cursor=cursor, detailed=detailed
        )
        return result if result.communities or offset else _nothing(result, parts, budget)
    page = hits.page_of(result, budget)
    left, taken = _extract(page, parts, query, result, level, offset, explain)
    if not taken and not result.communities and not offset:
        return _nothing(result, parts, budget)
    return hits.finished(result, page, left, offset + taken, cursor)


def _extract(
    page: hits.Page,
    parts: Sequence[Part],
    query: str,
    result: SearchResult,
    level: int,
    offset: int,
    explain: bool,
) -> tuple[int, int]:
    """Add what was written on the question in reports, then one sentence from each of many places,
    by topic: how many sentences have had no room, and how many are shown."""
    order: list[tuple[str, hits.Line]] = []
    for name, snapshot, kept in parts:
        if not offset:
            result.communities += _written(page, name, snapshot, query, level, kept)
        found = local.find(snapshot, query, filters=kept)
        if not found.passages or local.unheard_of(found):
            continue
        source = local.source_of(snapshot, found, name, explain=explain)
        worth = hits.without_people(asked_about(snapshot, query) or source.worth, source.names)
        prefix = f"{name}/" if name else ""
        for topic, held in topics.on_question(snapshot, worth, source, level, kept):
            head = f"## [{prefix}c{topic.n}] {topic.title}" if topic else "## Of no topic"
            dated = sum(bool(line.hit.date) for line in held) * 2 > len(held)
            order += [(head, line) for line in (sorted(held, key=_when) if dated else held)]
            if topic and not offset:
                result.communities.append(f"{prefix}c{topic.n}")
    result.communities = list(dict.fromkeys(result.communities))
    result.coverage |= {"documents": len({line.hit.part_of for _, line in order})}
    shown = 0
    for head, group in groupby(order[offset:], key=lambda one: one[0]):
        held = [line for _, line in group]
        added = hits.show_lines(page, held, head=head)
        shown += added
        if added < len(held):
            break
    return len(order) - offset - shown, shown


def _when(line: hits.Line) -> tuple[str, float]:
    return line.hit.date or "9999", -line.value


def _written(
    page: hits.Page, name: str, snapshot: Snapshot, query: str, level: int, kept: Filters | None
) -> list[str]:
    """Add the points of reports that a model or an agent wrote, in half of the room at most: ids of
    their communities."""
    chosen, _ = select(snapshot, query, level)
    if kept is not None and kept.first:
        chosen = included_first(snapshot, chosen, kept)
    ids = [one.id for one in chosen]
    rows = snapshot.by_key("reports", ids, "id", ["id", "method"]).to_pylist()
    written = {row["id"] for row in rows if row["method"] != "extractive"}
    found = ranked(
        snapshot,
        asked_about(snapshot, query) or {},
        [one for one in chosen if one.id in written],
        False,
    )
    if kept is not None and kept.documents is not None:
        found = passing(snapshot, found, kept.documents)
    aliases, cited = context.resolve_references(snapshot, [one[4] for one in found])
    least, communities = page.room // 2, []
    prefix = f"{name}/" if name else ""
    for _, _, _, row, text in found:
        shown = render_references(text, aliases)
        shown = context.marked(name, shown) if name else shown
        alias = f"{prefix}c{row['n']}"
        places = [
            context.placed(name, place, 1.0) if name else place
            for id, place in cited.items()
            if f"{prefix}{id})" in shown or f"{prefix}{id}," in shown
        ]
        line = f"- {shown} ({one_line(row['title'], 60)}, {alias})"
        if page.room - count_tokens(line) < least or not page.add(line, places):
            break
        communities.append(alias)
    return list(dict.fromkeys(communities))


def _nothing(result: SearchResult, parts: Sequence[Part], budget: int) -> SearchResult:
    """No document speaks of the question: say so, and what they do speak of."""
    result.state = "not_found"
    said = []
    for name, snapshot, kept in parts:
        total = snapshot.manifest.counters.get("documents", 0)
        passed = total if kept is None or kept.documents is None else len(kept.documents)
        among = f", of which {passed} pass the filters" if passed != total else ""
        said.append(
            f"corpus {name or snapshot.manifest.corpus} ({counted(total, 'documents')}{among})"
        )
    result.text = f"Nothing on this was found in {' or '.join(said)}."
    listed = []
    for name, snapshot, kept in parts:
        prefix = f"{name}/" if name else ""
        listed += [(f"{prefix}{id}", title) for id, title in topics.titles(snapshot, kept, THEMES)]
    result.communities = [id for id, _ in listed]
    advice = "Ask again with other filters, or without."
    if listed:
        lines = [f"- [{id}] {title}" for id, title in listed]
        result.text = "\n".join([result.text, "The largest topics are:", *lines])
        advice = "Ask with names or words from these titles, or use local_search."
    result.hint = " ".join(filter(None, [result.hint, advice]))
    return finish(result, budget)


def with_history(history: Sequence[str], query: str, budget: int) -> tuple[list[str], str, str]:
    """The user turns, the question with the names that they add, and their block."""
    if not history:
        return [], query, ""
    from graphrag_mcp.query import local as earlier

    turns = earlier.user_turns(history)
    return (
        turns,
        " ".join([query, *earlier.history_keywords(turns, query)] if query else []),
        earlier.history_block(turns, budget),
    )


def included_first(snapshot: Snapshot, kept: Sequence[Rated], filters: Filters) -> list[Rated]:
    """Reports on the included entities before all others; where none was relevant, those of the
    finest communities.
    """
    ids = [row["id"] for row in filters.first]
    paths = snapshot.by_key("memberships", ids, "entity_id", ["path"])["path"].to_pylist()
    on = {id for path in paths for id in path}
    held = [one for one in kept if one.id in on]
    covered = {id for path in paths for id in path if any(one.id in path for one in held)}
    finest = [path[-1] for path in paths if path and path[-1] not in covered]
    every = all_rated(snapshot, "") if finest else {}
    held += [every[id] for id in dict.fromkeys(finest) if id in every]
    first = [replace(one, rating=INCLUDED + one.rating) for one in held]
    return [*first, *(one for one in kept if one.id not in on)]


def too_deep(snapshot: Snapshot, level: int) -> str:
    """A sentence when there is no such level."""
    deepest = (
        max(snapshot.rows("reports", "", ["level"])["level"].to_pylist(), default=0)
        if level > 0
        else 0
    )
    return (
        f"There is no level {level}; the deepest, {deepest}, was used." if level > deepest else ""
    )


# ---- which reports -----------------------------------------------------------------------------


def select(snapshot: Snapshot, query: str, level: int = -1) -> tuple[list[Rated], dict[str, int]]:
    """The relevant reports, best first, and how many were rated, kept and pruned."""
    total = snapshot.count("reports")
    coverage = {"reports": total, "rated": 0, "kept": 0, "pruned": 0}
    if not total:
        return [], coverage
    worth = asked_about(snapshot, query)
    if worth is None:
        return _ranked_by_weight(snapshot, level, coverage)
    rated = _rate(snapshot, worth) if worth else {}
    if level >= 0:
        deepest = max((one.level for one in rated.values()), default=0)
        chosen = [one for one in rated.values() if _at_level(one, min(level, deepest))]
    else:
        chosen = _descend(rated)
    kept = [one for one in chosen if one.rating >= THRESHOLD]
    kept.sort(key=lambda one: (-round(one.rating, 6), -round(one.weight, 6), -one.rank, one.id))
    kept = kept[:READ]
    coverage.update(rated=len(rated), kept=len(kept), pruned=len(rated) - len(kept))
    return kept, coverage


def all_rated(snapshot: Snapshot, query: str) -> dict[str, Rated]:
    """Every report by id, with its lexical rating (0 where no word of the question is in it)."""
    worth = asked_about(snapshot, query)
    rated = _rate(snapshot, worth) if worth else {}
    rows = context.every(snapshot, "reports", context.NUMBERS).to_pylist()
    family = _family(snapshot, [row["id"] for row in rows])
    most = max((row["n_text_units"] for row in rows), default=0) or 1
    for row in rows:
        own, rating = (
            (rated[row["id"]].own, rated[row["id"]].rating) if row["id"] in rated else (0.0, 0.0)
        )
        rated[row["id"]] = Rated(
            row["id"],
            row["level"],
            *family.get(row["id"], ("", True)),
            own,
            rating,
            row["n_text_units"] / most,
            row["rank"],
        )
    return rated


def whole_level(snapshot: Snapshot, query: str, level: int) -> tuple[list[Rated], dict[str, int]]:
    """All reports of a level and the childless ones above it: nearest to the question first, then
    the weightiest.
    """
    every = all_rated(snapshot, query)
    deepest = max((one.level for one in every.values()), default=0)
    chosen = [one for one in every.values() if _at_level(one, min(level, deepest))]
    chosen.sort(key=lambda one: (-round(one.rating, 6), -round(one.weight, 6), -one.rank, one.id))
    return chosen, {"reports": len(every), "rated": 0, "kept": len(chosen), "pruned": 0}


def asked_about(snapshot: Snapshot, query: str) -> dict[str, float] | None:
    """The worth of the terms that say what is asked about; None for an empty or a wholly general
    question.
    """
    asked = query[: retrieval.QUERY_CHARACTERS]
    if OVERVIEW.search(asked):  # with one word that stays, so that those of grammar go
        asked = f"{ASKING_ELSEWHERE.sub(' ', OVERVIEW.sub(' ', asked))} corpus"
    wanted = query_terms(ASKING_HAN.sub(" ", asked.translate(SIMPLIFY)))
    if all(term in _ASKING or (is_cjk(term[0]) and stop_word(term)) for term in wanted):
        return None
    worth, _ = ranking.term_worth(snapshot, wanted)
    worth = {term: value for term, value in worth.items() if term not in _ASKING}
    if worth.keys() <= _FRAMING:
        return worth
    return {term: value * (LITTLE if term in _FRAMING else 1) for term, value in worth.items()}


def _ranked_by_weight(
    snapshot: Snapshot, level: int, coverage: dict[str, int]
) -> tuple[list[Rated], dict[str, int]]:
    """No question: the reports of a level (the coarsest by default) by how much text they cover."""
    rows = context.every(snapshot, "reports", context.NUMBERS).to_pylist()
    family = _family(snapshot, [row["id"] for row in rows])
    most = max((row["n_text_units"] for row in rows), default=0) or 1
    deepest = max((row["level"] for row in rows), default=0)
    found = [
        Rated(
            id,
            row["level"],
            *family.get(id, ("", True)),
            0.0,
            0.0,
            row["n_text_units"] / most,
            row["rank"],
        )
        for row in rows
        for id in [row["id"]]
    ]
    chosen = [one for one in found if _at_level(one, min(max(level, 0), deepest))]
    chosen.sort(key=lambda one: (-round(one.weight, 6), -one.rank, one.id))
    coverage.update(rated=0, kept=len(chosen[:READ]), pruned=0)
    return chosen[:READ], coverage


def _at_level(one: Rated, level: int) -> bool:
    """Level n is the communities of that level and the childless ones above it: each entity once."""
    return one.level == level or (one.level < level and one.childless)


def _family(snapshot: Snapshot, ids: Sequence[str]) -> dict[str, tuple[str, bool]]:
    """Parent ("" for a root) and whether childless, by id."""
    rows = context.light(snapshot, "communities", ids, context.FAMILY)
    alone = pc.equal(pc.list_value_length(rows["children"]), 0).to_pylist()
    pairs = zip(rows["parent"].to_pylist(), alone, strict=True)
    return dict(zip(rows["id"].to_pylist(), pairs, strict=True))


def _rate(snapshot: Snapshot, worth: Mapping[str, float]) -> dict[str, Rated]:
    """Reports proposed by full text, and all their ancestors, rated 0 to 5 on a scale set by the
    best of them.
    """
    whole = sum(worth.values())
    proposed = snapshot.full_text("reports", list(worth), CANDIDATES, ["id", "terms"])
    words = dict(zip(proposed["id"].to_pylist(), proposed["terms"].to_pylist(), strict=True))
    family = _family(snapshot, list(words))
    missing = {parent for parent, _ in family.values() if parent} - family.keys()
    while missing:  # at most the depth of the tree
        above = _family(snapshot, sorted(missing))
        family |= above
        missing = {parent for parent, _ in above.values() if parent} - family.keys()
    words |= _terms_of(snapshot, sorted(family.keys() - words.keys()))
    rows = context.light(snapshot, "reports", list(words), context.NUMBERS).to_pylist()
    similar = {row["id"]: similarity(words[row["id"]], worth) / whole for row in rows}
    scale = 5 / max(max(similar.values(), default=0.0), FLOOR)
    most = max((row["n_text_units"] for row in rows), default=0) or 1
    rated = {
        row["id"]: Rated(
            row["id"],
            row["level"],
            *family.get(row["id"], ("", True)),
            similar[row["id"]] * scale,
            similar[row["id"]] * scale,
            row["n_text_units"] / most,
            row["rank"],
        )
        for row in rows
    }
    for one in sorted(rated.values(), key=lambda one: (-one.level, one.id)):
        if one.parent in rated:
            rated[one.parent].rating = max(rated[one.parent].rating, FROM_CHILD * one.rating)
    return rated


def _terms_of(snapshot: Snapshot, ids: Sequence[str]) -> dict[str, str]:
    """The terms of reports, remembered: the ancestors of what is proposed are few, and the same
    every time.
    """
    held = _ancestors.setdefault(snapshot, {}) if type(snapshot) is Snapshot else {}
    missing = [id for id in ids if id not in held]
    rows = snapshot.by_key("reports", missing, "id", ["id", "terms"])
    fresh = dict(zip(rows["id"].to_pylist(), rows["terms"].to_pylist(), strict=True))
    found = {id: held.get(id, fresh.get(id)) for id in ids}
    if len(held) + len(fresh) > ANCESTORS:
        held.clear()
    held |= fresh
    return {id: one for id, one in found.items() if one is not None}


def _descend(rated: Mapping[str, Rated]) -> list[Rated]:
    """From the roots to the children of what is relevant; a parent is kept only where no child of
    it is relevant.

    When nothing on a frontier is relevant, the whole next level is looked at before giving up,
    twice at most.
    """
    children: dict[str, list[Rated]] = {}
    for one in rated.values():
        children.setdefault(one.parent if one.parent in rated else "", []).append(one)
    kept: list[Rated] = []
    frontier = children.get("", [])
    fallback = 0
    while frontier:
        following: list[Rated] = []
        relevant = [one for one in frontier if one.rating >= THRESHOLD]
        if not relevant and not kept and fallback < 2:
            fallback += 1
            relevant = frontier
        for one in relevant:
            least = max(THRESHOLD, FROM_CHILD * one.own)
            below = [child for child in children.get(one.id, []) if child.rating >= least]
            following += below
            if not below and one.rating >= THRESHOLD:
                kept.append(one)
        frontier = following
    return kept


# ---- points ------------------------------------------------------------------------------------


def points(
    snapshot: Snapshot, query: str, kept: Sequence[Rated], detailed: bool, explain: bool = False
) -> tuple[list[Item], list[str]]:
    """Findings as items, best first, and the aliases of their communities."""
    found = ranked(snapshot, asked_about(snapshot, query) or {}, kept, detailed)
    return point_items(snapshot, found, kept, detailed, explain), communities_of(found)


SEED = (
    "reports"  # the order in which reports meet in batches comes from a hash of this and their ids
)
BATCH_TOKENS = 12_000  # of reports in one map prompt, and of points in the reduce prompt
MOST_BATCHES, MOST_REPORTS = (
    20,
    1_000,
)  # at an explicit level; the reports nearest to the question go in
REPORT_CHARACTERS = 12_000  # of one report
RATED_CHARACTERS = 2_400  # of a report that is only rated: title, summary, headlines
FALLBACKS = 2  # levels that are rated whole although nothing above them was relevant
_OWN_REFERENCES = re.compile(r"(?<!\s)\s*\[Data: [^\[\]\n]*\]")


@dataclass(slots=True)
class Read:
    """What came of reading: `points` with references to `names` (number -> alias), best first; how
    batches fared.
    """

    points: list[Point]
    names: dict[str, str]
    reports: int = 0
    batches: int = 0
    failed: int = 0
    reason: str = ""
    reduced: Answered | None = None


@dataclass(frozen=True, slots=True)
class Chosen:
    """The reports to read, what was counted on the way to them, and why ratings were missing (""
    when none was).
    """

    reports: list[Rated]
    coverage: dict[str, int]
    unrated: str = ""


# ---- a search with an answer ---------------------------------------------------------------------


def with_answer(
    snapshot: Snapshot,
    query: str,
    level: int,
    result: SearchResult,
    budget: int,
    page: Callable[[tuple[int, ...]], str],
    asker: Asker | None,
    wish: Wish,
    plain: Callable[[SearchResult], SearchResult],
) -> SearchResult:
    """The result of a global search with its answer. `plain` gives the one without a model, where
    there is no answer.
    """
    if asker is None or not asker.may_answer("reduce"):
        note(result, NO_MODEL)
        return plain(result)
    meter = Meter(asker)

    async def work() -> tuple[Chosen, Read]:
        chosen = await select_with_model(asker, snapshot, query, level)
        return chosen, await read(asker, snapshot, query, chosen.reports, wish, word_limit(budget))

    given = waited(asker, work(), wish.seconds)
    result.usage = meter.usage()
    if given is None:
        unfinished(result)
        return plain(result)
    (selected, outcome), chosen = given, given[0].reports
    result.coverage = selected.coverage | {
        "read": outcome.reports,
        "batches": outcome.batches,
        "batches_answered": outcome.batches - outcome.failed,
        "batches_failed": outcome.failed,
        "points": len(outcome.points),
    }
    if selected.unrated:
        note(
            result,
            f"{selected.coverage['unrated']} reports got no rating from the model ({selected.unrated}), "
            "so their words decided.",
        )
    if not outcome.points:
        return _without_points(result, selected, outcome, plain)
    reduced = outcome.reduced
    if reduced is None or not reduced.by:
        result.state = "failed"
        note(result, failed(reduced.reason if reduced else ""))
        return compose(
            result,
            [Section("Points", mapped_point_items(outcome), 1.0)],
            budget,
            lambda _: "",
            first="Points",
        )
    items, result.communities = _points(snapshot, query, chosen)
    section = Section("Points", items, 1.0)
    partly = f"{outcome.failed} of {outcome.batches} batches of reports gave no answer ({outcome.reason})."
    if outcome.failed:
        note(result, partly)
    result = answered(
        result, reduced, [section], budget, page, snapshot=snapshot, shown=items, first="Points"
    )
    result.state = "partial" if outcome.failed or selected.unrated else "answered"
    return result


def _without_points(
    result: SearchResult,
    selected: Chosen,
    outcome: Read,
    plain: Callable[[SearchResult], SearchResult],
) -> SearchResult:
    """The model gave no point: it found nothing relevant, or it did not answer."""
    if selected.unrated and not selected.reports:
        state, said = "failed", failed(selected.unrated)
    elif not outcome.failed:
        looked = max(outcome.reports, selected.coverage.get("rated", 0))
        state, said = "", f"The model found nothing on it in {counted(looked, 'reports')}."
        result.method = ""
    elif outcome.failed == outcome.batches:
        state, said = "failed", failed(outcome.reason)
    else:
        state = "partial"
        said = f"{outcome.failed} of {outcome.batches} batches of reports gave no answer ({outcome.reason})."
    note(result, said)
    result = plain(result)
    result.state = state or result.state
    return result


def _points(snapshot: Snapshot, query: str, kept: Sequence[Rated]) -> tuple[list[Item], list[str]]:
    items, communities = points(snapshot, query, kept[:READ], False)
    return items, communities[:20]


# ---- which reports -------------------------------------------------------------------------------


async def select_with_model(asker: Asker, snapshot: Snapshot, query: str, level: int) -> Chosen:
    """The reports to read, and how many were rated, kept and pruned.

    level -1: from the roots down, as far as the model finds a report relevant. level n: that level
    and the childless reports above it, the lexically nearest first. A question about nothing in
    particular takes the weightiest.
    """
    if level >= 0:
        return Chosen(*await asyncio.to_thread(whole_level, snapshot, query, level))
    if asked_about(snapshot, query) is None:
        return Chosen(*await asyncio.to_thread(select, snapshot, query, level))
    every = await asyncio.to_thread(all_rated, snapshot, query)
    coverage = {"reports": len(every), "rated": 0, "kept": 0, "pruned": 0}
    children: dict[str, list[Rated]] = {}
    for one in every.values():
        children.setdefault(one.parent if one.parent in every else "", []).append(one)
    kept, rated, missing = await _descend_with_model(asker, snapshot, query, children)
    kept.sort(key=lambda one: (-one.rating, -round(one.own, 6), -round(one.weight, 6), one.id))
    kept = kept[:READ]
    coverage.update(rated=rated, kept=len(kept), pruned=rated - len(kept))
    if missing:
        coverage["unrated"] = len(missing)
    return Chosen(kept, coverage, missing[0] if missing else "")


async def _descend_with_model(
    asker: Asker, snapshot: Snapshot, query: str, children: dict[str, list[Rated]]
) -> tuple[list[Rated], int, list[str]]:
    """Reports kept, how many were rated, and why ratings are missing.

    Level by level: rate, go on below what is relevant. A parent is kept only where no rated child
    is relevant.

    On each level at most half of the ratings that are left are spent while there are levels below
    it, so that a broad top does not keep the search from going down; lexically nearest first. Where
    the model gives no rating the lexical one stands in.
    """
    frontier = children.get("", [])
    kept: dict[str, Rated] = {}
    missing: list[str] = []
    rated = fallback = 0
    while frontier and rated < READ:
        left = READ - rated
        below = any(children.get(one.id) for one in frontier)
        frontier.sort(
            key=lambda one: (-round(one.rating, 6), -round(one.weight, 6), -one.rank, one.id)
        )
        taken = frontier[: max(1, left // 2) if below else left]
        ratings, reasons = await _ratings(asker, snapshot, query, taken)
        missing += reasons
        rated += len(taken)
        marked = [
            replace(one, rating=float(value)) for one, value in zip(taken, ratings, strict=True)
        ]
        relevant = [one for one in marked if one.rating >= THRESHOLD]
        for one in relevant:
            kept[one.id] = one
            kept.pop(one.parent, None)
        if not relevant and not kept and fallback < FALLBACKS:
            fallback += 1
            relevant = frontier
        frontier = [child for one in relevant for child in children.get(one.id, [])]
    return list(kept.values()), rated, missing


async def _ratings(
    asker: Asker, snapshot: Snapshot, query: str, some: Sequence[Rated]
) -> tuple[list[float], list[str]]:
    """One rating of 0 to 5 for each report, all asked for at once; and the reasons where the model
    gave none.
    """
    found = await asyncio.to_thread(context.rows, snapshot, "reports", [one.id for one in some])
    rows = {row["id"]: row for row in found}
    prompt = prompts.load("rate", snapshot.folder)
    missing: list[str] = []

    async def rating(one: Rated) -> float:
        row = rows.get(one.id)
        if row is None:
            return 0.0  # damaged: nothing of it may be read
        text = prompt.substitute(report=data(_headlines(row)), question=data(query))
        ask = Ask("rate", (Message("user", text),), read_rating, lambda: -1, RATING_SCHEMA)
        given = await asked(asker, ask)
        if given.by:
            return float(given.value)
        missing.append(given.reason or "no reply")
        return one.rating

    return list(await asyncio.gather(*(rating(one) for one in some))), missing


def _headlines(row: Row) -> str:
    """Title, summary and the headlines of the findings, without references."""
    lines = [one_line(row["title"], 200), row["summary"]]
    lines += [f"- {one_line(str(one.get('summary', '')), 160)}" for one in context.findings(row)]
    return _OWN_REFERENCES.sub("", "\n".join(lines))[:RATED_CHARACTERS]


# ---- map and reduce ------------------------------------------------------------------------------


async def read(
    asker: Asker, snapshot: Snapshot, query: str, chosen: Sequence[Rated], wish: Wish, words: int
) -> Read:
    """Points out of the reports, in batches at once, and the answer that they come to."""
    weight = {one.id: one.weight for one in chosen}
    rows = await asyncio.to_thread(_rows, snapshot, list(weight)[:MOST_REPORTS])
    rows.sort(key=lambda row: (-round(weight[row["id"]], 6), row["id"]))
    number = {row["id"]: f"c{place}" for place, row in enumerate(rows, 1)}
    outcome = Read([], {number[row["id"]]: f"c{row['n']}" for row in rows}, len(rows))
    batches = _batches(rows)
    outcome.batches = len(batches)
    work = (_map(asker, snapshot, query, batch, weight, number, wish.history) for batch in batches)
    given = await asyncio.gather(*work)
    found: list[tuple[float, int, int, Point]] = []
    for at, (points, reason) in enumerate(given):
        outcome.failed += bool(reason)
        outcome.reason = outcome.reason or reason
        found += [(-point.score, at, place, point) for place, point in enumerate(points)]
    outcome.points = [point for *_, point in sorted(found, key=lambda one: one[:3])]
    if outcome.points:
        outcome.reduced = await answer(
            asker,
            query,
            _point_rows(outcome.points),
            outcome.names,
            wish,
            words=words,
            prompt="reduce",
            kind="reduce",
            folder=snapshot.folder,
        )
    return outcome


def _rows(snapshot: Snapshot, ids: Sequence[str]) -> list[Row]:
    """The reports in this order, as many as the batches hold."""
    left = MOST_BATCHES * BATCH_TOKENS
    rows = []
    for row in context.rows(snapshot, "reports", ids):
        left -= count_tokens(_report(row)) + 30
        if left < 0 and rows:
            break
        rows.append(row)
    return rows


def _batches(rows: Sequence[Row]) -> list[list[Row]]:
    """Shuffled by a hash, so that no batch holds one corner of the tree; inside a batch the
    weightiest first.
    """
    batches: list[list[Row]] = []
    size = 0
    for row in sorted(rows, key=lambda row: content_id(SEED, row["id"])):
        tokens = count_tokens(_report(row)) + 30
        if not batches or size + tokens > BATCH_TOKENS:
            batches.append([])
            size = 0
        batches[-1].append(row)
        size += tokens
    order = {row["id"]: place for place, row in enumerate(rows)}
    return [sorted(batch, key=lambda row: order[row["id"]]) for batch in batches]


def _report(row: Row) -> str:
    """A report on one line: summary and findings. Its own references are left out, points refer to
    the report.
    """
    parts = [row["summary"], *map(context.finding, context.findings(row))]
    return one_line(_OWN_REFERENCES.sub("", " ".join(parts)), REPORT_CHARACTERS).replace("|", "/")


async def _map(
    asker: Asker,
    snapshot: Snapshot,
    query: str,
    batch: Sequence[Row],
    weight: dict[str, float],
    number: dict[str, str],
    before: str = "",
) -> tuple[list[Point], str]:
    """The points of one batch with references to the whole's numbers, and why there are none when
    it failed.

    `before`: the block of earlier turns, which stands first.
    """
    lines = [
        f"{place}|{one_line(row['title'], 200).replace('|', '/')}|{weight[row['id']]:.2f}|{_report(row)}"
        for place, row in enumerate(batch, 1)
    ]
    rows = "\n\n".join(filter(None, [before, "\n".join(lines)]))
    text = prompts.load("map", snapshot.folder).substitute(reports=data(rows), question=data(query))
    ask = Ask(
        "map", (Message("user", text),), read_points, lambda: (), POINTS_SCHEMA, if_cut="shown"
    )
    given = await asked(asker, ask)
    if not given.by:
        return [], given.reason or "no reply"
    names = {f"c{place}": number[row["id"]] for place, row in enumerate(batch, 1)}
    points = [
        replace(point, description=restored(point.description, names).text.strip())
        for point in given.value
    ]
    return [point for point in points if point.description], ""


def _point_rows(points: Sequence[Point]) -> str:
    """Points for the reduce prompt, best first, as many as fit; at least one."""
    lines: list[str] = []
    left = BATCH_TOKENS
    for point in points:
        line = f"- (score {point.score:g}) {point.description}"
        left -= count_tokens(line) + 1
        if left < 0 and lines:
            break
        lines.append(line)
    return "\n".join(lines)


def mapped_point_items(outcome: Read) -> list[Item]:
    """The model's points as rows of context, for when they could not be joined."""
    items = []
    for place, point in enumerate(outcome.points, 1):
        checked: Checked = restored(point.description, outcome.names)
        items.append(
            Item(
                f"p{place}",
                f"- {one_line(checked.text, 1_500)} (score {point.score:g})",
                None,
                "Points",
            )
        )
    return items
