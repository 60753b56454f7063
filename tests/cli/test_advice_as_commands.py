"""What the command line advises can be typed there: no message that reaches it speaks of a tool or its arguments."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

from graphrag_mcp.cli.main import main
from graphrag_mcp.cli.output import COMMANDS, ONLY_TOOLS, as_commands
from graphrag_mcp.tools import all_tools
from tests.support.command import ROOT, SAMPLE

TOOL = re.compile(rf"(?<!the tool )\b({'|'.join((*COMMANDS, *ONLY_TOOLS))})\b")
SERVER_ALONE = ("compat.py", "work.py", "resources.py", "prompts.py")  # what no command calls
ARGUMENT = re.compile(r"\b(corpus|dry_run|remove_missing)=")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three documents, indexed into a home of its own."""
    folder = tmp_path_factory.mktemp("work")
    (folder / "notes").mkdir()
    for name, text in (
        ("a.md", "# Heron\n\nThe Heron scheduler was written by Adaeze Lindholm in Trondheim.\n"),
        ("b.md", "# Ibis\n\nMateus Ferreira gave the Ibis archive to Adaeze Lindholm.\n"),
        ("c.md", "# get_source\n\n`get_source` is a tool, says Mateus Ferreira; call get_source(ids=[1]).\n"),
        ("d.md", "# Log\n\n" + "".join(f"Entry {n}: the engine was oiled and ran until noon.\n" for n in range(40))),
    ):
        (folder / "notes" / name).write_text(text, "utf-8")
    assert main(["index", str(folder / "notes"), "--home", str(folder / "home")]) == 0
    return folder


def ran(capsys: pytest.CaptureFixture[str], place: Path, *arguments: str) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of one command."""
    capsys.readouterr()
    status = main([*arguments, "--home", str(place / "home")])
    return status, *capsys.readouterr()


def test_every_tool_has_a_command_or_is_known_to_have_none() -> None:
    assert {tool.name for tool in all_tools()} == {*COMMANDS, *ONLY_TOOLS}


def test_no_advice_in_the_code_keeps_a_tools_name_when_it_is_translated() -> None:
    """Read from the source: the next move of every error, and every sentence that goes into a hint."""
    wrong, seen = [], 0
    for path in sorted((ROOT / "graphrag_mcp").rglob("*.py")):
        for said in advice(ast.parse(path.read_text("utf-8"))) if path.name not in SERVER_ALONE else ():
            seen += 1
            left = as_commands(said)
            if TOOL.search(left) or ARGUMENT.search(re.sub(r'field(!|<|>)?=\S+|"[^"]*"|--[\w-]+', "", left)):
                wrong.append((path.name, said, left))
    assert wrong == [] and seen > 150


def advice(tree: ast.AST) -> list[str]:
    """The strings of next moves, hints and next calls, with what is filled in as `x`."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and len(node.exc.args) == 2:
            found += strings(node.exc.args[1])
        elif isinstance(node, ast.Assign) and any(
            isinstance(one, ast.Attribute) and one.attr in ("hint", "next_call") for one in node.targets
        ):
            found += strings(node.value)
        elif isinstance(node, ast.keyword) and node.arg in ("hint", "next_call"):
            found += strings(node.value)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("_note", "note", "remark"):
            found += [one for argument in node.args for one in strings(argument)]
    return found


def strings(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.JoinedStr):
        return ["".join(one.value if isinstance(one, ast.Constant) else "x" for one in node.values)]
    if isinstance(node, ast.IfExp):
        return [*strings(node.body), *strings(node.orelse)]
    return [one for child in ast.iter_child_nodes(node) for one in strings(child)]


@pytest.mark.parametrize("said, wanted", [
    ('Call index_documents(paths=["."]) or give it texts first', "Call graphrag-mcp index . or give it texts first"),
    ("Give corpus= one of: a, b", "Give --corpus one of: a, b"),
    ('get_source(ids=["t3", "t4.1+"], max_tokens=4000)', "graphrag-mcp source t3 t4.1+ --max-tokens 4000"),
    ('edit_graph(op="undo", ids=["u1"], corpus="x", dry_run=false) takes it back.',
     "graphrag-mcp edit undo u1 --corpus x --yes takes it back."),
    ('remove_documents(ids=["my notes.md"], dry_run=false)', "graphrag-mcp remove 'my notes.md' --yes"),
    ("call again with remove_missing=true", "call again with --remove-missing"),
    ('get_source(ids=["d4"], changes=true) shows', "graphrag-mcp source d4 --changes shows"),
    ("(links, images or rules only: raw=true shows them)", "(links, images or rules only: --raw shows them)"),
    ('Nearest: get_source (e5), "get_entity"', 'Nearest: get_source (e5), "get_entity"'),
    ('local_search(query="...", corpus="x")', "graphrag-mcp search QUERY --corpus x"),
    ('Ask with claim_work(corpus="a").', "Ask with the tool claim_work."),
])  # fmt: skip
def test_advice_becomes_commands_and_names_of_others_stay(said: str, wanted: str) -> None:
    assert as_commands(said) == wanted


@pytest.mark.parametrize("said, wanted", [
    ('More text: get_source(ids=["e1"]).', "More text: graphrag-mcp source e1 --corpus a."),
    ('explore_graph(start="e1", goal="e53")', "graphrag-mcp explore e1 e53 --corpus a"),
    ('local_search(query="Tobias Fenn")', "graphrag-mcp search 'Tobias Fenn' --corpus a"),
    ('edit_graph(op="undo", ids=["u1"], corpus="b")', "graphrag-mcp edit undo u1 --corpus b"),
    ('get_source(ids=["b/t1.2", "b/d4"])', "graphrag-mcp source b/t1.2 b/d4"),
    ("Call get_entity with an id from the list", "Call graphrag-mcp entity with an id from the list"),
])  # fmt: skip
def test_a_whole_command_keeps_the_corpus_that_was_asked_for(said: str, wanted: str) -> None:
    assert as_commands(said, "a") == wanted


