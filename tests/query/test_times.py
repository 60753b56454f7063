"""Facts in time: when a passage was said, of which days it speaks, and how results show and filter it."""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

from graphrag_mcp.app import App
from graphrag_mcp.doctor import generations
from graphrag_mcp.errors import BadInput, NotFound
from graphrag_mcp.explorer import history
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.query import literals
from graphrag_mcp.query.documents import list_documents
from graphrag_mcp.query.entity import get_entity
from graphrag_mcp.query.local import local_search
from graphrag_mcp.query.text_search import search_text
from graphrag_mcp.server import build_server
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.text.temporal import When, anchors, expressions
from graphrag_mcp.types import IndexRequest, InlineText
from tests.support.client import connected
from tests.support.command import SAMPLE
from tests.support.files import snapshot_of

CHAT = """# Chat of Marta Olsen and Nils Olsen

## 2023-05-25

Marta: We repaired the harbour crane last Saturday with a new cable from Turku.

## 2023-06-02

Nils: I painted the harbour crane yesterday, and the museum was open.
"""
TEXTS = (
    InlineText(CHAT, "chat", "Chat"),
    InlineText("The harbour crane will be inspected tomorrow by Sofia Virta.", "plan", "Plan", {"date": "2024-03-07"}),
    InlineText("The harbour crane was built in 1868 by Anna Berg.", "history", "History"),
    InlineText("Last week the harbour crane made a strange noise.", "undated", "Undated"),
)  # fmt: skip


