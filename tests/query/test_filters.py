"""Filters, modes, several corpora: what every search takes, with and without a model."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_mcp.errors import BadInput, ModelError
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.llm.asker import Asker
from graphrag_mcp.query import local, sections, title_list, topics
from graphrag_mcp.query.community import get_community_report
from graphrag_mcp.query.global_ import global_search
from graphrag_mcp.query.local import local_search
from graphrag_mcp.query.route import choose
from graphrag_mcp.query.source import get_source
from graphrag_mcp.query.text_search import search_text
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.types import IndexRequest, InlineText
from tests.support.files import snapshot_of
from tests.support.scripted import ScriptedEmbedder

NOTES = (
    InlineText(
        "Marta Olsen built the harbour crane in Bergen. Her brother is Nils Olsen.", "crane", "Crane",
        {"date": "2023-05-04", "author": "Ada", "stars": 3, "tags": ["sea", "iron"]},
    ),
    InlineText(
        "Nils Olsen painted the harbour of Bergen in winter. The crane stands in it.", "painting", "Painting",
        {"date": "2024-02-01", "author": "Ben", "stars": 11},
    ),
    InlineText("The harbour of Turku has a museum. Sofia Virta leads the museum of Turku.", "museum", "Museum", {"date": "2024-11-30"}),
)  # fmt: skip
ZH = (InlineText("林小雨在杭州开了一家茶馆。林小雨的哥哥林大山是船长。杭州的茶馆很有名。", "tea", "茶馆", {"作者": "王"}),)


def three_corpora(home: Path, sample_home: Path) -> Path:
    """A home with notes, Chinese texts and the sample."""
    for name, texts in (("notes", NOTES), ("zh", ZH)):
        index_documents(home / "corpora" / name, IndexRequest(texts=texts), Settings(home=home))
    (home / "corpora" / "sample").symlink_to(sample_home / "corpora" / "sample")
    return home


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, sample_home: Path) -> Path:
    return three_corpora(tmp_path_factory.mktemp("home"), sample_home)


@pytest.fixture(scope="module")
def notes(home: Path) -> Snapshot:
    return open_snapshot(home / "corpora" / "notes")


@pytest.fixture(scope="module")
def sample(sample_home: Path) -> Snapshot:
    return open_snapshot(sample_home / "corpora" / "sample")


def uris(snapshot: Snapshot, *wanted: str, query: str = "harbour crane museum Olsen") -> list[str]:
    return sorted({one.uri.removeprefix("text:") for one in local_search(snapshot, query, filters=wanted).citations})


# ---- filters ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "left"),
    [
        ((), ["crane", "museum", "painting"]), (("author=ada",), ["crane"]), (("author!=Ada",), ["museum", "painting"]),
        (("date>=2024",), ["museum", "painting"]), (("date<=2024-02",), ["crane", "painting"]), (("date=2024-11",), ["museum"]),
        (("stars>=9",), ["painting"]), (("stars<=9",), ["crane"]), (("tags=iron",), ["crane"]), (("uri=text:m*",), ["museum"]),
        (("stars>8",), ["painting"]), (("stars<9",), ["crane"]), (("date<2024-02",), ["crane"]), (("date>2024-02",), ["museum"]), (("title=Mus*",), ["museum"]),
        (("uri!=*crane",), ["museum", "painting"]), (("document=Museum", "document=Crane"), ["crane", "museum"]),
        (("metadata.author=Ben",), ["painting"]), (("date>=2024", "author=Ben"), ["painting"]), (("entity!=Nils Olsen",), ["museum"]),
    ],
)  # fmt: skip
def test_filters_keep_what_passes(notes: Snapshot, wanted: tuple[str, ...], left: list[str]) -> None:
    assert uris(notes, *wanted) == left
    found = {one.uri.removeprefix("text:") for one in search_text(notes, "harbour crane museum Olsen", filters=wanted).citations}
    assert sorted(found) == left


def test_a_document_is_filtered_by_its_alias_too(notes: Snapshot) -> None:
    for cited in local_search(notes, "harbour").citations:
        assert {one.document_id for one in local_search(notes, "harbour", filters=[f"document={cited.document_id}"]).citations} == {
            cited.document_id
        }


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("autor=Ada", "Metadata: author, date, stars, tags"), ("colour=red", "Known are document, title, uri, kind, tag, topic, entity, type, date, rating, when, said, as_of, and metadata"),
        ("crane", "Write filters as"), ("uri>=x", "no order"), ("rating>=high", "number"), ("entity=Xqzwv", "not there"),
        ("author=", "cannot be read"),
    ],
)  # fmt: skip
def test_a_filter_that_cannot_be_read_is_told_what_there_is(notes: Snapshot, wrong: str, said: str) -> None:
    for search in (local_search, global_search, search_text):
        with pytest.raises(BadInput) as refused:
            search(notes, "harbour", filters=[wrong])
        assert said in f"{refused.value} {refused.value.names}"


@pytest.mark.parametrize(
    "wrong",
    ["date>=2024-99-99", "date=2024-02-30", "date<=2024-13", "date!=2023-02-29", "date>=0000", "date>=2024x",
     "date>=2024-05-03T25:00", "date=3/4/2024", "date=soon", "rating>=nan", "rating<=inf", "rating>=-Infinity", "rating>=1e999"],
)  # fmt: skip
def test_a_value_that_no_date_or_number_has_is_refused(notes: Snapshot, wrong: str) -> None:
    for search in (local_search, global_search, search_text):
        with pytest.raises(BadInput, match=r"is no date|must be a number|cannot be used"):
            search(notes, "harbour", filters=[wrong])


def test_a_filter_beyond_the_twentieth_is_refused_and_not_dropped(notes: Snapshot) -> None:
    twenty = ["author!=nobody"] * 19 + ["author=Ada"]
    assert uris(notes, *twenty, " ") == ["crane"]
    for search in (local_search, global_search, search_text):
        with pytest.raises(BadInput, match="21 filters were given, and a call takes at most 20"):
            search(notes, "harbour", filters=["author!=nobody"] * 20 + ["author=Ada"])


def read_by_model(snapshot: Snapshot, question: str, *given: str) -> dict[str, str]:
    """The rows of each section of a prompt."""
    (part,) = local.narrowed([("", snapshot)], given)
    source = local.asked(part, question)
    assert source is not None
    return {one.name: "\n".join(item.text for item in one.items) for one in sections.sections_of(source, 20_000)}


def test_an_excluded_entity_goes_before_the_cut_so_that_the_list_refills(sample: Snapshot) -> None:
    question = "Tobias Fenn and the back-run at Corrie Head"
    plain = read_by_model(sample, question)
    without = read_by_model(sample, question, "entity!=Tobias Fenn")
    assert "] Tobias Fenn (" in plain["Entities"] and "] Tobias Fenn (" not in without["Entities"]
    assert without["Entities"].count("\n") == plain["Entities"].count("\n") == sections.ENTITIES - 1
    pairs = [line.partition(": ")[0] for line in without["Relationships"].splitlines()]
    assert pairs and not any("Tobias Fenn" in pair for pair in pairs)


def test_a_narrow_filter_finds_what_many_better_candidates_would_hide(tmp_path: Path) -> None:
    texts = [InlineText(f"Lamp lamp lamp lamp number {n} of the lamp store.", f"n{n}", f"Note {n}") for n in range(900)]
    texts.append(InlineText("In the attic there was among many other old things also one lamp.", "attic", "Attic", {"kind": "rare"}))
    snapshot = snapshot_of(tmp_path / "c", texts)
    assert [one.uri for one in local_search(snapshot, "lamp", filters=["kind=rare"]).citations] == ["text:attic"]
    assert [one.uri for one in search_text(snapshot, "lamp", filters=["kind=rare"]).citations] == ["text:attic"]


# ---- vectors ---------------------------------------------------------------------------------------


def test_a_question_is_embedded_where_the_index_has_vectors_and_a_failure_costs_nothing(tmp_path: Path) -> None:
    good = ScriptedEmbedder()
    settings = Settings(home=tmp_path, embedding_model="scripted-embedding")
    index_documents(tmp_path / "c", IndexRequest(texts=NOTES), settings, asker=Asker(None, None, good))
    snapshot = open_snapshot(tmp_path / "c")
    assert snapshot.count("passages_vectors") == 3
    asked = len(good.calls)
    found = local_search(snapshot, "harbour crane", asker=Asker(None, None, good))
    assert good.calls[asked:] == [("harbour crane",)] and found.state == "context" and found.hint == ""
    bad = ScriptedEmbedder(fail=lambda *_: ModelError("the server said 500", "Try later"))
    failed = local_search(snapshot, "harbour museum", asker=Asker(None, None, bad))
    assert failed.citations and "could not be embedded, so its words alone decided: the server said 500." in failed.hint
    assert failed.citations == local_search(snapshot, "harbour museum").citations


def test_an_index_without_vectors_asks_no_embedding_model(notes: Snapshot) -> None:
    embedder = ScriptedEmbedder()
    assert local_search(notes, "harbour", asker=Asker(None, None, embedder)).citations and embedder.calls == []


# ---- sources ---------------------------------------------------------------------------------------


def test_the_neighbours_of_a_text_unit_are_those_before_and_after_it(tmp_path: Path) -> None:
    text = "\n\n".join(f"Paragraph {n} speaks at length of lamp number {n} and of its keeper." for n in range(60))
    request = IndexRequest(texts=(InlineText(text, "long", "Long"),))
    index_documents(tmp_path / "c", request, Settings(home=tmp_path, chunk_size=200, chunk_overlap=20, passage_size=200))
    snapshot = open_snapshot(tmp_path / "c")
    found = [one["id"] for one in get_source(snapshot, ["t3"], around=1, max_tokens=20_000).sources]
    assert found == ["t2", "t3", "t4"]


def test_nothing_that_passes_is_told_apart_from_nothing_there(notes: Snapshot) -> None:
    result = local_search(notes, "crane", filters=["author=Ada", "date>=2030"])
    assert result.state == "not_found" and "0 of 3 documents pass" in result.text and "filters" in result.hint


def test_an_included_entity_comes_first_whatever_the_ranking(sample: Snapshot) -> None:
    plain = local_search(sample, "eelgrass survey")
    asked = local_search(sample, "eelgrass survey", filters=["entity=Tobias Fenn"])
    assert "Fenn" not in plain.text.split("\n\n[")[0] and "Fenn" in asked.text.split("\n\n[")[0]
    scores = [one.score for one in asked.citations]
    assert scores == sorted(scores, reverse=True)


def test_types_and_ratings_are_filtered(sample: Snapshot) -> None:
    named = read_by_model(sample, "Who was at Corrie Head?", "type=person")["Entities"].splitlines()
    rows = sample.rows("entities", "type = 'person'", ["title"])["title"].to_pylist()
    assert named and {line.partition("] ")[2].partition(" (person)")[0] for line in named} <= set(rows)
    ranks = {f"c{row['n']}": row["rank"] for row in sample.rows("reports", "", ["n", "rank"]).to_pylist()}
    middle = sorted(ranks.values())[len(ranks) // 2]
    for given in ({"filters": [f"rating>={middle}"]}, {"min_rating": middle}):
        found = global_search(sample, "", max_tokens=20_000, **given)  # type: ignore[arg-type]
        assert found.communities and all(ranks[id] >= middle for id in found.communities)
    assert any(ranks[id] < middle for id in global_search(sample, "", max_tokens=20_000).communities)


def test_documents_without_a_date_are_counted_where_dates_are_filtered(tmp_path: Path) -> None:
    texts = (InlineText("Ada Keene came to Port Kell.", "a", metadata={"date": "2020-05-01"}), InlineText("Ada Keene left Port Kell.", "b"))
    index_documents(tmp_path / "c", IndexRequest(texts=texts), Settings(home=tmp_path))
    dated = open_snapshot(tmp_path / "c")
    for search in (local_search, global_search, search_text):
        found = search(dated, "Ada Keene", filters=["date>=2020"])
        assert found.hint == "1 of 2 documents state no date and pass no date filter."
        assert {one.uri for one in found.citations} == {"text:a"}
        assert "of 2 documents" not in search(dated, "Ada Keene", filters=["uri!=x"]).hint


@pytest.mark.parametrize(
    ("question", "mode"),
    [
        ('Where does it say "own error"?', "text"), ("「海槛最浅处为」", "text"), ("HTA-2019/7", "text"), ("read_file()", "text"),
        ("What are the main themes?", "global"), ("Give me an overview of these documents", "global"), ("这些文档的主要主题是什么？", "global"),
        ("Worum geht es insgesamt?", "global"), ("¿Cuáles son los temas principales?", "global"), ("Quels sont les grands thèmes ?", "global"),
        ("Каковы основные темы?", "global"), ("全体の要約を教えて", "global"), ("주요 주제는 무엇인가요?", "global"),
        ("Who was Tobias Fenn?", "local"), ("Summarise what Tobias Fenn saw", "local"), ("沈若岚是谁？", "local"),
        ("How deep is the sill?", "local"), ("", "local"),
    ],
)  # fmt: skip
def test_the_mode_is_chosen_with_a_reason(sample: Snapshot, question: str, mode: str) -> None:
    chosen, reason = choose(question, sample)
    assert (chosen, reason.endswith(".")) == (mode, True) and len(reason) > 20


def test_titles_below_topics_under_a_filter_leave_the_topics_as_they_are(sample: Snapshot) -> None:
    def of_topics(snapshot: Snapshot) -> list[str]:
        return [get_community_report(snapshot, f"c{topic.n}").text for topic in topics.of_main(snapshot)]

    snapshot = open_snapshot(sample.folder)
    [(_, part, kept)] = local.narrowed([("", snapshot)], ["uri=*hearing*"])
    assert kept is not None and kept.passing_documents
    for line in title_list.lines(part, kept.passing_documents, kept, by_topic=True):
        assert line()
    assert of_topics(snapshot) == of_topics(open_snapshot(sample.folder))
