"""The searches and look-ups over a real index of the sample corpus, in English and Chinese."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.packing import budget as packing_budget
from graphrag_mcp.packing import sending
from graphrag_mcp.query import rank
from graphrag_mcp.query.batch import several
from graphrag_mcp.query.community import get_community_report
from graphrag_mcp.query.documents import list_documents
from graphrag_mcp.query.entity import get_entity
from graphrag_mcp.query.features import Weights
from graphrag_mcp.query.global_ import global_search
from graphrag_mcp.query.literals import quoted
from graphrag_mcp.query.local import local_search
from graphrag_mcp.query.render import Form
from graphrag_mcp.query.request import Request
from graphrag_mcp.query.source import get_source
from graphrag_mcp.query.text_search import MOST, search_text
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.text.prose import readable
from graphrag_mcp.types import IndexRequest, InlineText, Result
from tests.support.files import snapshot_of

QUESTION = "What did the court of inquiry conclude about Captain Renwick?"
CHINESE = "海槛最浅处有多少米？"


@pytest.fixture(scope="module")
def snapshot(sample_home: Path) -> Snapshot:
    return open_snapshot(sample_home / "corpora" / "sample")


@pytest.fixture(scope="module")
def texts(snapshot: Snapshot) -> dict[str, str]:
    """Texts of the documents by the alias that citations carry, and by full id."""
    rows = snapshot.rows("documents", "", ["id", "n", "text"]).to_pylist()
    return {id: row["text"] for row in rows for id in (f"d{row['n']}", row["id"])}


# ---- local ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "uri", "words"),
    [
        (QUESTION, ("meridian-tern.md", "inquiry-1969.txt"), "own error"),
        (CHINESE, ("back-run-analysis.md",), "十一点二米"),
        ("二〇一八年谁来码头接沈若岚？", ("shen-ruolan-diary.md",), "顾一舟"),
        ("How many hectares of eelgrass are there?", ("eelgrass-survey.md",), "118 hectares"),
    ],
)
def test_a_question_finds_its_passage_among_the_first(
    snapshot: Snapshot, question: str, uri: tuple[str, ...], words: str
) -> None:
    result = local_search(snapshot, question)
    assert result.state == "context" and words in result.text
    assert any(citation.uri.endswith(uri) for citation in result.citations[:2])


def test_citations_stand_best_first_and_give_the_exact_place(snapshot: Snapshot, texts: dict[str, str]) -> None:
    result = local_search(snapshot, QUESTION)
    scores = [citation.score for citation in result.citations]
    assert scores == sorted(scores, reverse=True) and scores[0] == 1.0 and len(scores) > 3
    for citation in result.citations:
        span = texts[citation.document_id][citation.char_start : citation.char_end]
        shown = result.text.split(f"[{citation.id}] ")[1].splitlines()
        lines = 1 if f"- [{citation.id}]" in result.text else 2
        words = max(re.split(r"[….]|[A-Z]: ", " ".join(shown[:lines])), key=len)  # without the speaker
        words = " ".join(words.split())[:30]
        assert words in " ".join(readable(span).split()) or citation.title in shown[0]


SEARCHES: dict[str, Callable[..., Result]] = {
    "local": local_search,
    "global": global_search,
    "text": search_text,
    "overview": lambda s, q, **k: local_search(s, "", **k),
    "entity": lambda s, q, **k: get_entity(s, "Tobias Fenn", **k),
    "report": lambda s, q, **k: get_community_report(s, "c1", **k),
    "source": lambda s, q, **k: get_source(s, ["d1", "d2", "d3"], **k),
}  # fmt: skip


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("budget", [50, 200, 450, 1500, 6000, 100_000])
def test_no_result_passes_its_budget(snapshot: Snapshot, search: str, budget: int) -> None:
    for question in (QUESTION, CHINESE, "🌊 back-run 🗼"):
        result = SEARCHES[search](snapshot, question, max_tokens=budget)
        used = min(max(budget, packing_budget.LOWEST), packing_budget.HIGHEST)
        tokens, characters = sending.size(result)
        assert tokens <= result.tokens <= used and characters <= packing_budget.CHARACTERS
        assert result.text and (used == budget or str(budget) in result.hint)


def test_pages_show_every_passage_exactly_once(snapshot: Snapshot) -> None:
    ranked = [one.id for one in rank.retrieve(snapshot, QUESTION).passages]
    rows = snapshot.by_key("passages", ranked, "id", ["n", "part", "parts"]).to_pylist()
    cursor, shown = "", []
    for _ in range(100):
        page = local_search(snapshot, QUESTION, max_tokens=1500, cursor=cursor)
        shown += [citation.id for citation in page.citations]
        cursor = page.next_cursor
        if not cursor:
            break
    every = [packing_budget.passage_alias(row) for row in rows]
    # what is relevant, without what repeats another passage
    assert len(shown) == len(set(shown)) > 5 and set(shown) <= set(every)
    assert shown[0] == every[0]


def test_a_cursor_of_another_question_or_generation_is_stale(snapshot: Snapshot) -> None:
    cursor = local_search(snapshot, QUESTION, max_tokens=600).next_cursor
    for result in (local_search(snapshot, CHINESE, cursor=cursor), search_text(snapshot, QUESTION, cursor=cursor)):
        assert (result.state, result.citations) == ("stale", []) and "Search again" in result.hint
    generation, rest = cursor.split(".", 1)
    assert local_search(snapshot, QUESTION, cursor=f"{int(generation) + 1}.{rest}").state == "stale"


def test_an_empty_question_gives_an_overview(snapshot: Snapshot) -> None:
    result = local_search(snapshot, "  ")
    assert (result.mode, result.state) == ("overview", "context") and result.communities
    assert result.coverage["documents"] > 10 and all(f"[{id}] " in result.text for id in result.communities)
    assert "  Names: " in result.text and result.citations and all(f"[{one.id}]" in result.text for one in result.citations)


def test_what_is_nowhere_is_not_found_and_near_names_are_given(snapshot: Snapshot) -> None:
    result = local_search(snapshot, "Xqzwv Calowey")
    assert (result.state, result.citations) == ("not_found", [])
    assert "Calloway" in result.text and "get_entity" in result.hint


@pytest.mark.parametrize("question", ["'", '"', "\\", "a OR b'; --", "(((", "\x00", "*:*", "🗼", "\ud800", "%_"])
def test_strange_questions_are_no_error(snapshot: Snapshot, question: str) -> None:
    for search in (local_search, global_search, search_text):
        assert search(snapshot, question).text
    assert get_entity(snapshot, question).text


def test_an_empty_corpus_says_what_to_do(tmp_path: Path) -> None:
    request = IndexRequest(texts=(InlineText("A note.", "a"),))
    index_documents(tmp_path / "c", request, Settings(home=tmp_path))
    empty = open_snapshot(tmp_path / "c")
    empty = Snapshot(empty.folder, type(empty.manifest)(corpus="c", generation=9))
    for search in (local_search, global_search, search_text):
        result = search(empty, "anything")
        assert (result.state, result.citations) == ("not_found", []) and "index_documents" in result.hint


# ---- global --------------------------------------------------------------------------------------


def test_global_gives_the_best_cited_sentence_of_each_document(snapshot: Snapshot) -> None:
    result = global_search(snapshot, "How does the back-run affect the eelgrass?")
    assert result.state == "context" and result.citations
    assert not re.search(r"\b[0-9a-f]{32}\b", result.text)
    lines = [line for line in result.text.splitlines() if line.startswith("- ")]
    assert 2 < len(lines) == len(set(lines)) <= 40 and any("eelgrass" in line.lower() for line in lines[:5])
    cited = {one.id: one for one in result.citations}
    for line in lines:
        assert cited[re.match(r"- \[(t[\d.]+)\] ", line)[1]]  # type: ignore[index]
    assert len(cited) == len(lines) <= 3 * len({one.uri for one in cited.values()})


def test_a_wholly_general_question_gets_the_largest_topics(snapshot: Snapshot) -> None:
    for question in ("What are the main themes of this corpus?", "这些文档的主要主题是什么？"):
        general = global_search(snapshot, question)
        assert general.state == "context" and general.communities == global_search(snapshot, "").communities
    weights = {f"c{row['n']}": row["n_text_units"] for row in snapshot.rows("reports", "level = 0").to_pylist()}
    order = [weights[id] for id in general.communities if id in weights]
    assert order == sorted(order, reverse=True) and order[0] > order[-1]


def test_a_question_about_nothing_here_gets_the_themes_to_ask_about(snapshot: Snapshot) -> None:
    result = global_search(snapshot, "Xqzwv quuxton")
    assert (result.state, result.citations) == ("not_found", []) and "local_search" in result.hint
    assert result.communities and all(f"[{id}]" in result.text for id in result.communities)


def test_sentences_are_paged_without_repeats(snapshot: Snapshot) -> None:
    cursor, points = "", []
    for _ in range(60):
        page = global_search(snapshot, "back-run", max_tokens=500, cursor=cursor)
        points += re.findall(r"^- .*$", page.text, re.MULTILINE)
        cursor = page.next_cursor
        if not cursor:
            break
    whole = re.findall(r"^- .*$", global_search(snapshot, "back-run", max_tokens=3_000).text, re.MULTILINE)
    assert points == whole and len(points) > 3


# ---- look-ups ------------------------------------------------------------------------------------


def test_an_entity_is_found_by_name_alias_id_and_case(snapshot: Snapshot) -> None:
    found = get_entity(snapshot, "Tobias Fenn")
    assert found.title == "Tobias Fenn" and found.citations and found.relationships and found.communities
    for name in ("tobias fenn", "  “Tobias Fenn” ", found.id, f"[{found.id}]", "Tobias Fenn's"):
        assert get_entity(snapshot, name).id == found.id
    assert get_entity(snapshot, "沈若岚").title == "沈若岚"


def test_every_relationship_of_an_entity_names_a_real_other_end(snapshot: Snapshot) -> None:
    found = get_entity(snapshot, "Tobias Fenn")
    for one in found.relationships:
        assert found.id in (one["source"], one["target"])
        assert all(get_entity(snapshot, one[end]).title for end in ("source", "target"))


def test_a_report_has_members_family_and_sources(snapshot: Snapshot) -> None:
    id = global_search(snapshot, "").communities[0]
    brief, whole = (get_community_report(snapshot, id, max_tokens=most) for most in (340, 4_000))
    assert brief.id == whole.id == id and brief.members and brief.citations and not brief.stale
    assert not re.search(r"\b[0-9a-f]{32}\b", brief.text + whole.text)
    for child in whole.children:
        assert get_community_report(snapshot, child).parent == id
    assert get_community_report(snapshot, id.removeprefix("c")).id == id
    full = whole
    for most in range(500, 2_000, 50):  # never a part without the call for the whole
        part = get_community_report(snapshot, id, max_tokens=most)
        assert part.truncated == bool(part.next_call), most
        if part.truncated:
            full = get_community_report(snapshot, id, max_tokens=int(re.findall(r"max_tokens=(\d+)", part.next_call)[0]))
    said = whole.text.partition("\nDocuments:")[0]
    assert full.text.startswith(said[:600]) and not whole.truncated and len(full.text) > len(brief.text)


@pytest.mark.parametrize(
    "query",
    [
        '"anchored at one end to Little Orrin"',
        '"ANCHORED  at one end to\nlittle orrin"',
        "“anchored at one end”",
        "「海槛最浅处为」",
    ],
)
def test_quoted_words_must_stand_there_literally(snapshot: Snapshot, query: str) -> None:
    def plain(text: str) -> str:
        return " ".join(unicodedata.normalize("NFKC", text).casefold().split())

    result = search_text(snapshot, query)
    assert result.citations and plain(query.strip('"“”「」')) in plain(result.text)


def test_sources_are_read_on_a_question(tmp_path: Path) -> None:
    def filler(place: str) -> str:
        return " ".join(f"The {place} had {place} stairs in {place} stone for room {n} of it." for n in range(40))

    texts = (
        f"The mill stands at Orl. {filler('mill')} The court fined the mill in spring. {filler('mill')}",
        f"The bakery of Venn opened early. {filler('oven')} A judge freed the bakery of its fine. {filler('oven')}",
        *(f"Hall {n} of Venn is open. {filler(n)} The court of hall {n} met on the fine." for n in "abcdef"),
    )
    found = snapshot_of(tmp_path / "c", tuple(map(InlineText, texts)))
    whole = get_source(found, ["d1", "d2"], max_tokens=8_000)
    read = get_source(found, ["d1", "d2"], query="How did the court decide on the fine?", max_tokens=8_000)
    assert "The court fined the mill in spring." in read.text and "A judge freed the bakery of its fine." in read.text
    assert "The mill stands at Orl." in read.text  # the first sentence says what it is
    assert len(read.text) < len(whole.text) / 4 and not read.truncated
    assert "Same text" not in read.text + read.hint
    ids = [f"d{n}" for n in range(1, 9)]
    short = get_source(found, ids, query="the court's fine", max_tokens=300)
    assert 'query="the court' in short.next_call


def test_a_section_of_a_short_note_is_read_alone(tmp_path: Path) -> None:
    text = "# Mill\n\nIt stands at Orl.\n\n## Fire\n\nIt burnt in May.\n\n## Price\n\nIt was sold for 40 crowns.\n"
    (tmp_path / "mill.md").write_text(text, "utf-8")
    index_documents(tmp_path / "c", IndexRequest(paths=[str(tmp_path / "mill.md")]), Settings(home=tmp_path / "h", roots=(tmp_path,)))
    snapshot = open_snapshot(tmp_path / "c")
    fire = get_source(snapshot, ["d1#2"], raw=True)
    assert "It burnt in May." in fire.text and "Orl" not in fire.text and "40 crowns" not in fire.text
    place = fire.sources[0]
    assert text[place["char_start"] : place["char_end"]].startswith("## Fire") and place["line_start"] == 5
    both = get_source(snapshot, ["d1#2", "d1#3"]).text
    assert "It burnt in May." in both and "40 crowns" in both


@pytest.fixture(scope="module")
def escaped(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    texts = (
        "The limit MAX\\_RETRY\\_COUNT is seven. Write to anna\\_meier@firm.ch about it.",
        "In config.py MAX_RETRY_COUNT = 7 and the folder is C:\\_cache.",
        "A report says 50\\% of \\[all\\] cases and MAX_\u200bRETRY_COUNT are key\u2060word list\ufeff entries.",
    )
    home = tmp_path_factory.mktemp("home")
    return snapshot_of(home / "c", tuple(map(InlineText, texts)))


@pytest.mark.parametrize(
    ("query", "found"),
    [("MAX_RETRY_COUNT", 3), (r"MAX\_RETRY\_COUNT", 1), ("anna_meier@firm.ch", 1), ("50% of [all]", 1), (r"C:\_cache", 1), ("C:_cache", 1),
     ("keyword list", 1), (r"\_RETRY", 1), ("MAX_RETRY_LIMIT", 0)],
)  # fmt: skip
def test_quoted_text_is_found_where_it_is_written_with_escapes_or_signs_without_width(escaped: Snapshot, query: str, found: int) -> None:
    result = search_text(escaped, f'"{query}"')
    assert len(result.citations) == found and ("Nowhere in this corpus" in result.hint) == (not found)


def test_a_document_is_read_by_the_name_of_its_file_where_only_one_has_it(tmp_path: Path) -> None:
    for name in ("one/bbc0001.txt", "one/bbc0010.txt", "one/notes.md", "two/notes.md"):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_text(f"The mill of {name} burned in May.")
    index_documents(tmp_path / "c", IndexRequest(paths=(str(tmp_path / "in"),)), Settings(home=tmp_path))
    found = open_snapshot(tmp_path / "c")
    assert "bbc0001.txt burned" in get_source(found, ["bbc0001"]).text
    for unknown in ("bbc000", "notes", "it's"):
        with pytest.raises(NotFound):
            get_source(found, [unknown])


def test_alternatives_with_and_without_quotation_marks_are_all_looked_for(snapshot: Snapshot) -> None:
    assert quoted('robot OR "light drone" OR sea kelp now') == ["robot", "light drone", "sea kelp now"]
    assert quoted("\u200b OR robot") == ["robot"]  # a zero-width space is no word
    assert quoted('"this OR that" here') == ["this OR that"] and quoted("one two three four five OR six") == []
    found = search_text(snapshot, 'eelgrass OR "sea of glass"')
    assert "eelgrass" in found.text and "Nowhere in this corpus: 'sea of glass'" in found.hint


def test_queries_without_room_are_named(tmp_path: Path) -> None:
    towns = ("Orl", "Venn", "Tarn", "Varde", "Skerrow", "Eastham", "奥尔", "维恩")
    texts = [f"The harbour of {town} was built by its own people in 18{n:02}. {town} has a lamp." for n, town in enumerate(towns[:6])]
    texts += [f"{town}的港口是由当地人在十八世纪建造的，那里有一盏灯。" for town in towns[6:]]
    index_documents(tmp_path / "c", IndexRequest(texts=tuple(map(InlineText, texts))), Settings(home=tmp_path))
    found = open_snapshot(tmp_path / "c")
    asked = [f"Who built the harbour of {town}?" for town in towns[:6]] + [f"谁建造了{town}的港口" for town in towns[6:]] + ["zqxv"]
    for budget in (200, 250, 300, 400, 600, 2_000):
        told = several([("", found)], asked, Request("", max_tokens=budget, form=Form()))
        assert sending.outgoing(told) <= budget and told.citations
        shown = [one for one in asked if one in told.text]
        named = re.search(r"No room from query (\d+) of (\d+) on", told.text)
        assert (named is not None) == (len(shown) < len(asked)) == (budget <= 400), (budget, told.text)
        assert not named or (int(named[1]), int(named[2])) == (len(shown) + 1, len(asked))
        assert told.text.count("Nothing was found.") == ("zqxv" in told.text)


def test_words_beside_or_and_quotations_that_no_passage_holds_together_find_the_nearest(tmp_path: Path) -> None:
    assert quoted("old mill OR pump") == ["old mill", "pump"]
    assert quoted('"ferry" "pump" OR weir OR "gate" "lock" x') == ["ferry", "pump", "weir", "gate", "lock"]
    texts = (
        "In Orl the weir and the ferry were sold by the harbour board.",
        "Keene wrote that the ferry was late again in May.",
        "The board of Venn met, and the mill burned down in June.",
        *(f"The ferry left Tarn at {n} with sheep on its deck." for n in range(6)),
        "县法院因烟尘对奥尔磨坊处以罚款。",
        "渡船在五月又迟到了。",
    )
    index_documents(tmp_path / "c", IndexRequest(texts=tuple(map(InlineText, texts))), Settings(home=tmp_path))
    found = open_snapshot(tmp_path / "c")
    for query, first, lost in (
        ('"ferry" "weir" "toll bridge"', "weir and the ferry", "toll bridge"),
        ('"ferry" "burned down"', "burned down", ""),
        ('"罚款" "磨坊" "收费桥"', "处以罚款", "收费桥"),
    ):
        told = search_text(found, query)
        assert told.citations and first in told.text.partition("\n\n")[0] and MOST in told.hint
        assert f"Nowhere in this corpus: '{lost}'" in told.hint if lost else "Nowhere" not in told.hint
        small = search_text(found, query, max_tokens=200)
        assert small.citations and sending.outgoing(small) <= 200 and MOST in small.hint
    listed = list_documents(found, query='"ferry" "weir" "toll bridge"')
    assert 'holding most of "ferry"' in listed.text


def test_the_exact_text_of_every_kind_of_id_is_given(snapshot: Snapshot, texts: dict[str, str]) -> None:
    entity = get_entity(snapshot, "Tobias Fenn")
    for id in ("t1", "d1", entity.id, entity.relationships[0]["id"], "c1", "[t2]", "Sources (t1, t3)"):
        result = get_source(snapshot, [id], max_tokens=8000)
        assert result.sources
        for one in result.sources:
            text = texts[one["document_id"]][one["char_start"] : one["char_end"]]
            assert text.rpartition("---\n")[2].strip() in result.text  # the lines around front matter are not shown
    assert {one["uri"] for one in get_source(snapshot, ["d2"]).sources} == {
        get_source(snapshot, ["d2"]).sources[0]["uri"]
    }


def test_a_document_is_covered_by_its_passages(snapshot: Snapshot, texts: dict[str, str]) -> None:
    sources = get_source(snapshot, ["d1"], max_tokens=20_000).sources
    text = texts[sources[0]["document_id"]]
    assert " ".join(text[one["char_start"] : one["char_end"]] for one in sources).split() == text.split()


def test_unknown_sources_are_named_and_only_unknown_ones_are_an_error(snapshot: Snapshot) -> None:
    assert "t99999" in get_source(snapshot, ["t1", "t99999"]).hint
    with pytest.raises(NotFound, match=r"text units t1 to t\d+"):
        get_source(snapshot, ["t99999", "nonsense"])
    with pytest.raises(BadInput):
        get_source(snapshot, [])
    assert "first 50" in get_source(snapshot, [f"t{n}" for n in range(1, 60)]).hint


# ---- retrieval -----------------------------------------------------------------------------------


TWO_HOPS = {
    "Tern Prize": "The Tern Prize for marine drawing was won by Ilse Brandt.",
    "Ilse Brandt": "Ilse Brandt is a painter. Her people kept a bakery in Port Kell.",
    "Gull Prize": "The Gull Prize is given every year. Its winner is chosen by lot, and the family of the winner pays.",
    "Winner's Town": "A winner of any prize may keep the prize at home with family.",
    "Bakeries": "The family of the winner of a prize often owned a bakery; no prize was won for bread.",
    "Harbour Board": "The board gave a prize to the winner of the regatta, whose family lived in a boat.",
}


def test_a_title_named_in_a_high_passage_leads_to_the_second_hop(tmp_path: Path) -> None:
    texts = tuple(InlineText(text, title, title) for title, text in TWO_HOPS.items())
    index_documents(tmp_path / "c", IndexRequest(texts=texts), Settings(home=tmp_path))
    question = "In which town does the family of the winner of the Tern Prize have its business?"

    def titles(weights: Weights) -> list[str]:
        snapshot = open_snapshot(tmp_path / "c")
        ids = [one.id for one in rank.retrieve(snapshot, question, weights).passages]
        return snapshot.by_key("passages", ids, "id", ["title"])["title"].to_pylist()

    assert titles(Weights())[0] == "Tern Prize" and "Ilse Brandt" in titles(Weights())[:3]
    without = titles(Weights(title_link=0.0))
    assert "Ilse Brandt" not in without[: titles(Weights()).index("Ilse Brandt") + 1]
    assert "Ilse Brandt" not in titles(Weights(named_title=0, title_link=0, shared_name=0))[:3]
REFERENCES = (
    InlineText("Marta Olsen built the harbour crane in Bergen.", "a", "Crane"),
    InlineText("Nils Olsen painted the harbour of Bergen.", "d1", "Painting"),
    InlineText("The harbour of Turku has a museum.", "t1", "Museum"),
    InlineText("Sofia Virta leads the museum of Turku.", "report t1", "Leader"),
    InlineText("The ferry to Mariehamn leaves at noon.", "[d1] ferry, d2", "Ferry"),
)


@pytest.fixture(scope="module")
def referenced(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    home = tmp_path_factory.mktemp("references")
    index_documents(home / "c", IndexRequest(texts=REFERENCES), Settings(home=home))
    return open_snapshot(home / "c")



@pytest.mark.parametrize("text", REFERENCES, ids=lambda text: str(text.id))
def test_a_uri_that_holds_an_id_is_read_as_a_uri(referenced: Snapshot, text: InlineText) -> None:
    for given in (f"text:{text.id}", f" text:{text.id} ", f"[text:{text.id}]"):
        (source,) = get_source(referenced, [given]).sources
        assert (source["uri"], source["title"]) == (f"text:{text.id}", text.title)


def test_quoted_words_are_found_within_a_word_only_where_none_begins_with_them(tmp_path: Path) -> None:
    texts = ("Two are suing the harbour.", "The harbour is issuing passes.", "中文的iPhone手机。", "A new microphone.")
    index_documents(tmp_path / "c", IndexRequest(texts=tuple(map(InlineText, texts))), Settings(home=tmp_path))
    found = open_snapshot(tmp_path / "c")
    assert "issuing" not in search_text(found, '"suing"').text
    assert "issuing" in search_text(found, '"ssuing"').text
    result = search_text(found, '"phone"').text
    assert "iPhone" in result and "microphone" in result
    assert "microphone" not in search_text(found, '"iphone"').text


def test_a_word_that_stands_inside_of_others_alone_is_not_called_absent(tmp_path: Path) -> None:
    texts = ("See https://coast.example/2024/timetable.html for Lindenhof and 红烧肉。", "A ferry left at noon.")
    index_documents(tmp_path / "c", IndexRequest(texts=tuple(map(InlineText, texts))), Settings(home=tmp_path))
    snapshot = open_snapshot(tmp_path / "c")
    for word in ('"timetable.html"', "Linden"):
        hint = local_search(snapshot, f"the ferry and {word}").hint
        assert "Nowhere" not in hint, hint
    assert "Only inside of other words or addresses, where search_text finds it in quotes: 'Linden'." in hint
