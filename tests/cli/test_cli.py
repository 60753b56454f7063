"""The command line as a user meets it: real processes, real folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from graphrag_mcp.cli.main import main
from tests.support.command import clean_environment, run_cli


def ran(*arguments: str | Path, status: int = 0, **options: Any) -> dict[str, Any]:
    """The JSON object that a command printed, after checking its exit status."""
    done = run_cli(*arguments, "--json", **options)
    assert done.returncode == status, (done.stdout, done.stderr)
    return json.loads(done.stdout)


def titles(result: dict[str, Any]) -> set[str]:
    return {citation["uri"].rsplit("/", 1)[-1] for citation in result["citations"]}


def changes(record: dict[str, Any]) -> tuple[int, ...]:
    return tuple(record["counts"].get(name, 0) for name in ("added", "changed", "removed", "unchanged"))


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A code repository with everything in it that must stay out."""
    return write(tmp_path / "project", {
        "README.md": "# Heron\n\nThe Heron scheduler was written by Adaeze Lindholm in Trondheim.",
        "src/heron.py": "def run_queue(queue):\n    '''Heron runs every job that Adaeze Lindholm queued.'''\n",
        ".gitignore": "build/\n*.log\nprivate.md\n",
        "private.md": "forbiddenprivate", "build/out.md": "forbiddenbuild", "run.log": "forbiddenlog",
        ".git/config": "forbiddengit", ".git/notes.md": "forbiddengit",
        "node_modules/left-pad/README.md": "forbiddennode", "venv/pyvenv.cfg": "home = /usr",
        "venv/lib/python3/site-packages/x.py": "forbiddenvenv = 1", ".venv/lib/y.py": "forbiddenvenv = 2",
        ".env": "SECRET=forbiddenenv", ".env.local": "SECRET=forbiddenenv", "deploy.pem": "forbiddenpem",
        "credentials.json": '{"key": "forbiddencredentials"}', "__pycache__/z.py": "forbiddencache = 1",
    })  # fmt: skip


def test_what_must_not_go_in_does_not_go_in(project: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    record = ran("index", ".", "--home", home, cwd=project)
    assert (record["counts"]["added"], record["errors"]) == (2, [])
    assert sum(record["skipped"].values()) >= 6
    words = " ".join(f"forbidden{word}" for word in "private build log git node venv env pem credentials cache".split())
    assert ran("search", words, "--mode", "text", "--home", home, cwd=project)["citations"] == []
    stored = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    assert b"forbidden" not in stored


def test_index_json_has_one_shape(project: Path, tmp_path: Path) -> None:
    record = ran("index", project, "--home", tmp_path / "home")
    assert {"job_id", "status", "corpus", "done", "total", "counts", "skipped", "errors", "seconds", "calls", "tokens",
            "elapsed_seconds"} <= set(record)  # fmt: skip
    assert (record["status"], record["calls"], record["tokens"]) == ("done", 0, 0)
    assert all(isinstance(seconds, float) for seconds in record["seconds"].values())


def test_two_projects_under_one_home_do_not_mix(project: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "other", {"a.md": "# Ibis\n\nThe Ibis archive belongs to Mateus Ferreira."})
    home = tmp_path / "home"
    first, second = ran("index", ".", "--home", home, cwd=project), ran("index", ".", "--home", home, cwd=other)
    assert first["corpus"] != second["corpus"]
    assert titles(ran("search", "Mateus Ferreira", "--home", home, cwd=other)) == {"a.md"}
    assert "a.md" not in titles(ran("search", "Mateus Ferreira", "--home", home, cwd=project))
    done = run_cli("search", "Ibis", "--home", home, cwd=tmp_path)
    assert done.returncode in (0, 2)
    if done.returncode == 2:
        assert first["corpus"] in done.stderr and second["corpus"] in done.stderr


def test_index_syncs_and_an_unchanged_folder_costs_nothing(project: Path, tmp_path: Path) -> None:
    home = ("--home", tmp_path / "home")
    ran("index", project, *home)
    assert changes(ran("index", project, *home)) == (0, 0, 0, 2)
    (project / "src" / "heron.py").unlink()
    write(project, {"README.md": "# Heron\n\nNow kept by Sefa Aroha.", "new.md": "# New\n\nSefa Aroha wrote this too."})
    assert changes(ran("index", project, *home)) == (1, 1, 1, 0)
    assert ran("search", "Adaeze Lindholm", "--mode", "text", *home)["citations"] == []


def test_a_dry_run_writes_nothing(project: Path, tmp_path: Path) -> None:
    record = ran("index", project, "--dry-run", "--home", tmp_path / "home")
    assert record["estimate"]
    done = run_cli("search", "Heron", "--home", tmp_path / "home")
    assert done.returncode == 2 and "no index" in done.stderr


def test_a_file_that_cannot_be_read_is_named_and_the_rest_goes_in(tmp_path: Path) -> None:
    folder = write(tmp_path / "mixed", {"good.md": "# Good\n\nKestrel Bay is a harbour."})
    (folder / "broken.jsonl").write_bytes(b'{"text": "fine"\n\x00\x01 not json')
    done = run_cli("index", folder / "good.md", folder / "broken.jsonl", "--home", tmp_path / "home", "--json")
    record = json.loads(done.stdout)
    assert done.returncode == 1, record
    assert [error["path"].rsplit("/", 1)[-1] for error in record["errors"]] == ["broken.jsonl"]
    assert record["errors"][0]["reason"] and record["counts"]["added"] == 1


def test_the_status_is_1_where_what_was_named_or_all_of_a_folder_cannot_be_read(tmp_path: Path) -> None:
    folder = write(tmp_path / "mixed", {"good.md": "# Good\n\nKestrel Bay is a harbour."})
    torn, home, other = folder / "torn.pdf", str(tmp_path / "home"), str(tmp_path / "other")
    torn.write_bytes(b"%PDF-1.4 and nothing more")
    assert main(["index", str(folder), "--home", home]) == 0
    assert main(["index", str(torn), "--home", home]) == 1
    (folder / "good.md").unlink()
    assert main(["index", str(folder), "--home", other]) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["index", "no-such-folder"], ["no file or folder", "no-such-folder"]),
        (["index"], ["index needs a folder", "index docs"]),
        (["search", "x"], ["no index"]),
        (["search", "x", "--mode", "psychic"], ["unknown", "auto, local, global"]),
        (["dance"], ["invalid choice"]),
        (["search"], ["QUERY"]),
        (["status", "--corpus", "../escape"], ["cannot be used"]),
        (["index", ".", "--method", "llm"], ["needs a chat model", "GRAPHRAG_MCP_CHAT_MODEL"]),
        (["index", ".", "--method", "magic"], ["invalid choice"]),
    ],
)  # fmt: skip
def test_wrong_use_exits_with_2_and_says_what_to_do(arguments: list[str], words: list[str], tmp_path: Path) -> None:
    done = run_cli(*arguments, cwd=tmp_path, env=clean_environment(GRAPHRAG_MCP_HOME=str(tmp_path / "home")))
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert all(word in done.stderr for word in words), done.stderr
    assert "Traceback" not in done.stderr


