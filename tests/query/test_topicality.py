"""What a term tells of the topic: words that stand in all topics alike select no document."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from graphrag_mcp.query.documents import list_documents
from graphrag_mcp.query.global_ import global_search
from graphrag_mcp.query.topicality import topicality, weighed
from graphrag_mcp.store.tables import Snapshot
from graphrag_mcp.types import InlineText
from tests.support.files import snapshot_of

SEA = "trawler herring skipper nets quay harbour tide cod crew deck anchor".split()
HILL = "shepherd ewes lambs pass fold wool pasture shears flock hurdle crook".split()
RARE = "A narwhal was seen from the quay."


def written(words: list[str], n: int) -> str:
    """A text of these words in another order for each n."""
    order = [words[(n * 3 + at * (1 + n % 4)) % len(words)] for at in range(8)]
    named = "herring" if words is SEA else "ewes"
    return f"Of {named}: the {' and the '.join(order)} were seen again. Prices were stable."


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    texts = [InlineText(f"{written(SEA, n)} {RARE if n == 3 else ''}", f"sea{n}", f"Landing {n}") for n in range(20)]
    texts += [InlineText(written(HILL, n), f"hill{n}", f"Flock {n}") for n in range(20)]
    return snapshot_of(tmp_path_factory.mktemp("topics"), texts)


def test_a_term_of_all_topics_tells_little_and_one_of_a_topic_or_a_rare_one_all(snapshot: Snapshot) -> None:
    told = topicality(snapshot, ["herring", "ewe", "narwhal", "price", "stabl"])
    assert told["herring"] == told["ewe"] == told["narwhal"] == 1.0
    assert max(told["price"], told["stabl"]) < 0.05


def test_a_form_counts_as_its_stem(snapshot: Snapshot) -> None:
    worth = weighed(snapshot, {"prices": 2.0, "price": 3.0, "herring": 1.0})
    assert worth["prices"] / 2 == pytest.approx(worth["price"] / 3) and worth["herring"] == 1.0


def test_a_corpus_of_one_topic_weighs_all_terms_alike(tmp_path: Path) -> None:
    one = snapshot_of(tmp_path, [InlineText(RARE, "a")])
    assert topicality(one, ["narwhal", "quay"]) == {"narwhal": 1.0, "quay": 1.0}


def test_general_words_of_a_question_bring_in_no_document(snapshot: Snapshot) -> None:
    """"How did ... develop, what was stable" found documents of every topic."""
    text = global_search(snapshot, "How stable were prices of herring?", max_tokens=6_000).text
    on_it, _, _ = text.partition("Weaker:")
    assert on_it.count("Landing") >= 15 and "Flock" not in on_it


def test_a_line_says_how_its_document_begins_and_where_that_is_on_another_matter_the_best_sentence(
    tmp_path: Path,
) -> None:
    opening = "The council of Orl met on Monday in the new hall."
    filler = " ".join(f"Item {n} of the agenda was put off until the spring." for n in range(60))
    body = f"{opening} {filler} The ferry to Sund was sold to a company from Kron."
    texts = [InlineText(f"{body} Vote {n} was close.", f"minutes{n}", f"Minutes {n}") for n in range(25)]
    texts.append(InlineText("Ana: Good morning!\nBen: Hello.\nAna: The ferry leaves at nine.", "chat", "Chat"))
    snapshot = snapshot_of(tmp_path, texts)
    for text in (
        global_search(snapshot, "sale of the ferry", max_tokens=6_000).text,
        list_documents(snapshot, query="sale of the ferry", max_tokens=6_000).text,
    ):
        lines = [line for line in text.splitlines() if "Minutes" in line]
        assert len(lines) >= 1 and all(opening in line and "The ferry to Sund was sold" in line for line in lines), text
        assert "Good morning" not in text
    cited = {citation.id for citation in global_search(snapshot, "sale of the ferry", max_tokens=6_000).citations}
    assert cited and all(not id.endswith(".2") for id in cited)


def test_under_a_filter_of_passages_no_other_passage_of_the_document_is_shown(tmp_path: Path) -> None:
    filler = " ".join(f"Item {n} of the agenda was put off until the spring." for n in range(60))
    texts = [
        InlineText(f"The council met about the ferry {n}. {filler} Ida Holm sold the ferry {n} to Kron.", f"minutes{n}")
        for n in range(25)
    ]
    snapshot = snapshot_of(tmp_path, texts)
    for filters in (["entity=Ida Holm"], []):
        result = global_search(snapshot, "the ferry", max_tokens=6_000, filters=filters)
        ends = {citation.id.rpartition(".")[2] for citation in result.citations}
        assert ends == ({"3"} if filters else {"1"}) and ("Ida Holm sold" in result.text) == bool(filters)


def test_versions_of_an_article_that_begin_alike_have_one_line(tmp_path: Path) -> None:
    begins = "The ferry of Orl was sold to a company from Kron for a million."
    rest = " ".join(f"{written(HILL, n)}" for n in range(5))
    texts = [InlineText(f"{begins} {rest} The ferry, a sale of Kron to the ferry of a sale, was edition {n}.", f"v{n}") for n in range(2)]
    texts += [InlineText(f"Ferry {n} was painted in spring. {written(SEA, n)}", f"other{n}") for n in range(30)]
    snapshot = snapshot_of(tmp_path, texts)
    for text in (
        global_search(snapshot, "sale of the ferry to Kron", max_tokens=6_000).text,
        list_documents(snapshot, query="sale of the ferry to Kron", max_tokens=6_000).text,
    ):
        (line,) = (line for line in text.splitlines() if begins in line)
        assert "(also t" in line, text


def test_documents_that_share_a_sentence_but_begin_otherwise_have_a_line_each(tmp_path: Path) -> None:
    """Minutes of other years with other votes stood behind one line, as its versions."""
    shared = "It was reported that the boiler needs repair."
    rest = " ".join(f"Item {n} was put off." for n in range(40))
    texts = [InlineText(f"Vote {n}: {n} for, {20 - n} against, {100 * n} euros. {shared} {rest}", f"m{n}") for n in range(9)]
    texts += [InlineText(f"A boiler was bought by the school {n}. {rest}", f"s{n}") for n in range(25)]
    text = list_documents(snapshot_of(tmp_path, texts), query="boiler needs repair", max_tokens=6_000).text
    assert all(f"Vote {n}:" in text for n in range(9)) and "in the words of another" not in text


@pytest.mark.parametrize("budget", [200, 260, 700])
def test_the_pages_of_a_survey_and_of_a_list_reach_every_line_once(snapshot: Snapshot, budget: int) -> None:
    """At 200 tokens a cursor led to itself, and heads of three subjects hid the lines that it had passed."""
    for search, query in ((global_search, "herring and ewes"), (list_documents, "herring, ewes; prices were stable")):
        every = set(re.findall(r"\[(t[\d.]+)\]", search(snapshot, query=query, max_tokens=20_000).text))
        seen, cursor, pages = list[str](), "", 0
        while pages < 200:
            result = search(snapshot, query=query, max_tokens=budget, cursor=cursor)
            seen += re.findall(r"- \[(t[\d.]+)\]", result.text)
            pages, cursor = pages + 1, result.next_cursor
            if not cursor:
                break
        assert not cursor and len(seen) == len(set(seen)) and set(seen) == every
