"""What an agent reads for its characters: dates and names of documents, sentences of long texts, nothing twice."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from graphrag_mcp.errors import BadInput
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.packing import sending
from graphrag_mcp.packing.budget import passage_alias
from graphrag_mcp.query import times, title_list
from graphrag_mcp.query.batch import several
from graphrag_mcp.query.documents import list_documents
from graphrag_mcp.query.global_ import global_search
from graphrag_mcp.query.local import local_search
from graphrag_mcp.query.render import Form
from graphrag_mcp.query.request import Request
from graphrag_mcp.query.source import get_source
from graphrag_mcp.query.text_search import search_text
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.types import IndexRequest, InlineText
from tests.support.files import snapshot_of

TITLES = {"03": "Order", "04": "Delay", "05": "Arrival", "06": "First load", "07": "Paint"}
FILLER = "The crew of the yard swept the slip and stacked the timber, as on every other day of that season."
MONTHS = {
    "03": "Ida Holm ordered a steam crane for the harbour of Orl from the works of Kron.",
    "04": "The steam crane for the harbour of Orl was delayed, and Ida Holm wrote to Oskar Lind of the works.",
    "05": "Oskar Lind brought the steam crane to the harbour of Orl by barge.",
    "06": "The steam crane of the harbour of Orl lifted its first load in front of Ida Holm. The bill of Oskar Lind was paid.",
    "07": "The steam crane of the harbour of Orl was painted green by Oskar Lind.",
}


def indexed(folder: Path, texts: Sequence[InlineText]) -> Snapshot:
    return snapshot_of(folder, texts)


@pytest.fixture(scope="module")
def crane(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    texts = [
        InlineText(f"{said} {FILLER}", f"note{month}", TITLES[month], {"date": f"1931-{month}-02"})
        for month, said in MONTHS.items()
    ]
    others = [InlineText(f"A barn of Sund had {n} doors. {FILLER}", f"barn{n}", f"Barn {n}") for n in range(8)]
    return indexed(tmp_path_factory.mktemp("crane"), [*texts, *others])


def test_in_order_of_time_every_relevant_passage_is_seen(crane: Snapshot) -> None:
    """Sorted by time the first long ones took all of the room, and the search ended at the first weak one."""
    for breadth in ("passages", "sentences"):
        text = local_search(crane, "steam crane of the harbour of Orl", form=Form(breadth, "time"), max_tokens=600).text
        days = re.findall(r"1931-\d\d-02", text)
        assert days == [f"1931-{month}-02" for month in MONTHS], (breadth, text)


def test_ids_of_one_document_share_what_is_shown_on_a_question(tmp_path: Path) -> None:
    """The one with most words of the question took all of it, and the others were left out in silence."""
    rich = " ".join(f"The schooner Petrel of the yard carried cargo {n} to Bergen." for n in range(30))
    days = {"rope": "was sold by weight", "salt": "came down from Kron", "grain": "rotted in the rain"}
    parts = [rich, *(
        f"The schooner Petrel lay at the {what} quay. " + " ".join(f"On day {n} {what} {did}." for n in range(30))
        for what, did in days.items()
    )]  # fmt: skip
    document = InlineText("\n\n".join(f"# Part {n}\n\n{part}" for n, part in enumerate(parts)), "yard")
    snapshot = indexed(tmp_path, [document, InlineText(FILLER, "other")])
    first = snapshot.rows("documents", "uri = 'text:yard'", ["id"]).to_pylist()[0]["id"]
    rows = snapshot.rows("passages", f"document_id = '{first}'", ["n", "part", "parts"]).to_pylist()
    ids = sorted(map(passage_alias, rows), key=lambda id: [int(n) for n in id[1:].split(".")])
    asked = "What cargo did the schooner Petrel carry to Bergen?"
    found = get_source(snapshot, ids, query=asked, max_tokens=1_000)
    shown = re.findall(r"^\[(t[\d.]+)\]", found.text, re.MULTILINE)
    assert len(ids) > 2 and shown == ids, (ids, found.text)


def test_documents_without_a_title_are_listed_by_the_names_of_their_files(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    subjects = "crane of Orl lifts timber", "school of Sund teaches sailing", "mill of Kron grinds rye"
    for n in range(90):
        (folder / f"note{n:03}.txt").write_text(f"The {subjects[n % 3]} on day {n} of the year. {FILLER}\n")
    home = tmp_path / "c"
    index_documents(home, IndexRequest(paths=(str(folder),)), Settings(home=home))
    snapshot = open_snapshot(home)
    for given in ({}, {"sort": "title"}):
        text = list_documents(snapshot, max_tokens=1_000, **given).text
        assert len(re.findall(r"note\d{3}", text)) > 10, text
    name = re.search(r"note\d{3}", text)
    assert name and get_source(snapshot, [name[0]]).text
    assert ".txt" not in text, "all names have this suffix, and are ids without it"


def test_documents_without_a_title_and_with_one_text_share_a_line_of_the_list_and_others_do_not(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    texts = {"a": "crane", "b": "mill", "c": "crane", "d": "school"}
    for name, thing in texts.items():
        (folder / f"{name}.txt").write_text(f"On Monday the council of Orl came to see the {thing}. {FILLER}\n")
    home = tmp_path / "c"
    index_documents(home, IndexRequest(paths=(str(folder),)), Settings(home=home))
    lines = title_list.lines(open_snapshot(home), [*times.documents(open_snapshot(home))], None, by_topic=False)
    assert sorted(line().partition(":")[0] for line in lines) == ["- a, c", "- b", "- d"]


def test_of_several_texts_that_do_not_fit_the_beginning_of_each_is_read(tmp_path: Path) -> None:
    def report(n: int) -> str:
        return f"Report {n} is on the mill. " + " ".join(f"On day {d} the mill of report {n} ground {d} sacks." for d in range(60))

    snapshot = indexed(tmp_path, [InlineText(report(n), f"r{n}") for n in range(12)])
    ids = [f"d{n}" for n in range(1, 13)]
    result = get_source(snapshot, ids, max_tokens=1_800)
    for n in range(12):
        assert f"Report {n} is on the mill. On day 0 the mill of report {n} ground 0 sacks." in result.text
    assert result.text.count(" …") == 12 and result.truncated
    assert result.next_call == 'get_source(ids=["t1.1+"])' and "end with …" in result.hint
    few = get_source(snapshot, ids, max_tokens=300)
    assert all(f'"t{n}' in few.next_call for n in range(1, 13)), "what has no room is named"
    many = get_source(snapshot, [*ids, *(f"t{n}.{part}" for n in range(1, 13) for part in (2, 3))], max_tokens=200)
    assert many.next_call or "need more than max_tokens=200" in many.hint


def test_a_question_to_many_ids_shows_a_sentence_of_each_below_the_name_of_its_document(tmp_path: Path) -> None:
    def report(n: int) -> str:
        days = " ".join(f"On day {d} the mill of place {n} ground {d} sacks of rye." for d in range(9, 60))
        return f"Report {n} is on the mill. {days} In the end the mill of place {n} burned down in a great fire. {FILLER}"

    snapshot = indexed(tmp_path, [InlineText(report(n), f"r{n}") for n in range(15)])
    ids = [f"d{n}" for n in range(1, 16)]
    result = get_source(snapshot, ids, query="How did the mill end, was there a fire?", max_tokens=1_500)
    parts = re.split(r"^\[t[\d.]+\] r(\d+)\b", result.text, flags=re.MULTILINE)
    shown = dict(zip(map(int, parts[1::2]), parts[2::2], strict=True))
    assert sorted(shown) == list(range(15))
    assert all(f"place {n} burned down in a great fire" in text for n, text in shown.items()), result.text


def test_a_small_list_on_many_subjects_counts_the_documents_of_each(crane: Snapshot) -> None:
    found = list_documents(crane, query="Ida Holm, Oskar Lind, barn of Sund, green paint", max_tokens=200)
    heads = [line for line in found.text.splitlines() if re.search("\\d+ (more )?documents?", line)]
    assert [name in head for name, head in zip(["Ida Holm", "Oskar Lind", "barn of Sund", "green paint"], heads, strict=True)]
    assert found.more == found.total - found.text.count("\n- ") > 0 and (found.next_cursor or "needs more" in found.hint)


def words(n: int) -> str:
    return " ".join(f"{'bdfgkl'[(n + at) % 6]}{'aeiou'[n % 5]}{'mnrst'[at]}{'aeiou'[n // 5 % 5]}{n}" for at in range(5))


def paged(call: Callable[..., Any]) -> list[str]:
    """The first id of each line of a list or search, over all of its pages."""
    ids, cursor = list[str](), "begin"
    while cursor:
        page = call(cursor="" if cursor == "begin" else cursor)
        assert sending.outgoing(page) <= 300 and not page.hint, page
        ids += [found[1] for line in page.text.splitlines() if (found := re.search(r"\[(t\d+)\]", line))]
        cursor = page.next_cursor
    return ids


def test_the_pages_of_a_small_list_or_search_have_every_line_once(tmp_path: Path) -> None:
    """Long lines were cut to nothing, later subjects were never reached, and passages behind several versions of one
    text came again on each page."""
    texts = [
        InlineText(f"On 3 May 2019 the crane{n % 3} lifted {words(n)} and {words(n + 20)} {words(n + 40)} in a hurry.", f"c{n}", words(n))
        for n in range(9)
    ]
    snapshot = indexed(tmp_path, texts)
    small = partial(list_documents, snapshot, max_tokens=200)
    for call in (small, partial(small, by="statement"), partial(small, query='"crane0"')):
        ids = paged(call)
        assert len(ids) == len(set(ids)) == (3 if "query" in call.keywords else 9), (call, ids)
    ids = paged(partial(small, query='"crane0", "crane1", "crane2"'))
    assert len(ids) == len(set(ids)) == 9
    same = "The mill of the town ground the corn for the bread of the people on the hill until the war came to it"
    versions = [InlineText(f"{same} {'ah' * (n + 1)}.", f"v{n}") for n in range(9)]
    others = [InlineText(f"The the the the {words(n)} {words(n + 9)} {words(n + 18)} of noon.", f"o{n}") for n in range(9)]
    mixed = indexed(tmp_path / "mixed", [*versions, *others])
    ids = paged(partial(search_text, mixed, "the", max_tokens=300))
    assert len(ids) == len(set(ids)) == 18, ids


def test_behind_what_is_on_the_question_a_few_weaker_lines_stand(tmp_path: Path) -> None:
    """A list of 1,100 tokens had three lines, "253 more hold some of its words", and an empty rest; filled with
    weaker lines a result cost an agent with a reading budget its next look."""

    cranes = [
        InlineText(f"The steam crane of {words(n)} lifted timber in the harbour.", f"crane{n}")
        for n in range(25)
    ]
    others = [
        InlineText(
            f"With {words(n)} sheep a crane left for good, it was told in the harbour and in all of the town.",
            f"ship{n}",
        )
        for n in range(30, 90)
    ]
    snapshot = indexed(tmp_path, [*cranes, *others])
    asked = "What did the steam crane lift in the harbour?"
    for call in (
        partial(global_search, snapshot, asked),
        partial(list_documents, snapshot, query=asked),
        partial(local_search, snapshot, asked, form=Form("sentences")),
    ):
        found = call(max_tokens=2_500)
        text, _, weaker = found.text.partition("\nWeaker:\n")
        assert text.count("steam crane of") == 25 and "sheep" not in text, text
        assert "steam crane of" not in weaker and weaker.count("- [t") == 10 and not found.more, found.text


def test_a_list_on_several_subjects_has_a_part_for_each_and_no_document_twice(tmp_path: Path) -> None:
    """The documents that hold a bit of each stood before those on one of them."""
    told = {"crane": "lifted timber", "ferry": "crossed the sound", "school": "taught sailing"}
    texts = [
        InlineText(f"The {thing} of hall {words(20 * at + n)} {did} in a hurry.", f"{thing}{n}")
        for at, (thing, did) in enumerate(told.items())
        for n in range(15)
    ]
    mixed = InlineText("The crane of the ferry stood behind the school. It was red.", "mixed")
    snapshot = indexed(tmp_path, [*texts, mixed])
    asked = "crane timber, ferry crossing; school 2012, balloon"
    found = list_documents(snapshot, query=asked, max_tokens=1_100)
    parts = found.text.split("\n\n")
    assert [re.findall(r'"([^"]+)"', part)[0] for part in parts] == [
        "crane timber",
        "ferry crossing",
        "school 2012",
        "balloon",
    ]
    for part, thing in zip(parts[:3], told, strict=True):
        assert part.count(f"The {thing} of hall") > 2 and part.count("of hall") == part.count(thing + " of hall"), part
    assert "Nowhere in this corpus: '2012'" in parts[2] and parts[3].startswith("No document"), parts
    seen = re.findall(r"- \[(t\d+)", found.text)
    while found.next_cursor:
        found = list_documents(snapshot, query=asked, max_tokens=1_100, cursor=found.next_cursor)
        assert "balloon" not in found.text, found.text  # a subject without documents is told once
        seen += re.findall(r"- \[(t\d+)", found.text)
    assert len(seen) == len(set(seen)) == 46
    for one in ("Which crane, if any, lifted timber?", "the crane: timber, years", '"lifted timber, in"'):
        assert "\n\n" not in list_documents(snapshot, query=one).text, one


def test_several_questions_name_the_names_that_their_passages_lack(tmp_path: Path) -> None:
    texts = [
        InlineText("The steam crane of Orl was sold to Kron.", "a", "Crane"),
        InlineText("A lawsuit on the ferry of Sund was settled.", "b", "Ferry"),
        *(InlineText(f"Berth {n} was swept by the crew of the yard.", f"y{n}") for n in range(9)),
    ]
    snapshot = indexed(tmp_path, texts)
    asked = ["steam crane sold", "Springer opera", "crane of Orl lawsuit"]
    text = several([("", snapshot)], asked, Request("", form=Form())).text
    crane, opera, both = text.split("\n## ")
    assert "Not in these" not in crane + both and "Nowhere" not in crane, text
    assert "Nothing was found" in opera or "Nowhere in this corpus: 'Springer'" in opera, text
    crew = several([("", snapshot)], ["Did Kron Sund sweep a berth with the crew of the yard?", "crew yard lawsuit"], Request("", form=Form())).text
    assert "## Did Kron Sund sweep a berth with the crew of the yard?\nNot in these: 'Kron Sund'." in crew and crew.count("Not in these") == 1, crew


def test_sentences_that_differ_in_a_number_are_lines_of_their_own_and_subjects_left_out_are_told(tmp_path: Path) -> None:
    """10 dollars stood for 12 dollars of a later year, which was named by its id alone."""
    sums = [InlineText(f"The honey revenue of the island was {n} dollars.", f"honey{n}") for n in (10, 12)]
    twin = InlineText("The honey revenue of the island was 10 dollars.", "copy")
    snapshot = indexed(tmp_path, [*sums, twin, InlineText(f"The ferry of {words(3)} left. {FILLER}", "ferry")])
    text = list_documents(snapshot, query="honey revenue").text
    assert text.startswith("3 documents") and list_documents(snapshot, query="honey revenue", max_tokens=200).text.count("(also t") == 1
    assert "was 10 dollars." in text and "was 12 dollars." in text and "(also t" in text, text
    many = ", ".join(f"subject{n}" for n in range(13))
    assert "Only the first 12 subjects were looked for." in list_documents(snapshot, query=many).hint


def test_a_subject_whose_documents_are_listed_above_names_them(tmp_path: Path) -> None:
    """An agent was told that no document says anything on phishing, which two documents above did."""
    trap = InlineText("A worm spread by phishing mails in May. The bank closed its counters.", "trap.txt")
    snapshot = indexed(tmp_path, [trap, InlineText(f"The ferry of {words(3)} left. {FILLER}", "ferry")])
    text = list_documents(snapshot, query="worm, phishing").text
    assert 'No document says anything on "phishing"' not in text and "Listed above: 1 document." in text, text


def test_sentences_that_differ_in_grammar_or_in_the_order_of_words_are_lines_of_their_own(tmp_path: Path) -> None:
    """A bridge that is not safe stood for one that is."""
    texts = ("The bridge of Orl is safe for carts.", "The bridge of Orl is not safe for carts.", "Kron sued Sund over two carts.", "Sund sued Kron over two carts.")
    text = list_documents(indexed(tmp_path, [InlineText(each, f"n{n}") for n, each in enumerate(texts)]), query="carts").text
    assert all(each in text for each in texts) and "(also" not in text, text


def test_a_list_of_titles_has_whole_titles_and_each_once(tmp_path: Path) -> None:
    title = "What the harbour board decided on the toll of the northern bridge in May"
    named = [InlineText(f"The toll of bridge {words(n)} was raised. {FILLER}", f"n{n}", f"{title} {n % 40}") for n in range(80)]
    text = list_documents(indexed(tmp_path, named), max_tokens=4_000).text
    assert text.startswith("80 documents.") and text.count("- [") == 40 and "…" not in text, text
    assert all(re.search(rf"- \[t\d+\] \[t\d+\] {title} {n}$", text, re.MULTILINE) for n in range(40)), text


@pytest.mark.parametrize("wrong", ["type=md", "rating>=3"])
def test_a_filter_that_says_nothing_of_documents_is_refused(crane: Snapshot, wrong: str) -> None:
    with pytest.raises(BadInput, match="says nothing of documents"):
        list_documents(crane, filters=[wrong])


def test_a_sentence_that_answers_two_of_several_questions_stands_once(tmp_path: Path) -> None:
    texts = (
        InlineText("The harbour of Orrin was dredged by Mara Quist in spring. Boats came back.", "a.txt"),
        InlineText("The orchard of Tarnau lost its pears to frost. Nobody was insured.", "b.txt"),
    )
    index_documents(tmp_path / "c", IndexRequest(texts=texts), Settings(home=tmp_path))
    request = Request("", form=Form(breadth="sentences"), max_tokens=2_000)
    asked = ["who dredged the harbour", "harbour of Orrin dredged in spring", "pears of the orchard"]
    text = several([("", open_snapshot(tmp_path / "c"))], asked, request).text
    assert text.count("was dredged by Mara Quist") == 1 and "See also [t1] above." in text
    assert text.count("lost its pears") == 1
