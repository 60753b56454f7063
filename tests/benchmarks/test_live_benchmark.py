"""benchmarks/live: requests become files, replies become fixtures; an index is made of the kept replies without loss."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from graphrag_mcp.index.extraction import params_from
from graphrag_mcp.index.pipeline import index_documents
from graphrag_mcp.llm import prompts
from graphrag_mcp.llm.protocols import Message
from graphrag_mcp.settings import Settings
from graphrag_mcp.store.tables import Snapshot, open_snapshot
from graphrag_mcp.types import IndexRequest
from tests.support.command import ROOT
from tests.support.demonstration import demonstration
from tests.support.openai_server import openai_server
from tests.support.reply_forms import entity, records
from tests.support.scripted import ScriptedChat

LIVE = ROOT / "benchmarks" / "live"
spec = importlib.util.spec_from_file_location("live", LIVE / "live.py")
assert spec and spec.loader
live: Any = importlib.util.module_from_spec(spec)
spec.loader.exec_module(live)
RECORDED = sorted((LIVE / "recorded").glob("*.json"))
KEPT = [json.loads(path.read_text("utf-8")) for path in RECORDED]


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[list[str]]:
    """Answers open requests in the folder, each in a fence behind a sentence, as chat models do."""
    chat, done, replied = ScriptedChat(demonstration()), threading.Event(), list[str]()
    folder = tmp_path / "work" / "asks"

    def read() -> None:
        while not done.wait(0.05):
            for ask in live.Folder(folder).open():
                asked = json.loads((folder / f"{ask.name[:4]}.json").read_text("utf-8"))
                messages = [Message(one["role"], one["content"]) for one in asked["messages"]]
                said = asyncio.run(chat.complete(messages, schema=asked["response_format"])).text
                part = folder / f"{ask.name[:4]}.tmp"
                part.write_text(f"Here is what you asked for:\n\n```\n{said}\n```\n", "utf-8")
                part.rename(folder / f"{ask.name[:4]}.reply.md")
                replied.append(ask.name)

    thread = threading.Thread(target=read)
    thread.start()
    yield replied
    done.set()
    thread.join()


def test_a_run_is_answered_through_files_recorded_and_replayed_without_loss(
    tmp_path: Path, reader: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = tmp_path / "bench"
    (here / "documents").mkdir(parents=True)
    for name in ("05-letter-oyelaran.md", "02-interview-with-the-keeper.md"):
        (here / "documents" / name).write_bytes((LIVE / "documents" / name).read_bytes())
    questions = json.loads((LIVE / "questions.json").read_text("utf-8"))
    (here / "questions.json").write_text(json.dumps([questions[4], questions[9]]), "utf-8")
    monkeypatch.setattr(live, "HERE", here)
    monkeypatch.setattr(live, "RECORDED", here / "recorded")
    work = tmp_path / "work"
    assert live.main(["run", str(work)]) == 0
    said = {one.stem: json.loads(one.read_text("utf-8")) for one in (work / "results").glob("*.json")}
    assert set(said) == {"dry-run", "index", "q05", "q10"}
    assert said["q05"]["result"]["state"] == "answered" and said["q10"]["result"]["answer"]
    before = len(reader)
    assert live.main(["run", str(work)]) == 0 and len(reader) == before
    assert live.main(["record", str(work), "--reader", "demonstration"]) == 0
    kinds = {json.loads(one.read_text("utf-8"))["kind"] for one in (here / "recorded").glob("*.json")}
    assert {"extract", "answer", "drift_auto_primer", "drift_auto_step"} <= kinds
    capsys.readouterr()
    assert live.main(["replay"]) == 0, capsys.readouterr().out
    assert "extract: " in capsys.readouterr().out


def test_a_record_is_kept_or_counted() -> None:
    of = {"kind": "extract", "about": "Ines leads the Board."}
    reply = records(entity("Ines", "Ines leads it."), entity("Board", "Ines leads it.", "organization"), entity("Zed", "Not there."))
    assert live.replay({**of, "reply": f"Sure!\n{reply}"}) == (3, 3)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_no_well_formed_record_of_a_kept_reply_is_lost(path: Path) -> None:
    there, kept = live.replay(json.loads(path.read_text("utf-8")))
    assert kept >= there


def test_documents_and_questions_are_as_the_protocol_says() -> None:
    documents = [one.read_text("utf-8") for one in (LIVE / "documents").iterdir()]
    assert len(documents) == 10 and sum("闸" in text for text in documents) == 4
    questions = json.loads((LIVE / "questions.json").read_text("utf-8"))
    assert [one["id"] for one in questions] == [f"q{n:02}" for n in range(1, 13)]
    assert {one["mode"] for one in questions} == {"local", "global", "drift"}


def test_every_question_has_an_answer_and_marks_for_each_way_of_searching(capsys: pytest.CaptureFixture[str]) -> None:
    answers = json.loads((LIVE / "judged.json").read_text("utf-8"))["answers"]
    ways = {(one["question"], one["way"]) for one in answers if one["answer"]}
    assert len(answers) == len(ways) == 48 and len({way for _, way in ways}) == 4
    assert all(0 <= one[name] <= 10 for one in answers for name in live.CRITERIA)
    assert all(one["claims_supported"] <= one["claims"] for one in answers)
    assert live.main(["judged"]) == 0
    table = capsys.readouterr().out
    rows = re.findall(r"^\| .+\| (\d\.\d) \| (\d\.\d) \| (\d\.\d) \| (\d\.\d) \| (\d+ of \d+) \|$",
                      (ROOT / "docs" / "benchmarks.md").read_text("utf-8"), re.MULTILINE)  # fmt: skip
    assert len(rows) == 4 and all(f"all (12) | {' | '.join(row[:4])} | {row[4]}" in table for row in rows)

# ---- the kept replies as a model ------------------------------------------------------------------

AGAIN = (
    "no reply was kept for these requests (kind, what it is about). A prompt's words may change without this; when what is "
    "asked is another, record again as benchmarks/live/README.md says: run, answer, record"
)

UNREAD = "Babatunde Oyelaran"  # the letter has "BabatundeOyelaran": a name that a text does not have is left out and counted


def said(kind: str) -> list[dict[str, Any]]:
    return [one for one in KEPT if one["kind"] == kind]


def written(reply: str, kind: str, *names: str) -> list[tuple[str, ...]]:
    """These fields of the objects of a reply, read without the product; an object that was cut off is none."""
    _, _, listed = reply.partition(f'"{kind}": [')
    found, place = list[tuple[str, ...]](), 0
    while (start := re.compile(r"[\s,]*\{").match(listed, place)):
        try:
            record, place = json.JSONDecoder().raw_decode(listed, start.end() - 1)
        except json.JSONDecodeError:
            break
        found.append(tuple(record[name] for name in names))
    return found


def bare(name: str) -> str:
    return re.sub(r"（[^）]*）$", "", name).casefold()


@pytest.fixture(scope="module")
def live_index(tmp_path_factory: pytest.TempPathFactory) -> tuple[Snapshot, Any, Any]:
    """The ten documents, indexed with the kept replies as the model: snapshot, result, the replies."""
    kept, corpus = live.Recorded(LIVE / "recorded"), tmp_path_factory.mktemp("live") / "c"
    with openai_server(lambda messages, body: kept.reply(messages)) as server:
        chosen = Settings(chat_model="reader", base_url=server.url, max_retries=0)
        result = index_documents(corpus, IndexRequest(paths=(str(LIVE / "documents"),), method="llm"), chosen)
    return open_snapshot(corpus), result, kept


def test_the_ten_documents_are_indexed_with_the_kept_replies(live_index: tuple[Snapshot, Any, Any]) -> None:
    _, result, kept = live_index
    assert kept.missing == [], AGAIN
    assert result.status == "done" and result.counts["added"] == 10 and not result.pending
    assert set(result.usage["by_stage"]) == {"extract", "glean", "report"}


def test_every_entity_and_relationship_that_a_reader_wrote_is_in_the_graph(live_index: tuple[Snapshot, Any, Any]) -> None:
    snapshot, _, _ = live_index
    rows = snapshot.rows("entities").to_pylist()
    titles = {row["id"]: row["title"] for row in rows}
    pairs = {frozenset((titles[row["source_id"]].casefold(), titles[row["target_id"]].casefold()))
             for row in snapshot.rows("relationships").to_pylist()}  # fmt: skip
    # Tidewright is a name of Tidewright Ltd.
    of = {name: row["title"].casefold() for row in rows for name in (row["title"].casefold(), *row["names"])}
    known = {name.removeprefix("the ") for name in of}
    named, related = set(), set()
    for one in (*said("extract"), *said("extract_more")):
        named |= {bare(name).removeprefix("the ") for (name,) in written(one["reply"], "entities", "name")}
        ends = written(one["reply"], "relationships", "source", "target")
        related |= {frozenset(of.get(name, name) for name in map(bare, pair)) for pair in ends}
    unread = UNREAD.casefold()
    assert len(named) > 60 and named <= known | {"（2022）临民初字第0317号", unread}
    assert len(related) > 70 and related - pairs == {pair for pair in related if unread in pair}


def test_what_was_damaged_is_repaired_or_counted(live_index: tuple[Snapshot, Any, Any]) -> None:
    snapshot, result, _ = live_index
    rows = snapshot.rows("entities").to_pylist()
    titles = {row["id"]: row["title"] for row in rows}
    related = {(titles[row["source_id"]], titles[row["target_id"]]): row for row in snapshot.rows("relationships").to_pylist()}
    # keywords in the place of the description, in Chinese
    swapped = related["泰德莱特公司", "临溪新闸"]
    assert (swapped["description"], swapped["keywords"]) == ("泰德莱特公司承建临溪新闸，总造价2,810万元。", "承建")
    # a strength as 9/10, and as a part of a sum
    assert related["Tidewright Ltd", "Tender 2019/07"]["weight"] == 9
    # a gloss behind a name is no part of it; a type in another language is none of ours
    kinds = {row["title"]: row["type"] for row in snapshot.rows("entities").to_pylist()}
    assert kinds["彭哈洛"] == "person" and kinds["万俟小雨"] == "" and kinds["欧阳敏之"] == "person"
    # the record that was cut off came with the second look, and is not counted as lost
    assert related["临溪县人民法院", "（2022）临民初字第0317号"]["weight"] == 9
    assert result.losses == {"dropped": 4, "repaired": 0, "texts": 1}
    assert [one["document"] for one in result.degraded] == ["documents/05-letter-oyelaran.md"]
    (lost,) = snapshot.rows("losses").to_pylist()
    assert (lost["uri"], lost["dropped"]) == ("documents/05-letter-oyelaran.md", 4)
    assert "4 x name not in the text" in lost["reason"]


def test_the_reports_of_a_reader_are_the_reports(live_index: tuple[Snapshot, Any, Any]) -> None:
    snapshot, _, _ = live_index
    written = {row["title"]: row for row in snapshot.rows("reports").to_pylist() if row["method"] == "llm"}
    assert len(written) == len(said("report")) == 4
    for one in said("report"):
        start, end = one["reply"].index("{"), one["reply"].rindex("}") + 1
        meant = json.loads(re.sub(r",(\s*[\]}])", r"\1", one["reply"][start:end]))
        kept = written[meant["title"]]
        assert kept["rank"] == float(str(meant["rating"]).removesuffix("/10"))
        findings = json.loads(kept["findings"])
        assert [finding["summary"] for finding in findings] == [finding["summary"] for finding in meant["findings"]]
        assert all("[Data: " in finding["explanation"] for finding in findings)
    chinese = written["临溪新闸与何大壮倾倒废石案"]["summary"]
    assert chinese.count("[Data: ") == 4 and "数据" not in chinese


def test_other_words_of_a_prompt_find_the_same_reply(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in prompts.folder().glob("*.md"):
        words = path.read_text("utf-8").replace("List the entities of a text", "Name what a text is about")
        (tmp_path / path.name).write_text(words, "utf-8")
    kept = live.Recorded(LIVE / "recorded")
    with monkeypatch.context() as patched:
        patched.setattr(prompts, "folder", lambda: tmp_path)
        prompts._shipped.cache_clear()
        for one in said("extract"):
            prompt = params_from(Settings(), None).prompt(one["about"], "<document>Title: Another</document>\n")
            assert prompt.startswith("Name what") and kept.reply([{"role": "user", "content": prompt}]) == one["reply"]
        assert kept.reply([{"role": "user", "content": params_from(Settings(), None).prompt("Not asked.")}]) == ""
    prompts._shipped.cache_clear()  # tests of the same process read the prompts of the package
    assert kept.missing == [("extract", "Not asked.")]
