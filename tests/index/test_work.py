"""The agent as the model: work claimed over a real client, answers handed in, merged, kept with who gave them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graphrag_mcp.app import App
from graphrag_mcp.errors import Damaged
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.index.work import Claimed, claim, submit
from graphrag_mcp.query.community import get_community_report
from graphrag_mcp.server import build_server
from graphrag_mcp.settings import Settings
from graphrag_mcp.store import leases
from graphrag_mcp.store.tables import open_snapshot
from graphrag_mcp.types import IndexRequest, InlineText
from tests.support.client import Caller, connected, item_texts
from tests.support.command import ROOT
from tests.support.workload import until

TEXTS = {
    "a": "Mira Okafor built the tide mill at Sable Point in 1904. Her brother Jonas Okafor kept its books.",
    "b": "The tide mill at Sable Point burned in 1931. Jonas Okafor rebuilt it with the Sable Cooperative.",
    "c": "潮汐磨坊由米拉·奥卡福于1904年建造。萨布尔合作社后来重建了它。",
}
MIRA = {
    "entities": [
        {"name": "Mira Okafor", "type": "person", "description": "Mira Okafor built the tide mill at Sable Point."},
        {"name": "tide mill", "type": "artifact", "description": "The tide mill stood at Sable Point."},
    ],
    "relationships": [
        {"source": "Mira Okafor", "target": "tide mill", "description": "Mira Okafor built the tide mill.",
         "keywords": ["building"], "strength": 9},
    ],
}  # fmt: skip


def indexed(folder: Path, method: str = "agent", **texts: str) -> Any:
    inline = tuple(InlineText(text, id) for id, text in (texts or TEXTS).items())
    return index_documents(folder, IndexRequest(texts=inline, method=method), Settings(home=folder.parent.parent))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "corpora" / "kb"
    result = indexed(folder)
    assert result.pending["extract"] == 3 and "agent" in result.degraded[0]["reason"]
    return folder


def item_of(claimed: Claimed, words: str) -> str:
    return next(item.work_id for item in claimed.items if words in item.prompt)


def entities(folder: Path) -> dict[str, dict[str, Any]]:
    return {row["title"]: row for row in open_snapshot(folder).rows("entities").to_pylist()}


def settings(folder: Path) -> Settings:
    return Settings(home=folder.parent.parent)


def test_what_an_agent_hands_in_becomes_the_graph_with_who_gave_it(folder: Path) -> None:
    work = item_of(claim(folder, settings(folder), "ada"), "built the tide mill at Sable Point in 1904. Her")
    assert submit(folder, settings(folder), "ada", [{"work_id": work, **MIRA}]).accepted == [work]
    result = index_documents(folder, IndexRequest(method="agent"), settings(folder))
    assert result.pending["extract"] == 2
    mira = entities(folder)["Mira Okafor"]
    assert (mira["type"], mira["description"]) == ("person", "Mira Okafor built the tide mill at Sable Point.")
    snapshot = open_snapshot(folder)
    said = [row for row in snapshot.rows("mentions").to_pylist() if row["by"]]
    assert {row["by"] for row in said} == {"agent:ada"} and {row["form"] for row in said} == {"Mira Okafor", "tide mill"}
    link = next(row for row in snapshot.rows("relationships").to_pylist() if row["keywords"] == "building")
    assert (link["weight"], link["description"]) == (9.0, "Mira Okafor built the tide mill.")


def test_a_fresh_index_with_the_same_answers_is_the_same(folder: Path, tmp_path: Path) -> None:
    from graphrag_mcp.doctor.generations import digest

    work = item_of(claim(folder, settings(folder), "ada"), "built the tide mill at Sable Point in 1904. Her")
    submit(folder, settings(folder), "ada", [{"work_id": work, **MIRA}])
    index_documents(folder, IndexRequest(method="agent"), settings(folder))
    other = tmp_path / "corpora" / "other"
    other.mkdir()
    shutil.copy(folder / "answers.db", other)
    indexed(other)
    assert digest(open_snapshot(other))["content"] == digest(open_snapshot(folder))["content"]


def test_two_agents_share_the_queue_and_a_lost_one_gives_its_items_back(folder: Path) -> None:
    first = claim(folder, settings(folder), "ada", max_items=2)
    second = claim(folder, settings(folder), "bob", max_items=5)
    assert len(first.items) == 2 and len(second.items) == 1
    assert not {item.work_id for item in first.items} & {item.work_id for item in second.items}
    assert [item.work_id for item in claim(folder, settings(folder), "ada", max_items=2).items] == [
        item.work_id for item in first.items
    ]
    held = [leases.find(folder, [item.work_id])[item.work_id] for item in first.items]
    leases.take(folder, held, seconds=-1.0)  # ada never came back
    assert len(claim(folder, settings(folder), "bob", max_items=5).items) == 3


def test_nonsense_is_refused_with_a_reason_and_the_good_rest_is_kept(folder: Path) -> None:
    claimed = claim(folder, settings(folder), "ada")
    good, bad, worse = (item.work_id for item in claimed.items)
    done = submit(folder, settings(folder), "ada", [
        {"work_id": good, **MIRA}, {"work_id": bad, "text": "I am afraid I cannot help with that."},
        {"work_id": worse, "entities": "many"}, {"work_id": "w000000000000", **MIRA}, "hello", {},
    ])  # fmt: skip
    assert done.accepted == [good]
    reasons = {one["work_id"]: one["reason"] for one in done.rejected}
    assert set(reasons) == {bad, worse, "w000000000000", "(none)"} and all(reasons.values())
    assert "claim_work" in reasons["w000000000000"]


def test_answers_that_changed_places_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "corpora" / "kb"
    indexed(folder, a="Mira Okafor built the tide mill at Sable Point.", b="Jonas Vell mapped the salt marsh.")
    claimed = claim(folder, settings(folder), "ada")
    mill, marsh = item_of(claimed, "Mira Okafor"), item_of(claimed, "Jonas Vell")
    jonas = {"entities": [{"name": "Jonas Vell", "type": "person", "description": "Jonas Vell mapped a marsh."}]}
    done = submit(folder, settings(folder), "ada", [{"work_id": mill, **jonas}, {"work_id": marsh, **MIRA}])
    reasons = {one["work_id"]: one["reason"] for one in done.rejected}
    assert done.accepted == [] and all("name not in the text" in reasons[id] for id in (mill, marsh))
    unheard = {"entities": [{"name": "Frau Vell", "type": "person", "description": "Vell's wife, unnamed."}]}
    done = submit(folder, settings(folder), "ada", [{"work_id": mill, **MIRA}, {"work_id": marsh, **unheard}])
    assert done.accepted == [mill] and "name not in the text" in done.rejected[0]["reason"]


def test_a_damaged_list_of_leases_is_begun_anew_and_loses_no_answer(folder: Path) -> None:
    work = claim(folder, settings(folder), "ada").items[0].work_id
    submit(folder, settings(folder), "ada", [{"work_id": work, **MIRA}])
    (folder / "work.db").write_bytes(b"no database" * 100)
    with pytest.raises(Damaged, match="Call claim_work again"):
        claim(folder, settings(folder), "ada")
    assert len(claim(folder, settings(folder), "ada").items) == 2


def test_the_same_answer_twice_changes_nothing_and_another_one_is_refused(folder: Path) -> None:
    work = claim(folder, settings(folder), "ada").items[0].work_id
    for _ in range(2):
        assert submit(folder, settings(folder), "ada", [{"work_id": work, **MIRA}]).accepted == [work]
    again = submit(folder, settings(folder), "bob", [{"work_id": work, "entities": MIRA["entities"][:1]}])
    assert again.accepted == [] and "answered already" in again.rejected[0]["reason"]


def test_an_answer_about_a_text_that_has_changed_since_is_refused(folder: Path) -> None:
    work = item_of(claim(folder, settings(folder), "ada"), "burned in 1931")
    indexed(folder, b="The tide mill was never rebuilt. Sable Point is bare.")
    done = submit(folder, settings(folder), "ada", [{"work_id": work, **MIRA}])
    assert done.accepted == [] and "changed" in done.rejected[0]["reason"]


@pytest.fixture
def caller(folder: Path) -> Iterator[Caller]:
    with connected(build_server(App(settings(folder)))) as caller:
        yield caller


def test_wrong_calls_are_taught(caller: Caller) -> None:
    assert "kind must be" in caller.bad("claim_work", kind="poems")
    assert "nothing to submit" in caller.bad("submit_work", results=[])


def keepers(tmp_path: Path) -> Path:
    names = [f"Keeper {chr(65 + n)}{chr(97 + n)}vik" for n in range(6)]
    texts = {
        str(n): f"{names[n]} met {names[(n + 1) % 6]} and {names[(n + 2) % 6]} at the Sable Point mill." for n in range(6)
    }
    folder = tmp_path / "corpora" / "kb"
    assert indexed(folder, **texts).pending["report"] >= 1
    return folder


BODY = (
    '{"title": "Keepers", "summary": "The keepers met. [Data: Entities (1, 2)]", "rating": 6, "rating_explanation":'
    ' "Few.", "findings": [{"summary": "Meetings", "explanation": "They met at the mill. [Data: Relationships (1)]"}]}'
)


def test_reports_are_handed_in_as_text_and_keep_their_references(tmp_path: Path) -> None:
    folder = keepers(tmp_path)
    claimed = claim(folder, settings(folder), "ada", kind="report")
    work = claimed.items[0].work_id
    assert submit(folder, settings(folder), "ada", [{"work_id": work, "text": BODY}]).accepted == [work]
    index_documents(folder, IndexRequest(method="agent"), settings(folder))
    reports = [row for row in open_snapshot(folder).rows("reports").to_pylist() if row["title"] == "Keepers"]
    assert len(reports) == 1 and reports[0]["rank"] == 6.0 and "Sources (" in reports[0]["findings"]
    assert "written by agent:ada" in get_community_report(open_snapshot(folder), f"c{reports[0]['n']}").text


def test_a_report_is_refused_or_told_what_of_it_has_no_row_and_its_invented_numbers_are_marked(tmp_path: Path) -> None:
    folder = keepers(tmp_path)
    work = claim(folder, settings(folder), "ada", kind="report").items[0].work_id
    strange = BODY.replace("(1, 2)", "(98)").replace("(1)", "(99)")
    (refused,) = submit(folder, settings(folder), "ada", [{"work_id": work, "text": strange}]).rejected
    assert "cites only rows that the question does not show" in refused["reason"]
    half = BODY.replace("(1)", "(99)").replace("The keepers met.", "The keepers met in 1731.")
    done = submit(folder, settings(folder), "ada", [{"work_id": work, "text": half}])
    (told,) = done.left_out
    assert done.accepted and "1 statement without a row" in told["reason"] and "not in what it was written from: 1731" in told["reason"]
    index_documents(folder, IndexRequest(method="agent"), settings(folder))
    (report,) = [row for row in open_snapshot(folder).rows("reports").to_pylist() if row["title"] == "Keepers"]
    assert "in 1731. (not in what it was written from: 1731) [Data: " in report["summary"] and report["findings"] == "[]"


KEY = "sk-proj-aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5z"


def test_a_text_with_a_key_in_it_is_read_by_an_agent_without_the_key_and_merged(tmp_path: Path) -> None:
    folder = tmp_path / "corpora" / "kb"
    indexed(folder, a=f"Mira Okafor keeps the tide mill with {KEY} at Sable Point.")
    (item,) = claim(folder, settings(folder), "ada").items
    assert KEY not in item.prompt and "with sk-" in item.prompt
    assert submit(folder, settings(folder), "ada", [{"work_id": item.work_id, **MIRA}]).accepted == [item.work_id]
    assert not index_documents(folder, IndexRequest(method="agent"), settings(folder)).pending
    assert entities(folder)["tide mill"]["type"] == "artifact"


def test_a_key_stands_in_no_evidence_whatever_was_there_before(tmp_path: Path) -> None:
    from graphrag_mcp.doctor.generations import digest

    texts = {str(n): f"Mira Okafor met Jonas Okafor in harbour {n}." for n in range(4)}
    texts["key"] = f"With {KEY} in the hands of whoever asked came Mira Okafor to Jonas Okafor."
    corpora = tmp_path / "corpora"
    indexed(corpora / "kb", "fast", **texts)
    texts |= {str(n): "Nothing is said here." for n in range(4)}
    for name in ("kb", "fresh"):
        indexed(corpora / name, "fast", **texts)
    rows = [row for table in ("entities", "relationships") for row in open_snapshot(corpora / "kb").rows(table).to_pylist()]
    assert rows and KEY not in str(rows)
    assert digest(open_snapshot(corpora / "kb"))["content"] == digest(open_snapshot(corpora / "fresh"))["content"]


def test_the_same_text_in_two_documents_is_one_item(tmp_path: Path) -> None:
    folder = tmp_path / "corpora" / "kb"
    assert indexed(folder, a=TEXTS["a"], b=TEXTS["a"]).pending["extract"] == 2
    (item,) = claim(folder, settings(folder), "ada").items
    assert submit(folder, settings(folder), "ada", [{"work_id": item.work_id, **MIRA}]).accepted == [item.work_id]
    assert "extract" not in index_documents(folder, IndexRequest(method="agent"), settings(folder)).pending
    assert entities(folder)["tide mill"]["frequency"] == 2


def test_an_agent_writes_the_top_reports_of_an_index_whose_texts_no_agent_reads(
    deep_home: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "corpora" / "sample"
    shutil.copytree(deep_home / "corpora" / "sample", folder)
    given = replace(settings(folder), roots=(ROOT,), chunk_size=200, chunk_overlap=10)
    before = {row["id"]: row for row in open_snapshot(folder).rows("reports").to_pylist()}
    top = {id for id, row in before.items() if row["level"] == 0}
    with connected(build_server(App(given))) as caller:
        titles: dict[str, str] = {}
        for _ in range(20):
            claimed = caller.good("claim_work", corpus="sample", kind="report", level=0, max_tokens=9000)
            if not claimed["items"]:
                break
            assert claimed["tokens"] <= 9000
            results = []
            for id, text in item_texts(claimed).items():
                table = "Entities" if "\nEntities\n" in text else "Reports"
                titles[id] = f"Title {id}"
                said = f"What {''.join(filter(str.isalpha, id))} says. [Data: {table} (1)]"
                report = {"title": titles[id], "summary": said, "rating": 7, "rating_explanation": "x.",
                          "findings": [{"summary": f"Finding of {id}.", "explanation": said}]}  # fmt: skip
                results.append({"work_id": id, "text": json.dumps(report)})
            bare = {**results[0], "text": results[0]["text"].replace("[Data:", "(Data:")}
            refused = caller.good("submit_work", corpus="sample", results=[bare])
            assert not refused["accepted"] and "cites its rows" in json.dumps(refused["rejected"]), refused
            results[0]["text"] = results[0]["text"].replace("[Data:", "\uff3b\u6570\u636e\uff1a").replace("(1)]", "(1)\uff3d")
            done = caller.good("submit_work", corpus="sample", results=results)
            assert sorted(done["accepted"]) == sorted(one["work_id"] for one in results), done
        until(lambda: len(written(folder)) == len(titles))
        shown = caller.good("global_search", corpus="sample", query="What is this about?")["text"]
        assert all(title in shown for title in titles.values()), shown
        assert "says. [t" in shown
        assert "No report of a top topic is left to write" in caller.good(
            "claim_work", corpus="sample", kind="report", level=0
        )["text"]
        assert "level 0 alone" in caller.bad("claim_work", corpus="sample", kind="report", level=1)
    assert 0 < len(titles) <= len(top) and set(written(folder)) <= top
    after = {row["id"]: row for row in open_snapshot(folder).rows("reports").to_pylist()}
    assert {id: row["summary"] for id, row in after.items() if id not in top} == {
        id: row["summary"] for id, row in before.items() if id not in top
    }
    result = index_documents(folder, IndexRequest(method="auto"), given)
    assert not result.errors and len(written(folder)) == len(titles), "another run keeps them"
    without = index_documents(folder, IndexRequest(method="fast"), given)
    assert written(folder) == [] and "leaves out what models and agents wrote" in without.hint


def written(folder: Path) -> list[str]:
    rows = open_snapshot(folder).rows("reports", "", ["id", "method"]).to_pylist()
    return [row["id"] for row in rows if row["method"] != "extractive"]