@pytest.fixture(scope="module")
def harbour(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    home = tmp_path_factory.mktemp("home")
    return snapshot_of(home / "corpora" / "harbour", TEXTS)


def said(snapshot: Snapshot, *filters: str, query: str = "harbour crane") -> set[str]:
    return {
        one.uri.removeprefix("text:")
        for one in local_search(snapshot, query, filters=filters).citations
    }


# ---- shown -------------------------------------------------------------------------------------------


def test_a_result_says_what_relative_words_mean_and_from_which_day(harbour: Snapshot) -> None:
    text = local_search(harbour, "harbour crane", max_tokens=3000).text
    assert "2023-05-25" in text and "(last Saturday = 2023-05-20" in text  # the day stands above
    assert "said 2023-06-02; yesterday = 2023-06-01" in text  # a turn of another day
    assert "(tomorrow = 2024-03-08)" in text
    assert "Last week =" not in text  # nothing dates that document


def test_citations_carry_the_days_with_their_characters(harbour: Snapshot) -> None:
    cited = {
        one.uri: one for one in local_search(harbour, "harbour crane", max_tokens=3000).citations
    }
    when = cited["text:chat"].when
    assert [
        CHAT[one["char_start"] : one["char_end"]] for one in when if one["kind"] == "resolved"
    ] == [
        "last Saturday",
        "yesterday",
    ]
    assert cited["text:plan"].said == "2024-03-07"
    assert [(one["start"], one["kind"]) for one in cited["text:history"].when] == [
        ("1868-01-01", "stated")
    ]
    assert not cited["text:undated"].when and not cited["text:undated"].said


# ---- filters -----------------------------------------------------------------------------------------


def test_filters_on_when_and_said_keep_passages_of_those_days(harbour: Snapshot) -> None:
    assert said(harbour, "when=2023-05-20") == {"chat"}
    assert said(harbour, "when=2024-03-08") == {"plan"}
    assert said(harbour, "when=2024-03-07") == set()
    assert said(harbour, "when<=1900") == {"history"}
    assert said(harbour, "when>=1860", "when<=1870") == {"history"}
    assert said(harbour, "said>=2024") == {"plan"}
    assert said(harbour, "said=2023-06") == {"chat"}
    assert said(harbour, "when=1995") == set()
    found = search_text(harbour, "harbour crane", filters=["when=2023-05-20"])
    assert {one.uri for one in found.citations} == {"text:chat"}


def test_as_of_leaves_out_what_is_later_and_counts_what_has_no_date(harbour: Snapshot) -> None:
    assert said(harbour, "as_of=2023-12") == {"chat", "history", "undated"}
    hint = local_search(harbour, "harbour crane", filters=["as_of=2023-12"]).hint
    assert "1 of 4 documents" in hint and "3 without a date stay in" in hint
    text = list_documents(harbour, filters=["as_of=2023-12"]).text
    assert "[t1]" in text and "Plan" not in text


def test_list_documents_takes_filters_on_time(harbour: Snapshot) -> None:
    assert list_documents(harbour, filters=["when=2023-06-01"]).total == 1
    assert "state no date" in list_documents(harbour, filters=["said>=2024"]).hint


# ---- timelines ---------------------------------------------------------------------------------------

JOBS = (
    InlineText("Ida Holm works at Norrland Shipping in Umea since her studies.", "a", "Note A", {"date": "2021-02-03"}),
    InlineText("Ida Holm works at Baltic Freight in Umea since her studies.", "b", "Note B", {"date": "2023-06-01"}),
    InlineText("Yesterday Ida Holm met Pelle Krans for lunch at the harbour of Umea.", "c", "Note C", {"date": "2022-05-05"}),
    InlineText("Ida Holm likes the long winter evenings of the north very much.", "d", "Note D"),
)  # fmt: skip


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    home = tmp_path_factory.mktemp("jobs")
    return snapshot_of(home / "corpora" / "jobs", JOBS)


def test_a_timeline_is_in_the_order_of_days(jobs: Snapshot) -> None:
    found = get_entity(jobs, "Ida Holm", order="time")
    lines = [line for line in found.text.splitlines() if line.startswith("- ")]
    assert [line[2:17].removesuffix(" Ida") for line in lines] == ["said 2021-02-03", "2022-05-04 Yest", "said 2023-06-01"]
    assert "Norrland" in lines[0] and "Baltic" in lines[2]  # nothing is withdrawn
    assert "said 2022-05-05; Yesterday = 2022-05-04" in lines[1]
    assert "1 statement" in found.hint and "without a date" in found.hint


def test_a_timeline_of_two_holds_only_what_names_both(jobs: Snapshot) -> None:
    text = get_entity(jobs, "Ida Holm", other="Pelle Krans").text
    assert "met Pelle Krans" in text and "Norrland" not in text
    assert get_entity(jobs, "Ida Holm", other="Qqq Zzz").state == "not_found"


@pytest.mark.parametrize(
    ("sentence", "form", "named"),
    [
        ("The pump of Helix ran.", "HELIX", True), ("The helix was sold.", "HELIX", True), ("They told us all.", "US", False), ("The US left.", "US", True),
        ("俄罗斯的船来了。", "罗斯", False), ("罗斯和俄罗斯的船来了。", "罗斯", True), ("IDA HOLM left.", "Ida Holm", True), ("Pelled fruit.", "Pelle Krans", False),
    ],
)  # fmt: skip
def test_a_sentence_names_an_entity_by_whole_words_in_any_case_but_everyday_words_as_written(
    sentence: str, form: str, named: bool
) -> None:
    assert literals.names(sentence, form) == named


def test_a_timeline_of_a_filter_and_a_question(jobs: Snapshot) -> None:
    text = list_documents(jobs, by="statement").text
    lines = [line for line in text.splitlines() if line.startswith("- ")]
    assert [line[2:17].removesuffix(" Ida") for line in lines] == ["said 2021-02-03", "2022-05-04 Yest", "said 2023-06-01"]
    assert "1 statement without a date is left out." in text
    some = list_documents(jobs, by="statement", filters=["when=2022-05"])
    assert some.total == 1 and "Pelle Krans" in some.text
    assert list_documents(jobs, by="statement", filters=["date>=2023"]).total == 1
    assert list_documents(jobs, by="statement", query="lunch at the harbour", filters=["said=2022"]).total == 1


# ---- what changed ------------------------------------------------------------------------------------


def test_status_since_names_what_came_and_what_new_text_says_of_an_entity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "corpora" / "jobs"
    for some in (JOBS[:1], JOBS[1:3]):
        index_documents(folder, IndexRequest(texts=some), Settings(home=tmp_path))
    first, last = generations.kept(folder)[0], generations.kept(folder)[-1]
    assert generations.generation_of(folder, str(first.generation)) == first.generation
    assert generations.generation_of(folder, "2999-01-01") == last.generation
    assert generations.generation_of(folder, "2001-01-01") == 0
    with monkeypatch.context() as patched:
        patched.setattr(generations.manifests, "generations", lambda _: [])  # all but the current one are gone
        with pytest.raises(NotFound, match="no generation from before 2001-01-01 is kept"):
            generations.generation_of(folder, "2001-01-01")
    with pytest.raises(BadInput):
        generations.generation_of(folder, "last week")
    with connected(build_server(App(Settings(home=tmp_path)))) as call:
        text = call.good("graph_status", corpus="jobs", since=str(first.generation), about="Ida Holm")["text"]
        assert "No new statement on Pelle" in call.good("graph_status", corpus="jobs", since=str(last.generation - 1), about="Pelle Krans")["text"]
        assert "is no generation and no day" in call.bad("graph_status", corpus="jobs", about="Ida Holm")
    assert "2 documents added" in text and "Pelle Krans (e" in text.partition("Names that came")[2]
    assert "2022-05-04 Yesterday Ida Holm met" in text and "Norrland" not in text.partition("New statements")[2]
    with pytest.raises(NotFound):
        generations.changes(folder, first.generation, "Qqq Zzz")
    shown = history.changes(open_snapshot(folder))
    assert "Pelle Krans" in [one["title"] for one in shown["names"]] and "Ida Holm" not in [one["title"] for one in shown["names"]]


# ---- validity ----------------------------------------------------------------------------------------

RULES = (
    InlineText("The crane rule allows loads of ten tonnes in the harbour.", "rule-1", "Crane rule 1",
               {"date": "2020-01-01", "valid_until": "2022-12-31", "status": "deprecated"}),
    InlineText("The crane rule allows loads of six tonnes in the harbour.", "rule-2", "Crane rule 2",
               {"date": "2023-01-01", "supersedes": "Crane rule 1"}),
)  # fmt: skip


def test_validity_of_documents_is_shown_and_as_of_keeps_to_it(tmp_path: Path) -> None:
    rules = snapshot_of(tmp_path / "corpora" / "rules", RULES)
    text = local_search(rules, "crane rule loads", max_tokens=3000).text
    for part in ("superseded by d2", "status: deprecated", "valid until 2022-12-31"):
        assert part in text
    assert said(rules, "as_of=2021", query="crane rule loads") == {"rule-1"}
    assert said(rules, "as_of=2024", query="crane rule loads") == {"rule-2"}


# ---- no date is invented -----------------------------------------------------------------------------


_WITHOUT_YEAR = re.compile(r"centur|siècle|siglo|jahrhundert|jh|世[纪紀]|民国", re.IGNORECASE)
_HAN = str.maketrans("〇○零一二三四五六七八九", "000123456789")


def _says(words: str, when: When) -> bool:
    """Do the words hold a year of the interval? Nothing else makes it a stated one."""
    figures = words.translate(_HAN)
    length = 2 if re.search("[1-9]00s", words) else 3 if re.search(r"\ds|年代", words) else 4
    years = [when.start[:length], when.end[:4]]
    return bool(_WITHOUT_YEAR.search(words)) or any(year in figures for year in years)
TURNS = """[31/12/2023, 10:00] Ana Ruiz: We repaired the harbour crane yesterday with Ben Holm.
[01/02/2024, 11:00] Ben Holm: I painted the harbour crane in 2019 and again three years ago.
[15/03/2024, 12:00] Ana Ruiz: The harbour crane broke last week and was sold to Turku.
"""
TALK = (
    InlineText(TURNS, "chat", "Chat"),
    InlineText("Ana Ruiz bought the pump of the mill in May 2021 from a farmer.", "mill", "Mill", {"date": "2024-01-05"}),
    InlineText("Ana Ruiz sold the pump of the mill to a farmer from Salo.", "sale", "Sale", {"date": "2024-01-06"}),
    InlineText("Ana Ruiz is the owner of a boat of steel in the harbour.", "boat", "Boat"),
)  # fmt: skip




@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    home = tmp_path_factory.mktemp("talk")
    index_documents(home / "c", IndexRequest(texts=TALK), Settings(home=home))
    return open_snapshot(home / "c")


@pytest.mark.parametrize("wanted", ["as_of=2024-02", "said<=2024-02"])
def test_as_of_and_said_hold_for_each_turn(talk: Snapshot, wanted: str) -> None:
    found = local_search(talk, "harbour crane", filters=[wanted])
    (cited,) = [one for one in found.citations if one.uri == "text:chat"]
    shown = found.text, search_text(talk, "harbour crane", filters=[wanted]).text, list_documents(talk, by="statement", filters=[wanted]).text
    assert all("painted" in one and "broke" not in one for one in shown)
    assert TURNS[cited.char_start : cited.char_end].endswith("years ago.\n") and cited.line_end == 2
    assert "[t1] chat 2023-12-31\n" in found.text  # not the whole document


def test_no_date_is_invented_in_the_sample() -> None:
    seen = 0
    for path in [path for path in SAMPLE.rglob("*") if path.suffix in (".md", ".txt")]:
        text = path.read_text("utf-8")
        known = anchors(text, "2024-02-29")
        days = {one.day.isoformat() for one in known if one.day}
        for one in expressions(text, known):
            seen += 1
            assert 0 <= one.char_start < one.char_end <= len(text)
            assert date.fromisoformat(one.start) <= date.fromisoformat(one.end)
            assert (one.kind == "resolved") == bool(one.anchor)
            assert not one.anchor or one.anchor in days
            assert one.anchor or _says(text[one.char_start : one.char_end], one)
    assert seen > 20


# ---- turns and months in results ---------------------------------------------------


def test_sentences_under_a_filter_on_when_are_those_that_speak_of_the_day(tmp_path: Path) -> None:
    from graphrag_mcp.query.render import Form

    said = "The fence was painted on 3 May 2023 by Ana Lopez. The fence was broken on 7 August 2023 by Ben Carter. The fence was mended on 9 September 2024 by Carla Diaz."
    index_documents(tmp_path / "c", IndexRequest(texts=(InlineText(said, "minutes", "Minutes"),)), Settings(home=tmp_path))
    snapshot = open_snapshot(tmp_path / "c")
    for day, what in (("2023-05", "painted"), ("2023-08", "broken"), ("2024-09", "mended")):
        for text in (local_search(snapshot, "fence", filters=[f"when={day}"], form=Form("sentences")).text, list_documents(snapshot, query="fence", filters=[f"when={day}"]).text):
            assert what in text and text.count("The fence was") == 1
    of_one = list_documents(snapshot, by="statement", filters=["entity=Ben Carter"])
    assert of_one.total == 1 and "broken on 7 August 2023" in of_one.text, of_one.text


def test_statements_of_an_entity_are_those_that_write_its_name_in_other_letters_too(tmp_path: Path) -> None:
    said = "# Crew\n\nSAMUEL IVERSEN left the harbour in May 2019. SAMUEL IVERSEN sailed to Orl. Samuel Iversen came in June 2020. The pier was built in July 2021."
    index_documents(tmp_path / "c", IndexRequest(texts=(InlineText(said, "crew", "Crew"),)), Settings(home=tmp_path))
    found = list_documents(open_snapshot(tmp_path / "c"), by="statement", filters=["entity=Samuel Iversen"]).text
    assert "May 2019" in found and "Samuel Iversen came in June 2020." in found and "July 2021" not in found, found


def test_a_name_of_one_word_is_no_part_of_another_word_and_no_word_in_lower_letters(tmp_path: Path) -> None:
    said = "# Talks\n\nUNESCO and the US met Henry Ford in May 2019. Henry Ford and the US signed a treaty in June 2020. They could discuss it in July 2021. Tell us by August 2022."
    index_documents(tmp_path / "c", IndexRequest(texts=(InlineText(said, "talks", "Talks"),)), Settings(home=tmp_path))
    found = list_documents(open_snapshot(tmp_path / "c"), by="statement", filters=["entity=US"])
    assert found.total == 2 and "May 2019" in found.text and "June 2020" in found.text, found.text


def test_statements_of_one_day_have_the_same_order_whatever_was_indexed_first(tmp_path: Path) -> None:
    names = ["Tobias Fenn", "Marta Quill", "Jonas Abel", "Lena Marsh"]
    texts = [InlineText(f"# Doc {n}\n\nOn 3 March 2023 {name} resigned from Harbour Trust in Kiel.", f"d{n}") for n, name in enumerate(names)]
    settings = Settings(home=tmp_path)
    for part in (texts[2:], texts[:2]):
        index_documents(tmp_path / "edited", IndexRequest(texts=tuple(part)), settings)
    index_documents(tmp_path / "fresh", IndexRequest(texts=tuple(texts)), settings)
    order = [
        re.findall("|".join(names), list_documents(open_snapshot(tmp_path / name), by="statement", query="Harbour Trust").text)
        for name in ("edited", "fresh")
    ]
    assert order[0] == order[1] == names


def test_a_document_without_a_date_passes_no_filter_on_dates_also_not_an_unequal_one(tmp_path: Path) -> None:
    texts = (InlineText("The pier was late.", "dated", "", {"date": "2023-01-01"}), InlineText("The pier was early.", "undated"))
    index_documents(tmp_path / "c", IndexRequest(texts=texts), Settings(home=tmp_path))
    assert list_documents(open_snapshot(tmp_path / "c"), filters=["date!=2022"]).total == 1