def test_without_a_model_no_walk_is_advised_that_fails_again(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = ran(capsys, place, "search", "x", "--mode", "drift")
    assert status == 2 and "GRAPHRAG_MCP_CHAT_MODEL" in err and "graphrag-mcp drift" not in err and "tool" not in err


@pytest.mark.parametrize("command", [
    ["search", "zebra"], ["search", "zebra", "--mode", "text"], ["search", "x", "--filter", "entity=Nobody"],
    ["entity", "Nobody"], ["report", "c99"], ["source", "t99"], ["source", ""], ["explore", "Nobody"],
    ["explore", "Nobody", "--corpus", "*"], ["edit", "merge", "e1"], ["edit", "merge"], ["edit", "undo"],
    ["edit", "update", "e99"], ["edit", "proposals"], ["edit", "delete", "Heron"], ["remove", "zz.md"],
    ["remove", "a.md"], ["status"], ["status", "--corpus", "zz"], ["search", "x", "--mode", "drift"],
    ["search", "Lindholm", "--max-tokens", "200"], ["explore", "c99"], ["search", "x", "--level", "9", "--mode", "global"],
], ids=" ".join)  # fmt: skip
def test_no_command_speaks_of_a_tool(command: list[str], place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, err = ran(capsys, place, *command)
    said = re.sub(r"\[t\d.*?\n\n|^#.*$|c\.md.*", "", f"{out}\n{err}", flags=re.MULTILINE)
    found = TOOL.search(re.sub(r"`?get_source`?( \(e\d+| is a tool|\(ids=\[1\]\)|$)?", "", said))
    assert not found and not ARGUMENT.search(said), said
    assert ran(capsys, place, *command, "--json")[1].startswith("{")


def test_the_next_command_can_be_typed_as_it_stands(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, _, err = ran(capsys, place, "source", "d.md", "a.md", "--max-tokens", "200")
    following = next(line for line in err.splitlines() if line.startswith("next: graphrag-mcp "))
    status, out, _ = ran(capsys, place, *following.split()[2:])
    assert status == 0 and "Lindholm" in out


def test_the_next_page_of_a_search_is_named_and_can_be_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for n, word in enumerate("amber birch cedar delta ember fjord grove haven inlet jetty knoll ledge".split()):
        (tmp_path / f"{word}.md").write_text(f"# {word.title()}\n\nThe {word} engine of boat {n} was oiled by the {word} crew until noon.\n", "utf-8")
    assert ran(capsys, tmp_path, "index", str(tmp_path))[0] == 0
    for search in (["search", '"engine"', "--mode", "text"], ["search", "engine oiled until noon"], ["list"]):
        command = [*search, "--max-tokens", "200"]
        _, first, err = ran(capsys, tmp_path, *command)
        following = next(line for line in err.splitlines() if line.startswith("next page: "))
        status, second, _ = ran(capsys, tmp_path, *command, *following.removeprefix("next page: ").split())
        assert status == 0 and second.strip() and second != first, command


def test_where_there_is_no_index_the_first_command_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = ran(capsys, tmp_path, "search", "anything")
    assert status == 2 and err == "graphrag-mcp: there is no index yet. Call graphrag-mcp index . or give it texts first.\n"
    assert "next: graphrag-mcp index ." in ran(capsys, tmp_path, "status")[2]


def test_an_estimate_and_what_has_changed_are_sentences(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = ran(capsys, tmp_path, "index", str(SAMPLE), "--dry-run")[1]
    assert "read 18 files (" in said and "ask no model, so it costs nothing" in said
    for text in (said, ran(capsys, place, "status", "--since", "1")[1]):
        assert "{" not in text and "[" not in text and "_" not in text.replace(str(place), ""), text
    record: dict[str, Any] = json.loads(ran(capsys, place, "status", "--since", "1", "--json")[1])
    assert record["since"] == 1 and isinstance(record["counts"], dict)


def test_an_estimate_with_a_model_says_calls_tokens_and_cost_in_words() -> None:
    from graphrag_mcp.cli.output import estimated
    from graphrag_mcp.types import IndexResult

    stage = {"calls": 1, "prompt_tokens": 1200, "output_tokens": 300}
    guess = {"files": 1, "bytes": 900, "cost": 0.0125, "by_stage": {"extract": stage}, **stage}
    lines = estimated(IndexResult(corpus="x", estimate=guess, counts={"removed": 1, "unchanged": 2}))
    assert lines[1:] == [
        "read 1 file (0.9 kB)", "take out 1 document no longer there", "leave 2 documents as they are",
        "ask a model about 1 time, 1,200 tokens in, 300 out, at a cost of about 0.0125 by the prices in the settings",
        "  extract: 1 time, 1,200 tokens in, 300 out",
    ]  # fmt: skip


def test_an_index_that_is_not_meant_here_says_how_to_reach_it(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("mine", "theirs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.md").write_text(f"# {name}\n\nAda Keene keeps {name} at Port Kell.\n", "utf-8")
    monkeypatch.chdir(tmp_path / "mine")
    assert "--corpus" not in ran(capsys, tmp_path, "index", ".")[2]
    told = ran(capsys, tmp_path, "index", "../theirs")[2]
    corpus = re.search(r"--corpus (theirs-\w+)", told)
    assert corpus and "theirs" in ran(capsys, tmp_path, "search", "Ada Keene", "--corpus", corpus[1])[1]
    assert "Keene keeps mine" in ran(capsys, tmp_path, "search", "Ada Keene")[1]