def test_an_unknown_setting_is_an_error_with_the_nearest_name(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text("chunk_sise = 600\n")
    done = run_cli("status", env=clean_environment(GRAPHRAG_MCP_SETTINGS=str(tmp_path / "settings.toml")))
    assert (done.returncode, done.stdout) == (2, "")
    assert "chunk_sise" in done.stderr and "chunk_size" in done.stderr
    (tmp_path / "settings.toml").write_text('chunk_mode = "tokens"\n')  # of an earlier release
    done = run_cli("status", env=clean_environment(GRAPHRAG_MCP_SETTINGS=str(tmp_path / "settings.toml")))
    assert done.returncode == 2 and "'chunk_mode'. Remove it" in done.stderr


# ---- reading commands on the sample corpus, in this process: each is the same function without a second start ----


class Desk:
    """Types commands about the sample corpus and reads what they print."""

    def __init__(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.options = ["--home", str(home), "--corpus", "sample"]
        self.capsys = capsys

    def type(self, *arguments: str | Path, status: int = 0) -> str:
        assert main([*map(str, arguments), *self.options]) == status
        return self.capsys.readouterr().out

    def json(self, *arguments: str | Path) -> dict[str, Any]:
        return json.loads(self.type(*arguments, "--json"))


@pytest.fixture
def desk(sample_home: Path, capsys: pytest.CaptureFixture[str]) -> Desk:
    return Desk(sample_home, capsys)


@pytest.mark.parametrize("mode", ["auto", "local", "text"])
@pytest.mark.parametrize(
    ("query", "file"),
    [
        ("Who opened the canister with the sounding roll?", "wreck-dive-report.md"),
        ("沈若岚在灯塔上看到了什么？", "shen-ruolan-diary.md"),
    ],
)
def test_a_search_finds_the_document_that_answers(desk: Desk, mode: str, query: str, file: str) -> None:
    result = desk.json("search", query, "--mode", mode)
    assert file in titles(result)
    assert result["state"] == "context" and result["tokens"] <= 6000


def test_global_search_on_a_subject_lists_what_the_documents_say(desk: Desk) -> None:
    found = desk.json("search", "What was the dispute about the tidal array?", "--mode", "global")
    assert {"lighthouse-cooperative.md", "corrie-accord.md"} <= titles(found)
    assert "dispute over the Narrows Array" in found["text"]


def test_global_search_on_all_lists_topics_and_the_report_of_each_can_be_read(desk: Desk) -> None:
    found = desk.json("search", "What are the main themes?", "--mode", "global")
    assert found["communities"] and found["citations"]
    report = desk.json("report", found["communities"][0])
    assert report["members"] and report["method"] == "extractive" and len(report["text"]) > 200


def test_export_opens_in_pandas_and_every_id_resolves(desk: Desk, tmp_path: Path) -> None:
    import pandas as pd

    desk.type("export", tmp_path / "out")
    read = {path.stem: pd.read_parquet(path) for path in (tmp_path / "out").glob("*.parquet")}
    units, entities = set(read["text_units"]["id"]), set(read["entities"]["id"])
    assert {id for ids in read["entities"]["text_unit_ids"] for id in ids} <= units
    assert {id for ids in read["communities"]["entity_ids"] for id in ids} <= entities
    assert set(read["community_reports"]["community"]) == set(read["communities"]["community"])
    text = read["documents"].set_index("id")["text"]
    assert all(text[u.document_id][u.char_start : u.char_end] == u.text for u in read["text_units"].itertuples())
